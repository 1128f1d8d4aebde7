"""Points of the dual of the M-step, r_k in [0, 1] for each pair, and the sums that judge them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from .arrays import Array, beside, namespace
from .blocks import Chunk, Place
from .posterior import binary_entropy, posterior_similar
from .soft_labels import SoftLabels

DualPoint: TypeAlias = Callable[..., Array]
"""r(place, *distances), on a block or chunk of pairs."""


@dataclass(frozen=True)
class DualTerms:
    """H(r), r and, if asked for, the weights r, at a dual point `r`."""

    r: DualPoint
    with_matrix: bool = False

    def __call__(self, place: Place, *distances: Array) -> tuple[list[Any], Array | None]:
        """Summed over a place."""
        probability = self.r(place, *distances)
        xp = namespace(probability)
        weight = place.weigh(probability)
        entropy = place.weigh(binary_entropy(probability))
        return [xp.sum(entropy), xp.sum(weight)], weight if self.with_matrix else None


@dataclass(frozen=True)
class TowardsOne:
    """r = step * sigma(-s)."""

    step: float
    threshold: float

    def __call__(self, place: Place, d: Array) -> Array:
        """On a block or chunk of pairs."""
        return self.step * posterior_similar(d - self.threshold)


@dataclass(frozen=True)
class TowardsLabels:
    """r = step * sigma(-s) + (1 - step) * (c - b)/c."""

    step: float
    threshold: float
    source: SoftLabels
    n_similar: int

    def __call__(self, place: Place, d: Array, *source_distances: Array) -> Array:
        """On a block or chunk of pairs."""
        if isinstance(place, Chunk):
            similar = np.arange(place.pairs.start, place.pairs.stop) < self.n_similar
            anchor: Array = beside(d, similar.astype(np.float64))
        else:
            anchor = self.source.on(place, *source_distances)
        return self.step * posterior_similar(d - self.threshold) + (1.0 - self.step) * anchor


@dataclass(frozen=True)
class Pinned:
    """r = step * sigma(-s), but 0 on pairs that leave the range of M by more than `limit`."""

    step: float
    threshold: float
    limit: float

    def __call__(self, place: Place, d: Array, d_null: Array) -> Array:
        """On a block or chunk of pairs."""
        stays = namespace(d).astype(d_null <= self.limit, d.dtype)
        return self.step * stays * posterior_similar(d - self.threshold)
