"""Runs all solvers on the same instances, and grades every answer independently of them."""

from __future__ import annotations

import os
import platform
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ..model.m_step_objective import MStepObjective
from ..numerics.checks import check_count
from ..processes.isolation import ONE_THREAD, ForkServer, Outcome, memory_limit_obstacle
from .attempt import Entrant, pickled
from .grading import MStepInstance, attempt_once
from .race_table import KEY_FIELDS, NOT_MADE, Key, Race, RaceJournal, asked, label_of
from .suite import SUITES, InstanceSpec, suite

if TYPE_CHECKING:
    from .problems import ProblemInstance

    Instance = MStepInstance | ProblemInstance

__all__ = ["compare_solvers", "read_race", "versions"]

GRACE = 2.0
"""Seconds after its time limit that a solver has to stop by itself, as promised to users."""

PRELOAD = ("seraph_cvx.race.problems", "sklearn.datasets")
"""What every run needs: imported before its time begins to count."""

NOT_RUN = NOT_MADE[0]

Listener = Callable[[dict[str, Any], int, int], None]
"""The type of callback(row, number of the row, total number of rows)."""


def compare_solvers(
    objective_or_suite: Any,
    solvers: Sequence[Any] | None = None,
    tols: Sequence[float] | None = None,
    time_limit: float = 60.0,
    memory_limit: int = 4 * 2**30,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    callback: Listener | None = None,
    repeats: int = 1,
    progress: Callable[[str], None] | None = None,
) -> Race:
    """Race solvers on M-steps or on any convex problem, and judge every answer by what is proven.

    Parameters
    ----------
    objective_or_suite : MStepObjective, cvxpy.Problem, str, sequence, or dict
        One M-step, or any DCP problem with continuous variables, solved before or not; a dict of
        either by name. Or the name of a suite ("tiny", "small", "medium", "large") or of an
        instance, or a list of names of instances or specs.
    solvers : sequence, optional
        Names such as "newton", "SCS/dual" or "UNO" (see :func:`seraph_cvx.race.solvers.entrants`),
        or for problems those of CVXPY's solvers; functions of your own, or "name=module:function";
        pairs of any of these and a dict of options. A function takes an M-step and returns a
        matrix; or it takes a problem and sets the values of its variables (and, optionally, of
        `constraint.dual_variables`), or returns a status if there is no solution. For problems,
        instances of solver classes of your own are accepted too, as in `problem.solve`. None: all
        that are installed.
    tols : sequence of float, optional
        The tolerances that each solver is asked for, the loosest first; by default 1e-3, 1e-5 and
        1e-7, or for problems the solver's own default. After a run that reached a limit, tighter
        tolerances are not tried, and their rows say so.
    time_limit : float
        Seconds a run may take. Solvers of M-steps are told this limit, and their process is ended
        two seconds after it. The proof of a problem has no limit.
    memory_limit : int
        Bytes of resident memory a run may take, the imported libraries included. Where a system
        cannot limit it (macOS, Windows), the notes of the table say so.
    out : path, optional
        A file of JSON lines to which each row is appended when it is finished.
    resume : bool
        Continue the race in `out`: no finished row is lost or repeated.
    callback : callable, optional
        Called as ``callback(row, number, total)`` after each new row.
    repeats : int
        How many times each run is made. With more than one, each round has its own random order,
        and a run that reached a limit is not repeated.
    progress : callable, optional
        Called with each step of the proof of a problem.

    Returns
    -------
    Race
        A table whose rows :class:`~seraph_cvx.race.race_table.Race` explains.

    Notes
    -----
    Runs are made one after the other, each in its own process with limits on time and memory and
    one BLAS thread. Only the answer and the solver's status are returned from it. The variables of
    a problem keep their values, which solvers do not see.

    Examples
    --------
    >>> from seraph_cvx import MStepObjective, PairSet, compare_solvers
    >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
    >>> table = compare_solvers(MStepObjective(pairs), solvers=["newton", "CLARABEL"], tols=[1e-6])
    >>> [(row["solver"], row["formulation"], row["true_gap"] < 1e-5) for row in table.rows]
    [('newton', '', True), ('CLARABEL', 'primal', True), ('CLARABEL', 'dual', True)]
    """
    instances = _instances(objective_or_suite, progress)
    first = next(iter(instances.values()))
    ladder: Any = list(first.ladder)  # of tolerances, the loosest first
    if tols is not None:
        ladder = sorted({float(tol) for tol in tols}, reverse=True)
        if not ladder or not all(0.0 < tol < 1.0 for tol in ladder):
            raise ValueError(f"tols={list(tols)}: at least one number between 0 and 1 is needed.")
    chosen = first.entrants(solvers)  # which may take seconds: those of other packages are tried
    runs = _in_order(list(instances), chosen, ladder, check_count(repeats, "repeats"))
    settings = {
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
        _begin(journal, instances, settings)
        _make_runs(runs, instances, journal, callback)
        return _result(journal, [journal.rows[key] for key in runs])


def _instances(given: Any, progress: Callable[[str], None] | None) -> dict[str, Instance]:
    """The instances of a race, by name: M-steps, or problems."""
    if isinstance(given, str):
        given = suite(given) if given in SUITES else [given]
    is_one = isinstance(given, MStepObjective | InstanceSpec) or _is_problem(given)
    ones = [given] if is_one else given.values() if isinstance(given, Mapping) else given
    made = [_instance(one, progress) for one in ones]
    names = given if isinstance(given, Mapping) else [one.name for one in made]
    if not made or len(set(map(type, made))) > 1:
        raise ValueError("A race needs one M-step or problem or more, all of them of one kind.")
    return dict(zip(names, made, strict=True))


def _is_problem(given: Any) -> bool:
    return type(given).__module__.startswith("cvxpy.")


def _instance(given: Any, progress: Callable[[str], None] | None) -> Instance:
    """The instance of an M-step, of its name, or of a problem; any other kind is one already."""
    if hasattr(given, "grade"):
        return cast("Instance", given)
    if _is_problem(given):
        from .problems import ProblemInstance

        return ProblemInstance(given, progress)
    if isinstance(given, str):
        given = InstanceSpec.parse(given)
    if not isinstance(given, MStepObjective | InstanceSpec):
        raise ValueError(
            "A race needs an MStepObjective, a problem of CVXPY or a dict of them by name, the "
            f"name of a suite or instance, or a list of names or InstanceSpec; not {given!r}."
        )
    return MStepInstance(given)


def _in_order(
    instances: Sequence[str],
    chosen: Sequence[Entrant],
    ladder: Sequence[float | None],
    repeats: int,
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


def versions(chosen: Sequence[Entrant]) -> dict[str, str]:
    """The versions of this package, of its libraries and of the solvers that race.

    Examples
    --------
    >>> from seraph_cvx.race.compare import versions
    >>> from seraph_cvx.race.solvers import entrants
    >>> list(versions(entrants(["newton"])))
    ['python', 'seraph-cvx', 'numpy', 'scipy', 'scikit-learn', 'cvxpy']
    """
    others = {entrant.distribution for entrant in chosen} - {""}
    found = {"python": platform.python_version()}
    for name in ("seraph-cvx", "numpy", "scipy", "scikit-learn", "cvxpy", *sorted(others)):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "?"
    return found


def _begin(
    journal: RaceJournal, instances: Mapping[str, Instance], settings: dict[str, Any]
) -> None:
    """Write what races; an error if the rows so far have other M-steps, problems or limits."""
    for name, instance in instances.items():
        known = journal.references.get(name)
        if known is not None and known["checksum"] != instance.checksum:
            raise ValueError(
                f"The rows of the {name} in {journal.path} are of other points, pairs, soft "
                "labels or coefficients: give another file."
            )
    for limit in ("time_limit", "memory_limit"):
        if journal.races and journal.races[-1][limit] != settings[limit]:
            raise ValueError(
                f"The rows in {journal.path} were made with another {limit}, "
                f"{journal.races[-1][limit]:g}: give that one, or another file."
            )
    journal.add("race", settings)
    if obstacle := memory_limit_obstacle():
        journal.notes.append(obstacle)


# The runs


def _make_runs(
    runs: dict[Key, Entrant],
    instances: Mapping[str, Instance],
    journal: RaceJournal,
    callback: Listener | None,
) -> None:
    """Make the runs that are not in the journal, each after the easier ones; write their rows."""
    easier = _easier_runs(runs)
    missing = [key for key in runs if key not in journal.rows]
    packages = {entrant.package for entrant in runs.values() if entrant.package}
    limits = journal.races[-1]
    memory_limit = None if memory_limit_obstacle() else limits["memory_limit"]
    with ForkServer([*PRELOAD, *sorted(packages)], ONE_THREAD) as server:
        while missing:
            key = next(k for k in missing if all(other in journal.rows for other in easier[k]))
            missing.remove(key)
            name, instance, seconds = key[0], instances[key[0]], limits["time_limit"]
            if name not in journal.references:
                journal.add("reference", {"instance": name, **instance.reference()})
            known = (_obstacle(journal.rows[other], seconds) for other in easier[key])
            obstacle = next(filter(None, known), "")
            if obstacle:
                nothing = {"total_seconds": None, "peak_bytes": None}
                outcome = Outcome(NOT_RUN, nothing, obstacle, 0.0)
            else:
                work = pickled((instance.sent, runs[key])), key[3], seconds
                outcome = server.run(
                    attempt_once, *work, time_limit=seconds + GRACE, memory_limit=memory_limit
                )
            row = dict(zip(KEY_FIELDS, key, strict=True))
            row |= instance.grade(journal.references[name]["lower"], key[3], outcome)
            journal.add("row", row)
            if callback is not None:
                callback(row, len(runs) - len(missing), len(runs))


def _easier_runs(runs: Iterable[Key]) -> dict[Key, list[Key]]:
    """For each run: the next looser one, and that of the repeat before."""
    easier: dict[Key, list[Key]] = {key: [] for key in runs}
    for looser, key in pairwise(easier):
        if looser[:3] == key[:3] and looser[4] == key[4]:
            easier[key].append(looser)
    for key in easier:
        before = (*key[:4], key[4] - 1)
        easier[key] += [before] if before in easier else []
    return easier


def _obstacle(easier: dict[str, Any], time_limit: float) -> str:
    """Why a run is skipped: an easier one took all its time, or was ended at a limit."""
    outcome = easier["outcome"]
    if outcome == NOT_RUN:
        return str(easier["detail"])
    late = (easier["total_seconds"] or 0.0) >= time_limit and not easier["claims"]
    if late or outcome in ("time limit", "memory limit"):
        limit = "time limit" if outcome == "done" else outcome
        return f"it came to its {limit} at {asked(easier)} on {easier['instance']}"
    return ""


# The table


def read_race(path: str | os.PathLike[str]) -> Race:
    """Read a race that was run before from its file, without running anything.

    The rows come in the order of a race that was never interrupted. The solvers and data sets need
    not be installed.

    Parameters
    ----------
    path : path
        The file that was given to :func:`compare_solvers` as `out`; it is not changed.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from seraph_cvx.race.race_table import EMPTY_ROW
    >>> row = EMPTY_ROW | dict(instance="iris", solver="newton", formulation="", tol=1e-3, repeat=1)
    >>> start = {"time_limit": 5.0, "instances": ["iris"], "entrants": ["newton"]}
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "race.jsonl"
    ...     with RaceJournal(file) as journal:
    ...         journal.add("race", start)
    ...         journal.add("row", row)
    ...     race = read_race(file)
    >>> race.time_limit, race.rows == [row]
    (5.0, True)
    """
    journal = RaceJournal()
    journal.read(Path(path))
    if not journal.rows or not journal.races:
        raise ValueError(f"{path} has no row of a race: give the file that a race wrote.")
    return _result(journal, journal.rows.values())


def _result(journal: RaceJournal, rows: Iterable[dict[str, Any]]) -> Race:
    """The table of rows of a journal, in order."""
    rows = sorted(rows, key=_position(journal.races))
    names = dict.fromkeys(row["instance"] for row in rows)
    references = {name: journal.references[name] for name in names if name in journal.references}
    notes = journal.notes + [known["claim"] for known in references.values() if "claim" in known]
    return Race("What the solvers say, and what is proven", rows, notes, references, journal.races)


def _position(starts: Sequence[dict[str, Any]]) -> Callable[[Any], tuple[Any, ...]]:
    """Where a row comes in a table: by instance, entrant, tolerance and repeat."""
    instances, labels = (
        {name: k for k, name in enumerate(dict.fromkeys(n for start in starts for n in start[of]))}
        for of in ("instances", "entrants")
    )

    def position(row: dict[str, Any]) -> tuple[Any, ...]:
        instance = instances.get(row["instance"], len(instances))
        entrant = labels.get(label_of(row), len(labels))
        return instance, entrant, -(row["tol"] or 1.0), row["repeat"]

    return position
