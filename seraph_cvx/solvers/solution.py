"""What an M-step solver returns, with the certificate that judges it; this package's solvers."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..certificate import Certificate, certify
from ..engine.distances import Factor
from ..model.m_step_objective import MStepObjective
from ..numerics.checks import FloatArray
from ..numerics.psd_cone import project, symmetrize
from ..pairs.data_warnings import SURE_SPREADS, describe_far_values
from .newton import (
    FLAT,
    OVERFLOWED,
    STALLED,
    STOPPED,
    SUBSAMPLE_TOL,
    SolverRun,
    Watch,
    newton,
    rough_factor,
    subsampled_objective,
)


class Status(StrEnum):
    """How a fit ended, judged by the certificate; the solver's own status is `solver_status`.

    "certified" is a duality gap within tolerance and nothing else. "stationary" is how the descent
    on (7) ends: (7) is not convex, so there is no such gap, but its gradient is within tolerance.
    "rounding_limit" is a gap above the tolerance but below 1e-6 that cannot be proved to be smaller
    in double precision: it is the best a solver can do, and not a failure. "inaccurate" is a larger
    gap. "time_limit" and "interrupted" (by Ctrl-C or a callback) end with the best metric so far.

    Examples
    --------
    >>> from seraph_cvx import MStepObjective, PairSet, Status, solve_m_step
    >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
    >>> status = solve_m_step(MStepObjective(pairs)).status
    >>> status is Status.CERTIFIED, status == "certified"
    (True, True)
    >>> [status.value for status in Status if status.reached_tolerance]
    ['certified', 'stationary', 'rounding_limit']
    """

    CERTIFIED = "certified"
    STATIONARY = "stationary"
    ROUNDING_LIMIT = "rounding_limit"
    INACCURATE = "inaccurate"
    ITERATION_LIMIT = "iteration_limit"
    TIME_LIMIT = "time_limit"
    INTERRUPTED = "interrupted"
    FAILED = "failed"

    @property
    def reached_tolerance(self) -> bool:
        """Whether a fit reached its tolerance, or came as close to it as rounding allows."""
        return self in (Status.CERTIFIED, Status.STATIONARY, Status.ROUNDING_LIMIT)


ROUNDING_GAP = 1e-6
"""A relative gap up to this that only rounding keeps open is no failure."""


class OptimumNotAttained(ValueError):
    """The objective has an infimum but no minimizer: it decreases forever along a direction.

    Attributes
    ----------
    direction : (m,) array
        A unit vector u: for every A, f(A + t uu') decreases as t grows.
    pair : (int, int)
        Of the labeled and unlabeled pairs that count as dissimilar, the one that it stretches most.

    Examples
    --------
    >>> import numpy as np
    >>> from seraph_cvx import MStepObjective, OptimumNotAttained, PairSet, solve_m_step
    >>> pairs = PairSet.from_labels([[0.0, 0.0], [0.0, 1.0], [2.0, 0.0]], [0, 0, 1])
    >>> try:  # nothing keeps the first feature's weight from growing
    ...     solve_m_step(MStepObjective(pairs, trace_weight=0.0))
    ... except OptimumNotAttained as error:
    ...     print(np.abs(error.direction).round(6))
    [1. 0.]
    """

    def __init__(self, message: str, direction: FloatArray, pair: tuple[int, int]) -> None:
        super().__init__(message)
        self.direction = direction
        self.pair = pair


@dataclass(frozen=True, eq=False)
class MStepSolution:
    """A metric, its value, its certificate, and how it was found.

    Attributes
    ----------
    found : (m, m) PSD array, Factor or None
        What the solver found; `metric` is formed from it when it is read.
    metric : (m, m) PSD array or None
        None only where the solver returned nothing usable (`status` failed).
    value : float
        f(metric).
    certificate : Certificate or None
        The duality gap at `metric`, computed by this package and never by the solver.
    status : Status
        certified, rounding_limit, inaccurate, iteration_limit, time_limit, interrupted or failed.
    solver, solver_status : str
        The solver, and the status that it reported.
    iterations : int
    evaluations : int
        Passes over the pairs for f and its gradient, if the method counts them; products with
        second derivatives are not included.
    seconds : float
        The whole time: compilation, solution and certificate.
    solver_seconds, compile_seconds : float
        Spent inside the solver, and in stating and canonicalizing the problem for it.
    certificate_seconds : float
        Spent on certificates while a solver of this package ran.
    psd_violation : float
        Minus the smallest eigenvalue of the solver's raw matrix, relative to the largest; 0 if PSD.
    message : str
        What went wrong, if anything did, and the remedy.
    """

    found: FloatArray | Factor | None
    value: float
    certificate: Certificate | None
    status: Status
    solver: str
    solver_status: str
    iterations: int
    seconds: float
    solver_seconds: float = 0.0
    compile_seconds: float = 0.0
    certificate_seconds: float = 0.0
    psd_violation: float = 0.0
    evaluations: int = 0
    message: str = ""

    @cached_property
    def metric(self) -> FloatArray | None:
        """The metric as a matrix; None where the solver returned nothing usable."""
        return None if self.found is None else np.asarray(self.found)

    @property
    def relative_gap(self) -> float:
        """The relative gap of the certificate; infinite if there is none."""
        return np.inf if self.certificate is None else self.certificate.relative_gap

    def shortfall(self, tol: float) -> str:
        """A sentence that says what was not reached, and the remedy; empty if it is certified."""
        if self.status is Status.CERTIFIED:
            return ""
        return (
            f"M-step by {self.solver}: {self.status.value} "
            f"(relative gap {self.relative_gap:.2g}, asked for {tol:.2g}; "
            f"the solver said {self.solver_status!r}). {self.message}".rstrip()
        )

    def warn_unless_certified(self, tol: float, stacklevel: int = 1) -> None:
        """Issue a :class:`~seraph_cvx.NotCertified` warning unless the status is certified.

        Parameters
        ----------
        tol : float
            The relative gap that was asked for; the warning quotes it.
        stacklevel : int
            1 blames the line that calls this method, 2 the caller of the function it is in.
        """
        if shortfall := self.shortfall(tol):
            from .not_certified import NotCertified  # it imports scikit-learn

            warnings.warn(shortfall, NotCertified, stacklevel=stacklevel + 1)

    def _repr_html_(self) -> str:
        from ..display.cards import solution_card

        return solution_card(self)


class GradedMatrix(NamedTuple):
    """A solver's matrix projected to the cone, its certificate, and how far it was from the cone.

    The distance is minus the least eigenvalue, relative to the largest; 0 for a PSD matrix.
    """

    metric: FloatArray
    certificate: Certificate
    psd_violation: float


def grade_matrix(objective: MStepObjective, raw: FloatArray) -> GradedMatrix | None:
    """Grade a solver's matrix without asking the solver; None if it is not m x m and finite."""
    m = objective.pairs.n_features
    if raw.shape != (m, m) or not np.all(np.isfinite(raw)):
        return None
    symmetric = symmetrize(raw)
    eigenvalues = np.linalg.eigvalsh(symmetric)
    largest = max(float(np.max(np.abs(eigenvalues))), float(np.finfo(np.float64).tiny))
    metric = project(symmetric)
    certificate = certify(objective, metric)
    if objective.penalties:  # LL' satisfies the constraints
        metric = certificate.metric
    return GradedMatrix(metric, certificate, max(0.0, -float(eigenvalues[0]) / largest))


def require_attained(objective: MStepObjective) -> None:
    """Raise :class:`OptimumNotAttained` where no PSD matrix minimizes f."""
    u = objective.falling_direction
    if u is None:
        return
    along = objective.sums.points @ u  # similar pairs have no length there
    if objective.mu > 0.0:
        pair = np.sort([np.argmin(along), np.argmax(along)])
    else:
        rows = objective.pairs.dissimilar
        pair = rows[int(np.argmax(np.abs(along[rows[:, 0]] - along[rows[:, 1]])))]
    i, j = pair.tolist()
    raise OptimumNotAttained(
        "This M-step has no optimum: along the direction u of this error (its largest entry is "
        f"feature {int(np.argmax(np.abs(u)))}) no similar pair is stretched, but pair ({i}, {j}), "
        "counted as dissimilar, is, so the objective decreases forever as the metric grows "
        "along u. Cure: trace_weight > 0, or more similar pairs; allow_unattained=True returns "
        "the last iterate of a first-order method instead.",
        u,
        (i, j),
    )


def newton_method(
    objective: MStepObjective,
    tol: float = 1e-8,
    max_iter: int = 20_000,
    start: FloatArray | None = None,
    time_limit: float | None = None,
    watch: Watch | None = None,
    start_factor: FloatArray | None = None,
) -> MStepSolution:
    """Minimize by Newton's method on a factor of the metric and, where needed, FISTA after it.

    FISTA is needed where Newton's method does not close the gap, and where no optimum is attained.
    With many points and no `start`, Newton's method begins at the solution for a few of them. With
    `start_factor`, a factor instead of a `start`, the answer is not compared with the start once
    more. With penalties this is the method of multipliers, or another that suits them.
    """
    clock = time.perf_counter()
    deadline = np.inf if time_limit is None else clock + time_limit
    if objective.penalties:
        from .multipliers import solve_penalized

        if start_factor is not None:
            start = symmetrize(start_factor @ start_factor.T)
        run = solve_penalized(objective, tol, max_iter, start, deadline, watch)
        return _solution(objective, run, "newton", tol, start, clock, deadline=deadline)
    steps, first, is_over = 0, start, False
    if objective.attains_optimum:
        few = subsampled_objective(objective) if start is start_factor is None else None
        if few is not None:
            start_factor = rough_factor(few, SUBSAMPLE_TOL, None, None, deadline)[0]
        run = newton(objective, tol, max_iter, start, deadline, watch, start_factor)
        steps, is_over = run.steps, run.is_converged or run.solver_status == STOPPED
        first = None if is_over else run.certificate.metric
    if not is_over:
        run = _gradient_steps(
            objective, True, tol, max(1, max_iter - steps), first, deadline, watch
        )
    return _solution(objective, run, "newton", tol, start, clock, deadline=deadline)


def gradient_method(
    name: str,
    objective: MStepObjective,
    tol: float = 1e-8,
    max_iter: int = 20_000,
    start: FloatArray | None = None,
    time_limit: float | None = None,
    watch: Watch | None = None,
) -> MStepSolution:
    """Minimize by projected gradient steps alone: "fista", or "projected-gradient" as in (11).

    FISTA is B <- P(Y - grad f(Y) / L), Y = B + momentum, with A = T B T'. Whitening
    (T' (sum_k c_k v_k v_k') T = I) frees it from the scale of the features and from directions in
    which the points do not differ. The paper's method has neither momentum nor whitening:
    A <- P(A - grad f(A) / L), from A = 0 or from `start`.
    """
    if objective.penalties:
        raise ValueError(
            f"{name} takes no penalties but the trace penalty and the manifold term: "
            f'use solver="newton" or a conic solver for {list(objective.penalties)}.'
        )
    accelerated = name == "fista"
    if not accelerated and np.trace(objective.pair_moment) > 1e150:  # its square overflows
        raise ValueError(
            "projected-gradient works in the units of the features, and their fourth powers "
            'overflow: divide X by a constant, or use solver="newton", which is free of units.'
        )
    clock = time.perf_counter()
    deadline = np.inf if time_limit is None else clock + time_limit
    run = _gradient_steps(objective, accelerated, tol, max_iter, start, deadline, watch)
    return _solution(objective, run, name, tol, start, clock, deadline=deadline)


def _gradient_steps(
    objective: MStepObjective,
    accelerated: bool,
    tol: float,
    max_iter: int,
    start: FloatArray | None,
    deadline: float,
    watch: Watch | None,
) -> SolverRun:
    """FISTA in whitened coordinates where `accelerated`, else plain steps in those of the data."""
    from .gradient_steps import Coordinates, minimize_by_gradient_steps

    if accelerated:
        basis = objective.basis
        where = Coordinates(objective.whitened_program, basis.matrix, basis.inverse)
    else:
        identity = np.eye(objective.pairs.n_features)
        where = Coordinates(objective.program, identity, identity)
    return minimize_by_gradient_steps(
        objective, where, tol, max_iter, start, deadline, accelerated=accelerated, watch=watch
    )


def _solution(
    objective: MStepObjective,
    run: SolverRun,
    name: str,
    tol: float,
    start: FloatArray | None,
    clock: float,
    *,
    deadline: float,
) -> MStepSolution:
    """The point where a method ended, or the start where that is better, with the verdict."""
    certificate, solver_status = run.certificate, run.solver_status
    found: FloatArray | Factor = Factor(certificate.factor) if run.metric is None else run.metric
    if start is not None and run.steps == 0:
        found = start
    elif start is not None and run.decrease < 1e-6:  # else f has clearly fallen
        value = objective.value(np.asarray(found))  # both values by the same formula
        if objective.value(start) < value - FLAT * max(1.0, abs(value)):
            found, certificate = start, certify(objective, start).with_bound_of(certificate)
    now = time.perf_counter()
    attained, gap = objective.attains_optimum, certificate.relative_gap
    status = Status.ITERATION_LIMIT
    if attained and gap <= tol:
        status = Status.CERTIFIED
    elif attained and (run.is_converged or solver_status == STALLED):
        status = Status.ROUNDING_LIMIT if gap <= ROUNDING_GAP else Status.INACCURATE
        solver_status = "gap closed to rounding" if run.is_converged else solver_status
    elif solver_status == STOPPED:
        status = Status.INTERRUPTED
    elif solver_status == OVERFLOWED:
        status = Status.INACCURATE
    elif now >= deadline:
        status, solver_status = Status.TIME_LIMIT, "time limit"
    return MStepSolution(
        found=found,
        value=certificate.primal_value,
        certificate=certificate,
        status=status,
        solver=name,
        solver_status=solver_status,
        iterations=run.steps,
        seconds=now - clock,
        solver_seconds=now - clock,
        evaluations=run.evaluations,
        certificate_seconds=run.certificate_seconds,
        message=""
        if status is Status.CERTIFIED
        else _explain(objective, status, attained, solver_status),
    )


LESS_ROUNDING = (
    "Standardize the features, leave out one of several that say the same, and pairs whose "
    "confidence is tiny beside others, raise trace_weight, or allow a larger gap."
)
"""What to do about rounding errors that no value far out explains."""


def _explain(objective: MStepObjective, status: Status, attained: bool, solver_status: str) -> str:
    """What went wrong with an M-step that is not certified, and the remedy."""
    if solver_status == OVERFLOWED:
        return (
            "Numbers overflow in the units of the features: multiply X by a constant, and state "
            "the penalties in that unit."
        )
    if status is Status.ROUNDING_LIMIT:
        return "Rounding errors hide the rest of the gap: it cannot be proved to be smaller."
    if status is Status.INACCURATE:
        far = describe_far_values(objective.pairs.points, n_spreads=SURE_SPREADS)
        return f"Rounding errors hide the rest of the gap. {far or LESS_ROUNDING}"
    if not attained:
        return "The optimum is not attained: the objective decreases forever. Use trace_weight > 0."
    if status is Status.INTERRUPTED:
        return "It was stopped from outside, at the best metric so far."
    if status is Status.TIME_LIMIT:
        return "The time was up: raise time_limit, or allow a larger gap."
    return "Allow more iterations or a larger gap, or standardize the features."
