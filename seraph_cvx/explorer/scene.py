"""Points in the plane with a few class labels: what a click changes, and how 1-NN classifies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

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


@dataclass(frozen=True)
class Scene:
    """Points of the plane with class labels (-1 = unknown), and the square window that shows them.

    The ellipse is drawn around the point `chosen`. `classes` are the true classes of the first
    points, which only judge the metric; points that were added have none.
    """

    points: tuple[tuple[float, float], ...] = ()
    labels: tuple[int, ...] = ()
    center: tuple[float, float] = (0.0, 0.0)
    width: float = 6.0
    chosen: int = 0
    classes: tuple[int, ...] = ()

    @property
    def X(self) -> FloatArray:
        """The points as an (n, 2) array."""
        return np.array(self.points, dtype=np.float64).reshape(-1, 2)

    @property
    def y(self) -> IntArray:
        """The labels as an (n,) array, -1 = unknown."""
        return np.array(self.labels, dtype=np.int64)

    @property
    def truth(self) -> IntArray:
        """The true classes as an (n,) array, -1 for points that have none."""
        missing = (UNKNOWN,) * (len(self.points) - len(self.classes))
        return np.array((*self.classes, *missing), dtype=np.int64)

    def to_screen(self, X: FloatArray) -> FloatArray:
        """Map points of the plane to the screen, where the second coordinate points down."""
        z = (X - np.array(self.center)) / self.width
        return np.asarray(SIDE * (0.5 + z * [1.0, -1.0]))

    def to_plane(self, x: float, y: float) -> tuple[float, float]:
        """Map a position on the screen to the plane, rounded."""
        u, v = x / SIDE - 0.5, 0.5 - y / SIDE
        across, up = self.center[0] + self.width * u, self.center[1] + self.width * v
        return round(across, DECIMALS), round(up, DECIMALS)

    def answer(self, event: Mapping[str, Any]) -> Scene:
        """The scene after a click or a keystroke.

        A click on a point changes its label, unknown -> 0 -> 1 -> 2 -> unknown, or with shift
        removes the point; any other click adds one. The arrows choose a point, Enter and the space
        bar are a click on it, Delete removes it. Other keys change nothing.
        """
        n = len(self.points)
        if "key" in event:
            key = str(event["key"])
            if n and key in KEY_STEPS:
                return replace(self, chosen=(self.chosen + KEY_STEPS[key]) % n)
            if n and key in ("Enter", " "):
                return self.cycled(self.chosen)
            return self.without(self.chosen) if n and key in ("Delete", "Backspace") else self
        x, y, shift = (event.get(part, "") for part in ("x", "y", "shift"))
        if not (_is_on_screen(x) and _is_on_screen(y)):
            return self
        distances = np.linalg.norm(self.to_screen(self.X) - np.array([x, y], dtype=float), axis=1)
        if np.min(distances, initial=np.inf) <= CLICK_RADIUS:
            hit = int(np.argmin(distances))
            return self.without(hit) if shift else self.cycled(hit)
        if shift or n >= MOST_POINTS:
            return self
        points = (*self.points, self.to_plane(float(x), float(y)))
        return replace(self, points=points, labels=(*self.labels, UNKNOWN), chosen=n)

    def cycled(self, point: int) -> Scene:
        """The scene with the next label for `point`, which is chosen."""
        labels = list(self.labels)
        labels[point] = labels[point] + 1 if labels[point] + 1 < N_CLASSES else UNKNOWN
        return replace(self, labels=tuple(labels), chosen=point)

    def without(self, point: int) -> Scene:
        """The scene without `point`."""
        parts: dict[str, Any] = {
            name: getattr(self, name)[:point] + getattr(self, name)[point + 1 :]
            for name in ("points", "labels", "classes")
        }
        return replace(self, **parts, chosen=max(0, point - 1))

    def unlabeled(self) -> Scene:
        """The scene with every label forgotten."""
        return replace(self, labels=(UNKNOWN,) * len(self.points))


def _is_on_screen(value: Any) -> bool:
    return isinstance(value, int | float) and 0.0 <= value <= SIDE


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
    elif name in DATA_SETS:  # the first two principal components of standardized points
        data = DATA_SETS[name]
        sampling = sample(data, *load(data), n_points=N_POINTS, n_labeled=N_POINTS, seed=seed)
        directions = np.linalg.eigh(sampling.X.T @ sampling.X)[1][:, [-1, -2]]
        X = sampling.X @ (directions * np.where(directions.sum(axis=0) < 0.0, -1.0, 1.0))
        classes = np.asarray(sampling.y, dtype=np.int64)
    else:
        raise ValueError(f"There is no scene {name!r}; the known ones are {', '.join(SCENES)}.")
    labels = np.full(len(X), UNKNOWN)
    for k in np.unique(classes):
        labels[np.flatnonzero(classes == k)[:4]] = k
    low, high = X.min(axis=0), X.max(axis=0)
    across, up = ((low + high) / 2.0).tolist()
    return Scene(
        tuple((round(a, DECIMALS), round(b, DECIMALS)) for a, b in X.tolist()),
        tuple(labels.tolist()),
        (across, up),
        1.2 * float(np.max(high - low)),
        int(np.argmax(labels >= 0)),
        tuple(classes.tolist()),
    )


# The nearest labeled point under a metric


@dataclass(frozen=True)
class NeighborError:
    """The points without a label whose nearest labeled point is of another class."""

    wrong: tuple[int, ...]
    n_judged: int

    @property
    def share(self) -> float:
        """The share of the judged points that are wrong."""
        return len(self.wrong) / self.n_judged

    def __str__(self) -> str:
        return f"{self.share:.0%} ({len(self.wrong)} of {self.n_judged})"


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
