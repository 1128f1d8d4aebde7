"""A proof, in floating point, that a symmetric matrix is positive definite.

No eigenvalue is compared with a tolerance. A Cholesky factor F of B - cI is computed by whatever
means; then B = cI + FF' + E, where E is the residual, and B is positive definite if the norm of E
is below c. The residual is bounded with its own rounding errors.
"""

from __future__ import annotations

import numpy as np

from .checks import FloatArray
from .rounding import FEW_ROUNDINGS, SECOND_ORDER, UNIT, gamma

TRIES = 3
"""How many values of c are tried."""


def is_proven_positive_definite(matrix: FloatArray, error: FloatArray) -> bool:
    """Whether every symmetric B with B >= `matrix` - diag(`error`) is positive definite.

    Parameters
    ----------
    matrix : (k, k) array
        Symmetric, as the doubles it is.
    error : (k,) array
        Nonnegative.

    Returns
    -------
    bool
        True is a proof. False is no verdict.

    Examples
    --------
    >>> B = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> is_proven_positive_definite(B, np.zeros(2)), is_proven_positive_definite(B, np.ones(2))
    (True, False)
    """
    k = len(matrix)
    if not k:
        return True
    left = np.diag(matrix) - error
    if not np.all(np.isfinite(matrix)) or not np.all(left > 0.0):
        return False
    scale = power_of_two_scale(left)
    scaled = matrix * scale[:, None] * scale
    lost = (error * scale) * scale
    if not np.all(np.isfinite(scaled)) or not np.all(np.isfinite(lost)):
        return False
    np.fill_diagonal(scaled, (np.diag(scaled) - lost) - 4.0 * UNIT * (np.diag(scaled) + lost))
    sums = float(np.max(np.sum(np.abs(scaled), axis=1)))
    shift = 4.0 * gamma(k + FEW_ROUNDINGS) * sums
    for _ in range(TRIES):
        missing = _missed_by_cholesky(scaled, -shift)
        if missing is None:
            return False
        if missing < shift:
            return True
        shift = 2.0 * missing
    return False


def dominating_root(matrix: FloatArray, error: FloatArray) -> FloatArray | None:
    """Find S with SS' >= every symmetric G <= `matrix` + diag(`error`), hardly larger; or None.

    Its columns are the eigenvectors of the matrix, scaled to a diagonal near 1.

    Examples
    --------
    >>> S = dominating_root(np.array([[4.0]]), np.zeros(1))
    >>> bool(4.0 <= S[0, 0] ** 2 < 4.0 + 1e-12)
    True
    """
    k = len(matrix)
    diagonal = np.diag(matrix) + error
    if not k or not np.all(np.isfinite(matrix)) or not np.all(diagonal > 0.0):
        return None
    scale = power_of_two_scale(diagonal)
    scaled = matrix * scale[:, None] * scale
    np.fill_diagonal(scaled, diagonal * scale * scale * (1.0 + 4.0 * UNIT))
    eigenvalues, vectors = np.linalg.eigh(scaled)
    shift = 8.0 * gamma(k + FEW_ROUNDINGS) * float(np.max(np.sum(np.abs(scaled), axis=1)))
    for _ in range(TRIES):
        root = np.asarray(vectors * np.sqrt(np.maximum(eigenvalues, 0.0) + shift))
        if _missing(scaled, root, shift) < shift:
            return np.asarray(root / scale[:, None])
        shift *= 4.0
    return None


def power_of_two_scale(diagonal: FloatArray) -> FloatArray:
    """Powers of two s, by which scaling is exact, with s_a^2 diagonal_a in [1/2, 4)."""
    exponents = np.frexp(diagonal)[1]
    return np.asarray(np.ldexp(1.0, -(exponents // 2)))


def _missed_by_cholesky(scaled: FloatArray, shift: float) -> float | None:
    """Bound the norm of the error of the Cholesky factorisation of scaled + shift*I."""
    shifted = scaled.copy()
    np.fill_diagonal(shifted, np.diag(scaled) + shift)
    try:
        F = np.linalg.cholesky(shifted)
    except np.linalg.LinAlgError:
        return None
    return _missing(scaled, np.asarray(F, dtype=np.float64), shift)


def _missing(scaled: FloatArray, F: FloatArray, shift: float) -> float:
    """Bound the norm of scaled + shift*I - FF', its own rounding included."""
    residual = scaled - F @ F.T
    np.fill_diagonal(residual, np.diag(residual) + shift)
    size = np.abs(F)
    sizes = size @ np.sum(size, axis=0) + np.sum(np.abs(scaled), axis=1) + abs(shift)
    bound = np.sum(np.abs(residual), axis=1) + gamma(len(F) + FEW_ROUNDINGS) * sizes
    return float(np.max(bound)) * SECOND_ORDER
