"""What happens while a fit runs: how long it will take, its progress, the callback, and Ctrl-C."""

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
from ..engine.limit import Limit, OutOfTime
from ..fit.alternation import Iteration
from ..fit.steps import Step
from ..model.m_step_objective import MStepObjective
from ..numerics.checks import FloatArray, counted
from ..pairs.pair_set import PairSet
from ..processes.signals import handled, is_main_thread
from ..solvers.solution import Status

GRACE = 1.0
"""Seconds after Ctrl-C in which a sum over pairs should have noticed; then the step is ended."""

LONG = 30.0
"""Seconds; a fit that is expected to take longer is announced."""


@dataclass
class FitWatch:
    """Called with every iteration of a fit and with the steps inside, and may end it.

    With `keeps_interrupted` the first Ctrl-C ends the sums over pairs, and so the fit, with what
    it has; where none is made within `GRACE` seconds the running step is ended wherever it is. The
    second Ctrl-C raises. Otherwise each one raises.
    """

    limit: Limit  # of the sums of the fit
    line: ProgressLine | None
    callback: Callable[[Iteration, FloatArray], object] | None
    keeps_interrupted: bool
    is_forced: bool = False
    running: str = "iteration 1"
    clock: float = field(default_factory=time.perf_counter)
    timer: threading.Timer | None = None

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
        """End the running step from another thread, if no sum over pairs has ended by now.

        By a signal where there are any: it also ends waiting for another process.
        """
        if self.limit.is_noticed:
            return
        self.is_forced = True
        kill = getattr(signal, "pthread_kill", None)
        if kill is None:
            _thread.interrupt_main()
        else:
            kill(threading.main_thread().ident, signal.SIGINT)

    def _elapsed(self) -> str:
        """The time since the fit began, in words."""
        return f", {time.perf_counter() - self.clock:.1f} s"


@contextmanager
def watched(
    first: MStepObjective,
    verbose: int,
    callback: Any,
    on_interrupt: str,
    unlabeled_pairs: int | None,
) -> Iterator[FitWatch]:
    """A context in which a fit runs that begins with M-step `first`, with its watch."""
    if on_interrupt not in ("raise", "keep"):
        raise ValueError(f'on_interrupt={on_interrupt!r} is not known: use "raise" or "keep".')
    if callback is not None and not callable(callback):
        raise TypeError(
            f"callback={callback!r} is no function: give one of an iteration and a metric."
        )
    limit, line = first.limit, ProgressLine() if verbose else None
    watch = FitWatch(limit, line, callback, on_interrupt == "keep")
    if verbose or hasattr(callback, "progress"):
        limit.watch = watch.show_running
    try:
        with (
            line or nullcontext(),
            handled(signal.SIGINT, watch.interrupt) if watch.keeps_interrupted else nullcontext(),
        ):
            if line is not None:
                announce(line, forecast(first.pairs, first.mu == 0.0, unlabeled_pairs))
            yield watch
    finally:
        if watch.timer is not None:
            watch.timer.cancel()
        limit.is_interrupted = limit.is_noticed = False
        limit.watch = None


def announce(line: ProgressLine, time_needed: str) -> None:
    """Show how long a fit will take and what would shorten it, if it takes long."""
    if time_needed:
        line.tell(
            f"[SERAPH] about {time_needed}, by a trial on a few points; shorter by a fit to the "
            "labeled points and 1,000 of the others (as good on ten data sets), n_jobs=-1, a "
            "larger tol, or X as an array on a GPU"
        )


def forecast(pairs: PairSet, only_labeled: bool, unlabeled_pairs: int | None) -> str:
    """How long a fit will take, in words; empty where it is short, or not of this machine."""
    if pairs.device_array is not None:
        return ""
    seconds = expected_seconds(pairs, only_labeled, unlabeled_pairs)
    return duration(seconds) if seconds > LONG else ""


def expected_seconds(
    pairs: PairSet,
    only_labeled: bool,
    unlabeled_pairs: int | None,
    repeats: int = 50,
) -> float:
    """Estimate the seconds of a fit by one thread, which grow like n^2 and m^3.

    By a sum over all pairs of at most 1,000 points, and a decomposition of a matrix of at most 300
    features: a fit of average length has some fifty of each.
    """
    m = min(pairs.n_features, pairs.n_points)
    trial, clock = np.diag(np.arange(1.0, min(m, 300) + 1.0)), time.perf_counter()
    np.linalg.eigh(trial)
    seconds = (time.perf_counter() - clock) * (m / len(trial)) ** 3
    if not only_labeled:
        X = pairs.points[:: -(-pairs.n_points // 1_000)]
        few = MStepObjective(PairSet.from_constraints(X, [(0, 1)], []), unlabeled_weight=1.0)
        A = np.eye(pairs.n_features)
        few.gradient(A)  # the first one also pays for what is computed once
        clock = time.perf_counter()
        few.gradient(A)
        n_trial = max(1, few.pairs.n_unlabeled)
        # a pair that was drawn takes three times as long as one of all pairs
        n_drawn = np.inf if unlabeled_pairs is None else 3 * unlabeled_pairs
        seconds += (time.perf_counter() - clock) * min(pairs.n_unlabeled, n_drawn) / n_trial
    return repeats * seconds


def duration(seconds: float) -> str:
    """Write a duration in seconds, minutes, hours or days."""
    for size, unit in ((86_400.0, "days"), (3_600.0, "hours"), (60.0, "minutes")):
        if seconds >= 2.0 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} seconds"
