"""Sums over all pairs of a few coordinates on a CUDA GPU: the launches of `pair_kernels.py`.

The score of a pair is left_i . right_j, as `sides` makes them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import torch
import triton

from .pair_kernels import gradients as gradient_kernel
from .pair_kernels import hessian_products as hessian_kernel
from .pair_range import PairRange

KINDS = {"logistic": 0, "sharpened": 1, "entropy": 2}
"""The losses of `posterior.py`."""


LARGEST_EXPONENT = 746.0
"""e^-t is zero for larger t."""

TILE = 64
"""Rows of all arrays are padded to a multiple of this; a tile's sides divide it."""

GRADIENT_TILE = {"ROWS": 32, "COLUMNS": 32, "num_warps": 2}
HESSIAN_TILE = {"ROWS": 64, "COLUMNS": 64, "num_warps": 4, "num_stages": 2}
"""The fastest of some sizes on an H200."""

LEAST_RUN, MOST_RUNS = 16, 64
"""Tiles that a program visits, at least, and programs for one row of tiles, at most."""


def padded(columns: list[Any], single: bool = False, width: int = 0) -> Any:
    """Stack columns of n numbers as an array with sides that the kernels expect.

    The number of rows is a multiple of `TILE`, that of columns a power of two, at least 16.
    """
    stacked = torch.hstack([c[:, None] if c.ndim == 1 else c for c in columns])
    n, used = stacked.shape
    rows = -(-max(n, 1) // TILE) * TILE
    shape = rows, triton.next_power_of_2(max(16, used, width))
    dtype = torch.float32 if single else torch.float64
    result = torch.zeros(shape, dtype=dtype, device=stacked.device)
    result[:n, :used] = stacked
    return result


def sides(Y: Any, threshold: float) -> tuple[Any, Any]:
    """[-2Y, |y|^2 - eta, 1, 0, ...] and [Y, 1, |y|^2, 0, ...], whose product has all scores."""
    squares = torch.sum(Y * Y, dim=1)
    one, width = torch.ones_like(squares), Y.shape[1] + 3
    left = padded([-2.0 * Y, squares - threshold, one], width=width)
    return left, padded([Y, one, squares], width=width)


def single(sides: tuple[Any, Any]) -> tuple[Any, Any]:
    """The sides in single precision."""
    left, right = sides
    return left.float(), right.float()


def counted(counts: Any) -> Any:
    """The number of points that each stands for, as second derivatives expect it."""
    return padded([counts], single=True)[:, 0].contiguous()


class LoadedPairs(NamedTuple):
    """Pairs, and on the device: the sharpness, the same less 1, and the weight.

    A kernel would take Python's numbers as float32, and a copy for every launch would wait.
    """

    pairs: PairRange
    numbers: Any


def loaded(pairs: PairRange, x: Any) -> LoadedPairs:
    """Copy what a kernel reads of the pairs to the device of `x`."""
    numbers = pairs.sharpness, pairs.sharpness - 1.0, pairs.weight
    return LoadedPairs(pairs, torch.tensor(numbers, dtype=torch.float64, device=x.device))


def gradients(sides: tuple[Any, Any], parts: Sequence[LoadedPairs], used: int) -> tuple[Any, Any]:
    """What `totals` makes sums of losses from, and the first columns of W right.

    W is that of all parts, each with its weight.
    """
    out = torch.zeros_like(sides[1])
    sums = [torch.sum(_add_gradients(sides, sides[1], out, part, used), 0) for part in parts]
    return torch.stack(sums), out


def totals(parts: Sequence[LoadedPairs], sums: Any) -> tuple[float, float]:
    """The weighted sum of the losses, and that of H(p) - loss over the first part.

    The latter is NaN where the loss does not know it. `sums` are those of `gradients`, on the host.
    """
    found = [
        (part.pairs.weight, *_loss_and_excess(part.pairs, *map(float, row)))
        for part, row in zip(parts, sums, strict=True)
    ]
    weight, _, excess = found[0]
    return sum(weight * loss for weight, loss, _ in found), weight * excess


def _loss_and_excess(
    pairs: PairRange, logs: float, more: float, rest: float
) -> tuple[float, float]:
    if pairs.kind == "sharpened":
        a = pairs.sharpness
        if _power(a) == 1:  # `more` is what log(1 + y) falls short of log(1 + x)
            return (logs * (a - 1.0) + more) / a, rest + (logs - more) / a
        return logs - more / a, rest + more / a
    return logs + rest, math.nan


def upper_product(sides: tuple[Any, Any], z: Any, parts: Sequence[LoadedPairs]) -> Any:
    """The strict upper triangle of the weights W of all parts, times z."""
    out = torch.zeros_like(z)
    for part in parts:
        _add_gradients(sides, z, out, part, z.shape[1])
    return out


def _add_gradients(sides: tuple[Any, Any], z: Any, out: Any, part: LoadedPairs, used: int) -> Any:
    """Add W z to `out`, or its upper triangle if z is no side; return the sums of programs."""
    (left, right), (pairs, numbers) = sides, part
    grid, run = launch_grid(pairs.n, GRADIENT_TILE)
    sums = torch.zeros((grid[0] * grid[1], 3), dtype=torch.float64, device=left.device)
    with on_device_of(left):
        gradient_kernel[grid](
            left, right, z, out, sums, numbers, pairs.n, pairs.first, used, run,
            K=left.shape[1], KZ=z.shape[1], TWO_SIDED=z is right,
            **_constants(pairs, left), **GRADIENT_TILE,
        )  # fmt: skip
    return sums


def hessian_products(
    sides: tuple[Any, Any], e: Any, counts: Any, parts: Sequence[LoadedPairs], rho: int
) -> tuple[Any, Any]:
    """W [E, ., 1] and T [Y, 1, .] over all parts; see the kernel for the columns of `e`."""
    left, right = sides
    W_summed, T_summed = torch.zeros_like(e), torch.zeros_like(e)
    with on_device_of(left):
        for pairs, numbers in parts:
            grid, run = launch_grid(pairs.n, HESSIAN_TILE)
            hessian_kernel[grid](
                left, right, e, right if counts is None else counts, W_summed, T_summed,
                numbers, pairs.n, pairs.first, rho, run,
                K=left.shape[1], COUNTED=counts is not None, **_constants(pairs, left),
                **HESSIAN_TILE,
            )  # fmt: skip
    return W_summed, T_summed


def launch_grid(n: int, tile: dict[str, int]) -> tuple[tuple[int, int], int]:
    """The programs of a launch, and how many tiles each visits at most."""
    rows, columns = -(-n // tile["ROWS"]), -(-n // tile["COLUMNS"])
    run = max(LEAST_RUN, -(-columns // MOST_RUNS))
    return (max(1, rows), -(-columns // run)), run


def _constants(pairs: PairRange, x: Any) -> dict[str, Any]:
    """What a kernel is compiled for; Triton's interpreter knows no instructions of a GPU."""
    return {
        "KIND": KINDS[pairs.kind],
        "POWER": _power(pairs.sharpness),
        "EXACT": not x.is_cuda,
    }


def on_device_of(x: Any) -> Any:
    """Launches go to the device of `x`, not to the current one."""
    if not x.is_cuda or x.device.index == torch.cuda.current_device():
        return nullcontext()
    return torch.cuda.device(x.device)


def _power(sharpness: float) -> int:
    """Which power of e^-t is made without another exponential: see `pair_kernels._sharper_by`.

    2 is the square. 1: so little more than e^-t that a polynomial will do wherever e^-t is not
    zero; its error, relative to z, is below 2^-40 / 120.
    """
    if sharpness == 2.0:
        return 2
    return 1 if 0.0 <= (sharpness - 1.0) * LARGEST_EXPONENT <= 2.0**-10 else 0
