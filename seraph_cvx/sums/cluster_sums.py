"""Sums over the unlabeled pairs on the workers of a joblib backend, such as a Dask cluster.

The points are sent once; a sweep sends m x m matrices and the number of a tile, and gets back the
sums over it.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor, CancelledError
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from ..numerics.blas_threads import one_blas_thread
from ..numerics.checks import FloatArray
from .blocks import BLOCK, Layout, Terms
from .distances import Metric
from .sweep import Swept, longest_chain, sweep

logger = logging.getLogger(__name__)

ENOUGH_POINTS = 4 * BLOCK
"""With fewer, a sweep is over before a worker has heard of it."""

TASKS_A_WORKER = 2
"""Tasks per worker and sweep: few, as each costs a message; several, as workers differ."""

TRIES = 3
"""Attempts at a sweep whose workers were lost."""


@dataclass(frozen=True, eq=False)
class Shipment:
    """The data that a worker keeps between sweeps."""

    points: FloatArray
    layout: Layout


class Turn(NamedTuple):
    """Other coordinates of the points: matrix' x - shift."""

    matrix: FloatArray
    shift: FloatArray

    def of(self, points: FloatArray) -> FloatArray:
        """The points in these coordinates."""
        return points @ self.matrix - self.shift


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
        from joblib import Parallel, delayed, effective_n_jobs

        shipment = self.shipment
        recipe = Recipe(self.turn, self.coordinates, list(metrics), terms, self.with_spread)
        n_tiles = len(shipment.layout.tiles)
        for attempt in range(TRIES):
            _ship(shipment, again=attempt > 0)
            try:
                parallel = Parallel(n_jobs=None, prefer="threads", batch_size=1)
                shares = min(n_tiles, TASKS_A_WORKER * effective_n_jobs(None))
                done = parallel(
                    delayed(_sweep_tiles)(shipment, range(share, n_tiles, shares), recipe)
                    for share in range(shares)
                )
                break
            except _losses() as error:
                if attempt + 1 == TRIES:
                    raise
                logger.warning("A sweep lost its workers (%r) and is made again.", error)
        parts = {number: part for share in done for number, part in share.items()}
        tiles = [parts[number] for number in range(n_tiles)]
        totals = np.sum([tile.totals for tile in tiles], axis=0)
        spreads = [tile.spread for tile in tiles if tile.spread is not None]
        spread = np.sum(spreads, axis=0) if spreads else None
        return Swept(totals, np.sum([tile.matrix for tile in tiles], axis=0), spread)


class Recipe(NamedTuple):
    """All that a sweep sends to a worker."""

    turn: Turn | None
    coordinates: Turn | None
    metrics: list[Metric]
    terms: Terms
    with_spread: bool


def _sweep_tiles(shipment: Shipment, numbers: range, recipe: Recipe) -> dict[int, Swept]:
    """Sum the terms and the weighted v v' over each of these tiles."""
    with one_blas_thread():
        return {number: _sweep_tile(shipment, number, recipe) for number in numbers}


def _sweep_tile(shipment: Shipment, number: int, recipe: Recipe) -> Swept:
    tile = shipment.layout.tiles[number]
    points = tile.of(shipment.points)
    X = points if recipe.turn is None else recipe.turn.of(points)
    Z, sizes = X, None
    if recipe.coordinates is not None:
        Z = recipe.coordinates.of(points)
        sizes = np.abs(points) @ np.abs(recipe.coordinates.matrix) if recipe.with_spread else None
    return sweep(X, Z, tile.blocks, recipe.metrics, recipe.terms, sizes=sizes)


def _ship(shipment: Shipment, again: bool) -> None:
    """Send the points to all workers of a Dask cluster, once; other backends need no such call."""
    backend = _backend()
    futures = getattr(backend, "data_futures", None)
    if futures is None or (id(shipment) in futures and not again):
        return
    futures[id(shipment)] = backend.client.scatter(shipment, broadcast=True, hash=False)
    backend._scatter.append(shipment)  # so that its id stays its own as long as the backend lives


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
