"""The basis in which the M-step is minimized and certified, free of the scale of data and R."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..numerics.checks import FloatArray
from ..numerics.psd_cone import complete_basis, symmetrize
from .moments import PairMoments


@dataclass(frozen=True, eq=False)
class WhitenedBasis:
    """Coordinates in which the second moment and the regularizer are diagonal and add up to I.

    A = Z B Z', where Z'CZ + Z'RZ = I.

    C is the pairs' second moment and R the regularizer. Were only C the identity, R would be huge
    along a direction of little spread, and its rounding errors would drown all the rest.

    Attributes
    ----------
    matrix : (m, r) array
        Z = T V Diag(s), with T' C T = I and V' (T'RT) V diagonal.
    inverse : (r, m) array
        B = inverse A inverse'.
    regularizer : (r, r) array
        Z'RZ.
    n_spread : int
        The columns of Z along which pairs differ. They come first; only where penalties may feel
        all features are there others.
    rotation, scale : (r, r) and (r,) arrays
        V and s.
    """

    matrix: FloatArray
    inverse: FloatArray
    regularizer: FloatArray
    rotation: FloatArray
    scale: FloatArray
    n_spread: int

    @classmethod
    def of(cls, moments: PairMoments, R: FloatArray, spans_all: bool = False) -> WhitenedBasis:
        """Set up the basis for these pairs and this R; with `spans_all` it is square."""
        T = moments.whitening
        V, s = np.eye(T.shape[1]), np.ones(T.shape[1])
        if np.any(R):
            _, V = np.linalg.eigh(symmetrize(T.T @ (R @ T)))
            T = T @ V
            s = 1.0 / np.sqrt(1.0 + np.maximum(np.sum(T * (R @ T), axis=0), 0.0))
        Z = T * s
        inverse = (V.T @ moments.unwhitening) / s[:, None]
        n_spread = Z.shape[1]
        if spans_all and n_spread < len(Z):
            Z = complete_basis(Z, R if np.all(np.diag(R) > 0.0) else np.eye(len(R)))
            inverse = np.asarray(np.linalg.inv(Z))
        return cls(Z, inverse, symmetrize(Z.T @ (R @ Z)), V, s, n_spread)

    def turned(self, matrix: FloatArray) -> FloatArray:
        """Convert a matrix summed in the coordinates T: Diag(s) V' matrix V Diag(s)."""
        V, s = self.rotation, self.scale
        turned = symmetrize(V.T @ matrix @ V) * s[:, None] * s
        return np.asarray(np.pad(turned, (0, self.matrix.shape[1] - self.n_spread)))
