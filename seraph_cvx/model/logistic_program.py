"""A sum of logistic terms of pairs plus a linear term: the one function that is minimised.

The M-step (11) and the labeled part of (7) are such functions, and so is each of them in other
coordinates of the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..numerics.arrays import Array
from ..numerics.checks import FloatArray
from ..numerics.psd_cone import symmetrise
from ..sums.blocks import PairBatch
from ..sums.pair_sums import PairSums
from .curvature import Curvature
from .posterior import surprise_and_posterior


@dataclass(frozen=True)
class LogisticTerms:
    """log(1 + e^{-s}) and, as weights, sigma(-s)."""

    threshold: float
    with_weights: bool

    def __call__(self, batch: PairBatch, d: Array) -> tuple[list[Any], Array | None]:
        """Summed over a place."""
        total, similar = surprise_and_posterior(
            d, self.threshold, self.with_weights, batch.confidence
        )
        return [total], similar


@dataclass(frozen=True, eq=False)
class LogisticProgram:
    """f(A) = sum_k c_k log(1 + e^{-s_k(A)}) + <M, A> - constant, in one set of coordinates."""

    sums: PairSums
    unlabeled_weight: float
    threshold: float
    recession: FloatArray
    constant: float

    def value(self, A: FloatArray) -> float:
        """f(A)."""
        return self._evaluate(A, with_gradient=False)[0]

    def value_and_gradient(self, A: FloatArray) -> tuple[float, FloatArray]:
        """f(A) and M - sum_k c_k sigma(-s_k) v_k v_k', in one sweep."""
        return self._evaluate(A, with_gradient=True)

    def factor_hessian(self, L: FloatArray, gradient: FloatArray) -> FloatArray:
        """The Hessian of L -> f(LL') at an (m, rho) factor L, entries of L taken row by row.

        4 sum_k c_k sigma(s_k) sigma(-s_k) (v_k u_k')(v_k u_k')' + 2 g x I, where u_k = L'v_k and
        g is the `gradient` of f at LL'. Where there are many unlabeled pairs the sum over them is
        estimated, which changes the steps of a Newton method but not the point they end at.
        """
        m, rho = L.shape
        curvature = self.curvature
        hessian = curvature.over_labeled(L, self.threshold)
        if self.unlabeled_weight > 0.0:
            hessian += self.unlabeled_weight * curvature.over_unlabeled(L, self.threshold)
        diagonal = np.arange(rho)
        hessian = hessian.reshape(m, rho, m, rho)
        hessian[:, diagonal, :, diagonal] += 2.0 * gradient
        return hessian.reshape(m * rho, m * rho)

    def _evaluate(self, A: FloatArray, with_gradient: bool) -> tuple[float, FloatArray]:
        terms = LogisticTerms(self.threshold, with_gradient)
        totals, pull, _ = self.sums.over_labeled([A], terms)
        if self.unlabeled_weight > 0.0:
            more, more_pull, _ = self.sums.over_unlabeled([A], terms)
            totals = totals + self.unlabeled_weight * more
            pull = pull + self.unlabeled_weight * more_pull
        value = float(totals[0]) + float(np.vdot(self.recession, A)) - self.constant
        return value, symmetrise(self.recession - pull)

    @cached_property
    def curvature(self) -> Curvature:
        """How the terms bend."""
        return Curvature(self.sums)
