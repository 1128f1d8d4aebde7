"""Any convex problem of CVXPY in a race: what each solver says of it, and what is proven."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
from cvxpy.error import SolverError
from cvxpy.lin_ops.lin_utils import ID_COUNTER
from cvxpy.reductions.solvers.solver import Solver

from ..m_step.conic import options_for
from ..processes.isolation import Outcome
from ..proof import ProblemCertificate, certify_problem
from ..proof.chord import values_set
from ..proof.point import Unjudged, judge_point
from .attempt import (
    Attempt,
    Entrant,
    NotForThisProblem,
    chosen_entrants,
    returned_by,
)
from .conic_solvers import DISTRIBUTIONS, FAILED, ITERATIONS, solve_timed
from .grading import ungraded
from .race_table import TOLERANCE
from .suite import checksum_of
from .verdict import WITHOUT_POINT, Answer, dual_gap, true_gap, verdict


class SentProblem(NamedTuple):
    """A problem as it is sent to the process of a run, without what solvers left in it."""

    problem: cp.Problem
    numbered: int  # CVXPY numbers variables; those that the other process makes come after these

    def load(self) -> cp.Problem:
        """The problem, none of whose variables and multipliers has a value."""
        ID_COUNTER.count = max(ID_COUNTER.count, self.numbered)
        duals = [dual for c in self.problem.constraints for dual in c.dual_variables]
        for variable in [*self.problem.variables(), *duals]:
            variable.save_value(None)
        return self.problem


class ProblemAnswer(NamedTuple):
    """What a solver leaves in a problem."""

    value: float | None
    variables: list[Any]
    multipliers: list[Any]


class ProblemInstance:
    """A problem as the instance of a race; it is certified when its first answer is judged."""

    ladder: tuple[float | None, ...] = (None,)

    def __init__(self, problem: cp.Problem, progress: Callable[[str], None] | None = None) -> None:
        self.problem, self._progress = problem, progress

    @property
    def name(self) -> str:
        """What it is called, if it has no name."""
        n, constraints = self.problem.size_metrics.num_scalar_variables, self.problem.constraints
        return f"problem of {n} variables and {len(constraints)} constraints"

    @property
    def sent(self) -> SentProblem:
        """The problem for other processes."""
        bare = cp.Problem(self.problem.objective, self.problem.constraints)
        return SentProblem(bare, ID_COUNTER.count)

    @cached_property
    def certificate(self) -> ProblemCertificate:
        """What is proven of the problem."""
        return certify_problem(self.problem, progress=self._progress)

    @property
    def checksum(self) -> str:
        """The SHA-256 checksum of its text and of the numbers in it."""
        numbers = [*self.problem.constants(), *self.problem.parameters()]
        values = [leaf.value for leaf in numbers]
        arrays = [np.asarray(v.toarray() if hasattr(v, "toarray") else v) for v in values]
        return checksum_of(str(self.problem), *arrays)

    def reference(self) -> dict[str, Any]:
        """What is proven, for the journal."""
        proven = self.certificate
        ends = {"lower": finite(proven.lower), "upper": finite(proven.upper)}
        return ends | {"checksum": self.checksum, "claim": proven.claim}

    def grade(self, _: float | None, tol: float | None, outcome: Outcome) -> dict[str, Any]:
        """Judge the outcome of a run by what is proven: its row."""
        row, answer = ungraded(outcome)
        if row["outcome"] != "done":
            return row
        clock = time.perf_counter()
        tolerance = max(TOLERANCE, 10.0 * (tol or 0.0))
        judged = Answer(row["said"], tolerance=tolerance)
        values = [] if answer is None or row["said"] == FAILED else answer.variables
        if values and all(value is not None for value in values):
            with values_set(self.problem.variables(), values):
                point = judge_point(self.problem)
                gap = dual_gap(self.problem, self.certificate, answer.multipliers)
            judged = Answer(row["said"], answer.value, point, gap, tolerance)
            row |= self._measured(judged)
        found = verdict(self.certificate, judged)
        return row | {"proof": found, "grade_seconds": time.perf_counter() - clock}

    def _measured(self, answer: Answer) -> dict[str, Any]:
        """The objective at a point, its worst violation, and the gaps."""
        point, certificate = answer.point, self.certificate
        if point is None:
            return {}
        found: dict[str, Any] = {"violation": finite(point.violation)}
        found |= {} if answer.dual_gap is None else {"dual_gap": finite(answer.dual_gap[1])}
        if isinstance(point.objective, Unjudged):
            return found | {"value": finite(point.objective.value)}
        low, high = point.objective
        found["value"] = finite(0.5 * low + 0.5 * high)
        if math.isfinite(certificate.relative_gap) and math.isfinite(certificate.upper):
            found["true_gap"] = finite(true_gap(certificate, low, high))
        return found

    @staticmethod
    def entrants(solvers: Sequence[Any] | None) -> list[Entrant]:
        """The solvers of a race on problems: CVXPY's by name, those of classes, and functions."""
        installed = cp.installed_solvers()

        def named(name: str) -> list[Entrant]:
            if name not in installed:
                raise ValueError(
                    f"The solver {name!r} is not installed; these are: {', '.join(installed)}."
                )
            distribution = DISTRIBUTIONS.get(name, name.lower())
            function = f"{__name__}:solve_problem"
            return [Entrant(name, "", function, (name,), distribution=distribution)]

        def is_solver(given: Any) -> bool:
            return isinstance(given, Solver) or (callable(given) and not isinstance(given, type))

        given = installed if solvers is None else solvers
        return chosen_entrants(given, named, is_solver, f"{__name__}:call_on_problem")


def finite(x: Any) -> float | None:
    """A number for a row, None where it is not finite."""
    return float(x) if x is not None and math.isfinite(x) else None


def solve_problem(
    problem: cp.Problem, tol: float | None, _: float, solver: Any, /, **options: Any
) -> Attempt:
    """Solve by a solver of CVXPY with its own defaults, or to a tolerance."""
    if tol is not None:
        asked = options_for(str(solver), tol, None, None)
        if not asked:
            raise NotForThisProblem(f"how {solver} is told a tolerance is not known: give options")
        options = asked | ITERATIONS.get(str(solver), {}) | options
    try:
        run = solve_timed(problem, solver, lambda _: options)
    except (SolverError, ValueError) as error:
        raise NotForThisProblem(str(error)) from error
    took = run.iterations, run.compile_seconds, run.solve_seconds
    return _attempt(problem, run.status, *took)


def call_on_problem(
    problem: cp.Problem, tol: float | None, time_limit: float, solver: Any, /, **options: Any
) -> Attempt:
    """Solve by a solver of the user's own: an instance of a class of CVXPY's kind, or a function.

    A function sets values of variables, and returns nothing or a status.
    """
    if isinstance(solver, Solver):
        return solve_problem(problem, tol, time_limit, solver, **options)
    said, _ = returned_by(solver, problem, tol, time_limit, options)
    if said is not None and not isinstance(said, str):
        raise TypeError(
            f"the function returned {said!r}: it sets the values of the problem's variables, and "
            "returns nothing or a status such as 'infeasible'"
        )
    return _attempt(problem, said or problem.status or cp.OPTIMAL)


def _attempt(problem: cp.Problem, status: str, *took: Any) -> Attempt:
    """What came of a run; it claims to have solved the problem if its status has no "but"."""
    values = [variable.value for variable in problem.variables()]
    multipliers = [constraint.dual_value for constraint in problem.constraints]
    answer = ProblemAnswer(problem.value, values, multipliers)
    return Attempt(answer, status, status == cp.OPTIMAL or status in WITHOUT_POINT, *took)
