"""What the nearest labeled neighbors of labeled points say about a metric."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import scipy

from ..numerics.checks import FloatArray, IntArray
from ..pairs.data_warnings import first_twins
from ..pairs.labeled_pairs import ClassLabels
from ..pairs.pair_set import PairSet

MOST_JUDGED = 2_000
"""The number of labeled points that are judged at most; of more, so many evenly spaced ones."""

ROWS_AT_ONCE = 256
"""The number of points whose distances to all others are held at a time."""

LARGEST_MARGIN = 5.0
"""Margins are cut here: distances that differ by a factor of 148."""

ENOUGH_SUPPORT = 2.0
"""The support of a metric, in standard errors, from which on nothing is mixed in."""

SHARE_PER_ERROR = 0.15
"""The share of the Euclidean metric for each standard error of support that is missing."""


class Neighborhood:
    """Points that have labels, and those of them that are judged by the others.

    Parameters
    ----------
    points : (k, m) array
        The points.
    relation : callable
        Of an array of rows: 1 for those of the k points that are similar to each, -1 for those that
        are dissimilar, 0 where nothing is known, (len(rows), k).
    """

    def __init__(self, points: FloatArray, relation: Callable[[IntArray], IntArray]) -> None:
        self.points, self.relation = points, relation
        self.groups = first_twins(points)
        n = min(len(points), MOST_JUDGED)
        self.rows = np.unique(np.linspace(0, len(points) - 1, n).astype(np.int64))

    @classmethod
    def of_classes(cls, points: FloatArray, codes: IntArray) -> Neighborhood:
        """Points of known class: those of one class are similar."""
        return cls(points, lambda rows: np.where(codes[rows, None] == codes, 1, -1))

    @classmethod
    def of_pairs(cls, pairs: PairSet) -> Neighborhood:
        """The points of labeled pairs, which are similar or dissimilar by them."""
        if isinstance(pairs.labels, ClassLabels):
            return cls.of_classes(pairs.points[pairs.labels.members], pairs.labels.classes)
        members, ends = np.unique(pairs.labeled, return_inverse=True)
        i, j = ends.reshape(-1, 2).T
        kind = np.where(np.arange(len(i)) < len(pairs.similar), 1, -1)
        both = (np.r_[kind, kind], (np.r_[i, j], np.r_[j, i]))
        known = scipy.sparse.csr_array(both, shape=(len(members), len(members)))
        return cls(pairs.points[members], lambda rows: known[rows].toarray())

    @property
    def n_twins(self) -> int:
        """The number of points judged that have exact twins."""
        return int(np.sum(np.bincount(self.groups)[self.groups[self.rows]] > 1))

    def margins(self, L: FloatArray | None = None) -> FloatArray:
        """How much nearer similar points are than dissimilar ones, by L'L; by default Euclid's.

        ln(b/a) for the distances a and b to the nearest similar and to the nearest dissimilar
        point, cut at +-5. Exact twins of a point are left out with it. It is negative where the
        nearer one is dissimilar, -5 where there is no similar one and 5 where all others are.
        """
        Z = self.points if L is None else self.points @ L.T
        Z = Z - Z.mean(axis=0)
        squares, found = np.sum(np.square(Z), axis=1), []
        for chunk in np.array_split(self.rows, -(-len(self.rows) // ROWS_AT_ONCE)):
            distances = squares[chunk, None] + squares - 2.0 * Z[chunk] @ Z.T
            np.maximum(distances, 0.0, out=distances)
            distances[self.groups[chunk, None] == self.groups] = np.inf
            known = self.relation(chunk)
            a, b = (
                np.sqrt(np.min(distances, axis=1, where=known == kind, initial=np.inf))
                for kind in (1, -1)
            )
            with np.errstate(divide="ignore", invalid="ignore"):
                logarithms = np.where(a == b, 0.0, np.log(b) - np.log(a))
            found.append(np.clip(logarithms, -LARGEST_MARGIN, LARGEST_MARGIN))
        return np.concatenate(found)

    def support(self, L: FloatArray) -> float:
        """How many standard errors the margins in the metric L'L are above the Euclidean ones.

        0 where there is nothing to judge by: fewer than two points that have both kinds of others.
        """
        if len(self.points) < 2:
            return 0.0
        learned, euclidean = self.margins(L), self.margins()
        gains = (learned - euclidean)[np.abs(euclidean) < LARGEST_MARGIN]
        if len(gains) < 2:
            return 0.0
        error = float(np.std(gains, ddof=1)) / math.sqrt(len(gains))
        return float(np.mean(gains)) / max(error, 1e-12)

    def euclidean_share(self, L: FloatArray) -> float:
        """The share of the Euclidean metric to be mixed with L'L, where labels do not support that.

        0.15 for each standard error of :meth:`support` that is missing to two, at most 1.
        """
        return float(np.clip(SHARE_PER_ERROR * (ENOUGH_SUPPORT - self.support(L)), 0.0, 1.0))
