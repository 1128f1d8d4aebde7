"""The M-step by any conic solver that CVXPY can call: compiled once, solved often.

What a solver claims is not taken as evidence: its matrix is symmetrized, projected to the cone and
certified.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
from cvxpy.error import SolverError

from ..model.m_step_objective import MStepObjective
from ..numerics.checks import FloatArray
from ..solvers.solution import MStepSolution, Status, grade_matrix
from .statement import build_statement

MEMORY_LIMIT = 4 * 2**30
"""The most bytes that compiling a statement may take."""

BYTES_PER_ENTRY = 250
"""Peak memory of CVXPY's compilation per entry of the pair matrix, measured and rounded up."""

CLOSE_THE_GAP = (
    "solve_m_step(objective, start=solution.metric) closes the gap by newton from this answer; or "
    "set solver_options for a more accurate one."
)
"""What to do about an answer that is not certified."""

_SOLVER_FAULTS = (SolverError, RuntimeError, ValueError, ArithmeticError, LookupError, TypeError)
"""The errors that a solver and its interface may raise; any other is a bug of ours."""


class _OptionNames(NamedTuple):
    """What a solver calls its tolerances, its limit of seconds and its limit of iterations."""

    tolerances: tuple[str, ...] = ()
    time_limit: str = ""
    max_iter: str = ""


_CLARABEL = _OptionNames(("tol_gap_abs", "tol_gap_rel", "tol_feas"), "time_limit", "max_iter")
_OPTION_NAMES = {
    "SCS": _OptionNames(("eps_abs", "eps_rel"), "time_limit_secs", "max_iters"),
    "CLARABEL": _CLARABEL,
    "OSQP": _OptionNames(("eps_abs", "eps_rel"), "time_limit", "max_iter"),
    "HIGHS": _OptionNames(
        ("primal_feasibility_tolerance", "dual_feasibility_tolerance", "ipm_optimality_tolerance"),
        "time_limit",
    ),
    "CVXOPT": _OptionNames(("abstol", "reltol", "feastol"), max_iter="max_iters"),
    "MOREAU": _CLARABEL,  # an interior-point method of Clarabel's kind
    "COPT": _OptionNames(("RelGap", "FeasTol", "DualTol"), "TimeLimit", "BarIterLimit"),
    "MOSEK": _OptionNames(
        tuple(f"MSK_DPAR_INTPNT_CO_TOL_{name}" for name in ("REL_GAP", "PFEAS", "DFEAS")),
        "MSK_DPAR_OPTIMIZER_MAX_TIME",
        "MSK_IPAR_INTPNT_MAX_ITERATIONS",
    ),
}


class ProblemTooLarge(MemoryError):
    """A CVXPY statement of the M-step would not fit into `MEMORY_LIMIT`."""


class ConicMStep:
    """A compiled M-step, which serves all M-steps of the same pairs, mu and eta.

    Later ones may differ in soft labels, trace weight and weights of penalties. A statement whose
    compilation would take more than `MEMORY_LIMIT` bytes is refused.
    """

    def __init__(self, objective: MStepObjective, solver: Any, formulation: str = "primal") -> None:
        self.solver = solver
        self.solver_name = solver if isinstance(solver, str) else str(solver.name())
        if isinstance(solver, str):
            require_conic(solver)
        m, n_pairs = objective.pairs.n_features, objective.pairs.n_labeled
        n_entries = m * (m + 1) // 2
        n_pairs += objective.pairs.n_unlabeled if objective.mu > 0.0 else 0
        needed = n_pairs * n_entries * BYTES_PER_ENTRY
        if needed > MEMORY_LIMIT:
            raise ProblemTooLarge(
                f"A CVXPY statement of {n_pairs} pairs x {n_entries} matrix entries would take "
                f"about {needed / 2**30:.1f} GiB to compile; the limit is "
                f'{MEMORY_LIMIT / 2**30:.1f} GiB. Use solver="newton", which streams the pairs.'
            )
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
    ) -> MStepSolution:
        """Set the Parameters, run the solver, and certify what it returns.

        The same M-step has the same answer, bit for bit, whatever was solved before.
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
        raw, status, error, inside = self._run(options)
        outside = time.perf_counter() - clock - inside + self._fresh_seconds
        self._fresh_seconds = 0.0
        stats = None if error else self.statement.problem.solver_stats
        return MStepSolution(
            **_grade(objective, raw, tol, error, status),
            solver=self.solver_name,
            solver_status=status,
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
            and all(
                one.with_weight(other.weight) == other for one, other in zip(mine, its, strict=True)
            )
        )

    def _run(self, options: dict[str, Any]) -> tuple[FloatArray | None, str, str, float]:
        """Run the solver: its raw matrix, its status, an error message, and its seconds."""
        problem = self.statement.problem
        data, chain, inverse = problem.get_problem_data(self.solver, solver_opts=options)
        problem._solver_cache.clear()  # some interfaces use it without being asked to
        clock = time.perf_counter()
        try:
            answer = chain.solve_via_data(problem, data, False, solver_opts=options)
            inside = time.perf_counter() - clock
            problem.unpack_results(answer, chain, inverse)
        except _SOLVER_FAULTS as error:
            inside = time.perf_counter() - clock
            return None, "solver_error", f"{type(error).__name__}: {error}", inside
        return self.statement.metric, str(problem.status), "", inside


def conic_solvers() -> list[str]:
    """CVXPY's installed solvers that can solve an M-step."""
    return [name for name in cp.installed_solvers() if _is_able(name)]


def require_conic(solver: str) -> None:
    """Require an installed solver that can solve an M-step; the error says why it cannot."""
    if solver not in conic_solvers():
        is_there = solver in cp.installed_solvers()
        reason = "lacks the PSD or the exponential cone" if is_there else "is not installed"
        raise ValueError(
            f'The solver {solver!r} {reason}. Use one of {", ".join(conic_solvers())}, or "newton".'
        )


@cache
def _is_able(solver: str) -> bool:
    """Ask CVXPY itself, by a tiny problem with the cones of an M-step."""
    A = cp.Variable((2, 2), PSD=True)
    problem = cp.Problem(cp.Minimize(cp.sum(cp.logistic(cp.diag(A)))), [cp.trace(A) <= 1])
    try:
        problem.get_problem_data(solver)
    except SolverError:
        return False
    return True


def options_for(
    solver: str, tol: float, time_limit: float | None, max_iter: int | None
) -> dict[str, Any]:
    """The solver's own options for a tolerance and limits."""
    names = _OPTION_NAMES.get(solver, _OptionNames())
    options: dict[str, Any] = dict.fromkeys(names.tolerances, tol)
    if solver == "MOREAU":
        options = {"ipm_settings": options}
    for name, value in ((names.time_limit, time_limit), (names.max_iter, max_iter)):
        if value is not None:
            if not name:
                raise ValueError(
                    f"The option of {solver} for this limit is not known: set it in solver_options."
                )
            options[name] = value
    return {"mosek_params": options} if solver == "MOSEK" else options


def _grade(
    objective: MStepObjective, raw: FloatArray | None, tol: float, error: str, solver_status: str
) -> dict[str, Any]:
    """The fields of a solution that say what a raw matrix is worth."""
    graded = None if raw is None else grade_matrix(objective, raw)
    if graded is None:
        reason = "The solver's matrix holds NaN or infinity."
        if error:
            reason = f"The solver failed: {error}"
        elif raw is None:
            reason = f"The solver returned no matrix ({solver_status})."
        cure = 'Try solver="newton", another conic solver or the other formulation.'
        nothing = {"found": None, "value": np.nan, "certificate": None, "status": Status.FAILED}
        return {**nothing, "message": f"{reason} {cure}"}
    certificate = graded.certificate
    is_certified = certificate.relative_gap <= tol
    return {
        "found": graded.metric,
        "value": certificate.primal_value,
        "certificate": certificate,
        "status": Status.CERTIFIED if is_certified else Status.INACCURATE,
        "psd_violation": graded.psd_violation,
        "message": "" if is_certified else CLOSE_THE_GAP,
    }
