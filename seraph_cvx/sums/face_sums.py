"""Sums over pairs of the points Y = XL, along the face of the cone that a factor L spans.

With weights w_k = c_k phi'(s_k) and W their symmetric matrix, sum_k w_k v_k v_k' L is
X'(Deg(W) - W) Y. With t_k = 2 c_k phi''(s_k) (y_i - y_j).(e_i - e_j), a direction E = XD bends it
by X'[(Deg(W) - W) E + (Deg(T) - T) Y]. So a pass costs n^2 rho, not n^2 m, and no pair is listed
but where the user did.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..numerics.arrays import Array
from ..numerics.checks import FloatArray
from ..pairs.labeled_pairs import Labels

BLOCK = 120
"""Points per side of a block, at most: its arrays are then below the 128 KiB from which on memory
is asked of the system, and given back, each time."""

SINGLE_PRECISION_POINTS = 300
"""With more points, second derivatives are summed in single precision."""

EXACT_POINTS = 1_000
"""With more points, weights are kept in single precision alone, for second derivatives."""

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


@dataclass(frozen=True, eq=False)
class LabeledEntries:
    """The entries of a block that are labeled pairs, and the confidence of each (None: 1).

    `is_whole` tells that all of them are.
    """

    entries: Any
    confidence: FloatArray | None = None
    is_whole: bool = False


class FaceBlock(NamedTuple):
    """All pairs of a block, rows x columns."""

    rows: slice
    columns: slice
    labeled: LabeledEntries | None


@dataclass(frozen=True, eq=False)
class AllPairs:
    """Every pair of n points: `loss` times mu, but for the labeled ones, which have their own.

    Attributes
    ----------
    labels : LabeledPairs or ClassLabels
        Of points that come first.
    stand_for : (n,) array, optional
        How many points each stands for.
    """

    n_points: int
    labels: Labels
    loss: PairLoss
    unlabeled_weight: float
    labeled_loss: PairLoss
    stand_for: FloatArray | None = None

    @cached_property
    def blocks(self) -> list[FaceBlock]:
        """The blocks of the upper triangle; on the diagonal, each with both of its halves."""
        n, size = self.n_points, self._size
        sides = [slice(start, min(start + size, n)) for start in range(0, n, size)]
        return [
            FaceBlock(rows, columns, self._labeled.get((rows.start, columns.start)))
            for k, rows in enumerate(sides)
            for columns in sides[k:]
        ]

    @property
    def _size(self) -> int:
        n = self.n_points
        return -(-n // -(-n // BLOCK)) if n else 1

    @cached_property
    def _labeled(self) -> dict[tuple[int, int], LabeledEntries]:
        """The labeled entries of the blocks that have such, by the first points of their sides."""
        some, size = int(np.max(self.labels.members, initial=-1)) + 1, self._size
        edges = [slice(start, min(start + size, self.n_points)) for start in range(0, some, size)]
        entries = self._all_of_the_first if self.labels.is_complete else self._listed
        found = {
            (rows.start, columns.start): entries(rows, columns)
            for k, rows in enumerate(edges)
            for columns in edges[k:]
        }
        return {block: labeled for block, labeled in found.items() if labeled is not None}

    def _all_of_the_first(self, rows: slice, columns: slice) -> LabeledEntries | None:
        """Every pair of the points that come first."""
        some = len(self.labels.members)
        height, width = (min(part.stop, some) - part.start for part in (rows, columns))
        is_whole = max(rows.stop, columns.stop) <= some
        return LabeledEntries((slice(0, height), slice(0, width)), is_whole=is_whole)

    def _listed(self, rows: slice, columns: slice) -> LabeledEntries | None:
        """The listed pairs that lie in a block, in both halves of one on the diagonal."""
        i, j = self.labels.listed.T
        c = self.labels.confidence
        if rows == columns:
            i, j = np.concatenate([i, j]), np.concatenate([j, i])
            c = None if c is None else np.concatenate([c, c])
        inside = (i >= rows.start) & (i < rows.stop) & (j >= columns.start) & (j < columns.stop)
        if not np.any(inside):
            return None
        entries = i[inside] - rows.start, j[inside] - columns.start
        return LabeledEntries(entries, None if c is None else c[inside])

    def at(self, Y: FloatArray, threshold: float, keep: bool = True) -> PairPass:
        """Pass over all pairs block by block, by matrix products."""
        return _BlocksPass.of(_Visits(self, Y, threshold), keep)

    def _weighted(self, s: FloatArray, labeled: LabeledEntries | None) -> LossSums:
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


class _WeightedBlock(NamedTuple):
    """The weights c phi' of a block, and -2 c phi''."""

    rows: slice
    columns: slice
    slope: FloatArray
    bend: FloatArray

    def astype(self, kind: type[np.floating[Any]]) -> _WeightedBlock:
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
class _Visits:
    """The blocks of all pairs at Y, one after the other."""

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

    def __iter__(self) -> Iterator[tuple[float, float, _WeightedBlock]]:
        """The sum over each block, its excess, and its weights."""
        stand_for = self.pairs.stand_for
        left, right = self._sides
        for rows, columns, labeled in self.pairs.blocks:
            s = left[rows] @ right[columns].T
            on_diagonal = rows == columns
            if on_diagonal:
                s.reshape(-1)[:: len(s) + 1] = EXCLUDED_SCORE
            total, W, P, excess = self.pairs._weighted(s, labeled)
            if stand_for is not None:
                each = stand_for[rows, None] * stand_for[columns]
                W *= each
                P *= each
            share = 0.5 if on_diagonal else 1.0
            yield share * total, share * excess, _WeightedBlock(rows, columns, W, P)

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
    kept : list of _WeightedBlock
        The weights, for second derivatives; of very many points in single precision, since these
        steer and decide nothing. Empty where they were not asked for.
    """

    total: float
    excess: float
    summed: FloatArray
    visits: _Visits
    kept: list[_WeightedBlock]

    @classmethod
    def of(cls, visits: _Visits, keep: bool) -> _BlocksPass:
        kind, Y_and_one = visits.kept_kind, visits.Y_and_one
        total, excess, summed, kept = 0.0, 0.0, np.zeros(Y_and_one.shape), []
        for part, more, block in visits:
            total += part
            excess += more
            block.add_to(summed, Y_and_one)
            if keep:
                kept.append(block.astype(kind))
        return cls(total, excess, summed, visits, kept)

    @property
    def degrees(self) -> FloatArray:
        """The row sums of the weights W, as a column."""
        return self.summed[:, -1:]

    def bent_weights(self, X: FloatArray, d: FloatArray) -> FloatArray:
        X = X.astype(self.visits.kind)
        scaled = X * d.astype(X.dtype)
        own = 0.5 * np.einsum("ij,ij->i", X, scaled)
        degree, crossed = np.zeros(len(X)), np.zeros(X.shape[1])
        for rows, columns, _, P in self._bending_blocks:
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

    @cached_property
    def pull(self) -> FloatArray:
        return np.asarray(self.degrees * self.visits.Y - self.summed[:, :-1])

    def laplacian(self, Z: FloatArray) -> FloatArray:
        summed = np.zeros_like(Z)
        is_exact = self.kept and self.visits.kept_kind is np.float64
        for block in self.kept if is_exact else (block for *_, block in self.visits):
            block.add_to(summed, Z)
        return np.asarray(self.degrees * Z - summed)

    def bent(self, E: FloatArray) -> FloatArray:
        Y_and_one, left, right = self._bending_sides
        rho = E.shape[1]
        left[:, rho : 2 * rho] = right[:, :rho] = E
        E = right[:, :rho]
        own = np.einsum("ij,ij->i", Y_and_one[:, :rho], E)
        np.negative(own, out=left[:, 2 * rho])
        right[:, 2 * rho + 1] = own
        pulled, pushed = np.zeros(Y_and_one.shape), np.zeros(E.shape)
        for rows, columns, W, P in self._bending_blocks:
            T = left[rows] @ right[columns].T
            T *= P
            pulled[rows] += T @ Y_and_one[columns]
            pushed[rows] += W @ E[columns]
            if rows != columns:
                pulled[columns] += T.T @ Y_and_one[rows]
                pushed[columns] += W.T @ E[rows]
        pushed += pulled[:, :rho]
        return np.asarray(pulled[:, rho:] * self.visits.Y + self.degrees * E - pushed)

    def curvature(self, E: FloatArray) -> float:
        left, right = score_sides(E, 0.0)
        total = 0.0
        for rows, columns, _, P in self.kept:
            d = left[rows] @ right[columns].T
            total -= (0.25 if rows == columns else 0.5) * float(np.vdot(P, d * d))
        return total

    @cached_property
    def _bending_blocks(self) -> list[_WeightedBlock]:
        """The weights in the precision of second derivatives."""
        return [block.astype(self.visits.kind) for block in self.kept]

    @cached_property
    def _bending_sides(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The matrices [Y, 1], [Y, E, -e, -1] and [E, Y, 1, e], with room for E and e_i = y_i.e_i.

        The product of the latter is -(y_i - y_j).(e_i - e_j).
        """
        Y_and_one = self.visits.Y_and_one.astype(self.visits.kind)
        n, rho = self.visits.Y.shape
        left = np.full((n, 2 * rho + 2), -1.0, dtype=Y_and_one.dtype)
        right = np.ones((n, 2 * rho + 2), dtype=Y_and_one.dtype)
        left[:, :rho] = right[:, rho : 2 * rho] = Y_and_one[:, :rho]
        return Y_and_one, left, right
