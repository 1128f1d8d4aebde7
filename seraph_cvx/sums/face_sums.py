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

EXCLUDED_SCORE = 1e4
"""The score of what is no pair: every loss and its derivatives vanish at it."""


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

    @property
    def blocks(self) -> Iterator[FaceBlock]:
        """The blocks of the upper triangle; on the diagonal, each with both of its halves."""
        n, size = self.n_points, self._size
        for a in range(0, n, size):
            for b in range(a, n, size):
                rows, columns = (slice(start, min(start + size, n)) for start in (a, b))
                yield FaceBlock(rows, columns, self._labeled.get((a, b)))

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
        slope, bend = (x.astype(kind, copy=False) for x in (self.slope, self.bend))
        return self._replace(slope=slope, bend=bend)

    def add_laplacian(self, found: FloatArray, Z: FloatArray) -> None:
        rows, columns, W, _ = self
        found[rows] += W.sum(axis=1)[:, None] * Z[rows] - W @ Z[columns]
        if rows != columns:
            found[columns] += W.sum(axis=0)[:, None] * Z[columns] - W.T @ Z[rows]


@dataclass(frozen=True, eq=False)
class _Visits:
    """The blocks of all pairs at Y, one after the other."""

    pairs: AllPairs
    Y: FloatArray
    threshold: float

    @property
    def kind(self) -> type[np.floating[Any]]:
        """The precision in which weights are kept."""
        return np.float32 if len(self.Y) > SINGLE_PRECISION_POINTS else np.float64

    def __iter__(self) -> Iterator[tuple[float, float, _WeightedBlock]]:
        """The sum over each block, its excess, and its weights."""
        Y, stand_for = self.Y, self.pairs.stand_for
        squares = np.einsum("ij,ij->i", Y, Y)
        doubled = -2.0 * Y
        for rows, columns, labeled in self.pairs.blocks:
            s = doubled[rows] @ Y[columns].T
            s += (squares[rows] - self.threshold)[:, None]
            s += squares[columns]
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


@dataclass(frozen=True, eq=False)
class _BlocksPass:
    """A pass over the blocks of all pairs.

    Attributes
    ----------
    kept : list of _WeightedBlock
        The weights, for second derivatives; of many points in single precision, since these steer
        and decide nothing. Empty where they were not asked for.
    """

    total: float
    excess: float
    pull: FloatArray
    visits: _Visits
    kept: list[_WeightedBlock]

    @classmethod
    def of(cls, visits: _Visits, keep: bool) -> _BlocksPass:
        total, excess, pull, kept = 0.0, 0.0, np.zeros_like(visits.Y), []
        kind = visits.kind
        for part, more, block in visits:
            total += part
            excess += more
            block.add_laplacian(pull, visits.Y)
            if keep:
                kept.append(block.astype(kind))
        return cls(total, excess, pull, visits, kept)

    def laplacian(self, Z: FloatArray) -> FloatArray:
        found = np.zeros_like(Z)
        is_exact = self.kept and self.visits.kind is np.float64
        for block in self.kept if is_exact else (block for *_, block in self.visits):
            block.add_laplacian(found, Z)
        return found

    def bent(self, E: FloatArray) -> FloatArray:
        kind = self.visits.kind
        Y, E = self._Y, E.astype(kind)
        rho = Y.shape[1]
        own = np.einsum("ij,ij->i", Y, E)[:, None]
        once = np.ones_like(own)
        left = np.concatenate([Y, E, -own, -once], axis=1)
        right = np.concatenate([E, Y, once, own], axis=1)
        Y_and_one = np.concatenate([Y, once], axis=1)
        E_and_one = np.concatenate([E, once], axis=1)
        found = np.zeros_like(E)
        for rows, columns, W, P in self.kept:
            T = left[rows] @ right[columns].T
            T *= P
            pull, push = T @ Y_and_one[columns], W @ E_and_one[columns]
            found[rows] += pull[:, rho:] * Y[rows] - pull[:, :rho]
            found[rows] += push[:, rho:] * E[rows] - push[:, :rho]
            if rows != columns:
                pull, push = T.T @ Y_and_one[rows], W.T @ E_and_one[rows]
                found[columns] += pull[:, rho:] * Y[columns] - pull[:, :rho]
                found[columns] += push[:, rho:] * E[columns] - push[:, :rho]
        return found.astype(np.float64)

    def bent_weights(self, X: FloatArray, d: FloatArray) -> FloatArray:
        X = X.astype(self.visits.kind)
        squares, scaled = X * X, X * d.astype(self.visits.kind)
        own = np.einsum("ij,ij->i", X, scaled)
        degree, crossed = np.zeros_like(own), np.zeros(X.shape[1])
        for rows, columns, _, P in self.kept:
            T = scaled[rows] @ X[columns].T
            T -= 0.5 * own[rows, None]
            T -= 0.5 * own[columns]
            T *= P  # P is -2 c phi'', and T so far minus half of sum_a d_a v_a^2
            degree[rows] += T.sum(axis=1)
            share = 1.0
            if rows != columns:
                degree[columns] += T.sum(axis=0)
                share = 2.0
            crossed += share * np.einsum("ij,ij->j", X[rows], T @ X[columns])
        return np.asarray(degree @ squares - crossed, dtype=np.float64)

    @cached_property
    def _Y(self) -> FloatArray:
        return self.visits.Y.astype(self.visits.kind)
