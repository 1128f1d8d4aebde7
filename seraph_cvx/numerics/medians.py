"""Medians of the columns of a table, by which points are shifted and scales are measured."""

from __future__ import annotations

import numpy as np

from .checks import FloatArray

MANY_ROWS = 1_024
"""Rows of a table, at most, of which medians are taken; of more, of so many drawn at random."""


def column_medians(X: FloatArray) -> FloatArray:
    """The median of each column of a table with at least one row; nearly so of a very long one.

    By sorting rows of the transpose, which NumPy does several times faster than it selects. Of more
    than `MANY_ROWS` rows it is the median of some: between their quantiles at 0.42 and 0.58,
    almost surely. Any number in the midst of a column will do to shift it or to measure its scale.

    Examples
    --------
    >>> column_medians(np.array([[0.0, 3.0], [4.0, 3.0], [1.0, 5.0]]))
    array([1., 3.])
    >>> column_medians(np.array([[0.0], [4.0]]))
    array([2.])
    """
    X = some_rows(X)
    ranked = np.sort(np.ascontiguousarray(X.T), axis=1)
    middle = len(X) // 2
    if len(X) % 2:
        return np.ascontiguousarray(ranked[:, middle])
    return np.asarray(0.5 * (ranked[:, middle - 1] + ranked[:, middle]))


def some_rows(X: FloatArray) -> FloatArray:
    """The rows whose medians are taken: all of them, or some drawn at random, always the same."""
    if len(X) <= MANY_ROWS:
        return X
    return np.asarray(X[np.random.default_rng(0).integers(len(X), size=MANY_ROWS)])
