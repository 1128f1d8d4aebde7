"""Features phi(d) of the squared distance: their losses, and when these are convex."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_ndtr
from scipy.stats import norm

from ...numerics.checks import FloatArray

Function = Callable[[FloatArray], FloatArray]

DISTANCES = np.geomspace(1e-2, 8.0, 400)
KAPPAS = np.geomspace(1e-3, 1e3, 61)

NOISE = 1e-4
"""The rounding error of second differences: that of a loss over a squared step."""


@dataclass(frozen=True)
class Feature:
    """A feature of the distance: s = phi(d) - eta, with phi' > 0, instead of the d - eta of (4).

    Examples
    --------
    >>> Feature("d", lambda d: d - 1.0, np.ones_like, np.zeros_like).times(0.5).score(3.0)
    1.0
    """

    name: str
    score: Function
    slope: Function
    curvature: Function

    def times(self, kappa: float) -> Feature:
        """The feature times kappa, the multiplier of (2), with the sign of kappa = -1 in (4)."""
        return Feature(
            f"{kappa:g} ({self.name})",
            lambda d: kappa * self.score(d),
            lambda d: kappa * self.slope(d),
            lambda d: kappa * self.curvature(d),
        )


def power(alpha: float) -> Feature:
    """The power feature phi(d) = d^alpha with eta = 1; alpha = 1 is (4).

    Examples
    --------
    >>> power(2.0).slope(np.array([3.0]))
    array([6.])
    """
    return Feature(
        f"d^{alpha:g}",
        lambda d: d**alpha - 1.0,
        lambda d: alpha * d ** (alpha - 1.0),
        lambda d: alpha * (alpha - 1.0) * d ** (alpha - 2.0),
    )


def _probit_slope(d: FloatArray) -> FloatArray:
    return np.asarray(np.exp(norm.logpdf(d - 1.0) - log_ndtr(d - 1.0) - log_ndtr(1.0 - d)))


def _probit_curvature(d: FloatArray) -> FloatArray:
    x = d - 1.0
    hazards = np.exp(norm.logpdf(x) - log_ndtr(-x)) - np.exp(norm.logpdf(x) - log_ndtr(x))
    return np.asarray(_probit_slope(d) * (hazards - x))


OFFSET = 0.1

AFFINE = power(1.0)

LOG_CONCAVE = (
    AFFINE,
    Feature(
        "probit", lambda d: log_ndtr(d - 1.0) - log_ndtr(1.0 - d), _probit_slope, _probit_curvature
    ),
    Feature(
        "exponential",
        lambda d: np.log(np.expm1(d + OFFSET)),
        lambda d: -1.0 / np.expm1(-d - OFFSET),
        lambda d: 1.0 / (np.expm1(-d - OFFSET) * np.expm1(d + OFFSET)),
    ),
)
"""Features for which (a) holds: p(-1) = sigma(d - 1), Phi(d - 1) and 1 - e^{-d - 0.1}."""

CONVEX = (power(2.0), Feature("e^d - 1", lambda d: np.expm1(d) - 1.0, np.exp, np.exp))
"""Convex features, as the paper asks for, for which (a) does not hold."""

CONCAVE = (power(0.5), Feature("log d", np.log, lambda d: 1.0 / d, lambda d: -1.0 / d**2))
"""Concave features, for which (a) does not hold: the unsquared distance, p(+1) = 1 / (1 + d)."""

FEATURES = (*LOG_CONCAVE, *CONVEX, *CONCAVE)
BENT = FEATURES[1:]
POWERS = {AFFINE, CONVEX[0], CONCAVE[0]}


def losses(s: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The losses -ln p(+1) = log(1 + e^s) and -ln p(-1) = log(1 + e^{-s}), eq. (8).

    Examples
    --------
    >>> [loss.round(4).tolist() for loss in losses(np.array([0.0, 1.0]))]
    [[0.6931, 1.3133], [0.6931, 0.3133]]
    """
    return np.logaddexp(0.0, s), np.logaddexp(0.0, -s)


def violation(feature: Feature, d: FloatArray = DISTANCES) -> float:
    """By how much (a) is violated: the most that |phi''|/phi'^2 exceeds sigma(s) or sigma(-s).

    Examples
    --------
    >>> violation(power(1.0)), violation(power(2.0)) > 1.0
    (0.0, True)
    """
    s, bend = feature.score(d), feature.curvature(d) / feature.slope(d) ** 2
    return max(0.0, float(np.max(bend - expit(s))), float(np.max(-bend - expit(-s))))


def loss_curvatures(feature: Feature, d: FloatArray) -> FloatArray:
    """The curvatures of both losses in d, one row each, by their formulas.

    Examples
    --------
    >>> loss_curvatures(power(2.0), np.array([0.0])).round(4).tolist()
    [[0.5379], [-1.4621]]
    """
    s, bend, square = feature.score(d), feature.curvature(d), feature.slope(d) ** 2
    return np.stack(
        [expit(s) * (bend + square * expit(-s)), expit(-s) * (square * expit(s) - bend)]
    )


def second_differences(feature: Feature, d: FloatArray) -> FloatArray:
    """The second differences of both losses in d, with steps of d/1000, over the step squared.

    Examples
    --------
    >>> second_differences(power(1.0), np.array([1.0])).round(4).tolist()
    [[0.25], [0.25]]
    """
    h = d / 1000.0
    above, middle, below = (np.stack(losses(feature.score(t))) for t in (d + h, d, d - h))
    return np.asarray((above - 2.0 * middle + below) / h**2)


def rescaling_error(feature: Feature, kappa: float) -> float:
    """How well kappa can be absorbed in the metric: the least spread of kappa phi(d) - phi(t d).

    Examples
    --------
    >>> rescaling_error(power(0.5), 3.0) < 1e-6, rescaling_error(LOG_CONCAVE[2], 3.0) > 0.01
    (True, True)
    """
    d = np.linspace(0.1, 4.0, 40)
    wanted = kappa * feature.score(d)

    def error(log_t: float) -> float:
        return float(np.ptp(wanted - feature.score(np.exp(log_t) * d)) / np.ptp(wanted))

    grid = np.linspace(-3.0, 3.0, 121)
    start = float(grid[np.argmin([error(log_t) for log_t in grid])])
    bounds = (start - 0.06, start + 0.06)
    return float(minimize_scalar(error, bounds=bounds, options={"xatol": 1e-10}).fun)


def label_gap(feature: Feature) -> float:
    """How far two M-steps differ whose soft labels have the same G and beta.

    Three unlabeled pairs on a line, v^2 = 1, 2, 3, with q(+1) = 1/2 and 1/2 + (1, -2, 1)/5.

    Examples
    --------
    >>> label_gap(power(1.0)) < 1e-12, label_gap(power(2.0)) > 0.1
    (True, True)
    """
    d = np.linspace(0.1, 2.0, 20)[:, None] * np.array([1.0, 2.0, 3.0])
    near, far = losses(feature.score(d))
    other = 0.5 + np.array([1.0, -2.0, 1.0]) / 5.0
    difference = (near + far) @ np.full(3, 0.5) - (near @ other + far @ (1.0 - other))
    return float(np.max(np.abs(difference)))
