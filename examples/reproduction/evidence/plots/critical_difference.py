"""Mean ranks of methods on a line, with bars that join those which do not differ."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from seraph_cvx.plots.style import PALETTE, TEXT_SIZE, legible, new_figure

from ..defaults.statistics import MeanRanks

ROW = 0.3
"""Inches between two names."""


def plot_critical_difference(
    ranks: MeanRanks,
    titles: Mapping[str, str] | None = None,
    path: str | os.PathLike[str] | None = None,
) -> Figure:
    """Draw mean ranks as Demsar (2006) does: the best on the left, bars join equals."""
    k, groups = len(ranks.names), ranks.groups
    left = (k + 1) // 2
    height = 1.5 + ROW * (left + 0.5 * len(groups))
    picture = new_figure(9.0, height)
    ax = picture.subplots()
    first_row = 0.8 + 0.5 * len(groups)
    _draw_names(ax, ranks, titles or {}, left, first_row)
    for level, group in enumerate(groups):
        ends = [ranks.ranks[ranks.names.index(name)] for name in (group[0], group[-1])]
        y = 0.6 + 0.5 * level
        ax.plot([ends[0] - 0.05, ends[1] + 0.05], [y, y], color=PALETTE[0], linewidth=4)
    low, high = 1.0, float(k)
    ax.plot([low, min(high, low + ranks.critical_difference)], [-0.8, -0.8], "k|-", linewidth=1.5)
    words = f"critical difference {ranks.critical_difference:.2f}"
    ax.text(low, -1.05, words, fontsize=TEXT_SIZE, ha="left", va="bottom")
    room = 0.34 * (high - low)
    ax.set_xlim(low - room, high + room)
    ax.set_ylim(first_row + left - 0.4, -1.8)
    ax.spines[["left", "right", "bottom"]].set_visible(False)
    ax.spines["top"].set_bounds(low, high)
    ax.spines["top"].set_position(("data", 0.0))
    ax.xaxis.tick_top()
    ax.set_xticks(np.arange(1, k + 1))
    ax.set_yticks([])
    ax.set_xlabel(f"mean rank over {ranks.n_sets} data sets", fontsize=TEXT_SIZE)
    if path is not None:
        picture.savefig(path)
    return picture


def _draw_names(
    ax: Axes, ranks: MeanRanks, titles: Mapping[str, str], left: int, first_row: float
) -> None:
    """Write the better half of the names on the left, the others on the right, best on top."""
    k = len(ranks.names)
    look: dict[str, Any] = {"color": "black", "linewidth": 0.8}
    for j, (name, rank) in enumerate(zip(ranks.names, ranks.ranks, strict=True)):
        on_left = j < left
        y = first_row + (j if on_left else k - 1 - j)
        edge = 1.0 - 0.02 * k if on_left else k + 0.02 * k
        ax.plot([rank, rank, edge], [0.0, y, y], **look)
        text = f"{legible(titles.get(name, name), 30)}  {rank:.1f}"
        side = "right" if on_left else "left"
        ax.text(edge, y, f" {text} ", fontsize=TEXT_SIZE, ha=side, va="center")
