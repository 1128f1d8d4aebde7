"""A whole alternation by our own solver against one by a conic solver, as ratios in one run."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from seraph_cvx.datasets import load_sampling
from seraph_cvx.display.result_table import ResultTable
from seraph_cvx.fit.alternation import Iteration, alternate
from seraph_cvx.numerics.checks import FloatArray
from seraph_cvx.pairs.pair_set import PairSet
from seraph_cvx.solvers.not_certified import NotCertified
from seraph_cvx.solvers.solution import Status

from .report import Report

TASKS = {
    "iris": 10,
    "wine": 10,
    "breast_cancer": 10,
    "balance": 10,
    "ionosphere": 20,
    "diabetes": 10,
}
"""The paper's six UCI tasks and how many of their 100 points are labeled."""


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


def task_pairs(name: str, seed: int) -> PairSet:
    """Draw the pairs of a UCI task."""
    drawn = load_sampling(name, n_labeled=TASKS[name], seed=seed)
    return PairSet.from_labels(drawn.X, drawn.y)


def bench_whole_fit(report: Report, name: str = "wine", time_limit: float = 120.0) -> ResultTable:
    """Time a whole alternation, our own against CLARABEL's, which is stopped at `time_limit`."""
    report.start("The paper's alternation (hyper), end to end")
    pairs = task_pairs(name, 0)
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
    finished = conic.status not in (Status.ITERATION_LIMIT, Status.INTERRUPTED)
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
