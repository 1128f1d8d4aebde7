"""Linear programs, exactly: minimize c'x subject to a_i'x <= b_i or a_i'x = b_i.

HiGHS's dual simplex method says which n rows are met with equality at an optimal vertex, M x = b_M.
That system and M'y = -c are solved in rationals; where then b - Ax >= 0 and y >= 0, both without
error, c'x is the optimum. Where some sign is wrong, the program is seen through a magnifying glass
(Gleixner, Steffy and Wolter 2016): its right sides are taken from the exact x and its costs from
the exact y, both times powers of two, and the simplex method goes on from the same vertex.

An infeasible program ends at a vertex that violates a row, a_k'x > b_k, whose a_k is a combination
M'w with w <= 0: the multipliers (1, -w) prove it. Their rows are an irreducible conflict, since the
rows of M are independent.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import flint
import highspy
import numpy as np
import scipy

from .arithmetic import Array
from .rational import IntegerRows, Rational, fractions, rationals, solve_all
from .steps import Steps

TOLERANCE = 1e-9
"""Of the simplex method: HiGHS's default is 1e-7, and allows no less than 1e-10."""

BASIC, UPPER = (int(getattr(highspy.HighsBasisStatus, name)) for name in ("kBasic", "kUpper"))


@dataclass(frozen=True, eq=False)
class LinearProgram:
    """Minimize c'x subject to Ax <= b, with equality in some rows; b is rational."""

    A: Any  # scipy.sparse.csr_array
    b: list[Rational]
    c: Array
    is_equation: Array

    @cached_property
    def rows(self) -> IntegerRows:
        """The rows of A in integers."""
        return IntegerRows.of(self.A)

    @cached_property
    def bounds(self) -> tuple[Array, Array]:
        """The rows that are the tightest lower and upper bound of each variable, or -1."""
        found = np.full((2, len(self.c)), -1)
        counts = np.diff(self.A.indptr)
        for i in np.flatnonzero(counts == 1).tolist():
            k = self.A.indptr[i]
            j, is_upper = self.A.indices[k], self.A.data[k] > 0.0
            for side in (0, 1) if self.is_equation[i] else (int(is_upper),):
                other = found[side, j]
                if other < 0 or (self.end(i) < self.end(other)) == bool(side):
                    found[side, j] = i
        return found[0], found[1]

    def end(self, i: int) -> Rational:
        """The bound of a row with one variable."""
        return self.b[i] / flint.fmpq(*self.A.data[self.A.indptr[i]].as_integer_ratio())

    @cached_property
    def others(self) -> Array:
        """The rows with more than one variable."""
        return np.flatnonzero(np.diff(self.A.indptr) > 1)

    def slack(self, x: Sequence[Rational]) -> list[Rational]:
        """The vector b - Ax."""
        return [b - value for b, value in zip(self.b, self.rows.times(x), strict=True)]

    def value(self, x: Sequence[Rational]) -> Rational:
        """The objective."""
        return _inner(rationals(self.c), x)


class Vertex(NamedTuple):
    """The exact point where n rows are met with equality, and the multipliers that it implies.

    A row -1 - j stands for x_j = 0 of a variable without bounds.
    """

    active: list[int]
    x: list[Rational]
    y: list[Rational]  # of all rows of the program
    slack: list[Rational]
    off: list[Rational]  # multipliers of rows x_j = 0, which have to vanish


def _inner(a: Iterable[Rational], b: Iterable[Rational]) -> Rational:
    return sum((u * v for u, v in zip(a, b, strict=True) if u and v), flint.fmpq(0))


def _nearest(value: Rational) -> float:
    """A double near a rational, infinite beyond the largest."""
    try:
        return int(value.p) / int(value.q)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


class Simplex:
    """HiGHS with the program, whose rows with one variable are bounds."""

    def __init__(self, program: LinearProgram, seconds: float) -> None:
        self.program, self.highs = program, highspy.Highs()
        others = program.A[program.others]
        lp = highspy.HighsLp()
        lp.num_row_, lp.num_col_ = others.shape
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_, lp.a_matrix_.index_ = others.indptr, others.indices
        lp.a_matrix_.value_ = others.data
        (lp.col_lower_, lp.col_upper_), (lp.row_lower_, lp.row_upper_) = self._ends(program.b)
        lp.col_cost_ = program.c
        for name, value in {
            "output_flag": False,
            "solver": "simplex",
            "threads": 1,
            "primal_feasibility_tolerance": TOLERANCE,
            "dual_feasibility_tolerance": TOLERANCE,
            "time_limit": seconds,
        }.items():
            self.highs.setOptionValue(name, value)
        self.highs.passModel(lp)

    def _ends(self, b: Sequence[Rational], scale: Any = 1) -> tuple[Any, Any]:
        """Lower and upper ends of variables and of rows, for right sides times a scale."""
        program = self.program
        columns = np.full((2, len(program.c)), [[-math.inf], [math.inf]])
        for side, rows in enumerate(program.bounds):
            for j in np.flatnonzero(rows >= 0).tolist():
                i = rows[j]
                a = flint.fmpq(*program.A.data[program.A.indptr[i]].as_integer_ratio())
                columns[side, j] = _nearest(b[i] * scale / a)
        upper = np.array([_nearest(b[i] * scale) for i in program.others.tolist()])
        lower = np.where(program.is_equation[program.others], upper, -math.inf)
        return columns, (lower, upper)

    def run(self) -> Any:
        """Go on to an optimal vertex; the status is HiGHS's word."""
        self.highs.run()
        return self.highs.getModelStatus()

    def magnify(self, vertex: Vertex, costs: Array, scale: Rational) -> None:
        """See the program from a vertex: right sides are its slack, costs those that are left."""
        (lower, upper), rows = self._ends(vertex.slack, scale)
        n, k = len(lower), len(self.program.others)
        self.highs.changeColsBounds(n, np.arange(n, dtype=np.int32), lower, upper)
        self.highs.changeRowsBounds(k, np.arange(k, dtype=np.int32), *rows)
        self.highs.changeColsCost(n, np.arange(n, dtype=np.int32), costs)
        self.highs.setOptionValue("presolve", "off")

    def active(self) -> list[int]:
        """The rows that are met with equality at HiGHS's vertex; -1 - j for x_j = 0."""
        basis = self.highs.getBasis()
        columns, rows = (
            np.array([int(s) for s in part]) for part in (basis.col_status, basis.row_status)
        )
        lower, upper = self.program.bounds
        first, second = np.where(columns == UPPER, (upper, lower), (lower, upper))
        bound = np.where(first >= 0, first, second)
        bound = np.where(bound >= 0, bound, -1 - np.arange(len(bound)))
        rows_met = self.program.others[rows != BASIC]
        return [*rows_met.tolist(), *bound[columns != BASIC].tolist()]


def vertex_of(program: LinearProgram, active: list[int]) -> Vertex | None:
    """The exact vertex of some rows, or None if they are dependent or not as many as variables."""
    n = len(program.c)
    if len(active) != n:
        return None
    free = [-1 - i for i in active if i < 0]
    rows = [i for i in active if i >= 0]
    unit = scipy.sparse.csr_array(
        (np.ones(len(free)), (np.arange(len(free)), free)), shape=(len(free), n)
    )
    M = scipy.sparse.vstack([program.A[rows], unit], format="csr")
    zero = flint.fmpq(0)
    x = solve_all(M, [[program.b[i] for i in rows] + [zero] * len(free)])
    multipliers = solve_all(M.T, [[-v for v in rationals(program.c)]])
    if x is None or multipliers is None:
        return None
    y = [zero] * len(program.b)
    for i, value in zip(rows, multipliers[0], strict=False):
        y[i] = value
    return Vertex(active, x[0], y, program.slack(x[0]), multipliers[0][len(rows) :])
