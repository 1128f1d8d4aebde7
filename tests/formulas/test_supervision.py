"""Evidence: labels, constraints, pairs of points and confidences become the pairs they mean."""

from __future__ import annotations

import numpy as np
import pytest

from seraph_cvx import SERAPH, PairSERAPH, PairSet
from seraph_cvx.pairs.pair_set import supervise, supervise_pairs

X5 = np.array([[0.0, 1.0], [0.5, 0.0], [3.0, 1.0], [3.5, 2.0], [9.0, 9.0]])


def as_sets(pairs):
    return {tuple(row) for row in pairs.similar}, {tuple(row) for row in pairs.dissimilar}


def confidence_of(pairs):
    return {tuple(row): c for row, c in zip(pairs.labeled, pairs.labeled_weights, strict=True)}


def test_labels_alone_and_constraints_alone_are_the_two_constructors():
    y = [0, 0, 1, -1, -1]
    assert as_sets(supervise(X5, y)) == as_sets(PairSet.from_labels(X5, y))
    alone = supervise(X5, similar=[(1, 0)], dissimilar=[(2, 4)])
    assert as_sets(alone) == ({(0, 1)}, {(2, 4)})
    assert as_sets(supervise(X5, dissimilar=[(2, 4)])) == (set(), {(2, 4)})
    assert alone.confidence is None


def test_labels_and_constraints_together_are_the_union():
    pairs = supervise(
        X5, ["a", "a", "b", None, None], similar=[(2, 3)], dissimilar=[(4, 0), (0, 2)]
    )
    assert as_sets(pairs) == ({(0, 1), (2, 3)}, {(0, 2), (1, 2), (0, 4)})


def test_a_constraint_has_its_confidence_and_a_labeled_pair_one():
    pairs = supervise(
        X5,
        [0, 0, 1, -1, -1],
        similar=[(2, 3), (1, 0)],
        dissimilar=[(4, 0)],
        similar_confidence=[0.5, 0.25],
        dissimilar_confidence=2.0,
    )
    assert confidence_of(pairs) == {
        (0, 1): 0.25,
        (2, 3): 0.5,
        (0, 2): 1.0,
        (1, 2): 1.0,
        (0, 4): 2.0,
    }
    assert "confidence 0.25 to 2" in repr(pairs)


def test_of_a_pair_given_twice_the_larger_confidence_counts():
    pairs = PairSet.from_constraints(X5, [(0, 1), (1, 0)], [], [0.3, 0.7])
    assert confidence_of(pairs) == {(0, 1): 0.7}


def test_constraints_do_with_labels_that_tell_nothing():
    pairs = supervise(X5, [0, -1, -1, -1, -1], similar=[(2, 3)])
    assert as_sets(pairs) == ({(2, 3)}, set())


@pytest.mark.parametrize(
    ("constraints", "words"),
    [
        ({"similar": [(0, 2)]}, r"Points 0 and 2 .* similar, but their classes differ.*y\[0\] = 0"),
        ({"dissimilar": [(1, 0)]}, "Points 0 and 1 .* dissimilar, but their class is the same"),
        ({"similar": [(0, 1)], "dissimilar": [(1, 0)]}, r"Pair \(0, 1\) is both"),
        ({"similar": [(0, 7)]}, "numbered 0 to 4"),
        ({"similar": [(2, 3)], "similar_confidence": [1.0, 2.0]}, r"has shape \(2,\).* 1 rows"),
        ({"similar": [(2, 3)], "similar_confidence": 0.0}, "confidence is > 0"),
        ({"similar": [(2, 3)], "similar_confidence": [np.nan]}, "row 0 is nan"),
        ({"similar_confidence": [1.0]}, "confidences belong to the rows"),
    ],
)
def test_failure_path_contradictions_and_confidences_are_named(constraints, words):
    with pytest.raises(ValueError, match=words):
        supervise(X5, [0, 0, 1, -1, -1], **constraints)


def test_failure_path_no_supervision_at_all():
    with pytest.raises(ValueError, match="No supervision"):
        supervise(X5)


def test_labels_that_look_like_pair_labels_are_warned_of():
    of_one_class = pytest.warns(UserWarning, match="all known points are of one class")
    with of_one_class, pytest.warns(UserWarning, match="looks like the labels of pairs") as caught:
        SERAPH().fit(X5, [1, -1, 1, -1, 1])
    assert {warning.filename for warning in caught} == {__file__}
    SERAPH().fit(X5, [1, -1, 1, 0, 1])  # no warning: warnings are errors here
    SERAPH().fit(X5, [1, -1, 1, -1, 1], dissimilar=[(1, 3)])


def test_pairs_of_points_share_their_points():
    a, b, c, d = X5[:4]
    pairs, _ = supervise_pairs(
        np.array([[a, b], [b, c], [c, a]]), [1, -1, -1], [1.0, 2.0, 3.0], X5[3:4]
    )
    assert pairs.n_points == 4
    assert (len(pairs.similar), len(pairs.dissimilar), pairs.n_unlabeled) == (1, 2, 3)
    lengths = np.linalg.norm(
        pairs.points[pairs.labeled[:, 0]] - pairs.points[pairs.labeled[:, 1]], axis=1
    )
    expected = {1.0: np.linalg.norm(a - b), 2.0: np.linalg.norm(b - c), 3.0: np.linalg.norm(c - a)}
    assert dict(zip(pairs.confidence, lengths, strict=True)) == pytest.approx(expected)
    assert d.tolist() in pairs.points.tolist()


def test_a_pair_of_equal_points_tells_nothing():
    a, b = X5[:2]
    P = np.array([[a, a], [a, b]])
    assert as_sets(supervise_pairs(P, [1, -1])[0])[0] == set()
    with pytest.warns(UserWarning, match="Pair 0 is called dissimilar") as caught:
        PairSERAPH().fit(P, [-1, -1])
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize(
    ("y", "words"), [([1, 0], r"y\[1\] is 0"), ([1], "one label each"), ([1, 2], r"y\[1\] is 2")]
)
def test_failure_path_labels_of_pairs(y, words):
    with pytest.raises(ValueError, match=words):
        supervise_pairs(np.array([[X5[0], X5[1]], [X5[1], X5[2]]]), y)


def test_failure_path_pairs_of_points_that_contradict_each_other_are_named():
    P = np.array([[X5[3], X5[4]], [X5[0], X5[1]], [X5[1], X5[0]]])
    with pytest.raises(ValueError, match="Pairs 1 and 2 hold the same two points"):
        supervise_pairs(P, [1, 1, -1])


def test_failure_path_confidences_of_pairs():
    with pytest.raises(ValueError, match="one number each"):
        supervise_pairs(np.array([[X5[0], X5[1]], [X5[1], X5[2]]]), [1, -1], [1.0, 2.0, 3.0])
