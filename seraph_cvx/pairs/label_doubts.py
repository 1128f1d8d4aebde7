"""Descriptions of class labels that are valid but probably not what was meant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..numerics.checks import is_known

WORDS_FOR_UNKNOWN = (
    "",
    "?",
    "n/a",
    "na",
    "nan",
    "none",
    "null",
    "unknown",
    "unlabeled",
    "unlabeled",
)
"""Strings that usually mean that a class is not known, in lower case."""

FEW = 10
"""Numbers that are not whole are taken for a measurement if there are more different ones."""


def describe_labels(y: ArrayLike) -> str:
    """Describe what is doubtful about class labels, and the remedy; empty if nothing is.

    Examples
    --------
    >>> describe_labels(["a", "b", "unknown", "unknown"])
    "y holds 'unknown' 2 times, which counts as a class. Use None or -1 for an unknown label."
    >>> describe_labels(["a", "b", None, None])
    ''
    """
    labels = np.asarray(y)
    return next((found for doubt in _DOUBTS if (found := doubt(labels))), "")


def _pair_labels(labels: NDArray[Any]) -> str:
    if labels.dtype.kind in "OUST" or set(np.unique(labels).tolist()) != {-1, 1}:
        return ""
    return (
        "y holds only -1 and +1, which looks like the labels of pairs. But -1 marks a point "
        "of unknown class, so all known points are of one class. For two classes use 0 and 1; "
        "for pairs of points use PairSERAPH."
    )


def _wrapped(labels: NDArray[Any]) -> str:
    """The largest number of an unsigned type is what -1 becomes in it."""
    if labels.dtype.kind != "u" or not labels.size:
        return ""
    largest = np.iinfo(labels.dtype).max
    count = int(np.count_nonzero(labels == largest))
    if not count:
        return ""
    return (
        f"y is of type {labels.dtype} and holds {largest} {_times(count)}, which is what -1 "
        "becomes in that type; it counts as a class. If it marks unknown labels, make y signed "
        "before they are set: y.astype(int)."
    )


def _words(labels: NDArray[Any]) -> str:
    if labels.dtype.kind not in "OUST":
        return ""
    for label in dict.fromkeys(label for label in labels.tolist() if isinstance(label, str)):
        if label.strip().lower() in WORDS_FOR_UNKNOWN:
            count = int(np.count_nonzero(labels == label))
            return (
                f"y holds {label!r} {_times(count)}, which counts as a class. Use None or -1 for "
                "an unknown label."
            )
    return ""


def _measurements(labels: NDArray[Any]) -> str:
    if labels.dtype.kind != "f":
        return ""
    known = labels[is_known(labels)]
    n_different = len(np.unique(known))
    if n_different <= FEW or np.all(known == np.rint(known)):
        return ""
    return (
        f"y holds {n_different} different numbers that are not all whole, and each counts as a "
        "class. A measurement has to be divided into classes first (KBinsDiscretizer)."
    )


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


_DOUBTS: tuple[Callable[[NDArray[Any]], str], ...] = (
    _pair_labels,
    _wrapped,
    _words,
    _measurements,
)
