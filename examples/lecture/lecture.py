"""What the chapters share: typeset formulas, and pictures that a slider moves."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from html import escape
from io import BytesIO
from typing import Any

import marimo as mo
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from sklearn.datasets import load_iris
from sklearn.preprocessing import StandardScaler

from seraph_cvx.display.formulas import Formula
from seraph_cvx.display.symbols import prose
from seraph_cvx.plots.style import GRAY as GRAY
from seraph_cvx.plots.style import PALETTE, enlarge_text, new_figure

BLUE, ORANGE, GREEN, _, AMBER, *_ = PALETTE
CARD = "overflow-x:auto;overflow-y:hidden;border-left:4px solid #93c5fd;padding-left:.8rem"


COMPUTED_BY = {
    "The probability of a pair's label": "posterior",
    "The objective": "simplified_objective",
    "The M-step": "m_step",
    "The E-step": "e_step",
}
"""The functions of `seraph_cvx/paper.py` that compute the numbered formulas."""


def formulas(*shown: Formula) -> mo.Html:
    """Formulas of the package, each under its name; `data-latex` is for Jupyter."""
    cards = []
    for each in shown:
        latex = escape(each.latex.replace("\n", "$$ $$"), quote=True)
        math = each.mathml.replace("<math ", '<math style="padding:.4rem 0" ')
        has_sets = "pairs" in each.where  # then S, D and U are those of the paper, F and L too
        where = f"<small>{prose(each.where, has_sets)}</small>" if each.where else ""
        cards.append(
            f'<div class="formula" data-latex="$${latex}$$" style="{CARD}" tabindex="0"><b>'
            f"{escape(each.title)}</b>{_in_python(each.name)}{math}{where}</div>"
        )
    return mo.Html("".join(cards))


def _in_python(name: str) -> str:
    function = COMPUTED_BY.get(name)
    return f", in Python <code>seraph_cvx.paper.{function}</code>" if function else ""


def floor(value: float, digits: int) -> str:
    """So many digits of a number, rounded down: what is printed of a lower bound still is one."""
    return _rounded(value, digits, ROUND_FLOOR)


def ceiling(value: float, digits: int) -> str:
    """So many digits of a number, rounded up."""
    return _rounded(value, digits, ROUND_CEILING)


def _rounded(value: float, digits: int, rounding: str) -> str:
    decimal = Context(digits, rounding).create_decimal_from_float(value)
    return f"{float(decimal) + 0.0:.{digits}g}".replace("inf", "∞").replace("-", "−")


def enclosure(lower: float, upper: float, digits: int) -> str:
    """A proved interval with so many digits, rounded outward."""
    return f"[{floor(lower, digits)}, {ceiling(upper, digits)}]"


def some_irises(every: int = 3, standardized: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Every third iris, 50 in all; three of each kind with a label, the others with -1."""
    points, kinds = load_iris(return_X_y=True)
    points, kinds = points[::every], kinds[::every]
    labels = np.full(len(points), -1)
    for kind in range(3):
        found = np.flatnonzero(kinds == kind)
        labels[found[:: -(-len(found) // 3)]] = kind
    return StandardScaler().fit_transform(points) if standardized else points, labels


def panel(title: str, x: str, y: str) -> tuple[Figure, Axes]:
    """A figure with one panel, half a slide wide; on a phone it fills the screen."""
    figure = new_figure(5.0, 4.0)
    figure.set_layout_engine("tight", rect=None)  # one axis needs no more, nor a second pass
    ax = figure.add_subplot()
    ax.set(title=title, xlabel=x, ylabel=y)
    ax.grid(alpha=0.3)
    ax.set_prop_cycle(color=PALETTE, linewidth=[2.5] * len(PALETTE))
    enlarge_text(ax)
    return figure, ax


def pictures(figures: Sequence[Figure]) -> str:
    """Figures as HTML, beside each other where there is room."""
    images = []
    for figure in figures:
        file = BytesIO()
        FigureCanvasSVG(figure).print_svg(file)  # savefig draws a figure with a layout twice
        source = f"data:image/svg+xml;base64,{b64encode(file.getvalue()).decode()}"
        style = "flex:1 1 300px;min-width:0;max-width:560px"
        images.append(f'<img src="{source}" alt="{_in_words(figure.axes[0])}" style="{style}">')
    return f'<div style="display:flex;flex-wrap:wrap;gap:8px">{"".join(images)}</div>'


def _in_words(ax: Axes) -> str:
    """What a picture shows, for those who cannot see it."""
    axes = ((ax.get_xlabel(), "to the right"), (ax.get_ylabel(), "upwards"))
    parts = [ax.get_title(), *(f"{name} {way}" for name, way in axes if name)]
    return escape("; ".join(parts), quote=True)


class Moving(mo.Html):
    """Figures below their slider, which is made with `steps`; `draw` takes one of them."""

    def __init__(self, label: str, slider: Any, draw: Callable[[float], Sequence[Figure]]) -> None:
        self.label, self.slider, self.draw = label, slider, draw
        self.shown = pictures(draw(slider.value))
        value = f"<b>{slider.value:g}</b>"
        super().__init__(f"<div>{escape(label)} {value} {slider}</div>{self.shown}")

    def offline_html(self, most: int) -> str:
        """The same for a page without Python: at most so many figures; a slider shows one."""
        steps, first = self.slider.steps, self.slider.steps.index(self.slider.value)
        chosen = np.linspace(0, len(steps) - 1, min(most, len(steps))).round().astype(int)
        start = int(np.argmin(np.abs(chosen - first)))
        chosen[start] = first
        frames = "".join(
            f'<div class="frame" data-value="{steps[at]:g}"{"" if at == first else " hidden"}>'
            f"{self.shown if at == first else pictures(self.draw(steps[at]))}</div>"
            for at in chosen
        )
        return (
            f'<div class="moving"><label>{escape(self.label)} '
            f"<output>{self.slider.value:g}</output>"
            f'<input type="range" min="0" max="{len(chosen) - 1}" value="{start}"'
            f' aria-valuetext="{self.slider.value:g}">'
            f"</label>{frames}</div>"
        )
