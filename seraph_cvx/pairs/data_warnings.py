"""Data that are valid but probably not what was meant: far values, class labels of a wrong kind."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from ..numerics.accurate_sums import column_medians, sampled_rows
from ..numerics.checks import FloatArray, IntArray, is_known

WARN_SPREADS = 20.0
"""Users are warned of a value this many spreads from the median, if there is a gap before it."""

SURE_SPREADS = 1e6
"""A value this many spreads from the median is told of where there are few points, too."""

FEW_POINTS = 10
"""With fewer points, chance makes gaps and scales of any size."""

UNKNOWN_LABELS = (
    *("", "?", "-", "n/a", "na", "nan", "none", "null", "missing", "unknown", "unlabeled"),
    *("unbekannt", "k.a.", "inconnu", "desconocido", "desconhecido", "sconosciuto", "onbekend"),
)
"""Strings that usually mean that a class is not known, in lower case."""


class FarValueWarning(UserWarning):
    """A value of X is so far from all others of its feature that it may be a mistake."""


class ScaleWarning(UserWarning):
    """The features of X are on scales so different that the largest ones are nearly all of it."""


def first_twins(points: FloatArray) -> IntArray:
    """For each row the first one that is exactly equal to it: itself, where it has no twin."""
    first: dict[bytes, int] = {}
    found = np.arange(len(points))
    for k, row in enumerate(points + 0.0):  # -0 is 0
        found[k] = first.setdefault(row.tobytes(), k)
    return found


def medians_and_spreads(points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The median of each feature, and the median of the nonzero distances from it."""
    medians = column_medians(points)
    spreads = column_medians(np.abs(sampled_rows(points) - medians))
    still = np.flatnonzero(spreads == 0.0)
    if len(still):
        ranked = np.sort(np.abs(points[:, still] - medians[still]), axis=0)
        first = np.minimum(np.sum(ranked == 0.0, axis=0), len(points) - 1)
        low, high = (first + len(points) - 1) // 2, (first + len(points)) // 2
        spreads[still] = 0.5 * sum(np.take_along_axis(ranked, k[None], 0)[0] for k in (low, high))
    return medians, spreads


def far_values(points: FloatArray, n_spreads: float = WARN_SPREADS) -> IntArray:
    """The (row, column) of each value this many spreads from the median, the farthest first."""
    medians, spreads = medians_and_spreads(points)
    with np.errstate(over="ignore"):  # in single precision: then nothing is so far
        limits = n_spreads * spreads
    farthest = np.maximum(np.max(points, axis=0) - medians, medians - np.min(points, axis=0))
    suspects = np.flatnonzero(farthest > limits)
    deviations = np.abs(points[:, suspects] - medians[suspects])
    rows, columns = np.nonzero(deviations > limits[suspects])
    scale = np.where(spreads > 0.0, spreads, 1.0)[suspects]
    order = np.argsort(-(deviations / scale)[rows, columns])
    return np.column_stack([rows, suspects[columns]])[order]


def stray_values(points: FloatArray, n_spreads: float = WARN_SPREADS) -> IntArray:
    """The (row, column) of each value that may be a mistake or stand for a missing one.

    Far values beyond a gap: five times as far from the median as all nearer values, or as many
    times as these are spreads away, if that is more, since a heavy tail has gaps too. In the order
    of rows. Of the data sets of this package and others like them, breast cancer has a value at 56
    spreads, and none has a gap of more than 3.
    """
    far = far_values(points, SURE_SPREADS if len(points) < FEW_POINTS else n_spreads)
    medians, spreads = medians_and_spreads(points)
    strays = []
    for column in np.unique(far[:, 1]):
        distances = np.abs(points[:, column] - medians[column])
        ranked = np.unique(distances)
        is_far = np.isin(ranked, distances[far[far[:, 1] == column, 0]])
        with np.errstate(over="ignore"):
            gaps = np.maximum(5.0, ranked[:-1] / spreads[column])
            beyond = ranked[1:][is_far[1:] & (ranked[1:] > gaps * ranked[:-1])]
        if len(beyond):
            strays += [(row, column) for row in np.flatnonzero(distances >= beyond[0])]
    return np.array(sorted(strays), dtype=np.int64).reshape(-1, 2)


def clip_far_values(points: FloatArray, n_spreads: float = 1e3) -> FloatArray | None:
    """Clip far values to the typical range of their feature; None if there are none.

    Where most points have such a value, as with features that are nearly zero but for one point
    each, they are what is typical.
    """
    far = far_values(points, n_spreads)
    if not 0 < len(np.unique(far[:, 0])) < len(points) / 2:
        return None
    medians, spreads = medians_and_spreads(points)
    limits = n_spreads * spreads
    return np.clip(points, medians - limits, medians + limits)


def describe_far_values(
    points: FloatArray, names: Sequence[str] | None = None, n_spreads: float = WARN_SPREADS
) -> str:
    """Describe the first stray value: row, column, how many more, and the remedy; or empty."""
    strays = stray_values(points, n_spreads)
    if not len(strays):
        return ""
    row, column = strays[0]
    medians, spreads = medians_and_spreads(points)
    more = f" ({len(strays) - 1} more like it)" if len(strays) > 1 else ""
    distance = abs(points[row, column] - medians[column]) / spreads[column]
    name = column if names is None else repr(str(names[column]))
    return (
        f"X[{row}, {name}] is {points[row, column]:.6g}, which is {distance:.3g} times the spread "
        f"of feature {name} away from its median{more}. If it stands for a missing value, impute "
        "it or remove the row."
    )


def describe_scales(
    points: FloatArray,
    names: Sequence[str] | None = None,
    cure: str = "scale X first: make_pipeline(StandardScaler(), ...)",
) -> str:
    """Describe which features vary most and least, and the remedy; empty if they do alike.

    One feature varies more than another, a hundred times, if both its standard deviation and its
    spread are so much larger:
    the spread of a pixel or a one-hot column that is mostly zero is not small, and the standard
    deviations of standardized features are equal.
    """
    spreads, deviations = medians_and_spreads(points)[1], np.std(points, axis=0)
    varying = np.flatnonzero((spreads > 0.0) & (deviations > 0.0))
    if not len(varying) or len(points) < FEW_POINTS:
        return ""
    large = np.minimum(deviations, spreads)[varying]
    small = np.maximum(deviations, spreads)[varying]
    i, j = int(np.argmax(large)), int(np.argmin(small))
    if not large[i] > 100.0 * small[j]:
        return ""
    ends = varying[[i, j]]
    most, least = [f"feature {k}" if names is None else repr(str(names[k])) for k in ends]
    ratio = np.divide(*deviations[ends])
    return (
        f"The scales of the features differ widely: {most} varies "
        f"{format(ratio, ',.0f' if ratio < 1e6 else '.0e')} times as much as {least}, which hardly "
        f"counts beside it. Unless all features have one unit, {cure}."
    )


def describe_labels(y: ArrayLike) -> str:
    """Describe what is doubtful about class labels, and the remedy; empty if nothing is."""
    labels = np.asarray(y)
    kind = labels.dtype.kind
    if kind in "OUST":
        words = dict.fromkeys(label for label in labels.tolist() if isinstance(label, str))
        for label in words:
            if label.strip().lower() in UNKNOWN_LABELS:
                return (
                    f"y holds {label!r} {_times(labels == label)}, which counts as a class. Use "
                    "None or -1 for an unknown label."
                )
        return ""
    if set(np.unique(labels).tolist()) == {-1, 1}:
        return (
            "y holds only -1 and +1, which looks like the labels of pairs. But -1 marks a point "
            "of unknown class, so all known points are of one class. For two classes use 0 and 1; "
            "for pairs of points use PairSERAPH."
        )
    if kind == "u" and np.any(labels == (largest := np.iinfo(labels.dtype).max)):
        return (
            f"y is of type {labels.dtype} and holds {largest} {_times(labels == largest)}, which "
            "is what -1 becomes in that type; it counts as a class. If it marks unknown labels, "
            "make y signed before they are set: y.astype(int)."
        )
    known = labels[is_known(labels)] if kind == "f" else labels[:0]
    n_different = len(np.unique(known))
    if n_different > 10 and np.any(known != np.rint(known)):
        return (
            f"y holds {n_different} different numbers that are not all whole, and each counts as "
            "a class. A measurement has to be divided into classes first (KBinsDiscretizer)."
        )
    return ""


def _times(matches: ArrayLike) -> str:
    """How many entries match, in words."""
    count = int(np.count_nonzero(matches))
    return "once" if count == 1 else f"{count} times"
