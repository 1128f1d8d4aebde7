"""The pictures of a race, drawn from its rows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from ...comparison.race_table import label_of
from ..style import GREY, enlarge_text, new_figure
from .marks import FLOOR, Rows, add_solver_legend, draw_answers, floored, solver_looks
from .work_precision import plot_work_precision

__all__ = [
    "FLOOR",
    "plot_performance_profile",
    "plot_said_against_true",
    "plot_work_precision",
    "times_to_target",
]

TARGET_GAP = 1e-6


def plot_performance_profile(
    rows: Rows, path: str | os.PathLike[str] | None = None, target: float = TARGET_GAP
) -> Figure:
    """Draw Dolan and Moré's profile: the share of instances solved within a factor of the best.

    A solver's time on an instance is that of its fastest run whose true gap is within `target`.
    Where a curve ends below 1, the rest was not solved within the limits.

    Examples
    --------
    >>> row = dict(instance="iris", solver="SCS", formulation="dual", tol=1e-3, claims=True)
    >>> row |= dict(true_gap=1e-4, proved_gap=1e-2, total_seconds=0.5)
    >>> plot_performance_profile([row]).axes[0].get_ylabel()
    'share of the instances solved'
    """
    looks = solver_looks(rows)
    instances = list(dict.fromkeys(row["instance"] for row in rows))
    times = {label: times_to_target(rows, label, instances, target) for label in looks}
    best = np.min(np.array(list(times.values())), axis=0)
    solved = np.isfinite(best)
    title = f"Performance profile: solved is a true gap of {target:g}"
    figure = new_figure(7.6, 4.9, title)
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
        positions = np.geomspace(1.0, end / 1.4, 8)
        at = np.searchsorted(x, positions, side="right") - 1
        ax.plot(positions, y[at] / len(instances), linestyle="", **look)
    ax.set_xscale("log")
    ax.set_xlim(0.9, end)
    ax.set_ylim(-0.03, 1.05)
    ax.set_xlabel("time over the fastest solver's time on that instance")
    ax.set_ylabel("share of the instances solved")
    ax.grid(alpha=0.3)
    counts = {label: f"{label} ({np.isfinite(r).sum()}/{len(r)})" for label, r in ratios.items()}
    add_solver_legend(figure, looks, names=counts)
    return _saved(figure, path)


def times_to_target(
    rows: Rows, label: str, instances: Sequence[str], target: float
) -> np.ndarray[Any, np.dtype[np.float64]]:
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


def plot_said_against_true(rows: Rows, path: str | os.PathLike[str] | None = None) -> Figure:
    """Draw the gap of each answer against the tolerance that its solver was asked for.

    Left the true gap, right the gap that the answer proves of itself. Above the line an answer is
    worse than was asked for; a filled marker above it is a claim that is not true (left) or that
    the answer does not prove (right).

    Examples
    --------
    >>> row = dict(instance="iris", solver="SCS", formulation="dual", tol=1e-3, claims=True)
    >>> row |= dict(true_gap=1e-4, proved_gap=1e-2, total_seconds=0.5)
    >>> [ax.get_title() for ax in plot_said_against_true([row]).axes]
    ['of 1 claims, 0 where the gap is larger', 'of 1 claims, 1 where the gap is not proved']
    """
    looks = solver_looks(rows)
    figure = new_figure(10.2, 5.2, "Said against true: grey is worse than asked for")
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
            y = [min(floored(row[which]), 2.0) for row in own]
            draw_answers(ax, own, x, y, look)
        claims = [row for row in answers if row["claims"]]
        false = sum(row[which] > row["tol"] for row in claims)
        word = "is larger" if which == "true_gap" else "is not proved"
        ax.set_title(f"of {len(claims)} claims, {false} where the gap {word}")
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
    add_solver_legend(figure, looks, hollow=True)
    return _saved(figure, path)


def _saved(figure: Figure, path: str | os.PathLike[str] | None) -> Figure:
    for ax in figure.axes:
        enlarge_text(ax)
    if path is not None:
        figure.savefig(path)
    return figure
