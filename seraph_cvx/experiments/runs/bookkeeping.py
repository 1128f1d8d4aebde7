"""The books of a run: which cells are finished, what they took, how long the rest may take."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from joblib import effective_n_jobs

from ...processes.journal import Journal, check_kind, check_numbers
from .cells import CUT_OFF, DONE, FAILED, CellKey


class CellJournal(Journal):
    """JSON lines of two kinds, "run" (what was asked for) and "cell"; see :class:`Journal`.

    Attributes
    ----------
    cells : dict
        The finished cells by (task, sampling, method); of one run twice, the later.
    runs : list of dict

    Examples
    --------
    >>> journal = CellJournal()
    >>> cell = {"task": "iris", "sampling": 0, "method": "euclidean"}
    >>> journal.add("cell", cell | {"outcome": "done", "error": 4.0, "seconds": 0.1})
    >>> list(journal.cells)
    [('iris', 0, 'euclidean')]
    """

    work = "run"

    def __init__(self, path: str | os.PathLike[str] | None = None, resume: bool = False) -> None:
        self.cells: dict[CellKey, dict[str, Any]] = {}
        self.runs: list[dict[str, Any]] = []
        super().__init__(path, resume)

    def take(self, kind: str, content: dict[str, Any]) -> None:
        """Keep a line that has been checked."""
        if kind == "cell":
            _check_cell(content)
            self.cells[content["task"], content["sampling"], content["method"]] = content
        elif kind == "run":
            content["protocol"]["scaling"], content["protocol"]["variant"]  # else it is not whole
            self.runs.append(content)
        else:
            raise ValueError(f"a line of kind {kind!r}")


def _check_cell(cell: Mapping[str, Any]) -> None:
    """Refuse what no run has written: a line that was damaged, or changed by hand."""
    check_kind(cell, ("task", "method"), str)
    check_kind(cell, ("sampling",), int)
    if cell["outcome"] not in (DONE, FAILED, CUT_OFF):
        raise ValueError(f"outcome {cell['outcome']!r}")
    numbers = [cell["seconds"], *([cell["error"]] if cell["outcome"] == DONE else [])]
    check_numbers(*numbers)
    if min(numbers) < 0.0:
        raise ValueError(f"numbers {numbers}")


class Ledger:
    """What is finished, what each task and method has spent, and how long the rest may take.

    Examples
    --------
    >>> ledger = Ledger([("iris", 0, "gdm"), ("iris", 1, "gdm")], {}, time_cap=5.0)
    >>> row = {"task": "iris", "sampling": 0, "method": "gdm", "seconds": 3.0, "outcome": "done"}
    >>> ledger.enter(row)
    >>> ledger.seconds_left(("iris", 1, "gdm")), ledger.estimate()
    (2.0, 2.0)
    """

    def __init__(
        self,
        keys: Sequence[CellKey],
        rows: Mapping[CellKey, dict[str, Any]],
        time_cap: float,
        n_jobs: int | None = 1,
    ) -> None:
        self.rows: dict[CellKey, dict[str, Any]] = {}
        self._waiting = dict.fromkeys(keys)
        self._cap = time_cap
        self._workers = effective_n_jobs(n_jobs)
        self._spent: dict[tuple[str, str], float] = defaultdict(float)
        self._times: dict[str, list[float]] = defaultdict(list)
        for row in rows.values():
            self.enter(row)

    def enter(self, row: dict[str, Any]) -> None:
        """Enter a finished cell, and count its time."""
        task, method = row["task"], row["method"]
        key = (task, row["sampling"], method)
        self.rows[key] = row
        self._waiting.pop(key, None)
        self._spent[task, method] += row["seconds"]
        if row["outcome"] != CUT_OFF:
            for group in (f"{task} {method}", method, ""):
                self._times[group].append(row["seconds"])

    def seconds_left(self, key: CellKey) -> float:
        """Seconds that are left to a cell, of the cap of its task and method."""
        return self._cap - self._spent[key[0], key[2]]

    def estimate(self) -> float:
        """Seconds until all cells are finished: each as long as the mean of those most like it."""
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
