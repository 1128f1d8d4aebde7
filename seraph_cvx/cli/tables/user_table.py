"""Reads a user's table of points and class labels."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...numerics.checks import UNKNOWN, FloatArray
from .files import TableError
from .frames import number_classes, read_frames
from .reading import Reading, is_number, read_numbers, short, some

MOST_VALUES = 50
"""A column of text with more different values becomes no features."""

CALLED_IDENTIFIER = re.compile(r"(?i:(^|[_\s.-])(id|uid|uuid|index|nr))$|[a-z](Id|ID)$")
FEWEST_IN_SEQUENCE = 5


@dataclass(frozen=True, eq=False)
class UserTable:
    """Points, their classes, and the names of the columns and classes.

    Attributes
    ----------
    X : (n, m) array
        NaN where a number is missing, if that was allowed.
    y : (n,) integer array
        The position of each point's class in `class_names`; -1 where it is unknown.
    feature_names, class_names : tuple of str
    unknown : mapping
        How often each word that means an unknown class was found.
    """

    X: FloatArray
    y: NDArray[np.int64]
    feature_names: tuple[str, ...]
    class_names: tuple[str, ...]
    unknown: Mapping[str, int] = field(default_factory=dict)

    @property
    def labels(self) -> NDArray[np.object_]:
        """The name of each point's class; None where it is unknown."""
        return np.array([*self.class_names, None], dtype=object)[self.y]


def read_table(path: Path, label_column: str, reading: Reading | None = None) -> UserTable:
    r"""Read a table: a header row, numbers, and the label column, where empty means unknown.

    Parameters
    ----------
    path : Path
    label_column : str
        The name, in the header, of the column of class labels. Every other column is a feature,
        unless it is dropped.
    reading : Reading, optional

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
    reading = Reading() if reading is None else reading
    features: list[str] = []
    labels: list[str | None] = []
    words: Counter[str] = Counter()
    blocks: list[FloatArray] = []
    texts: dict[str, list[str]] = {name: [] for name in reading.one_hot}

    def check(header: list[str]) -> None:
        _check_header(path, header, label_column, reading)
        features.extend(h for h in header if h != label_column and h not in reading.drop)

    for frame in read_frames(path, reading, check):
        for cell in frame.pop(label_column):
            name = sys.intern(cell.strip())
            labels.append(None if reading.is_unknown(name) else name)
            if name and labels[-1] is None:
                words[name] += 1
        for name, values in texts.items():
            values += [sys.intern(cell.strip()) for cell in frame[name]]
        numbers = [name for name in features if name not in texts]
        blocks.append(read_numbers(str(path), frame[numbers], reading))
    if not labels:
        raise TableError(f"{path} has a row of column names but no points below it.")
    y, classes = number_classes(labels)
    n_known = int(np.sum(y != UNKNOWN))
    if n_known < 2:
        raise TableError(
            f"{n_known} of the {len(y)} cells in the label column {label_column!r} "
            f"{'is' if n_known == 1 else 'are'} filled: the class of at least two points must be "
            "known (an empty cell means unknown"
            + "".join(f", and so does {word!r}" for word in list(words)[:3])
            + ")."
        )
    X, names = _join(np.concatenate(blocks), features, texts)
    for name in np.array(names, dtype=object)[np.all(np.isnan(X), axis=0)]:
        raise TableError(f"The column {name!r} holds no number at all: --drop {name}.")
    return UserTable(X, y, names, classes, words)


def _join(
    numbers: FloatArray, features: Sequence[str], texts: Mapping[str, list[str]]
) -> tuple[FloatArray, tuple[str, ...]]:
    """Put a feature for each value in the place of each column of text."""
    columns: list[FloatArray] = []
    names: list[str] = []
    rest = iter(numbers.T)
    for name in features:
        if name not in texts:
            columns.append(next(rest))
            names.append(name)
            continue
        cells = np.array(texts[name], dtype=object)
        values = sorted(set(texts[name]) - {""})
        if len(values) > MOST_VALUES:
            raise TableError(
                f"The column {name!r} holds {len(values)} different texts, too many for a feature "
                f"each (at most {MOST_VALUES}): leave it out with --drop."
            )
        if len(values) == 2 and "" not in texts[name]:  # the one is what the other is not
            values = values[1:]
        columns += [(cells == value).astype(np.float64) for value in values]
        names += [f"{name}={value}" for value in values]
    if len(set(names)) < len(names):
        raise TableError(f"Two features are named {max(names, key=names.count)!r}: rename one.")
    return np.column_stack(columns), tuple(names)


def looks_like_identifier(name: str, column: FloatArray) -> bool:
    """Whether a column is called an identifier, or numbers the points in sequence.

    Examples
    --------
    >>> looks_like_identifier("flower_id", np.array([7.0, 7.5]))
    True
    >>> looks_like_identifier("n", np.array([3.0, 1.0, 2.0, 5.0, 4.0]))
    True
    >>> looks_like_identifier("width", np.array([3.0, 1.0, 2.0, 5.0, 5.0]))
    False
    """
    if CALLED_IDENTIFIER.search(name.strip()):
        return True
    n = len(column)
    first = float(np.min(column))
    return n >= FEWEST_IN_SEQUENCE and bool(
        np.array_equal(np.sort(column), np.arange(n) + first) and first == np.rint(first)
    )


def _check_header(path: Path, header: list[str], label_column: str, reading: Reading) -> None:
    """Check that a header names every column once, and that the label column is one of several."""
    for option, wanted in (("drop", reading.drop), ("one-hot", reading.one_hot)):
        for name in wanted:
            if name not in header or name == label_column:
                what = "is the label column" if name == label_column else "is no column"
                raise TableError(
                    f"--{option} {name}: {name!r} {what} of {path}. Its columns are {some(header)}."
                )
    if label_column not in header:
        raise TableError(
            f"{path} has no column {label_column!r}. Its columns are {some(header)}."
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
    if len(header) - len(reading.drop) == 1:
        raise TableError(f"{path} has no column besides {label_column!r}: nothing to measure.")


def _column_hint(header: list[str], label_column: str) -> str:
    """Guess what was meant by a label column that does not exist."""
    if all(is_number(name) for name in header):
        return " These are numbers: the first row must hold the names of the columns."
    if len(header) == 1:
        return " Only commas, semicolons and tabs separate cells."
    near = near_name(header, label_column)
    return near or " Give the name of one of them with --label."


def near_name(header: Sequence[str], name: str) -> str:
    """A question whether another column was meant; empty if none is called nearly so."""
    by_small_letters = {other.casefold(): other for other in header}
    near = get_close_matches(name.casefold(), by_small_letters, n=1)
    return f" Did you mean {short(by_small_letters[near[0]])}?" if near else ""
