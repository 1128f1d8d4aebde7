"""The class of the nearest labeled point everywhere, before and after; and a gap that closes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba_array
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import cKDTree

from ..numerics.checks import FloatArray, IntArray, check_points, is_known
from ..numerics.psd_cone import check_metric, factor
from .display import Display, Layout
from .points import LEARNED, PRINCIPAL, principal_directions, scatter_by_class
from .style import PALETTE, use_decades, use_integers

TINT = 0.25
"""The share of a class's color in the shade of its region; the rest is white."""
RESOLUTION = 400
"""The number of points per side at which a region is computed."""
MARGIN = 0.08
"""The margin around the points, as a share of their extent."""
SMALLEST_GAP = 1e-16
"""Smaller gaps are drawn at this value: they are rounding."""


@dataclass(frozen=True, eq=False)
class NearestLabeled:
    """Training and test points in coordinates whose Euclidean distances are those of a metric.

    The coordinates are around the mean of the training points, widest first; `codes` and
    `test_codes` are the positions of the points' classes, -1 where unknown.
    """

    points: FloatArray
    test: FloatArray
    codes: IntArray
    test_codes: IntArray

    def classify(self, places: FloatArray) -> IntArray:
        """The class of the labeled point nearest to each place; missing coordinates are 0."""
        known, k = self.codes >= 0, self.points.shape[1]
        full = np.pad(places, ((0, 0), (0, k)))[:, :k]
        return np.asarray(self.codes[known][cKDTree(self.points[known]).query(full)[1]])

    @property
    def wrong(self) -> NDArray[np.bool_]:
        """Which test points have a nearest labeled point of another class."""
        return np.asarray(self.classify(self.test) != self.test_codes)


@dataclass(eq=False)
class RegionsDisplay(Display):
    """Show how the nearest labeled point classifies a plane, before and after learning.

    Each panel is the plane in which the points are spread most widely under its metric. Every
    position in it is shaded by the class of its nearest labeled point. Test points have the color
    of their true class; they are crossed out if their nearest labeled point, in all features, is of
    another class.

    Parameters
    ----------
    before, after : NearestLabeled
        The points under the Euclidean distance, and under the learned metric.
    y, y_test : (n,) and (n_test,) arrays
        Class labels; -1 or None is unknown, and allowed in `y` alone.
    gaps : (n_iterations,) array, optional
        Certified relative gaps, for a third panel.
    class_names : sequence of str, optional
        For labels that are positions in this sequence: their names in the legend.

    Examples
    --------
    >>> from seraph_cvx.plots import RegionsDisplay
    >>> X, y = [[0.0, 1.0], [0.1, 9.0], [2.0, 2.0]], [0, -1, 1]
    >>> others, classes = [[0.2, 8.0], [1.9, 1.0]], [0, 1]
    >>> display = RegionsDisplay.from_result([[4.0, 0.0], [0.0, 0.0]], X, y, others, classes)
    >>> display.errors
    (0.5, 0.0)
    """

    before: NearestLabeled
    after: NearestLabeled
    y: NDArray[Any]
    y_test: NDArray[Any]
    gaps: FloatArray | None = None
    class_names: Sequence[str] | None = None

    @classmethod
    def from_result(
        cls,
        metric: ArrayLike,
        X: ArrayLike,
        y: ArrayLike,
        X_test: ArrayLike,
        y_test: ArrayLike,
        gaps: ArrayLike | None = None,
        class_names: Sequence[str] | None = None,
    ) -> Self:
        """Compute the points under a metric, and find their nearest labeled ones.

        Parameters
        ----------
        metric : (m, m) array_like
            A.
        X, y : (n, m) and (n,) array_like
            The training points and their class labels; -1 or None is unknown.
        X_test, y_test : (n_test, m) and (n_test,) array_like
            Other points, of known class.
        gaps : array_like, optional
            One certified relative gap for each iteration; they are drawn in a third panel.
        class_names : sequence of str, optional
        """
        points, test = check_points(X), check_points(X_test)
        labels, truth = np.asarray(y), np.asarray(y_test)
        A = check_metric(metric, points.shape[1], "metric")
        if len(labels) != len(points) or len(truth) != len(test):
            raise ValueError("Give one label for each point: y for X, y_test for X_test.")
        known = is_known(labels)
        if not np.any(known):
            raise ValueError("No point of X has a label, so nothing is nearest to a labeled one.")
        every = np.unique(np.concatenate([labels[known], truth]), return_inverse=True)[1]
        n_known = np.count_nonzero(known)
        codes, test_codes = np.full(len(labels), -1), every[n_known:]
        codes[known] = every[:n_known]

        def under(L: FloatArray) -> NearestLabeled:
            transformed = points @ L.T
            directions, mean = principal_directions(transformed), transformed.mean(axis=0)
            train, other = ((given @ L.T - mean) @ directions for given in (points, test))
            return NearestLabeled(train, other, codes, test_codes)

        relative_gaps = None if gaps is None else np.asarray(gaps, dtype=np.float64)
        before, after = under(np.eye(len(A))), under(factor(A))
        return cls(before, after, labels, truth, relative_gaps, class_names)

    @property
    def errors(self) -> tuple[float, float]:
        """The share of test points that are classified wrongly, before and after."""
        return float(np.mean(self.before.wrong)), float(np.mean(self.after.wrong))

    def _draw(self, *axes: Axes) -> None:
        for ax, side, what, names in (
            (axes[0], self.before, "Euclidean distance", PRINCIPAL),
            (axes[1], self.after, "Learned metric", LEARNED),
        ):
            self._draw_side(ax, side)
            title = f"{what}: {100.0 * np.mean(side.wrong):.0f} % wrong"
            ax.set(title=title, xlabel=names[0], ylabel=names[1])
        if self.gaps is not None:
            self._draw_gaps(axes[2], self.gaps)

    def _draw_side(self, ax: Axes, side: NearestLabeled) -> None:
        """Draw the regions, all points, and a cross on each that is classified wrongly."""
        points, n = np.vstack([side.points, side.test])[:, :2], len(side.points)
        places = np.pad(points, [(0, 0), (0, 2 - points.shape[1])])
        low, high = places.min(axis=0), places.max(axis=0)
        half = (0.5 + MARGIN) * (float(np.max(high - low)) or 1.0)
        center = 0.5 * (low + high)
        shade_regions(ax, side.classify, center - half, center + half)
        is_used = np.append(is_known(self.y), np.zeros(len(side.test), dtype=bool))
        labels = np.concatenate([self.y, self.y_test])
        scatter_by_class(ax, places, labels, self.class_names, is_used)
        x, y = places[n:][side.wrong].T
        ax.scatter(x, y, marker="x", c="black", s=60, linewidths=1.6, zorder=4, label="wrong")

    def _draw_gaps(self, ax: Axes, gaps: FloatArray) -> None:
        """Draw certified gaps by iteration on a log scale; a step without certificate has none."""
        shown = np.where(np.isinf(gaps), np.nan, np.maximum(gaps, SMALLEST_GAP))
        ax.plot(np.arange(len(gaps)) + 1, shown, color=PALETTE[2], marker="^", linewidth=2)
        use_integers(ax.xaxis)
        use_decades(ax, shown)
        title = f"Certified gap: {gaps[-1]:.0e} at the end"
        ax.set(xlabel="iteration", ylabel="certified relative gap", title=title)
        ax.grid(alpha=0.3)

    def _layout(self) -> Layout:
        sizes = (2, 9.6, 6.0) if self.gaps is None else (3, 12.0, 4.7)
        return Layout("The class of the nearest labeled point", *sizes)


def shade_regions(
    ax: Axes, classify: Callable[[FloatArray], IntArray], low: ArrayLike, high: ArrayLike
) -> None:
    """Shade a box by the class of each place in it, and make it the view, to scale.

    `classify` maps (k, 2) places to the positions of their classes in the palette.
    """
    (left, bottom), (right, top) = np.array([low, high], dtype=np.float64)
    x, y = np.linspace(left, right, RESOLUTION), np.linspace(bottom, top, RESOLUTION)
    places = np.stack(np.meshgrid(x, y), axis=-1)
    codes = classify(places.reshape(-1, 2)).reshape(places.shape[:2]) % len(PALETTE)
    shades = 1.0 - TINT * (1.0 - to_rgba_array(PALETTE)[codes, :3])
    ends = (left, right, bottom, top)
    ax.imshow(shades, extent=ends, origin="lower", interpolation="nearest", zorder=0)
    ax.axis(ends)
