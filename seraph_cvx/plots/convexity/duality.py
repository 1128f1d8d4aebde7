"""Primal and dual values closing on each other along the iterates of a solver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from ...numerics.checks import FloatArray
from ..display import Display
from ..style import GRAY, PALETTE, SHOWN_MARKERS, use_decades

ROUNDING = 1e-9
"""A dual value may exceed the primal one by this much, relatively, by rounding; not by more."""


@dataclass(eq=False)
class DualityDisplay(Display):
    """Show how the bounds on the optimum close in on it.

    D_t <= min f <= f(A_t): the optimum of (11) lies in the band; beneath, f(A_t) - D_t.

    Parameters
    ----------
    iterations, primal_values, dual_values : (n_iterates,) arrays
    """

    iterations: FloatArray
    primal_values: FloatArray
    dual_values: FloatArray

    @classmethod
    def from_result(cls, records: Sequence[tuple[float, float, float]]) -> Self:
        """Show iterations and bounds as they are given.

        Parameters
        ----------
        records : sequence of (iteration, primal value, dual value)
            For example of :func:`seraph_cvx.certify` at each iterate.

        Examples
        --------
        >>> from seraph_cvx.plots import DualityDisplay
        >>> DualityDisplay.from_result([(0, 9.0, 1.0), (1, 5.0, 4.5)]).gaps
        array([8. , 0.5])
        """
        table = np.array(records, dtype=np.float64)
        if table.ndim != 2 or table.shape[1] != 3:
            raise ValueError(
                f"The records have shape {table.shape}: give at least one row of iteration, primal "
                "value, dual value."
            )
        bad = np.flatnonzero(~np.all(np.isfinite(table), axis=1))
        if len(bad):
            raise ValueError(f"Record {bad[0]} is {records[bad[0]]}: leave out what is not finite.")
        scale = np.maximum(1.0, np.abs(table[:, 1]))
        crossed = np.flatnonzero(table[:, 2] > table[:, 1] + ROUNDING * scale)
        if len(crossed):
            raise ValueError(
                f"Record {crossed[0]} is {records[crossed[0]]}: its dual value is above the primal "
                "one. Give iteration, primal value, dual value in this order."
            )
        return cls(*table.T)

    @property
    def gaps(self) -> FloatArray:
        """The gaps f(A_t) - D_t; at least one rounding error of f each."""
        rounding = np.finfo(np.float64).eps * np.maximum(1.0, np.abs(self.primal_values))
        return np.asarray(np.maximum(self.primal_values - self.dual_values, rounding))

    def _draw(self, axes: Sequence[Axes]) -> None:
        values, gap = axes
        t, few = self.iterations, len(self.iterations) <= SHOWN_MARKERS
        primal = values.plot(
            t,
            self.primal_values,
            color=PALETTE[1],
            marker="o" if few else "",
            linewidth=2,
            label="primal value f(A)",
        )
        dual = values.plot(
            t,
            self.dual_values,
            color=PALETTE[0],
            marker="s" if few else "",
            linewidth=2,
            label="dual value D, a lower bound",
        )
        values.fill_between(
            t, self.dual_values, self.primal_values, color=GRAY, alpha=0.25, linewidth=0
        )
        values.set_ylabel("value")
        values.tick_params(labelbottom=False)
        gap.plot(t, self.gaps, color=PALETTE[2], marker="D" if few else "", linewidth=2)
        use_decades(gap, self.gaps)
        gap.set_ylabel("duality gap f − D")
        gap.set_xlabel("iteration")
        gap.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=10, min_n_ticks=1))
        values.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=10, min_n_ticks=1))
        values.set_xlim(gap.get_xlim())
        for ax in axes:
            ax.grid(alpha=0.3)
        self._add_legend([*primal, *dual])

    def _title(self) -> str:
        return "Primal and dual close on the optimum"

    def _shape(self) -> tuple[int, int]:
        return 2, 1

    def _size(self) -> tuple[float, float]:
        return 8.0, 6.4
