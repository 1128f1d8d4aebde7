"""What happens while a fit runs: a line of progress, the user's callback, and Ctrl-C."""

from __future__ import annotations

import _thread
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..display.progress_line import ProgressLine
from ..fit.alternation import Iteration
from ..numerics.checks import FloatArray
from ..solvers.solution import Status

GRACE = 10.0
"""Seconds after Ctrl-C in which a fit may end with what it has; then it is interrupted."""


@dataclass
class FitWatch:
    """Called with every iteration of a fit and with the steps inside, and may end it.

    With `keeps_interrupted` the first Ctrl-C is only noted, to end the fit after its current step;
    the second one raises, and so does the first after `GRACE` seconds: a step over very many pairs
    takes too long. Otherwise each one raises.
    """

    line: ProgressLine | None
    callback: Callable[[Iteration, FloatArray], object] | None
    keeps_interrupted: bool
    is_interrupted: bool = False
    number: int = 1
    clock: float = field(default_factory=time.perf_counter)
    timer: threading.Timer | None = None

    def iteration(self, done: Iteration, metric: FloatArray) -> bool:
        """Show an iteration and hand it to the callback; whether the fit should end."""
        self.number = done.number + 1
        if self.line is not None:
            gap = "" if np.isinf(done.relative_gap) else f", gap {done.relative_gap:.1e}"
            self.line.tell(
                f"[SERAPH] iteration {done.number}, {done.kind}: J = {done.descent_value:.8g}, "
                f"rank {done.rank}{gap}{self._elapsed}"
            )
        wants_stop: object = False
        try:
            wants_stop = self.callback is not None and self.callback(done, metric)
        except KeyboardInterrupt:
            self._interrupt()
        return bool(wants_stop) or self.is_interrupted

    def step(self, steps: int, value: float) -> bool:
        """Show a step inside an iteration; whether the fit should end."""
        if self.line is not None:
            self.line.move(
                f"[SERAPH] iteration {self.number}, step {steps}: {value:.8g}{self._elapsed}"
            )
        return self.is_interrupted

    def end(self, status: Status, n_iterations: int) -> None:
        """Show how the fit ended."""
        if self.line is not None:
            self.line.end(
                f"[SERAPH] {status.value.replace('_', ' ')} after {n_iterations} iterations"
                f"{self._elapsed}"
            )

    @contextmanager
    def handling_ctrl_c(self) -> Iterator[None]:
        """A context in which Ctrl-C is handled here; only the main thread ever receives it."""
        if not self.keeps_interrupted or not _is_main_thread():
            yield
            return
        before = signal.signal(signal.SIGINT, self._interrupt)
        try:
            yield
        finally:
            if self.timer is not None:
                self.timer.cancel()
            signal.signal(signal.SIGINT, signal.default_int_handler if before is None else before)

    def _interrupt(self, *_: Any) -> None:
        """Note an interrupt, or raise it; a handler of signals."""
        if not self.keeps_interrupted or self.is_interrupted:
            raise KeyboardInterrupt
        self.is_interrupted = True
        if _is_main_thread():
            self.timer = threading.Timer(GRACE, _press_ctrl_c)
            self.timer.daemon = True
            self.timer.start()

    @property
    def _elapsed(self) -> str:
        return f", {time.perf_counter() - self.clock:.1f} s"


@contextmanager
def watched(verbose: int, callback: Any, on_interrupt: str) -> Iterator[FitWatch]:
    """A context in which a fit runs, with its watch."""
    if on_interrupt not in ("raise", "keep"):
        raise ValueError(f'on_interrupt={on_interrupt!r} is not known: use "raise" or "keep".')
    if callback is not None and not callable(callback):
        raise TypeError(
            f"callback={callback!r} is no function: give one of an iteration and a metric."
        )
    line = ProgressLine() if verbose else None
    watch = FitWatch(line, callback, on_interrupt == "keep")
    with line or nullcontext(), watch.handling_ctrl_c():
        yield watch


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _press_ctrl_c() -> None:
    """Press Ctrl-C, by a signal where there are any: it also ends waiting for another process."""
    kill = getattr(signal, "pthread_kill", None)
    if kill is None:
        _thread.interrupt_main()
    else:
        kill(threading.main_thread().ident, signal.SIGINT)
