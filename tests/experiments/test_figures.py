"""Evidence: Figures 1 to 3 show what was measured, and can be read."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from evidence import figures
from evidence.figures import artificial_set, learn_panels
from evidence.methods import METHODS, stop_early
from evidence.pictures import FAMILIES, OWN, plot_sparsity, plot_times
from evidence.results import read_times, summarize, times_of, times_table, to_csv
from evidence.tasks import TASKS
from matplotlib.colors import to_rgb
from pictures import assert_drawn
from reproduction_programs import run_row, without_metric

from seraph_cvx import PairSet, solve_m_step
from seraph_cvx.plots.style import PALETTE

pytestmark = pytest.mark.once


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_figure_1_gdm_takes_the_vertical_and_posterior_sparsity_the_horizontal_feature(seed):
    sampling = artificial_set(1, seed=seed)
    euclidean, gdm, posterior = learn_panels(1, sampling)
    assert gdm.metric[1, 1] > 1e4 * gdm.metric[0, 0]
    assert gdm.error > 40.0
    assert posterior.metric[0, 0] > 2.0 * posterior.metric[1, 1]
    assert posterior.error <= 1.0 < euclidean.error
    without = stop_early(PairSet.from_labels(sampling.X, sampling.y), 0.0, 0.0).metric
    assert without[1, 1] > without[0, 0]  # it is the unlabeled pairs that turn the metric


@pytest.mark.parametrize("seed", range(3))
def test_figure_2_projection_sparsity_leaves_one_nearly_horizontal_direction(seed):
    euclidean, gdm, projection = learn_panels(2, artificial_set(2, seed=seed))
    assert gdm.metric[1, 1] > 1e4 * gdm.metric[0, 0]
    assert gdm.error > 40.0
    eigenvalues, vectors = np.linalg.eigh(projection.metric)
    assert abs(eigenvalues[0]) < 1e-8 * eigenvalues[1]
    assert abs(vectors[0, 1]) > 0.95
    assert projection.error <= 3.0 < euclidean.error


def test_figure_2_without_an_answer_says_what_the_solver_said(monkeypatch):
    monkeypatch.setattr(figures, "solve_m_step", without_metric(solve_m_step))
    with pytest.raises(RuntimeError, match="The M-step of Figure 2 failed: planted trouble"):
        learn_panels(2)


def shades_at(ax, points):
    """The colors of the shade behind points."""
    (image,) = ax.images
    left, right, bottom, top = image.get_extent()
    colors = np.asarray(image.get_array())
    share = (points - [left, bottom]) / [right - left, top - bottom]
    column, row = np.floor(share * [colors.shape[1], colors.shape[0]]).astype(int).T
    return colors[row, column]


@pytest.mark.slow
def test_figure_2_is_legible_marks_the_errors_and_shades_the_predicted_class():
    sampling = artificial_set(2)
    panels = learn_panels(2, sampling)
    figure = plot_sparsity(2, sampling, panels)
    assert_drawn(figure)
    assert [ax.get_title()[:3] for ax in figure.axes] == [f"({c})" for c in "abcdef"]
    for ax, panel in zip(figure.axes[1::2], panels, strict=True):
        assert len(ax.lines[0].get_xdata()) == round(panel.error)  # of 100 points
        shades = shades_at(ax, sampling.X)
        for c in (0, 1):
            (shade,) = np.unique(shades[panel.predicted == c], axis=0)
            assert np.argmax(shade) == np.argmax(to_rgb(PALETTE[c]))  # bluish, or reddish


@pytest.mark.parametrize(
    ("tasks", "methods"),
    [
        (["iris"], ["gdm"]),
        pytest.param(list(TASKS), list(METHODS), marks=pytest.mark.slow),
    ],
    ids=["one", "all"],
)
def test_figure_3_is_legible_and_draws_the_seconds(tasks, methods):
    rng = np.random.default_rng(0)
    seconds = 10.0 ** rng.uniform(-2, 2, size=(len(methods), len(tasks)))
    figure = plot_times(pd.DataFrame(seconds, methods, tasks))
    assert_drawn(figure, at_least=4)
    lines = [line for ax in figure.axes if ax.get_visible() for line in ax.lines]
    titles = {METHODS[name].title.removeprefix("SERAPH ") for name in methods}
    assert {line.get_label() for line in lines} == titles
    drawn = sorted(y for line in lines for y in line.get_ydata())
    assert drawn == pytest.approx(sorted(seconds.flat))


def test_figure_3_every_method_is_of_one_family_with_the_range_of_all_behind_it():
    every = [method for members in FAMILIES.values() for method in members]
    assert sorted(every) == sorted(METHODS)
    figure = plot_times(pd.DataFrame({"iris": {"gdm": 0.1, "direct": 0.2, "mine": 0.3}}))
    panels = [ax for ax in figure.axes if ax.get_visible()]
    assert [ax.get_title() for ax in panels] == ["Other methods", "SERAPH, accelerated", OWN]
    for ax in panels:
        (band,) = ax.collections
        heights = band.get_paths()[0].vertices[:, 1]
        np.testing.assert_allclose([heights.min(), heights.max()], [0.1, 0.3])
        assert len(ax.lines) == 1


def test_figure_3_is_drawn_again_from_its_table(repository):
    seconds = {("iris", "gdm"): 0.25, ("usps-1-5-20", "seraph-hyper"): 3.5, ("wine", "mine"): 1e-3}
    rows = [run_row(*key, 0, 9.0, seconds=value) for key, value in seconds.items()]
    times = times_of(summarize(rows))
    assert times.T.stack().dropna().to_dict() == seconds
    again = read_times(to_csv(times_table(times).rows))
    pd.testing.assert_frame_equal(again, times, check_names=False)
    committed = (repository / "examples" / "reproduction" / "figure3.csv").read_text("utf-8")
    table = read_times(committed)
    assert (list(table), list(table.index)) == (list(TASKS), list(METHODS))
    assert table.notna().all(axis=None)
    with pytest.raises(ValueError, match="no times to draw"):
        plot_times(pd.DataFrame())
