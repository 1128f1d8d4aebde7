"""Nonlinear solvers through CVXPY's ``problem.solve(nlp=True)``, on a factor of the metric.

The statement, with A = LL' and M = R'R the recession matrix of the M-step, is

    minimize  sum_k c_k log(1 + e^{eta - |L'v_k|^2}) + |R L|_F^2

over all L of a given number of columns: smooth, unconstrained, not convex. See `factor.py` for how
that number is chosen. CVXPY has derivatives of it, first and second.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...model.m_step_objective import MStepObjective
from ...numerics.checks import FloatArray
from .attempt import Attempt, Entrant
from .factor import FactorRun, climb, slope_tolerance
from .listed import ListedProblem

if TYPE_CHECKING:
    import cvxpy as cp

PACKAGES = {"UNO": ("unopy", "unopy"), "IPOPT": ("cyipopt", "cyipopt"), "KNITRO": ("knitro",) * 2}
"""By solver: the module that CVXPY imports, and what pip calls it."""

FEW_ENTRIES = 32
"""Up to this many distinct entries of LL', distances are stated by them: fewer than in VL."""


def nonlinear(
    objective: MStepObjective,
    tol: float,
    time_limit: float,
    solver: str,
    options: Mapping[str, Any] | None = None,
) -> Attempt:
    """Solve by a nonlinear solver of CVXPY on the factor, within the tolerance and time.

    Examples
    --------
    >>> from seraph_cvx import PairSet
    >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
    >>> nonlinear(MStepObjective(pairs), 1e-6, 10.0, "UNO").claims  # doctest: +SKIP
    True
    """
    problem = ListedProblem.of(objective)
    given = dict(options or {})
    ranks = {key: given.pop(key) for key in ("rank", "largest_rank") if key in given}

    def method(start: FloatArray, seconds: float) -> FactorRun:
        clock = time.perf_counter()
        L, stated = state_on_factor(problem, start)
        words = options_in_words(solver, slope_tolerance(tol, start), seconds) | given
        stated.solve(nlp=True, solver=solver, **words)
        stats = stated.solver_stats
        iterations = int(stats.num_iters or 0) if stats else 0
        factor = start if L.value is None else np.asarray(L.value, dtype=np.float64)
        inside = stats.solve_time if stats else None
        outside = 0.0 if inside is None else time.perf_counter() - clock - float(inside)
        word = str(stated.status)
        return FactorRun(factor, word, word == "optimal", iterations, max(0.0, outside))

    return climb(objective, tol, time_limit, method, **ranks)


def state_on_factor(problem: ListedProblem, start: FloatArray) -> tuple[cp.Variable, cp.Problem]:
    """State an M-step on the factor of the metric, in CVXPY; the variable starts at `start`.

    Examples
    --------
    >>> from seraph_cvx import PairSet
    >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
    >>> problem = ListedProblem.of(MStepObjective(pairs))
    >>> L, stated = state_on_factor(problem, np.array([[2.0]]))
    >>> stated.is_dcp(), stated.is_dnlp()
    (False, True)
    >>> scale = max(1.0, problem.value(np.array([[4.0]])))
    >>> bool(np.isclose(stated.objective.value * scale, problem.value(np.array([[4.0]]))))
    True
    """
    import cvxpy as cp

    L = cp.Variable(start.shape, name="L")
    L.value = start
    i, j = problem.entries
    if len(i) <= FEW_ENTRIES:
        distances = problem.pair_matrix @ (L @ L.T)[i, j]
    else:
        distances = cp.sum(cp.square(problem.differences @ L), axis=1)
    eigenvalues, vectors = np.linalg.eigh(problem.recession)
    R = (vectors * np.sqrt(np.maximum(eigenvalues, 0.0))).T
    surprise = problem.weights @ cp.logistic(problem.threshold - distances)
    scale = max(1.0, abs(problem.value(start @ start.T)))
    f = surprise + cp.sum_squares(R @ L) - problem.constant
    return L, cp.Problem(cp.Minimize(f / scale))


def options_in_words(solver: str, tol: float, time_limit: float) -> dict[str, Any]:
    """The options of a nonlinear solver for a tolerance and a time limit, by its own names.

    Iterations are not limited: the time is.

    Examples
    --------
    >>> options_in_words("IPOPT", 1e-6, 5.0)["max_wall_time"]
    5.0
    """
    if solver == "UNO":
        return {
            **dict.fromkeys(("primal_tolerance", "dual_tolerance"), tol),
            "time_limit": time_limit,
            "max_iterations": 10**6,
            "logger": "SILENT",
        }
    if solver == "IPOPT":
        return {"tol": tol, "max_wall_time": time_limit, "max_iter": 10**6, "print_level": 0}
    if solver == "KNITRO":
        return {"opttol": tol, "feastol": tol, "maxtime_real": time_limit, "maxit": 10**6}
    raise ValueError(f"The options of {solver} are not known: use one of {', '.join(PACKAGES)}.")


def nonlinear_entrants() -> list[Entrant]:
    """The nonlinear solvers that CVXPY knows; whether they are installed is asked elsewhere."""
    return [
        Entrant(name, "factor", f"{__name__}:nonlinear", (name,), *where)
        for name, where in PACKAGES.items()
    ]
