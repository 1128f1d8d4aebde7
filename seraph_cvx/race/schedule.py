"""The order of a race's runs, and how a worker of joblib makes one."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Any, NamedTuple
from uuid import uuid4

from joblib import delayed

from ..model.m_step_objective import MStepObjective
from ..processes.isolation import Outcome
from ..processes.workers import (
    ONE_THREAD,
    as_finished,
    close_servers,
    one_by_one,
    server_of_thread,
)
from .entrants.attempt import Entrant
from .grading import attempt_once
from .race_journal import Key, RaceJournal
from .suite import InstanceSpec

PRELOAD = ("seraph_cvx.race.grading", "sklearn.datasets")
PRELOAD_CONIC = ("seraph_cvx.m_step.conic", "seraph_cvx.race.dimacs")

NOT_RUN = "not run"
"""The outcome of a run that was skipped, since a looser one reached a limit."""


class Run(NamedTuple):
    """One solver on one instance at one tolerance."""

    instance: str
    entrant: Entrant
    tol: float

    @property
    def key(self) -> Key:
        """The key of the run in the journal."""
        return self.instance, self.entrant.solver, self.entrant.formulation, self.tol


class Limits(NamedTuple):
    """The limits of a run: its seconds, those until its process is ended, and bytes of memory.

    None is no limit of memory.
    """

    seconds: float
    hard_seconds: float
    memory: int | None


def make_runs(
    runs: Sequence[Run],
    instances: dict[str, InstanceSpec | MStepObjective],
    journal: RaceJournal,
    limits: Limits,
    n_jobs: int | None = None,
) -> Generator[tuple[Run, Outcome], None, None]:
    """Make the runs that are not in the journal, through joblib, and yield them as they finish.

    A run waits until all looser ones of its solver on its instance are in the journal, which the
    caller has to see to, for after one that came to a limit it is not worth making: its outcome is
    then "not run". With one worker the runs are made in their order.

    Parameters
    ----------
    runs : sequence of Run
        Those of one solver and instance from the loosest tolerance to the tightest.
    instances : dict
        By name.
    journal : RaceJournal
    limits : Limits
    n_jobs : int, optional
        Of :class:`joblib.Parallel`.

    Examples
    --------
    >>> from seraph_cvx.race.solvers import entrants
    >>> spec = InstanceSpec.parse("iris-n20-standard-hyper-w1-s0")
    >>> run = Run(spec.name, entrants(["fista"])[0], 1e-3)
    >>> made = make_runs([run], {spec.name: spec}, RaceJournal(), Limits(60.0, 62.0, 2**32))
    >>> [(run.tol, outcome.word) for run, outcome in made]
    [(0.001, 'done')]
    """
    owner = uuid4().hex
    preload = [*PRELOAD, *(PRELOAD_CONIC if any(run.entrant.formulation for run in runs) else ())]
    preload += sorted({run.entrant.package for run in runs if run.entrant.package})
    waiting = [run for run in runs if run.key not in journal.rows]

    def calls() -> Iterator[Any]:
        while run := next((run for run in waiting if _is_ready(run, runs, journal)), None):
            waiting.remove(run)
            obstacle = _obstacle(run, runs, journal, limits.seconds)
            yield delayed(make_run)(run, instances[run.instance], limits, obstacle, owner, preload)

    try:
        with one_by_one(n_jobs) as workers:
            while waiting:  # again where the last ones had to wait for others
                yield from as_finished(workers, calls())
    finally:
        close_servers(owner)


def make_run(
    run: Run,
    instance: InstanceSpec | MStepObjective,
    limits: Limits,
    obstacle: str,
    owner: str,
    preload: Sequence[str],
) -> tuple[Run, Outcome]:
    """Make a run, in a separate process that the worker's fork server starts; or skip it.

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
    """The runs of the same solver on the same instance at looser tolerances."""
    return [other for other in runs if other[:2] == run[:2] and other.tol > run.tol]


def _is_ready(run: Run, runs: Sequence[Run], journal: RaceJournal) -> bool:
    return all(other.key in journal.rows for other in _looser(run, runs))


def _obstacle(run: Run, runs: Sequence[Run], journal: RaceJournal, time_limit: float) -> str:
    """Why a run is skipped: a looser one took all its time, or was ended at a limit."""
    for other in _looser(run, runs):
        row = journal.rows[other.key]
        late = (row["total_seconds"] or 0.0) >= time_limit and not row["claims"]
        if late or row["outcome"] in ("time limit", "memory limit"):
            limit = row["outcome"] if row["outcome"] != "done" else "time limit"
            return f"it came to its {limit} at tol {other.tol:g}"
    return ""
