"""Ctrl-C from outside, at a given moment."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def ctrl_c(seconds: float) -> Iterator[list[float]]:
    """Send this process the signal of Ctrl-C after some seconds; the list gets the time of it."""
    pressed: list[float] = []

    def press() -> None:
        pressed.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(seconds, press)
    timer.start()
    try:
        yield pressed
    finally:
        timer.cancel()
        with suppress(KeyboardInterrupt):  # pressed when all was done
            timer.join()
