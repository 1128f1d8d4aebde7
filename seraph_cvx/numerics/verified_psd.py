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
        missing = _missed_by_cholesky(scaled, sums, -shift)
        if missing is None:
            return False
        if missing < shift:
            return True
        shift = 2.0 * missing
    return False


def dominating_root(matrix: FloatArray, error: FloatArray) -> FloatArray | None:
    """Find S with SS' >= every symmetric G <= `matrix` + diag(`error`), hardly larger; or None.

    It is the Cholesky factor of the matrix, scaled to a diagonal near 1 and shifted by rounding.

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
    sums = np.abs(scaled).sum(axis=1)
    shift = 8.0 * gamma(k + FEW_ROUNDINGS) * float(sums.max())
    for _ in range(TRIES):
        root = _cholesky_factor(scaled, shift)
        if root is not None and _missing(scaled, sums, root, shift) < shift:
            return np.asarray(root / scale[:, None])
        shift *= 4.0
    return None


def power_of_two_scale(diagonal: FloatArray) -> FloatArray:
    """Powers of two s, by which scaling is exact, with s_a^2 diagonal_a in [1/2, 4)."""
    exponents = np.frexp(diagonal)[1]
    return np.asarray(np.ldexp(1.0, -(exponents // 2)))


def _missed_by_cholesky(scaled: FloatArray, sums: FloatArray, shift: float) -> float | None:
    """Bound the norm of the error of the Cholesky factorization of scaled + shift*I."""
    F = _cholesky_factor(scaled, shift)
    return None if F is None else _missing(scaled, sums, F, shift)


def _cholesky_factor(scaled: FloatArray, shift: float) -> FloatArray | None:
    """The Cholesky factor of scaled + shift*I, or None."""
    shifted = scaled.copy()
    np.fill_diagonal(shifted, scaled.diagonal() + shift)
    try:
        return np.asarray(np.linalg.cholesky(shifted), dtype=np.float64)
    except np.linalg.LinAlgError:
        return None


def _missing(scaled: FloatArray, sums: FloatArray, F: FloatArray, shift: float) -> float:
    """Bound the norm of scaled + shift*I - FF', its own rounding included.

    `sums` are the sums of the sizes in each row of `scaled`.
    """
    residual = scaled - F @ F.T
    np.fill_diagonal(residual, residual.diagonal() + shift)
    size = np.abs(F)
    sizes = size @ size.sum(axis=0) + sums + abs(shift)
    bound = np.abs(residual).sum(axis=1) + gamma(len(F) + FEW_ROUNDINGS) * sizes
    return float(bound.max()) * SECOND_ORDER
