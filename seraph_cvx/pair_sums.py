"""Sums over pairs, by matrix products, block by block; no pair is ever stored.

For a term t of the squared distance d_k = v_k' A v_k and a weight w of it, a sweep returns

    sum_k t(d_k)      and      sum_k w(d_k) v_k v_k' = X' (Diag(W 1) - W) X

where W is the symmetric weight matrix: O(n^2 m + n m^2) work, O(n m + block^2) memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from joblib import Parallel, delayed

from .pairs import FloatArray, IntArray, PairSet

FAR = 1e200
"""The squared distance given to entries that are no unlabeled pair: every term vanishes there."""

BLOCK = 512
"""Points per side of a block: 2 MiB a block, so that its few temporaries stay in the cache."""

CHUNK = 1 << 20
"""Numbers per chunk of labeled differences."""


@dataclass(frozen=True)
class Block:
    """Pairs rows x columns; on the diagonal (rows == columns) those above the diagonal only."""

    rows: slice
    columns: slice
    excluded: tuple[IntArray, IntArray]


Place: TypeAlias = Block | slice
"""Where a sweep is: a block of unlabeled pairs, or a slice of the labeled ones."""

Terms: TypeAlias = Callable[..., tuple[Sequence[float], FloatArray | None]]
"""terms(place, *distances) -> (sums over the place, weights or None).

One array of squared distances comes for each metric of the sweep; it is the callee's to overwrite.
A term must vanish as d grows to FAR. Weights may come stacked, (t, ...): t sums then.
"""


@dataclass(frozen=True, eq=False)
class PairSums:
    """All pairs of `points`, ready to be summed over; `labeled` and the rest apart."""

    points: FloatArray
    labeled_pairs: IntArray
    block_size: int = BLOCK
    n_jobs: int | None = None

    @classmethod
    def of(cls, pairs: PairSet, n_jobs: int | None = None) -> PairSums:
        """The sums over `pairs`. Centred: differences do not change, cancellation is least."""
        centred = pairs.points - pairs.points.mean(axis=0)
        return cls(centred, pairs.labeled, n_jobs=n_jobs)

    def in_coordinates(self, T: FloatArray) -> PairSums:
        """The same pairs of the points T'x."""
        moved = PairSums(self.points @ T, self.labeled_pairs, self.block_size, self.n_jobs)
        moved.__dict__["_blocks"] = self._blocks  # the layout does not depend on the coordinates
        return moved

    def over_labeled(
        self, metrics: Sequence[FloatArray], terms: Terms
    ) -> tuple[FloatArray, FloatArray]:
        """Sweep the labeled pairs, in their order; the weights are one number a pair."""
        totals: list[Sequence[float]] = []
        matrix: FloatArray | float = 0.0
        for place in self._chunks:
            V = self._labeled_differences(place)
            distances = [np.einsum("ij,ij->i", V @ A, V) for A in metrics]
            sums, weights = terms(place, *distances)
            totals.append(sums)
            if weights is not None:
                matrix = matrix + (V.T * weights[..., None, :]) @ V
        return np.sum(np.asarray(totals, dtype=np.float64), axis=0), np.asarray(matrix)

    def over_unlabeled(
        self, metrics: Sequence[FloatArray], terms: Terms
    ) -> tuple[FloatArray, FloatArray]:
        """Sweep the unlabeled pairs; the weights come as one array a block."""
        X = self.points
        products = [X @ A for A in metrics]
        squares = [np.einsum("ij,ij->i", XA, X) for XA in products]

        def visit(block: Block) -> tuple[Sequence[float], FloatArray | float, FloatArray | float]:
            distances = [
                _block_distances(X, XA, square, block)
                for XA, square in zip(products, squares, strict=True)
            ]
            sums, W = terms(block, *distances)
            if W is None:
                return sums, 0.0, 0.0
            degrees = np.zeros((*W.shape[:-2], len(X)))
            degrees[..., block.rows] += W.sum(axis=-1)
            degrees[..., block.columns] += W.sum(axis=-2)
            return sums, degrees, X[block.rows].T @ (W @ X[block.columns])

        if self.n_jobs in (None, 1) or len(self._blocks) == 1:
            visits = map(visit, self._blocks)
        else:
            visits = Parallel(n_jobs=self.n_jobs, prefer="threads", return_as="generator")(
                delayed(visit)(block) for block in self._blocks
            )
        totals: list[Sequence[float]] = []
        degrees: FloatArray | float = 0.0
        cross: FloatArray | float = 0.0
        for sums, block_degrees, block_cross in visits:
            totals.append(sums)
            degrees = degrees + block_degrees
            cross = cross + block_cross
        total = np.sum(np.asarray(totals, dtype=np.float64), axis=0)
        if isinstance(degrees, float) or isinstance(cross, float):
            return total, np.zeros((X.shape[1], X.shape[1]))
        matrix = (X.T * degrees[..., None, :]) @ X - cross - np.swapaxes(cross, -1, -2)
        return total, matrix

    @property
    def largest_place(self) -> int:
        """The most pairs that a sweep looks at together."""
        chunk = max(place.stop - place.start for place in self._chunks)
        side = min(len(self.points), self.block_size)
        return int(max(chunk, side * side))

    @cached_property
    def _chunks(self) -> list[slice]:
        k, rows = len(self.labeled_pairs), max(1, CHUNK // self.points.shape[1])
        return [slice(start, min(start + rows, k)) for start in range(0, k, rows)]

    @cached_property
    def _only_chunk(self) -> FloatArray:
        return self.points[self.labeled_pairs[:, 0]] - self.points[self.labeled_pairs[:, 1]]

    def _labeled_differences(self, place: slice) -> FloatArray:
        if len(self._chunks) == 1:
            return self._only_chunk
        i, j = self.labeled_pairs[place].T
        return np.asarray(self.points[i] - self.points[j])

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
            i, j = inside[:, 0] - rows.start, inside[:, 1] - columns.start
            if a == b:
                below = np.tril_indices(rows.stop - rows.start)
                i, j = np.concatenate([i, below[0]]), np.concatenate([j, below[1]])
            yield Block(rows, columns, (i, j))


def _block_distances(X: FloatArray, XA: FloatArray, square: FloatArray, block: Block) -> FloatArray:
    """||x_i - x_j||_A^2 = x_i'Ax_i + x_j'Ax_j - 2 x_i'Ax_j over a block."""
    d = XA[block.rows] @ X[block.columns].T
    d *= -2.0
    d += square[block.rows, None]
    d += square[block.columns]
    d[block.excluded] = FAR
    return d
