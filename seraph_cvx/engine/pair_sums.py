"""Sums over pairs, labeled and unlabeled, by matrix products; no pair is ever stored."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import TypeVar, cast

import numpy as np

from ..numerics.accurate_sums import (
    accurate_product,
    column_medians,
    exact_difference,
    product_chain,
    totals_chain,
)
from ..numerics.arrays import Array, index_on_device_of, one_blas_thread, to_device_of, to_host
from ..numerics.checks import FloatArray, IntArray
from ..pairs.labeled_pairs import Labels
from ..pairs.pair_set import PairSet
from .blocks import BLOCK, Chunk, LabeledTerms, Layout, Terms
from .cluster_sums import ClusterSums, Shipment
from .device.device_sums import DeviceSums
from .distances import Metric
from .drawn_pairs import DrawnPairs, HeldPoints, take_ends
from .frame import Frame, Turned
from .labeled_classes import BLOCK as LABELED_BLOCK
from .labeled_classes import LabeledClasses
from .sweep import Listed, Swept, UnlabeledSums, longest_chain, sweep, sweep_listed

BLOCK_ARRAYS = 16
"""Arrays of the size of a block that a sweep holds at a time, about."""

CHUNK = 1 << 20
"""Numbers per chunk of labeled differences."""

WINDOW = 1_024
"""Pieces of work that are handed to the threads at a time."""

Piece = TypeVar("Piece")
Found = TypeVar("Found")


@dataclass(frozen=True, eq=False)
class PairSums:
    """Sums over all pairs of `points`, the labeled and the unlabeled ones separately.

    Attributes
    ----------
    centered : (n, m) array
        The points in the coordinates of the data, shifted.
    labels : LabeledPairs or ClassLabels
    layout : Layout
        The blocks of the unlabeled pairs; it does not depend on the coordinates.
    points_in : Turned, optional
        Other coordinates of the points, in which everything is summed.
    matrices_in : Turned, optional
        Other coordinates of the same points, in which v v' is summed; distances stay in `points`.
    remote_sums : UnlabeledSums, optional
        Another way to sum over the unlabeled pairs: on a device, on a cluster, by a
        sample of them.
    given : (n, m) array, optional
        The points as the user gave them, from which differences of labeled pairs are taken.
    classes : LabeledClasses, optional
        Where there are many labeled pairs and they come from classes: these are then summed over
        by matrix products, as the unlabeled ones are.
    """

    centered: FloatArray
    labels: Labels
    layout: Layout
    n_jobs: int | None = None
    points_in: Turned | None = None
    matrices_in: Turned | None = None
    remote_sums: UnlabeledSums | None = None
    given: FloatArray | None = None
    classes: LabeledClasses | None = None

    @classmethod
    def of(cls, pairs: PairSet, n_jobs: int | None = None) -> PairSums:
        """Set up the sums over `pairs`.

        Points are shifted by their median: differences do not change, and a few far points do not
        push all others away from the origin, as they would with the mean.
        """
        keep_memory()
        centered = pairs.points - column_medians(pairs.points)
        layout = Layout(len(centered), pairs.labels)
        remote_sums: UnlabeledSums = ClusterSums(Shipment(centered, layout))
        if pairs.drawn is not None:
            share = pairs.n_unlabeled / len(pairs.drawn)
            on_device, given = (
                to_device_of(pairs.device_array, points) for points in (centered, pairs.points)
            )
            remote_sums = DrawnPairs.of(on_device, pairs.drawn, share, given)
        elif pairs.device_array is not None:
            remote_sums = DeviceSums.of(centered, pairs.labels, pairs.device_array)
        return cls(
            centered,
            pairs.labels,
            layout,
            n_jobs,
            remote_sums=remote_sums,
            given=pairs.points,
            classes=LabeledClasses.of(pairs),
        )

    def in_coordinates(self, T: FloatArray) -> PairSums:
        """The sums over the same pairs of the points T'x, shifted by their median."""
        turned, remote_sums = self._turned(Frame(T, with_sizes=False)), self.remote_sums
        if remote_sums is not None:
            remote_sums = remote_sums.in_coordinates(T, turned.shift)
        return replace(self, points_in=turned, remote_sums=remote_sums)

    @property
    def points(self) -> FloatArray:
        """The points, as distances are taken between them."""
        return self.centered if self.points_in is None else self.points_in.made[0]

    @property
    def n_points(self) -> int:
        """The number of points."""
        return len(self.centered)

    def summed_in(self, T: FloatArray) -> PairSums:
        """The same pairs and distances, with matrices summed in the coordinates T'x.

        The matrices are T' (sum_k w_k v_k v_k') T.

        Each product is made in those coordinates, which keeps the sum exact to rounding: were it
        made first, T would blow up its rounding errors.
        """
        return self.framed(Frame(T, with_sizes=False))

    def framed(self, frame: Frame) -> PairSums:
        """The same pairs and distances, with matrices in the coordinates of `frame`."""
        turned, remote_sums = self._turned(frame), self.remote_sums
        if remote_sums is not None:
            remote_sums = turned.for_remote(remote_sums)
        return replace(self, matrices_in=turned, remote_sums=remote_sums)

    def _turned(self, frame: Frame) -> Turned:
        if self.points_in is not None or self.matrices_in is not None:
            raise AssertionError("Other coordinates are made from those of the data.")
        return Turned(frame, self.centered, self.given)

    @property
    def coordinates(self) -> FloatArray:
        """The points as v v' is summed for them."""
        return self.points if self.matrices_in is None else self.matrices_in.made[0]

    @property
    def held_coordinates(self) -> Array:
        """The same, on the device that holds the points if there is one."""
        held = self.remote_sums
        if not isinstance(held, HeldPoints):
            return self.coordinates
        return held.points if held.coordinates is None else held.coordinates

    @property
    def sizes(self) -> FloatArray | None:
        """What these are rounded from, where rounding errors are to be bounded."""
        return None if self.matrices_in is None else self.matrices_in.made[1]

    @cached_property
    def ranges(self) -> FloatArray:
        """The range of each coordinate of the points."""
        return np.asarray(np.ptp(self.points, axis=0))

    @property
    def n_coordinates(self) -> int:
        """The number of these coordinates."""
        turned = self.matrices_in or self.points_in
        return int((self.centered if turned is None else turned.frame.basis).shape[1])

    @property
    def n_base(self) -> int:
        """The number of products that are summed for one coordinate in the frame."""
        return 0 if self.matrices_in is None else len(self.matrices_in.frame.basis)

    @property
    def longest_chain(self) -> int:
        """The number of additions, at most, that a term of any of these sums goes through."""
        rows = min(self._rows, self.labels.n_labeled)
        if self._device_array is None:
            rows = max(product_chain(rows), totals_chain(rows))
        listed = rows + len(self._chunks)
        if self.classes is not None:
            n, n_blocks = len(self.classes.members), len(self.classes.blocks)
            listed = longest_chain(n, LABELED_BLOCK, n_blocks, in_runs=True)
        if self.remote_sums is not None and self.remote_sums.is_available:
            return max(listed, self.remote_sums.longest_chain) + 4
        layout = self.layout
        n, n_blocks = layout.n_points, len(layout.blocks)
        return max(listed, longest_chain(n, layout.block_size, n_blocks, in_runs=True)) + 4

    @property
    def is_remote(self) -> bool:
        """Whether unlabeled pairs are summed over by other means than threads of this process."""
        return self.remote_sums is not None and self.remote_sums.is_available

    @property
    def drawn(self) -> DrawnPairs | None:
        """The drawn pairs that stand for all unlabeled ones, if they do."""
        return self.remote_sums if isinstance(self.remote_sums, DrawnPairs) else None

    def listed_pairs(self, unlabeled_weight: float) -> IntArray:
        """The pairs that count, where not all of U do: labeled ones, and drawn ones."""
        if self.drawn is None or unlabeled_weight == 0.0:
            return self.labels.listed
        drawn = [np.asarray(to_host(ends)) for ends in (self.drawn.first, self.drawn.second)]
        return np.vstack([self.labels.listed, np.column_stack(drawn)])

    @property
    def stands_for(self) -> float:
        """The number of unlabeled pairs that each one counted stands for."""
        return 1.0 if self.drawn is None else self.drawn.stands_for

    @property
    def on_host(self) -> PairSums:
        """The same sums by threads of this process; drawn pairs stay drawn."""
        return self if self.drawn is not None else replace(self, remote_sums=None)

    def of_points(self, points: FloatArray) -> PairSums:
        """Sums over all pairs of other points with the same labels, by threads of this process."""
        return replace(self, centered=points, given=None, remote_sums=None)

    @property
    def n_unlabeled(self) -> int:
        """The number of unlabeled pairs."""
        n = self.n_points
        return n * (n - 1) // 2 - self.labels.n_labeled

    def over_labeled(self, metrics: Sequence[Metric], terms: LabeledTerms) -> Swept:
        """Sweep the labeled pairs; the weights are one number a pair, or one array a block."""
        if self.classes is not None:
            some, blocks = self.classes.members, self.classes.blocks
            sizes = None if self.sizes is None else self.sizes[some]
            X, Z = self.points[some], self.coordinates[some]
            of_blocks = cast(Terms, terms)  # each is a LabeledBlock
            return sweep(X, Z, blocks, metrics, of_blocks, self.visit_all, sizes)
        chunks = self._device_chunks if metrics else self._chunks
        return sweep_listed(chunks, self._differences, metrics, cast(Terms, terms))

    def over_unlabeled(self, metrics: Sequence[Metric], terms: Terms) -> Swept:
        """Sweep the unlabeled pairs; the weights come as one array a block."""
        if self.remote_sums is not None and self.remote_sums.is_available:
            return self.remote_sums.over_unlabeled(metrics, terms)
        X, Z, blocks = self.points, self.coordinates, self.layout.blocks
        return sweep(X, Z, blocks, metrics, terms, self.visit_all, self.sizes)

    def visit_all(
        self, visit: Callable[[Piece], Found], pieces: Sequence[Piece]
    ) -> Iterable[Found]:
        """Visit all pieces of work; the results come in their order, whatever the threads."""
        n_threads = min(_jobs(self.n_jobs), len(pieces))
        if n_threads <= 1:
            yield from map(visit, pieces)
            return
        with one_blas_thread():
            for start in range(0, len(pieces), WINDOW):
                numbers = range(start, min(start + WINDOW, len(pieces)))
                yield from _threads(n_threads).map(lambda k: visit(pieces[k]), numbers)

    @property
    def _rows(self) -> int:
        return max(1, CHUNK // max(1, int(self.centered.shape[1])))

    @cached_property
    def _chunks(self) -> list[Chunk]:
        k, rows = self.labels.n_labeled, self._rows
        runs = [slice(start, min(start + rows, k)) for start in range(0, k, rows)]
        c, n_similar = self.labels.confidence, self.labels.n_similar
        return [Chunk(run, None if c is None else c[run], n_similar) for run in runs]

    @cached_property
    def _device_chunks(self) -> list[Chunk]:
        """The same chunks, their confidences on the device."""
        return [
            replace(c, confidence=to_device_of(self._device_array, c.confidence))
            for c in self._chunks
        ]

    @property
    def _device_array(self) -> Array | None:
        """An array of the device that also sums over labeled pairs; None if that is the host."""
        return None if self.remote_sums is None else self.remote_sums.device_array

    def _differences(self, run: slice) -> Listed:
        """The differences v_k of labeled pairs for distances, those for v v', and their sizes."""
        return self._only_chunk if len(self._chunks) == 1 else self._make_differences(run)

    @cached_property
    def _only_chunk(self) -> Listed:
        """The differences of all labeled pairs, if one chunk holds them."""
        return self._make_differences(self._chunks[0].pairs)

    def _make_differences(self, run: slice) -> Listed:
        device_array, members = self._device_array, self.labels.members
        ends = self.labels.ends[run].T
        i, j = (index_on_device_of(device_array, end) for end in ends)

        def both(points: FloatArray) -> tuple[Array, Array]:
            return take_ends(to_device_of(device_array, points[members]), (i, j))

        first, second = both(self.centered if self.given is None else self.given)
        V = first - second
        if self.points_in is not None:
            V = V @ to_device_of(V, self.points_in.frame.basis)
        if self.matrices_in is None:
            return V, V, None
        frame = self.matrices_in.frame
        if not frame.with_sizes:
            return V, V @ to_device_of(V, frame.basis), None
        if frame.base is not None:
            first, second = both(frame.base)
        return V, *accurate_product(*exact_difference(first, second), frame.basis)


@cache
def keep_memory() -> None:
    """Let the C library keep the memory of a sweep's temporary arrays from block to block.

    glibc returns memory to the system, to ask for it again a moment later, beyond an amount that it
    learns from the largest array ever released. So one is made and released; it is never touched.
    """
    np.empty(BLOCK_ARRAYS * BLOCK * BLOCK)


def _jobs(n_jobs: int | None) -> int:
    """The number of threads that joblib makes of `n_jobs`; joblib is imported where it is asked."""
    if n_jobs is None:
        return 1
    from joblib import effective_n_jobs

    return int(effective_n_jobs(n_jobs))


@cache
def _threads(how_many: int) -> ThreadPoolExecutor:
    """Threads that are kept: new ones for every sweep would start with cold memory."""
    return ThreadPoolExecutor(how_many, thread_name_prefix="seraph_cvx")


def _start_anew() -> None:
    """Let a forked child create its own threads: its parent's were not forked."""
    _threads.cache_clear()


if hasattr(os, "register_at_fork"):  # not on Windows, where nothing forks
    os.register_at_fork(after_in_child=_start_anew)
