"""Evidence: what the pictures of chapters 1 to 6 are said to show is in the numbers they draw."""

from __future__ import annotations

import numpy as np
import pytest
from course import moving_figures

pytestmark = [pytest.mark.slow, pytest.mark.once]

LABELS = {
    "chapter1": {"Position θ:", "Angle of B in the plane of its eigenvalues:", "Step length:"},
    "chapter2": {
        "Multiple θ of the identity:",
        "Half width w of the chord:",
        "Weight μ of the unlabeled pairs:",
    },
    "chapter3": {
        "Slope p:",
        "Multiple θ of the optimal metric:",
        "λ, as a share of the least one with A = 0:",
    },
    "chapter4": {
        "Step:",
        "From the anchor 1 (τ = 0) to p (τ = 1):",
        "Digits of the least eigenvalue, as constructed:",
    },
    "chapter5": {
        "Steps:",
        "How often ε was divided by 5:",
        "Columns of L, ρ:",
        "Digits asked for:",
    },
    "chapter6": {"Iteration:", "Sharpness a:", "Labeled points:"},
}
BLUE, ORANGE, GREEN = "#0072b2", "#d55e00", "#009e73"


def lines(figure):
    """The lines of a picture, each as its x and y."""
    return [np.array(line.get_data(), dtype=float) for line in figure.axes[0].lines]


def by_name(figure):
    """The lines that the legend names."""
    named = [line for line in figure.axes[0].lines if not line.get_label().startswith("_")]
    return {line.get_label(): np.array(line.get_data(), dtype=float) for line in named}


def bars(figure):
    """The heights of the bars, and their colors."""
    drawn = figure.axes[0].patches
    return np.array([bar.get_height() for bar in drawn]), [bar.get_facecolor() for bar in drawn]


def is_orange(color):
    return np.allclose(color[:3], np.array([0xD5, 0x5E, 0x00]) / 255, atol=0.01)


@pytest.mark.parametrize("chapter", LABELS)
def test_every_picture_has_a_test_here(chapter):
    assert set(moving_figures(chapter)) == LABELS[chapter]


# Chapter 1


def test_mixtures_of_metrics_are_metrics_and_the_least_eigenvalue_is_concave():
    for theta, (_, lowest) in moving_figures("chapter1")["Position θ:"]:
        _, (thetas, eigenvalues), (at, here) = lines(lowest)
        assert at == theta
        assert here == pytest.approx(np.interp(theta, thetas, eigenvalues), abs=1e-3)
        inside = (thetas >= 0) & (thetas <= 1)
        assert np.all(eigenvalues[inside] > 0)
        assert eigenvalues[-1] < 0  # further out one leaves the cone
        assert np.all(np.diff(eigenvalues, 2) <= 1e-12)


def test_the_clipped_form_is_the_nearest_that_is_never_negative():
    for _, (plane, form) in moving_figures("chapter1")[
        "Angle of B in the plane of its eigenvalues:"
    ]:
        _, b, clipped = lines(plane)
        assert np.array_equal(np.ravel(clipped), np.maximum(np.ravel(b), 0))
        drawn = by_name(form)
        assert np.all(drawn["P(B)"][1] >= 0)
        assert np.all(drawn["P(B)"][1] >= drawn["B"][1] - 1e-12)


def test_orange_eigenvalues_are_those_below_zero():
    for length, (spectrum, falls) in moving_figures("chapter1")["Step length:"]:
        heights, colors = bars(spectrum)
        assert [is_orange(color) for color in colors] == list(heights < 0)
        (lengths, values), (at, value) = lines(falls)
        assert at == length
        assert value == pytest.approx(np.interp(length, lengths, values), rel=1e-2)


# Chapter 2


def test_pairs_lie_on_the_curve_and_extreme_multiples_call_all_pairs_alike():
    figures = moving_figures("chapter2")["Multiple θ of the identity:"]
    for theta, (curve, loss) in figures:
        drawn = by_name(curve)
        for s, p in drawn.values():
            np.testing.assert_allclose(p, 1 / (1 + np.exp(-s)), rtol=1e-12)
        everything = np.concatenate([p for _, p in drawn.values()])
        if theta == 0.0:
            assert np.all(everything < 0.5)  # all look similar
        (scales, values), (at, value) = lines(loss)
        assert (at, value) == (theta, pytest.approx(np.interp(theta, scales, values), rel=1e-3))
    assert np.mean(drawn["similar"][1] > 0.5) > 0.5  # at the largest, most look dissimilar
    assert np.all(np.diff(values, 2) >= -1e-9)  # convex


def test_the_logistic_term_is_below_its_chord_and_the_entropy_above_near_zero():
    for w, (logistic, entropy) in moving_figures("chapter2")["Half width w of the chord:"]:
        for figure, sign in ((logistic, -1), (entropy, 1)):
            (s, values), (ends, chord) = lines(figure)
            assert list(ends) == [-w, w]
            inside = np.abs(s) < w
            above = values - np.interp(s, ends, chord)
            assert np.all(sign * above[inside] >= -1e-3)
            assert sign * above[np.argmin(np.abs(s))] > 0


def test_the_paper_objective_rises_above_its_chord_with_the_weight():
    figures = moving_figures("chapter2")["Weight μ of the unlabeled pairs:"]
    above = []
    for _, (convex, paper) in figures:
        (_, values), (_, chord) = lines(convex)
        assert np.max(values - chord) < 1e-9
        assert "below its chord" in convex.axes[0].get_title()
        (_, values), (_, chord) = lines(paper)
        above.append(np.max(values - chord))
    assert above[0] < 1e-9
    assert above[-1] > 1.0
    assert "above its chord" in figures[-1][1][1].axes[0].get_title()


# Chapter 3


def test_the_tangent_touches_from_below_and_meets_the_axis_at_the_entropy():
    for p, (tangent, entropy) in moving_figures("chapter3")["Slope p:"]:
        drawn = by_name(tangent)
        values = drawn["ln(1 + eˢ)"][1]
        assert np.all(drawn["H(p) + ps"][1] <= values + 1e-12)
        height = -p * np.log(p) - (1 - p) * np.log(1 - p)
        assert drawn["H(p)"][1][-1] == pytest.approx(height, rel=1e-12)
        touch = np.ravel(lines(tangent)[2])
        assert touch[1] == pytest.approx(height + p * touch[0], rel=1e-12)
        assert lines(entropy)[1][1][-1] == pytest.approx(height, rel=1e-12)


def test_the_optimum_lies_between_the_bounds_at_every_multiple():
    for _, (bounds, gaps) in moving_figures("chapter3")["Multiple θ of the optimal metric:"]:
        drawn = by_name(bounds)
        thetas, high = drawn["f(A)"]
        low, optimum = drawn["D(p)"][1], drawn["optimum"][1][0]
        assert np.all(low <= optimum + 1e-9)
        assert np.all(optimum <= high + 1e-9)
        _, gap = lines(gaps)[0]
        np.testing.assert_allclose(gap, high - low, rtol=1e-6, atol=1e-12)
        assert thetas[np.argmin(gap)] == 1.0


def test_no_direction_is_used_and_slack_at_once():
    label = "λ, as a share of the least one with A = 0:"
    ranks = []
    for share, (metric, slack) in moving_figures("chapter3")[label]:
        (A, _), (M, _) = bars(metric), bars(slack)
        size = max(np.max(A), 1e-9) * max(np.max(M), 1e-9)
        assert np.max(np.abs(A * M)) <= 1e-3 * size, share
        ranks.append(sum(size > max(1e-4 * np.max(A), 1e-9) for size in A))
    assert ranks[0] == 0
    assert ranks == sorted(ranks)
    assert ranks[-1] > ranks[1]


# Chapter 4


def test_the_band_encloses_the_optimum_and_the_proved_gap_is_above_the_true_one():
    for _, (band, gaps) in moving_figures("chapter4")["Step:"]:
        drawn = by_name(band)
        assert np.max(drawn["lower bound D"][1]) <= np.min(drawn["f(A)"][1]) + 1e-9
        gap = by_name(gaps)
        assert np.all(gap["proved"][1] >= gap["true"][1] - 1e-11)


def test_beyond_the_feasible_step_nothing_is_proved():
    label = "From the anchor 1 (τ = 0) to p (τ = 1):"
    for tau, (sign, bound) in moving_figures("chapter4")[label]:
        _, (_, least), (at, value) = lines(sign)
        assert at == tau
        feasible = least >= 0
        assert feasible[0]
        assert not feasible[-1]
        (_, proved), (_, dotted), optimum, _ = lines(bound)
        assert len(proved) == feasible.sum()
        assert np.all(proved <= optimum[1][0] + 1e-9)
        assert np.max(dotted) > optimum[1][0]  # it even passes the optimum
        assert np.all(np.diff(proved) >= -1e-9)
        word = "a lower bound" if np.ravel(value) >= 0 else "not feasible: no bound"
        assert word in bound.axes[0].get_title()


def test_green_eigenvalues_are_proved_and_the_smallest_are_not():
    label = "Digits of the least eigenvalue, as constructed:"
    for exponent, (figure,) in moving_figures("chapter4")[label]:
        points = [line for line in figure.axes[0].lines if len(line.get_xdata()) == 1][:-1]
        green = {
            int(point.get_xdata()[0]): point.get_color() == GREEN for point in map(_low, points)
        }
        assert green[8]
        assert not green[19]
        assert list(green.values()) == sorted(green.values(), reverse=True)
        word = "proved positive" if green[exponent] else "nothing proved"
        assert word in figure.axes[0].get_title()


def _low(line):
    line.set_color(str(line.get_color()).lower())
    return line


# Chapter 5


def test_fista_proves_more_than_projected_gradient_after_as_many_steps():
    for steps, (figure,) in moving_figures("chapter5")["Steps:"]:
        named = {name.partition(":")[0]: line for name, line in by_name(figure).items()}
        counts, plain = named["projected gradient"]
        assert counts[-1] == steps
        if steps >= 100:
            assert named["FISTA"][1][-1] < plain[-1]


def test_on_the_central_path_the_gap_is_known_and_small_eigenvalues_fall_with_the_weight():
    for k, (spectrum, claimed) in moving_figures("chapter5")["How often ε was divided by 5:"]:
        drawn = by_name(claimed)
        np.testing.assert_allclose(drawn["mε"][1], 4 * drawn["mε"][0])
        on_path = drawn["mε"][1] > 1e-7
        np.testing.assert_allclose(drawn["proved"][1][on_path], drawn["mε"][1][on_path], rtol=1e-2)
        weights, least = lines(spectrum)[0]
        slope = np.polyfit(np.log(weights[-4:]), np.log(least[-4:]), 1)[0]
        assert slope == pytest.approx(1.0, abs=0.1)
        assert int(k) < len(weights)


def test_a_zero_slope_is_refuted_by_a_negative_eigenvalue_until_there_are_enough_columns():
    proved, negative = {}, {}
    for rho, (progress, signs) in moving_figures("chapter5")["Columns of L, ρ:"]:
        assert "converged" in progress.axes[0].get_title()
        proved[rho] = lines(progress)[0][1][-1]
        heights, colors = bars(signs)
        negative[rho] = [is_orange(color) for color in colors]
        assert negative[rho] == list(heights < -1e-6)
    assert proved[1] > 1e-2
    assert any(negative[1])
    assert proved[4] < 1e-6
    assert not any(negative[4])


def test_a_disc_is_orange_where_a_claim_is_not_true():
    for digits, (figure,) in moving_figures("chapter5")["Digits asked for:"]:
        ax = figure.axes[0]
        tol = 10.0 ** -int(digits)
        discs = [line for line in ax.lines if line.get_marker() == "o"]
        squares = [line for line in ax.lines if line.get_marker() == "s"]
        assert len(discs) == len(squares) == len(ax.get_yticklabels()) >= 3
        for disc, square in zip(discs, squares, strict=True):
            true, proved = disc.get_xdata()[0], square.get_xdata()[0]
            assert true <= proved * (1 + 1e-6) + 1e-11
            is_false = disc.get_fillstyle() == "full" and true > tol
            assert (str(disc.get_color()).lower() == ORANGE) == is_false


# Chapter 6


def test_J_falls_at_every_iteration_and_the_paper_objective_rises():
    for t, (falls, rises) in moving_figures("chapter6")["Iteration:"]:
        _, J = lines(falls)[0]
        _, seven = lines(rises)[0]
        assert np.all(np.diff(J) < 1e-9)
        assert seven[-1] > seven[0]
        assert lines(falls)[2][1] == pytest.approx(J[int(t) - 1])


def test_the_losses_are_the_formulas_and_the_soft_label_is_sharper_than_the_posterior():
    for a, (losses, labels) in moving_figures("chapter6")["Sharpness a:"]:
        drawn = by_name(losses)
        s, convex = drawn["M-step, convex"]
        np.testing.assert_allclose(convex, np.log1p(np.exp(s)), rtol=1e-9)
        hill = np.logaddexp(0, s) - np.logaddexp(0, a * s) / a
        np.testing.assert_allclose(drawn["J"][1], hill, atol=1e-9)
        for name in ("J", "(7)"):
            assert abs(s[np.argmax(drawn[name][1])]) < 1e-9  # highest where a pair is undecided
        soft = by_name(labels)
        p, q = soft["E-step"]
        assert np.all(np.abs(q - 0.5) >= np.abs(p - 0.5) - 1e-12)


def test_the_bars_are_the_means_of_the_discs():
    for n, figures in moving_figures("chapter6")["Labeled points:"]:
        for figure, name in zip(figures, ("iris", "wine"), strict=True):
            ax = figure.axes[0]
            assert ax.get_title() == f"{name}, {int(n)} labels"
            drawn = lines(figure)
            assert len(drawn) == 6
            for discs, bar, text in zip(drawn[::2], drawn[1::2], ax.texts, strict=True):
                assert len(discs[1]) == 8
                assert bar[1][0] == pytest.approx(np.mean(discs[1]))
                assert float(text.get_text()) == pytest.approx(np.mean(discs[1]), abs=0.051)
