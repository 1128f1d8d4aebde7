"""Evidence: labels, constraints and pairs of points become the sets S, D and U they mean."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from instances import random_pairs

from seraph_cvx import MStepObjective, PairSERAPH, PairSet, e_step
from seraph_cvx.pairs.pair_set import supervise, supervise_pairs

X5 = np.arange(10.0).reshape(5, 2)


def rows(array):
    return [tuple(row) for row in array.tolist()]


def all_pairs(n):
    return [*combinations(range(n), 2)]


def assert_split(pairs, S, D):
    """These are similar and dissimilar, and all others unlabeled."""
    U = [pair for pair in all_pairs(pairs.n_points) if pair not in {*S, *D}]
    assert [rows(part) for part in (pairs.similar, pairs.dissimilar, pairs.unlabeled)] == [S, D, U]
    assert rows(pairs.labeled) == S + D
    assert (pairs.n_labeled, pairs.n_unlabeled) == (len(S) + len(D), len(U))
    assert pairs.resolve_unlabeled_weight("ratio") == (pairs.n_labeled / len(U) if U else 0.0)


@given(
    labels=st.lists(st.integers(-1, 3), min_size=2, max_size=14).filter(
        lambda y: sum(label != -1 for label in y) >= 2
    )
)
def test_property_labels_split_all_pairs_into_S_D_U(labels):
    known = [(i, j) for i, j in all_pairs(len(labels)) if -1 not in (labels[i], labels[j])]
    S = [(i, j) for i, j in known if labels[i] == labels[j]]
    D = [(i, j) for i, j in known if labels[i] != labels[j]]
    assert_split(PairSet.from_labels(np.arange(len(labels))[:, None], labels), S, D)


@given(
    n=st.integers(2, 9),
    kinds=st.lists(st.sampled_from(["S", "D", "S twice", "D turned", ""])),
)
def test_property_constraints_split_all_pairs_into_S_D_U(n, kinds):
    """In either order of i and j, and some of them twice."""
    S, D, given = [], [(0, 1)], {"S": [], "D": [(1, 0)]}
    for (i, j), kind in zip(all_pairs(n)[1:], kinds, strict=False):
        if kind:
            (S if kind[0] == "S" else D).append((i, j))
            given[kind[0]] += [(j, i)] if "turned" in kind else [(i, j)]
            given[kind[0]] += [(j, i)] if "twice" in kind else []
    assert_split(PairSet.from_constraints(np.arange(n)[:, None], given["S"], given["D"]), S, D)


def test_without_unlabeled_pairs_there_is_no_unlabeled_weight():
    pairs = PairSet.from_labels(X5, [True, True, False, False, True])  # two classes
    assert pairs.n_similar == 4
    assert pairs.resolve_unlabeled_weight(3.0) == 0.0
    assert pairs.unlabeled.shape == (0, 2)
    assert e_step(pairs, np.eye(2)).shape == (0,)


OF_TWO_CLASSES = [0, 0, 1, -1, -1]
REFUSED = [
    ({"similar": [(0, 1), (2, 2)]}, "`similar` row 1 pairs point 2 with itself"),
    ({"similar": [(0, 5)]}, r"`similar` row 0 is \(0, 5\).*numbered 0 to 4"),
    (
        {"similar": [(0, 1), (1, 2)], "dissimilar": [(2, 1), (1, 0)]},
        r"Pair \(0, 1\) is both similar and dissimilar, and so are 1 more",
    ),
    ({"similar": [], "dissimilar": []}, "at least one labeled pair"),
    ({"similar": [(0, 1, 2)]}, r"`similar` must have two columns.*\(1, 3\)"),
    ({"dissimilar": [("a", "b")]}, "`dissimilar` must hold integer point indices"),
    ({"similar": [(2, 3)], "similar_confidence": [1.0, 2.0]}, r"has shape \(2,\).* 1 rows"),
    ({"similar": [(2, 3)], "similar_confidence": 0.0}, "confidence is > 0"),
    ({"similar_confidence": [1.0]}, "confidences belong to the rows"),
    ({}, "No supervision"),
    ({"y": [0, 0, 1]}, r"y has shape \(3,\), but X has 5 points"),
    ({"y": [0, -1, -1, -1, -1]}, "1 of the 5 labels is known"),
    ({"y": [0.0, 1.0, np.inf, 0.0, 1.0]}, r"y\[2\] is inf: mark an unknown label by -1"),
    ({"y": np.array(["a", 1, "b", 2, None], dtype=object)}, "cannot be sorted"),
    (
        {"y": OF_TWO_CLASSES, "similar": [(0, 2)]},
        r"Points 0 and 2 .* similar, but their classes differ.*y\[0\] = 0",
    ),
    (
        {"y": OF_TWO_CLASSES, "dissimilar": [(1, 0)]},
        "Points 0 and 1 .* dissimilar, but their class is the same",
    ),
    ({"X": [[0.0], [np.nan]]}, r"X\[1, 0\] is nan"),
    ({"X": [[1.0]]}, "at least 2 points"),
    ({"X": [0.0, 1.0]}, r"shape \(2,\)"),
]


@pytest.mark.parametrize(("given", "message"), REFUSED)
def test_failure_path_points_labels_and_constraints(given, message):
    with pytest.raises((ValueError, TypeError), match=message):
        supervise(**{"X": X5} | given)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"trace_weight": -0.5}, "trace_weight=-0.5 is out of range"),
        ({"threshold": 0.0}, "threshold=0 is out of range: it must be > 0"),
        ({"soft_labels": [0.5]}, r"soft_labels has shape \(1,\)"),
        ({"soft_labels": np.full(178, 1.5)}, r"soft_labels\[0\] is 1.5"),
        ({"soft_labels": np.zeros(178), "previous_metric": np.eye(4)}, "not both"),
        ({"previous_metric": -np.eye(4)}, "previous_metric is not positive semidefinite"),
        ({"previous_metric": np.eye(3)}, "previous_metric has shape"),
        ({"unlabeled_weight": "ration"}, "unlabeled_weight='ration' is not known"),
    ],
)
def test_failure_path_m_step_objective(arguments, message):
    with pytest.raises(ValueError, match=message):
        MStepObjective(random_pairs(0), **arguments)


# Labels, constraints, pairs of points and confidences


POINTS = np.array([[0.0, 1.0], [0.5, 0.0], [3.0, 1.0], [3.5, 2.0], [9.0, 9.0]])


@pytest.mark.parametrize(
    ("given", "S", "D"),
    [
        ({"y": [0, 0, 1, -1, -1]}, [(0, 1)], [(0, 2), (1, 2)]),
        ({"similar": [(1, 0)], "dissimilar": [(2, 4)]}, [(0, 1)], [(2, 4)]),
        ({"similar": [(0, 1)], "dissimilar": np.empty((0, 2))}, [(0, 1)], []),
        ({"similar": (), "dissimilar": [(0, 1)]}, [], [(0, 1)]),
        ({"y": [0, -1, -1, -1, -1], "similar": [(2, 3)]}, [(2, 3)], []),
        (
            {"y": ["a", "a", "b", None, None], "similar": [(2, 3)], "dissimilar": [(4, 0), (0, 2)]},
            [(0, 1), (2, 3)],
            [(0, 2), (0, 4), (1, 2)],
        ),
    ],
)
def test_labels_and_constraints_together_are_the_union(given, S, D):
    pairs = supervise(POINTS, **given)
    assert_split(pairs, S, D)
    assert pairs.confidence is None


def test_a_constraint_has_its_confidence_and_a_labeled_pair_one():
    pairs = supervise(
        POINTS,
        [0, 0, 1, -1, -1],
        similar=[(2, 3), (1, 0), (0, 1)],
        dissimilar=[(4, 0)],
        similar_confidence=[0.5, 0.2, 0.25],  # of a pair given twice the larger one
        dissimilar_confidence=2.0,
    )
    assert rows(pairs.labeled) == [(0, 1), (2, 3), (0, 2), (0, 4), (1, 2)]
    assert pairs.labeled_weights.tolist() == [0.25, 0.5, 1.0, 2.0, 1.0]
    assert "confidence 0.25 to 2" in repr(pairs)


def test_pairs_of_points_share_their_points():
    P = POINTS[[[0, 1], [2, 1], [2, 0]]]
    pairs, _ = supervise_pairs(P, [1, -1, -1], [1.0, 2.0, 3.0], POINTS[3:4])
    order = np.lexsort(POINTS[:4].T[::-1])
    np.testing.assert_array_equal(pairs.points, POINTS[order])
    assert rows(np.sort(order[pairs.labeled], axis=1)) == [(0, 1), (0, 2), (1, 2)]
    assert pairs.confidence.tolist() == [1.0, 3.0, 2.0]
    assert (pairs.n_similar, pairs.n_unlabeled) == (1, 3)


def test_a_pair_of_equal_points_tells_nothing():
    a, b = POINTS[:2]
    P = np.array([[a, a], [a, b]])
    assert supervise_pairs(P, [1, -1])[0].n_similar == 0
    with pytest.warns(UserWarning, match="Pair 0 is called dissimilar") as caught:
        PairSERAPH().fit(P, [-1, -1])
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize(
    ("y", "confidence", "words"),
    [
        ([1, 0, 1], None, r"y\[1\] is 0"),
        ([1], None, "one label each"),
        ([1, 1, -1], None, "Pairs 1 and 2 hold the same two points"),
        ([1, -1, -1], [1.0, 2.0], "one number each"),
    ],
)
def test_failure_path_pairs_of_points(y, confidence, words):
    P = POINTS[[[3, 4], [0, 1], [1, 0]]]
    with pytest.raises(ValueError, match=words):
        supervise_pairs(P, y, confidence)
