"""The user's own point, judged as it is: enclosures of the objective and of each violation.

The values of the variables are doubles and taken as such.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import cvxpy as cp
import numpy as np
import scipy
from flint import arb

from .enclosure import (
    Ball,
    NotEnclosed,
    along,
    constant_ball,
    eigenvalue_balls,
    evaluate,
    magnitude,
    monotone,
    norm_of,
)

Interval: TypeAlias = tuple[float, float]


class Unjudged(NamedTuple):
    """The atom for which there is no enclosure, and the value that CVXPY computes in doubles."""

    atom: str
    value: float


WRITTEN = {
    r"\[\[[^\]]*\](?:\s*(?:\[[^\]]*\]|\.\.\.))*\]": "[...]",
    r", None(, False)?\)": ")",
    r"quad_over_lin\((.*?), 1\.0\)": r"sum_squares(\1)",
    r"\bP(norm|ower)(Approx)?\b": r"p\1",
    r"\bGeoMean(Approx)?\b": "geo_mean",
    r"\bQuadForm\b": "quad_form",
    r"\bSum\b": "sum",
    r"\bnormNuc\b": "norm_nuc",
    r"\bPromote\((.*?), \([^)]*\)\)": r"\1",
    r"\breshape\((\w+), \([^)]*\), [FC]\)": r"vec(\1)",
}
"""What CVXPY prints of an expression, as patterns, and what its user wrote instead."""

LONGEST = 72
"""The characters that a message shows of a constraint."""

MOST_SHOWN = 5
"""The lines that a message spends on violations."""


@dataclass(frozen=True)
class PointReport:
    """Intervals for the objective and the violations at the user's point.

    `objective` is an interval, or Unjudged where an atom is not enclosed; `violations` has for
    each constraint its label or text, and the interval of its largest violation (or Unjudged), the
    worst first. Whether `is_feasible` is proven, within the tolerance of constraints that
    `judge_point` was given.
    """

    objective: Interval | Unjudged
    violations: tuple[tuple[str, Interval | Unjudged], ...]
    is_feasible: bool

    @property
    def unjudged(self) -> tuple[str, ...]:
        """The atoms that are not enclosed."""
        found = [self.objective, *(found for _, found in self.violations)]
        return tuple(dict.fromkeys(each.atom for each in found if isinstance(each, Unjudged)))

    @property
    def violation(self) -> float:
        """The largest violation, at most; in CVXPY's doubles where it is not enclosed."""
        return max((f[1] for _, f in self.violations if not math.isnan(f[1])), default=0.0)

    def __str__(self) -> str:
        lines = [f"The point as it is: objective {_in_words(self.objective)}"]
        violated = [v for v in self.violations if v[1][1] > 0.0 or isinstance(v[1], Unjudged)]
        lines += [f"  violation {_in_words(v)}  of  {text}" for text, v in violated[:MOST_SHOWN]]
        if len(violated) > MOST_SHOWN:
            lines.append(f"  and {len(violated) - MOST_SHOWN} more")
        met = len(self.violations) - len(violated)
        return "\n".join([*lines, f"  constraints proven to be met: {met}"])


def as_written(text: str) -> str:
    """CVXPY's text of a constraint, or the name of a class of it, as its user writes it, shortened.

    Classes are named as the functions that make them, defaults are left out, matrices are cut.
    """
    for pattern, word in WRITTEN.items():
        text = re.sub(pattern, word, text)
    text = " ".join(text.split())
    return text if len(text) <= LONGEST else text[: LONGEST - 4] + " ..."


def _in_words(value: Interval | Unjudged) -> str:
    if isinstance(value, Unjudged):
        return f"{value.value:.6g} (not judged: {value.atom} is not enclosed)"
    return "in [{}, {}]".format(*as_proved(*value))


def as_proved(low: float, high: float) -> tuple[str, str]:
    """The ends of an interval, rounded outward, with two digits that tell them apart."""
    if not 0.0 < high - low < math.inf:
        return repr(float(low)), repr(float(high))
    digits = max(3, 2 + math.ceil(math.log10(max(abs(low), abs(high)) / (high - low))))
    ends = zip((low, high), (ROUND_FLOOR, ROUND_CEILING), strict=True)
    contexts = ((end, Context(digits, rounding=way)) for end, way in ends)
    first, last = (str(way.create_decimal(Decimal(end))).lower() for end, way in contexts)
    return first, last


def name_of(place: int, constraint: Any) -> str:
    """The label of a constraint of a problem, or its place among them and its text."""
    if constraint.label is not None:
        return str(constraint.label)
    with np.printoptions(threshold=LONGEST, edgeitems=LONGEST // 2):  # no more is shown
        return f"constraints[{place}]: {as_written(str(constraint))}"


def judge_point(problem: cp.Problem, tolerance: float = 0.0) -> PointReport | None:
    """Enclose the objective and the violations at the variables' values; None without values."""
    if any(variable._value is None for variable in problem.variables()):
        return None
    known: dict[int, Ball] = {}
    tasks: list[tuple[str, Callable[[], Interval], Callable[[], float], float]] = [
        (name_of(place, c), partial(violation, c, known), partial(_in_floats, c), tolerance)
        for place, c in enumerate(problem.constraints)
    ]
    for variable in problem.variables():
        for kind, rule in ATTRIBUTES.items():
            if is_set(variable.attributes[kind]):
                words = "within its bounds" if kind == "bounds" else kind
                work = partial(lambda v, rule: _worst(rule(evaluate(v, known), v)), variable, rule)
                tasks.append((f"{variable.name()} is {words}", work, lambda: math.nan, 0.0))
    judged = [(name, _judged(work, in_floats)) for name, work, in_floats, _ in tasks]
    is_feasible = all(
        not isinstance(found, Unjudged) and found[1] <= allowed
        for (_, found), (*_, allowed) in zip(judged, tasks, strict=True)
    )
    goal = problem.objective.expr
    objective = _judged(
        lambda: _interval(evaluate(goal, known)),
        lambda: _largest(goal.value),
    )
    judged.sort(key=lambda each: -np.nan_to_num(each[1][1], nan=np.inf))
    return PointReport(objective, tuple(judged), is_feasible)


def is_set(value: Any) -> bool:
    """Whether a variable has an attribute, by identity: its value may be an array."""
    return value is not None and value is not False


def _in_floats(constraint: Any) -> float:
    return _largest(constraint.residual)


def _largest(value: Any) -> float:
    """The largest entry of a value; NaN without one, as with variables of inner problems."""
    return math.nan if value is None else float(np.max(value))


def _judged(work: Callable[[], Interval], in_floats: Callable[[], float]) -> Interval | Unjudged:
    with np.errstate(all="ignore"):
        try:
            low, high = work()
        except (NotEnclosed, np.linalg.LinAlgError) as missing:
            return Unjudged(as_written(str(missing)), in_floats())
        if not -np.inf < low <= high < np.inf:
            return Unjudged("a number beyond double precision", in_floats())
    return low, high


def _interval(ball: Ball) -> Interval:
    return float(np.min(ball.low)), float(np.max(ball.high))


def _worst(ball: Ball) -> Interval:
    """The largest positive part of the entries."""
    return float(np.max(ball.low, initial=0.0)), float(np.max(ball.high, initial=0.0))


def violation(constraint: Any, known: dict[int, Ball]) -> Interval:
    """By how much a constraint is violated, in its worst entry."""
    kind = type(constraint).__name__
    first, *others = (evaluate(arg, known) for arg in constraint.args)
    if kind == "SOC":
        axis = constraint.axis if first.mid.size > 1 else None
        norms = along(axis, first.mid.shape, others[0], partial(norm_of, 2.0))
        return _worst(norms.plus(-first))
    if kind in CONES:
        beyond = np.frompyfunc(CONES[kind], 4, 1)
        parameter = getattr(constraint, "alpha", None)
        numbers = (each.numbers for each in (first, *others))
        return _worst(Ball.of(beyond(*numbers, getattr(parameter, "value", 0.0))))
    if kind not in CONSTRAINTS:
        raise NotEnclosed(kind)
    return _worst(CONSTRAINTS[kind](first.plus(-others[0]) if others else first))


CONSTRAINTS: dict[str, Callable[[Ball], Ball]] = {
    **dict.fromkeys(("Equality", "Zero"), magnitude),
    **dict.fromkeys(("Inequality", "NonPos"), lambda x: x),
    "NonNeg": lambda x: -x,
    "PSD": lambda x: -eigenvalue_balls(x),
}
"""Of a constraint, numbers that are at most zero where it holds; but for SOC."""


def _beyond_exponential(x: arb, y: arb, z: arb, _: float) -> arb:
    """How far z is below y exp(x / y), or, if that is less, how far the face y = 0 is."""
    far = abs(y).max(x).max(-z)
    if not y > 0:
        return far if y <= 0 else far.union(arb(0))
    is_beyond_doubles = x / y > 2000  # and FLINT's exponents may end, too
    return far if is_beyond_doubles else far.min(y * (x / y).exp() - z)


def _beyond_power(x: arb, y: arb, z: arb, alpha: float) -> arb:
    """How far |z| is above x^alpha y^(1 - alpha), or x or y below zero."""
    mean = monotone(
        lambda u, v: u ** arb(alpha) * v ** (1 - arb(alpha)), x.max(arb(0)), y.max(arb(0))
    )
    return (abs(z) - mean).max(-x).max(-y)


CONES: dict[str, Callable[[arb, arb, arb, float], arb]] = {
    "ExpCone": _beyond_exponential,
    "PowCone3D": _beyond_power,
}
"""Of three entries and a parameter, a number that is at most zero where they are in the cone."""


def _asymmetry(x: Ball, variable: Any) -> Ball:
    """The sizes of the entries of X - X', or of a complex X less its conjugate transpose."""
    return magnitude(x.plus(-Ball(*(np.swapaxes(part.conj(), -1, -2) for part in x))))


def _beyond_bounds(x: Ball, variable: Any) -> Ball:
    """How far the entries are above their upper bounds, then how far below their lower ones."""
    most = np.finfo(np.float64).max  # as good as no bound
    ends = (getattr(end, "value", end) for end in variable.attributes["bounds"])
    given = (end.toarray() if scipy.sparse.issparse(end) else end for end in ends)
    low, high = (constant_ball(np.clip(end, -most, most)) for end in given)
    above, below = x.plus(-high), low.plus(-x)
    return Ball(*(np.stack(parts) for parts in zip(above, below, strict=True)))


ATTRIBUTES: dict[str, Callable[[Ball, Any], Ball]] = {
    **dict.fromkeys(("nonneg", "pos"), lambda x, variable: -x),
    **dict.fromkeys(("nonpos", "neg"), lambda x, variable: x),
    **dict.fromkeys(("symmetric", "hermitian"), _asymmetry),
    "imag": lambda x, variable: magnitude(Ball(x.mid.real, x.rad)),
    "PSD": lambda x, variable: -eigenvalue_balls(x),
    "NSD": lambda x, variable: eigenvalue_balls(x),
    "diag": lambda x, variable: magnitude(Ball(*(v - np.diag(np.diag(v)) for v in x))),
    "bounds": _beyond_bounds,
}
"""Of each attribute of a variable, numbers that are at most zero where it holds."""
