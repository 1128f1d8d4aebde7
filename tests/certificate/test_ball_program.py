"""Evidence: what a proof in balls is made of, piece by piece, against the formulas in other balls.

Each piece is an enclosure: of D at a point between an anchor and r, of the penalties and their
conjugates, of f. A step is as long as its matrix can be proven PSD, and no longer.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

flint = pytest.importorskip("flint")

from high_precision import BITS, exact, forms, solve_quietly, total  # noqa: E402
from instances import random_objective, weighted_objective  # noqa: E402
from penalized import BLOCKS, random_penalized  # noqa: E402
from stress_judge import Judge, ball_sigmoid  # noqa: E402

from seraph_cvx import MStepObjective, PairSet, certify  # noqa: E402
from seraph_cvx.certificate.certificate import lower_bounds as plain_bounds  # noqa: E402
from seraph_cvx.certificate.pair_bounds import bound_pairs  # noqa: E402
from seraph_cvx.certificate.penalized import best_multipliers  # noqa: E402
from seraph_cvx.certificate.proof import BallProgram, _name, prove  # noqa: E402
from seraph_cvx.engine.distances import Factor  # noqa: E402
from seraph_cvx.penalties import Ridge, Sparse  # noqa: E402

arb, arb_mat, ctx = flint.arb, flint.arb_mat, flint.ctx


@pytest.fixture(autouse=True)
def _many_bits():
    with ctx.workprec(BITS):
        yield


def with_factor(objective):
    """The same soft labels, of a metric that is given by its factor."""
    F = np.random.default_rng(5).normal(size=(objective.pairs.n_features, 2))
    return objective.with_soft_labels_of(Factor(F)), F @ F.T


OBJECTIVES = {
    "start": lambda: random_objective(2, "other", q="start", n=7, m=2),
    "random": lambda: random_objective(2, "other", q="random", n=7, m=2),
    "streamed": lambda: random_objective(2, "other", q="streamed", n=7, m=2),
    "sharp": lambda: random_objective(2, "other", q="streamed", n=7, m=2, sharpness=3.0),
    "labeled alone": lambda: random_objective(2, "proj", n=7, m=2),
    "weighted": lambda: weighted_objective(2, n=7, m=2),
}


def made(name):
    objective = OBJECTIVES[name]()
    L = np.random.default_rng(3).normal(size=(2, 2)) * 0.6
    return objective, L, BallProgram(objective, L)


def agree(one, other):
    return bool(abs(one - other) <= arb(2) ** (80 - BITS) * (1 + abs(other)))


def entropy(r):
    return total(-x * x.log() for x in (r, 1 - r) if x > 0)


def exact_parts(objective, L):
    """c, q and s of each pair, by the judge."""
    judge = Judge(objective)
    V, c, q, _, eta = judge._at(BITS)
    return c, q, [d - eta for d in forms(V, exact(L) * exact(L).transpose())], eta


@pytest.mark.parametrize("name", OBJECTIVES)
def test_f_is_enclosed(name):
    objective, L, program = made(name)
    assert agree(program.primal_value(), Judge(objective).value(L, BITS))


@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_dual_value_between_an_anchor_and_the_dual_point_is_enclosed(name):
    """D(r) = sum c [H(r) + eta (r - q)], pairs that are not live at r = 0."""
    objective, L, program = made(name)
    c, q, s, eta = exact_parts(objective, L)
    live = np.arange(len(c)) % 3 > 0
    for step in (0.0, 0.25, 1.0):
        for to_labels in (False, True):
            for kept in (None, live) if not to_labels else (None,):
                expected = arb(0)
                for k in range(len(c)):
                    share = arb(step if kept is None or kept[k] else 0.0)
                    anchor = q[k] if to_labels else arb(0)
                    r = share * ball_sigmoid(-s[k]) + (1 - share) * anchor
                    expected += c[k] * (entropy(r) + eta * (r - q[k]))
                assert agree(program._dual_value(step, to_labels, kept), expected)


def test_soft_labels_of_a_factor_are_those_of_its_metric():
    objective, P = with_factor(random_objective(2, "other", q="streamed", n=7, m=2))
    L = np.eye(2)
    by_factor = BallProgram(objective, L).primal_value()
    by_metric = BallProgram(replace(objective, previous_metric=P), L).primal_value()
    assert abs(by_factor - by_metric) < 1e-13


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0, 1.0 + 1e-12, 3.0, 1e9, 1e300])
@pytest.mark.parametrize("is_psd", [True, False])
def test_a_step_ends_where_the_matrix_is_singular(share, is_psd):
    """1 - step * share > 0, and the share of what is left that is given away is small."""
    program = made("start")[2]
    program.regularizer_is_psd = is_psd
    step = program._largest_step(lambda step: arb_mat(1, 1, [1 - arb(step) * arb(share)]))
    if share <= 1.0:  # at 1 it is zero, which is PSD
        assert step == 1.0
    else:
        assert arb(step) * arb(share) < 1
        away = arb(1.01) if share > 2.0 else arb(1) + arb(2) ** -44
        assert arb(step) * arb(share) * away > 1


def test_where_no_step_is_proven_the_anchor_has_to_be():
    """At step 0 the matrix is R, or R + N: no step at all if that is not PSD."""
    program = made("start")[2]
    nowhere = lambda step: arb_mat(1, 1, [arb(-1)])  # noqa: E731
    assert program._largest_step(nowhere) == 0.0
    program.regularizer_is_psd = False
    assert program._largest_step(nowhere) is None
    at_zero = lambda step: arb_mat(1, 1, [arb(1 if step == 0.0 else -1)])  # noqa: E731
    assert program._largest_step(at_zero) == 0.0


def test_a_dual_point_is_named_by_its_step():
    names = [_name(step, "p = 1") for step in (0.0, 1e-300, 1.0)]
    assert names == ["p = 1", "toward p = 1", "gradient"]


@pytest.mark.parametrize("size", [0.0, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("name", OBJECTIVES)
def test_lower_bounds_are_those_of_the_certificate_but_for_rounding(name, size):
    """At the same dual points, under the same names; without the gain's bound, so not below."""
    objective = OBJECTIVES[name]()
    L = math.sqrt(size) * np.eye(2)
    best = solve_quietly(objective, tol=1e-10, max_iter=2000).certificate.primal_value
    balls = {}
    for ball, point in BallProgram(objective, L).lower_bounds():
        balls.setdefault(point, float(ball))  # the second of a name is that of pinned pairs
    doubles = {point: value for value, point in plain_bounds(objective, bound_pairs(objective, L))}
    assert set(doubles) <= set(balls) | {"gradient"}
    for point, value in balls.items():
        assert value <= best + 1e-9 * max(1.0, best)
        if point in doubles and point not in ("toward p = 1", "toward p = b/c"):
            assert value == pytest.approx(doubles[point], rel=1e-11, abs=1e-11)
        elif point in doubles:  # steps are found to a hundredth of their odds
            assert value >= doubles[point] - 0.01 * abs(best)


@pytest.mark.parametrize("name", [name for name in BLOCKS if name not in ("Trace", "Manifold")])
def test_penalties_and_conjugates_are_enclosed_and_the_proof_is_sharp(name):
    objective = random_penalized(name, 0)[0]
    answer = solve_quietly(objective, tol=1e-9, max_iter=800).metric
    with ctx.workprec(53):
        proof = prove(objective, answer)
    judge = Judge(objective)
    value = judge.value(proof.factor, BITS)
    assert value <= proof.primal_value
    assert value >= proof.primal_value * (1.0 - 1e-12)
    assert value >= proof.dual_value
    assert proof.relative_gap < 1e-6
    for Z in best_multipliers(objective, proof.factor):
        program = BallProgram(objective, proof.factor, Z)
        for ball, _ in program.lower_bounds():
            assert value + 1e-9 * abs(value) >= ball.lower()
        parts = [block.ball_terms(one) for block, one in zip(objective.penalties, Z, strict=True)]
        assert agree(program.conjugate, total(conjugate for _, conjugate in parts))
        plain = BallProgram(replace(objective, penalties=()), proof.factor)
        program.conjugate_at_zero = arb(
            0.75
        )  # of these blocks it is zero, of others it need not be
        for step in (0.25, 1.0):
            less = arb(step) * program.conjugate + (1 - arb(step)) * program.conjugate_at_zero
            expected = plain._dual_value(step, True) - less
            assert agree(program._dual_value(step, True), expected)


def test_two_penalties_are_added():
    blocks = [Ridge(0.5), Sparse(0.25)]
    objective = random_objective(1, "hyper", n=8, m=2, penalties=blocks)
    L = np.array([[1.0, 0.0], [0.5, 0.25]])
    (*_, zero) = best_multipliers(objective, L)
    program = BallProgram(objective, L, zero)
    assert agree(program.primal_value(), Judge(objective).value(L, BITS))
    first = next(iter(best_multipliers(objective, L)))
    both = BallProgram(objective, L, first)
    one, other = (block.ball_terms(Z) for block, Z in zip(objective.penalties, first, strict=True))
    assert agree(both.conjugate, one[1] + other[1])
    off = both.Z - one[0] - other[0]
    assert all(agree(entry, arb(0)) for entry in off.entries())
    at_zero = [block.ball_terms(Z)[1] for block, Z in zip(objective.penalties, zero, strict=True)]
    assert agree(both.conjugate_at_zero, total(at_zero))


def test_with_penalties_no_pairs_are_pinned():
    """Without R and Z the matrix of the other pairs proves nothing about all of it."""
    for seed in (0, 1):
        objective = random_penalized("Ridge", seed)[0]
        L = 0.05 * np.eye(objective.pairs.n_features)
        plain = BallProgram(replace(objective, penalties=()), L)
        assert [point for _, point in plain.lower_bounds()].count("toward p = 1") == 2
        for Z in best_multipliers(objective, L):
            points = [point for _, point in BallProgram(objective, L, Z).lower_bounds()]
            assert points.count("toward p = 1") <= 1
        assert "toward p = 1" in points  # for the last, Z = 0


def test_pairs_that_leave_the_range_of_m_are_pinned():
    """Similar pairs along one axis, dissimilar ones across it: only those along it may count.

    So the bound does not depend on the metric across it, whatever r is there.
    """
    X = np.array([[0.0, 0.0], [1.0, 0.0], [3.0, 0.0], [0.0, 2.0], [1.5, 2.0]])
    pairs = PairSet.from_constraints(X, [(0, 1)], [(0, 2), (3, 4), (0, 3)])
    for trace_weight, across in product((0.0, 1e-30), (0.1, 1e6)):
        objective = MStepObjective(pairs, unlabeled_weight=0.0, trace_weight=trace_weight)
        A = np.diag([0.7, across])
        with ctx.workprec(53):
            proof = prove(objective, A)
        along = MStepObjective(
            PairSet.from_constraints(X[:, :1], [(0, 1)], [(0, 2), (3, 4)]),
            unlabeled_weight=0.0,
            trace_weight=0.0,
        )
        with ctx.workprec(53):
            expected = prove(along, [[0.7]])
        assert proof.dual_value == pytest.approx(expected.dual_value, rel=0.02)
        least = certify(along, solve_quietly(along, tol=1e-10).metric).primal_value
        assert proof.dual_value <= least


def test_the_differences_are_those_of_the_points_whatever_their_shift():
    """A shift by 2^40 that leaves the differences as they are: the same balls."""
    X = np.random.default_rng(0).integers(-8, 9, (6, 2)).astype(float)
    X[0] = 1.0, 2.0
    here, there = (
        BallProgram(
            MStepObjective(PairSet.from_labels(points, [0, 0, 1, 1, -1, -1])), 0.5 * np.eye(2)
        ).primal_value()
        for points in (X, X + 2.0**40)
    )
    assert agree(here, there)
