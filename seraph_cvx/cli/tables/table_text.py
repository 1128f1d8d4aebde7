"""Opens the text of a user's table: its encoding, its header and its separator of cells."""

from __future__ import annotations

import codecs
import csv
import io
import re
from dataclasses import dataclass
from pathlib import Path

from .files import TableError, require_file
from .reading import Reading
from .workload import require_memory

DELIMITERS = (",", ";", "\t")
"""The separators of cells; the one that gives the header most columns is used."""

BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""The encoding that each byte-order mark stands for; UTF-32's begins like UTF-16's."""

SPREADSHEET_HINT = re.compile("sep=([,;|\t])", re.IGNORECASE)

LARGEST_PIPE = 2**30
"""Bytes that are read from a pipe, at most."""

COPIES = 4
"""How many copies of the numbers reading, standardizing and pairing make."""


@dataclass(frozen=True)
class TableText:
    """The content of a file, its encoding, the lines before its header, and its delimiter."""

    content: bytes
    encoding: str
    skipped: int
    delimiter: str


def open_text(path: Path, reading: Reading) -> TableText:
    """Read a file of text, and find its header."""
    require_file(path)
    require_memory(
        COPIES * path.stat().st_size,
        f"The table {path}",
        "take a random sample of its rows, or fewer columns",
    )
    with path.open("rb") as file:
        content = file.read() if path.is_file() else file.read(LARGEST_PIPE + 1)
    if not path.is_file() and len(content) > LARGEST_PIPE:
        raise TableError(f"{path} sends more than 1 GiB: save the table to a file first.")
    marks = (mark for mark in BYTE_ORDER_MARKS if content.startswith(mark))
    encoding = reading.encoding or BYTE_ORDER_MARKS.get(next(marks, b""), "utf-8")
    if encoding == "utf-8" and b"\0" in content:
        raise TableError(
            f"{path} is not a text file: it contains zero bytes. Save the table as CSV UTF-8; "
            "spreadsheet files and archives cannot be read."
        )
    try:
        content.decode(encoding)
    except UnicodeDecodeError as error:
        number = error.object.count(b"\n", 0, error.start) + 1
        raise TableError(
            f"Line {number} of {path} is not {error.encoding} text (byte "
            f"0x{error.object[error.start]:02x}): save the table as UTF-8 (in a spreadsheet: CSV "
            "UTF-8)"
            + reading.advice("--encoding", ", or name its encoding: --encoding cp1252, latin-1")
            + "."
        ) from None
    except LookupError:
        raise TableError(f"--encoding {encoding}: there is no such encoding.") from None
    delimiter = ""
    for skipped, line in enumerate(_lines(content, encoding)):
        hint = SPREADSHEET_HINT.fullmatch(line.rstrip("\r\n"))
        if hint and not delimiter:
            delimiter = hint[1]
        elif line.strip():
            return TableText(content, encoding, skipped, delimiter or _best_delimiter(line))
    raise TableError(f"{path} is empty: it needs a row of column names, then one row per point.")


def _lines(content: bytes, encoding: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(content), encoding, newline="")


def _best_delimiter(header: str) -> str:
    return max(DELIMITERS, key=lambda mark: len(next(csv.reader([header], delimiter=mark))))


def broken_row(path: Path, text: TableText, reading: Reading) -> TableError | None:
    """The error message for the first row that has surplus cells or wrong quotes."""
    lines, number, n_columns = _lines(text.content, text.encoding), 0, 0
    try:
        for cells in csv.reader(
            lines, delimiter=text.delimiter, skipinitialspace=True, strict=True
        ):
            number += 1
            if number == text.skipped + 1:
                n_columns = len(cells)
            elif number > text.skipped and len(cells) > n_columns:
                return wrong_length(path, number, len(cells), n_columns, reading)
    except csv.Error as error:
        return TableError(
            f"Row {number + 1} of {path} cannot be read ({error}): a cell that begins with a "
            'double quote (") ends with one, and any inside is doubled.'
        )
    return None


def wrong_length(path: Path, row: int, found: int, wanted: int, reading: Reading) -> TableError:
    """The error for a row that has more or fewer cells than the header."""
    words = (
        f"Row {row} of {path} has {found} cell{'' if found == 1 else 's'}, but the header has "
        f"{wanted} columns: every row needs the same number (an unknown label is an empty cell"
    )
    decimals = ""
    if found > wanted:
        decimals = "; write decimals with a point, not a comma"
        decimals += reading.advice("--decimal", ", or separate cells by ; and use '--decimal ,'")
    return TableError(f"{words}{decimals}).")
