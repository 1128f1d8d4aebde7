"""The data sets of the benchmark of defaults, by name: thirteen of a file, four embedded ones."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from seraph_cvx import datasets
from seraph_cvx.numerics.checks import FloatArray, IntArray

MORE = (
    *("australian", "cleveland", "contraceptive", "dermatology", "german", "glass", "haberman"),
    *("hayes-roth", "led7digit", "movement_libras", "newthyroid", "segment", "wisconsin"),
)
"""The sets of the file ``more.npz``, arrays ``NAME__X`` and ``NAME__y``: none is in the paper."""

EMBEDDED = ("iris", "wine", "breast_cancer", "digits")
"""The sets that scikit-learn brings along; the first three are in the paper's Table 1."""

FILE = "more.npz"


@dataclass(frozen=True, eq=False)
class DataSet:
    """Points of known class, as they are in the file."""

    name: str
    X: FloatArray
    y: IntArray

    @classmethod
    def of(cls, name: str, X: ArrayLike, y: ArrayLike) -> DataSet:
        """Number the classes of points, and check that there is something to tell apart."""
        points, classes = np.asarray(X, dtype=np.float64), np.asarray(y)
        if points.ndim != 2 or classes.shape != (len(points),):
            raise ValueError(
                f"{name}: X of shape {points.shape} and y of shape {classes.shape} are not n "
                "points and their n classes."
            )
        if not np.all(np.isfinite(points)):
            raise ValueError(f"{name}: X has entries that are not finite: remove their rows.")
        names, codes = np.unique(classes, return_inverse=True)
        sizes = np.bincount(codes)
        if len(names) < 2 or int(sizes.min()) < 2:
            raise ValueError(
                f"{name} has {len(names)} classes, the smallest of {int(sizes.min())} points: "
                "two classes of two points each are needed, one point to show and one to judge."
            )
        return cls(name, points, codes.astype(np.int64))

    @property
    def digest(self) -> str:
        """A short fingerprint of the points and classes."""
        content = np.ascontiguousarray(self.X).tobytes() + self.y.tobytes()
        return hashlib.sha256(repr(self.X.shape).encode() + content).hexdigest()[:12]


def find_sets(
    sets: Sequence[str] | Mapping[str, tuple[Any, Any]] | None = None,
    data_dir: str | os.PathLike[str] | None = None,
) -> list[DataSet]:
    """Load data sets by their names, or take given ones."""
    if isinstance(sets, Mapping):
        return [DataSet.of(name, *points) for name, points in sets.items()]
    names = list(dict.fromkeys((*MORE, *EMBEDDED) if sets is None else sets))
    for name in names:
        if name not in (*MORE, *EMBEDDED):
            raise ValueError(
                f"There is no data set {name!r}; the known ones are {', '.join(MORE)}, "
                f"{', '.join(EMBEDDED)}."
            )
    more = _read_more([name for name in names if name in MORE], data_dir)
    return [more[name] if name in more else _embedded(name) for name in names]


def _embedded(name: str) -> DataSet:
    return DataSet.of(name, *datasets.load(name))


def _read_more(names: Sequence[str], data_dir: str | os.PathLike[str] | None) -> dict[str, DataSet]:
    if not names:
        return {}
    folder = data_dir if data_dir is not None else os.environ.get(datasets.DATA_VARIABLE)
    path = Path(folder or ".") / FILE
    if folder is None or not path.is_file():
        raise FileNotFoundError(
            f"{', '.join(names)}: {path} does not exist. Give the folder of {FILE} (arrays NAME__X "
            f"and NAME__y) as data_dir or {datasets.DATA_VARIABLE}; or ask for the sets "
            f"{','.join(EMBEDDED)}, which need no file."
        )
    with np.load(path, allow_pickle=False) as arrays:
        missing = [name for name in names if f"{name}__X" not in arrays]
        if missing:
            raise ValueError(f"{path} has no arrays {missing[0]}__X and {missing[0]}__y.")
        return {
            name: DataSet.of(name, arrays[f"{name}__X"], arrays[f"{name}__y"]) for name in names
        }
