"""Runs all solvers on the same M-steps, and grades every answer independently of them."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from joblib import delayed

from ..model.m_step_objective import MStepObjective
from ..processes.isolation import Outcome, memory_limit_obstacle
from ..processes.workers import (
    ONE_THREAD,
    as_finished,
    close_servers,
    one_by_one,
    server_of_thread,
)
from ..solvers.solution import require_attained
from .attempt import Entrant
from .grading import Grader, attempt_once, data_checksum
from .race_table import EMPTY_ROW, Key, Race, RaceJournal, label_of
from .solvers import entrants
from .suite import SUITES, InstanceSpec, suite

__all__ = ["ONE_THREAD", "compare_solvers", "read_race", "versions"]

DEFAULT_TOLS = (1e-3, 1e-5, 1e-7)
TITLE = "Solvers against the referee"
GRACE = 2.0
"""Seconds after its time limit that a solver has to stop by itself."""

PRELOAD = ("seraph_cvx.race.grading", "sklearn.datasets")
PRELOAD_CONIC = ("seraph_cvx.m_step.conic", "seraph_cvx.race.dimacs")

NOT_RUN = "not run"
"""The outcome of a run that was skipped, since a looser one reached a limit."""

Listener = Callable[[dict[str, Any], int, int], None]
"""The type of callback(row, number of the row, total number of rows)."""


def compare_solvers(
    objective_or_suite: MStepObjective
    | str
    | Sequence[InstanceSpec]
    | Mapping[str, MStepObjective],
    solvers: Sequence[Any] | None = None,
    tols: Sequence[float] = DEFAULT_TOLS,
    time_limit: float = 60.0,
    memory_limit: int = 4 * 2**30,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    callback: Listener | None = None,
    n_jobs: int | None = None,
) -> Race:
    """Race solvers on M-steps, and grade every answer by its certificate.

    Parameters
    ----------
    objective_or_suite : MStepObjective, str, sequence of InstanceSpec, or dict
        One M-step, the name of a suite ("small", "full", "penalties") or of an instance, several
        specs, or a dict of your own M-steps by name.
    solvers : sequence, optional
        Names such as "fista", "SCS/dual" or "UNO"; functions of your own, which take an objective
        and return a matrix; pairs of either and a dict of its options. See
        :func:`seraph_cvx.race.solvers.entrants`; None: all that are installed.
    tols : sequence of float
        Each solver is asked for each of these, the loosest first. After a run that was ended at
        a limit, or took all its time, the tighter ones are not run, and their rows say so.
    time_limit : float
        Seconds a run may take. The solver is given this limit; two seconds later its process is
        ended.
    memory_limit : int
        Bytes of resident memory a run may take, the imported libraries included. Where a system
        cannot limit it (macOS, Windows), the notes of the table say so.
    out : path, optional
        A file of JSON lines to which each row is appended when it is finished.
    resume : bool
        Continue the race in `out`: no finished row is lost or repeated.
    callback : callable, optional
        Called as ``callback(row, number, total)`` after each new row.
    n_jobs : int, optional
        The number of joblib workers; -1 is one per core. None is 1, or what
        ``joblib.parallel_config`` says, whose backend (loky, threading, dask, ...) is used too.
        Solvers that run at the same time on one machine slow each other down: to compare seconds,
        leave it at 1.

    Returns
    -------
    Race
        ``.rows``, ``.to_pandas()``, ``.to_markdown()``, ``.to_json()``, ``.summary()``. A row has
        instance, solver, formulation, tol; outcome ("done", "error", "time limit", "memory limit",
        "crashed", "not run", or "not for this problem" where the solver cannot take a penalty of
        the M-step); said (the solver's own status), claims (whether that claims
        success), true_gap, proved_gap, psd_violation (before projection, relative to the largest
        eigenvalue), value, dimacs (six error measures, conic runs only, see `dimacs.py`),
        compile_seconds, solve_seconds, total_seconds, iterations, peak_bytes and detail. BLAS has
        one thread in every run.

    Notes
    -----
    A worker of joblib (by default this thread) keeps a process that has imported what solvers
    need, and that process forks a child for each run, whose time and memory the worker watches (on
    macOS and Windows each run has a fresh process, and its imports are not in its seconds). So
    a worker of a cluster needs nothing but this package, the solvers, and the module of a solver
    of your own on its path. Only the matrix and the solver's status come back: grading, the
    file and the callback are local. A run starts when all looser ones of its solver on its
    instance are graded; with one worker the runs come in the order of the rows.

    Examples
    --------
    >>> from seraph_cvx import MStepObjective, PairSet, compare_solvers
    >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
    >>> table = compare_solvers(MStepObjective(pairs), solvers=["fista", "CLARABEL"], tols=[1e-6])
    >>> [(row["solver"], row["formulation"], row["true_gap"] < 1e-5) for row in table.rows]
    [('fista', '', True), ('CLARABEL', 'primal', True), ('CLARABEL', 'dual', True)]
    """
    instances = _instances(objective_or_suite)
    ladder = _check_tols(tols)
    chosen = entrants(solvers)  # which may take seconds: those of other packages are tried
    runs = [_Run(name, e, tol) for name in instances for e in chosen for tol in ladder]
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
    with RaceJournal(out, resume) as journal:
        _check_same_data(instances, journal)
        journal.notes += _differences(journal.races, started)
        journal.add("race", started)
        grader = Grader(instances, journal)
        finished = sum(run.key in journal.rows for run in runs)
        obstacle = memory_limit_obstacle()
        journal.notes += [obstacle] if obstacle else []
        limits = _Limits(time_limit, time_limit + GRACE, None if obstacle else memory_limit)
        with closing(_make_runs(runs, instances, journal, limits, n_jobs)) as outcomes:
            for run, outcome in outcomes:
                row = dict(zip(("instance", "solver", "formulation", "tol"), run.key, strict=True))
                if outcome.status == NOT_RUN:
                    row |= EMPTY_ROW | {"outcome": NOT_RUN, "detail": outcome.detail}
                else:
                    row |= grader.grade(run.instance, outcome)
                journal.add("row", row)
                finished += 1
                if callback is not None:
                    callback(row, finished, len(runs))
        rows = [journal.rows[run.key] for run in runs]
        references = {name: journal.references[name] for name in instances}
        starts = [start for start in journal.races if "versions" in start]  # others are damaged
        return Race(TITLE, rows, journal.notes, references, starts)


def read_race(path: str | os.PathLike[str]) -> Race:
    """Read a race that was run before from its file, without running anything.

    The rows come in the order of a race that was never interrupted. The solvers and data sets need
    not be installed.

    Parameters
    ----------
    path : path
        What `out` of :func:`compare_solvers` was; it is not changed.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> row = EMPTY_ROW | dict(instance="iris", solver="fista", formulation="", tol=1e-3)
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "race.jsonl"
    ...     with RaceJournal(file) as journal:
    ...         journal.add("race", {"time_limit": 5.0})
    ...         journal.add("row", row)
    ...     race = read_race(file)
    >>> race.time_limit, race.rows == [row]
    (5.0, True)
    """
    journal = RaceJournal()
    journal.read(Path(path))
    starts = journal.races
    if not journal.rows or not starts:
        raise ValueError(f"{path} has no row of a race: give the file that a race wrote.")
    resumed = [note for k in range(1, len(starts)) for note in _differences(starts[:k], starts[k])]
    instances, labels = (
        list(dict.fromkeys(name for start in starts for name in start.get(of, ())))
        for of in ("instances", "entrants")
    )

    def position(row: dict[str, Any]) -> tuple[int, int, float]:
        places = [
            names.index(name) if name in names else len(names)
            for name, names in ((row["instance"], instances), (label_of(row), labels))
        ]
        return places[0], places[1], -row["tol"]

    rows = sorted(journal.rows.values(), key=position)
    names = list(dict.fromkeys(row["instance"] for row in rows))
    references = {name: journal.references[name] for name in names if name in journal.references}
    return Race(TITLE, rows, [*journal.notes, *resumed], references, starts)


def _instances(given: Any) -> dict[str, Any]:
    """The InstanceSpecs or M-steps of a race, by name; each of them has an optimum."""
    instances: dict[str, Any] = {}
    if isinstance(given, MStepObjective):
        n, m = given.pairs.n_points, given.pairs.n_features
        weights = f"mu = {given.mu:.3g}, lambda = {given.trace_weight:.3g}"
        penalties = "".join(f", {block!r}" for block in given.penalties)
        instances = {f"M-step of {n} points in R^{m}, {weights}{penalties}": given}
    elif isinstance(given, Mapping):
        for name, objective in given.items():
            if not isinstance(name, str) or not isinstance(objective, MStepObjective):
                raise ValueError(
                    f"A race on instances of your own needs MStepObjectives by name, not {name!r}: "
                    f"{objective!r}."
                )
        instances = dict(given)
    else:
        if isinstance(given, str):
            specs = suite(given) if given in SUITES else [InstanceSpec.parse(given)]
        else:
            specs = list(given)
        if all(isinstance(spec, InstanceSpec) for spec in specs):
            instances = {spec.name: spec for spec in specs}
    if not instances:
        raise ValueError(
            "A race needs an MStepObjective, the name of a suite or instance, a list of "
            f"InstanceSpec, or a dict of MStepObjectives; not {given!r}."
        )
    for instance in instances.values():
        is_spec = isinstance(instance, InstanceSpec)
        require_attained(instance.objective() if is_spec else instance)
    return instances


def _check_same_data(instances: dict[str, Any], journal: RaceJournal) -> None:
    """Check that the M-steps are those of the journal, by their checksums."""
    for name, instance in instances.items():
        known = journal.references.get(name)
        if known is None or isinstance(instance, InstanceSpec):
            continue
        if known["checksum"] != data_checksum(instance):
            raise ValueError(
                f"The rows of the {name} in {journal.path} are of other points, pairs or soft "
                "labels: give another file."
            )


def _check_tols(tols: Sequence[float]) -> list[float]:
    ladder = sorted({float(tol) for tol in tols}, reverse=True)
    if not ladder or not all(0.0 < tol < 1.0 for tol in ladder):
        raise ValueError(f"tols={list(tols)}: at least one number between 0 and 1 is needed.")
    return ladder


def _differences(races: Sequence[dict[str, Any]], now: dict[str, Any]) -> Iterator[str]:
    """Describe how a resumed race differs from the one before it."""
    if not races:
        return
    known = {name: number for race in races for name, number in race.get("versions", {}).items()}
    changed = {name: n for name, n in now["versions"].items() if known.get(name, n) != n}
    if changed:
        before = {name: known[name] for name in changed}
        yield f"Resumed with other versions: {before}, then {changed}."
    for what in ("machine", "time_limit", "memory_limit"):
        if races[-1].get(what) != now[what]:
            yield f"Resumed with other {what}: {races[-1].get(what)}, then {now[what]}."


def versions(chosen: Sequence[Entrant]) -> dict[str, str]:
    """The versions of this package, of its libraries and of the solvers that race."""
    others = sorted(
        {
            entrant.distribution or entrant.solver.lower()
            for entrant in chosen
            if entrant.formulation
        }
    )
    found = {"python": platform.python_version()}
    for name in ("seraph-cvx", "numpy", "scipy", "scikit-learn", "cvxpy", *others):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "?"
    return found


# The order of the runs, and how a worker of joblib makes one


class _Run(NamedTuple):
    """One solver on one instance at one tolerance."""

    instance: str
    entrant: Entrant
    tol: float

    @property
    def key(self) -> Key:
        """The key of the run in the journal."""
        return self.instance, self.entrant.solver, self.entrant.formulation, self.tol


class _Limits(NamedTuple):
    """The limits of a run: its seconds, those until its process is ended, and bytes of memory."""

    seconds: float
    hard_seconds: float
    memory: int | None


def _make_runs(
    runs: Sequence[_Run],
    instances: dict[str, Any],
    journal: RaceJournal,
    limits: _Limits,
    n_jobs: int | None,
) -> Generator[tuple[_Run, Outcome], None, None]:
    """Make the runs that are not in the journal, through joblib, and yield them as they finish.

    A run waits until all looser ones of its solver on its instance are in the journal, which the
    caller has to see to: after one that reached a limit it is skipped, with the outcome "not run".
    """
    owner = uuid4().hex
    preload = [*PRELOAD, *(PRELOAD_CONIC if any(run.entrant.formulation for run in runs) else ())]
    preload += sorted({run.entrant.package for run in runs if run.entrant.package})
    waiting = [run for run in runs if run.key not in journal.rows]

    def looser(run: _Run) -> list[_Run]:
        return [other for other in runs if other[:2] == run[:2] and other.tol > run.tol]

    def is_ready(run: _Run) -> bool:
        return all(other.key in journal.rows for other in looser(run))

    def calls() -> Iterator[Any]:
        while run := next(filter(is_ready, waiting), None):
            waiting.remove(run)
            rows = [journal.rows[other.key] for other in looser(run)]
            obstacle = _obstacle(rows, limits.seconds)
            yield delayed(_make_run)(run, instances[run.instance], limits, obstacle, owner, preload)

    try:
        with one_by_one(n_jobs) as workers:
            while waiting:  # again where the last ones had to wait for others
                yield from as_finished(workers, calls())
    finally:
        close_servers(owner)


def _obstacle(looser_rows: Sequence[dict[str, Any]], time_limit: float) -> str:
    """Why a run is skipped: a looser one took all its time, or was ended at a limit."""
    for row in looser_rows:
        late = (row["total_seconds"] or 0.0) >= time_limit and not row["claims"]
        if late or row["outcome"] in ("time limit", "memory limit"):
            limit = row["outcome"] if row["outcome"] != "done" else "time limit"
            return f"it came to its {limit} at tol {row['tol']:g}"
    return ""


def _make_run(
    run: _Run, instance: Any, limits: _Limits, obstacle: str, owner: str, preload: Sequence[str]
) -> tuple[_Run, Outcome]:
    """Make a run, in a separate process that the worker's fork server starts; or skip it."""
    if obstacle:
        return run, Outcome(NOT_RUN, None, obstacle, 0.0)
    outcome = server_of_thread(owner, preload, ONE_THREAD).run(
        attempt_once,
        *(instance, run.entrant, run.tol, limits.seconds),
        time_limit=limits.hard_seconds,
        memory_limit=limits.memory,
    )
    return run, outcome
