"""What solvers claim of their answers against what is true of them."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import NullLocator

from ...race.race_table import answers_of, count_claims, label_of, over
from ..style import GRAY, SLIDE_WIDTH, TEXT_SIZE, add_legend, enlarge_text, legible, new_figure
from .marks import Rows, claim_handles, draw_answers, number, solver_looks

LEAST_RATIO = 1e-6
"""Smaller ratios of gap to tolerance are drawn at this value."""

HALF_BAND = 0.44
"""How far the markers of a tolerance reach to both sides; the next tolerance is at 1."""

PANELS = {
    "true_gap": ("true gap / tolerance", "false", "False claims"),
    "proved_gap": ("proved gap / tolerance", "not proved", "Claims not proved"),
}
"""By gap: the label of its axis, what a claim above the line is, the title of the legend."""


def plot_said_against_true(rows: Rows, path: str | os.PathLike[str] | None = None) -> Figure:
    """Draw how many times the gap of each answer is the tolerance its solver was asked for.

    Above: the true gap; below: the gap of the answer's own certificate. One band per
    tolerance, with one column per solver. The threshold is 1: a filled marker
    above it is a claim that is false (above) or that the answer does not prove (below). How many
    there are is written next to and below them, counted as in
    :meth:`seraph_cvx.race.race_table.Race.summary`.

    Examples
    --------
    >>> row = dict(instance="iris", solver="SCS", formulation="dual", tol=1e-3, claims=True)
    >>> row |= dict(true_gap=1e-4, proved_gap=1e-2, total_seconds=0.5)
    >>> true, proved = plot_said_against_true([row]).axes
    >>> [text.get_text() for text in proved.get_legend().get_texts()]
    ['SCS/dual: 1 of 1']
    """
    looks = solver_looks(rows)
    height = max(3.2, 0.8 + 0.215 * len(looks))
    figure = new_figure(SLIDE_WIDTH, 2.0 * height + 1.6, "What solvers claim, and what is true")
    for ax, gap in zip(figure.subplots(2, 1), PANELS, strict=True):
        _draw_panel(ax, rows, gap, looks)
        enlarge_text(ax)
    worse = Patch(color=GRAY, alpha=0.2, label="worse than asked for", linewidth=0)
    add_legend(figure, [*claim_handles(), worse])
    if path is not None:
        figure.savefig(path)
    return figure


def _draw_panel(ax: Axes, rows: Rows, gap: str, looks: dict[str, dict[str, Any]]) -> None:
    """Draw the answers of all solvers, in bands, and write the counts."""
    answers = answers_of(rows)
    tols = sorted({row["tol"] for row in answers}, reverse=True) or [1e-6]
    top = 4.0 * max([25.0, *(over(row, gap) for row in answers)])
    ends = (-0.5, len(tols) - 0.5)
    ax.fill_between(ends, 1.0, top, color=GRAY, alpha=0.2, linewidth=0)
    ax.axhline(1.0, color="black", linewidth=1.2, label="threshold")
    for band in range(1, len(tols)):
        ax.axvline(band - 0.5, color="black", linewidth=0.8)
    for k, (label, look) in enumerate(looks.items()):
        own = [row for row in answers if label_of(row) == label]
        bands = np.array([tols.index(row["tol"]) for row in own], dtype=np.float64)
        x = list(bands + _places(own, k, len(looks)))
        y = [max(over(row, gap), LEAST_RATIO) for row in own]
        draw_answers(ax, own, x, y, look | {"markersize": 5.5})
    y_label, word, title = PANELS[gap]
    ax.set_yscale("log")
    ax.set_ylim(LEAST_RATIO / 4.0, top)
    powers = range(-6, int(np.log10(top)) + 1, 2)
    ax.set_yticks([10.0**k for k in powers], [_tick(k) for k in powers])
    ax.yaxis.set_minor_locator(NullLocator())
    ax.set_ylabel(y_label)
    ax.set_xlim(*ends)
    ax.set_xticks(range(len(tols)), [_band_words(rows, tol, gap, word) for tol in tols])
    ax.tick_params(axis="x", length=0)
    ax.grid(axis="y", alpha=0.3)
    _add_counts(ax, rows, gap, looks, title)


def _places(own: Rows, solver: int, n_solvers: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Where in its band each answer of a solver is drawn: in the solver's column, spread a bit."""
    names = list(dict.fromkeys(row["instance"] for row in own))
    spread = np.linspace(0.15, 0.85, len(names)) if len(names) > 1 else np.full(1, 0.5)
    within = np.array([spread[names.index(row["instance"])] for row in own])
    return HALF_BAND * (2.0 * (solver + within) / n_solvers - 1.0)


def _tick(power: int) -> str:
    return f"≤ 1e{power}" if 10.0**power <= LEAST_RATIO else f"1e{power}" if power else "1"


def _band_words(rows: Rows, tol: float, gap: str, word: str) -> str:
    claims, bad = count_claims([row for row in rows if row["tol"] == tol], gap)
    return f"tolerance {number(tol)}\n{claims} claims\n{bad} {word}"


def _add_counts(
    ax: Axes, rows: Rows, gap: str, looks: dict[str, dict[str, Any]], title: str
) -> None:
    """Write each solver's counts into a legend next to the panel."""
    handles = []
    for label, look in looks.items():
        claims, bad = count_claims([row for row in rows if label_of(row) == label], gap)
        words = f"{legible(label, 30)}: {bad} of {claims}"
        handles.append(Line2D([], [], linestyle="", label=words, **look))
    legend = ax.legend(
        handles=handles,
        title=title,
        loc="center left",
        bbox_to_anchor=(1.0, 0.5),
        frameon=False,
        fontsize=TEXT_SIZE,
        title_fontsize=TEXT_SIZE,
        labelspacing=0.3,
    )
    legend.set_zorder(0)
