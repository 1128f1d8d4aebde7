"""Evidence: which features of the distance keep the M-step convex; the exponential one, solved.

Closed forms, derivatives by differences, both directions of the criterion (property-based), weak
duality at any PSD point, a proof of the optimum, failure paths.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from instances import random_pairs, random_psd
from scipy import stats
from scipy.optimize import minimize_scalar
from scipy.special import expit

from seraph_cvx import PairSet, certify_problem, paper
from seraph_cvx.datasets import load_sampling
from seraph_cvx.theory.exponential import (
    ExponentialMStep,
    dissimilar_loss,
    geometric_entropy,
    lower_bound,
    solve_exponential,
    state_exponential,
)
from seraph_cvx.theory.feature_claims import (
    CONCAVE,
    CONVEX,
    LOG_CONCAVE,
    curvature,
    loss_curvatures,
    losses,
    second_differences,
    slope,
)

D = np.linspace(0.02, 8.0, 300)
NOTHING = np.empty((0, 2), dtype=int)


def exponential_instance(seed, **more):
    """n = 8..12, m = 2..4, random q, mu, lambda and delta."""
    rng = np.random.default_rng([seed, 16])
    pairs = random_pairs(seed, n=int(rng.integers(8, 13)), m=int(rng.integers(2, 5)))
    arguments = {
        "soft_labels": rng.random(pairs.n_unlabeled),
        "unlabeled_weight": float(rng.uniform(0.05, 1.0)),
        "trace_weight": float(rng.uniform(0.1, 3.0)),
        "offset": float(rng.uniform(0.02, 0.5)),
    }
    return ExponentialMStep(pairs, **{**arguments, **more})


@pytest.mark.parametrize(
    ("name", "similar", "dissimilar"),
    [
        ("exponential", D + 0.1, -np.log(1.0 - np.exp(-D - 0.1))),
        ("probit", -stats.norm.logsf(D - 1.0), -stats.norm.logcdf(D - 1.0)),
    ],
)
def test_closed_form_of_the_losses(name, similar, dissimilar):
    near, far = losses(LOG_CONCAVE[name](D))
    np.testing.assert_allclose(near, similar, rtol=1e-9)
    np.testing.assert_allclose(far, dissimilar, rtol=1e-9, atol=1e-15)


@given(
    weights=st.tuples(st.floats(0.05, 5.0), st.floats(-3.0, 3.0), st.floats(-4.0, 2.0)),
    sharpness=st.floats(0.1, 4.0),
    center=st.floats(0.0, 4.0),
)
def test_property_criterion_says_where_a_loss_is_convex(weights, sharpness, center):
    """Features that are increasing or not, convex, concave or neither."""

    def feature(d):
        return np.tensordot(weights, [d, np.tanh(sharpness * (d - center)), d**0], axes=1)

    d = np.linspace(0.1, 6.0, 60)
    s, first, second = feature(d), slope(feature, d), curvature(feature, d)
    measured = second_differences(feature, d)
    np.testing.assert_allclose(measured, loss_curvatures(feature, d), rtol=1e-3, atol=1e-3)
    halves = np.stack([second + first**2 * expit(-s), first**2 * expit(s) - second])
    clear = np.abs(measured) > 1e-4
    assert np.all((halves >= 0.0)[clear] == (measured >= 0.0)[clear])


@pytest.mark.parametrize("feature", LOG_CONCAVE.values(), ids=LOG_CONCAVE)
def test_both_losses_of_a_log_concave_feature_are_convex(feature):
    """And so is (11), which adds them up at distances that are linear in A."""
    assert np.diff(losses(feature(D)), 2).min() > -1e-12


OTHERS = CONVEX | CONCAVE


@pytest.mark.parametrize("feature", OTHERS.values(), ids=OTHERS)
def test_m_step_is_not_convex_with_the_other_features(feature):
    """One pair on a line is enough, as the proof says."""
    left, middle, right = losses(feature(np.array([0.05, 0.3, 0.55]))).T
    assert np.max(middle - (left + right) / 2.0) > 1e-3


LOG_CONCAVE_DENSITIES = [
    *(family(1.0) for family in (stats.norm, stats.logistic, stats.gumbel_r, stats.gumbel_l)),
    *(stats.laplace(1.0), stats.gamma(2.0), stats.weibull_min(1.5), stats.expon(-0.1)),
]


@pytest.mark.parametrize(
    ("density", "serves"),
    [
        *((density, True) for density in LOG_CONCAVE_DENSITIES),
        *((density, False) for density in (stats.lognorm(1.0), stats.fisk(1.0))),
    ],
    ids=lambda value: value if isinstance(value, bool) else value.dist.name,
)
def test_distribution_function_of_a_log_concave_density_serves(density, serves):
    """A log-concave distribution function alone does not suffice."""
    d = np.linspace(0.01, 5.0, 500)
    assert np.diff(-density.logcdf(d), 2).min() > -1e-12
    least = np.diff(-density.logsf(d), 2).min()
    assert least > -1e-12 if serves else least < -1e-6


def test_formulas_agree_pair_by_pair():
    """f from p(+1) = exp(-d - delta), with confidences."""
    base, rng = random_pairs(5, n=9, m=3), np.random.default_rng(5)
    pairs = PairSet.from_constraints(base.points, base.similar, base.dissimilar, 0.5, 2.0)
    q, A = rng.random(pairs.n_unlabeled), random_psd(rng, 3)
    total = 0.7 * np.trace(A)
    kinds = (pairs.similar, 0.5, 1.0), (pairs.dissimilar, 2.0, 0.0), (pairs.unlabeled, 0.3, q)
    for rows, weight, label in kinds:
        p = np.exp(-paper.squared_distances(pairs.points, rows, A) - 0.2)
        total -= weight * np.sum(label * np.log(p) + (1.0 - label) * np.log(1.0 - p))
    assert ExponentialMStep(pairs, q, 0.3, 0.7, 0.2).value(A) == pytest.approx(total, rel=1e-12)


@given(w=st.floats(1e-6, 1e3))
def test_property_geometric_entropy_is_the_conjugate(w):
    u, entropy = np.log1p(1.0 / w), float(geometric_entropy(np.array(w)))
    search = minimize_scalar(
        lambda x: float(dissimilar_loss(np.array(np.exp(x)))) + w * np.exp(x),
        bounds=(np.log(u) - 2.0, np.log(u) + 2.0),
        method="bounded",
        options={"xatol": 1e-9},
    )
    assert entropy == pytest.approx(search.fun, rel=1e-9)
    if w < 50.0:
        geometric = stats.geom(1.0 / (1.0 + w), loc=-1)
        assert float(geometric.entropy()) == pytest.approx(entropy, rel=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_the_optimum_is_proved(seed):
    problem = exponential_instance(seed)
    statement = state_exponential(problem)
    certificate, solution = certify_problem(statement), solve_exponential(problem)
    assert certificate.relative_gap <= 1e-6
    assert solution.relative_gap <= 1e-7
    assert solution.dual_value <= certificate.upper
    assert certificate.lower <= solution.value * (1.0 + 1e-12)
    assert solution.value == pytest.approx(certificate.upper, rel=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_weak_duality_at_any_psd_point(seed):
    """No dual value, ours or that of any feasible w, is above the value of any metric."""
    rng = np.random.default_rng([seed, 8])
    problem = exponential_instance(seed)
    V, _, b = problem.terms
    m = problem.pairs.n_features
    metrics = [random_psd(rng, m, 10.0 ** rng.uniform(-3.0, 2.0)) for _ in range(25)]
    values = [problem.value(A) for A in [*metrics, np.zeros((m, m))]]
    duals = [lower_bound(problem, A) for A in metrics]
    L = np.linalg.inv(np.linalg.cholesky(problem.linear_matrix))
    for _ in range(25):
        w = rng.exponential(size=len(b)) * 10.0 ** rng.uniform(-2.0, 1.0)
        matrix = L @ ((V * (b * w)[:, None]).T @ V) @ L.T
        w = w / max(1.0, 1.0000001 * np.linalg.eigvalsh(matrix)[-1])
        duals.append(float(b @ (geometric_entropy(w) - problem.offset * w)) + problem.constant)
    solution = solve_exponential(problem)
    assert max(duals) <= solution.value * (1.0 + 1e-12)
    assert solution.dual_value <= min(values) * (1.0 + 1e-12)


def test_closed_form_of_one_dissimilar_pair_on_a_line():
    """lambda a + g(4a + delta) is least at e^u = 1 + 4 / lambda."""
    problem = ExponentialMStep(PairSet.from_constraints([[0.0], [2.0]], NOTHING, [(0, 1)]))
    best = (np.log(5.0) - 0.1) / 4.0
    solution = solve_exponential(problem)
    assert solution.metric == pytest.approx(best, rel=1e-5)
    assert solution.value == pytest.approx(best - np.log(1.0 - 0.2), rel=1e-10)
    assert lower_bound(problem, [[best]]) == pytest.approx(solution.value, rel=1e-10)


@pytest.mark.parametrize("unlabeled_weight", [0.0, "ratio"])
@pytest.mark.parametrize("trace_weight", [1.0, 1e-3])
def test_real_data_to_a_small_gap(unlabeled_weight, trace_weight):
    """Collinear features, metrics of low rank, units that differ."""
    sampling = load_sampling("iris", seed=6)
    pairs = PairSet.from_labels(sampling.X * [1.0, 10.0, 0.1, 1.0], sampling.y)
    problem = ExponentialMStep(pairs, None, unlabeled_weight, trace_weight)
    assert abs(solve_exponential(problem).relative_gap) <= 1e-6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"offset": 0.0}, "offset=0 is out of range: it must be > 0"),
        ({"trace_weight": 0.0}, "trace_weight=0 is out of range: it must be > 0"),
    ],
)
def test_failure_a_wrong_argument_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        ExponentialMStep(random_pairs(0), **arguments)
