"""The sets of points that the page offers, each drawn with a seed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from ..datasets import load, sample
from ..numerics.checks import UNKNOWN, FloatArray, IntArray
from .scene import DECIMALS, Scene

N_POINTS = 100
FIRST_SCENE = "stripes"
DRAWN = "draw your own"


@cache
def scene_named(name: str, seed: int = 0) -> Scene:
    """Draw one of :data:`SCENES`: 100 points, four labels per class, coordinates rounded.

    Examples
    --------
    >>> scene = scene_named("stripes")
    >>> len(scene.points), sum(label >= 0 for label in scene.labels)
    (100, 12)
    >>> scene_named("stripes", seed=1) == scene
    False
    """
    if name not in SCENES:
        raise ValueError(f"There is no scene {name!r}; the known ones are {', '.join(SCENES)}.")
    return SCENES[name](seed)


def _seen(X: FloatArray, classes: IntArray) -> Scene:
    """The scene of points X, with a margin, the first four labels of each class known."""
    known = np.concatenate([np.flatnonzero(classes == k)[:4] for k in np.unique(classes)])
    y = np.full(len(X), UNKNOWN)
    y[known] = classes[known]
    low, high = X.min(axis=0), X.max(axis=0)
    across, up = (low + high) / 2.0
    points = tuple((round(a, DECIMALS), round(b, DECIMALS)) for a, b in X.tolist())
    labels = tuple(y.tolist())
    chosen = next(k for k, label in enumerate(labels) if label >= 0)
    width = 1.2 * float(np.max(high - low))
    return Scene(points, labels, (float(across), float(up)), width, chosen, tuple(classes.tolist()))


def _generated(
    make: Callable[[np.random.Generator, IntArray], FloatArray], k: int, seed: int
) -> Scene:
    """Generate 100 points, their classes 0, ..., k - 1 in turns."""
    classes = np.arange(N_POINTS) % k
    return _seen(make(np.random.default_rng(seed), classes), classes)


def _moons(rng: np.random.Generator, c: IntArray) -> FloatArray:
    angle = np.pi * rng.random(len(c))
    side = np.where(c == 0, 1.0, -1.0)
    X = np.column_stack([side * np.cos(angle) + 0.5 * (1 - side), side * np.sin(angle)])
    X[:, 1] += 0.25 * (1.0 - side)
    return np.asarray(X + 0.09 * rng.normal(size=X.shape))


def _gaussians(rng: np.random.Generator, c: IntArray) -> FloatArray:
    angle = 2.0 * np.pi * c / 3.0 + 0.4
    centers = 1.6 * np.column_stack([np.cos(angle), np.sin(angle)])
    return np.asarray(centers + rng.normal(size=centers.shape) * [0.9, 0.45])


def _rings(rng: np.random.Generator, c: IntArray) -> FloatArray:
    angle = 2.0 * np.pi * rng.random(len(c))
    radius = 0.7 + 1.1 * c + 0.1 * rng.normal(size=len(c))
    return np.asarray(radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)]))


def _stripes(rng: np.random.Generator, c: IntArray) -> FloatArray:
    along = rng.uniform(-2.5, 2.5, len(c))
    across = 0.9 * (c - 1.0) + 0.15 * rng.normal(size=len(c))
    turn = np.array([[1.0, 1.0], [-1.0, 1.0]]) / np.sqrt(2.0)
    return np.asarray(np.column_stack([along, across]) @ turn)


def _principal(name: str, seed: int) -> Scene:
    """The first two principal components of 100 standardized points of a data set."""
    sampling = sample(name, *load(name), n_points=N_POINTS, n_labeled=N_POINTS, seed=seed)
    directions = np.linalg.eigh(sampling.X.T @ sampling.X)[1][:, [-1, -2]]
    directions = directions * np.where(directions.sum(axis=0) < 0.0, -1.0, 1.0)
    return _seen(sampling.X @ directions, np.asarray(sampling.y, dtype=np.int64))


SCENES: dict[str, Callable[[int], Scene]] = {
    "stripes": lambda seed: _generated(_stripes, 3, seed),
    "Gaussians": lambda seed: _generated(_gaussians, 3, seed),
    "two moons": lambda seed: _generated(_moons, 2, seed),
    "rings": lambda seed: _generated(_rings, 2, seed),
    "iris (2 components)": lambda seed: _principal("iris", seed),
    "wine (2 components)": lambda seed: _principal("wine", seed),
    DRAWN: lambda seed: Scene(),
}
"""The scenes that the page offers, by name: how to draw each with a seed."""
