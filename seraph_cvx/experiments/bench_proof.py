"""What a proof costs beside a certificate in floating point, and what each of them shows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..certificate import certify
from ..m_step.solve import solve_m_step
from ..objective import MStepObjective
from ..result_table import ResultTable
from .bench_conic import TASKS, draw_tasks
from .bench_report import Report, Row


def bench_proof(report: Report, seeds: Sequence[int] = (0, 1)) -> ResultTable:
    """`certify(rigorous=True)` on the first M-steps of the six UCI tasks, solved to 1e-9."""
    report.start("Proofs of first M-steps (n = 100), beside certificates in floating point")
    for name, seed, pairs in draw_tasks(report, TASKS, seeds, "proven gap"):
        report.add({"task": name, "seed": seed, **_row(MStepObjective(pairs))})
    return report.finish()


def _row(objective: MStepObjective) -> Row:
    metric = np.asarray(solve_m_step(objective, tol=1e-9).metric)
    certificate, quickly = _timed(lambda: certify(objective, metric))
    proof, seconds = _timed(lambda: certify(objective, metric, rigorous=True))
    return {
        "features": objective.pairs.n_features,
        "certified gap": certificate.relative_gap,
        "certificate (s)": quickly,
        "proven gap": proof.relative_gap,
        "proof (s)": seconds,
        "proof / certificate": seconds / quickly,
        "dual point": proof.dual_point,
    }


def _timed(run: Callable[[], Any]) -> tuple[Any, float]:
    clock = time.perf_counter()
    return run(), time.perf_counter() - clock
