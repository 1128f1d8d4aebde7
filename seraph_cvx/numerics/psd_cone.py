"""The cone of positive semidefinite matrices: symmetrize, project, factor, whiten.

All functions use the symmetric eigendecomposition; none uses the SVD.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy
from numpy.typing import ArrayLike

from .checks import FloatArray, read_only

# Eigenvalues of C, scaled to a unit diagonal, below this are recomputed from the points.
FAINT = 1e-8

# An eigenvalue of minus this, times the size of a matrix with unit diagonal, is rounding.
ROUNDING_EIGENVALUE = 1e-14

# Eigenvalues below this, a spread of 1e-11 of the features', count as zero.
FAINTEST = 1e-22


def symmetrize(A: FloatArray) -> FloatArray:
    """The symmetric part of a matrix, (A + A') / 2."""
    return (A + A.T) / 2.0


def to_unit_size(A: FloatArray) -> tuple[FloatArray, int]:
    """A divided by 2^e, so that its largest entry is between 1/2 and 1, and e."""
    exponent = int(np.frexp(np.max(np.abs(A), initial=0.0))[1])
    return np.ldexp(A, -exponent), exponent


def congruence(T: FloatArray, R: FloatArray) -> FloatArray:
    """The product T'RT of a symmetric R, scaled by powers of two so that nothing underflows."""
    rows = np.frexp(np.max(np.abs(R), axis=1, initial=0.0))[1] // 2
    columns = np.frexp(np.max(np.abs(np.ldexp(T, rows[:, None])), axis=0, initial=0.0))[1]
    scaled = np.ldexp(T, rows[:, None] - columns)
    inner = np.ldexp(R, -(rows[:, None] + rows))
    return np.asarray(np.ldexp(scaled.T @ inner @ scaled, columns[:, None] + columns))


def project(A: FloatArray) -> FloatArray:
    """Project a symmetric matrix onto the PSD cone.

    argmin over B PSD of ||B - A||_F: the negative eigenvalues become zero.
    """
    eigenvalues, vectors = np.linalg.eigh(A)
    if not len(eigenvalues) or eigenvalues[0] >= 0.0:
        return A
    kept = vectors[:, eigenvalues > 0.0] * np.sqrt(eigenvalues[eigenvalues > 0.0])
    return np.asarray(kept @ kept.T)


def factor(A: FloatArray, n_components: int | None = None) -> FloatArray:
    """Factor a metric as A = L'L, so that ||x||_A = ||L x||: the projection of Section 3."""
    if not A.size:
        return A
    eigenvalues, vectors = np.linalg.eigh(symmetrize(A))
    L = (vectors * np.sqrt(np.maximum(eigenvalues, 0.0))).T[::-1]
    return _with_definite_signs(L[:n_components])


def principal_rows(F: FloatArray) -> FloatArray:
    """The rows L of `factor` for the metric FF' = L'L, without making it: orthogonal, by length.

    There is at least one, as there is for the metric zero.
    """
    if not F.size:
        return np.zeros((1, len(F)))
    vectors = np.linalg.eigh(symmetrize(F.T @ F))[1]
    return _with_definite_signs((F @ vectors).T[::-1])


def _with_definite_signs(L: FloatArray) -> FloatArray:
    """Make the largest entry of each row positive: the sign of an eigenvector is arbitrary."""
    signs = np.sign(L[np.arange(len(L)), np.argmax(np.abs(L), axis=1)])
    return np.ascontiguousarray(L * np.where(signs == 0.0, 1.0, signs)[:, None])


def scaled_factor(A: FloatArray) -> FloatArray:
    """Factor A as LL', to rounding, or its PSD part, after scaling to a unit diagonal.

    So scaled, L does not depend on the units of the features. Eigenvalues that are rounding of
    the entries of A and nothing else are left out: their columns of L are zero.
    """
    lengths = np.sqrt(np.maximum(np.diag(A), 0.0))
    scale = np.where(lengths > 0.0, lengths, np.sqrt(np.max(np.abs(A), initial=0.0)) or 1.0)
    L = scale[:, None] * factor(A / scale[:, None] / scale).T
    lengths = np.sum(np.square(L / scale[:, None]), axis=0)
    noise = len(A) * float(np.finfo(np.float64).eps) / 2.0
    return np.where(lengths > noise * np.max(lengths, initial=0.0), L, 0.0)


def shrink(
    A: FloatArray, share: float, moment: FloatArray, toward: FloatArray | None = None
) -> FloatArray:
    """Shrink a metric toward the Euclidean one, or another.

    (1 - share) A + share * <A, C>/<B, C> * B, with the second moment C = `moment` of the points and
    B = `toward`, by default I. The factor gives both metrics the same mean squared distance.
    """
    if not 0.0 <= share <= 1.0:
        raise ValueError(f"identity_share={share:g} is out of range: it must be in [0, 1].")
    B = np.eye(len(A)) if toward is None else toward
    spread = float(np.vdot(B, moment))
    scale = max(0.0, float(np.vdot(A, moment))) / spread if spread > 0.0 else 0.0  # by rounding
    return (1.0 - share) * A + share * scale * B


def has_cholesky_factor(A: FloatArray) -> bool:
    """Whether a Cholesky factorization succeeds: whether A is positive definite, to rounding."""
    try:
        np.linalg.cholesky(A)
    except np.linalg.LinAlgError:
        return False
    return True


def is_clearly_definite(A: FloatArray) -> bool:
    """Whether A, scaled to a unit diagonal, is positive definite by more than rounding."""
    lengths = np.sqrt(np.maximum(np.diag(A), np.finfo(np.float64).tiny))
    noise = 8.0 * len(A) * float(np.finfo(np.float64).eps)
    return has_cholesky_factor(A / lengths[:, None] / lengths - noise * np.eye(len(A)))


def numerical_rank(A: FloatArray, tolerance: float = 1e-8) -> int:
    """The number of eigenvalues above `tolerance` times the largest."""
    eigenvalues = np.linalg.eigvalsh(symmetrize(A))
    return int(np.sum(eigenvalues > tolerance * np.max(eigenvalues, initial=0.0)))


def whiten(
    moment: FloatArray, regularizer: FloatArray, moment_along: Callable[[FloatArray], FloatArray]
) -> FloatArray:
    """Find coordinates z = T'x that do not depend on the data's scale: T'CT = I, C = `moment`.

    Restricting a metric to A = T B T' loses nothing: v'Av is free on the range of C, and among all
    A that agree on it, those of this form have the least <R, A>, R = `regularizer` (T is
    R-orthogonal to the null space of C).
    """
    spread = np.sqrt(np.maximum(np.diag(moment), 0.0))
    moving = spread > 0.0
    frame = np.eye(len(spread)) / np.where(moving, spread, np.max(spread) or 1.0)
    frame, null = frame[:, moving], frame[:, ~moving]
    eigenvalues, vectors = np.linalg.eigh(symmetrize(frame.T @ moment @ frame))
    largest = float(np.max(eigenvalues, initial=0.0))
    directions = frame @ vectors
    clear = eigenvalues > FAINT * largest
    T, faint = directions[:, clear] / np.sqrt(eigenvalues[clear]), directions[:, ~clear]
    if faint.size:
        eigenvalues, vectors = np.linalg.eigh(symmetrize(moment_along(faint)))
        seen = eigenvalues > FAINTEST * largest
        T = np.hstack([T, faint @ (vectors[:, seen] / np.sqrt(eigenvalues[seen]))])
        null = np.hstack([faint @ vectors[:, ~seen], null])
    if null.size and np.any(regularizer):
        T = _orthogonalize(T, moment, regularizer)
    return np.asarray(T)


def _orthogonalize(T: FloatArray, moment: FloatArray, R: FloatArray) -> FloatArray:
    """Make T R-orthogonal to the directions N without spread: T + N W with N'RT = 0.

    Orthonormal in the units of the features: R weighs N as it is, however their scales differ.
    """
    if not T.size:
        return T
    span = moment @ T
    N = np.linalg.qr(span / np.linalg.norm(span, axis=0), mode="complete")[0][:, T.shape[1] :]
    penalties, vectors = np.linalg.eigh(symmetrize(N.T @ R @ N))
    size = float(np.max(np.abs(N).T @ np.abs(R) @ np.abs(N)))
    felt = penalties > 16.0 * len(R) * np.finfo(np.float64).eps * size
    N = N @ vectors[:, felt]
    return np.asarray(T - N @ ((N.T @ R @ T) / penalties[felt][:, None]))


def complete_basis(T: FloatArray, R: FloatArray) -> FloatArray:
    """Complete T to a square matrix by columns N with N'RT = 0 and N'RN = I, nearly."""
    m, k = T.shape
    if k == m:
        return T
    rest = np.linalg.qr(R @ T, mode="complete")[0][:, k:] if k else np.eye(m)
    penalties, vectors = np.linalg.eigh(symmetrize(rest.T @ R @ rest))
    largest = max(float(np.max(np.abs(penalties))), np.finfo(np.float64).tiny)
    felt = penalties > 1e-12 * largest
    return np.hstack([T, rest @ vectors / np.sqrt(np.where(felt, penalties, largest))])


def check_metric(
    A: ArrayLike,
    n_features: int,
    name: str = "A",
    *,
    repair: float = 1e-9,
) -> FloatArray:
    """Check that `A` is symmetric and PSD, and return a read-only copy of its symmetric part.

    The verdict is on A scaled to a unit diagonal, so that it does not depend on the units of the
    features. An eigenvalue that is negative by rounding alone is accepted, and left as it is. One
    down to -`repair` is accepted too, and A is projected; else it is refused.
    """
    matrix = np.array(A, dtype=np.float64)
    if matrix.shape != (n_features, n_features):
        raise ValueError(
            f"{name} has shape {matrix.shape}, but the points have {n_features} features: "
            f"it must be {n_features} x {n_features}."
        )
    if not np.all(np.isfinite(matrix)):
        raise ValueError(f"{name} holds NaN or infinity.")
    lengths = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    if np.any(np.abs(matrix - matrix.T) > 1e-9 * np.maximum(np.outer(lengths, lengths), 1e-300)):
        raise ValueError(f"{name} is not symmetric: pass (A + A') / 2.")
    scale = np.where(lengths > 0.0, lengths, np.sqrt(np.max(np.abs(matrix)) or 1.0))
    scaled = symmetrize(matrix / scale[:, None] / scale)
    if np.max(np.abs(matrix), initial=0.0) > np.finfo(np.float64).max / 2.0:
        raise ValueError(f"{name} is too large, twice its largest entry overflows: divide it.")
    matrix = symmetrize(matrix)
    smallest, rounding = 0.0, ROUNDING_EIGENVALUE * n_features
    if not has_cholesky_factor(scaled + rounding * np.eye(n_features)):
        smallest = float(np.linalg.eigvalsh(scaled)[0])
    if smallest < -max(repair, rounding):
        raise ValueError(
            f"{name} is not positive semidefinite (scaled to a unit diagonal it has the "
            f"eigenvalue {smallest:.3g}): pass seraph_cvx.numerics.psd_cone.project(A)."
        )
    if smallest < -rounding:
        matrix = symmetrize(project(scaled) * scale[:, None] * scale)
    return read_only(matrix)


def symmetric_root(A: FloatArray) -> FloatArray:
    """The symmetric PSD square root A^{1/2}, which turns points as little as possible."""
    eigenvalues, vectors = np.linalg.eigh(symmetrize(A))
    return np.asarray((vectors * np.sqrt(np.maximum(eigenvalues, 0.0))) @ vectors.T)


def inverse_factor(matrix: FloatArray) -> FloatArray | None:
    """An upper triangular T with T' matrix T = I, nearly; None where there is none."""
    try:
        F = np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return None
    T = np.triu(scipy.linalg.solve_triangular(F, np.eye(len(F)), lower=True).T)
    return T if np.all(np.isfinite(T)) else None
