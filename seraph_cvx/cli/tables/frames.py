"""Reads the cells of a user's table with pandas, some rows at a time; the messages are our own."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...numerics.checks import FloatArray, MissingExtra
from .reading import Reading
from .table_text import broken_row, open_text, wrong_length

ROWS_AT_ONCE = 2**12
"""Rows that are in memory as cells of text at the same time."""


def read_frames(
    path: Path, reading: Reading, check: Callable[[list[str]], object]
) -> Iterator[Any]:
    """Read the cells below the header as frames of text; the index is the number of the row.

    Cells are separated by commas, semicolons or tabs. The text is UTF-8, or UTF-16 or UTF-32
    with a byte-order mark. A cell in double quotes may hold all of these and line ends. Blank
    lines are skipped. `check` is given the header, and raises an error if it cannot be served.
    """
    pandas = _pandas()
    text = open_text(path, reading)
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
            check(header)
            for chunk in reader:
                frame = chunk.set_axis(header, axis=1).set_axis(chunk.index + text.skipped + 1)
                yield _drop_blank_rows(path, frame, reading)
    except (csv.Error, pandas.errors.ParserError) as error:
        raise broken_row(path, text, reading) or error from None


def name_columns(X: FloatArray, names: Sequence[str]) -> Any:
    """The points as a data frame, whose column names an estimator keeps."""
    return _pandas().DataFrame(X, columns=list(names))


def number_classes(labels: Sequence[str | None]) -> tuple[Any, tuple[str, ...]]:
    """The classes in alphabetical order, and the position in it of each label; -1 for None."""
    y, classes = _pandas().factorize(np.array(labels, dtype=object), sort=True)
    return y, tuple(classes)


def _pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise MissingExtra('A table is read with pandas: pip install "seraph-cvx[cli]".') from None
    return pandas


def _drop_blank_rows(path: Path, frame: Any, reading: Reading) -> Any:
    """Drop blank rows; raise an error if another one has fewer cells than the header."""
    short = frame[frame.iloc[:, -1].isna()]
    for number, row in short.iterrows():
        found = row.dropna()
        if len(found) > 1 or "".join(found).strip():
            raise wrong_length(path, number, len(found), len(row), reading)
    return frame.drop(short.index)
