"""Passes over pairs that are listed one by one, at the points Y = XL: see `face_sums.py`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from ...numerics.checks import FloatArray, IntArray
from ..face_sums import PairLoss, PairPass


@dataclass(frozen=True, eq=False)
class ListedPairs:
    """Pairs given one by one, each with its own weight (None: 1)."""

    pairs: IntArray
    n_points: int
    weights: FloatArray | None
    loss: PairLoss

    @cached_property
    def differences(self) -> scipy.sparse.csr_array:
        """The sparse matrix B that takes differences of points: (B Y)_k = y_i - y_j."""
        k = len(self.pairs)
        ones, starts = np.tile([1.0, -1.0], k), np.arange(0, 2 * k + 1, 2)
        return scipy.sparse.csr_array((ones, self.pairs.ravel(), starts), shape=(k, self.n_points))

    @cached_property
    def transposed(self) -> scipy.sparse.csr_array:
        """The transpose of `differences`, in row format for fast products."""
        return self.differences.T.tocsr()

    def at(self, Y: FloatArray, threshold: float, keep: bool = True) -> PairPass:
        """Pass over the listed pairs, one score a pair."""
        U = self.differences @ Y
        s = np.einsum("ij,ij->i", U, U) - threshold
        total, slope, bend, _ = self.loss.sums(s)
        if self.weights is not None:
            total = float(np.vdot(self.weights, self.loss.value(s)))
            slope, bend = self.weights * slope, self.weights * bend
        return _ListPass(total, self, U, slope, bend)


@dataclass(frozen=True, eq=False)
class _ListPass:
    total: float
    pairs: ListedPairs
    U: FloatArray
    slope: FloatArray
    bend: FloatArray
    excess: float = np.nan

    @property
    def pull(self) -> FloatArray:
        return np.asarray(self.pairs.transposed @ (self.slope[:, None] * self.U))

    def laplacian(self, Z: FloatArray) -> FloatArray:
        weighted = self.slope[:, None] * (self.pairs.differences @ Z)
        return np.asarray(self.pairs.transposed @ weighted)

    def bent(self, E: FloatArray) -> FloatArray:
        F = self.pairs.differences @ E
        t = 2.0 * self.bend * np.einsum("ij,ij->i", self.U, F)
        return np.asarray(self.pairs.transposed @ (self.slope[:, None] * F + t[:, None] * self.U))

    def bent_weights(self, X: FloatArray, d: FloatArray) -> FloatArray:
        squares = np.square(self.pairs.differences @ X)
        return np.asarray((self.bend * (squares @ d)) @ squares)

    def curvature(self, E: FloatArray) -> float:
        F = self.pairs.differences @ E
        return float(np.vdot(self.bend, np.square(np.einsum("ij,ij->i", F, F))))
