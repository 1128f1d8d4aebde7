"""Claim 2: the gradient printed under (11)."""

from __future__ import annotations

import numpy as np

from ...m_step.statement import textbook_statement
from ...numerics.checks import FloatArray
from ...numerics.psd_cone import symmetrize
from ..claim import Check, Claim, ClaimResult
from ..claim_data import ClaimData, posterior, relative, scores
from .m_step_convexity import m_step_loss

CLAIM = Claim(
    number=2,
    name="The printed gradient of (11)",
    place="Section 2.4, below (11)",
    statement="The gradient of F is the weighted sum of outer products that is printed.",
    formula=r"\nabla \mathcal{F}(A) = -\sum_{\mathcal{S} \cup \mathcal{D}} y_{ij}"
    r"(1-p_{ij}^A(y_{ij})) x_{ij} - \mu \sum_{\mathcal{U}} \sum_{y} y q_{ij}(y)"
    r"(1-p_{ij}^A(y)) x_{ij} - \lambda I_m",
    evidence="Central differences of (11) along random directions; automatic differentiation of "
    "the CVXPY expression of (11); the package's own gradient.",
)


def printed_gradient(setting: ClaimData, A: FloatArray) -> FloatArray:
    """The gradient of F, as printed under (11)."""
    s = scores(setting.labeled, A, setting.threshold)
    y = setting.labels
    gradient = -_outer_sum(y * (1.0 - posterior(y, s)), setting.labeled)
    s = scores(setting.unlabeled, A, setting.threshold)
    for label, q in ((1.0, setting.soft_labels), (-1.0, 1.0 - setting.soft_labels)):
        weights = label * q * (1.0 - posterior(label, s))
        gradient -= setting.mu * _outer_sum(weights, setting.unlabeled)
    return np.asarray(gradient - setting.trace_weight * np.eye(len(A)))


def check_printed_gradient(setting: ClaimData) -> ClaimResult:
    """Compare the gradient printed under (11) with derivatives of F along directions D."""
    metrics = setting.random_metrics(claim=2, count=4)
    gradients = [printed_gradient(setting, A) for A in metrics]
    rng, slopes, expected = setting.random(102), [], []
    for A, gradient in zip(metrics, gradients, strict=True):
        for _ in range(6):
            D = symmetrize(rng.normal(size=A.shape))
            D *= 2e-4 / float(np.sqrt(np.mean(scores(setting.unlabeled, D, 0.0) ** 2)))
            rise = m_step_loss(setting, A + D) - m_step_loss(setting, A - D)
            slopes.append(-rise / 4e-4)
            expected.append(float(np.vdot(gradient, D)) / 2e-4)
    own = [setting.m_step.gradient(A) for A in metrics]
    by_cvxpy = automatic_gradient(setting, metrics[0])
    size = np.asarray(gradients[0])
    return ClaimResult(
        CLAIM,
        [
            Check(
                "central differences",
                relative(np.subtract(slopes, expected), np.asarray(slopes)),
                1e-6,
            ),
            Check("automatic differences", relative(by_cvxpy - gradients[0], size), 1e-9),
            Check("the package's gradient", relative(own[0] + gradients[0], size), 1e-10),
        ],
        numbers={
            "directions tried": len(slopes),
            "norm of the gradient": float(np.linalg.norm(gradients[0])),
            "largest entry that differs from CVXPY's": float(
                np.max(np.abs(by_cvxpy - gradients[0]))
            ),
        },
    )


def automatic_gradient(setting: ClaimData, A: FloatArray) -> FloatArray:
    """Differentiate F by CVXPY's own chain rule, through (11) as the paper prints it."""
    problem = textbook_statement(setting.m_step, soft_labels_as_parameters=False)
    (variable,) = problem.variables()
    variable.value = A
    entries = problem.objective.args[0].grad[variable]
    if A.size > 1:  # CVXPY gives a number for one entry, a sparse column for more
        entries = entries.toarray()
    full = np.reshape(np.asarray(entries), A.shape, order="F")
    return -symmetrize(full)  # the statement reads the upper triangle alone


def _outer_sum(weights: FloatArray, V: FloatArray) -> FloatArray:
    """The weighted sum of outer products, sum_k w_k v_k v_k'."""
    return np.asarray((V * weights[:, None]).T @ V)
