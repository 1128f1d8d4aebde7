"""What the rivals share: fitting, solutions with proven bounds, descent over A = FF'."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import qr
from scipy.optimize import minimize

from ..estimators.mahalanobis import MahalanobisTransformer
from ..numerics.checks import FloatArray, IntArray, check_number
from ..pairs.pair_set import PairSet
from ..solvers.not_certified import NotCertified

SPAN_TOLERANCE = 1e-12
"""Directions in which the points differ by less than this share of their spread do not count."""

FIRST_STEP = 0.3
"""The length of L-BFGS's first step, which knows no curvature, as a share of F."""


@dataclass(frozen=True, eq=False)
class RivalSolution:
    """A rival's metric, with proven bounds on the optimum of its problem.

    Both hold for the points as the doubles they are, with every rounding error allowed for.

    Attributes
    ----------
    metric : (m, m) PSD array
    value : float
        The rival's own objective at `metric`, as computed.
    proven_value : float
        Some metric, the same as `metric` to rounding, has this value or a better one.
    bound : float
        No metric has a better value than this; from a dual point, whatever the solver said.
    solver : str
    iterations : int
    is_maximum : bool
        Whether a larger value is a better one.

    Examples
    --------
    >>> RivalSolution(np.eye(2), 4.0, 4.0, 3.0, "by hand", 1).relative_gap <= 0.2500001
    True
    """

    metric: FloatArray
    value: float
    proven_value: float
    bound: float
    solver: str
    iterations: int
    is_maximum: bool = False

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
                f"Stopped by {self.solver} after {self.iterations} iterations at a relative gap of "
                f"{self.relative_gap:.2g}, asked for {tol:.2g}: raise max_iter or tol, standardize "
                "the features, or leave out those that follow from others."
            )
        ]


class Rival(MahalanobisTransformer, ABC):
    """The base of all rivals: learn a metric from points and supervision.

    A subclass learns A in `_learn`, which is given the pairs and y, passes it to `_keep_metric` and
    returns the warnings that `fit` is to issue. One that can make nothing of constraints on pairs
    says so in `_refusal`.

    Examples
    --------
    >>> class Doubled(Rival):
    ...     def _learn(self, pairs, y):
    ...         self._keep_metric(2.0 * np.eye(pairs.n_features))
    ...         return []
    >>> Doubled().fit([[0.0], [1.0]], [0, 1]).metric_
    array([[2.]])
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
        return self._fit_pairs(
            lambda pairs: self._learn(pairs, y), X, y, similar, dissimilar, stacklevel=2
        )

    @abstractmethod
    def _learn(self, pairs: PairSet, y: ArrayLike | None) -> list[Warning]:
        """Learn the metric and keep it; return the warnings that `fit` is to issue."""


class CertifiedRival(Rival):
    """A rival whose problem is convex: solved to a proven relative gap of `tol`, or it warns.

    Attributes
    ----------
    objective_ : float
        The rival's own objective at the metric.
    n_iter_ : int
    """

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


def differences(pairs: PairSet, rows: IntArray) -> FloatArray:
    """The differences x_i - x_j, one for each row (i, j).

    Examples
    --------
    >>> pairs = PairSet.from_labels([[0.0], [1.0], [5.0]], [0, 0, 1])
    >>> differences(pairs, pairs.similar)
    array([[-1.]])
    """
    return np.asarray(pairs.points[rows[:, 0]] - pairs.points[rows[:, 1]])


def quadratic_forms(A: FloatArray, V: FloatArray) -> FloatArray:
    """The squared distances v_k' A v_k of the rows of V, never below 0.

    Examples
    --------
    >>> quadratic_forms(np.eye(2), np.array([[3.0, 4.0]]))
    array([25.])
    """
    return np.asarray(np.maximum(np.einsum("ki,ki->k", V @ A, V), 0.0))


def span_basis(points: FloatArray) -> FloatArray:
    """An orthonormal basis Q of the span of the differences x_i - x_j.

    Examples
    --------
    >>> span_basis(np.array([[1.0, 5.0, 0.0], [3.0, 5.0, 0.0]])).shape
    (3, 1)
    """
    Q, R, _ = qr((points - points.mean(axis=0)).T, mode="economic", pivoting=True)
    lengths = np.abs(np.diag(R))
    return np.asarray(Q[:, lengths > SPAN_TOLERANCE * max(1e-300, float(lengths[0]))])


def descend(
    value_and_gradient: Callable[[FloatArray], tuple[float, FloatArray]],
    start: FloatArray,
    max_iter: int,
) -> tuple[FloatArray, int]:
    """Descend a function of a factor F until rounding ends it.

    min_F g(F) by L-BFGS (Byrd, Lu, Nocedal, Zhu 1995) to rounding; F and the iterations.

    For g(F) = f(FF') with f convex and F square no local minimum is worse than the least one; the
    caller's certificate, not this routine, says whether it was reached. The first step is at most
    `FIRST_STEP` times the norm of F, so that from F = I it cannot reach a singular F.

    Examples
    --------
    >>> F, _ = descend(lambda F: (float(np.sum((F - 2.0) ** 2)), 2.0 * (F - 2.0)), np.eye(1), 50)
    >>> F.round(6)
    array([[2.]])
    """
    unit = FIRST_STEP * float(np.linalg.norm(start, 2))

    def flat(x: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = value_and_gradient(unit * x.reshape(start.shape))
        return value, unit * gradient.ravel()

    limits = {"maxiter": max_iter, "maxfun": 2 * max_iter}
    options = {**limits, "maxcor": 50, "maxls": 60, "ftol": 1e-15, "gtol": 1e-9}
    found = minimize(flat, start.ravel() / unit, jac=True, method="L-BFGS-B", options=options)
    return np.asarray(unit * found.x.reshape(start.shape)), int(found.nit)
