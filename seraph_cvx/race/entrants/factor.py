"""Methods on a factor L of the metric, A = LL', whose rank is chosen and checked.

The problem in L is not convex, and no method on it knows the rank of the optimum: one that has too
few columns, or ends at a point that is stationary but not optimal, sees no slope. So each answer is
certified; while the certificate is open and a further column lowers f, columns are added.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.optimize

from ...certificate import certify
from ...model.m_step_objective import MStepObjective
from ...model.pair_program import FacePoint, PairProgram
from ...numerics.checks import FloatArray
from .attempt import Attempt, Entrant
from .listed import require_plain

FIRST_RANK = 4
"""The columns with which a method starts, if there are as many features."""

LEAST_SECONDS = 1e-3
"""The time that a method is told when none is left: some take no zero."""

WORTH = 0.1
"""New columns have to lower f by this share of the tolerance."""


@dataclass(frozen=True)
class FactorRun:
    """What a method returned at one rank: a factor, its word, and whether that claims success."""

    L: FloatArray
    word: str
    claims: bool
    iterations: int = 0
    compile_seconds: float = 0.0


Method = Callable[[FloatArray, float], FactorRun]
"""The type of a method at one rank, method(start, seconds left)."""


def climb(
    objective: MStepObjective,
    tol: float,
    time_limit: float,
    method: Method,
    rank: int = FIRST_RANK,
    largest_rank: int | None = None,
) -> Attempt:
    """Solve an M-step on its factor, with columns added until the certificate says enough.

    Parameters
    ----------
    objective : MStepObjective
        Without penalties.
    tol, time_limit : float
    method : callable
        ``method(start, seconds)`` descends ``objective.whitened_program`` from a factor.
    rank, largest_rank : int
        The columns to start with, and the most there may be; None: as many as features.

    Examples
    --------
    >>> from seraph_cvx import PairSet
    >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
    >>> lbfgs(MStepObjective(pairs), 1e-6, 10.0).claims
    True
    """
    clock = time.perf_counter()
    require_plain(objective)
    program, Z = objective.whitened_program, objective.basis.matrix
    most = min(largest_rank or Z.shape[1], Z.shape[1])
    L: FloatArray | None = first_factor(program, min(rank, most))
    iterations, compiling = 0, 0.0
    while L is not None:
        run = method(L, max(LEAST_SECONDS, time_limit - (time.perf_counter() - clock)))
        iterations, compiling = iterations + run.iterations, compiling + run.compile_seconds
        L = None
        is_late = time.perf_counter() - clock >= time_limit
        if run.L.shape[1] < most and not is_late and np.all(np.isfinite(run.L)):
            factor = Z @ run.L
            if certify(objective, factor @ factor.T).relative_gap > tol:
                L = widened(program.at(run.L), tol, most)
    factor = Z @ run.L
    word = f"{run.word} (rank {run.L.shape[1]} of {Z.shape[1]})"
    solving = time.perf_counter() - clock - compiling
    return Attempt(factor @ factor.T, word, run.claims, iterations, compiling, solving)


def first_factor(program: PairProgram, rank: int) -> FloatArray:
    """A random factor, the same each time, of a metric that separates pairs."""
    rng = np.random.default_rng(0)
    L = rng.standard_normal((len(program.recession), rank))
    return np.asarray(L * (program.reach**0.5 / np.linalg.norm(L)))


def widened(point: FacePoint, tol: float, most: int) -> FloatArray | None:
    """Add columns along negative eigenvalues of the gradient; None if that does not lower f.

    There are at most as many new columns as old ones.
    """
    eigenvalues, vectors = np.linalg.eigh(point.gradient)
    room = min(most - point.L.shape[1], point.L.shape[1])
    chosen = np.flatnonzero(eigenvalues < 0.1 * eigenvalues[0])[:room]
    if eigenvalues[0] >= 0.0 or not len(chosen):
        return None
    shape = vectors[:, chosen] * np.sqrt(eigenvalues[chosen] / eigenvalues[0])
    enough = WORTH * tol * max(1.0, abs(point.value))
    length = float(np.linalg.norm(point.L)) or point.program.reach**0.5
    for _ in range(20):
        L = np.hstack([point.L, length * shape])
        if point.program.value(L @ L.T) < point.value - enough:
            return L
        length /= 2.0
    return None


def slope_tolerance(tol: float, start: FloatArray) -> float:
    """The slope at which a method may stop: times the size of the factor, it is worth `tol`.

    Examples
    --------
    >>> slope_tolerance(1e-3, np.full((2, 2), 5.0))
    0.0001
    """
    return tol / max(1.0, float(np.linalg.norm(start)))


class Descent:
    """The function that a method minimizes: f over what it was at the start, and derivatives."""

    def __init__(self, program: PairProgram, start: FloatArray) -> None:
        self.program, self.shape = program, start.shape
        self.point = program.at(start)
        self.scale = max(1.0, abs(self.point.value))

    def at(self, x: FloatArray) -> FacePoint:
        """The point at a factor, flat or not; the last one is kept."""
        L = np.reshape(x, self.shape)
        if not np.array_equal(L, self.point.L):
            self.point = self.program.at(np.array(L, dtype=np.float64))
        return self.point

    def value(self, x: FloatArray) -> float:
        """The value of the function."""
        return self.at(x).value / self.scale

    def slope(self, x: FloatArray) -> FloatArray:
        """The slope, in the shape of x."""
        return np.reshape(self.at(x).slope / self.scale, np.shape(x))

    def bent(self, x: FloatArray, d: FloatArray) -> FloatArray:
        """How the slope changes along d, in the shape of x."""
        D = np.reshape(d, self.shape)
        return np.reshape(self.at(x).bent(D) / self.scale, np.shape(x))


def lbfgs(
    objective: MStepObjective,
    tol: float,
    time_limit: float,
    options: Mapping[str, Any] | None = None,
) -> Attempt:
    """Solve by scipy's L-BFGS-B on the factor."""
    words = {"ftol": 0.0, "maxiter": 10**6, "maxfun": 10**7}
    return _by_scipy(objective, tol, time_limit, "L-BFGS-B", words | dict(options or {}))


def trust_constr(
    objective: MStepObjective,
    tol: float,
    time_limit: float,
    options: Mapping[str, Any] | None = None,
) -> Attempt:
    """Solve by scipy's trust-constr on the factor, with second derivatives."""
    words = {"xtol": 1e-3 * tol, "maxiter": 10**6}
    return _by_scipy(objective, tol, time_limit, "trust-constr", words | dict(options or {}))


def _by_scipy(
    objective: MStepObjective, tol: float, time_limit: float, name: str, options: dict[str, Any]
) -> Attempt:
    ranks = {key: options.pop(key) for key in ("rank", "largest_rank") if key in options}

    def method(start: FloatArray, seconds: float) -> FactorRun:
        descent = Descent(objective.whitened_program, start)
        deadline = time.perf_counter() + seconds

        def stop_in_time(intermediate_result: Any) -> None:
            if time.perf_counter() > deadline:
                raise StopIteration

        second = {"hessp": descent.bent} if name == "trust-constr" else {}
        found = scipy.optimize.minimize(
            descent.value,
            start.ravel(),
            method=name,
            jac=descent.slope,
            callback=stop_in_time,
            options={"gtol": slope_tolerance(tol, start)} | options,
            **second,
        )
        L = np.reshape(found.x, start.shape)
        return FactorRun(L, str(found.message), _is_success(found, name), int(found.nit))

    return climb(objective, tol, time_limit, method, **ranks)


def _is_success(found: Any, name: str) -> bool:
    """Whether scipy says that the slope is within its tolerance."""
    return int(found.status) == (1 if name == "trust-constr" else 0)


def factor_entrants() -> list[Entrant]:
    """Scipy's two methods on the factor."""
    return [
        Entrant(name, "factor", f"{__name__}:{function}", distribution="scipy")
        for name, function in (("L-BFGS-B", "lbfgs"), ("trust-constr", "trust_constr"))
    ]
