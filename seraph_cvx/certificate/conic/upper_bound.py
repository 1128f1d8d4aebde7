"""A proven upper bound on the value of a conic program, at a point proven to be feasible.

A solver's x meets neither Ax + s = b nor s in K. Corrections pull b - Ax towards the solver's s, in
the metric of the barrier of K there, and onto the equations, as nearly as two doubles allow. What
is left of the equations, e = A_z x - b_z, is proven away: some x* with A_z x* = b_z has

    |x* - x| <= t = |Se| / sqrt(lambda_min(S A_z A_z' S)),

so row i of b - A x* is within |a_i| t of that of b - Ax; these boxes are proven to lie in K.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy

from ...numerics.checks import FloatArray, IntArray
from ...numerics.rounding import UNIT, at_most, up
from .arithmetic import AccurateMatrix, Enclosure, Pair, dot, norm_above
from .cones import ConeProduct
from .exact import (
    SNAPS,
    dependent_columns,
    is_small,
    nearby_solution,
    outside,
    pair_of,
    product,
    times,
)
from .gram import DENSE_ORDER, Scaled, inner_products
from .lower_bound import ANCHORS, DEAD, DEPTHS, ENOUGH, quadratic_above
from .program import Cone, ConicProgram
from .solve import Start, solve

CORRECTIONS = 8


class PrimalProof(NamedTuple):
    """A proven upper bound, and the pair x it is proven from."""

    value: float
    x: Pair


@dataclass(frozen=True, eq=False)
class PrimalProver:
    """What the proofs of upper bounds of one conic program share.

    `equations` are the rows of the zero cone that imply the others exactly; None for all of them.
    With a tolerance, equations within it and slacks s with s + tolerance * e in K are feasible.
    """

    program: ConicProgram
    equations: IntArray | None = None
    tolerance: float = 0.0

    @cached_property
    def cones(self) -> ConeProduct:
        """The cones, grouped."""
        return ConeProduct(self.program.cones)

    @cached_property
    def zero(self) -> IntArray:
        """The equations that are solved."""
        return self.cones.zero if self.equations is None else self.equations

    @cached_property
    def _rows(self) -> AccurateMatrix:
        return AccurateMatrix(scipy.sparse.csc_array(self.program.A.T))

    @cached_property
    def _P(self) -> AccurateMatrix | None:
        return None if self.program.P is None else AccurateMatrix(self.program.P)

    @cached_property
    def _equations_gram(self) -> Scaled:
        A_z = self.program.A.tocsr()[self.zero]
        return Scaled(scipy.sparse.csc_array(A_z.T))

    @cached_property
    def _row_lengths(self) -> FloatArray:
        """Upper bounds on the lengths of the rows of A."""
        A = abs(self.program.A)
        largest = float(A.data.max(initial=0.0)) or 1.0
        power = math.frexp(largest)[1]
        scaled = scipy.sparse.csr_array(A) * math.ldexp(1.0, -power)
        longest = int(np.diff(scaled.indptr).max(initial=0))
        squares = np.asarray(scaled.multiply(scaled).sum(axis=1)).reshape(-1)
        lengths = np.sqrt(squares) * (1.0 + (longest + 8) * UNIT)
        # Entries whose squares underflow are below 2^-500 of the largest.
        return (lengths + math.sqrt(longest) * 2.0**-500) * math.ldexp(1.0, power)

    @property
    def has_independent_equations(self) -> bool:
        """Whether the equations are proven independent, or there are none."""
        return not self.zero.size or self._equations_gram.floor > 0.0

    def residual(self, x: Pair) -> Enclosure:
        """Enclose Ax - b."""
        return self._rows.transpose_times(x, -self.program.b)

    def prove(self, x: Pair, e: Enclosure | None = None) -> PrimalProof | str:
        """The upper bound at x, or why there is none."""
        if not x.is_finite:
            return "the point holds NaN or infinity"
        program, cones = self.program, self.cones
        e = self.residual(x) if e is None else e
        distance = 0.0
        if self.tolerance:
            if not (e.size[cones.zero] <= self.tolerance).all():
                return "the equations are not met to the tolerance"
        elif self.zero.size:
            gram = self._equations_gram
            if not gram.floor > 0.0:
                return "the equations are not proven to be independent"
            with np.errstate(all="ignore"):
                length = norm_above(gram.scale * e.size[self.zero])
            distance = length / math.sqrt(gram.floor) * (1.0 + 8.0 * UNIT)
        if not math.isfinite(distance):
            return "the equations are not nearly met"
        with np.errstate(all="ignore"):
            width = np.abs(e.low) + e.error
            if distance:
                width = width + self._row_lengths * distance
            width = np.where(width == 0.0, 0.0, width * (1.0 + 8.0 * UNIT))
            center = -e.high
            if self.tolerance:
                center = center + self.tolerance * cones.interior(dual=False)
                width = width + 4.0 * UNIT * (np.abs(center) + self.tolerance)
        missing = cones.outside(center, width)
        if missing:
            return f"the point is not proven to be inside K: {missing[0]}"
        terms = [dot(program.c, x)[1], norm_above(program.c) * distance]
        if program.P is not None and self._P is not None:
            q = quadratic_above(self._P, x)
            step = math.sqrt(float(abs(program.P).sum(axis=0).max()) * 1.001) * distance
            terms += [0.5 * q, math.sqrt(q) * step * 1.001, step * step]
        value = at_most(*terms)
        return PrimalProof(value, x) if math.isfinite(value) else "the bound overflows"

    def correct(self, x: FloatArray, s: FloatArray) -> PrimalProof | str:
        """Correct an approximate point towards the slack s, and prove the best bound found."""
        program, proper, zero = self.program, self.cones.proper, self.zero
        A = program.A.tocsr()
        H = self.cones.metric(s, dual=False)
        solve = _equality_solver(scipy.sparse.csc_array(inner_products(A, H @ A)), A[zero])
        if solve is None:
            return "the equations of the correction are singular"
        point = Pair.of(x)
        best: PrimalProof | str = "no point was tried"
        last = math.inf
        HA = H @ A
        for k in range(CORRECTIONS):
            e = self.residual(point)
            size = float(np.max(e.size[zero], initial=0.0))
            if not math.isfinite(size):
                break
            if k:
                found = self.prove(point, e)
                if isinstance(found, str):
                    best = found if isinstance(best, str) else best
                elif isinstance(best, str) or found.value < best.value:
                    best = found
                if size >= 0.5 * last:
                    break
            off = np.zeros(len(s))
            if k < 2:
                off[proper] = -e.value[proper] - s[proper]  # how far b - Ax is from s
            step = solve(HA.T @ off, -e.value[zero])
            if not np.isfinite(step).all():
                break
            point = point.plus(step)
            if not zero.size and k >= 1 and not isinstance(best, str):
                break
            last = size if k else math.inf
        return best


def relaxed(program: ConicProgram, tolerance: float) -> ConicProgram:
    """The program in which constraints are met to nearly the tolerance, rounded: for a start."""
    if not tolerance:
        return program
    cones = ConeProduct(program.cones)
    slack = tolerance * (1.0 - 1e-9)
    b = program.b + slack * cones.interior(dual=False)
    A, zero = program.A.tocsr(), cones.zero
    rest = [cone for cone in program.cones if cone.kind != "zero"]
    return replace(
        program,
        A=scipy.sparse.vstack([A[zero], -A[zero], A[cones.proper]]),
        b=np.concatenate([b[zero] + slack, slack - b[zero], b[cones.proper]]),
        cones=(Cone("nonnegative", 2 * len(zero)), *rest) if zero.size else tuple(rest),
    )


def unrelaxed(program: ConicProgram, start: Start) -> Start:
    """A start for the program itself, from one of the relaxed program."""
    cones = ConeProduct(program.cones)
    k = len(cones.zero)
    if len(start.y) == len(program.b):
        return start
    y, s = np.zeros((2, len(program.b)))
    y[cones.zero] = start.y[:k] - start.y[k : 2 * k]
    y[cones.proper], s[cones.proper] = start.y[2 * k :], start.s[2 * k :]
    return start._replace(y=y, s=s)


def upper_bound(
    program: ConicProgram,
    start: Start,
    tolerance: float,
    steps: list[str],
    target: float | None = None,
) -> PrimalProof | None:
    """The best upper bound that the rungs of the ladder prove, or None; `steps` says how."""
    prover = PrimalProver(program, None, tolerance)
    if not tolerance and not prover.has_independent_equations:
        A_z = program.A.tocsr()[prover.zero]
        found = dependent_columns(scipy.sparse.csc_array(A_z.T), program.b[prover.zero])
        if found is not None and found.line is not None:
            steps.append("upper bound: none, the equations contradict each other")
            return None
        if found is not None:
            prover = PrimalProver(program, prover.zero[found.kept])
    goal = program.value(start.x) if target is None else target
    best: PrimalProof | None = None
    why = []
    rungs: list[tuple[str, Callable[[], PrimalProof | str]]] = [
        ("correction", lambda: _from_start(prover, start)),
        ("interior shift", lambda: _shifted_inward(prover)),
        ("exact face", lambda: _exact_primal(program, start)),
    ]
    if tolerance:
        rungs[:2] = [("tolerance", lambda: _within_tolerance(prover, start))]
    for name, attempt in rungs:
        proof = attempt()
        if isinstance(proof, str):
            why.append(f"{name}: {proof}")
        elif best is None or proof.value < best.value:
            best = proof
            steps.append(f"upper bound: {name}, {proof.value!r}")
        if best is not None and best.value - goal <= ENOUGH * max(1.0, abs(goal)):
            return best
    if best is None:
        steps.append("upper bound: none; " + "; ".join(why))
    return best


def _from_start(prover: PrimalProver, start: Start) -> PrimalProof | str:
    """Correct the point of a start towards its slack, moved into K if need be."""
    found: PrimalProof | str = ""
    for depth in DEPTHS[: 1 if start.solver == "CLARABEL" else None]:
        s = start.s
        if depth:
            s = prover.cones.pushed(s, depth * max(1.0, float(np.abs(s).max())), dual=False)
        found = prover.correct(start.x, s)
        if not isinstance(found, str):
            break
    return found


def _within_tolerance(prover: PrimalProver, start: Start) -> PrimalProof | str:
    """Correct a point of the relaxed program, and judge it with the tolerance."""
    loose = PrimalProver(relaxed(prover.program, prover.tolerance))
    proper = prover.cones.proper
    band = -loose.residual(Pair.of(start.x)).value[: len(loose.program.b) - len(proper)]
    slack = np.concatenate([np.maximum(band, 1e-8 * prover.tolerance), start.s[proper]])
    found = loose.correct(start.x, slack)
    return found if isinstance(found, str) else prover.prove(found.x)


def _shifted_inward(prover: PrimalProver) -> PrimalProof | str:
    """Solve with b - eps e, e inside K: then b - Ax is inside by eps e, at a loss of eps e'y."""
    program = prover.program
    e = prover.cones.interior(dual=False)
    best: PrimalProof | str = "no solution of the shifted program"
    for share in ANCHORS:
        shift = share * max(1.0, float(np.abs(program.b).max(initial=0.0)))
        found = solve(replace(program, b=program.b - shift * e))
        if not found.is_finite:
            continue
        proof = prover.correct(found.x, found.s + shift * e)
        if not isinstance(proof, str):
            return proof
        best = proof
    return best


def _exact_primal(program: ConicProgram, start: Start) -> PrimalProof | str:
    """Solve the equations and the rows that are tight in fractions."""
    cones = ConeProduct(program.cones)
    if not is_small(program.A, program.P):
        return "too large for fractions"
    tight, active = list(cones.zero), list(cones.zero)
    for group in cones.groups:
        s_size, y_size = (np.abs(v[group.rows]).max(axis=1) for v in (start.s, start.y))
        near = s_size < DEAD * (1.0 + np.abs(program.b[group.rows]).max(axis=1))
        tight += group.rows[near].ravel().tolist()
        active += group.rows[near & (s_size < y_size)].ravel().tolist()
    best = None
    for rows in (np.array(sorted(r), dtype=np.int64) for r in (active, tight, cones.zero)):
        E = scipy.sparse.csc_array(program.A.tocsr()[rows])
        f = [Fraction(v) for v in program.b[rows].tolist()]
        for bits in SNAPS:
            x = nearby_solution(E, f, start.x, np.ones(len(program.c)), bits)
            if x is None:
                continue
            slack = [
                Fraction(v) - q
                for v, q in zip(program.b.tolist(), times(program.A, x), strict=True)
            ]
            if outside(cones, slack, dual=False):
                continue
            value = product(program.c, x)
            if program.P is not None:
                q = times(program.P, x)
                value += sum((a * b for a, b in zip(x, q, strict=True)), Fraction(0)) / 2
            if best is None or up(value) < best.value:
                best = PrimalProof(up(value), pair_of(x))
        if best is not None:
            break
    return best or "no exact solution near x is inside K"


def _equality_solver(M: Any, A_z: Any) -> Callable[[FloatArray, FloatArray], FloatArray] | None:
    """Solve min d'Md/2 - g'd subject to A_z d = f, nearly; M may be singular."""
    n, k = M.shape[0], A_z.shape[0]
    diagonal = M.diagonal()
    largest = float(diagonal.max(initial=0.0)) or 1.0
    # Directions that no cone sees: any small weight does no harm.
    scale = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, largest))
    S = scipy.sparse.diags_array(scale)
    scaled = S @ M @ S + 1e-14 * scipy.sparse.eye_array(n)
    B = scipy.sparse.csr_array(A_z @ S)
    lengths = np.sqrt(np.asarray(B.multiply(B).sum(axis=1)).reshape(-1))
    rows = 1.0 / np.where(lengths > 0.0, lengths, 1.0)
    B = scipy.sparse.diags_array(rows) @ B
    KKT = scipy.sparse.block_array(
        [[scaled, B.T], [B, -1e-15 * scipy.sparse.eye_array(k)]], format="csc"
    )
    if not np.isfinite(KKT.data).all():
        return None
    try:
        if n + k <= DENSE_ORDER:
            factors = scipy.linalg.lu_factor(KKT.toarray())

            def solve_scaled(rhs: FloatArray) -> FloatArray:
                return np.asarray(scipy.linalg.lu_solve(factors, rhs))
        else:
            solve_scaled = scipy.sparse.linalg.splu(scipy.sparse.csc_matrix(KKT)).solve
    except (RuntimeError, ValueError):
        return None

    def solve(gradient: FloatArray, values: FloatArray) -> FloatArray:
        rhs = np.concatenate([scale * gradient, rows * values])
        return np.asarray(scale * solve_scaled(rhs)[:n])

    return solve
