"""Squared distances of pairs under a metric, and bounds on them that hold in floating point.

A sweep asks for distances in two ways: over a block of pairs by one matrix product, and of listed
pairs by their differences. A plain matrix gives them as rounded; :class:`DistanceBounds` gives
numbers that are proven to lie below (and, if asked for, above) the exact distances.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, TypeAlias

import numpy as np

from ..numerics.arrays import Array, namespace, to_device_of
from ..numerics.checks import FloatArray
from ..numerics.rounding import SECOND_ORDER
from .blocks import EXCLUDED_DISTANCE, Block

UNDERFLOW = 2.0**-960
"""More than all underflows in one distance together."""


@dataclass(frozen=True, eq=False)
class DistanceBounds:
    """Lower bounds on ||v||_A^2, A = LL' or a given matrix, and upper ones if asked for.

    The rounding error of a distance is at most slack * (size_i + size_j), with size_i the sum of
    the squares of |x_i|' |L| (or of |x_i|' sqrt(diag A)): see `examples/guide/certificate.md`.

    With `rest` the bounds hold for every A with |A - LL'|_ab <= rest_a rest_b: that adds at most
    (rest'|v|)^2 <= 2 (rest'|x_i|)^2 + 2 (rest'|x_j|)^2.

    Attributes
    ----------
    factor : (m, r) array
        L; or, with `matrix`, one column: sqrt(diag A).
    slack : float
        The relative error, an upper bound on twice gamma of the number of roundings.
    matrix : (m, m) array, optional
        A itself, where it need not be PSD.
    with_upper : bool
        Give (lower, upper) instead of lower alone.
    rest : (m,) array, optional
        By how much A may differ from LL'.
    """

    factor: FloatArray
    slack: float
    matrix: FloatArray | None = None
    with_upper: bool = False
    rest: FloatArray | None = None

    def on_points(self, X: Array) -> Callable[[Block], Any]:
        """The bounds over a block of the pairs of these points."""
        left, right, square, width = self.terms(X)
        lower = gram_distances(left, right, square)
        if not self.with_upper:
            return lower

        def both(block: Block) -> tuple[Array, Array]:
            d = lower(block)
            return d, d + (width[block.rows, None] + width[None, block.columns])

        return both

    def terms(self, X: Array) -> tuple[Array, Array, Array, Array]:
        """What the bounds are made of: left, right, square, width.

        square_i + square_j - 2 left_i . right_j is a lower bound, width_i + width_j more an upper.
        """
        xp = namespace(X)
        L, error = to_device_of(X, self.factor), self._error(X, 2.0)
        if self.matrix is None:
            left = right = X @ L
        else:
            left, right = X @ to_device_of(X, self.matrix), X
        return left, right, xp.sum(left * right, axis=1) - error, 2.0 * error

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


Metric: TypeAlias = FloatArray | DistanceBounds
"""The metric, or bounds on it, under which a sweep takes distances."""


def block_distances(X: Array, metric: Metric) -> Callable[[Block], Any]:
    """Distances over a block of pairs of X; EXCLUDED_DISTANCE where an entry is no such pair."""
    if isinstance(metric, DistanceBounds):
        return metric.on_points(X)
    left = X @ to_device_of(X, metric)
    return gram_distances(left, X, namespace(X).sum(left * X, axis=1))


def listed_distances(V: Array, metric: Metric) -> Any:
    """Distances of listed pairs, given their differences V."""
    if isinstance(metric, DistanceBounds):
        return metric.on_differences(V)
    return namespace(V).sum((V @ to_device_of(V, metric)) * V, axis=1)


def gram_distances(left: Array, right: Array, square: Array) -> Callable[[Block], Array]:
    """Squared distances over a block by a Gram matrix; EXCLUDED_DISTANCE off its pairs.

    They are square_i + square_j - 2 left_i . right_j.
    """
    if isinstance(left, np.ndarray):
        return partial(_gram_numpy, right, -2.0 * left, square)
    return partial(_gram_device, *wide_sides(left, right, square))


def wide_sides(left: Array, right: Array, square: Array) -> tuple[Array, Array]:
    """Two arrays whose products, row by row, are square_i + square_j - 2 left_i . right_j."""
    xp = namespace(left)
    one = xp.ones_like(square)
    return (
        xp.concat([-2.0 * left, square[:, None], one[:, None]], axis=1),
        xp.concat([right, one[:, None], square[:, None]], axis=1),
    )


def _gram_numpy(
    right: FloatArray, doubled: FloatArray, square: FloatArray, block: Block
) -> FloatArray:
    d = doubled[block.rows] @ right[block.columns].T
    d += square[block.rows, None]
    d += square[block.columns]
    if block.rows == block.columns:
        d += _lower_triangle(len(d))
    if block.excluded is not None and len(block.excluded[0]):
        d[block.excluded] = EXCLUDED_DISTANCE
    return d


def _gram_device(left: Array, right: Array, block: Block) -> Array:
    """Make all three terms by one product: on a GPU another pass over the block costs more."""
    xp = namespace(left)
    d = left[block.rows, :] @ xp.matrix_transpose(right[block.columns, :])
    return d if block.excluded is None else xp.where(block.excluded, EXCLUDED_DISTANCE, d)


@cache
def _lower_triangle(size: int) -> FloatArray:
    """A square matrix of EXCLUDED_DISTANCE on and below the diagonal, 0 above it."""
    return np.tril(np.full((size, size), EXCLUDED_DISTANCE))
