"""One sweep over blocks of pairs by matrix products, on arrays of any library.

For a term t of the squared distance d_k = v_k' A v_k and a weight w of it, a sweep returns

    sum_k t(d_k)      and      sum_k w(d_k) v_k v_k' = X' (Diag(W 1) - W) X

where W is the symmetric weight matrix: O(n^2 m + n m^2) work, O(n m + block^2) memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol, Self, TypeAlias, runtime_checkable

import numpy as np

from ..numerics.accurate_sums import product_chain, short_column_sums, short_product, totals_chain
from ..numerics.arrays import Array, namespace, to_device_of, to_host, to_numbers
from ..numerics.checks import FloatArray
from ..numerics.cuda.pair_range import BoundedPairs
from .blocks import Block, Chunk, Terms, sum_over
from .distances import Metric, block_distances, listed_distances

Listed: TypeAlias = tuple[Array, Array, Array | None]
"""Differences of listed pairs for distances, the same for v v', and the sizes of the latter."""

Visit: TypeAlias = tuple[Sequence[Any], tuple[Array, Array, Array] | None]
"""The sums over a block; the row sums and column sums of its weights W, and X' W X."""

VisitAll: TypeAlias = Callable[[Callable[[Block], Visit], Sequence[Block]], Iterable[Visit]]
"""A function like `map`: the results come in the order of the blocks."""


class Swept(NamedTuple):
    """The sums that a sweep returns.

    Attributes
    ----------
    totals : (t,) array
        The sums of the terms.
    matrix : (k, k) or (w, k, k) array
        sum_k w_k v_k v_k', one for each array of weights.
    spread : (2, k) or (w, 2, k) array, optional
        sum_i deg_i z_i^2 of each coordinate, deg_i the sum of the weights of the pairs of point i,
        and the same of the sizes that z_i is rounded from: what bounds the rounding error of
        `matrix`.
        Made where the sweep knows the sizes.
    """

    totals: FloatArray
    matrix: FloatArray
    spread: FloatArray | None = None


@runtime_checkable
class FusedTerms(Protocol):
    """Terms that a kernel of a GPU knows: see `cuda/bounds.py`."""

    def on_pairs(self, n: int, first: int) -> BoundedPairs | None:
        """What is summed over the pairs i < j < n with j >= first; None where no kernel does."""

    def in_order(self, sums: Array) -> list[Array]:
        """The sums of that kernel, as these terms have them."""


class UnlabeledSums(Protocol):
    """Another way to sum over the unlabeled pairs than by threads of this process."""

    @property
    def is_available(self) -> bool:
        """Whether these sums can be used now."""

    def in_coordinates(self, T: FloatArray, shift: FloatArray) -> Self:
        """The same sums over pairs of the points T'x - shift."""

    def summed_in(self, T: FloatArray, shift: FloatArray, with_spread: bool = False) -> Self:
        """The same distances, with v v' summed for the points T'x - shift."""

    def along(self, coordinates: FloatArray, sizes: FloatArray) -> UnlabeledSums | None:
        """The same distances, with v v' summed in the given coordinates; None if unsupported."""

    @property
    def device_array(self) -> Array | None:
        """An array of the device on which labeled pairs are summed over too, or None."""

    @property
    def longest_chain(self) -> int:
        """The number of additions, at most, that any term of a sum goes through."""

    def over_unlabeled(self, metrics: Sequence[Metric], terms: Terms) -> Swept:
        """Sum the terms and the weighted v v' over the unlabeled pairs."""


def sweep(
    X: Array,
    Z: Array,
    blocks: Sequence[Block],
    metrics: Sequence[Metric],
    terms: Terms,
    visit_all: VisitAll = map,
    sizes: Array | None = None,
) -> Swept:
    """Sum the terms and the weighted v v' over the pairs of `blocks`.

    Parameters
    ----------
    X : (n, m) array
        The points, for distances.
    Z : (n, k) array
        The same points, for v v'; usually X.
    blocks : sequence of Block
    metrics : sequence of (m, m) arrays or DistanceBounds
        NumPy's, like the result.
    terms : callable
    visit_all : callable
        `map`, or one that works in threads.
    sizes : (n, k) array, optional
        Bounds on what Z was rounded from; with them the spread is made.

    Examples
    --------
    >>> from seraph_cvx.engine.blocks import PairTerms
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> whole = Block(slice(0, 3), slice(0, 3), None)
    >>> def total(block, d):
    ...     return PairTerms([block.pairs_of(d)])
    >>> sweep(X, X, [whole], [np.eye(1)], total)[0]
    array([14.])
    """
    xp = namespace(X)
    distances_on = [block_distances(X, metric) for metric in metrics]
    in_runs = sizes is not None and isinstance(Z, np.ndarray)
    weigh = _weigh_in_runs if in_runs else _weigh

    def visit(block: Block) -> Visit:
        distances = [on(block) for on in distances_on]
        sums, weights = sum_over(block, terms(block, *distances))
        if weights is None:
            return sums, None
        rows, columns = Z[block.rows, :], Z[block.columns, :]
        parts = zip(*(weigh(W, rows, columns) for W in weights), strict=True)
        row_sums, column_sums, cross = (one_or_stack(part) for part in parts)
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
        return Swept(total, np.zeros((Z.shape[1], Z.shape[1])))
    matrix = weighted_moment(degrees, Z, in_runs)
    matrix = np.asarray(to_host(matrix - cross - xp.matrix_transpose(cross)))
    spread = None if sizes is None else np.asarray(to_host(spread_of(degrees, Z, sizes)))
    return Swept(total, matrix, spread)


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
        distances = (listed_distances(V, metric) for metric in metrics)
        sums, weights = sum_over(chunk, terms(chunk, *distances))
        totals.append(list(sums))
        if weights is None:
            continue
        W = to_device_of(Z, one_or_stack(weights))
        part = weighted_moment(W, Z, sizes is not None and isinstance(Z, np.ndarray))
        matrix = part if matrix is None else matrix + part
        if sizes is not None:
            size = spread_of(W, Z, sizes)
            spread = size if spread is None else spread + size
    total = np.sum(to_numbers(totals), axis=0)
    matrix = np.asarray(0.0 if matrix is None else to_host(matrix))
    return Swept(total, matrix, None if spread is None else np.asarray(to_host(spread)))


def one_or_stack(parts: Iterable[Array]) -> Array:
    """The only array, or all of them as one with a leading axis."""
    arrays = list(parts)
    return arrays[0] if len(arrays) == 1 else namespace(arrays[0]).stack(arrays)


def weighted_moment(weights: Array, Z: Array, in_runs: bool) -> Array:
    """The weighted second moment of points, sum_i w_i z_i z_i', or a stack of them.

    `in_runs` makes it by short sums.
    """
    left = namespace(Z).matrix_transpose(Z) * weights[..., None, :]
    return short_product(left, Z) if in_runs else left @ Z


def spread_of(weights: Array, Z: Array, sizes: Array) -> Array:
    """The weighted squares of each coordinate, sum_i w_i z_i^2, and the same of the sizes."""
    return namespace(Z).stack([weights @ (Z * Z), weights @ (sizes * sizes)], axis=-2)


def transformed(
    points: Array, T: Array, shift: Array, with_sizes: bool = False
) -> tuple[Array, Array | None]:
    """The points T'x - shift and, if asked for, the sizes that bound their rounding errors."""
    xp = namespace(points)
    sizes = xp.abs(points) @ xp.abs(T) if with_sizes else None
    return shifted(points @ T, shift, sizes, T.shape[0])


def shifted(Z: Array, shift: Array, sizes: Array | None, n_base: int) -> tuple[Array, Array | None]:
    """Shift coordinates that are sums of `n_base` products; their sizes cover that rounding too."""
    Z = Z - shift
    return Z, None if sizes is None else sizes + namespace(Z).abs(Z) / (n_base + 4)


def longest_chain(n_points: int, block_size: int, n_blocks: int, in_runs: bool) -> int:
    """The number of additions, at most, that a term of a sum over blocks of pairs goes through.

    A block is summed along its rows, then along its columns; row sums, of which there are as many
    as points, are summed over the blocks and then over the points. `in_runs`: by short sums.
    """
    block = min(block_size, n_points)
    if not in_runs:
        return block + n_points + n_blocks + 8
    of_matrix = product_chain(block) + product_chain(n_points)
    return max(of_matrix, totals_chain(block * block)) + n_blocks + 8


def _kind(x: Array) -> dict[str, Any]:
    """The arguments that make a new array of the type, and on the device, of x."""
    return (
        {"dtype": x.dtype} if isinstance(x, np.ndarray) else {"dtype": x.dtype, "device": x.device}
    )


def _weigh(W: Array, rows: Array, columns: Array) -> tuple[Array, Array, Array]:
    xp = namespace(W)
    return xp.sum(W, axis=1), xp.sum(W, axis=0), xp.matrix_transpose(rows) @ (W @ columns)


def _weigh_in_runs(W: Array, rows: Array, columns: Array) -> tuple[Array, Array, Array]:
    """The same as `_weigh`, of NumPy arrays and by short sums."""
    one = np.ones((len(columns), 1))
    found = short_product(W, np.concatenate([columns, one], axis=1))
    return found[:, -1], short_column_sums(W), short_product(rows.T, found[:, :-1])
