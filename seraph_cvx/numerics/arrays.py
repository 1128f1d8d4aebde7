"""Arrays of NumPy, of a GPU, of any library with the array API; and one BLAS thread for all.

All m x m matrices stay with NumPy on the host; only the sums over unlabeled pairs are made on
the device of the user's array.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeAlias

import numpy as np
from array_api_compat import (
    array_namespace,
    device,
    is_array_api_obj,
    is_cupy_array,
    is_dask_array,
    is_numpy_array,
    is_torch_array,
)
from threadpoolctl import OpenBLASController, ThreadpoolController

from .checks import FloatArray, IntArray

# An array of any library.
Array: TypeAlias = Any


def namespace(x: Array) -> Any:
    """The array API functions of this array's library."""
    return np if isinstance(x, np.ndarray) else array_namespace(x)


def is_foreign_array(x: Any) -> bool:
    """Whether `x` is an array of another library than NumPy, with a device to compute on.

    A Dask array has none: its numbers are taken to NumPy.
    """
    if isinstance(x, np.ndarray) or not is_array_api_obj(x):
        return False
    return not is_numpy_array(x) and not is_dask_array(x)


def to_host(x: Any) -> Any:
    """Copy an array of another library to NumPy; return anything else unchanged."""
    if not is_foreign_array(x):
        return x
    if is_torch_array(x):
        return x.detach().cpu().numpy()
    return x.get() if is_cupy_array(x) else np.asarray(x)


def to_device_of(device_array: Array, x: Any) -> Array:
    """Copy `x` to the library and device of `device_array`, as float64; None stays None."""
    if x is None or device_array is None or isinstance(device_array, np.ndarray):
        return x
    if isinstance(x, np.ndarray) and not x.flags.writeable:
        x = x.copy()  # or PyTorch warns that it might write to it
    xp = array_namespace(device_array)
    return xp.asarray(x, dtype=xp.float64, device=device(device_array))


def index_on_device_of(device_array: Array, index: IntArray) -> Array:
    """Copy numbers of rows to the library and device of `device_array`."""
    if device_array is None or isinstance(device_array, np.ndarray):
        return index
    xp = array_namespace(device_array)
    return xp.asarray(np.array(index, order="C"), device=device(device_array))


def cuda_kernels(x: Array, module: str) -> Any:
    """A module of `cuda`, for an array on a GPU; None if there is none."""
    return _cuda_module(module) if is_torch_array(x) and x.is_cuda else None


@cache
def _cuda_module(name: str) -> Any:
    """A module of kernels; None where Triton is not installed."""
    if find_spec("triton") is None:
        return None
    return import_module(f".cuda.{name}", __package__)


def to_numbers(rows: list[list[Any]]) -> FloatArray:
    """Copy a table of scalars to NumPy, in one transfer."""
    if not rows or not is_foreign_array(rows[0][0]):
        return np.asarray(rows, dtype=np.float64)
    xp = array_namespace(rows[0][0])
    flat = xp.stack([number for row in rows for number in row])
    return np.asarray(to_host(flat), dtype=np.float64).reshape(len(rows), -1)


@dataclass
class _SharedLimit:
    """The limit on BLAS that all fits of a process share, and how many of them are inside."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    stack: ExitStack = field(default_factory=ExitStack)
    inside: int = 0
    setter: int = 0


_SHARED = _SharedLimit()


@cache
def _controller() -> ThreadpoolController:
    """What limits the BLAS of NumPy and the other one of SciPy."""
    import scipy.linalg  # noqa: F401, a BLAS that is loaded later is not limited

    return ThreadpoolController()


@contextmanager
def one_blas_thread(dimension: int = 0) -> Iterator[None]:
    """Limit BLAS to one thread in this context: blocks are small, more threads are `n_jobs`.

    With two threads an M-step took 50 times longer while another process was running. There is no
    limit where matrices of a dimension of 1,000 take most of the time. The first context of a
    process sets the limit, the last one lifts it.
    """
    if dimension >= 1_000:
        yield
        return
    with _SHARED.lock:
        if _SHARED.inside == 0:
            _SHARED.stack.enter_context(_controller().limit(limits=1, user_api="blas"))
            _SHARED.setter = threading.get_ident()
        _SHARED.inside += 1
    try:
        yield
    finally:
        with _SHARED.lock:
            _SHARED.inside -= 1
            if _SHARED.inside == 0:
                # Since threadpoolctl 3.8 only the thread that set a limit may lift it, others do
                # nothing without a word: another thread takes that right over first.
                forget = getattr(OpenBLASController, "clear_controlling_thread", None)
                if forget is not None and _SHARED.setter != threading.get_ident():
                    forget(force=True)
                _SHARED.stack.close()
