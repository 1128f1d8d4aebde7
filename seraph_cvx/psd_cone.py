"""The cone of positive semidefinite matrices: symmetrise, project, factor, whiten.

Everything here uses the symmetric eigendecomposition; none uses the SVD.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .pairs import FloatArray

RANK_TOLERANCE = 1e-12
"""An eigenvalue below this times the largest, after scaling the diagonal to 1, counts as zero."""


def symmetrise(A: FloatArray) -> FloatArray:
    """(A + A') / 2.

    Examples
    --------
    >>> symmetrise(np.array([[1.0, 2.0], [0.0, 1.0]]))
    array([[1., 1.],
           [1., 1.]])
    """
    return np.asarray((A + A.T) / 2.0)


def project(A: FloatArray) -> FloatArray:
    """argmin over B PSD of ||B - A||_F: the negative eigenvalues become zero.

    Examples
    --------
    >>> project(np.diag([2.0, -1.0]))
    array([[2., 0.],
           [0., 0.]])
    """
    eigenvalues, vectors = np.linalg.eigh(A)
    if not len(eigenvalues) or eigenvalues[0] >= 0.0:
        return np.asarray(A)
    kept = vectors[:, eigenvalues > 0.0] * np.sqrt(eigenvalues[eigenvalues > 0.0])
    return np.asarray(kept @ kept.T)


def factor(A: FloatArray, n_components: int | None = None) -> FloatArray:
    """L with A = L'L, so that ||x||_A = ||L x||: the projection of Section 3, widest axis first.

    Parameters
    ----------
    A : (m, m) PSD array
    n_components : int, optional
        Keep only this many rows, those of the largest eigenvalues; by default all m.

    Examples
    --------
    >>> L = factor(np.diag([4.0, 9.0]))
    >>> np.allclose(L.T @ L, np.diag([4.0, 9.0]))
    True
    """
    eigenvalues, vectors = np.linalg.eigh(symmetrise(A))
    L = (vectors * np.sqrt(np.maximum(eigenvalues, 0.0))).T[::-1]
    signs = np.sign(L[np.arange(len(L)), np.argmax(np.abs(L), axis=1)])
    L = (
        L * np.where(signs == 0.0, 1.0, signs)[:, None]
    )  # an eigenvector's sign is arbitrary: fix it
    return np.ascontiguousarray(L[:n_components])


def numerical_rank(A: FloatArray, tolerance: float = 1e-8) -> int:
    """The number of eigenvalues above `tolerance` times the largest.

    Examples
    --------
    >>> numerical_rank(np.diag([1.0, 1e-12]))
    1
    """
    eigenvalues = np.linalg.eigvalsh(symmetrise(A))
    return int(np.sum(eigenvalues > tolerance * max(eigenvalues[-1], 0.0)))


def whiten(moment: FloatArray, regulariser: FloatArray) -> FloatArray:
    """T with T' C T = I on the range of C = `moment`: coordinates z = T'x free of the data's scale.

    Restricting a metric to A = T B T' loses nothing: v'Av is free on the range of C, and among all
    A that agree there, those of this form have the least <R, A>, R = `regulariser` (T is
    R-orthogonal to the null space of C).

    Examples
    --------
    >>> T = whiten(np.diag([4.0, 0.0]), np.eye(2))
    >>> T.T @ np.diag([4.0, 0.0]) @ T
    array([[1.]])
    """
    spread = np.sqrt(np.maximum(np.diag(moment), 0.0))
    scale = 1.0 / np.where(spread > 0.0, spread, 1.0)
    eigenvalues, vectors = np.linalg.eigh(moment * scale[:, None] * scale)
    in_range = eigenvalues > RANK_TOLERANCE * eigenvalues[-1]
    axes = scale[:, None] * vectors
    T = axes[:, in_range] / np.sqrt(eigenvalues[in_range])
    null = axes[:, ~in_range]
    if null.shape[1] and np.any(regulariser):
        weights = np.linalg.lstsq(null.T @ regulariser @ null, null.T @ regulariser @ T, rcond=None)
        T = T - null @ weights[0]
    return np.asarray(T)


def check_metric(A: ArrayLike, n_features: int, name: str = "A") -> FloatArray:
    """`A` as a symmetric PSD matrix, or an error that says what is wrong with it.

    Rounding is forgiven (1e-9 of the largest entry) and removed; more is not.
    """
    matrix = np.array(A, dtype=np.float64)
    if matrix.shape != (n_features, n_features):
        raise ValueError(
            f"{name} has shape {matrix.shape}, but the points have {n_features} features: "
            f"it must be {n_features} x {n_features}."
        )
    if not np.all(np.isfinite(matrix)):
        raise ValueError(f"{name} holds NaN or infinity.")
    slack = 1e-9 * float(np.max(np.abs(matrix), initial=0.0))
    if np.max(np.abs(matrix - matrix.T), initial=0.0) > slack:
        raise ValueError(f"{name} is not symmetric: pass (A + A') / 2.")
    matrix = symmetrise(matrix)
    smallest = float(np.linalg.eigvalsh(matrix)[0])
    if smallest < -slack:
        raise ValueError(
            f"{name} is not positive semidefinite (eigenvalue {smallest:.3g}): "
            "pass seraph_cvx.psd_cone.project(A)."
        )
    return project(matrix)
