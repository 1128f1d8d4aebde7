"""The parts of which instances are named: data sets, exact scalings, penalties; and the library.

All coordinates of the library are multiples of 1/16, times a power of two: the difference of two
points and the products of its entries are then exact doubles, so that an exported cone program has
the very numbers of the M-step, and every machine makes the same bits.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..numerics.checks import FloatArray
from ..pairs.pair_set import PairSet
from ..paper import differences
from ..penalties import (
    Diagonal,
    LinearConstraints,
    LogDet,
    Manifold,
    Penalty,
    Ridge,
    Sparse,
    Trace,
    TraceBound,
    UpperBound,
)

GRID = 16.0
"""Coordinates are multiples of one part in this many."""

WEIGHT_GRID = 1024.0
"""The weight of unlabeled pairs and soft labels are multiples of one part in this many."""

NEARLY = 2.0**-19
"""Nearly collinear features differ by this much; the squares of such numbers are exact, too."""

FAR = 2.0**20
"""How far out an outlier lies: about a million."""

MOST_BOUNDED = 5
"""The most similar pairs whose distance ``linear`` bounds."""

LINEAR_TOLERANCE = 1e-12
"""The tolerance of ``linear``: far below the width to which an optimal value is proved."""

GENERATED = re.compile(r"(cloud|onehot)([1-9]\d*)")
"""The names of generated data sets."""

_PENALTY = re.compile(r"([a-z]+)(\d*\.?\d*)")


def generate(data: str, n_points: int, seed: int) -> tuple[FloatArray, NDArray[np.int64]]:
    """Generate the points X and classes y of a data set by its name.

    cloud5 has three classes in R^5: bell-shaped clouds, a unit apart along the first features.
    onehot8 has eight classes in R^8: class j lies on the axis j, between 1 and 2.
    """
    kind, size = GENERATED.findall(data)[0]
    m, rng = int(size), random.Random(seed)
    y = np.arange(n_points) % (m if kind == "onehot" else 3)
    if kind == "onehot":
        X = np.eye(m)[y] * [[1.0 + rng.random()] for _ in y]
    else:
        noise = [[math.fsum(rng.random() for _ in range(12)) - 6.0 for _ in range(m)] for _ in y]
        X = np.array(noise) + np.eye(3, m)[y] * 2.0
    return to_grid(X), y


def to_grid(values: FloatArray, parts: float = GRID) -> FloatArray:
    """Round to multiples of 1/parts."""
    return np.asarray(np.rint(values * parts) / parts)


def _collinear(X: FloatArray) -> FloatArray:
    """The last feature is the first plus the second one."""
    if X.shape[1] < 3:
        raise ValueError(f"Collinear features need 3 of them; there are {X.shape[1]}.")
    return np.column_stack([X[:, :-1], X[:, 0] + X[:, 1]])


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
    "nearlycollinear": lambda X: np.column_stack([X[:, :-1], X[:, 0] + NEARLY * X[:, -1]]),
    "skewed6": lambda X: _skewed(X, 6.0),
    "skewed12": lambda X: _skewed(X, 12.0),
    "outlier": _outlier,
}
"""What is done to points that were standardized and rounded, by the word of the scaling."""


def make_penalty(word: str, pairs: PairSet) -> Penalty:
    """Make the penalty that a word names, for these pairs.

    ridge10 is Ridge(10) toward the identity; logdet2 LogDet(2); sparse3 Sparse(3); tracebound1
    bounds the trace by 1; upperbound0.5 bounds the metric by a matrix between 0.5 I and I; linear1
    bounds the squared distance of the first similar pairs by 1; trace2 adds 2 to the trace weight;
    manifold2 is twice the graph of the three nearest neighbors; diagonal has no number.
    """
    name, number = split_word(word)
    return _MAKERS[name](number, pairs)


def split_word(word: str) -> tuple[str, float]:
    """Check the word of a penalty: its name, and its number, 0 where it has none."""
    match = _PENALTY.fullmatch(word)
    name, number = match.groups() if match else (word, "")
    if name not in _MAKERS:
        raise ValueError(
            f"penalty={word!r} is not known: use one of {', '.join(_MAKERS)}, with a number, such "
            "as ridge10."
        )
    value = float(number) if number.strip(".") else 0.0
    if bool(number) if name == "diagonal" else not value:
        raise ValueError(f"penalty={word!r}: write diagonal without a number, others with one.")
    return name, value


def _upper_bound(bound: float, pairs: PairSet) -> Penalty:
    """A bound between multiples 1 and 2 of I that is none itself: to project onto it needs work."""
    m = pairs.n_features
    return UpperBound(bound * (np.eye(m) + 1.0 / m))


def _linear(bound: float, pairs: PairSet) -> Penalty:
    V = differences(pairs.points, pairs.similar[:MOST_BOUNDED])
    V = V[np.any(V != 0.0, axis=1)]
    return LinearConstraints(V[:, :, None] * V[:, None, :], upper=bound, tolerance=LINEAR_TOLERANCE)


_MAKERS: dict[str, Callable[[float, PairSet], Penalty]] = {
    "ridge": lambda weight, pairs: Ridge(weight, prior=np.eye(pairs.n_features)),
    "logdet": lambda weight, pairs: LogDet(weight),
    "tracebound": lambda bound, pairs: TraceBound(bound),
    "upperbound": _upper_bound,
    "linear": _linear,
    "diagonal": lambda _, pairs: Diagonal(),
    "sparse": lambda weight, pairs: Sparse(weight),
    "trace": lambda weight, pairs: Trace(weight),
    "manifold": lambda weight, pairs: Manifold(weight, n_neighbors=3, kernel="binary"),
}

LIBRARY = {
    # Easy
    "iris-n12-rounded-hyper-w1000-s0": "easy: the optimum is zero",
    "onehot2-n8-l8-rounded-proj-w0.125-s0": "easy: two features, rank 1",
    "iris-n20-rounded-proj-w1-s0": "easy: labeled pairs only",
    "balance-n20-rounded-proj-w0.125-s0": "easy: whole numbers",
    "iris-n24-rounded-hyper-w1-s0": "easy: the first M-step of a fit",
    "cloud5-n20-rounded-hyper-w0.125-s0": "easy: the optimum has full rank",
    "wine-n12-rounded-proj-w1-s0": "more features than points",
    "iris-n20-l20-rounded-none-w0-s0": "no regularizer at all",
    # Soft labels
    "iris-n20-rounded-hyper-w1-s0-soft1": "soft labels",
    "iris-n24-rounded-post-w0-s0-soft0.25": "soft labels, no trace term",
    "wine-n12-rounded-hyper-w0.125-s0-soft0.125": "soft labels, more features than points",
    # Each penalty
    "iris-n20-rounded-hyper-w0-s0-trace0.5": "the trace term as a penalty",
    "iris-n16-rounded-hyper-w1-s0-manifold0.25": "a graph of neighbors",
    "cloud8-n12-l12-rounded-none-w0-s0-tracebound2": "attained only by the bound on the trace",
    "wine-n12-rounded-proj-w0.125-s0-upperbound0.25": "two PSD cones; the bound is active",
    "iris-n20-rounded-hyper-w1-s0-linear0.125": "five bounds on distances, some active",
    "wine-n12-rounded-proj-w0.125-s0-diagonal": "a diagonal matrix as a PSD cone",
    "iris-n20-rounded-hyper-w1-s0-sparse3": "entries of the optimum are zero",
    "cloud5-n20-rounded-hyper-w0.125-s0-soft0.5-sparse1": "sparse, with soft labels",
    "wine-n12-rounded-proj-w0.125-s0-logdet0.125": "log det, with a PSD cone of order 26",
    "wine-n12-nearlycollinear-proj-w0.01-s0-ridge1": "quadratic, nearly collinear features",
    # The rank of the optimum
    "onehot5-n12-l12-rounded-proj-w0.125-s0": "rank 4",
    "digits-n10-raw-proj-w100-s0": "rank 5 of 64; dark pixels",
    "onehot7-n14-l14-rounded-proj-w0.125-s0": "rank 6",
    "onehot9-n20-l20-rounded-proj-w0.0625-s0": "rank 8",
    "onehot13-n24-l24-rounded-proj-w0.0625-s0": "rank 12",
    "onehot17-n28-l28-rounded-proj-w0.125-s0": "rank 16",
    "onehot21-n30-l30-rounded-proj-w0.125-s0": "rank 20",
    # Nearly unattained: without the trace term there is no optimum
    "iris-n20-rounded-proj-w0.000001-s0": "nearly unattained: trace weight 1e-6",
    "iris-n20-rounded-hyper-w0.000000001-s1": "nearly unattained: trace weight 1e-9",
    "wine-n12-rounded-proj-w0.000001-s0": "nearly unattained, more features than points",
    "breast_cancer-n8-l8-rounded-proj-w0.0001-s1": "nearly unattained: 30 features, 8 points",
    # Collinear
    "iris-n20-collinear-hyper-w1-s0": "a feature is the sum of two others",
    "wine-n12-nearlycollinear-proj-w0.01-s0": "two features agree to two millionths",
    "iris-n20-nearlycollinear-hyper-w0.000001-s1": "agree to two millionths, trace weight 1e-6",
    # Badly scaled
    "iris-n20-skewed12-hyper-w0.01-s0": "units of features span twelve decades",
    "wine-n12-skewed6-proj-w0.0001-s0": "units span six decades, trace weight 1e-4",
    "wine-n12-skewed12-proj-w1-s0": "units of 13 features span twelve decades",
    "iris-n16-outlier-hyper-w1-s0": "a value of a million among ones",
    "wine-n16-outlier-hyper-w0.01-s0": "a value of a million, more features than points",
}
"""Why each instance is in the library, by its name."""
