"""Newton's method on the weights of the features, for metrics that are diagonal.

Over w >= 0 the function w -> Phi(Diag(w)) + sum_j P_j(Diag(w)) has no matrix in it. A step is made
on the weights that are free to move, by conjugate gradients, and cut off at zero (Bertsekas). The
weights are scaled so that the second moment of the pairs plus R has a unit diagonal.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..model.pair_program import PairProgram, WeightsPoint
from ..model.penalized_program import Term
from ..numerics.checks import FloatArray

MOST_PRODUCTS = 40
"""Products with second derivatives in one step, at most."""

EXACTNESS = 0.1
"""Conjugate gradients end where the residual is this share of the slope, and less near the end."""

LEAST_FALL = 1e-4
"""A step is taken if the function falls by this share of what the slope promises."""

FLAT = 1e-13
"""A change of the function below this share of it is rounding."""

SHARE = 0.1
"""The share of the tolerance that the slope may be worth at the end."""

MOST_HALVINGS = 40
"""How often a step is halved until the function falls."""


@dataclass
class WeightsSearch:
    """A descent on the weights of the features.

    Attributes
    ----------
    program : PairProgram
        Phi in the coordinates of the data.
    scale : (m,) array
        w = z / scale.
    terms : sequence of callables
        Functions of the metric that are added.
    tol : float
        What the slope may be worth at the end, relative to the value.
    max_steps : int
    deadline : float
        On the clock of `time.perf_counter`.
    """

    program: PairProgram
    scale: FloatArray
    terms: Sequence[Term]
    tol: float
    max_steps: int
    deadline: float
    steps: int = field(default=0, init=False)
    passes: int = field(default=0, init=False)

    @property
    def is_over(self) -> bool:
        """Whether all steps are made, or the time is up."""
        return self.steps >= self.max_steps or self._is_late()

    def _is_late(self) -> bool:
        return time.perf_counter() >= self.deadline

    def run(self, w: FloatArray) -> FloatArray:
        """Descend from the weights w to the least value over w >= 0, and return the weights."""
        z = w * self.scale
        now = self._at(z)
        while not self.is_over:
            is_free = (z > 0.0) | (now.gradient < 0.0)
            slope = np.where(is_free, now.gradient, 0.0)
            worth = float(np.abs(slope) @ np.where(z > 0.0, z, self._typical(z)))
            if worth <= SHARE * self.tol * max(1.0, abs(now.value)):
                break
            moved = self._step(z, now, is_free, slope)
            if moved is None:
                break
            z, now = moved
        return np.asarray(z / self.scale)

    def _step(
        self, z: FloatArray, now: WeightsPoint, is_free: NDArray[np.bool_], slope: FloatArray
    ) -> tuple[FloatArray, WeightsPoint] | None:
        """A Newton step on the free weights, shortened until the function falls; or None."""
        self.steps += 1
        direction = _conjugate_gradients(now.bent, slope, is_free, self._is_late)
        length = 1.0
        for _ in range(MOST_HALVINGS):
            new_z = np.maximum(z + length * direction, 0.0)
            promised = -float(slope @ (new_z - z))
            new = self._at(new_z)
            rounding = FLAT * max(1.0, abs(now.value))
            if new.value <= now.value - LEAST_FALL * max(promised, 0.0) + rounding:
                return None if np.array_equal(new_z, z) else (new_z, new)
            if self._is_late():
                break
            length *= 0.5
        return None

    def _at(self, z: FloatArray) -> WeightsPoint:
        """The function at w = z / scale, with derivatives with respect to z."""
        self.passes += 1
        w = z / self.scale
        point = self.program.at_weights(w)
        metric = np.diag(w)
        terms = [term(metric) for term in self.terms]
        gradient = point.gradient + sum(np.diag(term.gradient) for term in terms)

        def bent(d: FloatArray) -> FloatArray:
            along = d / self.scale
            more = sum(np.diag(term.bend(np.diag(along))) for term in terms)
            return np.asarray((point.bent(along) + more) / self.scale)

        value = point.value + sum(term.value for term in terms)
        return WeightsPoint(value, np.asarray(gradient / self.scale), bent)

    def _typical(self, z: FloatArray) -> float:
        """The size of a weight that starts from zero, if it does."""
        return self.program.reach / len(z)


def _conjugate_gradients(
    bent: Callable[[FloatArray], FloatArray],
    slope: FloatArray,
    is_free: NDArray[np.bool_],
    is_late: Callable[[], bool],
) -> FloatArray:
    """Solve H d = -slope on the free weights, roughly."""
    size = float(np.linalg.norm(slope))
    enough = size * min(EXACTNESS, size**0.5)
    step, residual = np.zeros_like(slope), -slope
    direction, square = residual, float(residual @ residual)
    for _ in range(MOST_PRODUCTS):
        along = np.where(is_free, bent(direction), 0.0)
        curvature = float(direction @ along)
        if not curvature > 0.0:
            return direction if not np.any(step) else step
        length = square / curvature
        step, residual = step + length * direction, residual - length * along
        last, square = square, float(residual @ residual)
        if square**0.5 <= enough or is_late():
            break
        direction = residual + (square / last) * direction
    return step
