"""The objective J, the paper's objective and the certified gap along an alternation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from ..fit.alternation import Alternation, Iteration
from ..fit.direct import DirectSolution
from ..numerics.checks import FloatArray, IntArray
from .display import Display
from .style import PALETTE, SHOWN_MARKERS, use_decades

SMALLEST_GAP = 1e-16
"""Smaller gaps are drawn at this value: they are rounding."""
RISE = 1e-9
"""A smaller relative rise is rounding."""


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

        Examples
        --------
        >>> from seraph_cvx import PairSet, alternate
        >>> from seraph_cvx.plots import HistoryDisplay
        >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
        >>> display = HistoryDisplay.from_result(alternate(pairs)).plot()
        >>> [ax.get_ylabel() for ax in display.axes_]
        ['J (lower is better)', '(7) (lower is better)', 'certified relative gap']
        """
        history: Sequence[Iteration] | Sequence[float]
        if isinstance(result, Alternation):
            history = result.history
        else:
            history = result.values if isinstance(result, DirectSolution) else result
        if not len(history):
            raise ValueError("The history is empty: no iteration succeeded.")
        steps = [step for step in history if isinstance(step, Iteration)]
        if not steps:
            return cls(np.arange(len(history)), np.array(history, dtype=np.float64))
        return cls(
            np.array([step.number for step in steps]),
            np.array([step.paper_objective for step in steps]),
            np.array([step.descent_value for step in steps]),
            np.array([step.relative_gap for step in steps]),
        )

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

    def _draw(self, axes: Sequence[Axes]) -> None:
        if self.descent_values is not None and self.relative_gaps is not None:
            descent, paper, gap = axes
            self._draw_line(descent, self.descent_values, PALETTE[0], "o")
            descent.set_title("J: what EM descends")
            descent.set_ylabel("J (lower is better)")
            gaps = np.maximum(self.relative_gaps, SMALLEST_GAP)
            gaps[np.isinf(gaps)] = np.nan  # a step of the descent on J has no certificate
            self._draw_line(gap, gaps, PALETTE[2], "s")
            use_decades(gap, gaps[np.isfinite(gaps)])
            gap.set_title("Gap of the M-step")
            gap.set_ylabel("certified relative gap")
        else:
            (paper,) = axes
        self._draw_paper_objective(paper)
        for ax in axes:
            ax.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6, min_n_ticks=1))
            ax.set_xlabel("iteration")
            ax.grid(alpha=0.3)

    def _draw_paper_objective(self, ax: Axes) -> None:
        self._draw_line(ax, self.paper_objective, PALETTE[1], "o")
        rises, few = self.rises, len(self.numbers) <= SHOWN_MARKERS
        ax.plot(
            self.numbers[rises],
            self.paper_objective[rises],
            linestyle="",
            marker="^",
            markersize=9 if few else 4,
            color=PALETTE[4],
            markeredgecolor="black" if few else PALETTE[4],
        )
        often = {0: "never rose", 1: "rose 1 time"}.get(len(rises), f"rose {len(rises)} times")
        ax.set_title(f"Objective (7): {often}")
        ax.set_ylabel("(7) (lower is better)")

    def _draw_line(self, ax: Axes, values: FloatArray, color: str, marker: str) -> None:
        shape = marker if len(values) <= SHOWN_MARKERS else ""
        ax.plot(self.numbers, values, color=color, marker=shape, linewidth=2)

    def _title(self) -> str:
        return "The alternation" if self.descent_values is not None else "Direct descent on (7)"

    def _shape(self) -> tuple[int, int]:
        return 1, 1 if self.descent_values is None else 3
