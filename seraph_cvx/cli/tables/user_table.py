"""Reads a user's table of points and class labels with pandas; the error messages are our own."""

from __future__ import annotations

import csv
import io
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...numerics.checks import UNKNOWN, FloatArray, MissingExtra
from .files import TableError
from .table_text import broken_row, open_text, wrong_length

ROWS_AT_ONCE = 2**12
"""Rows that are in memory as cells of text at the same time."""


@dataclass(frozen=True, eq=False)
class UserTable:
    """Points, their classes, and the names of the columns and classes.

    Attributes
    ----------
    X : (n, m) array
    y : (n,) integer array
        The position of each point's class in `class_names`; -1 where the cell was empty.
    feature_names, class_names : tuple of str
    """

    X: FloatArray
    y: NDArray[np.int64]
    feature_names: tuple[str, ...]
    class_names: tuple[str, ...]


def read_table(path: Path, label_column: str) -> UserTable:
    r"""Read a table: a header row, numbers, and the label column, where empty means unknown.

    Cells are separated by commas, semicolons or tabs. The text is UTF-8, or UTF-16 or UTF-32
    with a byte-order mark. A cell in double quotes may hold all of these and line ends. Blank
    lines are skipped.

    Parameters
    ----------
    path : Path
    label_column : str
        The name, in the header, of the column of class labels. Every other column is a feature.

    Raises
    ------
    TableError
        Naming the row, as a spreadsheet counts them, and the column that cannot be read.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "a.csv").write_text("x;kind\n1;b\n2;a\n3;\n")
    ...     table = read_table(Path(folder) / "a.csv", "kind")
    >>> table.X.ravel().tolist(), table.y.tolist(), table.class_names
    ([1.0, 2.0, 3.0], [1, 0, -1], ('a', 'b'))
    """
    try:
        import pandas
    except ImportError:
        raise MissingExtra('A table is read with pandas: pip install "seraph-cvx[cli]".') from None

    text = open_text(path)
    labels: list[str | None] = []
    blocks: list[FloatArray] = []
    try:
        with pandas.read_csv(
            io.BytesIO(text.content),
            encoding=text.encoding,
            sep=text.delimiter,
            engine="python",  # strict about quotes, and tells a missing cell from an empty one
            header=None,
            dtype=object,
            keep_default_na=False,
            skipinitialspace=True,
            skiprows=text.skipped,
            skip_blank_lines=False,  # they count as rows, and are dropped below
            chunksize=ROWS_AT_ONCE,
        ) as reader:
            header = [name.strip() for name in reader.get_chunk(1).iloc[0]]
            _check_header(path, header, label_column)
            for chunk in reader:
                frame = chunk.set_axis(header, axis=1).set_axis(chunk.index + text.skipped + 1)
                frame = _drop_blank_rows(path, frame)
                labels += [sys.intern(name.strip()) or None for name in frame.pop(label_column)]
                blocks.append(_read_numbers(path, frame))
    except (csv.Error, pandas.errors.ParserError) as error:
        raise broken_row(path, text) or error from None
    if not labels:
        raise TableError(f"{path} has a row of column names but no points below it.")
    y, classes = pandas.factorize(np.array(labels, dtype=object), sort=True)  # None becomes -1
    n_known = int(np.sum(y != UNKNOWN))
    if n_known < 2:
        raise TableError(
            f"{n_known} of the {len(y)} cells in the label column {label_column!r} "
            f"{'is' if n_known == 1 else 'are'} filled: the class of at least two points must be "
            "known (an empty cell means unknown)."
        )
    features = tuple(name for name in header if name != label_column)
    return UserTable(np.concatenate(blocks), y, features, tuple(classes))


def _drop_blank_rows(path: Path, frame: Any) -> Any:
    """Drop blank rows; raise an error if another one has fewer cells than the header."""
    short = frame[frame.iloc[:, -1].isna()]
    for number, row in short.iterrows():
        found = row.dropna()
        if len(found) > 1 or "".join(found).strip():
            raise wrong_length(path, number, len(found), len(row))
    return frame.drop(short.index)


def _check_header(path: Path, header: list[str], label_column: str) -> None:
    """Check that a header names every column once, and that the label column is one of several."""
    if label_column not in header:
        raise TableError(
            f"{path} has no column {label_column!r}. Its columns are {_some(header)}."
            + _column_hint(header, label_column)
        )
    for k, name in enumerate(header):
        if not name:
            raise TableError(
                f"Column {k + 1} of {path} has no name (the row numbers of a data frame?): "
                "name it in the header, or remove it."
            )
    if len(set(header)) < len(header):
        name = max(header, key=header.count)
        raise TableError(f"{path} has {header.count(name)} columns named {name!r}: rename them.")
    if len(header) == 1:
        raise TableError(f"{path} has no column besides {label_column!r}: nothing to measure.")


def _column_hint(header: list[str], label_column: str) -> str:
    """Guess what was meant by a label column that does not exist."""
    if all(_is_number(name) for name in header):
        return " These are numbers: the first row must hold the names of the columns."
    if len(header) == 1:
        return " Only commas, semicolons and tabs separate cells."
    by_small_letters = {name.casefold(): name for name in header}
    near = get_close_matches(label_column.casefold(), by_small_letters, n=1)
    if near:
        return f" Did you mean {by_small_letters[near[0]]!r}?"
    return " Give the name of one of them with --label."


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(_short(name) for name in names[:12])
    return shown + (f" and {len(names) - 12} more" if len(names) > 12 else "")


def _short(cell: str) -> str:
    return repr(cell if len(cell) <= 60 else cell[:60] + "...")


def _is_number(cell: str) -> bool:
    try:
        return math.isfinite(float(cell)) and "_" not in cell
    except ValueError:
        return False


def _read_numbers(path: Path, frame: Any) -> FloatArray:
    """Convert cells to finite numbers; raise an error that names the first that is none."""
    is_number = frame.map(_is_number).to_numpy(dtype=bool)
    if not is_number.all():
        row, column = np.argwhere(~is_number)[0]
        where = f"Row {frame.index[row]} of {path}, column {_short(frame.columns[column])}: "
        raise TableError(where + _not_a_number(frame.iloc[row, column]))
    return np.ascontiguousarray(frame.to_numpy(dtype=np.float64))


def _not_a_number(cell: str) -> str:
    if not cell.strip():
        return (
            "the cell is empty. Only a label may be unknown: fill in the number, or remove the row."
        )
    cure = "remove the column, or write its values as numbers"
    if _is_number(cell.replace(",", ".").replace("_", "")):
        cure = "write decimals with a point, without separators between thousands"
    elif cell.strip(" +-").lower() in ("nan", "inf", "infinity", "na", "n/a", "null", "none", "?"):
        cure = "fill in the number, or remove the row"
    return f"{_short(cell)} is not a finite number: {cure}."
