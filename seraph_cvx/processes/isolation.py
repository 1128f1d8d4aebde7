"""Runs work in a separate process, under limits of time and memory.

A :class:`ForkServer` is one more Python process, whose program is this file too: it imports what
the work needs, then forks a child for each piece of work. On Windows and macOS, where that cannot
be done or is not safe, each piece of work has a fresh process.
"""

# multiprocessing's fork server would not do: a process has one of them, with one environment and
# one list of modules; it imports the caller's script again, which then needs a guard against
# running twice; a module that cannot be imported is passed over; peak memory is not reported.

from __future__ import annotations

import contextlib
import faulthandler
import mmap
import os
import pickle
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

FORKS = hasattr(os, "fork") and sys.platform != "darwin"
"""Whether work is forked: Windows cannot fork, and on macOS libraries may crash in a fork."""

resource: Any = import_module("resource") if find_spec("resource") else None  # not on Windows

PEAK_UNIT = 1 if sys.platform == "darwin" else 1024
"""The system's unit of peak memory, in bytes."""

ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""The environment of work whose times are compared: a single BLAS thread."""

POLL_SECONDS = 0.02
"""Seconds between two checks of the memory of a piece of work."""

ALARM_MARGIN = 5.0
"""Seconds after its limit at which a child ends by its own alarm, if it still runs."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a piece of work."""

    status: str  # "done", "error", "time limit", "memory limit" or "crashed"
    result: Any  # what the function returned, if it is done
    detail: str  # the error, or how the process ended and the last line that it printed
    seconds: float
    peak_bytes: int = 0  # resident memory, imported libraries included; 0 is not known


class ForkServer:
    """A process that imports modules once and forks a child for each piece of work.

    On systems without fork, each piece of work has a new process that imports them.
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
            _end_group(self._child)
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
        answer, printed = (Path(self._folder.name) / name for name in ("answer", "printed"))
        answer.unlink(missing_ok=True)
        process = self._started()
        clock = time.perf_counter()
        alarm = time_limit + ALARM_MARGIN
        _send(process.stdin, (alarm, memory_limit, str(answer), str(printed), work))
        child = self._child = _receive(process.stdout)
        if child is None:
            gone = "the process that was to do the work is gone"
            return Outcome("crashed", None, gone, time.perf_counter() - clock)
        try:
            status, detail, end = _watch(child, process.stdout, time_limit, memory_limit)
        finally:
            self._child = None
        exit_code, peak = end or (1, 0)
        if not FORKS:
            exit_code = process.wait()
            if hasattr(os, "killpg"):
                _end_group(child)  # what it may have left running
        result = None
        if not status and exit_code == 0 and answer.is_file():
            status, result, detail, known_peak = pickle.loads(answer.read_bytes())
            peak = max(peak, known_peak)
        elif not status:
            manner = f"with exit code {exit_code} and without an answer"
            if exit_code < 0:
                manner = f"by signal {signal.Signals(-exit_code).name}"
            status, detail = "crashed", f"the process ended {manner}"
            output = printed.read_bytes() if printed.is_file() else b""
            lines = output[-2000:].decode(errors="replace").strip().splitlines()
            detail += f"; it last printed: {lines[-1][:300]}" if lines else ""
        return Outcome(status, result, detail, time.perf_counter() - clock, peak)

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            with contextlib.suppress(BrokenPipeError), self._process:
                pass  # its pipes are closed, and it is waited for
            self._process = None

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._stop()
            self._process = subprocess.Popen(
                [sys.executable, __file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=self._environment,
                start_new_session=True,  # Ctrl-C is for this process, which waits
                creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),  # on Windows too
            )
            _send(self._process.stdin, (sys.path, self._preload, self._folder.name))
            if _receive(self._process.stdout) is None:
                names = ", ".join(self._preload)
                raise RuntimeError(f"A process that imports {names} could not be started.")
        return self._process


def run_isolated(
    function: Callable[..., Any],
    *arguments: Any,
    time_limit: float,
    memory_limit: int | None = None,
) -> Outcome:
    """Call ``function(*arguments)`` in a new process, ended after `time_limit` seconds."""
    with ForkServer() as server:
        return server.run(function, *arguments, time_limit=time_limit, memory_limit=memory_limit)


def memory_limit_obstacle() -> str:
    """Why this system cannot limit the memory of work; empty if it can."""
    if resident_bytes():
        return ""
    return (
        f"Memory is not limited: {platform.system()} does not tell how much another process has "
        "in use (there is no /proc). Time is still limited."
    )


def resident_bytes(pid: int | str = "self") -> int:
    """The resident memory of a process; 0 if it is gone or its memory is unknown."""
    return _memory(pid)[1]


def peak_bytes() -> int:
    """The peak resident memory of this process; 0 if it is unknown."""
    if resource is None:
        return 0
    return int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * PEAK_UNIT)


def _memory(pid: int | str) -> tuple[int, int]:
    """The bytes of address space and of resident memory; zeros if they are unknown."""
    try:
        total, resident, *_ = Path(f"/proc/{pid}/statm").read_text("ascii").split()
    except (FileNotFoundError, ProcessLookupError, ValueError):
        return 0, 0
    return int(total) * mmap.PAGESIZE, int(resident) * mmap.PAGESIZE


def _send(pipe: IO[bytes] | None, message: object) -> None:
    """Write a message; to a process that is gone nothing is written."""
    if pipe is not None:
        with contextlib.suppress(BrokenPipeError):
            pickle.dump(message, pipe)
            pipe.flush()


def _receive(pipe: IO[bytes] | None) -> Any:
    """Read a message; None where the pipe ends."""
    with contextlib.suppress(EOFError, pickle.UnpicklingError):
        return None if pipe is None else pickle.load(pipe)


def _watch(
    pid: int, pipe: IO[bytes] | None, time_limit: float, memory_limit: int | None
) -> tuple[str, str, tuple[int, int] | None]:
    """Wait for a child, and kill it at a limit: which limit, details, exit code and peak memory."""
    deadline = time.perf_counter() + time_limit
    limit = detail = ""
    ends: list[Any] = []
    reader = threading.Thread(target=lambda: ends.append(_receive(pipe)), daemon=True)
    try:
        reader.start()
        while reader.is_alive():
            reader.join(POLL_SECONDS)
            if limit or not reader.is_alive():
                continue
            if time.perf_counter() > deadline:
                limit, detail = "time limit", f"no answer within {time_limit:g} s"
            elif memory_limit is not None and resident_bytes(pid) > memory_limit:
                limit = "memory limit"
                detail = f"more than {memory_limit / 2**20:.0f} MiB were in use"
            if limit:
                _end_group(pid)
    except KeyboardInterrupt:
        _end_group(pid)
        if reader.is_alive():
            reader.join()
        raise
    return limit, detail, ends[0] if ends else None


def _end_group(pid: int) -> None:
    """Kill a child and whatever it has started, though it may not lead its process group yet.

    Windows has no process groups: only the child itself is killed.
    """
    if hasattr(os, "killpg") and hasattr(signal, "SIGKILL"):
        for kill in (os.killpg, os.kill):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                kill(pid, signal.SIGKILL)
    else:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGTERM)


# The program of the other process, which reads orders and writes reports


def _serve(orders: IO[bytes], reports: IO[bytes]) -> None:
    """Import modules, then do each order in a child, or where there is no fork the only one.

    The orders end without a kill where whoever gave them was killed: then the folder is removed.
    """
    sys.path[:], preload, folder = _receive(orders)
    for name in preload:
        import_module(name)
    _send(reports, "ready")
    while order := _receive(orders):
        if sys.platform == "win32" or not FORKS:
            _send(reports, os.getpid())
            _work(*order)
        else:
            pid = os.fork()
            if pid == 0:
                os.setsid()
                _work(*order)
            _send(reports, pid)
            _, status, usage = os.wait4(pid, 0)
            _end_group(pid)  # what it may have left running
            peak = usage.ru_maxrss * PEAK_UNIT
            _send(reports, (os.waitstatus_to_exitcode(status), peak))
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)  # what could not be sent is not tried again


def _work(alarm: float, memory_limit: int | None, answer: str, printed: str, work: bytes) -> None:
    """Do the work in the child, under its limits, and write the answer; it never returns."""
    output = os.open(printed, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    # An alarm that exists on every system, and works however busy the process is.
    faulthandler.dump_traceback_later(alarm, exit=True, file=output)
    space = _memory("self")[0]
    if memory_limit is not None and resource is not None and space:
        resource.setrlimit(resource.RLIMIT_AS, (memory_limit + space,) * 2)
    try:
        function, arguments = pickle.loads(work)
        content = pickle.dumps(("done", function(*arguments), "", peak_bytes()))
    finally:  # whatever was raised, also by sys.exit
        error = sys.exc_info()[1]
        if error is not None:
            memory = isinstance(error, MemoryError)
            detail = str(error) if memory else f"{type(error).__name__}: {error}"
            status = "memory limit" if memory else "error"
            content = pickle.dumps((status, None, detail, peak_bytes()))
        Path(answer).write_bytes(content)
        os._exit(0)


if __name__ == "__main__":
    _serve(open(0, "rb", closefd=False), open(os.dup(1), "wb"))  # noqa: SIM115
