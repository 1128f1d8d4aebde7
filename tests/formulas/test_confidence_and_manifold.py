"""Evidence: confidences c_k and the manifold term nu*X'LX, in f, (7), J, statements, certificate.

The reference is a double loop over pairs (naive.py).
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import naive
import numpy as np
import pytest
from cbf_reader import read_cbf
from instances import explicit_soft_labels, random_pairs, random_psd

from seraph_cvx import (
    MStepObjective,
    OptimumNotAttained,
    PairSet,
    Status,
    alternate,
    certify,
    solve_m_step,
    state_m_step,
)
from seraph_cvx.fit.direct import minimize_directly
from seraph_cvx.m_step.statement import textbook_statement
from seraph_cvx.model.semi_supervised import SemiSupervisedObjective, descent_values
from seraph_cvx.pairs.labeled_pairs import LabeledPairs
from seraph_cvx.penalties.manifold import manifold_term
from seraph_cvx.race.cbf import write_cbf


def with_confidence(pairs, c):
    return replace(pairs, labels=LabeledPairs(pairs.similar, pairs.dissimilar, c))


def weighted_objective(seed, mu=0.4, trace_weight=0.6, manifold=True, n=18, m=4, **more):
    rng = np.random.default_rng([seed, 3])
    pairs = random_pairs(seed, n=n, m=m)
    pairs = with_confidence(pairs, rng.uniform(0.1, 3.0, pairs.n_labeled))
    term = manifold_term(pairs.points, 0.3, n_neighbors=3) if manifold else None
    return MStepObjective(
        pairs,
        previous_metric=random_psd(rng, m),
        unlabeled_weight=mu,
        trace_weight=trace_weight,
        threshold=1.7,
        manifold_term=term,
        **more,
    )


def naive_arguments(objective):
    return (objective.mu, objective.trace_weight, objective.threshold)


@pytest.mark.parametrize("mu", [0.0, 0.4])
@pytest.mark.parametrize("seed", range(4))
def test_value_and_gradient_are_those_of_the_loop(seed, mu):
    objective = weighted_objective(seed, mu)
    A = random_psd(np.random.default_rng(seed), 4)
    q = explicit_soft_labels(objective)
    value, gradient = naive.m_step(
        objective.pairs, q, *naive_arguments(objective), A, objective.manifold_term
    )
    assert objective.value(A) == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(objective.gradient(A), gradient, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_objective_7_and_j_are_those_of_the_loop(seed):
    objective = weighted_objective(seed)
    A = random_psd(np.random.default_rng(seed), 4)
    value, gradient = naive.semi_supervised(
        objective.pairs, *naive_arguments(objective), A, objective.manifold_term
    )
    own = SemiSupervisedObjective(objective).value_and_gradient(A)
    assert own[0] == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(own[1], gradient, rtol=1e-10, atol=1e-10)
    updated = replace(objective, previous_metric=A)
    J = naive.descent(
        objective.pairs,
        explicit_soft_labels(updated),
        objective.mu,
        objective.sharpness,
        objective.trace_weight,
        objective.threshold,
        A,
        objective.manifold_term,
    )
    assert descent_values(objective, A) == pytest.approx((J, value), rel=1e-12)


def test_weight_1_is_no_weight_and_weight_2_doubles_the_term():
    pairs = random_pairs(5)
    A = random_psd(np.random.default_rng(5), 4)
    plain = MStepObjective(pairs).value(A)
    ones = with_confidence(pairs, np.ones(pairs.n_labeled))
    assert MStepObjective(ones).value(A) == pytest.approx(plain, rel=1e-13)
    np.testing.assert_allclose(
        MStepObjective(ones).gradient(A), MStepObjective(pairs).gradient(A), rtol=1e-12, atol=1e-12
    )
    labels = naive.weak_labels(pairs)
    for k in (0, pairs.n_labeled - 1):
        c = np.ones(pairs.n_labeled)
        c[k] = 2.0
        i, j = pairs.labeled[k]
        term = naive.softplus(labels[i, j] * naive.score(pairs.points, i, j, A, 1.0))
        heavier = MStepObjective(with_confidence(pairs, c)).value(A)
        assert heavier - plain == pytest.approx(term, rel=1e-9)


def test_the_ratio_counts_pairs_not_confidence():
    pairs = random_pairs(5)
    heavy = with_confidence(pairs, np.full(pairs.n_labeled, 7.0))
    expected = pairs.n_labeled / pairs.n_unlabeled
    assert MStepObjective(heavy).mu == MStepObjective(pairs).mu == expected


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")  # values judge, not words
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("formulation", ["primal", "dual", "textbook"])
def test_every_statement_carries_both(seed, formulation):
    objective = weighted_objective(seed, n=14, m=3)
    problem = (
        textbook_statement(objective)
        if formulation == "textbook"
        else state_m_step(objective, formulation)
    )
    assert problem.is_dcp(dpp=True)
    optimum = solve_m_step(objective, tol=1e-9)
    assert problem.solve(solver="CLARABEL") == pytest.approx(optimum.value, rel=1e-6)
    assert "c " in problem.format_labeled()
    assert formulation == "dual" or "nu <X'LX, A>" in problem.format_labeled()


@pytest.mark.parametrize("solver", ["fista", "projected-gradient"])
def test_every_own_solver_is_certified_on_it(solver):
    solution = solve_m_step(weighted_objective(1, n=14, m=3), solver, tol=1e-8)
    assert solution.status is Status.CERTIFIED
    assert solution.certificate.relative_gap <= 1e-8


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.filterwarnings("ignore::seraph_cvx.NotCertified")
@pytest.mark.parametrize("solver", ["CLARABEL", "SCS"])
def test_every_conic_solver_comes_near_its_optimum(solver):
    objective = weighted_objective(1, n=14, m=3)
    bound = solve_m_step(objective).certificate.dual_value
    assert solve_m_step(objective, solver, tol=1e-7).value <= bound * (1.0 + 1e-5)


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
def test_the_exported_cone_program_has_the_same_optimum(tmp_path):
    objective = weighted_objective(2, n=12, m=3)
    optimum = solve_m_step(objective).value
    for formulation in ("primal", "dual"):
        write_cbf(objective, tmp_path / "x.cbf", formulation)
        problem, _ = read_cbf(tmp_path / "x.cbf").to_cvxpy()
        assert problem.solve(solver="CLARABEL") == pytest.approx(optimum, rel=1e-6)


@pytest.mark.parametrize("mu", [0.0, 0.4])
@pytest.mark.parametrize("trace_weight", [0.0, 0.6])
def test_weak_duality_at_random_points(mu, trace_weight):
    for seed in range(5):
        objective = weighted_objective(seed, mu, trace_weight)
        rng = np.random.default_rng(seed)
        best = min(certify(objective, random_psd(rng, 4, s)).primal_value for s in (0.1, 1, 10))
        for size in (1e-3, 1.0, 1e3):
            certificate = certify(objective, random_psd(rng, 4, size))
            assert certificate.dual_value <= best
            assert np.isfinite(certificate.relative_gap)


def test_the_dual_value_is_that_of_a_feasible_point():
    """D and M(p) by the loop, at the dual point of the gradient: feasible, and what is claimed."""
    objective = weighted_objective(3)
    solution = solve_m_step(objective, tol=1e-10)
    q = explicit_soft_labels(objective)
    V, c, b = naive.pair_terms(objective.pairs, q, objective.mu)
    s = np.einsum("ki,ij,kj->k", V, solution.metric, V) - objective.threshold
    p = 1.0 / (1.0 + np.exp(-s))
    M = naive.dual_matrix(p, V, c, b, objective.trace_weight) + objective.manifold_term
    assert np.linalg.eigvalsh(M)[0] >= -1e-6
    assert naive.dual_value(p, c, b, objective.threshold) == pytest.approx(
        solution.certificate.dual_value, rel=1e-6
    )


def test_a_manifold_weight_of_zero_changes_nothing():
    pairs = random_pairs(2)
    plain = solve_m_step(MStepObjective(pairs))
    zero = solve_m_step(MStepObjective(pairs, manifold_term=manifold_term(pairs.points, 0.0)))
    np.testing.assert_allclose(zero.metric, plain.metric, rtol=0, atol=1e-7)


def test_the_manifold_term_can_make_the_optimum_exist():
    """With lambda = 0 and one dissimilar pair f falls for ever; nu*X'LX on all points stops it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 3))
    pairs = PairSet.from_constraints(X, [(0, 1)], [(2, 3)])
    alone = MStepObjective(pairs, unlabeled_weight=0.0, trace_weight=0.0)
    with pytest.raises(OptimumNotAttained):
        solve_m_step(alone)
    held = replace(alone, manifold_term=manifold_term(X, 0.1, n_neighbors=4))
    assert held.attains_optimum
    assert solve_m_step(held).status is Status.CERTIFIED


@pytest.mark.parametrize("mu", [0.0, 0.4])
def test_moments_are_inherited_only_where_they_serve(mu):
    """Other trace weights of a path, with directions that only the manifold term sees."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(12, 5))
    pairs = PairSet.from_constraints(X, [(0, 1)], [(2, 3), (1, 4)])
    first = MStepObjective(
        pairs, unlabeled_weight=mu, trace_weight=5.0, manifold_term=manifold_term(X, 0.5)
    )
    first.whitening  # noqa: B018 - what is inherited is made
    later = first.with_trace_weight(0.05)
    fresh = replace(first, trace_weight=0.05)
    assert solve_m_step(later).value == pytest.approx(solve_m_step(fresh).value, rel=1e-8)
    assert solve_m_step(later).status is Status.CERTIFIED


def test_the_critical_trace_weight_knows_both():
    objective = weighted_objective(6)
    critical = objective.critical_trace_weight
    assert critical > 0.0
    above = solve_m_step(objective.with_trace_weight(1.001 * critical))
    below = solve_m_step(objective.with_trace_weight(0.99 * critical))
    assert np.trace(above.metric) <= 1e-6
    assert np.trace(below.metric) > 1e-4


@pytest.mark.parametrize("kernel", ["heat", "binary"])
@pytest.mark.parametrize("normalized", [False, True])
def test_the_manifold_term_is_the_laplacian_of_the_graph(kernel, normalized):
    """X'LX with L formed as a full matrix, from weights found by looking at every pair."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(15, 3)) + 100.0
    n, k = len(X), 4
    d2 = np.sum((X[:, None] - X) ** 2, axis=2)
    nearest = np.argsort(d2 + np.diag([np.inf] * n), axis=1)[:, :k]
    joined = np.zeros((n, n), dtype=bool)
    for i in range(n):
        joined[i, nearest[i]] = joined[nearest[i], i] = True
    W = joined * (np.exp(-d2 / d2[joined].mean()) if kernel == "heat" else 1.0)
    L = np.diag(W.sum(axis=1)) - W
    centered = X - X.mean(axis=0)
    if normalized:
        root = np.diag(1.0 / np.sqrt(W.sum(axis=1)))
        L = root @ L @ root
    np.testing.assert_allclose(
        manifold_term(X, 2.0, k, kernel, normalized), 2.0 * centered.T @ L @ centered, rtol=1e-9
    )


def test_the_alternation_and_direct_take_both():
    objective = weighted_objective(0)
    pairs, term = objective.pairs, objective.manifold_term
    run = alternate(pairs, manifold_term=term)
    assert run.status is Status.CERTIFIED
    assert np.array_equal(run.objective.manifold_term, term)
    values = [iteration.descent_value for iteration in run.history]
    assert all(after <= before + 1e-9 for before, after in itertools.pairwise(values))
    direct = minimize_directly(pairs, manifold_term=term, tol=1e-5)
    at_end, _ = naive.semi_supervised(pairs, run.objective.mu, 1.0, 1.0, direct.metric, term)
    assert direct.value == pytest.approx(at_end, rel=1e-10)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"n_neighbors": 0}, "n_neighbors=0"),
        ({"kernel": "cosy"}, "heat"),
        ({"laplacian_weight": -1.0}, "laplacian_weight=-1"),
    ],
)
def test_a_wrong_graph_is_refused_in_words(wrong, words):
    with pytest.raises(ValueError, match=words):
        manifold_term(np.eye(4), **wrong)
