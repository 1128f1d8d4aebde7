"""The user's own point, judged as it is: enclosures of the objective and of each violation.

The values of the variables are doubles and taken as such. The expression tree is evaluated atom by
atom on balls, a midpoint and a radius for each entry, with every rounding error in the radius. An
atom without a rule here is named, and what contains it is not enclosed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
import scipy

from ...numerics.checks import FloatArray
from ...numerics.rounding import FUNCTION_ERROR, UNIT, gamma

# Beyond the largest share of a radius that is lost to rounding in computing the radius itself.
WIDER = 1.0 + 2.0**-20
TINY = 2.0**-1000


class NotEnclosed(Exception):
    """An atom that has no rule."""


class Ball(NamedTuple):
    """Arrays of real numbers, each within a radius of a midpoint."""

    mid: FloatArray
    rad: FloatArray

    @property
    def low(self) -> FloatArray:
        """Lower ends."""
        return np.nextafter(self.mid - self.rad, -np.inf) if np.any(self.rad) else self.mid

    @property
    def high(self) -> FloatArray:
        """Upper ends."""
        return np.nextafter(self.mid + self.rad, np.inf) if np.any(self.rad) else self.mid


def between(low: FloatArray, high: FloatArray, roundings: float = 2.0) -> Ball:
    """The ball of intervals whose ends are off by some roundings."""
    mid = 0.5 * low + 0.5 * high
    size = np.maximum(np.abs(low), np.abs(high))
    rad = np.maximum(high - mid, mid - low) + (roundings + 4.0) * UNIT * size + TINY
    return Ball(mid, np.asarray(rad) * WIDER)


@dataclass(frozen=True)
class PointReport:
    """Intervals for the objective and the violations at the user's point.

    `objective` is an interval, or the name of an atom that is not enclosed; `violations` has for
    each constraint its text and the interval of its largest violation (or that name).
    """

    objective: tuple[float, float] | str
    violations: tuple[tuple[str, tuple[float, float] | str], ...]

    def facts(self) -> dict[str, str]:
        """What a card shows."""
        known = [v for _, v in self.violations if not isinstance(v, str)]
        worst = max((high for _, high in known), default=0.0)
        missing = len(self.violations) - len(known)
        return {
            "objective at the point": _in_words(self.objective),
            "largest violation": f"at most {worst:.3g}"
            + (f"; {missing} not enclosed" if missing else ""),
        }

    def __str__(self) -> str:
        lines = [f"The point as it is: objective {_in_words(self.objective)}"]
        lines += [f"  violation {_in_words(v)}  of  {text}" for text, v in self.violations]
        return "\n".join(lines)


def _in_words(value: tuple[float, float] | str) -> str:
    return (
        f"not enclosed: {value}" if isinstance(value, str) else f"in [{value[0]!r}, {value[1]!r}]"
    )


def judge_point(problem: cp.Problem) -> PointReport | None:
    """Enclose the objective and the violations at the variables' values; None without values."""
    if any(variable.value is None for variable in problem.variables()):
        return None
    known: dict[int, Ball] = {}
    with np.errstate(all="ignore"):
        objective = _judged(lambda: _interval(evaluate(problem.objective.expr, known)))
        violations = [
            (str(c), _judged(lambda c=c: _violation(c, known))) for c in problem.constraints
        ]
        for variable in problem.variables():
            name, value = (
                variable.name(),
                Ball(np.asarray(variable.value), np.zeros(variable.shape)),
            )
            for sign, kinds in ((-1.0, ("nonneg", "pos")), (1.0, ("nonpos", "neg"))):
                if any(variable.attributes[kind] for kind in kinds):
                    found = _worst(Ball(sign * value.mid, value.rad))
                    violations.append((f"{name} is {kinds[0]}", found))
            if variable.attributes["PSD"] or variable.attributes["NSD"]:
                sign = 1.0 if variable.attributes["PSD"] else -1.0
                eigenvalues = eigenvalue_balls(Ball(sign * value.mid, value.rad))
                violations.append((f"{name} is semidefinite", _worst(_negated(eigenvalues))))
    return PointReport(objective, tuple(violations))


def _judged(work: Callable[[], tuple[float, float]]) -> tuple[float, float] | str:
    try:
        low, high = work()
    except NotEnclosed as missing:
        return str(missing)
    return (low, high) if low <= high else "not finite"


def _interval(ball: Ball) -> tuple[float, float]:
    return float(np.min(ball.low)), float(np.max(ball.high))


def _worst(ball: Ball) -> tuple[float, float]:
    """The largest positive part of the entries."""
    low, high = np.max(ball.low, initial=0.0), np.max(ball.high, initial=0.0)
    return float(low), float(high)


def _violation(constraint: Any, known: dict[int, Ball]) -> tuple[float, float]:
    """By how much a constraint is violated, in its worst entry."""
    kind = type(constraint).__name__
    arguments = [evaluate(arg, known) for arg in constraint.args]
    if kind in ("Equality", "Zero"):
        gap = arguments[0] if kind == "Zero" else _plus(arguments[0], _negated(arguments[1]))
        return _worst(_magnitude(gap))
    if kind == "Inequality":
        return _worst(_plus(arguments[0], _negated(arguments[1])))
    if kind in ("NonNeg", "NonPos"):
        return _worst(_negated(arguments[0]) if kind == "NonNeg" else arguments[0])
    if kind == "PSD" and arguments[0].mid.ndim == 2:
        halves = [Ball(0.5 * b.mid, 0.5 * b.rad) for b in (arguments[0], _transposed(arguments[0]))]
        return _worst(_negated(eigenvalue_balls(_plus(*halves))))
    if kind == "SOC" and arguments[0].mid.size == 1:
        length = _norm(arguments[1], 2.0)
        return _worst(_plus(length, _negated(Ball(*(np.ravel(v)[0] for v in arguments[0])))))
    raise NotEnclosed(kind)


def _plus(a: Ball, b: Ball) -> Ball:
    mid = a.mid + b.mid
    return Ball(mid, (a.rad + b.rad + UNIT * np.abs(mid)) * WIDER)


def _negated(a: Ball) -> Ball:
    return Ball(-a.mid, a.rad)


def _transposed(a: Ball) -> Ball:
    return Ball(a.mid.T, a.rad.T)


def _magnitude(a: Ball) -> Ball:
    low = np.maximum(np.maximum(a.low, -a.high), 0.0)
    return between(low, np.maximum(np.abs(a.low), np.abs(a.high)))


def _norm(a: Ball, p: float) -> Ball:
    """The p-norm of all entries."""
    size = _magnitude(a)
    ends = (np.linalg.norm(np.ravel(v), p) for v in (np.maximum(size.low, 0.0), size.high))
    return between(*ends, roundings=size.mid.size + 4.0 * FUNCTION_ERROR)


# Atoms whose entries are sums of entries of their arguments, with coefficients 1 (or -1).
SUMS = {
    "AddExpression", "NegExpression", "Sum", "reshape", "index", "special_index", "Hstack",
    "Vstack", "Concatenate", "transpose", "trace", "diag_vec", "diag_mat", "upper_tri", "Promote",
    "broadcast_to", "cumsum", "vec", "bmat", "SymmetricWrap", "psd_wrap", "nonneg_wrap",
    "symmetric_wrap", "PsdWrap", "Wrap",
}  # fmt: skip

# Atoms that are linear in each of two arguments.
PRODUCTS = {"MulExpression", "multiply", "kron", "conv", "convolve", "outer"}

# Increasing functions of every entry: relative roundings beyond a few for each entry.
INCREASING = {
    "exp", "log", "log1p", "logistic", "max", "min", "maximum", "minimum", "sum_largest",
    "cummax", "GeoMean", "GeoMeanApprox",
}  # fmt: skip


def evaluate(expression: Any, known: dict[int, Ball]) -> Ball:
    """Enclose an expression at the values of its variables."""
    if id(expression) not in known:
        known[id(expression)] = _evaluate(expression, known)
    return known[id(expression)]


def _evaluate(expression: Any, known: dict[int, Ball]) -> Ball:
    name = type(expression).__name__
    if not expression.args:
        value = expression.value
        value = value.toarray() if scipy.sparse.issparse(value) else np.asarray(value)
        if np.iscomplexobj(value):
            raise NotEnclosed("complex numbers")
        return Ball(value.astype(np.float64), np.zeros(value.shape))
    if name not in SUMS | PRODUCTS | INCREASING | set(RULES):
        raise NotEnclosed(name)
    arguments = [evaluate(arg, known) for arg in expression.args]

    def numeric(values: list[FloatArray]) -> FloatArray:
        return np.asarray(expression.numeric(values), dtype=np.float64)

    terms = sum(a.mid.size for a in arguments) + 8
    mids, rads = [a.mid for a in arguments], [a.rad for a in arguments]
    sizes = [np.abs(m) for m in mids]
    if name in SUMS:
        error = np.abs(numeric(rads)) + gamma(terms) * np.abs(numeric(sizes))
        return Ball(numeric(mids), error * WIDER + TINY)
    if name in PRODUCTS:
        spread = numeric([sizes[0] + rads[0], rads[1]]) + numeric([rads[0], sizes[1]])
        return Ball(numeric(mids), (spread + gamma(terms) * numeric(sizes)) * WIDER + TINY)
    if name in INCREASING:
        ends = numeric([a.low for a in arguments]), numeric([a.high for a in arguments])
        return between(*ends, roundings=terms + 4.0 * FUNCTION_ERROR)
    return RULES[name](expression, arguments)


def _power(expression: Any, arguments: list[Ball]) -> Ball:
    p, (x,) = float(expression.p.value), arguments
    if p != round(p) or p < 0.0:
        if not (x.low >= 0.0).all():
            raise NotEnclosed("power of a number that may be negative")
        ends = np.sort([x.low**p, x.high**p], axis=0)
        return between(*ends, roundings=4.0 * FUNCTION_ERROR)
    if p % 2 == 0:
        size = _magnitude(x)
        return between(np.maximum(size.low, 0.0) ** p, size.high**p, 4.0 * FUNCTION_ERROR)
    return between(x.low**p, x.high**p, roundings=4.0 * FUNCTION_ERROR)


def _quad_over_lin(expression: Any, arguments: list[Ball]) -> Ball:
    x, y = arguments
    if expression.axis is not None or y.mid.size != 1 or not np.all(y.low > 0.0):
        raise NotEnclosed("quad_over_lin along an axis, or of a nonpositive number")
    length = _norm(x, 2.0)
    low, high = np.maximum(length.low, 0.0) ** 2, length.high**2
    return between(low / np.ravel(y.high)[0], high / np.ravel(y.low)[0], roundings=8.0)


def _quad_form(expression: Any, arguments: list[Ball]) -> Ball:
    x, P = arguments
    x, n = Ball(x.mid.ravel(), x.rad.ravel()), x.mid.size
    size, sizes = np.abs(x.mid) + x.rad, np.abs(P.mid) + P.rad
    error = 2.0 * x.rad @ sizes @ size + size @ P.rad @ size
    error += gamma(2 * n + 8) * (size @ sizes @ size)
    return Ball(np.asarray(x.mid @ P.mid @ x.mid), np.asarray(error * WIDER + TINY))


def _division(expression: Any, arguments: list[Ball]) -> Ball:
    a, b = arguments
    if not (np.all(b.low > 0.0) or np.all(b.high < 0.0)):
        raise NotEnclosed("division by a number that may be zero")
    ends = [u / v for u in (a.low, a.high) for v in (b.low, b.high)]
    return between(np.min(ends, axis=0), np.max(ends, axis=0))


def _entropy(expression: Any, arguments: list[Ball]) -> Ball:
    """Enclose -x log x by the larger of its ends and 1/e, and by the smaller of its ends."""
    (x,) = arguments
    if not (x.low >= 0.0).all():
        raise NotEnclosed("entr of a number that may be negative")
    ends = [scipy.special.entr(v) for v in (x.low, x.high)]
    top = np.where((x.low < 0.37) & (x.high > 0.36), np.exp(-1.0), -np.inf)
    return between(np.min(ends, axis=0), np.max([*ends, top], axis=0), 8.0 * FUNCTION_ERROR)


def _log_sum_exp(expression: Any, arguments: list[Ball]) -> Ball:
    (x,) = arguments
    ends = [np.asarray(expression.numeric([v])) for v in (x.low, x.high)]
    found = between(*ends, roundings=x.mid.size + 8.0 * FUNCTION_ERROR)
    largest = float(np.max(np.abs(x.mid) + x.rad)) + 1.0
    return Ball(found.mid, found.rad + (x.mid.size + 8.0 * FUNCTION_ERROR) * UNIT * largest)


def _pnorm(expression: Any, arguments: list[Ball]) -> Ball:
    p = float(getattr(expression, "original_p", None) or expression.p)
    if expression.axis is not None or p < 1.0:
        raise NotEnclosed("pnorm along an axis, or below 1")
    return _norm(arguments[0], p)


def _along_no_axis(p: float) -> Callable[[Any, list[Ball]], Ball]:
    def rule(expression: Any, arguments: list[Ball]) -> Ball:
        if expression.axis is not None:
            raise NotEnclosed("a norm along an axis")
        return _norm(arguments[0], p)

    return rule


def _huber(expression: Any, arguments: list[Ball]) -> Ball:
    size, M = _magnitude(arguments[0]), float(expression.M.value)
    ends = [v * v if M is None else np.where(v <= M, v * v, 2.0 * M * v - M * M)
            for v in (np.maximum(size.low, 0.0), size.high)]  # fmt: skip
    slack = between(*ends, roundings=8.0)
    return Ball(slack.mid, slack.rad + 8.0 * UNIT * M * M)


def eigenvalue_balls(matrix: Ball) -> Ball:
    """Enclose the eigenvalues of a symmetric matrix, in increasing order."""
    # With M = VDV' + E the i-th eigenvalue is within |E| of that of VDV', which is d_i times a
    # number within |V'V - I| of 1 (Ostrowski).
    M, n = 0.5 * matrix.mid + 0.5 * matrix.mid.T, len(matrix.mid)
    d, V = np.linalg.eigh(M)
    size = np.abs(V)
    left = np.abs(M - (V * d) @ V.T) + gamma(n + 8) * ((size * np.abs(d)) @ size.T + np.abs(M))
    turned = np.abs(V.T @ V - np.eye(n)) + gamma(n + 8) * (size.T @ size + 1.0)
    uncertain = left + matrix.rad + np.abs(matrix.mid - M)
    error = float(np.linalg.norm(uncertain)) + float(np.linalg.norm(turned)) * np.abs(d)
    return Ball(d, error * WIDER + TINY)


def _singular(matrix: Ball) -> Ball:
    """Enclose the singular values, as eigenvalues of [[0, M], [M', 0]]."""
    m, n = matrix.mid.shape
    parts = [np.block([[np.zeros((m, m)), v], [v.T, np.zeros((n, n))]]) for v in matrix]
    found = eigenvalue_balls(Ball(*parts))
    return Ball(found.mid[-min(m, n) :], found.rad[-min(m, n) :])


def _total(terms: Ball) -> Ball:
    error = terms.rad.sum() + gamma(terms.mid.size + 4) * np.abs(terms.mid).sum()
    return Ball(np.asarray(terms.mid.sum()), np.asarray(error * WIDER))


def _log_det(expression: Any, arguments: list[Ball]) -> Ball:
    values = eigenvalue_balls(arguments[0])
    if not (values.low > 0.0).all():
        raise NotEnclosed("log_det of a matrix that may be singular")
    return _total(between(np.log(values.low), np.log(values.high), 2.0 * FUNCTION_ERROR))


def _entry(values: Ball, k: int) -> Ball:
    return Ball(values.mid[k], values.rad[k])


RULES: dict[str, Callable[[Any, list[Ball]], Ball]] = {
    "Power": _power,
    "PowerApprox": _power,
    "abs": lambda e, a: _magnitude(a[0]),
    "quad_over_lin": _quad_over_lin,
    "QuadForm": _quad_form,
    "DivExpression": _division,
    "entr": _entropy,
    "log_sum_exp": _log_sum_exp,
    "Pnorm": _pnorm,
    "PnormApprox": _pnorm,
    "norm1": _along_no_axis(1.0),
    "norm_inf": _along_no_axis(np.inf),
    "huber": _huber,
    "lambda_max": lambda e, a: _entry(eigenvalue_balls(a[0]), -1),
    "sigma_max": lambda e, a: _entry(_singular(a[0]), -1),
    "normNuc": lambda e, a: _total(_singular(a[0])),
    "log_det": _log_det,
}
