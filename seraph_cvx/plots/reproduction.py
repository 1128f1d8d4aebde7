"""Figures 1, 2 and 3 of the paper, drawn from results."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter
from numpy.typing import NDArray

from ..datasets import Sampling
from ..experiments.protocol.tasks import TASKS
from ..experiments.results.figures import LearnedPanel
from ..experiments.results.summaries import Summary
from ..experiments.results.tables import method_title
from ..numerics.checks import UNKNOWN, FloatArray
from .style import GREY, MARKERS, PALETTE, new_figure

CAPTIONS = {
    1: "Figure 1. Posterior sparsity: mu = 10 #(S u D)/#U, lambda = 0",
    2: "Figure 2. Projection sparsity: mu = 0, lambda = 300",
}
SPREAD = 0.32
"""Half the width, in tasks, over which the methods of Figure 3 are spread side by side."""


def plot_sparsity(
    figure: int,
    sampling: Sampling,
    panels: Sequence[LearnedPanel],
    path: str | os.PathLike[str] | None = None,
) -> Figure:
    """Draw Figure 1 or 2: left the points as a metric sees them, right how it classifies them.

    Parameters
    ----------
    figure : 1 or 2
    sampling : Sampling
        Of :func:`seraph_cvx.experiments.results.figures.artificial_set`.
    panels : sequence of LearnedPanel
        A row each.
    path : path, optional
        Also save the picture to this file.

    Examples
    --------
    >>> from seraph_cvx.experiments.results.figures import artificial_set, learn_panels
    >>> drawn = plot_sparsity(2, artificial_set(2), learn_panels(2))
    >>> drawn.axes[0].get_title()
    '(a) Original data'
    """
    picture = new_figure(9.2, 3.3 * len(panels) + 0.9, CAPTIONS[figure])
    grid = picture.subplots(len(panels), 2, squeeze=False)
    classes = np.concatenate([sampling.y[sampling.labeled], sampling.y_test])
    for k, panel in enumerate(panels):
        left, right = grid[k]
        what = "Original data" if k == 0 else f"Projected by {panel.title}"
        left.set_title(f"({'ace'[k]}) {what}", fontsize=10)
        _scatter(left, panel.projected, classes, sampling)
        right.set_title(f"({'bdf'[k]}) 1-NN, {panel.title}: {panel.error:.0f} % wrong", fontsize=10)
        _scatter(right, sampling.X, panel.predicted, sampling)
        wrong = panel.predicted != classes
        right.plot(*sampling.X[wrong].T, "x", color="black", markersize=7, markeredgewidth=1.3)
    _explain(picture)
    if path is not None:
        picture.savefig(path)
    return picture


def _scatter(ax: Axes, points: FloatArray, classes: NDArray[Any], sampling: Sampling) -> None:
    """Scatter points coloured by class; the labeled ones, which come first, are large."""
    known = sampling.y != UNKNOWN
    for c in (0, 1):
        look: dict[str, Any] = {"c": PALETTE[c], "marker": MARKERS[c]}
        small = look | {"s": 16, "alpha": 0.7, "linewidths": 0}
        large = look | {"s": 110, "edgecolors": "black", "linewidths": 1.2, "zorder": 3}
        ax.scatter(*points[~known & (classes == c)].T, **small)
        ax.scatter(*points[known & (classes == c)].T, **large)
    ax.set_aspect("equal", adjustable="datalim")
    ax.margins(0.08)
    ax.tick_params(labelsize=8)


def _explain(picture: Figure) -> None:
    plain: dict[str, Any] = {"linestyle": ""}
    handles = [
        Line2D([], [], color=PALETTE[0], marker=MARKERS[0], label="class 1", **plain),
        Line2D([], [], color=PALETTE[1], marker=MARKERS[1], label="class 2", **plain),
        Line2D(
            *([], []),
            color="white",
            marker="o",
            markersize=10,
            markeredgecolor="black",
            label="labeled (large)",
            **plain,
        ),
        Line2D([], [], color="black", marker="x", label="classified wrongly", **plain),
    ]
    picture.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False)


def plot_times(summaries: Sequence[Summary], path: str | os.PathLike[str] | None = None) -> Figure:
    """Draw Figure 3: the mean seconds of learning per run, by task and method.

    Parameters
    ----------
    summaries : sequence of Summary
        Of :func:`seraph_cvx.experiments.results.summaries.summarise`; those without a time are
        left out.
    path : path, optional
        Also save the picture to this file.

    Examples
    --------
    >>> from seraph_cvx.experiments.results.summaries import summarise
    >>> row = {"task": "iris", "sampling": 0, "method": "gdm", "outcome": "done", "error": 9.0}
    >>> drawn = plot_times(summarise([row | {"seconds": 0.5, "detail": ""}]))
    >>> drawn.axes[0].get_ylabel()
    'seconds per run'
    """
    timed = [s for s in summaries if s.seconds is not None]
    if not timed:
        raise ValueError("No run is done, so there are no times to draw.")
    tasks = [name for name in TASKS if any(s.task == name for s in timed)]
    methods = list(dict.fromkeys(s.method for s in timed))
    picture = new_figure(
        max(6.5, 1.1 * len(tasks) + 1.0),
        4.6 + 0.24 * len(methods) / max(1, len(tasks) / 4),
        "Figure 3. Computation time per run",
    )
    ax = picture.subplots()
    shifts = np.linspace(-SPREAD, SPREAD, len(methods)) if len(methods) > 1 else np.zeros(1)
    for k, (method, shift) in enumerate(zip(methods, shifts, strict=True)):
        own = {s.task: float(s.seconds or 0.0) for s in timed if s.method == method}
        x = [tasks.index(task) + shift for task in own]
        look: dict[str, Any] = {
            "color": PALETTE[k % len(PALETTE)],
            "marker": MARKERS[(k + k // len(PALETTE)) % len(MARKERS)],
        }
        ax.plot(x, list(own.values()), linestyle="", label=method_title(method), **look)
    for edge in np.arange(len(tasks) - 1) + 0.5:
        ax.axvline(edge, color=GREY, linewidth=0.6, alpha=0.6)
    ax.set_yscale("log")
    ends = np.log10([min(s.seconds or 1.0 for s in timed), max(s.seconds or 1.0 for s in timed)])
    ax.set_ylim(10.0 ** np.floor(ends[0] - 0.02), 10.0 ** np.ceil(ends[1] + 0.02))
    ax.yaxis.set_major_locator(LogLocator(numticks=8))
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.set_xlim(-0.5, len(tasks) - 0.5)
    ax.set_xticks(
        range(len(tasks)),
        [TASKS[task].title.replace(" ", "\n", 1) for task in tasks],
        fontsize=9,
    )
    ax.set_ylabel("seconds per run")
    ax.grid(axis="y", alpha=0.3)
    columns = max(1, int(picture.get_figwidth() * 11) // 34)
    picture.legend(loc="outside lower center", ncols=min(columns, len(methods)), frameon=False)
    if path is not None:
        picture.savefig(path)
    return picture
