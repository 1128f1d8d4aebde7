"""A proven lower bound on the smallest eigenvalue of N'N + Q, dense or sparse by fill.

N and Q are doubles, scaled by powers of two. Whoever computes the Cholesky factor F of
fl(N'N + Q) - eI, what is left, fl(N'N + Q) - eI - FF', is bounded with all rounding errors; so

    lambda_min(N'N + Q) >= e - |what is left| - |fl(N'N + Q) - (N'N + Q)|.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy

from ...numerics.checks import FloatArray
from ...numerics.rounding import FEW_ROUNDINGS, SECOND_ORDER, UNIT, gamma
from .arithmetic import TINY, power_of_two_below

# Up to this order matrices are dense; beyond it, sparse where factors are.
DENSE_ORDER = 1_200

# Matrices of a higher order are not factored densely.
MOST_DENSE = 7_000

# A sparse proof is tried if it takes no more products than this.
MOST_PRODUCTS = 4e8

INVERSE_STEPS = 4

Solver = Callable[[FloatArray], FloatArray]


class Scaled:
    """The matrix S(A'A + wP)S with S of powers of two and a diagonal near 1, and its floor."""

    def __init__(self, A: Any, P: Any = None, weight: float = 0.0) -> None:
        n = A.shape[1]
        lengths = np.sqrt(np.asarray(A.multiply(A).sum(axis=0)).reshape(-1))
        if P is not None:
            lengths = np.hypot(lengths, np.sqrt(weight * np.maximum(P.diagonal(), 0.0)))
        self.is_regular = bool(n == 0 or (np.isfinite(lengths).all() and (lengths > 0.0).all()))
        self.floor = 0.0
        self.scale = np.ones(n)
        if self.is_regular and n:
            self.scale = 1.0 / power_of_two_below(lengths)
            S = scipy.sparse.diags_array(self.scale)
            N = scipy.sparse.csc_array(A @ S)
            Q = None if P is None else scipy.sparse.csc_array(weight * (S @ P @ S))
            finite = np.isfinite(N.data).all() and (Q is None or np.isfinite(Q.data).all())
            self.floor = smallest_eigenvalue(N, Q) if finite else 0.0


def smallest_eigenvalue(N: Any, Q: Any = None) -> float:
    """A proven lower bound on the smallest eigenvalue of N'N + Q; zero where nothing is proven."""
    n = N.shape[1]
    if not n:
        return 1.0
    M, error = _gram(N, Q)
    is_sparse = scipy.sparse.issparse(M)
    factor = _sparse_factor if is_sparse else _dense_factor
    rough = factor(M, 0.0)
    if rough is None and is_sparse and n <= MOST_DENSE:
        M, factor = M.toarray(), _dense_factor
        rough = factor(M, 0.0)
    if rough is None:
        return 0.0
    estimate = _inverse_iteration(rough[1], n)
    for share in (0.5, 0.1):
        shift = share * estimate
        found = factor(M, shift)
        if found is None:
            continue
        proven = shift - (found[0] + error) * SECOND_ORDER
        if proven > 0.1 * shift:
            return proven * (1.0 - 4.0 * UNIT)
    return 0.0


def _gram(N: Any, Q: Any) -> tuple[Any, float]:
    """The matrix N'N + Q, dense or sparse, and a bound on the norm of its error."""
    # Entries are off by gamma(k + 2) |N|'|N| and by u |Q|; |N|'|N| is PSD with the trace of N'N.
    n = N.shape[1]
    longest = int(np.diff(N.indptr).max(initial=0))
    trace = float((N.data * N.data).sum()) * (1.0 + gamma(N.nnz + 4)) + TINY
    if n <= DENSE_ORDER or N.nnz > 0.2 * math.prod(N.shape):
        D = N.toarray()
        M = D.T @ D
        longest = D.shape[0]
        if Q is not None:
            M = M + Q.toarray()
    else:
        M = scipy.sparse.csc_array(N.T @ N)
        if Q is not None:
            M = scipy.sparse.csc_array(M + Q)
        if M.nnz > 0.2 * n * n and n <= MOST_DENSE:
            M = M.toarray()
    largest = 0.0 if Q is None else float(abs(Q).sum(axis=0).max())
    error = gamma(longest + FEW_ROUNDINGS) * trace + 4.0 * UNIT * (largest + trace)
    return M, (error + n * TINY * (longest + 1.0)) * SECOND_ORDER


def _dense_factor(M: FloatArray, shift: float) -> tuple[float, Solver] | None:
    """A bound on |M - shift*I - FF'| and a solver with F, the Cholesky factor of M - shift*I."""
    n = len(M)
    shifted = M.copy()
    np.fill_diagonal(shifted, M.diagonal() - shift)
    try:
        F = np.asarray(scipy.linalg.cholesky(shifted, lower=True))
    except (np.linalg.LinAlgError, ValueError):
        return None
    left = math.inf
    if shift:
        size = np.abs(F)
        sizes = size @ size.sum(axis=0) + np.abs(M).sum(axis=1) + shift
        left = F @ F.T
        left -= shifted
        bound = np.abs(left).sum(axis=1) + gamma(n + FEW_ROUNDINGS) * sizes
        left = float(bound.max()) * SECOND_ORDER + n * n * TINY
    return left, lambda r: np.asarray(scipy.linalg.cho_solve((F, True), r))


def _sparse_factor(M: Any, shift: float) -> tuple[float, Solver] | None:
    """The same with SuperLU's factors of a sparse matrix, where they are sparse."""
    n = M.shape[0]
    shifted = scipy.sparse.csc_array(M - shift * scipy.sparse.eye_array(n))
    factors = sparse_lu(shifted)
    if factors is None or not np.array_equal(factors.perm_r, factors.perm_c):
        return None
    pivots = factors.U.diagonal()
    if not (pivots > 0.0).all():
        return None
    left = math.inf
    if shift:
        F = scipy.sparse.csc_array(factors.L @ scipy.sparse.diags_array(np.sqrt(pivots)))
        counts = np.diff(F.indptr).astype(np.float64)
        if float(counts @ counts) > MOST_PRODUCTS:
            return None
        order = np.argsort(factors.perm_c)
        size = abs(F)
        terms = int(np.diff(F.tocsr().indptr).max())
        sizes = size @ (size.T @ np.ones(n)) + (abs(M) @ np.ones(n))[order] + shift
        residual = abs(F @ F.T - shifted[order][:, order])
        bound = residual @ np.ones(n) + gamma(terms + n + FEW_ROUNDINGS) * sizes
        left = float(bound.max()) * SECOND_ORDER + n * n * TINY
    return left, factors.solve


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


def _inverse_iteration(solve: Solver, n: int) -> float:
    """Roughly the smallest eigenvalue of a matrix, by solving with it."""
    v = np.random.default_rng(0).standard_normal(n)
    growth = 1.0
    for _ in range(INVERSE_STEPS):
        v = v / np.linalg.norm(v)
        v = solve(v)
        growth = float(np.linalg.norm(v))
        if not math.isfinite(growth):
            return 0.0
    return 1.0 / growth


def approximate_solver(M: Any) -> Solver | None:
    """Solve with a positive definite matrix, dense or sparse, nearly; None where it is singular."""
    diagonal = M.diagonal()
    if not (np.isfinite(diagonal).all() and (diagonal > 0.0).all()):
        return None
    scale = 1.0 / np.sqrt(diagonal)
    n = len(scale)
    S = scipy.sparse.diags_array(scale)
    if scipy.sparse.issparse(M) and (n <= DENSE_ORDER or M.nnz > 0.2 * n * n):
        M = M.toarray()
    for ridge in (1e-15, 1e-12, 1e-9):
        if scipy.sparse.issparse(M):
            factors = sparse_lu(S @ M @ S + ridge * scipy.sparse.eye_array(n))
            if factors is not None:
                return lambda r, lu=factors: scale * lu.solve(scale * r)
        else:
            scaled = M * scale[:, None] * scale
            np.fill_diagonal(scaled, scaled.diagonal() + ridge)
            try:
                factor = scipy.linalg.cho_factor(scaled)
            except (np.linalg.LinAlgError, ValueError):
                continue
            return lambda r, F=factor: scale * scipy.linalg.cho_solve(F, scale * r)
    return None
