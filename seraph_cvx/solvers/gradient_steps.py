"""Projected gradient steps B <- P(Y - grad f(Y) / L), with or without momentum in Y.

Steps are judged by gradients, never by values, whose rounding would stall them near a relative gap
of 1e-7. The method stops on the certified relative gap alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..certificate import Certificate, certify_factor, nominal_gap
from ..certificate.estimates import Anchors
from ..model.m_step_objective import MStepObjective
from ..model.pair_program import PairProgram
from ..numerics.checks import FloatArray
from ..numerics.psd_cone import factor, project, symmetrize
from .newton import FLAT, STALLED, STOPPED, SolverRun, Watch

MARGIN = 0.5
"""An iterate is certified where the gap that the free bound shows is below this share of the one
asked for: the proof takes about as much again for rounding."""


@dataclass
class Coordinates:
    """The program for B, where A = T B T' and B = inverse A inverse'; it counts its evaluations."""

    program: PairProgram
    T: FloatArray
    inverse: FloatArray
    evaluations: int = 0

    def value_and_gradient(self, B: FloatArray) -> tuple[float, FloatArray]:
        """The objective f and its gradient with respect to B."""
        self.evaluations += 1
        return self.program.value_and_gradient(B)

    def value(self, B: FloatArray) -> float:
        """The objective f at B."""
        self.evaluations += 1
        return self.program.value(B)

    def factor(self, B: FloatArray) -> FloatArray:
        """A factor F of the metric: A = T B T' = FF'."""
        return np.asarray(self.T @ factor(B).T)


class Iterate(NamedTuple):
    """A point B, the point Y that the next step starts from, f and its gradient at Y."""

    B: FloatArray
    Y: FloatArray
    value: float
    gradient: FloatArray
    momentum: float = 1.0


def projected_step(
    evaluate: Callable[[FloatArray], tuple[float, FloatArray]],
    onto_set: Callable[[FloatArray], FloatArray],
    current: Iterate,
    L: float,
    accelerated: bool = True,
) -> tuple[Iterate, float]:
    """One projected step; L is raised where the gradient shows it to be below the curvature.

    Else it shrinks a little each step, so that it follows the curvature down. The momentum restarts
    when it points uphill.
    """
    while True:
        B = onto_set(current.Y - current.gradient / L)
        is_uphill = float(np.vdot(current.Y - B, B - current.B)) > 0.0
        if accelerated and not is_uphill:
            momentum = (1.0 + np.sqrt(1.0 + 4.0 * current.momentum**2)) / 2.0
            Y = B + ((current.momentum - 1.0) / momentum) * (B - current.B)
        else:
            momentum, Y = 1.0, B
        value, gradient = evaluate(Y)
        move = Y - current.Y
        length = float(np.vdot(move, move))
        curvature = float(np.vdot(gradient - current.gradient, move)) / length if length else 0.0
        is_too_long = curvature > 1.5 * L
        L = max(L, 1.05 * curvature)
        if not is_too_long:
            return Iterate(B, Y, value, gradient, momentum), 0.995 * L


def minimize_by_gradient_steps(
    objective: MStepObjective,
    where: Coordinates,
    tol: float,
    max_iter: int,
    start: FloatArray | None,
    deadline: float,
    *,
    accelerated: bool = False,
    watch: Watch | None = None,
) -> SolverRun:
    """Projected gradient steps, with momentum where `accelerated`."""
    m = where.T.shape[1]
    B = np.zeros((m, m)) if start is None else where.inverse @ start @ where.inverse.T
    B = project(symmetrize(B))
    current = Iterate(B, B, *where.value_and_gradient(B))
    stopping_rule = StoppingRule(objective, where, tol, current.value)
    lowest_value, fell_at, checks = current.value, 0, _checks()
    next_check = next(checks)
    iteration, status = 0, "gap closed"
    done = stopping_rule.accepts(current)
    curvature = 0.0 if done else _guess_curvature(objective, where)
    least = 1e-6 * curvature  # where f falls for ever the curvature would vanish
    while not done:
        if iteration >= max_iter or time.perf_counter() >= deadline:
            status = "iteration limit" if time.perf_counter() < deadline else "time limit"
            break
        iteration += 1
        current, curvature = projected_step(
            where.value_and_gradient, project, current, max(curvature, least), accelerated
        )
        if iteration >= next_check:
            next_check = next(checks)
            done = stopping_rule.accepts(current)
            if current.value < lowest_value - FLAT * abs(lowest_value):
                lowest_value, fell_at = current.value, iteration
            if iteration - fell_at > max(200, iteration // 2):
                status = STALLED  # what is left of the gap is hidden by rounding
                break
            if not done and watch is not None and watch(iteration, current.value):
                status = STOPPED
                break
    certificate = stopping_rule.certificate
    if not done or certificate is None:
        certificate = certify_factor(objective, where.factor(current.B))
        if status == STALLED and certificate.relative_gap > tol:
            certificate = _stretched(objective, certificate, tol)
    seconds = stopping_rule.seconds
    return SolverRun(certificate, done, iteration, where.evaluations, seconds, status)


def _checks() -> Iterator[int]:
    """The iterations at which the gap is looked at: a tenth more each time is cheap, never late."""
    iteration = 1
    while True:
        yield iteration
        iteration += max(3, iteration // 10)


def _guess_curvature(objective: MStepObjective, where: Coordinates) -> float:
    """The Hessian's norm for Gaussian differences: (2 + m)/4 * ||C||^2 / sum_k c_k."""
    moment = symmetrize(where.T.T @ objective.moments.typical.everything @ where.T)
    spread = float(np.linalg.eigvalsh(moment)[-1]) if moment.size else 0.0
    guess = (2.0 + len(moment)) / 4.0 * spread**2 / objective.pair_total
    return float(max(guess, np.finfo(np.float64).tiny))


def _stretched(objective: MStepObjective, best: Certificate, tol: float) -> Certificate:
    """The best certificate of 2A, 4A, 8A: where R is nearly zero, A has to be large to show it.

    f falls like e^{-d} with the distance of dissimilar pairs, soon by less than rounding; but only
    where e^{-d} is as small as R relative to the pairs' moment is the dual point feasible.
    """
    stretched = (np.sqrt(t) * best.factor for t in (2.0, 4.0, 8.0))
    others = (certify_factor(objective, L, tol) for L in stretched)
    return min([best, *others], key=lambda certificate: certificate.relative_gap)


class StoppingRule:
    """Looks at the free lower bound of an iterate, and certifies when that is promising.

    Where rounding keeps the certified gap open, a tenth of the free gap is asked for, three times
    at most; if it does not come within eight looks, rounding does not let it be proved.
    """

    def __init__(
        self, objective: MStepObjective, where: Coordinates, tol: float, start_value: float
    ) -> None:
        self.objective, self.where = objective, where
        self.tol, self.start_value = tol, start_value
        self.anchors = Anchors.of(objective)
        self.has_free_bound = (
            self.anchors.basis is not None or self.anchors.regularizer_basis is not None
        )
        self.to_white = where.inverse @ objective.basis.matrix
        self.bound, self.margin = -np.inf, MARGIN
        self.retries = self.looks = 0
        self.certificate: Certificate | None = None
        self.seconds = 0.0

    def accepts(self, current: Iterate) -> bool:
        """Whether the certified relative gap at current.B is within tol.

        Or as small as rounding lets it be. A point worse than the start is never accepted.
        """
        clock = time.perf_counter()
        if self._is_promising(current):
            verdict = self._certifies(current)
        else:
            self.looks += 1
            verdict = self.retries > 0 and self.looks >= 8
        self.seconds += time.perf_counter() - clock
        return verdict

    def _is_promising(self, current: Iterate) -> bool:
        """Whether the free bound at Y is tight enough to pay for a certificate.

        Where M is singular to rounding there is none, and only a certificate can tell.
        """
        gradient = symmetrize(self.to_white.T @ current.gradient @ self.to_white)
        tangent = current.value - float(np.vdot(current.gradient, current.Y))
        self.bound = max(self.bound, self.anchors.quick_bound(tangent, gradient))
        if current.Y is current.B:
            value = current.value
        elif self.has_free_bound and self._gap_estimate(current.value) > 100.0 * self.tol:
            return False
        else:
            value = self.where.value(current.B)
        is_near = not self.has_free_bound or self._gap_estimate(value) <= self.margin * self.tol
        return value <= self.start_value and is_near

    def _certifies(self, current: Iterate) -> bool:
        """Whether the gap is proved, or all that is left of it is the allowance for rounding."""
        L = self.where.factor(current.B)
        certificate = certify_factor(self.objective, L, self.tol)
        if self.certificate is None or certificate.relative_gap < self.certificate.relative_gap:
            self.certificate = certificate
        if certificate.relative_gap <= self.tol:
            return True
        if not self.has_free_bound:
            return False
        nominal = nominal_gap(self.objective, L)
        if nominal > MARGIN * self.tol:
            return False
        if certificate.relative_gap - nominal > self.tol or self.retries == 3:
            return True
        self.retries, self.looks = self.retries + 1, 0
        self.margin *= 0.1
        return False

    def _gap_estimate(self, value: float) -> float:
        """The relative gap of `value` to the best lower bound so far."""
        return float((value - self.bound) / max(1.0, abs(value)))
