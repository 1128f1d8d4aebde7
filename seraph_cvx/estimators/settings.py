"""Weights of SERAPH by name, and what its defaults take from the features and the labels.

A trace penalty knows nothing of correlations: where all features say nearly the same, it makes the
small differences between them, in which the classes may lie, too expensive.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy

from ..model.m_step_objective import MStepObjective
from ..numerics.checks import FloatArray, check_number
from ..numerics.psd_cone import symmetrize
from ..pairs.pair_set import PairSet

if TYPE_CHECKING:
    from ..penalties.penalty import Penalty

AUTO_TRACE_SHARE = 0.08
"""The trace weight "auto", as a share of the critical one, if all labeled points were similar.
Measured on thirteen data sets, by `examples/reproduction/defaults.py`."""

NEGLIGIBLE = 1e-12
"""A share of a whole that may be all rounding: some thousand units in the last place."""


class Setting(NamedTuple):
    """What SERAPH minimizes, and what the learned metric is mixed with; the paper's by default."""

    unlabeled_weight: float | str
    trace_weight: float | str
    sharpness: float | None = None
    identity_share: float | str = 0.0
    reference: str = "identity"
    correlation_weight: float | str = 0.0

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
        plain = 1.0
        if shape is not None:
            plain = 0.5 * float(np.linalg.eigvalsh(shape)[0])  # what is left of the trace is PSD
            term = weight * (shape - plain * np.eye(len(shape)))
            manifold_term = term if manifold_term is None else manifold_term + term
        return replace(
            labeled_only,
            unlabeled_weight=mu,
            trace_weight=plain * weight,
            sharpness=a,
            manifold_term=manifold_term,
            penalties=penalties,
        )


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


def auto_trace_share(pairs: PairSet) -> float:
    """The trace weight "auto" as a share of the critical one: 0.08 p, p the chance of similarity.

    p = (#S + n/2) / (#(S u D) + n/2) for n points of known class: how often two of them are
    similar, drawn with replacement; 1/k for k classes of one size. Constraints on single pairs are
    taken for random ones, with 1 for n/2, so that p is not 0; each counts by its confidence. The
    more classes, the more dissimilar pairs raise the critical weight, and the more directions it
    takes to part them.
    """
    n, labeled = len(pairs.labels.members), pairs.labeled_total
    is_complete = 2 * pairs.n_labeled == n * (n - 1)
    more = (0.5 * n if is_complete else 1.0) * labeled / pairs.n_labeled
    return AUTO_TRACE_SHARE * (pairs.similar_total + more) / (labeled + more)


def critical_weight(objective: MStepObjective, shape: FloatArray | None) -> float:
    """The smallest lambda at which the penalty lambda*<W, A> makes A = 0 optimal; W = `shape`."""
    plain = objective.critical_trace_weight
    if shape is None or plain == 0.0:
        return plain
    descent = scipy.special.expit(objective.threshold) * objective.pair_moment
    descent = descent - objective.similar_matrix  # minus the gradient at A = 0
    if objective.manifold_term is not None:
        descent = descent - objective.manifold_term
    return float(scipy.linalg.eigh(descent, shape, eigvals_only=True)[-1])


def mean_squared_correlation(points: FloatArray) -> float:
    """The mean of the squared correlations of all pairs of features that vary."""
    columns = points[:, np.ptp(points, axis=0) > 0.0]
    n, m = columns.shape
    if n < 3 or m < 2:
        return 0.0
    columns = columns / np.max(np.abs(columns), axis=0)
    centered = columns - columns.mean(axis=0)
    lengths = np.linalg.norm(centered, axis=0)
    S = centered / np.where(lengths > 0.0, lengths, 1.0)
    gram = S.T @ S if m <= n else S @ S.T  # of the same sum of squares
    return float((np.sum(np.square(gram)) - m) / (m * (m - 1)))


def trace_shape(points: FloatArray, weight: float | str) -> FloatArray | None:
    """The matrix W of the penalty lambda*<W, A>; None where it is I, as in the paper.

    W = (1 - w) I + w * m/tr(C) * C, C the covariance of the features: along C a direction is taxed
    by how far the points are apart in it, along I all directions are taxed alike. The weight "auto"
    is max(0, 3r - 2), at most 0.95, r the mean squared correlation of the features: up to 2/3
    nothing is changed. Below 1 some of the plain trace stays, so that an optimum exists.
    """
    if weight == "auto":
        r = mean_squared_correlation(points)
        w = min(0.95, max(0.0, 3.0 * r - 2.0))
    elif isinstance(weight, str) or not 0.0 <= weight < 1.0:
        raise ValueError(
            f'correlation_weight={weight!r} is out of range: give a number in [0, 1) or "auto".'
        )
    else:
        w = check_number(weight, "correlation_weight", 0.0)
    if w == 0.0:
        return None
    scaled = points / (np.max(np.abs(points)) or 1.0)
    centered = scaled - scaled.mean(axis=0)
    C = centered.T @ centered
    spread = float(np.trace(C)) / len(C)
    return symmetrize((1.0 - w) * np.eye(len(C)) + w * C / spread) if spread > 0.0 else None
