"""Sums over pairs, labeled and unlabeled, by matrix products; no pair is ever stored."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, cached_property
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from joblib import effective_n_jobs

from .arrays import Array, beside, namespace, to_host, to_numbers
from .blas_threads import one_blas_thread
from .blocks import Block, Chunk, Layout, Terms
from .checks import FloatArray, IntArray
from .cluster_sums import ClusterSums, Shipment
from .device_sums import DeviceSums
from .drawn_pairs import DrawnPairs
from .pairs import PairSet
from .sweep import UnlabeledSums, Visit, sweep

CHUNK = 1 << 20
"""Numbers per chunk of labeled differences."""


@dataclass(frozen=True, eq=False)
class PairSums:
    """All pairs of `points`, ready to be summed over; the labeled ones and the rest apart.

    Attributes
    ----------
    layout : Layout
        Of the unlabeled pairs; it does not depend on the coordinates.
    axes : (n, k) array, optional
        Other coordinates of the same points, in which v v' is summed; distances stay in `points`.
    confidence : (k,) array, optional
        c_k of each labeled pair; None: 1 each.
    away : UnlabeledSums, optional
        Another way to sum over the unlabeled pairs: on a device, on a cluster, by a
        sample of them.
    """

    points: FloatArray
    labeled_pairs: IntArray
    layout: Layout
    n_jobs: int | None = None
    axes: FloatArray | None = None
    confidence: FloatArray | None = None
    away: UnlabeledSums | None = None

    @classmethod
    def of(cls, pairs: PairSet, n_jobs: int | None = None) -> PairSums:
        """The sums over `pairs`, made once for each set of pairs.

        Centred: differences do not change, cancellation is least.
        """
        with _LOCK:
            kept = _MADE.setdefault(pairs, {})
            if n_jobs not in kept:
                kept[n_jobs] = cls._make(pairs, n_jobs)
            return kept[n_jobs]

    @classmethod
    def _make(cls, pairs: PairSet, n_jobs: int | None) -> PairSums:
        centred = pairs.points - pairs.points.mean(axis=0)
        layout = Layout(len(centred), pairs.labeled)
        away: UnlabeledSums = ClusterSums(Shipment(centred, layout))
        if pairs.drawn is not None:
            share = pairs.n_unlabeled / len(pairs.drawn)
            away = DrawnPairs(beside(pairs.home, centred), pairs.drawn, share)
        elif pairs.home is not None:
            away = DeviceSums.of(centred, pairs.labeled, pairs.home)
        return cls(centred, pairs.labeled, layout, n_jobs, None, pairs.confidence, away)

    def in_coordinates(self, T: FloatArray) -> PairSums:
        """The same pairs of the points T'x."""
        away = None if self.away is None else self.away.in_coordinates(T)
        return replace(self, points=self.points @ T, away=away)

    def summed_in(self, T: FloatArray) -> PairSums:
        """The same pairs and distances; the matrices are T' (sum_k w_k v_k v_k') T.

        They are summed in those coordinates, so that they are exact to rounding there: were the
        sum made first, T would blow up its rounding errors.
        """
        away = None if self.away is None else self.away.summed_in(T)
        return replace(self, axes=self.points @ T, away=away)

    @property
    def here(self) -> PairSums:
        """The same sums by threads of this process."""
        return replace(self, away=None)

    @property
    def n_unlabeled(self) -> int:
        """The pairs that `over_unlabeled` visits."""
        n = len(self.points)
        return n * (n - 1) // 2 - len(self.labeled_pairs)

    def over_labeled(
        self, metrics: Sequence[FloatArray], terms: Terms
    ) -> tuple[FloatArray, FloatArray]:
        """Sweep the labeled pairs, in their order; the weights are one number a pair."""
        home = self._home if metrics else None
        totals: list[list[Any]] = []
        matrix: Array | None = None
        for place in self._chunks if home is None else self._chunks_there:
            V, Z = self._differences(place.pairs, home)
            xp = namespace(V)
            distances = (xp.sum((V @ beside(V, A)) * V, axis=1) for A in metrics)
            sums, weights = terms(place, *distances)
            totals.append(list(sums))
            if weights is not None:
                part = (xp.matrix_transpose(Z) * weights) @ Z
                matrix = part if matrix is None else matrix + part
        total = np.sum(to_numbers(totals), axis=0)
        return total, np.asarray(0.0 if matrix is None else to_host(matrix))

    def over_unlabeled(
        self, metrics: Sequence[FloatArray], terms: Terms
    ) -> tuple[FloatArray, FloatArray]:
        """Sweep the unlabeled pairs; the weights come as one array a block."""
        if self.away is not None and self.away.is_at_hand:
            return self.away.over_unlabeled(metrics, terms)
        Z = self.points if self.axes is None else self.axes
        return sweep(self.points, Z, self.layout.blocks, metrics, terms, self._visit_all)

    def _visit_all(
        self, visit: Callable[[Block], Visit], blocks: Sequence[Block]
    ) -> Iterable[Visit]:
        """Visit all blocks; the results come in their order, whatever the threads."""
        jobs = 1 if self.n_jobs is None else effective_n_jobs(self.n_jobs)
        n_threads = min(jobs, len(blocks))
        if n_threads == 1:
            yield from map(visit, blocks)
            return
        with one_blas_thread():
            yield from _threads(n_threads).map(visit, blocks)

    @cached_property
    def _chunks(self) -> list[Chunk]:
        k, rows = len(self.labeled_pairs), max(1, CHUNK // max(1, self.points.shape[1]))
        runs = [slice(start, min(start + rows, k)) for start in range(0, k, rows)]
        c = self.confidence
        return [Chunk(run, None if c is None else c[run]) for run in runs]

    @cached_property
    def _chunks_there(self) -> list[Chunk]:
        """The same, confidences on the device."""
        return [
            c if c.confidence is None else Chunk(c.pairs, beside(self._home, c.confidence))
            for c in self._chunks
        ]

    @property
    def _home(self) -> Array | None:
        """An array of the device where labeled pairs are summed over too, if it is not here."""
        return self.away.points if isinstance(self.away, DeviceSums) else None

    def _differences(self, run: slice, home: Array | None) -> tuple[Array, Array]:
        """v_k of labeled pairs, for distances and for v v'."""
        if len(self._chunks) > 1:
            return self._make_differences(run, home)
        is_here = home is None
        if is_here not in self._only_chunk:
            self._only_chunk[is_here] = self._make_differences(run, home)
        return self._only_chunk[is_here]

    def _make_differences(self, run: slice, home: Array | None) -> tuple[Array, Array]:
        i, j = self.labeled_pairs[run].T
        V = beside(home, self.points[i] - self.points[j])
        return V, V if self.axes is None else beside(home, self.axes[i] - self.axes[j])

    @cached_property
    def _only_chunk(self) -> dict[bool, tuple[Array, Array]]:
        """The differences of all labeled pairs, where one chunk holds them: here, and there."""
        return {}


_MADE: WeakKeyDictionary[PairSet, dict[int | None, PairSums]] = WeakKeyDictionary()
_LOCK = Lock()


@cache
def _threads(how_many: int) -> ThreadPoolExecutor:
    """Threads that stay: new ones for every sweep would find their memory cold."""
    return ThreadPoolExecutor(how_many, thread_name_prefix="seraph_cvx")


os.register_at_fork(after_in_child=_threads.cache_clear)  # threads do not survive a fork
