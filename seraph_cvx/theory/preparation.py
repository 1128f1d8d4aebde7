"""From X and y to the pairs that the claims are checked on."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..pairs.pair_set import PairSet


def prepare_pairs(
    X: ArrayLike, y: ArrayLike, standardize: bool, max_points: int, seed: int
) -> PairSet:
    """The pairs that the claims are checked on: some similar, some dissimilar, some unlabeled."""
    pairs = PairSet.from_labels(X, y)
    if len(pairs.similar) and len(pairs.dissimilar):
        pairs = _thin(pairs, max_points, np.random.default_rng(seed))
    for kind, rows in (("similar", pairs.similar), ("dissimilar", pairs.dissimilar)):
        if not len(rows):
            raise ValueError(
                f"No pair is {kind}: the claims need labels of at least two classes, and two "
                "points of one of them."
            )
    if not pairs.n_unlabeled:
        raise ValueError("No pair is unlabeled: add points of unknown class (label -1).")
    points = pairs.points
    if standardize:
        varies = np.ptp(points, axis=0) > 0.0
        points = (points - points.mean(axis=0)) / np.where(varies, points.std(axis=0), 1.0)
    if not np.any(np.ptp(points, axis=0) > 0.0):
        raise ValueError("All points are the same: there is nothing to measure.")
    return PairSet.from_constraints(points, pairs.similar, pairs.dissimilar)


def _thin(pairs: PairSet, max_points: int, rng: np.random.Generator) -> PairSet:
    """At most `max_points` of the points, and labels of ten only, where all or most are labeled."""
    n, labeled = pairs.n_points, np.unique(pairs.labeled)
    if n <= max_points and pairs.n_unlabeled:
        return pairs
    kept_labels = labeled
    if len(labeled) == n or 2 * len(labeled) > max_points:
        one, other = rng.choice(pairs.similar)
        apart = rng.choice(pairs.dissimilar[np.any(pairs.dissimilar == one, axis=1)])
        needed = np.unique([one, other, *apart])  # three points, with a pair of each kind
        more = rng.permutation(np.setdiff1d(labeled, needed))
        kept_labels = np.concatenate([needed, more])[: min(10, max(3, n // 2))]
    others = rng.permutation(np.setdiff1d(np.arange(n), kept_labels))
    kept = np.concatenate([kept_labels, others])[: max(max_points, len(kept_labels) + 1)]
    place = np.full(n, -1)
    place[kept_labels] = np.arange(len(kept_labels))
    near, far = (
        place[rows[(place[rows] >= 0).all(axis=1)]] for rows in (pairs.similar, pairs.dissimilar)
    )
    return PairSet.from_constraints(pairs.points[kept], near, far)
