"""All runs of Table 2: in parallel, resumable, each saved as soon as it is finished."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Any

from joblib import delayed

from seraph_cvx.numerics.checks import check_number
from seraph_cvx.processes.workers import as_finished, close_servers, one_by_one

from ..protocol.samplings import SCALINGS, VARIANTS
from ..protocol.tasks import find_tasks
from .bookkeeping import Ledger, RunJournal
from .methods import find_methods
from .single_run import DONE, OWNER, Protocol, run_method

DEFAULT_TIME_CAP = 1800.0
"""Seconds that all samplings of one task and method may take together."""

NOT_SAID = (
    "No complete line says which scaling and variant the finished runs were made with: it is "
    "assumed that they are those asked for now."
)


@dataclass(frozen=True)
class Progress:
    """What a callback is told after each finished run."""

    row: dict[str, Any]
    number: int
    total: int
    seconds_left: float


@dataclass(frozen=True)
class RunTable:
    """The rows of all runs asked for, in the order of task, sampling and method, with notes."""

    rows: list[dict[str, Any]]
    tasks: list[str]
    methods: list[str]
    protocol: Protocol
    notes: list[str]


def run_methods(
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
) -> RunTable:
    """Run every method on samplings of every task: the 1-NN errors and times of Section 5.2."""
    check_number(n_samplings, "n_samplings", 1.0)
    check_number(time_cap, "time_cap", 0.0, strict=True)
    protocol = _checked(Protocol() if protocol is None else protocol)
    names = {method.name: given for method, given in _given(methods)}
    chosen = [task.name for task in find_tasks(tasks)]
    for task in chosen:
        protocol.points(task)  # missing data are reported before anything runs
    keys = [(t, s, m) for t in chosen for s in range(n_samplings) for m in names]
    with RunJournal(out, resume) as journal:
        _check_same_protocol(journal.headers, protocol, out)
        if journal.finished and not journal.headers:
            journal.notes.append(NOT_SAID)
        journal.add("run", _describe(chosen, list(names), n_samplings, protocol, time_cap))
        kept = {
            key: journal.finished[key]
            for key in keys
            if key in journal.finished and not (retry and journal.finished[key]["outcome"] != DONE)
        }
        ledger = Ledger(keys, kept, time_cap, n_jobs)
        calls = (
            delayed(run_method)(key, names[key[2]], protocol, ledger.seconds_left(key))
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
        return RunTable(rows, chosen, list(names), protocol, journal.notes)


def _in_parallel(calls: Iterator[Any], n_jobs: int | None) -> Generator[dict[str, Any], None, None]:
    """Yield rows as they are finished; a call is made only when a worker is free."""
    try:
        yield from as_finished(one_by_one(n_jobs), calls)
    finally:
        close_servers(OWNER)


def _given(methods: Sequence[str] | None) -> Iterator[tuple[Any, str]]:
    """Pair each method with the name it was asked for by."""
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
    headers: Sequence[Mapping[str, Any]], protocol: Protocol, out: str | os.PathLike[str] | None
) -> None:
    for header in headers:
        for name in ("scaling", "variant"):
            if header["protocol"][name] != getattr(protocol, name):
                raise ValueError(
                    f"The runs in {out} were made with {name}={header['protocol'][name]}, not "
                    f"{getattr(protocol, name)}: use the same, or another folder."
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
