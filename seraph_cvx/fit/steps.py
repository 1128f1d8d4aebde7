"""The EM-like scheme of Section 2.4 as one generator of steps, as in the paper or accelerated.

Everything that alternates consumes it: `alternate`, the explorer, the claims, the experiments.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from itertools import islice
from typing import NamedTuple, cast

import numpy as np

from ..certificate import certify_factor
from ..engine.distances import Factor, as_factor
from ..engine.limit import OutOfTime
from ..m_step.solve import MStepSolver
from ..model.m_step_objective import MStepObjective
from ..model.pair_program import FactorPoint
from ..model.programs import descent_program, paper_program, with_smooth_penalties
from ..numerics.arrays import one_blas_thread
from ..numerics.checks import FloatArray
from ..numerics.psd_cone import numerical_rank
from ..solvers.newton import FactorSearch
from ..solvers.solution import MStepSolution, Status


class StepKind(StrEnum):
    """What a step did: an M-step (11), a step of the descent on J itself, or an E-step (10)."""

    M_STEP = "M-step"
    DESCENT = "descent"
    E_STEP = "E-step"


class DescentState(NamedTuple):
    """What the next step of a descent depends on; the factor is in the coordinates of the descent.

    For radius and level see :class:`~seraph_cvx.solvers.newton.FactorSearch`; `steps` are those
    since the last M-step.
    """

    factor: FloatArray
    radius: float = 0.0
    level: float = 0.0
    steps: int = 0


@dataclass(frozen=True, eq=False)
class Step:
    """One step of the alternation."""

    kind: StepKind
    objective: MStepObjective  # the M-step with the soft labels that the step had or made
    found: FloatArray | Factor | None  # the metric; None where an M-step failed
    solution: MStepSolution | None = None  # None for the rough M-step that a descent starts from
    value: float = np.nan  # J, where the step computed it
    paper_value: float = np.nan  # (7), likewise
    passes: int = 0  # over the pairs, of a descent step or a rough M-step
    descent_state: DescentState | None = None

    @cached_property
    def metric(self) -> FloatArray | None:
        """The metric as a matrix, made when it is read; None where an M-step failed."""
        with one_blas_thread():
            return None if self.found is None else np.asarray(self.found)

    @property
    def has_failed(self) -> bool:
        """Whether there is no metric."""
        return self.found is None

    @property
    def factor(self) -> FloatArray | None:
        """The L with LL' = metric, where the step has it."""
        return self.found.L if isinstance(self.found, Factor) else None

    @property
    def rank_and_trace(self) -> tuple[int, float]:
        """The rank and the trace of the metric, by its factor where there is one."""
        if self.factor is not None:
            return self.factor.shape[1], float(np.vdot(self.factor, self.factor))
        metric = np.asarray(self.found)
        return numerical_rank(metric), float(np.trace(metric))


def alternation_steps(
    objective: MStepObjective,
    solver: MStepSolver,
    tolerance: Callable[[], float],
    metric: FloatArray | None = None,
    descent_tol: float | None = None,
    most_descents: int | None = None,
    resume: DescentState | None = None,
    least_fall: float = 0.0,
) -> Iterator[Step]:
    """Alternate M-steps and E-steps without end: A <- argmin f(A; q), q <- sigma(-a s(A)).

    The first M-step is `objective`, from `metric`; `tolerance()` is the certified relative gap of
    the next one. With `descent_tol` it is accelerated: after a rough M-step J itself is descended
    to this stationarity, or until a step lowers it by no more than `least_fall`, in at most
    `most_descents` steps, or the descent goes on where it is to `resume`. J's stationary points
    are the fixed points of the alternation, since grad J(A) = grad f(A; q(A)). After an M-step that
    failed nothing more is yielded.
    """
    if descent_tol is not None:
        yield from _accelerated(
            objective, solver, tolerance, metric, descent_tol, most_descents, resume, least_fall
        )
        return
    while True:
        solution = solver.solve(objective, tolerance(), metric)
        metric = solution.metric
        yield Step(StepKind.M_STEP, objective, metric, solution)
        if metric is None:
            return
        objective = objective.with_soft_labels_of(metric)
        yield Step(StepKind.E_STEP, objective, metric)


def _accelerated(
    objective: MStepObjective,
    solver: MStepSolver,
    tolerance: Callable[[], float],
    metric: FloatArray | None,
    descent_tol: float,
    most_descents: int | None,
    resume: DescentState | None,
    least_fall: float,
) -> Iterator[Step]:
    """A rough M-step; then descent on J, E-step and M-step, again and again."""
    solution: MStepSolution | None = None
    if resume is None:
        factor, passes = solver.rough_start(objective, tolerance(), metric)
    else:
        factor, passes = objective.basis.matrix @ resume.factor, 0
    while True:
        descent = descent_steps(objective, factor, descent_tol, solver.deadline, resume, least_fall)
        try:
            now = next(descent)
        except OutOfTime:
            raise OutOfTime(factor) from None
        kind = StepKind.M_STEP if resume is None else StepKind.DESCENT
        now = replace(now, kind=kind, passes=passes)
        if solution is not None and solution.certificate is not None:  # the metric as certified
            now = replace(now, solution=solution, found=Factor(solution.certificate.factor))
        yield now
        made = 0 if resume is None else resume.steps
        for now in islice(descent, None if most_descents is None else most_descents - made):
            yield now
        found = cast(Factor, now.found)
        objective = objective.with_soft_labels_of(found)
        yield Step(StepKind.E_STEP, objective, found)
        solution = solver.solve(objective, tolerance(), start_factor=found.L)
        if solution.found is None or solution.certificate is None:
            yield Step(StepKind.M_STEP, objective, None, solution)
            return
        factor, passes, resume = solution.certificate.factor, 0, None


def certified_as_it_is(objective: MStepObjective, step: Step, tol: float) -> MStepSolution:
    """Certify the metric of `step` for its M-step as it stands; nothing is solved."""
    clock, certificate = time.perf_counter(), None
    try:
        with one_blas_thread(min(objective.pairs.points.shape)):
            factor = as_factor(cast(FloatArray | Factor, step.found))
            certificate = certify_factor(objective, factor.L, tol)
    except OutOfTime:
        pass
    is_certified = certificate is not None and certificate.relative_gap <= tol
    seconds = time.perf_counter() - clock
    return MStepSolution(
        found=step.found,
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
    resume: DescentState | None = None,
    least_fall: float = 0.0,
) -> Iterator[Step]:
    """Newton steps on J from LL', L = `factor`, to a stationary point; none of them raises it.

    The first step is the start itself, or where to `resume` a descent. After `deadline`, on the
    clock of `time.perf_counter`, no further one is made.
    """
    basis = objective.basis
    program = with_smooth_penalties(objective, descent_program(objective, whitened=True))
    search = FactorSearch(program, tol, deadline=deadline, least_fall=least_fall)
    state = DescentState(basis.inverse @ factor) if resume is None else resume
    search.radius, passes, steps = state.radius, 0, state.steps
    points = search.points(state.factor, state.level)
    while True:
        with one_blas_thread(min(objective.pairs.points.shape)):
            now = next(points, None)
            if now is None:
                return
            L = basis.matrix @ now.L
            step = Step(
                StepKind.DESCENT,
                objective,
                Factor(L),
                value=now.value,
                paper_value=_paper_value(objective, now),
                passes=search.passes - passes,
                descent_state=DescentState(now.L, search.radius, search.level, steps),
            )
        yield step
        passes, steps = search.passes, steps + 1


def _paper_value(objective: MStepObjective, now: FactorPoint) -> float:
    """The objective (7) at a step, from the pass that gave J if it gave the excess too."""
    if np.isnan(now.excess):
        program = with_smooth_penalties(objective, paper_program(objective, whitened=True))
        return program.at(now.L).value
    return now.value + now.excess
