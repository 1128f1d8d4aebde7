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
from functools import cached_property, lru_cache, partial
from typing import NamedTuple

import numpy as np
import scipy

from .arithmetic import (
    TINY,
    AccurateMatrix,
    Array,
    Enclosure,
    Pair,
    Vector,
    as_pair,
    dot,
    norm_above,
)
from .cones import ConeProduct
from .exact import (
    SNAPS,
    inner_product,
    is_outside,
    is_small,
    matrix_product,
    nearby_solution,
    scaled_to_integers,
)
from .gram import Scaled
from .lower_bound import DEAD, quadratic_above
from .program import Cone, ConicProgram
from .rational import Dependence, dependent_rows
from .rounding import UNIT, at_most, up
from .start import Start
from .steps import NotProven, Steps, climb, first_proof

CORRECTIONS = 8

ROUNDED = 2.0**-44
"""Equations that are off by less, relative to what they are sums of, hold but for rounding."""


class PrimalProof(NamedTuple):
    """A proven upper bound, and the point x it is proven from."""

    value: float
    x: Vector


@dataclass(frozen=True, eq=False)
class PrimalProver:
    """What the proofs of upper bounds of one conic program share.

    `equations` are the rows of the zero cone that imply the others exactly; None for all of them.
    With a tolerance, equations within it and slacks s with s + tolerance * e in K are feasible.
    """

    program: ConicProgram
    equations: Array | None = None
    tolerance: float = 0.0

    @cached_property
    def cones(self) -> ConeProduct:
        """The cones, grouped."""
        return ConeProduct(self.program.cones)

    @cached_property
    def zero(self) -> Array:
        """The equations that are solved."""
        return self.cones.zero if self.equations is None else self.equations

    @cached_property
    def _matrices(self) -> tuple[AccurateMatrix, AccurateMatrix | None]:
        P = self.program.P
        rows = AccurateMatrix(scipy.sparse.csc_array(self.program.A.T))
        return rows, None if P is None else AccurateMatrix(P)

    @cached_property
    def gram(self) -> Scaled:
        """The floor of S A_z A_z' S, positive if the equations are proven independent."""
        return Scaled(scipy.sparse.csc_array(self.program.A.tocsr()[self.zero].T))

    @cached_property
    def _row_lengths(self) -> Array:
        """Upper bounds on the lengths of the rows of A: sums of sizes, as `distance` is tiny."""
        A = self.program.A
        sums = np.bincount(A.indices, np.abs(A.data), minlength=A.shape[0])
        return np.asarray(sums * (1.0 + (A.shape[1] + 8) * UNIT))

    def residual(self, x: Pair) -> Enclosure:
        """Enclose Ax - b."""
        return self._matrices[0].transpose_times(x, -self.program.b)

    def prove(self, x: Pair, e: Enclosure | None = None) -> PrimalProof:
        """The upper bound at x."""
        if not x.is_finite:
            raise NotProven("the point holds NaN or infinity")
        program, cones, distance = self.program, self.cones, 0.0
        e = self.residual(x) if e is None else e
        with np.errstate(all="ignore"):
            width, center = np.abs(e.low) + e.error, -e.high
            if self.tolerance:
                if not (e.size[cones.zero] <= self.tolerance).all():
                    raise NotProven("the equations are not met to the tolerance")
                center = center + self.tolerance * cones.interior()
                width = width + 4.0 * UNIT * (np.abs(center) + self.tolerance)
            elif self.zero.size:
                if not self.gram.floor > 0.0:
                    raise NotProven("the equations are not proven to be independent")
                length = norm_above(self.gram.scale * e.size[self.zero] + TINY)
                distance = length / math.sqrt(self.gram.floor) * (1.0 + 8.0 * UNIT)
                width = width + self._row_lengths * distance
            missing = cones.first_outside(center, width * (1.0 + 8.0 * UNIT))
        if missing or not math.isfinite(distance):
            raise NotProven(f"the point is not proven to be inside K: {missing}")
        terms = [dot(program.c, x)[1], norm_above(np.abs(program.c)) * distance]
        P = self._matrices[1]
        if P is not None:
            q, size = quadratic_above(P, x), float(abs(program.P).sum(axis=0).max())
            step = math.sqrt(size * 1.001) * distance
            terms += [0.5 * q, math.sqrt(q) * step * 1.001, step * step]
        value = at_most(*terms)
        if not math.isfinite(value):
            raise NotProven("the bound overflows")
        return PrimalProof(value, x)

    def correct(self, x: Array, s: Array) -> PrimalProof:
        """Correct an approximate point towards the slack s, and prove the best bound found."""
        A, proper, zero = self.program.A, self.cones.proper, self.zero
        metric = self.cones.metric(s, dual=False)
        solver = metric.solver(A, zero)
        if solver is None:
            raise NotProven("the equations of the correction are singular")
        point, last = Pair.of(x), math.inf
        best, why = None, NotProven("the correction overflows")
        for k in range(CORRECTIONS):
            e = self.residual(point)
            size = float(np.max(e.size[zero], initial=0.0))
            if not np.isfinite(e.size).all():
                break
            if k:
                try:
                    found = self.prove(point, e)
                    best = found if best is None or found.value < best.value else best
                except NotProven as error:
                    why = error
                # The first two steps pull towards s, the third may be further from the equations.
                is_slow = size >= 0.5 * last and (k > 2 or best is not None)
                if is_slow or (not zero.size and best is not None):
                    break
                last = size
            off = -(e.high + e.low)
            off[proper] = off[proper] - s[proper] if k < 2 else 0.0  # how far b - Ax is from s
            point = point.plus(solver(np.zeros(len(x)), off)[0])
        if best is None:
            raise why
        return best


def upper_bound(
    program: ConicProgram,
    start: Start,
    tolerance: float,
    steps: Steps,
    target: float | None = None,
) -> PrimalProof | None:
    """The best upper bound that the rungs of the ladder prove, or None; `steps` says how."""
    if not start.is_finite:
        steps.append("upper bound: none, the start holds NaN or infinity")
        return None
    equations = None
    if not tolerance:
        equations, contradictions = dependence(program)
        if contradictions:
            steps.append("upper bound: none, the equations contradict each other")
            return None
    prover = PrimalProver(program, equations, tolerance)
    goal = program.value(start.x) if target is None else target
    rungs: list[tuple[str, Callable[[], PrimalProof]]] = [
        ("correction", lambda: _from_start(prover, start)),
        ("exact face", lambda: _exact_primal(program, start)),
    ]
    if program.is_polyhedral:
        del rungs[1:]
    if tolerance:
        rungs[:1] = [("tolerance", lambda: _within_tolerance(prover, start))]
    return climb("upper", rungs, goal, start.is_final, steps)


@lru_cache(maxsize=2)  # the same for every start
def dependence(program: ConicProgram) -> Dependence:
    """The equations that imply the others, by their rows in the program, and contradictions."""
    prover = PrimalProver(program)
    if prover.gram.floor > 0.0:
        return Dependence(prover.zero, [])
    found = dependent_rows(program.A.tocsr()[prover.zero], program.b[prover.zero])
    return found._replace(kept=prover.zero[found.kept])


def consistent_ends(
    program: ConicProgram, start: Start | None, moved: dict[int, Fraction]
) -> dict[int, Fraction]:
    """Right sides of equations that contradict others by rounding, with which they do not.

    Empty where one contradicts others by more. Right sides of the others may have been moved.
    """
    found = dependence(program).contradictions
    zero, ends = ConeProduct(program.cones).zero, {}
    sizes = np.abs(program.b[zero])
    if start is not None and start.is_finite:
        sizes = sizes + abs(program.A.tocsr()[zero]) @ np.abs(start.x)
    for multipliers, size in found:
        if not abs(float(size)) <= ROUNDED * sum(
            abs(float(weight)) * sizes[k] for k, weight in multipliers.items()
        ):
            return {}
        rows = [int(zero[k]) for k in multipliers]
        b = {i: Fraction(program.b[i]) for i in rows}
        steps = zip(rows, multipliers.values(), strict=True)
        change = sum((w * (moved[i] - b[i]) for i, w in steps if i in moved), Fraction(0))
        ends[rows[0]] = b[rows[0]] - size - change
    return ends


def _from_start(prover: PrimalProver, start: Start) -> PrimalProof:
    """Correct the point of a start towards its slack, moved into K if need be."""

    def corrected(depth: float) -> PrimalProof:
        depth *= max(1.0, float(np.abs(start.s).max(initial=0.0)))
        s = prover.cones.pushed(start.s, depth, dual=False) if depth else start.s
        return prover.correct(start.x, s)

    return first_proof(partial(corrected, depth) for depth in start.depths)


def _exact_primal(program: ConicProgram, start: Start) -> PrimalProof:
    """Solve the equations, and the rows that are tight, in fractions."""
    if not is_small(program.A, program.P):
        raise NotProven("too large for fractions")
    cones = ConeProduct(program.cones)
    tight, active = list(cones.zero), list(cones.zero)
    for group in cones.groups:
        s_size, y_size = (np.abs(v[group.rows]).max(axis=1) for v in (start.s, start.y))
        near = s_size < DEAD[-1] * (1.0 + np.abs(program.b[group.rows]).max(axis=1))
        tight += group.rows[near].ravel().tolist()
        active += group.rows[near & (s_size < y_size)].ravel().tolist()
    b, best = [Fraction(v) for v in program.b.tolist()], None
    for rows in (active, tight, list(cones.zero)):
        E = scipy.sparse.csc_array(program.A.tocsr()[np.array(sorted(rows), dtype=np.int64)])
        f = [b[i] for i in sorted(rows)]
        for bits in SNAPS:
            x = nearby_solution(E, f, start.x, np.ones(len(program.c)), bits)
            if x is None:
                continue
            if not program.b.any():  # of a ray any multiple will do
                x = scaled_to_integers(x)
            slack = [v - q for v, q in zip(b, matrix_product(program.A, x), strict=True)]
            if is_outside(cones, slack, dual=False):
                continue
            value = inner_product(program.c.tolist(), x)
            if program.P is not None:
                value += inner_product(x, matrix_product(program.P, x)) / 2
            if best is None or up(value) < best.value:
                best = PrimalProof(up(value), x)
        if best is not None:
            return best
    raise NotProven("no exact solution near x is inside K")


def relaxed(program: ConicProgram, tolerance: float) -> ConicProgram:
    """The program in which constraints are met to nearly the tolerance, rounded: for a start."""
    if not tolerance:
        return program
    cones, A = ConeProduct(program.cones), program.A.tocsr()
    slack = tolerance * (1.0 - 1e-9)
    b, zero = program.b + slack * cones.interior(), cones.zero
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


def _within_tolerance(prover: PrimalProver, start: Start) -> PrimalProof:
    """Correct a point of the relaxed program, and judge it with the tolerance."""
    loose = PrimalProver(relaxed(prover.program, prover.tolerance))
    e, proper = loose.residual(Pair.of(start.x)), prover.cones.proper
    band = -(e.high + e.low)[: len(loose.program.b) - len(proper)]
    slack = np.concatenate([np.maximum(band, 1e-8 * prover.tolerance), start.s[proper]])
    return prover.prove(as_pair(loose.correct(start.x, slack).x))
