"""Coordinates of the points; squared distances of pairs, and bounds on them that are proven.

Over a block of pairs they are one matrix product; of listed pairs they come from differences. A
matrix or a factor gives them as rounded; :class:`DistanceBounds` gives numbers that are proven to
lie below (and, if asked for, above) the exact distances.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from ..numerics.accurate_sums import (
    accurate_product,
    column_medians,
    exact_difference,
    sampled_rows,
)
from ..numerics.arrays import Array, namespace, to_device_of
from ..numerics.checks import FloatArray
from ..numerics.psd_cone import scaled_factor
from ..proof.rounding import SECOND_ORDER
from .layout import Block


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
    given: FloatArray

    @cached_property
    def values(self) -> tuple[FloatArray, FloatArray | None]:
        """The transformed points, shifted by their median, and magnitudes for rounding bounds."""
        basis, base = self.coordinates.basis, self.coordinates.base
        if not self.coordinates.with_sizes:
            Z, sizes = self.centered @ basis, None
        else:
            points = self.given if base is None else base
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


EXCLUDED_DISTANCE = 1e200
"""On a device, the squared distance of entries that are no pair: every term vanishes at it."""

UNDERFLOW = 2.0**-960
"""More than all underflows in one distance together."""


@dataclass(frozen=True, eq=False)
class Factor:
    """The metric LL', by its factor L; NumPy takes it for the (m, m) array, which it makes then."""

    L: FloatArray

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> FloatArray:
        matrix = np.asarray(self.L @ self.L.T)
        return matrix if dtype is None else matrix.astype(dtype)


def as_factor(metric: FloatArray | Factor) -> Factor:
    """A metric by a factor of it, to rounding."""
    if isinstance(metric, Factor):
        return metric
    L = scaled_factor(metric)
    return Factor(np.ascontiguousarray(L[:, np.any(L != 0.0, axis=0)]))


@dataclass(frozen=True, eq=False)
class DistanceBounds:
    """Lower bounds on ||v||_A^2, A = LL' or a given matrix, and upper ones if asked for.

    The rounding error of a distance is at most slack * (size_i + size_j), with size_i the sum of
    the squares of |x_i|' |L| (or of |x_i|' sqrt(diag A)): see `examples/guide/certificate.md`.

    With `rest` the bounds hold for every A with |A - LL'|_ab <= rest_a rest_b: that adds at most
    (rest'|v|)^2 <= 2 (rest'|x_i|)^2 + 2 (rest'|x_j|)^2.
    """

    factor: FloatArray  # L; or, with `matrix`, one column: sqrt(diag A)
    slack: float  # the relative error, at least twice gamma of the number of roundings
    matrix: FloatArray | None = None  # A itself, where it need not be PSD
    with_upper: bool = False  # give (lower, upper) instead of lower alone
    rest: FloatArray | None = None  # by how much A may differ from LL'

    def on_points(self, X: Array) -> Callable[[Block], Any]:
        """The bounds over a block of the pairs of these points."""
        left, right, width = self.sides(X)
        return SideProduct(left, right, width if self.with_upper else None)

    def sides(self, X: Array) -> tuple[Array, Array, Array]:
        """Two arrays whose product has the lower bounds; width_i + width_j more is an upper one."""
        xp = namespace(X)
        L, error = to_device_of(X, self.factor), self._error(X, 2.0)
        if self.matrix is None:
            left = right = X @ L
        else:
            left, right = X @ to_device_of(X, self.matrix), X
        return *distance_sides(left, right, xp.sum(left * right, axis=1) - error), 2.0 * error

    def on_differences(self, V: Array) -> Any:
        """The bounds for listed pairs, given their differences."""
        xp = namespace(V)
        L, error = to_device_of(V, self.factor), self._error(V, 1.0)
        if self.matrix is None:
            images = V @ L
            d = xp.sum(images * images, axis=1) - error
        else:
            d = xp.sum((V @ to_device_of(V, self.matrix)) * V, axis=1) - error
        return (d, d + 2.0 * error) if self.with_upper else d

    def _error(self, X: Array, share: float) -> Array:
        """Each row's part of the error of a distance; `share` is that of the rest."""
        xp = namespace(X)
        size = xp.abs(X)
        sizes = size @ xp.abs(to_device_of(X, self.factor))
        error = self.slack * xp.sum(sizes * sizes, axis=1) + UNDERFLOW
        if self.rest is None:
            return error
        rest = size @ to_device_of(X, self.rest)
        return error + share * SECOND_ORDER * rest * rest


Metric: TypeAlias = FloatArray | Factor | DistanceBounds
"""The metric, or bounds on it, under which a pass takes distances."""


def block_distances(X: Array, metric: Metric) -> Callable[[Block], Any]:
    """Distances over a block of pairs of X; those of entries that are no pair mean nothing."""
    if isinstance(metric, DistanceBounds):
        return metric.on_points(X)
    if isinstance(metric, Factor):
        return euclidean_distances(X @ to_device_of(X, metric.L))
    left = X @ to_device_of(X, metric)
    return SideProduct(*distance_sides(left, X, namespace(X).sum(left * X, axis=1)))


def euclidean_distances(Y: Array, less: float = 0.0) -> Callable[[Block], Array]:
    """Squared Euclidean distances over a block of pairs of Y, `less` a number."""
    left, right = distance_sides(Y, Y, namespace(Y).sum(Y * Y, axis=1))
    if less:
        left[:, -2] -= less
    return SideProduct(left, right)


def listed_distances(V: Array, metric: Metric) -> Any:
    """Distances of listed pairs, given their differences V."""
    if isinstance(metric, DistanceBounds):
        return metric.on_differences(V)
    xp = namespace(V)
    if isinstance(metric, Factor):
        return xp.sum((V @ to_device_of(V, metric.L)) ** 2, axis=1)
    return xp.sum((V @ to_device_of(V, metric)) * V, axis=1)


def distance_sides(left: Array, right: Array, square: Array) -> tuple[Array, Array]:
    """Two arrays whose product, [-2 left, square, 1][right, 1, square]', has all distances.

    They are square_i + square_j - 2 left_i . right_j.
    """
    xp = namespace(left)
    square = square[:, None]
    one = xp.ones_like(square)
    return (
        xp.concat([-2.0 * left, square, one], axis=1),
        xp.concat([right, one, square], axis=1),
    )


@dataclass(frozen=True, eq=False)
class SideProduct:
    """The product left right' over a block; on a device EXCLUDED_DISTANCE where it has a mask.

    With a width these are lower bounds, and width_i + width_j more are upper ones.
    """

    left: Array
    right: Array
    width: Array | None = None

    def __call__(self, block: Block) -> Any:
        """The distances of the pairs of a block, or lower and upper bounds on them."""
        d = self.left[block.rows, :] @ self.right[block.columns, :].T
        if block.mask is not None:
            d = namespace(d).where(block.mask, EXCLUDED_DISTANCE, d)
        if self.width is None:
            return d
        return d, d + (self.width[block.rows, None] + self.width[None, block.columns])
