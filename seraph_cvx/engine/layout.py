"""All pairs of n points in blocks, and blocks in strips; listed pairs in chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Concatenate, NamedTuple, TypeAlias

import numpy as np

from ..numerics.accurate_sums import short_totals
from ..numerics.arrays import Array, namespace
from ..numerics.checks import FloatArray, IntArray
from ..pairs.labeled_pairs import Labels

BLOCK = 120
"""Most points per side of a block: its arrays stay below the 128 KiB from which on glibc maps new
memory for each of them."""

THREADED_POINTS = 8 * BLOCK
"""With fewer points there is a single strip: a pass is over before a second thread starts."""

CHUNK = 1 << 20
"""Numbers, at most, of the differences of listed pairs that are made at a time: 8 MB."""

MOST_STRIPS = 256
"""Each strip is a partial sum of its own."""


@dataclass(frozen=True, eq=False)
class LabeledEntries:
    """The entries of a block that are labeled pairs, and the confidence of each (None: 1)."""

    entries: Any
    confidence: FloatArray | None = None
    is_whole: bool = False


@dataclass(frozen=True, eq=False)
class Block:
    """The pairs of a block, rows x columns; on the diagonal only those above it.

    `labeled` are entries that are labeled pairs; `classes` of rows and columns where all are. On a
    device `mask` is true for entries that are no unlabeled pair.
    """

    rows: slice
    columns: slice
    labeled: LabeledEntries | None = None
    classes: tuple[IntArray, IntArray] | None = None
    mask: Array | None = None
    confidence: ClassVar[None] = None

    @property
    def is_diagonal(self) -> bool:
        """Whether rows and columns are the same points."""
        return self.rows == self.columns

    def weigh(self, terms: Array) -> Array:
        """The terms of the pairs alone, which have no confidence: zero where an entry is none."""
        return terms if terms.ndim == 1 else self.laid_out(terms)

    def pairs_of(self, values: Array) -> Array:
        """Select the values of the pairs; flattened if some entries are not pairs."""
        return values if self._entries is None else values.reshape(-1)[self._entries]

    def laid_out(self, values: Array) -> Array:
        """Undo `pairs_of`: zero where an entry is no pair."""
        if self._entries is None:
            if self.mask is None or isinstance(values, np.ndarray):
                return values
            return namespace(values).where(self.mask, 0.0, values)
        block = np.zeros((self.rows.stop - self.rows.start, self.columns.stop - self.columns.start))
        block.reshape(-1)[self._entries] = values
        return block

    def symmetric(self, weights: Array) -> Array:
        """Weights of the pairs as a block of the symmetric matrix of all weights."""
        return weights + weights.T if self.is_diagonal else weights

    @property
    def similar(self) -> FloatArray:
        """1 for each pair of one class, else 0; of blocks with classes."""
        rows, columns = self.classes or (np.zeros(0), np.zeros(0))
        return np.asarray(self.pairs_of((rows[:, None] == columns).astype(np.float64)))

    @property
    def ones(self) -> FloatArray:
        """1 for each pair."""
        height, width = self.rows.stop - self.rows.start, self.columns.stop - self.columns.start
        return np.ones_like(self.pairs_of(np.empty((height, width))))

    @cached_property
    def _entries(self) -> IntArray | None:
        """The entries of a NumPy block that are pairs; None if all are, or on a device."""
        if self.mask is not None or not (self.is_diagonal or self.labeled):
            return None
        height, width = self.rows.stop - self.rows.start, self.columns.stop - self.columns.start
        is_pair = np.ones((height, width), dtype=bool)
        if self.labeled is not None:
            is_pair[self.labeled.entries] = False
        return np.flatnonzero(np.triu(is_pair, 1) if self.is_diagonal else is_pair)


@dataclass(frozen=True)
class Chunk:
    """A run of listed pairs, and the confidence c_k of each (None: 1 for all).

    The first `n_similar` of all listed pairs are similar.
    """

    pairs: slice
    confidence: FloatArray | None = None
    n_similar: int = 0

    @property
    def similar(self) -> FloatArray:
        """1 for each similar pair, else 0."""
        numbers = np.arange(self.pairs.start, self.pairs.stop)
        return (numbers < self.n_similar).astype(np.float64)

    @property
    def ones(self) -> FloatArray:
        """1 for each pair."""
        return np.ones(self.pairs.stop - self.pairs.start)

    def weigh(self, terms: FloatArray) -> FloatArray:
        """Multiply each term by the confidence of its pair."""
        return terms if self.confidence is None else terms * self.confidence

    def pairs_of(self, values: Array) -> Array:
        """Return the values unchanged: every one belongs to a pair."""
        return values

    laid_out, symmetric = weigh, pairs_of


PairBatch: TypeAlias = Block | Chunk
"""The pairs that a pass handles at a time."""


class PairTerms(NamedTuple):
    """Terms of each pair of a batch, as `pairs_of` has them; the pass weighs and sums them.

    `values` are taken one after the other; `weights` are those of v v', None for no matrix.
    """

    values: Iterable[Array]
    weights: Array | None = None


class BatchSums(NamedTuple):
    """Sums over a batch, its weights laid out symmetrically, and -2 times second derivatives."""

    totals: list[Any]
    weights: Array | None = None
    second: Array | None = None


Terms: TypeAlias = Callable[Concatenate[PairBatch, ...], PairTerms | BatchSums]
"""terms(batch, *distances), one array of squared distances per metric, which it may overwrite.

Terms that are summed over unlabeled pairs hold no points and use the array API, so that they can
be sent to workers and devices.
"""


def sum_over(batch: PairBatch, terms: PairTerms | BatchSums) -> BatchSums:
    """Weigh and sum the terms of a batch, unless they came as sums."""
    if isinstance(terms, BatchSums):
        return terms
    totals = short_totals(map(batch.weigh, terms.values))
    if terms.weights is None:
        return BatchSums(totals)
    return BatchSums(totals, batch.symmetric(batch.laid_out(terms.weights)))


@dataclass(frozen=True, eq=False)
class Layout:
    """The blocks of the upper triangle of n points, in strips.

    Strips depend on n alone, so that sums over them, added in their order, are the same whichever
    thread or worker made which. Points with a label come first; with `labels` None no pair is
    labeled, or, with `classes`, all of them are.
    """

    n_points: int
    labels: Labels | None
    classes: IntArray | None = None
    block_size: int | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return Layout, (self.n_points, self.labels, self.classes, self.block_size)

    @property
    def n_strips(self) -> int:
        """The number of strips, of at least two rows of blocks each."""
        if self.n_points < THREADED_POINTS:
            return 1
        return max(1, min(MOST_STRIPS, self._n_sides // 2))

    @property
    def n_blocks(self) -> int:
        """The number of blocks."""
        return self._n_sides * (self._n_sides + 1) // 2

    @cached_property
    def size(self) -> int:
        """Points per side of a block."""
        n, most = self.n_points, self.block_size or BLOCK
        return -(-n // -(-n // most)) if n else 1

    def strip(self, number: int) -> Iterable[Block]:
        """The blocks of a strip: rows from top and bottom in turn, so that all are alike."""
        last = self.n_strips - 1
        for start in range(0, self._n_sides, self.n_strips):
            is_back = start // self.n_strips % 2 == 1
            a = start + (last - number if is_back else number)
            if a < self._n_sides:
                rows = self._side(a)
                for columns in map(self._side, range(a, self._n_sides)):
                    if self.classes is not None:
                        classes = self.classes[rows], self.classes[columns]
                        yield Block(rows, columns, classes=classes)
                    else:
                        yield Block(rows, columns, self._labeled.get((rows.start, columns.start)))

    @property
    def blocks(self) -> Iterator[Block]:
        """All blocks, strip by strip."""
        for number in range(self.n_strips):
            yield from self.strip(number)

    def _side(self, number: int) -> slice:
        return slice(number * self.size, min((number + 1) * self.size, self.n_points))

    @property
    def _n_sides(self) -> int:
        return -(-self.n_points // self.size)

    @cached_property
    def _labeled(self) -> dict[tuple[int, int], LabeledEntries]:
        """The labeled entries of the blocks that have such, by the first points of their sides."""
        labels = self.labels
        if labels is None:
            return {}
        sides = -(-(int(np.max(labels.members, initial=-1)) + 1) // self.size)
        entries_of = _first_entries if labels.is_complete else _listed_entries
        in_blocks = {}
        for a in range(sides):
            for b in range(a, sides):
                rows, columns = self._side(a), self._side(b)
                entries = entries_of(labels, rows, columns)
                if entries is not None:
                    in_blocks[rows.start, columns.start] = entries
        return in_blocks


def _first_entries(labels: Labels, rows: slice, columns: slice) -> LabeledEntries:
    """Every pair of the labeled points, which come first."""
    n_labeled = len(labels.members)
    height, width = min(rows.stop, n_labeled), min(columns.stop, n_labeled)
    entries = slice(0, height - rows.start), slice(0, width - columns.start)
    return LabeledEntries(entries, is_whole=max(rows.stop, columns.stop) <= n_labeled)


def _listed_entries(labels: Labels, rows: slice, columns: slice) -> LabeledEntries | None:
    """The listed pairs that lie in a block, in both halves of one on the diagonal."""
    (i, j), c = labels.listed.T, labels.confidence
    if rows == columns:
        i, j = np.concatenate([i, j]), np.concatenate([j, i])
        c = None if c is None else np.concatenate([c, c])
    inside = (i >= rows.start) & (i < rows.stop) & (j >= columns.start) & (j < columns.stop)
    if not np.any(inside):
        return None
    entries = i[inside] - rows.start, j[inside] - columns.start
    return LabeledEntries(entries, None if c is None else c[inside])


def sample_counts(n_labeled: int, n_points: int, most: int) -> FloatArray:
    """How many points each stands for, if at most so many of either kind do for all; else 0."""
    rng, counts = np.random.default_rng(0), np.zeros(n_points)
    for group in (np.arange(n_labeled), np.arange(n_labeled, n_points)):
        some = rng.permutation(group)[:most]
        counts[some] = len(group) / max(1, len(some))
    return counts


def labeled_first(labels: Labels, n_points: int) -> tuple[IntArray, Labels]:
    """The numbers of all points, labeled ones first, and the labels renumbered so."""
    has_label = np.zeros(n_points, dtype=bool)
    has_label[labels.members] = True
    order = np.concatenate([labels.members, np.flatnonzero(~has_label)])
    return order, labels.renumbered(np.argsort(order))
