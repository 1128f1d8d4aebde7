"""Evidence: cases in which a certificate was false once, each through a path beside the main one.

The truth is a value of f in exact or extended arithmetic at a matrix that is PSD, or a closed form.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest

from seraph_cvx import (
    MStepObjective,
    PairSet,
    certify,
    certify_problem,
    solve_m_step,
    state_m_step,
)
from seraph_cvx.certificate import Certificate
from seraph_cvx.certificate.penalized import certify_penalized
from seraph_cvx.numerics.verified_psd import log_determinant_bounds
from seraph_cvx.penalties import LinearConstraints, Penalty, Ridge, Trace, UpperBound

EXTENDED = np.longdouble


def value(objective, a):
    """f at a 1 x 1 metric in extended precision, each drawn pair counted #U/k times."""
    pairs = objective.pairs
    unlabeled = pairs.unlabeled if pairs.drawn is None else pairs.drawn
    share = EXTENDED(pairs.n_unlabeled) / max(1, len(unlabeled))
    total = EXTENDED(objective.trace_weight) * a
    groups = [
        (pairs.similar, 1.0, 1.0),
        (pairs.dissimilar, -1.0, 1.0),
        (unlabeled, -1.0, EXTENDED(objective.mu) * share),
    ]
    for rows, sign, weight in groups:
        v = pairs.points[rows[:, 0], 0].astype(EXTENDED) - pairs.points[rows[:, 1], 0]
        s = sign * (EXTENDED(a) * v * v - objective.threshold)
        total += weight * np.sum(np.maximum(s, 0) + np.log1p(np.exp(-np.abs(s))))
    return total


# 1 and 2: sampled pairs


def six_points(n_drawn=1):
    X = [[0.1], [-0.1], [0.6], [0.1], [-0.5], [0.4]]
    pairs = PairSet.from_labels(X, [0, 0, 1, -1, -1, -1]).sampled(n_drawn, random_state=0)
    return MStepObjective(pairs, trace_weight=0.0, unlabeled_weight=1.0)


@pytest.mark.parametrize("metric", [0.0, 1.0, 10.0, 100.0])
def test_pairs_that_were_not_drawn_do_not_count(metric):
    """A dual value of 1.2744 was certified at 10, where f is 0.6813 at another metric."""
    objective = six_points()
    least = min(value(objective, a) for a in np.geomspace(1e-2, 1e4, 200))
    assert least < 0.69
    certificate = certify(objective, [[metric]])
    assert certificate.dual_value <= least
    assert certificate.primal_value >= value(objective, metric)


@pytest.mark.parametrize("seed", range(40))
def test_sampled_pairs_far_from_the_origin(seed):
    """The rounding of the shift of drawn pairs was forgotten: 5.87 above a value of 5.47."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 12))
    X = rng.normal(size=(n, 1)) * 10.0 ** rng.integers(0, 3)
    X[-1] = 10.0 ** rng.uniform(4, 14)
    pairs = PairSet.from_labels(X, [0, 0, 1, *[-1] * (n - 3)])
    sampled = pairs.sampled(int(rng.integers(1, pairs.n_unlabeled)), random_state=seed)
    weight = float(rng.choice([0.0, 1e-9, 1.0]))
    objective = MStepObjective(sampled, trace_weight=weight, unlabeled_weight=1.0)
    grid = np.geomspace(1e-30, 1e8, 400)
    least = min(value(objective, a) for a in grid)
    for a in rng.choice(grid, 8):
        certificate = certify(objective, [[a]])
        assert certificate.dual_value <= least
        assert certificate.primal_value >= value(objective, a) * (1 - EXTENDED(1e-17))


def test_soft_labels_are_of_all_pairs_or_of_none():
    """Given for a sample, they made every pair count."""
    pairs = six_points().pairs
    with pytest.raises(ValueError, match="previous_metric"):
        MStepObjective(pairs, soft_labels=np.zeros(pairs.n_unlabeled))


# 3 to 5: underflow


def test_a_large_unlabeled_weight_multiplies_no_underflow():
    """A dual value of 1.6e7 was certified, where f is 170.9."""
    pairs = PairSet.from_constraints([[0.0], [1.0], [3.0]], [(0, 1)], [(0, 2)])
    objective = MStepObjective(pairs, unlabeled_weight=1e265, trace_weight=0.1)
    least = value(objective, 156.25)
    assert 170.8 < least < 171.0
    bounds = [certify(objective, [[a]]).dual_value for a in (0.0, 1.0, 156.25, 1e9)]
    assert 100.0 < max(bounds) <= least


@pytest.mark.parametrize("exponent", range(-162, -140, 2))
@pytest.mark.parametrize("weight", [5e-324, 1e-310, 1e-290])
def test_points_whose_squares_underflow_among_others(exponent, weight):
    """More features than points that count: 1.31326 was certified, while f reaches 0.780."""
    x = 3.0 * 10.0**exponent
    pairs = PairSet.from_constraints([[0.0] * 3, [x] * 3, [1.0] * 3], [], [(0, 1)])
    objective = MStepObjective(pairs, trace_weight=weight, unlabeled_weight=0.0)
    share = EXTENDED(weight) / (3 * EXTENDED(x) ** 2)  # of 1 / (1 + e^s) at the optimum
    optimum = np.log1p(np.exp(EXTENDED(1)))
    if share < 1 / (1 + np.exp(EXTENDED(-1))):
        optimum = -np.log1p(-share) + share * (1 + np.log1p(-share) - np.log(share))
    for metric in (np.zeros((3, 3)), np.full((3, 3), 1e300)):
        certificate = certify(objective, metric)
        assert certificate.dual_value <= optimum <= certificate.primal_value


@pytest.mark.parametrize(("x", "weight"), [(1e-60, 1e-300), (3e83, 1e306), (1e-80, 1e-300)])
def test_a_ridge_whose_squares_underflow(x, weight):
    """A dual value above the optimum, and a primal value of 2.4e-26 where F is 2.5e-25."""
    pairs = PairSet.from_constraints([[0.0], [x]], [], [(0, 1)])
    objective = MStepObjective(pairs, trace_weight=0.0, penalties=[Ridge(weight)])

    def exact(a):
        a = EXTENDED(a)
        return value(objective, a) + EXTENDED(weight) / 2 * a * a

    grid = np.geomspace(EXTENDED(1e-3), EXTENDED(1e3), 600) / EXTENDED(x) ** 2
    least = min(exact(a) for a in grid)
    for a in grid[::25].astype(np.float64):
        certificate = certify(objective, [[a]])
        assert certificate.dual_value <= least
        assert certificate.primal_value >= exact(certificate.factor[0, 0] ** EXTENDED(2)) * (
            1 - EXTENDED(1e-17)
        )


# 6: inputs that are silently changed


@pytest.mark.parametrize("name", ["manifold_term", "previous_metric"])
def test_a_matrix_that_is_not_psd_is_refused_and_not_projected(name):
    """As projected, the M-step had a minimum; as given, f is -798.8 at A22 = 1e12."""
    pairs = PairSet.from_constraints([[0.0, 0.0], [1.0, 1e6], [3.0, 0.0]], [(0, 1)], [(0, 2)])
    with pytest.raises(ValueError, match=f"{name} is not positive semidefinite"):
        MStepObjective(pairs, unlabeled_weight=1.0, **{name: np.diag([1.0, -9e-10])})


def test_a_matrix_that_is_not_psd_by_rounding_is_certified_as_it_is():
    X = np.array([[0.0, 0.0], [1.0, 1e9], [3.0, 0.0], [0.5, 2e9]])
    pairs = PairSet.from_constraints(X, [(0, 1)], [(0, 2)])
    P = np.diag([1.0, -1e-15])
    objective = MStepObjective(pairs, previous_metric=P, unlabeled_weight=1.0, sharpness=2.0)
    np.testing.assert_array_equal(objective.previous_metric, P)
    V = X[pairs.unlabeled[:, 0]] - X[pairs.unlabeled[:, 1]]
    q = 1.0 / (1.0 + np.exp(np.clip(2.0 * (np.sum(V @ P * V, axis=1) - 1.0), -700, 700)))
    assert np.any(q > 0.9)  # v'Pv is negative by far more than rounding
    same = replace(objective, previous_metric=None, soft_labels=q)
    for A in (np.zeros((2, 2)), np.diag([0.1, 1e-17])):
        found, expected = certify(objective, A), certify(same, A)
        assert found.primal_value >= expected.primal_value * (1.0 - 1e-9)
        assert found.dual_value <= expected.primal_value


# 7: problems stated by hand


@pytest.fixture
def objective():
    rng = np.random.default_rng(0)
    pairs = PairSet.from_labels(rng.normal(size=(6, 2)), [0, 0, 1, 1, -1, -1])
    return MStepObjective(pairs, trace_weight=0.5)


@pytest.fixture
def problem(objective):
    return state_m_step(objective)


def test_constants_of_a_problem_are_added_exactly(objective, problem):
    """The interval was off by 6e-9, 6,000 times its width."""
    expression = problem.objective.expr
    plain = cp.Problem(cp.Minimize(expression + 0.1))
    shifted = cp.Problem(cp.Minimize(expression + 1e8 + 0.1 - 1e8))
    nested = cp.Problem(cp.Minimize(expression + 2.0 * (cp.Constant(5e7) + 0.05 - 5e7)))
    plain.solve(solver="CLARABEL")
    expected = certify_problem(plain, objective)
    for other in (shifted, nested):
        found = certify_problem(other, objective)
        assert found.dual_value == pytest.approx(expected.dual_value, rel=1e-15)
        assert found.primal_value == pytest.approx(expected.primal_value, rel=1e-15)


def test_a_linear_term_that_is_not_psd_is_not_projected():
    """The problem is unbounded, and had a dual value of 6.63."""
    X = [[0.0, 1.0], [1.0, 1.0], [3.0, 1.0]]
    objective = MStepObjective(PairSet.from_labels(X, [0, 0, 1]), trace_weight=0.0)
    problem = state_m_step(objective)
    (A,) = problem.variables()
    worse = cp.Problem(cp.Minimize(problem.objective.expr + A[0, 0] - 5e-13 * A[1, 1]))
    A.value = np.eye(2)
    with pytest.raises(ValueError, match="B is not PSD"):
        certify_problem(worse, objective)


@pytest.mark.parametrize("share", [1e-7, 1e-10, 1e-13])
def test_the_problem_of_another_objective_is_noticed(share):
    """Numbers were compared to 1e-10 of the largest: 3.661 was certified, the optimum is 1.571."""
    X = np.array([[0.0, 0.0], [1e6, 0.5], [3e6, 1.0], [1e6, 2.0]])
    one = MStepObjective(PairSet.from_labels(X, [0, 0, 1, -1]), trace_weight=0.5)
    X[3, 1] *= 1.0 + share
    other = MStepObjective(PairSet.from_labels(X, [0, 0, 1, -1]), trace_weight=0.5)
    problem = state_m_step(other)
    problem.variables()[0].value = np.zeros((2, 2))
    with pytest.raises(ValueError, match="lacks a part of the M-step"):
        certify_problem(problem, one)
    certify_problem(problem, other)


# 8: aliasing


def test_what_an_objective_depends_on_cannot_be_written_into():
    rng = np.random.default_rng(0)
    X, c = rng.normal(size=(6, 2)), np.ones(1)
    pairs = PairSet.from_constraints(X, [(0, 1)], [(2, 3)], c, c)
    by_labels = PairSet.from_labels(X, [0, 0, 1, 1, -1, -1])
    q, P = rng.random(pairs.n_unlabeled), np.eye(2)
    soft = MStepObjective(pairs, soft_labels=q)
    streamed = MStepObjective(by_labels.sampled(3), previous_metric=P, manifold_term=P)
    block = LinearConstraints(np.array([np.eye(2)]), upper=(t := np.array([1.0])))
    bound, ridge = UpperBound(P), Ridge(1.0, prior=P)
    certificate = certify(soft, P)
    exposed = {
        "points": pairs.points,
        "similar": pairs.similar,
        "dissimilar": pairs.dissimilar,
        "unlabeled": pairs.unlabeled,
        "labeled": pairs.labeled,
        "confidence": pairs.confidence,
        "similar of classes": by_labels.similar,
        "drawn": streamed.pairs.drawn,
        "soft_labels": soft.soft_labels,
        "previous_metric": streamed.previous_metric,
        "manifold_term": streamed.manifold_term,
        "bounds": block.bounds,
        "matrices": block.matrices,
        "bound": bound.bound,
        "prior": ridge.prior,
        "factor": certificate.factor,
    }
    for name, array in exposed.items():
        assert not array.flags.writeable, name
    for given in (X, c, q, P, t):
        given[...] = 7.0  # none of them is the objective's
    assert soft.soft_labels.max() <= 1.0
    assert pairs.points.max() < 7.0
    assert block.bounds[0] == 1.0


def test_a_block_that_is_changed_afterwards_leaves_the_objective_as_it_was(objective):
    block = Ridge(1.0)
    penalized = objective.with_penalties([block])
    block.weight = 100.0
    assert penalized.penalties[0].weight == 1.0


# Found by reading


def test_a_relative_gap_is_rounded_up():
    from fractions import Fraction

    rng = np.random.default_rng(0)
    for _ in range(200):
        primal = float(rng.uniform(1.0, 100.0))
        certificate = Certificate(primal, primal * (1.0 - float(rng.uniform(0, 1e-3))), "")
        exact = (Fraction(primal) - Fraction(certificate.dual_value)) / Fraction(primal)
        assert Fraction(certificate.relative_gap) >= exact


def test_a_bound_on_a_log_determinant_counts_both_sides():
    """The rows of I - WF may be small while its columns are not."""
    rng = np.random.default_rng(3)
    for _ in range(50):
        k = int(rng.integers(2, 7))
        F = np.tril(rng.normal(size=(k, k))) * 10.0 ** rng.uniform(-4, 4, (k, 1))
        np.fill_diagonal(F, np.abs(np.diag(F)) + 1e-6)
        B = F @ F.T
        found = log_determinant_bounds(B, np.zeros((k, k)))
        if found is None:
            continue
        from flint import arb_mat, ctx

        with ctx.workprec(400):
            exact = arb_mat(B.tolist()).det().log()
            assert found[0] <= exact <= found[1]


class NearlyTraceBound(Penalty):
    """tr(A) <= 1, with a conjugate that is finite at matrices near multiples of I too."""

    is_coercive = True

    def value(self, A):
        return 0.0 if np.trace(A) <= 1.0 + 1e-12 else math.inf

    def constraints(self, A, weight):
        return [cp.trace(A) <= 1.0]

    def subgradient(self, A):
        return np.zeros_like(A)

    def conjugate(self, Z):
        nu = float(np.mean(np.diag(Z)))
        fits = np.allclose(Z, nu * np.eye(len(Z)), rtol=0.0, atol=1e-12 * abs(nu))
        return nu if fits and nu >= 0.0 else math.inf


def test_a_matrix_of_a_block_of_ones_own_is_trusted_to_twelve_digits_and_no_further():
    objective = MStepObjective(
        PairSet.from_labels([[0.0, 0.0], [1.0, 2.0], [3.0, 1.0]], [0, 0, 1]),
        trace_weight=0.0,
        penalties=[NearlyTraceBound()],
    )
    found = objective.penalties[0].multiplier(2.0 * np.eye(2))
    assert np.all(found.slack >= 2e-12)
    certificate = certify_penalized(objective, 0.5 * np.eye(2), guesses=[2.0 * np.eye(2)])
    least = min(
        objective.program.value(np.outer(u, u))
        for u in np.random.default_rng(0).normal(size=(99, 2)) / np.sqrt(2.0)
        if u @ u <= 1.0
    )
    assert certificate.dual_value <= least


def test_a_threshold_whose_losses_overflow_is_refused():
    """It ended in "cannot convert float NaN to integer"."""
    pairs = PairSet.from_constraints([[0.0], [1.0]], [], [(0, 1)], dissimilar_confidence=1e300)
    with pytest.raises(ValueError, match="threshold=1e\\+10 is too large"):
        MStepObjective(pairs, threshold=1e10)


def test_linear_penalties_are_not_added_twice(objective):
    made = MStepObjective(objective.pairs, trace_weight=0.5, penalties=[Trace(2.0)])
    assert made.trace_weight == 2.5
    with pytest.raises(ValueError, match=r"Trace\(2\) is part of trace_weight"):
        made.with_soft_labels_of(np.eye(2)).with_penalties([Trace(2.0), Ridge(1.0)])
    assert made.with_penalties([Ridge(1.0)]).trace_weight == 2.5
    assert objective.with_penalties([Trace(2.0), Ridge(1.0)]).trace_weight == 2.5


def test_a_sampled_fit_is_certified_as_before():
    rng = np.random.default_rng(0)
    pairs = PairSet.from_labels(rng.normal(size=(60, 3)), [0, 0, 1, 1, *[-1] * 56])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solution = solve_m_step(MStepObjective(pairs.sampled(500, random_state=0)))
    assert solution.certificate.relative_gap <= 1e-8
