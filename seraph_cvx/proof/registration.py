"""`problem.solve(method="certified")`: CVXPY solves, and what it answers is proven, or refused."""

from __future__ import annotations

import math
import time
from typing import Any

import cvxpy as cp
from cvxpy.error import SolverError
from cvxpy.settings import LOGGER

from .certify import certify_problem
from .point import as_proved
from .problem_certificate import ProblemCertificate

TOLERANCE = 1e-4
"""The default tolerance of SCS, the loosest of the solvers that CVXPY installs."""


class NotCertified(SolverError):  # type: ignore[misc]
    """A solver's answer is not proven; `certificate` has what is.

    Examples
    --------
    >>> import cvxpy as cp
    >>> from seraph_cvx.proof import NotCertified, register
    >>> register()
    >>> x = cp.Variable()
    >>> try:
    ...     cp.Problem(cp.Minimize(cp.exp(x) - x)).solve(method="certified", tolerance=1e-20)
    ... except NotCertified as error:
    ...     print(error.certificate.relative_gap < 1e-6)
    True
    """

    def __init__(self, message: str, certificate: ProblemCertificate) -> None:
        super().__init__(message)
        self.certificate = certificate


def register() -> None:
    """Make `problem.solve(method="certified")` known to CVXPY.

    The method takes the arguments of `problem.solve` (such as ``solver="SCS"`` and its options),
    and

    tolerance : float
        The largest error of the value, relative to max(1, |optimum|); by default 1e-4.
    time_limit : float
        Seconds after which no new step of the proof is begun.
    verbose : bool
        Also log the steps of the proof, through CVXPY's logger.

    It returns the value, as `problem.solve` does. It raises NotCertified if the proven interval,
    extended to the solver's value, is wider than the tolerance, or if the solver says "infeasible"
    or "unbounded" and that is not proven.

    Examples
    --------
    >>> import cvxpy as cp
    >>> from seraph_cvx.proof import register
    >>> register()
    >>> x = cp.Variable()
    >>> problem = cp.Problem(cp.Minimize(cp.exp(x) + cp.exp(-x)))
    >>> print(f"{problem.solve(method='certified', solver='CLARABEL'):.6f}")
    2.000000
    """
    cp.Problem.register_solve("certified", _solve_certified)


def _solve_certified(
    problem: cp.Problem,
    *arguments: Any,
    tolerance: float = TOLERANCE,
    time_limit: float | None = None,
    verbose: bool = False,
    **options: Any,
) -> Any:
    """Solve a problem, and prove the answer or raise NotCertified."""
    if not tolerance >= 0.0:
        raise ValueError(f"tolerance must be a nonnegative number, not {tolerance!r}.")
    began = time.perf_counter()
    value = problem.solve(*arguments, verbose=verbose, **options)
    left = None if time_limit is None else max(1e-3, time_limit - (time.perf_counter() - began))
    progress = LOGGER.info if verbose else None
    certificate = certify_problem(problem, time_limit=left, progress=progress)
    said = str(problem.status).removesuffix("_inaccurate")
    low, high = certificate.lower, certificate.upper
    if certificate.infeasible or certificate.unbounded:
        is_so = value is not None and value == low == high
        proven = f"proven is that it is {'infeasible' if certificate.infeasible else 'unbounded'}"
    else:
        ends = (low, high) if value is None else (min(low, value), max(high, value))
        is_bounded = all(map(math.isfinite, ends))
        gap = (ends[1] - ends[0]) / max(1.0, *map(abs, ends)) if is_bounded else math.inf
        is_so = said == cp.OPTIMAL and gap <= tolerance
        proven = "proven is that the optimum lies in [{}, {}]".format(*as_proved(low, high))
    if not is_so:
        number = None if value is None else float(value)
        raise NotCertified(
            f"Not certified to {tolerance:g}: {problem.solver_stats.solver_name} says "
            f"{problem.status}, {number!r}; {proven}.",
            certificate,
        )
    return value
