"""What is proved of the field's libraries of problems, and how long that takes.

Example:  python examples/reproduction/libraries.py ~/libraries --out proofs --processes 2
"""

from __future__ import annotations

from pathlib import Path

import typer
from evidence.files import RESUME, program, split_names
from evidence.library_proofs import (
    LIBRARIES,
    ProofJournal,
    find_files,
    measure,
    outcome,
    summary_rows,
    write_pages,
)

from seraph_cvx.cli.compare import progress_bar
from seraph_cvx.cli.main import DEBUG
from seraph_cvx.cli.messages import alert, answers_in_words, say
from seraph_cvx.display.result_table import ResultTable, show

app = program()


@app.command(epilog=str(__doc__).rpartition("\n\n")[2])
def libraries(
    folder: Path = typer.Argument(
        ...,
        metavar="FOLDER",
        help=f"Has folders of files: {', '.join(LIBRARIES)}. Or files: then it is a library.",
    ),
    names: str = typer.Option(
        ",".join(LIBRARIES), "--libraries", help="Names of folders, with commas between."
    ),
    only: str | None = typer.Option(
        None,
        metavar="PATTERN",
        help="Patterns such as netlib/a*,*/truss1.*; with commas between.",
    ),
    solver: str | None = typer.Option(
        None, metavar="NAME", help="By default SDPA for large .dat-s files, and Clarabel."
    ),
    out: Path = typer.Option(Path("proofs"), metavar="DIR", help="Where the rows go."),
    answers: Path | None = typer.Option(
        None, metavar="DIR", help="Where solvers' answers are kept; by default in the former."
    ),
    resume: bool = RESUME,
    cpu_limit: float = typer.Option(60.0, min=0.1, help="Processor seconds of a proof."),
    memory_limit: float = typer.Option(8.0, min=0.2, help="GiB of memory of a proof."),
    solve_limit: float = typer.Option(600.0, min=1.0, help="Seconds of a solve."),
    processes: int = typer.Option(1, min=1, help="How many files are measured at a time."),
    debug: bool = DEBUG,
) -> None:
    """Prove the optima of a folder of libraries, one process a file.

    DIR gets proofs.jsonl, a line for each file, proven-intervals.csv and libraries.md. After
    Ctrl-C, --resume goes on.
    """
    with answers_in_words() as kept:
        paths = find_files(folder, split_names(names) or [], only)
        if not paths:
            raise ValueError(f"{folder} has no such files: {names}, {only or '*'}.")
        out.mkdir(parents=True, exist_ok=True)
        limits = {"cpu": cpu_limit, "memory": memory_limit, "solve": solve_limit}
        with ProofJournal(out / "proofs.jsonl", resume) as journal, progress_bar() as bar:
            kept.append(f"the finished files are in {journal.path}; --resume goes on")

            def follow(row, number, total):
                bar.update(bar.task_ids[0], completed=number, total=total, description=row["file"])
                ratio = show(row.get("proof_seconds", ""))
                alert(f"{row['library']}/{row['file']}: {outcome(row)}, {ratio} s", "dim")

            where = answers or out / "answers"
            measure(paths, journal, where, solver, limits, processes, follow)
            rows = list(journal.rows.values())
        write_pages(rows, out, limits)
        for note in journal.notes:
            alert(note)
        say(ResultTable("Libraries", list(summary_rows(rows))).to_markdown())


if __name__ == "__main__":
    app()
