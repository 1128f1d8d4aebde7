"""A pass over every pair of some points, block by block, by matrix products: see `face_sums.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ...numerics.checks import FloatArray
from ..face_sums import EXCLUDED_SCORE, LossSums, PairLoss, PairPass
from .layout import FaceBlock, FaceLayout, LabeledEntries

SINGLE_PRECISION_POINTS = 300
"""With more points, second derivatives are summed in single precision."""

EXACT_POINTS = 1_000
"""With more points, weights are kept in single precision alone, for second derivatives."""

VisitAll: TypeAlias = Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]
"""A function like `map`: the results come in the order of the strips."""


class StripSums(NamedTuple):
    """The sums over a strip: losses, their excess, and W Z, W the matrix of its weights."""

    total: float
    excess: float
    summed: FloatArray
    kept: list[WeightedBlock]


class WeightedBlock(NamedTuple):
    """The weights c phi' of a block, and -2 c phi''."""

    rows: slice
    columns: slice
    slope: FloatArray
    bend: FloatArray

    def astype(self, kind: type[np.floating[Any]]) -> WeightedBlock:
        """The same weights in another precision."""
        if self.slope.dtype == kind:
            return self
        return self._replace(slope=self.slope.astype(kind), bend=self.bend.astype(kind))

    def add_to(self, summed: FloatArray, Z: FloatArray) -> None:
        """Add this block's part of W Z to `summed`."""
        rows, columns, W, _ = self
        summed[rows] += W @ Z[columns]
        if rows != columns:
            summed[columns] += W.T @ Z[rows]


@dataclass(frozen=True, eq=False)
class AllPairs:
    """Every pair of n points: `loss` times mu, but for the labeled ones, which have their own.

    Attributes
    ----------
    layout : FaceLayout
    stand_for : (n,) array, optional
        How many points each stands for.
    visit_all : callable
        `map`, or one that works in threads.
    """

    layout: FaceLayout
    loss: PairLoss
    unlabeled_weight: float
    labeled_loss: PairLoss
    stand_for: FloatArray | None = None
    visit_all: VisitAll = map

    def at(self, Y: FloatArray, threshold: float, keep: bool = True) -> PairPass:
        """Pass over all pairs block by block, by matrix products."""
        return _BlocksPass.of(Scores(self, Y, threshold), keep)

    def weigh(self, s: FloatArray, labeled: LabeledEntries | None) -> LossSums:
        """The weighted sums of a block; its second derivatives are returned as -2 c phi''."""
        mu = self.unlabeled_weight
        if labeled is not None and labeled.is_whole:
            total, W, P, _ = self.labeled_loss.sums(s)
            P *= -2.0
            return LossSums(total, W, P, 0.0)
        if labeled is not None:
            known = s[labeled.entries].copy()
            s[labeled.entries] = EXCLUDED_SCORE
        total, W, P, excess = self.loss.sums(s)
        total *= mu
        W *= mu
        P *= -2.0 * mu
        if labeled is not None:
            own, slope, bend, _ = self.labeled_loss.sums(known)
            c = labeled.confidence
            if c is not None:
                own = float(np.vdot(c, self.labeled_loss.value(known)))
                slope, bend = c * slope, c * bend
            total += own
            W[labeled.entries] = slope
            P[labeled.entries] = -2.0 * bend
        return LossSums(total, W, P, mu * excess)


@dataclass(frozen=True, eq=False)
class Scores:
    """The scores of all pairs at the points Y; none is stored."""

    pairs: AllPairs
    Y: FloatArray
    threshold: float

    @property
    def kind(self) -> type[np.floating[Any]]:
        """The precision of second derivatives."""
        return np.float32 if len(self.Y) > SINGLE_PRECISION_POINTS else np.float64

    @property
    def kept_kind(self) -> type[np.floating[Any]]:
        """The precision in which weights are kept."""
        return np.float32 if len(self.Y) > EXACT_POINTS else np.float64

    @property
    def Y_and_one(self) -> FloatArray:
        """The points with a column of ones: [Y, 1]."""
        return self._sides[1][:, :-1]

    def strips(self, Z: FloatArray, keep: bool) -> Iterable[StripSums]:
        """The sums over all strips, in their order."""
        numbers = range(self.pairs.layout.n_strips)
        return self.pairs.visit_all(partial(self.strip, Z=Z, keep=keep), numbers)

    def strip(self, number: int, Z: FloatArray, keep: bool = False) -> StripSums:
        """The sums over a strip; `keep` its weights."""
        total, excess, summed, kept = 0.0, 0.0, np.zeros(Z.shape), []
        for block in self.pairs.layout.strip(number):
            part, more, weighted = self._visit(block)
            total += part
            excess += more
            weighted.add_to(summed, Z)
            if keep:
                kept.append(weighted.astype(self.kept_kind))
        return StripSums(total, excess, summed, kept)

    def _visit(self, block: FaceBlock) -> tuple[float, float, WeightedBlock]:
        """The sum over a block, its excess, and its weights."""
        rows, columns, labeled = block
        left, right = self._sides
        s = left[rows] @ right[columns].T
        on_diagonal = rows == columns
        if on_diagonal:
            s.reshape(-1)[:: len(s) + 1] = EXCLUDED_SCORE
        total, W, P, excess = self.pairs.weigh(s, labeled)
        stand_for = self.pairs.stand_for
        if stand_for is not None:
            each = stand_for[rows, None] * stand_for[columns]
            W *= each
            P *= each
        share = 0.5 if on_diagonal else 1.0
        return share * total, share * excess, WeightedBlock(rows, columns, W, P)

    @cached_property
    def _sides(self) -> tuple[FloatArray, FloatArray]:
        return score_sides(self.Y, self.threshold)


def score_sides(Y: FloatArray, threshold: float) -> tuple[FloatArray, FloatArray]:
    """Two matrices whose product has all scores: |y_i|^2 + |y_j|^2 - 2 y_i.y_j - eta.

    They are [-2Y, |y|^2 - eta, 1] and [Y, 1, |y|^2].

    Examples
    --------
    >>> left, right = score_sides(np.array([[0.0], [2.0]]), 1.0)
    >>> left @ right.T
    array([[-1.,  3.],
           [ 3., -1.]])
    """
    n, rho = Y.shape
    squares = np.einsum("ij,ij->i", Y, Y)
    left, right = np.ones((n, rho + 2)), np.ones((n, rho + 2))
    np.multiply(Y, -2.0, out=left[:, :rho])
    left[:, rho] = squares - threshold
    right[:, :rho] = Y
    right[:, rho + 1] = squares
    return left, right


@dataclass(frozen=True, eq=False)
class _BlocksPass:
    """A pass over the blocks of all pairs.

    Attributes
    ----------
    summed : (n, rho + 1) array
        W [Y, 1], W the matrix of the weights c phi': the last column are its row sums.
    kept : list of lists of WeightedBlock
        The weights of each strip, for second derivatives; of very many points in single precision,
        since these steer and decide nothing. Empty where they were not asked for.
    """

    total: float
    excess: float
    summed: FloatArray
    scores: Scores
    kept: list[list[WeightedBlock]]

    @classmethod
    def of(cls, scores: Scores, keep: bool) -> _BlocksPass:
        Y_and_one = scores.Y_and_one
        total, excess, summed, kept = 0.0, 0.0, np.zeros(Y_and_one.shape), []
        for strip in scores.strips(Y_and_one, keep):
            total += strip.total
            excess += strip.excess
            summed += strip.summed
            if keep:
                kept.append(strip.kept)
        return cls(total, excess, summed, scores, kept)

    @property
    def degrees(self) -> FloatArray:
        """The row sums of the weights W, as a column."""
        return self.summed[:, -1:]

    @cached_property
    def pull(self) -> FloatArray:
        return np.asarray(self.degrees * self.scores.Y - self.summed[:, :-1])

    def laplacian(self, Z: FloatArray) -> FloatArray:
        summed = np.zeros_like(Z)
        if self.kept and self.scores.kept_kind is np.float64:
            for block in chain.from_iterable(self.kept):
                block.add_to(summed, Z)
        else:
            for strip in self.scores.strips(Z, keep=False):
                summed += strip.summed
        return np.asarray(self.degrees * Z - summed)

    def bent(self, E: FloatArray) -> FloatArray:
        Y_and_one, left, right = self._bending_sides
        rho = E.shape[1]
        left[:, rho : 2 * rho] = right[:, :rho] = E
        E = right[:, :rho]
        own = np.einsum("ij,ij->i", Y_and_one[:, :rho], E)
        np.negative(own, out=left[:, 2 * rho])
        right[:, 2 * rho + 1] = own

        def visit(strip: list[WeightedBlock]) -> tuple[FloatArray, FloatArray]:
            pulled, pushed = np.zeros(Y_and_one.shape), np.zeros(E.shape)
            for rows, columns, W, P in strip:
                T = left[rows] @ right[columns].T
                T *= P
                pulled[rows] += T @ Y_and_one[columns]
                pushed[rows] += W @ E[columns]
                if rows != columns:
                    pulled[columns] += T.T @ Y_and_one[rows]
                    pushed[columns] += W.T @ E[rows]
            return pulled, pushed

        pulled, pushed = np.zeros(Y_and_one.shape), np.zeros(E.shape)
        for some_pulled, some_pushed in self._visit_all(visit, self._bending_strips):
            pulled += some_pulled
            pushed += some_pushed
        pushed += pulled[:, :rho]
        return np.asarray(pulled[:, rho:] * self.scores.Y + self.degrees * E - pushed)

    def bent_weights(self, X: FloatArray, d: FloatArray) -> FloatArray:
        X = X.astype(self.scores.kind)
        scaled = X * d.astype(X.dtype)
        own = 0.5 * np.einsum("ij,ij->i", X, scaled)
        degree, crossed = np.zeros(len(X)), np.zeros(X.shape[1])
        for rows, columns, _, P in chain.from_iterable(self._bending_strips):
            T = scaled[rows] @ X[columns].T
            T -= own[rows, None]
            T -= own[columns]
            T *= P  # P is -2 c phi'', and T so far minus half of sum_a d_a v_a^2
            degree[rows] += T.sum(axis=1)
            share = 1.0
            if rows != columns:
                degree[columns] += T.sum(axis=0)
                share = 2.0
            crossed += share * np.einsum("ij,ij->j", X[rows], T @ X[columns])
        return np.asarray(degree @ (X * X) - crossed, dtype=np.float64)

    def curvature(self, E: FloatArray) -> float:
        left, right = score_sides(E, 0.0)
        total = 0.0
        for rows, columns, _, P in chain.from_iterable(self.kept):
            d = left[rows] @ right[columns].T
            total -= (0.25 if rows == columns else 0.5) * float(np.vdot(P, d * d))
        return total

    @property
    def _visit_all(self) -> VisitAll:
        return self.scores.pairs.visit_all

    @cached_property
    def _bending_strips(self) -> list[list[WeightedBlock]]:
        """The weights in the precision of second derivatives."""
        return [[block.astype(self.scores.kind) for block in strip] for strip in self.kept]

    @cached_property
    def _bending_sides(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """[Y, 1], and two matrices [Y, E, -e, -1], [E, Y, 1, e] with room for E and e_i = y_i.e_i.

        The product of the latter is -(y_i - y_j).(e_i - e_j).
        """
        Y_and_one = self.scores.Y_and_one.astype(self.scores.kind)
        n, rho = self.scores.Y.shape
        left = np.full((n, 2 * rho + 2), -1.0, dtype=Y_and_one.dtype)
        right = np.ones((n, 2 * rho + 2), dtype=Y_and_one.dtype)
        left[:, :rho] = right[:, rho : 2 * rho] = Y_and_one[:, :rho]
        return Y_and_one, left, right
