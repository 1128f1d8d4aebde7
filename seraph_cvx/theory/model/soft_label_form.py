"""Claim 6: Theorem 3, the closed form (10) of the E-step (9)."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
from scipy.special import rel_entr

from ...model.e_step import e_step
from ...numerics.checks import FloatArray
from ..claim import Check, Claim, ClaimResult
from ..claim_data import ClaimData, posterior, relative, scores, solve_conic

COUNT = 300

CLAIM = Claim(
    number=6,
    name="Theorem 3: the E-step in closed form",
    place="Theorem 3, (9) and (10)",
    statement="The soft label that minimizes (9) is the posterior to the power 1 + mu, normalized.",
    formula=r"\arg\min_{q} \operatorname{KL}(q \| p) + \mu E_q[-\ln p(y)] ="
    r" \frac{p(y)^{1+\mu}}{\sum_{y'} p(y')^{1+\mu}}",
    evidence=f"(9) solved in CVXPY (rel_entr) for {COUNT} posteriors, of the data and random, and "
    "several mu; the value of (9) at the closed form against that at the solver's q; the package's "
    "E-step.",
)


def closed_form(p: FloatArray, mu: float) -> FloatArray:
    """The closed form (10): q(y) = p(y) exp(mu ln p(y)), normalized; the columns are y."""
    weights = p * np.exp(mu * np.log(p))
    return np.asarray(weights / np.sum(weights, axis=1, keepdims=True))


def e_step_objective(q: FloatArray, p: FloatArray, mu: float) -> FloatArray:
    """The objective of the E-step (9), KL(q || p) + mu E_q[-ln p(y)], row by row."""
    return np.asarray(np.sum(rel_entr(q, p) - mu * q * np.log(p), axis=1))


def check_soft_label_form(setting: ClaimData) -> ClaimResult:
    """Compare the solution of (9), by CVXPY, with (10)."""
    rng = setting.random(6)
    drawn = rng.choice(len(setting.unlabeled), min(COUNT // 2, len(setting.unlabeled)), False)
    s = scores(setting.unlabeled[drawn], setting.metric, setting.threshold)
    similar = np.concatenate([posterior(1.0, s), rng.random(COUNT - len(s))])
    similar = np.clip(similar, 1e-4, 1.0 - 1e-4)
    p = np.column_stack([similar, 1.0 - similar])
    distances, excesses, numbers = [], [], {}
    for mu in (setting.mu, 0.1, 1.0, 4.0):
        q = _solve(p, mu)
        closed = closed_form(p, mu)
        distances.append(relative(q - closed, 1.0))
        excess = e_step_objective(closed, p, mu) - e_step_objective(q, p, mu)
        excesses.append(float(np.max(excess)))
        numbers[f"largest difference of q, mu = {mu:.3g}"] = distances[-1]
    own = e_step(setting.pairs, setting.metric, setting.mu, setting.threshold)[drawn]
    rows = np.column_stack([posterior(1.0, s), posterior(-1.0, s)])
    by_paper = closed_form(np.maximum(rows, 1e-300), setting.mu)[:, 0]
    return ClaimResult(
        CLAIM,
        [
            Check("q against the closed form", max(distances), 1e-4),
            Check("(9) at the closed form above (9) at the solver's q", max(excesses), 1e-8),
            Check("the package's E-step against (10)", relative(own - by_paper, 1.0), 1e-9),
        ],
        numbers={"posteriors": len(p), **numbers},
    )


def _solve(p: FloatArray, mu: float) -> FloatArray:
    """Solve (9) for every row of p, as one CVXPY problem; the rows of q are normalized."""
    q = cp.Variable(p.shape, nonneg=True)
    goal = cp.sum(cp.rel_entr(q, p)) - mu * cp.sum(cp.multiply(q, np.log(p)))
    solve_conic(cp.Problem(cp.Minimize(goal), [cp.sum(q, axis=1) == 1]))
    chosen = np.maximum(np.asarray(q.value), 0.0)
    return np.asarray(chosen / np.sum(chosen, axis=1, keepdims=True))
