"""`seraph-cvx compare`: races solvers against each other."""

from __future__ import annotations

import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from ...display.result_table import ResultTable, show
from ..main import Debug, Scheduler, app, on_cluster
from ..report import alert, alerts, answers_in_words, say, screen
from .race_report import write_report

if TYPE_CHECKING:
    from ...race.race_table import Race

TIME_LIMITS = {"small": 5.0, "full": 5.0, "grid": 120.0, "tiny": 5.0, "penalties": 5.0}
"""Seconds per run, by suite."""

OWN_TIME_LIMIT = 60.0
"""Seconds per run on tables of the user's own."""


class Suite(StrEnum):
    """The suites of instances."""

    SMALL = "small"
    FULL = "full"
    GRID = "grid"
    TINY = "tiny"
    PENALTIES = "penalties"


@app.command(
    epilog="Example:  seraph-cvx compare --suite small --solvers fista,SCS/dual --out race"
)
def compare(
    suite: Annotated[
        Suite,
        typer.Option(
            help="small: 16 instances, minutes. full: the library of 40 instances from easy to "
            "nasty. penalties: 14 instances, one for each penalty on two data sets. grid: data "
            "sets of 100 points, hours. tiny: a trial."
        ),
    ] = Suite.SMALL,
    instances: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="A folder of your own tables to race on instead of a suite: .npz files with "
            "arrays X and y, or CSV files.",
        ),
    ] = None,
    label: Annotated[
        str, typer.Option(metavar="COLUMN", help="The label column of CSV files in FOLDER.")
    ] = "y",
    solvers: Annotated[
        str | None,
        typer.Option(
            help="Comma-separated names: fista, SCS (both formulations), SCS/dual, UNO, or "
            "name=module:function for one of your own. By default all that are installed."
        ),
    ] = None,
    tol: Annotated[
        str, typer.Option(help="Comma-separated tolerances to ask for.")
    ] = "1e-3,1e-5,1e-7",
    time_limit: Annotated[
        float | None,
        typer.Option(
            min=0.1, help="Seconds per run. By default 120 (grid), 60 (your own) or 5 (others)."
        ),
    ] = None,
    memory_limit: Annotated[
        float, typer.Option(min=0.2, help="GiB of memory a run may take.")
    ] = 4.0,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Where the rows, tables and pictures go.")
    ] = Path("race"),
    resume: Annotated[bool, typer.Option("--resume", help="Continue the race in DIR.")] = False,
    redraw: Annotated[
        bool,
        typer.Option(
            "--redraw",
            help="Make no run: write tables and pictures anew from race.jsonl in DIR.",
        ),
    ] = False,
    svg: Annotated[bool, typer.Option("--svg", help="Write the pictures as SVG, too.")] = False,
    n_jobs: Annotated[
        int | None, typer.Option(help="Runs at a time, 1 by default; -1: one per core.")
    ] = None,
    scheduler: Scheduler = None,
    debug: Debug = False,
) -> None:
    """Race solvers on M-steps: what each claims, and what is true.

    DIR gets race.jsonl (a line per finished run), race.md (tables) and the pictures.
    """
    with answers_in_words() as kept:
        from ...race.race import compare_solvers
        from ..tables.instances import read_instances

        if redraw:
            _redraw(out, svg)
            return
        if solvers is not None and "=" in solvers:
            sys.path.insert(0, "")  # module:function is looked for in the working directory
        own = None if instances is None else read_instances(instances, label)
        seconds = TIME_LIMITS[suite.value] if own is None else OWN_TIME_LIMIT
        out.mkdir(parents=True, exist_ok=True)
        rows = out / "race.jsonl"
        with progress_bar() as progress, on_cluster(scheduler):
            kept.append(f"the rows so far are in {rows}; --resume continues from there")
            task = progress.add_task("starting", total=None)
            race = compare_solvers(
                suite.value if own is None else own,
                None if solvers is None else [name.strip() for name in solvers.split(",")],
                tols=_numbers(tol),
                time_limit=seconds if time_limit is None else time_limit,
                memory_limit=int(memory_limit * 2**30),
                out=rows,
                resume=resume,
                callback=_listener(progress, task),
                n_jobs=n_jobs,
            )
        _tell(race)
        say(f"\nWritten to {out}: race.jsonl, {write_report(out, race, svg)}.")


def _redraw(out: Path, svg: bool) -> None:
    """Write the tables and pictures of a race that was run before."""
    from ...race.race import read_race

    race = read_race(out / "race.jsonl")
    _tell(race)
    say(f"\nWritten to {out}: {write_report(out, race, svg)}.")


def _tell(race: Race) -> None:
    """Show the notes and the summary of a race."""
    for note in race.notes:
        alert(note)
    _show(race.summary())


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(
            f"--tol {text}: write comma-separated numbers, such as 1e-3,1e-6."
        ) from None


def progress_bar() -> Progress:
    """A bar that counts what is done, on stderr; it is gone when all is done."""
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=alerts,
        transient=True,
    )


def _listener(progress: Progress, task: Any) -> Callable[[dict[str, Any], int, int], None]:
    def listen(row: dict[str, Any], number: int, total: int) -> None:
        from ...race.race_table import NOT_MADE, label_of

        words = f"{row['instance']}: {label_of(row)} at {row['tol']:g}: {row['outcome']}"
        progress.update(task, completed=number, total=total, description=words)
        if row["outcome"] not in ("done", *NOT_MADE):
            alert(f"{words} ({row['detail']})")

    return listen


def _show(table: ResultTable) -> None:
    """Print a table, compact enough for a terminal of 80 characters."""
    drawn = Table(title=table.title, title_justify="left", box=None, padding=(0, 1, 0, 0))
    for k, column in enumerate(table.columns):
        heading = column.replace(" / ", "/").replace(" ", "\n")
        drawn.add_column(heading, justify="right" if k else "left", no_wrap=True)
    for row in table.rows:
        drawn.add_row(*[show(row[column]) for column in table.columns])
    screen.print(drawn)
