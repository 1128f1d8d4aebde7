"""The base of all displays: finds axes, draws panels, keeps the text legible."""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple, Self, cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from .style import LEGEND_ENTRIES, add_legend, enlarge_text, legible, new_figure, save


class Layout(NamedTuple):
    """The title of a new figure, its panels, and its size in inches."""

    title: str
    rows: int = 1
    columns: int = 1
    width: float = 7.6
    height: float = 5.4
    n_missing: int = 0  # panels of the last row that are not drawn
    legend_entries: int = LEGEND_ENTRIES


class Display(ABC):
    """A picture as an object: its numbers are attributes, and `plot` draws them.

    Attributes
    ----------
    figure_ : matplotlib.figure.Figure or SubFigure
        After `plot`: where it was drawn; pyplot does not know of a figure made by `plot`.
    axes_ : tuple of Axes
        After `plot`: the panels, from left to right and down.
    """

    figure_: Figure | SubFigure
    axes_: tuple[Axes, ...]

    def plot(self, ax: Axes | Sequence[Axes] | None = None, title: str | None = None) -> Self:
        """Draw the panels; nothing is fitted or solved.

        Parameters
        ----------
        ax : Axes or sequence of Axes, optional
            One for each panel; by default those of a new figure, 1280 pixels wide at most.
        title : str, optional
            Title of a new figure, or of a single given axis that has none yet.

        Returns
        -------
        Display
            Itself, with `figure_`, `axes_` and `ax_`.

        Examples
        --------
        >>> from seraph_cvx.plots import MetricDisplay
        >>> display = MetricDisplay.from_result([[2.0]], [[0.0], [1.0], [3.0]], [0, 1, -1]).plot()
        >>> display.figure_.savefig("metric.png")  # doctest: +SKIP
        >>> display.ax_.get_title()
        'Before: Euclidean distance'
        """
        layout = self._layout()
        title = layout.title if title is None else title
        self.axes_ = self._find_axes(ax, layout._replace(title=title))
        self.figure_ = cast(Figure, self.axes_[0].figure)
        self._draw(*self.axes_)
        add_legend(self.figure_ if ax is None else self.ax_, self.axes_, layout.legend_entries)
        if ax is not None and len(self.axes_) == 1 and not self.ax_.get_title():
            self.ax_.set_title(legible(title, 60))
        for panel in self.axes_:
            enlarge_text(panel)
        return self

    def draw(self, file: str | os.PathLike[str] | None = None, title: str | None = None) -> Figure:
        """Draw on a new figure, and return it.

        Parameters
        ----------
        file : path, optional
            Also save the picture to this file; its ending chooses the format.
        title : str, optional

        Returns
        -------
        matplotlib.figure.Figure

        Examples
        --------
        >>> from seraph_cvx.plots import HistoryDisplay
        >>> HistoryDisplay.from_result([441.0, 352.0, 39.0]).draw(title="Descent").get_suptitle()
        'Descent'
        """
        return save(cast(Figure, self.plot(title=title).figure_), file)

    @property
    def ax_(self) -> Axes:
        """The matplotlib axes of the first panel."""
        return self.axes_[0]

    @abstractmethod
    def _draw(self, *axes: Axes) -> None:
        """Draw the panels, each on its axes; what has a label is named in the legend."""

    @abstractmethod
    def _layout(self) -> Layout:
        """The title, panels and size of a new figure."""

    def _find_axes(self, ax: Axes | Sequence[Axes] | None, layout: Layout) -> tuple[Axes, ...]:
        """The axes of the panels: new ones, or those given."""
        shape = layout.rows, layout.columns
        n_panels = math.prod(shape) - layout.n_missing
        if ax is None:
            figure = new_figure(layout.width, layout.height, layout.title)
            grid = figure.add_gridspec(*shape)
            return tuple(figure.add_subplot(grid[k]) for k in range(n_panels))
        given = tuple(np.ravel(np.asarray(ax, dtype=object)))
        if len(given) != n_panels:
            raise ValueError(
                f"{type(self).__name__} has {n_panels} panels, but {len(given)} axes were given: "
                "give one for each."
            )
        return given
