"""Reads the new rows that a learned metric is applied to, by the names of its features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...numerics.checks import FloatArray
from .files import TableError
from .frames import read_frames
from .reading import Reading, read_numbers, some
from .user_table import near_name


@dataclass(frozen=True, eq=False)
class NewRows:
    """Points, the columns that were not used, and by column the texts that are no feature."""

    X: FloatArray
    ignored: tuple[str, ...]
    unseen: dict[str, list[str]]


def read_new_rows(
    path: Path, feature_names: Sequence[str] | None, n_features: int, reading: Reading
) -> NewRows:
    r"""Read the columns of a table that a model needs, in the model's order.

    A feature ``color=red`` that is no column itself is 1 where the column ``color`` holds red.

    Without names the table has these columns alone, in the order of the fit.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "a.csv").write_text("kind,b,color\n0,1,red\n0,2,blue\n")
    ...     rows = read_new_rows(Path(folder) / "a.csv", ["color=red", "b"], 2, Reading())
    >>> rows.X.tolist(), rows.ignored, rows.unseen
    ([[1.0, 1.0], [0.0, 2.0]], ('kind',), {'color': ['blue']})
    """
    header: list[str] = []
    names: list[str] = []
    hot: dict[str, tuple[str, str]] = {}

    def check(found: list[str]) -> None:
        header.extend(found)
        names.extend(found if feature_names is None else feature_names)
        if feature_names is None and len(found) != n_features:
            raise TableError(
                f"The model knows {n_features} features but not their names, and {path} has "
                f"{len(found)} columns: give it the columns of the fit alone, in their order."
            )
        hot.update(_text_features(names, found))
        _require_columns(path, found, names, hot)

    blocks: list[FloatArray] = []
    unseen: dict[str, set[str]] = {}
    for frame in read_frames(path, reading, check):
        block = np.empty((len(frame), len(names)))
        for column in {column for column, _ in hot.values()}:
            cells = np.array([cell.strip() for cell in frame[column]], dtype=object)
            known = {value for _, (other, value) in hot.items() if other == column}
            unseen.setdefault(column, set()).update(set(cells.tolist()) - known - {""})
            for name, (other, value) in hot.items():
                if other == column:
                    block[:, names.index(name)] = cells == value
        plain = [k for k, name in enumerate(names) if name not in hot]
        block[:, plain] = read_numbers(str(path), frame[[names[k] for k in plain]], reading)
        blocks.append(block)
    if not blocks or not sum(map(len, blocks)):
        raise TableError(f"{path} has a row of column names but no points below it.")
    used = {*names, *(column for column, _ in hot.values())}
    return NewRows(
        np.concatenate(blocks),
        tuple(name for name in header if name not in used),
        {column: sorted(values) for column, values in unseen.items() if values},
    )


def _text_features(names: Sequence[str], header: Sequence[str]) -> dict[str, tuple[str, str]]:
    """The features that stand for a value of a column of text: by name, the column and value."""
    found = {}
    for name in set(names) - set(header):
        for k, mark in enumerate(name):
            if mark == "=" and name[:k] in header:
                found[name] = name[:k], name[k + 1 :]
    return found


def _require_columns(
    path: Path, header: list[str], names: Sequence[str], hot: dict[str, tuple[str, str]]
) -> None:
    missing = [name for name in names if name not in header and name not in hot]
    if missing:
        raise TableError(
            f"{path} lacks {len(missing)} of the {len(names)} columns that the metric was learned "
            f"from: {some(missing)}. Its columns are {some(header)}."
            + (near_name(header, missing[0]) if len(missing) == 1 else "")
        )
    needed = {*names} - {*hot} | {column for column, _ in hot.values()}
    for name in needed:
        if header.count(name) > 1:
            raise TableError(f"{path} has {header.count(name)} columns named {name!r}: rename one.")
