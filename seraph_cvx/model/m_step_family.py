"""What the M-steps of the same pairs share: sums that no soft label enters, and coordinates.

The matrix of a dual point, R + sum_k w_k v_k v_k' with weights w_k of either sign, is proven to be
positive definite in coordinates z = T'x, where T'(C + R)T is the identity or nearly so; a square T
needs no separate proof: where T'BT is positive definite, T is nonsingular. Two shortcuts:

- With more features than points and R = lambda*I, any points s_i with SS' >= XX' may replace
  the x_i: if lambda*I + S'LS is PSD for the matrix L of the weights, L >= -lambda
  (SS')^{-1}, so X'LX >= -lambda X'(SS')^{-1}X >= -lambda*I.
- With R = 0 and points in general position L itself is proven PSD: S = I.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..engine.distances import Coordinates
from ..engine.moments import PairMoments, Regularizer, WhitenedBasis, each_similar
from ..engine.pair_sums import PairSums
from ..engine.passes import Swept
from ..numerics.checks import FloatArray, IntArray, check_number
from ..numerics.exact_rank import component_roots
from ..numerics.psd_cone import check_metric, complete_basis, inverse_factor, symmetrize
from ..pairs.pair_set import PairSet
from ..proof.rounding import FEW_ROUNDINGS, SECOND_ORDER, UNDERFLOW_ENTRY, gamma
from ..proof.verified_psd import dominating_root
from .posterior import SoftLabels, SoftLabelSums

MOST_NODES = 1_500
"""The matrix of the weights itself is factored up to this many points."""

LEAST_NORMAL = float(np.finfo(np.float64).tiny)
"""A smaller trace weight, in the unit of the points, would be rounded."""


@dataclass(frozen=True, eq=False)
class DualCoordinates(Coordinates):
    """The coordinates in which the matrix of a dual point is proven PSD."""

    regularizer: FloatArray = field(kw_only=True)  # T'RT as computed
    # e with T'RT >= `regularizer` - t D for t = sum_a e_a / D_a and any diagonal D
    regularizer_spread: FloatArray = field(kw_only=True)
    # the power of two by which T is larger than the whitened basis, where it is made of that
    scale: float = field(default=1.0, kw_only=True)

    def regularizer_error(self, diagonal: FloatArray) -> float:
        """The t with T'RT >= `regularizer` - t * Diag(diagonal)."""
        return float(np.sum(self.regularizer_spread / diagonal))


def _coordinates(T: FloatArray, base: FloatArray | None, penalty: Regularizer) -> DualCoordinates:
    matrix, spread = penalty.along(T)
    return DualCoordinates(T, base, regularizer=matrix, regularizer_spread=spread)


def _without_regularizer(T: FloatArray, base: FloatArray) -> DualCoordinates:
    k = T.shape[1]
    return DualCoordinates(T, base, regularizer=np.zeros((k, k)), regularizer_spread=np.zeros(k))


def _involved_points(moments: PairMoments) -> IntArray:
    """The points of the pairs with positive weight."""
    if moments.unlabeled_weight > 0.0:
        return np.arange(moments.sums.n_points)
    return moments.sums.labels.members


def _varying_features(moments: PairMoments) -> NDArray[np.bool_]:
    """The features in which some pair with positive weight differs; the others do not matter."""
    sums = moments.sums
    if moments.unlabeled_weight > 0.0:
        return np.asarray(np.ptp(sums.points, axis=0) > 0.0)
    if sums.class_layout is not None:
        return np.asarray(np.ptp(sums.given[sums.labels.members], axis=0) > 0.0)
    i, j = sums.labels.listed.T
    return np.asarray(np.any(sums.given[i] != sums.given[j], axis=0))


def _surrogate(moments: PairMoments, penalty: Regularizer, scale: float) -> DualCoordinates | None:
    """Replace the points by s_i in R^n with SS' >= XX', in coordinates where C + R = I, nearly.

    The unit of length is that of the points, so that no square of it underflows.
    """
    involved = _involved_points(moments)
    X = moments.sums.given[involved]
    X = X - np.mean(X, axis=0)
    n, m = X.shape
    distinct = np.any(X != 0.0, axis=1)
    if not np.any(distinct):  # no two points differ: every sum over pairs is zero
        nothing = np.zeros((0, 0))
        base = np.zeros((moments.sums.n_points, 0))
        return _without_regularizer(nothing, base)
    exponent = math.frexp(float(np.max(np.abs(X))))[1]
    weight = float(np.ldexp(penalty.trace_weight, -2 * exponent))
    if not LEAST_NORMAL <= weight < math.inf:
        return None
    X = np.ldexp(X[distinct], -exponent)
    gram = X @ X.T
    error = n * (gamma(m + FEW_ROUNDINGS) * SECOND_ORDER * np.diag(gram) + UNDERFLOW_ENTRY)
    S = dominating_root(gram, error)
    if S is None:
        return None
    base = np.zeros((moments.sums.n_points, len(S)))
    base[involved[distinct]] = S
    moment = symmetrize(moments.summed(moments.sums.of_points(base)))
    T = inverse_factor(moment + weight * np.eye(len(moment)))
    if T is None:
        eigenvalues, vectors = np.linalg.eigh(moment)
        T = vectors / np.sqrt(np.maximum(eigenvalues, 0.0) + weight)
    return _coordinates(T * scale, base, Regularizer(weight, None))


def _nodes(moments: PairMoments) -> DualCoordinates:
    """The coordinates in which the matrix of the weights itself is proven PSD.

    There is one for each point but the first of each component of the graph of the pairs, along
    which the matrix is singular.
    """
    n = moments.sums.n_points
    roots = np.zeros(n, dtype=np.int64)
    if moments.unlabeled_weight == 0.0:
        roots = component_roots(n, moments.sums.labels.listed)
    base = np.delete(np.eye(n), roots, axis=1)
    k = base.shape[1]
    return _without_regularizer(np.eye(k), base)


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
        return self.sums_in_basis.over_labeled([], each_similar).matrix

    @cached_property
    def dual_coordinates(self) -> DualCoordinates | None:
        """The coordinates in which dual points are proven; None if R = 0 and nothing spans them.

        With `spans_all` they are those of the basis, which is then square. All are scaled by a
        power of two, so that weighted pairs are of the size of the largest weight: nothing
        underflows before it is multiplied by that.
        """
        moments, basis, penalty = self.moments, self.basis, self.linear_penalty
        n, m = moments.sums.points.shape
        scale = 2.0 ** (math.frexp(moments.largest_weight)[1] // 2)
        if self.spans_all:
            return replace(_coordinates(basis.matrix * scale, None, penalty), scale=scale)
        varies = _varying_features(moments)
        if penalty.is_zero():
            if basis.matrix.shape[1] == np.count_nonzero(varies):
                return _coordinates(basis.matrix * scale, None, penalty)
            return _nodes(moments) if n <= MOST_NODES else None
        if m > len(_involved_points(moments)) and penalty.manifold_term is None:
            return _surrogate(moments, penalty, scale)
        R = penalty.matrix(m)
        kept = varies | np.any(R != 0.0, axis=1)  # the others are zero in every sum, and in R
        T = np.zeros((m, np.count_nonzero(kept)))
        T[kept] = complete_basis(basis.matrix[kept], R[np.ix_(kept, kept)]) * scale
        return _coordinates(T, None, penalty)

    @cached_property
    def dual_sums(self) -> PairSums:
        """The sums over pairs in those coordinates, with bounds on their rounding errors."""
        nothing = Coordinates(np.zeros((self.sums.points.shape[1], 0)))
        return self.sums.with_matrix_coordinates(self.dual_coordinates or nothing)

    @cached_property
    def dual_similar(self) -> Swept:
        """The similar pairs' moment sum_S c_k z_k z_k' in those coordinates, and its spread."""
        return self.dual_sums.over_labeled([], each_similar)


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
            moments = PairMoments(sums, self.mu, penalty)
            for known in self._geometries.values():
                of_shape = known.moments.regularizer.has_shape_of(penalty)
                if known.sums.remote is not sums.remote:
                    continue
                # the whitening is of R only where some direction has no spread, and of its shape
                if of_shape or len(known.moments.whitening) == known.moments.whitening.shape[1]:
                    moments = known.moments
                    break
            for other in list(self._geometries)[:-3]:  # four values of lambda are kept
                del self._geometries[other]
            self._geometries[key] = Geometry(sums, moments, penalty, spans_all)
        return self._geometries[key]

    def soft_label_sums(self, source: SoftLabels, moments: PairMoments) -> SoftLabelSums:
        """The sums over these soft labels; those of the last ones are kept."""
        for known, its_moments, sums in self._label_sums:
            if its_moments is moments and known.is_same(source):
                return sums
        pairs = moments.sums.with_matrix_coordinates(moments.whitening)
        if source.metric is None and source.table is None:  # the paper's start, q(+1) = 0
            sums = SoftLabelSums(np.zeros((moments.whitening.shape[1],) * 2), 0.0)
        else:
            metrics = [] if source.metric is None else [source.metric]
            totals, matrix, _ = pairs.over_unlabeled(metrics, source)
            sums = SoftLabelSums(matrix, float(totals[0]))
        self._label_sums[:] = [(source, moments, sums)]
        return sums
