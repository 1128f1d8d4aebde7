"""What the first-order methods and Newton's method share: where they stand, and who judges it."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from ..anchors import Anchors
from ..certificate import Certificate, certify, is_rounding_all
from ..checks import FloatArray
from ..logistic_program import LogisticProgram
from ..objective import MStepObjective
from ..psd_cone import factor, symmetrise


@dataclass
class Coordinates:
    """The program for B, where A = T B T' and B = inverse A inverse'; it counts its evaluations."""

    program: LogisticProgram
    T: FloatArray
    inverse: FloatArray
    evaluations: int = 0

    def value_and_gradient(self, B: FloatArray) -> tuple[float, FloatArray]:
        """f and its gradient with respect to B."""
        self.evaluations += 1
        return self.program.value_and_gradient(B)

    def value(self, B: FloatArray) -> float:
        """f."""
        self.evaluations += 1
        return self.program.value(B)

    def factor_hessian(self, L: FloatArray, gradient: FloatArray) -> FloatArray:
        """Of L -> f(LL'); counted by the sweeps it takes, where these are over all pairs."""
        rho = L.shape[1]
        if self.program.curvature.is_whole:
            self.evaluations += rho * (rho + 1) // 2
        return self.program.factor_hessian(L, gradient)

    def metric(self, B: FloatArray) -> FloatArray:
        """A = T B T' = FF': so formed it is PSD to rounding in every unit of the features."""
        F = self.T @ factor(B).T
        return symmetrise(F @ F.T)


@dataclass
class Iterate:
    """B, the point Y that the next step starts from, f and its gradient at Y."""

    B: FloatArray
    Y: FloatArray
    value: float
    gradient: FloatArray
    momentum: float = 1.0

    @classmethod
    def at(cls, where: Coordinates, B: FloatArray) -> Iterate:
        """Standing still at B."""
        return cls(B, B, *where.value_and_gradient(B))


class Referee:
    """Looks at the free lower bound of an iterate, and certifies when that is promising."""

    def __init__(
        self, objective: MStepObjective, where: Coordinates, tol: float, start_value: float
    ) -> None:
        self.objective = objective
        self.start_value = start_value
        self.where = where
        self.tol = tol
        self.anchors = Anchors.of(objective, allow_rounding=False)
        self.has_free_bound = (
            self.anchors.basis is not None or self.anchors.regulariser_basis is not None
        )
        self.to_white = where.inverse @ objective.axes.matrix
        self.bound = -np.inf
        self.margin = 0.5
        self.certificate: Certificate | None = None
        self.seconds = 0.0

    def accepts(self, now: Iterate) -> bool:
        """Whether the certified relative gap at now.B is within tol.

        Or as small as rounding lets it be. A point worse than the start is never accepted.
        """
        clock = time.perf_counter()
        verdict = self._is_promising(now) and self._certifies(now)
        self.seconds += time.perf_counter() - clock
        return verdict

    def _is_promising(self, now: Iterate) -> bool:
        """Whether the lower bound that f and its gradient at now.Y give for nothing is near f.

        Where M is singular to rounding there is none, and only a certificate can tell.
        """
        gradient = symmetrise(self.to_white.T @ now.gradient @ self.to_white)
        tangent = now.value - float(np.vdot(now.gradient, now.Y))
        self.bound = max(self.bound, self.anchors.quick_bound(tangent, gradient))
        if now.Y is now.B:
            value = now.value
        elif self.has_free_bound and self.gap_estimate(now.value) > 100.0 * self.tol:
            return False
        else:
            value = self.where.value(now.B)
        near = not self.has_free_bound or self.gap_estimate(value) <= self.margin * self.tol
        return value <= self.start_value and near

    def _certifies(self, now: Iterate) -> bool:
        metric = self.where.metric(now.B)
        self.certificate = certify(self.objective, metric, enough=self.tol)
        self.bound = max(self.bound, self.certificate.dual_value)
        self.margin /= 2.0  # if this was too early, look less soon
        return self.certificate.relative_gap <= self.tol or is_rounding_all(
            self.objective, metric, self.tol / 2.0
        )

    def gap_estimate(self, value: float) -> float:
        """The relative gap of `value` to the best lower bound so far."""
        return float((value - self.bound) / max(1.0, abs(value)))
