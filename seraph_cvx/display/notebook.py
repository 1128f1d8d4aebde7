"""HTML for notebooks, with inline styles, escaped text and nothing to fetch.

Text and lines take the notebook's own color, and a verdict brings its own ground with it, so that
both are readable on light and on dark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from .formulas import Formula
from .page import fill_template
from .result_table import ResultTable

NEAR, FAR = 1e-6, 1e-2
"""Relative gaps up to which an answer counts as near the optimum, and from which as far."""


class Tone(Enum):
    """The text and background colors of a verdict."""

    GOOD = ("#14532d", "#bbf7d0")
    CAUTION = ("#451a03", "#fde68a")
    BAD = ("#450a0a", "#fecaca")


def card(
    name: str,
    verdict: str,
    tone: Tone,
    sentence: str = "",
    formulas: Sequence[Formula] = (),
    notes: Sequence[str] = (),
    facts: Mapping[str, Any] | None = None,
    table: ResultTable | None = None,
    tree: str = "",
) -> str:
    """Show a result: verdict, sentence, formulas, notes in small print, then its numbers.

    Empty facts are left out, and a long table is shown by its first and last rows.
    """
    return fill_template(
        "display/card.html",
        name=name,
        verdict=verdict,
        tone=tone,
        sentence=sentence,
        formulas=formulas,
        notes=notes,
        facts=facts,
        table=table,
        tree=tree,
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
