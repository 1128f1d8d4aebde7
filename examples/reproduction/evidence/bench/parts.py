"""What a fit is made of: the time of each kind of pass over the pairs, and its share."""

from __future__ import annotations

import cProfile
import pstats
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from seraph_cvx.display.result_table import ResultTable
from seraph_cvx.engine.pair_sums import PairSums
from seraph_cvx.fit.alternation import Alternation
from seraph_cvx.model.m_step_objective import MStepObjective
from seraph_cvx.model.pair_program import FacePoint, PairProgram
from seraph_cvx.model.semi_supervised import descent_program
from seraph_cvx.pairs.pair_set import PairSet

from .report import Report
from .size import gaussian_classes, measured_fit, to_backend


def bench_face(
    report: Report,
    backend: str = "cpu",
    sizes: Sequence[int] = (1_000, 3_000, 10_000),
    m: int = 64,
    rho: int = 8,
) -> ResultTable:
    """Time what a fit is made of: passes over all pairs at a factor with `rho` columns."""
    if backend not in ("cpu", "cuda"):
        raise ValueError(f"Passes are timed on cpu or cuda, not on {backend!r}.")
    report.start(f"Passes over all pairs on {backend} (m = {m}, {rho} columns), milliseconds")
    rng = np.random.default_rng(1)
    shape, D = rng.normal(size=(m, rho)), rng.normal(size=(m, rho))
    for n in sizes:
        X, y = gaussian_classes(n, m)
        objective = MStepObjective(PairSet.from_labels(to_backend(X, backend), y), n_jobs=-1)
        programs = {
            "(11)": objective.whitened_program,
            "J": descent_program(objective, whitened=True),
        }
        for name, program in programs.items():
            report.tell(f"passes at n = {n}, {name}")
            L = shape * (program.reach**0.5 / float(np.linalg.norm(shape)))
            point = program.at(L)
            row: dict[str, Any] = {
                "n": n,
                "function": name,
                "slope": _milliseconds(partial(program.at, L)),
                "gradient": _milliseconds(point.make_gradient),
                "product": _milliseconds(partial(point.bent, D)),
            }
            if program.device_faces is not None:
                every = program.device_faces.faces[0].pass_at(L)
                row["product, all pairs"] = _milliseconds(partial(every.bent, D))
            report.add(row)
    return report.finish()


def bench_shares(
    report: Report,
    backend: str = "cpu",
    sizes: Sequence[int] = (1_000, 3_000, 10_000),
    m: int = 64,
) -> ResultTable:
    """Measure which share of a fit's time goes to sums over pairs, and to what else."""
    if backend not in ("cpu", "cuda"):
        raise ValueError(f"Shares are measured on cpu or cuda, not on {backend!r}.")
    report.start(f"Where the time of a fit on {backend} goes (m = {m}), per cent of it")
    for n in sizes:
        report.tell(f"shares at n = {n}")
        X, y = gaussian_classes(n, m)
        X = to_backend(X, backend)
        _fit(X, y)
        profiler = cProfile.Profile()
        profiler.runcall(_fit, X, y)
        measured = pstats.Stats(profiler)
        seconds = {name: _seconds_in(measured, functions) for name, functions in SUMS.items()}
        total = float(vars(measured)["total_tt"])
        shares = {name: 100.0 * part / total for name, part in seconds.items()}
        rest = 100.0 - sum(shares.values())
        report.add({"n": n, "seconds, profiled": total, **shares, "all else": rest})
    return report.finish()


SUMS: dict[str, list[Any]] = {
    "values and slopes": [PairProgram.at],
    "products": [FacePoint.bent, FacePoint.curvature],
    "gradients": [vars(FacePoint)["gradient"].func],
    "certificate and moments": [PairSums.over_labeled, PairSums.over_unlabeled],
}
"""The functions that sum over pairs. None of them calls another one."""


def _seconds_in(measured: pstats.Stats, functions: Sequence[Any]) -> float:
    """The seconds spent in some functions and what they call."""
    codes = [function.__code__ for function in functions]
    keys = [(code.co_filename, code.co_firstlineno, code.co_name) for code in codes]
    found: dict[Any, Any] = vars(measured)["stats"]
    return sum(float(found[key][3]) for key in keys if key in found)


def _fit(X: Any, y: Any) -> Alternation:
    return measured_fit(PairSet.from_labels(X, y))


def _milliseconds(run: Callable[[], Any], repeats: int = 5) -> float:
    """The least time of a few runs, after one that is not timed."""
    run()
    least = np.inf
    for _ in range(repeats):
        clock = time.perf_counter()
        run()
        least = min(least, time.perf_counter() - clock)
    return 1e3 * least
