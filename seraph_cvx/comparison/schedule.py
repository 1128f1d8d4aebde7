"""The runs of a race in turn: which are next, and how a worker of joblib makes one."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterator, Sequence
from typing import Any, NamedTuple
from uuid import uuid4

from joblib import Parallel, delayed

from ..model.m_step_objective import MStepObjective
from ..processes.isolation import Outcome
from .grading import attempt_once
from .journal import Journal, Key
from .solvers import Entrant
from .suite import InstanceSpec
from .workers import ONE_THREAD, close_servers, server_of_thread

PRELOAD = ("seraph_cvx.comparison.grading", "sklearn.datasets")
PRELOAD_CONIC = ("seraph_cvx.m_step.conic", "seraph_cvx.comparison.dimacs")

NOT_RUN = "not run"
"""The outcome of a run that was not worth making."""


class Run(NamedTuple):
    """One solver on one instance at one tolerance."""

    instance: str
    entrant: Entrant
    tol: float

    @property
    def key(self) -> Key:
        """What the journal knows it by."""
        return self.instance, self.entrant.solver, self.entrant.formulation, self.tol


class Limits(NamedTuple):
    """Seconds a run may take, those after which its process is ended, and bytes of memory.

    None is no limit of memory.
    """

    seconds: float
    hard_seconds: float
    memory: int | None


def make_runs(
    runs: Sequence[Run],
    instances: dict[str, InstanceSpec | MStepObjective],
    journal: Journal,
    limits: Limits,
    n_jobs: int | None = None,
) -> Generator[tuple[Run, Outcome], None, None]:
    """What comes of each run that is not in the journal, as they are finished, through joblib.

    A run waits until all looser ones of its solver on its instance are in the journal, which the
    caller has to see to, for after one that came to a limit it is not worth making: its outcome is
    then "not run". With one worker the runs are made in their order.

    Parameters
    ----------
    runs : sequence of Run
        Those of one solver and instance from the loosest tolerance to the tightest.
    instances : dict
        By name.
    journal : Journal
    limits : Limits
    n_jobs : int, optional
        Of :class:`joblib.Parallel`.

    Examples
    --------
    >>> from seraph_cvx.comparison.solvers import entrants
    >>> spec = InstanceSpec.parse("iris-n20-standard-hyper-w1-s0")
    >>> run = Run(spec.name, entrants(["fista"])[0], 1e-3)
    >>> made = make_runs([run], {spec.name: spec}, Journal(), Limits(60.0, 62.0, 2**32))
    >>> [(run.tol, outcome.word) for run, outcome in made]
    [(0.001, 'done')]
    """
    owner = uuid4().hex
    preload = [*PRELOAD, *(PRELOAD_CONIC if any(run.entrant.formulation for run in runs) else ())]
    waiting = [run for run in runs if run.key not in journal.rows]

    def calls() -> Iterator[Any]:
        while run := next((run for run in waiting if _is_ready(run, runs, journal)), None):
            waiting.remove(run)
            obstacle = _obstacle(run, runs, journal, limits.seconds)
            yield delayed(make_run)(run, instances[run.instance], limits, obstacle, owner, preload)

    workers = Parallel(
        n_jobs=n_jobs, return_as="generator_unordered", batch_size=1, pre_dispatch="n_jobs"
    )
    try:
        with workers:
            while waiting:  # again where the last ones had to wait for others
                yield from _closing(workers(calls()))
    finally:
        close_servers(owner)


def _closing(finished: Any) -> Generator[tuple[Run, Outcome], None, None]:
    """The results of joblib; if they are stopped, without its advice to start fewer."""
    try:
        for made in finished:  # noqa: UP028 - "yield from" would close it ahead of the lines below
            yield made
    finally:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", r"\d+ tasks (have been|which were)", UserWarning)
            finished.close()


def make_run(
    run: Run,
    instance: InstanceSpec | MStepObjective,
    limits: Limits,
    obstacle: str,
    owner: str,
    preload: Sequence[str],
) -> tuple[Run, Outcome]:
    """One run, in a process of its own that the worker's fork server starts; or why it is not made.

    Examples
    --------
    >>> run = Run("iris", Entrant("fista", "", "", ()), 1e-3)
    >>> make_run(run, None, Limits(1.0, 1.0, 1), "it is late", "", ())[1].detail
    'it is late'
    """
    if obstacle:
        return run, Outcome(NOT_RUN, None, obstacle, 0.0)
    outcome = server_of_thread(owner, preload, ONE_THREAD).run(
        attempt_once,
        *(instance, run.entrant, run.tol, limits.seconds),
        time_limit=limits.hard_seconds,
        memory_limit=limits.memory,
    )
    return run, outcome


def _looser(run: Run, runs: Sequence[Run]) -> list[Run]:
    """The runs of the same solver on the same instance that come before it."""
    return [other for other in runs if other[:2] == run[:2] and other.tol > run.tol]


def _is_ready(run: Run, runs: Sequence[Run], journal: Journal) -> bool:
    return all(other.key in journal.rows for other in _looser(run, runs))


def _obstacle(run: Run, runs: Sequence[Run], journal: Journal, time_limit: float) -> str:
    """Why a run is not worth making: a looser one took all its time, or was ended at a limit."""
    for other in _looser(run, runs):
        row = journal.rows[other.key]
        late = (row["total_seconds"] or 0.0) >= time_limit and not row["claims"]
        if late or row["outcome"] in ("time limit", "memory limit"):
            limit = row["outcome"] if row["outcome"] != "done" else "time limit"
            return f"it came to its {limit} at tol {other.tol:g}"
    return ""
