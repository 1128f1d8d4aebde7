"""The picture of a race, drawn from its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes

from ..race.race_table import TOLERANCE, Race, answers_of, count_claims, label_of, over
from .display import Display, Layout
from .style import LINE_COLORS, SLIDE_WIDTH, legible

Rows = Sequence[Mapping[str, Any]]

FLOOR = 1e-9
"""Smaller ratios of gap to tolerance are drawn here: what rounding leaves decides nothing."""


def number(x: float) -> str:
    """A tolerance or a target as people write it: 1e-6."""
    return np.format_float_scientific(x, trim="-", exp_digits=1)


@dataclass(eq=False)
class ClaimsDisplay(Display):
    """Show the gap of each answer as a multiple of the tolerance its solver was asked for.

    The left panel shows the true gap, the right panel the gap of the answer's own certificate, with
    one row per solver and formulation. A filled marker beyond 1 is a claim that is false (left) or
    that the answer does not prove (right); the number of these is written beside the solver's name,
    counted as in :meth:`seraph_cvx.race.race_table.Race.summary`. A hollow marker claims nothing.

    Parameters
    ----------
    rows : sequence
        The rows of a race.

    Examples
    --------
    >>> from seraph_cvx.plots import ClaimsDisplay
    >>> row = dict(instance="iris", solver="SCS", formulation="dual", tol=1e-3, claims=True)
    >>> row |= dict(true_gap=1e-4, proved_gap=1e-2, total_seconds=0.5)
    >>> true, proved = ClaimsDisplay.from_result([row]).draw().axes
    >>> [label.get_text() for label in proved.get_yticklabels()]
    ['SCS/dual: 1 of 1']
    """

    rows: Rows

    @classmethod
    def from_result(cls, race: Race | Rows) -> Self:
        """Show the answers of a race.

        Parameters
        ----------
        race : Race, or its rows
            The result of :func:`seraph_cvx.compare_solvers`.
        """
        rows = race.rows if isinstance(race, Race) else race
        if not rows:
            raise ValueError("The race has no rows: there is nothing to draw.")
        return cls(rows)

    def _draw(self, *axes: Axes) -> None:
        answers = answers_of(self.rows)
        entrants = list(dict.fromkeys(map(label_of, self.rows)))
        tols = sorted({row["tol"] or TOLERANCE for row in answers}, reverse=True)
        panels = {"true_gap": "False claims", "proved_gap": "Claims not proved"}
        for ax, (gap, title) in zip(axes, panels.items(), strict=True):
            for k, tol in enumerate(tols):
                own = [row for row in answers if (row["tol"] or TOLERANCE) == tol]
                x = np.array([max(over(row, gap), FLOOR) for row in own])
                y = np.array([entrants.index(label_of(row)) for row in own])
                y = y + 0.8 * ((k + 0.5) / len(tols) - 0.5)  # one below the other
                claims = np.array([bool(row["claims"]) for row in own])
                look: dict[str, Any] = {"color": LINE_COLORS[k % len(LINE_COLORS)], "marker": "o"}
                look |= {"linestyle": "", "markersize": 4}
                ax.plot(x[claims], y[claims], label=f"tolerance {number(tol)}", **look)
                ax.plot(x[~claims], y[~claims], markerfacecolor="white", **look)
            ax.axvline(1.0, color="black", linewidth=1.2)
            names = []
            for entrant in entrants:
                of_one = [row for row in self.rows if label_of(row) == entrant]
                n_claims, n_bad = count_claims(of_one, gap)
                names.append(f"{legible(entrant, 30)}: {n_bad} of {n_claims}")
            ax.set_yticks(range(len(entrants)), names)
            ax.set(xscale="log", title=title, ylim=(len(entrants) - 0.5, -0.5))
            ax.set_xlabel(f"{gap.replace('_', ' ')} / tolerance")
            ax.grid(axis="x", alpha=0.3)

    def _layout(self) -> Layout:
        height = max(4.0, 1.8 + 0.3 * len(set(map(label_of, self.rows))))
        title = "What solvers claim, and what is true (hollow: no claim)"
        return Layout(title, 2, SLIDE_WIDTH, height)
