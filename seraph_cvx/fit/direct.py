"""Minimizes the paper's objective (7) itself, which is nonconvex, to a stationary point."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from ..engine.distances import Factor, as_factor
from ..engine.passes import OutOfTime
from ..model.m_step_objective import MStepObjective, paper_program, with_smooth_penalties
from ..model.pair_program import FactorPoint
from ..numerics.arrays import one_blas_thread
from ..numerics.checks import FloatArray, check_number, counted
from ..numerics.psd_cone import check_metric
from ..solvers.newton import FactorSearch, Watch, keeping_factor, leading_factor
from ..solvers.solution import Status

MOST_RETRIES = 4
"""How often the search is resumed with a tenth of its tolerance, if its end is not stationary."""


@dataclass(frozen=True, eq=False)
class DirectSolution:
    """A stationary point of (7), or the point at which the descent had to stop.

    `stationarity` is by how much (7) could still fall by its gradient G at A, relative to
    max(1, |value|); not a bound on the optimum. With C = sum_k c_k v_k v_k' it is the largest
    <G, A - D> over metrics D of <C + R, D> <= S = <C + R, A> + (1 + eta) sum_k c_k, which is
    <G, A> + S max(0, -g), g the least eigenvalue of G in coordinates where C + R = I. It is zero
    exactly at the stationary points of (7) over the cone, and does not depend on the unit of the
    features. The status is never certified: (7) is not convex and has no duality gap. `values` are
    (7) at the start and after each step, as computed: it may rise by the rounding of its sum.
    """

    found: FloatArray | Factor  # what `metric` is made of when it is read
    value: float
    stationarity: float
    status: Status
    iterations: int
    seconds: float
    values: list[float]
    message: str = ""

    @cached_property
    def metric(self) -> FloatArray:
        """The metric as a matrix."""
        return np.asarray(self.found)


def minimize_directly(
    m_step: MStepObjective,
    start: ArrayLike | None = None,
    tol: float = 1e-6,
    max_iter: int = 5_000,
    time_limit: float | None = None,
    watch: Watch | None = None,
) -> DirectSolution:
    """Descend the paper's objective (7), with the pairs and weights of an M-step.

    By Newton's method with a trust region on the factor of the metric, for
    -sum_{S u D} ln p(y) + mu sum_U H(p) + lambda tr(A), to a stationary point. Start, steps and
    stopping rule do not depend on the unit of the features: points c*x with c^2*lambda give A/c^2.

    The default `start` is the identity over the mean variance of the features that vary: A = I for
    standardized points. Another start may end at another stationary point. `watch` is called with
    the number of steps and (7) after each step.
    """
    clock, deadline = time.perf_counter(), np.inf
    if time_limit is not None:
        deadline = clock + check_number(time_limit, "time_limit", 0.0, strict=True)
    for block in m_step.penalties:
        if not block.is_smooth:  # Newton's method on (7) knows no edges
            raise ValueError(
                f'{block!r} is not smooth, and algorithm="direct" takes smooth penalties only '
                '(Ridge, LogDet): use algorithm="em".'
            )
    points = m_step.pairs.points
    if start is None:
        varies = m_step.pairs.feature_ranges > 0.0  # metrics scale as their mean variance does
        variance = float(np.mean(np.var(points[:, varies], axis=0))) if np.any(varies) else 1.0
        found = Factor(np.sqrt(1.0 / variance) * m_step.directions)
    else:
        found = as_factor(check_metric(start, points.shape[1], "start"))
    values, stationarity, is_stopped, n_steps = list[float](), np.inf, False, 0
    try:
        with (
            m_step.limit.until(deadline),
            one_blas_thread(min(m_step.pairs.points.shape)),
            keeping_factor(m_step.basis),
        ):
            L = leading_factor(m_step, found)
            program = with_smooth_penalties(m_step, paper_program(m_step, whitened=True))
            search = FactorSearch(program, tol, max_iter, deadline, watch)
            for _ in range(1 + MOST_RETRIES):
                steps = search.points(L)
                current = next(steps)
                values = values or [current.value]
                for current in steps:
                    values.append(current.value)
                # a direction in which no two points differ is left out
                L, found = current.L, Factor(m_step.basis.matrix @ current.L)
                is_stopped, n_steps = search.is_stopped, search.steps
                stationarity = _stationarity(current)
                if stationarity <= tol or search.is_over:
                    break
                search.tol *= 0.1
    except OutOfTime as error:
        is_stopped, stationarity = m_step.limit.is_interrupted, np.inf
        found = found if error.factor is None else Factor(error.factor)
    status, message, iterations = Status.STATIONARY, "", max(len(values) - 1, 0)
    if not stationarity <= tol:
        is_late = time.perf_counter() >= deadline
        status, cure = _why_over(is_stopped, is_late, n_steps >= max_iter)
        message = (
            f"Stopped after {counted(iterations, 'step')} at stationarity {stationarity:.2g}, "
            f"asked for {tol:.2g}: {cure}."
        )
    return DirectSolution(
        found=found,
        value=values[-1] if values else np.nan,
        stationarity=stationarity,
        status=status,
        iterations=iterations,
        seconds=time.perf_counter() - clock,
        values=values,
        message=message,
    )


def _stationarity(point: FactorPoint) -> float:
    """How much (7) could still fall by its gradient, see `DirectSolution.stationarity`."""
    least = float(np.min(np.linalg.eigvalsh(point.gradient), initial=0.0))
    size = float(np.vdot(point.L, point.L)) + point.program.typical_size
    decrease = 0.5 * float(np.vdot(point.factor_gradient, point.L)) - least * size
    return abs(decrease) / max(1.0, abs(point.value))  # below zero by rounding alone


def _why_over(is_stopped: bool, is_late: bool, has_all_steps: bool) -> tuple[Status, str]:
    """Why a search ended before it was at a stationary point, and the remedy."""
    if is_stopped:
        return Status.INTERRUPTED, "it was stopped from outside"
    if is_late:
        return Status.TIME_LIMIT, "the time was up, so raise time_limit or tol"
    if has_all_steps:
        return Status.ITERATION_LIMIT, "raise max_iter or tol"
    return Status.ITERATION_LIMIT, "rounding hides the rest, so raise tol"
