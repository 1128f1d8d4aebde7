"""Gradient projection stopped early: a metric also where (7) has no optimum (lambda = 0).

The paper names gradient projection as a direct way to (7) and does not say where it stops. Stopped
early it regularizes: the metric stays near its start, a multiple of the Euclidean one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...model.m_step_objective import MStepObjective
from ...model.semi_supervised import SemiSupervisedObjective
from ...numerics.arrays import one_blas_thread
from ...numerics.checks import FloatArray
from ...numerics.psd_cone import project, symmetrize
from ...pairs.pair_set import PairSet

FIRST_STEP = 0.1
"""The t-th step is FIRST_STEP * m / sqrt(t) long."""

HALVINGS = 30
"""A step is halved at most this often: then it is too small to matter."""


@dataclass(frozen=True, eq=False)
class EarlyStopped:
    """Where an early-stopped gradient projection ended.

    Attributes
    ----------
    metric : (m, m) array
    values : list of float
        (7) as a minimization, at the start and after each step; it never rises.
    stopped_by : str
        "small step", "no descent" (every halved step was worse) or "step limit".
    """

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
    """Descend (7) by gradient projection from m/(m+1) I, for a few steps of falling length.

    A <- P(A - 0.1 m / sqrt(t) * g / ||g||_F), with g the gradient of (7) at A. A step that would
    raise the objective is halved until it does not. The descent ends when A moves by no more than
    `smallest_move` (Frobenius norm), or after `max_steps`.

    Parameters
    ----------
    pairs : PairSet
    unlabeled_weight, trace_weight, threshold : float
        mu ("ratio": #(S u D)/#U), lambda and eta; with mu = 0 the supervised part alone.
    smallest_move : float
    max_steps : int

    Examples
    --------
    >>> from seraph_cvx import PairSet
    >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
    >>> run = stop_early(pairs, trace_weight=0.0)
    >>> run.stopped_by, run.values[-1] < run.values[0]
    ('small step', True)
    """
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
