"""Evidence: which features of the distance keep the M-step convex; the exponential one, certified.

Closed forms, derivatives by differences, both directions of the criterion (property-based), weak
duality at any PSD point, agreement with Clarabel judged by the certificate alone, failure paths.
"""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from instances import random_pairs, random_psd
from scipy import stats
from scipy.optimize import minimize_scalar
from scipy.special import expit

from seraph_cvx import MStepObjective, PairSet
from seraph_cvx.datasets import load_sampling
from seraph_cvx.solvers.not_certified import NotCertified
from seraph_cvx.solvers.solution import Status
from seraph_cvx.theory.features.distance_features import (
    AFFINE,
    BENT,
    CONCAVE,
    CONVEX,
    FEATURES,
    LOG_CONCAVE,
    Feature,
    label_gap,
    loss_curvatures,
    losses,
    power,
    rescaling_error,
    second_differences,
    violation,
)
from seraph_cvx.theory.features.exponential_feature import (
    ExponentialMStep,
    certify_exponential,
    dissimilar_loss,
    geometric_entropy,
    state_exponential_m_step,
)
from seraph_cvx.theory.features.exponential_solver import solve_exponential

D = np.linspace(0.02, 8.0, 300)
NOTHING = np.empty((0, 2), dtype=int)


def named(feature):
    return feature.name


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


def stated(problem):
    """The CVXPY statement of an ExponentialMStep."""
    return state_exponential_m_step(
        problem.pairs,
        problem.soft_labels,
        problem.unlabeled_weight,
        problem.trace_weight,
        problem.offset,
    )


def test_closed_form_of_the_exponential_feature():
    near, far = losses(LOG_CONCAVE[2].score(D))
    np.testing.assert_allclose(near, D + 0.1, rtol=1e-12)
    np.testing.assert_allclose(far, -np.log(1.0 - np.exp(-D - 0.1)), rtol=1e-9, atol=1e-15)


def test_closed_form_of_probit():
    near, far = losses(LOG_CONCAVE[1].score(D))
    np.testing.assert_allclose(near, -stats.norm.logsf(D - 1.0), rtol=1e-9)
    np.testing.assert_allclose(far, -stats.norm.logcdf(D - 1.0), rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("feature", FEATURES, ids=named)
@pytest.mark.parametrize("kappa", [1.0, 0.3])
def test_derivatives_of_a_feature_by_finite_differences(feature, kappa):
    feature, h = feature.times(kappa), 1e-5 * D
    slope = (feature.score(D + h) - feature.score(D - h)) / (2.0 * h)
    curvature = (feature.slope(D + h) - feature.slope(D - h)) / (2.0 * h)
    np.testing.assert_allclose(feature.slope(D), slope, rtol=1e-6)
    np.testing.assert_allclose(feature.curvature(D), curvature, rtol=1e-5, atol=1e-8)
    assert np.all(slope > 0.0)


@given(
    slope=st.floats(0.05, 5.0),
    height=st.floats(-3.0, 3.0),
    sharpness=st.floats(0.1, 4.0),
    place=st.floats(0.0, 4.0),
    threshold=st.floats(-2.0, 4.0),
)
def test_property_criterion_says_where_a_loss_bends(slope, height, sharpness, place, threshold):
    """Features that are increasing or not, convex, concave or neither."""

    def tanh(d):
        return np.tanh(sharpness * (d - place))

    feature = Feature(
        "slope d + height tanh",
        lambda d: slope * d + height * tanh(d) - threshold,
        lambda d: slope + height * sharpness * (1.0 - tanh(d) ** 2),
        lambda d: -2.0 * height * sharpness**2 * tanh(d) * (1.0 - tanh(d) ** 2),
    )
    d = np.linspace(0.1, 6.0, 60)
    s, first, second = feature.score(d), feature.slope(d), feature.curvature(d)
    measured = second_differences(feature, d)
    np.testing.assert_allclose(measured, loss_curvatures(feature, d), rtol=1e-3, atol=1e-3)
    halves = np.stack([second + first**2 * expit(-s), first**2 * expit(s) - second])
    clear = np.abs(measured) > 1e-4
    assert np.all((halves >= 0.0)[clear] == (measured >= 0.0)[clear])


@pytest.mark.parametrize("feature", LOG_CONCAVE, ids=named)
def test_m_step_is_convex_with_a_log_concave_feature(feature):
    """The midpoint inequality of (11) at random PSD pairs, data and soft labels."""
    rng = np.random.default_rng(1)
    for _ in range(30):
        m = int(rng.integers(1, 5))
        V, q = rng.normal(size=(20, m)), rng.random(20)
        A, B = random_psd(rng, m, 4.0), random_psd(rng, m, 4.0)
        ends = (loss_of_pairs(feature, V, q, A) + loss_of_pairs(feature, V, q, B)) / 2.0
        assert loss_of_pairs(feature, V, q, (A + B) / 2.0) <= ends * (1.0 + 1e-12)


@pytest.mark.parametrize("feature", [*CONVEX, *CONCAVE], ids=named)
def test_m_step_is_not_convex_with_the_other_features(feature):
    """One pair on a line is enough, as the proof says."""
    excess = -np.inf
    for q in (np.zeros(1), np.ones(1)):
        values = [
            loss_of_pairs(feature, np.ones((1, 1)), q, np.array([[a]])) for a in (0.05, 0.3, 0.55)
        ]
        excess = max(excess, values[1] - (values[0] + values[2]) / 2.0)
    assert excess > 1e-3


def loss_of_pairs(feature, V, q, A):
    near, far = losses(feature.score(np.einsum("ij,jk,ik->i", V, A, V)))
    return float(q @ near + (1.0 - q) @ far)


def test_explicit_counterexample_of_the_squared_feature():
    """-ln p(-1) of a dissimilar pair with v = 1 at A = 0, 1/2, 1 where phi(d) = d^2, eta = 1."""
    left, middle, right = losses(power(2.0).score(np.array([0.0, 0.5, 1.0])))[1]
    np.testing.assert_allclose([left, right], np.log([1.0 + np.e, 2.0]))
    assert middle == pytest.approx(np.log(1.0 + np.exp(0.75)))
    assert middle > (left + right) / 2.0 + 0.13
    assert not cp.logistic(1 - cp.square(cp.Variable(nonneg=True))).is_convex()


@pytest.mark.parametrize(
    "density",
    [
        *(family(1.0) for family in (stats.norm, stats.logistic, stats.gumbel_r, stats.gumbel_l)),
        *(stats.laplace(1.0), stats.gamma(2.0), stats.weibull_min(1.5), stats.expon(-0.1)),
    ],
    ids=lambda density: density.dist.name,
)
def test_distribution_function_of_a_log_concave_density_serves(density):
    d = np.linspace(0.01, 5.0, 500)
    assert np.diff(-density.logcdf(d), 2).min() > -1e-12
    assert np.diff(-density.logsf(d), 2).min() > -1e-12


@pytest.mark.parametrize(
    "density", [stats.lognorm(1.0), stats.fisk(1.0)], ids=["log-normal", "log"]
)
def test_log_concave_distribution_function_alone_does_not_suffice(density):
    d = np.linspace(0.01, 5.0, 500)
    assert np.diff(-density.logcdf(d), 2).min() > -1e-12
    assert np.diff(-density.logsf(d), 2).min() < -1e-6


@pytest.mark.parametrize("feature", BENT, ids=named)
def test_small_kappa_breaks_every_feature_but_the_affine_one(feature):
    ratio = np.abs(feature.curvature(D)) / feature.slope(D) ** 2
    worst = D[[np.argmax(ratio)]]
    for threshold in (-3.0, 0.0, 3.0):
        kappa = 0.9 * float(np.max(ratio))
        scaled = Feature(
            "scaled",
            lambda d, k=kappa, eta=threshold: k * feature.score(d) - eta,
            lambda d, k=kappa: k * feature.slope(d),
            lambda d, k=kappa: k * feature.curvature(d),
        )
        assert violation(scaled, worst) > 0.0
    assert violation(AFFINE.times(1e-6)) == violation(AFFINE.times(1e6)) == 0.0


def test_exponential_feature_needs_its_own_scale_and_probit_does_not():
    """At the edge of the criterion: its similar loss is affine, so that any other kappa breaks."""
    probit, exponential = LOG_CONCAVE[1:]
    for kappa in (0.9, 1.1, 3.0):
        assert violation(exponential.times(kappa)) > 1e-3
        assert violation(probit.times(kappa)) < 1e-12
    assert violation(exponential) < 1e-12


@pytest.mark.parametrize("alpha", [0.3, 0.5, 0.9, 1.0, 1.1, 2.0, 3.0])
@pytest.mark.parametrize("kappa", [0.5, 1.0, 2.0])
def test_powers_absorb_kappa_and_only_d_is_convex(alpha, kappa):
    assert rescaling_error(power(alpha), kappa) < 1e-6
    scaled = power(alpha).times(kappa)
    assert (violation(scaled, np.geomspace(1e-6, 50.0, 600)) == 0.0) == (alpha == 1.0)


@pytest.mark.parametrize("feature", [f for f in FEATURES if not f.name.startswith("d^")], ids=named)
def test_no_other_feature_absorbs_kappa(feature):
    assert rescaling_error(feature, 3.0) > 0.01


def test_soft_labels_reach_the_m_step_by_one_matrix_and_one_number_only_if_affine():
    """Two q with one G and one beta: one M-step (11), two exponential ones."""
    rng = np.random.default_rng(3)
    pairs = random_pairs(3, n=10, m=3)
    i, j = np.triu_indices(3)
    V = pairs.points[pairs.unlabeled[:, 0]] - pairs.points[pairs.unlabeled[:, 1]]
    moments = np.column_stack([V[:, i] * V[:, j], np.ones(len(V))])
    q = rng.uniform(0.3, 0.7, len(V))
    shift = np.linalg.svd(moments.T)[2][-1]
    other = q + 0.25 * shift / np.max(np.abs(shift))
    A = random_psd(rng, 3, 1.0)
    affine = [MStepObjective(pairs, soft_labels=labels).value(A) for labels in (q, other)]
    bent = [ExponentialMStep(pairs, labels).value(A) for labels in (q, other)]
    assert affine[0] == pytest.approx(affine[1], rel=1e-12)
    assert abs(bent[0] - bent[1]) > 1e-3
    assert label_gap(AFFINE) < 1e-12
    assert min(map(label_gap, BENT)) > 1e-2


def test_formulas_agree_pair_by_pair():
    """f from p(+1) = exp(-d - delta), one pair after the other, with confidences."""
    base = random_pairs(5, n=9, m=3)
    pairs = PairSet.from_constraints(base.points, base.similar, base.dissimilar, 0.5, 2.0)
    rng = np.random.default_rng(5)
    q, A = rng.random(pairs.n_unlabeled), random_psd(rng, 3)
    total = 0.7 * np.trace(A)

    def add(rows, weights, labels):
        terms = 0.0
        for (i, j), weight, label in zip(rows, weights, labels, strict=True):
            v = pairs.points[i] - pairs.points[j]
            p = np.exp(-(v @ A @ v) - 0.2)
            terms -= weight * (label * np.log(p) + (1.0 - label) * np.log(1.0 - p))
        return terms

    total += add(pairs.similar, [0.5] * len(pairs.similar), [1.0] * len(pairs.similar))
    total += add(pairs.dissimilar, [2.0] * len(pairs.dissimilar), [0.0] * len(pairs.dissimilar))
    total += add(pairs.unlabeled, [0.3] * len(q), q)
    assert ExponentialMStep(pairs, q, 0.3, 0.7, 0.2).value(A) == pytest.approx(total, rel=1e-12)


@given(w=st.floats(1e-6, 1e3))
def test_property_geometric_entropy_is_the_conjugate(w):
    u = np.log1p(1.0 / w)
    found = minimize_scalar(
        lambda x: float(dissimilar_loss(np.array(np.exp(x)))) + w * np.exp(x),
        bounds=(np.log(u) - 2.0, np.log(u) + 2.0),
        method="bounded",
        options={"xatol": 1e-9},
    )
    assert float(geometric_entropy(np.array(w))) == pytest.approx(found.fun, rel=1e-9)
    mean = stats.geom(1.0 / (1.0 + w), loc=-1)
    if w < 50.0:
        assert float(mean.entropy()) == pytest.approx(
            float(geometric_entropy(np.array(w))), rel=1e-6
        )


def test_dcp_term_is_the_loss():
    """The least t with log_sum_exp(-t, -u) <= 0 is -log(1 - e^{-u})."""
    for u in (0.05, 1.0, 6.0):
        t = cp.Variable()
        constraint = cp.log_sum_exp(cp.hstack([-t, -u])) <= 0
        value = cp.Problem(cp.Minimize(t), [constraint]).solve(solver="CLARABEL")
        assert value == pytest.approx(float(dissimilar_loss(np.array(u))), abs=1e-7)


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")  # values judge, not words
@pytest.mark.parametrize("seed", range(5))
def test_solver_agreement_with_clarabel_judged_by_the_certificate(seed):
    problem = exponential_instance(seed)
    solution = solve_exponential(problem, tol=1e-8)
    assert solution.status is Status.CERTIFIED
    certificate = certify_exponential(problem, solution.metric)
    assert 0.0 <= certificate.relative_gap <= 1e-8
    statement = stated(problem)
    assert statement.is_dcp(dpp=True)
    statement.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    size = max(1.0, abs(certificate.primal_value))
    assert abs(statement.value - certificate.primal_value) / size < 1e-7
    assert problem.value(solution.metric) == pytest.approx(certificate.primal_value, rel=1e-12)


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")  # values judge, not words
def test_statement_can_be_used_again_with_other_labels():
    """DPP: C, its number and b are all that new soft labels change."""
    first, second = (exponential_instance(7, soft_labels=None), exponential_instance(7))
    statement, fresh = stated(first), stated(second)
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
    V, b, C = problem.differences, problem.far, problem.pull
    m = problem.pairs.n_features
    metrics = [random_psd(rng, m, 10.0 ** rng.uniform(-3.0, 2.0)) for _ in range(25)]
    values = [problem.value(A) for A in [*metrics, np.zeros((m, m))]]
    duals = [certify_exponential(problem, A).dual_value for A in metrics]
    for _ in range(25):
        w = rng.exponential(size=len(b)) * 10.0 ** rng.uniform(-2.0, 1.0)
        L = np.linalg.inv(np.linalg.cholesky(C))
        matrix = L @ ((V * (b * w)[:, None]).T @ V) @ L.T
        w = w / max(1.0, 1.0000001 * np.linalg.eigvalsh(matrix)[-1])
        duals.append(float(b @ (geometric_entropy(w) - problem.offset * w)) + problem.constant)
    optimum = solve_exponential(problem, tol=1e-9).value
    assert max(duals) <= optimum * (1.0 + 1e-12)
    assert optimum <= min(values) * (1.0 + 1e-12)


def test_dual_value_is_the_certificates_own_formula():
    """D at w = 1/(e^u - 1), recomputed, where no move is needed: f(A) - D = <gradient, A>."""
    problem = exponential_instance(2)
    A = solve_exponential(problem, tol=1e-10).metric
    V, w = problem.differences, problem.far / np.expm1(problem.shifted_distances(A))
    gradient = problem.pull - (V * w[:, None]).T @ V
    assert np.linalg.eigvalsh(gradient)[0] > -1e-4 * np.linalg.norm(problem.pull)
    assert abs(np.vdot(gradient, A)) < 1e-6 * problem.value(A)
    h = 1e-5 * random_psd(np.random.default_rng(0), len(A))
    slope = (problem.value(A + 2.0 * h) - problem.value(A)) / 2.0
    w = problem.far / np.expm1(problem.shifted_distances(A + h))
    middle = problem.pull - (V * w[:, None]).T @ V
    assert slope == pytest.approx(float(np.vdot(middle, h)), rel=1e-5)


def test_closed_form_of_one_dissimilar_pair_on_a_line():
    """lambda a + g(4a + delta) is least at e^u = 1 + 4 / lambda; the bound is tight to rounding."""
    problem = ExponentialMStep(PairSet.from_constraints([[0.0], [2.0]], NOTHING, [(0, 1)]))
    u = np.log(5.0)
    optimum = (u - 0.1) / 4.0 - np.log(1.0 - 0.2)
    certificate = certify_exponential(problem, [[(u - 0.1) / 4.0]])
    assert certificate.primal_value == pytest.approx(optimum, rel=1e-15)
    assert optimum * (1.0 - 1e-12) < certificate.dual_value < optimum
    found = solve_exponential(problem, tol=1e-12).metric[0, 0]
    assert found == pytest.approx((u - 0.1) / 4.0, rel=1e-5)


@pytest.mark.parametrize(
    ("name", "seed"),
    [
        ("iris", 6),
        pytest.param("iris", 0, marks=pytest.mark.slow),
        pytest.param("wine", 0, marks=pytest.mark.slow),
        pytest.param("breast_cancer", 0, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("unlabeled_weight", [0.0, "ratio"])
def test_real_data_is_certified(name, seed, unlabeled_weight):
    """Collinear features, metrics of low rank, steps that would cycle if no one checked them."""
    sampling = load_sampling(name, seed=seed)
    X = (sampling.X - sampling.X.mean(axis=0)) / sampling.X.std(axis=0)
    pairs = PairSet.from_labels(X, sampling.y)
    for trace_weight in (1.0, 1e-2, 1e-6):
        problem = ExponentialMStep(
            pairs, unlabeled_weight=unlabeled_weight, trace_weight=trace_weight
        )
        assert solve_exponential(problem).status is Status.CERTIFIED


def test_zero_metric_is_certified_where_the_trace_weight_is_large():
    problem = exponential_instance(1, trace_weight=1e5)
    solution = solve_exponential(problem, tol=1e-12)
    assert solution.iterations == 0
    assert not solution.metric.any()


def test_pairs_that_are_all_similar_leave_nothing_to_learn():
    pairs = PairSet.from_constraints([[0.0], [1.0], [2.0]], [(0, 1), (1, 2)], NOTHING)
    problem = ExponentialMStep(pairs, unlabeled_weight=0.0)
    assert solve_exponential(problem).value == pytest.approx(0.2)
    statement = stated(problem)
    assert statement.solve(solver="CLARABEL") == pytest.approx(0.2, abs=1e-6)


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
    pairs = random_pairs(0)
    with pytest.raises(ValueError, match=message):
        ExponentialMStep(pairs, **arguments)
    with pytest.raises(ValueError, match=message):
        state_exponential_m_step(pairs, **arguments)


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
@pytest.mark.parametrize("seed", range(8))
def test_larger_instances_are_certified_to_rounding(seed):
    rng = np.random.default_rng([seed, 99])
    pairs = random_pairs(seed, n=60, m=int(rng.integers(5, 20)), n_labeled=40)
    problem = ExponentialMStep(
        pairs,
        rng.random(pairs.n_unlabeled),
        float(10.0 ** rng.uniform(-2, 0)),
        float(10.0 ** rng.uniform(-2, 1)),
        float(10.0 ** rng.uniform(-2.5, 0)),
    )
    assert solve_exponential(problem, tol=1e-9).status is Status.CERTIFIED
