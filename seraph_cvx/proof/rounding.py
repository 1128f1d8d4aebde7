"""The constants of the error analysis, one name each: `examples/guide/certificate.md` lists them.

Floating point is IEEE double precision, rounded to nearest: fl(a op b) = (a op b)(1 + e) with
|e| <= u = 2^-53 unless it underflows. A sum or product of several numbers, in any order, with or
without fused multiply-add, is off by a factor within 1 +- gamma(h), h the number of roundings that
a term goes through.
"""

from __future__ import annotations

import math
import operator
import sys
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

# The unit roundoff u, the largest relative error of one operation.
UNIT = 2.0**-53

# exp, log and log1p of every array library are trusted to this many units u, and no further.
FUNCTION_ERROR = 8

# Roundings in log(1 + e^{-s}), given s.
LOSS_ROUNDINGS = 2 * FUNCTION_ERROR + 8

# Roundings in H(r) = -r log r - (1 - r) log1p(-r), given r.
ENTROPY_ROUNDINGS = FUNCTION_ERROR + 8

# How far a soft label 1 / (1 + e^x) may be off, relative to itself, given x.
LABEL_ERROR = (FUNCTION_ERROR + 8) * UNIT

# More roundings in a term where one kernel of a GPU makes them all: see `cuda/bounds.py`.
FUSED_ROUNDINGS = 4_096

# The largest threshold, and threshold times sharpness, for which that is enough.
FUSED_THRESHOLD = 5.0

# At least the roundings that are left: shifts, scalings, weights, the last additions.
FEW_ROUNDINGS = 24

# Scores are cut off at this: e^-600 is far from underflow, and negligible compared with 1.
LARGEST_SCORE = 600.0

# An upper bound on what a pair beyond the largest score adds to f: above e^-600.
SMALLEST_LOSS = 2.0**-860

# First-order bounds on -ln(1 - x) are cut off at this, at x = 1 - 2^-10.
LARGEST_LOG = 10.0 * math.log(2.0)

# An upper bound on 1/(1 - x) at the x at which that logarithm is cut off.
LARGEST_ODDS = 2.0**10

# Roundings in a product of a few scalars, and in adding a handful of such products.
TERM_ROUNDINGS = 16

# Products of gammas, and the rounding of the bounds themselves, are covered by this factor.
SECOND_ORDER = 1.01

# An upper bound on all underflows in one entry of a matrix of pairs whose weights are up to 1.
UNDERFLOW_ENTRY = 2.0**-900


def gamma(roundings: int) -> float:
    """The relative error of h roundings in a row: h*u / (1 - h*u), rounded up."""
    size = roundings * UNIT
    if size > 0.01:
        raise ArithmeticError(f"A sum of {roundings} terms is too long for double precision.")
    return size / (1.0 - size) * (1.0 + 8.0 * UNIT)


def score_slack(n_features: int, rank: int) -> float:
    """The relative error of v'LL'v = |L'v|^2 against the sizes in `DistanceBounds`, and of s.

    2 (m + 2) roundings for L'x, its square counted; r + 6 for the sum of squares and the product
    of the two points; the rest for the shift of the points, eta, and a soft label's sharpness.
    """
    return 2.0 * gamma(2 * n_features + rank + FEW_ROUNDINGS + 8) * SECOND_ORDER


@dataclass(frozen=True, eq=False)
class MatrixError:
    """How far a computed matrix of weighted pairs may be off, in terms of any diagonal matrix D.

    |E_ab| <= u_a u_b implies E >= -t D with t = sum_a u_a^2 / D_a; and |E_ab| <= u_a w_b + w_a u_b
    implies it with t = 2 sqrt(sum_a u_a^2 / D_a) sqrt(sum_a w_a^2 / D_a). What else is in the
    matrix has an error E >= -t D for t = sum_a e_a / D_a, e = `others`.
    """

    spread: NDArray[np.float64]  # of the coordinates, and of what they are rounded from: `Swept`
    n_base: int  # products that a coordinate is the sum of
    chain: int  # additions that a term of the sum goes through
    largest_weight: float  # of a pair: what underflows is multiplied by no more than this
    others: NDArray[np.float64] | None = None

    def relative_to(self, diagonal: NDArray[np.float64]) -> float:
        """The least t with E >= -t * Diag(diagonal), for the error E of the matrix.

        With (g, h) = `spread`: the sum, |E_ab| <= 2 gamma(chain) sqrt(g_a g_b); the coordinates,
        |E_ab| <= 2 gamma(n_base) (sqrt(g_a h_b) + sqrt(h_a g_b)) and a square.
        """
        if not len(diagonal):
            return 0.0
        underflow = UNDERFLOW_ENTRY * self.largest_weight
        g, h = (float(x) for x in ((self.spread + underflow) / diagonal).sum(axis=1))
        of_sum = 2.0 * gamma(self.chain + FEW_ROUNDINGS) * g
        one = gamma(self.n_base + 4)
        of_others = 0.0 if self.others is None else float((self.others / diagonal).sum())
        of_pairs = of_sum + 4.0 * one * math.sqrt(g * h) + 2.0 * one * one * h
        return (of_pairs + of_others) * SECOND_ORDER


def entry_bound(matrix: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Bound the entries of a matrix by one of rank one: |matrix_ij| <= w l_i l_j.

    For a PSD matrix l^2 is its diagonal and w = 1, nearly.
    """
    lengths = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    shape = np.outer(lengths, lengths)
    if np.any((shape == 0.0) & (matrix != 0.0)):
        lengths = np.full_like(lengths, np.sqrt(np.max(np.abs(matrix))))
        shape = np.outer(lengths, lengths)
    return lengths, 1.001 * float(np.max(np.abs(matrix) / np.where(shape > 0.0, shape, 1.0)))


def at_least(*terms: float) -> float:
    """Bound a sum of terms, each the product of a few doubles, from below by a double.

    A term may be off by `TERM_ROUNDINGS` roundings, or by underflow; the sum itself is exact.
    Minus infinity where it overflows.
    """
    try:
        size = math.fsum(map(abs, terms))
        total = math.fsum(terms) - gamma(TERM_ROUNDINGS) * size - UNDERFLOW_ENTRY * (size > 0.0)
    except (OverflowError, ValueError):  # infinite, or infinity minus infinity
        return -math.inf
    return -math.inf if math.isnan(total) else total


def at_most(*terms: float) -> float:
    """Bound a sum of terms from above by a double: see `at_least`."""
    return -at_least(*map(operator.neg, terms))


def product_above(*factors: float, exponent: int = 0) -> float:
    """Bound a product of nonnegative doubles times 2^exponent from above.

    No factor of it overflows or underflows unless the whole does.
    """
    mantissa = 1.0 + 2.0 * len(factors) * UNIT
    for factor in factors:
        part, power = math.frexp(factor)
        mantissa, exponent = mantissa * part, exponent + power
    try:
        bound = math.ldexp(mantissa, exponent)
    except OverflowError:
        return math.inf
    return math.nextafter(bound, math.inf) if mantissa else 0.0


def down(x: Fraction) -> float:
    """The largest double not above x; minus infinity below all of them."""
    try:
        value = float(x)
    except OverflowError:
        return sys.float_info.max if x > 0 else -math.inf
    return math.nextafter(value, -math.inf) if Fraction(value) > x else value


def up(x: Fraction) -> float:
    """The smallest double not below x; infinity above all of them."""
    return 0.0 - down(-x)
