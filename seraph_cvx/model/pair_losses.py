"""The losses of a pair as functions of its score: what tells the M-step (11), J and (7) apart.

With s_k(A) = v_k' A v_k - eta all three are

    Phi(A) = sum_{S u D} c_k phi_1(s_k) + mu sum_U phi_2(s_k) + <M, A> - constant      over A PSD,

phi_1(s) = log(1 + e^{-s}) always. phi_2 is the same function for the M-step (11), where M holds the
soft labels; for J and for (7) it is one of the others below, and M holds the labels alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..engine.passes import EXCLUDED_SCORE, LossSums
from ..numerics.arrays import Array, namespace
from ..numerics.checks import FloatArray
from .posterior import (
    descent_sums,
    dissimilar_loss,
    logistic_sums,
    posterior_entropy,
    posterior_entropy_slope,
    posterior_similar,
    sharpened_surprise,
)

LEAST_SCORE = -20.0
"""From this score on e^{-s} is taken as it is, so that thirty factors 1 + e^{-s} and more do not
overflow; below, by the symmetry of the losses."""


@dataclass(frozen=True)
class LogisticLoss:
    """The logistic loss of labeled pairs, and of all pairs in the M-step.

    phi(s) = log(1 + e^{-s}) = -ln p(-1), eq. (8).
    """

    kernel: ClassVar[tuple[str, float]] = ("logistic", 1.0)

    def value(self, s: FloatArray) -> FloatArray:
        """The loss log(1 + e^{-s}) at each score."""
        return np.asarray(dissimilar_loss(s))

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

    def device_sums(
        self, d: Array, threshold: float, weights: Array | None = None
    ) -> tuple[Any, Array]:
        """The sum of w phi, and each w phi'; `d` may be overwritten."""
        if weights is None:
            total, similar = logistic_sums(d, threshold)
            return total, -similar
        s = d - threshold
        loss = namespace(s).sum(weights * dissimilar_loss(s))
        return loss, -weights * posterior_similar(s)


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

    def value(self, s: FloatArray) -> FloatArray:
        """The loss log(1 + e^{-|s|}) - log(1 + e^{-a|s|}) / a at each score."""
        return np.asarray(sharpened_surprise(s, self.sharpness))

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

    def device_sums(
        self, d: Array, threshold: float, weights: Array | None = None
    ) -> tuple[Any, Array]:
        """The sum of phi, and each phi'; unlabeled pairs have no weights."""
        s, a = d - threshold, self.sharpness
        slope = posterior_similar(a * s) - posterior_similar(s)
        return descent_sums(d, threshold, a)[0], slope


@dataclass(frozen=True)
class EntropyLoss:
    """The loss of the unlabeled pairs in the paper's objective (7): the entropy H(p) of (8)."""

    kernel: ClassVar[tuple[str, float]] = ("entropy", 1.0)

    def value(self, s: FloatArray) -> FloatArray:
        """The entropy H(sigma(s)) at each score."""
        return np.asarray(posterior_entropy(s))

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

    def device_sums(
        self, d: Array, threshold: float, weights: Array | None = None
    ) -> tuple[Any, Array]:
        """The sum of phi, and each phi'; unlabeled pairs have no weights."""
        s = d - threshold
        return namespace(s).sum(posterior_entropy(s)), posterior_entropy_slope(s)


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
    return np.asarray(np.exp(x, out=x))


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
