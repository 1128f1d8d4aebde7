"""Sums in which no number goes through many additions, so that their rounding errors stay small.

A sum of n numbers one after the other is off by up to n roundings. In runs of a few, and these runs
in runs again, it is off by a few dozen. On arrays of another library than NumPy the sums are plain,
and the counts of this file are not for them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from .arrays import Array, namespace
from .checks import FloatArray

RUN = 16
"""Numbers, at least, that are added one after the other."""


def short_totals(terms: Iterable[Array]) -> list[Any]:
    """The sum of each array; all have one shape, and none is kept longer than needed.

    Examples
    --------
    >>> [float(total) for total in short_totals([np.arange(100.0), np.ones(100)])]
    [4950.0, 100.0]
    """
    return _finished([_begun(values) for values in terms])


def _begun(values: Array) -> Array:
    """A few numbers with the same sum; on a device that sum."""
    if isinstance(values, np.ndarray):
        return _in_one_level(values.reshape(1, -1))
    xp = namespace(values)
    return xp.sum(xp.sum(values, axis=-1))


def _finished(parts: list[Array]) -> list[Any]:
    if not isinstance(parts[0], np.ndarray):
        return parts
    table = np.concatenate(parts)
    while table.shape[1] > RUN:
        table = _in_one_level(table)
    return list(np.add.reduce(table, axis=1))


def _in_one_level(table: FloatArray) -> FloatArray:
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
    """The number of additions, at most, that a number goes through in `short_totals`.

    Examples
    --------
    >>> totals_chain(10), totals_chain(100), totals_chain(1_000_000)
    (10, 24, 84)
    """
    levels = 0
    while count > RUN:
        count = -(-count // RUN)
        levels += 1
    return levels * (RUN + 1) + count


def short_product(left: FloatArray, right: FloatArray) -> FloatArray:
    """The product of two matrices, the left one perhaps a stack of them, in runs of terms.

    Examples
    --------
    >>> short_product(np.ones((1, 100)), np.ones((100, 1)))
    array([[100.]])
    """
    n = len(right)
    run = _run(n)
    total = left[..., :run] @ right[:run]
    for start in range(run, n, run):
        total += left[..., start : start + run] @ right[start : start + run]
    return np.asarray(total)


def short_column_sums(matrix: FloatArray) -> FloatArray:
    """The sum of each column, in the same runs.

    Examples
    --------
    >>> short_column_sums(np.ones((100, 2)))
    array([100., 100.])
    """
    starts = np.arange(0, len(matrix), _run(len(matrix)))
    return np.asarray(np.add.reduce(np.add.reduceat(matrix, starts, axis=0), axis=0))


def product_chain(count: int) -> int:
    """The number of additions, at most, that a term goes through in these two.

    Examples
    --------
    >>> product_chain(10), product_chain(100), product_chain(1_000_000)
    (11, 23, 2000)
    """
    run = _run(count)
    return min(run, count) + -(-count // run)


def _run(count: int) -> int:
    return max(RUN, math.isqrt(count))
