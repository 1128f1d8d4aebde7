"""The fraction of the instances that each solver solves, within a time and against the fastest."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter
from numpy.typing import NDArray

from ...race.race_table import label_of
from ..style import SLIDE_WIDTH, enlarge_text, new_figure
from .marks import Rows, add_solver_legend, draw_time_limit, number, solver_looks

TARGET_GAP = 1e-6
MARKERS_A_LINE = 7

Times = NDArray[np.float64]


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
    times = {label: times_to_target(rows, label, instances, target) for label in looks}
    best = np.min(np.array([*times.values(), np.full(len(instances), np.inf)]), axis=0)
    fastest = np.where(np.isfinite(best), best, 1.0)
    title = f"Fraction of {len(instances)} instances solved to a true gap <= {number(target)}"
    figure = new_figure(SLIDE_WIDTH, 5.0 + 0.05 * len(looks), title)
    left, right = figure.subplots(1, 2, sharey=True)
    _draw_steps(left, times, looks, len(instances), limit=time_limit)
    _draw_steps(right, {k: t / fastest for k, t in times.items()}, looks, len(instances), least=1.0)
    draw_time_limit(left, time_limit)
    left.set_ylabel(f"fraction solved to gap <= {number(target)}")
    left.set_xlabel("seconds")
    right.set_xlabel("multiple of the fastest solver's time")
    for ax in (left, right):
        enlarge_text(ax)
    counts = {label: f"{label} ({np.isfinite(t).sum()}/{len(t)})" for label, t in times.items()}
    add_solver_legend(figure, looks, names=counts, time_limit=time_limit)
    if path is not None:
        figure.savefig(path)
    return figure


def _draw_steps(
    ax: Axes,
    times: dict[str, Times],
    looks: dict[str, dict[str, Any]],
    n_instances: int,
    least: float | None = None,
    limit: float | None = None,
) -> None:
    """Draw one step function a solver: the fraction of its times up to x."""
    finite = np.concatenate([t[np.isfinite(t)] for t in times.values()] or [np.ones(0)])
    start = least or 0.7 * float(np.min(finite, initial=limit or 1.0))
    end = 1.5 * float(np.max(finite, initial=limit or 10.0 * start))
    for label, look in looks.items():
        reached = np.sort(times[label][np.isfinite(times[label])])
        later = reached[reached > start]
        x = np.concatenate([[start], later, [end]])
        solved = len(reached) - len(later) + np.arange(len(x))
        solved[-1] = len(reached)
        ax.step(x, solved / n_instances, where="post", color=look["color"], linewidth=1.6)
        positions = np.geomspace(start, end / 1.15, MARKERS_A_LINE)
        at = np.searchsorted(x, positions, side="right") - 1
        ax.plot(positions, solved[at] / n_instances, linestyle="", **look)
    ax.set_xscale("log")
    ax.set_xlim(0.93 * start, end)
    ax.set_ylim(-0.03, 1.05)
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
    for row in rows:
        reached = row["true_gap"] is not None and row["true_gap"] <= target
        if reached and label_of(row) == label:
            best[row["instance"]] = min(best[row["instance"]], row["total_seconds"])
    return np.array([best[name] for name in instances])
