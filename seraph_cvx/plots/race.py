"""The pictures of a race, drawn from its rows."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, NullLocator
from numpy.typing import NDArray

from ..race.race_table import Race, answers_of, count_claims, label_of, over
from ..race.statistics import KINDS, OURS, solver_of
from .display import Display, Layout
from .style import GRAY, LINE_COLORS, SLIDE_WIDTH, legible

Rows = Sequence[Mapping[str, Any]]
Runs = dict[tuple[str, str], list[Mapping[str, Any]]]
"""The rows of each solver on each instance."""

FLOOR = 1e-9
"""Smaller gaps are drawn at this value, and so are smaller ratios of gap to tolerance."""
TARGET_GAP = 1e-6
"""To this true gap instances count as solved: the tolerance that the race's tables compare."""


def draw_race(race: Race) -> dict[str, Figure]:
    """Draw all pictures of a race, by name.

    Examples
    --------
    >>> from seraph_cvx.plots import draw_race
    >>> from seraph_cvx.race.race_table import Race
    >>> row = dict(instance="iris", solver="SCS", formulation="dual", tol=1e-3, claims=True)
    >>> row |= dict(true_gap=1e-4, proved_gap=1e-2, total_seconds=0.5)
    >>> list(draw_race(Race("A race", [row], races=[{"time_limit": 5.0}])))
    ['work-precision', 'work-precision-all', 'performance-profile', 'said-against-true']
    """
    return {
        "work-precision": WorkPrecisionDisplay.from_result(race).draw(),
        "work-precision-all": WorkPrecisionDisplay.from_result(race, instances_of(race)).draw(),
        "performance-profile": ProfileDisplay.from_result(race).draw(),
        "said-against-true": ClaimsDisplay.from_result(race).draw(),
    }


# What the pictures share


def rows_of(race: Race | Rows) -> Rows:
    """The rows of a race, at least one."""
    rows = race.rows if isinstance(race, Race) else race
    if not rows:
        raise ValueError("The race has no rows: there is nothing to draw.")
    return rows


def instances_of(race: Race | Rows) -> list[str]:
    """The names of the instances, in the order of the rows."""
    return list(dict.fromkeys(row["instance"] for row in rows_of(race)))


def solver_looks(rows: Rows) -> dict[str, dict[str, Any]]:
    """A color and a dash for each solver; ours is bold."""
    looks = {}
    for k, solver in enumerate(dict.fromkeys(map(solver_of, rows))):
        dash = ("-", "--", ":", "-.")[k // len(LINE_COLORS) % 4]
        width = 3.2 if solver == OURS else 1.7
        color = LINE_COLORS[k % len(LINE_COLORS)]
        looks[solver] = {"color": color, "linestyle": dash, "linewidth": width}
    return looks


def runs_of(rows: Rows) -> Runs:
    """The rows of each solver on each instance."""
    runs: Runs = defaultdict(list)
    for row in rows:
        runs[solver_of(row), row["instance"]].append(row)
    return runs


def seconds_to(gaps: Sequence[float], runs: Rows, kind: str = "total") -> NDArray[np.float64]:
    """The seconds to each true gap: medians over repeats, the least over settings and tolerances.

    A failure takes infinitely long. The `kind` of seconds is "solve" or "total".
    """
    repeats: dict[Any, list[Any]] = defaultdict(list)
    for row in runs:
        reached = math.inf if row["true_gap"] is None else row["true_gap"]
        seconds = row.get(KINDS[kind], row["total_seconds"])
        times = [seconds if reached <= gap else math.inf for gap in gaps]
        repeats[label_of(row), row["tol"]].append(times)
    never = np.full(len(gaps), np.inf)
    medians = [np.median(times, axis=0) for times in repeats.values()]
    return np.asarray(np.min([never, *medians], axis=0))


def typical_instances(rows: Rows, n: int = 4) -> list[str]:
    """The middle instances of `n` parts, by the median over solvers of the seconds to 1e-6."""
    instances, runs = instances_of(rows), runs_of(rows)
    solvers = dict.fromkeys(map(solver_of, rows))
    medians = [
        np.median([seconds_to([TARGET_GAP], runs[solver, name])[0] for solver in solvers])
        for name in instances
    ]
    order = np.argsort(medians, kind="stable")
    places = dict.fromkeys((2 * k + 1) * len(instances) // (2 * n) for k in range(n))
    return [instances[order[place]] for place in places]


def number(x: float) -> str:
    """A tolerance or a target as people write it: 1e-6."""
    return np.format_float_scientific(x, trim="-", exp_digits=1)


@dataclass(eq=False)
class WorkPrecisionDisplay(Display):
    """Show the seconds that each solver took to come how near to the optimum.

    One panel per instance, one line per solver: the total seconds to an answer whose true gap,
    (f(A) - min f) / max(1, |f(A)|) of (11), is at most that on the axis. It is the fastest of
    the solver's formulations, settings and tolerances; of repeats the median counts.

    Down and to the right is better. A line ends at the least gap that its solver reached.

    Parameters
    ----------
    rows : sequence
        The rows of a race.
    instances : sequence of str
        One panel each.
    time_limit : float, optional
        The seconds that a run could take, marked in each panel.

    Examples
    --------
    >>> from seraph_cvx.plots import WorkPrecisionDisplay
    >>> row = dict(instance="iris", solver="SCS", formulation="dual", tol=1e-3, claims=True)
    >>> row |= dict(true_gap=1e-4, total_seconds=0.5)
    >>> WorkPrecisionDisplay.from_result([row]).plot().ax_.get_title()
    'iris'
    """

    rows: Rows
    instances: Sequence[str]
    time_limit: float | None = None

    @classmethod
    def from_result(cls, race: Race | Rows, instances: Sequence[str] | None = None) -> Self:
        """Show the rows of a race.

        Parameters
        ----------
        race : Race, or its rows
            Of :func:`seraph_cvx.compare_solvers`.
        instances : sequence of str, optional
            One panel each. By default four: the instances are ordered by the median over solvers of
            the seconds to a true gap of 1e-6, and the middle one of each quarter is taken.
        """
        rows, every = rows_of(race), instances_of(race)
        instances = typical_instances(rows) if instances is None else instances
        unknown = [name for name in instances if name not in every]
        if unknown:
            raise ValueError(f"No row is of the instance {unknown[0]!r}: choose from {every}.")
        return cls(rows, list(instances), race.time_limit if isinstance(race, Race) else None)

    def _draw(self, *axes: Axes) -> None:
        runs, columns = runs_of(self.rows), self._layout().columns
        for k, (ax, instance) in enumerate(zip(axes, self.instances, strict=True)):
            for solver, look in solver_looks(self.rows).items():
                own = runs[solver, instance]
                reached = {max(row["true_gap"], FLOOR) for row in answers_of(own)}
                gaps = sorted(reached | {1.0}, reverse=True)
                x, y = np.array(gaps), seconds_to(gaps, own)
                shown = y < np.append(y[1:], np.inf)  # no smaller gap was reached in that time
                shown[0] |= np.isfinite(y[0])
                name = legible(solver, 24)
                look |= {"drawstyle": "steps-pre", "marker": ".", "markevery": [-1]}
                ax.plot(x[shown], y[shown], label=name, **look)
            if self.time_limit is not None:
                name = f"time limit, {self.time_limit:g} s"
                ax.axhline(self.time_limit, color=GRAY, linestyle="--", label=name)
            ax.axvline(TARGET_GAP, color=GRAY, linestyle=":", label=f"gap {number(TARGET_GAP)}")
            ax.set(xscale="log", yscale="log", title=fill(legible(instance, 68), 34))
            ax.invert_xaxis()
            for axis in (ax.xaxis, ax.yaxis):
                axis.set_minor_locator(NullLocator())
            ax.set_xlabel("true relative gap" if k + columns >= len(axes) else "")
            ax.set_ylabel("total seconds" if k % columns == 0 else "")
            ax.grid(alpha=0.3)

    def _layout(self) -> Layout:
        n_panels = len(self.instances)
        columns = min(n_panels, 2 if n_panels <= 4 else 4)
        rows = math.ceil(n_panels / columns)
        width = SLIDE_WIDTH * (1.6 if columns == 4 else 1.0)
        title = "Seconds to a true gap, best of each solver's settings"
        n_missing = rows * columns - n_panels
        return Layout(title, rows, columns, width, 3.4 * rows + 1.4, n_missing, legend_entries=40)


@dataclass(eq=False)
class ProfileDisplay(Display):
    """Show the fraction of the instances that each solver solves within a multiple of the fastest.

    Solved is a true gap of at most 1e-6, at whatever tolerance. As Dolan and Moré do, left by solve
    time, right by total time. A failure never counts as solved: where a line ends below 1, the rest
    was not solved within the limits.

    Parameters
    ----------
    rows : sequence
        The rows of a race.
    ratios : dict of str to dict of str to arrays
        For "solve" and "total" seconds, by solver: the multiple of the fastest time on each
        instance, infinite where it is not solved.

    Examples
    --------
    >>> from seraph_cvx.plots import ProfileDisplay
    >>> row = dict(instance="iris", solver="SCS", formulation="dual", tol=1e-3, claims=True)
    >>> row |= dict(true_gap=1e-7, total_seconds=0.5)
    >>> ProfileDisplay.from_result([row]).ratios["total"]["SCS"]
    array([1.])
    """

    rows: Rows
    ratios: dict[str, dict[str, Any]]

    @classmethod
    def from_result(cls, race: Race | Rows) -> Self:
        """Compare the times of a race.

        Parameters
        ----------
        race : Race, or its rows
            Of :func:`seraph_cvx.compare_solvers`.
        """
        rows = rows_of(race)
        runs, solvers = runs_of(rows), dict.fromkeys(map(solver_of, rows))
        ratios = {}
        for kind in KINDS:
            reached = [
                [seconds_to([TARGET_GAP], runs[solver, name], kind) for name in instances_of(rows)]
                for solver in solvers
            ]
            times = np.array(reached)[:, :, 0]
            fastest = times.min(axis=0)
            fastest[~np.isfinite(fastest)] = 1.0  # nobody solved it
            ratios[kind] = dict(zip(solvers, times / fastest, strict=True))
        return cls(rows, ratios)

    def _draw(self, *axes: Axes) -> None:
        looks = solver_looks(self.rows)
        for ax, (kind, ratios) in zip(axes, self.ratios.items(), strict=True):
            reached = {name: np.sort(own[np.isfinite(own)]) for name, own in ratios.items()}
            end = 1.5 * max([10.0, *(own[-1] for own in reached.values() if own.size)])
            for solver, own in reached.items():
                x = np.array([1.0, *own[own > 1.0], end])
                share = np.searchsorted(own, x, side="right") / len(ratios[solver])
                ax.plot(
                    x, share, drawstyle="steps-post", label=legible(solver, 24), **looks[solver]
                )
            ax.set(xscale="log", ylim=(-0.03, 1.03))
            ax.set_xlabel(f"multiple of the fastest solver's {kind} time")
            ax.set_ylabel(f"fraction solved to gap <= {number(TARGET_GAP)}")
            ax.xaxis.set_minor_formatter(NullFormatter())
            ax.grid(alpha=0.3)

    def _layout(self) -> Layout:
        title = f"Fraction of {len(instances_of(self.rows))} instances solved"
        return Layout(title, 1, 2, SLIDE_WIDTH, legend_entries=40)


@dataclass(eq=False)
class ClaimsDisplay(Display):
    """Show how many times the gap of each answer is the tolerance its solver was asked for.

    Left the true gap, right the gap of the answer's own certificate; one row per solver and
    formulation. A filled marker beyond 1 is a claim that is false (left) or that the answer does
    not prove (right). How many there are is written beside the name, counted as in
    :meth:`seraph_cvx.race.race_table.Race.summary`; a hollow one claims nothing.

    Parameters
    ----------
    rows : sequence
        The rows of a race.

    Examples
    --------
    >>> from seraph_cvx.plots import ClaimsDisplay
    >>> row = dict(instance="iris", solver="SCS", formulation="dual", tol=1e-3, claims=True)
    >>> row |= dict(true_gap=1e-4, proved_gap=1e-2, total_seconds=0.5)
    >>> true, proved = ClaimsDisplay.from_result([row]).plot().axes_
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
            Of :func:`seraph_cvx.compare_solvers`.
        """
        return cls(rows_of(race))

    def _draw(self, *axes: Axes) -> None:
        answers = answers_of(self.rows)
        entrants = list(dict.fromkeys(map(label_of, self.rows)))
        tols = sorted({row["tol"] for row in answers}, reverse=True)
        panels = {"true_gap": "False claims", "proved_gap": "Claims not proved"}
        for ax, (gap, title) in zip(axes, panels.items(), strict=True):
            for k, tol in enumerate(tols):
                own = [row for row in answers if row["tol"] == tol]
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
        return Layout(title, 1, 2, SLIDE_WIDTH, height)
