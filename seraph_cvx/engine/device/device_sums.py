"""Sums over the unlabeled pairs on the user's own device: a GPU, or any array API library."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, Self

import numpy as np

from ...numerics.arrays import (
    Array,
    bound_kernels,
    index_on_device_of,
    namespace,
    to_device_of,
    to_host,
    to_numbers,
)
from ...numerics.checks import FloatArray, IntArray
from ...numerics.rounding import FUSED_ROUNDINGS
from ...pairs.labeled_pairs import Labels
from ..blocks import Block, Layout, Terms
from ..distances import DistanceBounds, Metric, wide_sides
from ..drawn_pairs import HeldPoints, members_first
from ..sweep import FusedTerms, Swept, longest_chain, spread_of, sweep, weighted_moment

DEVICE_BLOCK = 8192
"""Points per side of a block on a device: half a GiB of distances at a time."""

MOST_WEIGHTED = 64
"""Coordinates, at most, of matrices that a kernel sums."""


@dataclass(frozen=True, eq=False)
class MaskedLayout:
    """The blocks of a layout, with masks on a device of the entries that are no pair.

    The masks are made when a sweep first asks for them: a fit by fused kernels never does.

    Attributes
    ----------
    unmasked : Layout
    library : module
        The array API functions of the device's library.
    device : object
    """

    unmasked: Layout
    library: Any
    device: Any

    @cached_property
    def blocks(self) -> list[Block]:
        """All blocks, each with its mask; None where every entry is a pair."""
        triangle = cache(self._triangle)  # most blocks have the same size
        return [
            replace(block, excluded=self._mask(block, triangle)) for block in self.unmasked.blocks
        ]

    def _mask(self, block: Block, triangle: Callable[[int], Array]) -> Array | None:
        height = block.rows.stop - block.rows.start
        width = block.columns.stop - block.columns.start
        on_diagonal = block.rows == block.columns
        if len(block.excluded[0]):
            hidden = np.tri(height, width, dtype=bool) & on_diagonal
            hidden[block.excluded] = True
            return self.library.asarray(hidden, device=self.device)
        return triangle(height) if on_diagonal else None

    def _triangle(self, side: int) -> Array:
        """The lower triangle of a block, its diagonal included."""
        xp = self.library
        return xp.tril(xp.ones((side, side), dtype=xp.int8, device=self.device)) > 0


@dataclass(frozen=True, eq=False)
class DeviceSums(HeldPoints):
    """Sums over points held as arrays of another library, those of labeled pairs first.

    In that order all labeled pairs lie in the first few blocks, and only these need to know them.

    Attributes
    ----------
    order : (n,) array
        Which point is where.
    layout : MaskedLayout
        The blocks of the unlabeled pairs, in that order.
    n_labeled : int or None
        The number of labeled points, if all pairs of them are labeled.
    """

    order: IntArray
    layout: MaskedLayout
    n_labeled: int | None

    @classmethod
    def of(cls, points: FloatArray, labels: Labels, device_array: Array) -> Self:
        """Copy the points to the device of `device_array`."""
        order = members_first(labels.members, len(points))
        moved = labels.renumbered(np.argsort(order))
        xp, on_device = namespace(device_array), to_device_of(device_array, points)
        on_device = xp.take(on_device, index_on_device_of(on_device, order), axis=0)
        layout = MaskedLayout(Layout(len(points), moved, DEVICE_BLOCK), xp, on_device.device)
        n_labeled = len(labels.members) if labels.is_complete else None
        return cls(on_device, order, layout, n_labeled)

    def labeled_first(self, members: IntArray) -> Array:
        """The points: they are in that order."""
        return self.points

    def along(self, coordinates: FloatArray, sizes: FloatArray) -> Self:
        """The same distances, with v v' summed in the given coordinates of the points."""
        return super().along(coordinates[self.order], sizes[self.order])

    @property
    def device_array(self) -> Array:
        """The points, which are on the device."""
        return self.points

    @property
    def longest_chain(self) -> int:
        """The number of additions, at most, that a term goes through."""
        n, n_blocks = len(self.order), len(self.layout.unmasked.blocks)
        chain = longest_chain(n, DEVICE_BLOCK, n_blocks, in_runs=False)
        if self.n_labeled is None or bound_kernels(self.points) is None:
            return chain
        return max(chain, 3 * n + FUSED_ROUNDINGS)  # a row, all rows; or what programs leave

    def over_unlabeled(self, metrics: Sequence[Metric], terms: Terms) -> Swept:
        """Sweep the unlabeled pairs on the device; see `PairSums.over_unlabeled`."""
        Z = self.points if self.coordinates is None else self.coordinates
        if isinstance(terms, FusedTerms) and (found := self._by_kernel(metrics, terms, Z)):
            return found
        return sweep(self.points, Z, self.layout.blocks, metrics, terms, sizes=self.sizes)

    def _by_kernel(self, metrics: Sequence[Metric], terms: FusedTerms, Z: Array) -> Swept | None:
        """The same sweep in one kernel, where there is one for it."""
        if self.n_labeled is None or self.sizes is None or Z.shape[1] > MOST_WEIGHTED:
            return None
        kernels = bound_kernels(self.points)
        pairs = terms.on_pairs(len(self.order), self.n_labeled)
        if kernels is None or pairs is None:
            return None
        bounds = [metric for metric in metrics if isinstance(metric, DistanceBounds)]
        found = [metric.terms(self.points) for metric in bounds]
        sides = [wide_sides(*parts[:3]) for parts in found]
        labels = sides[1] if len(sides) > 1 else None
        sums, degrees, upper = kernels.weighted_bounds(sides[0], found[0][3], labels, Z, pairs)
        cross = Z.T @ upper
        matrix = weighted_moment(degrees, Z, in_runs=False) - cross - cross.T
        spread = spread_of(degrees, Z, self.sizes)
        totals = to_numbers([terms.in_order(sums)])[0]
        return Swept(totals, np.asarray(to_host(matrix)), np.asarray(to_host(spread)))
