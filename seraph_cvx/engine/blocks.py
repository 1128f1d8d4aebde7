"""The pairs of n points laid out in blocks, tile by tile; labeled pairs in chunks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Concatenate, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..numerics.accurate_sums import short_totals
from ..numerics.arrays import Array, namespace
from ..numerics.checks import FloatArray, IntArray
from ..pairs.labeled_pairs import InBlock, Labels

EXCLUDED_DISTANCE = 1e200
"""The squared distance given to entries that are no unlabeled pair: every term vanishes at it."""

BLOCK = 256
"""Points per side of a block: 512 KiB, so that a block and its temporaries stay in the cache."""

MOST_BLOCKS_ASIDE = 8
"""Blocks per side of a tile, at most."""

KEPT_BLOCKS = 64
"""Blocks that are kept from sweep to sweep; more of them are made anew each time."""

Piece = TypeVar("Piece")


@dataclass(frozen=True)
class Block:
    """The pairs of a block, rows x columns, without the `excluded` ones, which are labeled.

    On the diagonal, where rows == columns, only the pairs above it.

    Attributes
    ----------
    excluded : pair of integer arrays, or a boolean array, or None
        Their local indices; or, on a device, a mask that is true for all but unlabeled pairs.
    """

    rows: slice
    columns: slice
    excluded: Any
    confidence: ClassVar[None] = None

    def weigh(self, terms: Array) -> Array:
        """Return the terms unchanged: unlabeled pairs have no confidence."""
        return terms

    def totals(self, terms: Iterable[Array]) -> list[Any]:
        """Sum each array of terms over the pairs alone: see `short_totals`."""
        return short_totals(x if x.ndim == 1 else self.laid_out(x) for x in terms)

    def pairs_of(self, values: Array) -> Array:
        """Select the values of the unlabeled pairs; flattened if some entries are not pairs."""
        if self._entries is None:
            return values
        return values.reshape(-1)[self._entries]

    def laid_out(self, values: Array) -> Array:
        """Undo `pairs_of`: lay values out as a block, zero where an entry is no unlabeled pair."""
        if self._entries is None:
            if self.excluded is None or isinstance(values, np.ndarray):
                return values
            return namespace(values).where(self.excluded, 0.0, values)
        height, width = (part.stop - part.start for part in (self.rows, self.columns))
        block = np.zeros(height * width)
        block[self._entries] = values
        return block.reshape(height, width)

    @cached_property
    def _entries(self) -> IntArray | None:
        """Which entries of a NumPy block are unlabeled pairs; None if all are, or on a device."""
        on_diagonal = self.rows == self.columns
        if not isinstance(self.excluded, tuple):
            return np.flatnonzero(self._is_above) if on_diagonal and self.excluded is None else None
        if not on_diagonal and not len(self.excluded[0]):
            return None
        is_pair = self._is_above if on_diagonal else np.ones(self._is_above.shape, dtype=bool)
        is_pair[self.excluded] = False
        return np.flatnonzero(is_pair)

    @property
    def _is_above(self) -> NDArray[np.bool_]:
        height, width = (part.stop - part.start for part in (self.rows, self.columns))
        return np.triu(np.ones((height, width), dtype=bool), 1)


@dataclass(frozen=True, eq=False)
class LabeledBlock(Block):
    """The pairs of a block, rows x columns, of points that all have a class.

    Attributes
    ----------
    row_classes, column_classes : integer arrays
    """

    row_classes: IntArray
    column_classes: IntArray

    @property
    def similar(self) -> FloatArray:
        """An indicator: 1 for each pair of one class, else 0."""
        same = self.row_classes[:, None] == self.column_classes
        return np.asarray(self.pairs_of(same.astype(np.float64)))

    @property
    def once(self) -> FloatArray:
        """Unit weights: 1 for each pair."""
        return np.ones_like(self.similar)


@dataclass(frozen=True)
class Chunk:
    """A run of labeled pairs, and the confidence c_k of each (None: 1 for all).

    The first `n_similar` of all labeled pairs are similar.
    """

    pairs: slice
    confidence: FloatArray | None = None
    n_similar: int = 0

    @property
    def similar(self) -> FloatArray:
        """An indicator: 1 for each similar pair, else 0."""
        numbers = np.arange(self.pairs.start, self.pairs.stop)
        return (numbers < self.n_similar).astype(np.float64)

    @property
    def once(self) -> FloatArray:
        """Unit weights: 1 for each pair."""
        return np.ones(self.pairs.stop - self.pairs.start)

    def weigh(self, terms: FloatArray) -> FloatArray:
        """Multiply each term by the confidence of its pair."""
        return terms if self.confidence is None else terms * self.confidence

    def totals(self, terms: Iterable[Array]) -> list[Any]:
        """Sum each array of terms, weighted by confidences: see `short_totals`."""
        return short_totals(self.weigh(values) for values in terms)

    def pairs_of(self, values: Array) -> Array:
        """Return the values unchanged: every one belongs to a pair."""
        return values

    def laid_out(self, values: Array) -> Array:
        """Return the values unchanged: a chunk is a flat list already."""
        return values


PairBatch: TypeAlias = Block | Chunk
"""The pairs that a sweep handles at a time."""

LabeledBatch: TypeAlias = LabeledBlock | Chunk
"""The labeled pairs that a sweep handles at a time."""


@dataclass(frozen=True)
class PairTerms:
    """What terms say about each pair of a batch; the sweep weighs it by confidences and sums it.

    Attributes
    ----------
    values : iterable of arrays
        Terms to be summed, each with one number a pair as `pairs_of` has them. They are taken one
        after the other.
    weights : sequence of arrays
        The weights of v v', one number a pair likewise; one matrix is made for each. None: no
        matrix.
    """

    values: Iterable[Array]
    weights: Sequence[Array] = ()


BatchSums: TypeAlias = tuple[Sequence[Any], Iterable[Array] | None]
"""Sums over a batch, and weights laid out as the batch is; None: no matrix. All of them weighed."""

Terms: TypeAlias = Callable[Concatenate[PairBatch, ...], PairTerms | BatchSums]
"""terms(batch, *distances) -> what they say about each pair; or, where they can do so faster, their
own sums, weighed by ``batch.confidence``: the logarithm of a product, or a fused kernel of a GPU.

One array of squared distances comes for each metric of the sweep; it is the callee's to overwrite.
Terms that sum on their own must vanish as d grows to EXCLUDED_DISTANCE, which is given to entries
of a block that are no pair. Terms that are swept over unlabeled pairs know no points, so that they
travel light, and speak the array API.
"""

LabeledTerms: TypeAlias = Callable[Concatenate[LabeledBatch, ...], PairTerms | BatchSums]
"""The same for labeled pairs, whose batches know which are similar."""


def sum_over(batch: PairBatch, found: PairTerms | BatchSums) -> BatchSums:
    """Weigh and sum what terms have found on a batch, if they have not done so.

    Examples
    --------
    >>> twice = Chunk(slice(0, 2), confidence=np.array([1.0, 10.0]))
    >>> totals, weights = sum_over(twice, PairTerms([np.array([3.0, 4.0])], [np.ones(2)]))
    >>> totals[0], weights
    (np.float64(43.0), [array([ 1., 10.])])
    """
    if not isinstance(found, PairTerms):
        return found
    totals = batch.totals(found.values)
    return totals, [batch.laid_out(batch.weigh(w)) for w in found.weights] or None


@dataclass(frozen=True, eq=False)
class OnDemand(Sequence[Piece]):
    """A sequence whose items are made when they are asked for, and not kept."""

    length: int
    make: Callable[[int], Piece]

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, number: Any) -> Any:
        if not 0 <= number < self.length:
            raise IndexError(f"There are {self.length} items, and none has the number {number}.")
        return self.make(number)


@dataclass(frozen=True, eq=False)
class Layout:
    """The unlabeled pairs of n points as blocks, and these as tiles; made when asked for."""

    n_points: int
    labels: Labels
    block_size: int = BLOCK

    def __reduce__(self) -> tuple[Any, ...]:
        return Layout, (self.n_points, self.labels, self.block_size)  # made anew where it arrives

    @cached_property
    def blocks(self) -> Sequence[Block]:
        """All blocks of the upper triangle, row by row; where they are few, they are kept."""
        return OnDemand(_triangle(self._n_sides), lru_cache(KEPT_BLOCKS)(self._numbered))

    @cached_property
    def tiles(self) -> Sequence[Tile]:
        """The same blocks in squares: pieces of work that need few points each."""
        return OnDemand(_triangle(-(-self._n_sides // self._aside)), self._tile)

    @property
    def _n_sides(self) -> int:
        return -(-self.n_points // self.block_size)

    @property
    def _aside(self) -> int:
        """Blocks per side of a tile."""
        return min(MOST_BLOCKS_ASIDE, -(-self._n_sides // MOST_BLOCKS_ASIDE))

    @cached_property
    def _labeled(self) -> InBlock:
        return self.labels.in_blocks(self.block_size, self._n_sides)

    def _numbered(self, number: int) -> Block:
        return self._block(*_in_triangle(number, self._n_sides))

    def _block(self, a: int, b: int) -> Block:
        rows, columns = (self._points(side, side + 1) for side in (a, b))
        return Block(rows, columns, self._labeled(a, b))

    def _points(self, start: int, stop: int) -> slice:
        """The points of some sides."""
        return slice(start * self.block_size, min(stop * self.block_size, self.n_points))

    def _tile(self, number: int) -> Tile:
        aside, n_sides = self._aside, self._n_sides
        down, across = _in_triangle(number, -(-n_sides // aside))
        first, second = (range(k * aside, min((k + 1) * aside, n_sides)) for k in (down, across))
        rows, columns = (self._points(some.start, some.stop) for some in (first, second))
        before = rows.start, columns.start  # what is left out of the tile's points
        if down != across:
            before = rows.start, columns.start - (rows.stop - rows.start)
        parts = [self._block(a, b) for a in first for b in second if a <= b]
        blocks = [
            Block(_shift(part.rows, before[0]), _shift(part.columns, before[1]), part.excluded)
            for part in parts
        ]
        return Tile(rows, columns, blocks)


@dataclass(frozen=True)
class Tile:
    """Blocks between two runs of points; `blocks` count in rows followed by columns."""

    rows: slice
    columns: slice
    blocks: list[Block]

    def of(self, points: FloatArray) -> FloatArray:
        """The points of this tile."""
        if self.rows == self.columns:
            return points[self.rows]
        return np.concatenate([points[self.rows], points[self.columns]])


def _triangle(n_sides: int) -> int:
    """The number of entries on the diagonal and above it."""
    return n_sides * (n_sides + 1) // 2


def _in_triangle(number: int, n_sides: int) -> tuple[int, int]:
    """The row and the column of an entry of the upper triangle, counted row by row."""
    left = _triangle(n_sides) - 1 - number  # entries after it
    rows_after = (math.isqrt(8 * left + 1) - 1) // 2
    return n_sides - 1 - rows_after, n_sides - 1 - (left - _triangle(rows_after))


def _shift(part: slice, by: int) -> slice:
    return slice(part.start - by, part.stop - by)
