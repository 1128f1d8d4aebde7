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
from typing import Any, NamedTuple

import numpy as np

from ..engine.distances import DistanceBounds, Metric
from ..model.label_bounds import LabelBounds, Thresholds
from ..model.m_step_objective import MStepObjective
from ..numerics.checks import FloatArray
from ..numerics.psd_cone import symmetrize
from ..numerics.rounding import (
    ENTROPY_ROUNDINGS,
    FEW_ROUNDINGS,
    FUNCTION_ERROR,
    LARGEST_ODDS,
    LOSS_ROUNDINGS,
    SMALLEST_LOSS,
    UNIT,
    MatrixError,
    at_least,
    at_most,
    gamma,
    score_slack,
)
from .terms import LabeledTerms, UnlabeledTerms


def refuse_emulated_float64() -> None:
    """Raise an ArithmeticError where cuBLAS is told to emulate float64, which no bound covers."""
    for name in ("CUBLAS_EMULATE_DOUBLE_PRECISION", "CUBLAS_EMULATION_STRATEGY"):
        if os.environ.get(name, "0") not in ("", "0"):
            raise ArithmeticError(
                f"The environment variable {name} is set: float64 may be emulated by other "
                "formats, whose rounding errors no certificate here covers. Unset it."
            )


class Gain(NamedTuple):
    """A lower bound on what concavity adds to the dual value between an anchor a and r.

    It is D(a + tau (r - a)) - tau D(r) - (1 - tau) D(a), with a_k in {0, 1}.

    With x_k = |r_k - a_k|, H(tau x) = tau H(x) - tau ln(tau) x + e(x), where e increases with
    x. With delta = 1 - tau,

        e(x) >= tau delta [x + (1 - x) ln(1 - x)]                    best for large delta
        e(x) >= delta [-ln(1 - x) - x] - delta^2 x^2 / (1 - x)       exact to first order in delta.

    The second one is used at x cut off at 1 - 2^-10.

    Attributes
    ----------
    distance, largest_distance : float
        Not above and not below sum_k c_k x_k.
    bend : float
        Not above sum_k c_k [x_k + (1 - x_k) ln(1 - x_k)].
    logs : float
        Not above sum_k c_k min(-ln(1 - x_k), `LARGEST_LOG`).
    """

    distance: float
    largest_distance: float
    bend: float
    logs: float

    @classmethod
    def of(cls, kinds: list[list[float]], chain: int) -> Gain:
        """Make it from the sums of x, -(1 - x) ln(1 - x) and -ln(1 - x) for each kind of pair."""
        x, rest, logs = ([float(kind[part]) for kind in kinds] for part in range(3))
        of_sum = gamma(chain + FEW_ROUNDINGS)
        of_log = gamma(chain + ENTROPY_ROUNDINGS + FEW_ROUNDINGS)
        least = [total * (1.0 - of_sum) for total in x]
        return cls(
            at_least(*least),
            at_most(*(total * (1.0 + of_sum) for total in x)),
            at_least(*least, *(-total * (1.0 + of_log) for total in rest)),
            at_least(*(total * (1.0 - of_log) for total in logs)),
        )

    def at(self, step: float) -> list[float]:
        """Terms whose sum is not above the gain at tau = `step`, each good to a few roundings."""
        left = 1.0 - step  # exact for step >= 1/2, and else good to one rounding
        log = -math.log(step) * (1.0 - 2.0 * FUNCTION_ERROR * UNIT)
        first = step * log * max(self.distance, 0.0)
        bent = step * left * max(self.bend, 0.0)
        terms = [
            left * self.logs,
            -left * self.largest_distance,
            -left * left * LARGEST_ODDS * self.largest_distance,
        ]
        return [first, *terms] if sum(terms) > bent else [first, bent]


@dataclass(frozen=True, eq=False)
class PairBounds:
    """The sums of a certificate at LL', bounded in the direction that each is used in.

    Attributes
    ----------
    primal_value : float
        Not below f(LL').
    tangent_value : float
        Not above D(r) at the dual point r of the sweep, feasible or not.
    toward_one, toward_labels : Gain
        What D gains over its chords as r moves toward 0, and toward q.
    pull : (k, k) array
        sum_k c_k r_k z_k z_k', as computed.
    pull_error : MatrixError
        How far that may be off.
    labels : LabelBounds
        The same of the labels q; these do not depend on L.
    penalties_at_zero : float
        Not below the sum of the penalties' conjugates at Z = 0: what they take off the dual value
        at an anchor.
    """

    primal_value: float
    tangent_value: float
    toward_one: Gain
    toward_labels: Gain
    pull: FloatArray
    pull_error: MatrixError
    labels: LabelBounds
    penalties_at_zero: float = 0.0

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
    if objective.pairs.device_array is not None:
        refuse_emulated_float64()
    sums, mu, labels = objective.geometry.dual_sums, objective.mu, objective.label_bounds
    slack = score_slack(objective.pairs.n_features, L.shape[1])
    thresholds = Thresholds.of(objective.threshold)
    labeled = sums.over_labeled(
        [DistanceBounds(L, slack, with_upper=True)], LabeledTerms(thresholds)
    )
    pull, spread = labeled.matrix, np.asarray(labeled.spread)
    unlabeled = None
    if mu > 0.0:
        enclosure = objective.label_enclosure
        metrics: list[Metric] = [DistanceBounds(L, slack, with_upper=enclosure is not None)]
        if enclosure is not None:
            metrics += enclosure.distances(with_upper=False)
        found = sums.over_unlabeled(metrics, UnlabeledTerms(thresholds, enclosure))
        pull, spread = pull + mu * found.matrix, spread + mu * np.asarray(found.spread)
        unlabeled = found.totals
    numbers = [labeled.totals, *([] if unlabeled is None else [unlabeled]), pull, spread, L * L]
    if labels is None or not all(np.isfinite(x).all() for x in numbers):
        return None
    chain = sums.longest_chain
    return PairBounds(
        **_values(objective, L, labeled.totals, unlabeled, labels, chain),
        pull=symmetrize(pull),
        pull_error=MatrixError(spread, sums.n_base, chain, objective.moments.largest_weight),
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

    loss, entropy, *to_one, missing, found, own_rest, own_log = map(float, labeled)
    primal = [loss * (1.0 + of_loss), *_penalty(objective, L)]
    tangent = [entropy * (1.0 - of_entropy), eta * found * fewer, -eta * missing * more]
    toward_one = [to_one]
    toward_labels = [[found, own_rest, own_log], [missing, 0.0, 0.0]]
    if unlabeled is not None:
        loss, entropy, *to_one = (mu * float(total) for total in unlabeled[:5])
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
