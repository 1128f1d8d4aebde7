"""The rows of a race, and what they say of each solver."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..display.formulas import CERTIFICATE
from ..display.notebook import Tone, card, grid
from ..display.result_table import ResultTable

NOT_MADE = ("not run", "not for this problem")
"""The outcomes of runs that were not made: they count neither for nor against a solver."""


@dataclass(frozen=True)
class Race(ResultTable):
    """The rows of a race, with the instances' certified intervals and what raced.

    Attributes
    ----------
    references : dict
        By instance: lower and upper, the certified interval of its optimal value, and a checksum.
    races : sequence of dict
        Versions, date, machine and limits: one for the first start and one for each resumption.
    """

    references: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    races: Sequence[dict[str, Any]] = ()

    @property
    def time_limit(self) -> float | None:
        """The seconds that a run could take, the most of all starts; None if no start is known."""
        return max((race["time_limit"] for race in self.races), default=None)

    def summary(self) -> ResultTable:
        """Summarize each solver: how often it answered, how often its claims were true."""
        return summarize(self.rows)

    def to_markdown(self) -> str:
        """Write the main columns of the rows as Markdown; :meth:`to_json` has all."""
        return ResultTable(
            self.title, [_printed(row) for row in self.rows], self.notes
        ).to_markdown()

    def _repr_html_(self) -> str:
        summary = self.summary()
        claims, true = (sum(row[key] for row in summary.rows) for key in ("claims", "true"))
        tone = Tone.PLAIN if not claims else Tone.GOOD if true == claims else Tone.BAD
        words = (
            f"Runs: {len(self.rows)}, instances: {len(self.references)}. A claim is a run whose "
            "solver says that it reached the tolerance; it is true if the gap to the best lower "
            "bound proved for the instance is within it. "
        )
        return card(
            self.title,
            f"{true} of {claims} claims of success are true",
            tone,
            words + " ".join(self.notes),
            [CERTIFICATE],
            grid(summary),
        )


def summarize(rows: Sequence[Any]) -> ResultTable:
    """Count what each solver claimed and how much of it was true.

    By solver and formulation: answers, claims, how many claims were true, how many proved.

    A claim is true if the true gap is within the tolerance that was asked for, and proved if the
    answer's own certificate shows it. How far off the others are is shown by the largest gap over
    that tolerance. The seconds are the median of those that answered.

    Examples
    --------
    >>> row = dict(solver="S", formulation="dual", tol=1e-3, outcome="done", claims=True)
    >>> row |= dict(true_gap=1e-2, proved_gap=5e-2, total_seconds=0.5)
    >>> print(summarize([row]).to_markdown())
    **What the solvers said, and what is true**
    <BLANKLINE>
    | solver | runs | answers | claims | true | worst true / tol | proved | ...
    | --- | --- | --- | --- | --- | --- | --- | --- | --- |
    | S/dual | 1 | 1 | 1 | 0 | 10 | 0 | 50 | 0.5 |
    """
    groups: dict[str, list[Any]] = {}
    for row in rows:
        groups.setdefault(label_of(row), []).append(row)
    table = []
    for label, group in groups.items():
        run = [row for row in group if row["outcome"] not in NOT_MADE]
        answers = answers_of(run)
        n_claims, n_false = count_claims(run, "true_gap")
        n_unproved = count_claims(run, "proved_gap")[1]
        claims = [row for row in answers if row["claims"]]
        seconds = [row["total_seconds"] for row in answers]
        table.append(
            {
                "solver": label,
                "runs": len(run),
                "answers": len(answers),
                "claims": n_claims,
                "true": n_claims - n_false,
                "worst true / tol": max((over(row, "true_gap") for row in claims), default=""),
                "proved": n_claims - n_unproved,
                "worst proved / tol": max((over(row, "proved_gap") for row in claims), default=""),
                "seconds": float(np.median(seconds)) if seconds else "",
            }
        )
    return ResultTable("What the solvers said, and what is true", table)


def count_claims(rows: Iterable[Any], gap: str = "true_gap") -> tuple[int, int]:
    """Count the claims to have reached the tolerance, and those whose gap is larger than it.

    Tables and pictures of a race take their counts from here.

    Parameters
    ----------
    rows : iterable
        The rows of a race.
    gap : str
        "true_gap": the second count is of false claims; "proved_gap": of claims not proved.

    Examples
    --------
    >>> row = dict(tol=1e-3, claims=True, true_gap=1e-4, proved_gap=5e-2)
    >>> count_claims([row]), count_claims([row], "proved_gap")
    ((1, 0), (1, 1))
    """
    claims = [row for row in answers_of(rows) if row["claims"]]
    return len(claims), sum(over(row, gap) > 1.0 for row in claims)


def answers_of(rows: Iterable[Any]) -> list[Any]:
    """The rows whose solver returned a matrix that could be graded."""
    return [row for row in rows if row["true_gap"] is not None]


def over(row: Any, gap: str) -> float:
    """How many times a gap of an answer is the tolerance that was asked for.

    Examples
    --------
    >>> over(dict(tol=0.25, true_gap=0.5), "true_gap")
    2.0
    """
    return float(row[gap] / row["tol"])


def label_of(row: Any) -> str:
    """The label of a row's solver: ``SCS/dual``, or the name alone."""
    return f"{row['solver']}/{row['formulation']}" if row["formulation"] else str(row["solver"])


def _printed(row: Any) -> dict[str, Any]:
    def blank(value: Any) -> Any:
        return "" if value is None else value

    dimacs = row["dimacs"]
    return {
        "instance": row["instance"],
        "solver": label_of(row),
        "tol": row["tol"],
        "outcome": row["outcome"],
        "said": row["said"],
        "true gap": blank(row["true_gap"]),
        "proved gap": blank(row["proved_gap"]),
        "PSD violation": blank(row["psd_violation"]),
        "worst DIMACS": "" if dimacs is None else max(abs(error) for error in dimacs),
        "compile (s)": blank(row["compile_seconds"]),
        "solve (s)": blank(row["solve_seconds"]),
        "total (s)": blank(row["total_seconds"]),
        "iterations": blank(row["iterations"]),
        "peak MiB": round(row["peak_bytes"] / 2**20) if row["peak_bytes"] else "",
        "detail": row["detail"],
    }
