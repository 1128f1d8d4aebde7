"""`certify_problem`: proven bounds on the optimum of any continuous DCP problem of CVXPY."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import cvxpy as cp
import numpy as np
import scipy
from numpy.typing import ArrayLike

from ...numerics.checks import counted
from ...numerics.rounding import UNIT, down, up
from .arithmetic import TINY, Array, Pair
from .exact import is_proven_psd
from .lower_bound import DualProof, lower_bound
from .point import PointReport, judge_point
from .program import CanonicalProblem, ConicProgram, Refused, canonicalize, subexpressions
from .rays import prove_feasible, prove_infeasible, prove_ray
from .solve import Start, cached_start, solve
from .upper_bound import PrimalProof, relaxed, unrelaxed, upper_bound

LINEAR = ("AddExpression", "NegExpression", "MulExpression", "multiply", "DivExpression", "Sum")

DROPPED = 1e-9
"""Eigenvalues of the matrix of a quad_form that CVXPY may drop, relative to the largest."""

NEAR = 1e-6
"""A relative gap that is good enough not to solve the problem again."""

TIGHT = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-13)
"""Tolerances for a second start, which Clarabel cannot always reach."""


@dataclass(frozen=True, eq=False)
class ProblemCertificate:
    """What is proven of a problem: its optimum lies in [lower, upper].

    Attributes
    ----------
    lower, upper : float
        Bounds on the optimal value, in the problem's own sense and units; infinite where nothing
        is proven. Of an infeasible or unbounded problem both are its infinite value.
    infeasible, unbounded : bool
        Whether it is proven that no point is feasible, or that the objective has no bound.
    claim : str
        One sentence: what exactly is proven.
    steps : tuple of str
        What was solved, which rung of the ladder gave each bound, and how long it took.
    point : PointReport or None
        The values that the problem's variables have, judged as they are.
    tolerance : float
        Constraints count as met to within this; zero if they are taken as they are.
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

    @property
    def relative_gap(self) -> float:
        """The gap relative to max(1, |upper|, |lower|), rounded up; infinite if one is missing."""
        if not (math.isfinite(self.lower) and math.isfinite(self.upper)):
            return 0.0 if self.infeasible or self.unbounded else math.inf
        gap = self.upper - self.lower
        size = max(1.0, abs(self.upper), abs(self.lower))
        return math.nextafter(math.nextafter(gap, math.inf) / size, math.inf) if gap else 0.0

    def to_json(self) -> str:
        """The conic program and the numbers of the proof, for `check_certificate`."""
        program, proof, bounds = self.program, self.evidence, self.evidence.bounds
        dual = proof.dual
        ends = {"lower": self.lower, "upper": self.upper}
        written = {
            "format": "seraph_cvx conic certificate",
            "version": 1,
            "program": {
                "variables": len(program.c),
                "rows": len(program.b),
                "A": _written(program.A),
                "b": _written(program.b),
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
            and {"y": _written(dual.y), "h": _written(dual.h), "zero_rows": dual.zero_rows},
            "primal": proof.primal and {"x": _written(proof.primal.x)},
            "ray_dual": proof.ray_dual and {"y": _written(proof.ray_dual)},
            "ray_primal": proof.ray_primal and {"x": _written(proof.ray_primal)},
            "variable_bounds": None if bounds is None else [_hex(B) for B in bounds.tolist()],
        }
        return json.dumps(written)

    def __str__(self) -> str:
        lines = [self.claim]
        if not (self.infeasible or self.unbounded):
            lines += [f"  lower bound   {self.lower!r}", f"  upper bound   {self.upper!r}"]
            lines += [f"  relative gap  {self.relative_gap:.1e}"]
        if self.point is not None:
            lines += ["", str(self.point)]
        return "\n".join([*lines, "", *(f"- {step}" for step in self.steps)])

    def _repr_html_(self) -> str:
        from ...display.notebook import Tone, card, tone_of_gap

        settled = self.infeasible or self.unbounded
        verdict = f"relative gap {self.relative_gap:.1e}"
        if settled:
            verdict = "infeasible" if self.infeasible else "unbounded"
        return card(
            "ProblemCertificate",
            verdict,
            Tone.PLAIN if settled else tone_of_gap(self.relative_gap),
            self.claim,
            notes=self.steps,
            facts={"lower bound": self.lower, "upper bound": self.upper}
            | ({} if self.point is None else self.point.facts()),
        )


@dataclass
class Evidence:
    """The numbers from which the bounds of a conic program were proven."""

    dual: DualProof | None = None
    primal: PrimalProof | None = None
    ray_dual: Pair | None = None
    ray_primal: Pair | None = None
    bounds: Array | None = None

    @property
    def gap(self) -> float:
        """The relative gap of the two bounds of the conic program."""
        if self.ray_dual is not None or self.ray_primal is not None:
            return 0.0
        if self.dual is None or self.primal is None:
            return math.inf
        size = max(1.0, abs(self.primal.value), abs(self.dual.value))
        return (self.primal.value - self.dual.value) / size

    def with_best_of(self, other: Evidence) -> Evidence:
        """The better bounds of both."""
        if self.dual and (other.dual is None or other.dual.value < self.dual.value):
            other.dual, other.bounds = self.dual, self.bounds
        if self.primal and (other.primal is None or other.primal.value > self.primal.value):
            other.primal = self.primal
        return other


def certify_problem(
    problem: cp.Problem,
    objective: Any = None,
    *,
    tolerance: float | None = None,
    bounds: Mapping[cp.Variable, ArrayLike] | None = None,
) -> ProblemCertificate:
    """Bound the optimum of a continuous DCP problem from both sides, trusting no solver.

    CVXPY's conic program of the problem is taken as the doubles it is. Whatever solver answered,
    its multipliers and its point are only where proofs start; an unsolved problem is solved first.

    Parameters
    ----------
    problem : cvxpy.Problem
        A DCP problem with continuous variables; its parameters have values.
    objective : optional
        Not used: calls that name the M-step which a problem was made from go on to work.
    tolerance : float, optional
        Certify the problem in which every equation may be off by this much, and every slack s
        needs only s + tolerance * e in its cone, e = 1, (1, 0, ..., 0), the identity,
        (-1, 1, 1) or (1, ..., 1, 0) for a nonnegative, second-order, PSD, exponential or power
        cone.
    bounds : mapping of variables to arrays, optional
        Bounds B on absolute values, |x| <= B, that are known to hold for the points of interest;
        used where no lower bound is proven otherwise, and then part of the claim.

    Returns
    -------
    ProblemCertificate
        The bounds, and how they were proven.

    Raises
    ------
    ValueError
        Where the problem has integer variables, is not DCP, or has an atom of which CVXPY's conic
        program is an approximation; with the name and a cure.

    Examples
    --------
    >>> import cvxpy as cp
    >>> from seraph_cvx.certificate.conic import certify_problem
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
    steps: list[str] = []
    canonical = _convex_program(problem, steps)
    program = canonical.program
    columns = canonical.column_bounds(bounds)
    allowed = float(tolerance or 0.0)
    start = None if allowed else cached_start(problem, program)
    evidence = Evidence()
    if start is not None:
        steps.append(f"started from the answer of {start.solver}")
        evidence = _prove(program, start, allowed, columns, steps)

    def proven_by(solver: str, **options: float) -> Evidence:
        try:
            found = solve(relaxed(program, allowed), solver, **options)
        except ValueError as error:
            steps.append(f"{solver} cannot solve it: {error}")
            return evidence
        found = unrelaxed(program, found)
        steps.append(f"solved with {solver} in {found.seconds:.2g} s: {found.status}")
        return evidence.with_best_of(_prove(program, found, allowed, columns, steps))

    if evidence.gap > NEAR:
        evidence = proven_by("CLARABEL")
    if NEAR < evidence.gap < math.inf and not allowed and columns is None:
        evidence = proven_by("CLARABEL", **TIGHT)
    if evidence.gap == math.inf:
        evidence = proven_by("SCS")
    return _certificate(canonical, evidence, allowed, steps)


def _convex_program(problem: cp.Problem, steps: list[str]) -> CanonicalProblem:
    """The conic program of a problem whose quadratic objective, if any, is proven convex."""
    began = time.perf_counter()
    canonical = canonicalize(problem)
    P = canonical.program.P
    if P is not None and not is_proven_psd(P):
        raise Refused(
            "The quadratic form of the objective is not proven PSD: rounding may have made it "
            "indefinite. Write x'Px with P = F'F as cp.sum_squares(F @ x)."
        )
    exact_forms = set(map(id, _quadratic_terms(problem.objective.expr)))
    for node in subexpressions(problem):
        is_form = type(node).__name__ == "QuadForm" and id(node) not in exact_forms
        if is_form and not _is_factored_to_rounding(node.args[1]):
            raise Refused(
                "CVXPY factors the matrix P of a quad_form that is no term of the objective, and "
                "drops its small eigenvalues: write it as cp.sum_squares(F @ x), P = F'F."
            )
    rows, variables = canonical.program.A.shape
    seconds = time.perf_counter() - began
    sizes = f"{counted(variables, 'variable')} and {counted(rows, 'row')}"
    steps.append(f"conic program of {sizes}, in {seconds:.2g} s")
    return canonical


def _quadratic_terms(expression: Any) -> Iterator[Any]:
    """The quadratic forms that are terms of an objective: their matrices are taken as they are."""
    if type(expression).__name__ == "QuadForm":
        yield expression
    elif type(expression).__name__ in LINEAR:
        for arg in expression.args:
            yield from _quadratic_terms(arg)


def _is_factored_to_rounding(matrix: Any) -> bool:
    """Whether CVXPY's factor F of a constant matrix has FF' = P, or -P, to rounding."""
    value = matrix.value
    P = np.asarray(value.toarray() if scipy.sparse.issparse(value) else value, dtype=np.float64)
    if not (is_proven_psd(scipy.sparse.csc_array(P)) or is_proven_psd(scipy.sparse.csc_array(-P))):
        return False
    shares = np.abs(np.linalg.eigvalsh(P))
    shares /= max(float(shares.max(initial=0.0)), TINY)
    return not np.any((shares > 16.0 * len(P) * UNIT) & (shares < DROPPED))


def _prove(
    program: ConicProgram,
    start: Start,
    tolerance: float,
    bounds: Array | None,
    steps: list[str],
) -> Evidence:
    """All that can be proven from a start."""
    began = time.perf_counter()
    evidence = Evidence()
    doubtful = not start.is_finite or "nfeasible" in start.status
    if start.is_finite and (not doubtful or bounds is not None):
        evidence.dual = lower_bound(program, start, bounds, steps, tolerance=tolerance)
        if evidence.dual is not None and evidence.dual.needs_bounds:
            evidence.bounds = bounds
    if not doubtful:
        evidence.primal = upper_bound(program, start, tolerance, steps)
    if not tolerance and evidence.primal is None:
        evidence.ray_dual = prove_infeasible(program, start, steps)
    if evidence.ray_dual is None and evidence.dual is None and bounds is None:
        evidence.ray_primal = prove_ray(program, steps)
        if evidence.ray_primal is not None and evidence.primal is None:
            x = prove_feasible(program, tolerance, steps)
            evidence.primal = None if x is None else PrimalProof(math.inf, x)
            if x is None:
                evidence.ray_primal = None
                steps.append("a ray of descent is proven, a feasible point is not")
    steps.append(f"proofs took {time.perf_counter() - began:.2g} s")
    return evidence


def _certificate(
    canonical: CanonicalProblem, evidence: Evidence, tolerance: float, steps: list[str]
) -> ProblemCertificate:
    """The result in the user's sense and units, constant and sign added exactly."""
    program, offset = canonical.program, Fraction(canonical.program.offset)
    infeasible, unbounded = evidence.ray_dual is not None, evidence.ray_primal is not None
    lower = evidence.dual.value if evidence.dual else -math.inf
    upper = evidence.primal.value if evidence.primal else math.inf
    if infeasible or unbounded:
        lower = upper = math.inf if infeasible else -math.inf
    if lower > upper and evidence.bounds is None:
        raise ArithmeticError(
            f"The lower bound {lower!r} is above the upper bound {upper!r}. This is a defect of "
            "seraph_cvx: please report it with the problem."
        )
    if program.maximize:
        lower, upper = -upper, -lower
    lower = down(Fraction(lower) + offset) if math.isfinite(lower) else lower
    upper = up(Fraction(upper) + offset) if math.isfinite(upper) else upper
    of = "of CVXPY's conic program of this problem, with its doubles taken as they are"
    if tolerance:
        of += f" and its constraints met to within {tolerance!r}"
    if infeasible:
        claim = f"Proved {of}: no point is feasible."
    elif unbounded:
        claim = f"Proved {of}: the objective has no bound over the feasible points."
    elif evidence.bounds is not None:
        value, other = (upper, lower) if program.maximize else (lower, upper)
        claim = (
            f"Proved {of}: no point within the given bounds on variables has a value better than "
            f"{value!r}; the optimal value is not worse than {other!r}."
        )
    elif math.isfinite(lower) or math.isfinite(upper):
        claim = f"Proved {of}: the optimal value lies in [{lower!r}, {upper!r}]."
    else:
        claim = (
            f"Nothing is proved {of}: the steps say why. A tolerance, bounds on the variables, "
            "another scale of the data or a constraint that bounds the feasible set may help."
        )
    point = judge_point(canonical.problem)
    return ProblemCertificate(
        lower,
        upper,
        infeasible,
        unbounded,
        claim,
        tuple(steps),
        point,
        tolerance,
        program,
        evidence,
    )


def _hex(value: float) -> str | None:
    return float(value).hex() if math.isfinite(value) else None


def _written(values: Any) -> Any:
    """An array, a pair or a sparse matrix as a certificate file has it."""
    if values is None:
        return None
    if isinstance(values, Pair):
        return [list(both) for both in zip(*map(_written, values), strict=True)]
    if isinstance(values, np.ndarray):
        return [value.hex() for value in values.tolist()]
    entries = values.tocoo()
    row, column = (np.asarray(index).tolist() for index in (entries.row, entries.col))
    return {"row": row, "column": column, "value": _written(entries.data)}
