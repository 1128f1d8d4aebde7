"""Isolated work on joblib's workers, each of which keeps its fork server."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Any

from joblib import Parallel

from .isolation import ForkServer

ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""The environment of work whose times are compared: a single BLAS thread."""

_OF_THREADS: dict[int, tuple[str, ForkServer]] = {}
"""Each thread's fork server, and the owner of its work."""


def server_of_thread(
    owner: str, preload: Sequence[str] = (), environment: Mapping[str, str] | None = None
) -> ForkServer:
    """The calling thread's fork server, kept for all work of one owner: its imports are paid once.

    A thread keeps one fork server: one that it has for another owner is closed first.
    """
    thread = threading.get_ident()
    if thread in _OF_THREADS:
        known_owner, server = _OF_THREADS[thread]
        if known_owner == owner:
            return server
        server.close()
    server = ForkServer(preload, environment)
    _OF_THREADS[thread] = owner, server
    return server


def close_servers(owner: str) -> None:
    """Stop the fork servers that this process's threads keep for an owner.

    Those of other processes end with the processes, or when their thread works for another owner.
    """
    for thread, (known_owner, server) in list(_OF_THREADS.items()):
        if known_owner == owner:
            del _OF_THREADS[thread]
            server.close()


def one_by_one(n_jobs: int | None) -> Parallel:
    """The workers of joblib, each of which takes a piece of work only when it is free."""
    return Parallel(
        n_jobs=n_jobs, return_as="generator_unordered", batch_size=1, pre_dispatch="n_jobs"
    )


def as_finished(workers: Parallel, calls: Iterable[Any]) -> Generator[Any, None, None]:
    """Yield the results of calls as they finish; if stopped, without joblib's warning."""
    results = workers(calls)
    try:
        for result in results:  # noqa: UP028 - "yield from" would close it ahead of the lines below
            yield result
    finally:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", r"\d+ tasks (have been|which were)", UserWarning)
            results.close()
