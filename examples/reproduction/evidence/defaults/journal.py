"""The journal of the benchmark of defaults: which runs are finished, and of which data."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from seraph_cvx.processes.journal import Journal, check_kind, check_numbers

from .data_sets import DataSet
from .measures import DONE, FAILED, MEASURES

RunKey = tuple[str, int, int, str]
"""What identifies a run: set, labels a class, draw and method."""


class BenchJournal(Journal):
    """The finished runs of the benchmark, on the disk; see :class:`Journal`."""

    work = "benchmark"

    def __init__(self, path: str | os.PathLike[str] | None = None, resume: bool = False) -> None:
        self.finished: dict[RunKey, dict[str, Any]] = {}
        self.digests: dict[str, str] = {}
        super().__init__(path, resume)

    def take(self, kind: str, content: dict[str, Any]) -> None:
        """Check a line and keep it."""
        if kind == "run":
            _check_run(content)
            key = (content["set"], content["labels"], content["draw"], content["method"])
            self.finished[key] = content
        elif kind == "set":
            check_kind(content, ("set", "digest"), str)
            self.digests[content["set"]] = content["digest"]
        elif kind == "forget":
            check_kind(content, ("method",), str)
            for key in [key for key in self.finished if key[3] == content["method"]]:
                del self.finished[key]
        else:
            raise ValueError(f"a line of kind {kind!r}")

    def note_sets(self, found: Iterable[DataSet]) -> None:
        """Record data sets; refuse one whose points are not those of the recorded runs."""
        for data in found:
            known = self.digests.get(data.name)
            if known is None:
                self.add("set", {"set": data.name, "digest": data.digest})
            elif known != data.digest:
                raise ValueError(
                    f"The points of {data.name} are not those of the runs recorded in {self.path}: "
                    "use another folder, or another name for the set."
                )


def _check_run(row: Mapping[str, Any]) -> None:
    """Refuse a line that was damaged, or changed by hand."""
    check_kind(row, ("set", "method", "detail"), str)
    check_kind(row, ("labels", "draw", "warnings"), int)
    if row["outcome"] not in (DONE, FAILED):
        raise ValueError(f"outcome {row['outcome']!r}")
    measured = [row[name] for name in MEASURES if row[name] is not None]
    check_numbers(row["seconds"], *measured)
    is_whole = row["outcome"] == FAILED or row["error"] is not None
    if not is_whole or not all(0.0 <= x <= 100.0 for x in measured):
        raise ValueError(f"measures {measured}")
