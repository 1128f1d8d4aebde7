"""Checks of the header and the cells of a user's table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from .text_rows import TableError


def ragged(path: Path, line: int, found: int, wanted: int) -> str:
    """The error message for a row that has more or fewer cells than the header.

    Examples
    --------
    >>> ragged(Path("a.csv"), 3, 1, 2)
    'Line 3 of a.csv has 1 cell, but the header has 2 columns: every row needs the same number
    (an unknown label is an empty cell).'
    """
    words = (
        f"Line {line} of {path} has {found} cell{'' if found == 1 else 's'}, but the header has "
        f"{wanted} columns: every row needs the same number (an unknown label is an empty cell"
    )
    return words + ("; write decimals with a point, not a comma)." if found > wanted else ").")


def check_header(path: Path, header: list[str], label_column: str) -> int:
    """Check that a header names every column once, and find the label column in it.

    Examples
    --------
    >>> check_header(Path("a.csv"), ["x", "kind"], "kind")
    1
    >>> check_header(Path("a.csv"), ["x", "Kind"], "kind")
    Traceback (most recent call last):
    seraph_cvx.cli.tables.text_rows.TableError: a.csv has no column 'kind'. Its columns are 'x',
    'Kind'.
    Did you mean 'Kind'?
    """
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
    return header.index(label_column)


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


def numbers_of(row: list[str], line: int, columns: Sequence[str]) -> list[float]:
    """Read the cells of a row as finite numbers.

    Examples
    --------
    >>> numbers_of(["1", "2.5"], 2, ["x", "y"])
    [1.0, 2.5]
    >>> numbers_of(["1", "2,5"], 2, ["x", "y"])
    Traceback (most recent call last):
    seraph_cvx.cli.tables.text_rows.TableError: Line 2, column 'y': '2,5' is not a finite number:
    write
    decimals with a point, without separators between thousands.
    """
    try:
        numbers = [float(cell) for cell in row]
    except ValueError:
        numbers = [math.nan]
    if math.isfinite(sum(numbers)) and "_" not in "".join(row):
        return numbers
    return [_number(cell, line, column) for cell, column in zip(row, columns, strict=True)]


def _number(cell: str, line: int, column: str) -> float:
    if _is_number(cell):
        return float(cell)
    where = f"Line {line}, column {_short(column)}: "
    if not cell:
        raise TableError(
            f"{where}the cell is empty. Only a label may be unknown: fill in the number, or remove "
            "the row."
        )
    cure = "remove the column, or write its values as numbers"
    if _is_number(cell.replace(",", ".").replace("_", "")):
        cure = "write decimals with a point, without separators between thousands"
    elif cell.lower().lstrip("+-") in ("nan", "inf", "infinity", "na", "n/a", "null", "none", "?"):
        cure = "fill in the number, or remove the row"
    raise TableError(f"{where}{_short(cell)} is not a finite number: {cure}.")
