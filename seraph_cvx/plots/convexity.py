"""Convexity to look at: the M-step's objective and (7) along a segment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from ..model.m_step_objective import MStepObjective, SemiSupervisedObjective
from ..numerics.checks import FloatArray
from ..numerics.psd_cone import check_metric
from .display import Display, Layout
from .style import (
    GRAY,
    PALETTE,
    SLIDE_WIDTH,
)

ROUNDING = 1e-9
"""How far above its chord a line still counts as below it, relative to the values."""


@dataclass(eq=False)
class SegmentDisplay(Display):
    """Show the M-step's function between two metrics, below its chord.

    t -> f(A_0 + t(A_1 - A_0)) of eq. (11), below its chord; and (7), which need not be.

    Parameters
    ----------
    positions : (k,) array
        t, from 0 to 1.
    convex_values, paper_values : (k,) arrays
        f of the M-step and the objective (7), both as minimizations.

    Examples
    --------
    >>> from seraph_cvx import MStepObjective, PairSet
    >>> from seraph_cvx.plots import SegmentDisplay
    >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
    >>> display = SegmentDisplay.from_result(MStepObjective(pairs), [[0.0]], [[3.0]]).plot()
    >>> display.excess(display.convex_values) <= 1e-12
    True
    """

    positions: FloatArray
    convex_values: FloatArray
    paper_values: FloatArray

    @classmethod
    def from_result(
        cls, objective: MStepObjective, start: ArrayLike, end: ArrayLike, n_points: int = 101
    ) -> Self:
        """Evaluate f and (7) at `n_points` equal steps from A_0 to A_1.

        Parameters
        ----------
        objective : MStepObjective
            Gives f, and (7) of the same pairs and weights.
        start, end : (m, m) array_like
            A_0 and A_1, positive semidefinite.
        n_points : int
            At least 2.
        """
        m = objective.pairs.n_features
        A, B = check_metric(start, m, "start"), check_metric(end, m, "end")
        if n_points < 2:
            raise ValueError(f"n_points={n_points}: a segment has at least its two ends.")
        paper = SemiSupervisedObjective(objective)
        positions = np.linspace(0.0, 1.0, n_points)
        matrices = [A + t * (B - A) for t in positions]
        values = (np.array([f.value(A) for A in matrices]) for f in (objective, paper))
        return cls(positions, *values)

    def chord(self, values: FloatArray) -> FloatArray:
        """The chord (1 - t) g(0) + t g(1), which is never below a convex function g.

        Examples
        --------
        >>> import numpy as np
        >>> values = np.array([1.0, 0.0, 3.0])
        >>> SegmentDisplay(np.array([0.0, 0.5, 1.0]), values, values).chord(values)
        array([1., 2., 3.])
        """
        return np.asarray((1.0 - self.positions) * values[0] + self.positions * values[-1])

    def excess(self, values: FloatArray) -> float:
        """The most that g exceeds its chord, relative to the largest |g|: at most 0 if g is convex.

        Examples
        --------
        >>> import numpy as np
        >>> values = np.array([0.0, 2.0, 0.0])
        >>> SegmentDisplay(np.array([0.0, 0.5, 1.0]), values, values).excess(values)
        1.0
        """
        above = float(np.max(values - self.chord(values)))
        return above / max(float(np.max(np.abs(values))), np.finfo(np.float64).tiny)

    def _draw(self, *axes: Axes) -> None:
        t = self.positions
        for ax, values, color, name, y_label in (
            (axes[0], self.convex_values, PALETTE[0], "M-step (11)", "f(A), eq. (11)"),
            (axes[1], self.paper_values, PALETTE[1], "Objective (7)", "objective (7)"),
        ):
            chord, verdict = self.chord(values), "below its chord"
            ax.plot(t, chord, color=GRAY, linestyle="--", linewidth=2, label="chord")
            ax.plot(t, values, color=color, linewidth=2.5)
            ax.plot(t[[0, -1]], values[[0, -1]], "o", color=color, markersize=8)
            if self.excess(values) > ROUNDING:
                verdict = "above its chord"
                ax.fill_between(
                    t,
                    chord,
                    values,
                    where=values > chord,
                    color=PALETTE[4],
                    alpha=0.5,
                    linewidth=0,
                    label="above the chord: not convex",
                )
            ax.set(title=f"{name}: {verdict}", ylabel=y_label)
            ax.set_xlabel("t, from A₀ (left) to A₁ (right)")
            ax.grid(alpha=0.3)

    def _layout(self) -> Layout:
        return Layout("Along the segment A₀ + t(A₁ − A₀)", 1, 2, SLIDE_WIDTH, 4.6)
