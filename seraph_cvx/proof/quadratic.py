"""Quadratic programs whose P rounding may have made indefinite, such as a covariance matrix.

P + D is proven PSD for a diagonal D of the size of rounding errors. Where the constraints alone
imply |x_i| <= B_i for each D_ii > 0,

    x'(P + D)x/2 - sum_i D_ii B_i^2/2  <=  x'Px/2  <=  x'(P + D)x/2,

so both bounds of the program with P + D are bounds of the program itself, the lower one less a
constant. (A sublevel set of the objective bounds nothing here: the form may be indefinite.)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy

from .arithmetic import TINY, Array, power_of_two_below, two_sum
from .exact import inner_product, is_psd, matrix_product
from .gram import DENSE_ORDER, MOST_DENSE, shift_to_psd
from .program import ConicProgram, Refused, lower_triangle
from .rational import rationals
from .rounding import FEW_ROUNDINGS, SECOND_ORDER, UNIT, gamma

LARGEST_SHIFT = 2.0**-30
"""D_ii relative to P_ii, at most: above the 1e-10 up to which CVXPY takes a matrix to be PSD."""

LARGEST_ERROR = 2.0**-20
"""Of a factor, relative to the diagonal of P: 4,000 pivots of 2^-32, which CVXPY drops."""

FEW = 40
"""Blocks of P up to this order are decided in rational numbers: 20 ms at most."""

ROUNDS = 20
"""How often bounds on columns are propagated: each round may reach one constraint further."""


class Implied(NamedTuple):
    """Row `row` of the multipliers of slacks in K implies a bound of a column."""

    column: int
    multipliers: dict[int, float]


@dataclass(frozen=True, eq=False)
class Convexified:
    """A conic program with P + D, D = `shift`, and what its lower bounds exceed the program's by.

    `loss` is None where the constraints do not bound all the columns that it takes.
    """

    program: ConicProgram
    shift: Array
    implied: tuple[Implied, ...] = ()
    loss: Fraction | None = None

    @property
    def words(self) -> str:
        """What is added, and what that costs."""
        most = float(self.shift.max())
        if self.loss is None:
            why = "constraints do not bound its columns, and the program so changed is proven"
        else:
            why = f"lower bounds lose {float(self.loss):.2g}"
        return f"P is proven PSD with up to {most:.2g} added to its diagonal; {why}"


def convexified(program: ConicProgram, tolerance: float = 0.0) -> Convexified | None:
    """The program with a P that is proven PSD; None where its own is."""
    if program.P is None:
        return None
    shift = diagonal_shift(program.P)
    if not shift.any():
        return None
    diagonal = program.P.diagonal()
    above = diagonal + shift  # rounded; the difference of neighbors is exact
    shift = above - diagonal
    if (two_sum(above, -diagonal)[1] != 0.0).any():
        raise Refused("The diagonal of P cannot be shifted without rounding: scale the data.")
    shifted = replace(program, P=program.P + scipy.sparse.diags_array(shift))
    box = ColumnBounds(program, tolerance)
    box.propagate(shift > 0.0)
    size = np.maximum(np.abs(box.lower), np.abs(box.upper))[shift > 0.0]
    if not np.isfinite(size).all():
        return Convexified(shifted, shift)
    squares = [Fraction(B) ** 2 for B in size.tolist()]
    loss = inner_product(shift[shift > 0.0].tolist(), squares) / 2
    return Convexified(shifted, shift, tuple(box.implied), loss)


def diagonal_shift(P: Any) -> Array:
    """The least D, nearly, with P + diag(D) proven PSD, zero where P itself is; or a refusal."""
    label = scipy.sparse.csgraph.connected_components(P, directed=False)[1]
    order, counts, rows = np.argsort(label, kind="stable"), np.bincount(label), P.tocsr()
    shift, ends = np.zeros(P.shape[0]), np.cumsum(counts)
    if (P.diagonal()[counts[label] == 1] < 0.0).any():
        raise Refused("P has a negative entry on its diagonal: the objective is not convex.")
    for k in np.flatnonzero(counts > 1):
        members = order[ends[k] - counts[k] : ends[k]]
        shift[members] = _shift_of_block(rows[members][:, members])
    return shift


def _shift_of_block(block: Any) -> Array:
    """The same of a block whose rows hang together."""
    n = block.shape[0]
    if n <= FEW and is_psd([rationals(row) for row in block.toarray()]):
        return np.zeros(n)
    diagonal = block.diagonal()
    size = np.maximum(diagonal, LARGEST_SHIFT**2 * float(abs(block).max()))
    scale = 1.0 / power_of_two_below(np.sqrt(size))
    S = scipy.sparse.diags_array(scale)
    scaled = scipy.sparse.csc_array(S @ block @ S)
    if n <= DENSE_ORDER:
        scaled = scaled.toarray()
    share = shift_to_psd(scaled, LARGEST_SHIFT) if np.isfinite(abs(scaled).max()) else None
    if share is not None:
        return share / (scale * scale)
    raise Refused(_why_not_psd(block, scale))


def _why_not_psd(block: Any, scale: Array) -> str:
    """Words about a block that no small shift makes PSD: a direction of negative curvature."""
    cure = "Write it as cp.sum_squares(F @ x) with P = F'F, or drop its negative eigenvalues."
    if len(scale) <= MOST_DENSE:
        dense = block.toarray() * scale[:, None] * scale
        vector = np.linalg.eigh(dense)[1][:, 0] * scale
        v = [Fraction(x) for x in vector.tolist()]
        curvature = inner_product(v, matrix_product(block, v))
        if curvature < 0:
            share = float(curvature) / float(np.square(vector / scale).sum())
            return (
                "The matrix of a quadratic form is proven to have a negative eigenvalue, "
                f"{share:.1e} relative to its diagonal: the problem is not convex. {cure}"
            )
    return f"The matrix of a quadratic form is not proven PSD: its factors are too large. {cure}"


def error_of_factor(P: Any, unit: float, F: Any) -> float:
    """Some e with |x'Px - unit |F'x|^2| <= e sum_i P_ii x_i^2, F the factor of CVXPY.

    CVXPY drops pivots below 2^-32 of the largest: rounding errors of a covariance matrix or a
    kernel, and all that there is of x_2 in x_1^2 + 2^-57 x_2^2, which is refused.
    """
    P, F = (M.toarray() if scipy.sparse.issparse(M) else np.asarray(M) for M in (P, F))
    F = F.reshape(len(P), -1)
    rounding = 2.0 * gamma(F.shape[1] + FEW_ROUNDINGS)
    with np.errstate(all="ignore"):
        size = np.abs(P) + unit * (np.abs(F) @ np.abs(F).T)
        error = np.abs(P - unit * (F @ F.T)) + rounding * size
        root = np.sqrt(P.diagonal())
        most = np.max((error / root).sum(axis=1, where=error > 0.0) / root, initial=0.0)
    if not most <= LARGEST_ERROR:
        raise Refused(
            "CVXPY factors the matrix P of a quad_form that is no term of the objective, and "
            "drops its small eigenvalues: write it as cp.sum_squares(F @ x), P = F'F."
        )
    return float(most) * SECOND_ORDER


def is_proven_psd(P: Any) -> bool:
    """Whether a sparse symmetric matrix of doubles is proven PSD as it is."""
    try:
        return not diagonal_shift(P).any()
    except Refused:
        return False


class ColumnBounds:
    """Bounds of columns that the constraints alone imply, and the steps that imply them.

    A multiplier in K* of the slack b - Ax gives an inequality, and each inequality bounds any of
    its columns if the others are bounded on the side that matters.
    """

    def __init__(self, program: ConicProgram, tolerance: float = 0.0) -> None:
        self.multipliers = _multipliers(program)
        self.rows = scipy.sparse.csr_array(self.multipliers @ program.A)
        self.rows.eliminate_zeros()
        self.b = self.multipliers @ program.b
        if tolerance:  # slacks s with s + tolerance * e in K count, e no larger than 1
            allowed = tolerance * abs(self.multipliers).sum(axis=1)
            self.b = self.b + (allowed + 4.0 * UNIT * (np.abs(self.b) + allowed))
        n = len(program.c)
        self.lower, self.upper = np.full(n, -np.inf), np.full(n, np.inf)
        self.implied: list[Implied] = []

    def propagate(self, wanted: Array) -> None:
        """Find both bounds of the columns that are wanted, if constraints imply them."""
        found: list[tuple[int, int, bool]] = []
        for _ in range(ROUNDS):
            if np.isfinite(self.lower[wanted]).all() and np.isfinite(self.upper[wanted]).all():
                break
            new = self._round()
            found += new
            if not new:
                break
        needed = {(j, side) for j in np.flatnonzero(wanted).tolist() for side in (False, True)}
        table, steps = self.rows, []
        for row, column, is_upper in reversed(found):
            if (column, is_upper) in needed:
                steps.append(self._step(row, column))
                span = slice(table.indptr[row], table.indptr[row + 1])
                entries = zip(table.indices[span].tolist(), table.data[span].tolist(), strict=True)
                needed |= {(j, a < 0.0) for j, a in entries if j != column}
        self.implied = steps[::-1]

    def _step(self, row: int, column: int) -> Implied:
        of = self.multipliers
        span = slice(of.indptr[row], of.indptr[row + 1])
        return Implied(
            column, dict(zip(of.indices[span].tolist(), of.data[span].tolist(), strict=True))
        )

    def _round(self) -> list[tuple[int, int, bool]]:
        """Bounds that were infinite and that some row now implies, as (row, column, is upper)."""
        table = self.rows.tocoo()
        a, i, j = table.data, table.row, table.col
        least = np.where(a > 0.0, self.lower[j], self.upper[j])
        unknown = ~np.isfinite(least)
        term = a * np.where(unknown, 0.0, least)
        m = table.shape[0]
        missing = np.bincount(i, unknown, m)[i] - unknown
        rest = np.bincount(i, term, m)[i] - term
        size = np.bincount(i, np.abs(term), m)[i] + np.abs(self.b)[i]
        roundings = int(np.diff(self.rows.indptr).max(initial=0)) + FEW_ROUNDINGS
        with np.errstate(all="ignore"):
            bound = (self.b[i] - rest + 2.0 * gamma(roundings) * size + TINY) / a
            bound += np.copysign(4.0 * UNIT * np.abs(bound) + TINY, a)
        sides = np.where(a > 0.0, self.upper[j], self.lower[j])
        news = np.flatnonzero((missing == 0) & ~np.isfinite(sides) & np.isfinite(bound))
        news = news[np.argsort(np.sign(a[news]) * bound[news], kind="stable")]
        first = np.unique(2 * j[news] + (a[news] > 0.0), return_index=True)[1]
        chosen = news[first]
        up = a[chosen] > 0.0
        self.upper[j[chosen[up]]] = bound[chosen[up]]
        self.lower[j[chosen[~up]]] = bound[chosen[~up]]
        return list(zip(i[chosen].tolist(), j[chosen].tolist(), up.tolist(), strict=True))


def _multipliers(program: ConicProgram) -> Any:
    """Rows of multipliers in K*, such that their products with A and b are not rounded.

    One row each, two of a second-order cone, and two of which all but one entry cancels, such as
    x - t <= 0 and -x - t <= 0.
    """
    A, b = program.A.tocsr(), program.b
    single: list[tuple[int, float]] = []
    pairs: list[tuple[int, int, float]] = []
    alike: dict[Any, list[int]] = {}
    start = 0
    for cone in program.cones:
        rows = range(start, start + cone.rows)
        if cone.kind in ("zero", "nonnegative"):
            single += [(i, 1.0) for i in rows]
        if cone.kind == "zero":
            single += [(i, -1.0) for i in rows]
        if cone.kind == "second_order":
            pairs += [(start, i, sign) for i in rows[1:] for sign in (1.0, -1.0)]
        if cone.kind == "psd":
            row, column = lower_triangle(cone.side)
            single += [(start + k, 1.0) for k in np.flatnonzero(row == column).tolist()]
        if cone.kind == "nonnegative":
            for i in rows:
                part = slice(A.indptr[i], A.indptr[i + 1])
                key = A.indices[part].tobytes(), np.abs(A.data[part]).tobytes()
                alike.setdefault(key, []).append(i)
        start += cone.rows
    for group in alike.values():
        pairs += [(i, k, 1.0) for i, k in pairwise(group)]
    exact = [(i, k, sign) for i, k, sign in pairs if _adds_exactly(A, b, i, k, sign)]
    m, ones = len(single), np.ones(len(exact))
    rows_of = np.concatenate([np.arange(m), np.tile(m + np.arange(len(exact)), 2)])
    slacks = [i for i, _ in single] + [i for i, _, _ in exact] + [k for _, k, _ in exact]
    data = [sign for _, sign in single] + ones.tolist() + [sign for _, _, sign in exact]
    shape = m + len(exact), len(b)
    return scipy.sparse.csr_array((data, (rows_of, np.array(slacks, dtype=np.int64))), shape=shape)


def _adds_exactly(A: Any, b: Array, i: int, k: int, sign: float) -> bool:
    """Whether row i of A and b plus `sign` times row k is not rounded."""
    first, second = (
        dict(zip(A.indices[s].tolist(), A.data[s].tolist(), strict=True))
        for s in (slice(A.indptr[r], A.indptr[r + 1]) for r in (i, k))
    )
    ends = [(float(b[i]), sign * float(b[k]))]
    ends += [(first[j], sign * second[j]) for j in first.keys() & second.keys()]
    return all(Fraction(u) + Fraction(v) == Fraction(u + v) for u, v in ends)
