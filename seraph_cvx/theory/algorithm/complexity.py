"""Claim 13: the complexity O(n^2 m + m^3) of a step, which is measured and therefore slow."""

from __future__ import annotations

import time

import numpy as np

from ...display.chart import Chart, Curve
from ...model.m_step_objective import MStepObjective
from ...numerics.arrays import one_blas_thread
from ...numerics.checks import FloatArray
from ...numerics.psd_cone import project
from ...pairs.pair_set import PairSet
from ..claim import Check, Claim, ClaimResult
from ..claim_data import ClaimData

CLAIM = Claim(
    number=13,
    name="The complexity of a step",
    place="Section 2.4, last paragraph",
    statement="A step of the M-step, its gradient over all pairs and its projection, takes time "
    "O(n^2 m + m^3).",
    formula=r"t(n, m) = O(n^2 m + m^3)",
    evidence="Processor seconds of one gradient and one projection on random points, one thread, "
    "the best of several, over grids of n and m; exponents by least squares of the logarithms.",
)

MANY_POINTS = (1000, 1600, 2500, 4000)
MANY_FEATURES = (96, 160, 256, 400)


def measure(n: int, m: int) -> float:
    """Time a gradient of (11) and a projection, for n points in R^m: the best of 7."""
    rng = np.random.default_rng([n, m])
    labels = np.where(np.arange(n) < 10, np.arange(n) % 2, -1)
    objective = MStepObjective(PairSet.from_labels(rng.normal(size=(n, m)), labels))
    A = np.eye(m) / m
    objective.program  # noqa: B018 (what is summed once is not part of a step)
    best = np.inf
    with one_blas_thread():
        for _ in range(7):
            clock = time.process_time()
            gradient = objective.value_and_gradient(A)[1]
            project(A - 1e-3 * gradient)
            best = min(best, time.process_time() - clock)
    return best


def check_complexity(setting: ClaimData) -> ClaimResult:
    """Compare the fitted exponents of n and of m with those of n^2 m + m^3."""
    by_points = [[measure(n, m) for n in MANY_POINTS] for m in (8, 32)]
    by_features = [measure(60, m) for m in MANY_FEATURES]
    exponents_n = [_exponent(MANY_POINTS, seconds) for seconds in by_points]
    growth = np.log(np.divide(by_points[1], by_points[0])) / np.log(32 / 8)
    exponent_m = float(np.max(growth))
    exponent_cube = _exponent(MANY_FEATURES, by_features)
    return ClaimResult(
        CLAIM,
        [
            Check("exponent of n above 2, m fixed", max(exponents_n) - 2.0, 0.35),
            Check("exponent of m above 1, n large", exponent_m - 1.0, 0.35),
            Check("exponent of m above 3, n small", exponent_cube - 3.0, 0.35),
        ],
        numbers={
            "exponent of n, m = 8": exponents_n[0],
            "exponent of n, m = 32": exponents_n[1],
            "exponent of m, n large": exponent_m,
            "exponent of m, n = 60": exponent_cube,
            f"seconds, n = {MANY_POINTS[-1]}, m = 32": by_points[1][-1],
        },
        charts=[
            Chart(
                "Seconds of a step against n",
                "n",
                "seconds",
                [
                    Curve(f"m = {m}", list(map(float, MANY_POINTS)), seconds)
                    for m, seconds in zip((8, 32), by_points, strict=True)
                ],
                log_x=True,
                log_y=True,
            )
        ],
    )


def _exponent(sizes: tuple[int, ...], seconds: list[float]) -> float:
    """Fit the exponent b of the least-squares line log t = a + b log size."""
    line: FloatArray = np.polyfit(np.log(sizes), np.log(seconds), 1)
    return float(line[0])
