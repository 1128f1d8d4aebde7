"""Evidence: "newton" is the default, "fista" is FISTA alone, and who used it before is told."""

import warnings
from functools import partial

import numpy as np
import pytest
from instances import random_objective, random_pairs

from seraph_cvx import (
    SERAPH,
    SERAPHCV,
    KernelSERAPH,
    PairSERAPH,
    Status,
    alternate,
    compare_solvers,
    load_model,
    save_model,
    seraph_path,
    solve_m_step,
)
from seraph_cvx.datasets import load_sampling
from seraph_cvx.fit import checkpoint
from seraph_cvx.m_step import solve
from seraph_cvx.m_step.solve import MStepSolver
from seraph_cvx.penalties import Ridge
from seraph_cvx.solvers import methods

SAMPLING = load_sampling("iris", n_points=24, n_labeled=9, seed=0)
DATA = SAMPLING.X, SAMPLING.y
KNOWN = np.flatnonzero(SAMPLING.y >= 0)
PAIRS = SAMPLING.X[np.column_stack([KNOWN[:-1], KNOWN[1:]])]
SAME = np.where(SAMPLING.y[KNOWN[:-1]] == SAMPLING.y[KNOWN[1:]], 1, -1)

as_fista = pytest.mark.filterwarnings("ignore:.*FISTA alone:FutureWarning")
"""The name is used on purpose."""


class NewtonWasCalled(Exception):
    """What a forbidden call of Newton's method raises."""


@pytest.fixture
def without_newton(monkeypatch):
    """Newton's method, and whatever starts by it, raise."""

    def refuse(*_, **__):
        raise NewtonWasCalled

    monkeypatch.setattr(methods, "newton", refuse)
    monkeypatch.setattr(methods, "subsampled_start", refuse)
    monkeypatch.setattr(solve, "rough_m_step", refuse)


# What the names mean


def test_newton_is_the_default_of_everything_that_solves_m_steps(without_newton):
    objective, pairs = random_objective(0, "hyper"), random_pairs(0)
    assert SERAPH().solver == SERAPHCV().solver == PairSERAPH().solver == "newton"
    assert KernelSERAPH().solver == MStepSolver().solver == "newton"
    for run in (
        partial(solve_m_step, objective),
        partial(alternate, pairs),
        partial(seraph_path, pairs, n_weights=2),
        partial(SERAPH().fit, *DATA),
    ):
        with pytest.raises(NewtonWasCalled):
            run()


def test_an_answer_says_who_gave_it():
    objective = random_objective(0, "hyper")
    answer = solve_m_step(objective)
    assert (answer.solver, answer.status) == ("newton", Status.CERTIFIED)
    assert "Newton" in answer.solver_status
    ridge = solve_m_step(objective.with_penalties([Ridge(0.1)]))
    assert (ridge.solver, ridge.status) == ("newton", Status.CERTIFIED)
    assert alternate(random_pairs(0)).m_step.solver == "newton"


@as_fista
def test_fista_alone_certifies_an_m_step_and_calls_no_newton(without_newton):
    answer = solve_m_step(random_objective(0, "hyper"), "fista", tol=1e-6)
    assert (answer.solver, answer.status) == ("fista", Status.CERTIFIED)
    assert answer.relative_gap <= 1e-6
    assert "Newton" not in answer.solver_status
    assert answer.iterations > 10


@as_fista
def test_with_fista_every_m_step_of_a_fit_is_fistas(without_newton):
    """There is no descent on J, which is Newton's method too."""
    run = alternate(random_pairs(0), solver="fista", tol=1e-4, m_step_tol=1e-6)
    assert run.status is Status.CERTIFIED
    assert {iteration.kind for iteration in run.history} == {"M-step"}
    assert run.m_step.solver == "fista"


@as_fista
@pytest.mark.parametrize("solver", ["fista", "projected-gradient"])
def test_penalties_are_refused_with_the_cure(solver):
    blocks, words = [Ridge(0.5)], rf'{solver} takes no penalties .*solver="newton".*Ridge\(0\.5\)'
    with pytest.raises(ValueError, match=words):
        solve_m_step(random_objective(0, "hyper").with_penalties(blocks), solver)
    with pytest.raises(ValueError, match=words):
        alternate(random_pairs(0), solver=solver, penalties=blocks)
    with pytest.raises(ValueError, match=words):
        SERAPH(solver=solver, penalties=blocks).fit(*DATA)


# Who is told that the meaning of a name has changed


def told(call):
    """The warnings of a call that say so, with all the others left out."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call()
    return result, [w for w in caught if w.category is FutureWarning]


LOOSE = {"tol": 1e-3, "m_step_tol": 1e-4}
USERS = {
    "solve_m_step": lambda solver: solve_m_step(random_objective(0, "hyper"), solver, 1e-4),
    "alternate": lambda solver: alternate(random_pairs(0), solver=solver, time_limit=60.0, **LOOSE),
    "seraph_path": lambda solver: seraph_path(
        random_pairs(0), n_weights=3, algorithm="em", solver=solver, **LOOSE
    ),
    "SERAPH": lambda solver: SERAPH(solver=solver, time_limit=60.0, **LOOSE).fit(*DATA),
    "KernelSERAPH": lambda solver: KernelSERAPH(solver=solver, **LOOSE).fit(*DATA),
    "PairSERAPH": lambda solver: PairSERAPH(solver=solver, **LOOSE).fit(PAIRS, SAME),
    "SERAPHCV": lambda solver: SERAPHCV([1.0, 9.0], cv=2, solver=solver, **LOOSE).fit(*DATA),
}


@pytest.mark.parametrize("user", USERS)
def test_who_names_fista_is_told_once_whatever_the_number_of_m_steps(user):
    result, warned = told(lambda: USERS[user]("Fista"))
    (warning,) = warned
    for words in ("FISTA alone", "up to version 0.1.0", 'solver="newton"'):
        assert words in str(warning.message)
    assert warning.filename == __file__
    steps = getattr(result, "history_", getattr(result, "history", None))
    assert steps is None or len(steps) > 1
    assert told(lambda: USERS[user]("newton"))[1] == []


def test_who_does_not_name_it_to_the_solver_of_a_fit_is_told_nothing():
    """Nor is the race, whose list of solvers is new."""
    for call in (
        lambda: SERAPH(algorithm="direct", solver="fista").fit(*DATA),
        lambda: compare_solvers(random_objective(0, "hyper"), ["fista"], tols=[1e-3]),
    ):
        assert told(call)[1] == []


# What earlier versions wrote


@as_fista
@pytest.mark.parametrize("model", [SERAPH(**LOOSE), SERAPHCV([1.0], cv=2, **LOOSE)])
def test_a_saved_model_of_version_0_1_has_the_solver_that_it_was_learned_by(
    model, tmp_path, monkeypatch
):
    path = tmp_path / "model.npz"
    fitted = model.set_params(solver="fista").fit(*DATA)
    save_model(fitted, path)
    assert load_model(path).solver == "fista"
    with monkeypatch.context() as earlier:
        earlier.setattr("seraph_cvx.estimators.saving._is_fista", lambda record: False)
        save_model(fitted, path)
    again = load_model(path)
    assert again.solver == getattr(again, "best_estimator_", again).solver == "newton"
    np.testing.assert_array_equal(again.metric_, fitted.metric_)


def test_a_checkpoint_of_version_0_1_is_that_of_newton_and_not_of_fista(monkeypatch):
    objective = random_objective(0, "hyper")

    def fingerprint(solver):
        made = MStepSolver()
        made.solver = solver
        return checkpoint.fingerprint(objective, made, {"tol": 1e-6})

    newton, fista = fingerprint("newton"), fingerprint("fista")
    monkeypatch.setattr(checkpoint, "RECORDED_AS", {})
    assert newton == fingerprint("fista")
    assert fista not in (fingerprint("fista"), fingerprint("newton"))
