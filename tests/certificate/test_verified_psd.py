"""Evidence: proofs of positive definiteness, against exact arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from flint import arb, ctx
from high_precision import BITS, exact, is_positive_definite, log_det, rounded

from seraph_cvx.proof.rounding import gamma
from seraph_cvx.proof.verified_psd import (
    _shifted_cholesky,
    dominating_root,
    is_proven_positive_definite,
    log_determinant_bounds,
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


def of_signs(k, columns):
    """FF', where the sizes of F are far above those of FF'."""
    F = np.tril(np.random.default_rng(0).choice([-1.0, 1.0], (k, k)))
    F[:, columns:] = 0.0
    np.fill_diagonal(F, 1.0)
    return F @ F.T


@pytest.mark.parametrize("shift", [-1e-14, 1e-14, 1e4])
@pytest.mark.parametrize("size", [1.0, 1e6])
def test_what_a_factor_leaves_out_is_no_more_than_is_said(size, shift):
    """Nor could it be if all roundings of the product went one way."""
    rng, shift = np.random.default_rng(0), shift * size
    squares = ((X := rng.random((k, k))) @ X.T + np.eye(k) for k in [*range(1, 7)] * 5)
    for matrix in [*squares, of_signs(100, 10)]:
        B, k = size * matrix, len(matrix)
        F, bound = _shifted_cholesky(B, np.abs(B).sum(axis=1), shift)
        left_out = exact(B) + exact(shift * np.eye(k)) - exact(F) * exact(F).transpose()
        assert max(sum(map(abs, row), arb(0)) for row in left_out.tolist()) <= bound
        assert gamma(k) * np.max(np.sum(np.abs(F) @ np.abs(F).T, axis=1)) <= bound


def test_a_factor_that_is_wrong_proves_nothing(monkeypatch):
    monkeypatch.setattr(np.linalg, "cholesky", np.zeros_like)
    B = np.array([[1.0, 2.0], [2.0, 1.0]])
    assert 3.0 <= _shifted_cholesky(B, np.full(2, 3.0), 0.0)[1] < 3.1
    assert not is_proven_positive_definite(B, np.zeros(2))
    assert dominating_root(B, np.zeros(2)) is None


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
    assert is_proven_positive_definite(np.eye(2), np.array([0.0, 1.0 - 1e-14]))
    beside = np.array([[1.0, 1.5 * 2.0**-50], [1.5 * 2.0**-50, 1.0]])
    assert not is_proven_positive_definite(beside, np.full(2, 1.0 - 2.0**-50))


@pytest.mark.parametrize("share", [1e-15, 0.1])
@pytest.mark.parametrize("seed", range(20))
def test_a_dominating_root_dominates(seed, share):
    """SS' - G - diag(error) is positive definite with 240 digits, and small."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, 6))
    X = rng.normal(size=(k, 1 + int(rng.integers(0, 4)))) * 10.0 ** rng.uniform(-5, 5, (k, 1))
    G = X @ X.T
    error = share * np.diag(G)
    S = exact(dominating_root(G, error))
    excess = S * S.transpose() - exact(G) - exact(np.diag(error))
    assert is_positive_definite(excess)
    assert np.all(np.diag(rounded(excess)) < 1e-11 * np.diag(G))


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("share", [1e-9, 0.3, 0.45])
def test_a_log_determinant_is_bounded_for_every_error(share, size):
    """Of a number, so that the bounds are sharp but for second order and what covers it."""
    error = share * size
    least, most = log_determinant_bounds(np.array([[size]]), np.array([[error]]))
    assert least <= (arb(size) - error).log()
    assert most >= (arb(size) + error).log()
    assert most - least <= 2.2 * share / (1.0 - share)


@pytest.mark.parametrize("seed", range(20))
def test_a_log_determinant_is_bounded_where_its_terms_or_products_are_rounded(seed):
    """Logarithms that cancel but for their errors; or that vanish, though B is not quite FF'."""
    rng = np.random.default_rng(seed)
    x, a = 10.0 ** rng.uniform(250, 300), rng.uniform(1.0, 30.0)
    for B in (np.diag([x, 1.0 / x]), np.array([[1.0, a], [a, 1.0 + a * a]])):
        least, most = log_determinant_bounds(B, np.zeros((2, 2)))
        assert least <= log_det(exact(B)) <= most


@pytest.mark.parametrize(
    ("matrix", "error"),
    [([[1.0]], [[1.2]]), ([[1.0]], [[np.nan]]), (np.ones((2, 2)), np.zeros((2, 2)))],
)
def test_a_matrix_that_may_be_singular_has_no_log_determinant(matrix, error):
    assert log_determinant_bounds(np.array(matrix), np.array(error)) is None


def test_an_inverse_that_is_wrong_is_allowed_for_or_refused(monkeypatch):
    """By 0.3; then by 0.25 in each entry of a column or of a row, whose sum is above 1/2."""
    inverse, column = np.linalg.inv, 0.25 * np.eye(3)[:1].T * np.ones(3)
    monkeypatch.setattr(np.linalg, "inv", lambda F: 0.7 * inverse(F))
    least, most = log_determinant_bounds(np.eye(1), np.full((1, 1), 0.2))
    assert least <= arb(0.8).log()
    assert most >= arb(1.2).log()
    for wrong in (column, column.T):
        monkeypatch.setattr(np.linalg, "inv", lambda F, wrong=wrong: inverse(F) + wrong)
        assert log_determinant_bounds(np.eye(3), np.zeros((3, 3))) is None
