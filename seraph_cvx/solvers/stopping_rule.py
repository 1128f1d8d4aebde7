"""Where a first-order method stands, and when it may stop."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from ..certificate import Certificate, certify_factor, nominal_gap
from ..certificate.certificate import Anchors
from ..model.m_step_objective import MStepObjective
from ..model.pair_program import PairProgram
from ..numerics.checks import FloatArray
from ..numerics.psd_cone import factor, symmetrize


@dataclass
class Coordinates:
    """The program for B, where A = T B T' and B = inverse A inverse'; it counts its evaluations."""

    program: PairProgram
    T: FloatArray
    inverse: FloatArray
    evaluations: int = 0

    def value_and_gradient(self, B: FloatArray) -> tuple[float, FloatArray]:
        """The objective f and its gradient with respect to B."""
        self.evaluations += 1
        return self.program.value_and_gradient(B)

    def value(self, B: FloatArray) -> float:
        """The objective f at B."""
        self.evaluations += 1
        return self.program.value(B)

    def factor(self, B: FloatArray) -> FloatArray:
        """A factor F of the metric: A = T B T' = FF'."""
        return np.asarray(self.T @ factor(B).T)

    def metric(self, B: FloatArray) -> FloatArray:
        """The metric A = FF': so formed it is PSD to rounding in every unit of the features."""
        F = self.factor(B)
        return symmetrize(F @ F.T)


@dataclass
class Iterate:
    """A point B, the point Y that the next step starts from, f and its gradient at Y."""

    B: FloatArray
    Y: FloatArray
    value: float
    gradient: FloatArray
    momentum: float = 1.0

    @classmethod
    def at(cls, where: Coordinates, B: FloatArray) -> Iterate:
        """Start at B, without momentum."""
        return cls(B, B, *where.value_and_gradient(B))


MARGIN = 0.5
"""An iterate is certified where the gap that the free bound shows is below this share of the one
asked for."""

MOST_RETRIES = 3
"""What a certificate allows for rounding may need a smaller gap: the share shrinks tenfold so often
before the gap counts as being as small as rounding lets it be proved."""

PATIENCE = 8
"""How many looks later that is decided, where the smaller gap does not come."""


class StoppingRule:
    """Looks at the free lower bound of an iterate, and certifies when that is promising."""

    def __init__(
        self, objective: MStepObjective, where: Coordinates, tol: float, start_value: float
    ) -> None:
        self.objective = objective
        self.start_value = start_value
        self.where = where
        self.tol = tol
        self.anchors = Anchors.of(objective)
        self.has_free_bound = (
            self.anchors.basis is not None or self.anchors.regularizer_basis is not None
        )
        self.to_white = where.inverse @ objective.basis.matrix
        self.bound = -np.inf
        self.margin = MARGIN
        self.retries = self.looks = 0
        self.certificate: Certificate | None = None
        self.seconds = 0.0

    def accepts(self, now: Iterate) -> bool:
        """Whether the certified relative gap at now.B is within tol.

        Or as small as rounding lets it be. A point worse than the start is never accepted.
        """
        clock = time.perf_counter()
        if self._is_promising(now):
            verdict = self._certifies(now)
        else:
            self.looks += 1
            verdict = self.retries > 0 and self.looks >= PATIENCE
        self.seconds += time.perf_counter() - clock
        return verdict

    def _is_promising(self, now: Iterate) -> bool:
        """Whether the lower bound that f and its gradient at now.Y give for nothing is near f.

        Where M is singular to rounding there is none, and only a certificate can tell.
        """
        gradient = symmetrize(self.to_white.T @ now.gradient @ self.to_white)
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
        """Whether the gap is proved, or all that is left of it is the allowance for rounding."""
        L = self.where.factor(now.B)
        certificate = self.look_at(L)
        if certificate.relative_gap <= self.tol:
            return True
        if not self.has_free_bound:
            return False
        nominal = nominal_gap(self.objective, L)
        if nominal > MARGIN * self.tol:
            return False
        if certificate.relative_gap - nominal > self.tol or self.retries == MOST_RETRIES:
            return True
        self.retries, self.looks = self.retries + 1, 0
        self.margin *= 0.1
        return False

    def look_at(self, L: FloatArray) -> Certificate:
        """The certificate of LL', kept if it is the best so far."""
        certificate = certify_factor(self.objective, L, self.tol)
        if self.certificate is None or certificate.relative_gap < self.certificate.relative_gap:
            self.certificate = certificate
        return certificate

    def gap_estimate(self, value: float) -> float:
        """The relative gap of `value` to the best lower bound so far."""
        return float((value - self.bound) / max(1.0, abs(value)))
