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
from .gram import SaddleSolver, inner_products, saddle_solver


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
        A, n, side = A.tocsc(), A.shape[1], len(self.T)
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
    """A positive semidefinite form on the rows of a program.

    `small` is a root B, with BB' the form, if `is_root`, and else the form itself, without the
    large PSD blocks, which are maps.
    """

    small: Any
    is_root: bool
    maps: tuple[PsdMap, ...]

    def times(self, v: Array) -> Array:
        """The product with a vector."""
        product = self.small @ (self.small.T @ v if self.is_root else v)
        for block in self.maps:
            product[block.rows] = block.times(v[block.rows])
        return np.asarray(product)

    def gram(self, A: Any) -> Any:
        """The inner products of the columns of A: dense where they are hardly sparse."""
        N = self.small.T @ A
        M = inner_products(N, N if self.is_root else A)
        rows = A.tocsr()
        for block in self.maps:
            M = block.gram(rows[block.rows]) + M
        return np.asarray(M) if self.maps else M

    def solver(self, A: Any, zero: Array, Q: Any = None) -> SaddleSolver | None:
        """Minimize |Ad - f|^2 / 2 + d'Qd / 2 - g'd, with Ad = f in the rows `zero`, given (g, f).

        Returned are d and the multipliers: W(Ad - f), and in the rows `zero` those of Ad = f. For a
        root, W = BB', and a Q these are unknowns as well, since A'WA alone loses what Q decides.
        """
        rows, is_joint = A.tocsr(), Q is not None and self.is_root and not self.maps
        if is_joint:
            N = (self.small.T @ A).tocsr()
            used = np.flatnonzero(np.diff(N.indptr))
            root = self.small[:, used]
            inner = saddle_solver(Q, scipy.sparse.vstack([N[used], rows[zero]]), len(used))
        else:
            M = self.gram(A)
            if Q is not None:
                M = M + (Q if scipy.sparse.issparse(M) else Q.toarray())
            inner = saddle_solver(M, rows[zero])
        if inner is None:
            return None

        def solve(g: Array, f: Array) -> tuple[Array, Array]:
            if is_joint:
                d, rest = inner(g, np.concatenate([root.T @ f, f[zero]]))
                product, rest = root @ rest[: len(used)], rest[len(used) :]
            else:
                d, rest = inner(g + A.T @ self.times(f), f[zero])
                product = self.times(A @ d - f)
            product[zero] = rest
            return d, product

        return solve
