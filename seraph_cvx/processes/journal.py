"""A journal of JSON lines, each appended atomically, so that interrupted work can be resumed."""

from __future__ import annotations

import errno
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Self

fcntl: Any = import_module("fcntl") if find_spec("fcntl") else None  # not on Windows


class Journal(ABC):
    """A file of JSON lines of several kinds, whose meaning :meth:`take` of a subclass defines."""

    work: ClassVar[str]  # the kind of work that writes to the journal, for messages

    def __init__(self, path: str | os.PathLike[str] | None = None, resume: bool = False) -> None:
        self.path = None if path is None else Path(path)
        self.notes: list[str] = []  # what was wrong with the file
        self._file: int | None = None
        if self.path is None:
            return
        if self.path.exists() and not resume:
            raise FileExistsError(
                f"{path} already exists: resume it (resume=True, --resume), write to another "
                "file, or remove it."
            )
        binary = getattr(os, "O_BINARY", 0)  # on Windows: a line ends as it is written
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | binary, 0o644)
        if fcntl is None:
            self.notes.append(
                f"This system cannot lock {self.path.name}: start no other {self.work} that writes "
                "to it."
            )
        else:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self.close()
                raise ValueError(
                    f"Another {self.work} is writing to {path}: wait for it."
                ) from None
        self.read(self.path)

    def read(self, path: Path) -> None:
        """Take the lines of a file, with a note on each that is damaged."""
        content = path.read_bytes()
        if content and not content.endswith(b"\n"):
            self._write(b"\n")
        for number, line in enumerate(content.splitlines(), start=1):
            try:
                self._take(line)
            except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
                self.notes.append(
                    f"Line {number} of {path.name} is damaged, or was cut off in the middle of "
                    "being written, and is ignored; to resume is to repeat its run."
                )

    def _take(self, line: str | bytes) -> None:
        content = json.loads(line)
        self.take(content.pop("kind"), content)

    @abstractmethod
    def take(self, kind: str, content: dict[str, Any]) -> None:
        """Keep a line, or raise a ValueError, KeyError or TypeError if it is damaged."""

    def add(self, kind: str, content: Mapping[str, Any]) -> None:
        """Append a line, and force it to the disk."""
        line = json.dumps({"kind": kind, **content}, allow_nan=False, separators=(",", ":"))
        self._take(line)
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
