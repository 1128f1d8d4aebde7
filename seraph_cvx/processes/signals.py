"""A signal handled for a while."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def handled(number: int, handler: Callable[[int, Any], Any]) -> Iterator[None]:
    """A context in which a signal has this handler, if this is the main thread.

    A signal that is ignored, as Ctrl-C in a background job, stays ignored; and what is not
    Python's handler, which could not be restored, stays as it is.
    """
    before = signal.getsignal(number)
    is_main_thread = threading.current_thread() is threading.main_thread()
    if not is_main_thread or before in (signal.SIG_IGN, None):
        yield
        return
    signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)
