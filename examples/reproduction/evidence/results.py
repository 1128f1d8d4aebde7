"""Tables of Section 5 from rows of runs, next to what the paper prints, and their judgment."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import ttest_ind_from_stats, ttest_rel

from seraph_cvx.display.result_table import ResultTable

from .methods import METHODS, method_title
from .runs import CUT_OFF, DONE, EMPTY
from .tasks import (
    PRINTED,
    SCALINGS,
    TASKS,
    VARIANTS,
    Task,
    draw_labeled,
    draw_sampling,
    load_task,
    nearest_neighbor_error,
)

SIGNIFICANCE = 0.05
"""The level of every test."""

ROUNDING = 1e-9
"""Errors in % that differ relatively by less differ by rounding alone."""

Rows = Sequence[Mapping[str, Any]]
"""Rows of runs."""

Times = dict[tuple[str, str], float]
"""The mean seconds of learning of a run, by task and method."""


def text_files(name: str, tables: Sequence[ResultTable], rows: Rows | None = None):
    """Texts by file name: the tables as Markdown and, for programs, rows as CSV."""
    text = "\n\n".join(table.to_markdown() for table in tables) + "\n"
    return {f"{name}.md": text} | ({} if rows is None else {f"{name}.csv": to_csv(rows)})


def to_csv(rows: Rows) -> str:
    """Write rows as CSV, with numbers to eight digits."""
    text = io.StringIO(newline="")
    columns = dict.fromkeys(key for row in rows for key in row)
    writer = csv.DictWriter(text, list(columns), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        short = {k: float(f"{v:.8g}") for k, v in row.items() if isinstance(v, float)}
        writer.writerow({**row, **short})
    return text.getvalue()


# Table 1, and what Tables 1 and 2 reveal of the protocol, which the paper does not spell out: the
# printed sizes of S are means over its samplings, so they tell the ways of drawing labels apart;
# the Euclidean row of Table 2 needs no learning, so it tells the scalings apart.


class ExpectedSizes(NamedTuple):
    """Mean numbers of pairs; the standard error of #S over 50 samplings, as many as the paper's."""

    similar: float
    dissimilar: float
    unlabeled: float
    error_of_fifty: float


def expected_sizes(task: Task, variant: str | None = None, n_draws: int = 2_000, data_dir=None):
    """Estimate E#S, E#D and #U = n(n-1)/2 - #(S u D) of a task by drawing its labels (Table 1)."""
    y = load_task(task, "none", data_dir)[1]
    rng = np.random.default_rng(0)
    similar = np.empty(n_draws)
    for k in range(n_draws):
        labeled = draw_labeled(task, y, rng, variant)[0]
        counts = np.unique(y[labeled], return_counts=True)[1]
        similar[k] = np.sum(counts * (counts - 1)) / 2
    pairs, every = (k * (k - 1) / 2 for k in (task.n_labels, task.n_training))
    mean, error = float(similar.mean()), float(similar.std() / np.sqrt(50))
    return ExpectedSizes(mean, pairs - mean, every - pairs, error)


def table1(
    tasks: Sequence[Task], n_draws: int = 2_000, variant: str | None = None, data_dir=None
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


def sampling_evidence(tasks: Sequence[Task], n_draws: int = 2_000, data_dir=None) -> ResultTable:
    """Compare E#S of each way of drawing labels with Table 1, in standard errors of the paper.

    The last row has the root mean square over the UCI tasks, where the paper's #S is random.
    """
    rows = []
    distances: dict[str, list[float]] = {variant: [] for variant in VARIANTS}
    for task in tasks:
        row = {"task": task.title, "printed": f"{task.similar:.2f}"}
        for variant in VARIANTS:
            sizes = expected_sizes(task, variant, n_draws, data_dir)
            row[variant] = f"{sizes.similar:.2f}"
            if sizes.error_of_fifty > 0.0 and not task.is_stratified:
                distances[variant].append((task.similar - sizes.similar) / sizes.error_of_fifty)
                row[variant] += f" ({distances[variant][-1]:+.1f} se)"
        rows.append(row)
    summary = {"task": "root mean square", "printed": ""}
    for variant, apart in distances.items():
        summary[variant] = f"{np.sqrt(np.mean(np.square(apart))):.1f} se" if apart else "not random"
    return ResultTable("E#S by the way of drawing labels", [*rows, summary])


def scaling_evidence(
    tasks: Sequence[Task],
    n_samplings: int = 20,
    scalings: Sequence[str] = SCALINGS,
    data_dir=None,
    variant: str | None = None,
) -> ResultTable:
    """Compare the Euclidean 1-NN error (in %) of each scaling with Table 2."""
    rows = []
    for task in tasks:
        printed, printed_error = PRINTED["EUCLIDEAN", task.name]
        row = {"task": task.title, "printed": f"{printed:.2f} ± {printed_error:.2f}"}
        apart = {}
        for scaling in scalings:
            X, y = load_task(task, scaling, data_dir)
            errors = [
                nearest_neighbor_error(draw_sampling(task, X, y, seed, variant), np.eye(X.shape[1]))
                for seed in range(n_samplings)
            ]
            mean, error = _mean_and_error(errors)
            apart[scaling] = (mean - printed) / np.hypot(error, printed_error)
            row[scaling] = f"{mean:.2f} ± {error:.2f} ({apart[scaling]:+.1f} se)"
        row["nearest"] = min(scalings, key=lambda scaling: abs(apart[scaling]))
        rows.append(row)
    return ResultTable(f"Euclidean 1-NN error in %, {n_samplings} samplings", rows)


def _mean_and_error(values):
    """The mean of values and its standard error."""
    return float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(len(values)))


# Table 2 and Figure 3


@dataclass(frozen=True)
class Summary:
    """One task and method over all samplings: errors in %, the paper's beside them, seconds.

    `difference` is in standard errors of it, `reason` why the first unfinished run is not done.
    """

    task: str
    method: str
    n_done: int
    n_failed: int
    n_cut_off: int
    mean: float | None
    standard_error: float | None
    is_best: bool
    printed: float | None
    printed_error: float | None
    difference: float | None
    seconds: float | None
    reason: str


def summarize(rows: Rows) -> list[Summary]:
    """Summarize each task and method: mean, standard error, boldface, difference from Table 2."""
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["task"], row["method"]), []).append(row)
    errors = {
        key: np.array([row["error"] for row in group if row["outcome"] == DONE])
        for key, group in groups.items()
    }
    best: set[Any] = set()
    for task in {task for task, _ in groups}:
        best |= mark_best({key: e for key, e in errors.items() if key[0] == task and len(e)})
    return [_summary(key, group, errors[key], key in best) for key, group in groups.items()]


def _summary(key, group, errors, is_best):
    task, method = key
    n = len(errors)
    mean = float(np.mean(errors)) if n else None
    spread = _mean_and_error(errors)[1] if n > 1 else None
    paper_row = METHODS[method].paper_row if method in METHODS else None
    printed, printed_error = PRINTED.get((paper_row, task), (None, None))
    difference = None
    if spread is not None and printed is not None:
        difference = (mean - printed) / float(np.hypot(spread, printed_error))
    seconds = [row["seconds"] for row in group if row["outcome"] == DONE]
    lost = [row for row in group if row["outcome"] != DONE]
    n_cut_off = sum(row["outcome"] == CUT_OFF for row in lost)
    return Summary(
        task=task,
        method=method,
        n_done=n,
        n_failed=len(lost) - n_cut_off,
        n_cut_off=n_cut_off,
        mean=mean,
        standard_error=spread,
        is_best=is_best,
        printed=printed,
        printed_error=printed_error,
        difference=difference,
        seconds=float(np.mean(seconds)) if seconds else None,
        reason=lost[0]["detail"] if lost else "",
    )


def mark_best(errors: Mapping[Any, Any]) -> set[Any]:
    """The smallest mean, and those that do not differ from it by the unpaired t-test at 5 %."""
    if not errors:
        return set()
    winner = min(errors, key=lambda key: float(np.mean(errors[key])))
    best = errors[winner]
    return {key for key, sample in errors.items() if key == winner or are_comparable(sample, best)}


def varies(values) -> bool:
    """Whether values differ by more than rounding."""
    return bool(np.ptp(values) > ROUNDING * np.max(np.abs(values)))


def are_comparable(a, b, paired: bool = False) -> bool:
    """Whether two columns of errors do not differ by Student's t-test at 5 %.

    Without variance two means differ if they are not equal; one error is comparable to nothing.
    """
    if min(len(a), len(b)) < 2:
        return False
    if not (varies(a - b) if paired else varies(a) or varies(b)):
        return bool(np.isclose(np.mean(a), np.mean(b), rtol=ROUNDING))
    moments = [(np.mean(column), np.std(column, ddof=1), len(column)) for column in (a, b)]
    test = ttest_rel(a, b) if paired else ttest_ind_from_stats(*moments[0], *moments[1])
    return bool(test.pvalue >= SIGNIFICANCE)


def table2(summaries: Sequence[Summary]) -> list[ResultTable]:
    """Make Table 2 as the paper lays it out, in blocks of six tasks, with the printed rows."""
    tasks = _tasks_of(summaries)
    cells = {(s.task, s.method): _cell(s) for s in summaries}
    note = (
        "Means with standard errors of the nearest-neighbor error in %; below, the paper's figure "
        "and the difference in standard errors. Bold: the best of the task and those comparable "
        "by the unpaired t-test at 5 %."
    )
    return [
        ResultTable(
            "Table 2",
            [
                {"": method_title(method)}
                | {TASKS[task].title: cells.get((task, method), "") for task in block}
                for method in _methods_of(summaries)
            ],
            [note],
        )
        for block in (tasks[start : start + 6] for start in range(0, len(tasks), 6))
    ]


def _tasks_of(summaries):
    return [name for name in TASKS if any(s.task == name for s in summaries)]


def _methods_of(summaries):
    return list(dict.fromkeys(s.method for s in summaries))


def _cell(summary):
    """Mean ± standard error, bold where best; below, the printed figure and the difference."""
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


def table2_files(rows: Rows) -> dict[str, str]:
    """The files of Table 2: its blocks, what is not done, the errors behind it, the judgment."""
    summaries = summarize(rows)
    reasons = table2_reasons(summaries)
    tables = [*table2(summaries), *([reasons] if reasons.rows else [])]
    texts = text_files("table2", tables, [asdict(summary) for summary in summaries])
    return texts | {"errors.csv": to_csv(errors_table(rows))} | judgment_files(rows)


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
                done = {"outcome": DONE, "error": 100.0 * int(wrong) / n} if wrong else {}
                key = {"task": task, "sampling": sampling, "method": method}
                rows.append(EMPTY | done | key)
        except (KeyError, TypeError, ValueError, ZeroDivisionError):
            raise ValueError(
                f"Line {number} is not one of errors.csv (task, sampling, test points, then a "
                "number for each method): make the file again by  run.py table2"
            ) from None
    return rows


def times_table(summaries: Sequence[Summary]) -> ResultTable:
    """Tabulate Figure 3: mean seconds of learning per run, a row per method, a column per task."""
    times = times_of(summaries)
    rows = [
        {"method": method_title(method)}
        | {TASKS[task].title: times.get((task, method), "") for task in _tasks_of(summaries)}
        for method in _methods_of(summaries)
    ]
    note = (
        "Every run has its own process, in which the method has learned from six points "
        "before the clock starts: what is done once in a process is in no row."
    )
    return ResultTable("Figure 3. Computation time per run, in seconds", rows, [note])


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


def read_made(folder: Path, name: str, part: str) -> str:
    """The text of a file that an earlier run of a part left in a folder."""
    path = folder / name
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist: run  run.py {part}  first.")
    return path.read_text(encoding="utf-8")


# The judgment: the recommended configuration against the paper's, and against all our rows

JUDGED, REFERENCE = "recommended", "euclidean"
"""The method that is judged, and the one its improvement is measured from."""

TOLERANCE = 2.0
"""How many standard errors of the difference are tolerated."""

VERDICTS = {
    "near the paper": "agrees",
    "near, paired errors": "agrees_paired",
    "best or tied": "is_best",
    "best or tied, paired test": "is_best_paired",
}
"""The columns that hold yes or no, and the attributes of a judgment that they show."""


@dataclass(frozen=True)
class Judgment:
    """The verdicts on one task: the mean error (%) and its limit, the improvement and its least."""

    task: str
    mean: float
    largest: float
    improvement: float
    least: float
    least_paired: float
    best: str
    is_best: bool
    is_best_paired: bool

    @property
    def agrees(self) -> bool:
        """Whether the mean is small enough, or the improvement large enough."""
        return self.mean <= self.largest or self.improvement >= self.least

    @property
    def agrees_paired(self) -> bool:
        """Whether `agrees` holds with the paired standard error of the improvement."""
        return self.mean <= self.largest or self.improvement >= self.least_paired


def judge(rows: Rows) -> list[Judgment]:
    """Judge each task on which all methods are done on the same samplings, two or more.

    e <= E + 2 sqrt(s^2 + S^2), or e0 - e >= E0 - E - 2 sqrt(s^2 + s0^2 + S^2 + S0^2), where e and
    s are mean and standard error of the recommended configuration, e0 and s0 of the Euclidean
    distance on the same samplings; E, S, E0, S0 those printed for SERAPH_hyper and the Euclidean
    distance. The paired, stricter standard error subtracts 2 r (s s0 + S S0) under the root, r the
    correlation of our two columns: the paper's own is not printed and taken to be r.
    """
    return [_verdict(task, errors) for task, errors in _whole_tasks(rows).items()]


def _whole_tasks(rows):
    """The errors by task and method, in the order of the samplings, of tasks that lack no run."""
    found: dict[str, dict[str, dict[int, float]]] = {task: {} for task in TASKS}
    for row in rows:
        if row["outcome"] == DONE:
            found[row["task"]].setdefault(row["method"], {})[row["sampling"]] = row["error"]
    whole = {}
    for task, errors in found.items():
        samplings = sorted(errors.get(JUDGED, ()))
        if len(samplings) > 1 and all(sorted(errors.get(m, ())) == samplings for m in METHODS):
            whole[task] = {m: np.array([errors[m][s] for s in samplings]) for m in METHODS}
    return whole


def _verdict(task, errors):
    own, reference = errors[JUDGED], errors[REFERENCE]
    (mean, s), (_, s0) = _mean_and_error(own), _mean_and_error(reference)
    printed, S = PRINTED["SERAPH_hyper", task]
    printed_reference, S0 = PRINTED["EUCLIDEAN", task]
    varies = np.ptp(own) > 0.0 and np.ptp(reference) > 0.0
    correlation = np.corrcoef(own, reference)[0, 1] if varies else 0.0
    squares = s**2 + s0**2 + S**2 + S0**2
    common = 2.0 * correlation * (s * s0 + S * S0)
    expected = printed_reference - printed
    best = min(errors, key=lambda method: float(np.mean(errors[method])))
    return Judgment(
        task=task,
        mean=mean,
        largest=printed + TOLERANCE * float(np.hypot(s, S)),
        improvement=float(np.mean(reference - own)),
        least=expected - TOLERANCE * float(np.sqrt(squares)),
        least_paired=expected - TOLERANCE * float(np.sqrt(squares - common)),
        best=best,
        is_best=JUDGED in mark_best(errors),
        is_best_paired=best == JUDGED or are_comparable(own, errors[best], paired=True),
    )


def judgment_table(judgments: Sequence[Judgment]) -> ResultTable:
    """Tabulate the verdicts by task, and on how many tasks each of them holds."""
    rows = [
        {
            "task": TASKS[judgment.task].title,
            "error": f"{judgment.mean:.2f}",
            "at most": f"{judgment.largest:.2f}",
            "improvement": f"{judgment.improvement:.2f}",
            "at least": f"{judgment.least:.2f}",
            "at least, paired": f"{judgment.least_paired:.2f}",
            "smallest mean": METHODS[judgment.best].title,
        }
        | {name: "yes" if getattr(judgment, word) else "no" for name, word in VERDICTS.items()}
        for judgment in judgments
    ]
    count = {column: str(sum(row[column] == "yes" for row in rows)) for column in VERDICTS}
    notes = [
        "Near the paper: the error is at most the paper's SERAPH_hyper plus 2 combined standard "
        "errors, or the improvement on the Euclidean distance at least the paper's less 2. "
        "Combined: the root of the sum of squares of all the standard errors; paired: less what "
        "the same samplings have in common, with the correlation of our two columns.",
        "Best or tied: no method of the table differs from it significantly for the better, by "
        "the t-test at 5 % against the smallest mean, unpaired as the paper's, or paired.",
        f"Asked for: near the paper, and best or tied, on 10 of {len(TASKS)} tasks each.",
    ]
    total = {"task": f"of {len(rows)}"} | count
    return ResultTable("The recommended configuration, judged", [*rows, total], notes)


def duel_table(rows: Rows) -> ResultTable:
    """Each method's mean error, and on how many tasks the recommended one is better or worse."""
    tasks = _whole_tasks(rows)
    lines = []
    for name, method in METHODS.items():
        pairs = [(errors[JUDGED], errors[name]) for errors in tasks.values()]
        printed = [PRINTED[key][0] for t in tasks if (key := (method.paper_row, t)) in PRINTED]
        lines.append(
            {
                "method": method.title,
                "mean error": f"{np.mean([np.mean(other) for _, other in pairs]):.2f}",
                "printed": f"{np.mean(printed):.2f}" if len(printed) == len(tasks) else "",
                "better, tied, worse": _outcomes(pairs, paired=False),
                "better, tied, worse, paired": _outcomes(pairs, paired=True),
            }
        )
    note = f"Means over {len(tasks)} tasks. Better: the recommended configuration is."
    return ResultTable("The recommended configuration against each method", lines, [note])


def _outcomes(pairs, paired):
    count = [0, 0, 0]
    for own, other in pairs:
        tied = own is other or are_comparable(own, other, paired)
        count[1 if tied else 0 if np.mean(own) < np.mean(other) else 2] += 1
    return ", ".join(map(str, count))


def judgment_files(rows: Rows) -> dict[str, str]:
    """The file of verdicts on the recommended settings; none if every task lacks runs."""
    judgments = judge(rows)
    if not judgments:
        return {}
    return text_files("judgment", [judgment_table(judgments), duel_table(rows)])


def judgment_again(folder: Path) -> dict[str, str]:
    """The file of verdicts, from the errors.csv that Table 2 left in a folder."""
    texts = judgment_files(read_errors(read_made(folder, "errors.csv", "table2")))
    if not texts:
        raise ValueError(
            f"{folder / 'errors.csv'} has no task with every method on the same two or more "
            "samplings: run  run.py table2  with all methods."
        )
    return texts
