"""The EM-like alternation of Section 2.4: E-step (10), M-step (11), until J stops falling.

It starts from q(-1) = 1 as the paper does, and is block coordinate descent on

    J(q, A) = -L_labeled(A) + <R, A> + mu * sum_U [E_q(-ln p_k) - H(q_k) / sharpness].

Accelerated, it descends J by Newton's method after the first M-step, and ends as the plain
alternation does, with an E-step and a certified M-step. J is not the paper's objective (7): with
the paper's own sharpness 1 + mu the unlabeled part of J is mu^2/(1 + mu) times a Renyi entropy,
where (7) has mu times the Shannon entropy. The history has both. The steps come from one generator,
`alternation_steps`, which the claims and the experiments consume as well.
"""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike

from ..certificate import certify_factor
from ..engine.distances import Factor, as_factor
from ..engine.passes import OutOfTime
from ..m_step.solve import OWN_SOLVERS, MStepSolver
from ..model.m_step_objective import (
    MStepObjective,
    descent_program,
    descent_values,
    paper_program,
    with_smooth_penalties,
)
from ..numerics.arrays import one_blas_thread
from ..numerics.checks import FloatArray, check_count, check_number, counted
from ..numerics.psd_cone import check_metric, numerical_rank
from ..pairs.pair_set import PairSet
from ..solvers.newton import FactorSearch
from ..solvers.solution import MStepSolution, Status

if TYPE_CHECKING:
    from ..penalties.penalty import Penalty


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
    while descent_tol is None:
        solution = solver.solve(objective, tolerance(), metric)
        metric = solution.metric
        yield Step(objective, metric, solution)
        if metric is None:
            return
        objective = objective.with_soft_labels_of(metric)
    last: MStepSolution | None = None
    factor, passes = solver.rough_start(objective, tolerance(), metric)
    while True:  # descent on J, E-step and M-step
        descent = descent_steps(objective, factor, descent_tol, solver.deadline, least_fall)
        try:
            step = next(descent)
        except OutOfTime:
            raise OutOfTime(factor) from None
        found = step.found if last is None else Factor(factor)  # the metric as certified
        yield replace(step, found=found, solution=last, passes=passes, is_descent=False)
        for step in islice(descent, most_descents):
            yield step
        found = cast(Factor, step.found)
        objective = objective.with_soft_labels_of(found)
        last = solver.solve(objective, tolerance(), start_factor=found.L)
        if last.found is None or last.certificate is None:
            yield Step(objective, None, last)
            return
        factor, passes = last.certificate.factor, 0


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
            paper_value = point.value + point.excess
            if np.isnan(point.excess):  # the pass that gave J did not give (7) too
                seven = paper_program(objective, whitened=True)
                paper_value = with_smooth_penalties(objective, seven).at(point.L).value
            step = Step(
                objective,
                Factor(basis.matrix @ point.L),
                value=point.value,
                paper_value=paper_value,
                passes=search.passes - passes,
                is_descent=True,
            )
        yield step
        passes = search.passes


logger = logging.getLogger(__name__)

FIRST_LOOSENESS = 0.01
"""The relative gap of the first M-step, without acceleration: J falls by far more."""

ACCELERATED_LOOSENESS = 0.3
"""The relative gap of the first M-step, where a descent on J follows it."""

LOOSENESS = 0.1
"""A later M-step is solved to this share of the last relative fall of J, so that J falls."""

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
        The certified gap of the M-step; infinite after a rough M-step and after a descent step.
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
    kind: str = "M-step"


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
        interrupted. If it saves the metric, a run that was killed can continue from it, given as
        `start`.
    start : (m, m) array_like, optional
        A metric whose soft labels the first M-step uses, instead of the paper's q(-1) = 1. J is not
        convex, so another start may end at another metric.
    accelerate : bool
        With solver="newton", replace a hundred EM iterations by a few steps of Newton's method on J
        after the first M-step. False gives the paper's sequence, which may end at another fixed
        point, with the same kind of certificate.
    penalties : sequence of Penalty
        Blocks of :mod:`seraph_cvx.penalties` that are added to (11) and J. The alternation is
        accelerated only if all of them are smooth; `kind` in the history shows whether it was.
    time_limit : float, optional
        Seconds for the whole run. A pass over the pairs then ends where it is, and the best metric
        so far is returned with status time_limit. It has a certificate if half a second more is
        enough for that, and none otherwise.
    **solver_settings
        Such as `solver_options` and `formulation`. Passed to
        :class:`seraph_cvx.m_step.solve.MStepSolver`.

    Returns
    -------
    Alternation
        If an M-step fails, the run ends, and the last good metric is returned with status failed;
        if its answer raises J, as a conic solver's may, with status inaccurate.

    Examples
    --------
    >>> from seraph_cvx import PairSet, alternate
    >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
    >>> run = alternate(pairs)
    >>> run.status.value, run.metric.round(3)
    ('certified', array([[0.897]]))
    """
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
) -> Alternation:
    """Alternate from the M-step `objective` on; the result says what was not reached.

    The parameters are those of :func:`alternate`, which warns of that; `callback` is given the
    step, whose metric is made when it is read.
    """
    start = Step(objective, objective.previous_metric)
    run = _Run(
        m_step=start,
        valid=start,
        tol=check_number(tol, "tol", 0.0, strict=True),
        m_step_tol=check_number(m_step_tol, "m_step_tol", 0.0, strict=True),
        max_iter=check_count(max_iter, "max_iter"),
        callback=callback,
        may_be_loose=solver.solver in OWN_SOLVERS and max_iter > 1,  # these never ascend
    )
    if time_limit is not None:
        run.deadline = run.clock + check_number(time_limit, "time_limit", 0.0, strict=True)
        solver = replace(solver, deadline=run.deadline)
    accelerate = (
        accelerate
        and solver.solver == "newton"
        and not solver.allow_unattained
        and objective.mu > 0.0
        and max_iter > 2  # a first M-step, a descent, and a last M-step
        and all(block.is_smooth for block in objective.penalties)
    )
    if run.may_be_loose:
        run.looseness = ACCELERATED_LOOSENESS if accelerate else FIRST_LOOSENESS
    steps = alternation_steps(
        objective,
        solver,
        tolerance=run.goal,
        metric=start.metric,
        descent_tol=run.m_step_tol if accelerate else None,
        most_descents=run.max_iter - 2,
        least_fall=max(run.tol, 1e-13),  # less is rounding
    )
    status, limit = Status.ITERATION_LIMIT, objective.limit
    try:
        with limit.until(run.deadline):
            for step in steps:
                over = run.take(step)
                if over is not None:
                    status = over
                    break
    except OutOfTime as error:
        status = Status.INTERRUPTED if limit.is_interrupted else Status.TIME_LIMIT
        if not run.history:
            factor = _first_factor(objective) if error.factor is None else error.factor
            run.valid = Step(objective, Factor(factor))
    with limit.granted(SECONDS_TO_FINISH if status in _CURES else np.inf):
        return run.finish(status)


def _first_factor(objective: MStepObjective) -> FloatArray:
    """A multiple of the identity, by which squared distances are 1 + eta on average; no pass.

    On the span of the points alone, where these are fewer than the features.
    """
    points = objective.pairs.points
    spread = 2.0 * float(np.sum(np.var(points, axis=0)))
    size = np.sqrt((1.0 + objective.threshold) / spread) if 0.0 < spread < np.inf else 1.0
    return size * objective.directions


_CURES = {
    Status.TIME_LIMIT: "The time was up: raise time_limit, or tol.",
    Status.INTERRUPTED: "Ctrl-C or the callback stopped it; the best metric so far is kept.",
}
"""What to do about an end that no M-step is to blame for."""


@dataclass
class _Run:
    """An alternation that is under way: what it did, how exact the next M-step is, when it ends."""

    m_step: Step  # the last one tried
    valid: Step  # the last step that did not raise J
    tol: float
    m_step_tol: float
    max_iter: int
    callback: Callable[[Iteration, Step], object] | None
    may_be_loose: bool  # whether an M-step that is not solved to the end is never worse than before
    looseness: float = 0.0
    deadline: float = np.inf
    history: list[Iteration] = field(default_factory=list)
    last_value: float = np.inf
    last_fall: float = np.inf
    clock: float = field(default_factory=time.perf_counter)

    def goal(self) -> float:
        """The certified relative gap that the next M-step has to reach."""
        return max(self.m_step_tol, self.looseness)

    def take(self, step: Step) -> Status | None:
        """Take a step into the history; the status of the run if it is over, else None."""
        if not step.is_descent:
            self.m_step = step
        if not self.history:
            self.valid = step
        is_late = bool(self.history) and time.perf_counter() >= self.deadline
        if step.found is None:
            return Status.TIME_LIMIT if is_late else Status.FAILED
        value, paper_value = step.value, step.paper_value
        if np.isnan(value):
            with one_blas_thread():
                value, paper_value = descent_values(step.objective, np.asarray(step.metric))
        if value > self.last_value + 1e-12 * abs(self.last_value):  # not by rounding alone
            return Status.TIME_LIMIT if is_late else Status.INACCURATE
        now = time.perf_counter()
        done = _iteration(len(self.history) + 1, step, value, paper_value, now - self.clock)
        self.history.append(done)
        logger.debug("%s", done)
        self.valid, self.clock = step, now
        wants_stop = self.callback is not None and self.callback(done, step)
        self.last_fall = (self.last_value - value) / max(1.0, abs(value))
        self.last_value = value
        solution, stands_still = step.solution, self.last_fall <= self.tol
        if solution is None:  # a step of the descent: what follows is to be certified
            self.looseness = 0.0
        else:
            is_certified = solution.status is Status.CERTIFIED
            if stands_still and (done.relative_gap <= self.m_step_tol or not is_certified):
                return solution.status
            is_last = stands_still or len(self.history) + 1 == self.max_iter
            self.looseness = LOOSENESS * min(self.last_fall, 0.1) * self.may_be_loose
            self.looseness *= not is_last
        if wants_stop:
            return Status.INTERRUPTED
        if time.perf_counter() >= self.deadline:
            return Status.TIME_LIMIT
        return Status.ITERATION_LIMIT if len(self.history) >= self.max_iter else None

    def finish(self, status: Status) -> Alternation:
        """The metric of the last valid step and its M-step, and why the run ended."""
        objective, solution = self.valid.objective, self.valid.solution
        if solution is None:  # it ended within the descent on J
            found = cast(FloatArray | Factor, self.valid.found)
            objective = objective.with_soft_labels_of(found)
            solution = certified_as_it_is(objective, found, self.m_step_tol)
        if status is Status.CERTIFIED:
            message = (
                f"J fell by {max(0.0, self.last_fall):.1e} relatively, within tol={self.tol:.0e}; "
                f"the last M-step is certified to {solution.relative_gap:.1e}, within "
                f"m_step_tol={self.m_step_tol:.0e}."
            )
            return Alternation(self.history, status, solution, objective, message)
        tried = self.m_step.solution
        if tried is None or self.valid.solution is None:
            tried = solution
        reached = f"last M-step: {tried.status.value}, relative gap {tried.relative_gap:.2g}"
        if status in _CURES:
            reached = f"relative gap {solution.relative_gap:.2g}"
        if solution.certificate is None:
            reached = "no certificate: there was no time to compute it"
        message = (
            f"The alternation ended after {counted(len(self.history), 'iteration')} with status "
            f"{status.value} ({reached}). "
        )
        message += _CURES.get(status) or tried.message or "Raise max_iter, or tol."
        return Alternation(self.history, status, solution, objective, message)


def _iteration(
    number: int, step: Step, value: float, paper_objective: float, seconds: float
) -> Iteration:
    """The line of the history about a step."""
    solution, found = step.solution, step.found
    if isinstance(found, Factor):
        rank, trace = found.L.shape[1], float(np.vdot(found.L, found.L))
    else:
        rank, trace = numerical_rank(np.asarray(found)), float(np.trace(np.asarray(found)))
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
        kind="descent" if step.is_descent else "M-step",
    )
