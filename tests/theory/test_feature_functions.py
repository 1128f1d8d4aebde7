"""Evidence: which features of the distance keep the M-step convex.

Closed forms, derivatives by differences, both directions of the criterion (property-based).
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import expit

from seraph_cvx.theory.feature_claims import (
    CONCAVE,
    CONVEX,
    LOG_CONCAVE,
    curvature,
    loss_curvatures,
    losses,
    second_differences,
    slope,
)

D = np.linspace(0.02, 8.0, 300)


@pytest.mark.parametrize(
    ("name", "similar", "dissimilar"),
    [
        ("exponential", D + 0.1, -np.log(1.0 - np.exp(-D - 0.1))),
        ("probit", -stats.norm.logsf(D - 1.0), -stats.norm.logcdf(D - 1.0)),
    ],
)
def test_closed_form_of_the_losses(name, similar, dissimilar):
    near, far = losses(LOG_CONCAVE[name](D))
    np.testing.assert_allclose(near, similar, rtol=1e-9)
    np.testing.assert_allclose(far, dissimilar, rtol=1e-9, atol=1e-15)


@given(
    weights=st.tuples(st.floats(0.05, 5.0), st.floats(-3.0, 3.0), st.floats(-4.0, 2.0)),
    sharpness=st.floats(0.1, 4.0),
    center=st.floats(0.0, 4.0),
)
def test_property_criterion_says_where_a_loss_is_convex(weights, sharpness, center):
    """Features that are increasing or not, convex, concave or neither."""

    def feature(d):
        return np.tensordot(weights, [d, np.tanh(sharpness * (d - center)), d**0], axes=1)

    d = np.linspace(0.1, 6.0, 60)
    s, first, second = feature(d), slope(feature, d), curvature(feature, d)
    measured = second_differences(feature, d)
    np.testing.assert_allclose(measured, loss_curvatures(feature, d), rtol=1e-3, atol=1e-3)
    halves = np.stack([second + first**2 * expit(-s), first**2 * expit(s) - second])
    clear = np.abs(measured) > 1e-4
    assert np.all((halves >= 0.0)[clear] == (measured >= 0.0)[clear])


@pytest.mark.parametrize("feature", LOG_CONCAVE.values(), ids=LOG_CONCAVE)
def test_both_losses_of_a_log_concave_feature_are_convex(feature):
    """And so is (11), which adds them up at distances that are linear in A."""
    assert np.diff(losses(feature(D)), 2).min() > -1e-12


OTHERS = CONVEX | CONCAVE


@pytest.mark.parametrize("feature", OTHERS.values(), ids=OTHERS)
def test_m_step_is_not_convex_with_the_other_features(feature):
    """One pair on a line is enough, as the proof says."""
    left, middle, right = losses(feature(np.array([0.05, 0.3, 0.55]))).T
    assert np.max(middle - (left + right) / 2.0) > 1e-3


LOG_CONCAVE_DENSITIES = [
    *(family(1.0) for family in (stats.norm, stats.logistic, stats.gumbel_r, stats.gumbel_l)),
    *(stats.laplace(1.0), stats.gamma(2.0), stats.weibull_min(1.5), stats.expon(-0.1)),
]


@pytest.mark.parametrize(
    ("density", "serves"),
    [
        *((density, True) for density in LOG_CONCAVE_DENSITIES),
        *((density, False) for density in (stats.lognorm(1.0), stats.fisk(1.0))),
    ],
    ids=lambda value: value if isinstance(value, bool) else value.dist.name,
)
def test_distribution_function_of_a_log_concave_density_serves(density, serves):
    """A log-concave distribution function alone does not suffice."""
    d = np.linspace(0.01, 5.0, 500)
    assert np.diff(-density.logcdf(d), 2).min() > -1e-12
    least = np.diff(-density.logsf(d), 2).min()
    assert least > -1e-12 if serves else least < -1e-6
