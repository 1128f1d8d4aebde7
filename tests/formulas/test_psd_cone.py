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


def along(C):
    return lambda T: T.T @ C @ T


def points_of_rank_two(rng):
    """Six points in a plane of R^4: their moment, and their moment in other coordinates."""
    X = rng.normal(size=(6, 2)) @ rng.normal(size=(2, 4))
    return X.T @ X, lambda T: (X @ T).T @ (X @ T)


def test_closed_form_projection_splits_a_matrix_into_orthogonal_parts(rng):
    """Moreau: A = P - N with P, N PSD and <P, N> = 0, and only then is P the projection."""
    A = rng.normal(size=(5, 5))
    A = A + A.T
    P = project(A)
    assert np.linalg.eigvalsh(P)[0] >= -1e-12
    assert np.linalg.eigvalsh(P - A)[0] >= -1e-12
    assert abs(np.vdot(P, P - A)) <= 1e-12 * np.vdot(A, A)
    assert 0 < numerical_rank(P) < 5


def test_closed_form_projection_keeps_small_eigenvalues_and_drops_zeros():
    projected = project(np.diag([3.0, 0.5, 0.0, -1.0]))
    np.testing.assert_allclose(projected, np.diag([3.0, 0.5, 0.0, 0.0]), atol=1e-15)


@pytest.mark.parametrize("A", [np.diag([2.0, 0.0]), np.eye(3), np.zeros((0, 0))])
def test_closed_form_a_psd_matrix_is_its_own_projection(A):
    assert project(A) is A


def test_closed_form_factor_has_the_widest_axis_first_and_a_positive_leading_entry(rng):
    A = random_psd(rng, 5, size=9.0, rank=3)
    L = factor(A)
    lengths = np.linalg.norm(L, axis=1)
    np.testing.assert_allclose(L.T @ L, A, atol=1e-12)
    assert np.all(np.diff(lengths) <= 1e-9)
    leading = L[np.arange(5), np.argmax(np.abs(L), axis=1)]
    assert np.all(leading[:3] > 0.0)
    np.testing.assert_array_equal(factor(A, 2), L[:2])
    assert factor(np.zeros((0, 0))).shape == (0, 0)


def test_closed_form_factor_of_zero_and_of_what_rounding_made_negative():
    np.testing.assert_array_equal(factor(np.zeros((2, 2))), np.zeros((2, 2)))
    np.testing.assert_allclose(factor(np.diag([4.0, -1e-13])), [[2.0, 0.0], [0.0, 0.0]])


@pytest.mark.parametrize("size", [1e-6, 50.0])
@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_closed_form_shrinking_keeps_the_mean_squared_distance(share, size, rng):
    A, C = random_psd(rng, 4), random_psd(rng, 4, size=size, rank=4)
    shrunk = shrink(A, share, C)
    assert np.vdot(shrunk, C) == pytest.approx(np.vdot(A, C), rel=1e-12)
    identity_part = shrunk - (1.0 - share) * A
    np.testing.assert_allclose(identity_part, identity_part[0, 0] * np.eye(4), atol=1e-14)


def test_closed_form_shrinking_a_metric_that_sees_none_of_the_spread():
    """<A, C> is zero, and by rounding below it: the metric stays PSD."""
    v, w = np.array([51.0, 23.0]), np.array([-23.0, 51.0])
    A, C = np.outer(w, w), np.outer(v, v)
    for sign in (1.0, -1.0):
        A[0, 1] = A[1, 0] = w[0] * w[1] * (1.0 + sign * 1e-15)
        assert np.all(np.diag(shrink(A, 1.0, C)) >= 0.0)


def test_closed_form_shrinking_where_the_points_do_not_differ(rng):
    A = random_psd(rng, 3)
    np.testing.assert_allclose(shrink(A, 0.5, np.zeros((3, 3))), 0.5 * A)


@pytest.mark.parametrize("share", [-1e-9, 1.0 + 1e-9, float("nan")])
def test_failure_path_a_share_is_between_0_and_1(share):
    with pytest.raises(ValueError, match=r"identity_share=.* must be in \[0, 1\]"):
        shrink(np.eye(2), share, np.eye(2))


def test_closed_form_rank_counts_eigenvalues_above_the_tolerance():
    A = np.diag([10.0, 2e-7, 0.9e-7, 0.0])
    assert numerical_rank(A) == 2
    assert numerical_rank(A, 1e-3) == 1
    assert numerical_rank(A, 1e-10) == 3
    assert numerical_rank(np.zeros((2, 2))) == 0
    assert numerical_rank(-np.eye(2)) == 0
    assert numerical_rank(1e-9 * A) == 2


@pytest.mark.parametrize("scales", [(1.0, 1.0, 1.0), (1e-6, 1.0, 1e6)])
def test_closed_form_whitened_moment_is_the_identity(scales, rng):
    C = random_psd(rng, 3, rank=3) * np.outer(scales, scales)
    T = whiten(C, np.eye(3), along(C))
    np.testing.assert_allclose(T.T @ C @ T, np.eye(3), atol=1e-9)


def test_closed_form_whitening_leaves_out_the_null_space_and_is_orthogonal_to_it(rng):
    """R is not a multiple of I: T has to be bent to be R-orthogonal to the null space."""
    C, moment_along = points_of_rank_two(rng)
    R = random_psd(rng, 4, rank=4)
    T = whiten(C, R, moment_along)
    null = np.linalg.eigh(C)[1][:, :2]
    assert T.shape == (4, 2)
    np.testing.assert_allclose(T.T @ C @ T, np.eye(2), atol=1e-9)
    np.testing.assert_allclose(null.T @ R @ T, 0.0, atol=1e-9 * np.abs(R @ T).max())


def test_closed_form_whitening_leaves_out_a_constant_feature(rng):
    C, R = np.zeros((3, 3)), random_psd(rng, 3, rank=3)
    C[:2, :2] = random_psd(rng, 2, rank=2)
    T = whiten(C, R, along(C))
    assert T.shape == (3, 2)
    np.testing.assert_allclose(R[2] @ T, 0.0, atol=1e-10 * np.abs(R @ T).max())


def test_closed_form_whitening_without_a_regularizer_or_without_spread(rng):
    C, moment_along = points_of_rank_two(rng)
    T = whiten(C, np.zeros((4, 4)), moment_along)
    np.testing.assert_allclose(T.T @ C @ T, np.eye(2), atol=1e-9)
    rounded = np.diag([4.0, -1e-20])
    T = whiten(rounded, np.eye(2), along(rounded))
    np.testing.assert_allclose(np.abs(T), [[0.5], [0.0]])  # an eigenvector has no sign
    zero = np.zeros((2, 2))
    assert whiten(zero, np.eye(2), along(zero)).shape == (2, 0)


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
def test_closed_form_the_regularizer_counts_whatever_its_unit(unit, rng):
    """It is zero along one axis of the null space, but for rounding: nothing is bent that way."""
    C, moment_along = points_of_rank_two(rng)
    null = np.linalg.eigh(C)[1][:, :2]
    R = random_psd(rng, 4, rank=4)
    free = null[:, 0]
    R -= np.outer(R @ free, R @ free) / (free @ R @ free)
    T = whiten(C, unit * R, moment_along)
    np.testing.assert_allclose(T, whiten(C, R, moment_along), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(null[:, 1] @ R @ T, 0.0, atol=1e-9 * np.abs(R @ T).max())


@pytest.mark.parametrize(("share", "columns"), [(1e-5, 2), (1e-9, 2), (1e-12, 1)])
def test_closed_form_a_faint_direction_is_summed_along_itself_down_to_1e_minus_11(share, columns):
    """Two nearly collinear features, whose difference only `moment_along` can see."""
    points = np.array([[1.0, 1.0], [-1.0, -1.0], [share, -share], [-share, share]])
    C = points.T @ points
    T = whiten(C, np.eye(2), lambda T: (points @ T).T @ (points @ T))
    assert T.shape == (2, columns)
    Z = points @ T
    np.testing.assert_allclose(Z.T @ Z, np.eye(columns), atol=1e-5)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.eye(3), r"start has shape \(3, 3\).* 2 features.* 2 x 2"),
        ([[1.0, np.nan], [np.nan, 1.0]], "start holds NaN or infinity"),
        ([[1.0, np.inf], [np.inf, 1.0]], "start holds NaN or infinity"),
        ([[-1.0, 0.0], [0.0, 1.0]], r"not positive semidefinite .* -1\)"),
        ([[0.0, 1.0], [1.0, 0.0]], "not positive semidefinite"),
        ([[0.0, 1e-200], [0.0, 1.0]], "not symmetric"),
    ],
)
def test_failure_path_what_is_no_metric_is_named(matrix, message):
    """A zero on the diagonal forgives nothing beside it."""
    with pytest.raises(ValueError, match=message):
        check_metric(matrix, 2, "start")


@pytest.mark.parametrize("unit", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("other", [1e-3, 1e3])
def test_failure_path_asymmetry_and_negative_eigenvalues_whatever_the_units(unit, other):
    scale = np.array([unit, unit * other])
    within, beyond = 0.5e-9, 4e-9
    for excess, is_fine in [(within, True), (beyond, False)]:
        lopsided = np.array([[1.0, 0.5], [0.5 + excess, 1.0]]) * np.outer(scale, scale)
        indefinite = np.array([[1.0, 1.0 + excess], [1.0 + excess, 1.0]]) * np.outer(scale, scale)
        if is_fine:
            np.testing.assert_array_equal(check_metric(lopsided, 2), (lopsided + lopsided.T) / 2)
            repaired = check_metric(indefinite, 2) / np.outer(scale, scale)
            assert np.linalg.eigvalsh(repaired)[0] >= -1e-14  # scaled there and back, by rounding
            np.testing.assert_allclose(repaired, np.ones((2, 2)), rtol=1e-8)
            continue
        with pytest.raises(ValueError, match="A is not symmetric"):
            check_metric(lopsided, 2)
        with pytest.raises(ValueError, match=r"A is not positive semidefinite .* -4e-09"):
            check_metric(indefinite, 2)


def test_a_metric_is_copied(rng):
    np.testing.assert_array_equal(check_metric(np.zeros((2, 2)), 2), np.zeros((2, 2)))
    A = random_psd(rng, 3, rank=3)
    checked = check_metric(A, 3)
    A[0, 0] = 99.0
    assert checked[0, 0] != 99.0
    with pytest.raises(ValueError, match="read-only"):
        checked[0, 0] = 99.0
