"""The terms of a certificate's sweep: what is summed over a block or a list of pairs.

r_k is the double that the machine holds for 1 / (1 + e^s); H(r), r and the weights of the matrix
are those of that very double. Of scores and soft labels lower and upper bounds are used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..model.posterior import binary_entropy, negative_logs, posterior_similar
from ..model.soft_labels import SoftLabels
from ..numerics.arrays import Array, namespace, to_device_of
from ..numerics.rounding import LABEL_ERROR, LARGEST_LOG, LARGEST_SCORE, UNIT
from ..sums.blocks import LabeledBatch, PairBatch


@dataclass(frozen=True)
class Thresholds:
    """eta as subtracted for lower and for upper bounds on a score, its own rounding included."""

    above: float
    below: float

    @classmethod
    def of(cls, threshold: float) -> Thresholds:
        """A few units around eta."""
        return cls(threshold * (1.0 + 8.0 * UNIT), threshold * (1.0 - 8.0 * UNIT))

    def lower_score(self, d: Array) -> Array:
        """A lower bound on s, given one on the squared distance, which is not negative."""
        return namespace(d).clip(d - self.above, -self.above, LARGEST_SCORE)

    def upper_score(self, d: Array) -> Array:
        """An upper bound on s, given one on the squared distance."""
        return d - self.below


def loss_and_posterior(s: Array) -> tuple[Array, Array]:
    """log(1 + e^{-s}) and 1 / (1 + e^s), for a score that is cut off at LARGEST_SCORE."""
    xp = namespace(s)
    decay = xp.exp(-xp.abs(s))
    loss = xp.clip(-s, 0.0, None) + xp.log1p(decay)
    return loss, xp.where(s > 0.0, decay, 1.0) / (1.0 + decay)


def totals(terms: list[Array]) -> list[Any]:
    """The sum of each: no number goes through more additions than a row and a column have.

    A block is summed row by row; a list of numbers in runs, as many as each is long.
    """
    xp = namespace(terms[0])
    if terms[0].ndim > 1:
        return [xp.sum(xp.sum(values, axis=-1)) for values in terms]
    if not isinstance(terms[0], np.ndarray) or not len(terms[0]):
        return [xp.sum(values) for values in terms]
    table = np.stack(terms)
    starts = np.arange(0, table.shape[1], math.isqrt(table.shape[1]))
    return list(np.sum(np.add.reduceat(table, starts, axis=1), axis=1))


@dataclass(frozen=True)
class LabeledTerms:
    """The sums over similar and dissimilar pairs: loss, entropy, label term; weights r and q."""

    thresholds: Thresholds

    def __call__(self, batch: LabeledBatch, bounds: tuple[Array, Array]) -> tuple[list[Any], Any]:
        """Summed over a batch of labeled pairs.

        A similar pair has the loss log(1 + e^s) and the label term r - 1, a dissimilar one
        log(1 + e^{-s}) and r; the label terms of the two kinds are summed apart. For `Gain`,
        (1 - x) ln(1 - x) and ln(1 - x) are summed for the distance x from r to 0 and to the label.
        """
        lower, upper = (batch.pairs_of(bound) for bound in bounds)
        xp = namespace(lower)
        similar = to_device_of(lower, batch.similar)
        loss, r = loss_and_posterior(self.thresholds.lower_score(lower))
        far = self.thresholds.upper_score(upper)
        losses = xp.where(
            similar > 0.0,
            xp.clip(far, 0.0, None) + xp.log1p(xp.exp(-xp.abs(far))),
            loss,
        )
        log, rest_log = negative_logs(r)
        part, rest = r * log, (1.0 - r) * rest_log
        to_label = xp.where(similar > 0.0, log, rest_log)
        sums = [
            losses,
            part + rest,
            r,
            rest,
            xp.clip(rest_log, None, LARGEST_LOG),
            (1.0 - r) * similar,
            r * (1.0 - similar),
            xp.where(similar > 0.0, part, rest),
            xp.clip(to_label, None, LARGEST_LOG),
        ]
        weights = [batch.laid_out(batch.weigh(x)) for x in (r, similar)]
        return totals([batch.weigh(x) for x in sums]), iter(weights)


@dataclass(frozen=True)
class UnlabeledTerms:
    """The sums over unlabeled pairs: losses, entropies, dual point, soft labels; weights r and q.

    Attributes
    ----------
    source : SoftLabels
        Where q comes from; None where q = 0.
    """

    thresholds: Thresholds
    source: SoftLabels | None

    def __call__(self, batch: PairBatch, bounds: Any, *labels: Any) -> tuple[list[Any], Any]:
        """Summed over a block, or over drawn pairs."""
        known = self.source is not None
        lower, upper = bounds if known else (bounds, None)
        s = self.thresholds.lower_score(batch.pairs_of(lower))
        loss, r = loss_and_posterior(s)
        log, rest_log = negative_logs(r)
        rest = (1.0 - r) * rest_log
        sums = [loss, r * log + rest, r, rest, namespace(s).clip(rest_log, None, LARGEST_LOG)]
        if not known:
            return self._summed(batch, sums), [batch.laid_out(r)]
        least, most = self._soft_labels(batch, *labels)
        longest = namespace(s).clip(batch.pairs_of(upper), 0.0, None)
        sums += [least, most, binary_entropy(least), most * longest]
        return self._summed(batch, sums), iter((batch.laid_out(r), batch.laid_out(least)))

    def _summed(self, batch: PairBatch, sums: list[Array]) -> list[Any]:
        """The total of each over the pairs of a block; on a device, all other entries hidden."""
        if sums[0].ndim == 1:
            return totals(sums)
        return totals([batch.laid_out(x) for x in sums])

    def _soft_labels(self, batch: PairBatch, *labels: Any) -> tuple[Array, Array]:
        """Bounds on q(+1) from below and above, zero off the pairs."""
        source = self.source
        if source is None or not labels:
            q = np.asarray(0.0 if source is None else source.on(batch))
            return (batch.pairs_of(q),) * 2
        lower, upper = (batch.pairs_of(d) for d in labels[0])
        xp = namespace(lower)
        most = xp.clip(self.thresholds.lower_score(lower) * source.sharpness, None, LARGEST_SCORE)
        least = self.thresholds.upper_score(upper) * source.sharpness
        surely = posterior_similar(xp.clip(least, None, LARGEST_SCORE)) * (1.0 - LABEL_ERROR)
        return (
            xp.where(least > LARGEST_SCORE, 0.0, surely),
            xp.clip(posterior_similar(most) * (1.0 + LABEL_ERROR), None, 1.0),
        )
