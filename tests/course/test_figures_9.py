"""Evidence: the pictures of chapter 9 show what it claims, at every position of their sliders."""

from __future__ import annotations

import numpy as np
import pytest
from course import moving_figures

from seraph_cvx import MStepObjective, PairSet, solve_m_step

pytestmark = [pytest.mark.slow, pytest.mark.once]

PARABOLA = "Curvature of the parabola, as a multiple of ℓ:"
GRADIENT = "Steps of projected gradient:"
FISTA = "Steps of FISTA:"
ADMM = "Penalty κ:"
COLUMNS = "Columns of L, ρ:"


def drawn(figure):
    """The values of each curve of a picture."""
    return [np.asarray(line.get_ydata(), dtype=float) for line in figure.axes[0].lines]


@pytest.fixture(scope="module")
def first_bound():
    """What the theorems say of the first step, by the package: ell |A_0 - C|^2 / 2."""
    moving_figures("chapter9")  # puts the folder of the lecture on the path
    from lecture import some_irises

    objective = MStepObjective(PairSet.from_labels(*some_irises(every=5, standardized=True)))
    best = solve_m_step(objective, tol=1e-10).metric
    return objective.smoothness_bound * np.sum((best - np.eye(4)) ** 2) / 2


def test_these_are_all_the_pictures():
    assert set(moving_figures("chapter9")) == {PARABOLA, GRADIENT, FISTA, ADMM, COLUMNS}


def test_parabola_is_above_f_for_every_curvature_from_ell_on_and_not_for_a_small_one():
    for multiple, (curve, room) in moving_figures("chapter9")[PARABOLA]:
        f, parabola = drawn(curve)
        difference = drawn(room)[1]
        assert np.allclose(difference, parabola - f)
        assert f[0] == parabola[0]
        assert f[1] < f[0]
        if multiple >= 1:
            assert np.min(difference) >= -1e-9
        if multiple <= 0.25:
            assert np.min(difference) < -1
        assert ("not above" in curve.axes[0].get_title()) == (np.min(difference) < -1e-9)


def test_projected_gradient_is_never_above_its_bound_and_never_further_away(first_bound):
    for step, (rate, closer) in moving_figures("chapter9")[GRADIENT]:
        steps = rate.axes[0].lines[0].get_xdata()
        bound, error, marked = drawn(rate)
        assert len(steps) > 50
        assert step in steps
        assert np.allclose(bound, first_bound / steps, rtol=1e-5)
        assert np.all((error > 0) & (error <= bound))
        assert np.all(np.diff(error) <= 1e-10)
        assert np.all(np.diff(drawn(closer)[0]) <= 1e-10)
        assert marked[0] == error[list(steps).index(step)] <= marked[1]


def test_fista_is_never_above_its_bound_and_its_potential_never_rises(first_bound):
    for step, (rates, falls) in moving_figures("chapter9")[FISTA]:
        steps = np.asarray(rates.axes[0].lines[2].get_xdata())
        plain_bound, plain, bound, error, marked = drawn(rates)
        assert np.allclose(bound, 4 * first_bound / (steps + 1) ** 2, rtol=1e-5)
        assert np.all((error > 0) & (error <= bound))
        assert np.all(plain <= plain_bound)
        assert error[-1] < 1e-3 * plain[-1]
        potential = drawn(falls)[0]
        assert np.all(np.diff(potential) <= 1e-8 * potential[0])
        assert np.any(np.diff(error) > 0)  # f itself does rise
        assert marked[0] == error[list(steps).index(step)] <= marked[1]


def test_admm_is_proved_to_converge_and_a_small_residual_is_not_a_small_gap():
    worst = 0.0
    for kappa, (says, is_true) in moving_figures("chapter9")[ADMM]:
        limit, constraint, multiplier, marked = drawn(says)
        _, proved, true, gap_there = drawn(is_true)
        (asked,) = set(limit)
        assert np.all(marked <= asked)  # both residuals are small where the dots are, ...
        steps = list(says.axes[0].lines[1].get_xdata())
        at = steps.index(says.axes[0].lines[3].get_xdata()[0])
        assert marked.tolist() == [constraint[at], multiplier[at]]
        assert np.all(np.maximum(constraint, multiplier)[:at] > asked)  # ... and not before
        assert gap_there[0] == proved[at]
        assert np.all(proved >= true - 1e-13)
        assert proved[-1] < proved[0] / 10
        if kappa == 1:
            assert proved[-1] < 1e-9
        worst = max(worst, true[at] / asked)
    assert worst > 5  # the true gap, not only the proved one, is many times what was asked for


def test_one_column_gets_stuck_and_as_many_columns_as_features_do_not():
    for rho, (values, signs) in moving_figures("chapter9")[COLUMNS]:
        above, refuted = drawn(values)
        _, least = drawn(signs)
        stuck = above > 1e-3
        assert np.array_equal(above[stuck], refuted)
        assert np.all(above[stuck] > 1)
        assert np.all(least[stuck] < -1)  # the gradient gives it away
        assert np.all(least[~stuck] > -1e-4)
        assert np.all(above[~stuck] < 1e-7)
        assert np.any(stuck) == (rho == 1)
