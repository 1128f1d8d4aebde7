"""Files and memory of a command, checked before its work."""

from __future__ import annotations

import csv
import errno
import io
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ..processes.whole_file import write_whole


class TableError(ValueError):
    """A user's file cannot be read or written; the message says why, and what to do."""


def require_file(path: Path) -> None:
    """Require that a file exists and is not a folder."""
    if not path.exists():
        raise TableError(f"There is no file {path}: check the name and the folder.")
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))


def check_output(
    path: Path, endings: tuple[str, ...], source: Path | None = None, may_replace: bool = True
) -> None:
    """Check, before the work, that its result can be written to a path."""
    exists = path.exists()
    is_source = source is not None and exists and source.exists() and path.samefile(source)
    problems = {
        f"{path} must end in {' or '.join(endings)}: the ending chooses the format.": (
            path.suffix not in endings
        ),
        f"There is no folder {path.parent} to write {path.name} into.": not path.parent.is_dir(),
        f"{path} is a link that leads to itself: remove it.": (
            os.path.islink(os.path.realpath(path))
        ),
        f"{path} is a folder: give the name of a file.": path.is_dir(),
        f"{path} is a device or a pipe: give the name of a file.": exists and not path.is_file(),
        f"{path} is the table itself: use another name.": is_source,
        f"{path} exists already: --force replaces it, or use another name.": (
            exists and not may_replace
        ),
    }
    for problem, is_present in problems.items():
        if is_present:
            raise TableError(problem)
    try:
        tempfile.TemporaryFile(dir=os.path.dirname(os.path.realpath(path))).close()
    except OSError as error:
        raise TableError(
            f"Nothing can be written to the folder {path.parent} ({error.strerror}): use another "
            f"folder for {path.name}."
        ) from None


def write_rows(path: Path, rows: Iterable[Sequence[Any]]) -> None:
    """Write a table as CSV: the whole file, or none of it."""
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    write_whole(path, text.getvalue().encode())


def free_bytes() -> int:
    """The memory that is free without swapping, or else all memory; on Windows infinite."""
    try:
        memory = Path("/proc/meminfo").read_text("ascii")
    except OSError:
        memory = ""  # not Linux
    available = re.search(r"^MemAvailable: *(\d+)", memory, re.M)
    if available:
        return int(available[1]) * 1024
    if hasattr(os, "sysconf"):
        return int(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return sys.maxsize
