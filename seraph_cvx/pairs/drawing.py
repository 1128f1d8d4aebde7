"""Draws unlabeled pairs at random."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..numerics.checks import IntArray


def draw_unlabeled(n_points: int, labeled: IntArray, how_many: int, rng: Any) -> IntArray:
    """Draw distinct unlabeled pairs (i, j), i < j; all subsets of this size are equally likely.

    Examples
    --------
    >>> draw_unlabeled(3, np.array([[0, 1]]), 2, np.random.RandomState(0))
    array([[0, 2],
           [1, 2]])
    """
    n_pairs = n_points * (n_points - 1) // 2
    known = _number(labeled, n_points)
    drawn = np.empty(0, dtype=np.int64)
    while len(drawn) < how_many:
        more = rng.randint(n_pairs, size=int(1.1 * (how_many - len(drawn))) + 16, dtype=np.int64)
        drawn = _first_seen(np.concatenate([drawn, more]))
        drawn = drawn[~np.isin(drawn, known)]
    return _pairs_of(np.sort(drawn[:how_many]), n_points)


def _first_seen(numbers: IntArray) -> IntArray:
    """Remove repeated numbers, keeping the order in which they were drawn."""
    return numbers[np.sort(np.unique(numbers, return_index=True)[1])]


def _number(pairs: IntArray, n: int) -> IntArray:
    """The number of each pair (i, j), i < j, in lexicographic order."""
    i, j = pairs.T
    return np.asarray(i * n - i * (i + 1) // 2 + j - i - 1)


def _pairs_of(numbers: IntArray, n: int) -> IntArray:
    """The pair of each number."""
    starts = np.arange(n) * n - np.arange(n) * (np.arange(n) + 1) // 2
    i = np.searchsorted(starts, numbers, side="right") - 1
    return np.column_stack([i, numbers - starts[i] + i + 1])
