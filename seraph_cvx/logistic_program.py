"""A sum of logistic terms of pairs plus a linear term: the one function that is minimised.

The M-step (11) and the labeled part of (7) are such functions, and so is each of them in other
coordinates of the data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .checks import FloatArray
from .pair_sums import Block, PairSums, Place, Terms
from .posterior import posterior_variance, surprise_and_posterior
from .psd_cone import symmetrise

SAMPLE = 512
"""Points whose pairs a Hessian is summed over, where there are more."""


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
        g is the `gradient` of f at LL'. Each of the rho(rho + 1)/2 products u_ki u_kj weights one
        sum over pairs, so it costs as many sweeps; beyond SAMPLE points the sum over the unlabeled
        pairs is estimated from those of SAMPLE random points, which changes the steps of a Newton
        method but not the point they end at.
        """
        m, rho = L.shape
        A = L @ L.T
        stack = self.sums.over_labeled([A], self._curvature_terms(self.sums, L))[1]
        if self.unlabeled_weight > 0.0:
            sums, weight = self._sampled_sums
            more = sums.over_unlabeled([A], self._curvature_terms(sums, L))[1]
            stack = stack + weight * more
        i, j = np.triu_indices(rho)
        hessian = np.zeros((m, rho, m, rho))
        hessian[:, i, :, j] = stack
        hessian[:, j, :, i] = stack
        diagonal = np.arange(rho)
        hessian[:, diagonal, :, diagonal] += 2.0 * gradient
        return hessian.reshape(m * rho, m * rho)

    def value_tangent_and_pull(
        self, A: FloatArray, sums: PairSums
    ) -> tuple[float, float, FloatArray]:
        """f(A), f(A) - <grad f(A), A>, and sum_k c_k sigma(-s_k) v_k v_k' in the axes of `sums`.

        The second is sum_k c_k [log(1 + e^{-s_k}) + sigma(-s_k) v_k'Av_k] - constant: no
        difference of large numbers.
        """

        def terms(place: Place, d: FloatArray) -> tuple[list[float], FloatArray]:
            distances = d.copy()
            weights = self.sums.confidence_at(place)
            total, posterior = surprise_and_posterior(d, self.threshold, True, weights)
            similar = np.asarray(posterior)
            return [total, float(np.vdot(similar, distances))], similar

        totals, pull = self._weighted_sums(A, terms, sums)
        value = float(totals[0]) + float(np.vdot(self.recession, A)) - self.constant
        return value, float(totals[0] + totals[1]) - self.constant, pull

    def _evaluate(self, A: FloatArray, with_gradient: bool) -> tuple[float, FloatArray]:
        totals, pull = self._weighted_sums(A, self._logistic_terms(with_gradient), self.sums)
        value = float(totals[0]) + float(np.vdot(self.recession, A)) - self.constant
        return value, symmetrise(self.recession - pull)

    def _logistic_terms(self, with_gradient: bool) -> Terms:
        def terms(place: Place, d: FloatArray) -> tuple[list[float], FloatArray | None]:
            weights = self.sums.confidence_at(place)
            total, similar = surprise_and_posterior(d, self.threshold, with_gradient, weights)
            return [total], similar

        return terms

    def _weighted_sums(
        self, A: FloatArray, terms: Terms, sums: PairSums
    ) -> tuple[FloatArray, FloatArray]:
        """Over all pairs, each with its weight c_k."""
        totals, matrix = sums.over_labeled([A], terms)
        if self.unlabeled_weight > 0.0:
            more, more_matrix = sums.over_unlabeled([A], terms)
            totals = totals + self.unlabeled_weight * more
            matrix = matrix + self.unlabeled_weight * more_matrix
        return totals, matrix

    @cached_property
    def _sampled_sums(self) -> tuple[PairSums, float]:
        """The unlabeled pairs that a Hessian looks at, and the weight of each."""
        if len(self.sums.points) <= SAMPLE:
            return self.sums, self.unlabeled_weight
        sample, stands_for = self.sums.thinned(SAMPLE)
        return sample, self.unlabeled_weight * stands_for

    def _curvature_terms(self, sums: PairSums, L: FloatArray) -> Terms:
        """The weights 4 sigma(s) sigma(-s) u_i u_j, i <= j, where u = L'v."""
        U = (sums.points @ L).T

        def differences(place: Place) -> list[FloatArray]:
            if isinstance(place, Block):
                return [u[place.rows, None] - u[place.columns] for u in U]
            first, second = sums.labeled_pairs[place].T
            return [u[first] - u[second] for u in U]

        def weights(place: Place, curvature: FloatArray) -> Iterator[FloatArray]:
            u = differences(place)
            for i in range(len(u)):
                weighted = curvature * u[i]
                for j in range(i, len(u)):
                    yield weighted * u[j]

        def terms(place: Place, d: FloatArray) -> tuple[list[float], Iterator[FloatArray]]:
            curvature = 4.0 * posterior_variance(d - self.threshold)
            return [0.0], weights(place, sums.weighed(place, curvature))

        return terms
