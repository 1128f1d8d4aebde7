"""The paper's objective (7) itself, by projected gradient: nonconvex, so stationarity is shown."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .checks import FloatArray
from .m_step.solution import Status
from .objective import MStepObjective
from .pairs import PairSet
from .psd_cone import check_metric, project, symmetrise
from .semi_supervised import SemiSupervisedObjective


@dataclass(frozen=True, eq=False)
class DirectSolution:
    """A stationary point of (7), or where the limit stopped.

    Attributes
    ----------
    stationarity : float
        ||B - P(B - grad)||_F / max(1, ||B||_F), per pair and in whitened coordinates: A is
        sum_k c_k times T B T', and grad that of (7) divided by sum_k c_k. Zero exactly at
        stationary points, whatever the scale of the features. Not a bound on the optimum.
    status : Status
        certified (stationarity within tol) or iteration_limit.
    values : list of float
        (7) along the iterations, as a minimisation; it never rises.
    """

    metric: FloatArray
    value: float
    stationarity: float
    status: Status
    iterations: int
    seconds: float
    values: list[float]


def minimise_directly(
    pairs: PairSet,
    unlabeled_weight: float | str = "ratio",
    trace_weight: float = 1.0,
    threshold: float = 1.0,
    start: ArrayLike | None = None,
    tol: float = 1e-6,
    max_iter: int = 5_000,
    n_jobs: int | None = None,
    manifold_term: FloatArray | None = None,
) -> DirectSolution:
    """A <- P(A - t grad) on -sum_{S u D} ln p(y) + mu sum_U H(p) + lambda tr(A), eq. (7).

    Steps of Barzilai and Borwein's length, halved until (7) falls enough (Armijo).

    Parameters
    ----------
    pairs : PairSet
    unlabeled_weight, trace_weight, threshold : float
        mu, lambda and eta.
    start : (m, m) array_like, optional
        By default A = I. Another start may end at another stationary point.
    tol : float
        Stationarity to reach.
    manifold_term : (m, m) array_like, optional
        nu*X'LX, added to R.

    Examples
    --------
    >>> from seraph_cvx import PairSet
    >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
    >>> minimise_directly(pairs).status.value
    'certified'
    """
    clock = time.perf_counter()
    objective = SemiSupervisedObjective(
        MStepObjective(
            pairs,
            unlabeled_weight=unlabeled_weight,
            trace_weight=trace_weight,
            threshold=threshold,
            n_jobs=n_jobs,
            manifold_term=manifold_term,
        )
    )
    m = pairs.n_features
    A = np.eye(m) if start is None else check_metric(start, m, "start")
    value, gradient = objective.value_and_gradient(A)
    values = [value]
    stationarity = _stationarity(objective.m_step, A, gradient)
    length = _first_length(A, gradient)
    while stationarity > tol and len(values) <= max_iter:
        step = _search(objective, A, value, gradient, length)
        if step is None:
            break  # no step falls in floating point
        new_A, value, new_gradient = step
        length = _next_length(new_A - A, new_gradient - gradient, length)
        A, gradient = new_A, new_gradient
        values.append(value)
        stationarity = _stationarity(objective.m_step, A, gradient)
    status = Status.CERTIFIED if stationarity <= tol else Status.ITERATION_LIMIT
    seconds = time.perf_counter() - clock
    return DirectSolution(A, value, stationarity, status, len(values) - 1, seconds, values)


def _search(
    objective: SemiSupervisedObjective,
    A: FloatArray,
    value: float,
    gradient: FloatArray,
    length: float,
) -> tuple[FloatArray, float, FloatArray] | None:
    """The first of A, P(A - length*grad), P(A - length/2*grad), ... at which (7) falls enough."""
    for _ in range(60):
        new_A = project(symmetrise(A - length * gradient))
        slope = float(np.vdot(gradient, new_A - A))
        new_value, new_gradient = objective.value_and_gradient(new_A)
        rounding = 4.0 * np.finfo(np.float64).eps * abs(value)
        if new_value <= value + 1e-4 * slope + rounding and slope < 0.0:
            return new_A, min(new_value, value), new_gradient
        length /= 2.0
    return None


def _first_length(A: FloatArray, gradient: FloatArray) -> float:
    """A tenth of the metric's own size."""
    return 0.1 * max(1.0, float(np.linalg.norm(A))) / max(float(np.linalg.norm(gradient)), 1e-300)


def _next_length(move: FloatArray, change: FloatArray, length: float) -> float:
    """<move, move> / <move, change>, within a factor of 10 of the last one."""
    curvature = float(np.vdot(move, change))
    if curvature <= 0.0:
        return 10.0 * length
    return float(np.clip(np.vdot(move, move) / curvature, 0.1 * length, 10.0 * length))


def _stationarity(m_step: MStepObjective, A: FloatArray, gradient: FloatArray) -> float:
    T = m_step.whitening
    inverse = T.T @ m_step.pair_moment
    B = symmetrise(inverse @ A @ inverse.T) / m_step.pair_total
    step = symmetrise(B - T.T @ gradient @ T)
    return float(np.linalg.norm(B - project(step))) / max(1.0, float(np.linalg.norm(B)))
