"""Gradient projection stopped early: a metric also where (7) has no optimum (lambda = 0).

The paper names gradient projection as a direct way to (7) and does not say where it stops. Stopped
early it regularizes: the metric stays near its start, a multiple of the Euclidean one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from seraph_cvx.model.m_step_objective import MStepObjective
from seraph_cvx.model.semi_supervised import SemiSupervisedObjective
from seraph_cvx.numerics.arrays import one_blas_thread
from seraph_cvx.numerics.checks import FloatArray
from seraph_cvx.numerics.psd_cone import project, symmetrize
from seraph_cvx.pairs.pair_set import PairSet

FIRST_STEP = 0.1
"""The t-th step is FIRST_STEP * m / sqrt(t) long."""

HALVINGS = 30
"""A step is halved at most this often: then it is too small to matter."""


@dataclass(frozen=True, eq=False)
class EarlyStopped:
    """Where an early-stopped gradient projection ended."""

    metric: FloatArray
    values: list[float]
    stopped_by: str

    @property
    def steps(self) -> int:
        """How many steps were taken."""
        return len(self.values) - 1


def stop_early(
    pairs: PairSet,
    unlabeled_weight: float | str = "ratio",
    trace_weight: float = 1.0,
    threshold: float = 1.0,
    smallest_move: float = 1e-3,
    max_steps: int = 200,
) -> EarlyStopped:
    """Descend (7) by gradient projection from m/(m+1) I, for a few steps of falling length."""
    objective = SemiSupervisedObjective(
        MStepObjective(
            pairs,
            unlabeled_weight=unlabeled_weight,
            trace_weight=trace_weight,
            threshold=threshold,
        )
    )
    m = pairs.n_features
    A = m / (m + 1.0) * np.eye(m)
    with one_blas_thread():
        value, gradient = objective.value_and_gradient(A)
        values = [value]
        while len(values) <= max_steps:
            length = FIRST_STEP * m / np.sqrt(len(values))
            step = _descend(objective, A, value, gradient, length)
            if step is None:
                return EarlyStopped(A, values, "no descent")
            new_A, value, gradient = step
            move = float(np.linalg.norm(new_A - A))
            A = new_A
            values.append(value)
            if move <= smallest_move:
                return EarlyStopped(A, values, "small step")
    return EarlyStopped(A, values, "step limit")


def _descend(
    objective: SemiSupervisedObjective,
    A: FloatArray,
    value: float,
    gradient: FloatArray,
    length: float,
) -> tuple[FloatArray, float, FloatArray] | None:
    """Take the longest of the steps length, length/2, ... that does not raise the objective."""
    size = float(np.linalg.norm(gradient))
    if size == 0.0:
        return None
    for _ in range(HALVINGS):
        new_A = project(symmetrize(A - length / size * gradient))
        new_value, new_gradient = objective.value_and_gradient(new_A)
        if new_value <= value:
            return new_A, new_value, new_gradient
        length /= 2.0
    return None
