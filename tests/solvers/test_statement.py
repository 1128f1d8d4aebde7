"""The CVXPY statements: labeled like (11), DCP and DPP, and all with one optimum."""

from dataclasses import replace

import numpy as np
import pytest
from cvxpy.reductions.solvers.conic_solvers.scs_conif import SCS
from instances import random_objective, random_pairs, random_psd

from seraph_cvx import MStepObjective, PairSet, certify, solve_m_step
from seraph_cvx.m_step.conic import ConicMStep
from seraph_cvx.m_step.solve import MStepSolver
from seraph_cvx.m_step.statement import build_statement, textbook_statement
from seraph_cvx.numerics.psd_cone import project, symmetrize

TOLERANCES = {
    "CLARABEL": ("tol_gap_abs", "tol_gap_rel", "tol_feas"),
    "SCS": ("eps_abs", "eps_rel"),
}


def small_instance(seed):
    """n = 15..30, m = 2..6, random q, mu, lambda and eta."""
    rng = np.random.default_rng([seed, 7])
    pairs = random_pairs(seed, n=int(rng.integers(15, 31)), m=int(rng.integers(2, 7)))
    return MStepObjective(
        pairs,
        soft_labels=rng.random(pairs.n_unlabeled),
        unlabeled_weight=float(rng.uniform(0.02, 1.0)),
        trace_weight=float(rng.uniform(0.1, 3.0)),
        threshold=float(rng.uniform(0.5, 3.0)),
    )


def test_the_multiplier_of_the_dual_is_the_metric():
    objective = random_objective(2, "hyper")
    statement = build_statement(objective, "dual")
    statement.problem.solve(solver="CLARABEL")
    metric = project(symmetrize(statement.metric))
    assert certify(objective, metric).relative_gap < 1e-5
    np.testing.assert_allclose(metric, solve_m_step(objective).metric, atol=1e-4)


@pytest.mark.filterwarnings("ignore::seraph_cvx.NotCertified")
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 5))]
)
def test_three_statements_two_solvers_one_optimum(seed):
    """Each certified gap is at most 1e-5 and any two certified intervals overlap."""
    objective = small_instance(seed)
    certificates = [solve_m_step(objective, tol=1e-10).certificate]
    for solver, names in TOLERANCES.items():
        textbook = textbook_statement(objective)
        textbook.solve(solver=solver, **dict.fromkeys(names, 1e-9))
        metric = project(symmetrize(textbook.var_dict["A"].value))
        certificates.append(certify(objective, metric))
        for formulation in ("primal", "dual"):
            answer = solve_m_step(objective, solver, tol=1e-9, formulation=formulation)
            certificates.append(answer.certificate)
    assert len(certificates) == 7
    assert max(certificate.relative_gap for certificate in certificates) <= 1e-5
    highest_bound = max(certificate.dual_value for certificate in certificates)
    lowest_value = min(certificate.primal_value for certificate in certificates)
    assert highest_bound <= lowest_value  # proven both


def test_compiled_once_it_is_not_compiled_again(canonicalized):
    """A second M-step must not canonicalize the expression tree anew."""
    objective = small_instance(1)
    compiled = ConicMStep(objective, "CLARABEL")
    compiled.solve(objective, tol=1e-6)
    compiled.solve(objective.with_trace_weight(0.5), tol=1e-6)
    assert len(canonicalized) == 1


@pytest.mark.parametrize(("kind", "absent"), [("similar", "sum_D"), ("dissimilar", "sum_S")])
def test_the_textbook_statement_has_no_term_for_a_kind_of_pair_that_is_not_there(kind, absent):
    X = np.random.default_rng(0).normal(size=(5, 3))
    pairs = PairSet.from_constraints(X, **{"similar": [], "dissimilar": [], kind: [(0, 1), (2, 4)]})
    objective = MStepObjective(pairs)
    problem = textbook_statement(objective)
    assert absent not in problem.format_labeled()
    A = random_psd(np.random.default_rng(1), 3)
    problem.var_dict["A"].value = A
    assert problem.objective.value == pytest.approx(objective.value(A), rel=1e-12)


# The same M-step, the same answer, whatever was solved before


def other_m_step(objective):
    """An M-step of the same pairs with other soft labels and another trace weight."""
    q = np.random.default_rng(5).random(objective.pairs.n_unlabeled)
    return replace(objective, soft_labels=q, trace_weight=3.0 * objective.trace_weight)


@pytest.mark.parametrize("formulation", [pytest.param("primal", marks=pytest.mark.slow), "dual"])
@pytest.mark.parametrize("solver", ["SCS", "CLARABEL"])
def test_an_answer_does_not_depend_on_the_m_steps_solved_before(solver, formulation):
    a = small_instance(3)
    b = other_m_step(a)
    fresh = {m_step: ConicMStep(m_step, solver, formulation).solve(m_step) for m_step in (a, b)}
    assert not np.array_equal(fresh[a].metric, fresh[b].metric)
    compiled, m_step_solver = ConicMStep(a, solver, formulation), MStepSolver(solver, formulation)
    for m_step in (a, b, a):
        for answer in (compiled.solve(m_step), m_step_solver.solve(m_step)):
            assert np.array_equal(answer.metric, fresh[m_step].metric)
            assert answer.iterations == fresh[m_step].iterations
            assert answer.certificate == fresh[m_step].certificate


class AlwaysWarm(SCS):
    """A solver that starts from what CVXPY kept of its last run, whether it is told to or not."""

    def name(self):
        return "ALWAYS_WARM"

    def solve_via_data(self, data, warm_start, verbose, solver_opts, solver_cache=None):
        return super().solve_via_data(data, True, verbose, solver_opts, solver_cache)


def test_a_solver_that_always_starts_warm_is_given_nothing_to_start_from():
    a = small_instance(3)
    compiled = ConicMStep(a, AlwaysWarm(), "dual")
    first, _, again = (compiled.solve(m_step, tol=1e-6) for m_step in (a, other_m_step(a), a))
    assert np.array_equal(first.metric, again.metric)


def test_a_manifold_term_that_differs_by_a_rounding_error_is_compiled_anew():
    a = replace(small_instance(1), manifold_term=0.1 * np.eye(small_instance(1).pairs.n_features))
    b = replace(a, manifold_term=a.manifold_term * (1.0 + 2e-15))
    m_step_solver = MStepSolver("CLARABEL")
    m_step_solver.solve(a, 1e-6)
    fresh = MStepSolver("CLARABEL").solve(b, 1e-6)
    assert np.array_equal(m_step_solver.solve(b, 1e-6).metric, fresh.metric)
