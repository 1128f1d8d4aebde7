"""The books of a reproduction: which runs are finished, their seconds, and those still needed."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from joblib import effective_n_jobs

from seraph_cvx.processes.journal import Journal, check_kind, check_numbers

from .single_run import CUT_OFF, DONE, FAILED, RunKey


class RunJournal(Journal):
    """The finished runs of a reproduction, on the disk; see :class:`Journal`."""

    work = "reproduction"

    def __init__(self, path: str | os.PathLike[str] | None = None, resume: bool = False) -> None:
        self.finished: dict[RunKey, dict[str, Any]] = {}
        self.headers: list[dict[str, Any]] = []
        super().__init__(path, resume)

    def take(self, kind: str, content: dict[str, Any]) -> None:
        """Check a line and keep it."""
        if kind == "cell":
            _check_run(content)
            self.finished[content["task"], content["sampling"], content["method"]] = content
        elif kind == "run":
            content["protocol"]["scaling"], content["protocol"]["variant"]  # else it is not whole
            self.headers.append(content)
        else:
            raise ValueError(f"a line of kind {kind!r}")


def _check_run(row: Mapping[str, Any]) -> None:
    """Refuse a line that was damaged, or changed by hand."""
    check_kind(row, ("task", "method"), str)
    check_kind(row, ("sampling",), int)
    if row["outcome"] not in (DONE, FAILED, CUT_OFF):
        raise ValueError(f"outcome {row['outcome']!r}")
    numbers = [row["seconds"], *([row["error"]] if row["outcome"] == DONE else [])]
    check_numbers(*numbers)
    if min(numbers) < 0.0:
        raise ValueError(f"numbers {numbers}")


class Ledger:
    """Keep account of the finished runs, of the seconds spent, and of those still needed."""

    def __init__(
        self,
        keys: Sequence[RunKey],
        rows: Mapping[RunKey, dict[str, Any]],
        time_cap: float,
        n_jobs: int | None = 1,
    ) -> None:
        self.rows: dict[RunKey, dict[str, Any]] = {}
        self._waiting = dict.fromkeys(keys)
        self._cap = time_cap
        self._workers = effective_n_jobs(n_jobs)
        self._spent: dict[tuple[str, str], float] = defaultdict(float)
        self._times: dict[str, list[float]] = defaultdict(list)
        for row in rows.values():
            self.enter(row)

    def enter(self, row: dict[str, Any]) -> None:
        """Enter a finished run, and count its time."""
        task, method = row["task"], row["method"]
        key = (task, row["sampling"], method)
        self.rows[key] = row
        self._waiting.pop(key, None)
        self._spent[task, method] += row["seconds"]
        if row["outcome"] != CUT_OFF:
            for group in (f"{task} {method}", method, ""):
                self._times[group].append(row["seconds"])

    def seconds_left(self, key: RunKey) -> float:
        """The seconds left to a run, of the cap of its task and method."""
        return self._cap - self._spent[key[0], key[2]]

    def estimate(self) -> float:
        """Estimate the seconds until all runs are finished, from the means of similar ones."""
        total = 0.0
        counts: dict[tuple[str, str], int] = defaultdict(int)
        for task, _, method in self._waiting:
            counts[task, method] += 1
        for (task, method), how_many in counts.items():
            known = next(
                (t for g in (f"{task} {method}", method, "") if (t := self._times.get(g))), [0.0]
            )
            expected = how_many * sum(known) / len(known)
            total += max(0.0, min(expected, self._cap - self._spent[task, method]))
        return total / float(self._workers)
