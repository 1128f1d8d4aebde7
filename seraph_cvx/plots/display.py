"""The base of all displays: finds axes, draws panels, keeps the text legible."""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Self, cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from .style import SLIDE_WIDTH, TITLE_SIZE, add_legend, enlarge_text, legible, new_figure


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
            By default a new figure, at most 1280 pixels wide. One axis for several panels
            is divided among them; otherwise give one for each panel.
        title : str, optional
            Title of a new figure, or of a single given axis that has none yet.

        Returns
        -------
        Display
            Itself, with `figure_`, `axes_` and `ax_`.

        Examples
        --------
        >>> from seraph_cvx.plots import SpectrumDisplay
        >>> display = SpectrumDisplay.from_result([[2.0, 0.0], [0.0, 1.0]]).plot(title="Mine")
        >>> display.figure_.savefig("spectrum.png")  # doctest: +SKIP
        >>> display.ax_.get_ylabel()
        'eigenvalue of A'
        """
        title = self._title() if title is None else title
        self.axes_ = self._find_axes(ax, title)
        figure = self.axes_[0].figure
        if figure is None:
            raise ValueError("The given axis has been removed from its figure: give another.")
        self.figure_ = figure
        self._has_own_figure = ax is None
        self._draw(self.axes_)
        if ax is not None and len(self.axes_) == 1 and not self.ax_.get_title():
            self.ax_.set_title(legible(title, 60))
        for panel in self.axes_:
            enlarge_text(panel, self._title_size())
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
        >>> from seraph_cvx.plots import SpectrumDisplay
        >>> figure = SpectrumDisplay.from_result([[2.0, 0.0], [0.0, 1.0]]).draw()
        >>> figure.get_suptitle()
        'Spectrum of the metric'
        """
        figure = self.plot(title=title).figure_
        if file is not None:
            cast(Figure, figure).savefig(file)
        return cast(Figure, figure)

    @property
    def ax_(self) -> Axes:
        """The matplotlib axes of the first panel."""
        return self.axes_[0]

    @abstractmethod
    def _draw(self, axes: Sequence[Axes]) -> None:
        """Draw the panels, each on its axes."""

    @abstractmethod
    def _title(self) -> str:
        """The title of a new figure."""

    def _title_size(self) -> float:
        """The text size of the panels' titles, in points."""
        return TITLE_SIZE

    def _shape(self) -> tuple[int, int]:
        """The number of rows and columns of panels."""
        return 1, 1

    def _n_panels(self) -> int:
        """The number of panels; the last row may have fewer."""
        return math.prod(self._shape())

    def _size(self) -> tuple[float, float]:
        """The width and height of a new figure, in inches."""
        return (7.6, 5.4) if self._shape() == (1, 1) else (SLIDE_WIDTH, 4.6)

    def _add_legend(self, handles: Sequence[Any], within: Axes | None = None) -> None:
        """Add a legend, below a new figure or inside given axes."""
        add_legend(self.figure_ if self._has_own_figure else within or self.ax_, handles)

    def _find_axes(self, ax: Axes | Sequence[Axes] | None, title: str) -> tuple[Axes, ...]:
        rows, columns = self._shape()
        n_panels = self._n_panels()
        if ax is None:
            figure = new_figure(*self._size(), title)
            panels = tuple(figure.subplots(rows, columns, squeeze=False).flat)
            for panel in panels[n_panels:]:
                panel.set_visible(False)
            return panels[:n_panels]
        if isinstance(ax, Axes):
            return (ax,) if n_panels == 1 else _divide(ax, rows, columns, n_panels)
        given = tuple(np.ravel(np.asarray(ax, dtype=object)))
        if len(given) != n_panels:
            raise ValueError(
                f"{type(self).__name__} has {n_panels} panels, but {len(given)} axes were given: "
                "give one for each, or a single one to be divided."
            )
        return given


def _divide(ax: Axes, rows: int, columns: int, n_panels: int) -> tuple[Axes, ...]:
    """Hide `ax`, and put panels where it was."""
    spec, figure = ax.get_subplotspec(), ax.figure
    if spec is None or figure is None:
        raise ValueError(
            "The given axes cannot be divided into panels, since they are not in a grid: make them "
            f"by figure.subplots(), or give {n_panels} axes."
        )
    ax.set_visible(False)
    inner = spec.subgridspec(rows, columns)
    panels = list(np.ndindex(rows, columns))[:n_panels]
    return tuple(figure.add_subplot(inner[row, column]) for row, column in panels)
