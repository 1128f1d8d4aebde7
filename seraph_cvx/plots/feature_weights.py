"""The weight that a metric gives to each feature, as bars."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from ..numerics.checks import FloatArray, check_count
from ..numerics.psd_cone import check_metric
from .display import Display, Layout
from .points import refuse_kernel
from .style import PALETTE, TEXT_SIZE, legible

BAR_HEIGHT = 0.28
"""The height of a bar and the gap below it, in inches."""


@dataclass(eq=False)
class FeatureWeightsDisplay(Display):
    """Show the weight of each feature, A_ii, as bars from the largest down.

    A diagonal metric, of ``SERAPH(penalties=[Diagonal()])``, is nothing but these weights:
    d(x, x')^2 = sum_i A_ii (x_i - x'_i)^2. They depend on the units of the features: standardize
    these to compare them.

    Parameters
    ----------
    weights : (k,) array
        Largest first.
    names : list of str
    left_out : int
        How many features of smaller weight are not shown.
    share_left_out : float
        What part of the sum of all weights they have.
    is_diagonal : bool
        Whether the weights are all there is to the metric.
    """

    weights: FloatArray
    names: list[str]
    left_out: int = 0
    share_left_out: float = 0.0
    is_diagonal: bool = True

    @classmethod
    def from_result(
        cls, metric: ArrayLike, feature_names: Sequence[str] | None = None, most: int = 20
    ) -> Self:
        """Sort the diagonal of a metric.

        Parameters
        ----------
        metric : (m, m) array_like
        feature_names : sequence of str, optional
            By default "feature 0", "feature 1", ...
        most : int
            Show at most this many features, those of the largest weights.

        Examples
        --------
        >>> from seraph_cvx.plots import FeatureWeightsDisplay
        >>> FeatureWeightsDisplay.from_result([[1.0, 0.0], [0.0, 3.0]], ["width", "length"]).names
        ['length', 'width']
        """
        A = check_metric(metric, len(np.asarray(metric)), "metric")
        names = [f"feature {k}" for k in range(len(A))]
        if feature_names is not None:
            names = [str(name) for name in feature_names]
        if len(names) != len(A):
            raise ValueError(f"There are {len(A)} features, but {len(names)} feature_names.")
        weights = np.diag(A)
        order = np.argsort(-weights, kind="stable")
        shown, rest = np.split(order, [check_count(most, "most")])
        share = float(np.sum(weights[rest]) / (np.sum(weights) or 1.0))
        is_diagonal = not np.any(A - np.diag(weights))
        return cls(weights[shown], [names[k] for k in shown], len(rest), share, is_diagonal)

    @classmethod
    def from_estimator(
        cls, model: Any, feature_names: Sequence[str] | None = None, most: int = 20
    ) -> Self:
        """Sort the diagonal of a fitted model's `metric_`.

        Parameters
        ----------
        model : SERAPH or another fitted metric learner
        feature_names : sequence of str, optional
            By default the model's `feature_names_in_`, the columns of the frame it was fitted to.
        most : int
            As for :meth:`from_result`.

        Examples
        --------
        >>> from seraph_cvx import SERAPH
        >>> from seraph_cvx.penalties import Diagonal
        >>> from seraph_cvx.plots import FeatureWeightsDisplay
        >>> X = [[0.0, 1.0], [0.1, 9.0], [2.0, 2.0], [2.1, 8.0]]
        >>> model = SERAPH(penalties=[Diagonal()]).fit(X, [0, 0, 1, 1])
        >>> FeatureWeightsDisplay.from_estimator(model).names
        ['feature 0', 'feature 1']
        """
        cure = "use SERAPH(penalties=[Diagonal()])"
        refuse_kernel(model, f"so the features of X have no weights: {cure}")
        if feature_names is None:
            feature_names = getattr(model, "feature_names_in_", None)
        return cls.from_result(model.metric_, feature_names, most)

    def _draw(self, *axes: Axes) -> None:
        (ax,) = axes
        rows = np.arange(len(self.weights))
        bars = ax.barh(rows, self.weights, height=0.7, color=PALETTE[0])
        ax.bar_label(bars, fmt="%.2g", padding=5, fontsize=TEXT_SIZE)
        ax.set_yticks(rows, [legible(name, 36) for name in self.names])
        rest = f" ({self.left_out} more have {self.share_left_out:.1%} of all weight)"
        ax.set(
            xlabel="weight of the feature" if self.is_diagonal else "diagonal entry of the metric",
            ylabel="feature" + rest * (self.left_out > 0),
            xlim=(0.0, 1.15 * float(np.max(self.weights)) or 1.0),
            ylim=(len(rows) - 0.4, -0.6),
        )
        ax.grid(axis="x", alpha=0.3)
        ax.set_axisbelow(True)

    def _layout(self) -> Layout:
        title = "Feature weights" if self.is_diagonal else "Diagonal of the metric"
        return Layout(title, 1, 1, 8.4, max(3.4, 1.5 + BAR_HEIGHT * len(self.weights)))


def plot_feature_weights(
    model: Any,
    feature_names: Sequence[str] | None = None,
    most: int = 20,
    file: str | os.PathLike[str] | None = None,
    title: str = "",
) -> Figure:
    """Draw the weight of each feature in a fitted model's metric, largest first.

    Parameters
    ----------
    model : SERAPH or another fitted metric learner
        Best with ``penalties=[Diagonal()]``, whose metric has nothing but these weights.
    feature_names : sequence of str, optional
        By default the model's `feature_names_in_`, the columns of the frame it was fitted to.
    most : int
        Show at most this many features.
    file : path, optional
        Also save the picture to this file; its ending chooses the format.
    title : str

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> from seraph_cvx import SERAPH
    >>> from seraph_cvx.penalties import Diagonal
    >>> from seraph_cvx.plots import plot_feature_weights
    >>> X = [[0.0, 1.0], [0.1, 9.0], [2.0, 2.0], [2.1, 8.0]]
    >>> model = SERAPH(penalties=[Diagonal()]).fit(X, [0, 0, 1, 1])
    >>> figure = plot_feature_weights(model, ["width", "length"])
    >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
    ['width', 'length']
    """
    display = FeatureWeightsDisplay.from_estimator(model, feature_names, most)
    return display.draw(file, title or None)
