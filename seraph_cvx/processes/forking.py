"""The program of a fork server: it imports modules, then forks a child for each piece of work.

`isolation.py` runs this file as a program and speaks with it through two pipes, in messages of
:func:`send` and :func:`receive`. It imports nothing but the standard library. Where
processes cannot fork it does one piece of work itself and ends: the next one has a fresh process.
"""

from __future__ import annotations

import contextlib
import faulthandler
import mmap
import os
import pickle
import signal
import struct
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

FORKS = hasattr(os, "fork") and sys.platform != "darwin"
"""Whether work is forked: Windows cannot fork, and on macOS libraries may crash in a fork."""

resource: Any = import_module("resource") if find_spec("resource") else None  # not on Windows

LENGTH, PID, END = struct.Struct("!Q"), struct.Struct("!q"), struct.Struct("!qq")
"""The formats of a message's length, of a child's pid, and of its exit code and peak memory."""

PEAK_UNIT = 1 if sys.platform == "darwin" else 1024
"""The system's unit of peak memory, in bytes."""


def send(pipe: IO[bytes] | None, content: bytes) -> None:
    r"""Write a message: its length in eight bytes, then its content.

    Examples
    --------
    >>> import io
    >>> pipe = io.BytesIO()
    >>> send(pipe, b"work")
    >>> pipe.getvalue()
    b'\x00\x00\x00\x00\x00\x00\x00\x04work'
    """
    if pipe is not None:
        message = memoryview(LENGTH.pack(len(content)) + content)
        while message:
            message = message[pipe.write(message) :]


def receive(pipe: IO[bytes] | None, size: int) -> bytes:
    """Read `size` bytes, or fewer where the pipe ends.

    Examples
    --------
    >>> import io
    >>> pipe = io.BytesIO(b"work")
    >>> receive(pipe, 3), receive(pipe, 3)
    (b'wor', b'k')
    """
    content = b""
    while pipe is not None and len(content) < size:
        more = pipe.read(size - len(content))
        if not more:
            break
        content += more
    return content


def end_group(pid: int) -> None:
    """Kill a child and whatever it has started; it may not lead its group yet.

    Windows has no process groups: only the child itself is killed.
    """
    if hasattr(os, "killpg") and hasattr(signal, "SIGKILL"):
        for end in (os.killpg, os.kill):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                end(pid, signal.SIGKILL)
    else:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGTERM)


def resident_bytes(pid: int | str = "self") -> int:
    """The resident memory of a process; 0 if it is gone or its memory is unknown.

    Examples
    --------
    >>> resident_bytes(-1)
    0
    """
    return memory_pages(pid)[1] * mmap.PAGESIZE


def peak_bytes() -> int:
    """The peak resident memory of this process; 0 if it is unknown.

    Examples
    --------
    >>> peak_bytes() > 2**20  # on Linux
    True
    """
    if resource is None:
        return 0
    return int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * PEAK_UNIT)


def memory_pages(pid: int | str) -> tuple[int, int]:
    """The pages of address space and of resident memory; zeros if they are unknown.

    Examples
    --------
    >>> memory_pages(-1)
    (0, 0)
    """
    try:
        total, resident, *_ = Path(f"/proc/{pid}/statm").read_text("ascii").split()
    except (FileNotFoundError, ProcessLookupError, ValueError):
        return 0, 0
    return int(total), int(resident)


def _serve(orders: IO[bytes], reports: IO[bytes]) -> None:
    """Run the fork server: import, then do each order in a child, or the only order itself."""
    sys.path[:], preload = _next_order(orders)
    for name in preload:
        import_module(name)
    reports.write(b"!")
    if FORKS:
        _fork_for_each_order(orders, reports)
    else:
        order = _next_order(orders)
        reports.write(PID.pack(os.getpid()))
        _work(*order)


def _next_order(orders: IO[bytes]) -> Any:
    size = receive(orders, LENGTH.size)
    if len(size) < LENGTH.size:
        sys.exit(0)  # no more orders will come
    return pickle.loads(receive(orders, *LENGTH.unpack(size)))


def _fork_for_each_order(orders: IO[bytes], reports: IO[bytes]) -> None:
    """Fork a child for each order, and report its pid, then how it ended."""
    if sys.platform == "win32":
        raise NotImplementedError("Windows cannot fork.")
    while True:
        order = _next_order(orders)
        pid = os.fork()
        if pid == 0:
            os.setsid()
            _work(*order)
        reports.write(PID.pack(pid))
        _, status, usage = os.wait4(pid, 0)
        end_group(pid)  # what it may have left running
        exit_code = os.waitstatus_to_exitcode(status)
        reports.write(END.pack(exit_code, usage.ru_maxrss * PEAK_UNIT))


def _work(alarm: float, memory_limit: int | None, answer: str, printed: str, work: bytes) -> None:
    """Do the work in the child, under its limits, and write the answer; it never returns."""
    output = os.open(printed, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    # An alarm that exists on every system, and works however busy the process is.
    faulthandler.dump_traceback_later(alarm, exit=True, file=output)
    pages = memory_pages("self")[0]
    if memory_limit is not None and resource is not None and pages:
        space = memory_limit + pages * mmap.PAGESIZE
        resource.setrlimit(resource.RLIMIT_AS, (space, space))
    with _Answer(answer) as whole:
        function, arguments = pickle.loads(work)
        whole.content = pickle.dumps(("done", function(*arguments), "", peak_bytes()))


class _Answer:
    """A context that writes what the work in it returns or raises, and ends the process."""

    content = b""

    def __init__(self, path: str) -> None:
        self.path = Path(path)

    def __enter__(self) -> _Answer:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, MemoryError):
            self.content = pickle.dumps(("memory limit", None, str(error), peak_bytes()))
        elif error is not None:
            words = f"{type(error).__name__}: {error}"
            self.content = pickle.dumps(("error", None, words, peak_bytes()))
        draft = self.path.with_suffix(".part")
        draft.write_bytes(self.content)
        draft.replace(self.path)
        os._exit(0)


if __name__ == "__main__":
    _serve(open(0, "rb", buffering=0), open(os.dup(1), "wb", buffering=0))  # noqa: SIM115
