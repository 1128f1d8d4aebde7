"""Weights of SERAPH by name, and what its defaults take from the features and similar pairs.

A trace penalty knows nothing of correlations: where all features say nearly the same, it makes the
small differences between them, in which the classes may lie, too expensive. And in directions that
few labels say anything about, the spread inside the classes still gives a scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy

from ..engine.distances import Factor
from ..engine.layout import PairBatch, PairTerms
from ..model.m_step_objective import MStepObjective
from ..model.posterior import posterior_similar
from ..numerics.arrays import Array, to_device_of
from ..numerics.checks import FloatArray, IntArray, check_number
from ..numerics.psd_cone import factor, shrink, symmetrize
from ..pairs.pair_set import PairSet
from .neighbors import Neighborhood

if TYPE_CHECKING:
    from ..penalties.penalty import Penalty

AUTO_TRACE_SHARE = 0.08
"""The trace weight "auto", as a share of the critical one, if all labeled points were similar."""

REFERENCES = ("identity", "within")
"""What a learned metric is mixed with: the Euclidean distance as it is, or in units of the spread
inside the classes."""

LARGEST_CORRELATION_WEIGHT = 0.95
"""The largest w of "auto": some of the plain trace stays, so that an optimum exists."""

MOST_PAIRS = 10_000
"""The number of pairs, drawn if there are more, whose distances two metrics are compared by."""

NO_SPREAD = 1e-12
"""Similar pairs whose mean squared distance is this share of all pairs' say nothing of spread."""


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
            weight = auto_trace_weight(labeled_only, shape) or 1.0
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

    def mix_with_reference(
        self, found: FloatArray | Factor, first: MStepObjective
    ) -> FloatArray | Factor:
        """Mix the metric A of a fit from M-step `first` with B: (1 - alpha) A + alpha c B.

        With a share of "auto" the mixture is itself mixed with the Euclidean metric where labels
        do not support it, see :class:`~seraph_cvx.estimators.neighbors.Neighborhood`. An A given
        by its factor lies in the span of the points, and so do B and the mixture.
        """
        if self.reference not in REFERENCES:
            raise ValueError(
                f"reference={self.reference!r} is not known: use one of {', '.join(REFERENCES)}."
            )
        if not self.identity_share:
            return found
        pairs, share = first.pairs, self.identity_share
        if share == "auto":
            share = doubt_about_labels(first, found)
        if isinstance(share, str):
            raise ValueError(f'identity_share={share!r}: give a number in [0, 1] or "auto".')
        centered = pairs.points - pairs.points.mean(axis=0)
        span = None
        if isinstance(found, Factor):
            span = first.directions
            A, similar = np.asarray(Factor(span.T @ found.L)), first.moments.similar_along(span)
            centered = centered @ span
        else:
            A, similar = found, first.similar_matrix
        moment, B = centered.T @ centered, None
        if self.reference == "within":
            shape = trace_shape(pairs.points, self.correlation_weight) if span is None else None
            n_varying = int(np.count_nonzero(pairs.feature_ranges))
            B = within_metric(
                similar,
                pairs.n_independent_similar,
                shape,
                spread=2.0 * pairs.similar_total * float(np.trace(moment)) / pairs.n_points,
                n_directions=min(pairs.n_points - 1, n_varying),
            )
            if span is None and not np.any(A - np.diag(np.diag(A))):
                B = np.diag(np.diag(B))  # weights of the features stay such
        mixed = shrink(A, share, moment, toward=B)
        if self.identity_share == "auto":
            L = factor(mixed) if span is None else factor(mixed) @ span.T
            mixed = shrink(mixed, Neighborhood.of_pairs(pairs).euclidean_share(L), moment)
        if np.array_equal(mixed, A):
            return found
        return mixed if span is None else Factor(span @ factor(mixed).T)


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


def doubt_about_labels(objective: MStepObjective, A: FloatArray | Factor) -> float:
    """How little A tells similar from dissimilar labeled pairs: 1 less Youden's index, in [0, 1].

    The mean of p(-1) of (8) over S plus that of p(+1) over D: 0 where A is sure of every label and
    right, 1 where it knows nothing of them. A kind of which there are no pairs counts 1/2.
    """
    pairs, eta = objective.pairs, objective.threshold

    def doubts(batch: PairBatch, d: Array) -> PairTerms:
        far = posterior_similar(eta - batch.pairs_of(d))
        similar = to_device_of(far, batch.similar)
        return PairTerms([far * similar, (1.0 - far) * (1.0 - similar)])

    sums = objective.sums.over_labeled([A], doubts)[0]
    totals = np.array([pairs.similar_total, pairs.labeled_total - pairs.similar_total])
    means = np.divide([float(s) for s in sums], totals, out=np.full(2, 0.5), where=totals > 0.0)
    return float(np.clip(np.sum(means), 0.0, 1.0))


def auto_trace_weight(labeled_only: MStepObjective, shape: FloatArray | None) -> float:
    """The lambda of "auto": a small share of the critical one, which may be 0."""
    return auto_trace_share(labeled_only.pairs) * critical_weight(labeled_only, shape)


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


def standardized_columns(points: FloatArray) -> FloatArray:
    """The features that vary, centered and of length 1: their products are correlations."""
    columns = points[:, np.ptp(points, axis=0) > 0.0]
    columns = columns / np.max(np.abs(columns), axis=0)
    centered = columns - columns.mean(axis=0)
    lengths = np.linalg.norm(centered, axis=0)
    return np.asarray(centered / np.where(lengths > 0.0, lengths, 1.0))


def mean_squared_correlation(S: FloatArray) -> float:
    """The mean of the squared correlations of all pairs of features, of standardized columns."""
    n, m = S.shape
    if n < 3 or m < 2:
        return 0.0
    gram = S.T @ S if m <= n else S @ S.T  # of the same sum of squares
    return float((np.sum(np.square(gram)) - m) / (m * (m - 1)))


def weight_of_correlation(r: float) -> float:
    """The w of "auto" for features of mean squared correlation r."""
    return min(LARGEST_CORRELATION_WEIGHT, max(0.0, 3.0 * r - 2.0))


def resolve_correlation_weight(points: FloatArray, weight: float | str) -> float:
    """The w of `trace_shape` as a number: "auto" is max(0, 3r - 2), at most 0.95.

    r is the mean squared correlation of the features: up to 2/3 nothing is changed.
    """
    if weight == "auto":
        return weight_of_correlation(mean_squared_correlation(standardized_columns(points)))
    if isinstance(weight, str) or not 0.0 <= weight < 1.0:
        raise ValueError(
            f'correlation_weight={weight!r} is out of range: give a number in [0, 1) or "auto".'
        )
    return check_number(weight, "correlation_weight", 0.0)


def trace_shape(points: FloatArray, weight: float | str) -> FloatArray | None:
    """The matrix W of the penalty lambda*<W, A>; None where it is I, as in the paper.

    W = (1 - w) I + w * m/tr(C) * C, C the covariance of the features: along C a direction is taxed
    by how far the points are apart in it, along I all directions are taxed alike.
    """
    w = resolve_correlation_weight(points, weight)
    if w == 0.0:
        return None
    scaled = points / (np.max(np.abs(points)) or 1.0)
    centered = scaled - scaled.mean(axis=0)
    C = centered.T @ centered
    spread = float(np.trace(C)) / len(C)
    return symmetrize((1.0 - w) * np.eye(len(C)) + w * C / spread) if spread > 0.0 else None


def within_metric(
    similar: FloatArray,
    n_independent: int,
    shape: FloatArray | None,
    spread: float,
    n_directions: int,
) -> FloatArray:
    """Invert the spread of similar pairs, shrunk: distances in units of the spread in a class.

    ((1 - g) W + g S)^-1 with g = n/(n + r): S is the second moment of the similar pairs, n of them
    independent, scaled to the trace r = `n_directions`, as if r more of them had been seen, spread
    as W = `shape` says (None: I). `spread` is the trace if similar pairs were like all others.
    """
    W = np.eye(len(similar)) if shape is None else shape
    size = float(np.trace(similar))
    if n_independent and size > NO_SPREAD * spread:
        g = n_independent / (n_independent + n_directions)
        W = (1.0 - g) * W + g * n_directions / size * similar
    inverse: FloatArray = np.asarray(np.linalg.inv(W), dtype=np.float64)
    return symmetrize(inverse)


def matching_threshold(learned: FloatArray, mixed: FloatArray, squared_threshold: float) -> float:
    """The distance of a mixed metric within which as many pairs are as the learned A calls near.

    Both are given by the points as they transform them.

    A calls those near whose squared distance is at most eta. By the mixed metric most pairs of one
    class are further apart. On new points (three samplings of six data sets) it classifies 64.7 %
    of the pairs correctly at sqrt(eta), A 68.7 %, and the mixed one at this distance 69.2 %.
    """
    i, j = _sample_pairs(len(learned))
    n_near = int(np.count_nonzero(squared_lengths(learned[i] - learned[j]) <= squared_threshold))
    distances = np.sqrt(np.sort(squared_lengths(mixed[i] - mixed[j])))
    ends = np.concatenate([[0.0], distances, distances[-1:]])
    return float(ends[n_near] + ends[n_near + 1]) / 2.0


def squared_lengths(vectors: FloatArray) -> FloatArray:
    """The squared length of each row."""
    return np.asarray(np.einsum("ki,ki->k", vectors, vectors))


def _sample_pairs(n_points: int) -> tuple[IntArray, IntArray]:
    """All pairs of few points, or many of many points: the same ones at every call."""
    if n_points * (n_points - 1) // 2 <= MOST_PAIRS:
        i, j = np.triu_indices(n_points, 1)
        return i, j
    rng = np.random.default_rng(0)
    i = rng.integers(0, n_points, MOST_PAIRS)
    return i, (i + rng.integers(1, n_points, MOST_PAIRS)) % n_points
