"""Sums over pairs, labeled and unlabeled, by matrix products; no pair is ever stored."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from ..numerics.accurate_sums import (
    accurate_product,
    column_medians,
    exact_difference,
    product_chain,
    totals_chain,
)
from ..numerics.arrays import index_on_device_of, one_blas_thread, to_device_of
from ..numerics.checks import FloatArray, IntArray
from ..pairs.labeled_pairs import Labels
from ..pairs.pair_set import PairSet
from .distances import (
    CHUNK,
    Chunk,
    Coordinates,
    Layout,
    Metric,
    Terms,
    TransformedPoints,
    take_ends,
)
from .passes import Limit, Listed, Swept, longest_chain, sweep, sweep_listed

if TYPE_CHECKING:
    from .device import DeviceSums

MANY_LABELED_PAIRS = 1 << 14
"""Labeled pairs up to which each is summed by itself, by the difference of its points."""

Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class PairSums:
    """Sums over all pairs of `points`, those with a label first."""

    centered: FloatArray  # the points in the coordinates of the data, shifted
    given: FloatArray  # the points before any rounding, of which labeled differences are taken
    order: IntArray  # the number of each of them in the pair set
    labels: Labels  # with the numbers of this order
    layout: Layout  # the blocks of all pairs; it does not depend on the coordinates
    n_points: int
    n_unlabeled: int
    n_jobs: int | None = None
    points_in: TransformedPoints | None = None  # other coordinates, in which all is summed
    matrices_in: TransformedPoints | None = None  # or in which v v' is
    remote: DeviceSums | None = None  # sums over the unlabeled pairs, where a device makes them
    n_base: int = 0  # the number of products that are summed for one coordinate of matrices
    limit: Limit = field(default_factory=Limit)  # of these sums in any coordinates
    _kept: list[Listed] = field(default_factory=list, init=False)  # differences in one chunk

    @classmethod
    def of(cls, pairs: PairSet, n_jobs: int | None = None) -> PairSums:
        """Set up the sums over `pairs`.

        Points are shifted by their median: differences do not change, and a few far points do not
        push all others away from the origin, as they would with the mean.
        """
        members = pairs.labels.members
        order = np.concatenate([members, np.setdiff1d(np.arange(pairs.n_points), members)])
        labels = pairs.labels.renumbered(np.argsort(order))
        given = pairs.points[order]
        centered = given - column_medians(pairs.points)
        layout, remote = Layout(len(centered), labels), None
        if pairs.device_array is not None:
            from .device import DeviceSums

            remote = DeviceSums.of(centered, layout, pairs.device_array)
        return cls(
            centered,
            given,
            order,
            labels,
            layout,
            pairs.n_points,
            pairs.n_unlabeled,
            n_jobs,
            remote=remote,
        )

    def with_point_coordinates(self, T: FloatArray) -> PairSums:
        """The sums over the same pairs of the points T'x, shifted by their median."""
        coordinates = Coordinates(T, with_sizes=False)
        points = TransformedPoints(coordinates, self.centered, self.given)
        remote = self.remote and self.remote.with_point_coordinates(T, points.shift)
        return replace(self, points_in=points, remote=remote)

    def with_matrix_coordinates(self, coordinates: Coordinates | FloatArray) -> PairSums:
        """The same pairs and distances, with matrices in other coordinates T'x.

        The matrices are T'(sum_k w_k v_k v_k')T. Each product is made in those coordinates: were T
        applied to the sum, it would blow up its rounding errors.
        """
        if not isinstance(coordinates, Coordinates):
            coordinates = Coordinates(coordinates, with_sizes=False)
        points = TransformedPoints(coordinates, self.centered, self.given)
        remote = self.remote
        if remote is not None and coordinates.base is None:
            with_spread = coordinates.with_sizes
            remote = remote.with_matrix_coordinates(coordinates.basis, points.shift, with_spread)
        elif remote is not None:
            Z, sizes = (to_device_of(remote.points, x) for x in points.values)
            remote = replace(remote, coordinates=Z, sizes=sizes)
        return replace(self, matrices_in=points, remote=remote, n_base=len(coordinates.basis))

    def of_points(self, points: FloatArray) -> PairSums:
        """Sums over all pairs of other points with the same labels, by threads of this process."""
        return replace(self, centered=points, given=points, remote=None)

    @property
    def on_host(self) -> PairSums:
        """The same sums by threads of this process."""
        return replace(self, remote=None)

    @property
    def points(self) -> FloatArray:
        """The points, as distances are taken between them."""
        return self.centered if self.points_in is None else self.points_in.values[0]

    @property
    def coordinates(self) -> FloatArray:
        """The points as v v' is summed for them."""
        return self.points if self.matrices_in is None else self.matrices_in.values[0]

    @property
    def sizes(self) -> FloatArray | None:
        """Magnitudes from which `coordinates` are rounded, where rounding errors are bounded."""
        return None if self.matrices_in is None else self.matrices_in.values[1]

    @property
    def longest_chain(self) -> int:
        """The number of additions, at most, that a term of any of these sums goes through."""
        rows = self._chunks[0].pairs.stop if self._chunks else 0
        if self.remote is None:
            rows = max(product_chain(rows), totals_chain(rows))
        listed = rows + len(self._chunks)
        if self.class_layout is not None:
            listed = longest_chain(self.class_layout, in_runs=True)
        others = longest_chain(self.layout, in_runs=True)
        if self.remote is not None:
            others = self.remote.longest_chain
        return max(listed, others) + 4

    def over_labeled(self, metrics: Sequence[Metric], terms: Terms) -> Swept:
        """Sum over the labeled pairs: by differences, or by blocks where classes give many."""
        if self.class_layout is not None:
            n = self.class_layout.n_points
            X, Z, sizes = self.points[:n], self.coordinates[:n], self.sizes
            sizes = None if sizes is None else sizes[:n]
            return sweep(self.class_layout, X, Z, metrics, terms, self.visit_all, sizes)
        chunks, device_array = self._chunks, self.remote and self.remote.points
        if metrics and device_array is not None:  # where the distances are
            c = [to_device_of(device_array, chunk.confidence) for chunk in chunks]
            chunks = [replace(x, confidence=of) for x, of in zip(chunks, c, strict=True)]
        return sweep_listed(chunks, self._differences, metrics, terms)

    def over_unlabeled(self, metrics: Sequence[Metric], terms: Terms) -> Swept:
        """Sum over the unlabeled pairs."""
        if self.remote is not None:
            return self.remote.over_unlabeled(metrics, terms, self.limit)
        X, Z = self.points, self.coordinates
        return sweep(self.layout, X, Z, metrics, terms, self.visit_all, self.sizes)

    def visit_all(self, visit: Callable[[int], Result], numbers: Sequence[int]) -> Iterable[Result]:
        """Visit all strips; the results come in their order, whatever the threads."""
        n_threads = 1
        if self.n_jobs is not None:
            from joblib import effective_n_jobs

            n_threads = min(effective_n_jobs(self.n_jobs), len(numbers))
        if n_threads <= 1:
            yield from map(visit, self.limit.each(numbers))
            return

        def visit_in_time(number: int) -> Result:
            self.limit.check()
            return visit(number)

        with one_blas_thread():
            yield from _threads(n_threads).map(visit_in_time, numbers)

    @cached_property
    def class_layout(self) -> Layout | None:
        """The blocks of all labeled pairs, where classes give many of them."""
        classes = self.labels.classes
        if classes is None or self.labels.n_labeled <= MANY_LABELED_PAIRS:
            return None
        return Layout(len(classes), None, classes)

    @cached_property
    def _chunks(self) -> list[Chunk]:
        """The labeled pairs, so many at a time that their differences are no more than `CHUNK`."""
        k, rows = self.labels.n_labeled, max(1, CHUNK // max(1, int(self.centered.shape[1])))
        c, chunks = self.labels.confidence, []
        for start in range(0, k, rows):
            run = slice(start, min(start + rows, k))
            chunks.append(Chunk(run, None if c is None else c[run], self.labels.n_similar))
        return chunks

    def _differences(self, run: slice) -> Listed:
        """The differences v_k of labeled pairs for distances, those for v v', and their sizes."""
        if self._kept:
            return self._kept[0]
        device_array, members = self.remote and self.remote.points, len(self.labels.members)
        i, j = self.labels.listed[run].T
        ends = index_on_device_of(device_array, i), index_on_device_of(device_array, j)
        first, second = take_ends(to_device_of(device_array, self.given[:members]), ends)
        V = first - second
        if self.points_in is not None:
            V = V @ to_device_of(V, self.points_in.coordinates.basis)
        coordinates = None if self.matrices_in is None else self.matrices_in.coordinates
        if coordinates is None:
            found: Listed = V, V, None
        elif not coordinates.with_sizes:
            found = V, V @ to_device_of(V, coordinates.basis), None
        else:
            if coordinates.base is not None:
                base = to_device_of(device_array, coordinates.base[:members])
                first, second = take_ends(base, ends)
            found = V, *accurate_product(*exact_difference(first, second), coordinates.basis)
        if len(self._chunks) == 1:
            self._kept.append(found)
        return found


# The C library shall keep the memory of a pass's temporary arrays from block to block. glibc
# returns memory to the system, to ask for it again a moment later, beyond an amount that it learns
# from the largest array ever released. So one is made and released; it is never touched.
np.empty(1 << 20)


@cache
def _threads(how_many: int) -> ThreadPoolExecutor:
    """Threads that are kept: new ones for every pass would start with cold memory."""
    return ThreadPoolExecutor(how_many, thread_name_prefix="seraph_cvx")


if hasattr(os, "register_at_fork"):  # a forked child needs threads of its own
    os.register_at_fork(after_in_child=_threads.cache_clear)
