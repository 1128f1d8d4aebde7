"""Newton's method on the factor L of a metric LL': Hessian products within a trust region.

On matrices of one rank Phi(LL') is smooth and unconstrained, and a pass over the pairs costs no
more than the rank asks for. No Hessian is formed, but an estimate of it by a few pairs near the
end, as a preconditioner. A turn of the loop in `FactorSearch.points` is one of two:

- where the slope is not small, a step by conjugate gradients, which stop at the edge of the trust
  region or where the curvature is negative (Steihaug and Toint); columns that it leaves nearly
  zero are dropped;
- where it is, the gradient with respect to the metric decides: if it has negative eigenvalues,
  their eigenvectors are new columns; if not, the point is stationary over the whole cone, and
  optimal where Phi is convex.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
import scipy

from ..certificate import Certificate, certify, certify_factor, nominal_gap
from ..engine.distances import Factor
from ..engine.moments import WhitenedBasis
from ..engine.passes import OutOfTime
from ..model.m_step_objective import MStepObjective, with_smooth_penalties
from ..model.pair_program import FactorPoint, PairProgram, PenalizedProgram
from ..numerics.checks import FloatArray
from ..numerics.psd_cone import has_cholesky_factor, symmetrize
from ..pairs.pair_set import PairSet

TOLERANCE_SHARE = 0.3
"""The share of the tolerance that the slope and a negative eigenvalue may each be worth: together
they leave some for rounding."""

FLAT = 1e-13
"""A change of Phi below this share of it is rounding: of the sum, and of the distances in it."""

STEEP = 1e-3
"""Above this steepness, Hessian products are rough at first and no preconditioner is made. Of 0 to
0.1, 1e-3 and 1e-2 took the least time (1,300 to 3,000 points as in `many_points` of the tests)."""

SUBSAMPLE_SIZE, SUBSAMPLE_TOL = 400, 1e-3
"""Points of the small M-step that a large one starts from, and its gap: sampling moves the optimum
by more, so that 1e-1 to 1e-4 took the same time; 200 points took more, 800 serve fewer M-steps."""

CLOSED = "gap closed by Newton's method at rank {}"
STOPPED, OVERFLOWED, STALLED = "stopped from outside", "overflow", "no further progress"
"""The status of a method that its `watch` ended, whose numbers became too large, or that stalled.
"""

Watch: TypeAlias = Callable[[int, float], object]
"""Called with the steps made so far and the value reached; a true answer ends the method there."""


@dataclass
class FactorSearch:
    """A descent over factors of growing rank, until the point is stationary over the cone.

    `tol` is what the slope and the negative eigenvalues may be worth at the end, relative to Phi;
    a step inside the trust region along which Phi falls by no more than `least_fall`, likewise, is
    the last one unless the rank has to grow. `deadline` is on the clock of `time.perf_counter`.
    """

    program: PairProgram | PenalizedProgram
    tol: float
    max_steps: int = 1_000
    deadline: float = np.inf
    watch: Watch | None = None
    least_fall: float = 0.0
    trusts_estimates: bool = True  # of the gradient, where they say that the rank is enough
    steps: int = 0
    passes: int = 0
    radius: float = 0.0  # of the trust region
    level: float = 0.0  # no step where the steepness is within it
    start_value: float = np.nan
    is_stopped: bool = False
    estimate: FloatArray | None = None  # Cholesky factor of a Hessian

    def run(self, L: FloatArray, level: float = 0.0) -> FactorPoint:
        """Descend from L to a point that is stationary over the cone, or until no step helps."""
        return deque(self.points(L, level), maxlen=1).pop()  # each holds a pass over the pairs

    def points(self, L: FloatArray, level: float = 0.0) -> Iterator[FactorPoint]:
        """The points of that descent, one after the other; the first is L itself.

        `level` is the steepness down to which the rank does not grow; 0: a share of that at L.
        """
        current = None
        try:
            for current in self._descend(L, level):
                if self.watch is not None and self.watch(self.steps, current.value):
                    self.is_stopped = True
                yield current
        except OutOfTime as error:
            raise (error if current is None else OutOfTime(current.L)) from None

    def _descend(self, L: FloatArray, level: float) -> Iterator[FactorPoint]:
        """The method itself: each turn of the loop is a trial step, or looks at the rank."""
        current, rejected = self._at(L), 0
        if np.isnan(self.start_value):
            self.start_value = current.value
        yield current
        goal = TOLERANCE_SHARE * self.tol
        self.radius = self.radius or _norm(L) or self.program.typical_size**0.5
        self.level = level or max(goal, 0.03 * current.steepness)
        while len(L) and not self.is_over:
            if current.steepness > self.level:
                self.steps += 1
                is_rough = not rejected and current.steepness > STEEP
                step, predicted, at_edge = self._direction(current, is_rough)
                candidate = current.L + step
                if not rejected:
                    candidate = _without_faded_columns(current, candidate, predicted)
                trial = self._at(candidate)
                ratio = _reduction_ratio(current, trial, predicted)
                if ratio > 0.75 and at_edge:
                    self.radius *= 2.5
                elif not ratio > 0.25:
                    self.radius = 0.3 * _norm(step)
                if not ratio > 1e-3:
                    rejected += 1
                    # no shorter step helps: all that it could gain is rounding
                    rounding = 100.0 * FLAT * max(1.0, abs(current.value))
                    is_rounding = rejected > 3 and not predicted >= rounding  # or no number
                    if is_rounding or _norm(step) <= 1e-15 * _norm(current.L):
                        self.level = np.inf
                    continue
            else:
                grown = self._with_new_columns(current)
                if grown is None and goal < current.steepness <= self.level < np.inf:
                    self.level = goal
                    continue
                if grown is None:  # stationary over the cone, or no step helps
                    return
                trial, at_edge = grown, False
            fall = (current.value - trial.value) / max(1.0, abs(trial.value))
            if fall <= self.least_fall and not at_edge:
                self.level = np.inf  # the last step, unless the rank grows
            elif np.isinf(self.level):
                self.level = goal
            current, rejected = trial, 0
            yield current

    @property
    def is_over(self) -> bool:
        """Whether all steps are made, the time is up, or `watch` wants an end."""
        is_late = time.perf_counter() >= self.deadline
        return self.is_stopped or self.steps >= self.max_steps or is_late

    def _at(self, L: FloatArray) -> FactorPoint:
        self.passes += 1
        return self.program.at(L)

    def _direction(self, current: FactorPoint, is_rough: bool) -> tuple[FloatArray, float, bool]:
        """A step of the trust region, the reduction it predicts, whether it ends at the edge.

        Conjugate gradients end where the residual is small beside the slope: the smaller, the less
        steep it is here (so Newton's method converges superlinearly), or below the goal.
        """
        slope, steepness = current.factor_gradient, current.steepness
        of_goal = TOLERANCE_SHARE**2 * self.tol / steepness
        tolerance = _norm(slope) * min(0.3, max(of_goal, math.sqrt(steepness)))
        step, hessian_step = np.zeros_like(slope), np.zeros_like(slope)
        residual, at_edge = -slope, False
        solve = self._preconditioner(current)
        direction = solve(residual)
        square = float(np.vdot(residual, direction))
        for _ in range(60):
            product = current.hessian_product(direction, is_rough)
            curvature = float(np.vdot(direction, product))
            length = square / curvature if curvature > 0.0 else np.inf
            # the t > 0 at which |step + t * direction| is the radius
            a, b = float(np.vdot(direction, direction)), float(np.vdot(step, direction))
            c = float(np.vdot(step, step)) - self.radius**2
            root = math.sqrt(max(b * b - a * c, 0.0))
            longest = -c / (b + root) if b + root > 0.0 else 0.0
            if not length < longest:
                length, at_edge = longest, True
            step = step + length * direction
            hessian_step = hessian_step + length * product
            residual = residual - length * product
            is_late = time.perf_counter() >= self.deadline
            if at_edge or is_late or _norm(residual) <= tolerance:
                break
            preconditioned = solve(residual)
            last, square = square, float(np.vdot(residual, preconditioned))
            direction = preconditioned + (square / last) * direction
        predicted = -float(np.vdot(slope, step)) - 0.5 * float(np.vdot(step, hessian_step))
        return step, predicted, at_edge

    def _preconditioner(self, current: FactorPoint) -> Callable[[FloatArray], FloatArray]:
        """The product with about the inverse of the Hessian.

        Near the end, of an estimate of it; else of M + t I, which is most of it off the face.
        """
        shape = current.L.shape
        if current.steepness <= STEEP and isinstance(self.program, PairProgram):
            if self.estimate is None or len(self.estimate) != current.L.size:
                H = self.program.preconditioner(current)
                self.estimate = None if H is None else _shifted_factor(H)
            if self.estimate is not None:
                factor = self.estimate, True
                return lambda R: scipy.linalg.cho_solve(factor, R.ravel()).reshape(shape)
        return self._inverse.__matmul__

    @cached_property
    def _inverse(self) -> FloatArray:
        """The inverse (M + t I)^{-1}, t a twentieth of the largest entry of the diagonal."""
        M = self.program.recession
        least = 0.05 * float(np.max(np.diag(M), initial=0.0)) or 1.0
        return np.asarray(np.linalg.inv(M + least * np.eye(len(M))))

    def _with_new_columns(self, current: FactorPoint) -> FactorPoint | None:
        """Append columns along the most negative eigenvalues of the gradient, if it has such.

        Where an estimate of the gradient has none, that is trusted at first: the certificate
        would show if it was wrong. The columns have the length at which Phi would be least, were
        it quadratic in the metric, or less if Phi rises at that.
        """
        worth = max(TOLERANCE_SHARE * self.tol, current.steepness) * max(1.0, abs(current.value))
        # the size that a metric may have where C + R = I
        negligible = worth / (float(np.vdot(current.L, current.L)) + self.program.typical_size)
        estimate = current.rough_gradient if self.trusts_estimates else None
        least = negligible * np.eye(len(current.L))
        if estimate is not None and has_cholesky_factor(_off_the_face(current.L, estimate) + least):
            return None
        gradient = _off_the_face(current.L, current.gradient)
        if has_cholesky_factor(gradient + least):
            return None
        most = min(max(8, current.L.shape[1]), len(gradient))
        eigenvalues, vectors = scipy.linalg.eigh(gradient, subset_by_index=(0, most - 1))
        if eigenvalues[0] >= -negligible:
            return None
        chosen = eigenvalues < 0.3 * eigenvalues[0]
        columns = vectors[:, chosen] * np.sqrt(eigenvalues[chosen] / eigenvalues[0])
        descent = float(np.vdot(eigenvalues[chosen], eigenvalues[chosen]) / -eigenvalues[0])
        # at most ten times the length that makes a metric of mean squared distance 1 + eta
        longest = 10.0 * math.sqrt(self.program.typical_size) / _norm(columns)
        curvature = current.curvature(columns)
        length = min(math.sqrt(descent / curvature), longest) if curvature > 0.0 else longest
        self.steps += 1
        for _ in range(20):
            trial = self._at(np.hstack([current.L, length * columns]))
            if trial.value < current.value:
                return trial
            if time.perf_counter() >= self.deadline:
                break
            length /= 4.0
        return None


def _without_faded_columns(current: FactorPoint, L: FloatArray, predicted: float) -> FloatArray:
    """The factor L, the point of a step, without columns that are nearly zero in some rotation.

    Only if what is lost by leaving them out is small beside the reduction that the step predicts.
    """
    if L.shape[1] > 1:
        squares, rotation = np.linalg.eigh(L.T @ L)
        is_faded = squares < 3e-3 * squares[-1]
        if is_faded[0]:
            faded = L @ rotation[:, is_faded]
            slope = float(np.vdot(current.factor_gradient @ rotation[:, is_faded], faded))
            if current.curvature(faded) - slope <= predicted:
                return np.asarray(L @ rotation[:, ~is_faded])
    return L


def _reduction_ratio(current: FactorPoint, trial: FactorPoint, predicted: float) -> float:
    """The share of the predicted reduction of Phi that a trial has; of rounding, 0 or 1.

    Where the reduction is rounding, the trial is as good as predicted if its slope is smaller.
    """
    rounding = FLAT * max(1.0, abs(current.value))
    reduction = current.value - trial.value
    if predicted >= 100.0 * rounding:
        return reduction / predicted
    is_flatter = _norm(trial.factor_gradient) < 0.9 * _norm(current.factor_gradient)
    return 1.0 if reduction >= -rounding and is_flatter else 0.0


def _shifted_factor(H: FloatArray) -> FloatArray | None:
    """The Cholesky factor of H + t I for a small t that makes it positive definite, if one does.

    L and its rotations have the same metric, so that H is singular.
    """
    mean = float(np.mean(np.diag(H)))
    for shift in (2e-3, 2e-2, 2e-1):
        with suppress(np.linalg.LinAlgError):
            return np.asarray(np.linalg.cholesky(H + shift * mean * np.eye(len(H))))
    return None


def _off_the_face(L: FloatArray, gradient: FloatArray) -> FloatArray:
    """The gradient on the directions that are orthogonal to L; zero on those of L."""
    basis = np.linalg.qr(L)[0]
    half = gradient - basis @ (basis.T @ gradient)
    return np.asarray(half - (half @ basis) @ basis.T)


def _norm(matrix: FloatArray) -> float:
    """The Frobenius norm; for small matrices several times faster than NumPy's."""
    return math.sqrt(np.vdot(matrix, matrix))


@dataclass(frozen=True)
class SolverRun:
    """The certified point at which a method ended, and what it took.

    `is_converged`: the gap is closed, or all that is left of it is the allowance for rounding.
    `evaluations` are passes over the pairs for f and its slope. `decrease` is by how much f fell
    relative to max(1, |f|), where the method knows it; `metric` the metric, where it is not that
    of the certificate to the last bit.
    """

    certificate: Certificate
    is_converged: bool
    steps: int
    evaluations: int
    certificate_seconds: float
    solver_status: str
    decrease: float = 0.0
    metric: FloatArray | None = None


def newton(
    objective: MStepObjective,
    tol: float,
    max_iter: int,
    start: FloatArray | None = None,
    deadline: float = np.inf,
    watch: Watch | None = None,
    start_factor: FloatArray | None = None,
) -> SolverRun:
    """Minimize an attained f over factors until the certified relative gap is within `tol`.

    Where rounding keeps the gap open, the search goes on with a tenth of its tolerance, three times
    at most, unless the allowance for rounding alone is more than `tol`.
    """
    search = FactorSearch(objective.whitened_program, tol, max_iter, deadline, watch)
    L, seconds = _start(objective, start, start_factor), 0.0
    best = Certificate(np.inf, -np.inf, "")
    level = 0.0 if start_factor is None else TOLERANCE_SHARE * tol
    for _ in range(4):
        with keeping_factor(objective.basis):
            current = search.run(L, level)
        if current.L is not L or not best.factor.size:
            clock = time.perf_counter()
            with keeping_factor(objective.basis, current.L):
                if start is not None and start_factor is None and search.steps == 0:
                    certificate = certify(objective, start, enough=tol)
                else:
                    certificate = certify_factor(objective, objective.basis.matrix @ current.L, tol)
            seconds += time.perf_counter() - clock
            if not best.factor.size or certificate.relative_gap < best.relative_gap:
                best = certificate
        is_converged = best.relative_gap <= tol
        if is_converged or search.is_over:
            break
        nominal = nominal_gap(objective, best.factor)
        is_converged = nominal <= 0.5 * tol
        if is_converged and best.relative_gap - nominal >= tol:
            break
        L, search.trusts_estimates = current.L, False
        search.tol *= 0.1
        level = 0.0 if start_factor is None else TOLERANCE_SHARE * search.tol
    is_stopped = search.is_stopped and not is_converged
    status = STOPPED if is_stopped else CLOSED.format(best.factor.shape[1])
    decrease = (search.start_value - current.value) / max(1.0, abs(current.value))
    return SolverRun(best, is_converged, search.steps, search.passes, seconds, status, decrease)


@contextmanager
def keeping_factor(basis: WhitenedBasis, L: FloatArray | None = None) -> Iterator[None]:
    """A context whose OutOfTime has a factor in the coordinates of the data: L, or its own."""
    try:
        yield
    except OutOfTime as error:
        factor = error.factor if L is None else L
        found = None if factor is None else basis.matrix @ factor
        raise OutOfTime(found) from None


def rough_m_step(
    objective: MStepObjective,
    tol: float,
    start: FloatArray | None = None,
    deadline: float = np.inf,
    watch: Watch | None = None,
) -> tuple[FloatArray, int]:
    """The factor of a metric whose relative gap is roughly `tol`, and the passes that it took.

    Nothing certifies it: it is where another method starts.
    """
    few = subsampled_objective(objective) if start is None else None
    if few is None:
        return rough_factor(objective, tol, start, None, deadline, watch)
    factor = rough_factor(few, SUBSAMPLE_TOL, None, None, deadline)[0]
    some = subsampled_objective(objective, 3_000)
    if some is None:
        return rough_factor(objective, tol, start, factor, deadline, watch)
    return rough_factor(some, tol, None, factor, deadline, watch)[0], 0


def rough_factor(
    objective: MStepObjective,
    tol: float,
    start: FloatArray | None,
    start_factor: FloatArray | None,
    deadline: float,
    watch: Watch | None = None,
) -> tuple[FloatArray, int]:
    """Where Newton's method ends on these pairs, and the passes that it took."""
    if start is None and start_factor is None and objective.penalties:
        start = typical_metric(objective)  # a penalty may be infinite at zero
    program = with_smooth_penalties(objective, objective.whitened_program)
    search = FactorSearch(program, tol, deadline=deadline, watch=watch)
    with keeping_factor(objective.basis):
        L = search.run(_start(objective, start, start_factor)).L
    return objective.basis.matrix @ L, search.passes


def typical_metric(objective: MStepObjective) -> FloatArray:
    """A positive definite metric to start from: its squared distances are 1 + eta on average."""
    moment = objective.pair_moment
    spread = max(float(np.trace(moment)), np.finfo(np.float64).tiny)
    scale = (1.0 + objective.threshold) * objective.pair_total / spread
    return scale * np.eye(len(moment))


def _start(
    objective: MStepObjective, metric: FloatArray | None, factor: FloatArray | None
) -> FloatArray:
    """A factor of `metric` in whitened coordinates, or `factor` in them; without both no column."""
    if factor is not None:
        return objective.basis.inverse @ factor
    if metric is None:
        return np.zeros((len(objective.whitened_program.recession), 0))
    return leading_factor(objective, metric)


def leading_factor(objective: MStepObjective, metric: FloatArray | Factor) -> FloatArray:
    """A factor of `metric` in whitened coordinates, without negligible or negative eigenvalues."""
    inverse = objective.basis.inverse
    if isinstance(metric, Factor):
        B = np.asarray(Factor(inverse @ metric.L))
    else:
        B = symmetrize(inverse @ metric @ inverse.T)
    if not B.size:
        return B
    eigenvalues, vectors = np.linalg.eigh(B)
    kept = eigenvalues > 1e-8 * max(float(eigenvalues[-1]), 0.0)
    return np.asarray(vectors[:, kept] * np.sqrt(eigenvalues[kept]))


def subsampled_objective(
    objective: MStepObjective, n_points: int = SUBSAMPLE_SIZE
) -> MStepObjective | None:
    """The M-step on the unlabeled pairs of `n_points` points, each counted mu * #U / #U' times.

    All points of labeled pairs are kept, the others drawn at random, the same way every time. None
    where it would not pay: few points (or not very many, on a GPU), too many labeled ones, no
    unlabeled pair, or soft labels given one by one.
    """
    pairs = objective.pairs
    involved = pairs.labels.members
    if (
        pairs.n_points < 3 * n_points
        or len(involved) > n_points // 2
        or objective.mu == 0.0
        or objective.soft_labels is not None
    ):
        return None
    # up to 15,000 points, launching the kernels of a GPU takes most of a pass
    if pairs.n_points <= 15_000 and objective.whitened_program.gpu_pairs is not None:
        return None
    others = np.setdiff1d(np.arange(pairs.n_points), involved)
    drawn = np.random.default_rng(0).choice(others, n_points - len(involved), replace=False)
    kept = np.sort(np.concatenate([involved, drawn]))
    number = np.full(pairs.n_points, -1)
    number[kept] = np.arange(len(kept))
    few = PairSet(pairs.points[kept], pairs.labels.renumbered(number), pairs.device_array)
    weight = objective.mu * pairs.n_unlabeled / few.n_unlabeled
    return replace(objective, pairs=few, unlabeled_weight=weight)
