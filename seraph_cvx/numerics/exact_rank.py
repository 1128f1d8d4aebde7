"""Exact ranks of differences of points, by elimination modulo a prime.

A rank of residues is that of the doubles but for a chance of one in a billion.
"""

from __future__ import annotations

import numpy as np
import scipy

from .checks import FloatArray, IntArray


def link_differences(points: FloatArray, links: IntArray) -> FloatArray:
    """Differences x_i - x_j that span those of all pairs that `links`, rows (i, j), connect.

    One for each point but the first of its connected component.
    """
    roots = component_roots(len(points), links)
    others = np.flatnonzero(roots != np.arange(len(points)))
    return points[others] - points[roots[others]]


def rank_unless_spanning(points: FloatArray, links: IntArray, others: IntArray) -> int | None:
    """The rank of the differences of `links`, or None where they span those of `others`."""
    rank, m = _rank(points, links), points.shape[1]
    if rank < np.count_nonzero(np.ptp(points, axis=0)):
        for some in (others[: 4 * m], others):
            if _rank(points, np.vstack([links, some])) > rank:
                return rank
    return None


def _rank(points: FloatArray, links: IntArray) -> int:
    """The rank of the differences of `links`, of which none is formed, as it would be rounded.

    The rows [x_i, e_c], c the component of point i, have that rank more than there are components.
    """
    from ..proof.rational import rank_modulo_prime

    if not len(links):
        return 0
    number, links = np.unique(links, return_inverse=True)
    roots = component_roots(len(number), links.reshape(-1, 2))
    members = scipy.sparse.coo_array((np.ones(len(roots)), (np.arange(len(roots)), roots)))
    rows = scipy.sparse.hstack([points[number], members], format="csc")
    return rank_modulo_prime(rows) - len(np.unique(roots))


def component_roots(n: int, links: IntArray) -> IntArray:
    """The first point of the connected component of each of n points that `links` connect."""
    i, j = links.T
    graph = scipy.sparse.coo_array((np.ones(len(links)), (i, j)), shape=(n, n))
    component = scipy.sparse.csgraph.connected_components(graph, directed=False)[1]
    return np.asarray(np.unique(component, return_index=True)[1][component])
