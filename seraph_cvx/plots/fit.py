"""A fit: the points before and after, and the objectives by iteration."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from ..fit.alternation import Iteration
from .points import LEARNED, PRINCIPAL, draw_points, group_by_class, principal_directions
from .style import PALETTE, add_legend, enlarge_text, new_figure


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
        Class labels; -1 or None is unknown. Labeled points are large and colored by class,
        unlabeled ones small and gray.
    components : (r, m) array_like
        L, widest axis first: ``SERAPH.components_``.
    history : sequence
        ``SERAPH.history_``: one Iteration each, or the values of (7) for algorithm="direct".
    path : path, optional
        Also save the picture to this file; its ending chooses the format.
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
    groups = group_by_class(np.asarray(y), class_names)
    figure = new_figure(12, 4.7, title)
    left, right = figure.subfigures(1, 2, width_ratios=[2.1, 1.0], squeeze=False)[0]
    before, after = left.subplots(1, 2)
    centered = points - points.mean(axis=0)
    draw_points(before, centered @ principal_directions(points), groups, PRINCIPAL)
    before.set_title("Before: Euclidean distance")
    learned = points @ np.asarray(components, dtype=np.float64).T
    draw_points(after, learned, groups, LEARNED)
    after.set_title("After: learned metric")
    add_legend(left, before.get_legend_handles_labels()[0])
    _draw_history(right.subplots(), right, history)
    for ax in figure.axes:
        enlarge_text(ax)
    if path is not None:
        figure.savefig(path)
    return figure


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
    for own, (name, values, color, marker) in zip(axes, lines, strict=True):
        shape = marker if len(values) <= 30 else ""
        handles += own.plot(numbers, values, color=color, marker=shape, label=name, linewidth=2)
        own.set_ylabel("value (lower is better)" if axes[0] is axes[-1] else name)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6, min_n_ticks=1))
    ax.set_xlabel("iteration")
    ax.set_title("What the iterations do")
    ax.grid(axis="y", alpha=0.3)
    add_legend(figure, handles)


def _needs_two_scales(first: list[float], second: list[float]) -> bool:
    """Whether, on one scale, the course of either line would hardly show."""
    whole = max(*first, *second) - min(*first, *second)
    spans = [np.ptp(first), np.ptp(second)]
    return bool(max(spans) > 0.0 and min(spans) < 0.02 * whole)
