"""Large margin nearest neighbors (LMNN; Weinberger, Blitzer and Saul 2005)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist

from ..numerics.checks import FloatArray, IntArray, check_number, check_points, encode_labels
from ..numerics.proven_sums import (
    independent_features,
    moment_along,
    proven_step,
    squared_lengths,
    sum_bounds,
    unit_basis,
)
from ..numerics.psd_cone import factor, scaled_factor, symmetrize
from ..numerics.rounding import UNIT, down, up
from ..pairs.pair_set import PairSet
from ..paper import differences
from .rival import (
    CertifiedRival,
    RivalSolution,
    check_limits,
    descend,
    moment,
    quadratic_forms,
    solve_statement,
    span_basis,
    state_squared_distances,
)

if TYPE_CHECKING:
    import cvxpy as cp

__all__ = ["LMNN"]

RANK_TOLERANCE = 1e-10
"""Eigenvalues of P, and squares outside its range, below this share of the largest count as 0."""

SHARPEN = 0.3
"""The corners of the hinges shrink by this factor until the gap is closed."""

SHARPEST = 1e-9
"""The least width of a corner: below it the rounding errors of the margins matter."""

REFILL = 1e-6
"""This share of the largest eigenvalue is added to all before each descent."""


class LMNN(CertifiedRival):
    """Keep other classes a margin farther away than target neighbors (LMNN).

    min_{A PSD} (1 - mu) sum_{j~i} d_ij + mu sum_{j~i, l} [1 + d_ij - d_il]_+.

    Weinberger, Blitzer and Saul (2005): each labeled point draws its target neighbors j near and
    keeps the points l of other classes a unit margin farther away. Points of unknown class (-1) are
    ignored; constraints on pairs name no neighbors and are an error. The only point of a class has
    no target neighbors, but others keep their distance from it. All triples (i, j, l) are kept,
    about k n^2 of them: for some hundred labeled points.

    The publication leaves open which optimum to take where there are many. Here the metric is 0 in
    directions in which no labeled points differ, and the same multiple of the identity in those in
    which no target neighbors differ. Where the labeled points are no more than the features the
    optimum is usually 0 and draws target neighbors together to a point. Agreement with the
    authors' program is unverified.

    Parameters
    ----------
    n_neighbors : int, default=3
        Target neighbors of each point, or all others of its class where they are fewer.
    push_weight : float, default=0.5
        mu, in (0, 1).
    solver : str, default="descent"
        A certified first-order method, or the name of a CVXPY solver ("CLARABEL", "SCS", ...) for
        small data.
    tol : float, default=1e-5
        Relative duality gap to reach; a wider one raises a warning.
    max_iter : int, default=10000
    n_components : int, optional
        Rows of `components_`; by default all m.

    Attributes
    ----------
    metric_, components_, n_features_in_
        As for :class:`~seraph_cvx.estimators.mahalanobis.MahalanobisTransformer`.
    objective_ : float
        The two sums, weighted.
    n_iter_ : int
        0 where the optimum needed no descent.

    Examples
    --------
    >>> X = [[0.0, 1.0], [1.0, 9.0], [2.0, 2.0], [3.0, 8.0], [0.2, 5.0]]
    >>> model = LMNN().fit(X, [0, 0, 1, 1, -1])
    >>> model.transform(X)[:, 0].round(1)
    array([-0.1, -0.1,  0.9,  1. , -0.3])
    """

    _refusal = (
        "LMNN learns from the neighbors of points of known class, not from pairs: give y (-1 "
        "where unknown) instead of `similar` and `dissimilar`, or use GDM or ITML."
    )

    def __init__(
        self,
        n_neighbors: int = 3,
        push_weight: float = 0.5,
        solver: str = "descent",
        tol: float = 1e-5,
        max_iter: int = 10_000,
        n_components: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.push_weight = push_weight
        super().__init__(solver, tol, max_iter, n_components)

    def _solve(self, pairs: PairSet, y: ArrayLike | None) -> RivalSolution:
        problem = LMNNProblem.from_labels(
            pairs.points, np.ravel(np.asarray(y)), self.n_neighbors, self.push_weight
        )
        return solve_lmnn(problem, self.solver, self.tol, self.max_iter)


@dataclass(frozen=True, eq=False)
class LMNNProblem:
    """The problem of LMNN: min_{A PSD} (1 - mu) sum_{j~i} d_ij + mu sum [1 + d_ij - d_il]_+.

    j~i: x_j is one of the k Euclidean nearest points of the class of x_i (ties go to the first);
    l: every point of another class. The mu is that of Weinberger and Saul (2009).
    """

    points: FloatArray
    classes: IntArray
    n_neighbors: int = 3
    push_weight: float = 0.5

    def __post_init__(self) -> None:
        check_number(self.n_neighbors, "n_neighbors", 1.0)
        check_number(self.push_weight, "push_weight", 0.0, strict=True)
        if self.push_weight >= 1.0:
            raise ValueError(f"push_weight={self.push_weight:g} is out of range: it must be < 1.")
        sizes = np.unique(self.classes, return_counts=True)[1]
        if len(sizes) < 2:
            raise ValueError(
                "LMNN needs labeled points of two classes at least, or the best metric is 0: "
                "label points of another class."
            )
        if np.max(sizes) < 2:
            raise ValueError(
                "LMNN needs two labeled points of one class at least, or no point has a target "
                "neighbor: label more points of a class."
            )

    @classmethod
    def from_labels(
        cls, X: ArrayLike, y: ArrayLike, n_neighbors: int = 3, push_weight: float = 0.5
    ) -> LMNNProblem:
        """State the problem for the points of known class, without those of unknown class (-1)."""
        points = check_points(X)
        known, classes = encode_labels(y, len(points))
        return cls(points[known], classes, n_neighbors, push_weight)

    @cached_property
    def target_pairs(self) -> IntArray:
        """The pairs (i, j) of each point i and its target neighbors j, in the order of i."""
        squares = cdist(self.points, self.points, "sqeuclidean")
        np.fill_diagonal(squares, np.inf)
        squares[self.classes[:, None] != self.classes] = np.inf
        nearest = np.argsort(squares, axis=1, kind="stable")[:, : self.n_neighbors]
        i = np.repeat(np.arange(len(nearest)), nearest.shape[1])
        pairs = np.column_stack([i, nearest.ravel()])
        return np.asarray(pairs[np.isfinite(squares[tuple(pairs.T)])])

    @cached_property
    def triples(self) -> IntArray:
        """The triples (i, j, l) of each target pair (i, j) and each point l of another class."""
        which, other = np.nonzero(self.classes[self.target_pairs[:, 0]][:, None] != self.classes)
        return np.column_stack([self.target_pairs[which], other])

    @cached_property
    def codes(self) -> tuple[IntArray, IntArray]:
        """The pairs (i, j) and (i, l) of the triples, as the numbers i n + j and i n + l."""
        i, j, impostor = self.triples.T
        return i * len(self.points) + j, i * len(self.points) + impostor

    @cached_property
    def targets(self) -> FloatArray:
        """The differences of the target pairs."""
        return differences(self.points, self.target_pairs)

    @cached_property
    def near(self) -> FloatArray:
        """The difference x_i - x_j of each triple, to the target neighbor."""
        return differences(self.points, self.triples[:, :2])

    @cached_property
    def far(self) -> FloatArray:
        """The difference x_i - x_l of each triple, to the impostor."""
        return differences(self.points, self.triples[:, [0, 2]])

    @cached_property
    def target_moment(self) -> FloatArray:
        """The second moment P of the target pairs, sum_{j~i} v_ij v_ij'."""
        return moment(self.targets)

    def margins(self, A: FloatArray) -> FloatArray:
        """The margin 1 + d_ij - d_il of each triple: positive if the impostor l is too near."""
        return 1.0 + quadratic_forms(A, self.near) - quadratic_forms(A, self.far)

    def value(self, A: FloatArray) -> float:
        """The objective at A: (1 - mu) <P, A> + mu sum [margins]_+."""
        hinges = np.sum(np.maximum(self.margins(A), 0.0))
        length = np.sum(quadratic_forms(A, self.targets))
        return float((1.0 - self.push_weight) * length + self.push_weight * hinges)

    def value_from_above(self, L: FloatArray) -> float:
        """An upper bound on `value` at LL', with every rounding error allowed for."""
        mu, targets = Fraction(self.push_weight), squared_lengths(L, self.targets)[1]
        near, far = squared_lengths(L, self.near)[1], squared_lengths(L, self.far)[0]
        with np.errstate(over="ignore"):
            margins = (near - far) + (1.0 + 4.0 * UNIT * (1.0 + near + far))
        try:
            hinges = sum_bounds(np.maximum(margins, 0.0))[1]
            return up((1 - mu) * sum_bounds(targets)[1] + mu * hinges)
        except OverflowError:
            return np.inf

    def lower_bound(self, multipliers: FloatArray) -> float:
        """Bound the optimum from below, at multipliers of the triples, cut to [0, mu].

        tau sum_t z_t, tau <= 1 the largest with (1 - mu) P + tau sum_t z_t W_t proven PSD.

        W_t = v_ij v_ij' - v_il v_il'. The dual of the problem is to maximize sum z over 0 <= z <=
        mu with this matrix PSD at tau = 1, so that no metric has a smaller `value`. A triple whose
        impostor differs in a feature in which no target neighbors do must have z = 0, and is
        given it. Those whose impostor equals i or j have a W_t that is PSD: z = mu
        on these alone needs no proof.
        """
        mu, n = self.push_weight, len(self.points)
        unseen = ~np.any(self.targets, axis=0)
        beyond = differences(self.points, self.triples[:, 1:])
        is_equal = ~np.any(self.far, axis=1) | ~np.any(beyond, axis=1)
        least = Fraction(mu) * int(np.sum(is_equal))
        z = np.where(np.any(self.far[:, unseen], axis=1), 0.0, np.clip(multipliers, 0.0, mu))
        if not np.any(z) or not np.all(np.isfinite(self.target_moment)):
            return down(least)
        near, far = sum_by_pair(self.codes, z, n)
        used = np.nonzero(near + far)  # a pair is near or far; its sum has less than n terms
        V = differences(self.points, np.column_stack(used))
        kept = np.setdiff1d(independent_features(self.points), np.flatnonzero(unseen))
        T = unit_basis(self.target_moment[np.ix_(kept, kept)])
        P = moment_along(T, self.targets[:, kept], np.full(len(self.targets), 1.0 - mu))
        weights, sizes = (near - far)[used], (near + far)[used]
        W, W_error = moment_along(T, V[:, kept], weights, sizes=sizes, roundings=n)
        tau = proven_step(*P, -W, W_error, furthest=1.0)
        if tau is not None:
            least = max(least, Fraction(tau) * sum_bounds(z)[0])
        return down(least)

    def state(self) -> cp.Problem:
        """State the publication's semidefinite program in CVXPY, the triples' constraint first.

        min (1 - mu) <P, A> + mu sum xi  s.t.  d_il - d_ij >= 1 - xi_ijl, xi >= 0, A PSD.
        """
        import cvxpy as cp

        A = cp.Variable(self.target_moment.shape, PSD=True, name="A")
        xi = cp.Variable(len(self.triples), nonneg=True, name="xi")
        room = state_squared_distances(A, self.far) - state_squared_distances(A, self.near)
        length = cp.sum(cp.multiply(self.target_moment, A))
        goal = (1.0 - self.push_weight) * length + self.push_weight * cp.sum(xi)
        return cp.Problem(cp.Minimize(goal), [room >= 1 - xi])


def sum_by_pair(codes: tuple[IntArray, IntArray], z: FloatArray, n: int) -> list[FloatArray]:
    """The sums of z over the triples of each pair (i, j) and of each pair (i, l), two matrices."""
    sums = (np.bincount(code, z, n * n).reshape(n, n) for code in codes)
    return [np.asarray(matrix, dtype=np.float64) for matrix in sums]


def solve_lmnn(
    problem: LMNNProblem, solver: str = "descent", tol: float = 1e-5, max_iter: int = 10_000
) -> RivalSolution:
    """Solve an :class:`LMNNProblem` by descent on a rounded hinge, or by a conic solver."""
    check_limits(tol, max_iter)
    coordinates = TargetCoordinates.of(problem)
    if solver == "descent":
        B, bound, iterations = descend_sharpening(coordinates, tol, max_iter)
        L = coordinates.factor(B)
        A = symmetrize(L @ L.T)
    else:
        statement = problem.state()
        A, iterations = solve_statement(statement, solver)
        L, multipliers = scaled_factor(A), np.asarray(statement.constraints[0].dual_value)
        bound = coordinates.lower_bound(multipliers[~coordinates.is_free])
    above = problem.value_from_above(L)
    return RivalSolution(A, problem.value(A), above, bound, solver, iterations)


@dataclass(frozen=True, eq=False)
class TargetCoordinates:
    """Coordinates in which LMNN is solved: A = T B T' + t N N', with T'PT = I and PN = 0.

    The first sum, <P, A> = tr B, does not depend on t. So a triple whose impostor differs along N
    is met without cost by a large t, its multiplier is 0, and what is left to learn is B from the
    others (derived here):

        min_{B PSD} (1 - mu) tr B + mu sum_t [1 + <W_t, B>]_+
        max_z sum z   s.t.  (1 - mu) I + sum_t z_t W_t PSD, 0 <= z <= mu

    with W_t = w_ij w_ij' - w_il w_il', w = T'v. Where the labeled points are no more than the
    features usually no triple is left: B = 0, and points linked by target neighbors coincide.
    """

    problem: LMNNProblem
    T: FloatArray
    N: FloatArray
    is_free: NDArray[np.bool_]  # which triples can be met without cost

    @classmethod
    def of(cls, problem: LMNNProblem) -> TargetCoordinates:
        """Split the span of the points by the eigenvectors of P."""
        Q = span_basis(problem.points)
        eigenvalues, vectors = np.linalg.eigh(symmetrize(Q.T @ problem.target_moment @ Q))
        seen = eigenvalues > RANK_TOLERANCE * np.max(eigenvalues, initial=0.0)
        T = Q @ (vectors[:, seen] / np.sqrt(eigenvalues[seen]))
        N, V = Q @ vectors[:, ~seen], problem.far
        squares = np.sum(np.square(V @ N), axis=1)
        return cls(problem, T, N, squares > RANK_TOLERANCE * np.max(np.sum(V * V, axis=1)))

    @cached_property
    def points(self) -> FloatArray:
        """The coordinates T'(x_i - mean) of the points, centered so that margins lose no digits."""
        centered = self.problem.points - self.problem.points.mean(axis=0)
        return np.asarray(centered @ self.T)

    @cached_property
    def codes(self) -> tuple[IntArray, IntArray]:
        """The pairs of the triples that are not free."""
        near, far = self.problem.codes
        return near[~self.is_free], far[~self.is_free]

    def margins(self, B: FloatArray) -> FloatArray:
        """The margin 1 + <W_t, B> of each triple that is not free."""
        gram = self.points @ B @ self.points.T
        norms = np.diag(gram)
        squares = (norms[:, None] + norms - 2.0 * gram).ravel()
        near, far = self.codes
        return np.asarray(1.0 + squares[near] - squares[far])

    def weighted_sum(self, z: FloatArray) -> FloatArray:
        """The sum of z_t W_t, as X'(Diag(w1) - w)X with w the weights of the pairs of points."""
        near, far = sum_by_pair(self.codes, z, len(self.points))
        w = near - far
        w = w + w.T
        return np.asarray(self.points.T @ (w.sum(axis=1)[:, None] * self.points - w @ self.points))

    def lower_bound(self, z: FloatArray) -> float:
        """Bound the optimum from below, at multipliers of the triples that are not free.

        Which ones are free is decided by a tolerance; the proof does not rely on it.
        """
        multipliers = np.zeros(len(self.is_free))
        multipliers[~self.is_free] = z
        return self.problem.lower_bound(multipliers)

    def factor(self, B: FloatArray) -> FloatArray:
        """The factor L of T B T' + t N N', with the least t that meets the free triples."""
        L = self.T @ factor(B).T
        if not np.any(self.is_free):
            return L
        missing = self.problem.margins(symmetrize(L @ L.T))[self.is_free]
        along = np.sum(np.square(self.problem.far[self.is_free] @ self.N), axis=1)
        return np.hstack([L, np.sqrt(np.max(missing / along, initial=0.0)) * self.N])

    def rounded_slopes(self, margins: FloatArray, width: float) -> FloatArray:
        """The slopes h'(s_t) in [0, 1] of hinges with a parabola for |s| < width/2.

        As in Nesterov's smoothing (2005); times mu, they are a dual point z.
        """
        return np.clip(margins / width + 0.5, 0.0, 1.0)

    def rounded_objective(self, F: FloatArray, width: float) -> tuple[float, FloatArray]:
        """The value and gradient of (1 - mu) ||F||^2 + mu sum_t h(1 + <W_t, FF'>), h rounded."""
        mu, s = self.problem.push_weight, self.margins(F @ F.T)
        slopes = self.rounded_slopes(s, width)
        hinges = np.where(slopes < 1.0, width * slopes * slopes / 2.0, s)
        value = (1.0 - mu) * float(np.sum(F * F)) + mu * float(np.sum(hinges))
        return value, 2.0 * ((1.0 - mu) * F + mu * self.weighted_sum(slopes) @ F)


def descend_sharpening(
    coordinates: TargetCoordinates, tol: float, max_iter: int
) -> tuple[FloatArray, float, int]:
    """Minimize over B by L-BFGS on ever sharper corners of the hinges.

    Returns B, the best proven lower bound, which decides when to stop, and the iterations.
    """
    problem, mu, rank = coordinates.problem, coordinates.problem.push_weight, coordinates.T.shape[1]
    B, least, bound = np.zeros((rank, rank)), np.inf, 0.0
    if not rank or np.all(coordinates.is_free):  # each margin left is 1, whatever the metric
        n_left = int(np.sum(~coordinates.is_free))
        return B, coordinates.lower_bound(np.full(n_left, mu)), 0
    F = np.eye(rank) / np.sqrt(2.0 * np.sum(np.var(coordinates.points, axis=0)))
    iterations, width = 0, 1.0
    while iterations < max_iter and width > SHARPEST:
        objective = partial(coordinates.rounded_objective, width=width)
        F, steps = descend(objective, _refill(F), max_iter - iterations)
        iterations += steps
        value = problem.value_from_above(coordinates.factor(F @ F.T))
        slopes = coordinates.rounded_slopes(coordinates.margins(F @ F.T), width)
        bound = max(bound, coordinates.lower_bound(mu * slopes))
        if value < least:
            B, least = F @ F.T, value
        if least - bound <= tol * max(1.0, least) or not np.any(_refill(F)):  # F = 0 would stay 0
            break
        width *= SHARPEN
    return B, bound, iterations


def _refill(F: FloatArray) -> FloatArray:
    """A factor of FF' + REFILL ||F||^2 I: no gradient would restore a direction that F has lost."""
    eigenvalues, vectors = np.linalg.eigh(F @ F.T)
    return np.asarray(vectors * np.sqrt(eigenvalues + REFILL * eigenvalues[-1]))
