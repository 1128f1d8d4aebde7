"""Evidence: confidences c_k and the manifold term nu*X'LX, in f, (7), J, statements, certificate.

The reference are the formulas of the paper: a pair of confidence k/4 is k pairs, a quarter each.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from instances import explicit_soft_labels, random_pairs, random_psd

from seraph_cvx import (
    MStepObjective,
    OptimumNotAttained,
    PairSet,
    Status,
    alternate,
    certify,
    paper,
    solve_m_step,
    state_m_step,
)
from seraph_cvx.fit.direct import minimize_directly
from seraph_cvx.m_step.statement import textbook_statement
from seraph_cvx.model.programs import SemiSupervisedObjective, descent_values
from seraph_cvx.pairs.labeled_pairs import LabeledPairs
from seraph_cvx.penalties import manifold_term

NO_PAIRS = np.zeros((0, 2), dtype=int)


def with_confidence(pairs, c):
    return replace(pairs, labels=LabeledPairs(pairs.similar, pairs.dissimilar, c))


def weighted_objective(seed, mu=0.4, trace_weight=0.6, n=18, m=4):
    rng = np.random.default_rng([seed, 3])
    pairs = random_pairs(seed, n=n, m=m)
    return MStepObjective(
        with_confidence(pairs, rng.integers(1, 13, pairs.n_labeled) / 4.0),
        previous_metric=random_psd(rng, m),
        unlabeled_weight=mu,
        trace_weight=trace_weight,
        threshold=1.7,
        manifold_term=manifold_term(pairs.points, 0.3, n_neighbors=3),
    )


def weighted(objective, formula, A, **more):
    """A formula of the paper, to be minimized, with confidences and the manifold term."""
    pairs, eta = objective.pairs, objective.threshold
    copies = np.asarray(4.0 * pairs.confidence, dtype=int)
    S, D = np.split(np.arange(pairs.n_labeled), [len(pairs.similar)])
    S, D = (np.repeat(pairs.labeled[rows], copies[rows], axis=0) for rows in (S, D))
    nothing = {name: value[:0] for name, value in more.items()}
    R = objective.trace_weight * np.eye(len(A)) + objective.manifold_term
    labeled = formula(pairs.points, S, D, NO_PAIRS, *nothing.values(), A, mu=0.0, lam=0.0, eta=eta)
    unlabeled = NO_PAIRS, NO_PAIRS, pairs.unlabeled
    rest = formula(pairs.points, *unlabeled, *more.values(), A, mu=objective.mu, lam=0.0, eta=eta)
    is_value = np.ndim(labeled) == 0
    return -(labeled / 4.0 + rest) + (np.sum(R * A) if is_value else R)


@pytest.mark.parametrize("mu", [0.0, 0.4])
@pytest.mark.parametrize("seed", range(4))
def test_formulas_agree_f_7_and_j_with_those_of_the_paper(seed, mu):
    objective = weighted_objective(seed, mu)
    A, q = random_psd(np.random.default_rng(seed), 4), explicit_soft_labels(objective)
    value, gradient = (
        weighted(objective, f, A, q=q) for f in (paper.m_step, paper.m_step_gradient)
    )
    assert objective.value(A) == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(objective.gradient(A), gradient, rtol=1e-10, atol=1e-10)
    of_7 = weighted(objective, paper.simplified_objective, A)
    own, slopes = SemiSupervisedObjective(objective).value_and_gradient(A)
    assert own == pytest.approx(of_7, rel=1e-12)
    for D in np.random.default_rng(seed).normal(size=(3, 4, 4)):
        step = 1e-5 * (D + D.T)
        ends = [weighted(objective, paper.simplified_objective, A + t * step) for t in (1, -1)]
        assert np.vdot(slopes, step) == pytest.approx((ends[0] - ends[1]) / 2.0, rel=1e-6, abs=1e-9)
    q = explicit_soft_labels(replace(objective, previous_metric=A))
    J = weighted(objective, paper.m_step, A, q=q)
    J -= objective.mu / objective.sharpness * np.sum(paper.entropy(q))
    assert descent_values(objective, A) == pytest.approx((J, of_7), rel=1e-12)


def test_weight_1_is_no_weight_and_the_ratio_counts_pairs():
    pairs = random_pairs(5)
    A, ones = random_psd(np.random.default_rng(5), 4), np.ones(pairs.n_labeled)
    plain, same = MStepObjective(pairs), MStepObjective(with_confidence(pairs, ones))
    assert same.value(A) == pytest.approx(plain.value(A), rel=1e-13)
    np.testing.assert_allclose(same.gradient(A), plain.gradient(A), rtol=1e-12, atol=1e-12)
    assert MStepObjective(with_confidence(pairs, 7.0 * ones)).mu == plain.mu
    assert plain.mu == pairs.n_labeled / pairs.n_unlabeled


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")  # values judge, not words
@pytest.mark.filterwarnings("ignore::seraph_cvx.NotCertified")
@pytest.mark.parametrize("seed", range(3))
def test_every_statement_and_solver_has_the_same_optimum(seed):
    objective = weighted_objective(seed, n=14, m=3)
    optimum = solve_m_step(objective, tol=1e-9)
    assert optimum.status is Status.CERTIFIED
    assert solve_m_step(objective, "projected-gradient").status is Status.CERTIFIED
    for solver in ("CLARABEL", "SCS"):
        answer = solve_m_step(objective, solver, tol=1e-7)
        assert answer.value <= optimum.certificate.dual_value * (1.0 + 1e-5)
    statements = [state_m_step(objective), textbook_statement(objective)]
    for problem in statements:
        assert "nu <X'LX, A>" in problem.format_labeled()
    statements.append(state_m_step(objective, "dual"))
    for problem in statements:
        assert problem.is_dcp(dpp=True)
        assert "c " in problem.format_labeled()
        assert problem.solve(solver="CLARABEL") == pytest.approx(optimum.value, rel=1e-6)


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


def test_a_manifold_weight_of_zero_changes_nothing():
    pairs = random_pairs(2)
    plain = solve_m_step(MStepObjective(pairs))
    zero = solve_m_step(MStepObjective(pairs, manifold_term=manifold_term(pairs.points, 0.0)))
    np.testing.assert_allclose(zero.metric, plain.metric, rtol=0, atol=1e-7)


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
def test_moments_are_inherited_only_where_they_serve(mu):
    """Other trace weights of a path, with directions that only the manifold term sees."""
    X = np.random.default_rng(4).normal(size=(12, 5))
    pairs = PairSet.from_constraints(X, [(0, 1)], [(2, 3), (1, 4)])
    first = MStepObjective(
        pairs, unlabeled_weight=mu, trace_weight=5.0, manifold_term=manifold_term(X, 0.5)
    )
    first.whitening  # noqa: B018 - what is inherited is made
    later, fresh = first.with_trace_weight(0.05), replace(first, trace_weight=0.05)
    assert solve_m_step(later).value == pytest.approx(solve_m_step(fresh).value, rel=1e-8)
    assert solve_m_step(later).status is Status.CERTIFIED


def test_the_critical_trace_weight_knows_both():
    objective = weighted_objective(6)
    critical = objective.critical_trace_weight
    assert critical > 0.0
    above, below = (
        np.trace(solve_m_step(objective.with_trace_weight(share * critical)).metric)
        for share in (1.001, 0.99)
    )
    assert above <= 1e-6
    assert below > 1e-4


@pytest.mark.parametrize("kernel", ["heat", "binary"])
@pytest.mark.parametrize("normalized", [False, True])
def test_the_manifold_term_is_the_laplacian_of_the_graph(kernel, normalized):
    """X'LX with L formed as a full matrix, from weights found by looking at every pair."""
    X = np.random.default_rng(1).normal(size=(15, 3)) + 100.0
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
    objective = replace(weighted_objective(0), unlabeled_weight="ratio", trace_weight=1.0)
    objective = replace(objective, threshold=1.0)
    pairs, term = objective.pairs, objective.manifold_term
    run = alternate(pairs, manifold_term=term)
    assert run.status is Status.CERTIFIED
    assert np.array_equal(run.objective.manifold_term, term)
    values = [iteration.descent_value for iteration in run.history]
    assert all(after <= before + 1e-9 for before, after in itertools.pairwise(values))
    direct = minimize_directly(pairs, manifold_term=term, tol=1e-5)
    at_end = weighted(objective, paper.simplified_objective, direct.metric)
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
