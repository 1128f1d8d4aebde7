"""CVXPY's conic solvers, on the primal and on the dual."""

from __future__ import annotations

import time
from typing import Any

from ..model.m_step_objective import MStepObjective
from .attempt import Attempt, Entrant, NotForThisProblem

TIME_LIMITED = ("SCS", "CLARABEL", "MOSEK", "COPT", "MOREAU")
"""The solvers whose options for tolerance and time are known."""

ITERATIONS = {"SCS": {"max_iters": 10_000_000}, "MOREAU": {"max_iter": 1_000_000}}
"""Options against a limit of iterations: time is limited, as everybody's is."""

DISTRIBUTIONS = {"MOSEK": "Mosek", "COPT": "coptpy"}
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
    from cvxpy.error import SolverError

    from ..m_step.conic import options_for
    from ..m_step.statement import build_statement

    def all_options(seconds: float) -> dict[str, Any]:
        known = options_for(solver, tol, seconds if solver in TIME_LIMITED else None, None)
        known |= ITERATIONS.get(solver, {})
        nested = {name: known[name] | given for name, given in options.items()
                  if isinstance(known.get(name), dict)}  # fmt: skip
        return known | options | nested

    clock = time.perf_counter()
    try:
        statement = build_statement(objective, formulation)
    except NotImplementedError as error:  # of a penalty without a dual statement
        raise NotForThisProblem(str(error)) from error
    problem = statement.problem
    data, chain, inverse = problem.get_problem_data(solver, solver_opts=all_options(time_limit))
    compiled = time.perf_counter() - clock
    remaining = all_options(max(0.1, time_limit - compiled))
    try:
        answer = chain.solve_via_data(problem, data, warm_start=False, solver_opts=remaining)
        solved = time.perf_counter() - clock - compiled
        problem.unpack_results(answer, chain, inverse)
    except SolverError:  # what CVXPY makes of a solver that says it failed
        return Attempt(None, "solver_error", False, compile_seconds=compiled)
    return Attempt(
        statement.metric,
        str(problem.status),
        problem.status == "optimal",
        int(problem.solver_stats.num_iters or 0),
        time.perf_counter() - clock - solved,
        solved,
    )


def conic_entrants() -> list[Entrant]:
    """CVXPY's installed solvers with the cones of an M-step, each on both formulations."""
    from ..m_step.conic import conic_solvers

    return [
        Entrant(
            *(name, formulation, f"{__name__}:conic", (name, formulation)),
            distribution=DISTRIBUTIONS.get(name, name.lower()),
        )
        for name, obstacle in sorted(conic_solvers().items())
        if not obstacle
        for formulation in ("primal", "dual")
    ]
