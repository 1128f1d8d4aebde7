"""The linear penalty <R, A>: the trace penalty and the manifold term, the two parts kept apart."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..numerics.checks import FloatArray
from ..numerics.psd_cone import congruence, symmetrize, to_unit_size
from ..numerics.rounding import FEW_ROUNDINGS, SECOND_ORDER, entry_bound, gamma
from ..numerics.verified_psd import is_proven_positive_definite


@dataclass(frozen=True, eq=False)
class Regularizer:
    """The penalty <R, A> with R = trace_weight * I + manifold_term, the given doubles."""

    trace_weight: float
    manifold_term: FloatArray | None

    def matrix(self, n_features: int) -> FloatArray:
        """The matrix R of the penalty."""
        R = self.trace_weight * np.eye(n_features)
        return R if self.manifold_term is None else R + self.manifold_term

    def times(self, T: FloatArray) -> FloatArray:
        """The product R T, without the matrix R where it is a multiple of the identity."""
        product = self.trace_weight * T
        return product if self.manifold_term is None else product + self.manifold_term @ T

    def has_shape_of(self, other: Regularizer) -> bool:
        """Whether R is a positive multiple of the other's, nearly, or both are zero."""
        if self.is_zero() or other.is_zero():
            return self.is_zero() and other.is_zero()
        terms = [R.manifold_term for R in (self, other) if R.manifold_term is not None]
        if not terms:
            return True
        mine, its = (R.matrix(len(terms[0])) for R in (self, other))
        mine, its = mine / np.max(np.abs(mine)), its / np.max(np.abs(its))
        return bool(np.allclose(mine, its, rtol=0, atol=1e-15))

    def is_zero(self) -> bool:
        """Whether the regularizer R is zero."""
        term = self.manifold_term
        return self.trace_weight == 0.0 and (term is None or not np.any(term))

    def is_proven_psd(self) -> bool:
        """Whether R is proven PSD."""
        if self.manifold_term is None:
            return True
        R = self.trace_weight * np.eye(len(self.manifold_term)) + self.manifold_term
        used = np.any(R != 0.0, axis=1)
        error = 2.0 * gamma(FEW_ROUNDINGS) * np.abs(np.diag(R))
        return is_proven_positive_definite(R[np.ix_(used, used)], error[used])

    def along(self, T: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute T'RT, and e with T'RT >= that - t D for t = sum_a e_a / D_a."""
        slack = gamma(2 * len(T) + FEW_ROUNDINGS) * SECOND_ORDER
        R = congruence(T, self.trace_weight * np.eye(len(T)))
        spread = slack * np.sum(np.square(math.sqrt(self.trace_weight) * T), axis=0)
        if self.manifold_term is not None:
            R = R + congruence(T, self.manifold_term)
            spread = spread + slack * spread_along(T, self.manifold_term)
        return symmetrize(R), spread


def spread_along(T: FloatArray, sizes: FloatArray) -> FloatArray:
    """For |E_ij| <= |`sizes`_ij|, find e with T'ET >= -t D, t = sum_a e_a / D_a, D diagonal."""
    sizes, exponent = to_unit_size(sizes)
    lengths, worst = entry_bound(sizes)
    lengths = np.ldexp(lengths, exponent // 2) * math.sqrt(1.0 + exponent % 2)
    return np.asarray(SECOND_ORDER * np.square(math.sqrt(worst) * (lengths @ np.abs(T))))
