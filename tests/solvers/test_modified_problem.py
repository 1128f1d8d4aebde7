"""Evidence: problems with added constraints and terms are certified, never on a solver's word."""

import cvxpy as cp
import numpy as np
import pytest
from instances import random_objective, random_psd

from seraph_cvx import certify_problem, solve_m_step, state_m_step
from seraph_cvx.m_step.statement import textbook_statement
from seraph_cvx.penalties import Diagonal, Ridge, TraceBound

OFF = np.triu_indices(3, 1)
SHAPE = np.diag([1.0, 0.5, 0.7])

CONSTRAINTS = {
    "a zero": lambda A, s: [A[0, 1] == 0],
    "trace": lambda A, s: [cp.trace(A) <= 0.6 * s],
    "trace, equal": lambda A, s: [cp.trace(A) == 0.6 * s],
    "diagonal from below": lambda A, s: [cp.diag(A) >= 0.1 * s],
    "diagonal matrix": lambda A, s: [A[OFF] == 0],
    "entry by entry": lambda A, s: [0.3 * s >= A],
    "upper bound": lambda A, s: [A << 0.4 * s * SHAPE, A >> 0],
    "scaled upper bound": lambda A, s: [0.4 * s * SHAPE >> 2.0 * A],
    "symmetry said twice": lambda A, s: [A[0, 1] == 0.01, A[1, 0] == 0.01, A == A.T],
    "several": lambda A, s: [
        A[0, 1] == 0,
        cp.trace(A) <= 0.5 * s,
        cp.diag(A) >= 0.05 * s,
        A << 0.4 * s * np.eye(3),
        A[0, 0] <= A[1, 1],
        cp.sum(cp.multiply(SHAPE, A)) + A[0, 2] <= s,
    ],
}
TERMS = {
    "trace": lambda A: 0.3 * cp.trace(A) + 2.0,
    "linear": lambda A: 0.3 * A[0, 0] + cp.sum(cp.multiply(SHAPE, A)) / 4.0,
    "ridge": lambda A: 0.3 * cp.sum_squares(A - np.eye(3)),
    "all entries": lambda A: 0.3 * cp.norm1(A),
    "off the diagonal": lambda A: cp.sum(cp.abs(A[OFF])) * 0.3,
    "log det": lambda A: -0.3 * cp.log_det(A),
    "several": lambda A: (cp.norm1(A) + cp.sum_squares(np.eye(3) - A)) / 7.0 - cp.log_det(A) / 5,
}


def with_added(problem, constraints, term, scale):
    A = problem.var_dict["A"]
    goal = problem.objective if term is None else cp.Minimize(problem.objective.expr + term(A))
    return cp.Problem(goal, problem.constraints + (constraints(A, scale) if constraints else []))


def modified(objective, constraints=None, term=None):
    """The statement of the M-step with what was added, and its variable."""
    scale = float(np.trace(solve_m_step(objective).metric))
    problem = with_added(state_m_step(objective), constraints, term, scale)
    return problem, problem.var_dict["A"], scale


def solved(problem):
    problem.solve(solver="CLARABEL")
    return problem


@pytest.mark.parametrize("seed", [pytest.param(0, marks=pytest.mark.slow), 1])
@pytest.mark.parametrize("kind", [*CONSTRAINTS, *(f"term: {name}" for name in TERMS)])
def test_the_gap_is_small_and_the_bound_below_an_independent_optimum(kind, seed):
    setting = "hyper" if seed % 2 else "proj"
    objective = random_objective(seed, setting, n=10, m=3)
    constraints, term = CONSTRAINTS.get(kind), TERMS.get(kind.removeprefix("term: "))
    term = None if constraints else term
    problem, A, scale = modified(objective, constraints, term)
    solved(problem)
    before = A.value.copy()
    certificate = certify_problem(problem, objective)
    assert np.array_equal(A.value, before)
    assert certificate.relative_gap < 2e-5
    independent = with_added(textbook_statement(objective), constraints, term, scale)
    optimum = independent.solve(solver="CLARABEL")  # of (11) word for word, with the same added
    assert certificate.dual_value <= optimum + 1e-6 * abs(optimum)
    assert certificate.primal_value >= optimum - 1e-6 * abs(optimum)
    assert problem.value == pytest.approx(certificate.primal_value, rel=1e-5)


@pytest.mark.parametrize("kind", ["a zero", "several", "upper bound", "entry by entry"])
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_wrong_multipliers_and_a_wrong_metric_give_no_false_bound(kind, seed):
    rng = np.random.default_rng(seed)
    objective = random_objective(seed, "hyper", n=10, m=3)
    problem, A, _ = modified(objective, CONSTRAINTS[kind])
    solved(problem)
    optimum = problem.value
    for size in (0.0, 0.1, 1.0, -1.0, 1e3):
        for constraint in problem.constraints:
            for dual in constraint.dual_variables:
                noise = size * rng.normal(size=dual.shape)
                dual.save_value(np.asarray(dual.value * size + noise))
        certificate = certify_problem(problem, objective)
        assert certificate.dual_value <= optimum + 1e-6 * abs(optimum)
    A.save_value(random_psd(rng, 3))
    assert certify_problem(problem, objective).dual_value <= optimum + 1e-6 * abs(optimum)


@pytest.mark.parametrize(("kind", "seed"), [("trace", 0), ("several", 3)])
def test_multipliers_help_and_are_done_without(kind, seed):
    objective = random_objective(seed, "hyper", n=10, m=3)
    problem, _, _ = modified(objective, CONSTRAINTS[kind])
    with_them = certify_problem(solved(problem), objective)
    for constraint in problem.constraints:
        for dual in constraint.dual_variables:
            dual.save_value(None)
    without = certify_problem(problem, objective)
    assert with_them.dual_value >= without.dual_value
    assert kind == "several" or without.relative_gap < 1e-5


def test_blocks_of_the_objective_stay():
    plain = random_objective(1, "hyper", n=10, m=3)
    objective = plain.with_penalties([Ridge(0.3), TraceBound(0.2)])
    problem, _, _ = modified(objective, lambda A, s: [A[0, 2] == 0.02])
    certificate = certify_problem(solved(problem), objective)
    assert certificate.relative_gap < 1e-5
    assert np.trace(certificate.metric) <= 0.2


NOT_UNDERSTOOD = {
    "norm": (None, lambda A: cp.norm(A, 2), r"This term is not understood: sigma_max\(A\)"),
    "kink": (None, lambda A: cp.pos(cp.trace(A) - 1e6), "This term is not understood: .*maximum"),
    "concave": (None, lambda A: -cp.sum_squares(A), "quad_over_lin"),
    "other entries": (None, lambda A: cp.abs(A[0, 1]), "abs"),
    "not PSD": (None, lambda A: 0.1 * A[0, 1], "B is not PSD"),
    "negative": (None, lambda A: -9.0 * cp.trace(A), "a trace weight below zero"),
    "cone": (
        lambda A, s: [cp.norm(A[0]) <= 1.0],
        None,
        "This constraint is not understood: .*norm",
    ),
    "lower bound": (lambda A, s: [A >> 0.01 * np.eye(3)], None, "not A << B"),
    "block": (lambda A, s: [A[:2, :2] << np.eye(2)], None, "not A << B"),
    "third": (lambda A, s: [3.0 * A << 0.7 * np.eye(3)], None, "without rounding"),
    "impossible": (lambda A, s: [A[0, 1] - A[1, 0] == 1.0], None, "No matrix satisfies"),
    "variable": (
        lambda A, s: [cp.trace(A) <= cp.Variable(name="t")],
        None,
        "variables besides A: t",
    ),
}


@pytest.mark.parametrize("kind", NOT_UNDERSTOOD)
def test_what_is_not_understood_is_named(kind):
    constraints, term, words = NOT_UNDERSTOOD[kind]
    objective = random_objective(0, "hyper", n=10, m=3)
    problem, A, _ = modified(objective, constraints, term)
    A.save_value(np.eye(3))
    with pytest.raises(ValueError, match=words):
        certify_problem(problem, objective)


def test_a_problem_that_is_not_the_m_steps_is_refused():
    objective = random_objective(0, "hyper", n=10, m=3)
    problem, _, _ = modified(objective)
    bounded, diagonal = (
        objective.with_penalties([block]) for block in (TraceBound(1.0), Diagonal())
    )
    of_bounded = state_m_step(bounded)
    cases = [
        (problem, objective, None, "no solution yet"),
        (problem, objective.with_trace_weight(0.5), 1.0, "lacks a part of the M-step.*lambda"),
        (cp.Problem(cp.Minimize(2.0 * problem.objective.expr)), objective, 1.0, "lacks a part"),
        (state_m_step(objective, "dual"), objective, None, 'state_m_step\\(objective, "primal"'),
        (state_m_step(diagonal), diagonal, None, "its statement no variable A"),
        (cp.Problem(of_bounded.objective), bounded, 1.0, "lacks a part of the M-step.*tr"),
        (of_bounded, bounded, np.nan, "NaN"),
    ]
    for changed, m_step, size, words in cases:
        if size is not None:
            changed.var_dict["A"].save_value(np.full((3, 3), size))
        with pytest.raises(ValueError, match=words):
            certify_problem(changed, m_step)
    problem.param_dict["lambda"].value = 0.5
    with pytest.raises(ValueError, match=r"lacks a part of the M-step.*lambda"):
        certify_problem(problem, objective)
