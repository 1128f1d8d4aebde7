"""The cost of a regularization path, in cold solves; and where a path of alternations ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from seraph_cvx.display.result_table import ResultTable
from seraph_cvx.fit.alternation import alternate
from seraph_cvx.fit.path import seraph_path
from seraph_cvx.m_step.solve import solve_m_step
from seraph_cvx.model.m_step_objective import MStepObjective
from seraph_cvx.pairs.pair_set import PairSet

from .conic import TASKS, draw_tasks
from .report import Report, Row

REPEATS = 5
"""Each time is the least of this many measurements."""


def bench_path(report: Report, seeds: Sequence[int] = (0, 1)) -> ResultTable:
    """Time a path of 20 trace weights against one cold solve at the smallest of them."""
    report.start("Paths of 20 trace weights (n = 100), in cold solves")
    for name, seed, pairs in draw_tasks(report, TASKS, seeds, "start"):
        report.add(_row(name, seed, pairs))
    return report.finish()


def _row(name: str, seed: int, pairs: PairSet) -> Row:
    path, seconds = _least(lambda: seraph_path(pairs))
    smallest = float(path.trace_weights[-1])
    _, cold = _least(lambda: solve_m_step(MStepObjective(pairs, trace_weight=smallest), tol=1e-6))
    walked = seraph_path(pairs, [300.0, 30.0, 3.0, 1.0], algorithm="em")
    fit = alternate(pairs)
    return {
        "task": name,
        "seed": seed,
        "path (s)": seconds,
        "cold solve (s)": cold,
        "path / cold": seconds / cold,
        "largest gap": max(point.certificate.relative_gap for point in path),
        "ranks": f"{path.ranks[0]} to {max(path.ranks)}",
        "EM: J at the end": walked[-1].descent_value,
        "J of the cold fit": fit.history[-1].descent_value,
        "start": walked[-1].start,
    }


def _least(run: Callable[[], Any]) -> tuple[Any, float]:
    least, result = float("inf"), None
    for _ in range(REPEATS):
        clock = time.perf_counter()
        result = run()
        least = min(least, time.perf_counter() - clock)
    return result, least
