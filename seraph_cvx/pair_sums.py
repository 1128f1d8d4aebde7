"""Sums over pairs, by matrix products, block by block; no pair is ever stored.

For a term t of the squared distance d_k = v_k' A v_k and a weight w of it, a sweep returns

    sum_k t(d_k)      and      sum_k w(d_k) v_k v_k' = X' (Diag(W 1) - W) X

where W is the symmetric weight matrix: O(n^2 m + n m^2) work, O(n m + block^2) memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, TypeAlias

import numpy as np
from joblib import effective_n_jobs

from .blas_threads import one_blas_thread
from .checks import FloatArray, IntArray
from .pairs import PairSet

FAR = 1e200
"""The squared distance given to entries that are no unlabeled pair: every term vanishes there."""

BLOCK = 256
"""Points per side of a block: 512 KiB, so that a block and its temporaries stay in the cache."""

CHUNK = 1 << 20
"""Numbers per chunk of labeled differences."""


@dataclass(frozen=True)
class Block:
    """Pairs rows x columns without the `excluded` ones (local indices), which are labeled.

    On the diagonal, where rows == columns, only the pairs above it.
    """

    rows: slice
    columns: slice
    excluded: tuple[IntArray, IntArray]


Place: TypeAlias = Block | slice
"""Where a sweep is: a block of unlabeled pairs, or a slice of the labeled ones."""

Weights: TypeAlias = FloatArray | Iterator[FloatArray] | None
"""One weight a pair; or several, one array after the other, to be summed over in one sweep."""

Terms: TypeAlias = Callable[..., tuple[Sequence[float], Weights]]
"""terms(place, *distances) -> (sums over the place, weights or None).

One array of squared distances comes for each metric of the sweep; it is the callee's to overwrite.
A term must vanish as d grows to FAR.
"""


_Visit: TypeAlias = tuple[Sequence[float], tuple[FloatArray, FloatArray, FloatArray] | None]
"""The sums over a block; the row sums and column sums of its weights W, and X' W X."""


@dataclass(frozen=True, eq=False)
class PairSums:
    """All pairs of `points`, ready to be summed over; `labeled` and the rest apart.

    Attributes
    ----------
    axes : (n, k) array, optional
        Other coordinates of the same points, in which v v' is summed; distances stay in `points`.
    confidence : (k,) array, optional
        c_k of each labeled pair; None: 1 each.
    """

    points: FloatArray
    labeled_pairs: IntArray
    block_size: int = BLOCK
    n_jobs: int | None = None
    axes: FloatArray | None = None
    confidence: FloatArray | None = None

    @classmethod
    def of(cls, pairs: PairSet, n_jobs: int | None = None) -> PairSums:
        """The sums over `pairs`. Centred: differences do not change, cancellation is least."""
        centred = pairs.points - pairs.points.mean(axis=0)
        return cls(centred, pairs.labeled, n_jobs=n_jobs, confidence=pairs.confidence)

    def in_coordinates(self, T: FloatArray) -> PairSums:
        """The same pairs of the points T'x."""
        return self._like_this(points=self.points @ T)

    def summed_in(self, T: FloatArray) -> PairSums:
        """The same pairs and distances; the matrices are T' (sum_k w_k v_k v_k') T.

        They are summed in those coordinates, so that they are exact to rounding there: were the
        sum made first, T would blow up its rounding errors.
        """
        return self._like_this(axes=self.points @ T)

    def _like_this(self, **changes: Any) -> PairSums:
        other = replace(self, **changes)
        other.__dict__["_blocks"] = self._blocks  # the layout does not depend on the coordinates
        return other

    def thinned(self, n_points: int) -> tuple[PairSums, float]:
        """The unlabeled pairs of `n_points` random points, and how many each stands for.

        The draw is the same every time. Labeled pairs of the points drawn stay excluded.
        """
        n = len(self.points)
        drawn = np.sort(np.random.default_rng(0).permutation(n)[:n_points])
        place = np.full(n, -1)
        place[drawn] = np.arange(len(drawn))
        inside = place[self.labeled_pairs]
        inside = inside[(inside >= 0).all(axis=1)]
        sample = PairSums(self.points[drawn], inside, self.block_size, self.n_jobs)
        return sample, self.n_unlabeled / max(1, sample.n_unlabeled)

    def confidence_at(self, place: Place) -> FloatArray | None:
        """c_k of the labeled pairs at this place; None where it is 1 for all."""
        if self.confidence is None or isinstance(place, Block):
            return None
        return self.confidence[place]

    def weighed(self, place: Place, terms: FloatArray) -> FloatArray:
        """The terms of the pairs at this place, each times its confidence."""
        confidence = self.confidence_at(place)
        return terms if confidence is None else terms * confidence

    @property
    def n_unlabeled(self) -> int:
        """The pairs that `over_unlabeled` visits."""
        n = len(self.points)
        return n * (n - 1) // 2 - len(self.labeled_pairs)

    def over_labeled(
        self, metrics: Sequence[FloatArray], terms: Terms
    ) -> tuple[FloatArray, FloatArray]:
        """Sweep the labeled pairs, in their order; the weights are one number a pair."""
        totals: list[Sequence[float]] = []
        matrix: FloatArray | float = 0.0
        for place in self._chunks:
            V = self._labeled_differences(place)
            Z = V if self.axes is None else self._labeled_axes(place)
            distances = [np.einsum("ij,ij->i", V @ A, V) for A in metrics]
            sums, weights = terms(place, *distances)
            totals.append(sums)
            if isinstance(weights, np.ndarray):
                matrix = matrix + (Z.T * weights) @ Z
            elif weights is not None:
                matrix = matrix + np.array([(Z.T * w) @ Z for w in weights])
        return np.sum(np.asarray(totals, dtype=np.float64), axis=0), np.asarray(matrix)

    def over_unlabeled(
        self, metrics: Sequence[FloatArray], terms: Terms
    ) -> tuple[FloatArray, FloatArray]:
        """Sweep the unlabeled pairs; the weights come as one array a block."""
        X = self.points
        Z = X if self.axes is None else self.axes
        products = [X @ A for A in metrics]
        squares = [np.einsum("ij,ij->i", XA, X) for XA in products]
        for XA in products:
            XA *= -2.0

        def visit(block: Block) -> _Visit:
            distances = [
                _block_distances(X, XA, square, block)
                for XA, square in zip(products, squares, strict=True)
            ]
            sums, weights = terms(block, *distances)
            if weights is None:
                return sums, None
            rows, columns = Z[block.rows], Z[block.columns]
            if isinstance(weights, np.ndarray):
                return sums, _weigh(weights, rows, columns)
            parts = zip(*(_weigh(W, rows, columns) for W in weights), strict=True)
            row_sums, column_sums, cross = (np.array(part) for part in parts)
            return sums, (row_sums, column_sums, cross)

        totals: list[Sequence[float]] = []
        degrees = cross = np.zeros(0)
        for block, (sums, weighted) in zip(self._blocks, self._map(visit), strict=True):
            totals.append(sums)
            if weighted is None:
                continue
            if not degrees.size:
                degrees = np.zeros((*weighted[0].shape[:-1], len(X)))
                cross = np.zeros(weighted[2].shape)
            degrees[..., block.rows] += weighted[0]
            degrees[..., block.columns] += weighted[1]
            cross += weighted[2]
        total = np.sum(np.asarray(totals, dtype=np.float64), axis=0)
        if not degrees.size:
            return total, np.zeros((Z.shape[1], Z.shape[1]))
        return total, (Z.T * degrees[..., None, :]) @ Z - cross - np.swapaxes(cross, -1, -2)

    def _map(self, visit: Callable[[Block], _Visit]) -> Iterator[_Visit]:
        """Visit all blocks; the results come in their order, whatever the threads."""
        jobs = 1 if self.n_jobs is None else effective_n_jobs(self.n_jobs)
        n_threads = min(jobs, len(self._blocks))
        if n_threads == 1:
            yield from map(visit, self._blocks)
            return
        with one_blas_thread():
            yield from _threads(n_threads).map(visit, self._blocks)

    @cached_property
    def _chunks(self) -> list[slice]:
        k, rows = len(self.labeled_pairs), max(1, CHUNK // max(1, self.points.shape[1]))
        return [slice(start, min(start + rows, k)) for start in range(0, k, rows)]

    @cached_property
    def _only_chunk(self) -> FloatArray:
        return self.points[self.labeled_pairs[:, 0]] - self.points[self.labeled_pairs[:, 1]]

    def _labeled_differences(self, place: slice) -> FloatArray:
        if len(self._chunks) == 1:
            return self._only_chunk
        i, j = self.labeled_pairs[place].T
        return np.asarray(self.points[i] - self.points[j])

    def _labeled_axes(self, place: slice) -> FloatArray:
        Z = self.points if self.axes is None else self.axes
        i, j = self.labeled_pairs[place].T
        return np.asarray(Z[i] - Z[j])

    @cached_property
    def _blocks(self) -> list[Block]:
        return list(_lay_out(len(self.points), self.labeled_pairs, self.block_size))


def _lay_out(n: int, labeled: IntArray, size: int) -> Iterator[Block]:
    """The blocks of the upper triangle, each with the entries that are not unlabeled pairs."""
    n_sides = -(-n // size)
    owners = (labeled // size) @ [n_sides, 1]
    order = np.argsort(owners, kind="stable")
    bounds = np.searchsorted(owners[order], np.arange(n_sides * n_sides + 1))
    for a in range(n_sides):
        for b in range(a, n_sides):
            rows = slice(a * size, min((a + 1) * size, n))
            columns = slice(b * size, min((b + 1) * size, n))
            owner = a * n_sides + b
            inside = labeled[order[bounds[owner] : bounds[owner + 1]]]
            excluded = inside[:, 0] - rows.start, inside[:, 1] - columns.start
            yield Block(rows, columns, excluded)


def _weigh(
    W: FloatArray, rows: FloatArray, columns: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    return W.sum(axis=1), W.sum(axis=0), rows.T @ (W @ columns)


def _block_distances(
    X: FloatArray, minus_2XA: FloatArray, square: FloatArray, block: Block
) -> FloatArray:
    """||x_i - x_j||_A^2 = x_i'Ax_i + x_j'Ax_j - 2 x_i'Ax_j over a block."""
    d = minus_2XA[block.rows] @ X[block.columns].T
    d += square[block.rows, None]
    d += square[block.columns]
    if block.rows == block.columns:
        d += _lower_triangle(len(d))
    if len(block.excluded[0]):
        d[block.excluded] = FAR
    return d


@cache
def _threads(how_many: int) -> ThreadPoolExecutor:
    """Threads that stay: new ones for every sweep would find their memory cold."""
    return ThreadPoolExecutor(how_many, thread_name_prefix="seraph_cvx")


os.register_at_fork(after_in_child=_threads.cache_clear)  # threads do not survive a fork


@cache
def _lower_triangle(size: int) -> FloatArray:
    """FAR on and below the diagonal, 0 above it."""
    return np.tril(np.full((size, size), FAR))
