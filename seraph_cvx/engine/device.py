"""Sums over the unlabeled pairs on the user's own device."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np

from ..numerics.arrays import (
    Array,
    cuda_kernels,
    namespace,
    to_device_of,
    to_host,
    to_numbers,
)
from ..numerics.checks import FloatArray
from ..numerics.cuda.pair_range import BoundedPairs
from ..proof.rounding import FUSED_ROUNDINGS
from .distances import (
    Block,
    DistanceBounds,
    Layout,
    Metric,
    Terms,
    transformed,
)
from .passes import Limit, Swept, longest_chain, spread_of, sweep

DEVICE_BLOCK = 8192
"""Points per side of a block on a device: half a GiB of distances at a time."""

MOST_WEIGHTED = 64
"""Coordinates, at most, of matrices that a kernel sums, a row of each point in registers."""


@runtime_checkable
class FusedTerms(Protocol):
    """Terms that a kernel of a GPU knows: see `cuda/bounds.py`."""

    def on_pairs(self, n: int, first: int) -> BoundedPairs | None:
        """What is summed over the pairs i < j < n with j >= first; None where no kernel does."""

    def in_order(self, sums: Array) -> list[Array]:
        """The sums of that kernel, as these terms have them."""


@dataclass(frozen=True, eq=False)
class MaskedLayout(Layout):
    """Blocks with masks on a device of the entries that are no unlabeled pair, as one strip.

    The masks are made when a pass first asks for them: a fit by fused kernels never does.
    """

    device_array: Array = None

    def __post_init__(self) -> None:
        super().__post_init__()
        vars(self).update(n_strips=1)

    def strip(self, number: int) -> Iterable[Block]:
        """All blocks, each with its mask; None where every entry is a pair."""
        return self._masked

    @cached_property
    def _masked(self) -> list[Block]:
        triangle = cache(self._triangle)  # most blocks have the same size
        return [replace(block, mask=self._mask(block, triangle)) for block in super().strip(0)]

    def _mask(self, block: Block, triangle: Any) -> Array | None:
        height = block.rows.stop - block.rows.start
        width = block.columns.stop - block.columns.start
        if block.labeled is not None:
            hidden = np.tri(height, width, dtype=bool) & block.is_diagonal
            hidden[block.labeled.entries] = True
            return namespace(self.device_array).asarray(hidden, device=self.device_array.device)
        return triangle(height) if block.is_diagonal else None

    def _triangle(self, side: int) -> Array:
        """The lower triangle of a block, its diagonal included."""
        xp, device = namespace(self.device_array), self.device_array.device
        return xp.tril(xp.ones((side, side), dtype=xp.int8, device=device)) > 0


@dataclass(frozen=True, eq=False)
class DeviceSums:
    """Sums over points held as arrays of another library, on the device that holds them.

    `coordinates` are those in which v v' is summed, `sizes` what they are rounded from; `n_labeled`
    is the number of labeled points, if all pairs of them are labeled.
    """

    points: Array
    layout: MaskedLayout
    n_labeled: int | None
    coordinates: Array | None = None
    sizes: Array | None = None

    @classmethod
    def of(cls, points: FloatArray, layout: Layout, device_array: Array) -> Self:
        """Copy the points to the device of `device_array`."""
        labels = layout.labels
        n_labeled = len(labels.members) if labels is not None and labels.is_complete else None
        on_device = to_device_of(device_array, points)
        blocks = MaskedLayout(len(points), labels, None, DEVICE_BLOCK, on_device)
        return cls(on_device, blocks, n_labeled)

    @property
    def held_coordinates(self) -> Array:
        """The points as v v' is summed for them."""
        return self.points if self.coordinates is None else self.coordinates

    def with_point_coordinates(self, T: FloatArray, shift: FloatArray) -> Self:
        """The same sums over pairs of the points T'x - shift."""
        basis, shift = (to_device_of(self.points, x) for x in (T, shift))
        return replace(self, points=transformed(self.points, basis, shift)[0])

    def with_matrix_coordinates(
        self, T: FloatArray, shift: FloatArray, with_spread: bool = False
    ) -> Self:
        """The same distances, with v v' summed for the points T'x - shift."""
        basis, shift = (to_device_of(self.points, x) for x in (T, shift))
        coordinates, sizes = transformed(self.points, basis, shift, with_spread)
        return replace(self, coordinates=coordinates, sizes=sizes)

    @property
    def longest_chain(self) -> int:
        """The number of additions, at most, that a term goes through."""
        chain = longest_chain(self.layout, in_runs=False)
        if self.n_labeled is None or cuda_kernels(self.points, "bounds") is None:
            return chain
        # a row, all rows; or what programs leave
        return max(chain, 3 * int(self.points.shape[0]) + FUSED_ROUNDINGS)

    def over_unlabeled(self, metrics: Sequence[Metric], terms: Terms, limit: Limit) -> Swept:
        """Sum over the unlabeled pairs on the device."""
        limit.check()
        Z = self.held_coordinates
        if isinstance(terms, FusedTerms) and (sums := self._by_kernel(metrics, terms, Z)):
            return sums
        return sweep(self.layout, self.points, Z, metrics, terms, sizes=self.sizes, limit=limit)

    def _by_kernel(self, metrics: Sequence[Metric], terms: FusedTerms, Z: Array) -> Swept | None:
        """The same sums in one kernel, where there is one for it."""
        if self.n_labeled is None or self.sizes is None or Z.shape[1] > MOST_WEIGHTED:
            return None
        kernels = cuda_kernels(self.points, "bounds")
        pairs = terms.on_pairs(self.points.shape[0], self.n_labeled)
        if kernels is None or pairs is None:
            return None
        bounds = [metric for metric in metrics if isinstance(metric, DistanceBounds)]
        sides = [metric.sides(self.points) for metric in bounds]
        labels = sides[1][:2] if len(sides) > 1 else None
        left, right, width = sides[0]
        sums, degrees, upper = kernels.weighted_bounds((left, right), width, labels, Z, pairs)
        cross = Z.T @ upper
        matrix = (Z.T * degrees) @ Z - cross - cross.T
        spread = spread_of(degrees, Z, self.sizes)
        totals = to_numbers([terms.in_order(sums)])[0]
        return Swept(totals, to_host(matrix), to_host(spread))
