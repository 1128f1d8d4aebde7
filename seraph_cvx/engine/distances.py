"""All pairs in blocks and strips, or listed in chunks; their squared distances, and proven bounds.

Over a block of pairs they are one matrix product; of listed pairs they come from differences. A
matrix or a factor gives them as rounded; :class:`DistanceBounds` gives numbers that are proven to
lie below (and, if asked for, above) the exact distances.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Concatenate, NamedTuple, TypeAlias

import numpy as np

from ..numerics.accurate_sums import (
    accurate_product,
    column_medians,
    exact_difference,
    sampled_rows,
    short_totals,
)
from ..numerics.arrays import Array, namespace, to_device_of
from ..numerics.checks import FloatArray, IntArray
from ..numerics.psd_cone import scaled_factor
from ..pairs.labeled_pairs import Labels
from ..proof.rounding import SECOND_ORDER

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

Terms that are summed over unlabeled pairs hold no points and use the array API, for any device.
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
    thread made which. Points with a label come first; with `labels` None no pair is
    labeled, or, with `classes`, all of them are.
    """

    n_points: int
    labels: Labels | None
    classes: IntArray | None = None
    block_size: int | None = None
    size: int = field(init=False)  # points per side of a block
    sides: list[slice] = field(init=False, repr=False)  # the points of each side
    n_blocks: int = field(init=False)
    n_strips: int = field(init=False)  # of at least two rows of blocks each

    def __post_init__(self) -> None:
        n = self.n_points
        size = -(-n // -(-n // (self.block_size or BLOCK))) if n else 1
        sides = [slice(start, min(start + size, n)) for start in range(0, n, size)]
        n_strips = 1 if n < THREADED_POINTS else max(1, min(MOST_STRIPS, len(sides) // 2))
        n_blocks = len(sides) * (len(sides) + 1) // 2
        vars(self).update(size=size, sides=sides, n_blocks=n_blocks, n_strips=n_strips)

    def strip(self, number: int) -> Iterable[Block]:
        """The blocks of a strip: rows from top and bottom in turn, so that all are alike."""
        last = self.n_strips - 1
        for start in range(0, len(self.sides), self.n_strips):
            is_back = start // self.n_strips % 2 == 1
            a = start + (last - number if is_back else number)
            if a < len(self.sides):
                rows = self.sides[a]
                for columns in self.sides[a:]:
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

    @cached_property
    def _labeled(self) -> dict[tuple[int, int], LabeledEntries]:
        """The labeled entries of the blocks that have such, by the first points of their sides."""
        labels = self.labels
        if labels is None:
            return {}
        n_sides = -(-(int(np.max(labels.members, initial=-1)) + 1) // self.size)
        n_labeled = len(labels.members)  # which come first
        in_blocks = {}
        for a, rows in enumerate(self.sides[:n_sides]):
            for columns in self.sides[a:n_sides]:
                if labels.is_complete:
                    height = min(rows.stop, n_labeled) - rows.start
                    width = min(columns.stop, n_labeled) - columns.start
                    is_whole = max(rows.stop, columns.stop) <= n_labeled
                    entries: LabeledEntries | None = LabeledEntries(
                        (slice(0, height), slice(0, width)), is_whole=is_whole
                    )
                else:
                    entries = _listed_entries(labels, rows, columns)
                if entries is not None:
                    in_blocks[rows.start, columns.start] = entries
        return in_blocks


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
        matrix = self.L @ self.L.T
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
        left, right, width = metric.sides(X)
        return SideProduct(left, right, width if metric.with_upper else None)
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
