"""Evidence: every formula equals that of the paper, its other form, and its CVXPY statement."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest
from instances import (
    SETTINGS,
    dual_matrix,
    dual_terms,
    dual_value,
    explicit_soft_labels,
    pair_lists,
    paper_m_step,
    random_objective,
    random_pairs,
    random_psd,
    with_block_size,
)

import seraph_cvx.engine.pair_sums
from seraph_cvx import MStepObjective, e_step, paper, state_m_step
from seraph_cvx.m_step.statement import build_statement, textbook_statement
from seraph_cvx.model.programs import SemiSupervisedObjective, descent_values

SOFT_LABELS = ["start", "random", "streamed"]

every_setting = pytest.mark.parametrize("setting", SETTINGS)
every_label = pytest.mark.parametrize("q", SOFT_LABELS)


def assert_same(actual, expected, tolerance=1e-10):
    error = np.linalg.norm(np.asarray(actual) - np.asarray(expected))
    assert error <= tolerance * max(1.0, np.linalg.norm(expected))


def simplified_objective(objective, A):
    """Minus (7)."""
    letters = {"mu": objective.mu, "lam": objective.trace_weight, "eta": objective.threshold}
    return -paper.simplified_objective(*pair_lists(objective.pairs), A, **letters)


@every_setting
@every_label
@pytest.mark.parametrize(("n", "m"), [(2, 1), (3, 5), (15, 3), (40, 12)])
def test_formulas_agree_m_step_and_its_gradient_with_the_paper(setting, q, n, m):
    for seed in range(2):
        few = max(1, min(12, n * (n - 1) // 2 - 1))
        objective = random_objective(seed, setting, q=q, n=n, m=m, n_labeled=few)
        A = random_psd(np.random.default_rng(seed), m, size=2.0)
        value, gradient = paper_m_step(objective, A)
        for found in (objective.value(A), objective.value_and_gradient(A)[0]):
            assert_same(found, value)
        for found in (objective.gradient(A), objective.value_and_gradient(A)[1]):
            assert_same(found, gradient)


@pytest.mark.parametrize("setting", ["post", "hyper", "other"])
@every_label
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_formulas_agree_when_the_pairs_are_swept_in_many_blocks(setting, q, n_jobs):
    whole = random_objective(5, setting, q=q, n=40, m=3, n_jobs=n_jobs)
    blocks = with_block_size(whole, 7)
    A = random_psd(np.random.default_rng(0), 3, size=2.0)
    value, gradient = paper_m_step(whole, A)
    assert_same(blocks.value(A), value)
    assert_same(blocks.gradient(A), gradient)
    names = "pair_moment recession_matrix recession_total soft_label_entropy lipschitz_bound"
    for name in [*names.split(), "smoothness_bound", "critical_trace_weight"]:
        assert_same(getattr(blocks, name), getattr(whole, name))
    assert_same(descent_values(blocks, A), descent_values(whole, A))
    slopes = [SemiSupervisedObjective(one).value_and_gradient(A)[1] for one in (blocks, whole)]
    assert_same(*slopes)


@pytest.mark.parametrize("setting", ["proj", "hyper"])
def test_formulas_agree_when_the_pairs_are_listed_in_many_chunks(setting, monkeypatch):
    """CHUNK numbers at a time: 5 rows of 4 features, of the labeled pairs and of the E-step's."""
    whole = random_objective(6, setting, q="streamed")
    A = random_psd(np.random.default_rng(0), 4, size=2.0)
    value, gradient = whole.value_and_gradient(A)
    q = e_step(whole.pairs, A)
    for module in (seraph_cvx.engine.pair_sums, sys.modules["seraph_cvx.model.e_step"]):
        monkeypatch.setattr(module, "CHUNK", 20)
    chunks = replace(whole, pairs=replace(whole.pairs))
    assert_same(chunks.value(A), value, 1e-12)
    assert_same(chunks.gradient(A), gradient, 1e-12)
    assert_same(chunks.recession_matrix, whole.recession_matrix, 1e-12)
    assert_same(e_step(whole.pairs, A), q, 1e-12)


def test_formulas_agree_whatever_the_origin_of_the_points():
    near, far = (MStepObjective(random_pairs(3, shift=shift)) for shift in (0.0, 1e3))
    A = random_psd(np.random.default_rng(0), 4)
    assert_same(far.value(A), near.value(A), 1e-9)
    assert_same(far.gradient(A), near.gradient(A), 1e-9)


@pytest.mark.parametrize("setting", ["post", "hyper", "other"])
@pytest.mark.parametrize("sharpness", [None, 0.5, 2.0])
def test_formulas_agree_streamed_soft_labels_with_those_of_the_e_step(setting, sharpness):
    streamed = random_objective(2, setting, q="streamed", n=25, sharpness=sharpness)
    pairs, mu, A = streamed.pairs, streamed.mu, random_psd(np.random.default_rng(0), 4)
    q = e_step(pairs, streamed.previous_metric, mu, streamed.threshold, sharpness)
    explicit = MStepObjective(pairs, soft_labels=q, **SETTINGS[setting])
    assert_same(streamed.value(A), explicit.value(A))
    assert_same(streamed.gradient(A), explicit.gradient(A))
    assert_same(streamed.soft_label_entropy, explicit.soft_label_entropy)
    assert_same(q, explicit_soft_labels(streamed))
    assert np.ptp(q) > 0.1  # else the test would say nothing


@every_setting
@pytest.mark.parametrize("seed", range(3))
def test_formulas_agree_objective_7_with_the_paper(setting, seed):
    objective = random_objective(seed, setting, n=30, m=5)
    A = random_psd(np.random.default_rng(seed), 5, size=2.0)
    expected, own = simplified_objective(objective, A), SemiSupervisedObjective(objective)
    for found in (own.value(A), own.value_and_gradient(A)[0], descent_values(objective, A)[1]):
        assert_same(found, expected)


@every_setting
@pytest.mark.parametrize("sharpness", [None, 0.6, 2.0, 3.5])
def test_formulas_agree_J_with_its_definition_and_with_the_renyi_entropy(setting, sharpness):
    """J = f - mu/a * H(q) at q of the E-step; mu (a - 1)/a times the Renyi entropy of order a."""
    objective = random_objective(4, setting, q="start", n=25, m=3, sharpness=sharpness)
    pairs, mu, eta = objective.pairs, objective.mu, objective.threshold
    a = 1.0 + mu if sharpness is None else sharpness
    A = random_psd(np.random.default_rng(4), 3, size=2.0)
    best = e_step(pairs, A, objective.unlabeled_weight, eta, sharpness)

    def J(q):
        f = paper_m_step(replace(objective, soft_labels=q), A)[0]
        return f - mu / a * np.sum(paper.entropy(q))

    found = descent_values(objective, A)[0]
    assert_same(found, J(best))
    if mu > 0.0:
        p = paper.posterior(paper.squared_distances(pairs.points, pairs.unlabeled, A), 1.0, eta)
        renyi = np.sum(np.log(p**a + (1.0 - p) ** a)) / (1.0 - a)
        labeled = paper_m_step(replace(objective, unlabeled_weight=0.0), A)[0]
        assert_same(found, labeled + mu * (a - 1.0) / a * renyi)
        for wrong in (0.9 * best, 0.9 * best + 0.1):  # the E-step minimizes J over q
            assert J(wrong) > found


@every_setting
@every_label
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


@every_setting
@every_label
def test_formulas_agree_cvxpy_dual_with_the_maximum_entropy_problem(setting, q):
    objective = random_objective(8, setting, q=q, n=12, m=3)
    problem = state_m_step(objective, "dual")
    V, c, b = dual_terms(objective)
    p = np.random.default_rng(8).random(len(c))
    variables = {variable.name(): variable for variable in problem.variables()}
    variables["p"].value, unlabeled = np.split(p, [objective.pairs.n_labeled])
    if objective.mu > 0.0:
        variables["p_unlabeled"].value = unlabeled
    assert_same(problem.objective.value, dual_value(p, c, b, objective.threshold), 1e-9)
    (feasible,) = problem.constraints
    assert_same(feasible.args[0].value, dual_matrix(p, V, c, b, objective.trace_weight), 1e-9)
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


@every_setting
@every_label
def test_formulas_agree_label_matrix_and_total_reproduce_f(setting, q):
    """f(A) = sum_k c_k log(1 + e^{s_k}) - <G, A> + eta*beta + <R, A>: one term per pair."""
    objective = random_objective(6, setting, q=q, n=20, m=3)
    V, c, b = dual_terms(objective)
    G, beta = objective.label_matrix, objective.label_total
    assert_same(G, (V.T * b) @ V)
    assert_same(beta, b.sum())
    assert_same(objective.pair_moment, (V.T * c) @ V)
    A, eta = random_psd(np.random.default_rng(6), 3, size=2.0), objective.threshold
    logistic = c @ np.logaddexp(0.0, np.einsum("ki,ij,kj->k", V, A, V) - eta)
    linear = np.vdot(objective.regularizer - G, A) + eta * beta
    assert_same(objective.value(A), logistic + linear)


@every_setting
def test_formulas_agree_with_another_trace_weight(setting):
    objective = random_objective(1, setting, q="streamed")
    other = objective.with_trace_weight(0.123)
    fresh = random_objective(1, setting, q="streamed", trace_weight=0.123)
    A = random_psd(np.random.default_rng(1), 4)
    assert_same(other.value(A), fresh.value(A))
    assert_same(other.gradient(A), fresh.gradient(A))
    assert_same(other.critical_trace_weight, fresh.critical_trace_weight)
    assert objective.trace_weight == SETTINGS[setting]["trace_weight"]


@every_setting
@pytest.mark.parametrize("largest", [1e2, 599.5, 1e4])
def test_formulas_agree_where_scores_are_large_and_nothing_overflows(setting, largest):
    pairs = random_pairs(3, n=12)
    A = random_psd(np.random.default_rng(3), 4, rank=2)
    eta = SETTINGS[setting].get("threshold", 1.0)
    rows = np.vstack([pairs.labeled, pairs.unlabeled])
    A *= (largest - eta) / np.max(paper.squared_distances(pairs.points, rows, A))
    objective = MStepObjective(pairs, previous_metric=A, **SETTINGS[setting])
    for B in (A, -A):  # s up to nearly the largest, and down to minus that
        expected, slope = paper_m_step(objective, B)
        of_7 = simplified_objective(objective, B)
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            value, gradient = objective.value_and_gradient(B)
            own, own_slope = SemiSupervisedObjective(objective).value_and_gradient(B)
            assert np.all(np.isfinite(descent_values(objective, B)))
        assert_same(value, expected)
        assert_same(gradient, slope)
        assert_same(own, of_7)
        assert np.all(np.isfinite(own_slope))
