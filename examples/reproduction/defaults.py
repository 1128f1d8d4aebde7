"""How good the defaults are, on data outside the paper.

Example:  python examples/reproduction/defaults.py --tables DIR --label species --draws 10
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer
from evidence.contest import bench_defaults, find_sets
from evidence.files import (
    DATA_DIR,
    NAMES,
    RESUME,
    program,
    progress,
    read_labeled_tables,
    split_names,
    split_numbers,
    write_texts,
)
from evidence.ranking import defaults_csv, defaults_page
from evidence.runs import FAILED

from seraph_cvx.cli.main import DEBUG
from seraph_cvx.cli.messages import alert, answers_in_words, say

app = program()


@app.command(epilog=str(__doc__).rpartition("\n\n")[2])
def bench_the_defaults(
    methods: str | None = NAMES,
    sets: str | None = NAMES,
    tables: Path | None = typer.Option(
        None, metavar="DIR", help="A folder of CSV tables, each a data set of your own."
    ),
    label: str | None = typer.Option(
        None, metavar="COLUMN", help="Their label column; by default the last."
    ),
    labels: str = typer.Option("2,3,5,10", help="Numbers of labels for each class."),
    draws: int = typer.Option(20, min=1, help="Draws of each set."),
    out: Path = typer.Option(Path("defaults"), metavar="DIR", help="Where the results go."),
    jobs: int | None = typer.Option(None, help="The number of processes; -1: one per core."),
    resume: bool = RESUME,
    data_dir: Path | None = DATA_DIR,
    debug: bool = DEBUG,
) -> None:
    """Measure how good the defaults are, on data outside the paper.

    SERAPH, its rivals and common classifiers learn from a few labels of each data set. Written are
    a page and a table; after Ctrl-C, --resume goes on.
    """
    with answers_in_words() as kept:
        chosen: Any = split_names(sets)
        if tables is not None:
            others = [] if chosen is None else find_sets(chosen, data_dir)
            chosen = {data.name: (data.X, data.y) for data in others}
            chosen |= read_labeled_tables(tables, label)
        numbers = split_numbers(labels, "--labels", "2,5")
        if min(numbers) < 1:
            raise ValueError(f"--labels {labels!r}: a class needs at least one label.")
        out.mkdir(parents=True, exist_ok=True)
        journal = out / "runs.jsonl"
        kept.append(f"the finished runs are in {journal}; the same command with --resume goes on")
        with progress() as callback:
            table = bench_defaults(
                *(split_names(methods), chosen, numbers, draws),
                out=journal,
                resume=resume,
                n_jobs=jobs,
                data_dir=data_dir,
                callback=callback,
            )
        for note in table.notes:
            alert(note)
        written = _report(table.rows, out)
        say(f"Written to {out}: {', '.join(written)}")
        failed = sum(row["outcome"] == FAILED for row in table.rows)
        if failed:
            alert(f"Of {len(table.rows)} runs {failed} failed; defaults.md says which and why.")
            raise typer.Exit(1)


def _report(rows: list[dict[str, Any]], out: Path) -> list[str]:
    page = defaults_page(rows)
    texts = {"defaults.md": page, "defaults.csv": defaults_csv(rows)}
    return write_texts(out, texts)


if __name__ == "__main__":
    app()
