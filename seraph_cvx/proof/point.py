"""The user's own point, judged as it is: enclosures of the objective and of each violation.

The values of the variables are doubles and taken as such. The expression tree is evaluated atom by
atom on balls, a midpoint and a radius for each entry, with every rounding error in the radius. An
atom without a rule here is named, and what contains it is not enclosed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import cvxpy as cp
import numpy as np
import scipy

from .arithmetic import Array, power_of_two_below
from .rounding import FUNCTION_ERROR, UNIT, gamma

# Above the share of a radius that is lost in computing the radius, and above every underflow.
WIDER, TINY = 1.0 + 2.0**-20, 2.0**-1000

Interval: TypeAlias = tuple[float, float]


class NotEnclosed(Exception):
    """An atom that has no rule."""


class Ball(NamedTuple):
    """Arrays of real numbers, each within a radius of a midpoint."""

    mid: Array
    rad: Array

    @property
    def low(self) -> Array:
        """Lower ends."""
        return np.where(self.rad > 0.0, np.nextafter(self.mid - self.rad, -np.inf), self.mid)

    @property
    def high(self) -> Array:
        """Upper ends."""
        return np.where(self.rad > 0.0, np.nextafter(self.mid + self.rad, np.inf), self.mid)

    def __neg__(self) -> Ball:
        return Ball(-self.mid, self.rad)

    def plus(self, other: Ball) -> Ball:
        """The sum with another ball."""
        mid = self.mid + other.mid
        return Ball(mid, (self.rad + other.rad + UNIT * np.abs(mid)) * WIDER)


def between(ends: Sequence[Any], roundings: float = 2.0, size: Any = 0.0) -> Ball:
    """The ball of intervals, whose ends are off by roundings of themselves and of a size."""
    low, high = ends
    mid = 0.5 * low + 0.5 * high
    size = np.maximum(np.maximum(np.abs(low), np.abs(high)), size)
    rad = np.maximum(high - mid, mid - low) + (roundings + 4.0) * UNIT * size + TINY
    return Ball(np.asarray(mid), np.asarray(rad) * WIDER)


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


@dataclass(frozen=True)
class PointReport:
    """Intervals for the objective and the violations at the user's point.

    `objective` is an interval, or the name of an atom that is not enclosed; `violations` has for
    each constraint its text and the interval of its largest violation (or that name). Whether
    `is_feasible` is proven, within the tolerance of constraints that `judge_point` was given.
    """

    objective: Interval | str
    violations: tuple[tuple[str, Interval | str], ...]
    is_feasible: bool

    def __str__(self) -> str:
        lines = [f"The point as it is: objective {_in_words(self.objective)}"]
        lines += [f"  violation {_in_words(v)}  of  {text}" for text, v in self.violations]
        return "\n".join(lines)


def as_written(text: str) -> str:
    """CVXPY's text of a constraint, or the name of a class of it, as its user writes it, shortened.

    Classes are named as the functions that make them, defaults are left out, matrices are cut.
    """
    for pattern, word in WRITTEN.items():
        text = re.sub(pattern, word, text)
    text = " ".join(text.split())
    return text if len(text) <= LONGEST else text[: LONGEST - 4] + " ..."


def _in_words(value: Interval | str) -> str:
    return f"not enclosed: {value}" if isinstance(value, str) else "in [{!r}, {!r}]".format(*value)


def judge_point(problem: cp.Problem, tolerance: float = 0.0) -> PointReport | None:
    """Enclose the objective and the violations at the variables' values; None without values."""
    if any(variable.value is None for variable in problem.variables()):
        return None
    known: dict[int, Ball] = {}
    judged = [
        (f"constraints[{k}]: {as_written(str(c))}", _judged(partial(violation, c, known)))
        for k, c in enumerate(problem.constraints)
    ]
    is_feasible = all(_is_met(found, tolerance) for _, found in judged)
    for variable in problem.variables():
        for kind, value in variable.attributes.items():
            if value is not None and value is not False and kind in ATTRIBUTES:
                found = _judged(partial(_attribute, variable, kind, known))
                words = "within its bounds" if kind == "bounds" else kind
                judged.append((f"{variable.name()} is {words}", found))
                is_feasible = is_feasible and _is_met(found, 0.0)
    objective = _judged(lambda: _interval(evaluate(problem.objective.expr, known)))
    return PointReport(objective, tuple(judged), is_feasible)


def _is_met(violation: Interval | str, tolerance: float) -> bool:
    return not isinstance(violation, str) and violation[1] <= tolerance


def _attribute(variable: Any, kind: str, known: dict[int, Ball]) -> Interval:
    """By how much the value of a variable violates one of its attributes."""
    x = evaluate(variable, known)
    if kind != "bounds":
        return _worst(ATTRIBUTES[kind](x))
    ends = [_constant(getattr(end, "value", end)) for end in variable.attributes["bounds"]]
    beyond = [_worst(x.plus(-ends[1])), _worst(ends[0].plus(-x))]
    return max(low for low, _ in beyond), max(high for _, high in beyond)


def _judged(work: Callable[[], Interval]) -> Interval | str:
    try:
        with np.errstate(all="ignore"):
            low, high = work()
    except (NotEnclosed, np.linalg.LinAlgError) as missing:
        return as_written(str(missing))
    return (low, high) if -np.inf < low <= high < np.inf else "beyond double precision"


def _interval(ball: Ball) -> Interval:
    return float(np.min(ball.low)), float(np.max(ball.high))


def _worst(ball: Ball) -> Interval:
    """The largest positive part of the entries."""
    return float(np.max(ball.low, initial=0.0)), float(np.max(ball.high, initial=0.0))


def violation(constraint: Any, known: dict[int, Ball]) -> Interval:
    """By how much a constraint is violated, in its worst entry."""
    kind = type(constraint).__name__
    arguments = [evaluate(arg, known) for arg in constraint.args]
    first = arguments[0]
    if kind in ("Equality", "Inequality"):
        first = first.plus(-arguments[1])
    if kind in ("Equality", "Zero"):
        return _worst(_magnitude(first))
    if kind in ("Inequality", "NonNeg", "NonPos"):
        return _worst(-first if kind == "NonNeg" else first)
    if kind == "PSD" and first.mid.ndim == 2:
        return _worst(-eigenvalue_balls(first))
    if kind == "SOC" and first.mid.size == 1:
        return _worst(_norm(arguments[1], 2.0).plus(-Ball(*(v.reshape(()) for v in first))))
    raise NotEnclosed(kind)


def _magnitude(a: Ball) -> Ball:
    low = np.maximum(np.maximum(a.low, -a.high), 0.0)
    return between((low, np.maximum(np.abs(a.low), np.abs(a.high))))


def _norm(a: Ball, p: float) -> Ball:
    """The p-norm of all entries."""
    size = _magnitude(a)
    scale = float(power_of_two_below(np.max(size.high, initial=0.0))) or 1.0
    ends = [
        scale * np.linalg.norm(np.ravel(v) / scale, p)
        for v in (np.maximum(size.low, 0.0), size.high)
    ]
    return between(ends, size.mid.size + 4.0 * FUNCTION_ERROR)


def eigenvalue_balls(matrix: Ball) -> Ball:
    """Enclose the eigenvalues of the symmetric part of a matrix, in increasing order."""
    # With M = VDV' + E the i-th eigenvalue is within |E| of that of VDV', which is d_i times a
    # number within |V'V - I| of 1 (Ostrowski). Norms are bounded by sums of rows and columns.
    M, n = 0.5 * matrix.mid + 0.5 * matrix.mid.T, len(matrix.mid)
    d, V = np.linalg.eigh(M)
    size = np.abs(V)
    residual = np.abs(M - (V * d) @ V.T) + matrix.rad + matrix.rad.T
    residual += gamma(n + 8) * ((size * np.abs(d)) @ size.T + np.abs(M))
    departure = np.abs(V.T @ V - np.eye(n)) + gamma(n + 8) * (size.T @ size + 1.0)
    E, D = (max(float(B.sum(axis=i).max()) for i in (0, 1)) for B in (residual, departure))
    return Ball(d, (E + D * np.abs(d)) * WIDER + TINY)


def _singular_values(matrix: Ball) -> Ball:
    """Enclose the singular values, as eigenvalues of [[0, M], [M', 0]]."""
    m, n = matrix.mid.shape
    parts = [np.block([[np.zeros((m, m)), v], [v.T, np.zeros((n, n))]]) for v in matrix]
    found = eigenvalue_balls(Ball(*parts))
    return Ball(found.mid[-min(m, n) :], found.rad[-min(m, n) :])


def _total(terms: Ball) -> Ball:
    error = terms.rad.sum() + gamma(terms.mid.size + 4) * np.abs(terms.mid).sum()
    return Ball(np.asarray(terms.mid.sum()), np.asarray(error * WIDER))


def _asymmetry(x: Ball) -> Ball:
    """The sizes of the entries of X - X'."""
    axes = (*range(x.mid.ndim - 2), x.mid.ndim - 1, x.mid.ndim - 2)
    return _magnitude(x.plus(-Ball(*(v.transpose(axes) for v in x))))


ATTRIBUTES: dict[str, Callable[[Ball], Ball]] = {
    "nonneg": lambda x: -x,
    "pos": lambda x: -x,
    "nonpos": lambda x: x,
    "neg": lambda x: x,
    "symmetric": _asymmetry,
    "PSD": lambda x: -eigenvalue_balls(x),
    "NSD": eigenvalue_balls,
    "diag": lambda x: _magnitude(Ball(*(v - np.diag(np.diag(v)) for v in x))),
    "bounds": lambda x: x,  # which `_attribute` reads
}
"""Of each attribute of a variable, numbers that are at most zero where it holds."""

# Atoms whose entries are sums of entries of their arguments, with coefficients 1 (or -1).
SUMS = {
    *("AddExpression", "NegExpression", "Sum", "cumsum", "Trace", "index", "special_index"),
    *("reshape", "Hstack", "Vstack", "Concatenate", "transpose", "diag_vec", "diag_mat"),
    *("upper_tri", "Promote", "broadcast_to", "symmetric_wrap", "psd_wrap", "nonneg_wrap"),
}

# Atoms that are linear in each of two arguments, other than the matrix product.
PRODUCTS = {"multiply", "kron", "conv", "convolve"}

# Functions that increase with every entry: computed at both ends.
INCREASING = {
    *("exp", "log", "log1p", "logistic", "max", "min", "maximum", "minimum", "cummax"),
    "sum_largest",
}


def evaluate(expression: Any, known: dict[int, Ball]) -> Ball:
    """Enclose an expression at the values of its variables."""
    if id(expression) not in known:
        known[id(expression)] = _evaluate(expression, known)
    return known[id(expression)]


def _evaluate(expression: Any, known: dict[int, Ball]) -> Ball:
    name = type(expression).__name__
    if not expression.args:
        return _constant(expression.value)
    if name in MATRIX_PRODUCTS:
        return MATRIX_PRODUCTS[name](*(_sparse_or_dense(arg, known) for arg in expression.args))
    if name not in SUMS | PRODUCTS | INCREASING | set(RULES):
        raise NotEnclosed(name)
    arguments = [evaluate(arg, known) for arg in expression.args]

    def numeric(*values: Array) -> Array:
        return np.asarray(expression.numeric(list(values)), dtype=np.float64)

    mids, rads = [a.mid for a in arguments], [a.rad for a in arguments]
    sizes, terms = [np.abs(m) for m in mids], sum(m.size for m in mids) + 8
    if name in SUMS:
        error = np.abs(numeric(*rads)) + gamma(terms) * np.abs(numeric(*sizes))
        return Ball(numeric(*mids), error * WIDER + TINY)
    if name in PRODUCTS:
        spread = numeric(sizes[0] + rads[0], rads[1]) + numeric(rads[0], sizes[1])
        return Ball(numeric(*mids), (spread + gamma(terms) * numeric(*sizes)) * WIDER + TINY)
    if name in INCREASING:
        ends = numeric(*(a.low for a in arguments)), numeric(*(a.high for a in arguments))
        added = float(np.sum(sizes[0] + rads[0])) if name == "sum_largest" else 0.0
        return between(ends, terms + 4.0 * FUNCTION_ERROR, added)
    return RULES[name](expression, arguments)


def _constant(value: Any, keep_sparse: bool = False) -> Ball:
    """The ball of doubles, without a radius."""
    is_sparse = scipy.sparse.issparse(value)
    if not (is_sparse and keep_sparse):
        value = value.toarray() if is_sparse else np.asarray(value)
    if np.iscomplexobj(value):
        raise NotEnclosed("complex numbers")
    zeros = scipy.sparse.csr_array if is_sparse and keep_sparse else np.zeros
    return Ball(value.astype(np.float64), zeros(value.shape))


def _sparse_or_dense(expression: Any, known: dict[int, Ball]) -> Ball:
    """A factor of a product: a sparse constant stays so, where nothing was computed of it."""
    if isinstance(expression, cp.Constant):
        return _constant(expression.value, keep_sparse=True)
    return evaluate(expression, known)


def _product(a: Ball, b: Ball) -> Ball:
    """The matrix product of two balls, of which either may be sparse."""

    def times(u: Any, v: Any) -> Array:
        found = u @ v if u.ndim and v.ndim else u * v
        return found.toarray() if scipy.sparse.issparse(found) else np.asarray(found)

    size, terms = abs(b.mid), (a.mid.shape or (1,))[-1] + 8
    spread = times(abs(a.mid) + a.rad, b.rad) + times(a.rad, size)
    spread += gamma(terms) * times(abs(a.mid), size)
    return Ball(times(a.mid, b.mid), spread * WIDER + TINY)


def _quad_form(x: Ball, P: Ball) -> Ball:
    """The value x'Px, of which P may be sparse."""
    x = Ball(*(v.ravel() for v in x))
    size, sizes = np.abs(x.mid) + x.rad, abs(P.mid) + P.rad
    error = 2.0 * x.rad @ (sizes @ size) + size @ (P.rad @ size)
    error += gamma(2 * len(size) + 8) * (size @ (sizes @ size))
    return Ball(np.asarray(x.mid @ (P.mid @ x.mid)), np.asarray(error * WIDER + TINY))


MATRIX_PRODUCTS = {"MulExpression": _product, "QuadForm": _quad_form}


def _power(expression: Any, arguments: list[Ball]) -> Ball:
    # CVXPY's domain: all numbers for p = 1 and even p, else those that are not negative.
    p, (x,) = float(expression.p.value), arguments
    if p == 1.0:
        return x
    if p >= 0.0 and p % 2.0 == 0.0:
        size = _magnitude(x)
        return between((np.maximum(size.low, 0.0) ** p, size.high**p), 4.0 * FUNCTION_ERROR)
    if not (x.low >= 0.0).all():
        raise NotEnclosed("power of a number that may be negative")
    return between(list(np.sort([x.low**p, x.high**p], axis=0)), 4.0 * FUNCTION_ERROR)


def _quad_over_lin(expression: Any, arguments: list[Ball]) -> Ball:
    x, y = arguments
    if expression.axis is not None or y.mid.size != 1 or not np.all(y.low > 0.0):
        raise NotEnclosed("quad_over_lin along an axis, or of a nonpositive number")
    length = _norm(x, 2.0)
    low, high = np.maximum(length.low, 0.0) ** 2, length.high**2
    return between((low / y.high.reshape(()), high / y.low.reshape(())), 8.0)


def _division(expression: Any, arguments: list[Ball]) -> Ball:
    a, b = arguments
    if not (np.all(b.low > 0.0) or np.all(b.high < 0.0)):
        raise NotEnclosed("division by a number that may be zero")
    ends = [u / v for u in (a.low, a.high) for v in (b.low, b.high)]
    return between((np.min(ends, axis=0), np.max(ends, axis=0)))


def _entropy(expression: Any, arguments: list[Ball]) -> Ball:
    (x,) = arguments
    if not (x.low >= 0.0).all():
        raise NotEnclosed("entr of a number that may be negative")
    ends = [scipy.special.entr(v) for v in (x.low, x.high)]
    top = np.where((x.low < 0.37) & (x.high > 0.36), np.exp(-1.0), -np.inf)  # at x = 1/e
    return between((np.min(ends, axis=0), np.max([*ends, top], axis=0)), 8.0 * FUNCTION_ERROR)


def _log_sum_exp(expression: Any, arguments: list[Ball]) -> Ball:
    (x,) = arguments
    ends = [np.asarray(expression.numeric([v])) for v in (x.low, x.high)]
    largest = float(np.max(np.abs(x.mid) + x.rad)) + 1.0
    return between(ends, x.mid.size + 8.0 * FUNCTION_ERROR, largest)


def _vector_norm(p: float, expression: Any, arguments: list[Ball]) -> Ball:
    p = p or float(getattr(expression, "original_p", None) or expression.p)
    if expression.axis is not None or p < 1.0:
        raise NotEnclosed("a norm along an axis, or with p below 1")
    return _norm(arguments[0], p)


def _symmetric(matrix: Ball) -> Ball:
    """A matrix that is symmetric, as CVXPY's functions of eigenvalues demand."""
    if not all(np.array_equal(part, part.T) for part in matrix):
        raise NotEnclosed("eigenvalues of a matrix that may not be symmetric")
    return matrix


def _log_det(expression: Any, arguments: list[Ball]) -> Ball:
    values = eigenvalue_balls(_symmetric(arguments[0]))
    if not (values.low > 0.0).all():
        raise NotEnclosed("log_det of a matrix that may be singular")
    return _total(between((np.log(values.low), np.log(values.high)), 2.0 * FUNCTION_ERROR))


def _largest(values: Ball) -> Ball:
    return Ball(values.mid[-1], values.rad[-1])


RULES: dict[str, Callable[[Any, list[Ball]], Ball]] = {
    "Power": _power,
    "PowerApprox": _power,
    "abs": lambda e, a: _magnitude(a[0]),
    "quad_over_lin": _quad_over_lin,
    "DivExpression": _division,
    "entr": _entropy,
    "log_sum_exp": _log_sum_exp,
    "Pnorm": partial(_vector_norm, 0.0),
    "PnormApprox": partial(_vector_norm, 0.0),
    "norm1": partial(_vector_norm, 1.0),
    "norm_inf": partial(_vector_norm, np.inf),
    "lambda_max": lambda e, a: _largest(eigenvalue_balls(_symmetric(a[0]))),
    "sigma_max": lambda e, a: _largest(_singular_values(a[0])),
    "normNuc": lambda e, a: _total(_singular_values(a[0])),
    "log_det": _log_det,
}
