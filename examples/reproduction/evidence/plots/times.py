"""Figure 3 of the paper: the seconds of learning by task, a panel for each family of methods."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from seraph_cvx.plots.style import (
    SLIDE_WIDTH,
    TEXT_SIZE,
    enlarge_text,
    line_look,
    new_figure,
    picture_bytes,
)

from ..protocol.tasks import TASKS
from ..results.tables import Times, method_title

FAMILIES: Mapping[str, tuple[str, ...]] = {
    "Other methods": ("euclidean", "gdm", "nca", "lmnn", "itml", "ldm", "mfda"),
    "SERAPH by EM, to convergence": (
        "seraph-none",
        "seraph-post",
        "seraph-proj",
        "seraph-hyper",
        "sharp",
    ),
    "SERAPH, stopped early": (
        "early-none",
        "early-post",
        "early-proj",
        "early-hyper",
        "three-steps",
    ),
    "SERAPH, accelerated": ("direct", "recommended"),
}
"""The methods by family: a panel each. A method of the user's own is in a family of its own."""

OWN = "Your own"
PALE = "#E4E4E4"
"""The color of the range of all methods, behind those of a panel."""
LEGEND_ROOM = 1.6
"""Decades above the times, where the legend of each panel is."""


def plot_times(times: Times, path: str | os.PathLike[str] | None = None) -> Figure:
    """Draw Figure 3: the mean seconds of learning per run, by task, a panel for each family."""
    if not times:
        raise ValueError("No run is done, so there are no times to draw.")
    tasks = [name for name in TASKS if any(task == name for task, _ in times)]
    families = _families(list(dict.fromkeys(method for _, method in times)))
    columns = min(2, len(families))
    rows = -(-len(families) // columns)
    picture = new_figure(
        SLIDE_WIDTH if columns == 2 else 7.6,
        3.7 * rows + 0.6,
        "Figure 3. Computation time per run",
    )
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
    if path is not None:
        Path(path).write_bytes(picture_bytes(picture, Path(path).suffix[1:]))
    return picture


def _families(methods: Sequence[str]) -> dict[str, list[str]]:
    """The families of these methods, without those of which there is none."""
    families = {name: [m for m in members if m in methods] for name, members in FAMILIES.items()}
    known = {method for members in FAMILIES.values() for method in members}
    families[OWN] = [method for method in methods if method not in known]
    return {name: members for name, members in families.items() if members}


def _draw_family(ax: Axes, tasks: Sequence[str], times: Times, methods: Sequence[str]) -> None:
    """Draw the methods of a family, and the range of all methods as a pale band behind them."""
    every = [[s for (name, _), s in times.items() if name == task] for task in tasks]
    low, high = [min(seconds) for seconds in every], [max(seconds) for seconds in every]
    ax.fill_between(range(len(tasks)), low, high, color=PALE, linewidth=0, label="all methods")
    for k, method in enumerate(methods):
        line = line_look(k) | {
            "label": method_title(method).removeprefix("SERAPH "),
            "linewidth": 1.6,
        }
        ax.plot(*_line(method, tasks, times), **line)
    ax.set_yscale("log")
    ends = np.log10([min(times.values()), max(times.values())])
    ax.set_ylim(10.0 ** np.floor(ends[0] - 0.02), 10.0 ** (ends[1] + LEGEND_ROOM))
    ax.set_xlim(-0.5, len(tasks) - 0.5)
    ax.yaxis.set_major_locator(LogLocator(numticks=8))
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.grid(alpha=0.3)
    look: dict[str, Any] = {"fontsize": TEXT_SIZE - 1, "frameon": False, "labelspacing": 0.3}
    names = ax.get_legend_handles_labels()[1]
    columns = 3 if max(map(len, names)) <= len("all methods") else 2
    ax.legend(loc="upper left", ncols=columns, columnspacing=1.0, handlelength=1.6, **look)


def _line(method: str, tasks: Sequence[str], times: Times) -> tuple[list[int], list[float]]:
    """Where a method's line goes: the tasks that have a time, and the times."""
    own = [k for k, task in enumerate(tasks) if (task, method) in times]
    return own, [times[tasks[k], method] for k in own]
