"""The paper's objective (7), and J, which the alternation descends."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from numpy.typing import ArrayLike

from ..numerics.arrays import Array, namespace
from ..numerics.checks import FloatArray
from ..numerics.psd_cone import symmetrise
from ..sums.blocks import PairBatch
from .logistic_program import LogisticProgram
from .m_step_objective import MStepObjective
from .posterior import descent_sums, posterior_entropy, posterior_entropy_slope


@dataclass(frozen=True)
class EntropyTerms:
    """H(p) and, as weights, dH/ds."""

    threshold: float

    def __call__(self, batch: PairBatch, d: Array) -> tuple[list[Any], Array]:
        """Summed over a place."""
        s = d - self.threshold
        return [namespace(s).sum(posterior_entropy(s))], posterior_entropy_slope(s)


@dataclass(frozen=True)
class DescentTerms:
    """The unlabeled terms of J, minimised over q, and of (7)."""

    threshold: float
    sharpness: float

    def __call__(self, batch: PairBatch, d: Array) -> tuple[list[Any], None]:
        """Summed over a place."""
        return list(descent_sums(d, self.threshold, self.sharpness)), None


@dataclass(frozen=True, eq=False)
class SemiSupervisedObjective:
    """-L(A) of eq. (7) = -sum_{S u D} ln p(y) + mu sum_U H(p) + <R, A>: not convex.

    Takes the parameters of :class:`MStepObjective` as one such object, and shares its sums.

    Examples
    --------
    >>> from seraph_cvx import MStepObjective, PairSet
    >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
    >>> round(SemiSupervisedObjective(MStepObjective(pairs)).value([[1.0]]), 6)
    2.286558
    """

    m_step: MStepObjective

    def value(self, A: ArrayLike) -> float:
        """The sum above."""
        return self.value_and_gradient(A)[0]

    def value_and_gradient(self, A: ArrayLike) -> tuple[float, FloatArray]:
        """Both in one sweep."""
        supervised, gradient = self.supervised.value_and_gradient(self.m_step.check(A))
        mu, eta = self.m_step.mu, self.m_step.threshold
        if mu == 0.0:
            return supervised, gradient
        terms = EntropyTerms(eta)
        totals, matrix, _ = self.m_step.sums.over_unlabeled([self.m_step.check(A)], terms)
        return supervised + mu * float(totals[0]), symmetrise(gradient + mu * matrix)

    @cached_property
    def supervised(self) -> LogisticProgram:
        """-sum_{S u D} ln p(y) + <R, A>, the labeled part."""
        m_step = self.m_step
        recession = symmetrise(m_step.moments.similar + m_step.regulariser)
        constant = m_step.threshold * m_step.pairs.similar_total
        return LogisticProgram(m_step.sums, 0.0, m_step.threshold, recession, constant)


def descent_values(objective: MStepObjective, A: ArrayLike) -> tuple[float, float]:
    """J(q(A), A) and the objective (7) at A, in one sweep.

    J(q, A) = -L_labeled(A) + <R, A> + mu sum_U [E_q(-ln p) - H(q)/sharpness] is what the
    alternation descends (derived here, not in the paper); q(A) is the E-step (10) at A.
    """
    matrix = objective.check(A)
    supervised = SemiSupervisedObjective(objective).supervised.value(matrix)
    if objective.mu == 0.0:
        return supervised, supervised
    sharpness = objective.soft_labeling.sharpness
    terms = DescentTerms(objective.threshold, sharpness)
    totals = objective.sums.over_unlabeled([matrix], terms).totals
    return (
        supervised + objective.mu * float(totals[0]),
        supervised + objective.mu * float(totals[1]),
    )
