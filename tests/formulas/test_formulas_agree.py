"""Evidence: every formula equals that of the paper, its other form, and its CVXPY statement."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest
from instances import (
    SETTINGS,
    by_the_paper,
    dual_matrix,
    dual_terms,
    dual_value,
    explicit_soft_labels,
    pair_lists,
    paper_m_step,
    random_objective,
    random_pairs,
    random_psd,
    weighted_objective,
    with_block_size,
)

import seraph_cvx.engine.pair_sums
from seraph_cvx import MStepObjective, PairSet, e_step, paper, state_m_step
from seraph_cvx.m_step.statement import build_statement, textbook_statement
from seraph_cvx.model.m_step_objective import SemiSupervisedObjective, descent_values

every_setting = pytest.mark.parametrize("setting", SETTINGS)
every_label = pytest.mark.parametrize("q", ["start", "random", "streamed"])


def assert_same(actual, expected, tolerance=1e-10):
    error = np.linalg.norm(np.asarray(actual) - np.asarray(expected))
    assert error <= tolerance * max(1.0, np.linalg.norm(expected))


def J_by_definition(objective, A, q):
    """f(A; q) less mu/a times the entropy of q, a the sharpness."""
    f = by_the_paper(objective, paper.m_step, A, q)
    return f - objective.mu / objective.sharpness * np.sum(paper.entropy(q))


def assert_as_in_the_paper(objective, A=None):
    """(11), its gradient and its moments, (7), its gradient and J."""
    m = objective.pairs.n_features
    rng = np.random.default_rng(m)
    A = random_psd(rng, m, size=2.0) if A is None else A
    value, gradient = paper_m_step(objective, A)
    assert_same(objective.value(A), value, 1e-12)
    assert_same(objective.gradient(A), gradient)
    found = objective.value_and_gradient(A)
    assert_same(found[0], value, 1e-12)
    assert_same(found[1], gradient)
    assert np.array_equal(found[1], found[1].T)
    V, c, b = dual_terms(objective)
    assert_same(objective.pair_moment, (V.T * c) @ V)
    assert_same(objective.label_matrix, (V.T * b) @ V)
    assert_same(objective.pair_total - objective.recession_total, b.sum())

    def paper_7(metric):
        return by_the_paper(objective, paper.simplified_objective, metric)

    of_7 = SemiSupervisedObjective(objective)
    own, slope = of_7.value_and_gradient(A)
    assert_same([own, of_7.value(A)], [paper_7(A)] * 2, 1e-12)
    best = explicit_soft_labels(replace(objective, soft_labels=None, previous_metric=A))
    J = J_by_definition(objective, A, best)
    assert_same(descent_values(objective, A), (J, paper_7(A)), 1e-12)
    for D in rng.normal(size=(3, m, m)):
        step = 1e-5 * (D + D.T) / np.linalg.norm(D + D.T)
        rise = (paper_7(A + step) - paper_7(A - step)) / 2.0
        assert np.vdot(slope, step) == pytest.approx(rise, rel=1e-6, abs=1e-9)


@every_setting
@every_label
@pytest.mark.parametrize(("n", "m"), [(2, 1), (3, 5), (15, 3), (40, 12)])
def test_formulas_agree_with_those_of_the_paper(setting, q, n, m):
    few = max(1, min(12, n * (n - 1) // 2 - 1))
    assert_as_in_the_paper(random_objective(n, setting, q=q, n=n, m=m, n_labeled=few))


@pytest.mark.parametrize("setting", ["post", "hyper", "other"])
@every_label
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_formulas_agree_when_the_pairs_are_swept_in_many_blocks(setting, q, n_jobs):
    whole = random_objective(5, setting, q=q, n=40, m=3, n_jobs=n_jobs)
    blocks = with_block_size(whole, 7)
    assert_as_in_the_paper(blocks)
    names = "recession_total lipschitz_bound smoothness_bound critical_trace_weight"
    for name in names.split():
        assert_same(getattr(blocks, name), getattr(whole, name))


def test_formulas_agree_when_the_pairs_are_listed_in_many_chunks(monkeypatch):
    """CHUNK numbers at a time: 5 rows of 4 features, of the labeled pairs and of the E-step's."""
    for module in (seraph_cvx.engine.pair_sums, sys.modules["seraph_cvx.model.posterior"]):
        monkeypatch.setattr(module, "CHUNK", 20)
    for setting in ("proj", "hyper"):
        objective = random_objective(6, setting, q="streamed")
        assert_as_in_the_paper(objective)
        q = e_step(objective.pairs, objective.previous_metric, objective.mu)
        assert_same(q, explicit_soft_labels(objective), 1e-12)


@pytest.mark.parametrize("mu", [0.0, 0.4])
@pytest.mark.parametrize("seed", range(4))
def test_formulas_agree_with_confidences_and_a_manifold_term(seed, mu):
    assert_as_in_the_paper(weighted_objective(seed, mu))


@every_setting
@pytest.mark.parametrize("largest", [1e2, 599.5, 1e4])
def test_formulas_agree_where_scores_are_large_and_nothing_overflows(setting, largest):
    pairs = random_pairs(3, n=12)
    A = random_psd(np.random.default_rng(3), 4, rank=2)
    eta = SETTINGS[setting].get("threshold", 1.0)
    rows = np.vstack([pairs.labeled, pairs.unlabeled])
    A *= (largest - eta) / np.max(paper.squared_distances(pairs.points, rows, A))
    objective = MStepObjective(pairs, previous_metric=A, **SETTINGS[setting])
    for B in (A, -A):  # s up to nearly the largest, and down to minus that
        expected, slope = paper_m_step(objective, B)
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            value, gradient = objective.value_and_gradient(B)
            own, own_slope = SemiSupervisedObjective(objective).value_and_gradient(B)
            assert np.all(np.isfinite(descent_values(objective, B)))
        assert_same(value, expected)
        assert_same(gradient, slope)
        assert_same(own, by_the_paper(objective, paper.simplified_objective, B))
        assert np.all(np.isfinite(own_slope))


def test_formulas_agree_whatever_the_origin_of_the_points():
    near, far = (MStepObjective(random_pairs(3, shift=shift)) for shift in (0.0, 1e3))
    A = random_psd(np.random.default_rng(0), 4)
    assert_same(far.value(A), near.value(A), 1e-9)
    assert_same(far.gradient(A), near.gradient(A), 1e-9)


def test_weight_1_is_no_weight_and_the_ratio_counts_pairs():
    pairs = random_pairs(5)
    plain, heavy = (
        MStepObjective(PairSet.from_constraints(*pair_lists(pairs)[:3], c, c)) for c in (1.0, 7.0)
    )
    A = random_psd(np.random.default_rng(5), 4)
    assert_same(plain.value(A), MStepObjective(pairs).value(A), 1e-13)
    assert_same(plain.gradient(A), MStepObjective(pairs).gradient(A), 1e-12)
    assert heavy.mu == plain.mu == pairs.n_labeled / pairs.n_unlabeled


@pytest.mark.parametrize("setting", ["post", "hyper", "other"])
@pytest.mark.parametrize("sharpness", [None, 0.5, 2.0])
def test_formulas_agree_streamed_soft_labels_with_those_of_the_e_step(setting, sharpness):
    streamed = random_objective(2, setting, q="streamed", n=25, sharpness=sharpness)
    q = e_step(streamed.pairs, streamed.previous_metric, streamed.mu, streamed.threshold, sharpness)
    assert_same(q, explicit_soft_labels(streamed))
    assert np.ptp(q) > 0.1  # else the test would say nothing
    explicit = replace(streamed, previous_metric=None, soft_labels=q)
    assert_same(streamed.recession_total, explicit.recession_total)
    assert_as_in_the_paper(streamed)


@pytest.mark.parametrize("setting", ["post", "hyper", "other"])
@pytest.mark.parametrize("sharpness", [None, 0.6, 2.0, 3.5])
def test_J_is_the_renyi_entropy_and_least_at_the_soft_labels_of_the_e_step(setting, sharpness):
    """mu (a - 1)/a times the Renyi entropy of order a, beside the labeled pairs and the trace."""
    objective = random_objective(4, setting, q="start", n=25, m=3, sharpness=sharpness)
    pairs, mu, a = objective.pairs, objective.mu, objective.sharpness
    A = random_psd(np.random.default_rng(4), 3, size=2.0)
    d = paper.squared_distances(pairs.points, pairs.unlabeled, A)
    p = paper.posterior(d, 1.0, objective.threshold)
    renyi = np.sum(np.log(p**a + (1.0 - p) ** a)) / (1.0 - a)
    labeled = paper_m_step(replace(objective, unlabeled_weight=0.0), A)[0]
    found = descent_values(objective, A)[0]
    assert_same(found, labeled + mu * (a - 1.0) / a * renyi)
    best = e_step(pairs, A, mu, objective.threshold, a)
    for wrong in (0.9 * best, 0.9 * best + 0.1):
        assert J_by_definition(objective, A, wrong) > found


@every_setting
@every_label
def test_formulas_agree_numpy_with_cvxpy_primal(setting, q):
    objective = random_objective(7, setting, q=q, n=15, m=3)
    rng = np.random.default_rng(7)
    for problem in (
        state_m_step(objective),
        textbook_statement(objective),
    ):
        (variable,) = problem.variables()
        for size in (0.1, 1.0, 10.0):
            variable.value = random_psd(rng, 3, size=size, rank=3)
            assert_same(problem.objective.value, objective.value(variable.value), 1e-9)
        assert problem.is_dcp(dpp=True)


@every_setting
@every_label
def test_formulas_agree_cvxpy_dual_with_the_maximum_entropy_problem(setting, q):
    objective = random_objective(8, setting, q=q, n=12, m=3)
    problem = state_m_step(objective, "dual")
    V, c, b = dual_terms(objective)
    p = np.random.default_rng(8).random(len(c))
    variables = {variable.name(): variable for variable in problem.variables()}
    variables["p"].value, unlabeled = np.split(p, [objective.pairs.n_labeled])
    if objective.mu > 0.0:
        variables["p_unlabeled"].value = unlabeled
    assert_same(problem.objective.value, dual_value(p, c, b, objective.threshold), 1e-9)
    (feasible,) = problem.constraints
    assert_same(feasible.args[0].value, dual_matrix(p, V, c, b, objective.trace_weight), 1e-9)
    assert problem.is_dcp(dpp=True)


@pytest.mark.parametrize("formulation", ["primal", "dual"])
def test_formulas_agree_after_the_parameters_of_a_statement_are_updated(formulation):
    first = random_objective(9, "hyper", q="start")
    second = MStepObjective(
        first.pairs, previous_metric=random_psd(np.random.default_rng(0), 4), trace_weight=0.3
    )
    reused, fresh = (build_statement(o, formulation) for o in (first, second))
    for statement in (reused, fresh):
        rng = np.random.default_rng(1)
        for variable in statement.problem.variables():
            size = variable.shape
            variable.value = random_psd(rng, 4, rank=4) if len(size) == 2 else rng.random(size)
    before = reused.problem.objective.value
    reused.update(second)
    assert_same(reused.problem.objective.value, fresh.problem.objective.value, 1e-12)
    assert abs(before - reused.problem.objective.value) > 1e-3


def test_failure_path_unknown_formulation_is_named():
    with pytest.raises(ValueError, match="textbok"):
        state_m_step(random_objective(0, "hyper"), "textbok")


@every_setting
def test_formulas_agree_with_another_trace_weight(setting):
    other = random_objective(1, setting, q="streamed").with_trace_weight(0.123)
    fresh = random_objective(1, setting, q="streamed", trace_weight=0.123)
    assert_as_in_the_paper(other)
    assert_same(other.critical_trace_weight, fresh.critical_trace_weight)


@every_setting
@every_label
def test_the_m_step_is_convex_by_midpoints(setting, q):
    objective, rng = random_objective(11, setting, q=q), np.random.default_rng(11)
    gaps = []
    for _ in range(40):
        A, B = (random_psd(rng, 4, size=10.0 ** rng.uniform(-2, 2)) for _ in range(2))
        chord = (objective.value(A) + objective.value(B)) / 2.0
        middle = objective.value((A + B) / 2.0)
        assert middle <= chord + 1e-12 * max(1.0, abs(chord))
        gaps.append(chord - middle)
    assert max(gaps) > 1e-3


def test_objective_7_is_not_convex():
    of_7 = SemiSupervisedObjective(random_objective(0, "hyper", m=1, unlabeled_weight=10.0))
    grid = [of_7.value([[a]]) for a in np.linspace(0.0, 5.0, 60)]
    assert np.min(np.diff(grid, 2)) < -1e-3


@every_setting
@pytest.mark.parametrize("scale", [1e-2, 1.0, 1e2])
def test_bounds_on_the_gradient_and_on_its_differences_hold_at_random_points(setting, scale):
    """(12): ||grad f|| <= lipschitz_bound, whatever the scale of A; lambda*sqrt(m) suffices."""
    pairs, rng = random_pairs(12, scale=scale), np.random.default_rng(12)
    objective = MStepObjective(pairs, **SETTINGS[setting])
    bound, letters = objective.lipschitz_bound, {"mu": objective.mu, "lam": objective.trace_weight}
    assert 2.0 * objective.trace_weight <= bound  # the norm of lambda I
    assert bound <= paper.lipschitz_bound(*pair_lists(pairs), **letters) + 1e-9
    steepest = 0.0
    for size in 10.0 ** np.linspace(-4, 4, 17) / scale**2:
        A, B = random_psd(rng, 4, size=size), random_psd(rng, 4, size=size)
        assert np.linalg.norm(objective.gradient(A)) <= bound
        difference = abs(objective.value(A) - objective.value(B))
        assert difference <= bound * np.linalg.norm(A - B)
        A = random_psd(rng, 4, size=1.0 / scale**2)
        rise = np.linalg.norm(objective.gradient(A) - objective.gradient(A + B))
        steepest = max(steepest, rise / np.linalg.norm(B))
    assert steepest <= objective.smoothness_bound * (1.0 + 1e-9)
    assert steepest >= 1e-2 * objective.smoothness_bound  # the bound is of the right size


def test_bounds_on_the_gradient_and_on_its_differences_are_attained_by_a_single_pair():
    """A similar one far apart: the gradient tends to v v'; where s = 0 the Hessian is |v|^4 / 4."""
    pairs = PairSet.from_constraints([[0.3], [1.7]], [(0, 1)], [])
    objective, a = MStepObjective(pairs, trace_weight=0.0), 1.0 / 1.4**2
    far = objective.gradient([[1e4]])[0, 0]
    assert far == pytest.approx(objective.lipschitz_bound, rel=1e-12)
    ends = [objective.gradient([[t * a]])[0, 0] for t in (1.0 + 1e-5, 1.0 - 1e-5)]
    curvature = (ends[0] - ends[1]) / (2e-5 * a)
    assert curvature == pytest.approx(objective.smoothness_bound, rel=1e-6)
