"""Checks a certificate on paper: reads a file of numbers, and proves its bounds from them anew.

It imports nothing of the package but its own algebra (`checker_arithmetic.py`), cones
(`checker_cones.py`) and part for M-steps (`m_step_checker.py`), and of others python-flint alone.
The program: minimize c'x + x'Px/2 subject to Ax + s = b, s in K. A dual point proves -b'y - h'Ph/2
where A'y + Ph + c = 0 and y is in K*; a primal point proves its value where b - Ax is in K. Points
that solve their equations as they are stay so; others are moved a little, in rationals where that
is quick, or else in balls, of which a comparison is true only if proved of all members.

The format
----------
JSON. A number is a double as `float.hex` writes it, or a fraction "p/q" of integers in hexadecimal;
an entry of a vector may be a list of numbers, which counts as their sum. A matrix is "row",
"column" and "value" of its entries. Every object has just the fields that are named here, once.

Conic, version 1: "format": "seraph_cvx conic certificate", "version": 1, and
- "program": variables, rows, A, b, c, P (or null), cones (kind and size, or exponents), offset,
  maximize, scale (1);
- "claim": lower and upper (a number or null), infeasible, unbounded (true or false);
- "dual": y, h (or null), zero_rows, the rows of y that stay zero, and perhaps faces; "primal": x;
  "ray_dual": y; "ray_primal": x; each of the four may be null;
- "faces" of dual: a list of row, side, order, i, j and value. In the PSD block of this side that
  begins at this row, V'SV >= 0 stands for S >= 0; V is side by order, with these integers as its
  entries. That has more feasible points, so its lower bounds hold. A face counts rows where those
  before it have changed the program, and y where all have;
- "tolerance" and "variable_bounds" (numbers, or null): what is assumed besides the program;
- "diagonal_shift", D with P + D PSD, and "shift_bounds", which prove |x_j| <= B_j where D_j > 0
  (column, rows, multipliers). These two may be missing.

M-steps, version 1: "format": "seraph_cvx m-step certificate", "version": 1, and
- "m_step": points, similar, dissimilar (pairs i < j), confidence (or null), unlabeled_weight,
  threshold, sharpness, at most one of soft_labels, previous_factor and previous_metric,
  trace_weight, manifold_term (or null), penalties (kind, and numbers: see `PENALTIES` in
  `m_step_checker.py`);
- "claim": lower, upper; "primal": factor, or null;
- "dual", or null: factor, anchor ("one" or "labels"), step, groups (or null), multipliers (a
  matrix for each penalty; for a bound on the trace a number, times I).

New evidence is a field with a name of its own, read by `fields`, and what it proves is added to
`_check`; a file of another version is refused.
"""

from __future__ import annotations

import json
import math
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations_with_replacement, product
from typing import Any

from .checker_arithmetic import (
    Malformed,
    Row,
    combination,
    dot,
    fields,
    flint,
    integers,
    is_psd,
    number,
    numbers,
    products,
    solutions_near,
    sparse,
)
from .checker_cones import Cone, cones_of
from .m_step_checker import check_m_step

PRECISION = 512  # bits of a ball
LARGEST_FILE = 1 << 29  # characters
FAULTS = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RuntimeError)
ZERO = (0.0).hex()
ONE_AT_A_TIME = threading.Lock()  # the precision of python-flint is one for all threads


@dataclass(frozen=True)
class CheckedCertificate:
    """What a certificate file proves, in the user's units; None where nothing is proved.

    All of it holds under the `assumptions`, which the file may add to its conic program.
    """

    valid: bool
    reasons: tuple[str, ...]
    lower: float | None = None
    upper: float | None = None
    assumptions: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.valid:
            return f"Rejected: {'; '.join(self.reasons)}"
        lines = ["The certificate holds: its claims were proved again, by other code."]
        ends = {"lower bound": self.lower, "upper bound": self.upper}
        lines += [f"  {name}  {end!r}" for name, end in ends.items() if end is not None]
        return "\n".join([*lines, *(f"  assuming that {text}" for text in self.assumptions)])


def check_certificate(
    path: str | os.PathLike[str], progress: Callable[[str], object] | None = None
) -> CheckedCertificate:
    """Verify the claims of a certificate file in rational and ball arithmetic.

    Parameters
    ----------
    path : path
        A file written by ``to_json`` of a certificate: of any convex problem, or of an M-step.
    progress : callable, optional
        Called with a line of text now and then while the pairs of many points are checked.

    Returns
    -------
    CheckedCertificate
        `valid` is true if every claim of the file follows from its numbers; if not, `reasons` says
        why. `lower` and `upper` are the bounds proved here, rounded outward, and `assumptions` is
        what the file adds to its conic program: a tolerance, or bounds on variables. No file,
        however damaged, raises an error.

    Examples
    --------
    >>> check_certificate("no-such-file.json").reasons
    ("FileNotFoundError: [Errno 2] No such file or directory: 'no-such-file.json'",)
    """
    if flint is None:
        raise ImportError("Checking a certificate needs python-flint: pip install python-flint")
    with ONE_AT_A_TIME:
        before, flint.ctx.prec = flint.ctx.prec, PRECISION
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read(LARGEST_FILE)  # cut, it would be no JSON
            return _check(_read(text), progress or str)
        except (*FAULTS, OSError, MemoryError) as error:
            kind = "" if isinstance(error, Malformed) else f"{type(error).__name__}: "
            return CheckedCertificate(False, (f"{kind}{error}",))
        finally:
            flint.ctx.prec = before


def _check(content: Any, progress: Callable[[str], object]) -> CheckedCertificate:
    """Check the claims of a file one by one."""
    if type(content) is not dict or [type(content.get("version")), content["version"]] != [int, 1]:
        raise Malformed("this is no certificate of version 1")
    if content.get("format") == "seraph_cvx m-step certificate":
        claim, lower, upper = check_m_step(content, progress)
        return _judged(claim, lower, upper, {}, ())
    program, claim, dual, primal, ray, fall = _program(content)
    infinity = flint.arb("inf")
    below = -infinity
    if dual is not None:
        restricted = reduce(Program.on_face, dual["faces"], program)
        below = restricted.lower_bound(dual, program.c, program.convex) - program.loss
    above = infinity if primal is None else program.upper_bound(primal)
    lower, upper = (program.offset + program.sign * v for v in (below, above)[:: program.sign])
    gap = -infinity if ray is None else program.lower_bound(ray | {"h": None}, program.n * [0], [])
    slope = infinity if fall is None else program.upper_bound(fall, is_ray=True)
    others = {
        "that it is infeasible": not claim["infeasible"] or gap > 0,
        "that it is unbounded": not claim["unbounded"] or (slope < 0 and above < infinity),
    }
    return _judged(claim, lower, upper, others, program.assumptions)


def _judged(
    claim: dict[str, Any], lower: Any, upper: Any, others: dict[str, bool], assumptions: Any
) -> CheckedCertificate:
    """Compare what is claimed with the bounds that were proved."""
    claims = {
        "the lower bound": claim["lower"] is None or lower >= number(claim["lower"]),
        "the upper bound": claim["upper"] is None or upper <= number(claim["upper"]),
        **others,
        "that the bounds do not cross": not lower > upper,
        "that nothing is claimed": any(value not in (None, False) for value in claim.values()),
    }
    reasons = [f"{name} does not follow from the points" for name in claims if not claims[name]]
    ends = _beyond(lower, -1), _beyond(upper, 1)
    return CheckedCertificate(not reasons, tuple(reasons), *ends, assumptions)


def _program(content: Any) -> tuple[Any, ...]:
    """The program of a file, its claim, and its four points."""
    kind, data, tolerance, claim, *points, bounds, shift, implied = fields(
        {"diagonal_shift": None, "shift_bounds": None} | content,
        "format program tolerance claim dual primal ray_dual ray_primal variable_bounds "
        "diagonal_shift shift_bounds",
        "version",
    )
    if kind != "seraph_cvx conic certificate":
        raise Malformed("this is neither a conic nor an M-step certificate")
    *_, infeasible, unbounded = fields(claim, "lower upper infeasible unbounded")
    if type(infeasible) is not bool or type(unbounded) is not bool:
        raise Malformed("infeasible and unbounded of the claim have to be true or false")
    if bounds is not None and (infeasible or unbounded):
        raise Malformed("infeasible or unbounded is not claimed within bounds on variables")
    letters = {"dual": "y h zero_rows faces", "primal": "x", "ray_dual": "y", "ray_primal": "x"}
    if points[0] is not None:
        points[0] = {"faces": []} | points[0]
    for name, point in zip(letters, points, strict=True):
        if point is not None:
            fields(point, letters[name], words=f"{name} has to have")
    program = Program(data, tolerance, bounds)
    program.shift(shift, implied or [])
    return program, claim, *points


def _read(text: str) -> Any:
    """The content of a file: objects without a name twice, and numbers that are integers."""

    def each_once(entries: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(entries)) < len(entries):
            raise Malformed("a name stands twice in one object")
        return dict(entries)

    def refused(number: str) -> Any:
        raise Malformed(f"{number} is no double in hexadecimal, such as those of float.hex")

    try:
        return json.loads(
            text, object_pairs_hook=each_once, parse_float=refused, parse_constant=refused
        )
    except json.JSONDecodeError as error:
        raise Malformed(f"this is no JSON: {error}") from None


class Program:
    """The conic program of a file, with its numbers as rationals.

    Bounds on variables are rows of it: first all x_j <= B_j, then all -x_j <= B_j.
    """

    def __init__(self, data: Any, tolerance: Any = None, bounds: Any = None) -> None:
        variables, n_rows, A, b, c, P, cones, offset, maximize, scale = fields(
            data,
            "variables rows A b c P cones offset maximize scale",
            words="the program has to have",
        )
        self.n, self.k = len(c), len(b)
        sizes = [variables, n_rows, scale]
        if [type(v) for v in sizes] != 3 * [int] or sizes != [self.n, self.k, 1]:
            raise Malformed("there are not as many variables and rows as announced")
        if type(maximize) is not bool:
            raise Malformed("maximize has to be true or false")
        self.A = sparse(A, self.k, self.n)
        self.b, self.c = numbers(b, self.k), numbers(c, self.n)
        self.P = [] if P is None else sparse(P, self.n, self.n)
        entries = [(i, j, value) for i, row in enumerate(self.P) for j, value in row.items()]
        if any(self.P[j].get(i) != value for i, j, value in entries):
            raise Malformed("P is not symmetric")
        self.cones = list(cones_of(cones, self.k))
        self.offset, self.sign = number(offset), -1 if maximize else 1
        self.tolerance = 0 if tolerance is None else number(tolerance)
        self.assumptions: tuple[str, ...] = ()
        if self.tolerance < 0:
            raise Malformed("the tolerance is negative")
        if tolerance is not None:
            text = f"constraints count as met to within {float.fromhex(tolerance)!r}"
            self.assumptions = (text,)
        if bounds is not None:
            self._add_bounds(bounds)

    def _add_bounds(self, given: Any) -> None:
        """Add the rows of bounds on absolute values, null where a variable has none."""
        if type(given) is not list or len(given) != self.n:
            raise Malformed("variable_bounds has to be a list with an entry for each variable")
        known = [(j, number(B)) for j, B in enumerate(given) if B is not None]
        if any(B < 0 for _, B in known):
            raise Malformed("a bound on the absolute value of a variable is negative")
        for sign in (1, -1):
            for j, B in known:
                self.cones.append(Cone("nonnegative", [len(self.b)], {0: 1}, ()))
                self.A.append({j: flint.fmpq(sign)})
                self.b.append(B)
        self.k = len(self.b)
        text = f"{len(known)} of {self.n} variables of the conic program are within given bounds"
        self.assumptions += (text,)

    def shift(self, given: Any, implied: Any) -> None:
        """Prove P + D PSD, and that feasible points have |x_j| <= B_j wherever D_j > 0.

        Each implied bound is a product of rows with multipliers in K*, less bounds known before.
        """
        self.convex, self.loss = self.P, flint.fmpq(0)
        ends: list[Row] = [{}, {}]  # upper bounds on x, and on -x
        cone_of = {i: cone for cone in self.cones for i in cone.rows}
        for step in implied if given is not None else ():
            column, rows, values = fields(step, "column rows multipliers")
            mu = dict(zip(integers(rows, len(rows)), numbers(values, len(rows)), strict=True))
            if len(mu) < len(rows) or not mu.keys() <= cone_of.keys():
                raise Malformed("shift_bounds names a row that does not exist, or twice")
            cones = {cone_of[i].rows[0]: cone_of[i] for i in mu}.values()
            y = {i: flint.fmpq(0) for cone in cones for i in cone.rows} | mu
            if not all(cone.contains(y, dual=True) for cone in cones):
                raise Malformed("multipliers of shift_bounds are not in the dual cone")
            bound = dot(mu, self.b) + self.relaxed(cones, y)
            a = combination(mu, self.A)
            own = a.pop(column)
            bound += sum(abs(v) * ends[v > 0][j] for j, v in a.items())
            bound, side = bound / abs(own), ends[own < 0]
            side[column] = min(bound, side.get(column, bound))
        if given is not None:
            D = numbers(given, self.n)
            if min(D) < 0:
                raise Malformed("diagonal_shift is negative")
            rows = self.P or [{} for _ in D]
            self.convex = [row | {j: row.get(j, 0) + D[j]} for j, row in enumerate(rows)]
            for j, d in enumerate(D):
                if d:
                    self.loss += d * max(end[j] ** 2 for end in ends) / 2
        if not is_psd(self.convex):
            raise Malformed("P is not proved positive semidefinite")

    def on_face(self, given: Any) -> Program:
        """The program in which V'SV >= 0 stands for S >= 0; with more points, whatever V is."""
        first, side, order, i, j, value = fields(
            given, "row side order i j value", words="a face has to have"
        )
        integers([first, side, order], 3)
        end = first + math.comb(side + 1, 2)
        if ("psd", range(first, end)) not in [(cone.kind, cone.rows) for cone in self.cones]:
            raise Malformed("a face is not of the rows of a PSD block")
        if not 0 <= order <= side:
            raise Malformed("a face has more columns than rows, or fewer than none")
        columns = sparse({"row": j, "column": i, "value": value}, order, side, integers)
        places = {at: k for k, at in enumerate(combinations_with_replacement(range(side), 2))}
        maps: list[Row] = []
        for u, v in combinations_with_replacement(columns, 2):
            maps.append({})
            for (s, x), (t, y) in product(u.items(), v.items()):
                at = places[min(s, t), max(s, t)]
                maps[-1][at] = maps[-1].get(at, 0) + x * y
        found = copy(self)
        A, b = self.A[first:end], self.b[first:end]
        found.A = self.A[:first] + [combination(row, A) for row in maps] + self.A[end:]
        found.b = self.b[:first] + [dot(row, b) for row in maps] + self.b[end:]
        found.cones, found.k = [], 0
        for cone in self.cones:
            if (cone.kind, cone.rows) == ("psd", range(first, end)):
                e = [cone.e.get(at, 0) for at in range(end - first)]
                cone = replace(cone, rows=maps, e={at: dot(row, e) for at, row in enumerate(maps)})
            rows = range(found.k, found.k + len(cone.rows))
            if rows:
                found.cones.append(replace(cone, rows=rows))
            found.k = rows.stop
        return found

    def relaxed(self, cones: Iterable[Cone], y: Any) -> Any:
        """What a tolerance adds to b'y: e is inside of each cone."""
        return self.tolerance * sum(abs(dot(cone.e, [y[i] for i in cone.rows])) for cone in cones)

    def lower_bound(self, given: Any, c: Sequence[Any], P: list[Row]) -> Any:
        """The bound that a dual point proves with this c and P, both zero for a ray; or -inf."""
        y = numbers(given["y"], self.k)
        zeros = [i for i, value in enumerate(y) if value == 0]
        named = given.get("zero_rows", zeros)
        fixed = {*integers(named, len(named))}
        if not fixed <= {*zeros}:
            raise Malformed("zero_rows names a row that does not exist, or is not zero")
        h = numbers(given["h"] or self.n * [ZERO], self.n) if P else []
        columns: list[Row] = [{} for _ in c]
        for i, row in enumerate([*self.A, *P]):
            for j, value in row.items():
                columns[j][i] = value
        size = max(map(abs, y + h), default=0) or 1
        weights = [radius for cone in self.cones for radius in cone.radii(y, fixed, size)]
        equations = [(columns[j], -c[j]) for j in range(self.n)]
        for point in solutions_near(equations, y + h, weights + len(h) * [size]):
            if not all(cone.contains(point, dual=True) for cone in self.cones):
                continue
            h = point[self.k :]
            value = -dot(self.b, point) - dot(products(P, h), h) / 2
            return value - self.relaxed(self.cones, point)
        return flint.arb("-inf")

    def upper_bound(self, given: Any, is_ray: bool = False) -> Any:
        """The objective at a primal point moved onto its equality rows, if feasible; else inf."""
        b, tolerance = (self.k * [0], 0) if is_ray else (self.b, self.tolerance)
        still = [(row, 0) for row in self.convex] if is_ray else []
        x = numbers(given["x"], self.n)
        slack = [right - value for right, value in zip(b, products(self.A, x), strict=True)]
        equalities = {i for cone in self.cones if cone.kind == "zero" for i in cone.rows}
        within = tolerance > 0 and all(abs(slack[i]) <= tolerance for i in equalities)
        touched = {i for i, a in enumerate(self.A) if (2**70 * slack[i]) ** 2 <= dot(a, a)}
        attempts = [set()] if within else [equalities | touched, equalities]
        for exact in attempts:
            for near in solutions_near([(self.A[i], b[i]) for i in exact] + still, x, self.n * [1]):
                values = enumerate(products(self.A, near))
                slack = [0 if i in exact else b[i] - value for i, value in values]
                for cone in self.cones:
                    for i, e in cone.e.items():
                        slack[cone.rows[i]] += e * tolerance
                if all(cone.contains(slack) for cone in self.cones):
                    return dot(self.c, near) + dot(products(self.P, near), near) / 2
        return flint.arb("inf")


def _beyond(bound: Any, direction: int) -> float | None:
    """A double on the outer side of all of a ball; None if there is none."""
    ball = flint.arb(bound)
    end = ball.upper() if direction > 0 else ball.lower()  # without a radius
    near = float(end)
    if not (flint.arb(near) >= end if direction > 0 else flint.arb(near) <= end):
        near = math.nextafter(near, direction * math.inf)
    return near if math.isfinite(near) else None
