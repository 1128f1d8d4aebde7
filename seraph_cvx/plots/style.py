"""What all pictures share: colours, markers, figures that pyplot knows nothing of."""

from __future__ import annotations

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

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
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
GREY = "#8C8C8C"


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
