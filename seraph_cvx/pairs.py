"""Which pairs of points are similar, dissimilar or unlabeled (Section 2.1 of the paper)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

UNKNOWN = -1
"""The class label of a point whose class is not known."""


@dataclass(frozen=True, eq=False, repr=False)
class PairSet:
    """S, D and U: the similar, the dissimilar and all other pairs of n points.

    Build one with :meth:`from_labels` or :meth:`from_constraints`.

    Attributes
    ----------
    points : (n, m) array
        The points x_i, read only.
    similar, dissimilar : (k, 2) integer arrays
        Pairs (i, j) with i < j, in lexicographic order, each once.

    Examples
    --------
    >>> from seraph_cvx import PairSet
    >>> PairSet.from_labels([[0.0], [0.1], [3.0], [3.2]], ["a", "a", "b", None])
    PairSet(4 points in R^1: 1 similar, 2 dissimilar, 3 unlabeled pairs)
    """

    points: FloatArray
    similar: IntArray
    dissimilar: IntArray

    @classmethod
    def from_labels(cls, X: ArrayLike, y: ArrayLike) -> PairSet:
        """S = {(i, j): y_i = y_j}, D = {(i, j): y_i != y_j} over the points of known class.

        Parameters
        ----------
        X : (n, m) array_like
            The points.
        y : (n,) array_like
            Class labels of any sortable type. -1 is an unknown label; among strings and objects
            None, "-1" and NaN are unknown too.

        Examples
        --------
        >>> PairSet.from_labels([[0.0], [1.0], [5.0]], [0, 0, -1]).unlabeled
        array([[0, 2],
               [1, 2]])
        """
        points = _check_points(X)
        known, codes = _encode_labels(y, len(points))
        if len(known) < 2:
            raise ValueError(
                f"{len(known)} of the {len(points)} labels is known, so no pair is labeled: "
                "give the class of at least two points (-1 marks an unknown one)."
            )
        first, second = np.triu_indices(len(known), 1)
        candidates = np.column_stack([known[first], known[second]])
        same = codes[first] == codes[second]
        return cls(points, candidates[same], candidates[~same])

    @classmethod
    def from_constraints(cls, X: ArrayLike, similar: ArrayLike, dissimilar: ArrayLike) -> PairSet:
        """S and D as given, U = every other pair.

        Parameters
        ----------
        X : (n, m) array_like
            The points.
        similar, dissimilar : (k, 2) array_like of int
            Rows (i, j) of point indices, in any order; a pair given twice counts once.

        Examples
        --------
        >>> PairSet.from_constraints([[0.0], [1.0], [5.0]], similar=[(1, 0)], dissimilar=[(2, 0)])
        PairSet(3 points in R^1: 1 similar, 1 dissimilar, 1 unlabeled pairs)
        """
        points = _check_points(X)
        near = _check_index_pairs(similar, "similar", len(points))
        far = _check_index_pairs(dissimilar, "dissimilar", len(points))
        if len(near) + len(far) == 0:
            raise ValueError(
                "Both `similar` and `dissimilar` are empty: at least one labeled pair is needed."
            )
        n = len(points)
        both = np.intersect1d(near @ [n, 1], far @ [n, 1])
        if len(both):
            i, j = divmod(int(both[0]), n)
            raise ValueError(
                f"Pair ({i}, {j}) is both similar and dissimilar"
                + (f", and so are {len(both) - 1} more" if len(both) > 1 else "")
                + ": remove it from one of the two lists."
            )
        return cls(points, near, far)

    @property
    def n_points(self) -> int:
        """n, the number of points."""
        return len(self.points)

    @property
    def n_features(self) -> int:
        """m, the number of features."""
        return int(self.points.shape[1])

    @property
    def n_labeled(self) -> int:
        """#(S u D)."""
        return len(self.similar) + len(self.dissimilar)

    @property
    def n_unlabeled(self) -> int:
        """#U = n(n-1)/2 - #(S u D)."""
        return self.n_points * (self.n_points - 1) // 2 - self.n_labeled

    @cached_property
    def labeled(self) -> IntArray:
        """The rows of `similar`, then those of `dissimilar`."""
        return np.vstack([self.similar, self.dissimilar])

    @cached_property
    def unlabeled(self) -> IntArray:
        """The rows of U in lexicographic order; made when first asked for (O(n^2) memory)."""
        is_unlabeled = np.triu(np.ones((self.n_points, self.n_points), dtype=bool), 1)
        is_unlabeled[tuple(self.labeled.T)] = False
        return np.argwhere(is_unlabeled)

    def resolve_unlabeled_weight(self, unlabeled_weight: float | str) -> float:
        """mu as a number: "ratio" is #(S u D) / #U, the paper's choice, and 0 when U is empty."""
        if isinstance(unlabeled_weight, str):
            if unlabeled_weight != "ratio":
                raise ValueError(
                    f"unlabeled_weight={unlabeled_weight!r} is not known: "
                    'give a number >= 0 or "ratio".'
                )
            return self.n_labeled / self.n_unlabeled if self.n_unlabeled else 0.0
        weight = check_number(unlabeled_weight, "unlabeled_weight", minimum=0.0)
        return weight if self.n_unlabeled else 0.0

    def __repr__(self) -> str:
        return (
            f"PairSet({self.n_points} points in R^{self.n_features}: {len(self.similar)} similar, "
            f"{len(self.dissimilar)} dissimilar, {self.n_unlabeled} unlabeled pairs)"
        )


def check_number(value: Any, name: str, minimum: float, strict: bool = False) -> float:
    """`value` as a finite float >= `minimum` (> `minimum` if `strict`), or a clear error."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number, not {value!r}.") from None
    if not np.isfinite(number) or number < minimum or (strict and number == minimum):
        sign = ">" if strict else ">="
        raise ValueError(f"{name}={number:g} is out of range: it must be {sign} {minimum:g}.")
    return number


def _check_points(X: ArrayLike) -> FloatArray:
    points = np.array(X, dtype=np.float64, order="C")  # a copy: the caller's array stays his
    if points.ndim != 2:
        raise ValueError(
            f"X must be a table of n points by m features, not an array of shape {points.shape}."
        )
    if len(points) < 2 or points.shape[1] < 1:
        raise ValueError(f"X has shape {points.shape}: at least 2 points, 1 feature are needed.")
    bad = np.argwhere(~np.isfinite(points))
    if len(bad):
        row, column = bad[0]
        raise ValueError(
            f"X[{row}, {column}] is {points[row, column]} ({len(bad)} such entries in all): "
            "remove these points or impute the missing values first."
        )
    points.flags.writeable = False
    return points


def _encode_labels(y: ArrayLike, n_points: int) -> tuple[IntArray, IntArray]:
    """The indices of the points of known class, and an integer code for the class of each."""
    labels = np.asarray(y)
    if labels.shape != (n_points,):
        raise ValueError(
            f"y has shape {labels.shape}, but X has {n_points} points: one label each."
        )
    if labels.dtype.kind in "OUST":
        is_known = np.array([not _is_unknown(label) for label in labels], dtype=bool)
    else:
        bad = np.flatnonzero(~np.isfinite(labels))
        if len(bad):
            raise ValueError(f"y[{bad[0]}] is {labels[bad[0]]}: mark an unknown label by -1.")
        is_known = labels != UNKNOWN
    known = np.flatnonzero(is_known)
    try:
        codes = np.unique(labels[known], return_inverse=True)[1]
    except TypeError as error:
        raise TypeError(
            f"The class labels cannot be sorted ({error}): use labels of one type."
        ) from None
    return known, codes.reshape(-1)


def _is_unknown(label: Any) -> bool:
    if label is None or (isinstance(label, float) and np.isnan(label)):
        return True
    return bool(label == UNKNOWN or (isinstance(label, str) and label == str(UNKNOWN)))


def _check_index_pairs(given: ArrayLike, name: str, n_points: int) -> IntArray:
    """The rows of `given` with i < j, sorted, each once."""
    array = np.asarray(given)
    if array.size == 0:
        return np.empty((0, 2), dtype=np.int64)
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
    return np.unique(np.sort(array.astype(np.int64), axis=1), axis=0)
