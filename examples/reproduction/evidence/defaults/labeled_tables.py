"""Reads a folder of a user's own tables of labeled points, each of them a data set."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from seraph_cvx.cli.tables.files import TableError
from seraph_cvx.cli.tables.reading import Reading
from seraph_cvx.cli.tables.table_text import open_text
from seraph_cvx.cli.tables.user_table import read_table
from seraph_cvx.numerics.checks import UNKNOWN, FloatArray, IntArray

ENDINGS = (".csv", ".tsv", ".txt")


def read_labeled_tables(
    folder: Path, label_column: str | None = None
) -> dict[str, tuple[FloatArray, IntArray]]:
    """Read the tables of a folder, by the names of their files: points and classes."""
    if not folder.is_dir():
        raise TableError(f"There is no folder {folder} of tables: check the name.")
    paths = sorted(path for path in folder.iterdir() if path.suffix in ENDINGS)
    if not paths:
        raise TableError(f"{folder} has no file that ends in {', '.join(ENDINGS)}.")
    found: dict[str, tuple[FloatArray, IntArray]] = {}
    for path in paths:
        if path.stem in found:
            raise TableError(f"Two files of {folder} are called {path.stem}: rename one of them.")
        table = read_table(path, _last_column(path) if label_column is None else label_column)
        known = table.y != UNKNOWN
        found[path.stem] = table.X[known], table.y[known]
    return found


def _last_column(path: Path) -> str:
    text = open_text(path, Reading())
    lines = io.TextIOWrapper(io.BytesIO(text.content), text.encoding, newline="")
    for _ in range(text.skipped):
        next(lines)
    return next(csv.reader(lines, delimiter=text.delimiter, skipinitialspace=True))[-1].strip()
