"""The second derivatives of L -> sum_k c_k log(1 + e^{-s_k(LL')}), as far as s_k bends the term.

With u_k = L'v_k they are 4 sum_k c_k sigma(s_k) sigma(-s_k) (v_k u_k')(v_k u_k')', entries of L
taken row by row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..numerics.arrays import Array, namespace, to_device_of, to_host
from ..numerics.checks import FloatArray, IntArray
from ..sums.blocks import Block, Terms, sample_size
from ..sums.device_sums import DeviceSums
from ..sums.drawn_pairs import DrawnPairs, take_differences
from ..sums.pair_sums import PairSums
from .posterior import posterior_variance

FACTOR_CHUNK = 1 << 24
"""Numbers of a chunk of the matrices v_k u_k'."""


@dataclass(frozen=True, eq=False)
class Curvature:
    """The sums above over the pairs of `sums`: the labeled ones, and all others or some of them."""

    sums: PairSums

    def over_labeled(self, L: FloatArray, threshold: float) -> FloatArray:
        """Over S u D."""
        V, confidence = self._labeled, self.sums.confidence
        return _gram(V, L, threshold, None if confidence is None else to_device_of(V, confidence))

    def over_unlabeled(self, L: FloatArray, threshold: float) -> FloatArray:
        """Over U, or an estimate of it."""
        if self.is_whole and isinstance(self._labeled, np.ndarray):
            return self._over_blocks(L, threshold)
        V, stands_for = self._unlabeled
        return stands_for * _gram(V, L, threshold)

    @property
    def is_whole(self) -> bool:
        """Whether all unlabeled pairs are looked at."""
        return len(self.sums.layout.sample) == self.sums.n_unlabeled

    def _over_blocks(self, L: FloatArray, threshold: float) -> FloatArray:
        """Over all of U by matrix products: each u_i u_j weights one sum over pairs."""
        terms = _product_terms(self.sums.points, L, threshold)
        stack = self.sums.here.over_unlabeled([L @ L.T], terms)[1]
        m, rho = L.shape
        i, j = np.triu_indices(rho)
        hessian = np.zeros((m, rho, m, rho))
        hessian[:, i, :, j] = stack
        hessian[:, j, :, i] = stack
        return hessian.reshape(m * rho, m * rho)

    @cached_property
    def _labeled(self) -> Array:
        return self._there(self.sums.labeled_pairs)

    @cached_property
    def _unlabeled(self) -> tuple[Array, float]:
        """The pairs that are looked at, and how many each stands for."""
        remote_sums, n_unlabeled = self.sums.remote_sums, self.sums.n_unlabeled
        pairs = self.sums.layout.sample
        if isinstance(remote_sums, DrawnPairs):
            pairs = remote_sums.pairs[
                :: -(-len(remote_sums.pairs) // sample_size(len(self.sums.points)))
            ]
        return self._there(pairs), n_unlabeled / max(1, len(pairs))

    def _there(self, pairs: IntArray) -> Array:
        """v_k of these pairs, where the sums are made."""
        remote_sums = self.sums.remote_sums
        if isinstance(remote_sums, DeviceSums | DrawnPairs):
            return remote_sums.differences(pairs)
        return take_differences(self.sums.points, pairs)


def _gram(V: Array, L: FloatArray, threshold: float, confidence: Array | None = None) -> FloatArray:
    """The sum over the pairs with the differences V: F'F, a row of F for each pair."""
    xp, there = namespace(V), to_device_of(V, L)
    size = V.shape[1] * L.shape[1]
    rows = max(1, FACTOR_CHUNK // max(1, size))
    total = None
    for start in range(0, V.shape[0], rows):
        stop = min(start + rows, V.shape[0])
        part = V[start:stop, :]
        U = part @ there
        weights = 4.0 * posterior_variance(xp.sum(U * U, axis=1) - threshold)
        if confidence is not None:
            weights = weights * confidence[start:stop]
        scaled = part * xp.sqrt(weights)[:, None]
        F = xp.reshape(scaled[:, :, None] * U[:, None, :], (part.shape[0], size))
        gram = xp.matrix_transpose(F) @ F
        total = gram if total is None else total + gram
    return np.zeros((size, size)) if total is None else np.array(to_host(total))


def _product_terms(points: FloatArray, L: FloatArray, threshold: float) -> Terms:
    """The weights 4 sigma(s) sigma(-s) u_i u_j, i <= j, where u = L'v."""
    U = (points @ L).T

    def weights(batch: Block, curvature: FloatArray) -> Iterator[FloatArray]:
        u = [coordinate[batch.rows, None] - coordinate[batch.columns] for coordinate in U]
        for i in range(len(u)):
            weighted = curvature * u[i]
            for j in range(i, len(u)):
                yield weighted * u[j]

    def terms(batch: Block, d: FloatArray) -> tuple[list[float], Iterator[FloatArray]]:
        return [0.0], weights(batch, 4.0 * posterior_variance(d - threshold))

    return terms
