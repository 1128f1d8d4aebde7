"""The paper's objective (7) itself, by projected gradient: nonconvex, so stationarity is shown."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..model.m_step_objective import MStepObjective
from ..model.semi_supervised import SemiSupervisedObjective
from ..numerics.checks import FloatArray
from ..numerics.psd_cone import check_metric, project, symmetrise
from ..pairs.pair_set import PairSet
from ..solvers.solution import Status

SUFFICIENT = 1e-4
"""A step must lower (7) by this share of what its slope promises (Armijo)."""

HALVINGS = 60
"""A step halved so often moves nothing in floating point."""

PATIENCE = 100
"""After so many steps in which neither (7) nor the stationarity fell, rounding has the word."""

ROUNDING = 64.0 * float(np.finfo(np.float64).eps)
"""Two values of (7) closer than this, relative to the terms of the sum, count as equal."""


@dataclass(frozen=True, eq=False)
class DirectSolution:
    """A stationary point of (7), or the point at which the descent had to stop.

    Attributes
    ----------
    metric : (m, m) PSD array
    value : float
        (7) at `metric`, as a minimisation.
    stationarity : float
        See :func:`measure_stationarity`. Not a bound on the optimum.
    status : Status
        stationary (`stationarity` within tol) or iteration_limit; never certified, since (7) is
        not convex and has no duality gap.
    iterations : int
    seconds : float
    values : list of float
        (7) at the start and after each step, as computed: it may rise by the rounding of its sum.
    message : str
        What was not reached and the cure, where the status is not stationary.
    """

    metric: FloatArray
    value: float
    stationarity: float
    status: Status
    iterations: int
    seconds: float
    values: list[float]
    message: str = ""


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
    """Descend the paper's objective (7) to a stationary point, by projected gradient.

    A <- P(A - t grad) on -sum_{S u D} ln p(y) + mu sum_U H(p) + lambda tr(A), with steps t of
    Barzilai and Borwein's length, halved until (7) falls enough. Start, steps and stopping rule do
    not depend on the unit of the features: points c*x with c^2*lambda give A/c^2.

    Parameters
    ----------
    pairs : PairSet
    unlabeled_weight, trace_weight, threshold : float
        mu, lambda and eta.
    start : (m, m) array_like, optional
        By default the identity over the mean variance of the features that vary: A = I for
        standardized points. Another start may end at another stationary point.
    tol : float
        Stationarity to reach, see :func:`measure_stationarity`.
    max_iter : int
    manifold_term : (m, m) array_like, optional
        nu*X'LX, added to R.

    Examples
    --------
    >>> from seraph_cvx import PairSet
    >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
    >>> minimise_directly(pairs).status.value
    'stationary'
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
    m, unit = pairs.n_features, _unit_of_metrics(pairs.points)
    A = unit * np.eye(m) if start is None else check_metric(start, m, "start")
    now = _Point(A, *objective.value_and_gradient(A))
    values = [now.value]
    length = 0.1 * max(unit, now.size) / max(float(np.linalg.norm(now.gradient)), 1e-300)
    stationarity = now.stationarity(objective.m_step)
    lowest, best, idle = now.value, stationarity, 0
    while stationarity > tol and len(values) <= max_iter and idle < PATIENCE:
        after = _search(objective, now, length)
        if after is None:
            break  # no step lowers (7) in floating point
        length = _next_length(after.metric - now.metric, after.gradient - now.gradient, length)
        now = after
        values.append(now.value)
        stationarity = now.stationarity(objective.m_step)
        idle += 1
        if stationarity < best or now.value < lowest - _rounding(objective, now.value):
            lowest, best, idle = min(lowest, now.value), min(best, stationarity), 0
    status, message = Status.STATIONARY, ""
    if not stationarity <= tol:
        status, message = Status.ITERATION_LIMIT, _explain(values, stationarity, tol, max_iter)
    return DirectSolution(
        metric=now.metric,
        value=now.value,
        stationarity=stationarity,
        status=status,
        iterations=len(values) - 1,
        seconds=time.perf_counter() - clock,
        values=values,
        message=message,
    )


def measure_stationarity(
    m_step: MStepObjective, A: FloatArray, value: float, gradient: FloatArray
) -> float:
    """How much (7) could still fall by its slope at A, relative to its value.

    With C = sum_k c_k v_k v_k' this is the largest <grad, A - D> over metrics D of <C + R, D> <= S,
    S = <C + R, A> + (1 + eta) sum_k c_k, over max(1, |value|):

        ( <grad, A> + S * max(0, -lambda) ) / max(1, |value|),
        lambda the least eigenvalue of the gradient in coordinates where C + R = I.

    The bracket is at least (S - <C + R, A>) max(0, -lambda), so that it is zero exactly where the
    gradient is PSD and <grad, A> = 0: at the stationary points of (7) over the cone. The features'
    unit cancels in each product. A huge A enters with its whole size, and a tiny one is measured
    against metrics of mean squared distance 1 + eta. For mu = 0, where (7) is convex, no D of that
    set is better than A by more.

    Parameters
    ----------
    m_step : MStepObjective
        The pairs and weights of (7).
    A : (m, m) PSD array
    value, gradient : float and (m, m) array
        Of (7) at A.
    """
    Z = m_step.axes.matrix
    least = float(np.min(np.linalg.eigvalsh(symmetrise(Z.T @ gradient @ Z)), initial=0.0))
    size = float(np.vdot(m_step.pair_moment + m_step.regulariser, A))
    reach = size + (1.0 + m_step.threshold) * m_step.pair_total
    fall = float(np.vdot(gradient, A)) - least * reach
    return abs(fall) / max(1.0, abs(value))  # below zero by rounding alone


@dataclass(frozen=True, eq=False)
class _Point:
    """A metric, and (7) and its gradient there."""

    metric: FloatArray
    value: float
    gradient: FloatArray

    @property
    def size(self) -> float:
        return float(np.linalg.norm(self.metric))

    def stationarity(self, m_step: MStepObjective) -> float:
        return measure_stationarity(m_step, self.metric, self.value, self.gradient)


def _search(objective: SemiSupervisedObjective, now: _Point, length: float) -> _Point | None:
    """Find the first of P(A - length*grad), P(A - length/2*grad), ... at which (7) falls enough.

    By the projection's property the slope along a step is at most -|step|^2/length. Where the fall
    is lost in the rounding of two values, it is judged by the gradients: for a quadratic function
    it is slope + <change of the gradient, step>/2, whose rounding is that of the small step.
    """
    for _ in range(HALVINGS):
        A = project(symmetrise(now.metric - length * now.gradient))
        after = _Point(A, *objective.value_and_gradient(A))
        step = A - now.metric
        promised = float(np.vdot(step, step)) / length
        if after.value <= now.value - SUFFICIENT * promised:
            return after
        bend = float(np.vdot(after.gradient - now.gradient, step))
        flat = after.value <= now.value + _rounding(objective, now.value)
        if flat and bend <= 2.0 * (1.0 - SUFFICIENT) * promised:
            return after
        length /= 2.0
    return None


def _rounding(objective: SemiSupervisedObjective, value: float) -> float:
    """Bound the rounding of (7), a sum of terms that are not negative less a constant."""
    return ROUNDING * (abs(value) + 2.0 * abs(objective.program.constant))


def _next_length(move: FloatArray, change: FloatArray, length: float) -> float:
    """Barzilai and Borwein's <move, move> / <move, change>, within 10 times the last length."""
    curvature = float(np.vdot(move, change))
    if curvature <= 0.0:
        return 10.0 * length
    return float(np.clip(np.vdot(move, move) / curvature, 0.1 * length, 10.0 * length))


def _unit_of_metrics(points: FloatArray) -> float:
    """One over the mean variance of the features that vary: metrics scale as this does."""
    varies = np.ptp(points, axis=0) > 0.0
    return 1.0 / float(np.mean(np.var(points[:, varies], axis=0))) if np.any(varies) else 1.0


def _explain(values: list[float], stationarity: float, tol: float, max_iter: int) -> str:
    """Say what was not reached, and the cure."""
    steps = len(values) - 1
    cure = "raise max_iter or tol" if steps >= max_iter else "rounding hides the rest, so raise tol"
    return (
        f"Stopped after {steps} steps at stationarity {stationarity:.2g}, asked for {tol:.2g}: "
        f"{cure}."
    )
