"""The metrics in which points are corrected: forms on the rows of a program, block by block.

They guide corrections and prove nothing. That of a PSD block of order n is a product of matrices of
order n, V -> TVT; it is never an array of n(n+1)/2 rows and columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from .arithmetic import Array
from .gram import DENSE_ORDER, SaddleSolver, inner_products, is_small, saddle_solver

MOST_TERMS = 100
"""Sums of more variables, if they are few, would fill a large A'WA, and are unknowns instead."""


@dataclass(frozen=True, eq=False)
class PsdMap:
    """The map V -> TVT of symmetric matrices, from the coordinates of K to those of K*.

    Row r of the block is the entry (i_r, j_r).
    """

    rows: Array
    T: Array
    i: Array
    j: Array

    def times(self, v: Array) -> Array:
        """The image of a vector."""
        V = np.empty(self.T.shape)
        V[self.i, self.j] = V[self.j, self.i] = v
        return self._vector(self.T @ V @ self.T, slice(None))

    def _vector(self, matrix: Array, used: Any) -> Array:
        i, j = self.i[used], self.j[used]
        return np.asarray(matrix[i, j] * np.where(i == j, 1.0, 2.0))

    def gram(self, A: Any) -> Array:
        """The inner products of the columns of A, as sparse as they are, in this metric."""
        # The entry (c, d) of TVT is the sum of V_ab T_ca T_bd over the entries of V, which are few,
        # or else TVT is made by products of matrices.
        A, n, side = scipy.sparse.csc_array(A), A.shape[1], len(self.T)
        used = np.unique(A.indices)
        part, G = A.tocsr()[used].T.tocsr(), np.zeros((n, n))
        c, d = self.i[used], self.j[used]
        for k in range(n):
            span = slice(A.indptr[k], A.indptr[k + 1])
            a, b, v = self.i[A.indices[span]], self.j[A.indices[span]], A.data[span]
            among = np.union1d(a, b)
            if len(v) * len(used) < len(among) * side * side:
                near, far = self.T[:, a], self.T[:, b]
                image = near[c] * far[d] + far[c] * near[d]
                image = (image @ (v * np.where(a == b, 0.5, 1.0))) * np.where(c == d, 1.0, 2.0)
            else:
                first, second = np.searchsorted(among, a), np.searchsorted(among, b)
                V = np.zeros((len(among), len(among)))
                V[first, second] = V[second, first] = v
                image = self._vector(self.T[:, among] @ (V @ self.T[among]), used)
            G[:, k] = part @ image
        return 0.5 * (G + G.T)


@dataclass(frozen=True, eq=False)
class Metric:
    """A positive semidefinite form on the rows of a program: W = BB' + D + ZZ' + maps.

    The root B has the small blocks; D, a diagonal that may be negative, and Z large second-order
    cones; the maps are of large PSD blocks.
    """

    B: Any
    maps: tuple[PsdMap, ...]
    D: Array
    Z: Any

    def solver(self, A: Any, zero: Array, Q: Any = None) -> SaddleSolver | None:
        """Minimize |Ad - f|^2 / 2 + d'Qd / 2 - g'd, with Ad = f in the rows `zero`, given (g, f).

        Returned are d and the multipliers: W(Ad - f), and in the rows `zero` those of Ad = f.
        Unknowns as well are Z'(Ad - f) and, of B'(Ad - f), what is a sum of many variables; with a
        Q all of it, since A'WA alone loses what Q decides.
        """
        B, S, is_dense = self.B, self.Z, is_small(A)
        A = A.toarray() if is_dense else A.tocsr()
        N = B.T @ A if is_dense else scipy.sparse.csr_array(B.T @ A)
        counts = np.asarray((N != 0).sum(axis=1)).reshape(-1)
        is_long = counts > MOST_TERMS
        if 20 * is_long.sum() > N.shape[1] or N.shape[1] <= DENSE_ORDER:
            is_long[:] = False
        if Q is not None and not self.maps:
            is_long = counts > 0
        M = A.T @ (A * self.D[:, None])
        if Q is not None:
            M = M + (Q.toarray() if is_dense else Q)
        short = N[~is_long]
        if counts[~is_long].any():
            M = inner_products(short, short) + M
        for block in self.maps:
            M = block.gram(A[block.rows]) + M
        if is_long.any():
            S, B = scipy.sparse.hstack([B[:, is_long], S], format="csc"), B[:, ~is_long]
        S, k = S.toarray() if is_dense else S, S.shape[1]
        stacked = np.vstack if is_dense else scipy.sparse.vstack
        inner = saddle_solver(M, stacked([S.T @ A, A[zero]]), k)
        if inner is None:
            return None

        def rest(v: Array) -> Array:
            """The product of W, less SS', with a vector."""
            product = np.asarray(self.D * v + B @ (B.T @ v))
            for block in self.maps:
                product[block.rows] = block.times(v[block.rows])
            return product

        def solve(g: Array, f: Array) -> tuple[Array, Array]:
            d, others = inner(g + A.T @ rest(f), np.concatenate([S.T @ f, f[zero]]))
            product = rest(A @ d - f) + S @ others[:k]
            product[zero] = others[k:]
            return d, product

        return solve
