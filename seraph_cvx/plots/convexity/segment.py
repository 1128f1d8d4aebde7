"""The objectives along a segment of the cone, each with its chord."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import ArrayLike

from ...model.m_step_objective import MStepObjective
from ...model.semi_supervised import SemiSupervisedObjective
from ...numerics.checks import FloatArray
from ...numerics.psd_cone import check_metric
from ..display import Display
from ..style import GRAY, PALETTE

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

        Examples
        --------
        >>> from seraph_cvx import MStepObjective, PairSet
        >>> from seraph_cvx.plots import SegmentDisplay
        >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
        >>> display = SegmentDisplay.from_result(MStepObjective(pairs), [[0.0]], [[3.0]]).plot()
        >>> display.excess(display.convex_values) <= 1e-12
        True
        """
        m = objective.pairs.n_features
        A, B = check_metric(start, m, "start"), check_metric(end, m, "end")
        if n_points < 2:
            raise ValueError(f"n_points={n_points}: a segment has at least its two ends.")
        paper = SemiSupervisedObjective(objective)
        positions = np.linspace(0.0, 1.0, n_points)
        matrices = [A + t * (B - A) for t in positions]
        return cls(
            positions,
            np.array([objective.value(matrix) for matrix in matrices]),
            np.array([paper.value(matrix) for matrix in matrices]),
        )

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

    def _draw(self, axes: Sequence[Axes]) -> None:
        left, right = axes
        self._draw_one(left, self.convex_values, PALETTE[0])
        self._draw_one(right, self.paper_values, PALETTE[1])
        left.set_title("M-step (11): " + self._verdict(self.convex_values))
        right.set_title("Objective (7): " + self._verdict(self.paper_values))
        left.set_ylabel("f(A), eq. (11)")
        right.set_ylabel("objective (7)")
        handles: list[Artist] = [
            Line2D([], [], color="black", linewidth=2.5, label="value"),
            Line2D([], [], color=GRAY, linestyle="--", linewidth=2, label="chord"),
        ]
        if max(self.excess(self.convex_values), self.excess(self.paper_values)) > ROUNDING:
            handles.append(Patch(color=PALETTE[4], alpha=0.5, label="above the chord: not convex"))
        self._add_legend(handles)

    def _draw_one(self, ax: Axes, values: FloatArray, color: str) -> None:
        t, chord = self.positions, self.chord(values)
        ax.plot(t, chord, color=GRAY, linestyle="--", linewidth=2)
        ax.plot(t, values, color=color, linewidth=2.5)
        ax.plot(t[[0, -1]], values[[0, -1]], linestyle="", marker="o", color=color, markersize=8)
        if self.excess(values) > ROUNDING:
            above = values > chord
            ax.fill_between(t, chord, values, where=above, color=PALETTE[4], alpha=0.5, linewidth=0)
        ax.set_xlabel("t, from A₀ (left) to A₁ (right)")
        ax.grid(alpha=0.3)

    def _verdict(self, values: FloatArray) -> str:
        return "below its chord" if self.excess(values) <= ROUNDING else "above its chord"

    def _title(self) -> str:
        return "Along the segment A₀ + t(A₁ − A₀)"

    def _shape(self) -> tuple[int, int]:
        return 1, 2
