"""Penalties and constraints as the search for worst cases sees them, in extended precision.

With A = TST': how large a block is along a direction, its value and slope where it is smooth, what
it demands where it is a constraint, and a way to make a factor feasible. The judge has their
definitions, and the last word.
"""

from __future__ import annotations

import numpy as np
from high_precision import EXTENDED

EPS = np.finfo(EXTENDED).eps


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


class Sought:
    """A block of the judge's, as numbers; by default one that the search need not know of.

    `rows` are K with |Kx|^2 = 1 where P(xx') is about `unit`, or about to violate a constraint;
    `size` is what no scaling of A takes away; `smooth` maps S to P/unit and its gradient;
    `constraints` are triples: a linear function of S that is to be zero, or minus a PSD matrix; its
    adjoint; whether it is to be zero. `made_feasible` is a factor near L, feasible or nearly so.
    """

    is_diagonal = False

    def __init__(self, block):
        self.block = block

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


class SoughtQuadratic(Sought):
    def rows(self, m, unit):
        return (EXTENDED(self.block["weight"]) / unit) ** EXTENDED(0.25) * np.eye(m, dtype=EXTENDED)

    def size(self, m):
        """No PSD matrix is nearer to the prior than its negative diagonal entries are to zero."""
        negative = np.minimum(np.diag(self.block["prior"]).astype(EXTENDED), 0)
        return EXTENDED(self.block["weight"]) / 2 * np.sum(np.square(negative))

    def smooth(self, T, unit):
        weight = EXTENDED(self.block["weight"]) / unit

        def at(S):
            off = T @ S @ T.T - self.block["prior"]
            return weight / 2 * np.sum(np.square(off)), weight * (T.T @ off @ T)

        return at


class SoughtDivergence(Sought):
    def rows(self, m, unit):
        return root_of(self.block["inverse"])

    def size(self, m):
        return EXTENDED(self.block["weight"]) * m

    def smooth(self, T, unit):
        weight = EXTENDED(self.block["weight"]) / unit
        Q = T.T @ self.block["inverse"].astype(EXTENDED) @ T

        def at(S):
            S = S.astype(np.float64)
            sign, log_det = np.linalg.slogdet(S)
            if not sign > 0 or not np.isfinite(log_det):
                return EXTENDED(1e30), np.zeros_like(S)
            return weight * (np.sum(Q * S) - log_det), weight * (Q - np.linalg.inv(S))

        return at


class SoughtDiagonal(Sought):
    is_diagonal = True

    def made_feasible(self, L):
        return np.diag(np.sqrt(np.sum(np.square(L), axis=1)))


class SoughtSum(Sought):
    def rows(self, m, unit):
        kept = np.eye(m, dtype=EXTENDED)[: 0 if m == 1 else m]
        return np.sqrt(EXTENDED(self.block["limit"]) / unit / m) * kept

    def smooth(self, T, unit):
        weight = EXTENDED(self.block["limit"]) / unit
        off = ~np.eye(len(T), dtype=bool)

        def at(S):
            A = T @ S @ T.T
            lengths = np.sqrt(np.maximum(np.diag(A), 0))
            soft = EXTENDED(1e-7) * np.outer(lengths, lengths) + EXTENDED(10) ** -4000
            size = np.sqrt(np.square(A) + np.square(soft))
            sign = np.where(off, A / size, 0)
            return weight * np.sum(size[off]), weight * (T.T @ sign @ T)

        return at


class SoughtTrace(Sought):
    def rows(self, m, unit):
        return np.eye(m, dtype=EXTENDED) / np.sqrt(EXTENDED(self.block["bound"]))

    def constraints(self, T):
        C, d = T.T @ T, self.block["bound"]
        size = max(np.max(np.abs(C)), d)
        return [linear((C / size).astype(np.float64), float(d / size))]

    def made_feasible(self, L):
        """Shortened until its square is within the bound."""
        goal = self.block["bound"] * (1 - 64 * EPS)
        return L * np.sqrt(goal / np.maximum(np.sum(np.square(L)), goal))


def linear(C, d):
    """The constraint <C, S> <= d."""
    return lambda S: np.array([[np.sum(C * S) - d]]), lambda Y: Y[0, 0] * C, False


def sought(block):
    """What the search knows of a block, by the name of its kind."""
    kind = block["kind"]
    if kind == "off_diagonal":
        return SoughtDiagonal(block) if block["limit"] is None else SoughtSum(block)
    return {"quadratic": SoughtQuadratic, "log_det": SoughtDivergence}.get(kind, SoughtTrace)(block)
