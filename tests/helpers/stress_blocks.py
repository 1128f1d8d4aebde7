"""Penalties and constraints as the judge knows them: by their definitions, in balls.

Nothing here is code of the package: a block is made of the numbers that a penalty was given. For
the search it also has its size along a direction, its slope, and a way to make a factor feasible.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from flint import arb
from high_precision import EXTENDED, exact, factored, total

EPS = np.finfo(EXTENDED).eps

INFEASIBLE = arb("+inf")
"""The value of a constraint where it is proven to be violated."""


def definite(matrix):
    """0 where a matrix is proven positive definite, `INFEASIBLE` where indefinite, else None."""
    _, pivot = factored(matrix)
    return arb(0) if pivot is None else INFEASIBLE if pivot < 0 else None


def judged(slack):
    """What a constraint says whose slack is this ball: 0, `INFEASIBLE` or None."""
    return arb(0) if slack >= 0 else INFEASIBLE if slack < 0 else None


@np.errstate(all="ignore")
def root_of(matrix, power=0.5):
    """K with K'K near |matrix|^(2 power), for a symmetric matrix, by its form of unit diagonal."""
    wide = np.array(matrix, dtype=EXTENDED)
    lengths = np.sqrt(np.abs(np.diag(wide)))
    largest = np.sqrt(np.max(np.abs(wide), initial=0))
    unit = np.where(lengths > 0, lengths, largest if largest > 0 else 1)
    scaled = (wide / unit[:, None] / unit).astype(np.float64)
    if not np.all(np.isfinite(scaled)):
        return np.zeros((0, len(wide)), dtype=EXTENDED)
    sizes, vectors = np.linalg.eigh(scaled)
    return (vectors * np.abs(sizes) ** power).T.astype(EXTENDED) * unit ** (2 * power)


@dataclass(frozen=True, eq=False)
class Block:
    """P(A) = `cost`, convex, where the `verdict` is 0; by default one that does nothing.

    Of one feature, `slope` is P'(a) and `interval` what is feasible. For searches, with A = TST',
    `rows` are K with |Kx|^2 = 1 where P(xx') is about `unit`, or about to violate a constraint;
    `size` is what no scaling of A takes away; `smooth` maps S to P/unit and its gradient;
    `constraints` are triples: a linear function of S that is to be zero, or minus a PSD matrix; its
    adjoint; whether it is to be zero. `made_feasible` is a factor near L, feasible or nearly so.
    """

    is_diagonal = False
    is_zero_on_diagonal = False

    def cost(self, A):
        return arb(0)

    def verdict(self, A):
        """0 where A is feasible, `INFEASIBLE` where infeasible; None where balls do not tell."""
        return arb(0)

    def value(self, A):
        verdict = self.verdict(A)
        return verdict if verdict is None or verdict is INFEASIBLE else self.cost(A)

    def slope(self, a):
        return arb(0)

    def interval(self):
        return arb(0), None

    def rows(self, m, unit):
        return np.zeros((0, m), dtype=EXTENDED)

    def size(self, m):
        return EXTENDED(0)

    def smooth(self, T, unit):
        return None

    def constraints(self, T):
        return []

    def made_feasible(self, L):
        return L


@dataclass(frozen=True, eq=False)
class Quadratic(Block):
    """weight/2 * ||A - prior||^2."""

    weight: float
    prior: np.ndarray

    def cost(self, A):
        return arb(self.weight) / 2 * total(x * x for x in (A - exact(self.prior)).entries())

    def slope(self, a):
        return arb(self.weight) * (a - arb(float(self.prior[0, 0])))

    def rows(self, m, unit):
        return (EXTENDED(self.weight) / unit) ** EXTENDED(0.25) * np.eye(m, dtype=EXTENDED)

    def size(self, m):
        negative = np.minimum(np.diag(self.prior).astype(EXTENDED), 0)  # no PSD matrix is nearer
        return EXTENDED(self.weight) / 2 * np.sum(np.square(negative))

    def smooth(self, T, unit):
        weight = EXTENDED(self.weight) / unit

        def at(S):
            off = T @ S @ T.T - self.prior
            return weight / 2 * np.sum(np.square(off)), weight * (T.T @ off @ T)

        return at


@dataclass(frozen=True, eq=False)
class Divergence(Block):
    """weight * (<Q, A> - log det A - log det Q - m); without Q, -weight * log det A."""

    weight: float
    inverse: np.ndarray | None = None

    def verdict(self, A):
        return definite(A)

    def cost(self, A):
        found = -A.det().log()
        if self.inverse is not None:
            Q = exact(self.inverse)
            found += (A * Q).trace() - Q.det().log() - A.nrows()
        return arb(self.weight) * found

    def slope(self, a):
        Q = 0 if self.inverse is None else arb(float(self.inverse[0, 0]))
        return arb(self.weight) * (Q - 1 / a) if a > 0 else -INFEASIBLE

    def rows(self, m, unit):
        return super().rows(m, unit) if self.inverse is None else root_of(self.inverse)

    def size(self, m):
        return EXTENDED(self.weight) * m

    def smooth(self, T, unit):
        weight, Q = EXTENDED(self.weight) / unit, 0
        if self.inverse is not None:
            Q = T.T @ self.inverse.astype(EXTENDED) @ T

        def at(S):
            S = S.astype(np.float64)
            sign, log_det = np.linalg.slogdet(S)
            if not sign > 0 or not np.isfinite(log_det):
                return EXTENDED(1e30), np.zeros_like(S)
            return weight * (np.sum(Q * S) - log_det), weight * (Q - np.linalg.inv(S))

        return at


@dataclass(frozen=True, eq=False)
class Ceiling(Block):
    """bound - A is PSD."""

    bound: np.ndarray

    def verdict(self, A):
        return definite(exact(self.bound) - A)

    def interval(self):
        return arb(0), arb(float(self.bound[0, 0]))

    def rows(self, m, unit):
        return root_of(self.bound, -0.5)

    def constraints(self, T):
        W = (self.rows(len(T), 1) @ T).astype(np.float64)
        return [(lambda S: W @ S @ W.T - np.eye(len(W)), lambda Y: W.T @ Y @ W, False)]

    def made_feasible(self, L):
        W = self.rows(len(L), 1)
        for margin in (1e-17, 1e-15, 1e-12, 1e-9):
            image = (W @ L).astype(np.float64)
            if not np.all(np.isfinite(image)):
                return 0 * L
            largest = np.linalg.norm(image, 2) ** 2 if image.size else 0.0
            if largest < 1.0 - margin:
                return L
            L = L * (np.sqrt((1 - EXTENDED(margin)) / EXTENDED(largest)) * (1 - EXTENDED(1e-17)))
            if self.verdict(exact(L) * exact(L).transpose()) == 0:
                return L
        return L


@dataclass(frozen=True, eq=False)
class OffDiagonalZero(Block):
    """A_ij = 0 for i != j."""

    is_diagonal = True
    is_zero_on_diagonal = True

    def verdict(self, A):
        entries = below_diagonal(A)
        if any(x > 0 or x < 0 for x in entries):
            return INFEASIBLE
        return arb(0) if all(x.is_zero() for x in entries) else None

    def made_feasible(self, L):
        return np.diag(np.sqrt(np.sum(np.square(L), axis=1)))


@dataclass(frozen=True, eq=False)
class OffDiagonalSum(Block):
    """weight * sum over i != j of |A_ij|."""

    weight: float

    is_zero_on_diagonal = True

    def cost(self, A):
        return 2 * arb(self.weight) * total(map(abs, below_diagonal(A)))

    def rows(self, m, unit):
        kept = np.eye(m, dtype=EXTENDED)[: 0 if m == 1 else m]
        return np.sqrt(EXTENDED(self.weight) / unit / m) * kept

    def smooth(self, T, unit):
        weight = EXTENDED(self.weight) / unit
        off = ~np.eye(len(T), dtype=bool)

        def at(S):
            A = T @ S @ T.T
            lengths = np.sqrt(np.maximum(np.diag(A), 0))
            soft = EXTENDED(1e-7) * np.outer(lengths, lengths) + EXTENDED(10) ** -4000
            size = np.sqrt(np.square(A) + np.square(soft))
            sign = np.where(off, A / size, 0)
            return weight * np.sum(size[off]), weight * (T.T @ sign @ T)

        return at


@dataclass(frozen=True, eq=False)
class Equations(Block):
    """<B_i, A> <= t_i + e_i, or |<B_i, A> - t_i| <= e_i; e_i = tolerance * (|t_i| + ||B_i||)."""

    matrices: np.ndarray
    bounds: np.ndarray
    is_equality: bool
    tolerance: float = 1e-9

    def _parts(self):
        """B_i, t_i and e_i as balls, one after the other."""
        for B, t in zip(self.matrices, self.bounds.tolist(), strict=True):
            length = total(x * x for x in exact(B).entries()).sqrt()
            yield exact(B), arb(t), arb(self.tolerance) * (abs(arb(t)) + length)

    def verdict(self, A):
        verdicts = []
        for B, t, e in self._parts():
            off = (B * A).trace() - t
            verdicts += [judged(e - off)] + [judged(e + off)] * self.is_equality
        if any(found is INFEASIBLE for found in verdicts):
            return INFEASIBLE
        return None if any(found is None for found in verdicts) else arb(0)

    def interval(self):
        low, high = arb(0), None
        for B, t, e in self._parts():
            b = B[0, 0]
            ends = [(t + e) / b] + [(t - e) / b] * self.is_equality
            for k, end in enumerate(ends):
                if (b > 0) == (k == 0):
                    high = end if high is None else high.min(end)
                else:
                    low = low.max(end)
        return low, high

    def _tolerances(self):
        lengths = np.sqrt(np.sum(np.square(self.matrices.astype(EXTENDED)), axis=(1, 2)))
        return EXTENDED(self.tolerance) * (np.abs(self.bounds) + lengths)

    def rows(self, m, unit):
        """Of the PSD ones: the others need not limit anything."""
        goals = self.bounds + self._tolerances()
        roots = [
            root_of(B) / np.sqrt(t) for B, t in zip(self.matrices, goals, strict=True) if t > 0
        ]
        return np.vstack([np.zeros((0, m), dtype=EXTENDED), *roots])

    def constraints(self, T):
        nudge = 0.0 if self.is_equality else 0.999  # bounds may be met with their tolerance
        found = []
        for B, d in zip(self.matrices, self.bounds + nudge * self._tolerances(), strict=True):
            C = T.T @ B.astype(EXTENDED) @ T
            size = max(np.max(np.abs(C)), abs(d))
            found.append(linear((C / size).astype(np.float64), float(d / size), self.is_equality))
        return found

    def made_feasible(self, L):
        """By Newton's method for the violated ones, in units of L; or L is shortened."""
        e, spare = self._tolerances(), 64 * EPS * np.abs(self.bounds)
        goal = self.bounds - spare + (0 if self.is_equality else 0.5) * e
        unit = np.sqrt(np.sum(np.square(L), axis=1, keepdims=True))
        unit = np.where(unit > 0, unit, 1)
        for _ in range(12):
            images = np.array([B.astype(EXTENDED) @ L for B in self.matrices])
            values = np.sum(images * L, axis=(1, 2))
            excess = values - goal
            active = np.full(len(goal), True) if self.is_equality else excess > 0
            if np.all(np.abs(excess[active]) <= (0.4 * e + spare / 2)[active]):
                return L
            slopes = 2 * (images * unit)[active].reshape(int(np.sum(active)), -1)
            sizes = np.sqrt(np.sum(np.square(slopes), axis=1))
            sizes = np.where(sizes > 0, sizes, 1)
            A, b = (x.astype(np.float64) for x in (slopes / sizes[:, None], excess[active] / sizes))
            if not (np.all(np.isfinite(A)) and np.all(np.isfinite(b))):
                break
            L = L - unit * np.linalg.lstsq(A, b, rcond=1e-12)[0].reshape(L.shape)
        if self.is_equality or not np.all(goal > 0):
            return L
        values = np.array([np.sum((B.astype(EXTENDED) @ L) * L) for B in self.matrices])
        return L * np.sqrt(np.min(goal / np.maximum(values, goal)))


def linear(C, d, is_equality):
    """The constraint <C, S> <= d, or with equality."""
    return lambda S: np.array([[np.sum(C * S) - d]]), lambda Y: Y[0, 0] * C, is_equality


def below_diagonal(A):
    return [A[i, j] for i in range(A.nrows()) for j in range(i)]


def symmetric(values):
    """A as it is where it is symmetric; else (A + A')/2, in doubles."""
    matrix = np.array(values, dtype=np.float64)
    return matrix if np.array_equal(matrix, matrix.T) else matrix / 2.0 + matrix.T / 2.0


def block_of(penalty, m):
    """The judge's block of one of the package's penalties, by the numbers it has now."""
    return {
        "Ridge": lambda p: Quadratic(
            float(p.weight), np.zeros((m, m)) if p.prior is None else symmetric(p.prior)
        ),
        # The inverse of the prior is the definition: its doubles count as exact.
        "LogDet": lambda p: Divergence(
            float(p.weight),
            np.eye(m) if p._inverse is None else np.array(p._inverse),
        ),
        "TraceBound": lambda p: Equations(np.eye(m)[None], np.array([float(p.weight)]), False, 0.0),
        "UpperBound": lambda p: Ceiling(symmetric(p.bound)),
        "Diagonal": lambda p: OffDiagonalZero(),
        "Sparse": lambda p: OffDiagonalSum(float(p.weight)),
        "LinearConstraints": lambda p: Equations(
            np.array([symmetric(B) for B in p.matrices]),
            np.array(p.bounds, dtype=float),
            p.is_equality,
            p.tolerance,
        ),
    }[type(penalty).__name__](penalty)
