"""One run for Table 2: a method learns on one sampling of a task, in a separate process."""

from __future__ import annotations

import os
import time
import warnings
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seraph_cvx.numerics.arrays import one_blas_thread
from seraph_cvx.numerics.checks import FloatArray
from seraph_cvx.numerics.psd_cone import numerical_rank
from seraph_cvx.processes.isolation import ForkServer, Outcome
from seraph_cvx.processes.workers import ONE_THREAD, server_of_thread

from ..protocol.samplings import draw_sampling, load_task, nearest_neighbor_error
from ..protocol.tasks import find_task
from .methods import METHODS, Method, find_methods

RunKey = tuple[str, int, str]
"""What identifies a run: its task, sampling and method."""

DONE, FAILED, CUT_OFF = "done", "failed", "cut off"
"""The outcomes of a run."""

OWNER = __name__
"""The owner of the fork servers of runs; see :func:`server_of_thread`."""


@dataclass(frozen=True)
class Protocol:
    """What all runs of a reproduction share."""

    scaling: str | None = None
    variant: str | None = None
    data_dir: str | None = None

    def points(self, task: str) -> tuple[FloatArray, NDArray[Any]]:
        """Load X and y of a task, scaled, and keep them in memory."""
        return _points(self.scaling, self.data_dir, task)


def run_method(key: RunKey, method: str, protocol: Protocol, time_limit: float) -> dict[str, Any]:
    """Run a method on one sampling: its 1-NN error (in %) and the seconds that learning took."""
    task, seed, name = key
    row: dict[str, Any] = {"task": task, "sampling": seed, "method": name, **EMPTY}
    if time_limit <= 0.0:
        return row | {"outcome": CUT_OFF, "detail": "the time of this task and method is spent"}
    sampling = draw_sampling(find_task(task), *protocol.points(task), seed, protocol.variant)
    outcome = _server().run(learn, method, sampling.X, sampling.y, seed, time_limit=time_limit)
    if outcome.word != "done":
        return row | _failure(outcome)
    components, facts = outcome.result
    row |= facts
    with one_blas_thread():
        error = nearest_neighbor_error(sampling, components)
    return row | {"outcome": DONE, "error": error}


EMPTY: dict[str, Any] = {
    "outcome": None,
    "error": None,
    "seconds": 0.0,
    "cpu_seconds": 0.0,
    "rank": None,
    "detail": "",
    "warnings": [],
}


def learn(
    method: str, X: FloatArray, y: NDArray[Any], seed: int
) -> tuple[FloatArray, dict[str, Any]]:
    """Learn the factor L of a metric, in the process of a run, and measure what it takes."""
    (chosen,) = find_methods([method])
    import_module(chosen.module)
    if method in METHODS:  # a function of the user's own is called once only
        _warm_up(chosen)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clock, cpu_clock = time.perf_counter(), time.process_time()
        L = np.asarray(chosen.learn(X, y, seed), dtype=np.float64)
        seconds, cpu_seconds = time.perf_counter() - clock, time.process_time() - cpu_clock
    if L.ndim != 2 or L.shape[1] != X.shape[1] or not np.all(np.isfinite(L)):
        raise ValueError(
            f"{method} returned components of shape {L.shape}, or not finite: (k, {X.shape[1]}) "
            "finite numbers are needed."
        )
    said = list(dict.fromkeys(f"{w.category.__name__}: {w.message}" for w in caught))
    facts = {
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "rank": numerical_rank(L.T @ L),
        "warnings": said,
    }
    return L, facts


def _warm_up(method: Method) -> None:
    """Let a method learn from six points, so that no run's time has what is done once a process."""
    X, y = np.arange(18.0).reshape(6, 3) % 7.0, np.array([0, 0, 1, 1, -1, -1])
    with warnings.catch_warnings(), suppress(Exception):
        warnings.simplefilter("ignore")
        method.learn(X, y, 0)


def _server() -> ForkServer:
    modules = dict.fromkeys(method.module for method in METHODS.values())
    return server_of_thread(OWNER, [__name__, *modules], ONE_THREAD)


def _failure(outcome: Outcome) -> dict[str, Any]:
    word = CUT_OFF if outcome.word == "time limit" else FAILED
    detail = outcome.detail if outcome.word == "error" else f"{outcome.word}: {outcome.detail}"
    return {"outcome": word, "seconds": outcome.seconds, "detail": detail}


@lru_cache(maxsize=4)
def _points(
    scaling: str | None, data_dir: str | os.PathLike[str] | None, task: str
) -> tuple[FloatArray, NDArray[Any]]:
    return load_task(find_task(task), scaling, data_dir)
