"""What all pictures share: colours, markers, sizes of text, figures without pyplot state."""

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
"""Okabe and Ito's colours, told apart by colour-blind readers."""
LINE_COLOURS = tuple(colour for colour in PALETTE if colour != "#F0E442")
"""Without the yellow, which is too pale for a line on white."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
GREY = "#8C8C8C"

SLIDE_WIDTH = 32.0 / 3.0
"""In inches: 1280 pixels at the 120 dots an inch of :func:`new_figure`."""
TEXT_SIZE, LABEL_SIZE, TITLE_SIZE = 11, 12, 13
"""In points: ticks and legends, axis labels, titles of panels."""
LEGEND_ENTRIES = 12
SHOWN_MARKERS = 30
"""A line of more points than this is drawn without markers."""


def new_figure(width: float, height: float, title: str = "") -> Figure:
    """An empty figure of `width` x `height` inches that lays itself out; no pyplot state."""
    figure = Figure(figsize=(width, height), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    if title:
        figure.suptitle(legible(title, 100), fontsize=14, fontweight="bold")
    return figure


def legible(text: str, width: int) -> str:
    """At most `width` characters, none of which matplotlib takes for a command."""
    if len(text) > width:
        text = f"{text[: width - 9]} ... {text[-4:]}"
    text = text.replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


def enlarge_text(ax: Axes) -> None:
    """Make title, labels and ticks large enough for a slide."""
    ax.title.set_fontsize(TITLE_SIZE)
    for axis in (ax.xaxis, ax.yaxis):
        axis.label.set_fontsize(LABEL_SIZE)
        axis.set_tick_params(which="both", labelsize=TEXT_SIZE)
        axis.get_offset_text().set_fontsize(TEXT_SIZE)


def use_decades(ax: Axes, values: ArrayLike) -> None:
    """A log scale for y from one power of ten to another, both beyond the values and labelled."""
    logs = np.log10(np.asarray(values, dtype=np.float64))
    room = 0.15
    ax.set_yscale("log")
    ax.set_ylim(10.0 ** np.floor(logs.min() - room), 10.0 ** np.ceil(logs.max() + room))
    ax.yaxis.set_minor_formatter(NullFormatter())


def line_look(k: int, n_points: int = 1) -> dict[str, Any]:
    """Colour and marker of the k-th line of `n_points` points; the first 56 all differ."""
    n_colours = len(LINE_COLOURS)
    marker = MARKERS[(k + k // n_colours) % len(MARKERS)]
    return {
        "color": LINE_COLOURS[k % n_colours],
        "marker": marker if n_points <= SHOWN_MARKERS else "",
        "markersize": 6,
        "linewidth": 2,
    }


def add_legend(
    target: Figure | SubFigure | Axes, handles: Sequence[Any], most: int = LEGEND_ENTRIES
) -> None:
    """A legend below a figure, or in an axis where it hides least; of `most` entries, the first."""
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
