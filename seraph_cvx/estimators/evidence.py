"""What the data at hand say about a fit: whether it helps, and what may spoil it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..model.m_step_objective import MStepObjective
from ..numerics.checks import FloatArray, IntArray
from ..pairs.labeled_pairs import ClassLabels
from .reference import Neighborhood
from .settings import mean_squared_correlation, standardized_columns


@dataclass(frozen=True)
class LeaveOneOut:
    """Leave-one-out 1-NN errors of the labeled points, in two metrics.

    Exact twins of a point are left out with it: they would answer for it in any metric. The learned
    metric's error is optimistic, as the same labels were used for training: where even so it is not
    below the Euclidean one, the metric has not been shown to help.

    Attributes
    ----------
    n : int
        The number of points judged.
    learned_error, euclidean_error : float
        Shares of wrong points.
    standard_error : float
        The standard error of the difference of the two, from the points on which they differ.
    n_twins : int
        The number of points judged that have exact twins.
    """

    n: int
    learned_error: float
    euclidean_error: float
    standard_error: float
    n_twins: int = 0

    @property
    def gain(self) -> float:
        """How much smaller the error is than the Euclidean one; negative where it is larger."""
        return self.euclidean_error - self.learned_error

    @property
    def is_clear(self) -> bool:
        """Whether the gain is more than two standard errors."""
        return self.gain > 2.0 * self.standard_error

    @property
    def verdict(self) -> str:
        """What the errors show, in a sentence."""
        if self.is_clear:
            return (
                "The labels show a gain. This is optimistic: the same labels were used for "
                "training."
            )
        if self.gain > 0.0:
            return "That may be chance: these labels do not show that the metric helps."
        return "These labels give no sign that the metric helps: compare on held-out labels."

    @property
    def without_twins(self) -> str:
        """How many points were judged without their exact twins, in words; or empty."""
        have = "has exact twins" if self.n_twins == 1 else "have exact twins"
        return f" ({self.n_twins} {have}, which are left out)" if self.n_twins else ""

    def __str__(self) -> str:
        """The errors, and what they show, in a sentence or two."""
        return (
            f"{self.n} labeled points, each by the nearest other one{self.without_twins}: "
            f"{self.learned_error:.1%} "
            f"wrong in the learned metric, {self.euclidean_error:.1%} in the Euclidean one "
            f"(difference {self.gain:+.1%}, standard error {self.standard_error:.1%}). "
            f"{self.verdict}"
        )


def leave_one_out(points: FloatArray, codes: IntArray, L: FloatArray) -> LeaveOneOut | None:
    """Judge a metric L'L by the nearest labeled neighbor of each labeled point.

    Exact twins of a point are left out with it. None where there is nothing to judge: fewer than
    two classes, or no two different points of one.
    """
    judged = Neighborhood(points, codes)
    sizes = np.bincount(codes[np.unique(judged.groups)], minlength=1)
    if np.count_nonzero(sizes) < 2 or np.max(sizes) < 2:
        return None
    learned, euclidean = judged.margins(L) < 0.0, judged.margins() < 0.0
    n, gain = len(judged.rows), np.subtract(learned, euclidean, dtype=np.float64)
    errors = float(learned.mean()), float(euclidean.mean())
    n_twins = int(np.sum(np.bincount(judged.groups)[judged.groups[judged.rows]] > 1))
    return LeaveOneOut(n, *errors, float(np.std(gain)) / math.sqrt(n), n_twins)


def nearest_labels(Z: FloatArray, labeled: FloatArray, labels: Any) -> Any:
    """The label of the labeled point that is nearest to each point."""
    from sklearn.neighbors import NearestNeighbors

    search = NearestNeighbors(n_neighbors=1).fit(labeled)
    return labels[search.kneighbors(Z, return_distance=False)[:, 0]]


def describe_features(points: FloatArray, names: Sequence[str] | None = None) -> list[str]:
    """Describe what in the features may spoil a metric, each with a remedy; empty if nothing.

    Constant columns, heavy tails (a kurtosis above 30: a few values are most of the variance),
    features that say the same (correlated beyond 0.999; of the first 1,000), and correlations so
    strong that the trace penalty follows them; `names` are by default the features' numbers.
    """
    if names is None:
        called = np.char.add("feature ", np.arange(points.shape[1]).astype(str))
    else:
        called = np.array([f"{name!r}" for name in names])
    varies = np.ptp(points, axis=0) > 0.0
    notes = []
    if not np.all(varies):
        constant = _first_of(called[~varies])
        notes.append(f"Constant: {constant}. Nothing is learned from it: leave it out.")
    if len(points) < 4 or not np.any(varies):
        return notes
    standardized, called = standardized_columns(points), called[varies]
    kurtosis = len(points) * np.sum(standardized**4, axis=0) - 3.0
    if np.any(kurtosis > 30.0):
        notes.append(
            f"Heavy tails: {_first_of(called[kurtosis > 30.0])}. A few values are most of the "
            "variance, so that the other points look equal: take logarithms, ranks "
            "(QuantileTransformer), or clip."
        )
    some = standardized[:, :1_000]
    same = np.argwhere(np.abs(np.triu(some.T @ some, 1)) > 0.999)
    if len(same):
        both = [" and ".join(called[pair]) for pair in same]
        notes.append(f"Nearly the same: {_first_of(both)}. Leave one of each two out.")
    r = mean_squared_correlation(standardized)
    if r > 2.0 / 3.0:  # where the weight of the correlations is above 0
        notes.append(
            f"Strongly correlated: the mean squared correlation of the features is {r:.2f}. The "
            "trace penalty follows their covariance (correlation_weight), so that small "
            "differences between them may count."
        )
    return notes


def _first_of(names: Sequence[str] | NDArray[np.str_]) -> str:
    """The first three, and how many more there are."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def describe_outcome(first: MStepObjective, L: FloatArray) -> str:
    """Describe why the metric L'L of a fit from `first` is of no use, and the cure; or empty."""
    pairs = first.pairs
    has_classes = isinstance(pairs.labels, ClassLabels)
    nothing_apart = (
        f"all {'known points are of one class' if has_classes else 'labeled pairs are similar'}, "
        "so nothing says which points are far apart. Label points of another class, or give "
        "dissimilar pairs."
    )
    are_similar = pairs.n_similar == pairs.n_labeled
    if np.any(L):
        return f"Of doubtful use: {nothing_apart}" if has_classes and are_similar else ""
    if not np.any(pairs.feature_ranges):
        cause = "all points are equal. Give points that differ."
    elif are_similar:
        cause = nothing_apart
    else:
        limit = first.critical_trace_weight
        is_plain = first.manifold_term is None and not first.penalties
        bound = f" (it has to be below {limit:.3g})" if is_plain and limit else ""
        cause = (
            f"the trace weight{'' if is_plain else ' or another penalty'} is too large for these "
            f'features{bound}. Lower it, or use trace_weight="auto".'
        )
    return f"The learned metric is zero, and so is all of transform(X): {cause}"
