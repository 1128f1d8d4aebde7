"""Evidence: M-steps that were changed in CVXPY are certified, whatever was added."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from instances import random_objective

from seraph_cvx import certify_problem, solve_m_step, state_m_step
from seraph_cvx.m_step.statement import textbook_statement

M = 4
OBJECTIVE = random_objective(1, "hyper", n=16, m=M)
V = OBJECTIVE.pairs.points[0] - OBJECTIVE.pairs.points[1]
SIZE = float(np.trace(solve_m_step(OBJECTIVE).metric))
Z, W = cp.Variable(name="z"), cp.Variable(M, nonneg=True, name="w")

CHANGES = {
    "trace": lambda A: [cp.trace(A) <= 0.6 * SIZE],
    "diagonal from below": lambda A: [cp.diag(A) >= 0.1 * SIZE],
    "lower bound": lambda A: [A >> 0.1 * SIZE * np.eye(M)],
    "Frobenius ball": lambda A: [cp.norm(A, "fro") <= 0.4 * SIZE],
    "an extra variable": lambda A: [A[0, 0] >= Z, cp.square(Z - SIZE)],
    "absolute values": lambda A: 0.3 * cp.norm1(A),
    "log det": lambda A: -0.3 * cp.log_det(A),
    "nuclear norm": lambda A: 0.3 * cp.normNuc(A),
    "Huber": lambda A: cp.huber(A[0, 0] - 1.0, 0.1),
    "hinge": lambda A: 3.0 * cp.pos(1.0 - cp.sum(cp.multiply(np.outer(V, V), A))),
    "two largest of the diagonal": lambda A: cp.sum_largest(cp.diag(A), 2),
}
FAST = ("trace", "lower bound", "two largest of the diagonal", "an extra variable")


def changed(statement, change):
    """The statement with constraints and terms added, and their list."""
    added = change(statement.var_dict["A"])
    parts = added if isinstance(added, list) else [added]
    terms = [part for part in parts if isinstance(part, cp.Expression)]
    constraints = [part for part in parts if not isinstance(part, cp.Expression)]
    goal = sum(terms, statement.objective.expr)
    return cp.Problem(cp.Minimize(goal), [*statement.constraints, *constraints])


@pytest.mark.parametrize(
    "kind",
    [kind if kind in FAST else pytest.param(kind, marks=pytest.mark.slow) for kind in CHANGES],
)
def test_a_changed_m_step_is_certified(kind):
    problem = changed(state_m_step(OBJECTIVE), CHANGES[kind])
    certificate = certify_problem(problem)
    assert certificate.relative_gap <= 1e-6
    independent = changed(textbook_statement(OBJECTIVE), CHANGES[kind])  # (11) word for word
    optimum = independent.solve(solver="CLARABEL")
    assert certificate.lower <= optimum + 1e-6 * abs(optimum)
    assert certificate.upper >= optimum - 1e-6 * abs(optimum)


def test_the_m_step_written_by_hand_and_twice_itself_are_certified():
    """And agree with the certificate of the M-step itself, which is of the points."""
    own = solve_m_step(OBJECTIVE).certificate
    problem = textbook_statement(OBJECTIVE)
    twice = certify_problem(cp.Problem(cp.Minimize(2.0 * problem.objective.expr)))
    for certificate, times in ((certify_problem(problem), 1.0), (twice, 2.0)):
        assert certificate.relative_gap <= 1e-6
        assert certificate.lower <= times * own.primal_value * (1.0 + 1e-12)
        assert certificate.upper >= times * own.dual_value * (1.0 - 1e-12)
