"""The M-step by this package's own methods, each ended by the certified relative gap alone.

Newton's method on a factor of the metric is the default; FISTA goes on from its point where that is
not enough. FISTA alone and projected gradient, which is the paper's method, take no penalties.
"""

from __future__ import annotations

import time

import numpy as np

from ..certificate import certify
from ..engine.distances import Factor
from ..model.m_step_objective import MStepObjective
from ..numerics.checks import FloatArray
from ..numerics.psd_cone import symmetrize
from .newton import FLAT, OVERFLOWED, STALLED, STOPPED, SolverRun, Watch, newton, subsampled_start
from .solution import ROUNDING_GAP, MStepSolution, Status


def newton_method(
    objective: MStepObjective,
    tol: float = 1e-8,
    max_iter: int = 20_000,
    start: FloatArray | None = None,
    time_limit: float | None = None,
    watch: Watch | None = None,
    start_factor: FloatArray | None = None,
) -> MStepSolution:
    """Minimize by Newton's method on a factor of the metric and, where needed, FISTA after it.

    FISTA is needed where Newton's method does not close the gap, and where no optimum is attained.
    With many points and no `start`, Newton's method begins at the solution for a few of them. With
    `start_factor`, a factor instead of a `start`, the answer is not compared with the start once
    more. With penalties this is the method of multipliers, or another that suits them.
    """
    clock = time.perf_counter()
    deadline = np.inf if time_limit is None else clock + time_limit
    if objective.penalties:
        from .multipliers import solve_penalized

        if start_factor is not None:
            start = symmetrize(start_factor @ start_factor.T)
        run = solve_penalized(objective, tol, max_iter, start, deadline, watch)
        return _solution(objective, run, "newton", tol, start, clock, deadline=deadline)
    steps, first, is_over = 0, start, False
    if objective.attains_optimum:
        if start is None and start_factor is None:
            start_factor = subsampled_start(objective, deadline)
        run = newton(objective, tol, max_iter, start, deadline, watch, start_factor)
        steps, is_over = run.steps, run.is_converged or run.solver_status == STOPPED
        first = None if is_over else run.certificate.metric
    if not is_over:
        run = _fista_steps(objective, tol, max(1, max_iter - steps), first, deadline, watch)
    return _solution(objective, run, "newton", tol, start, clock, deadline=deadline)


def fista(
    objective: MStepObjective,
    tol: float = 1e-8,
    max_iter: int = 20_000,
    start: FloatArray | None = None,
    time_limit: float | None = None,
    watch: Watch | None = None,
) -> MStepSolution:
    """Minimize by FISTA alone, in whitened coordinates.

    B <- P(Y - grad f(Y) / L), Y = B + momentum, with A = T B T'. Whitening
    (T' (sum_k c_k v_k v_k') T = I) frees the method from the scale of the features and from
    directions in which the points do not differ.
    """
    _refuse_penalties(objective, "fista")
    clock = time.perf_counter()
    deadline = np.inf if time_limit is None else clock + time_limit
    run = _fista_steps(objective, tol, max_iter, start, deadline, watch)
    return _solution(objective, run, "fista", tol, start, clock, deadline=deadline)


def projected_gradient(
    objective: MStepObjective,
    tol: float = 1e-8,
    max_iter: int = 20_000,
    start: FloatArray | None = None,
    time_limit: float | None = None,
    watch: Watch | None = None,
) -> MStepSolution:
    """Minimize by projected gradient steps in the coordinates of the data, as the paper does (11).

    A <- P(A - grad f(A) / L), from A = 0 or from `start`.
    """
    _refuse_penalties(objective, "projected-gradient")
    from .gradient_steps import Coordinates, minimize_by_gradient_steps

    clock = time.perf_counter()
    deadline = np.inf if time_limit is None else clock + time_limit
    identity = np.eye(objective.pairs.n_features)
    data = Coordinates(objective.program, identity, identity)
    run = minimize_by_gradient_steps(objective, data, tol, max_iter, start, deadline, watch=watch)
    return _solution(objective, run, "projected-gradient", tol, start, clock, deadline=deadline)


def _refuse_penalties(objective: MStepObjective, name: str) -> None:
    """Refuse penalties, for a method of gradient steps."""
    if objective.penalties:
        raise ValueError(
            f"{name} takes no penalties but the trace penalty and the manifold term: "
            f'use solver="newton" or a conic solver for {list(objective.penalties)}.'
        )


def _fista_steps(
    objective: MStepObjective,
    tol: float,
    max_iter: int,
    start: FloatArray | None,
    deadline: float,
    watch: Watch | None,
) -> SolverRun:
    """Accelerated gradient steps in whitened coordinates."""
    from .gradient_steps import Coordinates, minimize_by_gradient_steps

    basis = objective.basis
    white = Coordinates(objective.whitened_program, basis.matrix, basis.inverse)
    return minimize_by_gradient_steps(
        objective, white, tol, max_iter, start, deadline, accelerated=True, watch=watch
    )


def _solution(
    objective: MStepObjective,
    run: SolverRun,
    name: str,
    tol: float,
    start: FloatArray | None,
    clock: float,
    *,
    deadline: float,
) -> MStepSolution:
    """The point where a method ended, or the start where that is better, with the verdict."""
    certificate, solver_status = run.certificate, run.solver_status
    found: FloatArray | Factor = Factor(certificate.factor) if run.metric is None else run.metric
    if start is not None and run.steps == 0:
        found = start
    elif start is not None and run.decrease < 1e-6:  # else f has clearly fallen
        value = objective.value(np.asarray(found))  # both values by the same formula
        if objective.value(start) < value - FLAT * max(1.0, abs(value)):
            found, certificate = start, certify(objective, start).with_bound_of(certificate)
    now = time.perf_counter()
    attained, gap = objective.attains_optimum, certificate.relative_gap
    status = Status.ITERATION_LIMIT
    if attained and gap <= tol:
        status = Status.CERTIFIED
    elif attained and (run.is_converged or solver_status == STALLED):
        status = Status.ROUNDING_LIMIT if gap <= ROUNDING_GAP else Status.INACCURATE
        solver_status = "gap closed to rounding" if run.is_converged else solver_status
    elif solver_status == STOPPED:
        status = Status.INTERRUPTED
    elif solver_status == OVERFLOWED:
        status = Status.INACCURATE
    elif now >= deadline:
        status, solver_status = Status.TIME_LIMIT, "time limit"
    return MStepSolution(
        found=found,
        value=certificate.primal_value,
        certificate=certificate,
        status=status,
        solver=name,
        solver_status=solver_status,
        iterations=run.steps,
        seconds=now - clock,
        solver_seconds=now - clock,
        evaluations=run.evaluations,
        certificate_seconds=run.certificate_seconds,
        message=_explain(objective, status, attained, solver_status),
    )


def _explain(objective: MStepObjective, status: Status, attained: bool, solver_status: str) -> str:
    if status is Status.CERTIFIED:
        return ""
    from ..certificate.cause import scales_differ, why_inaccurate

    if solver_status == OVERFLOWED:
        return (
            "Numbers overflow in the units of the features: multiply X by a constant, and state "
            "the penalties in that unit."
        )
    if status is Status.ROUNDING_LIMIT:
        return "Rounding errors hide the rest of the gap: it cannot be proved to be smaller."
    if status is Status.INACCURATE:
        return f"Rounding errors hide the rest of the gap. {why_inaccurate(objective)}"
    if not attained:
        return "The optimum is not attained: the objective falls for ever. Use trace_weight > 0."
    if status is Status.INTERRUPTED:
        return "It was stopped from outside, at the best metric so far."
    if status is Status.TIME_LIMIT:
        return "The time was up: raise time_limit, or allow a larger gap."
    cure = ", or standardize the features" if scales_differ(objective.pairs.points) else ""
    return f"Allow more iterations, or a larger gap{cure}."
