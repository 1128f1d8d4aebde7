"""Claim 16: which other features of the distance keep the M-step convex.

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

import numpy as np

from ...certificate import Certificate
from ...display.chart import Chart, Curve
from ..claim import Check, Claim, ClaimResult, Recomputation, Verdict
from ..claim_data import ClaimData, solve_conic
from .distance_features import (
    AFFINE,
    BENT,
    CONVEX,
    DISTANCES,
    FEATURES,
    KAPPAS,
    LOG_CONCAVE,
    NOISE,
    OFFSET,
    POWERS,
    Feature,
    label_gap,
    loss_curvatures,
    power,
    rescaling_error,
    second_differences,
    violation,
)
from .exponential_feature import ExponentialMStep, certify_exponential, state_exponential_m_step
from .exponential_solver import solve_exponential

CLAIM = Claim(
    number=16,
    name="Other feature functions are available",
    place="Section 2.2, below (5), and Appendix C.1, which is not available",
    statement="Instead of (4), other features of the distance can be used: those that are "
    "convex in A (Section 2.2), for then the M-step is convex (Section 2.4).",
    formula=r"-(φ')^2 \sigma(-s) \leq {φ'}' \leq (φ')^2 \sigma(s) , \quad s = φ(d) - \eta , \quad"
    r" p(-1) = \sigma(s) , \quad d = v^\top A v",
    evidence="Of seven features: second differences of -ln p(+1) and -ln p(-1) against their "
    "formula and the inequalities above, small and large kappa, the scale of A that would absorb "
    "kappa, soft labels with equal G and beta. The M-step with p(+1) = exp(-d - δ) on the data: "
    "its duality gap, and CVXPY on some points. Features of more than d are not looked at.",
    expected=Verdict.CORRECTED,
    correction="With kappa fixed, exactly those features for which p(+1) and p(-1) are log-concave "
    "in d: probit, Gumbel's, or p(+1) = exp(-d - δ). Convex ones such as d^2 and e^d - 1 are not "
    "among them, nor are the unsquared distance and log d. With kappa in the model, as in (6), "
    "only affine ones are left; only these let the soft labels in by one matrix and one number.",
    consequence="Before using another feature of the distance, check that p(+1) and p(-1) are "
    "log-concave in d: probit and exp(-d - δ) pass, d^2 and log d do not.",
    recomputation=Recomputation(
        """\
import numpy as np
d = np.linspace(0.0, 8.0, 801)
def concavity(s):  # of -ln p(+1) and -ln p(-1), by second differences
    least = min(np.diff(loss, 2).min() for loss in (np.logaddexp(0, s), np.logaddexp(0, -s)))
    return max(0.0, -least) / d[1] ** 2
s = np.log(np.expm1(d + 0.1))  # p(+1) = exp(-d - 0.1)
print(f"d - 1: {concavity(d - 1):.3f}, d^2 - 1: {concavity(d**2 - 1):.3f},", end=" ")
print(f"log(e^(d + 0.1) - 1): {concavity(s):.3f}, half of it: {concavity(s / 2):.3f}")
""",
        "d - 1: 0.000, d^2 - 1: 1.462, log(e^(d + 0.1) - 1): 0.000, half of it: 6.145\n",
    ),
)


def check_feature_functions(setting: ClaimData) -> ClaimResult:
    """Check (a) of this module's docstring, what follows from it, and the exponential M-step."""
    d = np.concatenate([DISTANCES, setting.random(16).uniform(0.01, 8.0, size=400)])
    measured = {f: second_differences(f, d) for f in FEATURES}
    formula = {f: loss_curvatures(f, d) for f in FEATURES}
    off = [np.abs(measured[f] - formula[f]) / (1.0 + np.abs(formula[f])) for f in FEATURES]
    concavity = {f: max(0.0, -float(np.min(measured[f]))) for f in FEATURES}
    unlike = [f for f in FEATURES if (violation(f, d) > 1e-9) != (concavity[f] > NOISE)]
    other_powers = [power(alpha) for alpha in (0.25, 0.5, 0.8, 1.25, 2.0, 3.0)]
    convex_powers = [f for f in other_powers if any(violation(f.times(k)) == 0.0 for k in KAPPAS)]
    unbroken = [f for f in BENT if _least_curvature_at_small_kappa(f) >= -NOISE]
    absorbing = {f for f in FEATURES if all(rescaling_error(f, k) < 1e-6 for k in (0.5, 3.0))}
    told = [f for f in BENT if label_gap(f) < 1e-3]
    checks = [
        ("inequalities, log-concave features", max(violation(f, d) for f in LOG_CONCAVE), 1e-9),
        ("second differences against formula", max(float(np.max(e)) for e in off), NOISE),
        ("features that only one of these two calls convex", len(unlike), 0.0),
        ("inequalities, affine, any kappa", max(violation(AFFINE.times(k)) for k in KAPPAS), 0.0),
        ("other features not broken by a small kappa", len(unbroken), 0.0),
        ("kappa is absorbed: not just for the powers of d", len(absorbing ^ POWERS), 0.0),
        ("powers of d, but d, convex at some kappa", len(convex_powers), 0.0),
        ("soft labels with one G and beta, affine", label_gap(AFFINE), 1e-12),
        ("other features to which G and beta say all", len(told), 0.0),
        ("curvatures by DCP not as expected", _dcp_surprises(), 0.0),
    ]
    certificate = _exponential_m_step(setting)
    outside, solver_status = _conic_outside(setting.few)
    checks += [
        ("exponential M-step, certified gap", certificate.relative_gap, 1e-6),
        ("CVXPY's optimum outside the certified interval", outside, 1e-6),
    ]
    return ClaimResult(
        CLAIM,
        [Check("concavity of a loss, d^2 and e^d - 1", max(concavity[f] for f in CONVEX), NOISE)],
        [Check(name, float(residual), tolerance) for name, residual, tolerance in checks],
        numbers={
            **{f"violation of the inequalities, {f.name}": violation(f, d) for f in FEATURES},
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
                    Curve(f.name, list(KAPPAS), [violation(f.times(k)) for k in KAPPAS])
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


def _dcp_surprises() -> int:
    """Losses on which CVXPY's rules disagree: their yes is a proof, their no is not."""
    import cvxpy as cp

    d = cp.Variable(nonneg=True)
    convex = [d - 1, 1 - d, cp.square(d) - 1]
    not_seen = [1 - cp.square(d), 2 - cp.exp(d)]
    missed = sum(not cp.logistic(s).is_convex() for s in convex)
    return missed + sum(bool(cp.logistic(s).is_convex()) for s in not_seen)


def _exponential_m_step(setting: ClaimData) -> Certificate:
    """Check our own solution, without relying on what the solver claims."""
    q, mu, trace_weight = setting.soft_labels, setting.mu, setting.trace_weight
    model = ExponentialMStep(setting.pairs, q, mu, trace_weight, OFFSET)
    return certify_exponential(model, ClaimData.metric_of(solve_exponential(model, tol=1e-7)))


def _conic_outside(few: ClaimData) -> tuple[float, str]:
    """How far CVXPY's optimum is outside [D, f] of our own solution, relatively; its status."""
    own = _exponential_m_step(few)
    statement = state_exponential_m_step(
        few.pairs, few.soft_labels, few.mu, few.trace_weight, OFFSET
    )
    status = solve_conic(statement)
    outside = max(0.0, own.dual_value - statement.value, statement.value - own.primal_value)
    return outside / max(1.0, abs(own.primal_value)), status
