"""Evidence: a sparse metric by the interior-point method, against the other solvers.

The certificate judges every answer; values may differ by the sum of the certified gaps.
"""

import warnings

import numpy as np
import pytest
from instances import random_objective, random_pairs

from seraph_cvx import MStepObjective, NotCertified, PairSet, certify, solve_m_step
from seraph_cvx.datasets import load
from seraph_cvx.engine.passes import OutOfTime
from seraph_cvx.m_step.solve import MStepSolver
from seraph_cvx.penalties import Ridge, Sparse
from seraph_cvx.solvers import interior_point, multipliers

WEIGHTS = [1e-4, 0.05, 1.0, 30.0]


def sparse(seed, weight, setting="hyper", m=5):
    return random_objective(seed, setting, n=20, m=m, penalties=[Sparse(weight)])


def labeled(n=40, m=6, seed=0, **more):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) < 16, np.arange(n) % 2, -1)
    return MStepObjective(PairSet.from_labels(rng.normal(size=(n, m)), y), **more)


def breast_cancer(weight, **more):
    X, y = load("breast_cancer")
    rows = np.random.default_rng(0).permutation(len(X))[:200]
    X, y = X[rows], y[rows]
    known = np.full(len(y), -1)
    for name, number in zip(np.unique(y), (0, 1), strict=True):
        known[np.flatnonzero(y == name)[:10]] = number
    pairs = PairSet.from_labels((X - X.mean(axis=0)) / X.std(axis=0), known)
    return MStepObjective(pairs, penalties=[Sparse(weight)], **more)


def by_interior_point(objective, tol=1e-8, **more):
    """The solution; it has to be certified, and within few steps."""
    solution = solve_m_step(objective, tol=tol, **more)
    assert solution.solver_status == "gap closed by an interior-point method"
    assert solution.status == "certified"
    assert solution.iterations <= 40
    np.testing.assert_array_equal(solution.metric, solution.metric.T)
    return solution


def assert_agree(ours, theirs):
    gaps = ours.certificate.duality_gap + theirs.certificate.duality_gap
    assert abs(ours.certificate.primal_value - theirs.certificate.primal_value) <= gaps


def solve_quietly(objective, solver="newton", **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return solve_m_step(objective, solver, **more)


@pytest.mark.parametrize("tol", [1e-6, 1e-8])
@pytest.mark.parametrize("setting", ["proj", "hyper", "other"])
@pytest.mark.parametrize("weight", WEIGHTS)
def test_every_weight_and_setting_is_certified(weight, setting, tol):
    for seed in range(2):
        by_interior_point(sparse(seed, weight, setting), tol)


@pytest.mark.parametrize("given", [{"unlabeled_weight": 0.0}, {"previous_metric": np.eye(30) / 30}])
@pytest.mark.parametrize(("weight", "least_zeros"), [(0.3, 0.3), (30.0, 0.95)])
def test_breast_cancer_is_certified_with_exact_zeros(weight, least_zeros, given):
    solution = by_interior_point(breast_cancer(weight, **given), 1e-6)
    assert np.mean(solution.metric[np.triu_indices(30, 1)] == 0.0) >= least_zeros


@pytest.mark.parametrize("weight", WEIGHTS)
def test_solver_agreement_within_the_certified_gaps(weight, monkeypatch):
    objective = sparse(3, weight, m=3)
    ours = by_interior_point(objective)
    assert_agree(ours, solve_quietly(objective, "CLARABEL", tol=1e-8))
    monkeypatch.setattr(multipliers, "is_for_interior_point", lambda objective: False)
    before = solve_quietly(objective, tol=1e-7)
    assert before.solver_status != ours.solver_status
    assert_agree(ours, before)
    zero, other = ours.metric == 0.0, before.metric == 0.0
    assert np.array_equal(zero[np.triu_indices(3, 1)], other[np.triu_indices(3, 1)])


@pytest.mark.parametrize("mu", [0.0, 0.3])
def test_second_derivatives_are_differences_of_the_gradient(mu):
    """Of listed pairs and of all."""
    objective = MStepObjective(random_pairs(0), unlabeled_weight=mu, penalties=[Sparse(1.0)])
    problem = interior_point._Problem(objective, np.inf)
    problem.set_pattern(np.array([0, 1]), np.array([2, 3]))
    H = problem.at(problem.typical).hessian(problem.i, problem.j)
    h = 1e-5 * problem.typical[0, 0]
    for number, column in enumerate(H.T):
        D = h * problem.matrix(np.eye(len(H))[number])
        ahead, behind = (problem.at(problem.typical + side * D).gradient for side in (1.0, -1.0))
        difference = (ahead - behind)[problem.i, problem.j] / (2.0 * h)
        np.testing.assert_allclose(column, difference, rtol=1e-5, atol=1e-6 * np.max(np.abs(H)))


@pytest.mark.parametrize("weight", WEIGHTS)
def test_a_pattern_that_grows_leads_to_the_same_optimum(weight, monkeypatch):
    objective = labeled(m=8, penalties=[Sparse(weight)])
    whole = by_interior_point(objective)
    monkeypatch.setattr(interior_point, "ALL_ENTRIES", 0)
    monkeypatch.setattr(interior_point, "MORE_ENTRIES", 5)
    by_pattern = solve_m_step(objective)
    assert "interior-point" in by_pattern.solver_status
    assert_agree(whole, by_pattern)
    assert np.array_equal(whole.metric == 0.0, by_pattern.metric == 0.0)


def test_where_the_pattern_is_too_large_or_there_are_other_penalties_multipliers_are_used(
    monkeypatch,
):
    objective = labeled(penalties=[Sparse(0.1), Ridge(0.1)])
    assert "interior" not in solve_m_step(objective, tol=1e-5).solver_status
    monkeypatch.setattr(interior_point, "ALL_ENTRIES", 0)
    monkeypatch.setattr(interior_point, "MOST_ENTRIES", 7)
    solution = solve_m_step(labeled(penalties=[Sparse(0.1)]), tol=1e-5)
    assert solution.status == "certified"
    assert "interior" not in solution.solver_status


@pytest.mark.parametrize("size", [0.0, 1.0, 1e4])
def test_a_start_does_not_matter_and_the_answer_is_never_worse(size):
    objective = labeled(penalties=[Sparse(0.3)])
    first = by_interior_point(objective)
    assert_agree(first, by_interior_point(objective, start=size * np.eye(6)))
    again = by_interior_point(objective, start=first.metric)
    assert objective.value(again.metric) <= objective.value(first.metric) * (1.0 + 1e-13)


def test_what_f_does_not_need_is_exactly_zero():
    X = np.random.default_rng(0).normal(size=(30, 4))
    X[:, 2] = 1.0
    y = np.where(np.arange(30) < 12, np.arange(30) % 2, -1)
    pairs = PairSet.from_labels(X, y)
    solution = by_interior_point(MStepObjective(pairs, penalties=[Sparse(0.1)]))
    assert not np.any(solution.metric[2])
    nothing = by_interior_point(MStepObjective(pairs, trace_weight=1e5, penalties=[Sparse(0.1)]))
    assert not np.any(nothing.metric)


def test_features_in_any_units_are_certified():
    units = np.array([1e-3, 1.0, 1e3, 1.0, 30.0, 1e-2])
    pairs = labeled().pairs
    pairs = PairSet.from_constraints(pairs.points * units, pairs.similar, pairs.dissimilar)
    for trace_weight in (0.0, 0.1):
        objective = MStepObjective(pairs, trace_weight=trace_weight, penalties=[Sparse(0.3)])
        assert solve_m_step(objective, tol=1e-6).status == "certified"


def test_a_loose_certificate_of_the_metric_alone_holds_too():
    objective = breast_cancer(1.0, unlabeled_weight=0.0)
    solution = by_interior_point(objective, 1e-6)
    again = certify(objective, solution.metric)
    assert again.dual_value <= solution.certificate.primal_value
    assert solution.certificate.dual_value <= again.primal_value
    assert again.relative_gap <= 1e-3


# Limits


@pytest.mark.parametrize(
    ("limit", "words"), [({"max_iter": 2}, "'iteration limit'"), ({"time_limit": 1e-9}, "time was")]
)
def test_a_limit_ends_it_at_a_metric_with_a_certificate(limit, words):
    with pytest.warns(NotCertified, match=words):
        solution = solve_m_step(labeled(penalties=[Sparse(0.3)]), **limit)
    assert solution.iterations == limit.get("max_iter", 0)
    assert np.any(solution.metric)
    assert np.isfinite(solution.certificate.relative_gap)


def test_an_interrupt_leaves_the_factor_of_the_best_metric():
    objective = labeled(penalties=[Sparse(0.3)])

    def press(steps, value):
        objective.limit.is_interrupted = steps == 3

    with pytest.raises(OutOfTime) as stopped:
        MStepSolver(watch=press).solve(objective, 1e-8)
    objective.limit.is_interrupted = False
    L = stopped.value.factor
    assert objective.value(L @ L.T) < objective.value(np.zeros((6, 6)))


def test_a_tolerance_beyond_rounding_and_an_optimum_that_is_not_attained_end():
    solution = solve_quietly(labeled(penalties=[Sparse(0.3)]), tol=1e-15)
    assert solution.status == "rounding_limit"
    pairs = PairSet.from_constraints(np.eye(3), [], [(0, 1)])
    given = {"trace_weight": 0.0, "unlabeled_weight": 0.0, "penalties": [Sparse(0.3)]}
    solution = solve_quietly(MStepObjective(pairs, **given), allow_unattained=True)
    assert np.any(solution.metric)
