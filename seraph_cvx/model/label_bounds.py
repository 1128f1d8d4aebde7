"""What the labels bring to a certificate, each sum with a bound on its rounding error.

With c_k the weight of pair k and q_k its label +1 (1 for a similar pair, 0 for a dissimilar one,
the soft label of an unlabeled one), these are N = sum_k c_k q_k v_k v_k', kappa = sum_k c_k q_k and
D(q) = sum_k c_k H(q_k). No metric that is certified enters, so they are made once for an M-step.
Soft labels of a previous metric are real numbers: they are enclosed, and where a sweep at another
metric needs them again it may enclose them again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..engine.distances import DistanceBounds, Factor, PairBatch, PairTerms
from ..engine.pair_sums import PairSums
from ..engine.passes import Swept
from ..numerics.arrays import Array, namespace
from ..numerics.checks import FloatArray
from ..numerics.cuda.pair_range import BoundedPairs
from ..numerics.psd_cone import scaled_factor, symmetrize
from ..pairs.pair_set import PairSet
from ..proof.rounding import (
    ENTROPY_ROUNDINGS,
    FEW_ROUNDINGS,
    FUSED_THRESHOLD,
    LABEL_ERROR,
    LARGEST_SCORE,
    SECOND_ORDER,
    UNIT,
    MatrixError,
    at_least,
    at_most,
    entry_bound,
    gamma,
    score_slack,
)
from .posterior import SoftLabels, binary_entropy

NEARLY_EQUAL = 2.0**-40
"""A metric is replaced by a factor that differs from it by so little, relative to its diagonal."""


@dataclass(frozen=True)
class Thresholds:
    """The threshold as subtracted for lower and upper bounds on a score, rounding included."""

    above: float
    below: float

    @classmethod
    def of(cls, threshold: float) -> Thresholds:
        """Thresholds a few units in the last place on either side of eta."""
        return cls(threshold * (1.0 + 8.0 * UNIT), threshold * (1.0 - 8.0 * UNIT))

    def lower_score(self, d: Array) -> Array:
        """A lower bound on s, given one on the squared distance, which is not negative."""
        return namespace(d).clip(d - self.above, -self.above, LARGEST_SCORE)

    def for_kernel(self, sharpness: float) -> tuple[float, float, float, float, float, float]:
        """The numbers of `BoundedPairs`."""
        slack = 1.0 + LABEL_ERROR, 1.0 - LABEL_ERROR
        return self.above, self.below, sharpness, LARGEST_SCORE, *slack


@dataclass(frozen=True, eq=False)
class LabelEnclosure:
    """Bounds on the soft labels q(+1) of a source, pair by pair; given ones are taken as exact."""

    source: SoftLabels
    thresholds: Thresholds

    def distances(self, with_upper: bool) -> list[DistanceBounds]:
        """What a sweep takes distances under, so that the labels can be enclosed."""
        if self._lower is None:
            return []
        return [replace(self._lower, with_upper=True) if with_upper else self._lower]

    @cached_property
    def _lower(self) -> DistanceBounds | None:
        """Lower bounds on the distances under the previous metric, if there is one."""
        matrix = self.source.metric
        if matrix is None:
            return None
        if isinstance(matrix, Factor):
            return DistanceBounds(matrix.L, score_slack(*matrix.L.shape))
        if (low_rank := _low_rank_bounds(matrix)) is not None:
            return low_rank
        lengths, worst = entry_bound(matrix)
        slack = worst * score_slack(len(matrix), len(matrix))
        return DistanceBounds(lengths[:, None], slack, matrix)

    def most(self, batch: PairBatch, lower: Array | None) -> Array:
        """Upper bounds on q, given lower bounds on the distances under the previous metric.

        Rounding may leave that metric slightly indefinite, so that such a distance is negative.
        """
        if lower is None:
            return self._given(batch)
        x = (batch.pairs_of(lower) - self.thresholds.above) * self.source.sharpness
        return _posterior(x, 1.0 + LABEL_ERROR)

    def least(self, batch: PairBatch, upper: Array | None) -> Array:
        """Lower bounds on q, given upper bounds on those distances."""
        if upper is None:
            return self._given(batch)
        xp = namespace(upper)
        upper = xp.clip(batch.pairs_of(upper), 0.0, None)
        x = (upper - self.thresholds.below) * self.source.sharpness
        return xp.where(x > LARGEST_SCORE, 0.0, _posterior(x, 1.0 - LABEL_ERROR))

    def on_pairs(self, n: int, first: int, kind: str) -> BoundedPairs | None:
        """What a kernel of a GPU sums; None where it would not know the labels well enough."""
        sharpness = self.source.sharpness
        if self.source.metric is None or sharpness * self.thresholds.above > FUSED_THRESHOLD:
            return None
        return BoundedPairs(n, first, kind, self.thresholds.for_kernel(sharpness))

    def _given(self, batch: PairBatch) -> Array:
        return batch.pairs_of(np.asarray(self.source.on(batch)))


def _posterior(x: Array, factor: float) -> Array:
    """The posterior factor / (1 + e^x), with x cut off where e^x would overflow."""
    xp = namespace(x)
    odds = xp.exp(xp.clip(x, None, LARGEST_SCORE))
    odds += 1.0
    return factor / odds


def _low_rank_bounds(matrix: FloatArray) -> DistanceBounds | None:
    """Bounds by a factor with few columns of a metric that has one, to rounding; else None."""
    L = scaled_factor(matrix)
    L = np.ascontiguousarray(L[:, np.any(L != 0.0, axis=0)])
    m, r = L.shape
    if 2 * r > m:
        return None
    rounded = gamma(r + FEW_ROUNDINGS) * (np.abs(L) @ np.abs(L).T)
    lengths, worst = entry_bound((np.abs(matrix - L @ L.T) + rounded) * SECOND_ORDER)
    rest = np.sqrt(worst) * lengths * SECOND_ORDER
    if not np.all(rest * rest <= NEARLY_EQUAL * np.diag(matrix)):
        return None
    return DistanceBounds(L, score_slack(m, r), rest=rest)


@dataclass(frozen=True)
class LabelTerms:
    """The sums over unlabeled pairs of q from below and from above, and of H(q); weights q."""

    enclosure: LabelEnclosure

    def __call__(self, batch: PairBatch, *bounds: tuple[Array, Array]) -> PairTerms:
        """Return the three terms of each pair of a block."""
        lower, upper = bounds[0] if bounds else (None, None)
        least, most = self.enclosure.least(batch, upper), self.enclosure.most(batch, lower)
        return PairTerms([least, most, binary_entropy(least)], least)

    def on_pairs(self, n: int, first: int) -> BoundedPairs | None:
        """The kernel of a GPU that sums these terms; None where there is none."""
        return self.enclosure.on_pairs(n, first, "labels alone")

    def in_order(self, sums: Array) -> list[Array]:
        """The sums of that kernel."""
        _, entropy, least, _, most = sums
        return [least, most, entropy]


@dataclass(frozen=True, eq=False)
class LabelBounds:
    """The labels' part of a certificate, bounded in the direction that each number is used in."""

    total: float  # not below kappa = sum_k c_k q_k, so that D(0) >= -eta*kappa
    soft_least: float  # not above mu * sum_U q_k
    soft_most: float  # not below it
    value: float  # not above D(q), which is feasible where R is PSD
    matrix: FloatArray  # sum_k c_k q_k z_k z_k', q from below, as computed
    error: MatrixError  # how far that may be off


def bound_labels(
    pairs: PairSet,
    mu: float,
    similar: Swept,
    sums: PairSums,
    enclosure: LabelEnclosure | None,
    largest_weight: float,
) -> LabelBounds | None:
    """All sums of the labels, by one sweep over the unlabeled pairs; None where they overflow."""
    matrix, spread = similar.matrix, np.asarray(similar.spread)
    c, n = pairs.confidence, pairs.n_similar
    kappa = [float(n) if c is None else math.fsum(c[:n])]
    chain = sums.longest_chain
    least = most = value = 0.0
    if enclosure is not None:
        soft = sums.over_unlabeled(enclosure.distances(with_upper=True), LabelTerms(enclosure))
        matrix, spread = matrix + mu * soft.matrix, spread + mu * np.asarray(soft.spread)
        of_sum = gamma(chain + FEW_ROUNDINGS)
        of_entropy = gamma(chain + ENTROPY_ROUNDINGS + FEW_ROUNDINGS)
        sum_least, sum_most, entropy = (mu * soft.totals).tolist()
        least, most = at_least(sum_least * (1.0 - of_sum)), at_most(sum_most * (1.0 + of_sum))
        eta = enclosure.source.threshold
        value = max(at_least(entropy * (1.0 - of_entropy), eta * least, -eta * most), 0.0)
    total = at_most(*kappa, most)
    numbers = (matrix, spread, np.array([total, least, most, value]))
    if not np.isfinite(np.concatenate(numbers, axis=None)).all():
        return None
    error = MatrixError(spread, sums.n_base, chain, largest_weight)
    return LabelBounds(total, least, most, value, symmetrize(matrix), error)
