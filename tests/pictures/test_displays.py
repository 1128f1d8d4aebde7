"""Evidence that the displays show the results they are given, legibly at the size of a slide."""

from __future__ import annotations

import re
from dataclasses import fields
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from instances import random_objective, random_pairs, random_psd
from matplotlib.colors import to_hex, to_rgb
from matplotlib.contour import ContourSet
from matplotlib.figure import Figure
from pictures import assert_legible, drawn_texts

from seraph_cvx import (
    SERAPH,
    KernelSERAPH,
    MStepObjective,
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


def falling(n):
    """n iterations whose (7) falls, then rises; the first has no certificate."""
    k = np.arange(n)
    gaps = [10.0 ** -(j % 9) if j else np.inf for j in k] if n > 1 else [1.0]
    return em_history(10 + 5 / (k + 1), 20 + abs(k - 3) / 10, gaps)


@cache
def descent():
    """An M-step, its optimum, and the iterates of a projected gradient from the identity."""
    objective = random_objective(3, "hyper", n=25, m=3)
    iterates, curvature = [np.eye(3)], objective.smoothness_bound / 4.0
    for _ in range(40):
        gradient = objective.value_and_gradient(iterates[-1])[1]
        iterates.append(project(symmetrize(iterates[-1] - gradient / curvature)))
    return objective, solve_m_step(objective).metric, iterates


@cache
def records():
    """(iteration, primal, dual) along that descent, by the referee."""
    objective, _, iterates = descent()
    certificates = [certify(objective, A) for A in iterates]
    return [(k, c.primal_value, c.dual_value) for k, c in enumerate(certificates)]


@cache
def short_path(*weights):
    """A path with these trace weights, or eight of its own."""
    return seraph_path(random_pairs(3, n_labeled=60), weights or "auto", n_weights=8)


def race_rows(n_instances):
    columns = "instance", "solver", "formulation", "tol", "claims", "true_gap", "total_seconds"
    rows = [
        (f"breast_cancer-n{20 + i}-standard-hyper-w0.01-s0", *solver, tol, tol > 1e-4, tol, 1 / tol)
        for i in range(n_instances)
        for solver in (("fista", ""), ("SCS", "dual"), ("CLARABEL", "primal"))
        for tol in (1e-3, 1e-6)
    ]
    return [dict(zip(columns, row, strict=True)) for row in rows]


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
MANY = {"before": np.eye(200), "after": np.diag(1.0 / np.arange(1, 201) ** 3)}
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
    "spectrum of many features": (SpectrumDisplay, MANY),
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
    "duality of one iteration": (DualityDisplay, [(0, 2.0, 1.0)]),
    "duality of 200 iterations": (DualityDisplay, [(k, 1 + 2.0**-k, 1) for k in range(200)]),
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
PLAIN = [case for case in CASES if not re.search(" of| from| to|without|,", case)]
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


def places_of(ax):
    """The points of all scatters, in the order of drawing."""
    return np.vstack([np.empty((0, 2)), *[drawn.get_offsets() for drawn in ax.collections]])


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


@pytest.mark.parametrize("case", ["posterior, twenty classes", "feature weights, long names", ""])
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
        ((MetricDisplay, np.eye(3), X, Y), "must be 4 x 4"),
        ((MetricDisplay, METRIC, X, Y, 1.0, (1, 1)), "two different"),
        ((MetricDisplay, METRIC, X, Y, 1.0, (1, 9)), "from 0 to 3"),
        ((PosteriorDisplay, METRIC, X, Y[:3]), "one label each"),
        ((PosteriorDisplay, METRIC, X, Y, 0.0), "threshold=0"),
        ((SpectrumDisplay, {}), "no metric to draw"),
        ((SpectrumDisplay, {"a": -np.eye(2)}), "the metric 'a' is not positive"),
        ((HistoryDisplay, []), "history is empty"),
        ((SegmentDisplay, -np.eye(2), np.eye(2)), "start is"),
        ((SegmentDisplay, np.eye(2), np.eye(2), 1), "n_points=1: a segment has at least its two"),
        ((SliceDisplay, LINE), "spanned by 3 matrices, but 2"),
        ((SliceDisplay, LINE | {"I2": 2.0 * np.eye(2)}), "'I2' lie on one line"),
        ((SliceDisplay, LINE | {"again": np.zeros((2, 2))}), "on one line.*another third one"),
        ((SliceDisplay, PLANE, None, 1), "resolution=1: a grid has at least 2 points per side"),
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
    objective = [nonconvex_objective()] if kind in (SegmentDisplay, SliceDisplay) else []
    with pytest.raises(ValueError, match=message):
        kind.from_result(*objective, *values)


def test_a_slice_of_one_feature_is_a_segment():
    corners = {name: [[float(name)]] for name in "012"}
    with pytest.raises(ValueError, match="use SegmentDisplay"):
        SliceDisplay.from_result(random_objective(0, "hyper", m=1), corners)


def lines_of(display):
    """Where the numbers of a display are drawn: panel, line, x, y."""
    shown = vars(display)
    match display:
        case HistoryDisplay(numbers=t):
            names = ("descent_values", "paper_objective", "relative_gaps")
            return [(k, 0, t, shown[name]) for k, name in enumerate(names)]
        case DualityDisplay(iterations=t, primal_values=primal, dual_values=dual):
            return [(0, 0, t, primal), (0, 1, t, dual), (1, 0, t, primal - dual)]
        case SegmentDisplay(positions=t, convex_values=f, paper_values=paper):
            chords = [(1.0 - t) * values[0] + t * values[-1] for values in (f, paper)]
            return [(0, 0, t, chords[0]), (0, 1, t, f), (1, 0, t, chords[1]), (1, 1, t, paper)]
        case SliceDisplay(paths=paths):
            lines = enumerate(paths.values())
            return [(0, 4 + 2 * k, *path.T) for k, path in lines]
        case PathDisplay(trace_weights=t):
            gaps, top = np.maximum(display.relative_gaps, 1e-12), display.eigenvalues[:, 0]
            return [(0, 0, t, top), (1, 1, t, display.ranks), (2, 0, t, gaps)]


@pytest.mark.parametrize("case", ["history", "duality", "segment", "slice", "path"])
def test_lines_show_the_numbers_of_the_display(case):
    display = display_of(case).plot()
    for panel, k, x, y in lines_of(display):
        drawn = display.axes_[panel].lines[k].get_xydata()
        shown = np.isfinite(drawn[:, 1])
        assert np.any(shown)
        np.testing.assert_allclose(drawn[shown], np.column_stack([x, y])[shown])
    scales = [ax.get_yscale() == "log" for ax in display.axes_]
    logs = {"history": [2], "duality": [1], "path": [0, 2]}.get(case, [])
    assert np.flatnonzero(scales).tolist() == logs


# The metric


def balls_of(ax):
    return [line for line in ax.lines if line.get_label() == "v'Av = η"]


def squared_lengths(v, A):
    return np.einsum("ki,ij,kj->k", v, A, v)


def test_metric_ball_is_the_section_of_the_metric_by_the_plane_shown():
    principal = np.linalg.eigh(np.cov(X.T))[1][:, :-3:-1]
    for features, plane in (((2, 0), np.eye(4)[:, [2, 0]]), (None, principal)):
        display = MetricDisplay.from_result(FULL_RANK, X, Y, 2.5, features).plot()
        signs = np.sign(np.sum(display.before * (X @ plane - X.mean(0) @ plane), axis=0))
        section = (plane * signs).T @ FULL_RANK @ (plane * signs)
        sides = (display.before, section), (display.after, np.eye(2))
        for ax, (points, metric) in zip(display.axes_, sides, strict=True):
            v = balls_of(ax)[0].get_xydata() - points.mean(axis=0)
            np.testing.assert_allclose(squared_lengths(v, metric), 2.5)
            assert ax.get_aspect() == 1.0


def test_metric_points_are_those_given_and_their_distances_the_learned_ones():
    A, points = FULL_RANK[:2, :2], X[:, :2]
    order = np.argsort(Y, kind="stable")  # the unlabeled ones first, as they are drawn
    v = points[order[1:]] - points[order[0]]
    for features, name in (((0, 1), "feature 0, by A"), (None, "first learned coordinate")):
        left, right = MetricDisplay.from_result(A, points, Y, features=features).plot().axes_
        assert right.get_xlabel() == name
        assert features is None or np.allclose(places_of(left), points[order])
        for ax, metric in ((left, np.eye(2)), (right, A)):
            z = places_of(ax)
            lengths = np.sum((z[1:] - z[0]) ** 2, axis=1)
            np.testing.assert_allclose(lengths, squared_lengths(v, metric))


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
    ax = display_of("metric of two features").plot().ax_
    edge, (low, high) = balls_of(ax)[0].get_ydata(), ax.get_ylim()
    assert low < edge.min() < X[:, 1].min() < X[:, 1].max() < edge.max() < high
    left = MetricDisplay.from_result(np.diag([1.0, 0.0, 0.0, 0.0]), X, Y).plot().ax_
    left.figure.draw_without_rendering()
    diameter = np.linalg.norm(np.ptp(X, axis=0))
    assert np.ptp(left.get_ylim()) < 2.5 * diameter
    assert np.ptp(balls_of(left)[0].get_ydata()) > 10.0 * diameter
    strip = MetricDisplay.from_result([[4.0]], X[:, :1], Y).plot().ax_
    flat = display_of("metric of rank 0").plot().axes_[1]
    for ax, radius in ((strip, 0.5), (flat, 1.0)):
        center = places_of(ax)[:, 0].mean()
        np.testing.assert_allclose(np.max(balls_of(ax)[0].get_xdata()) - center, radius)
        assert ax.get_xlim()[1] > center + radius


def test_metric_view_marks_the_points_whose_label_was_used():
    used = np.arange(len(X)) < 4
    display = MetricDisplay.from_result(METRIC, X, TWENTY % 2, labeled=used).plot()
    for ax, points in zip(display.axes_, (display.before, display.after), strict=True):
        large = [drawn for drawn in ax.collections if drawn.get_label() == "_labeled"]
        small = [drawn for drawn in ax.collections if drawn.get_label() in ("0", "1")]
        for drawn, chosen in ((large, used), (small, ~used)):
            places = np.vstack([each.get_offsets() for each in drawn])
            np.testing.assert_allclose(np.sort(places, 0), np.sort(points[chosen], 0))
        assert large[0].get_sizes() > 2.0 * small[0].get_sizes()
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
    euclidean = Euclidean().fit(X, Y)
    with pytest.raises(ValueError, match="Euclidean has no parameter `threshold`"):
        MetricDisplay.from_estimator(euclidean, X, Y)
    assert MetricDisplay.from_estimator(euclidean, X, Y, threshold=3.0).threshold == 3.0
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


def test_posterior_marks_class_boundaries_and_has_a_bar_from_0_to_1():
    display = PosteriorDisplay.from_result(METRIC, X, Y, class_names=["p", "q", "r"]).plot()
    ax, bar = display.figure_.axes
    assert bar.get_ylim() == (0.0, 1.0)
    assert bar.get_ylabel()
    assert ax.collections[0].get_cmap().name.startswith("cividis")
    across = sorted(line.get_ydata()[0] for line in ax.lines if np.ptp(line.get_ydata()) == 0)
    assert across == [3.5, 7.5, 11.5]
    ticks = dict(zip(texts_of(ax.get_yticklabels()), ax.get_yticks(), strict=True))
    assert ticks == {"p": 1.5, "q": 5.5, "r": 9.5, "unlabeled": 35.5}


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


def test_posteriors_side_by_side_share_one_bar():
    figure = new_figure(8.0, 4.0)
    panels = figure.subplots(1, 2)
    for ax in panels:
        display_of("posterior").plot(ax, color_bar=False)
    add_color_bar(figure.axes)
    assert len(figure.axes) == 3
    figure.draw_without_rendering()
    assert panels[0].bbox.width == pytest.approx(panels[1].bbox.width, rel=0.02)
    with pytest.raises(ValueError, match="shows no posterior"):
        add_color_bar([new_figure(2.0, 2.0).subplots()])


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


@pytest.mark.parametrize(
    "weights", [(), (3.0,), (1.0, 0.0), (900.0, 30.0, 1.0), (9e3, 3e3)], ids=str
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
    eigenvalues = [np.linalg.eigvalsh(metric)[::-1] for metric in path.metrics]
    np.testing.assert_array_equal(PathDisplay.from_result(path).eigenvalues, eigenvalues)


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
    objective = HistoryDisplay.from_result(falling(8)).plot().axes_[1]
    assert objective.get_title() == "Objective (7): rose 4 times"
    assert objective.lines[1].get_xdata().tolist() == [5, 6, 7, 8]


# Convexity


def test_segment_of_the_m_step_lies_below_its_chord_and_objective_7_does_not():
    objective, start = nonconvex_objective(), np.diag([0.01, 0.0])
    display = SegmentDisplay.from_result(objective, start, np.eye(2), n_points=11)
    metrics = [(1.0 - t) * start + t * np.eye(2) for t in np.linspace(0.0, 1.0, 11)]
    functions = objective, SemiSupervisedObjective(objective)
    convex, other = ([function.value(A) for A in metrics] for function in functions)
    np.testing.assert_allclose(display.convex_values, convex, rtol=1e-12)
    np.testing.assert_allclose(display.paper_values, other, rtol=1e-12)
    titles = [ax.get_title() for ax in display.plot().axes_]
    assert titles == ["M-step (11): below its chord", "Objective (7): above its chord"]
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
    for place in ((0, 0), (3, 17), (24, 2)):
        A = x[place] * E + y[place] * np.eye(2)
        assert display.values[place] == pytest.approx(objective.value(A), rel=1e-12)
    (boundary,) = [c for c in display.plot().ax_.collections if np.any(c.get_linewidth() == 2.5)]
    vertices = np.vstack([path.vertices for path in boundary.get_paths() if len(path.vertices)])
    assert len(vertices) > 20
    assert np.max(np.abs(np.minimum(vertices[:, 1], vertices.sum(axis=1)))) < 1e-12


def test_slice_projects_iterates_and_says_how_far_they_were():
    _, optimum, iterates = descent()
    display = slice_of(5).plot()
    basis = np.array([optimum, np.eye(3)])
    left = np.array(iterates) - np.tensordot(display.paths["projected gradient"], basis, axes=1)
    assert np.max(np.abs(np.einsum("kij,lij->kl", basis, left))) < 1e-9  # orthogonal
    np.testing.assert_allclose(display.paths["straight"], [[2, 0], [1, 0]], atol=1e-9)
    drawn = [line.get_xydata().tolist() for line in display.ax_.lines]
    assert all([[float(x), float(y)]] in drawn for x, y in ((0, 0), (1, 0), (0, 1)))
    far = 100.0 * display.distances["projected gradient"]
    assert far > 1.0
    name = f"projected gradient (up to {far:.0f} % off the slice)"
    assert legend_of(display.figure_)[2:] == [name, "straight"]


def test_slice_all_in_the_cone_draws_no_boundary_and_its_bar_has_round_numbers():
    display = slice_of(9)
    eigenvalues = np.ones_like(display.smallest_eigenvalues)
    inside = SliceDisplay(display.x, display.y, display.values, eigenvalues, display.corner_names)
    for drawn, count in ((display, 3), (inside, 1)):
        contours = [isinstance(c, ContourSet) for c in drawn.plot().ax_.collections]
        assert sum(contours) == count
    bar = display.figure_.axes[1]
    names = texts_of(bar.get_yticklabels())
    assert 2 <= len(names) <= 6
    assert max(len(name.replace(".", "").strip("0")) for name in names) <= 3
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
        pytest.param(FULL, ([1e-9],), marks=pytest.mark.slow),
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
        x, z = X[3, :3] - X[7, :3], side.points[3] - side.points[7]
        assert z @ z == pytest.approx(x @ metric @ x)
        assert np.all(np.diff(side.points.std(axis=0)) <= 0.0)
        shades = np.asarray(ax.images[0].get_array())
        (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
        for row, column in ((20, 300), (390, 10), (200, 200)):
            place = [[left + column / 399 * (right - left), bottom + row / 399 * (top - bottom)]]
            color = np.array(to_rgb(PALETTE[side.classify(np.array(place))[0]]))
            np.testing.assert_allclose(shades[row, column], 0.75 + 0.25 * color)
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


@pytest.mark.parametrize("case", ["square", "strip", "zero metric", "twenty classes"])
def test_no_marker_touches_the_frame(case):
    figure = fit_of(case)
    figure.draw_without_rendering()
    for ax in figure.axes[:2]:
        pixels = ax.transData.transform(places_of(ax))
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
