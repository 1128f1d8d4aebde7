"""All pairs of n points in blocks, and these in strips; each is made when its turn comes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ...numerics.checks import FloatArray, IntArray
from ...pairs.labeled_pairs import Labels

BLOCK = 120
"""Points per side of a block, at most: its arrays are then below the 128 KiB from which on memory
is asked of the system, and given back, each time."""

ROWS_A_STRIP = 2
"""Rows of blocks in a strip, at least."""

ENOUGH_ROWS = 8
"""With fewer rows of blocks there is one strip: all is done before a second thread is awake."""

MOST_STRIPS = 256
"""Strips, at most: each is a partial sum of its own."""


@dataclass(frozen=True, eq=False)
class LabeledEntries:
    """The entries of a block that are labeled pairs, and the confidence of each (None: 1).

    `is_whole` tells that all of them are.
    """

    entries: Any
    confidence: FloatArray | None = None
    is_whole: bool = False


class FaceBlock(NamedTuple):
    """All pairs of a block, rows x columns; on the diagonal with both of its halves."""

    rows: slice
    columns: slice
    labeled: LabeledEntries | None


@dataclass(frozen=True, eq=False)
class FaceLayout:
    """The blocks of the upper triangle of n points, in strips.

    The strips depend on n alone, so that sums over them, added in their order, are the same
    whichever thread or worker made which.

    Attributes
    ----------
    labels : LabeledPairs or ClassLabels
        Of points that come first.

    Examples
    --------
    >>> from seraph_cvx.pairs.labeled_pairs import ClassLabels
    >>> layout = FaceLayout(2_000, ClassLabels(np.arange(2), np.arange(2)))
    >>> layout.n_strips, [len(list(layout.strip(k))) for k in range(layout.n_strips)]
    (8, [20, 19, 19, 19, 19, 19, 19, 19])
    """

    n_points: int
    labels: Labels

    @classmethod
    def of(cls, members: IntArray, labels: Labels, n_points: int) -> tuple[IntArray, FaceLayout]:
        """Lay out some of n points, those with a label first: their numbers in that order, too."""
        has_label = np.zeros(n_points, dtype=bool)
        has_label[labels.members] = True
        order = np.concatenate([members[has_label[members]], members[~has_label[members]]])
        number = np.full(n_points, -1)
        number[order] = np.arange(len(order))
        return order, cls(len(order), labels.renumbered(number))

    @property
    def n_strips(self) -> int:
        """The number of strips."""
        rows = self._n_sides
        return min(MOST_STRIPS, rows // ROWS_A_STRIP) if rows >= ENOUGH_ROWS else 1

    def strip(self, number: int) -> Iterator[FaceBlock]:
        """The blocks of a strip: rows from top and bottom in turn, so that all are alike."""
        last = self.n_strips - 1
        for start in range(0, self._n_sides, self.n_strips):
            is_back = start // self.n_strips % 2 == 1
            a = start + (last - number if is_back else number)
            if a >= self._n_sides:
                continue
            rows = self._side(a)
            for columns in map(self._side, range(a, self._n_sides)):
                yield FaceBlock(rows, columns, self._labeled.get((rows.start, columns.start)))

    def _side(self, number: int) -> slice:
        size = self._size
        return slice(number * size, min((number + 1) * size, self.n_points))

    @property
    def _n_sides(self) -> int:
        return -(-self.n_points // self._size)

    @cached_property
    def _size(self) -> int:
        n = self.n_points
        return -(-n // -(-n // BLOCK)) if n else 1

    @cached_property
    def _labeled(self) -> dict[tuple[int, int], LabeledEntries]:
        """The labeled entries of the blocks that have such, by the first points of their sides."""
        some = int(np.max(self.labels.members, initial=-1)) + 1
        edges = [self._side(number) for number in range(-(-some // self._size))]
        entries = self._all_of_the_first if self.labels.is_complete else self._listed
        found = {
            (rows.start, columns.start): entries(rows, columns)
            for k, rows in enumerate(edges)
            for columns in edges[k:]
        }
        return {block: labeled for block, labeled in found.items() if labeled is not None}

    def _all_of_the_first(self, rows: slice, columns: slice) -> LabeledEntries | None:
        """Every pair of the points that come first."""
        some = len(self.labels.members)
        height, width = (min(part.stop, some) - part.start for part in (rows, columns))
        is_whole = max(rows.stop, columns.stop) <= some
        return LabeledEntries((slice(0, height), slice(0, width)), is_whole=is_whole)

    def _listed(self, rows: slice, columns: slice) -> LabeledEntries | None:
        """The listed pairs that lie in a block, in both halves of one on the diagonal."""
        i, j = self.labels.listed.T
        c = self.labels.confidence
        if rows == columns:
            i, j = np.concatenate([i, j]), np.concatenate([j, i])
            c = None if c is None else np.concatenate([c, c])
        inside = (i >= rows.start) & (i < rows.stop) & (j >= columns.start) & (j < columns.stop)
        if not np.any(inside):
            return None
        entries = i[inside] - rows.start, j[inside] - columns.start
        return LabeledEntries(entries, None if c is None else c[inside])
