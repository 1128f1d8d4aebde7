"""Linear and quadratic programs, in rationals: bounds without any rounding error.

A quadratic program has a linear one near its approximate solution z, with any r near Pz, e > 0:

    minimize c'x + (e + z)'t + (e - z)'u  subject to  Ax <= b,  Px - t + u = r,  t, u >= 0.

The multipliers (y, h) of its rows have A'y + Ph + c = 0 and |h - z| <= e, so they prove the lower
bound -b'y - h'Ph/2; x is feasible. If r = Pz, the two bounds are apart by

    (x - z)'P(x - z)/2 - e'|P(x - z)| + (h - z)'P(h - z)/2,

which is small: leaving z costs x at a rate of e, and h stays within e.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import scipy

from .arithmetic import Array
from .lower_bound import DualProof
from .program import ConicProgram
from .rational import IntegerRows, Rational, fractions, rationals
from .rounding import down, up
from .simplex import ZERO, LinearProgram, Solved, inner, nearest, optimize
from .steps import Steps
from .upper_bound import PrimalProof

RADII = ((1e-6, 0.0), (1e-5, 0.0), (0.0, 1e-7))
"""Values of e relative to 1 + |z_j| and to the largest |z_j|, one try each.

They have to exceed the error of z, and are squared in the gap; measured by `libraries.py`.
"""


class ExactProof(NamedTuple):
    """What is proven of a program whose cones are zero and nonnegative.

    `moved` has the right sides that had to be moved, since they contradict each other by rounding.
    """

    dual: DualProof | None = None
    primal: PrimalProof | None = None
    ray_dual: list[Fraction] | None = None
    ray_primal: list[Fraction] | None = None
    optimum: Fraction | None = None
    moved: dict[int, Fraction] | None = None

    def gap(self, program: ConicProgram) -> float:
        """The gap of the bounds of a program; zero where a ray is known."""
        if self.ray_dual or self.ray_primal:
            return 0.0
        if self.dual is None or self.primal is None:
            return math.inf
        return program.gap(self.dual.value, self.primal.value)


def prove_polyhedral(
    program: ConicProgram, center: Array | None, tolerance: float, steps: Steps
) -> Iterator[ExactProof]:
    """The exact optimum of a linear program, bounds on a quadratic one near a center, or rays."""
    exact = _exact(program, tolerance)
    if program.P is None or center is None:
        yield _proven(program, exact, tolerance, steps)
        return
    size = np.abs(center)
    if not np.isfinite(program.P @ center).all():
        return
    for own, all_alike in RADII:
        if not steps.is_over:
            e = own * (1.0 + size) + all_alike * max(1.0, float(size.max()))
            near = _linearized(exact, program.P, center, e)
            yield _proven(program, near, tolerance, steps)


def _linearized(exact: LinearProgram, P: Any, z: Array, e: Array) -> LinearProgram:
    """The linear program near z; its rows end with those of P that are not empty, t, and u."""
    used = np.flatnonzero(np.diff(P.indptr) > 0)
    rows, unit, k = P.tocsr()[used], scipy.sparse.eye_array(used.size), used.size
    parts = [[exact.A, None, None], [rows, -unit, unit], [None, -unit, None], [None, None, -unit]]
    A = scipy.sparse.block_array(parts, format="csr")
    ends = np.concatenate([rows @ z, np.zeros(2 * k)])
    costs = rationals(np.concatenate([(e + z)[used], (e - z)[used]]))
    kinds = np.repeat([True, False], [k, 2 * k])
    return LinearProgram(
        A, exact.b + rationals(ends), exact.c + costs, np.concatenate([exact.is_equation, kinds])
    )


def _proven(
    program: ConicProgram, exact: LinearProgram, tolerance: float, steps: Steps
) -> ExactProof:
    """Solve a program, or the linear one near a quadratic one, and say what that proves."""
    began, P = time.perf_counter(), program.P
    kind = "linear" if P is None else "quadratic"
    steps.begin(f"{kind} program: a vertex of HiGHS, in rationals")
    found, moved = optimize(exact, steps), None
    m, n = len(exact.b), len(program.c)
    if P is not None:
        m -= 3 * int((np.diff(P.indptr) > 0).sum())
    if found.conflict is not None and found.near is not None and not tolerance:
        size = -inner(exact.b, found.conflict) / max(map(abs, found.conflict))
        steps.append(f"infeasible as doubles: rows contradict each other by {nearest(size):.1e}")
        x, y = found.near.x, found.near.y
        moved = {i: exact.b[i] - found.near.slack[i] for i in found.near.violated}
        exact = replace(exact, b=[moved.get(i, value) for i, value in enumerate(exact.b)])
        found = Solved(x, y)
    if found.conflict is not None:
        found = Solved(conflict=found.conflict)
    dual = primal = optimum = None
    if found.y is not None:
        h, loss = None, ZERO
        if P is not None:
            h = [ZERO] * n
            for j, value in zip(np.flatnonzero(np.diff(P.indptr) > 0), found.y[m:], strict=False):
                h[j] = value
            loss = inner(IntegerRows.of(P).times(h), h) / 2
        value = -inner(exact.b[:m], found.y[:m]) - loss
        y = _of_rows(found.y[:m], program, tolerance)
        dual = DualProof(down(_fraction(value)), y, None if h is None else fractions(h))
    if found.x is not None:
        x = found.x[:n]
        cost = inner(exact.c[:n], x)
        if P is not None:
            cost += inner(IntegerRows.of(P).times(x), x) / 2
        primal = PrimalProof(math.inf if found.descent else up(_fraction(cost)), fractions(x))
        if dual is not None and cost == value:
            optimum = _fraction(value)
    descent = None
    if found.descent and P is None and primal is not None:
        descent = fractions(found.descent)
    proof = ExactProof(
        dual,
        primal,
        found.conflict and _of_rows(found.conflict[:m], program, tolerance),
        descent,
        optimum,
        moved and {i: _fraction(end) for i, end in moved.items() if i < m},
    )
    steps.append(
        f"{kind} program, in rationals from a vertex of HiGHS: {_outcome(program, proof)}, "
        f"{time.perf_counter() - began:.2g} s"
    )
    return proof


def _outcome(program: ConicProgram, proof: ExactProof) -> str:
    if proof.ray_dual or proof.ray_primal:
        return "no point is feasible" if proof.ray_dual else "unbounded"
    if proof.optimum is not None:
        return "the optimum"
    gap = proof.gap(program)
    return f"a relative gap of {gap:.1e}" if gap < math.inf else "not solved"


def _fraction(value: Rational) -> Fraction:
    return Fraction(int(value.p), int(value.q))


def _exact(program: ConicProgram, tolerance: float) -> LinearProgram:
    """A conic program in rationals; with a tolerance each equation is two inequalities."""
    A, b, c = scipy.sparse.csr_array(program.A), rationals(program.b), rationals(program.c)
    equal = _is_equation(program)
    if not tolerance:
        return LinearProgram(A, b, c, equal)
    (slack,) = rationals([tolerance])
    zero, rest = np.flatnonzero(equal).tolist(), np.flatnonzero(~equal).tolist()
    ends = (
        [slack + b[i] for i in zero] + [slack - b[i] for i in zero] + [slack + b[i] for i in rest]
    )
    A = scipy.sparse.vstack([A[zero], -A[zero], A[rest]], format="csr")
    return LinearProgram(A, ends, c, np.zeros(len(ends), dtype=bool))


def _of_rows(y: list[Rational], program: ConicProgram, tolerance: float) -> list[Fraction]:
    """Multipliers of a conic program, from those of `_exact`."""
    if not tolerance:
        return fractions(y)
    equal = _is_equation(program)
    k = int(equal.sum())
    full = np.empty(len(equal), dtype=object)
    full[equal] = [v - w for v, w in zip(y[:k], y[k : 2 * k], strict=True)]
    full[~equal] = y[2 * k :]
    return fractions(full.tolist())


def _is_equation(program: ConicProgram) -> Array:
    counts = [cone.rows for cone in program.cones]
    return np.repeat([cone.kind == "zero" for cone in program.cones], counts).astype(bool)
