"""Unlabeled pairs drawn at random in the place of all of them: an unbiased estimate of each sum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from .arrays import Array, beside, namespace, to_host, to_numbers
from .blocks import Chunk, Terms
from .checks import FloatArray, IntArray

DRAWN_CHUNK = 1 << 20
"""Numbers per chunk of drawn differences."""

DRAWN_CHUNK_THERE = 1 << 26
"""The same on a device."""


@dataclass(frozen=True, eq=False)
class HeldPoints:
    """Points of any library, always at hand, that turn where they are.

    Attributes
    ----------
    points : (n, m) array
    axes : (n, r) array, optional
        Other coordinates, in which v v' is summed.
    """

    points: Array
    axes: Array | None = field(default=None, kw_only=True)

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


@dataclass(frozen=True, eq=False)
class DrawnPairs(HeldPoints):
    """sum_U ~ #U/k times the sum over k drawn pairs.

    Attributes
    ----------
    pairs : (k, 2) array of int
    stands_for : float
        #U/k.
    """

    pairs: IntArray
    stands_for: float

    def over_unlabeled(
        self, metrics: Sequence[FloatArray], terms: Terms
    ) -> tuple[FloatArray, FloatArray]:
        """The two sums, estimated."""
        X = self.points
        xp, there = namespace(X), [beside(X, A) for A in metrics]
        m = (X if self.axes is None else self.axes).shape[1]
        totals: list[list[Any]] = []
        matrix = None
        numbers = DRAWN_CHUNK if isinstance(X, np.ndarray) else DRAWN_CHUNK_THERE
        rows = max(1, numbers // max(1, X.shape[1]))
        for start in range(0, len(self.pairs), rows):
            run = slice(start, min(start + rows, len(self.pairs)))
            V = take_differences(X, self.pairs[run])
            Z = V if self.axes is None else take_differences(self.axes, self.pairs[run])
            sums, weights = terms(Chunk(run), *(xp.sum((V @ A) * V, axis=1) for A in there))
            totals.append(list(sums))
            if weights is not None:
                part = (xp.matrix_transpose(Z) * weights) @ Z
                matrix = part if matrix is None else matrix + part
        total = self.stands_for * np.sum(to_numbers(totals), axis=0)
        if matrix is None:
            return total, np.zeros((m, m))
        return total, self.stands_for * np.asarray(to_host(matrix))

    def differences(self, pairs: IntArray) -> Array:
        """v_k of these pairs."""
        return take_differences(self.points, pairs)


def take_differences(points: Array, pairs: IntArray) -> Array:
    """x_i - x_j for each row (i, j)."""
    xp = namespace(points)
    i, j = np.ascontiguousarray(pairs.T)
    if not isinstance(points, np.ndarray):
        i, j = (xp.asarray(index, device=points.device) for index in (i, j))
    return xp.take(points, i, axis=0) - xp.take(points, j, axis=0)
