"""The pair posterior of all pairs as a heat map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import pdist, squareform
from sklearn.utils import gen_batches

from ..model.posterior import posterior_similar
from ..numerics.checks import FloatArray, IntArray, check_number, check_points, encode_labels
from ..numerics.psd_cone import check_metric, factor
from .display import Display, Layout
from .points import class_name, threshold_of
from .style import enlarge_text, white_border

MOST_NAMES = 28
"""More classes than this have no names beside the matrix: they would overlap."""
AT_ONCE = 20_000
"""The number of pairs that a model predicts at once."""


@dataclass(eq=False)
class PosteriorDisplay(Display):
    """Show how likely each pair is to be similar, as a matrix sorted by class.

    p(+1) = 1 / (1 + exp(||x_i - x_j||_A^2 - eta)), eq. (8), for all pairs, sorted by class.

    It is at most 1 / (1 + e^{-eta}), 0.73 for the paper's eta = 1, that of two equal points.

    Parameters
    ----------
    posterior : (n, n) array
        p(+1) of each pair, its diagonal NaN: a point makes no pair with itself.
    order : (n,) integer array
        Which point stands in which row: by class, the points of unknown class last, and in a
        class along the leading learned coordinate.
    blocks : list of (str, int)
        The classes in this order, each with the number of its points; empty without labels.

    Examples
    --------
    >>> from seraph_cvx import SERAPH
    >>> from seraph_cvx.plots import PosteriorDisplay
    >>> X = [[0.0, 1.0], [0.1, 9.0], [2.0, 2.0], [2.1, 8.0]]
    >>> model = SERAPH().fit(X, [0, 0, 1, 1])
    >>> display = PosteriorDisplay.from_estimator(model, X, [0, 0, 1, 1]).plot()
    >>> display.ax_.get_xlabel()
    'points, sorted by class'
    """

    posterior: FloatArray
    order: IntArray
    blocks: list[tuple[str, int]]

    @classmethod
    def from_result(
        cls,
        metric: ArrayLike,
        X: ArrayLike,
        y: ArrayLike | None = None,
        threshold: float = 1.0,
        class_names: Sequence[str] | None = None,
    ) -> Self:
        """Show the posterior (8) at a metric A and threshold eta.

        Parameters
        ----------
        metric : (m, m) array_like
        X : (n, m) array_like
        y : (n,) array_like, optional
            Class labels; -1 or None is unknown. Without them the points keep their order.
        threshold : float
        class_names : sequence of str, optional
            For labels that are positions in this sequence: what the ticks call them.

        Examples
        --------
        >>> from seraph_cvx.plots import PosteriorDisplay
        >>> display = PosteriorDisplay.from_result([[1.0]], [[0.0], [9.0], [1.0]], ["b", "a", "b"])
        >>> display.order, display.blocks, display.posterior[1, 2]
        (array([1, 0, 2]), [('a', 1), ('b', 2)], np.float64(0.5))
        """
        points = check_points(X)
        L = factor(check_metric(metric, points.shape[1], "metric"))
        coordinates = points @ L.T
        posterior = _posterior_at(coordinates, threshold)
        return cls._sorted(posterior, coordinates[:, 0], y, class_names)

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: ArrayLike,
        y: ArrayLike | None = None,
        threshold: float | None = None,
        class_names: Sequence[str] | None = None,
    ) -> Self:
        """Show the posterior (8) of a fitted model, with a kernel or without.

        Parameters
        ----------
        model : SERAPH, KernelSERAPH or another fitted metric learner
        X, y, class_names
            As for :meth:`from_result`.
        threshold : float, optional
            By default p is the model's own `predict_pair_proba`. With a threshold, which a model
            without that method needs, p is eq. (8) at the distances after `transform`.
        """
        coordinates = np.asarray(model.transform(X), dtype=np.float64)
        if threshold is None and hasattr(model, "predict_pair_proba"):
            posterior = squareform(_predict_pairs(model, np.asarray(X)), checks=False)
        else:
            posterior = _posterior_at(coordinates, threshold_of(model, threshold))
        return cls._sorted(posterior, coordinates[:, 0], y, class_names)

    @classmethod
    def _sorted(
        cls,
        posterior: FloatArray,
        leading: FloatArray,
        y: ArrayLike | None,
        class_names: Sequence[str] | None,
    ) -> Self:
        """Sort the points by class, the unlabeled ones last, and in a class by `leading`."""
        order = np.arange(len(leading))
        blocks: list[tuple[str, int]] = []
        if y is not None:
            known, classes = encode_labels(y, len(leading))
            labels = np.unique(np.asarray(y)[known]).tolist()
            codes = np.full(len(leading), len(labels))
            codes[known] = classes
            order = np.lexsort([leading, codes])
            names = [*(class_name(label, class_names, 16) for label in labels), "unlabeled"]
            blocks = list(zip(names, np.bincount(codes).tolist(), strict=False))
        posterior = posterior[np.ix_(order, order)]
        np.fill_diagonal(posterior, np.nan)
        return cls(posterior, order, blocks)

    def plot(
        self,
        ax: Axes | Sequence[Axes] | None = None,
        title: str | None = None,
        *,
        color_bar: bool = True,
    ) -> Self:
        """Draw the matrix; nothing is fitted or solved.

        Parameters
        ----------
        ax, title
            As for other displays.
        color_bar : bool
            Whether to draw the scale of colors beside it. Several panels need one in all: see
            :func:`add_color_bar`.

        Examples
        --------
        >>> from seraph_cvx.plots import PosteriorDisplay
        >>> display = PosteriorDisplay.from_result([[1.0]], [[0.0], [9.0]])
        >>> len(display.plot(color_bar=False).figure_.axes)
        1
        """
        super().plot(ax, title)
        if color_bar:
            add_color_bar(self.axes_)
        return self

    def _draw(self, *axes: Axes) -> None:
        (ax,) = axes
        n, sizes = len(self.order), np.array([size for _, size in self.blocks] or [len(self.order)])
        edges, ends = np.arange(n + 1) - 0.5, np.cumsum(sizes)
        colors = mpl.colormaps["cividis"].resampled(20)  # uniform, for color-blind readers too
        ax.pcolormesh(edges, edges, self.posterior, cmap=colors, vmin=0, vmax=1, rasterized=True)
        ax.set_aspect("equal")
        ax.invert_yaxis()
        for end in ends[:-1] - 0.5:
            for draw in (ax.axhline, ax.axvline):
                draw(end, color="black", linewidth=1, path_effects=white_border(2.5))
        if 0 < len(self.blocks) <= MOST_NAMES:
            middles, names = ends - 0.5 * (sizes + 1), [name for name, _ in self.blocks]
            is_crowded = max(map(len, names)) * len(names) > 40
            ax.set_xticks(middles, names, rotation=90 if is_crowded else 0)
            ax.set_yticks(middles, names)
            ax.tick_params(length=0)
        where = "points, sorted by class" if self.blocks else "points, as given"
        ax.set(xlabel=where, ylabel=where)

    def _layout(self) -> Layout:
        return Layout("Which pairs the metric calls similar", height=6.4)


def add_color_bar(axes: Sequence[Axes]) -> None:
    """Draw one scale of colors for panels of a figure, of which the last shows a posterior."""
    figure = axes[-1].figure
    meshes = [drawn for drawn in axes[-1].collections if isinstance(drawn, QuadMesh)]
    if figure is None or not meshes:
        raise ValueError("The last of the axes shows no posterior: plot a PosteriorDisplay first.")
    bar = figure.colorbar(meshes[-1], ax=list(axes), label="p(+1): of one class, eq. (8)")
    enlarge_text(bar.ax)


def _posterior_at(coordinates: FloatArray, threshold: float) -> FloatArray:
    """The posterior (8), where the coordinates' Euclidean distances are the learned ones."""
    eta = check_number(threshold, "threshold", 0.0, strict=True)
    squares = squareform(pdist(coordinates, "sqeuclidean"))
    return np.asarray(posterior_similar(squares - eta))


def _predict_pairs(model: Any, points: NDArray[Any]) -> FloatArray:
    """Let a model predict p(+1) of all pairs i < j in lexicographic order, in batches."""
    pairs = np.column_stack(np.triu_indices(len(points), 1))
    parts = gen_batches(len(pairs), AT_ONCE)
    return np.concatenate([model.predict_pair_proba(points[pairs[part]]) for part in parts])
