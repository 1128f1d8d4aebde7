"""Sums over pairs on the workers of a joblib backend, such as a Dask cluster.

The points are sent once. A pass at a factor of the metric sends that factor, and gets back one m x
rho matrix a strip of pairs, of which there are no more than a few hundred; a sweep of the
certificate sends m x m matrices, and gets back one a tile.
"""

from __future__ import annotations

import ctypes
import logging
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import BrokenExecutor, CancelledError
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np

from ..numerics.arrays import one_blas_thread
from ..numerics.checks import FloatArray, IntArray
from .blocks import BLOCK, Layout, Terms
from .distances import Metric
from .face.all_pairs import AllPairs, Scores
from .face.layout import FaceLayout
from .face_sums import PairLoss
from .sweep import Swept, longest_chain, sweep, transformed

logger = logging.getLogger(__name__)

ENOUGH_POINTS = 4 * BLOCK
"""With fewer, a sweep is over before a worker has heard of it."""

TASKS_A_WORKER = 2
"""Tasks per worker and sweep: few, as each costs a message; several, as workers differ."""

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
"""Numbers of options of glibc's `mallopt`."""

KEPT_BYTES = 1 << 24
"""Arrays up to this size are taken from memory that is kept."""

TRIES = 3
"""Attempts at a sweep whose workers were lost."""


class Turn(NamedTuple):
    """Other coordinates of the points: matrix' x - shift."""

    matrix: FloatArray
    shift: FloatArray

    def of(self, points: FloatArray) -> FloatArray:
        """The points in these coordinates."""
        return np.asarray(transformed(points, self.matrix, self.shift)[0])


@dataclass(frozen=True, eq=False)
class Shipment:
    """The data that a worker keeps between sweeps."""

    points: FloatArray
    layout: Layout

    def __reduce__(self) -> tuple[Any, ...]:
        return Shipment, (self.points, self.layout)  # what is kept is made anew where it arrives

    @cached_property
    def face(self) -> tuple[IntArray, FaceLayout]:
        """All pairs laid out for passes, and the order of the points there."""
        n = len(self.points)
        return FaceLayout.of(np.arange(n), self.layout.labels, n)

    def in_order(self, turn: Turn | None) -> FloatArray:
        """The points in that order and in other coordinates; the last ones are kept."""
        if turn is None:
            return self.points[self.face[0]]
        return self._turned(turn.matrix.tobytes(), turn.shift.tobytes())

    @cached_property
    def _turned(self) -> Callable[[bytes, bytes], FloatArray]:
        @lru_cache(maxsize=1)
        def turned(matrix: bytes, shift: bytes) -> FloatArray:
            turn = Turn(
                np.frombuffer(matrix).reshape(self.points.shape[1], -1), np.frombuffer(shift)
            )
            return turn.of(self.points[self.face[0]])

        return turned


@dataclass(frozen=True, eq=False)
class ClusterSums:
    """Sums on the workers that the user has configured, if any (`joblib.parallel_config`).

    Attributes
    ----------
    shipment : Shipment
    turn : Turn, optional
        Distances are of the points turned so.
    coordinates : Turn, optional
        v v' is summed in these; None: those of the distances.
    with_spread : bool
        Whether the rounding errors of the matrices are to be bounded.
    """

    shipment: Shipment
    turn: Turn | None = None
    coordinates: Turn | None = None
    with_spread: bool = False

    @property
    def is_available(self) -> bool:
        """Whether joblib's backend works in other processes, and there is enough to do."""
        if len(self.shipment.points) < ENOUGH_POINTS:
            return False
        backend = _backend()
        return not getattr(backend, "supports_sharedmem", False) and not _is_worker()

    def in_coordinates(self, T: FloatArray, shift: FloatArray) -> Self:
        """The same sums over pairs of the points T'x - shift."""
        return replace(self, turn=self._after(T, shift))

    def summed_in(self, T: FloatArray, shift: FloatArray, with_spread: bool = False) -> Self:
        """The same distances, with v v' summed for the points T'x - shift."""
        return replace(self, coordinates=self._after(T, shift), with_spread=with_spread)

    def along(self, coordinates: FloatArray, sizes: FloatArray) -> None:
        """None: workers have no coordinates but their points and linear images of them."""
        return

    @property
    def device_array(self) -> None:
        """None: labeled pairs are summed over in this process."""
        return None

    def _after(self, T: FloatArray, shift: FloatArray) -> Turn:
        if self.turn is None:
            return Turn(T, shift)
        return Turn(self.turn.matrix @ T, self.turn.shift @ T + shift)

    @property
    def longest_chain(self) -> int:
        """The number of additions, at most, that a term goes through."""
        layout = self.shipment.layout
        n_blocks = len(layout.blocks) + len(layout.tiles)
        return longest_chain(layout.n_points, layout.block_size, n_blocks, in_runs=True)

    def over_unlabeled(self, metrics: Sequence[Metric], terms: Terms) -> Swept:
        """The sums over all tiles, in their order, whichever worker made which."""
        recipe = Recipe(self.turn, self.coordinates, list(metrics), terms, self.with_spread)
        tiles = self._on_workers(_sweep_tiles, len(self.shipment.layout.tiles), recipe)
        totals = np.sum([tile.totals for tile in tiles], axis=0)
        spreads = [tile.spread for tile in tiles if tile.spread is not None]
        spread = np.sum(spreads, axis=0) if spreads else None
        return Swept(totals, np.sum([tile.matrix for tile in tiles], axis=0), spread)

    def pass_at(self, L: FloatArray, losses: Losses, with_gradient: bool = False) -> FacePass:
        """The sums over all pairs at a factor L, labeled ones included; see `FacePass`."""
        recipe = FaceRecipe(self.turn, L, losses, with_gradient)
        strips = self._on_workers(_pass_strips, self.shipment.face[1].n_strips, recipe)
        totals, excesses, matrices = zip(*strips, strict=True)
        return FacePass(float(sum(totals)), float(sum(excesses)), np.sum(matrices, axis=0))

    def _on_workers(self, work: Work, n_pieces: int, recipe: Any) -> list[Any]:
        """Do all pieces of work: the results in their order, whichever worker made which."""
        from joblib import effective_n_jobs

        for attempt in range(TRIES):
            try:
                shares = min(n_pieces, TASKS_A_WORKER * effective_n_jobs(None))
                numbers = [range(share, n_pieces, shares) for share in range(shares)]
                done = _hand_out(work, self.shipment, numbers, recipe, again=attempt > 0)
                break
            except _losses() as error:
                if attempt + 1 == TRIES:
                    raise
                logger.warning("A sweep lost its workers (%r) and is made again.", error)
        parts = {number: part for share in done for number, part in share.items()}
        return [parts[number] for number in range(n_pieces)]


class Losses(NamedTuple):
    """The losses of a pass: that of the unlabeled pairs, their weight mu, that of the labeled."""

    loss: PairLoss
    unlabeled_weight: float
    labeled_loss: PairLoss
    threshold: float


class FacePass(NamedTuple):
    """Sums over all pairs, or a strip of them, at a factor L.

    `matrix` is sum_k w_k v_k v_k' L, or, with a gradient, sum_k w_k v_k v_k'.
    """

    total: float
    excess: float
    matrix: FloatArray


class FaceRecipe(NamedTuple):
    """All that a pass sends to a worker."""

    turn: Turn | None
    L: FloatArray
    losses: Losses
    with_gradient: bool


class Recipe(NamedTuple):
    """All that a sweep sends to a worker."""

    turn: Turn | None
    coordinates: Turn | None
    metrics: list[Metric]
    terms: Terms
    with_spread: bool


Work: TypeAlias = Callable[[Shipment, Sequence[int], Any], list[Any]]
"""Does some numbered pieces of work: one result for each."""


def _work_through(work: Work, shipment: Shipment, numbers: range, recipe: Any) -> dict[int, Any]:
    """Do these pieces of work, on a worker."""
    _keep_memory()
    with one_blas_thread():
        return dict(zip(numbers, work(shipment, numbers, recipe), strict=True))


@cache
def _keep_memory() -> None:
    """Let the C library of a worker keep the memory of temporary arrays from block to block.

    Dask tells it to give back whatever is released, which made sweeps take twice the time.
    """
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "mallopt"):
        libc.mallopt(MMAP_THRESHOLD, KEPT_BYTES)
        libc.mallopt(TRIM_THRESHOLD, 2 * KEPT_BYTES)


def _pass_strips(shipment: Shipment, numbers: Sequence[int], recipe: FaceRecipe) -> list[FacePass]:
    """Sum the losses and the weighted v v' L over each of these strips."""
    turn, L, losses, with_gradient = recipe
    X, layout = shipment.in_order(turn), shipment.face[1]
    loss, mu, labeled_loss, threshold = losses
    scores = Scores(AllPairs(layout, loss, mu, labeled_loss), X @ L, threshold)
    Z = np.hstack([X, np.ones((len(X), 1))]) if with_gradient else scores.Y_and_one
    found = []
    for number in numbers:
        total, excess, summed, _ = scores.strip(number, Z)
        laplacian = summed[:, -1:] * Z[:, :-1] - summed[:, :-1]
        found.append(FacePass(total, excess, X.T @ laplacian))
    return found


def _sweep_tiles(shipment: Shipment, numbers: Sequence[int], recipe: Recipe) -> list[Swept]:
    """Sum the terms and the weighted v v' over each of these tiles."""
    return [_sweep_tile(shipment, number, recipe) for number in numbers]


def _sweep_tile(shipment: Shipment, number: int, recipe: Recipe) -> Swept:
    tile = shipment.layout.tiles[number]
    points = tile.of(shipment.points)
    X = points if recipe.turn is None else recipe.turn.of(points)
    Z, sizes = X, None
    if recipe.coordinates is not None:
        Z, sizes = transformed(points, *recipe.coordinates, recipe.with_spread)
    return sweep(X, Z, tile.blocks, recipe.metrics, recipe.terms, sizes=sizes)


def _hand_out(
    work: Work, shipment: Shipment, shares: list[range], recipe: Any, again: bool
) -> Iterable[dict[int, Any]]:
    """Let the workers do each share; a Dask cluster is asked without joblib's polling."""
    backend = _backend()
    if not hasattr(backend, "data_futures"):
        from joblib import Parallel, delayed

        parallel = Parallel(n_jobs=None, prefer="threads", batch_size=1)
        done = parallel(delayed(_work_through)(work, shipment, some, recipe) for some in shares)
        return list(done)
    sent = _ship(backend, shipment, again)
    asked = [
        backend.client.submit(_work_through, work, sent[k % len(sent)], some, recipe, pure=False)
        for k, some in enumerate(shares)
    ]
    return list(backend.client.gather(asked))


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
    found: list[type[BaseException]] = [CancelledError, BrokenExecutor, OSError]
    if distributed := sys.modules.get("distributed"):
        found.append(distributed.KilledWorker)
    return tuple(found)


def _is_worker() -> bool:
    """Whether this already is a task of a Dask worker: its work is not sent on."""
    distributed = sys.modules.get("distributed")
    try:
        return distributed is not None and distributed.get_worker() is not None
    except ValueError:
        return False
