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
from matplotlib.colors import to_hex, to_rgb
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
    paper,
    plots,
    seraph_path,
    solve_m_step,
)
from seraph_cvx.baselines.euclidean import Euclidean
from seraph_cvx.fit.alternation import Iteration
from seraph_cvx.model.programs import SemiSupervisedObjective
from seraph_cvx.numerics.psd_cone import project, symmetrize
from seraph_cvx.penalties import Diagonal
from seraph_cvx.plots import (
    DualityDisplay,
    FeatureWeightsDisplay,
    HistoryDisplay,
    MetricDisplay,
    PathDisplay,
    PosteriorDisplay,
    RegionsDisplay,
    SegmentDisplay,
    SliceDisplay,
    SpectrumDisplay,
    WorkPrecisionDisplay,
    plot_feature_weights,
    plot_fit,
    plot_path,
)
from seraph_cvx.plots.posterior import add_color_bar
from seraph_cvx.plots.regions import TINT, shade_regions
from seraph_cvx.plots.style import PALETTE, new_figure

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4)) * [3.0, 2.0, 1.0, 0.5]
Y = np.where(np.arange(60) < 12, np.arange(60) % 3, -1)
TWENTY = np.arange(60) % 20
LONG_NAMES = [f"a rather long name of class {k}" for k in range(20)]
METRIC = np.diag([0.5, 0.02, 0.1, 0.0])
ZERO = np.zeros((4, 4))


def em_history(descent, objective, gaps=None):
    """Iterations with these values; the fields that no picture shows are all 1."""
    rest = {field.name: 1 for field in fields(Iteration)}
    shown = ("number", "descent_value", "paper_objective", "relative_gap")
    rows = zip(range(1, 1 + len(descent)), descent, objective, gaps or descent, strict=True)
    return [Iteration(**rest | dict(zip(shown, row, strict=True))) for row in rows]


def falling(n):
    """n iterations whose (7) falls, then rises."""
    k = np.arange(n)
    return em_history(10 + 5 / (k + 1), 20 + abs(k - 3) / 10, (10.0 ** -(k % 9)).tolist())


@cache
def descent(n_steps=40):
    """An M-step, its optimum, and the iterates of a projected gradient from the identity."""
    objective = random_objective(3, "hyper", n=25, m=3)
    A, iterates, curvature = np.eye(3), [np.eye(3)], objective.smoothness_bound / 4.0
    for _ in range(n_steps):
        A = project(symmetrize(A - objective.value_and_gradient(A)[1] / curvature))
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


def slice_of(resolution):
    objective, optimum, iterates = descent()
    corners = {"zero": np.zeros((3, 3)), "optimum": optimum, "identity": np.eye(3)}
    paths = {"projected gradient": iterates, "straight": [2 * optimum, optimum]}
    return SliceDisplay.from_result(objective, corners, paths, resolution)


@cache
def nonconvex_objective():
    """Unlabeled pairs that weigh much: (7) is far from convex."""
    return MStepObjective(random_pairs(1, m=2), unlabeled_weight=3.0)


UNITS = {"E₁": np.diag([1.0, 0, 0]), "E₂": np.diag([0, 1.0, 0]), "I": np.eye(3)}
SPECTRA = {f"trace weight {k}": np.diag(np.arange(6.0) * (np.arange(6) > k)) for k in range(6)}
STRANGE = [f"the $mean_{{of}}$ a rather long name of feature {k}" for k in range(64)]
CASES = {
    "metric": (MetricDisplay, METRIC, X, Y),
    "metric of two features": (MetricDisplay, METRIC, X, Y, 1.0, (0, 1)),
    "metric of one feature": (MetricDisplay, [[2.0]], X[:, :1], Y),
    "metric of rank 1": (MetricDisplay, np.diag([0, 1.0, 0, 0]), X, Y),
    "metric of rank 0": (MetricDisplay, ZERO, X, Y),
    "metric, twenty classes": (MetricDisplay, METRIC, X, TWENTY, 1.0, None, None, LONG_NAMES),
    "metric, large numbers": (MetricDisplay, METRIC / 1e12, 1e6 * X, Y),
    "posterior": (PosteriorDisplay, METRIC, X, Y),
    "posterior of one feature": (PosteriorDisplay, [[2.0]], X[:, :1], Y),
    "posterior of rank 0": (PosteriorDisplay, ZERO, X, Y),
    "posterior, twenty classes": (PosteriorDisplay, METRIC, X, TWENTY, 1.0, LONG_NAMES),
    "posterior without labels": (PosteriorDisplay, METRIC, X),
    "posterior of two points": (PosteriorDisplay, METRIC, X[:2], [0, 1]),
    "spectrum": (SpectrumDisplay, METRIC),
    "spectrum of rank 0": (SpectrumDisplay, ZERO),
    "spectrum of one feature": (SpectrumDisplay, [[2.0]]),
    "spectrum of many features": (
        SpectrumDisplay,
        {"before": np.eye(200), "after": np.diag(1.0 / np.arange(1, 201) ** 3)},
    ),
    "spectra of six": (SpectrumDisplay, SPECTRA),
    "history": (HistoryDisplay, falling(12)),
    "history of one iteration": (HistoryDisplay, falling(1)),
    "history of 200 iterations": (HistoryDisplay, falling(200)),
    "history, direct": (HistoryDisplay, [441.0, 352.0, 39.0, 12.0, 11.9]),
    "segment": (SegmentDisplay, nonconvex_objective, np.zeros((2, 2)), np.eye(2)),
    "segment from a point to itself": (SegmentDisplay, nonconvex_objective, np.eye(2), np.eye(2)),
    "slice": (slice_of, 21),
    "slice without paths": (SliceDisplay, lambda: descent()[0], UNITS, None, 21),
    "duality": (DualityDisplay, records),
    "duality of one iteration": (DualityDisplay, lambda: records()[:1]),
    "duality of 200 iterations": (
        DualityDisplay,
        [(k, 1e3 * (1 + 2.0**-k), 1e3) for k in range(200)],
    ),
    "path": (PathDisplay, short_path),
    "path of zero metrics": (PathDisplay, lambda: short_path(9e3, 3e3)),
    "path of one weight": (PathDisplay, lambda: short_path(3.0)),
    "path to zero": (PathDisplay, lambda: short_path(1.0, 0.0)),
    "feature weights": (FeatureWeightsDisplay, METRIC),
    "feature weights, one feature": (FeatureWeightsDisplay, [[2.0]]),
    "feature weights, rank 0": (FeatureWeightsDisplay, ZERO),
    "feature weights, long names": (
        FeatureWeightsDisplay,
        np.diag(1e6 / np.arange(1.0, 65.0) ** 3),
        STRANGE,
    ),
    "work and precision": (WorkPrecisionDisplay, race_rows(2)),
    "work and precision, five panels": (WorkPrecisionDisplay, race_rows(5)),
}
"""A class and what its `from_result` is given, functions of it evaluated."""
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
MORE_OF_A_KIND = [
    "metric of two features",
    "metric of rank 1",
    "posterior of one feature",
    "spectrum of one feature",
    "history of 200 iterations",
    "segment from a point to itself",
    "duality of 200 iterations",
    "path of one weight",
    "feature weights, one feature",
    "work and precision, five panels",
]
"""A fast case of the same display is as hard to lay out."""


def display_of(case):
    kind, *given = CASES[case]
    draw = getattr(kind, "from_result", kind)
    return draw(*(value() if callable(value) else value for value in given))


def slow_if(is_slow, cases):
    return [pytest.param(c, marks=pytest.mark.slow) if is_slow(c) else c for c in cases]


def texts_of(artists):
    return [artist.get_text() for artist in artists]


def legend_of(figure):
    return texts_of(figure.legends[0].get_texts())


# What holds for every display


@pytest.mark.parametrize("case", slow_if(MORE_OF_A_KIND.__contains__, CASES))
def test_every_display_is_legible_labeled_and_large(case):
    """No text overlaps or is clipped; 11 points at 1280 pixels."""
    display = display_of(case).plot()
    figure, columns = display.figure_, display._layout().columns
    assert_legible(figure, at_least=6)
    assert figure.bbox.width <= 1280.0 + 1e-6
    minor = [t for ax in figure.axes for t in ax.get_xticklabels(True) + ax.get_yticklabels(True)]
    texts = drawn_texts(figure) + [text for text in minor if text.get_text()]
    assert min(text.get_fontsize() for text in texts) >= 11.0
    for k, ax in enumerate(display.axes_):
        assert ax.get_ylabel() or k % columns
        assert ax.get_xlabel() or k + columns < len(display.axes_)


def noise():
    """The posterior of 400 points in two classes, without any order."""
    values = np.random.default_rng(1).random((400, 400))
    return PosteriorDisplay(values, np.arange(400), [("a", 150), ("b", 250)])


@pytest.mark.parametrize(
    "make",
    [
        noise,
        lambda: display_of("posterior, twenty classes"),
        lambda: display_of("feature weights, long names"),
    ],
)
def test_the_largest_pictures_are_under_300_kb(make, tmp_path):
    figure = make().draw(tmp_path / "picture.svg")
    assert (tmp_path / "picture.svg").read_bytes().startswith(b"<?xml")
    assert (tmp_path / "picture.svg").stat().st_size < 300_000
    figure.canvas.draw()
    content = BytesIO()
    imsave(content, np.asarray(figure.canvas.buffer_rgba()))
    assert len(content.getvalue()) < 300_000


def drawn_above(case):
    """The display of a case on the upper of two axes, the figure, and both axes."""
    figure = new_figure(10.6, 9.0)
    above, below = figure.subplots(2, 1)
    below.plot([0, 1], [0, 1])
    display = display_of(case)
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
    assert all(ax.get_title() for ax in display.axes_) or case == "duality"
    assert figure.get_suptitle() == ""


ONE_PANEL_A_BAR_AND_A_LEGEND = ("spectrum", "posterior", "metric")


@pytest.mark.parametrize(
    "case", slow_if(lambda case: case not in ONE_PANEL_A_BAR_AND_A_LEGEND, PLAIN)
)
def test_a_display_on_a_given_axis_is_legible(case):
    assert_legible(drawn_above(case)[1])


@pytest.mark.parametrize("case", ["metric", "history", "duality"])
def test_panels_may_be_given_one_by_one(case):
    display = display_of(case)
    own = display.plot().axes_
    given = tuple(new_figure(10.6, 4.0).subplots(1, len(own)))
    assert display.plot(ax=given).axes_ == given
    for mine, other in zip(own, given, strict=True):
        assert mine.get_ylabel() == other.get_ylabel()
        for one, two in zip(mine.lines, other.lines, strict=True):
            np.testing.assert_array_equal(one.get_xydata(), two.get_xydata())


def test_what_cannot_be_drawn_on_is_named_with_its_cure():
    display, removed = display_of("history"), new_figure(5, 5).subplots()
    with pytest.raises(ValueError, match="3 panels, but 2 axes were given"):
        display.plot(ax=list(new_figure(5, 5).subplots(1, 2)))
    with pytest.raises(ValueError, match="are not in a grid"):
        display.plot(ax=new_figure(5, 5).add_axes((0.1, 0.1, 0.8, 0.8)))
    removed.remove()
    with pytest.raises(ValueError, match="removed from its figure"):
        display_of("spectrum").plot(ax=removed)


def test_a_title_is_above_the_figure_or_a_single_axis_and_a_part_of_a_figure_will_do():
    display, titled = display_of("spectrum"), new_figure(6, 5).subplots()
    assert display.draw(title="Mine").get_suptitle() == "Mine"
    assert display.plot(new_figure(6, 5).subplots(), title="Mine").ax_.get_title() == "Mine"
    titled.set_title("Theirs")
    assert display.plot(titled, title="Mine").ax_.get_title() == "Theirs"
    figure = Figure()
    FigureCanvasAgg(figure)
    part = figure.subfigures(1, 2)[1]
    assert display_of("history").plot(ax=part.subplots()).figure_ is part
    figure.canvas.draw()


def test_no_picture_imports_pyplot():
    for path in Path(plots.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import | ast.ImportFrom):
                assert "pyplot" not in ast.unparse(node), path.name


def test_lines_are_of_colors_that_color_blind_readers_tell_apart():
    for case in ("spectra of six", "history", "segment", "duality"):
        used = {
            to_hex(line.get_color()) for ax in display_of(case).plot().axes_ for line in ax.lines
        }
        assert used <= {color.lower() for color in PALETTE} | {"#8c8c8c"}


def test_plotting_evaluates_nothing(monkeypatch):
    displays = [display_of(case) for case in ("segment", "slice", "path", "metric", "posterior")]

    def refuse(*_):
        raise AssertionError("evaluated while drawing")

    monkeypatch.setattr(MStepObjective, "value", refuse)
    monkeypatch.setattr(SemiSupervisedObjective, "value_and_gradient", refuse)
    for display in displays:
        display.plot()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((MetricDisplay, np.eye(3), X, Y), "must be 4 x 4"),
        ((MetricDisplay, METRIC, X, Y, 1.0, (1, 1)), "two different"),
        ((MetricDisplay, METRIC, X, Y, 1.0, (1, 9)), "from 0 to 3"),
        ((PosteriorDisplay, METRIC, X, Y[:3]), "one label each"),
        ((PosteriorDisplay, METRIC, X, Y, 0.0), "threshold=0"),
        ((SpectrumDisplay, {}), "no metric to draw"),
        ((SpectrumDisplay, {"a": -np.eye(2)}), "the metric 'a' is not positive"),
        ((HistoryDisplay, []), "history is empty"),
        ((SegmentDisplay, nonconvex_objective(), -np.eye(2), np.eye(2)), "start is"),
        (
            (SegmentDisplay, nonconvex_objective(), np.eye(2), np.eye(2), 1),
            "n_points=1: a segment has at least its two ends",
        ),
        ((DualityDisplay, [(0, 1.0, 2.0)]), "dual value is above the primal"),
        ((DualityDisplay, [(0, 2.0, -np.inf)]), "leave out what is not finite"),
        ((DualityDisplay, []), "give at least one row"),
        ((DualityDisplay, [(0, 1.0)]), "give at least one row"),
        ((WorkPrecisionDisplay, race_rows(2), ["iris"]), "No row is of the instance 'iris'"),
        ((WorkPrecisionDisplay, []), "has no rows"),
        ((FeatureWeightsDisplay, np.eye(2), ["a", "b", "c"]), "2 features, but 3 feature_names"),
        ((RegionsDisplay, METRIC, X, Y[:5], X, TWENTY), "one label for each"),
        ((RegionsDisplay, METRIC, X, np.full(60, -1), X, TWENTY), "No point of X"),
    ],
)
def test_errors_name_the_culprit(given, message):
    kind, *values = given
    with pytest.raises(ValueError, match=message):
        kind.from_result(*values)


# The metric


def balls_of(ax):
    return [line for line in ax.lines if line.get_label() == "v'Av = η"]


def squared_lengths(v, A):
    return np.einsum("ki,ij,kj->k", v, A, v)


def test_metric_ball_is_the_section_of_the_metric_by_the_plane_shown():
    A = random_psd(np.random.default_rng(5), 4, rank=4)
    principal = np.linalg.eigh(np.cov(X.T))[1][:, :-3:-1]
    principal = principal * np.where(principal.sum(axis=0) < 0.0, -1.0, 1.0)
    for features, plane in (((2, 0), np.eye(4)[:, [2, 0]]), (None, principal)):
        display = MetricDisplay.from_result(A, X, Y, threshold=2.5, features=features).plot()
        sides = (display.before, plane.T @ A @ plane), (display.after, np.eye(2))
        for ax, (points, section) in zip(display.axes_, sides, strict=True):
            v = balls_of(ax)[0].get_xydata() - points.mean(axis=0)
            np.testing.assert_allclose(squared_lengths(v, section), 2.5)
            assert ax.get_aspect() == 1.0


def test_metric_points_are_those_given_and_their_distances_the_learned_ones():
    A = random_psd(np.random.default_rng(5), 2, size=3.0, rank=2)
    order = np.concatenate([np.flatnonzero(label == Y) for label in (-1, 0, 1, 2)])
    v = X[order[1:], :2] - X[order[0], :2]
    for features, name in (((0, 1), "feature 0, by A"), (None, "first learned coordinate")):
        left, right = MetricDisplay.from_result(A, X[:, :2], Y, features=features).plot().axes_
        assert right.get_xlabel() == name
        for ax, metric in ((left, np.eye(2)), (right, A)):
            z = np.vstack([drawn.get_offsets() for drawn in ax.collections])
            assert features is None or ax is right or np.allclose(z, X[order, :2])
            expected = squared_lengths(v, metric)
            np.testing.assert_allclose(np.sum((z[1:] - z[0]) ** 2, axis=1), expected)


def test_metric_says_so_where_its_ball_holds_every_point():
    note = "all points lie within v'Av = η"
    for metric, said in ((ZERO, True), (1e-4 * np.eye(4), True), (METRIC, False)):
        for ax in MetricDisplay.from_result(metric, X, Y).plot().axes_:
            assert (note in texts_of(ax.texts)) is said
    strip = MetricDisplay.from_result([[4.0]], X[:, :1], Y).plot().ax_
    flat = display_of("metric of rank 0").plot().axes_[1]
    for ax, radius in ((strip, 0.5), (flat, 1.0)):
        np.testing.assert_allclose(np.nanmax(balls_of(ax)[0].get_xdata()), radius)
    assert flat.get_xlim()[1] > 1.0


@pytest.mark.parametrize(
    ("size", "seen"), [(1.0, (True, True)), (0.02, (True, False)), (1e-4, (False, False))]
)
def test_metric_legend_names_the_ball_only_where_one_is_in_view(size, seen):
    display = MetricDisplay.from_result(size * np.eye(4), X, Y).plot()
    display.figure_.draw_without_rendering()
    for ax, is_seen in zip(display.axes_, seen, strict=True):
        edges = np.vstack([np.empty((0, 2)), *[edge.get_xydata() for edge in balls_of(ax)]])
        in_view = ax.get_window_extent().count_contains(ax.transData.transform(edges))
        assert bool(in_view) is is_seen
    legend = legend_of(display.figure_)
    assert ("v'Av = η" in legend) is any(seen)
    assert legend[-4:] == ["unlabeled", "0", "1", "2"]


def test_metric_view_has_space_for_a_ball_somewhat_larger_but_not_for_one_without_end():
    ax = display_of("metric of two features").plot().ax_
    edge, (low, high) = balls_of(ax)[0].get_ydata(), ax.get_ylim()
    assert low < edge.min() < X[:, 1].min() < X[:, 1].max() < edge.max() < high
    left = MetricDisplay.from_result(np.diag([1.0, 0.0, 0.0, 0.0]), X, Y).plot().axes_[0]
    left.figure.draw_without_rendering()
    diameter = np.linalg.norm(np.ptp(X, axis=0))
    assert np.ptp(left.get_ylim()) < 2.5 * diameter
    assert np.ptp(balls_of(left)[0].get_ydata()) > 10.0 * diameter


def test_metric_view_marks_the_points_whose_label_was_used():
    used, classes = np.arange(len(X)) < 4, np.arange(len(X)) % 2
    display = MetricDisplay.from_result(METRIC, X, classes, labeled=used).plot()
    for ax, points in zip(display.axes_, (display.before, display.after), strict=True):
        large = [drawn for drawn in ax.collections if drawn.get_label() == "_labeled"]
        places = np.vstack([drawn.get_offsets() for drawn in large])
        np.testing.assert_allclose(np.sort(places, axis=0), np.sort(points[used], axis=0))
        small = [drawn for drawn in ax.collections if drawn.get_label() in ("0", "1")]
        assert sum(len(drawn.get_offsets()) for drawn in small) == len(X) - 4
        assert min(drawn.get_sizes()[0] for drawn in large) > 2.0 * small[0].get_sizes()[0]
    assert legend_of(display.figure_)[-3:] == ["0", "1", "labeled"]


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


def test_the_features_do_not_show_the_metric_of_a_kernel():
    with pytest.raises(ValueError, match=r"use PosteriorDisplay\.from_estimator"):
        MetricDisplay.from_estimator(KernelSERAPH(), X, Y)
    with pytest.raises(ValueError, match="the feature space of its kernel"):
        plot_feature_weights(KernelSERAPH())


# The posterior


@pytest.mark.parametrize("model", [SERAPH(threshold=2.0), KernelSERAPH(gamma=0.1)])
def test_posterior_of_a_model_is_what_it_predicts(model, monkeypatch):
    monkeypatch.setattr("seraph_cvx.plots.posterior.AT_ONCE", 100)
    display = PosteriorDisplay.from_estimator(model.fit(X, Y), X)
    pairs, drawn = np.stack([X[[0, 1, 58]], X[[5, 2, 59]]], axis=1), ([0, 1, 58], [5, 2, 59])
    np.testing.assert_allclose(display.posterior[drawn], model.predict_pair_proba(pairs))
    np.testing.assert_array_equal(display.posterior, display.posterior.T)
    other = PosteriorDisplay.from_estimator(model, X, threshold=3.0)
    expected = paper.posterior(np.square(model.pair_distance(pairs)), 1.0, 3.0)
    np.testing.assert_allclose(other.posterior[drawn], expected)


def test_posterior_is_eq_8_sorted_by_class():
    A = random_psd(np.random.default_rng(5), 4, rank=4)
    labels = np.array(["b", None, "a", "b", "a", None, "a"], dtype=object)
    display = PosteriorDisplay.from_result(A, X[:7], labels, threshold=1.7)
    assert display.blocks == [("a", 3), ("b", 2), ("unlabeled", 2)]
    assert labels[display.order].tolist() == ["a", "a", "a", "b", "b", None, None]
    drawn = display.plot().ax_.collections[0].get_array()
    i, j = np.nonzero(~np.eye(7, dtype=bool))
    pairs = display.order[np.column_stack([i, j])]
    d = paper.squared_distances(X, pairs, A)
    np.testing.assert_allclose(drawn[i, j], paper.posterior(d, 1.0, 1.7), rtol=1e-12)
    assert np.all(np.isnan(np.ma.filled(np.diag(drawn), np.nan)))


def test_posterior_marks_class_boundaries_and_has_a_bar_from_0_to_1():
    display = PosteriorDisplay.from_result(METRIC, X, Y, class_names=["p", "q", "r"]).plot()
    ax, bar = display.figure_.axes
    assert bar.get_ylim() == (0.0, 1.0)
    assert bar.get_ylabel()
    assert ax.collections[0].get_cmap().name.startswith("cividis")
    across = sorted(line.get_ydata()[0] for line in ax.lines if np.ptp(line.get_ydata()) == 0)
    assert across == [3.5, 7.5, 11.5]
    assert texts_of(ax.get_yticklabels()) == ["p", "q", "r", "unlabeled"]
    assert ax.get_yticks().tolist() == [1.5, 5.5, 9.5, 35.5]


def test_posterior_of_many_points_shows_means_and_of_many_classes_the_names_with_space():
    display = noise()
    drawn, P = display.plot().ax_.collections[0].get_array(), display.posterior
    assert drawn.shape == (200, 200)
    np.testing.assert_allclose(drawn[3, 80], P[6:8, 160:162].mean())
    np.testing.assert_allclose(drawn[10:20].mean(), P[20:40].mean())
    points = np.tile(X, (2, 1))[:80]
    many = PosteriorDisplay.from_result(METRIC, points, np.arange(80) // 2).plot()
    assert len(many.blocks) == 40
    # a name takes a 28th of the height
    assert texts_of(many.ax_.get_yticklabels()) == [str(k) for k in range(0, 40, 2)]


def test_posteriors_side_by_side_share_one_bar():
    figure = new_figure(8.0, 4.0)
    panels = figure.subplots(1, 2)
    for ax in panels:
        display_of("posterior").plot(ax, color_bar=False)
    assert len(figure.axes) == 2
    add_color_bar(figure.axes)
    assert figure.axes[2].get_ylim() == (0.0, 1.0)
    figure.draw_without_rendering()
    assert panels[0].bbox.width == pytest.approx(panels[1].bbox.width, rel=0.02)
    with pytest.raises(ValueError, match="shows no posterior"):
        add_color_bar([new_figure(2.0, 2.0).subplots()])


# Eigenvalues, weights and iterations


def test_spectrum_shows_the_eigenvalues_and_marks_the_rank():
    F = np.random.default_rng(2).normal(size=(5, 2))
    A = F @ F.T
    ax = SpectrumDisplay.from_result(A).plot().ax_
    counting, zeros, rank = ax.lines
    np.testing.assert_allclose(counting.get_ydata(), np.linalg.eigvalsh(A)[:2:-1])
    assert zeros.get_xdata().tolist() == [3, 4, 5]
    assert zeros.get_markerfacecolor() == "white"
    assert np.all(zeros.get_ydata() < counting.get_ydata().min())
    assert rank.get_xdata() == [2.5, 2.5]
    assert texts_of(ax.texts) == ["rank 2"]
    several = SpectrumDisplay.from_result({"before": np.eye(5), "after": A}).draw()
    names = ["before (rank 5)", "after (rank 2)", "counts as zero (at the bottom)"]
    assert legend_of(several) == names


@pytest.mark.parametrize(
    "weights", [(), (3.0,), (1.0, 0.0), (900.0, 30.0, 1.0), (9e3, 3e3)], ids=str
)
def test_path_panels_show_the_path_at_the_same_trace_weights_and_all_of_them(weights, tmp_path):
    path = short_path(*weights)
    spectrum, rank, gap = plot_path(path, tmp_path / "path.png").axes
    assert (tmp_path / "path.png").stat().st_size < 300_000
    assert rank.lines[1].get_ydata().tolist() == path.ranks
    largest = [np.linalg.eigvalsh(point.metric)[-1] for point in path if point.rank]
    if largest:
        np.testing.assert_allclose(spectrum.lines[0].get_ydata(), largest)
    (high, low), *others = (ax.get_xlim() for ax in (spectrum, rank, gap))
    assert others == [(high, low)] * 2
    ends = [*path.trace_weights, path.critical_trace_weight]
    assert low < min(ends) <= max(ends) < high
    marked = [line for line in spectrum.lines if line.get_markerfacecolor() == "white"]
    zeros = [w for w, rank in zip(path.trace_weights, path.ranks, strict=True) if rank == 0]
    assert [list(line.get_xdata()) for line in marked] == ([zeros] if zeros else [])
    assert texts_of(spectrum.texts) == ["A = 0"] * len(marked)


def test_feature_weights_are_the_diagonal_largest_first_with_the_names_of_the_columns():
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    model = SERAPH(penalties=[Diagonal()]).fit(frame, Y)
    figure = plot_feature_weights(model, title="Mine")
    (ax,) = figure.axes
    weights = np.diag(model.metric_)
    assert [bar.get_width() for bar in ax.patches] == sorted(weights, reverse=True)
    assert texts_of(ax.get_yticklabels()) == [frame.columns[k] for k in np.argsort(-weights)]
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


def test_history_shows_the_iterations_and_counts_the_rises():
    run = alternate(random_pairs(3, n_labeled=60))
    *panels, gap = HistoryDisplay.from_result(run).plot().axes_
    for ax, name in zip(panels, ("descent_value", "paper_objective"), strict=True):
        drawn = ax.lines[0].get_xydata().tolist()
        assert drawn == [[step.number, getattr(step, name)] for step in run.history]
    drawn = gap.lines[0].get_xydata()
    certified = [step for step in run.history if np.isfinite(step.relative_gap)]
    expected = [[step.number, max(step.relative_gap, 1e-16)] for step in certified]
    assert drawn[np.isfinite(drawn[:, 1])].tolist() == expected
    assert gap.get_yscale() == "log"
    _, objective, _ = HistoryDisplay.from_result(falling(8)).plot().axes_
    assert objective.get_title() == "Objective (7): rose 4 times"
    assert objective.lines[1].get_xdata().tolist() == [5, 6, 7, 8]


def test_duality_shows_the_records_and_their_gap():
    values, gap = display_of("duality").plot().axes_
    (primal, dual), (drawn,) = values.lines, gap.lines
    iterations, upper, lower = np.array(records()).T
    np.testing.assert_array_equal(primal.get_xydata().T, [iterations, upper])
    np.testing.assert_array_equal(dual.get_ydata(), lower)
    np.testing.assert_allclose(drawn.get_ydata(), upper - lower)
    assert drawn.get_ydata()[-1] < 0.1 * drawn.get_ydata()[0]
    assert gap.get_yscale() == "log"
    assert values.get_xlim() == gap.get_xlim()


# Convexity


def test_segment_of_the_m_step_lies_below_its_chord_and_objective_7_does_not():
    objective, start = nonconvex_objective(), np.diag([0.01, 0.0])
    display = SegmentDisplay.from_result(objective, start, np.eye(2), n_points=11)
    left, right = display.plot().axes_
    t = np.linspace(0.0, 1.0, 11)
    for ax, function in ((left, objective), (right, SemiSupervisedObjective(objective))):
        chord, curve, _ = ax.lines
        values = [function.value((1.0 - s) * start + s * np.eye(2)) for s in t]
        np.testing.assert_allclose(curve.get_xydata(), np.column_stack([t, values]), rtol=1e-12)
        np.testing.assert_allclose(chord.get_ydata()[[0, -1]], [values[0], values[-1]])
    chord, curve, _ = left.lines
    assert np.all(curve.get_ydata()[1:-1] < chord.get_ydata()[1:-1])
    assert left.get_title().endswith("below its chord")
    assert right.get_title().endswith("above its chord")
    assert display.excess(display.paper_values) > 0.01


@pytest.mark.parametrize("seed", range(5))
def test_segment_is_convex_between_any_two_metrics(seed):
    rng = np.random.default_rng(seed)
    ends = [random_psd(rng, 4, size=10.0 ** rng.uniform(-2, 2)) for _ in range(2)]
    display = SegmentDisplay.from_result(random_objective(seed, "other"), *ends, n_points=21)
    assert display.excess(display.convex_values) <= 1e-12


def test_slice_has_the_values_and_the_boundary_of_the_cone():
    objective, E = random_objective(0, "hyper", m=2), np.diag([1.0, 0.0])
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
    display = slice_of(5).plot()
    basis = np.array([optimum, np.eye(3)])
    drawn = [line.get_xydata().tolist() for line in display.ax_.lines]
    for name, path in (("projected gradient", iterates), ("straight", [2 * optimum, optimum])):
        left = np.array(path) - np.tensordot(display.paths[name], basis, axes=1)
        assert np.max(np.abs(np.einsum("kij,lij->kl", basis, left))) < 1e-9  # orthogonal
        assert display.paths[name].tolist() in drawn
    np.testing.assert_allclose(display.paths["straight"], [[2, 0], [1, 0]], atol=1e-9)
    for corner in ([0.0, 0.0], [1.0, 0.0], [0.0, 1.0]):
        assert [corner] in drawn
    far = 100.0 * display.distances["projected gradient"]
    assert far > 1.0
    name = f"projected gradient (up to {far:.0f} % off the slice)"
    assert legend_of(display.figure_)[2:] == [name, "straight"]


LINE = {"zero": np.zeros((2, 2)), "identity": np.eye(2)}


@pytest.mark.parametrize(
    ("corners", "resolution", "message"),
    [
        (LINE, 9, "spanned by 3 matrices, but 2"),
        (LINE | {"I2": 2.0 * np.eye(2)}, 9, "'I2' lie on one line"),
        (LINE | {"again": LINE["zero"]}, 9, "'again' lie on one line.*choose another third one"),
        ({"0": [[0.0]], "1": [[1.0]], "2": [[2.0]]}, 9, "use SegmentDisplay"),
        (
            LINE | {"E": np.diag([1.0, 0.0])},
            1,
            "resolution=1: a grid has at least 2 points per side",
        ),
    ],
)
def test_slice_needs_three_matrices_that_span_one(corners, resolution, message):
    objective = random_objective(0, "hyper", m=len(next(iter(corners.values()))))
    with pytest.raises(ValueError, match=message):
        SliceDisplay.from_result(objective, corners, resolution=resolution)


def test_slice_all_in_the_cone_draws_no_boundary_and_its_bar_has_round_numbers():
    display = slice_of(9)
    eigenvalues = np.ones_like(display.smallest_eigenvalues)
    axes = display.x, display.y, display.values
    inside = SliceDisplay(*axes, eigenvalues, display.corner_names)
    for drawn, count in ((display, 3), (inside, 1)):
        contours = [isinstance(c, ContourSet) for c in drawn.plot().ax_.collections]
        assert sum(contours) == count
    bar = display.figure_.axes[1]
    names = texts_of(bar.get_yticklabels())
    assert 2 <= len(names) <= 6
    assert max(len(name.lstrip("−-").replace(".", "").strip("0")) for name in names) <= 3
    assert [float(name) for name in names] == pytest.approx(list(bar.get_yticks()))


# The regions of 1-NN

X_TEST = RNG.normal(size=(30, 3))
Y_TEST = np.digitize(X_TEST[:, 1], [-0.4, 0.4])
Y_TRAIN = np.where(np.arange(60) < 9, np.digitize(X[:, 1], [-0.4, 0.4]), -1)
FULL = np.array([[0.2, 0.5, 0.0], [0.5, 9.0, 0.0], [0.0, 0.0, 0.0]])
GAPS = [0.3, 1e-3, 2e-9]


def regions(metric, *more):
    return RegionsDisplay.from_result(metric, X[:, :3], Y_TRAIN, X_TEST, Y_TEST, *more)


@pytest.mark.parametrize(
    ("metric", "more"),
    [
        (FULL, (GAPS, ["setosa", "versicolor", "virginica"])),
        (np.zeros((3, 3)), ()),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in ((FULL, ()), (FULL, ([1e-9],)), (np.diag([0.0, 0.0, 1.0]), ()))
        ),
    ],
)
def test_regions_are_legible(metric, more):
    assert_legible(regions(metric, *more).draw(), at_least=12)


def test_errors_titles_and_crosses_are_those_of_the_nearest_labeled_points():
    display = regions(FULL, GAPS).plot()
    sides = (display.before, np.eye(3)), (display.after, FULL)
    v = X_TEST[:, None, :] - X[None, :9, :3]
    for ax, (side, metric), error in zip(display.axes_, sides, display.errors, strict=False):
        nearest = Y_TRAIN[np.argmin(np.einsum("ijk,kl,ijl->ij", v, metric, v), axis=1)]
        np.testing.assert_array_equal(side.classify(side.test), nearest)
        assert error == np.mean(nearest != Y_TEST)
        assert f"{100 * error:.0f} % wrong" in ax.get_title()
        (crosses,) = [drawn for drawn in ax.collections if drawn.get_label() == "wrong"]
        assert len(crosses.get_offsets()) == np.sum(nearest != Y_TEST)
        x, z = X[3, :3] - X[7, :3], side.points[3] - side.points[7]
        assert z @ z == pytest.approx(x @ metric @ x)
        assert np.all(np.diff(side.points.std(axis=0)) <= 0.0)
    assert display.errors[1] < 0.5 * display.errors[0]
    np.testing.assert_allclose(display.axes_[2].lines[0].get_ydata(), GAPS)
    assert display.axes_[2].get_yscale() == "log"


def test_the_shade_of_a_place_is_that_of_its_class():
    ax = new_figure(3.0, 3.0).subplots()
    shade_regions(ax, lambda places: np.where(places[:, 1] > places[:, 0], 2, 0), (0, 0), (4, 2))
    shades = np.asarray(ax.images[0].get_array())
    for place, code in (((20, 300), 0), ((390, 10), 2)):  # row, column
        expected = 1.0 - TINT * (1.0 - np.array(to_rgb(PALETTE[code])))
        np.testing.assert_allclose(shades[place], expected)
    assert ax.get_xlim() == (0.0, 4.0)


# The picture of a fit

HISTORY = em_history([19.4, 17.4, 16.9, 16.8], [30.9, 30.1, 29.8, 29.9])
TWO_SCALES = em_history([5.0, 4.0, 3.9], [9e5, 8e5, 8.1e5])
MANY = em_history(list(10 + 1 / np.arange(1, 91)), [30.0] * 90)
STRINGS = np.array(["a", "b", None] * 20, dtype=object)
FITS = {
    "plane": (X, Y, np.eye(4), HISTORY),
    "strip": (X, Y, np.diag([2.0, 0.0, 0.0, 0.0]), HISTORY),
    "zero metric": (X, Y, ZERO, HISTORY),
    "one feature": (X[:, :1], Y, np.eye(1), HISTORY),
    "twenty classes": (X, TWENTY, np.eye(4), HISTORY, None, "SERAPH", LONG_NAMES),
    "square": (X[:, :2] / [3, 2], TWENTY, np.diag([2.0, 1.0]), HISTORY, None, "", LONG_NAMES),
    "two scales": (X, Y, np.eye(4), TWO_SCALES),
    "one iteration": (X, Y, np.eye(4), HISTORY[:1]),
    "many iterations": (X, Y, np.eye(4), MANY),
    "direct": (X, Y, np.eye(4), [441.0, 352.0, 39.0, 12.0, 11.9]),
    "long title": (X, Y, np.eye(4), HISTORY, None, "a table with a long name " * 9),
    "large numbers": (1e6 * X, Y, np.eye(4), HISTORY),
    "names of commands": (X, Y, np.eye(4), HISTORY, None, "", ["_a", "b$x_{", "$$"]),
    "string labels": (X, STRINGS, np.eye(4), HISTORY),
}


@cache
def fit_of(case):
    """The picture of a case, made once for all tests, which change nothing in it."""
    return plot_fit(*FITS[case])


@pytest.mark.parametrize(
    "case", slow_if(("one iteration", "many iterations", "string labels").__contains__, FITS)
)
def test_the_picture_of_a_fit_is_legible_and_its_panels_have_names(case):
    figure = fit_of(case)
    assert_legible(figure, at_least=15)
    assert len(figure.axes) == 3 + (case in ("two scales", "many iterations"))
    for ax in figure.axes[:3]:
        assert ax.has_data()
        assert "" not in (ax.get_title(), ax.get_xlabel(), ax.get_ylabel())
    ticks = figure.axes[2].get_xticks()
    np.testing.assert_array_equal(ticks, np.round(ticks))


def test_the_panels_of_a_fit_show_the_points_and_the_values_given(tmp_path):
    components = np.array([[0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]])
    before, learned, course = plot_fit(X, Y, components, HISTORY, tmp_path / "fit.png").axes
    assert (tmp_path / "fit.png").read_bytes().startswith(b"\x89PNG")
    for k, drawn in zip((-1, 0, 1, 2), learned.collections, strict=True):
        np.testing.assert_allclose(drawn.get_offsets(), X[k == Y][:, 1:3])
    spread = np.vstack([drawn.get_offsets() for drawn in before.collections]).var(axis=0)
    np.testing.assert_allclose(spread, np.linalg.eigvalsh(np.cov(X.T, ddof=0))[:-3:-1])
    values = [line.get_ydata().tolist() for line in course.lines]
    assert values == [[19.4, 17.4, 16.9, 16.8], [30.9, 30.1, 29.8, 29.9]]
    strip = fit_of("strip").axes[1]
    assert "jitter" in strip.get_ylabel()
    np.testing.assert_allclose(strip.collections[0].get_offsets()[:, 0], 2.0 * X[Y == -1][:, 0])
    names = [ax.get_ylabel() for ax in fit_of("two scales").axes[2:]]
    assert names == ["J, what EM descends", "objective (7)"]


@pytest.mark.parametrize("case", ["square", "strip", "zero metric", "twenty classes"])
def test_no_marker_touches_the_frame(case):
    figure = fit_of(case)
    figure.draw_without_rendering()
    for ax in figure.axes[:2]:
        offsets = np.vstack([drawn.get_offsets() for drawn in ax.collections])
        pixels = ax.transData.transform(offsets)
        assert np.all((pixels >= ax.bbox.min + 12) & (pixels <= ax.bbox.max - 12))


def test_classes_differ_by_marker_and_color_and_the_legend_counts_those_left_out():
    figure = fit_of("twenty classes")
    looks = [
        (tuple(drawn.get_facecolor()[0]), drawn.get_paths()[0].vertices.tobytes())
        for drawn in figure.axes[0].collections
    ]
    assert len(set(looks)) == 20
    assert len({shape for _, shape in looks[:8]}) == 8
    texts = legend_of(figure.subfigs[0])
    assert len(texts) == len(set(texts)) == 12
    assert texts[0].endswith("ss 0")
    assert texts[-1].endswith("(+ 8 more)")
    strange = legend_of(fit_of("names of commands").subfigs[0])
    assert strange == ["unlabeled", " _a", r"b\$x_{", r"\$\$"]
