"""Numbers carried as two doubles, and products with them whose errors are bounded.

A `Pair` stands for the exact sum of its two arrays. Products of doubles are split without error
(Dekker), sums keep their rounding errors (Knuth), so that a product of a sparse matrix and a pair
is known to about u^2 = 2^-106 of the sizes of its terms. Underflow costs at most `TINY` for each
term and is added to every bound; overflow makes a bound infinite or NaN, which proves nothing.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...numerics.checks import FloatArray
from ...numerics.rounding import SECOND_ORDER, UNIT, gamma

# Above the error of a product of two doubles, and of its rounding error, that underflow.
TINY = 2.0**-1060

_SPLITTER = 2.0**27 + 1.0


class Pair(NamedTuple):
    """The exact sums high + low of two arrays of doubles."""

    high: FloatArray
    low: FloatArray

    @classmethod
    def of(cls, values: FloatArray) -> Pair:
        """The pair of an array of doubles."""
        return cls(np.array(values, dtype=np.float64), np.zeros_like(values, dtype=np.float64))

    def plus(self, change: FloatArray) -> Pair:
        """The sum with an array of doubles, nearly: the result is the pair that it is."""
        high, error = two_sum(self.high, change)
        return Pair(*two_sum(high, self.low + error))

    def scaled(self, factor: float) -> Pair:
        """The product with a power of two."""
        return Pair(self.high * factor, self.low * factor)

    def at(self, rows: Any) -> Pair:
        """Some of the entries."""
        return Pair(self.high[rows], self.low[rows])

    @property
    def is_finite(self) -> bool:
        """Whether no entry is NaN or infinite."""
        return bool(np.isfinite(self.high).all() and np.isfinite(self.low).all())


class Enclosure(NamedTuple):
    """Numbers within `error` of the pair (high, low)."""

    high: FloatArray
    low: FloatArray
    error: FloatArray

    @property
    def size(self) -> FloatArray:
        """Upper bounds on the absolute values."""
        return (np.abs(self.high) + np.abs(self.low) + self.error) * (1.0 + 8.0 * UNIT)

    @property
    def value(self) -> FloatArray:
        """The nearest doubles."""
        return self.high + self.low


def two_sum(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The rounded sum and its rounding error: their sum is a + b (Knuth)."""
    total = a + b
    other = total - a
    return total, (a - (total - other)) + (b - other)


def two_product(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The rounded product and its rounding error: their sum is ab but for underflow (Dekker)."""
    product = a * b
    a_high = _SPLITTER * a
    a_high = a_high - (a_high - a)
    b_high = _SPLITTER * b
    b_high = b_high - (b_high - b)
    a_low, b_low = a - a_high, b - b_high
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, error


class ColumnSums:
    """Sums of the terms of each column of a sparse matrix, by a tree whose plan is kept."""

    def __init__(self, counts: FloatArray) -> None:
        self.counts = np.asarray(counts)
        self.levels: list[tuple[FloatArray, FloatArray, FloatArray]] = []
        counts = self.counts
        while counts.size and counts.max() > 1:
            starts = np.cumsum(counts) - counts
            fewer = (counts + 1) // 2
            position = np.arange(fewer.sum()) - np.repeat(np.cumsum(fewer) - fewer, fewer)
            first = np.repeat(starts, fewer) + 2 * position
            paired = 2 * position + 1 < np.repeat(counts, fewer)
            self.levels.append((first, np.flatnonzero(paired), first[paired] + 1))
            counts = fewer
        self.filled = np.flatnonzero(self.counts)

    def __call__(self, high: FloatArray, low: FloatArray) -> Enclosure:
        """Enclose the sums of terms high + low with |low| <= 4u |high|, but for underflow."""
        # On each of L levels a + b = s + t without error, |t| <= u |s|, and t joins the low parts,
        # which are added as doubles. All low parts together are at most (4 + L) u S, S the sum of
        # the sizes of the terms, and each goes through at most 2L + 2 additions.
        size, n = np.abs(high), len(self.counts)
        for first, paired, second in self.levels:
            total, error = two_sum(high[first[paired]], high[second])
            rest = low[first[paired]] + low[second] + error
            high, low, size_second = high[first], low[first], size[second]
            size = size[first]
            high[paired], low[paired] = total, rest
            size[paired] += size_second
        sums, rests, sizes = np.zeros((3, n))
        sums[self.filled], rests[self.filled], sizes[self.filled] = high, low, size
        depth = len(self.levels)
        relative = gamma(2 * depth + 6) * (depth + 6) * UNIT * SECOND_ORDER
        error = relative * sizes * (1.0 + gamma(depth + 2)) + 4.0 * TINY * self.counts
        return Enclosure(sums, rests, error)


class AccurateMatrix:
    """A sparse matrix whose transpose is multiplied by pairs."""

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix.tocsc()
        self.sums = ColumnSums(np.diff(self.matrix.indptr))

    def transpose_times(self, y: Pair, constant: FloatArray | None = None) -> Enclosure:
        """Enclose A'y, or A'y + c."""
        data, rows = self.matrix.data, self.matrix.indices
        with np.errstate(all="ignore"):
            y = Pair(*two_sum(y.high, y.low))  # now |low| <= u |high|
            product, error = two_product(data, y.high[rows])
            # The product data * low is rounded, and so is its sum with the error: 3u^2 |product|,
            # which is below what `ColumnSums` allows for.
            high, low = two_sum(product, error + data * y.low[rows])
            found = self.sums(high, low)
            if constant is None:
                return found
            total, rest = two_sum(found.high, constant)
            error_of_rest = 2.0 * UNIT * (np.abs(rest) + np.abs(found.low))
            return Enclosure(total, rest + found.low, found.error + error_of_rest)


def dot(a: FloatArray, y: Pair) -> tuple[float, float]:
    """Bound a'y from below and above; infinite where it overflows."""
    with np.errstate(all="ignore"):
        terms = np.concatenate([*two_product(a, y.high), *two_product(a, y.low)])
    return sum_bounds(terms, 4.0 * TINY * len(terms))


def sum_bounds(terms: FloatArray, error: float = 0.0) -> tuple[float, float]:
    """Bound the sum of doubles, each off by as much as to make `error` in all."""
    try:
        total = math.fsum(terms.tolist())
    except (OverflowError, ValueError):
        return -math.inf, math.inf
    if not math.isfinite(total) or not error < math.inf:
        return -math.inf, math.inf
    margin = 2.0 * UNIT * (abs(total) + error) + 2.0 * error + (math.ulp(0.0) if error else 0.0)
    if not margin:  # the sum of no terms, or zero: without error
        return total, total
    return math.nextafter(total - margin, -math.inf), math.nextafter(total + margin, math.inf)


def norm_above(values: FloatArray) -> float:
    """An upper bound on the Euclidean length of a vector of nonnegative doubles."""
    largest = float(np.max(np.abs(values), initial=0.0))
    if not largest:
        return 0.0
    if not math.isfinite(largest):
        return math.inf
    power = math.frexp(largest)[1]
    scaled = np.ldexp(values, -power)
    squares = math.fsum((scaled * scaled).tolist()) + len(values) * TINY
    try:
        return math.ldexp(math.sqrt(squares) * (1.0 + 16.0 * UNIT), power)
    except OverflowError:
        return math.inf


def power_of_two_below(values: FloatArray) -> FloatArray:
    """The largest powers of two not above positive doubles; zero stays zero."""
    exponent = np.frexp(values)[1]
    return np.where(values > 0.0, np.ldexp(1.0, exponent - 1), 0.0)
