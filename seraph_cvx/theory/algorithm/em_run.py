"""The EM-like scheme of Section 2.4 as a list of metrics, every M-step solved and certified."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...model.m_step_objective import MStepObjective
from ...numerics.checks import FloatArray
from ...pairs.pair_set import PairSet
from ..claim_data import ClaimData, certified

STEPS = 8


@dataclass(frozen=True, eq=False)
class Trace:
    """An alternation: its metrics, and the largest certified relative gap of its M-steps."""

    setting: ClaimData
    weight: float
    sharpness: float
    metrics: list[FloatArray]
    gap: float


def alternation(setting: ClaimData, weight: float, sharpness: float, steps: int = STEPS) -> Trace:
    """A <- argmin of (11) with weight w on U, q <- sigma(-a s(A)), from q(-1) = 1."""
    metric: FloatArray | None = None
    metrics, gap = [], 0.0
    for _ in range(steps):
        objective = MStepObjective(
            setting.pairs,
            previous_metric=metric,
            sharpness=sharpness,
            unlabeled_weight=weight,
            trace_weight=setting.trace_weight,
            threshold=setting.threshold,
        )
        solution = certified(objective, metric, tol=1e-6)
        metric = setting.metric_of(solution)
        metrics.append(metric)
        gap = max(gap, solution.relative_gap)
    return Trace(setting, weight, sharpness, metrics, gap)


def six_points() -> ClaimData:
    """Six points on a line, three of them labeled; lambda = 0.1, and mu = 1 is used."""
    X = np.array([[0.1], [2.0], [1.8], [-0.8], [-0.4], [-0.8]])
    return ClaimData("six points", PairSet.from_labels(X, [0, 0, 1, -1, -1, -1]), trace_weight=0.1)
