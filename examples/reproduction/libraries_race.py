"""Solvers on the field's libraries of problems, judged by the proven intervals of `libraries.py`.

Example:  python examples/reproduction/libraries_race.py ~/libraries --most 150
"""

from __future__ import annotations

import os
import platform
import time
from collections import Counter
from importlib.metadata import version
from pathlib import Path

import cvxpy as cp
import typer
from evidence.files import RESUME, program, split_names
from evidence.library_race import (
    TOLERANCES,
    RaceJournal,
    draw,
    judged_rows,
    label_of,
    measure,
    overall,
    page,
    proven_instances,
)

from seraph_cvx.cli.compare import progress_bar
from seraph_cvx.cli.main import DEBUG
from seraph_cvx.cli.messages import answers_in_words, say
from seraph_cvx.plots.style import picture_bytes
from seraph_cvx.processes.whole_file import write_whole
from seraph_cvx.race.conic_solvers import DISTRIBUTIONS

app = program()
HERE = Path(__file__).parent


@app.command(epilog=str(__doc__).rpartition("\n\n")[2])
def libraries_race(
    folder: Path | None = typer.Argument(None, metavar="[FOLDER]", help="Has the libraries."),
    intervals: Path = typer.Option(
        HERE / "proven-intervals.csv", help="The table of libraries.py, or its proofs.jsonl."
    ),
    solvers: str = typer.Option(",".join(TOLERANCES), help="Names with commas between."),
    most: int = typer.Option(150, min=1, help="How many problems, the smallest of each library."),
    out: Path = typer.Option(HERE, metavar="DIR", help="Where rows, page and picture go."),
    resume: bool = RESUME,
    redraw: bool = typer.Option(False, "--redraw", help="The page anew from its rows; no run."),
    cpu_limit: float = typer.Option(8.0, min=1.0, help="Processor seconds of a run."),
    memory_limit: float = typer.Option(4.0, min=0.2, help="GiB of memory of a run."),
    debug: bool = DEBUG,
) -> None:
    """Race solvers on files of libraries, at their defaults and at 1e-8.

    DIR gets libraries-race.jsonl (a line a run), .md and .png. After Ctrl-C, --resume goes on.
    """
    with answers_in_words() as kept:
        rows = out / "libraries-race.jsonl"
        if redraw:
            journal = RaceJournal()
            journal.read(rows)
        else:
            journal = RaceJournal(rows, resume)
            kept.append(f"the runs so far are in {rows}; --resume goes on")
            names = [n for n in split_names(solvers) or [] if n in cp.installed_solvers()]
            limits = {"cpu": cpu_limit, "memory": memory_limit}
            _run(folder, intervals, names, most, journal, limits)
        write_whole(out / "libraries-race.md", page(journal).encode())
        judged = judged_rows(journal)
        write_whole(out / "libraries-race.png", picture_bytes(draw(judged), "png"))
        say(overall(judged).to_markdown())
        journal.close()


def _run(folder, intervals, names, most, journal, limits):
    """Make the runs that are missing."""
    known = list(proven_instances(intervals))
    there = [one for one in known if folder and (folder / one["library"] / one["file"]).is_file()]
    if not there:
        raise ValueError(
            f"No file of {intervals} is in {folder}: name the folder of the libraries."
        )
    rank = Counter()
    for one in there:  # the smallest of each library in turn
        one["turn"] = rank[one["library"]]
        rank[one["library"]] += 1
    chosen = sorted(there, key=lambda one: one["turn"])[:most]
    versions = {name: version(DISTRIBUTIONS.get(name, name.lower())) for name in names}
    machine = f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}"
    start = {"versions": {"cvxpy": cp.__version__, **versions}, "machine": machine}
    journal.add("start", start | limits | {"date": time.strftime("%Y-%m-%d")})
    with progress_bar() as bar:

        def follow(row, number, total):
            words = f"{row['file']}: {label_of(row)}: {row.get('said', row['outcome'])}"
            bar.update(bar.task_ids[0], completed=number, total=total, description=words)

        measure(folder, chosen, journal, names, limits, follow)


if __name__ == "__main__":
    app()
