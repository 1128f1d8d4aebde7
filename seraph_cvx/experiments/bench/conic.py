"""Our own solver against conic ones, as ratios within one run: one M-step, a whole alternation."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ...datasets import load_sampling
from ...display.result_table import ResultTable
from ...fit.alternation import Iteration, alternate
from ...m_step.solve import solve_m_step
from ...model.m_step_objective import MStepObjective
from ...numerics.blas_threads import one_blas_thread
from ...numerics.checks import FloatArray
from ...pairs.pair_set import PairSet
from ...processes.isolation import run_isolated
from ...solvers.first_order import fista
from ...solvers.not_certified import NotCertified
from ...solvers.solution import Status
from .report import Report, Row
from .statement import best_lower_bound, relative_distance

TASKS = {
    "iris": 10,
    "wine": 10,
    "breast_cancer": 10,
    "balance": 10,
    "ionosphere": 20,
    "diabetes": 10,
}
"""The paper's six UCI tasks and how many of their 100 points are labeled."""

TRUE_GAP = 1e-5
"""The largest distance from the best known lower bound at which a conic solver has arrived."""


def draw_tasks(
    report: Report, tasks: Mapping[str, int], seeds: Sequence[int], column: str
) -> Iterator[tuple[str, int, PairSet]]:
    """Draw the pairs of each task and seed; missing data becomes a row that says so in `column`."""
    for name, n_labeled in tasks.items():
        for seed in seeds:
            report.tell(f"{name}, seed {seed}")
            try:
                drawn = load_sampling(name, n_labeled=n_labeled, seed=seed)
            except FileNotFoundError as missing:
                report.add({"task": name, column: f"not measured: {missing}"})
                break
            yield name, seed, PairSet.from_labels(drawn.X, drawn.y)


def bench_first_m_steps(
    report: Report,
    tasks: Sequence[str] = tuple(TASKS),
    seeds: Sequence[int] = (0, 1),
    time_limit: float = 600.0,
) -> ResultTable:
    """Time FISTA, certified to 1e-8, against the fastest conic solver that truly reaches 1e-5.

    A conic solver climbs a ladder of tolerances until its answer is truly within 1e-5; its time
    is that of the first rung that reaches 1e-5, compilation included. It is stopped at
    `time_limit`, or at the best conic time so far.
    """
    report.start("First M-steps (n = 100, standardized, hyper)")
    for name in tasks:
        try:
            load_sampling(name, n_labeled=TASKS[name])
        except FileNotFoundError as missing:
            report.add({"task": name, "fastest conic to 1e-5": f"not measured: {missing}"})
            continue
        for seed in seeds:
            report.add(_first_m_step(report, name, seed, time_limit))
    return report.finish()


def _first_m_step(report: Report, name: str, seed: int, time_limit: float) -> Row:
    report.tell(f"{name}, seed {seed}: fista")
    own, share = min(_own_seconds(name, seed) for _ in range(3))
    alone, _ = min(_own_seconds(name, seed, finish=False) for _ in range(2))
    best, word = time_limit, "none within the limit"
    for solver, formulation in _conic():
        report.tell(f"{name}, seed {seed}: {solver} {formulation}, up to {best:.0f} s")
        seconds = _climb(name, seed, solver, formulation, best)
        if seconds is not None and seconds < best:
            best, word = seconds, f"{solver} {formulation}"
    found = best < time_limit
    return {
        "task": name,
        "seed": seed,
        "fista to 1e-8 (s)": own,
        "certificate's share": share,
        "without Newton (s)": alone,
        "fastest conic to 1e-5": word,
        "conic (s)": best if found else f"> {time_limit:g}",
        "ratio": best / own if found else f"> {time_limit / own:.0f}",
    }


def bench_whole_fit(report: Report, name: str = "wine", time_limit: float = 120.0) -> ResultTable:
    """Time a whole alternation, our own against CLARABEL's, which is stopped at `time_limit`."""
    report.start("The paper's alternation (hyper), end to end")
    pairs = PairSet.from_labels(*_points(name, 0))
    own = np.inf
    for _ in range(3):
        clock = time.perf_counter()
        run = alternate(pairs)
        own = min(own, time.perf_counter() - clock)
    clock = time.perf_counter()

    own_part = {
        "task": name,
        "own (s)": own,
        "own iterations": len(run.history),
        "own gap": run.m_step.relative_gap,
    }

    def late(iteration: Iteration, metric: FloatArray) -> bool:
        seconds = time.perf_counter() - clock
        so_far = {"CLARABEL (s)": f"> {seconds:.0f}", "CLARABEL iterations": iteration.number}
        report.draft(own_part | so_far | {"ratio": f"> {seconds / own:.0f}"})
        report.tell(f"{name}: CLARABEL, after iteration {iteration.number}")
        return seconds > time_limit

    report.draft(own_part)
    report.tell(f"{name}: CLARABEL, up to {time_limit:g} s")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCertified)
        warnings.filterwarnings("ignore", "Solution may be inaccurate")
        conic = alternate(pairs, solver="CLARABEL", m_step_tol=1e-7, callback=late)
    seconds = time.perf_counter() - clock
    finished = conic.status is not Status.ITERATION_LIMIT
    report.add(
        own_part
        | {
            "CLARABEL (s)": seconds if finished else f"> {seconds:.0f}",
            "CLARABEL iterations": len(conic.history),
            "CLARABEL gap": conic.m_step.relative_gap,
            "ratio": seconds / own if finished else f"> {seconds / own:.0f}",
        }
    )
    return report.finish()


def solve_once(
    name: str, seed: int, solver: str, formulation: str, tol: float, time_limit: float
) -> tuple[float, float]:
    """Solve once by a conic solver: its seconds, with compilation, and its true relative gap."""
    objective = MStepObjective(PairSet.from_labels(*_points(name, seed)))
    objective.pair_moment  # noqa: B018 - summed before the clock starts
    warnings.simplefilter("ignore")  # a process of its own; the gap says it all
    clock = time.perf_counter()
    answer = solve_m_step(
        objective, solver, tol=tol, formulation=formulation, time_limit=time_limit
    )
    seconds = time.perf_counter() - clock
    return seconds, relative_distance(answer.value, best_lower_bound(objective))


def _own_seconds(name: str, seed: int, finish: bool = True) -> tuple[float, float]:
    """Time our own solver to a certified 1e-8, with all sums, and the certificate's share of it."""
    pairs = PairSet.from_labels(*_points(name, seed))
    clock = time.perf_counter()
    with one_blas_thread():
        solution = fista(MStepObjective(pairs), tol=1e-8, finish=finish)
    seconds = time.perf_counter() - clock
    if solution.relative_gap > 1e-8:
        raise RuntimeError(f"fista is not certified on {name}, seed {seed}")
    return seconds, solution.certificate_seconds / solution.seconds


def _climb(name: str, seed: int, solver: str, formulation: str, time_limit: float) -> float | None:
    """The seconds at the loosest tolerance whose answer is within TRUE_GAP, or None."""
    for tol in (1e-5, 1e-6, 1e-7, 1e-8, 1e-9):
        outcome = run_isolated(
            solve_once,
            *(name, seed, solver, formulation, tol, time_limit),
            time_limit=time_limit + 30.0,
        )
        if outcome.word != "done":
            return None
        seconds, gap = outcome.result
        if gap <= TRUE_GAP:
            return float(seconds)
        if seconds > time_limit:
            return None
    return None


def _conic() -> Iterator[tuple[str, str]]:
    for solver in ("CLARABEL", "SCS"):
        for formulation in ("dual", "primal"):
            yield solver, formulation


def _points(name: str, seed: int) -> tuple[Any, Any]:
    sampling = load_sampling(name, n_labeled=TASKS[name], seed=seed)
    return sampling.X, sampling.y
