"""Which pairs of points are similar, dissimilar or unlabeled (Section 2.1 of the paper)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..numerics.arrays import Array, is_foreign_array, to_host
from ..numerics.checks import (
    FloatArray,
    IntArray,
    check_number,
    check_points,
    read_only,
    refuse_overflow,
)
from .labeled_pairs import Labels, label_pairs


@dataclass(frozen=True, eq=False, repr=False)
class PairSet:
    """The similar pairs S, the dissimilar pairs D and all other pairs U of n points.

    Build one with :meth:`from_labels` or :meth:`from_constraints`.

    Attributes
    ----------
    points : (n, m) array
        The points x_i, read only.
    labels : LabeledPairs or ClassLabels
        What is known: a list of pairs, or the classes of points.
    similar, dissimilar : (k, 2) integer arrays
        Pairs (i, j) with i < j, in lexicographic order, each once.
    confidence : (n_labeled,) array or None
        c_k > 0 for each row of `labeled`, the factor of its term in (7); None means 1 for all.
    n_points, n_features : int
        n and m.
    n_similar, n_labeled, n_unlabeled : int
        #S, #(S u D) and #U = n(n-1)/2 - #(S u D).
    similar_total, labeled_total : float
        The sums of the confidences, sum_S c_k and sum_{S u D} c_k.
    device_array : array or None
        The array X as given, if it is of a library other than NumPy: the sums over unlabeled
        pairs are computed by that library, on that device. `points` is a copy for NumPy.

    Examples
    --------
    >>> from seraph_cvx import PairSet
    >>> PairSet.from_labels([[0.0], [0.1], [3.0], [3.2]], ["a", "a", "b", None])
    PairSet(4 points in R^1: 1 similar, 2 dissimilar, 3 unlabeled pairs)
    """

    points: FloatArray
    labels: Labels
    device_array: Array | None = None
    confidence: FloatArray | None = field(init=False)
    n_points: int = field(init=False)
    n_features: int = field(init=False)
    n_similar: int = field(init=False)
    n_labeled: int = field(init=False)
    n_unlabeled: int = field(init=False)
    similar_total: float = field(init=False)
    labeled_total: float = field(init=False)

    def __post_init__(self) -> None:
        n, m = self.points.shape
        labels, c = self.labels, self.labels.confidence
        vars(self).update(
            confidence=c,
            n_points=n,
            n_features=m,
            n_similar=labels.n_similar,
            n_labeled=labels.n_labeled,
            n_unlabeled=n * (n - 1) // 2 - labels.n_labeled,
            similar_total=float(labels.n_similar if c is None else np.sum(c[: labels.n_similar])),
            labeled_total=float(labels.n_labeled if c is None else np.sum(c)),
        )

    @classmethod
    def from_labels(cls, X: ArrayLike, y: ArrayLike) -> PairSet:
        """Make pairs from class labels: similar if the classes are equal, else dissimilar.

        Parameters
        ----------
        X : (n, m) array_like
            The points.
        y : (n,) array_like
            Class labels of any sortable type. -1 and NaN are unknown labels; so are None and "-1"
            among strings and objects.

        Examples
        --------
        >>> PairSet.from_labels([[0.0], [1.0], [5.0]], [0, 0, -1]).unlabeled
        array([[0, 2],
               [1, 2]])
        """
        return supervise(X, y)

    @classmethod
    def from_constraints(
        cls,
        X: ArrayLike,
        similar: ArrayLike,
        dissimilar: ArrayLike,
        similar_confidence: ArrayLike | None = None,
        dissimilar_confidence: ArrayLike | None = None,
    ) -> PairSet:
        """Make pairs from given similar and dissimilar ones; all others are unlabeled.

        Parameters
        ----------
        X : (n, m) array_like
            The points.
        similar, dissimilar : (k, 2) array_like of int
            Rows (i, j) of point indices, in any order; a pair given twice counts once.
        similar_confidence, dissimilar_confidence : float or (k,) array_like, optional
            c_k > 0 of each row, 1 by default; of a pair given twice, the larger one.

        Examples
        --------
        >>> PairSet.from_constraints([[0.0], [1.0], [5.0]], similar=[(1, 0)], dissimilar=[(2, 0)])
        PairSet(3 points in R^1: 1 similar, 1 dissimilar, 1 unlabeled pairs)
        """
        return supervise(X, None, similar, dissimilar, similar_confidence, dissimilar_confidence)

    @property
    def similar(self) -> IntArray:
        """The pairs of S; those of class labels are listed when first asked for."""
        return self.labels.similar

    @property
    def dissimilar(self) -> IntArray:
        """The pairs of D; those of class labels are listed when first asked for."""
        return self.labels.dissimilar

    @cached_property
    def feature_ranges(self) -> FloatArray:
        """The range of each feature: its largest minus its smallest value."""
        return read_only(np.ptp(self.points, axis=0))

    @property
    def labeled_weights(self) -> FloatArray:
        """The confidence c_k of each row of `labeled`."""
        return np.ones(self.n_labeled) if self.confidence is None else self.confidence

    @cached_property
    def labeled(self) -> IntArray:
        """The rows of `similar`, then those of `dissimilar`."""
        return self.labels.listed

    @cached_property
    def unlabeled(self) -> IntArray:
        """The rows of U in lexicographic order; made when first asked for (O(n^2) memory)."""
        is_unlabeled = np.triu(np.ones((self.n_points, self.n_points), dtype=bool), 1)
        is_unlabeled[tuple(self.labeled.T)] = False
        return read_only(np.argwhere(is_unlabeled))

    def resolve_unlabeled_weight(self, unlabeled_weight: float | str) -> float:
        """The weight mu as a number: "ratio" is #(S u D) / #U, the paper's choice; 0 if U is empty.

        It counts pairs, whatever their confidence.
        """
        if isinstance(unlabeled_weight, str):
            if unlabeled_weight != "ratio":
                raise ValueError(
                    f"unlabeled_weight={unlabeled_weight!r} is not known: "
                    'give a number >= 0 or "ratio".'
                )
            return self.n_labeled / self.n_unlabeled if self.n_unlabeled else 0.0
        weight = check_number(unlabeled_weight, "unlabeled_weight", minimum=0.0)
        if weight > 1.0:
            most = max(1.0, float(np.sum(np.square(self.feature_ranges))))  # of squared distances
            refuse_overflow(weight * self.n_unlabeled * most, f"unlabeled_weight={weight:g}")
        return weight if self.n_unlabeled else 0.0

    def __repr__(self) -> str:
        return (
            f"PairSet({self.n_points} points in R^{self.n_features}: {self.n_similar} similar, "
            f"{self.n_labeled - self.n_similar} dissimilar, "
            f"{self.n_unlabeled} unlabeled pairs"
            + (
                f"; confidence {self.confidence.min():g} to {self.confidence.max():g})"
                if self.confidence is not None
                else ")"
            )
        )


def supervise(
    X: ArrayLike,
    y: ArrayLike | None = None,
    similar: ArrayLike | None = None,
    dissimilar: ArrayLike | None = None,
    similar_confidence: ArrayLike | None = None,
    dissimilar_confidence: ArrayLike | None = None,
) -> PairSet:
    """Make pairs from class labels, from constraints, or from both."""
    points = check_points(to_host(X))
    labels = label_pairs(points, y, similar, dissimilar, similar_confidence, dissimilar_confidence)
    return PairSet(points, labels, X if is_foreign_array(X) else None)


def supervise_pairs(
    P: FloatArray, y: ArrayLike, confidence: ArrayLike | None = None, more: FloatArray | None = None
) -> tuple[PairSet, str]:
    """Make pairs from a (k, 2, m) array of pairs of points, similar (+1) or dissimilar (-1).

    A point of several pairs, or of `more`, is one point. A pair of two equal points is left out, as
    v = 0 says nothing about any metric; the sentence tells of those called dissimilar, if any.
    """
    labels, k = np.asarray(y), len(P)
    if labels.shape != (k,):
        raise ValueError(f"y has shape {labels.shape}, but there are {k} pairs: one label each.")
    if np.any(invalid := ~np.isin(labels, (-1, 1))):
        first = int(np.argmax(invalid))
        raise ValueError(
            f"y[{first}] is {labels[first]}: a pair is similar (+1) or dissimilar (-1)."
        )
    c = np.asarray(1.0 if confidence is None else confidence)
    if c.shape not in ((), (k,)):
        raise ValueError(
            f"confidence has shape {c.shape}, but there are {k} pairs: one number each."
        )
    everything = [P.reshape(2 * k, -1), *([] if more is None else [more])]
    points, where = np.unique(np.vstack(everything), axis=0, return_inverse=True)
    rows = np.sort(where.reshape(-1)[: 2 * k].reshape(k, 2), axis=1)
    differs = rows[:, 0] != rows[:, 1]
    near, far = differs & (labels == 1), differs & (labels == -1)
    codes = rows @ [len(points), 1]
    if len(both := np.intersect1d(codes[near], codes[far])):
        first, second = (np.flatnonzero(kind & (codes == both[0]))[0] for kind in (near, far))
        raise ValueError(
            f"Pairs {first} and {second} hold the same two points, but one is called similar (+1) "
            "and the other dissimilar (-1)"
            + (f", and so do {len(both) - 1} more" if len(both) > 1 else "")
            + ": remove one of the two."
        )
    weights: list[Any] = [None, None]
    if confidence is not None:
        weights = [np.broadcast_to(c, k)[kind] for kind in (near, far)]
    pairs = PairSet.from_constraints(points, rows[near], rows[far], *weights)
    void = np.flatnonzero(~differs & (labels == -1))
    if not len(void):
        return pairs, ""
    return pairs, (
        f"Pair {void[0]} is called dissimilar, but its two points are equal ({len(void)} such "
        "in all): no metric can tell them apart, so it is left out."
    )
