"""One sweep over blocks of pairs by matrix products, on arrays of any library.

For a term t of the squared distance d_k = v_k' A v_k and a weight w of it, a sweep returns

    sum_k t(d_k)      and      sum_k w(d_k) v_k v_k' = X' (Diag(W 1) - W) X

where W is the symmetric weight matrix: O(n^2 m + n m^2) work, O(n m + block^2) memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from typing import Any, Protocol, Self, TypeAlias

import numpy as np

from .arrays import Array, beside, namespace, to_host, to_numbers
from .blocks import FAR, Block, Terms
from .checks import FloatArray

Visit: TypeAlias = tuple[Sequence[Any], tuple[Array, Array, Array] | None]
"""The sums over a block; the row sums and column sums of its weights W, and X' W X."""

VisitAll: TypeAlias = Callable[[Callable[[Block], Visit], Sequence[Block]], Iterable[Visit]]
"""As `map`: the results come in the order of the blocks."""


class UnlabeledSums(Protocol):
    """Another way to sum over the unlabeled pairs than by threads of this process."""

    @property
    def is_at_hand(self) -> bool:
        """Whether to go that way now."""

    def in_coordinates(self, T: FloatArray) -> Self:
        """The same pairs of the points T'x."""

    def summed_in(self, T: FloatArray) -> Self:
        """The same distances; v v' along the axes T."""

    def over_unlabeled(
        self, metrics: Sequence[FloatArray], terms: Terms
    ) -> tuple[FloatArray, FloatArray]:
        """The two sums."""


def sweep(
    X: Array,
    Z: Array,
    blocks: Sequence[Block],
    metrics: Sequence[FloatArray],
    terms: Terms,
    visit_all: VisitAll = map,
) -> tuple[FloatArray, FloatArray]:
    """The two sums over the pairs of `blocks`.

    Parameters
    ----------
    X : (n, m) array
        The points, for distances.
    Z : (n, k) array
        The same points, for v v'; usually X.
    blocks : sequence of Block
    metrics : sequence of (m, m) arrays
        NumPy's, like the result.
    terms : callable
    visit_all : callable
        `map`, or one that works in threads.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> whole = Block(slice(0, 3), slice(0, 3), None)
    >>> sweep(X, X, [whole], [np.eye(1)], lambda block, d: ([np.sum(d[d < FAR])], None))[0]
    array([14.])
    """
    xp = namespace(X)
    distances_on = [_distances(X, beside(X, A)) for A in metrics]

    def visit(block: Block) -> Visit:
        distances = [on(block) for on in distances_on]
        sums, weights = terms(block, *distances)
        if weights is None:
            return sums, None
        rows, columns = Z[block.rows, :], Z[block.columns, :]
        if hasattr(weights, "shape"):
            return sums, _weigh(weights, rows, columns)
        parts = zip(*(_weigh(W, rows, columns) for W in weights), strict=True)
        row_sums, column_sums, cross = (xp.stack(part) for part in parts)
        return sums, (row_sums, column_sums, cross)

    totals: list[list[Any]] = []
    degrees = cross = None
    for block, (sums, weighted) in zip(blocks, visit_all(visit, blocks), strict=True):
        totals.append(list(sums))
        if weighted is None:
            continue
        if degrees is None or cross is None:
            degrees = xp.zeros((*weighted[0].shape[:-1], X.shape[0]), **_kind(weighted[0]))
            cross = xp.zeros(weighted[2].shape, **_kind(weighted[2]))
        degrees[..., block.rows] += weighted[0]
        degrees[..., block.columns] += weighted[1]
        cross += weighted[2]
    total = np.sum(to_numbers(totals), axis=0)
    if degrees is None or cross is None:
        return total, np.zeros((Z.shape[1], Z.shape[1]))
    matrix = (xp.matrix_transpose(Z) * degrees[..., None, :]) @ Z
    return total, np.asarray(to_host(matrix - cross - xp.matrix_transpose(cross)))


def _kind(x: Array) -> dict[str, Any]:
    """Of the same numbers, at the same place."""
    return (
        {"dtype": x.dtype} if isinstance(x, np.ndarray) else {"dtype": x.dtype, "device": x.device}
    )


def _weigh(W: Array, rows: Array, columns: Array) -> tuple[Array, Array, Array]:
    xp = namespace(W)
    return xp.sum(W, axis=1), xp.sum(W, axis=0), xp.matrix_transpose(rows) @ (W @ columns)


def _distances(X: Array, A: Array) -> Callable[[Block], Array]:
    """||x_i - x_j||_A^2 = x_i'Ax_i + x_j'Ax_j - 2 x_i'Ax_j over a block; FAR off its pairs."""
    xp = namespace(X)
    XA = X @ A
    square = xp.sum(XA * X, axis=1)
    XA *= -2.0
    if isinstance(X, np.ndarray):
        return partial(_distances_here, X, XA, square)
    one = xp.ones_like(square)
    left = xp.concat([XA, square[:, None], one[:, None]], axis=1)
    right = xp.concat([X, one[:, None], square[:, None]], axis=1)
    return partial(_distances_there, left, right)


def _distances_here(X: FloatArray, XA: FloatArray, square: FloatArray, block: Block) -> FloatArray:
    d = XA[block.rows] @ X[block.columns].T
    d += square[block.rows, None]
    d += square[block.columns]
    if block.rows == block.columns:
        d += _lower_triangle(len(d))
    if block.excluded is not None and len(block.excluded[0]):
        d[block.excluded] = FAR
    return d


def _distances_there(left: Array, right: Array, block: Block) -> Array:
    """All three terms by one product: on a GPU a pass over the block costs more than that."""
    xp = namespace(left)
    d = left[block.rows, :] @ xp.matrix_transpose(right[block.columns, :])
    return d if block.excluded is None else xp.where(block.excluded, FAR, d)


@cache
def _lower_triangle(size: int) -> FloatArray:
    """FAR on and below the diagonal, 0 above it."""
    return np.tril(np.full((size, size), FAR))
