"""Any convex problem of CVXPY: what each solver says of it, and what is proven."""

from __future__ import annotations

import inspect
import math
import pickle
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
from cvxpy.error import SolverError
from cvxpy.lin_ops.lin_utils import ID_COUNTER
from cvxpy.reductions.solvers.solver import Solver
from joblib import wrap_non_picklable_objects

from ..display.result_table import ResultTable
from ..processes.isolation import ONE_THREAD, ForkServer, Outcome, memory_limit_obstacle
from ..proof import ProblemCertificate, certify_problem
from ..proof.chord import values_set
from ..proof.point import Unjudged, judge_point
from .attempt import NotForThisProblem, as_in_a_call, imported
from .conic_solvers import FAILED, TimedRun, solve_timed
from .verdict import Answer, dual_gap, true_gap, verdict

PRELOAD = ("cvxpy", __name__)
UNFIT = "not for this problem"

NOTHING: dict[str, Any] = dict.fromkeys(
    (
        *("said", "value", "violation", "true_gap", "dual_gap", "proof"),
        *("compile_seconds", "solve_seconds", "iterations", "detail"),
    ),
    "",
)
"""The entries of a row, besides the solver's name, before its run."""


@dataclass(frozen=True)
class ProblemRace(ResultTable):
    """The rows of a comparison on one problem, with the certificate that judges them."""

    certificate: ProblemCertificate | None = None


def compare_on_problem(
    problem: cp.Problem,
    solvers: Sequence[Any] | None = None,
    time_limit: float = 60.0,
    memory_limit: int | None = None,
    callback: Callable[[dict[str, Any], int, int], None] | None = None,
    progress: Callable[[str], None] | None = None,
) -> ProblemRace:
    """Solve a problem with several solvers, and judge each answer by what is proven.

    Each runs with its own defaults (or the options that are given with it) in a process of its
    own; the problem's variables keep their values.

    Parameters
    ----------
    problem : cvxpy.Problem
    solvers : sequence, optional
        Names of CVXPY's solvers; instances of solver classes of your own, as `problem.solve` takes
        them; functions of your own, which are given the problem and set the values of its
        variables (and of `constraint.dual_variables`, if they like), or return the status of a
        problem that has none; "name=module:function" of such a function; pairs of any of these and
        a dict of options. None: all installed solvers that can take the problem.
    time_limit, memory_limit
        Of each run, in seconds and bytes. The proof has no limit.
    callback, progress : callable, optional
        Called as ``callback(row, number, total)`` after each run, and with each step of the proof.

    Returns
    -------
    ProblemRace
        A row for each solver: `said` (its status); `value`, the objective at its point;
        `violation`, at most, of the worst constraint; `true_gap`, how far its value is from the
        optimum at most, and `dual_gap`, by how much its multipliers miss the optimum at most, both
        relative to the optimum; `proof`, whether all of that agrees with what is proven,
        contradicts it and where, or was not judged; compile and solve seconds; iterations.
    """
    installed = cp.installed_solvers()
    runs = [_entrant(one, installed) for one in (installed if solvers is None else solvers)]
    certificate = certify_problem(problem, progress=progress)
    bare, rows = cp.Problem(problem.objective, problem.constraints), []
    limits: dict[str, Any] = {"time_limit": time_limit, "memory_limit": memory_limit}
    limits |= {"memory_limit": None} if memory_limit_obstacle() else {}
    with ForkServer(PRELOAD, ONE_THREAD) as server:
        for label, solver, options in runs:
            sent = wrap_non_picklable_objects((bare, solver, options), keep_wrapper=False)
            outcome = server.run(solve_sent, pickle.dumps(sent), ID_COUNTER.count, **limits)
            rows.append({"solver": label, **_judged(problem, certificate, outcome)})
            if callback is not None:
                callback(rows[-1], len(rows), len(runs))
    notes = [certificate.claim]
    if solvers is None:
        unfit = [row["solver"] for row in rows if row["said"] == UNFIT]
        rows = [row for row in rows if row["said"] != UNFIT]
        notes += [f"Installed, but not for this problem: {', '.join(unfit)}."] if unfit else []
    return ProblemRace("What the solvers say, and what is proven", rows, notes, certificate)


def _entrant(given: Any, installed: Sequence[str]) -> tuple[str, Any, dict[str, Any]]:
    """The label of a solver, the solver itself (a name, an instance or a function), options."""
    solver, options = given if isinstance(given, tuple) and len(given) == 2 else (given, {})
    name = str(solver)
    if isinstance(solver, Solver):
        name = solver.name()
    elif isinstance(solver, str) and "=" in solver:
        name, _, where = solver.partition("=")
        solver = imported(name, where)
    elif callable(solver) and not inspect.isclass(solver):
        name = getattr(solver, "__name__", type(solver).__name__)
    elif solver not in installed:
        raise ValueError(
            f"The solver {name!r} is not installed; these are: {', '.join(installed)}."
        )
    return f"{name}({as_in_a_call(options)})" if options else name, solver, dict(options)


def solve_sent(
    content: bytes, count: int
) -> tuple[TimedRun, float | None, tuple[Any, ...], list[Any]]:
    """Solve a problem that was sent: what was said and took; value, point, multipliers.

    CVXPY numbers its variables; those that this process makes have to be numbered from `count` on.
    """
    ID_COUNTER.count = max(ID_COUNTER.count, count)
    problem, solver, options = pickle.loads(content)
    try:
        if callable(solver) and not isinstance(solver, Solver):
            run = _called(solver, problem, options)
        else:
            run = solve_timed(problem, solver, lambda _: options)
    except (SolverError, ValueError) as error:
        raise NotForThisProblem(str(error)) from error
    values = () if run.status == FAILED else tuple(v.value for v in problem.variables())
    multipliers = [constraint.dual_value for constraint in problem.constraints]
    return run, problem.value, values, multipliers


def _called(solver: Callable[..., Any], problem: cp.Problem, options: dict[str, Any]) -> TimedRun:
    """Call a function of the user's own: it sets values of variables, and may return a status."""
    clock = time.perf_counter()
    said = solver(problem, **options)
    seconds = time.perf_counter() - clock
    if said is not None and not isinstance(said, str):
        raise TypeError(
            f"the function returned {said!r}: it sets the values of the problem's variables, and "
            "returns nothing or a status such as 'infeasible'"
        )
    return TimedRun(said or problem.status or cp.OPTIMAL, 0, 0.0, seconds)


def _judged(
    problem: cp.Problem, certificate: ProblemCertificate, outcome: Outcome
) -> dict[str, Any]:
    """The row of a run, but for the solver's name."""
    if outcome.status != "done":
        kind, _, detail = outcome.detail.partition(": ")
        if kind != NotForThisProblem.__name__:
            return NOTHING | {"said": outcome.status, "detail": outcome.detail}
        return NOTHING | {"said": UNFIT, "detail": detail}
    run, value, values, multipliers = outcome.result
    took = run._asdict()
    row: dict[str, Any] = NOTHING | {"said": took.pop("status")} | took
    answer = Answer(run.status)
    if values and all(value is not None for value in values):
        with values_set(problem.variables(), values):
            point = judge_point(problem)
            answer = Answer(run.status, value, point, dual_gap(problem, certificate, multipliers))
    return row | _measured(certificate, answer) | {"proof": verdict(certificate, answer)}


def _measured(certificate: ProblemCertificate, answer: Answer) -> dict[str, Any]:
    """The objective, the worst violation, and the gaps of an answer."""
    if answer.point is None:
        return {}
    found: dict[str, Any] = {"violation": answer.point.violation}
    found |= {} if answer.dual_gap is None else {"dual_gap": answer.dual_gap[1]}
    if isinstance(answer.point.objective, Unjudged):
        return found | {"value": answer.point.objective.value}
    low, high = answer.point.objective
    found["value"] = 0.5 * low + 0.5 * high
    if math.isfinite(certificate.relative_gap) and math.isfinite(certificate.upper):
        found["true_gap"] = true_gap(certificate, low, high)
    return found
