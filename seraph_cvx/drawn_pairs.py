"""Unlabeled pairs drawn at random in the place of all of them: an unbiased estimate of each sum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from .arrays import Array, beside, namespace, to_host, to_numbers
from .blocks import Chunk, Terms
from .checks import FloatArray, IntArray

DRAWN_CHUNK = 1 << 20
"""Numbers per chunk of drawn differences."""


def draw_unlabeled(n_points: int, labeled: IntArray, how_many: int, rng: Any) -> IntArray:
    """`how_many` distinct pairs (i, j), i < j, each subset of the unlabeled ones as likely.

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


@dataclass(frozen=True, eq=False)
class DrawnPairs:
    """sum_U ~ #U/k times the sum over k drawn pairs.

    Attributes
    ----------
    points : (n, m) array
        Of any library.
    pairs : (k, 2) array of int
    stands_for : float
        #U/k.
    axes : (n, r) array, optional
        Other coordinates, in which v v' is summed.
    """

    points: Array
    pairs: IntArray
    stands_for: float
    axes: Array | None = None

    @property
    def is_at_hand(self) -> bool:
        """Always."""
        return True

    def in_coordinates(self, T: FloatArray) -> Self:
        """The points T'x."""
        return replace(self, points=self.points @ beside(self.points, T))

    def summed_in(self, T: FloatArray) -> Self:
        """The same distances; v v' along the axes T."""
        return replace(self, axes=self.points @ beside(self.points, T))

    def over_unlabeled(
        self, metrics: Sequence[FloatArray], terms: Terms
    ) -> tuple[FloatArray, FloatArray]:
        """The two sums, estimated."""
        X = self.points
        xp, there = namespace(X), [beside(X, A) for A in metrics]
        m = (X if self.axes is None else self.axes).shape[1]
        totals: list[list[Any]] = []
        matrix = None
        rows = max(1, DRAWN_CHUNK // max(1, X.shape[1]))
        for start in range(0, len(self.pairs), rows):
            run = slice(start, min(start + rows, len(self.pairs)))
            V = self._differences(X, run)
            Z = V if self.axes is None else self._differences(self.axes, run)
            sums, weights = terms(Chunk(run), *(xp.sum((V @ A) * V, axis=1) for A in there))
            totals.append(list(sums))
            if weights is not None:
                part = (xp.matrix_transpose(Z) * weights) @ Z
                matrix = part if matrix is None else matrix + part
        total = self.stands_for * np.sum(to_numbers(totals), axis=0)
        if matrix is None:
            return total, np.zeros((m, m))
        return total, self.stands_for * np.asarray(to_host(matrix))

    @cached_property
    def differences(self) -> Array:
        """v_k of each drawn pair."""
        return self._differences(self.points, slice(0, len(self.pairs)))

    def _differences(self, points: Array, run: slice) -> Array:
        xp = namespace(points)
        i, j = np.ascontiguousarray(self.pairs[run].T)
        if not isinstance(points, np.ndarray):
            i, j = (xp.asarray(index, device=points.device) for index in (i, j))
        return xp.take(points, i, axis=0) - xp.take(points, j, axis=0)


def _first_seen(numbers: IntArray) -> IntArray:
    """Each number once, in the order of arrival: the earlier ones are a fair draw."""
    return numbers[np.sort(np.unique(numbers, return_index=True)[1])]


def _number(pairs: IntArray, n: int) -> IntArray:
    """The place of (i, j), i < j, in lexicographic order."""
    i, j = pairs.T
    return np.asarray(i * n - i * (i + 1) // 2 + j - i - 1)


def _pairs_of(numbers: IntArray, n: int) -> IntArray:
    """The pair at each place."""
    starts = np.arange(n) * n - np.arange(n) * (np.arange(n) + 1) // 2
    i = np.searchsorted(starts, numbers, side="right") - 1
    return np.column_stack([i, numbers - starts[i] + i + 1])
