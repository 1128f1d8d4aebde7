"""Medians of the columns of a table, by which points are shifted and scales are measured."""

from __future__ import annotations

import numpy as np

from .checks import FloatArray


def column_medians(X: FloatArray) -> FloatArray:
    """The median of each column of a table with at least one row.

    By sorting rows of the transpose, which NumPy does several times faster than it selects.

    Examples
    --------
    >>> column_medians(np.array([[0.0, 3.0], [4.0, 3.0], [1.0, 5.0]]))
    array([1., 3.])
    >>> column_medians(np.array([[0.0], [4.0]]))
    array([2.])
    """
    ranked = np.sort(np.ascontiguousarray(X.T), axis=1)
    middle = len(X) // 2
    if len(X) % 2:
        return np.ascontiguousarray(ranked[:, middle])
    return np.asarray(0.5 * (ranked[:, middle - 1] + ranked[:, middle]))
