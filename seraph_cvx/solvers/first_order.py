"""The M-step by first-order methods: the paper's projected gradient, and FISTA with restart.

Both iterate B <- P(Y - grad f(Y) / L), P the projection onto the PSD cone; they differ in Y and
in the coordinates of the data. Steps are judged by gradients, never by values, whose rounding
would stall them near a relative gap of 1e-7. Both stop on the certified relative gap alone. Unless
told not to, FISTA tries Newton's method on the factor of the metric first (`newton.py`), and goes
on from that point where it is not enough.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from ..certificate import Certificate, certify, certify_factor
from ..model.m_step_objective import MStepObjective
from ..numerics.checks import FloatArray
from ..numerics.psd_cone import project, symmetrize
from .coarse import subsampled_objective
from .factor_newton import FLAT, Watch
from .newton import OVERFLOWED, STOPPED, Found, newton, rough_factor
from .solution import ROUNDING_GAP, MStepSolution, Status
from .stopping_rule import Coordinates, Iterate, StoppingRule

SLACKEN = 0.995
"""L shrinks by this factor a step, so that it follows the curvature down."""

LEAST_CURVATURE = 1e-6
"""But not below this share of the first guess: where f falls for ever it would vanish."""

CHECK_EVERY = 0.1
"""The gap is looked at again after this share of the iterations so far: cheap, and never late."""

COARSE = 1e-3
"""The relative gap of the small M-step that a large one starts from."""

CLEAR_FALL = 1e-6
"""A method whose f fell by more than this share need not be compared with its start."""

STALLED = "no further progress"
LEAST_FALL, SHORTEST_STALL = 1e-13, 200
"""f has stalled if it fell by less than this share over this many iterations, and half of all."""


def projected_gradient(
    objective: MStepObjective,
    tol: float = 1e-8,
    max_iter: int = 20_000,
    start: FloatArray | None = None,
    time_limit: float | None = None,
    watch: Watch | None = None,
) -> MStepSolution:
    """Minimize by projected gradient steps, the paper's method for (11).

    A <- P(A - grad f(A) / L) in the coordinates of the data.

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
    watch : callable, optional
        Called with the number of steps and f now and then; a true answer ends the method there.

    Examples
    --------
    >>> from seraph_cvx import MStepObjective, PairSet
    >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
    >>> projected_gradient(MStepObjective(pairs)).status
    <Status.CERTIFIED: 'certified'>
    """
    if objective.penalties:
        raise ValueError(
            "projected-gradient takes no penalties but the trace penalty and the manifold term: "
            f'use solver="fista" or a conic solver for {list(objective.penalties)}.'
        )
    clock = time.perf_counter()
    deadline = np.inf if time_limit is None else clock + time_limit
    identity = np.eye(objective.pairs.n_features)
    data = Coordinates(objective.program, identity, identity)
    found = _minimize(objective, data, tol, max_iter, start, deadline, watch=watch)
    return _solution(objective, found, "projected-gradient", tol, start, clock, deadline=deadline)


def fista(
    objective: MStepObjective,
    tol: float = 1e-8,
    max_iter: int = 20_000,
    start: FloatArray | None = None,
    time_limit: float | None = None,
    finish: bool = True,
    watch: Watch | None = None,
) -> MStepSolution:
    """Minimize by accelerated projected gradient steps in whitened coordinates.

    B <- P(Y - grad f(Y) / L), Y = B + momentum, with A = T B T'.

    Whitening (T' (sum_k c_k v_k v_k') T = I) frees the method from the scale of the features and
    from directions in which the points do not differ. The momentum restarts when it points uphill.
    With many points and no `start`, Newton's method begins at the solution for a few of them.

    Parameters
    ----------
    objective, tol, max_iter, start, time_limit, watch
        As for :func:`projected_gradient`.
    finish : bool
        Try Newton's method on the factor of the metric first, which is nearly always enough;
        False is FISTA alone.

    Examples
    --------
    >>> from seraph_cvx import MStepObjective, PairSet
    >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
    >>> fista(MStepObjective(pairs)).metric.round(4)
    array([[0.9227]])
    """
    clock = time.perf_counter()
    deadline = np.inf if time_limit is None else clock + time_limit
    if objective.penalties:
        from .augmented import solve_penalized

        answer = solve_penalized(objective, tol, max_iter, start, deadline, watch)
        return _solution(objective, answer, "fista", tol, start, clock, deadline=deadline)
    white = Coordinates(objective.whitened_program, objective.basis.matrix, objective.basis.inverse)
    found = None
    if finish and objective.attains_optimum:
        first = _first_metric(objective, deadline) if start is None else start
        found = newton(objective, tol, max_iter, first, deadline, watch)
    if found is None or not (found.is_done or found.word == STOPPED):
        first = start if found is None else found.certificate.metric
        left = max_iter if found is None else max(1, max_iter - found.steps)
        found = _minimize(
            objective, white, tol, left, first, deadline, accelerated=True, watch=watch
        )
    return _solution(objective, found, "fista", tol, start, clock, deadline=deadline)


def rough_m_step(
    objective: MStepObjective,
    tol: float,
    start: FloatArray | None = None,
    time_limit: float | None = None,
    watch: Watch | None = None,
) -> tuple[FloatArray, int]:
    """The factor of a metric near the optimum, as `fista` starts, and the passes that it took.

    `tol` is roughly its relative gap, but nothing is certified: it is where another method starts.

    Examples
    --------
    >>> from seraph_cvx import MStepObjective, PairSet
    >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
    >>> L, _ = rough_m_step(MStepObjective(pairs), 1e-4)
    >>> bool(abs(np.vdot(L, L) - 0.9227) < 0.01)
    True
    """
    deadline = np.inf if time_limit is None else time.perf_counter() + time_limit
    first = _first_metric(objective, deadline) if start is None else start
    return rough_factor(objective, tol, first, deadline, watch)


def _first_metric(objective: MStepObjective, deadline: float) -> FloatArray | None:
    """The solution for a few of many points; None where they are few already."""
    few = subsampled_objective(objective)
    if few is None:
        return None
    L = rough_factor(few, COARSE, deadline=deadline)[0]
    return symmetrize(L @ L.T)


def _minimize(
    objective: MStepObjective,
    where: Coordinates,
    tol: float,
    max_iter: int,
    start: FloatArray | None,
    deadline: float,
    *,
    accelerated: bool = False,
    watch: Watch | None = None,
) -> Found:
    """Projected gradient steps, with momentum where `accelerated`."""
    m = where.T.shape[1]
    B = np.zeros((m, m)) if start is None else where.inverse @ start @ where.inverse.T
    now = Iterate.at(where, project(symmetrize(B)))
    stopping_rule = StoppingRule(objective, where, tol, now.value)
    progress, checks = _Progress(now.value), _checks()
    next_check = next(checks)
    iteration, word = 0, "gap closed"
    done = stopping_rule.accepts(now)
    curvature = 0.0 if done else _guess_curvature(objective, where)
    least = LEAST_CURVATURE * curvature
    while not done:
        if iteration >= max_iter or time.perf_counter() >= deadline:
            word = "iteration limit" if time.perf_counter() < deadline else "time limit"
            break
        iteration += 1
        now, curvature = _step(where, now, max(curvature, least), accelerated)
        if iteration >= next_check:
            next_check = next(checks)
            done = stopping_rule.accepts(now)
            if progress.has_stalled(iteration, now.value):
                word = STALLED
                break
            if not done and watch is not None and watch(iteration, now.value):
                word = STOPPED
                break
    certificate = stopping_rule.certificate
    if not done or certificate is None:
        certificate = certify_factor(objective, where.factor(now.B))
        if word == STALLED and certificate.relative_gap > tol:
            certificate = _stretched(objective, certificate, tol)
    return Found(certificate, done, iteration, where.evaluations, stopping_rule.seconds, word)


def _solution(
    objective: MStepObjective,
    found: Found,
    name: str,
    tol: float,
    start: FloatArray | None,
    clock: float,
    *,
    deadline: float,
) -> MStepSolution:
    """What was found, or the start where that is better, with the certificate's verdict."""
    certificate, word = found.certificate, found.word
    metric = certificate.metric if found.metric is None else found.metric
    if start is not None and found.steps == 0:
        metric = start
    elif start is not None and found.fall < CLEAR_FALL and _is_better(objective, start, metric):
        metric, certificate = start, certify(objective, start).with_bound_of(certificate)
    now = time.perf_counter()
    attained, gap = objective.attains_optimum, certificate.relative_gap
    status = Status.ITERATION_LIMIT
    if attained and gap <= tol:
        status = Status.CERTIFIED
    elif attained and (found.is_done or word == STALLED):
        status = Status.ROUNDING_LIMIT if gap <= ROUNDING_GAP else Status.INACCURATE
        word = "gap closed to rounding" if found.is_done else word
    elif word == STOPPED:
        status = Status.INTERRUPTED
    elif word == OVERFLOWED:
        status = Status.INACCURATE
    elif now >= deadline:
        status, word = Status.TIME_LIMIT, "time limit"
    seconds = now - clock
    return MStepSolution(
        metric=metric,
        value=certificate.primal_value,
        certificate=certificate,
        status=status,
        solver=name,
        solver_status=word,
        iterations=found.steps,
        seconds=seconds,
        solver_seconds=seconds,
        evaluations=found.evaluations,
        certificate_seconds=found.certificate_seconds,
        message=_explain(objective, status, attained, word),
    )


def _is_better(objective: MStepObjective, one: FloatArray, other: FloatArray) -> bool:
    """Whether f is smaller at `one` by more than rounding, both values by the same formula."""
    value = objective.value(other)
    return objective.value(one) < value - FLAT * max(1.0, abs(value))


def _stretched(objective: MStepObjective, best: Certificate, tol: float) -> Certificate:
    """The best certificate of 2A, 4A, 8A: where R is nearly zero, A has to be large to show it.

    f falls like e^{-d} with the distance of dissimilar pairs, soon by less than rounding; but only
    where e^{-d} is as small as R relative to the pairs' moment is the dual point feasible.
    """
    stretched = (np.sqrt(t) * best.factor for t in (2.0, 4.0, 8.0))
    others = (certify_factor(objective, L, tol) for L in stretched)
    return min([best, *others], key=lambda certificate: certificate.relative_gap)


class _Progress:
    """Sees when f has stopped falling: what is left of the gap is then hidden by rounding."""

    def __init__(self, value: float) -> None:
        self.value, self.iteration = value, 0

    def has_stalled(self, iteration: int, value: float) -> bool:
        """Whether f has not fallen for as long as it did before, and for long enough."""
        if value < self.value - LEAST_FALL * abs(self.value):
            self.value, self.iteration = value, iteration
        return iteration - self.iteration > max(SHORTEST_STALL, iteration // 2)


def _checks() -> Iterator[int]:
    """The iterations at which the gap is looked at."""
    iteration = 1
    while True:
        yield iteration
        iteration += max(3, int(CHECK_EVERY * iteration))


def _step(where: Coordinates, now: Iterate, L: float, accelerated: bool) -> tuple[Iterate, float]:
    """One projected step; L is raised where the gradient shows it to be below the curvature."""
    while True:
        B = project(now.Y - now.gradient / L)
        uphill = float(np.vdot(now.Y - B, B - now.B)) > 0.0
        if accelerated and not uphill:
            momentum = (1.0 + np.sqrt(1.0 + 4.0 * now.momentum**2)) / 2.0
            Y = B + ((now.momentum - 1.0) / momentum) * (B - now.B)
        else:
            momentum, Y = 1.0, B
        value, gradient = where.value_and_gradient(Y)
        move = Y - now.Y
        length = float(np.vdot(move, move))
        curvature = float(np.vdot(gradient - now.gradient, move)) / length if length else 0.0
        too_long = curvature > 1.5 * L
        L = max(L, 1.05 * curvature)
        if not too_long:
            return Iterate(B, Y, value, gradient, momentum), SLACKEN * L


def _guess_curvature(objective: MStepObjective, where: Coordinates) -> float:
    """The Hessian's norm for Gaussian differences: (2 + m)/4 * ||C||^2 / sum_k c_k."""
    moment = symmetrize(where.T.T @ objective.moments.typical.everything @ where.T)
    spread = float(np.linalg.eigvalsh(moment)[-1]) if moment.size else 0.0
    guess = (2.0 + len(moment)) / 4.0 * spread**2 / objective.pair_total
    return float(max(guess, np.finfo(np.float64).tiny))


def _explain(objective: MStepObjective, status: Status, attained: bool, word: str) -> str:
    if status is Status.CERTIFIED:
        return ""
    from ..certificate.cause import scales_differ, why_inaccurate

    if word == OVERFLOWED:
        return (
            "Numbers overflow in the units of the features: multiply X by a constant, and state "
            "the penalties in that unit."
        )
    if status is Status.ROUNDING_LIMIT:
        return "Rounding errors hide the rest of the gap: it cannot be proved to be smaller."
    if status is Status.INACCURATE:
        return f"Rounding errors hide the rest of the gap. {why_inaccurate(objective)}"
    if not attained:
        return "The optimum is not attained: the objective falls for ever. Use trace_weight > 0."
    if status is Status.INTERRUPTED:
        return "It was stopped from outside, at the best metric so far."
    if status is Status.TIME_LIMIT:
        return "The time was up: raise time_limit, or allow a larger gap."
    cure = ", or standardize the features" if scales_differ(objective.pairs.points) else ""
    return f"Allow more iterations, or a larger gap{cure}."
