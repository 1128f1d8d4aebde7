"""The results of checking the paper, for people (Markdown, HTML) and programs (JSON)."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..display.mathml import to_text
from ..display.result_table import ResultTable
from ..display.symbols import in_symbols
from .claim import Check, Claim, ClaimResult
from .page import to_html


@dataclass(frozen=True)
class PaperReport:
    """The claims that were checked on one data set.

    Attributes
    ----------
    name : str
        The name of the data.
    description : str
        The data in one line.
    results : sequence of ClaimResult
    seconds : float
    skipped : sequence of Claim
        Those that were not checked because they are slow.
    """

    name: str
    description: str
    results: Sequence[ClaimResult]
    seconds: float
    skipped: Sequence[Claim] = ()

    @property
    def ok(self) -> bool:
        """Whether every claim has the expected verdict."""
        return all(result.as_expected for result in self.results)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The results as rows of a table, one per claim."""
        return [
            {
                "claim": result.claim.number,
                "name": result.claim.name,
                "place": result.claim.place,
                "verdict": result.verdict.value,
                "as expected": result.as_expected,
                "residual": result.residual,
                "tolerance": result.tolerance,
                "decisive check": result.decisive.name,
                "seconds": result.seconds,
            }
            for result in self.results
        ]

    def __getitem__(self, number: int) -> ClaimResult:
        """The result of claim `number`."""
        for result in self.results:
            if result.claim.number == number:
                return result
        raise KeyError(f"claim {number} was not checked")

    def to_markdown(self) -> str:
        """Write the table as Markdown and, below it, what holds instead of each refuted claim."""
        title = f"The claims of the paper on {self.description}"
        columns = ("claim", "name", "verdict", "residual", "tolerance", "decisive check")
        rows = [{key: _shown(row[key]) for key in columns} for row in self.rows]
        notes = [f"Skipped, because slow: {c.number}. {in_symbols(c.name)}." for c in self.skipped]
        table = ResultTable(title, rows, notes)
        return "\n\n".join([table.to_markdown(), *map(_contradiction, self._contradicted())])

    def to_json(self) -> str:
        """Write everything as JSON, numbers in full precision, NaN and infinity as strings."""
        claims = [
            {
                **asdict(result.claim),
                "formula_text": to_text(result.claim.formula),
                "verdict": result.verdict.value,
                "as_expected": result.as_expected,
                "residual": result.residual,
                "tolerance": result.tolerance,
                "decisive_check": result.decisive.name,
                "printed": [_check(check) for check in result.printed],
                "corrected": [_check(check) for check in result.corrected],
                "numbers": dict(result.numbers),
                "charts": [asdict(chart) for chart in result.charts],
                "seconds": result.seconds,
                "message": result.message,
            }
            for result in self.results
        ]
        content = {
            "data": self.name,
            "description": self.description,
            "ok": self.ok,
            "seconds": self.seconds,
            "claims": claims,
            "skipped": [{"number": c.number, "name": c.name} for c in self.skipped],
        }
        return json.dumps(_jsonable(content), indent=1, allow_nan=False)

    def to_html(self) -> str:
        """Write a page with formulas, figures and verdicts, which needs no network."""
        return to_html(self.name, self.description, self.results, self.skipped)

    def _contradicted(self) -> list[ClaimResult]:
        return [result for result in self.results if result.claim.correction]


def _shown(value: Any) -> Any:
    return in_symbols(value) if isinstance(value, str) else value


def _check(check: Check) -> dict[str, Any]:
    return {**asdict(check), "passes": check.passes}


def _contradiction(result: ClaimResult) -> str:
    claim, violation = result.claim, result.violation
    name, place = in_symbols(claim.name), in_symbols(claim.place)
    lines = [f"**{claim.number}. {name}** ({place}): {result.verdict.value}."]
    if violation is not None:
        lines.append(
            f"As printed it fails: {in_symbols(violation.name)}, {violation.residual:.4g}."
        )
    lines.append(f"What holds: {in_symbols(claim.correction)}")
    if claim.consequence:
        lines.append(f"What this changes for you: {in_symbols(claim.consequence)}")
    if claim.recomputation is not None:
        lines.append(
            f"```python\n{claim.recomputation.code}```\n\nprints\n\n"
            f"```\n{claim.recomputation.prints}```"
        )
    return "\n\n".join(lines)


def _jsonable(value: Any) -> Any:
    """Convert to plain Python, without numbers that JSON does not have."""
    if isinstance(value, dict):
        return {str(key): _jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(item) for item in value]
    if isinstance(value, np.generic):
        return _jsonable(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
