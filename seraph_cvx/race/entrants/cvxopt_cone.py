"""CVXOPT's ``solvers.cp``: value, gradient and Hessian in formulas, and the PSD cone."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse

from ...model.m_step_objective import MStepObjective
from ...numerics.checks import FloatArray
from .attempt import Attempt, Entrant
from .listed import ListedProblem


class _OutOfTime(Exception):
    """The time is up; CVXOPT has no word for that."""


def convex_cone(
    objective: MStepObjective,
    tol: float,
    time_limit: float,
    options: Mapping[str, Any] | None = None,
) -> Attempt:
    """Solve by CVXOPT's ``solvers.cp`` over the distinct entries of a PSD matrix.

    Examples
    --------
    >>> from seraph_cvx import PairSet
    >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
    >>> convex_cone(MStepObjective(pairs), 1e-6, 10.0).word  # doctest: +SKIP
    'optimal'
    """
    import cvxopt
    import cvxopt.solvers

    clock = time.perf_counter()
    problem = ListedProblem.of(objective)
    P, entries = problem.pair_matrix, problem.entries
    last, calls = problem.start()[entries], 0

    def formulas(x: Any = None, z: Any = None) -> Any:
        nonlocal last, calls
        if x is None:
            return 0, cvxopt.matrix(last)
        if time.perf_counter() - clock > time_limit:
            raise _OutOfTime
        last, calls = np.array(x).ravel(), calls + (z is not None)
        value, gradient, bend = problem.derivatives(last)
        slope = cvxopt.matrix(gradient[None, :])
        if z is None:
            return value, slope
        return value, slope, cvxopt.matrix(float(z[0]) * ((P.T * bend) @ P))

    words = {"abstol": tol, "reltol": tol, "feastol": tol, "maxiters": 10**6}
    given = {"show_progress": False} | words | dict(options or {})
    r, cone = problem.size, _minus_all_entries(problem)
    G = cvxopt.spmatrix(cone.data, cone.row, cone.col, cone.shape)
    zeros, dims = cvxopt.matrix(0.0, (r * r, 1)), {"l": 0, "q": [], "s": [r]}
    compiled = time.perf_counter() - clock
    try:
        found = cvxopt.solvers.cp(formulas, G, zeros, dims, options=given)
        word, x = str(found["status"]), np.array(found["x"]).ravel()
    except _OutOfTime:
        word, x = "out of time", last
    except (ArithmeticError, ValueError) as error:  # how it says that a factorization failed
        word, x = f"{type(error).__name__}: {error}", last
    inside = time.perf_counter() - clock - compiled
    metric = problem.metric(_whole(x, problem))
    return Attempt(metric, word, word == "optimal", calls, compiled, inside)


def _minus_all_entries(problem: ListedProblem) -> scipy.sparse.coo_array:
    """The matrix that maps the distinct entries of B to all entries of -B, column by column."""
    (i, j), r = problem.entries, problem.size
    off = i != j
    rows = np.concatenate([i + r * j, (j + r * i)[off]])
    columns = np.concatenate([np.arange(len(i)), np.flatnonzero(off)])
    return scipy.sparse.coo_array((-np.ones(len(rows)), (rows, columns)), shape=(r * r, len(i)))


def _whole(x: FloatArray, problem: ListedProblem) -> FloatArray:
    """The symmetric matrix of these distinct entries."""
    (i, j), r = problem.entries, problem.size
    B = np.empty((r, r))
    B[i, j] = B[j, i] = x
    return B


def cvxopt_entrants() -> list[Entrant]:
    """CVXOPT's solver of convex programs with cones."""
    return [Entrant("CVXOPT", "primal", f"{__name__}:convex_cone", (), "cvxopt", "cvxopt")]
