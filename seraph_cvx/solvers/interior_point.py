"""The M-step with a sparse metric, by a primal-dual interior-point method.

    minimize  f(A) + sum_{i<j} 2 rho |A_ij|     over A PSD

Write A_ij = p - n with p, n > 0, and let S and z be the multipliers of A PSD and of the penalty. On
the central path, for a mu > 0 that goes to zero,

    grad f(A) + Z(z) = S,     A S = mu I,     p (2 rho - z) = mu,     n (2 rho + z) = mu,

Z having z/2 in both its entries. A step is Newton's on these equations, those of A and S in the
coordinates of Nesterov and Todd, with Mehrotra's choice of mu and his corrector. Without the other
variables it is a linear system for A. With many features most entries of A stay at zero and are no
variables: p, n and z are of the others, the pattern. Z_ij is S_ij less the gradient off the
pattern, and an entry where it exceeds rho joins. Z is the dual point of the certificate.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple, Protocol, cast

import numpy as np
import scipy

from ..certificate import Certificate
from ..certificate.penalized import certify_penalized
from ..engine.limit import OutOfTime
from ..engine.passes import ListPass, PairPass
from ..model.m_step_objective import MStepObjective
from ..numerics.checks import FloatArray, IntArray
from ..numerics.psd_cone import scaled_factor, symmetrize
from .newton import FLAT, STALLED, STOPPED, SolverRun, Watch, typical_metric

ALL_ENTRIES = 1_000
"""Entries of the metric, the diagonal and above, up to which all are variables."""

MORE_ENTRIES, MOST_ENTRIES = 500, 3_000
"""Of more entries, so many are in the first pattern, and variables at all, at most."""

MOST_FEATURES = 110
"""Features, at most: all products of two of them are made for each point."""

MOST_LISTED, INDEXING = 40_000_000, 4_000
"""Numbers up to which products of differences are made for each pair, where that is less work, and
the work of looking a few numbers up."""

LARGEST = 1e100
"""Where rho times a metric is larger, in the units of the features, numbers may overflow."""

MOST_STEPS = 300
"""Steps, at most; unless the threshold is large, there are about 10 to 30."""

MORE_STEPS = 6
"""Steps beyond the tolerance, at most, until entries that are nearly zero can be made so."""

MOST_HALVINGS = 12
"""How often a step is halved until the barrier function falls."""

TO_BOUNDARY = 0.95
"""The share of the way to the boundary that a step goes at most."""

LEAST_FACTOR, MOST_FACTOR = 1e-4, 0.5
"""The bounds on the factor by which a step lowers mu."""

FIRST_MU = 0.1
"""The first mu, as a share of what an entry of the diagonal contributes to <grad f(A), A>."""

MIXED_IN = 0.1
"""The share of a metric of typical size that is added to a start."""

GAP_SHARE, ZEROS_SHARE = 0.3, 0.6
"""The shares of the tolerance that the gap of a state, and that exact zeros may be worth."""

SETTLED = (1.0, 0.1, 0.01, 1e-3)
"""An entry is zero if its share of the largest one is below one of these times its slack's share of
rho; tried in this order."""

FADED = 1e-6
"""A metric whose largest entry is below this share of a typical one's counts as zero."""

JOIN_SHARE = 0.8
"""Where an entry exceeds rho, all those above this share of it join the pattern."""

JOIN_GAP, JOIN_LATER, JOIN_RESIDUAL = 0.1, 0.3, 0.3
"""Entries join the pattern at this relative gap, and each time that it has shrunk by this factor,
if the first equation of the central path holds up to this share of S."""


class _PassInMemory(Protocol):
    """A pass over pairs in memory: the points, and what was kept of each pair."""

    X: FloatArray
    at_points: PairPass


class _Point(NamedTuple):
    """The value of f and its gradient at a metric, and the pass over the pairs of X there."""

    value: float
    gradient: FloatArray
    X: FloatArray
    at_points: PairPass

    def hessian(self, i: IntArray, j: IntArray) -> FloatArray:
        """The sums of w_k v_a v_b v_c v_d for all entries (a, b) and (c, d) among (i, j).

        With v = x - y multiplied out, they are made of [s, t], the sum of w_k s(x) t(y) over the
        pairs in both orders, s and t being products of coordinates: [abcd, 1] - [abc, d] - [abd, c]
        - [acd, b] - [bcd, a] + [ab, cd] + [ac, bd] + [ad, bc].
        """
        X, W, n = self.X, self._curvatures(), len(self.X)
        first, second = np.triu_indices(X.shape[1])
        by_products = 4 * n * len(first) ** 2 + INDEXING * len(i) ** 2
        if (n * len(i)) ** 2 < by_products and n * n * len(i) < MOST_LISTED:
            rows, columns = np.nonzero(np.triu(W))
            V = X[rows] - X[columns]
            listed = V[:, i] * V[:, j]
            return np.asarray((listed.T * W[rows, columns]) @ listed)
        number = np.empty((X.shape[1],) * 2, dtype=np.int64)
        number[first, second] = number[second, first] = np.arange(len(first))
        products, WX, own = X[:, first] * X[:, second], W @ X, number[i, j]
        crossed = products.T @ (W @ products)
        mine = products[:, own]
        half = mine.T @ (
            0.5 * W.sum(axis=1)[:, None] * mine - X[:, i] * WX[:, j] - WX[:, i] * X[:, j]
        )
        H = half + half.T + crossed[np.ix_(own, own)]
        starts, columns = number[i] * len(first), number[j]
        H += crossed.reshape(-1)[starts[:, i] + columns[:, j]]
        H += crossed.reshape(-1)[starts[:, j] + columns[:, i]]
        return np.asarray(H)

    def _curvatures(self) -> FloatArray:
        """The symmetric matrix W of the second derivatives w_k = c_k phi''(s_k)."""
        W = np.zeros((len(self.X),) * 2)
        if isinstance(self.at_points, ListPass):
            i, j = self.at_points.pairs.pairs.T
            W[i, j] = W[j, i] = self.at_points.second
            return W
        for rows, columns, _, second in chain.from_iterable(self.at_points.kept):
            W[rows, columns] = -0.5 * second
            W[columns, rows] = W[rows, columns].T
        return W


class _State(NamedTuple):
    """The variables of the method, or a step of them."""

    A: FloatArray
    S: FloatArray
    p: FloatArray
    n: FloatArray
    z: FloatArray

    def moved(self, step: _State, length: float) -> _State:
        """The variables after a step."""
        return _State(*(x + length * dx for x, dx in zip(self, step, strict=True)))


@dataclass
class _Problem:
    """The problem in units in which the second moment of the pairs plus R has the diagonal 1.

    The entries that are variables, (i, j), are the diagonal and then the pattern above it.
    """

    objective: MStepObjective
    deadline: float
    passes: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        size = np.diag(self.objective.pair_moment + self.objective.regularizer)
        self.is_idle = size == 0.0  # f does not depend on the feature: its weight shall be zero
        self.units = np.sqrt(np.where(self.is_idle, 1.0, size))
        self.unit_squares = np.outer(self.units, self.units)
        self.all_limits = 2.0 * self.objective.penalties[0].weight / self.unit_squares
        self.typical = typical_metric(self.objective) * self.unit_squares
        self.m = len(size)

    def set_pattern(self, i: IntArray, j: IntArray) -> None:
        """Make these entries, i < j, the pattern."""
        self.pattern, self.limits = (i, j), self.all_limits[i, j]
        self.i, self.j = np.hstack([[np.arange(self.m)] * 2, [i, j]])

    def is_late(self) -> bool:
        """Whether the time is up."""
        return time.perf_counter() >= self.deadline

    def at(self, A: FloatArray) -> _Point:
        """The value of f and its gradient at a positive definite A."""
        self.passes += 1
        point = self.objective.program.at(np.linalg.cholesky(A) / self.units[:, None])
        # the second derivatives of a program in memory are the pass itself
        kept = cast(_PassInMemory, point.make_hessian(False))
        value = point.value + float(np.diag(A) @ self.is_idle)
        gradient = point.gradient / self.unit_squares + np.diag(1.0 * self.is_idle)
        return _Point(value, gradient, kept.X / self.units, kept.at_points)

    def first_state(self, A: FloatArray, point: _Point) -> _State:
        """The variables for a metric: the central path's, but for the equation of the gradient."""
        mu = FIRST_MU * float(np.mean(np.abs(np.diag(point.gradient)) * np.diag(A)))
        a = self.limits * A[self.pattern]
        z = 2.0 * self.limits * a / (mu + np.sqrt(mu * mu + 4.0 * a * a))
        S = symmetrize(np.asarray(mu * np.linalg.inv(A), dtype=np.float64))
        return _State(A, S, mu / (self.limits - z), mu / (self.limits + z), z)

    def matrix(self, entries: FloatArray) -> FloatArray:
        """The symmetric matrix D with <G, D> = sum of G_ij times entries, for symmetric G."""
        D = np.zeros((self.m, self.m))
        D[self.i, self.j] = entries
        return symmetrize(D)

    def multiplier(self, state: _State, point: _Point) -> FloatArray:
        """The matrix Z, with a zero diagonal."""
        Z, (i, j) = state.S - point.gradient, self.pattern
        Z[i, j] = Z[j, i] = 0.5 * state.z
        np.fill_diagonal(Z, 0.0)
        return Z

    def mean_product(self, state: _State) -> float:
        """The mean of the products that are mu on the central path."""
        products = state.p @ (self.limits - state.z) + state.n @ (self.limits + state.z)
        return float(np.vdot(state.A, state.S) + products) / (self.m + 2 * len(state.z))

    def barrier(self, state: _State, point: _Point, mu: float) -> float:
        """The function that is least at the point of mu on the central path."""
        logs = np.linalg.slogdet(state.A)[1] + np.sum(np.log(state.p)) + np.sum(np.log(state.n))
        return float(point.value + self.limits @ (state.p + state.n) - mu * logs)

    def penalty(self, A: FloatArray) -> float:
        """The penalty of a metric that is zero off the pattern."""
        return float(self.limits @ np.abs(A[self.pattern]))

    def gap(self, state: _State) -> float:
        """The gap, nearly: <A, S> + sum_{i<j} 2 rho |A_ij| - z A_ij."""
        along = float(np.vdot(state.A, state.S) - state.z @ state.A[self.pattern])
        return along + self.penalty(state.A)

    def certify(self, A: FloatArray, Z: FloatArray, tol: float) -> Certificate:
        """The certificate of a metric by the dual point Z."""
        L = scaled_factor(A / self.unit_squares)
        return certify_penalized(self.objective, L, tol, [Z * self.unit_squares])

    def extended(self, state: _State, point: _Point, most: int = MOST_ENTRIES) -> _State | None:
        """The state with a pattern that has the entries with |Z_ij| > rho; None if there is none.

        At most so many, those that exceed it by the largest factors.
        """
        excess = np.triu(2.0 * np.abs(state.S - point.gradient) / self.all_limits, 1)
        excess[self.pattern] = 0.0
        if not np.any(excess > 1.0):
            return None
        i, j = np.nonzero(excess > JOIN_SHARE)
        chosen = np.argsort(-excess[i, j])[:most]
        i, j = i[chosen], j[chosen]
        size = self.mean_product(state) / self.all_limits[i, j]
        self.set_pattern(*np.hstack([self.pattern, (i, j)]))
        p, n, z = (
            np.hstack(both) for both in zip(state[2:], (size, size, 0.0 * size), strict=True)
        )
        return _State(state.A, state.S, p, n, z)

    def with_zeros(self, state: _State, value: float, allowed: float) -> FloatArray | None:
        """The metric with zeros where it has settled there; None where they raise F by too much.

        A feature whose other entries are zero has a zero on the diagonal too, if that has settled.
        """
        (i, j), diagonal, slack = self.pattern, np.diag(state.A), np.diag(state.S)
        largest = max(float(np.max(diagonal)), FADED * float(np.max(self.typical)))
        weight = np.abs(state.A[i, j]) / (1.0 - np.abs(state.z) / self.limits)
        # where S is zero, a change should be small too
        price = slack + 0.01 * float(np.mean(slack))
        for settled in SETTLED:
            kept = np.zeros((self.m, self.m), dtype=bool)
            kept[i, j] = kept[j, i] = weight >= settled * largest
            is_used = np.any(kept, axis=0) | (diagonal >= settled * largest * slack)
            A = np.where(kept | np.diag(is_used), state.A, 0.0)
            # a diagonal matrix makes it PSD again; F rises by its product with S, nearly
            lift = -float(np.linalg.eigvalsh(A * np.sqrt(np.outer(price, price)))[0])
            added = np.where(is_used, (1.0 + 1e-6) * max(lift, 0.0) / price, 0.0)
            if added @ slack > allowed:
                continue
            A += np.diag(added)
            self.passes += 1
            found = self.objective.program.value(A / self.unit_squares) + self.penalty(A)
            if found - value <= allowed:
                return A
        return None


class _NewtonSystem:
    """Newton's equations for the change of A, factored, at one state."""

    def __init__(self, problem: _Problem, state: _State, point: _Point) -> None:
        self.problem, self.state, i, j = problem, state, problem.i, problem.j
        # A = G Diag(d) G',  S = G^{-T} Diag(d) G^{-1}
        L, R = np.linalg.cholesky(state.A), np.linalg.cholesky(state.S)
        V, self.d = np.linalg.svd(L.T @ R)[:2]
        self.G = L @ (V / np.sqrt(self.d))
        self.inverse = scipy.linalg.solve_triangular(
            L, V * np.sqrt(self.d), trans="T", lower=True
        ).T
        self.scaling = self.inverse.T @ self.inverse  # dS = ... - scaling dA scaling
        self.slack_p, self.slack_n = problem.limits - state.z, problem.limits + state.z
        self.stiffness = 1.0 / (state.p / self.slack_p + state.n / self.slack_n)
        self.residual = point.gradient + problem.multiplier(state, point) - state.S
        K = self.scaling[np.ix_(i, i)] * self.scaling[np.ix_(j, j)]
        K += self.scaling[np.ix_(i, j)] * self.scaling[np.ix_(j, i)]
        K *= 0.5
        K += point.hessian(i, j)
        K.reshape(-1)[:: len(K) + 1][problem.m :] += 0.25 * self.stiffness
        self.factor = np.linalg.cholesky(K).T  # upper triangular, in the order that LAPACK takes

    def direction(self, mu: float, affine: _State | None = None) -> _State:
        """The step toward the point of mu; with the affine one, of mu = 0, corrected by it."""
        state, problem, d = self.state, self.problem, self.d
        scaled = np.diag(mu / d - d)
        left_p, left_n = mu - state.p * self.slack_p, mu - state.n * self.slack_n
        if affine is not None:
            product = self.inverse @ affine.A @ affine.S @ self.G
            scaled -= (product + product.T) / (d[:, None] + d)
            left_p, left_n = left_p + affine.p * affine.z, left_n - affine.n * affine.z
        centering = self.inverse.T @ scaled @ self.inverse
        missing = left_p / self.slack_p - left_n / self.slack_n
        missing -= state.A[problem.pattern] - state.p + state.n
        right = (centering - self.residual)[problem.i, problem.j]
        right[problem.m :] += 0.5 * self.stiffness * missing
        dA = problem.matrix(scipy.linalg.cho_solve((self.factor, False), right, check_finite=False))
        dS = symmetrize(centering - self.scaling @ dA @ self.scaling)
        dz = self.stiffness * (dA[problem.pattern] - missing)
        dp, dn = (left_p + state.p * dz) / self.slack_p, (left_n - state.n * dz) / self.slack_n
        return _State(dA, dS, dp, dn, dz)

    def longest(self, step: _State) -> float:
        """The length at which a step reaches the boundary."""
        state, root = self.state, np.sqrt(np.outer(self.d, self.d))
        of_A, of_S = self.inverse @ step.A @ self.inverse.T, self.G.T @ step.S @ self.G
        changes = [
            *(step.p / state.p, step.n / state.n, -step.z / self.slack_p, step.z / self.slack_n),
            *(np.linalg.eigvalsh(symmetrize(change / root)) for change in (of_A, of_S)),
        ]
        return 1.0 / max(-float(np.min(np.hstack(changes))), np.finfo(np.float64).tiny)


def is_for_interior_point(objective: MStepObjective) -> bool:
    """Whether an M-step has one sparse penalty, not too many features, and its pairs in memory."""
    if len(objective.penalties) != 1 or not objective.penalties[0].is_sparse:
        return False
    return objective.pairs.n_features <= MOST_FEATURES and objective.program.is_in_memory


@np.errstate(all="ignore")  # what overflows is no positive definite matrix
def solve_sparse(
    objective: MStepObjective,
    tol: float,
    max_iter: int,
    start: FloatArray | None = None,
    deadline: float = np.inf,
    watch: Watch | None = None,
) -> SolverRun | None:
    """Minimize F until the certified relative gap is within `tol`; None where the pattern is large.

    The metric has exact zeros where it has settled there, unless these would open the gap again.
    """
    problem = _Problem(objective, deadline)
    A = problem.typical
    if start is not None:
        A = MIXED_IN * A + symmetrize(start * problem.unit_squares)
    if not np.max(problem.all_limits) * np.max(A) < LARGEST:
        return None
    has_all = problem.m * (problem.m + 1) // 2 <= ALL_ENTRIES
    problem.set_pattern(*np.nonzero(np.triu(np.ones_like(A) if has_all else A, 1)))
    best, metric = Certificate(np.inf, -np.inf, ""), None
    steps, more_steps, seconds, expected, join_gap = 0, 0, 0.0, tol, JOIN_GAP
    status = "iteration limit"
    try:
        point = problem.at(A)
        state = problem.first_state(A, point)
        if not has_all and start is None:
            state = problem.extended(state, point, MORE_ENTRIES) or state
        while steps < min(max_iter, MOST_STEPS) and not problem.is_late():
            if len(problem.i) > MOST_ENTRIES:
                return None
            steps += 1
            moved = _step(problem, state, point)
            if moved is None:
                status = STALLED
                break
            state, point = moved
            A, Z = state.A, problem.multiplier(state, point)
            value = point.value + problem.penalty(A)
            if watch is not None and watch(steps, value):
                status = STOPPED
                break
            size = max(1.0, abs(value))
            gap = problem.gap(state) / size
            residual = np.linalg.norm(point.gradient + Z - state.S) / np.linalg.norm(state.S)
            if gap <= max(join_gap, GAP_SHARE * expected) and residual <= JOIN_RESIDUAL:
                join_gap *= JOIN_LATER
                extended = problem.extended(state, point, MORE_ENTRIES)
                if extended is not None:
                    state = extended
                    continue
            if gap > GAP_SHARE * expected:
                continue
            zeroed = problem.with_zeros(state, value, ZEROS_SHARE * tol * size)
            if zeroed is None and more_steps < MORE_STEPS:
                more_steps += 1
                continue
            clock = time.perf_counter()
            certificate = problem.certify(A if zeroed is None else zeroed, Z, tol)
            if zeroed is not None and certificate.relative_gap > tol:
                certificate = certificate.with_bound_of(problem.certify(A, Z, tol))
            seconds += time.perf_counter() - clock
            best = certificate.with_bound_of(best)
            metric = None if zeroed is None else zeroed / problem.unit_squares
            if best.relative_gap <= tol:
                break
            expected = min(expected, gap)
        if best.relative_gap > tol:
            clock = time.perf_counter()
            last = problem.certify(state.A, problem.multiplier(state, point), tol)
            seconds += time.perf_counter() - clock
            if last.primal_value <= best.primal_value:
                best, metric = last.with_bound_of(best), None
    except OutOfTime:
        factor = best.factor if best.factor.size else scaled_factor(A / problem.unit_squares)
        raise OutOfTime(factor) from None
    is_converged = best.relative_gap <= tol
    if is_converged:
        status = "gap closed by an interior-point method"
    return SolverRun(best, is_converged, steps, problem.passes, seconds, status, metric=metric)


def _step(problem: _Problem, state: _State, point: _Point) -> tuple[_State, _Point] | None:
    """The variables after a step, and f there; None where the barrier function does not fall."""
    try:
        system = _NewtonSystem(problem, state, point)
        mu, affine = problem.mean_product(state), system.direction(0.0)
        moved = state.moved(affine, min(1.0, system.longest(affine)))
        share = problem.mean_product(moved) / mu
        mu *= min(max(share * share, LEAST_FACTOR), MOST_FACTOR)
        highest = problem.barrier(state, point, mu)
        highest += FLAT * max(1.0, abs(highest))
        for corrector in (affine, None):  # without the corrector the function falls at first
            step = system.direction(mu, corrector)
            length = min(1.0, TO_BOUNDARY * system.longest(step))
            for _ in range(MOST_HALVINGS):
                trial = state.moved(step, length)
                trial_point = problem.at(trial.A)
                if problem.barrier(trial, trial_point, mu) <= highest:
                    return trial, trial_point
                if problem.is_late():
                    return None
                length *= 0.5
    except np.linalg.LinAlgError:  # by rounding, a matrix is not positive definite
        pass
    return None
