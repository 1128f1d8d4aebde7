"""A regularization path: eigenvalues, rank and certified gap as the varied weight falls."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ..fit.path import SeraphPath
from ..numerics.checks import FloatArray
from .display import Display
from .style import GRAY, LINE_COLORS, PALETTE, TEXT_SIZE, use_decades

SEEN = 1e-6
"""Eigenvalues below this share of the largest on the path are not drawn."""
SMALLEST_GAP = 1e-12
"""Smaller gaps are drawn at this value: they are rounding."""
ROOM = 0.05
"""The margin on either side of the trace weights, as a share of their range."""


@dataclass(eq=False)
class PathDisplay(Display):
    """Show how eigenvalues and rank of the metric change along a regularization path.

    lambda -> eigenvalues and rank of A(lambda) = argmin f, eq. (11), and its certified gap.

    Parameters
    ----------
    trace_weights : (k,) array
        lambda, or the weight that is varied instead of it, largest first.
    eigenvalues : (k, m) array
        Largest first.
    ranks : list of int
    relative_gaps : (k,) array
    critical_trace_weight : float
        From this trace weight on up the metric is zero; drawn where it is finite.
    axis : str
        The name of the weight.
    """

    trace_weights: FloatArray
    eigenvalues: FloatArray
    ranks: list[int]
    relative_gaps: FloatArray
    critical_trace_weight: float
    axis: str = "trace weight"

    @classmethod
    def from_result(cls, path: SeraphPath) -> Self:
        """Show the eigenvalues, ranks and gaps of a path.

        Parameters
        ----------
        path : SeraphPath
            Of :func:`seraph_cvx.seraph_path`.

        Examples
        --------
        >>> from seraph_cvx import PairSet, seraph_path
        >>> from seraph_cvx.plots import PathDisplay
        >>> X = [[0.0, 1.0], [0.1, 9.0], [2.0, 2.0], [2.1, 8.0], [0.2, 5.0], [1.9, 4.0]]
        >>> path = seraph_path(PairSet.from_labels(X, [0, 0, 1, 1, -1, -1]), n_weights=4)
        >>> PathDisplay.from_result(path).eigenvalues.shape
        (4, 2)
        """
        return cls(
            path.weights,
            np.array([np.linalg.eigvalsh(metric)[::-1] for metric in path.metrics]),
            path.ranks,
            np.array([point.certificate.relative_gap for point in path]),
            path.critical_trace_weight,
            path.axis,
        )

    def _draw(self, axes: Sequence[Axes]) -> None:
        spectrum, rank, gap = axes
        self._draw_spectrum(spectrum)
        weights = self.trace_weights
        rank.step(weights, self.ranks, where="mid", color=PALETTE[0], linewidth=2)
        rank.plot(weights, self.ranks, "o", color=PALETTE[0], markersize=4)
        rank.set_title("Its rank")
        rank.set_ylabel("rank of A")
        rank.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=6, min_n_ticks=1))
        gaps = np.maximum(self.relative_gaps, SMALLEST_GAP)
        gap.plot(weights, gaps, color=PALETTE[1], marker="s", markersize=4)
        gap.set_title("Certified gap")
        gap.set_ylabel("relative duality gap")
        use_decades(gap, gaps)
        low, high = self._range()
        for ax in axes:
            ax.set_xscale("log" if low > 0.0 else "linear")
            ax.set_xlim(high, low)
            ax.set_xlabel(self.axis)
            if np.isfinite(self.critical_trace_weight):
                ax.axvline(self.critical_trace_weight, color=GRAY, linestyle=":", linewidth=1.5)
                ax.set_xlabel(f"{self.axis} (dotted: critical)")
            ax.grid(alpha=0.3)

    def _draw_spectrum(self, ax: Axes) -> None:
        largest = max(float(self.eigenvalues.max()), np.finfo(np.float64).tiny)
        seen = self.eigenvalues > SEEN * largest
        for k in range(int(seen.any(axis=0).sum())):
            ax.plot(
                self.trace_weights[seen[:, k]],
                self.eigenvalues[seen[:, k], k],
                color=LINE_COLORS[k % len(LINE_COLORS)],
                marker="o",
                markersize=4,
            )
        ax.set_title("Eigenvalues of the metric")
        ax.set_ylabel("eigenvalue of A")
        use_decades(ax, self.eigenvalues[seen] if np.any(seen) else [1.0])
        self._mark_zeros(ax)

    def _mark_zeros(self, ax: Axes) -> None:
        """Mark where all eigenvalues are 0, at the foot of the log scale, which has no 0."""
        zeros = self.trace_weights[np.array(self.ranks) == 0]
        if not len(zeros):
            return
        foot = ax.get_xaxis_transform()
        look: dict[str, Any] = {"color": GRAY, "markerfacecolor": "white", "zorder": 3}
        ax.plot(zeros, np.zeros(len(zeros)), "o", transform=foot, clip_on=False, **look)
        offset: dict[str, Any] = {"xytext": (7, 6), "textcoords": "offset points"}
        ax.annotate("A = 0", (zeros.min(), 0.0), xycoords=foot, fontsize=TEXT_SIZE, **offset)

    def _range(self) -> tuple[float, float]:
        """The range of all panels: the path's weights and the critical one, with a margin."""
        ends = np.append(self.trace_weights, self.critical_trace_weight)
        ends = ends[np.isfinite(ends)]
        if np.any(self.trace_weights <= 0.0):
            room = ROOM * (float(np.ptp(ends)) or 1.0)
            return float(ends.min()) - room, float(ends.max()) + room
        logs = np.log10(ends[ends > 0.0])
        room = ROOM * (float(np.ptp(logs)) or 1.0)
        return 10.0 ** float(logs.min() - room), 10.0 ** float(logs.max() + room)

    def _title(self) -> str:
        return "Regularization path"

    def _shape(self) -> tuple[int, int]:
        return 1, 3

    def _size(self) -> tuple[float, float]:
        return super()._size()[0], 4.0


def plot_path(
    path: SeraphPath, file: str | os.PathLike[str] | None = None, title: str = ""
) -> Figure:
    """Draw the eigenvalues of A(lambda), its rank, and its certified gap, against lambda.

    Or against the weight of another penalty, where the path varies that.

    Parameters
    ----------
    path : SeraphPath
        Of :func:`seraph_cvx.seraph_path`.
    file : path, optional
        Also save the picture to this file; its ending chooses the format.
    title : str

    Returns
    -------
    matplotlib.figure.Figure
        Three panels; the weight falls from left to right, as the path was walked.

    Examples
    --------
    >>> from seraph_cvx import PairSet, seraph_path
    >>> from seraph_cvx.plots import plot_path
    >>> X = [[0.0, 1.0], [0.1, 9.0], [2.0, 2.0], [2.1, 8.0], [0.2, 5.0], [1.9, 4.0]]
    >>> path = seraph_path(PairSet.from_labels(X, [0, 0, 1, 1, -1, -1]), n_weights=5)
    >>> [ax.get_title() for ax in plot_path(path).axes]
    ['Eigenvalues of the metric', 'Its rank', 'Certified gap']
    """
    return PathDisplay.from_result(path).draw(file, title or None)
