"""Claim 7: Theorem 4, the Lipschitz constant (12) of the M-step."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from ...display.chart import Chart, Curve
from ...numerics.checks import FloatArray
from ...pairs.pair_set import PairSet
from ..claim import Check, Claim, ClaimResult
from ..claim_data import ClaimData, posterior, scores
from .printed_gradient import printed_gradient

CLAIM = Claim(
    number=7,
    name="Theorem 4: the gradient is bounded",
    place="Theorem 4, (12)",
    statement="F is Lipschitz in the Frobenius norm with the constant (12), whatever the size of "
    "A; lambda sqrt(m) already suffices instead of lambda m.",
    formula=r"\sup_{A \succeq 0} \|\nabla \mathcal{F}(A)\|_F \leq (\#\mathcal{S} + \#\mathcal{D} +"
    r" \mu \#\mathcal{U}) \operatorname{diam}(\mathcal{X})^2 + \lambda \sqrt{m} \leq \dots +"
    r" \lambda m",
    evidence="The norm of the printed gradient maximized over factors of A by L-BFGS from many "
    "starts; over metrics of every scale; difference quotients of F; and two points in R^4 with "
    "lambda = 100, where the constant with sqrt(m) is nearly reached.",
)


def printed_bound(setting: ClaimData) -> float:
    """The paper's bound (12): (#S + #D + mu #U) diam^2 + lambda m."""
    return _data_term(setting) + setting.trace_weight * setting.pairs.n_features


def tighter_bound(setting: ClaimData) -> float:
    """The bound (12) with lambda sqrt(m) = ||lambda I||_F instead of lambda m."""
    return _data_term(setting) + setting.trace_weight * float(np.sqrt(setting.pairs.n_features))


def largest_gradient(setting: ClaimData, starts: list[FloatArray]) -> tuple[float, FloatArray]:
    """Maximize ||grad F(A)||_F over PSD A by L-BFGS over A = LL', from each start."""
    m = setting.pairs.n_features

    def minus_half_square(entries: FloatArray) -> tuple[float, FloatArray]:
        L = entries.reshape(m, m)
        gradient = printed_gradient(setting, L @ L.T)
        slope = _hessian_times(setting, L @ L.T, gradient)
        return -0.5 * float(np.sum(gradient**2)), -2.0 * (slope @ L).ravel()

    best, where = 0.0, np.zeros((m, m))
    for start in starts:
        eigenvalues, vectors = np.linalg.eigh(start)
        L = vectors * np.sqrt(np.maximum(eigenvalues, 0.0))
        found = minimize(
            minus_half_square, L.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 40}
        )
        if np.sqrt(-2.0 * found.fun) > best:
            L = found.x.reshape(m, m)
            best, where = float(np.sqrt(-2.0 * found.fun)), L @ L.T
    return best, where


def check_lipschitz(setting: ClaimData) -> ClaimResult:
    """Compare the largest ||grad F||_F with (12), and with (12) with lambda sqrt(m)."""
    m = setting.pairs.n_features
    size = max(float(np.trace(setting.metric)), setting.unit)
    starts = [
        1e-6 * setting.unit * np.eye(m),
        setting.metric,
        *setting.random_metrics(claim=7, count=3),
    ]
    largest, where = largest_gradient(setting, starts)
    scales = np.geomspace(1e-3, 1e4, 15)
    norms = [float(np.linalg.norm(printed_gradient(setting, t * setting.metric))) for t in scales]
    largest = max(largest, *norms)
    quotient = _largest_quotient(setting)
    printed, tighter = printed_bound(setting), tighter_bound(setting)
    corner = _two_points()
    reached = float(np.linalg.norm(printed_gradient(corner, np.eye(4) * 1e4)))
    share = reached / tighter_bound(corner)
    return ClaimResult(
        CLAIM,
        [
            Check("largest gradient above (12)", max(0.0, largest / printed - 1.0), 0.0),
            Check("largest gradient above the tighter one", max(0.0, largest / tighter - 1.0), 0.0),
            Check("difference quotient above it", max(0.0, quotient / tighter - 1.0), 1e-12),
            Check("tighter above (12)", max(0.0, tighter / printed - 1.0), 0.0),
            Check(
                "the package's constant", abs(setting.m_step.lipschitz_bound / tighter - 1), 1e-9
            ),
            Check("two points: gradient above the tighter one", max(0.0, share - 1.0), 0.0),
            Check("two points: share of it that is not reached", max(0.0, 1.0 - share), 0.05),
        ],
        numbers={
            "largest gradient norm found": largest,
            "found at trace": float(np.trace(where)),
            "(12)": printed,
            "(12) with sqrt(m)": tighter,
            "(12) is loose by a factor of": printed / largest,
            "two points, gradient": reached,
            "two points, (12)": printed_bound(corner),
            "two points, with sqrt(m)": tighter_bound(corner),
        },
        charts=[
            Chart(
                "The gradient stays below (12), whatever the scale of A",
                "tr(A)",
                "norm of the gradient",
                [
                    Curve("gradient", list(scales * size), norms),
                    Curve("(12)", list(scales * size), [printed] * len(scales)),
                ],
                log_x=True,
                log_y=True,
            )
        ],
    )


def _data_term(setting: ClaimData) -> float:
    V = np.vstack([setting.labeled, setting.unlabeled])
    total = setting.pairs.n_labeled + setting.mu * setting.pairs.n_unlabeled
    return total * float(np.max(np.sum(V**2, axis=1)))


def _two_points() -> ClaimData:
    """Make two similar points of R^4, close to each other, with lambda = 100."""
    pairs = PairSet.from_constraints([[0.0] * 4, [1.0] + [0.0] * 3], [(0, 1)], [])
    return ClaimData("two points", pairs, trace_weight=100.0)


def _hessian_times(setting: ClaimData, A: FloatArray, D: FloatArray) -> FloatArray:
    """Apply the Hessian of F to D: -sum_k c_k p(+1) p(-1) (v'Dv) v v'."""
    total = np.zeros_like(A)
    for weight, V in ((1.0, setting.labeled), (setting.mu, setting.unlabeled)):
        s = scores(V, A, setting.threshold)
        w = posterior(1.0, s) * posterior(-1.0, s) * scores(V, D, 0.0)
        total -= weight * (V * w[:, None]).T @ V
    return total


def _largest_quotient(setting: ClaimData) -> float:
    """The largest |F(A) - F(B)| / ||A - B||_F over random PSD matrices A and B."""
    metrics = setting.random_metrics(claim=107, count=16)
    values = [setting.m_step.value(A) for A in metrics]
    return max(
        abs(values[k] - values[k - 1]) / float(np.linalg.norm(metrics[k] - metrics[k - 1]))
        for k in range(len(metrics))
    )
