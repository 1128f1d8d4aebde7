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
from matplotlib.ticker import LogLocator, NullFormatter, NullLocator
from numpy.typing import NDArray

from ...race.instances import split_word
from ...race.race_table import Race, answers_of, count_claims, label_of
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
ANSWER = {"solver": object, "instance": object, "claims": bool}
ANSWER |= dict.fromkeys(("tol", "true_gap", "proved_gap", "total_seconds"), float)
"""What the pictures show of an answer."""
OURS = ("newton", "fista", "projected-gradient")
NONLINEAR = ("UNO", "IPOPT", "KNITRO")
SHAPES = ("o", "s", "^", "D", "v", "p", "<", "h", ">", "d")
"""Markers with enough inside of them to tell a filled one from a hollow one."""
WORSE: dict[str, Any] = {"color": GRAY, "alpha": 0.2, "linewidth": 0}
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


def answers_table(rows: Rows) -> Any:
    """The answers in a record array, with the label of the solver as `solver`."""
    rows = [{**row, "solver": label_of(row)} for row in answers_of(rows)]
    answers = [tuple(map(row.get, ANSWER)) for row in rows]
    return np.array(answers, dtype=list(ANSWER.items())).view(np.recarray)


def instances_of(rows: Rows) -> list[str]:
    """The names of the instances, in the order of the rows."""
    return list(dict.fromkeys(row["instance"] for row in rows))


def draw_answers(ax: Axes, x: Times, y: Times, claims: Any, label: str, **look: Any) -> None:
    """Draw answers, filled if the solver claims the tolerance, hollow if it does not."""
    look["linestyle"] = ""
    ax.plot(x[claims], y[claims], label=label, **look)
    ax.plot(x[~claims], y[~claims], markerfacecolor="white", **look)


def name_claims(ax: Axes) -> list[Line2D]:
    """Say in the legend what filled and hollow markers are."""
    names = {GRAY: "claims the tolerance", "white": "does not claim it"}
    return [
        ax.plot([], [], "o", color=GRAY, markerfacecolor=face, label=name)[0]
        for face, name in names.items()
    ]


def draw_time_limit(ax: Axes, time_limit: float | None) -> None:
    """Mark the seconds that a run may take, where they are known."""
    if time_limit is not None:
        ax.axvline(time_limit, zorder=1, label=f"time limit, {time_limit:g} s", **LIMIT_LOOK)


def number(x: float) -> str:
    """A tolerance or a target as people write it: 1e-6."""
    return np.format_float_scientific(x, trim="-", exp_digits=1)


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
        every = instances_of(rows)
        if not every:
            raise ValueError("The race has no rows: there is nothing to draw.")
        if instances is None:
            spread = np.linspace(0, len(every) - 1, min(MOST_PANELS, len(every)))
            instances = [every[round(k)] for k in spread.tolist()]
        unknown = [name for name in instances if name not in every]
        if unknown:
            raise ValueError(f"No row is of the instance {unknown[0]!r}: choose from {every}.")
        return cls(rows, list(instances), time_limit)

    def _draw(self, *axes: Axes) -> None:
        columns = self._layout().columns
        width = TITLE_LINE if columns < 4 else TITLE_LINE_OF_FOUR
        for k, (ax, name) in enumerate(zip(axes, self.instances, strict=True)):
            self._draw_instance(ax, name)
            ax.set_title(fill(legible(instance_in_words(name), 3 * TITLE_LINE), width))
            is_left, is_last = k % columns == 0, k + columns >= len(axes)
            ax.set_ylabel("true relative gap" if is_left else "")
            ax.set_xlabel("seconds" if is_last else "")
            ax.tick_params(labelleft=is_left, labelbottom=is_last)

    def _draw_instance(self, ax: Axes, name: str) -> None:
        """Draw the answers of all solvers, and the line of the least gap of each."""
        answers = answers_table(self.rows)
        answers.sort(order="total_seconds")
        ends = [*answers.total_seconds, self.time_limit or 1.0]
        start, end = min(ends) / 1.6, max(ends) * 1.6
        for label, look in solver_looks(self.rows).items():
            own = answers[(answers.instance == name) & (answers.solver == label)]
            gaps = np.maximum(own.true_gap, FLOOR)
            ax.plot([], [], label=legible(label, 40), **look)  # in the legend: line and marker
            draw_answers(ax, own.total_seconds, gaps, own.claims, "_filled", **look)
            x, least = [*own.total_seconds, end], np.minimum.accumulate([*gaps, np.inf])
            ax.plot(x, least, drawstyle="steps-post", color=look["color"], lw=1.1, alpha=0.8)
        name_claims(ax)
        draw_time_limit(ax, self.time_limit)
        ax.set(xscale="log", yscale="log", xlim=(start, end), ylim=(FLOOR / 4, 4.0))
        for axis, n_ticks in ((ax.xaxis, 6), (ax.yaxis, 5)):
            axis.set_major_locator(LogLocator(numticks=n_ticks))
            axis.set_minor_formatter(NullFormatter())
        ax.grid(alpha=0.3)

    def _layout(self) -> Layout:
        n_panels, in_legend = len(self.instances), len(solver_looks(self.rows)) + 3
        columns = 2 if n_panels == 4 else min(3, n_panels) if n_panels <= 6 else 4
        rows = math.ceil(n_panels / columns)
        width = max(8.4, min(SLIDE_WIDTH, 3.35 * columns + 0.6))
        legend = 0.24 * math.ceil(in_legend / (4 if width == SLIDE_WIDTH else 3))
        height = (2.3 if columns > 3 else 3.3) * rows + 0.7 + legend
        title, n_missing = "The least true gap reached within a time", rows * columns - n_panels
        return Layout(title, rows, columns, width, height, n_missing, TEXT_SIZE, in_legend)


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
    instances = instances_of(rows)
    n = len(instances)
    times = np.array([times_to_target(rows, label, instances, target) for label in looks])
    fastest = np.min(times, axis=0, initial=np.inf)
    ratios = times / np.where(np.isfinite(fastest), fastest, 1.0)
    title = f"Fraction of {n} instances solved to a true gap <= {number(target)}"
    figure = new_figure(SLIDE_WIDTH, 5.0 + 0.05 * len(looks), title)
    left, right = figure.subplots(1, 2, sharey=True)
    first = 0.7 * float(np.min(times, initial=time_limit or 1.0))
    _draw_steps(left, times, looks, first, time_limit or 10.0 * first)
    _draw_steps(right, ratios, looks, 1.0, 10.0)
    draw_time_limit(left, time_limit)
    left.set(ylabel=f"fraction solved to gap <= {number(target)}", xlabel="seconds")
    right.set_xlabel("multiple of the fastest solver's time")
    for ax in (left, right):
        enlarge_text(ax)
    add_legend(figure, [left], len(looks) + 1)
    return save(figure, path)


def _draw_steps(ax: Axes, times: Times, looks: Looks, start: float, most: float) -> None:
    """Draw one step function per solver: the fraction of its times up to x."""
    end = 1.5 * float(np.max(times, initial=most, where=np.isfinite(times)))
    positions = np.geomspace(start, end / 1.15, MARKERS_A_LINE)
    for own, (label, look) in zip(times, looks.items(), strict=True):
        reached = np.sort(own[np.isfinite(own)])
        name = f"{legible(label, 40)} ({len(reached)}/{len(own)})"
        ax.plot([], [], label=name, **look)  # its legend has line and marker
        x = np.array([start, *reached[reached > start], end])
        share = np.searchsorted(reached, x, side="right") / len(own)
        ax.step(x, share, where="post", color=look["color"], linewidth=1.6)
        share = np.searchsorted(reached, positions, side="right") / len(own)
        ax.plot(positions, share, linestyle="", **look)
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
    answers = answers_table(rows)
    solved = answers[(answers.solver == label) & (answers.true_gap <= target)]
    seconds = [solved.total_seconds[solved.instance == name] for name in instances]
    return np.array([np.min(own, initial=np.inf) for own in seconds])


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
    axes = figure.subplots(2, 1)
    for ax, gap in zip(axes, PANELS, strict=True):
        _draw_claims(ax, rows, gap, looks)
        enlarge_text(ax)
    worse = axes[0].fill_between([], [], label="worse than asked for", **WORSE)
    handles = [*name_claims(axes[0]), worse]
    figure.legend(
        handles=handles, loc="outside lower center", ncols=3, frameon=False, fontsize=TEXT_SIZE
    )
    return save(figure, path)


def _draw_claims(ax: Axes, rows: Rows, gap: str, looks: Looks) -> None:
    """Draw the answers of all solvers, in bands, and write the counts."""
    y_label, verdict, title = PANELS[gap]
    answers, instances = answers_table(rows), instances_of(rows)
    tols = sorted(set(answers.tol.tolist()), reverse=True) or [1e-6]
    top = 4.0 * np.max(answers[gap] / answers.tol, initial=25.0)
    for k, (label, look) in enumerate(looks.items()):
        own = answers[answers.solver == label]
        places = np.array([instances.index(name) + 0.5 for name in own.instance])
        columns = k + 0.15 + 0.7 * places / len(instances)
        bands = np.searchsorted(-np.array(tols), -own.tol)
        x = bands + HALF_BAND * (2.0 * columns / len(looks) - 1.0)
        y = np.maximum(own[gap] / own.tol, LEAST_RATIO)
        n_claims, n_bad = count_claims([row for row in rows if label_of(row) == label], gap)
        text = f"{legible(label, 30)}: {n_bad} of {n_claims}"
        draw_answers(ax, x, y, own.claims, text, **look | {"markersize": 5.5})
    beside = ax.legend(title=title, labelspacing=0.3, frameon=False, fontsize=TEXT_SIZE)
    beside.set(loc="center left", zorder=0)
    beside.set_bbox_to_anchor((1.0, 0.5))
    beside.get_title().set_fontsize(TEXT_SIZE)
    ends = (-0.5, len(tols) - 0.5)
    ax.fill_between(ends, 1.0, top, **WORSE)
    ax.axhline(1.0, color="black", linewidth=1.2, label="_threshold")
    for band in range(1, len(tols)):
        ax.axvline(band - 0.5, color="black", linewidth=0.8)
    names = []
    for tol in tols:
        n_claims, n_bad = count_claims([row for row in rows if row["tol"] == tol], gap)
        names.append(f"tolerance {number(tol)}\n{n_claims} claims\n{n_bad} {verdict}")
    powers = range(-6, int(np.log10(top)) + 1, 2)
    ax.set(yscale="log", ylim=(LEAST_RATIO / 4.0, top), ylabel=y_label, xlim=ends)
    power_names = {-6: "≤ 1e-6", 0: "1"}
    ax.set_yticks([10.0**k for k in powers], [power_names.get(k, f"1e{k}") for k in powers])
    ax.yaxis.set_minor_locator(NullLocator())
    ax.set_xticks(range(len(tols)), names)
    ax.tick_params(axis="x", length=0)
    ax.grid(axis="y", alpha=0.3)
