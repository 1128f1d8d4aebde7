"""Checks of the matrices that penalties take: a prior metric, a bound."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..numerics.checks import FloatArray, read_only
from ..numerics.psd_cone import symmetrize


def check_prior(
    given: ArrayLike,
    n_features: int | None = None,
    name: str = "prior",
    *,
    positive_definite: bool = False,
) -> FloatArray:
    """Check that a matrix is symmetric, finite, of the right size, and positive definite if asked.

    Examples
    --------
    >>> check_prior([[1.0, 2.0], [2.0, 1.0]], positive_definite=True)
    Traceback (most recent call last):
    ...
    ValueError: prior is not positive definite (its least eigenvalue is -1): add a multiple of I.
    """
    matrix = np.array(given, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"{name} has shape {matrix.shape}: give a square matrix.")
    if n_features is not None and len(matrix) != n_features:
        raise ValueError(
            f"{name} is {len(matrix)} x {len(matrix)}, but the points have {n_features} features."
        )
    if not np.all(np.isfinite(matrix)):
        raise ValueError(f"{name} holds NaN or infinity.")
    if not np.allclose(matrix, matrix.T, rtol=1e-9, atol=1e-12 * float(np.max(np.abs(matrix)))):
        raise ValueError(f"{name} is not symmetric: pass (A + A') / 2.")
    matrix = symmetrize(matrix)
    if positive_definite:
        least = float(np.linalg.eigvalsh(matrix)[0])
        if not least > 0.0:
            raise ValueError(
                f"{name} is not positive definite (its least eigenvalue is {least:.3g}): add a "
                "multiple of I."
            )
    return read_only(matrix)
