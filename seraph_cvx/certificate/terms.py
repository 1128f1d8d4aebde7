"""The terms of a certificate's sweep: what is summed over a block or a list of pairs.

r_k is the double that the machine holds for 1 / (1 + e^s); H(r), r and the weights of the matrix
are those of that very double. Of scores and soft labels lower and upper bounds are used.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

from ..engine.blocks import LabeledBatch, PairBatch, PairTerms
from ..model.label_bounds import LabelEnclosure, Thresholds
from ..model.posterior import negative_logs
from ..numerics.arrays import Array, namespace, to_device_of
from ..numerics.cuda.pair_range import BoundedPairs
from ..numerics.rounding import FUSED_THRESHOLD, LARGEST_LOG, LARGEST_SCORE


def loss_and_posterior(s: Array, threshold: float) -> tuple[Array, Array]:
    """The loss log(1 + e^{-s}) and the posterior 1 / (1 + e^s) of each score.

    For scores from -threshold to LARGEST_SCORE.
    """
    xp = namespace(s)
    if threshold < LARGEST_SCORE:  # e^{-s} is far from overflow
        odds = xp.exp(-s)
        loss = xp.log1p(odds)
        odds /= 1.0 + odds
        return loss, odds
    decay = xp.exp(-xp.abs(s))
    loss = xp.clip(-s, 0.0, None) + xp.log1p(decay)
    return loss, xp.where(s > 0.0, decay, 1.0) / (1.0 + decay)


@dataclass(frozen=True)
class LabeledTerms:
    """The sums over similar and dissimilar pairs: loss, entropy, label term; weights r."""

    thresholds: Thresholds

    def __call__(self, batch: LabeledBatch, bounds: tuple[Array, Array]) -> PairTerms:
        """Return the terms of each pair of a batch of labeled ones.

        A similar pair has the loss log(1 + e^s) and the label term r - 1, a dissimilar one
        log(1 + e^{-s}) and r; the label terms of the two kinds are summed apart. For `Gain`,
        (1 - x) ln(1 - x) and ln(1 - x) are summed for the distance x from r to 0 and to the label.
        """
        lower, upper = (batch.pairs_of(bound) for bound in bounds)
        xp = namespace(lower)
        similar = to_device_of(lower, batch.similar)
        loss, r = loss_and_posterior(self.thresholds.lower_score(lower), self.thresholds.above)
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
        return PairTerms(sums, [r])


@dataclass(frozen=True)
class UnlabeledTerms:
    """The sums over unlabeled pairs: loss, entropy, dual point, soft label times d; weights r.

    Attributes
    ----------
    labels : LabelEnclosure
        Bounds on the soft labels q; None where q = 0.
    """

    thresholds: Thresholds
    labels: LabelEnclosure | None

    def __call__(self, batch: PairBatch, bounds: Any, previous: Array | None = None) -> PairTerms:
        """Return the terms of each pair of a block, or of drawn pairs."""
        lower, upper = (bounds, None) if self.labels is None else bounds
        s = self.thresholds.lower_score(batch.pairs_of(lower))
        loss, r = loss_and_posterior(s, self.thresholds.above)
        sums = dual_sums(loss, r)
        if self.labels is not None:
            longest = namespace(r).clip(batch.pairs_of(upper), 0.0, None)
            longest *= self.labels.most(batch, previous)
            sums = chain(sums, [longest])
        return PairTerms(sums, [r])

    def on_pairs(self, n: int, first: int) -> BoundedPairs | None:
        """The kernel of a GPU that sums these terms; None where there is none."""
        if self.thresholds.above > FUSED_THRESHOLD:
            return None
        if self.labels is None:
            return BoundedPairs(n, first, "no labels", self.thresholds.for_kernel(1.0))
        return self.labels.on_pairs(n, first, "soft labels")

    def in_order(self, sums: Array) -> list[Array]:
        """The sums of that kernel; below `FUSED_THRESHOLD` no logarithm is cut off."""
        loss, entropy, total, rest, longest = sums
        found = [loss, entropy, total, rest, loss]  # the loss of a dissimilar pair is -ln(1 - r)
        return found if self.labels is None else [*found, longest]


def dual_sums(loss: Array, r: Array) -> Iterator[Array]:
    """Yield the loss, H(r), r, -(1 - r) ln(1 - r) and -ln(1 - r), one after the other."""
    yield loss
    log, rest_log = negative_logs(r)
    rest = (1.0 - r) * rest_log
    log *= r
    log += rest
    yield log
    yield r
    yield rest
    yield namespace(r).clip(rest_log, None, LARGEST_LOG)
