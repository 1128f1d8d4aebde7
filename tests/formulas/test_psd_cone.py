"""Evidence: the matrix tools of the cone against their definitions, and errors at their limits."""

from __future__ import annotations

import numpy as np
import pytest
from instances import random_psd

from seraph_cvx.numerics.psd_cone import (
    check_metric,
    factor,
    numerical_rank,
    project,
    shrink,
    whiten,
)


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def test_closed_form_projection_splits_a_matrix_into_orthogonal_parts(rng):
    """Moreau: A = P - N with P, N PSD and <P, N> = 0, and only then is P the projection."""
    A = rng.normal(size=(5, 5))
    A = A + A.T
    P = project(A)
    assert np.linalg.eigvalsh(P)[0] >= -1e-12
    assert np.linalg.eigvalsh(P - A)[0] >= -1e-12
    assert abs(np.vdot(P, P - A)) <= 1e-12 * np.vdot(A, A)
    assert 0 < numerical_rank(P) < 5
    projected = project(np.diag([3.0, 0.5, 0.0, -1.0]))
    np.testing.assert_allclose(projected, np.diag([3.0, 0.5, 0.0, 0.0]), atol=1e-15)
    for its_own in (np.diag([2.0, 0.0]), np.eye(3), np.zeros((0, 0))):
        assert project(its_own) is its_own


def test_closed_form_factor_has_the_widest_axis_first_and_a_positive_leading_entry(rng):
    A = random_psd(rng, 5, size=9.0, rank=3)
    L = factor(A)
    np.testing.assert_allclose(L.T @ L, A, atol=1e-12)
    assert np.all(np.diff(np.linalg.norm(L, axis=1)) <= 1e-9)
    leading = L[np.arange(5), np.argmax(np.abs(L), axis=1)]
    assert np.all(leading[:3] > 0.0)
    np.testing.assert_array_equal(factor(A, 2), L[:2])
    for size in (0, 2):
        np.testing.assert_array_equal(factor(np.zeros((size, size))), np.zeros((size, size)))
    rounded = factor(np.diag([4.0, -1e-13]))  # what rounding made negative
    np.testing.assert_allclose(rounded, [[2.0, 0.0], [0.0, 0.0]])


@pytest.mark.parametrize("size", [1e-6, 50.0])
@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_closed_form_shrinking_keeps_the_mean_squared_distance(share, size, rng):
    A, C = random_psd(rng, 4), random_psd(rng, 4, size=size, rank=4)
    shrunk = shrink(A, share, C)
    assert np.vdot(shrunk, C) == pytest.approx(np.vdot(A, C), rel=1e-12)
    identity_part = shrunk - (1.0 - share) * A
    np.testing.assert_allclose(identity_part, identity_part[0, 0] * np.eye(4), atol=1e-14)
    np.testing.assert_allclose(shrink(A, 0.5, np.zeros((4, 4))), 0.5 * A)  # no points differ


def test_closed_form_shrinking_a_metric_that_sees_none_of_the_spread():
    """<A, C> is zero, and by rounding below it: the metric stays PSD."""
    v, w = np.array([51.0, 23.0]), np.array([-23.0, 51.0])
    for sign in (1.0, -1.0):
        A = np.outer(w, w) * (1.0 + sign * 1e-15 * (1.0 - np.eye(2)))
        assert np.all(np.diag(shrink(A, 1.0, np.outer(v, v))) >= 0.0)


@pytest.mark.parametrize("share", [-1e-9, 1.0 + 1e-9, float("nan")])
def test_failure_path_a_share_is_between_0_and_1(share):
    with pytest.raises(ValueError, match=r"identity_share=.* must be in \[0, 1\]"):
        shrink(np.eye(2), share, np.eye(2))


def test_closed_form_rank_counts_eigenvalues_above_the_tolerance():
    A = np.diag([10.0, 2e-7, 0.9e-7, 0.0])
    ranks = [numerical_rank(A, *tolerance) for tolerance in ([], [1e-3], [1e-10])]
    assert ranks == [2, 1, 3]
    others = [numerical_rank(B) for B in (1e-9 * A, np.zeros((2, 2)), -np.eye(2))]
    assert others == [2, 0, 0]


RNG = np.random.default_rng(7)
GAUSSIAN, PLANE, R = RNG.normal(size=(6, 3)), RNG.normal(size=(6, 2)), random_psd(RNG, 4, rank=4)
FREE = RNG.normal(size=4)
NOT_ALONG = R - np.outer(R @ FREE, R @ FREE) / (FREE @ R @ FREE)


def nearly_collinear(share):
    return np.array([[1.0, 1.0], [-1.0, -1.0], [share, -share], [-share, share]])


@pytest.mark.parametrize(
    ("points", "penalty", "rank", "tolerance"),
    [
        (GAUSSIAN, np.eye(3), 3, 1e-9),
        (GAUSSIAN * [1e-6, 1.0, 1e6], np.eye(3), 3, 1e-9),
        (PLANE @ RNG.normal(size=(2, 4)), R, 2, 1e-9),
        (PLANE @ RNG.normal(size=(2, 4)), np.zeros((4, 4)), 2, 1e-9),
        (PLANE @ np.eye(2, 4), R, 2, 1e-9),  # constant features
        (np.zeros((3, 2)), np.eye(2), 0, 1e-9),
        (nearly_collinear(1e-5), np.eye(2), 2, 1e-5),  # summed along the faint direction itself
        (nearly_collinear(1e-9), np.eye(2), 2, 1e-5),
        (nearly_collinear(1e-12), np.eye(2), 1, 1e-5),
    ],
)
def test_closed_form_whitening(points, penalty, rank, tolerance):
    """T'CT = I on the range of C; R is no multiple of I: T is R-orthogonal to the null space."""
    T = whiten(points.T @ points, penalty, lambda T: (points @ T).T @ (points @ T))
    assert T.shape == (points.shape[1], rank)
    Z, null = points @ T, np.linalg.svd(points)[2][rank:].T
    np.testing.assert_allclose(Z.T @ Z, np.eye(rank), atol=tolerance)
    size = np.max(np.abs(penalty @ T), initial=0.0)
    assert np.max(np.abs(null.T @ penalty @ T), initial=0.0) <= 1e-9 * size


def test_closed_form_whitening_leaves_out_what_is_only_rounding():
    C = np.diag([4.0, -1e-20])
    T = whiten(C, np.eye(2), lambda T: T.T @ C @ T)
    np.testing.assert_allclose(np.abs(T), [[0.5], [0.0]])  # an eigenvector has no sign


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
def test_closed_form_the_regularizer_counts_whatever_its_unit(unit):
    """It is zero along one axis of the null space, but for rounding: nothing is bent that way."""
    points = PLANE @ np.linalg.svd(FREE[None])[2][1:3]  # FREE is in the null space
    C, null = points.T @ points, np.linalg.svd(points)[2][2:].T
    T, same = (
        whiten(C, weight * NOT_ALONG, lambda T: (points @ T).T @ (points @ T))
        for weight in (unit, 1.0)
    )
    np.testing.assert_allclose(T, same, rtol=1e-9, atol=1e-9)
    bent = null.T @ NOT_ALONG @ T
    np.testing.assert_allclose(bent, 0.0, atol=1e-9 * np.abs(NOT_ALONG @ T).max())


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.eye(3), r"start has shape \(3, 3\).* 2 features.* 2 x 2"),
        ([[1.0, np.nan], [np.nan, 1.0]], "start holds NaN or infinity"),
        ([[1.0, np.inf], [np.inf, 1.0]], "start holds NaN or infinity"),
        ([[-1.0, 0.0], [0.0, 1.0]], r"not positive semidefinite .* -1\)"),
        ([[0.0, 1.0], [1.0, 0.0]], "not positive semidefinite"),
        ([[0.0, 1e-200], [0.0, 1.0]], "not symmetric"),
        ([[1e308, 0.0], [0.0, 1.0]], "too large"),
    ],
)
def test_failure_path_what_is_no_metric_is_named(matrix, message):
    """A zero on the diagonal forgives nothing beside it."""
    with pytest.raises(ValueError, match=message):
        check_metric(matrix, 2, "start")


@pytest.mark.parametrize("unit", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("other", [1e-3, 1e3])
def test_failure_path_asymmetry_and_negative_eigenvalues_whatever_the_units(unit, other):
    units = np.outer([unit, unit * other], [unit, unit * other])
    shapes = np.array([[[0.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]])
    lopsided, indefinite = (np.array([[1.0, 0.5], [0.5, 1.0]]), np.ones((2, 2))) + 0.5e-9 * shapes
    found = check_metric(lopsided * units, 2)
    np.testing.assert_array_equal(found, (lopsided * units + (lopsided * units).T) / 2)
    repaired = check_metric(indefinite * units, 2) / units
    assert np.linalg.eigvalsh(repaired)[0] >= -1e-14  # scaled there and back, by rounding
    np.testing.assert_allclose(repaired, np.ones((2, 2)), rtol=1e-8)
    with pytest.raises(ValueError, match="A is not symmetric"):
        check_metric((lopsided + 3.5e-9 * shapes[0]) * units, 2)
    with pytest.raises(ValueError, match=r"A is not positive semidefinite .* -4e-09"):
        check_metric((indefinite + 3.5e-9 * shapes[1]) * units, 2)


def test_a_metric_is_copied(rng):
    A = random_psd(rng, 3, rank=3)
    checked = check_metric(A, 3)
    A[0, 0] = 99.0
    assert checked[0, 0] != 99.0
    with pytest.raises(ValueError, match="read-only"):
        checked[0, 0] = 99.0
