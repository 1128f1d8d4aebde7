"""What the rivals share: fitting, solutions with proven bounds, descent, conic solvers."""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import qr
from scipy.optimize import minimize

from ..estimators.mahalanobis import MahalanobisTransformer, all_or_nothing
from ..numerics.checks import FloatArray, check_number, check_points, counted
from ..numerics.psd_cone import project, symmetrize
from ..pairs.pair_set import PairSet
from ..solvers.not_certified import NotCertified

if TYPE_CHECKING:
    import cvxpy as cp

SPAN_TOLERANCE = 1e-12
"""Directions in which the points differ by less than this share of their spread do not count."""

FIRST_STEP = 0.3
"""The length of L-BFGS's first step, which knows no curvature, as a share of F."""


@dataclass(frozen=True, eq=False)
class RivalSolution:
    """A rival's metric, with proven bounds on the optimum of its problem.

    Both hold for the points as the doubles they are, with every rounding error allowed for.
    """

    metric: FloatArray
    value: float  # the rival's own objective at `metric`, as computed
    proven_value: float  # some metric, `metric` to rounding, has this value or a better one
    bound: float  # no metric has a better value; from a dual point, whatever the solver said
    solver: str
    iterations: int
    is_maximum: bool = False  # whether a larger value is a better one

    def __post_init__(self) -> None:
        if not self._signed_gap >= 0.0:
            raise ArithmeticError(
                f"A metric of the value {self.proven_value!r} is beyond the bound {self.bound!r}. "
                "This is a bug in seraph_cvx: please report it with the data."
            )

    @property
    def duality_gap(self) -> float:
        """The distance from `proven_value` to `bound`, rounded up; infinite if one is."""
        gap = self._signed_gap
        return gap if gap in (0.0, math.inf) else math.nextafter(gap, math.inf)

    @property
    def relative_gap(self) -> float:
        """The gap relative to the value: duality_gap / max(1, |proven_value|)."""
        gap = self.duality_gap
        return gap if math.isinf(gap) else gap / max(1.0, abs(self.proven_value))

    @property
    def _signed_gap(self) -> float:
        gap = self.proven_value - self.bound
        return -gap if self.is_maximum else gap

    def shortfall(self, tol: float) -> list[Warning]:
        """The warning that `tol` was not reached, with the remedy; none if it was."""
        if self.relative_gap <= tol:
            return []
        return [
            NotCertified(
                f"Stopped by {self.solver} after {counted(self.iterations, 'iteration')} at a "
                f"relative gap of "
                f"{self.relative_gap:.2g}, asked for {tol:.2g}: raise max_iter or tol, standardize "
                "the features, or leave out those that follow from others."
            )
        ]


class Rival(MahalanobisTransformer, ABC):
    """The base of all rivals: learn a metric from points and supervision.

    A subclass learns A in `_learn` and passes it to `_keep_metric`. One that can make nothing of
    constraints on pairs says so in `_refusal`.
    """

    _refusal = ""

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        similar: ArrayLike | None = None,
        dissimilar: ArrayLike | None = None,
    ) -> Self:
        """Learn the metric from class labels, constraints on pairs, or both.

        Parameters
        ----------
        X : (n, m) array_like
        y : (n,) array_like, optional
            Class labels; -1 is unknown (None too among strings).
        similar, dissimilar : (k, 2) array_like of int, optional
            Rows (i, j) of indices into X; a rival that needs classes refuses them.
        """
        if self._refusal and not (similar is None and dissimilar is None):
            raise ValueError(self._refusal)
        with all_or_nothing(self):
            pairs = self._make_pairs(X, y, similar, dissimilar)
            for doubt in self._doubts_about_data(pairs, y, follows_units=False):
                warnings.warn(doubt, stacklevel=2)
            not_reached = self._learn(pairs, y)
        for warning in not_reached:
            warnings.warn(warning, stacklevel=2)
        return self

    @abstractmethod
    def _learn(self, pairs: PairSet, y: ArrayLike | None) -> list[Warning]:
        """Learn the metric and keep it; return the warnings that `fit` is to issue."""


class CertifiedRival(Rival):
    """A rival whose problem is convex: solved to a proven relative gap of `tol`, or it warns."""

    def __init__(self, solver: str, tol: float, max_iter: int, n_components: int | None) -> None:
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.n_components = n_components

    @abstractmethod
    def _solve(self, pairs: PairSet, y: ArrayLike | None) -> RivalSolution:
        """Solve the rival's problem."""

    def _learn(self, pairs: PairSet, y: ArrayLike | None) -> list[Warning]:
        solution = self._solve(pairs, y)
        self._keep_metric(solution.metric)
        self.objective_ = solution.value
        self.n_iter_ = solution.iterations
        return solution.shortfall(self.tol)


def check_limits(tol: float, max_iter: int) -> None:
    """Require that tol > 0 and max_iter >= 1."""
    check_number(tol, "tol", 0.0, strict=True)
    check_number(max_iter, "max_iter", 1.0)


def quadratic_forms(A: FloatArray, V: FloatArray) -> FloatArray:
    """The squared distances v_k' A v_k of the rows of V, never below 0."""
    return np.asarray(np.maximum(np.sum((V @ A) * V, axis=1), 0.0))


def moment(V: FloatArray, weights: FloatArray | float = 1.0) -> FloatArray:
    """The weighted second moment sum_k w_k v_k v_k' of the rows of V."""
    return np.asarray((V.T * weights) @ V)


def span_basis(points: FloatArray) -> FloatArray:
    """An orthonormal basis Q of the span of the differences x_i - x_j."""
    Q, R, _ = qr((points - points.mean(axis=0)).T, mode="economic", pivoting=True)
    lengths = np.abs(np.diag(R))
    return np.asarray(Q[:, lengths > SPAN_TOLERANCE * max(1e-300, float(lengths[0]))])


def principal_directions(X: ArrayLike, keep: float | None = None) -> FloatArray:
    """The leading eigenvectors of the covariance of points, as columns.

    `keep` is a number of directions, or (below 1) the part of the variance that they must explain;
    by default, and at most, all directions in which the points differ.
    """
    points = check_points(X)
    centered = points - points.mean(axis=0)
    variances, vectors = np.linalg.eigh(centered.T @ centered / len(points))
    variances, vectors = variances[::-1], vectors[:, ::-1]
    rank = int(np.sum(variances > SPAN_TOLERANCE * max(variances[0], 0.0)))
    if rank == 0:
        raise ValueError("All points are equal: there is no direction in which they differ.")
    number = float(rank)
    if keep is not None:
        number = check_number(keep, "principal_components", 0.0, strict=True)
    if number < 1.0:
        explained = np.cumsum(variances[:rank]) / np.sum(variances[:rank])
        number = 1 + int(np.searchsorted(explained, number))
    elif number != int(number):
        raise ValueError(
            f"principal_components={number:g} must be an integer, or a part of the variance "
            "below 1."
        )
    return np.ascontiguousarray(vectors[:, : min(int(number), rank)])


def descend(
    value_and_gradient: Callable[[FloatArray], tuple[float, FloatArray]],
    start: FloatArray,
    max_iter: int,
) -> tuple[FloatArray, int]:
    """Descend a function of a factor F by L-BFGS (Byrd, Lu, Nocedal, Zhu 1995), to rounding.

    The caller's certificate, not this routine, says whether the least value was reached. The first
    step is at most `FIRST_STEP` times the norm of F: from F = I it cannot reach a singular F.
    """
    unit = FIRST_STEP * float(np.linalg.norm(start, 2))

    def flat(x: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = value_and_gradient(unit * x.reshape(start.shape))
        return value, unit * gradient.ravel()

    limits = {"maxiter": max_iter, "maxfun": 2 * max_iter}
    options = {**limits, "maxcor": 50, "maxls": 60, "ftol": 1e-15, "gtol": 1e-9}
    search = minimize(flat, start.ravel() / unit, jac=True, method="L-BFGS-B", options=options)
    return np.asarray(unit * search.x.reshape(start.shape)), int(search.nit)


def state_squared_distances(A: cp.Variable, V: FloatArray) -> cp.Expression:
    """State the squared distances v_k' A v_k of the rows of V: linear in the distinct entries."""
    i, j = np.triu_indices(V.shape[1])
    return (V[:, i] * V[:, j] * np.where(i == j, 1.0, 2.0)) @ A[i, j]


def solve_statement(problem: cp.Problem, solver: str) -> tuple[FloatArray, int]:
    """Solve a statement by a solver of CVXPY: its A, projected to the cone, and the iterations."""
    import cvxpy as cp

    if solver not in cp.installed_solvers():
        raise ValueError(
            f"solver={solver!r} is not known: use the default, or one that is installed for "
            f"CVXPY ({', '.join(cp.installed_solvers())})."
        )
    problem.solve(solver=solver)
    A = problem.var_dict["A"].value
    if A is None:
        raise RuntimeError(
            f"{solver} returned no matrix ({problem.status}): use the default solver, or "
            "standardize the features."
        )
    iterations = int(problem.solver_stats.num_iters or 0)
    return project(symmetrize(np.asarray(A, dtype=np.float64))), iterations
