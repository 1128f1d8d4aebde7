"""The linear penalty <R, A>: the trace penalty and the manifold term, the two parts kept apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..numerics.checks import FloatArray
from ..numerics.psd_cone import symmetrise
from ..numerics.rounding import FEW_ROUNDINGS, SECOND_ORDER, entry_bound, gamma
from ..numerics.verified_psd import is_proven_positive_definite


@dataclass(frozen=True, eq=False)
class Regulariser:
    """The penalty <R, A> with R = trace_weight * I + manifold_term, the given doubles."""

    trace_weight: float
    manifold_term: FloatArray | None

    def matrix(self, n_features: int) -> FloatArray:
        """The matrix R of the penalty."""
        R = self.trace_weight * np.eye(n_features)
        return R if self.manifold_term is None else R + self.manifold_term

    def is_zero(self) -> bool:
        """Whether the regulariser R is zero."""
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
        size = np.abs(T)
        R = self.trace_weight * (T.T @ T)
        spread = gamma(len(T) + FEW_ROUNDINGS) * self.trace_weight * np.sum(size * size, axis=0)
        if self.manifold_term is not None:
            R = R + T.T @ self.manifold_term @ T
            lengths, worst = entry_bound(self.manifold_term)
            slack = gamma(2 * len(T) + FEW_ROUNDINGS)
            spread = spread + slack * worst * np.square(lengths @ size)
        return symmetrise(R), spread * SECOND_ORDER
