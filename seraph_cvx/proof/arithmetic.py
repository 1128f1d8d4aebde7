"""Numbers carried as two doubles, and products with them whose errors are bounded.

A `Pair` stands for the exact sum of its two arrays. Products of doubles are split without error
(Dekker), sums keep their rounding errors (Knuth), so that a product of a sparse matrix and a pair
is known to about u^2 = 2^-106 of the sizes of its terms. Underflow costs at most `TINY` for each
term and is added to every bound; overflow makes a bound infinite or NaN, which proves nothing.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .rounding import SECOND_ORDER, UNIT, gamma

Array: TypeAlias = NDArray[Any]

# Above the error of a product of two doubles, and of its rounding error, that underflow.
TINY = 2.0**-1060

_SPLITTER = 2.0**27 + 1.0


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """The rounded sum and its rounding error: their sum is a + b (Knuth)."""
    total = a + b
    other = total - a
    return total, (a - (total - other)) + (b - other)


def two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """The rounded product and its rounding error: their sum is ab but for underflow (Dekker)."""
    product, a_high, b_high = a * b, _SPLITTER * a, _SPLITTER * b
    a_high, b_high = a_high - (a_high - a), b_high - (b_high - b)
    a_low, b_low = a - a_high, b - b_high
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, error


class Pair(NamedTuple):
    """The exact sums high + low of two arrays of doubles."""

    high: Array
    low: Array

    @classmethod
    def of(cls, values: Array) -> Pair:
        """The pair of an array of doubles."""
        return cls(np.array(values, dtype=np.float64), np.zeros(np.shape(values)))

    def plus(self, change: Array) -> Pair:
        """The sum with an array of doubles, nearly: the result is the pair that it is."""
        high, error = two_sum(self.high, change)
        return Pair(*two_sum(high, self.low + error))

    def spread(self, places: Array, size: int) -> Pair:
        """The entries at some places of a vector that is zero elsewhere."""
        full = Pair.of(np.zeros(size))
        full.high[places], full.low[places] = self
        return full

    @property
    def is_finite(self) -> bool:
        """Whether no entry is NaN or infinite."""
        return bool(np.isfinite(self.high).all() and np.isfinite(self.low).all())


Vector: TypeAlias = Pair | list[Fraction]
"""A point of a proof: sums of two doubles, or exact rationals."""


def as_pair(point: Vector) -> Pair:
    """A point as sums of two doubles: the nearest of rationals."""
    if isinstance(point, Pair):
        return point
    high = [float(x) for x in point]
    low = [float(x - Fraction(h)) for x, h in zip(point, high, strict=True)]
    return Pair(np.array(high), np.array(low))


class Enclosure(NamedTuple):
    """Numbers within `error` of the pair (high, low)."""

    high: Array
    low: Array
    error: Array

    @property
    def size(self) -> Array:
        """Upper bounds on the absolute values."""
        return (np.abs(self.high) + np.abs(self.low) + self.error) * (1.0 + 8.0 * UNIT)

    def plus(self, high: Array, low: Array, error: Array) -> Enclosure:
        """Enclose the sum with what is within `error` of high + low."""
        total, rest = two_sum(self.high, high)
        sizes = np.abs(rest) + np.abs(self.low) + np.abs(low)
        wider = (self.error + error + 4.0 * UNIT * sizes) * (1.0 + 8.0 * UNIT)
        return Enclosure(*two_sum(total, rest + self.low + low), wider)


class AccurateMatrix:
    """A sparse matrix whose transpose is multiplied by pairs.

    The terms of each column are added by a tree, whose plan is kept.
    """

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix.tocsc()
        self.counts = counts = np.diff(self.matrix.indptr)
        self.levels: list[tuple[Array, Array, Array]] = []
        while counts.size and counts.max() > 1:
            starts, fewer = np.cumsum(counts) - counts, (counts + 1) // 2
            position = np.arange(fewer.sum()) - np.repeat(np.cumsum(fewer) - fewer, fewer)
            first = np.repeat(starts, fewer) + 2 * position
            paired = 2 * position + 1 < np.repeat(counts, fewer)
            self.levels.append((first, np.flatnonzero(paired), first[paired] + 1))
            counts = fewer

    def transpose_times(self, y: Pair, constant: Array | None = None) -> Enclosure:
        """Enclose A'y, or A'y + c."""
        data, rows = self.matrix.data, self.matrix.indices
        with np.errstate(all="ignore"):
            y = Pair(*two_sum(y.high, y.low))  # now |low| <= u |high|
            product, error = two_product(data, y.high[rows])
            # The product data * low is rounded, and so is its sum with the error: each term is off
            # by 3u^2 |product|.
            found = self._sums(*two_sum(product, error + data * y.low[rows]))
            zero = np.zeros(len(self.counts))
            return found if constant is None else found.plus(constant, zero, zero)

    def _sums(self, high: Array, low: Array) -> Enclosure:
        """Enclose the sums of the terms high + low, |low| <= 2u |high|, of each column."""
        # On each of L levels a + b = s + t without error, |t| <= u |s|, and t joins the low parts,
        # which are added as doubles. All low parts together are at most (L + 2) u S, S the sum of
        # the sizes of the terms, and each goes through at most 2L additions.
        size, depth = np.abs(high), len(self.levels)
        for first, paired, second in self.levels:
            total, error = two_sum(high[first[paired]], high[second])
            rest, sizes = low[first[paired]] + low[second] + error, size[second]
            high, low, size = high[first], low[first], size[first]
            high[paired], low[paired] = total, rest
            size[paired] += sizes
        sums = np.zeros((3, len(self.counts)))
        sums[:, self.counts > 0] = high, low, size
        relative = gamma(2 * depth + 6) * (depth + 6) * UNIT * SECOND_ORDER
        high, low = two_sum(sums[0], sums[1])
        return Enclosure(high, low, relative * sums[2] + 8.0 * TINY * self.counts)


def dot(a: Array, y: Pair) -> tuple[float, float]:
    """Bound a'y from below and above; infinite where it overflows."""
    if not a.any():
        return 0.0, 0.0
    with np.errstate(all="ignore"):
        terms = np.concatenate([*two_product(a, y.high), *two_product(a, y.low)])
    try:
        total = math.fsum(terms.tolist())
    except (OverflowError, ValueError):
        return -math.inf, math.inf
    if not math.isfinite(total):
        return -math.inf, math.inf
    margin = 2.0 * UNIT * abs(total) + 4.0 * TINY * len(terms)
    return math.nextafter(total - margin, -math.inf), math.nextafter(total + margin, math.inf)


def norm_above(values: Array) -> float:
    """An upper bound on the Euclidean length of a vector of nonnegative doubles."""
    largest = float(np.max(values, initial=0.0))
    if not largest or not math.isfinite(largest):
        return largest if largest == 0.0 else math.inf
    power = math.frexp(largest)[1]
    scaled = np.ldexp(values, -power)
    squares = math.fsum((scaled * scaled).tolist()) + len(values) * TINY
    try:
        return math.ldexp(math.sqrt(squares) * (1.0 + 16.0 * UNIT), power)
    except OverflowError:
        return math.inf


def power_of_two_below(values: Any) -> Array:
    """The largest powers of two not above positive doubles; zero stays zero."""
    values = np.asarray(values, dtype=np.float64)
    return np.where(values > 0.0, np.ldexp(1.0, np.frexp(values)[1] - 1), 0.0)
