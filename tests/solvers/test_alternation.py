"""Evidence: J falls along the alternation, the direct method's values fall, and both fail aloud."""

from __future__ import annotations

import time
import warnings
from dataclasses import FrozenInstanceError, fields, replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import expit

import seraph_cvx.fit.alternation
from seraph_cvx import (
    SERAPH,
    MStepObjective,
    NotCertified,
    OptimumNotAttained,
    PairSet,
    Status,
    alternate,
    certify,
)
from seraph_cvx.certificate.certify import certify_factor
from seraph_cvx.datasets import load, load_sampling, sample
from seraph_cvx.fit.direct import minimize_directly
from seraph_cvx.fit.steps import StepKind
from seraph_cvx.model.semi_supervised import SemiSupervisedObjective, descent_values
from seraph_cvx.solvers.solution import MStepSolution

WEIGHTS = np.geomspace(0.01, 10.0, 5).tolist()


def pairs_of(name, n_points, seed=0):
    if name == "digits":
        X, y = load("digits")
        drawn = sample("digits", X[y < 3], y[y < 3], n_points=n_points, seed=seed)
    else:
        drawn = load_sampling(name, n_points=n_points, seed=seed)
    return PairSet.from_labels(drawn.X, drawn.y)


def descent_value(pairs, A, mu, sharpness):
    """min_q J(q, A) by the Renyi entropy, lambda = eta = 1, sharing no code with the package."""

    def scores(rows):
        V = pairs.points[rows[:, 0]] - pairs.points[rows[:, 1]]
        return np.einsum("ki,ij,kj->k", V, A, V) - 1.0

    labeled = np.logaddexp(0.0, scores(pairs.similar)).sum()
    labeled += np.logaddexp(0.0, -scores(pairs.dissimilar)).sum()
    s, a = scores(pairs.unlabeled), sharpness
    log_sum = np.logaddexp(-a * np.logaddexp(0.0, s), -a * np.logaddexp(0.0, -s))
    return labeled + np.trace(A) - mu / a * log_sum.sum()


def assert_J_never_rises(pairs, mu, sharpness=None, max_iter=30):
    for accelerate in (True, False):
        assert_J_never_rises_at(accelerate, pairs, mu, sharpness, max_iter)


def assert_J_never_rises_at(accelerate, pairs, mu, sharpness, max_iter):
    metrics = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCertified)  # thirty iterations need not be enough
        run = alternate(
            pairs,
            unlabeled_weight=mu,
            sharpness=sharpness,
            tol=1e-14,
            max_iter=max_iter,
            callback=lambda iteration, metric: metrics.append(metric) or False,
            accelerate=accelerate,
        )
    ended = (Status.CERTIFIED, Status.ITERATION_LIMIT)
    only_rounding = run.m_step.solver_status == "gap closed to rounding"
    assert run.status in ended or (only_rounding and run.m_step.relative_gap < 1e-6), run.message
    assert len(run.history) == len(metrics) >= 3
    a = 1.0 + mu if sharpness is None else sharpness
    values = [descent_value(pairs, metric, mu, a) for metric in metrics]
    for iteration, value in zip(run.history, values, strict=True):
        assert iteration.descent_value == pytest.approx(value, rel=1e-9)
    for (before, after), iteration in zip(pairwise(values), run.history[1:], strict=True):
        gap = 0.0 if iteration.kind == StepKind.DESCENT else iteration.relative_gap
        allowed = gap * max(1.0, abs(before)) + 1e-11 * abs(before)
        assert after <= before + allowed
    assert values[-1] < values[0]


@pytest.mark.parametrize("mu", [0.01, 10.0])
@pytest.mark.parametrize("name", ["iris", "wine"])
def test_descent_J_never_rises(name, mu):
    assert_J_never_rises(pairs_of(name, 45), mu)


def test_descent_J_never_rises_with_another_sharpness():
    assert_J_never_rises(pairs_of("iris", 45), 0.5, sharpness=3.0)


@pytest.mark.slow
@pytest.mark.parametrize("mu", WEIGHTS)
@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer", "balance", "digits"])
def test_descent_J_never_rises_on_five_data_sets_and_five_weights(name, mu):
    assert_J_never_rises(pairs_of(name, 60), mu)


def test_history_has_what_each_iteration_did():
    pairs = pairs_of("iris", 50)
    run = alternate(pairs)
    assert run.status is Status.CERTIFIED
    assert run.message == ""
    assert [iteration.number for iteration in run.history] == list(range(1, len(run.history) + 1))
    last = run.history[-1]
    assert last.relative_gap <= 1e-8
    assert last.relative_gap == run.m_step.relative_gap
    assert last.trace == pytest.approx(np.trace(run.metric))
    assert last.rank == np.linalg.matrix_rank(run.metric, tol=1e-8 * np.trace(run.metric))
    assert all(iteration.seconds > 0.0 for iteration in run.history)
    assert all(iteration.m_step_iterations >= 0 for iteration in run.history)
    mu = pairs.resolve_unlabeled_weight("ratio")
    assert last.descent_value == pytest.approx(descent_value(pairs, run.metric, mu, 1.0 + mu))
    paper = SemiSupervisedObjective(MStepObjective(pairs))
    assert last.paper_objective == pytest.approx(paper.value(run.metric), rel=1e-10)
    fall = run.history[-2].descent_value - last.descent_value
    assert fall <= 1e-6 * max(1.0, abs(last.descent_value))


def test_the_last_m_step_is_certified_at_the_returned_metric():
    run = alternate(pairs_of("iris", 50))
    assert np.array_equal(run.metric, run.m_step.metric)
    assert certify(run.objective, run.metric).relative_gap <= 1.01e-8
    assert run.m_step.status is Status.CERTIFIED


def test_the_alternation_ends_at_a_fixed_point():
    """One more E-step and M-step from the end lowers J by no more than was asked for."""
    pairs = pairs_of("iris", 50)
    run = alternate(pairs, tol=1e-9)
    mu = pairs.resolve_unlabeled_weight("ratio")
    next_step = MStepObjective(pairs, previous_metric=run.metric)
    assert certify(next_step, run.metric).relative_gap <= 1e-5
    assert descent_value(pairs, run.metric, mu, 1.0 + mu) == pytest.approx(
        run.history[-1].descent_value, rel=1e-10
    )


def test_callback_sees_every_iteration_and_can_stop():
    seen = []

    def stop_at_two(iteration, metric):
        seen.append((iteration.number, metric.shape))
        return iteration.number == 2

    with pytest.warns(NotCertified, match="ended after 2 iterations"):
        run = alternate(pairs_of("iris", 40), callback=stop_at_two, tol=1e-12)
    assert seen == [(1, (4, 4)), (2, (4, 4))]
    assert len(run.history) == 2
    assert run.status is Status.INTERRUPTED


def test_failure_path_iteration_limit_is_not_silent():
    with pytest.warns(NotCertified, match="ended after 2 iterations with status iteration_limit"):
        run = alternate(pairs_of("iris", 40), max_iter=2, tol=1e-12)
    assert run.status is Status.ITERATION_LIMIT
    assert run.m_step.relative_gap <= 1e-8  # the last M-step is exact all the same


def break_after(monkeypatch, good_steps):
    """From then on the M-step solver fails as a conic solver does: without a matrix."""
    solver = seraph_cvx.fit.alternation.MStepSolver
    solve, calls = solver.solve, []

    def failing(self, *arguments, **settings):
        calls.append(1)
        if len(calls) <= good_steps:
            return solve(self, *arguments, **settings)
        nothing = (None, np.nan, None, Status.FAILED, "fista", "broken", 0, 0.0)
        return MStepSolution(*nothing, message="The solver broke on purpose.")

    monkeypatch.setattr(solver, "solve", failing)
    return calls


def test_failure_path_a_failing_m_step_leaves_the_last_good_metric(monkeypatch):
    metrics = []
    break_after(monkeypatch, 2)
    with pytest.warns(NotCertified, match="status failed.*broke on purpose"):
        run = alternate(
            pairs_of("iris", 40),
            tol=1e-12,
            callback=lambda _, metric: metrics.append(metric),
            accelerate=False,
        )
    assert run.status is Status.FAILED
    assert len(run.history) == 2
    assert np.array_equal(run.metric, metrics[-1])
    assert "broke on purpose" in run.message


def listen(monkeypatch, change=lambda call, solution: solution):
    """The goal and the start of every M-step, whose answer is changed on the way."""
    solver = seraph_cvx.fit.alternation.MStepSolver
    solve, asked = solver.solve, []

    def heard(self, objective, goal, start):
        asked.append((goal, start))
        return change(len(asked), solve(self, objective, goal, start))

    monkeypatch.setattr(solver, "solve", heard)
    return asked


def small_pairs():
    """Eight points in two heaps: J ends below 1, so that its fall is not relative to it."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(4, 2)), rng.normal(size=(4, 2)) + 3.0])
    return PairSet.from_labels(X, [0, -1, -1, -1, 1, 1, -1, -1])


@pytest.mark.parametrize(
    ("pairs", "trace_weight"), [(pairs_of("iris", 40), 1.0), (small_pairs(), 0.01)]
)
def test_an_m_step_is_as_exact_as_the_last_descent_of_j_and_the_last_one_as_asked_for(
    monkeypatch, pairs, trace_weight
):
    asked, metrics = listen(monkeypatch), []
    run = alternate(
        pairs,
        trace_weight=trace_weight,
        callback=lambda _, metric: metrics.append(metric),
        accelerate=False,
    )
    goals, starts = zip(*asked, strict=True)
    values = [iteration.descent_value for iteration in run.history]
    assert len(goals) == len(values) >= 4
    assert goals[0] == 0.01
    for k in range(1, len(goals)):
        before = values[k - 2] if k > 1 else np.inf
        fall = (before - values[k - 1]) / max(1.0, abs(values[k - 1]))
        expected = 1e-8 if fall <= 1e-6 else max(1e-8, 0.1 * min(fall, 0.1))
        assert goals[k] == pytest.approx(expected, rel=1e-9, abs=0.0)
    assert gaps(run)[-1] <= 1e-8 < goals[1]
    assert starts[0] is None
    assert all(start is metric for start, metric in zip(starts[1:], metrics, strict=False))
    assert all(gap <= goal for gap, goal in zip(gaps(run), goals, strict=True))


def gaps(run):
    return [iteration.relative_gap for iteration in run.history]


def test_of_two_m_steps_the_first_is_loose(monkeypatch):
    asked = listen(monkeypatch)
    with pytest.warns(NotCertified) as told:
        alternate(pairs_of("iris", 40), max_iter=2, accelerate=False)
    assert [goal for goal, _ in asked] == [0.01, 1e-8]
    assert [warning.filename for warning in told] == [__file__]  # where it was called


def test_an_alternation_and_its_history_cannot_be_changed():
    run = alternate(small_pairs())
    assert run != replace(run)
    for made in (run, run.history[0]):
        with pytest.raises(FrozenInstanceError):
            setattr(made, fields(made)[0].name, None)


def test_a_single_m_step_is_as_exact_as_asked_for(monkeypatch):
    asked = listen(monkeypatch)
    with pytest.warns(NotCertified):
        alternate(pairs_of("iris", 40), max_iter=1, m_step_tol=1e-7)
    assert [goal for goal, _ in asked] == [1e-7]


def test_a_conic_solver_is_always_asked_for_all_since_its_answers_may_raise_j(monkeypatch):
    asked = listen(monkeypatch)
    alternate(pairs_of("iris", 20), solver="CLARABEL", m_step_tol=1e-4, tol=1e-2)
    assert {goal for goal, _ in asked} == {1e-4}


def test_failure_path_an_answer_that_raises_j_is_not_taken(monkeypatch):
    """As that of a conic solver may; J may rise by rounding, no more."""

    def worse(call, solution):
        return solution if call < 3 else replace(solution, metric=1.5 * solution.metric)

    listen(monkeypatch, worse)
    metrics = []
    with pytest.warns(NotCertified, match=r"after 2 iterations with status inaccurate \(last M-st"):
        run = alternate(
            pairs_of("iris", 40),
            tol=1e-12,
            callback=lambda _, metric: metrics.append(metric),
            accelerate=False,
        )
    assert run.status is Status.INACCURATE
    assert len(run.history) == 2
    assert np.array_equal(run.metric, metrics[-1])
    assert np.array_equal(run.m_step.metric, metrics[-1])
    assert certify(run.objective, run.metric).primal_value == pytest.approx(run.m_step.value)
    assert "Raise max_iter, or tol." in run.message


def test_failure_path_a_first_answer_is_taken_whatever_it_is(monkeypatch):
    listen(monkeypatch, lambda call, solution: replace(solution, metric=3.0 * solution.metric))
    with pytest.warns(NotCertified):
        run = alternate(pairs_of("iris", 40), max_iter=1)
    assert len(run.history) == 1


def test_the_history_tells_the_work_of_each_m_step(monkeypatch):
    answers = []
    listen(monkeypatch, lambda call, solution: answers.append(solution) or solution)
    started = time.perf_counter()
    run = alternate(pairs_of("iris", 40), accelerate=False)
    elapsed = time.perf_counter() - started
    for iteration, answer in zip(run.history, answers, strict=True):
        assert iteration.m_step_iterations == answer.iterations
        assert iteration.evaluations == answer.evaluations > 0
        assert iteration.solver_seconds == answer.solver_seconds
        assert iteration.seconds >= answer.seconds
    assert 0.0 < sum(iteration.seconds for iteration in run.history) <= elapsed


def test_an_m_step_takes_over_the_sums_of_the_one_before(monkeypatch):
    objectives = []
    solver = seraph_cvx.fit.alternation.MStepSolver
    solve = solver.solve

    def heard(self, objective, *more):
        objectives.append(objective)
        return solve(self, objective, *more)

    monkeypatch.setattr(solver, "solve", heard)
    alternate(pairs_of("iris", 40), sharpness=2.0, threshold=0.9, accelerate=False)
    assert len({id(objective.moments) for objective in objectives}) == 1
    assert len({id(objective.sums) for objective in objectives}) == 1
    assert [objective.previous_metric is None for objective in objectives[:2]] == [True, False]


def test_failure_path_a_failing_first_m_step_leaves_nothing(monkeypatch):
    calls = break_after(monkeypatch, 0)
    with pytest.warns(NotCertified, match="ended after 0 iterations"):
        run = alternate(pairs_of("iris", 40), accelerate=False)
    assert run.metric is None
    assert run.history == []
    assert len(calls) == 1  # nobody else stepped in
    pairs = pairs_of("iris", 40)
    with pytest.raises(RuntimeError, match="broke on purpose"):
        SERAPH(accelerate=False).fit(pairs.points, [0, 1] + [-1] * 38)


@pytest.mark.parametrize("unlabeled_weight", [0.0, "ratio"])
def test_failure_path_settings_none_and_post_have_no_optimum(unlabeled_weight):
    """Ten labels in 13 dimensions: the similar pairs do not span, so f falls for ever."""
    pairs = pairs_of("wine", 40)
    with pytest.raises(OptimumNotAttained, match="trace_weight > 0") as caught:
        alternate(pairs, unlabeled_weight=unlabeled_weight, trace_weight=0.0)
    u, (i, j) = caught.value.direction, caught.value.pair
    similar, stretched = pairs.similar, pairs.points[i] - pairs.points[j]
    span = pairs.points[similar[:, 0]] - pairs.points[similar[:, 1]]
    assert np.max(np.abs(span @ u)) <= 1e-5
    assert abs(stretched @ u) > 1e-2


@pytest.mark.slow
@pytest.mark.parametrize(("unlabeled_weight", "word"), [(0.0, "not attained"), ("ratio", "ended")])
def test_settings_none_and_post_run_when_asked_to_and_say_what_they_did(unlabeled_weight, word):
    """For post only the first M-step has no optimum: then q(+1) > 0 holds every direction."""
    with pytest.warns(NotCertified, match=word):
        run = alternate(
            pairs_of("wine", 40),
            unlabeled_weight=unlabeled_weight,
            trace_weight=0.0,
            allow_unattained=True,
            max_iter=3,
            tol=1e-4,
        )
    assert run.status is not Status.CERTIFIED
    assert np.all(np.isfinite(run.metric))
    assert -1e-12 <= run.m_step.relative_gap <= 1e-2  # near the infimum, and known to be


@pytest.mark.parametrize("arguments", [{"tol": 0.0}, {"max_iter": 0}, {"tol": -1.0}])
def test_failure_path_arguments_of_the_alternation(arguments):
    with pytest.raises(ValueError, match=next(iter(arguments))):
        alternate(pairs_of("iris", 40), **arguments)


def whitened_optimality(pairs, A, **weights):
    """<g, A> and the least eigenvalue of g at A, both zero (or above) at a stationary point."""
    objective = MStepObjective(pairs, **weights)
    value, gradient = SemiSupervisedObjective(objective).value_and_gradient(A)
    return np.vdot(gradient, A) / max(1.0, abs(value)), np.linalg.eigvalsh(gradient)[0]


@pytest.mark.parametrize("unlabeled_weight", [0.0, "ratio", 1.0])
@pytest.mark.parametrize("name", ["iris", "balance"])
def test_direct_values_rise_by_rounding_at_most_and_the_end_is_stationary(name, unlabeled_weight):
    pairs = pairs_of(name, 40)
    found = minimize_directly(pairs, unlabeled_weight=unlabeled_weight, tol=1e-7)
    assert found.status is Status.STATIONARY
    assert found.stationarity <= 1e-7
    rounding = 2e-14 * (found.values[0] + 2.0 * len(pairs.similar))  # of the terms of the sum
    assert np.all(np.diff(found.values) <= rounding)
    assert found.values[-1] < found.values[0]
    assert found.iterations == len(found.values) - 1
    assert np.linalg.eigvalsh(found.metric)[0] >= -1e-12
    slackness, least = whitened_optimality(pairs, found.metric, unlabeled_weight=unlabeled_weight)
    assert abs(slackness) <= 2e-3
    assert least >= -1e-2
    objective = SemiSupervisedObjective(MStepObjective(pairs, unlabeled_weight=unlabeled_weight))
    assert found.value == pytest.approx(objective.value(found.metric), rel=1e-12)


@pytest.mark.parametrize("name", ["wine", "iris"])
def test_direct_is_not_content_where_the_objective_still_falls(name):
    """A stationarity within the default tol leaves next to nothing to gain, however many pairs."""
    pairs = pairs_of(name, 100)
    found = minimize_directly(pairs, unlabeled_weight=1.0)
    further = minimize_directly(pairs, unlabeled_weight=1.0, start=found.metric, tol=1e-9)
    assert found.value <= further.value * (1.0 + 1e-3)


def test_direct_with_no_unlabeled_weight_is_the_certified_supervised_problem():
    """mu = 0 makes (7) convex: the direct method must reach the M-step's certified optimum."""
    pairs = pairs_of("iris", 40)
    found = minimize_directly(pairs, unlabeled_weight=0.0, tol=1e-8)
    assert certify(MStepObjective(pairs, unlabeled_weight=0.0), found.metric).relative_gap <= 1e-6


def test_direct_starts_from_the_given_metric():
    pairs = pairs_of("iris", 40)
    objective = SemiSupervisedObjective(MStepObjective(pairs))
    default, start = minimize_directly(pairs), np.diag([3.0, 0.1, 2.0, 0.0])
    assert default.values[0] == pytest.approx(objective.value(np.eye(4)), rel=1e-12)
    given = minimize_directly(pairs, start=start)
    assert given.values[0] == pytest.approx(objective.value(start), rel=1e-12)
    again = minimize_directly(pairs, start=default.metric, tol=1e-5)
    assert again.iterations == 0
    assert again.metric == pytest.approx(default.metric, rel=1e-12)


def test_direct_lowers_the_papers_objective_further_than_the_alternation():
    """DESIGN: the paper's EM is not an ascent on (7); from its end the direct method goes on."""
    pairs = pairs_of("iris", 60)
    run = alternate(pairs)
    direct = minimize_directly(pairs, start=run.metric)
    assert direct.value < run.history[-1].paper_objective - 1e-3


def test_failure_path_direct_start_that_is_no_metric():
    with pytest.raises(ValueError, match="start is not positive semidefinite"):
        minimize_directly(pairs_of("iris", 40), start=-np.eye(4))


def test_direct_iteration_limit_is_told():
    found = minimize_directly(pairs_of("iris", 40), max_iter=2, tol=1e-10)
    assert found.status is Status.ITERATION_LIMIT
    assert found.iterations == 2


def test_closed_form_direct_on_one_unlabeled_pair():
    """One similar pair at distance 0 and an unlabeled one: only lambda a + mu H(p(a)) is left."""
    pairs = PairSet.from_constraints([[0.0], [0.0], [2.0]], [(0, 1)], [])
    found = minimize_directly(pairs, unlabeled_weight=1.0, trace_weight=0.1, tol=1e-10)
    a = found.metric[0, 0]
    s = 4.0 * a - 1.0
    slope = 0.1 + 2.0 * 4.0 * -s * expit(s) * expit(-s)
    assert abs(slope) <= 1e-6
    assert a > 0.25


# Accelerated


@pytest.mark.parametrize(
    ("name", "sharpness"),
    [
        ("iris", None),
        ("iris", 2.0),
        ("balance", None),
        ("balance", 2.0),
        pytest.param("wine", None, marks=pytest.mark.slow),
        pytest.param("wine", 2.0, marks=pytest.mark.slow),
        pytest.param("breast_cancer", None, marks=pytest.mark.slow),
        pytest.param("breast_cancer", 2.0, marks=pytest.mark.slow),
    ],
)
def test_acceleration_ends_at_a_certified_fixed_point_with_no_larger_j(name, sharpness):
    pairs = pairs_of(name, 60)
    plain = alternate(pairs, sharpness=sharpness, tol=1e-9, accelerate=False)
    quick = alternate(pairs, sharpness=sharpness)
    assert quick.status is plain.status is Status.CERTIFIED
    last = plain.history[-1].descent_value
    assert quick.history[-1].descent_value <= last + 1e-6 * max(1.0, abs(last))
    own = MStepObjective(pairs, previous_metric=quick.metric, sharpness=sharpness)
    assert certify(own, quick.metric).relative_gap <= 1e-8
    assert len(quick.history) < 40


def test_the_history_of_an_acceleration_tells_of_both_kinds_of_step():
    run = alternate(pairs_of("iris", 60))
    history = run.history
    kinds = [iteration.kind for iteration in history]
    assert kinds[0] == kinds[-1] == StepKind.M_STEP
    assert set(kinds[1:-1]) == {StepKind.DESCENT}
    assert history[-1].relative_gap <= 1e-8
    assert all(np.isinf(iteration.relative_gap) for iteration in history[:-1])
    assert all(iteration.evaluations > 0 for iteration in history[:-1])
    assert history[-1].paper_objective == pytest.approx(
        descent_values(run.objective, run.metric)[1], rel=1e-12
    )
    assert history[-1].evaluations == 0  # the certificate closed where the descent ended
    assert history[-1].descent_value == history[-2].descent_value


def test_an_acceleration_that_is_stopped_has_the_certificate_of_where_it_stands():
    metrics = []

    def stop(iteration, metric):
        metrics.append(metric)
        return iteration.kind == StepKind.DESCENT

    pairs = pairs_of("iris", 60)
    with pytest.warns(NotCertified, match="ended after 2 iterations .*the callback stopped it"):
        run = alternate(pairs, callback=stop)
    assert run.status is Status.INTERRUPTED
    np.testing.assert_array_equal(run.metric, metrics[-1])
    certificate = run.m_step.certificate
    assert certificate == certify_factor(run.objective, certificate.factor)
    np.testing.assert_allclose(certificate.metric, run.metric, rtol=1e-12)
    np.testing.assert_allclose(run.objective.previous_metric, run.metric, rtol=1e-12)


def test_a_conic_solver_is_asked_for_every_m_step():
    run = alternate(pairs_of("iris", 30), solver="CLARABEL", m_step_tol=1e-6, polish=True)
    kinds = {step.kind for step in run.history}
    assert kinds == {StepKind.M_STEP}


def test_without_unlabeled_pairs_there_is_nothing_to_accelerate():
    run = alternate(pairs_of("iris", 40), unlabeled_weight=0.0)
    assert run.status is Status.CERTIFIED
    assert {step.kind for step in run.history} == {StepKind.M_STEP}
