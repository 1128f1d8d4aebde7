"""Evidence that the displays show the results they are given, legibly at the size of a slide."""

from __future__ import annotations

import ast
from dataclasses import fields
from functools import cache
from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from instances import random_objective, random_pairs, random_psd
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.contour import ContourSet
from matplotlib.figure import Figure
from matplotlib.image import imsave
from pictures import assert_legible, drawn_texts

from seraph_cvx import (
    SERAPH,
    KernelSERAPH,
    MStepObjective,
    alternate,
    certify,
    plots,
    seraph_path,
    solve_m_step,
)
from seraph_cvx.baselines.euclidean import Euclidean
from seraph_cvx.fit.alternation import Iteration
from seraph_cvx.model.semi_supervised import SemiSupervisedObjective
from seraph_cvx.numerics.psd_cone import project, symmetrize
from seraph_cvx.penalties import Diagonal
from seraph_cvx.plots import (
    DualityDisplay,
    FeatureWeightsDisplay,
    HistoryDisplay,
    MetricDisplay,
    PathDisplay,
    PosteriorDisplay,
    SegmentDisplay,
    SliceDisplay,
    SpectrumDisplay,
    WorkPrecisionDisplay,
    plot_feature_weights,
)
from seraph_cvx.plots.posterior import add_color_bar
from seraph_cvx.plots.style import PALETTE, new_figure

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4)) * [3.0, 2.0, 1.0, 0.5]
Y = np.where(np.arange(60) < 12, np.arange(60) % 3, -1)
TWENTY = np.arange(60) % 20
LONG_NAMES = [f"a rather long name of class {k}" for k in range(20)]
METRIC = np.diag([0.5, 0.02, 0.1, 0.0])


def em_history(n):
    """n iterations whose (7) falls, then rises; the fields no picture shows are all 1."""
    rest = {field.name: 1 for field in fields(Iteration)}
    shown = ("number", "descent_value", "paper_objective", "relative_gap")
    rows = [(k + 1, 10 + 5 / (k + 1), 20 + abs(k - 3) / 10, 10.0 ** -(k % 9)) for k in range(n)]
    return [Iteration(**rest | dict(zip(shown, row, strict=True))) for row in rows]


@cache
def descent(n_steps=40):
    """An M-step, its optimum, and the iterates of a projected gradient from the identity."""
    objective = random_objective(3, "hyper", n=25, m=3)
    A, iterates, curvature = np.eye(3), [np.eye(3)], objective.smoothness_bound / 4.0
    for _ in range(n_steps):
        gradient = objective.value_and_gradient(A)[1]
        A = project(symmetrize(A - gradient / curvature))
        iterates.append(A)
    return objective, solve_m_step(objective).metric, iterates


@cache
def records(n_steps=40):
    """(iteration, primal, dual) along that descent, by the referee."""
    objective, _, iterates = descent(n_steps)
    certificates = [certify(objective, A) for A in iterates]
    return [(k, c.primal_value, c.dual_value) for k, c in enumerate(certificates)]


@cache
def short_path(*weights):
    """A path with these trace weights, or eight of its own."""
    return seraph_path(random_pairs(3, n_labeled=60), weights or "auto", n_weights=8)


def race_rows(n_instances):
    return [
        {
            "instance": f"breast_cancer-n{20 + i}-standard-hyper-w0.01-s0",
            "solver": solver,
            "formulation": "dual" if solver == "SCS" else "",
            "tol": tol,
            "claims": tol > 1e-4,
            "true_gap": tol / (1 + i),
            "total_seconds": 0.1 * (s + 1) / tol**0.1,
        }
        for i in range(n_instances)
        for s, solver in enumerate(("fista", "SCS", "CLARABEL"))
        for tol in (1e-3, 1e-6)
    ]


def slice_display(**more):
    objective, optimum, iterates = descent()
    corners = {"zero": np.zeros((3, 3)), "optimum": optimum, "identity": np.eye(3)}
    paths = {"projected gradient": iterates, "straight": [2 * optimum, optimum]}
    return SliceDisplay.from_result(objective, corners, paths, **more)


def spectra(n):
    return {
        f"trace weight {k}": np.diag(np.arange(6.0) * (np.arange(6) > k)) / (k + 1)
        for k in range(n)
    }


def bent_objective():
    """Unlabeled pairs that weigh much: (7) is far from convex."""
    return MStepObjective(random_pairs(1, m=2), unlabeled_weight=3.0)


CASES = {
    "metric": lambda: MetricDisplay.from_result(METRIC, X, Y),
    "metric of two features": lambda: MetricDisplay.from_result(METRIC, X, Y, features=(0, 1)),
    "metric of one feature": lambda: MetricDisplay.from_result([[2.0]], X[:, :1], Y),
    "metric of rank 1": lambda: MetricDisplay.from_result(np.diag([0, 1.0, 0, 0]), X, Y),
    "metric of rank 0": lambda: MetricDisplay.from_result(np.zeros((4, 4)), X, Y),
    "metric, twenty classes": lambda: MetricDisplay.from_result(
        METRIC, X, TWENTY, class_names=LONG_NAMES
    ),
    "metric, large numbers": lambda: MetricDisplay.from_result(METRIC / 1e12, 1e6 * X, Y),
    "posterior": lambda: PosteriorDisplay.from_result(METRIC, X, Y),
    "posterior of one feature": lambda: PosteriorDisplay.from_result([[2.0]], X[:, :1], Y),
    "posterior of rank 0": lambda: PosteriorDisplay.from_result(np.zeros((4, 4)), X, Y),
    "posterior, twenty classes": lambda: PosteriorDisplay.from_result(
        METRIC, X, TWENTY, class_names=LONG_NAMES
    ),
    "posterior without labels": lambda: PosteriorDisplay.from_result(METRIC, X),
    "posterior of two points": lambda: PosteriorDisplay.from_result(METRIC, X[:2], [0, 1]),
    "posterior of noise": lambda: PosteriorDisplay(
        np.random.default_rng(1).random((400, 400)), np.arange(400), [("a", 150), ("b", 250)]
    ),
    "spectrum": lambda: SpectrumDisplay.from_result(METRIC),
    "spectrum of rank 0": lambda: SpectrumDisplay.from_result(np.zeros((3, 3))),
    "spectrum of one feature": lambda: SpectrumDisplay.from_result([[2.0]]),
    "spectrum of many features": lambda: SpectrumDisplay.from_result(
        {"before": np.eye(200), "after": np.diag(1.0 / np.arange(1, 201) ** 3)}
    ),
    "spectra of six": lambda: SpectrumDisplay.from_result(spectra(6)),
    "history": lambda: HistoryDisplay.from_result(em_history(12)),
    "history of one iteration": lambda: HistoryDisplay.from_result(em_history(1)),
    "history of 200 iterations": lambda: HistoryDisplay.from_result(em_history(200)),
    "history, direct": lambda: HistoryDisplay.from_result([441.0, 352.0, 39.0, 12.0, 11.9]),
    "segment": lambda: SegmentDisplay.from_result(bent_objective(), np.zeros((2, 2)), np.eye(2)),
    "segment from a point to itself": lambda: SegmentDisplay.from_result(
        bent_objective(), np.eye(2), np.eye(2)
    ),
    "slice": lambda: slice_display(resolution=21),
    "slice without paths": lambda: SliceDisplay.from_result(
        descent()[0],
        {"E₁": np.diag([1.0, 0, 0]), "E₂": np.diag([0, 1.0, 0]), "I": np.eye(3)},
        resolution=21,
    ),
    "duality": lambda: DualityDisplay.from_result(records()),
    "duality of one iteration": lambda: DualityDisplay.from_result(records()[:1]),
    "duality of 200 iterations": lambda: DualityDisplay.from_result(
        [(k, 1e3 * (1 + 2.0**-k), 1e3) for k in range(200)]
    ),
    "path": lambda: PathDisplay.from_result(short_path()),
    "feature weights": lambda: FeatureWeightsDisplay.from_result(METRIC),
    "feature weights, one feature": lambda: FeatureWeightsDisplay.from_result([[2.0]]),
    "feature weights, rank 0": lambda: FeatureWeightsDisplay.from_result(np.zeros((3, 3))),
    "feature weights, long names": lambda: FeatureWeightsDisplay.from_result(
        np.diag(1e6 / np.arange(1.0, 65.0) ** 3),
        [f"the $mean_{{of}}$ a rather long name of feature {k}" for k in range(64)],
    ),
    "work and precision": lambda: WorkPrecisionDisplay.from_result(race_rows(2)),
    "work and precision, five panels": lambda: WorkPrecisionDisplay.from_result(race_rows(5)),
}
PLAIN = [
    "metric",
    "posterior",
    "spectrum",
    "history",
    "segment",
    "slice",
    "duality",
    "path",
    "feature weights",
    "work and precision",
]


def all_texts(figure):
    """What `drawn_texts` knows of, and the labels of minor ticks."""
    texts = drawn_texts(figure)
    for axis in [axis for ax in figure.axes for axis in (ax.xaxis, ax.yaxis)]:
        texts += [text for text in axis.get_minorticklabels() if text.get_text()]
    return texts


MORE_OF_A_KIND = [
    "metric of two features",
    "metric of rank 1",
    "posterior of one feature",
    "spectrum of one feature",
    "history of 200 iterations",
    "segment from a point to itself",
    "duality of 200 iterations",
    "feature weights, one feature",
    "work and precision, five panels",
]
"""A fast case of the same display is as hard to lay out."""
LARGEST = ["posterior of noise", "posterior, twenty classes", "feature weights, long names"]
"""Those whose pictures take the most bytes."""


def slow_if(is_slow):
    return [pytest.param(c, marks=pytest.mark.slow) if is_slow(c) else c for c in CASES]


@pytest.mark.parametrize("case", slow_if(MORE_OF_A_KIND.__contains__))
def test_every_display_is_legible_labeled_and_large(case):
    """No text overlaps or is clipped; 11 points at 1280 pixels."""
    display = CASES[case]().plot()
    assert_legible(display.figure_, at_least=6)
    assert display.figure_.bbox.width <= 1280.0 + 1e-6
    assert min(text.get_fontsize() for text in all_texts(display.figure_)) >= 11.0
    columns = display._layout().columns
    for k, ax in enumerate(display.axes_):
        assert ax.get_ylabel() or k % columns
        assert ax.get_xlabel() or k + columns < len(display.axes_)


@pytest.mark.parametrize("case", slow_if(lambda case: case not in LARGEST))
def test_every_picture_is_small(case):
    """Under 300 KB."""
    figure = CASES[case]().plot().figure_
    figure.canvas.draw()
    content = BytesIO()
    imsave(content, np.asarray(figure.canvas.buffer_rgba()))
    assert len(content.getvalue()) < 300_000


def drawn_above(case):
    """The display of a case on the upper of two axes, the figure, and both axes."""
    figure = new_figure(10.6, 9.0)
    above, below = figure.subplots(2, 1)
    below.plot([0, 1], [0, 1])
    display = CASES[case]()
    assert display.plot(ax=above) is display
    return display, figure, above, below


@pytest.mark.parametrize("case", PLAIN)
def test_a_display_is_drawn_on_a_given_axis(case):
    display, figure, above, below = drawn_above(case)
    assert display.figure_ is figure
    assert below.lines[0].get_xydata().tolist() == [[0, 0], [1, 1]]
    assert display.ax_ is display.axes_[0]
    assert all(ax.has_data() for ax in display.axes_)
    assert (above in display.axes_) == (len(display.axes_) == 1)
    assert all(ax.get_title() for ax in display.axes_) or case in ("duality",)
    assert figure.get_suptitle() == ""


ONE_PANEL_A_BAR_AND_A_LEGEND = ("spectrum", "posterior", "metric")


@pytest.mark.parametrize(
    "case",
    [
        case if case in ONE_PANEL_A_BAR_AND_A_LEGEND else pytest.param(case, marks=pytest.mark.slow)
        for case in PLAIN
    ],
)
def test_a_display_on_a_given_axis_is_legible(case):
    assert_legible(drawn_above(case)[1])


@pytest.mark.parametrize("case", ["metric", "history", "duality"])
def test_panels_may_be_given_one_by_one(case):
    display = CASES[case]()
    own = display.plot().axes_
    given = tuple(new_figure(10.6, 4.0).subplots(1, len(own)))
    assert display.plot(ax=given).axes_ == given
    for mine, other in zip(own, given, strict=True):
        assert mine.get_ylabel() == other.get_ylabel()
        for one, two in zip(mine.lines, other.lines, strict=True):
            np.testing.assert_array_equal(one.get_xydata(), two.get_xydata())


def test_what_cannot_be_drawn_on_is_named_with_its_cure():
    display = CASES["history"]()
    with pytest.raises(ValueError, match="3 panels, but 2 axes were given"):
        display.plot(ax=list(new_figure(5, 5).subplots(1, 2)))
    with pytest.raises(ValueError, match="are not in a grid"):
        display.plot(ax=new_figure(5, 5).add_axes((0.1, 0.1, 0.8, 0.8)))
    removed = new_figure(5, 5).subplots()
    removed.remove()
    with pytest.raises(ValueError, match="removed from its figure"):
        CASES["spectrum"]().plot(ax=removed)


def test_a_title_is_above_the_figure_or_a_single_axis():
    display = CASES["spectrum"]()
    assert display.draw(title="Mine").get_suptitle() == "Mine"
    assert display.plot(new_figure(6, 5).subplots(), title="Mine").ax_.get_title() == "Mine"
    titled = new_figure(6, 5).subplots()
    titled.set_title("Theirs")
    assert display.plot(titled, title="Mine").ax_.get_title() == "Theirs"


def test_a_display_can_be_saved_when_drawn(tmp_path):
    for ending, start in (("svg", b"<?xml"), ("pdf", b"%PDF")):
        CASES["posterior"]().draw(tmp_path / f"picture.{ending}")
        content = (tmp_path / f"picture.{ending}").read_bytes()
        assert content.startswith(start)
        assert len(content) < 300_000


def test_no_picture_imports_pyplot():
    for path in Path(plots.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [alias.name for alias in node.names]
                module = node.module if isinstance(node, ast.ImportFrom) else ""
                assert "pyplot" not in " ".join([module or "", *names]), path.name


def test_lines_are_of_colors_that_color_blind_readers_tell_apart():
    for case in ("spectra of six", "history", "segment", "duality"):
        used = {to_hex(line.get_color()) for ax in CASES[case]().plot().axes_ for line in ax.lines}
        assert used <= {color.lower() for color in PALETTE} | {"#8c8c8c"}


def test_plotting_evaluates_nothing(monkeypatch):
    displays = [CASES[case]() for case in ("segment", "slice", "path", "metric", "posterior")]

    def refuse(*_):
        raise AssertionError("evaluated while drawing")

    monkeypatch.setattr(MStepObjective, "value", refuse)
    monkeypatch.setattr(SemiSupervisedObjective, "value_and_gradient", refuse)
    for display in displays:
        display.plot()


def ball_of(ax):
    return next(line for line in ax.lines if line.get_label() == "v'Av = η")


def test_metric_ball_is_the_section_of_the_metric_by_the_plane_shown():
    A = random_psd(np.random.default_rng(5), 4, rank=4)
    for features in ((2, 0), None):
        display = MetricDisplay.from_result(A, X, Y, threshold=2.5, features=features)
        left, right = display.plot().axes_
        plane = np.eye(4)[:, [2, 0]]
        if features is None:
            plane = np.linalg.eigh(np.cov(X.T))[1][:, :-3:-1]
            plane = plane * np.where(plane.sum(axis=0) < 0.0, -1.0, 1.0)
        v = (ball_of(left).get_xydata() - display.before.mean(axis=0)) @ plane.T
        np.testing.assert_allclose(np.einsum("ki,ij,kj->k", v, A, v), 2.5)
        v = ball_of(right).get_xydata() - display.after.mean(axis=0)
        np.testing.assert_allclose(np.sum(v**2, axis=1), 2.5)
        for ax in (left, right):
            assert ax.get_aspect() == 1.0


def test_metric_points_are_those_given_and_their_distances_the_learned_ones():
    A = random_psd(np.random.default_rng(5), 2, size=3.0, rank=2)
    plane = MetricDisplay.from_result(A, X[:, :2], Y, features=(0, 1))
    whole = MetricDisplay.from_result(A, X[:, :2], Y)
    for display in (plane, whole):
        left, right = display.plot().axes_
        z = np.vstack([drawn.get_offsets() for drawn in right.collections])
        x = np.vstack([drawn.get_offsets() for drawn in left.collections])
        order = np.concatenate([np.flatnonzero(label == Y) for label in (-1, 0, 1, 2)])
        if display is plane:
            np.testing.assert_allclose(x, X[order, :2])
        v = X[order[1:], :2] - X[order[0], :2]
        expected = np.einsum("ki,ij,kj->k", v, A, v)
        np.testing.assert_allclose(np.sum((z[1:] - z[0]) ** 2, axis=1), expected)
        np.testing.assert_allclose(np.sum((x[1:] - x[0]) ** 2, axis=1), np.sum(v**2, axis=1))
    assert plane.plot().axes_[1].get_xlabel() == "feature 0, by A"
    assert "principal" in whole.plot().axes_[0].get_xlabel()


def test_metric_says_so_where_its_ball_holds_every_point():
    note = "all points lie within v'Av = η"
    for metric, said in ((np.zeros((4, 4)), True), (1e-4 * np.eye(4), True), (METRIC, False)):
        for ax in MetricDisplay.from_result(metric, X, Y).plot().axes_:
            assert (note in [text.get_text() for text in ax.texts]) is said
    strip = MetricDisplay.from_result([[4.0]], X[:, :1], Y).plot().axes_[0]
    np.testing.assert_allclose(np.nanmax(ball_of(strip).get_xdata()), 0.5)
    flat = MetricDisplay.from_result(np.zeros((4, 4)), X, Y).plot().axes_[1]
    np.testing.assert_allclose(np.nanmax(ball_of(flat).get_xdata()), 1.0)
    assert flat.get_xlim()[1] > 1.0


def legend_of(display):
    return [text.get_text() for text in display.figure_.legends[0].get_texts()]


@pytest.mark.parametrize(
    ("size", "seen"), [(1.0, (True, True)), (0.02, (True, False)), (1e-4, (False, False))]
)
def test_metric_legend_names_the_ball_only_where_one_is_in_view(size, seen):
    display = MetricDisplay.from_result(size * np.eye(4), X, Y).plot()
    display.figure_.draw_without_rendering()
    for ax, is_seen in zip(display.axes_, seen, strict=True):
        in_view = ax.get_window_extent().count_contains(edge_pixels(ax))
        assert bool(in_view) is is_seen
    assert ("v'Av = η" in legend_of(display)) is any(seen)
    assert legend_of(display)[-4:] == ["unlabeled", "0", "1", "2"]


def edge_pixels(ax):
    """Where the edge of the ball is drawn, if it is."""
    edges = [line for line in ax.lines if line.get_label() == "v'Av = η"]
    return ax.transData.transform(np.vstack([np.empty((0, 2)), *[e.get_xydata() for e in edges]]))


def test_metric_view_has_room_for_a_ball_somewhat_larger_than_the_points():
    display = MetricDisplay.from_result(METRIC, X, Y, features=(0, 1)).plot()
    edge = ball_of(display.ax_).get_ydata()
    low, high = display.ax_.get_ylim()
    assert low < edge.min() < X[:, 1].min()
    assert high > edge.max() > X[:, 1].max()


def test_metric_view_is_not_lost_to_a_ball_without_end():
    left = MetricDisplay.from_result(np.diag([1.0, 0.0, 0.0, 0.0]), X, Y).plot().axes_[0]
    left.figure.draw_without_rendering()
    diameter = np.linalg.norm(np.ptp(X, axis=0))
    assert np.ptp(left.get_ylim()) < 2.5 * diameter
    assert np.ptp(ball_of(left).get_ydata()) > 10.0 * diameter


def test_estimators_are_drawn_by_their_own_metric_and_threshold():
    model = SERAPH(threshold=2.0, n_components=1).fit(X, Y)
    display = MetricDisplay.from_estimator(model, X, Y, features=(0, 1))
    np.testing.assert_allclose(display.section, model.get_mahalanobis_matrix()[:2, :2])
    assert display.threshold == 2.0
    spectrum = SpectrumDisplay.from_estimator(model)
    for name, metric in (("", model.metric_), (", its last M-step", model.m_step_metric_)):
        drawn = spectrum.eigenvalues["SERAPH" + name]
        np.testing.assert_allclose(drawn, np.linalg.eigvalsh(metric)[::-1], atol=1e-12)
    history = HistoryDisplay.from_estimator(model)
    assert history.descent_values.tolist() == [step.descent_value for step in model.history_]
    euclidean = Euclidean().fit(X, Y)
    with pytest.raises(ValueError, match="Euclidean has no parameter `threshold`"):
        MetricDisplay.from_estimator(euclidean, X, Y)
    assert MetricDisplay.from_estimator(euclidean, X, Y, threshold=3.0).threshold == 3.0


@pytest.mark.parametrize("model", [SERAPH(threshold=2.0), KernelSERAPH(gamma=0.1)])
def test_posterior_of_a_model_is_its_own_word(model, monkeypatch):
    monkeypatch.setattr("seraph_cvx.plots.posterior.AT_ONCE", 100)
    display = PosteriorDisplay.from_estimator(model.fit(X, Y), X)
    pairs = [[X[0], X[5]], [X[1], X[2]], [X[58], X[59]]]
    drawn = display.posterior[[0, 1, 58], [5, 2, 59]]
    np.testing.assert_allclose(drawn, model.predict_pair_proba(pairs))
    np.testing.assert_array_equal(display.posterior, display.posterior.T)
    other = PosteriorDisplay.from_estimator(model, X, threshold=3.0)
    odds = np.exp(np.square(model.pair_distance(pairs)) - 3.0)
    np.testing.assert_allclose(other.posterior[[0, 1, 58], [5, 2, 59]], 1.0 / (1.0 + odds))


def test_kernel_models_have_no_ball_among_the_features():
    model = KernelSERAPH()
    with pytest.raises(ValueError, match=r"use PosteriorDisplay\.from_estimator"):
        MetricDisplay.from_estimator(model, X, Y)


def test_posterior_is_eq_8_sorted_by_class():
    A = random_psd(np.random.default_rng(5), 4, rank=4)
    labels = np.array(["b", None, "a", "b", "a", None, "a"], dtype=object)
    display = PosteriorDisplay.from_result(A, X[:7], labels, threshold=1.7)
    assert display.blocks == [("a", 3), ("b", 2), ("unlabeled", 2)]
    assert [labels[k] for k in display.order] == ["a", "a", "a", "b", "b", None, None]
    drawn = display.plot().ax_.collections[0].get_array()
    for i, j in np.ndindex(7, 7):
        v = X[display.order[i]] - X[display.order[j]]
        if i == j:
            assert np.ma.getmaskarray(drawn)[i, j] or np.isnan(drawn[i, j])
        else:
            assert drawn[i, j] == pytest.approx(1.0 / (1.0 + np.exp(v @ A @ v - 1.7)), rel=1e-12)


def test_posterior_marks_class_boundaries_and_has_a_bar_from_0_to_1():
    display = PosteriorDisplay.from_result(METRIC, X, Y, class_names=["p", "q", "r"]).plot()
    ax, bar = display.figure_.axes
    assert bar.get_ylim() == (0.0, 1.0)
    assert bar.get_ylabel()
    assert ax.collections[0].get_cmap().name.startswith("cividis")
    across = sorted(line.get_ydata()[0] for line in ax.lines if np.ptp(line.get_ydata()) == 0)
    assert across == [3.5, 7.5, 11.5]
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["p", "q", "r", "unlabeled"]
    assert ax.get_yticks().tolist() == [1.5, 5.5, 9.5, 35.5]


def test_posterior_of_many_points_shows_means_within_classes():
    display = CASES["posterior of noise"]()
    drawn = display.plot().ax_.collections[0].get_array()
    assert drawn.shape == (200, 200)
    P = display.posterior
    np.testing.assert_allclose(drawn[3, 80], P[6:8, 160:162].mean())
    np.testing.assert_allclose(drawn[10:20].mean(), P[20:40].mean())


def test_spectrum_shows_the_eigenvalues_and_marks_the_rank():
    F = np.random.default_rng(2).normal(size=(5, 2))
    A = F @ F.T
    display = SpectrumDisplay.from_result(A).plot()
    counting, zeros, rank = display.ax_.lines
    np.testing.assert_allclose(counting.get_ydata(), np.linalg.eigvalsh(A)[:2:-1])
    assert zeros.get_xdata().tolist() == [3, 4, 5]
    assert zeros.get_markerfacecolor() == "white"
    assert np.all(zeros.get_ydata() < counting.get_ydata().min())
    assert rank.get_xdata() == [2.5, 2.5]
    assert [text.get_text() for text in display.ax_.texts] == ["rank 2"]
    several = SpectrumDisplay.from_result({"before": np.eye(5), "after": A}).plot()
    texts = [text.get_text() for text in several.figure_.legends[0].get_texts()]
    assert texts == ["before (rank 5)", "after (rank 2)", "counts as zero (at the bottom)"]


def test_history_shows_the_iterations_and_counts_the_rises():
    run = alternate(random_pairs(3, n_labeled=60))
    descent_panel, paper, gap = HistoryDisplay.from_result(run).plot().axes_
    for ax, name in ((descent_panel, "descent_value"), (paper, "paper_objective")):
        drawn = ax.lines[0].get_xydata().tolist()
        assert drawn == [[step.number, getattr(step, name)] for step in run.history]
    certified = [step for step in run.history if np.isfinite(step.relative_gap)]
    drawn = gap.lines[0].get_xydata()
    drawn = drawn[np.isfinite(drawn[:, 1])].tolist()
    assert drawn == [[step.number, max(step.relative_gap, 1e-16)] for step in certified]
    assert gap.get_yscale() == "log"
    _, paper, _ = HistoryDisplay.from_result(em_history(8)).plot().axes_
    assert paper.get_title() == "Objective (7): rose 4 times"
    assert paper.lines[1].get_xdata().tolist() == [5, 6, 7, 8]
    with pytest.raises(ValueError, match="history is empty"):
        HistoryDisplay.from_result([])


def test_segment_of_the_m_step_lies_below_its_chord_and_paper_objective_does_not():
    objective, start = bent_objective(), np.diag([0.01, 0.0])
    display = SegmentDisplay.from_result(objective, start, np.eye(2), n_points=11)
    left, right = display.plot().axes_
    chord, curve, _ = left.lines
    paper = SemiSupervisedObjective(objective)
    for k, t in enumerate(np.linspace(0.0, 1.0, 11)):
        A = (1.0 - t) * start + t * np.eye(2)
        assert curve.get_xydata()[k] == pytest.approx([t, objective.value(A)], rel=1e-12)
        assert right.lines[1].get_ydata()[k] == pytest.approx(paper.value(A), rel=1e-12)
    assert chord.get_ydata()[0] == pytest.approx(objective.value(start))
    assert chord.get_ydata()[-1] == pytest.approx(objective.value(np.eye(2)))
    assert np.all(curve.get_ydata()[1:-1] < chord.get_ydata()[1:-1])
    assert left.get_title().endswith("below its chord")
    assert right.get_title().endswith("above its chord")
    assert display.excess(display.paper_values) > 0.01


@pytest.mark.parametrize("seed", range(5))
def test_segment_is_convex_between_any_two_metrics(seed):
    rng = np.random.default_rng(seed)
    objective = random_objective(seed, "other")
    ends = [random_psd(rng, 4, size=10.0 ** rng.uniform(-2, 2)) for _ in range(2)]
    display = SegmentDisplay.from_result(objective, *ends, n_points=21)
    assert display.excess(display.convex_values) <= 1e-12


def test_slice_has_the_values_and_the_boundary_of_the_cone():
    objective = random_objective(0, "hyper", m=2)
    E = np.diag([1.0, 0.0])
    corners = {"zero": np.zeros((2, 2)), "E": E, "identity": np.eye(2)}
    display = SliceDisplay.from_result(objective, corners, {"far": [3.0 * E]}, resolution=25)
    x, y = np.meshgrid(display.x, display.y)
    np.testing.assert_allclose(display.smallest_eigenvalues, np.minimum(y, x + y), atol=1e-14)
    for i, j in ((0, 0), (3, 17), (24, 2)):
        A = display.x[j] * E + display.y[i] * np.eye(2)
        assert display.values[i, j] == pytest.approx(objective.value(A), rel=1e-12)
    boundary = display.plot().ax_.collections[-1]
    vertices = np.vstack([path.vertices for path in boundary.get_paths() if len(path.vertices)])
    assert len(vertices) > 20
    assert np.max(np.abs(np.minimum(vertices[:, 1], vertices.sum(axis=1)))) < 1e-12


def test_slice_draws_projected_iterates_and_says_how_far_they_were():
    _, optimum, iterates = descent()
    display = slice_display(resolution=5).plot()
    basis = np.array([optimum, np.eye(3)])
    for name, path in (("projected gradient", iterates), ("straight", [2 * optimum, optimum])):
        for place, A in zip(display.paths[name], path, strict=True):
            left = A - np.tensordot(place, basis, axes=1)
            assert np.max(np.abs(np.tensordot(basis, left, axes=2))) < 1e-9  # orthogonal
    np.testing.assert_allclose(display.paths["straight"], [[2, 0], [1, 0]], atol=1e-9)
    drawn = [line.get_xydata().tolist() for line in display.ax_.lines]
    for path in display.paths.values():
        assert path.tolist() in drawn
    for corner in ([0.0, 0.0], [1.0, 0.0], [0.0, 1.0]):
        assert [corner] in drawn
    texts = [text.get_text() for text in display.figure_.legends[0].get_texts()]
    far = 100.0 * display.distances["projected gradient"]
    assert far > 1.0
    assert f"projected gradient (up to {far:.0f} % off the slice)" in texts
    assert "straight" in texts


def test_slice_needs_three_matrices_that_span_one():
    objective = random_objective(0, "hyper", m=2)
    two = {"zero": np.zeros((2, 2)), "identity": np.eye(2)}
    with pytest.raises(ValueError, match="spanned by 3 matrices, but 2"):
        SliceDisplay.from_result(objective, two)
    with pytest.raises(ValueError, match="'I2' lie on one line"):
        SliceDisplay.from_result(objective, two | {"I2": 2.0 * np.eye(2)})
    line = {"0": [[0.0]], "1": [[1.0]], "2": [[2.0]]}
    with pytest.raises(ValueError, match="use SegmentDisplay"):
        SliceDisplay.from_result(random_objective(0, "hyper", m=1), line)


def test_slice_of_a_corner_given_twice_or_of_too_few_points_is_refused():
    objective = random_objective(0, "hyper", m=2)
    corners = {"zero": np.zeros((2, 2)), "identity": np.eye(2), "again": np.zeros((2, 2))}
    with pytest.raises(ValueError, match=r"'again' lie on one line.*choose another third one"):
        SliceDisplay.from_result(objective, corners)
    corners["again"] = np.diag([1.0, 0.0])
    with pytest.raises(ValueError, match="resolution=1: a grid has at least 2 points a side"):
        SliceDisplay.from_result(objective, corners, resolution=1)


def test_slice_all_in_the_cone_draws_no_boundary():
    display = slice_display(resolution=9)
    inside = SliceDisplay(
        display.x,
        display.y,
        display.values,
        np.ones_like(display.smallest_eigenvalues),
        display.corner_names,
    )
    contours = [
        sum(isinstance(c, ContourSet) for c in d.plot().ax_.collections) for d in (display, inside)
    ]
    assert contours == [3, 1]


def test_posteriors_side_by_side_share_one_bar():
    figure = new_figure(8.0, 4.0)
    panels = figure.subplots(1, 2)
    for ax in panels:
        PosteriorDisplay.from_result(METRIC, X, Y).plot(ax, color_bar=False)
    assert len(figure.axes) == 2
    add_color_bar(figure.axes)
    assert len(figure.axes) == 3
    assert figure.axes[2].get_ylim() == (0.0, 1.0)
    figure.draw_without_rendering()
    assert panels[0].bbox.width == pytest.approx(panels[1].bbox.width, rel=0.02)
    with pytest.raises(ValueError, match="shows no posterior"):
        add_color_bar([new_figure(2.0, 2.0).subplots()])


def test_metric_view_marks_the_points_whose_label_was_used():
    used = np.arange(len(X)) < 4
    classes = np.arange(len(X)) % 2
    display = MetricDisplay.from_result(METRIC, X, classes, labeled=used).plot()
    for ax, points in zip(display.axes_, (display.before, display.after), strict=True):
        large = [drawn for drawn in ax.collections if drawn.get_label() == "_labeled"]
        places = np.vstack([drawn.get_offsets() for drawn in large])
        np.testing.assert_allclose(np.sort(places, axis=0), np.sort(points[used], axis=0))
        small = [drawn for drawn in ax.collections if drawn.get_label() in ("0", "1")]
        assert sum(len(drawn.get_offsets()) for drawn in small) == len(X) - 4
        assert min(drawn.get_sizes()[0] for drawn in large) > 2.0 * small[0].get_sizes()[0]
    texts = [text.get_text() for text in display.figure_.legends[0].get_texts()]
    assert texts[-3:] == ["0", "1", "labeled"]


def test_slice_has_round_numbers_at_its_bar():
    bar = slice_display(resolution=9).plot().figure_.axes[1]
    names = [tick.get_text() for tick in bar.get_yticklabels()]
    assert 2 <= len(names) <= 6
    assert max(len(name.lstrip("−-").replace(".", "").strip("0")) for name in names) <= 3
    assert [float(name) for name in names] == pytest.approx(list(bar.get_yticks()))


def test_posterior_of_many_classes_names_those_that_have_room():
    """40 classes of two points: every other one, since a name takes a 28th of the height."""
    points = np.tile(X, (2, 1))[:80]
    display = PosteriorDisplay.from_result(METRIC, points, np.arange(80) // 2).plot()
    assert [tick.get_text() for tick in display.ax_.get_yticklabels()] == [
        str(k) for k in range(0, 40, 2)
    ]
    assert len(display.blocks) == 40


def test_duality_shows_the_records_and_their_gap():
    values, gap = DualityDisplay.from_result(records()).plot().axes_
    primal, dual = values.lines
    assert [tuple(row) for row in primal.get_xydata()] == [(k, p) for k, p, _ in records()]
    assert dual.get_ydata().tolist() == [d for _, _, d in records()]
    drawn = gap.lines[0].get_ydata()
    np.testing.assert_allclose(drawn, [p - d for _, p, d in records()])
    assert drawn[-1] < 0.1 * drawn[0]
    assert np.all(np.diff(primal.get_ydata()) < 0.0)
    assert gap.get_yscale() == "log"
    assert values.get_xlim() == gap.get_xlim()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([(0, 1.0, 2.0)], "dual value is above the primal"),
        ([(0, 2.0, -np.inf)], "leave out what is not finite"),
        ([], "give at least one row"),
        ([(0, 1.0)], "give at least one row"),
    ],
)
def test_duality_refuses_what_is_no_primal_and_dual(rows, message):
    with pytest.raises(ValueError, match=message):
        DualityDisplay.from_result(rows)


def test_path_and_race_show_what_they_are_given():
    path = short_path()
    spectrum, rank, gap = PathDisplay.from_result(path).plot().axes_
    assert rank.lines[1].get_ydata().tolist() == path.ranks
    top = [np.linalg.eigvalsh(point.metric)[-1] for point in path if point.rank]
    np.testing.assert_allclose(spectrum.lines[0].get_ydata(), top)
    assert len(gap.lines[0].get_ydata()) == 8
    (zero,) = [line for line in spectrum.lines if line.get_markerfacecolor() == "white"]
    assert zero.get_xdata().tolist() == [path.trace_weights[0]]
    assert [text.get_text() for text in spectrum.texts] == ["A = 0"]
    rows = race_rows(8)
    display = WorkPrecisionDisplay.from_result(rows, [rows[0]["instance"]]).plot()
    lines = [line for line in display.ax_.lines if line.get_marker() != "None"]
    shown = {tuple(place) for line in lines for place in line.get_xydata()}
    own = [row for row in rows if row["instance"] == rows[0]["instance"]]
    assert shown == {(row["total_seconds"], row["true_gap"]) for row in own}
    with pytest.raises(ValueError, match="No row is of the instance 'iris'"):
        WorkPrecisionDisplay.from_result(rows, ["iris"])
    with pytest.raises(ValueError, match="has no rows"):
        WorkPrecisionDisplay.from_result([])


@pytest.mark.parametrize(
    "weights", [(), (3.0,), (1.0, 0.0), (900.0, 30.0, 1.0), (9e3, 3e3)], ids=str
)
def test_path_panels_show_the_same_trace_weights_and_all_of_them(weights):
    path = short_path(*weights)
    display = PathDisplay.from_result(path).plot()
    (high, low), *others = (ax.get_xlim() for ax in display.axes_)
    assert others == [(high, low)] * 2
    ends = [*path.trace_weights, path.critical_trace_weight]
    assert low < min(ends) <= max(ends) < high
    marked = [line for line in display.ax_.lines if line.get_markerfacecolor() == "white"]
    zeros = [w for w, rank in zip(path.trace_weights, path.ranks, strict=True) if rank == 0]
    assert [list(line.get_xdata()) for line in marked] == ([zeros] if zeros else [])


def test_path_of_zero_metrics_alone_is_legible():
    """`test_plots.py` has the other paths."""
    path = short_path(9e3, 3e3)
    assert path.ranks == [0, 0]
    assert_legible(PathDisplay.from_result(path).plot().figure_)


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: MetricDisplay.from_result(np.eye(3), X, Y), "must be 4 x 4"),
        (lambda: MetricDisplay.from_result(METRIC, X, Y, features=(1, 1)), "two different"),
        (lambda: MetricDisplay.from_result(METRIC, X, Y, features=(1, 9)), "from 0 to 3"),
        (lambda: PosteriorDisplay.from_result(METRIC, X, Y[:3]), "one label each"),
        (lambda: PosteriorDisplay.from_result(METRIC, X, Y, threshold=0.0), "threshold=0"),
        (lambda: SpectrumDisplay.from_result({}), "no metric to draw"),
        (lambda: SpectrumDisplay.from_result({"a": -np.eye(2)}), "the metric 'a' is not positive"),
        (lambda: SegmentDisplay.from_result(bent_objective(), -np.eye(2), np.eye(2)), "start is"),
        (
            lambda: SegmentDisplay.from_result(bent_objective(), np.eye(2), np.eye(2), n_points=1),
            "n_points=1: a segment has at least its two ends",
        ),
    ],
)
def test_errors_name_the_culprit(draw, message):
    with pytest.raises(ValueError, match=message):
        draw()


def test_a_part_of_a_plain_figure_will_do():
    figure = Figure()
    FigureCanvasAgg(figure)
    part = figure.subfigures(1, 2)[1]
    display = CASES["history"]().plot(ax=part.subplots())
    assert display.figure_ is part
    figure.canvas.draw()


def test_feature_weights_are_the_diagonal_largest_first_with_the_names_of_the_columns():
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    model = SERAPH(penalties=[Diagonal()]).fit(frame, Y)
    figure = plot_feature_weights(model, title="Mine")
    (ax,) = figure.axes
    widths = [bar.get_width() for bar in ax.patches]
    assert widths == sorted(np.diag(model.metric_), reverse=True)
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names == [frame.columns[k] for k in np.argsort(-np.diag(model.metric_))]
    assert ax.yaxis_inverted()  # the largest is on top
    assert figure.get_suptitle() == "Mine"
    assert plot_feature_weights(model).get_suptitle() == "Feature weights"


def test_feature_weights_say_what_they_leave_out_and_when_they_are_not_all():
    display = FeatureWeightsDisplay.from_result(np.diag([1.0, 4.0, 2.0, 1.0]), most=2)
    assert display.weights.tolist() == [4.0, 2.0]
    assert display.plot().ax_.get_ylabel() == "feature (2 more have 25.0% of all weight)"
    full = FeatureWeightsDisplay.from_result([[2.0, 1.0], [1.0, 2.0]])
    assert full.draw().get_suptitle() == "Diagonal of the metric"
    assert full.ax_.get_xlabel() == "diagonal entry of the metric"


def test_feature_weights_refuse_a_kernel_and_names_that_do_not_fit():
    with pytest.raises(ValueError, match="the feature space of its kernel"):
        plot_feature_weights(KernelSERAPH().fit(X, Y))
    with pytest.raises(ValueError, match="2 features, but 3 feature_names"):
        FeatureWeightsDisplay.from_result(np.eye(2), ["a", "b", "c"])
