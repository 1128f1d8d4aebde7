"""Coordinates of the points, in which distances are taken or matrices are summed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ..numerics.accurate_sums import (
    accurate_product,
    column_medians,
    exact_difference,
    sampled_rows,
)
from ..numerics.arrays import Array, namespace
from ..numerics.checks import FloatArray


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


def take_ends(points: Array, pairs: tuple[Array, Array]) -> tuple[Array, Array]:
    """The points x_i and the points x_j of pairs, given as the numbers i and the numbers j."""
    take = namespace(points).take
    return take(points, pairs[0], axis=0), take(points, pairs[1], axis=0)
