"""Evidence: the descent on (7) ends stationary in every unit of the features, and says so."""

from __future__ import annotations

import warnings

import naive
import numpy as np
import pytest
from evidence.runs import learners
from sklearn.datasets import load_iris
from stationarity import measure_stationarity

from seraph_cvx import SERAPH, SERAPHCV, MStepObjective, NotCertified, PairSet, Status, solve_m_step
from seraph_cvx.datasets import load_sampling
from seraph_cvx.fit.direct import minimize_directly
from seraph_cvx.model.semi_supervised import SemiSupervisedObjective

FLOWERS = load_iris()
KNOWN = np.where(np.arange(150) % 10 == 0, FLOWERS.target, -1)
UNITS = [1e3, 1e-3, 7e5]


def flowers(unit=1.0):
    return PairSet.from_labels(unit * FLOWERS.data, KNOWN)


def standardized(name, n_points=40, seed=0):
    drawn = load_sampling(name, n_points=n_points, seed=seed)
    return PairSet.from_labels(drawn.X, drawn.y)


def stationarity_at(pairs, A, **weights):
    objective = SemiSupervisedObjective(MStepObjective(pairs, **weights))
    return measure_stationarity(objective.m_step, A, *objective.value_and_gradient(A))


def random_metrics(pairs, count, seed=0):
    """PSD, of any rank and of mean squared distances from 1e-3 to 1e3."""
    rng, m = np.random.default_rng(seed), pairs.n_features
    for _ in range(count):
        L = rng.normal(size=(m, rng.integers(1, m + 1)))
        spread = np.sum(np.var(pairs.points @ L, axis=0))
        yield 10.0 ** rng.uniform(-3.0, 3.0) / spread * L @ L.T


def whitened(pairs, A, mu, trace_weight):
    """(7), A and its gradient where C + R = I, pair by pair; and S of measure_stationarity."""
    value, gradient = naive.semi_supervised(pairs, mu, trace_weight, 1.0, A)
    i, j = np.vstack([pairs.labeled, pairs.unlabeled]).T
    V = pairs.points[i] - pairs.points[j]
    c = np.concatenate([np.ones(len(pairs.labeled)), np.full(len(pairs.unlabeled), mu)])
    eigenvalues, U = np.linalg.eigh((V.T * c) @ V + trace_weight * np.eye(len(A)))
    Z, inverse = U / np.sqrt(eigenvalues), (U * np.sqrt(eigenvalues)).T
    B = inverse @ A @ inverse.T
    return value, B, Z.T @ gradient @ Z, np.trace(B) + 2.0 * c.sum()


def projected(B):
    eigenvalues, U = np.linalg.eigh((B + B.T) / 2.0)
    return (U * np.maximum(eigenvalues, 0.0)) @ U.T


# Every unit of the features


@pytest.mark.parametrize("unit", [1.0, *UNITS])
def test_direct_ends_stationary_in_any_unit_and_is_never_certified(unit):
    model = SERAPH(algorithm="direct").fit(unit * FLOWERS.data, KNOWN)  # a warning is an error
    assert model.status_ == "stationary"
    assert model.certificate_ is None
    assert model.n_iter_ > 2


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("unlabeled_weight", [0.0, "ratio", 0.1])
def test_direct_finds_the_same_metric_in_any_unit(unit, unlabeled_weight):
    expected = minimize_directly(flowers(), unlabeled_weight, trace_weight=1.0)
    found = minimize_directly(flowers(unit), unlabeled_weight, trace_weight=unit**2)
    assert expected.status == found.status == "stationary"
    assert found.iterations == pytest.approx(expected.iterations, rel=0.2)
    assert found.values[0] == pytest.approx(expected.values[0], rel=1e-12)
    assert found.value == pytest.approx(expected.value, rel=1e-9)
    size = np.max(np.abs(expected.metric))
    np.testing.assert_allclose(unit**2 * found.metric, expected.metric, rtol=0.0, atol=1e-4 * size)


def test_direct_starts_at_the_identity_over_the_mean_variance_of_what_varies():
    X = np.hstack([3.0 * FLOWERS.data, np.full((150, 1), 0.1)])
    pairs = PairSet.from_labels(X, KNOWN)
    start = np.eye(5) / np.mean(np.var(3.0 * FLOWERS.data, axis=0))
    expected = SemiSupervisedObjective(MStepObjective(pairs)).value(start)
    assert minimize_directly(pairs, max_iter=0).value == pytest.approx(expected, rel=1e-12)


def test_direct_leaves_points_that_are_all_the_same_alone():
    pairs = PairSet.from_constraints(np.ones((3, 2)), [(0, 1)], [])
    found = minimize_directly(pairs)
    assert found.status == "stationary"
    assert np.max(np.abs(found.metric)) <= 1e-6  # nothing but the trace is left


# The measure of stationarity


@pytest.mark.parametrize("unit", UNITS)
def test_stationarity_does_not_depend_on_the_unit(unit):
    for A in random_metrics(flowers(), 20):
        expected = stationarity_at(flowers(), A, trace_weight=3.0)
        found = stationarity_at(flowers(unit), A / unit**2, trace_weight=3.0 * unit**2)
        assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("mu", [0.0, 0.02, 1.0])
def test_formula_stationarity_is_the_fall_that_the_slope_allows(mu):
    pairs = standardized("wine", 30)
    for A in random_metrics(pairs, 10):
        value, B, g, reach = whitened(pairs, A, mu, 0.5)
        least = min(0.0, np.linalg.eigvalsh(g)[0])
        expected = (np.vdot(g, B) - reach * least) / max(1.0, value)
        found = stationarity_at(pairs, A, unlabeled_weight=mu, trace_weight=0.5)
        assert found == pytest.approx(expected, rel=1e-8)
        assert found > 1e-5  # none of them is stationary


@pytest.mark.parametrize("size", [1e-12, 1e-9, 1e6, 1e9])
@pytest.mark.parametrize("unlabeled_weight", [0.0, "ratio"])
def test_stationarity_is_not_small_for_a_metric_that_is_merely_huge_or_tiny(size, unlabeled_weight):
    """Zero is no stationary point here: the labeled pairs pull the metric up."""
    pairs = standardized("iris")
    assert stationarity_at(pairs, size * np.eye(4), unlabeled_weight=unlabeled_weight) > 0.01


def test_closed_form_stationarity_of_zero_tells_on_which_side_of_the_critical_weight_it_is():
    pairs = standardized("iris")
    critical = MStepObjective(pairs, unlabeled_weight=0.0).critical_trace_weight
    weights = {"unlabeled_weight": 0.0, "trace_weight": 1.001 * critical}
    assert stationarity_at(pairs, np.zeros((4, 4)), **weights) == 0.0
    weights["trace_weight"] = 0.999 * critical
    assert stationarity_at(pairs, np.zeros((4, 4)), **weights) > 1e-6


def test_stationarity_bounds_what_is_to_be_gained_where_the_objective_is_convex():
    """mu = 0, judged by the certified M-step; the optimum lies in the set the bound is about."""
    pairs = standardized("iris")
    best = solve_m_step(MStepObjective(pairs, unlabeled_weight=0.0))
    _, at_best, _, _ = whitened(pairs, best.metric, 0.0, 1.0)
    tried = 0
    for A in random_metrics(pairs, 40):
        value, _, _, reach = whitened(pairs, A, 0.0, 1.0)
        if np.trace(at_best) <= reach:
            tried += 1
            gain = (value - best.value) / max(1.0, value)
            assert gain <= stationarity_at(pairs, A, unlabeled_weight=0.0)
    assert tried >= 20


# Where it ends


@pytest.mark.parametrize("unit", [1.0, 1e3])
def test_gradient_step_from_the_end_comes_back_to_it(unit):
    """P(B - t grad) = B where C + R = I, with the gradient of (7) summed pair by pair."""
    pairs = flowers(unit)
    found = minimize_directly(pairs, trace_weight=unit**2)
    mu = pairs.resolve_unlabeled_weight("ratio")
    value, B, g, reach = whitened(pairs, found.metric, mu, unit**2)
    assert np.vdot(g, B) - reach * min(0.0, np.linalg.eigvalsh(g)[0]) <= 1.1e-6 * value
    for t in (0.01, 0.1, 1.0):
        moved = projected(B - t * reach * g) - B
        assert np.linalg.norm(moved) <= 1e-3 * t * np.linalg.norm(B)


@pytest.mark.parametrize("name", ["iris", "wine", pytest.param("balance", marks=pytest.mark.slow)])
def test_rounding_of_the_values_does_not_end_the_descent_early(name):
    """A tolerance at which two values differ by less than they are rounded."""
    pairs = standardized(name)
    found = minimize_directly(pairs, unlabeled_weight=1.0, tol=1e-11)
    assert found.status == "stationary"
    value, B, g, reach = whitened(pairs, found.metric, 1.0, 1.0)
    assert np.vdot(g, B) - reach * min(0.0, np.linalg.eigvalsh(g)[0]) <= 1e-10 * value


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))]
)
def test_values_never_rise_but_by_rounding_and_the_last_is_that_of_the_metric(seed):
    pairs = standardized("wine", seed=seed)
    objective = SemiSupervisedObjective(MStepObjective(pairs, unlabeled_weight=1.0))
    found = minimize_directly(pairs, unlabeled_weight=1.0, tol=1e-300, max_iter=2_000)
    assert found.value == found.values[-1]
    assert found.value == pytest.approx(objective.value(found.metric), rel=1e-12)
    rounding = 2e-13 * (found.values[0] + 2.0 * len(pairs.similar))
    assert np.max(np.diff(found.values)) <= rounding


@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer"])
def test_a_stationarity_of_1e_8_is_reached(name):
    """Where projected gradient stalled at 2e-6."""
    pairs = standardized(name)
    found = minimize_directly(pairs, tol=1e-8)
    assert found.status is Status.STATIONARY
    assert stationarity_at(pairs, found.metric) <= 1e-8
    assert found.iterations < 100


def test_a_maximum_is_left():
    """Near the maximum of lambda a + 2 mu H(p(a)) the slope is least; it grows while (7) falls."""
    pairs = PairSet.from_constraints([[0.0], [0.0], [2.0]], [(0, 1)], [])
    found = minimize_directly(pairs, 1.0, 0.01, start=[[1.006 / 4.0]], tol=1e-10)
    assert found.status == "stationary"
    assert found.metric[0, 0] > 1.0


# What is not reached is told


def test_only_certified_and_stationary_are_what_was_asked_for_or_as_near_as_rounding_allows():
    reached = [status for status in Status if status.reached_tolerance]
    assert reached == [Status.CERTIFIED, Status.STATIONARY, Status.ROUNDING_LIMIT]


def test_failure_path_the_message_quotes_both_numbers_and_the_cure():
    found = minimize_directly(standardized("iris"), max_iter=2)
    assert found.status is Status.ITERATION_LIMIT
    for word in ("2 steps", f"{found.stationarity:.2g}", "1e-06", "max_iter"):
        assert word in found.message
    with pytest.warns(NotCertified, match="Stopped after 2 steps") as caught:
        SERAPH(algorithm="direct", max_iter=2).fit(FLOWERS.data, KNOWN)
    assert [warning.filename for warning in caught] == [__file__]
    assert minimize_directly(standardized("iris")).message == ""


def test_failure_path_the_learner_of_the_experiments_is_not_silent(monkeypatch):
    X, y = FLOWERS.data, KNOWN
    learners.learn_directly(X, y)
    monkeypatch.setattr(
        learners,
        "minimize_directly",
        lambda *given, **more: minimize_directly(*given, **more, max_iter=1),
    )
    with pytest.warns(NotCertified, match="Stopped after 1 steps"):
        learners.learn_directly(X, y)


def test_a_search_whose_fits_end_stationary_warns_of_nothing():
    search = SERAPHCV([1.0, 10.0], ("ratio",), cv=2, algorithm="direct")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search.fit(FLOWERS.data, KNOWN)
    assert search.status_ is Status.STATIONARY
    assert search.cv_results_["n_uncertified"].tolist() == [0, 0]
    with pytest.warns(NotCertified, match="4 of the 4 fits"):
        search.set_params(max_iter=1, refit=False).fit(FLOWERS.data, KNOWN)
    assert search.cv_results_["n_uncertified"].tolist() == [2, 2]
