"""Expressions of CVXPY on balls: what values they have, however their evaluation is rounded.

The expression tree is evaluated atom by atom on balls, a midpoint and a radius for each entry:
linear atoms in doubles, with every rounding error in the radius, all others by the balls of FLINT,
entry by entry. The tables at the end say how. An atom that is in none of them is named, and what
contains it is not enclosed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np
import scipy
from cvxpy.atoms.affine.wraps import Wrap
from flint import arb, arb_mat

from .arithmetic import Array
from .rounding import FUNCTION_ERROR, UNIT, gamma

# Above the share of a radius that is lost in computing the radius, and above every underflow.
WIDER, TINY = 1.0 + 2.0**-20, 2.0**-1000


class NotEnclosed(Exception):
    """An atom that has no rule."""


class Ball(NamedTuple):
    """Arrays of real numbers, each within a radius of a midpoint."""

    mid: Array
    rad: Array

    @classmethod
    def between(cls, low: Array, high: Array) -> Ball:
        """The balls of intervals."""
        mid = 0.5 * low + 0.5 * high
        return cls(mid, np.maximum(high - mid, mid - low) * WIDER)

    @classmethod
    def of(cls, numbers: Any) -> Ball:
        """The balls of an array of FLINT's."""
        mid, rad = np.frompyfunc(_in_doubles, 1, 2)(numbers)
        return cls(np.asarray(mid, dtype=np.float64), np.asarray(rad, dtype=np.float64))

    @property
    def numbers(self) -> Array:
        """An array of FLINT's balls."""
        return np.asarray(np.frompyfunc(arb, 2, 1)(self.real.mid, self.rad), dtype=object)

    @property
    def real(self) -> Ball:
        """The same, if the numbers are real."""
        if np.iscomplexobj(self.mid):
            raise NotEnclosed("complex numbers")
        return self

    @property
    def low(self) -> Array:
        """Lower ends, of real balls."""
        mid, rad = self.real
        return np.where(rad == 0.0, mid, np.nextafter(mid - rad, -np.inf))  # NaN stays NaN

    @property
    def high(self) -> Array:
        """Upper ends, of real balls."""
        return -(-self).low

    def __neg__(self) -> Ball:
        return Ball(-self.mid, self.rad)

    def plus(self, other: Ball) -> Ball:
        """The sum with another ball."""
        mid = self.mid + other.mid
        moved = mid - self.mid  # Knuth's sum of two doubles and its error
        error = (self.mid - (mid - moved)) + (other.mid - moved)
        return Ball(mid, (self.rad + other.rad + np.abs(error)) * WIDER)


def _in_doubles(number: arb) -> tuple[float, float]:
    """The midpoint and the radius of one of FLINT's balls."""
    mid = float(number.mid())
    off = (number - mid).abs_upper()
    return mid, float(off) * WIDER + TINY * (off != 0)


def along(axis: Any, shape: Any, x: Ball, function: Callable[[Array], arb]) -> Ball:
    """A function of vectors, of all entries of x or along an axis, in a given shape."""
    numbers = (magnitude(x) if np.iscomplexobj(x.mid) else x).numbers
    axes = tuple(range(numbers.ndim)) if axis is None else tuple(np.atleast_1d(axis))
    numbers = np.moveaxis(numbers, axes, range(len(axes)))
    columns = numbers.reshape((math.prod(numbers.shape[: len(axes)]), -1), order="F").T
    found = Ball.of(np.array([function(column) for column in columns], dtype=object))
    return Ball(*(part.reshape(shape, order="F") for part in found))


def magnitude(a: Ball) -> Ball:
    """The absolute values, without a radius where they are exact."""
    size, rad = np.abs(a.mid), a.rad
    if np.iscomplexobj(a.mid):
        rad = (rad + FUNCTION_ERROR * UNIT * size + np.where(size > 0.0, TINY, 0.0)) * WIDER
    crosses, half = rad >= size, 0.5 * (size + rad)
    return Ball(np.where(crosses, half, size), np.where(crosses, half * WIDER, rad))


def eigenvalue_balls(matrix: Ball) -> Ball:
    """Enclose the eigenvalues of the Hermitian part of a matrix, in increasing order."""
    # With M = VDV' + E the i-th eigenvalue is within |E| of that of VDV', which is d_i times a
    # number within |V'V - I| of 1 (Ostrowski). Norms are bounded by sums of rows and columns.
    if matrix.mid.ndim != 2:
        raise NotEnclosed("eigenvalues of several matrices")
    M, n = 0.5 * matrix.mid + 0.5 * matrix.mid.conj().T, len(matrix.mid)
    d, V = np.linalg.eigh(M)
    size, error = np.abs(V), gamma(_roundings(n + 8, matrix))
    residual = np.abs(M - (V * d) @ V.conj().T) + matrix.rad + matrix.rad.T
    residual += error * ((size * np.abs(d)) @ size.T + np.abs(M))
    departure = np.abs(V.conj().T @ V - np.eye(n)) + error * (size.T @ size + 1.0)
    E, D = (max(float(B.sum(axis=i).max()) for i in (0, 1)) for B in (residual, departure))
    return Ball(d, (E + D * np.abs(d)) * WIDER + TINY)


def _singular_values(matrix: Ball) -> Ball:
    """Enclose the singular values, as eigenvalues of [[0, M], [M', 0]]."""
    m, n = matrix.mid.shape
    parts = [np.block([[np.zeros((m, m)), v], [v.conj().T, np.zeros((n, n))]]) for v in matrix]
    found = eigenvalue_balls(Ball(*parts))
    return Ball(*(part[-min(m, n) :] for part in found))


def evaluate(expression: Any, known: dict[int, Ball]) -> Ball:
    """Enclose an expression at the values of its variables."""
    if id(expression) not in known:
        known[id(expression)] = _evaluate(expression, known)
    return known[id(expression)]


def _evaluate(expression: Any, known: dict[int, Ball]) -> Ball:
    expression = _unwrapped(expression)
    name = type(expression).__name__
    if not expression.args:
        return constant_ball(value_of(expression))
    if name not in RULES:
        raise NotEnclosed(name)
    keep_sparse = name in ("MulExpression", "QuadForm")
    arguments = [
        constant_ball(value_of(arg), keep_sparse)
        if not arg.args and arg.is_constant()
        else evaluate(arg, known)
        for arg in map(_unwrapped, expression.args)
    ]
    found = RULES[name](expression, *arguments)
    if np.isnan(found.mid).any():
        raise NotEnclosed(f"{name} of a number that may be outside of its domain")
    return found


def _unwrapped(expression: Any) -> Any:
    """What psd_wrap and the like are about."""
    while isinstance(expression, Wrap):
        expression = expression.args[0]
    return expression


def value_of(expression: Any) -> Any:
    """The value that CVXPY has; it warns of `value` where there is a `value_sparse`."""
    is_sparse = getattr(expression, "sparse_idx", None) is not None
    return expression.value_sparse if is_sparse else expression.value


def constant_ball(value: Any, keep_sparse: bool = False) -> Ball:
    """The ball of doubles, without a radius."""
    if not scipy.sparse.issparse(value):
        value = np.asarray(value)
    elif not keep_sparse:
        value = value.toarray()
    value = value.astype(np.complex128 if np.iscomplexobj(value) else np.float64)
    return Ball(value, 0.0 * abs(value))


# ---- rules: functions of an expression and the balls of its arguments ----------------------------


def _linear(expression: Any, *arguments: Ball) -> Ball:
    """Entries that are sums of entries of the arguments, with coefficients 1 (or -1)."""
    mids, rads = zip(*arguments, strict=True)
    sizes = [np.abs(mid) for mid in mids]
    mid, spread, size = (np.asarray(expression.numeric(list(v))) for v in (mids, rads, sizes))
    error = gamma(_roundings(sum(v.size for v in mids) + 8, *arguments)) * np.abs(size)
    tiny = np.where(np.abs(spread) + np.abs(size) > 0.0, TINY, 0.0)  # sums of zeros are exact
    return Ball(mid, (np.abs(spread) + error) * WIDER + tiny)


def _part(expression: Any, a: Ball) -> Ball:
    return Ball(np.asarray(expression.numeric([a.mid])), a.rad)


def _bilinear(expression: Any, a: Ball, b: Ball) -> Ball:
    """Entries that are sums of products of an entry of each argument."""

    def times(u: Any, v: Any) -> Array:
        return np.asarray(expression.numeric([u, v]))

    return _times(times, a, b, a.mid.size + b.mid.size)


def _times(times: Callable[[Any, Any], Array], a: Ball, b: Ball, terms: int) -> Ball:
    """A product of balls, each entry a sum of so many terms at most."""
    size = abs(a.mid)
    spread = times(size + a.rad, b.rad) + times(a.rad, abs(b.mid))
    spread += gamma(_roundings(terms + 8, a, b)) * times(size, abs(b.mid))
    return Ball(times(a.mid, b.mid), spread * WIDER + TINY)


def _roundings(terms: int, *balls: Ball) -> int:
    """The roundings in a sum of products: of complex numbers each takes two more."""
    return terms * (1 + 2 * any(np.iscomplexobj(ball.mid) for ball in balls))


def _product(expression: Any, a: Ball, b: Ball) -> Ball:
    """The matrix product, of which either factor may be sparse."""

    def times(u: Any, v: Any) -> Array:
        found = u @ v if u.ndim and v.ndim else u * v
        return found.toarray() if scipy.sparse.issparse(found) else np.asarray(found)

    return _times(times, a, b, (a.mid.shape or (1,))[-1])


def _quad_form(expression: Any, x: Ball, P: Ball) -> Ball:
    """The value x'Px, of which P may be sparse."""
    if np.iscomplexobj(x.mid) or np.iscomplexobj(P.mid):
        raise NotEnclosed("quad_form of complex numbers")
    x = Ball(*(part.ravel() for part in x))
    return _product(expression, x, _product(expression, P, x))


def _at_both_ends(expression: Any, *arguments: Ball) -> Ball:
    """A function that increases with every entry, and picks or adds some of them."""
    ends = [[a.low for a in arguments], [a.high for a in arguments]]
    found = Ball.between(*(np.asarray(expression.numeric(end)) for end in ends))
    if type(expression).__name__ != "sum_largest":
        return found
    error = gamma(ends[0][0].size + 8) * float(sum(np.abs(end[0]).sum() for end in ends))
    return Ball(found.mid, (found.rad + error) * WIDER)


def _of_entries(function: Callable[..., arb]) -> Callable[..., Ball]:
    """The rule of a function of the expression and an entry of each argument."""

    def rule(expression: Any, *arguments: Ball) -> Ball:
        each = np.frompyfunc(partial(function, expression), len(arguments), 1)
        return Ball.of(each(*(argument.numbers for argument in arguments)))

    return rule


def _of_vectors(function: Callable[..., arb]) -> Callable[..., Ball]:
    """The rule of a function of the expression, vectors in its first argument, and numbers."""

    def rule(expression: Any, x: Ball, *others: Ball) -> Ball:
        numbers = [other.numbers.item() for other in others]
        of_column = partial(function, expression)
        return along(expression.axis, expression.shape, x, lambda v: of_column(v, *numbers))

    return rule


def _of_eigenvalues(function: Callable[[Array], Any]) -> Callable[..., Ball]:
    """The rule of a function of the eigenvalues of a symmetric matrix."""
    return lambda expression, X: Ball.of(function(eigenvalue_balls(_symmetric(X)).numbers))


def _symmetric(matrix: Ball) -> Ball:
    """A matrix that is symmetric, as CVXPY's functions of eigenvalues demand."""
    if not all(np.array_equal(part, part.conj().T) for part in matrix):
        raise NotEnclosed("eigenvalues of a matrix that may not be symmetric")
    return matrix


def _matrix_frac(expression: Any, X: Ball, P: Ball) -> Ball:
    """The trace of X'P^{-1}X, with a positive definite P."""
    if not eigenvalue_balls(_symmetric(P)).low[0] > 0.0:
        raise NotEnclosed("matrix_frac of a matrix that may be singular")
    columns = arb_mat(X.numbers.reshape(len(P.mid), -1).tolist())
    product = columns.transpose() * arb_mat(P.numbers.tolist()).solve(columns)
    return Ball.of(np.array(sum(product[i, i] for i in range(product.nrows())), dtype=object))


# ---- functions of FLINT's balls; NaN outside of the domain ---------------------------------------


def monotone(function: Callable[..., arb], *numbers: arb) -> arb:
    """A function of numbers that are not negative, monotone and the same way in each of them."""
    lows, highs = [v.lower().max(arb(0)) for v in numbers], [v.upper() for v in numbers]
    return function(*lows).union(function(*highs))


def _power(expression: Any, x: arb) -> arb:
    # CVXPY's domain: all numbers for p = 1 and even p, else those that are not negative.
    p = float(expression.p.value)
    if p == 1.0:
        return x
    if p >= 0.0 and p % 2.0 == 0.0:
        return monotone(lambda v: v ** int(p), abs(x))
    return monotone(lambda v: v ** arb(p), x) if x >= 0 else NAN


def _huber(expression: Any, x: arb) -> arb:
    M = float(expression.M.value)
    return monotone(lambda v: v * v if v <= M else M * (2 * v - M), abs(x))


def _times_log(x: arb, ratio: arb) -> arb:
    """The product x log(ratio), which is 0 where x is."""
    return x if x == 0 else x * ratio.log()


def _relative_entropy(expression: Any, x: arb, y: arb) -> arb:
    return _times_log(x, x / y) if y > 0 else NAN


def norm_of(p: float, x: Array) -> arb:
    """The p-norm; with p < 1 of numbers that are not negative."""
    if p < 1.0 and not all(v >= 0 for v in x):
        return NAN

    def of_sizes(*sizes: arb) -> arb:
        if p == math.inf:
            return reduce(arb.max, sizes, arb(0))
        used = [size for size in sizes if size != 0]
        if not used or (p < 0.0 and len(used) < len(sizes)):
            return arb(0)
        return _sum(size ** arb(p) for size in used) ** (1 / arb(p))

    return monotone(of_sizes, *map(abs, x))


def _pnorm(expression: Any, x: Array) -> arb:
    return norm_of(float(getattr(expression, "original_p", None) or expression.p), x)


def _geo_mean(expression: Any, x: Array) -> arb:
    """The product of x_i^{w_i}."""
    weights = [arb(w.numerator) / w.denominator for w in map(Fraction, expression.w)]
    used = x[expression._keep]
    if not all(v >= 0 for v in used):
        return NAN
    return monotone(lambda *v: math.prod(map(pow, v, weights), start=arb(1)), *used)


def _inverse(x: arb) -> arb:
    """The inverse of a positive number."""
    return 1 / x if x > 0 else NAN


def _sum(numbers: Iterable[arb]) -> arb:
    return sum(numbers, arb(0))


NAN = arb.nan()

LINEAR = (
    *("AddExpression", "NegExpression", "Sum", "cumsum", "Trace", "index", "special_index"),
    *("reshape", "Hstack", "Vstack", "Concatenate", "transpose", "diag_vec", "diag_mat"),
    *("upper_tri", "Promote", "broadcast_to", "conj"),
)

RULES: dict[str, Callable[..., Ball]] = {
    **dict.fromkeys(LINEAR, _linear),
    **dict.fromkeys(("real", "imag"), _part),
    **dict.fromkeys(("multiply", "kron", "conv", "convolve"), _bilinear),
    **dict.fromkeys(("max", "min", "maximum", "minimum", "cummax", "sum_largest"), _at_both_ends),
    "MulExpression": _product,
    "QuadForm": _quad_form,
    "MatrixFrac": _matrix_frac,
    "abs": lambda e, x: magnitude(x),
    "exp": _of_entries(lambda e, x: x.exp()),
    "log": _of_entries(lambda e, x: x.log()),
    "log1p": _of_entries(lambda e, x: x.log1p()),
    "logistic": _of_entries(lambda e, x: x.exp().log1p()),
    "entr": _of_entries(lambda e, x: -_times_log(x, x)),
    "rel_entr": _of_entries(_relative_entropy),
    "kl_div": _of_entries(lambda e, x, y: _relative_entropy(e, x, y) - x + y),
    "DivExpression": _of_entries(lambda e, x, y: x / y),
    **dict.fromkeys(("Power", "PowerApprox"), _of_entries(_power)),
    "huber": _of_entries(_huber),
    "norm1": _of_vectors(lambda e, x: norm_of(1.0, x)),
    "norm_inf": _of_vectors(lambda e, x: norm_of(math.inf, x)),
    **dict.fromkeys(("Pnorm", "PnormApprox"), _of_vectors(_pnorm)),
    **dict.fromkeys(("GeoMean", "GeoMeanApprox"), _of_vectors(_geo_mean)),
    "log_sum_exp": _of_vectors(lambda e, x: _sum(v.exp() for v in x).log()),
    "quad_over_lin": _of_vectors(lambda e, x, y: _sum(v * v for v in x) * _inverse(y)),
    "lambda_max": _of_eigenvalues(lambda values: values[-1]),
    "log_det": _of_eigenvalues(lambda values: _sum(v.log() for v in values)),
    "tr_inv": _of_eigenvalues(lambda values: _sum(map(_inverse, values))),
    "sigma_max": lambda e, X: Ball.of(_singular_values(X).numbers[-1]),
    "normNuc": lambda e, X: Ball.of(_sum(_singular_values(X).numbers)),
}
"""By the classes of the atoms that are enclosed."""
