"""What a proof has done so far, what it is at, and when it has to end."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from .program import Refused

ENOUGH = 2e-7
"""A bound this close to the value of the start, relatively, ends the search for a better one."""


class NotProven(Exception):
    """Why there is no proof, in words."""


class Steps(list[str]):
    """The steps of a proof in words; each is told to `progress` as it comes.

    After `time_limit` seconds, or after Ctrl-C, nothing new is begun: `is_over` says so, and what
    was proven until then stays.
    """

    def __init__(
        self, time_limit: float | None = None, progress: Callable[[str], None] | None = None
    ) -> None:
        super().__init__()
        self._end = math.inf if time_limit is None else time.perf_counter() + time_limit
        self._progress = progress
        self.is_interrupted = False

    @property
    def seconds_left(self) -> float:
        """The time that is left, infinite without a limit; zero when nothing new is begun."""
        return 0.0 if self.is_interrupted else max(0.0, self._end - time.perf_counter())

    @property
    def is_over(self) -> bool:
        """Whether time is up, or Ctrl-C was pressed."""
        return self.seconds_left == 0.0

    def append(self, step: str) -> None:
        """Note a step that is done."""
        super().append(step)
        self.begin(step)

    def begin(self, text: str) -> None:
        """Tell what is begun."""
        if self._progress is not None:
            self._progress(text)

    def interrupt(self) -> None:
        """Begin nothing new from now on."""
        self.is_interrupted = True
        self.append("interrupted: the bounds are those proven until then")


Proof = TypeVar("Proof", bound=Any)
Rungs = Sequence[tuple[str, Callable[[], Proof]]]


def first_proof(attempts: Iterable[Callable[[], Proof]]) -> Proof:
    """The first of some proofs that succeeds."""
    why: Exception = NotProven("no start was found")
    for attempt in attempts:
        try:
            return attempt()
        except (NotProven, Refused) as error:  # a program that was made of this one may overflow
            why = error
    raise NotProven(str(why))


def climb(
    side: str, rungs: Rungs[Proof], goal: float, is_final: bool, steps: Steps
) -> Proof | None:
    """The best proof of the rungs, tried in turn until one is close to the goal.

    Where the start is not final, and there will be a better one, any bound will do.
    """
    best: Proof | None = None
    why, sign = [], 1.0 if side == "lower" else -1.0
    for name, attempt in rungs:
        if steps.is_over:
            why.append("time is up")
            break
        steps.begin(f"{side} bound: {name}")
        began = time.perf_counter()
        try:
            found = attempt()
        except KeyboardInterrupt:
            steps.interrupt()
            break
        except (NotProven, MemoryError) as error:
            why.append(f"{name}: {error}" if str(error) else f"{name}: out of memory")
            continue
        seconds = time.perf_counter() - began
        if best is None or sign * (found.value - best.value) > 0.0:
            best = found
            steps.append(f"{side} bound: {name}, {found.value!r} (conic program), {seconds:.2g} s")
        if not is_final or sign * (goal - best.value) <= ENOUGH * max(1.0, abs(goal)):
            break
    if best is None:
        steps.append(f"{side} bound: none; " + "; ".join(why))
    return best
