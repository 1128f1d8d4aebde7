"""The M-step by first-order methods: the paper's projected gradient, and FISTA with restart.

Both iterate B <- P(Y - grad f(Y) / L), P the projection onto the PSD cone; they differ in Y and
in the coordinates of the data. Steps are judged by gradients, never by values, whose rounding
would stall them near a relative gap of 1e-7. Both stop on the certified relative gap alone.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from ..certificate import Anchors, Certificate, certify
from ..logistic_program import LogisticProgram
from ..objective import MStepObjective
from ..pairs import FloatArray
from ..psd_cone import project, symmetrise
from .solution import MStepSolution, Status

SLACKEN = 0.995
"""L shrinks by this factor a step, so that it follows the curvature down."""

CHECK_EVERY = 0.1
"""The gap is looked at again after this share of the iterations so far: cheap, and never late."""


def projected_gradient(
    objective: MStepObjective,
    tol: float = 1e-8,
    max_iter: int = 20_000,
    start: FloatArray | None = None,
    time_limit: float | None = None,
) -> MStepSolution:
    """A <- P(A - grad f(A) / L) in the coordinates of the data: the paper's method for (11).

    Parameters
    ----------
    objective : MStepObjective
    tol : float
        Certified relative gap to reach.
    max_iter : int
    start : (m, m) PSD array, optional
        By default A = 0.
    time_limit : float, optional
        In seconds.

    Examples
    --------
    >>> from seraph_cvx import MStepObjective, PairSet
    >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
    >>> projected_gradient(MStepObjective(pairs)).status
    <Status.CERTIFIED: 'certified'>
    """
    m = objective.pairs.n_features
    data = _Coordinates(objective.program, np.eye(m), np.eye(m))
    return _minimise(objective, data, "projected-gradient", False, tol, max_iter, start, time_limit)


def fista(
    objective: MStepObjective,
    tol: float = 1e-8,
    max_iter: int = 20_000,
    start: FloatArray | None = None,
    time_limit: float | None = None,
) -> MStepSolution:
    """B <- P(Y - grad f(Y) / L), Y = B + momentum, in whitened coordinates A = T B T'.

    Whitening (T' (sum_k c_k v_k v_k') T = I) frees the method from the scale of the features and
    from directions in which the points do not differ. The momentum restarts when it points uphill.

    Parameters
    ----------
    objective, tol, max_iter, start, time_limit
        As for :func:`projected_gradient`.

    Examples
    --------
    >>> from seraph_cvx import MStepObjective, PairSet
    >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
    >>> fista(MStepObjective(pairs)).metric.round(4)
    array([[0.9227]])
    """
    T = objective.whitening
    white = _Coordinates(objective.whitened_program, T, T.T @ objective.pair_moment)
    return _minimise(objective, white, "fista", True, tol, max_iter, start, time_limit)


@dataclass(frozen=True)
class _Coordinates:
    """The program for B, where A = T B T' and B = inverse A inverse'."""

    program: LogisticProgram
    T: FloatArray
    inverse: FloatArray


@dataclass
class _Iterate:
    """Where the method stands: B, the point Y it steps from, f and its gradient at Y."""

    B: FloatArray
    Y: FloatArray
    value: float
    gradient: FloatArray
    momentum: float = 1.0


def _minimise(
    objective: MStepObjective,
    at: _Coordinates,
    name: str,
    accelerated: bool,
    tol: float,
    max_iter: int,
    start: FloatArray | None,
    time_limit: float | None,
) -> MStepSolution:
    clock = time.perf_counter()
    deadline = np.inf if time_limit is None else clock + time_limit
    m = at.T.shape[1]
    B = np.zeros((m, m)) if start is None else at.inverse @ start @ at.inverse.T
    B = project(symmetrise(B))
    now = _Iterate(B, B, *at.program.value_and_gradient(B))
    start_value = now.value
    L = _guess_curvature(objective, at)
    referee = _Referee(objective, at, tol)
    iteration = 0
    done = referee.accepts(now, now.value)
    next_check = 1
    while not done and iteration < max_iter and time.perf_counter() < deadline:
        iteration += 1
        previous, now, L = now, *_step(at.program, now, L, accelerated)
        if iteration >= next_check or iteration == max_iter:
            next_check = iteration + max(1, int(CHECK_EVERY * iteration))
            value = now.value if now.Y is now.B else at.program.value(now.B)
            done = value <= start_value and referee.accepts(now, value)
        elif np.array_equal(previous.Y, now.Y) and np.array_equal(previous.B, now.B):
            break  # a fixed point in floating point: no further step changes anything
    metric = symmetrise(at.T @ now.B @ at.T.T)
    certificate = referee.certificate if done else None
    if certificate is None:
        certificate = certify(objective, metric)
        if start is not None and certificate.primal_value > start_value:
            metric = start
            certificate = certify(objective, metric)
    attained = objective.attains_optimum
    status = (
        Status.CERTIFIED if certificate.relative_gap <= tol and attained else Status.ITERATION_LIMIT
    )
    return MStepSolution(
        metric=metric,
        value=certificate.primal_value,
        certificate=certificate,
        status=status,
        solver=name,
        solver_status="gap closed" if done else "stopped before the gap closed",
        iterations=iteration,
        seconds=time.perf_counter() - clock,
        solver_seconds=time.perf_counter() - clock,
        message=_explain(status, attained),
    )


def _step(
    program: LogisticProgram, now: _Iterate, L: float, accelerated: bool
) -> tuple[_Iterate, float]:
    """One projected step; L is raised where the gradient shows it to be below the curvature."""
    while True:
        B = project(now.Y - now.gradient / L)
        uphill = float(np.vdot(now.Y - B, B - now.B)) > 0.0
        if accelerated and not uphill:
            momentum = (1.0 + np.sqrt(1.0 + 4.0 * now.momentum**2)) / 2.0
            Y = B + ((now.momentum - 1.0) / momentum) * (B - now.B)
        else:
            momentum, Y = 1.0, B
        value, gradient = program.value_and_gradient(Y)
        move = Y - now.Y
        length = float(np.vdot(move, move))
        curvature = float(np.vdot(gradient - now.gradient, move)) / length if length else 0.0
        too_long = curvature > 1.5 * L
        L = max(L, 1.05 * curvature)
        if not too_long:
            return _Iterate(B, Y, value, gradient, momentum), SLACKEN * L


def _guess_curvature(objective: MStepObjective, at: _Coordinates) -> float:
    """The Hessian's norm for Gaussian differences: (2 + m)/4 * ||C||^2 / sum_k c_k."""
    spread = float(np.linalg.eigvalsh(symmetrise(at.T.T @ objective.pair_moment @ at.T))[-1])
    total = objective.pairs.n_labeled + objective.mu * objective.pairs.n_unlabeled
    guess = (2.0 + at.T.shape[1]) / 4.0 * spread**2 / total
    return max(guess, float(np.finfo(np.float64).tiny))


class _Referee:
    """Looks at the free lower bound of an iterate, and certifies when that is promising."""

    def __init__(self, objective: MStepObjective, at: _Coordinates, tol: float) -> None:
        self.objective = objective
        self.at = at
        self.tol = tol
        self.anchors = Anchors.of(objective)
        self.from_white = at.inverse @ objective.whitening
        self.bound = -np.inf
        self.margin = 0.5
        self.certificate: Certificate | None = None

    def accepts(self, now: _Iterate, value: float) -> bool:
        """Whether the certified relative gap at now.B, where f is `value`, is within tol."""
        gradient = symmetrise(self.from_white.T @ now.gradient @ self.from_white)
        tangent = now.value - float(np.vdot(now.gradient, now.Y))
        self.bound = max(self.bound, self.anchors.quick_bound(tangent, gradient))
        if value - self.bound > self.margin * self.tol * max(1.0, abs(value)):
            return False
        self.certificate = certify(self.objective, self.at.T @ now.B @ self.at.T.T)
        self.margin /= 2.0  # if this was too early, look less soon
        return self.certificate.relative_gap <= self.tol


def _explain(status: Status, attained: bool) -> str:
    if status is Status.CERTIFIED:
        return ""
    if not attained:
        return "The optimum is not attained: the objective falls for ever. Use trace_weight > 0."
    return "Raise max_iter or tol, or standardize the features."
