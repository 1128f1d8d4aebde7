"""What every script of the gallery does at its end: save its picture, large and small.

Run as a command it draws all pictures and thumbnails of the gallery, and that of the README.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from textwrap import fill

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.category import StrCategoryLocator
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FixedLocator, LogLocator, MaxNLocator, NullLocator

from seraph_cvx.plots.style import picture_bytes

FOLDER = Path(__file__).resolve().parent
THUMBNAIL_WIDTH = 400
"""In pixels."""
TEXT_SIZE, TITLE_SIZE = 6, 7
"""The text sizes of a thumbnail, in points: at 120 dots per inch, ten and twelve pixels."""
LETTER, MARGIN = 6, 35
"""The width of a letter of a thumbnail's titles, and what lies between them, in pixels."""
WORD = 17
"""The longest name at a tick, in letters."""
NAMED = (FixedLocator, NullLocator, StrCategoryLocator)
"""Where the ticks of an axis are chosen by hand."""
LEAST_HEIGHT = 0.5
"""Of a thumbnail, as a share of its width."""


def save(draw: Callable[[], Figure], script: str, arguments: Sequence[str] | None = None) -> Path:
    """Draw to --out, by default NAME.png in the current folder, and again for --thumbnail."""
    name = Path(script).stem
    parser = argparse.ArgumentParser(prog=f"{name}.py", description="Check a claim and draw it.")
    parser.add_argument("--out", type=Path, default=Path(f"{name}.png"), help="where to draw")
    parser.add_argument("--thumbnail", type=Path, help=f"also {THUMBNAIL_WIDTH} pixels wide, here")
    chosen = parser.parse_args(arguments)
    chosen.out.write_bytes(picture_bytes(draw(), "png"))
    if chosen.thumbnail is not None:
        small = make_small(draw())
        chosen.thumbnail.write_bytes(picture_bytes(small, "png", small.dpi))
    return Path(chosen.out)


def make_small(figure: Figure) -> Figure:
    """Lay a figure out for a thumbnail: few ticks, no legend, short texts of a legible size."""
    width, height = figure.get_size_inches()
    inches = THUMBNAIL_WIDTH / figure.dpi
    scale = inches / width
    figure.set_size_inches(inches, inches * max(LEAST_HEIGHT, height / width))
    figure.suptitle("").set_in_layout(False)
    for legend in figure.legends:
        legend.remove()
    is_alone = len([ax for ax in figure.axes if ax.get_subplotspec() is not None]) == 1
    for ax in figure.axes:
        if ax.get_legend() is not None:
            ax.get_legend().remove()
        _make_texts_small(ax, keep_labels=is_alone)
        _thin_out_ticks(ax.xaxis)
        _thin_out_ticks(ax.yaxis)
        for line in ax.lines:
            thin = max(0.8, 2.0 * scale * line.get_linewidth())
            line.set(markersize=2.0 * scale * line.get_markersize(), linewidth=thin)
            if line.get_path_effects():
                line.set_path_effects([withStroke(linewidth=thin + 1.0, foreground="white")])
        for points in ax.collections:
            if isinstance(points, PathCollection):
                points.set_sizes((2.0 * scale) ** 2 * points.get_sizes())
    return figure


def _make_texts_small(ax: Axes, keep_labels: bool) -> None:
    """Break the title to the width of its panel; other texts go unless they are to be kept."""
    spec = ax.get_subplotspec()
    names = _names(ax.yaxis)
    room = MARGIN + LETTER * min(WORD, max(map(len, names), default=0))
    width = THUMBNAIL_WIDTH // (1 if spec is None else spec.get_gridspec().ncols) - room
    ax.set_title(fill(ax.get_title(), width // LETTER), fontsize=TITLE_SIZE)
    for text in (ax.xaxis.label, ax.yaxis.label, *ax.texts):
        text.set(fontsize=TEXT_SIZE, visible=keep_labels)
    ax.tick_params(which="both", labelsize=TEXT_SIZE, pad=1)


def _names(axis: Axis) -> list[str]:
    """What stands at the ticks, where they are names and not numbers of a scale."""
    named = isinstance(axis.get_major_locator(), NAMED)
    return [label.get_text() for label in axis.get_ticklabels()] if named else []


def _thin_out_ticks(axis: Axis) -> None:
    """At most three or four ticks on an axis; names are kept, but cut to a word."""
    if isinstance(axis.get_major_locator(), NAMED):
        names = [n if len(n) <= WORD else f"{n[: WORD - 1]}…" for n in _names(axis)]
        axis.set_ticks(axis.get_ticklocs(), names)
    elif axis.get_scale() == "log":
        axis.set_major_locator(LogLocator(numticks=4))
    else:
        axis.set_major_locator(MaxNLocator(3))


def main() -> None:
    """Draw every picture of the gallery, its thumbnail, and the picture of the README."""
    python = [sys.executable]
    for script in sorted(FOLDER.glob("plot_*.py")):
        file = f"{script.stem}.png"
        out = ["--out", FOLDER / "pictures" / file, "--thumbnail", FOLDER / "thumbnails" / file]
        subprocess.run([*python, script, *out], check=True)
    demo = ["-m", "seraph_cvx", "demo", "--out", FOLDER / "demo.png"]
    subprocess.run([*python, *demo], check=True)


if __name__ == "__main__":
    main()
