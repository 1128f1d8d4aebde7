"""Evidence: each moving picture of chapter 8 shows what the chapter says, at every position."""

from __future__ import annotations

import numpy as np
import pytest
from course import moving_figures

pytestmark = [pytest.mark.slow, pytest.mark.once]


@pytest.fixture(scope="module")
def figures():
    return moving_figures("chapter8")


def lines(figure):
    """The x and the y of every line."""
    return [np.array(line.get_data(), dtype=float) for line in figure.axes[0].lines]


def title(figure):
    return figure.axes[0].get_title()


def test_every_slider_is_tested(figures):
    assert set(figures) == {
        "Entry A₁₂:",
        "Height z₂ of the slice:",
        "Entry ζ₂ of the candidate:",
        "Number of points n:",
        "Digits asked of SCS:",
    }


def test_a_matrix_is_in_the_disk_where_its_least_eigenvalue_is_not_negative(figures):
    seen = set()
    for entry, (disk, lowest) in figures["Entry A₁₂:"]:
        radii = np.linalg.norm(disk.axes[0].patches[0].get_xy(), axis=1)
        assert radii == pytest.approx(1.0)
        point = lines(disk)[1][:, 0]
        assert point == pytest.approx([0.5, entry])
        _, computed, formula, here = lines(lowest)
        assert computed == pytest.approx(formula)
        assert here[:, 0] == pytest.approx([entry, 1 - np.linalg.norm(point)])
        inside = np.linalg.norm(point) <= 1
        assert inside == (here[1, 0] >= 0) == title(lowest).endswith(": a metric")
        seen.add(bool(inside))
    assert seen == {True, False}


def test_each_slice_of_the_exponential_cone_is_a_multiple_of_the_slice_at_one(figures):
    for height, (piece, side) in figures["Height z₂ of the slice:"]:
        (unit_x, unit_y), (x, y) = lines(piece)
        assert unit_y == pytest.approx(np.exp(unit_x))
        assert y / height == pytest.approx(np.exp(x / height))  # what is drawn, divided by z2
        assert np.all(np.diff(y, 2) >= -1e-12)  # above a convex curve
        curves = {}
        for line, (z2, least) in zip(side.axes[0].lines, lines(side), strict=True):
            if len(z2) > 1:
                curves[line.get_color()] = z2, least, float(line.get_label().split()[-1])
            else:
                _, _, z1 = curves[line.get_color()]
                assert [z2[0], least[0]] == pytest.approx([height, height * np.exp(z1 / height)])
        for z2, least, z1 in curves.values():
            assert least == pytest.approx(z2 * np.exp(z1 / z2))
            assert np.all(np.diff(least, 2) >= -1e-12)
            near_zero = least[0]  # at the smallest z2 that is drawn
            assert near_zero > 6 if z1 > 0 else near_zero < 0.03


def test_a_candidate_is_in_the_dual_cone_where_its_least_product_is_not_negative(figures):
    seen = set()
    for entry, (piece, product) in figures["Entry ζ₂ of the candidate:"]:
        (x, y), point = lines(piece)
        assert point[:, 0] == pytest.approx([entry, 1.0])
        assert np.exp(-1) == pytest.approx(y * np.exp(x))  # -zeta1 e^(zeta2/zeta1) = e zeta3
        _, (z1, values), least = lines(product)
        assert values - (entry - z1) == pytest.approx(np.exp(z1))
        assert np.min(values) == pytest.approx(least[1, 0], abs=1e-6)
        inside = np.interp(entry, x, y) <= 1.0
        assert inside == (np.min(values) >= 0) == ("not" not in title(piece))
        seen.add(bool(inside))
    assert seen == {True, False}


def test_rows_and_variables_grow_linearly_in_the_number_of_pairs(figures):
    m = 4
    half = m * (m + 1) // 2
    for n, (rows, variables) in figures["Number of points n:"]:
        for figure, slopes, starts in (
            (rows, (7, 6), (half, half)),
            (variables, (3, 3), (half, 0)),
        ):
            drawn = lines(figure)
            for k, (slope, start) in enumerate(zip(slopes, starts, strict=True)):
                (pairs, counts), here = drawn[2 * k], drawn[2 * k + 1][:, 0]
                assert list(counts) == list(slope * pairs + start)
                assert list(here) == [n * (n - 1) / 2, slope * n * (n - 1) / 2 + start]
            assert np.all(drawn[2][1] < drawn[0][1])  # the dual is smaller
        assert set(lines(variables)[4][1]) == {half}


def test_a_value_below_the_optimum_has_a_matrix_that_is_no_metric(figures):
    for digits, (judged, signs) in figures["Digits asked of SCS:"]:
        (asked, proved), (_, residuals), (at, _) = lines(judged)
        assert set(at) == {digits}
        assert list(asked) == [position for position, _ in figures["Digits asked of SCS:"]]
        assert proved[0] > 5 * residuals[0]
        assert proved[-1] < proved[0] / 100
        _, (_, above), (_, least), (at, _) = lines(signs)
        assert set(at) == {digits}
        assert np.any(above < -1e-9)
        assert np.all(least[above < -1e-9] < 0)
