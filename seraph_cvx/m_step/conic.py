"""The M-step by any conic solver that CVXPY can call: compiled once, solved often.

What a solver claims is not taken as evidence: its matrix is symmetrized, projected to the cone and
certified.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.error import SolverError

from ..model.m_step_objective import MStepObjective
from ..numerics.checks import FloatArray
from ..solvers.solution import MStepSolution, Status, grade_matrix
from .statement import build_statement, count_entries

DEFAULT_MEMORY_LIMIT = 4 * 2**30
"""The most bytes that compiling a statement may take."""

BYTES_PER_ENTRY = 250
"""Peak memory of CVXPY's compilation per entry of the pair matrix, measured and rounded up."""

_TOLERANCES: dict[str, tuple[str, ...]] = {
    "SCS": ("eps_abs", "eps_rel"),
    "CLARABEL": ("tol_gap_abs", "tol_gap_rel", "tol_feas"),
}
_SOLVER_FAULTS = (SolverError, RuntimeError, ValueError, ArithmeticError, LookupError, TypeError)
"""The errors that a solver and its interface may raise; any other is a bug of ours."""

_TIME_LIMITS = {"SCS": "time_limit_secs", "CLARABEL": "time_limit", "MOREAU": "time_limit"}
_ITERATION_LIMITS = {"SCS": "max_iters", "CLARABEL": "max_iter", "MOREAU": "max_iter"}


class ProblemTooLarge(MemoryError):
    """A CVXPY statement of the M-step would not fit into the memory limit."""


class ConicMStep:
    """A compiled M-step, which serves all M-steps of the same pairs, mu and eta.

    Parameters
    ----------
    objective : MStepObjective
        The first M-step; later ones may differ in soft labels and trace weight.
    solver : str or cvxpy solver object
        Any of :func:`conic_solvers`.
    formulation : "primal" or "dual"
    memory_limit : int
        In bytes; a statement that would take more is refused.

    Examples
    --------
    >>> from seraph_cvx import MStepObjective, PairSet
    >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
    >>> first = MStepObjective(pairs)
    >>> compiled = ConicMStep(first, "CLARABEL")
    >>> solution = compiled.solve(first, tol=1e-6)
    >>> second = MStepObjective(pairs, previous_metric=solution.metric)
    >>> compiled.solve(second, tol=1e-6).relative_gap < 1e-4
    True
    """

    def __init__(
        self,
        objective: MStepObjective,
        solver: Any,
        formulation: str = "primal",
        memory_limit: int = DEFAULT_MEMORY_LIMIT,
    ) -> None:
        self.solver = solver
        self.solver_name = solver if isinstance(solver, str) else str(solver.name())
        if isinstance(solver, str):
            require_conic(solver)
        _require_memory(objective, memory_limit)
        clock = time.perf_counter()
        self.formulation = formulation
        self.statement = build_statement(objective, formulation)
        self._first = objective
        self._fresh_seconds = time.perf_counter() - clock

    def solve(
        self,
        objective: MStepObjective,
        tol: float = 1e-8,
        time_limit: float | None = None,
        max_iter: int | None = None,
        solver_options: Mapping[str, Any] | None = None,
        *,
        warm_start: bool = False,
    ) -> MStepSolution:
        """Set the Parameters, run the solver, and certify what it returns.

        Parameters
        ----------
        objective : MStepObjective
            One of the same family.
        tol, time_limit, max_iter, solver_options
            See :func:`seraph_cvx.solve_m_step`.
        warm_start : bool
            Start from what the solver kept of the M-step before, where it can: faster, but the
            answer then depends on that M-step. Without it the same M-step has the same answer, bit
            for bit, whatever was solved before.
        """
        if not self.is_compiled_for(objective):
            raise ValueError(
                "This problem was compiled for other pairs, unlabeled_weight, threshold or "
                "penalties: make a new ConicMStep for them."
            )
        clock = time.perf_counter()
        options = options_for(self.solver_name, tol, time_limit, max_iter)
        options.update(solver_options or {})
        self.statement.update(objective)
        raw, word, trouble, inside = self._run(options, warm_start)
        outside = time.perf_counter() - clock - inside + self._fresh_seconds
        self._fresh_seconds = 0.0
        stats = None if trouble else self.statement.problem.solver_stats
        return replace(
            _grade(objective, raw, tol, trouble, word),
            solver=self.solver_name,
            iterations=int((stats.num_iters if stats else 0) or 0),
            seconds=time.perf_counter() - clock,
            solver_seconds=inside,
            compile_seconds=outside,
        )

    def is_compiled_for(self, objective: MStepObjective) -> bool:
        """Whether the objective differs only in soft labels, trace weight and penalty weights."""
        mine, its = self._first.penalties, objective.penalties
        return (
            self._first.family.is_same(objective.family)
            and len(mine) == len(its)
            and all(one.is_like(other) for one, other in zip(mine, its, strict=True))
        )

    def _run(
        self, options: dict[str, Any], warm_start: bool
    ) -> tuple[FloatArray | None, str, str, float]:
        """Run the solver: its raw matrix, its status, an error message, and its seconds."""
        problem = self.statement.problem
        data, chain, inverse = problem.get_problem_data(self.solver, solver_opts=options)
        if not warm_start:
            problem._solver_cache.clear()  # some interfaces use it without being asked to
        clock = time.perf_counter()
        try:
            answer = chain.solve_via_data(problem, data, warm_start, solver_opts=options)
            inside = time.perf_counter() - clock
            problem.unpack_results(answer, chain, inverse)
        except _SOLVER_FAULTS as error:
            inside = time.perf_counter() - clock
            return None, "solver_error", f"{type(error).__name__}: {error}", inside
        return self.statement.metric, str(problem.status), "", inside


def conic_solvers() -> dict[str, str]:
    """List CVXPY's installed solvers, each with "" or the reason why it cannot solve an M-step.

    Asked of CVXPY itself, by a tiny problem with the cones of an M-step.

    Examples
    --------
    >>> conic_solvers()["CLARABEL"], conic_solvers()["OSQP"]
    ('', 'OSQP has neither the PSD nor the exponential cone')
    """
    return {name: _shortcoming(name) for name in cp.installed_solvers()}


def require_conic(solver: str) -> None:
    """Require an installed solver that can solve an M-step; the error says why it cannot."""
    able = [name for name, reason in conic_solvers().items() if not reason]
    reason = conic_solvers().get(solver, f"CVXPY finds no solver {solver!r} installed")
    if reason:
        raise ValueError(f'{reason}. Use one of {", ".join(able)}, or "fista".')


@cache
def _shortcoming(solver: str) -> str:
    def can(*atoms: str) -> bool:
        A = cp.Variable((2, 2), PSD="PSD" in atoms)
        cost = cp.sum(cp.logistic(cp.diag(A))) if "exp" in atoms else cp.sum(cp.diag(A))
        try:
            cp.Problem(cp.Minimize(cost), [cp.trace(A) <= 1]).get_problem_data(solver)
        except SolverError:
            return False
        return True

    if can("PSD", "exp"):
        return ""
    psd, exponential = can("PSD"), can("exp")
    if not psd and not exponential:
        return f"{solver} has neither the PSD nor the exponential cone"
    if psd and exponential:
        return f"{solver} has the PSD and the exponential cone, but not both in one problem"
    return f"{solver} has no {'exponential' if psd else 'PSD'} cone"


def _require_memory(objective: MStepObjective, limit: int) -> None:
    n_entries, mu = count_entries(objective), objective.mu
    n_pairs = objective.pairs.n_labeled + (objective.pairs.n_unlabeled if mu > 0.0 else 0)
    needed = n_pairs * n_entries * BYTES_PER_ENTRY
    if needed > limit:
        raise ProblemTooLarge(
            f"A CVXPY statement of {n_pairs} pairs x {n_entries} matrix entries would take "
            f"about {needed / 2**30:.1f} GiB to compile; the limit is {limit / 2**30:.1f} GiB. "
            'Use solver="fista", which streams the pairs, or raise memory_limit.'
        )


def options_for(
    solver: str, tol: float, time_limit: float | None, max_iter: int | None
) -> dict[str, Any]:
    """The solver's own options for a tolerance and limits."""
    if solver == "MOSEK":
        parameters: dict[str, Any] = {
            f"MSK_DPAR_INTPNT_CO_TOL_{name}": tol for name in ("REL_GAP", "PFEAS", "DFEAS")
        }
        if time_limit is not None:
            parameters["MSK_DPAR_OPTIMIZER_MAX_TIME"] = time_limit
        if max_iter is not None:
            parameters["MSK_IPAR_INTPNT_MAX_ITERATIONS"] = max_iter
        return {"mosek_params": parameters}
    if solver == "COPT":
        options: dict[str, Any] = {"RelGap": tol, "FeasTol": tol, "DualTol": tol}
        if time_limit is not None:
            options["TimeLimit"] = time_limit
        return options
    options = dict.fromkeys(_TOLERANCES.get(solver, ()), tol)
    if solver == "MOREAU":  # an interior-point method of Clarabel's kind
        options = {"ipm_settings": dict.fromkeys(_TOLERANCES["CLARABEL"], tol)}
    for table, value in ((_TIME_LIMITS, time_limit), (_ITERATION_LIMITS, max_iter)):
        if value is not None:
            if solver not in table:
                raise ValueError(
                    f"The option of {solver} for this limit is not known: set it in solver_options."
                )
            options[table[solver]] = value
    return options


def _grade(
    objective: MStepObjective, raw: FloatArray | None, tol: float, trouble: str, word: str
) -> MStepSolution:
    """Certify a raw matrix, and give it a status."""
    nothing = MStepSolution(
        metric=None,
        value=np.nan,
        certificate=None,
        status=Status.FAILED,
        solver="",
        solver_status=word,
        iterations=0,
        seconds=0.0,
    )
    cure = 'Try solver="fista", another conic solver or the other formulation.'
    if trouble:
        return replace(nothing, message=f"The solver failed: {trouble} {cure}")
    if raw is None:
        return replace(nothing, message=f"The solver returned no matrix ({word}). {cure}")
    graded = grade_matrix(objective, raw)
    if graded is None:
        return replace(nothing, message=f"The solver's matrix holds NaN or infinity. {cure}")
    certificate = graded.certificate
    accurate = certificate.relative_gap <= tol
    return replace(
        nothing,
        metric=graded.metric,
        value=certificate.primal_value,
        certificate=certificate,
        status=Status.CERTIFIED if accurate else Status.INACCURATE,
        psd_violation=graded.psd_violation,
        message="" if accurate else "polish=True closes the gap by FISTA from this answer.",
    )
