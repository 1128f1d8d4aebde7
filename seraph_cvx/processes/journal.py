"""A journal of JSON lines, each appended atomically, so that interrupted work can be resumed."""

from __future__ import annotations

import errno
import json
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Self

fcntl: Any = import_module("fcntl") if find_spec("fcntl") else None  # not on Windows


class Journal(ABC):
    """A file of JSON lines of several kinds, whose meaning :meth:`take` of a subclass defines.

    Attributes
    ----------
    work : str
        The kind of work that writes to the journal, for messages.
    notes : list of str
        What was wrong with the file.
    """

    work: ClassVar[str]

    def __init__(self, path: str | os.PathLike[str] | None = None, resume: bool = False) -> None:
        self.path = None if path is None else Path(path)
        self.notes: list[str] = []
        self._file: int | None = None
        if self.path is not None:
            self._open(self.path, resume)

    def _open(self, path: Path, resume: bool) -> None:
        if path.exists() and not resume:
            raise FileExistsError(
                f"{path} already exists: resume it (resume=True, --resume), write to another "
                "file, or remove it."
            )
        binary = getattr(os, "O_BINARY", 0)  # on Windows: a line ends as it is written
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | binary, 0o644)
        self._lock(path)
        self.read(path)

    def _lock(self, path: Path) -> None:
        if fcntl is None:
            self.notes.append(
                f"This system cannot lock {path.name}: start no other {self.work} that writes to "
                "it."
            )
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            raise ValueError(f"Another {self.work} is writing to {path}: wait for it.") from None

    def read(self, path: Path) -> None:
        """Take the lines of a file, with a note on each that is damaged."""
        content = path.read_bytes()
        if content and not content.endswith(b"\n"):
            self._write(b"\n")
        for number, line in enumerate(content.splitlines(), start=1):
            try:
                self._enter(json.loads(line))
            except (ValueError, KeyError, TypeError, RecursionError):
                self.notes.append(
                    f"Line {number} of {path.name} is damaged, or was cut off in the middle of "
                    "being written, and is ignored; to resume is to repeat its run."
                )

    def _enter(self, line: dict[str, Any]) -> None:
        self.take(line["kind"], {key: value for key, value in line.items() if key != "kind"})

    @abstractmethod
    def take(self, kind: str, content: dict[str, Any]) -> None:
        """Keep a line, or raise a ValueError, KeyError or TypeError if it is damaged."""

    def add(self, kind: str, content: Mapping[str, Any]) -> None:
        """Append a line, and force it to the disk."""
        line = json.dumps({"kind": kind, **content}, allow_nan=False, separators=(",", ":"))
        self._enter(json.loads(line))
        self._write(line.encode() + b"\n")

    def _write(self, line: bytes) -> None:
        if self._file is None:
            return
        try:
            written = os.write(self._file, line)
            os.fsync(self._file)
        except OSError as error:
            raise OSError(error.errno, os.strerror(error.errno or 0), str(self.path)) from None
        if written != len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def check_kind(content: Mapping[str, Any], names: Sequence[str], kind: type) -> None:
    """Raise an error if an entry of a line is missing, or not of this type."""
    for name in names:
        if type(content[name]) is not kind:
            raise TypeError(f"{name} {content[name]!r}")


def check_numbers(*numbers: Any) -> None:
    """Raise an error unless all numbers are finite floats or 64-bit integers."""
    for x in numbers:
        is_integer = type(x) is int and abs(x) < 2**63
        if not is_integer and not (type(x) is float and math.isfinite(x)):
            raise ValueError(f"number {x!r}")
