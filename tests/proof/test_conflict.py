"""Which constraints cannot hold together: planted conflicts are found exactly."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from planted_conflicts import KINDS, SIZES, planted

from seraph_cvx import certify_problem
from seraph_cvx.proof.conflict import find_conflict

LARGE = [pytest.param(size, marks=pytest.mark.slow) for size in SIZES if size > 20]


@pytest.mark.parametrize("size", [*(size for size in SIZES if size <= 20), *LARGE])
@pytest.mark.parametrize("kind", KINDS)
def test_a_planted_conflict_is_found_exactly_and_proven_irreducible(kind, size):
    problem, places = planted(kind, size)
    certificate = certify_problem(problem)
    assert certificate.infeasible
    conflict = certificate.conflict
    labels = {f"c{place}" for place in places}
    assert {constraint.label for constraint in conflict} == labels == set(conflict.names)
    assert conflict.is_irreducible
    assert "any fewer of them can" in conflict.claim
    assert str(certificate).startswith(conflict.claim)


def test_entries_of_vectors_take_part():
    x = cp.Variable(3, name="x")
    capacity = (np.arange(12.0).reshape(4, 3) @ x <= np.full(4, 10.0)).set_label("capacity")
    demand = x >= np.array([0.0, 2.0, 0.0])
    problem = cp.Problem(cp.Minimize(cp.sum(x)), [demand, capacity, x <= 9])
    conflict = certify_problem(problem).conflict
    assert conflict == (demand, capacity)
    assert conflict.entries == ((0, 1, 2), (3,))
    assert conflict.names[1] == "capacity (entry 3)"


def test_domains_and_attributes_are_named_in_the_claim():
    y, n = cp.Variable(name="y"), cp.Variable(name="n", nonneg=True)
    low = y <= -1
    objective = certify_problem(cp.Problem(cp.Maximize(cp.log(y)), [low, n <= 2])).conflict
    assert objective == (low,)
    assert "with the domain of the objective" in objective.claim
    inside = certify_problem(cp.Problem(cp.Minimize(y), [n <= 2, cp.log(y) >= -9, low])).conflict
    assert inside.names == ("constraints[1]: -9.0 <= log(y)", "constraints[2]: y <= -1.0")
    negative = certify_problem(cp.Problem(cp.Minimize(n), [n <= -1, y >= 0])).conflict
    assert negative.claim == "Proved with the attributes of n: this constraint cannot hold."


def test_a_conflict_is_of_the_values_that_parameters_had():
    y, p = cp.Variable(name="y"), cp.Parameter(value=5.0, name="p")
    certificate = certify_problem(cp.Problem(cp.Minimize(y), [y >= p, y <= 4.0, y <= 4.5]))
    p.value = 1.0
    assert len(certificate.conflict) == 2


def test_without_time_the_claim_says_what_is_open():
    problem, places = planted("second-order", 20)
    certificate = certify_problem(problem)
    conflict = find_conflict(
        certificate.canonical, certificate.evidence.ray_dual, certify_problem, 0.0
    )
    assert not conflict.is_irreducible
    assert "could be left out is open" in conflict.claim
    assert {problem.constraints[place] for place in places} <= set(conflict)


def test_an_unbounded_problem_has_a_direction_by_variables():
    x, y = cp.Variable(2, name="x"), cp.Variable(name="y")
    problem = cp.Problem(cp.Maximize(y + x[0]), [y <= 2 * x[0], x[0] >= 0, x[1] == 1])
    certificate = certify_problem(problem)
    assert certificate.unbounded
    assert certificate.conflict == ()
    assert certificate.direction[x][0] + certificate.direction[y] > 0.0
    assert abs(certificate.direction[x][1]) <= 1e-6
    assert "x = [" in str(certificate)
