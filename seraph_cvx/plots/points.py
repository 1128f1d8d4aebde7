"""Points in a plane by class: with the ball {v: v'Av = eta} of a metric, and before and after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from numpy.typing import ArrayLike, NDArray

from ..numerics.checks import FloatArray, check_number, check_points, is_known
from ..numerics.psd_cone import check_metric, factor, symmetric_root, symmetrize
from .display import Display, Layout
from .style import (
    GRAY,
    MARKERS,
    PALETTE,
    SLIDE_WIDTH,
    UNLABELED,
    legible,
)

MARGIN = 0.25
"""This many diameters beyond the points are shown, if the ball reaches that far."""

PRINCIPAL = ("first principal component", "second principal component")
LEARNED = ("first learned coordinate", "second learned coordinate")
FLAT = 1e-3
"""A second coordinate whose spread is below this share of the first's would be drawn as a line."""


def scatter_by_class(
    ax: Axes,
    places: FloatArray,
    y: NDArray[Any],
    class_names: Sequence[str] | None = None,
    labeled: NDArray[np.bool_] | None = None,
) -> None:
    """Draw points in a plane: the unlabeled ones, if any, then those of each class in order.

    By default every point of known class is large. Where only some of their labels were used, give
    these as `labeled`: they are large, and the others of their class small.
    """
    known = is_known(y)
    used = known if labeled is None else labeled

    def scatter(chosen: NDArray[np.bool_], **look: Any) -> None:
        ax.scatter(places[chosen, 0], places[chosen, 1], **look)

    large = {"s": 95 if np.sum(used) <= 150 else 30, "edgecolors": "black", "linewidths": 0.8}
    if not np.all(known):
        scatter(~known, label=UNLABELED, s=20, c=GRAY, alpha=0.7, linewidths=0)
    for k, label in enumerate(sorted(set(y[known].tolist()))):
        members = known & (y == label)
        name = legible(str(label if class_names is None else class_names[label]), 20)
        marker = MARKERS[(k + k // 8) % 8]  # 64 classes before one look comes twice
        look = {"c": PALETTE[k % 8], "marker": marker}
        if labeled is not None:
            scatter(members & ~used, label=name, s=30, linewidths=0, **look)
            name = "_labeled"
        scatter(members & used, label=name, zorder=3, **large, **look)
    if labeled is not None:  # no point, but a line of the legend
        scatter(known & ~known, c="white", label="labeled", **large)


def principal_directions(points: FloatArray) -> FloatArray:
    """The principal directions as columns, widest first, with signs that make their sums >= 0."""
    directions = np.linalg.eigh(np.atleast_2d(np.cov(points.T)))[1][:, ::-1]
    return directions * np.where(directions.sum(axis=0) < 0.0, -1.0, 1.0)


def is_strip(coordinates: FloatArray) -> bool:
    """Whether a second coordinate is missing or too flat to be seen."""
    spread = coordinates.std(axis=0)
    return len(spread) < 2 or not spread[1] > FLAT * spread[0]


def draw_points(
    ax: Axes, coordinates: FloatArray, y: NDArray[Any], names: Sequence[str], *classes: Any
) -> None:
    """Scatter the first two coordinates to scale, or only one as a strip if the other is flat.

    `classes`: the last arguments of :func:`scatter_by_class`.
    """
    places, y_label = coordinates[:, :2], names[-1]
    if is_strip(coordinates):
        x = coordinates[:, 0]
        places = np.column_stack([x, np.random.default_rng(0).uniform(-0.5, 0.5, len(x))])
        flat = "all distances are 0" if x.std() == 0.0 else "one dimension is left"
        y_label = f"jitter only ({flat})"
        ax.set(ylim=(-1.6, 1.6), yticks=[])
    else:
        ax.set_aspect("equal", adjustable="datalim")
    ax.set(xlabel=names[0], ylabel=y_label)
    scatter_by_class(ax, places, y, *classes)
    low, high = places.min(axis=0), places.max(axis=0)
    margin = 0.06 * (high - low)
    ax.update_datalim([low - margin, high + margin])  # equal aspect eats margins, not data
    ax.autoscale_view()


def draw_ball(ax: Axes, points: FloatArray, section: FloatArray, threshold: float) -> None:
    """Draw the edge {v: v'Bv = eta} around the mean of the points, as far as it is near them."""
    k = 1 if is_strip(points) else 2  # on a strip the edge is as good as two vertical lines
    places, B = np.zeros((len(points), 2)), np.zeros((2, 2))
    places[:, :k], B[:k, :k] = points[:, :k], symmetrize(section)[:k, :k]
    low, high = places.min(axis=0), places.max(axis=0)
    diameter = float(np.linalg.norm(high - low)) or 1.0
    eigenvalues, vectors = np.linalg.eigh(B)
    far = 100.0 * max(diameter, np.sqrt(threshold))  # as good as infinity
    radii = np.sqrt(threshold / np.maximum(eigenvalues, threshold / far**2))
    angles = np.linspace(0.0, 2.0 * np.pi, 361)
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    edge = places.mean(axis=0) + (circle * radii) @ vectors.T
    margin = MARGIN * diameter
    ax.update_datalim(np.clip(edge, low - margin, high + margin))
    line = Line2D(*edge.T, color="black", linewidth=2, zorder=4, label="v'Av = η")
    line.set_path_effects([withStroke(linewidth=4.5, foreground="white")])  # seen on any ground
    ax.add_artist(line)  # unlike ax.plot, it leaves the limits alone


@dataclass(eq=False)
class MetricDisplay(Display):
    """Show the points with the unit ball of a metric, and the points transformed by the metric.

    The boundary of the ball, {v: v'Av = eta}, is where p(+1) = 1/2 in eq. (8).

    The left panel shows the points in a plane of the features, the right panel the same points in
    coordinates whose Euclidean distances are those of A. The ball is intersected with the plane and
    centered at the mean of the points; in each panel both axes have the same scale.

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
        The points whose labels were used; they are drawn large, the others small. By default all
        points.

    Examples
    --------
    >>> from seraph_cvx import SERAPH
    >>> from seraph_cvx.plots import MetricDisplay
    >>> X = [[0.0, 1.0], [0.1, 9.0], [2.0, 2.0], [2.1, 8.0]]
    >>> model = SERAPH().fit(X, [0, 0, 1, 1])
    >>> MetricDisplay.from_estimator(model, X, [0, 0, 1, 1]).draw().axes[0].get_title()
    'Before: Euclidean distance'
    """

    before: FloatArray
    after: FloatArray
    section: FloatArray
    y: NDArray[Any]
    threshold: float = 1.0
    before_names: Sequence[str] = PRINCIPAL
    after_names: Sequence[str] = LEARNED
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
            The two features whose plane is shown: unchanged on the left, transformed by
            (U'AU)^(1/2) on the right. By default, the left panel shows the two leading principal
            components of X, and the right panel the two leading coordinates of L x, A = L'L.
        class_names : sequence of str, optional
        labeled : (n,) boolean array_like, optional
            The points of known class whose labels were used; by default all.

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
        before_names: Sequence[str] = PRINCIPAL
        after_names: Sequence[str] = LEARNED
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
            before_names, after_names = (
                [f"feature {k}{by}" for k in features] for by in ("", ", transformed")
            )
        used = None if labeled is None else np.asarray(labeled, dtype=bool)
        section, names = basis.T @ A @ basis, (before_names, after_names)
        return cls(before, after, section, labels, eta, *names, class_names, used)

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: ArrayLike,
        y: ArrayLike | None = None,
        **more: Any,
    ) -> Self:
        """Show the metric of a fitted model: A = L'L of its `components_`, eta its `threshold`.

        The ball thus contains the differences that `predict_pairs` calls similar, unless its
        threshold was calibrated. To show the matrix A of SERAPH's last M-step, before it is mixed
        with the reference, pass `m_step_metric_` to :meth:`from_result`.

        Parameters
        ----------
        model : SERAPH or PairSERAPH, fitted
        X, y, **more
            As for :meth:`from_result`.
        """
        if hasattr(model, "kernel"):
            raise ValueError(
                f"{type(model).__name__} has a metric on the feature space of its kernel, which "
                "the features of X do not show: draw the columns of model.transform(X)."
            )
        return cls.from_result(model.get_mahalanobis_matrix(), X, y, model.threshold, **more)

    def _draw(self, *axes: Axes) -> None:
        draw_ball(axes[0], self.before, self.section, self.threshold)
        draw_ball(axes[1], self.after, np.eye(self.after.shape[1]), self.threshold)
        for ax, places, names, title in (
            (axes[0], self.before, self.before_names, "Before: Euclidean distance"),
            (axes[1], self.after, self.after_names, "After: learned metric"),
        ):
            draw_points(ax, places, self.y, names, self.class_names, self.labeled)
            ax.set_title(title)

    def _layout(self) -> Layout:
        return Layout("The points and the ball of the metric", 2, SLIDE_WIDTH)
