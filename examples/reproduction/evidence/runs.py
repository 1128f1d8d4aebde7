"""All runs of Table 2: in parallel, resumable, each in a process of its own and saved at once."""

from __future__ import annotations

import os
import platform
import time
import warnings
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
from joblib import Parallel, delayed

from seraph_cvx.numerics.arrays import one_blas_thread
from seraph_cvx.numerics.checks import check_number
from seraph_cvx.numerics.psd_cone import numerical_rank
from seraph_cvx.processes.isolation import ONE_THREAD, ForkServer
from seraph_cvx.processes.journal import Journal

from .methods import METHODS, find_method
from .tasks import (
    SCALINGS,
    VARIANTS,
    draw_sampling,
    find_task,
    find_tasks,
    load_task,
    nearest_neighbor_error,
)

DONE, FAILED, CUT_OFF = "done", "failed", "cut off"
"""The outcomes of a run."""

EMPTY: dict[str, Any] = {
    "outcome": None,
    "error": None,
    "seconds": 0.0,
    "cpu_seconds": 0.0,
    "rank": None,
    "detail": "",
    "warnings": [],
}
"""What a run has besides its key; `detail` says why there is no error."""

Callback = Callable[[dict[str, Any], int, int], object]
"""Called after each run with its row, and how many runs are finished of how many."""


class RunTable(NamedTuple):
    """The rows of all runs asked for, and what was wrong with the file that was resumed."""

    rows: list[dict[str, Any]]
    notes: list[str]


class RunJournal(Journal):
    """The finished runs of a table by their key, on the disk; the later of two with one key.

    Lines of the kind `header` say under what `conditions` runs were made: a name and a value each.
    """

    work = "reproduction"
    kind: ClassVar[str]
    header: ClassVar[str]
    key: ClassVar[dict[str, type]]
    measures: ClassVar[tuple[str, ...]]

    def __init__(self, path: str | os.PathLike[str] | None = None, resume: bool = False) -> None:
        self.finished: dict[tuple[Any, ...], dict[str, Any]] = {}
        self.conditions: dict[str, Any] = {}
        super().__init__(path, resume)

    def take(self, kind: str, content: dict[str, Any]) -> None:
        """Check a line and keep it."""
        if kind == self.kind:
            self._check(content)
            self.finished[tuple(content[name] for name in self.key)] = content
        elif kind == self.header:
            self.conditions |= self.conditions_of(content)
        else:
            raise ValueError(f"a line of kind {kind!r}")

    def keep(self, is_kept: Callable[[dict[str, Any]], bool]) -> None:
        """Forget the other runs."""
        self.finished = {key: row for key, row in self.finished.items() if is_kept(row)}

    @abstractmethod
    def conditions_of(self, header: dict[str, Any]) -> dict[str, Any]:
        """Under what conditions the next runs were made."""

    def _check(self, row):
        """Refuse a line that was damaged, or changed by hand."""
        measured = [row[name] for name in self.measures if row[name] is not None]
        if (
            row["outcome"] not in (DONE, FAILED, CUT_OFF)
            or (row["outcome"] == DONE and row["error"] is None)
            or row["seconds"] < 0.0
            or not all(0.0 <= x <= 100.0 for x in measured)
        ):
            raise ValueError(f"outcome {row['outcome']!r}, measures {measured}")

    def make_runs(self, keys, call, n_jobs: int | None, callback: Callback | None) -> None:
        """Make and record the runs that are not finished; a call waits for a free worker."""
        missing = [key for key in keys if key not in self.finished]
        workers = Parallel(n_jobs, return_as="generator_unordered", batch_size=1,
                           pre_dispatch="n_jobs")  # fmt: skip
        with warnings.catch_warnings(), closing(workers(map(call, missing))) as rows:
            # joblib's, where it is stopped
            warnings.filterwarnings("ignore", r"\d+ tasks (have been|which were)", UserWarning)
            for number, row in enumerate(rows, start=len(keys) - len(missing) + 1):
                self.add(self.kind, row)
                if callback is not None:
                    callback(row, number, len(keys))


class CellJournal(RunJournal):
    """The runs of Table 2, made with a scaling and a variant."""

    kind, header = "cell", "run"
    key: ClassVar = {"task": str, "sampling": int, "method": str}
    measures = ("error",)

    def conditions_of(self, header: dict[str, Any]) -> dict[str, Any]:
        """The scaling and the variant."""
        return {name: header["protocol"][name] for name in CONDITIONS}


CONDITIONS = {"scaling": SCALINGS, "variant": VARIANTS}
"""What the runs of a file have in common, and the values besides None."""


@dataclass(frozen=True)
class Protocol:
    """What all runs of a reproduction share; None is each task's own."""

    scaling: str | None = None
    variant: str | None = None
    data_dir: str | None = None

    def points(self, task: str):
        """Load X and y of a task, scaled, and keep them in memory."""
        return _load(find_task(task), self.scaling, self.data_dir)


_load = lru_cache(maxsize=4)(load_task)


def run_methods(
    tasks: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    n_samplings: int = 50,
    protocol: Protocol | None = None,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    retry: bool = False,
    n_jobs: int | None = None,
    time_cap: float = 1800.0,
    callback: Callback | None = None,
) -> RunTable:
    """Run every method on samplings 0, 1, ... of every task: the 1-NN errors of Section 5.2.

    Each finished run is appended to `out`; with `resume` none of them is repeated, except, with
    `retry`, those that failed or were cut off. `time_cap`: seconds of learning that a task and
    method may take for all samplings together, those under way not counted.
    """
    check_number(n_samplings, "n_samplings", 1.0)
    check_number(time_cap, "time_cap", 0.0, strict=True)
    protocol = Protocol() if protocol is None else protocol
    asked = {name: getattr(protocol, name) for name in CONDITIONS}
    for name, value in asked.items():
        if value not in (None, *CONDITIONS[name]):
            known = ", ".join(CONDITIONS[name])
            raise ValueError(f"{name}={value!r} is not known: use one of {known}.")
    names = {find_method(word).name: word for word in (METHODS if methods is None else methods)}
    chosen = [task.name for task in find_tasks(tasks)]
    for task in chosen:
        protocol.points(task)  # missing data are reported before anything runs
    keys = [(t, s, m) for t in chosen for s in range(n_samplings) for m in names]
    with CellJournal(out, resume) as journal:
        _check_conditions(journal, asked)
        description = {
            "date": time.strftime("%Y-%m-%d"),
            "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
            "tasks": chosen,
            "methods": list(names),
            "samplings": n_samplings,
            "protocol": asked,
            "time_cap": time_cap,
        }
        journal.add("run", description)
        if retry:
            journal.keep(lambda row: row["outcome"] == DONE)

        def call(key):
            of_both = [r for (t, _, m), r in journal.finished.items() if (t, m) == key[::2]]
            time_left = time_cap - sum(row["seconds"] for row in of_both)
            return delayed(run_method)(key, names[key[2]], protocol, time_left)

        journal.make_runs(keys, call, n_jobs, callback)
        return RunTable([journal.finished[key] for key in keys], journal.notes)


def _check_conditions(journal, asked):
    for name, made in journal.conditions.items():
        if made != asked[name]:
            raise ValueError(
                f"The runs in {journal.path} were made with {name}={made}, not {asked[name]}: use "
                "the same, or another folder."
            )
    if journal.finished and not journal.conditions:
        journal.notes.append(
            "No complete line says which scaling and variant the finished runs were made with: it "
            "is assumed that they are those asked for now."
        )


@cache
def fork_server() -> ForkServer:
    """The fork server of this process, which ends with it; joblib's workers have one each."""
    return ForkServer([__name__], ONE_THREAD)


def run_method(
    key: tuple[str, int, str], method: str, protocol: Protocol, time_limit: float
) -> dict[str, Any]:
    """Run a method on one sampling: its 1-NN error (in %) and the seconds that learning took."""
    task, seed, name = key
    row: dict[str, Any] = {"task": task, "sampling": seed, "method": name, **EMPTY}
    if time_limit <= 0.0:
        return row | {"outcome": CUT_OFF, "detail": "the time of this task and method is spent"}
    sampling = draw_sampling(find_task(task), *protocol.points(task), seed, protocol.variant)
    outcome = fork_server().run(learn, method, sampling.X, sampling.y, seed, time_limit=time_limit)
    if outcome.status == "done":
        components, facts = outcome.result
        with one_blas_thread():
            error = nearest_neighbor_error(sampling, components)
        return row | facts | {"outcome": DONE, "error": error}
    status = "" if outcome.status == "error" else f"{outcome.status}: "
    return row | {
        "outcome": CUT_OFF if outcome.status == "time limit" else FAILED,
        "seconds": outcome.seconds,
        "detail": status + outcome.detail,
    }


def learn(method: str, X, y, seed: int):
    """Learn the factor L of a metric, in the process of a run, and measure what it takes."""
    chosen = find_method(method)
    if method in METHODS:  # a function of the user's own is called once only
        _warm_up(chosen)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clock, cpu_clock = time.perf_counter(), time.process_time()
        L = np.asarray(chosen.learn(X, y, seed), dtype=np.float64)
        seconds, cpu_seconds = time.perf_counter() - clock, time.process_time() - cpu_clock
    if L.ndim != 2 or L.shape[1] != X.shape[1] or not np.all(np.isfinite(L)):
        raise ValueError(
            f"{method} returned components of shape {L.shape}, or not finite: (k, {X.shape[1]}) "
            "finite numbers are needed."
        )
    return L, {
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "rank": numerical_rank(L.T @ L),
        "warnings": list(dict.fromkeys(f"{w.category.__name__}: {w.message}" for w in caught)),
    }


def _warm_up(method):
    """Let a method learn from six points, so that no run's time has what is done once a process."""
    X, y = np.arange(18.0).reshape(6, 3) % 7.0, np.array([0, 0, 1, 1, -1, -1])
    with warnings.catch_warnings(), suppress(Exception):
        warnings.simplefilter("ignore")
        method.learn(X, y, 0)
