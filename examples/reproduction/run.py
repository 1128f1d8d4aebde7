"""Section 5 of the paper again, its Tables 1 and 2 and Figures 1 to 3.

Example:  python examples/reproduction/run.py table2 --tasks iris,wine --samplings 10 --n-jobs -1
"""

from __future__ import annotations

import sys
from collections import Counter
from enum import StrEnum
from pathlib import Path

import typer
from evidence.figures import artificial_set, figure_files, learn_panels
from evidence.files import (
    DATA_DIR,
    NAMES,
    RESUME,
    program,
    progress,
    split_names,
    write_picture,
    write_texts,
)
from evidence.results import (
    judgment_again,
    read_made,
    read_times,
    sampling_evidence,
    scaling_evidence,
    summarize,
    table1,
    table2_files,
    text_files,
    times_of,
    times_table,
)
from evidence.runs import CUT_OFF, FAILED, Protocol, RunTable, run_methods
from evidence.tasks import find_tasks

from seraph_cvx.cli.main import DEBUG
from seraph_cvx.cli.messages import alert, answers_in_words, say

Part = StrEnum(
    "Part", ["table1", "table2", "judgment", "figure1", "figure2", "figure3", "protocol"]
)
"""The parts of Section 5 that can be made again."""

app = program()


@app.command(epilog=str(__doc__).rpartition("\n\n")[2])
def reproduce(
    part: Part = typer.Argument(
        ...,
        help="table1: the tasks. table2: the errors. judgment: whether the defaults are as "
        "good as the paper's, from the errors.csv that table2 left in DIR. figure1, figure2: "
        "the two kinds of sparsity. figure3: the times. protocol: which scaling and which way "
        "of drawing labels agree with what the paper prints.",
    ),
    tasks: str | None = NAMES,
    methods: str | None = typer.Option(
        None,
        help="Comma-separated names, such as euclidean,gdm,seraph-hyper; all by default. "
        "name=module:function adds one of your own.",
    ),
    samplings: int = typer.Option(50, min=1, help="Random samplings of each task."),
    n_jobs: int | None = typer.Option(
        None, help="Number of processes, 1 by default; -1: one per core."
    ),
    time_cap: float = typer.Option(
        30.0, min=0.01, help="Minutes a method may take on all samplings of a task."
    ),
    scaling: str | None = typer.Option(
        None, help="unit, pixels, standard or none, instead of each task's own."
    ),
    variant: str | None = typer.Option(
        None, help="How labels are drawn: every-class, random, balanced, ..."
    ),
    data_dir: Path | None = DATA_DIR,
    out: Path = typer.Option(Path("reproduction"), metavar="DIR", help="Where the results go."),
    resume: bool = RESUME,
    retry: bool = typer.Option(
        False, "--retry", help="With --resume: repeat failed and cut-off runs."
    ),
    redraw: bool = typer.Option(
        False,
        "--redraw",
        help="figure3 only: make no run, draw figure3.png from figure3.csv in DIR.",
    ),
    debug: bool = DEBUG,
) -> None:
    """Reproduce a table or figure of the paper's Section 5.

    Next to it stands what the paper prints.

    Table 2 and Figure 3 share DIR/cells.jsonl, to which each run of a method on a sampling of a
    task is appended when it finishes; --resume repeats none of them.
    """
    with answers_in_words() as kept:
        if redraw and part != "figure3":
            raise ValueError(f"--redraw is for figure3: {part} has no runs to save.")
        out.mkdir(parents=True, exist_ok=True)
        folder = None if data_dir is None else str(data_dir)
        if part in ("figure1", "figure2"):
            written = _sparsity(int(part[-1]), out)
        elif part == "judgment":
            written = write_texts(out, judgment_again(out))
        elif redraw:
            written = _draw_times(out, read_times(read_made(out, "figure3.csv", "figure3")))
        elif part == "table1":
            table = table1(find_tasks(split_names(tasks)), variant=variant, data_dir=folder)
            written = write_texts(out, text_files("table1", [table], table.rows))
        elif part == "protocol":
            chosen = find_tasks(split_names(tasks))
            drawn = sampling_evidence(chosen, data_dir=folder)
            scaled = scaling_evidence(chosen, samplings, data_dir=folder, variant=variant)
            written = write_texts(out, text_files("protocol", [drawn, scaled]))
        else:
            if methods is not None and "=" in methods:
                sys.path.insert(0, "")  # module:function is looked for in the working directory
            journal = out / "cells.jsonl"
            kept.append(
                f"the finished runs are in {journal}; the same command with --resume continues"
            )
            with progress() as callback:
                runs = run_methods(
                    *(split_names(tasks), split_names(methods), samplings),
                    Protocol(scaling, variant, folder),
                    out=journal,
                    resume=resume,
                    retry=retry,
                    n_jobs=n_jobs,
                    time_cap=60.0 * time_cap,
                    callback=callback,
                )
            written = _report(part, runs, out)
        say(f"Written to {out}: {', '.join(written)}")
        if part in ("table2", "figure3") and not redraw:
            _tell_failures(runs)


def _report(part: str, runs: RunTable, out: Path) -> list[str]:
    """Write Table 2 or Figure 3."""
    for note in runs.notes:
        alert(note)
    if part == "table2":
        return write_texts(out, table2_files(runs.rows))
    times = times_of(summarize(runs.rows))
    table = times_table(times)
    return write_texts(out, text_files("figure3", [table], table.rows)) + _draw_times(out, times)


def _tell_failures(runs: RunTable) -> None:
    """Say how many runs lack a result; exit with code 1 if one failed."""
    count = Counter(row["outcome"] for row in runs.rows)
    if count[FAILED] or count[CUT_OFF]:
        alert(
            f"Of {len(runs.rows)} runs {count[FAILED]} failed and {count[CUT_OFF]} were cut off at "
            "the time cap; table2.md says which and why."
        )
    if count[FAILED]:
        raise typer.Exit(1)


def _draw_times(out: Path, times) -> list[str]:
    return write_picture(out / "figure3.png", lambda pictures: pictures.plot_times(times))


def _sparsity(figure: int, out: Path) -> list[str]:
    sampling = artificial_set(figure)
    panels = learn_panels(figure, sampling)
    return write_texts(out, figure_files(figure, sampling, panels)) + write_picture(
        out / f"figure{figure}.png",
        lambda pictures: pictures.plot_sparsity(figure, sampling, panels),
    )


if __name__ == "__main__":
    app()
