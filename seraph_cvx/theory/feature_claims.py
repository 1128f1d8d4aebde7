"""Checks of claims on feature functions: why the M-step is convex, and which others keep it so.

Let d = v'Av, s = phi(d) - eta, p(-1) = sigma(s) and p(+1) = sigma(-s), with phi increasing,
continuous, and twice differentiable for d > 0; (4) with kappa = -1 is phi(d) = d.

**With kappa fixed** (11) is convex for all data and all soft labels exactly where, for all d > 0,

    -phi'^2 sigma(-s) <= phi'' <= phi'^2 sigma(s).                                             (a)

For (-ln p(+1))'' = sigma(s) (phi'' + phi'^2 sigma(-s)) and (-ln p(-1))'' = sigma(-s) (phi'^2
sigma(s) - phi''), so (a) says that both losses are convex in d, and (11) adds such losses, with
weights >= 0, of distances that are linear in A. Conversely, one pair with v = 1 on a line makes
(11) its own loss of d = A, plus lambda d. In other words p(-1) and p(+1) must be log-concave in d.
Both are, where p(-1) is the distribution function of a log-concave density (Bagnoli and Bergstrom,
2005), such as the normal one (probit) or Gumbel's. That p(-1) alone is log-concave does not
suffice: d / (1 + d) is, 1 / (1 + d) is not (phi(d) = log d).

**With kappa left in the model**, s = kappa (phi(d) - eta), (a) reads -kappa sigma(-s) <= phi'' /
phi'^2 <= kappa sigma(s): it breaks at every kappa < |phi''| / phi'^2, whatever the threshold. So
only affine features are convex for every kappa > 0. And Theorem 2 needs a scale t(kappa) of A with
kappa phi(d) = phi(t d) + constant. Let phi(0) = 0; then the constant is 0, t is multiplicative and
monotone, so t = kappa^{1/alpha} and phi(d) = phi(1) d^alpha: the powers. For these phi'' / phi'^2
is a multiple of (alpha - 1) d^{-alpha}, unbounded at 0, and (11) is convex for no kappa at all
unless alpha = 1. So, up to its unit, (4) alone allows both Theorem 2 and a convex M-step.

**The soft labels** enter as -sum_k b_k s_k, as -ln p(-1) = -ln p(+1) - s. Through G = sum_k b_k
v_k v_k' and beta = sum_k b_k alone they do so for affine phi only: the labels b and b + (1, -2, 1)
of three pairs on a line whose v^2 are equally spaced have one G and one beta, and their M-steps
agree only where the second differences of phi vanish.

**Convex features.** (1) and (2) depend on f(., +1; A) - f(., -1; A) alone. That is phi - eta for
the features (phi - eta, 0), which for a convex phi are convex in A for each y, as Section 2.2 asks;
but d^2 and e^d break the right half of (a) near d = 0. (Of features (y/2) (phi - eta), with the
form of (4), only affine ones are convex for both y.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_ndtr

from ..numerics.checks import FloatArray
from .claim import Evidence
from .claim_data import ClaimData

Feature = Callable[[Any], Any]
"""A feature of the distance, s = phi(d) - eta with phi' > 0, instead of the d - eta of (4).

It takes complex numbers too, which give its derivative.
"""

DISTANCES = np.geomspace(1e-2, 8.0, 400)
KAPPAS = np.geomspace(1e-3, 1e3, 61)

NOISE = 1e-4
"""The rounding error of second differences: that of a loss over a squared step."""


def loss(y: int, similar: FloatArray, dissimilar: FloatArray) -> FloatArray:
    """The loss -ln p(y) = ln Z - kappa f(y), eq. (2), with kappa = -1 and features of both y."""
    feature = similar if y == 1 else dissimilar
    return np.logaddexp(-similar, -dissimilar) + feature


def check_feature_convexity(data: ClaimData) -> Evidence:
    """Check -ln p(y) at midpoints, for f(+1) = a^2 and f(-1) = 0, and for f affine in a."""
    rng = data.random(15)
    a, b = rng.uniform(0.0, 3.0, size=(2, 500))
    a[0], b[0] = 0.0, 1.0
    points = np.array([(a + b) / 2.0, a, b])

    def excess(similar: FloatArray, dissimilar: FloatArray) -> float:
        """By how much convexity fails at the midpoints, for either label."""
        middle, one, two = np.hstack([loss(y, similar, dissimilar) for y in (1, -1)])
        return float(np.max(middle - (one + two) / 2.0))

    convex = excess(points**2, 0.0 * points)
    slopes, shifts = 3.0 * rng.normal(size=(2, 20, 2, 1, 1))
    affine = [excess(*features) for features in slopes * points + shifts]
    return Evidence(
        {"midpoint inequality, f convex, excess": (convex, 1e-9)},
        {"midpoint inequality, f affine, excess": (affine, 1e-12)},
    )


def times(kappa: float, feature: Feature) -> Feature:
    """The feature times kappa, the multiplier of (2), with the sign of kappa = -1 in (4)."""
    return lambda d: kappa * feature(d)


def power(alpha: float) -> Feature:
    """The power feature phi(d) = d^alpha with eta = 1; alpha = 1 is (4)."""
    return lambda d: d**alpha - 1.0


LOG_CONCAVE: dict[str, Feature] = {
    "d^1": lambda d: d - 1.0,
    "probit": lambda d: log_ndtr(d - 1.0) - log_ndtr(1.0 - d),
    "exponential": lambda d: np.log(np.expm1(d + 0.1)),
}
"""Features for which (a) holds: p(-1) = sigma(d - 1), Phi(d - 1) and 1 - e^{-d - 0.1}."""

CONVEX: dict[str, Feature] = {"d^2": power(2.0), "e^d - 1": lambda d: np.expm1(d) - 1.0}
"""Convex features, as the paper asks for, for which (a) does not hold."""

CONCAVE: dict[str, Feature] = {"d^0.5": power(0.5), "log d": np.log}
"""Concave features, for which (a) does not hold: the unsquared distance, p(+1) = 1 / (1 + d)."""

FEATURES = LOG_CONCAVE | CONVEX | CONCAVE
AFFINE, *NOT_AFFINE = FEATURES.values()


def losses(s: FloatArray) -> FloatArray:
    """The losses -ln p(+1) = log(1 + e^s) and -ln p(-1) = log(1 + e^{-s}), eq. (8)."""
    return np.logaddexp(0.0, [s, -s])


def slope(feature: Feature, d: FloatArray) -> FloatArray:
    """The derivative phi', to rounding: the imaginary part of phi(d + ih) / h for a tiny h."""
    return np.asarray(np.imag(feature(d + 1e-30j)) / 1e-30)


def curvature(feature: Feature, d: FloatArray) -> FloatArray:
    """The second derivative phi'', by central differences of `slope`."""
    h = 1e-5 * d
    return (slope(feature, d + h) - slope(feature, d - h)) / (2.0 * h)


def violation(feature: Feature, d: FloatArray = DISTANCES) -> float:
    """By how much (a) is violated: the most that |phi''|/phi'^2 exceeds sigma(s) or sigma(-s)."""
    s, ratio = feature(d), curvature(feature, d) / slope(feature, d) ** 2
    return max(0.0, float(np.max(ratio - expit(s))), float(np.max(-ratio - expit(-s))))


def loss_curvatures(feature: Feature, d: FloatArray) -> FloatArray:
    """The curvatures of both losses in d, one row each, by their formulas."""
    s, second, square = feature(d), curvature(feature, d), slope(feature, d) ** 2
    similar = expit(s) * (second + square * expit(-s))
    return np.stack([similar, expit(-s) * (square * expit(s) - second)])


def second_differences(feature: Feature, d: FloatArray) -> FloatArray:
    """The second differences of both losses in d, with steps of d/1000, over the step squared."""
    h = d / 1000.0
    above, middle, below = (losses(feature(t)) for t in (d + h, d, d - h))
    return (above - 2.0 * middle + below) / h**2


def rescaling_error(feature: Feature, kappa: float) -> float:
    """How well kappa can be absorbed in the metric: the least spread of kappa phi(d) - phi(t d)."""
    d = np.linspace(0.1, 4.0, 40)
    target = kappa * feature(d)

    def error(log_t: float) -> float:
        return float(np.ptp(target - feature(np.exp(log_t) * d)) / np.ptp(target))

    start = min(np.linspace(-3.0, 3.0, 121), key=error)
    bounds = (start - 0.06, start + 0.06)
    return float(minimize_scalar(error, bounds=bounds, options={"xatol": 1e-10}).fun)


def label_gap(feature: Feature) -> float:
    """How far two M-steps differ whose soft labels have the same G and beta.

    Three unlabeled pairs on a line, v^2 = 1, 2, 3, with q(+1) = 1/2 and 1/2 + (1, -2, 1)/5.
    """
    similar, dissimilar = losses(feature(np.outer(np.linspace(0.1, 2.0, 20), [1, 2, 3])))
    return float(np.max(np.abs((similar - dissimilar) @ [0.2, -0.4, 0.2])))


def least_curvature(feature: Feature) -> float:
    """The least second difference of a loss at half the kappa = |phi''| / phi'^2 of some d."""
    d = np.linspace(0.1, 8.0, 80)
    ratio = np.abs(curvature(feature, d)) / slope(feature, d) ** 2
    scaled = times(float(np.max(ratio)) / 2.0, feature)
    return float(np.min(second_differences(scaled, d[[np.argmax(ratio)]])))


def check_feature_functions(data: ClaimData) -> Evidence:
    """Check (a) of this module's docstring, and what follows from it."""
    d = np.append(DISTANCES, data.random(16).uniform(0.01, 8.0, size=400))
    measured = np.array([second_differences(feature, d) for feature in FEATURES.values()])
    formula = np.array([loss_curvatures(feature, d) for feature in FEATURES.values()])
    violations = {name: violation(feature, d) for name, feature in FEATURES.items()}
    concavity = dict(zip(FEATURES, np.max(-measured, axis=(1, 2)), strict=True))
    contradictions = [
        name for name in FEATURES if (violations[name] > 1e-9) != (concavity[name] > NOISE)
    ]
    powers = [power(alpha) for alpha in (0.25, 0.5, 0.8, 1.25, 2.0, 3.0)]
    convex_powers = [f for f in powers if any(violation(times(k, f)) == 0.0 for k in KAPPAS)]
    absorbing = {
        name
        for name, feature in FEATURES.items()
        if all(rescaling_error(feature, kappa) < 1e-6 for kappa in (0.5, 3.0))
    }
    return Evidence(
        {"concavity of a loss, d^2 and e^d - 1": ([concavity[name] for name in CONVEX], NOISE)},
        {
            "inequalities, log-concave features": ([violations[f] for f in LOG_CONCAVE], 1e-9),
            "second differences against formula": (
                np.abs(measured - formula) / (1.0 + np.abs(formula)),
                NOISE,
            ),
            "features that only one of these two calls convex": (len(contradictions), 0.0),
            "inequalities, affine, any kappa": ([violation(times(k, AFFINE)) for k in KAPPAS], 0.0),
            "other features not broken by a small kappa": (
                sum(least_curvature(feature) >= -NOISE for feature in NOT_AFFINE),
                0.0,
            ),
            "kappa is absorbed: not just for the powers of d": (
                len(absorbing ^ {"d^1", "d^2", "d^0.5"}),
                0.0,
            ),
            "powers of d, but d, convex at some kappa": (len(convex_powers), 0.0),
            "soft labels with one G and beta, affine": (label_gap(AFFINE), 1e-12),
            "other features to which G and beta say all": (
                sum(label_gap(feature) < 1e-3 for feature in NOT_AFFINE),
                0.0,
            ),
        },
    )
