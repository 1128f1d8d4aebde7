"""Evidence: the moving pictures of chapter 7 show what its text says, at every position."""

from __future__ import annotations

import numpy as np
import pytest
from course import moving_figures

pytestmark = [pytest.mark.slow, pytest.mark.once]

LAGRANGIAN = "Multiplier ζ:"
VALUE_SET = "Multiplier, the slope of the line is −ζ:"
JUMP = "δ, in place of the 0 in (a):"
RUNAWAY = "λ of the metric that is judged:"


@pytest.fixture(scope="module")
def figures():
    return moving_figures("chapter7")


def line(figure, number):
    return tuple(np.asarray(part, dtype=float) for part in figure.axes[0].lines[number].get_data())


def labelled(figure, label):
    (found,) = (each for each in figure.axes[0].lines if each.get_label() == label)
    return tuple(np.asarray(part, dtype=float) for part in found.get_data())


def test_every_picture_has_its_test(figures):
    assert set(figures) == {LAGRANGIAN, VALUE_SET, JUMP, RUNAWAY}


def test_minimum_of_the_lagrangian_never_exceeds_the_optimum(figures):
    bounds = {}
    for zeta, (lagrangian, dual) in figures[LAGRANGIAN]:
        z, cost = labelled(lagrangian, "g(z)")
        _, priced = labelled(lagrangian, "Λ(z, ζ)")
        _, optimum = labelled(lagrangian, "optimum")
        best, bound = (part.item() for part in line(lagrangian, -1))
        feasible = z <= 1
        assert optimum[0] == pytest.approx(np.min(cost[feasible]), abs=1e-9)
        assert np.all(priced[feasible] <= cost[feasible] + 1e-12)
        assert np.all(priced >= bound - 1e-12)  # the dot is the minimum of the curve
        assert np.interp(best, z, priced) == pytest.approx(bound, abs=1e-3)
        assert bound <= optimum[0] + 1e-12
        *lines, (zetas, values), (_, top), (at, height) = (
            each.get_data() for each in dual.axes[0].lines
        )
        assert (at[0], height[0]) == (zeta, bound)
        assert len(lines) == 15
        for where, affine in lines:
            assert np.array_equal(where, zetas)
            assert np.ptp(np.diff(affine)) < 1e-9  # affine in the multiplier
            assert np.all(affine >= values - 1e-12)
        assert np.all(np.diff(values, 2) < 0)  # their infimum is concave
        assert np.max(values) <= top[0] + 1e-12
        assert np.interp(zeta, zetas, values) == pytest.approx(bound, abs=1e-9)
        bounds[zeta] = bound
    assert max(bounds, key=bounds.get) == 2.0
    assert bounds[2.0] == pytest.approx(1.0)


def test_line_lies_below_the_value_set_and_reaches_the_optimum_only_with_slater(figures):
    gaps = {0: {}, 1: {}}
    for zeta, both in figures[VALUE_SET]:
        for number, figure in enumerate(both):
            chi, least = line(figure, 0)
            where, height = line(figure, 1)
            (_, optimum), (_, bound) = labelled(figure, "optimum"), labelled(figure, "D(ζ)")
            assert np.diff(height) / np.diff(where) == pytest.approx(-zeta)
            assert np.interp(0, where, height) == pytest.approx(bound.item())
            below = least - np.interp(chi, where, height)
            assert np.min(below) > -1e-9
            assert np.min(below) < 1e-3  # and it touches
            assert np.interp(0, chi, least) == pytest.approx(optimum.item(), abs=1e-9)
            assert np.all(np.diff(least, 2) > -1e-9)  # the value set is convex
            gaps[number][zeta] = (optimum - bound).item()
            assert figure.axes[0].get_title().startswith(("Slater", "No Slater")[number])
    assert min(gaps[0].values()) == pytest.approx(0, abs=1e-12)
    assert gaps[0][2.0] == pytest.approx(0, abs=1e-12)
    without = [gaps[1][zeta] for zeta in sorted(gaps[1])]
    assert min(without) > 0
    assert np.all(np.diff(without) < 0)


def test_perturbed_optimum_is_proved_to_be_0_and_escapes(figures):
    heights = []
    for delta, (feasible, values) in figures[JUMP]:
        z, edge = line(feasible, 0)
        for first, second in zip(z, edge, strict=True):
            half = (1 - first) / 2
            matrix = np.array([[first, 0, 0], [0, delta, half], [0, half, second]])
            assert abs(np.linalg.det(matrix[1:, 1:])) < 1e-9
            assert np.linalg.eigvalsh(matrix)[0] > -1e-9
        x, y = labelled(feasible, "optimum")
        assert x.item() == 0
        assert np.interp(0, z, edge) == pytest.approx(y.item())
        low, high = feasible.axes[0].get_ylim()
        assert low < y.item() < high
        heights.append(y.item())
        deltas, lower = line(values, 0)
        _, upper = labelled(values, "proved, δ > 0")
        assert list(deltas) == [step for step, _ in figures[JUMP]]
        assert np.all((lower <= 0) & (upper >= 0))
        assert np.all((lower > -0.01) & (upper < 0.01))
        assert labelled(values, "at δ = 0")[1][0] == 1
        at, ends = line(values, -1)
        assert np.all(at == delta)
        k = list(deltas).index(delta)
        assert list(ends) == [lower[k], upper[k]]
    assert np.all(np.diff(heights) > 0)
    assert heights[-1] > 100 * heights[0]


def test_metrics_run_away_and_each_encloses_the_infimum(figures):
    for weight, (length, bounds) in figures[RUNAWAY]:
        weights, traces = line(length, 0)
        assert np.all(np.diff(weights) < 0)
        assert np.all(np.diff(traces) > 0)
        assert traces[-1] > 100 * traces[0]
        _, high = labelled(bounds, "f(A)")
        _, low = labelled(bounds, "D(p)")
        assert np.max(low) <= np.min(high)
        cost_of_the_similar_pair = np.log1p(np.exp(-1.0))  # at distance 0; f is above it
        assert np.all(low <= cost_of_the_similar_pair)
        assert np.all(high >= cost_of_the_similar_pair)
        assert np.all(np.diff(high - low) < 0)
        assert (high - low)[-1] < 0.01
        k = list(weights).index(weight)
        at, ends = line(bounds, 2)
        assert np.all(at == weight)
        assert list(ends) == [low[k], high[k]]
        bottom, top = bounds.axes[0].get_ylim()
        assert bottom < np.min(low)
        assert np.max(high) < top
