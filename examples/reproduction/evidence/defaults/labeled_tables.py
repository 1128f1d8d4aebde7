"""Reads a folder of a user's own tables of labeled points, each of them a data set."""

from __future__ import annotations

from pathlib import Path

from seraph_cvx.cli.tables import Reading, TableError, read_rows, read_table
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
    _, header = next(read_rows(path, Reading()))
    return header[-1]
