"""What all pictures share: colors, markers, sizes of text, figures without pyplot state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import NullFormatter
from numpy.typing import ArrayLike

PALETTE = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#F0E442",
    "#000000",
)
"""Okabe and Ito's colors, which color-blind readers can tell apart."""
LINE_COLORS = tuple(color for color in PALETTE if color != "#F0E442")
"""The colors of lines: without yellow, which is too pale on white."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
GRAY = "#8C8C8C"

SLIDE_WIDTH = 32.0 / 3.0
"""The width of a slide in inches: 1280 pixels at the 120 dpi of :func:`new_figure`."""
TEXT_SIZE, LABEL_SIZE, TITLE_SIZE = 11, 12, 13
"""Text sizes in points: ticks and legends, axis labels, titles of panels."""
LEGEND_ENTRIES = 12
SHOWN_MARKERS = 30
"""A line of more points than this is drawn without markers."""


def new_figure(width: float, height: float, title: str = "") -> Figure:
    """Make an empty figure of `width` x `height` inches with automatic layout, without pyplot."""
    figure = Figure(figsize=(width, height), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    if title:
        figure.suptitle(legible(title, 100), fontsize=14, fontweight="bold")
    return figure


def legible(text: str, width: int) -> str:
    """Cut a text to `width` characters, none of which matplotlib takes for markup."""
    if len(text) > width:
        text = f"{text[: width - 9]} ... {text[-4:]}"
    text = text.replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


def enlarge_text(ax: Axes, title_size: float = TITLE_SIZE) -> None:
    """Make title, labels and ticks large enough for a slide."""
    ax.title.set_fontsize(title_size)
    for axis in (ax.xaxis, ax.yaxis):
        axis.label.set_fontsize(LABEL_SIZE)
        axis.set_tick_params(which="both", labelsize=TEXT_SIZE)
        axis.get_offset_text().set_fontsize(TEXT_SIZE)


def use_decades(ax: Axes, values: ArrayLike) -> None:
    """Use a log scale for y, between labeled powers of ten that enclose the values."""
    logs = np.log10(np.asarray(values, dtype=np.float64))
    room = 0.15
    ax.set_yscale("log")
    ax.set_ylim(10.0 ** np.floor(logs.min() - room), 10.0 ** np.ceil(logs.max() + room))
    ax.yaxis.set_minor_formatter(NullFormatter())


def line_look(k: int, n_points: int = 1) -> dict[str, Any]:
    """The color and marker of the k-th line of `n_points` points; the first 56 all differ."""
    n_colors = len(LINE_COLORS)
    marker = MARKERS[(k + k // n_colors) % len(MARKERS)]
    return {
        "color": LINE_COLORS[k % n_colors],
        "marker": marker if n_points <= SHOWN_MARKERS else "",
        "markersize": 6,
        "linewidth": 2,
    }


def add_legend(
    target: Figure | SubFigure | Axes, handles: Sequence[Any], most: int = LEGEND_ENTRIES
) -> None:
    """Add a legend of the first `most` entries, below a figure or in axes where it hides least."""
    names = [str(handle.get_label()) for handle in handles]
    texts = names[:most]
    longest = max(map(len, texts))
    if len(names) > most:
        texts[-1] += f"   (+ {len(names) - most} more)"
    shown = list(handles)[:most]
    if isinstance(target, Axes):
        target.legend(shown, texts, fontsize=TEXT_SIZE, framealpha=0.85)
        return
    inches = target.bbox.width / target.dpi
    columns = max(1, min(len(texts), int(inches * 11.0) // (longest + 8)))
    target.legend(
        shown,
        texts,
        loc="outside lower center",
        ncols=columns,
        frameon=False,
        fontsize=TEXT_SIZE,
    )
