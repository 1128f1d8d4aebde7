"""Points in the plane with a few class labels: what a click changes, and how 1-NN classifies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..datasets import load, sample
from ..numerics.checks import UNKNOWN, FloatArray, IntArray
from ..numerics.psd_cone import factor

SIDE = 400.0
"""Side of the square in which the plane is drawn; clicks come in its units."""
CLICK_RADIUS = 10.0
"""A click hits a point that is nearer than this."""
MOST_POINTS = 200
"""Clicks add no more points than this, so that the page stays quick."""
N_CLASSES = 3
DECIMALS = 3
N_POINTS = 100
FIRST_SCENE = "stripes"
DRAWN = "draw your own"
KEY_STEPS = {"ArrowRight": 1, "ArrowDown": 1, "ArrowLeft": -1, "ArrowUp": -1}


class Point(NamedTuple):
    """A point of the plane, its label, its true class, which only judges; -1 = unknown.

    The number is that of the scene as it was drawn; a point that was added has none, -1.
    """

    across: float
    up: float
    label: int = UNKNOWN
    true_class: int = UNKNOWN
    number: int = -1


@dataclass(frozen=True)
class Scene:
    """Points, the square window that shows them, and the number of the one that is chosen."""

    points: tuple[Point, ...] = ()
    center: tuple[float, float] = (0.0, 0.0)
    width: float = 6.0
    chosen: int = 0

    @property
    def X(self) -> FloatArray:
        """The positions of the points as an (n, 2) array."""
        return np.array([point[:2] for point in self.points], dtype=np.float64).reshape(-1, 2)

    @property
    def y(self) -> IntArray:
        """The labels as an (n,) array, -1 = unknown."""
        return np.array([point.label for point in self.points], dtype=np.int64)

    @property
    def truth(self) -> IntArray:
        """The true classes as an (n,) array, -1 for points that have none."""
        return np.array([point.true_class for point in self.points], dtype=np.int64)

    def to_screen(self, X: FloatArray) -> FloatArray:
        """Map points of the plane to the screen, where the second coordinate points down."""
        z = (X - np.array(self.center)) / self.width
        return np.asarray(SIDE * (0.5 + z * [1.0, -1.0]))

    def to_plane(self, positions: FloatArray) -> FloatArray:
        """Map positions on the screen to the plane."""
        z = (positions / SIDE - 0.5) * [1.0, -1.0]
        return np.asarray(self.center + self.width * z)

    def showing(self, X: FloatArray, margin: float) -> Scene:
        """The scene in the smallest window that shows these positions, times a margin."""
        low, high = X.min(axis=0), X.max(axis=0)
        across, up = ((low + high) / 2.0).tolist()
        return replace(self, center=(across, up), width=margin * float(np.max(high - low)))

    def answer(self, event: Mapping[str, Any]) -> Scene:
        """The scene after a click or a keystroke.

        A click on a point changes its label, unknown -> 0 -> 1 -> 2 -> unknown, or with shift
        removes the point; any other click adds one. The arrows choose a point, Enter and the space
        bar are a click on it, Delete removes it. Other keys change nothing.
        """
        n = len(self.points)
        if "key" in event:
            key = str(event["key"]) if n else ""
            if key in KEY_STEPS:
                return replace(self, chosen=(self.chosen + KEY_STEPS[key]) % n)
            if key in ("Enter", " "):
                return self.cycled(self.chosen)
            return self.without(self.chosen) if key in ("Delete", "Backspace") else self
        click, shift = (event.get("x"), event.get("y")), event.get("shift")
        if not all(isinstance(c, int | float) and 0.0 <= c <= SIDE for c in click):
            return self
        position = np.array(click, dtype=np.float64)
        distances = np.linalg.norm(self.to_screen(self.X) - position, axis=1)
        hit = int(np.argmin([*distances, CLICK_RADIUS]))  # n: none
        if hit < n:
            return self.without(hit) if shift else self.cycled(hit)
        if shift or n >= MOST_POINTS:
            return self
        new = Point(*np.round(self.to_plane(position), DECIMALS).tolist())
        return replace(self, points=(*self.points, new), chosen=n)

    def cycled(self, number: int) -> Scene:
        """The scene with the next label for a point, which is chosen."""
        points = list(self.points)
        label = points[number].label + 1
        points[number] = points[number]._replace(label=label if label < N_CLASSES else UNKNOWN)
        return replace(self, points=tuple(points), chosen=number)

    def without(self, number: int) -> Scene:
        """The scene without a point."""
        points = self.points[:number] + self.points[number + 1 :]
        return replace(self, points=points, chosen=max(0, number - 1))

    def unlabeled(self) -> Scene:
        """The scene with every label forgotten."""
        return replace(self, points=tuple(p._replace(label=UNKNOWN) for p in self.points))


# The sets of points that the page offers, each drawn with a seed


def _stripes(rng: np.random.Generator, c: IntArray) -> FloatArray:
    along = rng.uniform(-2.5, 2.5, len(c))
    across = 0.9 * (c - 1.0) + 0.15 * rng.normal(size=len(c))
    turn = np.array([[1.0, 1.0], [-1.0, 1.0]]) / np.sqrt(2.0)
    return np.asarray(np.column_stack([along, across]) @ turn)


def _gaussians(rng: np.random.Generator, c: IntArray) -> FloatArray:
    centers = 1.6 * _on_circle(2.0 * np.pi * c / 3.0 + 0.4)
    return np.asarray(centers + rng.normal(size=centers.shape) * [0.9, 0.45])


def _moons(rng: np.random.Generator, c: IntArray) -> FloatArray:
    side = np.where(c == 0, 1.0, -1.0)[:, None]
    X = side * _on_circle(np.pi * rng.random(len(c))) + (1.0 - side) * [0.5, 0.25]
    return np.asarray(X + 0.09 * rng.normal(size=X.shape))


def _rings(rng: np.random.Generator, c: IntArray) -> FloatArray:
    directions = _on_circle(2.0 * np.pi * rng.random(len(c)))
    radius = 0.7 + 1.1 * c + 0.1 * rng.normal(size=len(c))
    return np.asarray(radius[:, None] * directions)


def _on_circle(angle: NDArray[Any]) -> FloatArray:
    return np.column_stack([np.cos(angle), np.sin(angle)])


GENERATED: dict[str, tuple[int, Callable[[np.random.Generator, IntArray], FloatArray]]] = {
    FIRST_SCENE: (3, _stripes),
    "Gaussians": (3, _gaussians),
    "two moons": (2, _moons),
    "rings": (2, _rings),
}
"""How many classes a generated scene has, and how its points are drawn."""
DATA_SETS = {"iris (2 components)": "iris", "wine (2 components)": "wine"}
SCENES = (*GENERATED, *DATA_SETS, DRAWN)
"""The names of the scenes that the page offers."""


@cache
def scene_named(name: str, seed: int = 0) -> Scene:
    """Draw one of :data:`SCENES`: 100 points, four labels per class, coordinates rounded."""
    if name == DRAWN:
        return Scene()
    if name in GENERATED:
        n_classes, generate = GENERATED[name]
        classes = np.arange(N_POINTS) % n_classes
        X = generate(np.random.default_rng(seed), classes)
    else:  # the first two principal components of standardized points
        data = DATA_SETS[name]
        sampling = sample(data, *load(data), n_points=N_POINTS, n_labeled=N_POINTS, seed=seed)
        directions = np.linalg.eigh(sampling.X.T @ sampling.X)[1][:, [-1, -2]]
        X = sampling.X @ (directions * np.where(directions.sum(axis=0) < 0.0, -1.0, 1.0))
        classes = np.asarray(sampling.y, dtype=np.int64)
    earlier = np.tri(len(X), k=-1) * (classes[:, None] == classes)
    labels = np.where(earlier.sum(axis=1) < 4, classes, UNKNOWN)
    columns = *np.round(X, DECIMALS).T.tolist(), labels.tolist(), classes.tolist(), range(len(X))
    return Scene(tuple(map(Point, *columns))).showing(X, margin=1.2)


# The nearest labeled point under a metric


class NeighborError(NamedTuple):
    """The points without a label whose nearest labeled point is of another class."""

    wrong: tuple[int, ...]
    n_judged: int

    def __str__(self) -> str:
        return f"{len(self.wrong) / self.n_judged:.0%} ({len(self.wrong)} of {self.n_judged})"


def nearest_labels(scene: Scene, metric: FloatArray, places: FloatArray) -> IntArray:
    """The label of the nearest labeled point, for each of (k, 2) places of the plane."""
    known = scene.y >= 0
    L = factor(metric)
    Z, labeled = (places - scene.center) @ L.T, (scene.X[known] - scene.center) @ L.T
    distances = np.sum(labeled**2, axis=1) - 2.0 * Z @ labeled.T  # less |z|^2, the same for all
    return np.asarray(scene.y[known][np.argmin(distances, axis=1)])


def neighbor_error(scene: Scene, metric: FloatArray) -> NeighborError | None:
    """The 1-NN error under a metric; None where no point can be judged, or all distances are 0."""
    judged = np.flatnonzero((scene.y < 0) & (scene.truth >= 0))
    if not len(judged) or not np.any(scene.y >= 0) or not metric.any():
        return None
    is_wrong = nearest_labels(scene, metric, scene.X[judged]) != scene.truth[judged]
    return NeighborError(tuple(judged[is_wrong].tolist()), len(judged))
