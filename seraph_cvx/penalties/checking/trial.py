"""A penalty with the matrices that it is tested at, and what counts as equal there."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from ...numerics.checks import FloatArray
from ..penalty import Penalty
from .matrices import SampleMatrices, sample_multipliers

TOLERANCE = 1e-6
"""Numbers that differ by less than this share of their size count as equal."""

ROUNDING = 1e-13
"""What a difference of two matrices may be off by, relative to these."""


@dataclass
class Trial:
    """A block with the matrices that it is tested at."""

    block: Penalty
    n_features: int
    rng: np.random.Generator
    drawn: SampleMatrices
    values: list[float] = field(init=False)
    multipliers: list[tuple[FloatArray, float]] = field(init=False)
    typical: float = field(init=False)
    reach: float = field(init=False)

    def __post_init__(self) -> None:
        self.values = [float(self.block.value(A)) for A in self.drawn.inside]
        self.multipliers = sample_multipliers(self.block, self.drawn, self.rng)
        self.typical = float(np.median(np.abs(self.values))) if self.values else 0.0
        norms_inside = [0.0, *(float(np.linalg.norm(A)) for A in self.drawn.inside)]
        most = 100.0 * float(np.median(norms_inside))
        self.reach = max(norm for norm in norms_inside if norm <= most)

    def is_above(self, left: float, right: float, *sizes: float) -> bool:
        """Whether left >= right but for rounding, given the sizes of what was added up."""
        if math.isinf(left) or math.isinf(right):
            return left >= right
        size = self.typical + abs(left) + abs(right) + sum(map(abs, sizes))
        return left >= right - TOLERANCE * size

    def is_equal(self, left: float, right: float, *sizes: float) -> bool:
        """Whether left = right but for rounding."""
        return self.is_above(left, right, *sizes) and self.is_above(right, left, *sizes)


def off_fenchel(trial: Trial, A: FloatArray, Z: FloatArray, size: float = 0.0) -> str:
    """The numbers where P(A) + P*(Z) is not <Z, A>; empty where it is.

    Z may be a difference of matrices of a `size`, and then rounded by a share of that.
    """
    if float(np.linalg.norm(Z)) <= ROUNDING * size:
        Z = np.zeros_like(Z)
    value, conjugate = trial.block.value(A), trial.block.conjugate(Z)
    if not math.isfinite(conjugate):  # perhaps by rounding alone
        share = 1e-9 + ROUNDING * size / max(float(np.max(np.abs(Z))), 1e-300)
        conjugate = trial.block.conjugate((1.0 - min(share, 0.1)) * Z)
    inner, noise = float(np.sum(Z * A)), ROUNDING / TOLERANCE * size * trial.reach
    if trial.is_equal(value + conjugate, inner, value, conjugate, norms(Z, A), noise):
        return ""
    return f"P(A) + P*(Z) = {value:.9g} + {conjugate:.9g} is not <Z, A> = {inner:.9g}"


def couples(trial: Trial) -> list[tuple[FloatArray, float, FloatArray, float]]:
    """Pairs of matrices of the domain, with their values."""
    inside, values = trial.drawn.inside, trial.values
    n = len(inside)
    drawn = [tuple(trial.rng.integers(0, n, size=2)) for _ in range(4 * n)]
    drawn += [(i, (i + 1) % n) for i in range(n)]
    return [(inside[i], values[i], inside[j], values[j]) for i, j in drawn if i != j]


def norms(Z: FloatArray, A: FloatArray) -> float:
    """The product of two Frobenius norms, which bounds |<Z, A>|."""
    return float(np.linalg.norm(Z) * np.linalg.norm(A))
