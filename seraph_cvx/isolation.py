"""Work in a process of its own, under a time and a memory limit: its faults stay there."""

from __future__ import annotations

import multiprocessing
import resource
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any


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
        The error, or how the process ended.
    seconds : float
    peak_bytes : int
        The largest memory of the process, as far as it could say.
    """

    word: str
    result: Any
    detail: str
    seconds: float
    peak_bytes: int = 0


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
        At the top level of a module, so that the new process can import it.
    time_limit : float
        Seconds, the start of the process included.
    memory_limit : int, optional
        Bytes of address space.

    Examples
    --------
    >>> import math
    >>> run_isolated(math.sqrt, 4.0, time_limit=60).result
    2.0
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    clock = time.perf_counter()
    process = context.Process(target=_work, args=(theirs, memory_limit, function, arguments))
    process.start()
    theirs.close()
    word = "time limit"
    try:
        word, result, detail, peak = _await(ours, time_limit)
    finally:
        process.join(0.0 if word == "time limit" else 5.0)
        if process.is_alive():
            process.kill()
        process.join()
        ours.close()
    if word == "crashed":
        detail = f"the process ended with exit code {process.exitcode}"
    return Outcome(word, result, detail, time.perf_counter() - clock, peak)


def _await(connection: Connection, time_limit: float) -> tuple[str, Any, str, int]:
    if not connection.poll(time_limit):
        return "time limit", None, f"no answer within {time_limit:g} s", 0
    try:
        answer: tuple[str, Any, str, int] = connection.recv()
    except EOFError:
        return "crashed", None, "", 0
    return answer


def _work(
    connection: Connection,
    memory_limit: int | None,
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
) -> None:
    if memory_limit is not None:
        resource.setrlimit(resource.RLIMIT_AS, (memory_limit, memory_limit))
    with ThreadPoolExecutor(1) as thread:  # it keeps whatever the work may raise
        future = thread.submit(function, *arguments)
        error = future.exception()
    if error is None:
        answer = ("done", future.result(), "")
    elif isinstance(error, MemoryError):
        answer = ("memory limit", None, str(error))
    else:
        answer = ("error", None, f"{type(error).__name__}: {error}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    connection.send((*answer, peak))
    connection.close()
