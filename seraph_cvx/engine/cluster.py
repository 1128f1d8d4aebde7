"""Sums over pairs on the workers of a joblib backend, such as a Dask cluster.

The points are sent once. A pass sends a factor or a few m x m matrices, and gets back one matrix
per strip of pairs, of which there are no more than a few hundred.
"""

from __future__ import annotations

import ctypes
import logging
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, CancelledError
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from typing import Any, NamedTuple, Self

import numpy as np

from ..numerics.arrays import one_blas_thread
from ..numerics.checks import FloatArray
from .distances import Factor, Layout, Metric, Terms, block_distances, transformed
from .passes import Limit, OutOfTime, Swept, longest_chain, sum_strip, swept, with_one

logger = logging.getLogger(__name__)

POLL = 0.2
"""Seconds between two looks at the limit while workers work."""


class AffineMap(NamedTuple):
    """Other coordinates of the points: matrix' x - shift."""

    matrix: FloatArray
    shift: FloatArray


@dataclass(frozen=True, eq=False)
class Shipment:
    """The data that a worker keeps between passes: points, labeled ones first, and their blocks."""

    points: FloatArray
    layout: Layout

    def __reduce__(self) -> tuple[Any, ...]:
        return Shipment, (self.points, self.layout)  # what is kept is made anew where it arrives

    def points_in(self, coordinates: AffineMap | None) -> FloatArray:
        """The points in other coordinates; the last ones are kept."""
        if coordinates is None:
            return self.points
        return self._transformed(coordinates.matrix.tobytes(), coordinates.shift.tobytes())

    @cached_property
    def _transformed(self) -> Callable[[bytes, bytes], FloatArray]:
        @lru_cache(maxsize=1)
        def points_in(matrix: bytes, shift: bytes) -> FloatArray:
            T = np.frombuffer(matrix).reshape(self.points.shape[1], -1)
            return np.asarray(transformed(self.points, T, np.frombuffer(shift))[0])

        return points_in


@dataclass(frozen=True, eq=False)
class Recipe:
    """All that a pass sends to a worker.

    Distances are of the points in `point_coordinates`, and so is v v' summed; or it is in
    `matrix_coordinates`; or, `along_factor`, the matrix is sum_k w_k v_k v_k' L of the only metric.
    """

    point_coordinates: AffineMap | None
    matrix_coordinates: AffineMap | None
    metrics: list[Metric]
    terms: Terms
    with_spread: bool
    along_factor: bool


@dataclass(frozen=True, eq=False)
class ClusterSums:
    """Sums on the workers that the user has configured, if any (`joblib.parallel_config`)."""

    shipment: Shipment
    point_coordinates: AffineMap | None = None
    matrix_coordinates: AffineMap | None = None
    with_spread: bool = False
    device_array: None = None
    held_points: None = None
    held_coordinates: None = None
    drawn: None = None
    stands_for: float = 1.0

    @property
    def is_available(self) -> bool:
        """Whether joblib's backend works in other processes."""
        backend = _backend()
        return not getattr(backend, "supports_sharedmem", False) and not _is_worker()

    def with_point_coordinates(self, T: FloatArray, shift: FloatArray) -> Self:
        """The same sums over pairs of the points T'x - shift."""
        return replace(self, point_coordinates=AffineMap(T, shift))

    def with_matrix_coordinates(
        self, T: FloatArray, shift: FloatArray, with_spread: bool = False
    ) -> Self:
        """The same distances, with v v' summed for the points T'x - shift."""
        return replace(self, matrix_coordinates=AffineMap(T, shift), with_spread=with_spread)

    def with_matrix_points(self, Z: FloatArray, sizes: FloatArray) -> None:
        """None: workers have no coordinates but their points and linear images of them."""
        return

    @property
    def longest_chain(self) -> int:
        """The number of additions, at most, that a term goes through."""
        return longest_chain(self.shipment.layout, in_runs=True)

    def over_unlabeled(
        self, metrics: Sequence[Metric], terms: Terms, limit: Limit, along_factor: bool = False
    ) -> Swept:
        """The sums over all strips, in their order, whichever worker made which."""
        recipe = Recipe(
            self.point_coordinates,
            self.matrix_coordinates,
            list(metrics),
            terms,
            self.with_spread,
            along_factor,
        )
        strips = self._on_workers(self.shipment.layout.n_strips, recipe, limit)
        spreads = [strip.spread for strip in strips if strip.spread is not None]
        return Swept(
            np.sum([strip.totals for strip in strips], axis=0),
            np.sum([strip.matrix for strip in strips], axis=0),
            np.sum(spreads, axis=0) if spreads else None,
        )

    def _on_workers(self, n_strips: int, recipe: Recipe, limit: Limit) -> list[Swept]:
        """Sum over all strips: the results in their order."""
        from joblib import effective_n_jobs

        for attempt in range(3):
            try:
                # two tasks a worker: each costs a message, but workers differ
                shares = min(n_strips, 2 * effective_n_jobs(None))
                numbers = [range(share, n_strips, shares) for share in range(shares)]
                done = _hand_out(self.shipment, numbers, recipe, limit, again=attempt > 0)
                break
            except _losses() as error:
                if attempt == 2:
                    raise
                logger.warning("A sweep lost its workers (%r) and is made again.", error)
        parts = {number: part for share in done for number, part in share.items()}
        return [parts[number] for number in range(n_strips)]


@cache
def _keep_memory() -> None:
    """Let the C library of a worker keep the memory of temporary arrays from block to block.

    Dask tells it to give back whatever is released, which made sweeps take twice the time.
    """
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "mallopt"):
        mmap_threshold, trim_threshold, kept = -3, -1, 1 << 24  # glibc's numbers of these options
        libc.mallopt(mmap_threshold, kept)
        libc.mallopt(trim_threshold, 2 * kept)


def _sum_strips(shipment: Shipment, numbers: range, recipe: Recipe) -> dict[int, Swept]:
    """Sum over some strips, on a worker."""
    _keep_memory()
    points, layout = shipment.points, shipment.layout
    X = shipment.points_in(recipe.point_coordinates)
    left, Z, sizes = X, X, None
    if recipe.matrix_coordinates is not None:
        Z, sizes = transformed(points, *recipe.matrix_coordinates, recipe.with_spread)
        left = Z
    elif recipe.along_factor and isinstance(recipe.metrics[0], Factor):
        Z = X @ recipe.metrics[0].L
    distances = [block_distances(X, metric) for metric in recipe.metrics]
    one, in_runs = with_one(Z), sizes is not None
    done = {}
    with one_blas_thread():
        for number in numbers:
            strip = sum_strip(layout.strip(number), distances, recipe.terms, one, in_runs)
            done[number] = swept(strip.totals, strip.summed, left, Z, sizes, in_runs)
    return done


def _hand_out(
    shipment: Shipment, shares: list[range], recipe: Recipe, limit: Limit, again: bool
) -> list[dict[int, Swept]]:
    """Let the workers sum each share; a Dask cluster is asked without joblib's polling."""
    limit.check()
    backend = _backend()
    if not hasattr(backend, "data_futures"):
        from joblib import Parallel, delayed

        parallel = Parallel(n_jobs=None, prefer="threads", batch_size=1)
        done = parallel(delayed(_sum_strips)(shipment, share, recipe) for share in shares)
        return list(done)
    sent = _ship(backend, shipment, again)
    asked = [
        backend.client.submit(_sum_strips, sent[k % len(sent)], share, recipe, pure=False)
        for k, share in enumerate(shares)
    ]
    try:
        return [_result(future, limit) for future in asked]
    except OutOfTime:
        backend.client.cancel(asked)
        raise


def _result(future: Any, limit: Limit) -> Any:
    """Wait as long as there is time; a result that is there is fetched, however long that takes."""
    while not future.done():
        limit.check()
        with suppress(TimeoutError):
            return future.result(timeout=POLL)
    return future.result()


def _ship(backend: Any, shipment: Shipment, again: bool) -> list[Any]:
    """Send the points to each worker of a Dask cluster, once: what stands for them there.

    Each worker has a copy of its own. Of copies that Dask knows to be equal it drops all but one
    after a while, and then all work is done where that one is.
    """
    copies = backend.data_futures.setdefault(id(shipment), {})
    if not copies:
        backend._scatter.append(shipment)  # so that its id stays its own while the backend lives
    workers = backend.client.nthreads()
    for gone in [address for address in copies if again or address not in workers]:
        del copies[gone]
    for address in workers:
        if address not in copies:
            copies[address] = backend.client.scatter(shipment, workers=[address], hash=False)
    return [copies[address] for address in sorted(copies)]


def _backend() -> Any:
    """The backend that the user has configured, or joblib's threads."""
    from joblib.parallel import get_active_backend

    return get_active_backend(prefer="threads")[0]


def _losses() -> tuple[type[BaseException], ...]:
    """Errors that say that workers, or what they kept, are gone; not that the work is at fault."""
    kinds: list[type[BaseException]] = [CancelledError, BrokenExecutor, OSError]
    if distributed := sys.modules.get("distributed"):
        kinds.append(distributed.KilledWorker)
    return tuple(kinds)


def _is_worker() -> bool:
    """Whether this already is a task of a Dask worker: its work is not sent on."""
    distributed = sys.modules.get("distributed")
    try:
        return distributed is not None and distributed.get_worker() is not None
    except ValueError:
        return False
