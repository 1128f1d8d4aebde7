"""Evidence: proofs of positive definiteness, against exact arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from flint import ctx
from high_precision import BITS, exact, is_positive_definite, rounded

from seraph_cvx.numerics.verified_psd import (
    dominating_root,
    is_proven_positive_definite,
    power_of_two_scale,
)


@pytest.fixture(autouse=True)
def _many_bits():
    with ctx.workprec(BITS):
        yield


def nearly_singular(rng, k, smallest):
    Q = np.linalg.qr(rng.normal(size=(k, k)))[0]
    scale = 10.0 ** rng.uniform(-6, 6, k)
    eigenvalues = np.concatenate([[smallest], 10.0 ** rng.uniform(-3, 0, k - 1)])
    B = (Q * eigenvalues) @ Q.T * scale[:, None] * scale
    return (B + B.T) / 2.0


@pytest.mark.parametrize("seed", range(60))
def test_nothing_is_proven_that_is_not_true(seed):
    """Smallest eigenvalues around the rounding error, of either sign."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, 7))
    smallest = rng.choice([-1.0, 1.0]) * 10.0 ** rng.uniform(-18, -12)
    B = nearly_singular(rng, k, smallest)
    error = 10.0 ** rng.uniform(-18, -13) * np.diag(B) * (seed % 2)
    if is_proven_positive_definite(B, error):
        assert is_positive_definite(exact(B) - exact(np.diag(error)))


def test_what_is_clearly_definite_is_proven_whatever_its_scale():
    for seed in range(40):
        rng = np.random.default_rng(seed)
        B = nearly_singular(rng, int(rng.integers(2, 40)), smallest=1e-9)
        assert is_proven_positive_definite(B, 1e-12 * np.diag(B))


@pytest.mark.parametrize(
    "matrix",
    [np.ones((2, 2)), [[0.0]], [[-1.0]], [[1.0, 2.0], [2.0, 1.0]], [[np.nan]], [[np.inf]]],
)
def test_what_is_not_definite_is_not_proven(matrix):
    assert not is_proven_positive_definite(np.array(matrix), np.zeros(len(matrix)))


def test_an_error_as_large_as_the_matrix_leaves_nothing():
    assert is_proven_positive_definite(np.eye(2), np.full(2, 0.99))
    assert not is_proven_positive_definite(np.eye(2), np.array([0.0, 1.0]))
    assert is_proven_positive_definite(np.zeros((0, 0)), np.zeros(0))


def test_scaling_is_by_powers_of_two():
    diagonal = 10.0 ** np.linspace(-300, 300, 50)
    scale = power_of_two_scale(diagonal)
    assert np.all(np.frexp(scale)[0] == 0.5)
    assert np.all((scale * diagonal * scale >= 0.5) & (scale * diagonal * scale < 2.0))


@pytest.mark.parametrize("seed", range(20))
def test_a_dominating_root_dominates(seed):
    """SS' - G - diag(error) is positive definite with 240 digits, and small."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, 6))
    X = rng.normal(size=(k, 1 + int(rng.integers(0, 4)))) * 10.0 ** rng.uniform(-5, 5, (k, 1))
    G = X @ X.T
    error = 1e-15 * np.diag(G)
    S = exact(dominating_root(G, error))
    excess = S * S.transpose() - exact(G) - exact(np.diag(error))
    assert is_positive_definite(excess)
    assert np.all(np.diag(rounded(excess)) < 1e-11 * np.diag(G))


def test_a_matrix_with_a_zero_on_its_diagonal_has_no_root():
    assert dominating_root(np.zeros((1, 1)), np.zeros(1)) is None
    assert dominating_root(np.zeros((0, 0)), np.zeros(0)) is None
