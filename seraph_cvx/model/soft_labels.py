"""The soft labels q(+1): where they come from, and the three sums of them in the M-step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..engine.distances import Factor
from ..engine.layout import BatchSums, Block, PairBatch, PairTerms
from ..engine.pair_sums import PairSums
from ..numerics.arrays import Array
from ..numerics.checks import FloatArray, IntArray, read_only
from ..pairs.pair_set import PairSet
from .posterior import (
    binary_entropy,
    posterior_entropy,
    posterior_similar,
    soft_label,
    soft_label_sums,
)


@dataclass(frozen=True, eq=False)
class SoftLabels:
    """The soft labels q(+1) of unlabeled pairs: of a metric (streamed), given, or zero."""

    sharpness: float
    threshold: float
    metric: FloatArray | Factor | None = None  # q(+1) = sigma(-sharpness * s(metric))
    table: FloatArray | None = None  # q(+1), (n, n), labeled points first; zero if not unlabeled

    def is_same(self, other: SoftLabels) -> bool:
        """Whether both give every pair the same label."""
        if (self.sharpness, self.threshold) != (other.sharpness, other.threshold):
            return False
        pairs = ((self.metric, other.metric), (self.table, other.table))
        return all(mine is its or _are_equal(mine, its) for mine, its in pairs)

    @property
    def metrics(self) -> list[FloatArray | Factor]:
        """The metrics under which a sweep must compute distances to know q."""
        return [] if self.metric is None else [self.metric]

    def on(self, batch: PairBatch, *distances: Array) -> Array | float:
        """The soft labels of a batch of pairs, given its distances under `metrics`."""
        if self.metric is not None:
            return soft_label(distances[0] - self.threshold, self.sharpness)
        if self.table is not None and isinstance(batch, Block):
            return self.table[batch.rows, batch.columns]
        return 0.0


def _are_equal(one: FloatArray | Factor | None, other: FloatArray | Factor | None) -> bool:
    """Whether two metrics, or tables, are the same numbers; of factors, their entries."""
    if isinstance(one, Factor) and isinstance(other, Factor):
        return np.array_equal(one.L, other.L)
    return type(one) is type(other) is np.ndarray and np.array_equal(one, other)


@dataclass(frozen=True)
class SoftLabelSums:
    """The sums of q(+1) v v', q(+1) and H(q) over U: all that the M-step needs of soft labels."""

    matrix: FloatArray
    total: float
    entropy: float


@dataclass(frozen=True)
class SoftLabelTerms:
    """The term of a sweep that sums q and H(q), and weighs v v' by q."""

    source: SoftLabels

    def __call__(self, batch: PairBatch, *distances: Array) -> PairTerms | BatchSums:
        """Give q and H(q) of each pair, or their sums where the kernels of a GPU sum them."""
        if self.source.metric is not None and not isinstance(distances[0], np.ndarray):
            total, entropy, q = soft_label_sums(
                distances[0], self.source.threshold, self.source.sharpness
            )
            return BatchSums([total, entropy], batch.symmetric(q))
        if self.source.metric is not None:
            s = self.source.sharpness * (batch.pairs_of(distances[0]) - self.source.threshold)
            q = posterior_similar(s)
            return PairTerms([q, posterior_entropy(s)], q)
        q = batch.pairs_of(self.source.on(batch))
        return PairTerms([q, binary_entropy(q)], q)


def sum_soft_labels(source: SoftLabels, sums: PairSums) -> SoftLabelSums:
    """Sum soft labels in one sweep; in none for the paper's start, q(+1) = 0."""
    if source.metric is None and source.table is None:
        return SoftLabelSums(np.zeros((sums.n_coordinates,) * 2), 0.0, 0.0)
    totals, matrix, _ = sums.over_unlabeled(source.metrics, SoftLabelTerms(source))
    return SoftLabelSums(matrix, float(totals[0]), float(totals[1]))


def tabulate(given: ArrayLike, pairs: PairSet, order: IntArray) -> FloatArray:
    """Arrange soft labels, one per row of ``pairs.unlabeled``, in a symmetric table of zeros.

    `order` has the number of the point of each row of the table.
    """
    table = np.zeros((pairs.n_points, pairs.n_points))
    table[tuple(pairs.unlabeled.T)] = given
    return np.asarray((table + table.T)[np.ix_(order, order)])


def check_soft_labels(given: ArrayLike, pairs: PairSet) -> FloatArray:
    """Check that there is one probability for each unlabeled pair, and return a read-only copy."""
    if pairs.drawn is not None:
        raise ValueError(
            "soft_labels has one number for each unlabeled pair, but only drawn ones count here: "
            "give previous_metric instead, or use pairs.whole."
        )
    q = np.array(given, dtype=np.float64)
    if q.shape != (pairs.n_unlabeled,):
        raise ValueError(
            f"soft_labels has shape {q.shape}, but there are {pairs.n_unlabeled} unlabeled pairs: "
            "give q(+1) for each row of pairs.unlabeled."
        )
    bad = np.flatnonzero(~((q >= 0.0) & (q <= 1.0)))
    if len(bad):
        raise ValueError(f"soft_labels[{bad[0]}] is {q[bad[0]]}: a probability is in [0, 1].")
    return read_only(q)
