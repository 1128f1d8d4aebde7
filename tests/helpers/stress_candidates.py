"""Metrics that may have a smaller F than a certificate allows, found without the package.

All searches run in coordinates in which the pairs' differences, R and the blocks have unit size,
and which are made of the differences themselves in extended precision: a direction of faint spread
counts as much as any other. Factors L are returned in extended precision, and with blocks they are
made feasible.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from statistics import median

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit
from stress_judge import Judge
from stress_numbers import EXTENDED, root_of, sigmoid, softplus

DECADES = (-25.0, 65.0)
"""Where the length of a direction is searched, relative to its longest pair's; more where the
lengths of pairs or the threshold are further apart than usual."""

USUAL_DECADES = 40.0
"""How far apart they usually are, as squares."""

HALVINGS = 16
"""Of that range; and as many more for the best direction of all."""

TIGHTER = (1.0, 0.1, 0.01, 1e-3, 1e-3, 1e-3)
"""How much a violated constraint costs, inversely, from one descent to the next."""


@dataclass(frozen=True, eq=False)
class Basis:
    """Columns T along which something has unit size, and a left inverse of T."""

    columns: np.ndarray
    inverse: np.ndarray

    @property
    def size(self):
        return self.columns.size


@dataclass(frozen=True, eq=False)
class Search:
    """A judge's M-step in well-scaled coordinates, and the candidates found in them."""

    judge: Judge
    rng: np.random.Generator

    @cached_property
    def basis(self):
        """T, (m, r): along its columns the pairs and R together have unit size."""
        judge = self.judge
        V = np.sqrt(judge.weights)[:, None] * judge.differences
        return unit_basis(np.vstack([V, root_of_regularizer(judge)]))

    @cached_property
    def even_basis(self):
        """The same for pairs of equal weight, none longer than usual: no far point hides others."""
        V = self.judge.differences
        sizes = np.abs(V)
        moving = np.any(sizes, axis=0)
        usual = [median(column[column > 0].tolist()) for column in sizes.T[moving]]
        usual = np.array(usual, dtype=EXTENDED)
        V = V[:, moving] / usual
        V = V / np.maximum(np.sqrt(np.sum(np.square(V), axis=1, keepdims=True)), 1)
        if not V.size:
            nothing = np.zeros((self.judge.n_features, 0), dtype=EXTENDED)
            return Basis(nothing, nothing.T)
        found = unit_basis(V)
        T = np.zeros((len(moving), found.columns.shape[1]), dtype=EXTENDED)
        inverse = np.zeros(T.T.shape, dtype=EXTENDED)
        T[moving] = found.columns / usual[:, None]
        inverse[:, moving] = found.inverse * usual
        return Basis(T, inverse)

    @cached_property
    def full_basis(self):
        """T as in `basis`, the blocks included, with F of size `unit` at size one."""
        judge, unit = self.judge, self.unit
        rows = [np.sqrt(judge.weights / unit)[:, None] * judge.differences]
        rows.append(root_of_regularizer(judge) / np.sqrt(unit))
        rows += [block.rows(judge.n_features, unit) for block in judge.given.blocks]
        return unit_basis(np.vstack(rows).astype(EXTENDED))

    @cached_property
    def unit(self):
        """The size of F: the pairs' weights, and what blocks cost in any case."""
        judge = self.judge
        sizes = [block.size(judge.n_features) for block in judge.given.blocks]
        return np.sum(judge.weights) + sum(sizes, EXTENDED(0))

    @cached_property
    def free_directions(self):
        """The two directions that R punishes least, relative to its diagonal; R < 0 by rounding."""
        R = self.judge.regularizer
        lengths = np.sqrt(np.maximum(np.diag(R), 0))
        unit = np.where(lengths > 0, lengths, 1)
        vectors = np.linalg.eigh((R / unit[:, None] / unit).astype(np.float64))[1][:, :2]
        return vectors.astype(EXTENDED) / unit[:, None]

    @cached_property
    def directions(self):
        """(m, K) in extended precision: unit vectors, bases, pairs, directions no pair has, ..."""
        judge, rng = self.judge, self.rng
        m, V = judge.n_features, judge.differences
        n_similar = len(judge.given.similar)
        pulled = np.flatnonzero(judge.labels < 0.5)
        chosen = rng.permutation(pulled)[:4]
        found = [np.eye(m, dtype=EXTENDED), V[chosen].T]
        if judge.given.terms:
            found.append(self.free_directions)
        for basis in (self.basis, self.even_basis):
            if not basis.size:
                continue
            T = basis.columns
            Z = in_doubles(V @ T)
            if n_similar:
                found.append(T @ np.linalg.svd(Z[:n_similar])[2][-2:].T)
            found += [T, T @ Z[chosen].T, T @ rng.normal(size=(T.shape[1], 2))]
        found.append(rng.normal(size=(m, 1)).astype(EXTENDED))
        return of_unit_length(np.hstack(found))

    def pursue(self, rounds=3):
        """Factors of growing rank: at each round the best length of the best direction is added.

        The first has one column, and the last is the best found; also the best one-feature one.
        They look for a small f, whatever the blocks.
        """
        judge = self.judge
        U = self.directions
        L, d = np.zeros((judge.n_features, 0), dtype=EXTENDED), np.zeros(len(judge.rows), EXTENDED)
        value = {}
        for k in range(rounds):
            if k:
                U = np.hstack([U, self.falling(d)])
            lengths, values, moved = self._best_lengths(U, d)
            if not np.any(values < np.inf):
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
        w = judge.weights * (judge.labels - sigmoid(judge.given.threshold - d))
        found = [np.zeros((judge.n_features, 0), dtype=EXTENDED)]
        for basis in (self.basis, self.even_basis):
            if basis.size:
                T = basis.columns
                Z = judge.differences @ T
                gradient = in_doubles((Z.T * w) @ Z + T.T @ judge.regularizer @ T)
                if np.all(np.isfinite(gradient)):
                    found.append(T @ np.linalg.eigh(gradient)[1][:, :2])
        return of_unit_length(np.hstack(found))

    def _best_lengths(self, U, d, near=None):
        """For each column u the t that minimizes f at the distances d + t*(u'v)^2, and f there.

        The values are relative to the largest weight. The search starts `near` a length where one
        is given.
        """
        judge = self.judge
        wide = np.square(judge.differences @ U)
        largest = np.max(wide, axis=0)
        unit = np.where(largest > 0, largest, 1)
        most = np.max(judge.weights)
        penalty = np.sum(U * (judge.regularizer @ U), axis=0) / unit / most
        low, high, number = self._range(wide, unit, penalty)
        W, c = (wide / unit).astype(number), (judge.weights / most).astype(number)[:, None]
        q, penalty = judge.labels.astype(number)[:, None], penalty.astype(number)
        low, high = np.full(U.shape[1], low), np.full(U.shape[1], high)
        halvings = HALVINGS + int(np.ceil(np.log2(max(1.0, (high[0] - low[0]) / 90.0))))
        if near is not None:
            width = 2.0 * (high - low) / 2**halvings
            middle = np.log10(near * unit).astype(np.float64)
            low, high = middle - width, middle + width
        base = d.astype(number)[:, None] - number(judge.given.threshold)
        weighted, room, against, least = c * W, np.empty_like(W), -base, -penalty
        with np.errstate(all="ignore"):
            for _ in range(halvings):  # most matrices are tiny: their making is most of the time
                middle = (low + high) / 2.0
                power = number(10) ** middle.astype(number)
                np.subtract(against, np.multiply(power, W, out=room), out=room)
                pull = np.subtract(q, expit(room, out=room), out=room)
                falls = np.einsum("kj,kj->j", weighted, pull) < least
                low, high = np.where(falls, middle, low), np.where(falls, high, middle)
            t = number(10) ** low.astype(number)
            s = base + t * W
            terms = softplus(-s) + q * s
            values = np.sum(c * terms, axis=0) + t * penalty
        values[(largest == 0) | ~np.isfinite(values)] = np.inf
        values[(largest == 0) & (penalty < 0)] = -np.inf  # f falls for ever, and no pair sees it
        return t.astype(EXTENDED) / unit, values, wide

    def _range(self, wide, unit, penalty):
        """The decades of lengths to search, and the type of numbers that holds what they make."""
        eta = np.log10(EXTENDED(self.judge.given.threshold))
        seen = wide[wide > 0]
        apart = np.log10(np.max(unit) / np.min(seen)) if seen.size else 0.0
        low = DECADES[0] + float(min(0.0, eta + 10))
        high = DECADES[1] + float(max(0.0, eta - 10)) + max(0.0, float(apart) - USUAL_DECADES)
        c = self.judge.weights
        sizes = np.abs(penalty[penalty != 0])
        reach = [low, high, *np.log10(sizes), np.log10(np.max(c) / np.min(c))]
        is_usual = np.max(np.abs(np.array(reach))) < 150
        return low, high, np.float64 if is_usual else EXTENDED

    def polish(self, L, n_iterations=60):
        """L after quasi-Newton descents of F(LL'): in each of two bases, or in one with blocks."""
        if self.judge.given.blocks:
            return self._descend_with_blocks(L, n_iterations)
        return [self._polish(L, T, n_iterations) for T in (self.basis, self.even_basis) if T.size]

    def _polish(self, L, basis, n_iterations):
        judge, T = self.judge, basis.columns
        most = np.max(judge.weights)
        Z = in_doubles(judge.differences @ T)
        R = in_doubles(T.T @ judge.regularizer @ T / most)
        c, q = in_doubles(judge.weights / most), in_doubles(judge.labels)
        eta, shape = judge.given.threshold, (T.shape[1], T.shape[1])
        start = np.zeros(shape)
        image = in_doubles(basis.inverse @ L)
        start[:, : image.shape[1]] = image[:, : shape[1]]
        start += 1e-3 * np.mean(np.abs(start)) * self.rng.normal(size=shape)
        if not np.all(np.isfinite(start)):
            return L

        def value_and_slope(flat):
            B = flat.reshape(shape)
            Y = Z @ B
            s = np.sum(Y**2, axis=1) - eta
            value = np.sum(c * (softplus(-s) + q * s)) + np.sum((R @ B) * B)
            slope = 2.0 * (Z.T @ ((c * (q - sigmoid(-s)))[:, None] * Y) + R @ B)
            return float(value), slope.ravel()

        better = T @ descend(value_and_slope, start, n_iterations).reshape(shape)
        return better if np.all(np.isfinite(better)) else L

    def _descend_with_blocks(self, L, n_iterations):
        """Feasible factors from descents of F, constraints by an augmented Lagrangian.

        From L made feasible; the last descents are the tightest.
        """
        basis = self.full_basis
        if not basis.size:
            return []
        view = BlockView.of(self, basis)
        start = in_doubles(basis.inverse @ self.feasible(L))
        B = np.zeros(view.shape)
        B[:, : start.shape[1]] = start[:, : view.shape[1]]
        size = np.mean(np.abs(B))
        B += max(1e-3 * size, 1e-6) * self.rng.normal(size=view.shape)
        if view.is_diagonal:
            B = np.diag(np.sqrt(np.sum(np.square(B), axis=1)))
        if not np.all(np.isfinite(B)):
            return []
        found = []
        for k, loose in enumerate(TIGHTER if view.has_constraints else (1.0,)):
            B = descend(lambda flat, t=loose: view.lagrangian(flat, t), B, n_iterations)
            B = B.reshape(view.shape)
            view.update(B, loose)
            if k >= len(TIGHTER) - 2 or not view.has_constraints:
                found.append(self.feasible(basis.columns @ B))
        return [L for L in found if np.all(np.isfinite(L))]

    def feasible(self, L):
        """A factor near L that satisfies the constraints, or nearly so: balls will tell."""
        blocks = self.judge.given.blocks
        L = np.asarray(L, dtype=EXTENDED)
        with np.errstate(all="ignore"):
            for block in sorted(blocks, key=lambda block: not block.is_diagonal):
                L = block.repaired(L)
        return L


@dataclass(eq=False)
class BlockView:
    """F/unit and its slope at A = T BB' T', with multipliers of the constraints."""

    Z: np.ndarray
    c: np.ndarray
    q: np.ndarray
    R: np.ndarray
    eta: float
    smooth: list
    limits: list
    ceilings: list
    is_diagonal: bool
    shape: tuple

    @classmethod
    def of(cls, search, basis):
        judge, unit, T = search.judge, search.unit, basis.columns
        blocks = judge.given.blocks
        smooth = [block.smooth(T, unit) for block in blocks]
        found = cls(
            Z=in_doubles(judge.differences @ T),
            c=in_doubles(judge.weights / unit),
            q=in_doubles(judge.labels),
            R=in_doubles(T.T @ judge.regularizer @ T / unit),
            eta=judge.given.threshold,
            smooth=[one for one in smooth if one is not None],
            limits=[one for block in blocks for one in block.limits(T)],
            ceilings=[one for block in blocks for one in block.ceilings(T)],
            is_diagonal=any(block.is_diagonal for block in blocks),
            shape=(T.shape[1], T.shape[1]),
        )
        found.pushes = [0.0] * len(found.limits)
        found.lids = [np.zeros((len(W), len(W))) for W in found.ceilings]
        return found

    @property
    def has_constraints(self):
        return bool(self.limits or self.ceilings)

    def lagrangian(self, flat, loose):
        B = flat.reshape(self.shape)
        with np.errstate(all="ignore"):
            s = np.sum((self.Z @ B) ** 2, axis=1) - self.eta
            S = B @ B.T
            value = np.sum(self.c * (softplus(-s) + self.q * s)) + np.sum(self.R * S)
            slope = (self.Z.T * (self.c * (self.q - sigmoid(-s)))) @ self.Z + self.R
            for one in self.smooth:
                more, its_slope = one(S.astype(EXTENDED))
                value, slope = value + float(more), slope + in_doubles(its_slope)
            for (C, _, _), push in zip(self.limits, self._pushes(S, loose), strict=True):
                value, slope = value + loose / 2.0 * push**2, slope + push * C
            for W, lid in zip(self.ceilings, self._lids(S, loose), strict=True):
                value = value + loose / 2.0 * np.sum(lid**2)
                slope = slope + W.T @ lid @ W
        gradient = 2.0 * slope @ B
        if self.is_diagonal:
            gradient = np.diag(np.diag(gradient))
        if not (np.isfinite(value) and np.all(np.isfinite(gradient))):
            return 1e30, np.zeros(B.size)
        return float(value), gradient.ravel()

    def _pushes(self, S, loose):
        found = []
        for (C, d, is_equality), push in zip(self.limits, self.pushes, strict=True):
            moved = push + np.float64((np.sum(C * S) - d) / loose)
            found.append(moved if is_equality else max(0.0, moved))
        return found

    def _lids(self, S, loose):
        found = []
        for W, lid in zip(self.ceilings, self.lids, strict=True):
            moved = lid + (W @ S @ W.T - np.eye(len(W))) / loose
            if not np.all(np.isfinite(moved)):
                found.append(np.full_like(lid, np.nan))
                continue
            sizes, vectors = np.linalg.eigh((moved + moved.T) / 2.0)
            found.append((vectors * np.maximum(sizes, 0.0)) @ vectors.T)
        return found

    def update(self, B, loose):
        S = B @ B.T
        self.pushes, self.lids = self._pushes(S, loose), self._lids(S, loose)


def descend(value_and_slope, start, n_iterations):
    """Where L-BFGS ends."""
    with np.errstate(all="ignore"):
        found = minimize(
            value_and_slope,
            start.ravel(),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": n_iterations, "ftol": 0.0, "gtol": 0.0},
        )
    return found.x


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


def root_of_regularizer(judge):
    """F with F'F near R."""
    m = judge.n_features
    weight = max(EXTENDED(0), sum(map(EXTENDED, judge.given.trace_weights)))
    rows = np.sqrt(weight) * np.eye(m, dtype=EXTENDED)
    if not judge.given.terms:
        return rows
    extra = judge.regularizer - rows**2
    return np.vstack([rows, root_of(extra)])
