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

from ...race.race_table import Race, answers_of, label_of
from ..display import Display
from ..style import SLIDE_WIDTH, TEXT_SIZE, legible
from .marks import (
    FLOOR,
    Rows,
    add_solver_legend,
    draw_answers,
    draw_time_limit,
    floored,
    solver_looks,
)
from .words import instance_in_words

PANELS = 16
"""The most panels that are drawn without being asked for."""

TITLE_LINE, TITLE_LINE_OF_FOUR = 34, 31
"""The characters of a title in one line, with at most three columns and with four."""


@dataclass(eq=False)
class WorkPrecisionDisplay(Display):
    """Show how near the optimum each solver came, against the seconds it took.

    (f(A) - min f) / max(1, |f(A)|) of (11) against the seconds taken; a panel an instance, a marker
    a run. The line of a solver is the least true gap that it reached within a time: it never
    rises, whatever the order in which its runs ended.

    Down and to the left is better. A filled marker is an answer whose solver claims the tolerance,
    a hollow one an answer of which it does not.

    Parameters
    ----------
    rows : sequence
        The rows of a race.
    instances : sequence of str
        A panel each.
    time_limit : float, optional
        The seconds that a run could take, marked in each panel.
    """

    rows: Rows
    instances: Sequence[str]
    time_limit: float | None = None

    @classmethod
    def from_result(
        cls,
        race: Race | Rows,
        instances: Sequence[str] | None = None,
        time_limit: float | None = None,
    ) -> Self:
        """Show the rows of a race.

        Parameters
        ----------
        race : Race, or its rows
            Of :func:`seraph_cvx.compare_solvers`.
        instances : sequence of str, optional
            A panel each; by default at most sixteen, spread over those of the rows.
        time_limit : float, optional
            By default the race's own, where a Race is given.

        Examples
        --------
        >>> from seraph_cvx.plots import WorkPrecisionDisplay
        >>> row = dict(instance="iris", solver="SCS", formulation="dual", tol=1e-3, claims=True)
        >>> row |= dict(true_gap=1e-4, total_seconds=0.5)
        >>> WorkPrecisionDisplay.from_result([row]).plot().ax_.get_title()
        'iris'
        """
        rows = race.rows if isinstance(race, Race) else race
        if time_limit is None and isinstance(race, Race):
            time_limit = race.time_limit
        every = list(dict.fromkeys(row["instance"] for row in rows))
        if not every:
            raise ValueError("The race has no rows: there is nothing to draw.")
        if instances is None:
            spread = np.linspace(0, len(every) - 1, min(PANELS, len(every))).round().astype(int)
            instances = [every[k] for k in spread]
        unknown = [name for name in instances if name not in every]
        if unknown:
            raise ValueError(f"No row is of the instance {unknown[0]!r}: choose from {every}.")
        return cls(rows, list(instances), time_limit)

    def _draw(self, axes: Sequence[Axes]) -> None:
        looks = solver_looks(self.rows)
        columns = self._shape()[1]
        width = TITLE_LINE if columns < 4 else TITLE_LINE_OF_FOUR
        for k, (ax, name) in enumerate(zip(axes, self.instances, strict=True)):
            self._draw_instance(ax, name, looks)
            ax.set_title(fill(legible(instance_in_words(name), 3 * TITLE_LINE), width))
            is_left, is_last = k % columns == 0, k + columns >= len(self.instances)
            if is_left:
                ax.set_ylabel("true relative gap")
            if is_last:
                ax.set_xlabel("seconds")
            ax.tick_params(labelleft=is_left, labelbottom=is_last)
        target = self.figure_ if self._has_own_figure else self.ax_
        add_solver_legend(target, looks, hollow=True, time_limit=self.time_limit)

    def _draw_instance(self, ax: Axes, name: str, looks: dict[str, dict[str, Any]]) -> None:
        chosen = [row for row in answers_of(self.rows) if row["instance"] == name]
        end = self._seconds()[1]
        draw_time_limit(ax, self.time_limit)
        for label, look in looks.items():
            own = [row for row in chosen if label_of(row) == label]
            x, y = [r["total_seconds"] for r in own], [floored(r["true_gap"]) for r in own]
            draw_answers(ax, own, x, y, look)
            line = {"color": look["color"], "linewidth": 1.1, "alpha": 0.8}
            ax.plot(*best_so_far(x, y, end), drawstyle="steps-post", **line)
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xlim(*self._seconds())
        ax.set_ylim(FLOOR / 4, 4.0)
        ax.xaxis.set_major_locator(LogLocator(numticks=6))
        ax.yaxis.set_major_locator(LogLocator(numticks=5))
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.yaxis.set_minor_formatter(NullFormatter())
        ax.grid(alpha=0.3)

    def _seconds(self) -> tuple[float, float]:
        """The ends of the axis of seconds, the same in each panel."""
        seconds = [row["total_seconds"] for row in answers_of(self.rows)]
        seconds += [self.time_limit] if self.time_limit is not None else []
        return min(seconds, default=0.1) / 1.6, max(seconds, default=1.0) * 1.6

    def _title(self) -> str:
        return "The least true gap reached within a time"

    def _title_size(self) -> float:
        return TEXT_SIZE

    def _shape(self) -> tuple[int, int]:
        n_panels = len(self.instances)
        columns = 2 if n_panels == 4 else min(3, n_panels) if n_panels <= 6 else 4
        return math.ceil(n_panels / columns), columns

    def _n_panels(self) -> int:
        return len(self.instances)

    def _size(self) -> tuple[float, float]:
        rows, columns = self._shape()
        width = max(8.4, min(SLIDE_WIDTH, 3.35 * columns + 0.6))
        in_legend = len(solver_looks(self.rows)) + 3
        legend = 0.24 * math.ceil(in_legend / (4 if width == SLIDE_WIDTH else 3))
        return width, (2.3 if columns > 3 else 3.3) * rows + 0.7 + legend


def best_so_far(
    seconds: Sequence[float], gaps: Sequence[float], end: float
) -> tuple[list[float], list[float]]:
    """The least gap reached within a time: the corners of a step function up to `end`.

    Examples
    --------
    >>> best_so_far([0.1, 0.2, 0.5], [1e-3, 1e-2, 1e-6], 5.0)
    ([0.1, 0.5, 5.0], [0.001, 1e-06, 1e-06])
    """
    x: list[float] = []
    y: list[float] = []
    for second, gap in sorted(zip(seconds, gaps, strict=True)):
        if not y or gap < y[-1]:
            x.append(second)
            y.append(gap)
    return ([*x, end], [*y, y[-1]]) if y else ([], [])


def plot_work_precision(
    rows: Rows,
    path: str | os.PathLike[str] | None = None,
    instances: Sequence[str] | None = None,
    time_limit: float | None = None,
) -> Figure:
    """Draw the true gap against the seconds taken, a panel an instance, a line a solver.

    The figure of a :class:`WorkPrecisionDisplay`.

    Parameters
    ----------
    rows : sequence
        Of a :class:`~seraph_cvx.race.race_table.Race`.
    path : path, optional
        Also save the picture to this file; its ending chooses the format.
    instances : sequence of str, optional
        A panel each; by default at most sixteen, spread over those of the rows.
    time_limit : float, optional
        The seconds that a run could take.

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
    return WorkPrecisionDisplay.from_result(rows, instances, time_limit).draw(path)
