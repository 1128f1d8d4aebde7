"""The model (6), with kappa and gamma, solved in its own coordinates: no theorem is used."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.special import entr, expit

from ...numerics.checks import FloatArray
from ...numerics.psd_cone import symmetrize
from ..claim_data import ClaimData, scores, solve_conic

GAMMA = 0.1
ROUNDS, ESCAPES = 8, 12
PRECISE = {"maxiter": 2000, "ftol": 1e-13, "gtol": 1e-7}


def model_loss(
    setting: ClaimData, A: FloatArray, kappa: float, mu: float
) -> tuple[float, FloatArray, float]:
    """The objective -L(A, kappa) of (6), its gradient in A and its derivative in kappa."""
    y, V, U = setting.labels, setting.labeled, setting.unlabeled
    s, u = scores(V, A, setting.threshold), scores(U, A, setting.threshold)
    wrong = expit(-kappa * y * s)  # 1 - p(y), eq. (5)
    p = expit(kappa * u)
    slope = -kappa * u * p * (1.0 - p)  # of H(p) in kappa * u
    value = float(np.sum(np.logaddexp(0.0, -kappa * y * s))) + mu * float(
        np.sum(entr(p) + entr(1.0 - p))
    )
    value += GAMMA / 2.0 * kappa**2 + setting.trace_weight * float(np.trace(A))
    gradient = (V * (-kappa * y * wrong)[:, None]).T @ V
    gradient += mu * kappa * (U * slope[:, None]).T @ U
    gradient += setting.trace_weight * np.eye(len(A))
    rate = float(-np.sum(y * s * wrong) + mu * np.sum(slope * u)) + GAMMA * kappa
    return value, symmetrize(gradient), rate


def solve_at_kappa(setting: ClaimData, kappa: float) -> FloatArray:
    """Minimize (6) over A, with mu = 0 and a fixed kappa, stated in CVXPY in A itself."""
    m, V = setting.pairs.n_features, setting.labeled
    A = cp.Variable((m, m), PSD=True)
    outer = (V[:, :, None] * V[:, None, :]).reshape(len(V), m * m)
    s = outer @ cp.vec(A, order="C") - setting.threshold
    loss = cp.sum(cp.logistic(cp.multiply(-kappa * setting.labels, s)))
    solve_conic(cp.Problem(cp.Minimize(loss + setting.trace_weight * cp.trace(A))))
    return symmetrize(np.asarray(A.value))


def alternate_model(
    setting: ClaimData, A: FloatArray, kappa: float
) -> tuple[FloatArray, float, int]:
    """Minimize (6) with mu > 0 over A and over kappa < 0 in turns, A last."""
    last, rounds = np.inf, 0
    while True:
        rounds += 1
        A, value = _minimize_over_metric(setting, A, kappa)
        if last - value < 1e-7 * abs(value) or rounds == ROUNDS:
            return A, kappa, rounds
        last = value
        kappa = _minimize_over_kappa(setting, A, kappa)


def _minimize_over_metric(
    setting: ClaimData, A: FloatArray, kappa: float
) -> tuple[FloatArray, float]:
    """Find a stationary point of (6) over the cone, by L-BFGS over A = LL' from a full-rank start.

    A factor may lose rank at a point that is not stationary over the cone: there the gradient has
    a negative eigenvalue, and A is moved along its eigenvector.
    """
    m, step = len(A), 1e-3 * max(float(np.trace(A)), setting.unit)
    first = float(np.linalg.norm(model_loss(setting, 0.0 * A, kappa, setting.mu)[1], 2))

    def over_factor(entries: FloatArray) -> tuple[float, FloatArray]:
        factor = entries.reshape(m, m)
        value, gradient, _ = model_loss(setting, factor @ factor.T, kappa, setting.mu)
        return value, 2.0 * (gradient @ factor).ravel()

    A = A + step / m * np.eye(m)
    for _ in range(ESCAPES):
        eigenvalues, vectors = np.linalg.eigh(A)
        L = vectors * np.sqrt(np.maximum(eigenvalues, 0.0))
        found = minimize(over_factor, L.ravel(), jac=True, method="L-BFGS-B", options=PRECISE)
        L = found.x.reshape(m, m)
        A = symmetrize(L @ L.T)
        slopes, directions = np.linalg.eigh(model_loss(setting, A, kappa, setting.mu)[1])
        if slopes[0] > -1e-6 * first:
            break
        A = A + step * np.outer(directions[:, 0], directions[:, 0])
    return symmetrize(L @ L.T), float(found.fun)


def _minimize_over_kappa(setting: ClaimData, A: FloatArray, kappa: float) -> float:
    def value(log_t: float) -> float:
        return model_loss(setting, A, -float(np.exp(log_t)), setting.mu)[0]

    center = np.log(-kappa)
    return -float(
        np.exp(minimize_scalar(value, bounds=(center - 1.0, center + 1.0), method="bounded").x)
    )
