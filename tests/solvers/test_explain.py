"""The DCP proof tree says what CVXPY says, node by node."""

from __future__ import annotations

import cvxpy as cp
import pytest
from instances import random_objective

from seraph_cvx import state_m_step
from seraph_cvx.m_step.explain import explain_convexity
from seraph_cvx.m_step.statement import textbook_statement


@pytest.mark.parametrize("statement", ["primal", "dual", "textbook"])
def test_every_m_step_is_proved_convex(statement):
    objective = random_objective(0, "hyper")
    problem = (
        textbook_statement(objective)
        if statement == "textbook"
        else state_m_step(objective, statement)
    )
    proof = explain_convexity(problem)
    assert proof.holds
    assert proof.curvature == "CONVEX"
    assert all(node.rule for node in proof.walk())


def test_the_tree_names_the_logistic_rule_and_the_terms_of_11():
    text = str(explain_convexity(state_m_step(random_objective(0, "hyper"))))
    assert "logistic is convex and nondecreasing: of an affine argument it is convex" in text
    for term in ("sum_SD log(1 + e^s)", "(-<G, A>)", "lambda tr(A)", "a PSD variable"):
        assert term in text


def test_a_problem_that_is_not_convex_is_not_proved_convex():
    x = cp.Variable(name="x")
    proof = explain_convexity(cp.Problem(cp.Minimize(cp.sqrt(x) + cp.square(x))))
    assert not proof.holds
    assert proof.rule == "no DCP rule applies"


def test_a_constraint_that_is_not_convex_is_found():
    x = cp.Variable(2, name="x")
    proof = explain_convexity(cp.Problem(cp.Minimize(cp.sum(x)), [cp.sum_squares(x) >= 1]))
    assert proof.curvature == "UNKNOWN"
    assert not proof.holds


def test_maximising_a_convex_function_is_not_proved():
    x = cp.Variable(name="x")
    assert not explain_convexity(cp.Problem(cp.Maximize(cp.square(x)))).holds
