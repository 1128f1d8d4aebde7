"""Claim 5: Theorem 2, which eliminates kappa and gamma from the model (6)."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from ...fit.direct import minimize_directly
from ...model.m_step_objective import MStepObjective
from ...model.semi_supervised import SemiSupervisedObjective
from ...numerics.checks import FloatArray
from ...numerics.psd_cone import symmetrize
from ..claim import Check, Claim, ClaimResult, Recomputation, Verdict
from ..claim_data import ClaimData, certified, posterior, relative, scores
from .full_model import GAMMA, alternate_model, model_loss, solve_at_kappa
from .kappa_sign import best_kappa, counterexample

CLAIM = Claim(
    number=5,
    name="Theorem 2: kappa can be eliminated",
    place="Theorem 2, (6) to (8)",
    statement="For well-defined hyperparameters eta_hat and lambda_hat the simplified problem (7) "
    "has the metric of (6) up to scale, and identical posteriors.",
    formula=r"\hat{A} = -\kappa^* A^* , \quad \hat{\eta} = -\kappa^* \eta , \quad"
    r" \hat{\lambda} = \frac{\lambda}{-\kappa^*} , \quad \hat{p}^{\hat{A}} = p^{A^*}",
    evidence="mu = 0: (6) solved by a profile over kappa, the inner problem stated in CVXPY in the "
    "metric A; (7) with the mapped hyperparameters by FISTA, certified; metrics and all posteriors "
    "compared. mu > 0: (6) by alternating over A and kappa, then (7) by direct descent from "
    "near the mapped metric. The identity of both objectives at random (A, kappa < 0).",
    expected=Verdict.CORRECTED,
    correction="It holds where kappa* < 0. At kappa* > 0, which occurs (claim 4), eta_hat is "
    "negative and lambda_hat too: they are no hyperparameters of (7).",
    consequence="Nothing is lost by fitting (7) instead of (6) where kappa* < 0; where kappa* > 0 "
    "the models differ, and that of (7), SERAPH's own, still takes near pairs for similar.",
    recomputation=Recomputation(
        """\
import numpy as np
k, a = np.linspace(-6, 6, 2401)[:, None], np.linspace(0, 40, 2001)[None, :]
def loss(y, v):  # -ln p(y), eq. (5), of a pair at distance |v|; A = a, eta = 1
    return np.logaddexp(0, -k * y * (a * v**2 - 1))
L = loss(1, 0.3) + loss(-1, 0.1) + loss(-1, 0.2) + loss(-1, 0.2) + 0.05 * k**2 + a
best = k[np.unravel_index(L.argmin(), L.shape)[0], 0]
print(f"-κ* η = {-best:.3f}, λ / -κ* = {-1 / best:.3f}")
""",
        "-κ* η = -0.975, λ / -κ* = -1.026\n",
    ),
)


def hat_threshold(kappa: float, threshold: float) -> float:
    """The threshold of (7) that Theorem 2 maps to: eta_hat = -kappa eta."""
    return -kappa * threshold


def hat_trace_weight(kappa: float, trace_weight: float) -> float:
    """The trace weight of (7) that Theorem 2 maps to: lambda_hat = lambda / (-kappa)."""
    return trace_weight / -kappa


def check_elimination(setting: ClaimData) -> ClaimResult:
    """Compare (6) at (A*, kappa*) with (7) at (-kappa* A*, -kappa* eta, lambda / -kappa*)."""
    point, _ = best_kappa(setting.pairs, -1.0, setting.trace_weight)
    kappa = point.kappa
    A = solve_at_kappa(setting, kappa)
    hat = _m_step(setting, kappa)
    solution = certified(hat)
    A_hat = setting.metric_of(solution)
    mapped = _posteriors(setting, A, kappa) - _hat_posteriors(setting, A_hat, kappa)
    B, kappa_B, rounds = alternate_model(setting, A, kappa)
    direct = minimize_directly(
        setting.pairs,
        setting.mu,
        hat_trace_weight(kappa_B, setting.trace_weight),
        abs(hat_threshold(kappa_B, setting.threshold)),
        start=-kappa_B * (1.02 * B + 0.002 * float(np.trace(B)) / len(B) * np.eye(len(B))),
        tol=1e-8,
    )
    mapped_value = SemiSupervisedObjective(_m_step(setting, kappa_B, setting.mu)).value(
        -kappa_B * B
    )
    mapped_mu = _posteriors(setting, B, kappa_B) - _hat_posteriors(setting, direct.metric, kappa_B)
    wrong = best_kappa(counterexample(), 1.0)[0].kappa
    size = max(float(np.linalg.norm(A_hat)), setting.unit)
    value = hat.value(symmetrize(-kappa * A)) if kappa < 0 else np.inf
    bound = solution.value - solution.relative_gap * max(1.0, abs(solution.value))
    return ClaimResult(
        CLAIM,
        [Check("eta_hat is not positive, four points of claim 4", -hat_threshold(wrong, 1.0), 0.0)],
        [
            Check("objectives (6) and (7) at random points", _identity(setting), 1e-11),
            Check("value of the mapped metric in (7)", relative(value - bound, value), 1e-6),
            Check("metric, mu = 0", float(np.linalg.norm(-kappa * A - A_hat)) / size, 1e-3),
            Check("posteriors of all pairs, mu = 0", relative(mapped, 1.0), 1e-3),
            Check("value, mu > 0", relative(mapped_value - direct.value, direct.value), 1e-5),
            Check("posteriors of all pairs, mu > 0", relative(mapped_mu, 1.0), 1e-2),
        ],
        numbers={
            "kappa*, mu = 0": kappa,
            "eta_hat": hat_threshold(kappa, setting.threshold),
            "lambda_hat": hat_trace_weight(kappa, setting.trace_weight),
            "certified gap of (7)": solution.relative_gap,
            "largest difference of posteriors, mu = 0": float(np.max(np.abs(mapped))),
            "kappa*, mu > 0": kappa_B,
            "rounds of the alternation": rounds,
            "stationarity of (7), mu > 0": direct.stationarity,
            "largest difference of posteriors, mu > 0": float(np.max(np.abs(mapped_mu))),
            "eta_hat of the four points of claim 4": hat_threshold(wrong, 1.0),
        },
    )


def _m_step(setting: ClaimData, kappa: float, mu: float = 0.0) -> MStepObjective:
    """State the labeled part of (7), with the mapped hyperparameters."""
    return MStepObjective(
        setting.pairs,
        unlabeled_weight=mu,
        trace_weight=abs(hat_trace_weight(kappa, setting.trace_weight)),
        threshold=abs(hat_threshold(kappa, setting.threshold)),
    )


def _posteriors(setting: ClaimData, A: FloatArray, kappa: float) -> FloatArray:
    """The probability p(+1) of every pair, eq. (5)."""
    V = np.vstack([setting.labeled, setting.unlabeled])
    return np.asarray(expit(kappa * scores(V, A, setting.threshold)))


def _hat_posteriors(setting: ClaimData, A: FloatArray, kappa: float) -> FloatArray:
    """The probability p_hat(+1) of every pair, eq. (8)."""
    V = np.vstack([setting.labeled, setting.unlabeled])
    return posterior(1.0, scores(V, A, hat_threshold(kappa, setting.threshold)))


def _identity(setting: ClaimData) -> float:
    """Compare -L(A, kappa) - gamma kappa^2/2 of (6) with -L_hat(-kappa A) of (7), relatively."""
    rng, worst = setting.random(5), 0.0
    for A in setting.random_metrics(claim=5, count=6):
        kappa = -float(np.exp(rng.uniform(-1.5, 1.5)))
        simplified = SemiSupervisedObjective(_m_step(setting, kappa, setting.mu))
        other = model_loss(setting, A, kappa, setting.mu)[0] - GAMMA / 2.0 * kappa**2
        worst = max(worst, relative(simplified.value(-kappa * A) - other, other))
    return worst
