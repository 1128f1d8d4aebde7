"""The pictures of a race, drawn from its rows."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from textwrap import fill
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter, NullLocator
from matplotlib.transforms import Affine2D
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from ...race.race_table import Race, answers_of, count_claims, label_of, over
from ...race.statistics import KINDS, OURS, solver_of
from ...race.suite import InstanceSpec
from ..display import Display, Layout
from ..style import GRAY, SLIDE_WIDTH, TEXT_SIZE, enlarge_text, legible, new_figure, save

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
"""How each entrant or solver is drawn, by its name."""
Times = NDArray[np.float64]
Runs = dict[tuple[str, float], list[tuple[float, float]]]
"""Gap and seconds of each repeat, by setting and tolerance: of one solver on one instance."""

FLOOR = 1e-9
"""Smaller gaps are drawn at this value: none was asked for."""
FAMILIES = {
    "ours": "#0072B2",
    "conic, primal": "#D55E00",
    "conic, dual": "#E69F00",
    "nonlinear": "#009E73",
    "on a factor": "#CC79A7",
    "others": "#000000",
}
"""The families of entrants and their colors, which color-blind readers can tell apart."""
SHADES = {
    "ours": ("#0072B2", "#3C97D6", "#003F63"),
    "conic": ("#D55E00", "#7A3300", "#BF8300", "#B0715A", "#3D1A00"),
    "nonlinear": ("#009E73", "#005C43", "#5F9A00"),
    "on a factor": ("#C45C98", "#6E1F52", "#B04CE0"),
    "others": ("#000000", "#808080", "#4D4D4D"),
}
"""The colors of lines, by family: its hue, light and dark, each to be read on white."""
DASHES = ("-", (0, (4.5, 1.5)), (0, (1.2, 1.2)), (0, (6.0, 1.5, 1.2, 1.5)))
"""With three shades, twelve lines of a family differ."""
OWN = (OURS, "fista", "projected-gradient")
NONLINEAR = ("UNO", "IPOPT", "KNITRO")
SHAPES = ("o", "s", "^", "D", "v", "p", "<", "h", ">", "d")
"""Markers with enough inside of them to tell a filled one from a hollow one."""
WORSE: dict[str, Any] = {"color": GRAY, "alpha": 0.2, "linewidth": 0}
SCALINGS = {"standard": "standardized", "unit": "scaled to [0,1]", "raw": "in raw units"}

BEGIN = 4.0
"""The largest gap on the axis."""
QUANTILES = (1 / 8, 3 / 8, 5 / 8, 7 / 8)
"""Where in the order of the instances those are that have a panel of their own."""
TITLE_LINE = 34
"""The characters of a title in one line."""
TARGET_GAP = 1e-6
LEAST_SECONDS = 1e-6
"""Shorter times count as this one, so that there are multiples of it."""
SMALL_SIZE = 8.0
"""The text size of labels where there are many panels."""
LEADER = 16.0
"""Points between a panel and its labels."""
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
    ['work-precision', 'work-precision-all', 'performance-profile', 'said-against-true']
    """
    every, limit = instances_of(race.rows), race.time_limit
    return {
        "work-precision": plot_work_precision(race.rows, time_limit=limit),
        "work-precision-all": plot_work_precision(race.rows, instances=every, time_limit=limit),
        "performance-profile": plot_performance_profile(race.rows),
        "said-against-true": plot_said_against_true(race.rows),
    }


# What the pictures share


def family_of(row: Mapping[str, Any]) -> str:
    """The family of a row's solver, one of `FAMILIES`."""
    solver = solver_of(row)
    if row["formulation"] in ("primal", "dual"):
        return f"conic, {row['formulation']}"
    if row["formulation"]:
        return "nonlinear" if solver in NONLINEAR else "on a factor"
    return "ours" if solver in OWN else "others"


def marker_looks(rows: Rows) -> Looks:
    """Choose for each entrant the color of its family and a marker that is unique in the family."""
    families = {label_of(row): family_of(row) for row in rows}
    labels = sorted(families, key=lambda label: list(FAMILIES).index(families[label]))
    common = {"markersize": 5.5 if len(labels) < 16 else 4.5, "linestyle": ""}
    return {
        label: {"color": FAMILIES[families[label]], "marker": SHAPES[k % len(SHAPES)], **common}
        for k, label in enumerate(labels)
    }


def instances_of(rows: Rows) -> list[str]:
    """The names of the instances, in the order of the rows."""
    return list(dict.fromkeys(row["instance"] for row in rows))


def line_looks(rows: Rows) -> Looks:
    """Choose for each solver a shade of its family and a dash; ours is bold."""
    families = {solver_of(row): family_of(row).partition(",")[0] for row in rows}
    looks: Looks = {}
    for family, shades in SHADES.items():
        for k, solver in enumerate(name for name in families if families[name] == family):
            look = {"color": shades[k % len(shades)], "linestyle": DASHES[k % len(DASHES)]}
            is_ours = solver == OURS
            looks[solver] = look | {"linewidth": 1.7 + 1.5 * is_ours, "zorder": 3 - is_ours}
    return looks


def runs_of(rows: Rows, kind: str = "total") -> dict[tuple[str, str], Runs]:
    """The runs of each solver on each instance, with one of the `KINDS` of seconds.

    A run without an answer reaches no gap. Rows of earlier versions have the total alone.
    """
    runs: dict[tuple[str, str], Runs] = {}
    for row in rows:
        reached = math.inf, math.inf
        if row["true_gap"] is not None:
            seconds = row.get(KINDS[kind])
            seconds = row["total_seconds"] if seconds is None else seconds
            reached = row["true_gap"], max(seconds, LEAST_SECONDS)
        own = runs.setdefault((solver_of(row), row["instance"]), {})
        own.setdefault((label_of(row), row["tol"]), []).append(reached)
    return runs


def seconds_to(runs: Runs, targets: Sequence[float]) -> Times:
    """The seconds to each gap: medians over repeats, the least over settings and tolerances."""
    medians = [
        np.median([np.where(gap <= np.array(targets), t, np.inf) for gap, t in repeats], axis=0)
        for repeats in runs.values()
    ]
    return np.asarray(np.min([np.full(len(targets), np.inf), *medians], axis=0))


def label_ends(ax: Axes, lines: Mapping[str, Line2D], size: float) -> None:
    """Write beside the panel what each line is, in its color, with a thin line from its end.

    The labels keep the order of the ends, each as near to its own as the others allow: by isotonic
    regression, anew whenever the picture is drawn in another size.
    """

    @lru_cache(maxsize=8)
    def heights(step: float, low: float, high: float, *_: float) -> Times:
        pixels = [line.get_transform().transform(line.get_xydata()) for line in lines.values()]
        wanted, below = np.array([own[-1, 1] for own in pixels]), np.arange(len(lines))
        down = np.argsort(-wanted, kind="stable")
        step = min(step, (high - low) / max(1, len(lines) - 1))
        tops = isotonic_regression(wanted[down] + step * below, increasing=False).x
        y = np.clip(tops, low + step * below[-1], high) - step * below
        return np.asarray(y[np.argsort(down)])

    def place(renderer: Any, k: int) -> Affine2D:
        point, limits = renderer.points_to_pixels(1.0), (*ax.get_xlim(), *ax.get_ylim())
        y = heights(1.22 * size * point, ax.bbox.y0, ax.bbox.y1, *limits)
        return Affine2D().translate(ax.bbox.x1 + LEADER * point, y[k])

    for k, (text, line) in enumerate(lines.items()):
        leader = {"arrowstyle": "-", "color": line.get_color(), "relpos": (0.0, 0.5)}
        ax.annotate(
            text,
            tuple(np.asarray(line.get_xydata())[-1]),
            (0.0, 0.0),
            xycoords=line.get_transform(),
            textcoords=partial(place, k=k),
            arrowprops=leader | {"linewidth": 0.7, "alpha": 0.8, "shrinkB": 0.0},
            fontweight="bold" if line.get_linewidth() > 3.0 else "normal",
            annotation_clip=False,
            color=line.get_color(),
            size=size,
            va="center",
        )


def number(x: float) -> str:
    """A tolerance or a target as people write it: 1e-6."""
    return np.format_float_scientific(x, trim="-", exp_digits=1)


# Work and precision


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
            One panel each. By default four: the instances are ordered by the median over solvers of
            the seconds to a true gap of 1e-6, the time limit where it is not reached, and those at
            the quantiles 1/8, 3/8, 5/8 and 7/8 are taken, each the middle one of a quarter.
        time_limit : float, optional
            By default the race's own, where a Race is given.
        """
        rows = race.rows if isinstance(race, Race) else race
        if time_limit is None and isinstance(race, Race):
            time_limit = race.time_limit
        every = instances_of(rows)
        if not every:
            raise ValueError("The race has no rows: there is nothing to draw.")
        instances = typical_instances(rows, time_limit) if instances is None else instances
        unknown = [name for name in instances if name not in every]
        if unknown:
            raise ValueError(f"No row is of the instance {unknown[0]!r}: choose from {every}.")
        return cls(rows, list(instances), time_limit)

    def _draw(self, *axes: Axes) -> None:
        columns, runs, looks = self._layout().columns, runs_of(self.rows), line_looks(self.rows)
        seconds = [row["total_seconds"] for row in answers_of(self.rows)]
        ends = [max(t, LEAST_SECONDS) for t in (*seconds, self.time_limit or 1.0)]
        for k, (ax, name) in enumerate(zip(axes, self.instances, strict=True)):
            ax.set(xscale="log", yscale="log", xlim=(BEGIN, FLOOR / 2))
            ax.set_ylim(min(ends) / 1.6, max(ends) * 1.6)
            self._draw_instance(ax, {solver: runs.get((solver, name), {}) for solver in looks})
            ax.set_title(fill(legible(instance_in_words(name), 3 * TITLE_LINE), TITLE_LINE))
            is_left, is_last = k % columns == 0, k + columns >= len(axes)
            ax.set_ylabel("total seconds" if is_left else "")
            ax.set_xlabel("true relative gap" if is_last else "")
            ax.tick_params(labelleft=is_left, labelbottom=is_last)

    def _draw_instance(self, ax: Axes, runs: Mapping[str, Runs]) -> None:
        """Draw and label the line of each solver, with a mark where it ends."""
        lines = {}
        for solver, look in line_looks(self.rows).items():
            repeats = [run for group in runs[solver].values() for run in group]
            gaps = sorted({max(gap, FLOOR) for gap, _ in repeats if gap < np.inf}, reverse=True)
            seconds = seconds_to(runs[solver], gaps)
            later = np.append(seconds[1:], np.inf)
            best = seconds < later  # no smaller gap was reached in the same time
            x, y = [BEGIN, *np.array(gaps)[best]], [*seconds[best][:1], *seconds[best]]
            name, look["marker"] = legible(solver, 24), "|"
            if not y:  # no line: its label is at the top
                x, y = [ax.get_xlim()[1]], [ax.get_ylim()[1]]
                name, look["marker"] = f"{name}: none", ""
            look |= {"drawstyle": "steps-pre", "markersize": 7.0, "markevery": [-1]}
            (lines[name],) = ax.plot(x, y, **look)
        label_ends(ax, lines, self._label_size())
        limits: dict[str, Any] = {"color": "#333333", "linewidth": 1.0, "zorder": 1}
        ax.axvline(TARGET_GAP, linestyle=":", label=f"gap {number(TARGET_GAP)}", **limits)
        if self.time_limit is not None:
            name = f"time limit, {self.time_limit:g} s"
            ax.axhline(self.time_limit, linestyle="--", label=name, **limits)
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_locator(LogLocator(numticks=6))
            axis.set_minor_locator(NullLocator())
        if len(self.instances) <= len(QUANTILES):
            ax.grid(alpha=0.3)

    def _label_size(self) -> float:
        return TEXT_SIZE - 1.0 if len(self.instances) <= len(QUANTILES) else SMALL_SIZE

    def _layout(self) -> Layout:
        n_panels = len(self.instances)
        columns = min(2, n_panels) if n_panels <= len(QUANTILES) else 4
        rows = math.ceil(n_panels / columns)
        width = (8.4, SLIDE_WIDTH, 0.0, 1.6 * SLIDE_WIDTH)[columns - 1]
        panel = max(2.6, 0.9 + 0.0175 * self._label_size() * len(line_looks(self.rows)))
        title = "Seconds to a true gap, best of each solver's settings"
        n_missing = rows * columns - n_panels
        return Layout(title, rows, columns, width, panel * rows + 1.2, n_missing, TEXT_SIZE)


def typical_instances(rows: Rows, time_limit: float | None = None) -> list[str]:
    """The instances at the `QUANTILES` of the median solver's seconds to the target, in order."""
    instances = instances_of(rows)
    times = [times_to_target(rows, name, instances, TARGET_GAP) for name in line_looks(rows)]
    medians = np.median(np.minimum(times, time_limit or np.inf), axis=0)
    order = np.argsort(medians, kind="stable")
    places = dict.fromkeys(int(q * len(instances)) for q in QUANTILES)  # all, if these are few
    return [instances[order[place]] for place in places]


def plot_work_precision(
    rows: Rows,
    path: str | os.PathLike[str] | None = None,
    instances: Sequence[str] | None = None,
    time_limit: float | None = None,
) -> Figure:
    """Draw the seconds taken against the true gap, one panel per instance, one line per solver.

    The figure of a :class:`WorkPrecisionDisplay`, and which instances these are: by default four,
    by the rule of :meth:`WorkPrecisionDisplay.from_result`.

    Examples
    --------
    >>> row = dict(instance="iris", solver="SCS", formulation="dual", tol=1e-3, claims=True)
    >>> row |= dict(true_gap=1e-4, total_seconds=0.5)
    >>> len(plot_work_precision([row]).axes)
    1
    """
    figure = WorkPrecisionDisplay.from_result(rows, instances, time_limit).draw()
    n, target = len(instances_of(rows)), number(TARGET_GAP)
    if instances is None and n > len(QUANTILES):
        text = f"Of {n} instances, ordered by the median solver's time to {target}, those at the "
        text += "quantiles 1/8, 3/8, 5/8, 7/8"
        figure.legends[0].set_title(text)
        figure.legends[0].get_title().set_fontsize(TEXT_SIZE)
    return save(figure, path)


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
    return ", ".join(parts)


# The performance profile


def plot_performance_profile(
    rows: Rows, path: str | os.PathLike[str] | None = None, target: float = TARGET_GAP
) -> Figure:
    """Draw the fraction of the instances that each solver solves within a multiple of the fastest.

    Solved is a true gap of at most `target`, at whatever tolerance; a solver's time on an instance
    is that of :func:`times_to_target`. As Dolan and Moré do, left by solve time, right by total
    time. A failure never counts as solved: where a curve
    ends below 1, the rest was not solved within the limits.

    Examples
    --------
    >>> row = dict(instance="iris", solver="SCS", formulation="dual", tol=1e-3, claims=True)
    >>> row |= dict(true_gap=1e-7, proved_gap=1e-2, total_seconds=0.5)
    >>> plot_performance_profile([row]).axes[0].get_ylabel()
    'fraction solved to gap <= 1e-6'
    """
    looks, instances = line_looks(rows), instances_of(rows)
    title = f"Fraction of {len(instances)} instances solved, best of each solver's settings"
    figure = new_figure(SLIDE_WIDTH, max(4.8, 1.4 + 0.2 * len(looks)), title)
    for ax, kind in zip(figure.subplots(1, 2, sharey=True), KINDS, strict=True):
        times = [times_to_target(rows, solver, instances, target, kind) for solver in looks]
        fastest = np.min(times, axis=0)
        ratios = np.array(times) / np.where(np.isfinite(fastest), fastest, 1.0)
        _draw_steps(ax, dict(zip(looks, np.sort(ratios, axis=1), strict=True)), looks)
        ax.set_xlabel(f"multiple of the fastest solver's {kind} time")
        enlarge_text(ax)
    figure.axes[0].set_ylabel(f"fraction solved to gap <= {number(target)}")
    text = "Failures never count as solved. Where lines end level, the earlier is labeled above."
    figure.supxlabel(text, size=TEXT_SIZE)
    return save(figure, path)


def _draw_steps(ax: Axes, ratios: Mapping[str, Times], looks: Looks) -> None:
    """Draw and label one step function per solver: the fraction of its sorted ratios up to x."""
    reached = {solver: own[np.isfinite(own)] for solver, own in ratios.items()}
    end = 1.5 * max([10.0, *(own[-1] for own in reached.values() if own.size)])
    lines: dict[str, Line2D] = {}
    for solver in sorted(ratios, key=lambda name: ratios[name].tolist()[::-1]):
        own, n = reached[solver], len(ratios[solver])
        x = np.array([1.0, *own[own > 1.0], end])
        share = np.searchsorted(own, x, side="right") / n
        name = f"{legible(solver, 24)} {len(own)}/{n}"
        (lines[name],) = ax.plot(x, share, drawstyle="steps-post", **looks[solver])
    ax.set(xscale="log", xlim=(0.93, end), ylim=(-0.03, 1.03))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.grid(alpha=0.3)
    label_ends(ax, lines, TEXT_SIZE - 1.0)


def times_to_target(
    rows: Rows, solver: str, instances: Sequence[str], target: float, kind: str = "total"
) -> Times:
    """The seconds of a solver to a true gap of `target`, by instance; infinite if not reached.

    Medians over repeats, a failure as infinite, of its fastest formulation, setting and tolerance;
    `kind` is "solve" or "total".

    Examples
    --------
    >>> row = dict(instance="iris", solver="SCS", formulation="", tol=1e-3)
    >>> row |= dict(true_gap=1e-4, total_seconds=0.5)
    >>> times_to_target([row], "SCS", ["iris", "wine"], target=1e-3)
    array([0.5, inf])
    """
    runs = runs_of(rows, kind)
    return np.array([seconds_to(runs.get((solver, name), {}), [target])[0] for name in instances])


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
    looks = marker_looks(rows)
    height = max(3.2, 0.8 + 0.215 * len(looks))
    figure = new_figure(SLIDE_WIDTH, 2.0 * height + 1.6, "What solvers claim, and what is true")
    axes = figure.subplots(2, 1)
    for ax, gap in zip(axes, PANELS, strict=True):
        _draw_claims(ax, rows, gap, looks)
        enlarge_text(ax)
    names = {GRAY: "claims the tolerance", "white": "does not claim it"}
    handles: list[Any] = [
        Line2D([], [], color=GRAY, marker="o", linestyle="", markerfacecolor=face, label=name)
        for face, name in names.items()
    ]
    handles.append(axes[0].fill_between([], [], label="worse than asked for", **WORSE))
    look: dict[str, Any] = {"ncols": 3, "frameon": False, "fontsize": TEXT_SIZE}
    figure.legend(handles=handles, loc="outside lower center", **look)
    return save(figure, path)


def _draw_claims(ax: Axes, rows: Rows, gap: str, looks: Looks) -> None:
    """Draw the answers of all solvers, in bands, and write the counts."""
    y_label, verdict, title = PANELS[gap]
    answers, instances = answers_of(rows), instances_of(rows)
    tols = sorted({row["tol"] for row in answers}, reverse=True) or [1e-6]
    top = 4.0 * max([25.0, *(over(row, gap) for row in answers)])
    for k, (label, look) in enumerate(looks.items()):
        own = [row for row in answers if label_of(row) == label]
        places = np.array([instances.index(row["instance"]) + 0.5 for row in own])
        columns = k + 0.15 + 0.7 * places / len(instances)
        bands = np.array([tols.index(row["tol"]) for row in own])
        x = bands + HALF_BAND * (2.0 * columns / len(looks) - 1.0)
        y = np.array([max(over(row, gap), LEAST_RATIO) for row in own])
        claims = np.array([row["claims"] for row in own], dtype=bool)
        n_claims, n_bad = count_claims(own, gap)
        text = f"{legible(label, 30)}: {n_bad} of {n_claims}"
        ax.plot(x[claims], y[claims], label=text, **look)
        ax.plot(x[~claims], y[~claims], markerfacecolor="white", **look)
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
