"""The user's own point, judged as it is: enclosures of the objective and of each violation.

The values of the variables are doubles and taken as such. The expression tree is evaluated atom by
atom on balls, a midpoint and a radius for each entry, with every rounding error in the radius. An
atom without a rule here is named, and what contains it is not enclosed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
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


class Unjudged(NamedTuple):
    """The atom for which there is no enclosure, and the value that CVXPY computes in doubles."""

    atom: str
    value: float


class Ball(NamedTuple):
    """Arrays of real numbers, each within a radius of a midpoint."""

    mid: Array
    rad: Array

    @property
    def low(self) -> Array:
        """Lower ends, of real balls."""
        if np.iscomplexobj(self.mid):
            raise NotEnclosed("complex numbers")
        return np.where(self.rad > 0.0, np.nextafter(self.mid - self.rad, -np.inf), self.mid)

    @property
    def high(self) -> Array:
        """Upper ends, of real balls."""
        return -(-self).low

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
    down, up = (Context(digits, rounding=way) for way in (ROUND_FLOOR, ROUND_CEILING))
    ends = zip((low, high), (down, up), strict=True)
    first, last = (str(way.create_decimal(Decimal(end))).lower() for end, way in ends)
    return first, last


def name_of(place: int, constraint: Any) -> str:
    """The label of a constraint of a problem, or its place among them and its text."""
    if constraint.label is not None:
        return str(constraint.label)
    return f"constraints[{place}]: {as_written(str(constraint))}"


def judge_point(problem: cp.Problem, tolerance: float = 0.0) -> PointReport | None:
    """Enclose the objective and the violations at the variables' values; None without values."""
    if any(variable.value is None for variable in problem.variables()):
        return None
    known: dict[int, Ball] = {}
    judged = [
        (name_of(k, c), _judged(partial(violation, c, known), partial(_float_violation, c)))
        for k, c in enumerate(problem.constraints)
    ]
    is_feasible = all(_is_met(found, tolerance) for _, found in judged)
    for variable in problem.variables():
        for kind, value in variable.attributes.items():
            if value is not None and value is not False and kind in ATTRIBUTES:
                found = _judged(partial(_attribute, variable, kind, known), lambda: math.nan)
                words = "within its bounds" if kind == "bounds" else kind
                judged.append((f"{variable.name()} is {words}", found))
                is_feasible = is_feasible and _is_met(found, 0.0)
    goal = problem.objective.expr
    objective = _judged(lambda: _interval(evaluate(goal, known)), lambda: float(goal.value))
    judged.sort(key=lambda each: -np.nan_to_num(each[1][1], nan=np.inf))
    return PointReport(objective, tuple(judged), is_feasible)


def _float_violation(constraint: Any) -> float:
    return float(np.max(np.abs(constraint.violation())))


def _is_met(violation: Interval | Unjudged, tolerance: float) -> bool:
    return not isinstance(violation, Unjudged) and violation[1] <= tolerance


def _attribute(variable: Any, kind: str, known: dict[int, Ball]) -> Interval:
    """By how much the value of a variable violates one of its attributes."""
    x = evaluate(variable, known)
    if kind != "bounds":
        return _worst(ATTRIBUTES[kind](x))
    ends = [_constant(getattr(end, "value", end)) for end in variable.attributes["bounds"]]
    beyond = [_worst(x.plus(-ends[1])), _worst(ends[0].plus(-x))]
    return max(low for low, _ in beyond), max(high for _, high in beyond)


def _judged(work: Callable[[], Interval], in_doubles: Callable[[], float]) -> Interval | Unjudged:
    with np.errstate(all="ignore"):
        try:
            low, high = work()
        except (NotEnclosed, np.linalg.LinAlgError) as missing:
            return Unjudged(as_written(str(missing)), in_doubles())
        if not -np.inf < low <= high < np.inf:
            return Unjudged("a number beyond double precision", in_doubles())
    return low, high


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
        return _worst(-eigenvalue_balls(_real_form(first)))
    if kind == "SOC":
        axis = constraint.axis if first.mid.size > 1 else None
        norms = _along(axis, first.mid.shape, arguments[1], partial(_norm, p=2.0))
        return _worst(norms.plus(-first))
    raise NotEnclosed(kind)


def _real_form(matrix: Ball) -> Ball:
    """The real matrix with the eigenvalues, each twice, of a Hermitian one."""
    if not np.iscomplexobj(matrix.mid):
        return matrix
    (a, b), r = (matrix.mid.real, matrix.mid.imag), matrix.rad
    return Ball(np.block([[a, -b], [b, a]]), np.block([[r, r], [r, r]]))


def _along(axis: Any, shape: Any, x: Ball, function: Callable[[Ball], Ball]) -> Ball:
    """A function of vectors, of all entries of x or along an axis, in a given shape."""
    axes = tuple(range(x.mid.ndim)) if axis is None else tuple(np.atleast_1d(axis))
    parts = [np.moveaxis(v, axes, range(len(axes))) for v in x]
    size = math.prod(parts[0].shape[: len(axes)])
    columns = [np.reshape(v, (size, -1), order="F").T for v in parts]
    found = [function(Ball(*both)) for both in zip(*columns, strict=True)]
    return Ball(*(np.reshape(np.array(v), shape, order="F") for v in zip(*found, strict=True)))


def _magnitude(a: Ball) -> Ball:
    """The absolute values, without a radius where they are exact."""
    size, rad = np.abs(a.mid), a.rad
    if np.iscomplexobj(a.mid):
        rad = (rad + FUNCTION_ERROR * UNIT * size + np.where(size > 0.0, TINY, 0.0)) * WIDER
    crosses, half = rad >= size, 0.5 * (size + rad)
    return Ball(np.where(crosses, half, size), np.where(crosses, half * WIDER, rad))


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
    if np.iscomplexobj(matrix.mid):
        raise NotEnclosed("eigenvalues of complex numbers")
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
    """The sizes of the entries of X - X', or of a complex X less its conjugate transpose."""
    axes = (*range(x.mid.ndim - 2), x.mid.ndim - 1, x.mid.ndim - 2)
    return _magnitude(x.plus(-Ball(x.mid.conj().transpose(axes), x.rad.transpose(axes))))


ATTRIBUTES: dict[str, Callable[[Ball], Ball]] = {
    "nonneg": lambda x: -x,
    "pos": lambda x: -x,
    "nonpos": lambda x: x,
    "neg": lambda x: x,
    "symmetric": _asymmetry,
    "hermitian": _asymmetry,
    "imag": lambda x: _magnitude(Ball(x.mid.real, x.rad)),
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
    *("real", "imag", "conj", "hermitian_wrap"),
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
        return np.asarray(expression.numeric(list(values)))

    mids, rads = [a.mid for a in arguments], [a.rad for a in arguments]
    sizes = [np.abs(m) for m in mids]
    terms = _roundings(sum(m.size for m in mids) + 8, *arguments)
    if name in ("real", "imag"):
        return Ball(numeric(*mids), rads[0])
    if name in SUMS:
        spread, size = np.abs(numeric(*rads)), np.abs(numeric(*sizes))
        tiny = np.where(spread + size > 0.0, TINY, 0.0)  # sums of zeros are exact
        return Ball(numeric(*mids), (spread + gamma(terms) * size) * WIDER + tiny)
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
    zeros = scipy.sparse.csr_array if is_sparse and keep_sparse else np.zeros
    kind = np.complex128 if np.iscomplexobj(value) else np.float64
    return Ball(value.astype(kind), zeros(value.shape))


def _sparse_or_dense(expression: Any, known: dict[int, Ball]) -> Ball:
    """A factor of a product: a sparse constant stays so, where nothing was computed of it."""
    if isinstance(expression, cp.Constant):
        return _constant(expression.value, keep_sparse=True)
    return evaluate(expression, known)


def _roundings(terms: int, *balls: Ball) -> int:
    """The roundings in a sum of products: of complex numbers each takes two more."""
    return terms * (1 + 2 * any(np.iscomplexobj(ball.mid) for ball in balls))


def _product(a: Ball, b: Ball) -> Ball:
    """The matrix product of two balls, of which either may be sparse."""

    def times(u: Any, v: Any) -> Array:
        found = u @ v if u.ndim and v.ndim else u * v
        return found.toarray() if scipy.sparse.issparse(found) else np.asarray(found)

    size, terms = abs(b.mid), _roundings((a.mid.shape or (1,))[-1] + 8, a, b)
    spread = times(abs(a.mid) + a.rad, b.rad) + times(a.rad, size)
    spread += gamma(terms) * times(abs(a.mid), size)
    return Ball(times(a.mid, b.mid), spread * WIDER + TINY)


def _quad_form(x: Ball, P: Ball) -> Ball:
    """The value x'Px, of which P may be sparse."""
    if np.iscomplexobj(x.mid) or np.iscomplexobj(P.mid):
        raise NotEnclosed("quad_form of complex numbers")
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
    if not np.all(y.low > 0.0):
        raise NotEnclosed("quad_over_lin of a nonpositive number")
    length = _along(expression.axis, expression.shape, x, partial(_norm, p=2.0))
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
    function = partial(_norm if p >= 1.0 else _mean_of_powers, p=p)
    return _along(expression.axis, expression.shape, arguments[0], function)


def _mean_of_powers(x: Ball, p: float) -> Ball:
    """(sum_i x_i^p)^(1/p) with p < 1, which increases with every entry."""
    if not (x.low >= 0.0).all():
        raise NotEnclosed("pnorm, with p below 1, of a number that may be negative")
    ends, roundings = [], 0.0
    for v in (x.low, x.high):
        if p < 0.0 and not v.all():
            ends.append(0.0)
            continue
        total = float(np.sum(v**p))
        if not 0.0 < total < np.inf:
            raise NotEnclosed("a number beyond double precision")
        ends.append(total ** (1.0 / p))
        roundings = max(roundings, (v.size + 4.0 * FUNCTION_ERROR + abs(math.log(total))) / abs(p))
    return between(ends, roundings + 4.0 * FUNCTION_ERROR)


def _geo_mean(expression: Any, arguments: list[Ball]) -> Ball:
    """The product of x_i^{w_i}, as exp(sum_i w_i log x_i)."""
    weights = np.array([float(w) for w in expression.w])

    def of_vector(x: Ball) -> Ball:
        ends, roundings = [], 0.0
        if not (x.low[expression._keep] >= 0.0).all():
            raise NotEnclosed("geo_mean of a number that may be negative")
        for v in (x.low[expression._keep], x.high[expression._keep]):
            terms = weights * np.log(v)
            ends.append(float(np.exp(terms.sum())) if v.all() else 0.0)
            size = float(np.abs(terms).sum()) if v.all() else 0.0
            roundings = max(roundings, (len(v) + 4.0 * FUNCTION_ERROR) * size)
        return between(ends, roundings + 4.0 * FUNCTION_ERROR)

    return _along(expression.axis, expression.shape, arguments[0], of_vector)


def _huber(expression: Any, arguments: list[Ball]) -> Ball:
    size, M = _magnitude(arguments[0]), np.asarray(expression.M.value, dtype=np.float64)
    ends = [np.where(v <= M, v * v, M * (2.0 * v - M)) for v in (size.low.clip(0.0), size.high)]
    return between(ends, 4.0)


def _relative_entropy(expression: Any, arguments: list[Ball]) -> Ball:
    """The terms x log(x/y) of rel_entr; for kl_div with y - x added."""
    x, y = arguments
    if not ((x.low >= 0.0).all() and (y.low > 0.0).all()):
        raise NotEnclosed(f"{type(expression).__name__} of a number that may not be positive")
    logs = [np.log(x.low) - np.log(y.high), np.log(x.high) - np.log(y.low)]
    ends = [np.where(u == 0.0, 0.0, u * v) for u in (x.low, x.high) for v in logs]
    least = np.where((x.low == 0.0) & (x.high > 0.0), -0.5 * y.high, np.min(ends, axis=0))
    parts = [np.nan_to_num(np.abs(np.log(v)), posinf=0.0) for v in (x.low, x.high, y.low, y.high)]
    size = (1.0 + sum(parts)) * x.high
    found = between((least, np.max(ends, axis=0)), 4.0 * FUNCTION_ERROR, size)
    return found if type(expression).__name__ == "rel_entr" else found.plus(y.plus(-x))


def _matrix_frac(expression: Any, arguments: list[Ball]) -> Ball:
    """tr(X'P^{-1}X) = tr(2Z'X - Z'PZ) + tr(R'P^{-1}R), R = X - PZ, for any Z."""
    X, P = arguments[0], _symmetric(arguments[1])
    least = float(eigenvalue_balls(P).low[0])
    if not least > 0.0:
        raise NotEnclosed("matrix_frac of a matrix that may be singular")
    Z = _constant(np.linalg.solve(P.mid, X.mid))
    product = _product(P, Z)
    rest = float(_norm(X.plus(-product), 2.0).high) ** 2 / least
    vectors = [Ball(*(v.ravel() for v in ball)) for ball in (Z, X, product)]
    first, second = _product(vectors[0], vectors[1]), _product(vectors[0], vectors[2])
    value = Ball(2.0 * first.mid, 2.0 * first.rad).plus(-second)
    return between((value.low, value.high + 2.0 * rest))


def _trace_of_inverse(expression: Any, arguments: list[Ball]) -> Ball:
    values = eigenvalue_balls(_symmetric(arguments[0]))
    if not (values.low > 0.0).all():
        raise NotEnclosed("tr_inv of a matrix that may be singular")
    return _total(between((1.0 / values.high, 1.0 / values.low)))


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
    "GeoMean": _geo_mean,
    "GeoMeanApprox": _geo_mean,
    "huber": _huber,
    "kl_div": _relative_entropy,
    "rel_entr": _relative_entropy,
    "MatrixFrac": _matrix_frac,
    "tr_inv": _trace_of_inverse,
}
