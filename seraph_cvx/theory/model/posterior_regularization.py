"""Claim 8: the equivalence of (13) and (14)."""

from __future__ import annotations

import cvxpy as cp
import numpy as np

from ...display.chart import Chart, Curve
from ...numerics.checks import FloatArray
from ..claim import Check, Claim, ClaimResult, Recomputation, Verdict
from ..claim_data import (
    ClaimData,
    log_posterior,
    posterior,
    relative,
    renyi_entropy,
    scores,
    shannon_entropy,
    solve_conic,
)

COUNT = 200

CLAIM = Claim(
    number=8,
    name="(13) and (14) are equivalent",
    place="Section 3, (13) and (14)",
    statement="The inner minimizer of the posterior-regularization objective (14) is q = p, so "
    "that (14) is (13).",
    formula=r"\min_{q} \operatorname{KL}(q \| p) + \mu E_q[-\ln p] = \mu H(p) , \quad q = p",
    evidence=f"The inner problem of (14) with its slacks xi, solved in CVXPY for {COUNT} "
    "posteriors and several mu; its q against p and against (10); its value against mu times "
    "the Shannon entropy, as (13) has it, and against mu times a Renyi entropy.",
    expected=Verdict.REFUTED,
    correction="q is proportional to p^(1 + mu), as Theorem 3 says, and the inner value is mu "
    "times the Renyi entropy of order 1 + mu. So (14) is (13) with Renyi's entropy instead "
    "of Shannon's. The two agree where every p is 0, 1/2 or 1, and to first order in mu: the "
    "difference is at most mu^2/2 times the variance of ln p, summed over the unlabeled pairs.",
    consequence="Who implements (14) gets soft labels sharper than p and Renyi's entropy in place "
    "of Shannon's: hardly visible for a small mu, plain for one near 1.",
    recomputation=Recomputation(
        """\
import cvxpy as cp, numpy as np
p, mu = np.array([0.9, 0.1]), 1.0
q, xi = cp.Variable(2), cp.Variable()
inner = cp.sum(cp.rel_entr(q, p)) + mu * xi  # of (14), one unlabeled pair
problem = cp.Problem(cp.Minimize(inner), [-np.log(p) @ q <= xi, cp.sum(q) == 1])
problem.solve(solver="CLARABEL")
print(f"q(+1) = {q.value[0]:.4f}; p(+1) = 0.9, p^2/sum p^2 = {0.81 / 0.82:.4f};", end=" ")
print(f"value {problem.value:.4f}, μ H(p) = {-mu * p @ np.log(p):.4f}", end=", ")
print(f"μ H_2(p) = {-np.log(p @ p):.4f}")
""",
        "q(+1) = 0.9878; p(+1) = 0.9, p^2/sum p^2 = 0.9878; value 0.1985, μ H(p) = 0.3251, "
        "μ H_2(p) = 0.1985\n",
    ),
)


def sharpened(s: FloatArray, mu: float) -> FloatArray:
    """The soft label q(+1) = p(+1)^(1 + mu) / sum_y p(y)^(1 + mu), eq. (10)."""
    return posterior(1.0, (1.0 + mu) * s)


def inner_value(s: FloatArray, mu: float) -> FloatArray:
    """The value mu H_{1 + mu}(p) of the inner problem of (14), derived here."""
    return mu * renyi_entropy(s, 1.0 + mu)


def check_posterior_regularization(setting: ClaimData) -> ClaimResult:
    """Check the solution and the value of the inner problem of (14)."""
    rng = setting.random(8)
    drawn = rng.choice(len(setting.unlabeled), min(COUNT - 10, len(setting.unlabeled)), False)
    s = scores(setting.unlabeled[drawn], setting.metric, setting.threshold)
    s = np.concatenate([np.clip(s, -8.0, 8.0), np.linspace(-4.0, 4.0, 10)])
    off_p, off_sharpened, off_shannon, off_renyi, first_order = [], [], [], [], []
    for mu in (0.1, 1.0, 3.0):
        q, value = _solve(s, mu)
        off_p.append(relative(q - posterior(1.0, s), 1.0))
        off_sharpened.append(relative(q - sharpened(s, mu), 1.0))
        off_shannon.append(relative(value - mu * shannon_entropy(s), 1.0))
        off_renyi.append(relative(value - inner_value(s, mu), 1.0))
        apart = mu * shannon_entropy(s) - inner_value(s, mu)
        p = posterior(1.0, s)
        variance = p * (1.0 - p) * s**2  # of ln p(y), whose two values are s apart
        first_order.append(float(np.max(apart - mu**2 / 2.0 * variance)))
    mu, u = setting.mu, scores(setting.unlabeled, setting.metric, setting.threshold)
    grid = np.linspace(0.01, 0.99, 99)
    logit = np.log1p(-grid) - np.log(grid)
    return ClaimResult(
        CLAIM,
        [
            Check("q of (14) against p", max(off_p), 1e-3),
            Check("value of (14) against that of (13)", max(off_shannon), 1e-6),
        ],
        [
            Check("q of (14) against p^(1 + mu), normalized", max(off_sharpened), 1e-4),
            Check("value of (14) against Renyi's entropy", max(off_renyi), 1e-7),
            Check("beyond mu^2/2 times the variance of ln p", max(0.0, *first_order), 1e-12),
        ],
        numbers={
            "largest |q - p|, mu = 1": off_p[1],
            "p = 0.9, mu = 1: q": float(sharpened(np.log(np.array(1 / 9)), 1.0)),
            "(13), unlabeled part on the data": mu * float(np.sum(shannon_entropy(u))),
            "(14), unlabeled part on the data": float(np.sum(inner_value(u, mu))),
        },
        charts=[
            Chart(
                "The inner minimizer of (14) is not p",
                "p(+1)",
                "q(+1)",
                [
                    Curve("q = p, as printed", list(grid), list(grid)),
                    Curve("mu = 1", list(grid), list(sharpened(logit, 1.0))),
                    Curve("mu = 3", list(grid), list(sharpened(logit, 3.0))),
                ],
            )
        ],
    )


def _solve(s: FloatArray, mu: float) -> tuple[FloatArray, FloatArray]:
    """Solve the inner problem of (14) for each pair by CVXPY: q(+1), and the value of each."""
    p = np.column_stack([posterior(1.0, s), posterior(-1.0, s)])
    surprise = -np.column_stack([log_posterior(1.0, s), log_posterior(-1.0, s)])
    q, xi = cp.Variable(p.shape), cp.Variable(len(s))
    goal = cp.sum(cp.rel_entr(q, p)) + mu * cp.sum(xi)
    expectations = cp.sum(cp.multiply(q, surprise), axis=1) <= xi
    solve_conic(cp.Problem(cp.Minimize(goal), [expectations, cp.sum(q, axis=1) == 1]))
    chosen = np.maximum(np.asarray(q.value), 0.0)
    chosen /= np.sum(chosen, axis=1, keepdims=True)
    divergence = cp.rel_entr(chosen, p).value
    return chosen[:, 0], np.sum(divergence + mu * chosen * surprise, axis=1)
