"""Evidence: every formula equals its double loop, its other form, and its CVXPY statement."""

from __future__ import annotations

import sys
from dataclasses import replace

import naive
import numpy as np
import pytest
from instances import (
    SETTINGS,
    explicit_soft_labels,
    random_objective,
    random_pairs,
    random_psd,
    with_block_size,
)

import seraph_cvx.engine.pair_sums
from seraph_cvx import MStepObjective, e_step, state_m_step
from seraph_cvx.m_step.statement import build_statement, textbook_statement
from seraph_cvx.model.posterior import binary_entropy, posterior_entropy, soft_label
from seraph_cvx.model.semi_supervised import SemiSupervisedObjective, descent_values

SIZES = [(2, 1), (3, 5), (15, 3), (40, 12)]
SOFT_LABELS = ["start", "random", "streamed"]


def naive_m_step(objective, A):
    return naive.m_step(
        objective.pairs,
        explicit_soft_labels(objective),
        objective.mu,
        objective.trace_weight,
        objective.threshold,
        A,
    )


def assert_same(actual, expected, tolerance=1e-10):
    error = np.linalg.norm(np.asarray(actual) - np.asarray(expected))
    assert error <= tolerance * max(1.0, np.linalg.norm(expected))


def objective_of_size(seed, setting, q, n, m):
    pairs = random_pairs(seed, n=n, m=m, n_labeled=max(1, min(12, n * (n - 1) // 2 - 1)))
    rng = np.random.default_rng([seed, 2])
    arguments = dict(SETTINGS[setting])
    if q == "random":
        arguments["soft_labels"] = rng.random(pairs.n_unlabeled)
    elif q == "streamed":
        arguments["previous_metric"] = random_psd(rng, m)
    return MStepObjective(pairs, **arguments)


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("q", SOFT_LABELS)
@pytest.mark.parametrize(("n", "m"), SIZES)
def test_formulas_agree_m_step_and_its_printed_gradient_with_a_double_loop(setting, q, n, m):
    for seed in range(2):
        objective = objective_of_size(seed, setting, q, n, m)
        A = random_psd(np.random.default_rng(seed), m, size=2.0)
        value, gradient = naive_m_step(objective, A)
        assert_same(objective.value(A), value)
        assert_same(objective.gradient(A), gradient)
        both = objective.value_and_gradient(A)
        assert_same(both[0], value)
        assert_same(both[1], gradient)


@pytest.mark.parametrize("setting", ["post", "hyper", "other"])
@pytest.mark.parametrize("q", SOFT_LABELS)
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_formulas_agree_when_the_pairs_are_swept_in_many_blocks(setting, q, n_jobs):
    whole = random_objective(5, setting, q=q, n=40, m=3, n_jobs=n_jobs)
    blocks = with_block_size(whole, 7)
    A = random_psd(np.random.default_rng(0), 3, size=2.0)
    value, gradient = naive_m_step(whole, A)
    assert_same(blocks.value(A), value)
    assert_same(blocks.gradient(A), gradient)
    for name in ("pair_moment", "recession_matrix", "recession_total", "soft_label_entropy"):
        assert_same(getattr(blocks, name), getattr(whole, name))
    for name in ("lipschitz_bound", "smoothness_bound", "critical_trace_weight"):
        assert_same(getattr(blocks, name), getattr(whole, name))
    assert_same(descent_values(blocks, A), descent_values(whole, A))
    assert_same(
        SemiSupervisedObjective(blocks).value_and_gradient(A)[1],
        SemiSupervisedObjective(whole).value_and_gradient(A)[1],
    )


@pytest.mark.parametrize("setting", ["proj", "hyper"])
def test_formulas_agree_when_the_pairs_are_listed_in_many_chunks(setting, monkeypatch):
    """CHUNK numbers at a time: 5 rows of 4 features, of the labeled pairs and of the E-step's."""
    whole = random_objective(6, setting, q="streamed")
    A = random_psd(np.random.default_rng(0), 4, size=2.0)
    value, gradient = whole.value_and_gradient(A)
    q = e_step(whole.pairs, A)
    for room in (seraph_cvx.engine.pair_sums, sys.modules["seraph_cvx.model.e_step"]):
        monkeypatch.setattr(room, "CHUNK", 20)
    chunks = replace(whole, pairs=replace(whole.pairs))
    assert_same(chunks.value(A), value, 1e-12)
    assert_same(chunks.gradient(A), gradient, 1e-12)
    assert_same(chunks.recession_matrix, whole.recession_matrix, 1e-12)
    assert_same(e_step(whole.pairs, A), q, 1e-12)


def test_formulas_agree_whatever_the_origin_of_the_points():
    near, far = random_pairs(3), random_pairs(3, shift=1e3)
    A = random_psd(np.random.default_rng(0), 4)
    assert_same(MStepObjective(far).value(A), MStepObjective(near).value(A), 1e-9)
    assert_same(MStepObjective(far).gradient(A), MStepObjective(near).gradient(A), 1e-9)


@pytest.mark.parametrize("setting", ["post", "hyper", "other"])
@pytest.mark.parametrize("sharpness", [None, 0.5, 2.0])
def test_formulas_agree_streamed_soft_labels_with_those_of_the_e_step(setting, sharpness):
    rng = np.random.default_rng(0)
    pairs = random_pairs(2, n=25)
    previous, A = random_psd(rng, 4, size=2.0), random_psd(rng, 4)
    weights = SETTINGS[setting]
    streamed = MStepObjective(pairs, previous_metric=previous, sharpness=sharpness, **weights)
    q = e_step(
        pairs,
        previous,
        weights["unlabeled_weight"],
        weights.get("threshold", 1.0),
        sharpness,
    )
    explicit = MStepObjective(pairs, soft_labels=q, **weights)
    assert_same(streamed.value(A), explicit.value(A))
    assert_same(streamed.gradient(A), explicit.gradient(A))
    assert_same(streamed.soft_label_entropy, explicit.soft_label_entropy)
    assert_same(q, explicit_soft_labels(streamed))
    assert np.ptp(q) > 0.1  # else the test would say nothing


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("seed", range(3))
def test_formulas_agree_objective_7_and_its_gradient_with_a_double_loop(setting, seed):
    objective = random_objective(seed, setting, n=30, m=5)
    A = random_psd(np.random.default_rng(seed), 5, size=2.0)
    expected, slope = naive.semi_supervised(
        objective.pairs, objective.mu, objective.trace_weight, objective.threshold, A
    )
    paper = SemiSupervisedObjective(objective)
    value, gradient = paper.value_and_gradient(A)
    assert_same(value, expected)
    assert_same(paper.value(A), expected)
    assert_same(gradient, slope)
    assert_same(descent_values(objective, A)[1], expected)


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("sharpness", [None, 0.6, 2.0, 3.5])
def test_formulas_agree_J_with_its_definition_and_with_the_renyi_entropy(setting, sharpness):
    objective = random_objective(4, setting, q="start", n=25, m=3, sharpness=sharpness)
    pairs, mu, eta = objective.pairs, objective.mu, objective.threshold
    a = 1.0 + mu if sharpness is None else sharpness
    A = random_psd(np.random.default_rng(4), 3, size=2.0)
    q = e_step(pairs, A, objective.unlabeled_weight, eta, sharpness)
    J = descent_values(objective, A)[0]
    assert_same(J, naive.descent(pairs, q, mu, a, objective.trace_weight, eta, A))
    if mu > 0.0:
        assert_same(J, naive.renyi_descent(pairs, mu, a, objective.trace_weight, eta, A))
        for wrong in (0.9 * q, 0.9 * q + 0.1):  # the E-step minimizes J over q
            assert naive.descent(pairs, wrong, mu, a, objective.trace_weight, eta, A) > J


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("q", SOFT_LABELS)
def test_formulas_agree_numpy_with_cvxpy_primal(setting, q):
    objective = random_objective(7, setting, q=q, n=15, m=3)
    rng = np.random.default_rng(7)
    for problem in (
        state_m_step(objective),
        textbook_statement(objective),
        textbook_statement(objective, soft_labels_as_parameters=False),
    ):
        (variable,) = problem.variables()
        for size in (0.1, 1.0, 10.0):
            A = random_psd(rng, 3, size=size, rank=3)
            variable.value = A
            assert_same(problem.objective.value, objective.value(A), 1e-9)
        assert problem.is_dcp(dpp=True)


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("q", SOFT_LABELS)
def test_formulas_agree_cvxpy_dual_with_the_maximum_entropy_problem(setting, q):
    objective = random_objective(8, setting, q=q, n=12, m=3)
    problem = state_m_step(objective, "dual")
    V, c, b = naive.pair_terms(objective.pairs, explicit_soft_labels(objective), objective.mu)
    p = np.random.default_rng(8).random(len(c))
    label = np.array(list(naive.weak_labels(objective.pairs).values()))
    variables = {variable.name(): variable for variable in problem.variables()}
    variables["p"].value = np.concatenate([p[label == 1], p[label == -1]])
    if objective.mu > 0.0:
        variables["p_unlabeled"].value = p[label == 0]
    assert_same(problem.objective.value, naive.dual_value(p, c, b, objective.threshold), 1e-9)
    (feasible,) = problem.constraints
    expected = naive.dual_matrix(p, V, c, b, objective.trace_weight)
    assert_same(feasible.args[0].value, expected, 1e-9)
    assert problem.is_dcp(dpp=True)


@pytest.mark.parametrize("formulation", ["primal", "dual"])
def test_formulas_agree_after_the_parameters_of_a_statement_are_updated(formulation):
    first = random_objective(9, "hyper", q="start")
    second = MStepObjective(
        first.pairs, previous_metric=random_psd(np.random.default_rng(0), 4), trace_weight=0.3
    )
    reused, fresh = (build_statement(o, formulation) for o in (first, second))
    for statement in (reused, fresh):
        rng = np.random.default_rng(1)
        for variable in statement.problem.variables():
            size = variable.shape
            variable.value = random_psd(rng, 4, rank=4) if len(size) == 2 else rng.random(size)
    before = reused.problem.objective.value
    reused.update(second)
    assert_same(reused.problem.objective.value, fresh.problem.objective.value, 1e-12)
    assert abs(before - reused.problem.objective.value) > 1e-3


def test_failure_path_unknown_formulation_is_named():
    with pytest.raises(ValueError, match="textbok"):
        state_m_step(random_objective(0, "hyper"), "textbok")


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("q", SOFT_LABELS)
def test_formulas_agree_label_matrix_and_total_reproduce_f(setting, q):
    """f(A) = sum_k c_k log(1 + e^{s_k}) - <G, A> + eta*beta + <R, A>, DESIGN's first formula."""
    objective = random_objective(6, setting, q=q, n=20, m=3)
    V, c, b = naive.pair_terms(objective.pairs, explicit_soft_labels(objective), objective.mu)
    G, beta = objective.label_matrix, objective.label_total
    assert_same(G, (V.T * b) @ V)
    assert_same(beta, b.sum())
    assert_same(objective.pair_moment, (V.T * c) @ V)
    A, eta = random_psd(np.random.default_rng(6), 3, size=2.0), objective.threshold
    s = np.einsum("ki,ij,kj->k", V, A, V) - eta
    logistic = sum(ck * naive.softplus(sk) for ck, sk in zip(c, s, strict=True))
    linear = np.vdot(objective.regularizer - G, A) + eta * beta
    assert_same(objective.value(A), logistic + linear)


@pytest.mark.parametrize("setting", SETTINGS)
def test_formulas_agree_with_another_trace_weight(setting):
    objective = random_objective(1, setting, q="streamed")
    weights = {**SETTINGS[setting], "trace_weight": 0.123}
    other = objective.with_trace_weight(0.123)
    fresh = MStepObjective(objective.pairs, previous_metric=objective.previous_metric, **weights)
    A = random_psd(np.random.default_rng(1), 4)
    assert_same(other.value(A), fresh.value(A))
    assert_same(other.gradient(A), fresh.gradient(A))
    assert_same(other.critical_trace_weight, fresh.critical_trace_weight)
    assert objective.trace_weight == SETTINGS[setting]["trace_weight"]


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("reach", [1e2, 599.5, 1e4])
def test_formulas_agree_where_scores_are_large_and_nothing_overflows(setting, reach):
    rng = np.random.default_rng(3)
    pairs = random_pairs(3, n=12)
    A = random_psd(rng, 4, rank=2)
    V = naive.pair_terms(pairs, np.zeros(pairs.n_unlabeled), 1.0)[0]
    eta = SETTINGS[setting].get("threshold", 1.0)
    A *= (reach - eta) / np.max(np.einsum("ki,ij,kj->k", V, A, V))
    objective = MStepObjective(pairs, previous_metric=A, **SETTINGS[setting])
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        for B in (A, -A):  # s up to nearly reach, and down to -reach
            value, gradient = objective.value_and_gradient(B)
            expected, slope = naive_m_step(objective, B)
            assert_same(value, expected)
            assert_same(gradient, slope)
            paper, paper_slope = SemiSupervisedObjective(objective).value_and_gradient(B)
            arguments = (pairs, objective.mu, objective.trace_weight, objective.threshold, B)
            assert_same(paper, naive.semi_supervised(*arguments)[0])
            assert_same(paper_slope, naive.semi_supervised(*arguments)[1])
            assert np.all(np.isfinite(descent_values(objective, B)))


@pytest.mark.parametrize("s", [-1e4, -30.0, -1.0, 0.0, 1e-9, 2.0, 30.0, 1e4])
def test_formulas_agree_posterior_entropy_with_the_entropy_of_the_posterior(s):
    score = np.array([s])
    assert posterior_entropy(score)[0] == pytest.approx(naive.entropy(naive.sigmoid(s)), abs=1e-13)
    assert binary_entropy(np.array([naive.sigmoid(s)]))[0] == pytest.approx(
        naive.entropy(naive.sigmoid(s)), abs=1e-15
    )
    assert soft_label(score, 1.7)[0] == pytest.approx(naive.sigmoid(-1.7 * s), rel=1e-14)
