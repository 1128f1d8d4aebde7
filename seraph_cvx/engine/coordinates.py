"""Coordinates of the points, in which distances are taken or matrices are summed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, Self

import numpy as np

from ..numerics.accurate_sums import (
    accurate_product,
    column_medians,
    exact_difference,
    sampled_rows,
)
from ..numerics.arrays import Array, namespace
from ..numerics.checks import FloatArray, IntArray
from .distances import Metric
from .layout import Terms
from .passes import Swept


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Coordinates z = basis' b of points b, in which distances are taken or matrices are summed.

    The points b are those of the data, or `base`; `with_sizes`: rounding errors are bounded.
    """

    basis: FloatArray
    base: FloatArray | None = None
    with_sizes: bool = True


@dataclass(frozen=True, eq=False)
class TransformedPoints:
    """Points in other coordinates. Never materialized for remote sums, which hold the points."""

    coordinates: Coordinates
    centered: FloatArray
    given: FloatArray | None

    @cached_property
    def values(self) -> tuple[FloatArray, FloatArray | None]:
        """The transformed points, shifted by their median, and magnitudes for rounding bounds."""
        basis, base = self.coordinates.basis, self.coordinates.base
        if not self.coordinates.with_sizes:
            Z, sizes = self.centered @ basis, None
        else:
            points = self.centered if self.given is None else self.given
            points = points if base is None else base
            exact = exact_difference(points, column_medians(points))
            Z, sizes = accurate_product(*exact, basis)
        return shifted(Z, column_medians(Z), sizes, len(basis))

    @property
    def shift(self) -> FloatArray:
        """About the median of the transformed points, found from some of them."""
        return column_medians(sampled_rows(self.centered) @ self.coordinates.basis)

    def for_remote(self, sums: RemoteSums) -> RemoteSums | None:
        """Remote sums with matrices in these coordinates."""
        if self.coordinates.base is None:
            basis, with_sizes = self.coordinates.basis, self.coordinates.with_sizes
            return sums.with_matrix_coordinates(basis, self.shift, with_spread=with_sizes)
        Z, sizes = self.values
        return sums.with_matrix_points(Z, np.asarray(sizes))


def transformed(
    points: Array, T: Array, shift: Array, with_sizes: bool = False
) -> tuple[Array, Array | None]:
    """The points T'x - shift and, if asked for, the sizes that bound their rounding errors."""
    xp = namespace(points)
    sizes = xp.abs(points) @ xp.abs(T) if with_sizes else None
    return shifted(points @ T, shift, sizes, T.shape[0])


def shifted(Z: Array, shift: Array, sizes: Array | None, n_base: int) -> tuple[Array, Array | None]:
    """Shift coordinates that are sums of `n_base` products; their sizes cover that rounding too."""
    Z = Z - shift
    return Z, None if sizes is None else sizes + namespace(Z).abs(Z) / (n_base + 4)


class RemoteSums(Protocol):
    """Another way to sum over unlabeled pairs than by threads: a device, workers, a sample."""

    @property
    def is_available(self) -> bool:
        """Whether these sums can be used now."""

    def with_point_coordinates(self, T: FloatArray, shift: FloatArray) -> Self:
        """The same sums over pairs of the points T'x - shift."""

    def with_matrix_coordinates(
        self, T: FloatArray, shift: FloatArray, with_spread: bool = False
    ) -> Self:
        """The same distances, with v v' summed for the points T'x - shift."""

    def with_matrix_points(self, Z: FloatArray, sizes: FloatArray) -> RemoteSums | None:
        """The same distances, with v v' summed for the points Z; None if unsupported."""

    @property
    def device_array(self) -> Array | None:
        """An array of the device on which labeled pairs are summed over too, or None."""

    @property
    def held_points(self) -> Array | None:
        """The points, where a device holds them."""

    @property
    def held_coordinates(self) -> Array | None:
        """The points as v v' is summed for them, where a device holds them."""

    @property
    def drawn(self) -> IntArray | None:
        """The drawn pairs that stand for all unlabeled ones, if they do."""

    @property
    def stands_for(self) -> float:
        """The number of unlabeled pairs that each one counted stands for."""

    @property
    def longest_chain(self) -> int:
        """The number of additions, at most, that any term of a sum goes through."""

    def over_unlabeled(self, metrics: Sequence[Metric], terms: Terms) -> Swept:
        """Sum the terms and the weighted v v' over the unlabeled pairs."""


def take_ends(points: Array, pairs: tuple[Array, Array]) -> tuple[Array, Array]:
    """The points x_i and the points x_j of pairs, given as the numbers i and the numbers j."""
    take = namespace(points).take
    return take(points, pairs[0], axis=0), take(points, pairs[1], axis=0)
