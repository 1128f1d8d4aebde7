"""Small charts as plain data, and as inline SVG: no library, no script, no network."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from .symbols import in_symbols

WIDTH, HEIGHT = 460, 300
LEFT, RIGHT, TOP, BOTTOM = 64, 14, 46, 48
COLORS = ("#1f5fa8", "#c2410c", "#15803d", "#7e22ce")


@dataclass(frozen=True)
class Curve:
    """A line of a chart."""

    name: str
    x: Sequence[float]
    y: Sequence[float]


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
    """Draw a chart as an ``<svg>`` element, without points that a logarithmic axis cannot show.

    Examples
    --------
    >>> to_svg(Chart("f", "x", "y", [Curve("f", [0.0, 1.0], [0.0, 2.0])]))[:4]
    '<svg'
    """
    curves = [_visible(curve, chart) for curve in chart.curves]
    across = _Axis([x for curve in curves for x in curve.x], chart.log_x, LEFT, WIDTH - RIGHT)
    up = _Axis([y for curve in curves for y in curve.y], chart.log_y, HEIGHT - BOTTOM, TOP)
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{_words(chart.title)}">',
        _text(WIDTH / 2, 16, chart.title, "title"),
        *(_x_tick(across, tick) for tick in across.ticks),
        *(_y_tick(up, tick) for tick in up.ticks),
        f'<rect x="{LEFT}" y="{TOP}" width="{WIDTH - LEFT - RIGHT}" '
        f'height="{HEIGHT - TOP - BOTTOM}" class="frame"></rect>',
        _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, chart.x_title, "axis"),
        f'<text x="{-(TOP + HEIGHT - BOTTOM) / 2:.1f}" y="14" transform="rotate(-90)" '
        f'class="axis">{_words(chart.y_title)}</text>',
    ]
    for k, curve in enumerate(curves):
        parts += _line(curve, across, up, COLORS[k % len(COLORS)])
    if len(curves) > 1:
        parts += _legend(curves)
    return "".join([*parts, "</svg>"])


class _Axis:
    """An axis of a chart, which maps data to pixels and chooses ticks."""

    def __init__(self, values: Sequence[float], log: bool, start: float, end: float) -> None:
        self.log, self.start, self.end = log, start, end
        low, high = (min(values), max(values)) if values else (0.1 if log else 0.0, 1.0)
        if low == high:
            low, high = (low / 2.0, high * 2.0) if log else (low - 0.5, high + 0.5)
        pad = 0.0 if log else 0.04 * (high - low)
        self.low, self.high = self._scale(low) - pad, self._scale(high) + pad
        if log:
            self.low, self.high = self.low - 0.05, self.high + 0.05
        self.ticks = self._log_ticks() if log else self._linear_ticks()

    def _scale(self, value: float) -> float:
        return math.log10(value) if self.log else value

    def at(self, value: float) -> float:
        share = (self._scale(value) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def _linear_ticks(self) -> list[float]:
        rough = (self.high - self.low) / 4.0
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(s * power for s in (1.0, 2.0, 2.5, 5.0, 10.0) if s * power >= rough)
        first = math.ceil(self.low / step)
        count = math.floor(self.high / step) - first + 1
        return [(first + k) * step for k in range(count)]

    def _log_ticks(self) -> list[float]:
        first, last = math.ceil(self.low), math.floor(self.high)
        if last - first < 1:
            marks = [m * 10.0**k for k in range(first - 1, last + 1) for m in (1, 2, 5)]
            return [m for m in marks if self.low <= math.log10(m) <= self.high]
        step = max(1, (last - first) // 4)
        return [10.0**k for k in range(first, last + 1, step)]


def _visible(curve: Curve, chart: Chart) -> Curve:
    kept = [
        (float(x), float(y))
        for x, y in zip(curve.x, curve.y, strict=True)
        if math.isfinite(x) and math.isfinite(y)
        if (x > 0.0 or not chart.log_x) and (y > 0.0 or not chart.log_y)
    ]
    return Curve(curve.name, [x for x, _ in kept], [y for _, y in kept])


def _line(curve: Curve, across: _Axis, up: _Axis, color: str) -> list[str]:
    positions = [(across.at(x), up.at(y)) for x, y in zip(curve.x, curve.y, strict=True)]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in positions)
    parts = [f'<polyline points="{points}" class="line" stroke="{color}"></polyline>']
    if len(positions) <= 30:
        parts += [
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.6" fill="{color}"></circle>'
            for x, y in positions
        ]
    return parts


def _legend(curves: Sequence[Curve]) -> list[str]:
    """Draw the legend in a row below the title."""
    widths = [30.0 + 6.4 * len(curve.name) for curve in curves]
    x, parts = max(4.0, (WIDTH - sum(widths)) / 2.0), []
    for k, curve in enumerate(curves):
        parts.append(
            f'<line x1="{x:.1f}" y1="31" x2="{x + 16:.1f}" y2="31" class="line" '
            f'stroke="{COLORS[k % len(COLORS)]}"></line>'
            f'<text x="{x + 20:.1f}" y="35" class="name">{_words(curve.name)}</text>'
        )
        x += widths[k]
    return parts


def _x_tick(axis: _Axis, tick: float) -> str:
    x = axis.at(tick)
    line = f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{HEIGHT - BOTTOM}" class="grid"></line>'
    return line + _text(x, HEIGHT - BOTTOM + 16, _number(tick), "tick")


def _y_tick(axis: _Axis, tick: float) -> str:
    y = axis.at(tick)
    line = f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" class="grid"></line>'
    return f'{line}<text x="{LEFT - 6}" y="{y + 4:.1f}" class="tick end">{_number(tick)}</text>'


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}">{_words(text)}</text>'


def _words(text: str) -> str:
    return escape(in_symbols(text))


def _number(value: float) -> str:
    return f"{value:.4g}" if value else "0"
