"""Evidence: which features of the distance keep the M-step convex; the exponential one, certified.

Closed forms, derivatives by differences, both directions of the criterion (property-based), weak
duality at any PSD point, agreement with Clarabel judged by the certificate alone, failure paths.
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

from seraph_cvx import MStepObjective, NotCertified, PairSet, Status, paper
from seraph_cvx.datasets import load_sampling
from seraph_cvx.theory.exponential import (
    ExponentialMStep,
    certify_exponential,
    dissimilar_loss,
    geometric_entropy,
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
    times,
    violation,
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


def test_exponential_feature_needs_its_own_scale_and_probit_does_not():
    """At the edge of the criterion: its similar loss is affine, so that any other kappa breaks."""
    for kappa in (0.9, 1.1, 3.0):
        assert violation(times(kappa, LOG_CONCAVE["exponential"])) > 1e-3
        assert violation(times(kappa, LOG_CONCAVE["probit"])) < 1e-12


def test_soft_labels_reach_the_m_step_by_one_matrix_and_one_number_only_if_affine():
    """Two q with one G and one beta: one M-step (11), two exponential ones."""
    rng, pairs = np.random.default_rng(3), random_pairs(3, n=10, m=3)
    i, j = np.triu_indices(3)
    V = paper.differences(pairs.points, pairs.unlabeled)
    moments = np.column_stack([V[:, i] * V[:, j], np.ones(len(V))])
    q = rng.uniform(0.3, 0.7, len(V))
    shift = np.linalg.svd(moments.T)[2][-1]
    labels, A = (q, q + 0.25 * shift / np.max(np.abs(shift))), random_psd(rng, 3, 1.0)
    affine = [MStepObjective(pairs, soft_labels=each).value(A) for each in labels]
    assert affine[0] == pytest.approx(affine[1], rel=1e-12)
    assert abs(np.subtract(*(ExponentialMStep(pairs, each).value(A) for each in labels))) > 1e-3


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


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")  # values judge, not words
@pytest.mark.parametrize("seed", range(5))
def test_solver_agreement_with_clarabel_judged_by_the_certificate(seed):
    problem = exponential_instance(seed)
    solution = solve_exponential(problem, tol=1e-8)
    assert solution.status is Status.CERTIFIED
    certificate = certify_exponential(problem, solution.metric)
    assert 0.0 <= certificate.relative_gap <= 1e-8
    statement = state_exponential(problem)
    assert statement.is_dcp(dpp=True)
    statement.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    assert statement.value == pytest.approx(certificate.primal_value, rel=1e-7, abs=1e-7)
    assert problem.value(solution.metric) == pytest.approx(certificate.primal_value, rel=1e-12)


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")  # values judge, not words
def test_statement_can_be_used_again_with_other_labels():
    """DPP: C, its number and b are all that new soft labels change."""
    second = exponential_instance(7)
    statement = state_exponential(exponential_instance(7, soft_labels=None))
    fresh = state_exponential(second)
    for name, parameter in statement.param_dict.items():
        parameter.value = fresh.param_dict[name].value
    values = [problem.solve(solver="CLARABEL") for problem in (statement, fresh)]
    assert values[0] == pytest.approx(values[1], rel=1e-6)
    assert values[1] == pytest.approx(solve_exponential(second).value, rel=1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_weak_duality_at_any_psd_point(seed):
    """No dual value, ours or that of any feasible w, is above the value of any metric."""
    rng = np.random.default_rng([seed, 8])
    problem = exponential_instance(seed)
    V, b, m = problem.differences, problem.far, problem.pairs.n_features
    metrics = [random_psd(rng, m, 10.0 ** rng.uniform(-3.0, 2.0)) for _ in range(25)]
    values = [problem.value(A) for A in [*metrics, np.zeros((m, m))]]
    duals = [certify_exponential(problem, A).dual_value for A in metrics]
    L = np.linalg.inv(np.linalg.cholesky(problem.linear_matrix))
    for _ in range(25):
        w = rng.exponential(size=len(b)) * 10.0 ** rng.uniform(-2.0, 1.0)
        matrix = L @ ((V * (b * w)[:, None]).T @ V) @ L.T
        w = w / max(1.0, 1.0000001 * np.linalg.eigvalsh(matrix)[-1])
        duals.append(float(b @ (geometric_entropy(w) - problem.offset * w)) + problem.constant)
    optimum = solve_exponential(problem, tol=1e-9).value
    assert max(duals) <= optimum * (1.0 + 1e-12)
    assert optimum <= min(values) * (1.0 + 1e-12)


def test_closed_form_of_one_dissimilar_pair_on_a_line():
    """lambda a + g(4a + delta) is least at e^u = 1 + 4 / lambda; the bound is tight to rounding."""
    problem = ExponentialMStep(PairSet.from_constraints([[0.0], [2.0]], NOTHING, [(0, 1)]))
    best = (np.log(5.0) - 0.1) / 4.0
    optimum = best - np.log(1.0 - 0.2)
    certificate = certify_exponential(problem, [[best]])
    assert certificate.primal_value == pytest.approx(optimum, rel=1e-15)
    assert optimum * (1.0 - 1e-12) < certificate.dual_value < optimum
    assert solve_exponential(problem, tol=1e-12).metric == pytest.approx(best, rel=1e-5)


@pytest.mark.parametrize(
    ("name", "seed", "n_points"),
    [
        ("iris", 6, 100),
        pytest.param("wine", 0, 50, marks=pytest.mark.slow),
        pytest.param("breast_cancer", 0, 50, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("unlabeled_weight", [0.0, "ratio"])
def test_real_data_is_certified(name, seed, n_points, unlabeled_weight):
    """Collinear features, metrics of low rank, steps that would cycle if no one checked them."""
    sampling = load_sampling(name, n_points=n_points, seed=seed)
    X = (sampling.X - sampling.X.mean(axis=0)) / sampling.X.std(axis=0)
    pairs = PairSet.from_labels(X, sampling.y)
    for trace_weight in (1.0, 1e-2, 1e-6):
        problem = ExponentialMStep(pairs, None, unlabeled_weight, trace_weight)
        assert solve_exponential(problem).status is Status.CERTIFIED


def test_zero_metric_is_certified_where_the_trace_weight_is_large():
    solution = solve_exponential(exponential_instance(1, trace_weight=1e5), tol=1e-12)
    assert solution.iterations == 0
    assert not solution.metric.any()


def test_pairs_that_are_all_similar_leave_nothing_to_learn():
    pairs = PairSet.from_constraints([[0.0], [1.0], [2.0]], [(0, 1), (1, 2)], NOTHING)
    problem = ExponentialMStep(pairs, unlabeled_weight=0.0)
    assert solve_exponential(problem).value == pytest.approx(0.2)
    assert state_exponential(problem).solve(solver="CLARABEL") == pytest.approx(0.2, abs=1e-6)


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_units_of_the_features_do_not_matter(scale):
    base = exponential_instance(4)
    units = np.geomspace(1.0, scale, base.pairs.n_features)
    pairs = PairSet.from_constraints(
        base.pairs.points * units, base.pairs.similar, base.pairs.dissimilar
    )
    problem = ExponentialMStep(pairs, base.soft_labels, 0.5, 1e-3, 0.05)
    assert solve_exponential(problem, tol=1e-7).status is Status.CERTIFIED


def test_failure_limit_is_never_silent():
    with pytest.warns(NotCertified, match="Raise max_iter"):
        solution = solve_exponential(exponential_instance(0), tol=1e-10, max_iter=2)
    assert solution.status is Status.ITERATION_LIMIT
    assert solution.iterations == 2
    assert solution.relative_gap > 1e-10


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"offset": 0.0}, "offset=0 is out of range: it must be > 0"),
        ({"trace_weight": 0.0}, "trace_weight=0 is out of range: it must be > 0"),
        ({"soft_labels": [0.5]}, "soft_labels has shape"),
        ({"unlabeled_weight": "half"}, "'half' is not known"),
    ],
)
def test_failure_a_wrong_argument_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        ExponentialMStep(random_pairs(0), **arguments)


def test_failure_a_trace_weight_that_rounding_swallows():
    """Scales of 1e-3 and 1e22, along no feature's axis: nothing but w = 0 is proven feasible."""
    X = [[0.0, 0.0, 0.0], [1e11, 0.3e11, 0.7e11], [1.0, 2.0, 3.0]]
    pairs = PairSet.from_constraints(X, [(0, 1)], [(0, 2)])
    problem = ExponentialMStep(pairs, unlabeled_weight=0.0, trace_weight=1e-3)
    with pytest.warns(NotCertified, match="trace_weight, or standardize"):
        solution = solve_exponential(problem, max_iter=20)
    assert solution.certificate.dual_point == "w = 0"
    assert solution.certificate.dual_value == pytest.approx(0.1, rel=1e-14)
    assert solution.certificate.dual_value < solution.value


def test_failure_a_metric_that_is_not_psd():
    problem = exponential_instance(0)
    with pytest.raises(ValueError, match="not positive semidefinite"):
        certify_exponential(problem, -np.eye(problem.pairs.n_features))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_larger_instances_are_certified_to_rounding(seed):
    rng = np.random.default_rng([seed, 99])
    pairs = random_pairs(seed, n=60, m=int(rng.integers(5, 20)), n_labeled=40)
    mu, trace_weight, offset = 10.0 ** rng.uniform([-2.0, -2.0, -2.5], [0.0, 1.0, 0.0])
    problem = ExponentialMStep(pairs, rng.random(pairs.n_unlabeled), mu, trace_weight, offset)
    assert solve_exponential(problem, tol=1e-9).status is Status.CERTIFIED
