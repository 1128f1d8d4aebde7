"""Newton's method on the factor L of a metric LL': Hessian products within a trust region.

On matrices of one rank Phi(LL') is smooth and unconstrained, and a pass over the pairs costs no
more than the rank asks for. No Hessian is formed, but an estimate of it by a few pairs near the
end, as a preconditioner: conjugate gradients find the step, and stop at the edge of the trust
region or where the curvature is negative (Steihaug and Toint). Where the slope is zero the gradient
with respect to the metric decides: if it has a negative eigenvalue, its eigenvector is a new
column; if not, the point is stationary over the whole cone, and optimal where Phi is convex.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
import scipy

from ..certificate import Certificate, certify, certify_factor, nominal_gap
from ..engine.distances import Factor
from ..engine.limit import OutOfTime
from ..engine.moments import WhitenedBasis
from ..model.m_step_objective import MStepObjective
from ..model.pair_program import FactorPoint, PairProgram
from ..model.programs import PenalizedProgram, with_smooth_penalties
from ..numerics.checks import FloatArray
from ..numerics.psd_cone import has_cholesky_factor, symmetrize
from ..pairs.pair_set import PairSet

TOLERANCE_SHARE = 0.3
"""The share of the tolerance that the slope, and a negative eigenvalue, may each be worth."""

CG_ACCURACY = 0.3
"""Conjugate gradients end where the residual is this share of the slope, and less near the end."""

ESTIMATED = 0.02
"""Where second derivatives are estimates, more accurate steps are of no use."""

MOST_FLAT_TRIALS = 3
"""Further trials of a step whose reduction is rounding."""

POOR = 0.3
"""A step that leaves more than this share of the steepness is a poor one."""

NEAR_END = 1e-4
"""Below this steepness conjugate gradients go on for longer, so that a step less is made."""

LEAST_CURVATURE = 0.05
"""The smallest curvature of the preconditioner, as a share of the largest diagonal entry."""

LEAST_SHIFT = 2e-3
"""What is added to the diagonal of an estimated Hessian, as a share of its mean: L and its
rotations have the same metric, so that it is singular."""

WORN = 12
"""An estimate that conjugate gradients needed more products with is made anew for the next step."""

STEEP = 1e-3
"""Above this steepness the first trial of a step is made of rough second derivatives."""

MOST_PRODUCTS = 60
"""Hessian products of a step, at most."""

FIRST_RANK = 8
"""Columns that are added at once, or as many as there are."""

LEFT_DESCENT = 0.5
"""New columns are long enough where no more than this share of their descent is left."""

MOST_LENGTHS = 12
"""Lengths that are tried for new columns."""

FLAT = 1e-13
"""A change of Phi below this share of it is rounding."""

FLATTER = 0.9
"""A step that changes Phi by rounding alone has to shrink the slope by this factor."""

FADED = 3e-3
"""A column whose square is below this share of the longest one's may be left out."""

LEAST_REDUCTION = 1e-3
"""A step is taken if Phi falls by this share of what the step predicted."""

MOST_RETRIES = 3
"""Times the tolerance is divided by 10 if rounding keeps the gap open."""

NEGLIGIBLE = 1e-8
"""Eigenvalues of a start below this share of the largest are left out."""

SUBSAMPLE_SIZE = 400
"""Points of the small M-step; one of less than three times as many is not worth it."""

ROUGH_SIZE = 3_000
"""Points of the M-step that is solved roughly where there are three times as many."""

SUBSAMPLE_TOL = 1e-3
"""The relative gap of the small M-step that a large one starts from."""

AT_ONCE = 15_000
"""Points up to which fused kernels of a GPU pass over all pairs in hardly more time than over few:
most of it goes to launching them."""

STOPPED, OVERFLOWED, STALLED = "stopped from outside", "overflow", "no further progress"
"""The status of a method that its `watch` ended, whose numbers became too large, or that stalled.
"""

Watch: TypeAlias = Callable[[int, float], object]
"""Called with the steps made so far and the value reached; a true answer ends the method there."""


@dataclass
class FactorSearch:
    """A descent over factors of growing rank, until the point is stationary over the cone.

    `tol` is what the slope and the negative eigenvalues may be worth at the end, relative to Phi;
    a step inside the trust region along which Phi falls by no more than `least_fall`, likewise (a
    tenth of it, if the step is poor), is the last one unless the rank has to grow. `deadline` is on
    the clock of `time.perf_counter`.
    """

    program: PairProgram | PenalizedProgram
    tol: float
    max_steps: int = 1_000
    deadline: float = np.inf
    watch: Watch | None = None
    least_fall: float = 0.0
    trusts_estimates: bool = True  # of the gradient, where they say that the rank is enough
    steps: int = field(default=0, init=False)
    passes: int = field(default=0, init=False)
    radius: float = field(default=0.0, init=False)
    level: float = field(default=0.0, init=False)  # no step where the steepness is within it
    is_cut: bool = field(default=False, init=False)  # whether the last step ended at the edge
    start_value: float = field(default=np.nan, init=False)
    estimate: FloatArray | None = field(default=None, init=False)  # Cholesky factor of a Hessian
    is_stopped: bool = field(default=False, init=False)

    def run(self, L: FloatArray, level: float = 0.0) -> FactorPoint:
        """Descend from L to a point that is stationary over the cone, or until no step helps."""
        return deque(self.points(L, level), maxlen=1).pop()  # each holds a pass over the pairs

    def points(self, L: FloatArray, level: float = 0.0) -> Iterator[FactorPoint]:
        """The points of that descent, one after the other; the first is L itself.

        `level` is the steepness down to which the rank does not grow; 0: a share of that at L.
        """
        for current in self._descend(L, level):
            if self.watch is not None and self.watch(self.steps, current.value):
                self.is_stopped = True
            yield current

    def _descend(self, L: FloatArray, level: float) -> Iterator[FactorPoint]:
        current = self._at(L)
        if np.isnan(self.start_value):
            self.start_value = current.value
        yield current
        least = TOLERANCE_SHARE * self.tol
        self.radius = self.radius or _norm(L) or self.program.typical_size**0.5
        self.level = level or max(least, 0.03 * current.steepness)
        while len(L) and not self.is_over:
            try:
                new = self._step(current) if current.steepness > self.level else None
                if new is None and not self.is_over:
                    new = self._increase_rank(current)
            except OutOfTime:
                raise OutOfTime(current.L) from None
            if new is not None:
                fall = (current.value - new.value) / max(1.0, abs(new.value))
                is_poor = new.steepness > POOR * current.steepness
                if fall <= (0.1 if is_poor else 1.0) * self.least_fall and not self.is_cut:
                    self.level = np.inf
                elif np.isinf(self.level):  # the rank has grown
                    self.level = least
                current = new
                yield current
            elif least < current.steepness <= self.level < np.inf:
                self.level = least
            else:  # also where the steepness is no number
                break

    @property
    def is_over(self) -> bool:
        """Whether all steps are made, the time is up, or `watch` wants an end."""
        return self.is_stopped or self.steps >= self.max_steps or self._is_late()

    def _is_late(self) -> bool:
        return time.perf_counter() >= self.deadline

    def _at(self, L: FloatArray) -> FactorPoint:
        self.passes += 1
        return self.program.at(L)

    def _step(self, current: FactorPoint) -> FactorPoint | None:
        """A step that lowers Phi (or, at rounding, the slope); None where there is none."""
        rounding = FLAT * max(1.0, abs(current.value))
        slope_norm = _norm(current.factor_gradient)
        for trial in range(30):
            self.steps += 1
            rough = trial == 0 and current.steepness > STEEP
            step, predicted, at_edge = self._direction(current, rough)
            if not predicted > 0.0:
                return None
            length = _norm(step)
            if rough and predicted > slope_norm * length:  # most of it by negative curvature
                continue
            for candidate in _candidates(current, step, predicted):
                trial_point = self._at(candidate)
                reduction = current.value - trial_point.value
                is_flatter = _norm(trial_point.factor_gradient) < FLATTER * slope_norm
                if predicted < 100.0 * rounding:
                    reduction_ratio = 1.0 if reduction >= -rounding and is_flatter else 0.0
                else:
                    reduction_ratio = reduction / predicted
                if reduction_ratio > LEAST_REDUCTION:
                    break
            if reduction_ratio > 0.75 and at_edge:
                self.radius *= 2.5
            elif reduction_ratio < 0.25:
                self.radius = 0.3 * length
            if reduction_ratio > LEAST_REDUCTION:
                self.is_cut = at_edge
                return trial_point
            is_rounding = predicted < 100.0 * rounding
            is_flat = is_rounding and trial >= MOST_FLAT_TRIALS
            if is_flat or length <= 1e-15 * _norm(current.L) or self.is_over:
                return None
        return None

    def _direction(self, current: FactorPoint, rough: bool) -> tuple[FloatArray, float, bool]:
        """A step of the trust region, the reduction it predicts, whether it ends at the edge."""
        slope, steepness = current.factor_gradient, current.steepness
        goal = 0.3 * TOLERANCE_SHARE * self.tol / steepness
        share = steepness**0.5
        if current.is_estimate(rough):
            share = max(share, ESTIMATED)
        elif steepness <= NEAR_END and current.is_of_all_pairs:
            share = steepness ** (2.0 / 3.0)
        tolerance = _norm(slope) * min(CG_ACCURACY, max(goal, share))
        step, hessian_step = np.zeros_like(slope), np.zeros_like(slope)
        residual = -slope
        solve = self._preconditioner(current)
        direction = solve(residual)
        square = float(np.vdot(residual, direction))
        at_edge = False
        for n_products in range(MOST_PRODUCTS):
            product = current.hessian_product(direction, rough)
            curvature = float(np.vdot(direction, product))
            length = square / curvature if curvature > 0.0 else np.inf
            longest = _to_edge(step, direction, self.radius)
            if not length < longest:
                length, at_edge = longest, True
            step = step + length * direction
            hessian_step = hessian_step + length * product
            if at_edge:
                break
            residual = residual - length * product
            if _norm(residual) <= tolerance or self._is_late():
                break
            if n_products == WORN:
                self.estimate = None
            preconditioned = solve(residual)
            last, square = square, float(np.vdot(residual, preconditioned))
            direction = preconditioned + (square / last) * direction
        predicted = -float(np.vdot(slope, step)) - 0.5 * float(np.vdot(step, hessian_step))
        return step, predicted, at_edge

    def _preconditioner(self, current: FactorPoint) -> Callable[[FloatArray], FloatArray]:
        """The product with about the inverse of the Hessian: near the end, of an estimate of it."""
        shape = current.L.shape
        if current.steepness <= STEEP and isinstance(self.program, PairProgram):
            if self.estimate is None or len(self.estimate) != current.L.size:
                self.estimate = _shifted_factor(current.preconditioner)
            if self.estimate is not None:
                factor = self.estimate, True
                return lambda R: scipy.linalg.cho_solve(factor, R.ravel()).reshape(shape)
        return self._rough_inverse.__matmul__

    @cached_property
    def _rough_inverse(self) -> FloatArray:
        """The inverse (M + t I)^{-1}: off the face, M is most of the second derivatives."""
        M = self.program.recession
        least = LEAST_CURVATURE * float(np.max(np.diag(M), initial=0.0)) or 1.0
        return np.asarray(np.linalg.inv(M + least * np.eye(len(M))))

    def _increase_rank(self, current: FactorPoint) -> FactorPoint | None:
        """Append columns along the most negative eigenvalues of the gradient, if it has such.

        Where an estimate of the gradient has none, that is trusted at first: the certificate
        would show if it was wrong.
        """
        worth = max(TOLERANCE_SHARE * self.tol, current.steepness) * max(1.0, abs(current.value))
        # the size that a metric may have where C + R = I
        negligible = worth / (float(np.vdot(current.L, current.L)) + self.program.typical_size)
        estimate = current.rough_gradient if self.trusts_estimates else None
        if estimate is not None:
            estimate = _off_the_face(current.L, estimate)
            if has_cholesky_factor(estimate + negligible * np.eye(len(estimate))):
                return None
        gradient = _off_the_face(current.L, current.gradient)
        if has_cholesky_factor(gradient + negligible * np.eye(len(gradient))):
            return None
        most = min(max(FIRST_RANK, current.L.shape[1]), len(gradient))
        eigenvalues, vectors = scipy.linalg.eigh(gradient, subset_by_index=(0, most - 1))
        if eigenvalues[0] >= -negligible:
            return None
        chosen = np.flatnonzero(eigenvalues < 0.3 * eigenvalues[0])
        shape = vectors[:, chosen] * np.sqrt(eigenvalues[chosen] / eigenvalues[0])
        descent = float(np.vdot(eigenvalues[chosen], eigenvalues[chosen]) / eigenvalues[0])
        length = self._first_length(current, shape, descent)
        self.steps += 1
        self.is_cut, best = False, None
        for _ in range(MOST_LENGTHS):
            trial_point = self._at(np.hstack([current.L, length * shape]))
            if trial_point.value < (current if best is None else best).value:
                best = trial_point
                new_slope = trial_point.factor_gradient[:, -len(chosen) :]
                if float(np.vdot(new_slope, shape)) / (2.0 * length) >= LEFT_DESCENT * descent:
                    break
                length *= 2.0
            elif best is None:
                length /= 8.0
            else:
                break
            if self._is_late():
                break
        return best

    def _first_length(self, current: FactorPoint, shape: FloatArray, descent: float) -> float:
        """The length of new columns at which Phi would be least, were it quadratic in the metric.

        At most ten times the one that makes a metric of mean squared distance 1 + eta. Where the
        curvature is not positive, that one, or a share of the metric's own.
        """
        typical = math.sqrt(self.program.typical_size) / _norm(shape)
        curvature = current.curvature(shape)
        if curvature > 0.0:
            return min(math.sqrt(-descent / curvature), 10.0 * typical)
        return 0.3 * _norm(current.L) or typical


def _candidates(current: FactorPoint, step: FloatArray, predicted: float) -> Iterator[FloatArray]:
    """Yield L + step without columns that are nearly zero in some rotation; then L + step itself.

    Only if what is lost by leaving them out is small beside the reduction that the step predicts.
    """
    L = current.L + step
    if L.shape[1] > 1:
        squares, rotation = np.linalg.eigh(L.T @ L)
        is_faded = squares < FADED * squares[-1]
        if is_faded[0]:
            faded = L @ rotation[:, is_faded]
            slope = float(np.vdot(current.factor_gradient @ rotation[:, is_faded], faded))
            if current.curvature(faded) - slope <= predicted:
                yield L @ rotation[:, ~is_faded]
    yield L


def _shifted_factor(H: FloatArray | None) -> FloatArray | None:
    """The Cholesky factor of H + t I for a small t that makes it positive definite, if one does."""
    if H is None:
        return None
    mean = float(np.mean(np.diag(H)))
    for shift in (LEAST_SHIFT, 10.0 * LEAST_SHIFT, 100.0 * LEAST_SHIFT):
        try:
            return np.asarray(np.linalg.cholesky(H + shift * mean * np.eye(len(H))))
        except np.linalg.LinAlgError:
            continue
    return None


def _off_the_face(L: FloatArray, gradient: FloatArray) -> FloatArray:
    """The gradient on the directions that are orthogonal to L; zero on those of L."""
    basis = np.linalg.qr(L)[0]
    half = gradient - basis @ (basis.T @ gradient)
    return np.asarray(half - (half @ basis) @ basis.T)


def _norm(matrix: FloatArray) -> float:
    """The Frobenius norm; for small matrices several times faster than NumPy's."""
    return math.sqrt(np.vdot(matrix, matrix))


def _to_edge(step: FloatArray, direction: FloatArray, radius: float) -> float:
    """The t > 0 at which a direction leaves the trust region: |step + t*direction| = radius."""
    a = float(np.vdot(direction, direction))
    b = float(np.vdot(step, direction))
    c = float(np.vdot(step, step)) - radius * radius
    root = math.sqrt(max(b * b - a * c, 0.0))
    return -c / (b + root) if b + root > 0.0 else 0.0


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
    """Minimize an attained f over factors until the certified relative gap is within `tol`."""
    search = FactorSearch(objective.whitened_program, tol, max_iter, deadline, watch)
    L = _start(objective, start, start_factor)
    best = Certificate(np.inf, -np.inf, "")
    seconds = 0.0
    for _ in range(1 + MOST_RETRIES):
        with keeping_factor(objective.basis):
            current = search.run(L, 0.0 if start_factor is None else TOLERANCE_SHARE * search.tol)
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
            break  # the allowance for rounding alone is more than `tol`
        L, search.trusts_estimates = current.L, False
        search.tol *= 0.1
    status = newton_status(best)
    if not is_converged and search.is_stopped:
        status = STOPPED
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


def newton_status(certificate: Certificate) -> str:
    """The status of a method that closed the gap at this certificate."""
    return f"gap closed by Newton's method at rank {certificate.factor.shape[1]}"


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
    factor = subsampled_start(objective, deadline) if start is None else None
    some = subsampled_objective(objective, ROUGH_SIZE) if factor is not None else None
    if some is None:
        return _rough_factor(objective, tol, start, factor, deadline, watch)
    return _rough_factor(some, tol, None, factor, deadline, watch)[0], 0


def subsampled_start(objective: MStepObjective, deadline: float) -> FloatArray | None:
    """A factor of the solution for a few of many points; None where they are few already."""
    few = subsampled_objective(objective)
    return None if few is None else _rough_factor(few, SUBSAMPLE_TOL, None, None, deadline)[0]


def _rough_factor(
    objective: MStepObjective,
    tol: float,
    start: FloatArray | None,
    start_factor: FloatArray | None,
    deadline: float,
    watch: Watch | None = None,
) -> tuple[FloatArray, int]:
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
    return np.asarray(scale * np.eye(len(moment)))


def _start(
    objective: MStepObjective, metric: FloatArray | None, factor: FloatArray | None
) -> FloatArray:
    """A factor of `metric` in whitened coordinates, or `factor` in them; without both no column."""
    if factor is not None:
        return np.asarray(objective.basis.inverse @ factor)
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
    kept = eigenvalues > NEGLIGIBLE * max(float(eigenvalues[-1]), 0.0)
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
    if pairs.n_points <= AT_ONCE and objective.whitened_program.gpu_pairs is not None:
        return None
    others = np.setdiff1d(np.arange(pairs.n_points), involved)
    drawn = np.random.default_rng(0).choice(others, n_points - len(involved), replace=False)
    kept = np.sort(np.concatenate([involved, drawn]))
    number = np.full(pairs.n_points, -1)
    number[kept] = np.arange(len(kept))
    few = PairSet(pairs.points[kept], pairs.labels.renumbered(number), pairs.device_array)
    weight = objective.mu * pairs.n_unlabeled / few.n_unlabeled
    return replace(objective, pairs=few, unlabeled_weight=weight)
