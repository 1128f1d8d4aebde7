"""HTML pages that are written to a file, and small charts in SVG: no script, nothing to fetch.

The style follows the reader's choice of light or dark, and a policy forbids pages to load anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .mathml import to_mathml
from .result_table import show
from .symbols import in_symbols, prose

TICK_CHARACTER = 8.2
"""The pixels that a character of a tick's label takes at most, in the fonts of our pages."""
COLORS = ("#1f5fa8", "#c2410c", "#15803d", "#7e22ce")

STYLE = """
:root { color-scheme: light dark; --text: #1c1917; --soft: #57534e; --ground: #fafaf9;
  --card: #fff; --edge: #d6d3d1; --line: #e7e5e4; --code: #f5f5f4; --bad: #b91c1c;
  --good: #15803d; --bar: #93c5fd; }
@media (prefers-color-scheme: dark) { :root { --text: #e7e5e4; --soft: #a8a29e;
  --ground: #1c1917; --card: #292524; --edge: #57534e; --line: #44403c; --code: #1c1917;
  --bad: #fca5a5; --good: #86efac; --bar: #1d4ed8; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 66rem; margin: 2rem auto; padding: 0 1rem;
  color: var(--text); background: var(--ground); overflow-wrap: break-word; }
a { color: inherit; }
h1 { font-size: 1.7rem; margin-bottom: .2rem; } h2 { font-size: 1.25rem; margin: 0; }
article { background: var(--card); border: 1px solid var(--edge); border-radius: 8px;
  padding: 1rem 1.2rem; margin: 1.2rem 0; }
header { display: flex; gap: .8rem; align-items: baseline; flex-wrap: wrap; }
.badge { border-radius: 1rem; padding: .1rem .7rem; font-size: .85rem; font-weight: 600;
  white-space: nowrap; }
.holds { background: #dcfce7; color: #14532d; } .corrected { background: #fef3c7; color: #713f12; }
.refuted, .undecided { background: #fee2e2; color: #7f1d1d; }
.place { color: var(--soft); font-size: .9rem; margin: .1rem 0 .6rem; }
math { font-size: 1.15rem; margin: .8rem 0; padding: .35em 0; }
math { overflow-x: auto; overflow-y: hidden; }
table { border-collapse: collapse; font-size: .88rem; margin: .6rem 0; }
td, th { text-align: left; padding: .15rem .9rem .15rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; }
th { white-space: nowrap; }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.fails { color: var(--bad); font-weight: 600; } .passes { color: var(--good); }
.correction { border-left: 4px solid #d97706; padding-left: .8rem; }
pre { background: var(--code); border: 1px solid var(--line); border-radius: 6px; padding: .7rem;
  overflow-x: auto; font-size: .82rem; }
.evidence { display: flex; flex-wrap: wrap; gap: 1.5rem; align-items: flex-start; }
.evidence > div { flex: 1 1 24rem; min-width: 0; } .figures { padding-top: .6rem; }
svg { width: 100%; max-width: 30rem; height: auto; font: 12px system-ui, sans-serif; }
svg text { fill: currentColor; }
svg .title { text-anchor: middle; font-size: 13px; font-weight: 600; }
svg .axis { text-anchor: middle; } svg .tick { text-anchor: middle; font-size: 11px; }
svg .end { text-anchor: end; } svg .name { font-size: 11.5px; }
svg .grid { stroke: var(--line); } svg .frame { fill: none; stroke: #a8a29e; }
svg .line { fill: none; stroke-width: 2; }
"""

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""The content policy: the page may load nothing."""


def write_page(title: str, body: str, style: str = "", policy: str = POLICY) -> str:
    """Write a whole HTML page around its body, with CSS that only this page needs."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"/>'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}"/>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>'
        f"<title>{escape(title)}</title><style>{STYLE}{style}</style></head>"
        f"<body>{body}</body></html>\n"
    )


@cache
def templates() -> Any:
    """The Jinja2 environment of the package's templates, named by their path; text is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, loader=PackageLoader("seraph_cvx", ".")
    )
    environment.filters |= {
        "prose": lambda text: Markup(prose(text)),
        "symbols": in_symbols,
        "math": lambda latex, inline=False: Markup(to_mathml(latex, inline)),
        "svg": lambda chart: Markup(to_svg(chart)),
        "number": show,
        "pixels": "{:.1f}".format,
    }
    return environment


def fill_template(template: str, **values: Any) -> str:
    """Fill a template of this package."""
    return str(templates().get_template(template).render(values))


@dataclass(frozen=True)
class Curve:
    """A line of a chart."""

    name: str
    x: ArrayLike
    y: ArrayLike


@dataclass(frozen=True)
class Chart:
    """A small figure as data, which :func:`to_svg` draws."""

    title: str
    x_title: str
    y_title: str
    curves: Sequence[Curve]
    log_x: bool = False
    log_y: bool = False


def to_svg(chart: Chart) -> str:
    """Draw a chart as an ``<svg>`` element, without points that a logarithmic axis cannot show."""
    points = [_visible(curve, chart) for curve in chart.curves]
    x, y = np.concatenate(points).T
    up = _Axis(y, chart.log_y, 252.0, 46.0)
    left = 30.0 + TICK_CHARACTER * max((len(label) for _, label in up.ticks), default=0)
    across = _Axis(x, chart.log_x, left, 446.0)
    widths = [30.0 + 6.4 * len(curve.name) for curve in chart.curves]
    start = max(4.0, (460.0 - sum(widths)) / 2.0)
    lines = [
        {
            "name": curve.name,
            "color": COLORS[k % len(COLORS)],
            "points": list(zip(across.at(found[:, 0]), up.at(found[:, 1]), strict=True)),
            "legend": start + sum(widths[:k]),
        }
        for k, (curve, found) in enumerate(zip(chart.curves, points, strict=True))
    ]
    return fill_template("display/chart.svg", chart=chart, across=across, up=up, lines=lines)


class _Axis:
    """An axis of a chart, which maps data to pixels and chooses ticks."""

    def __init__(self, values: Any, log: bool, start: float, end: float) -> None:
        self.log, self.start, self.end = log, start, end
        scaled = np.log10(values) if log else values
        low, high = (min(scaled), max(scaled)) if len(scaled) else (-float(log), 1.0 - log)
        if low == high:
            low, high = (low - 0.3, high + 0.3) if log else (low - 0.5, high + 0.5)
        pad = 0.05 if log else 0.04 * (high - low)
        self.low, self.high = low - pad, high + pad
        ticks = _log_ticks(self.low, self.high) if log else _linear_ticks(self.low, self.high)
        self.ticks = [(float(self.at(tick)), f"{tick:.4g}" if tick else "0") for tick in ticks]

    def at(self, values: Any) -> Any:
        """Where values are, in pixels."""
        scaled = np.log10(values) if self.log else values
        return np.interp(scaled, [self.low, self.high], [self.start, self.end])


def _linear_ticks(low: float, high: float) -> Any:
    """Multiples of a round number, about four."""
    rough = (high - low) / 4.0
    power = 10.0 ** np.floor(np.log10(rough))
    step = power * min(s for s in (1.0, 2.0, 2.5, 5.0, 10.0) if s * power >= rough)
    return step * np.arange(np.ceil(low / step), np.floor(high / step) + 1.0)


def _log_ticks(low: float, high: float) -> Any:
    """Powers of ten between two exponents, about four; the ends if there is one at most."""
    first, last = np.ceil(low), np.floor(high)
    if last > first:
        return 10.0 ** np.arange(first, last + 1.0, max(1.0, (last - first) // 4.0))
    return 10.0 ** np.array([low, high])


def _visible(curve: Curve, chart: Chart) -> Any:
    """The points of a curve that the axes can show, one per row."""
    points = np.column_stack([np.asarray(curve.x, float), np.asarray(curve.y, float)])
    shown = np.isfinite(points) & (points > np.where([chart.log_x, chart.log_y], 0.0, -np.inf))
    return points[shown.all(axis=1)]
