"""Runs work in a separate process, under limits of time and memory.

A :class:`ForkServer` is one more Python process that has imported what the work needs. It forks a
child for each piece of work, so that modules are imported only once; its program is
`forking.py`. On Windows and macOS, where that cannot be done or is not safe, each
piece of work has a fresh process, whose imports are not counted in its time.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import platform
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from . import forking
from .forking import END, FORKS, PID, end_group, receive, resident_bytes, send

LOOK_EVERY = 0.02
"""Seconds between two checks of the memory of a piece of work."""

ALARM_MARGIN = 5.0
"""Seconds after its limit at which a child ends by its own alarm, if it still runs."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a piece of work.

    Attributes
    ----------
    word : str
        "done", "error", "time limit", "memory limit" or "crashed".
    result : object
        What the function returned, if it is done.
    detail : str
        The error, or how the process ended and the last line that it printed.
    seconds : float
    peak_bytes : int
        The largest resident memory of the process, the imported libraries included; known however
        the process ended. A fresh process tells it with its answer only; 0 is not known.
    """

    word: str
    result: Any
    detail: str
    seconds: float
    peak_bytes: int = 0


class ForkServer:
    """A process that imports modules once and forks a child for each piece of work.

    On systems without fork, each piece of work has a new process that imports them.

    Parameters
    ----------
    preload : sequence of str
        Modules to import before the first piece of work, whose time excludes the imports.
    environment : mapping, optional
        Environment variables of the process, in addition to those of this one.

    Examples
    --------
    >>> import math, signal
    >>> with ForkServer() as server:
    ...     good = server.run(math.sqrt, 4.0, time_limit=60)
    ...     bad = server.run(math.sqrt, -1.0, time_limit=60)
    ...     gone = server.run(signal.raise_signal, signal.SIGKILL, time_limit=60)
    >>> good.result, bad.word, gone.word
    (2.0, 'error', 'crashed')
    """

    def __init__(
        self, preload: Sequence[str] = (), environment: Mapping[str, str] | None = None
    ) -> None:
        self._preload = list(preload)
        self._environment = dict(os.environ) | dict(environment or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._child: int | None = None
        self._one_at_a_time = threading.Lock()
        self._folder = tempfile.TemporaryDirectory(prefix="seraph-cvx-")

    def __enter__(self) -> ForkServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the process, and any work that another thread has in it."""
        if self._child is not None:
            end_group(self._child)
        if self._process is not None:
            self._process.kill()
        with self._one_at_a_time:
            self._stop()
            self._folder.cleanup()

    def run(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        time_limit: float,
        memory_limit: int | None = None,
    ) -> Outcome:
        """Call ``function(*arguments)`` in its own child process; see :func:`run_isolated`."""
        if getattr(function, "__module__", None) == "__main__":
            raise ValueError(
                f"{function!r} is defined in the running script, which other processes cannot "
                "import: move it to a module, and import it from that."
            )
        if memory_limit is not None and (obstacle := memory_limit_obstacle()):
            warnings.warn(obstacle, RuntimeWarning, stacklevel=2)
        work = pickle.dumps((function, arguments))
        with self._one_at_a_time:
            return self._run(work, time_limit, memory_limit)

    def _run(self, work: bytes, time_limit: float, memory_limit: int | None) -> Outcome:
        folder = Path(self._folder.name)
        answer, printed = folder / "answer", folder / "printed"
        answer.unlink(missing_ok=True)
        order = (time_limit + ALARM_MARGIN, memory_limit, str(answer), str(printed), work)
        process = self._started()
        clock = time.perf_counter()
        with contextlib.suppress(BrokenPipeError):
            send(process.stdin, pickle.dumps(order))
        start = receive(process.stdout, PID.size)
        if process.stdout is None or len(start) < PID.size:
            gone = "the process that was to do the work is gone"
            return Outcome("crashed", None, gone, time.perf_counter() - clock)
        (child,) = PID.unpack(start)
        self._child = child
        try:
            word, detail, exit_code, peak = _watch(child, process.stdout, time_limit, memory_limit)
        finally:
            self._child = None
        if not FORKS:
            exit_code = process.wait()
            if hasattr(os, "killpg"):
                end_group(child)  # what it may have left running
        result = None
        if not word and answer.is_file():
            word, result, detail, told = pickle.loads(answer.read_bytes())
            peak = max(peak, told)
        elif not word:
            word, detail = "crashed", f"the process ended {_manner(exit_code)}"
            said = printed.read_bytes() if printed.is_file() else b""
            last = said[-2000:].decode(errors="replace").strip().splitlines()
            detail += f"; it last printed: {last[-1][:300]}" if last else ""
        return Outcome(word, result, detail, time.perf_counter() - clock, peak)

    def _stop(self) -> None:
        if self._process is None:
            return
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        self._process.kill()
        self._process.wait()
        self._process = None

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._stop()
            self._process = subprocess.Popen(
                [sys.executable, forking.__file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=self._environment,
                bufsize=0,
                start_new_session=True,  # Ctrl-C is for this process, which waits
                creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),  # on Windows too
            )
            send(self._process.stdin, pickle.dumps((sys.path, self._preload)))
            if receive(self._process.stdout, 1) != b"!":
                names = ", ".join(self._preload)
                raise RuntimeError(f"A process that imports {names} could not be started.")
        return self._process


def run_isolated(
    function: Callable[..., Any],
    *arguments: Any,
    time_limit: float,
    memory_limit: int | None = None,
) -> Outcome:
    """Do a piece of work in a new process, under limits.

    ``function(*arguments)`` in a new process, ended after `time_limit` seconds.

    Parameters
    ----------
    function : callable
        At the top level of a module (not of the running script), so that the new process can
        import it.
    time_limit : float
        Seconds, the import of the function's module included.
    memory_limit : int, optional
        Bytes of resident memory, looked at fifty times a second; an allocation of more than that
        at once fails in the process itself. If the system cannot tell the memory of another
        process (macOS, Windows) there is no limit, and a warning says so.

    Notes
    -----
    Whatever the work has started is ended with it, except on Windows.

    Examples
    --------
    >>> import math
    >>> run_isolated(math.sqrt, 4.0, time_limit=60).result
    2.0
    """
    with ForkServer() as server:
        return server.run(function, *arguments, time_limit=time_limit, memory_limit=memory_limit)


def memory_limit_obstacle() -> str:
    """Why this system cannot limit the memory of work; empty if it can.

    Examples
    --------
    >>> memory_limit_obstacle()  # on Linux
    ''
    """
    if resident_bytes():
        return ""
    return (
        f"Memory is not limited: {platform.system()} does not tell how much another process has "
        "in use (there is no /proc). Time is still limited."
    )


def _watch(
    pid: int, pipe: IO[bytes], time_limit: float, memory_limit: int | None
) -> tuple[str, str, int, int]:
    """Wait for a child, and kill it at a limit: which limit, details, exit code, peak memory."""
    deadline = time.perf_counter() + time_limit
    word = detail = ""
    ends: list[bytes] = []
    reader = threading.Thread(target=lambda: ends.append(receive(pipe, END.size)), daemon=True)
    reader.start()
    try:
        while reader.is_alive():
            reader.join(LOOK_EVERY)
            if word or not reader.is_alive():
                continue
            if time.perf_counter() > deadline:
                word, detail = "time limit", f"no answer within {time_limit:g} s"
            elif memory_limit is not None and resident_bytes(pid) > memory_limit:
                word = "memory limit"
                detail = f"more than {memory_limit / 2**20:.0f} MiB were in use"
            if word:
                end_group(pid)
    except KeyboardInterrupt:
        end_group(pid)
        reader.join()
        raise
    end = b"".join(ends)
    exit_code, peak = END.unpack(end) if len(end) == END.size else (0, 0)
    return word, detail, exit_code, peak


def _manner(exit_code: int) -> str:
    if exit_code < 0:
        return f"by signal {signal.Signals(-exit_code).name}"
    return f"with exit code {exit_code} and without an answer"
