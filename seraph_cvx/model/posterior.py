"""The pair posterior (8) and its entropy, the soft labels (10), the E-step, and the losses.

The score of a pair is s = ||x_i - x_j||_A^2 - eta: p(+1) = sigma(-s), p(-1) = sigma(s). Every
function is stable for any s and none overflows; all take arrays of any array API library.

The M-step (11), J and (7) are told apart by their losses: all three are

    Phi(A) = sum_{S u D} c_k phi_1(s_k) + mu sum_U phi_2(s_k) + <M, A> - constant      over A PSD,

phi_1(s) = log(1 + e^{-s}) always. phi_2 is the same function for the M-step (11), where M holds the
soft labels; for J and for (7) it is another of the losses below, and M holds the labels alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ..engine.distances import CHUNK, Block, Factor, PairBatch, PairTerms
from ..engine.passes import EXCLUDED_SCORE, LossSums
from ..numerics.arrays import Array, namespace
from ..numerics.checks import FloatArray, IntArray, check_number, read_only
from ..numerics.psd_cone import check_metric
from ..pairs.pair_set import PairSet

TINY, ALMOST_ONE = float(np.finfo(np.float64).tiny), 1.0 - 2.0**-53
"""The doubles next to 0 (that are normal) and to 1, between which logarithms are finite."""


def posterior_similar(s: Array) -> Array:
    """The probability that a pair is similar: p(+1) = 1 / (1 + e^s), eq. (8)."""
    xp = namespace(s)
    decay = xp.exp(-xp.abs(s))
    return xp.where(s > 0.0, decay, 1.0) / (1.0 + decay)


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

    def __call__(self, batch: PairBatch, *distances: Array) -> PairTerms:
        """Sum q, and weigh v v' by it."""
        q = batch.pairs_of(self.on(batch, *distances))
        return PairTerms([q], q)

    def on(self, batch: PairBatch, *distances: Array) -> Array | float:
        """The soft labels of a batch of pairs, given its distances under `metric`."""
        if self.metric is not None:
            return posterior_similar(self.sharpness * (distances[0] - self.threshold))
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
    """The sums of q(+1) v v' and q(+1) over U: all that the M-step needs of soft labels."""

    matrix: FloatArray
    total: float


def tabulate(given: ArrayLike, pairs: PairSet, order: IntArray) -> FloatArray:
    """Arrange soft labels, one per row of ``pairs.unlabeled``, in a symmetric table of zeros.

    `order` has the number of the point of each row of the table.
    """
    table = np.zeros((pairs.n_points, pairs.n_points))
    table[tuple(pairs.unlabeled.T)] = given
    return (table + table.T)[np.ix_(order, order)]


def check_soft_labels(given: ArrayLike, pairs: PairSet) -> FloatArray:
    """Check that there is one probability for each unlabeled pair, and return a read-only copy."""
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
        None means the paper's 1 + mu, which solves (9) by Theorem 3; other values are not in the
        paper.

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
        s = np.einsum("ij,ij->i", V @ matrix, V) - eta
        q[start : start + rows] = posterior_similar(a * s)
    return q


LEAST_SCORE = -20.0
"""From this score on e^{-s} is taken as it is, so that thirty factors 1 + e^{-s} and more do not
overflow; below, by the symmetry of the losses."""


@dataclass(frozen=True)
class LogisticLoss:
    """The logistic loss of labeled pairs, and of all pairs in the M-step.

    phi(s) = log(1 + e^{-s}) = -ln p(-1), eq. (8).
    """

    kernel: ClassVar[tuple[str, float]] = ("logistic", 1.0)

    def value(self, s: Array) -> Array:
        """The loss log(1 + e^{-s}) at each score."""
        xp = namespace(s)
        return xp.clip(-s, min=0.0) + xp.log1p(xp.exp(-xp.abs(s)))

    def sums(self, s: FloatArray) -> LossSums:
        """The sum of the loss and its derivatives at each score.

        With x = e^{-s}: phi' = -x/(1 + x), phi'' = x/(1 + x)^2.
        """
        least = s.min(initial=0.0)
        if least < LEAST_SCORE:  # phi(s) = phi(|s|) + max(-s, 0)
            total, slope, curvature, _ = self.sums(np.abs(s))
            total -= float(np.sum(np.minimum(s, 0.0)))
            return LossSums(total, np.where(s < 0.0, -1.0 - slope, slope), curvature)
        x = _odds(_cut_off(s))
        both = 1.0 + x
        total = sum_of_logs(both, 1.0 + math.exp(-least))
        x /= both
        curvature = np.divide(x, both, out=both)
        return LossSums(total, np.negative(x, out=x), curvature)

    def slope(self, s: Array) -> Array:
        """The derivative phi' at each score."""
        return -posterior_similar(s)


LOGISTIC = LogisticLoss()


@dataclass(frozen=True)
class SharpenedLoss:
    """The loss of the unlabeled pairs in J.

    phi(s) = log(1 + e^{-s}) - log(1 + e^{-a s}) / a, a = sharpness.

    It is what the expected loss less the entropy of the soft label, over a, is at the best soft
    label (10). It is even in s, and (a - 1)/a times the Renyi entropy of order a of (8).
    """

    sharpness: float

    @property
    def kernel(self) -> tuple[str, float]:
        """The name of the loss among the GPU's kernels, and its parameter."""
        return "sharpened", self.sharpness

    def value(self, s: Array) -> Array:
        """The loss log(1 + e^{-|s|}) - log(1 + e^{-a|s|}) / a at each score."""
        xp = namespace(s)
        size = xp.abs(s)
        return xp.log1p(xp.exp(-size)) - xp.log1p(xp.exp(-self.sharpness * size)) / self.sharpness

    def sums(self, s: FloatArray) -> LossSums:
        """The sum of the loss, its derivatives at each score, and the excess.

        With x = e^{-s}, y = x^a: phi' = y/(1 + y) - x/(1 + x), H = log(1 + x) + s x/(1 + x).
        """
        least = s.min(initial=0.0)
        if least < LEAST_SCORE:
            return _even(self, s)
        a = self.sharpness
        s = _cut_off(s)
        x = _odds(s)
        y = x * x if a == 2.0 else _odds(_cut_off(a * s))
        one_x, one_y = 1.0 + x, 1.0 + y
        rest = sum_of_logs(one_y, 1.0 + math.exp(-max(a * least, -EXCLUDED_SCORE))) / a
        total = sum_of_logs(one_x, 1.0 + math.exp(-least)) - rest
        x /= one_x
        y /= one_y
        excess = float(np.vdot(s, x)) + rest
        slope = y - x
        x /= one_x
        y /= one_y
        y *= a
        return LossSums(total, slope, np.subtract(x, y, out=x), excess)

    def slope(self, s: Array) -> Array:
        """The derivative phi' at each score."""
        return posterior_similar(self.sharpness * s) - posterior_similar(s)


@dataclass(frozen=True)
class EntropyLoss:
    """The loss of the unlabeled pairs in the paper's objective (7): the entropy H(p) of (8)."""

    kernel: ClassVar[tuple[str, float]] = ("entropy", 1.0)

    def value(self, s: Array) -> Array:
        """The entropy H(sigma(s)) at each score."""
        xp = namespace(s)
        size = xp.abs(s)
        decay = xp.exp(-size)
        return xp.log1p(decay) + size * (decay / (1.0 + decay))

    def sums(self, s: FloatArray) -> LossSums:
        """The sum of the entropy and its derivatives at each score.

        With x = e^{-s} and w = x/(1 + x)^2: phi' = -s w, phi'' = w (s tanh(s/2) - 1).
        """
        least = s.min(initial=0.0)
        if least < LEAST_SCORE:
            return _even(self, s)
        s = _cut_off(s)
        x = _odds(s)
        both = 1.0 + x
        far = x / both
        total = sum_of_logs(both, 1.0 + math.exp(-least)) + float(np.vdot(s, far))
        tangent = s * (1.0 - x) / both
        variance = far / both
        return LossSums(total, -s * variance, variance * (tangent - 1.0))

    def slope(self, s: Array) -> Array:
        """The derivative phi' at each score: -s sigma(s) sigma(-s)."""
        decay = namespace(s).exp(-namespace(s).abs(s))
        return -s * (decay / (1.0 + decay) ** 2)


def _even(loss: SharpenedLoss | EntropyLoss, s: FloatArray) -> LossSums:
    """Make the sums of a loss that is even in s from those at |s|."""
    total, slope, curvature, excess = loss.sums(np.abs(s))
    return LossSums(total, np.sign(s) * slope, curvature, excess)


def _cut_off(s: FloatArray) -> FloatArray:
    """The scores, cut off where all vanishes, as underflow is slow; the same array if none is."""
    return np.minimum(s, EXCLUDED_SCORE) if s.max(initial=0.0) > EXCLUDED_SCORE else s


def _odds(s: FloatArray) -> FloatArray:
    """The odds e^{-s} of scores that are cut off, so that their squares do not underflow."""
    x = np.negative(s)
    return np.exp(x, out=x)


def sum_of_logs(factors: FloatArray, largest: float) -> float:
    """The sum of ln x over numbers from 1 to `largest`, by logarithms of products of many of them.

    As accurate as one by one, to rounding, and several times faster. A product has 128 factors at
    most, and no logarithm above 600, so that it does not overflow.
    """
    run = min(128, int(600.0 / max(math.log(largest), 1.0)))
    if len(factors) <= run:
        return float(np.log(np.multiply.reduce(factors, axis=0)).sum())
    starts = np.arange(0, len(factors), max(1, run))
    return float(np.log(np.multiply.reduceat(factors, starts, axis=0)).sum())
