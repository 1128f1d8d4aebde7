"""Evidence: J falls along the alternation to a certified fixed point; what fails is said."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from instances import pair_lists

from seraph_cvx import (
    SERAPH,
    MStepObjective,
    NotCertified,
    OptimumNotAttained,
    PairSet,
    Status,
    alternate,
    certify,
    paper,
)
from seraph_cvx.certificate import certify_factor
from seraph_cvx.datasets import load, load_sampling, sample
from seraph_cvx.m_step.solve import MStepSolver
from seraph_cvx.penalties import Ridge

M_STEP, DESCENT = "M-step", "descent"


def pairs_of(name, n_points, seed=0):
    if name == "digits":
        X, y = load("digits")
        drawn = sample("digits", X[y < 3], y[y < 3], n_points=n_points, seed=seed)
    else:
        drawn = load_sampling(name, n_points=n_points, seed=seed)
    return PairSet.from_labels(drawn.X, drawn.y)


def small_pairs():
    """Eight points in two heaps: J ends below 1, so that its fall is not relative to it."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(4, 2)), rng.normal(size=(4, 2)) + 3.0])
    return PairSet.from_labels(X, [0, -1, -1, -1, 1, 1, -1, -1])


def alternate_listening(pairs, **settings):
    """The run, and the metric of each of its iterations."""
    metrics = []
    return alternate(pairs, callback=lambda _, A: metrics.append(A), **settings), metrics


quietly = pytest.mark.filterwarnings("ignore::seraph_cvx.NotCertified")


def descent_value(pairs, A, mu, sharpness):
    """min_q J(q, A) with lambda = eta = 1: its unlabeled part by the Renyi entropy."""
    value = -paper.simplified_objective(*pair_lists(pairs), A, mu=0.0, lam=1.0, eta=1.0)
    d = paper.squared_distances(pairs.points, pairs.unlabeled, A)
    powers = [sharpness * paper.log_posterior(d, y, 1.0) for y in (1.0, -1.0)]
    return value - mu / sharpness * np.sum(np.logaddexp(*powers))


# Descent

SLOW = [
    pytest.param(name, 45, mu, None, marks=pytest.mark.slow)
    for name in ("iris", "wine", "breast_cancer", "balance", "digits")
    for mu in ((0.3,) if name in ("iris", "wine") else (0.01, 0.3, 10.0))
]


@quietly
@pytest.mark.parametrize("accelerate", [True, False])
@pytest.mark.parametrize(
    ("name", "n_points", "mu", "sharpness"),
    [
        *((name, 45, mu, None) for name in ("iris", "wine") for mu in (0.01, 10.0)),
        ("iris", 45, 0.5, 3.0),
        *SLOW,
    ],
)
def test_descent_J_never_rises(name, n_points, mu, sharpness, accelerate):
    pairs = pairs_of(name, n_points)
    settings = {"unlabeled_weight": mu, "sharpness": sharpness, "accelerate": accelerate}
    run, metrics = alternate_listening(pairs, tol=1e-14, max_iter=30, **settings)
    ended = (Status.CERTIFIED, Status.ITERATION_LIMIT)
    only_rounding = run.m_step.solver_status == "gap closed to rounding"
    assert run.status in ended or (only_rounding and run.m_step.relative_gap < 1e-6), run.message
    assert len(run.history) == len(metrics) >= 3
    a = 1.0 + mu if sharpness is None else sharpness
    values = [descent_value(pairs, metric, mu, a) for metric in metrics]
    assert [step.descent_value for step in run.history] == pytest.approx(values, rel=1e-9)
    for (before, after), iteration in zip(pairwise(values), run.history[1:], strict=True):
        gap = 0.0 if iteration.kind == DESCENT else iteration.relative_gap
        assert after <= before + gap * max(1.0, abs(before)) + 1e-11 * abs(before)
    assert values[-1] < values[0]


@pytest.mark.parametrize("sharpness", [None, 2.0])
@pytest.mark.parametrize(
    "name",
    ["iris", "balance", pytest.param("breast_cancer", marks=pytest.mark.slow)],
)
def test_acceleration_ends_at_a_certified_fixed_point_with_no_larger_j(name, sharpness):
    pairs = pairs_of(name, 60)
    plain = alternate(pairs, sharpness=sharpness, tol=1e-9, accelerate=False)
    quick = alternate(pairs, sharpness=sharpness, tol=1e-13)
    assert quick.status is plain.status is Status.CERTIFIED
    last = plain.history[-1].descent_value
    assert quick.history[-1].descent_value <= last + 1e-6 * max(1.0, abs(last))
    own = MStepObjective(pairs, previous_metric=quick.metric, sharpness=sharpness)
    assert certify(own, quick.metric).relative_gap <= 1e-6
    assert certify(replace(own, previous_metric=plain.metric), plain.metric).relative_gap <= 1e-5
    assert len(quick.history) < 40


@pytest.mark.parametrize("decimals", [5, 7, 9])
def test_a_column_that_is_the_mean_of_others_but_for_decimals_is_no_obstacle(decimals):
    drawn = load_sampling("wine", n_points=60, n_labeled=15, seed=0)
    X = np.c_[drawn.X, np.round(np.mean(drawn.X[:, :3], axis=1), decimals)]
    model = SERAPH().fit(X, drawn.y)
    assert model.status_ is Status.CERTIFIED
    basis = model.m_step_objective_.basis
    np.testing.assert_allclose(basis.inverse @ basis.matrix, np.eye(len(X.T)), atol=1e-6)


@pytest.mark.parametrize("accelerate", [True, False])
def test_a_fit_ends_as_soon_as_j_falls_by_less_than_tol(accelerate):
    """However loose or tight: the last fall is within `tol`, no earlier one, and J is near."""
    pairs, lengths, least = pairs_of("balance", 60), [], None
    for tol in (1e-12, 1e-6, 1e-2):
        run = alternate(pairs, tol=tol, accelerate=accelerate)
        assert run.status is Status.CERTIFIED
        assert f"within tol={tol:.0e}" in run.message
        J = [iteration.descent_value for iteration in run.history]
        falls = -np.diff(J) / np.maximum(1.0, np.abs(J[1:]))
        assert falls[-1] <= tol
        assert np.all(falls[:-2] > tol)  # the last but one may have ended the descent
        least = J[-1] if least is None else least
        assert J[-1] <= least + 100.0 * tol * abs(least)
        lengths.append(len(J))
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[0] > lengths[-1]


def test_the_history_has_what_each_step_of_an_acceleration_did():
    pairs = pairs_of("iris", 60)
    run = alternate(pairs)
    history, mu = run.history, pairs.resolve_unlabeled_weight("ratio")
    *earlier, last = history
    letters = {"mu": mu, "lam": 1.0, "eta": 1.0}
    of_7 = -paper.simplified_objective(*pair_lists(pairs), run.metric, **letters)
    assert run.status is Status.CERTIFIED
    assert run.message.startswith("J fell by")
    assert [iteration.number for iteration in history] == list(range(1, len(history) + 1))
    assert history[0].kind == last.kind == M_STEP
    assert {iteration.kind for iteration in earlier[1:]} == {DESCENT}
    assert last.relative_gap == run.m_step.relative_gap <= 1e-8
    assert earlier[-1].descent_value * (1.0 - 1e-6) <= last.descent_value
    assert last.trace == pytest.approx(np.trace(run.metric))
    assert last.rank == np.linalg.matrix_rank(run.metric, tol=1e-8 * np.trace(run.metric))
    assert last.descent_value == pytest.approx(descent_value(pairs, run.metric, mu, 1.0 + mu))
    assert last.paper_objective == pytest.approx(of_7, rel=1e-10)
    assert np.array_equal(run.metric, run.m_step.metric)
    assert run.m_step.status is Status.CERTIFIED
    assert certify(run.objective, run.metric).relative_gap <= 1.01e-8


@pytest.mark.parametrize(
    "settings",
    [{"solver": "CLARABEL", "tol": 1e-3, "m_step_tol": 1e-3}, {"unlabeled_weight": 0.0}],
    ids=str,
)
def test_without_newton_or_unlabeled_pairs_there_is_nothing_to_accelerate(settings):
    run = alternate(pairs_of("iris", 30), **settings)
    assert run.status is Status.CERTIFIED
    assert {step.kind for step in run.history} == {M_STEP}


@pytest.mark.parametrize("solver", ["fista", "projected-gradient"])
def test_failure_path_solvers_that_take_no_penalties_say_so_with_the_cure(solver):
    blocks, words = [Ridge(0.5)], rf'{solver} takes no penalties .*solver="newton".*Ridge\(0\.5\)'
    with pytest.raises(ValueError, match=words):
        alternate(pairs_of("iris", 24), solver=solver, penalties=blocks)


# Each M-step is as exact as it has to be


def listen(monkeypatch, change=lambda call, solution: solution):
    """The objective, goal, start and answer of every M-step, which is changed on the way."""
    solve, calls = MStepSolver.solve, []

    def heard(self, objective, goal, start):
        answer = change(len(calls) + 1, solve(self, objective, goal, start))
        calls.append((objective, goal, start, answer))
        return answer

    monkeypatch.setattr(MStepSolver, "solve", heard)
    return calls


@pytest.mark.parametrize(
    ("settings", "goals"),
    [
        ({"max_iter": 2, "tol": 1e-12}, [0.01, 1e-8]),
        ({"max_iter": 2, "accelerate": False}, [0.01, 1e-8]),
        ({"max_iter": 1, "m_step_tol": 1e-7}, [1e-7]),
        ({"max_iter": 2, "solver": "CLARABEL", "m_step_tol": 1e-4}, [1e-4, 1e-4]),
    ],
    ids=["descent", "two: the first is loose", "only one", "a conic solver's answers may raise J"],
)
def test_few_m_steps_are_not_silent_and_the_last_is_exact_all_the_same(
    monkeypatch, settings, goals
):
    calls, words = listen(monkeypatch), "ended after {max_iter} iterations? with status iteration_"
    with pytest.warns(NotCertified, match=words.format(**settings)) as caught:
        run = alternate(pairs_of("iris", 20), **settings)
    assert run.status is Status.ITERATION_LIMIT
    assert run.m_step.relative_gap <= goals[-1] or "solver" in settings
    assert [goal for _, goal, _, _ in calls] == goals
    assert [warning.filename for warning in caught] == [__file__]  # where it was called


# What ends a run early, and failure paths


@pytest.mark.parametrize("accelerate", [True, False])
def test_a_callback_sees_every_iteration_and_can_stop(accelerate):
    """The certificate is that of where it stands, also within a descent."""
    seen = []

    def stop_at_two(iteration, metric):
        seen.append((iteration.number, metric))
        return iteration.number == 2

    with pytest.warns(NotCertified, match="ended after 2 iterations .*the callback stopped it"):
        run = alternate(
            pairs_of("iris", 60), callback=stop_at_two, tol=1e-12, accelerate=accelerate
        )
    assert [number for number, _ in seen] == [1, 2]
    assert len(run.history) == 2
    assert run.history[-1].kind == (DESCENT if accelerate else M_STEP)
    assert run.status is Status.INTERRUPTED
    np.testing.assert_array_equal(run.metric, seen[-1][1])
    certificate = run.m_step.certificate
    assert certificate.primal_value == pytest.approx(run.objective.value(run.metric), rel=1e-9)
    if accelerate:
        assert certificate == certify_factor(run.objective, certificate.factor)
        np.testing.assert_allclose(run.objective.previous_metric, run.metric, rtol=1e-12)


def broken(solution):
    """As a conic solver fails: without a matrix."""
    failed = {"found": None, "certificate": None, "status": Status.FAILED}
    return replace(solution, **failed, message="The solver broke on purpose.")


def worse(solution):
    """As a conic solver's answer may be."""
    return replace(solution, found=1.5 * solution.metric)


@pytest.mark.parametrize(
    ("fault", "status", "words"),
    [
        (broken, Status.FAILED, "status failed.*broke on purpose"),
        (worse, Status.INACCURATE, r"inaccurate \(last M-st.*Raise max_iter, or tol\."),
    ],
)
def test_failure_path_the_metric_before_a_failure_is_kept(monkeypatch, fault, status, words):
    listen(monkeypatch, lambda call, solution: solution if call < 3 else fault(solution))
    with pytest.warns(NotCertified, match=f"after 2 iterations.*{words}"):
        run, metrics = alternate_listening(pairs_of("iris", 40), tol=1e-12, accelerate=False)
    assert run.status is status
    assert len(run.history) == len(metrics) == 2
    for metric in (run.metric, run.m_step.metric):
        np.testing.assert_array_equal(metric, metrics[-1])
    assert certify(run.objective, run.metric).primal_value == pytest.approx(run.m_step.value)


def test_failure_path_a_first_answer_is_taken_whatever_it_is(monkeypatch):
    listen(monkeypatch, lambda call, solution: worse(solution))
    with pytest.warns(NotCertified):
        run = alternate(pairs_of("iris", 40), max_iter=1)
    assert len(run.history) == 1


def test_failure_path_a_failing_first_m_step_leaves_nothing(monkeypatch):
    calls, pairs = listen(monkeypatch, lambda call, solution: broken(solution)), small_pairs()
    with pytest.warns(NotCertified, match="ended after 0 iterations"):
        run = alternate(pairs, accelerate=False)
    assert run.metric is None
    assert run.history == []
    assert len(calls) == 1  # nobody else stepped in
    with pytest.raises(RuntimeError, match="broke on purpose"):
        SERAPH(accelerate=False).fit(pairs.points, [0, 1] + [-1] * 6)


@pytest.mark.parametrize("unlabeled_weight", [0.0, "ratio"])
def test_failure_path_settings_none_and_post_have_no_optimum(unlabeled_weight):
    """Ten labels in 13 dimensions: the similar pairs do not span, so f falls for ever."""
    pairs = pairs_of("wine", 40)
    with pytest.raises(OptimumNotAttained, match="trace_weight > 0") as caught:
        alternate(pairs, unlabeled_weight=unlabeled_weight, trace_weight=0.0)
    u, pair = caught.value.direction, np.array([caught.value.pair])
    assert np.max(np.abs(paper.differences(pairs.points, pairs.similar) @ u)) <= 1e-5
    assert abs(paper.differences(pairs.points, pair) @ u) > 1e-2


@pytest.mark.slow
@pytest.mark.parametrize(("unlabeled_weight", "word"), [(0.0, "not attained"), ("ratio", "ended")])
def test_settings_none_and_post_run_when_asked_to_and_say_what_they_did(unlabeled_weight, word):
    """For post only the first M-step has no optimum: then q(+1) > 0 holds every direction."""
    settings = {"trace_weight": 0.0, "allow_unattained": True, "max_iter": 3, "tol": 1e-4}
    with pytest.warns(NotCertified, match=word):
        run = alternate(pairs_of("wine", 40), unlabeled_weight=unlabeled_weight, **settings)
    assert run.status is not Status.CERTIFIED
    assert np.all(np.isfinite(run.metric))
    assert -1e-12 <= run.m_step.relative_gap <= 1e-2  # near the infimum, and known to be


@pytest.mark.parametrize("arguments", [{"tol": 0.0}, {"max_iter": 0}, {"tol": -1.0}])
def test_failure_path_arguments_of_the_alternation(arguments):
    with pytest.raises(ValueError, match=next(iter(arguments))):
        alternate(pairs_of("iris", 40), **arguments)
