"""Tables of Section 5 from rows of runs, next to what the paper prints, and their judgment."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Mapping, Sequence
from math import comb
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import t, ttest_ind_from_stats

from seraph_cvx.display.result_table import ResultTable

from .methods import METHODS, method_title
from .runs import CUT_OFF, DONE, FAILED
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

TITLES = {task.name: task.title for task in TASKS.values()}

Rows = Sequence[Mapping[str, Any]]
"""Rows of runs."""


def text_files(name: str, tables: Sequence[ResultTable], rows: Rows | None = None):
    """Texts by file name: the tables as Markdown and, for programs, rows as CSV."""
    text = "\n\n".join(table.to_markdown() for table in tables) + "\n"
    return {f"{name}.md": text} | ({} if rows is None else {f"{name}.csv": to_csv(rows)})


def to_csv(rows: Rows) -> str:
    """Write rows as CSV, with numbers to eight digits."""
    short = [
        {k: float(f"{v:.8g}") if isinstance(v, float) else v for k, v in row.items()}
        for row in rows
    ]
    return pd.DataFrame(short, dtype=object).to_csv(index=False, lineterminator="\n")


def by_method(runs: pd.DataFrame, index: Sequence[str], measure: str = "error") -> pd.DataFrame:
    """A measure of the runs that are done, a column per method; rows and columns as they come."""
    done = runs.assign(value=runs[measure].where(runs["outcome"] == DONE).astype(float))
    wide = done.pivot(index=list(index), columns="method", values="value")
    order = runs.drop_duplicates(index).set_index(list(index)).index
    return wide.reindex(index=order, columns=runs["method"].unique())


# Table 1, and what Tables 1 and 2 reveal of the protocol, which the paper does not spell out: the
# printed sizes of S are means over its samplings, so they tell the ways of drawing labels apart;
# the Euclidean row of Table 2 needs no learning, so it tells the scalings apart.


class ExpectedSizes(NamedTuple):
    """Mean numbers of pairs; the standard error of #S over 50 samplings, as many as the paper's."""

    similar: float
    dissimilar: float
    unlabeled: int
    error_of_fifty: float


def expected_sizes(task: Task, variant: str | None = None, n_draws: int = 2_000, data_dir=None):
    """Estimate E#S, E#D and #U = n(n-1)/2 - #(S u D) of a task by drawing its labels (Table 1)."""
    y = load_task(task, "none", data_dir)[1]
    rng = np.random.default_rng(0)
    drawn = (y[draw_labeled(task, y, rng, variant)[0]] for _ in range(n_draws))
    counts = (np.unique(labels, return_counts=True)[1] for labels in drawn)
    similar = [float(np.sum(count * (count - 1)) / 2) for count in counts]
    mean, pairs = float(np.mean(similar)), comb(task.n_labels, 2)
    unlabeled = comb(task.n_training, 2) - pairs
    return ExpectedSizes(mean, pairs - mean, unlabeled, float(np.std(similar) / np.sqrt(50)))


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
                "#U": f"{sizes.unlabeled}",
                "#U printed": f"{task.unlabeled}",
                "±": f"{sizes.error_of_fifty:.2f}",
            }
        )
    note = (
        f"E#S and E#D are means over {n_draws} draws; ± is the standard error of such a mean over "
        "50 samplings, the number behind the printed figures."
    )
    return ResultTable("Table 1. Specification of benchmark data sets", rows, [note])


def sampling_evidence(tasks: Sequence[Task], n_draws: int = 2_000, data_dir=None) -> ResultTable:
    """Compare E#S of each way of drawing labels with Table 1, in standard errors of the paper.

    The last row has the root mean square over the UCI tasks, where the paper's #S is random.
    """
    rows = [{"task": task.title, "printed": f"{task.similar:.2f}"} for task in tasks]
    summary = {"task": "root mean square", "printed": ""}
    for variant in VARIANTS:
        distances = []
        for task, row in zip(tasks, rows, strict=True):
            sizes = expected_sizes(task, variant, n_draws, data_dir)
            row[variant] = f"{sizes.similar:.2f}"
            if sizes.error_of_fifty > 0.0 and not task.is_stratified:
                distances.append((task.similar - sizes.similar) / sizes.error_of_fifty)
                row[variant] += f" ({distances[-1]:+.1f} se)"
        size = np.linalg.norm(distances) / np.sqrt(len(distances)) if distances else None
        summary[variant] = "not random" if size is None else f"{size:.1f} se"
    return ResultTable("Expected similar pairs, by how labels are drawn", [*rows, summary])


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
            points = load_task(task, scaling, data_dir)
            drawn = (draw_sampling(task, *points, s, variant) for s in range(n_samplings))
            identity = np.eye(task.n_features)
            errors = pd.Series([nearest_neighbor_error(sampling, identity) for sampling in drawn])
            mean, error = errors.mean(), errors.sem()
            apart[scaling] = (mean - printed) / np.hypot(error, printed_error)
            row[scaling] = f"{mean:.2f} ± {error:.2f} ({apart[scaling]:+.1f} se)"
        row["nearest"] = min(scalings, key=lambda scaling: abs(apart[scaling]))
        rows.append(row)
    return ResultTable(f"Euclidean 1-NN error in %, {n_samplings} samplings", rows)


# Table 2 and Figure 3


def summarize(rows: Rows) -> pd.DataFrame:
    """Summarize each task and method over all samplings: errors in %, the paper's, seconds.

    `difference` is that from Table 2 in standard errors of it, `reason` why the first run that is
    not done is not; numbers that do not exist are NaN.
    """
    lines = []
    for task, runs in pd.DataFrame(list(rows)).groupby("task", sort=False):
        errors = by_method(runs, ["sampling"])
        best = mark_best(errors)
        for method, group in runs.groupby("method", sort=False):
            count = Counter(group["outcome"])
            mean, error = errors[method].mean(), errors[method].sem()
            paper_row = METHODS[method].paper_row if method in METHODS else None
            printed, printed_error = PRINTED.get((paper_row, task), (np.nan, np.nan))
            is_done = group["outcome"] == DONE
            lines.append(
                {
                    "task": task,
                    "method": method,
                    "n_done": count[DONE],
                    "n_failed": count[FAILED],
                    "n_cut_off": count[CUT_OFF],
                    "mean": mean,
                    "standard_error": error,
                    "is_best": method in best,
                    "printed": printed,
                    "printed_error": printed_error,
                    "difference": (mean - printed) / np.hypot(error, printed_error),
                    "seconds": group["seconds"][is_done].mean(),
                    "reason": "; ".join(group["detail"][~is_done][:1]),
                }
            )
    return pd.DataFrame(lines)


def mark_best(errors: pd.DataFrame) -> set[str]:
    """The column of the smallest mean, and those that the unpaired test does not tell from it."""
    known = errors.dropna(axis=1, how="all")
    if known.empty:
        return set()
    best = smallest_mean(known)
    return {best, *known.columns[comparable_to(known, best)]}


def smallest_mean(errors: pd.DataFrame) -> str:
    """The column of the smallest mean."""
    return min(errors, key=lambda column: float(np.mean(errors[column].dropna().to_numpy())))


def varies(values):
    """Whether values differ by more than rounding, column by column."""
    return values.max() - values.min() > ROUNDING * values.abs().max()


@np.errstate(invalid="ignore")  # where there is a single error
def comparable_to(errors: pd.DataFrame, reference: str, paired: bool = False):
    """Which columns of errors do not differ from one of them by Student's t-test at 5 %.

    Without variance two means differ if they are not equal; one error is comparable to nothing.
    """
    n, means = errors.count(), errors.mean()
    if paired:
        differences = errors.sub(errors[reference], axis=0)
        has_variance = varies(differences)
        p_values = 2.0 * t.sf(np.abs(differences.mean() / differences.sem()), n - 1)
    else:
        has_variance = varies(errors) | varies(errors[reference])
        p_values = ttest_ind_from_stats(*_moments(errors), *_moments(errors[[reference]])).pvalue
    is_equal = np.isclose(means, means[reference], rtol=ROUNDING)
    is_tied = np.where(has_variance, p_values >= SIGNIFICANCE, is_equal)
    return is_tied & (n > 1) & (n[reference] > 1)


def _moments(errors):
    return [x.to_numpy() for x in (errors.mean(), errors.std(), errors.count())]


def _by_task(summaries, values):
    """A value of each summary, a row per method and a column per task, in Table 1's order."""
    wide = summaries.assign(value=values).pivot(index="method", columns="task", values="value")
    tasks = [name for name in TASKS if name in wide]
    return wide.reindex(index=summaries["method"].unique(), columns=tasks)


def _titled(wide, corner):
    """Rows under the titles of tasks, each beginning with the title of its method."""
    named = wide.rename(index=method_title, columns=TITLES).astype(object)
    rows = named.where(named.notna(), "").to_dict("index")
    return [{corner: title} | row for title, row in rows.items()]


def table2(summaries: pd.DataFrame) -> list[ResultTable]:
    """Make Table 2 as the paper lays it out, in blocks of six tasks, with the printed rows."""
    cells = _by_task(summaries, [_cell(s) for s in summaries.itertuples()])
    note = (
        "Means with standard errors of the nearest-neighbor error in %; below, the paper's figure "
        "and the difference in standard errors. Bold: the best of the task and those comparable "
        "by the unpaired t-test at 5 %."
    )
    return [
        ResultTable("Table 2", _titled(cells.iloc[:, start : start + 6], ""), [note])
        for start in range(0, cells.shape[1], 6)
    ]


def _cell(summary):
    """Mean ± standard error, bold where best; below, the printed figure and the difference."""
    lost = summary.n_failed + summary.n_cut_off
    if not summary.n_done:
        text = CUT_OFF if summary.n_cut_off else FAILED
    else:
        text = f"{summary.mean:.2f}"
        if summary.n_done > 1:
            text += f" ± {summary.standard_error:.2f}"
        text = f"**{text}**" if summary.is_best else text
        text += f" ({summary.n_done} of {summary.n_done + lost})" if lost else ""
    if not np.isnan(summary.printed):
        text += f"<br>{summary.printed:.2f} ± {summary.printed_error:.2f}"
    return text if np.isnan(summary.difference) else f"{text} ({summary.difference:+.1f})"


def table2_reasons(summaries: pd.DataFrame) -> ResultTable:
    """List each task and method whose samplings are not all done, with the reason."""
    rows = [
        {
            "task": TITLES[s.task],
            "method": method_title(s.method),
            "done": s.n_done,
            "failed": s.n_failed,
            "cut off": s.n_cut_off,
            "first reason": s.reason,
        }
        for s in summaries.itertuples()
        if s.n_failed or s.n_cut_off
    ]
    return ResultTable("What is not done", rows)


def table2_files(rows: Rows) -> dict[str, str]:
    """The files of Table 2: its blocks, what is not done, the errors behind it, the judgment."""
    summaries = summarize(rows)
    reasons = table2_reasons(summaries)
    tables = [*table2(summaries), *([reasons] if reasons.rows else [])]
    texts = text_files("table2", tables, summaries.to_dict("records"))
    return texts | {"errors.csv": errors_csv(rows)} | judgment_files(rows)


KEY = ["task", "sampling", "test points"]
"""The first columns of errors.csv."""


def errors_csv(rows: Rows) -> str:
    """Write how many test points each method got wrong, a row per task and sampling."""
    errors = by_method(pd.DataFrame(list(rows)), KEY[:2])
    n_test = errors.index.get_level_values("task").map(lambda task: TASKS[task].n_test)
    wrong = errors.mul(n_test / 100.0, axis=0).round().astype("Int64")
    return wrong.set_index(n_test.rename(KEY[2]), append=True).to_csv(lineterminator="\n")


def read_errors(text: str) -> list[dict[str, Any]]:
    """Read rows of runs, as far as :func:`errors_csv` keeps them, from its CSV."""
    table = pd.read_csv(io.StringIO(text), dtype=str)
    counts = table.drop(columns="task", errors="ignore")
    numbers = counts.apply(pd.to_numeric, errors="coerce")
    bad = (numbers.isna() & counts.notna()).any(axis=1)
    if bad.any() or not {*KEY} <= {*table}:
        raise ValueError(
            f"Line {int(np.argmax(bad)) + 2} is not one of errors.csv (task, sampling, test "
            "points, then a number for each method): make the file again by  run.py table2"
        )
    runs = numbers.assign(task=table["task"]).melt(KEY, var_name="method", value_name="wrong")
    runs["error"] = 100.0 * runs.pop("wrong") / runs.pop("test points")
    runs["outcome"] = runs["error"].notna().map({True: DONE, False: None})
    return runs.assign(seconds=0.0, detail="").to_dict("records")


def times_of(summaries: pd.DataFrame) -> pd.DataFrame:
    """The mean seconds of learning of a run, a row per method and a column per task."""
    return _by_task(summaries, summaries["seconds"])


def times_table(times: pd.DataFrame) -> ResultTable:
    """Tabulate Figure 3: mean seconds of learning per run, a row per method, a column per task."""
    note = (
        "Every run has its own process, in which the method learns from six points before the "
        "clock starts, so that work done once in a process is not counted."
    )
    title = "Figure 3. Computation time per run, in seconds"
    return ResultTable(title, _titled(times, "method"), [note])


def read_times(text: str) -> pd.DataFrame:
    """Read the times of Figure 3 from what :func:`times_table` wrote as CSV."""
    table = pd.read_csv(io.StringIO(text), index_col="method")
    methods = {method.title: method.name for method in METHODS.values()}
    return table.rename(index=methods, columns={title: name for name, title in TITLES.items()})


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


def judge(rows: Rows) -> list[dict[str, Any]]:
    """Judge each task on which all methods are done on the same samplings, two or more.

    e <= E + 2 sqrt(s^2 + S^2), or e0 - e >= E0 - E - 2 sqrt(s^2 + s0^2 + S^2 + S0^2), where e and
    s are mean and standard error of the recommended configuration, e0 and s0 of the Euclidean
    distance on the same samplings; E, S, E0, S0 those printed for SERAPH_hyper and the Euclidean
    distance. The paired, stricter standard error subtracts 2 r (s s0 + S S0) under the root, r the
    correlation of our two columns: the paper's own is not printed and taken to be r.
    """
    return [_verdict(task, errors) for task, errors in _whole_tasks(rows).items()]


def _whole_tasks(rows):
    """The errors by task, a column per method, of tasks that lack no run."""
    errors = by_method(pd.DataFrame(list(rows)), KEY[:2]).reindex(columns=list(METHODS))
    by_task = errors.dropna(how="all").groupby(level="task", sort=False)
    return {
        task: block for task, block in by_task if len(block) > 1 and block.notna().all(axis=None)
    }


def _verdict(task, errors):
    own, reference = errors[JUDGED], errors[REFERENCE]
    s, s0 = own.sem(), reference.sem()
    printed, S = PRINTED["SERAPH_hyper", task]
    printed_reference, S0 = PRINTED["EUCLIDEAN", task]
    expected = printed_reference - printed
    squares = s**2 + s0**2 + S**2 + S0**2
    spread = own.std() * reference.std()
    correlation = own.cov(reference) / spread if spread > 0.0 else 0.0
    common = 2.0 * correlation * (s * s0 + S * S0)
    largest = printed + TOLERANCE * np.hypot(s, S)
    least, least_paired = (
        expected - TOLERANCE * np.sqrt(square) for square in (squares, squares - common)
    )
    mean, improvement = own.mean(), (reference - own).mean()
    best = smallest_mean(errors)
    return {
        "task": TITLES[task],
        "error": mean,
        "at most": largest,
        "improvement": improvement,
        "at least": least,
        "at least, paired": least_paired,
        "smallest mean": METHODS[best].title,
        "near the paper": bool(mean <= largest or improvement >= least),
        "near, paired errors": bool(mean <= largest or improvement >= least_paired),
        "best or tied": JUDGED in mark_best(errors),
        "best or tied, paired test": bool(comparable_to(errors, best, paired=True)[JUDGED]),
    }


def judgment_table(judgments: Rows) -> ResultTable:
    """Tabulate the verdicts by task, and on how many tasks each of them holds."""
    total = {"task": f"of {len(judgments)}"}
    rows: list[dict[str, str]] = []
    for judgment in judgments:
        rows.append({})
        for column, value in judgment.items():
            if isinstance(value, bool):
                rows[-1][column] = "yes" if value else "no"
                total[column] = str(sum(other[column] for other in judgments))
            else:
                rows[-1][column] = f"{value:.2f}" if isinstance(value, float) else value
    notes = [
        "Near the paper: the error is at most that of the paper's SERAPH_hyper plus 2 combined "
        "standard errors, or the improvement over the Euclidean distance is at least the paper's "
        "minus 2. Combined: the root of the sum of squares of all the standard errors. Paired: "
        "minus the covariance of our two columns, which have the same samplings.",
        "Best or tied: no method of the table is significantly better, by the t-test at 5 % "
        "against the smallest mean, unpaired as in the paper, or paired.",
        f"Goal: near the paper, and best or tied, on 10 of {len(TASKS)} tasks each.",
    ]
    return ResultTable("The recommended configuration, judged", [*rows, total], notes)


def duel_table(rows: Rows) -> ResultTable:
    """Each method's mean error, and on how many tasks the recommended one is better or worse."""
    tasks = _whole_tasks(rows)
    columns = {"better, tied, worse": False, "better, tied, worse, paired": True}
    signs = {
        column: pd.DataFrame({task: _signs(errors, paired) for task, errors in tasks.items()})
        for column, paired in columns.items()
    }
    lines = []
    for name, method in METHODS.items():
        mean = np.mean([errors[name].mean() for errors in tasks.values()])
        printed = [PRINTED.get((method.paper_row, task), (np.nan,))[0] for task in tasks]
        line = {"method": method.title, "mean error": f"{mean:.2f}"}
        line["printed"] = "" if np.isnan(printed).any() else f"{np.mean(printed):.2f}"
        for column, table in signs.items():
            count = Counter(table.loc[name])
            line[column] = f"{count[-1.0]}, {count[0.0]}, {count[1.0]}"
        lines.append(line)
    note = f"Means over {len(tasks)} tasks. Better: the recommended configuration is."
    return ResultTable("The recommended configuration against each method", lines, [note])


def _signs(errors, paired):
    """Of each method: -1 where the recommended one is better, 0 where they are tied, else 1."""
    signs = np.sign(errors[JUDGED].mean() - errors.mean())
    return signs.where(~comparable_to(errors, JUDGED, paired), 0.0)


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
