"""Matrix products X T whose rounding errors do not grow with the number of columns of X.

X and T are cut into a leading part of few bits and a rest: the product of the leading parts is a
sum of integers below 2^53, once scaled, and so exact in any order of summation. The products that
contain a rest are small, and so are their errors.
"""

from __future__ import annotations

import numpy as np

from .arrays import Array, namespace, to_device_of, to_host
from .checks import FloatArray, IntArray
from .medians import MANY_ROWS, column_medians
from .rounding import SECOND_ORDER

ROWS = 2_048
"""Rows that are multiplied at a time, so that what is made of them stays in the cache."""

LEAST_POWER = -1_000
"""Leading bits are not looked for below this power of two, whose inverse is a double too."""


def exact_difference(a: Array, b: Array) -> tuple[Array, Array]:
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


def accurate_product(high: Array, low: Array, T: FloatArray) -> tuple[Array, Array]:
    """Multiply (high + low) T, with sizes s: each entry is off by at most gamma(m + 4) s.

    Parameters
    ----------
    high, low : (n, m) arrays
        Numbers, and what they have been rounded by. On a device the product is made there.
    T : (m, k) array
        NumPy's.

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
    scale = to_device_of(high, np.ldexp(1.0, -powers))
    n_rows = ROWS if isinstance(high, np.ndarray) else max(1, high.shape[0])
    found = []
    for start in range(0, max(1, high.shape[0]), n_rows):
        run = slice(start, start + n_rows)
        found.append(_scaled_product(high[run, :] * scale, low[run, :] * scale, T))
    if len(found) == 1:
        return found[0]
    product, sizes = (namespace(high).concat(parts) for parts in zip(*found, strict=True))
    return product, sizes


def _column_powers(X: Array) -> IntArray:
    """A power of two near the typical size of each column, which is not that of a far point."""
    xp, (n, m) = namespace(X), X.shape
    if not n:
        return np.zeros(m, dtype=np.int64)
    typical = column_medians(np.abs(to_host(X[:: 1 + n // MANY_ROWS, :])))
    empty = typical == 0.0
    if np.any(empty):
        typical[empty] = to_host(xp.max(xp.abs(X), axis=0))[empty]
    return np.asarray(np.frexp(typical)[1])


def _scaled_product(X: Array, rest: Array, T: FloatArray) -> tuple[Array, Array]:
    """The product (X + rest) T and its sizes, for numbers of ordinary size."""
    m, size = len(T), namespace(X).abs
    bits = (53 - m.bit_length()) // 2  # m * 2^(2 bits) <= 2^53
    lead_X, rest_X = _cut(X, 1, bits)
    lead_T, rest_T, T = (to_device_of(X, part) for part in (*_cut(T, 0, bits), T))
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
    up, down = (to_device_of(matrix, np.ldexp(1.0, power)) for power in (powers, -powers))
    lead = xp.round(matrix * down) * up
    return lead, matrix - lead
