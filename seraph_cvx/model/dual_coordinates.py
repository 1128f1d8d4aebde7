"""Coordinates in which the matrix of a dual point is summed and proven PSD.

The matrix is R + sum_k w_k v_k v_k' with weights w_k of either sign. It is proven to be positive
definite in coordinates z = T'x, where T'(C + R)T is the identity or nearly so; a square T needs no
separate proof: where T'BT is positive definite, T is nonsingular. Two shortcuts:

- With more features than points and R = lambda*I, any points s_i with SS' >= XX' may replace
  the x_i: if lambda*I + S'LS is PSD for the matrix L of the weights, L >= -lambda
  (SS')^{-1}, so X'LX >= -lambda X'(SS')^{-1}X >= -lambda*I.
- With R = 0 and points in general position L itself is proven PSD: S = I.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..numerics.checks import FloatArray, IntArray
from ..numerics.psd_cone import complete_basis, symmetrise
from ..numerics.rounding import FEW_ROUNDINGS, SECOND_ORDER, gamma
from ..numerics.verified_psd import dominating_root
from ..penalties.regulariser import Regulariser
from ..sums.basis import WhitenedBasis
from ..sums.frame import Frame
from ..sums.moments import PairMoments
from ..sums.proven_sums import inverse_factor

MOST_NODES = 1_500
"""The matrix of the weights itself is factored up to this many points."""


@dataclass(frozen=True, eq=False)
class DualCoordinates:
    """The coordinates in which the matrix of a dual point is proven PSD.

    Attributes
    ----------
    frame : Frame
        The coordinates T, and the points if they are not those of the data.
    regulariser : (k, k) array
        T'RT as computed.
    regulariser_spread : (k,) array
        e with T'RT >= `regulariser` - t D for t = sum_a e_a / D_a and any diagonal D.
    """

    frame: Frame
    regulariser: FloatArray
    regulariser_spread: FloatArray

    def regulariser_error(self, diagonal: FloatArray) -> float:
        """The t with T'RT >= `regulariser` - t * Diag(diagonal)."""
        return float(np.sum(self.regulariser_spread / diagonal))


def dual_coordinates(
    moments: PairMoments, basis: WhitenedBasis, penalty: Regulariser, spans_all: bool = False
) -> DualCoordinates | None:
    """Choose the coordinates for pairs and R; None if R = 0 and the features are collinear.

    With `spans_all` they are those of the basis, which is then square.
    """
    n, m = moments.sums.points.shape
    if spans_all:
        return DualCoordinates(Frame(basis.matrix), *penalty.along(basis.matrix))
    varies = _varying_features(moments)
    if penalty.is_zero():
        if basis.matrix.shape[1] == np.count_nonzero(varies):
            return DualCoordinates(Frame(basis.matrix), *penalty.along(basis.matrix))
        return _nodes(n) if n <= MOST_NODES else None
    if m > len(_involved_points(moments)) and penalty.manifold_term is None:
        return _surrogate(moments, penalty)
    R = penalty.matrix(m)
    kept = varies | np.any(R != 0.0, axis=1)  # the others are zero in every sum, and in R
    T = np.zeros((m, np.count_nonzero(kept)))
    T[kept] = complete_basis(basis.matrix[kept], R[np.ix_(kept, kept)])
    return DualCoordinates(Frame(T), *penalty.along(T))


def _involved_points(moments: PairMoments) -> IntArray:
    """The points of the pairs with positive weight."""
    if moments.unlabeled_weight > 0.0:
        return np.arange(moments.sums.n_points)
    return moments.sums.labels.members


def _varying_features(moments: PairMoments) -> NDArray[np.bool_]:
    """The features in which some pair with positive weight differs; the others do not matter."""
    sums = moments.sums
    if moments.unlabeled_weight > 0.0:
        return np.asarray(sums.ranges > 0.0)
    if sums.classes is not None:
        return np.asarray(np.ptp(sums.points[sums.classes.members], axis=0) > 0.0)
    points = sums.points if sums.given is None else sums.given
    i, j = sums.labels.listed.T
    return np.asarray(np.any(points[i] != points[j], axis=0))


def _surrogate(moments: PairMoments, penalty: Regulariser) -> DualCoordinates | None:
    """Replace the points by s_i in R^n with SS' >= XX', in coordinates where C + R = I, nearly."""
    given, involved = moments.sums.given, _involved_points(moments)
    X = (moments.sums.points if given is None else given)[involved]
    X = X - np.mean(X, axis=0)
    n, m = X.shape
    gram = X @ X.T
    squares = np.diag(gram)
    distinct = squares > 0.0
    if not np.any(distinct):  # no two points differ: every sum over pairs is zero
        nothing = np.zeros((0, 0))
        base = np.zeros((moments.sums.n_points, 0))
        return DualCoordinates(Frame(nothing, base), nothing, np.zeros(0))
    error = n * gamma(m + FEW_ROUNDINGS) * SECOND_ORDER * squares[distinct]
    S = dominating_root(gram[np.ix_(distinct, distinct)], error)
    if S is None:
        return None
    base = np.zeros((moments.sums.n_points, len(S)))
    base[involved[distinct]] = S
    moment = moments.summed(replace(moments.sums.on_host, centred=base, given=None))
    moment = symmetrise(moment)
    T = inverse_factor(moment + penalty.trace_weight * np.eye(len(moment)))
    if T is None:
        eigenvalues, vectors = np.linalg.eigh(moment)
        T = vectors / np.sqrt(np.maximum(eigenvalues, 0.0) + penalty.trace_weight)
    return DualCoordinates(Frame(T, base), *penalty.along(T))


def _nodes(n: int) -> DualCoordinates:
    """The coordinates in which the matrix of the weights itself is proven PSD."""
    T = np.eye(n - 1)
    return DualCoordinates(Frame(T, np.eye(n)[:, 1:]), np.zeros((n - 1, n - 1)), np.zeros(n - 1))
