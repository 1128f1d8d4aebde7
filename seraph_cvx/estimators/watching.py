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


class Interrupts:
    """The interrupts of a fit: each raises, or the first is only noted, to be asked for.

    Then the second one raises, and so does the first after `GRACE` seconds: a step over very many
    pairs takes too long.
    """

    def __init__(self, is_first_noted: bool) -> None:
        self.is_first_noted = is_first_noted
        self.is_noted = False
        self._timer = threading.Timer(GRACE, _interrupt)
        self._timer.daemon = True

    @property
    def is_next_raised(self) -> bool:
        """Whether the next interrupt raises."""
        return not self.is_first_noted or self.is_noted

    def take(self, *_: Any) -> None:
        """Note an interrupt, or raise it; a handler of signals."""
        if self.is_next_raised:
            raise KeyboardInterrupt
        self.is_noted = True
        if _is_main_thread():
            self._timer.start()

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """A context in which Ctrl-C is taken here; only the main thread is ever told of it."""
        if not self.is_first_noted or not _is_main_thread():
            yield
            return
        before = signal.signal(signal.SIGINT, self.take)
        try:
            yield
        finally:
            self._timer.cancel()
            signal.signal(signal.SIGINT, signal.default_int_handler if before is None else before)


class FitWatch:
    """Is told of every iteration of a fit and of the steps inside, and may end it."""

    def __init__(
        self,
        line: ProgressLine | None,
        callback: Callable[[Iteration, FloatArray], object] | None,
        interrupts: Interrupts,
    ) -> None:
        self.line, self.callback, self.interrupts = line, callback, interrupts
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
        wants_stop: object = False
        try:
            wants_stop = self.callback is not None and self.callback(done, metric)
        except KeyboardInterrupt:
            if self.interrupts.is_next_raised:
                raise
            self.interrupts.take()
        return bool(wants_stop) or self.interrupts.is_noted

    def step(self, steps: int, value: float) -> bool:
        """Show a step inside an iteration; whether the fit should end."""
        if self.line is not None:
            self.line.move(
                f"[SERAPH] iteration {self._number}, step {steps}: {value:.8g}{self._after}"
            )
        return self.interrupts.is_noted

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
    interrupts = Interrupts(is_first_noted=on_interrupt == "keep")
    with line or nullcontext(), interrupts.deferred():
        yield FitWatch(line, callback, interrupts)


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _interrupt() -> None:
    """Press Ctrl-C, by a signal where there are any: it also ends waiting for another process."""
    kill = getattr(signal, "pthread_kill", None)
    if kill is None:
        _thread.interrupt_main()
    else:
        kill(threading.main_thread().ident, signal.SIGINT)
