"""What the available data say about a fit: whether it helps, and what may spoil it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..numerics.checks import FloatArray, IntArray
from ..numerics.psd_cone import factor
from .reference import mean_squared_correlation, resolve_correlation_weight

MOST_JUDGED = 2_000
"""The number of labeled points that are judged at most; of more, so many evenly spaced ones."""

ROWS_AT_ONCE = 256
"""The number of points whose distances to all others are held at a time."""

HEAVY_TAIL = 30.0
"""An excess kurtosis above this is a heavy tail: a few values are most of the variance."""

COLLINEAR = 0.999
"""Features correlated beyond this say the same."""


@dataclass(frozen=True)
class LeaveOneOut:
    """Leave-one-out 1-NN errors of the labeled points, in two metrics.

    The labels were used to learn the metric, so its error is flattered: where even so it is not
    below the Euclidean one, the metric has not been shown to help.

    Attributes
    ----------
    n : int
        The number of points judged.
    learned_error, euclidean_error : float
        Shares of wrong points.
    standard_error : float
        The standard error of the difference of the two, from the points on which they differ.
    """

    n: int
    learned_error: float
    euclidean_error: float
    standard_error: float

    @property
    def gain(self) -> float:
        """How much smaller the error is than the Euclidean one; negative where it is larger."""
        return self.euclidean_error - self.learned_error

    @property
    def is_clear(self) -> bool:
        """Whether the gain is more than two standard errors."""
        return self.gain > 2.0 * self.standard_error

    def __str__(self) -> str:
        """The errors, and what they show, in a sentence or two."""
        numbers = (
            f"{self.n} labeled points, each by the nearest other one: {self.learned_error:.1%} "
            f"wrong in the learned metric, {self.euclidean_error:.1%} in the Euclidean one "
            f"(difference {self.gain:+.1%}, standard error {self.standard_error:.1%})."
        )
        return f"{numbers} {self.verdict}"

    @property
    def verdict(self) -> str:
        """What the errors show, in a sentence."""
        if self.is_clear:
            return "The labels show a gain; as they were used to learn, it is flattered."
        if self.gain > 0.0:
            return "That may be chance: these labels do not show that the metric helps."
        return "These labels give no sign that the metric helps: compare on held-out labels."


def leave_one_out(points: FloatArray, codes: IntArray, metric: FloatArray) -> LeaveOneOut | None:
    """Judge a metric by the nearest labeled neighbor of each labeled point.

    Parameters
    ----------
    points : (k, m) array
        The labeled points.
    codes : (k,) array of int
        Their classes.
    metric : (m, m) array

    Returns
    -------
    LeaveOneOut or None
        None where there is nothing to judge: fewer than two classes, or no two points of one.

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [0.1, 3.0], [1.0, 0.1], [1.1, 3.1]])
    >>> print(leave_one_out(X, np.array([0, 0, 1, 1]), np.diag([1.0, 0.0])).gain)
    1.0
    """
    sizes = np.bincount(codes) if len(codes) else np.zeros(1, dtype=np.int64)
    if np.count_nonzero(sizes) < 2 or np.max(sizes) < 2:
        return None
    rows = np.unique(np.linspace(0, len(codes) - 1, min(len(codes), MOST_JUDGED)).astype(np.int64))
    hits = [_hits(points @ L.T, codes, rows) for L in (factor(metric), np.eye(len(metric)))]
    difference = hits[0].astype(np.float64) - hits[1]
    return LeaveOneOut(
        len(rows),
        float(np.mean(~hits[0])),
        float(np.mean(~hits[1])),
        float(np.std(difference)) / math.sqrt(len(rows)),
    )


def _hits(points: FloatArray, codes: IntArray, rows: IntArray) -> NDArray[np.bool_]:
    """Whether the nearest other point of each of these rows is of its class."""
    Z = points - points.mean(axis=0)
    squares = np.sum(np.square(Z), axis=1)
    nearest = []
    for some in np.array_split(rows, -(-len(rows) // ROWS_AT_ONCE)):
        distances = squares - 2.0 * Z[some] @ Z.T  # but for what a row has in common
        distances[np.arange(len(some)), some] = np.inf
        nearest.append(np.argmin(distances, axis=1))
    return np.asarray(codes[np.concatenate(nearest)] == codes[rows])


def describe_features(points: FloatArray, names: Sequence[str] | None = None) -> list[str]:
    """Describe what in the features may spoil a metric, each with a remedy; empty if nothing.

    Constant columns, heavy tails, features that say the same, and correlations so strong that the
    trace penalty follows them.

    Parameters
    ----------
    points : (n, m) array
    names : sequence of str, optional
        Of the features; by default their numbers.

    Examples
    --------
    >>> describe_features(np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]]))
    ['Constant: feature 1. Nothing is learned from it: leave it out.']
    """
    m = points.shape[1]
    called = [f"feature {i}" for i in range(m)] if names is None else [f"{n!r}" for n in names]
    spread = np.ptp(points, axis=0)
    found = []
    if constant := [called[i] for i in np.flatnonzero(spread == 0.0)]:
        found.append(f"Constant: {_some(constant)}. Nothing is learned from it: leave it out.")
    varying = np.flatnonzero(spread > 0.0)
    if len(points) < 4 or not len(varying):
        return found
    columns = points[:, varying] / np.max(np.abs(points[:, varying]), axis=0)
    centered = columns - columns.mean(axis=0)
    lengths = np.linalg.norm(centered, axis=0)
    centered = centered / np.where(lengths > 0.0, lengths, 1.0)
    kurtosis = len(points) * np.sum(centered**4, axis=0) - 3.0
    if heavy := [called[varying[i]] for i in np.flatnonzero(kurtosis > HEAVY_TAIL)]:
        found.append(
            f"Heavy tails: {_some(heavy)}. A few values are most of the variance, so that the "
            "other points look equal: take logarithms, ranks (QuantileTransformer), or clip."
        )
    correlation = np.abs(np.triu(centered.T @ centered, 1))
    if len(same := np.argwhere(correlation > COLLINEAR)):
        pairs = [f"{called[varying[i]]} and {called[varying[j]]}" for i, j in same]
        found.append(f"Nearly the same: {_some(pairs)}. Leave one of each two out.")
    if resolve_correlation_weight(points, "auto") > 0.0:
        found.append(
            f"Strongly correlated: the mean squared correlation of the features is "
            f"{mean_squared_correlation(points):.2f}. The trace penalty follows their covariance "
            "(correlation_weight), so that small differences between them may count."
        )
    return found


def _some(names: list[str]) -> str:
    """The first three names, and how many more there are."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
