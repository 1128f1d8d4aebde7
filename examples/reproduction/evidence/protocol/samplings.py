"""How Section 5.1 turns a data set into samplings, and a metric into an error.

A sampling is n training points of which the first few show their class, and test points. What the
paper leaves open is a parameter: how features are scaled, how the labeled points are drawn.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from seraph_cvx import datasets
from seraph_cvx.datasets import Sampling
from seraph_cvx.numerics.checks import UNKNOWN, FloatArray, IntArray

from .tasks import Task

SCALINGS = ("unit", "pixels", "standard", "none")
"""Scalings: each feature to [0, 1]; one factor for all; mean 0 and variance 1; unchanged."""

WHITE = 255.0
"""The value of a white pixel."""


def load_task(
    task: Task, scaling: str | None = None, data_dir: str | os.PathLike[str] | None = None
) -> tuple[FloatArray, NDArray[Any]]:
    """Load X and y of a task: the points of its classes, features scaled."""
    X, y = datasets.load(task.data, data_dir)
    y = np.asarray(y)
    if task.digits:
        chosen = np.isin(y, task.digits)
        X, y = X[chosen], y[chosen]
    X = np.asarray(X, dtype=np.float64)
    if X.shape[1] != task.n_features:
        raise ValueError(
            f"{task.data} has {X.shape[1]} features where Table 1 has {task.n_features}: it is "
            "not the data set of the paper."
        )
    return scale_features(X, task.scaling if scaling is None else scaling, bool(task.digits)), y


def scale_features(X: FloatArray, scaling: str, is_image: bool = False) -> FloatArray:
    """Scale the features as a protocol says."""
    if scaling == "unit":
        shift, spread = X.min(axis=0), np.ptp(X, axis=0)
    elif scaling == "standard":
        shift, spread = X.mean(axis=0), np.where(np.ptp(X, axis=0) > 0.0, X.std(axis=0), 0.0)
    elif scaling == "pixels":
        shift, spread = np.zeros(1), np.full(1, WHITE if is_image else np.max(np.abs(X)))
    elif scaling == "none":
        return X
    else:
        raise ValueError(f"scaling={scaling!r} is not known: use one of {', '.join(SCALINGS)}.")
    return np.asarray((X - shift) / np.where(spread > 0.0, spread, 1.0))


def draw_sampling(
    task: Task, X: FloatArray, y: NDArray[Any], seed: int, variant: str | None = None
) -> Sampling:
    """Draw training points, the first few with their class, and test points (Section 5.1)."""
    labeled, unlabeled, test = draw_indices(task, y, np.random.default_rng(seed), variant)
    train = np.concatenate([labeled, unlabeled])
    known = np.arange(len(train)) < len(labeled)
    classes = np.where(known, y[train].astype(np.int64), UNKNOWN)
    return Sampling(task.name, X[train], classes, X[test], y[test].astype(np.int64))


def draw_indices(
    task: Task, y: NDArray[Any], rng: np.random.Generator, variant: str | None = None
) -> tuple[IntArray, IntArray, IntArray]:
    """Draw the rows of the labeled, unlabeled and test points; see :func:`draw_sampling`."""
    labeled, rest = draw_labeled(task, y, rng, variant)
    n_rest = task.n_training - task.n_labels
    if not task.is_stratified:
        return labeled, rest[:n_rest], rest[n_rest : n_rest + task.n_test]
    each = task.n_training // task.n_classes
    wanted = {c: each - int(np.sum(y[labeled] == c)) for c in np.unique(y)}
    unlabeled = rng.permutation(_take_of_each(y, rest, wanted))
    rest = rest[~np.isin(rest, unlabeled)]
    tested = dict.fromkeys(wanted, task.n_test // task.n_classes)
    return labeled, unlabeled, _take_of_each(y, rest, tested)


def draw_labeled(
    task: Task, y: NDArray[Any], rng: np.random.Generator, variant: str | None = None
) -> tuple[IntArray, IntArray]:
    """Draw the rows of the labeled points, and shuffle the others; see :func:`draw_sampling`."""
    if variant is None:
        variant = "balanced" if task.is_stratified else "trimmed-two-classes"
    if variant not in VARIANTS:
        raise ValueError(f"variant={variant!r} is not known: use one of {', '.join(VARIANTS)}.")
    order = rng.permutation(len(y))
    if variant.startswith(TRIMMED) and not task.is_stratified:
        order = _trim(task, y, order, rng)
    labeled = VARIANTS[variant](task, y, order, rng)
    return labeled, order[~np.isin(order, labeled)]


def nearest_neighbor_error(sampling: Sampling, components: FloatArray) -> float:
    """The 1-NN error: the share (in %) of test points whose nearest labeled point misleads."""
    known = sampling.labeled
    distances = cdist(sampling.X_test @ components.T, sampling.X[known] @ components.T)
    nearest = sampling.y[known][np.argmin(distances, axis=1)]
    return 100.0 * float(np.mean(nearest != sampling.y_test))


Chooser = Callable[[Task, NDArray[Any], IntArray, np.random.Generator], IntArray]


def _every_class(
    task: Task, y: NDArray[Any], order: IntArray, rng: np.random.Generator
) -> IntArray:
    return _until(len(np.unique(y)), task, y, order, rng)


def _two_classes(
    task: Task, y: NDArray[Any], order: IntArray, rng: np.random.Generator
) -> IntArray:
    return _until(2, task, y, order, rng)


def _until(
    n_classes: int, task: Task, y: NDArray[Any], order: IntArray, rng: np.random.Generator
) -> IntArray:
    """Shuffle until the first points are of `n_classes` classes or more, and take these."""
    while len(np.unique(y[order[: task.n_labels]])) < n_classes:
        order = rng.permutation(order)
    return order[: task.n_labels]


def _at_random(task: Task, y: NDArray[Any], order: IntArray, rng: np.random.Generator) -> IntArray:
    return order[: task.n_labels]


def _one_each(task: Task, y: NDArray[Any], order: IntArray, rng: np.random.Generator) -> IntArray:
    first = _take_of_each(y, order, dict.fromkeys(np.unique(y), 1))
    others = order[~np.isin(order, first)]
    return np.concatenate([first, others[: task.n_labels - len(first)]])


def _balanced(task: Task, y: NDArray[Any], order: IntArray, rng: np.random.Generator) -> IntArray:
    classes = np.unique(y)
    return _take_of_each(y, order, _shared(task.n_labels, classes, np.ones(len(classes))))


def _proportional(
    task: Task, y: NDArray[Any], order: IntArray, rng: np.random.Generator
) -> IntArray:
    classes, counts = np.unique(y, return_counts=True)
    return _take_of_each(y, order, _shared(task.n_labels, classes, counts))


TRIMMED = "trimmed-"

VARIANTS: dict[str, Chooser] = {
    "every-class": _every_class,
    "random": _at_random,
    "one-each": _one_each,
    "balanced": _balanced,
    "proportional": _proportional,
    f"{TRIMMED}every-class": _every_class,
    f"{TRIMMED}random": _at_random,
    f"{TRIMMED}two-classes": _two_classes,
}
"""How the labeled points are drawn; see :func:`draw_sampling`."""


def _trim(task: Task, y: NDArray[Any], order: IntArray, rng: np.random.Generator) -> IntArray:
    """Drop the points that Table 1 leaves out, equally many of each class, and shuffle the rest."""
    surplus = len(y) - task.n_training - task.n_test
    classes, counts = np.unique(y, return_counts=True)
    kept = dict(zip(classes.tolist(), (counts - surplus // len(classes)).tolist(), strict=True))
    return rng.permutation(_take_of_each(y, order, kept))


def _shared(total: int, classes: NDArray[Any], weights: NDArray[Any]) -> dict[Any, int]:
    """Divide `total` by weight, at least one for each class; the largest remainders round up."""
    exact = total * weights / weights.sum()
    whole = np.maximum(np.floor(exact).astype(int), 1)
    left = total - int(whole.sum())
    for c in np.argsort(whole - exact, kind="stable")[: max(left, 0)]:
        whole[c] += 1
    return dict(zip(classes.tolist(), whole.tolist(), strict=True))


def _take_of_each(y: NDArray[Any], order: IntArray, wanted: dict[Any, int]) -> IntArray:
    """Take the wanted number of points of each class, the first in the given order."""
    chosen = [order[y[order] == c][:how_many] for c, how_many in wanted.items()]
    return np.concatenate(chosen)
