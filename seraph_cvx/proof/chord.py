"""Chords that refute convexity: two points, and a midpoint where the function is above their mean.

Points are drawn at random, with few binary digits so that midpoints are exact; the values at the
chord that is shown are enclosed, so that a refutation is a proof.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .arithmetic import Array
from .enclosure import RULES, NotEnclosed, evaluate
from .point import is_set, violation
from .program import COMPILING, subexpressions

TRIES = 300
UNITS = 2.0**-6
"""Entries of a point are multiples of this, those of a matrix that has to be PSD of its square."""

ATTRIBUTES: dict[str, Callable[[Array], Array]] = {
    **dict.fromkeys(("nonneg", "pos"), np.abs),
    **dict.fromkeys(("nonpos", "neg"), lambda x: -np.abs(x)),
    "symmetric": lambda x: x + x.T,
    "PSD": lambda x: x @ x.T,
    "NSD": lambda x: -(x @ x.T),
    "diag": lambda x: np.diag(np.diag(x)),
}

Values = tuple[Array, ...]
Ends = tuple[Values, Values]


@dataclass(frozen=True)
class Chord:
    """Two points, and what is wrong between them.

    Attributes
    ----------
    names : tuple of str
        The variables.
    ends : pair of tuples of arrays
        The values of the variables at the two points.
    words : str
        What is proven at them and at their midpoint.
    """

    names: tuple[str, ...]
    ends: Ends
    words: str

    def __str__(self) -> str:
        return f"{self.words}, between {' and '.join(map(self._point, self.ends))}"

    def _point(self, end: Values) -> str:
        named = zip(self.names, end, strict=True)
        return ", ".join(f"{name} = {np.asarray(value).tolist()}" for name, value in named)


def refute_function(expression: Any, sign: float, constraints: Sequence[Any] = ()) -> Chord | None:
    """A chord on which sign * expression is not convex, at feasible points if some are found."""
    variables, found = expression.variables(), []
    inner = (node for node, _ in subexpressions(expression) if node.args)
    if any(type(node).__name__ not in RULES for node in inner):
        return None  # no value would be enclosed

    def judged(ends: Ends) -> str:
        balls = (_at(e, variables, partial(evaluate, expression, {})) for e in _three(ends))
        x, y, middle = (sign * np.array([ball.low.min(), ball.high.max()]) for ball in balls)
        mean, value = 0.5 * x.max() + 0.5 * y.max(), middle.min()
        if not value > mean:
            return ""
        return f"at the midpoint it is {sign * value:.6g}, at the ends {sign * mean:.6g} on average"

    for ends in _pairs(variables):
        values = [_at(end, variables, lambda: expression.value) for end in _three(ends)]
        x, y, middle = (np.nan if v is None else sign * float(np.ravel(v)[0]) for v in values)
        excess = (middle - 0.5 * (x + y)) / (1.0 + abs(x) + abs(y))
        if 1e-6 < excess < np.inf:
            found.append((_feasible(constraints, variables, ends), excess, ends))
    for feasible, _, ends in sorted(found, key=lambda entry: entry[:2], reverse=True)[:5]:
        words = _words(judged, ends)
        if words:
            where = "" if feasible or not constraints else " (points that are not all feasible)"
            kind = "convex" if sign > 0.0 else "concave"
            return _chord(variables, ends, f"not {kind}: {words}{where}")
    return None


def refute_set(constraint: Any) -> Chord | None:
    """A chord between points that satisfy a constraint, whose midpoint does not."""
    variables = constraint.variables()

    def judged(ends: Ends) -> str:
        x, y, middle = (_at(e, variables, partial(violation, constraint, {})) for e in _three(ends))
        if x[1] > 0.0 or y[1] > 0.0 or not middle[0] > 0.0:
            return ""
        return f"both ends satisfy it, the midpoint violates it by {middle[0]:.6g}"

    for ends in _pairs(variables):
        words = _words(judged, ends)
        if words:
            return _chord(variables, ends, f"not a convex set: {words}")
    return None


def _chord(variables: Sequence[Any], ends: Ends, words: str) -> Chord:
    return Chord(tuple(variable.name() for variable in variables), ends, words)


def _words(judge: Callable[[Ends], str], ends: Ends) -> str:
    try:
        return judge(ends)
    except NotEnclosed:
        return ""


def _pairs(variables: Sequence[Any]) -> Iterator[Ends]:
    """Pairs of points of all sizes that have the variables' attributes; none if one is unknown."""
    rng = np.random.default_rng(0)
    wanted = [[name for name, value in v.attributes.items() if is_set(value)] for v in variables]
    if not all(name in ATTRIBUTES for names in wanted for name in names):
        return
    for _ in range(TRIES):
        size = 2.0 ** rng.integers(-4, 5)
        yield _drawn(rng, size, variables, wanted), _drawn(rng, size, variables, wanted)


def _drawn(
    rng: np.random.Generator, size: float, variables: Sequence[Any], wanted: list[list[str]]
) -> Values:
    point = []
    for variable, names in zip(variables, wanted, strict=True):
        value = UNITS * np.round(rng.normal(size=variable.shape) * size / UNITS)
        for name in names:
            value = ATTRIBUTES[name](value)
        point.append(np.asarray(value))
    return tuple(point)


def _three(ends: Ends) -> tuple[Values, Values, Values]:
    """The ends of a chord and its midpoint."""
    return *ends, tuple(0.5 * (a + b) for a, b in zip(*ends, strict=True))


@contextmanager
def values_set(variables: Sequence[Any], values: Sequence[Any]) -> Iterator[None]:
    """A context in which variables have these values, for this thread alone."""
    with COMPILING:
        kept = [variable.value for variable in variables]
        try:
            for variable, value in zip(variables, values, strict=True):
                variable.save_value(value)
            yield
        finally:
            for variable, value in zip(variables, kept, strict=True):
                variable.save_value(value)


def _at(values: Values, variables: Sequence[Any], function: Callable[[], Any]) -> Any:
    """What a function without arguments returns where the variables have these values."""
    with values_set(variables, values), np.errstate(all="ignore"):
        return function()


def _feasible(constraints: Sequence[Any], variables: Sequence[Any], ends: Ends) -> bool:
    """Whether both ends satisfy the constraints; not where these have other variables."""
    known = {variable.id for variable in variables}
    if any(variable.id not in known for c in constraints for variable in c.variables()):
        return False
    each = [(end, partial(violation, c, {})) for c in constraints for end in ends]
    try:
        return all(_at(end, variables, work)[1] <= 0.0 for end, work in each)
    except NotEnclosed:
        return False
