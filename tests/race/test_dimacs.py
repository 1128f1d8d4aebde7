"""Evidence on the DIMACS measures: small at a solution, each sees its fault, none is made up."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from instances import random_objective

from seraph_cvx.m_step.statement import state_m_step
from seraph_cvx.numerics.psd_cone import project
from seraph_cvx.race.dimacs import cone_depth, dimacs_errors


def depth(v, lower=False, dual=False, **cones):
    empty = {"zero": 0, "nonneg": 0, "psd": [], "exp": 0, "soc": [], "p3d": []}
    return cone_depth(np.array(v, dtype=float), SimpleNamespace(**(empty | cones)), lower, dual)


@pytest.mark.parametrize("solver", ["SCS", "CLARABEL"])
@pytest.mark.parametrize("formulation", ["primal", "dual"])
def test_dimacs_measures_are_small_at_a_solution_and_see_each_fault(solver, formulation):
    problem = state_m_step(random_objective(0, "hyper", n=8, m=3), formulation)
    data, chain, _ = problem.get_problem_data(solver, solver_opts={})
    answer = chain.solve_via_data(problem, data, solver_opts={})
    names = ("x", "s", "y") if solver == "SCS" else ("x", "s", "z")
    read = answer.get if solver == "SCS" else lambda name: getattr(answer, name)
    x, s, y = (np.array(read(name)) for name in names)

    def errors(*vectors):
        changed = dict(zip(names, vectors, strict=True))
        return dimacs_errors(
            data, changed if solver == "SCS" else SimpleNamespace(**changed), solver
        )

    good = errors(x, s, y)
    assert np.max(np.abs(good)) < 1e-3
    assert errors(x, s, y + 0.1)[0] > 100 * good[0]
    faults = [(x, s, -y - 0.1), (x + 1.0, s, y), (x, -s - 0.1, y), (2.0 * x, s, y), (x, s + 1.0, y)]
    for k, vectors in enumerate(faults, start=1):
        assert abs(errors(*vectors)[k]) > 0.01
    assert errors(x * np.nan, s, y) is None
    assert errors(x[1:], s, y) is None
    assert dimacs_errors(data, answer, "NEW") is None  # nothing is made up


def test_depth_in_the_zero_cone_is_the_largest_entry_and_its_dual_is_everything():
    assert depth([0.5, -3.0, 1.0], zero=2, nonneg=1) == 3.0
    assert depth([0.5, -3.0, 1.0], zero=2, nonneg=1, dual=True) == 0.0
    with pytest.raises(ValueError, match="no second-order and no power cones"):
        depth(np.ones(3), soc=[3])


@pytest.mark.parametrize("lower", [True, False])
def test_depth_in_a_psd_cone_is_minus_the_smallest_eigenvalue(lower):
    S = np.random.default_rng(0).normal(size=(4, 4))
    S = S + S.T
    i, j = np.triu_indices(4) if lower else np.tril_indices(4)
    scale = np.where(i == j, 1.0, np.sqrt(2.0))
    assert depth(scale * S[i, j], lower, psd=[4]) == pytest.approx(-np.linalg.eigvalsh(S)[0])
    inside = scale * project(S)[i, j]
    assert depth(inside, lower, dual=True, psd=[4]) == pytest.approx(0.0, abs=1e-14)


def test_depth_in_the_exponential_cone_and_its_dual():
    """Of a cone and its dual no product is negative."""
    assert depth([0.0, 1.0, 1.0], exp=1) == depth([-1.0, 0.0, 0.0], exp=1) == 0.0
    assert depth([0.0, 0.0, -1.0], exp=1) >= 1.0
    assert depth([1.0, 1.0, 1.0], exp=1) == pytest.approx(1.0)  # y e^{x/y} = z at (0, 2, 2)
    for v, w in np.random.default_rng(0).normal(size=(50, 2, 3)):
        moves = np.array([[depth(v, exp=1)], [depth(w, dual=True, exp=1)]]) * [-1.0, 1.0, 1.0]
        inside, dual = np.array([v, w]) + moves
        assert inside @ dual >= -1e-9
