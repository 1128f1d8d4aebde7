"""The pair posterior (8) and its entropy, the soft labels (10) and the E-step.

The score of a pair is s = ||x_i - x_j||_A^2 - eta: p(+1) = sigma(-s), p(-1) = sigma(s). Every
function is stable for any s and none overflows; all take arrays of any array API library.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..engine.distances import Factor
from ..engine.layout import CHUNK, BatchSums, Block, PairBatch, PairTerms
from ..engine.pair_sums import PairSums
from ..numerics.arrays import Array, fused_kernels, namespace
from ..numerics.checks import FloatArray, IntArray, check_number, read_only
from ..numerics.psd_cone import check_metric
from ..pairs.pair_set import PairSet

TINY = float(np.finfo(np.float64).tiny)
ALMOST_ONE = 1.0 - 2.0**-53


def posterior_similar(s: Array) -> Array:
    """The probability that a pair is similar: p(+1) = 1 / (1 + e^s), eq. (8)."""
    xp = namespace(s)
    decay = xp.exp(-xp.abs(s))
    return xp.where(s > 0.0, decay, 1.0) / (1.0 + decay)


def dissimilar_loss(s: Array) -> Array:
    """The loss of a dissimilar pair: -ln p(-1) = log(1 + e^{-s}), from eq. (8)."""
    xp = namespace(s)
    return xp.clip(-s, min=0.0) + xp.log1p(xp.exp(-xp.abs(s)))


def logistic_sums(d: Array, threshold: float) -> tuple[Any, Array]:
    """Sum log(1 + e^{-s}), and return each sigma(-s); `d` may be overwritten."""
    if kernels := fused_kernels(d):
        sums: tuple[Any, Array] = kernels.logistic(d, threshold)
        return sums
    s = d - threshold
    return namespace(s).sum(dissimilar_loss(s)), posterior_similar(s)


def soft_label_sums(d: Array, threshold: float, sharpness: float) -> tuple[Any, Any, Array]:
    """Sum the soft labels q (10) and H(q), and return each q; `d` may be overwritten."""
    if kernels := fused_kernels(d):
        sums: tuple[Any, Any, Array] = kernels.soft_label(d, threshold, sharpness)
        return sums
    xp, s = namespace(d), sharpness * (d - threshold)
    q = posterior_similar(s)
    return xp.sum(q), xp.sum(posterior_entropy(s)), q


def descent_sums(d: Array, threshold: float, sharpness: float) -> tuple[Any, Any]:
    """Sum :func:`sharpened_surprise` and :func:`posterior_entropy` over distances."""
    if kernels := fused_kernels(d):
        sums: tuple[Any, Any] = kernels.descent(d, threshold, sharpness)
        return sums
    xp, s = namespace(d), d - threshold
    return xp.sum(sharpened_surprise(s, sharpness)), xp.sum(posterior_entropy(s))


def posterior_entropy(s: Array) -> Array:
    """The entropy H(p) of the posterior, in nats: the unlabeled term of eq. (7)."""
    xp = namespace(s)
    size = xp.abs(s)
    decay = xp.exp(-size)
    return xp.log1p(decay) + size * (decay / (1.0 + decay))


def posterior_entropy_slope(s: Array) -> Array:
    """The derivative of the posterior's entropy: dH/ds = -s sigma(s) sigma(-s)."""
    return -s * posterior_variance(s)


def posterior_variance(s: Array) -> Array:
    """The variance of y under the posterior, over 4: sigma(s) sigma(-s)."""
    xp = namespace(s)
    decay = xp.exp(-xp.abs(s))
    return decay / (1.0 + decay) ** 2


def soft_label(s: Array, sharpness: float) -> Array:
    """The soft label q(+1) = sigma(-sharpness * s); with sharpness = 1 + mu it is eq. (10)."""
    return posterior_similar(sharpness * s)


def sharpened_surprise(s: Array, sharpness: float) -> Array:
    """The unlabeled term of J, minimized over the soft label.

    min_q E_q(-ln p) - H(q)/a = log(1 + e^{-|s|}) - log(1 + e^{-a|s|})/a with a = sharpness:
    (a - 1)/a times the Renyi entropy of order a (derived here, not in the paper).
    """
    xp = namespace(s)
    size = xp.abs(s)
    return xp.log1p(xp.exp(-size)) - xp.log1p(xp.exp(-sharpness * size)) / sharpness


def binary_entropy(p: Array) -> Array:
    """The entropy -p ln p - (1 - p) ln(1 - p) of a probability, accurate for every p in [0, 1]."""
    of_similar, of_dissimilar = negative_logs(p)
    return p * of_similar + (1.0 - p) * of_dissimilar


def negative_logs(p: Array) -> tuple[Array, Array]:
    """Compute -ln p and -ln(1 - p), at p = 0 and p = 1 as for the nearest double."""
    xp = namespace(p)
    inside = xp.clip(p, 0.0, ALMOST_ONE)
    return -xp.log(xp.clip(p, TINY, 1.0)), -xp.log1p(-inside)


@dataclass(frozen=True, eq=False)
class SoftLabels:
    """The soft labels q(+1) of unlabeled pairs: of a metric (streamed), given, or zero."""

    sharpness: float
    threshold: float
    metric: FloatArray | Factor | None = None  # q(+1) = sigma(-sharpness * s(metric))
    table: FloatArray | None = None  # q(+1), (n, n), labeled points first; zero if not unlabeled

    def is_same(self, other: SoftLabels) -> bool:
        """Whether both give every pair the same label."""
        if (self.sharpness, self.threshold) != (other.sharpness, other.threshold):
            return False
        pairs = ((self.metric, other.metric), (self.table, other.table))
        return all(mine is its or _are_equal(mine, its) for mine, its in pairs)

    @property
    def metrics(self) -> list[FloatArray | Factor]:
        """The metrics under which a sweep must compute distances to know q."""
        return [] if self.metric is None else [self.metric]

    def on(self, batch: PairBatch, *distances: Array) -> Array | float:
        """The soft labels of a batch of pairs, given its distances under `metrics`."""
        if self.metric is not None:
            return soft_label(distances[0] - self.threshold, self.sharpness)
        if self.table is not None and isinstance(batch, Block):
            return self.table[batch.rows, batch.columns]
        return 0.0


def _are_equal(one: FloatArray | Factor | None, other: FloatArray | Factor | None) -> bool:
    """Whether two metrics, or tables, are the same numbers; of factors, their entries."""
    if isinstance(one, Factor) and isinstance(other, Factor):
        return np.array_equal(one.L, other.L)
    return type(one) is type(other) is np.ndarray and np.array_equal(one, other)


@dataclass(frozen=True)
class SoftLabelSums:
    """The sums of q(+1) v v', q(+1) and H(q) over U: all that the M-step needs of soft labels."""

    matrix: FloatArray
    total: float
    entropy: float


@dataclass(frozen=True)
class SoftLabelTerms:
    """The term of a sweep that sums q and H(q), and weighs v v' by q."""

    source: SoftLabels

    def __call__(self, batch: PairBatch, *distances: Array) -> PairTerms | BatchSums:
        """Give q and H(q) of each pair, or their sums where the kernels of a GPU sum them."""
        if self.source.metric is not None and not isinstance(distances[0], np.ndarray):
            total, entropy, q = soft_label_sums(
                distances[0], self.source.threshold, self.source.sharpness
            )
            return BatchSums([total, entropy], batch.symmetric(q))
        if self.source.metric is not None:
            s = self.source.sharpness * (batch.pairs_of(distances[0]) - self.source.threshold)
            q = posterior_similar(s)
            return PairTerms([q, posterior_entropy(s)], q)
        q = batch.pairs_of(self.source.on(batch))
        return PairTerms([q, binary_entropy(q)], q)


def sum_soft_labels(source: SoftLabels, sums: PairSums) -> SoftLabelSums:
    """Sum soft labels in one sweep; in none for the paper's start, q(+1) = 0."""
    if source.metric is None and source.table is None:
        return SoftLabelSums(np.zeros((sums.n_coordinates,) * 2), 0.0, 0.0)
    totals, matrix, _ = sums.over_unlabeled(source.metrics, SoftLabelTerms(source))
    return SoftLabelSums(matrix, float(totals[0]), float(totals[1]))


def tabulate(given: ArrayLike, pairs: PairSet, order: IntArray) -> FloatArray:
    """Arrange soft labels, one per row of ``pairs.unlabeled``, in a symmetric table of zeros.

    `order` has the number of the point of each row of the table.
    """
    table = np.zeros((pairs.n_points, pairs.n_points))
    table[tuple(pairs.unlabeled.T)] = given
    return np.asarray((table + table.T)[np.ix_(order, order)])


def check_soft_labels(given: ArrayLike, pairs: PairSet) -> FloatArray:
    """Check that there is one probability for each unlabeled pair, and return a read-only copy."""
    if pairs.drawn is not None:
        raise ValueError(
            "soft_labels has one number for each unlabeled pair, but only drawn ones count here: "
            "give previous_metric instead, or use pairs.whole."
        )
    q = np.array(given, dtype=np.float64)
    if q.shape != (pairs.n_unlabeled,):
        raise ValueError(
            f"soft_labels has shape {q.shape}, but there are {pairs.n_unlabeled} unlabeled pairs: "
            "give q(+1) for each row of pairs.unlabeled."
        )
    bad = np.flatnonzero(~((q >= 0.0) & (q <= 1.0)))
    if len(bad):
        raise ValueError(f"soft_labels[{bad[0]}] is {q[bad[0]]}: a probability is in [0, 1].")
    return read_only(q)


def e_step(
    pairs: PairSet,
    A: ArrayLike,
    unlabeled_weight: float | str = "ratio",
    threshold: float = 1.0,
    sharpness: float | None = None,
) -> FloatArray:
    """Compute the soft label of each unlabeled pair under a metric: the E-step (10).

    q(+1) = sigma(-sharpness * (v'Av - eta)) for each row of ``pairs.unlabeled``.

    Parameters
    ----------
    pairs : PairSet
    A : (m, m) array_like
        The metric of the last M-step.
    unlabeled_weight : float or "ratio"
        The weight mu of an unlabeled pair.
    threshold : float
        The squared distance eta at which a pair is as likely similar as dissimilar.
    sharpness : float, optional
        None is the paper's 1 + mu, which solves (9) by Theorem 3; any other is not in the paper.

    Returns
    -------
    (n_unlabeled,) array
        The soft labels q(+1), which take O(n^2) memory. The alternation does not need
        them: ``MStepObjective(previous_metric=A)`` streams the same soft labels.

    Examples
    --------
    >>> from seraph_cvx import PairSet, e_step
    >>> pairs = PairSet.from_labels([[0.0], [0.0], [1.0], [3.0]], [0, 0, 1, -1])
    >>> e_step(pairs, [[1.0]], sharpness=2.0).round(6)
    array([0.      , 0.      , 0.002473])
    """
    mu = pairs.resolve_unlabeled_weight(unlabeled_weight)
    a = check_number(1.0 + mu if sharpness is None else sharpness, "sharpness", 0.0, strict=True)
    eta = check_number(threshold, "threshold", 0.0, strict=True)
    matrix = check_metric(A, pairs.n_features)
    q = np.empty(pairs.n_unlabeled)
    rows = max(1, CHUNK // pairs.n_features)
    for start in range(0, len(q), rows):
        i, j = pairs.unlabeled[start : start + rows].T
        V = pairs.points[i] - pairs.points[j]
        q[start : start + rows] = soft_label(np.einsum("ij,ij->i", V @ matrix, V) - eta, a)
    return q
