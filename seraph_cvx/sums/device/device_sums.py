"""Sums over the unlabeled pairs on the user's own device: a GPU, or any array API library."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from ...numerics.arrays import Array, namespace, to_device_of
from ...numerics.checks import FloatArray, IntArray
from ...pairs.labeled_pairs import Labels
from ..blocks import Block, Layout, Terms
from ..distances import Metric
from ..drawn_pairs import HeldPoints
from ..sweep import Swept, longest_chain, sweep

DEVICE_BLOCK = 8192
"""Points per side of a block on a device: half a GiB of distances at a time."""


@dataclass(frozen=True, eq=False)
class DeviceSums(HeldPoints):
    """Sums over points held as arrays of another library, those of labeled pairs first.

    In that order all labeled pairs lie in the first few blocks, and only these need to know them.
    """

    order: IntArray
    blocks: list[Block]

    @classmethod
    def of(cls, points: FloatArray, labels: Labels, device_array: Array) -> Self:
        """Copy the points to the device of `device_array`."""
        involved = labels.members
        order = np.concatenate([involved, np.setdiff1d(np.arange(len(points)), involved)])
        moved = labels.renumbered(np.argsort(order))
        on_device = to_device_of(device_array, np.ascontiguousarray(points[order]))
        return cls(on_device, order, list(_masked(len(points), moved, on_device)))

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
        return longest_chain(len(self.order), DEVICE_BLOCK, len(self.blocks), in_runs=False)

    def over_unlabeled(self, metrics: Sequence[Metric], terms: Terms) -> Swept:
        """Sweep the unlabeled pairs on the device; see `PairSums.over_unlabeled`."""
        Z = self.points if self.coordinates is None else self.coordinates
        return sweep(self.points, Z, self.blocks, metrics, terms, sizes=self.sizes)


def _masked(n: int, labels: Labels, device_array: Array) -> Iterator[Block]:
    """The blocks of the layout, each with a mask on the device of the entries that are no pair."""
    xp = namespace(device_array)
    triangles: dict[int, Array] = {}
    for block in Layout(n, labels, DEVICE_BLOCK).blocks:
        height = block.rows.stop - block.rows.start
        width = block.columns.stop - block.columns.start
        on_diagonal = block.rows == block.columns
        if len(block.excluded[0]):
            hidden = np.tri(height, width, dtype=bool) & on_diagonal
            hidden[block.excluded] = True
            mask = xp.asarray(hidden, device=device_array.device)
        elif on_diagonal:
            if height not in triangles:
                everything = xp.ones((height, width), dtype=xp.int8, device=device_array.device)
                triangles[height] = xp.tril(everything) > 0
            mask = triangles[height]
        else:
            mask = None
        yield replace(block, excluded=mask)
