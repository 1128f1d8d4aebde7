"""How far a dual point may move and still be proven feasible.

Eigenvalues only choose the step; a verified Cholesky factorization proves it.
"""

from __future__ import annotations

import numpy as np
import scipy

from ..model.dual_coordinates import DualCoordinates
from ..numerics.checks import FloatArray
from ..numerics.rounding import FEW_ROUNDINGS, UNIT, gamma
from ..numerics.verified_psd import is_proven_positive_definite, power_of_two_scale
from .pair_bounds import PairBounds

MARGINS = (1.0, 4.0, 64.0)
"""How much more than the errors a step leaves to the proof, one try each."""


def step_toward_one(coordinates: DualCoordinates, bounds: PairBounds) -> float | None:
    """The largest tau in (0, 1], nearly, with R + N - tau*S(r) proven PSD; None if none is."""
    M, S = coordinates.regularizer + bounds.labels.matrix, bounds.pull
    D = np.diag(M)
    if not np.all(D > 0.0):
        return None
    error = coordinates.regularizer_error(D) + bounds.labels.error.relative_to(D)
    S_error = bounds.pull_error.relative_to(D)
    if is_proven_positive_definite(M - S, (error + S_error) * D):
        return 1.0
    for margin in MARGINS:
        spare = error + margin * _proof_margin(M, S)
        largest = largest_eigenvalue(S + np.diag(S_error * D), M - np.diag(spare * D))
        if largest is None:
            return None
        step = min(1.0, (1.0 - 4.0 * UNIT) / largest) if largest > 0.0 else 1.0
        if step > 0.0 and is_proven_positive_definite(M - step * S, (error + step * S_error) * D):
            return step
    return None


def stretch_of_regularizer(coordinates: DualCoordinates, bounds: PairBounds) -> float | None:
    """The smallest t >= 1, nearly, with t*R + N - S(r) proven PSD; None if none is."""
    R, missing = coordinates.regularizer, bounds.pull - bounds.labels.matrix
    D = np.diag(R)
    if not np.all(D > 0.0):
        return None
    error = bounds.pull_error.relative_to(D) + bounds.labels.error.relative_to(D)
    R_error = coordinates.regularizer_error(D)
    for margin in MARGINS:
        spare = error + margin * _proof_margin(R, missing)
        largest = largest_eigenvalue(missing + np.diag(spare * D), R - np.diag(R_error * D))
        if largest is None:
            return None
        stretch = max(1.0, largest * (1.0 + 4.0 * UNIT))
        if is_proven_positive_definite(stretch * R - missing, (stretch * R_error + error) * D):
            return stretch
    return None


def _proof_margin(M: FloatArray, S: FloatArray) -> float:
    """The share of the diagonal of M that the proof of positive definiteness takes, about."""
    lengths = np.sqrt(np.diag(M))
    sums = np.sum(np.abs(M - S) / lengths, axis=1) / lengths
    return 8.0 * gamma(len(M) + FEW_ROUNDINGS) * float(np.max(sums, initial=1.0))


def largest_eigenvalue(S: FloatArray, M: FloatArray) -> float | None:
    """The largest eigenvalue of the pencil S - t*M; None where M is not positive definite."""
    if not len(S):
        return 0.0
    if not np.all(np.isfinite(S)) or not np.all(np.isfinite(M)) or not np.all(np.diag(M) > 0.0):
        return None
    scale = power_of_two_scale(np.diag(M))
    try:
        F = np.linalg.cholesky(M * scale[:, None] * scale)
    except np.linalg.LinAlgError:
        return None
    turned = scipy.linalg.lapack.dsygst(S * scale[:, None] * scale, F, lower=1)[0]
    return float(np.linalg.eigvalsh(turned, UPLO="L")[-1])
