"""The DCP proof tree says what CVXPY says, node by node."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from instances import random_objective

from seraph_cvx import state_m_step
from seraph_cvx.display.proof_tree import draw_tree
from seraph_cvx.m_step.explain import explain_convexity
from seraph_cvx.m_step.statement import textbook_statement
from seraph_cvx.penalties import (
    Diagonal,
    LogDet,
    Ridge,
    Sparse,
    TraceBound,
)

HYPER = random_objective(0, "hyper")
STATEMENTS = {
    "primal": state_m_step(HYPER),
    "dual": state_m_step(HYPER, "dual"),
    "textbook": textbook_statement(HYPER),
}


@pytest.mark.parametrize("statement", STATEMENTS)
def test_every_m_step_is_proved_convex_by_rules_with_names(statement):
    proof = explain_convexity(STATEMENTS[statement])
    assert (proof.holds, proof.curvature) == (True, "CONVEX")
    assert all(node.rule for node in proof.walk())
    if statement == "primal":
        text = draw_tree(proof, width=None)
        assert "logistic is convex and nondecreasing: of an affine argument it is convex" in text
        for term in ("∑_{𝒮 ∪ 𝒟} log(1 + e^s)", "(-⟨G, A⟩)", "λ tr(A)", "a PSD variable"):
            assert term in text


X = cp.Variable(2, name="x")


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (cp.Problem(cp.Minimize(cp.sqrt(X[0])), [X >= 0.5]), "not convex: at the midpoint it is"),
        (cp.Problem(cp.Maximize(cp.norm(X)), [X <= 1]), "not concave: at the midpoint it is"),
        (cp.Problem(cp.Minimize(X[0] * X[1])), "not convex: at the midpoint"),
        (cp.Problem(cp.Minimize(X[0]), [cp.norm(X) >= 1]), "both ends satisfy it, the midpoint"),
    ],
    ids=["a root", "a norm maximized", "a product", "a set with a hole"],
)
def test_a_problem_that_is_not_convex_is_refuted_by_two_points(problem, words):
    """The values at the two points, read from the chord, say so."""
    X.value = None
    proof = explain_convexity(problem)
    assert (proof.holds, proof.curvature) == (False, "UNKNOWN")
    (node,) = (node for node in proof.children if node.refutation is not None)
    assert X.value is None
    assert words in str(node.refutation)
    x, y = (end[0] for end in node.refutation.ends)
    values = []
    for point in (x, y, (x + y) / 2.0):
        whole = np.resize(point, 2) if point.shape == (2,) else point
        X.value = whole
        f = problem.objective.expr.value
        values.append(f if "midpoint it" in words or "at the" in words else -cp.norm(X).value)
    sign = -1.0 if isinstance(problem.objective, cp.Maximize) else 1.0
    assert sign * values[2] > sign * (values[0] + values[1]) / 2.0
    X.value = None


def test_what_is_convex_but_not_by_the_rules_is_not_settled():
    proof = explain_convexity(cp.Problem(cp.Minimize(cp.sqrt(1.0 + cp.square(X[0])))))
    assert proof.children[0].refutation is None
    assert "not settled" in proof.children[0].rule


BLOCKS = {
    "w/2 ||A - prior||^2": Ridge(0.5, prior=np.eye(4)),
    "w LogDet(A, prior)": LogDet(0.5),
    "w sum_ij |A_ij|": Sparse(0.3),
    "constraint tr(A) <= t": TraceBound(2.0),
    "constraint A diagonal": Diagonal(),
}


@pytest.mark.parametrize("label", BLOCKS)
def test_a_block_has_its_label_and_its_rules_in_the_tree(label):
    proof = explain_convexity(state_m_step(HYPER.with_penalties([BLOCKS[label]])))
    text = draw_tree(proof, width=None)
    assert proof.holds
    assert "UNKNOWN" not in text
    assert label in [node.expression for node in proof.walk()]


def test_the_tree_is_drawn_within_its_width_and_what_comes_again_only_once():
    proof = explain_convexity(STATEMENTS["primal"])
    assert max(map(len, draw_tree(proof, 80).split("\n"))) <= 80
    lines = draw_tree(proof, None).split("\n")
    drawn = [line for line in lines if "s = v^⊤Av - η" in line]
    assert [line.endswith("AFFINE (as above)") for line in drawn] == [False, True]
    assert len(lines) < sum(1 for _ in proof.walk())
