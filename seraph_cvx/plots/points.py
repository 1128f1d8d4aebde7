"""Points in a plane, by class: what the pictures of a fit and of a metric share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from ..checks import FloatArray, is_known
from .style import GREY, MARKERS, PALETTE, legible

PRINCIPAL = ("first principal component", "second principal component")
LEARNED = ("first learned coordinate", "second learned coordinate")
FLAT = 1e-3
"""A second coordinate whose spread is below this share of the first's would be drawn as a line."""
FEW = 150
"""More labeled points than this are drawn smaller."""

Groups = list[tuple[NDArray[np.bool_], dict[str, Any]]]
"""Which points, and how they are drawn."""


def group_by_class(y: NDArray[Any], class_names: Sequence[str] | None) -> Groups:
    """The unlabeled points, where there are any, then those of each class in sorted order."""
    unknown = ~is_known(y)
    small = {"label": "unlabeled", "s": 20, "c": GREY, "alpha": 0.7, "linewidths": 0}
    groups: Groups = [(unknown, small)] if np.any(unknown) else []
    size = 95 if np.sum(~unknown) <= FEW else 30
    large = {"s": size, "edgecolors": "black", "linewidths": 0.8, "zorder": 3}
    for k, label in enumerate(sorted(set(y[~unknown].tolist()))):
        look = {
            "label": class_name(label, class_names, 20),
            "c": PALETTE[k % 8],
            "marker": MARKERS[(k + k // 8) % 8],  # 64 classes before one look comes twice
        }
        groups.append((~unknown & (y == label), large | look))
    return groups


def class_name(label: Any, class_names: Sequence[str] | None, width: int) -> str:
    """What a legend or tick calls a class, in at most `width` characters."""
    return legible(str(label) if class_names is None else class_names[label], width)


def principal_axes(points: FloatArray) -> FloatArray:
    """(m, m): the principal axes as columns, widest first; an axis points where its sum is >= 0."""
    centred = points - points.mean(axis=0)
    axes = np.linalg.eigh(centred.T @ centred)[1][:, ::-1]
    return np.asarray(axes * np.where(axes.sum(axis=0) < 0.0, -1.0, 1.0))


def is_strip(coordinates: FloatArray) -> bool:
    """Whether a second coordinate is missing or too flat to be seen."""
    spread = coordinates.std(axis=0)
    return len(spread) < 2 or not spread[1] > FLAT * spread[0]


def draw_points(ax: Axes, coordinates: FloatArray, groups: Groups, names: tuple[str, str]) -> None:
    """Scatter the first two coordinates to scale, or a strip where only one is to be seen."""
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
