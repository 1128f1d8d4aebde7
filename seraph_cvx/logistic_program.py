"""A sum of logistic terms of pairs plus a linear term: the one function that is minimised.

The M-step (11) and the labeled part of (7) are such functions, and so is each of them in other
coordinates of the data.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from .pair_sums import Block, PairSums, Place, Terms
from .pairs import FloatArray, IntArray
from .posterior import dissimilar_surprise, posterior_similar
from .psd_cone import symmetrise

STACK = 1 << 22
"""Weights held at a time while a Hessian is summed: 32 MiB."""


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
        sum over pairs, so it costs as many sweeps.
        """
        m, rho = L.shape
        rows, columns = (np.asarray(side, dtype=np.int64) for side in np.triu_indices(rho))
        at_once = max(1, STACK // self.sums.largest_place)
        hessian = np.zeros((m, rho, m, rho))
        for start in range(0, len(rows), at_once):
            i, j = rows[start : start + at_once], columns[start : start + at_once]
            stack = self._weighted_sums(L @ L.T, self._curvature_terms(L, i, j))[1]
            hessian[:, i, :, j] = stack
            hessian[:, j, :, i] = stack
        diagonal = np.arange(rho)
        hessian[:, diagonal, :, diagonal] += 2.0 * gradient
        return hessian.reshape(m * rho, m * rho)

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

        totals, pull = self._weighted_sums(A, terms)
        value = float(totals[0]) + float(np.vdot(self.recession, A)) - self.constant
        return value, symmetrise(self.recession - pull)

    def _weighted_sums(self, A: FloatArray, terms: Terms) -> tuple[FloatArray, FloatArray]:
        """Over all pairs, each with its weight c_k."""
        totals, matrix = self.sums.over_labeled([A], terms)
        if self.unlabeled_weight > 0.0:
            more, more_matrix = self.sums.over_unlabeled([A], terms)
            totals = totals + self.unlabeled_weight * more
            matrix = matrix + self.unlabeled_weight * more_matrix
        return totals, matrix

    def _curvature_terms(self, L: FloatArray, i: IntArray, j: IntArray) -> Terms:
        U = (self.sums.points @ L).T

        def differences(place: Place, which: IntArray) -> FloatArray:
            if isinstance(place, Block):
                u = U[which]
                return np.asarray(u[:, place.rows, None] - u[:, None, place.columns])
            first, second = self.sums.labeled_pairs[place].T
            return np.asarray(U[which][:, first] - U[which][:, second])

        def terms(place: Place, d: FloatArray) -> tuple[list[float], FloatArray]:
            d -= self.threshold
            curvature = 4.0 * expit(d) * expit(-d)
            return [0.0], differences(place, i) * differences(place, j) * curvature

        return terms
