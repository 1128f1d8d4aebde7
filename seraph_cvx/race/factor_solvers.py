"""Methods on a factor L of the metric, A = LL', whose rank is chosen and checked.

The problem in L is not convex, and no method on it knows the rank of the optimum: one that has too
few columns, or ends at a point that is stationary but not optimal, sees a zero gradient. So each
answer is certified; while the certificate is open and a further column lowers f, columns are added.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.optimize

from ..certificate import certify
from ..model.m_step_objective import MStepObjective
from ..model.pair_program import FactorPoint, PairProgram
from ..numerics.checks import FloatArray
from .attempt import Attempt, Entrant
from .formula_solvers import ListedProblem, require_plain

if TYPE_CHECKING:
    import cvxpy as cp

FIRST_RANK = 4
"""The columns with which a method starts, if there are as many features."""

LEAST_SECONDS = 1e-3
"""The time limit of a method when no time is left: some take no zero."""

LEAST_REDUCTION = 0.1
"""New columns have to lower f by this share of the tolerance."""

FEW_ENTRIES = 32
"""Up to this many distinct entries of LL', distances are stated by them: fewer than in VL."""

NONLINEAR: dict[str, tuple[str, tuple[str, ...], str, dict[str, Any]]] = {
    "UNO": (
        *("unopy", ("primal_tolerance", "dual_tolerance"), "time_limit"),
        {"max_iterations": 10**6, "logger": "SILENT"},
    ),
    "IPOPT": ("cyipopt", ("tol",), "max_wall_time", {"max_iter": 10**6, "print_level": 0}),
    "KNITRO": ("knitro", ("opttol", "feastol"), "maxtime_real", {"maxit": 10**6}),
}
"""The nonlinear solvers that CVXPY knows: package, options for tolerance and time, others."""


@dataclass(frozen=True)
class FactorRun:
    """What a method returned at one rank: a factor, its status, whether that claims success."""

    L: FloatArray
    word: str
    claims: bool
    iterations: int = 0
    compile_seconds: float = 0.0


Method = Callable[[FloatArray, float, dict[str, Any]], FactorRun]
"""The type of a method at one rank, method(start, seconds left, options)."""

Options = Mapping[str, Any] | None


def climb(
    objective: MStepObjective, tol: float, time_limit: float, method: Method, options: Options
) -> Attempt:
    """Solve an M-step on its factor, with columns added until the certificate is closed.

    The options `rank` and `largest_rank` are the columns to start with, and the most there may be
    (by default as many as features); the others are those of the method, which descends
    ``objective.whitened_program`` from a factor.
    """
    clock = time.perf_counter()
    require_plain(objective)
    program, Z = objective.whitened_program, objective.basis.matrix
    given = dict(options or {})
    first = given.pop("rank", FIRST_RANK)
    most = min(given.pop("largest_rank", None) or Z.shape[1], Z.shape[1])
    L: FloatArray | None = first_factor(program, min(first, most))
    iterations, compiling = 0, 0.0
    while L is not None:
        run = method(L, max(LEAST_SECONDS, time_limit - (time.perf_counter() - clock)), given)
        iterations, compiling = iterations + run.iterations, compiling + run.compile_seconds
        L = None
        is_late = time.perf_counter() - clock >= time_limit
        if run.L.shape[1] < most and not is_late and np.all(np.isfinite(run.L)):
            factor = Z @ run.L
            if certify(objective, factor @ factor.T).relative_gap > tol:
                L = with_more_columns(program.at(run.L), tol, most)
    factor = Z @ run.L
    word = f"{run.word} (rank {run.L.shape[1]} of {Z.shape[1]})"
    solving = time.perf_counter() - clock - compiling
    return Attempt(factor @ factor.T, word, run.claims, iterations, compiling, solving)


def first_factor(program: PairProgram, rank: int) -> FloatArray:
    """A random factor, the same each time, of a metric that separates pairs."""
    rng = np.random.default_rng(0)
    L = rng.standard_normal((len(program.recession), rank))
    return np.asarray(L * (program.typical_size**0.5 / np.linalg.norm(L)))


def with_more_columns(point: FactorPoint, tol: float, most: int) -> FloatArray | None:
    """Add columns along negative eigenvalues of the gradient; None if that does not lower f.

    There are at most as many new columns as old ones.
    """
    eigenvalues, vectors = np.linalg.eigh(point.gradient)
    n_new = min(most - point.L.shape[1], point.L.shape[1])
    chosen = np.flatnonzero(eigenvalues < 0.1 * eigenvalues[0])[:n_new]
    if eigenvalues[0] >= 0.0 or not len(chosen):
        return None
    columns = vectors[:, chosen] * np.sqrt(eigenvalues[chosen] / eigenvalues[0])
    reduction = LEAST_REDUCTION * tol * max(1.0, abs(point.value))
    length = float(np.linalg.norm(point.L)) or point.program.typical_size**0.5
    for _ in range(20):
        L = np.hstack([point.L, length * columns])
        if point.program.value(L @ L.T) < point.value - reduction:
            return L
        length /= 2.0
    return None


def gradient_tolerance(tol: float, start: FloatArray) -> float:
    """The gradient at which a method may stop: times the size of the factor, it is worth `tol`."""
    return tol / max(1.0, float(np.linalg.norm(start)))


class Descent:
    """The function that a method minimizes: f over what it was at the start, and derivatives."""

    def __init__(self, program: PairProgram, start: FloatArray) -> None:
        self.program, self.shape = program, start.shape
        self.point = program.at(start)
        self.scale = max(1.0, abs(self.point.value))

    def at(self, x: FloatArray) -> FactorPoint:
        """The point at a factor, flat or not; the last one is kept."""
        L = np.reshape(x, self.shape)
        if not np.array_equal(L, self.point.L):
            self.point = self.program.at(np.array(L, dtype=np.float64))
        return self.point

    def value(self, x: FloatArray) -> float:
        """The value of the function."""
        return self.at(x).value / self.scale

    def gradient(self, x: FloatArray) -> FloatArray:
        """The gradient, in the shape of x."""
        return np.reshape(self.at(x).factor_gradient / self.scale, np.shape(x))

    def hessian_product(self, x: FloatArray, d: FloatArray) -> FloatArray:
        """The Hessian times d, in the shape of x."""
        D = np.reshape(d, self.shape)
        return np.reshape(self.at(x).hessian_product(D) / self.scale, np.shape(x))


def by_scipy(
    objective: MStepObjective, tol: float, time_limit: float, name: str, options: Options = None
) -> Attempt:
    """Solve by scipy on the factor: by L-BFGS-B, or trust-constr with second derivatives."""
    has_hessian = name == "trust-constr"

    def method(start: FloatArray, seconds: float, given: dict[str, Any]) -> FactorRun:
        descent = Descent(objective.whitened_program, start)
        deadline = time.perf_counter() + seconds
        limits = {"xtol": 1e-3 * tol} if has_hessian else {"ftol": 0.0, "maxfun": 10**7}
        limits |= {"gtol": gradient_tolerance(tol, start), "maxiter": 10**6}

        def stop_in_time(intermediate_result: Any) -> None:
            if time.perf_counter() > deadline:
                raise StopIteration

        answer = scipy.optimize.minimize(
            descent.value,
            start.ravel(),
            method=name,
            jac=descent.gradient,
            callback=stop_in_time,
            options=limits | given,
            **({"hessp": descent.hessian_product} if has_hessian else {}),
        )
        L = np.reshape(answer.x, start.shape)
        claims = int(answer.status) == (1 if has_hessian else 0)  # the gradient is within gtol
        return FactorRun(L, str(answer.message), claims, int(answer.nit))

    return climb(objective, tol, time_limit, method, options)


def fixed_rank(
    objective: MStepObjective, tol: float, time_limit: float, options: Options = None
) -> Attempt:
    """Solve by pymanopt's trust regions on its manifold of PSD matrices of fixed rank."""
    import pymanopt
    from pymanopt.manifolds import PSDFixedRank
    from pymanopt.optimizers import TrustRegions

    def method(start: FloatArray, seconds: float, given: dict[str, Any]) -> FactorRun:
        descent = Descent(objective.whitened_program, start)
        manifold = PSDFixedRank(*start.shape)
        as_numpy = pymanopt.function.numpy(manifold)
        problem = pymanopt.Problem(
            manifold,
            as_numpy(descent.value),
            euclidean_gradient=as_numpy(descent.gradient),
            euclidean_hessian=as_numpy(descent.hessian_product),
        )
        limits = {"max_time": seconds, "max_iterations": 10**6, "verbosity": 0}
        limits["min_gradient_norm"] = gradient_tolerance(tol, start)
        answer = TrustRegions(**(limits | given)).run(problem, initial_point=start)
        word = str(answer.stopping_criterion)
        L = np.asarray(answer.point, dtype=np.float64)
        return FactorRun(L, word, "min grad norm" in word, int(answer.iterations))

    return climb(objective, tol, time_limit, method, options)


def nonlinear(
    objective: MStepObjective, tol: float, time_limit: float, solver: str, options: Options = None
) -> Attempt:
    """Solve by a nonlinear solver of CVXPY, ``problem.solve(nlp=True)``, on the factor."""
    problem = ListedProblem.of(objective)

    def method(start: FloatArray, seconds: float, given: dict[str, Any]) -> FactorRun:
        clock = time.perf_counter()
        L, statement = state_on_factor(problem, start)
        limits = nonlinear_options(solver, gradient_tolerance(tol, start), seconds)
        statement.solve(nlp=True, solver=solver, **(limits | given))
        stats, word = statement.solver_stats, str(statement.status)
        iterations = int(stats.num_iters or 0) if stats else 0
        factor = start if L.value is None else np.asarray(L.value, dtype=np.float64)
        inside = stats.solve_time if stats else None
        outside = 0.0 if inside is None else time.perf_counter() - clock - float(inside)
        return FactorRun(factor, word, word == "optimal", iterations, max(0.0, outside))

    return climb(objective, tol, time_limit, method, options)


def state_on_factor(problem: ListedProblem, start: FloatArray) -> tuple[cp.Variable, cp.Problem]:
    """State an M-step on the factor of the metric, in CVXPY; the variable starts at `start`.

    With M = R'R the recession matrix it is smooth, unconstrained and not convex: minimize
    sum_k c_k log(1 + e^{eta - |L'v_k|^2}) + |R L|_F^2, over what that is at the start.
    """
    import cvxpy as cp

    L = cp.Variable(start.shape, name="L")
    L.value = start
    i, j = problem.entries
    if len(i) <= FEW_ENTRIES:
        distances = problem.pair_matrix @ (L @ L.T)[i, j]
    else:
        distances = cp.sum(cp.square(problem.differences @ L), axis=1)
    program = problem.program
    eigenvalues, vectors = np.linalg.eigh(program.recession)
    R = (vectors * np.sqrt(np.maximum(eigenvalues, 0.0))).T
    loss = problem.weights @ cp.logistic(program.threshold - distances)
    scale = max(1.0, abs(program.value(start @ start.T)))
    f = loss + cp.sum_squares(R @ L) - program.constant
    return L, cp.Problem(cp.Minimize(f / scale))


def nonlinear_options(solver: str, tol: float, time_limit: float) -> dict[str, Any]:
    """A nonlinear solver's own options for a tolerance and a time limit, and no other limit."""
    _, tolerances, seconds, others = NONLINEAR[solver]
    return {**dict.fromkeys(tolerances, tol), seconds: time_limit, **others}


NONLINEAR_ENTRANTS = [
    Entrant(name, "factor", f"{__name__}:nonlinear", (name,), package, package)
    for name, (package, *_) in NONLINEAR.items()
]
FACTOR_ENTRANTS = [
    Entrant("pymanopt", "factor", f"{__name__}:fixed_rank", (), "pymanopt", "pymanopt"),
    *(
        Entrant(name, "factor", f"{__name__}:by_scipy", (name,), distribution="scipy")
        for name in ("L-BFGS-B", "trust-constr")
    ),
]
