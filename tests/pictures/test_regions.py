"""Evidence that the regions of 1-NN are drawn as they are, with the errors that were made."""

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from pictures import assert_legible

from seraph_cvx.plots import RegionsDisplay
from seraph_cvx.plots.regions import TINT, shade_regions
from seraph_cvx.plots.style import PALETTE, new_figure

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3)) * [2.0, 1.0, 0.5]
Y = np.where(np.arange(40) < 9, np.digitize(X[:, 1], [-0.4, 0.4]), -1)
X_TEST = RNG.normal(size=(30, 3))
Y_TEST = np.digitize(X_TEST[:, 1], [-0.4, 0.4])
METRIC = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 0.0]])
GAPS = [0.3, 1e-3, 2e-9]


def predicted(metric, places):
    """The class of the nearest labeled point, by the definition."""
    v = places[:, None, :] - X[None, :9, :]
    return Y[np.argmin(np.einsum("ijk,kl,ijl->ij", v, metric, v), axis=1)]


CASES = {
    "two panels": {},
    "names": {"gaps": GAPS, "class_names": ["setosa", "versicolor", "virginica"]},
    "one iteration": {"gaps": [1e-9]},
}


SLOW = ("two panels", "one iteration")


@pytest.mark.parametrize(
    "case", [pytest.param(c, marks=[pytest.mark.slow] * (c in SLOW)) for c in CASES]
)
def test_the_picture_is_legible(case):
    display = RegionsDisplay.from_result(METRIC, X, Y, X_TEST, Y_TEST, **CASES[case])
    assert_legible(display.draw(), at_least=12)


@pytest.mark.parametrize(
    "metric", [np.zeros((3, 3)), pytest.param(np.diag([0.0, 0.0, 1.0]), marks=pytest.mark.slow)]
)
def test_a_metric_of_little_rank_is_drawn_too(metric):
    assert_legible(RegionsDisplay.from_result(metric, X, Y, X_TEST, Y_TEST).draw(), at_least=12)


def test_errors_titles_and_crosses_are_those_of_the_nearest_labeled_points():
    display = RegionsDisplay.from_result(METRIC, X, Y, X_TEST, Y_TEST, GAPS).plot()
    for ax, metric, error in zip(display.axes_, (np.eye(3), METRIC), display.errors, strict=False):
        wrong = predicted(metric, X_TEST) != Y_TEST
        assert error == np.mean(wrong)
        assert f"{100 * error:.0f} % wrong" in ax.get_title()
        (crosses,) = [drawn for drawn in ax.collections if drawn.get_label() == "wrong"]
        assert len(crosses.get_offsets()) == np.sum(wrong)
    assert display.errors[0] != display.errors[1]
    np.testing.assert_allclose(display.axes_[2].lines[0].get_ydata(), GAPS)
    assert display.axes_[2].get_yscale() == "log"


def test_distances_in_the_panels_are_those_of_the_metrics():
    display = RegionsDisplay.from_result(METRIC, X, Y, X_TEST, Y_TEST)
    for side, metric in ((display.before, np.eye(3)), (display.after, METRIC)):
        v, w = X[3] - X[7], side.points[3] - side.points[7]
        assert w @ w == pytest.approx(v @ metric @ v)
        spread = side.points.std(axis=0)
        assert np.all(np.diff(spread) <= 0.0)


def test_the_shade_of_a_place_is_that_of_its_class():
    ax = new_figure(3.0, 3.0).subplots()
    shade_regions(ax, lambda places: np.where(places[:, 1] > places[:, 0], 2, 0), (0, 0), (4, 2))
    shades = np.asarray(ax.images[0].get_array())
    for place, code in (((20, 300), 0), ((390, 10), 2)):  # row, column
        expected = 1.0 - TINT * (1.0 - np.array(to_rgb(PALETTE[code])))
        np.testing.assert_allclose(shades[place], expected)
    assert ax.get_xlim() == (0.0, 4.0)


def test_in_the_plane_the_shades_are_those_of_the_nearest_labeled_point():
    flat, A = X[:, :2], METRIC[:2, :2]
    side = RegionsDisplay.from_result(A, flat, Y, X_TEST[:, :2], Y_TEST).after
    v = X_TEST[:, None, :2] - flat[None, :9]
    nearest = Y[np.argmin(np.einsum("ijk,kl,ijl->ij", v, A, v), axis=1)]
    np.testing.assert_array_equal(side.classify(side.test), nearest)


@pytest.mark.parametrize(
    ("labels", "truth", "words"),
    [(Y[:5], Y_TEST, "one label for each"), (np.full(40, -1), Y_TEST, "No point of X")],
)
def test_bad_labels_are_refused_in_words(labels, truth, words):
    with pytest.raises(ValueError, match=words):
        RegionsDisplay.from_result(METRIC, X, labels, X_TEST, truth)
