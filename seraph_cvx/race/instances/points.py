"""The points of the library: generated data sets, and scalings with exact numbers.

All coordinates are multiples of 1/16, times a power of two: the difference of two points and the
products of its entries are then exact doubles, so that an exported cone program has the very
numbers of the M-step, and every machine makes the same bits.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ...numerics.checks import FloatArray

GRID = 16.0
"""Coordinates are multiples of one part in this many."""

WEIGHT_GRID = 1024.0
"""The weight of unlabeled pairs and soft labels are multiples of one part in this many."""

NEARLY = 2.0**-19
"""Nearly collinear features differ by this much; the squares of such numbers are exact, too."""

FAR = 2.0**20
"""How far out an outlier lies: about a million."""

_GENERATED = re.compile(r"(cloud|onehot)([1-9]\d*)")


def is_generated(data: str) -> bool:
    """Whether a data set is generated: cloud5, onehot8 and the like.

    Examples
    --------
    >>> is_generated("onehot8"), is_generated("iris")
    (True, False)
    """
    return _GENERATED.fullmatch(data) is not None


def generate(data: str, n_points: int, seed: int) -> tuple[FloatArray, NDArray[np.int64]]:
    """Generate the points X and classes y of a data set by its name.

    cloud5 has three classes in R^5: bell-shaped clouds, a unit apart along the first features.
    onehot8 has eight classes in R^8: class j lies on the axis j, between 1 and 2.

    Examples
    --------
    >>> X, y = generate("onehot3", 4, seed=0)
    >>> np.count_nonzero(X, axis=1), y
    (array([1, 1, 1, 1]), array([0, 1, 2, 0]))
    """
    match = _GENERATED.fullmatch(data)
    if match is None:
        raise ValueError(f"{data!r} is not a generated data set: use cloud5, onehot8 or the like.")
    kind, m = match[1], int(match[2])
    rng = random.Random(seed)
    if kind == "onehot":
        y = np.arange(n_points) % m
        X = np.zeros((n_points, m))
        X[np.arange(n_points), y] = [1.0 + rng.random() for _ in y]
    else:
        y = np.arange(n_points) % 3
        noise = [[math.fsum(rng.random() for _ in range(12)) - 6.0 for _ in range(m)] for _ in y]
        X = np.array(noise) + np.eye(3, m)[y] * 2.0
    return to_grid(X), y


def to_grid(values: FloatArray, parts: float = GRID) -> FloatArray:
    """Round to multiples of 1/parts.

    Examples
    --------
    >>> to_grid(np.array([0.1, 1.0]))
    array([0.125, 1.   ])
    """
    return np.asarray(np.rint(values * parts) / parts)


def _collinear(X: FloatArray) -> FloatArray:
    """The last feature is the first plus the second one."""
    _require_features(X, 3)
    X[:, -1] = X[:, 0] + X[:, 1]
    return X


def _nearly_collinear(X: FloatArray) -> FloatArray:
    """The last feature is the first one, and by two millionths what it was."""
    _require_features(X, 2)
    X[:, -1] = X[:, 0] + NEARLY * X[:, -1]
    return X


def _require_features(X: FloatArray, n_features: int) -> None:
    if X.shape[1] < n_features:
        raise ValueError(f"Collinear features need {n_features} of them; there are {X.shape[1]}.")


def _skewed(X: FloatArray, decades: float) -> FloatArray:
    """The units of the features are powers of two across this many decades."""
    half = decades / 2.0 * np.log2(10.0)
    return np.asarray(np.ldexp(X, np.rint(np.linspace(-half, half, X.shape[1])).astype(int)))


def _outlier(X: FloatArray) -> FloatArray:
    """The last value of the last point lies a million out."""
    X[-1, -1] = FAR
    return X


EXACT_SCALINGS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "rounded": lambda X: X,
    "collinear": _collinear,
    "nearlycollinear": _nearly_collinear,
    "skewed6": lambda X: _skewed(X, 6.0),
    "skewed12": lambda X: _skewed(X, 12.0),
    "outlier": _outlier,
}
"""What is done to points that were standardized and rounded, by the word of the scaling."""
