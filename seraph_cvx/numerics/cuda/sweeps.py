"""The terms of a sweep on a CUDA GPU: one pass over a block of distances instead of a dozen.

Each program of a kernel takes a run of distances, overwrites them by the weights and leaves two
partial sums, so that the result does not depend on the order in which programs run. Float64
throughout. The formulas are those of `posterior.py`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
import triton
import triton.language as tl

RUN = 1024
"""Distances per program."""

KINDS = {"logistic": 0, "soft label": 1, "descent": 2}


@triton.jit
def _log1p(x):  # type: ignore[no-untyped-def]
    """Compute log(1 + x) for x in [0, 1], corrected for the rounding of 1 + x."""
    y = 1.0 + x
    return tl.log(y) + (x - (y - 1.0)) / y


@triton.jit  # type: ignore[untyped-decorator]
def _terms(d_ptr, sums_ptr, numbers_ptr, size, KIND: tl.constexpr, RUN: tl.constexpr):  # type: ignore[no-untyped-def]
    threshold = tl.load(numbers_ptr)  # a Python float would come as float32
    sharpness = tl.load(numbers_ptr + 1)
    program = tl.program_id(0).to(tl.int64)
    position = program * RUN + tl.arange(0, RUN)
    inside = position < size
    d = tl.load(d_ptr + position, mask=inside, other=0.0)
    s = d - threshold
    if KIND == 1:
        s = sharpness * s
    length = tl.abs(s)
    decay = tl.exp(-length)
    surprise = _log1p(decay)
    if KIND == 2:
        second = surprise + length * (decay / (1.0 + decay))
        first = surprise - _log1p(tl.exp(-sharpness * length)) / sharpness
    else:
        similar = tl.where(s > 0.0, decay, 1.0) / (1.0 + decay)
        if KIND == 0:
            first = surprise + tl.where(s > 0.0, 0.0, length)
            second = similar * d
        else:
            first = similar
            second = surprise + length * (decay / (1.0 + decay))
        tl.store(d_ptr + position, similar, mask=inside)
    tl.store(sums_ptr + 2 * program, tl.sum(tl.where(inside, first, 0.0)))
    tl.store(sums_ptr + 2 * program + 1, tl.sum(tl.where(inside, second, 0.0)))


def logistic(d: Any, threshold: float) -> tuple[Any, Any]:
    """Sum log(1 + e^{-s}); each sigma(-s) is written over `d`."""
    return _run(d, threshold, 1.0, "logistic")[0], d


def soft_label(d: Any, threshold: float, sharpness: float) -> tuple[Any, Any, Any]:
    """Sum the soft labels q = sigma(-sharpness s) and H(q); each q is written over `d`."""
    return *_run(d, threshold, sharpness, "soft label"), d


def descent(d: Any, threshold: float, sharpness: float) -> tuple[Any, Any]:
    """Sum the unlabeled terms of J, minimized over q, and of (7)."""
    return _run(d, threshold, sharpness, "descent")


def _run(d: Any, threshold: float, sharpness: float, kind: str) -> tuple[Any, Any]:
    size = d.numel()
    programs = triton.cdiv(size, RUN)
    sums = torch.empty((programs, 2), dtype=torch.float64, device=d.device)
    numbers = _numbers(threshold, sharpness, d.device)
    _terms[(programs,)](d, sums, numbers, size, KIND=KINDS[kind], RUN=RUN)
    first, second = torch.sum(sums, dim=0)
    return first, second


@lru_cache(maxsize=64)
def _numbers(threshold: float, sharpness: float, device: Any) -> Any:
    """Keep both sums on the device: copying them would make each block wait."""
    return torch.tensor([threshold, sharpness], dtype=torch.float64, device=device)
