"""Bounds on the logarithm of a determinant, rounding errors included."""

from __future__ import annotations

import numpy as np

from .checks import FloatArray
from .rounding import FEW_ROUNDINGS, FUNCTION_ERROR, SECOND_ORDER, at_least, at_most, gamma


def log_determinant_bounds(matrix: FloatArray, error: FloatArray) -> tuple[float, float] | None:
    """Bound log det B for every symmetric B whose entries differ from `matrix` by up to `error`.

    With a Cholesky factor F of the matrix, B = FF' + E = F (I + X) F', X = F^{-1} E F^{-T}; then
    |log det(I + X)| <= k |X| / (1 - |X|). F^{-1} is bounded by an approximate inverse W with
    |I - WF| < 1, in rows and in columns. None where that proves nothing: B may be singular.

    Examples
    --------
    >>> low, high = log_determinant_bounds(np.diag([2.0, 0.5]), np.zeros((2, 2)))
    >>> bool(low <= 0.0 <= high), bool(high - low < 1e-12)
    (True, True)
    """
    k = len(matrix)
    try:
        F = np.linalg.cholesky(matrix)
        W = np.linalg.inv(F)
    except np.linalg.LinAlgError:
        return None
    size, reach, of_sum = np.abs(F), np.abs(W), gamma(k + FEW_ROUNDINGS)
    residual = np.abs(matrix - F @ F.T) + of_sum * (size @ size.T + np.abs(matrix)) + error
    off = np.abs(np.eye(k) - W @ F) + of_sum * (reach @ size + np.eye(k))
    inexact = float(max(np.max(np.sum(off, axis=axis)) for axis in (0, 1))) * SECOND_ORDER
    far = float(np.max(np.sum(reach @ residual @ reach.T, axis=1))) * SECOND_ORDER
    if not (inexact < 0.5 and np.isfinite(far)):
        return None
    far = far / (1.0 - inexact) ** 2 * SECOND_ORDER
    if far >= 0.5:
        return None
    moved = k * far / (1.0 - far) * SECOND_ORDER
    logs = 2.0 * np.log(np.diag(F))
    slack = gamma(k + FUNCTION_ERROR + FEW_ROUNDINGS) * float(np.sum(np.abs(logs)))
    total = float(np.sum(logs))
    return at_least(total, -moved, -slack), at_most(total, moved, slack)
