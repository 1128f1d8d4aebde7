"""Evidence: the descent on (7) ends stationary in every unit of the features, and says so."""

import numpy as np
import pytest
from instances import descended, pair_lists
from scipy.special import expit
from sklearn.datasets import load_iris

from seraph_cvx import (
    SERAPH,
    MStepObjective,
    NotCertified,
    PairSet,
    Status,
    alternate,
    certify,
    paper,
    solve_m_step,
)
from seraph_cvx.datasets import load_sampling

FLOWERS = load_iris()
KNOWN = np.where(np.arange(150) % 10 == 0, FLOWERS.target, -1)
UNITS = [1e3, 1e-3, 7e5]


def flowers(unit=1.0):
    return PairSet.from_labels(unit * FLOWERS.data, KNOWN)


def standardized(name, n_points=40, seed=0):
    drawn = load_sampling(name, n_points=n_points, seed=seed)
    return PairSet.from_labels(drawn.X, drawn.y)


def stationarity_at(pairs, A, **weights):
    return descended(pairs, start=A, max_iter=0, **weights).stationarity


def random_metrics(pairs, count, seed=0):
    """PSD, of any rank and of mean squared distances from 1e-3 to 1e3."""
    rng, m = np.random.default_rng(seed), pairs.n_features
    for _ in range(count):
        L = rng.normal(size=(m, rng.integers(1, m + 1)))
        spread = np.sum(np.var(pairs.points @ L, axis=0))
        yield 10.0 ** rng.uniform(-3.0, 3.0) / spread * L @ L.T


def objective_7(pairs, A, mu, trace_weight=1.0):
    return -paper.simplified_objective(*pair_lists(pairs), A, mu=mu, lam=trace_weight, eta=1.0)


def whitened(pairs, A, mu, trace_weight=1.0):
    """(7), A and its gradient where C + R = I, pair by pair; and the size S that bounds metrics."""
    X, *kinds = pair_lists(pairs)
    similar, dissimilar, s = (paper.squared_distances(X, kind, A) - 1.0 for kind in kinds)
    slopes = [expit(similar), -expit(-dissimilar), -mu * s * expit(s) * expit(-s)]
    V = paper.differences(X, np.vstack(kinds))
    c = np.concatenate([np.ones(pairs.n_labeled), np.full(pairs.n_unlabeled, mu)])
    R = trace_weight * np.eye(len(A))
    eigenvalues, U = np.linalg.eigh((V.T * c) @ V + R)
    Z, inverse = U / np.sqrt(eigenvalues), (U * np.sqrt(eigenvalues)).T
    B, gradient = inverse @ A @ inverse.T, (V.T * np.concatenate(slopes)) @ V + R
    value = objective_7(pairs, A, mu, trace_weight)
    return value, B, Z.T @ gradient @ Z, np.trace(B) + 2.0 * c.sum()


def stationarity_by_pairs(pairs, A, mu, trace_weight=1.0):
    value, B, g, size = whitened(pairs, A, mu, trace_weight)
    return (np.vdot(g, B) - size * min(0.0, np.linalg.eigvalsh(g)[0])) / max(1.0, value)


# Every unit of the features


@pytest.mark.parametrize("unit", [1.0, *UNITS])
def test_direct_ends_stationary_in_any_unit_and_is_never_certified(unit):
    model = SERAPH(algorithm="direct").fit(unit * FLOWERS.data, KNOWN)  # a warning is an error
    assert (model.status_, model.certificate_) == ("stationary", None)
    assert model.n_iter_ > 2


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("unlabeled_weight", [0.0, "ratio", 0.1])
def test_direct_finds_the_same_metric_in_any_unit(unit, unlabeled_weight):
    expected, found = (
        descended(flowers(x), unlabeled_weight=unlabeled_weight, trace_weight=x**2)
        for x in (1.0, unit)
    )
    assert expected.status == found.status == "stationary"
    assert found.iterations == pytest.approx(expected.iterations, rel=0.2)
    assert found.values[0] == pytest.approx(expected.values[0], rel=1e-12)
    assert found.value == pytest.approx(expected.value, rel=1e-9)
    size = np.max(np.abs(expected.metric))
    np.testing.assert_allclose(unit**2 * found.metric, expected.metric, rtol=0.0, atol=1e-4 * size)


# Where it starts


def test_direct_starts_at_the_identity_over_the_mean_variance_of_what_varies():
    X = np.hstack([3.0 * FLOWERS.data, np.full((150, 1), 0.1)])
    pairs = PairSet.from_labels(X, KNOWN)
    start = np.diag([1.0, 1.0, 1.0, 1.0, 0.0]) / np.mean(np.var(3.0 * FLOWERS.data, axis=0))
    expected = objective_7(pairs, start, pairs.resolve_unlabeled_weight("ratio"))
    assert descended(pairs, max_iter=0).value == pytest.approx(expected, rel=1e-12)


def test_direct_starts_from_the_given_metric():
    pairs = standardized("iris")
    start, mu = np.diag([3.0, 0.1, 2.0, 0.0]), pairs.resolve_unlabeled_weight("ratio")
    given, default = descended(pairs, start=start), descended(pairs)
    assert given.values[0] == pytest.approx(objective_7(pairs, start, mu), rel=1e-12)
    again = descended(pairs, start=default.metric, tol=1e-5)
    assert again.iterations == 0
    assert again.metric == pytest.approx(default.metric, rel=1e-12)
    with pytest.raises(ValueError, match="start is not positive semidefinite"):
        descended(pairs, start=-np.eye(4))


# The measure of stationarity


@pytest.mark.parametrize("mu", [0.0, 0.02, 1.0])
def test_formula_stationarity_is_the_fall_that_the_slope_allows(mu):
    pairs = standardized("wine" if mu > 0.0 else "iris", 30)  # whose labeled points span
    for A in random_metrics(pairs, 10):
        found = stationarity_at(pairs, A, unlabeled_weight=mu, trace_weight=0.5)
        assert found == pytest.approx(stationarity_by_pairs(pairs, A, mu, 0.5), rel=1e-8)
        assert found > 1e-5  # none of them is stationary


def test_closed_form_stationarity_of_zero_tells_on_which_side_of_the_critical_weight_it_is():
    pairs, weights = standardized("iris"), {"unlabeled_weight": 0.0}
    critical = MStepObjective(pairs, **weights).critical_trace_weight
    above, below = (
        stationarity_at(pairs, np.zeros((4, 4)), trace_weight=share * critical, **weights)
        for share in (1.001, 0.999)
    )
    assert above == 0.0
    assert below > 1e-6


def test_stationarity_bounds_what_is_to_be_gained_where_the_objective_is_convex():
    """mu = 0, judged by the certified M-step; the optimum lies in the set the bound is about."""
    pairs = standardized("iris")
    best = solve_m_step(MStepObjective(pairs, unlabeled_weight=0.0))
    at_best = np.trace(whitened(pairs, best.metric, 0.0)[1])
    tried = 0
    for A in random_metrics(pairs, 40):
        value, _, _, size = whitened(pairs, A, 0.0)
        if at_best <= size:
            tried += 1
            gain = (value - best.value) / max(1.0, value)
            assert gain <= stationarity_at(pairs, A, unlabeled_weight=0.0)
    assert tried >= 20


# Where it ends


@pytest.mark.parametrize(
    ("name", "unlabeled_weight", "tol"),
    [
        *((name, mu, 1e-7) for name in ("iris", "balance") for mu in (0.0, "ratio", 1.0)),
        *((name, "ratio", 1e-8) for name in ("iris", "wine", "breast_cancer")),
        *((name, 1.0, 1e-11) for name in ("iris", "wine")),
        pytest.param("balance", 1.0, 1e-11, marks=pytest.mark.slow),
    ],
)
def test_the_end_is_stationary_though_values_differ_by_less_than_they_are_rounded(
    name, unlabeled_weight, tol
):
    pairs = standardized(name)
    found = descended(pairs, unlabeled_weight=unlabeled_weight, tol=tol)
    assert (found.status, found.message) == (Status.STATIONARY, "")
    assert found.stationarity <= tol
    assert found.iterations == len(found.values) - 1 < 100
    rounding = 2e-14 * (found.values[0] + 2.0 * len(pairs.similar))  # of the terms of the sum
    assert np.all(np.diff(found.values) <= rounding)
    assert found.values[-1] < found.values[0]
    assert np.linalg.eigvalsh(found.metric)[0] >= -1e-12
    mu = pairs.resolve_unlabeled_weight(unlabeled_weight)
    assert found.value == pytest.approx(objective_7(pairs, found.metric, mu), rel=1e-12)
    assert stationarity_by_pairs(pairs, found.metric, mu) <= max(1.1 * tol, 1e-10)


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))]
)
def test_it_ends_by_itself_where_rounding_keeps_the_tolerance_out_of_reach(seed):
    """Far fewer steps than allowed, and said so; values rise by rounding at most."""
    pairs = standardized("wine", seed=seed)
    found = descended(pairs, unlabeled_weight=1.0, tol=1e-300, max_iter=5_000)
    assert found.status is Status.ITERATION_LIMIT
    assert found.iterations < 1000
    assert found.stationarity < 1e-8
    assert "raise tol" in found.message
    assert found.value == found.values[-1]
    rounding = 2e-13 * (found.values[0] + 2.0 * len(pairs.similar))
    assert np.max(np.diff(found.values)) <= rounding


def test_direct_with_no_unlabeled_weight_is_the_certified_supervised_problem():
    """mu = 0 makes (7) convex: the direct method must reach the M-step's certified optimum."""
    pairs = standardized("iris")
    found = descended(pairs, unlabeled_weight=0.0, tol=1e-8)
    assert certify(MStepObjective(pairs, unlabeled_weight=0.0), found.metric).relative_gap <= 1e-6


def test_direct_lowers_the_papers_objective_further_than_the_alternation():
    """DESIGN: the paper's EM is not an ascent on (7); from its end the direct method goes on."""
    pairs = standardized("iris", 60)
    run = alternate(pairs)
    direct = descended(pairs, start=run.metric)
    assert direct.value < run.history[-1].paper_objective - 1e-3


@pytest.mark.parametrize(
    ("trace_weight", "start", "least"), [(0.1, None, 0.25), (0.01, [[1.006 / 4.0]], 1.0)]
)
def test_closed_form_one_unlabeled_pair_and_a_maximum_that_is_left(trace_weight, start, least):
    """Only lambda a + 2 mu H(p(a)) is left; near its maximum the slope grows while (7) falls."""
    pairs = PairSet.from_constraints([[0.0], [0.0], [2.0]], [(0, 1)], [])
    found = descended(pairs, start, tol=1e-10, unlabeled_weight=1.0, trace_weight=trace_weight)
    assert found.status == "stationary"
    a = found.metric[0, 0]
    s = 4.0 * a - 1.0
    assert abs(trace_weight + 2.0 * 4.0 * -s * expit(s) * expit(-s)) <= 1e-6
    assert a > least


# What is not reached is told


def test_failure_path_the_message_quotes_both_numbers_and_the_cure():
    found = descended(standardized("iris"), max_iter=2)
    assert found.status is Status.ITERATION_LIMIT
    assert found.iterations == 2
    for word in ("2 steps", f"{found.stationarity:.2g}", "1e-06", "max_iter"):
        assert word in found.message
    with pytest.warns(NotCertified, match="Stopped after 2 steps") as caught:
        SERAPH(algorithm="direct", max_iter=2).fit(FLOWERS.data, KNOWN)
    assert [warning.filename for warning in caught] == [__file__]
