"""Evidence: confidences c_k and the manifold term nu*X'LX in solvers, statements and certificate.

`test_formulas_agree.py` compares their sums with the formulas of the paper.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from instances import by_the_paper, descended, weighted_objective

from seraph_cvx import (
    MStepObjective,
    OptimumNotAttained,
    PairSet,
    Status,
    alternate,
    paper,
    solve_m_step,
    state_m_step,
)
from seraph_cvx.m_step.statement import textbook_statement
from seraph_cvx.penalties import manifold_term


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")  # values judge, not words
@pytest.mark.filterwarnings("ignore::seraph_cvx.NotCertified")
def test_every_statement_and_solver_has_the_same_optimum():
    objective = weighted_objective(0, n=14, m=3)
    optimum = solve_m_step(objective, tol=1e-9)
    assert optimum.status is Status.CERTIFIED
    assert solve_m_step(objective, "projected-gradient").status is Status.CERTIFIED
    for solver in ("CLARABEL", "SCS"):
        answer = solve_m_step(objective, solver, tol=1e-7)
        assert answer.value <= optimum.certificate.dual_value * (1.0 + 1e-5)
    statements = [state_m_step(objective), textbook_statement(objective)]
    for problem in statements:
        assert "nu <X'LX, A>" in problem.format_labeled()
    for problem in [*statements, state_m_step(objective, "dual")]:
        assert problem.is_dcp(dpp=True)
        assert "c " in problem.format_labeled()
        assert problem.solve(solver="CLARABEL") == pytest.approx(optimum.value, rel=1e-6)


def test_the_manifold_term_can_make_the_optimum_exist():
    """With lambda = 0 and one dissimilar pair f falls for ever; nu*X'LX on all points stops it."""
    X = np.random.default_rng(0).normal(size=(12, 3))
    pairs = PairSet.from_constraints(X, [(0, 1)], [(2, 3)])
    alone = MStepObjective(pairs, unlabeled_weight=0.0, trace_weight=0.0)
    with pytest.raises(OptimumNotAttained):
        solve_m_step(alone)
    held = replace(alone, manifold_term=manifold_term(X, 0.1, n_neighbors=4))
    assert held.attains_optimum
    assert solve_m_step(held).status is Status.CERTIFIED


@pytest.mark.parametrize("mu", [0.0, 0.4])
def test_moments_are_inherited_only_where_they_are_valid(mu):
    """Other trace weights of a path, with directions that only the manifold term sees."""
    X = np.random.default_rng(4).normal(size=(12, 5))
    pairs = PairSet.from_constraints(X, [(0, 1)], [(2, 3), (1, 4)])
    settings = {"unlabeled_weight": mu, "manifold_term": manifold_term(X, 0.5)}
    first = MStepObjective(pairs, trace_weight=5.0, **settings)
    first.moments.whitening  # noqa: B018 - what is inherited is made
    later = solve_m_step(first.with_trace_weight(0.05))
    fresh = solve_m_step(MStepObjective(pairs, trace_weight=0.05, **settings))
    assert later.value == pytest.approx(fresh.value, rel=1e-8)
    assert later.status is Status.CERTIFIED


def test_the_critical_trace_weight_knows_both():
    objective = weighted_objective(6)
    critical = objective.critical_trace_weight
    above, below = (
        np.trace(solve_m_step(objective.with_trace_weight(share * critical)).metric)
        for share in (1.001, 0.99)
    )
    assert above <= 1e-6
    assert below > 1e-4


def test_the_manifold_term_is_the_laplacian_of_the_graph():
    """X'LX with L formed as a full matrix, from weights found by looking at every pair."""
    X = np.random.default_rng(1).normal(size=(15, 3)) + 100.0
    d2 = np.sum((X[:, None] - X) ** 2, axis=2)
    rank = np.argsort(np.argsort(d2, axis=1), axis=1)  # 0 is the point itself
    joined = (rank > 0) & (rank <= 4)
    joined |= joined.T
    W = joined * np.exp(-d2 / d2[joined].mean())
    L = np.diag(W.sum(axis=1)) - W
    centered = X - X.mean(axis=0)
    np.testing.assert_allclose(manifold_term(X, 2.0, 4), 2.0 * centered.T @ L @ centered, rtol=1e-9)


def test_the_alternation_and_direct_take_both():
    objective = weighted_objective(0)
    pairs, term = objective.pairs, objective.manifold_term
    run = alternate(pairs, manifold_term=term)
    assert run.status is Status.CERTIFIED
    assert np.array_equal(run.objective.manifold_term, term)
    values = [iteration.descent_value for iteration in run.history]
    assert all(after <= before + 1e-9 for before, after in itertools.pairwise(values))
    direct = descended(pairs, manifold_term=term, tol=1e-5)
    plain = MStepObjective(pairs, manifold_term=term)
    at_end = by_the_paper(plain, paper.simplified_objective, direct.metric)
    assert direct.value == pytest.approx(at_end, rel=1e-10)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"n_neighbors": 0}, "n_neighbors=0"),
        ({"laplacian_weight": -1.0}, "laplacian_weight=-1"),
    ],
)
def test_a_wrong_graph_is_refused_in_words(wrong, words):
    with pytest.raises(ValueError, match=words):
        manifold_term(np.eye(4), **wrong)
