"""Users' tables: read and checked, with an error message for whatever is wrong."""

from __future__ import annotations

import csv
import io
import math
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..numerics.checks import UNKNOWN, FloatArray, IntArray, MissingExtra, counted
from .files import TableError, free_bytes, require_file
from .main import FIRST, TABLE, listed

if TYPE_CHECKING:
    import pandas

MISSING = ("", "nan", "na", "n/a", "null", "none", "?")
"""What stands in a cell whose number is missing, in lower case."""

GROUPED = re.compile("[+-]?\\d{1,3}([,.'\u2019 \u00a0\u202f]\\d{3})+([.,]\\d+)?")
"""A number with marks between its thousands."""

LARGEST_PIPE = 2**30
"""Bytes that are read from a pipe, at most: one may never end."""

MEMORY = 20
"""Times its bytes a table takes: a cell of five letters some eighty, as a string and in lists."""

MOST_PLACES = 10
"""How many places in a table a message lists, so that it can be read."""


def in_words(text: str) -> tuple[str, ...]:
    """The words of an option, which commas separate."""
    return tuple(word.strip() for word in text.split(",")) if text else ()


def is_number(cell: str) -> bool:
    """Whether a cell holds a finite number."""
    try:
        return math.isfinite(float(cell)) and "_" not in cell
    except ValueError:
        return False


@dataclass(frozen=True)
class Notation:
    """How numbers and texts are written in a table: options of `fit` and `apply`."""

    decimal: Annotated[Literal[".", ","], listed(TABLE, "The decimal mark of the numbers.")] = "."
    encoding: Annotated[
        str | None,
        listed(
            TABLE,
            "The encoding of the text, such as cp1252 or utf-16; by default UTF-8.",
            metavar="NAME",
        ),
    ] = None

    def parse(self, cell: str) -> float:
        """The number in a cell, infinity if it holds none."""
        if self.decimal == ",":  # where a comma is the decimal mark, a point is none
            cell = cell.replace(".", "'").replace(",", ".")
        return float(cell) if is_number(cell) else math.inf


@dataclass(frozen=True)
class Reading(Notation):
    """How a table is read: options of `seraph-cvx fit`, which errors advise."""

    drop: Annotated[
        list[str],
        listed(
            FIRST,
            "Leave a column out, such as a number of each row; may be given several times.",
            metavar="COLUMN",
        ),
    ] = field(default_factory=list)
    unknown: Annotated[
        str,
        listed(
            TABLE,
            "Labels that mean an unknown class, separated by commas; an empty cell always does.",
            metavar="WORDS",
        ),
    ] = "-1,NA,NaN,nan"
    one_hot: Annotated[
        list[str],
        listed(
            TABLE,
            "Make a feature of each value of a column of text; may be given several times.",
            metavar="COLUMN",
        ),
    ] = field(default_factory=list)
    scale_text: Annotated[
        Literal["column", "value", "none"],
        listed(
            TABLE,
            "How much the features of --one-hot count. column: those of one column together as "
            "much as one of numbers. value: each of them does. none: 0 and 1 as they are.",
        ),
    ] = "column"
    impute: Annotated[
        Literal["median", "mean"] | None,
        listed(TABLE, "Fill empty cells by the median or the mean of their column."),
    ] = None
    missing: Annotated[
        str,
        listed(
            TABLE,
            "Numbers or words that mean a missing value among the features, separated by commas, "
            "such as 9999,-999; needs --impute. An empty cell, NA, NaN, null, none and ? always "
            "do.",
            metavar="WORDS",
        ),
    ] = ""
    standardize: Annotated[
        bool,
        listed(
            TABLE,
            "Bring each feature to mean 0 and variance 1 first. Features on different scales "
            "make the trace weight meaningless.",
        ),
    ] = True

    def __post_init__(self) -> None:
        if self.missing and self.impute is None:
            raise TableError(
                f"--missing {self.missing} needs --impute median or --impute mean, which says what "
                "to fill in instead."
            )

    def is_unknown(self, label: str) -> bool:
        """Whether a label means that the class is not known; -1.0 is -1."""
        words = in_words(self.unknown)
        numbers = [float(word) for word in words if is_number(word)]
        return not label or label in words or (is_number(label) and float(label) in numbers)

    def number(self, cell: str) -> float:
        """The number in a cell: NaN if it is missing and may be, infinity if it is not valid."""
        words, numbers = self._missing
        if self.impute and cell.lower() in words:
            return math.nan
        number = self.parse(cell)
        return math.nan if number in numbers else number

    @cached_property
    def _missing(self) -> tuple[set[str], set[float]]:
        """The words, in lower case, and the numbers that stand for a missing number."""
        words = in_words(self.missing)
        numbers = {float(word) for word in words if is_number(word)}
        return {*MISSING, *(word.lower() for word in words)}, numbers


# Text and rows


def _read_bytes(path: Path) -> bytes:
    """The content of a file or pipe, if it fits into memory."""
    require_file(path)
    needed, free = MEMORY * path.stat().st_size, free_bytes()
    if needed > free:
        raise TableError(
            f"The table {path} needs about {needed / 2**30:.0f} GiB of memory, and "
            f"{free / 2**30:.1f} GiB are free: take a random sample of its rows, or fewer columns."
        )
    with path.open("rb") as file:
        content = file.read(-1 if path.is_file() else LARGEST_PIPE + 1)
    if not path.is_file() and len(content) > LARGEST_PIPE:
        raise TableError(f"{path} sends more than 1 GiB: save the table to a file first.")
    return content


def _decoded(path: Path, encoding: str | None) -> str:
    """The text of a file; an error names its first line that is none."""
    content = _read_bytes(path)
    if encoding is None and b"\0" in content:
        raise TableError(
            f"{path} is not a text file: it contains zero bytes. Save the table as CSV UTF-8, or "
            "use fit --encoding utf-16; spreadsheet files and archives cannot be read."
        )
    try:
        return content.decode(encoding or "utf-8-sig")
    except UnicodeDecodeError as error:
        number = error.object.count(b"\n", 0, error.start) + 1
        raise TableError(
            f"Line {number} of {path} is not {error.encoding} text (byte "
            f"0x{error.object[error.start]:02x}): save the table as UTF-8 (in a spreadsheet: CSV "
            "UTF-8), or name its encoding: fit --encoding cp1252, latin-1."
        ) from None
    except LookupError:
        raise TableError(f"--encoding {encoding}: there is no such encoding.") from None


def read_rows(path: Path, reading: Reading) -> Iterator[tuple[int, list[str]]]:
    """The rows from the header on, without blank ones, each with its number in a spreadsheet."""
    text = _decoded(path, reading.encoding)
    if not text.strip():
        raise TableError(
            f"{path} is empty: it needs a row of column names, then one row per point."
        )
    header = re.split("[\r\n]", text.lstrip(), maxsplit=1)[0]
    beginning = [header[: csv.field_size_limit()]]  # by a wrong delimiter all of it is one cell
    mark = max(",;\t", key=lambda mark: len(next(csv.reader(beginning, delimiter=mark))))
    lines = io.StringIO(text, newline="")
    rows = csv.reader(lines, delimiter=mark, skipinitialspace=True, strict=True)
    number = 0
    try:
        for number, cells in enumerate(rows, start=1):
            if len(cells) > 1 or "".join(cells).strip():
                yield number, [cell.strip() for cell in cells]
    except csv.Error as error:
        problem = f"cannot be read ({error})"
        if "field limit" in str(error):
            problem = f"has a cell of more than {csv.field_size_limit():,} characters: shorten it"
        raise TableError(
            f'Row {number + 1} of {path} {problem}. A cell that begins with a double quote (") '
            "ends with one, and any inside is doubled."
        ) from None


def read_frame(path: Path, reading: Reading) -> tuple[pandas.DataFrame, list[str]]:
    """The cells as text, by column and by row of a spreadsheet; and what is wrong with the rows."""
    rows = read_rows(path, reading)
    _, header = next(rows)
    kept: dict[int, list[str]] = {}
    wrong: list[str] = []
    try:
        for number, cells in rows:
            if len(cells) == len(header):
                kept[number] = cells
            elif not wrong:
                decimals = ""
                if len(cells) > len(header):
                    decimals = (
                        "; write decimals with a point, or separate cells by ; and use "
                        "fit --decimal ,"
                    )
                wrong.append(
                    f"Row {number} of {path} has {counted(len(cells), 'cell')}, but the header has "
                    f"{len(header)} columns: every row needs the same number (an unknown label is "
                    f"an empty cell{decimals})."
                )
    except TableError as error:
        wrong.append(str(error))
    pd = require_pandas()
    return pd.DataFrame.from_dict(kept, "index", dtype=object, columns=header), wrong


def require_pandas() -> Any:
    """The library of tables, or an error that says what to install."""
    try:
        import pandas
    except ImportError:
        raise MissingExtra('A table needs pandas: pip install "seraph-cvx[cli]".') from None
    return pandas


def name_columns(X: FloatArray, names: Sequence[str]) -> Any:
    """The points as a data frame, whose column names an estimator keeps."""
    return require_pandas().DataFrame(X, columns=list(names))


# Columns of numbers and of texts


def read_numbers(
    path: Path,
    frame: pandas.DataFrame,
    names: Sequence[str],
    reading: Reading,
    wrong: Sequence[str] = (),
) -> dict[str, FloatArray]:
    """The columns of numbers, NaN where they are missing; all that is wrong is said at once.

    `wrong` is what is wrong already, with the header or the rows.
    """
    columns = {name: np.array([reading.number(c) for c in frame[name]]) for name in names}
    bad = {name: frame.loc[np.isinf(column), name] for name, column in columns.items()}
    places = [
        (sentence, name)
        for name, cells in bad.items()
        for sentence in _bad_cells(path, name, cells, reading)
    ]
    left_out = {name for _, name in places[MOST_PLACES:]}
    sentences = [sentence for sentence, _ in places[:MOST_PLACES]]
    if left_out:
        sentences.append(f"There are more such cells, in {counted(len(left_out), 'column')}.")
    if sentences or wrong:
        raise TableError("\n".join([*sentences, *wrong]))
    if frame.empty:
        raise TableError(f"{path} has a row of column names but no points below it.")
    return columns


def _bad_cells(path: Path, name: str, cells: pandas.Series[Any], reading: Reading) -> Iterator[str]:
    """A sentence for each cure of cells that hold no number, which names their rows."""
    places: dict[str, list[tuple[Any, str]]] = {}
    for row, cell in cells.items():
        places.setdefault(_cure(name, cell, reading), []).append((row, cell))
    for cure, ((row, cell), *others) in places.items():
        what = f"{short(cell)} is not a finite number" if cell else "the cell is empty"
        more = ", ".join(str(other) for other, _ in others[: MOST_PLACES - 1])
        if len(others) >= MOST_PLACES:
            more += f" and {len(others) - MOST_PLACES + 1} more"
        like_it = f" (and so in row{'s' if len(others) > 1 else ''} {more})" if others else ""
        yield f"Row {row} of {path}, column {short(name)}: {what}{like_it}. {cure}."


def _cure(name: str, cell: str, reading: Reading) -> str:
    """What to do about a cell that holds no number."""
    if cell.strip(" +-").lower() in (*MISSING, "inf", "infinity"):
        return "Fill in the number, remove the row, or fill all such cells by fit --impute median"
    other = Notation("," if reading.decimal == "." else ".")
    is_other = math.isfinite(other.parse(cell))
    if is_other or GROUPED.fullmatch(cell):
        mark = "point" if reading.decimal == "." else "comma"
        option = f', or use fit --decimal "{other.decimal}"' if is_other else ""
        return f"Write decimals with a {mark}, without marks between thousands{option}"
    column = name if name.isidentifier() else repr(name)
    return (
        f"Write a number, or remove the row; fit --drop {column} leaves the column out, --one-hot "
        f"{column} makes a feature of each of its values, and --missing WORD --impute median fills "
        "in for a word"
    )


MOST_VALUES = 50
"""A column of text with more distinct values is not one-hot encoded: it names the rows."""


def one_hot(cells: pandas.Series[Any]) -> dict[str, FloatArray]:
    """A feature for each value of a column of text, by its name such as color=red."""
    coded = require_pandas().get_dummies(cells, prefix=cells.name, prefix_sep="=", dtype=float)
    return {name: coded[name].to_numpy() for name in coded if name != f"{cells.name}="}


def short(cell: str) -> str:
    """A cell in quotes, cut off if it is long."""
    return repr(cell if len(cell) <= 60 else f"{cell[:60]}...")


def first_names(names: Sequence[str]) -> str:
    """The first names in quotes, and how many more there are."""
    shown = ", ".join(short(name) for name in names[:12])
    return shown + (f" and {len(names) - 12} more" if len(names) > 12 else "")


def near_name(header: Sequence[str], name: str) -> str:
    """A question whether another column was meant; empty if none has a similar name."""
    by_lower_case = {other.casefold(): other for other in header}
    near = get_close_matches(name.casefold(), by_lower_case, n=1)
    return f" Did you mean {short(by_lower_case[near[0]])}?" if near else ""


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
    frame, wrong = read_frame(path, reading)
    header = frame.columns.tolist()
    _check_header(path, header, label_column, reading)
    features = [name for name in header if name not in (label_column, "", *reading.drop)]
    numeric = [name for name in features if name not in reading.one_hot]
    if "" in header and "" not in reading.drop:
        wrong.append(
            f"Column {header.index('') + 1} of {path} has no name (the row numbers of a data "
            'frame?): name it in the header, or remove it; fit --drop "" leaves all columns '
            "without a name out."
        )
    numbers = read_numbers(path, frame, numeric, reading, wrong)
    y, classes, unknown = _read_labels(frame[label_column], reading)
    table: dict[str, FloatArray] = {}
    for name in features:
        new = {name: numbers[name]} if name in numbers else _features_of_text(frame[name])
        for repeated in new.keys() & table.keys():
            raise TableError(f"Two features are named {repeated!r}: rename one.")
        table |= new
    for name, column in table.items():
        if np.all(np.isnan(column)):
            raise TableError(f"The column {name!r} holds no number at all: --drop {name}.")
    values = {name: sorted(set(frame[name])) for name in reading.one_hot}
    X, rows = np.column_stack([*table.values()]), frame.index.to_numpy()
    return UserTable(X, y, tuple(table), classes, unknown, values, rows)


def _read_labels(
    labels: pandas.Series[Any], reading: Reading
) -> tuple[IntArray, tuple[str, ...], Counter[str]]:
    """The class of each point, -1 where it is unknown; the classes; and the words for unknown."""
    words = {label for label in set(labels) if reading.is_unknown(label)}
    unknown = Counter(label for label in labels if label in words and label)
    classes = tuple(sorted(set(labels) - words))
    codes = {label: k for k, label in enumerate(classes)}
    y = np.array([codes.get(label, UNKNOWN) for label in labels])
    n_known = int(np.sum(y != UNKNOWN))
    if n_known < 2:
        raise TableError(
            f"{n_known} of the {len(y)} cells in the label column {labels.name!r} "
            f"{'is' if n_known == 1 else 'are'} filled: the class of at least two points must be "
            "known (an empty cell means unknown"
            + "".join(f", and so does {word!r}" for word in list(unknown)[:3])
            + ")."
        )
    return y, classes, unknown


def _features_of_text(cells: pandas.Series[Any]) -> dict[str, FloatArray]:
    """The features of a column of text: of two values the second one says it all."""
    features = one_hot(cells)
    if len(features) > MOST_VALUES:
        raise TableError(
            f"The column {cells.name!r} holds {len(features)} different texts, too many for a "
            f"feature each (at most {MOST_VALUES}): leave it out with --drop."
        )
    if len(features) == 2 and "" not in set(cells):
        del features[min(features)]
    return features


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
        hint = near_name(header, label_column) or " Give the name of one of them with --label."
        if all(is_number(name) for name in header):
            hint = " These are numbers: the first row must hold the names of the columns."
        elif len(header) == 1:
            hint = " Only commas, semicolons and tabs separate cells."
        raise TableError(
            f"{path} has no column {label_column!r}. Its columns are {first_names(header)}." + hint
        )
    _require_unique(path, header, {*header} - {"", *reading.drop})
    if not {*header} - {label_column, *reading.drop}:
        raise TableError(f"{path} has no column besides {label_column!r}: nothing to measure.")


def _require_unique(path: Path, header: list[str], names: set[str]) -> None:
    """Require that no two columns have one of these names."""
    for name in names:
        if header.count(name) > 1:
            raise TableError(
                f"{path} has {header.count(name)} columns named {name!r}: rename them."
            )


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
    frame, wrong = read_frame(path, reading)
    header = frame.columns.tolist()
    kept = header if tuple(keep) == ("all",) else list(keep)
    names = header if feature_names is None else list(feature_names)
    if len(names) != n_features:
        raise TableError(
            f"The model knows {n_features} features but not their names, and {path} has "
            f"{len(header)} columns: give it the columns of the fit alone, in their order."
        )
    numeric = [name for name in names if name in header]
    absent = [name for name in names if name not in header]
    textual = [c for c in header if any(name.startswith(f"{c}=") for name in absent)]
    absent = [name for name in absent if not name.startswith(tuple(f"{c}=" for c in textual))]
    if absent:
        raise TableError(
            f"{path} lacks {len(absent)} of the {len(names)} columns that the metric was learned "
            f"from: {first_names(absent)}. Its columns are {first_names(header)}."
            + (near_name(header, absent[0]) if len(absent) == 1 else "")
        )
    for name in kept:
        if name not in header:
            raise TableError(
                f"--keep {name}: {path} has no such column. Its columns are {first_names(header)}."
                + near_name(header, name)
            )
    _require_unique(path, header, {*numeric, *textual, *kept})
    features = read_numbers(path, frame, numeric, reading, wrong)
    unseen: dict[str, list[str]] = {}
    for name in textual:
        known = [f.removeprefix(f"{name}=") for f in names if f.startswith(f"{name}=")]
        new = sorted(set(frame[name]) - {*texts.get(name, ["", *known])})
        unseen |= {name: new} if new else {}
        features |= one_hot(frame[name])
    zeros = np.zeros(len(frame))
    X = np.column_stack([features.get(name, zeros) for name in names])
    ignored = [name for name in header if name not in {*numeric, *textual, *kept}]
    texts_kept = {name: frame[name].tolist() for name in kept}
    return NewRows(X, frame.index.to_numpy(), ignored, unseen, texts_kept)
