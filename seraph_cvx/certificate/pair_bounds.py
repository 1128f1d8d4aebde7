"""One sweep over all pairs for all sums of a certificate, each with a bound on its rounding error.

With s_k = v_k'LL'v_k - eta, c_k the weight of pair k and q_k its label +1 (1 for a similar pair, 0
for a dissimilar one, the soft label of an unlabeled one),

    f(LL') = sum_k c_k [log(1 + e^{-s_k}) + q_k s_k] + <R, LL'>
    D(r)   = sum_k c_k [H(r_k) + eta (r_k - q_k)]

The dual point is r_k = the double that the machine holds for 1 / (1 + e^s): any number in [0, 1]
will do, but H(r), r and the matrix sum_k c_k r_k v_k v_k' have to be those of the same doubles. So
they are made in one sweep. Of scores and soft labels lower and upper bounds are used.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..engine.distances import DistanceBounds, Metric, PairBatch, PairTerms
from ..model.label_bounds import LabelBounds, LabelEnclosure, Thresholds
from ..model.m_step_objective import MStepObjective
from ..model.posterior import negative_logs
from ..numerics.arrays import Array, namespace, to_device_of
from ..numerics.checks import FloatArray
from ..numerics.cuda.pair_range import BoundedPairs
from ..numerics.psd_cone import symmetrize
from ..proof.rounding import (
    ENTROPY_ROUNDINGS,
    FEW_ROUNDINGS,
    FUNCTION_ERROR,
    FUSED_THRESHOLD,
    LARGEST_LOG,
    LARGEST_ODDS,
    LARGEST_SCORE,
    LOSS_ROUNDINGS,
    SMALLEST_LOSS,
    UNIT,
    MatrixError,
    at_least,
    at_most,
    gamma,
    score_slack,
)


class Gain(NamedTuple):
    """A lower bound on what concavity adds to the dual value between an anchor a and r.

    It is D(a + tau (r - a)) - tau D(r) - (1 - tau) D(a), with a_k in {0, 1}.
    """

    # With x_k = |r_k - a_k|, H(tau x) = tau H(x) - tau ln(tau) x + e(x), where e increases with
    # x. With delta = 1 - tau,
    #     e(x) >= tau delta [x + (1 - x) ln(1 - x)]                    best for large delta
    #     e(x) >= delta [-ln(1 - x) - x] - delta^2 x^2 / (1 - x)       to first order in delta
    # The second one is used at x cut off at 1 - 2^-10.
    distance: float  # not above sum_k c_k x_k
    largest_distance: float  # not below it
    curvature: float  # not above sum_k c_k [x_k + (1 - x_k) ln(1 - x_k)]
    logs: float  # not above sum_k c_k min(-ln(1 - x_k), `LARGEST_LOG`)

    @classmethod
    def of(cls, kinds: list[list[float]], chain: int) -> Gain:
        """Make it from the sums of x, -(1 - x) ln(1 - x) and -ln(1 - x) for each kind of pair."""
        x, rest, logs = np.array(kinds, dtype=np.float64).T
        of_sum = gamma(chain + FEW_ROUNDINGS)
        of_log = gamma(chain + ENTROPY_ROUNDINGS + FEW_ROUNDINGS)
        least = x * (1.0 - of_sum)
        return cls(
            at_least(*least),
            at_most(*(x * (1.0 + of_sum))),
            at_least(*least, *(-rest * (1.0 + of_log))),
            at_least(*(logs * (1.0 - of_log))),
        )

    def at(self, step: float) -> list[float]:
        """Terms whose sum is not above the gain at tau = `step`, each good to a few roundings."""
        left = 1.0 - step  # exact for step >= 1/2, and else good to one rounding
        log = -math.log(step) * (1.0 - 2.0 * FUNCTION_ERROR * UNIT)
        first = step * log * max(self.distance, 0.0)
        second = step * left * max(self.curvature, 0.0)
        terms = [
            left * self.logs,
            -left * self.largest_distance,
            -left * left * LARGEST_ODDS * self.largest_distance,
        ]
        return [first, *terms] if sum(terms) > second else [first, second]


@dataclass(frozen=True, eq=False)
class PairBounds:
    """The sums of a certificate at LL', bounded in the direction that each is used in."""

    primal_value: float  # not below f(LL')
    tangent_value: float  # not above D(r) at the dual point r of the sweep, feasible or not
    toward_one: Gain  # what D gains over its chords as r moves toward 0
    toward_labels: Gain  # and toward q
    dual_matrix: FloatArray  # sum_k c_k r_k z_k z_k', as computed
    dual_error: MatrixError
    labels: LabelBounds  # the same of the labels q; these do not depend on L
    penalties_at_zero: float = 0.0  # not below the sum of the penalties' conjugates at Z = 0

    @property
    def value_at_labels(self) -> float:
        """A lower bound on D(q)."""
        if not self.penalties_at_zero:
            return self.labels.value
        return at_least(self.labels.value, -self.penalties_at_zero)

    def value_toward_one(self, step: float, eta: float) -> float:
        """A lower bound on D(tau*r) for tau = `step`; D(0) = -eta*kappa."""
        return at_least(
            step * self.tangent_value,
            -(1.0 - step) * eta * self.labels.total,
            -(1.0 - step) * self.penalties_at_zero,
            *self.toward_one.at(step),
        )

    def value_toward_labels(self, share: float) -> float:
        """A lower bound on D(q + share*(r - q))."""
        return at_least(
            share * self.tangent_value,
            (1.0 - share) * self.labels.value,
            -(1.0 - share) * self.penalties_at_zero,
            *self.toward_labels.at(share),
        )


def bound_pairs(objective: MStepObjective, L: FloatArray) -> PairBounds | None:
    """All sums of a certificate at LL', by one sweep over the labeled and one over all others.

    Those over the labels alone are the objective's, and made once. None where they overflow.
    """
    for name in ("CUBLAS_EMULATE_DOUBLE_PRECISION", "CUBLAS_EMULATION_STRATEGY"):
        is_set = os.environ.get(name, "0") not in ("", "0")
        if is_set and objective.pairs.device_array is not None:
            raise ArithmeticError(
                f"The environment variable {name} is set: float64 may be emulated by other "
                "formats, whose rounding errors no certificate here covers. Unset it."
            )
    sums, mu, labels = objective.geometry.dual_sums, objective.mu, objective.label_bounds
    slack = score_slack(objective.pairs.n_features, L.shape[1])
    thresholds = Thresholds.of(objective.threshold)
    labeled = sums.over_labeled(
        [DistanceBounds(L, slack, with_upper=True)], LabeledTerms(thresholds)
    )
    matrix, spread = labeled.matrix, np.asarray(labeled.spread)
    unlabeled = None
    if mu > 0.0:
        enclosure = objective.label_enclosure
        metrics: list[Metric] = [DistanceBounds(L, slack, with_upper=enclosure is not None)]
        if enclosure is not None:
            metrics += enclosure.distances(with_upper=False)
        swept = sums.over_unlabeled(metrics, UnlabeledTerms(thresholds, enclosure))
        matrix, spread = matrix + mu * swept.matrix, spread + mu * np.asarray(swept.spread)
        unlabeled = swept.totals
    numbers = [labeled.totals, *([] if unlabeled is None else [unlabeled]), matrix, spread, L * L]
    if labels is None or not np.isfinite(np.concatenate(numbers, axis=None)).all():
        return None
    chain = sums.longest_chain
    return PairBounds(
        **_values(objective, L, labeled.totals, unlabeled, labels, chain),
        dual_matrix=symmetrize(matrix),
        dual_error=MatrixError(spread, sums.n_base, chain, objective.moments.largest_weight),
        labels=labels,
    )


def _values(
    objective: MStepObjective,
    L: FloatArray,
    labeled: FloatArray,
    unlabeled: FloatArray | None,
    labels: LabelBounds,
    chain: int,
) -> dict[str, Any]:
    """The scalars of PairBounds: the sums, each moved by its error."""
    eta, mu = objective.threshold, objective.mu
    of_sum = gamma(chain + FEW_ROUNDINGS)
    of_loss = gamma(chain + LOSS_ROUNDINGS + FEW_ROUNDINGS)
    of_entropy = gamma(chain + ENTROPY_ROUNDINGS + FEW_ROUNDINGS)
    fewer, more = 1.0 - of_sum, 1.0 + of_sum

    loss, entropy, *to_one, missing, excess, own_rest, own_log = map(float, labeled)
    primal = [loss * (1.0 + of_loss), *_penalty(objective, L)]
    tangent = [entropy * (1.0 - of_entropy), eta * excess * fewer, -eta * missing * more]
    toward_one = [to_one]
    toward_labels = [[excess, own_rest, own_log], [missing, 0.0, 0.0]]
    if unlabeled is not None:
        loss, entropy, *to_one = (mu * unlabeled[:5]).tolist()
        primal.append(loss * (1.0 + of_loss))
        tangent += [entropy * (1.0 - of_entropy), eta * to_one[0] * fewer]
        toward_one.append(to_one)
        if len(unlabeled) == 5:  # q = 0
            toward_labels.append(to_one)
        else:
            primal += [mu * float(unlabeled[5]) * more, -eta * labels.soft_least]
            tangent.append(-eta * labels.soft_most)
    count = objective.pairs.n_labeled + objective.pairs.n_unlabeled
    primal.append(SMALLEST_LOSS * count * (objective.pair_total + 1.0) * (1.0 + eta))
    return {
        "primal_value": at_most(*primal),
        "tangent_value": at_least(*tangent),
        "toward_one": Gain.of(toward_one, chain),
        "toward_labels": Gain.of(toward_labels, chain),
    }


def _penalty(objective: MStepObjective, L: FloatArray) -> list[float]:
    """Terms whose sum is not below <R, LL'>."""
    slack = gamma(2 * len(L) + L.size + FEW_ROUNDINGS)
    terms = [objective.trace_weight * float(np.sum(L * L)) * (1.0 + slack)]
    if objective.manifold_term is not None:
        size, term = np.abs(L), objective.manifold_term
        terms.append(float(np.sum((term @ L) * L)))
        terms.append(slack * 2.0 * float(np.sum((np.abs(term) @ size) * size)))
    return terms


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

    def __call__(self, batch: PairBatch, bounds: tuple[Array, Array]) -> PairTerms:
        """Return the terms of each pair of a batch of labeled ones.

        A similar pair has the loss log(1 + e^s) and the label term r - 1, a dissimilar one
        log(1 + e^{-s}) and r; the label terms of the two kinds are summed apart. For `Gain`,
        (1 - x) ln(1 - x) and ln(1 - x) are summed for the distance x from r to 0 and to the label.
        """
        lower, upper = map(batch.pairs_of, bounds)
        xp = namespace(lower)
        similar = to_device_of(lower, batch.similar)
        loss, r = loss_and_posterior(self.thresholds.lower_score(lower), self.thresholds.above)
        far = upper - self.thresholds.below  # an upper bound on s
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
        return PairTerms(sums, r)


@dataclass(frozen=True)
class UnlabeledTerms:
    """The sums over unlabeled pairs: loss, entropy, dual point, soft label times d; weights r."""

    thresholds: Thresholds
    labels: LabelEnclosure | None  # bounds on the soft labels q; None where q = 0

    def __call__(self, batch: PairBatch, bounds: Any, previous: Array | None = None) -> PairTerms:
        """Return the terms of each pair of a block."""
        lower, upper = (bounds, None) if self.labels is None else bounds
        s = self.thresholds.lower_score(batch.pairs_of(lower))
        loss, r = loss_and_posterior(s, self.thresholds.above)
        sums = dual_sums(loss, r)
        if self.labels is not None:
            longest = namespace(r).clip(batch.pairs_of(upper), 0.0, None)
            longest *= self.labels.most(batch, previous)
            sums = itertools.chain(sums, [longest])
        return PairTerms(sums, r)

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
        known = [loss, entropy, total, rest, loss]  # the loss of a dissimilar pair is -ln(1 - r)
        return known if self.labels is None else [*known, longest]


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
