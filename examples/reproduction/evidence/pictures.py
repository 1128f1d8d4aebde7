"""Pictures of the evidence: Figures 1 to 3 of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator, NullFormatter

from seraph_cvx.datasets import Sampling
from seraph_cvx.numerics.psd_cone import factor
from seraph_cvx.plots.regions import shade_regions
from seraph_cvx.plots.style import (
    LINE_COLORS,
    MARKERS,
    PALETTE,
    SLIDE_WIDTH,
    TEXT_SIZE,
    enlarge_text,
    new_figure,
)

from .figures import LearnedPanel
from .methods import METHODS, method_title
from .tasks import TASKS, classify

CAPTIONS = {
    1: "Figure 1. Posterior sparsity: μ = 10 · #(S ∪ D) / #U, λ = 0",
    2: "Figure 2. Projection sparsity: μ = 0, λ = 300",
}
MARGIN = 0.08
"""The margin around the points of Figures 1 and 2, as a share of their extent."""

FAMILIES = {
    "Other methods": tuple(METHODS)[:7],
    "SERAPH by EM, to convergence": (*tuple(METHODS)[7:11], "sharp"),
    "SERAPH, stopped early": (*tuple(METHODS)[11:15], "three-steps"),
    "SERAPH, accelerated": ("direct", "recommended"),
}
"""The methods of Figure 3, a panel for each family; one of the user's own is in its own family."""

OWN = "Your own"
LEGEND_DECADES = 1.6
"""Decades above the times, where the legend of each panel is."""


def plot_sparsity(figure: int, sampling: Sampling, panels: Sequence[LearnedPanel]) -> Figure:
    """Draw Figure 1 or 2: left the points as a metric sees them, right how it classifies them.

    On the left the colors are the true classes, on the right the predicted ones: of each point,
    and as a shade of the whole plane.
    """
    picture = new_figure(9.2, 3.5 * len(panels) + 0.9, CAPTIONS[figure])
    grid = picture.subplots(len(panels), 2, squeeze=False)
    classes = np.concatenate([sampling.y[sampling.labeled], sampling.y_test])
    for k, panel in enumerate(panels):
        left, right = grid[k]
        what = "Original data" if k == 0 else f"Projected by {panel.title}"
        left.set_title(f"({'ace'[k]}) {what}")
        _scatter(left, panel.projected, classes, sampling)
        left.set_aspect("equal", adjustable="datalim")
        left.margins(MARGIN)
        name = "x" if k == 0 else r"(A^{1/2}x)"
        left.set(xlabel=f"${name}_1$", ylabel=f"${name}_2$")
        right.set_title(f"({'bdf'[k]}) 1-NN, {panel.title}: {panel.error:.0f} % wrong")
        _shade(right, sampling, panel)
        _scatter(right, sampling.X, panel.predicted, sampling)
        wrong = sampling.X[panel.predicted != classes]
        right.plot(*wrong.T, "o", color="black", markersize=9, markerfacecolor="none")
        right.set(xlabel="$x_1$", ylabel="$x_2$")
        for ax in (left, right):
            enlarge_text(ax)
            ax.title.set_fontsize(TEXT_SIZE)
    _explain(picture)
    return picture


def _shade(ax, sampling, panel):
    """Shade the plane by the class of the labeled point that is nearest under the metric."""
    predict = partial(classify, sampling, factor(panel.metric))
    low, high = sampling.X.min(axis=0), sampling.X.max(axis=0)
    margin = MARGIN * np.max(high - low)
    shade_regions(ax, predict, low - margin, high + margin)


LARGE = {"s": 110, "edgecolors": "black", "linewidths": 1.2, "zorder": 3}
"""How labeled points look."""


def _scatter(ax, points, classes, sampling):
    """Scatter points colored by class; the labeled ones, which come first, are large."""
    for known, look in ((False, {"s": 18, "linewidths": 0}), (True, LARGE)):
        for c in (0, 1):
            chosen = (sampling.labeled == known) & (classes == c)
            ax.scatter(*points[chosen].T, c=PALETTE[c], marker=MARKERS[c], **look)


def _explain(picture):
    black = {"markeredgecolor": "black", "marker": "o"}
    looks: dict[str, dict[str, Any]] = {
        "class 1": {"color": PALETTE[0], "marker": MARKERS[0]},
        "class 2": {"color": PALETTE[1], "marker": MARKERS[1]},
        "labeled (large)": black | {"color": "white", "markersize": 10},
        "classified wrongly": black | {"markerfacecolor": "none", "markersize": 8},
    }
    handles: list[Any] = [
        Line2D([], [], linestyle="", label=label, **look) for label, look in looks.items()
    ]
    handles.append(Patch(color="#D9D9D9", label="shade: predicted class"))
    look: dict[str, Any] = {"ncols": 5, "frameon": False, "fontsize": TEXT_SIZE}
    picture.legend(handles=handles, loc="outside lower center", columnspacing=1.2, **look)


def plot_times(times: pd.DataFrame) -> Figure:
    """Draw Figure 3: the mean seconds of learning per run, by task, a panel for each family."""
    if times.isna().all(axis=None):
        raise ValueError("No run is done, so there are no times to draw.")
    families = {name: [m for m in times.index if m in FAMILIES[name]] for name in FAMILIES}
    families[OWN] = [method for method in times.index if method not in METHODS]
    families = {name: members for name, members in families.items() if members}
    columns = min(2, len(families))
    rows = -(-len(families) // columns)
    width = SLIDE_WIDTH if columns == 2 else 7.6
    picture = new_figure(width, 3.7 * rows + 0.6, "Figure 3. Computation time per run")
    grid = picture.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    for ax, (title, methods) in zip(grid.flat, families.items(), strict=False):
        _draw_family(ax, times, methods)
        ax.set_title(title)
        enlarge_text(ax)
    for ax in grid.flat[len(families) :]:
        ax.set_visible(False)
    for ax in grid[:, 0]:
        ax.set_ylabel("seconds per run")
    names = [TASKS[task].title for task in times]
    for ax in grid[-1]:
        ax.set_xticks(range(len(names)), names, rotation=90 if len(names) > 3 else 0)
    return picture


def _draw_family(ax, times, methods):
    """Draw the methods of a family, and the range of all methods as a pale band behind them."""
    places = np.arange(times.shape[1])
    ax.fill_between(
        places, times.min(), times.max(), color="#E4E4E4", linewidth=0, label="all methods"
    )
    for k, method in enumerate(methods):
        label = method_title(method).removeprefix("SERAPH ")
        known = times.loc[method].notna()
        color, marker = LINE_COLORS[k % len(LINE_COLORS)], MARKERS[k % len(MARKERS)]
        line = ax.plot(places[known], times.loc[method, known], color=color, marker=marker)[0]
        line.set(markersize=6, linewidth=1.6, label=label)
    ax.set_yscale("log")
    ends = np.log10([times.min(axis=None), times.max(axis=None)])
    ax.set_ylim(10.0 ** np.floor(ends[0] - 0.02), 10.0 ** (ends[1] + LEGEND_DECADES))
    ax.set_xlim(-0.5, len(places) - 0.5)
    ax.yaxis.set_major_locator(LogLocator(numticks=8))
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.grid(alpha=0.3)
    names = ax.get_legend_handles_labels()[1]
    columns = 3 if max(map(len, names)) <= len("all methods") else 2
    look = {"fontsize": TEXT_SIZE - 1, "frameon": False, "labelspacing": 0.3}
    ax.legend(loc="upper left", ncols=columns, columnspacing=1.0, handlelength=1.6, **look)
