"""The coordinates in which M-steps of one family and one regularizer R are solved and certified."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..engine.basis import WhitenedBasis
from ..engine.frame import Frame
from ..engine.moments import PairMoments, sum_similar
from ..engine.pair_sums import PairSums
from ..engine.sweep import Swept
from ..numerics.checks import FloatArray
from ..penalties.regularizer import Regularizer
from .dual_coordinates import DualCoordinates, dual_coordinates


@dataclass(frozen=True, eq=False)
class Geometry:
    """The coordinates of M-steps with the same pairs, mu and R, whatever their soft labels.

    Attributes
    ----------
    sums : PairSums
    moments : PairMoments
        The moments of the same pairs.
    linear_penalty : Regularizer
        R = lambda*I + manifold term, the two parts kept apart.
    spans_all : bool
        Whether dual points are proven in coordinates of all features, which penalties may feel.
    """

    sums: PairSums
    moments: PairMoments
    linear_penalty: Regularizer
    spans_all: bool = False

    @cached_property
    def basis(self) -> WhitenedBasis:
        """The whitened coordinates in which f is minimized."""
        R = self.linear_penalty.matrix(self.sums.points.shape[1])
        return WhitenedBasis.of(self.moments, R, self.spans_all)

    @cached_property
    def sums_in_basis(self) -> PairSums:
        """The sums over pairs of the points in whitened coordinates."""
        return self.sums.in_coordinates(self.basis.matrix)

    @cached_property
    def similar_in_basis(self) -> FloatArray:
        """The similar pairs' second moment sum_S c_k v v' in whitened coordinates."""
        return sum_similar(self.sums_in_basis).matrix

    @cached_property
    def dual_coordinates(self) -> DualCoordinates | None:
        """The coordinates in which a dual point is proven feasible."""
        return dual_coordinates(self.moments, self.basis, self.linear_penalty, self.spans_all)

    @cached_property
    def dual_sums(self) -> PairSums:
        """The sums over pairs in those coordinates, with bounds on their rounding errors."""
        coordinates, m = self.dual_coordinates, self.sums.points.shape[1]
        return self.sums.framed(
            Frame(np.zeros((m, 0))) if coordinates is None else coordinates.frame
        )

    @cached_property
    def dual_similar(self) -> Swept:
        """The similar pairs' moment sum_S c_k z_k z_k' in those coordinates, and its spread."""
        return sum_similar(self.dual_sums)
