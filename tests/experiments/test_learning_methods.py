"""Evidence: each method of Table 2 learns what its name says; early stopping descends (7)."""

from __future__ import annotations

import numpy as np
import pytest
from evidence.protocol.samplings import (
    draw_sampling,
    load_task,
    nearest_neighbor_error,
)
from evidence.protocol.tasks import find_task
from evidence.runs import learners
from evidence.runs.early_stopping import stop_early
from evidence.runs.methods import METHODS
from reproduction_programs import without_metric

from seraph_cvx import MStepObjective, PairSet, alternate
from seraph_cvx.m_step.solve import MStepSolver
from seraph_cvx.model.semi_supervised import SemiSupervisedObjective

# The methods


@pytest.mark.parametrize("name", METHODS)
def test_every_method_learns_a_finite_metric_from_a_sampling_of_iris(name):
    task = find_task("iris")
    sampling = draw_sampling(task, *load_task(task), seed=1)
    L = METHODS[name].learn(sampling.X, sampling.y, 0)
    assert L.ndim == 2
    assert L.shape[1] == 4
    assert np.all(np.isfinite(L))
    assert nearest_neighbor_error(sampling, L) < 40.0


def test_the_methods_are_what_their_names_say():
    task = find_task("wine")
    sampling = draw_sampling(task, *load_task(task), seed=2)
    pairs = PairSet.from_labels(sampling.X, sampling.y)
    metric = {
        name: (L := METHODS[name].learn(sampling.X, sampling.y, 0)).T @ L
        for name in ("seraph-hyper", "seraph-proj", "sharp", "three-steps")
    }
    close = {"rel": 1e-5, "abs": 1e-7}
    hyper = alternate(pairs, "ratio", 1.0, accelerate=False).metric
    assert metric["seraph-hyper"] == pytest.approx(hyper, **close)
    proj = alternate(pairs, 0.0, 1.0).metric
    assert metric["seraph-proj"] == pytest.approx(proj, **close)
    sharp = alternate(pairs, "ratio", 1.0, sharpness=2.0, accelerate=False).metric
    assert metric["sharp"] == pytest.approx(sharp, **close)
    with pytest.warns(UserWarning, match="3 iterations"):
        three = alternate(pairs, "ratio", 1.0, max_iter=3, accelerate=False)
    assert metric["three-steps"] == pytest.approx(three.metric, **close)
    assert not np.allclose(metric["three-steps"], metric["seraph-hyper"], rtol=1e-2)


# Early stopping


@pytest.mark.parametrize("setting", [(0.0, 0.0), ("ratio", 0.0), (0.0, 1.0), ("ratio", 1.0)])
def test_early_stopping_descends_objective_7_from_a_multiple_of_the_identity(setting):
    task = find_task("balance")
    sampling = draw_sampling(task, *load_task(task), seed=0)
    pairs = PairSet.from_labels(sampling.X, sampling.y)
    result = stop_early(pairs, *setting)
    objective = SemiSupervisedObjective(
        MStepObjective(pairs, unlabeled_weight=setting[0], trace_weight=setting[1])
    )
    assert result.values[0] == pytest.approx(objective.value(0.8 * np.eye(4)))
    assert result.values[-1] == pytest.approx(objective.value(result.metric))
    assert np.all(np.diff(result.values) <= 0.0)
    assert result.values[-1] < result.values[0]
    assert np.linalg.eigvalsh(result.metric)[0] >= -1e-10
    assert 1 <= result.steps <= 200


def test_closed_form_the_first_step_of_early_stopping_is_a_tenth_of_m_along_the_gradient():
    X = np.array([[0.0, 0.0], [1.0, 0.5], [3.0, 0.2], [2.5, 2.0]])
    pairs = PairSet.from_labels(X, [0, 0, 1, 1])
    one = stop_early(pairs, 0.0, 0.0, max_steps=1)
    start = 2.0 / 3.0 * np.eye(2)
    gradient = SemiSupervisedObjective(
        MStepObjective(pairs, unlabeled_weight=0.0, trace_weight=0.0)
    ).value_and_gradient(start)[1]
    step = 0.2 * gradient / np.linalg.norm(gradient)
    assert one.metric == pytest.approx(start - step)
    assert (one.steps, one.stopped_by) == (1, "step limit")


def test_early_stopping_ends_at_a_small_move():
    pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
    result = stop_early(pairs, trace_weight=1.0)
    assert result.stopped_by == "small step"
    longer = stop_early(pairs, trace_weight=1.0, smallest_move=1e-9)
    assert longer.steps > result.steps
    assert abs(longer.metric[0, 0] - result.metric[0, 0]) < 2e-2


def test_early_stopping_ends_where_nothing_descends():
    """Points that are all the same have no gradient; at an optimum every step raises (7)."""
    same = stop_early(PairSet.from_labels(np.ones((4, 2)), [0, 0, 1, -1]), 0.0, 0.0)
    assert (same.stopped_by, same.steps) == ("no descent", 0)
    assert np.array_equal(same.metric, 2.0 / 3.0 * np.eye(2))
    pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
    best = stop_early(pairs, 0.0, 1.0, smallest_move=0.0, max_steps=500)
    objective = MStepObjective(pairs, unlabeled_weight=0.0, trace_weight=1.0)
    assert best.stopped_by == "no descent"
    assert np.linalg.norm(objective.gradient(best.metric)) < 1e-6


@pytest.mark.parametrize("setting", ["hyper", "none"])
def test_an_em_whose_solver_gives_nothing_is_a_failure_with_its_reason(setting, monkeypatch):
    if setting == "none":  # whose M-steps are cut off one by one
        monkeypatch.setattr(MStepSolver, "solve", without_metric(MStepSolver.solve))
    else:
        monkeypatch.setattr(learners, "alternate", without_metric(alternate))
    X, y = np.array([[0.0], [0.2], [2.0], [2.3]]), np.array([0, 0, 1, -1])
    with pytest.raises(RuntimeError, match="planted trouble"):
        learners.learn_by_em(setting, X, y)


def test_an_em_without_a_trace_weight_is_cut_off_after_so_many_m_steps(monkeypatch):
    starts, solve = [], MStepSolver.solve

    def counted(self, objective, tol, start):
        starts.append(start)
        return solve(self, objective, tol, start)

    monkeypatch.setattr(MStepSolver, "solve", counted)
    monkeypatch.setattr(learners, "UNATTAINED_TOL", -1.0)  # J never falls too little
    X, y = np.array([[0.0], [0.2], [2.0], [2.3]]), np.array([0, 0, 1, -1])
    L = learners.learn_by_em("post", X, y)
    assert len(starts) == learners.UNATTAINED_M_STEPS == 20
    assert starts[0] is None
    assert L.shape == (1, 1)
