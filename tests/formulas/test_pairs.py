"""Evidence: the sets S, D and U, by properties (Hypothesis) and by every failure path."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from instances import random_pairs

from seraph_cvx import MStepObjective, PairSet, e_step

X5 = np.arange(10.0).reshape(5, 2)


def rows(array):
    return [tuple(row) for row in array.tolist()]


def all_pairs(n):
    return [(i, j) for i in range(n) for j in range(i + 1, n)]


@given(
    labels=st.lists(st.integers(-1, 3), min_size=2, max_size=14).filter(
        lambda y: sum(label != -1 for label in y) >= 2
    )
)
def test_property_labels_split_all_pairs_into_S_D_U(labels):
    n = len(labels)
    pairs = PairSet.from_labels(np.zeros((n, 1)) + np.arange(n)[:, None], labels)
    S, D, U = rows(pairs.similar), rows(pairs.dissimilar), rows(pairs.unlabeled)
    assert sorted(S + D + U) == all_pairs(n)
    for part in (S, D, U):
        assert part == sorted(part)
    for i, j in all_pairs(n):
        if -1 in (labels[i], labels[j]):
            assert (i, j) in U
        else:
            assert (i, j) in (S if labels[i] == labels[j] else D)
    assert (pairs.n_labeled, pairs.n_unlabeled) == (len(S) + len(D), len(U))
    assert rows(pairs.labeled) == S + D


@st.composite
def constraints(draw):
    n = draw(st.integers(2, 9))
    given_pairs = draw(st.lists(st.sampled_from(all_pairs(n)), min_size=1, unique=True))
    cut = draw(st.integers(0, len(given_pairs)))

    def shuffled(part):  # either order of i and j, some rows twice
        turned = [(j, i) if draw(st.booleans()) else (i, j) for i, j in part]
        return turned + (turned[:1] if draw(st.booleans()) else [])

    return n, shuffled(given_pairs[:cut]), shuffled(given_pairs[cut:])


@given(case=constraints())
def test_property_constraints_split_all_pairs_into_S_D_U(case):
    n, similar, dissimilar = case
    pairs = PairSet.from_constraints(np.arange(n)[:, None], similar, dissimilar)
    S, D, U = rows(pairs.similar), rows(pairs.dissimilar), rows(pairs.unlabeled)
    assert sorted(S + D + U) == all_pairs(n)
    assert sorted({tuple(sorted(pair)) for pair in similar}) == S
    assert sorted({tuple(sorted(pair)) for pair in dissimilar}) == D
    assert sorted(U) == U
    ratio = pairs.resolve_unlabeled_weight("ratio")
    assert ratio == (pairs.n_labeled / pairs.n_unlabeled if U else 0.0)


def test_duplicates_count_once_in_either_order():
    pairs = PairSet.from_constraints(X5, [(1, 0), (0, 1), (1, 0)], [(4, 3)])
    assert rows(pairs.similar) == [(0, 1)]
    assert rows(pairs.dissimilar) == [(3, 4)]


@pytest.mark.parametrize("empty", [[], np.empty((0, 2)), np.empty((0, 2), dtype=int), ()])
def test_one_of_the_two_lists_may_be_empty(empty):
    assert len(PairSet.from_constraints(X5, [(0, 1)], empty).dissimilar) == 0
    assert len(PairSet.from_constraints(X5, empty, [(0, 1)]).similar) == 0


@pytest.mark.parametrize(
    "labels",
    [
        ["a", "a", "b", None, None],
        np.array(["a", "a", "b", None, None], dtype=object),
        ["a", "a", "b", "-1", "-1"],
        np.array(["a", "a", "b", np.nan, None], dtype=object),
        [7, 7, 9, -1, -1],
        [7.0, 7.0, 9.0, -1.0, -1.0],
        np.array(["a", "a", "b", -1, None], dtype=object),
    ],
)
def test_labels_of_any_type_and_every_mark_of_an_unknown_one(labels):
    pairs = PairSet.from_labels(X5, labels)
    assert rows(pairs.similar) == [(0, 1)]
    assert rows(pairs.dissimilar) == [(0, 2), (1, 2)]
    assert rows(pairs.unlabeled) == [(0, 3), (0, 4), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4)]


def test_boolean_labels_are_two_classes():
    pairs = PairSet.from_labels(X5, [True, True, False, False, True])
    assert len(pairs.similar) == 4
    assert pairs.n_unlabeled == 0


def test_input_is_copied_and_never_modified():
    X = np.arange(10.0).reshape(5, 2)
    y = np.array([0, 1, 0, -1, -1])
    similar, dissimilar = np.array([(1, 0)]), np.array([(4, 2)])
    before = [array.copy() for array in (X, y, similar, dissimilar)]
    for pairs in (
        PairSet.from_labels(X, y),
        PairSet.from_constraints(X, similar, dissimilar),
    ):
        q = np.full(pairs.n_unlabeled, 0.25)
        metric = np.eye(2)
        MStepObjective(pairs, soft_labels=q).value_and_gradient(metric)
        MStepObjective(pairs, previous_metric=metric).value_and_gradient(metric)
        e_step(pairs, metric)
        assert np.array_equal(q, np.full(pairs.n_unlabeled, 0.25))
        assert np.array_equal(metric, np.eye(2))
        assert not np.shares_memory(pairs.points, X)
        with pytest.raises(ValueError, match="read-only"):
            pairs.points[0, 0] = 1.0
    for array, copy in zip((X, y, similar, dissimilar), before, strict=True):
        assert np.array_equal(array, copy)
    X[:] = 0.0
    assert np.array_equal(pairs.points, before[0])


@pytest.mark.parametrize(
    ("similar", "dissimilar", "error", "message"),
    [
        ([(0, 1), (2, 2)], [], ValueError, r"`similar` row 1 pairs point 2 with itself"),
        ([], [(3, 3)], ValueError, r"`dissimilar` row 0 pairs point 3 with itself"),
        ([(0, 5)], [], ValueError, r"`similar` row 0 is \(0, 5\).*numbered 0 to 4"),
        ([(0, 1)], [(-1, 2)], ValueError, r"`dissimilar` row 0 is \(-1, 2\)"),
        ([(0, 1), (1, 2)], [(2, 1)], ValueError, r"Pair \(1, 2\) is both similar and dissimilar"),
        ([(0, 1), (1, 2)], [(2, 1), (1, 0)], ValueError, r"\(0, 1\).*and so are 1 more"),
        ([], [], ValueError, "at least one labeled pair"),
        ([(0, 1, 2)], [], ValueError, r"`similar` must have two columns.*\(1, 3\)"),
        ([0, 1], [], ValueError, r"`similar` must have two columns"),
        ([(0.5, 1.0)], [], TypeError, "`similar` must hold integer point indices"),
        ([], [("a", "b")], TypeError, "`dissimilar` must hold integer point indices"),
    ],
)
def test_failure_path_constraints(similar, dissimilar, error, message):
    with pytest.raises(error, match=message):
        PairSet.from_constraints(X5, similar, dissimilar)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[0.0], [np.nan]], r"X\[1, 0\] is nan"),
        ([[0.0, np.inf], [np.nan, 1.0]], r"X\[0, 1\] is inf \(2 such entries"),
        ([[1.0]], "at least 2 points"),
        (np.empty((3, 0)), "1 feature"),
        ([0.0, 1.0], r"shape \(2,\)"),
        (np.zeros((2, 2, 2)), r"shape \(2, 2, 2\)"),
    ],
)
def test_failure_path_points(X, message):
    with pytest.raises(ValueError, match=message):
        PairSet.from_constraints(X, [(0, 1)], [])
    with pytest.raises(ValueError, match=message):
        PairSet.from_labels(X, [0] * len(X))


@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        ([0, 0, 1], ValueError, r"y has shape \(3,\), but X has 5 points"),
        ([[0], [0], [1], [1], [1]], ValueError, r"y has shape \(5, 1\)"),
        ([0, -1, -1, -1, -1], ValueError, "1 of the 5 labels is known"),
        ([None] * 5, ValueError, "0 of the 5 labels"),
        ([0.0, 1.0, np.inf, 0.0, 1.0], ValueError, r"y\[2\] is inf: mark an unknown label by -1"),
        (np.array(["a", 1, "b", 2, None], dtype=object), TypeError, "cannot be sorted"),
    ],
)
def test_failure_path_labels(labels, error, message):
    with pytest.raises(error, match=message):
        PairSet.from_labels(X5, labels)


@pytest.mark.parametrize(
    ("weight", "error"),
    [("ration", ValueError), (-0.1, ValueError), (np.nan, ValueError), (None, TypeError)],
)
def test_failure_path_unlabeled_weight(weight, error):
    with pytest.raises(error, match="unlabeled_weight"):
        random_pairs(0).resolve_unlabeled_weight(weight)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"trace_weight": -1.0}, "trace_weight=-1 is out of range"),
        ({"threshold": 0.0}, "threshold=0 is out of range: it must be > 0"),
        ({"sharpness": 0.0}, "sharpness"),
        ({"soft_labels": [0.5]}, r"soft_labels has shape \(1,\)"),
        ({"soft_labels": np.full(178, 1.5)}, r"soft_labels\[0\] is 1.5"),
        ({"soft_labels": np.full(178, np.nan)}, r"soft_labels\[0\] is nan"),
        ({"soft_labels": np.zeros(178), "previous_metric": np.eye(4)}, "not both"),
        ({"previous_metric": -np.eye(4)}, "previous_metric is not positive semidefinite"),
        ({"previous_metric": np.eye(3)}, "previous_metric has shape"),
    ],
)
def test_failure_path_m_step_objective(arguments, message):
    with pytest.raises(ValueError, match=message):
        MStepObjective(random_pairs(0), **arguments)


def test_failure_path_metric_of_another_size():
    objective = MStepObjective(random_pairs(0))
    with pytest.raises(ValueError, match="4 features"):
        objective.value(np.eye(3))


def test_no_unlabeled_pair_leaves_no_unlabeled_weight():
    pairs = PairSet.from_labels(X5, [0, 0, 1, 1, 0])
    assert pairs.resolve_unlabeled_weight("ratio") == 0.0
    assert pairs.resolve_unlabeled_weight(3.0) == 0.0
    assert pairs.unlabeled.shape == (0, 2)
    assert e_step(pairs, np.eye(2)).shape == (0,)


def test_representation_counts_the_pairs():
    text = repr(PairSet.from_constraints(X5, [(0, 1)], [(1, 2), (0, 2)]))
    assert text == "PairSet(5 points in R^2: 1 similar, 2 dissimilar, 7 unlabeled pairs)"


def test_the_ends_of_labeled_pairs_are_counted_among_the_labeled_points():
    X = np.arange(12.0)[:, None]
    classes = PairSet.from_labels(X, [-1, 0, 0, 1, -1, 1, 0, -1, -1, 2, -1, -1]).labels
    listed = PairSet.from_constraints(X, [(3, 7), (1, 7)], [(11, 3)]).labels
    for labels in (classes, listed):
        np.testing.assert_array_equal(labels.members[labels.ends], labels.listed)
