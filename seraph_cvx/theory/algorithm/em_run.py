"""The EM-like scheme of Section 2.4 as a list of metrics, every M-step solved and certified."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

import numpy as np

from ...fit.steps import alternation_steps
from ...m_step.solve import MStepSolver
from ...model.m_step_objective import MStepObjective
from ...numerics.checks import FloatArray
from ...pairs.pair_set import PairSet
from ..claim_data import ClaimData

STEPS = 8


@dataclass(frozen=True, eq=False)
class Trace:
    """The metrics of an alternation, and the largest certified relative gap of its M-steps."""

    setting: ClaimData
    weight: float
    sharpness: float
    metrics: list[FloatArray]
    gap: float


def alternation(setting: ClaimData, weight: float, sharpness: float, steps: int = STEPS) -> Trace:
    """Alternate A <- argmin of (11), with weight w on U, and q <- sigma(-a s(A))."""
    objective = MStepObjective(
        setting.pairs,
        sharpness=sharpness,
        unlabeled_weight=weight,
        trace_weight=setting.trace_weight,
        threshold=setting.threshold,
    )
    run = alternation_steps(objective, MStepSolver(), tolerance=lambda: 1e-6)
    solutions = (step.solution for step in run if step.solution is not None)
    found = list(islice(solutions, steps))
    metrics = [setting.metric_of(solution) for solution in found]
    gap = max(solution.relative_gap for solution in found)
    return Trace(setting, weight, sharpness, metrics, gap)


def six_points() -> ClaimData:
    """Make six points on a line, three of them labeled, with lambda = 0.1, for mu = 1."""
    X = np.array([[0.1], [2.0], [1.8], [-0.8], [-0.4], [-0.8]])
    return ClaimData("six points", PairSet.from_labels(X, [0, 0, 1, -1, -1, -1]), trace_weight=0.1)
