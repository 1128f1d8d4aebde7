"""Our own solver on first M-steps against every solver of the race, as ratios within one run."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from seraph_cvx.display.result_table import ResultTable
from seraph_cvx.model.m_step_objective import MStepObjective
from seraph_cvx.numerics.arrays import one_blas_thread
from seraph_cvx.processes.isolation import ForkServer
from seraph_cvx.processes.workers import ONE_THREAD
from seraph_cvx.race.attempt import Entrant
from seraph_cvx.race.solvers import entrants, kinds_of_entrants
from seraph_cvx.solvers.first_order import fista
from seraph_cvx.solvers.solution import grade_matrix

from .conic import TASKS, draw_tasks, task_pairs
from .report import Report
from .statement import best_lower_bound, relative_distance

TRUE_GAP = 1e-5
"""The distance from the best known lower bound that a rival has to reach."""

RUNGS = (1e-5, 1e-6, 1e-7, 1e-8, 1e-9)
"""The tolerances that a rival is asked for, one after the other, until it reaches that distance."""

REPEATS, LONG = 3, 1.0
"""A run is repeated, as ours is, and the least time counts; but not one that takes a second."""

GRACE = 30.0
"""Seconds after its limit at which a rival that ignores it is ended."""


def bench_first_m_steps(
    report: Report,
    tasks: Sequence[str] = tuple(TASKS),
    seeds: Sequence[int] = (0, 1),
    time_limit: float = 600.0,
    rivals: Mapping[str, Sequence[Entrant]] | None = None,
) -> ResultTable:
    """Time our solver, certified to 1e-8, against the fastest rival that really reaches 1e-5."""
    report.start("First M-steps (n = 100, standardized, hyper)")
    chosen = _installed() if rivals is None else rivals
    labels = {name: TASKS[name] for name in tasks}
    for name, seed, _ in draw_tasks(report, labels, seeds, "ratio"):
        row = _own_part(report, name, seed)
        own = row["fista to 1e-8 (s)"]
        fastest = time_limit
        for kind, group in chosen.items():
            seconds, label = _fastest(report, name, seed, group, time_limit)
            is_found = seconds < time_limit
            row |= {
                f"fastest {kind}": label,
                f"{kind} (s)": seconds if is_found else f"> {time_limit:g}",
                f"{kind} / fista": seconds / own if is_found else f"> {time_limit / own:.0f}",
            }
            fastest = min(fastest, seconds)
        is_found = fastest < time_limit
        report.add(row | {"ratio": fastest / own if is_found else f"> {time_limit / own:.0f}"})
    return report.finish()


def _installed() -> dict[str, list[Entrant]]:
    """The solvers that can race, by kind."""
    able = entrants()
    kinds = {
        kind: [entrant for entrant in group if entrant in able]
        for kind, group in kinds_of_entrants().items()
    }
    return {kind: group for kind, group in kinds.items() if group}


def _own_part(report: Report, name: str, seed: int) -> dict[str, Any]:
    report.tell(f"{name}, seed {seed}: fista")
    own, share = min(_own_seconds(name, seed) for _ in range(3))
    alone, _ = min(_own_seconds(name, seed, finish=False) for _ in range(2))
    return {
        "task": name,
        "seed": seed,
        "fista to 1e-8 (s)": own,
        "certificate's share": share,
        "without Newton (s)": alone,
    }


def _own_seconds(name: str, seed: int, finish: bool = True) -> tuple[float, float]:
    """Time our own solver to a certified 1e-8, with all sums, and the certificate's share of it."""
    pairs = task_pairs(name, seed)
    clock = time.perf_counter()
    with one_blas_thread():
        solution = fista(MStepObjective(pairs), tol=1e-8, finish=finish)
    seconds = time.perf_counter() - clock
    if solution.relative_gap > 1e-8:
        raise RuntimeError(f"fista is not certified on {name}, seed {seed}")
    return seconds, solution.certificate_seconds / solution.seconds


def _fastest(
    report: Report, name: str, seed: int, group: Sequence[Entrant], time_limit: float
) -> tuple[float, str]:
    """The least seconds of some solvers to `TRUE_GAP`, at most the limit, and whose they are."""
    best, label = time_limit, "none within the limit"
    for entrant in group:
        report.tell(f"{name}, seed {seed}: {entrant.label}, up to {best:.2g} s")
        seconds = _climb(name, seed, entrant, best)
        if seconds is not None and seconds < best:
            best, label = seconds, entrant.label
    return best, label


def _climb(name: str, seed: int, entrant: Entrant, time_limit: float) -> float | None:
    """The seconds at the loosest tolerance whose answer is within `TRUE_GAP`, or None."""
    modules = [__name__, *([entrant.package] if entrant.package else ["cvxpy"])]
    with ForkServer(modules, ONE_THREAD) as server:
        for tol in RUNGS:
            arguments = (name, seed, entrant, tol, time_limit)
            outcome = server.run(solve_once, *arguments, time_limit=time_limit + GRACE)
            if outcome.word != "done":
                return None
            seconds, gap = outcome.result
            if gap <= TRUE_GAP:
                return float(seconds)
            if seconds > time_limit:
                return None
    return None


def solve_once(
    name: str, seed: int, entrant: Entrant, tol: float, time_limit: float
) -> tuple[float, float]:
    """Solve once by a rival: its seconds, with compilation, and its true relative gap."""
    warnings.simplefilter("ignore")  # a process of its own; the gap says it all
    entrant.load()
    seconds = np.inf
    for _ in range(REPEATS):
        objective = MStepObjective(task_pairs(name, seed))
        clock = time.perf_counter()
        answer = entrant.solve(objective, tol, time_limit)
        seconds = min(seconds, time.perf_counter() - clock)
        if seconds > LONG:
            break
    graded = None if answer.matrix is None else grade_matrix(objective, answer.matrix)
    if graded is None:
        return seconds, float("inf")
    return seconds, relative_distance(graded.certificate.primal_value, best_lower_bound(objective))
