"""A sum of logistic terms of pairs plus a linear term: the one function that is minimised.

The M-step (11) and the labeled part of (7) are such functions, and so is each of them in other
coordinates of the data.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .pair_sums import PairSums, Place
from .pairs import FloatArray
from .posterior import dissimilar_surprise, posterior_similar
from .psd_cone import symmetrise


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

    def in_coordinates(self, T: FloatArray) -> LogisticProgram:
        """The same program for B, where A = T B T'."""
        return LogisticProgram(
            self.sums.in_coordinates(T),
            self.unlabeled_weight,
            self.threshold,
            symmetrise(T.T @ self.recession @ T),
            self.constant,
        )

    def _evaluate(self, A: FloatArray, with_gradient: bool) -> tuple[float, FloatArray]:
        def terms(place: Place, d: FloatArray) -> tuple[list[float], FloatArray | None]:
            d -= self.threshold
            total = float(np.sum(dissimilar_surprise(d)))
            return [total], posterior_similar(d) if with_gradient else None

        totals, pull = self.sums.over_labeled([A], terms)
        if self.unlabeled_weight > 0.0:
            more, more_pull = self.sums.over_unlabeled([A], terms)
            totals += self.unlabeled_weight * more
            pull += self.unlabeled_weight * more_pull
        value = float(totals[0]) + float(np.vdot(self.recession, A)) - self.constant
        return value, symmetrise(self.recession - pull)
