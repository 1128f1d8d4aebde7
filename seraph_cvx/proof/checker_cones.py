"""The cones of the checker: what they and their duals contain, in rationals or in balls."""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

from .checker_arithmetic import Malformed, Row, flint, is_psd, number

HALVINGS = 110  # of a radius: a point of two doubles has no smaller distance
KINDS = ("zero", "nonnegative", "second_order", "psd", "exponential")


@dataclass(frozen=True)
class Cone:
    """A cone, its rows, and e by place in these: a tolerance t asks that s + t e is in the cone."""

    kind: str
    rows: Sequence[Any]
    e: Row
    exponents: Sequence[Any]

    def contains(self, point: Any, dual: bool = False) -> bool:
        """Whether the cone, or its dual, is proved to contain a point; not asked of equalities."""
        z = [point[i] for i in self.rows]
        if self.kind in ("zero", "nonnegative", "second_order"):
            inside = z[0] >= 0 and z[0] * z[0] >= sum(value * value for value in z[1:])
            return self.kind == "zero" or bool(inside)
        if self.kind == "psd":
            rows: list[Row] = [{} for _ in range(math.isqrt(2 * len(z)))]
            places = combinations_with_replacement(range(len(rows)), 2)  # column by column
            for (i, j), value in zip(places, z, strict=True):
                if not value == 0:  # noqa: SIM201
                    rows[i][j] = rows[j][i] = value / flint.fmpq(2 if dual and i != j else 1)
            return is_psd(rows)
        if self.kind == "exponential":
            u, v, w = z if not dual else (z[0] - z[1], -z[0], *z[2:])  # mapped to the cone
            if v == 0 or u == 0:
                return bool(v >= 0 and u <= 0 and w >= v)
            return bool(v > 0 and flint.arb(v) * (flint.arb(u) / v).exp() <= w)
        w, scales = abs(z.pop()), self.exponents if dual else len(z) * [1]
        powers = [(u / s, a) for u, s, a in zip(z, scales, self.exponents, strict=True)]
        if w == 0 or not all(u > 0 for u, _ in powers):
            return bool(w == 0) and all(u >= 0 for u, _ in powers)
        return bool(w <= sum(flint.arb(u).log() * a for u, a in powers).exp())

    def radii(self, point: Sequence[Any], fixed: Container[int], size: Any) -> list[Any]:
        """How far each row may move, about, without leaving the dual cone; 0 where it is fixed."""
        radius = size if self.kind == "zero" else max(abs(point[i]) for i in self.rows)
        found, low, high = [0 for _ in self.rows], 1, HALVINGS
        while low <= high:
            halvings = (low + high) // 2
            radii = [0 if i in fixed else radius / flint.fmpq(2**halvings) for i in self.rows]
            cube = {i: flint.arb(point[i], r) for i, r in zip(self.rows, radii, strict=True)}
            if self.contains(cube, dual=True):
                found, high = radii, halvings - 1
            else:
                low = halvings + 1
        return found


def cones_of(content: list[Any], n_rows: int) -> Iterator[Cone]:
    """The blocks of the rows, which they must cover; nonnegative rows one by one."""
    start = 0
    for kind, given in content:
        exponents: list[Any] = []
        if kind in ("power", "power_nd"):
            exponents = [number(value) for value in ([given] if kind == "power" else given)]
            exponents += [1 - exponents[0]] if kind == "power" else []
            if min(exponents) <= 0 or abs(sum(exponents) - 1) * 10**12 > 1:
                raise Malformed("a power cone whose exponents are not positive with sum 1")
            exponents = [value / sum(exponents) for value in exponents]
        elif type(given) is not int or not 0 <= given <= n_rows or kind not in KINDS:
            raise Malformed("a cone of an unknown kind or size")
        side = given if kind == "psd" else 0
        size = len(exponents) + 1 if exponents else math.comb(side + 1, 2) if side else given
        rows, start = range(start, start + size), start + size
        if kind in ("zero", "nonnegative"):
            yield from (Cone(kind, [i], {0: 1}, ()) for i in rows)
        else:
            diagonal = [i * side - i * (i - 1) // 2 for i in range(side)]
            ones = {"second_order": [0], "psd": diagonal}.get(kind, range(len(rows) - 1))
            last = {0: -1, 2: 1} if kind == "exponential" else {}
            yield Cone(kind, rows, dict.fromkeys(ones, 1) | last, exponents)
    if start != n_rows:
        raise Malformed("the cones do not cover the rows")
