"""Work in a process of its own, under a time and a memory limit: its faults stay there.

A :class:`Nursery` is one more Python process that has imported what the work needs. It forks a
child for each piece of work, so that the imports are paid for once. This file is also the program
that process runs: it imports nothing but the standard library.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import resource
import select
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import IO, Any

LOOK_EVERY = 0.02
"""Seconds between two looks at the memory of a piece of work."""

ALARM_MARGIN = 5.0
"""So long after its limit a child ends by its own alarm, should the process it serves be gone."""

_LENGTH, _PID, _END = struct.Struct("!Q"), struct.Struct("!q"), struct.Struct("!qq")


@dataclass(frozen=True)
class Outcome:
    """What came of a piece of work.

    Attributes
    ----------
    word : str
        "done", "error", "time limit", "memory limit" or "crashed".
    result : object
        Of the function, if it is done.
    detail : str
        The error, or how the process ended and the last line that it printed.
    seconds : float
    peak_bytes : int
        The largest resident memory of the process, the imported libraries included; known however
        the process ended.
    """

    word: str
    result: Any
    detail: str
    seconds: float
    peak_bytes: int = 0


class Nursery:
    """A process that imports modules once and forks a child for each piece of work.

    Parameters
    ----------
    preload : sequence of str
        Modules to import before the first piece of work; their import is in nobody's time.
    environment : mapping, optional
        Environment variables of the process, besides those of this one.

    Examples
    --------
    >>> import math, os
    >>> with Nursery() as nursery:
    ...     good = nursery.run(math.sqrt, 4.0, time_limit=60)
    ...     bad = nursery.run(math.sqrt, -1.0, time_limit=60)
    ...     gone = nursery.run(os._exit, 3, time_limit=60)
    >>> good.result, bad.word, gone.word
    (2.0, 'error', 'crashed')
    """

    def __init__(
        self, preload: Sequence[str] = (), environment: Mapping[str, str] | None = None
    ) -> None:
        self._preload = list(preload)
        self._environment = dict(os.environ) | dict(environment or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="seraph-cvx-")

    def __enter__(self) -> Nursery:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        self._stop()
        self._folder.cleanup()

    def run(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        time_limit: float,
        memory_limit: int | None = None,
    ) -> Outcome:
        """``function(*arguments)`` in a child of its own; see :func:`run_isolated`."""
        if getattr(function, "__module__", None) == "__main__":
            raise ValueError(
                f"{function!r} lives in the script that is running, which another process cannot "
                "import: put it into a file of its own and import it from there."
            )
        folder = Path(self._folder.name)
        answer, printed = folder / "answer", folder / "printed"
        answer.unlink(missing_ok=True)
        work = pickle.dumps((function, arguments))
        order = (time_limit + ALARM_MARGIN, memory_limit, str(answer), str(printed), work)
        process = self._started()
        clock = time.perf_counter()
        _send(process.stdin, pickle.dumps(order))
        word, detail, exit_code, peak = _watch(process.stdout, time_limit, memory_limit)
        result = None
        if not word and answer.is_file():
            word, result, detail = pickle.loads(answer.read_bytes())
        elif not word:
            word, detail = "crashed", f"the process ended {_manner(exit_code)}"
            last = printed.read_bytes()[-2000:].decode(errors="replace").strip().splitlines()
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
                [sys.executable, __file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=self._environment,
                bufsize=0,
                start_new_session=True,  # Ctrl-C is for the process that waits here
            )
            _send(self._process.stdin, pickle.dumps((sys.path, self._preload)))
            if _receive(self._process.stdout, 1) != b"!":
                names = ", ".join(self._preload)
                raise RuntimeError(f"A process that imports {names} could not be started.")
        return self._process


def run_isolated(
    function: Callable[..., Any],
    *arguments: Any,
    time_limit: float,
    memory_limit: int | None = None,
) -> Outcome:
    """``function(*arguments)`` in a new process, ended after `time_limit` seconds.

    Parameters
    ----------
    function : callable
        At the top level of a module (not of the running script), so that the new process can
        import it.
    time_limit : float
        Seconds, the import of the function's module included.
    memory_limit : int, optional
        Bytes of resident memory, looked at fifty times a second; an allocation of more than that
        at once fails in the process itself.

    Examples
    --------
    >>> import math
    >>> run_isolated(math.sqrt, 4.0, time_limit=60).result
    2.0
    """
    with Nursery() as nursery:
        return nursery.run(function, *arguments, time_limit=time_limit, memory_limit=memory_limit)


def resident_bytes(pid: int | str = "self") -> int:
    """The resident memory of a process; 0 where it is gone or the system does not tell."""
    return _memory_pages(pid)[1] * resource.getpagesize()


def _memory_pages(pid: int | str) -> tuple[int, int]:
    """Pages of address space and of resident memory."""
    try:
        total, resident, *_ = Path(f"/proc/{pid}/statm").read_text().split()
    except (FileNotFoundError, ProcessLookupError, ValueError):
        return 0, 0
    return int(total), int(resident)


def _watch(
    pipe: IO[bytes] | None, time_limit: float, memory_limit: int | None
) -> tuple[str, str, int, int]:
    """Wait for the child and end it at a limit: the limit's name, words, exit code, peak memory."""
    start = _receive(pipe, _PID.size)
    if pipe is None or len(start) < _PID.size:
        return "crashed", "the process that forks the others is gone", 0, 0
    (pid,) = _PID.unpack(start)
    deadline = time.perf_counter() + time_limit
    word = detail = ""
    try:
        while not select.select([pipe], [], [], LOOK_EVERY)[0]:
            if word:
                continue
            if time.perf_counter() > deadline:
                word, detail = "time limit", f"no answer within {time_limit:g} s"
            elif memory_limit is not None and resident_bytes(pid) > memory_limit:
                word = "memory limit"
                detail = f"more than {memory_limit / 2**20:.0f} MiB were in use"
            if word:
                _end_group(pid)
    except KeyboardInterrupt:
        _end_group(pid)
        raise
    end = _receive(pipe, _END.size)
    exit_code, peak = _END.unpack(end) if len(end) == _END.size else (0, 0)
    return word, detail, exit_code, peak


def _end_group(pid: int) -> None:
    """End a child and whatever it has started; it may not lead its group yet."""
    for end in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            end(pid, signal.SIGKILL)


def _manner(exit_code: int) -> str:
    if exit_code < 0:
        return f"by signal {signal.Signals(-exit_code).name}"
    return f"with exit code {exit_code} and without an answer"


def _send(pipe: IO[bytes] | None, content: bytes) -> None:
    if pipe is not None:
        message = memoryview(_LENGTH.pack(len(content)) + content)
        while message:
            message = message[pipe.write(message) :]


def _receive(pipe: IO[bytes] | None, size: int) -> bytes:
    """`size` bytes, or fewer where the pipe ends."""
    content = b""
    while pipe is not None and len(content) < size:
        more = pipe.read(size - len(content))
        if not more:
            break
        content += more
    return content


def _serve(orders: IO[bytes], reports: IO[bytes]) -> None:
    """What the nursery's process does: import, then fork a child for each order."""

    def next_order() -> Any:
        size = _receive(orders, _LENGTH.size)
        if len(size) < _LENGTH.size:
            sys.exit(0)  # nobody is there to order any more
        return pickle.loads(_receive(orders, *_LENGTH.unpack(size)))

    sys.path[:], preload = next_order()
    for name in preload:
        import_module(name)
    reports.write(b"!")
    while True:
        order = next_order()
        pid = os.fork()
        if pid == 0:
            _work(*order)
        reports.write(_PID.pack(pid))
        _, status, usage = os.wait4(pid, 0)
        _end_group(pid)  # what it may have left running
        unit = 1 if sys.platform == "darwin" else 1024
        reports.write(_END.pack(os.waitstatus_to_exitcode(status), usage.ru_maxrss * unit))


def _work(alarm: float, memory_limit: int | None, answer: str, printed: str, work: bytes) -> None:
    """The child: limits, the work, the answer put in place at once; it never returns."""
    os.setsid()
    signal.setitimer(signal.ITIMER_REAL, alarm)
    output = os.open(printed, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    if memory_limit is not None:
        space = memory_limit + _memory_pages("self")[0] * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (space, space))
    with _Answer(answer) as whole:
        function, arguments = pickle.loads(work)
        whole.content = pickle.dumps(("done", function(*arguments), ""))


class _Answer:
    """Whatever the work under it returns or raises is written down, and the process ends."""

    content = b""

    def __init__(self, path: str) -> None:
        self.path = Path(path)

    def __enter__(self) -> _Answer:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, MemoryError):
            self.content = pickle.dumps(("memory limit", None, str(error)))
        elif error is not None:
            self.content = pickle.dumps(("error", None, f"{type(error).__name__}: {error}"))
        draft = self.path.with_suffix(".part")
        draft.write_bytes(self.content)
        draft.replace(self.path)
        os._exit(0)


if __name__ == "__main__":
    _serve(open(0, "rb", buffering=0), open(os.dup(1), "wb", buffering=0))  # noqa: SIM115
