"""Evidence: the reference and the shape of the trace, by closed forms and on data they are for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from rivals import ITML
from sklearn.neighbors import KNeighborsClassifier

from seraph_cvx import SERAPH, MStepObjective, PairSet, certify
from seraph_cvx.estimators.evidence import (
    doubt_about_labels,
    independent_similar,
    within_metric,
)
from seraph_cvx.estimators.settings import (
    RECOMMENDED,
    auto_trace_share,
    critical_weight,
    mean_squared_correlation,
    trace_shape,
)
from seraph_cvx.paper import posterior


def crabs_like(seed: int = 0, n: int = 200) -> tuple[np.ndarray, np.ndarray]:
    """Four classes, two species of two sexes, of which five lengths all follow the size."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(4), n // 4)
    species, sex = np.divmod(y, 2)
    size = 30.0 * np.exp(rng.normal(0.0, 0.3, n))
    of_species = np.outer(species - 0.5, [0.05, -0.03, -0.03, -0.03, 0.06])
    of_sex = np.outer(sex - 0.5, [0.0, -0.08, 0.02, 0.02, 0.0])
    X = np.outer(size, [0.50, 0.42, 1.0, 1.12, 0.46]) * (1.0 + of_species + of_sex)
    X *= 1.0 + rng.normal(0.0, 0.022, X.shape)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def half_labeled(X, y, n_each, seed):
    """A draw of 100 points, so many of each class labeled; the truth beside it."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    known = np.concatenate([order[y[order] == c][:n_each] for c in np.unique(y)])
    rest = np.setdiff1d(order, known)
    rows = np.concatenate([known, rng.permutation(rest)[: 100 - len(known)]])
    shown = np.where(np.arange(100) < len(known), y[rows], -1)
    return X[rows], shown, y[rows]


def test_correlated_features_are_told_apart_as_well_as_by_itml():
    """By the nearest labeled point of each unlabeled one."""
    X, y = crabs_like()
    assert np.min(np.corrcoef(X.T)) >= 0.95
    draws = [half_labeled(X, y, n, seed) for seed in (0, 1) for n in (2, 5)]

    def mean_score(model):
        scores = []
        for points, shown, truth in draws:
            Z, known = model.fit(points, shown).transform(points), shown >= 0
            nearest = KNeighborsClassifier(1).fit(Z[known], truth[known])
            scores.append(nearest.score(Z[~known], truth[~known]))
        return np.mean(scores)

    error = 1.0 - mean_score(SERAPH())
    assert error <= 1.1 * (1.0 - mean_score(ITML()))
    assert error <= 0.5 * (1.0 - mean_score(SERAPH(correlation_weight=0.0, reference="identity")))


def test_closed_form_the_correlation_of_standardized_features():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3)) @ rng.normal(size=(3, 3))
    expected = np.mean(np.corrcoef(X.T)[np.triu_indices(3, 1)] ** 2)
    assert mean_squared_correlation(X) == pytest.approx(expected)
    with_constant = np.column_stack([X * [1e-150, 1.0, 1e150], np.ones(50)])
    assert mean_squared_correlation(with_constant) == pytest.approx(expected)
    for points, weight in (
        (X, max(0.0, 3.0 * expected - 2.0)),
        (np.outer(X[:, 0], [1.0, 2.0]), 0.95),
    ):
        found, by_number = trace_shape(points, "auto"), trace_shape(points, weight)
        assert (found is None) == (weight == 0.0)
        assert found is None or found == pytest.approx(by_number)


def test_the_m_step_with_a_shape_is_certified_for_that_penalty():
    X, y = crabs_like()
    X, shown, _ = half_labeled(X, y, 3, 0)
    model = SERAPH(m_step_tol=1e-7).fit(X, shown)
    assert model.certificate_.relative_gap <= 1e-7
    pairs = PairSet.from_labels(X, shown)
    W = trace_shape(X, "auto")
    assert np.trace(W) == pytest.approx(5.0)
    labeled = MStepObjective(pairs, unlabeled_weight=0.0, trace_weight=0.0)
    weight = critical_weight(labeled, W)
    first = RECOMMENDED.first_m_step(pairs)
    assert first.regularizer == pytest.approx(0.02 * weight * W)
    for factor, is_zero in ((0.99, False), (1.01, True)):
        at_weight = replace(labeled, manifold_term=factor * weight * W)
        value = certify(at_weight, np.zeros((5, 5)))
        assert (value.relative_gap <= 1e-9) == is_zero


def test_closed_form_the_spread_inside_the_classes():
    S = np.array([[3.0, 1.0], [1.0, 2.0]])
    W = np.array([[1.5, 0.2], [0.2, 0.5]])
    found = within_metric(7.0 * S, 6, W, spread=1.0, n_directions=2)
    assert found == pytest.approx(np.linalg.inv((2.0 * W + 6.0 * 2.0 * S / 5.0) / 8.0))
    nothing = within_metric(1e-14 * S, 6, W, spread=1.0, n_directions=2)
    assert nothing == pytest.approx(np.linalg.inv(W))
    assert within_metric(S, 0, None, spread=1.0, n_directions=2) == pytest.approx(np.eye(2))


def test_the_independent_similar_pairs_of_labels_and_of_constraints_are_as_many():
    X, y = np.arange(14.0).reshape(7, 2), [0, 0, 0, 1, 1, 2, -1]
    labels = PairSet.from_labels(X, y)
    listed = PairSet.from_constraints(X, labels.similar, labels.dissimilar)
    assert independent_similar(labels) == independent_similar(listed) == 3
    chain = PairSet.from_constraints(X, [(0, 1), (1, 2), (4, 5)], [(0, 6)])
    assert independent_similar(chain) == 3
    assert independent_similar(PairSet.from_constraints(X, [], [(0, 6)])) == 0


LINE = np.array([[0.0], [1.0], [9.0], [2.0]])


def doubt(scale, similar, confidences=(), threshold=1.0):
    """The doubt about similar pairs and the dissimilar (0, 2), at a multiple of the identity."""
    pairs = PairSet.from_constraints(LINE, similar, [(0, 2)], *confidences)
    objective = MStepObjective(pairs, unlabeled_weight=0.0, threshold=threshold)
    return doubt_about_labels(objective, scale * np.eye(1))


def test_the_doubt_is_that_of_confidences_and_of_missing_kinds():
    p = posterior(np.array([1.0, 4.0, 81.0]), 1.0, 1.0)
    expected = (1.0 - p[0] + 3.0 * (1.0 - p[1])) / 4.0 + p[2]
    assert doubt(1.0, [(0, 1), (0, 3)], ([1.0, 3.0], [1.0])) == pytest.approx(expected)
    assert doubt(1.0, []) == pytest.approx(0.5)
    assert doubt(0.0, []) == 1.0


def test_a_threshold_beyond_every_exponential_is_fitted_without_overflow():
    assert doubt(1.0, [(0, 1)], threshold=1000.0) == 1.0  # all are similar, it says
    assert doubt(100.0, [(0, 1)], threshold=1000.0) == 0.0
    model = SERAPH(threshold=1000.0).fit(LINE, [0, 0, 1, -1])  # a warning would be an error
    assert np.all(np.isfinite(model.metric_))


def test_closed_form_the_share_of_the_critical_weight_is_the_chance_of_similarity():
    """Divided by the number of classes; of constraints, that of the similar ones, never zero."""
    X = np.random.default_rng(0).normal(size=(40, 2))
    rows = np.arange(40).reshape(20, 2)
    cases = [(PairSet.from_labels(X, np.arange(40) % k), 1.0 / k) for k in (2, 5, 40)]
    uneven = np.repeat([0, 1, -1], [3, 1, 36])
    cases += [
        (PairSet.from_labels(X, uneven), 10 / 16),
        (PairSet.from_constraints(X, rows[:4], rows[4:]), 5 / 21),
        (PairSet.from_constraints(X, rows[:0], rows), 1 / 21),
        (PairSet.from_constraints(X, rows[:4], rows[4:], 3.0, 1.0), 13.4 / 29.4),
        (PairSet.from_constraints(X, [[0, 1]], [[0, 2], [1, 2]]), 5 / 9),  # complete: as labels
    ]
    for pairs, chance in cases:
        assert auto_trace_share(pairs) == pytest.approx(0.08 * chance)
