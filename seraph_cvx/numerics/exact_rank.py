"""Exact ranks of differences of points, by elimination modulo a prime.

Doubles are integers times powers of two, so that they, their sums and products have residues. A
rank of residues is that of the doubles but for a chance of one in a billion.
"""

from __future__ import annotations

import numpy as np
import scipy

from .checks import FloatArray, IntArray

# 2^31 - 19: products of two residues fit into 64 bits, and no two powers of two that doubles
# have are equal modulo it.
PRIME = 2_147_483_629


def link_differences(points: FloatArray, links: IntArray) -> FloatArray:
    """Differences x_i - x_j that span those of all pairs that `links`, rows (i, j), connect.

    One for each point but the first of its connected component.
    """
    roots = component_roots(len(points), links)
    others = np.flatnonzero(roots != np.arange(len(points)))
    return points[others] - points[roots[others]]


def rank_unless_spanning(points: FloatArray, links: IntArray, others: IntArray) -> int | None:
    """The rank of the differences of `links`, or None where they span those of `others`."""
    X = _residues(points)
    rows = (X - X[component_roots(len(X), links)]) % PRIME
    n_varying = np.count_nonzero(rows.any(axis=0))
    basis, pivots = np.zeros((0, X.shape[1]), dtype=np.int64), list[int]()
    for row in rows[rows.any(axis=1)]:
        row = (row - np.sum(row[pivots, None] * basis % PRIME, axis=0)) % PRIME
        if not row.any():
            continue
        pivot = int(np.argmax(row != 0))
        row = row * pow(int(row[pivot]), -1, PRIME) % PRIME
        basis = np.vstack([(basis - basis[:, [pivot]] * row) % PRIME, row])
        pivots.append(pivot)
        if len(pivots) == n_varying:
            break
    # A random u that is orthogonal to the basis is so to another vector only if that is spanned.
    u = np.asarray(np.random.default_rng(0).integers(PRIME, size=X.shape[1]))
    u[pivots] = 0
    u[pivots] = -np.sum(basis * u % PRIME, axis=1) % PRIME
    along = np.sum(X * u % PRIME, axis=1) % PRIME
    i, j = others.T
    return None if np.array_equal(along[i], along[j]) else len(pivots)


def _residues(values: FloatArray) -> IntArray:
    """The residues of doubles modulo the prime."""
    mantissas, exponents = np.frexp(values)
    least = int(np.min(exponents)) - 53
    powers = [pow(2, k, PRIME) for k in range(least, int(np.max(exponents)) - 52)]
    integers = np.ldexp(mantissas, 53).astype(np.int64) % PRIME
    return np.asarray(integers * np.array(powers)[exponents - 53 - least] % PRIME)


def component_roots(n: int, links: IntArray) -> IntArray:
    """The first point of the connected component of each of n points that `links` connect."""
    i, j = links.T
    graph = scipy.sparse.coo_array((np.ones(len(links)), (i, j)), shape=(n, n))
    component = scipy.sparse.csgraph.connected_components(graph, directed=False)[1]
    return np.asarray(np.unique(component, return_index=True)[1][component])
