"""Evidence: problems whose answer is known in closed form, or as the root of a scalar equation."""

import itertools
import math
from functools import partial

import numpy as np
import pytest
from flint import fmpq, fmpq_mat
from instances import (
    SETTINGS,
    paper_m_step,
    random_objective,
    random_pairs,
    random_psd,
)
from judge import exact_value
from scipy.optimize import brentq
from scipy.special import expit

from seraph_cvx import MStepObjective, PairSet, Status, certify, solve_m_step
from seraph_cvx.m_step.solve import OWN_SOLVERS


@pytest.mark.parametrize("setting", ["proj", "hyper", "other"])
@pytest.mark.parametrize("q", ["start", "random", "streamed"])
def test_closed_form_zero_is_optimal_from_the_critical_trace_weight_on(setting, q):
    """It is minus the least eigenvalue of the gradient at 0, by the formula of the paper.

    An answer above is as near to zero as its gap says: f(A) - f(0) >= (lambda - critical) tr A.
    """
    objective, zero = random_objective(1, setting, q=q), np.zeros((4, 4))
    critical = objective.critical_trace_weight
    gradient = paper_m_step(objective.with_trace_weight(0.0), zero)[1]
    assert critical == pytest.approx(-np.linalg.eigvalsh(gradient)[0], rel=1e-10)
    assert critical > 0.0
    for factor in (1.001, 3.0):
        above = objective.with_trace_weight(factor * critical)
        assert certify(above, zero).relative_gap <= 1e-12  # the allowance for rounding is 3e-13
        for solver in OWN_SOLVERS:
            solution = solve_m_step(above, solver, tol=1e-10)
            assert solution.status is Status.CERTIFIED
            slope = above.trace_weight - critical
            assert slope * np.trace(solution.metric) <= solution.certificate.duality_gap
    below = objective.with_trace_weight(0.99 * critical)
    solution = solve_m_step(below, tol=1e-9)
    assert solution.status is Status.CERTIFIED
    assert np.trace(solution.metric) > 1e-4
    assert solution.value < below.value(zero) - 1e-6
    assert certify(below, zero).duality_gap > 1e-6


def _slope_at(objective, a):
    return paper_m_step(objective, np.array([[a]]))[1].item()


@pytest.mark.parametrize("solver", OWN_SOLVERS)
def test_closed_form_one_dimension_by_the_root_of_the_derivative(solver):
    roots = []
    for seed, setting in itertools.product(range(4), ["post", "proj", "hyper", "other"]):
        objective = random_objective(seed, setting, n=15, m=1)
        slope = partial(_slope_at, objective)
        root = brentq(slope, 0.0, 1e6, xtol=1e-14) if slope(0.0) < 0.0 else 0.0
        solution = solve_m_step(objective, solver, tol=1e-11)
        assert solution.status is Status.CERTIFIED
        assert solution.metric[0, 0] == pytest.approx(root, rel=1e-4, abs=1e-9)
        assert solution.value <= objective.value([[root]]) + 1e-10 * max(1.0, abs(solution.value))
        roots.append(root)
    assert max(roots) > 0.0


POINTS = [np.random.default_rng(1).normal(size=(2, m)) for m in (1, 3, 6)]


@pytest.mark.parametrize(
    ("solver", "is_similar", "trace_weight", "X"),
    [
        *itertools.product(OWN_SOLVERS, [True], (0.0, 0.5), POINTS),
        *itertools.product(["newton"], [False], (1e-3, 0.5, 2.0), POINTS),
        ("newton", False, 1e8, np.array([[0.0, 0.0, 0.0], [1e-6, 1.0, 1e6]])),  # scales far apart
    ],
)
def test_closed_form_one_pair(solver, is_similar, trace_weight, X):
    """A = t vv'/||v||^2 with ||v||^2 sigma(-s) = lambda: s = ln(||v||^2/lambda - 1), t = s + eta.

    Off the line of v the trace costs and nothing gains; m = 6 > n = 2. A similar pair has t = 0.
    """
    v, eta = X[0] - X[1], 1.3
    length, rows = float(v @ v), ([(0, 1)], []) if is_similar else ([], [(1, 0)])
    pairs = PairSet.from_constraints(X, *rows)
    objective = MStepObjective(pairs, trace_weight=trace_weight, threshold=eta)
    pulled = 0.0 if is_similar else length * expit(eta)
    assert objective.critical_trace_weight == pytest.approx(pulled)
    is_zero = is_similar or length <= trace_weight
    t = 0.0 if is_zero else max(0.0, math.log(length / trace_weight - 1.0) + eta) / length
    far_apart = np.max(np.abs(X)) > 1e3  # rounding alone is 1e-12 there, on some machines
    solution = solve_m_step(objective, solver, tol=1e-10 if far_apart else 1e-12)
    assert solution.status is Status.CERTIFIED
    near = 1e-12 if is_similar else 1e-5 * max(1.0, t)
    assert solution.metric == pytest.approx(t * np.outer(v, v) / length, abs=near)
    score = t * length - eta
    expected = np.logaddexp(0.0, score if is_similar else -score) + trace_weight * t
    rounding = 1e-14  # of `expected`, which is below 2
    assert solution.certificate.dual_value <= expected + rounding
    assert expected <= solution.value + rounding


@pytest.mark.parametrize(
    ("similar", "dissimilar", "attained"),
    [
        ([(0, 1), (2, 3)], [(0, 2)], False),  # nothing similar holds the second feature
        ([(0, 1), (0, 2)], [(0, 3)], True),
        ([(0, 1), (2, 3)], [], True),  # flat along the second feature: attained, not unique
        ([(0, 2)], [(1, 3)], True),  # both along the second feature: one holds the other
        ([(0, 2)], [(0, 1)], False),  # stretched along a feature that no similar pair has
    ],
)
def test_closed_form_attainment_of_four_points_on_a_square(similar, dissimilar, attained):
    """(0,0), (1,0), (0,1), (1,1) with mu = lambda = 0: attained <=> D stays where S spans."""
    X = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    pairs = PairSet.from_constraints(X, similar, dissimilar)
    objective = MStepObjective(pairs, unlabeled_weight=0.0, trace_weight=0.0)
    assert objective.attains_optimum is attained
    assert (objective.falling_direction is None) is attained
    assert objective.with_trace_weight(1e-6).attains_optimum


def test_closed_form_falling_direction_falls_for_ever():
    objective = MStepObjective(random_pairs(1, n=12, m=8, n_labeled=6), **SETTINGS["none"])
    u = objective.falling_direction
    assert u is not None
    assert np.linalg.norm(u) == pytest.approx(1.0)
    A = random_psd(np.random.default_rng(1), 8)
    values = [objective.value(A + t * np.outer(u, u)) for t in (0.0, 1.0, 10.0)]
    assert values[0] > values[1] > values[2]


def _exact_rank(points, rows):
    """The rank of the differences of these pairs of doubles, over the rationals."""
    X = [[fmpq(*x.as_integer_ratio()) for x in row] for row in points.tolist()]
    entries = [a - b for i, j in rows.tolist() for a, b in zip(X[i], X[j], strict=True)]
    return fmpq_mat(len(rows), points.shape[1], entries).rank()


def _nearly_collinear(rng, kind):
    n, m = int(rng.integers(4, 11)), int(rng.integers(2, 6))
    X = rng.normal(size=(n, m))
    if kind == "to 1e-13":
        rank = int(rng.integers(1, m))
        main = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, m))
        return main + 10.0 ** rng.uniform(-13, -4) * X
    if kind == "by rounding":
        X = np.round(X, 1)
        X[:, -1] = X[:, :-1].sum(axis=1)
    else:
        X[int(rng.integers(n)), 0] = 10.0 ** rng.uniform(3, 10)
    return X


@pytest.mark.parametrize("kind", ["to 1e-13", "by rounding", "beside a far value"])
def test_attainment_agrees_with_exact_ranks(kind):
    for seed in range(60):
        assert_attained_by_rank(kind, seed)


def assert_attained_by_rank(kind, seed):
    """Attained <=> similar differences span those of all pairs that count, as exact doubles.

    An optimum that is attained beyond the reach of doubles may be refused, never the reverse.
    """
    rng = np.random.default_rng(seed)
    X = _nearly_collinear(rng, kind)
    rows = rng.permutation(np.column_stack(np.triu_indices(len(X), 1)))
    n_labeled = int(rng.integers(1, 2 * len(X)))
    is_similar = rng.random(len(rows[:n_labeled])) < 0.5
    pairs = PairSet.from_constraints(X, rows[:n_labeled][is_similar], rows[:n_labeled][~is_similar])
    mu = [0.0, "ratio", 0.3][seed % 3]
    objective = MStepObjective(pairs, unlabeled_weight=mu, trace_weight=0.0)
    counted = np.vstack([pairs.labeled, pairs.unlabeled]) if objective.mu > 0.0 else pairs.labeled
    attained = _exact_rank(X, pairs.similar) == _exact_rank(X, counted)
    assert attained or not objective.attains_optimum


@pytest.mark.parametrize("weight", [0.0, 0.5])
def test_attainment_of_classes_agrees_with_exact_ranks(weight):
    """Three points of a class span two of three features; the third differs by 1e-12 of them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8, 3))
    X[:, 2] = X[:, 0] + 1e-12 * X[:, 2]
    few = PairSet.from_labels(X, [0, 0, 0, 1, -1, -1, -1, -1])
    many = PairSet.from_labels(X, [0, 0, 0, 1, 1, 1, -1, -1])
    objective, other = (
        MStepObjective(pairs, unlabeled_weight=weight, trace_weight=0.0) for pairs in (few, many)
    )
    assert other.attains_optimum
    u = objective.falling_direction
    assert u is not None
    values = [exact_value(objective, np.sqrt(t) * u[:, None]) for t in (0.0, 1e24, 1e25)]
    assert values[0] > values[1] > values[2]
