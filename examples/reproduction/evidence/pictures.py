"""Pictures of the evidence: Figures 1 to 3 of the paper, and mean ranks of methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator, NullFormatter

from seraph_cvx.datasets import Sampling
from seraph_cvx.numerics.psd_cone import factor
from seraph_cvx.plots.regions import shade_regions
from seraph_cvx.plots.style import (
    MARKERS,
    PALETTE,
    SLIDE_WIDTH,
    TEXT_SIZE,
    enlarge_text,
    legible,
    line_look,
    new_figure,
)

from .figures import LearnedPanel, classify
from .methods import METHODS, method_title
from .ranking import MeanRanks
from .results import Times
from .tasks import TASKS

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

ROW = 0.3
"""Inches between two names at the ranks."""


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
            enlarge_text(ax, TEXT_SIZE)
    _explain(picture)
    return picture


def _shade(ax, sampling, panel):
    """Shade the plane by the class of the labeled point that is nearest under the metric."""
    predict = partial(classify, sampling, factor(panel.metric))
    low, high = sampling.X.min(axis=0), sampling.X.max(axis=0)
    margin = MARGIN * np.max(high - low)
    shade_regions(ax, predict, low - margin, high + margin)


def _scatter(ax, points, classes, sampling):
    """Scatter points colored by class; the labeled ones, which come first, are large."""
    known = sampling.labeled
    for c in (0, 1):
        look: dict[str, Any] = {"c": PALETTE[c], "marker": MARKERS[c]}
        large = {"s": 110, "edgecolors": "black", "linewidths": 1.2, "zorder": 3}
        ax.scatter(*points[~known & (classes == c)].T, s=18, linewidths=0, **look)
        ax.scatter(*points[known & (classes == c)].T, **look, **large)


def _explain(picture):
    ring = {"color": "black", "markerfacecolor": "none", "marker": "o", "markersize": 8}
    large = {"color": "white", "markeredgecolor": "black", "marker": "o", "markersize": 10}
    looks: dict[str, dict[str, Any]] = {
        "class 1": {"color": PALETTE[0], "marker": MARKERS[0]},
        "class 2": {"color": PALETTE[1], "marker": MARKERS[1]},
        "labeled (large)": large,
        "classified wrongly": ring,
    }
    handles: list[Any] = [
        Line2D([], [], linestyle="", label=label, **look) for label, look in looks.items()
    ]
    handles.append(Patch(color="#D9D9D9", label="shade: predicted class"))
    look: dict[str, Any] = {"ncols": 5, "frameon": False, "fontsize": TEXT_SIZE}
    picture.legend(handles=handles, loc="outside lower center", columnspacing=1.2, **look)


def plot_times(times: Times) -> Figure:
    """Draw Figure 3: the mean seconds of learning per run, by task, a panel for each family."""
    if not times:
        raise ValueError("No run is done, so there are no times to draw.")
    tasks = [name for name in TASKS if any(task == name for task, _ in times)]
    families = _families(list(dict.fromkeys(method for _, method in times)))
    columns = min(2, len(families))
    rows = -(-len(families) // columns)
    width = SLIDE_WIDTH if columns == 2 else 7.6
    picture = new_figure(width, 3.7 * rows + 0.6, "Figure 3. Computation time per run")
    grid = picture.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    for ax, (title, methods) in zip(grid.flat, families.items(), strict=False):
        _draw_family(ax, tasks, times, methods)
        ax.set_title(title)
        enlarge_text(ax)
    for ax in grid.flat[len(families) :]:
        ax.set_visible(False)
    for ax in grid[:, 0]:
        ax.set_ylabel("seconds per run")
    names = [TASKS[task].title for task in tasks]
    for ax in grid[-1]:
        ax.set_xticks(range(len(tasks)), names, rotation=90 if len(tasks) > 3 else 0)
    return picture


def _families(methods):
    """The families of these methods, without those of which there is none."""
    known = {method for members in FAMILIES.values() for method in members}
    families = FAMILIES | {OWN: tuple(method for method in methods if method not in known)}
    chosen = {name: [m for m in members if m in methods] for name, members in families.items()}
    return {name: members for name, members in chosen.items() if members}


def _draw_family(ax, tasks, times, methods):
    """Draw the methods of a family, and the range of all methods as a pale band behind them."""
    every = [[s for (name, _), s in times.items() if name == task] for task in tasks]
    low, high = [min(seconds) for seconds in every], [max(seconds) for seconds in every]
    ax.fill_between(range(len(tasks)), low, high, color="#E4E4E4", linewidth=0, label="all methods")
    for k, method in enumerate(methods):
        label = method_title(method).removeprefix("SERAPH ")
        own = [j for j, task in enumerate(tasks) if (task, method) in times]
        seconds = [times[tasks[j], method] for j in own]
        ax.plot(own, seconds, **line_look(k) | {"label": label, "linewidth": 1.6})
    ax.set_yscale("log")
    ends = np.log10([min(times.values()), max(times.values())])
    ax.set_ylim(10.0 ** np.floor(ends[0] - 0.02), 10.0 ** (ends[1] + LEGEND_DECADES))
    ax.set_xlim(-0.5, len(tasks) - 0.5)
    ax.yaxis.set_major_locator(LogLocator(numticks=8))
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.grid(alpha=0.3)
    names = ax.get_legend_handles_labels()[1]
    columns = 3 if max(map(len, names)) <= len("all methods") else 2
    look: dict[str, Any] = {"fontsize": TEXT_SIZE - 1, "frameon": False, "labelspacing": 0.3}
    ax.legend(loc="upper left", ncols=columns, columnspacing=1.0, handlelength=1.6, **look)


def plot_critical_difference(ranks: MeanRanks, titles: Mapping[str, str]) -> Figure:
    """Draw mean ranks as Demsar (2006) does: the best on the left, bars join equals."""
    k, groups = len(ranks.names), ranks.groups
    left = (k + 1) // 2
    picture = new_figure(9.0, 1.5 + ROW * (left + 0.5 * len(groups)))
    ax = picture.subplots()
    first_row = 0.8 + 0.5 * len(groups)
    for j, (name, rank) in enumerate(zip(ranks.names, ranks.ranks, strict=True)):
        on_left = j < left  # the better half, the best on top; the others on the right
        y = first_row + (j if on_left else k - 1 - j)
        edge = 1.0 - 0.02 * k if on_left else k + 0.02 * k
        ax.plot([rank, rank, edge], [0.0, y, y], color="black", linewidth=0.8)
        text = f" {legible(titles.get(name, name), 30)}  {rank:.1f} "
        side = "right" if on_left else "left"
        ax.text(edge, y, text, fontsize=TEXT_SIZE, ha=side, va="center")
    for level, group in enumerate(groups):
        ends = [ranks.ranks[ranks.names.index(name)] for name in (group[0], group[-1])]
        y = 0.6 + 0.5 * level
        ax.plot([ends[0] - 0.05, ends[1] + 0.05], [y, y], color=PALETTE[0], linewidth=4)
    low, high = 1.0, float(k)
    ax.plot([low, min(high, low + ranks.critical_difference)], [-0.8, -0.8], "k|-", linewidth=1.5)
    words = f"critical difference {ranks.critical_difference:.2f}"
    ax.text(low, -1.05, words, fontsize=TEXT_SIZE, ha="left", va="bottom")
    margin = 0.34 * (high - low)
    ax.set_xlim(low - margin, high + margin)
    ax.set_ylim(first_row + left - 0.4, -1.8)
    ax.spines[["left", "right", "bottom"]].set_visible(False)
    ax.spines["top"].set_bounds(low, high)
    ax.spines["top"].set_position(("data", 0.0))
    ax.xaxis.tick_top()
    ax.set_xticks(np.arange(1, k + 1))
    ax.set_yticks([])
    ax.set_xlabel(f"mean rank over {ranks.n_sets} data sets", fontsize=TEXT_SIZE)
    return picture
