"""CVXPY's conic solvers, on the primal and on the dual."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from ..model.m_step_objective import MStepObjective
from .attempt import Attempt, Entrant, NotForThisProblem

if TYPE_CHECKING:
    import cvxpy as cp

TIME_LIMITED = ("SCS", "CLARABEL", "MOSEK", "COPT", "MOREAU")
"""The solvers whose options for tolerance and time are known."""

ITERATIONS = {
    "SCS": {"max_iters": 10_000_000},
    "CVXOPT": {"max_iters": 1_000_000},
    "MOREAU": {"max_iter": 1_000_000},
    "OSQP": {"max_iter": 10_000_000},
}
"""Options against a limit of iterations: time is limited, as everybody's is."""

DISTRIBUTIONS = {"MOSEK": "Mosek", "COPT": "coptpy", "HIGHS": "highspy"}
"""What pip calls a solver's package, where that is not its name in small letters."""


def conic(
    objective: MStepObjective,
    tol: float,
    time_limit: float,
    solver: str,
    formulation: str,
    /,
    **options: Any,
) -> Attempt:
    """Solve by a conic solver of CVXPY, within the tolerance and the remaining time."""
    from ..m_step.conic import options_for
    from ..m_step.statement import build_statement

    clock = time.perf_counter()
    try:
        statement = build_statement(objective, formulation)
    except NotImplementedError as error:  # of a penalty without a dual statement
        raise NotForThisProblem(str(error)) from error
    stated = time.perf_counter() - clock

    def all_options(elapsed: float) -> dict[str, Any]:
        seconds = max(0.1, time_limit - stated - elapsed) if solver in TIME_LIMITED else None
        known = options_for(solver, tol, seconds, None) | ITERATIONS.get(solver, {})
        nested = {name: known[name] | given for name, given in options.items()
                  if isinstance(known.get(name), dict)}  # fmt: skip
        return known | options | nested

    run = solve_timed(statement.problem, solver, all_options)
    metric = None if run.status == FAILED else statement.metric
    said = run.status, run.status == "optimal", run.iterations
    return Attempt(metric, *said, stated + run.compile_seconds, run.solve_seconds)


FAILED = "solver_error"
"""CVXPY's status of a solver that says it failed."""


class TimedRun(NamedTuple):
    """What a solver said of a problem, and what that took; the variables have its answer."""

    status: str
    iterations: int
    compile_seconds: float
    solve_seconds: float


def solve_timed(
    problem: cp.Problem, solver: str, options: Callable[[float], dict[str, Any]]
) -> TimedRun:
    """Compile a problem for a solver and solve it; its options by the seconds gone so far.

    CVXPY's errors while it compiles are those of `get_problem_data`.
    """
    from cvxpy.error import SolverError

    clock = time.perf_counter()
    data, chain, inverse = problem.get_problem_data(solver, solver_opts=options(0.0))
    compiled = time.perf_counter() - clock
    try:
        answer = chain.solve_via_data(
            problem, data, warm_start=False, solver_opts=options(compiled)
        )
        solved = time.perf_counter() - clock - compiled
        problem.unpack_results(answer, chain, inverse)
    except SolverError:
        return TimedRun(FAILED, 0, compiled, time.perf_counter() - clock - compiled)
    steps = int(problem.solver_stats.num_iters or 0)
    return TimedRun(str(problem.status), steps, time.perf_counter() - clock - solved, solved)


def conic_entrants() -> list[Entrant]:
    """CVXPY's installed solvers with the cones of an M-step, each on both formulations."""
    from ..m_step.conic import conic_solvers

    return [
        Entrant(
            *(name, formulation, f"{__name__}:conic", (name, formulation)),
            distribution=DISTRIBUTIONS.get(name, name.lower()),
        )
        for name in sorted(conic_solvers())
        for formulation in ("primal", "dual")
    ]
