"""Draws of a data set: a hundred points, a few of each class with their label, standardized."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...numerics.checks import UNKNOWN, FloatArray, IntArray
from ..protocol.samplings import scale_features
from .data_sets import DataSet

POINTS = 100
"""Points of a draw, unless the labels are more than half of them; see :func:`draw_points`."""


@dataclass(frozen=True, eq=False)
class Draw:
    """Points, a few of them with their class, and the points that were not drawn.

    Attributes
    ----------
    name : str
        The data set.
    labels : int
        Labels a class that were asked for.
    number : int
        The seed.
    X : (n, m) array
        Standardized: each feature has mean 0 and variance 1.
    y : (n,) array of int
        The classes that a method is shown, -1 where it is not.
    truth : (n,) array of int
        The classes of all of them.
    X_rest, truth_rest : arrays
        The points that were not drawn, by the same shift and scale, and their classes.
    """

    name: str
    labels: int
    number: int
    X: FloatArray
    y: IntArray
    truth: IntArray
    X_rest: FloatArray
    truth_rest: IntArray


def draw_points(data: DataSet, labels: int, number: int) -> Draw:
    """Draw points at random, `labels` of each class with their label.

    Of a class at most half its points show their label, so that the other half can be judged. The
    draw has 100 points, or twice as many as labels where that is more, or the whole set where it
    is smaller. The labeled points are drawn first, then the others from what is left, whatever
    their class. Nothing but (labels, number) seeds a draw.

    Examples
    --------
    >>> from .data_sets import find_sets
    >>> (wine,) = find_sets(["wine"])
    >>> draw = draw_points(wine, labels=3, number=0)
    >>> draw.X.shape, np.bincount(draw.y[draw.y >= 0]).tolist(), len(draw.X_rest)
    ((100, 13), [3, 3, 3], 78)
    """
    if labels < 1:
        raise ValueError(f"labels={labels} a class: at least 1 is needed.")
    rng = np.random.default_rng([labels, number])
    order = rng.permutation(len(data.y))
    shown = []
    for c in range(int(data.y.max()) + 1):
        of_class = order[data.y[order] == c]
        shown.append(of_class[: min(labels, len(of_class) // 2)])
    labeled = np.concatenate(shown)
    others = order[~np.isin(order, labeled)]
    n = min(max(POINTS, 2 * len(labeled)), len(order))
    taken = rng.permutation(np.concatenate([labeled, others[: n - len(labeled)]]))
    rest = others[n - len(labeled) :]
    scaled, scaled_rest = _standardize(data.X[taken], data.X[rest])
    return Draw(
        name=data.name,
        labels=labels,
        number=number,
        X=scaled,
        y=np.where(np.isin(taken, labeled), data.y[taken], UNKNOWN),
        truth=data.y[taken],
        X_rest=scaled_rest,
        truth_rest=data.y[rest],
    )


def _standardize(X: FloatArray, rest: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Scale X to mean 0 and variance 1, and the rest by the same numbers."""
    varies = np.ptp(X, axis=0) > 0.0
    shift, spread = X.mean(axis=0), np.where(varies, X.std(axis=0), 1.0)
    return scale_features(X, "standard"), (rest - shift) / spread
