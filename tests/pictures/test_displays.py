"""Evidence that the displays show the results they are given, legibly at the size of a slide."""

from __future__ import annotations

import itertools
import re
from dataclasses import fields
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from instances import random_objective, random_pairs, random_psd
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from pictures import assert_legible, drawn_texts

from seraph_cvx import (
    SERAPH,
    KernelSERAPH,
    MStepObjective,
    paper,
    plots,
    seraph_path,
)
from seraph_cvx.fit.alternation import Iteration
from seraph_cvx.model.programs import SemiSupervisedObjective
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
    plot_feature_weights,
    plot_fit,
    plot_path,
)
from seraph_cvx.plots.posterior import add_color_bar
from seraph_cvx.plots.style import PALETTE, new_figure, picture_bytes

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4)) * [3.0, 2.0, 1.0, 0.5]
Y = np.where(np.arange(60) < 12, np.arange(60) % 3, -1)
TWENTY = np.arange(60) % 20
LONG_NAMES = [f"a rather long name of class {k}" for k in range(20)]
METRIC = np.diag([0.5, 0.02, 0.1, 0.0])
FULL_RANK = random_psd(np.random.default_rng(5), 4, rank=4)
ZERO = np.zeros((4, 4))


def em_history(descent, objective, gaps=None):
    """Iterations with these values; the fields that no picture shows are all 1."""
    ones = dict.fromkeys((field.name for field in fields(Iteration)), 1)
    shown = ("number", "descent_value", "paper_objective", "relative_gap")
    rows = zip(range(1, 1 + len(descent)), descent, objective, gaps or descent, strict=True)
    return [Iteration(**ones | dict(zip(shown, row, strict=True))) for row in rows]


def course(n):
    """n iterations whose (7) falls, then rises; the sixth has no certificate."""
    k = np.arange(n)
    gaps = np.where(k == 5, np.inf, 10.0 ** -(k % 9))
    return HistoryDisplay(k + 1, 20 + abs(k - 3) / 10, 10 + 5 / (k + 1), gaps)


def bounds(n):
    return DualityDisplay.from_result([(k, 1 + 2.0**-k, 1 - 0.5**k) for k in range(n)])


@cache
def short_path(*weights):
    """A path with these trace weights, or eight of its own."""
    return seraph_path(random_pairs(3, n_labeled=60), weights or "auto", n_weights=8)


ITERATES = [random_psd(np.random.default_rng(k), 3) for k in range(4)]
SIZES = np.diag([1.0, 2.0, 3.0])


def slice_of(resolution):
    corners = {"zero": np.zeros((3, 3)), "sizes": SIZES, "identity": np.eye(3)}
    paths = {"off the slice": ITERATES, "straight": [2 * SIZES, SIZES]}
    return SliceDisplay.from_result(random_objective(3, "hyper", m=3), corners, paths, resolution)


@cache
def nonconvex_objective():
    """Unlabeled pairs that weigh much: (7) is far from convex."""
    return MStepObjective(random_pairs(1, m=2), unlabeled_weight=3.0)


UNITS = {"E₁": np.diag([1.0, 0, 0]), "E₂": np.diag([0, 1.0, 0]), "I": np.eye(3)}
SPECTRA = {f"trace weight {k}": np.diag(np.arange(6.0) * (np.arange(6) > k)) for k in range(6)}
STRANGE = [f"the $mean_{{of}}$ a rather long name of feature {k}" for k in range(64)]
MANY = {"before": np.eye(200), "after": np.diag(1.0 / np.arange(1, 201) ** 3)}
CASES = {
    "metric": (MetricDisplay, METRIC, X, Y),
    "metric of one feature": (MetricDisplay, [[2.0]], X[:, :1], Y),
    "metric of rank 0": (MetricDisplay, ZERO, X, Y),
    "metric, twenty classes": (MetricDisplay, METRIC, X, TWENTY, 1.0, None, None, LONG_NAMES),
    "metric, large numbers": (MetricDisplay, METRIC / 1e12, 1e6 * X, Y),
    "posterior": (PosteriorDisplay, METRIC, X, Y),
    "posterior of rank 0": (PosteriorDisplay, ZERO, X, Y),
    "posterior, twenty classes": (PosteriorDisplay, METRIC, X, TWENTY, 1.0, LONG_NAMES),
    "posterior without labels": (PosteriorDisplay, METRIC, X),
    "posterior of two points": (PosteriorDisplay, METRIC, X[:2], [0, 1]),
    "spectrum": (SpectrumDisplay, METRIC),
    "spectrum of rank 0": (SpectrumDisplay, ZERO),
    "spectrum of many features": (SpectrumDisplay, MANY),
    "spectra of six": (SpectrumDisplay, SPECTRA),
    "history": (course, 12),
    "history of one iteration": (course, 1),
    "history, direct": (HistoryDisplay, [441.0, 352.0, 39.0, 12.0, 11.9]),
    "segment": (SegmentDisplay, nonconvex_objective, np.zeros((2, 2)), np.eye(2)),
    "slice": (slice_of, 21),
    "slice without paths": (SliceDisplay, random_objective(3, "hyper", m=3), UNITS, None, 21),
    "duality": (bounds, 40),
    "duality of one iteration": (bounds, 1),
    "path": (PathDisplay, short_path),
    "path of zero metrics": (PathDisplay, lambda: short_path(9e3, 3e3)),
    "path to zero": (PathDisplay, lambda: short_path(1.0, 0.0)),
    "feature weights": (FeatureWeightsDisplay, METRIC),
    "feature weights, rank 0": (FeatureWeightsDisplay, ZERO),
    "feature weights, long names": (
        FeatureWeightsDisplay,
        np.diag(1e6 / np.arange(1.0, 65.0) ** 3),
        STRANGE,
    ),
}
"""A class and what its `from_result` is given, functions of it evaluated."""
SLOW_CASES = (
    *("metric of rank 0", "metric, large numbers", "posterior without labels"),
    *("posterior of two points", "history of one iteration", "slice without paths"),
    *("duality of one iteration", "path to zero"),
)
PLAIN = [case for case in CASES if not re.search(" of| from| to|without|,", case)]


def display_of(case):
    kind, *given = CASES[case]
    draw = getattr(kind, "from_result", kind)
    return draw(*(value() if callable(value) else value for value in given))


def texts_of(artists):
    return [artist.get_text() for artist in artists]


def legend_of(figure):
    """The texts of its legend as they read, from left to right."""
    (legend,) = figure.legends
    texts, columns = texts_of(legend.get_texts()), legend._ncols
    rows = itertools.zip_longest(*(part.tolist() for part in np.array_split(texts, columns)))
    return [text for row in rows for text in row if text is not None]


def places_of(ax):
    """The points of all scatters, in the order of drawing."""
    return np.vstack([np.empty((0, 2)), *[drawn.get_offsets() for drawn in ax.collections]])


# What holds for every display


@pytest.mark.once
@pytest.mark.parametrize(
    "case", [pytest.param(c, marks=[pytest.mark.slow] * (c in SLOW_CASES)) for c in CASES]
)
def test_every_display_is_legible_labeled_and_large(case):
    """No text overlaps or is clipped; 11 points at 1280 pixels."""
    display = display_of(case).plot()
    figure, (*_, last) = display.figure_, display.axes_
    assert_legible(figure, at_least=6)
    assert figure.bbox.width <= 1280.0 + 1e-6
    minor = [t for ax in figure.axes for t in ax.get_xticklabels(True) + ax.get_yticklabels(True)]
    texts = drawn_texts(figure) + [text for text in minor if text.get_text()]
    assert min(text.get_fontsize() for text in texts) >= 11.0
    assert all(ax.get_ylabel() for ax in display.axes_)
    assert last.get_xlabel()


def noise():
    """The posterior of 400 points in two classes, without any order."""
    values = np.random.default_rng(1).random((400, 400))
    return PosteriorDisplay(values, np.arange(400), [("a", 150), ("b", 250)])


@pytest.mark.once
@pytest.mark.parametrize(
    "case",
    [
        pytest.param("posterior, twenty classes", marks=pytest.mark.slow),
        *("feature weights, long names", ""),
    ],
)
def test_the_largest_pictures_are_under_300_kb(case, tmp_path):
    display = display_of(case) if case else noise()
    figure = display.draw(tmp_path / "picture.svg")
    assert (tmp_path / "picture.svg").read_bytes().startswith(b"<?xml")
    assert (tmp_path / "picture.svg").stat().st_size < 300_000
    assert len(picture_bytes(figure, "png", dpi=120)) < 300_000


OTHERS = [case for case in PLAIN if case not in ("spectrum", "posterior", "metric")]
"""All but one panel, a bar, and a legend."""


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
    assert all(ax.has_data() for ax in display.axes_)
    assert (above in display.axes_) == (len(display.axes_) == 1)
    assert all(ax.get_title() for ax in display.axes_) or case == "duality"
    assert figure.get_suptitle() == ""
    if case not in OTHERS:
        assert_legible(figure)


@pytest.mark.slow
@pytest.mark.parametrize("case", OTHERS)
def test_a_display_on_a_given_axis_is_legible(case):
    assert_legible(drawn_above(case)[1])


def test_panels_may_be_given_one_by_one_and_what_cannot_be_drawn_on_has_a_cure():
    display, removed = display_of("history"), new_figure(5, 5).subplots()
    given = tuple(new_figure(10.6, 4.0).subplots(1, 3))
    assert display.plot(ax=given).axes_ == given
    for panels, message in (
        (list(new_figure(5, 5).subplots(1, 2)), "3 panels, but 2 axes were given"),
        (new_figure(5, 5).add_axes((0.1, 0.1, 0.8, 0.8)), "are not in a grid"),
    ):
        with pytest.raises(ValueError, match=message):
            display.plot(ax=panels)
    removed.remove()
    with pytest.raises(ValueError, match="removed from its figure"):
        display_of("spectrum").plot(ax=removed)


def test_a_title_is_above_the_figure_or_a_single_axis_and_a_part_of_a_figure_will_do():
    display, ax = display_of("spectrum"), new_figure(6, 5).subplots()
    assert display.draw(title="Mine").get_suptitle() == "Mine"
    for title in ("Mine", "Another"):
        assert display.plot(ax, title=title).ax_.get_title() == "Mine"
    part = Figure().subfigures(1, 2)[1]
    assert display_of("history").plot(ax=part.subplots()).figure_ is part


def test_no_picture_imports_pyplot():
    for path in Path(plots.__file__).parent.rglob("*.py"):
        assert not re.search("import.*pyplot", path.read_text(encoding="utf-8")), path.name


def test_lines_are_of_colors_that_color_blind_readers_tell_apart():
    for case in ("spectra of six", "history", "segment", "duality"):
        lines = [line for ax in display_of(case).plot().axes_ for line in ax.lines]
        accessible = {color.lower() for color in PALETTE} | {"#8c8c8c"}
        assert {to_hex(line.get_color()) for line in lines} <= accessible


def test_plotting_evaluates_nothing(monkeypatch):
    displays = [display_of(case) for case in ("segment", "slice", "path", "metric", "posterior")]

    def refuse(*_):
        raise AssertionError("evaluated while drawing")

    monkeypatch.setattr(MStepObjective, "value", refuse)
    monkeypatch.setattr(SemiSupervisedObjective, "value_and_gradient", refuse)
    for display in displays:
        display.plot()


LINE = {"zero": np.zeros((2, 2)), "identity": np.eye(2)}
PLANE = LINE | {"E": np.diag([1.0, 0.0])}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((MetricDisplay, METRIC, X, Y, 1.0, (1, 1)), "two different"),
        ((PosteriorDisplay, METRIC, X, Y[:3]), "one label each"),
        ((SpectrumDisplay, {}), "no metric to draw"),
        ((SpectrumDisplay, {"a": -np.eye(2)}), "the metric 'a' is not positive"),
        ((HistoryDisplay, []), "history is empty"),
        ((SegmentDisplay, np.eye(2), np.eye(2), 1), "n_points=1: a segment has at least its two"),
        ((SliceDisplay, LINE), "spanned by 3 matrices, but 2"),
        ((SliceDisplay, LINE | {"I2": 2.0 * np.eye(2)}), "'I2' lie on one.*another third one"),
        ((SliceDisplay, {k: [[float(k)]] for k in "012"}), "on one line.*use SegmentDisplay"),
        ((SliceDisplay, PLANE, None, 1), "resolution=1: a grid has at least 2 points per side"),
        ((DualityDisplay, [(0, 1.0, 2.0)]), "dual value is above the primal"),
        ((DualityDisplay, [(0, 2.0, -np.inf)]), "leave out what is not finite"),
        ((DualityDisplay, [(0, 1.0)]), "give at least one row"),
        ((FeatureWeightsDisplay, np.eye(2), ["a", "b", "c"]), "2 features, but 3 feature_names"),
        ((RegionsDisplay, METRIC, X, Y[:5], X, TWENTY), "one label for each"),
        ((RegionsDisplay, METRIC, X, np.full(60, -1), X, TWENTY), "No point of X"),
    ],
)
def test_errors_name_the_culprit(given, message):
    kind, *values = given
    if kind in (SegmentDisplay, SliceDisplay):
        first = values[0] if kind is SegmentDisplay else next(iter(values[0].values()))
        values.insert(0, random_objective(0, "hyper", m=len(first)))
    with pytest.raises(ValueError, match=message):
        kind.from_result(*values)


LINES = {
    "history": {"descent_values": (0, 0), "paper_objective": (1, 0), "relative_gaps": (2, 0)},
    "duality": {"primal_values": (0, 0), "dual_values": (0, 1), "gaps": (1, 0)},
    "segment": {"convex_values": (0, 1), "paper_values": (1, 1)},
    "path": {"ranks": (1, 1), "relative_gaps": (2, 0)},
}
"""The panel and the line that show an attribute, against the first attribute of the display."""


@pytest.mark.parametrize("case", LINES)
def test_lines_show_the_numbers_of_the_display(case):
    display = display_of(case).plot()
    x = getattr(display, fields(display)[0].name)
    for name, (panel, k) in LINES[case].items():
        ax, values = display.axes_[panel], np.array(getattr(display, name), dtype=float)
        values[np.isinf(values)] = np.nan  # a step without certificate
        expected = np.maximum(values, 1e-12) if name.endswith("gaps") else values
        np.testing.assert_array_equal(ax.lines[k].get_xydata(), np.column_stack([x, expected]))
        assert (ax.get_yscale() == "log") is name.endswith("gaps")


# The metric


def balls_of(ax):
    return [line for line in ax.lines if line.get_label() == "v'Av = η"]


def squared_lengths(v, A):
    return np.einsum("ki,ij,kj->k", v, A, v)


@pytest.mark.parametrize("features", [(2, 0), None])
def test_metric_points_ball_and_distances_are_those_of_the_plane_shown(features):
    display = MetricDisplay.from_result(FULL_RANK, X, Y, 2.5, features).plot()
    plane = np.eye(4)[:, [2, 0]]
    if features is None:
        plane = np.linalg.eigh(np.cov(X.T))[1][:, :-3:-1]
        plane = plane * np.where(plane.sum(axis=0) < 0.0, -1.0, 1.0)
    order = np.argsort(Y, kind="stable")  # the unlabeled ones first, as they are drawn
    before = (X[order] - (0.0 if features else X.mean(axis=0))) @ plane
    v, section = before[1:] - before[0], plane.T @ FULL_RANK @ plane
    left, right = display.axes_
    np.testing.assert_allclose(places_of(left), before)
    for ax, metric in ((left, section), (right, np.eye(2))):
        edge = balls_of(ax)[0].get_xydata() - places_of(ax).mean(axis=0)
        np.testing.assert_allclose(squared_lengths(edge, metric), 2.5)
        assert ax.get_aspect() == 1.0
    z = places_of(right)[1:] - places_of(right)[0]
    if features:  # otherwise the right panel has the leading coordinates, not those of the plane
        np.testing.assert_allclose(np.sum(z**2, axis=1), squared_lengths(v, section))
    names = {None: "first learned coordinate", (2, 0): "feature 2, transformed"}
    assert right.get_xlabel() == names[features]


@pytest.mark.parametrize(
    ("metric", "seen", "all_within"),
    [
        (np.eye(4), (True, True), False),
        (0.02 * np.eye(4), (True, False), None),
        (1e-4 * np.eye(4), (False, False), True),
        (METRIC, (True, True), False),
        (ZERO, (False, True), True),
    ],
)
def test_metric_names_its_ball_where_it_is_in_view_and_says_if_it_holds_all(
    metric, seen, all_within
):
    display = MetricDisplay.from_result(metric, X, Y).plot()
    display.figure_.draw_without_rendering()
    for ax, is_seen in zip(display.axes_, seen, strict=True):
        edges = [edge.get_xydata() for edge in balls_of(ax)]
        pixels = ax.transData.transform(np.vstack([np.empty((0, 2)), *edges]))
        assert bool(ax.get_window_extent().count_contains(pixels)) is is_seen
        said = "all points lie within v'Av = η" in texts_of(ax.texts)
        assert said is (not is_seen if all_within is None else all_within)
    legend = legend_of(display.figure_)
    assert ("v'Av = η" in legend) is any(seen)
    assert {"unlabeled", "0", "1", "2"} <= set(legend)


def test_metric_view_has_space_for_a_ball_somewhat_larger_but_not_for_one_without_end():
    ax = MetricDisplay.from_result(METRIC, X, Y, 1.0, (0, 1)).plot().ax_
    edge, (low, high) = balls_of(ax)[0].get_ydata(), ax.get_ylim()
    assert low < edge.min() < X[:, 1].min() < X[:, 1].max() < edge.max() < high
    left = MetricDisplay.from_result(np.diag([1.0, 0.0, 0.0, 0.0]), X, Y).plot().ax_
    left.figure.draw_without_rendering()
    diameter = np.linalg.norm(np.ptp(X, axis=0))
    assert np.ptp(left.get_ylim()) < 2.5 * diameter
    assert np.ptp(balls_of(left)[0].get_ydata()) > 10.0 * diameter
    strip = MetricDisplay.from_result([[4.0]], X[:, :1], Y).plot().ax_
    np.testing.assert_allclose(np.ptp(balls_of(strip)[0].get_xdata()), 1.0)


def test_metric_view_marks_the_points_whose_label_was_used():
    used = np.arange(len(X)) < 4
    display = MetricDisplay.from_result(METRIC, X, TWENTY % 2, labeled=used).plot()
    for ax, points in zip(display.axes_, (display.before, display.after), strict=True):
        drawn = [each for each in ax.collections if each.get_label() == "_labeled"]
        places = np.vstack([each.get_offsets() for each in drawn])
        np.testing.assert_allclose(np.sort(places, 0), np.sort(points[used], 0))
        assert drawn[0].get_sizes() > 2.0 * ax.collections[0].get_sizes()
    assert legend_of(display.figure_)[-3:] == ["0", "1", "labeled"]


def test_estimators_are_drawn_by_their_own_metric_threshold_and_names():
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    model = SERAPH(threshold=2.0, n_components=1).fit(frame, Y)
    display = MetricDisplay.from_estimator(model, X, Y, features=(0, 1))
    np.testing.assert_allclose(display.section, model.get_mahalanobis_matrix()[:2, :2])
    assert display.threshold == 2.0
    spectrum = SpectrumDisplay.from_estimator(model)
    for name, metric in (("", model.metric_), (", its last M-step", model.m_step_metric_)):
        drawn = spectrum.eigenvalues["SERAPH" + name]
        np.testing.assert_allclose(drawn, np.linalg.eigvalsh(metric)[::-1], atol=1e-12)
    history = HistoryDisplay.from_estimator(model)
    assert history.descent_values.tolist() == [step.descent_value for step in model.history_]
    weights = np.diag(model.metric_)
    ax = plot_feature_weights(model).axes[0]
    assert [bar.get_width() for bar in ax.patches] == sorted(weights, reverse=True)
    assert texts_of(ax.get_yticklabels()) == [frame.columns[k] for k in np.argsort(-weights)]
    assert ax.yaxis_inverted()  # the largest is on top
    assert MetricDisplay.from_estimator(model, X, Y, threshold=3.0).threshold == 3.0
    with pytest.raises(ValueError, match=r"use PosteriorDisplay\.from_estimator"):
        MetricDisplay.from_estimator(KernelSERAPH(), X, Y)
    with pytest.raises(ValueError, match="the feature space of its kernel"):
        plot_feature_weights(KernelSERAPH())


# The posterior


@pytest.mark.parametrize("model", [SERAPH(threshold=2.0), KernelSERAPH(gamma=0.1)])
def test_posterior_of_a_model_is_what_it_predicts(model, monkeypatch):
    monkeypatch.setattr("seraph_cvx.plots.posterior.AT_ONCE", 100)
    display = PosteriorDisplay.from_estimator(model.fit(X, Y), X)
    drawn = [0, 1, 58], [5, 2, 59]
    pairs = X[np.transpose(drawn)]
    np.testing.assert_allclose(display.posterior[drawn], model.predict_pair_proba(pairs))
    np.testing.assert_array_equal(display.posterior, display.posterior.T)
    other = PosteriorDisplay.from_estimator(model, X, threshold=3.0)
    expected = paper.posterior(np.square(model.pair_distance(pairs)), 1.0, 3.0)
    np.testing.assert_allclose(other.posterior[drawn], expected)


def test_posterior_is_eq_8_sorted_by_class():
    labels = np.array(["b", None, "a", "b", "a", None, "a"], dtype=object)
    display = PosteriorDisplay.from_result(FULL_RANK, X[:7], labels, threshold=1.7)
    assert display.blocks == [("a", 3), ("b", 2), ("unlabeled", 2)]
    assert labels[display.order].tolist() == ["a", "a", "a", "b", "b", None, None]
    drawn = np.ma.filled(display.plot().ax_.collections[0].get_array(), np.nan)
    i, j = np.nonzero(~np.eye(7, dtype=bool))
    d = paper.squared_distances(X, display.order[np.column_stack([i, j])], FULL_RANK)
    np.testing.assert_allclose(drawn[i, j], paper.posterior(d, 1.0, 1.7), rtol=1e-12)
    assert np.all(np.isnan(np.diag(drawn)))


def test_posterior_marks_class_boundaries_and_several_share_a_bar_from_0_to_1():
    figure = new_figure(8.0, 4.0)
    panels = figure.subplots(1, 2)
    for ax in panels:
        display = PosteriorDisplay.from_result(METRIC, X, Y, class_names=["p", "q", "r"])
        display.plot(ax, color_bar=False)
    add_color_bar(figure.axes)
    ax, other, bar = figure.axes
    assert bar.get_ylim() == (0.0, 1.0)
    assert bar.get_ylabel()
    figure.draw_without_rendering()
    assert ax.bbox.width == pytest.approx(other.bbox.width, rel=0.02)
    assert ax.collections[0].get_cmap().name.startswith("cividis")
    across = sorted(line.get_ydata()[0] for line in ax.lines if np.ptp(line.get_ydata()) == 0)
    assert across == [3.5, 7.5, 11.5]
    ticks = dict(zip(texts_of(ax.get_yticklabels()), ax.get_yticks(), strict=True))
    assert ticks == {"p": 1.5, "q": 5.5, "r": 9.5, "unlabeled": 35.5}
    with pytest.raises(ValueError, match="shows no posterior"):
        add_color_bar([new_figure(2.0, 2.0).subplots()])


def test_posterior_of_many_points_shows_means_and_of_many_classes_the_names_with_space():
    display = noise()
    drawn, P = display.plot().ax_.collections[0].get_array(), display.posterior
    assert drawn.shape == (200, 200)
    np.testing.assert_allclose(drawn[3, 80], P[6:8, 160:162].mean())
    np.testing.assert_allclose(drawn[10:20].mean(), P[20:40].mean())
    points = np.tile(X, (2, 1))[:80]
    many = PosteriorDisplay.from_result(METRIC, points, np.arange(80) // 2).plot()
    # a name takes a 28th of the height
    assert texts_of(many.ax_.get_yticklabels()) == [str(k) for k in range(0, 40, 2)]


# Eigenvalues, weights and iterations


def test_spectrum_shows_the_eigenvalues_and_marks_the_rank():
    A = random_psd(np.random.default_rng(2), 5, rank=2)
    ax = SpectrumDisplay.from_result(A).plot().ax_
    counting, zeros, rank, _ = ax.lines
    np.testing.assert_allclose(counting.get_ydata(), np.linalg.eigvalsh(A)[:2:-1])
    assert zeros.get_xdata().tolist() == [3, 4, 5]
    assert zeros.get_markerfacecolor() == "white"
    assert np.all(zeros.get_ydata() < counting.get_ydata().min())
    assert rank.get_xdata() == [2.5, 2.5]
    assert texts_of(ax.texts) == ["rank 2"]
    several = SpectrumDisplay.from_result({"before": np.eye(5), "after": A}).draw()
    names = ["before (rank 5)", "after (rank 2)", "counts as zero (at the bottom)"]
    assert legend_of(several) == names


@pytest.mark.once
@pytest.mark.parametrize(
    "weights",
    [
        *((), (1.0, 0.0), (900.0, 30.0, 1.0)),
        *(pytest.param(weights, marks=pytest.mark.slow) for weights in ((3.0,), (9e3, 3e3))),
    ],
    ids=str,
)
def test_path_panels_show_the_path_at_the_same_trace_weights_and_all_of_them(weights, tmp_path):
    path = short_path(*weights)
    axes = plot_path(path, tmp_path / "path.png").axes
    assert (tmp_path / "path.png").stat().st_size < 300_000
    ((high, low),) = {ax.get_xlim() for ax in axes}
    ends = [*path.trace_weights, path.critical_trace_weight]
    assert low < min(ends) <= max(ends) < high
    marked = [line for line in axes[0].lines if line.get_markerfacecolor() == "white"]
    zeros = np.array(path.trace_weights)[np.array(path.ranks) == 0].tolist()
    assert [list(line.get_xdata()) for line in marked] == ([zeros] if zeros else [])
    assert texts_of(axes[0].texts) == ["A = 0"] * len(marked)
    largest = [np.linalg.eigvalsh(metric)[-1] for metric in path.metrics if np.any(metric)]
    drawn = axes[0].lines[0].get_ydata()
    np.testing.assert_allclose(drawn[np.isfinite(drawn)] if largest else [], largest)


def test_feature_weights_say_what_they_leave_out_and_when_they_are_not_all():
    display = FeatureWeightsDisplay.from_result(np.diag([1.0, 4.0, 2.0, 1.0]), most=2)
    assert display.weights.tolist() == [4.0, 2.0]
    assert display.plot().ax_.get_ylabel() == "feature (2 more have 25.0% of all weight)"
    full = FeatureWeightsDisplay.from_result([[2.0, 1.0], [1.0, 2.0]])
    assert full.draw().get_suptitle() == "Diagonal of the metric"
    assert full.ax_.get_xlabel() == "diagonal entry of the metric"
    model = SERAPH(penalties=[Diagonal()]).fit(X, Y)
    assert plot_feature_weights(model).get_suptitle() == "Feature weights"
    assert plot_feature_weights(model, title="Mine").get_suptitle() == "Mine"


def test_history_counts_the_rises():
    objective = course(8).plot().axes_[1]
    assert objective.get_title() == "Objective (7): rose 4 times"
    assert objective.lines[1].get_xdata().tolist() == [5, 6, 7, 8]


# Convexity


def test_segment_of_the_m_step_lies_below_its_chord_and_objective_7_does_not():
    objective, start = nonconvex_objective(), np.diag([0.01, 0.0])
    display = SegmentDisplay.from_result(objective, start, np.eye(2), n_points=11).plot()
    metrics = [(1.0 - t) * start + t * np.eye(2) for t in np.linspace(0.0, 1.0, 11)]
    functions = objective, SemiSupervisedObjective(objective)
    for ax, function, word in zip(display.axes_, functions, ("below", "above"), strict=True):
        chord, curve, _ = (line.get_ydata() for line in ax.lines)
        np.testing.assert_allclose(curve, [function.value(A) for A in metrics], rtol=1e-12)
        np.testing.assert_allclose(chord, np.linspace(curve[0], curve[-1], 11))
        assert ax.get_title().endswith(f"{word} its chord")
        assert (display.excess(curve) > 0.01) is (word == "above")


def test_slice_has_the_values_the_boundary_of_the_cone_and_the_iterates():
    display = slice_of(9).plot()
    basis, (x, y) = np.array([SIZES, np.eye(3)]), np.meshgrid(display.x, display.y)
    smallest = np.minimum(x + y, 3.0 * x + y)  # of x diag(1, 2, 3) + y I
    np.testing.assert_allclose(display.smallest_eigenvalues, smallest, atol=1e-13)
    for place in ((0, 0), (3, 7), (8, 2)):
        A = x[place] * SIZES + y[place] * np.eye(3)
        value = random_objective(3, "hyper", m=3).value(A)
        assert display.values[place] == pytest.approx(value, rel=1e-12)
    (boundary,) = [c for c in display.ax_.collections if np.any(c.get_linewidth() == 2.5)]
    vertices = np.vstack([path.vertices for path in boundary.get_paths() if len(path.vertices)])
    ends = vertices @ np.array([[1.0, 3.0], [1.0, 1.0]])
    assert np.max(np.abs(ends.min(axis=1))) < 1e-12
    left = np.array(ITERATES) - np.tensordot(display.paths["off the slice"], basis, axes=1)
    assert np.max(np.abs(np.einsum("kij,lij->kl", basis, left))) < 1e-9  # orthogonal
    np.testing.assert_allclose(display.paths["straight"], [[2, 0], [1, 0]], atol=1e-9)
    drawn = [line.get_xydata().tolist() for line in display.ax_.lines]
    corners = [[[0.0, 0.0]], [[1.0, 0.0]], [[0.0, 1.0]]]
    for path in (*corners, *(path.tolist() for path in display.paths.values())):
        assert path in drawn
    far = 100.0 * display.distances["off the slice"]
    name = f"off the slice (up to {far:.0f} % off the slice)"
    assert legend_of(display.figure_)[2:] == [name, "straight"]
    display.smallest_eigenvalues = np.ones_like(x)  # all in the cone: there is no boundary
    assert all(np.all(c.get_linewidth() != 2.5) for c in display.plot().ax_.collections)


# The regions of 1-NN

X_TEST = RNG.normal(size=(30, 3))
Y_TEST = np.digitize(X_TEST[:, 1], [-0.4, 0.4])
Y_TRAIN = np.where(np.arange(60) < 9, np.digitize(X[:, 1], [-0.4, 0.4]), -1)
FULL = np.array([[0.2, 0.5, 0.0], [0.5, 9.0, 0.0], [0.0, 0.0, 0.0]])
GAPS = [0.3, 1e-3, 2e-9]


def regions(metric, *more):
    return RegionsDisplay.from_result(metric, X[:, :3], Y_TRAIN, X_TEST, Y_TEST, *more)


@pytest.mark.once
@pytest.mark.parametrize(
    ("metric", "more"),
    [
        (FULL, (GAPS, ["setosa", "versicolor", "virginica"])),
        (np.zeros((3, 3)), ()),
        pytest.param(np.diag([0.0, 0.0, 1.0]), (), marks=pytest.mark.slow),
    ],
)
def test_regions_are_legible(metric, more):
    assert_legible(regions(metric, *more).draw(), at_least=12)


def test_regions_errors_shades_and_crosses_are_those_of_the_nearest_labeled_points():
    display = regions(FULL, GAPS).plot()
    v = X_TEST[:, None, :] - X[None, :9, :3]
    sides = (display.before, np.eye(3)), (display.after, FULL)
    for ax, (side, metric), error in zip(display.axes_, sides, display.errors, strict=False):
        nearest = Y_TRAIN[np.argmin(np.einsum("ijk,kl,ijl->ij", v, metric, v), axis=1)]
        np.testing.assert_array_equal(side.classify(side.test), nearest)
        assert error == np.mean(nearest != Y_TEST)
        assert f"{100 * error:.0f} % wrong" in ax.get_title()
        (crosses,) = [drawn for drawn in ax.collections if drawn.get_label() == "wrong"]
        assert len(crosses.get_offsets()) == np.sum(nearest != Y_TEST)
        assert np.all(np.diff(side.points.std(axis=0)) <= 0.0)
        shades = np.asarray(ax.images[0].get_array())
        middle = np.mean([ax.get_xlim(), ax.get_ylim()], axis=1)
        color = np.array(to_rgb(PALETTE[side.classify(middle[None])[0]]))
        np.testing.assert_allclose(shades[200, 200], 0.75 + 0.25 * color)
    assert display.errors[1] < 0.5 * display.errors[0]
    np.testing.assert_allclose(display.axes_[2].lines[0].get_ydata(), GAPS)
    assert display.axes_[2].get_yscale() == "log"


# The picture of a fit

HISTORY = em_history([19.4, 17.4, 16.9, 16.8], [30.9, 30.1, 29.8, 29.9])
FITS = {
    "plane": {},
    "strip": {"components": np.diag([2.0, 0.0, 0.0, 0.0])},
    "zero metric": {"components": ZERO},
    "one feature": {"X": X[:, :1], "components": np.eye(1)},
    "twenty classes": {"y": TWENTY, "class_names": LONG_NAMES},
    "square": {"X": X[:, :2] / [3, 2], "y": TWENTY, "components": np.diag([2.0, 1.0])},
    "two scales": {"history": em_history([5.0, 4.0, 3.9], [9e5, 8e5, 8.1e5])},
    "one iteration": {"history": HISTORY[:1]},
    "many iterations": {"history": em_history(10 + 1 / np.arange(1, 91), [30.0] * 90)},
    "direct": {"history": [441.0, 352.0, 39.0, 12.0, 11.9]},
    "long title": {"title": "a table with a long name " * 9},
    "large numbers": {"X": 1e6 * X},
    "names of commands": {"class_names": ["_a", "b$x_{", "$$"]},
    "string labels": {"y": np.array(["a", "b", None] * 20, dtype=object)},
}


@cache
def fit_of(case):
    """The picture of a case, made once for all tests, which change nothing in it."""
    plain = {"X": X, "y": Y, "components": np.eye(4), "history": HISTORY}
    return plot_fit(**plain | FITS[case])


SLOW_FITS = ("one iteration", "many iterations", "string labels", "square", "large numbers")


@pytest.mark.once
@pytest.mark.parametrize(
    "case", [pytest.param(c, marks=[pytest.mark.slow] * (c in SLOW_FITS)) for c in FITS]
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
    for ax in figure.axes[:2]:  # no marker touches the frame
        pixels = ax.transData.transform(places_of(ax))
        assert np.all((pixels >= ax.bbox.min + 12) & (pixels <= ax.bbox.max - 12))


def test_the_panels_of_a_fit_show_the_points_and_the_values_given(tmp_path):
    before, learned, course = plot_fit(X, Y, np.eye(4)[1:3], HISTORY, tmp_path / "fit.png").axes
    assert (tmp_path / "fit.png").read_bytes().startswith(b"\x89PNG")
    order = np.argsort(Y, kind="stable")
    np.testing.assert_allclose(places_of(learned), X[order, 1:3])
    spread = np.linalg.eigvalsh(np.cov(X.T, ddof=0))[:-3:-1]
    np.testing.assert_allclose(places_of(before).var(axis=0), spread)
    values = [line.get_ydata().tolist() for line in course.lines]
    assert values == [[19.4, 17.4, 16.9, 16.8], [30.9, 30.1, 29.8, 29.9]]
    strip = fit_of("strip").axes[1]
    assert "jitter" in strip.get_ylabel()
    np.testing.assert_allclose(places_of(strip)[:, 0], 2.0 * X[order, 0])
    names = [ax.get_ylabel() for ax in fit_of("two scales").axes[2:]]
    assert names == ["J, what EM descends", "objective (7)"]
    assert course.get_ylabel() == "value"
    both = legend_of(fit_of("two scales").subfigs[1])
    assert both == ["J, what EM descends", "objective (7), which may rise"]


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
    assert strange == [" _a", r"b\$x_{", r"\$\$", "unlabeled"]
