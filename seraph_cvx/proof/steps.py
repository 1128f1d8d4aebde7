"""What a proof has done so far, what it is at, and when it has to end."""

from __future__ import annotations

import math
import time
from collections.abc import Callable


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
