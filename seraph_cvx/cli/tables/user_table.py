"""A user's files: reads tables of points and class labels, writes metrics."""

from __future__ import annotations

import csv
import io
import os
import tempfile
from array import array
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from ...numerics.checks import UNKNOWN, FloatArray
from ...numerics.psd_cone import factor
from .table_cells import check_header, numbers_of, ragged
from .text_rows import TableError, read_rows
from .workload import require_memory

LOOK_EVERY = 2**16
"""Rows between two checks of the memory that they take."""

COPIES = 4
"""How many copies of the numbers reading, standardizing and pairing make."""


@dataclass(frozen=True, eq=False)
class UserTable:
    """Points, their classes, and the names of the columns and classes.

    Attributes
    ----------
    X : (n, m) array
    y : (n,) integer array
        The position of each point's class in `class_names`; -1 where the cell was empty.
    feature_names, class_names : tuple of str
    """

    X: FloatArray
    y: NDArray[np.int64]
    feature_names: tuple[str, ...]
    class_names: tuple[str, ...]


def read_table(path: Path, label_column: str) -> UserTable:
    r"""Read a table: a header row, numbers, and the label column, where empty means unknown.

    :func:`.text_rows.read_rows` documents the separators of cells and the encodings of the text.
    The rows are read one by one: only the numbers and the class of each stay in memory.

    Parameters
    ----------
    path : Path
    label_column : str
        The name, in the header, of the column of class labels. Every other column is a feature.

    Raises
    ------
    TableError
        Naming the line and the column that cannot be read.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "a.csv").write_text("x,kind\n1,b\n2,a\n3,\n")
    ...     table = read_table(Path(folder) / "a.csv", "kind")
    >>> table.X.ravel().tolist(), table.y.tolist(), table.class_names
    ([1.0, 2.0, 3.0], [1, 0, -1], ('a', 'b'))
    """
    values, codes = array("d"), array("q")
    names: dict[str, int] = {}
    with closing(read_rows(path)) as rows:
        _, header = next(rows)
        label = check_header(path, header, label_column)
        features = header[:label] + header[label + 1 :]
        for line, row in rows:
            if len(row) != len(header):
                raise TableError(ragged(path, line, len(row), len(header)))
            codes.append(names.setdefault(row.pop(label), len(names)))
            values.extend(numbers_of(row, line, features))
            if len(codes) % LOOK_EVERY == 0:
                require_memory(
                    COPIES * 8 * len(values),
                    f"Line {line} of {path}: the table",
                    "take a random sample of its rows, or fewer columns",
                )
    if not codes:
        raise TableError(f"{path} has a row of column names but no points below it.")
    X = np.frombuffer(values, dtype=np.float64).reshape(len(codes), len(features))
    y, classes = _sorted_classes(np.array(codes, dtype=np.int64), names)
    n_known = int(np.sum(y != UNKNOWN))
    if n_known < 2:
        raise TableError(
            f"{n_known} of the {len(y)} cells in the label column {label_column!r} "
            f"{'is' if n_known == 1 else 'are'} filled: the class of at least two points must be "
            "known (an empty cell means unknown)."
        )
    return UserTable(X, y, tuple(features), classes)


def _sorted_classes(
    codes: NDArray[np.int64], names: Mapping[str, int]
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Sort the classes by name, and recode the points; "" stands for an unknown class."""
    classes = tuple(sorted(name for name in names if name))
    position = {name: k for k, name in enumerate(classes)} | {"": UNKNOWN}
    return np.array([position[name] for name in names], dtype=np.int64)[codes], classes


def check_output(path: Path, endings: tuple[str, ...], source: Path | None = None) -> None:
    """Check, before the work, that its result can be written to a path.

    Examples
    --------
    >>> check_output(Path("metric.txt"), (".csv", ".npz"))
    Traceback (most recent call last):
    seraph_cvx.cli.tables.text_rows.TableError: metric.txt must end in .csv or .npz: the ending
    chooses the format.
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


def write_whole(path: Path, content: bytes) -> None:
    """Write a file atomically: a reader sees all of `content`, or what was there before.

    If `path` is a link, the file that it points to is replaced.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_whole(Path(folder) / "a.txt", b"whole")
    ...     [file.name for file in Path(folder).iterdir()]
    ['a.txt']
    """
    target = path.resolve()
    draft = target.with_name(f".{target.name}.{uuid4().hex}.part")
    try:
        with draft.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, target)
    except OSError as error:
        if error.errno is not None:
            error.filename, error.filename2 = str(path), None
        raise
    finally:
        draft.unlink(missing_ok=True)
