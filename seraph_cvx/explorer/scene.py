"""Points in the plane with a few class labels, and what a click changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..numerics.checks import UNKNOWN, FloatArray, IntArray

SIDE = 400.0
"""Side of the square in which the plane is drawn; clicks come in its units."""

REACH = 10.0
"""A click hits a point that is nearer than this."""

MOST_POINTS = 200
"""Clicks add no more points than this, so that the page stays quick."""

N_CLASSES = 3
DECIMALS = 3


@dataclass(frozen=True)
class Scene:
    """Points of the plane with class labels (-1 = unknown), and the square window that shows them.

    Attributes
    ----------
    points : tuple of (float, float)
    labels : tuple of int
    center : (float, float)
        The center of the window.
    width : float
        The width of the window.
    chosen : int
        The point that the ellipse is drawn around.
    classes : tuple of int
        The true classes of the first points, which only judge the metric; points that were added
        have none.

    Examples
    --------
    >>> scene = Scene(((0.0, 0.0), (1.0, 1.0)), (-1, 0), (0.5, 0.5), 2.0)
    >>> scene.answer({"x": 100.0, "y": 300.0}).labels
    (0, 0)
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
        classes = self.classes[:point] + self.classes[point + 1 :]
        chosen = max(0, point - 1)
        return replace(self, points=points, labels=labels, classes=classes, chosen=chosen)

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


def _number(value: Any) -> float | None:
    fits = isinstance(value, int | float) and bool(np.isfinite(value))
    return float(value) if fits else None
