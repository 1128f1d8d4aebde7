"""Other solvers for the current M-step: their answers, and the gap as their iterations go on."""

from __future__ import annotations

import warnings
from dataclasses import replace

from ..m_step.solve import FIRST_ORDER, MStepSolver
from ..solvers.solution import MStepSolution
from .stepwise_alternation import TOLERANCE, HalfStep

SOLVERS = ("fista", "projected-gradient", "CLARABEL", "SCS")


def ask_solver(half_step: HalfStep, solver: str, time_limit: float = 20.0) -> MStepSolution:
    """Solve the current M-step (11) by a solver, from scratch.

    Parameters
    ----------
    half_step : HalfStep
    solver : str
        As for :func:`seraph_cvx.solve_m_step`.
    time_limit : float
        In seconds.

    Returns
    -------
    MStepSolution
        Its message includes the warnings that were issued.

    Raises
    ------
    OptimumNotAttained
        Where this M-step has no optimum.

    Examples
    --------
    >>> from seraph_cvx.explorer.snapshot import Snapshot
    >>> ask_solver(Snapshot(position=1).half_step, "fista").status.value
    'certified'
    """
    chosen = MStepSolver(solver, time_limit=time_limit)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        solution = chosen.solve(half_step.objective, TOLERANCE)
    words = [solution.message, *(str(warning.message) for warning in caught)]
    return replace(solution, message=" ".join(filter(None, dict.fromkeys(words))))


def answers_of(half_step: HalfStep, solver: str) -> list[MStepSolution]:
    """Solve the current M-step by FISTA, from scratch, and by `solver` if it is another one.

    Raises
    ------
    OptimumNotAttained
        Where this M-step has no optimum.

    Examples
    --------
    >>> from seraph_cvx.explorer.snapshot import Snapshot
    >>> [answer.solver for answer in answers_of(Snapshot(position=1).half_step, "fista")]
    ['fista']
    """
    return [ask_solver(half_step, name) for name in dict.fromkeys(("fista", solver))]


def gaps_by_iteration(
    half_step: HalfStep, solver: str, most_steps: int = 1_000
) -> list[tuple[int, float]]:
    """The certified relative gap of a first-order method stopped after 1, 2, 3, 4, 6, 9, ... steps.

    Each is a run of its own from A = 0, up to the first that is certified. There is none of a conic
    solver: its runs take too long for that.

    Examples
    --------
    >>> from seraph_cvx.explorer.snapshot import Snapshot
    >>> gaps = gaps_by_iteration(Snapshot(position=1).half_step, "fista")
    >>> gaps[0][0], gaps[-1][1] <= 1e-8
    (1, True)
    """
    gaps: list[tuple[int, float]] = []
    steps = 1
    while solver in FIRST_ORDER and steps <= most_steps:
        answer = MStepSolver(solver, max_iter=steps).solve(half_step.objective, TOLERANCE)
        if answer.relative_gap <= TOLERANCE:
            return [*gaps, (answer.iterations, answer.relative_gap)]
        gaps.append((steps, answer.relative_gap))
        steps = max(steps + 1, int(1.5 * steps))
    return gaps
