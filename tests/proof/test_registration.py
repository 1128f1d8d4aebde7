"""`problem.solve(method="certified")`: what is returned is proven, what is not is refused."""

from __future__ import annotations

import cvxpy as cp
import cvxpy.settings
import numpy as np
import pytest

from seraph_cvx import certify_problem
from seraph_cvx.proof import NotCertified, register

X = cp.Variable(3, name="x")
LASSO = cp.Problem(cp.Minimize(cp.sum_squares(X - np.arange(3.0)) + cp.norm1(X)), [cp.sum(X) == 1])


@pytest.fixture(autouse=True)
def registered():
    register()


@pytest.mark.parametrize("solver", ["CLARABEL", "SCS", "OSQP"])
def test_any_solver_may_answer(solver):
    value = LASSO.solve(method="certified", solver=solver)
    certificate = certify_problem(LASSO)
    assert value == LASSO.value == pytest.approx(certificate.upper, abs=1e-3)
    assert LASSO.solver_stats.solver_name == solver


def test_an_answer_worse_than_the_tolerance_is_refused_with_the_bounds():
    with pytest.raises(NotCertified, match=r"SCS says optimal.*the optimum lies in \[") as raised:
        LASSO.solve(method="certified", solver="SCS", eps_abs=1e-2, eps_rel=1e-2, tolerance=1e-7)
    certificate = raised.value.certificate
    assert certificate.relative_gap < 1e-6
    assert isinstance(raised.value, cp.SolverError)


def test_infeasible_and_unbounded_are_returned_where_they_are_proven():
    infeasible = cp.Problem(cp.Minimize(X[0]), [X >= 1, cp.sum(X) <= 2])
    assert infeasible.solve(method="certified") == np.inf
    assert cp.Problem(cp.Maximize(X[0]), [X >= 1]).solve(method="certified") == np.inf


def test_without_time_nothing_is_certified():
    with pytest.raises(NotCertified, match=r"the optimum lies in \[-inf, inf\]"):
        LASSO.solve(method="certified", solver="OSQP", time_limit=1e-9)


def test_verbose_tells_the_steps_of_the_proof(caplog, monkeypatch):
    monkeypatch.setattr(cvxpy.settings.LOGGER, "propagate", True)
    with caplog.at_level("INFO", logger="__cvxpy__"):
        LASSO.solve(method="certified", solver="CLARABEL", verbose=True)
    assert "conic program of" in caplog.text
