"""The penalties in conic form, added to the M-step as a conic program in plain numbers.

In the primal a penalty is a function of the matrix variable A; in the dual it is a matrix Z that is
added to M(p), and its conjugate that is taken off. A square is a rotated cone (r, s, v) with
2 r s >= ||v||^2. A log det is one of a triangular matrix L: with D its diagonal,

    [A  L ]
    [L' D ]  PSD   =>   log det A >= sum_i log L_ii,    with equality for some L,

and each logarithm is an exponential cone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..numerics.checks import FloatArray, IntArray
from ..numerics.psd_cone import symmetrize
from ..penalties import (
    Diagonal,
    LinearConstraints,
    LogDet,
    Penalty,
    Ridge,
    Sparse,
    TraceBound,
    UpperBound,
)
from .sparse_entries import SparseEntries


@dataclass
class ProgramBuilder:
    """A conic program that grows: numbers for new variables, rows and matrices, and entries.

    Attributes
    ----------
    n_features : int
    n_variables, matrix_orders, psd_orders, cones, objective_constant
        Parts of the program so far.
    entries : dict of str to SparseEntries
        Its other parts, by their names.
    """

    n_features: int
    n_variables: int
    matrix_orders: tuple[int, ...]
    psd_orders: tuple[int, ...]
    cones: tuple[tuple[str, int], ...]
    objective_constant: float
    entries: dict[str, SparseEntries]

    @property
    def parts(self) -> dict[str, Any]:
        """The parts of the program as they are now."""
        own = {name: value for name, value in vars(self).items() if name != "entries"}
        del own["n_features"]
        return own | self.entries

    def variables(self, count: int) -> IntArray:
        """The numbers of this many new scalar variables."""
        self.n_variables += count
        return np.arange(self.n_variables - count, self.n_variables)

    def rows(self, cone: str, count: int) -> IntArray:
        """The numbers of this many new rows, all in one cone."""
        first = sum(size for _, size in self.cones)
        self.cones = (*self.cones, (cone, count))
        return np.arange(first, first + count)

    def matrix(self, order: int) -> int:
        """The number of a new matrix variable."""
        self.matrix_orders = (*self.matrix_orders, order)
        return len(self.matrix_orders) - 1

    def psd(self, order: int) -> int:
        """The number of a new PSD constraint."""
        self.psd_orders = (*self.psd_orders, order)
        return len(self.psd_orders) - 1

    def add(self, part: str, value: FloatArray | float, *index: Any) -> None:
        """Add entries to a part of the program, with one column of indices each."""
        values, *columns = np.broadcast_arrays(np.asarray(value, dtype=np.float64), *index)
        self.entries[part] = self.entries[part] + SparseEntries.of(values, *columns)

    def pick(self, rows: IntArray, matrix: int, i: IntArray, j: IntArray, size: Any = 1.0) -> None:
        """Add `size` times the entry X_ij, i >= j, of a matrix variable to each row."""
        self.add("rows_matrix", np.where(i == j, 1.0, 0.5) * size, rows, matrix, i, j)

    def logarithms(self, of: IntArray) -> IntArray:
        """New variables u with u_i <= log x_i for the variables x."""
        u = self.variables(len(of))
        for x, log_x in zip(of, u, strict=True):
            row = self.rows("EXP", 3)
            self.add("rows_vector", 1.0, row[0], x)
            self.add("rows_constant", 1.0, row[1])
            self.add("rows_vector", 1.0, row[2], log_x)
        return u


def add_penalties(builder: ProgramBuilder, penalties: Sequence[Penalty]) -> None:
    """Add penalties to the conic program of an M-step: the primal, if it has matrix variables.

    Raises
    ------
    ValueError
        For a penalty that is not one of :mod:`seraph_cvx.penalties`.
    """
    table = _PRIMAL if builder.matrix_orders else _DUAL
    for block in penalties:
        if type(block) not in table:
            raise ValueError(
                f"{block!r} cannot be exported: only the penalties of seraph_cvx.penalties have a "
                "conic form here. state_m_step(objective) states it in CVXPY, whose "
                "get_problem_data has its own conic form."
            )
        table[type(block)](block, builder)


def describe_exactness(penalties: Sequence[Penalty]) -> str:
    """Say in what a file differs from the certified M-step; empty where it does not.

    Examples
    --------
    >>> describe_exactness([Ridge(1.0)])
    ''
    """
    if not any(isinstance(block, LinearConstraints) and block.is_equality for block in penalties):
        return ""
    return (
        "The equations of LinearConstraints are written without their tolerance. The metric that "
        "`upper` is of satisfies them within it, so the optimal value may be above `upper` by that "
        "tolerance times the multipliers."
    )


def _lower(m: int) -> tuple[IntArray, IntArray, FloatArray]:
    """Rows and columns of a lower triangle, and how often each entry is in the matrix."""
    i, j = np.tril_indices(m)
    return i, j, np.where(i == j, 1.0, 2.0)


# The primal: functions of the matrix variable 0


def _primal_trace_bound(block: TraceBound, builder: ProgramBuilder) -> None:
    row, features = builder.rows("L+", 1), np.arange(builder.n_features)
    builder.add("rows_constant", block.weight, row)
    builder.add("rows_matrix", -1.0, row, 0, features, features)


def _primal_upper_bound(block: UpperBound, builder: ProgramBuilder) -> None:
    """A + S = B, with a matrix variable S."""
    i, j, _ = _lower(builder.n_features)
    slack, rows = builder.matrix(builder.n_features), builder.rows("L=", len(i))
    builder.pick(rows, 0, i, j)
    builder.pick(rows, slack, i, j)
    builder.add("rows_constant", -block.bound[i, j], rows)


def _primal_linear(block: LinearConstraints, builder: ProgramBuilder) -> None:
    i, j, _ = _lower(builder.n_features)
    rows = builder.rows("L=" if block.is_equality else "L+", len(block.bounds))
    builder.add("rows_constant", _written_bounds(block), rows)
    builder.add("rows_matrix", -block.matrices[:, i, j], rows[:, None], 0, i, j)


def _primal_diagonal(block: Diagonal, builder: ProgramBuilder) -> None:
    i, j = np.tril_indices(builder.n_features, -1)
    if len(i):
        builder.pick(builder.rows("L=", len(i)), 0, i, j)


def _primal_sparse(block: Sparse, builder: ProgramBuilder) -> None:
    """State the sum of absolute values: 2 w sum_{i > j} z_ij, with -z <= A_ij <= z."""
    i, j = np.tril_indices(builder.n_features, -1)
    if not len(i):
        return
    z = builder.variables(len(i))
    builder.add("objective_vector", 2.0 * block.weight, z)
    for sign in (1.0, -1.0):
        rows = builder.rows("L+", len(i))
        builder.add("rows_vector", 1.0, rows, z)
        builder.pick(rows, 0, i, j, sign)


def _primal_ridge(block: Ridge, builder: ProgramBuilder) -> None:
    """The weight times r, with 2 r >= ||A - prior||^2."""
    i, j, often = _lower(builder.n_features)
    (r,), rows = builder.variables(1), builder.rows("QR", 2 + len(i))
    builder.add("objective_vector", block.weight, r)
    builder.add("rows_vector", 1.0, rows[0], r)
    builder.add("rows_constant", 1.0, rows[1])
    builder.pick(rows[2:], 0, i, j, np.sqrt(often))
    builder.add("rows_constant", -np.sqrt(often) * _prior(block, builder)[i, j], rows[2:])


def _primal_log_det(block: LogDet, builder: ProgramBuilder) -> None:
    """State the LogDet penalty with a matrix variable of size 2m.

    It is w [<Q, A> - sum_i u_i - log det Q - m] with u_i <= log L_ii.
    """
    m, weight = builder.n_features, block.weight
    i, j, _ = _lower(m)
    Q, features = _inverse(block, builder), np.arange(m)
    builder.add("objective_matrix", weight * Q[i, j], 0, i, j)
    builder.entries["objective_matrix"] = builder.entries["objective_matrix"].merged()
    builder.objective_constant -= weight * (float(np.linalg.slogdet(Q)[1]) + m)
    X, diagonal = builder.matrix(2 * m), builder.variables(m)
    rows = builder.rows("L=", len(i))  # its upper left is A
    builder.pick(rows, X, i, j)
    builder.pick(rows, 0, i, j, -1.0)
    for first, second in ((m + i, j), (m + i, m + j)):  # L' is upper triangular, D is diagonal
        off = i != j
        if np.any(off):
            builder.pick(builder.rows("L=", int(off.sum())), X, first[off], second[off])
    for second in (features, m + features):  # both have the same diagonal
        rows = builder.rows("L=", m)
        builder.pick(rows, X, m + features, second)
        builder.add("rows_vector", -1.0, rows, diagonal)
    builder.add("objective_vector", -weight, builder.logarithms(diagonal))


# The dual: Z is added to the PSD constraint 0


def _dual_matrix(builder: ProgramBuilder, i: IntArray, j: IntArray) -> IntArray:
    """New variables Z_ij, added to M(p)."""
    z = builder.variables(len(i))
    builder.add("psd_vector", 1.0, 0, z, i, j)
    return z


def _dual_trace_bound(block: TraceBound, builder: ProgramBuilder) -> None:
    (nu,), features = builder.variables(1), np.arange(builder.n_features)
    builder.add("psd_vector", 1.0, 0, nu, features, features)
    builder.add("objective_vector", -block.weight, nu)
    builder.add("rows_vector", 1.0, builder.rows("L+", 1), nu)


def _dual_upper_bound(block: UpperBound, builder: ProgramBuilder) -> None:
    i, j, often = _lower(builder.n_features)
    z = _dual_matrix(builder, i, j)
    builder.add("psd_vector", 1.0, builder.psd(builder.n_features), z, i, j)
    builder.add("objective_vector", -often * block.bound[i, j], z)


def _dual_linear(block: LinearConstraints, builder: ProgramBuilder) -> None:
    i, j, _ = _lower(builder.n_features)
    nu = builder.variables(len(block.bounds))
    builder.add("psd_vector", block.matrices[:, i, j], 0, nu[:, None], i, j)
    builder.add("objective_vector", -_written_bounds(block), nu)
    if not block.is_equality:
        builder.add("rows_vector", 1.0, builder.rows("L+", len(nu)), nu)


def _dual_diagonal(block: Diagonal, builder: ProgramBuilder) -> None:
    _dual_matrix(builder, *np.tril_indices(builder.n_features, -1))


def _dual_sparse(block: Sparse, builder: ProgramBuilder) -> None:
    z = _dual_matrix(builder, *np.tril_indices(builder.n_features, -1))
    for sign in (1.0, -1.0) if len(z) else ():
        rows = builder.rows("L+", len(z))
        builder.add("rows_constant", block.weight, rows)
        builder.add("rows_vector", sign, rows, z)


def _dual_ridge(block: Ridge, builder: ProgramBuilder) -> None:
    """State minus the conjugate: -<Z, prior> - r, with 2 r w >= ||Z||^2."""
    i, j, often = _lower(builder.n_features)
    z, (r,) = _dual_matrix(builder, i, j), builder.variables(1)
    builder.add("objective_vector", -often * _prior(block, builder)[i, j], z)
    builder.add("objective_vector", -1.0, r)
    rows = builder.rows("QR", 2 + len(i))
    builder.add("rows_vector", 1.0, rows[0], r)
    builder.add("rows_constant", block.weight, rows[1])
    builder.add("rows_vector", np.sqrt(often), rows[2:], z)


def _dual_log_det(block: LogDet, builder: ProgramBuilder) -> None:
    """State minus the conjugate of the LogDet penalty, with a PSD constraint on Q - Z/w and L.

    It is w [sum_i u_i - log det Q] with u_i <= log L_ii.
    """
    m, weight = builder.n_features, block.weight
    i, j, _ = _lower(m)
    Q, z = _inverse(block, builder), _dual_matrix(builder, i, j)
    whole, L = builder.psd(2 * m), builder.variables(len(i))
    builder.add("psd_constant", Q[i, j], whole, i, j)
    builder.add("psd_vector", -1.0 / weight, whole, z, i, j)
    builder.add("psd_vector", 1.0, whole, L, m + j, i)
    diagonal, features = L[i == j], np.arange(m)
    builder.add("psd_vector", 1.0, whole, diagonal, m + features, m + features)
    builder.add("objective_vector", weight, builder.logarithms(diagonal))
    builder.objective_constant -= weight * float(np.linalg.slogdet(Q)[1])


def _written_bounds(block: LinearConstraints) -> FloatArray:
    """The bounds with their tolerance; an equation without it."""
    if block.is_equality:
        return block.bounds
    sizes = np.abs(block.bounds) + np.linalg.norm(block.matrices, axis=(1, 2))
    return np.asarray(block.bounds + block.tolerance * sizes)


def _prior(block: Ridge, builder: ProgramBuilder) -> FloatArray:
    return np.zeros((builder.n_features,) * 2) if block.prior is None else block.prior


def _inverse(block: LogDet, builder: ProgramBuilder) -> FloatArray:
    """The inverse Q of the prior."""
    if block.prior is None:
        return np.eye(builder.n_features)
    return symmetrize(np.asarray(np.linalg.inv(block.prior), dtype=np.float64))


_PRIMAL: dict[type[Penalty], Callable[[Any, ProgramBuilder], None]] = {
    TraceBound: _primal_trace_bound,
    UpperBound: _primal_upper_bound,
    LinearConstraints: _primal_linear,
    Diagonal: _primal_diagonal,
    Sparse: _primal_sparse,
    Ridge: _primal_ridge,
    LogDet: _primal_log_det,
}

_DUAL: dict[type[Penalty], Callable[[Any, ProgramBuilder], None]] = {
    TraceBound: _dual_trace_bound,
    UpperBound: _dual_upper_bound,
    LinearConstraints: _dual_linear,
    Diagonal: _dual_diagonal,
    Sparse: _dual_sparse,
    Ridge: _dual_ridge,
    LogDet: _dual_log_det,
}
