"""M-steps of fewer pairs, whose optima are below that of the M-step they are taken from.

Every pair of which q = 0 adds a term log(1 + e^{-s}) >= 0 to f, and so does <R, A> where R is PSD:
without some of them f is smaller everywhere. If R is zero, or as good as zero, and the similar
pairs do not span the space, this gives better bounds: sum_S c_k v_k v_k' - S(r) can be PSD only if
r_k = 0 on every pair that leaves the span of the similar pairs. Which pairs stay in it is decided
without rounding, in two ways: two points that a chain of similar pairs joins differ by a sum of
similar differences; and two points that are equal in every feature in which all similar pairs are
equal differ in the others only. A span that is oblique to the features is left to `rigorous=True`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ..model.m_step_objective import MStepObjective
from ..numerics.checks import IntArray
from ..numerics.exact_rank import component_roots
from ..numerics.rounding import UNIT
from ..pairs.labeled_pairs import LabeledPairs
from ..pairs.pair_set import PairSet

MOST_PAIRS = 1 << 17
"""Pairs in the span up to which this is tried."""


def reduced_m_steps(objective: MStepObjective) -> Iterator[MStepObjective]:
    """The M-steps of the pairs that stay in the span of the similar ones, with R = 0.

    An unlabeled pair of weight w with q = 0 becomes a dissimilar one of confidence w.
    """
    pairs = objective.pairs
    weight = objective.mu if pairs.drawn is None else _rounded_down(objective)
    i, j = pairs.similar.T
    if not len(i):
        return
    component = component_roots(pairs.n_points, pairs.similar)
    fixed = np.all(pairs.points[i] == pairs.points[j], axis=0)
    group = np.unique(pairs.points[:, fixed], axis=0, return_inverse=True)[1].reshape(-1)
    of_similar, of_dissimilar = np.split(pairs.labeled_weights, [len(i)])
    for number in (component, group):
        kept = _is_within(pairs.dissimilar, number)
        unlabeled = _unlabeled_within(objective, number)
        if unlabeled is None:
            continue
        c = [of_similar, of_dissimilar[kept], np.full(len(unlabeled), weight)]
        apart = np.vstack([pairs.dissimilar[kept], unlabeled])
        if len(i) + len(apart) > MOST_PAIRS:
            continue
        yield MStepObjective(
            PairSet(pairs.points, LabeledPairs(pairs.similar, apart, np.concatenate(c))),
            unlabeled_weight=0.0,
            trace_weight=0.0,
            threshold=objective.threshold,
        )


def _rounded_down(objective: MStepObjective) -> float:
    """A double not above the weight of a drawn pair, mu * #U/k."""
    weight = objective.mu * objective.sums.stands_for * (1.0 - 4.0 * UNIT)
    return math.nextafter(weight, 0.0)


def _is_within(rows: IntArray, number: IntArray) -> NDArray[np.bool_]:
    return np.asarray(number[rows[:, 0]] == number[rows[:, 1]])


def _unlabeled_within(objective: MStepObjective, number: IntArray) -> IntArray | None:
    """The unlabeled pairs that count, of points with one number; None if they are too many."""
    pairs, none = objective.pairs, np.empty((0, 2), dtype=np.int64)
    if objective.mu == 0.0:
        return none
    if pairs.drawn is not None:
        return pairs.drawn[_is_within(pairs.drawn, number)]
    sizes = np.bincount(number)
    if np.sum(sizes * (sizes - 1)) > 2 * MOST_PAIRS:
        return None
    members = (np.flatnonzero(number == one) for one in np.flatnonzero(sizes > 1))
    within = (some[np.column_stack(np.triu_indices(len(some), 1))] for some in members)
    rows = np.vstack([none, *within])
    code = [pairs.n_points, 1]
    return rows[~np.isin(rows @ code, pairs.labeled @ code)]
