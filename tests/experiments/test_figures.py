"""Evidence: Figures 1 to 3 show what was measured, and can be read."""

from __future__ import annotations

import numpy as np
import pytest
from evidence.plots.sparsity import plot_sparsity
from evidence.plots.times import FAMILIES, OWN, plot_times
from evidence.protocol.tasks import TASKS
from evidence.results import figures
from evidence.results.documents import figure3_files, times_again
from evidence.results.figures import artificial_set, learn_panels
from evidence.results.summaries import summarize
from evidence.results.tables import times_of
from evidence.runs.early_stopping import stop_early
from evidence.runs.methods import METHODS
from matplotlib.colors import to_rgb
from pictures import assert_legible
from reproduction_programs import run_row, without_metric

from seraph_cvx import PairSet, solve_m_step
from seraph_cvx.plots.style import PALETTE

# Figures 1 and 2


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))]
)
def test_figure_1_gdm_takes_the_vertical_and_posterior_sparsity_the_horizontal_feature(seed):
    sampling = artificial_set(1, seed=seed)
    euclidean, gdm, posterior = learn_panels(1, sampling)
    assert gdm.metric[1, 1] > 1e4 * gdm.metric[0, 0]
    assert gdm.error > 40.0
    assert posterior.metric[0, 0] > 2.0 * posterior.metric[1, 1]
    assert posterior.error <= 1.0 < euclidean.error
    pairs = PairSet.from_labels(sampling.X, sampling.y)
    assert (len(pairs.similar), len(pairs.dissimilar)) == (2, 4)
    without = stop_early(pairs, 0.0, 0.0).metric
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
def test_figures_1_and_2_are_legible_mark_the_errors_and_shade_the_predicted_class(
    tmp_path,
):
    for number in (1, 2):
        sampling = artificial_set(number)
        panels = learn_panels(number, sampling)
        path = tmp_path / "figure.png"
        figure = plot_sparsity(number, sampling, panels, path)
        assert_legible(figure)
        assert [ax.get_title()[:3] for ax in figure.axes] == [f"({c})" for c in "abcdef"]
        for ax, panel in zip(figure.axes[1::2], panels, strict=True):
            assert len(ax.lines[0].get_xdata()) == round(panel.error)  # of 100 points
            shades = shades_at(ax, sampling.X)
            for c in (0, 1):
                (shade,) = np.unique(shades[panel.predicted == c], axis=0)
                assert np.argmax(shade) == np.argmax(to_rgb(PALETTE[c]))  # bluish, or reddish
        assert path.stat().st_size < 300_000


@pytest.mark.parametrize(
    ("tasks", "methods"),
    [
        (["iris"], ["gdm"]),
        (list(TASKS)[:4], list(METHODS)[:6]),
        pytest.param(list(TASKS), list(METHODS), marks=pytest.mark.slow),
    ],
    ids=["one", "some", "all"],
)
def test_figure_3_is_legible_and_draws_the_mean_seconds(tasks, methods, tmp_path):
    rng = np.random.default_rng(0)
    rows = [
        run_row(task, method, s, 9.0, seconds=10.0 ** rng.uniform(-2, 2))
        for task in tasks
        for method in methods
        for s in range(2)
    ]
    figure = plot_times(times_of(summarize(rows)), tmp_path / "figure.png")
    assert_legible(figure, at_least=4)
    means = sorted(s.seconds for s in summarize(rows))
    panels = [ax for ax in figure.axes if ax.get_visible()]
    lines = [line for ax in panels for line in ax.lines]
    assert sorted(line.get_label() for line in lines) == sorted(drawn_titles(methods))
    assert sorted(y for line in lines for y in line.get_ydata()) == pytest.approx(means)
    assert (tmp_path / "figure.png").stat().st_size < 300_000


def drawn_titles(methods):
    """The titles of methods, without the word that their panel has in its own title."""
    return {METHODS[name].title.removeprefix("SERAPH ") for name in methods}


def test_figure_3_every_method_is_of_one_family_with_the_range_of_all_behind_it():
    every = [method for members in FAMILIES.values() for method in members]
    assert sorted(every) == sorted(METHODS)
    figure = plot_times({("iris", "gdm"): 0.1, ("iris", "direct"): 0.2, ("iris", "mine"): 0.3})
    panels = [ax for ax in figure.axes if ax.get_visible()]
    assert [ax.get_title() for ax in panels] == ["Other methods", "SERAPH, accelerated", OWN]
    for ax in panels:
        (band,) = ax.collections
        heights = band.get_paths()[0].vertices[:, 1]
        np.testing.assert_allclose([heights.min(), heights.max()], [0.1, 0.3])
        assert len(ax.lines) == 1


def test_figure_3_is_drawn_again_from_its_table(repository, tmp_path):
    times = {("iris", "gdm"): 0.25, ("usps-1-5-20", "seraph-hyper"): 3.5, ("wine", "mine"): 1e-3}
    rows = [run_row(*key, 0, 9.0, seconds=seconds) for key, seconds in times.items()]
    (tmp_path / "figure3.csv").write_text(figure3_files(summarize(rows))["figure3.csv"])
    assert times_again(tmp_path) == times
    committed = times_again(repository / "examples" / "reproduction")
    assert {method for _, method in committed} == set(METHODS)
    assert {task for task, _ in committed} == set(TASKS)
