"""Matrix products X T whose rounding errors do not grow with the number of columns of X.

X and T are cut into a leading part of few bits and a rest: the product of the leading parts is a
sum of integers below 2^53, once scaled, and so exact in any order of summation. The products that
contain a rest are small, and so are their errors.
"""

from __future__ import annotations

import numpy as np

from .checks import FloatArray, IntArray
from .medians import column_medians
from .rounding import SECOND_ORDER

ROWS = 2_048
"""Rows that are multiplied at a time, so that what is made of them stays in the cache."""


def exact_difference(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Subtract b from a, and return the rounding error too: their sum is a - b (Knuth).

    Examples
    --------
    >>> high, low = exact_difference(np.array([1.0]), np.array([2.0**-60]))
    >>> high[0], low[0] == -(2.0**-60)
    (np.float64(1.0), np.True_)
    """
    high = a - b
    other = high - a
    return high, (a - (high - other)) - (b + other)


def accurate_product(
    high: FloatArray, low: FloatArray, T: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Multiply (high + low) T, with sizes s: each entry is off by at most gamma(m + 4) s.

    Parameters
    ----------
    high, low : (n, m) arrays
        Numbers, and what they have been rounded by.
    T : (m, k) array

    Returns
    -------
    product : (n, k) array
    sizes : (n, k) array
        Hardly more than |product| / (m + 4), and in any case not much more than |high| |T|.

    Notes
    -----
    With X = X_1 + X_2 and T = T_1 + T_2 the product is X_1 T_1, exactly, plus
    X_1 T_2 + X_2 T + low T, which are off by gamma(m) of the sizes of their factors and by three
    additions; the last one is a rounding of the product itself.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, T = rng.normal(size=(5, 300)), rng.normal(size=(300, 2))
    >>> product, sizes = accurate_product(X, np.zeros_like(X), T)
    >>> bool(np.all(sizes < 1e-2 * (np.abs(X) @ np.abs(T))))
    True
    """
    powers = _column_powers(high)
    T = np.ldexp(T, powers[:, None])
    product, sizes = (np.empty((len(high), T.shape[1])) for _ in range(2))
    for start in range(0, len(high), ROWS):
        run = slice(start, start + ROWS)
        X, rest = (np.ldexp(part[run], -powers) for part in (high, low))
        product[run], sizes[run] = _scaled_product(X, rest, T)
    return product, sizes


def _column_powers(X: FloatArray) -> IntArray:
    """A power of two near the typical size of each column, which is not that of a far point."""
    if not len(X):
        return np.zeros(X.shape[1], dtype=np.int64)
    typical = column_medians(np.abs(X))
    empty = typical == 0.0
    if np.any(empty):
        typical[empty] = np.max(np.abs(X[:, empty]), axis=0)
    return np.asarray(np.frexp(typical)[1])


def _scaled_product(
    X: FloatArray, rest: FloatArray, T: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The product (X + rest) T and its sizes, for numbers of ordinary size."""
    m = len(T)
    bits = (53 - m.bit_length()) // 2  # m * 2^(2 bits) <= 2^53
    lead_X, rest_X = _cut(X, 1, bits)
    lead_T, rest_T = _cut(T, 0, bits)
    product = lead_X @ lead_T + (lead_X @ rest_T + (rest_X @ T + rest @ T))
    sizes = np.abs(lead_X) @ np.abs(rest_T) + (np.abs(rest_X) + np.abs(rest)) @ np.abs(T)
    return product, np.asarray(SECOND_ORDER * (sizes + np.abs(product) / (m + 4)))


def _cut(matrix: FloatArray, axis: int, bits: int) -> tuple[FloatArray, FloatArray]:
    """The leading bits, counted from the largest entry along an axis, and the rest: exact."""
    largest = np.max(np.abs(matrix), axis=axis, keepdims=True, initial=0.0)
    powers = np.frexp(largest)[1] - bits
    lead = np.ldexp(np.rint(np.ldexp(matrix, -powers)), powers)
    return lead, matrix - lead
