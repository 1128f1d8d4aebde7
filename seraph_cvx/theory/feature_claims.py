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
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_ndtr
from scipy.stats import norm

from ..certificate import Certificate
from ..display.page import Chart, Curve
from ..numerics.checks import FloatArray
from .claim import Check, Evidence
from .claim_data import ClaimData, metric_of, solve_conic
from .exponential import ExponentialMStep, certify_exponential, solve_exponential, state_exponential

Function = Callable[[FloatArray], FloatArray]

DISTANCES = np.geomspace(1e-2, 8.0, 400)
KAPPAS = np.geomspace(1e-3, 1e3, 61)
OFFSET = 0.1

NOISE = 1e-4
"""The rounding error of second differences: that of a loss over a squared step."""


def loss(y: int, similar: FloatArray, dissimilar: FloatArray) -> FloatArray:
    """The loss -ln p(y) = ln Z - kappa f(y), eq. (2), with kappa = -1 and features of both y."""
    feature = similar if y == 1 else dissimilar
    return np.asarray(np.logaddexp(-similar, -dissimilar) + feature)


def check_feature_convexity(data: ClaimData) -> Evidence:
    """Check -ln p(y) at midpoints, for f(+1) = a^2 and f(-1) = 0, and for f affine in a."""
    rng = data.random(15)
    a, b = rng.uniform(0.0, 3.0, size=(2, 500))
    a[0], b[0] = 0.0, 1.0
    points = np.array([(a + b) / 2.0, a, b])

    def excess(similar: FloatArray, dissimilar: FloatArray) -> float:
        """By how much convexity fails at the midpoints, for either label."""
        losses = [loss(y, similar, dissimilar) for y in (1, -1)]
        return max(0.0, *(float(np.max(middle - (one + two) / 2.0)) for middle, one, two in losses))

    convex, affine = excess(points**2, 0.0 * points), 0.0
    for _ in range(20):
        slope, shift = rng.normal(size=(2, 2)) * 3.0
        affine = max(affine, excess(*(s * points + t for s, t in zip(slope, shift, strict=True))))
    line = np.linspace(0.0, 3.0, 61)
    curve = loss(-1, line**2, 0.0 * line)
    return Evidence(
        [Check("midpoint inequality, f convex, excess", convex, 1e-9)],
        [Check("midpoint inequality, f affine, excess", affine, 1e-12)],
        numbers={
            "f = a^2 and 0: largest excess": convex,
            "loss at 0.5, between 0 and 1": curve[10],
            "mean of the losses at 0 and 1": (curve[0] + curve[20]) / 2.0,
        },
        charts=[
            Chart(
                "A loss that is not convex, of a convex feature",
                "A",
                "-ln p(-1)",
                [Curve("f(+1) = A^2", line, curve)],
            )
        ],
    )


@dataclass(frozen=True)
class Feature:
    """A feature of the distance: s = phi(d) - eta, with phi' > 0, instead of the d - eta of (4)."""

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
    """The power feature phi(d) = d^alpha with eta = 1; alpha = 1 is (4)."""
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
NOT_AFFINE = FEATURES[1:]
POWERS = {AFFINE, CONVEX[0], CONCAVE[0]}


def losses(s: FloatArray) -> FloatArray:
    """The losses -ln p(+1) = log(1 + e^s) and -ln p(-1) = log(1 + e^{-s}), eq. (8)."""
    return np.logaddexp(0.0, [s, -s])


def violation(feature: Feature, d: FloatArray = DISTANCES) -> float:
    """By how much (a) is violated: the most that |phi''|/phi'^2 exceeds sigma(s) or sigma(-s)."""
    s, ratio = feature.score(d), feature.curvature(d) / feature.slope(d) ** 2
    return max(0.0, float(np.max(ratio - expit(s))), float(np.max(-ratio - expit(-s))))


def loss_curvatures(feature: Feature, d: FloatArray) -> FloatArray:
    """The curvatures of both losses in d, one row each, by their formulas."""
    s, second, square = feature.score(d), feature.curvature(d), feature.slope(d) ** 2
    similar = expit(s) * (second + square * expit(-s))
    return np.stack([similar, expit(-s) * (square * expit(s) - second)])


def second_differences(feature: Feature, d: FloatArray) -> FloatArray:
    """The second differences of both losses in d, with steps of d/1000, over the step squared."""
    h = d / 1000.0
    above, middle, below = (losses(feature.score(t)) for t in (d + h, d, d - h))
    return np.asarray((above - 2.0 * middle + below) / h**2)


def rescaling_error(feature: Feature, kappa: float) -> float:
    """How well kappa can be absorbed in the metric: the least spread of kappa phi(d) - phi(t d)."""
    d = np.linspace(0.1, 4.0, 40)
    target = kappa * feature.score(d)

    def error(log_t: float) -> float:
        return float(np.ptp(target - feature.score(np.exp(log_t) * d)) / np.ptp(target))

    start = min(np.linspace(-3.0, 3.0, 121), key=error)
    bounds = (start - 0.06, start + 0.06)
    return float(minimize_scalar(error, bounds=bounds, options={"xatol": 1e-10}).fun)


def label_gap(feature: Feature) -> float:
    """How far two M-steps differ whose soft labels have the same G and beta.

    Three unlabeled pairs on a line, v^2 = 1, 2, 3, with q(+1) = 1/2 and 1/2 + (1, -2, 1)/5.
    """
    similar, dissimilar = losses(feature.score(np.outer(np.linspace(0.1, 2.0, 20), [1, 2, 3])))
    shift = np.array([1.0, -2.0, 1.0]) / 5.0
    return float(np.max(np.abs((similar - dissimilar) @ shift)))


def check_feature_functions(data: ClaimData) -> Evidence:
    """Check (a) of this module's docstring, what follows from it, and the exponential M-step."""
    d = np.concatenate([DISTANCES, data.random(16).uniform(0.01, 8.0, size=400)])
    measured = {f: second_differences(f, d) for f in FEATURES}
    formula = {f: loss_curvatures(f, d) for f in FEATURES}
    off = [np.abs(measured[f] - formula[f]) / (1.0 + np.abs(formula[f])) for f in FEATURES]
    violations = {f: violation(f, d) for f in FEATURES}
    concavity = {f: max(0.0, -float(np.min(measured[f]))) for f in FEATURES}
    contradictions = [f for f in FEATURES if (violations[f] > 1e-9) != (concavity[f] > NOISE)]
    other_powers = [power(alpha) for alpha in (0.25, 0.5, 0.8, 1.25, 2.0, 3.0)]
    convex_powers = [f for f in other_powers if any(violation(f.times(k)) == 0.0 for k in KAPPAS)]
    unbroken = [f for f in NOT_AFFINE if _least_curvature_at_small_kappa(f) >= -NOISE]
    absorbing = {f for f in FEATURES if all(rescaling_error(f, k) < 1e-6 for k in (0.5, 3.0))}
    determined = [f for f in NOT_AFFINE if label_gap(f) < 1e-3]
    certificate = _exponential_certificate(data)
    outside, solver_status = _conic_outside(data.few)
    checks = [
        ("inequalities, log-concave features", max(violations[f] for f in LOG_CONCAVE), 1e-9),
        ("second differences against formula", np.max(off), NOISE),
        ("features that only one of these two calls convex", len(contradictions), 0.0),
        ("inequalities, affine, any kappa", max(violation(AFFINE.times(k)) for k in KAPPAS), 0.0),
        ("other features not broken by a small kappa", len(unbroken), 0.0),
        ("kappa is absorbed: not just for the powers of d", len(absorbing ^ POWERS), 0.0),
        ("powers of d, but d, convex at some kappa", len(convex_powers), 0.0),
        ("soft labels with one G and beta, affine", label_gap(AFFINE), 1e-12),
        ("other features to which G and beta say all", len(determined), 0.0),
        ("curvatures by DCP not as expected", _unexpected_by_dcp(), 0.0),
        ("exponential M-step, certified gap", certificate.relative_gap, 1e-6),
        ("CVXPY's optimum outside the certified interval", outside, 1e-6),
    ]
    return Evidence(
        [Check("concavity of a loss, d^2 and e^d - 1", max(concavity[f] for f in CONVEX), NOISE)],
        [Check(*check) for check in checks],
        numbers={
            **{f"violation of the inequalities, {f.name}": violations[f] for f in FEATURES},
            "exponential M-step on the data": certificate.primal_value,
            "its certified gap": certificate.relative_gap,
            "Clarabel on some points": solver_status,
        },
        charts=[
            Chart(
                "A small kappa breaks all but the affine feature",
                "kappa",
                "violation of the inequalities",
                [
                    Curve(f.name, KAPPAS, [violation(f.times(k)) for k in KAPPAS])
                    for f in (*LOG_CONCAVE[1:], CONVEX[1])
                ],
                log_x=True,
                log_y=True,
            )
        ],
    )


def _least_curvature_at_small_kappa(feature: Feature) -> float:
    """The least second difference of a loss at half the kappa = |phi''| / phi'^2 of some d."""
    d = np.linspace(0.1, 8.0, 80)
    ratio = np.abs(feature.curvature(d)) / feature.slope(d) ** 2
    worst = int(np.argmax(ratio))
    scaled = feature.times(float(ratio[worst]) / 2.0)
    return float(np.min(second_differences(scaled, d[[worst]])))


def _unexpected_by_dcp() -> int:
    """Losses on which CVXPY's rules disagree: their yes is a proof, their no is not."""
    import cvxpy as cp

    d = cp.Variable(nonneg=True)
    convex = [d - 1, 1 - d, cp.square(d) - 1]
    not_seen = [1 - cp.square(d), 2 - cp.exp(d)]
    verdicts = [bool(cp.logistic(s).is_convex()) for s in (*convex, *not_seen)]
    return sum(np.not_equal(verdicts, [True] * 3 + [False] * 2))


def _exponential_m_step(data: ClaimData) -> ExponentialMStep:
    return ExponentialMStep(data.pairs, data.soft_labels, data.mu, data.trace_weight, OFFSET)


def _exponential_certificate(data: ClaimData) -> Certificate:
    """Check our own solution, without relying on what the solver claims."""
    problem = _exponential_m_step(data)
    return certify_exponential(problem, metric_of(solve_exponential(problem, tol=1e-7)))


def _conic_outside(few: ClaimData) -> tuple[float, str]:
    """How far CVXPY's optimum is outside [D, f] of our own solution, relatively; its status."""
    own, statement = _exponential_certificate(few), state_exponential(_exponential_m_step(few))
    status = solve_conic(statement)
    outside = max(0.0, own.dual_value - statement.value, statement.value - own.primal_value)
    return outside / max(1.0, abs(own.primal_value)), status
