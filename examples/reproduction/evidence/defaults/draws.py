"""Draws of a data set: a hundred points, a few of each class with their label, standardized."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from seraph_cvx.numerics.checks import UNKNOWN, FloatArray, IntArray

from ..protocol.samplings import scale_features
from .data_sets import DataSet

POINTS = 100
"""Points of a draw, unless the labels are more than half of them; see :func:`draw_points`."""


@dataclass(frozen=True, eq=False)
class Draw:
    """Points, a few of them with their class, and the points that were not drawn."""

    name: str
    labels: int
    number: int
    X: FloatArray
    y: IntArray
    truth: IntArray
    X_rest: FloatArray
    truth_rest: IntArray


def draw_points(data: DataSet, labels: int, number: int) -> Draw:
    """Draw points at random, `labels` of each class with their label."""
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
