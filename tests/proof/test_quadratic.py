"""Quadratic programs: forms that rounding made indefinite, active and redundant equations."""

from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest

from seraph_cvx.proof import certify_problem
from seraph_cvx.proof.program import Cone, ConicProgram
from seraph_cvx.proof.quadratic import ColumnBounds, convexified

INDEFINITE = np.array([[1.0, 1.0], [1.0, 1.0 - 2.0**-52]])  # its determinant is -2^-52


def covariance(n_days, n_assets, seed=0):
    returns = np.random.default_rng(seed).normal(size=(n_days, n_assets))
    return np.cov(returns.T) * 1e-4


def kernel(n_points, seed=0):
    X = np.random.default_rng(seed).normal(size=(n_points, 2))
    return np.exp(-np.square(X[:, None] - X[None]).sum(axis=2) / 20.0), np.sign(X[:, 0])


@pytest.mark.parametrize("budget", ["long only", "long and short"])
def test_the_optimum_is_known_of_a_portfolio_of_more_assets_than_days(budget):
    """Of two equal assets, and others of larger risk, and nothing else to choose."""
    S = covariance(10, 30)
    S[:2], S[:, :2] = 0.0, 0.0
    S[:2, :2] = 2.0**-14
    x = cp.Variable(30)
    within = [x >= 0] if budget == "long only" else [cp.norm1(x) <= 1]
    objective = cp.quad_form(x, S) + 100.0 * cp.sum(x[2:])
    problem = cp.Problem(cp.Minimize(objective), [cp.sum(x) == 1, *within])
    certificate = certify_problem(problem)
    assert certificate.lower <= 2.0**-14 <= certificate.upper
    assert certificate.relative_gap <= 1e-6
    assert "added to the diagonal" not in certificate.claim
    assert any("P is proven PSD with" in step for step in certificate.steps)


@pytest.mark.parametrize("kind", ["linear", "rbf"])
@pytest.mark.parametrize("how", ["psd_wrap", "assume_PSD"])
def test_a_support_vector_machine_is_certified_whatever_its_kernel(kind, how):
    K, labels = kernel(40)
    if kind == "linear":
        points = np.random.default_rng(1).normal(size=(40, 3))
        K, labels = points @ points.T, np.sign(points[:, 0])
    a = cp.Variable(40)
    signed = cp.multiply(labels, a)
    form = (
        cp.quad_form(signed, cp.psd_wrap(K))
        if how == "psd_wrap"
        else cp.quad_form(signed, K, assume_PSD=True)
    )
    problem = cp.Problem(cp.Maximize(cp.sum(a) - form / 2), [a >= 0, a <= 1, labels @ a == 0])
    certificate = certify_problem(problem)
    assert certificate.relative_gap <= 1e-6


@pytest.mark.parametrize("matrix", [covariance(10, 30), kernel(30)[0]])
def test_a_form_in_a_constraint_is_certified_to_within_the_factor_of_cvxpy(matrix):
    x = cp.Variable(30)
    form = cp.quad_form(x, cp.psd_wrap(matrix))
    problem = cp.Problem(cp.Maximize(x[0]), [form <= 1, cp.abs(x) <= 50.0])
    certificate = certify_problem(problem)
    assert certificate.relative_gap <= 1e-6
    assert "quadratic forms x'Px to within" in certificate.claim


def test_bounds_of_an_indefinite_form_hold_where_convexity_does_not():
    # x_1 = 1 - x_0, so x'Px = 1 - 2^-52 (1 - x_0)^2 is concave: its least value is at x_0 = -2^20.
    x = cp.Variable(2)
    form = cp.quad_form(x, cp.psd_wrap(INDEFINITE))
    wide = cp.Problem(cp.Minimize(form), [cp.sum(x) == 1, cp.abs(x) <= 2.0**20 + 1])
    certificate = certify_problem(wide)
    optimum = 1 - Fraction(2) ** -52 * (1 + Fraction(2) ** 20) ** 2
    assert certificate.lower <= optimum <= certificate.upper
    assert certificate.relative_gap < 1e-1


def test_without_bounds_on_its_columns_the_claim_is_of_a_form_that_is_convex():
    x = cp.Variable(2)
    form = cp.quad_form(x, cp.psd_wrap(INDEFINITE))
    certificate = certify_problem(cp.Problem(cp.Minimize(form), [x >= 1]))
    assert "added to the diagonal of P" in certificate.claim
    x.value = np.array([1.0, 1.0])
    certificate = certify_problem(cp.Problem(cp.Minimize(form), [x >= 1]))  # no contradiction
    assert certificate.lower <= 4.0 <= certificate.upper
    assert certificate.relative_gap <= 1e-6


@pytest.mark.filterwarnings("ignore:Forming a nonconvex expression")
@pytest.mark.parametrize("matrix", [-np.eye(2), [[1, 2], [2, 1]], [[0, 1], [1, 0]]])
@pytest.mark.parametrize("in_objective", [True, False])
def test_a_negative_eigenvalue_is_refused_with_its_size(matrix, in_objective):
    x = cp.Variable(2)
    form = cp.quad_form(x, cp.psd_wrap(np.array(matrix, dtype=float)))
    problem = cp.Problem(cp.Minimize(cp.sum(x)), [form <= 1])
    if in_objective:
        problem = cp.Problem(cp.Minimize(form), [cp.abs(x) <= 1])
    with pytest.raises(ValueError, match="negative"):
        certify_problem(problem)


def boxed(A, b, *cones):
    A = np.array(A, dtype=float)
    return ConicProgram(A, np.array(b, dtype=float), np.zeros(A.shape[1]), None, cones)


@pytest.mark.parametrize(
    ("program", "sizes"),
    [
        (boxed([[1, 1], [-1, 0], [0, -1]], [1, 0, 0], Cone("zero", 1), Cone("nonnegative", 2)),
         [1, 1]),
        (boxed([[1, -1], [-1, -1], [0, 1]], [0, 0, 3], Cone("nonnegative", 3)), [3, 3]),
        (boxed([[0, 0], [-1, 0], [0, -2]], [4, 0, 1], Cone("second_order", 3)), [4, 2.5]),
        (boxed([[-1, 0], [0, 0], [0, -1], [1, 1]], [0, 0, 0, 2], Cone("psd", 3),
               Cone("nonnegative", 1)), [2, 2]),
        (boxed([[1, 1], [-1, 0]], [1, 0], Cone("nonnegative", 2)), [np.inf, np.inf]),
    ],
)  # fmt: skip
def test_bounds_on_columns_are_those_that_the_constraints_imply(program, sizes):
    box = ColumnBounds(program)
    box.propagate(np.ones(2, dtype=bool))
    found = np.maximum(np.abs(box.lower), np.abs(box.upper))
    assert (found >= sizes).all()
    np.testing.assert_allclose(found, sizes, rtol=1e-12)


def test_a_tolerance_widens_the_bounds_on_columns():
    program = boxed([[1], [-1]], [1, 1], Cone("nonnegative", 2))
    box = ColumnBounds(program, 0.5)
    box.propagate(np.ones(1, dtype=bool))
    assert 1.5 <= box.upper[0] <= 1.5 + 1e-12


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_the_shift_is_of_the_size_of_rounding_whatever_the_units(scale):
    rng = np.random.default_rng(3)
    units = 10.0 ** rng.integers(-6, 7, 20)
    F = rng.normal(size=(5, 20)) * units
    P = F.T @ F * scale
    A = np.vstack([np.eye(20), -np.eye(20)])
    program = ConicProgram(A, np.ones(40), np.zeros(20), P, (Cone("nonnegative", 40),))
    convex = convexified(program)
    diagonal = P.diagonal()
    assert (convex.shift <= 1e-12 * np.maximum(diagonal, 1e-18 * P.max())).all()
    root = np.sqrt(diagonal)
    scaled = (P + np.diag(convex.shift)) / np.outer(root, root)
    assert np.linalg.eigvalsh(scaled).min() >= -1e-15
    least = sum(Fraction(d) for d in convex.shift.tolist()) / 2
    assert least <= convex.loss <= least * (1 + Fraction(1, 10**12))
