"""Penalties and constraints as the judge knows them: by their definitions, in balls.

Nothing here is code of the package: a block is made of the numbers that a penalty was given. For
the search it also has its size along a direction, its slope, and a way to make a factor feasible.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from flint import arb, arb_mat
from stress_numbers import EXTENDED, balls, cholesky, is_indefinite, is_positive_definite, root_of

TINY = EXTENDED(10) ** -4000

NOWHERE = arb("+inf")
"""The value of a constraint where it is proven to be violated."""


@dataclass(frozen=True, eq=False)
class Block:
    """P(A), convex; by default one that does nothing.

    Methods
    -------
    value(A)
        P as a ball at an arb_mat, `NOWHERE` where A is proven infeasible, None where balls do not
        tell.
    value_on_line(a), slope(a), interval()
        For one feature: P(a) and P'(a), and the least and the largest a that are feasible.
    rows(m, unit)
        K with |Kx|^2 = 1 where P(xx') is about `unit`, or xx' is about to violate a constraint.
    size(m)
        How much P adds to F that no scaling of A takes away.
    smooth(T, unit)
        A function S -> (P/unit, its gradient) at A = TST', for the search; None if P has no such.
    limits(T)
        Constraints on S: triples (C, d, is_equality) of <C, S> <= d, scaled to size one.
    ceilings(T)
        Matrices W with I - WSW' PSD.
    repaired(L)
        A factor near L that is feasible, or nearly so.
    """

    is_diagonal = False

    def value(self, A):
        return arb(0)

    def value_on_line(self, a):
        return self.value(arb_mat(1, 1, [a]))

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

    def limits(self, T):
        return []

    def ceilings(self, T):
        return []

    def repaired(self, L):
        return L


@dataclass(frozen=True, eq=False)
class Quadratic(Block):
    """weight/2 * ||A - prior||^2."""

    weight: float
    prior: np.ndarray | None = None

    def _prior(self, m):
        return np.zeros((m, m)) if self.prior is None else self.prior

    def value(self, A):
        off = A - balls(self._prior(A.nrows()))
        return arb(self.weight) / 2 * sum((x * x for x in off.entries()), arb(0))

    def slope(self, a):
        return arb(self.weight) * (a - arb(float(self._prior(1)[0, 0])))

    def rows(self, m, unit):
        length = (EXTENDED(self.weight) / unit) ** EXTENDED(0.25)
        return length * np.eye(m, dtype=EXTENDED)

    def size(self, m):
        prior = self._prior(m).astype(EXTENDED)
        negative = np.minimum(np.diag(prior), 0)  # no PSD matrix comes nearer
        return EXTENDED(self.weight) / 2 * np.sum(np.square(negative))

    def smooth(self, T, unit):
        prior, weight = self._prior(len(T)).astype(EXTENDED), EXTENDED(self.weight) / unit

        def at(S):
            off = T @ S @ T.T - prior
            return weight / 2 * np.sum(np.square(off)), weight * (T.T @ off @ T)

        return at


@dataclass(frozen=True, eq=False)
class Divergence(Block):
    """weight * (<Q, A> - log det A - log det Q - m); without Q, -weight * log det A."""

    weight: float
    inverse: np.ndarray | None = None

    def value(self, A):
        if not is_positive_definite(A):
            return None if not is_indefinite(A) else NOWHERE
        found = -A.det().log()
        if self.inverse is not None:
            Q = balls(self.inverse)
            found += (A * Q).trace() - Q.det().log() - A.nrows()
        return arb(self.weight) * found

    def slope(self, a):
        Q = arb(0) if self.inverse is None else arb(float(self.inverse[0, 0]))
        return arb(self.weight) * (Q - 1 / a) if a > 0 else -NOWHERE

    def rows(self, m, unit):
        return np.zeros((0, m)) if self.inverse is None else root_of(self.inverse)

    def size(self, m):
        return EXTENDED(self.weight) * m

    def smooth(self, T, unit):
        weight = EXTENDED(self.weight) / unit
        Q = np.zeros((len(T),) * 2, dtype=EXTENDED)
        Q = T.T @ (Q if self.inverse is None else self.inverse.astype(EXTENDED)) @ T

        def at(S):
            S = S.astype(np.float64)
            sign, log_det = np.linalg.slogdet(S)
            if not sign > 0 or not np.isfinite(log_det):
                return EXTENDED(1e30), np.zeros_like(S)
            try:
                inverse = np.linalg.inv(S)
            except np.linalg.LinAlgError:
                return EXTENDED(1e30), np.zeros_like(S)
            return weight * (np.sum(Q * S) - log_det), weight * (Q - inverse)

        return at


@dataclass(frozen=True, eq=False)
class TraceLimit(Block):
    """tr(A) <= bound."""

    bound: float

    def value(self, A):
        return judged(arb(self.bound) - A.trace())

    def value_on_line(self, a):
        return arb(0)  # the interval is all

    def interval(self):
        return arb(0), arb(self.bound)

    def rows(self, m, unit):
        return np.eye(m, dtype=EXTENDED) / np.sqrt(EXTENDED(self.bound))

    def limits(self, T):
        return [scaled_limit(T.T @ T, EXTENDED(self.bound), False)]

    def repaired(self, L):
        trace = np.sum(np.square(L))
        share = EXTENDED(self.bound) / trace if trace > self.bound else EXTENDED(1)
        return L if share == 1 else L * (np.sqrt(share) * (1 - 64 * np.finfo(EXTENDED).eps))


@dataclass(frozen=True, eq=False)
class Ceiling(Block):
    """bound - A is PSD."""

    bound: np.ndarray

    def value(self, A):
        left = balls(self.bound) - A
        if is_positive_definite(left):
            return arb(0)
        return NOWHERE if is_indefinite(left) else None

    def value_on_line(self, a):
        return arb(0)

    def interval(self):
        return arb(0), arb(float(self.bound[0, 0]))

    def _inverse_root(self):
        """W with W'W near the inverse of the bound; None where it has none in this precision."""
        F = cholesky(self.bound)
        if F is None:
            return None
        W = np.zeros_like(F)
        for j in range(len(F)):
            column = np.eye(len(F), dtype=EXTENDED)[:, j]
            for i in range(len(F)):
                W[i, j] = (column[i] - F[i, :i] @ W[:i, j]) / F[i, i]
        return W

    def rows(self, m, unit):
        W = self._inverse_root()
        return np.zeros((0, m)) if W is None else W

    def ceilings(self, T):
        W = self._inverse_root()
        return [] if W is None else [(W @ T).astype(np.float64)]

    def repaired(self, L):
        W = self._inverse_root()
        if W is None:
            return 0 * L
        for margin in (1e-17, 1e-15, 1e-12, 1e-9):
            image = (W @ L).astype(np.float64)
            if not np.all(np.isfinite(image)):
                return 0 * L
            largest = np.linalg.norm(image, 2) ** 2 if image.size else 0.0
            if largest < 1.0 - margin:
                return L
            L = L * (np.sqrt((1 - EXTENDED(margin)) / EXTENDED(largest)) * (1 - EXTENDED(1e-17)))
            factor = balls(L)
            if is_positive_definite(balls(self.bound) - factor * factor.transpose()):
                return L
        return L


@dataclass(frozen=True, eq=False)
class OffDiagonalZero(Block):
    """A_ij = 0 for i != j."""

    is_diagonal = True

    def value(self, A):
        m = A.nrows()
        entries = [A[i, j] for i in range(m) for j in range(i)]
        if all(x.is_zero() for x in entries):
            return arb(0)
        return NOWHERE if any(x > 0 or x < 0 for x in entries) else None

    def repaired(self, L):
        return np.diag(np.sqrt(np.sum(np.square(L), axis=1)))


@dataclass(frozen=True, eq=False)
class OffDiagonalSum(Block):
    """weight * sum over i != j of |A_ij|."""

    weight: float

    def value(self, A):
        m = A.nrows()
        entries = (abs(A[i, j]) for i in range(m) for j in range(i))
        return 2 * arb(self.weight) * sum(entries, arb(0))

    def rows(self, m, unit):
        if m == 1:
            return np.zeros((0, m))
        return np.sqrt(EXTENDED(self.weight) / unit / m) * np.eye(m, dtype=EXTENDED)

    def smooth(self, T, unit):
        weight = EXTENDED(self.weight) / unit
        off = ~np.eye(len(T), dtype=bool)

        def at(S):
            A = T @ S @ T.T
            lengths = np.sqrt(np.maximum(np.diag(A), 0))
            soft = EXTENDED(1e-7) * np.outer(lengths, lengths) + TINY
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
            length = sum((x * x for x in balls(B).entries()), arb(0)).sqrt()
            yield balls(B), arb(t), arb(self.tolerance) * (abs(arb(t)) + length)

    def value(self, A):
        verdicts = []
        for B, t, e in self._parts():
            off = (B * A).trace() - t
            verdicts.append(judged(e - off))
            if self.is_equality:
                verdicts.append(judged(e + off))
        if any(found is NOWHERE for found in verdicts):
            return NOWHERE
        return None if any(found is None for found in verdicts) else arb(0)

    def value_on_line(self, a):
        return arb(0)

    def interval(self):
        low, high = arb(0), None
        for B, t, e in self._parts():
            b = B[0, 0]
            ends = [(t + e) / b] + ([(t - e) / b] if self.is_equality else [])
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
        found = [np.zeros((0, m), dtype=EXTENDED)]
        for B, t, e in zip(self.matrices, self.bounds, self._tolerances(), strict=True):
            if t + e > 0:
                found.append(root_of(B) / np.sqrt(EXTENDED(t) + e))
        return np.vstack(found)

    def limits(self, T):
        nudge = 0.0 if self.is_equality else 0.999  # bounds may be met with their tolerance
        goals = self.bounds.astype(EXTENDED) + nudge * self._tolerances()
        turned = (T.T @ B.astype(EXTENDED) @ T for B in self.matrices)
        return [scaled_limit(C, t, self.is_equality) for C, t in zip(turned, goals, strict=True)]

    def repaired(self, L):
        """By Newton's method for the violated ones, in units in which L has size one."""
        goal = self.bounds.astype(EXTENDED)
        e = self._tolerances()
        unit = np.sqrt(np.sum(np.square(L), axis=1, keepdims=True))
        unit = np.where(unit > 0, unit, 1)
        for _ in range(12):
            images = np.array([B.astype(EXTENDED) @ L for B in self.matrices])
            excess = np.sum(images * L, axis=(1, 2)) - goal
            if self.is_equality:
                active = np.ones(len(goal), dtype=bool)
                is_done = np.all(np.abs(excess) <= 0.5 * e)
            else:
                excess = excess - 0.5 * e
                active = excess > 0
                is_done = not np.any(excess > 0.4 * e)
            if is_done:
                break
            slopes = 2 * (images * unit)[active].reshape(int(np.sum(active)), -1)
            sizes = np.sqrt(np.sum(np.square(slopes), axis=1))
            sizes = np.where(sizes > 0, sizes, 1)
            A = (slopes / sizes[:, None]).astype(np.float64)
            b = (excess[active] / sizes).astype(np.float64)
            if not (np.all(np.isfinite(A)) and np.all(np.isfinite(b))):
                break
            step = np.linalg.lstsq(A, b, rcond=1e-12)[0].reshape(L.shape)
            L = L - unit * step
        return L


def judged(slack):
    """What a constraint says whose slack is this ball: 0, `NOWHERE` or None."""
    if slack >= 0:
        return arb(0)
    return NOWHERE if slack < 0 else None


def scaled_limit(C, d, is_equality):
    """The constraint <C, S> <= d divided by its size."""
    size = max(np.max(np.abs(C)), abs(d))
    return (C / size).astype(np.float64), float(d / size), is_equality


def block_of(penalty, n_features, **given):
    """The judge's block of one of the package's penalties, by the numbers it has now.

    Numbers that are `given` (weight, prior, bound, matrices, bounds) count instead of its own.
    """
    kind, own = type(penalty).__name__, vars(penalty)

    def number(name, default=None):
        value = given.get(name, own.get(name, default))
        return float(value)

    def array(name):
        value = given.get(name, own.get(name))
        return None if value is None else symmetric(value)

    if kind == "Ridge":
        return Quadratic(number("weight"), array("prior"))
    if kind == "LogDet":
        Q = penalty._given_inverse  # the definition: its doubles count as exact
        return Divergence(number("weight"), np.eye(n_features) if Q is None else np.array(Q))
    if kind == "TraceBound":
        return TraceLimit(number("weight"))
    if kind == "UpperBound":
        return Ceiling(array("bound"))
    if kind == "Diagonal":
        return OffDiagonalZero()
    if kind == "Sparse":
        return OffDiagonalSum(number("weight"))
    if kind == "LinearConstraints":
        matrices = np.array(given.get("matrices", penalty.matrices), dtype=float)
        return Equations(
            np.array([symmetric(B) for B in matrices]),
            np.array(given.get("bounds", penalty.bounds), dtype=float),
            penalty.is_equality,
            penalty.tolerance,
        )
    raise TypeError(f"The judge knows no {kind}.")


def symmetric(values):
    """A as it is where it is symmetric; else (A + A')/2, in doubles."""
    matrix = np.array(values, dtype=np.float64)
    return matrix if np.array_equal(matrix, matrix.T) else matrix / 2.0 + matrix.T / 2.0
