"""compare_solvers: all solvers on the same M-steps, with a referee that trusts none of them."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from ..isolation import Nursery
from ..m_step.solution import require_attained
from ..objective import MStepObjective
from .grading import EMPTY_ROW, Referee, attempt_once, data_checksum
from .journal import Journal, key_of
from .race_table import Race
from .solvers import Entrant, entrants
from .suite import SUITES, InstanceSpec, suite

DEFAULT_TOLS = (1e-3, 1e-5, 1e-7)
GRACE = 2.0
"""Seconds after its time limit that a solver has to come back by itself."""

ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
PRELOAD = ("seraph_cvx.comparison.grading", "sklearn.datasets")
PRELOAD_CONIC = ("seraph_cvx.m_step.conic", "seraph_cvx.comparison.dimacs")

Listener = Callable[[dict[str, Any], int, int], None]
"""callback(row, number of it, how many there will be)"""


def compare_solvers(
    objective_or_suite: MStepObjective | str | Sequence[InstanceSpec],
    solvers: Sequence[str] | None = None,
    tols: Sequence[float] = DEFAULT_TOLS,
    time_limit: float = 60.0,
    memory_limit: int = 4 * 2**30,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    callback: Listener | None = None,
) -> Race:
    """Race solvers on M-steps; the referee grades every answer.

    Parameters
    ----------
    objective_or_suite : MStepObjective, str or sequence of InstanceSpec
        One M-step, the name of a suite ("small", "full") or of an instance, or several specs.
    solvers : sequence of str, optional
        See :func:`seraph_cvx.comparison.solvers.entrants`; None: all that can run here.
    tols : sequence of float
        Each solver is asked for each of these, the loosest first. After a run that was ended at
        a limit, or took all its time, the tighter ones are not run, and their rows say so.
    time_limit : float
        Seconds a run may take. A solver is told so; two seconds later its process is ended.
    memory_limit : int
        Bytes of resident memory a run may take, the imported libraries included.
    out : path, optional
        A file of JSON lines to which each row is appended as it comes.
    resume : bool
        Go on with the race that is in `out`: no finished row is lost or made again.
    callback : callable, optional
        Called as ``callback(row, number, total)`` after each new row.

    Returns
    -------
    Race
        ``.rows``, ``.to_pandas()``, ``.to_markdown()``, ``.to_json()``, ``.summary()``. A row has
        instance, solver, formulation, tol; outcome ("done", "error", "time limit", "memory limit",
        "crashed" or "not run"); said (the solver's own word), claims (whether that claims
        success), true_gap, proved_gap, psd_violation (before projection, relative to the largest
        eigenvalue), value, dimacs (six error measures, conic runs only, see `dimacs.py`),
        compile_seconds, solve_seconds, total_seconds, iterations, peak_bytes and detail. BLAS has
        one thread in every run.

    Examples
    --------
    >>> from seraph_cvx import MStepObjective, PairSet, compare_solvers
    >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
    >>> table = compare_solvers(MStepObjective(pairs), solvers=["fista", "CLARABEL"], tols=[1e-6])
    >>> [(row["solver"], row["formulation"], row["true_gap"] < 1e-5) for row in table.rows]
    [('fista', '', True), ('CLARABEL', 'primal', True), ('CLARABEL', 'dual', True)]
    """
    instances = _instances(objective_or_suite)
    chosen = entrants(solvers)
    ladder = _check_tols(tols)
    runs = [(name, e, tol) for name in instances for e in chosen for tol in ladder]
    started = {
        "versions": versions(chosen),
        "date": time.strftime("%Y-%m-%d"),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
        "time_limit": time_limit,
        "memory_limit": memory_limit,
        "instances": list(instances),
        "entrants": [entrant.label for entrant in chosen],
        "tols": ladder,
    }
    preload = [*PRELOAD, *(PRELOAD_CONIC if any(e.formulation for e in chosen) else ())]
    with Journal(out, resume) as journal, Nursery(preload, ONE_THREAD) as nursery:
        journal.notes += _differences(journal.races, started)
        journal.add("race", started)
        referee = Referee(instances, journal)
        for number, (name, entrant, tol) in enumerate(runs, start=1):
            if (name, entrant.solver, entrant.formulation, tol) in journal.rows:
                continue
            row: dict[str, Any] = {
                "instance": name,
                "solver": entrant.solver,
                "formulation": entrant.formulation,
                "tol": tol,
            }
            obstacle = _obstacle(journal, row, ladder, time_limit)
            if obstacle:
                row |= EMPTY_ROW | {"outcome": "not run", "detail": obstacle}
            else:
                outcome = nursery.run(
                    attempt_once,
                    *(instances[name], entrant, tol, time_limit),
                    time_limit=time_limit + GRACE,
                    memory_limit=memory_limit,
                )
                row |= referee.grade(name, outcome)
            journal.add("row", row)
            if callback is not None:
                callback(row, number, len(runs))
        wanted = {(name, e.solver, e.formulation, tol) for name, e, tol in runs}
        rows = [row for key, row in journal.rows.items() if key in wanted]
        rows.sort(key=lambda row: list(instances).index(row["instance"]))
        references = {name: journal.references[name] for name in instances}
        return Race("Solvers against the referee", rows, journal.notes, references, journal.races)


def _instances(given: Any) -> dict[str, InstanceSpec | MStepObjective]:
    if isinstance(given, MStepObjective):
        require_attained(given)
        return {f"objective-{data_checksum(given)[:12]}": given}
    if isinstance(given, str):
        specs = suite(given) if given in SUITES else [InstanceSpec.parse(given)]
    else:
        specs = list(given)
    if not specs or not all(isinstance(spec, InstanceSpec) for spec in specs):
        raise ValueError(
            "A race needs an MStepObjective, the name of a suite or instance, or a list of "
            f"InstanceSpec; not {given!r}."
        )
    for spec in specs:
        require_attained(spec.objective())
    return {spec.name: spec for spec in specs}


def _check_tols(tols: Sequence[float]) -> list[float]:
    ladder = sorted({float(tol) for tol in tols}, reverse=True)
    if not ladder or not all(0.0 < tol < 1.0 for tol in ladder):
        raise ValueError(f"tols={list(tols)}: at least one number between 0 and 1 is needed.")
    return ladder


def _obstacle(
    journal: Journal, row: dict[str, Any], ladder: Sequence[float], time_limit: float
) -> str:
    """Why a run is not worth making: a looser one took all its time, or was ended at a limit."""
    for tol in ladder:
        if tol <= row["tol"]:
            break
        looser = journal.rows.get(key_of(row | {"tol": tol}))
        if looser is None:
            continue
        late = (looser["total_seconds"] or 0.0) >= time_limit and not looser["claims"]
        if late or looser["outcome"] in ("time limit", "memory limit"):
            limit = looser["outcome"] if looser["outcome"] != "done" else "time limit"
            return f"it came to its {limit} at tol {tol:g}"
    return ""


def _differences(races: Sequence[dict[str, Any]], now: dict[str, Any]) -> Iterator[str]:
    """What a resumed race does otherwise than the one before it."""
    if not races:
        return
    for what in ("versions", "machine", "time_limit", "memory_limit"):
        if races[-1].get(what) != now[what]:
            yield f"Resumed with other {what}: {races[-1].get(what)}, then {now[what]}."


def versions(chosen: Sequence[Entrant]) -> dict[str, str]:
    """Of this package, of what it computes with, and of every conic solver that races."""
    conic = sorted({entrant.solver.lower() for entrant in chosen if entrant.formulation})
    found = {"python": platform.python_version()}
    for name in ("seraph-cvx", "numpy", "scipy", "scikit-learn", "cvxpy", *conic):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "?"
    return found
