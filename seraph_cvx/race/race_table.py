"""The rows of a race: their journal, and what they say of each solver."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..display.result_table import ResultTable
from ..processes.journal import Journal

NOT_MADE = ("not run", "not for this problem")
"""The outcomes of runs that were not made: they count neither for nor against a solver."""

Key = tuple[str, str, str, float | None, int]
"""What identifies a run: instance, solver, formulation, tolerance, and which repeat it is."""

TOLERANCE = 1e-4
"""By which answers are judged that no tolerance was asked for: ten times the loosest, 1e-5, with
which CVXPY 1.9 calls a solver by default, since solvers mean relative residuals."""

KEY_FIELDS = ("instance", "solver", "formulation", "tol", "repeat")

EMPTY_ROW: dict[str, Any] = {
    "outcome": "",
    "said": "",
    "claims": False,
    "true_gap": None,
    "proved_gap": None,
    "dual_gap": None,
    "violation": None,
    "value": None,
    "proof": "",
    "compile_seconds": None,
    "solve_seconds": None,
    "certify_seconds": None,
    "total_seconds": None,
    "grade_seconds": None,
    "iterations": None,
    "peak_bytes": None,
    "load": None,
    "detail": "",
}
"""The entries of a row before its run, besides its key."""


def key_of(row: Mapping[str, Any]) -> Key:
    """What identifies the run of a row."""
    solver = row["solver"], row["formulation"]
    return row["instance"], *solver, row["tol"], row["repeat"]


def asked(row: Mapping[str, Any]) -> str:
    """What the solver of a row was asked for."""
    return "its defaults" if row["tol"] is None else f"tol {row['tol']:g}"


class RaceJournal(Journal):
    """The journal of a race, with lines of the kinds "race" (its settings), "reference" and "row".

    They are kept in `races`, in `references` by instance, and in `rows` by key, in order.
    """

    work = "race"

    def __init__(self, path: str | os.PathLike[str] | None = None, resume: bool = False) -> None:
        self.rows: dict[Key, dict[str, Any]] = {}
        self.references: dict[str, dict[str, Any]] = {}
        self.races: list[dict[str, Any]] = []
        super().__init__(path, resume)

    def take(self, kind: str, content: dict[str, Any]) -> None:
        """Keep a line; one that lacks what identifies it is damaged."""
        if kind == "row":
            row = EMPTY_ROW | content
            self.rows[key_of(row)] = row
        elif kind == "reference":
            self.references[content["instance"]] = content
        elif kind == "race":
            self.races.append(content)
        else:
            raise ValueError(f"a line of kind {kind!r}")


@dataclass(frozen=True)
class Race(ResultTable):
    """The rows of a race, with the instances' proven intervals and what raced.

    A row has instance, solver, formulation, tol (None: its defaults), repeat; outcome ("done",
    "error", "time limit", "memory limit", "crashed", "not run", or "not for this problem" where the
    solver cannot take the instance); said (the solver's own status), claims (whether that claims
    success), value, violation (for an M-step the smallest eigenvalue before projection, relative to
    the largest; for a problem an upper bound on the worst violation of a constraint); true_gap, an
    upper bound on the distance of the value from the optimum; compile_seconds (CVXPY's chain, or
    our own set-up), solve_seconds, certify_seconds (for the certificates by which our solvers and
    the methods on a factor stop; zero for the others), total_seconds, their sum; grade_seconds (for
    grading the answer afterwards), iterations, peak_bytes, load (of the machine, before the run)
    and detail. A row of an M-step also has proved_gap, the gap that the matrix itself proves. A row
    of a problem also has dual_gap, an upper bound on the distance of the multipliers' bound from
    the optimum, relative to it, as is true_gap; and proof: whether all of that agrees with what is
    proven, contradicts it and where, or was not judged.

    Attributes
    ----------
    references : dict
        For each instance: lower and upper, the proven interval of its optimal value, and a
        checksum; for a problem also the claim.
    races : sequence of dict
        Versions, date, machine and limits: one for the first start and one for each resumption.
    """

    references: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    races: Sequence[dict[str, Any]] = ()

    def __str__(self) -> str:
        return str(self.in_short())

    @property
    def time_limit(self) -> float | None:
        """The time limit of a run in seconds, the largest of all starts; None if unknown."""
        return max((race["time_limit"] for race in self.races), default=None)

    def in_short(self) -> ResultTable:
        """The columns that people read first, with the verdict at the end.

        Solvers that cannot take any of the instances are named in a note.
        """
        fit = [row for row in self.rows if row["outcome"] != NOT_MADE[1]]
        unfit = {label_of(row) for row in self.rows} - {label_of(row) for row in fit}
        notes = [*self.notes]
        notes += [f"Not for this problem: {', '.join(sorted(unfit))}."] if unfit else []
        varying = [key for key in ("instance", "tol") if len({row[key] for row in self.rows}) > 1]
        names = ("value", "violation", "true_gap", "dual_gap", "total_seconds")
        rows = [
            {key: row[key] for key in varying}
            | {"solver": label_of(row), "said": row["said"] or row["outcome"]}
            | {name: "" if row[name] is None else row[name] for name in names}
            | {"value": "" if row["value"] is None else f"{row['value']:.9g}"}
            | {"verdict": verdict_of(row) or row["detail"]}
            for row in fit
        ]
        return ResultTable(self.title, rows, notes)

    def summary(self) -> ResultTable:
        """Summarize each solver: how often it answered, how often its claims were true."""
        return summarize(self.rows)


def summarize(rows: Sequence[Any]) -> ResultTable:
    """Count by solver and formulation: answers, claims, how many claims were true, and proved.

    A claim is true if its verdict agrees: of an M-step, if the true gap is within the tolerance
    that was asked for; it is proved if the answer's own certificate shows it. How far off the
    others are is shown by the largest gap over that tolerance. Times are in `statistics.py`.
    """
    table = []
    for label in dict.fromkeys(map(label_of, rows)):
        made = [r for r in rows if label_of(r) == label and r["outcome"] not in NOT_MADE]
        answers = answers_of(made)
        claims = [row for row in answers if row["claims"]]
        line = {"solver": label, "runs": len(made), "answers": len(answers), "claims": len(claims)}
        line["true"] = sum(verdict_of(row) == AGREES for row in claims)
        line["proved"] = sum(over(row, "proved_gap") <= 1.0 for row in claims)
        for name in ("true", "proved"):
            gaps = [over(row, f"{name}_gap") for row in claims if row[f"{name}_gap"] is not None]
            line[f"worst {name} / tol"] = max(gaps, default="")
        table.append(line)
    return ResultTable("What the solvers said, and what is true", table)


def count_claims(rows: Iterable[Any], gap: str = "true_gap") -> tuple[int, int]:
    """Count the claims to have reached the tolerance, and those whose gap is larger than it.

    With `gap` "true_gap" the second count is of false claims, with "proved_gap" of those not
    proved. Tables and pictures of a race take their counts from here.
    """
    claims = [row for row in answers_of(rows) if row["claims"]]
    return len(claims), sum(over(row, gap) > 1.0 for row in claims)


AGREES = "agrees"
"""The verdict on an answer of which all was judged, and is right."""


def verdict_of(row: Any) -> str:
    """Whether an answer agrees with what is proven; "" if nothing is claimed."""
    if row.get("proof") or not row["claims"] or row["true_gap"] is None:
        return str(row.get("proof", ""))
    times = over(row, "true_gap")
    return AGREES if times <= 1.0 else f"contradicts: off by {times:.2g} times the tolerance"


def answers_of(rows: Iterable[Any]) -> list[Any]:
    """The rows whose solver returned what could be graded: an answer, or a status."""
    return [row for row in rows if row["true_gap"] is not None or row.get("proof")]


def over(row: Any, gap: str) -> float:
    """How many times a gap of an answer is the tolerance that was asked for."""
    return math.inf if row[gap] is None else float(row[gap] / (row["tol"] or TOLERANCE))


def label_of(row: Any) -> str:
    """The label of a row's solver: ``SCS/dual``, or the name alone."""
    return f"{row['solver']}/{row['formulation']}" if row["formulation"] else str(row["solver"])
