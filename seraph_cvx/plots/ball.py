"""The ball {v: v'Av = eta} of a metric in a plane, drawn to scale among points."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke

from ..checks import FloatArray
from ..psd_cone import symmetrise
from .points import is_strip
from .style import TEXT_SIZE

REACH = 100.0
"""A semi-axis ends at so many diameters of the data, as good as infinity."""
ROOM = 0.25
"""Beyond the points, so many of their diameters are shown for the ball's sake."""


def ball(section: FloatArray, threshold: float, reach: float) -> FloatArray:
    """{v: v'Bv = eta} as a closed curve, (361, 2); semi-axes longer than `reach` end there.

    Examples
    --------
    >>> ball(np.diag([4.0, 1.0]), 1.0, 100.0).max(axis=0)
    array([0.5, 1. ])
    """
    eigenvalues, vectors = np.linalg.eigh(symmetrise(section))
    semi_axes = np.sqrt(threshold / np.maximum(eigenvalues, threshold / reach**2))
    angles = np.linspace(0.0, 2.0 * np.pi, 361)
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    return np.asarray((circle * semi_axes) @ vectors.T)


def draw_ball(ax: Axes, points: FloatArray, section: FloatArray, threshold: float) -> Line2D | None:
    """{v: v'Bv = eta} about the mean of the points; in words where it lies beyond the view.

    Returns
    -------
    Line2D or None
        The edge of the ball; None where it is not drawn.
    """
    k = 1 if is_strip(points) else 2
    centre, low, high = (part[:k] for part in (points.mean(0), points.min(0), points.max(0)))
    B = section[:k, :k]
    diameter = float(np.linalg.norm(high - low))
    reach = REACH * max(diameter, np.sqrt(threshold))
    edge = centre + (_interval(B, threshold, reach) if k == 1 else ball(B, threshold, reach))
    room = ROOM * diameter if diameter > 0.0 else reach
    box = low - room, high + room
    is_seen = not _holds_box(B, box[0] - centre, box[1] - centre, threshold)
    if _holds_box(B, low - centre, high - centre, threshold) and (k == 1 or not is_seen):
        note = "all points lie within v'Av = η"
        where: dict[str, Any] = {"transform": ax.transAxes, "ha": "center", "va": "top"}
        ax.text(0.5, 0.98, note, fontsize=TEXT_SIZE, **where)
    if not is_seen:
        return None
    _make_room(ax, edge, *box)
    return _draw_edge(ax, edge)


def _draw_edge(ax: Axes, edge: FloatArray) -> Line2D:
    """A closed curve, or the ends of an interval as two upright lines."""
    look: dict[str, Any] = {"color": "black", "linewidth": 2, "zorder": 4, "label": "v'Av = η"}
    look["path_effects"] = [withStroke(linewidth=4.5, foreground="white")]
    if edge.shape[1] == 1:
        left, right = edge[:, 0]
        look["transform"] = ax.get_xaxis_transform()
        line = Line2D([left, left, np.nan, right, right], [0.0, 1.0, np.nan, 0.0, 1.0], **look)
    else:
        line = Line2D(*edge.T, **look)
    ax.add_artist(line)  # unlike ax.plot, it leaves the limits alone
    return line


def _make_room(ax: Axes, edge: FloatArray, low: FloatArray, high: FloatArray) -> None:
    """Show the edge as far as a box reaches."""
    k = len(low)
    shown = np.zeros((len(edge), 2))
    shown[:, :k] = np.clip(edge, low, high)
    ax.update_datalim(shown, updatey=k == 2)
    ax.autoscale_view(scaley=k == 2)


def _interval(section: FloatArray, threshold: float, reach: float) -> FloatArray:
    """The ball on a line: its two ends."""
    half = np.sqrt(threshold / max(float(section[0, 0]), threshold / reach**2))
    return np.array([[-half], [half]])


def _holds_box(section: FloatArray, low: FloatArray, high: FloatArray, threshold: float) -> bool:
    """Whether the corners of a box, and so all of it, lie within the ball."""
    corners = np.array(list(product(*zip(low, high, strict=True))))
    return bool(np.all(np.einsum("ki,ij,kj->k", corners, section, corners) < threshold))
