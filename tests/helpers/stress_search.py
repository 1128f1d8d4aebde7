"""Metrics that may have a smaller F than a certificate allows, found without the package.

All searches run in coordinates in which the pairs' differences, R and the blocks have unit size,
and which are made of the differences themselves in extended precision: a direction of faint spread
counts as much as any other. Factors L are returned in extended precision, and with blocks they are
made feasible.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from high_precision import EXTENDED
from scipy.optimize import minimize
from scipy.special import expit
from stress_blocks import root_of, sought

DECADES = (-700, 700)
"""Where the length of a direction is searched, relative to its longest pair's."""

HALVINGS = 48
"""Of that range, to about 1e-11 of a length."""

LARGEST_EXPONENT = 3500.0
"""Multiples of a factor are looked for between 2^-3500 and 2^3500 times it."""

TIGHTER = (1.0, 0.1, 0.01, 1e-3, 1e-3, 1e-3)
"""How much a violated constraint costs, inversely, from one descent to the next."""


class Basis(NamedTuple):
    """Columns T along which something has unit size, and a left inverse of T."""

    columns: np.ndarray
    inverse: np.ndarray


class Search:
    """A judge's M-step in extended precision and well-scaled coordinates, and what is found there.

    The differences v of its pairs, their weights c and labels q, R and the blocks.
    """

    def __init__(self, judge, rng):
        self.judge, self.rng = judge, rng
        self.blocks = list(map(sought, judge.blocks))
        X, k = judge.points.astype(EXTENDED), len(judge.unlabeled)
        self.differences = X[judge.rows[:, 0]] - X[judge.rows[:, 1]]
        each = EXTENDED(judge.mu) * (EXTENDED(judge.n_unlabeled) / max(1, k))
        self.weights = np.concatenate([judge.confidence.astype(EXTENDED), [each] * k])
        R = EXTENDED(judge.trace_weight) * np.eye(judge.n_features, dtype=EXTENDED)
        self.regularizer = sum((term.astype(EXTENDED) for term in judge.terms), R)
        self.labels = np.array([float(q) for _, q in judge.weights_and_labels()], dtype=EXTENDED)

    def _basis(self, blocks):
        """T, (m, r): along its columns the pairs, R and the blocks together have unit size."""
        judge, unit = self.judge, self.unit
        m = judge.n_features
        weight = max(EXTENDED(0), EXTENDED(judge.trace_weight))
        root = np.sqrt(weight) * np.eye(m, dtype=EXTENDED)
        rows = [np.sqrt(self.weights / unit)[:, None] * self.differences, root / np.sqrt(unit)]
        if judge.terms:
            rows.append(root_of(self.regularizer - root**2) / np.sqrt(unit))
        rows += [block.rows(m, unit) for block in blocks]
        return unit_basis(np.vstack(rows).astype(EXTENDED))

    @cached_property
    def basis(self):
        return self._basis([])

    @cached_property
    def even_basis(self):
        """The same for pairs of equal weight, none longer than usual: no far point hides others."""
        sizes = [column[column > 0] for column in np.abs(self.differences).T]
        usual = np.array([np.median(column) if len(column) else EXTENDED(1) for column in sizes])
        V = self.differences / usual
        V = V / np.maximum(np.sqrt(np.sum(np.square(V), axis=1, keepdims=True)), 1)
        columns, inverse = unit_basis(V)
        return Basis(columns / usual[:, None], inverse * usual)

    @cached_property
    def unit(self):
        """The size of F: the pairs' weights, and what blocks cost in any case."""
        judge = self.judge
        sizes = [block.size(judge.n_features) for block in self.blocks]
        return np.sum(self.weights) + sum(sizes, EXTENDED(0))

    @cached_property
    def directions(self):
        """(m, K) in extended precision: unit vectors, bases, pairs, directions no pair has, ..."""
        judge, rng = self.judge, self.rng
        m, V, R = judge.n_features, self.differences, self.regularizer
        n_similar = len(judge.similar)
        chosen = rng.permutation(np.flatnonzero(self.labels < 0.5))[:4]
        found = [np.eye(m, dtype=EXTENDED), V[chosen].T]
        if judge.terms:  # what R punishes least, relative to its diagonal; < 0 by rounding
            lengths = np.sqrt(np.maximum(np.diag(R), 0))
            unit = np.where(lengths > 0, lengths, 1)
            vectors = np.linalg.eigh(in_doubles(R / unit[:, None] / unit))[1][:, :2]
            found.append(vectors.astype(EXTENDED) / unit[:, None])
        for T, _ in (self.basis, self.even_basis):
            if T.size:
                Z = in_doubles(V @ T)
                if n_similar:
                    found.append(T @ np.linalg.svd(Z[:n_similar])[2][-2:].T)
                found += [T, T @ Z[chosen].T, T @ rng.normal(size=(T.shape[1], 2))]
        found.append(rng.normal(size=(m, 1)).astype(EXTENDED))
        return of_unit_length(np.hstack(found))

    def best_directions(self):
        """Factors of rank one: of the best feature, and of the best direction, each of best length.

        They look for a small f, whatever the blocks; none where every direction is free.
        """
        U, m = self.directions, self.judge.n_features
        lengths, values = self._best_lengths(U)
        if not np.any(values < np.inf):
            return []
        best = int(np.nanargmin(values[:m])), int(np.nanargmin(values))
        return [(np.sqrt(lengths[k]) * U[:, k])[:, None] for k in best]

    def _best_lengths(self, U):
        """For each column u the t that minimizes f(t uu'), and f there, over the largest weight."""
        wide = np.square(self.differences @ U)
        largest = np.max(wide, axis=0)
        unit = np.where(largest > 0, largest, 1)
        most, eta = np.max(self.weights), EXTENDED(self.judge.threshold)
        penalty = np.sum(U * (self.regularizer @ U), axis=0) / unit / most
        W, c, q = wide / unit, (self.weights / most)[:, None], self.labels[:, None]
        low, high = (np.full(U.shape[1], EXTENDED(end)) for end in DECADES)
        with np.errstate(all="ignore"):
            for _ in range(HALVINGS):
                middle = (low + high) / 2
                slopes = q - expit(eta - EXTENDED(10) ** middle * W)
                falls = np.sum(c * W * slopes, axis=0) < -penalty
                low, high = np.where(falls, middle, low), np.where(falls, high, middle)
            t = EXTENDED(10) ** low
            s = t * W - eta
            values = np.sum(c * (np.logaddexp(0, -s) + q * s), axis=0) + t * penalty
        values[(largest == 0) | ~np.isfinite(values)] = np.inf
        values[(largest == 0) & (penalty < 0)] = -np.inf  # f falls for ever, and no pair sees it
        return t / unit, values

    def polish(self, L, n_iterations=60):
        """Feasible factors from quasi-Newton descents of F: in two bases, in one with blocks.

        Constraints are taken in by an augmented Lagrangian; the last descents are the tightest.
        """
        blocks = self.blocks
        bases = [self._basis(blocks)] if blocks else [self.basis, self.even_basis]
        found = []
        for basis in bases:
            T = basis.columns
            start = in_doubles(basis.inverse @ self.feasible(L))
            B = np.zeros((T.shape[1], T.shape[1]))
            B[:, : start.shape[1]] = start[:, : len(B)]
            if not B.size or not np.all(np.isfinite(B)):
                continue
            B += max(1e-3 * np.mean(np.abs(B)), 1e-6) * self.rng.normal(size=B.shape)
            problem = Lagrangian(self, T)
            if problem.is_diagonal:
                B = np.diag(np.sqrt(np.sum(np.square(B), axis=1)))
            for k, loose in enumerate(TIGHTER if problem.constraints else TIGHTER[:1]):
                problem.loose = loose
                B = descend(problem, B, n_iterations)
                problem.update(B)
                if k >= len(TIGHTER) - 2 or not problem.constraints:
                    found.append(self.feasible(T @ B))
        return [L for L in found if np.all(np.isfinite(L))]

    def exact_optimum(self, factors):
        """The best multiple of the best of these factors, by bisection in balls; none if none fits.

        It is optimal to 2^-40 of its size for one feature, and for one pair in that direction.
        """
        values = [(L, self.judge.value(L)) for L in factors]
        finite = [(L, value) for L, value in values if value.is_finite()]
        if not finite:
            return []
        L = min(finite, key=lambda one: one[1].mid())[0]
        low, high = -LARGEST_EXPONENT, LARGEST_EXPONENT
        near, step = L, EXTENDED(2) ** -40
        while high - low > 2.0**-40:
            middle = (low + high) / 2.0
            trial = L * EXTENDED(2) ** EXTENDED(middle)
            value, further = self.judge.value(trial), self.judge.value(trial * (1 + step))
            is_feasible = value.is_finite()
            if is_feasible and further > value:
                near, high = trial, middle
            elif is_feasible and further < value:
                near, low = trial, middle
            elif middle == 0.0:  # too flat for these balls
                break
            else:  # too flat, or infeasible: back toward L
                low, high = (low, middle) if middle > 0.0 else (middle, high)
        return [near]

    def feasible(self, L):
        """A factor near L that satisfies the constraints, or nearly so: balls will tell."""
        L = np.asarray(L, dtype=EXTENDED)
        with np.errstate(all="ignore"):
            for block in sorted(self.blocks, key=lambda block: not block.is_diagonal):
                L = block.made_feasible(L)
        return L


class Lagrangian:
    """F/unit and its slope at A = T BB' T', with multipliers of the constraints."""

    def __init__(self, search, T):
        unit = search.unit
        blocks = search.blocks
        self.Z, self.q = in_doubles(search.differences @ T), in_doubles(search.labels)
        self.c, self.eta = in_doubles(search.weights / unit), search.judge.threshold
        self.R = in_doubles(T.T @ search.regularizer @ T / unit)
        self.smooth = [at for block in blocks if (at := block.smooth(T, unit)) is not None]
        self.constraints = [one for block in blocks for one in block.constraints(T)]
        self.is_diagonal = any(block.is_diagonal for block in blocks)
        self.loose = 1.0
        self.multipliers = [0.0 * residual(0.0 * self.R) for residual, _, _ in self.constraints]

    def value_and_slope(self, B):
        with np.errstate(all="ignore"):
            s = np.sum((self.Z @ B) ** 2, axis=1) - self.eta
            S = B @ B.T
            value = np.sum(self.c * (np.logaddexp(0, -s) + self.q * s)) + np.sum(self.R * S)
            slope = (self.Z.T * (self.c * (self.q - expit(-s)))) @ self.Z + self.R
            for at in self.smooth:
                more, its_slope = at(S.astype(EXTENDED))
                value, slope = value + float(more), slope + in_doubles(its_slope)
            for (_, adjoint, _), Y in zip(self.constraints, self._stepped(S), strict=True):
                value, slope = value + self.loose / 2.0 * np.sum(Y**2), slope + adjoint(Y)
        gradient = 2.0 * slope @ B
        if self.is_diagonal:
            gradient = np.diag(np.diag(gradient))
        if not (np.isfinite(value) and np.all(np.isfinite(gradient))):
            return 1e30, np.zeros_like(B)
        return float(value), gradient

    def _stepped(self, S):
        """The multipliers after a step by the violation at S."""
        stepped = []
        for (residual, _, is_equality), Y in zip(self.constraints, self.multipliers, strict=True):
            Y = Y + residual(S) / self.loose
            if not is_equality and np.all(np.isfinite(Y)):
                sizes, vectors = np.linalg.eigh((Y + Y.T) / 2.0)
                Y = (vectors * np.maximum(sizes, 0.0)) @ vectors.T
            stepped.append(Y)
        return stepped

    def update(self, B):
        self.multipliers = self._stepped(B @ B.T)


def descend(problem, start, n_iterations):
    """Where L-BFGS ends."""

    def flat(x):
        value, slope = problem.value_and_slope(x.reshape(start.shape))
        return value, slope.ravel()

    options = {"maxiter": n_iterations, "ftol": 0.0, "gtol": 0.0}
    with np.errstate(all="ignore"):
        found = minimize(flat, start.ravel(), jac=True, method="L-BFGS-B", options=options)
    return found.x.reshape(start.shape)


def in_doubles(values):
    with np.errstate(over="ignore"):
        return np.asarray(values).astype(np.float64)


def of_unit_length(U):
    """The columns of U that are not zero, each of length one."""
    U = U / np.maximum(np.max(np.abs(U), axis=0, initial=0), np.finfo(EXTENDED).tiny)
    lengths = np.sqrt(np.sum(np.square(U), axis=0))
    kept = np.isfinite(lengths) & (lengths > 0)
    return U[:, kept] / lengths[kept]


def unit_basis(K):
    """T with T'K'KT near I on its range, found twice: once is too coarse for a faint spread."""
    scale = np.max(np.abs(K), axis=0, initial=0)
    moving = scale > 0
    T = np.diag(1 / np.where(moving, scale, 1))[:, moving]
    inverse = np.diag(scale)[moving]
    for _ in range(2):
        seen = in_doubles(K @ T)
        if not T.size or not np.all(np.isfinite(seen)):
            break
        _, sizes, vectors = np.linalg.svd(seen, full_matrices=False)
        kept = sizes > 1e-16 * np.max(sizes, initial=0.0)
        T = T @ (vectors[kept].T / sizes[kept])
        inverse = (sizes[kept][:, None] * vectors[kept]) @ inverse
    return Basis(T, inverse)
