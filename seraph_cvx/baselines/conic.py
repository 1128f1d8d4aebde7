"""Solves the rivals' CVXPY statements by any conic solver that is installed."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np

from ..numerics.checks import FloatArray
from ..numerics.psd_cone import project, symmetrize


def squared_distances(A: cp.Variable, V: FloatArray) -> cp.Expression:
    """State the squared distances v_k' A v_k of the rows of V: linear in the distinct entries of A.

    Examples
    --------
    >>> A = cp.Variable((2, 2), PSD=True)
    >>> A.value = np.eye(2)
    >>> squared_distances(A, np.array([[3.0, 4.0]])).value
    array([25.])
    """
    i, j = np.triu_indices(V.shape[1])
    return (V[:, i] * V[:, j] * np.where(i == j, 1.0, 2.0)) @ A[i, j]


def solve_statement(problem: cp.Problem, solver: str) -> tuple[FloatArray, int]:
    """Solve a statement: its A, symmetrized and projected to the cone, and the iterations.

    Parameters
    ----------
    problem : cvxpy.Problem
        With a variable named A.
    solver : str
        Any that CVXPY finds installed and that has the cones.

    Examples
    --------
    >>> A = cp.Variable((1, 1), PSD=True, name="A")
    >>> metric, _ = solve_statement(cp.Problem(cp.Minimize(A[0, 0]), [A >= 2.0]), "CLARABEL")
    >>> metric.round(6)
    array([[2.]])
    """
    if solver not in cp.installed_solvers():
        raise ValueError(
            f"solver={solver!r} is not known: use the default, or one that is installed for "
            f"CVXPY ({', '.join(cp.installed_solvers())})."
        )
    problem.solve(solver=solver)
    A: Any = problem.var_dict["A"].value
    if A is None:
        raise RuntimeError(
            f"{solver} returned no matrix ({problem.status}): use the default solver, or "
            "standardize the features."
        )
    iterations = int(problem.solver_stats.num_iters or 0)
    return project(symmetrize(np.asarray(A, dtype=np.float64))), iterations
