"""Newton's method on the factor L of B = LL': the last digits of an M-step, in a few steps.

Near the optimum the rank rho of the metric no longer changes, and on matrices of that rank f(LL')
is smooth and unconstrained. A damped Newton step (Levenberg and Marquardt's, since L is unique
only up to a rotation) converges quadratically there. The rank adapts: a column that fades is
dropped, and where the gradient still has a negative eigenvalue, its eigenvector is a new column.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from ..pairs import FloatArray
from .referee import Coordinates, Iterate, Referee

MAX_STEPS = 50
MAX_UNKNOWNS = 1_500
"""Entries of L up to which the Hessian is formed."""

MAX_RANK = 20
"""A Hessian takes rho(rho + 1)/2 sweeps: beyond this rank first-order steps are cheaper."""

NEGLIGIBLE = 1e-2
"""Eigenvalues of the start below this share of the largest are left out at first."""


@dataclass
class _Factor:
    """L, with f and its gradient at LL'."""

    L: FloatArray
    value: float
    gradient: FloatArray

    @classmethod
    def at(cls, where: Coordinates, L: FloatArray) -> _Factor:
        return cls(L, *where.value_and_gradient(L @ L.T))

    @property
    def slope(self) -> FloatArray:
        """Of L -> f(LL')."""
        return 2.0 * self.gradient @ self.L

    def iterate(self) -> Iterate:
        B = self.L @ self.L.T
        return Iterate(B, B, self.value, self.gradient)


def newton_on_face(
    where: Coordinates, B: FloatArray, referee: Referee
) -> tuple[Iterate, bool, int]:
    """L <- L - (Hessian + damping)^{-1} slope, from B = LL' until the referee accepts.

    Returns
    -------
    iterate, accepted, steps
        Not accepted where the rank is too large for a Hessian or no step helps any more; the
        iterate is then the best point found.
    """
    now = _Factor.at(where, _leading_factor(B))
    damping = 1e-3
    for step in range(MAX_STEPS):
        found = now.iterate()
        if referee.accepts(found):
            return found, True, step
        m, rho = now.L.shape
        if rho == 0 or rho > MAX_RANK or m * rho > MAX_UNKNOWNS:
            break
        if _is_stationary(now, referee):
            longer = _add_column(where, now)
            if longer is None:
                break
            now = longer
            continue
        moved = _damped_step(where, now, damping)
        if moved is None:
            break
        now, damping = moved
        now = _drop_faded_column(where, now)
    return now.iterate(), False, step


def _leading_factor(B: FloatArray) -> FloatArray:
    eigenvalues, vectors = np.linalg.eigh(B)
    kept = eigenvalues > NEGLIGIBLE * max(float(eigenvalues[-1]), 0.0)
    return np.asarray(vectors[:, kept] * np.sqrt(eigenvalues[kept]))


def _is_stationary(now: _Factor, referee: Referee) -> bool:
    """Whether what is left of the gap lies off the face, in a negative eigenvalue of g."""
    on_face = float(np.linalg.norm(now.slope) * np.linalg.norm(now.L)) / max(1.0, abs(now.value))
    return on_face < 0.1 * referee.gap_estimate(now.value)


def _damped_step(where: Coordinates, now: _Factor, damping: float) -> tuple[_Factor, float] | None:
    """The first step, from little damping to much, that lowers f (or the slope, at rounding)."""
    hessian = where.factor_hessian(now.L, now.gradient)
    size = float(np.trace(hessian)) / len(hessian)
    identity = np.eye(len(hessian))
    slope = now.slope
    rounding = 1e-12 * abs(now.value)
    for _ in range(30):
        try:
            system = cho_factor(hessian + damping * size * identity)
        except LinAlgError:
            damping *= 10.0
            continue
        new = _Factor.at(where, now.L - cho_solve(system, slope.ravel()).reshape(now.L.shape))
        flatter = np.linalg.norm(new.slope) < np.linalg.norm(slope)
        if new.value < now.value - rounding or (new.value <= now.value + rounding and flatter):
            return new, max(damping / 10.0, 1e-13)
        damping *= 10.0
    return None


def _add_column(where: Coordinates, now: _Factor) -> _Factor | None:
    """A step into the cone along the most negative eigenvalue of the gradient, if it has one."""
    eigenvalues, vectors = np.linalg.eigh(now.gradient)
    if eigenvalues[0] >= 0.0:
        return None
    length = 0.3 * float(np.linalg.norm(now.L))
    for _ in range(20):
        new = _Factor.at(where, np.hstack([now.L, length * vectors[:, :1]]))
        if new.value < now.value:
            return new
        length /= 3.0
    return None


def _drop_faded_column(where: Coordinates, now: _Factor) -> _Factor:
    """Without the smallest axis of L, where f does not miss it."""
    _, rotation = np.linalg.eigh(now.L.T @ now.L)
    rotated = now.L @ rotation  # columns orthogonal, the shortest first; LL' is the same
    lengths = np.sum(np.square(rotated), axis=0)
    if rotated.shape[1] < 2 or lengths[0] > 1e-6 * lengths[-1]:
        return now
    shorter = _Factor.at(where, rotated[:, 1:])
    return shorter if shorter.value <= now.value + 1e-9 * abs(now.value) else now
