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

import numpy as np

from ..checks import FloatArray
from ..distances import DistanceBounds, Metric
from ..dual_coordinates import entry_bound
from ..objective import MStepObjective
from ..pair_sums import Frame
from ..psd_cone import symmetrise
from ..rounding import (
    ENTROPY_ROUNDINGS,
    FEW_ROUNDINGS,
    LOSS_ROUNDINGS,
    SMALLEST_LOSS,
    UNIT,
    MatrixError,
    gamma,
    score_slack,
)
from .terms import LabeledTerms, Move, Thresholds, UnlabeledTerms


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
        source, known = objective.soft_labeling, objective.has_soft_labels
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
