"""What happens while a fit runs: a line of progress, the user's callback, and Ctrl-C."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..display.progress_line import ProgressLine
from ..engine.passes import Limit
from ..fit.alternation import Iteration, Step
from ..numerics.checks import FloatArray, counted
from ..processes.signals import handled
from ..solvers.solution import Status


@dataclass
class FitWatch:
    """Called with every iteration of a fit and with the steps inside, and may end it.

    With `keeps_interrupted` the first Ctrl-C ends the sums over pairs, and so the fit, with what
    it has; the second one raises. Otherwise each one raises.
    """

    limit: Limit  # of the sums of the fit
    line: ProgressLine | None
    callback: Callable[[Iteration, FloatArray], object] | None
    keeps_interrupted: bool
    running: str = "iteration 1"
    clock: float = field(default_factory=time.perf_counter)

    def iteration(self, done: Iteration, step: Step) -> bool:
        """Show an iteration and hand it to the callback; whether the fit should end."""
        self.running = f"iteration {done.number + 1}"
        if self.line is not None:
            gap = "" if np.isinf(done.relative_gap) else f", gap {done.relative_gap:.1e}"
            self.line.tell(
                f"[SERAPH] iteration {done.number}, {done.kind}: J = {done.descent_value:.8g}, "
                f"rank {done.rank}{gap}{self._elapsed()}"
            )
        wants_stop: object = False
        try:
            wants_stop = self.callback is not None and self.callback(done, np.asarray(step.metric))
        except KeyboardInterrupt:
            self.interrupt()
        return bool(wants_stop) or self.limit.is_interrupted

    def step(self, steps: int, value: float) -> bool:
        """Show a step inside an iteration; whether the fit should end."""
        self.running = f"{self.running.partition(',')[0]}, step {steps}: {value:.8g}"
        self.show_running()
        return self.limit.is_interrupted

    def show_running(self) -> None:
        """Say what is running: between two steps, and between two blocks of pairs."""
        for show in (getattr(self.line, "move", None), getattr(self.callback, "progress", None)):
            if show is not None:
                show(f"[SERAPH] {self.running}{self._elapsed()}")

    def end(self, message: str, status: Status, n_iterations: int) -> None:
        """Show how the fit ended, and by which tolerance."""
        if self.line is not None:
            self.line.end(
                f"[SERAPH] {status.value.replace('_', ' ')} after "
                f"{counted(n_iterations, 'iteration')}"
                f"{self._elapsed()}. {message}".rstrip(" .")
                + "."
            )

    def interrupt(self, *_: Any) -> None:
        """Note an interrupt, or raise it; a handler of signals."""
        if not self.keeps_interrupted or self.limit.is_interrupted:
            raise KeyboardInterrupt
        self.limit.is_interrupted = True

    def _elapsed(self) -> str:
        """The time since the fit began, in words."""
        return f", {time.perf_counter() - self.clock:.1f} s"


@contextmanager
def watched(limit: Limit, verbose: int, callback: Any, on_interrupt: str) -> Iterator[FitWatch]:
    """A context in which a fit runs whose sums have this limit, with its watch."""
    if on_interrupt not in ("raise", "keep"):
        raise ValueError(f'on_interrupt={on_interrupt!r} is not known: use "raise" or "keep".')
    if callback is not None and not callable(callback):
        raise TypeError(
            f"callback={callback!r} is no function: give one of an iteration and a metric."
        )
    line = ProgressLine() if verbose else None
    watch = FitWatch(limit, line, callback, on_interrupt == "keep")
    if verbose or hasattr(callback, "progress"):
        limit.watch = watch.show_running
    try:
        with (
            line or nullcontext(),
            handled(signal.SIGINT, watch.interrupt) if watch.keeps_interrupted else nullcontext(),
        ):
            yield watch
    finally:
        limit.is_interrupted, limit.watch = False, None
