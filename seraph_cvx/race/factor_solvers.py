"""Methods on a factor L of the metric, A = LL', whose rank is chosen and checked.

The problem in L is not convex, and no method on it knows the rank of the optimum: one that has too
few columns, or ends at a point that is stationary but not optimal, sees a zero gradient. So each
answer is certified; while the certificate is open and a further column lowers f, columns are added.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.optimize

from ..certificate import certify
from ..model.m_step_objective import MStepObjective
from ..model.pair_program import FactorPoint
from ..numerics.checks import FloatArray
from ..paper import differences
from .attempt import Attempt, Entrant, NotForThisProblem

if TYPE_CHECKING:
    import cvxpy as cp


def on_factor(
    objective: MStepObjective,
    tol: float,
    time_limit: float,
    name: str,
    /,
    rank: int = 4,
    largest_rank: int | None = None,
    **options: Any,
) -> Attempt:
    """Solve an M-step on its factor, with columns added until the certificate is closed.

    It starts with `rank` columns, and has at most `largest_rank` (by default as many as features);
    the other options are those of the method.
    """
    clock = time.perf_counter()
    if objective.penalties:
        names = ", ".join(block.name for block in objective.penalties)
        raise NotForThisProblem(f"it has no formula for the penalties ({names})")
    program, Z = objective.whitened_program, objective.basis.matrix
    iterations, compiling, certifying = 0, time.perf_counter() - clock, 0.0
    method = {"UNO": _nonlinear, "pymanopt": _fixed_rank, "L-BFGS-B": _scipy}[name]
    most = min(largest_rank or Z.shape[1], Z.shape[1])
    # the same each time, of a metric that separates pairs
    first = np.random.default_rng(0).standard_normal((len(program.recession), min(rank, most)))
    L: FloatArray | None = first * (program.typical_size**0.5 / np.linalg.norm(first))
    while L is not None:
        run = method(name, Descent(objective, L, tol, clock + time_limit), options)
        iterations, compiling = iterations + run.iterations, compiling + run.compile_seconds
        found, L = np.asarray(run.answer, dtype=np.float64), None
        factor = Z @ found
        metric, is_late = factor @ factor.T, time.perf_counter() - clock >= time_limit
        may_grow = found.shape[1] < most and not is_late and np.all(np.isfinite(found))
        if may_grow:
            began = time.perf_counter()
            gap = certify(objective, metric).relative_gap
            certifying += time.perf_counter() - began
            L = with_more_columns(program.at(found), tol, most) if gap > tol else None
    word = f"{run.word} (rank {found.shape[1]} of {Z.shape[1]})"
    return Attempt(metric, word, run.claims, iterations, compiling, certify_seconds=certifying)


def with_more_columns(point: FactorPoint, tol: float, most: int) -> FloatArray | None:
    """Add columns along negative eigenvalues of the gradient; None if that does not lower f.

    There are at most as many new columns as old ones.
    """
    eigenvalues, vectors = np.linalg.eigh(point.gradient)
    n_new = min(most - point.L.shape[1], point.L.shape[1])
    chosen = np.flatnonzero(eigenvalues < 0.1 * eigenvalues[0])[:n_new]
    if not len(chosen):
        return None
    columns = vectors[:, chosen] * np.sqrt(eigenvalues[chosen] / eigenvalues[0])
    reduction = 0.1 * tol * max(1.0, abs(point.value))  # by less a column is not worth it
    longest = float(np.linalg.norm(point.L)) or point.program.typical_size**0.5
    for length in longest * 0.5 ** np.arange(20):
        L = np.hstack([point.L, length * columns])
        if point.program.value(L @ L.T) < point.value - reduction:
            return L
    return None


class Descent:
    """What a method minimizes: f over what it was at the start, with derivatives and limits.

    The gradient to reach is, times the size of the factor, worth `tol`.
    """

    def __init__(
        self, objective: MStepObjective, start: FloatArray, tol: float, deadline: float
    ) -> None:
        self.objective, self.start, self.deadline = objective, start, deadline
        self.gradient_tol = tol / max(1.0, float(np.linalg.norm(start)))
        self.seconds = max(1e-3, deadline - time.perf_counter())  # some methods take no zero
        self.point = objective.whitened_program.at(start)
        self.scale = max(1.0, abs(self.point.value))

    def at(self, x: FloatArray) -> FactorPoint:
        """The point at a factor, flat or not; the last one is kept."""
        L = np.reshape(x, self.point.L.shape)
        if not np.array_equal(L, self.point.L):
            self.point = self.point.program.at(np.array(L, dtype=np.float64))
        return self.point

    def value(self, x: FloatArray) -> float:
        """The value of the function."""
        return self.at(x).value / self.scale

    def gradient(self, x: FloatArray) -> FloatArray:
        """The gradient, in the shape of x."""
        return np.reshape(self.at(x).factor_gradient / self.scale, np.shape(x))

    def hessian_product(self, x: FloatArray, d: FloatArray) -> FloatArray:
        """The Hessian times d, in the shape of x."""
        product = self.at(x).hessian_product(np.reshape(d, self.point.L.shape))
        return np.reshape(product / self.scale, np.shape(x))


# The methods: the matrix of what they return is the factor.


def _scipy(name: str, descent: Descent, options: dict[str, Any]) -> Attempt:
    """Descend by scipy's L-BFGS-B."""

    def stop_in_time(intermediate_result: Any) -> None:
        if time.perf_counter() > descent.deadline:
            raise StopIteration

    limits = {"ftol": 0.0, "maxfun": 10**7, "gtol": descent.gradient_tol, "maxiter": 10**6}
    answer = scipy.optimize.minimize(
        descent.value,
        descent.start.ravel(),
        method=name,
        jac=descent.gradient,
        callback=stop_in_time,
        options=limits | options,
    )
    L = answer.x.reshape(descent.start.shape)
    return Attempt(L, str(answer.message), int(answer.status) == 0, int(answer.nit))


def _fixed_rank(_: str, descent: Descent, options: dict[str, Any]) -> Attempt:
    """Descend by pymanopt's trust regions on its manifold of PSD matrices of fixed rank."""
    import pymanopt
    from pymanopt.manifolds import PSDFixedRank
    from pymanopt.optimizers import TrustRegions

    manifold = PSDFixedRank(*descent.start.shape)
    as_numpy = pymanopt.function.numpy(manifold)
    problem = pymanopt.Problem(
        manifold,
        as_numpy(descent.value),
        euclidean_gradient=as_numpy(descent.gradient),
        euclidean_hessian=as_numpy(descent.hessian_product),
    )
    limits = {"max_time": descent.seconds, "min_gradient_norm": descent.gradient_tol}
    others = {"max_iterations": 10**6, "verbosity": 0}
    optimizer = TrustRegions(**(others | limits | options))
    answer = optimizer.run(problem, initial_point=descent.start)
    word = str(answer.stopping_criterion)
    return Attempt(answer.point, word, "min grad norm" in word, int(answer.iterations))


def _nonlinear(name: str, descent: Descent, options: dict[str, Any]) -> Attempt:
    """Descend by UNO, as CVXPY calls it for nonlinear problems."""
    clock = time.perf_counter()
    L, statement = state_on_factor(descent.objective, descent.start)
    limits = dict.fromkeys(("primal_tolerance", "dual_tolerance"), descent.gradient_tol)
    limits |= {"time_limit": descent.seconds, "max_iterations": 10**6}
    statement.solve(nlp=True, solver=name, **({"logger": "SILENT"} | limits | options))
    stats, word = statement.solver_stats, str(statement.status)
    iterations = int(stats.num_iters or 0) if stats else 0
    elapsed = time.perf_counter() - clock
    inside = elapsed if stats is None or stats.solve_time is None else float(stats.solve_time)
    factor = descent.start if L.value is None else L.value
    return Attempt(factor, word, word == "optimal", iterations, max(0.0, elapsed - inside))


def state_on_factor(objective: MStepObjective, start: FloatArray) -> tuple[cp.Variable, cp.Problem]:
    """State an M-step on the factor of the metric, in CVXPY; the variable starts at `start`.

    In the coordinates of the objective's basis, with M = R'R the recession matrix, it is smooth,
    unconstrained and not convex: minimize sum_k c_k log(1 + e^{eta - |L'v_k|^2}) + |R L|_F^2, over
    what that is at the start.
    """
    import cvxpy as cp

    pairs, mu, program = objective.pairs, objective.mu, objective.whitened_program
    rows, weights = pairs.labeled, pairs.labeled_weights
    if mu > 0.0:
        rows = np.concatenate([rows, pairs.unlabeled])
        weights = np.concatenate([weights, np.full(pairs.n_unlabeled, mu)])
    V = differences(pairs.points @ objective.basis.matrix, rows)
    L = cp.Variable(start.shape, name="L")
    L.value = start
    eigenvalues, vectors = np.linalg.eigh(program.recession)
    R = (vectors * np.sqrt(np.maximum(eigenvalues, 0.0))).T
    loss = weights @ cp.logistic(program.threshold - cp.sum(cp.square(V @ L), axis=1))
    scale = max(1.0, abs(program.value(start @ start.T)))
    f = loss + cp.sum_squares(R @ L) - program.constant
    return L, cp.Problem(cp.Minimize(f / scale))


def _entrant(name: str, package: str) -> Entrant:
    return Entrant(
        name, "factor", f"{__name__}:on_factor", (name,), package, distribution=package or "scipy"
    )


NONLINEAR_ENTRANTS = [_entrant("UNO", "unopy")]
FACTOR_ENTRANTS = [_entrant("pymanopt", "pymanopt"), _entrant("L-BFGS-B", "")]
