"""Evidence: the one function with its three losses, by finite differences and pair by pair."""

from __future__ import annotations

import numpy as np
import pytest
from instances import random_objective, random_pairs

from seraph_cvx import MStepObjective, PairSet
from seraph_cvx.engine import layout, passes
from seraph_cvx.model.pair_losses import EntropyLoss, LogisticLoss, SharpenedLoss
from seraph_cvx.model.pair_program import PairProgram
from seraph_cvx.model.programs import descent_program, paper_program

LOSSES = [
    LogisticLoss(),
    SharpenedLoss(2.0),
    SharpenedLoss(1.3),
    SharpenedLoss(0.5),
    SharpenedLoss(5.0),
    EntropyLoss(),
]
SCORES = np.concatenate([np.linspace(-30.0, 30.0, 121), [-700.0, 700.0, 1e-9, -1e-9]])


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_losses_have_the_derivatives_they_say(loss):
    s, step = SCORES[np.abs(SCORES) < 100.0], 1e-5
    found = loss.sums(s)
    slope = (loss.value(s + step) - loss.value(s - step)) / (2.0 * step)
    curvature = (loss.sums(s + step).slope - loss.sums(s - step).slope) / (2.0 * step)
    np.testing.assert_allclose(found.slope, slope, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(found.curvature, curvature, rtol=0.0, atol=2e-9)
    assert found.total == pytest.approx(np.sum(loss.value(s)), rel=1e-13)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_losses_swept_over_distances_are_the_same(loss):
    total, slope = loss.device_sums(SCORES + 1.0, 1.0)
    assert total == pytest.approx(np.sum(loss.value(SCORES)), rel=1e-12)
    np.testing.assert_allclose(slope, loss.sums(SCORES).slope, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("sharpness", [0.5, 1.3, 2.0, 5.0])
@pytest.mark.parametrize("scores", [SCORES, SCORES[SCORES > -15.0]], ids=["even", "direct"])
def test_the_loss_of_j_knows_by_how_much_the_entropy_of_7_exceeds_it(sharpness, scores):
    loss = SharpenedLoss(sharpness)
    expected = np.sum(EntropyLoss().value(scores)) - np.sum(loss.value(scores))
    assert loss.sums(scores).excess == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_a_pass_for_j_gives_the_objective_7_too(seed):
    objective = random_objective(seed, "hyper")
    L = np.random.default_rng(seed).normal(size=(4, 2))
    found = descent_program(objective).at(L)
    assert found.value + found.excess == pytest.approx(paper_program(objective).at(L).value)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_losses_of_far_pairs_vanish_and_nothing_overflows(loss):
    total, slope, curvature, excess = loss.sums(np.array([passes.EXCLUDED_SCORE, 1e200]))
    assert abs(total) < 1e-60
    assert np.isnan(excess) or abs(excess) < 1e-60
    assert np.all(np.abs(slope) < 1e-60)
    assert np.all(np.abs(curvature) < 1e-60)


def test_the_loss_of_unlabeled_pairs_in_j_is_the_least_over_the_soft_label():
    """log(1 + e^-s) - log(1 + e^-as)/a against a search over q in [0, 1]."""
    q = np.linspace(0.0, 1.0, 100_001)[1:-1]
    for s in (-3.0, -0.4, 0.0, 1.7):
        expected_loss = q * np.log1p(np.exp(s)) + (1.0 - q) * np.log1p(np.exp(-s))
        entropy = -q * np.log(q) - (1.0 - q) * np.log(1.0 - q)
        least = np.min(expected_loss - entropy / 2.0)
        assert SharpenedLoss(2.0).value(np.array([s]))[0] == pytest.approx(least, abs=1e-9)


def programs(setting, **options):
    m_step = random_objective(3, setting, **options)
    return {"(11)": m_step.program, "J": descent_program(m_step), "(7)": paper_program(m_step)}


@pytest.mark.parametrize("name", ["(11)", "J", "(7)"])
@pytest.mark.parametrize("setting", ["none", "post", "proj", "hyper", "other"])
@pytest.mark.parametrize("rank", [0, 1, 2, 4])
def test_slope_and_second_derivatives_by_finite_differences(name, setting, rank):
    program = programs(setting)[name]
    rng = np.random.default_rng(rank)
    L, D = rng.normal(size=(2, 4, rank))
    now, step = program.at(L), 1e-5
    ahead, behind = program.at(L + step * D), program.at(L - step * D)
    value, gradient = program.value_and_gradient(L @ L.T)
    assert now.value == pytest.approx(value, rel=1e-12)
    rounding = 1e-11 * np.abs(gradient).max()
    np.testing.assert_allclose(now.gradient, gradient, rtol=0.0, atol=rounding)
    np.testing.assert_allclose(now.factor_gradient, 2.0 * gradient @ L, rtol=1e-9, atol=1e-9)
    slope = (ahead.value - behind.value) / (2.0 * step)
    assert np.vdot(now.factor_gradient, D) == pytest.approx(slope, rel=1e-5, abs=1e-5)
    change = (ahead.factor_gradient - behind.factor_gradient) / (2.0 * step)
    np.testing.assert_allclose(now.hessian_product(D), change, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("loss", LOSSES[1:], ids=repr)
@pytest.mark.parametrize("confident", [False, True])
def test_one_pass_over_listed_pairs_is_the_sum_pair_by_pair(seed, loss, confident):
    """Constraints instead of classes, with and without confidences, in blocks and in lists."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(9, 3))
    similar, dissimilar = [(0, 1), (1, 4), (2, 3)], [(0, 5), (3, 6)]
    c = rng.uniform(0.2, 3.0, 5) if confident else None
    similar_c, dissimilar_c = (None, None) if c is None else (c[:3], c[3:])
    pairs = PairSet.from_constraints(X, similar, dissimilar, similar_c, dissimilar_c)
    m_step = MStepObjective(pairs, unlabeled_weight=0.4)
    L = rng.normal(size=(3, 2))
    s = {
        (i, j): float(np.sum(np.square((X[i] - X[j]) @ L))) - 1.0
        for i in range(9)
        for j in range(i + 1, 9)
    }
    labeled = [*similar, *dissimilar]
    weights = np.ones(5) if c is None else c
    for mu in (0.4, 0.0):
        program = PairProgram(m_step.sums, mu, 1.0, np.zeros((3, 3)), 0.0, loss)
        expected = weights @ np.logaddexp(0.0, [-s[pair] for pair in labeled])
        expected += mu * sum(
            float(loss.value(np.array([t]))[0]) for pair, t in s.items() if pair not in labeled
        )
        assert program.at(L).value == pytest.approx(expected, rel=1e-12)
        assert program.value(L @ L.T) == pytest.approx(expected, rel=1e-12)


def test_blocks_of_a_few_points_are_the_whole(monkeypatch):
    """All of the paths of a block: on the diagonal and off it, labeled points across its edge."""
    pairs = random_pairs(0, n=23, m=3)
    L = np.random.default_rng(1).normal(size=(3, 2))
    D = np.random.default_rng(2).normal(size=(3, 2))

    def found():
        now = descent_program(MStepObjective(pairs, unlabeled_weight=0.3)).at(L)
        return now.value, now.factor_gradient, now.hessian_product(D), now.gradient

    whole = found()
    monkeypatch.setattr(layout, "BLOCK", 5)
    for one, other in zip(found(), whole, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("program", [descent_program, paper_program, lambda m_step: m_step.program])
def test_curvature_is_the_second_derivative_along_new_columns(program):
    objective = random_objective(3, "hyper")
    rng = np.random.default_rng(3)
    L, S, step = rng.normal(size=(4, 2)), rng.normal(size=(4, 2)), 1e-3
    chosen = program(objective)
    A, more = L @ L.T, S @ S.T
    values = [chosen.value(A + t * more) for t in (-step, 0.0, step)]
    expected = (values[0] - 2.0 * values[1] + values[2]) / step**2
    assert chosen.at(L).curvature(S) == pytest.approx(expected, rel=1e-4)


def test_curvature_of_listed_pairs_is_that_of_all_labeled_ones():
    classes = random_pairs(5)
    listed = PairSet.from_constraints(classes.points, classes.similar, classes.dissimilar)
    L, S = np.random.default_rng(5).normal(size=(2, 4, 2))
    found = [
        MStepObjective(pairs, unlabeled_weight=0.0).program.at(L).curvature(S)
        for pairs in (classes, listed)
    ]
    assert found[0] == pytest.approx(found[1], rel=1e-12)


@pytest.mark.parametrize("kind", ["more features than points", "constant features", "duplicates"])
def test_whitened_coordinates_are_the_same_in_the_span_of_the_points(kind):
    rng = np.random.default_rng(8)
    X = rng.normal(size=(9, 30))
    if kind == "constant features":
        X = np.hstack([X[:, :5], np.ones((9, 3))])
    if kind == "duplicates":
        X[4] = X[2]
    objective = MStepObjective(PairSet.from_labels(X, [0, 0, 1, 1, -1, -1, -1, -1, -1]))
    span, basis = objective.moments.span, objective.basis
    assert (span is None) == (kind == "duplicates")
    k = {"more features than points": 8, "constant features": 5, "duplicates": 7}[kind]
    Z, C, R = basis.matrix, objective.pair_moment, objective.regularizer
    np.testing.assert_allclose(Z.T @ (C + R) @ Z, np.eye(k), atol=1e-10)
    np.testing.assert_allclose(basis.inverse @ Z, np.eye(k), atol=1e-10)
    L = rng.normal(size=(k, 2))
    expected = objective.value(Z @ L @ L.T @ Z.T)
    assert objective.whitened_program.at(L).value == pytest.approx(expected, rel=1e-12)
    labeled = MStepObjective(objective.pairs, unlabeled_weight=0.0)
    pull = labeled.pair_moment / (1.0 + np.exp(-1.0)) - labeled.similar_matrix
    assert labeled.critical_trace_weight == pytest.approx(np.linalg.eigvalsh(pull)[-1], rel=1e-10)
