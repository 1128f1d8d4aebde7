"""The figures of the report of a fit, each as an `<img>` that holds its own picture."""

from __future__ import annotations

from base64 import b64encode
from html import escape

import numpy as np
from matplotlib.figure import Figure

from ..files import picture_bytes
from ..history import HistoryDisplay
from ..points import LEARNED, PRINCIPAL, draw_points, group_by_class, principal_directions
from ..spectrum import SpectrumDisplay
from ..style import add_legend, enlarge_text, new_figure
from .fitted import FittedMetric

SIZE = (5.2, 4.4)
"""Of a figure in inches: small, so that its text can be read on a phone."""

MOST_MARKS = 1_500
"""More points than this are drawn as pixels: as shapes they would be megabytes."""


def scatter_images(fit: FittedMetric) -> str:
    """Draw the points in the two leading directions, before and after."""
    groups = group_by_class(fit.codes, fit.class_names or None)
    centered = fit.points - fit.points.mean(axis=0)
    before = centered @ principal_directions(fit.points)
    after = fit.model.transform(fit.given)
    images = []
    for title, coordinates, names in (
        ("Before: Euclidean distance", before, PRINCIPAL),
        ("After: learned metric", np.asarray(after), LEARNED),
    ):
        figure = new_figure(*SIZE)
        ax = figure.subplots()
        draw_points(ax, coordinates, groups, names)
        ax.set_title(title)
        enlarge_text(ax)
        add_legend(figure, ax.get_legend_handles_labels()[0])
        images.append(_image(figure, title, len(coordinates)))
    return "".join(images)


def spectrum_image(fit: FittedMetric) -> str:
    """Draw the eigenvalues of the metric, and of the certified matrix where it is another."""
    metrics = {"metric_": fit.model.metric_}
    if fit.has_share:
        metrics["m_step_metric_"] = fit.model.m_step_metric_
    figure = new_figure(*SIZE)
    SpectrumDisplay.from_result(metrics).plot(figure.subplots(), "Eigenvalues")
    return _image(figure, "The eigenvalues of the metric")


def history_images(fit: FittedMetric) -> str:
    """Draw J and the paper's objective (7) by iteration, and the gaps if several are certified."""
    display = HistoryDisplay.from_estimator(fit.model)
    figures = [new_figure(*SIZE) for _ in range(1 if display.descent_values is None else 3)]
    display.plot([figure.subplots() for figure in figures])
    gaps = display.relative_gaps
    if gaps is not None and np.sum(np.isfinite(gaps)) < 2:  # one point is no course
        figures.pop()
    titles = [ax.get_title() for ax in display.axes_]
    return "".join(_image(figure, title) for figure, title in zip(figures, titles, strict=False))


def _image(figure: Figure, text: str, n_marks: int = 0) -> str:
    ending = "svg" if n_marks <= MOST_MARKS else "png"
    kind = {"svg": "image/svg+xml", "png": "image/png"}[ending]
    content = b64encode(picture_bytes(figure, ending)).decode("ascii")
    return f'<img alt="{escape(text)}" src="data:{kind};base64,{content}"/>'
