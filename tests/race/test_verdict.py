"""Planted wrong answers: whatever is wrong of them, none agrees with what is proven."""

from __future__ import annotations

import runpy
import unittest

import cvxpy as cp
import numpy as np
import pytest

from seraph_cvx import certify_problem, compare_solvers
from seraph_cvx.race.race_table import TOLERANCE
from seraph_cvx.race.verdict import Answer, verdict

A = np.array([[1.0, 0.5, -0.3], [0.2, 1.5, 0.4], [-0.6, 0.1, 1.2]])
TARGET = np.array([1.0, -2.0, 0.5])

ATOMS = {
    "norm": lambda x: cp.Minimize(cp.norm(A @ x - TARGET)),
    "sum_squares": lambda x: cp.Minimize(cp.sum_squares(A @ x - TARGET)),
    "norm1": lambda x: cp.Minimize(cp.norm1(A @ x - TARGET)),
    "max": lambda x: cp.Minimize(cp.max(A @ x) + cp.norm(x)),
    "log_sum_exp": lambda x: cp.Minimize(cp.log_sum_exp(A @ x)),
    "exp": lambda x: cp.Minimize(cp.sum(cp.exp(A @ x))),
    "entr": lambda x: cp.Maximize(cp.sum(cp.entr(x + 2.0))),
    "log": lambda x: cp.Maximize(cp.sum(cp.log(x + 2.0))),
    "geo_mean": lambda x: cp.Maximize(cp.geo_mean(x + 2.0)),
    "huber": lambda x: cp.Minimize(cp.sum(cp.huber(A @ x - 3.0 * TARGET))),
}


def right(problem):
    problem.solve(solver="CLARABEL")


def wrong_value(problem):
    right(problem)
    problem._value *= 1.01


def wrong_point(problem):
    right(problem)
    (x,) = problem.variables()
    x.value = x.value + np.array([0.2, -0.2, 0.0])


def infeasible_point(problem):
    right(problem)
    (x,) = problem.variables()
    x.value = x.value - 1.2e-3


def halved_multipliers(problem):
    right(problem)
    for constraint in problem.constraints:
        constraint.dual_variables[0].save_value(constraint.dual_value / 2.0)


def wrong_status(problem):
    return "infeasible"


def wrong_unbounded(problem):
    return "unbounded"


PLANTED = [wrong_value, wrong_point, infeasible_point, halved_multipliers]
PLANTED += [wrong_status, wrong_unbounded]


@pytest.mark.usefixtures("one_race_server")
@pytest.mark.parametrize(
    "atom",
    [name if name == "norm" else pytest.param(name, marks=pytest.mark.slow) for name in ATOMS],
)
def test_no_planted_wrong_answer_agrees(atom):
    x = cp.Variable(3, name="x")
    problem = cp.Problem(ATOMS[atom](x), [cp.sum(x) == 1.0, x <= 0.6])
    first, *others = compare_solvers(problem, [right, *PLANTED]).rows
    assert first["proof"] == "agrees", first
    assert max(first["true_gap"], first["dual_gap"]) <= TOLERANCE
    for row in others:
        assert row["proof"].startswith("contradicts"), row


@pytest.mark.usefixtures("one_race_server")
@pytest.mark.parametrize("kind", ["soc", "psd", "exponential"])
def test_multipliers_of_cones_are_judged_as_they_came_back(kind):
    """Nobody solved the problem here: its own constraints have no multipliers, or others."""
    t, x = cp.Variable(name="t"), cp.Variable(2, name="x")
    cones = {
        "soc": cp.SOC(t, x - TARGET[:2]),
        "psd": cp.bmat([[t, x[0]], [x[0], x[1]]]) >> 0,
        "exponential": cp.ExpCone(x[0], x[1], t),
    }
    problem = cp.Problem(cp.Minimize(t), [cones[kind], cp.sum(x) == 3.0, x[1] == 1.0])

    def turned(given):
        given.solve(solver="CLARABEL")
        for variable in given.constraints[0].dual_variables:
            variable.save_value(-variable.value)

    first, other = compare_solvers(problem, [right, turned]).rows
    assert first["proof"] == "agrees", first
    assert first["dual_gap"] <= TOLERANCE
    assert "its multipliers miss the optimum" in other["proof"], other


def test_a_contradiction_by_rounding_accuses_nobody():
    x = cp.Variable(name="x")
    by_rounding = cp.Problem(cp.Minimize(x), [3.0 * x == 0.3, x == 0.1])
    certificate = certify_problem(by_rounding)
    x.value = 0.1
    point = certify_problem(by_rounding).point
    found = verdict(certificate, Answer("optimal", 0.1, point))
    assert not found.startswith("contradicts"), found
    x.value = 0.2
    point = certify_problem(by_rounding).point
    assert verdict(certificate, Answer("optimal", 0.2, point)).startswith("contradicts")


def test_what_is_not_enclosed_is_shown_in_doubles_and_not_judged():
    x = cp.Variable(2, name="x", nonneg=True)
    problem = cp.Problem(cp.Minimize(cp.sum(cp.xexp(x))), [x >= 1.0])
    problem.solve(solver="CLARABEL")
    certificate = certify_problem(problem)
    assert abs(certificate.point.objective.value - 2.0 * np.e) < 1e-6
    assert "not judged" in str(certificate)
    found = verdict(certificate, Answer("optimal", problem.value, certificate.point))
    assert found == "not judged: xexp is not enclosed"


def test_the_tests_for_cvxpy_pass_and_catch_scrambled_and_halved_duals(repository):
    path = repository / "examples" / "reproduction" / "test_dual_values.py"
    names = runpy.run_path(str(path))
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(names["TestDualValuesProveTheOptimum"])
    result = unittest.TestResult()
    suite.run(result)
    assert result.testsRun == 5
    assert result.wasSuccessful(), result.failures + result.errors
