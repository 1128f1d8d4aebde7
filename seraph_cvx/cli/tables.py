"""Users' tables: read and checked, with an error message for whatever is wrong."""

from __future__ import annotations

import codecs
import csv
import io
import math
import re
import shlex
import sys
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..numerics.checks import UNKNOWN, FloatArray, IntArray, MissingExtra
from .files import TableError, require_file, require_memory

MISSING = ("", "nan", "na", "n/a", "null", "none", "?")
"""What stands in a cell whose number is missing, in lower case."""

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
DECIMAL_COMMA = str.maketrans(".,", "'.")
"""Where a comma is the decimal mark, a point is not."""

THOUSANDS = {",": ",", ".": ".", "'": "'\u2019", "space": " \u00a0\u202f"}
"""The marks between thousands by the names that --thousands gives them."""

LARGEST_PIPE = 2**30
"""Bytes that are read from a pipe, at most."""

COPIES = 4
"""How many copies of the numbers reading, standardizing and pairing make."""

MOST_PLACES = 10
"""How many places in a table a message lists."""

LONGEST_CELL = 60
"""How many characters of a cell a message shows."""

MOST_VALUES = 50
"""A column of text with more distinct values is not one-hot encoded."""


# Text, rows and columns


@dataclass(frozen=True)
class Reading:
    """How a table is read: options of `seraph-cvx fit`, and the names that errors may advise."""

    unknown: tuple[str, ...] = ("-1", "NA", "NaN", "nan")
    drop: tuple[str, ...] = ()
    one_hot: tuple[str, ...] = ()
    decimal: str = "."
    encoding: str | None = None
    impute: bool = False
    missing: tuple[str, ...] = ()
    thousands: str | None = None
    options: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.thousands == self.decimal:
            raise TableError(
                f"--thousands {self.thousands} and --decimal {self.decimal}: one mark cannot be "
                "both."
            )

    def advice(self, option: str, words: str) -> str:
        """The words, if the command has the option that they name; otherwise nothing."""
        return words if option in self.options else ""

    def is_unknown(self, label: str) -> bool:
        """Whether a label means that the class is not known; -1.0 is -1."""
        if not label or label in self.unknown:
            return True
        numbers = [float(word) for word in self.unknown if is_number(word)]
        return is_number(label) and float(label) in numbers

    def number(self, cell: str) -> float:
        """The number in a cell: NaN if it is missing and may be, infinity if it is not valid."""
        if self.impute and cell.strip().lower() in self._missing_words:
            return math.nan
        if self.thousands is not None and has_thousands(cell, self.thousands, self.decimal):
            cell = re.sub(f"[{THOUSANDS[self.thousands]}]", "", cell)
        if self.decimal == ",":
            cell = cell.translate(DECIMAL_COMMA)
        number = float(cell) if is_number(cell) else math.inf
        return math.nan if number in self._missing_numbers else number

    @cached_property
    def _missing_words(self) -> frozenset[str]:
        return frozenset([*MISSING, *(word.lower() for word in self.missing)])

    @cached_property
    def _missing_numbers(self) -> frozenset[float]:
        return frozenset(float(word) for word in self.missing if is_number(word))


def in_words(text: str) -> tuple[str, ...]:
    """The words of an option, which commas separate."""
    return tuple(word.strip() for word in text.split(",")) if text else ()


def has_thousands(cell: str, mark: str, decimal: str) -> bool:
    """Whether a cell holds a number in groups of three digits with this mark between them."""
    pattern = rf"[+-]?\d{{1,3}}([{THOUSANDS[mark]}]\d{{3}})+([{decimal}]\d*)?"
    return mark != decimal and re.fullmatch(pattern, cell.strip()) is not None


def is_number(cell: str) -> bool:
    """Whether a cell holds a finite number."""
    try:
        return math.isfinite(float(cell)) and "_" not in cell
    except ValueError:
        return False


class TableText(NamedTuple):
    """A decoded file, its encoding, the lines before its header, and its delimiter."""

    text: str
    encoding: str
    skipped: int
    delimiter: str


def open_text(path: Path, reading: Reading) -> TableText:
    """Read and decode a file, and find its header."""
    require_file(path)
    sample = "take a random sample of its rows, or fewer columns"
    require_memory(COPIES * path.stat().st_size, f"The table {path}", sample)
    with path.open("rb") as file:
        content = file.read(-1 if path.is_file() else LARGEST_PIPE + 1)
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
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        number = error.object.count(b"\n", 0, error.start) + 1
        raise TableError(
            f"Line {number} of {path} is not {error.encoding} text (byte "
            f"0x{error.object[error.start]:02x}): save the table as UTF-8 (in a spreadsheet: CSV "
            "UTF-8)"
            + reading.advice("encoding", ", or name its encoding: --encoding cp1252, latin-1")
            + "."
        ) from None
    except LookupError:
        raise TableError(f"--encoding {encoding}: there is no such encoding.") from None
    delimiter = ""
    for skipped, line in enumerate(io.StringIO(text, newline="")):
        hint = SPREADSHEET_HINT.fullmatch(line.rstrip("\r\n"))
        if hint and not delimiter:
            delimiter = hint[1]
        elif line.strip():
            return TableText(text, encoding, skipped, delimiter or _best_delimiter(line))
    raise TableError(f"{path} is empty: it needs a row of column names, then one row per point.")


def _best_delimiter(header: str) -> str:
    beginning = [header[: csv.field_size_limit()]]  # by a wrong delimiter all of it is one cell
    return max(DELIMITERS, key=lambda mark: len(next(csv.reader(beginning, delimiter=mark))))


def read_rows(path: Path, reading: Reading) -> Iterator[tuple[int, list[str]]]:
    """The rows from the header on, without blank ones, each with its number in a spreadsheet."""
    text = open_text(path, reading)
    lines = io.StringIO(text.text, newline="")
    rows = csv.reader(lines, delimiter=text.delimiter, skipinitialspace=True, strict=True)
    number = n_columns = 0
    try:
        for number, cells in enumerate(rows, start=1):
            if number <= text.skipped or not cells:
                continue
            n_columns = n_columns or len(cells)
            if len(cells) == n_columns:
                yield number, [cell.strip() for cell in cells]
            elif len(cells) > 1 or cells[0].strip():
                raise _wrong_length(path, number, len(cells), n_columns, reading)
    except csv.Error as error:
        problem = f"cannot be read ({error})"
        if "field limit" in str(error):
            problem = f"has a cell of more than {csv.field_size_limit():,} characters: shorten it"
        raise TableError(
            f'Row {number + 1} of {path} {problem}. A cell that begins with a double quote (") '
            "ends with one, and any inside is doubled."
        ) from None


def _wrong_length(path: Path, row: int, found: int, wanted: int, reading: Reading) -> TableError:
    decimals = ""
    if found > wanted:
        decimals = "; write decimals with a point, not a comma"
        decimals += reading.advice("decimal", ", or separate cells by ; and use '--decimal ,'")
    return TableError(
        f"Row {row} of {path} has {found} cell{'' if found == 1 else 's'}, but the header has "
        f"{wanted} columns: every row needs the same number (an unknown label is an empty cell"
        f"{decimals})."
    )


class Columns(NamedTuple):
    """Columns by name, as numbers and as texts, and the number of each row in a spreadsheet."""

    numbers: dict[str, FloatArray]
    texts: dict[str, list[str]]
    rows: IntArray


def read_columns(
    path: Path,
    reading: Reading,
    rows: Iterable[tuple[int, list[str]]],
    header: list[str],
    numeric: Sequence[str],
    textual: Sequence[str],
    wrong: str = "",
) -> Columns:
    """Read columns below the header by their names; what is wrong with them is said all at once.

    `wrong` is what is wrong already, with the header.
    """
    texts: dict[str, list[str]] = {name: [] for name in textual}
    at = {name: header.index(name) for name in (*numeric, *textual)}
    numbers, row_numbers = array("d"), array("q")
    problems: dict[tuple[str, str], list[tuple[int, str]]] = {}
    else_wrong = [wrong] if wrong else []
    try:
        for row, cells in rows:
            row_numbers.append(row)
            for name in numeric:
                numbers.append(reading.number(cells[at[name]]))
                if math.isinf(numbers[-1]):
                    cell = cells[at[name]]
                    problems.setdefault((name, _cure_of_cell(cell, reading)), []).append(
                        (row, cell)
                    )
            for name, values in texts.items():
                values.append(sys.intern(cells[at[name]]))
    except TableError as error:
        else_wrong.append(str(error))
    if problems or else_wrong:
        raise TableError(
            "\n".join([*_sentences(path, problems, len(row_numbers), reading), *else_wrong])
        )
    if not row_numbers:
        raise TableError(f"{path} has a row of column names but no points below it.")
    X = np.array(numbers).reshape(len(row_numbers), len(numeric))
    return Columns(dict(zip(numeric, X.T, strict=True)), texts, np.array(row_numbers))


def _sentences(
    path: Path,
    problems: Mapping[tuple[str, str], list[tuple[int, str]]],
    n_rows: int,
    reading: Reading,
) -> list[str]:
    """A sentence for each column and cure, which names the rows of its cells."""
    sentences = []
    for (name, cure), places in problems.items():
        (row, cell), *others = places
        what = f"{short(cell)} is not a finite number" if cell else "the cell is empty"
        cure = cure or _cure_of_text(name, [text for _, text in places], n_rows, reading)
        more = ", ".join(str(other) for other, _ in others[: MOST_PLACES - 1])
        if len(others) >= MOST_PLACES:
            more += f" and {len(others) - MOST_PLACES + 1} more"
        like_it = f" (and so in row{'s' if len(others) > 1 else ''} {more})" if others else ""
        sentences.append(f"Row {row} of {path}, column {short(name)}: {what}{like_it}. {cure}.")
    if len(sentences) > MOST_PLACES:
        left_out = f"{len(sentences) - MOST_PLACES} more columns have such cells."
        sentences = [*sentences[:MOST_PLACES], left_out]
    return sentences


def _cure_of_text(name: str, cells: list[str], n_rows: int, reading: Reading) -> str:
    """What to do about words in a column: in a few of its cells they may mean missing numbers."""
    words, quoted = list(dict.fromkeys(cells)), name if name.isidentifier() else repr(name)
    if 2 * len(cells) < n_rows:
        listed = shlex.quote(",".join(words))
        means = f"--missing {listed if len(listed) <= LONGEST_CELL else 'WORDS'} --impute median"
        cure = "Write a number, or remove the row"
        return cure + reading.advice("missing", f"; use {means} if the number is missing")
    one_hot = f"--one-hot {quoted} makes a feature of each of its values, "
    return "Remove the column, or write its values as numbers" + reading.advice(
        "one_hot",
        f"; {one_hot if len(words) <= MOST_VALUES else ''}--drop {quoted} leaves it out",
    )


def _cure_of_cell(cell: str, reading: Reading) -> str:
    """What to do about a cell that holds no number; empty for words, of which a column decides."""
    fill = "Fill in the number, or remove the row"
    if "impute" in reading.options:
        fill = "Fill in the number, remove the row, or fill all such cells by --impute median"
    if not cell:
        return f"Only a label may be unknown: {fill[0].lower()}{fill[1:]}"
    other = "." if reading.decimal == "," else ","
    marks = [mark for mark in THOUSANDS if has_thousands(cell, mark, reading.decimal)]
    if marks or is_number(cell.replace(other, "").replace(reading.decimal, ".").replace("_", "")):
        mark = "point" if reading.decimal == "." else "comma"
        cure = f"Write decimals with a {mark}, without separators between thousands"
        if marks:
            cure += reading.advice("thousands", f', or use --thousands "{marks[0]}"')
        elif has_thousands(cell, reading.decimal, other):
            both = f'--decimal {other} --thousands "{reading.decimal}"'
            cure += reading.advice("thousands", f", or use {both}")
        if cell.count(other) == 1 and reading.decimal not in cell:
            doubt = f" if {short(other)} is the decimal mark" if marks else ""
            cure += reading.advice("decimal", f", or use '--decimal {other}'{doubt}")
        return cure
    return fill if cell.strip(" +-").lower() in (*MISSING, "inf", "infinity") else ""


def short(cell: str) -> str:
    """A cell in quotes, cut off if it is long."""
    return repr(cell if len(cell) <= LONGEST_CELL else cell[:LONGEST_CELL] + "...")


def first_names(names: Sequence[str]) -> str:
    """The first names in quotes, and how many more there are."""
    shown = ", ".join(short(name) for name in names[:12])
    return shown + (f" and {len(names) - 12} more" if len(names) > 12 else "")


def near_name(header: Sequence[str], name: str) -> str:
    """A question whether another column was meant; empty if none has a similar name."""
    by_lower_case = {other.casefold(): other for other in header}
    near = get_close_matches(name.casefold(), by_lower_case, n=1)
    return f" Did you mean {short(by_lower_case[near[0]])}?" if near else ""


def name_columns(X: FloatArray, names: Sequence[str]) -> Any:
    """The points as a data frame, whose column names an estimator keeps."""
    try:
        import pandas
    except ImportError:
        raise MissingExtra('A table needs pandas: pip install "seraph-cvx[cli]".') from None
    return pandas.DataFrame(X, columns=list(names))


# A table to learn from


@dataclass(frozen=True, eq=False)
class UserTable:
    """Points (NaN: missing), their classes (-1: unknown), names, words read as unknown.

    `texts` has the values of each column of text, the one of two that has no feature included;
    `rows` the number of each point in a spreadsheet.
    """

    X: FloatArray
    y: NDArray[np.int64]
    feature_names: tuple[str, ...]
    class_names: tuple[str, ...]
    unknown: Mapping[str, int] = field(default_factory=dict)
    texts: Mapping[str, list[str]] = field(default_factory=dict)
    rows: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @property
    def labels(self) -> NDArray[np.object_]:
        """The name of each point's class; None where it is unknown."""
        return np.array([*self.class_names, None], dtype=object)[self.y]


def read_table(path: Path, label_column: str, reading: Reading | None = None) -> UserTable:
    """Read a table: a header, numbers, and the label column, where empty means unknown."""
    reading = Reading() if reading is None else reading
    rows = read_rows(path, reading)
    _, header = next(rows)
    _check_header(path, header, label_column, reading)
    features = [name for name in header if name not in (label_column, "", *reading.drop)]
    numeric = [name for name in features if name not in reading.one_hot]
    texts = [label_column, *reading.one_hot]
    unnamed = _unnamed_column(path, header, reading)
    columns = read_columns(path, reading, rows, header, numeric, texts, unnamed)
    labels = columns.texts.pop(label_column)
    words = {label for label in set(labels) if reading.is_unknown(label)}
    unknown = Counter(label for label in labels if label in words and label)
    classes = tuple(sorted(set(labels) - words))
    codes = {label: k for k, label in enumerate(classes)}
    y = np.array([codes.get(label, UNKNOWN) for label in labels])
    n_known = int(np.sum(y != UNKNOWN))
    if n_known < 2:
        raise TableError(
            f"{n_known} of the {len(y)} cells in the label column {label_column!r} "
            f"{'is' if n_known == 1 else 'are'} filled: the class of at least two points must be "
            "known (an empty cell means unknown"
            + "".join(f", and so does {word!r}" for word in list(unknown)[:3])
            + ")."
        )
    table: dict[str, FloatArray] = {}
    for name in features:
        if name in numeric:
            new = {name: columns.numbers[name]}
        else:
            new = one_hot(name, columns.texts[name])
            if len(new) > MOST_VALUES:
                raise TableError(
                    f"The column {name!r} holds {len(new)} different texts, too many for a "
                    f"feature each (at most {MOST_VALUES}): leave it out with --drop."
                )
            if len(new) == 2 and "" not in columns.texts[name]:
                new.pop(min(new))  # the second value says it all
        for repeated in new.keys() & table.keys():
            raise TableError(f"Two features are named {repeated!r}: rename one.")
        table |= new
    for name, column in table.items():
        if np.all(np.isnan(column)):
            raise TableError(f"The column {name!r} holds no number at all: --drop {name}.")
    X = np.column_stack([*table.values()])
    values = {name: sorted(set(cells)) for name, cells in columns.texts.items()}
    return UserTable(X, y, tuple(table), classes, unknown, values, columns.rows)


def one_hot(name: str, texts: Sequence[str]) -> dict[str, FloatArray]:
    """A feature for each value of a column of text, by its name such as color=red."""
    cells = np.array(texts, dtype=object)
    values = sorted(set(texts) - {""})
    return {f"{name}={value}": (cells == value).astype(np.float64) for value in values}


def _check_header(path: Path, header: list[str], label_column: str, reading: Reading) -> None:
    """Check that a header names every column once, and that the label column is one of several."""
    for option, wanted in (("drop", reading.drop), ("one-hot", reading.one_hot)):
        for name in wanted:
            if name not in header or name == label_column:
                what = "is the label column" if name == label_column else "is not a column"
                raise TableError(
                    f"--{option} {shlex.quote(name)}: {name!r} {what} of {path}. Its columns are "
                    f"{first_names(header)}."
                )
    if label_column not in header:
        raise TableError(
            f"{path} has no column {label_column!r}. Its columns are {first_names(header)}."
            + _column_hint(header, label_column)
        )
    _require_unique(path, header, [name for name in header if name not in ("", *reading.drop)])
    if not {*header} - {label_column, *reading.drop}:
        raise TableError(f"{path} has no column besides {label_column!r}: nothing to measure.")


def _unnamed_column(path: Path, header: list[str], reading: Reading) -> str:
    """What is wrong with a column without a name; empty if there is none, or it is dropped."""
    if "" not in header or "" in reading.drop:
        return ""
    return (
        f"Column {header.index('') + 1} of {path} has no name (the row numbers of a data frame?): "
        "name it in the header, or remove it"
        + reading.advice("drop", '; --drop "" leaves all columns without a name out')
        + "."
    )


def _require_unique(path: Path, header: list[str], names: Iterable[str]) -> None:
    for name in names:
        if header.count(name) > 1:
            raise TableError(
                f"{path} has {header.count(name)} columns named {name!r}: rename them."
            )


def _column_hint(header: list[str], label_column: str) -> str:
    """Guess what was meant by a label column that does not exist."""
    if all(is_number(name) for name in header):
        return " These are numbers: the first row must hold the names of the columns."
    if len(header) == 1:
        return " Only commas, semicolons and tabs separate cells."
    return near_name(header, label_column) or " Give the name of one of them with --label."


# New rows to apply a model to


class NewRows(NamedTuple):
    """Points, their rows, columns not used, by column texts without a feature, columns kept."""

    X: FloatArray
    rows: IntArray
    ignored: list[str]
    unseen: dict[str, list[str]]
    kept: dict[str, list[str]]


def read_new_rows(
    path: Path,
    feature_names: Sequence[str] | None,
    n_features: int,
    reading: Reading,
    texts: Mapping[str, Sequence[str]],
    keep: Sequence[str] = (),
) -> NewRows:
    """Read what a model needs: columns by name, ``color=red`` from the column ``color``.

    `texts` are the values that columns of text had in the fit, as far as they are known; `keep`
    names columns whose cells are kept as they are, "all" for all of them.
    """
    rows = read_rows(path, reading)
    _, header = next(rows)
    kept = header if tuple(keep) == ("all",) else list(keep)
    for name in kept:
        if name not in header:
            raise TableError(
                f"--keep {name}: {path} has no such column. Its columns are {first_names(header)}."
                + near_name(header, name)
            )
    names = header if feature_names is None else list(feature_names)
    if len(names) != n_features:
        raise TableError(
            f"The model knows {n_features} features but not their names, and {path} has "
            f"{len(header)} columns: give it the columns of the fit alone, in their order."
        )
    numeric = [name for name in names if name in header]
    missing = [name for name in names if name not in header]
    textual = [c for c in header if any(name.startswith(f"{c}=") for name in missing)]
    missing = [name for name in missing if not name.startswith(tuple(f"{c}=" for c in textual))]
    if missing:
        raise TableError(
            f"{path} lacks {len(missing)} of the {len(names)} columns that the metric was learned "
            f"from: {first_names(missing)}. Its columns are {first_names(header)}."
            + (near_name(header, missing[0]) if len(missing) == 1 else "")
        )
    _require_unique(path, header, [*numeric, *textual, *kept])
    columns = read_columns(path, reading, rows, header, numeric, [*textual, *kept])
    unseen, features = {}, columns.numbers
    for name in textual:
        cells = columns.texts[name]
        known = [f.removeprefix(f"{name}=") for f in names if f.startswith(f"{name}=")]
        new = sorted(set(cells) - {*texts.get(name, ["", *known])})
        hides_one = name not in texts and len(known) == 1  # models of earlier versions do not say
        if len(new) > hides_one:
            unseen[name] = new
        features |= one_hot(name, cells)
    zeros = np.zeros(len(columns.rows))
    X = np.column_stack([features.get(name, zeros) for name in names])
    ignored = [name for name in header if name not in {*numeric, *textual, *kept}]
    return NewRows(X, columns.rows, ignored, unseen, {name: columns.texts[name] for name in kept})
