"""Whether `certify_problem` ever claims what is false: instances whose optimum is known exactly.

Most are built backwards from a complementary pair of integer points, so that the optimum is a
rational number; others have a closed form, enclosed in ball arithmetic, or few enough vertices to
be listed. Nothing here is shared with the certifier. An instance is made again from its name and
seed:

    python -m evidence.conic_soundness "mixed cones" 17
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
from flint import acb_mat, arb, arb_mat, ctx, fmpq, fmpq_mat

from .measuring import MeasuredRows, Report

PRECISION = 400
"""Bits in which closed forms are enclosed."""

INFINITY = Fraction(10) ** 400
"""Beyond every double: the optimum of an infeasible problem, or minus that of an unbounded one."""

LEVELS = (0, 0, 4, 9, 13)
"""Rows and columns are scaled by powers of two up to these: by 1e-8 to 1e8 together."""


@dataclass(frozen=True)
class Instance:
    """A problem, and an interval that holds its optimum, or that of its relaxation."""

    problem: cp.Problem
    low: Fraction
    high: Fraction
    options: dict[str, Any] = field(default_factory=dict)


# ---- programs built backwards from a complementary pair ----------------------------------------


def orthogonal(rng: np.random.Generator, side: int) -> list[np.ndarray]:
    """Integer vectors that are orthogonal to each other: columns of a rotation times its scale."""
    a, b, c, d = (int(v) for v in rng.integers(-2, 3, 4))
    if side == 1:
        return [np.array([1])]
    if side == 2:
        a = a or 1
        return [np.array([a, b]), np.array([-b, a])]
    if not (a or b or c or d):
        a = 1
    rotation = np.array(
        [
            [a * a + b * b - c * c - d * d, 2 * (b * c - a * d), 2 * (b * d + a * c)],
            [2 * (b * c + a * d), a * a - b * b + c * c - d * d, 2 * (c * d - a * b)],
            [2 * (b * d - a * c), 2 * (c * d + a * b), a * a - b * b - c * c + d * d],
        ]
    )
    if side == 3:
        return list(rotation.T)
    return [np.append(v, 0) for v in rotation.T] + [np.array([0, 0, 0, 1])]


def pair_nonnegative(rng, size):
    """Slacks and multipliers of which one is zero in every row, or both."""
    s, y = rng.integers(1, 6, size), rng.integers(1, 6, size)
    active = rng.integers(0, 3, size)
    return np.where(active == 0, s, 0), np.where(active == 1, y, 0)


def pair_zero(rng, size):
    return np.zeros(size, dtype=int), rng.integers(-4, 5, size)


def pair_second_order(rng, size):
    """On opposite rays of the boundary, or one inside and the other zero."""
    rays = [(1, 1), (5, 3, 4), (13, 5, 12), (3, 1, 2, 2), (9, 1, 4, 8)]
    fitting = [ray for ray in rays if len(ray) <= size]
    ray = fitting[rng.integers(len(fitting))]
    s = np.array([*ray, *(size - len(ray)) * [0]])
    s[1:] = rng.permutation(s[1:]) * rng.choice([-1, 1], len(s) - 1)
    y = np.append(s[0], -s[1:]) * rng.integers(0, 3)
    inside = s + np.append(rng.integers(1, 4), np.zeros(len(s) - 1, dtype=int))
    zero = np.zeros(len(s), dtype=int)
    return [(s * rng.integers(0, 3), y), (inside, zero), (zero, inside)][rng.integers(3)]


def pair_psd(rng, side):
    """Sums of orthogonal rank-one matrices, each in one of the two, or in none."""
    S, Y = np.zeros((2, side, side), dtype=int)
    for v in orthogonal(rng, side):
        kind, weight = rng.integers(0, 3), int(rng.integers(1, 4))
        if kind == 0:
            S += weight * np.outer(v, v)
        elif kind == 1:
            Y += weight * np.outer(v, v)
    rows, columns = lower_triangle(side)
    return S[rows, columns], np.where(rows == columns, 1, 2) * Y[rows, columns]


def pair_exponential(rng, _):
    v, k, w, u = (int(value) for value in rng.integers(1, 5, 4))
    zero = np.zeros(3, dtype=int)
    kinds = [
        ((0, v, v), (-k, -k, k)),  # a point of the boundary and its normal
        ((-u, 0, w), (0, k, 0)),  # the face v = 0
        ((-u, 0, 0), (0, k, w)),
        ((0, 0, w), (0, k, 0)),
        ((-u, v, v + w), zero),  # inside
        (zero, (-k, u, k)),
        (zero, (0, k, w)),
    ]
    s, y = kinds[rng.integers(len(kinds))]
    return np.array(s), np.array(y)


def pair_power(rng, alpha):
    p, q = (int(value) for value in rng.integers(1, 4, 2))
    sign, zero = int(rng.choice([-1, 1])), np.zeros(3, dtype=int)
    if alpha == 0.5:
        s, y = (p * p, q * q, sign * p * q), (q * q, p * p, -2 * sign * p * q)
    else:  # 1/4
        s = (p**4, q**4, sign * p * q**3)
        y = (q**4, 3 * p**4, -4 * sign * p**3 * q)
    kinds = [
        (s, y),
        (np.add(s, (1, 1, 0)), zero),
        (zero, np.add(y, (1, 1, 0))),
        ((p, 0, 0), (0, q, 0)),
        (s, zero),
    ]
    s, y = kinds[rng.integers(len(kinds))]
    return np.array(s), np.array(y)


PAIRS: dict[str, Callable[..., Any]] = {
    "zero": pair_zero,
    "nonnegative": pair_nonnegative,
    "second_order": pair_second_order,
    "psd": pair_psd,
    "exponential": pair_exponential,
    "power": pair_power,
}


def lower_triangle(side: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the lower triangle, column by column."""
    columns, rows = np.triu_indices(side)
    return rows, columns


@dataclass
class Draft:
    """A conic program of integers (as objects, so that nothing rounds), and x, s, y of it."""

    A: np.ndarray
    s: np.ndarray
    y: np.ndarray
    x: np.ndarray
    P: np.ndarray
    cones: list[tuple[str, Any, int]]  # kind, parameter, rows

    @property
    def b(self) -> np.ndarray:
        return self.A @ self.x + self.s

    @property
    def c(self) -> np.ndarray:
        return -(self.A.T @ self.y) - self.P @ self.x

    @property
    def value(self) -> Fraction:
        return Fraction(self.c @ self.x) + Fraction(self.x @ self.P @ self.x) / 2


def drafted(rng: np.random.Generator, kinds: list[str], quadratic: bool = False) -> Draft:
    """A program with blocks of these kinds, around a complementary pair."""
    n, blocks = int(rng.integers(1, 7)), []
    for kind in kinds:
        size: Any = int(rng.integers(1, 5))
        if kind == "second_order":
            size = int(rng.integers(2, 6))
        if kind == "psd":
            size = int(rng.integers(2, 5))
        if kind == "power":
            size = float(rng.choice([0.5, 0.25]))
        s, y = PAIRS[kind](rng, size)
        blocks.append((kind, size, s, y))
    s, y = (np.concatenate([block[i] for block in blocks]).astype(object) for i in (2, 3))
    A = rng.integers(-3, 4, (len(s), n)) * (rng.random((len(s), n)) < rng.choice([0.4, 1.0]))
    P = np.zeros((n, n), dtype=object)
    if quadratic:
        B = rng.integers(-2, 3, (int(rng.integers(1, n + 1)), n)).astype(object)
        P = 2 * B.T @ B
    x = rng.integers(-4, 5, n).astype(object)
    cones = [(kind, size, len(s)) for kind, size, s, _ in blocks]
    return Draft(A.astype(object), s, y, x, P, cones)


def with_rows(draft: Draft, kind: str, rows: list[Any], s: list[Any]) -> Draft:
    """The program with rows added that have no multiplier."""
    A = np.vstack([draft.A, np.array(rows, dtype=object).reshape(len(s), -1)])
    y = np.append(draft.y, np.zeros(len(s), dtype=object))
    cones = [*draft.cones, (kind, len(s), len(s))]
    return Draft(A, np.append(draft.s, np.array(s, dtype=object)), y, draft.x, draft.P, cones)


def redundant(rng: np.random.Generator, draft: Draft) -> Draft:
    """The program with rows that follow from others, and with a variable twice."""
    for kind in ("nonnegative", "zero"):
        rows = [i for i, k in enumerate(row_kinds(draft)) if k == kind]
        if rows:
            weights = rng.integers(0, 3, (2, len(rows))).astype(object)
            draft = with_rows(
                draft, kind, list(weights @ draft.A[rows]), list(weights @ draft.s[rows])
            )
    if rng.random() < 0.5:
        A = np.hstack([draft.A, draft.A[:, :1]])
        x = np.append(draft.x, 0)
        P = np.zeros((len(x), len(x)), dtype=object)
        P[:-1, :-1], P[-1, :-1], P[:-1, -1] = draft.P, draft.P[0], draft.P[:, 0]
        P[-1, -1] = draft.P[0, 0]
        draft = Draft(A, draft.s, draft.y, x, P, draft.cones)
    return draft


def thin(rng: np.random.Generator, draft: Draft) -> Draft:
    """The program with a pair of parallel constraints that leave almost nothing between them."""
    row = rng.integers(-3, 4, len(draft.x)).astype(object)
    width = Fraction(1, 2 ** int(rng.integers(10, 34)))
    return with_rows(draft, "nonnegative", [row, -row], [Fraction(0), width])


def row_kinds(draft: Draft) -> list[str]:
    return [kind for kind, _, rows in draft.cones for _ in range(rows)]


def stated(
    rng: np.random.Generator,
    A: np.ndarray,
    b: np.ndarray,
    c: np.ndarray,
    P: np.ndarray,
    cones: list[tuple[str, Any, int]],
    value: Fraction,
    relax: Callable[..., Any] = lambda *scales: (Fraction(0), lambda x: {}),
) -> Instance | None:
    """The CVXPY statement of a program, scaled at random; None if a number is no double.

    `relax` says, of the scales of objective, rows and columns, by how much options for the
    certifier may lower the optimum, and what they are.
    """
    level = int(rng.choice(LEVELS))

    def power(size=None):
        return np.array([Fraction(2) ** int(k) for k in rng.integers(-level, level + 1, size)])

    n = len(c)
    row_scales = np.concatenate(
        [power(rows) if kind in ("zero", "nonnegative") else np.full(rows, power(1)[0])
         for kind, _, rows in cones] or [power(0)]
    )  # fmt: skip
    column_scales, factor = power(n), power(1)[0]
    A = row_scales[:, None] * A * column_scales
    P = factor * column_scales[:, None] * P * column_scales
    maximize, offset = bool(rng.random() < 0.3), Fraction(int(rng.integers(-3, 4)))
    sign = -1 if maximize else 1
    data: list[Any] = [
        doubles(v) for v in (A, row_scales * b, sign * factor * column_scales * c, sign * P / 2)
    ]
    if any(v is None for v in data):
        return None
    A, b, c, half_P = data
    x = cp.Variable(n)
    objective = c @ x + float(offset)
    if half_P.any():
        objective += sign * cp.quad_form(x, sign * half_P, assume_PSD=True)
    constraints, start = [], 0
    for kind, size, rows in cones:
        block = slice(start, start + rows)
        constraints.append(constraint(kind, size, A[block], b[block], x))
        start += rows
    problem = cp.Problem((cp.Maximize if maximize else cp.Minimize)(objective), constraints)
    optimum = offset + sign * (value * factor if abs(value) < INFINITY else value)
    loss, options = relax(factor, row_scales, column_scales)
    low, high = sorted((optimum - sign * loss, optimum))
    return Instance(problem, low, high, options(x))


def doubles(values: np.ndarray) -> np.ndarray | None:
    """An array of rationals as doubles, or None if one of them would be rounded."""
    rounded = np.array([float(v) for v in values.ravel()]).reshape(values.shape)
    exact = all(Fraction(r) == v for r, v in zip(rounded.ravel(), values.ravel(), strict=True))
    return rounded if exact else None


def constraint(kind: str, size: Any, A: np.ndarray, b: np.ndarray, x: cp.Variable) -> Any:
    """b - Ax in a cone, in CVXPY's words."""
    if kind == "zero":
        return A @ x == b
    if kind == "psd":
        rows, columns = lower_triangle(size)
        index = np.zeros((size, size), dtype=int)
        index[rows, columns] = index[columns, rows] = np.arange(len(rows))
        places = index.ravel()
        return cp.reshape(b[places] - A[places] @ x, (size, size), order="C") >> 0
    slack = b - A @ x
    if kind == "nonnegative":
        return slack >= 0
    if kind == "second_order":
        return cp.SOC(slack[0], slack[1:])
    if kind == "exponential":
        return cp.ExpCone(slack[0], slack[1], slack[2])
    if kind == "power":
        return cp.PowCone3D(slack[0], slack[1], slack[2], size)
    raise ValueError(f"no statement of the cone {kind!r}")


def from_draft(rng: np.random.Generator, draft: Draft, **options: Any) -> Instance | None:
    return stated(rng, draft.A, draft.b, draft.c, draft.P, draft.cones, draft.value, **options)


def tolerant(rng: np.random.Generator) -> Instance | None:
    """A program whose constraints may be violated: its optimum falls by tolerance * e'y at most."""
    draft = drafted(rng, some_kinds(rng, CONES), quadratic=bool(rng.random() < 0.3))
    tolerance = 10.0 ** -int(rng.integers(1, 9))
    e = np.concatenate([np.array(unit(*cone), dtype=object) for cone in draft.cones])
    equalities = np.array(row_kinds(draft)) == "zero"

    def relax(factor: Fraction, rows: Any, columns: Any) -> Any:
        costs = e * draft.y / rows
        loss = factor * sum(np.where(equalities, abs(costs), costs), Fraction(0))
        return loss * Fraction(tolerance), lambda x: {"tolerance": tolerance}

    return from_draft(rng, draft, relax=relax)


def unit(kind: str, size: Any, rows: int) -> list[int]:
    """The direction in which a tolerance relaxes a cone."""
    if kind == "psd":
        return [int(i == j) for i, j in zip(*lower_triangle(size), strict=True)]
    if kind == "second_order":
        return [1] + (rows - 1) * [0]
    return {"exponential": [-1, 1, 1], "power": [1, 1, 0]}.get(kind, rows * [1])


def within_bounds(rng: np.random.Generator) -> Instance | None:
    """A program with bounds on its variables that an optimal point respects."""
    draft = drafted(rng, some_kinds(rng, CONES), quadratic=bool(rng.random() < 0.3))
    slack = int(rng.choice([0, 1, 1000]))

    def relax(factor: Fraction, rows: Any, columns: Any) -> Any:
        bounds = np.array([float(v) for v in (abs(draft.x) + slack) / columns])
        return Fraction(0), lambda x: {"bounds": {x: bounds}}

    return from_draft(rng, draft, relax=relax)


def some_kinds(rng: np.random.Generator, among: tuple[str, ...]) -> list[str]:
    return [str(kind) for kind in rng.choice(among, int(rng.integers(1, 4)))]


CONES = ("zero", "nonnegative", "second_order", "psd", "exponential", "power")


def built(*among: str, quadratic: bool = False, change: Callable[..., Draft] | None = None):
    """A family of programs with these cones."""

    def make(rng: np.random.Generator) -> Instance | None:
        draft = drafted(rng, some_kinds(rng, among), quadratic)
        return from_draft(rng, draft if change is None else change(rng, draft))

    return make


def infeasible(rng: np.random.Generator) -> Instance | None:
    """A program with multipliers that prove it infeasible, by a margin of 1 to 1e-8."""
    draft = drafted(rng, ["nonnegative", *some_kinds(rng, CONES)])
    y = draft.y.copy()
    y[0] = 1
    A = draft.A.copy()
    A[0] = -(y[1:] @ A[1:])
    margin = Fraction(1, 2 ** int(rng.choice([0, 4, 12, 20, 27])))
    b = A @ draft.x + draft.s
    b[0] = -margin - y[1:] @ b[1:]
    c = rng.integers(-3, 4, len(draft.x)).astype(object)
    return stated(rng, A, b, c, 0 * draft.P, draft.cones, INFINITY)


def unbounded(rng: np.random.Generator) -> Instance | None:
    """A program with a feasible point, and a ray along which the objective falls."""
    draft = drafted(rng, some_kinds(rng, CONES))
    ray = rng.integers(-2, 3, len(draft.x)).astype(object)
    ray[-1] = 1
    A = draft.A.copy()
    fall = np.concatenate(
        [PAIRS[kind](rng, size)[0][:rows] for kind, size, rows in draft.cones]
    ).astype(object)
    if len(fall) != len(draft.s):
        return None
    A[:, -1] = -fall - A[:, :-1] @ ray[:-1]
    c = rng.integers(-3, 4, len(ray)).astype(object)
    c[-1] = -Fraction(1, 2 ** int(rng.choice([0, 4, 12, 20]))) - c[:-1] @ ray[:-1]
    b = A @ draft.x + draft.s
    return stated(rng, A, b, c, 0 * draft.P, draft.cones, -INFINITY)


# ---- textbook programs without a dual optimum, or without an optimum ---------------------------


def textbook(rng: np.random.Generator) -> Instance | None:
    """Programs with a duality gap, or unattained, or weakly infeasible, in other bases."""
    name = rng.choice(["gap", "sdp", "weak", "socp", "exponential", "corner", "no interior"])
    zero = np.zeros
    rows: dict[tuple[int, int], Any]  # entries of a matrix: its constant and its coefficients
    if name == "gap":  # [[0, y1, 0], [y1, y2, 0], [0, 0, y1 + 1]] PSD: the optimum 0, the dual's -1
        rows = {(0, 0): (0, (0, 0)), (1, 0): (0, (1, 0)), (1, 1): (0, (0, 1)), (2, 2): (1, (1, 0))}
        return lmi(rng, 3, 2, rows, (1, 0), Fraction(0))
    if name == "sdp":  # [[x, 1], [1, y]] PSD: inf x = 0
        rows = {(0, 0): (0, (1, 0)), (1, 0): (1, (0, 0)), (1, 1): (0, (0, 1))}
        return lmi(rng, 2, 2, rows, (1, 0), Fraction(0))
    if name == "weak":  # [[x, 1], [1, 0]] PSD: infeasible, and no multiplier proves it
        rows = {(0, 0): (0, (1,)), (1, 0): (1, (0,))}
        return lmi(rng, 2, 1, rows, (1,), INFINITY)
    if name == "no interior":  # [[x, y], [y, 0]] PSD: y = 0; minimize x - y = 0
        rows = {(0, 0): (0, (1, 0)), (1, 0): (0, (0, 1))}
        return lmi(rng, 2, 2, rows, (1, -1), Fraction(0))
    if name == "socp":  # |(z, 1)| <= t: inf t - z = 0
        A = np.array([[-1, 0], [0, -1], [0, 0]], dtype=object)
        b, c = np.array([0, 0, 1], dtype=object), np.array([1, -1], dtype=object)
        cones = [("second_order", 3, 3)]
        return stated(rng, A, b, c, zero((2, 2), dtype=object), cones, Fraction(0))
    if name == "corner":  # |x| <= y, y <= 0: the point 0 alone
        A = np.array([[0, -1], [-1, 0], [0, 1]], dtype=object)
        b, c = zero(3, dtype=object), np.array([1, 1], dtype=object)
        cones = [("second_order", 2, 2), ("nonnegative", 1, 1)]
        return stated(rng, A, b, c, zero((2, 2), dtype=object), cones, Fraction(0))
    A = np.array([[-1, 0], [0, 0], [0, -1]], dtype=object)  # e^x <= w: inf w = 0
    b, c = np.array([0, 1, 0], dtype=object), np.array([0, 1], dtype=object)
    cones = [("exponential", 3, 3)]
    return stated(rng, A, b, c, zero((2, 2), dtype=object), cones, Fraction(0))


def lmi(rng, side, n, entries, c, value) -> Instance | None:
    """F0 + sum x_i F_i PSD in a basis turned by an integer matrix of determinant 1."""
    F = np.zeros((n + 1, side, side), dtype=object)
    for (i, j), (constant, coefficients) in entries.items():
        F[:, i, j] = F[:, j, i] = (constant, *coefficients)
    T = np.eye(side, dtype=int).astype(object)
    for _ in range(int(rng.integers(0, 3))):
        i, j = rng.choice(side, 2, replace=False)
        T[i] = T[i] + int(rng.integers(-2, 3)) * T[j]
    F = np.array([T @ M @ T.T for M in F], dtype=object)
    rows, columns = lower_triangle(side)
    A = -F[1:, rows, columns].T
    cones = [("psd", side, len(rows))]
    P = np.zeros((n, n), dtype=object)
    return stated(rng, A, F[0, rows, columns], np.array(c, dtype=object), P, cones, value)


# ---- doubles of any kind, with the optimum by other means ---------------------------------------


def random_doubles(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Normal numbers of some scale between 1e-8 and 1e8."""
    reach = int(rng.choice([0, 3, 8]))
    return rng.normal(size=shape) * 10.0 ** rng.integers(-reach, reach + 1)


def enclosed(problem: cp.Problem, optimum: arb) -> Instance | None:
    """An instance whose optimum lies in a ball."""
    if not optimum.is_finite():
        return None
    ends = [optimum.lower(), optimum.upper()]
    low, high = (Fraction(int(e.man_exp()[0])) * Fraction(2) ** int(e.man_exp()[1]) for e in ends)
    return Instance(problem, low, high)


def ball(value: float) -> arb:
    return arb(float(value))


def vertices(rng: np.random.Generator) -> Instance | None:
    """A linear program in a box, with normal data, by listing its vertices in rationals."""
    n, extra = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    A = np.vstack([random_doubles(rng, extra, n), np.eye(n), -np.eye(n)])
    inside = rng.uniform(-0.5, 0.5, n)
    b = np.concatenate([A[:extra] @ inside + np.abs(random_doubles(rng, extra)), np.ones(2 * n)])
    c = random_doubles(rng, n)
    exact_A = [[Fraction(v) for v in row] for row in A]
    exact_b, exact_c = [Fraction(v) for v in b], [Fraction(v) for v in c]
    best = None
    for chosen in combinations(range(len(b)), n):
        M = fmpq_mat([[fmpq(*v.as_integer_ratio()) for v in exact_A[i]] for i in chosen])
        if M.det() == 0:
            continue
        solution = M.solve(fmpq_mat([[fmpq(*exact_b[i].as_integer_ratio())] for i in chosen]))
        point = [Fraction(int(v.p), int(v.q)) for v in solution.entries()]
        if all(
            sum(a * v for a, v in zip(row, point, strict=True)) <= limit
            for row, limit in zip(exact_A, exact_b, strict=True)
        ):
            value = sum(a * v for a, v in zip(exact_c, point, strict=True))
            best = value if best is None else min(best, value)
    if best is None:
        return None
    x = cp.Variable(n)
    return Instance(cp.Problem(cp.Minimize(c @ x), [A @ x <= b]), best, best)


def in_a_ball(rng: np.random.Generator) -> Instance | None:
    """A linear function on a ball: c'a - r|c|."""
    n = int(rng.integers(1, 5))
    a, c, r = random_doubles(rng, n), random_doubles(rng, n), float(abs(random_doubles(rng)))
    x = cp.Variable(n)
    length = sum((ball(v) ** 2 for v in c), arb(0)).sqrt()
    value = sum((ball(u) * ball(v) for u, v in zip(a, c, strict=True)), arb(0)) - ball(r) * length
    return enclosed(cp.Problem(cp.Minimize(c @ x), [cp.SOC(cp.Constant(r), x - a)]), value)


def eigenvalue(rng: np.random.Generator) -> Instance | None:
    """The largest eigenvalue of a symmetric matrix of doubles."""
    side = int(rng.integers(2, 5))
    M = random_doubles(rng, side, side)
    M = np.tril(M) + np.tril(M, -1).T
    try:
        found = acb_mat(arb_mat(M.tolist())).eig(algorithm="rump")
    except ValueError:
        return None
    real = [value.real for value in found]
    top = max(real, key=lambda v: float(v.mid()))
    if not all(v is top or v < top for v in real):
        return None
    t = cp.Variable()
    return enclosed(cp.Problem(cp.Minimize(t), [t * np.eye(side) - M >> 0]), top)


def quadratic(rng: np.random.Generator) -> Instance | None:
    """A positive definite quadratic function: -c'P^-1 c/2."""
    n = int(rng.integers(1, 5))
    B, c = random_doubles(rng, n + 1, n), random_doubles(rng, n)
    P = B.T @ B
    P = (P + P.T) / 2
    exact = fmpq_mat([[fmpq(*float(v).as_integer_ratio()) for v in row] for row in 2 * P])
    minors = [fmpq_mat([[exact[i, j] for j in range(k)] for i in range(k)]).det()
              for k in range(1, n + 1)]  # fmt: skip
    if not all(minor > 0 for minor in minors):
        return None
    right = fmpq_mat([[fmpq(*float(v).as_integer_ratio())] for v in c])
    value = -(right.transpose() * exact.solve(right))[0, 0] / 2
    x, optimum = cp.Variable(n), Fraction(int(value.p), int(value.q))
    objective = cp.quad_form(x, P, assume_PSD=True) + c @ x
    return Instance(cp.Problem(cp.Minimize(objective)), optimum, optimum)


def singular_quadratic(rng: np.random.Generator) -> Instance | None:
    """A quadratic form of low rank; where rounding made it indefinite, there is no optimum."""
    n = int(rng.integers(2, 4))
    B, z = random_doubles(rng, n - 1, n), rng.integers(-3, 4, n).astype(float)
    if rng.random() < 0.5:
        B = np.round(B / np.abs(B).max() * 8)
    P = B.T @ B
    P = (P + P.T) / 2
    c = -2 * P @ z
    exact = fmpq_mat([[fmpq(*float(v).as_integer_ratio()) for v in row] for row in 2 * P])
    right = fmpq_mat([[fmpq(*float(v).as_integer_ratio())] for v in -c])
    point = fmpq_mat([[fmpq(int(v))] for v in z])
    subsets = [rows for k in range(1, n + 1) for rows in combinations(range(n), k)]
    is_convex = all(fmpq_mat([[exact[i, j] for j in rows] for i in rows]).det() >= 0
                    for rows in subsets)  # fmt: skip
    if is_convex and exact * point != right:
        return None
    value = -INFINITY
    if is_convex:
        half = (right.transpose() * point)[0, 0] / 2
        value = -Fraction(int(half.p), int(half.q))
    x = cp.Variable(n)
    try:
        problem = cp.Problem(cp.Minimize(cp.quad_form(x, P) + c @ x))
        return Instance(problem, value, value) if problem.is_dcp() else None
    except ValueError:  # of ARPACK, with which CVXPY looks for a negative eigenvalue
        return None


def exponentials(rng: np.random.Generator) -> Instance | None:
    """A sum of e^(x_i) - k_i x_i: sum k_i (1 - log k_i)."""
    n = int(rng.integers(1, 4))
    k = np.abs(random_doubles(rng, n))
    if not k.all():
        return None
    x = cp.Variable(n)
    value = sum((ball(v) * (1 - ball(v).log()) for v in k), arb(0))
    return enclosed(cp.Problem(cp.Minimize(cp.sum(cp.exp(x)) - k @ x)), value)


def maximum_entropy(rng: np.random.Generator) -> Instance | None:
    """sum entr(x) + c'x on the simplex: log sum e^c."""
    n = int(rng.integers(1, 6))
    c = rng.normal(size=n) * float(rng.choice([0.1, 1.0, 10.0, 100.0]))
    x = cp.Variable(n)
    value = sum((ball(v).exp() for v in c), arb(0)).log()
    objective = cp.Maximize(cp.sum(cp.entr(x)) + c @ x)
    return enclosed(cp.Problem(objective, [cp.sum(x) == 1]), value)


def log_sum(rng: np.random.Generator) -> Instance | None:
    """The smallest log-sum-exp on a line where it is symmetric: log(2 cosh 0 + sum e^d)."""
    n = int(rng.integers(0, 4))
    d, a = rng.normal(size=n) * 5.0, float(rng.uniform(0.1, 4.0))
    x = cp.Variable()
    parts = [a * x, -a * x, *(cp.Constant(v) for v in d)]
    value = (2 + sum((ball(v).exp() for v in d), arb(0))).log()
    return enclosed(cp.Problem(cp.Minimize(cp.log_sum_exp(cp.hstack(parts)))), value)


def powers(rng: np.random.Generator) -> Instance | None:
    """|x|^p - kx for x >= 0, p = 3/2 or 3 or 4, and the geometric mean under a budget."""
    k, x = float(abs(random_doubles(rng))), cp.Variable()
    if k == 0.0:
        return None
    if rng.random() < 0.5:
        p = [Fraction(3, 2), Fraction(3), Fraction(4)][rng.integers(3)]
        q = arb(fmpq(p.numerator, p.denominator))
        at = (ball(k) / q) ** (1 / (q - 1))
        value = at**q - ball(k) * at
        return enclosed(cp.Problem(cp.Minimize(cp.power(x, float(p)) - k * x), [x >= 0]), value)
    a = np.abs(random_doubles(rng, 2))
    if not a.all():
        return None
    u, v, w = cp.Variable(), cp.Variable(), cp.Variable()
    alpha = float(rng.choice([0.5, 0.25, 0.125]))
    cone = cp.PowCone3D(u, v, w, alpha)
    share = [alpha, 1 - alpha]  # of the budget k
    value = arb(1)
    for part, price in zip(share, a, strict=True):
        value *= (ball(part) * ball(k) / ball(price)) ** ball(part)
    problem = cp.Problem(cp.Maximize(w), [cone, float(a[0]) * u + float(a[1]) * v <= k])
    return enclosed(problem, value)


FAMILIES: dict[str, Callable[[np.random.Generator], Instance | None]] = {
    "linear": built("zero", "nonnegative"),
    "second-order": built("second_order", "nonnegative"),
    "semidefinite": built("psd", "zero"),
    "exponential": built("exponential", "nonnegative"),
    "power": built("power", "nonnegative"),
    "mixed cones": built(*CONES),
    "quadratic objective": built(*CONES, quadratic=True),
    "redundant rows": built(*CONES, change=redundant),
    "redundant, quadratic": built("zero", "nonnegative", quadratic=True, change=redundant),
    "nearly infeasible": built(*CONES, change=thin),
    "with a tolerance": tolerant,
    "with bounds on variables": within_bounds,
    "infeasible": infeasible,
    "unbounded": unbounded,
    "textbook, ill-posed": textbook,
    "doubles: linear": vertices,
    "doubles: ball": in_a_ball,
    "doubles: eigenvalue": eigenvalue,
    "doubles: quadratic": quadratic,
    "doubles: singular quadratic": singular_quadratic,
    "doubles: exponentials": exponentials,
    "doubles: entropy": maximum_entropy,
    "doubles: log-sum-exp": log_sum,
    "doubles: powers": powers,
}


def instance(family: str, seed: int) -> Instance:
    """The instance of a family and a seed; draws that come to nothing are drawn again."""
    with ctx.workprec(PRECISION):
        for attempt in range(1000):
            rng = np.random.default_rng([seed, attempt, *family.encode()])
            made = FAMILIES[family](rng)
            if made is not None:
                return made
    raise RuntimeError(f"no instance of {family!r} for seed {seed}")


def false_claims(made: Instance, lower: float, upper: float, infeasible: bool, unbounded: bool):
    """What of a claim is false, given where the optimum is."""
    wrong = []
    if lower == math.inf or (math.isfinite(lower) and Fraction(lower) > made.high):
        wrong += [] if made.low >= INFINITY / 2 else ["lower"]
    if upper == -math.inf or (math.isfinite(upper) and Fraction(upper) < made.low):
        wrong += [] if made.high <= -INFINITY / 2 else ["upper"]
    if (infeasible or unbounded) and abs(made.low) < INFINITY / 2:
        wrong.append("infeasible" if infeasible else "unbounded")
    return wrong


def judged(family: str, seed: int) -> dict[str, Any]:
    """Certify an instance, and judge what is claimed; then its file, and the same tampered with."""
    from seraph_cvx.certificate.conic import certify_problem

    made = instance(family, seed)
    clock = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            proved = certify_problem(made.problem, **made.options)
    except ValueError as refusal:
        return {"refused": str(refusal)}
    except ArithmeticError as crossed:
        return {"wrong": [f"crossed: {crossed}"]}
    seconds = time.perf_counter() - clock
    claimed = (proved.lower, proved.upper, proved.infeasible, proved.unbounded)
    row = {"claimed": claimed, "seconds": seconds, "wrong": false_claims(made, *claimed)}
    row |= judged_file(made, json.loads(proved.to_json()))
    if not made.options:
        row["wrong"] += judged_starts(made, np.random.default_rng([seed, 1]))
    return row


def judged_file(made: Instance, content: dict[str, Any]) -> dict[str, Any]:
    """What the checker says of a certificate, and of others that claim a little more."""
    from seraph_cvx.certificate.conic.checker import check_certificate

    claim = content["claim"]
    if claim == {"lower": None, "upper": None, "infeasible": False, "unbounded": False}:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "certificate.json"
        path.write_text(json.dumps(content))
        found = check_certificate(path)
        accepted = []
        for side, sign, end in (("lower", 1, made.high), ("upper", -1, made.low)):
            if claim[side] is not None and abs(end) < INFINITY / 2:
                beyond = math.nextafter(float(end), sign * math.inf)
                beyond = math.nextafter(beyond + sign * 1e-12 * abs(beyond), sign * math.inf)
                path.write_text(json.dumps(content | {"claim": claim | {side: beyond.hex()}}))
                accepted += [side] if check_certificate(path).valid else []
    return {"checked": found.valid, "reasons": found.reasons, "tampered": accepted}


NOISE = (1e-12, 1e-6, 1e-2, 1.0, 1e4)
"""How wrong the starts of proofs are, relatively."""


def judged_starts(made: Instance, rng: np.random.Generator) -> list[str]:
    """False bounds that the certifier proves from wrong answers of a solver."""
    from seraph_cvx.certificate.conic.lower_bound import lower_bound
    from seraph_cvx.certificate.conic.program import canonicalize
    from seraph_cvx.certificate.conic.rays import prove_infeasible
    from seraph_cvx.certificate.conic.solve import solve
    from seraph_cvx.certificate.conic.upper_bound import upper_bound

    program, wrong = canonicalize(made.problem).program, []
    sign, offset = int(program.sign), Fraction(program.offset)
    low, high = sorted(sign * (end - offset) for end in (made.low, made.high))
    start = solve(program)
    noise = float(rng.choice(NOISE))
    with np.errstate(all="ignore"):
        vectors = [
            np.nan_to_num(v) * (1 + noise * rng.normal(size=v.shape))
            + 1e-3 * noise * rng.normal(size=v.shape)
            for v in (start.x, start.s, start.y)
        ]
    wrong_start = start._replace(x=vectors[0], s=vectors[1], y=vectors[2], status="Solved")
    below = lower_bound(program, wrong_start, [])
    if below is not None and Fraction(below.value) > high:
        wrong.append(f"lower bound from a start {noise:g} off")
    above = upper_bound(program, wrong_start, 0.0, [])
    if above is not None and math.isfinite(above.value) and Fraction(above.value) < low:
        wrong.append(f"upper bound from a start {noise:g} off")
    ray = prove_infeasible(program, wrong_start, [])
    if ray is not None and abs(low) < INFINITY / 2:
        wrong.append(f"infeasible from a start {noise:g} off")
    return wrong


def judged_safely(family: str, seed: int) -> dict[str, Any]:
    """What is judged of an instance, or the panic of a solver that the certifier let through."""
    try:
        return judged(family, seed)
    except BaseException as panic:
        if type(panic).__name__ != "PanicException":  # of Rust, and no Exception
            raise
        return {"crashed": f"{type(panic).__name__}: {panic}"}


def bench_soundness(report: Report, n_instances: int = 5_000) -> MeasuredRows:
    """Certify random instances of every family, and count what is false."""
    report.start("Claims on instances whose optimum is known")
    seeds = -(-n_instances // len(FAMILIES))
    for family in FAMILIES:
        rows = []
        for seed in range(seeds):
            report.tell(f"{family}, {seed} of {seeds}")
            rows.append(judged_safely(family, seed))
            for kind in ("wrong", "tampered", "crashed"):
                if rows[-1].get(kind):
                    report.note(f"{family!r}, seed {seed}: {kind}: {rows[-1][kind]}")
        yield counted(family, rows)


def counted(family: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """A row of the table, of the instances of a family."""
    claims = [row["claimed"] for row in rows if "claimed" in row]
    settled = [infeasible or unbounded for _, _, infeasible, unbounded in claims]
    ends = [
        (lower, upper) for (lower, upper, *_), no in zip(claims, settled, strict=True) if not no
    ]
    both = [
        (lower, upper) for lower, upper in ends if math.isfinite(lower) and math.isfinite(upper)
    ]
    gaps = [(upper - lower) / max(1.0, abs(lower), abs(upper)) for lower, upper in both]
    files = [row["checked"] for row in rows if "checked" in row]
    return {
        "family": family,
        "instances": len(rows),
        "false claims": sum(len(row.get("wrong", ())) for row in rows),
        "both bounds": len(both),
        "gap <= 1e-6": sum(gap <= 1e-6 for gap in gaps),
        "infeasible or unbounded": sum(settled),
        "no lower": sum(not math.isfinite(lower) for lower, _ in ends),
        "no upper": sum(not math.isfinite(upper) for _, upper in ends),
        "refused": sum("refused" in row for row in rows),
        "crashed": sum("crashed" in row for row in rows),
        "files accepted": f"{sum(files)} of {len(files)}",
        "false files accepted": sum(len(row.get("tampered", ())) for row in rows),
        "median gap": float(np.median(gaps)) if gaps else math.nan,
        "median s": float(np.median([row.get("seconds", 0.0) for row in rows])),
    }


def main() -> None:
    """Show one instance: its problem, where its optimum is, and what is claimed."""
    family, seed = sys.argv[1], int(sys.argv[2])
    made = instance(family, seed)
    print(made.problem)
    print("optimum between", float(made.low), "and", float(made.high))
    for name, value in judged(family, seed).items():
        print(f"{name}: {value}")


if __name__ == "__main__":
    main()
