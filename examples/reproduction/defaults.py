"""How good the defaults are, on data outside the paper.

Example:  python examples/reproduction/defaults.py --tables DIR --label species --draws 10
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from evidence.defaults.labeled_tables import read_labeled_tables
from evidence.files import program, write_picture, write_texts
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from seraph_cvx.cli.main import DEBUG
from seraph_cvx.cli.report import alert, alerts, answers_in_words, say

if TYPE_CHECKING:
    from evidence.defaults.bench import BenchProgress

JOURNAL, PICTURE = "runs.jsonl", "defaults.png"


app = program()


@app.command(epilog=str(__doc__).rpartition("\n\n")[2])
def bench_the_defaults(
    methods: Annotated[
        str | None,
        typer.Option(help="Names, such as seraph,euclidean,itml; by default all."),
    ] = None,
    sets: Annotated[
        str | None, typer.Option(help="Names, such as glass,iris; by default all that are known.")
    ] = None,
    tables: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="A folder of CSV tables, each a data set of your own."),
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Their label column; by default the last."),
    ] = None,
    labels: Annotated[str, typer.Option(help="Numbers of labels for each class.")] = "2,3,5,10",
    draws: Annotated[int, typer.Option(min=1, help="Draws of each set.")] = 20,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the results go.")] = Path(
        "defaults"
    ),
    jobs: Annotated[
        int | None, typer.Option(help="The number of processes; -1: one per core.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue from the runs in the folder of --out.")
    ] = False,
    forget: Annotated[
        str | None, typer.Option(help="Methods whose runs there are of an earlier state.")
    ] = None,
    data_dir: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The folder of more.npz.")
    ] = None,
    debug: bool = DEBUG,
) -> None:
    """Measure how good the defaults are, on data outside the paper.

    SERAPH, its rivals and common classifiers learn from a few labels of each data set. Written are
    a page, a table and a picture; after Ctrl-C, --resume goes on.
    """
    with answers_in_words() as kept:
        from evidence.defaults.bench import bench_defaults
        from evidence.defaults.data_sets import find_sets
        from evidence.defaults.measures import DONE

        chosen: Any = _words(sets)
        if tables is not None:
            mine: dict[str, Any] = dict(read_labeled_tables(tables, label))
            others = [] if chosen is None else find_sets(chosen, data_dir)
            chosen = {data.name: (data.X, data.y) for data in others} | mine
        numbers = _numbers(labels)
        out.mkdir(parents=True, exist_ok=True)
        kept.append(
            f"the finished runs are in {out / JOURNAL}; the same command with --resume goes on"
        )
        with Progress(*_columns(), console=alerts, transient=True) as bar:
            table = bench_defaults(
                _words(methods),
                chosen,
                numbers,
                draws,
                out=out / JOURNAL,
                resume=resume,
                forget=_words(forget) or (),
                n_jobs=jobs,
                data_dir=data_dir,
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
    from evidence.defaults.page import defaults_csv, defaults_page
    from evidence.defaults.statistics import Results, rank_methods
    from evidence.defaults.tables import titles_of

    ranks = rank_methods(Results(rows))
    written: list[str] = []
    if ranks is not None:
        titles = titles_of(ranks.names)
        written = write_picture(
            out / PICTURE,
            "evidence.plots.critical_difference",
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


if __name__ == "__main__":
    app()
