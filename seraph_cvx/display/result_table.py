"""Rows of results, to be read by people (Markdown), programs and pandas."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that control a terminal or the direction of writing, or are invalid."""


@dataclass(frozen=True)
class ResultTable:
    """A table of results: a title, rows with the same keys, and notes.

    Examples
    --------
    >>> table = ResultTable("Gaps", [{"solver": "newton", "gap": 1.5e-9}])
    >>> print(table.to_markdown())
    **Gaps**
    <BLANKLINE>
    | solver | gap |
    | --- | --- |
    | newton | 1.5e-09 |
    >>> table.to_json()
    '{"title": "Gaps", "rows": [{"solver": "newton", "gap": 1.5e-09}], "notes": []}'
    >>> table.to_pandas().shape
    (1, 2)
    """

    title: str
    rows: Sequence[Mapping[str, Any]]
    notes: Sequence[str] = field(default=())

    @property
    def columns(self) -> list[str]:
        """The keys of the rows, in order of first appearance."""
        return list(dict.fromkeys(key for row in self.rows for key in row))

    def __str__(self) -> str:
        """The table in columns, as `print` shows it; those without entries are left out."""
        cells = {key: [show(row.get(key, "")) for row in self.rows] for key in self.columns}
        columns = [[key, *column] for key, column in cells.items() if any(column)]
        padded = [[cell.ljust(max(map(len, column))) for cell in column] for column in columns]
        lines = ["  ".join(line).rstrip() for line in zip(*padded, strict=True)]
        return "\n".join([self.title, "", *lines, *(f"\n{note}" for note in self.notes)])

    def to_markdown(self) -> str:
        """Write the table as Markdown, with its title above and its notes below."""
        lines = [f"**{self.title}**", "", _line(self.columns), _line(["---"] * len(self.columns))]
        lines += [_line([show(row.get(key, "")) for key in self.columns]) for row in self.rows]
        lines += [f"\n{note}" for note in self.notes]
        return "\n".join(lines)

    def to_json(self) -> str:
        """Write title, rows and notes as JSON."""
        content = {"title": self.title, "rows": list(self.rows), "notes": list(self.notes)}
        return json.dumps(content, default=str)

    def to_pandas(self) -> Any:
        """Convert the rows to a pandas DataFrame."""
        import pandas

        return pandas.DataFrame(list(self.rows), columns=self.columns)


def show(value: Any) -> str:
    """Format a cell for people: three digits, exponents only where they help.

    Examples
    --------
    >>> show(0.123456), show(1.5e-9), show(12345.6), show("text"), show(7)
    ('0.123', '1.5e-09', '12346', 'text', '7')
    """
    if isinstance(value, bool) or not isinstance(value, float):
        return visible(str(value))
    if value == 0.0 or 1e-3 <= abs(value) < 1e3:
        return f"{value:.3g}"
    return f"{value:.0f}" if 1e3 <= abs(value) < 1e6 else f"{value:.1e}"


def visible(text: str, but: str = "") -> str:
    r"""Escape the characters of a text that control a terminal, except those of `but`.

    Examples
    --------
    >>> visible("red\x1b[31m, two\nlines")
    'red\\x1b[31m, two\\nlines'
    """
    return UNSEEN.sub(
        lambda found: found[0] if found[0] in but else found[0].encode("unicode_escape").decode(),
        text,
    )


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
