"""The base of all displays: makes a figure, draws panels, keeps the text legible."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .style import add_legend, enlarge_text, new_figure


class Layout(NamedTuple):
    """The title of a figure, the number of panels side by side, and its size in inches."""

    title: str
    columns: int
    width: float
    height: float = 5.4


class Display(ABC):
    """A picture as an object: its numbers are attributes, and `draw` draws them."""

    def draw(self, file: str | os.PathLike[str] | None = None, title: str | None = None) -> Figure:
        """Draw the panels on a new figure, of which pyplot does not know, and return it.

        Nothing is fitted or solved.

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
        >>> from seraph_cvx.plots import MetricDisplay
        >>> display = MetricDisplay.from_result([[2.0]], [[0.0], [1.0], [3.0]], [0, 1, -1])
        >>> [ax.get_title() for ax in display.draw(title="Mine").axes]
        ['Before: Euclidean distance', 'After: learned metric']
        """
        layout = self._layout()
        figure = new_figure(layout.width, layout.height, layout.title if title is None else title)
        panels = figure.subplots(1, layout.columns)
        self._draw(*panels)
        add_legend(figure, panels)
        for panel in panels:
            enlarge_text(panel)
        if file is not None:
            figure.savefig(file)
        return figure

    @abstractmethod
    def _draw(self, *axes: Axes) -> None:
        """Draw the panels, each on its axes; what has a label is named in the legend."""

    @abstractmethod
    def _layout(self) -> Layout:
        """The title, panels and size of a figure."""
