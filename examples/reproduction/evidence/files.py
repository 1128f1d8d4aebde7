"""What the programs share: how they start, their options, their progress, the files they write."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import typer

from seraph_cvx.cli.compare import progress_bar
from seraph_cvx.cli.messages import alert, say
from seraph_cvx.processes.whole_file import write_whole

from .runs import FAILED, Callback

NAMES: Any = typer.Option(None, help="Names with commas between; all by default.")
DATA_DIR: Any = typer.Option(
    None, metavar="DIR", help="The folder of the data that are not embedded."
)
RESUME: Any = typer.Option(False, "--resume", help="Continue from the runs recorded in DIR.")


def program() -> typer.Typer:
    """A program with plain help and plain tracebacks, as the `seraph-cvx` command has them."""
    return typer.Typer(
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"max_content_width": 100},
    )


def split_names(text: str | None) -> list[str] | None:
    """The names in a text with commas between."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def split_numbers(text: str, option: str, example: str) -> list[int]:
    """The integers in a text with commas between; an error names the option."""
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise ValueError(f"{option} {text!r}: write integers, such as {example}.") from None


@contextmanager
def progress() -> Iterator[Callback]:
    """A line of progress, as a callback of runs; each method's first failure is told at once."""
    told: set[str] = set()
    with progress_bar() as bar:

        def follow(row, number, total):
            words = f"{_place(row)}, {row['method']}"
            bar.update(bar.task_ids[0], completed=number, total=total, description=words)
            if row["outcome"] == FAILED and row["method"] not in told:
                told.add(row["method"])
                alert(f"{words}: failed ({row['detail']})")

        yield follow


def _place(row):
    if "task" in row:
        return f"{row['task']}, sampling {row['sampling']}"
    return f"{row['set']}, {row['labels']} labels, draw {row['draw']}"


def write_texts(out: Path, texts: dict[str, str]) -> list[str]:
    """Write files by name, and print those in Markdown; return the names."""
    for name, text in texts.items():
        write_whole(out / name, text.encode())
        if name.endswith(".md"):
            say(text.replace("<br>", " / "))
    return list(texts)


def write_picture(path: Path, draw: Callable[[Any], Any]) -> list[str]:
    """Write what `draw` makes with the module of pictures, and return its name; or say why not."""
    try:
        from seraph_cvx.plots.style import picture_bytes

        from . import pictures
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        alert('No picture: matplotlib is not installed. Run  pip install "seraph-cvx[plot]"')
        return []
    write_whole(path, picture_bytes(draw(pictures), path.suffix[1:]))
    return [path.name]


def read_labeled_tables(folder: Path, label_column: str | None = None) -> dict[str, Any]:
    """Read a user's own tables by the names of their files: the points and classes of each.

    The label column is the last one unless it is named; rows without a label are left out.
    """
    paths = sorted(folder.glob("*.csv"))
    if not paths:
        raise FileNotFoundError(f"{folder} has no file that ends in .csv.")
    labeled: dict[str, Any] = {}
    for path in paths:
        table = pd.read_csv(path)
        name = table.columns[-1] if label_column is None else label_column
        if name not in table:
            raise ValueError(f"{path} has no column {name!r}.")
        known = table.dropna(subset=[name])
        labeled[path.stem] = known.drop(columns=name).to_numpy(np.float64), known[name].to_numpy()
    return labeled
