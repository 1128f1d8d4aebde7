"""Honest answers: broken solvers, limits and impossible requests get a clear status or error."""

from __future__ import annotations

import numpy as np
import pytest
from faulty_solvers import Planted, Raising
from instances import random_objective, random_psd

from seraph_cvx import (
    MStepObjective,
    NotCertified,
    OptimumNotAttained,
    PairSet,
    Status,
    solve_m_step,
)
from seraph_cvx.m_step import conic
from seraph_cvx.m_step.conic import ConicMStep, options_for
from seraph_cvx.m_step.solve import OWN_SOLVERS
from seraph_cvx.m_step.statement import MStepStatement
from seraph_cvx.numerics.psd_cone import project


def planted(monkeypatch, matrix, **settings):
    """The answer of a solver that returns this matrix and calls it optimal."""
    monkeypatch.setattr(MStepStatement, "metric", property(lambda self: matrix))
    return solve_quietly(Planted(), **settings)


def solve_quietly(solver, objective=None, **settings):
    """The answer, and all warnings in one text."""
    objective = random_objective(0, "hyper") if objective is None else objective
    with pytest.warns(NotCertified) as caught:
        answer = solve_m_step(objective, solver, **settings)
    return answer, " ".join(str(warning.message) for warning in caught)


def test_a_solver_that_raises_is_failed_with_its_words():
    answer, warning = solve_quietly(Raising())
    assert answer.status is Status.FAILED
    assert answer.metric is answer.certificate is None
    assert answer.solver_status == "solver_error"
    assert "license not found" in answer.message
    assert 'solver="newton"' in answer.message
    assert "RAISING" in warning


@pytest.mark.parametrize(
    "matrix", [None, np.full((4, 4), np.nan), np.full((4, 4), np.inf), np.eye(3)]
)
def test_no_usable_matrix_is_failed(monkeypatch, matrix):
    answer, warning = planted(monkeypatch, matrix)
    assert answer.status is Status.FAILED
    assert answer.metric is None
    assert np.isnan(answer.value)
    assert "no matrix" in warning or "NaN or infinity" in warning


@pytest.mark.parametrize(
    ("matrix", "violation"),
    [
        (np.diag([1.0, 1.0, 1.0, -0.25]), 0.25),
        (random_psd(np.random.default_rng(0), 4, 50.0), 0.0),
    ],
    ids=["off the cone", "wrong"],
)
def test_optimal_at_a_wrong_point_is_found_out_and_one_off_the_cone_projected(
    monkeypatch, matrix, violation
):
    answer, warning = planted(monkeypatch, matrix)
    assert answer.solver_status in ("optimal", "optimal_inaccurate")  # by its version and machine
    assert answer.status is Status.INACCURATE
    assert answer.psd_violation == pytest.approx(violation)
    np.testing.assert_allclose(answer.metric, project(matrix), atol=1e-13)
    assert answer.value == pytest.approx(random_objective(0, "hyper").value(answer.metric))
    assert answer.relative_gap > 0.01
    assert "inaccurate" in warning


def test_an_honest_custom_solver_is_certified_and_newton_goes_on_from_another(monkeypatch):
    objective = random_objective(0, "hyper")
    answer = solve_m_step(objective, Planted(), tol=1e-5)
    assert (answer.status, answer.solver) == (Status.CERTIFIED, "PLANTED")
    monkeypatch.setattr(MStepStatement, "metric", property(lambda self: np.eye(4)))
    with pytest.warns(NotCertified, match=r"solve_m_step\(objective, start=solution.metric\)"):
        answer = solve_m_step(objective, Planted())
    assert solve_m_step(objective, start=answer.metric).relative_gap <= 1e-8


@pytest.mark.parametrize(
    ("solver", "settings", "error", "words"),
    [
        ("OSQP", {}, ValueError, "'OSQP' lacks the PSD or the exponential cone"),
        ("GUROBY", {}, ValueError, "'GUROBY'.*CLARABEL"),
        ("newton", {"solver_options": {"eps": 1.0}}, ValueError, "solver_options"),
    ],
)
def test_what_a_solver_cannot_do_is_refused_with_the_reason(solver, settings, error, words):
    with pytest.raises(error, match=words):
        solve_m_step(random_objective(0, "hyper"), solver, **settings)


def test_a_statement_that_does_not_fit_into_memory_is_refused(monkeypatch):
    monkeypatch.setattr(conic, "MEMORY_LIMIT", 10_000)
    with pytest.raises(conic.ProblemTooLarge, match='solver="newton"'):
        solve_m_step(random_objective(0, "hyper"), "SCS")


MOSEK = {f"MSK_DPAR_INTPNT_CO_TOL_{x}": 1e-7 for x in ("REL_GAP", "PFEAS", "DFEAS")}
COPT = dict.fromkeys(("RelGap", "FeasTol", "DualTol"), 1e-7)
MOSEK_LIMITS = {"MSK_DPAR_OPTIMIZER_MAX_TIME": 5.0, "MSK_IPAR_INTPNT_MAX_ITERATIONS": 30}


@pytest.mark.parametrize(
    ("solver", "limits", "expected"),
    [
        ("MOSEK", (5.0, 30), {"mosek_params": MOSEK | MOSEK_LIMITS}),
        ("MOSEK", (None, None), {"mosek_params": MOSEK}),
        ("COPT", (5.0, 30), COPT | {"TimeLimit": 5.0, "BarIterLimit": 30}),
        ("COPT", (None, None), COPT),
        ("NEW", (None, None), {}),
        ("NEW", (5.0, None), None),
        ("NEW", (None, 30), None),
    ],
)
def test_tolerance_and_limits_reach_solvers_in_their_own_words_or_are_refused(
    solver, limits, expected
):
    if expected is not None:
        assert options_for(solver, 1e-7, *limits) == expected
        return
    with pytest.raises(ValueError, match=r"of NEW for this limit is not known.*solver_opt"):
        options_for(solver, 1e-7, *limits)


@pytest.mark.parametrize("limit", [{"max_iter": 7}, {"solver_options": {"max_iters": 7}}], ids=str)
def test_an_iteration_limit_is_the_solvers_word_and_our_verdict(limit):
    """CVXPY's own warning is not swallowed."""
    answer, warning = solve_quietly("SCS", **limit)
    assert answer.iterations <= 7
    assert answer.solver_status == "optimal_inaccurate"
    assert answer.status is Status.INACCURATE
    assert "Solution may be inaccurate" in warning


def test_a_compiled_problem_refuses_other_pairs():
    compiled = ConicMStep(random_objective(0, "hyper"), "SCS")
    with pytest.raises(ValueError, match="other pairs"):
        compiled.solve(random_objective(1, "hyper"))


@pytest.mark.parametrize("solver", OWN_SOLVERS)
def test_allow_unattained_returns_the_last_iterate(solver):
    """Where f decreases forever: the dissimilar pair leaves the span of the similar one."""
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    pairs = PairSet.from_constraints(X, [(0, 1)], [(0, 2)])
    objective = MStepObjective(pairs, unlabeled_weight=0.0, trace_weight=0.0)
    with pytest.raises(OptimumNotAttained, match="trace_weight > 0") as caught:
        solve_m_step(objective, solver)
    np.testing.assert_allclose(np.abs(caught.value.direction), [0.0, 1.0], atol=1e-12)
    assert caught.value.pair == (0, 2)
    answer, warning = solve_quietly(solver, objective, allow_unattained=True, max_iter=200)
    assert "decreases forever" in warning
    assert answer.status is Status.ITERATION_LIMIT
    assert np.isfinite(answer.certificate.duality_gap)
    assert answer.value < objective.value(np.zeros((2, 2)))
