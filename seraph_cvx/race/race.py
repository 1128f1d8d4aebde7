"""Runs all solvers on the same M-steps, and grades every answer independently of them."""

from __future__ import annotations

import os
import platform
import random
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload
from uuid import uuid4

from joblib import delayed

from ..model.m_step_objective import MStepObjective
from ..numerics.checks import check_count
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
from .grading import attempt_once, data_checksum, grade, reference_of
from .race_table import KEY_FIELDS, Key, Race, RaceJournal, label_of
from .solvers import entrants
from .suite import SUITES, InstanceSpec, objective_of, smaller_instances, suite

if TYPE_CHECKING:
    from cvxpy import Problem

    from .problem_race import ProblemRace

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


@overload
def compare_solvers(
    objective_or_suite: Problem,
    solvers: Sequence[Any] | None = ...,
    *,
    time_limit: float = ...,
    memory_limit: int = ...,
) -> ProblemRace: ...


@overload
def compare_solvers(
    objective_or_suite: MStepObjective
    | str
    | Sequence[str | InstanceSpec]
    | Mapping[str, MStepObjective],
    solvers: Sequence[Any] | None = ...,
    tols: Sequence[float] = ...,
    time_limit: float = ...,
    memory_limit: int = ...,
    out: str | os.PathLike[str] | None = ...,
    resume: bool = ...,
    callback: Listener | None = ...,
    n_jobs: int | None = ...,
    repeats: int = ...,
) -> Race: ...


def compare_solvers(
    objective_or_suite: Any,
    solvers: Sequence[Any] | None = None,
    tols: Sequence[float] = DEFAULT_TOLS,
    time_limit: float = 60.0,
    memory_limit: int = 4 * 2**30,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    callback: Listener | None = None,
    n_jobs: int | None = None,
    repeats: int = 1,
) -> Race | ProblemRace:
    """Race solvers on M-steps or on any convex problem, and grade every answer by a certificate.

    Parameters
    ----------
    objective_or_suite : MStepObjective, str, sequence, dict, or cvxpy.Problem
        One M-step, the name of a suite ("small", "medium", "large", "full", "penalties") or of an
        instance, a list of names of instances or specs, or a dict of your own M-steps by name. Or
        a problem that `certify_problem` takes: each solver is run once, with its own defaults,
        and only `solvers`, `time_limit` and `memory_limit` have a meaning.
    solvers : sequence, optional
        Names such as "newton", "SCS/dual" or "UNO"; functions of your own, which take an objective
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
    repeats : int
        How often each run is made. With more than one, each round is in a random order of its own,
        and a run that came to a limit is not repeated.

    Returns
    -------
    Race
        ``.rows``, ``.to_pandas()``, ``.to_markdown()``, ``.to_json()``, ``.summary()``. A row has
        instance, solver, formulation, tol, repeat; outcome ("done", "error", "time limit",
        "memory limit", "crashed", "not run", or "not for this problem" where the solver cannot
        take a penalty of the M-step); said (the solver's own status), claims (whether that claims
        success), true_gap, proved_gap, psd_violation (before projection, relative to the largest
        eigenvalue), value, dimacs (six error measures, conic runs only, see `dimacs.py`),
        compile_seconds (CVXPY's chain, or our own set-up), solve_seconds, certify_seconds (in the
        certificates by which ours and the methods on a factor stop; zero for the others),
        total_seconds, their sum; grade_seconds (of the referee, afterwards), iterations,
        peak_bytes, load (of the machine, before the run) and detail. BLAS has one thread in every
        run. Of a problem of CVXPY a
        :class:`~seraph_cvx.race.problem_race.ProblemRace`, whose rows are explained there.

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
    >>> table = compare_solvers(MStepObjective(pairs), solvers=["newton", "CLARABEL"], tols=[1e-6])
    >>> [(row["solver"], row["formulation"], row["true_gap"] < 1e-5) for row in table.rows]
    [('newton', '', True), ('CLARABEL', 'primal', True), ('CLARABEL', 'dual', True)]
    """
    if type(objective_or_suite).__module__.startswith("cvxpy."):
        from .problem_race import compare_on_problem

        return compare_on_problem(objective_or_suite, solvers, time_limit, memory_limit)
    instances = _instances(objective_or_suite)
    objectives = {name: objective_of(instance) for name, instance in instances.items()}
    for objective in objectives.values():
        require_attained(objective)
    ladder = sorted({float(tol) for tol in tols}, reverse=True)
    if not ladder or not all(0.0 < tol < 1.0 for tol in ladder):
        raise ValueError(f"tols={list(tols)}: at least one number between 0 and 1 is needed.")
    chosen = entrants(solvers)  # which may take seconds: those of other packages are tried
    runs = _in_order(list(instances), chosen, ladder, check_count(repeats, "repeats"))
    started = {
        "versions": versions(chosen),
        "date": time.strftime("%Y-%m-%d"),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
        "time_limit": time_limit,
        "memory_limit": memory_limit,
        "instances": list(instances),
        "entrants": [entrant.label for entrant in chosen],
        "options": {entrant.label: dict(entrant.options) for entrant in chosen if entrant.options},
        "tols": ladder,
    }
    with RaceJournal(out, resume) as journal:
        for name, objective in objectives.items():
            known = journal.references.get(name)
            if known is not None and known["checksum"] != data_checksum(objective):
                raise ValueError(
                    f"The rows of the {name} in {out} are of other points, pairs or soft labels: "
                    "give another file."
                )
        journal.notes += _differences(journal.races, started)
        journal.add("race", started)
        finished = len(runs.keys() & journal.rows.keys())
        obstacle = memory_limit_obstacle()
        journal.notes += [obstacle] if obstacle else []
        limits = time_limit, None if obstacle else memory_limit
        with closing(_make_runs(runs, instances, journal, limits, n_jobs)) as outcomes:
            for key, outcome in outcomes:
                name = key[0]
                if name not in journal.references:
                    journal.add("reference", reference_of(name, objectives[name]))
                row = dict(zip(KEY_FIELDS, key, strict=True))
                row |= grade(objectives[name], journal.references[name]["lower"], outcome)
                journal.add("row", row)
                finished += 1
                if callback is not None:
                    callback(row, finished, len(runs))
        rows = [journal.rows[key] for key in runs]
        return _result(journal, sorted(rows, key=_position(journal.races)), journal.races)


def _result(journal: RaceJournal, rows: list[dict[str, Any]], starts: list[dict[str, Any]]) -> Race:
    names = dict.fromkeys(row["instance"] for row in rows)
    references = {name: journal.references[name] for name in names if name in journal.references}
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
    >>> from seraph_cvx.race.race_table import EMPTY_ROW
    >>> row = EMPTY_ROW | dict(instance="iris", solver="newton", formulation="", tol=1e-3, repeat=1)
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
    for k in range(1, len(starts)):
        journal.notes += _differences(starts[:k], starts[k])
    return _result(journal, sorted(journal.rows.values(), key=_position(starts)), starts)


def _position(starts: Sequence[dict[str, Any]]) -> Callable[[Any], tuple[Any, ...]]:
    """Where a row comes in a table: by instance, entrant, tolerance and repeat."""
    instances, labels = (
        list(dict.fromkeys(name for start in starts for name in start.get(of, ())))
        for of in ("instances", "entrants")
    )

    def position(row: dict[str, Any]) -> tuple[Any, ...]:
        place = _index(instances, row["instance"]), _index(labels, label_of(row))
        return *place, -row["tol"], row["repeat"]

    return position


def _index(names: list[str], name: str) -> int:
    return names.index(name) if name in names else len(names)


def _instances(given: Any) -> dict[str, Any]:
    """The InstanceSpecs or M-steps of a race, by name."""
    if isinstance(given, MStepObjective):
        n, m = given.pairs.n_points, given.pairs.n_features
        weights = f"mu = {given.mu:.3g}, lambda = {given.trace_weight:.3g}"
        penalties = "".join(f", {block!r}" for block in given.penalties)
        return {f"M-step of {n} points in R^{m}, {weights}{penalties}": given}
    if isinstance(given, str):
        given = suite(given) if given in SUITES else [given]
    if isinstance(given, Mapping):
        instances = dict(given)
    else:
        specs = [InstanceSpec.parse(one) if isinstance(one, str) else one for one in given]
        instances = {getattr(spec, "name", spec): spec for spec in specs}
    kind = MStepObjective if isinstance(given, Mapping) else InstanceSpec
    if not instances or not all(
        isinstance(name, str) and isinstance(instance, kind) for name, instance in instances.items()
    ):
        raise ValueError(
            "A race needs an MStepObjective, the name of a suite or instance, a list of names or "
            f"InstanceSpec, or a dict of MStepObjectives by name; not {given!r}."
        )
    return instances


def _differences(races: Sequence[dict[str, Any]], now: dict[str, Any]) -> list[str]:
    """Describe how a resumed race differs from the one before it."""
    if not races:
        return []
    known = {name: number for race in races for name, number in race.get("versions", {}).items()}
    changed = {name: n for name, n in now["versions"].items() if known.get(name, n) != n}
    notes = [
        f"Resumed with other {what}: {races[-1].get(what)}, then {now[what]}."
        for what in ("machine", "time_limit", "memory_limit")
        if races[-1].get(what) != now[what]
    ]
    if changed:
        before = {name: known[name] for name in changed}
        notes.insert(0, f"Resumed with other versions: {before}, then {changed}.")
    return notes


def versions(chosen: Sequence[Entrant]) -> dict[str, str]:
    """The versions of this package, of its libraries and of the solvers that race.

    Examples
    --------
    >>> from seraph_cvx.race.race import versions
    >>> from seraph_cvx.race.solvers import entrants
    >>> list(versions(entrants(["newton"])))
    ['python', 'seraph-cvx', 'numpy', 'scipy', 'scikit-learn', 'cvxpy']
    """
    others = {e.distribution or e.solver.lower() for e in chosen if e.formulation}
    found = {"python": platform.python_version()}
    for name in ("seraph-cvx", "numpy", "scipy", "scikit-learn", "cvxpy", *sorted(others)):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "?"
    return found


# The order of the runs, and how a worker of joblib makes one


def _in_order(
    instances: Sequence[str], chosen: Sequence[Entrant], ladder: Sequence[float], repeats: int
) -> dict[Key, Entrant]:
    """The runs of a race, in the order in which they are made: each repeat is shuffled."""
    runs: dict[Key, Entrant] = {}
    for repeat in range(1, repeats + 1):
        pairs = [(name, entrant) for name in instances for entrant in chosen]
        if repeats > 1:
            random.Random(repeat).shuffle(pairs)
        for name, entrant in pairs:
            for tol in ladder:
                runs[name, entrant.solver, entrant.formulation, tol, repeat] = entrant
    return runs


Limits = tuple[float, int | None]
"""The limits of a run: seconds, and bytes of memory."""


def _make_runs(
    runs: dict[Key, Entrant],
    instances: dict[str, Any],
    journal: RaceJournal,
    limits: Limits,
    n_jobs: int | None,
) -> Generator[tuple[Key, Outcome], None, None]:
    """Make the runs that are not in the journal, through joblib, and yield them as they finish.

    A run waits until the next looser one of its solver on its instance, the one of the repeat
    before and the one on fewer of the same points are in the journal, which the caller has to see
    to: after one that reached a limit it is skipped, with the outcome "not run".
    """
    owner = uuid4().hex
    is_conic = any(entrant.formulation for entrant in runs.values())
    preload = [*PRELOAD, *(PRELOAD_CONIC if is_conic else ())]
    preload += sorted({entrant.package for entrant in runs.values() if entrant.package})
    waiting = [key for key in runs if key not in journal.rows]
    earlier = _earlier_runs(runs)

    def is_ready(key: Key) -> bool:
        return all(other in journal.rows for other in earlier[key])

    def calls() -> Iterator[Any]:
        while key := next(filter(is_ready, waiting), None):
            waiting.remove(key)
            obstacles = (_obstacle(journal.rows[other], limits[0]) for other in earlier[key])
            obstacle = next(filter(None, obstacles), "")
            work = instances[key[0]], runs[key], key[3]
            yield delayed(_make_run)(key, work, limits, obstacle, owner, preload)

    try:
        with one_by_one(n_jobs) as workers:
            while waiting:  # again where the last ones had to wait for others
                yield from as_finished(workers, calls())
    finally:
        close_servers(owner)


def _earlier_runs(runs: Iterable[Key]) -> dict[Key, list[Key]]:
    """What runs wait for: the next looser one, that of the repeat before, that on fewer points."""
    earlier: dict[Key, list[Key]] = {key: [] for key in runs}
    for other, key in pairwise(earlier):
        if other[:3] == key[:3] and other[4] == key[4]:
            earlier[key].append(other)
    smaller = smaller_instances({key[0] for key in earlier})
    for key in earlier:
        name, solver, formulation, tol, repeat = key
        for other in (
            (name, solver, formulation, tol, repeat - 1),
            (smaller.get(name, ""), solver, formulation, tol, repeat),
        ):
            if other in earlier:
                earlier[key].append(other)
    return earlier


def _obstacle(earlier: dict[str, Any], time_limit: float) -> str:
    """Why a run is skipped: an earlier one took all its time, or was ended at a limit."""
    outcome = earlier["outcome"]
    if outcome == NOT_RUN:
        return str(earlier["detail"])
    late = (earlier["total_seconds"] or 0.0) >= time_limit and not earlier["claims"]
    if late or outcome in ("time limit", "memory limit"):
        limit = "time limit" if outcome == "done" else outcome
        return f"it came to its {limit} at tol {earlier['tol']:g} on {earlier['instance']}"
    return ""


def _make_run(
    key: Key, work: Any, limits: Limits, obstacle: str, owner: str, preload: Sequence[str]
) -> tuple[Key, Outcome]:
    """Make a run, in a separate process that the worker's fork server starts; or skip it."""
    if obstacle:
        nothing = {"total_seconds": None, "peak_bytes": None}
        return key, Outcome(NOT_RUN, nothing, obstacle, 0.0)
    seconds, memory = limits
    outcome = server_of_thread(owner, preload, ONE_THREAD).run(
        attempt_once, *work, seconds, time_limit=seconds + GRACE, memory_limit=memory
    )
    return key, outcome
