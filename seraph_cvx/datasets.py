"""Data sets as X, y, and random samplings of them as the paper draws them (Section 5.1)."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

DATA_VARIABLE = "SERAPH_CVX_DATA"
"""The environment variable that names the folder of the files that are not embedded."""


@dataclass(frozen=True, eq=False)
class Sampling:
    """One random sampling: training points with few labels (-1 = unknown), and test points."""

    name: str
    X: NDArray[np.float64]
    y: NDArray[Any]
    X_test: NDArray[np.float64]
    y_test: NDArray[Any]

    @property
    def labeled(self) -> NDArray[np.bool_]:
        """Which training points have a known class."""
        return np.asarray(self.y != -1)


def load(name: str, data_dir: str | os.PathLike[str] | None = None) -> tuple[Any, Any]:
    """X (n, m) and y (n,) of a data set by name.

    Parameters
    ----------
    name : str
        "iris", "wine", "breast_cancer", "digits", "balance" (embedded), or "ionosphere",
        "diabetes" (read from `data_dir`).
    data_dir : path, optional
        The folder of ``ionosphere.csv`` and ``diabetes.csv``: a header, the features, then a
        column ``label``. By default the environment variable ``SERAPH_CVX_DATA``.

    Examples
    --------
    >>> X, y = load("balance")
    >>> X.shape, np.bincount(y).tolist()
    ((625, 4), [49, 288, 288])
    """
    if name in _EMBEDDED:
        return _EMBEDDED[name]()
    if name in _FILES:
        return _read_csv(name, data_dir)
    known = ", ".join([*_EMBEDDED, *_FILES])
    raise ValueError(f"There is no data set {name!r}; the known ones are {known}.")


def sample(
    name: str,
    X: ArrayLike,
    y: ArrayLike,
    n_points: int = 100,
    n_labeled: int = 10,
    seed: int = 0,
) -> Sampling:
    """Draw `n_points` training points, reveal the class of the first `n_labeled`, standardize.

    The first labels are redrawn until every class is among them. Each feature is shifted and
    scaled to mean 0 and variance 1 over the training points; a constant one is only shifted.

    Examples
    --------
    >>> sampling = sample("iris", *load("iris"), seed=1)
    >>> sampling.X.shape, int(sampling.labeled.sum()), len(sampling.y_test)
    ((100, 4), 10, 50)
    """
    points, classes = np.asarray(X, dtype=np.float64), np.asarray(y)
    n_classes = len(np.unique(classes))
    if not n_classes <= n_labeled <= n_points <= len(points):
        raise ValueError(
            f"{name} has {len(points)} points in {n_classes} classes: n_labeled={n_labeled} and "
            f"n_points={n_points} must satisfy {n_classes} <= n_labeled <= n_points."
        )
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(points))
    while len(np.unique(classes[order[:n_labeled]])) < n_classes:
        order = rng.permutation(len(points))
    train, test = order[:n_points], order[n_points:]
    spread, varies = points[train].std(axis=0), np.ptp(points[train], axis=0) > 0.0
    centre, scale = points[train].mean(axis=0), np.where(varies, spread, 1.0)
    known = np.arange(n_points) < n_labeled
    signed = np.result_type(classes, np.int8) if classes.dtype.kind in "biuf" else object
    return Sampling(
        name,
        (points[train] - centre) / scale,
        np.where(known, classes[train].astype(signed), -1),
        (points[test] - centre) / scale,
        classes[test],
    )


def load_sampling(
    name: str,
    n_points: int = 100,
    n_labeled: int = 10,
    seed: int = 0,
    data_dir: str | os.PathLike[str] | None = None,
) -> Sampling:
    """``sample(name, *load(name, data_dir), ...)``."""
    return sample(name, *load(name, data_dir), n_points, n_labeled, seed)


def _from_sklearn(loader: str) -> Callable[[], tuple[Any, Any]]:
    def read() -> tuple[Any, Any]:
        from sklearn import datasets

        X, y = getattr(datasets, loader)(return_X_y=True)
        return np.asarray(X, dtype=np.float64), np.asarray(y)

    return read


def _balance() -> tuple[Any, Any]:
    """Balance scale by enumeration: all of {1..5}^4; 0 balanced, 1 tips left, 2 tips right."""
    X = np.array(list(product(range(1, 6), repeat=4)), dtype=np.float64)
    tip = X[:, 0] * X[:, 1] - X[:, 2] * X[:, 3]
    return X, np.select([tip > 0, tip < 0], [1, 2], 0)


def _read_csv(name: str, data_dir: str | os.PathLike[str] | None) -> tuple[Any, Any]:
    folder = data_dir if data_dir is not None else os.environ.get(DATA_VARIABLE)
    path = Path(folder or ".") / f"{name}.csv"
    if folder is None or not path.is_file():
        raise FileNotFoundError(
            f"{name} is not embedded and {path} is not there: put {name}.csv (a header, the "
            f"features, a column `label`) into a folder and name it by data_dir or {DATA_VARIABLE}."
        )
    with path.open(newline="", encoding="utf-8-sig") as file:
        header, *rows = list(csv.reader(file))
    if header[-1] != "label":
        raise ValueError(f"The last column of {path} is {header[-1]!r}; it must be `label`.")
    labels = [row[-1] for row in rows]
    X = np.array([row[:-1] for row in rows], dtype=np.float64)
    return X, np.unique(labels, return_inverse=True)[1]


_EMBEDDED: dict[str, Callable[[], tuple[Any, Any]]] = {
    "iris": _from_sklearn("load_iris"),
    "wine": _from_sklearn("load_wine"),
    "breast_cancer": _from_sklearn("load_breast_cancer"),
    "digits": _from_sklearn("load_digits"),
    "balance": _balance,
}
_FILES = ("ionosphere", "diabetes")
