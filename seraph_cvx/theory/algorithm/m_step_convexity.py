"""Claim 1: the M-step (11) is a convex program."""

from __future__ import annotations

import numpy as np

from ...m_step.explain import explain_convexity
from ...m_step.statement import textbook_statement as statement
from ...numerics.checks import FloatArray
from ...numerics.psd_cone import symmetrize
from ..claim import Check, Claim, ClaimResult
from ..claim_data import ClaimData, labeled_loss, log_posterior, posterior, relative, scores

CLAIM = Claim(
    number=1,
    name="The M-step is convex",
    place="Section 2.4, below (11)",
    statement="Maximizing F over the PSD matrices is a convex program: -F is convex, so that it "
    "has no local optimum that is not global.",
    formula=r"-\mathcal{F}(\frac{A+B}{2}) \leq \frac{-\mathcal{F}(A)-\mathcal{F}(B)}{2}"
    r" , \quad \langle D, \nabla^2(-\mathcal{F}) D \rangle = \sum_{k} c_k p_k (1-p_k)"
    r" (v_k^\top D v_k)^2 \geq 0",
    evidence="The DCP proof tree of (11) stated literally in CVXPY; second differences of -F "
    "along random directions, against the formula; the midpoint inequality at random PSD pairs.",
)


def m_step_loss(setting: ClaimData, A: FloatArray) -> float:
    """The M-step's objective -F(A) as the paper prints it in (11)."""
    s, q = scores(setting.unlabeled, A, setting.threshold), setting.soft_labels
    unlabeled = q * log_posterior(1.0, s) + (1.0 - q) * log_posterior(-1.0, s)
    return labeled_loss(setting, A) - setting.mu * float(np.sum(unlabeled))


def curvature(setting: ClaimData, A: FloatArray, D: FloatArray) -> float:
    """The curvature of -F along D, sum_k c_k p_k(+1) p_k(-1) (v'Dv)^2, derived from (11)."""
    total = 0.0
    for weight, V in ((1.0, setting.labeled), (setting.mu, setting.unlabeled)):
        s = scores(V, A, setting.threshold)
        along = scores(V, D, 0.0)
        total += weight * float(np.sum(posterior(1.0, s) * posterior(-1.0, s) * along**2))
    return total


def check_m_step_convexity(setting: ClaimData) -> ClaimResult:
    """Check that -F of (11) is convex: at midpoints, by its curvature and by the rules of DCP."""
    metrics = setting.random_metrics(claim=1, count=24)
    values = [m_step_loss(setting, A) for A in metrics]
    own = [setting.m_step.value(A) for A in metrics]
    excess = [
        m_step_loss(setting, (metrics[k] + metrics[k - 1]) / 2.0) - (values[k] + values[k - 1]) / 2
        for k in range(len(metrics))
    ]
    second, formula = _second_differences(setting, metrics)
    proof = explain_convexity(statement(setting.few.m_step, soft_labels_as_parameters=False))
    unknown = sum(node.curvature == "UNKNOWN" for node in proof.walk())
    steepest = max(float(np.max(formula)), 1e-300)
    return ClaimResult(
        CLAIM,
        [
            Check("nodes of the proof tree that no DCP rule covers", float(unknown), 0.0),
            Check("midpoint inequality, excess", max(0.0, *excess) / max(1.0, *values), 1e-12),
            Check("negative second difference", max(0.0, -min(second)) / steepest, 1e-6),
            Check("second difference against formula", relative(second - formula, formula), 1e-3),
            Check(
                "(11) pair by pair against the package",
                relative(np.subtract(values, own), np.asarray(values)),
                1e-10,
            ),
        ],
        numbers={
            "nodes in the proof tree": sum(1 for _ in proof.walk()),
            "midpoints tried": len(excess),
            "smallest midpoint margin": -max(excess),
            "smallest curvature along a unit move of s": float(min(second)),
            "note": "F itself is concave; its negative is convex",
        },
    )


def _second_differences(
    setting: ClaimData, metrics: list[FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """The second difference of -F along D, which moves scores by 0.02, and its curvature."""
    rng, second, formula = setting.random(101), [], []
    for A in metrics:
        D = symmetrize(rng.normal(size=A.shape))
        both = np.vstack([setting.labeled, setting.unlabeled])
        D *= 0.02 / float(np.sqrt(np.mean(scores(both, D, 0.0) ** 2)))
        ahead, behind = m_step_loss(setting, A + D), m_step_loss(setting, A - D)
        second.append((ahead + behind - 2.0 * m_step_loss(setting, A)) / 0.02**2)
        formula.append(curvature(setting, A, D) / 0.02**2)
    return np.asarray(second), np.asarray(formula)
