"""Sums over pairs of the points Y = XL, along the face of the cone that a factor L spans.

With weights w_k = c_k phi'(s_k) and W their symmetric matrix, sum_k w_k v_k v_k' L is
X'(Deg(W) - W) Y. With t_k = 2 c_k phi''(s_k) (y_i - y_j).(e_i - e_j), a direction E = XD bends it
by X'[(Deg(W) - W) E + (Deg(T) - T) Y]. So a pass costs n^2 rho, not n^2 m, and no pair is listed
but where the user did.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from ..numerics.arrays import Array
from ..numerics.checks import FloatArray

EXCLUDED_SCORE = 300.0
"""The score of what is no pair: every loss and its derivatives vanish at it, below 1e-130."""


class LossSums(NamedTuple):
    """The sum of a loss phi over all scores, and phi' and phi'' of each.

    `excess` is the sum of H(p) - phi(s), where a loss knows it at little cost: what the paper's
    objective (7) has more.
    """

    total: float
    slope: FloatArray
    bend: FloatArray
    excess: float = np.nan


class PairLoss(Protocol):
    """A loss phi of the score s of a pair, with its first two derivatives."""

    @property
    def kernel(self) -> tuple[str, float]:
        """The name of the loss among the GPU's kernels, and its parameter."""

    def value(self, s: FloatArray) -> FloatArray:
        """The loss phi at each score."""

    def sums(self, s: FloatArray) -> LossSums:
        """The sum of phi, and both derivatives of each, by one exponential a score."""

    def swept(
        self, d: Array, threshold: float, with_slope: bool, weights: Array | None
    ) -> tuple[Any, Array | None]:
        """The sum of w phi, and each w phi', for squared distances of any array library."""


class PairPass(Protocol):
    """Losses summed over pairs at the points Y, and their derivatives at Y."""

    @property
    def total(self) -> float:
        """The sum of the weighted losses."""

    @property
    def excess(self) -> float:
        """The sum of H(p) - phi over the unlabeled pairs; NaN where it is not known."""

    @property
    def pull(self) -> FloatArray:
        """Half the gradient of the sum with respect to Y: (Deg(W) - W) Y."""

    def laplacian(self, Z: FloatArray) -> FloatArray:
        """The Laplacian of the weights W, applied to Z: (Deg(W) - W) Z."""

    def bent(self, E: FloatArray) -> FloatArray:
        """The derivative of `pull` along E: (Deg(W) - W) E + (Deg(T) - T) Y."""

    def bent_weights(self, X: FloatArray, d: FloatArray) -> FloatArray:
        """Second derivatives with respect to weights of features, along d.

        sum_k c_k phi''(s_k) (sum_a d_a v_ka^2) v_kb^2 for each feature b of the points X.
        """

    def curvature(self, E: FloatArray) -> float:
        """The second derivative where squared distances grow as |e_i - e_j|^2.

        It is the sum of c phi'' |e_i - e_j|^4.
        """


class FacePairs(Protocol):
    """Weighted pairs with their losses, to be summed over at any points Y."""

    def at(self, Y: FloatArray, threshold: float, keep: bool = True) -> PairPass:
        """Pass over them; `keep` what second derivatives need, which is as large as the pairs."""


class Bending(Protocol):
    """Second derivatives of sums over pairs with respect to a factor and its metric."""

    def bent(self, D: FloatArray) -> FloatArray:
        """The derivative along D of half the gradient with respect to the factor."""

    def curvature(self, S: FloatArray) -> float:
        """The second derivative of the sum along SS'."""


class FactorPass(NamedTuple):
    """A pass over the pairs of points in memory, its derivatives those at a factor L."""

    X: FloatArray
    at_points: PairPass

    @property
    def slope(self) -> FloatArray:
        """Half the gradient with respect to the factor: sum_k w_k v_k v_k' L."""
        return np.asarray(self.X.T @ self.at_points.pull)

    @property
    def gradient(self) -> FloatArray:
        """The gradient with respect to the metric: sum_k w_k v_k v_k'."""
        return np.asarray(self.X.T @ self.at_points.laplacian(self.X))

    def bent(self, D: FloatArray) -> FloatArray:
        """The derivative of `slope` along D."""
        return np.asarray(self.X.T @ self.at_points.bent(self.X @ D))

    def curvature(self, S: FloatArray) -> float:
        """The second derivative of the sum along SS'."""
        return self.at_points.curvature(self.X @ S)
