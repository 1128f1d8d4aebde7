"""Projected gradient steps B <- P(Y - grad f(Y) / L), with or without momentum in Y.

Steps are judged by gradients, never by values, whose rounding would stall them near a relative gap
of 1e-7. Every quarter more steps, once f hardly falls, the iterate is certified: that gap alone
ends the method.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..certificate import Certificate, certify_factor, nominal_gap
from ..model.m_step_objective import MStepObjective
from ..model.pair_program import PairProgram
from ..numerics.checks import FloatArray
from ..numerics.psd_cone import factor, project, symmetrize
from .newton import FLAT, STALLED, STOPPED, SolverRun, Watch


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

    def factor(self, B: FloatArray) -> FloatArray:
        """A factor F of the metric: A = T B T' = FF'."""
        return self.T @ factor(B).T


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
    """Projected gradient steps, with momentum where `accelerated`; certified now and then."""
    m = where.T.shape[1]
    B = np.zeros((m, m)) if start is None else where.inverse @ start @ where.inverse.T
    B = project(symmetrize(B))
    current = Iterate(B, B, *where.value_and_gradient(B))
    certificate, seconds = Certificate(np.inf, -np.inf, ""), 0.0
    last_value = lowest_value = current.value
    fell_at = iteration = next_check = 0
    curvature = _guess_curvature(objective, where)
    least = 1e-6 * curvature  # where f falls forever the curvature would vanish
    while True:
        is_late, status = time.perf_counter() >= deadline, ""
        if iteration >= next_check or iteration >= max_iter or is_late:
            next_check = iteration + max(5, iteration // 4)
            if current.value < lowest_value - FLAT * abs(lowest_value):
                lowest_value, fell_at = current.value, iteration
            if iteration >= max_iter or is_late:
                status = "time limit" if is_late else "iteration limit"
            elif iteration - fell_at > max(200, iteration // 2):
                status = STALLED
            elif iteration and watch is not None and watch(iteration, current.value):
                status = STOPPED
            fall, last_value = last_value - current.value, current.value
            if status or abs(fall) <= tol * max(1.0, abs(current.value)):  # else it falls on
                clock, last_gap = time.perf_counter(), certificate.relative_gap
                found = certify_factor(objective, where.factor(current.B), tol)
                certificate = found.with_bound_of(certificate)
                gap = certificate.relative_gap
                is_done = gap <= tol or (
                    gap > 0.5 * last_gap and _only_rounding_is_left(objective, certificate, tol)
                )
                if status == STALLED and not is_done:
                    certificate = _stretched(objective, certificate, tol)
                seconds += time.perf_counter() - clock
                if status or is_done:
                    status = "gap closed" if is_done else status
                    took = iteration, where.evaluations, seconds
                    return SolverRun(certificate, is_done, *took, status)
        iteration += 1
        current, curvature = projected_step(
            where.value_and_gradient, project, current, max(curvature, least), accelerated
        )


def _only_rounding_is_left(objective: MStepObjective, found: Certificate, tol: float) -> bool:
    """Whether the gap is closed but for the allowance for rounding, which is more than `tol`."""
    nominal = nominal_gap(objective, found.factor)
    return nominal <= 0.5 * tol and (found.relative_gap - nominal > tol or nominal <= 1e-3 * tol)


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
