"""Iterations: the objectives and the gap of an alternation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from ..fit.alternation import Alternation, Iteration
from ..fit.direct import DirectSolution
from ..numerics.checks import FloatArray, IntArray
from .display import Display, Layout
from .style import PALETTE, SHOWN_MARKERS, SLIDE_WIDTH, use_decades, use_integers

SMALLEST_GAP = 1e-16
"""Smaller gaps are drawn at this value: they are rounding."""
RISE = 1e-9
"""A smaller relative rise is rounding."""


def draw_course(
    ax: Axes, x: ArrayLike, y: ArrayLike, color: str, marker: str, y_label: str, title: str = ""
) -> None:
    """Draw values by iteration."""
    shape = marker if np.size(y) <= SHOWN_MARKERS else ""
    ax.plot(x, y, color=color, marker=shape, linewidth=2)
    use_integers(ax.xaxis)
    ax.set(xlabel="iteration", ylabel=y_label, title=title)
    ax.grid(alpha=0.3)


def draw_gaps(ax: Axes, numbers: IntArray, gaps: FloatArray, marker: str, title: str) -> None:
    """Draw certified gaps by iteration on a log scale; a step without certificate has none."""
    shown = np.where(np.isinf(gaps), np.nan, np.maximum(gaps, SMALLEST_GAP))
    draw_course(ax, numbers, shown, PALETTE[2], marker, "certified relative gap", title)
    use_decades(ax, shown)


@dataclass(eq=False)
class HistoryDisplay(Display):
    """Show what an alternation did at each iteration.

    J, which the alternation descends; (7), which it need not; the gap of each M-step (11).

    Iterations at which (7) rises are marked by orange triangles and counted in the title.

    Parameters
    ----------
    numbers : (n_iterations,) integer array
    paper_objective : (n_iterations,) array
        (7), as a minimization.
    descent_values, relative_gaps : (n_iterations,) arrays or None
        J and the certified relative gaps; None for algorithm="direct", which has neither.

    Examples
    --------
    >>> from seraph_cvx import PairSet, alternate
    >>> from seraph_cvx.plots import HistoryDisplay
    >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
    >>> display = HistoryDisplay.from_result(alternate(pairs)).plot()
    >>> [ax.get_ylabel() for ax in display.axes_]
    ['J (lower is better)', '(7), which may rise', 'certified relative gap']
    """

    numbers: IntArray
    paper_objective: FloatArray
    descent_values: FloatArray | None = None
    relative_gaps: FloatArray | None = None

    @classmethod
    def from_result(
        cls, result: Alternation | DirectSolution | Sequence[Iteration] | Sequence[float]
    ) -> Self:
        """Show the history of :func:`seraph_cvx.alternate`, or (7) along the direct descent.

        Parameters
        ----------
        result : Alternation, DirectSolution, or the history of either
            One Iteration each, or the values of (7).
        """
        history: Any = result
        if isinstance(result, Alternation):
            history = result.history
        elif isinstance(result, DirectSolution):
            history = result.values
        if not len(history):
            raise ValueError("The history is empty: no iteration succeeded.")
        if not isinstance(history[0], Iteration):
            return cls(np.arange(len(history)), np.array(history, dtype=np.float64))
        shown = "number", "paper_objective", "descent_value", "relative_gap"
        return cls(*(np.array([getattr(step, name) for step in history]) for name in shown))

    @classmethod
    def from_estimator(cls, model: Any) -> Self:
        """Show the `history_` of a fitted SERAPH, by EM or direct.

        Examples
        --------
        >>> from seraph_cvx import SERAPH
        >>> from seraph_cvx.plots import HistoryDisplay
        >>> model = SERAPH(algorithm="direct").fit([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
        >>> HistoryDisplay.from_estimator(model).plot().ax_.get_title()
        'Objective (7): never rose'
        """
        return cls.from_result(model.history_)

    @property
    def rises(self) -> IntArray:
        """The indices at which `paper_objective` (7) is higher than one iteration before."""
        before, after = self.paper_objective[:-1], self.paper_objective[1:]
        return np.flatnonzero(after > before + RISE * np.abs(before)) + 1

    def _draw(self, *axes: Axes) -> None:
        t, paper, rises = self.numbers, axes[len(axes) // 2], self.rises
        if self.descent_values is not None and self.relative_gaps is not None:
            J = "J (lower is better)", "J: what EM descends"
            draw_course(axes[0], t, self.descent_values, PALETTE[0], "o", *J)
            draw_gaps(axes[2], t, self.relative_gaps, "s", "Gap of the M-step")
        often = {0: "never rose", 1: "rose 1 time"}.get(len(rises), f"rose {len(rises)} times")
        is_descended = self.descent_values is None
        name = "(7) (lower is better)" if is_descended else "(7), which may rise"
        labels = name, f"Objective (7): {often}"
        draw_course(paper, t, self.paper_objective, PALETTE[1], "o", *labels)
        edge, size = ("black", 9) if len(t) <= SHOWN_MARKERS else (PALETTE[4], 4)
        values = self.paper_objective[rises]
        paper.plot(t[rises], values, "^", color=PALETTE[4], mec=edge, markersize=size)

    def _layout(self) -> Layout:
        if self.descent_values is None:
            return Layout("Direct descent on (7)")
        return Layout("The alternation", 1, 3, SLIDE_WIDTH, 4.6)
