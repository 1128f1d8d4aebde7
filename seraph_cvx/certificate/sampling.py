"""What a fit to a sample of the unlabeled pairs is worth on all of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from ..engine.distances import PairBatch, PairTerms
from ..model.m_step_objective import MStepObjective
from ..model.posterior import SoftLabels, dissimilar_loss
from ..numerics.arrays import Array
from . import Certificate, certify


@dataclass(frozen=True)
class SamplingReport:
    """The value f_k(A) of a sampled M-step compared with f(A) of the whole one.

    Attributes
    ----------
    n_drawn, n_unlabeled : int
        k and #U.
    sampled_value : float
        f_k(A), an unbiased estimate of f(A) for any A that was chosen without the sample.
    standard_error : float
        The standard error of that estimate, from the spread of the k terms.
    certificate : Certificate
        Of A on the whole problem, all pairs counted.
    """

    n_drawn: int
    n_unlabeled: int
    sampled_value: float
    standard_error: float
    certificate: Certificate

    @property
    def sampling_error(self) -> float:
        """How far the sampled value is off: f_k(A) - f(A)."""
        return self.sampled_value - self.certificate.primal_value


@dataclass(frozen=True)
class UnlabeledLossTerms:
    """The term of an unlabeled pair in f, t = log(1 + e^{-s}) + q s, and its square."""

    threshold: float
    source: SoftLabels

    def __call__(self, batch: PairBatch, d: Array, *distances: Array) -> PairTerms:
        """Return t and t^2 of each pair."""
        s = d - self.threshold
        t = batch.pairs_of(dissimilar_loss(s) + self.source.on(batch, *distances) * s)
        return PairTerms([t, t * t])


def certify_in_full(
    objective: MStepObjective, A: ArrayLike, enough: float = 0.0, time_limit: float = np.inf
) -> SamplingReport:
    """Certify an A learned from drawn pairs over ALL pairs: D(r) <= inf f <= f(A).

    The pairs are streamed, a block at a time; none is stored.

    Parameters
    ----------
    objective : MStepObjective
        Of ``pairs.sampled(k)``.
    A : (m, m) array_like
        Any PSD matrix; usually what minimizes `objective`.
    enough : float
        Look no further for a better bound once the relative gap is so small: the first bound takes
        one pass over all pairs, better ones one more each.
    time_limit : float
        Seconds after which OutOfTime is raised.

    Examples
    --------
    >>> from seraph_cvx import MStepObjective, PairSet, solve_m_step
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> pairs = PairSet.from_labels(X, [0, 0, 1, 1] + 56 * [-1])
    >>> sampled = MStepObjective(pairs.sampled(500, random_state=0))
    >>> report = certify_in_full(sampled, solve_m_step(sampled).metric)
    >>> report.certificate.relative_gap < 0.1
    True
    """
    pairs = objective.pairs
    matrix = objective.check(A)
    whole = replace(objective, pairs=pairs.whole)
    with whole.limit.granted(time_limit):
        certificate = certify(whole, matrix, enough=enough)
    n_drawn = pairs.n_unlabeled if pairs.drawn is None else len(pairs.drawn)
    source = objective.soft_labeling
    terms = UnlabeledLossTerms(objective.threshold, source)
    with objective.limit.granted(time_limit):
        totals = objective.sums.over_unlabeled([matrix, *source.metrics], terms).totals
        value = objective.value(matrix)
    mean, square = totals / pairs.n_unlabeled if pairs.n_unlabeled else (0.0, 0.0)
    spread = np.sqrt(max(square - mean**2, 0.0) * (1.0 - n_drawn / max(1, pairs.n_unlabeled)))
    error = objective.mu * pairs.n_unlabeled * spread / np.sqrt(max(1, n_drawn))
    return SamplingReport(n_drawn, pairs.n_unlabeled, value, float(error), certificate)
