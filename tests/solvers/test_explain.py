"""The DCP proof tree says what CVXPY says, node by node."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from instances import random_objective

from seraph_cvx import state_m_step
from seraph_cvx.m_step.explain import explain_convexity
from seraph_cvx.m_step.statement import textbook_statement
from seraph_cvx.penalties import (
    Diagonal,
    LinearConstraints,
    LogDet,
    Ridge,
    Sparse,
    TraceBound,
    UpperBound,
)


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


BLOCKS = {
    "w/2 ||A - prior||^2": Ridge(0.5, prior=np.eye(4)),
    "w LogDet(A, prior)": LogDet(0.5),
    "w sum_ij |A_ij|": Sparse(0.3),
    "constraint tr(A) <= t": TraceBound(2.0),
    "constraint A <= B": UpperBound(np.eye(4)),
    "constraint <B_i, A> <= t_i": LinearConstraints([np.eye(4), np.ones((4, 4))], upper=1.0),
    "constraint <B_i, A> = t_i": LinearConstraints(np.ones((4, 4)), equal=1.0),
    "A = diag(w)": Diagonal(),
}


@pytest.mark.parametrize("label", BLOCKS)
@pytest.mark.parametrize("formulation", ["primal", "dual"])
def test_a_block_has_its_label_and_its_rules_in_the_tree(label, formulation):
    objective = random_objective(0, "hyper").with_penalties([BLOCKS[label]])
    proof = explain_convexity(state_m_step(objective, formulation))
    text = str(proof)
    assert proof.holds
    assert "UNKNOWN" not in text
    nodes = [node.expression for node in proof.walk()]
    dual = "constraint diag(M(p)) >= 0" if "diag" in label else "constraint M(p) + Z PSD"
    assert (label if formulation == "primal" else dual) in nodes
    assert len(text.split("\n")) == len(nodes), "a line for each node"
    for word in ("diag_mat", "diag_vec", "quad_over_lin", "Promote", "special_index", "@ reshape"):
        assert word not in text


def test_a_penalty_is_explained_down_to_the_metric():
    objective = random_objective(0, "hyper").with_penalties([Sparse(0.3), TraceBound(2.0)])
    text = str(explain_convexity(state_m_step(objective)))
    tail = text[text.index("w sum_ij |A_ij|") :]
    assert "abs is convex: of an affine argument it is convex" in tail
    assert "w1: CONSTANT, NONNEGATIVE (a parameter)" in tail
    bound = tail[tail.index("constraint tr(A) <= t: CONVEX (affine on both sides)") :]
    assert "trace: AFFINE, NONNEGATIVE" in bound
    assert "w2: CONSTANT" in bound


def test_a_constraint_whose_formula_is_long_is_named_in_short():
    x = cp.Variable(40, name="x")
    long = cp.Problem(cp.Minimize(cp.sum(x)), [np.random.default_rng(0).random((50, 40)) @ x == 1])
    text = str(explain_convexity(long))
    assert "constraint product 50 == 1.0: CONVEX (affine on both sides)" in text
