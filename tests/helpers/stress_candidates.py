"""Metrics that may have a smaller f than a certificate allows, found without the package.

All searches run in coordinates in which the pairs' differences and R have unit size, and which are
made of the differences themselves in extended precision: a direction of faint spread counts as much
as any other. Factors L are returned in extended precision.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from statistics import median

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit
from stress_judge import EXTENDED, Judge, sigmoid, softplus

DECADES = (-25.0, 65.0)
"""Where the length of a direction is searched, relative to its longest pair's."""

HALVINGS = 16
"""Of that range; and as many more for the best direction of all."""


@dataclass(frozen=True, eq=False)
class Search:
    """A judge's M-step in well-scaled coordinates, and the candidates found in them."""

    judge: Judge
    rng: np.random.Generator

    @cached_property
    def basis(self):
        """T, (m, r): along its columns the pairs and R together have unit size."""
        V = np.sqrt(self.judge.weights)[:, None] * self.judge.differences
        return unit_basis(np.vstack([V, root_of_regulariser(self.judge)]))

    @cached_property
    def even_basis(self):
        """The same for pairs of equal weight, none longer than usual: no far point hides others."""
        V = self.judge.differences
        sizes = np.abs(V).astype(np.float64)
        usual = [median(column[column > 0.0].tolist()) for column in sizes.T if np.any(column)]
        V = V[:, np.any(sizes, axis=0)] / np.array(usual, dtype=EXTENDED)
        V = V / np.maximum(np.sqrt(np.sum(np.square(V), axis=1, keepdims=True)), 1)
        T = np.zeros((self.judge.n_features, V.shape[1]), dtype=EXTENDED)
        T[np.any(sizes, axis=0)] = np.diag(1 / np.array(usual, dtype=EXTENDED))
        return T @ unit_basis(V) if V.size else T

    @cached_property
    def free_directions(self):
        """The two directions that R punishes least, relative to its diagonal; R < 0 by rounding."""
        R = self.judge.regulariser.astype(np.float64)
        lengths = np.sqrt(np.maximum(np.diag(R), 0.0))
        unit = np.where(lengths > 0.0, lengths, 1.0)
        vectors = np.linalg.eigh(R / unit[:, None] / unit)[1][:, :2]
        return vectors.astype(EXTENDED) / unit[:, None]

    @cached_property
    def directions(self):
        """(m, K) in extended precision: unit vectors, bases, pairs, directions no pair has, ..."""
        judge, rng = self.judge, self.rng
        m, V = judge.n_features, judge.differences
        n_similar = len(judge.objective.pairs.similar)
        pulled = np.flatnonzero(judge.labels < 0.5)
        chosen = rng.permutation(pulled)[:4]
        found = [np.eye(m, dtype=EXTENDED), V[chosen].T]
        if judge.objective.manifold_term is not None:
            found.append(self.free_directions)
        for T in (self.basis, self.even_basis):
            if not T.size:
                continue
            Z = (V @ T).astype(np.float64)
            if n_similar:
                found.append(T @ np.linalg.svd(Z[:n_similar])[2][-2:].T)
            found += [T, T @ Z[chosen].T, T @ rng.normal(size=(T.shape[1], 2))]
        found.append(rng.normal(size=(m, 1)).astype(EXTENDED))
        U = np.hstack(found)
        lengths = np.sqrt(np.sum(np.square(U), axis=0))
        return U[:, lengths > 0] / lengths[lengths > 0]

    def pursue(self, rounds=3):
        """Factors of growing rank: at each round the best length of the best direction is added.

        The first has one column, and the last is the best found; also the best one-feature one.
        """
        judge = self.judge
        U = self.directions
        L, d, value = np.zeros((judge.n_features, 0), dtype=EXTENDED), np.zeros(len(judge.rows)), {}
        for k in range(rounds):
            if k:
                U = np.hstack([U, self.falling(d)])
            lengths, values, moved = self._best_lengths(U, d)
            if not np.any(np.isfinite(values)):
                break
            best = int(np.nanargmin(values))
            lengths[best] = self._best_lengths(U[:, [best]], d, near=lengths[best])[0][0]
            L = np.hstack([L, (np.sqrt(lengths[best]) * U[:, best])[:, None]])
            d = d + lengths[best] * moved[:, best]
            value[k + 1] = L
            if k == 0:
                j = int(np.nanargmin(values[: judge.n_features]))
                value["one feature"] = (np.sqrt(lengths[j]) * U[:, j])[:, None]
        return value

    def falling(self, d):
        """Directions in which f falls at distances d: eigenvectors of its gradient."""
        judge = self.judge
        w = judge.weights * (judge.labels - sigmoid(judge.objective.threshold - d))
        found = []
        for T in (self.basis, self.even_basis):
            if T.size:
                Z = judge.differences @ T
                gradient = (Z.T * w) @ Z + T.T @ judge.regulariser @ T
                if np.all(np.isfinite(gradient.astype(np.float64))):
                    found.append(T @ np.linalg.eigh(gradient.astype(np.float64))[1][:, :2])
        U = np.hstack([np.zeros((judge.n_features, 0), dtype=EXTENDED), *found])
        return U / np.sqrt(np.maximum(np.sum(np.square(U), axis=0), 1e-300))

    def _best_lengths(self, U, d, near=None):
        """For each column u the t that minimises f at the distances d + t*(u'v)^2, and f there.

        The search starts `near` a length where one is given.
        """
        judge, eta = self.judge, self.judge.objective.threshold
        W = np.square(judge.differences @ U).astype(np.float64)
        penalty = np.sum(U * (judge.regulariser @ U), axis=0).astype(np.float64)
        c, q = judge.weights[:, None], judge.labels.astype(np.float64)[:, None]
        largest = np.max(W, axis=0)
        unit = np.where(largest > 0.0, largest, 1.0)
        W, penalty = W / unit, penalty / unit
        low, high = np.full(U.shape[1], DECADES[0]), np.full(U.shape[1], DECADES[1])
        if near is not None:
            width = 2.0 * (high - low) / 2**HALVINGS
            low, high = np.log10(near * unit) - width, np.log10(near * unit) + width
        base, weighted = d[:, None] - eta, c * W
        room, against, least = np.empty_like(W), -base, -penalty
        with np.errstate(all="ignore"):
            for _ in range(HALVINGS):  # most matrices are tiny: their making is most of the time
                middle = (low + high) / 2.0
                np.subtract(against, np.multiply(10.0**middle, W, out=room), out=room)
                pull = np.subtract(q, expit(room, out=room), out=room)
                falls = np.einsum("kj,kj->j", weighted, pull) < least
                low, high = np.where(falls, middle, low), np.where(falls, high, middle)
            t = 10.0**low
            s = base + t * W
            terms = softplus(-s) + q * s
            values = np.sum(c * terms, axis=0) + t * penalty
        values[(largest == 0.0) | ~np.isfinite(values)] = np.inf
        return t / unit, values, W * unit

    def polish(self, L, n_iterations=60):
        """L after a quasi-Newton descent of f(LL') in each of the two bases."""
        return [self._polish(L, T, n_iterations) for T in (self.basis, self.even_basis) if T.size]

    def _polish(self, L, T, n_iterations):
        judge = self.judge
        inverse = np.linalg.pinv(T.astype(np.float64))
        Z = (judge.differences @ T).astype(np.float64)
        R = (T.T @ judge.regulariser @ T).astype(np.float64)
        c, q = judge.weights, judge.labels.astype(np.float64)
        eta, shape = judge.objective.threshold, (T.shape[1], T.shape[1])
        start = np.zeros(shape)
        image = inverse @ L.astype(np.float64)
        start[:, : image.shape[1]] = image[:, : shape[1]]
        start += 1e-3 * np.mean(np.abs(start)) * self.rng.normal(size=shape)

        def value_and_slope(flat):
            B = flat.reshape(shape)
            Y = Z @ B
            s = np.sum(Y**2, axis=1) - eta
            value = np.sum(c * (softplus(-s) + q * s)) + np.sum((R @ B) * B)
            slope = 2.0 * (Z.T @ ((c * (q - sigmoid(-s)))[:, None] * Y) + R @ B)
            return float(value), slope.ravel()

        with np.errstate(all="ignore"):
            found = minimize(
                value_and_slope,
                start.ravel(),
                jac=True,
                method="L-BFGS-B",
                options={"maxiter": n_iterations, "ftol": 0.0, "gtol": 0.0},
            )
        better = T @ found.x.reshape(shape)
        return better if np.all(np.isfinite(better.astype(np.float64))) else L


def unit_basis(K):
    """T with T'K'KT near I on its range, found twice: once is too coarse for a faint spread."""
    scale = np.sqrt(np.max(np.square(K), axis=0, initial=0))
    moving = scale > 0
    T = np.diag(1 / np.where(moving, scale, 1))[:, moving]
    for _ in range(2):
        seen = (K @ T).astype(np.float64)
        if not T.size or not np.all(np.isfinite(seen)):
            break
        _, sizes, vectors = np.linalg.svd(seen, full_matrices=False)
        kept = sizes > 1e-16 * np.max(sizes, initial=0.0)
        T = T @ (vectors[kept].T / sizes[kept])
    return T


def root_of_regulariser(judge):
    """F with F'F near R."""
    objective, m = judge.objective, judge.n_features
    rows = np.sqrt(EXTENDED(objective.trace_weight)) * np.eye(m, dtype=EXTENDED)
    if objective.manifold_term is None:
        return rows
    extra = objective.manifold_term
    lengths = np.sqrt(np.maximum(np.diag(extra), 0.0))
    unit = np.where(lengths > 0.0, lengths, 1.0)
    sizes, vectors = np.linalg.eigh(extra / unit[:, None] / unit)
    more = (vectors * np.sqrt(np.maximum(sizes, 0.0))).T * unit
    return np.vstack([rows, more.astype(EXTENDED)])
