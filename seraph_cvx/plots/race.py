"""The pictures of a race, drawn from its rows, never computing them."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter

from ..comparison.race_table import label_of
from .style import GREY, MARKERS, PALETTE

Rows = Sequence[Mapping[str, Any]]
FLOOR = 1e-12
"""Gaps below this are drawn here: they are rounding."""
TARGET_GAP = 1e-6
PANELS = 6


def plot_work_precision(
    rows: Rows,
    path: str | os.PathLike[str] | None = None,
    instances: Sequence[str] | None = None,
) -> Figure:
    """Draw the true gap against the seconds taken, a line a solver, a marker a tolerance.

    Down and to the left is better. A filled marker is an answer whose solver claims the tolerance,
    a hollow one an answer of which it does not.

    Parameters
    ----------
    rows : sequence
        Of a :class:`~seraph_cvx.comparison.race_table.Race`.
    path : path, optional
        Also save the picture here; the ending chooses the format.
    instances : sequence of str, optional
        A panel each; by default at most six, spread over those of the rows.

    Returns
    -------
    matplotlib.figure.Figure
    """
    every = list(dict.fromkeys(row["instance"] for row in rows))
    if instances is None:
        spread = np.linspace(0, len(every) - 1, min(PANELS, len(every))).round().astype(int)
        instances = [every[k] for k in spread]
    looks = _looks(rows)
    n_columns = min(3, len(instances))
    n_rows = math.ceil(len(instances) / n_columns)
    figure = _figure(3.7 * n_columns + 0.6, 3.1 * n_rows + 1.3)
    grid = figure.subplots(n_rows, n_columns, squeeze=False, sharey=True)
    for ax, name in zip(grid.flat, instances, strict=False):
        chosen = [r for r in rows if r["instance"] == name and r["true_gap"] is not None]
        for label, look in looks.items():
            steps = sorted((r for r in chosen if label_of(r) == label), key=lambda r: -r["tol"])
            x, y = [r["total_seconds"] for r in steps], [_floored(r["true_gap"]) for r in steps]
            ax.plot(x, y, color=look["color"], linewidth=1.2, alpha=0.8)
            _markers(ax, steps, x, y, look)
        ax.set_title(name, fontsize=9)
        _log_axes(ax, [r["total_seconds"] for r in chosen])
        ax.set_ylim(FLOOR / 4, 4.0)
    for ax in list(grid.flat)[len(instances) :]:
        ax.set_visible(False)
    for ax in grid[:, 0]:
        ax.set_ylabel("true relative gap")
    for k in range(len(instances)):
        if k + n_columns >= len(instances):
            grid.flat[k].set_xlabel("seconds, compilation included")
    figure.suptitle("Work and precision: one marker a tolerance", fontweight="bold")
    _legend(figure, looks, hollow=True)
    return _saved(figure, path)


def plot_performance_profile(
    rows: Rows, path: str | os.PathLike[str] | None = None, target: float = TARGET_GAP
) -> Figure:
    """Draw Dolan and Moré's profile: the share of instances solved within a factor of the best.

    A solver's time on an instance is that of its fastest run whose true gap is within `target`.
    Where a curve ends below 1, the rest was not solved within the limits.
    """
    looks = _looks(rows)
    instances = list(dict.fromkeys(row["instance"] for row in rows))
    times = {label: times_to_target(rows, label, instances, target) for label in looks}
    best = np.min(np.array(list(times.values())), axis=0)
    solved = np.isfinite(best)
    figure = _figure(6.8, 4.6)
    ax = figure.subplots()
    ratios = {
        label: np.sort(np.where(solved, t / np.where(solved, best, 1.0), np.inf))
        for label, t in times.items()
    }
    finite = np.concatenate([r[np.isfinite(r)] for r in ratios.values()] or [np.ones(1)])
    end = 2.0 * float(np.max(finite, initial=10.0))
    for label, look in looks.items():
        reached = ratios[label][np.isfinite(ratios[label])]
        x = np.concatenate([[1.0], reached, [end]])
        y = np.concatenate([[0.0], np.arange(1, len(reached) + 1), [len(reached)]])
        y[0] = np.sum(reached <= 1.0)
        ax.step(x, y / len(instances), where="post", color=look["color"], linewidth=2)
        places = np.geomspace(1.0, end / 1.4, 8)
        at = np.searchsorted(x, places, side="right") - 1
        ax.plot(places, y[at] / len(instances), linestyle="", **look)
    ax.set_xscale("log")
    ax.set_xlim(0.9, end)
    ax.set_ylim(-0.03, 1.05)
    ax.set_xlabel("time over the fastest solver's time on that instance")
    ax.set_ylabel("share of the instances solved")
    ax.grid(alpha=0.3)
    figure.suptitle(f"Performance profile: solved is a true gap of {target:g}", fontweight="bold")
    counts = {label: f"{label} ({np.isfinite(r).sum()}/{len(r)})" for label, r in ratios.items()}
    _legend(figure, looks, names=counts)
    return _saved(figure, path)


def times_to_target(
    rows: Rows, label: str, instances: Sequence[str], target: float
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Seconds of a solver's fastest run within `target` on each instance; infinite if none."""
    best = dict.fromkeys(instances, np.inf)
    for row in rows:
        reached = row["true_gap"] is not None and row["true_gap"] <= target
        if reached and label_of(row) == label:
            best[row["instance"]] = min(best[row["instance"]], row["total_seconds"])
    return np.array([best[name] for name in instances])


def plot_said_against_true(rows: Rows, path: str | os.PathLike[str] | None = None) -> Figure:
    """Draw the gap of each answer against the tolerance that its solver was asked for.

    Left the true gap, right the gap that the answer proves of itself. Above the line an answer is
    worse than was asked for; a filled marker there is a claim that is not true (left) or that the
    answer does not prove (right).
    """
    looks = _looks(rows)
    figure = _figure(10.2, 5.2)
    panels = figure.subplots(1, 2, sharey=True)
    answers = [row for row in rows if row["true_gap"] is not None]
    tols = sorted({row["tol"] for row in answers}) or [1e-6]
    ends = np.array([tols[0] / 6.0, tols[-1] * 6.0])
    shift = np.linspace(-0.28, 0.28, len(looks)) if len(looks) > 1 else np.zeros(1)
    step = min(np.diff(np.log10(tols)), default=1.0)
    for ax, which in zip(panels, ("true_gap", "proved_gap"), strict=True):
        ax.plot(ends, ends, color="black", linewidth=1)
        ax.fill_between(ends, ends, 4.0, color=GREY, alpha=0.15, linewidth=0)
        for (label, look), move in zip(looks.items(), shift, strict=True):
            own = [row for row in answers if label_of(row) == label]
            x = [row["tol"] * 10.0 ** (move * step) for row in own]
            y = [min(_floored(row[which]), 2.0) for row in own]
            _markers(ax, own, x, y, look)
        claims = [row for row in answers if row["claims"]]
        false = sum(row[which] > row["tol"] for row in claims)
        word = "is larger" if which == "true_gap" else "is not proved"
        ax.set_title(f"of {len(claims)} claims, {false} where the gap {word}", fontsize=10)
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xlim(*ends)
        ax.set_ylim(FLOOR / 4, 4.0)
        ax.set_xticks(tols)
        ax.xaxis.set_minor_locator(LogLocator(subs=[]))
        ax.set_xlabel("tolerance asked for")
        ax.grid(alpha=0.3)
    panels[0].set_ylabel("true relative gap")
    panels[1].set_ylabel("gap proved by the answer itself")
    figure.suptitle("Said against true: grey is worse than asked for", fontweight="bold")
    _legend(figure, looks, hollow=True)
    return _saved(figure, path)


def _figure(width: float, height: float) -> Figure:
    figure = Figure(figsize=(width, height), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _looks(rows: Rows) -> dict[str, dict[str, Any]]:
    """A colour and a marker for each solver."""
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


def _markers(
    ax: Axes, rows: Rows, x: Sequence[float], y: Sequence[float], look: Mapping[str, Any]
) -> None:
    """Filled where the solver claims the tolerance, hollow where it does not."""
    for claims, face in ((True, look["color"]), (False, "white")):
        chosen = [k for k, row in enumerate(rows) if row["claims"] is claims]
        places = [x[k] for k in chosen], [y[k] for k in chosen]
        ax.plot(*places, linestyle="", markerfacecolor=face, **look)


def _floored(gap: float) -> float:
    return max(gap, FLOOR)


def _log_axes(ax: Axes, seconds: Sequence[float]) -> None:
    ax.set_xscale("log")
    ax.set_yscale("log")
    ends = (min(seconds, default=0.1) / 1.8, max(seconds, default=1.0) * 1.8)
    ax.set_xlim(*ends)
    ax.xaxis.set_major_locator(LogLocator(numticks=4))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.grid(alpha=0.3)


def _legend(
    figure: Figure,
    looks: Mapping[str, dict[str, Any]],
    hollow: bool = False,
    names: Mapping[str, str] | None = None,
) -> None:
    handles = [
        Line2D([], [], label=(names or {}).get(label, label), **look)
        for label, look in looks.items()
    ]
    if hollow:
        plain: dict[str, Any] = {"color": GREY, "linestyle": "", "marker": "o"}
        handles.append(Line2D([], [], label="claims the tolerance", **plain))
        handles.append(Line2D([], [], label="does not", markerfacecolor="white", **plain))
    longest = max(len(str(handle.get_label())) for handle in handles)
    columns = max(1, min(len(handles), int(figure.get_figwidth() * 11) // (longest + 8)))
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, frameon=False)


def _saved(figure: Figure, path: str | os.PathLike[str] | None) -> Figure:
    if path is not None:
        figure.savefig(path)
    return figure
