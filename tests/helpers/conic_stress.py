"""Whether `certify_problem` ever claims what is false: instances whose optimum is known exactly.

Most are built backwards from a complementary pair of integer points, so that the optimum is a
rational number; others have a closed form, enclosed in ball arithmetic, or few enough vertices to
be listed. Nothing here is shared with the certifier. All families, or one instance again:

    python tests/helpers/conic_stress.py --count 5000
    python tests/helpers/conic_stress.py --family "mixed cones" --seed 17
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import re
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations
from operator import mul
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.transforms.indicator import indicator
from cvxpy.transforms.partial_optimize import partial_optimize
from flint import acb_mat, arb, arb_mat, ctx, fmpq, fmpq_mat

PRECISION = 400
"""Bits in which closed forms are enclosed."""

INFINITY = Fraction(10) ** 400
"""Beyond every double: the optimum of an infeasible problem, or minus that of an unbounded one."""

LEVELS = (0, 0, 4, 9, 13)
"""Rows and columns are scaled by powers of two up to these: by 1e-8 to 1e8 together."""

EDGES = (300, 500, 530, 1020, 1060)
"""The same where products underflow or overflow, or data are subnormal."""


@dataclass(frozen=True)
class Instance:
    """A problem, and an interval that holds its optimum, or that of its relaxation."""

    problem: cp.Problem
    low: Fraction
    high: Fraction
    options: dict[str, Any] = field(default_factory=dict)
    contradicts: bool = False  # as doubles, by rounding: to say that it is infeasible is true, too


# ---- programs built backwards from a complementary pair ----------------------------------------


def orthogonal(rng: np.random.Generator, side: int) -> list[np.ndarray]:
    """Integer vectors that are orthogonal to each other: columns of a rotation times its scale."""
    a, *v = (int(value) for value in rng.integers(-2, 3, 4))
    if side == 1:
        return [np.array([1])]
    if side == 2:
        a, b = a or 1, v[0]
        return [np.array([a, b]), np.array([-b, a])]
    a, unit = a if a or any(v) else 1, np.eye(3, dtype=int)
    columns = (a * a - np.dot(v, v)) * unit + 2 * np.outer(v, v) + 2 * a * np.cross(v, unit)
    if side == 3:
        return list(columns)
    return [np.append(column, 0) for column in columns] + [np.array([0, 0, 0, 1])]


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
        unit = np.eye(len(draft.x), dtype=int).astype(object)
        T = np.hstack([unit, unit[:, :1]])
        x = np.append(draft.x, 0)
        draft = Draft(draft.A @ T, draft.s, draft.y, x, T.T @ draft.P @ T, draft.cones)
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
    levels: tuple[int, ...] = LEVELS,
) -> Instance | None:
    """The CVXPY statement of a program, scaled at random; None if a number is no double.

    `relax` says, of the scales of objective, rows and columns, by how much options for the
    certifier may lower the optimum, and what they are.
    """
    level = int(rng.choice(levels))

    def power(size=None):
        exponents = rng.integers(-level, level + 1, size)
        if levels is EDGES:  # all of one sign, or hardly any would be doubles
            exponents = np.broadcast_to(level * rng.choice([-1, 0, 1]), size or ())
        return np.array([Fraction(2) ** int(k) for k in np.ravel(exponents)])

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
    if any(abs(v) >= Fraction(2) ** 1023 for v in values.ravel()):
        return None
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


def tolerant(rng: np.random.Generator, draw: Callable[..., Draft] | None = None):
    """A program whose constraints may be violated: its optimum falls by tolerance * e'y at most."""
    draft = (draw or any_draft)(rng)
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
    draft = any_draft(rng)
    slack = int(rng.choice([0, 1, 1000]))

    def relax(factor: Fraction, rows: Any, columns: Any) -> Any:
        bounds = np.array([float(v) for v in (abs(draft.x) + slack) / columns])
        return Fraction(0), lambda x: {"bounds": {x: bounds}}

    return from_draft(rng, draft, relax=relax)


def some_kinds(rng: np.random.Generator, among: tuple[str, ...]) -> list[str]:
    return [str(kind) for kind in rng.choice(among, int(rng.integers(1, 4)))]


CONES = ("zero", "nonnegative", "second_order", "psd", "exponential", "power")


def any_draft(rng: np.random.Generator) -> Draft:
    return drafted(rng, some_kinds(rng, CONES), quadratic=bool(rng.random() < 0.3))


def built(*among: str, quadratic: bool = False, change: Callable[..., Draft] | None = None):
    """A family of programs with these cones."""
    return drawn(lambda rng: drafted(rng, some_kinds(rng, among), quadratic), change)


def drawn(draw: Callable[..., Draft], change: Callable[..., Draft] | None = None, **given: Any):
    """A family of programs that a function draws."""

    def make(rng: np.random.Generator) -> Instance | None:
        draft = draw(rng, **given)
        return from_draft(rng, draft if change is None else change(rng, draft))

    return make


# ---- programs as libraries have them: degenerate, redundant, on faces, in large blocks ----------


def polyhedral(A: np.ndarray, s: np.ndarray, y: np.ndarray, x: np.ndarray, P: Any, equal: int):
    """The program whose first rows are equations, from arrays of integers."""
    cones = [("zero", equal, equal), ("nonnegative", len(s) - equal, len(s) - equal)]
    return Draft(*(v.astype(object) for v in (A, s, y, x, P)), cones)


def degenerate(rng: np.random.Generator, size: int, quadratic: bool = False) -> Draft:
    """Rows that are mostly met with equality at x, few with a multiplier; P is singular."""
    n = int(rng.integers(size // 2, size + 1))
    m, equal = 2 * n, int(rng.integers(0, n // 2))
    A = rng.integers(-3, 4, (m, n)) * (rng.random((m, n)) < 4.0 / min(n, rng.integers(4, 100)))
    s, y = rng.integers(1, 6, (2, m)) * (rng.random((2, m)) < 0.3)
    y[:equal], s[:equal] = rng.integers(-4, 5, equal), 0
    B = rng.integers(-2, 3, (n // 2, n)) * quadratic
    return polyhedral(A, s, np.where(s == 0, y, 0), rng.integers(-3, 4, n), B.T @ B, equal)


def transport(rng: np.random.Generator, is_tree: bool = False) -> Draft:
    """Flows from p places to q others: on a tree of routes, or on fewer."""
    p, q = rng.integers(2, 13, 2)
    flows = rng.integers(1, 9, (p, q)) * (rng.integers(0, q, p)[:, None] == np.arange(q))
    flows[0] = rng.integers(1, 9, q)
    reduced_costs = rng.integers(0, 3, (p, q)) * (flows == 0)
    flows *= rng.integers(is_tree, 2, (p, q))
    unit = np.eye(p * q, dtype=int)
    sums = [unit.reshape(p, q, -1).sum(axis=axis) for axis in (1, 0)]
    s, y = np.zeros(p + q, dtype=int), rng.integers(-9, 10, p + q)
    s, y = np.append(s, flows), np.append(y, reduced_costs)
    return polyhedral(np.vstack([*sums, -unit]), s, y, flows.ravel(), 0 * unit, p + q)


def contradicting(rng: np.random.Generator) -> Instance | None:
    """Flows in tenths, whose sums disagree by rounding: moved a little, they have the same duals.

    The value of squares, of which the flows are given, falls or rises by less than 20 a unit.
    """
    draft, is_given = transport(rng, is_tree=True), rng.random() < 0.3
    (_, equal, _), c = draft.cones[0], draft.c.astype(float)
    A, b, flows = (v.astype(float) for v in (draft.A[:equal], draft.b[:equal], draft.x))
    x, moved = cp.Variable(len(c), nonneg=True), Fraction(1, 10**12)
    objective, rows = c @ x, [A @ x == b / 10.0]
    value, slope = -sum(map(mul, draft.y, map(Fraction, b / 10.0))), sum(abs(draft.y))
    if is_given:
        objective, rows = objective + cp.sum_squares(x), [*rows, x == flows / 10.0]
        value = sum(
            k * v + v * v for k, v in zip(draft.c, map(Fraction, flows / 10.0), strict=True)
        )
        slope = sum(abs(draft.c) + 20)
    problem = cp.Problem(cp.Minimize(objective), rows)
    return Instance(problem, value - moved * slope, value + moved * slope, contradicts=True)


def blocks_of(rng: np.random.Generator, most: int, on_face: bool = False) -> Draft:
    """A large matrix whose diagonal has the same block; on a face <ff', Y> = 0 is a column."""
    side, copies = int(rng.integers(2, 5)), int(rng.integers(1, most + 1))
    vectors, kinds = np.array(orthogonal(rng, side)), rng.integers(0, 3, side)
    S, Y = (np.kron(np.eye(copies, dtype=int), (kinds == k) * vectors.T @ vectors) for k in (0, 1))
    rows, columns = lower_triangle(side * copies)
    A = rng.integers(-3, 4, (len(rows), int(rng.integers(1, 7))))
    if on_face:
        f = np.kron(
            rng.integers(-1, 2, copies), (rng.integers(0, 3, side) * (kinds != 1)) @ vectors
        )
        A[:, 0] = np.outer(f, -f)[rows, columns]
    s, y = S[rows, columns], np.where(rows == columns, 1, 2) * Y[rows, columns]
    n = A.shape[1]
    parts = (v.astype(object) for v in (A, s, y, rng.integers(-4, 5, n), np.zeros((n, n))))
    return Draft(*parts, [("psd", side * copies, len(rows))])


def on_face(rng: np.random.Generator) -> Draft:
    """A program whose multipliers are on a face of a PSD block of order 2 to 16."""
    return blocks_of(rng, most=4, on_face=True)


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


PSD_TEXTBOOK: dict[str, Any] = {
    # [[0, y1, 0], [y1, y2, 0], [0, 0, y1 + 1]] PSD: the optimum 0, the dual's -1
    "gap": (3, {(0, 0): (0, 0, 0), (1, 0): (0, 1, 0), (1, 1): (0, 0, 1), (2, 2): (1, 1, 0)},
            (1, 0), Fraction(0)),
    # [[x, 1], [1, y]] PSD: inf x = 0
    "sdp": (2, {(0, 0): (0, 1, 0), (1, 0): (1, 0, 0), (1, 1): (0, 0, 1)}, (1, 0), Fraction(0)),
    # [[x, 1], [1, 0]] PSD: infeasible, and no multiplier proves it
    "weak": (2, {(0, 0): (0, 1), (1, 0): (1, 0)}, (1,), INFINITY),
    # [[x, y], [y, 0]] PSD: y = 0; minimize x - y = 0
    "no interior": (2, {(0, 0): (0, 1, 0), (1, 0): (0, 0, 1)}, (1, -1), Fraction(0)),
}  # fmt: skip
"""Sides of F0 + sum x_i F_i, the entries of F0, F1, ..., the objective and the optimum."""

TEXTBOOK: dict[str, Any] = {
    # |(z, 1)| <= t: inf t - z = 0
    "socp": ([[-1, 0], [0, -1], [0, 0]], [0, 0, 1], [1, -1], [("second_order", 3, 3)]),
    # |x| <= y, y <= 0: the point 0 alone
    "corner": ([[0, -1], [-1, 0], [0, 1]], [0, 0, 0], [1, 1],
               [("second_order", 2, 2), ("nonnegative", 1, 1)]),
    # e^x <= w: inf w = 0
    "exponential": ([[-1, 0], [0, 0], [0, -1]], [0, 1, 0], [0, 1], [("exponential", 3, 3)]),
}  # fmt: skip
"""A, b, c and the cones of programs whose optimum is 0."""


def textbook(rng: np.random.Generator) -> Instance | None:
    """Programs with a duality gap, or unattained, or weakly infeasible, in other bases."""
    name = rng.choice(["gap", "sdp", "weak", "socp", "exponential", "corner", "no interior"])
    if name in PSD_TEXTBOOK:
        return lmi(rng, *PSD_TEXTBOOK[name])
    *data, cones = TEXTBOOK[name]
    A, b, c = (np.array(values, dtype=object) for values in data)
    return stated(rng, A, b, c, np.zeros((2, 2), dtype=object), cones, Fraction(0))


def lmi(rng, side, entries, c, value) -> Instance | None:
    """F0 + sum x_i F_i PSD in a basis turned by an integer matrix of determinant 1."""
    n = len(c)
    F = np.zeros((n + 1, side, side), dtype=object)
    for (i, j), values in entries.items():
        F[:, i, j] = F[:, j, i] = values
    T = np.eye(side, dtype=int).astype(object)
    for _ in range(int(rng.integers(0, 3))):
        i, j = rng.choice(side, 2, replace=False)
        T[i] = T[i] + int(rng.integers(-2, 3)) * T[j]
    F = T @ F @ T.T
    rows, columns = lower_triangle(side)
    A, b = -F[1:, rows, columns].T, F[0, rows, columns]
    P, cones = np.zeros((n, n), dtype=object), [("psd", side, len(rows))]
    return stated(rng, A, b, np.array(c, dtype=object), P, cones, value)


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


def rationals(values: np.ndarray) -> fmpq_mat:
    """The very numbers of a matrix of doubles; a vector is a column."""
    rows = np.reshape(values, (len(values), -1)).astype(float).tolist()
    return fmpq_mat([[fmpq(*value.as_integer_ratio()) for value in row] for row in rows])


def inner(a: fmpq_mat, b: fmpq_mat) -> Fraction:
    """The inner product of two columns."""
    value = (a.transpose() * b)[0, 0]
    return Fraction(int(value.p), int(value.q))


def minor(M: fmpq_mat, rows: Any) -> fmpq:
    return fmpq_mat([[M[i, j] for j in rows] for i in rows]).det()


def vertices(rng: np.random.Generator) -> Instance | None:
    """A linear program in a box, with normal data, by listing its vertices in rationals."""
    n, extra = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    A = np.vstack([random_doubles(rng, extra, n), np.eye(n), -np.eye(n)])
    inside = rng.uniform(-0.5, 0.5, n)
    b = np.concatenate([A[:extra] @ inside + np.abs(random_doubles(rng, extra)), np.ones(2 * n)])
    c = random_doubles(rng, n)
    values = []
    for chosen in map(list, combinations(range(len(b)), n)):
        M = rationals(A[chosen])
        if M.det() != 0:
            point = M.solve(rationals(b[chosen]))
            slacks = rationals(b) - rationals(A) * point
            if all(slack >= 0 for slack in slacks.entries()):
                values.append(inner(rationals(c), point))
    if not values:
        return None
    x = cp.Variable(n)
    return Instance(cp.Problem(cp.Minimize(c @ x), [A @ x <= b]), min(values), min(values))


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
    exact, right = rationals(2 * P), rationals(c)
    if not all(minor(exact, range(k)) > 0 for k in range(1, n + 1)):
        return None
    x, optimum = cp.Variable(n), -inner(right, exact.solve(right)) / 2
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
    exact, right, point = rationals(2 * P), rationals(-c), rationals(z)
    subsets = [rows for k in range(1, n + 1) for rows in combinations(range(n), k)]
    is_convex = all(minor(exact, rows) >= 0 for rows in subsets)
    if is_convex and exact * point != right:
        return None
    value = -inner(right, point) / 2 if is_convex else -INFINITY
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


def at_the_edges(rng: np.random.Generator) -> Instance | None:
    """A program with numbers near the ends of double precision."""
    draft = any_draft(rng)
    return from_draft(rng, draft, levels=EDGES)


# ---- functions of CVXPY, in every place where a problem may have them ----------------------------


@dataclass(frozen=True)
class Atom:
    """A convex function by CVXPY and in balls, and where its points lie."""

    f: Callable[[Any], Any]
    value: Callable[[list[arb]], arb]
    size: int = 1
    domain: str = "all"


def norm_of(z: list[arb], p: int = 2) -> arb:
    return sum((abs(v) ** p for v in z), arb(0)) ** (arb(1) / p)


def normal_cdf(x: arb) -> arb:
    return (-x / arb(2).sqrt()).erfc() / 2


ATOMS: dict[str, Atom] = {
    "square": Atom(cp.square, lambda z: z[0] ** 2),
    "power 3/2": Atom(lambda x: cp.power(x, 1.5), lambda z: z[0] * z[0].sqrt(), 1, "positive"),
    "power 3": Atom(lambda x: cp.power(x, 3), lambda z: z[0] ** 3, 1, "positive"),
    "power pi": Atom(lambda x: cp.power(x, np.pi), lambda z: z[0] ** ball(np.pi), 1, "positive"),
    "inverse": Atom(cp.inv_pos, lambda z: 1 / z[0], 1, "positive"),
    "exp": Atom(cp.exp, lambda z: z[0].exp()),
    "minus log": Atom(lambda x: -cp.log(x), lambda z: -z[0].log(), 1, "positive"),
    "minus entropy": Atom(lambda x: -cp.entr(x), lambda z: z[0] * z[0].log(), 1, "positive"),
    "logistic": Atom(cp.logistic, lambda z: z[0].exp().log1p()),
    "loggamma": Atom(cp.loggamma, lambda z: z[0].lgamma(), 1, "positive"),
    "minus log_normcdf": Atom(lambda x: -cp.log_normcdf(x), lambda z: -normal_cdf(z[0]).log()),
    "huber": Atom(
        cp.huber, lambda z: z[0] ** 2 if abs(z[0]) < 1 else 2 * abs(z[0]) - 1
    ),
    "norm": Atom(cp.norm, norm_of, 3),
    "norm 3": Atom(lambda x: cp.pnorm(x, 3), lambda z: norm_of(z, 3), 3),
    "norm pi": Atom(
        lambda x: cp.pnorm(x, np.pi),
        lambda z: sum((abs(v) ** ball(np.pi) for v in z), arb(0)) ** (1 / ball(np.pi)), 2,
    ),
    "sum of squares": Atom(cp.sum_squares, lambda z: norm_of(z) ** 2, 3),
    "two norms": Atom(
        lambda x: cp.norm(x) + cp.norm(x - np.array([3.0, 4.0])),
        lambda z: norm_of(z) + norm_of([z[0] - 3, z[1] - 4]), 2,
    ),
    "norms of rows": Atom(
        lambda x: cp.sum(cp.norm(cp.reshape(x, (2, 2), order="C"), axis=1)),
        lambda z: norm_of(z[:2]) + norm_of(z[2:]), 4,
    ),
    "powers of entries": Atom(
        lambda x: cp.sum(cp.power(x, 1.5)), lambda z: sum((v * v.sqrt() for v in z), arb(0)), 3,
        "positive",
    ),
    "sum of exps": Atom(
        lambda x: cp.sum(cp.exp(x)), lambda z: sum((v.exp() for v in z), arb(0)), 3
    ),
    "log-sum-exp": Atom(cp.log_sum_exp, lambda z: sum((v.exp() for v in z), arb(0)).log(), 3),
    "minus geo_mean": Atom(
        lambda x: -cp.geo_mean(x), lambda z: -(z[0] * z[1] * z[2]) ** (arb(1) / 3), 3, "positive"
    ),
    "minus geo_mean, odd weights": Atom(
        lambda x: -cp.geo_mean(x, [1, np.pi]),
        lambda z: -((z[0].log() + ball(np.pi) * z[1].log()) / (1 + ball(np.pi))).exp(), 2,
        "positive",
    ),
    "quad_form": Atom(
        lambda x: cp.quad_form(x, np.array([[2.0, 1.0], [1.0, 3.0]])),
        lambda z: 2 * z[0] ** 2 + 2 * z[0] * z[1] + 3 * z[1] ** 2, 2,
    ),
    "quad_form, tiny eigenvalue": Atom(
        lambda x: cp.quad_form(
            cp.multiply(np.array([1.0, 2.0**28]), x), np.diag([1.0, 2.0**-57])
        ),
        lambda z: z[0] ** 2 + z[1] ** 2 / 2, 2,
    ),
    "quad_form, wrapped": Atom(
        lambda x: cp.quad_form(x, cp.psd_wrap(np.diag([1.0, -1.0]))),
        lambda z: z[0] ** 2 - z[1] ** 2, 2,
    ),
    "largest eigenvalue": Atom(
        lambda x: cp.lambda_max(cp.bmat([[x[0], x[1]], [x[1], x[2]]])),
        lambda z: (z[0] + z[2]) / 2 + (((z[0] - z[2]) / 2) ** 2 + z[1] ** 2).sqrt(), 3,
    ),
    "next of 1, 2, 4, 8": Atom(
        lambda x: indicator([cp.constraints.FiniteSet(x, [1.0, 2.0, 4.0, 8.0])]) + x,
        lambda z: z[0], 1, "set",
    ),
    "not DCP inside": Atom(
        lambda x: (lambda u: indicator([u >= x, cp.square(u) >= 4.0]) + u)(
            cp.Variable(nonneg=True)
        ),
        lambda z: max(z[0], ball(2.0)),
    ),
    "a false promise": Atom(
        lambda x: cp.trace(cp.psd_wrap(cp.Constant([[-1.0]]))) * cp.square(x),
        lambda z: -(z[0] ** 2),
    ),
    "boolean": Atom(
        lambda x: (lambda b: indicator([b >= x]) + b)(cp.Variable(boolean=True)),
        lambda z: arb(1), 1, "share",
    ),
}  # fmt: skip

PLACES = ("objective", "constraint", "perspective", "two perspectives", "partial_optimize")
PLACES += ("indicator", "support")


def an_atom(rng: np.random.Generator) -> Instance | None:
    """A function at a point, where CVXPY's own canonicalization hides it or does not."""
    name, place = str(rng.choice(list(ATOMS))), str(rng.choice(PLACES))
    atom, size = ATOMS[name], float(rng.choice([0.25, 1.0, 4.0]))
    point = size * rng.normal(size=atom.size)
    if atom.domain == "positive":
        point = np.abs(point) + 0.1
    if atom.domain == "set":
        point = 2.0 ** rng.integers(0, 4, 1)
    if atom.domain == "share":
        point = rng.uniform(0.1, 0.9, 1)
    scale = float(rng.choice([0.5, 1.0, 3.0])) if "perspective" in place else 1.0
    x, t = cp.Variable(atom.size) if atom.size > 1 else cp.Variable(), cp.Variable()
    fixed = point if atom.size > 1 else float(point[0])
    value = ball(scale) * atom.value([ball(v) / ball(scale) for v in point])
    if place == "two perspectives":
        value += sum((ball(v) ** 2 for v in point), arb(0)) / ball(scale)
    pinned = [x == fixed]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            problem = placed(place, atom, x, t, pinned, scale)
    except (ValueError, TypeError, NotImplementedError, AttributeError):  # CVXPY's own refusals
        return None
    if place == "support":  # of {u: f(u) <= f(point)}, in the direction of one entry
        return None if problem is None else enclosed(*problem(point))
    return enclosed(problem, value)


def placed(place: str, atom: Atom, x: Any, t: Any, pinned: list[Any], scale: float) -> Any:
    """The problem whose optimum is the value of a function, which stands in some place of it."""
    f = atom.f(x)
    if place == "objective":
        return cp.Problem(cp.Minimize(f), pinned)
    if place == "constraint":
        return cp.Problem(cp.Minimize(t), [f <= t, *pinned])
    if "perspective" in place:
        s = cp.Variable(nonneg=True)
        both = [cp.perspective(f, s), cp.perspective(cp.sum_squares(x), s)]
        count = 1 if place == "perspective" else 2
        return cp.Problem(cp.Minimize(sum(both[:count])), [*pinned, s == scale])
    if place == "partial_optimize":
        inner = cp.Problem(cp.Minimize(t), [f <= t])
        others = [v for v in inner.variables() if v.id != x.id]
        return cp.Problem(cp.Minimize(partial_optimize(inner, others, [x])), pinned)
    if place == "indicator":
        return cp.Problem(cp.Minimize(t + indicator([f <= t])), pinned)
    if atom.size > 1 or atom.domain not in ("positive",):
        return None
    u, y = cp.Variable(), cp.Variable()

    def supported(point: np.ndarray) -> tuple[cp.Problem, arb]:
        """The largest u with f(u) <= level, for increasing f whose inverse is known by now."""
        level = float(atom.f(cp.Constant(float(point[0]))).value)
        high = largest_below(atom, ball(level), float(point[0]))
        return cp.Problem(cp.Minimize(cp.suppfunc(u, [atom.f(u) <= level])(y)), [y == 1]), high

    return supported


def largest_below(atom: Atom, level: arb, near: float) -> arb:
    """An enclosure of the point next to `near` where an increasing function has a value."""
    low, high = ball(near) * (1 - 1e-6), ball(near) * (1 + 1e-6)
    if not (atom.value([low]) < level and atom.value([high]) > level):
        return arb("nan")
    for _ in range(120):
        middle = (low + high) / 2
        middle = middle.mid()
        low, high = (middle, high) if atom.value([middle]) < level else (low, middle)
    return low.union(high)


ATTRIBUTES: list[tuple[dict[str, Any], float, float]] = [
    ({}, -math.inf, math.inf),
    ({"nonneg": True}, 0.0, math.inf),
    ({"nonpos": True}, -math.inf, 0.0),
    ({"neg": True}, -math.inf, 0.0),
    ({"pos": True}, 0.0, math.inf),
    ({"bounds": [-1.0, 0.5]}, -1.0, 0.5),
    ({"diag": True}, -math.inf, math.inf),
    ({"symmetric": True}, -math.inf, math.inf),
    ({"sparsity": [(0, 1, 2), (1, 2, 0)]}, -math.inf, math.inf),
]
"""Attributes of a variable, and between what they keep its entries."""


def attributed(rng: np.random.Generator) -> Instance | None:
    """A linear function of a variable with attributes, within bounds that the certifier gets."""
    attributes, low, high = ATTRIBUTES[rng.integers(len(ATTRIBUTES))]
    x, shape = cp.Variable((3, 3), **attributes), (3, 3)
    B = np.abs(rng.integers(0, 40, shape)) / 8.0
    C = rng.integers(-9, 10, shape) / 4.0
    weight = C
    if "diag" in attributes:
        weight = np.diag(np.diag(C))
    if "symmetric" in attributes:
        B, weight = np.maximum(B, B.T), (C + C.T) / 2
    if "sparsity" in attributes:
        weight, places = np.zeros(shape), tuple(attributes["sparsity"])
        weight[places] = C[places]
    ends = np.array([weight * np.maximum(-B, low), weight * np.minimum(B, high)])  # exact
    optimum = Fraction(ends.min(axis=0).sum())
    problem = cp.Problem(cp.Minimize(cp.sum(cp.multiply(C, x))))
    return Instance(problem, optimum, optimum, {"bounds": {x: B}})


def a_logarithm_in_bounds(rng: np.random.Generator) -> Instance | None:
    """-log x within |x| <= B, whose optimum without the bound does not exist."""
    B, x = float(rng.uniform(0.1, 100.0)), cp.Variable()
    made = enclosed(cp.Problem(cp.Minimize(-cp.log(x))), -ball(B).log())
    return Instance(made.problem, made.low, made.high, {"bounds": {x: B}})


def formed(rng: np.random.Generator) -> Instance | None:
    """The largest c'x where a quadratic form is at most 1: the root of c'P^-1 c."""
    if rng.random() < 0.4:  # Hermitian: the real part of c^H x
        H = np.array([[2.0, 1j], [-1j, 2.0]]) + np.diag(rng.integers(0, 3, 2))
        x, c = cp.Variable(2, complex=True), rng.integers(-3, 4, 2) + 1j * rng.integers(-3, 4, 2)
        P = np.block([[H.real, -H.imag], [H.imag, H.real]])
        objective, v = cp.real(np.conj(c) @ x), np.concatenate([c.real, c.imag])
        form = cp.quad_form(x, H)
    else:
        n = int(rng.integers(2, 5))
        B = rng.integers(-3, 4, (n, n)) + 4 * np.eye(n)
        P = B.T @ B
        if rng.random() < 0.5:
            P = np.diag(2.0 ** -rng.integers(0, 60, n))
        x, v = cp.Variable(n), rng.integers(-3, 4, n).astype(float)
        objective, form = v @ x, cp.quad_form(x, P)
    if not v.any() or np.linalg.cond(P) == np.inf:
        return None
    exact, right = rationals(P), rationals(v)
    if exact.det() == 0:
        return None
    value = arb((right.transpose() * exact.solve(right))[0, 0]).sqrt()
    return enclosed(cp.Problem(cp.Maximize(objective), [form <= 1]), value)


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
    "at the edges of doubles": at_the_edges,
    "functions in every place": an_atom,
    "bounds, variables with attributes": attributed,
    "bounds, a logarithm": a_logarithm_in_bounds,
    "quadratic forms in constraints": formed,
    "degenerate": drawn(degenerate, size=20),
    "degenerate, quadratic": drawn(degenerate, size=12, quadratic=True),
    "dependent equations": drawn(degenerate, redundant, size=8, quadratic=True),
    "contradicting by rounding": contradicting,
    "transport": drawn(transport),
    "larger, sparse": drawn(degenerate, size=120),
    "larger, sparse, quadratic": drawn(degenerate, size=60, quadratic=True),
    "many semidefinite blocks": drawn(lambda rng: drafted(rng, int(rng.integers(4, 30)) * ["psd"])),
    "large semidefinite blocks": drawn(blocks_of, most=10),
    "faces": drawn(on_face),
    "faces, with a tolerance": lambda rng: tolerant(rng, on_face),
}

SOLVED = list(FAMILIES)[-11:]
"""Families whose problems are solved by CVXPY as well, and certified from what that leaves."""

SOLVERS = {"HIGHS": {}, "OSQP": {"max_iter": 4_000}, "SCS": {"max_iters": 4_000}, "CLARABEL": {}}


def instance(family: str, seed: int) -> Instance:
    """The instance of a family and a seed; draws that come to nothing are drawn again."""
    with ctx.workprec(PRECISION):
        for attempt in range(1000):
            rng = np.random.default_rng([seed, attempt, *family.encode()])
            made = FAMILIES[family](rng)
            if made is not None:
                return made
    raise RuntimeError(f"no instance of {family!r} for seed {seed}")


def as_claimed(made: Instance, found: Any) -> Instance:
    """The instance of which a certificate speaks, perhaps with more on the diagonal of P.

    That moves the optimum by at most half of what is added times |x|^2.
    """
    added = re.search(r"up to (\S+) added to the diagonal of P", found.claim)
    if added is None or found.evidence.primal is None:
        return made
    x = found.evidence.primal.x
    high = np.array([float(v) for v in x] if isinstance(x, list) else x.high)
    loss = Fraction(float(added[1]) * float(high @ high))
    return replace(made, low=made.low - loss, high=made.high + loss)


def false_claims(made: Instance, lower: float, upper: float, infeasible: bool, unbounded: bool):
    """What of a claim is false, given where the optimum is."""
    wrong = []
    if lower == math.inf or (math.isfinite(lower) and Fraction(lower) > made.high):
        wrong += [] if made.low >= INFINITY / 2 else ["lower"]
    if upper == -math.inf or (math.isfinite(upper) and Fraction(upper) < made.low):
        wrong += [] if made.high <= -INFINITY / 2 else ["upper"]
    if made.contradicts and infeasible:
        return []
    if (infeasible or unbounded) and abs(made.low) < INFINITY / 2:
        wrong.append("infeasible" if infeasible else "unbounded")
    return wrong


def judged(family: str, seed: int, mutants: int = 2) -> dict[str, Any]:
    """Certify an instance, and judge what is claimed; then its file, and the same tampered with."""
    from seraph_cvx.proof import certify_problem

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
    row = {
        "claimed": claimed,
        "seconds": seconds,
        "wrong": false_claims(as_claimed(made, proved), *claimed),
    }
    rng = np.random.default_rng([seed, 2])
    row |= judged_file(made, json.loads(proved.to_json()), rng, mutants)
    if not (made.options or made.contradicts):
        with np.errstate(all="ignore"):  # as certify_problem has it
            row["wrong"] += judged_starts(made, np.random.default_rng([seed, 1]))
    if family in SOLVED:
        row["wrong"] += judged_answer(made, np.random.default_rng([seed, 3]))
    return row


def judged_answer(made: Instance, rng: np.random.Generator) -> list[str]:
    """False claims from the answer of a solver that CVXPY calls, which may be made wrong."""
    from seraph_cvx.proof import certify_problem

    problem, solver = made.problem, str(rng.choice(list(SOLVERS)))
    noise = float(rng.choice([0.0, *NOISE]))
    duals = [dual for constraint in problem.constraints for dual in constraint.dual_variables]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            problem.solve(solver=solver, **SOLVERS[solver])
            for leaf in [*problem.variables(), *duals]:
                if noise and leaf.value is not None:
                    value = np.asarray(leaf.value, dtype=float)
                    leaf.save_value(value + noise * rng.normal(size=value.shape))
            found = certify_problem(problem, **made.options)
        except (cp.SolverError, ValueError):
            return []  # the solver does not take the problem, or fails; or it is refused
        except ArithmeticError as crossed:
            return [f"crossed after {solver}, {noise:g} off: {crossed}"]
    claimed = found.lower, found.upper, found.infeasible, found.unbounded
    wrong = false_claims(as_claimed(made, found), *claimed)
    return [f"{side} after {solver}, {noise:g} off" for side in wrong]


def judged_file(
    made: Instance, content: dict[str, Any], rng: np.random.Generator, mutants: int
) -> dict[str, Any]:
    """What the checker says of a certificate, of one that claims a little more, and of mutants."""
    from seraph_cvx.proof.checker import check_certificate

    claim, accepted = content["claim"], []
    if not any(claim.values()):
        return {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "certificate.json"

        def check(changed: dict[str, Any]) -> Any:
            path.write_text(json.dumps(changed))
            return check_certificate(path)

        found = check(content)
        for side, sign, end in (("lower", 1, made.high), ("upper", -1, made.low)):
            if claim[side] is not None and abs(end) < INFINITY / 2:
                beyond = math.nextafter(float(end), sign * math.inf)
                beyond = math.nextafter(beyond + sign * 1e-12 * abs(beyond), sign * math.inf)
                changed = content | {"claim": claim | {side: beyond.hex()}}
                accepted += [side] if check(changed).valid else []
        for _ in range(mutants):
            changed, words = mutated(content, made, rng)
            accepted += [words] if is_beyond(made, content, changed, check(changed)) else []
    return {"checked": found.valid, "reasons": found.reasons, "tampered": accepted,
            "mutants": mutants}  # fmt: skip


KEYS = ("tolerance", "variable_bounds")
"""What a file may assume besides its conic program."""


def is_beyond(made: Instance, before: Any, content: Any, found: Any) -> bool:
    """Whether a valid file says more than is true, or does not say what it assumes."""
    claim = content["claim"]
    if not found.valid:
        return False
    if set(claim) != {"lower", "upper", "infeasible", "unbounded"}:
        return True
    if sum(content[key] is not None for key in KEYS) != len(found.assumptions):
        return True
    sign = -1 if isinstance(made.problem.objective, cp.Maximize) else 1
    if before["claim"]["infeasible"]:  # as was judged before: any bounds hold of it
        return bool(claim["unbounded"])
    if claim["infeasible"] and sign * made.low < INFINITY / 2:
        return True
    if any(content[key] != before[key] for key in KEYS):
        return False  # it is about another problem, and says so
    claimed = [v and float.fromhex(v) for v in (claim["lower"], claim["upper"])]
    sides = [(*claimed, claim["infeasible"], claim["unbounded"])]
    sides += [(found.lower, found.upper, False, False)]
    return any(
        false_claims(made, -math.inf if a is None else a, math.inf if b is None else b, *settled)
        for a, b, *settled in sides
    )


def mutated(
    content: dict[str, Any], made: Instance, rng: np.random.Generator
) -> tuple[dict[str, Any], str]:
    """A file with one or two changes in what it claims, assumes, or proves from."""
    changed, words = deepcopy(content), []
    for _ in range(int(rng.integers(1, 3))):
        kind = str(rng.choice(["claim", "flag", "extra", "tolerance", "bounds", "point", "move"]))
        words.append(kind)
        claim = changed["claim"]
        if kind == "claim":
            side = str(rng.choice(["lower", "upper"]))
            end = float(min(max(made.low, -(Fraction(10) ** 300)), Fraction(10) ** 300))
            step = 10.0 ** -int(rng.integers(0, 14)) * max(1.0, abs(end))
            claim[side] = (end + (step if side == "lower" else -step)).hex()
        elif kind == "flag":
            flag = str(rng.choice(["infeasible", "unbounded"]))
            claim[flag] = [True, 1, "true"][rng.integers(3)]
        elif kind == "extra":
            claim[str(rng.choice(["optimal", "exact", "lower "]))] = True
        elif kind == "tolerance":
            changed["tolerance"] = (10.0 ** -float(rng.integers(0, 12))).hex()
        elif kind == "bounds":
            n = len(content["program"]["c"])
            changed["variable_bounds"] = [
                float(2.0 ** rng.integers(-8, 9)).hex() if rng.random() < 0.7 else None
                for _ in range(n)
            ]
            grow = 2 * sum(v is not None for v in changed["variable_bounds"])
            for part in ("dual", "ray_dual"):
                if changed[part] and rng.random() < 0.8:
                    rows = content["program"]["rows"]
                    changed[part]["y"] = changed[part]["y"][:rows] + [
                        [float(abs(rng.normal())).hex(), (0.0).hex()] for _ in range(grow)
                    ]
        else:
            parts = [k for k in ("dual", "primal", "ray_dual", "ray_primal") if changed[k]]
            part = str(rng.choice(parts)) if parts else ""
            if part and kind == "move" and rng.random() < 0.3:
                other = {"dual": "ray_dual", "primal": "ray_primal"}.get(part)
                if other:
                    kept = {"y": changed[part].get("y")} if other == "ray_dual" else changed[part]
                    changed[other] = deepcopy(kept)
            elif part:
                letter = str(rng.choice([k for k in "xyh" if changed[part].get(k)] or ["-"]))
                entries = changed[part].get(letter)
                if entries:
                    k = int(rng.integers(len(entries)))
                    first, *rest = entries[k] if type(entries[k]) is list else [entries[k]]
                    p, _, q = first.partition("/")
                    size = int(p, 16) / int(q, 16) if q else float.fromhex(first)
                    size += 10.0 ** -float(rng.integers(0, 12))
                    entries[k] = [float(size * rng.choice([1, -1, 2])).hex(), *rest]
    return changed, " and ".join(words)


NOISE = (1e-12, 1e-6, 1e-2, 1.0, 1e4)
"""How wrong the starts of proofs are, relatively."""


def judged_starts(made: Instance, rng: np.random.Generator) -> list[str]:
    """False bounds that the certifier proves from wrong answers of a solver."""
    from seraph_cvx.proof.lower_bound import lower_bound
    from seraph_cvx.proof.program import canonicalize
    from seraph_cvx.proof.rays import prove_infeasible
    from seraph_cvx.proof.start import solve
    from seraph_cvx.proof.steps import Steps
    from seraph_cvx.proof.upper_bound import upper_bound

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
    below = lower_bound(program, wrong_start, Steps())
    if below is not None and Fraction(below.value) > high:
        wrong.append(f"lower bound from a start {noise:g} off")
    above = upper_bound(program, wrong_start, 0.0, Steps())
    if above is not None and math.isfinite(above.value) and Fraction(above.value) < low:
        wrong.append(f"upper bound from a start {noise:g} off")
    ray = prove_infeasible(program, wrong_start, Steps())
    if ray is not None and abs(low) < INFINITY / 2:
        wrong.append(f"infeasible from a start {noise:g} off")
    return wrong


def judged_safely(task: tuple[str, int, int]) -> dict[str, Any]:
    """What is judged of an instance, or the panic of a solver that the certifier let through."""
    family, seed, _ = task
    try:
        return judged(*task)
    except BaseException as panic:
        if type(panic).__name__ != "PanicException":  # of Rust, and no Exception
            raise RuntimeError(f"{family!r}, seed {seed}") from panic
        return {"crashed": f"{type(panic).__name__}: {panic}"}


def counted(row: dict[str, Any]) -> Counter[str]:
    """What is counted of an instance."""
    a, b, infeasible, unbounded = row.get("claimed", (-math.inf, math.inf, False, False))
    has_both = -math.inf < a <= b < math.inf
    numbers = {
        "instances": 1,
        "false": len(row.get("wrong", ())),
        "both bounds": has_both,
        "gap <= 1e-6": has_both and b - a <= 1e-6 * max(1.0, abs(a), abs(b)),
        "settled": infeasible or unbounded,
        "refused": "refused" in row,
        "crashed": "crashed" in row,
        "files rejected": row.get("checked") is False,
        "changed files": row.get("mutants", 0),
        "false files accepted": len(row.get("tampered", ())),
    }
    return Counter(numbers)


def main() -> None:
    """Certify random instances of every family and count what is false; or show one instance."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--count", type=int, default=5_000)
    parser.add_argument("--mutants", type=int, default=4, help="changed files for each instance")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--family", choices=FAMILIES)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--processes", type=int, default=1)
    given = parser.parse_args()
    if given.seed is not None:
        made = instance(given.family, given.seed)
        print(made.problem)
        print("optimum between", *(f"{v.numerator / v.denominator:.17g}" if abs(v) < INFINITY / 2
                                   else "infinity" for v in (made.low, made.high)))  # fmt: skip
        for name, value in judged(given.family, given.seed, given.mutants).items():
            print(f"{name}: {value}")
        return
    families = [given.family] if given.family else list(FAMILIES)
    seeds = range(given.first, given.first - (-given.count // len(families)))
    everything: Counter[str] = Counter()
    with multiprocessing.get_context("spawn").Pool(given.processes) as pool:
        for family in families:
            tasks = [(family, seed, given.mutants) for seed in seeds]
            totals: Counter[str] = Counter()
            for task, row in zip(tasks, pool.map(judged_safely, tasks, chunksize=4), strict=True):
                totals.update(counted(row))
                for kind in ("wrong", "tampered", "crashed"):
                    if row.get(kind):
                        print(f"  {family!r}, seed {task[1]}: {kind}: {row[kind]}")
                if row.get("checked") is False:
                    print(f"  {family!r}, seed {task[1]}: true file rejected: {row['reasons']}")
            everything.update(totals)
            print(f"{family}:", ", ".join(f"{n} {name}" for name, n in totals.items()), flush=True)
    print("all:", ", ".join(f"{n} {name}" for name, n in everything.items()))


if __name__ == "__main__":
    main()
