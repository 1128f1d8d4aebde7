"""What all measurements share: a table that grows row by row, timers, and the points."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from seraph_cvx import NotCertified, PairSet
from seraph_cvx.datasets import load_sampling
from seraph_cvx.display.result_table import ResultTable
from seraph_cvx.pairs.data_warnings import ScaleWarning

Row = Mapping[str, Any]
MeasuredRows = Iterator[Row]
"""What a measurement yields, in the order of measuring."""

TASKS = ("iris", "wine", "breast_cancer", "balance", "ionosphere", "diabetes")
"""The paper's six UCI tasks."""

DIGITS = ("digits", "usps", "mnist")
"""Tasks of more features."""

LABELED = dict.fromkeys(("ionosphere", *DIGITS), 20)
"""How many of their 100 points are labeled; 10 of the others."""


class Report:
    """The rows of a measurement, kept also if it is interrupted; `tell` and `show` its progress."""

    def __init__(
        self,
        tell: Callable[[str], object] = lambda text: None,
        show: Callable[[Row], object] = lambda row: None,
    ) -> None:
        self.tell, self._show = tell, show
        self._title, self._is_complete = "", False
        self._rows: list[Row] = []
        self._notes: list[str] = []

    def start(self, title: str) -> None:
        """Begin the table."""
        self._title = title

    def note(self, text: str) -> None:
        """Write something below the table."""
        self._notes.append(text)

    def add(self, row: Row) -> None:
        """Keep a row and show it."""
        self._rows.append(row)
        self._show(row)

    def measure(self, measurement: Callable[..., MeasuredRows], *given: Any, **options: Any):
        """Add the rows of a measurement and return the complete table."""
        for row in measurement(self, *given, **options):
            self.add(row)
        self._is_complete = True
        return self.table()

    def table(self) -> ResultTable:
        """The table so far, with a note if it is incomplete."""
        if self._is_complete:
            return ResultTable(self._title, self._rows, self._notes)
        stopped = f"Incomplete: stopped after {len(self._rows)} of its rows."
        return ResultTable(self._title, self._rows, [stopped])


def timed(run: Callable[..., Any], *arguments: Any, repeats: int = 1, **settings: Any):
    """What a function returns, and the least seconds of some runs of it."""
    least, result = np.inf, None
    for _ in range(repeats):
        clock = time.perf_counter()
        result = run(*arguments, **settings)
        least = min(least, time.perf_counter() - clock)
    return result, least


@contextmanager
def quiet() -> Iterator[None]:
    """A context without warnings of what the row says anyway."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCertified)
        warnings.simplefilter("ignore", ScaleWarning)  # raw features are measured on purpose
        warnings.filterwarnings("ignore", "Solution may be inaccurate")
        yield


def task_pairs(name: str, seed: int = 0) -> PairSet:
    """Draw the pairs of 100 points of a task."""
    drawn = load_sampling(name, n_labeled=LABELED.get(name, 10), seed=seed)
    return PairSet.from_labels(drawn.X, drawn.y)


def draw_tasks(
    report: Report, tasks: Sequence[str], seeds: Sequence[int], column: str
) -> Iterator[tuple[dict[str, Any], PairSet]]:
    """Draw the pairs of each task and seed; missing data becomes a row that says so in `column`."""
    for name in tasks:
        for seed in seeds:
            report.tell(f"{name}, seed {seed}")
            try:
                yield {"task": name, "seed": seed}, task_pairs(name, seed)
            except FileNotFoundError as missing:
                report.add({"task": name, column: f"not measured: {missing}"})
                break


def gaussian_classes(n: int, m: int, n_classes: int = 10, seed: int = 0) -> tuple[Any, Any]:
    """Draw points of Gaussian classes to measure on, ten of each class labeled."""
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(n_classes, m)) / 2.0
    classes = rng.integers(n_classes, size=n)
    X = means[classes] + rng.normal(size=(n, m))
    known = np.concatenate([np.flatnonzero(classes == c)[:10] for c in range(n_classes)])
    y = np.full(n, -1)
    y[known] = classes[known]
    return X, y
