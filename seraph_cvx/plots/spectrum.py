"""What a metric weighs: its eigenvalues along a regularization path, and its features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from ..fit.path import SeraphPath
from ..numerics.checks import FloatArray, check_count
from ..numerics.psd_cone import check_metric
from .display import Display, Layout
from .history import SMALLEST_GAP
from .points import refuse_kernel
from .style import (
    GRAY,
    LINE_COLORS,
    PALETTE,
    SLIDE_WIDTH,
    TEXT_SIZE,
    legible,
    use_decades,
    use_integers,
)

SEEN = 1e-6
"""Eigenvalues below this share of the largest on a path are not drawn."""


@dataclass(eq=False)
class PathDisplay(Display):
    """Show how eigenvalues and rank of the metric change along a regularization path.

    lambda -> eigenvalues and rank of A(lambda) = argmin f, eq. (11), and its certified gap.

    Parameters
    ----------
    trace_weights : (k,) array
        lambda, largest first.
    eigenvalues : (k, m) array
        Largest first.
    ranks : list of int
    relative_gaps : (k,) array
    critical_trace_weight : float
        From this trace weight on up the metric is zero; drawn where it is finite.

    Examples
    --------
    >>> from seraph_cvx import PairSet, seraph_path
    >>> from seraph_cvx.plots import PathDisplay
    >>> X = [[0.0, 1.0], [0.1, 9.0], [2.0, 2.0], [2.1, 8.0], [0.2, 5.0], [1.9, 4.0]]
    >>> path = seraph_path(PairSet.from_labels(X, [0, 0, 1, 1, -1, -1]), n_weights=4)
    >>> PathDisplay.from_result(path).eigenvalues.shape
    (4, 2)
    """

    trace_weights: FloatArray
    eigenvalues: FloatArray
    ranks: list[int]
    relative_gaps: FloatArray
    critical_trace_weight: float

    @classmethod
    def from_result(cls, path: SeraphPath) -> Self:
        """Show the eigenvalues, ranks and gaps of a path.

        Parameters
        ----------
        path : SeraphPath
            Of :func:`seraph_cvx.seraph_path`.
        """
        return cls(
            path.trace_weights,
            np.array([np.linalg.eigvalsh(metric)[::-1] for metric in path.metrics]),
            path.ranks,
            np.array([point.certificate.relative_gap for point in path]),
            path.critical_trace_weight,
        )

    def _draw(self, *axes: Axes) -> None:
        spectrum, rank, gap = axes
        weights, critical, ranks = self.trace_weights, self.critical_trace_weight, self.ranks
        is_log = np.all(weights > 0.0)
        self._draw_spectrum(spectrum)
        rank.step(weights, ranks, where="mid", color=PALETTE[0], linewidth=2)
        rank.plot(weights, ranks, "o", color=PALETTE[0], markersize=4)
        rank.set(title="Its rank", ylabel="rank of A")
        use_integers(rank.yaxis)
        gaps = np.maximum(self.relative_gaps, SMALLEST_GAP)
        gap.plot(weights, gaps, color=PALETTE[1], marker="s", markersize=4)
        gap.set(title="Certified gap", ylabel="relative duality gap")
        use_decades(gap, gaps)
        for ax in (rank, spectrum, gap):
            ax.set(xscale="log" if is_log else "linear", xlabel="trace weight")
            if np.isfinite(critical):
                ax.axvline(critical, color=GRAY, linestyle=":", linewidth=1.5)
                ax.set_xlabel("trace weight (dotted: critical)")
            ax.grid(alpha=0.3)
        low, high = rank.get_xlim()
        for ax in axes:
            ax.set_xlim(high, low)

    def _draw_spectrum(self, ax: Axes) -> None:
        """Draw a line for each eigenvalue that is not negligible; a log scale has no zero."""
        weights, least = self.trace_weights, SEEN * float(self.eigenvalues.max())
        seen = self.eigenvalues > max(least, np.finfo(np.float64).tiny)
        shown = np.where(seen, self.eigenvalues, np.nan)
        for k, course in enumerate(shown.T[seen.any(axis=0)]):
            ax.plot(weights, course, color=LINE_COLORS[k % len(LINE_COLORS)], marker="o", ms=4)
        ax.set(title="Eigenvalues of the metric", ylabel="eigenvalue of A")
        use_decades(ax, shown if np.any(seen) else [1.0])

    def _layout(self) -> Layout:
        return Layout("Regularization path", 1, 3, SLIDE_WIDTH, 4.0)


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

    Examples
    --------
    >>> from seraph_cvx.plots import FeatureWeightsDisplay
    >>> FeatureWeightsDisplay.from_result([[1.0, 0.0], [0.0, 3.0]], ["width", "length"]).names
    ['length', 'width']
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
            xlim=(0.0, 1.2 * float(np.max(self.weights)) or 1.0),
            ylim=(len(rows) - 0.4, -0.6),
        )
        ax.grid(axis="x", alpha=0.3)
        ax.set_axisbelow(True)

    def _layout(self) -> Layout:
        title = "Feature weights" if self.is_diagonal else "Diagonal of the metric"
        return Layout(title, 1, 1, 8.4, max(3.4, 1.5 + 0.28 * len(self.weights)))
