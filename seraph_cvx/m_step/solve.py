"""Solves the M-step (11) by any solver, and certifies the answer."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..model.m_step_objective import MStepObjective
from ..numerics.arrays import one_blas_thread
from ..numerics.checks import FloatArray, check_count, check_number
from ..numerics.psd_cone import check_metric
from ..solvers.newton import Watch, rough_m_step
from ..solvers.solution import (
    MStepSolution,
    gradient_method,
    newton_method,
    require_attained,
)

if TYPE_CHECKING:
    from .conic import ConicMStep

OWN_SOLVERS = ("newton", "fista", "projected-gradient")
"""The solvers of this package; every other one is CVXPY's."""

FORMULATIONS = ("primal", "dual")


@dataclass
class MStepSolver:
    """A solver for all M-steps of an alternation or path, which compiles its statement once.

    The parameters are those of :func:`solve_m_step`; `deadline`, on the clock of
    `time.perf_counter`, is that of the whole fit, and `watch` is told the steps of this package's
    own solvers.
    """

    solver: Any = "newton"
    formulation: str = "primal"
    max_iter: int | None = None
    time_limit: float | None = None
    solver_options: Mapping[str, Any] | None = None
    allow_unattained: bool = False
    deadline: float = np.inf
    watch: Watch | None = None
    _compiled: ConicMStep | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.solver, str):
            own = self.solver.lower() in OWN_SOLVERS
            self.solver = self.solver.lower() if own else self.solver.upper()
        else:
            methods = (getattr(self.solver, name, None) for name in ("name", "solve_via_data"))
            if isinstance(self.solver, type) or not all(map(callable, methods)):
                raise TypeError(
                    f"solver={self.solver!r} is neither the name of a solver nor a solver object "
                    'of CVXPY: use "newton", or the name of a conic solver such as "CLARABEL".'
                )
        if self.formulation not in FORMULATIONS:
            raise ValueError(
                f'formulation={self.formulation!r} is not known: use "primal" or "dual".'
            )
        if self.max_iter is not None:
            self.max_iter = check_count(self.max_iter, "max_iter")
        if self.time_limit is not None:
            self.time_limit = check_number(self.time_limit, "time_limit", 0.0, strict=True)
        if self.solver in OWN_SOLVERS:
            if self.solver_options:
                raise ValueError(
                    f"{self.solver} takes no solver_options: that is for conic solvers, such as "
                    'solver="CLARABEL". Leave it out.'
                )
        elif isinstance(self.solver, str):
            from .conic import require_conic

            require_conic(self.solver)

    def solve(
        self,
        objective: MStepObjective,
        tol: float = 1e-8,
        start: FloatArray | None = None,
        start_factor: FloatArray | None = None,
    ) -> MStepSolution:
        """Solve an M-step to a certified relative gap of `tol`, from `start` if the solver can.

        `start_factor` is a factor of the metric to start from, instead of `start`.
        """
        tol = check_number(tol, "tol", 0.0, strict=True)
        if start is not None:
            start = check_metric(start, objective.pairs.n_features, "start")
        with one_blas_thread(min(objective.pairs.points.shape)):
            if not self.allow_unattained:
                require_attained(objective)
            limit = 20_000 if self.max_iter is None else self.max_iter
            given = objective, tol, limit, start, self._seconds
            if self.solver == "newton":
                return newton_method(*given, watch=self.watch, start_factor=start_factor)
            if self.solver in OWN_SOLVERS:
                return gradient_method(self.solver, *given, watch=self.watch)
        from .conic import ConicMStep

        if self._compiled is None or not self._compiled.is_compiled_for(objective):
            self._compiled = ConicMStep(objective, self.solver, self.formulation)
        limits = self._seconds, self.max_iter, self.solver_options
        return self._compiled.solve(objective, tol, *limits)

    def rough_start(
        self, objective: MStepObjective, tol: float, start: FloatArray | None = None
    ) -> tuple[FloatArray, int]:
        """A factor of a metric near the optimum, uncertified, and the passes that it took."""
        with one_blas_thread(min(objective.pairs.points.shape)):
            require_attained(objective)
            seconds = self._seconds
            deadline = np.inf if seconds is None else time.perf_counter() + seconds
            return rough_m_step(objective, tol, start, deadline, self.watch)

    @property
    def _seconds(self) -> float | None:
        """How long the next M-step may take; None: as long as it takes."""
        left = max(self.deadline - time.perf_counter(), 1e-3)  # some take 0 for no limit
        left = left if self.time_limit is None else min(left, self.time_limit)
        return None if np.isinf(left) else left


def solve_m_step(
    objective: MStepObjective,
    solver: Any = "newton",
    tol: float = 1e-8,
    *,
    start: FloatArray | None = None,
    formulation: str = "primal",
    max_iter: int | None = None,
    time_limit: float | None = None,
    solver_options: Mapping[str, Any] | None = None,
    allow_unattained: bool = False,
) -> MStepSolution:
    """Solve an M-step, argmin f(A) over A PSD (11), by any solver, and certify the answer.

    Parameters
    ----------
    objective : MStepObjective
    solver : str
        "newton" (Newton's method on a factor of A, and FISTA where that does not close the gap),
        "fista" alone or "projected-gradient", the paper's method, both without penalties; or any
        CVXPY solver with the PSD and the exponential cone: "CLARABEL", "SCS", "MOSEK", ...
    tol : float
        The relative gap at which the answer counts as certified; a conic solver's own tolerance.
    start : (m, m) array, optional
        Where "newton", "fista" and "projected-gradient" start.
    formulation : "primal" or "dual"
        The formulation that a conic solver is given.
    max_iter, time_limit : optional
        Limits on iterations and seconds.
    solver_options : mapping, optional
        Passed to the conic solver as they are.
    allow_unattained : bool
        Solve even if no optimum exists: "newton" (then FISTA alone), "fista" and
        "projected-gradient" return their last iterate.

    Returns
    -------
    MStepSolution
        A status other than certified is also issued as a :class:`NotCertified` warning.

    Raises
    ------
    OptimumNotAttained
        Where f has no minimizer (trace_weight = 0 and too few similar pairs).

    Examples
    --------
    >>> from seraph_cvx import MStepObjective, PairSet, solve_m_step
    >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
    >>> solution = solve_m_step(MStepObjective(pairs))
    >>> solution.status.value, solution.relative_gap <= 1e-8
    ('certified', True)
    """
    if not isinstance(objective, MStepObjective):
        cure = "make one by MStepObjective(pairs, ...)"
        if type(objective).__module__.startswith("cvxpy."):
            cure = (
                "give the objective it was stated from, or certify a problem that you changed by "
                "certify_problem(problem)"
            )
        kind = type(objective).__name__
        raise TypeError(f"solve_m_step takes an MStepObjective, not {kind}: {cure}.")
    chosen = MStepSolver(
        solver,
        formulation=formulation,
        max_iter=max_iter,
        time_limit=time_limit,
        solver_options=solver_options,
        allow_unattained=allow_unattained,
    )
    solution = chosen.solve(objective, tol, start)
    solution.warn_unless_certified(tol, stacklevel=2)
    return solution
