"""The M-step with penalties, by smooth minimizations and the method of multipliers.

Smooth penalties are added to f as they are. Of every other one its Moreau envelope is, which is
smooth: with V = A + Y/rho and a = prox_P(V, 1/rho),

    P_rho(A; Y) = P(a) + rho/2 ||V - a||^2 - ||Y||^2 / (2 rho),     gradient rho (V - a).

After each minimization the gradient becomes the new multiplier Y (Hestenes, Powell, Rockafellar).
It is a subgradient of P at a, so its conjugate is finite; and where the minimization ended, the
gradient of f plus the multipliers is PSD, nearly: (sigma(-s), Y) is the dual point of a
certificate. The minimizations are by Newton's method on the factor, but for a constraint that needs
no multiplier: a diagonal metric. `Sparse` without other penalties has a
method of its own, in `interior_point.py`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ..certificate import Certificate
from ..certificate.penalized import certify_penalized, guess_multipliers
from ..engine.moments import WhitenedBasis
from ..engine.passes import OutOfTime
from ..model.m_step_objective import MStepObjective
from ..model.pair_program import PairProgram, PenalizedProgram, Term, WeightsPoint
from ..numerics.checks import FloatArray
from ..numerics.psd_cone import scaled_factor, symmetrize
from ..penalties.penalty import DIFFERENCE, Penalty, TermPoint
from .interior_point import is_for_interior_point, solve_sparse
from .newton import (
    CLOSED,
    FLAT,
    OVERFLOWED,
    STOPPED,
    SUBSAMPLE_SIZE,
    SUBSAMPLE_TOL,
    TOLERANCE_SHARE,
    FactorSearch,
    SolverRun,
    Watch,
    keeping_factor,
    subsampled_objective,
    typical_metric,
)

MOST_ROUNDS = 60
"""Minimizations, at most, one for each set of multipliers: each takes a tenth of the tolerance of
the one before, so that ten or so are enough unless rho has to grow."""


@dataclass
class Envelope:
    """The Moreau envelope of a penalty, shifted by its multiplier Y."""

    block: Penalty
    multiplier: FloatArray
    rho: float

    def __call__(self, A: FloatArray) -> TermPoint:
        """Value, gradient and second derivatives at A."""
        V = A + self.multiplier / self.rho
        near = self._prox(V)
        off = V - near
        value = self.block.value(near) if np.all(np.isfinite(near)) else np.nan
        value += 0.5 * self.rho * float(np.sum(off * off))
        value -= float(np.sum(np.square(self.multiplier))) / (2.0 * self.rho)
        scale = DIFFERENCE * (1.0 + float(np.linalg.norm(V)))

        def hessian_product(D: FloatArray) -> FloatArray:
            h = scale / max(float(np.linalg.norm(D)), 1e-300)
            moved = self._prox(V + h * D)
            return self.rho * (D - (moved - near) / h)

        return TermPoint(value, self.rho * off, hessian_product)

    def nearest(self, A: FloatArray) -> FloatArray:
        """The point at which the multiplier is a subgradient."""
        return self._prox(A + self.multiplier / self.rho)

    def with_zeros(self, A: FloatArray) -> FloatArray:
        """The metric A with zeros where the proximal step has them, and PSD."""
        A = np.where(self.nearest(A) == 0.0, 0.0, A)
        lift = max(0.0, -float(np.linalg.eigvalsh(A)[0]))
        return A + (1.0 + 1e-6) * lift * np.eye(len(A))

    def _prox(self, V: FloatArray) -> FloatArray:
        """The proximal step; NaN where V has overflowed, which no block has to expect."""
        if not np.all(np.isfinite(V)):
            return np.full_like(V, np.nan)
        return self.block.prox(V, 1.0 / self.rho)


@np.errstate(over="ignore", invalid="ignore")  # what overflows ends a minimization
def solve_penalized(
    objective: MStepObjective,
    tol: float,
    max_iter: int,
    start: FloatArray | None = None,
    deadline: float = np.inf,
    watch: Watch | None = None,
) -> SolverRun:
    """Minimize F until the certified relative gap is within `tol`."""
    penalties, m = objective.penalties, objective.pairs.n_features
    for block in penalties:
        if not block.is_solvable:
            raise ValueError(
                f"{block!r} is neither smooth (is_smooth) nor has it a proximal step (prox), so "
                'solver="newton" cannot take it: use a conic solver, for instance '
                'solver="CLARABEL".'
            )
    if is_for_interior_point(objective):
        run = solve_sparse(objective, tol, max_iter, start, deadline, watch)
        if run is not None:
            return run
    multipliers = [np.zeros((m, m))] * len(penalties)
    if start is not None:
        gradient = objective.program.value_and_gradient(start)[1]
        multipliers = guess_multipliers(objective, start, gradient)
    built_in = _built_in(objective)
    # a hundredth of the curvature of f: the smoother the envelope, the faster
    size = float(np.linalg.norm(typical_metric(objective)))
    first_weight = max(0.01 * objective.pair_total / max(size * size, 1e-300), 1e-300)
    envelopes = {
        j: Envelope(block, multipliers[j], first_weight)
        for j, block in enumerate(penalties)
        if not (block.is_smooth or block is built_in)
    }
    terms: list[Term] = [block.at for block in penalties if block.is_smooth]
    search, minimize = _minimizer(objective, [*terms, *envelopes.values()], max_iter, deadline)
    A = _first_metric(objective, terms, deadline) if start is None else start
    best, seconds = Certificate(np.inf, -np.inf, ""), 0.0
    last_distance, status = np.inf, "iteration limit"
    inner_tol = 1e-2 if envelopes else tol
    for _ in range(MOST_ROUNDS):
        L = None
        try:
            L = minimize(A, inner_tol)
            A = symmetrize(L @ L.T)
            distances = [np.linalg.norm(A - one.nearest(A)) for one in envelopes.values()]
            distance = float(np.max(distances, initial=0.0))
            for envelope in envelopes.values():
                envelope.multiplier = symmetrize(envelope(A).gradient)
            clock = time.perf_counter()
            guesses = _guesses(envelopes, len(penalties))
            certificate = certify_penalized(objective, L, tol, guesses)
        except OutOfTime as error:
            factor = error.factor if L is None else L
            raise OutOfTime(best.factor if best.factor.size else factor) from None
        seconds += time.perf_counter() - clock
        is_better = certificate.primal_value <= best.primal_value
        better, other = (certificate, best) if is_better else (best, certificate)
        best = better.with_bound_of(other)
        if watch is not None and watch(search.steps, best.primal_value):
            status = STOPPED
        elif not np.isfinite(distance):
            status = OVERFLOWED
        if best.relative_gap <= tol or search.is_over or status in (STOPPED, OVERFLOWED):
            break
        if distance > 0.25 * last_distance:  # a larger rho shrinks it faster
            for envelope in envelopes.values():
                envelope.rho *= 4.0
        last_distance = distance
        inner_tol = max(0.1 * inner_tol, 1e-3 * tol)
    metric = None
    is_converged = best.relative_gap <= tol
    if is_converged:
        status = CLOSED.format(best.factor.shape[1])
        best, metric = _with_zeros(objective, best, tol, envelopes)
    return SolverRun(
        best, is_converged, search.steps, search.passes, seconds, status, metric=metric
    )


def _guesses(envelopes: Mapping[int, Envelope], n_blocks: int) -> list[FloatArray | None]:
    """The multiplier of each block that has one."""
    return [envelopes[j].multiplier if j in envelopes else None for j in range(n_blocks)]


def _with_zeros(
    objective: MStepObjective, best: Certificate, tol: float, envelopes: Mapping[int, Envelope]
) -> tuple[Certificate, FloatArray | None]:
    """The metric with the exact zeros of a block that makes them, if the gap stays closed."""
    metric = None
    for envelope in envelopes.values():
        if envelope.block.is_sparse:
            zeroed = envelope.with_zeros(best.metric)
            guesses = _guesses(envelopes, len(objective.penalties))
            exact = certify_penalized(objective, scaled_factor(zeroed), tol, guesses)
            exact = exact.with_bound_of(best)
            best, metric = (exact, zeroed) if exact.relative_gap <= tol else (best, None)
    return best, metric


def _first_metric(
    objective: MStepObjective, smooth_terms: Sequence[Term], deadline: float
) -> FloatArray:
    """A metric to start from: of few of many points, without the penalties that are not smooth."""
    has_weights = _built_in(objective) is not None
    few = subsampled_objective(objective, 150 if has_weights else SUBSAMPLE_SIZE)
    if few is None:
        return typical_metric(objective)
    minimize = _minimizer(few, smooth_terms, 30, deadline)[1]
    L = minimize(typical_metric(few), SUBSAMPLE_TOL)
    return symmetrize(L @ L.T)


def _built_in(objective: MStepObjective) -> Penalty | None:
    """The block that has its own method, so that it needs no multiplier."""
    if not objective.program.is_in_memory:
        return None
    return next((block for block in objective.penalties if block.is_diagonal), None)


def _minimizer(
    objective: MStepObjective, terms: Sequence[Term], max_steps: int, deadline: float
) -> tuple[FactorSearch | WeightsSearch, Callable[[FloatArray, float], FloatArray]]:
    """The method for f plus smooth terms: from a metric to a factor of one, within a tolerance."""
    if _built_in(objective) is not None:
        scale = np.diag(objective.pair_moment + objective.regularizer)
        scale = np.where(scale > 0.0, scale, 1.0)
        weights = WeightsSearch(objective.program, terms, max_steps, deadline, scale)
        return weights, weights.minimize
    plain = objective.whitened_program
    program = PenalizedProgram(plain, objective.basis.matrix, terms) if terms else plain
    search = FactorSearch(program, 0.0, max_steps, deadline)
    return search, partial(_minimize_factor, search, objective.basis)


def _minimize_factor(
    search: FactorSearch, basis: WhitenedBasis, A: FloatArray, tol: float
) -> FloatArray:
    """Descend from the metric A by Newton's method on the factor, in whitened coordinates."""
    search.tol, search.radius = tol, 0.0
    L = basis.inverse @ scaled_factor(A)
    with keeping_factor(basis):
        return basis.matrix @ search.run(L[:, np.any(L != 0.0, axis=0)]).L


@dataclass
class WeightsSearch:
    """Newton's method on the weights w of the features, for metrics that are diagonal.

    A step is made on the weights that are free to move, by conjugate gradients, and cut off at zero
    (Bertsekas). w = z / scale: the second moment of the pairs plus R then has a unit diagonal.
    """

    program: PairProgram
    terms: Sequence[Term]  # what is added, as functions of the metric
    max_steps: int
    deadline: float
    scale: FloatArray
    steps: int = 0
    passes: int = 0

    @property
    def is_over(self) -> bool:
        """Whether all steps are made, or the time is up."""
        return self.steps >= self.max_steps or time.perf_counter() >= self.deadline

    def minimize(self, A: FloatArray, tol: float) -> FloatArray:
        """Descend from the metric A, and return a factor of the metric at the end."""
        z = np.diag(A) * self.scale
        current = self._at(z)
        while not self.is_over:
            is_free = (z > 0.0) | (current.gradient < 0.0)
            slope = np.where(is_free, current.gradient, 0.0)
            typical = self.program.typical_size / len(z)  # of a weight that starts from zero
            worth = float(np.abs(slope) @ np.where(z > 0.0, z, typical))
            if worth <= TOLERANCE_SHARE * tol * max(1.0, abs(current.value)):
                break
            moved = self._step(z, current, is_free, slope)
            if moved is None:
                break
            z, current = moved
        return np.diag(np.sqrt(z / self.scale))

    def _step(
        self, z: FloatArray, current: WeightsPoint, is_free: NDArray[np.bool_], slope: FloatArray
    ) -> tuple[FloatArray, WeightsPoint] | None:
        """A Newton step on the free weights, shortened until the function falls; or None."""
        self.steps += 1
        direction = self._conjugate_gradients(current, slope, is_free)
        rounding = FLAT * max(1.0, abs(current.value))
        length = 1.0
        for _ in range(40):
            candidate = np.maximum(z + length * direction, 0.0)
            predicted = max(-float(slope @ (candidate - z)), 0.0)
            trial_point = self._at(candidate)
            if trial_point.value <= current.value - 1e-4 * predicted + rounding:
                return None if np.array_equal(candidate, z) else (candidate, trial_point)
            if time.perf_counter() >= self.deadline:
                break
            length *= 0.5
        return None

    def _conjugate_gradients(
        self, current: WeightsPoint, slope: FloatArray, is_free: NDArray[np.bool_]
    ) -> FloatArray:
        """Solve H d = -slope on the free weights, roughly."""
        size = float(np.linalg.norm(slope))
        tolerance = size * min(0.1, size**0.5)
        step, residual = np.zeros_like(slope), -slope
        direction, square = residual, float(residual @ residual)
        for _ in range(40):
            product = np.where(is_free, current.hessian_product(direction), 0.0)
            curvature = float(direction @ product)
            if not curvature > 0.0:
                return direction if not np.any(step) else step
            length = square / curvature
            step, residual = step + length * direction, residual - length * product
            last, square = square, float(residual @ residual)
            if square**0.5 <= tolerance or time.perf_counter() >= self.deadline:
                break
            direction = residual + (square / last) * direction
        return step

    def _at(self, z: FloatArray) -> WeightsPoint:
        """The function at w = z / scale, with derivatives with respect to z."""
        self.passes += 1
        w = z / self.scale
        point = self.program.at_weights(w)
        terms = [term(np.diag(w)) for term in self.terms]
        gradient = point.gradient + sum(np.diag(term.gradient) for term in terms)

        def hessian_product(d: FloatArray) -> FloatArray:
            along = d / self.scale
            more = sum(np.diag(term.bend(np.diag(along))) for term in terms)
            return (point.hessian_product(along) + more) / self.scale

        value = point.value + sum(term.value for term in terms)
        return WeightsPoint(value, gradient / self.scale, hessian_product)
