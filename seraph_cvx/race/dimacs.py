"""The DIMACS error measures of a conic solver's primal and dual vectors.

CVXPY passes a conic solver the program

    minimize c'x  subject to  Ax + s = b, s in K        dual: maximize -b'y, A'y + c = 0, y in K*,

which is the dual of the form the measures were defined in (seventh DIMACS challenge). All six are
computed, from the data and from the solver's own x, s and y, with |v| the largest entry of v:

    1  ||A'y + c|| / (1 + |c|)            y misses its equations
    2  depth(y, K*) / (1 + |c|)           y lies outside its cone
    3  ||Ax + s - b|| / (1 + |b|)         x and s miss their equations
    4  depth(s, K) / (1 + |b|)            s lies outside its cone
    5  (c'x + b'y) / (1 + |c'x| + |b'y|)  the two values differ (it may be negative)
    6  s'y / (1 + |c'x| + |b'y|)          the vectors are not complementary

depth(v, K) is the smallest t >= 0 with v + t*e in K. With e the unit of a symmetric cone that is
minus the smallest eigenvalue, as DIMACS has it; for the exponential cone, which DIMACS did not
have, e = (-1, 1, 1), a point inside both that cone and its dual. A solver that returns no s gets
s = b - Ax, and its third measure is zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..numerics.checks import FloatArray


def dimacs_errors(data: Mapping[str, Any], answer: Any, solver: str) -> list[float] | None:
    """The six measures; None if the solver's vectors or the form of its data are unknown."""
    vectors = _vectors(answer, solver)
    if vectors is None or data.get("P") is not None:
        return None
    x, s, y = vectors
    A, b, c = data["A"], np.asarray(data["b"]), np.asarray(data["c"])
    if len(x) != len(c) or len(y) != len(b) or not all(np.all(np.isfinite(v)) for v in (x, s, y)):
        return None
    primal, dual = float(c @ x), float(b @ y)
    size_b, size_c = 1.0 + _largest(b), 1.0 + _largest(c)
    size = 1.0 + abs(primal) + abs(dual)
    cones, lower = data["dims"], solver == "SCS"
    return [
        float(np.linalg.norm(A.T @ y + c)) / size_c,
        cone_depth(y, cones, lower, dual=True) / size_c,
        float(np.linalg.norm(A @ x + s - b)) / size_b,
        cone_depth(s, cones, lower, dual=False) / size_b,
        (primal + dual) / size,
        float(s @ y) / size,
    ]


def cone_depth(v: FloatArray, cones: Any, lower: bool, dual: bool) -> float:
    """The least t >= 0 with v + t*e in the cone K, or in K* if `dual`."""
    if getattr(cones, "soc", None) or getattr(cones, "p3d", None):
        raise ValueError("An M-step has no second-order and no power cones.")
    start, depths = cones.zero, [0.0]
    if cones.zero and not dual:
        depths.append(_largest(v[: cones.zero]))
    depths.append(-float(np.min(v[start : start + cones.nonneg], initial=0.0)))
    start += cones.nonneg
    for order in cones.psd:
        size = order * (order + 1) // 2
        matrix = _matrix_of(v[start : start + size], order, lower)
        depths.append(-float(np.linalg.eigvalsh(matrix)[0]))
        start += size
    depths.append(_exponential_depth(v[start:].reshape(-1, 3), dual))
    return max(depths)


def _matrix_of(entries: FloatArray, order: int, lower: bool) -> FloatArray:
    matrix = np.zeros((order, order))
    rows, columns = np.triu_indices(order) if lower else np.tril_indices(order)
    scale = np.where(rows == columns, 1.0, np.sqrt(0.5))
    matrix[rows, columns] = matrix[columns, rows] = entries * scale
    return matrix


def _exponential_depth(triples: FloatArray, dual: bool) -> float:
    """How far triples are outside the exponential cone, by bisection on all of them at once."""
    outside = triples[~_in_exponential(triples, dual)]
    unit = np.array([-1.0, 1.0, 1.0])
    low = np.full(len(outside), np.finfo(np.float64).tiny)
    high = low + 8.0 * np.max(np.abs(outside), axis=1)  # both cones contain 8 e + [-1, 1]^3
    for _ in range(80):
        middle = np.sqrt(low) * np.sqrt(high)
        inside = _in_exponential(outside + middle[:, None] * unit, dual)
        low, high = np.where(inside, low, middle), np.where(inside, middle, high)
    return float(np.max(high, initial=0.0))


def _in_exponential(triples: FloatArray, dual: bool) -> NDArray[np.bool_]:
    """Whether (x, y, z) is in the exponential cone, y e^{x/y} <= z, or in its dual."""
    x, y, z = triples.T
    if dual:
        x, y = x - y, -x
    boundary = (x <= 0.0) & (y == 0.0) & (z >= 0.0)
    proper = (y > 0.0) & (z > 0.0)
    ratio = np.log(np.where(proper, z, 1.0)) - np.log(np.where(proper, y, 1.0))
    return np.asarray(boundary | (proper & (x <= y * ratio)))


def _largest(v: FloatArray) -> float:
    return float(np.max(np.abs(v), initial=0.0))


def _vectors(answer: Any, solver: str) -> list[FloatArray] | None:
    """The vectors x, s and y of a solver's own answer."""
    if solver == "SCS":
        return [np.asarray(answer[name]) for name in ("x", "s", "y")]
    if solver == "CLARABEL":
        return [np.array(vector) for vector in (answer.x, answer.s, answer.z)]
    return None
