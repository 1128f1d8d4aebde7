"""Evidence: what chapters 1 to 9 say of their moving pictures is in the numbers that these draw."""

from __future__ import annotations

import numpy as np
import pytest
from course import moving_figures

pytestmark = [pytest.mark.slow, pytest.mark.once]

ORANGE, GREEN = "#d55e00", "#009e73"


def lines(figure):
    """The lines of a picture, each as its x and y."""
    return [np.array(line.get_data(), dtype=float) for line in figure.axes[0].lines]


def by_name(figure):
    """The lines that the legend names."""
    named = [line for line in figure.axes[0].lines if not line.get_label().startswith("_")]
    return {line.get_label(): np.array(line.get_data(), dtype=float) for line in named}


def title(figure):
    return figure.axes[0].get_title()


def bars(figure):
    """The heights of the bars, and whether they are orange."""
    orange = np.array([0xD5, 0x5E, 0x00]) / 255
    drawn = figure.axes[0].patches
    is_orange = [np.allclose(bar.get_facecolor()[:3], orange, atol=0.01) for bar in drawn]
    return np.array([bar.get_height() for bar in drawn]), np.array(is_orange)


def test_chapter_1_mixtures_of_metrics_are_metrics_and_a_negative_eigenvalue_is_orange():
    figures = moving_figures("chapter1")
    for _, (_, lowest) in figures["Position θ:"]:
        thetas, eigenvalues = lines(lowest)[1]
        assert np.all(eigenvalues[(thetas >= 0) & (thetas <= 1)] > 0)
        assert eigenvalues[-1] < 0  # further out one leaves the cone
        assert np.all(np.diff(eigenvalues, 2) <= 1e-12)
    for _, (_, form) in figures["Angle of B in the plane of its eigenvalues:"]:
        assert np.all(by_name(form)["P(B)"][1] >= np.maximum(by_name(form)["B"][1] - 1e-12, 0))
    for _, (spectrum, _) in figures["Step length:"]:
        heights, is_orange = bars(spectrum)
        assert np.array_equal(is_orange, heights < 0)


def test_chapter_2_the_convex_objective_is_below_its_chord_and_the_papers_is_not():
    figures = moving_figures("chapter2")
    for _, (curve, loss) in figures["Multiple θ of the identity:"]:
        for s, p in by_name(curve).values():
            np.testing.assert_allclose(p, 1 / (1 + np.exp(-s)), rtol=1e-12)
        assert np.all(np.diff(lines(loss)[0][1], 2) >= -1e-9)
    for _, pair in figures["Half width w of the chord:"]:
        for figure, sign in zip(pair, (-1, 1), strict=True):
            (s, values), (ends, chord) = lines(figure)
            inside = np.abs(s) < ends[1]
            assert np.all(sign * (values - np.interp(s, ends, chord))[inside] >= -1e-3)
    above = []
    for _, both in figures["Weight μ of the unlabeled pairs:"]:
        convex, paper = (np.max(values - chord) for (_, values), (_, chord) in map(lines, both))
        assert convex < 1e-9
        above.append(paper)
    assert above[0] < 1e-9
    assert above[-1] > 1.0


def test_chapter_3_the_optimum_is_between_the_bounds_and_no_direction_is_used_and_slack():
    figures = moving_figures("chapter3")
    for p, (tangent, _) in figures["Slope p:"]:
        drawn = by_name(tangent)
        assert np.all(drawn["H(p) + ps"][1] <= drawn["ln(1 + eˢ)"][1] + 1e-12)
        entropy = -p * np.log(p) - (1 - p) * np.log(1 - p)
        assert drawn["H(p)"][1][-1] == pytest.approx(entropy, rel=1e-12)
    for _, (bounds, _) in figures["Multiple θ of the optimal metric:"]:
        drawn = by_name(bounds)
        optimum = drawn["optimum"][1][0]
        assert np.all(drawn["D(p)"][1] <= optimum + 1e-9)
        assert np.all(optimum <= drawn["f(A)"][1] + 1e-9)
    for _, (metric, slack) in figures["λ, as a share of the least one with A = 0:"]:
        A, M = bars(metric)[0], bars(slack)[0]
        assert np.max(np.abs(A * M)) <= 1e-3 * max(np.max(A), 1e-9) * max(np.max(M), 1e-9)


def test_chapter_4_what_is_called_proved_is_true():
    figures = moving_figures("chapter4")
    for _, (band, gaps) in figures["Step:"]:
        drawn, gap = by_name(band), by_name(gaps)
        assert np.max(drawn["lower bound D"][1]) <= np.min(drawn["f(A)"][1]) + 1e-9
        assert np.all(gap["proved"][1] >= gap["true"][1] - 1e-11)
    for _, (sign, bound) in figures["From the anchor 1 (τ = 0) to p (τ = 1):"]:
        feasible = lines(sign)[1][1] >= 0
        assert feasible[0]
        assert not feasible[-1]
        (_, proved), (_, dotted), optimum, _ = lines(bound)
        assert len(proved) == feasible.sum()  # beyond the feasible step nothing is proved
        assert np.all(proved <= optimum[1][0] + 1e-9)
        assert np.max(dotted) > optimum[1][0]
    for _, (figure,) in figures["Digits of the least eigenvalue, as constructed:"]:
        points = [line for line in figure.axes[0].lines if len(line.get_xdata()) == 1][:-1]
        green = {int(dot.get_xdata()[0]): str(dot.get_color()).lower() == GREEN for dot in points}
        assert green[8]
        assert not green[19]


def test_chapter_5_proved_gaps_hold_and_false_claims_are_orange():
    figures = moving_figures("chapter5")
    for steps, (figure,) in figures["Steps:"]:
        named = {name.partition(":")[0]: line for name, line in by_name(figure).items()}
        if steps >= 100:
            assert named["FISTA"][1][-1] < named["projected gradient"][1][-1]
    for _, (_, claimed) in figures["How often ε was divided by 5:"]:
        known, proved = (by_name(claimed)[name][1] for name in ("mε", "proved"))
        on_path = known > 1e-7
        np.testing.assert_allclose(proved[on_path], known[on_path], rtol=1e-2)
    for rho, (progress, signs) in figures["Columns of L, ρ:"]:
        heights, is_orange = bars(signs)
        assert np.array_equal(is_orange, heights < -1e-6)
        gap = lines(progress)[0][1][-1]
        assert rho > 1 or (gap > 1e-2 and any(is_orange))
        assert rho < 4 or (gap < 1e-6 and not any(is_orange))
    for digits, (figure,) in figures["Digits asked for:"]:
        discs, squares = (
            [line for line in figure.axes[0].lines if line.get_marker() == mark] for mark in "os"
        )
        assert len(discs) >= 3
        for disc, square in zip(discs, squares, strict=True):
            true, proved = disc.get_xdata()[0], square.get_xdata()[0]
            assert true <= proved * (1 + 1e-6) + 1e-11
            is_false = disc.get_fillstyle() == "full" and true > 10.0 ** -int(digits)
            assert (str(disc.get_color()).lower() == ORANGE) == is_false


def test_chapter_6_J_falls_and_the_paper_objective_rises():
    figures = moving_figures("chapter6")
    for _, (falls, rises) in figures["Iteration:"]:
        seven = lines(rises)[0][1]
        assert np.all(np.diff(lines(falls)[0][1]) < 1e-9)
        assert seven[-1] > seven[0]
    for a, (losses, labels) in figures["Sharpness a:"]:
        drawn, soft = by_name(losses), by_name(labels)
        s = drawn["J"][0]
        expected = np.logaddexp(0, s) - np.logaddexp(0, a * s) / a
        np.testing.assert_allclose(drawn["J"][1], expected, atol=1e-9)
        p, q = soft["E-step"]
        assert np.all(np.abs(q - 0.5) >= np.abs(p - 0.5) - 1e-12)
    for _, pair in figures["Labeled points:"]:
        for figure in pair:
            drawn = lines(figure)
            for discs, mean in zip(drawn[::2], drawn[1::2], strict=True):
                assert mean[1][0] == pytest.approx(np.mean(discs[1]))


def test_chapter_7_no_multiplier_proves_more_than_the_optimum():
    figures = moving_figures("chapter7")
    for _, (lagrangian, dual) in figures["Multiplier ζ:"]:
        z, cost = by_name(lagrangian)["g(z)"]
        priced = by_name(lagrangian)["Λ(z, ζ)"][1]
        bound = lines(lagrangian)[-1][1].item()
        optimum = by_name(lagrangian)["optimum"][1][0]
        assert np.all(priced[z <= 1] <= cost[z <= 1] + 1e-12)
        assert np.all(priced >= bound - 1e-12)
        assert bound <= optimum + 1e-12
        values = lines(dual)[-3][1]
        assert np.all(np.diff(values, 2) < 0)  # an infimum of affine functions is concave
        assert np.max(values) <= optimum + 1e-9
    gaps = [[], []]  # with and without Slater's condition
    for _, both in figures["Multiplier, the slope of the line is −ζ:"]:
        for number, figure in enumerate(both):
            (chi, least), (where, height) = lines(figure)[:2]
            below = least - np.interp(chi, where, height)
            assert -1e-9 < np.min(below) < 1e-3  # the line touches the value set from below
            drawn = by_name(figure)
            gaps[number].append((drawn["optimum"][1] - drawn["D(ζ)"][1]).item())
    assert min(gaps[0]) == pytest.approx(0, abs=1e-12)
    assert min(gaps[1]) > 0
    for _, (_, values) in figures["δ, in place of the 0 in (a):"]:
        lower, upper = lines(values)[0][1], by_name(values)["proved, δ > 0"][1]
        assert np.all((lower > -0.01) & (lower <= 0) & (upper >= 0) & (upper < 0.01))
        assert by_name(values)["at δ = 0"][1][0] == 1
    infimum = np.log1p(np.exp(-1.0))  # of a similar pair at distance 0
    for _, (length, bounds) in figures["λ of the metric that is judged:"]:
        assert np.all(np.diff(lines(length)[0][1]) > 0)
        high, low = (by_name(bounds)[name][1] for name in ("f(A)", "D(p)"))
        assert np.all((low <= infimum) & (infimum <= high))
        assert (high - low)[-1] < 0.01


def test_chapter_8_a_point_is_in_its_cone_where_the_picture_says_so():
    figures = moving_figures("chapter8")
    for entry, (disk, lowest) in figures["Entry A₁₂:"]:
        point = lines(disk)[1][:, 0]
        assert point == pytest.approx([0.5, entry])
        _, computed, formula, here = lines(lowest)
        assert computed == pytest.approx(formula)
        assert (np.linalg.norm(point) <= 1) == (here[1, 0] >= 0)
        assert title(lowest).endswith(": a metric") == (here[1, 0] >= 0)
    for height, (piece, _) in figures["Height z₂ of the slice:"]:
        x, y = lines(piece)[1]
        assert y / height == pytest.approx(np.exp(x / height))
    for entry, (piece, product) in figures["Entry ζ₂ of the candidate:"]:
        x, y = lines(piece)[0]
        z1, values = lines(product)[1]
        assert values - (entry - z1) == pytest.approx(np.exp(z1))
        inside = np.interp(entry, x, y) <= 1.0
        assert inside == (np.min(values) >= 0) == ("not" not in title(piece))
    for n, (rows, variables) in figures["Number of points n:"]:
        slopes = [
            [line[1][0] / (n * (n - 1) / 2) for line in lines(figure) if line.shape[1] == 1]
            for figure in (rows, variables)
        ]
        assert slopes[0][1] < slopes[0][0]  # the dual is smaller
        assert slopes[1][1] < slopes[1][0]
    for _, (judged, signs) in figures["Digits asked of SCS:"]:
        proved, residuals = lines(judged)[0][1], lines(judged)[1][1]
        assert proved[0] > 5 * residuals[0]
        assert proved[-1] < proved[0] / 100
        above, least = lines(signs)[1][1], lines(signs)[2][1]
        assert np.any(above < -1e-9)  # below the optimum: the matrix is no metric
        assert np.all(least[above < -1e-9] < 0)


def test_chapter_9_errors_are_below_the_bounds_of_the_theorems():
    figures = moving_figures("chapter9")
    for multiple, (_, room) in figures["Curvature of the parabola, as a multiple of ℓ:"]:
        difference = np.min(lines(room)[1][1])
        assert multiple < 1 or difference >= -1e-9
        assert multiple > 0.25 or difference < -1
    for _, (rate, closer) in figures["Steps of projected gradient:"]:
        bound, error = (line[1] for line in lines(rate)[:2])
        assert np.all((error > 0) & (error <= bound))
        assert np.all(np.diff(error) <= 1e-10)
        assert np.all(np.diff(lines(closer)[0][1]) <= 1e-10)
    for _, (rates, falls) in figures["Steps of FISTA:"]:
        plain_bound, plain, bound, error = (line[1] for line in lines(rates)[:4])
        assert np.all(plain <= plain_bound)
        assert np.all((error > 0) & (error <= bound))
        potential = lines(falls)[0][1]
        assert np.all(np.diff(potential) <= 1e-8 * potential[0])
    worst = 0.0
    for _, (says, is_true) in figures["Penalty κ:"]:
        asked, steps, stopped = lines(says)[0][1][0], lines(says)[1][0], lines(says)[3][0][0]
        proved, true = (line[1] for line in lines(is_true)[1:3])
        assert np.all(proved >= true - 1e-13)
        worst = max(worst, true[list(steps).index(stopped)] / asked)
    assert worst > 5  # a small residual is not a small gap
    for rho, (values, signs) in figures["Columns of L, ρ:"]:
        above, least = lines(values)[0][1], lines(signs)[1][1]
        stuck = above > 1e-3
        assert np.any(stuck) == (rho == 1)
        assert np.all(least[stuck] < -1)  # the gradient gives it away
        assert np.all(above[~stuck] < 1e-7)
