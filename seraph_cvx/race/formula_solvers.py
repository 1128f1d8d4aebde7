"""Solvers that are handed the M-step as formulas over all of its pairs: CVXOPT and QICS.

In coordinates B, A = Z B Z', in which the second moments of the pairs and the regularizer add up
to the identity, so that no rival loses by the units of the data,

    f = sum_k c_k log(1 + e^{-s_k}) + <M, B> - constant,      s_k = v_k' B v_k - eta.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse
import scipy.special

from ..model.m_step_objective import MStepObjective
from ..model.pair_program import PairProgram
from ..numerics.checks import FloatArray, IntArray
from ..paper import differences
from .attempt import Attempt, Entrant, NotForThisProblem


def list_pairs(objective: MStepObjective) -> tuple[IntArray, FloatArray]:
    """The pairs that count, as rows of points, labeled ones first; and their weights c_k."""
    pairs, mu = objective.pairs, objective.mu
    if mu == 0.0:
        return pairs.labeled, pairs.labeled_weights
    weights = np.concatenate([pairs.labeled_weights, np.full(pairs.n_unlabeled, mu)])
    return np.concatenate([pairs.labeled, pairs.unlabeled]), weights


@dataclass(frozen=True, eq=False)
class ListedProblem:
    """The pairs of an M-step in the coordinates of B: v_k, one row each, c_k, and Z.

    ``program`` has M, eta and the constant.
    """

    differences: FloatArray
    weights: FloatArray
    basis: FloatArray
    program: PairProgram

    @classmethod
    def of(cls, objective: MStepObjective) -> ListedProblem:
        """List the pairs of an M-step without penalties."""
        require_plain(objective)
        (rows, weights), Z = list_pairs(objective), objective.basis.matrix
        V = differences(objective.pairs.points @ Z, rows)
        return cls(V, weights, Z, objective.whitened_program)

    @cached_property
    def entries(self) -> tuple[IntArray, IntArray]:
        """The rows and columns of the distinct entries of B."""
        return np.triu_indices(len(self.program.recession))

    @cached_property
    def multiplicity(self) -> FloatArray:
        """How often each of these entries is in B."""
        return np.where(self.entries[0] == self.entries[1], 1.0, 2.0)

    @cached_property
    def pair_matrix(self) -> FloatArray:
        """The matrix that maps the distinct entries of B to the squared distances v'Bv."""
        i, j = self.entries
        return np.asarray(self.differences[:, i] * self.differences[:, j] * self.multiplicity)

    def derivatives(self, x: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """The value at the entries x of B, the gradient, and the weights of the Hessian's pairs.

        With P the pair matrix, the Hessian is P' Diag(weights) P.
        """
        P, c, program = self.pair_matrix, self.weights, self.program
        s = P @ x - program.threshold
        sigma = scipy.special.expit(-s)
        linear = program.recession[self.entries] * self.multiplicity
        value = float(c @ np.logaddexp(0.0, -s) + linear @ x) - program.constant
        return value, linear - P.T @ (c * sigma), c * sigma * (1.0 - sigma)

    def metric(self, B: FloatArray) -> FloatArray:
        """The matrix A = Z B Z' in the coordinates of the points."""
        return np.asarray(self.basis @ B @ self.basis.T)


def require_plain(objective: MStepObjective) -> None:
    """Require an M-step whose penalties are all linear, as formulas of other solvers have them."""
    if objective.penalties:
        names = ", ".join(block.name for block in objective.penalties)
        raise NotForThisProblem(f"it has no formula for the penalties ({names})")


class _OutOfTime(ArithmeticError):
    """The time is up; CVXOPT has no option for that."""


def convex_cone(
    objective: MStepObjective, tol: float, time_limit: float, /, **options: Any
) -> Attempt:
    """Solve by CVXOPT's ``solvers.cp`` over the distinct entries of a PSD matrix."""
    import cvxopt
    import cvxopt.solvers

    clock = time.perf_counter()
    problem = ListedProblem.of(objective)
    P, (i, j), r = problem.pair_matrix, problem.entries, len(problem.program.recession)
    last, calls = (i == j) * (problem.program.typical_size / r), 0  # it separates pairs

    def formulas(x: Any = None, z: Any = None) -> Any:
        nonlocal last, calls
        if x is None:
            return 0, cvxopt.matrix(last)
        if time.perf_counter() - clock > time_limit:
            raise _OutOfTime("out of time")
        last, calls = np.array(x).ravel(), calls + (z is not None)
        value, gradient, curvature = problem.derivatives(last)
        row = cvxopt.matrix(gradient[None, :])
        if z is None:
            return value, row
        return value, row, cvxopt.matrix(float(z[0]) * ((P.T * curvature) @ P))

    tolerances = {"abstol": tol, "reltol": tol, "feastol": tol, "maxiters": 10**6}
    position = np.empty((r, r), dtype=np.int64)  # of each entry of B among the distinct ones
    position[i, j] = position[j, i] = np.arange(len(i))
    G = cvxopt.spmatrix(-1.0, range(r * r), position.ravel().tolist(), (r * r, len(i)))
    zeros, dims = cvxopt.matrix(0.0, (r * r, 1)), {"l": 0, "q": [], "s": [r]}
    compiled = time.perf_counter() - clock
    try:
        answer = cvxopt.solvers.cp(
            *(formulas, G, zeros, dims), options={"show_progress": False} | tolerances | options
        )
        word, x = str(answer["status"]), np.array(answer["x"]).ravel()
    except (ArithmeticError, ValueError) as error:  # how it says that a factorization failed
        word, x = f"{type(error).__name__}: {error}", last
    return Attempt(problem.metric(x[position]), word, word == "optimal", calls, compiled)


def entropy_cone(
    objective: MStepObjective, tol: float, time_limit: float, /, **options: Any
) -> Attempt:
    """Solve by QICS on the dual, with its cone of the classical entropy.

    With y_k = c_k (1 - p_k) and M the recession matrix, the dual of the M-step is

        minimize    t - eta sum_k y_k
        subject to  t >= sum_k (c_k - y_k) log(c_k - y_k) + y_k log y_k, M - sum_k y_k v_k v_k' PSD;

    the multiplier of the last is the metric.
    """
    import qics

    clock = time.perf_counter()
    problem = ListedProblem.of(objective)
    (n, r), program = problem.differences.shape, problem.program
    V, ones = problem.differences, scipy.sparse.eye_array(n)
    products = (V[:, :, None] * V[:, None, :]).reshape(n, r * r)
    blocks = [  # of h - G (y, t): t, then 1, c - y, y, and the matrix
        [None, scipy.sparse.csr_array([[-1.0]])],
        [scipy.sparse.csr_array((1, n)), None],
        [ones, None],
        [-ones, None],
        [scipy.sparse.csr_array(products.T), None],
    ]
    h = np.concatenate([[0.0, 1.0], problem.weights, np.zeros(n), program.recession.ravel()])
    model = qics.Model(
        c=np.append(np.full(n, -program.threshold), 1.0)[:, None],
        G=scipy.sparse.block_array(blocks).tocsr(),
        h=h[:, None],
        cones=[qics.cones.ClassEntr(2 * n), qics.cones.PosSemidefinite(r)],
    )
    compiled = time.perf_counter() - clock
    limits = {"tol_gap": tol, "tol_feas": tol, "max_time": max(0.1, time_limit - compiled)}
    answer = qics.Solver(model, **({"verbose": 0, "max_iter": 10**6} | limits | options)).solve()
    return Attempt(
        problem.metric(np.asarray(answer["z_opt"][1][0], dtype=np.float64)),
        f"{answer['sol_status']} ({answer['exit_status']})",
        answer["sol_status"] == "optimal",
        int(answer["num_iter"]),
        compiled,
    )


FORMULA_ENTRANTS = [
    Entrant("CVXOPT", "primal", f"{__name__}:convex_cone", (), "cvxopt", "cvxopt"),
    Entrant("QICS", "dual", f"{__name__}:entropy_cone", (), "qics", "qics"),
]
