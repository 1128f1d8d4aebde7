"""What the pictures of a race share: how each solver looks, the time limit, the legend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D

from ...race.race_table import label_of
from ..style import GRAY, add_legend, legible

Rows = Sequence[Mapping[str, Any]]
FLOOR = 1e-12
"""Smaller gaps are drawn at this value: they are rounding."""

FAMILIES = {
    "ours": "#0072B2",
    "conic, primal": "#D55E00",
    "conic, dual": "#E69F00",
    "nonlinear": "#009E73",
    "on a factor": "#CC79A7",
    "others": "#000000",
}
"""The families of solvers and their colors, which color-blind readers can tell apart."""

OURS = ("fista", "projected-gradient")
NONLINEAR = ("UNO", "IPOPT", "KNITRO")

SHAPES = ("o", "s", "^", "D", "v", "p", "<", "h", ">", "d")
"""Markers with enough inside of them to tell a filled one from a hollow one."""

LIMIT_LOOK: dict[str, Any] = {"color": "#333333", "linestyle": (0, (4, 2)), "linewidth": 1.2}


def family_of(row: Mapping[str, Any]) -> str:
    """The family of a row's solver, one of `FAMILIES`.

    Examples
    --------
    >>> family_of({"solver": "SCS(alpha=1.8)", "formulation": "dual"})
    'conic, dual'
    >>> family_of({"solver": "UNO", "formulation": "factor"})
    'nonlinear'
    """
    solver = str(row["solver"]).partition("(")[0]
    if row["formulation"] in ("primal", "dual"):
        return f"conic, {row['formulation']}"
    if row["formulation"]:
        return "nonlinear" if solver in NONLINEAR else "on a factor"
    return "ours" if solver in OURS else "others"


def solver_looks(rows: Rows) -> dict[str, dict[str, Any]]:
    """Choose for each solver the color of its family and a marker that is unique in the family."""
    families = {label_of(row): family_of(row) for row in rows}
    order = list(FAMILIES)
    labels = sorted(families, key=lambda label: order.index(families[label]))
    return {
        label: {
            "color": FAMILIES[families[label]],
            "marker": SHAPES[k % len(SHAPES)],
            "markersize": 6,
            "markeredgewidth": 1.0,
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
        label = label_of(rows[0]) if rows else ""
        ax.plot(*positions, linestyle="", markerfacecolor=face, label=label, **look)


def draw_time_limit(ax: Axes, time_limit: float | None) -> None:
    """Mark the seconds that a run may take, where they are known."""
    if time_limit is not None:
        ax.axvline(time_limit, zorder=1, **LIMIT_LOOK)


def number(x: float) -> str:
    """A tolerance or a target as people write it.

    Examples
    --------
    >>> number(1e-06), number(0.001), number(2.5e-4)
    ('1e-6', '1e-3', '2.5e-4')
    """
    return np.format_float_scientific(x, trim="-", exp_digits=1)


def floored(gap: float) -> float:
    """The gap, or `FLOOR` if it is smaller."""
    return max(gap, FLOOR)


def claim_handles() -> list[Line2D]:
    """The entries of a legend that say what filled and hollow markers are."""
    plain: dict[str, Any] = {"color": GRAY, "linestyle": "", "marker": "o"}
    return [
        Line2D([], [], label="claims the tolerance", **plain),
        Line2D([], [], label="does not claim it", markerfacecolor="white", **plain),
    ]


def add_solver_legend(
    target: Figure | SubFigure | Axes,
    looks: Mapping[str, dict[str, Any]],
    hollow: bool = False,
    names: Mapping[str, str] | None = None,
    time_limit: float | None = None,
) -> None:
    """Add a legend of the solvers, of hollow markers if `hollow`, and of the time limit."""
    handles = [
        Line2D([], [], label=legible((names or {}).get(label, label), 40), **look)
        for label, look in looks.items()
    ]
    handles += claim_handles() if hollow else []
    if time_limit is not None:
        handles.append(Line2D([], [], label=f"time limit, {time_limit:g} s", **LIMIT_LOOK))
    add_legend(target, handles, most=len(handles))
