"""BLAS on one thread while products are small: its threads would cost more than they bring.

On a busy machine the difference is not a few percent: an M-step of 100 points in 30 dimensions took
50 times longer with two BLAS threads than with one while another process was running.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController

SMALL = 512
"""Up to this many points a sweep is one block, and one thread is best."""


class _SharedLimit:
    """One limit for all fits of the process: the first to enter sets it, the last one lifts it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._limit = ExitStack()

    def enter(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._limit.enter_context(_controller().limit(limits=1, user_api="blas"))
            self._inside += 1

    def leave(self) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._limit.close()


_SHARED = _SharedLimit()


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def single_threaded_blas(n_points: int) -> Iterator[None]:
    """Hold BLAS to one thread for the duration, if there are few points.

    Examples
    --------
    >>> with single_threaded_blas(100):
    ...     pass
    """
    if n_points > SMALL:
        yield
        return
    _SHARED.enter()
    try:
        yield
    finally:
        _SHARED.leave()
