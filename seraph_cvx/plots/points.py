"""Points in a plane by class, and the ball {v: v'Av = eta} of a metric among them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from numpy.typing import NDArray

from ..numerics.checks import FloatArray, is_known
from ..numerics.psd_cone import symmetrize
from .style import GRAY, MARKERS, PALETTE, TEXT_SIZE, legible

REACH = 100.0
"""A radius of the ball is cut at this many diameters of the data: as good as infinity."""
ROOM = 0.25
"""This many diameters beyond the points are shown, if the ball reaches that far."""

PRINCIPAL = ("first principal component", "second principal component")
LEARNED = ("first learned coordinate", "second learned coordinate")
FLAT = 1e-3
"""A second coordinate whose spread is below this share of the first's would be drawn as a line."""
FEW = 150
"""More labeled points than this are drawn smaller."""

Groups = list[tuple[NDArray[np.bool_], dict[str, Any]]]
"""Groups of points, and how each is drawn."""


def group_by_class(
    y: NDArray[Any],
    class_names: Sequence[str] | None,
    labeled: NDArray[np.bool_] | None = None,
) -> Groups:
    """Group the points: the unlabeled ones, if any, then those of each class in sorted order.

    By default every point of known class is large. Where only some of their labels were used, give
    these as `labeled`: they are large, and the others of their class small.
    """
    unknown = ~is_known(y)
    small = {"label": "unlabeled", "s": 20, "c": GRAY, "alpha": 0.7, "linewidths": 0}
    groups: Groups = [(unknown, small)] if np.any(unknown) else []
    used = ~unknown if labeled is None else labeled
    size = 95 if np.sum(used) <= FEW else 30
    large = {"s": size, "edgecolors": "black", "linewidths": 0.8, "zorder": 3}
    for k, label in enumerate(sorted(set(y[~unknown].tolist()))):
        look = {
            "label": class_name(label, class_names, 20),
            "c": PALETTE[k % 8],
            "marker": MARKERS[(k + k // 8) % 8],  # 64 classes before one look comes twice
        }
        members = ~unknown & (y == label)
        if labeled is None:
            groups.append((members, large | look))
            continue
        groups.append((members & ~used, {"s": 30, "linewidths": 0} | look))
        groups.append((members & used, large | look | {"label": "_labeled"}))
    if labeled is not None:  # no point, but a line of the legend
        groups.append((np.zeros_like(unknown), large | {"c": "white", "label": "labeled"}))
    return groups


def class_name(label: Any, class_names: Sequence[str] | None, width: int) -> str:
    """The name of a class in a legend or at a tick, in at most `width` characters."""
    return legible(str(label) if class_names is None else class_names[label], width)


def principal_directions(points: FloatArray) -> FloatArray:
    """The principal directions as columns, widest first, with signs that make their sums >= 0."""
    centered = points - points.mean(axis=0)
    directions = np.linalg.eigh(centered.T @ centered)[1][:, ::-1]
    return np.asarray(directions * np.where(directions.sum(axis=0) < 0.0, -1.0, 1.0))


def is_strip(coordinates: FloatArray) -> bool:
    """Whether a second coordinate is missing or too flat to be seen."""
    spread = coordinates.std(axis=0)
    return len(spread) < 2 or not spread[1] > FLAT * spread[0]


def draw_points(ax: Axes, coordinates: FloatArray, groups: Groups, names: tuple[str, str]) -> None:
    """Scatter the first two coordinates to scale, or only one as a strip if the other is flat."""
    ax.set_xlabel(names[0])
    x = coordinates[:, 0]
    if is_strip(coordinates):
        y = np.random.default_rng(0).uniform(-0.5, 0.5, len(x))
        ax.set_ylim(-1.6, 1.6)
        ax.set_yticks([])
        flat = "all distances are 0" if x.std() == 0.0 else "one dimension is left"
        ax.set_ylabel(f"jitter only ({flat})")
    else:
        y = coordinates[:, 1]
        ax.set_ylabel(names[1])
        ax.set_aspect("equal", adjustable="datalim")
    for chosen, look in groups:
        ax.scatter(x[chosen], y[chosen], **look)
    corners = np.array([[x.min(), y.min()], [x.max(), y.max()]])
    room = 0.06 * (corners[1] - corners[0])
    ax.update_datalim(corners + np.array([-room, room]))  # equal aspect eats margins, not data
    ax.autoscale_view()


def ball(section: FloatArray, threshold: float, reach: float) -> FloatArray:
    """The ball's edge {v: v'Bv = eta} as a closed curve, (361, 2), with radii cut at `reach`.

    Examples
    --------
    >>> ball(np.diag([4.0, 1.0]), 1.0, 100.0).max(axis=0)
    array([0.5, 1. ])
    """
    eigenvalues, vectors = np.linalg.eigh(symmetrize(section))
    radii = np.sqrt(threshold / np.maximum(eigenvalues, threshold / reach**2))
    angles = np.linspace(0.0, 2.0 * np.pi, 361)
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    return np.asarray((circle * radii) @ vectors.T)


def draw_ball(ax: Axes, points: FloatArray, section: FloatArray, threshold: float) -> Line2D | None:
    """Draw the edge {v: v'Bv = eta} around the mean of the points, or say that it is out of view.

    Returns
    -------
    Line2D or None
        The edge of the ball; None where it is not drawn.
    """
    k = 1 if is_strip(points) else 2
    center, low, high = (part[:k] for part in (points.mean(0), points.min(0), points.max(0)))
    B = section[:k, :k]
    diameter = float(np.linalg.norm(high - low))
    reach = REACH * max(diameter, np.sqrt(threshold))
    edge = center + (_interval(B, threshold, reach) if k == 1 else ball(B, threshold, reach))
    room = ROOM * diameter if diameter > 0.0 else reach
    box = low - room, high + room
    is_seen = not _holds_box(B, box[0] - center, box[1] - center, threshold)
    if _holds_box(B, low - center, high - center, threshold) and (k == 1 or not is_seen):
        note = "all points lie within v'Av = η"
        where: dict[str, Any] = {"transform": ax.transAxes, "ha": "center", "va": "top"}
        ax.text(0.5, 0.98, note, fontsize=TEXT_SIZE, **where)
    if not is_seen:
        return None
    _make_room(ax, edge, *box)
    return _draw_edge(ax, edge)


def _draw_edge(ax: Axes, edge: FloatArray) -> Line2D:
    """Draw a closed curve, or the ends of an interval as two vertical lines."""
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
    """Extend the view to the part of the edge within a box."""
    k = len(low)
    shown = np.zeros((len(edge), 2))
    shown[:, :k] = np.clip(edge, low, high)
    ax.update_datalim(shown, updatey=k == 2)
    ax.autoscale_view(scaley=k == 2)


def _interval(section: FloatArray, threshold: float, reach: float) -> FloatArray:
    """The two ends of a one-dimensional ball."""
    half = np.sqrt(threshold / max(float(section[0, 0]), threshold / reach**2))
    return np.array([[-half], [half]])


def _holds_box(section: FloatArray, low: FloatArray, high: FloatArray, threshold: float) -> bool:
    """Whether the corners of a box, and so all of it, lie within the ball."""
    corners = np.array(list(product(*zip(low, high, strict=True))))
    return bool(np.all(np.einsum("ki,ij,kj->k", corners, section, corners) < threshold))
