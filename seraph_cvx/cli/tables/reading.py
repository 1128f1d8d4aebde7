"""How a user's table is to be read, and the numbers in its cells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...numerics.checks import FloatArray
from .files import TableError

NO_NUMBER = ("", "nan", "na", "n/a", "null", "none", "?")
"""What stands in a cell whose number is missing, in small letters."""


@dataclass(frozen=True)
class Reading:
    """How a table is read.

    Attributes
    ----------
    unknown, drop, one_hot, decimal, encoding
        As the options of `seraph-cvx fit`; an empty label is always unknown.
    impute : bool
        Whether a number may be missing; it is NaN then.
    options : tuple of str
        The options of the command that error messages may advise.
    """

    unknown: tuple[str, ...] = ("-1", "NA", "NaN", "nan")
    drop: tuple[str, ...] = ()
    one_hot: tuple[str, ...] = ()
    decimal: str = "."
    encoding: str | None = None
    impute: bool = False
    options: tuple[str, ...] = ()

    def advice(self, option: str, words: str) -> str:
        """The words, if the command has the option that they name; otherwise nothing."""
        return words if option in self.options else ""

    def is_unknown(self, label: str) -> bool:
        """Whether a label means that the class is not known; -1.0 is -1.

        Examples
        --------
        >>> [Reading().is_unknown(label) for label in ("", "-1.0", "NA", "Na")]
        [True, True, True, False]
        """
        if not label or label in self.unknown:
            return True
        return is_number(label) and any(
            is_number(word) and float(word) == float(label) for word in self.unknown
        )

    def number(self, cell: str) -> str:
        """A cell with a decimal point, or nan where it may be and is missing."""
        if self.impute and cell.strip().lower() in NO_NUMBER:
            return "nan"
        if self.decimal == ".":
            return cell
        return cell.replace(".", "'").replace(
            ",", "."
        )  # where a comma is the mark, a point is none


def is_number(cell: str) -> bool:
    """Whether a cell holds a finite number."""
    try:
        return math.isfinite(float(cell)) and "_" not in cell
    except ValueError:
        return False


def read_numbers(where: str, frame: Any, reading: Reading) -> FloatArray:
    """Convert cells to numbers; raise an error that names the first that is none.

    `where` names the table, and the index of the frame holds the numbers of the rows.
    """
    cells = frame
    if reading.impute or reading.decimal != ".":
        cells = frame.map(reading.number)
    good = cells.map(lambda cell: is_number(cell) or (reading.impute and cell == "nan"))
    is_good = good.to_numpy(dtype=bool)
    if not is_good.all():
        row, column = np.argwhere(~is_good)[0]
        name = frame.columns[column]
        place = f"Row {frame.index[row]} of {where}, column {short(name)}: "
        raise TableError(place + _not_a_number(frame.iloc[row, column], name, reading))
    return np.ascontiguousarray(cells.to_numpy(dtype=np.float64))


def _not_a_number(cell: str, name: str, reading: Reading) -> str:
    fill = "fill in the number, or remove the row"
    if "--impute" in reading.options:
        fill = "fill in the number, remove the row, or fill all such cells by --impute median"
    if not cell.strip():
        return f"the cell is empty. Only a label may be unknown: {fill}."
    cure = "remove the column, or write its values as numbers" + reading.advice(
        "--one-hot",
        f"; --one-hot {_quoted(name)} makes a feature of each of its values, --drop "
        f"{_quoted(name)} leaves it out",
    )
    other = "." if reading.decimal == "," else ","
    if is_number(cell.replace(other, "").replace(reading.decimal, ".").replace("_", "")):
        mark = "point" if reading.decimal == "." else "comma"
        cure = f"write decimals with a {mark}, without separators between thousands"
        cure += reading.advice("--decimal", f", or use '--decimal {other}'" * (other in cell))
    elif cell.strip(" +-").lower() in (*NO_NUMBER, "inf", "infinity"):
        cure = fill
    return f"{short(cell)} is not a finite number: {cure}."


def _quoted(name: str) -> str:
    """A name as it is typed: in quotes if it has a blank."""
    return name if name.isidentifier() else repr(name)


def short(cell: str) -> str:
    """A cell in quotes, cut off if it is long."""
    return repr(cell if len(cell) <= 60 else cell[:60] + "...")


def some(names: Sequence[str]) -> str:
    """The first names in quotes, and how many more there are."""
    shown = ", ".join(short(name) for name in names[:12])
    return shown + (f" and {len(names) - 12} more" if len(names) > 12 else "")
