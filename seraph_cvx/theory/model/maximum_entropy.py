"""Claim 3: Theorem 1, the maximum-entropy problem (1) and its dual (3)."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
from scipy.special import entr, expit

from ...numerics.checks import FloatArray
from ..claim import Check, Claim, ClaimResult, Recomputation, Verdict
from ..claim_data import ClaimData, relative, scores, solve_conic

GAMMA = 0.1
REACH = 10.0
"""The largest squared distance of a labeled pair: beyond, p underflows in a conic solver."""

CLAIM = Claim(
    number=3,
    name="Theorem 1: maximum entropy is maximum likelihood",
    place="Theorem 1, (1) to (3)",
    statement="(3) is the dual of (1), the primal solution has the form (2), and both are "
    "regularized maximum likelihood.",
    formula=r"\max_{p, \xi} \sum_{\mathcal{S} \cup \mathcal{D}} H(p_{ij}) - \frac{\xi^2}{2\gamma}"
    r" = \min_{\kappa} \sum_{\mathcal{S} \cup \mathcal{D}} \ln Z_{ij}(\kappa) -"
    r" \kappa f_{ij}(y_{ij}) + \frac{\gamma}{2}\kappa^2",
    evidence="(1) over p and xi and (3) over kappa solved in CVXPY for fixed metrics; their values "
    "recomputed at feasible points; p* against (2), the multipliers of (1) against kappa*; (3) "
    "against the likelihood at random kappa.",
    expected=Verdict.CORRECTED,
    correction="They are dual for each fixed A. Jointly in A they are not: (1) as printed "
    "maximizes over A the very value that (3) minimizes over A, and these differ.",
    consequence="Read Theorem 1 with the metric fixed: who learns the metric too has to minimize "
    "(3), as this package does, and not to maximize (1).",
    recomputation=Recomputation(
        """\
import numpy as np
from scipy.optimize import minimize_scalar
def value(a):  # of (1) = of (3), one similar pair at squared distance a, eta = 1, gamma = 0.1
    s = a - 1.0
    dual = lambda k: np.logaddexp(k*s/2, -k*s/2) - k*s/2 + 0.05*k**2
    return minimize_scalar(dual, bounds=(-50, 50), method="bounded").fun
print([round(float(value(a)), 4) for a in (0.0, 0.5, 1.0, 2.0, 4.0)])
""",
        "[0.3118, 0.499, 0.6931, 0.3118, 0.0967]\n",
    ),
)


def feature(y: FloatArray | float, s: FloatArray) -> FloatArray:
    """The feature f(x, x', y; A) = y (||x - x'||_A^2 - eta) / 2, eq. (4)."""
    return np.asarray(y * s / 2.0)


def dual_value(kappa: float, s: FloatArray, y: FloatArray) -> float:
    """The dual objective (3): sum ln Z - sum kappa f(y_ij) + gamma kappa^2 / 2."""
    log_partition = np.logaddexp(kappa * feature(1.0, s), kappa * feature(-1.0, s))
    return float(np.sum(log_partition - kappa * feature(y, s)) + GAMMA / 2.0 * kappa**2)


def solve_primal(s: FloatArray, y: FloatArray) -> tuple[float, FloatArray, float]:
    """Solve (1) for a fixed metric: its value at a feasible point, p(+1), and its multiplier."""
    p, xi = cp.Variable(len(s)), cp.Variable()
    observed = float(np.sum(feature(y, s)))
    expectation = feature(1.0, s) @ p + feature(-1.0, s) @ (1 - p) - observed
    above, below = expectation <= xi, -expectation <= xi
    goal = cp.sum(cp.entr(p) + cp.entr(1 - p)) - cp.square(xi) / (2 * GAMMA)
    solve_conic(cp.Problem(cp.Maximize(goal), [above, below]))
    chosen = np.clip(p.value, 0.0, 1.0)
    slack = abs(float(feature(1.0, s) @ chosen + feature(-1.0, s) @ (1 - chosen)) - observed)
    entropy = float(np.sum(entr(chosen) + entr(1.0 - chosen)))
    kappa = float(below.dual_value) - float(above.dual_value)
    return entropy - slack**2 / (2 * GAMMA), chosen, kappa


def solve_dual(s: FloatArray, y: FloatArray) -> float:
    """Solve (3) for a fixed metric: kappa*."""
    kappa = cp.Variable()
    terms = cp.logistic(kappa * s) - kappa * s / 2.0  # ln Z with the paper's f
    goal = cp.sum(terms) - kappa * float(np.sum(feature(y, s))) + GAMMA / 2.0 * cp.square(kappa)
    solve_conic(cp.Problem(cp.Minimize(goal)))
    return float(kappa.value)


def check_maximum_entropy(setting: ClaimData) -> ClaimResult:
    """Check, for a fixed metric, that max of (1) = min of (3), and p* = exp(kappa* f) / Z (2)."""
    m, y = setting.pairs.n_features, setting.labels
    identity = np.eye(m) * float(np.trace(setting.metric)) / m
    gaps, forms, multipliers, likelihoods, values, kappas = [], [], [], [], [], []
    longest = max(float(np.max(scores(setting.labeled, setting.metric, 0.0))), 1e-300)
    learned = setting.metric * min(1.0, REACH / longest)
    for A in (np.zeros((m, m)), identity, learned):
        s = scores(setting.labeled, A, setting.threshold)
        primal, p, multiplier = solve_primal(s, y)
        kappa = solve_dual(s, y)
        dual = dual_value(kappa, s, y)
        gaps.append((dual - primal) / max(1.0, abs(dual)))
        partition = kappa * feature(1.0, s) - kappa * feature(-1.0, s)
        forms.append(relative(p - expit(partition), 1.0))
        multipliers.append(abs(multiplier - kappa) / max(1.0, abs(kappa)))
        for guess in (-2.0, 0.3, kappa):
            likelihood = np.sum(-np.logaddexp(0.0, -guess * y * s)) - GAMMA / 2.0 * guess**2
            likelihoods.append(relative(float(likelihood) + dual_value(guess, s, y), dual))
        values.append(dual)
        kappas.append(kappa)
    one_pair = [_value_of_one_pair(a) for a in (1.0, 4.0)]
    spread = max((max(values) - min(values)) / len(y), max(one_pair) - min(one_pair))
    return ClaimResult(
        CLAIM,
        [Check("spread over A of the common value", spread, 1e-6)],
        [
            Check("gap of (1) and (3), A fixed", max(map(abs, gaps)), 1e-6),
            Check("p* against (2)", max(forms), 1e-3),
            Check("multiplier of (1) against kappa*", max(multipliers), 1e-3),
            Check("(3) against the likelihood", max(likelihoods), 1e-12),
        ],
        numbers={
            "value at A = 0": values[0],
            "value at A = I, scaled": values[1],
            "value at the learned metric, scaled": values[2],
            "value, one similar pair at distance 1": one_pair[0],
            "value, one similar pair at distance 2": one_pair[1],
            "kappa* at A = 0": kappas[0],
            "kappa* at the learned metric, scaled": kappas[2],
        },
    )


def _value_of_one_pair(a: float) -> float:
    """The common value of (1) and (3) for one similar pair at squared distance a, eta = 1."""
    s, y = np.array([a - 1.0]), np.ones(1)
    return dual_value(solve_dual(s, y), s, y)
