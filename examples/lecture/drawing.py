"""Pictures as data: lines, dots and areas on axes, which `drawing.js` draws in any browser.

In a page the script is there once. A notebook runs no script of a cell, so that there a picture is
a page of its own, in a frame.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import marimo as mo
import numpy as np

BLUE, ORANGE, GREEN, AMBER, GRAY = "#0072B2", "#D55E00", "#009E73", "#E69F00", "#8C8C8C"
"""Okabe and Ito's, which color-blind readers can tell apart; seen on white and on black."""
BLACK = "currentColor"

SCRIPT = Path(__file__).with_name("drawing.js").read_text(encoding="utf-8")
STYLE = """
.moving { margin: 1rem 0; } .moving > label, .tabs legend { display: block; font-weight: 600; }
.moving input[type=range] { display: block; width: 100%; max-width: 36rem; margin: .4rem 0; }
.panels { display: flex; flex-wrap: wrap; gap: 8px; }
.panels svg { flex: 1 1 300px; min-width: 0; max-width: 560px; height: auto;
  font: 15px system-ui, sans-serif; }
.tabs { display: flex; flex-wrap: wrap; gap: .3rem; border: 0; padding: 0; margin: .4rem 0; }
.tabs input { position: absolute; opacity: 0; }
.tabs label { border: 1px solid currentColor; border-radius: 6px; padding: .2rem .7rem; }
.tabs label:has(:checked) { font-weight: 700; border-width: 2px; }
.tabs label:has(:focus-visible) { outline: 3px solid #1f5fa8; }
"""
PROGRAM = f"<style>{STYLE}</style><script>{SCRIPT}</script>"
"""What a page needs once, below its pictures."""
FRAME_STYLE = """
:root { color-scheme: light dark; } body { margin: 0; font: 16px/1.5 system-ui, sans-serif; }
"""
FRAME_SCRIPT = """
const fit = () => { frameElement.style.height = `${document.body.scrollHeight + 8}px`; };
if (window.frameElement) { addEventListener("resize", fit); fit(); }
"""

Axis = tuple[str, float, float]


class Panel:
    """Axes, each with its name and ends, and what is drawn on them.

    `names` is the legend, by colors; `ticks` names places on an axis; `log` has the logarithmic
    axes, as in "xy"; `square` makes the axes equally long; `alt` says what else is seen.
    """

    def __init__(
        self,
        title: str,
        x: Axis,
        y: Axis,
        names: Mapping[str, str] | None = None,
        ticks: Mapping[str, Mapping[float, str]] | None = None,
        **look: Any,
    ) -> None:
        given = {axis: list(named.items()) for axis, named in (ticks or {}).items()}
        self.axes = {"title": title, "x": x, "y": y, "names": names or {}, "ticks": given, **look}
        self.marks: list[dict[str, Any]] = []

    def line(self, x: Any, y: Any, color: str, dash: str = "", width: float = 2.5) -> None:
        """A line through points; NaN leaves a gap."""
        self._add("line", x, y, color=color, dash=dash, width=width)

    def dots(self, x: Any, y: Any, color: str, size: float = 5, hollow: bool = False) -> None:
        """Disks, or circles, at points."""
        self._add("dots", x, y, color=color, width=size, hollow=hollow)

    def area(self, x: Any, low: Any, high: Any, color: str, opacity: float = 0.25) -> None:
        """What lies between two curves."""
        self._add("area", x, low, color=color, opacity=opacity, high=_numbers(high, x))

    def bar(self, x: Sequence[float], y: Sequence[float], color: str, opacity: float = 0.8) -> None:
        """A rectangle between two places on each axis."""
        self.area(x, y[0], y[1], color, opacity)

    def write(self, x: float, y: float, words: str) -> None:
        """Words at a point."""
        self._add("words", x, y, words=words)

    def _add(self, kind: str, x: Any, y: Any, **look: Any) -> None:
        self.marks.append({"kind": kind, "xs": _numbers(x, y), "ys": _numbers(y, x), **look})


def _numbers(values: Any, like: Any) -> list[float | None]:
    """Four digits of each number, as many as the others; nothing for NaN."""
    values, _ = np.broadcast_arrays(np.asarray(values, dtype=float), like)
    return [None if np.isnan(v) else float(f"{v:.4g}") for v in np.atleast_1d(values)]


class Framed(mo.Html):
    """HTML with style and script of its own."""

    def __init__(self, body: str, style: str, script: str, title: str) -> None:
        self.body = body
        page = f"<style>{FRAME_STYLE}{style}</style>{body}<script>{script}{FRAME_SCRIPT}</script>"
        super().__init__(
            f'<iframe title="{escape(title)}" srcdoc="{escape(page, quote=True)}" '
            'style="width:100%;height:460px;border:0"></iframe>'
        )


class Moving(Framed):
    """Panels below a slider with these positions, or below tabs if they are names."""

    def __init__(
        self,
        label: str,
        positions: Sequence[Any],
        start: Any,
        draw: Callable[[Any], Sequence[Panel]],
    ) -> None:
        pool: dict[str, int] = {}

        def number(entry: Any) -> int:
            return pool.setdefault(json.dumps(entry, ensure_ascii=False, default=float), len(pool))

        panels = [
            [
                number(panel.axes | {"marks": [number(mark) for mark in panel.marks]})
                for panel in drawn
            ]
            for drawn in map(draw, positions)
        ]
        tabs = isinstance(start, str)
        data = {
            "positions": [str(each) if tabs else f"{each:g}" for each in positions],
            "start": list(positions).index(start),
            "label": label,
            "tabs": tabs,
            "panels": panels,
        }
        written = json.dumps(data, ensure_ascii=False)[:-1] + f', "pool": [{",".join(pool)}]}}'
        written = written.replace("</", "<\\/")
        data = f'<script type="application/json">{written}</script>'
        super().__init__(f'<div class="moving">{data}</div>', STYLE, SCRIPT, label)
        self.first = draw(start)[0]

    def offline_html(self) -> str:
        """The same for a page that has the script."""
        return self.body

    def panel(self, number: int) -> str:
        """One of the panels alone."""
        return self.body.replace('class="moving"', f'class="moving" data-panel="{number}"', 1)


def pictures(title: str, *panels: Panel) -> Framed:
    """Panels that stay as they are."""
    return Moving(title, [0], 0, lambda _: panels)
