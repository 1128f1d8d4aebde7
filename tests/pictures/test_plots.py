"""Evidence that the pictures show what they are given, legibly."""

from dataclasses import fields
from functools import cache

import numpy as np
import pytest
from evidence.pictures import plot_times
from evidence.results import summarize, times_of
from instances import random_pairs
from pictures import assert_legible

from seraph_cvx import seraph_path
from seraph_cvx.fit.alternation import Iteration
from seraph_cvx.plots import plot_fit, plot_path

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4)) * [3.0, 2.0, 1.0, 0.5]
Y = np.where(np.arange(60) < 12, np.arange(60) % 3, -1)
LONG_NAMES = [f"a rather long name of class {k}" for k in range(20)]


def em_history(descent, paper):
    """Iterations whose other fields, which no picture shows, are all 1."""
    rest = {field.name: 1 for field in fields(Iteration)}
    return [
        Iteration(**rest | {"number": k + 1, "descent_value": j, "paper_objective": p})
        for k, (j, p) in enumerate(zip(descent, paper, strict=True))
    ]


HISTORY = em_history([19.4, 17.4, 16.9, 16.8], [30.9, 30.1, 29.8, 29.9])
FLAT = np.diag([2.0, 0.0, 0.0, 0.0])
CASES = {
    "plane": (X, Y, np.eye(4), HISTORY, {}),
    "strip": (X, Y, FLAT, HISTORY, {}),
    "zero metric": (X, Y, np.zeros((4, 4)), HISTORY, {}),
    "one feature": (X[:, :1], Y, np.eye(1), HISTORY, {}),
    "twenty classes": (X, np.arange(60) % 20, np.eye(4), HISTORY, {"class_names": LONG_NAMES}),
    "two scales": (X, Y, np.eye(4), em_history([5.0, 4.0, 3.9], [9e5, 8e5, 8.1e5]), {}),
    "one iteration": (X, Y, np.eye(4), HISTORY[:1], {}),
    "many iterations": (X, Y, np.eye(4), em_history(10 + 1 / np.arange(1, 91), [30.0] * 90), {}),
    "direct": (X, Y, np.eye(4), [441.0, 352.0, 39.0, 12.0, 11.9], {}),
    "long title": (X, Y, np.eye(4), HISTORY, {"title": "a table with a long name " * 9}),
    "large numbers": (1e6 * X, Y, np.eye(4), HISTORY, {}),
    "names of commands": (X, Y, np.eye(4), HISTORY, {"class_names": ["_a", "b$x_{", "$$"]}),
    "string labels": (X, np.array(["a", "b", None] * 20, dtype=object), np.eye(4), HISTORY, {}),
}


@cache
def picture_of(case):
    """The picture of a case, made once for all tests, which change nothing in it."""
    points, labels, components, history, extra = (CASES | RATIOS)[case]
    return plot_fit(points, labels, components, history, **extra)


MORE_OF_A_KIND = ("one iteration", "many iterations", "string labels")
"""Cases whose layout is that of others."""


def slow_if(is_slow, cases):
    return [pytest.param(c, marks=pytest.mark.slow) if is_slow(c) else c for c in cases]


@pytest.mark.parametrize("case", slow_if(MORE_OF_A_KIND.__contains__, CASES))
def test_no_text_overlaps_another_or_is_clipped(case):
    assert_legible(picture_of(case), at_least=15)


@pytest.mark.parametrize("case", ["plane", "strip", "twenty classes", "direct"])
def test_three_panels_with_content_and_labels(case):
    figure = picture_of(case)
    assert len(figure.axes) == 3
    for ax in figure.axes:
        assert ax.has_data()
        assert ax.get_title()
        assert ax.get_xlabel()
        assert ax.get_ylabel()


def test_panels_show_the_points_and_the_values_given():
    components = np.array([[0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]])
    before, after, descent = plot_fit(X, Y, components, HISTORY).axes
    unlabeled, *classes = after.collections
    np.testing.assert_allclose(unlabeled.get_offsets(), X[Y == -1][:, 1:3])
    for k, drawn in enumerate(classes):
        np.testing.assert_allclose(drawn.get_offsets(), X[k == Y][:, 1:3])
    spread = np.vstack([drawn.get_offsets() for drawn in before.collections]).var(axis=0)
    np.testing.assert_allclose(spread, np.linalg.eigvalsh(np.cov(X.T, ddof=0))[:-3:-1])
    values = [line.get_ydata().tolist() for line in descent.lines]
    assert values == [[19.4, 17.4, 16.9, 16.8], [30.9, 30.1, 29.8, 29.9]]


SQUARE = RNG.uniform(size=(60, 2))
TWENTY = np.arange(60) % 20
RATIOS = {
    f"ratio {r}": (SQUARE, TWENTY, np.diag([r, 1.0]), HISTORY, {"class_names": LONG_NAMES})
    for r in (0.7, 1.3, 2.0)
}


@pytest.mark.parametrize(
    "case",
    [
        *slow_if(lambda case: case != "ratio 2.0", RATIOS),
        *("strip", "zero metric", "twenty classes"),
    ],
)
def test_no_marker_touches_the_frame(case):
    figure = picture_of(case)
    if figure.stale:
        figure.draw_without_rendering()
    for ax in figure.axes[:2]:
        offsets = np.vstack([drawn.get_offsets() for drawn in ax.collections])
        pixels = ax.transData.transform(offsets)
        assert np.all(pixels >= ax.bbox.min + 12)
        assert np.all(pixels <= ax.bbox.max - 12)


def test_classes_differ_by_marker_as_well_as_by_color():
    ax = picture_of("twenty classes").axes[0]
    looks = [
        (tuple(drawn.get_facecolor()[0]), drawn.get_paths()[0].vertices.tobytes())
        for drawn in ax.collections
    ]
    assert len(set(looks)) == 20
    assert len({shape for _, shape in looks[:8]}) == 8


def test_legend_names_every_class_and_counts_those_left_out():
    left = picture_of("twenty classes").subfigs[0]
    texts = [text.get_text() for text in left.legends[0].get_texts()]
    assert len(texts) == len(set(texts)) == 12
    assert texts[0].endswith("ss 0")
    assert texts[-1].endswith("(+ 8 more)")
    strange = picture_of("names of commands").subfigs[0]
    texts = [text.get_text() for text in strange.legends[0].get_texts()]
    assert texts == ["unlabeled", " _a", r"b\$x_{", r"\$\$"]


def test_one_dimensional_metric_is_a_strip_that_says_so():
    ax = picture_of("strip").axes[1]
    assert "jitter" in ax.get_ylabel()
    np.testing.assert_allclose(ax.collections[0].get_offsets()[:, 0], 2.0 * X[Y == -1][:, 0])


def test_second_scale_only_where_one_would_hide_a_line():
    assert len(picture_of("plane").axes) == 3
    figure = picture_of("two scales")
    assert len(figure.axes) == 4
    assert [ax.get_ylabel() for ax in figure.axes[2:]] == ["J, what EM descends", "objective (7)"]


def test_iterations_are_ticked_by_integers():
    for case in ("plane", "one iteration", "direct"):
        ticks = picture_of(case).axes[2].get_xticks()
        np.testing.assert_array_equal(ticks, np.round(ticks))


def test_picture_is_written_and_small(tmp_path):
    path = tmp_path / "fit.png"
    plot_fit(X, Y, np.eye(4), HISTORY, path)
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG")
    assert len(content) < 300_000


@pytest.mark.parametrize(
    "weights",
    [
        [1.0, 0.0],
        *(pytest.param(w, marks=pytest.mark.slow) for w in ([3.0], "auto", [900.0, 30.0, 1.0])),
    ],
)
def test_a_path_is_drawn_as_it_was_walked(weights, tmp_path):
    path = seraph_path(random_pairs(3, n_labeled=60), weights, n_weights=8)
    figure = plot_path(path, tmp_path / "path.png")
    assert_legible(figure, at_least=12)
    spectrum, rank, gap = figure.axes
    assert rank.lines[1].get_ydata().tolist() == path.ranks
    top = spectrum.lines[0].get_ydata()
    largest = [np.linalg.eigvalsh(point.metric)[-1] for point in path if point.rank]
    np.testing.assert_allclose(top, largest)
    assert gap.get_xlim()[0] > gap.get_xlim()[1]
    assert len((tmp_path / "path.png").read_bytes()) < 300_000


def test_times_of_a_reproduction_without_a_finished_run_are_not_drawn():
    row = {"task": "iris", "sampling": 0, "method": "gdm", "outcome": "failed", "error": None}
    with pytest.raises(ValueError, match="no times to draw"):
        plot_times(times_of(summarize([row | {"seconds": None, "detail": "it broke down"}])))
