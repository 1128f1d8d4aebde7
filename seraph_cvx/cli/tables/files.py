"""A user's files: checks of their names before the work, and writing what was learned."""

from __future__ import annotations

import csv
import errno
import io
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ...numerics.checks import FloatArray
from ...processes.whole_file import write_whole


class TableError(ValueError):
    """A user's file cannot be read or written; the message says why, and what to do."""


def require_file(path: Path) -> None:
    """Require that a file exists and is not a folder.

    Examples
    --------
    >>> require_file(Path("no such.csv"))
    Traceback (most recent call last):
    seraph_cvx.cli.tables.files.TableError: There is no file no such.csv: check the name and the
    folder.
    """
    if not path.exists():
        raise TableError(f"There is no file {path}: check the name and the folder.")
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))


def check_output(
    path: Path, endings: tuple[str, ...], source: Path | None = None, may_replace: bool = True
) -> None:
    """Check, before the work, that its result can be written to a path.

    Examples
    --------
    >>> check_output(Path("metric.txt"), (".csv", ".npz"))
    Traceback (most recent call last):
    seraph_cvx.cli.tables.files.TableError: metric.txt must end in .csv or .npz: the ending chooses
    the format.
    """
    if path.suffix not in endings:
        raise TableError(
            f"{path} must end in {' or '.join(endings)}: the ending chooses the format."
        )
    if not path.parent.is_dir():
        raise TableError(f"There is no folder {path.parent} to write {path.name} into.")
    if path.is_dir():
        raise TableError(f"{path} is a folder: give the name of a file.")
    if path.exists() and not path.is_file():
        raise TableError(f"{path} is a device or a pipe: give the name of a file.")
    if source is not None and path.exists() and source.exists() and path.samefile(source):
        raise TableError(f"{path} is the table itself: use another name.")
    if path.exists() and not may_replace:
        raise TableError(f"{path} exists already: --force replaces it, or use another name.")
    try:
        tempfile.TemporaryFile(dir=path.resolve().parent).close()
    except OSError as error:
        raise TableError(
            f"Nothing can be written to the folder {path.parent} ({error.strerror}): use another "
            f"folder for {path.name}."
        ) from None


def write_metric(path: Path, metric: FloatArray, feature_names: Sequence[str]) -> None:
    """Write a metric as text: the feature names, then its rows."""
    text = io.StringIO(newline="")
    csv.writer(text).writerows([feature_names, *metric.tolist()])
    write_whole(path, text.getvalue().encode())
