"""A regularization path: eigenvalues, rank and certified gap by trace weight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from matplotlib.axes import Axes

from ..fit.path import SeraphPath
from ..numerics.checks import FloatArray
from .display import Display, Layout
from .history import SMALLEST_GAP
from .style import GRAY, LINE_COLORS, PALETTE, SLIDE_WIDTH, use_decades, use_integers

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
