"""Points in the plane with a few class labels: a choice of sets, and what a click changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from ..datasets import load, sample
from ..numerics.checks import UNKNOWN, FloatArray, IntArray

SIDE = 400.0
"""Side of the square in which the plane is drawn; clicks come in its units."""

REACH = 10.0
"""A click hits a point that is nearer than this."""

MOST_POINTS = 200
"""Clicks add no more points than this, so that the page stays quick."""

N_CLASSES = 3
N_POINTS = 100
DRAWN = "draw your own"
DECIMALS = 3


@dataclass(frozen=True)
class Scene:
    """Points of the plane with class labels (-1 = unknown), and the square window that shows them.

    Attributes
    ----------
    points : tuple of (float, float)
    labels : tuple of int
    centre : (float, float)
        The centre of the window.
    width : float
        The width of the window.
    chosen : int
        The point that the ellipse is drawn around.

    Examples
    --------
    >>> scene = Scene(((0.0, 0.0), (1.0, 1.0)), (-1, 0), (0.5, 0.5), 2.0)
    >>> scene.answer({"x": 100.0, "y": 300.0}).labels
    (0, 0)
    """

    points: tuple[tuple[float, float], ...] = ()
    labels: tuple[int, ...] = ()
    centre: tuple[float, float] = (0.0, 0.0)
    width: float = 6.0
    chosen: int = 0

    @property
    def X(self) -> FloatArray:
        """The points as an (n, 2) array."""
        return np.array(self.points, dtype=np.float64).reshape(-1, 2)

    @property
    def y(self) -> IntArray:
        """The labels as an (n,) array, -1 = unknown."""
        return np.array(self.labels, dtype=np.int64)

    def to_screen(self, X: FloatArray) -> FloatArray:
        """Map points of the plane to the screen, where the second coordinate points down."""
        z = (X - np.array(self.centre)) / self.width
        return np.asarray(SIDE * (0.5 + z * [1.0, -1.0]))

    def to_plane(self, x: float, y: float) -> tuple[float, float]:
        """Map a position on the screen to the plane, rounded."""
        u, v = x / SIDE - 0.5, 0.5 - y / SIDE
        across, up = self.centre[0] + self.width * u, self.centre[1] + self.width * v
        return round(across, DECIMALS), round(up, DECIMALS)

    def answer(self, event: Mapping[str, Any]) -> Scene:
        """The scene after a click or a keystroke.

        A click on a point changes its label, unknown -> 0 -> 1 -> 2 -> unknown, or with shift
        removes the point; any other click adds one. The arrows choose a point, Enter and the space
        bar are a click on it, Delete removes it. Other keys change nothing.
        """
        if "key" in event:
            return self._answer_key(str(event["key"]))
        x, y = _number(event.get("x")), _number(event.get("y"))
        if x is None or y is None or not (0.0 <= x <= SIDE and 0.0 <= y <= SIDE):
            return self
        hit = self._point_at(x, y)
        if hit is not None:
            return self.without(hit) if event.get("shift") else self.cycled(hit)
        if event.get("shift") or len(self.points) >= MOST_POINTS:
            return self
        n = len(self.points)
        points = (*self.points, self.to_plane(x, y))
        return replace(self, points=points, labels=(*self.labels, UNKNOWN), chosen=n)

    def cycled(self, point: int) -> Scene:
        """The scene with the next label for `point`, which is chosen."""
        labels = list(self.labels)
        labels[point] = labels[point] + 1 if labels[point] + 1 < N_CLASSES else UNKNOWN
        return replace(self, labels=tuple(labels), chosen=point)

    def without(self, point: int) -> Scene:
        """The scene without `point`."""
        points = self.points[:point] + self.points[point + 1 :]
        labels = self.labels[:point] + self.labels[point + 1 :]
        return replace(self, points=points, labels=labels, chosen=max(0, point - 1))

    def unlabeled(self) -> Scene:
        """The scene with every label forgotten."""
        return replace(self, labels=(UNKNOWN,) * len(self.points))

    def _answer_key(self, key: str) -> Scene:
        n = len(self.points)
        if n == 0:
            return self
        moves = {"ArrowRight": 1, "ArrowDown": 1, "ArrowLeft": -1, "ArrowUp": -1}
        if key in moves:
            return replace(self, chosen=(self.chosen + moves[key]) % n)
        if key in ("Enter", " "):
            return self.cycled(self.chosen)
        return self.without(self.chosen) if key in ("Delete", "Backspace") else self

    def _point_at(self, x: float, y: float) -> int | None:
        if not self.points:
            return None
        distances = np.linalg.norm(self.to_screen(self.X) - [x, y], axis=1)
        nearest = int(np.argmin(distances))
        return nearest if distances[nearest] <= REACH else None


@cache
def scene_named(name: str) -> Scene:
    """Look up one of :data:`SCENES`: 100 points, four labels per class, coordinates rounded.

    Examples
    --------
    >>> scene = scene_named("stripes")
    >>> len(scene.points), sum(label >= 0 for label in scene.labels)
    (100, 12)
    """
    if name not in SCENES:
        raise ValueError(f"There is no scene {name!r}; the known ones are {', '.join(SCENES)}.")
    return SCENES[name]()


def _number(value: Any) -> float | None:
    fits = isinstance(value, int | float) and bool(np.isfinite(value))
    return float(value) if fits else None


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
    return Scene(points, labels, (float(across), float(up)), width, chosen)


def _generated(make: Callable[[np.random.Generator, IntArray], FloatArray], k: int) -> Scene:
    """Generate 100 points, their classes 0, ..., k - 1 in turns."""
    classes = np.arange(N_POINTS) % k
    return _seen(make(np.random.default_rng(0), classes), classes)


def _moons(rng: np.random.Generator, c: IntArray) -> FloatArray:
    angle = np.pi * rng.random(len(c))
    side = np.where(c == 0, 1.0, -1.0)
    X = np.column_stack([side * np.cos(angle) + 0.5 * (1 - side), side * np.sin(angle)])
    X[:, 1] += 0.25 * (1.0 - side)
    return np.asarray(X + 0.09 * rng.normal(size=X.shape))


def _gaussians(rng: np.random.Generator, c: IntArray) -> FloatArray:
    angle = 2.0 * np.pi * c / 3.0 + 0.4
    centres = 1.6 * np.column_stack([np.cos(angle), np.sin(angle)])
    return np.asarray(centres + rng.normal(size=centres.shape) * [0.9, 0.45])


def _rings(rng: np.random.Generator, c: IntArray) -> FloatArray:
    angle = 2.0 * np.pi * rng.random(len(c))
    radius = 0.7 + 1.1 * c + 0.1 * rng.normal(size=len(c))
    return np.asarray(radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)]))


def _stripes(rng: np.random.Generator, c: IntArray) -> FloatArray:
    along = rng.uniform(-2.5, 2.5, len(c))
    across = 0.9 * (c - 1.0) + 0.15 * rng.normal(size=len(c))
    turn = np.array([[1.0, 1.0], [-1.0, 1.0]]) / np.sqrt(2.0)
    return np.asarray(np.column_stack([along, across]) @ turn)


def _principal(name: str) -> Scene:
    """The first two principal components of 100 standardized points of a data set."""
    sampling = sample(name, *load(name), n_points=N_POINTS, n_labeled=N_POINTS)
    directions = np.linalg.eigh(sampling.X.T @ sampling.X)[1][:, [-1, -2]]
    directions = directions * np.where(directions.sum(axis=0) < 0.0, -1.0, 1.0)
    return _seen(sampling.X @ directions, np.asarray(sampling.y, dtype=np.int64))


SCENES: dict[str, Callable[[], Scene]] = {
    "two moons": lambda: _generated(_moons, 2),
    "Gaussians": lambda: _generated(_gaussians, 3),
    "rings": lambda: _generated(_rings, 2),
    "stripes": lambda: _generated(_stripes, 3),
    "iris (2 components)": lambda: _principal("iris"),
    "wine (2 components)": lambda: _principal("wine"),
    DRAWN: Scene,
}
"""The scenes that the page offers, by name."""
