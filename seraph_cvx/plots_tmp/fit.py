"""Every picture, drawn from results, never computing them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike, NDArray

from .alternation import Iteration
from .checks import UNKNOWN, FloatArray

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
FLAT = 1e-3
"""A second coordinate whose spread is below this share of the first's would be drawn as a line."""
LEGEND_ENTRIES = 12


def plot_fit(
    X: ArrayLike,
    y: ArrayLike,
    components: ArrayLike,
    history: Sequence[Iteration] | Sequence[float],
    path: str | os.PathLike[str] | None = None,
    title: str = "SERAPH",
    class_names: Sequence[str] | None = None,
) -> Figure:
    """Draw the points before and after the learned metric, and the objectives by iteration.

    Left, the first two principal components of X; middle, the first two coordinates of L x, where
    Euclidean distances are the learned ones (A = L'L); right, J and the paper's objective (7).

    Parameters
    ----------
    X : (n, m) array_like
        The points.
    y : (n,) array_like
        Class labels; -1 or None is unknown. Labeled points are large and coloured by class,
        unlabeled ones small and grey.
    components : (r, m) array_like
        L, widest axis first: ``SERAPH.components_``.
    history : sequence
        ``SERAPH.history_``: one Iteration each, or the values of (7) for algorithm="direct".
    path : path, optional
        Also save the picture here; the ending chooses the format.
    title : str
        Above the picture.
    class_names : sequence of str, optional
        For labels that are positions in this sequence: what the legend calls them.

    Returns
    -------
    matplotlib.figure.Figure
        Three panels, the last with a second scale where one would hide a line; pyplot knows
        nothing of it.

    Examples
    --------
    >>> from seraph_cvx import SERAPH
    >>> from seraph_cvx.plots import plot_fit
    >>> X = [[0.0, 1.0], [0.1, 9.0], [2.0, 2.0], [2.1, 8.0], [0.2, 5.0], [1.9, 4.0]]
    >>> y = [0, 0, 1, 1, -1, -1]
    >>> model = SERAPH().fit(X, y)
    >>> figure = plot_fit(X, y, model.components_, model.history_)
    >>> [axes.get_title() for axes in figure.axes[:3]]
    ['Before: Euclidean distance', 'After: learned metric', 'What the iterations do']
    """
    points = np.asarray(X, dtype=np.float64)
    groups = _group_by_class(np.asarray(y), class_names)
    figure = Figure(figsize=(12, 4.4), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(_legible(title, 100), fontsize=14, fontweight="bold")
    left, right = figure.subfigures(1, 2, width_ratios=[2.1, 1.0], squeeze=False)[0]
    before, after = left.subplots(1, 2)
    _draw_points(before, _principal_coordinates(points), groups, "principal component")
    before.set_title("Before: Euclidean distance")
    learned = points @ np.asarray(components, dtype=np.float64).T
    _draw_points(after, learned, groups, "learned coordinate")
    after.set_title("After: learned metric")
    _add_legend(left, before)
    _draw_history(right.subplots(), right, history)
    if path is not None:
        figure.savefig(path)
    return figure


Groups = list[tuple[NDArray[np.bool_], dict[str, Any]]]
"""Which points, and how they are drawn."""


def _group_by_class(y: NDArray[Any], class_names: Sequence[str] | None) -> Groups:
    """The unlabeled points, where there are any, then those of each class in sorted order."""
    unknown = np.array([label is None or label == UNKNOWN for label in y], dtype=bool)
    small = {"label": "unlabeled", "s": 20, "c": GREY, "alpha": 0.7, "linewidths": 0}
    groups: Groups = [(unknown, small)] if np.any(unknown) else []
    large = {"s": 95, "edgecolors": "black", "linewidths": 0.8, "zorder": 3}
    for k, label in enumerate(sorted(set(y[~unknown].tolist()))):
        look = {
            "label": _legible(str(label) if class_names is None else class_names[label], 20),
            "c": PALETTE[k % 8],
            "marker": MARKERS[(k + k // 8) % 8],  # 64 classes before one look comes twice
        }
        groups.append((~unknown & (y == label), large | look))
    return groups


def _legible(text: str, width: int) -> str:
    """At most `width` characters, none of which matplotlib takes for a command."""
    if len(text) > width:
        text = f"{text[: width - 9]} ... {text[-4:]}"
    text = text.replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


def _principal_coordinates(points: FloatArray) -> FloatArray:
    centred = points - points.mean(axis=0)
    axes = np.linalg.eigh(centred.T @ centred)[1][:, ::-1]
    axes = axes * np.where(axes.sum(axis=0) < 0.0, -1.0, 1.0)
    return np.asarray(centred @ axes)


def _draw_points(ax: Axes, coordinates: FloatArray, groups: Groups, what: str) -> None:
    spread = coordinates.std(axis=0)
    ax.set_xlabel(f"first {what}")
    if len(spread) > 1 and spread[1] > FLAT * spread[0]:
        x, y = coordinates[:, 0], coordinates[:, 1]
        ax.set_ylabel(f"second {what}")
        ax.set_aspect("equal", adjustable="datalim")
    else:
        x = coordinates[:, 0]
        y = np.random.default_rng(0).uniform(-0.5, 0.5, len(x))
        ax.set_ylim(-1.6, 1.6)
        ax.set_yticks([])
        flat = "all distances are 0" if spread[0] == 0.0 else "one dimension is left"
        ax.set_ylabel(f"jitter only ({flat})")
    for chosen, look in groups:
        ax.scatter(x[chosen], y[chosen], **look)
    corners = np.array([[x.min(), y.min()], [x.max(), y.max()]])
    room = 0.06 * (corners[1] - corners[0])
    ax.update_datalim(corners + np.array([-room, room]))  # equal aspect eats margins, not data
    ax.autoscale_view()


def _add_legend(figure: SubFigure, ax: Axes) -> None:
    handles, names = ax.get_legend_handles_labels()
    texts = names[:LEGEND_ENTRIES]
    columns = max(1, min(len(texts), 90 // (max(map(len, texts)) + 7)))
    if len(names) > LEGEND_ENTRIES:
        texts[-1] += f"   (+ {len(names) - LEGEND_ENTRIES} more)"
    figure.legend(
        handles[: len(texts)], texts, loc="outside lower center", ncols=columns, frameon=False
    )


def _draw_history(
    ax: Axes, figure: SubFigure, history: Sequence[Iteration] | Sequence[float]
) -> None:
    lines: list[tuple[str, list[float], str, str]]
    if any(isinstance(entry, Iteration) for entry in history):
        steps = [entry for entry in history if isinstance(entry, Iteration)]
        numbers = [step.number for step in steps]
        descent = [step.descent_value for step in steps]
        paper = [step.paper_objective for step in steps]
        lines = [
            ("J, what EM descends", descent, PALETTE[0], "o"),
            ("objective (7)", paper, PALETTE[1], "s"),
        ]
    else:
        paper = [entry for entry in history if not isinstance(entry, Iteration)]
        numbers = list(range(len(paper)))
        lines = [("objective (7)", paper, PALETTE[1], "s")]
    axes = [ax] * len(lines)
    if len(lines) == 2 and _needs_two_scales(lines[0][1], lines[1][1]):
        axes[1] = ax.twinx()
    handles = []
    for own, (name, values, colour, marker) in zip(axes, lines, strict=True):
        shape = marker if len(values) <= 30 else ""
        handles += own.plot(numbers, values, color=colour, marker=shape, label=name, linewidth=2)
        own.set_ylabel("value (lower is better)" if axes[0] is axes[-1] else name)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6, min_n_ticks=1))
    ax.set_xlabel("iteration")
    ax.set_title("What the iterations do")
    ax.grid(axis="y", alpha=0.3)
    figure.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False)


def _needs_two_scales(first: list[float], second: list[float]) -> bool:
    """Whether, on one scale, the course of either line would hardly show."""
    whole = max(*first, *second) - min(*first, *second)
    spans = [np.ptp(first), np.ptp(second)]
    return bool(max(spans) > 0.0 and min(spans) < 0.02 * whole)
