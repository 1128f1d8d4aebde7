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
from ..engine.passes import Limit, OutOfTime
from ..fit.alternation import Iteration
from ..fit.steps import Step
from ..numerics.checks import FloatArray, counted
from ..processes.signals import handled, is_main_thread
from ..solvers.solution import Status

GRACE = 1.0
"""Seconds after Ctrl-C in which a sum over pairs should have noticed; then the step is ended."""


@dataclass
class FitWatch:
    """Called with every iteration of a fit and with the steps inside, and may end it.

    With `keeps_interrupted` the first Ctrl-C ends the sums over pairs, and so the fit, with what
    it has; where none is made within `GRACE` seconds the running step is ended wherever it is. The
    second Ctrl-C raises. Otherwise each one raises.
    """

    line: ProgressLine | None
    callback: Callable[[Iteration, FloatArray], object] | None
    keeps_interrupted: bool
    limit: Limit = field(default_factory=Limit)
    is_attached: bool = False
    is_forced: bool = False
    running: str = "iteration 1"
    clock: float = field(default_factory=time.perf_counter)
    timer: threading.Timer | None = None

    def attach(self, limit: Limit) -> None:
        """Interrupt the sums with this limit from now on, and at once if Ctrl-C was pressed."""
        limit.is_interrupted = self.limit.is_interrupted
        self.limit, self.is_attached = limit, True
        if self._shows:
            limit.watch = self._show_running

    def announce(self, time_needed: str) -> None:
        """Show how long the fit will take and what would shorten it, if it takes long."""
        if time_needed and self.line is not None:
            self.line.tell(
                f"[SERAPH] about {time_needed}, by a trial on a few points; shorter by "
                "a fit to the labeled points and 1,000 of the others (as good on ten data sets), "
                "n_jobs=-1, a larger tol, or X as an array on a GPU"
            )

    def iteration(self, done: Iteration, step: Step) -> bool:
        """Show an iteration and hand it to the callback; whether the fit should end."""
        self.running = f"iteration {done.number + 1}"
        if self.line is not None:
            gap = "" if np.isinf(done.relative_gap) else f", gap {done.relative_gap:.1e}"
            self.line.tell(
                f"[SERAPH] iteration {done.number}, {done.kind}: J = {done.descent_value:.8g}, "
                f"rank {done.rank}{gap}{self._elapsed}"
            )
        wants_stop: object = False
        try:
            wants_stop = self.callback is not None and self.callback(done, np.asarray(step.metric))
        except KeyboardInterrupt:
            self._interrupt()
        return bool(wants_stop) or self.limit.is_interrupted

    def step(self, steps: int, value: float) -> bool:
        """Show a step inside an iteration; whether the fit should end."""
        self.running = f"{self.running.partition(',')[0]}, step {steps}: {value:.8g}"
        self._show_running()
        return self.limit.is_interrupted

    def end(self, message: str, status: Status, n_iterations: int) -> None:
        """Show how the fit ended, and by which tolerance."""
        if self.line is not None:
            self.line.end(
                f"[SERAPH] {status.value.replace('_', ' ')} after "
                f"{counted(n_iterations, 'iteration')}"
                f"{self._elapsed}. {message}".rstrip(" .")
                + "."
            )

    @contextmanager
    def handling_ctrl_c(self) -> Iterator[None]:
        """A context in which Ctrl-C is handled here; only the main thread ever receives it."""
        if not self.keeps_interrupted:
            yield
            return
        try:
            with handled(signal.SIGINT, self._interrupt):
                yield
        finally:
            if self.timer is not None:
                self.timer.cancel()

    def _interrupt(self, *_: Any) -> None:
        """Note an interrupt, or raise it; a handler of signals."""
        if self.is_forced:
            self.is_forced = False
            raise OutOfTime
        if not self.keeps_interrupted or self.limit.is_interrupted:
            raise KeyboardInterrupt
        self.limit.is_interrupted, self.limit.is_noticed = True, False
        if is_main_thread():
            self.timer = threading.Timer(GRACE, self._force)
            self.timer.daemon = True
            self.timer.start()

    def _force(self) -> None:
        """End the running step from another thread, if no sum over pairs has ended by now."""
        if self.is_attached and not self.limit.is_noticed:
            self.is_forced = True
            _press_ctrl_c()

    @property
    def _shows(self) -> list[Callable[[str], object]]:
        """Who is told what is running."""
        shows = [getattr(self.line, "move", None), getattr(self.callback, "progress", None)]
        return [show for show in shows if show is not None]

    def _show_running(self) -> None:
        """Say what is running: between two steps, and between two blocks of pairs."""
        for show in self._shows:
            show(f"[SERAPH] {self.running}{self._elapsed}")

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
    try:
        with line or nullcontext(), watch.handling_ctrl_c():
            yield watch
    finally:
        watch.limit.is_interrupted = watch.limit.is_noticed = False
        watch.limit.watch = None


def _press_ctrl_c() -> None:
    """Press Ctrl-C, by a signal where there are any: it also ends waiting for another process."""
    kill = getattr(signal, "pthread_kill", None)
    if kill is None:
        _thread.interrupt_main()
    else:
        kill(threading.main_thread().ident, signal.SIGINT)
