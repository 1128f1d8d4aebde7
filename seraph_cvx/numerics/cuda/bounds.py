"""The sweep of a certificate over all pairs on a CUDA GPU, in one kernel.

Lower and upper bounds on scores, the terms of `certificate/pair_bounds.py` and `label_bounds.py`,
and the matrix of their weights are made tile by tile in registers, each unordered pair once, in
float64.

The dual point of a pair is the double r = (1 + d) 1 / (1 + e^s), d at most 13 roundings. With
a = -ln(1 / (1 + e^s)) and b = -ln(1 / (1 + e^-s)), which cost one logarithm together, the cross
entropy r a + (1 - r) b exceeds H(r) by at most d^2 e^-s, and b is off -ln(1 - r) by d e^-s. Scores
are not below -eta, so for eta <= 5 that is less than `FUSED_ROUNDINGS` of the terms themselves.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from .pair_kernels import reciprocal
from .pair_passes import TILE, launch_grid, on_device_of
from .pair_range import BoundedPairs

KINDS = {"no labels": 0, "soft labels": 1, "labels alone": 2}

BOUND_TILE = {"ROWS": 32, "COLUMNS": 32, "num_warps": 4}
"""The fastest of some sizes on an H200."""

CHUNK = 16
"""Columns of a product of two points that are multiplied at a time."""


@triton.jit  # type: ignore[untyped-decorator]
def _gram(left_ptr, right_ptr, i, j, K: tl.constexpr, CHUNK: tl.constexpr):  # type: ignore[no-untyped-def]
    """left_i . right_j of a tile of pairs."""
    d = tl.zeros((i.shape[0], j.shape[0]), dtype=tl.float64)
    for start in tl.static_range(0, K, CHUNK):
        k = start + tl.arange(0, CHUNK)
        left = tl.load(left_ptr + i[:, None] * K + k[None, :])
        right = tl.load(right_ptr + j[:, None] * K + k[None, :])
        d = tl.dot(left, tl.trans(right), d, out_dtype=tl.float64)
    return d


@triton.jit  # type: ignore[untyped-decorator]
def _posterior(s, EXACT: tl.constexpr):  # type: ignore[no-untyped-def]
    """1 / (1 + e^s) and log(1 + e^-|s|)."""
    decay = tl.exp(-tl.abs(s))
    both = 1.0 + decay
    inverse = reciprocal(both, EXACT)
    r = tl.where(s > 0.0, decay, 1.0) * inverse
    return r, tl.log(both) + (decay - (both - 1.0)) * inverse


@triton.jit(do_not_specialize=["n", "first", "run"])  # type: ignore[untyped-decorator]
def _bounds(  # type: ignore[no-untyped-def]
    left_ptr, right_ptr, width_ptr, label_left_ptr, label_right_ptr, z_ptr, out_ptr, degrees_ptr,
    sums_ptr, numbers_ptr, n, first, run, KIND: tl.constexpr, K: tl.constexpr,
    KL: tl.constexpr, KZ: tl.constexpr, EXACT: tl.constexpr, CHUNK: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Sum the terms, the weights W of each point and W Z over the pairs i < j, j >= first."""
    above, below = tl.load(numbers_ptr), tl.load(numbers_ptr + 1)
    sharpness, largest = tl.load(numbers_ptr + 2), tl.load(numbers_ptr + 3)
    more, fewer = tl.load(numbers_ptr + 4), tl.load(numbers_ptr + 5)
    i0 = tl.program_id(0) * ROWS
    begin = tl.maximum(i0 // COLUMNS, tl.program_id(1) * run)
    end = tl.minimum(tl.cdiv(n, COLUMNS), (tl.program_id(1) + 1) * run)
    if begin >= end:
        return
    kz = tl.arange(0, KZ)
    i = i0 + tl.arange(0, ROWS)
    width_i = tl.load(width_ptr + i)
    summed = tl.zeros((ROWS, KZ), dtype=tl.float64)
    degrees = tl.zeros((ROWS,), dtype=tl.float64)
    zero = tl.zeros((COLUMNS,), dtype=tl.float64)
    total, losses, entropies, rests, others = zero, zero, zero, zero, zero
    for tile in range(begin, end):
        j0 = tile * COLUMNS
        j = j0 + tl.arange(0, COLUMNS)
        d = _gram(left_ptr, right_ptr, i, j, K, CHUNK)
        s = tl.minimum(tl.maximum(d - above, -above), largest)
        upper = d + (width_i[:, None] + tl.load(width_ptr + j)[None, :])
        label = d
        if KIND == 1:
            label = _gram(label_left_ptr, label_right_ptr, i, j, KL, CHUNK)
        if KIND == 2:
            s = (tl.maximum(upper, 0.0) - below) * sharpness
        label = tl.minimum((label - above) * sharpness, largest)
        if (j0 < i0 + ROWS) | (j0 + COLUMNS > n) | (j0 < first):
            # at a score of 100,000 every term is exactly zero
            is_pair = (i[:, None] < j[None, :]) & (j[None, :] < n) & (j[None, :] >= first)
            s = tl.where(is_pair, s, 100000.0)
            label = tl.where(is_pair, label, 100000.0)
        w, log = _posterior(s, EXACT)
        if KIND == 2:
            w = tl.where(s > largest, 0.0, w * fewer)
            log = tl.where(s > largest, 0.0, log)
        rest_log = tl.maximum(-s, 0.0) + log
        rest = (1.0 - w) * rest_log
        entropies += tl.sum(w * (tl.maximum(s, 0.0) + log) + rest, axis=0)
        if KIND != 2:
            losses += tl.sum(rest_log, axis=0)
            rests += tl.sum(rest, axis=0)
        if KIND != 0:
            q, _ = _posterior(label, EXACT)
            q = tl.minimum(q * more, 1.0)
            if KIND == 1:
                q *= tl.maximum(upper, 0.0)
            others += tl.sum(q, axis=0)
        weight_j = tl.sum(w, axis=0)
        total += weight_j
        degrees += tl.sum(w, axis=1)
        tl.atomic_add(degrees_ptr + j, weight_j, sem="relaxed", mask=j < n)
        z = tl.load(z_ptr + j[:, None] * KZ + kz[None, :])
        summed = tl.dot(w, z, summed, out_dtype=tl.float64)
    tl.atomic_add(degrees_ptr + i, degrees, sem="relaxed", mask=i < n)
    tl.atomic_add(
        out_ptr + i[:, None] * KZ + kz[None, :], summed, sem="relaxed", mask=i[:, None] < n
    )
    program = tl.program_id(0) * tl.num_programs(1) + tl.program_id(1)
    tl.store(sums_ptr + 5 * program, tl.sum(losses))
    tl.store(sums_ptr + 5 * program + 1, tl.sum(entropies))
    tl.store(sums_ptr + 5 * program + 2, tl.sum(total))
    tl.store(sums_ptr + 5 * program + 3, tl.sum(rests))
    tl.store(sums_ptr + 5 * program + 4, tl.sum(others))


def weighted_bounds(
    sides: tuple[Any, Any], width: Any, labels: tuple[Any, Any] | None, Z: Any, pairs: BoundedPairs
) -> tuple[Any, Any, Any]:
    """The sums over the pairs, the weights of each point, and the upper triangle of W times Z.

    With (left, right) = `sides`, left_i . right_j is a lower bound on the squared distance of i and
    j, and width_i + width_j more an upper one; `labels` are such sides for the distances that soft
    labels depend on. Z has at most 64 columns. The five sums are of the loss; the entropy; the
    weight; -(1 - w) ln(1 - w); and, with soft labels, their upper bounds times those on the
    distances. Of labels alone: 0, the entropy, the lower bounds on the labels, 0, and the upper.
    """
    n, used = Z.shape
    left, right = (_padded(side, CHUNK) for side in sides)
    label_left, label_right = (
        (left, right) if labels is None else (_padded(side, CHUNK) for side in labels)
    )
    z = _padded(Z, triton.next_power_of_2(max(CHUNK, used)))
    grid, run = launch_grid(pairs.n, BOUND_TILE)
    out = torch.zeros_like(z)
    degrees = torch.zeros(len(z), dtype=torch.float64, device=z.device)
    sums = torch.zeros((grid[0] * grid[1], 5), dtype=torch.float64, device=z.device)
    numbers = torch.tensor(pairs.numbers, dtype=torch.float64, device=z.device)
    with on_device_of(z):
        _bounds[grid](
            left, right, _padded(width[:, None], 1), label_left, label_right, z, out, degrees, sums,
            numbers, pairs.n, pairs.first, run, KIND=KINDS[pairs.kind], K=left.shape[1],
            KL=label_left.shape[1], KZ=z.shape[1], EXACT=not z.is_cuda, CHUNK=CHUNK, **BOUND_TILE,
        )  # fmt: skip
    return torch.sum(sums, dim=0), degrees[:n], out[:n, :used]


def _padded(columns: Any, multiple: int) -> Any:
    """The columns with zeros below and beside, so that tiles and chunks fill their sides."""
    n, used = columns.shape
    shape = -(-n // TILE) * TILE, -(-used // multiple) * multiple
    result = torch.zeros(shape, dtype=torch.float64, device=columns.device)
    result[:n, :used] = columns
    return result
