"""The one function that is minimized: losses of pairs plus a linear term, over the PSD cone.

    Phi(A) = sum_{S u D} c_k phi_1(s_k) + mu sum_U phi_2(s_k) + <M, A> - constant,
    s_k = v_k'Av_k - eta.

The M-step (11), the alternation's J and the paper's objective (7) differ in the scalar function
phi_2 (`posterior.py`) and in M. Each is available in any coordinates of the data, as a function
of the metric A, and as a function of a factor L of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from ..engine.distances import Layout, sample_counts
from ..engine.pair_sums import PairSums
from ..engine.passes import (
    AllPairs,
    BlocksPass,
    ListedPairs,
    ListPass,
    LossTerms,
    PairLoss,
    PairPass,
)
from ..numerics.arrays import cuda_kernels
from ..numerics.checks import FloatArray, IntArray
from ..numerics.psd_cone import symmetrize
from .posterior import LOGISTIC

if TYPE_CHECKING:
    from ..engine.gpu import GpuPass
    from ..penalties.penalty import TermPoint

FINE_POINTS = 6_000
"""Points up to which second derivatives are of all pairs, and these are kept: 140 MB."""

SMALL, ROUGH_POINTS = 1_000, 2_000
"""Rough ones are of a third of the points, but of no more than this and of eight times the
coordinates at least; with fewer points than the first, all are of all of them."""

LEAST_DRAWN, MOST_DRAWN = 1 << 13, 1 << 20
"""Pairs that are drawn at random to estimate them, at least and at most."""


@dataclass(frozen=True, eq=False)
class PairProgram:
    """The function Phi in one set of coordinates."""

    sums: PairSums
    unlabeled_weight: float  # mu
    threshold: float  # eta
    recession: FloatArray  # M
    constant: float
    loss: PairLoss = LOGISTIC  # phi_2, of the unlabeled pairs
    # <C, A> = (1 + eta) sum_k c_k of a metric A whose mean squared distance is 1 + eta
    typical_size: float = field(init=False)
    # whether the pairs that count are given one by one: a sample would lose most of them
    _is_listed: bool = field(init=False)
    # whether a pass in this process keeps what second derivatives need
    _keeps_pairs: bool = field(init=False)

    def __post_init__(self) -> None:
        labels, c, mu = self.sums.labels, self.sums.labels.confidence, self.unlabeled_weight
        labeled = float(labels.n_labeled) if c is None else float(np.sum(c))
        is_listed = mu == 0.0 and not labels.is_complete
        vars(self).update(
            typical_size=(1.0 + self.threshold) * (labeled + mu * self.sums.n_unlabeled),
            _is_listed=is_listed,
            _keeps_pairs=is_listed or self.sums.n_points <= FINE_POINTS,
        )

    def value(self, A: FloatArray) -> float:
        """The value Phi(A)."""
        return self._evaluate(A, with_gradient=False)[0]

    def value_and_gradient(self, A: FloatArray) -> tuple[float, FloatArray]:
        """The value Phi(A) and the gradient M + sum_k c_k phi'(s_k) v_k v_k', in one sweep."""
        return self._evaluate(A, with_gradient=True)

    def at(self, L: FloatArray) -> FactorPoint:
        """Phi and its gradient at a factor L, in one pass over the pairs."""
        self.sums.limit.check()
        whole, linear = self._pass_at(L), self.recession @ L
        return FactorPoint(
            self,
            L,
            whole.total + float(np.vdot(linear, L)) - self.constant,
            2.0 * (whole.half_gradient + linear),
            lambda: symmetrize(whole.gradient + self.recession),
            cache(partial(self._hessian, L, whole)),
            partial(self._curvature, L, whole),
            whole.excess,
        )

    def _pass_at(self, L: FloatArray) -> WholePass:
        """A pass over all pairs: on a GPU, in this process, or on another device."""
        gpu = self.gpu_pairs
        if gpu is not None and L.shape[1] <= gpu.most_columns:
            whole: WholePass = gpu.pass_at(L)
            return whole
        if self.sums.remote is None:
            return self._all_pairs.at(L, keep=self._keeps_pairs)
        total, push = self._losses(L @ L.T, with_gradient=True)
        return _RemotePass(total, push @ L, lambda: push)

    def at_weights(self, w: FloatArray) -> WeightsPoint:
        """Phi at the metric Diag(w), with derivatives with respect to the weights of the features.

        A pass costs n^2 m, and no eigenvalue. Second derivatives are of all pairs, which are kept.
        """
        M, used = np.diag(self.recession), w > 0.0
        whole = self._all_pairs.at(np.diag(np.sqrt(w))[:, used])

        def hessian_product(d: FloatArray) -> FloatArray:
            moved, change = d != 0.0, np.zeros_like(d)
            change[moved] = whole.weights_hessian_product(moved, d[moved])
            return change

        value = whole.total + float(M @ w) - self.constant
        return WeightsPoint(value, np.diag(whole.gradient) + M, hessian_product)

    @property
    def is_in_memory(self) -> bool:
        """Whether all pairs are summed in this process, and their weights can be kept."""
        return self.sums.remote is None and self.sums.n_points <= FINE_POINTS

    def _hessian(self, L: FloatArray, whole: WholePass, rough: bool) -> FactorHessian:
        """Second derivatives at L: of all pairs if there is a pass over them, or an estimate."""
        if self.gpu_pairs is not None and L.shape[1] <= self.gpu_pairs.most_columns:
            some: FactorHessian = self.gpu_pairs.few.pass_at(L)  # of all, where they are not many
            return some
        n, m = self.sums.points.shape
        if rough and self._n_rough_points < n:
            return self._sampled_hessian(L, whole.half_gradient, [self._some_points.at(L)])
        if isinstance(whole, BlocksPass | ListPass) and self._keeps_pairs:
            return whole
        if n <= FINE_POINTS:
            return self._all_pairs.at(L)
        n_pairs = max(250 * max(m, L.size), n * n // 1000)  # so many for each number in L
        return self._sampled_hessian(L, whole.half_gradient, self._drawn_passes(L, n_pairs))

    def _curvature(self, L: FloatArray, whole: WholePass, S: FloatArray) -> float:
        """About the second derivative of Phi(LL' + t SS') in t at t = 0: of all pairs if few.

        Wherever the pass itself was made: the same steps are taken in every library.
        """
        is_small = self._n_rough_points == self.sums.n_points and self._keeps_pairs
        if is_small:
            if isinstance(whole, BlocksPass | ListPass):
                return whole.curvature(S)
            return self._all_pairs.at(L).curvature(S)
        return sum(some.curvature(S) for some in self._drawn_passes(L, LEAST_DRAWN))

    def preconditioner(self, point: FactorPoint) -> FloatArray | None:
        """About the Hessian with respect to L, as a matrix; None where it is not worth its cost.

        It is made of 4 to 50 drawn pairs for each number in L, as many as take no more work than
        8 passes that are matrix products alone, nor more memory than 2^24 numbers.
        """
        L, n = point.L, self.sums.n_points
        size, (m, rank) = max(L.size, 1), L.shape
        wanted = max(50 * L.size, LEAST_DRAWN)
        n_pairs = int(min(wanted, 8 * n * n * (rank + 10) / size**2, (1 << 24) / size))
        if n_pairs < 4 * L.size or n < SMALL or self._is_listed or self.gpu_pairs is not None:
            return None
        passes = self._drawn_passes(L, n_pairs)
        half_gradient = 0.5 * point.factor_gradient - self.recession @ L
        S = self._sampled_hessian(L, half_gradient, passes).gradient + self.recession
        H = np.sum([some.curvature_matrix() for some in passes], axis=0)
        for column in range(rank):
            H.reshape(m, rank, m, rank)[:, column, :, column] += S
        return np.asarray(2.0 * H)

    def _sampled_hessian(
        self, L: FloatArray, half_gradient: FloatArray, passes: Sequence[PairPass]
    ) -> _SampledHessian:
        """The estimate by some pairs, in accord with the gradient of all."""
        missing = half_gradient - np.sum([some.half_gradient for some in passes], axis=0)
        # the symmetric matrix D of least Frobenius norm with DL = `missing`
        inverse = np.linalg.pinv(L, rcond=1e-6)
        half = (missing - 0.5 * inverse.T @ (L.T @ missing)) @ inverse
        return _SampledHessian(passes, half + half.T)

    def _drawn_passes(self, L: FloatArray, n_pairs: int) -> list[ListPass]:
        """Passes over pairs drawn at random: as many pairs of few points say less."""
        n_pairs = 1 << (min(max(n_pairs, LEAST_DRAWN), MOST_DRAWN).bit_length() - 1)
        if n_pairs not in self._drawn:  # few numbers, to be kept
            self._drawn[n_pairs] = self._draw(n_pairs)
        return [pairs.at(L) for pairs in self._drawn[n_pairs]]

    @cached_property
    def _drawn(self) -> dict[int, list[ListedPairs]]:
        return {}

    def _draw(self, n_pairs: int) -> list[ListedPairs]:
        """Unlabeled and labeled pairs that are drawn at random, each standing for several."""
        sums, labels, mu = self.sums, self.sums.labels, self.unlabeled_weight
        rng, groups = np.random.default_rng(0), []

        def draw(members: IntArray) -> IntArray:
            first = rng.integers(len(members), size=n_pairs)
            second = (first + rng.integers(1, len(members), size=n_pairs)) % len(members)
            return members[np.column_stack([first, second])]

        if mu > 0.0:
            pairs = draw(np.arange(sums.n_points))
            weight = mu * sums.n_unlabeled / len(pairs)
            groups.append((pairs, np.full(len(pairs), weight), self.loss))
        total, c = labels.n_labeled, labels.confidence
        if total <= n_pairs or not labels.is_complete:
            rows = np.arange(total) if total <= n_pairs else rng.choice(total, n_pairs)
            weights = np.ones(len(rows)) if c is None else c[rows]
            pairs = labels.listed[rows]
        else:
            pairs, weights = draw(labels.members), np.ones(n_pairs)
        if len(pairs):
            groups.append((pairs, (total / len(pairs)) * weights, LOGISTIC))
        return [ListedPairs(sums.points, *group, self.threshold) for group in groups]

    @cached_property
    def gpu_pairs(self) -> Any:
        """All pairs on the GPU that holds the points, if it has kernels for them."""
        remote, mu, labels = self.sums.remote, self.unlabeled_weight, self.sums.labels
        points = None if remote is None else remote.points
        kernels = None if points is None else cuda_kernels(points, "pair_passes")
        if kernels is None or mu == 0.0 or not labels.is_complete:
            return None
        from ..engine.gpu import GpuPairs

        return GpuPairs(points, len(labels.members), self.loss, LOGISTIC, mu, self.threshold)

    @property
    def _n_rough_points(self) -> int:
        """The number of points of which rough second derivatives are; all where few save little."""
        n, m = self.sums.points.shape
        few = max(min(ROUGH_POINTS, n // 3), 8 * m)
        return int(few if n >= max(SMALL, 2 * few) and not self._is_listed else n)

    @cached_property
    def _all_pairs(self) -> AllPairs | ListedPairs:
        """All pairs, in this process."""
        return self._pairs_of(np.arange(self.sums.n_points))

    @cached_property
    def _some_points(self) -> AllPairs | ListedPairs:
        """The pairs of some points, each standing for several."""
        n_labeled = len(self.sums.labels.members)
        counts = sample_counts(n_labeled, self.sums.n_points, self._n_rough_points)
        return self._pairs_of(np.flatnonzero(counts), counts)

    def _pairs_of(
        self, members: IntArray, counts: FloatArray | None = None
    ) -> AllPairs | ListedPairs:
        """The pairs of the points with these numbers; if mu = 0, of those that have a label."""
        sums, labels = self.sums, self.sums.labels
        if self.unlabeled_weight == 0.0:
            members = members[members < len(labels.members)]
        X, layout = sums.points, sums.layout
        if len(members) < len(X):
            number = np.full(len(X), -1)
            number[members] = np.arange(len(members))
            X, labels = X[members], labels.renumbered(number)
            layout = Layout(len(members), labels)
        if self._is_listed:
            return ListedPairs(X, labels.listed, labels.confidence, LOGISTIC, self.threshold)
        counts = None if counts is None else counts[members]
        terms = LossTerms(self.loss, 0.0, self.unlabeled_weight, LOGISTIC, counts)
        return AllPairs(X, layout, terms, self.threshold, sums.visit_all)

    def _evaluate(self, A: FloatArray, with_gradient: bool) -> tuple[float, FloatArray]:
        total, push = self._losses(A, with_gradient)
        value = total + float(np.vdot(self.recession, A)) - self.constant
        return value, symmetrize(self.recession + push)

    def _losses(self, A: FloatArray, with_gradient: bool) -> tuple[float, FloatArray]:
        """The losses at a metric, summed, and their gradient if it is asked for."""
        terms = LossTerms(LOGISTIC, self.threshold, with_matrix=with_gradient)
        totals, push, _ = self.sums.over_labeled([A], terms)
        total = float(totals[0])
        if self.unlabeled_weight > 0.0:
            terms = LossTerms(self.loss, self.threshold, with_matrix=with_gradient)
            more, more_push, _ = self.sums.over_unlabeled([A], terms)
            total += self.unlabeled_weight * float(more[0])
            push = push + self.unlabeled_weight * more_push
        return total, push


class _RemotePass(NamedTuple):
    """A pass that was made elsewhere; the gradient takes another one."""

    total: float
    half_gradient: FloatArray
    make_gradient: Callable[[], FloatArray]
    excess: float = np.nan

    @property
    def gradient(self) -> FloatArray:
        """The gradient with respect to the metric."""
        return self.make_gradient()


WholePass: TypeAlias = "PairPass | GpuPass | _RemotePass"
"""The losses of all pairs at a factor, summed, and their gradients."""

FactorHessian: TypeAlias = "PairPass | GpuPass | _SampledHessian | _PenalizedHessian"
"""Second derivatives of sums over pairs with respect to a factor and its metric."""


@dataclass(frozen=True, eq=False)
class FactorPoint:
    """Phi at LL', its gradient with respect to L, and its second derivatives along directions.

    `excess` is by how much the paper's objective (7) exceeds J, if Phi is J and the loss knows it.
    """

    program: PairProgram
    L: FloatArray
    value: float
    factor_gradient: FloatArray
    make_gradient: Callable[[], FloatArray]
    make_hessian: Callable[[bool], FactorHessian]  # kept; True: rough ones, at less cost
    curvature: Callable[[FloatArray], float]  # about the second derivative along SS'
    excess: float = np.nan

    @property
    def rough_gradient(self) -> FloatArray | None:
        """An estimate of `gradient`, exact on the span of L; None where it saves no work."""
        fine = self.make_hessian(False)
        hessian = fine if isinstance(fine, _SampledHessian) else self.make_hessian(True)
        if not isinstance(hessian, _SampledHessian):
            return None
        return symmetrize(hessian.gradient + self.program.recession)

    @cached_property
    def gradient(self) -> FloatArray:
        """The gradient of Phi with respect to the metric; twice it times L is `factor_gradient`."""
        return self.make_gradient()

    def hessian_product(self, D: FloatArray, rough: bool = False) -> FloatArray:
        """The derivative of `factor_gradient` along D; an estimate where there are many points."""
        product = self.make_hessian(rough).hessian_product(D)
        return 2.0 * (product + self.program.recession @ D)

    @cached_property
    def steepness(self) -> float:
        """The size of the gradient relative to Phi: |gradient| |L| / max(1, |Phi|)."""
        gradient, L = self.factor_gradient, self.L
        size = math.sqrt(np.vdot(gradient, gradient)) * math.sqrt(np.vdot(L, L))
        return size / max(1.0, abs(self.value))


class _SampledHessian(NamedTuple):
    """Second derivatives by some pairs, but for what the gradient of all tells.

    They hold S = sum_k w_k v_k v_k'. Of that, SL is known from all pairs, and `missing` is the
    least change of the estimate that makes it so: S + M is zero on the span of L at an optimum,
    where errors would make it indefinite.
    """

    passes: Sequence[PairPass]
    missing: FloatArray

    @property
    def gradient(self) -> FloatArray:
        """The gradient with respect to the metric, S."""
        parts = [some.gradient for some in self.passes]
        return np.asarray(np.sum([*parts, self.missing], axis=0))

    def hessian_product(self, D: FloatArray) -> FloatArray:
        """The derivative along D of half the gradient with respect to the factor."""
        parts = [some.hessian_product(D) for some in self.passes]
        return np.asarray(np.sum([*parts, self.missing @ D], axis=0))


class WeightsPoint(NamedTuple):
    """Phi at weights of the features: value, gradient, Hessian-vector product.

    The product is that of the derivatives with respect to weights that d moves; zero for others.
    """

    value: float
    gradient: FloatArray
    hessian_product: Callable[[FloatArray], FloatArray]


Term: TypeAlias = "Callable[[FloatArray], TermPoint]"
"""A smooth function of the metric in the data's coordinates, with its derivatives."""


@dataclass(frozen=True, eq=False)
class PenalizedProgram:
    """A program with penalties, Phi(B) + sum_j P_j(T B T'), as a function of a factor of B."""

    pairs: PairProgram  # Phi in the coordinates T
    basis: FloatArray  # T
    terms: Sequence[Term]  # P_j, each with its derivatives

    @property
    def recession(self) -> FloatArray:
        """The recession matrix M of Phi."""
        return self.pairs.recession

    @property
    def typical_size(self) -> float:
        """The size of a metric of mean squared distance 1 + eta."""
        return self.pairs.typical_size

    def at(self, L: FloatArray) -> FactorPoint:
        """The function and its slope at a factor L."""
        point, T = self.pairs.at(L), self.basis
        mapped = T @ L
        terms = [term(symmetrize(mapped @ mapped.T)) for term in self.terms]
        gradient = T.T @ np.sum([term.gradient for term in terms], axis=0) @ T

        def curvature(S: FloatArray) -> float:
            more = T @ S
            grown = more @ more.T
            bends = (float(np.vdot(term.bend(grown), grown)) for term in terms)
            return point.curvature(S) + sum(bends)

        return replace(
            point,
            value=point.value + sum(term.value for term in terms),
            factor_gradient=point.factor_gradient + 2.0 * gradient @ L,
            make_gradient=lambda: symmetrize(point.gradient + gradient),
            make_hessian=cache(
                lambda rough: _PenalizedHessian(
                    point.make_hessian(rough), T, mapped, gradient, terms
                )
            ),
            curvature=curvature,
        )


class _PenalizedHessian(NamedTuple):
    """Second derivatives of Phi and of penalties, whose gradient is `gradient`; `mapped` is TL."""

    pairs: FactorHessian
    basis: FloatArray
    mapped: FloatArray
    gradient: FloatArray
    terms: Sequence[TermPoint]

    def hessian_product(self, D: FloatArray) -> FloatArray:
        """The derivative along D of half the gradient with respect to the factor."""
        moved = self.mapped @ (self.basis @ D).T
        bend = np.sum([term.bend(moved + moved.T) for term in self.terms], axis=0)
        more = self.gradient @ D + self.basis.T @ (bend @ self.mapped)
        return np.asarray(self.pairs.hessian_product(D) + more)
