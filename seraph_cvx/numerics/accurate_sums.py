"""Sums and products whose rounding errors stay small however many terms they have.

A sum of n numbers one after the other is off by up to n roundings. In runs of a few, and these runs
in runs again, it is off by a few dozen. A product X T is made of leading parts of few bits, which
are multiplied exactly, and of rests, which are small, and so are their errors.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..proof.rounding import SECOND_ORDER
from .arrays import Array, namespace, to_device_of, to_host
from .checks import FloatArray

# Numbers, at least, that are added one after the other.
RUN = 16

# Rows that are multiplied at a time, so that what is made of them stays in the cache.
ROWS = 2_048

# Leading bits are not looked for below this power of two, whose inverse is a double too.
LEAST_POWER = -1_000

# Medians of longer tables are those of so many rows drawn at random.
MEDIAN_ROWS = 1_024


def short_totals(terms: Iterable[Array]) -> list[Any]:
    """The sum of each array; all have one shape, and none is kept longer than needed."""
    parts = []
    for values in terms:
        if isinstance(values, np.ndarray):
            parts.append(_add_runs(values.reshape(1, -1)))
        else:
            xp = namespace(values)
            parts.append(xp.sum(xp.sum(values, axis=-1)))
    if not isinstance(parts[0], np.ndarray):
        return parts
    table = np.concatenate(parts)
    while table.shape[1] > RUN:
        table = _add_runs(table)
    return list(np.add.reduce(table, axis=1))


def _add_runs(table: FloatArray) -> FloatArray:
    """Numbers with the same sum along each row, fewer by a factor of RUN."""
    count = table.shape[1]
    if count <= RUN:
        return table
    width = -(-count // RUN)
    full = count // width * width
    fewer = np.add.reduce(table[:, :full].reshape(len(table), -1, width), axis=1)
    fewer[:, : count - full] += table[:, full:]
    return np.asarray(fewer)


def totals_chain(count: int) -> int:
    """The number of additions, at most, that a number goes through in `short_totals`."""
    levels = 0
    while count > RUN:
        count = -(-count // RUN)
        levels += 1
    return levels * (RUN + 1) + count


def short_product(left: FloatArray, right: FloatArray) -> FloatArray:
    """The product of two matrices, the left one perhaps a stack of them, in runs of terms."""
    n = len(right)
    run = max(RUN, math.isqrt(n))
    total = left[..., :run] @ right[:run]
    for start in range(run, n, run):
        total += left[..., start : start + run] @ right[start : start + run]
    return total


def product_chain(count: int) -> int:
    """The number of additions, at most, that a term goes through in `short_product`."""
    run = max(RUN, math.isqrt(count))
    return min(run, count) + -(-count // run)


def column_medians(X: FloatArray) -> FloatArray:
    """The median of each column of a table with at least one row; of a long one, nearly.

    Any number in the midst of a column will do to shift it or to measure its scale.
    """
    X = sampled_rows(X)
    # NumPy sorts rows of the transpose several times faster than it selects.
    ranked = np.sort(np.ascontiguousarray(X.T), axis=1)
    return 0.5 * (ranked[:, (len(X) - 1) // 2] + ranked[:, len(X) // 2])


def sampled_rows(X: FloatArray) -> FloatArray:
    """The rows whose medians are taken: all of them, or a sample, always the same one."""
    if len(X) <= MEDIAN_ROWS:
        return X
    return X[np.random.default_rng(0).integers(len(X), size=MEDIAN_ROWS)]


def exact_difference(a: Array, b: Array) -> tuple[Array, Array]:
    """Subtract b from a, and return the rounding error too: their sum is a - b (Knuth)."""
    high = a - b
    other = high - a
    return high, (a - (high - other)) - (b + other)


def accurate_product(high: Array, low: Array, T: FloatArray) -> tuple[Array, Array]:
    """Multiply (high + low) T, with sizes s: each entry is off by at most gamma(m + 4) s.

    `high` and `low` are (n, m) arrays, on a device perhaps; T is an (m, k) array of NumPy's.
    """
    # With X = X_1 + X_2 and T = T_1 + T_2 the product is X_1 T_1, exactly, plus
    # X_1 T_2 + X_2 T + low T, which are off by gamma(m) of the sizes of their factors and by three
    # additions; the last one is a rounding of the product itself. The sizes are hardly more than
    # |product| / (m + 4), and in any case not much more than |high| |T|.
    xp, n = namespace(high), high.shape[0]
    typical = np.ones(len(T))  # size of each column, which is not that of a far point
    if n:
        typical = column_medians(np.abs(to_host(high[:: 1 + n // MEDIAN_ROWS, :])))
        largest = to_host(xp.max(xp.abs(high), axis=0))
        typical = np.where(typical == 0.0, largest, typical)
    powers = np.frexp(typical)[1]
    T = np.ldexp(T, powers[:, None])
    scale = to_device_of(high, np.ldexp(1.0, -powers))
    n_rows = ROWS if isinstance(high, np.ndarray) else max(1, n)
    parts = []
    for start in range(0, max(1, n), n_rows):
        run = slice(start, start + n_rows)
        parts.append(_scaled_product(high[run, :] * scale, low[run, :] * scale, T))
    if len(parts) == 1:
        return parts[0]
    product, sizes = (xp.concat(part) for part in zip(*parts, strict=True))
    return product, sizes


def _scaled_product(X: Array, rest: Array, T: FloatArray) -> tuple[Array, Array]:
    """The product (X + rest) T and its sizes, for numbers of ordinary size."""
    m, size = len(T), namespace(X).abs
    bits = (53 - m.bit_length()) // 2  # m * 2^(2 bits) <= 2^53
    lead_X, rest_X = _cut(X, 1, bits)
    lead_T, rest_T = _cut(to_device_of(X, T), 0, bits)
    T = to_device_of(X, T)
    product = lead_X @ lead_T + (lead_X @ rest_T + (rest_X @ T + rest @ T))
    sizes = size(lead_X) @ size(rest_T) + (size(rest_X) + size(rest)) @ size(T)
    return product, SECOND_ORDER * (sizes + size(product) / (m + 4))


def _cut(matrix: Array, axis: int, bits: int) -> tuple[Array, Array]:
    """The leading bits, counted from the largest entry along an axis, and the rest: exact."""
    xp = namespace(matrix)
    if not matrix.shape[axis]:
        return matrix, matrix
    largest = to_host(xp.max(xp.abs(matrix), axis=axis, keepdims=True))
    powers = np.maximum(np.frexp(largest)[1] - bits, LEAST_POWER)
    up = to_device_of(matrix, np.ldexp(1.0, powers))
    lead = xp.round(matrix * to_device_of(matrix, np.ldexp(1.0, -powers))) * up
    return lead, matrix - lead
