"""Proofs, in floating point, that a symmetric matrix is positive definite; its determinant.

No eigenvalue is compared with a tolerance. A Cholesky factor F of B - cI is computed by whatever
means; then B = cI + FF' + E, where E is the residual, and B is positive definite if the norm of E
is below c. The residual is bounded with its own rounding errors.
"""

from __future__ import annotations

import numpy as np

from .arithmetic import Array
from .rounding import FEW_ROUNDINGS, FUNCTION_ERROR, SECOND_ORDER, UNIT, at_least, at_most, gamma

# How many values of c are tried: each residual says what the next one has to be.
TRIES = 3


def is_proven_positive_definite(matrix: Array, error: Array) -> bool:
    """Whether every symmetric B with B >= `matrix` - diag(`error`) is proven positive definite.

    The (k, k) `matrix` is taken as the doubles it is; False is no verdict.
    """
    k = len(matrix)
    if not k:
        return True
    left = matrix.diagonal() - error
    if not (left > 0.0).all():
        return False
    scale = power_of_two_scale(left)
    scaled = matrix * scale[:, None] * scale
    if not np.isfinite(scaled).all():
        return False
    lost = (error * scale) * scale  # finite, since `error` is below the diagonal
    diagonal = scaled.diagonal()
    np.fill_diagonal(scaled, (diagonal - lost) - 4.0 * UNIT * (diagonal + lost))
    sums = np.abs(scaled).sum(axis=1)
    shift = 4.0 * gamma(k + FEW_ROUNDINGS) * float(sums.max())
    for _ in range(TRIES):
        F, residual = _shifted_cholesky(scaled, sums, -shift)
        if F is None:
            return False
        if residual < shift:
            return True
        shift = 2.0 * residual
    return False


def dominating_root(matrix: Array, error: Array) -> Array | None:
    """Find S with SS' >= every symmetric G <= `matrix` + diag(`error`), hardly larger; or None.

    It is the Cholesky factor of the matrix, scaled to a diagonal near 1 and shifted by rounding.
    """
    k = len(matrix)
    diagonal = np.diag(matrix) + error
    if not k or not np.all(np.isfinite(matrix)) or not np.all(diagonal > 0.0):
        return None
    scale = power_of_two_scale(diagonal)
    scaled = matrix * scale[:, None] * scale
    np.fill_diagonal(scaled, diagonal * scale * scale * (1.0 + 4.0 * UNIT))
    sums = np.abs(scaled).sum(axis=1)
    shift = 8.0 * gamma(k + FEW_ROUNDINGS) * float(sums.max())
    for _ in range(TRIES):
        root, residual = _shifted_cholesky(scaled, sums, shift)
        if root is not None and residual < shift:
            return root / scale[:, None]
        shift *= 4.0
    return None


def power_of_two_scale(diagonal: Array) -> Array:
    """Powers of two s, by which scaling is exact, with s_a^2 diagonal_a in [1/2, 4)."""
    exponents = np.frexp(diagonal)[1]
    return np.asarray(np.ldexp(1.0, -(exponents // 2)))


def _shifted_cholesky(scaled: Array, sums: Array, shift: float) -> tuple[Array | None, float]:
    """The Cholesky factor F of B = scaled + shift*I, if any, and a bound on the norm of B - FF'.

    `sums` are the sums of the sizes in each row of `scaled`; the bound has its own rounding.
    """
    shifted = scaled.copy()
    np.fill_diagonal(shifted, scaled.diagonal() + shift)
    try:
        F = np.asarray(np.linalg.cholesky(shifted), dtype=np.float64)
    except np.linalg.LinAlgError:
        return None, np.inf
    residual = scaled - F @ F.T
    np.fill_diagonal(residual, residual.diagonal() + shift)
    size = np.abs(F)
    sizes = size @ size.sum(axis=0) + sums + abs(shift)
    bound = np.abs(residual).sum(axis=1) + gamma(len(F) + FEW_ROUNDINGS) * sizes
    return F, float(bound.max()) * SECOND_ORDER


def log_determinant_bounds(matrix: Array, error: Array) -> tuple[float, float] | None:
    """Bound log det B for every symmetric B whose entries differ from `matrix` by up to `error`.

    None where nothing is proven: B may be singular.
    """
    # With a Cholesky factor F of the matrix, B = FF' + E = F (I + X) F', X = F^{-1} E F^{-T}; then
    # |log det(I + X)| <= k |X| / (1 - |X|). F^{-1} is bounded by an approximate inverse W with
    # |I - WF| < 1, in rows and in columns.
    k = len(matrix)
    try:
        F = np.linalg.cholesky(matrix)
        W = np.linalg.inv(F)
    except np.linalg.LinAlgError:
        return None
    F_size, W_size, of_sum = np.abs(F), np.abs(W), gamma(k + FEW_ROUNDINGS)
    residual = np.abs(matrix - F @ F.T) + of_sum * (F_size @ F_size.T + np.abs(matrix)) + error
    inexact = np.abs(np.eye(k) - W @ F) + of_sum * (W_size @ F_size + np.eye(k))
    norm = float(max(np.max(np.sum(inexact, axis=axis)) for axis in (0, 1))) * SECOND_ORDER
    X_norm = float(np.max(np.sum(W_size @ residual @ W_size.T, axis=1))) * SECOND_ORDER
    if not (norm < 0.5 and np.isfinite(X_norm)):
        return None
    X_norm = X_norm / (1.0 - norm) ** 2 * SECOND_ORDER
    if X_norm >= 0.5:
        return None
    logs = 2.0 * np.log(np.diag(F))
    slack = gamma(k + FUNCTION_ERROR + FEW_ROUNDINGS) * float(np.sum(np.abs(logs)))
    total, change = float(np.sum(logs)), k * X_norm / (1.0 - X_norm) * SECOND_ORDER
    return at_least(total, -change, -slack), at_most(total, change, slack)
