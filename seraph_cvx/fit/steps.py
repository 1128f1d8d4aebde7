"""The EM-like scheme of Section 2.4 as one generator of steps, as in the paper or accelerated.

Everything that alternates consumes it: `alternate`, the claims, the experiments.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import cast

import numpy as np

from ..certificate import certify_factor
from ..engine.distances import Factor, as_factor
from ..engine.passes import OutOfTime
from ..m_step.solve import MStepSolver
from ..model.m_step_objective import MStepObjective
from ..model.pair_program import FactorPoint
from ..model.programs import descent_program, paper_program, with_smooth_penalties
from ..numerics.arrays import one_blas_thread
from ..numerics.checks import FloatArray
from ..numerics.psd_cone import numerical_rank
from ..solvers.newton import FactorSearch
from ..solvers.solution import MStepSolution, Status


@dataclass(frozen=True, eq=False)
class Step:
    """One step of the alternation."""

    objective: MStepObjective  # the M-step with the soft labels that the step had
    found: FloatArray | Factor | None  # the metric; None where an M-step failed
    solution: MStepSolution | None = None  # None for the rough M-step that a descent starts from
    value: float = np.nan  # J, where the step computed it
    paper_value: float = np.nan  # (7), likewise
    passes: int = 0  # over the pairs, of a descent step or a rough M-step
    is_descent: bool = False  # a step of the descent on J itself, and no M-step

    @cached_property
    def metric(self) -> FloatArray | None:
        """The metric as a matrix, made when it is read; None where an M-step failed."""
        with one_blas_thread():
            return None if self.found is None else np.asarray(self.found)

    def rank_and_trace(self) -> tuple[int, float]:
        """The rank and the trace of the metric, by its factor where there is one."""
        if isinstance(self.found, Factor):
            return self.found.L.shape[1], float(np.vdot(self.found.L, self.found.L))
        metric = np.asarray(self.found)
        return numerical_rank(metric), float(np.trace(metric))


def alternation_steps(
    objective: MStepObjective,
    solver: MStepSolver,
    tolerance: Callable[[], float],
    metric: FloatArray | None = None,
    descent_tol: float | None = None,
    most_descents: int | None = None,
    least_fall: float = 0.0,
) -> Iterator[Step]:
    """Alternate M-steps and E-steps without end: A <- argmin f(A; q), q <- sigma(-a s(A)).

    The first M-step is `objective`, from `metric`; `tolerance()` is the certified relative gap of
    the next one. With `descent_tol` it is accelerated: after a rough M-step J itself is descended
    to this stationarity, or until a step lowers it by no more than `least_fall`, in at most
    `most_descents` steps. J's stationary points are the fixed points of the alternation, since
    grad J(A) = grad f(A; q(A)). After an M-step that failed nothing more is yielded.
    """
    if descent_tol is not None:
        yield from _accelerated(
            objective, solver, tolerance, metric, descent_tol, most_descents, least_fall
        )
        return
    while True:
        solution = solver.solve(objective, tolerance(), metric)
        metric = solution.metric
        yield Step(objective, metric, solution)
        if metric is None:
            return
        objective = objective.with_soft_labels_of(metric)


def _accelerated(
    objective: MStepObjective,
    solver: MStepSolver,
    tolerance: Callable[[], float],
    metric: FloatArray | None,
    descent_tol: float,
    most_descents: int | None,
    least_fall: float,
) -> Iterator[Step]:
    """A rough M-step; then descent on J, E-step and M-step, again and again."""
    solution: MStepSolution | None = None
    factor, passes = solver.rough_start(objective, tolerance(), metric)
    while True:
        descent = descent_steps(objective, factor, descent_tol, solver.deadline, least_fall)
        try:
            step = next(descent)
        except OutOfTime:
            raise OutOfTime(factor) from None
        found = step.found if solution is None else Factor(factor)  # the metric as certified
        yield replace(step, found=found, solution=solution, passes=passes, is_descent=False)
        for step in islice(descent, most_descents):
            yield step
        found = cast(Factor, step.found)
        objective = objective.with_soft_labels_of(found)
        solution = solver.solve(objective, tolerance(), start_factor=found.L)
        if solution.found is None or solution.certificate is None:
            yield Step(objective, None, solution)
            return
        factor, passes = solution.certificate.factor, 0


def certified_as_it_is(
    objective: MStepObjective, found: FloatArray | Factor, tol: float
) -> MStepSolution:
    """Certify a metric for an M-step as it stands; nothing is solved."""
    clock, certificate = time.perf_counter(), None
    try:
        with one_blas_thread(min(objective.pairs.points.shape)):
            certificate = certify_factor(objective, as_factor(found).L, tol)
    except OutOfTime:
        pass
    is_certified = certificate is not None and certificate.relative_gap <= tol
    seconds = time.perf_counter() - clock
    return MStepSolution(
        found=found,
        value=np.inf if certificate is None else certificate.primal_value,
        certificate=certificate,
        status=Status.CERTIFIED if is_certified else Status.ITERATION_LIMIT,
        solver="newton",
        solver_status="stopped within the descent on J",
        iterations=0,
        seconds=seconds,
        certificate_seconds=seconds,
    )


def descent_steps(
    objective: MStepObjective,
    factor: FloatArray,
    tol: float,
    deadline: float = np.inf,
    least_fall: float = 0.0,
) -> Iterator[Step]:
    """Newton steps on J from LL', L = `factor`, to a stationary point; none of them raises it.

    The first step is the start itself. After `deadline`, on the clock of `time.perf_counter`, no
    further one is made.
    """
    basis = objective.basis
    program = with_smooth_penalties(objective, descent_program(objective, whitened=True))
    search = FactorSearch(program, tol, deadline=deadline, least_fall=least_fall)
    points, passes = search.points(basis.inverse @ factor), 0
    while True:
        with one_blas_thread(min(objective.pairs.points.shape)):
            point = next(points, None)
            if point is None:
                return
            step = Step(
                objective,
                Factor(basis.matrix @ point.L),
                value=point.value,
                paper_value=_paper_value(objective, point),
                passes=search.passes - passes,
                is_descent=True,
            )
        yield step
        passes = search.passes


def _paper_value(objective: MStepObjective, now: FactorPoint) -> float:
    """The objective (7) at a step, from the pass that gave J if it gave the excess too."""
    if np.isnan(now.excess):
        program = with_smooth_penalties(objective, paper_program(objective, whitened=True))
        return program.at(now.L).value
    return now.value + now.excess
