"""Evidence: the one function with its three losses, by finite differences and pair by pair."""

from __future__ import annotations

import numpy as np
import pytest
from instances import SETTINGS, random_objective, random_pairs, weighted_objective

from seraph_cvx import MStepObjective, PairSet
from seraph_cvx.engine import distances, passes
from seraph_cvx.model import pair_program
from seraph_cvx.model.m_step_objective import descent_program, paper_program
from seraph_cvx.model.posterior import EntropyLoss, LogisticLoss, SharpenedLoss

SHARPENED = [SharpenedLoss(a) for a in (0.5, 1.3, 2.0, 5.0)]
LOSSES = [LogisticLoss(), EntropyLoss(), *SHARPENED]
SCORES = np.concatenate([np.linspace(-30.0, 30.0, 121), [-700.0, 700.0, 1e-9, -1e-9]])


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_losses_have_the_sums_and_derivatives_they_say(loss):
    s, step = SCORES[np.abs(SCORES) < 100.0], 1e-5
    found, ahead, behind = (loss.sums(x) for x in (s, s + step, s - step))
    slope = (loss.value(s + step) - loss.value(s - step)) / (2.0 * step)
    curvature = (ahead.slope - behind.slope) / (2.0 * step)
    np.testing.assert_allclose(found.slope, slope, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(found.curvature, curvature, rtol=0.0, atol=2e-9)
    assert found.total == pytest.approx(np.sum(loss.value(s)), rel=1e-13)
    np.testing.assert_allclose(loss.slope(SCORES), loss.sums(SCORES).slope, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_losses_of_far_pairs_vanish_and_nothing_overflows(loss):
    total, slope, curvature, excess = loss.sums(np.array([passes.EXCLUDED_SCORE, 1e200]))
    assert np.max(np.abs([total, *slope, *curvature])) < 1e-60
    assert np.isnan(excess) or abs(excess) < 1e-60


@pytest.mark.parametrize("loss", SHARPENED, ids=repr)
@pytest.mark.parametrize("scores", [SCORES, SCORES[SCORES > -15.0]], ids=["even", "direct"])
def test_the_loss_of_j_knows_by_how_much_the_entropy_of_7_exceeds_it(loss, scores):
    expected = np.sum(EntropyLoss().value(scores)) - np.sum(loss.value(scores))
    assert loss.sums(scores).excess == pytest.approx(expected, rel=1e-12)
    objective = random_objective(3, "hyper", sharpness=loss.sharpness)
    L = np.random.default_rng(3).normal(size=(4, 2))
    found = descent_program(objective).at(L)
    assert found.value + found.excess == pytest.approx(paper_program(objective).at(L).value)


PROGRAMS = {"(11)": lambda m_step: m_step.program, "J": descent_program, "(7)": paper_program}
CLASSES = PairSet.from_labels(
    np.random.default_rng(0).normal(size=(14, 4)), [0, 0, 1, 1, 2] + [-1] * 9
)
M_STEPS = {setting: random_objective(3, setting) for setting in SETTINGS} | {
    "of classes": MStepObjective(CLASSES, unlabeled_weight=0.0),
    "weighted": weighted_objective(3),
    "weighted, none unlabeled": weighted_objective(3, mu=0.0),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("m_step", M_STEPS)
@pytest.mark.parametrize("rank", [0, 1, 2, 4])
def test_slope_and_second_derivatives_by_finite_differences(name, m_step, rank):
    program = PROGRAMS[name](M_STEPS[m_step])
    L, D, S = np.random.default_rng(rank).normal(size=(3, 4, rank))
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
    more = [program.value_and_gradient(L @ L.T + t * S @ S.T)[1] for t in (step, -step)]
    bent = np.vdot(more[0] - more[1], S @ S.T) / (2.0 * step)  # along new columns
    assert now.curvature(S) == pytest.approx(bent, rel=1e-4, abs=1e-9)


def test_curvature_of_many_points_is_nearly_that_of_drawn_pairs(monkeypatch):
    program = descent_program(MStepObjective(random_pairs(0, n=60, m=2), unlabeled_weight=0.3))
    L, S = np.random.default_rng(1).normal(size=(2, 2, 1))
    exact = program.at(L).curvature(S)
    monkeypatch.setattr(pair_program, "SMALL", 20)
    estimate = program.at(L).curvature(S)
    assert estimate == pytest.approx(exact, rel=0.3)
    assert estimate != exact


def test_blocks_of_a_few_points_are_the_whole(monkeypatch):
    """All of the paths of a block: on the diagonal and off it, labeled points across its edge."""
    pairs = random_pairs(0, n=23, m=3)
    L, D = np.random.default_rng(1).normal(size=(2, 3, 2))

    def found():
        now = descent_program(MStepObjective(pairs, unlabeled_weight=0.3)).at(L)
        return now.value, now.factor_gradient, now.hessian_product(D), now.gradient

    whole = found()
    monkeypatch.setattr(distances, "BLOCK", 5)
    for one, other in zip(found(), whole, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(
    ("kind", "k"), [("more features than points", 8), ("constant features", 5), ("duplicates", 7)]
)
def test_whitened_coordinates_are_the_same_in_the_span_of_the_points(kind, k):
    rng = np.random.default_rng(8)
    X = rng.normal(size=(9, 30))
    if kind == "constant features":
        X = np.hstack([X[:, :5], np.ones((9, 3))])
    if kind == "duplicates":
        X[4] = X[2]
    objective = MStepObjective(PairSet.from_labels(X, [0, 0, 1, 1, -1, -1, -1, -1, -1]))
    assert objective.moments.span.shape[1] == k
    basis, C, R = objective.basis, objective.pair_moment, objective.regularizer
    Z = basis.matrix
    np.testing.assert_allclose(Z.T @ (C + R) @ Z, np.eye(k), atol=1e-10)
    np.testing.assert_allclose(basis.inverse @ Z, np.eye(k), atol=1e-10)
    L = rng.normal(size=(k, 2))
    expected = objective.value(Z @ L @ L.T @ Z.T)
    assert objective.whitened_program.at(L).value == pytest.approx(expected, rel=1e-12)
    labeled = MStepObjective(objective.pairs, unlabeled_weight=0.0)
    pull = labeled.pair_moment / (1.0 + np.exp(-1.0)) - labeled.similar_matrix
    assert labeled.critical_trace_weight == pytest.approx(np.linalg.eigvalsh(pull)[-1], rel=1e-10)
