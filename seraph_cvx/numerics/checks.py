"""Checks of users' input: numbers, points, class labels, pairs of indices, confidences."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Scalar = TypeVar("Scalar", bound=np.generic)

# The class label of a point whose class is not known.
UNKNOWN = -1

# The largest sum of squared distances over pairs that is allowed, with room for weights.
MOST = float(np.finfo(np.float64).max) / 1e4

# The largest sum of weights times squared distances over pairs that is allowed.
LARGEST_SUM = float(np.finfo(np.float64).max) / 16.0

# The least variation of a feature that varies: of less, the square or its inverse overflows.
LEAST = 1e-153


def read_only(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """The same array, which nobody can write into from now on."""
    array.flags.writeable = False
    return array


class MissingExtra(ImportError):
    """A package that only some uses need is not installed; the message says how to install it."""


def check_number(value: Any, name: str, minimum: float, strict: bool = False) -> float:
    """Check that `value` is a finite number >= `minimum` (> `minimum` if `strict`)."""
    try:
        if isinstance(value, str | bytes | bytearray) or getattr(value, "ndim", 0) != 0:
            raise TypeError("float() takes a number in words, too, and an array of one")
        number = float(value)
    except OverflowError:  # of an integer that no float can hold
        number = np.inf
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number, not {value!r}.") from None
    if not np.isfinite(number) or number < minimum or (strict and number == minimum):
        sign = ">" if strict else ">="
        raise ValueError(f"{name}={number:g} is out of range: it must be {sign} {minimum:g}.")
    return number


def check_count(value: Any, name: str) -> int:
    """Check that `value` is an integer >= 1; 500.0 is one, 2.5 is not."""
    number = check_number(value, name, 1)
    if not number.is_integer():
        raise ValueError(f"{name}={number:g} is not an integer: give one.")
    return int(number)


def refuse_masked(given: Any, name: str, cure: str) -> None:
    """Raise an error if `given` is a masked array with a masked entry.

    NumPy would drop the mask without a word, and what it hides be taken for data.
    """
    if not isinstance(given, np.ma.MaskedArray) or not np.ma.is_masked(given):
        return
    hidden = np.argwhere(np.ma.getmaskarray(given))
    position = f"[{', '.join(map(str, hidden[0]))}]" if given.ndim else ""
    entries = "entry" if len(hidden) == 1 else "entries"
    raise ValueError(f"{name}{position} is masked ({len(hidden)} such {entries} in all): {cure}.")


def check_points(X: ArrayLike, copy: bool = True) -> FloatArray:
    """Check points, and make them a read-only (n, m) array: a copy unless X may be kept."""
    refuse_masked(X, "X", "remove these points or impute the missing values first")
    try:
        points = np.array(X, dtype=np.float64, order="C", copy=copy or None)
    except (TypeError, ValueError) as error:
        raise ValueError(f"X must be a table of numbers, one row a point: {error}.") from None
    if points.ndim != 2:
        raise ValueError(
            f"X must be a table of n points by m features, not an array of shape {points.shape}."
        )
    if len(points) < 2 or points.shape[1] < 1:
        raise ValueError(f"X has shape {points.shape}: at least 2 points, 1 feature are needed.")
    least, most = np.min(points, axis=0), np.max(points, axis=0)  # NaN where a column has one
    if not np.all(np.isfinite(least) & np.isfinite(most)):
        bad = np.argwhere(~np.isfinite(points))
        row, column = bad[0]
        raise ValueError(
            f"X[{row}, {column}] is {points[row, column]} ({len(bad)} such entries, NaN or "
            "infinite, in all): remove these points or impute the missing values first."
        )
    largest = float(np.max(np.maximum(-least, most)))
    limit = np.sqrt(MOST / points.size) / len(points)
    if largest > limit:
        raise ValueError(
            f"X holds {largest:.3g}: sums of squared distances of points beyond {limit:.3g} are "
            "too large for floating point. Divide the features by a constant."
        )
    spread = most - least
    faint = np.flatnonzero((spread > 0.0) & (spread < LEAST))
    if len(faint):
        raise ValueError(
            f"Feature {faint[0]} of X varies by {spread[faint[0]]:.3g} in all: squares of "
            f"differences below {LEAST:.0g} are too small for floating point. Multiply it by a "
            "constant, or leave it out."
        )
    return read_only(points)


def refuse_overflow(total: float, weight: str) -> None:
    """Raise an error if `total`, a sum of weights times squared distances, is too large."""
    if not total <= LARGEST_SUM:
        raise ValueError(
            f"{weight} is too large for these points: sums of weights times squared distances "
            "overflow. Divide all weights by one number, trace_weight too, which leaves the metric "
            "as it is; or divide the features by a constant."
        )


def encode_labels(y: ArrayLike, n_points: int) -> tuple[IntArray, IntArray]:
    """Find the points of known class, and encode the class of each as an integer."""
    refuse_masked(y, "y", "mark an unknown label by -1")
    labels = np.asarray(y)
    if labels.shape != (n_points,):
        raise ValueError(
            f"y has shape {labels.shape}, but X has {n_points} points: one label each."
        )
    known = np.flatnonzero(is_known(labels))
    try:
        codes = np.unique(labels[known], return_inverse=True)[1]
    except TypeError as error:
        raise TypeError(
            f"The class labels cannot be sorted ({error}): use labels of one type."
        ) from None
    return known, codes.reshape(-1)


def is_known(labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Which class labels are known: all but -1, NaN and, among objects, None and "-1"."""
    if labels.dtype.kind in "OUST":
        return np.array([not _is_unknown(label) for label in labels], dtype=bool)
    bad = np.flatnonzero(np.isinf(labels))
    if len(bad):
        raise ValueError(f"y[{bad[0]}] is {labels[bad[0]]}: mark an unknown label by -1.")
    return np.asarray((labels != UNKNOWN) & ~np.isnan(labels))


def _is_unknown(label: Any) -> bool:
    """Whether a label marks an unknown class."""
    if label is None or type(label).__name__ == "NAType":  # pandas' NA, which compares to nothing
        return True
    if isinstance(label, float) and np.isnan(label):
        return True
    return bool(label == UNKNOWN or (isinstance(label, str) and label == str(UNKNOWN)))


def check_index_pairs(
    given: ArrayLike, name: str, n_points: int, confidence: ArrayLike | None
) -> tuple[IntArray, FloatArray]:
    """Check pairs of indices: sorted rows i < j, each once, and the confidence of each."""
    refuse_masked(given, f"`{name}`", "leave out the pairs that are not known")
    array = np.asarray(given)
    if array.size == 0:
        check_confidence(confidence, name, 0)
        return np.empty((0, 2), dtype=np.int64), np.empty(0)
    if array.ndim != 2 or array.shape[1] != 2:
        raise ValueError(f"`{name}` must have two columns (i, j); its shape is {array.shape}.")
    if array.dtype.kind not in "iu":
        raise TypeError(f"`{name}` must hold integer point indices, not {array.dtype}.")
    outside = np.flatnonzero(((array < 0) | (array >= n_points)).any(axis=1))
    if len(outside):
        pair = tuple(array[outside[0]].tolist())
        raise ValueError(
            f"`{name}` row {outside[0]} is {pair}, but the points are numbered 0 to {n_points - 1}."
        )
    selves = np.flatnonzero(array[:, 0] == array[:, 1])
    if len(selves):
        raise ValueError(
            f"`{name}` row {selves[0]} pairs point {array[selves[0], 0]} with itself: remove it."
        )
    rows, position = np.unique(np.sort(array.astype(np.int64), axis=1), axis=0, return_inverse=True)
    weights = np.zeros(len(rows))
    np.maximum.at(weights, position.reshape(-1), check_confidence(confidence, name, len(array)))
    return rows, weights


def check_confidence(given: ArrayLike | None, name: str, how_many: int) -> FloatArray:
    """Check that there is one positive confidence for each row."""
    if given is None:
        return np.ones(how_many)
    refuse_masked(given, f"`{name}_confidence`", "give a number > 0, or leave out the pair")
    c = np.array(given, dtype=np.float64)
    if c.ndim > 0 and c.shape != (how_many,):
        raise ValueError(
            f"`{name}_confidence` has shape {c.shape}, but `{name}` has {how_many} rows: "
            "give one number for each, or one for all."
        )
    c = np.broadcast_to(c, (how_many,))
    bad = np.flatnonzero(~(np.isfinite(c) & (c > 0.0)))
    if len(bad):
        raise ValueError(
            f"`{name}_confidence` of row {bad[0]} is {c[bad[0]]:g}: a confidence is > 0; leave out "
            "a pair that should not count."
        )
    return c


def counted(n: int, noun: str) -> str:
    """A number of things in words: 1 iteration, 2 iterations."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
