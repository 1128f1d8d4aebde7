"""What the M-steps of the same pairs share: sums over pairs that no soft label enters."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ..engine.coordinates import Coordinates
from ..engine.moments import PairMoments, WhitenedBasis, sum_similar
from ..engine.pair_sums import PairSums
from ..engine.passes import Swept
from ..engine.regularizer import Regularizer
from ..numerics.checks import FloatArray, check_number
from ..numerics.psd_cone import check_metric
from ..pairs.pair_set import PairSet
from .dual_coordinates import DualCoordinates, dual_coordinates
from .soft_labels import SoftLabels, SoftLabelSums, sum_soft_labels

MOST_KEPT = 4
"""Values of lambda whose coordinates are kept at a time."""


@dataclass(frozen=True, eq=False)
class Geometry:
    """The coordinates of M-steps with the same pairs, mu and R, whatever their soft labels."""

    sums: PairSums
    moments: PairMoments
    linear_penalty: Regularizer
    spans_all: bool = False  # dual points are proven in coordinates of all features

    @cached_property
    def basis(self) -> WhitenedBasis:
        """The whitened coordinates in which f is minimized."""
        return WhitenedBasis.of(self.moments, self.linear_penalty, self.spans_all)

    @cached_property
    def sums_in_basis(self) -> PairSums:
        """The sums over pairs of the points in whitened coordinates."""
        return self.sums.with_point_coordinates(self.basis.matrix)

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
        nothing = Coordinates(np.zeros((self.sums.points.shape[1], 0)))
        return self.sums.with_matrix_coordinates(self.dual_coordinates or nothing)

    @cached_property
    def dual_similar(self) -> Swept:
        """The similar pairs' moment sum_S c_k z_k z_k' in those coordinates, and its spread."""
        return sum_similar(self.dual_sums)


@dataclass(frozen=True, eq=False)
class MStepFamily:
    """The pairs, mu, eta and manifold term of M-steps with any soft labels and trace weight."""

    pairs: PairSet
    mu: float
    threshold: float
    manifold_term: FloatArray | None  # nu*X'LX
    n_jobs: int | None
    sums: PairSums
    _geometries: dict[tuple[float, bool, bool], Geometry] = field(default_factory=dict, repr=False)
    _label_sums: list[tuple[SoftLabels, PairMoments, SoftLabelSums]] = field(
        default_factory=list, repr=False
    )

    @classmethod
    def of(
        cls,
        pairs: PairSet,
        unlabeled_weight: float | str,
        threshold: float,
        manifold_term: FloatArray | None,
        n_jobs: int | None,
        known: MStepFamily | None = None,
    ) -> MStepFamily:
        """The family of these parameters, which are checked: `known` where it is that one."""
        mu = pairs.resolve_unlabeled_weight(unlabeled_weight)
        eta = check_number(threshold, "threshold", 0.0, strict=True)
        if manifold_term is not None:
            m = pairs.n_features
            manifold_term = check_metric(manifold_term, m, "manifold_term", repair=0.0)
        has_sums = known is not None and known.pairs is pairs and known.n_jobs == n_jobs
        sums = known.sums if known is not None and has_sums else PairSums.of(pairs, n_jobs)
        made = cls(pairs, mu, eta, manifold_term, n_jobs, sums)
        return known if known is not None and has_sums and known.is_same(made) else made

    def is_same(self, other: MStepFamily) -> bool:
        """Whether the M-steps of both differ only in soft labels, trace weight and threads."""
        mine, term = self.manifold_term, other.manifold_term
        has_term = mine is term if mine is None or term is None else np.array_equal(mine, term)
        same = self.pairs is other.pairs and self.mu == other.mu
        return has_term and same and self.threshold == other.threshold

    def geometry(
        self, trace_weight: float, on_host: bool = False, spans_all: bool = False
    ) -> Geometry:
        """The coordinates for this lambda; `on_host`: sums by threads of this process alone."""
        key = trace_weight, on_host, spans_all
        if key not in self._geometries:
            penalty = Regularizer(trace_weight, self.manifold_term)
            sums = self.sums.on_host if on_host else self.sums
            moments = self._moments_for(penalty, sums)
            for other in list(self._geometries)[: 1 - MOST_KEPT]:
                del self._geometries[other]
            self._geometries[key] = Geometry(sums, moments, penalty, spans_all)
        return self._geometries[key]

    def soft_label_sums(self, source: SoftLabels, moments: PairMoments) -> SoftLabelSums:
        """The sums over these soft labels; those of the last ones are kept."""
        for known, its_moments, sums in self._label_sums:
            if its_moments is moments and known.is_same(source):
                return sums
        sums = sum_soft_labels(source, moments.whitened_sums)
        self._label_sums[:] = [(source, moments, sums)]
        return sums

    def _moments_for(self, R: Regularizer, sums: PairSums) -> PairMoments:
        """The second moments of the pairs, with a whitening that suits R."""
        for geometry in self._geometries.values():
            is_like = geometry.sums.remote is sums.remote
            if is_like and geometry.moments.is_valid_for(R):
                return geometry.moments
        return PairMoments(sums, self.mu, R)
