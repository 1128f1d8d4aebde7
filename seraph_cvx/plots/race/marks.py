"""What the pictures of a race share: a colour and a marker for each solver, and the legend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D

from ...comparison.race_table import label_of
from ..style import GREY, MARKERS, PALETTE, add_legend

Rows = Sequence[Mapping[str, Any]]
FLOOR = 1e-12
"""Smaller gaps are drawn at this value: they are rounding."""


def solver_looks(rows: Rows) -> dict[str, dict[str, Any]]:
    """Choose a colour and a marker for each solver."""
    labels = list(dict.fromkeys(label_of(row) for row in rows))
    return {
        label: {
            "color": PALETTE[k % len(PALETTE)],
            "marker": MARKERS[(k + k // len(PALETTE)) % len(MARKERS)],
            "markersize": 7,
            "markeredgewidth": 1.4,
        }
        for k, label in enumerate(labels)
    }


def draw_answers(
    ax: Axes, rows: Rows, x: Sequence[float], y: Sequence[float], look: Mapping[str, Any]
) -> None:
    """Draw answers, filled if the solver claims the tolerance, hollow if it does not."""
    for claims, face in ((True, look["color"]), (False, "white")):
        chosen = [k for k, row in enumerate(rows) if row["claims"] is claims]
        positions = [x[k] for k in chosen], [y[k] for k in chosen]
        ax.plot(*positions, linestyle="", markerfacecolor=face, **look)


def floored(gap: float) -> float:
    """The gap, or `FLOOR` if it is smaller."""
    return max(gap, FLOOR)


def add_solver_legend(
    target: Figure | SubFigure | Axes,
    looks: Mapping[str, dict[str, Any]],
    hollow: bool = False,
    names: Mapping[str, str] | None = None,
) -> None:
    """Add a legend of the solvers and, if `hollow`, of filled and hollow markers."""
    handles = [
        Line2D([], [], label=(names or {}).get(label, label), **look)
        for label, look in looks.items()
    ]
    if hollow:
        plain: dict[str, Any] = {"color": GREY, "linestyle": "", "marker": "o"}
        handles.append(Line2D([], [], label="claims the tolerance", **plain))
        handles.append(Line2D([], [], label="does not", markerfacecolor="white", **plain))
    add_legend(target, handles, most=len(handles))
