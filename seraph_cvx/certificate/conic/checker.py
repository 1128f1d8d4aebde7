"""Checks a certificate on paper: reads a file of numbers, and proves its bounds from them anew.

It imports nothing of the package, and of others python-flint alone. The program: minimize
c'x + x'Px/2 subject to Ax + s = b, s in K. A dual point is moved by a least correction onto
A'y + Ph + c = 0; where y is then in K*, it proves -b'y - h'Ph/2. A primal point is moved onto its
equality rows, and proves its value where b - Ax is in K. All this in rationals, or where there are
many equations in balls, of which a comparison is true only if proved of all members.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Container, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import combinations_with_replacement, product
from typing import Any

flint: Any = import_module("flint") if find_spec("flint") else None
PRECISION, HALVINGS = 512, 110  # bits of a ball; a point of two doubles has no smaller distance
FEW_EQUATIONS, LARGEST, LARGEST_FILE = 40, 10**7, 1 << 26  # solved exactly; n * rows; characters
FAULTS = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RuntimeError)
KINDS = ("zero", "nonnegative", "second_order", "psd", "exponential")
Row = dict[int, Any]  # the entries of a vector, or of a row of a sparse matrix, by place


@dataclass(frozen=True)
class CheckedCertificate:
    """What a certificate file proves, in the user's units; None where nothing is proved."""

    valid: bool
    reasons: tuple[str, ...]
    lower: float | None = None
    upper: float | None = None


def check_certificate(path: str | os.PathLike[str]) -> CheckedCertificate:
    """Verify the claims of a certificate file in rational and ball arithmetic.

    Parameters
    ----------
    path : path
        A file written by ``to_json`` of a certificate.

    Returns
    -------
    CheckedCertificate
        `valid` if every claim of the file follows from its numbers, else `reasons`. `lower` and
        `upper` are the bounds proved here, rounded outward. Nothing is raised for any file.

    Examples
    --------
    >>> check_certificate("no-such-file.json").reasons
    ("rejected: FileNotFoundError: [Errno 2] No such file or directory: 'no-such-file.json'",)
    """
    if flint is None:
        raise ImportError("Checking a certificate needs python-flint: pip install python-flint")
    before, flint.ctx.prec = flint.ctx.prec, PRECISION
    try:
        with open(path, encoding="utf-8") as file:
            return _check(json.loads(file.read(LARGEST_FILE)))  # cut, it would be no JSON
    except (*FAULTS, OSError, MemoryError) as error:
        return CheckedCertificate(False, (f"rejected: {type(error).__name__}: {error}",))
    finally:
        flint.ctx.prec = before


def _check(content: dict[str, Any]) -> CheckedCertificate:
    """Check the claims of a file one by one."""
    if content["format"] != "seraph_cvx conic certificate" or content["version"] != 1:
        raise ValueError("not a conic certificate of version 1")
    program, claim, infinity = Program(content), content["claim"], flint.arb("inf")
    dual, primal, ray, fall = (content[k] for k in ("dual", "primal", "ray_dual", "ray_primal"))
    below = -infinity if dual is None else program.lower_bound(dual, program.c, program.P)
    above = infinity if primal is None else program.upper_bound(primal)
    lower, upper = (program.offset + program.sign * v for v in (below, above)[:: program.sign])
    gap = -infinity if ray is None else program.lower_bound(ray, program.n * [0], [])
    slope = infinity if fall is None else program.upper_bound(fall, is_ray=True)
    claims = {
        "the lower bound": claim["lower"] is None or lower >= _number(claim["lower"]),
        "the upper bound": claim["upper"] is None or upper <= _number(claim["upper"]),
        "that it is infeasible": not claim["infeasible"] or gap > 0,
        "that it is unbounded": not claim["unbounded"] or (slope < 0 and above < infinity),
        "what is assumed of the variables": not lower > upper,
        "that nothing is claimed": any(claim[name] not in (None, False) for name in claim),
    }
    reasons = [f"{name} does not follow from the points" for name in claims if not claims[name]]
    return CheckedCertificate(not reasons, tuple(reasons), _beyond(lower, -1), _beyond(upper, 1))


class Program:
    """The conic program of a file, with its numbers as rationals."""

    def __init__(self, content: dict[str, Any]) -> None:
        data, given = content["program"], content["variable_bounds"]
        self.n, self.k = len(data["c"]), len(data["b"])
        announced = [data["variables"], data["rows"], data["scale"]]
        if announced != [self.n, self.k, 1] or self.n * self.k > LARGEST:
            raise ValueError("not as many variables and rows as announced, or too many to check")
        self.A = _sparse(data["A"], self.k, self.n)
        self.b, self.c = _numbers(data["b"], self.k), _numbers(data["c"], self.n)
        self.P = [] if data["P"] is None else _sparse(data["P"], self.n, self.n)
        entries = [(i, j, value) for i, row in enumerate(self.P) for j, value in row.items()]
        if any(self.P[j].get(i) != value for i, j, value in entries) or not _is_psd(self.P):
            raise ValueError("P is not proved symmetric and positive semidefinite")
        self.cones = list(_cones(data["cones"], self.k))
        self.offset, self.sign = _number(data["offset"]), {False: 1, True: -1}[data["maximize"]]
        self.tolerance = 0 if content["tolerance"] is None else _number(content["tolerance"])
        self.bounds = {j: _number(v) for j, v in enumerate(given or ()) if v is not None}
        if len(given or self.c) != self.n or min([self.tolerance, *self.bounds.values()]) < 0:
            raise ValueError("a negative tolerance or bound, or bounds of another length than x")

    def lower_bound(self, given: Any, c: Sequence[Any], P: list[Row]) -> Any:
        """The bound that a dual point proves with this c and P, both zero for a ray; or -inf."""
        y = _numbers(given["y"], self.k)
        fixed = set(given.get("zero_rows", [i for i in range(self.k) if y[i] == 0]))
        if not all(0 <= i < self.k and y[i] == 0 for i in fixed):
            raise ValueError("zero_rows names a row that does not exist, or is not zero")
        h = _numbers(given["h"] or self.n * ["0x0p+0"], self.n) if P else []
        columns: list[Row] = [{} for _ in c]
        for i, row in enumerate(self.A + P):
            for j, value in row.items():
                columns[j][i] = value
        size = max(map(abs, y + h), default=0) or 1
        weights = [radius for cone in self.cones for radius in cone.radii(y, fixed, size)]
        equations = [(columns[j], -c[j]) for j in range(self.n) if j not in self.bounds]
        point = _moved(equations, y + h, weights + len(h) * [size])
        if point is None or not all(cone.contains(point, dual=True) for cone in self.cones):
            return flint.arb("-inf")
        h = point[self.k :]
        value = -_dot(self.b, point) - _dot([_dot(row, h) for row in P], h) / 2
        relaxed = sum(abs(_dot(cone.e, point)) for cone in self.cones)  # e is inside, y in the dual
        lost = (abs(c[j] + _dot(columns[j], point)) * B for j, B in self.bounds.items())
        return value - relaxed * self.tolerance - sum(lost)

    def upper_bound(self, given: Any, is_ray: bool = False) -> Any:
        """The objective at a primal point moved onto its equality rows, if feasible; else inf."""
        b, tolerance = (self.k * [0], 0) if is_ray else (self.b, self.tolerance)
        still = [(row, 0) for row in [{j: 1} for j in self.bounds] + self.P] if is_ray else []
        x = _numbers(given["x"], self.n)
        slack = [b[i] - _dot(row, x) for i, row in enumerate(self.A)]
        equalities = {i for cone in self.cones if cone.kind == "zero" for i in cone.rows}
        within = tolerance > 0 and all(abs(slack[i]) <= tolerance for i in equalities)
        touched = {i for i, a in enumerate(self.A) if (2**70 * slack[i]) ** 2 <= _dot(a, a)}
        attempts = [set()] if within else [equalities | touched, equalities]
        for exact in attempts:
            near = _moved([(self.A[i], b[i]) for i in exact] + still, x, self.n * [1])
            if near is not None:
                slack = [0 if i in exact else b[i] - _dot(self.A[i], near) for i in range(self.k)]
                for i, sign in (entry for cone in self.cones for entry in cone.e.items()):
                    slack[i] += sign * tolerance
                if all(cone.contains(slack) for cone in self.cones):
                    return _dot(self.c, near) + _dot([_dot(row, near) for row in self.P], near) / 2
        return flint.arb("inf")


@dataclass(frozen=True)
class Cone:
    """A cone, its rows, and e, where a tolerance t asks that s + t e is in the cone."""

    kind: str
    rows: Sequence[int]
    e: Row
    exponents: Sequence[Any]

    def contains(self, point: Any, dual: bool = False) -> bool:
        """Whether the cone, or its dual, is proved to contain a point; not asked of equalities."""
        z = [point[i] for i in self.rows]
        if self.kind in ("zero", "nonnegative", "second_order"):
            inside = z[0] >= 0 and z[0] * z[0] >= sum(value * value for value in z[1:])
            return self.kind == "zero" or bool(inside)
        if self.kind == "psd":
            rows: list[Row] = [{} for _ in self.e]
            for i, j in combinations_with_replacement(range(len(rows)), 2):  # column by column
                rows[i][j] = rows[j][i] = z.pop(0) / flint.fmpq(2 if dual and i != j else 1)
            return _is_psd(rows)
        if self.kind == "exponential":
            u, v, w = z if not dual else (z[0] - z[1], -z[0], *z[2:])  # mapped to the cone
            if v == 0 or u == 0:
                return bool(v >= 0 and u <= 0 and w >= v)
            return bool(v > 0 and flint.arb(v) * (flint.arb(u) / v).exp() <= w)
        w, scales = abs(z.pop()), self.exponents if dual else len(z) * [1]
        powers = [(u / s, a) for u, s, a in zip(z, scales, self.exponents, strict=False)]
        if w == 0 or not all(u > 0 for u, _ in powers):
            return bool(w == 0) and all(u >= 0 for u, _ in powers)
        return bool(w <= sum(flint.arb(u).log() * a for u, a in powers).exp())

    def radii(self, point: Sequence[Any], fixed: Container[int], size: Any) -> list[Any]:
        """How far each row may move, about, without leaving the dual cone; 0 where it is fixed."""
        radius = size if self.kind == "zero" else max(abs(point[i]) for i in self.rows)
        for _ in range(HALVINGS):
            radius /= flint.fmpq(2)
            radii = [0 if i in fixed else radius for i in self.rows]
            cube = {i: flint.arb(point[i], r) for i, r in zip(self.rows, radii, strict=True)}
            if self.contains(cube, dual=True):
                return radii
        return [0 for _ in self.rows]


def _is_psd(rows: list[Row]) -> bool:
    """Whether pivots are proved positive, or 0 with zeros in their rows; in balls, or exactly."""
    for number in (flint.arb, lambda value: value):
        left = {i: {j: number(value) for j, value in row.items()} for i, row in enumerate(rows)}
        for i in sorted(left, key=lambda i: len(rows[i])):
            row = left.pop(i)
            pivot = row.pop(i, 0)
            others = [(j, v) for j, v in row.items() if j in left and not v == 0]  # noqa: SIM201
            if not (pivot > 0 or (pivot == 0 and not others)):
                break
            for (j, value), (k, other) in product(others, others):
                left[j][k] = left[j].get(k, 0) - value * other / pivot
        else:
            return True
    return False


def _moved(equations: list[tuple[Row, Any]], point: list[Any], weights: list[Any]) -> Any:
    """The point if it solves the equations, else a solution near it in balls, else None."""
    if all(_dot(row, point) == value for row, value in equations):
        return point
    few = len(equations) <= FEW_EQUATIONS
    matrix = flint.fmpq_mat if few else flint.arb_mat
    for bits in (54, 0) if few else (0,):  # at first, what is one double stays as it is
        free = [t for t, v in enumerate(point) if weights[t] and int(v.p).bit_length() >= bits]
        table = [[row.get(t, 0) for t in free] + [r - _dot(row, point)] for row, r in equations]
        for _ in range(2 if free else 0):
            E = matrix([[row[i] * weights[t] for i, t in enumerate(free)] for row in table])
            with suppress(ZeroDivisionError):  # of equations that may be dependent
                d = (E * E.transpose()).solve(matrix([row[-1:] for row in table]))
                steps = dict(zip(free, (E.transpose() * d).entries(), strict=True))
                return [value + weights[t] * steps.get(t, 0) for t, value in enumerate(point)]
            reduced, rank = flint.fmpq_mat(table).rref()  # if it says 0 = 1, E stays singular
            table = reduced.table()[:rank]
    return None


def _cones(content: list[Any], n_rows: int) -> Iterator[Cone]:
    """The blocks of the rows, which they must cover; nonnegative rows one by one."""
    start = 0
    for kind, given in content:
        exponents: list[Any] = []
        if kind in ("power", "power_nd"):
            exponents = [_number(value) for value in ([given] if kind == "power" else given)]
            exponents += [1 - exponents[0]] if kind == "power" else []
            if min(exponents) <= 0 or abs(sum(exponents) - 1) * 10**12 > 1:
                raise ValueError("a power cone whose exponents are not positive with sum 1")
            exponents = [value / sum(exponents) for value in exponents]
        elif type(given) is not int or not 0 <= given <= n_rows or kind not in KINDS:
            raise ValueError("a cone of an unknown kind or size")
        side = given if kind == "psd" else 0
        size = len(exponents) + 1 if exponents else math.comb(side + 1, 2) if side else given
        rows, start = range(start, start + size), start + size
        if kind in ("zero", "nonnegative"):
            yield from (Cone(kind, [i], {i: 1}, ()) for i in rows)
        else:
            diagonal = [rows[i * side - i * (i - 1) // 2] for i in range(side)]
            ones = {"second_order": rows[:1], "psd": diagonal, "exponential": rows}
            first = {rows[0]: -1} if kind == "exponential" else {}
            yield Cone(kind, rows, dict.fromkeys(ones.get(kind, rows[:-1]), 1) | first, exponents)
    if start != n_rows:
        raise ValueError("the cones do not cover the rows")


def _number(text: str) -> Any:
    return flint.fmpq(*float.fromhex(text).as_integer_ratio())


def _numbers(content: Any, length: int) -> list[Any]:
    """Doubles in hexadecimal, or sums of lists of them, as rationals."""
    if type(content) is not list or len(content) != length:
        raise ValueError("no list, or one whose length is not the announced one")
    return [sum(map(_number, v)) if type(v) is list else _number(v) for v in content]


def _sparse(content: dict[str, Any], n_rows: int, n_columns: int) -> list[Row]:
    """The rows of a matrix given by its entries."""
    rows: list[Row] = [{} for _ in range(n_rows)]
    values = _numbers(content["value"], len(content["row"]))
    for i, j, value in zip(content["row"], content["column"], values, strict=True):
        if not (0 <= i < n_rows and 0 <= j < n_columns) or type(j) is not int or j in rows[i]:
            raise ValueError("an entry outside of its matrix, or twice in one place")
        rows[i][j] = value
    return rows


def _dot(vector: Row | Sequence[Any], x: Row | Sequence[Any]) -> Any:
    places = vector.items() if isinstance(vector, dict) else enumerate(vector)
    return sum((value * x[j] for j, value in places), flint.fmpq(0))


def _beyond(bound: Any, direction: int) -> float | None:
    """A double on the outer side of a bound; None if there is none."""
    near = float(flint.arb(bound).mid())
    if not flint.arb(near) * direction >= bound * direction:
        near = math.nextafter(near, direction * math.inf)
    return near if math.isfinite(near) else None
