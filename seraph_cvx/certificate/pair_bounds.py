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

import math
import os
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ..arrays import Array, beside, namespace
from ..blocks import Chunk, Place
from ..checks import FloatArray
from ..distances import DistanceBounds, Metric
from ..dual_coordinates import entry_bound
from ..objective import MStepObjective
from ..pair_sums import Frame
from ..posterior import binary_entropy, posterior_similar
from ..psd_cone import symmetrise
from ..rounding import (
    ENTROPY_ROUNDINGS,
    FEW_ROUNDINGS,
    LABEL_ERROR,
    LARGEST_SCORE,
    LOSS_ROUNDINGS,
    SMALLEST_LOSS,
    UNIT,
    MatrixError,
    gamma,
    score_slack,
)
from ..soft_labels import SoftLabels


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


def total(values: Array) -> Any:
    """The sum, row by row: no number goes through more additions than a row and a column have.

    Numbers in a row of their own are summed in runs, as many as each is long.
    """
    xp = namespace(values)
    if values.ndim > 1:
        return xp.sum(xp.sum(values, axis=-1))
    if isinstance(values, np.ndarray) and len(values) > 1:
        values = np.add.reduceat(values, np.arange(0, len(values), math.isqrt(len(values))))
    return xp.sum(values)


@dataclass(frozen=True)
class Move:
    """r = step * sigma(-s), and the rest of the way to the label q if `to_labels`, else to 0."""

    step: float = 1.0
    to_labels: bool = False

    @property
    def name(self) -> str:
        """Of the dual point."""
        return "towards p = b/c" if self.to_labels else "towards p = 1"

    def of(self, posterior: Array, q: Array | float) -> Array:
        """The dual point, a number in [0, 1] for each pair."""
        if self.step == 1.0:
            return posterior
        r = self.step * posterior
        if not self.to_labels:
            return r
        return namespace(r).clip(r + (1.0 - self.step) * q, 0.0, 1.0)


@dataclass(frozen=True)
class LabeledTerms:
    """The sums over similar and dissimilar pairs: loss, entropy, label term; weights r and q."""

    thresholds: Thresholds
    n_similar: int
    move: Move

    def __call__(self, place: Chunk, bounds: tuple[Array, Array]) -> tuple[list[Any], Array]:
        """Summed over a chunk of labeled pairs.

        A similar pair has the loss log(1 + e^s) and the label term r - 1, a dissimilar one
        log(1 + e^{-s}) and r; the label terms of the two kinds are summed apart.
        """
        lower, upper = bounds
        xp = namespace(lower)
        numbers = np.arange(place.pairs.start, place.pairs.stop) < self.n_similar
        similar = beside(lower, numbers.astype(np.float64))
        loss, posterior = loss_and_posterior(self.thresholds.lower_score(lower))
        r = self.move.of(posterior, similar)
        far = self.thresholds.upper_score(upper)
        losses = xp.where(
            similar > 0.0,
            xp.clip(far, 0.0, None) + xp.log1p(xp.exp(-xp.abs(far))),
            loss,
        )
        sums = [
            losses,
            binary_entropy(r),
            (1.0 - r) * similar,
            r * (1.0 - similar),
            r,
        ]
        weights = xp.stack([place.weigh(r), place.weigh(similar)])
        return [total(place.weigh(x)) for x in sums], weights


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
    move: Move

    def __call__(self, place: Place, bounds: Any, *labels: Any) -> tuple[list[Any], Any]:
        """Summed over a block, or over drawn pairs."""
        known = self.source is not None
        lower, upper = bounds if known else (bounds, None)
        s = self.thresholds.lower_score(place.pairs_of(lower))
        loss, posterior = loss_and_posterior(s)
        least, most = self._soft_labels(place, *labels) if known else (0.0, 0.0)
        r = self.move.of(posterior, least)
        sums = [loss, binary_entropy(r), r]
        if not known:
            return self._summed(place, sums), place.laid_out(r)
        longest = namespace(s).clip(place.pairs_of(upper), 0.0, None)
        sums += [least, most, binary_entropy(least), most * longest]
        return self._summed(place, sums), iter((place.laid_out(r), place.laid_out(least)))

    def _summed(self, place: Place, sums: list[Array]) -> list[Any]:
        """The total of each over the pairs of a block; on a device, all other entries hidden."""
        if sums[0].ndim == 1:
            return [total(x) for x in sums]
        return [total(place.laid_out(x)) for x in sums]

    def _soft_labels(self, place: Place, *labels: Any) -> tuple[Array, Array]:
        """Bounds on q(+1) from below and above, zero off the pairs."""
        source = self.source
        if source is None or not labels:
            q = np.asarray(0.0 if source is None else source.on(place))
            return (place.pairs_of(q),) * 2
        lower, upper = (place.pairs_of(d) for d in labels[0])
        xp = namespace(lower)
        most = xp.clip(self.thresholds.lower_score(lower) * source.sharpness, None, LARGEST_SCORE)
        least = self.thresholds.upper_score(upper) * source.sharpness
        surely = posterior_similar(xp.clip(least, None, LARGEST_SCORE)) * (1.0 - LABEL_ERROR)
        return (
            xp.where(least > LARGEST_SCORE, 0.0, surely),
            xp.clip(posterior_similar(most) * (1.0 + LABEL_ERROR), None, 1.0),
        )


def refuse_emulated_float64() -> None:
    """Raise an ArithmeticError where cuBLAS is told to emulate float64, which no bound covers."""
    for name in ("CUBLAS_EMULATE_DOUBLE_PRECISION", "CUBLAS_EMULATION_STRATEGY"):
        if os.environ.get(name, "0") not in ("", "0"):
            raise ArithmeticError(
                f"The environment variable {name} is set: float64 may be emulated by other "
                "formats, whose rounding errors no certificate here covers. Unset it."
            )


@dataclass(frozen=True, eq=False)
class PairBounds:
    """The sums of a certificate at LL', bounded in the direction that each is used in.

    Attributes
    ----------
    primal_value : Fraction
        Not below f(LL').
    tangent_value : Fraction
        Not above D(r) at the dual point r of the sweep, feasible or not.
    label_value : Fraction
        Not above D(q), which is feasible where R is PSD.
    label_total : Fraction
        Not below kappa = sum_k c_k q_k, so that D(0) >= -eta*kappa.
    similar_total : Fraction
        Not above sum_k c_k r_k.
    pull, labels : (k, k) arrays
        sum_k c_k r_k z_k z_k' and sum_k c_k q_k z_k z_k' (q from below) as computed.
    pull_error, label_error : MatrixError
        How far they may be off.
    """

    primal_value: Fraction
    tangent_value: Fraction
    label_value: Fraction
    label_total: Fraction
    similar_total: Fraction
    pull: FloatArray
    labels: FloatArray
    pull_error: MatrixError
    label_error: MatrixError


def bound_pairs(
    objective: MStepObjective, L: FloatArray, move: Move | None = None
) -> PairBounds | None:
    """All sums of a certificate at LL', by one sweep over the labeled and one over all others.

    None where they overflow. The dual point is r = sigma(-s), moved as `move` says.
    """
    if objective.pairs.home is not None:
        refuse_emulated_float64()
    move = Move() if move is None else move
    coordinates = objective.dual_coordinates
    m = objective.pairs.n_features
    frame = Frame(np.zeros((m, 0))) if coordinates is None else coordinates.frame
    sums = objective.sums.framed(frame)
    slack = score_slack(m, L.shape[1])
    thresholds = Thresholds.of(objective.threshold)
    labeled = sums.over_labeled(
        [DistanceBounds(L, slack, with_upper=True)],
        LabeledTerms(thresholds, len(objective.pairs.similar), move),
    )
    unlabeled = None
    if objective.mu > 0.0:
        source = objective.soft_labeling
        known = source.metric is not None or source.table is not None
        metrics: list[Metric] = [DistanceBounds(L, slack, with_upper=known)]
        if source.metric is not None:
            metrics.append(_previous(source.metric))
        terms = UnlabeledTerms(thresholds, source if known else None, move)
        unlabeled = sums.over_unlabeled(metrics, terms)
    chain = sums.longest_chain
    pull, labels = labeled.matrix
    spreads = np.asarray(labeled.spread)
    mu = objective.mu
    if unlabeled is not None:
        two = unlabeled.matrix.ndim == 3
        pull = pull + mu * (unlabeled.matrix[0] if two else unlabeled.matrix)
        labels = labels + mu * unlabeled.matrix[1] if two else labels
        more = np.asarray(unlabeled.spread)
        spreads = spreads + mu * (more if two else np.stack([more, np.zeros_like(more)]))
    errors = [MatrixError(g, h, len(frame.axes), chain) for g, h in spreads]
    totals = [labeled.totals] if unlabeled is None else [labeled.totals, unlabeled.totals]
    if not all(np.all(np.isfinite(x)) for x in [*totals, pull, labels, spreads, L * L]):
        return None
    return PairBounds(
        *_values(objective, L, labeled.totals, unlabeled and unlabeled.totals, chain),
        symmetrise(pull),
        symmetrise(labels),
        errors[0],
        errors[1],
    )


def _previous(matrix: FloatArray) -> DistanceBounds:
    """Distances under a matrix as it is stored, PSD or nearly so."""
    lengths, worst = entry_bound(matrix)
    slack = worst * score_slack(len(matrix), len(matrix))
    return DistanceBounds(lengths[:, None], slack, matrix, with_upper=True)


def _values(
    objective: MStepObjective,
    L: FloatArray,
    labeled: FloatArray,
    unlabeled: FloatArray | None,
    chain: int,
) -> tuple[Fraction, Fraction, Fraction, Fraction, Fraction]:
    """The scalars of PairBounds: exact arithmetic with the sums, each moved by its error."""
    eta, mu = Fraction(objective.threshold), Fraction(objective.mu)
    n_similar = len(objective.pairs.similar)

    errors = {
        extra: Fraction(gamma(chain + extra + FEW_ROUNDINGS))
        for extra in (0, LOSS_ROUNDINGS, ENTROPY_ROUNDINGS)
    }

    def most(x: float, roundings: int) -> Fraction:
        return Fraction(float(x)) * (1 + errors[roundings])

    def least(x: float, roundings: int) -> Fraction:
        return Fraction(float(x)) * (1 - errors[roundings])

    kappa = Fraction(math.fsum(objective.pairs.labeled_weights[:n_similar]))
    kappa *= 1 + Fraction(2 * UNIT)
    losses, entropies, missing, found, r = labeled
    primal = most(losses, LOSS_ROUNDINGS) + _penalty(objective, L)
    tangent = least(entropies, ENTROPY_ROUNDINGS) + eta * (least(found, 0) - most(missing, 0))
    label_value, similar_total = Fraction(0), least(r, 0)
    if unlabeled is not None:
        losses, entropies, r = unlabeled[:3]
        primal += mu * most(losses, LOSS_ROUNDINGS)
        tangent += mu * (least(entropies, ENTROPY_ROUNDINGS) + eta * least(r, 0))
        similar_total += mu * least(r, 0)
        if len(unlabeled) > 3:
            q_least, q_most, label_entropy, label_loss = unlabeled[3:]
            kappa += mu * most(q_most, 0)
            primal += mu * (most(label_loss, 0) - eta * least(q_least, 0))
            tangent -= mu * eta * most(q_most, 0)
            label_value = mu * (
                least(label_entropy, ENTROPY_ROUNDINGS)
                - eta * (most(q_most, 0) - least(q_least, 0))
            )
    count = objective.pairs.n_labeled + objective.pairs.n_unlabeled
    weights = Fraction(objective.pair_total) + 1
    primal += Fraction(SMALLEST_LOSS) * count * weights * (1 + eta)
    return primal, tangent, max(label_value, Fraction(0)), kappa, similar_total


def _penalty(objective: MStepObjective, L: FloatArray) -> Fraction:
    """Not below <R, LL'>."""
    m = len(L)
    slack = Fraction(gamma(2 * m + L.size + FEW_ROUNDINGS))
    penalty = Fraction(objective.trace_weight) * Fraction(float(np.sum(L * L))) * (1 + slack)
    if objective.manifold_term is not None:
        size, term = np.abs(L), objective.manifold_term
        penalty += Fraction(float(np.sum((term @ L) * L)))
        penalty += slack * 2 * Fraction(float(np.sum((np.abs(term) @ size) * size)))
    return penalty
