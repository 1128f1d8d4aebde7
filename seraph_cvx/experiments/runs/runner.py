"""All cells of Table 2: in parallel, resumable, each finished one on the disk at once."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Any

from joblib import delayed

from ...numerics.checks import check_number
from ...processes.workers import as_finished, close_servers, one_by_one
from ..protocol.samplings import SCALINGS, VARIANTS
from ..protocol.tasks import find_tasks
from .bookkeeping import CellJournal, Ledger
from .cells import DONE, OWNER, Protocol, run_cell
from .methods import find_methods

DEFAULT_TIME_CAP = 1800.0
"""Seconds that all samplings of one task and method may take together."""

NOT_SAID = (
    "No whole line says with what scaling and variant the cells that are there already were made: "
    "they are taken for cells of this run."
)


@dataclass(frozen=True)
class Progress:
    """Told after each finished cell.

    Attributes
    ----------
    row : dict
        The cell's.
    number, total : int
        How many cells are finished, of how many.
    seconds_left : float
        An estimate, from the cells finished so far.
    """

    row: dict[str, Any]
    number: int
    total: int
    seconds_left: float


@dataclass(frozen=True)
class CellTable:
    """The rows of all cells asked for, by task, sampling and method, and what is to be said.

    Attributes
    ----------
    rows : list of dict
        See :func:`.cells.run_cell`.
    tasks, methods : list of str
        Their names, in the order asked for.
    protocol : Protocol
    notes : list of str
        What was strange about the file of an earlier run.
    """

    rows: list[dict[str, Any]]
    tasks: list[str]
    methods: list[str]
    protocol: Protocol
    notes: list[str]


def run_cells(
    tasks: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    n_samplings: int = 50,
    protocol: Protocol | None = None,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    retry: bool = False,
    n_jobs: int | None = None,
    time_cap: float = DEFAULT_TIME_CAP,
    callback: Callable[[Progress], object] | None = None,
) -> CellTable:
    """The 1-NN errors and learning times of Section 5.2: every method on samplings of every task.

    Parameters
    ----------
    tasks, methods : sequence of str, optional
        Of :func:`.tasks.find_tasks` and :func:`.methods.find_methods`; None: all.
    n_samplings : int
        Seeds 0, 1, ..., the same samplings for all methods.
    protocol : Protocol, optional
        Scaling, way of drawing labels, folder of the data.
    out : path, optional
        A file of JSON lines to which each finished cell is appended.
    resume : bool
        Go on with the run that is in `out`: cells that are there are not run again.
    retry : bool
        Except those that failed or were cut off.
    n_jobs : int, optional
        Worker processes of joblib; -1: one a core. None is 1, or what
        ``joblib.parallel_config`` says; its backend (loky, dask, ...) is used too.
    time_cap : float
        Seconds of learning that a task and method may take for all samplings together. A cell
        that passes it is ended; it and those after it are rows that say so. Cells that run at
        the same time do not see each other's time.
    callback : callable, optional
        Called with a :class:`Progress` after each cell.

    Returns
    -------
    CellTable
        A method that fails, crashes or takes too long has a row with the reason.

    Examples
    --------
    >>> table = run_cells(["iris"], ["euclidean"], n_samplings=2)
    >>> [(row["sampling"], row["outcome"]) for row in table.rows]
    [(0, 'done'), (1, 'done')]
    """
    check_number(n_samplings, "n_samplings", 1.0)
    check_number(time_cap, "time_cap", 0.0, strict=True)
    protocol = _checked(Protocol() if protocol is None else protocol)
    names = {method.name: given for method, given in _given(methods)}
    chosen = [task.name for task in find_tasks(tasks)]
    for task in chosen:
        protocol.points(task)  # missing data are told before anything runs
    keys = [(t, s, m) for t in chosen for s in range(n_samplings) for m in names]
    with CellJournal(out, resume) as journal:
        _check_same_protocol(journal.runs, protocol, out)
        if journal.cells and not journal.runs:
            journal.notes.append(NOT_SAID)
        journal.add("run", _describe(chosen, list(names), n_samplings, protocol, time_cap))
        kept = {
            key: journal.cells[key]
            for key in keys
            if key in journal.cells and not (retry and journal.cells[key]["outcome"] != DONE)
        }
        ledger = Ledger(keys, kept, time_cap, n_jobs)
        calls = (
            delayed(run_cell)(key, names[key[2]], protocol, ledger.seconds_left(key))
            for key in keys
            if key not in kept
        )
        with closing(_in_parallel(calls, n_jobs)) as finished:
            for row in finished:
                journal.add("cell", row)
                ledger.enter(row)
                if callback is not None:
                    callback(Progress(row, len(ledger.rows), len(keys), ledger.estimate()))
        rows = [ledger.rows[key] for key in keys]
        return CellTable(rows, chosen, list(names), protocol, journal.notes)


def _in_parallel(calls: Iterator[Any], n_jobs: int | None) -> Generator[dict[str, Any], None, None]:
    """Rows as they are finished; calls are drawn only when a worker is free."""
    try:
        yield from as_finished(one_by_one(n_jobs), calls)
    finally:
        close_servers(OWNER)


def _given(methods: Sequence[str] | None) -> Iterator[tuple[Any, str]]:
    """Each method with the word it was asked for by."""
    if methods is None:
        yield from ((method, method.name) for method in find_methods())
    else:
        for word in methods:
            yield find_methods([word])[0], word


def _checked(protocol: Protocol) -> Protocol:
    for name, value, known in (
        ("scaling", protocol.scaling, SCALINGS),
        ("variant", protocol.variant, VARIANTS),
    ):
        if value is not None and value not in known:
            raise ValueError(f"{name}={value!r} is not known: use one of {', '.join(known)}.")
    return protocol


def _check_same_protocol(
    runs: Sequence[Mapping[str, Any]], protocol: Protocol, out: str | os.PathLike[str] | None
) -> None:
    for run in runs:
        for name in ("scaling", "variant"):
            if run["protocol"][name] != getattr(protocol, name):
                raise ValueError(
                    f"The cells in {out} were made with {name}={run['protocol'][name]}, not "
                    f"{getattr(protocol, name)}: give the same, or another folder."
                )


def _describe(
    tasks: list[str], methods: list[str], n_samplings: int, protocol: Protocol, time_cap: float
) -> dict[str, Any]:
    return {
        "date": time.strftime("%Y-%m-%d"),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
        "tasks": tasks,
        "methods": methods,
        "samplings": n_samplings,
        "protocol": {k: v for k, v in asdict(protocol).items() if k != "data_dir"},
        "time_cap": time_cap,
    }
