"""The labeled pairs: from classes, from constraints, or from both."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..numerics.arrays import to_host
from ..numerics.checks import FloatArray, IntArray, check_index_pairs, encode_labels, is_known


class LabeledPairs(NamedTuple):
    """The pairs S and D, rows (i, j) with i < j, and the confidence of each (None: 1 for all)."""

    similar: IntArray
    dissimilar: IntArray
    confidence: FloatArray | None = None

    @property
    def weights(self) -> tuple[FloatArray, FloatArray]:
        """The confidences of S and of D."""
        n_similar, n = len(self.similar), len(self.similar) + len(self.dissimilar)
        c = np.ones(n) if self.confidence is None else self.confidence
        return c[:n_similar], c[n_similar:]


def pairs_of_labels(y: ArrayLike, n_points: int) -> LabeledPairs:
    """Pair the points of known class: similar if the classes are equal, else dissimilar.

    Examples
    --------
    >>> pairs_of_labels([0, 0, -1, 1], 4).similar
    array([[0, 1]])
    """
    known, codes = encode_labels(to_host(y), n_points)
    if len(known) < 2:
        raise ValueError(
            f"{len(known)} of the {n_points} labels is known, so no pair is labeled: "
            "give the class of at least two points (-1 marks an unknown one)."
        )
    first, second = np.triu_indices(len(known), 1)
    candidates = np.column_stack([known[first], known[second]])
    same = codes[first] == codes[second]
    return LabeledPairs(candidates[same], candidates[~same])


def pairs_of_constraints(
    similar: ArrayLike,
    dissimilar: ArrayLike,
    similar_confidence: ArrayLike | None,
    dissimilar_confidence: ArrayLike | None,
    n_points: int,
) -> LabeledPairs:
    """Check constraints, and keep each pair once, with the larger confidence if given twice."""
    near, near_weights = check_index_pairs(similar, "similar", n_points, similar_confidence)
    far, far_weights = check_index_pairs(dissimilar, "dissimilar", n_points, dissimilar_confidence)
    if len(near) + len(far) == 0:
        raise ValueError(
            "Both `similar` and `dissimilar` are empty: at least one labeled pair is needed."
        )
    both = np.intersect1d(near @ [n_points, 1], far @ [n_points, 1])
    if len(both):
        i, j = divmod(int(both[0]), n_points)
        raise ValueError(
            f"Pair ({i}, {j}) is both similar and dissimilar"
            + (f", and so are {len(both) - 1} more" if len(both) > 1 else "")
            + ": remove it from one of the two lists."
        )
    if similar_confidence is None and dissimilar_confidence is None:
        return LabeledPairs(near, far)
    return LabeledPairs(near, far, np.concatenate([near_weights, far_weights]))


def join_labels(constraints: LabeledPairs, y: ArrayLike, n_points: int) -> LabeledPairs:
    """Add the pairs of class labels to constraints, which keep their confidences."""
    if np.count_nonzero(is_known(np.asarray(y))) < 2:
        return constraints
    labels = pairs_of_labels(y, n_points)
    _refuse_contradictions(constraints, labels, np.asarray(y).tolist(), n_points)
    near_weights, far_weights = constraints.weights
    near = _union(constraints.similar, near_weights, labels.similar, n_points)
    far = _union(constraints.dissimilar, far_weights, labels.dissimilar, n_points)
    confidence = np.concatenate([near[1], far[1]])
    return LabeledPairs(near[0], far[0], None if constraints.confidence is None else confidence)


def _refuse_contradictions(
    constraints: LabeledPairs, labels: LabeledPairs, classes: list[object], n: int
) -> None:
    for said, otherwise, word in [
        (constraints.similar, labels.dissimilar, "similar, but their classes differ"),
        (constraints.dissimilar, labels.similar, "dissimilar, but their class is the same"),
    ]:
        both = np.intersect1d(said @ [n, 1], otherwise @ [n, 1])
        if len(both):
            i, j = divmod(int(both[0]), n)
            raise ValueError(
                f"Points {i} and {j} are said to be {word}: y[{i}] = {classes[i]!r}, "
                f"y[{j}] = {classes[j]!r}"
                + (f" (and {len(both) - 1} more such pairs)" if len(both) > 1 else "")
                + ". Drop the constraint or mark a label as unknown (-1)."
            )


def _union(
    said: IntArray, weights: FloatArray, labeled: IntArray, n: int
) -> tuple[IntArray, FloatArray]:
    """Merge pairs of constraints and of labels, sorted, each once, with their confidences."""
    rows = np.vstack([said, labeled])
    confidence = np.concatenate([weights, np.ones(len(labeled))])
    kept = np.unique(rows @ [n, 1], return_index=True)[1]  # the first: what was said
    return rows[kept], confidence[kept]
