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
from .blocks import EXCLUDED_DISTANCE, Block

UNDERFLOW = 2.0**-960
"""More than all underflows in one distance together."""


@dataclass(frozen=True, eq=False)
class DistanceBounds:
    """Lower bounds on ||v||_A^2, A = LL' or a given matrix, and upper ones if asked for.

    The rounding error of a distance is at most slack * (size_i + size_j), with size_i the sum of
    the squares of |x_i|' |L| (or of |x_i|' sqrt(diag A)): see `examples/guide/certificate.md`.

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
    """

    factor: FloatArray
    slack: float
    matrix: FloatArray | None = None
    with_upper: bool = False

    def on_points(self, X: Array) -> Callable[[Block], Any]:
        """The bounds over a block of the pairs of these points."""
        xp = namespace(X)
        L = to_device_of(X, self.factor)
        sizes = xp.abs(X) @ xp.abs(L)
        error = self.slack * xp.sum(sizes * sizes, axis=1) + UNDERFLOW
        if self.matrix is None:
            left = right = X @ L
        else:
            left, right = X @ to_device_of(X, self.matrix), X
        square = xp.sum(left * right, axis=1) - error
        lower = gram_distances(left, right, square)
        if not self.with_upper:
            return lower
        width = 2.0 * error

        def both(block: Block) -> tuple[Array, Array]:
            d = lower(block)
            return d, d + (width[block.rows, None] + width[None, block.columns])

        return both

    def on_differences(self, V: Array) -> Any:
        """The bounds for listed pairs, given their differences."""
        xp = namespace(V)
        L = to_device_of(V, self.factor)
        sizes = xp.abs(V) @ xp.abs(L)
        error = self.slack * xp.sum(sizes * sizes, axis=1) + UNDERFLOW
        if self.matrix is None:
            images = V @ L
            d = xp.sum(images * images, axis=1) - error
        else:
            d = xp.sum((V @ to_device_of(V, self.matrix)) * V, axis=1) - error
        return (d, d + 2.0 * error) if self.with_upper else d


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
    xp = namespace(left)
    doubled = -2.0 * left
    if isinstance(left, np.ndarray):
        return partial(_gram_numpy, right, doubled, square)
    one = xp.ones_like(square)
    wide_left = xp.concat([doubled, square[:, None], one[:, None]], axis=1)
    wide_right = xp.concat([right, one[:, None], square[:, None]], axis=1)
    return partial(_gram_device, wide_left, wide_right)


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
