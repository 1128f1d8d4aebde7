"""HTML pieces for notebooks, with inline styles, escaped text and nothing to fetch.

Text and lines take the notebook's own color, and a verdict brings its own ground with it, so that
both are readable on light and on dark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from html import escape
from typing import Any

from .formulas import Formula
from .result_table import ResultTable, show
from .symbols import prose

MOST_ROWS = 24
"""A longer table is shown by its first and last rows."""

NEAR, FAR = 1e-6, 1e-2
"""Relative gaps up to which an answer counts as near the optimum, and from which as far."""


class Tone(Enum):
    """The text and background colors of a verdict."""

    GOOD = ("#14532d", "#bbf7d0")
    CAUTION = ("#451a03", "#fde68a")
    BAD = ("#450a0a", "#fecaca")
    PLAIN = ("#1c1917", "#e7e5e4")


def card(
    name: str,
    verdict: str,
    tone: Tone,
    sentence: str,
    formulas: Sequence[Formula],
    *parts: str,
) -> str:
    """Show a result in a notebook: verdict, sentence, formulas, then `parts`."""
    text, ground = tone.value
    badge = (
        f'<span style="color:{text};background:{ground};border-radius:1em;padding:.1em .7em;'
        f'margin-left:.6em;white-space:nowrap">{escape(verdict)}</span>'
    )
    said = f'<div style="margin:.4em 0">{escape(sentence)}</div>' if sentence else ""
    return (
        '<div style="max-width:62em;border:1px solid rgba(128,128,128,.5);border-radius:.5em;'
        'padding:.7em 1em;line-height:1.45">'
        f"<div><b>{escape(name)}</b>{badge}</div>"
        f"{said}{''.join(map(_drawn, formulas))}{''.join(parts)}</div>"
    )


def note(text: str) -> str:
    """Show a sentence of the package in small print, with its symbols as formulas have them."""
    return f'<div style="{_SMALL}">{prose(text)}</div>'


def beside(*parts: str) -> str:
    """Show blocks of HTML next to each other, or below each other where there is no room."""
    blocks = "".join(f"<div>{part}</div>" for part in parts)
    style = "display:flex;flex-wrap:wrap;gap:1em;align-items:flex-start"
    return f'<div style="{style}">{blocks}</div>'


def facts(values: Mapping[str, Any]) -> str:
    """Show names and values in two columns, without empty values."""
    rows = [
        f"<tr>{_cell('th', name)}{_cell('td', show(value))}</tr>"
        for name, value in values.items()
        if value != ""
    ]
    return f'<table style="{_TABLE}"><tbody>{"".join(rows)}</tbody></table>'


def grid(table: ResultTable) -> str:
    """Show a table of results, of a long one the first and the last rows."""
    half = MOST_ROWS // 2
    left_out = len(table.rows) - 2 * half
    rows = [_row(row, table.columns) for row in table.rows]
    if left_out > 0:
        words = escape(f"… {left_out} more …")
        gap = f'<tr><td colspan="{len(table.columns)}" style="text-align:center">{words}</td></tr>'
        rows = [*rows[:half], gap, *rows[-half:]]
    head = "".join(_cell("th", name) for name in table.columns)
    return (
        f'<div style="overflow-x:auto"><table style="{_TABLE}"><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def gap_in_words(lower: float, upper: float) -> str:
    """State in a sentence that the optimum lies in [lower, upper]."""
    return (
        f"No metric has f below {lower:.12g}; this one, at {upper:.12g}, is at most "
        f"{upper - lower:.1e} above the optimum: proved from the data, not taken from a solver."
    )


def tone_of_gap(relative_gap: float) -> Tone:
    """The colors of a relative gap: good up to 1e-6, bad from 1e-2 on."""
    if relative_gap <= NEAR:
        return Tone.GOOD
    return Tone.CAUTION if relative_gap < FAR else Tone.BAD


_TABLE = "border-collapse:collapse;margin:.5em 0 0;font-variant-numeric:tabular-nums"
_CELL = "text-align:left;padding:.1em 1em .1em 0;vertical-align:top"
_SMALL = "font-size:.85em;opacity:.8;margin:.4em 0 0"
_MATH = "display:grid;row-gap:.6em;overflow-x:auto;padding:.4em 0;font-size:1.15em"


def _cell(tag: str, text: str) -> str:
    return f'<{tag} style="{_CELL}">{escape(text)}</{tag}>'


def _row(row: Mapping[str, Any], columns: Sequence[str]) -> str:
    return f"<tr>{''.join(_cell('td', show(row.get(name, ''))) for name in columns)}</tr>"


def _drawn(formula: Formula) -> str:
    return (
        f'<div style="margin:.6em 0"><i>{escape(formula.title)}</i>'
        f'<div style="{_MATH}">{formula.mathml}</div>'
        f"{note(formula.where)}</div>"
    )
