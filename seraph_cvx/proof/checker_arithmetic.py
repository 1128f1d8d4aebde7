"""The numbers of the checkers: how they are read, and the linear algebra of balls and fractions.

A symmetric matrix is proved positive definite as it is eliminated, row by row while it is sparse.
Of a dense rest T it is proved at once: by a V, found by rounding, with VTV' near the identity.
All of it is python-flint, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from fractions import Fraction
from heapq import heapify, heappop, heappush
from importlib import import_module
from importlib.util import find_spec
from typing import Any

flint: Any = import_module("flint") if find_spec("flint") else None
DENSE, DENSE_BITS = 40, 128  # rows of a dense matrix; bits that are as fast as 64 there (timed)
FEW_EQUATIONS, MOST_PRODUCTS = 40, 10**6  # solved exactly; about a second of fractions
Row = dict[int, Any]  # the entries of a vector, or of a row of a sparse matrix, by place


class Malformed(ValueError):
    """A file that is no certificate, in words."""


def fields(
    content: Any, names: str, others: str = "", words: str = "the file has to have"
) -> list[Any]:
    """The values of an object that has just these names; its `others` are not asked for."""
    if type(content) is not dict or sorted(content) != sorted((names + " " + others).split()):
        raise Malformed(f"{words} just the fields {', '.join(names.split())}")
    return [content[name] for name in names.split()]


def number(text: Any) -> Any:
    """A finite double as `float.hex` writes it, or a fraction of integers in hexadecimal."""
    if type(text) is str and "/" in text:
        p, q = (int(part, 16) for part in text.split("/"))
        if q > 0 and text == f"{p:x}/{q:x}":
            return flint.fmpq(p, q)
    elif type(text) is str and float.fromhex(text).hex() == text:
        return flint.fmpq(*float.fromhex(text).as_integer_ratio())
    raise Malformed(f"{text!r:.50} is no double in hexadecimal, such as those of float.hex")


def numbers(content: Any, length: int) -> list[Any]:
    """Numbers, or sums of lists of them, as rationals."""
    if type(content) is not list or len(content) != length:
        raise Malformed("no list, or one whose length is not the announced one")
    return [sum(map(number, v)) if type(v) is list else number(v) for v in content]


class Elimination:
    """A symmetric matrix of balls or rationals, proved positive definite as it is eliminated.

    Row by row, the sparsest first, as A = sum of pivots and what is left of it; a dense rest T by
    V with VTV' within 1/2 of the identity. Exactly zero rows may be in a matrix of rationals.
    """

    def __init__(self, rows: Sequence[Row], kind: Any, may_drop: bool = False) -> None:
        self.steps: list[tuple[int, Any, list[tuple[int, Any]]]] = []
        self.dropped: list[int] = []
        self.rest: list[int] = []
        self.is_definite = True
        left = {i: {j: kind(v) for j, v in row.items()} for i, row in enumerate(rows)}
        queue, budget = [(len(row), i) for i, row in left.items()], MOST_PRODUCTS
        heapify(queue)
        while queue:
            size, i = heappop(queue)
            if i not in left or len(left[i]) != size:
                continue
            if DENSE < size >= len(left) / 4 and kind is flint.arb and self._invert(left):
                return
            row = left.pop(i)
            pivot = row.pop(i, 0)
            others = [(j, v) for j, v in row.items() if not v == 0]  # noqa: SIM201
            for j in row:
                left[j].pop(i, None)
            budget -= len(others) ** 2 * (kind is not flint.arb)
            if pivot > 0 and budget > 0:
                self.steps.append((i, pivot, others))
            elif may_drop:
                self.dropped.append(i)
                others = []
            elif others or not pivot == 0:  # noqa: SIM201
                self.is_definite = False
                return
            for at, (j, value) in enumerate(others):
                share = value / pivot
                for k, other in others[at:]:
                    left[j][k] = left[k][j] = left[j].get(k, 0) - share * other
            for j in row:
                heappush(queue, (len(left[j]), j))

    def _invert(self, left: dict[int, Row]) -> bool:
        """Whether what is left is proved positive definite; V and the bound on VTV' - I."""
        places = sorted(left)
        scale = [_power_of_two(left[i].get(i, 0)) for i in places]
        with flint.ctx.workprec(DENSE_BITS):
            T = flint.arb_mat(
                [[left[i].get(j, 0) * s * t for j, t in zip(places, scale, strict=True)]
                 for i, s in zip(places, scale, strict=True)]
            )  # fmt: skip
            V = _inverse_root(T.mid().tolist())
            if V is None:
                return False
            near = (V * T * V.transpose()).tolist()
            off = [sum(map(abs, row), abs(row[i] - 1) - abs(row[i])) for i, row in enumerate(near)]
            if not all(value < 0.5 for value in off):
                return False
        self.rest, self.scale, self.V = places, scale, V
        self.error = 2 * max(value.upper() for value in off)
        return True

    def solve(self, right: Sequence[Any]) -> list[Any]:
        """A ball around each entry of the solution; 0 for what was dropped."""
        x = list(right)
        for i, pivot, others in self.steps:
            share = x[i] / pivot
            for j, value in others:
                x[j] -= value * share
        for i in self.dropped:
            x[i] = 0
        if self.rest:
            scaled = [[x[i] * s] for i, s in zip(self.rest, self.scale, strict=True)]
            w = (self.V * flint.arb_mat(scaled)).entries()
            radius = self.error * max(abs(v).upper() for v in w)
            near = flint.arb_mat([[v + flint.arb(0, radius)] for v in w])
            solution = (self.V.transpose() * near).entries()
            for i, s, value in zip(self.rest, self.scale, solution, strict=True):
                x[i] = value * s
        for i, pivot, others in reversed(self.steps):
            x[i] = (x[i] - sum(value * x[j] for j, value in others)) / pivot
        return x


def _power_of_two(value: Any) -> Any:
    """A power of two s for which s * s * value is about 1; 1 where it is not positive."""
    if not value > 0:
        return flint.arb(1)
    mantissa, exponent = flint.arb(value).mid().man_exp()
    return flint.arb(2) ** (-(int(exponent) + mantissa.bit_length()) // 2)


def _inverse_root(rows: list[list[Any]]) -> Any:
    """About the inverse of a Cholesky factor, by halves; None where a pivot is not positive."""
    half = len(rows) // 2
    if not half:
        pivot = rows[0][0]
        return flint.arb_mat([[pivot.rsqrt().mid()]]) if pivot > 0 else None
    first = _inverse_root([row[:half] for row in rows[:half]])
    if first is None:
        return None
    L = (flint.arb_mat([row[:half] for row in rows[half:]]) * first.transpose()).mid()
    corner = flint.arb_mat([row[half:] for row in rows[half:]]) - L * L.transpose()
    second = _inverse_root(corner.mid().tolist())
    if second is None:
        return None
    below = -(second * (L * first).mid()).mid()
    top = [row + [0] * (len(rows) - half) for row in first.tolist()]
    return flint.arb_mat(
        top + [a + b for a, b in zip(below.tolist(), second.tolist(), strict=True)]
    )


def is_psd(rows: Sequence[Row]) -> bool:
    """Whether a symmetric matrix is proved PSD, in balls or else exactly."""
    return any(Elimination(rows, kind).is_definite for kind in (flint.arb, lambda value: value))


def solutions_near(
    equations: list[tuple[Row, Any]], point: list[Any], weights: list[Any]
) -> Iterator[list[Any]]:
    """The point if it solves the equations, else solutions near it, exact or in balls."""
    values = products([row for row, _ in equations], point)
    missing = [right - value for (_, right), value in zip(equations, values, strict=True)]
    if not any(missing):
        yield point
        return
    if len(equations) > FEW_EQUATIONS:
        yield from _near_in_balls([row for row, _ in equations], missing, point, weights)
        return
    for bits in (54, 0):  # at first, what is one double stays as it is
        free = [t for t, v in enumerate(point) if weights[t] and int(v.p).bit_length() >= bits]
        table = [[row.get(t, 0) for t in free] for row, _ in equations]
        table = [[*row, value] for row, value in zip(table, missing, strict=True)]
        for _ in range(2 if free else 0):
            E = flint.fmpq_mat([[row[i] * weights[t] for i, t in enumerate(free)] for row in table])
            with suppress(ZeroDivisionError):  # of equations that may be dependent
                d = (E * E.transpose()).solve(flint.fmpq_mat([row[-1:] for row in table]))
                steps = dict(zip(free, (E.transpose() * d).entries(), strict=True))
                yield [value + weights[t] * steps.get(t, 0) for t, value in enumerate(point)]
                break
            reduced, rank = flint.fmpq_mat(table).rref()  # if it says 0 = 1, E stays singular
            table = reduced.table()[:rank]


def _near_in_balls(
    rows: list[Row], missing: list[Any], point: list[Any], weights: list[Any]
) -> Iterator[list[Any]]:
    """A solution around the point, by the least step; dependent equations are proved to agree."""
    free = [{t: v for t, v in row.items() if weights[t]} for row in rows]
    columns: dict[int, Row] = {}
    for i, row in enumerate(free):
        for t, value in row.items():
            columns.setdefault(t, {})[i] = value
    gram = _gram(free, columns, weights)
    solver = Elimination(gram, flint.arb, may_drop=True)
    for i in solver.dropped:
        shares = solver.solve([gram[j].get(i, flint.arb(0)) for j in range(len(rows))])
        exact = {j: _simple(v) for j, v in enumerate(shares) if v != 0 and j != i}
        left = free[i] | {}
        for j, share in exact.items():
            for t, value in free[j].items():
                left[t] = left.get(t, 0) - share * value
        if any(left.values()) or missing[i] != dot(exact, missing):
            return
    moves = solver.solve([flint.arb(value) for value in missing])
    near = list(point)
    for t, column in columns.items():
        near[t] += flint.arb(weights[t]) ** 2 * dot(column, moves)
    yield near


def _gram(rows: list[Row], columns: dict[int, Row], weights: list[Any]) -> list[Row]:
    """The products of rows with each other, each column scaled by its weight."""
    if sum(len(column) ** 2 for column in columns.values()) > MOST_PRODUCTS:
        with flint.ctx.workprec(DENSE_BITS):
            scale = {t: flint.arb(weights[t]) for t in columns}
            E = flint.arb_mat([[row.get(t, 0) * w for t, w in scale.items()] for row in rows])
            table = (E * E.transpose()).tolist()
        return [{j: v for j, v in enumerate(row) if not v.is_zero()} for row in table]
    gram: list[Row] = [{} for _ in rows]
    for t, column in columns.items():
        square = flint.arb(weights[t]) ** 2
        for i, value in column.items():
            scaled = square * value
            for j, other in column.items():
                gram[i][j] = gram[i].get(j, 0) + scaled * other
    return gram


def _simple(value: Any) -> Any:
    """A fraction with a small denominator near the middle of a ball."""
    middle = value.mid().fmpq()
    near = Fraction(int(middle.p), int(middle.q)).limit_denominator(1 << 64)
    return flint.fmpq(near.numerator, near.denominator)


def dot(vector: Row | Sequence[Any], x: Row | Sequence[Any]) -> Any:
    """The product of two vectors, the first one perhaps sparse."""
    places = vector.items() if isinstance(vector, dict) else enumerate(vector)
    return sum((value * x[j] for j, value in places), flint.fmpq(0))


def products(rows: Iterable[Row], x: Sequence[Any]) -> list[Any]:
    """The products of sparse rows with a vector, by whole numbers over a common denominator."""
    if not all(type(v) is flint.fmpq for v in x):
        return [dot(row, x) for row in rows]
    common, longest = flint.fmpz(1), max((v.q.bit_length() for v in x), default=0)
    for v in x:
        common = common.lcm(v.q)
        if common.bit_length() > 8 * longest:  # unlike: sums of fractions are cheaper
            return [dot(row, x) for row in rows]
    whole = [v.p * (common // v.q) for v in x]
    return [dot(row, whole) / common for row in rows]
