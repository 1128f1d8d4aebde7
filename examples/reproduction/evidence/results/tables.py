"""Tables 1 and 2 from rows of runs, next to what the paper prints."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping, Sequence
from typing import Any

from seraph_cvx.display.result_table import ResultTable

from ..protocol.protocol_evidence import expected_sizes
from ..protocol.tasks import TASKS, Task
from ..runs.methods import METHODS
from ..runs.single_run import CUT_OFF, DONE, EMPTY
from .summaries import Rows, Summary

TASKS_A_BLOCK = 6
"""Table 2 is printed in two blocks."""


def table1(
    tasks: Sequence[Task],
    n_draws: int = 2_000,
    variant: str | None = None,
    data_dir: str | os.PathLike[str] | None = None,
) -> ResultTable:
    """Make Table 1: the sizes of each task, E#S, E#D and #U, as drawn and as printed."""
    rows = []
    for task in tasks:
        sizes = expected_sizes(task, variant, n_draws, data_dir)
        rows.append(
            {
                "task": task.title,
                "#classes": task.n_classes,
                "#features (m)": task.n_features,
                "#training (n)": task.n_training,
                "#test": task.n_test,
                "#class labels": task.n_labels,
                "E#S": f"{sizes.similar:.2f}",
                "E#S printed": f"{task.similar:.2f}",
                "E#D": f"{sizes.dissimilar:.2f}",
                "E#D printed": f"{task.dissimilar:.2f}",
                "#U": f"{sizes.unlabeled:.0f}",
                "#U printed": f"{task.unlabeled}",
                "±": f"{sizes.error_of_fifty:.2f}",
            }
        )
    note = (
        f"E#S and E#D are means over {n_draws} draws; ± is the standard error of such a mean over "
        "50 samplings, as many as are behind the printed figures."
    )
    return ResultTable("Table 1. Specification of benchmark data sets", rows, [note])


def table2(summaries: Sequence[Summary]) -> list[ResultTable]:
    """Make Table 2 as the paper lays it out, in blocks of six tasks, with the printed rows."""
    tasks = [name for name in TASKS if any(s.task == name for s in summaries)]
    methods = list(dict.fromkeys(s.method for s in summaries))
    by_key = {(s.task, s.method): s for s in summaries}
    note = (
        "Means with standard errors of the nearest-neighbor error in %; below, the paper's figure "
        "and the difference in standard errors. Bold: the best of the task and those comparable "
        "by the unpaired t-test at 5 %."
    )
    blocks = []
    for start in range(0, len(tasks), TASKS_A_BLOCK):
        block = tasks[start : start + TASKS_A_BLOCK]
        rows = []
        for method in methods:
            row = {"": method_title(method)}
            for task in block:
                row[TASKS[task].title] = _cell(by_key.get((task, method)))
            rows.append(row)
        blocks.append(ResultTable("Table 2", rows, [note]))
    return blocks


def table2_reasons(summaries: Sequence[Summary]) -> ResultTable:
    """List each task and method whose samplings are not all done, with the reason."""
    rows = [
        {
            "task": TASKS[s.task].title,
            "method": method_title(s.method),
            "done": s.n_done,
            "failed": s.n_failed,
            "cut off": s.n_cut_off,
            "first reason": s.reason,
        }
        for s in summaries
        if s.n_failed or s.n_cut_off
    ]
    return ResultTable("What is not done", rows)


def times_table(summaries: Sequence[Summary]) -> ResultTable:
    """Tabulate Figure 3: mean seconds of learning per run, a row per method, a column per task."""
    tasks = [name for name in TASKS if any(s.task == name for s in summaries)]
    seconds = {(s.task, s.method): s.seconds for s in summaries}
    rows = []
    for method in dict.fromkeys(s.method for s in summaries):
        row: dict[str, Any] = {"method": method_title(method)}
        for task in tasks:
            found = seconds.get((task, method))
            row[TASKS[task].title] = "" if found is None else found
        rows.append(row)
    note = (
        "Every run has its own process, in which the method has learned from six points "
        "before the clock starts: what is done once in a process is in no row."
    )
    return ResultTable("Figure 3. Computation time per run, in seconds", rows, [note])


Times = dict[tuple[str, str], float]
"""The mean seconds of learning of a run, by task and method."""


def times_of(summaries: Sequence[Summary]) -> Times:
    """The times of Figure 3, without tasks and methods of which no run is done."""
    return {(s.task, s.method): s.seconds for s in summaries if s.seconds is not None}


def read_times(text: str) -> Times:
    """Read the times of Figure 3 from what :func:`times_table` wrote as CSV."""
    methods = {method.title: method.name for method in METHODS.values()}
    tasks = {task.title: task.name for task in TASKS.values()}
    times: Times = {}
    for row in csv.DictReader(io.StringIO(text)):
        title = row.pop("method")
        method = methods.get(title, title)
        times |= {(tasks[task], method): float(word) for task, word in row.items() if word}
    return times


def to_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Write rows as CSV, with numbers to eight digits."""
    text = io.StringIO(newline="")
    columns = dict.fromkeys(key for row in rows for key in row)
    writer = csv.DictWriter(text, list(columns), lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: _eight_digits(value) for key, value in row.items()} for row in rows)
    return text.getvalue()


def _eight_digits(value: Any) -> Any:
    return float(f"{value:.8g}") if isinstance(value, float) else value


def errors_table(rows: Rows) -> list[dict[str, Any]]:
    """Count the test points that each method got wrong, a row per task and sampling."""
    lines: dict[tuple[str, int], dict[str, Any]] = {}
    for row in rows:
        task, sampling = row["task"], row["sampling"]
        n = TASKS[task].n_test
        head = {"task": task, "sampling": sampling, "test points": n}
        line = lines.setdefault((task, sampling), head)
        line[row["method"]] = round(row["error"] * n / 100.0) if row["outcome"] == DONE else ""
    return list(lines.values())


def read_errors(text: str) -> list[dict[str, Any]]:
    """Read rows of runs, as far as :func:`errors_table` keeps them, from its CSV."""
    rows = []
    for number, line in enumerate(csv.DictReader(io.StringIO(text)), start=2):
        try:
            task, sampling = line.pop("task"), int(line.pop("sampling"))
            n = int(line.pop("test points"))
            for method, wrong in line.items():
                done = {"outcome": DONE, "error": 100.0 * int(wrong) / n} if wrong else EMPTY
                rows.append(done | {"task": task, "sampling": sampling, "method": method})
        except (KeyError, TypeError, ValueError, ZeroDivisionError):
            raise ValueError(
                f"Line {number} is not one of errors.csv (task, sampling, test points, then a "
                "number for each method): make the file again by  python "
                "examples/reproduction/run.py table2"
            ) from None
    return rows


def method_title(name: str) -> str:
    """The title of a method in tables and pictures; for a user's own method its name."""
    return METHODS[name].title if name in METHODS else name


def _cell(summary: Summary | None) -> str:
    if summary is None:
        return ""
    lost = summary.n_failed + summary.n_cut_off
    if summary.mean is None:
        text = CUT_OFF if summary.n_cut_off else "failed"
    else:
        text = f"{summary.mean:.2f}"
        if summary.standard_error is not None:
            text += f" ± {summary.standard_error:.2f}"
        text = f"**{text}**" if summary.is_best else text
        text += f" ({summary.n_done} of {summary.n_done + lost})" if lost else ""
    if summary.printed is None:
        return text
    text += f"<br>{summary.printed:.2f} ± {summary.printed_error:.2f}"
    return text if summary.difference is None else f"{text} ({summary.difference:+.1f})"
