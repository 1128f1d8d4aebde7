"""The nearest labeled point under a metric: the class it gives, and how often that is wrong."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..numerics.checks import FloatArray, IntArray
from ..numerics.psd_cone import factor
from .scene import Scene


@dataclass(frozen=True)
class NeighborError:
    """The 1-NN error on the points without a label.

    Attributes
    ----------
    wrong : tuple of int
        The points whose nearest labeled point is of another class.
    n_judged : int
        Points without a label whose true class is known.
    """

    wrong: tuple[int, ...]
    n_judged: int

    @property
    def share(self) -> float:
        """The share of the judged points that are wrong."""
        return len(self.wrong) / self.n_judged

    def __str__(self) -> str:
        return f"{self.share:.0%} ({len(self.wrong)} of {self.n_judged})"


def nearest_labels(scene: Scene, metric: FloatArray, places: FloatArray) -> IntArray:
    """The label of the nearest labeled point, for each of (k, 2) places of the plane.

    Examples
    --------
    >>> scene = Scene(((0.0, 0.0), (1.0, 5.0)), (0, 1))
    >>> places = np.array([[0.9, 0.0]])
    >>> nearest_labels(scene, np.eye(2), places), nearest_labels(scene, np.diag([1, 0]), places)
    (array([0]), array([1]))
    """
    known = scene.y >= 0
    L = factor(metric)
    Z, labeled = (places - scene.center) @ L.T, (scene.X[known] - scene.center) @ L.T
    distances = np.sum(labeled**2, axis=1) - 2.0 * Z @ labeled.T  # less |z|^2, the same for all
    return np.asarray(scene.y[known][np.argmin(distances, axis=1)])


def neighbor_error(scene: Scene, metric: FloatArray) -> NeighborError | None:
    """The 1-NN error under a metric; None where no point can be judged, or all distances are 0.

    Examples
    --------
    >>> from seraph_cvx.explorer.point_sets import scene_named
    >>> print(neighbor_error(scene_named("stripes"), np.eye(2)))
    17% (15 of 88)
    """
    judged = np.flatnonzero((scene.y < 0) & (scene.truth >= 0))
    if not len(judged) or not np.any(scene.y >= 0) or not metric.any():
        return None
    found = nearest_labels(scene, metric, scene.X[judged])
    wrong = judged[found != scene.truth[judged]]
    return NeighborError(tuple(wrong.tolist()), len(judged))
