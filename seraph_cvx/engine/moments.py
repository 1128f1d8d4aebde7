"""What no soft label enters: the linear penalty R, second moments of pairs, and the whitening."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy

from ..numerics.arrays import Array, namespace, to_host
from ..numerics.checks import FloatArray, read_only
from ..numerics.psd_cone import complete_basis, congruence, symmetrize, to_unit_size, whiten
from ..pairs.data_warnings import clip_far_values
from ..proof.rounding import FEW_ROUNDINGS, SECOND_ORDER, entry_bound, gamma
from ..proof.verified_psd import is_proven_positive_definite
from .distances import PairBatch, PairTerms, Terms
from .pair_sums import PairSums


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
    return SECOND_ORDER * np.square(math.sqrt(worst) * (lengths @ np.abs(T)))


LIKE = 1e-6
"""Features count as being of one scale where no spread is below this share of the largest, and
differences as independent where none has less than this share that the others do not explain."""


@dataclass(frozen=True, eq=False)
class PairMoments:
    """Second moments of pairs, and other sums that no soft label enters.

    C = sum_k c_k v_k v_k', with c_k the confidence of a labeled pair, mu for any other.
    """

    sums: PairSums
    unlabeled_weight: float  # mu
    regularizer: Regularizer  # R, of which the null space and the shape matter, not the size

    @property
    def largest_weight(self) -> float:
        """The largest weight of a pair, or more."""
        c = self.sums.labels.confidence
        of_labeled = 1.0 if c is None else float(np.max(c, initial=0.0))
        return max(of_labeled, self.unlabeled_weight)

    @cached_property
    def similar(self) -> FloatArray:
        """The second moment of the similar pairs: sum_S c_k v v'."""
        return read_only(self.sums.over_labeled([], each_similar).matrix)

    @cached_property
    def labeled(self) -> FloatArray:
        """The second moment of the labeled pairs: sum_{S u D} c_k v v'."""
        return self.sums.over_labeled([], each_labeled)[1]

    @cached_property
    def everything(self) -> FloatArray:
        """The second moment of all pairs: C = sum_k c_k v_k v_k'."""
        return read_only(self.summed(self.sums))

    @cached_property
    def typical(self) -> PairMoments:
        """The same moments with far values cut off, from which the whitening is derived.

        Otherwise a single value of 1e8 would set the scale of its feature, and all other points
        would look equal in it. Only where the other points span all features: the whitening has
        to span what the points do. And not the points of similar pairs, which do set a scale: their
        distances have to be short.
        """
        points = clip_far_values(self.sums.points)
        if points is None:
            return self
        near = np.unique(self.sums.labels.similar_links)
        points[near] = self.sums.points[near]
        n_varying = np.count_nonzero(np.ptp(points, axis=0))
        if n_varying >= len(points):  # they span fewer dimensions than that
            return self
        cut = replace(self, sums=self.sums.of_points(points))
        T = whiten(cut.everything, self.regularizer.matrix(self.sums.points.shape[1]), cut.along)
        return cut if T.shape[1] == n_varying else self

    @cached_property
    def whitening(self) -> FloatArray:
        """The whitening T, T' C T = I, C of typical points; see `numerics.psd_cone.whiten`."""
        Q = self.span
        return read_only(self.core_whitening if Q is None else Q @ self.core_whitening)

    @cached_property
    def core_whitening(self) -> FloatArray:
        """The whitening T, or t with T = Qt where the pairs have a `span` Q."""
        typical, Q = self.typical, self.span
        if Q is None:
            return whiten(
                typical.everything,
                self.regularizer.matrix(self.sums.points.shape[1]),
                typical.along,
            )
        R = self.regularizer.matrix(Q.shape[1])
        return whiten(self.core_moment, R, lambda D: typical.along(Q @ D))

    @cached_property
    def unwhitening(self) -> FloatArray:
        """The inverse of the whitening on the range of C, T'C: B = T'C A CT, where A = T B T'.

        Divided by T'C T, which is I but for rounding; along faint directions C is little else.
        """
        T, Q = self.core_whitening, self.span
        rough = T.T @ self.core_moment
        inverse: FloatArray = rough
        with suppress(np.linalg.LinAlgError):  # singular, where rounding has lost a direction
            inverse = np.asarray(np.linalg.solve(rough @ T, rough), dtype=np.float64)
        return read_only(inverse if Q is None else inverse @ Q.T)

    @cached_property
    def span(self) -> FloatArray | None:
        """Orthonormal directions (m, k) in which all pairs lie, where k < m of them are enough.

        Nothing need then be done in all m dimensions. Only for R = lambda*I, lambda > 0, which
        weighs all directions that are orthogonal to them alike, and with which no rank is decided.
        They are the features that vary; or, where these are more than the points and of one scale,
        the differences of the points, if these are clearly independent or none.
        """
        points, R = self.sums.points, self.regularizer
        if self.unlabeled_weight == 0.0:
            points = points[self.sums.labels.members]
        m, spreads = points.shape[1], np.ptp(points, axis=0)
        varying = np.flatnonzero(spreads)
        is_less = 0 < min(len(points) - 1, len(varying)) < m
        if not is_less or not R.trace_weight > 0.0 or R.manifold_term is not None:
            return None
        if len(points) <= len(varying) and np.min(spreads[varying]) > LIKE * np.max(spreads):
            Q, lengths = spanning_directions(points)
            if np.min(lengths) > LIKE:
                return Q
        return None if len(varying) == m else np.eye(m)[:, varying]

    @cached_property
    def core_moment(self) -> FloatArray:
        """The second moment C of typical points, or Q'CQ where the pairs have a `span` Q."""
        return self.typical.everything if self.span is None else self.typical.along(self.span)

    @cached_property
    def noise(self) -> float:
        """How far rounding may move a whitened coordinate of a point, relative to their size."""
        T, X = self.whitening, self.sums.points
        exact = np.max(np.abs(X) @ np.abs(T), axis=0, initial=0.0)
        cancelled = np.max(np.abs(X @ T), axis=0, initial=np.finfo(np.float64).tiny)
        return float(np.finfo(np.float64).eps * np.max(exact / cancelled, initial=1.0))

    @cached_property
    def longest(self) -> float:
        """The largest squared length of a pair: max_k ||v_k||^2."""
        largest = [0.0]

        def record(batch: PairBatch, d: FloatArray) -> PairTerms:
            d = batch.pairs_of(d)
            largest.extend([float(namespace(d).max(d))] if math.prod(d.shape) else [])
            return PairTerms([d])

        self._sweep(record)
        return max(largest)

    @cached_property
    def fourth(self) -> float:
        """The fourth moment of the pairs: sum_k c_k ||v_k||^4."""

        def fourth_power(batch: PairBatch, d: FloatArray) -> PairTerms:
            return PairTerms([batch.pairs_of(d) ** 2])

        return self._sweep(fourth_power)

    def along(self, T: FloatArray) -> FloatArray:
        """The second moment in other coordinates, summed in them: T' C T."""
        return self.summed(self.sums.with_matrix_coordinates(T))

    def similar_along(self, T: FloatArray) -> FloatArray:
        """The second moment of the similar pairs in other coordinates, summed in them."""
        return self.sums.with_matrix_coordinates(T).over_labeled([], each_similar).matrix

    def summed(self, sums: PairSums) -> FloatArray:
        """The second moment of all pairs in the coordinates of `sums`."""
        labeled = sums.over_labeled([], each_labeled)[1]
        if self.unlabeled_weight == 0.0:
            return labeled
        if sums.n_unlabeled < sums.labels.n_labeled:
            anywhere = np.zeros((sums.points.shape[1],) * 2)
            return labeled + self.unlabeled_weight * sums.over_unlabeled([anywhere], each_once)[1]
        # without a sweep, all pairs less the labeled ones, each once:
        # sum_U v v' = n sum_i z_i z_i' - (sum_i z_i)(sum_i z_i)' - sum_{S u D} v v'
        Z = sums.coordinates if sums.remote is None else sums.remote.held_coordinates
        xp = namespace(Z)
        total, squares = to_host(xp.sum(Z, axis=0)), to_host(xp.matrix_transpose(Z) @ Z)
        once = labeled
        if sums.labels.confidence is not None:
            unweighted = replace(sums, labels=sums.labels.unweighted)
            once = unweighted.over_labeled([], each_labeled)[1]
        rest = sums.n_points * squares - np.outer(total, total) - once
        return np.asarray(labeled + self.unlabeled_weight * rest)

    def _sweep(self, terms: Terms) -> float:
        identity = np.eye(self.sums.points.shape[1])
        total = self.sums.over_labeled([identity], terms)[0][0]
        if self.unlabeled_weight > 0.0:
            more = self.sums.on_host.over_unlabeled([identity], terms)[0][0]
            total += self.unlabeled_weight * more
        return float(total)


def spanning_directions(points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Orthonormal directions (m, k) that span the differences of n <= m points, and lengths.

    The lengths are what of each difference the ones before it do not explain, relative to the
    longest. Where they are not clearly independent the differences are pivoted, and those that are
    dependent to rounding, such as those of equal points, add no direction.
    """
    differences = (points[1:] - points[0]).T
    Q, triangle = np.linalg.qr(differences)
    lengths = np.abs(np.diag(triangle))
    if not np.min(lengths) > LIKE * np.max(lengths):
        Q, triangle, _ = scipy.linalg.qr(differences, mode="economic", pivoting=True)
        lengths = np.abs(np.diag(triangle))
        kept = lengths > len(points) * np.finfo(np.float64).eps * lengths[0]
        Q, lengths = Q[:, kept], lengths[kept]
    return np.ascontiguousarray(Q), lengths / np.max(lengths, initial=np.finfo(np.float64).tiny)


def each_once(batch: PairBatch, d: Array) -> PairTerms:
    """Give every unlabeled pair the weight 1."""
    once = namespace(d).ones_like(batch.pairs_of(d))
    return PairTerms([once], once)


def each_labeled(batch: PairBatch) -> PairTerms:
    """Give every labeled pair the weight 1, times its confidence."""
    once = np.ones_like(batch.similar)
    return PairTerms([once], once)


def each_similar(batch: PairBatch) -> PairTerms:
    """Give every similar pair the weight 1, times its confidence."""
    similar = batch.similar
    return PairTerms([similar], similar)


@dataclass(frozen=True, eq=False)
class WhitenedBasis:
    """Coordinates in which the second moment and the regularizer are diagonal and add up to I.

    A = Z B Z', where Z'CZ + Z'RZ = I.

    C is the pairs' second moment and R the regularizer. Were only C the identity, R would be huge
    along a direction of little spread, and its rounding errors would drown all the rest.

    Z = T V Diag(s), with T' C T = I and V' (T'RT) V diagonal. Columns along which pairs differ come
    first; only where penalties may feel all features are there others.
    """

    matrix: FloatArray  # Z
    inverse: FloatArray  # B = inverse A inverse'
    regularizer: FloatArray  # Z'RZ
    rotation: FloatArray  # V
    scale: FloatArray  # s
    n_spread: int  # the columns along which pairs differ

    @classmethod
    def of(cls, moments: PairMoments, R: Regularizer, spans_all: bool = False) -> WhitenedBasis:
        """Set up the basis for these pairs and this R; with `spans_all` it is square."""
        T, Q = moments.core_whitening, moments.span
        V, s = np.eye(T.shape[1]), np.ones(T.shape[1])
        if not R.is_zero():
            _, V = np.linalg.eigh(symmetrize(T.T @ R.times(T)))
            T = T @ V
            s = 1.0 / np.sqrt(1.0 + np.maximum(np.sum(T * R.times(T), axis=0), 0.0))
        Z, inverse = T * s, (V.T @ moments.unwhitening) / s[:, None]
        regularizer, n_spread = symmetrize(Z.T @ R.times(Z)), Z.shape[1]
        if Q is not None:
            Z = Q @ Z
        if spans_all and n_spread < len(Z):
            matrix = R.matrix(len(Z))
            Z = complete_basis(Z, matrix if np.all(np.diag(matrix) > 0.0) else np.eye(len(Z)))
            inverse, regularizer = np.asarray(np.linalg.inv(Z)), symmetrize(Z.T @ R.times(Z))
        return cls(Z, inverse, regularizer, V, s, n_spread)

    def from_whitened(self, matrix: FloatArray) -> FloatArray:
        """Convert a matrix summed in the coordinates T: Diag(s) V' matrix V Diag(s)."""
        V, s = self.rotation, self.scale
        changed = symmetrize(V.T @ matrix @ V) * s[:, None] * s
        return np.pad(changed, (0, self.matrix.shape[1] - self.n_spread))
