"""`certify_problem`: proven bounds on the optimum of any continuous DCP problem of CVXPY."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import cvxpy as cp
import numpy as np
import scipy
from cvxpy.atoms.quad_form import decomp_quad
from numpy.typing import ArrayLike

from .conflict import Conflict, find_conflict
from .point import Unjudged, judge_point
from .problem_certificate import ProblemCertificate, claim
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
from .quadratic import diagonal_shift, error_of_factor
from .rays import prove_feasible
from .search import Evidence, searched
from .start import known_start
from .steps import Steps

INSIDE = 2.0**-20
"""How deep, relatively, a point of a set has to be inside of its second-order cones."""

PROVED_BY_POINT = " Of these bounds the values of the variables, proven feasible, prove one."


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
        evidence = replace(searched(boxed, None, allowed, steps, is_whole=False), bounds=columns)
        if any(i >= len(canonical.program.b) for i in evidence.moved or ()):
            steps.append("nothing is claimed: the given bounds contradict the constraints")
            evidence = Evidence(bounds=columns)
    if evidence.dual is None:
        whole = searched(canonical.program, start, allowed, steps)
        evidence = whole if columns is None or whole.ray_dual is not None else evidence
    if steps.is_interrupted and not evidence.is_worth_something:
        raise KeyboardInterrupt
    if canonical.error_of_forms and evidence.ray_primal is not None:
        steps.append("not claimed to be unbounded: CVXPY changes its quadratic forms by rounding")
        evidence.ray_primal = evidence.primal = None
    return _certificate(canonical, evidence, allowed, steps, time_limit)


def _certificate(
    canonical: CanonicalProblem,
    evidence: Evidence,
    tolerance: float,
    steps: Steps,
    time_limit: float | None,
) -> ProblemCertificate:
    """The result; the values of the variables, where they are feasible, may prove more."""
    program, ray = canonical.program, evidence.ray_dual
    if evidence.convexified is not None and evidence.is_of_shifted:
        program = replace(program, P=evidence.convexified.program.P)
    infeasible, unbounded = ray is not None, evidence.ray_primal is not None
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
        claim(canonical, evidence, tolerance, lower, upper) + PROVED_BY_POINT * by_point,
        tuple(steps),
        point,
        tolerance,
        program,
        evidence,
        canonical,
        partial(find_conflict, canonical, ray, certify_problem, time_limit)
        if ray is not None
        else Conflict,
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
