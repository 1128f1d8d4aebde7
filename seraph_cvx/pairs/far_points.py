"""Outliers of a feature: a sentinel for "missing", a misplaced decimal point.

One value of 1e8 among standardized features makes every sum of squares the sum of that one square.
"""

from __future__ import annotations

import numpy as np

from ..numerics.accurate_sums import column_medians, sampled_rows
from ..numerics.checks import FloatArray, IntArray

FAR_SPREADS = 1e3
"""A value this many spreads from the median is cut off before a feature's scale is measured."""

TOLD_SPREADS = 1e6
"""Users are warned of a value this many spreads from the median."""


def middles_and_spreads(points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The median of each feature, and the median of the nonzero distances from it.

    Examples
    --------
    >>> middles_and_spreads(np.array([[0.0], [1.0], [2.0], [1e8]]))
    (array([1.5]), array([1.]))
    """
    middles = column_medians(points)
    spreads = column_medians(np.abs(sampled_rows(points) - middles))
    still = np.flatnonzero(spreads == 0.0)
    if len(still):
        ranked = np.sort(np.abs(points[:, still] - middles[still]), axis=0)
        first = np.minimum(np.sum(ranked == 0.0, axis=0), len(points) - 1)
        low, high = (first + len(points) - 1) // 2, (first + len(points)) // 2
        spreads[still] = 0.5 * sum(np.take_along_axis(ranked, k[None], 0)[0] for k in (low, high))
    return middles, spreads


def far_values(points: FloatArray, n_spreads: float = TOLD_SPREADS) -> IntArray:
    """The (row, column) of each value this many spreads from the median, the farthest first.

    Examples
    --------
    >>> far_values(np.array([[0.0], [1.0], [2.0], [1e8]]))
    array([[3, 0]])
    """
    middles, spreads = middles_and_spreads(points)
    with np.errstate(over="ignore"):  # in single precision: then nothing is so far
        limits = n_spreads * spreads
    farthest = np.maximum(np.max(points, axis=0) - middles, middles - np.min(points, axis=0))
    some = np.flatnonzero(farthest > limits)
    deviations = np.abs(points[:, some] - middles[some])
    rows, columns = np.nonzero(deviations > limits[some])
    scale = np.where(spreads > 0.0, spreads, 1.0)[some]
    order = np.argsort(-(deviations / scale)[rows, columns])
    return np.column_stack([rows, some[columns]])[order]


def cut_off(points: FloatArray) -> FloatArray | None:
    """Clip far values to the typical range of their feature; None if there are none.

    Where most points have such a value, as with features that are nearly zero but for one point
    each, they are what is typical.
    """
    far = far_values(points, FAR_SPREADS)
    if not 0 < len(np.unique(far[:, 0])) < len(points) / 2:
        return None
    middles, spreads = middles_and_spreads(points)
    reach = FAR_SPREADS * spreads
    return np.asarray(np.clip(points, middles - reach, middles + reach))


class FarValueWarning(UserWarning):
    """A value of X is so far from all others of its feature that it may be a mistake."""


def describe_far_values(points: FloatArray) -> str:
    """Describe the farthest value, with its row, column and the remedy; empty if there is none."""
    found = far_values(points)
    if not len(found):
        return ""
    row, column = found[0]
    middles, spreads = middles_and_spreads(points)
    more = f" ({len(found) - 1} more like it)" if len(found) > 1 else ""
    distance = abs(points[row, column] - middles[column]) / spreads[column]
    return (
        f"X[{row}, {column}] is {points[row, column]:.6g}, which is {distance:.1g} times the "
        f"spread of feature {column} away from its median{more}. If it stands for a missing "
        "value, impute it or remove the row."
    )
