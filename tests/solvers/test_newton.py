"""Newton's method on the factor, and the small M-step that a large one starts from."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from instances import random_objective

from seraph_cvx import MStepObjective, NotCertified, PairSet, Status, certify, solve_m_step
from seraph_cvx.datasets import load, sample
from seraph_cvx.model import pair_program
from seraph_cvx.model.m_step_objective import descent_program
from seraph_cvx.solvers import gradient_steps, solution
from seraph_cvx.solvers.gradient_steps import Iterate
from seraph_cvx.solvers.newton import FactorSearch, SolverRun, subsampled_objective
from seraph_cvx.solvers.solution import gradient_method, newton_method

FISTA = partial(gradient_method, "fista")


def many_points(n=1300, m=4):
    """Three Gaussian classes, twelve labels."""
    rng = np.random.default_rng(0)
    classes = rng.integers(3, size=n)
    X = rng.normal(size=(n, m)) + np.eye(3, m)[classes]
    return MStepObjective(PairSet.from_labels(X, np.where(np.arange(n) < 12, classes, -1)))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("setting", ["proj", "hyper", "other"])
def test_newton_and_fista_alone_end_at_the_same_optimum(setting, seed):
    """Solver agreement by the certificate alone: each value within the other's interval."""
    objective = random_objective(seed, setting)
    with_newton, alone = newton_method(objective, tol=1e-9), FISTA(objective, tol=1e-9)
    assert with_newton.status is alone.status is Status.CERTIFIED
    assert alone.certificate.dual_value <= with_newton.value
    assert with_newton.certificate.dual_value <= alone.value
    assert with_newton.iterations < alone.iterations or alone.iterations < 30
    assert newton_method(objective, tol=1e-11).relative_gap <= 1e-11


def test_a_large_m_step_starts_from_a_small_one_and_is_certified():
    """The small M-step keeps every labeled pair, and the total weight of the other ones."""
    objective = many_points()
    small = subsampled_objective(objective)
    assert small.pairs.n_points == 400
    assert len(small.pairs.similar) == len(objective.pairs.similar)
    ends = [pairs.points[pairs.dissimilar] for pairs in (small.pairs, objective.pairs)]
    np.testing.assert_array_equal(*ends)
    total = objective.mu * objective.pairs.n_unlabeled
    assert small.mu * small.pairs.n_unlabeled == pytest.approx(total)
    assert subsampled_objective(random_objective(0, "hyper")) is None  # few points
    answer = solve_m_step(objective, tol=1e-8)
    assert answer.status is Status.CERTIFIED
    assert answer.evaluations < 40


def test_a_gap_that_only_rounding_keeps_open_is_said_to_be_so():
    """Raw breast cancer: features from 1e-3 to 4e3, a negligible trace weight."""
    X, y = load("breast_cancer")
    rows = np.random.default_rng(0).permutation(len(X))[:100]
    known = np.where(np.arange(100) < 20, y[rows], -1)
    objective = MStepObjective(
        PairSet.from_labels(X[rows], known), trace_weight=1e-3, unlabeled_weight=1.0
    )
    with pytest.warns(NotCertified, match="Rounding errors hide the rest of the gap"):
        answer = solve_m_step(objective, tol=1e-10)
    assert answer.status is Status.ROUNDING_LIMIT
    assert answer.status.reached_tolerance
    assert "standardize" not in answer.message
    assert answer.solver_status in ("gap closed to rounding", "no further progress")
    assert 1e-10 < answer.relative_gap < 1e-6
    assert answer.iterations < 1000


def test_rounding_is_not_taken_for_a_direction():
    """60 standardized digits: 50 directions, and 14 features that do not vary at all."""
    X, y = load("digits")
    drawn = sample("digits", X[y < 3], y[y < 3], n_points=60)
    objective = MStepObjective(PairSet.from_labels(drawn.X, drawn.y), unlabeled_weight=0.01)
    assert np.max(np.linalg.norm(objective.moments.whitening, axis=0)) < 1e6
    assert solve_m_step(objective).status is Status.CERTIFIED


@pytest.fixture
def few_pairs(monkeypatch):
    """Second derivatives are of pairs that are drawn at random."""
    return lambda: monkeypatch.setattr(pair_program, "FINE_POINTS", 600)


def is_estimate(point, rough):
    """Whether second derivatives are estimated by some of the pairs."""
    return isinstance(point.make_hessian(rough), pair_program._SampledHessian)


def test_second_derivatives_of_some_pairs_are_near_those_of_all(few_pairs):
    """Value, slope and gradient are of all points, streamed."""
    L, D = np.random.default_rng(0).normal(size=(2, 4, 2))
    kept = many_points().program.at(L)
    whole, rough = kept.hessian_product(D), kept.hessian_product(D, rough=True)
    assert not is_estimate(kept, False)
    assert is_estimate(kept, True)
    few_pairs()
    streamed = many_points().program.at(L)
    assert is_estimate(streamed, False)
    for product in (streamed.hessian_product(D), rough):
        assert 1e-9 < np.linalg.norm(product - whole) / np.linalg.norm(whole) < 0.1
    assert streamed.value == pytest.approx(kept.value, rel=1e-12)
    for name in ("factor_gradient", "gradient"):
        expected = getattr(kept, name)
        size = np.max(np.abs(expected))
        np.testing.assert_allclose(getattr(streamed, name), expected, rtol=0.0, atol=1e-11 * size)


@pytest.mark.parametrize("kind", ["m-step", "J", "many labels", "only labels", "confidences"])
def test_the_preconditioner_is_near_the_hessian(kind):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1300, 4)), np.where(np.arange(1300) < 40, np.arange(1300) % 3, -1)
    if kind in ("many labels", "only labels"):
        y = np.where(np.arange(1300) < 1200, np.arange(1300) % 3, -1)
    pairs = PairSet.from_labels(X, y)
    if kind == "confidences":
        listed = pairs.similar, pairs.dissimilar
        c = [rng.uniform(0.5, 2.0, size=len(some)) for some in listed]
        pairs = PairSet.from_constraints(
            X, *listed, similar_confidence=c[0], dissimilar_confidence=c[1]
        )
    mu = 0.0 if kind == "only labels" else 0.1
    objective = MStepObjective(pairs, unlabeled_weight=mu)
    program = descent_program(objective) if kind == "J" else objective.program
    here = program.at(0.3 * rng.normal(size=(4, 2)))
    D = rng.normal(size=(4, 2))
    exact = here.hessian_product(D)
    estimate = (program.preconditioner(here) @ D.ravel()).reshape(D.shape)
    assert 1e-9 < np.linalg.norm(estimate - exact) / np.linalg.norm(exact) < 0.2


@pytest.mark.parametrize("m", [4, 12])
def test_second_derivatives_of_some_pairs_take_hardly_more_steps(m, few_pairs):
    """Errors of the sample must not make them indefinite where the gradient is zero."""
    with_all = solve_m_step(many_points(m=m))
    few_pairs()
    with_some = solve_m_step(many_points(m=m))
    assert with_all.status is with_some.status is Status.CERTIFIED
    assert with_some.iterations <= 2 * with_all.iterations


@pytest.mark.parametrize(
    "method", [newton_method, FISTA, partial(gradient_method, "projected-gradient")]
)
def test_an_answer_worse_than_the_start_is_the_start(method, monkeypatch):
    """Values are compared that come by one formula; the start is handed back as it is."""
    objective = random_objective(0, "hyper")
    start = solve_m_step(objective, tol=1e-12).metric

    def worse(evaluate, onto_set, now, L, accelerated):
        B = 4.0 * now.B
        return Iterate(B, B, *evaluate(B)), L

    monkeypatch.setattr(gradient_steps, "projected_step", worse)

    def gives_up(objective, *_, **__):
        return SolverRun(certify(objective, start), False, 0, 0, 0.0, "gave up")

    monkeypatch.setattr(solution, "newton", gives_up)
    answer = method(objective, tol=1e-300, max_iter=1, start=start)
    np.testing.assert_array_equal(answer.metric, start)
    assert answer.certificate.primal_value == certify(objective, start).primal_value
    assert answer.relative_gap <= certify(objective, start).relative_gap


def test_the_rank_grows_only_along_a_negative_eigenvalue_of_the_gradient():
    objective = random_objective(0, "hyper")
    for share, grows in ((0.5, True), (1.01, False)):
        problem = objective.with_trace_weight(share * objective.critical_trace_weight)
        search = FactorSearch(problem.whitened_program, tol=1e-8)
        found = search.run(np.zeros((4, 0)))
        assert (found.L.shape[1] > 0) is (search.steps > 0) is grows


def test_a_local_minimum_of_too_small_a_rank_is_left():
    """From the best metric of rank 1 the search goes on to the optimum, whose rank is larger."""
    objective = random_objective(0, "hyper", m=6, trace_weight=0.05)
    program = objective.whitened_program
    optimum = solve_m_step(objective, tol=1e-10)
    rank = np.linalg.matrix_rank(optimum.metric, tol=1e-6)
    assert rank > 1
    search = FactorSearch(program, tol=1e-10)
    search._with_new_columns = lambda *_: None
    stuck = search.run(np.random.default_rng(0).normal(size=(6, 1)))
    assert stuck.steepness < 1e-9
    assert stuck.value > optimum.value + 1e-6
    assert np.linalg.eigvalsh(stuck.gradient)[0] < -1e-6
    found = FactorSearch(program, tol=1e-10).run(stuck.L)
    assert found.value == pytest.approx(optimum.value, rel=1e-9)


def test_a_start_as_good_as_the_answer_to_rounding_does_not_replace_it():
    """f is flat at its optimum: a metric 1e-8 away has the same value, and a larger gap."""
    rng = np.random.default_rng(0)
    for _ in range(10):
        X = np.vstack([rng.normal(size=(4, 2)), rng.normal(size=(4, 2)) + 2.0])
        objective = MStepObjective(
            PairSet.from_labels(X, [0, -1, -1, 0, 1, 1, -1, -1]), trace_weight=0.0015
        )
        best = solve_m_step(objective, tol=1e-10).metric
        for share in (-1e-7, -1e-8, 1e-9, 1e-8, 3e-8, 1e-7):
            answer = newton_method(objective, tol=1e-9, start=(1.0 + share) * best)
            assert answer.relative_gap <= 1e-9
