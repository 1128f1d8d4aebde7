"""The solvers of a race: ours, those of other packages, and functions of your own.

A solver of your own is a function that takes an M-step, and the tolerance and time limit if it has
parameters `tol` and `time_limit`. It returns a matrix; or a matrix and whether it claims to have
reached the tolerance; or an :class:`Attempt`, which says more. Only the matrix is graded; nothing
else is believed. Such a function can race directly, ``solvers=["newton", function]``, or by the
name of the file it is in, ``"name=module:function"``, also on the command line.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from ..model.m_step_objective import MStepObjective
from ..solvers.solution import MStepSolution, Status, gradient_method, newton_method
from .attempt import (
    TUNED_SUFFIX,
    Attempt,
    Entrant,
    NotForThisProblem,
    chosen_entrants,
    returned_by,
)
from .conic_solvers import conic_entrants
from .factor_solvers import FACTOR_ENTRANTS, NONLINEAR_ENTRANTS


def entrants(solvers: Sequence[Any] | None = None) -> list[Entrant]:
    """Choose the solvers of a race.

    Parameters
    ----------
    solvers : sequence, optional
        Names: ``"newton"``, ``"SCS"`` (both formulations), ``"SCS/dual"``, ``"UNO"``, or
        ``"name=module:function"`` for a function of your own, which takes an objective and returns
        a matrix. Such functions themselves. Pairs of either and a dict of options, such as
        ``("SCS/dual", {"alpha": 1.8})``. None: all that are installed.

    Examples
    --------
    >>> chosen = entrants(["newton", "SCS", ("CLARABEL/dual", {"max_iter": 9})])
    >>> [entrant.label for entrant in chosen]
    ['newton', 'SCS/primal', 'SCS/dual', 'CLARABEL(max_iter=9)/dual']
    """
    if solvers is None:
        return _installed()
    chosen = chosen_entrants(solvers, _of_name, callable, f"{__name__}:_call_on_m_step")
    for entrant in chosen:
        name = entrant.solver.partition("(")[0]
        if name in _OUR_SOLVERS and entrant not in _our_entrants():
            raise ValueError(
                f"The name {name!r} is taken, and {name} takes no options: give a function of "
                "another name."
            )
    return chosen


def _installed() -> list[Entrant]:
    """All solvers that are installed."""
    others = chain.from_iterable(kinds_of_entrants().values())
    return [*_our_entrants(), *(entrant for entrant in others if not entrant.obstacle)]


def _of_name(name: str) -> list[Entrant]:
    """The entrants of a name: those that are installed, at least one."""
    able = [entrant for entrant in _installed() if name in (entrant.solver, entrant.label)]
    if not able:
        others = [*NONLINEAR_ENTRANTS, *FACTOR_ENTRANTS]
        obstacles = (
            entrant.obstacle for entrant in others if name in (entrant.solver, entrant.label)
        )
        reason = next(obstacles, f"There is no solver {name!r} for M-steps")
        labels = ", ".join(entrant.label for entrant in _installed())
        raise ValueError(f"{reason}. Those that are installed are {labels}.")
    return able


def _our_entrants() -> list[Entrant]:
    """The solvers of this package."""
    return [Entrant(name, "", f"{__name__}:our_solver", (name,)) for name in _OUR_SOLVERS]


def kinds_of_entrants() -> dict[str, list[Entrant]]:
    """The solvers of other packages, installed or not, by the formulation they are given.

    Conic solvers get CVXPY's conic program, formula solvers CVXPY's nonlinear program in the
    factor; methods on the factor call our function and its derivatives, in our coordinates.

    Examples
    --------
    >>> list(kinds_of_entrants())
    ['conic', 'formula', 'factor']
    """
    kinds = {
        "conic": conic_entrants(),
        "formula": [*NONLINEAR_ENTRANTS],
        "factor": [*FACTOR_ENTRANTS],
    }
    for found in kinds.values():
        found += [
            replace(
                one,
                solver=one.solver + TUNED_SUFFIX,
                options=tuple(TUNED[one.label].items()),
            )
            for one in found
            if one.label in TUNED
        ]
    return kinds


TUNED: dict[str, dict[str, Any]] = {
    "CLARABEL/dual": {"equilibrate_enable": False},
    "MOREAU/dual": {"ipm_settings": {"max_step_fraction": 0.95}},
    "SCS/dual": {"scale": 1.0},
    "UNO/factor": {"TR_radius": 100.0},
    "pymanopt/factor": {"theta": 0.5},
    "L-BFGS-B/factor": {"maxcor": 30},
}
"""A second setting of solvers, by label: of the documented options that were tried the best."""


_OUR_SOLVERS: dict[str, Callable[..., MStepSolution]] = {
    "newton": newton_method,
    "fista": partial(gradient_method, "fista"),
    "projected-gradient": partial(gradient_method, "projected-gradient"),
}


def our_solver(
    objective: MStepObjective, tol: float, time_limit: float, solver: str = "newton"
) -> Attempt:
    """Solve an M-step by a solver of this package; only "newton" takes penalties.

    Examples
    --------
    >>> from seraph_cvx import MStepObjective, PairSet
    >>> from seraph_cvx.race.solvers import our_solver
    >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
    >>> attempt = our_solver(MStepObjective(pairs), tol=1e-8, time_limit=10.0)
    >>> attempt.claims, attempt.answer.round(2)
    (True, array([[0.92]]))
    """
    if solver != "newton" and objective.penalties:
        raise NotForThisProblem(
            f"{solver} takes no penalties but the trace penalty and the manifold term, "
            f"and this M-step has {list(objective.penalties)}"
        )
    unsolvable = [block for block in objective.penalties if not block.is_solvable]
    if unsolvable:
        raise NotForThisProblem(f"{unsolvable[0]!r} is neither smooth nor has it a proximal step")
    clock = time.perf_counter()
    objective.whitened_program  # noqa: B018 - moments, coordinates: the set-up, timed apart
    compiled = time.perf_counter() - clock
    answer = _OUR_SOLVERS[solver](objective, tol, 1_000_000, None, time_limit - compiled)
    return Attempt(
        answer.metric,
        answer.solver_status,
        answer.status is Status.CERTIFIED,
        answer.iterations,
        compiled,
        certify_seconds=answer.certificate_seconds,
    )


def _call_on_m_step(
    objective: MStepObjective,
    tol: float,
    time_limit: float,
    function: Callable[..., Any],
    /,
    **options: Any,
) -> Attempt:
    """Call a function of the user's own, which returns a matrix, (matrix, claims) or an Attempt.

    A bare matrix is a claim to have reached the tolerance if the function was given it.
    """
    answer, was_told = returned_by(function, objective, tol, time_limit, options)
    if isinstance(answer, Attempt):
        return answer
    if isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[1], bool | np.bool_):
        return Attempt(answer[0], "returned", claims=bool(answer[1]))
    return Attempt(answer, "returned", claims=was_told)
