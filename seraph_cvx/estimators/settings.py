"""Named weights of SERAPH: the paper's four settings, and the recommended one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy

from ..engine.blocks import LabeledBatch, PairTerms
from ..model.m_step_objective import MStepObjective
from ..model.posterior import posterior_similar
from ..numerics.arrays import Array, to_device_of
from ..numerics.checks import FloatArray
from ..numerics.psd_cone import shrink
from ..pairs.pair_set import PairSet
from ..penalties.penalty import Penalty
from .reference import trace_shape, within_metric

AUTO_TRACE_SHARE = 0.08
"""The trace weight "auto", as a share of the critical one, if all labeled points were similar."""


REFERENCES = ("identity", "within")
"""What a learned metric is mixed with: the Euclidean distance as it is, or in units of the spread
inside the classes."""


class Setting(NamedTuple):
    """A setting: what SERAPH minimizes, and what the learned metric is mixed with.

    Attributes
    ----------
    unlabeled_weight, trace_weight, sharpness, identity_share, reference, correlation_weight
        As for :class:`seraph_cvx.SERAPH`; what is left out is as in the paper.
    """

    unlabeled_weight: float | str
    trace_weight: float | str
    sharpness: float | None = None
    identity_share: float | str = 0.0
    reference: str = "identity"
    correlation_weight: float | str = 0.0

    def weights(
        self,
        pairs: PairSet,
        algorithm: str = "em",
        threshold: float = 1.0,
        manifold_term: FloatArray | None = None,
    ) -> tuple[float, float]:
        """The weights mu of the M-steps (or of (7), for "direct") and lambda, as numbers.

        Examples
        --------
        >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
        >>> mu, trace_weight = PAPER_SETTINGS["hyper"].weights(pairs)
        >>> mu, trace_weight
        (1.0, 1.0)
        """
        m_step = self.first_m_step(pairs, algorithm, threshold, manifold_term)
        return m_step.mu, m_step.trace_weight

    def auto_trace_weight(
        self, pairs: PairSet, threshold: float = 1.0, manifold_term: FloatArray | None = None
    ) -> float | None:
        """The lambda of "auto": a small share of the critical one; None where that is 0."""
        labeled_only = MStepObjective(
            pairs, unlabeled_weight=0.0, threshold=threshold, manifold_term=manifold_term
        )
        shape = trace_shape(pairs.points, self.correlation_weight)
        return auto_trace_share(pairs) * critical_weight(labeled_only, shape) or None

    def first_m_step(
        self,
        pairs: PairSet,
        algorithm: str = "em",
        threshold: float = 1.0,
        manifold_term: FloatArray | None = None,
        n_jobs: int | None = None,
        penalties: Sequence[Penalty] = (),
    ) -> MStepObjective:
        """The M-step that a fit in this setting starts with, its weights as numbers.

        The trace weight "auto" is chosen as if there were no penalties. With a shape W the penalty
        is lambda*<W, A>, of which the M-step has lambda*(W - d I) as a part of its manifold term.
        """
        mu, weight, a = self.unlabeled_weight, self.trace_weight, self.sharpness
        if mu == "full":
            mu = pairs.resolve_unlabeled_weight("ratio")
            if algorithm == "em":
                if a is None or not a > 1.0:
                    raise ValueError(
                        f'unlabeled_weight="full" needs sharpness > 1, not {a!r}: the soft labels '
                        "of a sharpness a leave (a - 1)/a of the weight."
                    )
                mu *= a / (a - 1.0)
        labeled_only = MStepObjective(
            pairs,
            unlabeled_weight=0.0,
            threshold=threshold,
            n_jobs=n_jobs,
            manifold_term=manifold_term,
        )
        shape = trace_shape(pairs.points, self.correlation_weight)
        if weight == "auto":
            weight = auto_trace_share(pairs) * critical_weight(labeled_only, shape) or 1.0
        if isinstance(weight, str):
            raise ValueError(f'trace_weight={weight!r}: give a number or "auto".')
        objective = replace(
            labeled_only,
            unlabeled_weight=mu,
            trace_weight=weight,
            sharpness=a,
            penalties=penalties,
        )
        if shape is None:
            return objective
        plain = 0.5 * float(np.linalg.eigvalsh(shape)[0])  # what is left of the trace is PSD
        term = weight * (shape - plain * np.eye(len(shape)))
        return replace(
            objective,
            trace_weight=plain * weight,
            manifold_term=term if manifold_term is None else manifold_term + term,
        )

    def metric_of(self, A: FloatArray, pairs: PairSet, threshold: float = 1.0) -> FloatArray:
        """Mix a learned metric with the reference B: (1 - alpha) A + alpha c B.

        B is the identity or :func:`~seraph_cvx.estimators.reference.within_metric`; the share
        "auto" is :func:`doubt_about_labels`.

        Examples
        --------
        >>> import numpy as np
        >>> pairs = PairSet.from_labels([[0.0, 1.0], [1.0, 0.0]], [0, 1])
        >>> Setting(0.0, 1.0, identity_share=0.5).metric_of(np.diag([2.0, 0.0]), pairs)
        array([[1.5, 0. ],
               [0. , 0.5]])
        """
        if self.reference not in REFERENCES:
            raise ValueError(
                f"reference={self.reference!r} is not known: use one of {', '.join(REFERENCES)}."
            )
        if not self.identity_share:
            return A
        labeled_only = MStepObjective(pairs, unlabeled_weight=0.0, threshold=threshold)
        share = self.identity_share
        if share == "auto":
            share = doubt_about_labels(labeled_only, A)
        if isinstance(share, str):
            raise ValueError(f'identity_share={share!r}: give a number in [0, 1] or "auto".')
        centered = pairs.points - pairs.points.mean(axis=0)
        moment = centered.T @ centered
        n_varying = int(np.count_nonzero(np.ptp(pairs.points, axis=0)))
        if self.reference == "identity":
            return shrink(A, share, moment)
        B = within_metric(
            labeled_only.similar_matrix,
            pairs.n_independent_similar,
            trace_shape(pairs.points, self.correlation_weight),
            spread=2.0 * pairs.similar_total * float(np.trace(moment)) / pairs.n_points,
            n_directions=min(pairs.n_points - 1, n_varying),
        )
        if not np.any(A - np.diag(np.diag(A))):  # weights of the features stay such
            B = np.diag(np.diag(B))
        return shrink(A, share, moment, toward=B)


def doubt_about_labels(objective: MStepObjective, A: FloatArray) -> float:
    """How little A tells similar from dissimilar labeled pairs: one less Youden's index, in [0, 1].

    The mean of p(-1) of (8) over S plus that of p(+1) over D: 0 where A is sure of every label and
    right, 1 where it knows nothing of them. A kind of which there are no pairs counts 1/2.

    Examples
    --------
    >>> pairs = PairSet.from_labels([[0.0], [1.0], [50.0]], [0, 0, 1])
    >>> doubt_about_labels(MStepObjective(pairs, unlabeled_weight=0.0), np.array([[1.0]]))
    0.5
    """
    pairs, eta = objective.pairs, objective.threshold

    def doubts(batch: LabeledBatch, d: Array) -> PairTerms:
        far = posterior_similar(eta - batch.pairs_of(d))
        similar = to_device_of(far, batch.similar)
        return PairTerms([far * similar, (1.0 - far) * (1.0 - similar)])

    sums = objective.sums.over_labeled([A], doubts)[0]
    totals = (pairs.similar_total, pairs.labeled_total - pairs.similar_total)
    means = [
        float(s) / total if total > 0.0 else 0.5 for s, total in zip(sums, totals, strict=True)
    ]
    return min(1.0, max(0.0, sum(means)))


def auto_trace_share(pairs: PairSet) -> float:
    """The trace weight "auto" as a share of the critical one: 0.08 p, p the chance of similarity.

    p = (#S + n/2) / (#(S u D) + n/2) for n points of known class: how often two of them are
    similar, drawn with replacement; 1/k for k classes of one size. Constraints on single pairs are
    taken for random ones, with 1 for n/2, so that p is not 0; each counts by its confidence. The
    more classes, the more dissimilar pairs raise the critical weight, and the more directions it
    takes to part them.

    Examples
    --------
    >>> X = [[0.0], [0.1], [1.0], [1.1]]
    >>> [auto_trace_share(PairSet.from_labels(X, y)) for y in ([0, 0, 1, 1], [0, 1, 2, 3])]
    [0.04, 0.02]
    """
    n, labeled = len(pairs.labels.members), pairs.labeled_total
    is_complete = 2 * pairs.n_labeled == n * (n - 1)
    more = (0.5 * n if is_complete else 1.0) * labeled / pairs.n_labeled
    return AUTO_TRACE_SHARE * (pairs.similar_total + more) / (labeled + more)


def critical_weight(objective: MStepObjective, shape: FloatArray | None) -> float:
    """The smallest lambda at which the penalty lambda*<W, A> makes A = 0 optimal; W = `shape`.

    Examples
    --------
    >>> pairs = PairSet.from_labels([[0.0, 1.0], [0.2, 0.0], [2.0, 1.0]], [0, 0, 1])
    >>> objective = MStepObjective(pairs, unlabeled_weight=0.0)
    >>> weights = [critical_weight(objective, W) for W in (None, np.eye(2), 2.0 * np.eye(2))]
    >>> weights[0] == objective.critical_trace_weight, round(weights[1] / weights[2], 6)
    (True, 2.0)
    """
    plain = objective.critical_trace_weight
    if shape is None or plain == 0.0:
        return plain
    pull = scipy.special.expit(objective.threshold) * objective.pair_moment
    pull = pull - objective.similar_matrix
    if objective.manifold_term is not None:
        pull = pull - objective.manifold_term
    return float(scipy.linalg.eigh(pull, shape, eigvals_only=True)[-1])


PAPER_SETTINGS = {
    "none": Setting(0.0, 0.0),
    "post": Setting("ratio", 0.0),
    "proj": Setting(0.0, 1.0),
    "hyper": Setting("ratio", 1.0),
}
"""The paper's four settings, by their names in it."""

RECOMMENDED = Setting("full", "auto", 2.0, "auto", "within", "auto")
"""The defaults of SERAPH, chosen on thirteen data sets and on samplings that no table uses."""


def find_setting(name: str) -> Setting:
    """Look up one of the paper's settings by its name."""
    if name not in PAPER_SETTINGS:
        raise ValueError(f"setting={name!r} is not known: use one of {', '.join(PAPER_SETTINGS)}.")
    return PAPER_SETTINGS[name]
