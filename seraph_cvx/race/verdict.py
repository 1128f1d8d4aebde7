"""What is true of a solver's answer to a problem: its status, value, point and multipliers.

    value        the solver's own, and the objective at its point, against the proven interval
    point        the largest violation of a constraint, enclosed
    multipliers  the least value of the Lagrangian, f(x) + sum_k <y_k, g_k(x)>, over the x with
                 |x - point| <= 1 + |point|: of the right multipliers that is the optimum; it is
                 bounded as any other problem is

An answer agrees where all that came back was judged, and is right to within TOLERANCE, or ten times
the tolerance that was asked for, if that is larger.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np

from ..proof import ProblemCertificate, certify_problem
from ..proof.chord import values_set
from ..proof.point import Interval, PointReport, Unjudged
from .race_table import AGREES, TOLERANCE

WITHOUT_POINT = {
    cp.INFEASIBLE: (True, False),
    cp.UNBOUNDED: (False, True),
    cp.settings.INFEASIBLE_OR_UNBOUNDED: (True, True),
}
"""The statuses that the proof alone judges: whether they may mean infeasible, or unbounded."""


@dataclass(frozen=True)
class Answer:
    """What came back of a solver: its status and value; its point and multipliers, judged.

    It is right if it is off by no more than `tolerance`.
    """

    status: str
    value: float | None = None
    point: PointReport | None = None
    dual_gap: Interval | None = None
    tolerance: float = TOLERANCE


def verdict(certificate: ProblemCertificate, answer: Answer) -> str:
    """Whether an answer agrees with what is proven, contradicts it and how, or is not judged.

    A status that claims nothing, such as that of a limit, has the empty verdict.
    """
    status = answer.status.removesuffix("_inaccurate")
    if status in WITHOUT_POINT:
        return _of_status(certificate, *WITHOUT_POINT[status])
    if status != cp.OPTIMAL:
        return ""
    if certificate.unbounded:
        return "contradicts: the problem is unbounded"
    if answer.point is None:
        return "not judged: no point"
    wrong, unjudged = [], [f"{atom} is not enclosed" for atom in answer.point.unjudged]
    violation = answer.point.violation
    if violation > answer.tolerance:
        wrong.append(f"a constraint is violated by {violation:.1e}")
    if certificate.infeasible:
        wrong = [*wrong, "the problem is infeasible"] if wrong else []
        unjudged.append(f"infeasible, by no more than {answer.tolerance:g} at this point")
    else:
        _judge_value(certificate, answer, wrong, unjudged)
    least, most = answer.dual_gap or (0.0, 0.0)
    if least > answer.tolerance:
        wrong.append(f"its multipliers miss the optimum by {least:.1e}")
    elif most > answer.tolerance:
        unjudged.append("its multipliers prove less, or that is not proven")
    if wrong:
        return f"contradicts: {', '.join(wrong)}"
    return f"not judged: {', '.join(unjudged)}" if unjudged else AGREES


def _of_status(certificate: ProblemCertificate, infeasible: bool, unbounded: bool) -> str:
    """The verdict on a status that comes without a point."""
    if (infeasible and certificate.infeasible) or (unbounded and certificate.unbounded):
        return AGREES
    if certificate.infeasible or certificate.unbounded:
        return f"contradicts: it is {'infeasible' if certificate.infeasible else 'unbounded'}"
    ends = certificate.lower, certificate.upper
    has_point = math.isfinite(ends[0] if certificate.program.maximize else ends[1])
    has_bound = math.isfinite(ends[1] if certificate.program.maximize else ends[0])
    if (has_point or not infeasible) and (has_bound or not unbounded):
        return "contradicts: it has an optimum"
    return "not judged: neither is proven"


def _judge_value(
    certificate: ProblemCertificate, answer: Answer, wrong: list[str], unjudged: list[str]
) -> None:
    """Add what is wrong, or open, of the solver's value and of the objective at its point."""
    point = answer.point
    if point is None or isinstance(point.objective, Unjudged):
        return
    values = {"its point has": point.objective}
    if answer.value is not None:
        values["it says"] = (answer.value, answer.value)
    for words, (low, high) in values.items():
        if (
            _relative(max(low - certificate.upper, certificate.lower - high), certificate)
            > answer.tolerance
        ):
            wrong.append(f"{words} {0.5 * low + 0.5 * high:.6g}")
        elif true_gap(certificate, low, high) > answer.tolerance:
            unjudged.append(f"the optimum is only known to {certificate.relative_gap:.1e}")


def true_gap(certificate: ProblemCertificate, low: float, high: float) -> float:
    """How far a value is from the optimum at most, relative to it (or to TOLERANCE, if larger)."""
    return _relative(max(high - certificate.lower, certificate.upper - low), certificate)


def _relative(distance: float, certificate: ProblemCertificate) -> float:
    optimum = max(abs(certificate.lower), abs(certificate.upper), TOLERANCE)
    return distance / optimum if math.isfinite(optimum) else math.inf


def dual_gap(
    problem: cp.Problem, certificate: ProblemCertificate, multipliers: Sequence[Any]
) -> Interval | None:
    """By how much the multipliers of a point miss the optimum, relatively: at least, at most.

    The variables have the values of the point. Multipliers outside of the dual cones count with
    their distance from it. None where multipliers are missing, or nothing is proven.
    """
    parts = [part for y in multipliers for part in (y if isinstance(y, list) else [y])]
    if any(part is None for part in parts) or not math.isfinite(certificate.relative_gap):
        return None
    sign = -1.0 if certificate.program.maximize else 1.0
    lagrangian, outside = sign * problem.objective.expr, 0.0
    for constraint, y in zip(problem.constraints, multipliers, strict=True):
        term, distance = _term(constraint, y)
        lagrangian, outside = lagrangian + term, max(outside, distance)
    near = [cp.abs(x - x.value) <= 1.0 + np.abs(x.value).max() for x in problem.variables()]
    try:
        proven = certify_problem(cp.Problem(cp.Minimize(lagrangian), near))
    except (ValueError, TypeError):
        return None
    ends = sorted((sign * certificate.lower, sign * certificate.upper))
    gaps = ends[0] - proven.upper, ends[1] - proven.lower
    least, most = (max(outside, _relative(gap, certificate)) for gap in gaps)
    return least, most


def _term(constraint: Any, y: Any) -> tuple[Any, float]:
    """The term of a constraint in the Lagrangian, and how far y is from the dual cone."""
    kind = type(constraint).__name__
    if kind in ("Equality", "Zero", "Inequality", "NonPos"):
        outside = 0.0 if kind in ("Equality", "Zero") else max(0.0, -float(np.min(y)))
        y = y if kind in ("Equality", "Zero") else np.maximum(y, 0.0)
        expression = constraint.expr if hasattr(constraint, "expr") else constraint.args[0]
        return _inner(y, expression), outside
    parts = y if isinstance(y, list) else [y]
    terms = [_inner(part, arg) for part, arg in zip(parts, constraint.args, strict=True)]
    with values_set(constraint.dual_variables, parts):
        return -sum(terms), float(np.max(constraint.dual_residual))


def _inner(y: Any, expression: Any) -> Any:
    """The inner product of numbers and an expression, its real part if they are complex."""
    y = np.reshape(y, expression.shape, order="F")
    product = cp.sum(cp.multiply(np.conj(y), expression))
    return product if product.is_real() else cp.real(product)
