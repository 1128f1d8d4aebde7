"""Section 5 of the paper again, its Tables 1 and 2 and Figures 1 to 3.

Example:  python examples/reproduction/run.py table2 --tasks iris,wine --samplings 10 --n-jobs -1
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from evidence.files import program, write_picture, write_texts
from evidence.protocol.tasks import find_tasks
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as ProgressBar

from seraph_cvx.cli.main import DEBUG, SCHEDULER, on_cluster
from seraph_cvx.cli.report import alert, alerts, answers_in_words, say

if TYPE_CHECKING:
    from evidence.results.tables import Times
    from evidence.runs.runner import Progress, RunTable


class Part(StrEnum):
    """The parts of Section 5 that can be made again."""

    TABLE1 = "table1"
    TABLE2 = "table2"
    JUDGMENT = "judgment"
    FIGURE1 = "figure1"
    FIGURE2 = "figure2"
    FIGURE3 = "figure3"
    PROTOCOL = "protocol"


app = program()


@app.command(epilog=str(__doc__).rpartition("\n\n")[2])
def reproduce(
    part: Annotated[
        Part,
        typer.Argument(
            help="table1: the tasks. table2: the errors. judgment: whether the defaults are as "
            "good as the paper's, from the errors.csv that table2 left in DIR. figure1, figure2: "
            "the two kinds of sparsity. figure3: the times. protocol: which scaling and which way "
            "of drawing labels agree with what the paper prints."
        ),
    ],
    tasks: Annotated[
        str | None,
        typer.Option(help="Names with commas between, as iris,usps-1-5-20; all by default."),
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(
            help="Comma-separated names, such as euclidean,gdm,seraph-hyper; all by default. "
            "name=module:function adds one of your own."
        ),
    ] = None,
    samplings: Annotated[int, typer.Option(min=1, help="Random samplings of each task.")] = 50,
    n_jobs: Annotated[
        int | None, typer.Option(help="Number of processes, 1 by default; -1: one per core.")
    ] = None,
    time_cap: Annotated[
        float, typer.Option(min=0.01, help="Minutes a method may take on all samplings of a task.")
    ] = 30.0,
    scaling: Annotated[
        str | None,
        typer.Option(help="unit, pixels, standard or none, instead of each task's own."),
    ] = None,
    variant: Annotated[
        str | None,
        typer.Option(help="How labels are drawn: every-class, random, balanced, ..."),
    ] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The folder of the data that are not embedded."),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the results go.")] = Path(
        "reproduction"
    ),
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue from the runs recorded in DIR.")
    ] = False,
    retry: Annotated[
        bool, typer.Option("--retry", help="With --resume: repeat failed and cut-off runs.")
    ] = False,
    redraw: Annotated[
        bool,
        typer.Option(
            "--redraw", help="figure3 only: make no run, draw figure3.png from figure3.csv in DIR."
        ),
    ] = False,
    scheduler: str | None = SCHEDULER,
    debug: bool = DEBUG,
) -> None:
    """Reproduce a table or figure of the paper's Section 5.

    Next to it stands what the paper prints.

    Table 2 and Figure 3 share DIR/cells.jsonl, to which each run of a method on a sampling of a
    task is appended when it finishes; --resume repeats none of them.
    """
    with answers_in_words() as kept:
        if redraw and part is not Part.FIGURE3:
            raise ValueError(f"--redraw is for figure3: {part.value} has no runs to save.")
        out.mkdir(parents=True, exist_ok=True)
        folder = None if data_dir is None else str(data_dir)
        if part in (Part.FIGURE1, Part.FIGURE2):
            written = _sparsity(int(part.value[-1]), out)
        elif part is Part.TABLE1:
            from evidence.results.documents import table1_files

            written = write_texts(out, table1_files(find_tasks(_names(tasks)), variant, folder))
        elif part is Part.JUDGMENT:
            from evidence.results.documents import judgment_again

            written = write_texts(out, judgment_again(out))
        elif part is Part.FIGURE3 and redraw:
            from evidence.results.documents import times_again

            written = _draw_times(out, times_again(out))
        elif part is Part.PROTOCOL:
            from evidence.results.documents import protocol_files

            texts = protocol_files(find_tasks(_names(tasks)), samplings, variant, folder)
            written = write_texts(out, texts)
        else:
            if methods is not None and "=" in methods:
                sys.path.insert(0, "")  # module:function is looked for in the working directory
            settings = {"resume": resume, "retry": retry, "n_jobs": n_jobs}
            with on_cluster(scheduler):
                kept.append(
                    f"the finished runs are in {out / 'cells.jsonl'}; the same command with "
                    "--resume continues"
                )
                written = _runs(
                    *(part, _names(tasks), _names(methods), samplings),
                    (scaling, variant, folder),
                    settings | {"time_cap": 60.0 * time_cap},
                    out,
                )
        say(f"Written to {out}: {', '.join(written)}")


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def _runs(
    part: Part,
    tasks: Sequence[str] | None,
    methods: Sequence[str] | None,
    samplings: int,
    protocol: tuple[str | None, str | None, str | None],
    settings: dict[str, Any],
    out: Path,
) -> list[str]:
    """Make the runs that are still missing, and Table 2 or Figure 3 of all of them."""
    from evidence.runs.runner import run_methods
    from evidence.runs.single_run import Protocol

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with ProgressBar(*columns, console=alerts, transient=True) as bar:
        settings |= {"callback": _listener(bar), "out": out / "cells.jsonl"}
        table = run_methods(tasks, methods, samplings, Protocol(*protocol), **settings)
    for note in table.notes:
        alert(note)
    return _report(part, table, out)


def _listener(bar: ProgressBar) -> Callable[[Progress], None]:
    line = bar.add_task("starting", total=None)

    def listen(progress: Progress) -> None:
        row = progress.row
        words = f"{row['task']}, sampling {row['sampling']}, {row['method']}"
        left = f"{words}: about {_duration(progress.seconds_left)} left"
        bar.update(line, completed=progress.number, total=progress.total, description=left)
        if row["outcome"] == "failed":
            alert(f"{words}: failed ({row['detail']})")

    return listen


def _duration(seconds: float) -> str:
    """Round a duration to the unit that suits it.

    >>> _duration(42.0), _duration(150.0), _duration(7300.0)
    ('42 s', '2 min', '2.0 h')
    """
    if seconds < 100.0:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000.0 else f"{seconds / 3600:.1f} h"


def _report(part: Part, table: RunTable, out: Path) -> list[str]:
    """Write Table 2 or Figure 3; exit with code 1 if a run failed."""
    from evidence.results.documents import (
        errors_files,
        figure3_files,
        judgment_files,
        table2_files,
    )
    from evidence.results.summaries import summarize
    from evidence.results.tables import times_of

    summaries = summarize(table.rows)
    if part is Part.TABLE2:
        texts = table2_files(summaries) | errors_files(table.rows) | judgment_files(table.rows)
        written = write_texts(out, texts)
    else:
        written = write_texts(out, figure3_files(summaries))
        written += _draw_times(out, times_of(summaries))
    failed = sum(summary.n_failed for summary in summaries)
    cut_off = sum(summary.n_cut_off for summary in summaries)
    if failed or cut_off:
        alert(
            f"Of {len(table.rows)} runs {failed} failed and {cut_off} were cut off at the time "
            "cap; table2.md says which and why."
        )
    if failed:
        say(f"Written to {out}: {', '.join(written)}")
        raise typer.Exit(1)
    return written


def _draw_times(out: Path, times: Times) -> list[str]:
    return write_picture(
        out / "figure3.png", "evidence.plots.times", lambda plots: plots.plot_times(times)
    )


def _sparsity(figure: int, out: Path) -> list[str]:
    from evidence.results.documents import sparsity_files
    from evidence.results.figures import artificial_set, learn_panels

    sampling = artificial_set(figure)
    panels = learn_panels(figure, sampling)
    return write_texts(out, sparsity_files(figure, sampling, panels)) + write_picture(
        out / f"figure{figure}.png",
        "evidence.plots.sparsity",
        lambda plots: plots.plot_sparsity(figure, sampling, panels),
    )


if __name__ == "__main__":
    app()
