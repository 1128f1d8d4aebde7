"""Proofs that a conic program has no feasible point, or that its value has no lower bound.

Infeasible: y in K* with A'y = 0 and -b'y > 0, the lower bound of the program with c = 0. It is
looked for in phase one, minimize t >= 0 subject to b - Ax + t e in K, e inside K. Unbounded: a
feasible point and a ray, Px = 0, A_z x = 0, -A_K x in K, c'x < 0.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import scipy

from .arithmetic import Array, Pair, Vector, as_pair
from .cones import ConeProduct
from .lower_bound import lower_bound
from .program import Cone, ConicProgram
from .rational import dependent_rows
from .start import Start, solve
from .steps import Steps
from .upper_bound import upper_bound


def prove_infeasible(program: ConicProgram, start: Start, steps: Steps) -> Vector | None:
    """The multipliers of a proof that no point is feasible, or None."""
    zero = ConeProduct(program.cones).zero
    for known in dependent_rows(program.A.tocsr()[zero], program.b[zero]).contradictions:
        steps.append("infeasible: the equations contradict each other, exactly")
        sign = -1 if known.size > 0 else 1
        line = [Fraction(0)] * len(program.b)
        for i, multiplier in known.multipliers.items():
            line[zero[i]] = sign * multiplier
        return line
    feasibility = replace(program, c=np.zeros(len(program.c)), P=None)
    with np.errstate(all="ignore"):
        value = -float(program.b @ start.y)
        size = max(1.0, float(np.abs(program.b).max(initial=0.0)))
        largest = float(np.abs(start.y).max(initial=0.0))
    if start.is_finite and value > 1e-12 * size * largest > 0.0:
        scaled = start._replace(x=np.zeros(len(program.c)), y=start.y / largest)
        proof = lower_bound(feasibility, scaled, steps, target=0.5 * value / largest)
        if proof is not None and proof.value > 0.0:
            return proof.y
    relaxed = phase_one(program, ConeProduct(program.cones).interior())
    found = solve(relaxed)
    if not found.is_finite or not found.x[-1] > 0.0:
        return None
    proof = lower_bound(relaxed, found, steps)
    if proof is None or not proof.value > 0.0:
        return None
    return Pair(*(part[:-1] for part in as_pair(proof.y)))


def phase_one(program: ConicProgram, e: Array) -> ConicProgram:
    """Minimize t >= 0 subject to b - Ax + te in K; the column of t and the row t >= 0 come last."""
    n = len(program.c)
    column = scipy.sparse.csc_array(-e[:, None])
    row = scipy.sparse.csc_array(([-1.0], ([0], [n])), shape=(1, n + 1))
    A = scipy.sparse.vstack([scipy.sparse.hstack([program.A, column]), row])
    cones = (*program.cones, Cone("nonnegative", 1))
    return ConicProgram(A, np.append(program.b, 0.0), np.append(np.zeros(n), 1.0), None, cones)


def prove_ray(program: ConicProgram, steps: Steps) -> Vector | None:
    """A ray along which the objective of every feasible point falls forever, or None."""
    n, P = len(program.c), program.P
    A, cones, b = program.A, program.cones, np.zeros(len(program.b))
    if P is not None:
        A, cones = scipy.sparse.vstack([P, A]), (Cone("zero", n), *cones)
        b = np.zeros(len(program.b) + n)
    size = float(np.abs(program.c).max(initial=0.0))
    if not size:
        return None
    scale = 2.0 ** -max(int(np.frexp(size)[1]), -1000)
    c = program.c * scale
    # Bounded by c'x >= -1, so that a solver finds a ray well inside.
    bounded = ConicProgram(
        scipy.sparse.vstack([A, scipy.sparse.csc_array(-c[None, :])]),
        np.append(b, 1.0),
        c,
        None,
        (*cones, Cone("nonnegative", 1)),
    )
    found = solve(bounded)
    if not found.is_finite or not float(c @ found.x) < -0.5:
        return None
    start = found._replace(s=found.s[:-1], y=found.y[:-1])
    proof = upper_bound(ConicProgram(A, b, c, None, cones), start, 0.0, steps, target=-0.5)
    return proof.x if proof is not None and proof.value < 0.0 else None


def prove_feasible(program: ConicProgram, tolerance: float, steps: Steps) -> Vector | None:
    """A point proven to be feasible, well inside if there is one; or None."""
    feasibility = replace(program, c=np.zeros(len(program.c)), P=None)
    start = solve(feasibility)
    if not start.is_finite:
        return None
    proof = upper_bound(feasibility, start, tolerance, steps)
    return None if proof is None else proof.x
