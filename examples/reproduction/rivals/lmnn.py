"""Large margin nearest neighbors (LMNN; Weinberger, Blitzer and Saul 2005)."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
from scipy.spatial.distance import cdist

from seraph_cvx.numerics.psd_cone import factor, symmetrize
from seraph_cvx.paper import differences

from .rival import (
    Rival,
    descend,
    known_classes,
    moment,
    quadratic_forms,
    span_basis,
    state_squared_distances,
)

RANK_TOLERANCE = 1e-10
"""Eigenvalues of P, and squares outside its range, below this share of the largest count as 0."""


class LMNN(Rival):
    """Keep other classes a margin farther away than target neighbors (LMNN).

    min_{A PSD} (1 - mu) sum_{j~i} d_ij + mu sum_{j~i, l} [1 + d_ij - d_il]_+

    j~i: x_j is one of the k Euclidean nearest points of the class of x_i; l: every point of another
    class. The mu is that of Weinberger and Saul (2009). All triples are kept, about k n^2 of them:
    for some hundred labeled points. Which optimum to take where there are many is left open by the
    publication: here the metric is 0 in directions in which no labeled points differ, and the same
    multiple of the identity in those in which no target neighbors differ. Agreement with the
    authors' program is unverified.

    Parameters
    ----------
    n_neighbors : int, default=3
        Target neighbors of each point, or all others of its class where they are fewer.
    push_weight : float, default=0.5
        mu, in (0, 1).
    tol : float, default=1e-5
        Relative duality gap at which to stop.
    max_iter : int, default=10000

    Attributes
    ----------
    objective_ : float
        The two sums, weighted.
    n_iter_ : int

    Examples
    --------
    >>> X = [[0.0, 1.0], [1.0, 9.0], [2.0, 2.0], [3.0, 8.0], [0.2, 5.0]]
    >>> model = LMNN().fit(X, [0, 0, 1, 1, -1])
    >>> (model.transform(X)[:, 0] + 0.0).round(1)
    array([-0.1, -0.1,  0.9,  1. , -0.3])
    """

    def __init__(self, n_neighbors=3, push_weight=0.5, tol=1e-5, max_iter=10_000):
        self.n_neighbors = n_neighbors
        self.push_weight = push_weight
        self.tol = tol
        self.max_iter = max_iter

    def _learn(self, pairs, y):
        known, classes = known_classes(self, y)
        points, mu = pairs.points[known], self.push_weight
        targets, triples = neighbors_and_triples(points, classes, self.n_neighbors)
        T, N = _split(points, moment(differences(points, targets)))
        far = differences(points, triples[:, [0, 2]])
        squares = np.sum(np.square(far @ N), axis=1)
        free = squares > RANK_TOLERANCE * np.max(np.sum(far * far, axis=1))
        margins = Margins(points @ T, triples[~free])
        F, self.n_iter_ = margins.solve(mu, self.tol, self.max_iter)
        self._warn_if(self.n_iter_ >= self.max_iter)
        L = T @ factor(F @ F.T).T
        if np.any(free):  # the least multiple of N that gives them their margin
            near = differences(points, triples[free, :2])
            A = symmetrize(L @ L.T)
            missing = 1.0 + quadratic_forms(A, near) - quadratic_forms(A, far[free])
            L = np.hstack([L, np.sqrt(np.max(missing / squares[free], initial=0.0)) * N])
        self.objective_ = margins.value(F, mu)
        return symmetrize(L @ L.T)


def neighbors_and_triples(points, classes, n_neighbors=3):
    """The rows (i, j) of points and target neighbors, and (i, j, l), l of another class than i."""
    squares = cdist(points, points, "sqeuclidean")
    np.fill_diagonal(squares, np.inf)
    squares[classes[:, None] != classes] = np.inf
    nearest = np.argsort(squares, axis=1, kind="stable")[:, :n_neighbors]
    i = np.repeat(np.arange(len(nearest)), nearest.shape[1])
    targets = np.column_stack([i, nearest.ravel()])
    targets = targets[np.isfinite(squares[tuple(targets.T)])]
    if not len(targets):
        raise ValueError("LMNN needs two labeled points of one class at least.")
    which, other = np.nonzero(classes[targets[:, 0]][:, None] != classes)
    return targets, np.column_stack([targets[which], other])


def state(points, classes, n_neighbors=3, push_weight=0.5) -> cp.Problem:
    """State the publication's semidefinite program in CVXPY, with slacks xi for the hinges."""
    targets, triples = neighbors_and_triples(points, classes, n_neighbors)
    P = moment(differences(points, targets))
    near, far = (differences(points, triples[:, [0, k]]) for k in (1, 2))
    A = cp.Variable(P.shape, PSD=True, name="A")
    xi = cp.Variable(len(triples), nonneg=True, name="xi")
    room = state_squared_distances(A, far) - state_squared_distances(A, near)
    goal = (1.0 - push_weight) * cp.sum(cp.multiply(P, A)) + push_weight * cp.sum(xi)
    return cp.Problem(cp.Minimize(goal), [room >= 1 - xi])


def _split(points, P):
    """Coordinates for A = T B T' + t N N', with T'PT = I and PN = 0, in the span of the points.

    <P, A> = tr B does not depend on t, so a triple whose impostor differs along N is met without
    cost by a large t. What is left to learn is B, from the other triples.
    """
    Q = span_basis(points)
    eigenvalues, vectors = np.linalg.eigh(symmetrize(Q.T @ P @ Q))
    seen = eigenvalues > RANK_TOLERANCE * np.max(eigenvalues, initial=0.0)
    return Q @ (vectors[:, seen] / np.sqrt(eigenvalues[seen])), Q @ vectors[:, ~seen]


class Margins:
    """The problem that is left in whitened coordinates, and its dual (derived here).

    min_{B PSD} (1 - mu) tr B + mu sum_t [1 + <W_t, B>]_+,   W_t = w_ij w_ij' - w_il w_il'
    max_z sum z   s.t.  (1 - mu) I + sum_t z_t W_t PSD, 0 <= z <= mu
    """

    def __init__(self, points, triples):
        self.points = points - points.mean(axis=0)  # centered, so that margins lose no digits
        i, j, k = triples.T
        self.near, self.far = i * len(points) + j, i * len(points) + k

    def margins(self, B):
        """The margin 1 + <W_t, B> of each triple: positive if its impostor is too near."""
        gram = self.points @ B @ self.points.T
        norms = np.diag(gram)
        squares = (norms[:, None] + norms - 2.0 * gram).ravel()
        return 1.0 + squares[self.near] - squares[self.far]

    def value(self, F, mu):
        """The objective at B = FF'."""
        return (1.0 - mu) * np.sum(F * F) + mu * np.sum(np.maximum(self.margins(F @ F.T), 0.0))

    def weighted_sum(self, z):
        """The sum of z_t W_t, as X'(Diag(w1) - w)X with w the weights of the pairs of points."""
        n = len(self.points)
        w = (np.bincount(self.near, z, n * n) - np.bincount(self.far, z, n * n)).reshape(n, n)
        w = w + w.T
        return self.points.T @ (w.sum(axis=1)[:, None] * self.points - w @ self.points)

    def bound(self, z, mu):
        """The dual value tau sum z, with the largest tau <= 1 at which tau z is feasible."""
        least = np.linalg.eigvalsh(self.weighted_sum(z))[0]
        return np.sum(z) * min(1.0, (1.0 - mu) / max(-least, 1e-300))

    def rounded(self, F, mu, width):
        """The value and gradient with a parabola in each hinge's corner, of this width."""
        s = self.margins(F @ F.T)
        slopes = np.clip(s / width + 0.5, 0.0, 1.0)
        hinges = np.where(slopes < 1.0, width * slopes * slopes / 2.0, s)
        value = (1.0 - mu) * float(np.sum(F * F)) + mu * float(np.sum(hinges))
        return value, 2.0 * ((1.0 - mu) * F + mu * self.weighted_sum(slopes) @ F)

    def solve(self, mu, tol, max_iter):
        """Descend by L-BFGS on ever sharper corners: F with B = FF', and the iterations."""
        rank = self.points.shape[1]
        best, least, bound, iterations, width = np.zeros((rank, rank)), np.inf, 0.0, 0, 1.0
        if not rank or not len(self.near):
            return best, 0
        F = np.eye(rank) / np.sqrt(2.0 * np.sum(np.var(self.points, axis=0)))
        while iterations < max_iter and width > 1e-9:  # below: rounding errors
            F, steps = descend(
                lambda G, width=width: self.rounded(G, mu, width), _refill(F), max_iter - iterations
            )
            iterations += steps
            value, slopes = self.value(F, mu), self.margins(F @ F.T) / width + 0.5
            bound = max(bound, self.bound(mu * np.clip(slopes, 0.0, 1.0), mu))
            if value < least:
                best, least = F, value
            if least - bound <= tol * max(1.0, least) or not np.any(_refill(F)):  # 0 would stay 0
                break
            width *= 0.3
        return best, iterations


def _refill(F):
    """A factor of FF' + 1e-6 ||F||^2 I: no gradient would restore a direction that F has lost."""
    eigenvalues, vectors = np.linalg.eigh(F @ F.T)
    return vectors * np.sqrt(eigenvalues + 1e-6 * eigenvalues[-1])
