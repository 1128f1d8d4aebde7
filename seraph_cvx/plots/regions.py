"""The class of the nearest labeled point everywhere, before and after; and a gap that closes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import cKDTree

from ..numerics.checks import FloatArray, IntArray, check_points, is_known
from ..numerics.psd_cone import check_metric, factor
from .display import Display
from .points import LEARNED, PRINCIPAL, group_by_class, principal_directions
from .style import PALETTE, line_look, use_decades

TINT = 0.25
"""The share of a class's color in the shade of its region; the rest is white."""
RESOLUTION = 400
"""The number of points a side at which a region is computed."""
ROOM = 0.08
"""The margin around the points, as a share of their extent."""
SMALLEST_GAP = 1e-16
"""Smaller gaps are drawn at this value: they are rounding."""


@dataclass(frozen=True, eq=False)
class NearestLabeled:
    """Points in coordinates whose Euclidean distances are those of a metric, widest first.

    Attributes
    ----------
    points, test : (n, k) and (n_test, k) arrays
        The training and the test points, around the mean of the first.
    codes, test_codes : (n,) and (n_test,) integer arrays
        The position of each point's class; -1 is unknown.
    """

    points: FloatArray
    test: FloatArray
    codes: IntArray
    test_codes: IntArray

    @classmethod
    def under(
        cls,
        L: FloatArray,
        X: FloatArray,
        X_test: FloatArray,
        codes: IntArray,
        test_codes: IntArray,
    ) -> Self:
        """Rotate L x so that most of the points' spread is in the first coordinates."""
        points = X @ L.T
        directions, mean = principal_directions(points), points.mean(axis=0)
        test = (X_test @ L.T - mean) @ directions
        return cls((points - mean) @ directions, test, codes, test_codes)

    def classify(self, places: FloatArray) -> IntArray:
        """The class of the labeled point nearest to each place; missing coordinates are 0.

        Examples
        --------
        >>> points, codes = np.array([[-1.0, 0.0], [1.0, 0.0]]), np.array([0, 1])
        >>> NearestLabeled(points, points, codes, codes).classify(np.array([[0.2]]))
        array([1])
        """
        known, k = self.codes >= 0, self.points.shape[1]
        full = np.zeros((len(places), k))
        full[:, : places.shape[1]] = places[:, :k]
        return np.asarray(self.codes[known][cKDTree(self.points[known]).query(full)[1]])

    @property
    def wrong(self) -> NDArray[np.bool_]:
        """Which test points have a nearest labeled point of another class."""
        return np.asarray(self.classify(self.test) != self.test_codes)


@dataclass(eq=False)
class RegionsDisplay(Display):
    """Show how the nearest labeled point classifies every place, before and after learning.

    Each panel is the plane of the widest spread under its metric, shaded by the class of the
    nearest labeled point of places in that plane. Test points have the color of their true class;
    those whose nearest labeled point, over all features, is of another class are crossed out.

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
            One certified relative gap for each iteration: it is drawn in a third panel.
        class_names : sequence of str, optional

        Examples
        --------
        >>> from seraph_cvx.plots import RegionsDisplay
        >>> X, y = [[0.0, 1.0], [0.1, 9.0], [2.0, 2.0]], [0, -1, 1]
        >>> others, classes = [[0.2, 8.0], [1.9, 1.0]], [0, 1]
        >>> display = RegionsDisplay.from_result([[4.0, 0.0], [0.0, 0.0]], X, y, others, classes)
        >>> display.errors
        (0.5, 0.0)
        """
        points, test = check_points(X), check_points(X_test)
        labels, truth = np.asarray(y), np.asarray(y_test)
        A = check_metric(metric, points.shape[1], "metric")
        if len(labels) != len(points) or len(truth) != len(test):
            raise ValueError("Give one label for each point: y for X, y_test for X_test.")
        known = is_known(labels)
        if not np.any(known):
            raise ValueError("No point of X has a label, so nothing is nearest to a labeled one.")
        classes = sorted({*labels[known].tolist(), *truth.tolist()})
        sides = (
            NearestLabeled.under(L, points, test, _codes(labels, classes), _codes(truth, classes))
            for L in (np.eye(len(A)), factor(A))
        )
        before, after = sides
        return cls(
            before,
            after,
            labels,
            truth,
            None if gaps is None else np.asarray(gaps, dtype=np.float64),
            class_names,
        )

    @property
    def errors(self) -> tuple[float, float]:
        """The share of test points that are classified wrongly, before and after."""
        return float(np.mean(self.before.wrong)), float(np.mean(self.after.wrong))

    def _draw(self, axes: Sequence[Axes]) -> None:
        for ax, side, what, names in (
            (axes[0], self.before, "Euclidean distance", PRINCIPAL),
            (axes[1], self.after, "Learned metric", LEARNED),
        ):
            self._draw_side(ax, side)
            ax.set_title(f"{what}: {100.0 * np.mean(side.wrong):.0f} % wrong")
            ax.set(xlabel=names[0], ylabel=names[1])
        if self.gaps is not None:
            self._draw_gaps(axes[2], self.gaps)
        self._add_legend(axes[0].get_legend_handles_labels()[0])

    def _draw_side(self, ax: Axes, side: NearestLabeled) -> None:
        every = np.vstack([side.points, side.test])
        shown = np.zeros((len(every), 2))
        shown[:, : every.shape[1]] = every[:, :2]
        low, high = shown.min(axis=0), shown.max(axis=0)
        half = (0.5 + ROOM) * (float(np.max(high - low)) or 1.0)
        center = 0.5 * (low + high)
        shade_regions(ax, side.classify, center - half, center + half)
        labeled = np.concatenate([is_known(self.y), np.zeros(len(side.test), dtype=bool)])
        labels = np.concatenate([self.y, self.y_test])
        for chosen, look in group_by_class(labels, self.class_names, labeled):
            ax.scatter(*shown[chosen].T, **look)
        x, y = shown[len(side.points) :][side.wrong].T
        ax.scatter(x, y, marker="x", c="black", s=60, linewidths=1.6, zorder=4, label="wrong")

    def _draw_gaps(self, ax: Axes, gaps: FloatArray) -> None:
        drawn = np.maximum(gaps, SMALLEST_GAP)
        numbers = np.arange(1, len(drawn) + 1)
        ax.plot(numbers, drawn, **line_look(2, len(drawn)))
        use_decades(ax, drawn)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6, min_n_ticks=1))
        ax.set_xlabel("iteration")
        ax.set_ylabel("certified relative gap")
        ax.set_title(f"Certified gap: {drawn[-1]:.0e} at the end")
        ax.grid(alpha=0.3)

    def _title(self) -> str:
        return "The class of the nearest labeled point"

    def _shape(self) -> tuple[int, int]:
        return 1, 2 if self.gaps is None else 3

    def _size(self) -> tuple[float, float]:
        return (9.6, 6.0) if self.gaps is None else (12.0, 4.7)


def _codes(labels: NDArray[Any], classes: list[Any]) -> IntArray:
    """The position of each label among the classes; -1 where it is none of them."""
    return np.array([classes.index(k) if k in classes else -1 for k in labels.tolist()])


def shade_regions(
    ax: Axes, classify: Callable[[FloatArray], IntArray], low: ArrayLike, high: ArrayLike
) -> None:
    """Shade a box by the class of each place in it, and make it the view, to scale.

    Parameters
    ----------
    ax : Axes
    classify : callable
        From (k, 2) places to the positions of their classes in the palette.
    low, high : (2,) array_like
        The corners of the box.

    Examples
    --------
    >>> from seraph_cvx.plots.style import new_figure
    >>> ax = new_figure(2.0, 2.0).subplots()
    >>> shade_regions(ax, lambda places: (places[:, 0] > 0.0).astype(int), (-1, -1), (1, 1))
    >>> ax.images[0].get_array().shape
    (400, 400, 3)
    """
    corners = np.array([low, high], dtype=np.float64)
    x, y = np.linspace(corners[0], corners[1], RESOLUTION).T
    places = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    colors = np.array([to_rgb(color) for color in PALETTE])
    shades = 1.0 - TINT * (1.0 - colors)
    codes = classify(places).reshape(RESOLUTION, RESOLUTION) % len(shades)
    left, right, bottom, top = (*corners[:, 0], *corners[:, 1])
    look: dict[str, Any] = {"origin": "lower", "interpolation": "nearest", "zorder": 0}
    ax.imshow(shades[codes], extent=(left, right, bottom, top), **look)
    ax.set(xlim=(left, right), ylim=(bottom, top))
