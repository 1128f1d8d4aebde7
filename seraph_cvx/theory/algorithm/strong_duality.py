"""Claim 11: strong duality of the M-step, and the maximum-entropy reading of its dual."""

from __future__ import annotations

import numpy as np

from ...certificate import certify
from ...m_step.statement import build_statement
from ...numerics.checks import FloatArray
from ...numerics.psd_cone import symmetrize
from ..claim import Check, Claim, ClaimResult
from ..claim_data import ClaimData, posterior, relative, scores, solve_conic

CLAIM = Claim(
    number=11,
    name="The M-step is dual to a maximum-entropy problem",
    place="(11), in the spirit of Theorem 1; the dual is derived here",
    statement="The optimum of (11) is the largest entropy of posteriors whose moments dominate "
    "those of the labels, and the metric is the multiplier of that matrix inequality.",
    formula=r"\min_{A \succeq 0} -\mathcal{F}(A) = \max_{p \in [0,1]^N} \sum_{k} c_k H(p_k) - \eta"
    r" \sum_{k} (c_k p_k - b_k) , \quad \sum_{k} (c_k p_k - b_k) v_k v_k^\top + \lambda I"
    r" \succeq 0",
    evidence="At the certified metric: the dual value and matrix of p = sigma(s), pair by pair; "
    "complementary slackness; weak duality at random feasible p; and the dual solved by CVXPY on "
    "some of the points, its value, p and multiplier against the primal's.",
)


def label_weights(setting: ClaimData) -> tuple[FloatArray, FloatArray]:
    """The weights c_k and b_k of every pair, the labeled ones first."""
    n_unlabeled = setting.pairs.n_unlabeled
    c = np.concatenate([np.ones(setting.pairs.n_labeled), np.full(n_unlabeled, setting.mu)])
    b = np.concatenate([setting.labels < 0.0, setting.mu * (1.0 - setting.soft_labels)])
    return c, b


def dual_value(setting: ClaimData, p: FloatArray) -> float:
    """The dual value D(p) = sum_k c_k H(p_k) - eta (sum_k c_k p_k - beta)."""
    c, b = label_weights(setting)
    p = np.clip(p, 1e-300, 1.0 - 1e-16)
    entropy = -p * np.log(p) - (1.0 - p) * np.log1p(-p)
    return float(np.sum(c * entropy) - setting.threshold * np.sum(c * p - b))


def dual_matrix(setting: ClaimData, p: FloatArray) -> FloatArray:
    """The matrix M(p) = sum_k (c_k p_k - b_k) v_k v_k' + lambda I of the dual constraint."""
    c, b = label_weights(setting)
    V = np.vstack([setting.labeled, setting.unlabeled])
    matrix = (V * (c * p - b)[:, None]).T @ V
    return symmetrize(matrix + setting.trace_weight * np.eye(V.shape[1]))


def check_strong_duality(setting: ClaimData) -> ClaimResult:
    """Check strong duality: min -F = max D, at p = sigma(s(A*)), with <M(p), A*> = 0."""
    A = setting.metric
    value = setting.m_step.value(A)
    p = _far_posteriors(setting, A)
    M = dual_matrix(setting, p)
    size = float(np.linalg.norm(dual_matrix(setting, np.ones_like(p)), 2))
    trace = max(float(np.trace(A)), 1e-300)
    certificate = certify(setting.m_step, A)
    few = setting.few
    statement = build_statement(few.m_step, "dual")
    solver_status = solve_conic(statement.problem)
    multiplier = symmetrize(np.asarray(statement.metric))
    conic_p = np.concatenate([variable.value for variable in statement.problem.variables()])
    bound = certify(few.m_step, few.metric).dual_value
    few_value = few.m_step.value(few.metric)
    return ClaimResult(
        CLAIM,
        [
            Check("f(A*) - D(sigma(s))", relative(value - dual_value(setting, p), value), 1e-5),
            Check("the certified gap", certificate.relative_gap, 1e-6),
            Check("M(p) not PSD", max(0.0, -float(np.linalg.eigvalsh(M)[0])) / size, 1e-5),
            Check("<M(p), A*>", abs(float(np.vdot(M, A))) / max(1.0, abs(value)), 1e-5),
            Check("weak duality at random p, excess", _excess(setting, p, value), 1e-9),
            Check(
                "CVXPY's dual optimum outside the certified interval",
                max(0.0, bound - few_value, *_outside(statement.problem.value, bound, few_value))
                / max(1.0, abs(few_value)),
                1e-6,
            ),
            Check(
                "its p against sigma(s)",
                relative(conic_p - _far_posteriors(few, few.metric), 1),
                1e-3,
            ),
            Check(
                "its multiplier against the metric",
                float(np.linalg.norm(multiplier - few.metric))
                / max(float(np.linalg.norm(few.metric)), few.unit),
                1e-3,
            ),
        ],
        numbers={
            "f(A*)": value,
            "D(p*)": dual_value(setting, p),
            "certified relative gap": certificate.relative_gap,
            "smallest eigenvalue of M(p*)": float(np.linalg.eigvalsh(M)[0]),
            "<M(p*), A*> / tr(A*)": float(np.vdot(M, A)) / trace,
            "entropy of p*, nats": dual_value(setting, p)
            + setting.threshold * float(np.sum(np.subtract(*_totals(setting, p)))),
            "Clarabel on the dual of some points": solver_status,
        },
    )


def _far_posteriors(setting: ClaimData, A: FloatArray) -> FloatArray:
    """The posterior p_k = p(-1) of every pair, the labeled ones first."""
    V = np.vstack([setting.labeled, setting.unlabeled])
    return posterior(-1.0, scores(V, A, setting.threshold))


def _totals(setting: ClaimData, p: FloatArray) -> tuple[float, float]:
    c, b = label_weights(setting)
    return float(np.sum(c * p)), float(np.sum(b))


def _outside(value: float, lower: float, upper: float) -> tuple[float, float]:
    return lower - value, value - upper


def _excess(setting: ClaimData, optimal: FloatArray, value: float) -> float:
    """The largest D(p) - f(A*) over random p, each moved toward b/c until M(p) is PSD."""
    rng, worst = setting.random(11), 0.0
    c, b = label_weights(setting)
    for mix in np.linspace(0.0, 1.0, 8):
        p = mix * optimal + (1.0 - mix) * rng.random(len(c))
        while np.linalg.eigvalsh(dual_matrix(setting, p))[0] < 0.0:
            p = 0.7 * p + 0.3 * b / c
            if relative(p - b / c, 1.0) < 1e-9:
                p = b / c
                break
        worst = max(worst, (dual_value(setting, p) - value) / max(1.0, abs(value)))
    return worst
