"""A user's files: checks of their names before the work, and writing what was learned."""

from __future__ import annotations

import csv
import errno
import io
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...numerics.checks import FloatArray
from ...numerics.psd_cone import factor
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


def check_output(path: Path, endings: tuple[str, ...], source: Path | None = None) -> None:
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
    try:
        tempfile.TemporaryFile(dir=path.resolve().parent).close()
    except OSError as error:
        raise TableError(
            f"Nothing can be written to the folder {path.parent} ({error.strerror}): use another "
            f"folder for {path.name}."
        ) from None


def write_metric(
    path: Path, metric: FloatArray, feature_names: Sequence[str], scaling: Mapping[str, FloatArray]
) -> None:
    """Write a metric as text (.csv: feature names, then m rows) or as arrays (.npz).

    The arrays are metric, components (L with A = L'L), feature_names and those of `scaling`.
    """
    if path.suffix == ".csv":
        text = io.StringIO(newline="")
        csv.writer(text).writerows([feature_names, *metric.tolist()])
        write_whole(path, text.getvalue().encode())
        return
    archive = io.BytesIO()
    arrays: dict[str, Any] = {
        "metric": metric,
        "components": factor(metric),
        "feature_names": np.array(feature_names),
        **scaling,
    }
    np.savez(archive, **arrays)
    write_whole(path, archive.getvalue())
