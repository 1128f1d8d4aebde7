"""The pass over pairs: scores, terms, weights, and sums of weighted v v', block by block.

With W the symmetric matrix of the weights w_k, its degrees Deg = Diag(W 1) and any coordinates Z of
the points, a pass makes

    sum_k t(d_k)      and      X'(Deg - W) Z = sum_k w_k v_k z_k',

d_k = v_k' A v_k. With A = LL' and Z = Y = XL the latter is half the gradient with respect to L; for
t_k = 2 c_k phi''(s_k) (y_i - y_j).(e_i - e_j) its derivative along E = XD is
X'[(Deg(W) - W) E + (Deg(T) - T) Y]. A pass may have to end before it is complete: see `Limit`.
"""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np
import scipy
from numpy.typing import NDArray

from ..numerics.accurate_sums import product_chain, short_product, totals_chain
from ..numerics.arrays import Array, namespace, to_device_of, to_host, to_numbers
from ..numerics.checks import FloatArray, IntArray
from .distances import (
    BatchSums,
    Block,
    Chunk,
    Layout,
    Metric,
    PairBatch,
    Terms,
    block_distances,
    euclidean_distances,
    listed_distances,
    sum_over,
)

Item = TypeVar("Item")


class OutOfTime(Exception):
    """Raised between two blocks of pairs; `factor` is that of the best metric so far, if any."""

    def __init__(self, factor: FloatArray | None = None) -> None:
        super().__init__("The time was up, or it was interrupted.")
        self.factor = factor


@dataclass
class Limit:
    """The limit of all sums over the same pairs; `deadline` is on the clock of `perf_counter`."""

    deadline: float = np.inf
    is_interrupted: bool = False
    watch: Callable[[], object] | None = None  # called between two blocks, in any thread

    def check(self) -> None:
        """Raise OutOfTime where the time is up."""
        if self.watch is not None:
            self.watch()
        if self.is_interrupted or time.perf_counter() >= self.deadline:
            raise OutOfTime

    def each(self, items: Iterable[Item]) -> Iterator[Item]:
        """The items one by one, as long as there is time."""
        for item in items:
            self.check()
            yield item

    @contextmanager
    def until(self, deadline: float) -> Iterator[None]:
        """A context with this deadline, if there is no earlier one."""
        before = self.deadline
        self.deadline = min(before, deadline)
        try:
            yield
        finally:
            self.deadline = before

    @contextmanager
    def granted(self, seconds: float) -> Iterator[None]:
        """A context that has so many seconds from now on, whatever the limit was."""
        before = self.deadline, self.is_interrupted
        self.deadline, self.is_interrupted = time.perf_counter() + seconds, False
        try:
            yield
        finally:
            self.deadline, self.is_interrupted = before


EXCLUDED_SCORE = 300.0
"""The score of entries that are no pair: every loss and its derivatives vanish, below 1e-130."""

SINGLE_PRECISION_POINTS = 300
"""With more points, second derivatives, which only steer, are summed in single precision."""

EXACT_POINTS = 1_000
"""With more points, weights are kept for second derivatives alone, in single precision: 4 MB."""

VisitAll: TypeAlias = Callable[[Callable[[int], Any], Sequence[int]], Iterable[Any]]
"""A function like `map`: the results come in the order of the strips."""

Listed: TypeAlias = tuple[Array, Array, Array | None]
"""Differences of listed pairs for distances, the same for v v', and the sizes of the latter."""


class Swept(NamedTuple):
    """Sums over pairs: the totals of the terms, and sum_k w_k v_k z_k'.

    `spread`, where rounding errors are to be bounded, has sum_i deg_i z_i^2 of each coordinate,
    deg_i the sum of the weights of the pairs of point i, and the same of the sizes that z_i is
    rounded from.
    """

    totals: FloatArray
    matrix: FloatArray
    spread: FloatArray | None = None


class WeightedBlock(NamedTuple):
    """The weights c phi' of a block, and -2 c phi''."""

    rows: slice
    columns: slice
    weights: Array
    second: Array

    def astype(self, kind: type[np.floating[Any]]) -> WeightedBlock:
        """The same weights in another precision."""
        if self.weights.dtype == kind:
            return self
        return self._replace(weights=self.weights.astype(kind), second=self.second.astype(kind))

    def add_to(
        self, summed: Array, Z: Array, product: Callable[[Any, Any], Any] = operator.matmul
    ) -> None:
        """Add this block's part of W Z to `summed`."""
        rows, columns, W, _ = self
        summed[rows, :] += product(W, Z[columns, :])
        if rows != columns:
            summed[columns, :] += product(W.T, Z[rows, :])


def sum_strips(
    layout: Layout,
    distances: Sequence[Callable[[Block], Any]],
    terms: Terms,
    Z_and_one: Array,
    visit_all: VisitAll = map,
    in_runs: bool = False,
    keep: type[np.floating[Any]] | None = None,
    limit: Limit | None = None,
) -> tuple[FloatArray, Array | None, list[Any]]:
    """The one loop over blocks of pairs, strip by strip: totals, W [Z, 1], and what each kept.

    `in_runs`: by short sums; `keep` weights so precisely. Strips are added in their order.

    The limit is looked at before each block; `visit_all` may look at one before each strip.
    """
    product = short_product if in_runs else operator.matmul

    def visit(number: int) -> tuple[FloatArray, Array | None, list[WeightedBlock]]:
        blocks = layout.strip(number) if limit is None else limit.each(layout.strip(number))
        totals: list[list[Any]] = []
        summed, kept = None, []
        for block in blocks:
            sums = sum_over(block, terms(block, *[each(block) for each in distances]))
            totals.append(sums.totals)
            if sums.weights is None:
                continue
            weighted = WeightedBlock(block.rows, block.columns, sums.weights, sums.second)
            summed = namespace(Z_and_one).zeros_like(Z_and_one) if summed is None else summed
            weighted.add_to(summed, Z_and_one, product)
            if keep is not None:
                kept.append(weighted.astype(keep))
        return np.sum(to_numbers(totals), axis=0), summed, kept

    totals: Any = 0.0
    summed, kept = None, []
    for more, part, blocks in visit_all(visit, range(layout.n_strips)):
        totals = totals + more
        kept.append(blocks)
        if summed is None:
            summed = part
        elif part is not None:
            summed += part
    return totals, summed, kept


def sweep(
    layout: Layout,
    X: Array,
    Z: Array,
    metrics: Sequence[Metric],
    terms: Terms,
    visit_all: VisitAll = map,
    sizes: Array | None = None,
    limit: Limit | None = None,
) -> Swept:
    """Sum the terms and the weighted z z' over all pairs of a layout of the points X.

    `sizes` are bounds on what Z was rounded from; with them the spread is made.
    """
    in_runs = sizes is not None and isinstance(Z, np.ndarray)
    distances = list(map(partial(block_distances, X), metrics))
    given = layout, distances, terms, with_one(Z), visit_all, in_runs
    totals, summed, _ = sum_strips(*given, limit=limit)
    if summed is None:
        return Swept(totals, np.zeros((Z.shape[1], Z.shape[1])))
    laplacian = summed[:, -1:] * Z - summed[:, :-1]
    matrix = short_product(Z.T, laplacian) if in_runs else Z.T @ laplacian
    spread = None if sizes is None else spread_of(summed[:, -1], Z, sizes)
    return Swept(totals, to_host(matrix), to_host(spread))


def sweep_listed(
    chunks: Iterable[Chunk],
    differences: Callable[[slice], Listed],
    metrics: Sequence[Metric],
    terms: Terms,
) -> Swept:
    """Sum the terms and the weighted v v' over listed pairs, chunk by chunk."""
    totals: list[list[Any]] = []
    matrix = spread = None
    for chunk in chunks:
        V, Z, sizes = differences(chunk.pairs)
        sums = sum_over(chunk, terms(chunk, *map(partial(listed_distances, V), metrics)))
        totals.append(sums.totals)
        if sums.weights is None:
            continue
        W = to_device_of(Z, sums.weights)
        in_runs = sizes is not None and isinstance(Z, np.ndarray)
        part = short_product(Z.T * W, Z) if in_runs else (Z.T * W) @ Z
        matrix = part if matrix is None else matrix + part
        if sizes is not None:
            size = spread_of(W, Z, sizes)
            spread = size if spread is None else spread + size
    total = np.sum(to_numbers(totals), axis=0)
    return Swept(total, np.asarray(0.0 if matrix is None else to_host(matrix)), to_host(spread))


def with_one(Z: Array) -> Array:
    """The points with a column of ones: [Z, 1]."""
    xp = namespace(Z)
    one = xp.ones((Z.shape[0], 1), dtype=Z.dtype, device=Z.device)
    return xp.concat([Z, one], axis=1)


def spread_of(weights: Array, Z: Array, sizes: Array) -> Array:
    """The weighted squares of each coordinate, sum_i w_i z_i^2, and the same of the sizes."""
    return namespace(Z).stack([weights @ (Z * Z), weights @ (sizes * sizes)], axis=-2)


def longest_chain(layout: Layout, in_runs: bool) -> int:
    """The number of additions, at most, that a term of a sum over a layout goes through.

    A block is summed along its rows, then blocks and strips are added, then all points. `in_runs`:
    by short sums.
    """
    n, block = layout.n_points, min(layout.size, layout.n_points)
    if not in_runs:
        return block + n + layout.n_blocks + 8
    of_matrix = product_chain(block) + product_chain(n)
    return max(of_matrix, totals_chain(block * block)) + layout.n_blocks + 8


class LossSums(NamedTuple):
    """The sum of a loss phi over all scores, and phi' and phi'' of each.

    `excess` is the sum of H(p) - phi(s), where a loss knows it at little cost: what the paper's
    objective (7) has more.
    """

    total: float
    slope: FloatArray
    curvature: FloatArray
    excess: float = np.nan


class PairLoss(Protocol):
    """A loss phi of the score s of a pair, with its first two derivatives."""

    @property
    def kernel(self) -> tuple[str, float]:
        """The name of the loss among the GPU's kernels, and its parameter."""

    def value(self, s: Array) -> Array:
        """The loss phi at each score, of any array library."""

    def slope(self, s: Array) -> Array:
        """Its derivative phi' at each score."""

    def sums(self, s: FloatArray) -> LossSums:
        """The sum of phi, and both derivatives of each, by one exponential per score."""


@dataclass(frozen=True, eq=False)
class LossTerms:
    """The losses of pairs, and their derivatives as weights.

    An unlabeled pair has mu * `loss`; a labeled pair in a block has `labeled_loss` times its
    confidence, or none. Each point of `counts` stands for so many.
    """

    loss: PairLoss
    threshold: float
    unlabeled_weight: float = 1.0
    labeled_loss: PairLoss | None = None
    counts: FloatArray | None = None
    with_matrix: bool = True

    def __call__(self, batch: PairBatch, d: Array) -> BatchSums:
        """The sum of the losses and that of H(p) - phi; c phi' and -2 c phi'' of each pair."""
        c = batch.confidence
        if not isinstance(d, np.ndarray):  # on a device
            s = d - self.threshold
            loss, slope = self.loss.value(s), self.loss.slope(s)
            if c is not None:
                loss, slope = c * loss, c * slope
            sums = BatchSums([namespace(s).sum(loss)], batch.symmetric(slope))
        else:
            if self.threshold:
                d -= self.threshold
            if isinstance(batch, Block):
                sums = self._of_block(batch, d)
            else:
                total, slope, _, excess = self.loss.sums(d.copy())
                total = total if c is None else float(np.vdot(c, self.loss.value(d)))
                sums = BatchSums([total, excess], batch.weigh(slope))
        return sums if self.with_matrix else BatchSums(sums.totals)

    def _of_block(self, block: Block, s: FloatArray) -> BatchSums:
        labeled, mu, own_loss = block.labeled, self.unlabeled_weight, self.labeled_loss
        if block.is_diagonal:
            s.reshape(-1)[:: len(s) + 1] = EXCLUDED_SCORE
        if labeled is not None and labeled.is_whole and own_loss is not None:
            total, W, P, _ = own_loss.sums(s)
            P *= -2.0
            excess = 0.0
        else:
            if labeled is not None:
                known = s[labeled.entries].copy()
                s[labeled.entries] = EXCLUDED_SCORE
            total, W, P, excess = self.loss.sums(s)
            total, excess = mu * total, mu * excess
            W *= mu
            P *= -2.0 * mu
            if labeled is not None and own_loss is not None:
                own, slope, curvature, _ = own_loss.sums(known)
                c = labeled.confidence
                if c is not None:
                    own = float(np.vdot(c, own_loss.value(known)))
                    slope, curvature = c * slope, c * curvature
                total += own
                W[labeled.entries] = slope
                P[labeled.entries] = -2.0 * curvature
        if self.counts is not None:
            each = self.counts[block.rows, None] * self.counts[block.columns]
            W *= each
            P *= each
        share = 0.5 if block.is_diagonal else 1.0  # both halves of it were summed
        return BatchSums([share * total, share * excess], W, P)


@dataclass(frozen=True, eq=False)
class AllPairs:
    """Every pair of the points X of a layout, with its loss; `terms` are of scores."""

    X: FloatArray
    layout: Layout
    terms: LossTerms
    threshold: float
    visit_all: VisitAll = map

    def at(self, L: FloatArray, keep: bool = True) -> BlocksPass:
        """Pass block by block; `keep` what second derivatives need, as large as the pairs."""
        Y = self.X @ L
        scores = euclidean_distances(Y, less=self.threshold)
        kind = np.float32 if len(Y) > EXACT_POINTS else np.float64
        given = self.layout, [scores], self.terms, with_one(Y), self.visit_all
        (total, excess), summed, kept = sum_strips(*given, keep=kind if keep else None)
        summed = np.asarray(summed)
        half_gradient = self.X.T @ (summed[:, -1:] * Y - summed[:, :-1])
        sums = float(total), float(excess), summed, half_gradient
        return BlocksPass(self, Y, scores, *sums, kept if keep else [])


@dataclass(frozen=True, eq=False)
class BlocksPass:
    """Losses summed over all pairs at Y = XL, and their derivatives in L and the metric there.

    `total` is the weighted sum, `excess` that of H(p) - phi over unlabeled pairs (NaN where it is
    not known), `summed` is W [Y, 1], `half_gradient` is half the gradient with respect to the
    factor: X'(Deg(W) - W) Y.
    """

    pairs: AllPairs
    Y: FloatArray
    scores: Callable[[Block], Any]
    total: float
    excess: float
    summed: FloatArray
    half_gradient: FloatArray
    kept: list[list[WeightedBlock]]

    @property
    def gradient(self) -> FloatArray:
        """The gradient with respect to the metric: X'(Deg(W) - W) X."""
        X = self.pairs.X
        if self.kept and self.kept[0] and self.kept[0][0].weights.dtype == np.float64:
            summed = np.zeros_like(X)
            for block in chain.from_iterable(self.kept):
                block.add_to(summed, X)
        else:
            pairs, scores = self.pairs, [self.scores]
            given = pairs.layout, scores, pairs.terms, with_one(X), pairs.visit_all
            summed = np.asarray(sum_strips(*given)[1])[:, :-1]
        return X.T @ (self.summed[:, -1:] * X - summed)

    def hessian_product(self, D: FloatArray) -> FloatArray:
        """The derivative of `half_gradient` along D: X'[(Deg(W) - W) E + (Deg(T) - T) Y], E = XD.

        T_ij is -2 c phi'' times -(y_i - y_j).(e_i - e_j), which is the product of the rows
        [y_i, e_i, -y_i.e_i, -1] and [e_j, y_j, 1, y_j.e_j].
        """
        n, rho = self.Y.shape
        Y_and_one, left, right = self._sides
        left[:, rho : 2 * rho] = right[:, :rho] = self.pairs.X @ D
        E = right[:, :rho]
        own = np.einsum("ij,ij->i", Y_and_one[:, :rho], E)
        np.negative(own, out=left[:, 2 * rho])
        right[:, 2 * rho + 1] = own

        def visit(number: int) -> tuple[FloatArray, FloatArray]:
            T_summed, W_summed = np.zeros((n, rho + 1)), np.zeros((n, rho))
            for rows, columns, W, P in self._strips[number]:
                T = left[rows] @ right[columns].T
                T *= P
                T_summed[rows] += T @ Y_and_one[columns]
                W_summed[rows] += W @ E[columns]
                if rows != columns:
                    T_summed[columns] += T.T @ Y_and_one[rows]
                    W_summed[columns] += W.T @ E[rows]
            return T_summed, W_summed

        T_summed, W_summed = np.zeros((n, rho + 1)), np.zeros((n, rho))
        for T_part, W_part in self.pairs.visit_all(visit, range(len(self._strips))):
            T_summed += T_part
            W_summed += W_part
        W_summed += T_summed[:, :rho]
        product = T_summed[:, rho:] * self.Y + self.summed[:, -1:] * E - W_summed
        return self.pairs.X.T @ product

    def weights_hessian_product(self, moved: NDArray[np.bool_], d: FloatArray) -> FloatArray:
        """Second derivatives with respect to weights of the moved features, along d.

        sum_k c_k phi''(s_k) (sum_a d_a v_ka^2) v_kb^2 for each of these features b.
        """
        kind: Any = np.float32 if len(self.Y) > SINGLE_PRECISION_POINTS else np.float64
        X = self.pairs.X[:, moved].astype(kind)
        scaled = X * d.astype(X.dtype)
        own = 0.5 * np.einsum("ij,ij->i", X, scaled)
        degree, crossed = np.zeros(len(X)), np.zeros(X.shape[1])
        for rows, columns, _, P in chain.from_iterable(self._strips):
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

    def curvature(self, S: FloatArray) -> float:
        """The second derivative along SS': sum c phi'' |e_i - e_j|^4, E = XS."""
        distances = euclidean_distances(self.pairs.X @ S)
        total = 0.0
        for rows, columns, _, P in chain.from_iterable(self.kept):
            d = distances(Block(rows, columns))
            total -= (0.25 if rows == columns else 0.5) * float(np.vdot(P, d * d))
        return total

    @cached_property
    def _sides(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """[Y, 1], and those two arrays with space for the direction."""
        n, rho = self.Y.shape
        kind = np.float32 if n > SINGLE_PRECISION_POINTS else np.float64
        Y_and_one = with_one(self.Y).astype(kind)
        left = np.full((n, 2 * rho + 2), -1.0, dtype=Y_and_one.dtype)
        right = np.ones((n, 2 * rho + 2), dtype=Y_and_one.dtype)
        left[:, :rho] = right[:, rho : 2 * rho] = Y_and_one[:, :rho]
        return Y_and_one, left, right

    @cached_property
    def _strips(self) -> list[list[WeightedBlock]]:
        """The weights in the precision of second derivatives: as kept, or single."""
        if not SINGLE_PRECISION_POINTS < len(self.Y) <= EXACT_POINTS:
            return self.kept
        return [[block.astype(np.float32) for block in strip] for strip in self.kept]


@dataclass(frozen=True, eq=False)
class ListedPairs:
    """Pairs of the points X given one by one, each with its own weight (None: 1)."""

    X: FloatArray
    pairs: IntArray
    weights: FloatArray | None
    loss: PairLoss
    threshold: float

    @cached_property
    def differences(self) -> scipy.sparse.csr_array:
        """The sparse matrix B that takes differences of points: (B Y)_k = y_i - y_j."""
        k = len(self.pairs)
        ones, starts = np.tile([1.0, -1.0], k), np.arange(0, 2 * k + 1, 2)
        return scipy.sparse.csr_array((ones, self.pairs.ravel(), starts), shape=(k, len(self.X)))

    @cached_property
    def transposed(self) -> scipy.sparse.csr_array:
        """The transpose of `differences`, in row format for fast products."""
        return self.differences.T.tocsr()

    def at(self, L: FloatArray, keep: bool = True) -> ListPass:
        """Pass over the listed pairs, one score per pair."""
        U = self.differences @ (self.X @ L)
        s = np.einsum("ij,ij->i", U, U) - self.threshold
        total, slope, curvature, _ = self.loss.sums(s)
        if self.weights is not None:
            total = float(np.vdot(self.weights, self.loss.value(s)))
            slope, curvature = self.weights * slope, self.weights * curvature
        return ListPass(total, self, U, slope, curvature)


@dataclass(frozen=True, eq=False)
class ListPass:
    """The same sums and derivatives over listed pairs."""

    total: float
    pairs: ListedPairs
    U: FloatArray
    slope: FloatArray
    second: FloatArray
    excess: float = np.nan

    @property
    def half_gradient(self) -> FloatArray:
        return self._collected(self.slope[:, None] * self.U)

    @property
    def gradient(self) -> FloatArray:
        return self._collected(self.slope[:, None] * (self.pairs.differences @ self.pairs.X))

    def hessian_product(self, D: FloatArray) -> FloatArray:
        F = self.pairs.differences @ (self.pairs.X @ D)
        t = 2.0 * self.second * np.einsum("ij,ij->i", self.U, F)
        return self._collected(self.slope[:, None] * F + t[:, None] * self.U)

    def curvature_matrix(self) -> FloatArray:
        """What phi'' adds to the Hessian as a matrix: sum_k 2 phi'' (v_k y_k')(v_k y_k')'."""
        V = self.pairs.differences @ self.pairs.X
        products = np.einsum("ki,kj->kij", V, self.U).reshape(len(V), -1)
        return np.asarray(products.T @ (2.0 * self.second[:, None] * products))

    def weights_hessian_product(self, moved: NDArray[np.bool_], d: FloatArray) -> FloatArray:
        squares = np.square(self.pairs.differences @ self.pairs.X[:, moved])
        return np.asarray((self.second * (squares @ d)) @ squares)

    def curvature(self, S: FloatArray) -> float:
        F = self.pairs.differences @ (self.pairs.X @ S)
        return float(np.vdot(self.second, np.square(np.einsum("ij,ij->i", F, F))))

    def _collected(self, of_pairs: FloatArray) -> FloatArray:
        """The sum of v_k times the row of each pair: X'B' times the rows."""
        return np.asarray(self.pairs.X.T @ (self.pairs.transposed @ of_pairs))


PairPass: TypeAlias = BlocksPass | ListPass
"""Losses summed over weighted pairs at XL, and their derivatives there."""
