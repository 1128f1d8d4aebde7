"""A user's files: the table of points and class labels that is read, the metric that is written."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..checks import UNKNOWN, FloatArray
from ..psd_cone import factor

DELIMITERS = (",", ";", "\t")
"""What may stand between two cells; the one that gives the header most columns is taken."""


class TableError(ValueError):
    """The table cannot be read; the message says where, and what to do."""


@dataclass(frozen=True, eq=False)
class UserTable:
    """Points, their classes, and what the columns and the classes are called.

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
    """Read a table: a header row, numbers, and the label column, where empty means unknown.

    Cells are separated by commas, semicolons or tabs; the file is UTF-8, with or without a
    byte-order mark. Blank lines are skipped.

    Parameters
    ----------
    path : Path
    label_column : str
        The name, in the header, of the column of class labels. Every other column is a feature.

    Raises
    ------
    TableError
        Naming the line and the column that cannot be read.
    """
    header, rows = _split(path)
    label = _check_header(path, header, label_column)
    features = [k for k in range(len(header)) if k != label]
    X = np.array(
        [[_number(row[k], line, header[k]) for k in features] for line, row in rows],
        dtype=np.float64,
    )
    labels = [row[label] for _, row in rows]
    classes = sorted({name for name in labels if name})
    n_known = sum(map(bool, labels))
    if n_known < 2:
        raise TableError(
            f"{n_known} of the {len(rows)} cells in the label column {label_column!r} "
            f"{'is' if n_known == 1 else 'are'} filled: the class of at least two points must be "
            "known (an empty cell means unknown)."
        )
    code = {name: k for k, name in enumerate(classes)} | {"": UNKNOWN}
    y = np.array([code[name] for name in labels], dtype=np.int64)
    return UserTable(X, y, tuple(header[k] for k in features), tuple(classes))


def check_output(path: Path, endings: tuple[str, ...], source: Path | None = None) -> None:
    """Refuse before the work what could not be written after it."""
    if path.suffix not in endings:
        raise TableError(f"{path} must end in {' or '.join(endings)}: the ending is the format.")
    if not path.parent.is_dir():
        raise TableError(f"There is no folder {path.parent} to write {path.name} into.")
    if path.is_dir():
        raise TableError(f"{path} is a folder: give the name of a file.")
    if source is not None and path.exists() and source.exists() and path.samefile(source):
        raise TableError(f"{path} is the table itself: give another name to write to.")


def write_metric(
    path: Path, metric: FloatArray, feature_names: Sequence[str], scaling: Mapping[str, FloatArray]
) -> None:
    """Write A as text (.csv: feature names, then m rows) or as arrays (.npz).

    The arrays are metric, components (L with A = L'L), feature_names and those of `scaling`.
    """
    if path.suffix == ".csv":
        text = io.StringIO(newline="")
        csv.writer(text).writerows([feature_names, *metric.tolist()])
        write_whole(path, text.getvalue().encode())
        return
    archive = io.BytesIO()
    arrays: dict[str, Any] = {
        "metric": metric,
        "components": factor(metric),
        "feature_names": np.array(feature_names),
        **scaling,
    }
    np.savez(archive, **arrays)
    write_whole(path, archive.getvalue())


def write_whole(path: Path, content: bytes) -> None:
    """Put `content` into a file at once: whoever reads it sees all of it or what was there."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        draft.write_bytes(content)
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def _split(path: Path) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """The header, and the rows with their line numbers; cells are stripped of blanks."""
    text = _decode(path)
    if not text.strip():
        raise TableError(f"{path} is empty: it needs a row of column names, then one row a point.")
    rows = _parse(path, text, _delimiter(text))
    (_, header), *body = rows
    if not body:
        raise TableError(f"{path} has a row of column names but no points below it.")
    for line, row in body:
        if len(row) != len(header):
            raise TableError(
                f"Line {line} of {path} has {len(row)} cells, but the header has {len(header)} "
                "columns: every row needs the same number (an unknown label is an empty cell)."
            )
    return header, body


def _decode(path: Path) -> str:
    if not path.exists():
        raise TableError(f"There is no file {path}.")
    content = path.read_bytes()
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise TableError(
            f"Line {line} of {path} is not UTF-8 text (byte 0x{content[error.start]:02x}): "
            "save the table as UTF-8 (in a spreadsheet: CSV UTF-8)."
        ) from None


def _delimiter(text: str) -> str:
    first = next(line for line in text.splitlines() if line.strip())
    return max(DELIMITERS, key=lambda mark: len(next(csv.reader([first], delimiter=mark))))


def _parse(path: Path, text: str, delimiter: str) -> list[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        return [(reader.line_num, [cell.strip() for cell in row]) for row in reader if row]
    except csv.Error as error:
        raise TableError(f"Line {reader.line_num} of {path} cannot be read: {error}.") from None


def _check_header(path: Path, header: list[str], label_column: str) -> int:
    """The position of the label column in a header that names every column once."""
    if label_column not in header:
        hint = ""
        if all(_is_number(name) for name in header):
            hint = " These are numbers: the first row must hold the names of the columns."
        names = ", ".join(repr(name) for name in header)
        raise TableError(f"{path} has no column {label_column!r}. Its columns are {names}.{hint}")
    for k, name in enumerate(header):
        if not name:
            raise TableError(
                f"Column {k + 1} of {path} has no name (the row numbers of a data frame?): "
                "name it in the header, or remove it."
            )
        if header.count(name) > 1:
            raise TableError(f"{path} has {header.count(name)} columns {name!r}: rename them.")
    if len(header) == 1:
        raise TableError(f"{path} has no column besides {label_column!r}: nothing to measure.")
    return header.index(label_column)


def _is_number(cell: str) -> bool:
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False


def _number(cell: str, line: int, column: str) -> float:
    if _is_number(cell):
        return float(cell)
    where = f"Line {line}, column {column!r}: "
    if not cell:
        raise TableError(
            f"{where}the cell is empty. Only a label may be unknown: fill in the number, or remove "
            "the row."
        )
    cure = "remove the column, or write its values as numbers"
    if _is_number(cell.replace(",", ".")):
        cure = "write decimals with a point"
    raise TableError(f"{where}{cell!r} is not a finite number: {cure}.")
