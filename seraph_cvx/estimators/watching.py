"""What happens while a fit runs: a line of progress, the user's callback, and Ctrl-C."""

from __future__ import annotations

import _thread
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from ..display.progress_line import ProgressLine
from ..fit.alternation import Iteration
from ..numerics.checks import FloatArray
from ..solvers.solution import Status

ON_INTERRUPT = ("raise", "keep")

GRACE = 10.0
"""Seconds after Ctrl-C in which a fit may end with what it has; then it is interrupted."""


class FitWatch:
    """Is told of every iteration of a fit and of the steps inside, and may end it."""

    def __init__(
        self,
        line: ProgressLine | None,
        callback: Callable[[Iteration, FloatArray], object] | None,
        is_interrupted: Callable[[], bool],
    ) -> None:
        self.line, self.callback, self.is_interrupted = line, callback, is_interrupted
        self._clock = time.perf_counter()
        self._number = 1

    def iteration(self, done: Iteration, metric: FloatArray) -> bool:
        """Show an iteration and hand it to the callback; whether the fit should end."""
        self._number = done.number + 1
        if self.line is not None:
            gap = "" if np.isinf(done.relative_gap) else f", gap {done.relative_gap:.1e}"
            self.line.tell(
                f"[SERAPH] iteration {done.number}, {done.kind}: J = {done.descent_value:.8g}, "
                f"rank {done.rank}{gap}{self._after}"
            )
        wants_stop = self.callback is not None and self.callback(done, metric)
        return bool(wants_stop) or self.is_interrupted()

    def step(self, steps: int, value: float) -> bool:
        """Show a step inside an iteration; whether the fit should end."""
        if self.line is not None:
            self.line.move(
                f"[SERAPH] iteration {self._number}, step {steps}: {value:.8g}{self._after}"
            )
        return self.is_interrupted()

    def end(self, status: Status, n_iterations: int) -> None:
        """Show how the fit ended."""
        if self.line is not None:
            self.line.end(
                f"[SERAPH] {status.value.replace('_', ' ')} after {n_iterations} iterations"
                f"{self._after}"
            )

    @property
    def _after(self) -> str:
        return f", {time.perf_counter() - self._clock:.1f} s"


@contextmanager
def watched(verbose: int, callback: Any, on_interrupt: str) -> Iterator[FitWatch]:
    """A context in which a fit runs, with its watch."""
    if on_interrupt not in ON_INTERRUPT:
        raise ValueError(f'on_interrupt={on_interrupt!r} is not known: use "raise" or "keep".')
    if callback is not None and not callable(callback):
        raise TypeError(
            f"callback={callback!r} is no function: give one of an iteration and a metric."
        )
    line = ProgressLine() if verbose else None
    with line or nullcontext(), deferred_interrupts(on_interrupt == "keep") as is_interrupted:
        yield FitWatch(line, callback, is_interrupted)


@contextmanager
def deferred_interrupts(is_wanted: bool = True) -> Iterator[Callable[[], bool]]:
    """A context in which the first Ctrl-C is only noted; the second one interrupts at once.

    So does the first one after `GRACE` seconds: a step over very many pairs takes too long. It
    gives a function that tells whether Ctrl-C was pressed. Only the main thread is ever told.

    Examples
    --------
    >>> with deferred_interrupts() as is_interrupted:
    ...     before = is_interrupted()
    ...     signal.raise_signal(signal.SIGINT)
    ...     before, is_interrupted()
    (False, True)
    """
    pressed = threading.Event()
    timer = threading.Timer(GRACE, _interrupt)
    timer.daemon = True
    if not is_wanted or threading.current_thread() is not threading.main_thread():
        yield pressed.is_set
        return

    def note(number: int, frame: Any) -> None:
        if pressed.is_set():
            signal.default_int_handler(number, frame)
        pressed.set()
        timer.start()

    before = signal.signal(signal.SIGINT, note)
    try:
        yield pressed.is_set
    finally:
        timer.cancel()
        signal.signal(signal.SIGINT, signal.default_int_handler if before is None else before)


def _interrupt() -> None:
    """Press Ctrl-C, by a signal where there are any: it also ends waiting for another process."""
    kill = getattr(signal, "pthread_kill", None)
    if kill is None:
        _thread.interrupt_main()
    else:
        kill(threading.main_thread().ident, signal.SIGINT)
