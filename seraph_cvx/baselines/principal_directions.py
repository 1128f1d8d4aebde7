"""The principal directions of the points, labeled or not."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..numerics.checks import FloatArray, check_number, check_points

FLAT = 1e-12
"""The points do not differ in directions whose variance is below this part of the largest."""


def principal_directions(X: ArrayLike, keep: float | None = None) -> FloatArray:
    """The principal directions of points, the leading eigenvectors of their covariance, as columns.

    Parameters
    ----------
    X : (n, m) array_like
    keep : int or float, optional
        A number of directions, or (below 1) the part of the variance that they must explain. By
        default, and at most, all directions in which the points differ.

    Returns
    -------
    (m, r) array

    Examples
    --------
    >>> np.abs(principal_directions([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]]).round(6))
    array([[0.6],
           [0.8]])
    """
    points = check_points(X)
    centered = points - points.mean(axis=0)
    variances, vectors = np.linalg.eigh(centered.T @ centered / len(points))
    variances, vectors = variances[::-1], vectors[:, ::-1]
    rank = int(np.sum(variances > FLAT * max(variances[0], 0.0)))
    if rank == 0:
        raise ValueError("All points are equal: there is no direction in which they differ.")
    if keep is None:
        return np.ascontiguousarray(vectors[:, :rank])
    number = check_number(keep, "principal_components", 0.0, strict=True)
    if number < 1.0:
        explained = np.cumsum(variances[:rank]) / np.sum(variances[:rank])
        number = 1 + int(np.searchsorted(explained, number))
    elif number != int(number):
        raise ValueError(
            f"principal_components={number:g} must be an integer, or a part of the variance "
            "below 1."
        )
    return np.ascontiguousarray(vectors[:, : min(int(number), rank)])
