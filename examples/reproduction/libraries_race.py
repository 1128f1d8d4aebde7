"""Solvers on the field's libraries of problems, judged by the proven intervals of `libraries.py`.

Example:  python examples/reproduction/libraries_race.py ~/libraries --most 150
"""

from __future__ import annotations

from pathlib import Path

import typer
from evidence.files import RESUME, program
from evidence.library_race import draw, judged_rows, page, proven_instances

from seraph_cvx import compare_solvers
from seraph_cvx.cli.compare import progress_bar
from seraph_cvx.cli.main import DEBUG
from seraph_cvx.cli.messages import answers_in_words, say
from seraph_cvx.plots.style import picture_bytes
from seraph_cvx.processes.whole_file import write_whole
from seraph_cvx.race.compare import read_race
from seraph_cvx.race.race_table import asked

app = program()
HERE = Path(__file__).parent


@app.command(epilog=str(__doc__).rpartition("\n\n")[2])
def libraries_race(
    folder: Path | None = typer.Argument(
        None, metavar="[FOLDER]", help="Has the libraries. Without it the page is made anew."
    ),
    intervals: Path = typer.Option(HERE / "proven-intervals.csv", help="Of libraries.py."),
    most: int = typer.Option(150, min=1, help="How many problems, the smallest of each library."),
    out: Path = typer.Option(HERE, metavar="DIR", help="Where rows, page and picture go."),
    resume: bool = RESUME,
    time_limit: float = typer.Option(10.0, min=1.0, help="Seconds of a run."),
    debug: bool = DEBUG,
) -> None:
    """Race solvers on files of libraries, at their defaults and at 1e-8.

    DIR gets libraries-race.jsonl (a line a run), .md and .png. After Ctrl-C, --resume goes on.
    """
    with answers_in_words() as kept, progress_bar() as bar:
        rows = out / "libraries-race.jsonl"

        def follow(row, number, total):
            words = f"{row['instance']}: {row['solver']}, {asked(row)}: {row['outcome']}"
            bar.update(bar.task_ids[0], completed=number, total=total, description=words)

        if folder is None:
            race = read_race(rows)
        else:
            kept.append(f"the runs so far are in {rows}; --resume goes on")
            chosen = proven_instances(intervals, folder, most)
            given = {"time_limit": time_limit, "out": rows, "resume": resume}
            race = compare_solvers(chosen, **given, callback=follow)
        write_whole(out / "libraries-race.md", page(race).encode())
        write_whole(out / "libraries-race.png", picture_bytes(draw(judged_rows(race)), "png"))
        say(page(race).split("\n\n")[1])


if __name__ == "__main__":
    app()
