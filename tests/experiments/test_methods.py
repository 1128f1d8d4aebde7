"""Evidence: each method of Table 2 learns what its name says; early stopping descends (7)."""

from __future__ import annotations

import numpy as np
import pytest
from evidence import methods
from evidence.methods import METHODS, learn_by_em, stop_early
from evidence.tasks import draw_sampling, find_task, load_task, nearest_neighbor_error
from reproduction_programs import without_metric

from seraph_cvx import MStepObjective, PairSet, alternate
from seraph_cvx.m_step.solve import MStepSolver
from seraph_cvx.model.programs import SemiSupervisedObjective

X, Y = np.array([[0.0], [0.2], [2.0], [2.3]]), np.array([0, 0, 1, -1])
LINE = PairSet.from_labels(X, Y)


def sampling_of(name, seed):
    return draw_sampling(find_task(name), *load_task(find_task(name)), seed=seed)


def objective_7(pairs, mu, weight):
    return SemiSupervisedObjective(MStepObjective(pairs, unlabeled_weight=mu, trace_weight=weight))


@pytest.mark.parametrize("name", METHODS)
def test_every_method_learns_a_finite_metric_from_a_sampling_of_iris(name):
    sampling = sampling_of("iris", 1)
    L = METHODS[name].learn(sampling.X, sampling.y, 0)
    assert L.shape[1:] == (4,)
    assert np.all(np.isfinite(L))
    assert nearest_neighbor_error(sampling, L) < 40.0


def test_the_methods_are_what_their_names_say():
    sampling = sampling_of("wine", 2)
    pairs = PairSet.from_labels(sampling.X, sampling.y)
    with pytest.warns(UserWarning, match="3 iterations"):
        three = alternate(pairs, "ratio", 1.0, max_iter=3, accelerate=False)
    expected = {
        "seraph-hyper": alternate(pairs, "ratio", 1.0, accelerate=False),
        "seraph-proj": alternate(pairs, 0.0, 1.0),
        "sharp": alternate(pairs, "ratio", 1.0, sharpness=2.0, accelerate=False),
        "three-steps": three,
    }
    for name, run in expected.items():
        L = METHODS[name].learn(sampling.X, sampling.y, 0)
        assert pytest.approx(run.metric, rel=1e-5, abs=1e-7) == L.T @ L, name
    assert not np.allclose(three.metric, expected["seraph-hyper"].metric, rtol=1e-2)


@pytest.mark.parametrize("setting", [(0.0, 0.0), ("ratio", 0.0), (0.0, 1.0), ("ratio", 1.0)])
def test_early_stopping_descends_objective_7_from_a_multiple_of_the_identity(setting):
    sampling = sampling_of("balance", 0)
    pairs = PairSet.from_labels(sampling.X, sampling.y)
    result, objective = stop_early(pairs, *setting), objective_7(pairs, *setting)
    assert result.values[0] == pytest.approx(objective.value(0.8 * np.eye(4)))
    assert result.values[-1] == pytest.approx(objective.value(result.metric))
    assert np.all(np.diff(result.values) <= 0.0)
    assert result.values[-1] < result.values[0]
    assert np.linalg.eigvalsh(result.metric)[0] >= -1e-10
    assert 2 <= len(result.values) <= 201


def test_closed_form_the_first_step_of_early_stopping_is_a_tenth_of_m_along_the_gradient():
    points = np.array([[0.0, 0.0], [1.0, 0.5], [3.0, 0.2], [2.5, 2.0]])
    pairs = PairSet.from_labels(points, [0, 0, 1, 1])
    one = stop_early(pairs, 0.0, 0.0, max_steps=1)
    start = 2.0 / 3.0 * np.eye(2)
    gradient = objective_7(pairs, 0.0, 0.0).value_and_gradient(start)[1]
    assert one.metric == pytest.approx(start - 0.2 * gradient / np.linalg.norm(gradient))
    assert (len(one.values), one.stopped_by) == (2, "step limit")


def test_early_stopping_ends_where_nothing_descends():
    """Points that are all the same have no gradient; at an optimum every step raises (7)."""
    same = stop_early(PairSet.from_labels(np.ones((4, 2)), [0, 0, 1, -1]), 0.0, 0.0)
    assert (same.stopped_by, len(same.values)) == ("no descent", 1)
    assert np.array_equal(same.metric, 2.0 / 3.0 * np.eye(2))
    best = stop_early(LINE, 0.0, 1.0, smallest_move=0.0, max_steps=500)
    assert (stop_early(LINE).stopped_by, best.stopped_by) == ("small step", "no descent")
    slope = objective_7(LINE, 0.0, 1.0).value_and_gradient(best.metric)[1]
    assert np.linalg.norm(slope) < 1e-6


@pytest.mark.parametrize("setting", ["hyper", "none"])
def test_an_em_whose_solver_gives_nothing_is_a_failure_with_its_reason(setting, monkeypatch):
    if setting == "none":  # whose M-steps are cut off one by one
        monkeypatch.setattr(MStepSolver, "solve", without_metric(MStepSolver.solve))
    else:
        monkeypatch.setattr(methods, "alternate", without_metric(alternate))
    with pytest.raises(RuntimeError, match="planted trouble"):
        learn_by_em(setting, X, Y)


def test_an_em_without_a_trace_weight_is_cut_off_after_so_many_m_steps(monkeypatch):
    starts, solve = [], MStepSolver.solve

    def counted(self, objective, tol, start):
        starts.append(start)
        return solve(self, objective, tol, start)

    monkeypatch.setattr(MStepSolver, "solve", counted)
    monkeypatch.setattr(methods, "UNATTAINED_TOL", -1.0)  # J never falls too little
    assert learn_by_em("post", X, Y).shape == (1, 1)
    assert len(starts) == 20
    assert starts[0] is None
