"""All runs of the benchmark of defaults: in parallel, resumable, each saved as it is finished."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import delayed

from seraph_cvx.numerics.checks import check_number
from seraph_cvx.processes.workers import as_finished, one_by_one

from .contestants import Contestant, find_contestants
from .data_sets import DataSet, find_sets
from .draws import draw_points
from .journal import BenchJournal, RunKey
from .measures import run_on_draw
from .statistics import Results

LABELS = (2, 3, 5, 10)
"""Labels a class."""

DRAWS = 20


@dataclass(frozen=True)
class BenchProgress:
    """What a callback is told after each finished run: its row, and how many of how many."""

    row: dict[str, Any]
    number: int
    total: int


@dataclass(frozen=True)
class BenchTable:
    """The rows of runs, with what was wrong with the journal."""

    rows: list[dict[str, Any]]
    notes: list[str]

    def mean(self, method: str, measure: str = "error", labels: int | None = None) -> float:
        """The mean of a measure over all sets, each with the same weight; NaN without any run."""
        results = Results(self.rows, measure)
        cells = [cell for cell in results.cells if labels in (None, cell[1])]
        means = [results.mean(method, cell) for cell in cells]
        known = [mean for mean in means if mean is not None]
        return float(np.mean(known)) if known else np.nan


def bench_defaults(
    methods: Sequence[str] | Mapping[str, Callable[[], Any]] | None = None,
    sets: Sequence[str] | Mapping[str, tuple[Any, Any]] | None = None,
    labels: Sequence[int] = LABELS,
    draws: int | Sequence[int] = DRAWS,
    *,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    forget: Sequence[str] = (),
    n_jobs: int | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    callback: Callable[[BenchProgress], object] | None = None,
) -> BenchTable:
    """Run methods on draws of data sets with 2, 3, 5 and 10 labels a class."""
    numbers = list(range(draws)) if isinstance(draws, int) else list(draws)
    for number in labels:
        check_number(number, "labels", 1.0)
    chosen, found = find_contestants(methods), find_sets(sets, data_dir)
    with BenchJournal(out, resume) as journal:
        journal.note_sets(found)
        for name in forget:
            journal.add("forget", {"method": name})
        keys = [
            (d.name, n, k, c.name) for k in numbers for d in found for n in labels for c in chosen
        ]
        waiting = [key for key in keys if key not in journal.finished]
        done = len(keys) - len(waiting)
        calls = _calls(waiting, found, chosen)
        with closing(as_finished(one_by_one(n_jobs), calls)) as finished:
            for row in finished:
                journal.add("run", row)
                done += 1
                if callback is not None:
                    callback(BenchProgress(row, done, len(keys)))
        return BenchTable(list(journal.finished.values()), journal.notes)


def _calls(
    keys: Sequence[RunKey], found: Sequence[DataSet], chosen: Sequence[Contestant]
) -> Iterator[Any]:
    """The work for each key; a draw is made once for all its methods, when it is needed."""
    sets = {data.name: data for data in found}
    make = {contestant.name: contestant.make for contestant in chosen}
    last, draw = None, None
    for name, labels, number, method in keys:
        if last != (name, labels, number):
            last, draw = (name, labels, number), draw_points(sets[name], labels, number)
        yield delayed(run_on_draw)(method, make[method], draw)
