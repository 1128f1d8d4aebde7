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
    known = np.unique(_number(labeled, n_points))
    n_unlabeled = n_pairs - len(known)
    if 2 * how_many <= n_unlabeled:
        return _pairs_of(_draw(n_pairs, known, how_many, rng), n_points)
    left_out = _draw(n_pairs, known, n_unlabeled - how_many, rng)
    kept = np.ones(n_pairs, dtype=bool)
    kept[known] = kept[left_out] = False
    return _pairs_of(np.flatnonzero(kept), n_points)


def _draw(n: int, known: IntArray, how_many: int, rng: Any) -> IntArray:
    """Draw distinct numbers below n, but none of the known ones; sorted.

    No number is preferred to another at any time, so that no set of them is.
    """
    drawn = np.empty(0, dtype=np.int64)
    while len(drawn) < how_many:
        more = rng.randint(n, size=how_many - len(drawn), dtype=np.int64)
        drawn = np.sort(np.concatenate([drawn, more]))
        drawn = drawn[np.diff(drawn, prepend=-1) > 0]
        at = np.searchsorted(drawn, known)
        is_drawn = drawn[np.minimum(at, len(drawn) - 1)] == known
        drawn = np.delete(drawn, at[is_drawn])
    return drawn


def _number(pairs: IntArray, n: int) -> IntArray:
    """The number of each pair (i, j), i < j, in lexicographic order."""
    i, j = pairs.T
    return np.asarray(i * n - i * (i + 1) // 2 + j - i - 1)


def _pairs_of(numbers: IntArray, n: int) -> IntArray:
    """The pair of each number, given sorted."""
    starts = np.arange(n) * n - np.arange(n) * (np.arange(n) + 1) // 2
    counts = np.diff(np.searchsorted(numbers, starts), append=len(numbers))
    i = np.repeat(np.arange(n), counts)
    return np.column_stack([i, numbers - starts[i] + i + 1])
