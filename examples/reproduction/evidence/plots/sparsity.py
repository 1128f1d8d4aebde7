"""Figures 1 and 2 of the paper: the points as a metric sees them, and how it classifies them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from seraph_cvx.datasets import Sampling
from seraph_cvx.numerics.checks import UNKNOWN, FloatArray, IntArray
from seraph_cvx.numerics.psd_cone import factor
from seraph_cvx.plots.regions import shade_regions
from seraph_cvx.plots.style import (
    MARKERS,
    PALETTE,
    TEXT_SIZE,
    enlarge_text,
    new_figure,
    picture_bytes,
)

from ..results.figures import LearnedPanel

CAPTIONS = {
    1: "Figure 1. Posterior sparsity: μ = 10 · #(S ∪ D) / #U, λ = 0",
    2: "Figure 2. Projection sparsity: μ = 0, λ = 300",
}
ROOM = 0.08
"""The margin around the points, as a share of their extent."""


def plot_sparsity(
    figure: int,
    sampling: Sampling,
    panels: Sequence[LearnedPanel],
    path: str | os.PathLike[str] | None = None,
) -> Figure:
    """Draw Figure 1 or 2: left the points as a metric sees them, right how it classifies them."""
    picture = new_figure(9.2, 3.5 * len(panels) + 0.9, CAPTIONS[figure])
    grid = picture.subplots(len(panels), 2, squeeze=False)
    classes = np.concatenate([sampling.y[sampling.labeled], sampling.y_test])
    for k, panel in enumerate(panels):
        left, right = grid[k]
        what = "Original data" if k == 0 else f"Projected by {panel.title}"
        left.set_title(f"({'ace'[k]}) {what}")
        _scatter(left, panel.projected, classes, sampling)
        left.set_aspect("equal", adjustable="datalim")
        left.margins(ROOM)
        name = "x" if k == 0 else r"(A^{1/2}x)"
        left.set(xlabel=f"${name}_1$", ylabel=f"${name}_2$")
        right.set_title(f"({'bdf'[k]}) 1-NN, {panel.title}: {panel.error:.0f} % wrong")
        _shade(right, sampling, panel)
        _scatter(right, sampling.X, panel.predicted, sampling)
        wrong = sampling.X[panel.predicted != classes]
        look: dict[str, Any] = {"color": "black", "markersize": 9, "markerfacecolor": "none"}
        right.plot(*wrong.T, "o", **look)
        right.set(xlabel="$x_1$", ylabel="$x_2$")
        for ax in (left, right):
            enlarge_text(ax, TEXT_SIZE)
    _explain(picture)
    if path is not None:
        Path(path).write_bytes(picture_bytes(picture, Path(path).suffix[1:]))
    return picture


def _shade(ax: Axes, sampling: Sampling, panel: LearnedPanel) -> None:
    """Shade each place by the class of the labeled point that is nearest under the metric."""
    L, known = factor(panel.metric), sampling.labeled
    centers, classes = sampling.X[known] @ L.T, sampling.y[known]

    def classify(places: FloatArray) -> IntArray:
        return np.asarray(classes[np.argmin(cdist(places @ L.T, centers), axis=1)])

    low, high = sampling.X.min(axis=0), sampling.X.max(axis=0)
    room = ROOM * np.max(high - low)
    shade_regions(ax, classify, low - room, high + room)


def _scatter(ax: Axes, points: FloatArray, classes: NDArray[Any], sampling: Sampling) -> None:
    """Scatter points colored by class; the labeled ones, which come first, are large."""
    known = sampling.y != UNKNOWN
    for c in (0, 1):
        look: dict[str, Any] = {"c": PALETTE[c], "marker": MARKERS[c]}
        small = look | {"s": 18, "linewidths": 0}
        large = look | {"s": 110, "edgecolors": "black", "linewidths": 1.2, "zorder": 3}
        ax.scatter(*points[~known & (classes == c)].T, **small)
        ax.scatter(*points[known & (classes == c)].T, **large)


def _explain(picture: Figure) -> None:
    plain: dict[str, Any] = {"linestyle": ""}
    ring: dict[str, Any] = {"color": "black", "markerfacecolor": "none", "marker": "o"}
    handles = [
        Line2D([], [], color=PALETTE[0], marker=MARKERS[0], label="class 1", **plain),
        Line2D([], [], color=PALETTE[1], marker=MARKERS[1], label="class 2", **plain),
        Line2D(
            *([], []),
            color="white",
            marker="o",
            markersize=10,
            markeredgecolor="black",
            label="labeled (large)",
            **plain,
        ),
        Line2D([], [], markersize=8, label="classified wrongly", **plain, **ring),
        Patch(color="#D9D9D9", label="shade: predicted class"),
    ]
    look: dict[str, Any] = {"ncols": 5, "frameon": False, "fontsize": TEXT_SIZE}
    picture.legend(handles=handles, loc="outside lower center", columnspacing=1.2, **look)
