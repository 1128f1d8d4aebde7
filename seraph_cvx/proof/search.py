"""The search for the bounds of a conic program: which proof is tried from which start, and when."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from .arithmetic import Array, Pair, Vector
from .center import centered
from .faces import Face, lifted, on_faces
from .linear import ExactProof, prove_polyhedral
from .lower_bound import DualProof, lower_bound, reduced
from .program import (
    ConicProgram,
)
from .quadratic import Convexified, convexified
from .rays import prove_feasible, prove_infeasible, prove_ray
from .rounding import down, up
from .start import Start, solve
from .steps import Steps
from .upper_bound import PrimalProof, consistent_ends, relaxed, unrelaxed, upper_bound

NEAR = 1e-6
"""A relative gap that is good enough not to solve the problem again."""

ROUGH, MOST_AGAIN = 1e-3, 10.0
"""A relative gap for which a quadratic program is solved once more, and for how many seconds."""

MOST_BRACKETED = 3_000
"""Rows and columns of a quadratic program up to which linear programs are the quicker proof."""

MOST_VAIN = 4
"""Centers that prove no upper bound of a quadratic program, as it may have no interior."""


@dataclass
class Evidence:
    """The numbers from which the bounds of a conic program were proven.

    With `bounds` it is that program with rows added for them, and y has entries for these.
    `optimum` is the program's optimum, where that is known exactly. Where P had to be shifted to
    be PSD, y and h are multipliers of the program `convexified`; right sides that contradict each
    other by rounding are `moved`.
    """

    dual: DualProof | None = None
    primal: PrimalProof | None = None
    ray_dual: Vector | None = None
    ray_primal: Vector | None = None
    bounds: Array | None = None
    optimum: Fraction | None = None
    convexified: Convexified | None = None
    moved: dict[int, Fraction] | None = None

    def gap(self, program: ConicProgram) -> float:
        """The relative gap of the two bounds of the program; zero where a ray is known."""
        if self.ray_dual is not None or self.ray_primal is not None:
            return 0.0
        if self.dual is None or self.primal is None:
            return math.inf
        return program.gap(self.dual.value, self.primal.value)

    def ends(self, program: ConicProgram) -> tuple[float, float]:
        """The bounds in the problem's own sense and units, constant and sign added exactly."""
        if self.ray_dual is not None or self.ray_primal is not None:
            lower = upper = math.inf if self.ray_dual is not None else -math.inf
        else:
            lower = self.dual.value if self.dual else -math.inf
            upper = self.primal.value if self.primal else math.inf
        if program.maximize:
            lower, upper = -upper, -lower
        offset = Fraction(program.offset)
        lower = down(Fraction(lower) + offset) if math.isfinite(lower) else lower
        upper = up(Fraction(upper) + offset) if math.isfinite(upper) else upper
        if self.optimum is not None and math.isfinite(lower):
            value = offset + int(program.sign) * self.optimum
            lower, upper = down(value), up(value)
        return lower, upper

    @property
    def is_of_shifted(self) -> bool:
        """Whether all this is proven of the program with another P, and not of the program."""
        return self.convexified is not None and self.convexified.loss is None

    @property
    def is_worth_something(self) -> bool:
        """Whether anything is proven."""
        return any((self.dual, self.primal, self.ray_dual, self.ray_primal))

    def add(self, dual: DualProof | None, primal: PrimalProof | None) -> None:
        """Take bounds of the same program where they are better."""
        if dual is not None and (self.dual is None or dual.value > self.dual.value):
            self.dual = dual
        if primal is not None and (self.primal is None or primal.value < self.primal.value):
            self.primal = primal

    def add_exact(self, proof: ExactProof) -> None:
        """Take what is proven in rationals; of a program whose right sides moved, that alone."""
        if proof.moved:
            self.dual, self.primal, self.moved = None, None, proof.moved
        self.add(proof.dual, proof.primal)
        self.ray_dual, self.ray_primal = proof.ray_dual, proof.ray_primal
        self.optimum = proof.optimum


def searched(
    program: ConicProgram,
    start: Start | None,
    tolerance: float,
    steps: Steps,
    is_whole: bool = True,
) -> Evidence:
    """The best that can be proven of a program, whose P is made PSD first."""
    convex = convexified(program, tolerance)
    if convex is None:
        return _search(program, start, tolerance, steps, is_whole)
    steps.append(convex.words)
    evidence = _search(convex.program, start, tolerance, steps, is_whole)
    if evidence.moved:  # what bounds the columns are constraints as they were
        convex = replace(convex, implied=(), loss=None)
    evidence.convexified = convex
    if convex.loss:
        evidence.optimum = None
    if evidence.dual is not None and convex.loss:
        value = down(Fraction(evidence.dual.value) - convex.loss)
        evidence.dual = evidence.dual._replace(value=value)
    return evidence


def _search(
    program: ConicProgram, start: Start | None, tolerance: float, steps: Steps, is_whole: bool
) -> Evidence:
    """The best that can be proven of a convex program: exactly, or from one start after another."""
    evidence = Evidence()
    if program.P is None and program.is_polyhedral:
        for proof in prove_polyhedral(program, None, tolerance, steps):
            evidence.add_exact(proof)
    elif not tolerance:
        ends = consistent_ends(program, start, {})
        if ends:
            moved = _search_without(program, start, ends, steps, is_whole)
            if moved.is_worth_something:
                return moved
    if start is not None and evidence.gap(program) > NEAR and not evidence.moved:
        steps.append(f"started from the answer of {start.solver}")
        _prove(evidence, program, start, tolerance, steps, is_whole)
    # Another solver is for bounds that are missing, and for what a rough answer left between them.
    enough = math.inf if start is not None and start.is_final else NEAR
    for solver, most in (("CLARABEL", math.inf), ("SCS", MOST_AGAIN)):
        gap = evidence.gap(program)
        if steps.is_over or gap <= NEAR or gap < enough or evidence.moved:
            break
        found = _solved(program, solver, tolerance, steps, most if gap < math.inf else math.inf)
        if found is not None:
            _prove(evidence, program, found, tolerance, steps, is_whole)
            enough = ROUGH if program.is_polyhedral else math.inf
    if not is_whole:
        evidence.ray_dual = evidence.ray_primal = None
    return evidence


def _search_without(
    program: ConicProgram,
    start: Start | None,
    ends: dict[int, Fraction],
    steps: Steps,
    is_whole: bool,
) -> Evidence:
    """The best of a program without equations that contradict the others by rounding.

    They hold where the others do, once their right sides are these.
    """
    most = max(abs(end - Fraction(program.b[i])) for i, end in ends.items())
    steps.append(f"infeasible as doubles: equations contradict each other by {float(most):.1e}")
    rows = np.delete(np.arange(len(program.b)), list(ends))
    inner = start and start._replace(s=start.s[rows], y=start.y[rows])
    smaller = reduced(program, rows, np.arange(len(program.c)))
    found = _search(smaller, inner, 0.0, steps, is_whole)

    def whole(y: Vector) -> Vector:
        """The multipliers with zeros for the equations that were left out."""
        if isinstance(y, list):
            rest = iter(y)
            size = len(y) + len(ends)
            return [Fraction(0) if i in ends else next(rest) for i in range(size)]
        places = [i - k for k, i in enumerate(sorted(ends))]
        return Pair(*(np.insert(part, places, 0.0) for part in y))

    if found.dual is not None:
        faces = tuple(face._replace(row=face.row + len(ends)) for face in found.dual.faces)
        found.dual = found.dual._replace(y=whole(found.dual.y), faces=faces)
    if found.ray_dual is not None:
        found.ray_dual = whole(found.ray_dual)
    else:
        moved = {int(rows[i]): end for i, end in (found.moved or {}).items()}
        found.moved = consistent_ends(program, start, moved) | moved
    return found


def _solved(
    program: ConicProgram, solver: str, tolerance: float, steps: Steps, most: float
) -> Start | None:
    """The answer of a solver to a program, or to that in which constraints may be off."""
    steps.begin(f"solving with {solver}")
    try:
        found = solve(relaxed(program, tolerance), solver, min(most, steps.seconds_left))
    except KeyboardInterrupt:
        steps.interrupt()
        return None
    except ValueError as error:
        steps.append(f"{solver} cannot solve it: {error}")
        return None
    steps.append(f"solved with {solver} in {found.seconds:.2g} s: {found.status}")
    return unrelaxed(program, found)


def _prove(
    evidence: Evidence,
    program: ConicProgram,
    start: Start,
    tolerance: float,
    steps: Steps,
    is_whole: bool,
) -> None:
    """Add what can be proven from a start; of a part of the problem only bounds are asked for."""
    began = time.perf_counter()
    try:
        _add_bounds(evidence, program, start, tolerance, steps)
        if is_whole and not (evidence.moved or steps.is_over):
            _add_rays(evidence, program, start, tolerance, steps)
    except KeyboardInterrupt:
        steps.interrupt()
    steps.append(f"proofs took {time.perf_counter() - began:.2g} s")


def _add_bounds(
    evidence: Evidence, program: ConicProgram, start: Start, tolerance: float, steps: Steps
) -> None:
    """Add bounds one after the other, so that Ctrl-C loses nothing."""
    is_good = start.is_finite and "nfeasible" not in start.status
    is_quadratic = program.is_polyhedral and program.P is not None
    is_small = is_quadratic and sum(program.A.shape) <= MOST_BRACKETED
    center = start.x if is_good else np.zeros(len(program.c))
    if is_good:
        # a tolerance of S >= -t I would be one of V'SV >= -t V'V on a face
        inner, near, faces = (program, start, ()) if tolerance else on_faces(program, start)
        _add_dual(evidence, inner, near, faces, tolerance, steps)
        if evidence.dual is not None or not is_small:
            evidence.add(None, upper_bound(program, start, tolerance, steps))
    for is_bracket in (True, False) if is_small else (False, is_quadratic):
        if evidence.gap(program) <= NEAR or evidence.moved:
            return
        if is_bracket:
            _add_bracket(evidence, program, center, tolerance, steps)
        elif is_good:
            for count, point in enumerate(centered(inner, near, steps), start=1):
                _add_dual(evidence, inner, point, faces, tolerance, steps)
                outer = lifted(program, faces, point)._replace(y=start.y) if faces else point
                evidence.add(None, upper_bound(program, outer, tolerance, steps))
                if evidence.gap(program) <= NEAR:
                    break
                if is_quadratic and evidence.primal is None and count == MOST_VAIN:
                    break  # linear programs need no interior


def _add_bracket(
    evidence: Evidence, program: ConicProgram, center: Array, tolerance: float, steps: Steps
) -> None:
    """Add what linear programs near a point prove of a quadratic one."""
    for proof in prove_polyhedral(program, center, tolerance, steps):
        evidence.add_exact(proof)
        if evidence.gap(program) <= NEAR or evidence.moved:
            break


def _add_dual(
    evidence: Evidence,
    program: ConicProgram,
    start: Start,
    faces: tuple[Face, ...],
    tolerance: float,
    steps: Steps,
) -> None:
    """Add the lower bound of a program that is restricted to faces."""
    proof = lower_bound(program, start, steps, tolerance=tolerance)
    evidence.add(None if proof is None else proof._replace(faces=faces), None)


def _add_rays(
    evidence: Evidence, program: ConicProgram, start: Start, tolerance: float, steps: Steps
) -> None:
    """Add proofs that the program is infeasible or unbounded, where bounds are missing."""
    if not tolerance and evidence.primal is None and evidence.ray_dual is None:
        evidence.ray_dual = prove_infeasible(program, start, steps)
    if evidence.ray_dual is None and evidence.dual is None:
        ray = prove_ray(program, steps)
        if ray is not None and evidence.primal is None:
            x = prove_feasible(program, tolerance, steps)
            evidence.primal = None if x is None else PrimalProof(math.inf, x)
        if evidence.primal is not None:
            evidence.ray_primal = ray
        elif ray is not None:
            steps.append("a ray of descent is proven, a feasible point is not")
