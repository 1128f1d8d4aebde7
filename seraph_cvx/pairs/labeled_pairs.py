"""The labeled pairs: from classes, from constraints, or from both."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ..numerics.arrays import to_host
from ..numerics.checks import (
    FloatArray,
    IntArray,
    check_index_pairs,
    encode_labels,
    read_only,
    refuse_overflow,
)


@dataclass(frozen=True, eq=False)
class LabeledPairs:
    """The pairs S and D, rows (i, j) with i < j, and the confidence of each (None: 1 for all)."""

    similar: IntArray
    dissimilar: IntArray
    confidence: FloatArray | None = None
    classes: ClassVar[None] = None
    n_similar: int = field(init=False)
    n_labeled: int = field(init=False)

    def __post_init__(self) -> None:
        for given in (self.similar, self.dissimilar, self.confidence):
            if given is not None:
                read_only(given)
        n_similar = len(self.similar)
        vars(self).update(n_similar=n_similar, n_labeled=n_similar + len(self.dissimilar))

    @property
    def unweighted(self) -> LabeledPairs:
        """The same pairs, each with confidence 1."""
        return LabeledPairs(self.similar, self.dissimilar)

    @cached_property
    def listed(self) -> IntArray:
        """The rows of `similar`, then those of `dissimilar`."""
        return read_only(np.vstack([self.similar, self.dissimilar]))

    @cached_property
    def members(self) -> IntArray:
        """The points that have a labeled pair, in increasing order."""
        return read_only(np.unique(self.listed))

    @property
    def similar_links(self) -> IntArray:
        """Pairs that connect the points which similar pairs connect."""
        return self.similar

    @property
    def labeled_links(self) -> IntArray:
        """Pairs that connect the points which labeled pairs connect."""
        return self.listed

    @cached_property
    def is_complete(self) -> bool:
        """Whether all pairs of `members` are labeled, with confidence 1."""
        n = len(self.members)
        return self.confidence is None and 2 * self.n_labeled == n * (n - 1)

    def renumbered(self, number: IntArray) -> LabeledPairs:
        """The same pairs of points that have other numbers; those with -1 are left out."""
        near, far = (np.sort(number[rows], axis=1) for rows in (self.similar, self.dissimilar))
        kept = near[:, 0] >= 0, far[:, 0] >= 0
        c = None if self.confidence is None else self.confidence[np.concatenate(kept)]
        return LabeledPairs(near[kept[0]], far[kept[1]], c)


@dataclass(frozen=True, eq=False)
class ClassLabels:
    """Points of known class (`members`, in increasing order) and the number of each one's class.

    Every pair of them is labeled, and listed only where it is asked for.
    """

    members: IntArray
    classes: IntArray
    confidence: ClassVar[None] = None
    is_complete: ClassVar[bool] = True
    n_similar: int = field(init=False)
    n_labeled: int = field(init=False)

    def __post_init__(self) -> None:
        sizes = np.bincount(read_only(self.classes))
        n, n_similar = len(read_only(self.members)), int(np.sum(sizes * (sizes - 1))) // 2
        vars(self).update(n_similar=n_similar, n_labeled=n * (n - 1) // 2)

    @property
    def unweighted(self) -> ClassLabels:
        """The same pairs: each has confidence 1."""
        return self

    @cached_property
    def similar(self) -> IntArray:
        """Pairs of one class, in lexicographic order."""
        same = np.triu(self.classes[:, None] == self.classes, 1)
        return read_only(self.members[np.argwhere(same)])

    @cached_property
    def dissimilar(self) -> IntArray:
        """Pairs of two classes, in lexicographic order."""
        different = np.triu(self.classes[:, None] != self.classes, 1)
        return read_only(self.members[np.argwhere(different)])

    @property
    def listed(self) -> IntArray:
        """The rows of `similar`, then those of `dissimilar`."""
        return read_only(np.vstack([self.similar, self.dissimilar]))

    @property
    def similar_links(self) -> IntArray:
        """Pairs that connect the points of each class: each with the first of its class."""
        _, first, number = np.unique(self.classes, return_index=True, return_inverse=True)
        links = self.members[np.column_stack([first[number], np.arange(len(number))])]
        return np.asarray(links[links[:, 0] != links[:, 1]])

    @property
    def labeled_links(self) -> IntArray:
        """Pairs that connect all points of known class: each with the first of them."""
        return np.column_stack([np.full_like(self.members, self.members[0]), self.members])

    def renumbered(self, number: IntArray) -> ClassLabels:
        """The same points with other numbers; those with -1 are left out."""
        new = number[self.members]
        order = np.argsort(new)[np.count_nonzero(new < 0) :]
        return ClassLabels(new[order], self.classes[order])


Labels: TypeAlias = LabeledPairs | ClassLabels


def label_pairs(
    points: FloatArray,
    y: ArrayLike | None = None,
    similar: ArrayLike | None = None,
    dissimilar: ArrayLike | None = None,
    similar_confidence: ArrayLike | None = None,
    dissimilar_confidence: ArrayLike | None = None,
) -> Labels:
    """The labeled pairs of checked points, from class labels, from constraints, or from both.

    Each pair is kept once: of constraints with the larger confidence, and with that of the
    constraint where it follows from classes too.
    """
    n, of_classes = len(points), None
    if y is not None:
        known, codes = encode_labels(to_host(y), n)
        of_classes = ClassLabels(known, codes) if len(known) >= 2 else None
    has_confidence = similar_confidence is not None or dissimilar_confidence is not None
    if similar is None and dissimilar is None:
        if has_confidence:
            raise ValueError(
                "A confidence is given, but neither `similar` nor `dissimilar` is: confidences "
                "belong to the rows of these."
            )
        if y is None:
            raise ValueError(
                "No supervision: give class labels y (-1 where unknown), or pairs of point "
                "indices `similar` and `dissimilar`, or both."
            )
        if of_classes is None:
            raise ValueError(
                f"{len(known)} of the {n} labels is known, so no pair is labeled: "
                "give the class of at least two points (-1 marks an unknown one)."
            )
        return of_classes
    near = check_index_pairs(() if similar is None else similar, "similar", n, similar_confidence)
    far = check_index_pairs(
        () if dissimilar is None else dissimilar, "dissimilar", n, dissimilar_confidence
    )
    if len(near[0]) + len(far[0]) == 0:
        raise ValueError(
            "Both `similar` and `dissimilar` are empty: at least one labeled pair is needed."
        )
    if both := _pairs_in_both(near[0], far[0], n):
        raise ValueError(
            f"Pair {both[0]} is both similar and dissimilar{_and_more(both)}: remove it from one "
            "of the two lists."
        )
    if y is not None and of_classes is not None:
        in_two, in_one = of_classes.dissimilar, of_classes.similar
        _refuse_contradiction(near[0], in_two, y, "similar, but their classes differ")
        _refuse_contradiction(far[0], in_one, y, "dissimilar, but their class is the same")
        near, far = _union(*near, of_classes.similar, n), _union(*far, of_classes.dissimilar, n)
    confidence = np.concatenate([near[1], far[1]]) if has_confidence else None
    labels = LabeledPairs(near[0], far[0], confidence)
    if confidence is not None:
        i, j = labels.listed.T
        with np.errstate(over="ignore"):
            squares = np.sum(np.square(points[i] - points[j]), axis=1)
            total = float(np.sum(confidence * np.maximum(1.0, squares)))
        refuse_overflow(total, f"A confidence of up to {np.max(confidence):g}")
    return labels


def _refuse_contradiction(given: IntArray, opposite: IntArray, y: ArrayLike, what: str) -> None:
    """Raise an error where a constraint says the opposite of two class labels."""
    classes = np.asarray(y).tolist()
    if both := _pairs_in_both(given, opposite, len(classes)):
        i, j = both[0]
        raise ValueError(
            f"Points {i} and {j} are given as {what}: y[{i}] = {classes[i]!r}, "
            f"y[{j}] = {classes[j]!r}{_and_more(both)}. Drop the constraint or mark a label as "
            "unknown (-1)."
        )


def _pairs_in_both(first: IntArray, second: IntArray, n: int) -> list[tuple[int, int]]:
    """The pairs that two lists share."""
    return [divmod(k, n) for k in np.intersect1d(first @ [n, 1], second @ [n, 1]).tolist()]


def _and_more(both: list[tuple[int, int]]) -> str:
    """How many more there are than the one that is named."""
    return f", and so are {len(both) - 1} more" if len(both) > 1 else ""


def _union(
    given: IntArray, weights: FloatArray, labeled: IntArray, n: int
) -> tuple[IntArray, FloatArray]:
    """Merge pairs of constraints and of labels, sorted, each once, with their confidences."""
    rows = np.vstack([given, labeled])
    confidence = np.concatenate([weights, np.ones(len(labeled))])
    kept = np.unique(rows @ [n, 1], return_index=True)[1]  # the first: of the constraint
    return rows[kept], confidence[kept]
