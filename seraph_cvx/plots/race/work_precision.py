"""Work and precision of a race: the true gap against the seconds taken."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from ...comparison.race_table import Race, label_of
from ..display import Display
from ..style import legible
from .marks import FLOOR, Rows, add_solver_legend, draw_answers, floored, solver_looks

PANELS = 6
TITLE_LINE = 28
"""The characters of a panel's title in one line."""


@dataclass(eq=False)
class WorkPrecisionDisplay(Display):
    """Show how near the optimum each solver came, against the seconds it took.

    (f(A) - min f) / max(1, |f(A)|) of (11) against the seconds taken; a marker a tolerance.

    Down and to the left is better. A filled marker is an answer whose solver claims the tolerance,
    a hollow one an answer of which it does not.

    Parameters
    ----------
    rows : sequence
        Of a race.
    instances : sequence of str
        A panel each.
    """

    rows: Rows
    instances: Sequence[str]

    @classmethod
    def from_result(cls, race: Race | Rows, instances: Sequence[str] | None = None) -> Self:
        """Show the rows of a race.

        Parameters
        ----------
        race : Race, or its rows
            Of :func:`seraph_cvx.compare_solvers`.
        instances : sequence of str, optional
            A panel each; by default at most six, spread over those of the rows.

        Examples
        --------
        >>> from seraph_cvx.plots import WorkPrecisionDisplay
        >>> row = dict(instance="iris", solver="SCS", formulation="dual", tol=1e-3, claims=True)
        >>> row |= dict(true_gap=1e-4, total_seconds=0.5)
        >>> WorkPrecisionDisplay.from_result([row]).plot().ax_.get_title()
        'iris'
        """
        rows = race.rows if isinstance(race, Race) else race
        every = list(dict.fromkeys(row["instance"] for row in rows))
        if not every:
            raise ValueError("The race has no rows: there is nothing to draw.")
        if instances is None:
            spread = np.linspace(0, len(every) - 1, min(PANELS, len(every))).round().astype(int)
            instances = [every[k] for k in spread]
        unknown = [name for name in instances if name not in every]
        if unknown:
            raise ValueError(f"No row is of the instance {unknown[0]!r}: choose from {every}.")
        return cls(rows, list(instances))

    def _draw(self, axes: Sequence[Axes]) -> None:
        looks = solver_looks(self.rows)
        columns = self._shape()[1]
        for k, (ax, name) in enumerate(zip(axes, self.instances, strict=True)):
            self._draw_instance(ax, name, looks)
            ax.set_title(fill(legible(name, 2 * TITLE_LINE), TITLE_LINE))
            if k % columns == 0:
                ax.set_ylabel("true relative gap")
            if k + columns >= len(self.instances):
                ax.set_xlabel("seconds, with compilation")
        add_solver_legend(self.figure_ if self._has_own_figure else self.ax_, looks, hollow=True)

    def _draw_instance(self, ax: Axes, name: str, looks: dict[str, dict[str, Any]]) -> None:
        chosen = [r for r in self.rows if r["instance"] == name and r["true_gap"] is not None]
        for label, look in looks.items():
            steps = sorted((r for r in chosen if label_of(r) == label), key=lambda r: -r["tol"])
            x, y = [r["total_seconds"] for r in steps], [floored(r["true_gap"]) for r in steps]
            ax.plot(x, y, color=look["color"], linewidth=1.2, alpha=0.8)
            draw_answers(ax, steps, x, y, look)
        seconds = [r["total_seconds"] for r in chosen]
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xlim(min(seconds, default=0.1) / 1.8, max(seconds, default=1.0) * 1.8)
        ax.set_ylim(FLOOR / 4, 4.0)
        ax.xaxis.set_major_locator(LogLocator(numticks=4))
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.yaxis.set_minor_formatter(NullFormatter())
        ax.grid(alpha=0.3)

    def _title(self) -> str:
        return "Work and precision: one marker a tolerance"

    def _shape(self) -> tuple[int, int]:
        n_panels = len(self.instances)
        columns = 2 if n_panels == 4 else min(3, n_panels)
        return math.ceil(n_panels / columns), columns

    def _n_panels(self) -> int:
        return len(self.instances)

    def _size(self) -> tuple[float, float]:
        rows, columns = self._shape()
        return max(7.6, 3.35 * columns + 0.6), 3.1 * rows + 1.5


def plot_work_precision(
    rows: Rows,
    path: str | os.PathLike[str] | None = None,
    instances: Sequence[str] | None = None,
) -> Figure:
    """Draw the true gap against the seconds taken, a line a solver, a marker a tolerance.

    The figure of a :class:`WorkPrecisionDisplay`.

    Parameters
    ----------
    rows : sequence
        Of a :class:`~seraph_cvx.comparison.race_table.Race`.
    path : path, optional
        Also save the picture to this file; its ending chooses the format.
    instances : sequence of str, optional
        A panel each; by default at most six, spread over those of the rows.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> row = dict(instance="iris", solver="SCS", formulation="dual", tol=1e-3, claims=True)
    >>> row |= dict(true_gap=1e-4, total_seconds=0.5)
    >>> len(plot_work_precision([row]).axes)
    1
    """
    return WorkPrecisionDisplay.from_result(rows, instances).draw(path)
