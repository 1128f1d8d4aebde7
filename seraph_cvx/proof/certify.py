"""`certify_problem`: proven bounds on the optimum of any continuous DCP problem of CVXPY."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from html import escape
from typing import Any

import cvxpy as cp
import numpy as np
import scipy
from cvxpy.atoms.quad_form import decomp_quad
from numpy.typing import ArrayLike

from .arithmetic import Array, Pair, Vector, as_pair
from .center import centered
from .conflict import Conflict, find_conflict
from .faces import Face, lifted, on_faces
from .linear import ExactProof, prove_polyhedral
from .lower_bound import DualProof, lower_bound, reduced
from .point import PointReport, Unjudged, judge_point
from .program import (
    COMPILING,
    CanonicalProblem,
    Cone,
    ConicProgram,
    Refused,
    canonicalize,
    matrix_of_form,
    subexpressions,
)
from .quadratic import Convexified, convexified, diagonal_shift, error_of_factor
from .rays import prove_feasible, prove_infeasible, prove_ray
from .rounding import down, up
from .start import Start, known_start, solve
from .steps import Steps
from .upper_bound import PrimalProof, consistent_ends, relaxed, unrelaxed, upper_bound

INSIDE = 2.0**-20
"""How deep, relatively, a point of a set has to be inside of its second-order cones."""

NEAR = 1e-6
"""A relative gap that is good enough not to solve the problem again."""

ROUGH, MOST_AGAIN = 1e-3, 10.0
"""A relative gap for which a quadratic program is solved once more, and for how many seconds."""

MOST_BRACKETED = 3_000
"""Rows and columns of a quadratic program up to which linear programs are the quicker proof."""

MOST_VAIN = 4
"""Centers that prove no upper bound of a quadratic program, as it may have no interior."""

PROVED_BY_POINT = " Of these bounds the values of the variables, proven feasible, prove one."


@dataclass(frozen=True, eq=False)
class ProblemCertificate:
    """What is proven of a problem: its optimum lies in [lower, upper].

    Attributes
    ----------
    lower, upper : float
        Bounds on the optimal value, in the problem's own sense and units; infinite where nothing is
        proven. For an infeasible or unbounded problem both are its infinite value.
    infeasible, unbounded : bool
        Whether it is proven that no point is feasible, or that the objective has no bound.
    claim : str
        One sentence: what exactly is proven.
    steps : tuple of str
        What was solved, which method gave each bound, and how long it took.
    point : PointReport or None
        The judgment of the values that the problem's variables have.
    tolerance : float
        The tolerance within which constraints count as satisfied; zero if they must hold exactly.
    """

    lower: float
    upper: float
    infeasible: bool
    unbounded: bool
    claim: str
    steps: tuple[str, ...]
    point: PointReport | None
    tolerance: float
    program: ConicProgram = field(repr=False)
    evidence: Evidence = field(repr=False)
    canonical: CanonicalProblem = field(repr=False)
    time_limit: float | None = field(default=None, repr=False)

    @cached_property
    def conflict(self) -> Conflict:
        """Constraints of an infeasible problem that cannot hold together; otherwise empty.

        The search runs when the property is first read, with the time limit of `certify_problem`.
        """
        ray = self.evidence.ray_dual
        if ray is None:
            return Conflict()
        return find_conflict(self.canonical, ray, certify_problem, self.time_limit)

    @property
    def direction(self) -> dict[cp.Variable, Array]:
        """A direction in which an unbounded problem improves, scaled to 1; otherwise empty."""
        ray = self.evidence.ray_primal
        if ray is None:
            return {}
        found = self.canonical.direction(as_pair(ray).high)
        size = max((float(np.abs(part).max(initial=0.0)) for part in found.values()), default=0.0)
        return {variable: part / (size or 1.0) for variable, part in found.items()}

    @property
    def optimum(self) -> Fraction | None:
        """The exact optimum, if it is known; the bounds are then the doubles next to it."""
        value, program = self.evidence.optimum, self.program
        return None if value is None else Fraction(program.offset) + int(program.sign) * value

    @property
    def relative_gap(self) -> float:
        """The gap relative to max(1, |upper|, |lower|), rounded up; infinite if one is missing."""
        if not (math.isfinite(self.lower) and math.isfinite(self.upper)):
            return 0.0 if self.infeasible or self.unbounded else math.inf
        gap = self.upper - self.lower
        size = max(1.0, abs(self.upper), abs(self.lower))
        return math.nextafter(math.nextafter(gap, math.inf) / size, math.inf) if gap else 0.0

    def to_json(self) -> str:
        """The conic program and the numbers of the proof, for `check_certificate`.

        Its bounds are those of the conic program, without what the values of the variables prove.
        """
        program, proof, bounds = self.program, self.evidence, self.evidence.bounds
        dual = proof.dual
        ends = dict(zip(("lower", "upper"), proof.ends(program), strict=True))
        written = {
            "format": "seraph_cvx conic certificate",
            "version": 1,
            "program": {
                "variables": len(program.c),
                "rows": len(program.b),
                "A": _written(program.A),
                "b": _moved(_written(program.b), proof.moved),
                "c": _written(program.c),
                "P": _written(program.P),
                "cones": [cone.as_json() for cone in program.cones],
                "offset": program.offset.hex(),
                "maximize": program.maximize,
                "scale": 1,
            },
            "tolerance": self.tolerance.hex() if self.tolerance else None,
            "claim": {side: _hex(end) for side, end in ends.items()}
            | {"infeasible": self.infeasible, "unbounded": self.unbounded},
            "dual": dual
            and {"y": _written(dual.y), "h": _written(dual.h), "zero_rows": dual.zero_rows}
            | ({"faces": [face.as_json() for face in dual.faces]} if dual.faces else {}),
            "primal": proof.primal and {"x": _written(proof.primal.x)},
            "ray_dual": proof.ray_dual and {"y": _written(proof.ray_dual)},
            "ray_primal": proof.ray_primal and {"x": _written(proof.ray_primal)},
            "variable_bounds": None if bounds is None else [_hex(B) for B in bounds.tolist()],
            **_written_shift(proof.convexified),
        }
        return json.dumps(written)

    def __str__(self) -> str:
        lines = [str(self.conflict), ""] if self.infeasible else []
        if self.unbounded:
            moved = {v.name(): d for v, d in self.direction.items() if d.any()}
            lines = ["The objective improves forever along this direction:"]
            lines += [f"  {name} = {_in_short(d)}" for name, d in moved.items()] + [""]
        lines.append(self.claim)
        if not (self.infeasible or self.unbounded):
            lines += [f"  lower bound   {self.lower!r}", f"  upper bound   {self.upper!r}"]
            lines += [f"  relative gap  {self.relative_gap:.1e}"]
        if self.point is not None:
            lines += ["", str(self.point)]
        return "\n".join([*lines, "", *(f"- {step}" for step in self.steps)])

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


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


def certify_problem(
    problem: cp.Problem,
    *,
    tolerance: float | None = None,
    bounds: Mapping[cp.Variable, ArrayLike] | None = None,
    time_limit: float | None = None,
    progress: Callable[[str], None] | None = None,
) -> ProblemCertificate:
    """Bound the optimum of a continuous DCP problem from both sides, trusting no solver.

    The bounds hold for CVXPY's conic program of the problem, with its numbers taken as exact. The
    point and the multipliers of a solver are only where the proofs start; a problem that is not
    solved yet is solved first.

    Parameters
    ----------
    problem : cvxpy.Problem
        A DCP problem with continuous variables; its parameters have values.
    tolerance : float, optional
        Certify the problem in which every equation may be off by this much, and every slack s
        needs only s + tolerance * e in its cone, e = 1, (1, 0, ..., 0), the identity,
        (-1, 1, 1) or (1, ..., 1, 0) for a nonnegative, second-order, PSD, exponential or power
        cone.
    bounds : mapping of variables to arrays, optional
        Bounds B on absolute values, |x| <= B, that are known to hold for the points of interest.
        What is certified is the problem with these constraints added, and the claim says so.
    time_limit : float, optional
        Seconds after which no new step is begun; the bounds are those proven by then. Ctrl-C has
        the same effect if anything has been proven.
    progress : callable, optional
        Called with a line of text whenever a step of the proof is begun or done.

    Returns
    -------
    ProblemCertificate
        The bounds, and how they were proven.

    Raises
    ------
    ValueError
        If the problem has integer variables, is not DCP, or has a part that CVXPY's conic program
        approximates or replaces by another function; the message names the part and a cure. Also if
        the values of the variables are feasible and contradict what is proven about the conic
        program, which is then not a program of this problem.

    Examples
    --------
    >>> import cvxpy as cp
    >>> from seraph_cvx.proof import certify_problem
    >>> x = cp.Variable(2)
    >>> problem = cp.Problem(cp.Minimize(cp.norm(x - [3, 4])), [cp.sum(x) == 0])
    >>> certificate = certify_problem(problem)
    >>> certificate.relative_gap < 1e-6
    True
    >>> bool(certificate.lower <= 24.5**0.5 <= certificate.upper)
    True
    """
    if tolerance is not None and not (math.isfinite(tolerance) and tolerance >= 0.0):
        raise ValueError(f"tolerance must be a nonnegative number, not {tolerance!r}.")
    if time_limit is not None and not time_limit > 0.0:
        raise ValueError(f"time_limit must be a positive number of seconds, not {time_limit!r}.")
    steps = Steps(time_limit, progress)
    canonical = _convex_program(problem, steps)
    columns = canonical.column_bounds(bounds)
    allowed = float(tolerance or 0.0)
    start = None if allowed else known_start(canonical)
    evidence = Evidence()
    if columns is not None:
        boxed = canonical.program.within(columns)
        evidence = replace(_searched(boxed, None, allowed, steps, is_whole=False), bounds=columns)
        if any(i >= len(canonical.program.b) for i in evidence.moved or ()):
            steps.append("nothing is claimed: the given bounds contradict the constraints")
            evidence = Evidence(bounds=columns)
    if evidence.dual is None:
        whole = _searched(canonical.program, start, allowed, steps)
        evidence = whole if columns is None or whole.ray_dual is not None else evidence
    if steps.is_interrupted and not evidence.is_worth_something:
        raise KeyboardInterrupt
    if canonical.error_of_forms and evidence.ray_primal is not None:
        steps.append("not claimed to be unbounded: CVXPY changes its quadratic forms by rounding")
        evidence.ray_primal = evidence.primal = None
    return _certificate(canonical, evidence, allowed, steps, time_limit)


def _searched(
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
    for solver in ("CLARABEL", "SCS"):
        gap = evidence.gap(program)
        if steps.is_over or gap <= NEAR or gap < enough or evidence.moved:
            break
        most = MOST_AGAIN if enough == ROUGH and gap < math.inf else math.inf
        found = _solved(program, solver, tolerance, steps, most)
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


def _convex_program(problem: cp.Problem, steps: Steps) -> CanonicalProblem:
    """The conic program of a problem whose quadratic forms are all proven convex."""
    began = time.perf_counter()
    canonical = canonicalize(problem)
    errors = []
    for node, is_term in subexpressions(problem):
        name = type(node).__name__
        if name == "QuadForm" and not is_term:
            errors.append(_error_of_form(node))
        if name == "SuppFuncAtom" and not _has_interior(node._parent):
            raise Refused(
                "CVXPY writes a support function by duality, which may fail: its set is not proven "
                "to have points inside of its second-order cones. State it as a maximum."
            )
    canonical = replace(canonical, error_of_forms=max(errors, default=0.0))
    rows, variables = canonical.program.A.shape
    seconds = time.perf_counter() - began
    sizes = f"{variables} variable{'s' * (variables != 1)} and {rows} row{'s' * (rows != 1)}"
    steps.append(f"conic program of {sizes}, in {seconds:.2g} s")
    return canonical


def _error_of_form(node: Any) -> float:
    """How far CVXPY's factor of the matrix of a quad_form is off; the matrix is proven PSD."""
    P = matrix_of_form(node) * (1.0 if node.is_atom_convex() else -1.0)
    diagonal_shift(scipy.sparse.csc_array(P))
    try:
        unit, factor, _ = decomp_quad(P)
    except ValueError:
        raise Refused("CVXPY does not factor the matrix of a quad_form.") from None
    return error_of_factor(P, float(unit), factor)


def _has_interior(support: Any) -> bool:
    """Whether a point is proven to be in the set of a support function, and inside its balls.

    Then the support function is the optimum of the dual problem as which CVXPY writes it.
    """
    A, b, places = support.conic_repr_of_set()
    inside = np.array(b, dtype=np.float64)
    inside[[rows[0] for rows in places["soc"]]] -= INSIDE * max(1.0, float(np.abs(b).max()))
    balls, nonnegative = [len(rows) for rows in places["soc"]], len(places["nonneg"])
    cones = [Cone("zero", len(b) - nonnegative - sum(balls)), Cone("nonnegative", nonnegative)]
    cones += [Cone("second_order", size) for size in balls]
    n = A.shape[1]
    program = ConicProgram(-A, inside, np.zeros(n), None, tuple(c for c in cones if c.rows))
    return prove_feasible(program, 0.0, Steps()) is not None


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


def _certificate(
    canonical: CanonicalProblem,
    evidence: Evidence,
    tolerance: float,
    steps: Steps,
    time_limit: float | None,
) -> ProblemCertificate:
    """The result; the values of the variables, where they are feasible, may prove more."""
    program = canonical.program
    if evidence.convexified is not None and evidence.is_of_shifted:
        program = replace(program, P=evidence.convexified.program.P)
    infeasible, unbounded = evidence.ray_dual is not None, evidence.ray_primal is not None
    lower, upper = evidence.ends(program)
    if lower > upper:
        raise ArithmeticError(
            f"The lower bound {lower!r} is above the upper bound {upper!r}. This is a defect of "
            "seraph_cvx: please report it with the problem."
        )
    with COMPILING:
        point = judge_point(canonical.problem, tolerance)
    by_point = False
    objective = point.objective if point is not None and point.is_feasible else None
    is_changed = evidence.is_of_shifted or evidence.moved
    is_program = evidence.bounds is None and not is_changed
    if is_program and not isinstance(objective, Unjudged | None):
        low, high = objective
        _refuse_contradiction(low, high, lower, upper, program.maximize)
        by_point = evidence.optimum is None and (low > lower if program.maximize else high < upper)
    if by_point:
        lower, upper = (low, upper) if program.maximize else (lower, high)
    return ProblemCertificate(
        lower,
        upper,
        infeasible,
        unbounded,
        _claim(canonical, evidence, tolerance, lower, upper) + PROVED_BY_POINT * by_point,
        tuple(steps),
        point,
        tolerance,
        program,
        evidence,
        canonical,
        time_limit,
    )


def _refuse_contradiction(
    low: float, high: float, lower: float, upper: float, maximize: bool
) -> None:
    """Raise `Refused` where the objective at a feasible point is better than what is proven."""
    if low > upper if maximize else high < lower:
        raise Refused(
            f"The values of the variables are proven feasible, with an objective in "
            f"[{low!r}, {high!r}], and CVXPY's conic program is proven to have its optimum in "
            f"[{lower!r}, {upper!r}]: it is not the program of this problem. That is a fault of "
            "CVXPY's translation, and no certificate is given. Please report it there."
        )


def _claim(
    canonical: CanonicalProblem, evidence: Evidence, tolerance: float, lower: float, upper: float
) -> str:
    """What is proven, in a sentence."""
    of = "of CVXPY's conic program of this problem, with its doubles taken as they are"
    if canonical.error_of_forms:
        share = 1.05 * canonical.error_of_forms
        of += f", its quadratic forms x'Px to within {share:.1e} sum_i P_ii x_i^2"
    if evidence.convexified is not None and evidence.is_of_shifted:
        share = float(evidence.convexified.shift.max())
        of += f", up to {1.05 * share:.1e} added to the diagonal of P to make it proven convex"
    if evidence.moved:
        ends = evidence.moved.items()
        most = max(abs(end - Fraction(canonical.program.b[i])) for i, end in ends)
        of += (
            f", {len(ends)} right side{'s' * (len(ends) != 1)} moved by at most {up(most):.1e} "
            "since they contradict each other by rounding"
        )
    if evidence.bounds is not None:
        of += ", the given bounds on variables added as constraints"
    if tolerance:
        of += (
            f"{',' * (evidence.bounds is not None)} and its constraints met to within {tolerance!r}"
        )
    if evidence.ray_dual is not None:
        return f"Proved {of}: no point is feasible."
    if evidence.ray_primal is not None:
        return f"Proved {of}: the objective has no bound over the feasible points."
    if math.isfinite(lower) or math.isfinite(upper):
        return f"Proved {of}: the optimal value lies in [{lower!r}, {upper!r}]."
    return (
        f"Nothing is proved {of}: the steps say why. A tolerance, bounds on the variables, "
        "another scale of the data or a constraint that bounds the feasible set may help."
    )


def _moved(b: list[str], moved: dict[int, Fraction] | None) -> list[str]:
    """The right sides in a certificate file, those that were moved as fractions."""
    changed = moved or {}
    for i, text in zip(changed, _written(list(changed.values())), strict=True):
        b[i] = text
    return b


def _in_short(values: Array) -> str:
    return np.array2string(values, precision=3, threshold=8, suppress_small=True)


def _hex(value: float) -> str | None:
    return float(value).hex() if math.isfinite(value) else None


def _written_shift(convex: Convexified | None) -> dict[str, Any]:
    """The shift of P in a certificate file, and the multipliers that bound columns, in order."""
    if convex is None or convex.loss is None:
        return {}
    bounds = [
        {"column": j, "rows": list(rows), "multipliers": [v.hex() for v in rows.values()]}
        for j, rows in convex.implied
    ]
    return {"diagonal_shift": _written(convex.shift), "shift_bounds": bounds}


def _written(values: Any) -> Any:
    """An array, a pair or a sparse matrix as a certificate file has it."""
    if values is None:
        return None
    if isinstance(values, Pair):
        return [list(both) for both in zip(*map(_written, values), strict=True)]
    if isinstance(values, list):
        return [f"{value.numerator:x}/{value.denominator:x}" for value in values]
    if isinstance(values, np.ndarray):
        return [value.hex() for value in values.tolist()]
    entries = values.tocoo()
    row, column = (np.asarray(index).tolist() for index in (entries.row, entries.col))
    return {"row": row, "column": column, "value": _written(entries.data)}
