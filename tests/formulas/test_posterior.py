"""Evidence: the functions of the score against their definitions in 450 digits, and far out."""

from decimal import Decimal, localcontext

import numpy as np
import pytest

from seraph_cvx.model import posterior
from seraph_cvx.model.posterior import LOGISTIC

SHARPNESS = 1.7

SCORES = np.array([-900.0, -37.5, -3.0, -1e-9, 0.0, 1e-9, 0.4, 3.0, 37.5, 900.0])


def in_decimals(formula, values=SCORES):
    """`formula` at each value, computed in 450 digits and rounded once."""
    with localcontext() as context:
        context.prec = 450
        return [float(formula(Decimal(value))) for value in values.tolist()]


def sigma(x):
    return 1 / (1 + (-x).exp())


def entropy(p):
    return -sum(x * x.ln() for x in (p, 1 - p) if x > 0)


def surprise(s):
    return -sigma(s).ln()


def sharpened_label(s):
    return sigma(-Decimal(SHARPNESS) * s)


def sharpened(s, a):
    """min over q of E_q(-ln p) - H(q)/a is reached at q = sigma(-a s)."""
    a = Decimal(a)
    q = sigma(-a * s)
    return q * surprise(-s) + (1 - q) * surprise(s) - entropy(q) / a


@pytest.mark.parametrize(
    ("function", "formula"),
    [
        (posterior.posterior_similar, lambda s: sigma(-s)),
        (posterior.LOGISTIC.value, surprise),
        (posterior.EntropyLoss().value, lambda s: entropy(sigma(s))),
        (posterior.EntropyLoss().slope, lambda s: -s * sigma(s) * sigma(-s)),
        (lambda s: posterior.posterior_similar(SHARPNESS * s), sharpened_label),
        (posterior.SharpenedLoss(1.7).value, lambda s: sharpened(s, 1.7)),
        (posterior.SharpenedLoss(0.6).value, lambda s: sharpened(s, 0.6)),
    ],
)
def test_closed_form_in_decimals(function, formula):
    np.testing.assert_allclose(function(SCORES), in_decimals(formula), rtol=1e-12, atol=1e-300)


def test_closed_form_binary_entropy_in_decimals():
    p = np.array([0.0, 1e-300, 1e-9, 0.3, 0.5, 1.0 - 1e-9, 1.0])
    found, rounding_of_q = posterior.binary_entropy(p), 2.0**-52  # -ln q is q's distance from 1
    np.testing.assert_allclose(found, in_decimals(entropy, p), rtol=1e-13, atol=rounding_of_q)


@pytest.mark.parametrize("threshold", [0.5, 20.0, 599.0, 601.0, 5000.0])
@pytest.mark.parametrize("size", [1, 127, 128, 129, 700])
def test_formulas_agree_products_of_factors_with_one_logarithm_per_pair(threshold, size):
    """However few factors a product may have before it overflows."""
    d = np.random.default_rng(size).exponential(2.0 * threshold, size)
    d[0] = 0.0
    s = d - threshold
    found = LOGISTIC.sums(s.copy())
    assert found.total == pytest.approx(float(np.sum(posterior.LOGISTIC.value(s))), rel=1e-12)
    np.testing.assert_allclose(
        found.slope, -posterior.posterior_similar(s), rtol=1e-12, atol=1e-120
    )
