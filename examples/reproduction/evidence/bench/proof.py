"""The cost of a certificate, in passes over the pairs, and of a proof, in certificates."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from seraph_cvx.certificate import certify
from seraph_cvx.display.result_table import ResultTable
from seraph_cvx.m_step.solve import solve_m_step
from seraph_cvx.model.m_step_objective import MStepObjective
from seraph_cvx.numerics.arrays import one_blas_thread
from seraph_cvx.numerics.checks import FloatArray

from .conic import TASKS, draw_tasks
from .report import Report, Row

DIGITS = {"digits": 20, "usps": 20, "mnist": 20}
"""Tasks of more features, and how many of their 100 points are labeled."""

REPEATS = 30
"""How often a time of milliseconds is measured; the least counts."""


def bench_proof(report: Report, seeds: Sequence[int] = (0, 1)) -> ResultTable:
    """Time `certify(rigorous=True)` on first M-steps of the six UCI tasks, solved to 1e-9."""
    report.start("Proofs of first M-steps (n = 100), against certificates in floating point")
    for name, seed, pairs in draw_tasks(report, TASKS, seeds, "proven gap"):
        report.add({"task": name, "seed": seed, **_row(MStepObjective(pairs))})
    return report.finish()


def bench_certificate(report: Report, seeds: Sequence[int] = (0,)) -> ResultTable:
    """Time `certify` at the solutions of first and second M-steps, solved to 1e-8."""
    report.start("Certificates at solved M-steps (n = 100), against a pass for f and its gradient")
    for name, seed, pairs in draw_tasks(report, TASKS | DIGITS, seeds, "certified gap"):
        metric = None
        for number in ("first", "second"):
            objective = MStepObjective(pairs, previous_metric=metric)
            metric = np.asarray(solve_m_step(objective, tol=1e-8).metric)
            row = _certificate_row(objective, metric)
            report.add({"task": name, "seed": seed, "M-step": number, **row})
    return report.finish()


def _certificate_row(objective: MStepObjective, metric: FloatArray) -> Row:
    with one_blas_thread():
        certificate = min(_timed(lambda: certify(objective, metric))[1] for _ in range(REPEATS))
        one_pass = min(
            _timed(lambda: objective.value_and_gradient(metric))[1] for _ in range(REPEATS)
        )
    return {
        "features": objective.pairs.n_features,
        "certified gap": certify(objective, metric).relative_gap,
        "certificate (ms)": 1e3 * certificate,
        "pass (ms)": 1e3 * one_pass,
        "certificate / pass": certificate / one_pass,
    }


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
