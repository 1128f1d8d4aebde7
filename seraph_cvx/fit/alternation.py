"""The EM-like alternation of Section 2.4: E-step (10), M-step (11), until J stops falling.

It starts from q(-1) = 1 as the paper does, and is block coordinate descent on

    J(q, A) = -L_labeled(A) + <R, A> + mu * sum_U [E_q(-ln p_k) - H(q_k) / sharpness],

not on the paper's objective (7): with the paper's own sharpness 1 + mu the unlabeled part of J is
mu^2/(1 + mu) times a Renyi entropy, where (7) has mu times the Shannon entropy. The history has
both.
"""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..m_step.solve import MStepSolver
from ..model.m_step_objective import MStepObjective
from ..model.semi_supervised import descent_values
from ..numerics.blas_threads import one_blas_thread
from ..numerics.checks import FloatArray, check_count, check_number
from ..numerics.psd_cone import check_metric, numerical_rank
from ..pairs.pair_set import PairSet
from ..solvers.solution import MStepSolution, Status

logger = logging.getLogger(__name__)

LOOSENESS = 0.1
"""An early M-step is solved to this share of the last relative fall of J."""


@dataclass(frozen=True)
class Iteration:
    """One E-step and M-step.

    Attributes
    ----------
    descent_value : float
        J at the new metric and its soft labels.
    paper_objective : float
        (7) at the new metric, as a minimisation.
    relative_gap : float
        The M-step's, certified.
    evaluations : int
        Sweeps over the pairs that the M-step took, where the solver counts them.
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


@dataclass(frozen=True, eq=False)
class Alternation:
    """The metric an alternation reached, and how.

    Attributes
    ----------
    metric : (m, m) array or None
        Of the last M-step that succeeded; None if the first one failed.
    history : list of Iteration
    status : Status
        certified: J fell by less than `tol` and the last M-step is certified to `m_step_tol`.
    m_step : MStepSolution
        The M-step that gave `metric`, with its certificate.
    objective : MStepObjective
        What that M-step minimised.
    message : str
        Why the run ended, where it did not end certified.
    """

    metric: FloatArray | None
    history: list[Iteration]
    status: Status
    m_step: MStepSolution
    objective: MStepObjective
    message: str = ""


def alternate(
    pairs: PairSet,
    unlabeled_weight: float | str = "ratio",
    trace_weight: float = 1.0,
    threshold: float = 1.0,
    sharpness: float | None = None,
    solver: Any = "fista",
    tol: float = 1e-6,
    m_step_tol: float = 1e-8,
    max_iter: int = 500,
    allow_unattained: bool = False,
    n_jobs: int | None = None,
    callback: Callable[[Iteration, FloatArray], object] | None = None,
    manifold_term: FloatArray | None = None,
    start: ArrayLike | None = None,
    **solver_settings: Any,
) -> Alternation:
    """q <- sigma(-a s(A)), eq. (10); A <- argmin f(A; q), eq. (11); until J falls by less than tol.

    Parameters
    ----------
    pairs : PairSet
    unlabeled_weight, trace_weight, threshold : float
        mu ("ratio": #(S u D)/#U), lambda and eta.
    sharpness : float, optional
        a of the E-step; None is the paper's 1 + mu.
    solver : str
        Of the M-step, see :func:`seraph_cvx.solve_m_step`; one for all iterations.
    tol : float
        Stop when J falls by less than this, relative to max(1, |J|).
    m_step_tol : float
        The certified relative gap of the last M-step. Earlier ones are solved as exactly as the
        descent of J needs; none raises f above where it started.
    max_iter : int
    allow_unattained : bool
        Go on where an M-step has no optimum (the paper's settings with lambda = 0).
    n_jobs : int, optional
        Threads over blocks of pairs.
    callback : callable, optional
        Called with each Iteration and its metric; a true return value ends the run.
    manifold_term : (m, m) array_like, optional
        nu*X'LX, added to R.
    start : (m, m) array_like, optional
        A metric whose soft labels the first M-step takes, instead of the paper's q(-1) = 1. J is
        not convex: another start may end elsewhere.
    **solver_settings
        Passed to :class:`seraph_cvx.m_step.solve.MStepSolver`.

    Returns
    -------
    Alternation
        An M-step that fails (or whose answer raises J, as a conic solver's may) ends the run: the
        last good metric is returned, with status failed (inaccurate). No other solver steps in.

    Examples
    --------
    >>> from seraph_cvx import PairSet, alternate
    >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
    >>> run = alternate(pairs)
    >>> run.status.value, run.metric.round(3)
    ('certified', array([[0.897]]))
    """
    run = run_alternation(
        pairs,
        unlabeled_weight=unlabeled_weight,
        trace_weight=trace_weight,
        threshold=threshold,
        sharpness=sharpness,
        solver=solver,
        tol=tol,
        m_step_tol=m_step_tol,
        max_iter=max_iter,
        allow_unattained=allow_unattained,
        n_jobs=n_jobs,
        callback=callback,
        manifold_term=manifold_term,
        start=start,
        **solver_settings,
    )
    if run.message:
        from ..solvers.not_certified import NotCertified  # it imports scikit-learn

        warnings.warn(run.message, NotCertified, stacklevel=2)
    return run


def run_alternation(
    pairs: PairSet,
    unlabeled_weight: float | str = "ratio",
    trace_weight: float = 1.0,
    threshold: float = 1.0,
    sharpness: float | None = None,
    solver: Any = "fista",
    tol: float = 1e-6,
    m_step_tol: float = 1e-8,
    max_iter: int = 500,
    allow_unattained: bool = False,
    n_jobs: int | None = None,
    callback: Callable[[Iteration, FloatArray], object] | None = None,
    manifold_term: FloatArray | None = None,
    start: ArrayLike | None = None,
    **solver_settings: Any,
) -> Alternation:
    """Do the work of :func:`alternate`; what was not reached is in the message of the result."""
    tol = check_number(tol, "tol", 0.0, strict=True)
    m_step_tol = check_number(m_step_tol, "m_step_tol", 0.0, strict=True)
    max_iter = check_count(max_iter, "max_iter")
    door = MStepSolver(solver, allow_unattained=allow_unattained, **solver_settings)
    history: list[Iteration] = []
    metric = None if start is None else check_metric(start, pairs.n_features, "start")
    last_objective: MStepObjective | None = None
    good: tuple[MStepSolution, MStepObjective] | None = None
    looseness = 0.01 if max_iter > 1 else 0.0
    last_value = np.inf
    while True:
        clock = time.perf_counter()
        objective = MStepObjective(
            pairs,
            previous_metric=metric,
            sharpness=sharpness,
            unlabeled_weight=unlabeled_weight,
            trace_weight=trace_weight,
            threshold=threshold,
            n_jobs=n_jobs,
            manifold_term=manifold_term,
        )
        if last_objective is not None:
            objective.inherit(last_objective)
        last_objective = objective
        goal = max(m_step_tol, looseness) if door.never_ascends else m_step_tol
        solution = door.solve(objective, goal, metric)
        if solution.metric is None:
            return _finish(
                metric, history, Status.FAILED, solution, *(good or (solution, objective))
            )
        with one_blas_thread():
            value, paper_objective = descent_values(objective, solution.metric)
        if value > last_value + 1e-12 * abs(last_value):
            return _finish(
                metric, history, Status.INACCURATE, solution, *(good or (solution, objective))
            )
        metric, good = solution.metric, (solution, objective)
        history.append(
            Iteration(
                len(history) + 1,
                value,
                paper_objective,
                solution.relative_gap,
                numerical_rank(metric),
                float(np.trace(metric)),
                solution.iterations,
                solution.evaluations,
                time.perf_counter() - clock,
                solution.solver_seconds,
            )
        )
        logger.debug("%s", history[-1])
        wants_stop = callback is not None and callback(history[-1], metric)
        fall = (last_value - value) / max(1.0, abs(value))
        last_value = value
        exact = solution.relative_gap <= m_step_tol or solution.status is not Status.CERTIFIED
        if fall <= tol and exact:
            return _finish(metric, history, solution.status, solution, *good)
        if wants_stop or len(history) >= max_iter:
            return _finish(metric, history, Status.ITERATION_LIMIT, solution, *good)
        is_last = fall <= tol or len(history) + 1 == max_iter
        looseness = 0.0 if is_last else LOOSENESS * min(fall, 0.1)


def _finish(
    metric: FloatArray | None,
    history: list[Iteration],
    status: Status,
    last: MStepSolution,
    good: MStepSolution,
    objective: MStepObjective,
) -> Alternation:
    message = ""
    if status is not Status.CERTIFIED:
        message = (
            f"The alternation ended after {len(history)} iterations with status {status.value} "
            f"(last M-step: {last.status.value}, relative gap {last.relative_gap:.2g}). "
        )
        message += last.message or "Raise max_iter, or tol."
    return Alternation(metric, history, status, good, objective, message)
