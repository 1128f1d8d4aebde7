"""`seraph-cvx bench defaults`: how good the defaults are, on data outside the paper."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from .report import alert, alerts, say
from .result_files import write_picture, write_texts
from .tables.labeled_tables import read_labeled_tables

if TYPE_CHECKING:
    from ..experiments.defaults.bench import BenchProgress

JOURNAL, PICTURE = "runs.jsonl", "defaults.png"


@dataclass(frozen=True)
class DefaultsOptions:
    """The options of `bench defaults`, as the command line has them.

    Attributes
    ----------
    methods, sets, labels, forget : str or None
        Words with commas between.
    draws : int
    tables : Path or None
        A folder of tables, which are the sets unless `sets` names others too.
    label : str or None
        Their label column.
    data_dir : Path or None
    jobs : int or None
    resume : bool
    """

    methods: str | None
    sets: str | None
    labels: str
    draws: int
    tables: Path | None
    label: str | None
    data_dir: Path | None
    jobs: int | None
    resume: bool
    forget: str | None


def bench_and_report(options: DefaultsOptions, out: Path, kept: list[str]) -> None:
    """Make the runs that are missing, then write the page, the table and the picture of all."""
    from ..experiments.defaults.bench import bench_defaults
    from ..experiments.defaults.data_sets import find_sets
    from ..experiments.defaults.measures import DONE

    labels = _numbers(options.labels)
    sets: Any = _words(options.sets)
    if options.tables is not None:
        mine: dict[str, Any] = dict(read_labeled_tables(options.tables, options.label))
        others = [] if sets is None else find_sets(sets, options.data_dir)
        sets = {data.name: (data.X, data.y) for data in others} | mine
    out.mkdir(parents=True, exist_ok=True)
    kept.append(f"the finished runs are in {out / JOURNAL}; the same command with --resume goes on")
    with Progress(*_columns(), console=alerts, transient=True) as bar:
        table = bench_defaults(
            _words(options.methods),
            sets,
            labels,
            options.draws,
            out=out / JOURNAL,
            resume=options.resume,
            forget=_words(options.forget) or (),
            n_jobs=options.jobs,
            data_dir=options.data_dir,
            callback=_listener(bar),
        )
    for note in table.notes:
        alert(note)
    written = _report(table.rows, out)
    say(f"Written to {out}: {', '.join(written)}")
    failed = sum(row["outcome"] != DONE for row in table.rows)
    if failed:
        alert(f"Of {len(table.rows)} runs {failed} failed; defaults.md says which and why.")
        raise typer.Exit(1)


def _report(rows: Sequence[dict[str, Any]], out: Path) -> list[str]:
    from ..experiments.defaults.page import defaults_csv, defaults_page
    from ..experiments.defaults.statistics import Results, rank_methods
    from ..experiments.defaults.tables import titles_of

    ranks = rank_methods(Results(rows))
    written: list[str] = []
    if ranks is not None:
        titles = titles_of(ranks.names)
        written = write_picture(
            out / PICTURE,
            "critical_difference",
            lambda plots: plots.plot_critical_difference(ranks, titles),
        )
    page = defaults_page(rows, PICTURE if written else "")
    return write_texts(out, {"defaults.md": page, "defaults.csv": defaults_csv(rows)}) + written


def _columns() -> Sequence[Any]:
    return (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )


def _listener(bar: Progress) -> Callable[[BenchProgress], None]:
    """Show what was finished last; tell of each method's first failure at once."""
    line = bar.add_task("starting", total=None)
    told: set[str] = set()

    def listen(progress: BenchProgress) -> None:
        row = progress.row
        words = f"{row['set']}, {row['labels']} labels, draw {row['draw']}, {row['method']}"
        bar.update(line, completed=progress.number, total=progress.total, description=words)
        if row["outcome"] == "failed" and row["method"] not in told:
            told.add(row["method"])
            alert(f"{words}: failed ({row['detail']})")

    return listen


def _words(text: str | None) -> list[str] | None:
    return None if text is None else [word.strip() for word in text.split(",") if word.strip()]


def _numbers(text: str) -> list[int]:
    try:
        numbers = [int(word) for word in text.split(",")]
    except ValueError:
        raise ValueError(f"--labels {text!r}: write integers, such as 2,5.") from None
    if min(numbers) < 1:
        raise ValueError(f"--labels {text!r}: a class needs at least one label.")
    return numbers
