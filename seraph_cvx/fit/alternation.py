"""The EM-like alternation of Section 2.4: E-step (10), M-step (11), until J stops falling.

It starts from q(-1) = 1 as the paper does, and is block coordinate descent on

    J(q, A) = -L_labeled(A) + <R, A> + mu * sum_U [E_q(-ln p_k) - H(q_k) / sharpness].

Accelerated, it descends J by Newton's method after the first M-step, and ends as the plain
alternation does, with an E-step and a certified M-step. J is not the paper's objective (7): with
the paper's own sharpness 1 + mu the unlabeled part of J is mu^2/(1 + mu) times a Renyi entropy,
where (7) has mu times the Shannon entropy. The history has both.
"""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from os import PathLike
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike

from ..engine.distances import Factor
from ..engine.limit import OutOfTime
from ..m_step.solve import MStepSolver, warn_of_new_meaning
from ..model.m_step_objective import MStepObjective
from ..model.programs import descent_values
from ..numerics.arrays import one_blas_thread
from ..numerics.checks import FloatArray, check_count, check_number, counted
from ..numerics.psd_cone import check_metric
from ..pairs.pair_set import PairSet
from ..solvers.solution import MStepSolution, Status
from .steps import DescentState, Step, StepKind, alternation_steps, certified_as_it_is

if TYPE_CHECKING:
    from ..penalties.penalty import Penalty

logger = logging.getLogger(__name__)

FIRST_LOOSENESS = 0.01
"""The relative gap of the first M-step, without acceleration."""

ACCELERATED_LOOSENESS = 0.3
"""The relative gap of the first M-step, where a descent on J follows it."""

LOOSENESS = 0.1
"""A later M-step is solved to this share of the last relative fall of J."""

ROUNDING = 1e-13
"""A relative fall of J below this is rounding."""

SECONDS_TO_FINISH = 0.5
"""After a time limit or an interrupt the certificate has to be computed within this time."""


@dataclass(frozen=True)
class Iteration:
    """One E-step and M-step, or one step of the descent on J.

    Attributes
    ----------
    kind : str
        "M-step" (with the E-step before it), or "descent".
    descent_value : float
        J at the new metric and its soft labels.
    paper_objective : float
        (7) at the new metric, as a minimization.
    relative_gap : float
        The M-step's, certified; infinite after a rough M-step and after a step of the descent.
    evaluations : int
        Passes over the pairs that the step took, where the solver counts them.
    solver_seconds : float
        The share of `seconds` inside the solver.
    """

    number: int
    descent_value: float
    paper_objective: float
    relative_gap: float
    rank: int
    trace: float
    m_step_iterations: int
    evaluations: int
    seconds: float
    solver_seconds: float
    kind: str = StepKind.M_STEP.value


@dataclass(frozen=True, eq=False)
class Alternation:
    """The metric an alternation reached, and how.

    Attributes
    ----------
    metric : (m, m) array or None
        The metric of the last M-step that succeeded; None if the first one failed.
    history : list of Iteration
    status : Status
        certified: J fell by less than `tol` and the last M-step is certified to `m_step_tol`.
    m_step : MStepSolution
        The M-step that gave `metric`, with its certificate.
    objective : MStepObjective
        What that M-step minimized.
    message : str
        Why the run ended: by which tolerance or limit.
    """

    history: list[Iteration]
    status: Status
    m_step: MStepSolution
    objective: MStepObjective
    message: str = ""

    @property
    def metric(self) -> FloatArray | None:
        """The metric of the last M-step that succeeded."""
        return self.m_step.metric

    def _repr_html_(self) -> str:
        from ..display.cards import alternation_card

        return alternation_card(self)


def alternate(
    pairs: PairSet,
    unlabeled_weight: float | str = "ratio",
    trace_weight: float = 1.0,
    threshold: float = 1.0,
    sharpness: float | None = None,
    solver: Any = "newton",
    tol: float = 1e-6,
    m_step_tol: float = 1e-8,
    max_iter: int = 500,
    allow_unattained: bool = False,
    n_jobs: int | None = None,
    callback: Callable[[Iteration, FloatArray], object] | None = None,
    manifold_term: FloatArray | None = None,
    start: ArrayLike | None = None,
    accelerate: bool = True,
    penalties: Sequence[Penalty] = (),
    time_limit: float | None = None,
    checkpoint: str | PathLike[str] | None = None,
    **solver_settings: Any,
) -> Alternation:
    """Alternate E-steps (10) and M-steps (11) until J falls by less than tol.

    q <- sigma(-a s(A)), then A <- argmin f(A; q).

    Parameters
    ----------
    pairs : PairSet
    unlabeled_weight, trace_weight, threshold, n_jobs, manifold_term
        As for :class:`seraph_cvx.MStepObjective`.
    sharpness : float, optional
        The sharpness a of the E-step; None is the paper's 1 + mu.
    solver : str
        The solver of every M-step, see :func:`seraph_cvx.solve_m_step`.
    tol : float
        Stop when J falls by less than this, relative to max(1, |J|).
    m_step_tol : float
        The certified relative gap of the last M-step. Earlier ones are solved as accurately as
        the descent of J needs; none raises f above its starting value.
    max_iter : int
        The largest number of M-steps and descent steps together.
    allow_unattained : bool
        Continue where an M-step has no optimum (the paper's settings with lambda = 0).
    callback : callable, optional
        Called with each Iteration and its metric; a true return value ends the run, with status
        interrupted.
    start : (m, m) array_like, optional
        A metric whose soft labels the first M-step takes, instead of the paper's q(-1) = 1. J is
        not convex: another start may end at another metric.
    accelerate : bool
        With solver="newton", replace a hundred EM iterations by a few steps of Newton's method on J
        after the first M-step. False is the paper's sequence; it may end at another fixed point,
        with the same kind of certificate.
    penalties : sequence of Penalty
        Blocks of :mod:`seraph_cvx.penalties` that are added to (11) and J. The alternation is
        accelerated only if all of them are smooth; `kind` in the history shows whether it was.
    time_limit : float, optional
        Seconds for the whole run. A pass over the pairs then ends where it is, and the best metric
        so far is returned with status time_limit. It has a certificate if half a second more is
        enough for that, and none otherwise.
    checkpoint : path, optional
        A file that has the state of the run after each iteration. Where it exists the run goes on
        from there, to the same metric (with 1,000 points or more, to one as good); it has to be
        the same fit, of the same data with the same parameters. The file is left for you to remove.
    **solver_settings
        Such as `solver_options`, `formulation`, `polish` and `memory_limit`. Passed to
        :class:`seraph_cvx.m_step.solve.MStepSolver`.

    Returns
    -------
    Alternation
        An M-step that fails (or whose answer raises J, as a conic solver's may) ends the run: the
        last good metric is returned, with status failed (inaccurate).

    Examples
    --------
    >>> from seraph_cvx import PairSet, alternate
    >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
    >>> run = alternate(pairs)
    >>> run.status.value, run.metric.round(3)
    ('certified', array([[0.897]]))
    """
    warn_of_new_meaning(solver, stacklevel=2)
    objective = MStepObjective(
        pairs,
        previous_metric=None if start is None else check_metric(start, pairs.n_features, "start"),
        sharpness=sharpness,
        unlabeled_weight=unlabeled_weight,
        trace_weight=trace_weight,
        threshold=threshold,
        n_jobs=n_jobs,
        manifold_term=manifold_term,
        penalties=penalties,
    )
    run = run_alternation(
        objective,
        MStepSolver(solver, allow_unattained=allow_unattained, **solver_settings),
        tol=tol,
        m_step_tol=m_step_tol,
        max_iter=max_iter,
        callback=None
        if callback is None
        else lambda done, step: callback(done, np.asarray(step.metric)),
        accelerate=accelerate,
        time_limit=time_limit,
        checkpoint=checkpoint,
    )
    if not run.status.reached_tolerance:
        from ..solvers.not_certified import NotCertified  # it imports scikit-learn

        warnings.warn(run.message, NotCertified, stacklevel=2)
    return run


def run_alternation(
    objective: MStepObjective,
    solver: MStepSolver,
    *,
    tol: float = 1e-6,
    m_step_tol: float = 1e-8,
    max_iter: int = 500,
    callback: Callable[[Iteration, Step], object] | None = None,
    accelerate: bool = True,
    time_limit: float | None = None,
    checkpoint: str | PathLike[str] | None = None,
) -> Alternation:
    """Alternate from the M-step `objective` on; the result says what was not reached.

    The parameters are those of :func:`alternate`, which warns of that; `callback` is given the
    step, whose metric is made when it is read.
    """
    tol = check_number(tol, "tol", 0.0, strict=True)
    m_step_tol = check_number(m_step_tol, "m_step_tol", 0.0, strict=True)
    max_iter = check_count(max_iter, "max_iter")
    started, limit = time.perf_counter(), objective.limit
    deadline = np.inf
    if time_limit is not None:
        deadline = started + check_number(time_limit, "time_limit", 0.0, strict=True)
        solver = replace(solver, deadline=deadline)
    if solver.solver != "newton" or solver.allow_unattained or objective.mu == 0.0 or max_iter < 3:
        accelerate = False
    accelerate = accelerate and all(block.is_smooth for block in objective.penalties)
    looseness = ACCELERATED_LOOSENESS if accelerate else FIRST_LOOSENESS
    may_be_loose = solver.never_ascends and max_iter > 1
    schedule = _Schedule(tol, m_step_tol, max_iter, looseness * may_be_loose, may_be_loose)
    history: list[Iteration] = []
    given, resume, kept = objective.previous_metric, None, None
    metric = None if given is None else np.asarray(given)
    if checkpoint is not None:
        from .checkpoint import Checkpoint

        settings = {"tol": tol, "m_step_tol": m_step_tol, "max_iter": max_iter}
        kept = Checkpoint(checkpoint, objective, solver, settings | {"accelerate": accelerate})
        if (progress := kept.load(Iteration)) is not None:
            history, (schedule.last_value, schedule.looseness), stored = progress
            if isinstance(stored, DescentState):
                resume = stored
            else:
                metric, objective = stored, objective.with_soft_labels_of(stored)
    steps = alternation_steps(
        objective,
        solver,
        tolerance=lambda: schedule.goal,
        metric=metric,
        descent_tol=m_step_tol if accelerate else None,
        most_descents=max_iter - 2,  # between a first M-step and a last one
        resume=resume,
        least_fall=max(tol, ROUNDING),
    )
    status, clock = Status.ITERATION_LIMIT, started
    last_m_step = last_valid = Step(StepKind.M_STEP, objective, None)
    try:
        with limit.until(deadline):
            last_m_step = last_valid = first = next(steps)
            for step in steps if resume is not None else chain([first], steps):
                if step.kind is StepKind.E_STEP:
                    continue
                if step.kind is StepKind.M_STEP:
                    last_m_step = step
                is_late = bool(history) and time.perf_counter() >= deadline
                if step.has_failed:
                    status = Status.TIME_LIMIT if is_late else Status.FAILED
                    break
                value, paper_objective = step.value, step.paper_value
                if np.isnan(value):
                    with one_blas_thread():
                        value, paper_objective = descent_values(
                            step.objective, np.asarray(step.metric)
                        )
                if schedule.has_risen(value):
                    status = Status.TIME_LIMIT if is_late else Status.INACCURATE
                    break
                now = time.perf_counter()
                history.append(
                    _iteration(len(history) + 1, step, value, paper_objective, now - clock)
                )
                logger.debug("%s", history[-1])
                last_valid, clock = step, now
                wants_stop = callback is not None and callback(history[-1], step)
                has_converged = schedule.record_and_check_convergence(
                    value, step.solution, len(history)
                )
                if has_converged and step.solution is not None:
                    status = step.solution.status
                    break
                state = step.descent_state if accelerate else step.metric
                if kept is not None and state is not None and len(history) < max_iter:
                    kept.save(history, [schedule.last_value, schedule.looseness], state)
                if wants_stop:
                    status = Status.INTERRUPTED
                    break
                if time.perf_counter() >= deadline:
                    status = Status.TIME_LIMIT
                    break
                if len(history) >= max_iter:
                    break
    except OutOfTime as error:
        status = Status.INTERRUPTED if limit.is_interrupted else Status.TIME_LIMIT
        if not history:
            factor = _first_factor(objective) if error.factor is None else error.factor
            last_valid = Step(StepKind.M_STEP, objective, Factor(factor))
    with limit.granted(SECONDS_TO_FINISH if status in _CURES else np.inf):
        return _finish(history, status, last_m_step, last_valid, schedule)


def _first_factor(objective: MStepObjective) -> FloatArray:
    """A multiple of the identity, by which squared distances are 1 + eta on average; no pass.

    On the span of the points alone, where these are fewer than the features.
    """
    points = objective.pairs.points
    spread = 2.0 * float(np.sum(np.var(points, axis=0)))
    size = np.sqrt((1.0 + objective.threshold) / spread) if 0.0 < spread < np.inf else 1.0
    return np.asarray(size * objective.directions)


@dataclass
class _Schedule:
    """How exactly the next M-step has to be solved, and whether J has converged."""

    tol: float
    m_step_tol: float
    max_iter: int
    looseness: float
    may_be_loose: bool
    last_value: float = np.inf
    last_fall: float = np.inf

    @property
    def goal(self) -> float:
        return max(self.m_step_tol, self.looseness)

    def has_risen(self, value: float) -> bool:
        return value > self.last_value + 1e-12 * abs(self.last_value)

    def record_and_check_convergence(
        self, value: float, solution: MStepSolution | None, n_steps: int
    ) -> bool:
        """Whether J stands still at an M-step that is as exact as was asked for."""
        fall = (self.last_value - value) / max(1.0, abs(value))
        self.last_value, self.last_fall = value, fall
        if solution is None:  # a step of the descent: what follows is to be certified
            self.looseness = 0.0
            return False
        is_exact = (
            solution.relative_gap <= self.m_step_tol or solution.status is not Status.CERTIFIED
        )
        is_last = fall <= self.tol or n_steps + 1 == self.max_iter
        self.looseness = LOOSENESS * min(fall, 0.1) * (self.may_be_loose and not is_last)
        return fall <= self.tol and is_exact


def _iteration(
    number: int, step: Step, value: float, paper_objective: float, seconds: float
) -> Iteration:
    solution, (rank, trace) = step.solution, step.rank_and_trace
    return Iteration(
        number=number,
        descent_value=value,
        paper_objective=paper_objective,
        relative_gap=np.inf if solution is None else solution.relative_gap,
        rank=rank,
        trace=trace,
        m_step_iterations=0 if solution is None else solution.iterations,
        evaluations=step.passes if solution is None else solution.evaluations,
        seconds=seconds,
        solver_seconds=seconds if solution is None else solution.solver_seconds,
        kind=step.kind.value,
    )


_CURES = {
    Status.TIME_LIMIT: "The time was up: raise time_limit, or tol.",
    Status.INTERRUPTED: "Ctrl-C or the callback stopped it; the best metric so far is kept.",
}
"""What to do about an end that no M-step is to blame for."""


def _finish(
    history: list[Iteration], status: Status, last: Step, valid: Step, schedule: _Schedule
) -> Alternation:
    """The metric of the last valid step and its M-step; `last` is the last M-step tried."""
    objective, solution, tried = valid.objective, valid.solution, last.solution
    if solution is None and not valid.has_failed:  # it ended within the descent on J
        objective = objective.with_soft_labels_of(cast(FloatArray | Factor, valid.found))
        solution = certified_as_it_is(objective, valid, schedule.m_step_tol)
        tried = solution
    if solution is None or tried is None:
        raise AssertionError("Every M-step has a solution, and so has every descent.")
    fall = max(0.0, schedule.last_fall)
    message = (
        f"J fell by {fall:.1e} relatively, within tol={schedule.tol:.0e}; the last M-step is "
        f"certified to {solution.relative_gap:.1e}, within m_step_tol={schedule.m_step_tol:.0e}."
    )
    if status is not Status.CERTIFIED:
        reached = f"last M-step: {tried.status.value}, relative gap {tried.relative_gap:.2g}"
        if status in _CURES:
            reached = f"relative gap {solution.relative_gap:.2g}"
        if solution.certificate is None:
            reached = "no certificate: there was no time to compute it"
        message = (
            f"The alternation ended after {counted(len(history), 'iteration')} with status "
            f"{status.value} "
            f"({reached}). "
        )
        message += _CURES.get(status) or tried.message or "Raise max_iter, or tol."
    return Alternation(history, status, solution, objective, message)
