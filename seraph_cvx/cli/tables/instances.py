"""Reads a folder of a user's own tables, each of which becomes an M-step to race on."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from ...model.m_step_objective import MStepObjective
from ...pairs.pair_set import PairSet
from .files import TableError
from .user_table import read_table

ENDINGS = (".npz", ".csv", ".tsv", ".txt")


def read_instances(folder: Path, label_column: str = "y") -> dict[str, MStepObjective]:
    """Read the tables of a folder, by the names of their files, and state the M-step of each.

    A ``.npz`` file holds X and y, with -1 for an unknown class, and may hold `trace_weight` and
    `unlabeled_weight`; a CSV table has a column of labels, where empty means unknown. The points
    are taken as they are.

    Parameters
    ----------
    folder : Path
    label_column : str
        The name of the label column of CSV tables.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     np.savez(Path(folder) / "mine.npz", X=[[0.0], [0.2], [2.0]], y=[0, 0, 1])
    ...     list(read_instances(Path(folder)))
    ['mine']
    """
    if not folder.is_dir():
        raise TableError(f"There is no folder {folder} of instances: check the name.")
    paths = sorted(path for path in folder.iterdir() if path.suffix in ENDINGS)
    if not paths:
        raise TableError(f"{folder} has no file that ends in {', '.join(ENDINGS)}.")
    found: dict[str, MStepObjective] = {}
    for path in paths:
        if path.stem in found:
            raise TableError(f"Two files of {folder} are called {path.stem}: rename one of them.")
        if path.suffix == ".npz":
            found[path.stem] = _from_arrays(path)
        else:
            table = read_table(path, label_column)
            found[path.stem] = MStepObjective(PairSet.from_labels(table.X, table.y))
    return found


def _from_arrays(path: Path) -> MStepObjective:
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = dict(file)
    except (zipfile.BadZipFile, EOFError, OSError, ValueError) as error:
        raise TableError(f"{path} is not a file of np.savez(..., X=X, y=y): {error}.") from error
    missing = [name for name in ("X", "y") if name not in arrays]
    if missing:
        raise TableError(
            f"{path} has no array {missing[0]!r}, only {', '.join(sorted(arrays)) or 'nothing'}: "
            "write it with np.savez(path, X=points, y=labels)."
        )
    weights = {
        name: arrays[name].item() for name in ("trace_weight", "unlabeled_weight") if name in arrays
    }
    try:
        return MStepObjective(PairSet.from_labels(arrays["X"], arrays["y"]), **weights)
    except ValueError as error:
        raise TableError(f"{path}: {error}") from error
