"""The second derivatives of L -> sum_k c_k log(1 + e^{-s_k(LL')}), as far as s_k bends the term.

With u_k = L'v_k they are 4 sum_k c_k sigma(s_k) sigma(-s_k) (v_k u_k')(v_k u_k')', entries of L
taken row by row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .arrays import Array, beside, namespace, to_host
from .blocks import Block, Terms
from .checks import FloatArray
from .device_sums import DeviceSums
from .drawn_pairs import DrawnPairs, draw_unlabeled
from .pair_sums import PairSums
from .posterior import posterior_variance

SAMPLE = 512
"""Points all of whose pairs are looked at, where there are more."""

DRAWN_SAMPLE = 1 << 15
"""Pairs that are looked at on a device, or where the unlabeled pairs are a sample anyway."""

FACTOR_CHUNK = 1 << 24
"""Numbers of a chunk of the matrices v_k u_k'."""


@dataclass(frozen=True, eq=False)
class Curvature:
    """The sums above over the pairs of `sums`: the labeled ones, and all others or some of them."""

    sums: PairSums

    def over_labeled(self, L: FloatArray, threshold: float) -> FloatArray:
        """Over S u D."""
        V, confidence = self._labeled, self.sums.confidence
        return _gram(V, L, threshold, None if confidence is None else beside(V, confidence))

    def over_unlabeled(self, L: FloatArray, threshold: float) -> FloatArray:
        """Over U, or an estimate of it."""
        if self._drawn is not None:
            return self._drawn.stands_for * _gram(self._drawn.differences, L, threshold)
        sums, stands_for = self._clique
        stack = sums.over_unlabeled([L @ L.T], _clique_terms(sums.points, L, threshold))[1]
        m, rho = L.shape
        i, j = np.triu_indices(rho)
        hessian = np.zeros((m, rho, m, rho))
        hessian[:, i, :, j] = stands_for * stack
        hessian[:, j, :, i] = stands_for * stack
        return hessian.reshape(m * rho, m * rho)

    @cached_property
    def _labeled(self) -> Array:
        i, j = self.sums.labeled_pairs.T
        V = self.sums.points[i] - self.sums.points[j]
        away = self.sums.away
        return beside(away.points, V) if isinstance(away, DeviceSums | DrawnPairs) else V

    @cached_property
    def _drawn(self) -> DrawnPairs | None:
        """The pairs that are looked at, where they are drawn one by one."""
        away = self.sums.away
        if isinstance(away, DrawnPairs):
            kept = away.pairs[:: -(-len(away.pairs) // DRAWN_SAMPLE)]
            return DrawnPairs(away.points, kept, self.sums.n_unlabeled / len(kept))
        if not isinstance(away, DeviceSums) or not self.sums.n_unlabeled:
            return None
        k = min(DRAWN_SAMPLE, self.sums.n_unlabeled)
        kept = draw_unlabeled(len(self.sums.points), away.labeled, k, np.random.RandomState(0))
        return DrawnPairs(away.points, kept, self.sums.n_unlabeled / k)

    @cached_property
    def _clique(self) -> tuple[PairSums, float]:
        """All unlabeled pairs of a few points, and how many each stands for."""
        if len(self.sums.points) <= SAMPLE:
            return self.sums.here, 1.0
        return self.sums.thinned(SAMPLE)


def _gram(V: Array, L: FloatArray, threshold: float, confidence: Array | None = None) -> FloatArray:
    """The sum over the pairs with the differences V: F'F, a row of F for each pair."""
    xp, there = namespace(V), beside(V, L)
    size = V.shape[1] * L.shape[1]
    rows = max(1, FACTOR_CHUNK // max(1, size))
    total = None
    for start in range(0, V.shape[0], rows):
        part = V[start : start + rows, :]
        U = part @ there
        weights = 4.0 * posterior_variance(xp.sum(U * U, axis=1) - threshold)
        if confidence is not None:
            weights = weights * confidence[start : start + rows]
        scaled = part * xp.sqrt(weights)[:, None]
        F = xp.reshape(scaled[:, :, None] * U[:, None, :], (part.shape[0], size))
        gram = xp.matrix_transpose(F) @ F
        total = gram if total is None else total + gram
    return np.zeros((size, size)) if total is None else np.array(to_host(total))


def _clique_terms(points: FloatArray, L: FloatArray, threshold: float) -> Terms:
    """The weights 4 sigma(s) sigma(-s) u_i u_j, i <= j, where u = L'v."""
    U = (points @ L).T

    def weights(place: Block, curvature: FloatArray) -> Iterator[FloatArray]:
        u = [coordinate[place.rows, None] - coordinate[place.columns] for coordinate in U]
        for i in range(len(u)):
            weighted = curvature * u[i]
            for j in range(i, len(u)):
                yield weighted * u[j]

    def terms(place: Block, d: FloatArray) -> tuple[list[float], Iterator[FloatArray]]:
        return [0.0], weights(place, 4.0 * posterior_variance(d - threshold))

    return terms
