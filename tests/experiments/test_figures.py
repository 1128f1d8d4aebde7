"""Evidence: Figures 1 to 3 show what was measured, and can be read."""

from __future__ import annotations

import numpy as np
import pytest
from pictures import assert_legible
from reproduction import run_row, without_metric

from seraph_cvx import PairSet, solve_m_step
from seraph_cvx.experiments.protocol.tasks import TASKS
from seraph_cvx.experiments.results import figures
from seraph_cvx.experiments.results.figures import artificial_set, learn_panels
from seraph_cvx.experiments.results.summaries import summarise
from seraph_cvx.experiments.runs.early_stopping import stop_early
from seraph_cvx.experiments.runs.methods import METHODS
from seraph_cvx.plots.reproduction import plot_sparsity, plot_times

# Figures 1 and 2


@pytest.mark.parametrize("seed", range(3))
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


@pytest.mark.slow
def test_figures_1_and_2_are_legible_and_mark_exactly_the_errors(tmp_path):
    for number in (1, 2):
        sampling = artificial_set(number)
        panels = learn_panels(number, sampling)
        path = tmp_path / "figure.png"
        figure = plot_sparsity(number, sampling, panels, path)
        assert_legible(figure)
        assert [ax.get_title()[:3] for ax in figure.axes] == [f"({c})" for c in "abcdef"]
        for ax, panel in zip(figure.axes[1::2], panels, strict=True):
            assert len(ax.lines[0].get_xdata()) == round(panel.error)  # of 100 points
        assert path.stat().st_size < 300_000


@pytest.mark.parametrize("tasks", [["iris"], list(TASKS)])
@pytest.mark.parametrize("methods", [["gdm"], list(METHODS)])
def test_figure_3_is_legible_and_draws_the_mean_seconds(tasks, methods, tmp_path):
    rng = np.random.default_rng(0)
    rows = [
        run_row(task, method, s, 9.0, seconds=10.0 ** rng.uniform(-2, 2))
        for task in tasks
        for method in methods
        for s in range(2)
    ]
    figure = plot_times(summarise(rows), tmp_path / "figure.png")
    assert_legible(figure, at_least=4)
    means = sorted(s.seconds for s in summarise(rows))
    lines = [line for line in figure.axes[0].lines if line.get_label() in drawn_titles(methods)]
    assert sorted(y for line in lines for y in line.get_ydata()) == pytest.approx(means)
    assert (tmp_path / "figure.png").stat().st_size < 300_000


def drawn_titles(methods):
    return {METHODS[name].title for name in methods}
