"""Dual values that prove the optimum: material for CVXPY's own tests, in their style.

CVXPY's `check_dual_domains` asks that a multiplier lies in its cone, and `check_complementarity`
that its product with the constraint is zero. Multipliers that are scrambled among cones (cvxpy
#3377) pass the first, and those that are halved (cvxpy #3388) pass both. What neither can pass is
weak duality: over all x near the solution, the least value of the Lagrangian

    L(x) = f(x) + sum_k <y_k, g_k(x)>

is the optimal value if the multipliers are right, and smaller if they are not. L is convex, so that
CVXPY minimizes it itself. Needs nothing but CVXPY: `python -m unittest test_dual_values`.
"""

# ruff: noqa: PT009 - CVXPY's tests are written for unittest

import cvxpy as cp
import numpy as np
from cvxpy.tests.base_test import BaseTest


def least_lagrangian(problem: cp.Problem) -> float:
    """The least value of the Lagrangian over |x - solution| <= 1 + |solution|."""
    sign = 1 if isinstance(problem.objective, cp.Minimize) else -1
    lagrangian = sign * problem.objective.expr
    for con in problem.constraints:
        is_signed = isinstance(con, (cp.constraints.Inequality, cp.constraints.Equality))
        args = [con.expr] if is_signed else con.args
        duals = con.dual_value if isinstance(con.dual_value, list) else [con.dual_value]
        for arg, dual in zip(args, duals, strict=True):
            product = cp.sum(cp.multiply(np.conj(np.reshape(dual, arg.shape, order="F")), arg))
            product = product if product.is_real() else cp.real(product)
            lagrangian = lagrangian + product if is_signed else lagrangian - product
    near = [cp.abs(x - x.value) <= 1 + np.abs(x.value).max() for x in problem.variables()]
    return sign * cp.Problem(cp.Minimize(lagrangian), near).solve(solver=cp.CLARABEL)


class TestDualValuesProveTheOptimum(BaseTest):
    """Each problem's multipliers have to give its optimal value back."""

    def assert_duals_prove(self, problem: cp.Problem, places: int = 4) -> None:
        problem.solve(solver=cp.CLARABEL)
        self.assertAlmostEqual(least_lagrangian(problem), problem.value, places=places)

    def exp_cone_problem(self) -> cp.Problem:
        """ExpCone with matrix arguments: cvxpy #3377."""
        X = cp.Variable((2, 3))
        bounds = np.array([[1.0, 2.0, 3.0], [5.0, 8.0, 13.0]])
        cone = cp.ExpCone(X, np.ones((2, 3)), bounds)
        return cp.Problem(
            cp.Maximize(cp.sum(cp.multiply(np.arange(1.0, 7.0).reshape(2, 3), X))), [cone]
        )

    def hermitian_problem(self) -> cp.Problem:
        """A Hermitian PSD constraint: cvxpy #3388."""
        X = cp.Variable((2, 2), hermitian=True)
        A, C = np.array([[2.0, 1j], [-1j, 3.0]]), np.array([[2.0, 0.5j], [-0.5j, 1.0]])
        return cp.Problem(cp.Minimize(cp.real(cp.trace(C @ X))), [X >> A])

    def test_exp_cone_with_matrix_arguments(self) -> None:
        self.assert_duals_prove(self.exp_cone_problem())

    def test_hermitian_psd(self) -> None:
        self.assert_duals_prove(self.hermitian_problem())

    def test_other_cones(self) -> None:
        x, t, X = cp.Variable(3), cp.Variable(), cp.Variable((2, 2), symmetric=True)
        a = np.array([1.0, -2.0, 0.5])
        self.assert_duals_prove(cp.Problem(cp.Minimize(a @ x), [cp.norm(x) <= 2, cp.sum(x) == 1]))
        self.assert_duals_prove(cp.Problem(cp.Minimize(t + a @ x), [cp.SOC(t, 3 * x - a)]))
        self.assert_duals_prove(
            cp.Problem(cp.Minimize(cp.trace(X)), [X >> np.eye(2), X[0, 1] == 1])
        )
        power = cp.PowCone3D(x[0], x[1], x[2], 0.3)
        self.assert_duals_prove(cp.Problem(cp.Maximize(x[2]), [power, x[0] + 2 * x[1] == 3]))

    def test_scrambled_duals_are_caught(self) -> None:
        """In transposed places they lie in the dual cone, and prove less."""
        problem = self.exp_cone_problem()
        problem.solve(solver=cp.CLARABEL)
        (cone,) = problem.constraints
        for variable in cone.dual_variables:
            scrambled = np.ravel(variable.value, order="F").reshape(variable.shape, order="C")
            variable.save_value(scrambled)
        self.assertLessEqual(np.max(cone.dual_residual), 1e-6)
        self.assertGreater(least_lagrangian(problem), problem.value + 1e-2)

    def test_halved_duals_are_caught(self) -> None:
        """Halved they lie in the dual cone, are complementary, and prove less."""
        problem = self.hermitian_problem()
        problem.solve(solver=cp.CLARABEL)
        (cone,) = problem.constraints
        cone.dual_variables[0].save_value(0.5 * cone.dual_value)
        self.assertLessEqual(np.max(cone.dual_residual), 1e-6)
        slack = np.real(np.vdot(cone.dual_value, cone.args[0].value))
        self.assertAlmostEqual(slack, 0.0, places=4)
        self.assertLess(least_lagrangian(problem), problem.value - 1e-2)
