"""One line of progress: it moves on a terminal, and is a few plain lines anywhere else."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack
from typing import Any, Self, TextIO

SELDOM = 10.0
"""Seconds between plain lines about what is still running, where there is no terminal."""

OFTEN = 0.1
"""Seconds between two moves of the line on a terminal."""


class ProgressLine:
    """A line that says where a long computation stands, on stderr unless told otherwise.

    On a terminal it is rewritten in place by rich, where that is installed; a rich `console` that
    prints at the same time has to be given. Elsewhere finished steps are plain lines, and what is
    still running is one at most every ten seconds.

    Examples
    --------
    >>> with ProgressLine(sys.stdout) as line:  # no terminal here
    ...     line.move("step 1 of an iteration")
    ...     line.tell("iteration 1")
    iteration 1
    """

    def __init__(self, stream: TextIO | None = None, console: Any = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._console = console if console is not None and console.is_terminal else None
        self._last = time.perf_counter()
        self._spinner: Any = None
        self._open = ExitStack()

    def __enter__(self) -> Self:
        console = self._console
        if console is None and self._stream.isatty():
            try:
                from rich.console import Console
            except ImportError:
                return self
            console = Console(file=self._stream, highlight=False, markup=False)
        if console is not None:
            self._spinner = self._open.enter_context(console.status(""))
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def move(self, text: str) -> None:
        """Show what is running."""
        now = time.perf_counter()
        if now - self._last < (SELDOM if self._spinner is None else OFTEN):
            return
        self._last = now
        self._show(text)

    def tell(self, text: str) -> None:
        """Show a finished step."""
        self._last = time.perf_counter()
        self._show(text)

    def end(self, text: str) -> None:
        """Show how it ended, on a line that stays."""
        self._open.close()
        self._spinner = None
        self._show(text)

    def _show(self, text: str) -> None:
        if self._spinner is not None:
            self._spinner.update(text)
        else:
            self._stream.write(text + "\n")
            self._stream.flush()
