"""What all pictures share: colors, markers, sizes of text, figures without pyplot, and files."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullFormatter
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
"""The most names in a legend: more would take half of a slide."""
UNLABELED = "unlabeled"
"""What a legend calls points of unknown class."""

UNDATED: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
"""The metadata that keep the date out of a file, by its ending."""


def new_figure(width: float, height: float, title: str = "") -> Figure:
    """Make an empty figure of `width` x `height` inches with automatic layout, without pyplot."""
    figure = Figure(figsize=(width, height), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    if title:
        figure.suptitle(legible(title, 100), fontsize=14, fontweight="bold")
    return figure


def picture_bytes(figure: Figure, ending: str) -> bytes:
    """Write a figure as PNG with the dots per inch of a page, or as SVG or PDF.

    The same figure gives the same bytes: there is no date in them.
    """
    content = io.BytesIO()
    resolution: Any = 96 if ending == "png" else "figure"
    with rc_context({"svg.fonttype": "path", "svg.hashsalt": "seraph-cvx"}):
        figure.savefig(content, format=ending, dpi=resolution, metadata=UNDATED.get(ending))
    return content.getvalue()


def legible(text: str, width: int) -> str:
    """Cut a text to `width` characters, which matplotlib takes for no markup."""
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


def use_integers(axis: Axis) -> None:
    """Put the ticks of an axis at integers."""
    axis.set_major_locator(MaxNLocator(integer=True, nbins=6, min_n_ticks=1))


def use_decades(ax: Axes, values: ArrayLike) -> None:
    """Use a log scale for y, between labeled powers of ten that enclose the finite values."""
    logs = np.log10(np.asarray(values, dtype=np.float64))
    low, high = np.floor(np.nanmin(logs) - 0.15), np.ceil(np.nanmax(logs) + 0.15)
    ax.set(yscale="log", ylim=(10.0**low, 10.0**high))
    ax.yaxis.set_minor_formatter(NullFormatter())


def add_legend(figure: Figure, axes: Iterable[Axes]) -> None:
    """Add a legend of the first labels in the axes below a figure; where there is none, nothing.

    A label that several artists have is shown once.
    """
    named: dict[str, Any] = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            named.setdefault(label, handle)
    texts, handles = list(named)[:LEGEND_ENTRIES], list(named.values())[:LEGEND_ENTRIES]
    if not texts:
        return
    letters = int(figure.bbox.width / figure.dpi * 11.0)
    columns = max(1, min(len(texts), letters // (max(map(len, texts)) + 8)))
    if len(named) > LEGEND_ENTRIES:
        texts[-1] += f"   (+ {len(named) - LEGEND_ENTRIES} more)"
    place: dict[str, Any] = {"loc": "outside lower center", "ncols": columns, "frameon": False}
    figure.legend(handles, texts, fontsize=TEXT_SIZE, **place)
