"""Sums over all pairs in the few coordinates of a factor, on a CUDA GPU.

What `passes.py` does by NumPy, with no array of pairs in memory: each pass makes the weights
anew, in registers (`cuda/pair_passes.py`). All that leaves the GPU is as large as a factor or a
metric.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ..numerics.arrays import (
    Array,
    cuda_kernels,
    index_on_device_of,
    namespace,
    to_device_of,
    to_host,
)
from ..numerics.checks import FloatArray
from ..numerics.cuda.pair_range import PairRange
from .distances import sample_counts
from .passes import PairLoss

FEW_POINTS = 30_000
"""Points, at most, of each kind from which second derivatives are estimated."""

GRADIENT_COLUMNS = 64
"""Features whose part of a gradient is summed at a time."""


@dataclass(frozen=True, eq=False)
class GpuPairs:
    """Every pair of points on a GPU: `loss` times mu, but for the pairs of labeled points."""

    X: Array  # the points, labeled ones first
    n_labeled: int
    loss: PairLoss
    labeled_loss: PairLoss
    unlabeled_weight: float
    threshold: float
    counts: Array | None = None  # how many points each stands for

    most_columns: ClassVar[int] = 64 - 3  # of a factor: the kernels append three

    def pass_at(self, L: FloatArray) -> GpuPass:
        """Pass over all pairs at the points Y = XL."""
        return GpuPass(self, self.X @ to_device_of(self.X, L))

    @property
    def kernels(self) -> Any:
        """The module of fused kernels."""
        return cuda_kernels(self.X, "pair_passes")

    @cached_property
    def parts(self) -> list[Any]:
        """What the kernels sum over: the unlabeled pairs, then the labeled ones, if any."""
        n, known, mu = len(self.X), self.n_labeled, self.unlabeled_weight
        unlabeled = PairRange(n, known, *self.loss.kernel, weight=mu)
        labeled = PairRange(known, 0, *self.labeled_loss.kernel)
        parts = [unlabeled, labeled] if known > 1 else [unlabeled]
        return [self.kernels.loaded(pairs, self.X) for pairs in parts]

    @cached_property
    def padded_counts(self) -> Array | None:
        """The counts as the kernels of second derivatives read them."""
        return None if self.counts is None else self.kernels.counted(self.counts)

    @cached_property
    def few(self) -> GpuPairs:
        """All points where they are not many; else some of them, each standing for several."""
        n, known = self.X.shape[0], self.n_labeled
        if n <= 1.5 * FEW_POINTS:
            return self
        counts = sample_counts(known, n, FEW_POINTS)
        kept = np.flatnonzero(counts)
        chosen = index_on_device_of(self.X, kept)
        return replace(
            self,
            X=namespace(self.X).take(self.X, chosen, axis=0),
            n_labeled=int(np.count_nonzero(counts[:known])),
            counts=to_device_of(self.X, counts[kept]),
        )


@dataclass(frozen=True, eq=False)
class GpuPass:
    """Losses summed over the pairs of a `GpuPairs` at the points Y, and their derivatives.

    Derivatives are with respect to the factor or the metric.
    """

    pairs: GpuPairs
    Y: Array

    @cached_property
    def sums(self) -> tuple[Array, Array]:
        """On the device: what the totals are made from, and W [Y, 1]."""
        n, rho = self.Y.shape
        totals, summed = self.pairs.kernels.gradients(self._sides, self.pairs.parts, rho + 1)
        return totals, summed[:n, : rho + 1]

    @cached_property
    def _totals(self) -> tuple[float, float]:
        total, excess = self.pairs.kernels.totals(self.pairs.parts, to_host(self.sums[0]))
        return total, excess

    @property
    def total(self) -> float:
        """The sum of the weighted losses."""
        return self._totals[0]

    @property
    def excess(self) -> float:
        """The sum of H(p) - loss over the unlabeled pairs; NaN where it is not known."""
        return self._totals[1]

    @property
    def half_gradient(self) -> FloatArray:
        """Half the gradient with respect to the factor, X'(Deg(W) - W) Y."""
        summed = self.sums[1]
        of_pairs = summed[:, -1:] * self.Y - summed[:, :-1]
        return np.asarray(to_host(self.pairs.X.T @ of_pairs))

    @property
    def gradient(self) -> FloatArray:
        """The gradient with respect to the metric, X'(Deg(W) - W) X.

        With U the strict upper triangle of W, X'WX is X'UX plus its transpose.
        """
        pairs, X = self.pairs, self.pairs.X
        half = 0.5 * (X.T @ (self.sums[1][:, -1:] * X))
        for start in range(0, X.shape[1], GRADIENT_COLUMNS):
            features = slice(start, start + GRADIENT_COLUMNS)
            some = X[:, features]
            Z = pairs.kernels.padded([some])
            product = pairs.kernels.upper_product(self._sides, Z, pairs.parts)
            half[:, features] -= X.T @ product[: len(X), : some.shape[1]]
        return np.asarray(to_host(half + half.T))

    def hessian_product(self, D: FloatArray) -> FloatArray:
        """The derivative of `half_gradient` along D, in single precision."""
        pairs, (n, rho) = self.pairs, self.Y.shape
        E, e = pairs.X @ to_device_of(pairs.X, D), self._direction
        e[:n, :rho] = E
        e[:n, rho] = (self._minus_Y * E).sum(-1)
        sides, counts = self._single_sides, pairs.padded_counts
        W_summed, T_summed = pairs.kernels.hessian_products(sides, e, counts, pairs.parts, rho)
        product = (
            W_summed[:n, -1:] * E - W_summed[:n, :rho]
            + T_summed[:n, rho : rho + 1] * self.Y - T_summed[:n, :rho]
        )  # fmt: skip
        return np.asarray(to_host(pairs.X.T @ product))

    @cached_property
    def _direction(self) -> Array:
        """What a direction is written to, as the kernel of second derivatives reads it."""
        written = 0.0 * self._single_sides[1]
        written[: len(self.Y), -1] = 1.0
        return written

    @cached_property
    def _minus_Y(self) -> Array:
        return -self.Y

    @cached_property
    def _sides(self) -> tuple[Array, Array]:
        left, right = self.pairs.kernels.sides(self.Y, self.pairs.threshold)
        return left, right

    @cached_property
    def _single_sides(self) -> tuple[Array, Array]:
        left, right = self.pairs.kernels.single(self._sides)
        return left, right
