"""Find out whether an entrant can race: it must be installed, licensed and solve a tiny problem.

Each probe runs in a separate process, so that a solver that crashes, hangs or prints does no harm.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec

from ..model.m_step_objective import MStepObjective
from ..pairs.pair_set import PairSet
from ..processes.isolation import ForkServer, Outcome
from ..processes.workers import ONE_THREAD
from ..solvers.solution import grade_matrix
from .attempt import TUNED_SUFFIX, Entrant
from .conic_solvers import conic

LARGEST_GAP = 0.01
"""The relative gap that an answer to the tiny M-step may have: a hundred times the tolerance that
is asked for, so that slow solvers are not refused, and wrong ones are."""

REQUIRED = ("CLARABEL", "SCS")
"""The conic solvers that come with this package and are tested with it."""


_KNOWN: dict[Entrant, str] = {}
"""The obstacles of the entrants that this process has probed."""


def obstacles(entrants: Sequence[Entrant]) -> dict[str, str]:
    """Say for each entrant, by its label, why it cannot race; "" if it can.

    Solvers are probed once by a process, whatever their formulation.
    """
    with ForkServer([__name__, "cvxpy"], ONE_THREAD) as server:
        for probed in map(_as_probed, entrants):
            if probed not in _KNOWN:
                _KNOWN[probed] = _obstacle(probed, server)
    return {entrant.label: _KNOWN[_as_probed(entrant)] for entrant in entrants}


def _as_probed(entrant: Entrant) -> Entrant:
    """An entrant without formulation and options: one probe is for all of a solver's."""
    solver = entrant.solver.removesuffix(TUNED_SUFFIX)
    return replace(entrant, solver=solver, formulation="", extra=entrant.extra[:1], options=())


def _obstacle(entrant: Entrant, server: ForkServer, seconds: float = 60.0) -> str:
    """Why an entrant cannot race; those that come with this package are not tried."""
    missing = what_is_missing(entrant)
    if missing or entrant.solver in REQUIRED or entrant.distribution in ("", "scipy"):
        return missing
    return describe(entrant, server.run(probe, entrant, seconds, time_limit=seconds))


def what_is_missing(entrant: Entrant) -> str:
    """Say what to install for an entrant; "" if its package is there."""
    if not entrant.package or find_spec(entrant.package) is not None:
        return ""
    return f"{entrant.solver} is not installed: pip install {entrant.distribution}"


def probe(entrant: Entrant, seconds: float = 60.0) -> tuple[str, float]:
    """Solve a tiny problem, in a separate process: the solver's status and its error.

    For a conic solver that is the smallest problem with both cones, for the others an M-step.
    """
    warnings.simplefilter("ignore")  # in a separate process; the outcome has the result
    if _is_conic(entrant):
        return solve_both_cones(entrant.extra[0])
    X = [[0.0, 0.1], [0.2, 0.0], [2.0, 1.0], [2.3, 0.8], [0.1, 0.9]]
    objective = MStepObjective(PairSet.from_labels(X, [0, 0, 1, -1, -1]))
    attempt = entrant.solve(objective, LARGEST_GAP / 100.0, seconds)
    graded = None if attempt.matrix is None else grade_matrix(objective, attempt.matrix)
    if graded is None:
        return f"{attempt.word}, without a matrix", float("inf")
    return attempt.word, graded.certificate.relative_gap


def solve_both_cones(solver: str) -> tuple[str, float]:
    """Solve min e^x - x + tr(B) over B PSD with tr(B) <= 1: the status, and the error of 1."""
    import cvxpy as cp

    x, B = cp.Variable(), cp.Variable((2, 2), PSD=True)
    problem = cp.Problem(cp.Minimize(cp.exp(x) - x + cp.trace(B)), [cp.trace(B) <= 1])
    problem.solve(solver=solver)
    return str(problem.status), abs(float(problem.value) - 1.0)


def describe(entrant: Entrant, outcome: Outcome) -> str:
    """The reason why an entrant cannot race, from the outcome of its probe; "" if it can."""
    if outcome.status != "done":
        reason = (outcome.detail or outcome.status).strip()
        return f"{entrant.solver} does not solve a tiny problem: {reason}"
    word, error = outcome.result
    if error <= LARGEST_GAP:
        return ""
    if _is_conic(entrant):
        return (
            f"{entrant.solver} through CVXPY is wrong on PSD and exponential cones together. "
            f'It says "{word}" of min e^x - x + tr(B) over B PSD with tr(B) <= 1, which is 1'
        )
    return f'{entrant.solver} says "{word}" of a tiny M-step, at a relative gap of {error:.1g}'


def _is_conic(entrant: Entrant) -> bool:
    return entrant.function == f"{conic.__module__}:{conic.__name__}"
