"""CVXPY's conic solvers, on the primal and on the dual."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from ...model.m_step_objective import MStepObjective
from .attempt import Attempt, Entrant, NotForThisProblem

TOLD = ("SCS", "CLARABEL", "MOSEK", "COPT", "MOREAU")
"""The solvers whose options for tolerance and time are known."""

DISTRIBUTIONS = {"MOSEK": "Mosek", "COPT": "coptpy"}
"""What pip calls a solver's package, where that is not its name in small letters."""


def conic(
    objective: MStepObjective,
    tol: float,
    time_limit: float,
    solver: str,
    formulation: str,
    options: Mapping[str, Any] | None = None,
) -> Attempt:
    """Solve by a conic solver of CVXPY, within the tolerance and the remaining time.

    Examples
    --------
    >>> from seraph_cvx import PairSet
    >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
    >>> conic(MStepObjective(pairs), 1e-6, 10.0, "CLARABEL", "dual").word
    'optimal'
    """
    from cvxpy.error import SolverError

    from ...m_step.statement import build_statement
    from ..dimacs import dimacs_errors

    clock = time.perf_counter()
    try:
        statement = build_statement(objective, formulation)
    except NotImplementedError as error:  # of a penalty without a dual statement
        raise NotForThisProblem(str(error)) from error
    problem, words = statement.problem, _options(solver, tol, time_limit) | dict(options or {})
    data, chain, inverse = problem.get_problem_data(solver, solver_opts=words)
    compiled = time.perf_counter() - clock
    words = _options(solver, tol, max(0.1, time_limit - compiled)) | dict(options or {})
    try:
        answer = chain.solve_via_data(problem, data, warm_start=False, solver_opts=words)
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
        dimacs_errors(data, answer, solver),
    )


def _options(solver: str, tol: float, time_limit: float) -> dict[str, Any]:
    """The solver's own options for a tolerance and a time limit, as far as they are known."""
    from ...m_step.conic import options_for

    options = options_for(solver, tol, time_limit if solver in TOLD else None, None)
    if solver == "SCS":
        options["max_iters"] = 10_000_000  # its time is limited, as everybody's is
    if solver == "MOREAU":
        options["max_iter"] = 1_000_000
    return options


def conic_entrants() -> list[Entrant]:
    """CVXPY's installed solvers with the cones of an M-step, each on both formulations."""
    from ...m_step.conic import conic_solvers

    able = sorted(name for name, reason in conic_solvers().items() if not reason)
    return [
        Entrant(
            *(name, formulation, f"{__name__}:conic", (name, formulation)),
            distribution=DISTRIBUTIONS.get(name, name.lower()),
        )
        for name in able
        for formulation in ("primal", "dual")
    ]
