"""The pictures of a race, drawn from its rows."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator, NullFormatter, NullLocator
from numpy.typing import NDArray

from ...race.instances import split_word
from ...race.race_table import Race, answers_of, count_claims, label_of, over
from ...race.suite import InstanceSpec
from ..display import Display, Layout
from ..style import (
    GRAY,
    SLIDE_WIDTH,
    TEXT_SIZE,
    add_legend,
    enlarge_text,
    legible,
    new_figure,
    save,
)

__all__ = [
    "FLOOR",
    "draw_race",
    "plot_performance_profile",
    "plot_said_against_true",
    "plot_work_precision",
    "times_to_target",
]

Rows = Sequence[Mapping[str, Any]]
Looks = dict[str, dict[str, Any]]
"""How each solver is drawn, by its label."""
Times = NDArray[np.float64]

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
SCALINGS = {"standard": "standardized", "unit": "scaled to [0,1]", "raw": "in raw units"}

MOST_PANELS = 16
"""The most panels that are drawn without being asked for."""
TITLE_LINE, TITLE_LINE_OF_FOUR = 34, 31
"""The characters of a title in one line, with at most three columns and with four."""
TARGET_GAP = 1e-6
MARKERS_A_LINE = 7
LEAST_RATIO = 1e-6
"""Smaller ratios of gap to tolerance are drawn at this value."""
HALF_BAND = 0.44
"""How far the markers of a tolerance reach to both sides; the next tolerance is at 1."""
PANELS = {
    "true_gap": ("true gap / tolerance", "false", "False claims"),
    "proved_gap": ("proved gap / tolerance", "not proved", "Claims not proved"),
}
"""By gap: the label of its axis, what a claim above the line is, the title of the legend."""


def draw_race(race: Race) -> dict[str, Figure]:
    """Draw all pictures of a race, by name.

    Examples
    --------
    >>> row = dict(instance="iris", solver="SCS", formulation="dual", tol=1e-3, claims=True)
    >>> row |= dict(true_gap=1e-4, proved_gap=1e-2, total_seconds=0.5)
    >>> list(draw_race(Race("A race", [row], races=[{"time_limit": 5.0}])))
    ['work-precision', 'performance-profile', 'said-against-true']
    """
    return {
        "work-precision": plot_work_precision(race.rows, time_limit=race.time_limit),
        "performance-profile": plot_performance_profile(race.rows, time_limit=race.time_limit),
        "said-against-true": plot_said_against_true(race.rows),
    }


# What the pictures share


def family_of(row: Mapping[str, Any]) -> str:
    """The family of a row's solver, one of `FAMILIES`."""
    solver = str(row["solver"]).partition("(")[0]
    if row["formulation"] in ("primal", "dual"):
        return f"conic, {row['formulation']}"
    if row["formulation"]:
        return "nonlinear" if solver in NONLINEAR else "on a factor"
    return "ours" if solver in OURS else "others"


def solver_looks(rows: Rows) -> Looks:
    """Choose for each solver the color of its family and a marker that is unique in the family."""
    families = {label_of(row): family_of(row) for row in rows}
    labels = sorted(families, key=lambda label: list(FAMILIES).index(families[label]))
    common = {"markersize": 6, "markeredgewidth": 1.0}
    return {
        label: {"color": FAMILIES[families[label]], "marker": SHAPES[k % len(SHAPES)], **common}
        for k, label in enumerate(labels)
    }


def draw_answers(
    ax: Axes, rows: Rows, x: Sequence[float], y: Sequence[float], look: Mapping[str, Any]
) -> None:
    """Draw answers, filled if the solver claims the tolerance, hollow if it does not."""
    label = label_of(rows[0]) if rows else ""
    for claims, face in ((True, look["color"]), (False, "white")):
        chosen = [k for k, row in enumerate(rows) if row["claims"] is claims]
        positions = [x[k] for k in chosen], [y[k] for k in chosen]
        ax.plot(*positions, linestyle="", markerfacecolor=face, label=label, **look)


def draw_time_limit(ax: Axes, time_limit: float | None) -> None:
    """Mark the seconds that a run may take, where they are known."""
    if time_limit is not None:
        ax.axvline(time_limit, zorder=1, **LIMIT_LOOK)


def number(x: float) -> str:
    """A tolerance or a target as people write it: 1e-6."""
    return np.format_float_scientific(x, trim="-", exp_digits=1)


def solver_handles(looks: Looks, names: Mapping[str, str] | None = None) -> list[Line2D]:
    """The entries of a legend for the solvers."""
    texts = {label: legible((names or {}).get(label, label), 40) for label in looks}
    return [Line2D([], [], label=texts[label], **look) for label, look in looks.items()]


def claim_handles() -> list[Line2D]:
    """The entries of a legend that say what filled and hollow markers are."""
    plain: dict[str, Any] = {"color": GRAY, "linestyle": "", "marker": "o"}
    return [
        Line2D([], [], label="claims the tolerance", **plain),
        Line2D([], [], label="does not claim it", markerfacecolor="white", **plain),
    ]


def limit_handles(time_limit: float | None) -> list[Line2D]:
    """The entry of a legend for the time limit, where it is known."""
    label = f"time limit, {time_limit:g} s" if time_limit is not None else ""
    return [Line2D([], [], label=label, **LIMIT_LOOK)] if label else []


# Work and precision


@dataclass(eq=False)
class WorkPrecisionDisplay(Display):
    """Show how near the optimum each solver came, against the seconds it took.

    (f(A) - min f) / max(1, |f(A)|) of (11) against the seconds taken: one panel per instance, one
    marker per run. The line of a solver is the least true gap that it reached within a time: it
    never rises, whatever the order in which its runs ended.

    Down and to the left is better. A filled marker is an answer whose solver claims the tolerance,
    a hollow one an answer of which it does not.

    Parameters
    ----------
    rows : sequence
        The rows of a race.
    instances : sequence of str
        One panel each.
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
            One panel each; by default at most sixteen, spread over those of the rows.
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
            spread = (
                np.linspace(0, len(every) - 1, min(MOST_PANELS, len(every))).round().astype(int)
            )
            instances = [every[k] for k in spread]
        unknown = [name for name in instances if name not in every]
        if unknown:
            raise ValueError(f"No row is of the instance {unknown[0]!r}: choose from {every}.")
        return cls(rows, list(instances), time_limit)

    def _draw(self, axes: Sequence[Axes]) -> None:
        looks, columns = solver_looks(self.rows), self._layout().columns
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
        handles = [*solver_handles(looks), *claim_handles(), *limit_handles(self.time_limit)]
        self._add_legend(handles, len(handles))

    def _draw_instance(self, ax: Axes, name: str, looks: Looks) -> None:
        """Draw the answers of all solvers, and the line of the least gap of each."""
        answers = answers_of(self.rows)
        seconds = [row["total_seconds"] for row in answers]
        seconds += [self.time_limit] if self.time_limit is not None else []
        start, end = min(seconds, default=0.1) / 1.6, max(seconds, default=1.0) * 1.6
        draw_time_limit(ax, self.time_limit)
        for label, look in looks.items():
            own = [row for row in answers if (row["instance"], label_of(row)) == (name, label)]
            x, y = [r["total_seconds"] for r in own], [max(r["true_gap"], FLOOR) for r in own]
            draw_answers(ax, own, x, y, look)
            line = {"color": look["color"], "linewidth": 1.1, "alpha": 0.8}
            ax.plot(*_best_so_far(x, y, end), drawstyle="steps-post", **line)
        ax.set(xscale="log", yscale="log", xlim=(start, end), ylim=(FLOOR / 4, 4.0))
        for axis, n_ticks in ((ax.xaxis, 6), (ax.yaxis, 5)):
            axis.set_major_locator(LogLocator(numticks=n_ticks))
            axis.set_minor_formatter(NullFormatter())
        ax.grid(alpha=0.3)

    def _layout(self) -> Layout:
        n_panels = len(self.instances)
        columns = 2 if n_panels == 4 else min(3, n_panels) if n_panels <= 6 else 4
        rows = math.ceil(n_panels / columns)
        width = max(8.4, min(SLIDE_WIDTH, 3.35 * columns + 0.6))
        in_legend = len(solver_looks(self.rows)) + 3
        legend = 0.24 * math.ceil(in_legend / (4 if width == SLIDE_WIDTH else 3))
        height = (2.3 if columns > 3 else 3.3) * rows + 0.7 + legend
        title, missing = "The least true gap reached within a time", rows * columns - n_panels
        return Layout(title, rows, columns, width, height, missing, TEXT_SIZE)


def _best_so_far(
    seconds: Sequence[float], gaps: Sequence[float], end: float
) -> tuple[list[float], list[float]]:
    """The least gap reached within a time: the corners of a step function up to `end`."""
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
    """Draw the true gap against the seconds taken, one panel per instance, one line per solver.

    The figure of a :class:`WorkPrecisionDisplay`.

    Parameters
    ----------
    rows : sequence
        Of a :class:`~seraph_cvx.race.race_table.Race`.
    path : path, optional
        Also save the picture to this file; its ending chooses the format.
    instances : sequence of str, optional
        One panel each; by default at most sixteen, spread over those of the rows.
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


def instance_in_words(name: str) -> str:
    """Describe an instance, without what is the same in most of them.

    Not said are 10 labeled points, a trace weight of 1 and seed 0. A name that is not of a suite
    stays as it is.
    """
    try:
        spec = InstanceSpec.parse(name)
    except ValueError:
        return name
    parts = [spec.data.replace("_", " "), f"{spec.n_points} points"]
    parts += [f"{spec.n_labeled} labeled"] if spec.n_labeled != 10 else []
    parts += [SCALINGS[spec.scaling], spec.setting]
    parts += [f"weight {spec.trace_weight:g}"] if spec.trace_weight not in (0.0, 1.0) else []
    parts += [f"seed {spec.seed}"] if spec.seed else []
    if spec.penalty:
        penalty, number = split_word(spec.penalty)
        parts.append(f"{penalty} {number:g}" if number else penalty)
    return ", ".join(parts)


# The performance profile


def plot_performance_profile(
    rows: Rows,
    path: str | os.PathLike[str] | None = None,
    target: float = TARGET_GAP,
    time_limit: float | None = None,
) -> Figure:
    """Draw the fraction of the instances that each solver solves, within a time.

    Solved is a true gap of at most `target`, at whatever tolerance; a solver's time on an instance
    is that of its fastest such run. Left: within a number of seconds; right, as Dolan and Moré do,
    within a multiple of the fastest solver's time. Where a curve ends below 1, the rest was not
    solved within the limits.

    Examples
    --------
    >>> row = dict(instance="iris", solver="SCS", formulation="dual", tol=1e-3, claims=True)
    >>> row |= dict(true_gap=1e-7, proved_gap=1e-2, total_seconds=0.5)
    >>> plot_performance_profile([row], time_limit=5.0).axes[0].get_ylabel()
    'fraction solved to gap <= 1e-6'
    """
    looks = solver_looks(rows)
    instances = list(dict.fromkeys(row["instance"] for row in rows))
    n = len(instances)
    times = {label: times_to_target(rows, label, instances, target) for label in looks}
    best = np.min(np.array([*times.values(), np.full(n, np.inf)]), axis=0)
    fastest = np.where(np.isfinite(best), best, 1.0)
    title = f"Fraction of {n} instances solved to a true gap <= {number(target)}"
    figure = new_figure(SLIDE_WIDTH, 5.0 + 0.05 * len(looks), title)
    left, right = figure.subplots(1, 2, sharey=True)
    _draw_steps(left, times, looks, limit=time_limit)
    _draw_steps(right, {label: t / fastest for label, t in times.items()}, looks, least=1.0)
    draw_time_limit(left, time_limit)
    left.set(ylabel=f"fraction solved to gap <= {number(target)}", xlabel="seconds")
    right.set_xlabel("multiple of the fastest solver's time")
    for ax in (left, right):
        enlarge_text(ax)
    counts = {label: f"{label} ({np.isfinite(t).sum()}/{n})" for label, t in times.items()}
    handles = solver_handles(looks, counts) + limit_handles(time_limit)
    add_legend(figure, handles, len(handles))
    return save(figure, path)


def _draw_steps(
    ax: Axes,
    times: dict[str, Times],
    looks: Looks,
    least: float | None = None,
    limit: float | None = None,
) -> None:
    """Draw one step function per solver: the fraction of its times up to x."""
    finite = np.concatenate([t[np.isfinite(t)] for t in times.values()] or [np.ones(0)])
    start = least or 0.7 * float(np.min(finite, initial=limit or 1.0))
    end = 1.5 * float(np.max(finite, initial=limit or 10.0 * start))
    positions = np.geomspace(start, end / 1.15, MARKERS_A_LINE)
    for label, look in looks.items():
        reached = np.sort(times[label][np.isfinite(times[label])])
        later = reached[reached > start]
        x = np.concatenate([[start], later, [end]])
        n_solved = np.minimum(len(reached) - len(later) + np.arange(len(x)), len(reached))
        share = n_solved / len(times[label])
        ax.step(x, share, where="post", color=look["color"], linewidth=1.6)
        at = np.searchsorted(x, positions, side="right") - 1
        ax.plot(positions, share[at], linestyle="", **look)
    ax.set(xscale="log", xlim=(0.93 * start, end), ylim=(-0.03, 1.05))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.grid(alpha=0.3)


def times_to_target(rows: Rows, label: str, instances: Sequence[str], target: float) -> Times:
    """The seconds of a solver's fastest run within `target`, by instance; infinite if none.

    Examples
    --------
    >>> row = dict(instance="iris", solver="SCS", formulation="", true_gap=1e-4, total_seconds=0.5)
    >>> times_to_target([row], "SCS", ["iris", "wine"], target=1e-3)
    array([0.5, inf])
    """
    best = dict.fromkeys(instances, np.inf)
    for row in answers_of(rows):
        if row["true_gap"] <= target and label_of(row) == label:
            best[row["instance"]] = min(best[row["instance"]], row["total_seconds"])
    return np.array([best[name] for name in instances])


# What solvers claim of their answers against what is true of them


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
        _draw_claims(ax, rows, gap, looks)
        enlarge_text(ax)
    worse = Patch(color=GRAY, alpha=0.2, label="worse than asked for", linewidth=0)
    add_legend(figure, [*claim_handles(), worse])
    return save(figure, path)


def _draw_claims(ax: Axes, rows: Rows, gap: str, looks: Looks) -> None:
    """Draw the answers of all solvers, in bands, and write the counts."""
    answers = answers_of(rows)
    tols = sorted({row["tol"] for row in answers}, reverse=True) or [1e-6]
    top = 4.0 * max([25.0, *(over(row, gap) for row in answers)])
    ends = (-0.5, len(tols) - 0.5)
    ax.fill_between(ends, 1.0, top, color=GRAY, alpha=0.2, linewidth=0)
    ax.axhline(1.0, color="black", linewidth=1.2, label="threshold")
    for band in range(1, len(tols)):
        ax.axvline(band - 0.5, color="black", linewidth=0.8)
    y_label, verdict, title = PANELS[gap]
    handles = []
    for k, (label, look) in enumerate(looks.items()):
        own = [row for row in answers if label_of(row) == label]
        names = list(dict.fromkeys(row["instance"] for row in own))
        spread = np.linspace(0.15, 0.85, len(names)) if len(names) > 1 else [0.5]
        within = np.array([spread[names.index(row["instance"])] for row in own])
        bands = np.array([tols.index(row["tol"]) for row in own], dtype=np.float64)
        x = bands + HALF_BAND * (2.0 * (k + within) / len(looks) - 1.0)
        y = [max(over(row, gap), LEAST_RATIO) for row in own]
        draw_answers(ax, own, list(x), y, look | {"markersize": 5.5})
        claims, bad = count_claims(own, gap)
        text = f"{legible(label, 30)}: {bad} of {claims}"
        handles.append(Line2D([], [], linestyle="", label=text, **look))
    ticks = {tol: count_claims([row for row in rows if row["tol"] == tol], gap) for tol in tols}
    names = [
        f"tolerance {number(tol)}\n{claims} claims\n{bad} {verdict}"
        for tol, (claims, bad) in ticks.items()
    ]
    powers = range(-6, int(np.log10(top)) + 1, 2)
    ax.set(yscale="log", ylim=(LEAST_RATIO / 4.0, top), ylabel=y_label, xlim=ends)
    power_names = ["≤ 1e-6", *(f"1e{k}" if k else "1" for k in powers[1:])]
    ax.set_yticks([10.0**k for k in powers], power_names)
    ax.yaxis.set_minor_locator(NullLocator())
    ax.set_xticks(range(len(tols)), names)
    ax.tick_params(axis="x", length=0)
    ax.grid(axis="y", alpha=0.3)
    where: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5), "frameon": False}
    sizes: dict[str, Any] = {"fontsize": TEXT_SIZE, "title_fontsize": TEXT_SIZE}
    ax.legend(handles=handles, title=title, labelspacing=0.3, **where, **sizes).set_zorder(0)
