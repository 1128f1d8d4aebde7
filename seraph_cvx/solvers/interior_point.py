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
from typing import NamedTuple, cast

import numpy as np
import scipy

from ..certificate import Certificate
from ..certificate.penalized import certify_penalized
from ..engine.passes import ListPass, OutOfTime, PairPass
from ..model.m_step_objective import MStepObjective
from ..numerics.checks import FloatArray, IntArray
from ..numerics.psd_cone import scaled_factor, symmetrize
from .newton import FLAT, STALLED, STOPPED, SolverRun, Watch, typical_metric

ALL_ENTRIES, MORE_ENTRIES, MOST_ENTRIES = 1_000, 500, 3_000
"""Entries of the metric, the diagonal and above, up to which all are variables; else, how many may
join the pattern at once; and how many variables there are at most: the matrix of a step has as many
rows, and factoring it takes 9 Gflop then."""

MOST_FEATURES = 110
"""Features, at most: all products of two of them are made for each point, 6,000 numbers."""

GAP_SHARE = 0.3
"""The share of the tolerance that the gap of a state may be worth; exact zeros may be worth twice
as much, so that both leave some for rounding."""

FADED = 1e-6
"""A metric whose largest entry is below this share of a typical one's counts as zero."""


class _Point(NamedTuple):
    """The value of f and its gradient at a metric, and the pass over the pairs of X there."""

    value: float
    gradient: FloatArray
    X: FloatArray
    pairs: PairPass

    def hessian(self, i: IntArray, j: IntArray) -> FloatArray:
        """The sums of w_k v_a v_b v_c v_d for all entries (a, b) and (c, d) among (i, j).

        With v = x - y multiplied out, they are made of [s, t], the sum of w_k s(x) t(y) over the
        pairs in both orders, s and t being products of coordinates: [abcd, 1] - [abc, d] - [abd, c]
        - [acd, b] - [bcd, a] + [ab, cd] + [ac, bd] + [ad, bc].
        """
        X, W = self.X, self._curvatures()
        first, second = np.triu_indices(X.shape[1])
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
        if isinstance(self.pairs, ListPass):
            i, j = self.pairs.pairs.pairs.T
            W[i, j] = W[j, i] = self.pairs.second
            return W
        for rows, columns, _, second in chain.from_iterable(self.pairs.kept):
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
    passes: int = 0

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
        kept = cast(PairPass, point.make_hessian(False))
        value = point.value + float(np.diag(A) @ self.is_idle)
        gradient = point.gradient / self.unit_squares + np.diag(1.0 * self.is_idle)
        return _Point(value, gradient, kept.pairs.X / self.units, kept)

    def first_state(self, A: FloatArray, point: _Point) -> _State:
        """The variables for a metric: the central path's, but for the equation of the gradient."""
        mu = 0.1 * float(np.mean(np.abs(np.diag(point.gradient)) * np.diag(A)))
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

    def residual(self, state: _State, point: _Point) -> float:
        """How far the first equation of the central path is from being satisfied, relative to S."""
        residual = point.gradient + self.multiplier(state, point) - state.S
        return float(np.linalg.norm(residual) / np.linalg.norm(state.S))

    def extended(self, state: _State, point: _Point) -> _State | None:
        """The state with a pattern that has the entries with |Z_ij| > rho; None if there is none.

        At most `MORE_ENTRIES`, those that exceed it by the largest factors.
        """
        excess = np.triu(2.0 * np.abs(state.S - point.gradient) / self.all_limits, 1)
        excess[self.pattern] = 0.0
        if not np.any(excess > 1.0):
            return None
        i, j = np.nonzero(excess > 0.8)  # and those that soon will
        chosen = np.argsort(-excess[i, j])[:MORE_ENTRIES]
        i, j = i[chosen], j[chosen]
        size = self.mean_product(state) / self.all_limits[i, j]
        self.set_pattern(*np.hstack([self.pattern, (i, j)]))
        p, n, z = (
            np.hstack(both) for both in zip(state[2:], (size, size, 0.0 * size), strict=True)
        )
        return _State(state.A, state.S, p, n, z)

    def with_zeros(self, state: _State, value: float, allowed: float) -> FloatArray | None:
        """The metric with zeros where it has settled there; None where they raise F by too much.

        An entry has settled if its share of the largest one is below its slack's share of rho, or
        below a fraction of that where this is too much. A feature whose other entries are zero has
        a zero on the diagonal too, if that has settled.
        """
        (i, j), diagonal, slack = self.pattern, np.diag(state.A), np.diag(state.S)
        largest = max(float(np.max(diagonal)), FADED * float(np.max(self.typical)))
        weight = np.abs(state.A[i, j]) / (1.0 - np.abs(state.z) / self.limits)
        # where S is zero, a change should be small too
        price = slack + 0.01 * float(np.mean(slack))
        for settled in (1.0, 0.1, 0.01, 1e-3):
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


@dataclass
class _Answer:
    """The best certificate so far, and its metric where that has exact zeros."""

    problem: _Problem
    tol: float
    certificate: Certificate = field(default_factory=lambda: Certificate(np.inf, -np.inf, ""))
    metric: FloatArray | None = None
    seconds: float = 0.0

    @property
    def is_converged(self) -> bool:
        """Whether the gap is closed."""
        return self.certificate.relative_gap <= self.tol

    def certify(self, state: _State, point: _Point, zeroed: FloatArray | None = None) -> None:
        """Certify the metric of a state, or the one with zeros."""
        clock = time.perf_counter()
        problem, Z = self.problem, self.problem.multiplier(state, point)
        found = problem.certify(state.A if zeroed is None else zeroed, Z, self.tol)
        if zeroed is not None and found.relative_gap > self.tol:
            found = found.with_bound_of(problem.certify(state.A, Z, self.tol))
        self.seconds += time.perf_counter() - clock
        if zeroed is not None or found.primal_value <= self.certificate.primal_value:
            self.metric = None if zeroed is None else zeroed / problem.unit_squares
            self.certificate = found.with_bound_of(self.certificate)


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
    if start is not None:  # from inside the cone
        A = 0.1 * A + symmetrize(start * problem.unit_squares)
    if not np.max(problem.all_limits) * np.max(A) < 1e100:  # or numbers may overflow
        return None
    has_all = problem.m * (problem.m + 1) // 2 <= ALL_ENTRIES
    problem.set_pattern(*np.nonzero(np.triu(np.ones_like(A) if has_all else A, 1)))
    answer, steps, status = _Answer(problem, tol), 0, "iteration limit"
    more_steps, expected, join_gap = 0, tol, 0.1
    try:
        point = problem.at(A)
        state = problem.first_state(A, point)
        if not has_all and start is None:
            state = problem.extended(state, point) or state
        while steps < min(max_iter, 300) and not problem.is_late():
            if len(problem.i) > MOST_ENTRIES:
                return None
            steps += 1
            moved = _step(problem, state, point)
            if moved is None:
                status = STALLED
                break
            state, point = moved
            A, value = state.A, point.value + problem.penalty(state.A)
            if watch is not None and watch(steps, value):
                status = STOPPED
                break
            size = max(1.0, abs(value))
            gap, enough = problem.gap(state) / size, GAP_SHARE * expected
            if gap <= max(join_gap, enough) and problem.residual(state, point) <= 0.3:
                join_gap *= 0.3  # entries are looked at again when the gap is that much smaller
                if (extended := problem.extended(state, point)) is not None:
                    state = extended
                    continue
            if gap > enough:
                continue
            zeroed = problem.with_zeros(state, value, 2.0 * GAP_SHARE * tol * size)
            if zeroed is None and more_steps < 6:  # entries settle in a few steps more
                more_steps += 1
                continue
            answer.certify(state, point, zeroed)
            if answer.is_converged:
                break
            expected = min(expected, gap)
        if not answer.is_converged:
            answer.certify(state, point)
    except OutOfTime:
        factor = answer.certificate.factor
        if not factor.size:
            factor = scaled_factor(A / problem.unit_squares)
        raise OutOfTime(factor) from None
    if answer.is_converged:
        status = "gap closed by an interior-point method"
    return SolverRun(
        answer.certificate,
        answer.is_converged,
        steps,
        problem.passes,
        answer.seconds,
        status,
        metric=answer.metric,
    )


def _step(problem: _Problem, state: _State, point: _Point) -> tuple[_State, _Point] | None:
    """The variables after a step, and f there; None where the barrier function does not fall."""
    try:
        system = _NewtonSystem(problem, state, point)
        mu, affine = problem.mean_product(state), system.direction(0.0)
        moved = state.moved(affine, min(1.0, system.longest(affine)))
        share = problem.mean_product(moved) / mu
        mu *= min(max(share * share, 1e-4), 0.5)
        highest = problem.barrier(state, point, mu)
        highest += FLAT * max(1.0, abs(highest))
        for corrector in (affine, None):  # without the corrector the function falls at first
            step = system.direction(mu, corrector)
            length = min(1.0, 0.95 * system.longest(step))
            for _ in range(12):
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
