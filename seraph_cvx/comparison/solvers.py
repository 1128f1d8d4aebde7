"""The solvers of a race: first-order methods, CVXPY's conic solvers, and registered ones.

A solver is a function of an M-step, a tolerance and a time limit that returns an :class:`Attempt`:
a matrix, and what the solver says of it. Only the matrix is graded; nothing else is believed.
To enter a solver of your own, put one function into a file and register it by name. This one, in a
file ``toy.py``, takes projected gradient steps of fixed length:

.. code-block:: python

    import numpy as np

    from seraph_cvx.comparison.solvers import Attempt
    from seraph_cvx.numerics.psd_cone import project


    def solve(objective, tol, time_limit):
        m = objective.pairs.n_features
        A, length = np.zeros((m, m)), 20.0 / objective.smoothness_bound
        for step in range(2000):
            new = project(A - length * objective.gradient(A))
            if np.linalg.norm(new - A) <= tol * length:
                return Attempt(new, "stationary", claims=True, iterations=step)
            A = new
        return Attempt(A, "out of steps", claims=False, iterations=2000)

and races after

.. code-block:: python

    from seraph_cvx import compare_solvers
    from seraph_cvx.comparison.solvers import register_solver

    register_solver("toy", "toy:solve")
    table = compare_solvers("tiny", solvers=["toy", "fista"])

Each run is in a process of its own, which imports the function: it cannot live in the script that
calls ``compare_solvers``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from ..model.m_step_objective import MStepObjective
from ..numerics.checks import FloatArray
from ..solvers.first_order import fista, projected_gradient
from ..solvers.solution import Status


class NotForThisProblem(Exception):
    """What a solver raises that cannot take an M-step, whatever the tolerance; it says why.

    A race shows the run as "not for this problem", which counts neither for nor against it.
    """


@dataclass(frozen=True)
class Attempt:
    """What a solver returns.

    Attributes
    ----------
    matrix : (m, m) array or None
        As the solver left it: neither symmetrised nor projected.
    word : str
        What the solver says, in its own words.
    claims : bool
        Whether by that it claims to have reached the tolerance.
    iterations : int
    compile_seconds, solve_seconds : float
        Stating and canonicalising the problem, and inside the solver; where a solver leaves them
        out, all its time counts as solving.
    dimacs : list of six floats, optional
        See `dimacs.py`.
    """

    matrix: FloatArray | None
    word: str
    claims: bool
    iterations: int = 0
    compile_seconds: float = 0.0
    solve_seconds: float | None = None
    dimacs: Sequence[float] | None = None


Solver = Callable[[MStepObjective, float, float], Attempt]
"""The type of a solver's function, solve(objective, tol, time_limit)."""


@dataclass(frozen=True)
class Entrant:
    """A solver, the formulation it is given, and where its function is: ``module:function``."""

    solver: str
    formulation: str
    function: str
    extra: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The name and formulation, as in ``SCS/dual``, or the name alone."""
        return f"{self.solver}/{self.formulation}" if self.formulation else self.solver

    def load(self) -> Callable[..., Any]:
        """Import the function that solves."""
        module, _, name = self.function.partition(":")
        function: Callable[..., Any] = getattr(import_module(module), name)
        return function


_REGISTERED: dict[str, Entrant] = {}


def register_solver(name: str, function: str | Solver) -> None:
    """Enter a solver into every race from now on.

    Parameters
    ----------
    name : str
        What the tables call it.
    function : str or callable
        ``"module:function"``, or a function at the top level of an importable module.

    Examples
    --------
    >>> register_solver("own", "seraph_cvx.comparison.solvers:first_order")
    >>> "own" in [entrant.solver for entrant in entrants()]
    True
    >>> forget_solver("own")
    """
    if not isinstance(function, str):
        function = f"{function.__module__}:{function.__qualname__}"
    module, _, attribute = function.partition(":")
    if module == "__main__":
        raise ValueError(
            f"{name}: the function is defined in the running script, which other processes cannot "
            "import. Move it to a file of its own, say own_solver.py, and register "
            f'"own_solver:{attribute}".'
        )
    if not attribute or "." in attribute or not callable(_find(module, attribute)):
        raise ValueError(
            f"{name}: {function!r} is not a top-level function of an importable module. Write it "
            f"as module:function, with the module on sys.path ({sys.path[0]!r}, ...)."
        )
    if name in _FIRST_ORDER or name.isupper() or not name or set(name) & set("/=, "):
        raise ValueError(
            f"{name!r} is taken or not a name: use one word, not in capitals (those are CVXPY's "
            "solvers), without / = and comma."
        )
    _REGISTERED[name] = Entrant(name, "", function)


def forget_solver(name: str) -> None:
    """Remove a registered solver."""
    _REGISTERED.pop(name, None)


def _find(module: str, attribute: str) -> Any:
    try:
        return getattr(import_module(module), attribute, None)
    except ImportError:
        return None


def entrants(solvers: Sequence[str] | None = None) -> list[Entrant]:
    """Choose the solvers of a race.

    Parameters
    ----------
    solvers : sequence of str, optional
        Names: ``"fista"``, ``"SCS"`` (both formulations), ``"SCS/dual"``, a registered name, or
        ``"name=module:function"``, which registers it. None: all that are installed.

    Examples
    --------
    >>> [entrant.label for entrant in entrants(["fista", "SCS", "CLARABEL/dual"])]
    ['fista', 'SCS/primal', 'SCS/dual', 'CLARABEL/dual']
    """
    if solvers is None:
        return [*_first_order_entrants(), *_conic_entrants(), *_REGISTERED.values()]
    chosen: list[Entrant] = []
    for name in solvers:
        wanted = name
        if "=" in name:
            wanted, _, function = name.partition("=")
            register_solver(wanted, function)
        own = [*_first_order_entrants(), *_REGISTERED.values()]
        found = [e for e in own if wanted == e.solver]
        found = found or [e for e in _conic_entrants() if wanted in (e.solver, e.label)]
        if not found:
            raise ValueError(_why_not(wanted))
        chosen += [entrant for entrant in found if entrant not in chosen]
    return chosen


def _first_order_entrants() -> list[Entrant]:
    return [Entrant(name, "", f"{__name__}:first_order", (name,)) for name in _FIRST_ORDER]


def _conic_entrants() -> list[Entrant]:
    from ..m_step.conic import conic_solvers

    return [
        Entrant(name, formulation, f"{__name__}:conic", (name, formulation))
        for name in sorted(name for name, reason in conic_solvers().items() if not reason)
        for formulation in ("primal", "dual")
    ]


def _why_not(name: str) -> str:
    from ..m_step.conic import conic_solvers

    reason = conic_solvers().get(name.partition("/")[0])
    known = ", ".join(entrant.label for entrant in entrants())
    return f"{reason or f'There is no solver {name!r}'}. Those that can race are {known}."


_FIRST_ORDER = {"fista": fista, "projected-gradient": projected_gradient}


def first_order(
    objective: MStepObjective, tol: float, time_limit: float, solver: str = "fista"
) -> Attempt:
    """Solve by FISTA or the paper's projected gradient, which takes no penalties."""
    if solver == "projected-gradient" and objective.penalties:
        raise NotForThisProblem(
            "projected-gradient takes no penalties but the trace penalty and the manifold term, "
            f"and this M-step has {list(objective.penalties)}"
        )
    unsolvable = [block for block in objective.penalties if not block.is_solvable]
    if unsolvable:
        raise NotForThisProblem(f"{unsolvable[0]!r} is neither smooth nor has it a proximal step")
    answer = _FIRST_ORDER[solver](objective, tol, 1_000_000, None, time_limit)
    claims = answer.status is Status.CERTIFIED
    return Attempt(answer.metric, answer.solver_status, claims, answer.iterations)


def conic(
    objective: MStepObjective, tol: float, time_limit: float, solver: str, formulation: str
) -> Attempt:
    """Solve by a conic solver of CVXPY, within the tolerance and the remaining time."""
    from cvxpy.error import SolverError

    from ..m_step.statement import build_statement
    from .dimacs import dimacs_errors

    clock = time.perf_counter()
    try:
        statement = build_statement(objective, formulation)
    except NotImplementedError as error:  # of a penalty without a dual statement
        raise NotForThisProblem(str(error)) from error
    problem, options = statement.problem, _options(solver, tol, time_limit)
    data, chain, inverse = problem.get_problem_data(solver, solver_opts=options)
    compiled = time.perf_counter() - clock
    options.update(_options(solver, tol, max(0.1, time_limit - compiled)))
    try:
        answer = chain.solve_via_data(problem, data, warm_start=False, solver_opts=options)
        solved = time.perf_counter() - clock - compiled
        problem.unpack_results(answer, chain, inverse)
    except SolverError:  # what CVXPY makes of a solver that says it failed
        return Attempt(None, "solver_error", False, compile_seconds=compiled)
    return Attempt(
        statement.metric,
        str(problem.status),
        problem.status == "optimal",
        int(problem.solver_stats.num_iters or 0),
        time.perf_counter() - clock - solved,
        solved,
        dimacs_errors(data, answer, solver),
    )


def _options(solver: str, tol: float, time_limit: float) -> dict[str, Any]:
    """The solver's own options for a tolerance and a time limit, as far as they are known."""
    from ..m_step.conic import options_for

    known = solver in ("SCS", "CLARABEL", "MOSEK", "COPT")
    options = options_for(solver, tol, time_limit if known else None, None)
    if solver == "SCS":
        options["max_iters"] = 10_000_000  # its time is limited, as everybody's is
    return options
