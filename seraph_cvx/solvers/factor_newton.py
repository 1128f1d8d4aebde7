"""Newton's method on the factor L of a metric LL', by curvature products and a trust region.

On matrices of one rank Phi(LL') is smooth and unconstrained, and a pass over the pairs costs no
more than the rank asks for. No Hessian is formed: conjugate gradients find the step, and stop at
the edge of the trust region or where the curvature is negative (Steihaug and Toint). Where the
slope is zero the gradient with respect to the metric decides: if it has a negative eigenvalue, its
eigenvector is a new column; if not, the point is stationary over the whole cone, and optimal where
Phi is convex.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol, TypeAlias

import numpy as np
import scipy

from ..model.pair_program import FacePoint
from ..numerics.checks import FloatArray
from ..numerics.psd_cone import has_cholesky_factor

SHARE = 0.3
"""The share of the tolerance that the slope, and a negative eigenvalue, may each be worth."""

EXACTNESS = 0.3
"""Conjugate gradients end where the residual is this share of the slope, and less near the end."""

LEAST_CURVATURE = 0.05
"""The smallest curvature of the preconditioner, as a share of the largest diagonal entry."""

MOST_PRODUCTS = 60
"""Curvature products of a step, at most."""

FIRST_RANK = 8
"""Columns that are added at once, or as many as there are."""

ENOUGH = 0.5
"""New columns are long enough where no more than this share of their descent is left."""

MOST_LENGTHS = 12
"""Lengths that are tried for new columns."""

FLAT = 1e-13
"""A change of Phi below this share of it is rounding."""

FLATTER = 0.9
"""A step that changes Phi by rounding alone has to shrink the slope by this factor."""

FADED = 1e-4
"""A column whose square is below this share of the longest one's is tried to be left out."""

LEAST_GOOD = 1e-3
"""A step is taken if Phi falls by this share of what the step promised."""


Watch: TypeAlias = Callable[[int, float], object]
"""Is told the steps made so far and the value reached; a true answer ends the method there."""


class Minimized(Protocol):
    """A function of metrics that is given at their factors: see `PairProgram`."""

    @property
    def recession(self) -> FloatArray:
        """The matrix M of its linear term, most of the second derivatives off the face."""

    @property
    def reach(self) -> float:
        """The size of a metric of mean squared distance 1 + eta."""

    def at(self, L: FloatArray) -> FacePoint:
        """The function and its slope at a factor L."""


@dataclass
class FaceSearch:
    """A descent on one face after the other.

    Attributes
    ----------
    program : Minimized
    tol : float
        What the slope and the negative eigenvalues may be worth at the end, relative to Phi.
    max_steps : int
    deadline : float
        On the clock of `time.perf_counter`.
    watch : Watch, optional
        Told of every point of the descent.
    """

    program: Minimized
    tol: float
    max_steps: int = 1_000
    deadline: float = np.inf
    watch: Watch | None = None
    steps: int = field(default=0, init=False)
    passes: int = field(default=0, init=False)
    products: int = field(default=0, init=False)
    radius: float = field(default=0.0, init=False)
    level: float = field(default=0.0, init=False)
    start_value: float = field(default=np.nan, init=False)
    is_stopped: bool = field(default=False, init=False)

    def run(self, L: FloatArray) -> FacePoint:
        """Descend from L to a point that is stationary over the cone, or until no step helps."""
        return deque(self.points(L), maxlen=1).pop()  # each holds a pass over the pairs

    def points(self, L: FloatArray, level: float = 0.0) -> Iterator[FacePoint]:
        """The points of that descent, one after the other; the first is L itself.

        `level` is the steepness down to which the rank does not grow; 0: a share of that at L.
        """
        for now in self._walk(L, level):
            if self.watch is not None and self.watch(self.steps, now.value):
                self.is_stopped = True
            yield now

    def _walk(self, L: FloatArray, level: float) -> Iterator[FacePoint]:
        now = self._at(L)
        if np.isnan(self.start_value):
            self.start_value = now.value
        yield now
        self.radius = self.radius or _norm(L) or self.program.reach**0.5
        self.level = level or max(SHARE * self.tol, 0.03 * now.steepness)
        while len(L) and not self.is_over:
            new = self._step(now) if now.steepness > self.level else None
            if new is None and not self.is_over:
                new = self._longer(now)
            if new is not None:
                now = new
                yield now
            elif SHARE * self.tol < now.steepness <= self.level:
                self.level = SHARE * self.tol
            else:  # also where the steepness is no number
                break

    @property
    def is_over(self) -> bool:
        """Whether all steps are made, the time is up, or `watch` wants an end."""
        return self.is_stopped or self.steps >= self.max_steps or self._is_late()

    def _is_late(self) -> bool:
        return time.perf_counter() >= self.deadline

    def _reach(self, now: FacePoint) -> float:
        """The size that a metric may reach where C + R = I: its own, plus `PairProgram.reach`."""
        return float(np.vdot(now.L, now.L)) + self.program.reach

    def _at(self, L: FloatArray) -> FacePoint:
        self.passes += 1
        return self.program.at(L)

    def _step(self, now: FacePoint) -> FacePoint | None:
        """A step that lowers Phi (or, at rounding, the slope); None where there is none."""
        rounding = FLAT * max(1.0, abs(now.value))
        size = _norm(now.slope)
        for _ in range(30):
            self.steps += 1
            step, promised, at_edge = self._direction(now)
            if not promised > 0.0:
                return None
            L = now.L + step
            length = _norm(step)
            for some in _without_faded_columns(L):
                new = self._at(some)
                fall = now.value - new.value
                flatter = _norm(new.slope) < FLATTER * size
                if promised < 100.0 * rounding:
                    good = 1.0 if fall >= -rounding and flatter else 0.0
                else:
                    good = fall / promised
                if good > LEAST_GOOD:
                    break
            if good > 0.75 and at_edge:
                self.radius *= 2.5
            elif good < 0.25:
                self.radius = 0.3 * length
            if good > LEAST_GOOD:
                return new
            if length <= 1e-15 * _norm(now.L) or self.is_over:
                return None
        return None

    def _direction(self, now: FacePoint) -> tuple[FloatArray, float, bool]:
        """A step of the trust region, what it promises, and whether it ends at the edge."""
        slope = now.slope
        size = _norm(slope)
        goal = 0.3 * SHARE * self.tol / now.steepness
        enough = size * min(EXACTNESS, max(goal, now.steepness**0.5))
        step, bent = np.zeros_like(slope), np.zeros_like(slope)
        residual = -slope
        direction = self._preconditioner @ residual
        square = float(np.vdot(residual, direction))
        at_edge = False
        for _ in range(MOST_PRODUCTS):
            self.products += 1
            along = now.bent(direction)
            curvature = float(np.vdot(direction, along))
            length = square / curvature if curvature > 0.0 else np.inf
            reach = _to_edge(step, direction, self.radius)
            if not length < reach:
                length, at_edge = reach, True
            step = step + length * direction
            bent = bent + length * along
            if at_edge:
                break
            residual = residual - length * along
            if _norm(residual) <= enough or self._is_late():
                break
            turned = self._preconditioner @ residual
            last, square = square, float(np.vdot(residual, turned))
            direction = turned + (square / last) * direction
        promised = -float(np.vdot(slope, step)) - 0.5 * float(np.vdot(step, bent))
        return step, promised, at_edge

    @cached_property
    def _preconditioner(self) -> FloatArray:
        """The preconditioner (M + t I)^{-1}: off the face, M is most of the second derivatives."""
        M = self.program.recession
        least = LEAST_CURVATURE * float(np.max(np.diag(M), initial=0.0)) or 1.0
        return np.asarray(np.linalg.inv(M + least * np.eye(len(M))))

    def _longer(self, now: FacePoint) -> FacePoint | None:
        """Append columns along the most negative eigenvalues of the gradient, if it has such."""
        gradient = _off_the_face(now)
        worth = max(SHARE * self.tol, now.steepness) * max(1.0, abs(now.value))
        negligible = worth / self._reach(now)
        if has_cholesky_factor(gradient + negligible * np.eye(len(gradient))):
            return None
        most = min(max(FIRST_RANK, now.L.shape[1]), len(gradient))
        eigenvalues, vectors = scipy.linalg.eigh(gradient, subset_by_index=(0, most - 1))
        if eigenvalues[0] >= -negligible:
            return None
        chosen = np.flatnonzero(eigenvalues < 0.3 * eigenvalues[0])
        shape = vectors[:, chosen] * np.sqrt(eigenvalues[chosen] / eigenvalues[0])
        descent = float(np.vdot(eigenvalues[chosen], eigenvalues[chosen]) / eigenvalues[0])
        length = self._first_length(now, shape, descent)
        self.steps += 1
        best = None
        for _ in range(MOST_LENGTHS):
            new = self._at(np.hstack([now.L, length * shape]))
            if new.value < (now if best is None else best).value:
                best = new
                left = float(np.vdot(new.slope[:, -len(chosen) :], shape)) / (2.0 * length)
                if left >= ENOUGH * descent:
                    break
                length *= 2.0
            elif best is None:
                length /= 8.0
            else:
                break
            if self._is_late():
                break
        return best

    def _first_length(self, now: FacePoint, shape: FloatArray, descent: float) -> float:
        """The length of new columns at which Phi would be least, were it quadratic in the metric.

        At most ten times the one that makes a metric of mean squared distance 1 + eta. Where the
        curvature is not positive, that one, or a share of the metric's own.
        """
        typical = math.sqrt(self.program.reach) / _norm(shape)
        curvature = now.curvature(shape)
        if curvature > 0.0:
            return min(math.sqrt(-descent / curvature), 10.0 * typical)
        return 0.3 * _norm(now.L) or typical


def _without_faded_columns(L: FloatArray) -> Iterator[FloatArray]:
    """Yield L without columns that are nearly zero in some rotation, if any; then L itself."""
    if L.shape[1] > 1:
        squares, rotation = np.linalg.eigh(L.T @ L)
        if squares[0] < FADED * squares[-1]:
            yield L @ rotation[:, squares >= FADED * squares[-1]]
    yield L


def _off_the_face(now: FacePoint) -> FloatArray:
    """The gradient on the directions that are orthogonal to L; zero on those of L."""
    basis = np.linalg.qr(now.L)[0]
    gradient = now.gradient
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
