"""When sums over pairs have to end before they are complete: at a deadline, or by Ctrl-C."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from ..numerics.checks import FloatArray

Item = TypeVar("Item")


class OutOfTime(Exception):
    """Raised between two blocks of pairs; `factor` is that of the best metric so far, if any."""

    def __init__(self, factor: FloatArray | None = None) -> None:
        super().__init__("The time was up, or it was interrupted.")
        self.factor = factor


@dataclass
class Limit:
    """The limit of all sums over the same pairs; `deadline` is on the clock of `perf_counter`."""

    deadline: float = np.inf
    is_interrupted: bool = False
    watch: Callable[[], object] | None = None  # called between two blocks, in any thread

    def check(self) -> None:
        """Raise OutOfTime where the time is up."""
        if self.watch is not None:
            self.watch()
        if self.is_interrupted or time.perf_counter() >= self.deadline:
            raise OutOfTime

    def each(self, items: Iterable[Item]) -> Iterator[Item]:
        """The items one by one, as long as there is time."""
        for item in items:
            self.check()
            yield item

    @contextmanager
    def until(self, deadline: float) -> Iterator[None]:
        """A context with this deadline, if there is no earlier one."""
        before = self.deadline
        self.deadline = min(before, deadline)
        try:
            yield
        finally:
            self.deadline = before

    @contextmanager
    def granted(self, seconds: float) -> Iterator[None]:
        """A context that has so many seconds from now on, whatever the limit was."""
        before = self.deadline, self.is_interrupted
        self.deadline, self.is_interrupted = time.perf_counter() + seconds, False
        try:
            yield
        finally:
            self.deadline, self.is_interrupted = before
