"""The M-step as a conic program in plain numbers; the tests state it in CVXPY again.

In the form of the Conic Benchmark Format, with matrix variables X_j and scalar variables x:

    min or max  sum_j <F_j, X_j> + a'x + b
    subject to  sum_j <F_ij, X_j> + a_i'x + b_i  in scalar cones,   sum_j x_j H_j + D  PSD.

The primal M-step has A as its matrix variable, and t, u, w a pair: t_k >= log(1 + e^{s_k}) says
u_k + w_k <= 1 with u_k >= e^{s_k - t_k} and w_k >= e^{-t_k}. In the formulation "similar", which
has the same optimal value, t_k >= log(1 + e^{-s_k}), and the linear term is that of similar pairs
alone: far points do not cancel in it. The dual has p, g, h a pair:
g_k <= -p_k log p_k and h_k <= -(1 - p_k) log(1 - p_k). Penalties are added by
`conic_penalties.py`. An exponential cone is three rows (r, s, t)
with r >= s e^{t/s}, s >= 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..model.m_step_objective import MStepObjective
from ..numerics.checks import FloatArray
from .conic_penalties import ProgramBuilder, add_penalties
from .sparse_entries import SparseEntries


@dataclass(frozen=True)
class ConicProgram:
    """A conic program in the form above; matrices are given by their lower triangles.

    Attributes
    ----------
    sense : "MIN" or "MAX"
    n_variables : int
        Scalar ones, all free.
    matrix_orders, psd_orders : tuple of int
        The orders of the matrix variables, and of the PSD constraints.
    cones : tuple of (str, int)
        The scalar constraints in order, and how many rows: "L+" (each >= 0), "L=" (each 0), "EXP"
        (threes) or "QR" (2 r s >= ||v||^2 for its rows r, s, v); the last two only with penalties.
    objective_matrix, objective_vector, objective_constant
        F_j as (j, row, column), a as (variable,), b.
    rows_matrix, rows_vector, rows_constant
        F_ij as (row, j, row of X, column of X), a_i as (row, variable), b_i as (row,).
    psd_vector, psd_constant
        H as (constraint, variable, row, column), D as (constraint, row, column).
    """

    sense: str
    n_variables: int
    matrix_orders: tuple[int, ...]
    psd_orders: tuple[int, ...]
    cones: tuple[tuple[str, int], ...]
    objective_matrix: SparseEntries
    objective_vector: SparseEntries
    objective_constant: float
    rows_matrix: SparseEntries
    rows_vector: SparseEntries
    rows_constant: SparseEntries
    psd_vector: SparseEntries
    psd_constant: SparseEntries

    @classmethod
    def of(cls, objective: MStepObjective, formulation: str = "primal") -> ConicProgram:
        """State the M-step of an objective as a conic program, "primal", "similar" or "dual".

        Examples
        --------
        >>> from seraph_cvx import PairSet
        >>> from seraph_cvx.penalties import Ridge
        >>> pairs = PairSet.from_labels([[0.0, 1.0], [0.2, 0.0], [2.0, 1.0]], [0, 0, 1])
        >>> ConicProgram.of(MStepObjective(pairs, penalties=[Ridge(1.0)])).cones[-1]
        ('QR', 5)
        """
        if formulation not in ("primal", "similar", "dual"):
            raise ValueError(f'formulation={formulation!r} is not known: use "primal" or "dual".')
        of_similar = formulation == "similar"
        program = _dual(objective) if formulation == "dual" else _primal(objective, of_similar)
        return program.with_penalties(objective)

    def with_penalties(self, objective: MStepObjective) -> ConicProgram:
        """The program of an M-step with the penalties of that M-step added."""
        parts = dict(vars(self))
        del parts["sense"]
        names = [name for name, value in parts.items() if isinstance(value, SparseEntries)]
        entries = {name: parts.pop(name) for name in names}
        builder = ProgramBuilder(objective.pairs.n_features, entries=entries, **parts)
        add_penalties(builder, objective.penalties)
        return replace(self, **builder.parts)

    @property
    def formulation(self) -> str:
        """Whether the metric is a matrix variable ("primal") or a multiplier ("dual")."""
        return "primal" if self.matrix_orders else "dual"


def _pairs(objective: MStepObjective) -> tuple[FloatArray, FloatArray]:
    """The weights c_k and the lower triangles of v_k v_k', one row per pair, labeled ones first."""
    pairs, mu = objective.pairs, objective.mu
    rows, c = pairs.labeled, pairs.labeled_weights
    if mu > 0.0:
        rows = np.concatenate([rows, pairs.unlabeled])
        c = np.concatenate([c, np.full(pairs.n_unlabeled, mu)])
    V = pairs.points[rows[:, 0]] - pairs.points[rows[:, 1]]
    i, j = np.tril_indices(pairs.n_features)
    return c, V[:, i] * V[:, j]


def _primal(objective: MStepObjective, of_similar: bool = False) -> ConicProgram:
    """State the primal, with variables t, u, w, rows 1 - u - w >= 0, and two cones per pair."""
    sign = -1.0 if of_similar else 1.0
    c, products = _pairs(objective)
    m, N, eta = objective.pairs.n_features, len(c), objective.threshold
    i, j = np.tril_indices(m)
    k = np.arange(N)
    t, u, w = k, N + k, 2 * N + k
    first, second = N + 6 * k, N + 6 * k + 3  # (u, 1, s - t) and (w, 1, -t), or -s for s
    linear, constant = objective.regularizer - objective.label_matrix, objective.label_total
    if of_similar:
        linear, constant = objective.recession_matrix, -objective.recession_total
    ones = np.ones(N)
    return ConicProgram(
        sense="MIN",
        n_variables=3 * N,
        matrix_orders=(m,),
        psd_orders=(),
        cones=(("L+", N), *[("EXP", 3)] * (2 * N)),
        objective_matrix=SparseEntries.of(linear[i, j], 0, i, j),
        objective_vector=SparseEntries.of(c, t),
        objective_constant=eta * constant,
        rows_matrix=SparseEntries.of(sign * products, (first + 2)[:, None], 0, i, j),
        rows_vector=SparseEntries.of(-ones, k, u)
        + SparseEntries.of(-ones, k, w)
        + SparseEntries.of(ones, first, u)
        + SparseEntries.of(-ones, first + 2, t)
        + SparseEntries.of(ones, second, w)
        + SparseEntries.of(-ones, second + 2, t),
        rows_constant=SparseEntries.of(ones, k)
        + SparseEntries.of(ones, first + 1)
        + SparseEntries.of(-sign * eta * ones, first + 2)
        + SparseEntries.of(ones, second + 1),
        psd_vector=SparseEntries.none(4),
        psd_constant=SparseEntries.none(3),
    )


def _dual(objective: MStepObjective) -> ConicProgram:
    """State the dual, with variables p, g, h and the cones (1, p, g) and (1, 1 - p, h) per pair."""
    c, products = _pairs(objective)
    m, N, eta = objective.pairs.n_features, len(c), objective.threshold
    i, j = np.tril_indices(m)
    k = np.arange(N)
    p, g, h = k, N + k, 2 * N + k
    first, second = 6 * k, 6 * k + 3
    constant = objective.regularizer - objective.label_matrix
    ones = np.ones(N)
    return ConicProgram(
        sense="MAX",
        n_variables=3 * N,
        matrix_orders=(),
        psd_orders=(m,),
        cones=tuple([("EXP", 3)] * (2 * N)),
        objective_matrix=SparseEntries.none(3),
        objective_vector=SparseEntries.of(-eta * c, p)
        + SparseEntries.of(c, g)
        + SparseEntries.of(c, h),
        objective_constant=eta * objective.label_total,
        rows_matrix=SparseEntries.none(4),
        rows_vector=SparseEntries.of(ones, first + 1, p)
        + SparseEntries.of(ones, first + 2, g)
        + SparseEntries.of(-ones, second + 1, p)
        + SparseEntries.of(ones, second + 2, h),
        rows_constant=SparseEntries.of(ones, first)
        + SparseEntries.of(ones, second)
        + SparseEntries.of(ones, second + 1),
        psd_vector=SparseEntries.of(c[:, None] * products, 0, p[:, None], i, j),
        psd_constant=SparseEntries.of(constant[i, j], 0, i, j),
    )
