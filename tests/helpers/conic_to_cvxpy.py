"""A conic program in plain numbers, stated in CVXPY: the proof that nothing was lost."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from seraph_cvx.numerics.checks import IntArray
from seraph_cvx.race.conic_program import ConicProgram
from seraph_cvx.race.sparse_entries import SparseEntries


def rebuild(
    program: ConicProgram,
) -> tuple[cp.Problem, list[cp.Variable], list[cp.Constraint]]:
    """The CVXPY problem, its matrix variables and its PSD constraints.

    The metric is the value of the matrix variable (primal), or the multiplier of the PSD
    constraint (dual).

    Examples
    --------
    >>> from seraph_cvx.race.suite import InstanceSpec
    >>> objective = InstanceSpec.parse("iris-n20-standard-proj-w1-s0").objective()
    >>> problem, matrices, _ = rebuild(ConicProgram.of(objective, "primal"))
    >>> round(float(problem.solve(solver="CLARABEL")), 4), matrices[0].shape
    (10.246, (4, 4))
    """
    x = cp.Variable(program.n_variables)
    matrices = [cp.Variable((order, order), PSD=True) for order in program.matrix_orders]
    goal: Any = _vector(program.objective_vector, program.n_variables) @ x
    for j, X in enumerate(matrices):
        goal += _symmetric(_select(program.objective_matrix, j), X.shape[0]) @ cp.vec(X, order="C")
    goal += program.objective_constant
    n_rows = sum(size for _, size in program.cones)
    rows: Any = _matrix(program.rows_vector, n_rows, program.n_variables) @ x
    rows += _vector(program.rows_constant, n_rows)
    for j, X in enumerate(matrices):
        rows += _products(program.rows_matrix, j, n_rows, X.shape[0]) @ cp.vec(X, order="C")
    feasible = [_linear_matrix(program, k, x) >> 0 for k in range(len(program.psd_orders))]
    constraints = [*_scalar_cones(program, rows), *feasible]
    sense = cp.Minimize if program.sense == "MIN" else cp.Maximize
    return cp.Problem(sense(goal), constraints), matrices, feasible


def _scalar_cones(program: ConicProgram, rows: Any) -> list[cp.Constraint]:
    start, nonnegative, triples = 0, [np.zeros(0, dtype=np.int64)], []
    constraints: list[cp.Constraint] = []
    for kind, size in program.cones:
        if kind == "L+":
            nonnegative.append(np.arange(start, start + size))
        elif kind == "L=":
            constraints.append(rows[start : start + size] == 0)
        elif kind == "QR":  # 2 r s >= ||v||^2, as (r + s)^2 >= (r - s)^2 + 2 ||v||^2
            r, s, v = rows[start], rows[start + 1], rows[start + 2 : start + size]
            constraints.append(cp.SOC(r + s, cp.hstack([r - s, np.sqrt(2.0) * v])))
        else:
            triples.append(start)
        start += size
    first = np.array(triples, dtype=np.int64)
    if len(chosen := np.concatenate(nonnegative)):
        constraints.append(rows[chosen] >= 0)
    if len(first):  # CVXPY 1.8 takes no empty cone
        constraints.append(cp.ExpCone(rows[first + 2], rows[first + 1], rows[first]))
    return constraints


def _linear_matrix(program: ConicProgram, k: int, x: cp.Variable) -> Any:
    order = program.psd_orders[k]
    H, D = _select(program.psd_vector, k), _select(program.psd_constant, k)
    i, j = H.index[:, 1], H.index[:, 2]
    both = _mirrored(i, j)
    entries = sp.csr_array(
        (H.value[both[0]], (both[1] * order + both[2], H.index[both[0], 0])),
        shape=(order**2, program.n_variables),
    )
    constant = _symmetric(D, order).reshape(order, order)
    return cp.reshape(entries @ x, (order, order), order="C") + constant


def _select(array: SparseEntries, k: int) -> SparseEntries:
    """The entries whose first index is k, without it."""
    chosen = array.index[:, 0] == k
    return SparseEntries(array.index[chosen, 1:], array.value[chosen])


def _mirrored(i: IntArray, j: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Which entry, row, column: each entry of a lower triangle, and those below it once more."""
    below = np.flatnonzero(i != j)
    which = np.concatenate([np.arange(len(i)), below])
    return which, np.concatenate([i, j[below]]), np.concatenate([j, i[below]])


def _symmetric(array: SparseEntries, order: int) -> Any:
    which, i, j = _mirrored(array.index[:, 0], array.index[:, 1])
    full = np.zeros((order, order))
    full[i, j] = array.value[which]
    return full.ravel()


def _products(array: SparseEntries, matrix: int, n_rows: int, order: int) -> Any:
    """The rows of <F_ij, X_j> for one j, X_j flattened."""
    chosen = array.index[:, 1] == matrix
    index, value = array.index[chosen], array.value[chosen]
    which, i, j = _mirrored(index[:, 2], index[:, 3])
    return sp.csr_array((value[which], (index[which, 0], i * order + j)), shape=(n_rows, order**2))


def _matrix(array: SparseEntries, n_rows: int, n_columns: int) -> Any:
    return sp.csr_array((array.value, tuple(array.index.T)), shape=(n_rows, n_columns))


def _vector(array: SparseEntries, size: int) -> Any:
    dense = np.zeros(size)
    dense[array.index[:, 0]] = array.value
    return dense
