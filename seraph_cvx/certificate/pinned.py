"""Lower bounds where R is zero, or as good as zero, and the similar pairs do not span the space.

The matrix sum_S c_k v_k v_k' - tau*S(r) can be PSD only if r_k = 0 on every pair that leaves the
span of the similar pairs; if it is PSD, so it is with R added. Which pairs stay in the span is
decided without rounding, in two ways: two points that a chain of similar pairs joins differ by a
sum of similar differences; and two points that are equal in every feature in which all similar
pairs are equal differ in the others only. On all other pairs r_k = 0. A span that is oblique to
the features is left to `rigorous=True`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy

from ..model.dual_coordinates import DualCoordinates
from ..model.label_bounds import LabelBounds
from ..model.m_step_objective import MStepObjective
from ..model.posterior import negative_logs, posterior_similar
from ..numerics.checks import FloatArray, IntArray
from ..numerics.psd_cone import symmetrise
from ..numerics.rounding import (
    ENTROPY_ROUNDINGS,
    FEW_ROUNDINGS,
    LARGEST_LOG,
    MatrixError,
    at_least,
    at_most,
    gamma,
)
from ..sums.frame import Frame
from ..sums.sweep import spread_of
from .pair_bounds import Gain, PairBounds

MOST_PAIRS = 1 << 17
"""Joined pairs up to which this is tried."""


def pinned_bounds(
    objective: MStepObjective, L: FloatArray
) -> Iterator[tuple[DualCoordinates, PairBounds]]:
    """The sums at LL' over pairs that stay in the span, in coordinates of points, of features."""
    points, similar = objective.pairs.points, objective.pairs.similar
    component = _component(objective)
    joined = _pairs_within(objective, component)
    if 0 < len(joined) <= MOST_PAIRS:
        yield _bounds(objective, L, joined, _incidence(joined, component))
    varies = np.any(points[similar[:, 0]] != points[similar[:, 1]], axis=0)
    if not np.any(varies):
        return
    group = np.unique(points[:, ~varies], axis=0, return_inverse=True)[1].reshape(-1)
    equal = _pairs_within(objective, group)
    if 0 < len(equal) <= MOST_PAIRS:
        yield _bounds(objective, L, equal, (points[equal[:, 0]] - points[equal[:, 1]])[:, varies])


def _incidence(pairs: IntArray, component: IntArray) -> FloatArray:
    """The rows e_i - e_j, one a pair, without the first point of each component."""
    used = np.unique(pairs)
    incidence = np.zeros((len(pairs), len(used)))
    rows = np.arange(len(pairs))
    incidence[rows, np.searchsorted(used, pairs[:, 0])] = 1.0
    incidence[rows, np.searchsorted(used, pairs[:, 1])] = -1.0
    roots = np.unique(component[used], return_index=True)[1]
    return np.delete(incidence, roots, axis=1)


def _bounds(
    objective: MStepObjective, L: FloatArray, live: IntArray, base: FloatArray
) -> tuple[DualCoordinates, PairBounds]:
    points = objective.pairs.points
    V = points[live[:, 0]] - points[live[:, 1]]
    weights, is_similar = _weights(objective, live)
    r = posterior_similar(np.sum(np.square(V @ L), axis=1) - objective.threshold)
    moment = symmetrise((base.T * (weights * is_similar)) @ base)
    eigenvalues, vectors = np.linalg.eigh(moment)
    T = vectors / np.sqrt(np.maximum(eigenvalues, 1e-12 * float(eigenvalues[-1])))
    Z, sizes = Frame(T).of(base)
    w = np.stack([weights * r, weights * is_similar])
    pull, labels = (symmetrise((Z.T * row) @ Z) for row in w)
    spreads = spread_of(w, Z, sizes)
    pull_error, label_error = (MatrixError(g, h, len(T), len(r)) for g, h in spreads)
    eta = objective.threshold
    error = gamma(len(r) + ENTROPY_ROUNDINGS + FEW_ROUNDINGS)
    fewer, more = 1.0 - error, 1.0 + error
    log, rest_log = negative_logs(r)
    rest = (1.0 - r) * rest_log

    def total(terms: FloatArray) -> float:
        return float(np.sum(weights * terms))

    to_one = [total(r), total(rest), total(np.minimum(rest_log, LARGEST_LOG))]
    bounds = PairBounds(
        primal_value=0.0,
        tangent_value=at_least(
            total(r * log + rest) * fewer,
            eta * total(r * (1.0 - is_similar)) * fewer,
            -eta * total((1.0 - r) * is_similar) * more,
        ),
        towards_one=Gain.of([to_one], len(r)),
        towards_labels=Gain.of([], 0),
        pull=pull,
        pull_error=pull_error,
        labels=LabelBounds(
            at_most(total(is_similar) * more), 0.0, 0.0, 0.0, matrix=labels, error=label_error
        ),
    )
    k = T.shape[1]
    return DualCoordinates(Frame(T), np.zeros((k, k)), np.zeros(k)), bounds


def _component(objective: MStepObjective) -> IntArray:
    """The number of each point's component in the graph of similar pairs."""
    n = objective.pairs.n_points
    i, j = objective.pairs.similar.T
    graph = scipy.sparse.coo_array((np.ones(len(i)), (i, j)), shape=(n, n))
    components = scipy.sparse.csgraph.connected_components(graph, directed=False)[1]
    return np.asarray(components.astype(np.int64))


def _pairs_within(objective: MStepObjective, group: IntArray) -> IntArray:
    """All pairs of points of the same group that count; none if they are too many."""
    if objective.mu == 0.0:
        labeled = objective.pairs.labeled
        return np.asarray(labeled[group[labeled[:, 0]] == group[labeled[:, 1]]])
    sizes = np.bincount(group)
    none = np.empty((0, 2), dtype=np.int64)
    if np.sum(sizes * (sizes - 1)) > 2 * MOST_PAIRS:
        return none
    found = [none]
    for number in np.flatnonzero(sizes > 1):
        members = np.flatnonzero(group == number)
        first, second = np.triu_indices(len(members), 1)
        found.append(np.column_stack([members[first], members[second]]))
    return np.vstack(found)


def _weights(objective: MStepObjective, live: IntArray) -> tuple[FloatArray, FloatArray]:
    """The weights c_k of these pairs, and an indicator of the similar ones."""
    pairs = objective.pairs
    n = pairs.n_points
    codes = pairs.labeled @ [n, 1]
    order = np.argsort(codes)
    place = np.minimum(np.searchsorted(codes[order], live @ [n, 1]), len(codes) - 1)
    number = order[place]
    is_labeled = codes[number] == live @ [n, 1]
    c = np.where(is_labeled, pairs.labeled_weights[number], objective.mu)
    return c, (is_labeled & (number < len(pairs.similar))).astype(np.float64)
