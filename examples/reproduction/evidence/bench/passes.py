"""The cost of a pass over the pairs: against matrix products, against n and m, in a whole fit."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np

from seraph_cvx.display.result_table import ResultTable
from seraph_cvx.fit.alternation import Iteration, alternate
from seraph_cvx.model.m_step_objective import MStepObjective
from seraph_cvx.numerics.arrays import one_blas_thread
from seraph_cvx.numerics.checks import FloatArray
from seraph_cvx.pairs.pair_set import PairSet
from seraph_cvx.processes.isolation import peak_bytes, resident_bytes, run_isolated

from .report import Report, Row
from .size import gaussian_classes

PASSES = "Passes of value + gradient"


def bench_kernel(report: Report, n: int = 3_000, m: int = 64) -> ResultTable:
    """Time value and gradient in one pass against the two n x n x m matrix products alone."""
    report.start(f"Value + gradient against bare products (n = {n}, m = {m})")
    X, y = gaussian_classes(n, m)
    rng = np.random.default_rng(1)
    F = rng.normal(size=(m, m)) / m
    A = F @ F.T
    XA, square = X @ A, np.empty((n, n))

    def products() -> None:
        np.matmul(XA, X.T, out=square)
        square @ X

    for threads in (1, 2):
        report.tell(f"value and gradient at n = {n}, m = {m}, {threads} threads")
        program = MStepObjective(PairSet.from_labels(X, y), n_jobs=threads).program
        evaluate = partial(program.value_and_gradient, A)
        with one_blas_thread() if threads == 1 else nullcontext():
            bare, own = _alternately(products, evaluate)
        report.add(
            {"threads": threads, "products (s)": bare, "own (s)": own, "own / products": own / bare}
        )
    return report.finish()


def bench_scaling(
    report: Report, sizes: Sequence[int] = (2_000, 5_000, 10_000, 20_000), m: int = 16
) -> ResultTable:
    """Measure time and peak memory of three passes against n, and fit the exponents."""
    report.start(PASSES)
    for n in sizes:
        report.tell(f"three passes at n = {n}")
        outcome = run_isolated(three_passes, n, m, time_limit=600.0)
        if outcome.word != "done":
            raise RuntimeError(f"three passes at n = {n}: {outcome.word}. {outcome.detail}")
        seconds, extra = outcome.result
        report.add({"n": n, "m": m, "seconds a pass": seconds, "extra MiB": extra / 2**20})
    return report.finish([_fitted_exponent(report.rows, "n")])


def bench_dimension(
    report: Report, dimensions: Sequence[int] = (8, 16, 32, 64, 128), n: int = 3_000
) -> ResultTable:
    """Measure the time of a pass against m, and fit the exponent."""
    report.start(PASSES)
    for m in dimensions:
        report.tell(f"passes at m = {m}")
        report.add({"m": m, "n": n, "seconds a pass": three_passes(n, m)[0]})
    return report.finish([_fitted_exponent(report.rows, "m")])


def _fitted_exponent(rows: Sequence[Row], size: str) -> str:
    sizes, seconds = ([row[key] for row in rows] for key in (size, "seconds a pass"))
    slope = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
    return f"Fitted exponent in {size}: {slope:.2f}."


def bench_large_fit(report: Report, n: int = 5_000, m: int = 16) -> ResultTable:
    """Time a whole fit of a few thousand points, and count its evaluations."""
    report.start("A whole fit (hyper, tol = 1e-4)")
    X, y = gaussian_classes(n, m)
    pairs = PairSet.from_labels(X, y)

    clock = time.perf_counter()

    def tell(iteration: Iteration, metric: FloatArray) -> None:
        report.tell(f"n = {n}: iteration {iteration.number}, J = {iteration.descent_value:.6g}")
        seconds = time.perf_counter() - clock
        report.draft({"n": n, "m": m, "seconds": seconds, "iterations": iteration.number})

    run = alternate(pairs, tol=1e-4, m_step_tol=1e-6, n_jobs=2, callback=tell)
    seconds = time.perf_counter() - clock
    sweep = three_passes(n, m)[0]
    report.add(
        {
            "n": n,
            "m": m,
            "seconds": seconds,
            "iterations": len(run.history),
            "evaluations": sum(iteration.evaluations for iteration in run.history),
            "seconds / one pass": seconds / sweep,
            "status": run.status.value,
            "gap": run.m_step.relative_gap,
        }
    )
    return report.finish()


def three_passes(n: int, m: int) -> tuple[float, int]:
    """Measure the seconds per pass, and the bytes of memory that the passes add."""
    X, y = gaussian_classes(n, m)
    before = resident_bytes()
    program = MStepObjective(PairSet.from_labels(X, y), n_jobs=2).program
    A = np.eye(m) / m
    seconds = []
    for _ in range(3):
        clock = time.perf_counter()
        program.value_and_gradient(A)
        seconds.append(time.perf_counter() - clock)
    return min(seconds), peak_bytes() - before


def _alternately(first: Callable[[], Any], second: Callable[[], Any]) -> tuple[float, float]:
    """Time two functions in turns, so that other load affects both alike; the best times."""
    best = [np.inf, np.inf]
    for _ in range(4):
        for which, work in enumerate((first, second)):
            time.sleep(0.3)
            with nullcontext() if which == 0 else one_blas_thread():  # as every solver does
                for _ in range(5):
                    clock = time.perf_counter()
                    work()
                    best[which] = min(best[which], time.perf_counter() - clock)
    return best[0], best[1]
