"""Passes over all pairs with respect to a factor L of the metric, wherever they are made."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from ..numerics.checks import FloatArray
from .cluster_sums import ClusterSums, FacePass, Losses
from .face_sums import PairPass


class FactorPass(Protocol):
    """Losses summed over all pairs at the points XL, and their first derivatives."""

    @property
    def total(self) -> float:
        """The sum of the weighted losses."""

    @property
    def excess(self) -> float:
        """The sum of H(p) - loss over the unlabeled pairs; NaN where it is not known."""

    @property
    def slope(self) -> FloatArray:
        """Half the gradient with respect to the factor: sum_k w_k v_k v_k' L."""

    @property
    def gradient(self) -> FloatArray:
        """The gradient with respect to the metric: sum_k w_k v_k v_k'."""


class Bending(Protocol):
    """Second derivatives of sums over pairs with respect to a factor and its metric."""

    def bent(self, D: FloatArray) -> FloatArray:
        """The derivative of `FactorPass.slope` along D."""

    def curvature(self, S: FloatArray) -> float:
        """The second derivative of the sum along SS'."""


@dataclass(frozen=True, eq=False)
class OnHost:
    """Points in memory, and a pass over their pairs."""

    X: FloatArray
    found: PairPass

    @property
    def total(self) -> float:
        """The sum of the weighted losses."""
        return self.found.total

    @property
    def excess(self) -> float:
        """The sum of H(p) - loss over the unlabeled pairs; NaN where it is not known."""
        return self.found.excess

    @property
    def slope(self) -> FloatArray:
        """Half the gradient with respect to the factor."""
        return np.asarray(self.X.T @ self.found.pull)

    @property
    def gradient(self) -> FloatArray:
        """The gradient with respect to the metric."""
        return np.asarray(self.X.T @ self.found.laplacian(self.X))

    def bent(self, D: FloatArray) -> FloatArray:
        """The derivative of `slope` along D."""
        return np.asarray(self.X.T @ self.found.bent(self.X @ D))

    def curvature(self, S: FloatArray) -> float:
        """The second derivative of the sum along SS'."""
        return self.found.curvature(self.X @ S)


@dataclass(frozen=True, eq=False)
class OnCluster:
    """A pass by the workers of a cluster, and another one if the gradient is asked for."""

    remote: ClusterSums
    L: FloatArray
    losses: Losses

    @property
    def total(self) -> float:
        """The sum of the weighted losses."""
        return self._found.total

    @property
    def excess(self) -> float:
        """The sum of H(p) - loss over the unlabeled pairs; NaN where it is not known."""
        return self._found.excess

    @property
    def slope(self) -> FloatArray:
        """Half the gradient with respect to the factor."""
        return self._found.matrix

    @property
    def gradient(self) -> FloatArray:
        """The gradient with respect to the metric."""
        return self.remote.pass_at(self.L, self.losses, with_gradient=True).matrix

    @cached_property
    def _found(self) -> FacePass:
        return self.remote.pass_at(self.L, self.losses)
