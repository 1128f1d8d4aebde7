"""The EM-like scheme of Section 2.4 as one generator of steps, at the paper's pace or accelerated.

Everything that alternates consumes it: `alternate`, the explorer, the claims, the experiments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice

import numpy as np

from ..m_step.solve import MStepSolver
from ..model.m_step_objective import MStepObjective
from ..model.semi_supervised import descent_program, paper_program
from ..numerics.blas_threads import one_blas_thread
from ..numerics.checks import FloatArray
from ..numerics.psd_cone import symmetrise
from ..solvers.factor_newton import FaceSearch
from ..solvers.newton import leading_factor
from ..solvers.solution import MStepSolution


class StepKind(StrEnum):
    """What a step did: an M-step (11), a step of the descent on J itself, or an E-step (10)."""

    M_STEP = "M-step"
    DESCENT = "descent"
    E_STEP = "E-step"


@dataclass(frozen=True, eq=False)
class Step:
    """One step of the alternation.

    Attributes
    ----------
    kind : StepKind
    objective : MStepObjective
        The M-step whose soft labels are at hand; an E-step puts another one in its place.
    metric : (m, m) array or None
        None only where an M-step failed.
    solution : MStepSolution or None
        Of an M-step.
    value, paper_value : float
        J and (7), where the step knows them: after a step of the descent.
    rank, passes : int
        Of the metric, and the passes over the pairs that a step of the descent took.
    """

    kind: StepKind
    objective: MStepObjective
    metric: FloatArray | None
    solution: MStepSolution | None = None
    value: float = np.nan
    paper_value: float = np.nan
    rank: int = 0
    passes: int = 0


def alternation_steps(
    objective: MStepObjective,
    solver: MStepSolver,
    tolerance: Callable[[], float],
    metric: FloatArray | None = None,
    descent_tol: float | None = None,
    most_descents: int | None = None,
) -> Iterator[Step]:
    """M-step, E-step, M-step, ..., without end: A <- argmin f(A; q), q <- sigma(-a s(A)).

    Parameters
    ----------
    objective : MStepObjective
        The first M-step.
    solver : MStepSolver
    tolerance : callable
        The certified relative gap that the next M-step is solved to.
    metric : (m, m) array, optional
        Where the first M-step starts from.
    descent_tol : float, optional
        Accelerate: after an M-step, descend J itself to this stationarity. J's stationary points
        are the fixed points of the alternation, since grad J(A) = grad f(A; q(A)).
    most_descents : int, optional
        Steps of a descent, at most.

    Yields
    ------
    Step
        After an M-step that failed, nothing more.
    """
    while True:
        solution = solver.solve(objective, tolerance(), metric)
        yield Step(StepKind.M_STEP, objective, solution.metric, solution)
        if solution.metric is None:
            return
        metric = solution.metric
        if descent_tol is not None and objective.mu > 0.0:
            for step in islice(descent_steps(objective, metric, descent_tol), most_descents):
                yield step
                metric = step.metric
        if metric is None:
            return
        objective = objective.with_soft_labels_of(metric)
        yield Step(StepKind.E_STEP, objective, metric)


def descent_steps(objective: MStepObjective, metric: FloatArray, tol: float) -> Iterator[Step]:
    """Newton steps on J from `metric`, none of which raises it, to a stationary point."""
    axes = objective.axes
    with one_blas_thread():
        program = descent_program(objective, whitened=True)
        paper = paper_program(objective, whitened=True)
        start = leading_factor(symmetrise(axes.inverse @ metric @ axes.inverse.T))
        search = FaceSearch(program, tol)
        points = search.points(start)
        next(points)  # the start itself
    passes = search.passes
    while True:
        with one_blas_thread():
            now = next(points, None)
            if now is None:
                return
            L = axes.matrix @ now.L
            step = Step(
                StepKind.DESCENT,
                objective,
                symmetrise(L @ L.T),
                value=now.value,
                paper_value=paper.at(now.L).value,
                rank=now.L.shape[1],
                passes=search.passes - passes,
            )
        yield step
        passes = search.passes
