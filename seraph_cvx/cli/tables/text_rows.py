"""Reads the rows of a text table one by one, split into cells, with their line numbers.

Nothing of the file is kept, so that a table of millions of rows takes the memory of one line.
"""

from __future__ import annotations

import codecs
import csv
import errno
import io
import os
import re
from collections.abc import Generator, Iterator
from itertools import chain
from pathlib import Path
from typing import IO

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

LONGEST_LINE = 2**24
"""The most characters that a line of a table may have."""

NOT_DECODED = re.compile("[\udc80-\udcff]")
SPREADSHEET_HINT = re.compile("sep=([,;|\t])", re.IGNORECASE)

Row = tuple[int, list[str]]
"""The line on which a row begins, and its cells."""


class TableError(ValueError):
    """The table cannot be read; the message says where, and what to do."""


def read_rows(path: Path) -> Generator[Row]:
    r"""Read the rows of a table, the header first; blank lines are skipped, cells are stripped.

    Cells are separated by commas, semicolons or tabs. The text is UTF-8, or UTF-16 or UTF-32
    with a byte-order mark. A cell in double quotes may hold all of these and line ends.

    Raises
    ------
    TableError
        Naming the line that cannot be read.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "a.csv").write_text('x;kind\n1;a\n2;"b;c"\n')
    ...     list(read_rows(Path(folder) / "a.csv"))
    [(1, ['x', 'kind']), (2, ['1', 'a']), (3, ['2', 'b;c'])]
    """
    require_file(path)
    with path.open("rb") as content:
        encoding = _encoding(path, content.peek(4096)[:4096])
        with io.TextIOWrapper(content, encoding, errors="surrogateescape", newline="") as text:
            yield from _split(path, _lines(path, text))


def require_file(path: Path) -> None:
    """Require that a file exists and is not a folder.

    Examples
    --------
    >>> require_file(Path("no such.csv"))
    Traceback (most recent call last):
    seraph_cvx.cli.tables.text_rows.TableError: There is no file no such.csv: check the name and
    the
    folder.
    """
    if not path.exists():
        raise TableError(f"There is no file {path}: check the name and the folder.")
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))


def _encoding(path: Path, start: bytes) -> str:
    for mark, encoding in BYTE_ORDER_MARKS.items():
        if start.startswith(mark):
            return encoding
    if b"\0" in start:
        raise TableError(
            f"{path} is not a text file: it contains zero bytes. Save the table as CSV UTF-8; "
            "spreadsheet files and archives cannot be read."
        )
    return "utf-8"


def _lines(path: Path, text: IO[str]) -> Iterator[str]:
    number = 1
    try:
        while line := text.readline(LONGEST_LINE):
            if len(line) == LONGEST_LINE:
                raise TableError(
                    f"Line {number} of {path} has more than {LONGEST_LINE} characters: a table has "
                    "one line for each point."
                )
            if not line.isascii() and (bad := NOT_DECODED.search(line)):
                raise TableError(
                    f"Line {number} of {path} is not UTF-8 text (byte 0x{ord(bad[0]) - 0xDC00:02x})"
                    ": save the table as UTF-8 (in a spreadsheet: CSV UTF-8)."
                )
            yield line
            number += 1
    except UnicodeDecodeError as error:
        raise TableError(
            f"Line {number} of {path}, or one soon after it, is not {error.encoding} text: save "
            "the table as UTF-8 (in a spreadsheet: CSV UTF-8)."
        ) from None


def _split(path: Path, lines: Iterator[str]) -> Iterator[Row]:
    skipped, first = next(((k, line) for k, line in enumerate(lines) if line.strip()), (0, ""))
    if not first:
        raise TableError(
            f"{path} is empty: it needs a row of column names, then one row per point."
        )
    if hint := SPREADSHEET_HINT.fullmatch(first.rstrip("\r\n")):
        skipped, delimiter = skipped + 1, hint[1]
    else:
        lines, delimiter = chain([first], lines), _delimiter(first)
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True, strict=True)
    while True:
        line = skipped + reader.line_num + 1
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise TableError(
                f"The row that begins on line {line} of {path} cannot be read ({error}): a cell "
                'that begins with a double quote (") ends with one, and any inside is doubled.'
            ) from None
        if row is None:
            return
        cells = [cell.strip() for cell in row]
        if len(cells) > 1 or any(cells):
            yield line, cells


def _delimiter(header: str) -> str:
    return max(DELIMITERS, key=lambda mark: len(next(csv.reader([header], delimiter=mark))))
