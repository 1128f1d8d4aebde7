"""The lines of a text file, and errors that name the one that is wrong."""

from __future__ import annotations

import gzip
import math
import re
import zlib
from collections.abc import Hashable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import cvxpy as cp
import numpy as np

from .arithmetic import Array

Named = TypeVar("Named", cp.Variable, cp.Constraint)
Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)


def named(thing: Named, names: Iterable[object], label: str = "") -> Named:
    """A variable or a constraint with the file's names of its entries, and a label."""
    thing.entry_names = tuple(map(str, names))
    return thing.set_label(label) if label else thing


def put(found: dict[Key, Value], key: Key, value: Value) -> None:
    """Put a value where there is none yet; a ValueError where there is one."""
    if key in found:
        raise ValueError
    found[key] = value


def to_number(word: str) -> float:
    """The finite number that a word is; a ValueError where it is none."""
    if not NUMBER.fullmatch(word) or not math.isfinite(number := float(word)):
        raise ValueError
    return number


class FileLines:
    """The lines of a file that are neither empty nor comments; `at` is the one that is read."""

    def __init__(self, path: Path, comments: str) -> None:
        content = path.read_bytes()
        if path.suffix.lower() == ".gz":
            try:
                content = gzip.decompress(content)
            except (gzip.BadGzipFile, EOFError, zlib.error) as error:
                raise ValueError(f"{path}: no whole gzip file ({error}): get it again.") from None
        lines = content.decode("utf-8-sig", "backslashreplace").split("\n")
        kept = ((k, line) for k, line in enumerate(lines, 1) if line.strip())
        self.rows = [(k, line) for k, line in kept if line.lstrip()[0] not in comments]
        self.path, self.at = path, -1
        if not self.rows:
            raise ValueError(f"{path}: the file is empty: get it again.")

    def lines(self) -> Iterator[str]:
        """The lines, each of which is read while the caller has it."""
        for at, (_, line) in enumerate(self.rows):
            self.at = at
            yield line

    def wrong(self, words: str) -> ValueError:
        """The error of the line that is read."""
        at = min(self.at, len(self.rows) - 1)
        return ValueError(f"{self.path}, line {self.rows[at][0]}: {words}")

    def words(self) -> list[str]:
        """The words of the next line."""
        if self.at + 1 >= len(self.rows):
            raise self.wrong("the file ends before what was announced: get it again.")
        self.at += 1
        return self.rows[self.at][1].split()


class Table:
    """The next lines of a file, each of which has some indices and then a number."""

    def __init__(self, file: FileLines, names: Sequence[str], count: int) -> None:
        self.file, self.names, self.first = file, names, file.at + 1
        rows = []
        for _ in range(count):
            rows.append(file.words())
            if len(rows[-1]) != len(names) + 1 or "_" in rows[-1][-1]:
                raise file.wrong(f"{', '.join(names)} and a number are expected.")
        try:
            numbers = np.array(rows, dtype=np.float64)
        except ValueError:
            numbers = np.array(np.nan)
        if not np.isfinite(numbers).all():
            right = [
                all(NUMBER.fullmatch(word) and math.isfinite(float(word)) for word in row)
                for row in rows
            ]
            self.require(right, "a number is such as 1.5 or -2e-3.")
        self.columns = numbers.reshape(count, len(names) + 1).T

    def require(self, holds: Sequence[bool] | Array, words: str) -> None:
        """Raise the error of the first line for which something does not hold."""
        if not np.all(holds):
            self.file.at = self.first + int(np.argmin(holds))
            raise self.file.wrong(words)

    def index(self, name: str, low: int, high: int | Array) -> Array:
        """A column of indices, each from `low` to `high`, counted from `low`."""
        found: Array = self.columns[self.names.index(name)]
        inside = (found >= low) & (found <= high) & (found == np.floor(found))
        self.require(inside, f"there is no {name} of this number: it was not declared.")
        return found.astype(np.int64) - low

    def require_once(self, rows: Array, columns: Array) -> None:
        """Raise the error of the first line whose place another line has had."""
        _, first = np.unique(rows * (columns.max(initial=0) + 1) + columns, return_index=True)
        is_first = np.isin(np.arange(len(rows)), first)
        self.require(is_first, "this entry has a number in another line: drop one of them.")
