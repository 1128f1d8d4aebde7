"""The eigenvalues of one metric or several, with their numerical ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from ..numerics.checks import FloatArray
from ..numerics.psd_cone import check_metric, numerical_rank
from .display import Display
from .style import GRAY, SHOWN_MARKERS, TEXT_SIZE, legible, line_look, use_decades


@dataclass(eq=False)
class SpectrumDisplay(Display):
    """Show the eigenvalues of metrics side by side, and their ranks.

    lambda_1(A) >= ... >= lambda_m(A), and rank A: those above 1e-8 lambda_1 (Section 3).

    A filled marker is an eigenvalue that counts; one that counts as zero is a hollow marker at the
    bottom, wherever that is.

    Parameters
    ----------
    eigenvalues : dict of str to (m,) arrays
        Of each metric, largest first.
    ranks : dict of str to int
    """

    eigenvalues: dict[str, FloatArray]
    ranks: dict[str, int]

    @classmethod
    def from_result(cls, metrics: ArrayLike | Mapping[str, ArrayLike]) -> Self:
        """Show the eigenvalues and ranks of one metric, or of several by name.

        Parameters
        ----------
        metrics : (m, m) array_like, or mapping of str to such
            For example before and after, or one for each trace weight.

        Examples
        --------
        >>> import numpy as np
        >>> from seraph_cvx.plots import SpectrumDisplay
        >>> before, after = np.eye(2), np.diag([0.0, 3.0])
        >>> SpectrumDisplay.from_result({"before": before, "after": after}).ranks
        {'before': 2, 'after': 1}
        """
        named = metrics if isinstance(metrics, Mapping) else {"A": metrics}
        if not named:
            raise ValueError("There is no metric to draw: give one, or a mapping of names to them.")
        checked = {
            name: check_metric(metric, len(np.asarray(metric)), f"the metric {name!r}")
            for name, metric in named.items()
        }
        eigenvalues = {
            name: np.asarray(np.linalg.eigvalsh(A)[::-1], np.float64) for name, A in checked.items()
        }
        return cls(eigenvalues, {name: numerical_rank(A) for name, A in checked.items()})

    @classmethod
    def from_estimator(cls, model: Any) -> Self:
        """Show the eigenvalues and rank of a fitted model's `metric_` and last M-step.

        Two metrics, where the model adds a share of the identity to the second, which has the rank
        that the trace penalty left.

        Examples
        --------
        >>> from seraph_cvx import SERAPH
        >>> from seraph_cvx.plots import SpectrumDisplay
        >>> X = [[0.0, 1.0], [0.1, 9.0], [2.0, 2.0], [2.1, 8.0]]
        >>> model = SERAPH(setting="hyper").fit(X, [0, 0, 1, 1])
        >>> SpectrumDisplay.from_estimator(model).ranks
        {'SERAPH': 1}
        """
        name = type(model).__name__
        metrics = {name: model.metric_}
        last = getattr(model, "m_step_metric_", model.metric_)
        if not np.array_equal(last, model.metric_):
            metrics[f"{name}, its last M-step"] = last
        return cls.from_result(metrics)

    def _draw(self, axes: Sequence[Axes]) -> None:
        (ax,) = axes
        counting = [values[: self.ranks[name]] for name, values in self.eigenvalues.items()]
        every = np.concatenate(counting)
        has_zeros = any(self.ranks[name] < len(self.eigenvalues[name]) for name in self.ranks)
        bottom = float(every.min()) / (10.0 if has_zeros else 1.0) if every.size else 0.0
        handles = [self._draw_one(ax, k, name, bottom) for k, name in enumerate(self.eigenvalues)]
        if every.size:
            use_decades(ax, [bottom, *every])
        else:
            ax.set_ylim(-0.1, 1.0)
        if len(handles) == 1:
            self._mark_rank(ax)
        most = max(len(values) for values in self.eigenvalues.values())
        ax.set_xlim(0.3, most + 0.7)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=10, min_n_ticks=1))
        ax.set_xlabel("number of the eigenvalue")
        ax.set_ylabel("eigenvalue of A")
        ax.grid(alpha=0.3)
        if has_zeros:
            look: dict[str, Any] = {"color": GRAY, "marker": "o", "markerfacecolor": "white"}
            handles.append(
                Line2D([], [], label="counts as zero (at the bottom)", linestyle="", **look)
            )
        self._add_legend(handles)

    def _draw_one(self, ax: Axes, k: int, name: str, bottom: float) -> Line2D:
        values, rank = self.eigenvalues[name], self.ranks[name]
        look, numbers = line_look(k), np.arange(1, len(values) + 1)
        if len(values) > SHOWN_MARKERS:
            look["markersize"] = 3
        ax.plot(numbers[:rank], values[:rank], **look)
        zeros = np.full(len(values) - rank, bottom)
        style = look | {"linestyle": "", "markerfacecolor": "white"}
        ax.plot(numbers[rank:], zeros, **style)
        return Line2D([], [], label=f"{legible(name, 24)} (rank {rank})", **look)

    def _mark_rank(self, ax: Axes) -> None:
        (rank,) = self.ranks.values()
        ax.axvline(rank + 0.5, color=GRAY, linestyle=":", linewidth=2)
        right = 2 * rank >= len(next(iter(self.eigenvalues.values())))
        ax.annotate(
            f"rank {rank}",
            (rank + 0.5, 0.97),
            xycoords=("data", "axes fraction"),
            xytext=(-8 if right else 8, 0),
            textcoords="offset points",
            ha="right" if right else "left",
            va="top",
            fontsize=TEXT_SIZE,
        )

    def _title(self) -> str:
        return "Spectrum of the metric" if len(self.ranks) == 1 else "Spectra of the metrics"
