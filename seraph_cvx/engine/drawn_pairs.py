"""Unlabeled pairs drawn at random instead of all of them: an unbiased estimate of each sum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from ..numerics.arrays import (
    Array,
    index_on_device_of,
    namespace,
    to_device_of,
)
from ..numerics.checks import FloatArray, IntArray
from .blocks import Chunk, Terms
from .distances import Metric
from .sweep import Listed, Swept, sweep_listed, transformed

DRAWN_CHUNK = 1 << 20
"""Numbers per chunk of drawn differences."""

DEVICE_DRAWN_CHUNK = 1 << 26
"""Numbers per chunk of drawn differences on a device."""


@dataclass(frozen=True, eq=False)
class HeldPoints:
    """Points of any array library, whose coordinates change on the device that holds them.

    Attributes
    ----------
    points : (n, m) array
    coordinates : (n, r) array, optional
        Other coordinates, in which v v' is summed.
    sizes : (n, r) array, optional
        What `coordinates` are rounded from, where rounding errors are to be bounded.
    given : (n, m) array, optional
        The points before they were shifted: differences of these are exact to one rounding.
    """

    points: Array
    coordinates: Array | None = field(default=None, kw_only=True)
    sizes: Array | None = field(default=None, kw_only=True)
    given: Array | None = field(default=None, kw_only=True)

    @property
    def is_available(self) -> bool:
        """True: the points are always in memory."""
        return True

    def labeled_first(self, members: IntArray) -> Array:
        """The points, those with these numbers first."""
        order = members_first(members, self.points.shape[0])
        return namespace(self.points).take(
            self.points, index_on_device_of(self.points, order), axis=0
        )

    def in_coordinates(self, T: FloatArray, shift: FloatArray) -> Self:
        """The same sums over pairs of the points T'x - shift."""
        basis, shift = (to_device_of(self.points, x) for x in (T, shift))
        return replace(self, points=transformed(self.points, basis, shift)[0], given=None)

    def summed_in(self, T: FloatArray, shift: FloatArray, with_spread: bool = False) -> Self:
        """The same distances, with v v' summed for the points T'x - shift."""
        basis, shift = (to_device_of(self.points, x) for x in (T, shift))
        coordinates, sizes = transformed(self.points, basis, shift, with_spread)
        return replace(self, coordinates=coordinates, sizes=sizes)

    def along(self, coordinates: FloatArray, sizes: FloatArray) -> Self:
        """The same distances, with v v' summed in the given coordinates, ordered as `points`."""
        return replace(
            self,
            coordinates=to_device_of(self.points, coordinates),
            sizes=to_device_of(self.points, sizes),
        )


@dataclass(frozen=True, eq=False)
class DrawnPairs(HeldPoints):
    """Estimates of sums over the unlabeled pairs: #U/k times the sum over k drawn pairs.

    Attributes
    ----------
    first, second : (k,) arrays of int
        The points of each pair, where the points are.
    stands_for : float
        #U/k.
    """

    first: Array
    second: Array
    stands_for: float

    @classmethod
    def of(cls, points: Array, pairs: IntArray, stands_for: float, given: Array) -> Self:
        """Copy the numbers of the points, a row (i, j) for each pair, to the device of them."""
        first, second = (index_on_device_of(points, ends) for ends in np.ascontiguousarray(pairs.T))
        return cls(points, first, second, stands_for, given=given)

    @property
    def n_drawn(self) -> int:
        """The number of pairs."""
        return int(self.first.shape[0])

    @property
    def device_array(self) -> None:
        """None: labeled pairs are summed over on the host."""
        return None

    @property
    def longest_chain(self) -> int:
        """The number of additions, at most, that a term goes through."""
        return min(self._rows, self.n_drawn) + -(-self.n_drawn // self._rows)

    @property
    def _rows(self) -> int:
        """The number of pairs in a chunk."""
        numbers = DRAWN_CHUNK if isinstance(self.points, np.ndarray) else DEVICE_DRAWN_CHUNK
        return max(1, numbers // max(1, int(self.points.shape[1])))

    def over_unlabeled(self, metrics: Sequence[Metric], terms: Terms) -> Swept:
        """Estimate the sum of the terms and that of the weighted v v'."""
        runs = range(0, self.n_drawn, self._rows)
        chunks = [Chunk(slice(k, min(k + self._rows, self.n_drawn))) for k in runs]
        totals, matrix, spread = sweep_listed(chunks, self._differences, metrics, terms)
        spread = None if spread is None else self.stands_for * spread
        return Swept(self.stands_for * totals, self.stands_for * matrix, spread)

    def _differences(self, run: slice) -> Listed:
        """The differences of drawn pairs for distances, the same for v v', and their sizes."""
        ends = self.first[run], self.second[run]
        V = take_differences(self.points if self.given is None else self.given, ends)
        Z = V if self.coordinates is None else take_differences(self.coordinates, ends)
        return V, Z, None if self.sizes is None else take_sums(self.sizes, ends)


def members_first(members: IntArray, n: int) -> IntArray:
    """The numbers below n, these first."""
    is_other = np.ones(n, dtype=bool)
    is_other[members] = False
    return np.concatenate([members, np.flatnonzero(is_other)])


def take_differences(points: Array, pairs: tuple[Array, Array]) -> Array:
    """The difference x_i - x_j for each pair, given as the numbers i and the numbers j."""
    first, second = take_ends(points, pairs)
    return first - second


def take_sums(points: Array, pairs: tuple[Array, Array]) -> Array:
    """The sum x_i + x_j for each pair, given as the numbers i and the numbers j."""
    first, second = take_ends(points, pairs)
    return first + second


def take_ends(points: Array, pairs: tuple[Array, Array]) -> tuple[Array, Array]:
    """The points x_i and the points x_j of pairs, given as the numbers i and the numbers j."""
    take = namespace(points).take
    return take(points, pairs[0], axis=0), take(points, pairs[1], axis=0)
