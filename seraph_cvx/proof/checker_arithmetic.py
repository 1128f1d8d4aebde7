"""The numbers of the checkers: how they are read, and the linear algebra of balls and fractions.

A symmetric matrix is proved PSD as it is eliminated, row by row while it is sparse, and by halves
where it is dense. Equations are solved by moving few entries of a point, as they are eliminated in
rationals, or else by the least step, in balls. All of it is python-flint, and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from heapq import heapify, heappop, heappush
from importlib import import_module
from importlib.util import find_spec
from typing import Any

flint: Any = import_module("flint") if find_spec("flint") else None
DENSE = 16  # rows of a dense matrix: eliminated one by one, its balls grow with each
DENSE_BITS = 128  # as fast as 64 there (timed); twice as many to eliminate by halves
MOST_PRODUCTS = 10**6  # of fractions of a few words: about a second
ROOM = 50  # bits by which an entry may have less room than another: points are good to 100 bits
MOST_ENTRIES = 10**7  # of a dense matrix of balls: about a gigabyte
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
    return [sum(map(number, v), flint.fmpq(0)) if type(v) is list else number(v) for v in content]


def integers(content: Any, length: int) -> list[int]:
    """Integers."""
    if type(content) is not list or [*map(type, content)] != length * [int]:
        raise Malformed("no list of integers, or one whose length is not the announced one")
    return content


def sparse(
    content: Any,
    n_rows: int,
    n_columns: int,
    read: Callable[[Any, int], list[Any]] = numbers,
) -> list[Row]:
    """The rows of a matrix given by its entries."""
    row, column, value = fields(content, "row column value", words="a matrix has to have")
    rows: list[Row] = [{} for _ in range(n_rows)]
    places = integers(row, len(row)), integers(column, len(row))
    for i, j, entry in zip(*places, read(value, len(row)), strict=True):
        if not (0 <= i < n_rows and 0 <= j < n_columns) or j in rows[i]:
            raise Malformed("an entry outside of its matrix, or twice in one place")
        rows[i][j] = entry
    return rows


def is_psd(rows: Sequence[Row]) -> bool:
    """Whether a symmetric matrix of balls or rationals is proved PSD: in balls, or else exactly."""
    if _is_definite({i: {j: flint.arb(v) for j, v in row.items()} for i, row in enumerate(rows)}):
        return True
    is_exact = all(type(v) is not flint.arb for row in rows for v in row.values())
    return is_exact and _is_definite({i: dict(row) for i, row in enumerate(rows)}, MOST_PRODUCTS)


def _is_definite(left: dict[int, Row], budget: float = math.inf) -> bool:
    """Whether all pivots of an elimination are positive, of the sparsest row first.

    Rows of a matrix of rationals may be zero. What is dense in balls is proved at once.
    """
    queue, is_exact = [(len(row), i) for i, row in left.items()], budget < math.inf
    heapify(queue)
    while queue:
        size, i = heappop(queue)
        if i not in left or len(left[i]) != size:
            continue
        if DENSE < size >= len(left) / 4 and not is_exact and _is_dense_definite(left):
            return True
        row = left.pop(i)
        pivot = row.pop(i, 0)
        for j in row:
            left[j].pop(i, None)
        others = [(j, v) for j, v in row.items() if not v == 0]  # noqa: SIM201
        budget -= len(others) ** 2
        if budget < 0 or not (pivot > 0 or (pivot == 0 and not others)):
            return False
        for at, (j, value) in enumerate(others):
            share = value / pivot
            for k, other in others[at:]:
                left[j][k] = left[k][j] = left[j].get(k, 0) - share * other
        for j in row:
            heappush(queue, (len(left[j]), j))
    return True


def _is_dense_definite(left: dict[int, Row]) -> bool:
    """Whether a matrix near T, less a bound on the norm of what it is off, is positive definite."""
    places = sorted(left)
    if not all(left[i].get(i, 0) > 0 for i in places):
        return False

    def scaled(i: int, j: int) -> Any:
        return left[i].get(j, 0) * scale[i] * scale[j]

    with flint.ctx.workprec(2 * DENSE_BITS):
        scale = {i: left[i][i].rsqrt().mid() for i in places}
        T = [[scaled(min(i, j), max(i, j)) for j in places] for i in places]
        off = max(sum((v.rad() for v in row), flint.arb(0)).upper() for row in T)
        near = flint.arb_mat(T).mid().tolist()
        for i, row in enumerate(near):
            row[i] -= off
        return _has_definite_halves(near)


def _has_definite_halves(rows: list[list[Any]]) -> bool:
    """Whether a first part of a symmetric matrix is definite, and the rest without its share."""
    if len(rows) == 1:
        return bool(rows[0][0] > 0)
    half = len(rows) // 2
    first = [row[:half] for row in rows[:half]]
    if not _has_definite_halves(first):
        return False
    beside, rest = (flint.arb_mat([row[half:] for row in r]) for r in (rows[:half], rows[half:]))
    try:
        share = beside.transpose() * flint.arb_mat(first).solve(beside)
    except ZeroDivisionError:
        return False
    return _has_definite_halves((rest - share).tolist())


def solutions_near(
    equations: list[tuple[Row, Any]], point: list[Any], weights: list[Any]
) -> Iterator[list[Any]]:
    """The point if it solves the equations, else solutions near it, exact and in balls.

    An entry may move by about its weight, and one that is a double moves only where it has to.
    """
    values = products([row for row, _ in equations], point)
    missing = [right - value for (_, right), value in zip(equations, values, strict=True)]
    if not any(missing):
        yield point
        return
    rows = [{t: v for t, v in row.items() if weights[t]} for row, _ in equations]
    doubles = {t for t, v in enumerate(point) if v.p.bit_length() < 54}
    with suppress(OverflowError):
        steps = _few_steps(rows, missing, weights, doubles)
        if steps is None:
            return
        yield [value + steps.get(t, 0) for t, value in enumerate(point)]
    steps = _least_step(rows, missing, weights)
    if steps is not None:
        yield [value + steps.get(t, 0) for t, value in enumerate(point)]


def _few_steps(rows: list[Row], right: list[Any], weights: list[Any], last: set[int]) -> Row | None:
    """An exact solution that moves one entry for each independent equation; None if there is none.

    Each equation chooses one that has room, not from `last` if it can, and in few other equations.
    An OverflowError where that takes too long.
    """
    left, right = {i: dict(row) for i, row in enumerate(rows)}, list(right)
    columns: dict[int, set[int]] = {}
    for i, row in left.items():
        for t in row:
            columns.setdefault(t, set()).add(i)
    chosen, budget = [], MOST_PRODUCTS
    queue = [(len(row), i) for i, row in left.items()]
    heapify(queue)
    while queue:
        size, i = heappop(queue)
        if i not in left or len(left[i]) != size:
            continue
        row = left.pop(i)
        for t in row:
            columns[t].discard(i)
        rooms = {t: flint.arb(abs(v) * weights[t]) for t, v in row.items()}
        enough = max(rooms.values(), key=flint.arb.mid, default=flint.arb(0)) / 2**ROOM
        able = [t for t, room in rooms.items() if room > enough]
        if not able:
            if right[i] != 0:
                return None
            continue
        best = min(able, key=lambda t: (t in last, len(columns[t])))
        pivot = row.pop(best)
        chosen.append((best, pivot, row, right[i]))
        for k in columns.pop(best):
            share = left[k].pop(best) / pivot
            budget -= len(row) * (1 + share.q.bit_length() // 512)
            if budget < 0:
                raise OverflowError
            right[k] -= share * right[i]
            for t, value in row.items():
                entry = left[k].get(t, 0) - share * value
                if entry == 0:
                    left[k].pop(t, None)
                    columns[t].discard(k)
                else:
                    left[k][t] = entry
                    columns[t].add(k)
            heappush(queue, (len(left[k]), k))
    steps: Row = {}
    for t, pivot, row, value in reversed(chosen):
        steps[t] = (value - sum(v * steps[s] for s, v in row.items() if s in steps)) / pivot
    return steps


def _least_step(rows: list[Row], missing: list[Any], weights: list[Any]) -> Row | None:
    """Balls around the least solution in units of the weights; None where none is proved to be."""
    places = sorted(set().union(*rows))
    if len(rows) * len(places) > MOST_ENTRIES:
        return None
    with flint.ctx.workprec(DENSE_BITS):
        E = flint.arb_mat([[row.get(t, 0) * weights[t] for t in places] for row in rows])
        right = flint.arb_mat([[value] for value in missing])
        try:
            found = (E.transpose() * (E * E.transpose()).solve(right)).entries()
        except ZeroDivisionError:
            return None
        return {t: weights[t] * value for t, value in zip(places, found, strict=True)}


def dot(vector: Row | Sequence[Any], x: Row | Sequence[Any]) -> Any:
    """The product of two vectors, the first one perhaps sparse."""
    places = vector.items() if isinstance(vector, dict) else enumerate(vector)
    return sum((value * x[j] for j, value in places), flint.fmpq(0))


def combination(weights: Row, rows: Sequence[Row]) -> Row:
    """A sum of multiples of sparse rows."""
    found: Row = {}
    for i, weight in weights.items():
        for j, value in rows[i].items():
            found[j] = found.get(j, 0) + weight * value
    return {j: value for j, value in found.items() if value != 0}


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
