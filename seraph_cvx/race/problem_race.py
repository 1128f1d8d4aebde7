"""Any convex problem of CVXPY: what each solver says of it, and what is proven."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.error import SolverError

from ..display.result_table import ResultTable
from ..processes.isolation import ForkServer, Outcome
from ..proof import ProblemCertificate, certify_problem
from ..proof.chord import values_set
from ..proof.point import PointReport, judge_point
from .attempt import NotForThisProblem
from .conic_solvers import FAILED, TimedRun, solve_timed

PRELOAD = ("cvxpy", __name__)
UNFIT = "not for this problem"


@dataclass(frozen=True)
class ProblemRace(ResultTable):
    """The rows of a comparison on one problem, with the certificate that judges them."""

    certificate: ProblemCertificate | None = None


def compare_on_problem(
    problem: cp.Problem,
    solvers: Sequence[str | tuple[str, Mapping[str, Any]]] | None = None,
    time_limit: float = 60.0,
    memory_limit: int | None = None,
) -> ProblemRace:
    """Solve a problem with several solvers, and judge each answer by the certified interval.

    Each runs with its own defaults (or the options that are given with its name) in a process of
    its own; the problem's variables keep their values.

    Returns
    -------
    ProblemRace
        A row for each solver: `said` (its status); `value`, the objective at its point;
        `violation`, at most, of the worst constraint; `true_gap`, how far that value is from the
        optimum at most, relative to max(1, |optimum|); `proof`, whether what it said agrees with
        what is proven, or contradicts it; compile and solve seconds; iterations.
    """
    certificate = certify_problem(problem)
    installed = cp.installed_solvers()
    rows = []
    with ForkServer(PRELOAD, {"OMP_NUM_THREADS": "1"}) as server:
        for entry in installed if solvers is None else solvers:
            name, options = (entry, {}) if isinstance(entry, str) else entry
            if name not in installed:
                known = ", ".join(installed)
                raise ValueError(f"The solver {name!r} is not installed; these are: {known}.")
            outcome = server.run(
                solve_once, problem, name, dict(options),
                time_limit=time_limit, memory_limit=memory_limit,
            )  # fmt: skip
            rows.append({"solver": name, **_judged(problem, certificate, outcome)})
    notes = [certificate.claim]
    if solvers is None:
        unfit = [row["solver"] for row in rows if row["said"] == UNFIT]
        rows = [row for row in rows if row["said"] != UNFIT]
        notes += [f"Installed, but not for this problem: {', '.join(unfit)}."] if unfit else []
    return ProblemRace("What the solvers say, and what is proven", rows, notes, certificate)


def solve_once(
    problem: cp.Problem, solver: str, options: dict[str, Any]
) -> tuple[TimedRun, tuple[Any, ...]]:
    """Solve a problem: what the solver said and took, and the variables' values in order."""
    try:
        run = solve_timed(problem, solver, lambda _: options)
    except (SolverError, ValueError) as error:
        raise NotForThisProblem(str(error)) from error
    return run, () if run.status == FAILED else tuple(v.value for v in problem.variables())


def _judged(
    problem: cp.Problem, certificate: ProblemCertificate, outcome: Outcome
) -> dict[str, Any]:
    """The row of a run, but for the solver's name."""
    columns = ("said", "value", "violation", "true_gap", "proof")
    row: dict[str, Any] = dict.fromkeys(
        (*columns, "compile_seconds", "solve_seconds", "iterations", "detail"), ""
    )
    if outcome.status != "done":
        kind, _, detail = outcome.detail.partition(": ")
        is_unfit = kind == NotForThisProblem.__name__
        return row | {
            "said": UNFIT if is_unfit else outcome.status,
            "detail": detail if is_unfit else outcome.detail,
        }
    run, values = outcome.result
    took = run._asdict()
    row |= {"said": took.pop("status"), "proof": agreement(certificate, run.status)} | took
    if not values or any(value is None for value in values):
        return row
    with values_set(problem.variables(), values):
        report = judge_point(problem)
    return row | _measured(certificate, report)


def agreement(certificate: ProblemCertificate, status: str) -> str:
    """Whether a status agrees with what is proven of the problem; empty where that is open."""
    said = status.removesuffix("_inaccurate")
    best = certificate.lower if certificate.program.maximize else certificate.upper
    proven = {
        cp.INFEASIBLE: certificate.infeasible,
        cp.UNBOUNDED: certificate.unbounded,
        cp.OPTIMAL: np.isfinite(best) and np.isfinite(certificate.relative_gap),
    }
    if said not in proven:
        return ""
    if proven[said]:
        return "agrees"
    is_feasible = np.isfinite(best) and said == cp.INFEASIBLE
    return "contradicts" if is_feasible or any(proven.values()) else ""


def _measured(certificate: ProblemCertificate, report: PointReport | None) -> dict[str, Any]:
    """The objective, the worst violation and the true gap at a solver's point."""
    if report is None:
        return {}
    found: dict[str, Any] = {}
    known = [end[1] for _, end in report.violations if not isinstance(end, str)]
    if len(known) == len(report.violations):
        found["violation"] = max(known, default=0.0)
    if not isinstance(report.objective, str):
        low, high = report.objective
        found["value"] = 0.5 * low + 0.5 * high
        if np.isfinite(certificate.relative_gap) and np.isfinite(certificate.upper):
            size = max(1.0, abs(certificate.lower), abs(certificate.upper))
            found["true_gap"] = max(high - certificate.lower, certificate.upper - low) / size
    return found
