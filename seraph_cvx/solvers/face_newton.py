"""Newton's method on the factor L of B = LL': the last digits of an M-step, in a few steps.

Near the optimum the rank rho of the metric no longer changes, and on matrices of that rank f(LL')
is smooth and unconstrained. A damped Newton step (Levenberg and Marquardt's, since L is unique
only up to a rotation) converges quadratically there. The rank adapts: a column that fades is
dropped, and where the gradient still has a negative eigenvalue, its eigenvector is a new column.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy

from ..numerics.checks import FloatArray
from .stopping_rule import Coordinates, Iterate, StoppingRule

MAX_STEPS = 50
MAX_UNKNOWNS = 1_500
"""Entries of L up to which the Hessian is formed."""

MAX_RANK = 20
"""A Hessian takes rho(rho + 1)/2 sweeps: beyond this rank first-order steps are cheaper."""

CHORD = 0.2
"""A Hessian is used again while each step with it shrinks the slope by this factor."""

NEGLIGIBLE = 1e-2
"""Eigenvalues of the start below this share of the largest are left out at first."""

NEGLIGIBLE_NEAR = 1e-4
"""The same, where the start is the solution of a neighbouring M-step."""


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

    @property
    def steepness(self) -> float:
        """What the slope may be worth, relative to f: |slope| |L| / max(1, |f|)."""
        size = float(np.linalg.norm(self.slope) * np.linalg.norm(self.L))
        return size / max(1.0, abs(self.value))

    def iterate(self) -> Iterate:
        B = self.L @ self.L.T
        return Iterate(B, B, self.value, self.gradient)


def newton_on_face(
    where: Coordinates, now: Iterate, stopping_rule: StoppingRule, is_near: bool = False
) -> tuple[Iterate, bool, int]:
    """L <- L - (Hessian + damping)^{-1} slope, from now.B = LL' until the referee accepts.

    `is_near`: now.B is thought to be near the optimum, its rank included.

    Returns
    -------
    iterate, accepted, steps
        Not accepted where the rank is too large for a Hessian or no step helps any more; the
        iterate is then the best point found.
    """
    if not now.B.size:  # no two points differ
        return now, False, 0
    L = _leading_factor(now.B, NEGLIGIBLE_NEAR if is_near else NEGLIGIBLE)
    if now.Y is now.B and np.allclose(L @ L.T, now.B, rtol=0.0, atol=1e-14 * np.max(np.abs(now.B))):
        here = _Factor(L, now.value, now.gradient)
    else:
        here = _Factor.at(where, L)
    damping = 1e-7 if is_near else 1e-3
    for step in range(MAX_STEPS):
        found = here.iterate()
        if stopping_rule.accepts(found):
            return found, True, step
        m, rho = here.L.shape
        if rho == 0 or rho > MAX_RANK or m * rho > MAX_UNKNOWNS:
            break
        if _is_stationary(here, stopping_rule):
            longer = _add_column(where, here)
            if longer is None:
                break
            here = longer
            continue
        moved = _damped_step(where, here, damping)
        if moved is None:
            break
        shrunk = np.linalg.norm(moved.point.slope) < CHORD * np.linalg.norm(here.slope)
        here, damping = moved.point, moved.damping
        if shrunk:
            here = _chord_steps(where, here, moved.solve, 1.5 * stopping_rule.tol)
        here = _drop_faded_column(where, here)
    return here.iterate(), False, step


def _leading_factor(B: FloatArray, negligible: float) -> FloatArray:
    eigenvalues, vectors = np.linalg.eigh(B)
    kept = eigenvalues > negligible * max(float(eigenvalues[-1]), 0.0)
    return np.asarray(vectors[:, kept] * np.sqrt(eigenvalues[kept]))


def _is_stationary(now: _Factor, stopping_rule: StoppingRule) -> bool:
    """Whether what is left of the gap lies off the face, in a negative eigenvalue of g."""
    return now.steepness < 0.1 * stopping_rule.gap_estimate(now.value)


@dataclass
class _Step:
    """Where a step led, its damping's successor, and the linear system it solved."""

    point: _Factor
    damping: float
    solve: Callable[[FloatArray], FloatArray]


def _damped_step(where: Coordinates, now: _Factor, damping: float) -> _Step | None:
    """The first step, from little damping to much, that lowers f (or the slope, at rounding)."""
    hessian = where.factor_hessian(now.L, now.gradient)
    size = float(np.trace(hessian)) / len(hessian)
    slope = now.slope
    rounding = 1e-12 * abs(now.value)
    for _ in range(30):
        damped = np.array(
            hessian.T, order="F"
        )  # symmetric: the transpose is itself, in LAPACK's order
        damped[np.diag_indices_from(damped)] += damping * size
        cholesky, trouble = scipy.linalg.lapack.dpotrf(damped, overwrite_a=True)
        if trouble:  # not positive definite
            damping *= 10.0
            continue
        solve = partial(_solve, cholesky)
        new = _Factor.at(where, now.L - solve(slope))
        flatter = np.linalg.norm(new.slope) < np.linalg.norm(slope)
        if new.value < now.value - rounding or (new.value <= now.value + rounding and flatter):
            return _Step(new, max(damping / 10.0, 1e-13), solve)
        damping *= 10.0
    return None


def _solve(cholesky: FloatArray, slope: FloatArray) -> FloatArray:
    return np.asarray(scipy.linalg.lapack.dpotrs(cholesky, slope.ravel())[0]).reshape(slope.shape)


def _chord_steps(
    where: Coordinates, now: _Factor, solve: Callable[[FloatArray], FloatArray], enough: float
) -> _Factor:
    """Further steps with the Hessian at hand, each one sweep, while the slope shrinks fast."""
    while now.steepness > enough:
        new = _Factor.at(where, now.L - solve(now.slope))
        shrunk = np.linalg.norm(new.slope) < CHORD * np.linalg.norm(now.slope)
        if new.value > now.value + 1e-12 * abs(now.value) or not shrunk:
            break
        now = new
    return now


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
