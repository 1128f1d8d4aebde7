"""Linear programs in rationals: minimize c'x subject to a_i'x <= b_i or a_i'x = b_i.

HiGHS's simplex method says which n rows are met with equality at an optimal vertex, M x = b_M. That
system and M'y = -c are solved in rationals; where then b - Ax >= 0 and y >= 0, both without error,
c'x is the optimum. Where some sign is wrong, the program is seen through a magnifying glass
(Gleixner, Steffy and Wolter 2016): its right sides are taken from the exact x and its costs from
the exact y, both times powers of two, and the simplex method goes on from the same vertex. What
that does not mend, pivots in rationals do; they end at an optimum, or along a ray.

A ray of multipliers comes from a vertex that violates a row, a_k'x > b_k, whose a_k is M'w with
w <= 0: (1, -w) proves that no point is feasible. HiGHS says which row. The rows of the ray are an
irreducible conflict, since the rows of M are independent.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import flint
import highspy
import numpy as np
import scipy

from .arithmetic import Array
from .rational import IntegerRows, Rational, rationals, shifted, solve_all
from .steps import Steps
from .upper_bound import ROUNDED

TOLERANCE = 1e-9
"""Of the simplex method: HiGHS's default is 1e-7, and it takes nothing below 1e-10."""

LONGEST = 60.0
"""Seconds of one run of HiGHS, which Ctrl-C does not end: that of a file of the libraries."""

FAR = 2**20
"""Multipliers a million times a violation are out of reach of what removes it."""

CANCELED = 2.0**-50
"""What cancellation leaves of a number, relatively, after a few operations."""

BASIC, UPPER = (int(getattr(highspy.HighsBasisStatus, name)) for name in ("kBasic", "kUpper"))
HIGHS: Any = highspy.Highs
ZERO, ONE = flint.fmpq(0), flint.fmpq(1)


@dataclass(frozen=True, eq=False)
class LinearProgram:
    """Minimize c'x subject to Ax <= b, with equality in some rows; b and c are rational."""

    A: Any  # scipy.sparse.csr_array
    b: list[Rational]
    c: list[Rational]
    is_equation: Array

    @cached_property
    def rows(self) -> IntegerRows:
        """The rows of A in integers."""
        return IntegerRows.of(self.A)

    @cached_property
    def others(self) -> Array:
        """The rows with more than one variable."""
        return np.flatnonzero(np.diff(self.A.indptr) > 1)

    @cached_property
    def bounds(self) -> tuple[Array, Array]:
        """The rows that are the tightest lower and upper bound of each variable, or -1."""
        found = np.full((2, len(self.c)), -1)
        single = np.flatnonzero(np.diff(self.A.indptr) == 1)
        entries = self.A.indptr[single]
        columns, is_upper = self.A.indices[entries].tolist(), self.A.data[entries] > 0.0
        both = self.is_equation[single]
        for side, chosen in enumerate((~is_upper | both, is_upper | both)):
            for i, j, is_bound in zip(single.tolist(), columns, chosen.tolist(), strict=True):
                other = found[side, j] if is_bound else i
                if other < 0 or (other != i and (self.end(i) < self.end(other)) == bool(side)):
                    found[side, j] = i
        return found[0], found[1]

    @cached_property
    def opposite(self) -> dict[int, int]:
        """Of each inequality that is a bound of a fixed variable, the row that is the other one."""
        pairs = [(i, k) for i, k in zip(*self.bounds, strict=True) if min(i, k) >= 0 and i != k]
        fixed = [(i, k) for i, k in pairs if self.end(i) == self.end(k)]
        both = [*fixed, *((k, i) for i, k in fixed)]
        return {i: k for i, k in both if not self.is_equation[i]}

    def coefficient(self, i: int) -> Rational:
        """The coefficient of a row with one variable."""
        return flint.fmpq(*self.A.data[self.A.indptr[i]].as_integer_ratio())

    def end(self, i: int) -> Rational:
        """The bound that a row is on its one variable."""
        return self.b[i] / self.coefficient(i)

    def vertex(self, active: list[int]) -> Vertex | None:
        """The exact vertex of some rows, or None if they are dependent, or not enough."""
        if len(active) != len(self.c):
            return None
        M = self.met(active)
        x = solve_all(M, [[self.b[i] if i >= 0 else ZERO for i in active]])
        multipliers = solve_all(M.T, [[-v for v in self.c]])
        if x is None or multipliers is None:
            return None
        slack = [ZERO] * len(self.b)
        for i in set(range(len(slack))).difference(active):
            slack[i] = self.b[i] - self.rows.product(i, x[0])
        active, weights = list(active), multipliers[0]
        for k, weight in enumerate(weights):
            if weight < 0 and active[k] in self.opposite:
                i, active[k] = active[k], self.opposite[active[k]]
                weights[k] *= self.coefficient(i) / self.coefficient(active[k])
        return Vertex(self, active, x[0], weights, slack)

    def met(self, active: list[int]) -> Any:
        """The rows of A that a vertex meets with equality; -1 - j stands for x_j = 0."""
        order = np.array(active, dtype=np.int64)
        if order.min(initial=0) >= 0:
            return self.A[order]
        unit = scipy.sparse.eye_array(len(self.c), format="csr")
        stacked = scipy.sparse.vstack([self.A, unit], format="csr")
        return stacked[np.where(order >= 0, order, self.A.shape[0] - 1 - order)]

    def combined(self, row: Any, active: list[int]) -> list[Rational]:
        """The weights w of the rows of a vertex whose sum M'w a row is."""
        found = solve_all(self.met(active).T, [row])
        return found[0] if found else []


@dataclass(frozen=True, eq=False)
class Vertex:
    """The exact point where n rows are met with equality, and the multipliers of these.

    A row -1 - j stands for x_j = 0 of a variable without bounds, whose multiplier has to vanish.
    """

    program: LinearProgram
    active: list[int]
    x: list[Rational]
    weights: list[Rational]
    slack: list[Rational]

    @cached_property
    def y(self) -> list[Rational]:
        """The multipliers of all rows."""
        y = [ZERO] * len(self.slack)
        for i, weight in zip(self.active, self.weights, strict=True):
            if i >= 0:
                y[i] = weight
        return y

    @cached_property
    def worst_row(self) -> tuple[Rational, int]:
        """The largest violation of a row, and the row."""
        marked = zip(self.slack, self.program.is_equation.tolist(), strict=True)
        sizes = (abs(slack) if equal else -slack for slack, equal in marked)
        return max(((size, i) for i, size in enumerate(sizes) if size > 0), default=(ZERO, -1))

    @cached_property
    def worst_weight(self) -> tuple[Rational, int]:
        """The largest violation of a multiplier's sign, and its place among the active rows."""
        equal = self.program.is_equation
        sizes = (
            abs(weight) if i < 0 else ZERO if equal[i] else -weight
            for i, weight in zip(self.active, self.weights, strict=True)
        )
        return max(((size, k) for k, size in enumerate(sizes) if size > 0), default=(ZERO, -1))

    @cached_property
    def violated(self) -> list[int]:
        """The rows that are violated."""
        marked = enumerate(zip(self.slack, self.program.is_equation.tolist(), strict=True))
        return [i for i, (slack, equal) in marked if slack < 0 or (equal and slack)]

    @property
    def is_near(self) -> bool:
        """Whether the point is dual feasible, and feasible but for the rounding of the data.

        The coefficients of a violated row are a sum of those of the rows that are met; their right
        sides may be what cancellation left of numbers as large as those beside their variables.
        """
        program, sizes = self.program, np.append(self.sizes, 0.0)  # the last is of x_j = 0
        if self.dual or not nearest(self.primal) <= ROUNDED * sizes.max():
            return False
        used = abs(program.A).sign()
        beside = used.multiply(sizes[:-1, None]).max(axis=0).toarray().reshape(1, -1)
        beside = np.append(used.multiply(beside).max(axis=1).toarray(), 0.0)
        met = np.maximum(self.active, -1)
        try:
            factor = scipy.sparse.linalg.splu(program.met(self.active).T.tocsc())
        except RuntimeError:
            return False  # singular by rounding
        for k in self.violated:
            weights = np.abs(factor.solve(program.A[[k]].toarray()[0]))
            joined = np.append(met[weights > CANCELED * weights.max()], k)
            allowed = ROUNDED * (sizes[k] + weights @ sizes[met])
            if not abs(nearest(self.slack[k])) <= max(allowed, CANCELED * beside[joined].max()):
                return False
        return True

    @property
    def sizes(self) -> Array:
        """What the rows are sums of, without signs."""
        x, b = (np.array([abs(nearest(v)) for v in part]) for part in (self.x, self.program.b))
        return np.asarray(abs(self.program.A) @ x + b)

    def may_be_rounded(self, conflict: Sequence[Rational]) -> bool:
        """Whether rows so combined contradict each other by no more than rounding, perhaps."""
        off = abs(nearest(inner(conflict, self.program.b) / max(map(abs, conflict))))
        return bool(off <= ROUNDED * self.sizes.max(initial=0.0))

    @property
    def primal(self) -> Rational:
        """The largest violation of a row."""
        return self.worst_row[0]

    @property
    def dual(self) -> Rational:
        """The largest violation of a multiplier's sign."""
        return self.worst_weight[0]


class Solved(NamedTuple):
    """What is known exactly of a linear program: feasible points, or rays."""

    x: list[Rational] | None = None
    y: list[Rational] | None = None
    conflict: list[Rational] | None = None  # y >= 0 where A'y = 0 and b'y < 0
    descent: list[Rational] | None = None  # x with Ax <= 0 and c'x < 0
    near: Vertex | None = None  # dual feasible, and feasible but for rounding

    def with_best_of(self, vertex: Vertex | None, program: LinearProgram) -> Solved:
        """With the points of a vertex, where they are feasible and better."""
        x, y = self.x, self.y
        if vertex is None:
            return self
        if not vertex.primal and (x is None or inner(program.c, vertex.x) < inner(program.c, x)):
            x = vertex.x
        if vertex.program is program and not vertex.dual:
            y = vertex.y if y is None or inner(program.b, vertex.y) < inner(program.b, y) else y
        near = self.near
        if near is None and vertex.primal and vertex.program is program and vertex.is_near:
            near = vertex
        return self._replace(x=x, y=y, near=near)


def inner(a: Iterable[Rational], b: Iterable[Rational]) -> Rational:
    """The inner product."""
    return sum((u * v for u, v in zip(a, b, strict=True) if u and v), ZERO)


def nearest(value: Rational) -> float:
    """A double near a rational, infinite beyond the largest."""
    try:
        return int(value.p) / int(value.q)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _magnification(violation: Rational) -> Rational:
    """The power of two whose product with a violation is about one."""
    power = int(violation.q).bit_length() - int(violation.p).bit_length() if violation else 0
    return shifted(ONE, power)


class Simplex:
    """HiGHS with a program, whose rows with one variable are bounds."""

    def __init__(self, program: LinearProgram, seconds: float) -> None:
        self.program, self.highs = program, HIGHS()
        self.fixed = np.full(len(program.c), -1)  # the bound that a variable is held at
        others = program.A[program.others]
        lp = highspy.HighsLp()
        lp.num_row_, lp.num_col_ = others.shape
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_, lp.a_matrix_.index_ = others.indptr, others.indices
        lp.a_matrix_.value_ = others.data
        (lp.col_lower_, lp.col_upper_), (lp.row_lower_, lp.row_upper_) = self._ends(program.b, ONE)
        lp.col_cost_ = np.array([nearest(value) for value in program.c])
        self._set(
            output_flag=False,
            solver="simplex",
            threads=1,
            primal_feasibility_tolerance=TOLERANCE,
            dual_feasibility_tolerance=TOLERANCE,
            time_limit=min(seconds, LONGEST),
        )
        self.highs.passModel(lp)
        self.contradicted: list[int] = []  # rows of which those that are met contradict one

    def _set(self, **options: Any) -> None:
        for name, value in options.items():
            self.highs.setOptionValue(name, value)

    def _ends(self, b: Sequence[Rational], scale: Rational) -> tuple[Any, Any]:
        """Lower and upper ends of variables and of rows, for right sides times a scale."""
        program = self.program
        columns = np.full((2, len(program.c)), [[-math.inf], [math.inf]])
        for ends, rows in zip(columns, program.bounds, strict=True):
            for j in np.flatnonzero(rows >= 0).tolist():
                i = rows[j]
                ends[j] = nearest(b[i] * scale / program.coefficient(i)) if b[i] else 0.0
        upper = np.array([nearest(b[i] * scale) for i in program.others.tolist()])
        return columns, (np.where(program.is_equation[program.others], upper, -math.inf), upper)

    def run(self) -> Vertex | None:
        """Go on to a vertex that is nearly optimal, or shows that there is none."""
        self.highs.run()
        if not self.highs.getBasis().valid:
            self._set(presolve="off")
            self.highs.run()
        basis = self.highs.getBasis()
        if not basis.valid:
            return None
        columns, rows = (
            np.array([int(s) for s in part]) for part in (basis.col_status, basis.row_status)
        )
        lower, upper = self.program.bounds
        first, second = np.where(columns == UPPER, (upper, lower), (lower, upper))
        bound = np.where(first >= 0, first, second)
        bound = np.where(self.fixed >= 0, self.fixed, bound)
        bound = np.where(bound >= 0, bound, -1 - np.arange(len(bound)))
        self.contradicted = self._contradicted(columns, rows)
        met = self.program.others[rows != BASIC]
        return self.program.vertex([*met.tolist(), *bound[columns != BASIC].tolist()])

    def _contradicted(self, columns: Array, rows: Array) -> list[int]:
        """The row, or the bounds, that HiGHS's ray of multipliers adds to those that are met."""
        _, is_known, ray = self.highs.getDualRay()
        if not is_known:
            return []
        others = self.program.others
        parts = [abs(ray) * (rows == BASIC), abs(ray @ self.program.A[others]) * (columns == BASIC)]
        i, j = (int(np.argmax(part)) for part in parts)
        if parts[0][i] >= parts[1][j]:
            return [int(others[i])]
        return [int(bound[j]) for bound in self.program.bounds if bound[j] >= 0]

    def magnify(self, vertex: Vertex) -> Vertex | None:
        """See the program from a vertex: right sides are its slack, costs those that are left.

        Both are scaled so that the largest violations are about one. Rows whose multipliers are far
        larger stay equations.
        """
        program, zoom, far = self.program, _magnification(vertex.dual), FAR * vertex.dual
        columns, rows = self._ends(vertex.slack, _magnification(vertex.primal))
        weights, stay = np.zeros(len(program.b)), np.zeros(len(program.b) + 1, dtype=bool)
        costs = np.zeros(len(program.c))
        for i, weight in zip(vertex.active, vertex.weights, strict=True):
            if i < 0:
                costs[-1 - i] = nearest(-zoom * weight)
            elif not program.is_equation[i] and weight:
                stay[i] = 0 < far < weight
                weights[i] = 0.0 if stay[i] else nearest(-zoom * weight)
        for ends in rows:
            ends[stay[program.others]] = 0.0
        self.fixed[:] = -1
        for bound in program.bounds:
            held = stay[bound]  # the last, for no bound, is false
            columns[:, held], self.fixed[held] = 0.0, bound[held]
        costs += program.A.T @ weights
        self.highs.changeColsBounds(len(costs), np.arange(len(costs), dtype=np.int32), *columns)
        k = len(program.others)
        self.highs.changeRowsBounds(k, np.arange(k, dtype=np.int32), *rows)
        self.highs.changeColsCost(len(costs), np.arange(len(costs), dtype=np.int32), costs)
        self._set(
            presolve="off",
            dual_simplex_cost_perturbation_multiplier=0.0,
            primal_simplex_bound_perturbation_multiplier=0.0,
            simplex_strategy=1 if vertex.primal else 4,  # the dual or the primal method
        )
        return self.run()


def optimize(program: LinearProgram, steps: Steps) -> Solved:
    """Solve a linear program in rationals, as far as that succeeds in time."""
    conflict = _evident_conflict(program)
    if conflict is not None:
        return Solved(conflict=conflict)
    simplex = Simplex(program, steps.seconds_left)
    best, last, vertex = Solved(), None, simplex.run()
    seen: set[tuple[int, ...]] = set()
    while vertex is not None and tuple(sorted(vertex.active)) not in seen:
        best = best.with_best_of(vertex, program)
        violation = vertex.primal + vertex.dual
        if not violation or steps.is_over:
            return best
        if last is not None and violation > last.primal + last.dual:
            break
        seen.add(tuple(sorted(vertex.active)))
        for k in simplex.contradicted:
            conflict = _entering(vertex, k)[1] if k in vertex.violated else None
            if conflict is not None and not vertex.may_be_rounded(conflict):
                return best._replace(conflict=conflict)
        last, vertex = vertex, simplex.magnify(vertex)
    return best if last is None else _pivoted(last, best, steps)


def _evident_conflict(program: LinearProgram) -> list[Rational] | None:
    """Multipliers of an empty row, or of two bounds of one variable, that cannot hold."""
    y = [ZERO] * len(program.b)
    for i in np.flatnonzero(np.diff(program.A.indptr) == 0).tolist():
        b = program.b[i]
        if b < 0 or (program.is_equation[i] and b):
            y[i] = ONE if b < 0 else -ONE
            return y
    for low, high in zip(*(rows.tolist() for rows in program.bounds), strict=True):
        if low >= 0 and high >= 0 and low != high and program.end(low) > program.end(high):
            y[low], y[high] = -1 / program.coefficient(low), 1 / program.coefficient(high)
            return y
    return None


def _pivoted(vertex: Vertex | None, best: Solved, steps: Steps) -> Solved:
    """Go on from a vertex in rationals: the dual simplex method, then the primal one.

    The first has costs for which the vertex is dual feasible, whatever they are.
    """
    if vertex is None:
        return best
    program = vertex.program
    if vertex.primal and vertex.dual:
        signs = zip(vertex.y, program.is_equation.tolist(), strict=True)
        y = [weight if equal or weight > 0 else ZERO for weight, equal in signs]
        c = [-value for value in IntegerRows.of(program.A.T).times(y)]
        vertex = replace(program, c=c).vertex(vertex.active)
    while vertex is not None and vertex.primal and not steps.is_over:
        k = vertex.worst_row[1]
        place, conflict = _entering(vertex, k)
        if conflict is not None:
            return best._replace(conflict=conflict)
        vertex = _moved(vertex, place, k)
        best = best.with_best_of(vertex, program)
    if vertex is not None and vertex.program is not program:
        vertex = program.vertex(vertex.active)
    while vertex is not None and not vertex.primal and vertex.dual and not steps.is_over:
        best = best.with_best_of(vertex, program)
        place = vertex.worst_weight[1]
        side = [ZERO] * len(program.c)
        side[place] = -ONE if vertex.active[place] >= 0 or vertex.weights[place] < 0 else ONE
        (d,) = solve_all(program.met(vertex.active), [side]) or ([],)
        rates, active = program.rows.times(d), set(vertex.active)
        ratios = [
            (slack / abs(rate), i)
            for i, (slack, rate) in enumerate(zip(vertex.slack, rates, strict=True))
            if i not in active and (rate > 0 or (rate and program.is_equation[i]))
        ]
        if not ratios:
            return best._replace(descent=d)
        vertex = _moved(vertex, place, min(ratios)[1])
    return best.with_best_of(vertex, program)


def _entering(vertex: Vertex, k: int) -> tuple[int, list[Rational] | None]:
    """The place among the rows met that a violated row k takes, or multipliers that none can."""
    program, sign = vertex.program, 1 if vertex.slack[k] < 0 else -1
    weights = program.combined(rationals(program.A[[k]].toarray()[0]), vertex.active)
    ratios = [
        (weight / (sign * w), place)
        for place, (i, w, weight) in enumerate(
            zip(vertex.active, weights, vertex.weights, strict=True)
        )
        if (i < 0 and w) or (sign * w > 0 and i >= 0 and not program.is_equation[i])
    ]
    if ratios:
        return min(ratios)[1], None
    y = [ZERO] * len(program.b)
    for i, w in zip(vertex.active, weights, strict=True):
        if i >= 0:  # a variable that stands still has no multiplier
            y[i] = -sign * w
    y[k] = sign * ONE
    return -1, y


def _moved(vertex: Vertex, place: int, row: int) -> Vertex | None:
    """The vertex with another row in place of one that is met."""
    active = list(vertex.active)
    active[place] = row
    return vertex.program.vertex(active)
