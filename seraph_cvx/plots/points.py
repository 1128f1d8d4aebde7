"""Points in a plane by class: with the ball {v: v'Av = eta} of a metric, and before and after."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from numpy.typing import ArrayLike, NDArray

from ..fit.alternation import Iteration
from ..numerics.checks import FloatArray, check_number, check_points, is_known
from ..numerics.psd_cone import check_metric, factor, symmetric_root, symmetrize
from .display import Display, Layout
from .history import HistoryDisplay
from .style import (
    GRAY,
    MARKERS,
    PALETTE,
    SLIDE_WIDTH,
    TEXT_SIZE,
    add_legend,
    draw_course,
    enlarge_text,
    legible,
    new_figure,
    save,
    use_integers,
)

LARGEST_RADIUS = 100.0
"""A radius of the ball is cut at this many diameters of the data: as good as infinity."""
MARGIN = 0.25
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


def principal_coordinates(points: FloatArray) -> FloatArray:
    """The points around their mean in their principal directions."""
    return np.asarray((points - points.mean(axis=0)) @ principal_directions(points))


def is_strip(coordinates: FloatArray) -> bool:
    """Whether a second coordinate is missing or too flat to be seen."""
    spread = coordinates.std(axis=0)
    return len(spread) < 2 or not spread[1] > FLAT * spread[0]


def draw_points(ax: Axes, coordinates: FloatArray, groups: Groups, names: tuple[str, str]) -> None:
    """Scatter the first two coordinates to scale, or only one as a strip if the other is flat."""
    x = coordinates[:, 0]
    if is_strip(coordinates):
        y = np.random.default_rng(0).uniform(-0.5, 0.5, len(x))
        flat = "all distances are 0" if x.std() == 0.0 else "one dimension is left"
        ax.set(xlabel=names[0], ylabel=f"jitter only ({flat})", ylim=(-1.6, 1.6), yticks=[])
    else:
        y = coordinates[:, 1]
        ax.set(xlabel=names[0], ylabel=names[1])
        ax.set_aspect("equal", adjustable="datalim")
    for chosen, look in groups:
        ax.scatter(x[chosen], y[chosen], **look)
    corners = np.array([[x.min(), y.min()], [x.max(), y.max()]])
    margin = 0.06 * (corners[1] - corners[0])
    ax.update_datalim(corners + np.array([-margin, margin]))  # equal aspect eats margins, not data
    ax.autoscale_view()


def ball(section: FloatArray, threshold: float, largest_radius: float) -> FloatArray:
    """The edge {v: v'Bv = eta} as a closed curve, (361, 2), or as two ends, (2, 1); radii cut."""
    eigenvalues, vectors = np.linalg.eigh(symmetrize(section))
    radii = np.sqrt(threshold / np.maximum(eigenvalues, threshold / largest_radius**2))
    angles = np.linspace(0.0, 2.0 * np.pi, 361)
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    directions = circle if len(section) == 2 else np.array([[-1.0], [1.0]])
    return np.asarray((directions * radii) @ vectors.T)


def draw_ball(ax: Axes, points: FloatArray, section: FloatArray, threshold: float) -> Line2D | None:
    """Draw the edge {v: v'Bv = eta} around the mean of the points; None if it is out of view."""
    k = 1 if is_strip(points) else 2
    center, low, high = (part[:k] for part in (points.mean(0), points.min(0), points.max(0)))
    B = section[:k, :k]
    diameter = float(np.linalg.norm(high - low))
    largest_radius = LARGEST_RADIUS * max(diameter, np.sqrt(threshold))
    edge = center + ball(B, threshold, largest_radius)
    margin = MARGIN * diameter if diameter > 0.0 else largest_radius

    def contains_box(margin: float) -> bool:
        ends = zip(low - margin - center, high + margin - center, strict=True)
        corners = np.array(list(product(*ends)))
        return bool(np.all(np.einsum("ki,ij,kj->k", corners, B, corners) < threshold))

    is_seen = not contains_box(margin)
    if contains_box(0.0) and (k == 1 or not is_seen):
        where: dict[str, Any] = {"transform": ax.transAxes, "ha": "center", "va": "top"}
        ax.text(0.5, 0.98, "all points lie within v'Av = η", fontsize=TEXT_SIZE, **where)
    if not is_seen:
        return None
    shown = np.zeros((len(edge), 2))
    shown[:, :k] = np.clip(edge, low - margin, high + margin)
    ax.update_datalim(shown, updatey=k == 2)
    ax.autoscale_view(scaley=k == 2)
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


@dataclass(eq=False)
class MetricDisplay(Display):
    """Show the unit ball of a metric among the points, and the points as it sees them.

    Its edge {v: v'Av = eta} holds the pairs with p(+1) = 1/2 in eq. (8).

    Left the points in a plane of the features, right the same points where Euclidean distances
    are those of A. The ball is cut by the plane and centered at the mean of the points; both panels
    have one scale for both axes.

    Parameters
    ----------
    before, after : (n, 1) or (n, 2) arrays
        The points in the left and in the right panel.
    section : (k, k) array
        U'AU: the metric in the plane of `before`.
    y : (n,) array
        Class labels; -1 or None is unknown.
    threshold : float
        eta.
    before_names, after_names : pairs of str
        The labels of the axes.
    class_names : sequence of str, optional
        For labels that are positions in this sequence: their names in the legend.
    labeled : (n,) boolean array, optional
        Which points had their label used: they are large, the others small. By default all are.
    """

    before: FloatArray
    after: FloatArray
    section: FloatArray
    y: NDArray[Any]
    threshold: float = 1.0
    before_names: tuple[str, str] = PRINCIPAL
    after_names: tuple[str, str] = LEARNED
    class_names: Sequence[str] | None = None
    labeled: NDArray[np.bool_] | None = None

    @classmethod
    def from_result(
        cls,
        metric: ArrayLike,
        X: ArrayLike,
        y: ArrayLike | None = None,
        threshold: float = 1.0,
        features: tuple[int, int] | None = None,
        feature_names: Sequence[str] | None = None,
        class_names: Sequence[str] | None = None,
        labeled: ArrayLike | None = None,
    ) -> Self:
        """Compute the points in a plane of the features, and in coordinates of the metric.

        Parameters
        ----------
        metric : (m, m) array_like
            A.
        X : (n, m) array_like
        y : (n,) array_like, optional
            Class labels; -1 or None is unknown.
        threshold : float
            eta of the ball.
        features : pair of int, optional
            The two features whose plane is shown, left as they are, right by (U'AU)^(1/2). By
            default left the two leading principal components of X, right the two leading
            coordinates of L x, A = L'L.
        feature_names, class_names : sequences of str, optional
        labeled : (n,) boolean array_like, optional
            Which points of known class had their label used; by default all.

        Examples
        --------
        >>> from seraph_cvx.plots import MetricDisplay
        >>> X = [[0.0, 1.0], [0.1, 9.0], [2.0, 2.0], [2.1, 8.0]]
        >>> display = MetricDisplay.from_result([[4.0, 0.0], [0.0, 0.01]], X, features=(0, 1))
        >>> display.after[2]
        array([4. , 0.2])
        """
        points = check_points(X)
        m = points.shape[1]
        A = check_metric(metric, m, "metric")
        labels = np.full(len(points), -1) if y is None else np.asarray(y)
        eta = check_number(threshold, "threshold", 0.0, strict=True)
        names = PRINCIPAL, LEARNED
        if features is None:
            basis = principal_directions(points)[:, :2]
            before = (points - points.mean(axis=0)) @ basis
            after = points @ factor(A)[:2].T
        else:
            if len(set(features)) != 2 or len(features) != 2 or not set(features) <= {*range(m)}:
                raise ValueError(
                    f"features={features} must be two different feature numbers from 0 to {m - 1}."
                )
            basis = np.eye(m)[:, list(features)]
            before = points @ basis
            after = before @ symmetric_root(basis.T @ A @ basis)
            names = _axis_names(features, feature_names)
        used = None if labeled is None else np.asarray(labeled, dtype=bool)
        section = basis.T @ A @ basis
        return cls(before, after, section, labels, eta, *names, class_names, used)

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: ArrayLike,
        y: ArrayLike | None = None,
        threshold: float | None = None,
        **more: Any,
    ) -> Self:
        """Show the metric of a fitted model: A = L'L of its `components_`, eta its `threshold`.

        So the ball holds the differences that `predict_pairs` calls similar, unless its threshold
        was calibrated. For the A of SERAPH's last M-step alone, before any share of the identity,
        give its `m_step_metric_` to :meth:`from_result`.

        Parameters
        ----------
        model : SERAPH or another fitted metric learner
        X, y, threshold, **more
            As for :meth:`from_result`; a model without a threshold needs one.

        Examples
        --------
        >>> from seraph_cvx import SERAPH
        >>> from seraph_cvx.plots import MetricDisplay
        >>> X = [[0.0, 1.0], [0.1, 9.0], [2.0, 2.0], [2.1, 8.0]]
        >>> model = SERAPH().fit(X, [0, 0, 1, 1])
        >>> MetricDisplay.from_estimator(model, X, [0, 0, 1, 1]).plot().ax_.get_title()
        'Before: Euclidean distance'
        """
        refuse_kernel(
            model, "which the features of X do not show: use PosteriorDisplay.from_estimator"
        )
        eta = threshold_of(model, threshold)
        return cls.from_result(model.get_mahalanobis_matrix(), X, y, eta, **more)

    def _draw(self, axes: Sequence[Axes]) -> None:
        groups = group_by_class(self.y, self.class_names, self.labeled)
        draw_before_and_after(
            axes, (self.before, self.after), groups, (self.before_names, self.after_names)
        )
        classes = axes[0].get_legend_handles_labels()[0]
        edges = (
            draw_ball(axes[0], self.before, self.section, self.threshold),
            draw_ball(axes[1], self.after, np.eye(self.after.shape[1]), self.threshold),
        )
        self._add_legend([*[edge for edge in edges if edge is not None][:1], *classes])

    def _layout(self) -> Layout:
        return Layout("The points and the ball of the metric", 1, 2, SLIDE_WIDTH)


def draw_before_and_after(
    axes: Sequence[Axes],
    coordinates: Sequence[FloatArray],
    groups: Groups,
    names: Sequence[tuple[str, str]] = (PRINCIPAL, LEARNED),
) -> None:
    """Draw the points under the Euclidean distance, and under the learned metric."""
    titles = "Before: Euclidean distance", "After: learned metric"
    for ax, points, axis_names, title in zip(axes, coordinates, names, titles, strict=True):
        draw_points(ax, points, groups, axis_names)
        ax.set_title(title)


def threshold_of(model: Any, threshold: float | None) -> float:
    """The threshold eta as given, or that of the model."""
    if threshold is None:
        threshold = getattr(model, "threshold", None)
    if threshold is None:
        raise ValueError(
            f"{type(model).__name__} has no parameter `threshold`: give threshold=, the squared "
            "distance at which a pair is as likely similar as dissimilar."
        )
    return check_number(threshold, "threshold", 0.0, strict=True)


def refuse_kernel(model: Any, consequence: str) -> None:
    """Raise where the metric of a model is none of the features of X."""
    if hasattr(model, "kernel"):
        raise ValueError(
            f"{type(model).__name__} has a metric on the feature space of its kernel, "
            f"{consequence}."
        )


def _axis_names(
    features: tuple[int, int], given: Sequence[str] | None
) -> tuple[tuple[str, str], tuple[str, str]]:
    """The names of two features, before and after the metric is applied to them."""
    first, second = (f"feature {k}" if given is None else str(given[k]) for k in features)
    before = (legible(first, 40), legible(second, 40))
    return before, (legible(f"{first}, by A", 40), legible(f"{second}, by A", 40))


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
    figure = new_figure(12, 4.7, title)
    left, right = figure.subfigures(1, 2, width_ratios=[2.1, 1.0], squeeze=False)[0]
    panels = left.subplots(1, 2)
    learned = points @ np.asarray(components, dtype=np.float64).T
    groups = group_by_class(np.asarray(y), class_names)
    draw_before_and_after(panels, (principal_coordinates(points), learned), groups)
    add_legend(left, panels[0].get_legend_handles_labels()[0])
    _draw_history(right, HistoryDisplay.from_result(history))
    for ax in figure.axes:
        enlarge_text(ax)
    return save(figure, path)


def _draw_history(figure: SubFigure, history: HistoryDisplay) -> None:
    """Draw J and (7) by iteration, on two scales where one would hide the course of a line."""
    ax = figure.subplots()
    lines = [("objective (7)", history.paper_objective, PALETTE[1], "s")]
    if history.descent_values is not None:
        lines.insert(0, ("J, what EM descends", history.descent_values, PALETTE[0], "o"))
    values = np.array([line[1] for line in lines])
    spans = np.ptp(values, axis=1)
    has_two_scales = spans.max() > 0.0 and spans.min() < 0.02 * np.ptp(values)
    axes = [ax, ax.twinx()] if has_two_scales else [ax] * len(lines)
    handles = []
    for own, (name, course, color, marker) in zip(axes, lines, strict=True):
        handles.append(draw_course(own, history.numbers, course, color, marker, name))
        own.set_ylabel(name if has_two_scales else "value (lower is better)")
    use_integers(ax.xaxis)
    ax.set(xlabel="iteration", title="What the iterations do")
    ax.grid(axis="y", alpha=0.3)
    add_legend(figure, handles)
