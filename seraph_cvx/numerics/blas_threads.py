"""Limits BLAS to one thread: blocks are small, and more threads are those of `n_jobs`.

On a busy machine the difference is not a few percent: an M-step of 100 points in 30 dimensions took
50 times longer with two BLAS threads than with one while another process was running.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache

from threadpoolctl import OpenBLASController, ThreadpoolController


class _SharedLimit:
    """A limit shared by all fits of a process: the first one sets it, the last one lifts it.

    Since threadpoolctl 3.8 only the thread that set a limit may lift it, others do nothing without
    a word: where the last one to leave is another thread, it takes that right over first.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._limit = ExitStack()
        self._setter = 0

    def enter(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._limit.enter_context(_controller().limit(limits=1, user_api="blas"))
                self._setter = threading.get_ident()
            self._inside += 1

    def leave(self) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                if self._setter != threading.get_ident():
                    _take_over_the_limit()
                self._limit.close()


def _take_over_the_limit() -> None:
    forget = getattr(OpenBLASController, "clear_controlling_thread", None)
    if forget is not None:
        forget(force=True)


_SHARED = _SharedLimit()


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread in this context.

    Examples
    --------
    >>> with one_blas_thread():
    ...     pass
    """
    _SHARED.enter()
    try:
        yield
    finally:
        _SHARED.leave()
