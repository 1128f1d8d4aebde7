"""A proven lower bound on the smallest eigenvalue of N'N + Q, dense or sparse by fill.

N and Q are doubles, scaled by powers of two. Whoever computes the Cholesky factor F of
fl(N'N + Q) - eI, what is left, fl(N'N + Q) - eI - FF', is bounded with all rounding errors; so

    lambda_min(N'N + Q) >= e - |what is left| - |fl(N'N + Q) - (N'N + Q)|.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy

from .arithmetic import TINY, Array, power_of_two_below
from .rounding import FEW_ROUNDINGS, SECOND_ORDER, UNIT, gamma
from .steps import NotProven

# Up to this order matrices are dense; beyond it, sparse where factors are.
DENSE_ORDER = 1_200

SHORT = (8, 32)
"""Entries of rows, at most, that do not fill a large N'N: bounds, cones, sums of a few."""

MOST_DENSE, MOST_PRODUCTS = 7_000, 1e9
"""The order of a dense matrix, 400 MB, and the products in a sparse N'N, at most."""

SMALL = 300
"""Rows and columns of matrices whose products are dense: a sparse one takes 0.1 ms to begin."""

# A sparse proof is tried if it takes no more products than this.
MOST_PROOF = 4e8

SHIFT, LEAST_SHIFT = 2.0**-10, 2.0**-40
"""Values of e: the first that is tried and mostly proven, and the least.

No more is needed than that |Sr| is far below the root of e.
"""

INVERSE_ITERATIONS = 10

ROUGH = 2.0**-32
"""A floor by some of the rows that may be far below that by all."""

Solver = Callable[[Array], Array]


class Scaled:
    """The matrix S(A'A + wP)S with S of powers of two and a diagonal near 1, and its floor.

    The floor, a lower bound on its smallest eigenvalue, is zero where nothing is proven.
    """

    def __init__(self, A: Any, P: Any = None, weight: float = 0.0) -> None:
        A, n, self.floor = A.tocsc(), A.shape[1], 0.0
        column = np.repeat(np.arange(n), np.diff(A.indptr))
        with np.errstate(all="ignore"):
            lengths = np.sqrt(np.bincount(column, np.square(A.data), n))
            if P is not None:
                lengths = np.hypot(lengths, np.sqrt(weight * np.maximum(P.diagonal(), 0.0)))
            regular = bool(np.isfinite(lengths).all() and (lengths > 0.0).all())
            self.scale = 1.0 / power_of_two_below(lengths) if regular else np.ones(n)
            if regular:
                scaled = A.data * self.scale[column]
                N = scipy.sparse.csc_array((scaled, A.indices, A.indptr), shape=A.shape)
                S = scipy.sparse.diags_array(self.scale)
                Q = None if P is None else scipy.sparse.csc_array(weight * (S @ P @ S))
                finite = all(np.isfinite(B.data).all() for B in (N, Q) if B is not None)
                self.floor = smallest_eigenvalue(N, Q) if finite else 0.0


def smallest_eigenvalue(N: Any, Q: Any = None) -> float:
    """A proven lower bound on the smallest eigenvalue of N'N + Q; zero where nothing is proven."""
    n = N.shape[1]
    if not n or (Q is None and N.shape[0] < n) or is_too_large(N):
        return 0.0 if n else 1.0
    counts = np.bincount(N.indices, minlength=N.shape[0])
    floor = 0.0
    for most in SHORT if n > DENSE_ORDER else ():  # those alone prove it, mostly
        if n <= (counts <= most).sum() < len(counts):
            floor = max(floor, _floor(scipy.sparse.csc_array(N.tocsr()[counts <= most]), Q))
            if floor > ROUGH:
                return floor
    return max(floor, _floor(N, Q))


def _floor(N: Any, Q: Any) -> float:
    """The same by factors of N'N + Q, dense or sparse."""
    M, error = _gram(N, Q)
    for shift in _shifts(M):
        found = _factor(M, shift)
        if found is not None and (found + error) * SECOND_ORDER < 0.5 * shift:
            return 0.5 * shift
    return 0.0


def _shifts(M: Any) -> Iterator[float]:
    """Values of e to try: the usual one, and less than an estimate of the smallest eigenvalue."""
    yield SHIFT
    solve, v, size = approximate_solver(M), np.cos(np.arange(M.shape[0])), math.nan
    for _ in range(INVERSE_ITERATIONS):
        v = v * math.nan if solve is None else solve(v)
        size = float(np.linalg.norm(v))
        v = v / size
    for share in (0.75, 0.1):
        if share / size > LEAST_SHIFT:
            yield float(power_of_two_below(share / size))


def shift_to_psd(M: Any, most: float) -> float | None:
    """Some t with M + tI proven PSD, nearly as small as rounding allows; None beyond `most`.

    M has a diagonal of at most about 1.
    """
    found = _factor(M, most)
    if found is not None and found < most:
        return 0.0
    shift = gamma(M.shape[0] + FEW_ROUNDINGS)
    while shift <= most:
        found = _factor(M, -shift)
        if found is not None:
            return (shift + found) * SECOND_ORDER
        shift *= 16.0
    return None


def _gram(N: Any, Q: Any) -> tuple[Any, float]:
    """The matrix N'N + Q, dense or sparse, and a bound on the norm of its error."""
    # Entries are off by gamma(k_ij + 2) (|N|'|N|)_ij and by u |Q|. No more than min(k_i, k_j) of
    # their terms are not zero, and the gamma of that is at most the root of g_i g_j.
    n, size, counts = N.shape[1], abs(N), np.diff(N.indptr) + FEW_ROUNDINGS
    most = int(counts.max(initial=1))
    roots = np.sqrt(_gammas(counts))
    off, norm = (float((v * (size.T @ (size @ v))).max(initial=0.0)) for v in (roots, np.ones(n)))
    if n <= MOST_DENSE and (is_small(N) or N.nnz > 0.1 * math.prod(N.shape)):
        D = N.toarray()
        M = D.T @ D
        if Q is not None:
            M = M + Q.toarray()
    else:
        M = scipy.sparse.csc_array(N.T @ N)
        if Q is not None:
            M = scipy.sparse.csc_array(M + Q)
        if n <= DENSE_ORDER or (n <= MOST_DENSE and M.nnz > 0.2 * n * n):
            M = M.toarray()
    largest = 0.0 if Q is None else float(abs(Q).sum(axis=0).max())
    return M, (off + 4.0 * UNIT * (largest + norm) + n * TINY * most) * SECOND_ORDER


def _gammas(counts: Array) -> Array:
    """The relative errors of sums of so many terms; they grow faster than the counts."""
    most = int(counts.max(initial=1))
    return np.asarray(gamma(most) / most * counts)


def _factor(M: Any, shift: float) -> float | None:
    """A bound on |M - shift*I - FF'|, F the Cholesky factor of M - shift*I; None without one."""
    found = _sparse_factor(M, shift) if scipy.sparse.issparse(M) else math.inf
    is_filled = found == math.inf and M.shape[0] <= MOST_DENSE
    return _dense_factor(as_dense(M), shift) if is_filled else found


def _dense_factor(M: Array, shift: float) -> float | None:
    """The same with LAPACK's factor of an array."""
    shifted = M.copy()
    np.fill_diagonal(shifted, M.diagonal() - shift)
    try:
        F = np.asarray(scipy.linalg.cholesky(shifted, lower=True))
    except (np.linalg.LinAlgError, ValueError):
        return None
    shifted -= F @ F.T
    sizes = np.abs(M).sum(axis=1) + abs(shift)
    return _largest(np.abs(shifted).sum(axis=1), sizes, np.abs(F), np.arange(1, len(F) + 1))


def _sparse_factor(M: Any, shift: float) -> float | None:
    """The same with SuperLU's factors of a sparse matrix; infinite where they are not sparse."""
    n = M.shape[0]
    shifted = scipy.sparse.csc_array(M - shift * scipy.sparse.eye_array(n))
    factors = sparse_lu(shifted)
    if factors is None or not np.array_equal(factors.perm_r, factors.perm_c):
        return None
    pivots = factors.U.diagonal()
    if not (pivots > 0.0).all():
        return None
    F = scipy.sparse.csc_array(factors.L @ scipy.sparse.diags_array(np.sqrt(pivots)))
    counts = np.diff(F.indptr).astype(np.float64)
    if float(counts @ counts) > MOST_PROOF:
        return math.inf
    order, ones = np.argsort(factors.perm_c), np.ones(n)
    sizes, terms = (abs(M) @ ones)[order] + abs(shift), np.bincount(F.indices, minlength=n)
    return _largest(abs(shifted[order][:, order] - F @ F.T) @ ones, sizes, abs(F), terms)


def _largest(residual: Array, sizes: Array, F: Any, terms: Array) -> float:
    """The norm of M - eI - FF' by sums of rows, those of the computed one, of |M| + e, and |F|.

    Row i of F has `terms[i]` entries that are not zero.
    """
    roots = np.sqrt(_gammas(2 * terms + FEW_ROUNDINGS))
    bound = residual + roots * (F @ (F.T @ roots)) + gamma(FEW_ROUNDINGS) * sizes
    return float(bound.max()) * SECOND_ORDER + float(terms.max()) ** 2 * TINY


def sparse_lu(M: Any) -> Any:
    """SuperLU's factors of a sparse symmetric matrix without pivoting, or None."""
    try:
        return scipy.sparse.linalg.splu(
            scipy.sparse.csc_matrix(M),
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )
    except RuntimeError:  # exactly singular
        return None


def is_too_large(N: Any) -> bool:
    """Whether N'N takes more memory than there may be."""
    if N.shape[1] <= MOST_DENSE:
        return False
    counts = np.diff(N.tocsr().indptr).astype(np.float64)
    return float(counts @ counts) > MOST_PRODUCTS


def is_small(N: Any) -> bool:
    """Whether products of a matrix take less time dense, however sparse it is."""
    return bool(max(N.shape) <= SMALL)


def as_dense(M: Any) -> Array:
    """The array of a matrix, sparse or not."""
    return M.toarray() if scipy.sparse.issparse(M) else np.asarray(M)


def inner_products(A: Any, B: Any) -> Any:
    """The product A'B of sparse matrices, dense where they are hardly sparse."""
    if is_too_large(B):
        raise NotProven(f"{B.shape[1]} variables, and dense rows: the matrix A'A is too large")
    if is_small(A) or (A.nnz > 0.05 * math.prod(A.shape) and A.shape[1] <= MOST_DENSE):
        return as_dense(A).T @ as_dense(B)
    return A.T @ B


def approximate_solver(M: Any) -> Solver | None:
    """Solve with a positive definite matrix, dense or sparse, nearly; None where it is singular."""
    diagonal = M.diagonal()
    if not (np.isfinite(diagonal).all() and (diagonal > 0.0).all()):
        return None
    scale, n = 1.0 / np.sqrt(diagonal), len(diagonal)
    if scipy.sparse.issparse(M) and (n <= DENSE_ORDER or M.nnz > 0.2 * n * n):
        M = M.toarray()
    for ridge in (1e-15, 1e-12, 1e-9):
        if scipy.sparse.issparse(M):
            S = scipy.sparse.diags_array(scale)
            factors = sparse_lu(S @ M @ S + ridge * scipy.sparse.eye_array(n))
            if factors is not None:
                return partial(_scaled_solve, scale, factors.solve)
            continue
        scaled = M * scale[:, None] * scale
        np.fill_diagonal(scaled, scaled.diagonal() + ridge)
        try:
            factor = scipy.linalg.cho_factor(scaled)
        except (np.linalg.LinAlgError, ValueError):
            continue
        return partial(
            _scaled_solve, scale, partial(scipy.linalg.cho_solve, factor, check_finite=False)
        )
    return None


def _scaled_solve(scale: Array, solve: Solver, r: Array) -> Array:
    return np.asarray(scale * solve(scale * r))


SaddleSolver = Callable[[Array, Array], tuple[Array, Array]]


def saddle_solver(M: Any, A_z: Any, soft: int = 0) -> SaddleSolver | None:
    """Solve min d'Md/2 - g'd subject to A_z d = f, nearly, for d and its multipliers, given (g, f).

    M may be singular. The first `soft` rows are instead terms |A_z d - f|^2 / 2 of the objective.
    """
    n, k, diagonal = M.shape[0], A_z.shape[0], M.diagonal()
    if not k and (diagonal > 0.0).all():
        only = approximate_solver(M)
        return None if only is None else lambda g, f: (only(g), f)
    is_dense = n + k <= DENSE_ORDER
    M, A_z = (as_dense(B) if is_dense else scipy.sparse.csc_array(B) for B in (M, A_z))
    # Directions that no cone sees: any small weight does no harm.
    largest = float(diagonal.max(initial=0.0)) or 1.0
    scale = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, largest))
    B = A_z * scale
    lengths = np.sqrt(np.asarray((B * B).sum(axis=1)).reshape(-1))
    rows = 1.0 / np.where(lengths > 0.0, lengths, 1.0)
    top, B = M * scale * scale[:, None], B * rows[:, None]
    corner = np.full(k, -1e-15)
    corner[:soft] = -np.square(rows[:soft])
    corner = np.concatenate([np.full(n, 1e-14), corner])
    KKT: Any
    if is_dense:
        KKT = np.block([[top, B.T], [B, np.zeros((k, k))]]) + np.diag(corner)
    else:
        blocks = [[top, B.T], [B, None]]
        KKT = scipy.sparse.block_array(blocks, format="csc") + scipy.sparse.diags_array(corner)
    if not np.isfinite(KKT if is_dense else KKT.data).all():
        return None
    try:
        if is_dense or KKT.nnz > 0.1 * (n + k) ** 2:
            # By LAPACK, which warns of nothing: of a singular matrix the step is not finite.
            whole = KKT if is_dense else KKT.toarray()
            lu, pivots, _ = scipy.linalg.lapack.dgetrf(whole)
            inner: Solver = partial(scipy.linalg.lu_solve, (lu, pivots), check_finite=False)
        else:
            inner = scipy.sparse.linalg.splu(scipy.sparse.csc_matrix(KKT)).solve
    except (RuntimeError, ValueError):
        return None

    def solve(g: Array, f: Array) -> tuple[Array, Array]:
        found = inner(np.concatenate([scale * g, rows * f]))
        return scale * found[:n], rows * found[n:]

    return solve
