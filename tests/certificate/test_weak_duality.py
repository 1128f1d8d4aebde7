"""Evidence: the certificate's bound holds at any PSD point, whoever computes the primal value.

Primal values are recomputed with 240 digits from a factor of the metric, so that a bound
that is too high by rounding alone is seen.
"""

from __future__ import annotations

import numpy as np
import pytest
from high_precision import random_factors, solve_quietly
from instances import (
    SETTINGS,
    random_objective,
    random_pairs,
    random_psd,
)
from judge import exact_value

from seraph_cvx import MStepObjective, PairSet, Status, certify, solve_m_step
from seraph_cvx.m_step.solve import OWN_SOLVERS
from seraph_cvx.numerics.psd_cone import project, scaled_factor

ALLOWANCE = 1e-12
"""Relative to max(1, |f|): rounding, no more."""


POINTS = {
    "gaussian": lambda X: X,
    "duplicated": lambda X: X[np.arange(len(X)) % (len(X) - len(X) // 2)],
    "constant feature": lambda X: np.column_stack([np.full(len(X), 0.1), X[:, 1:]]),
    "collinear": lambda X: np.outer(X[:, 0], X[0]),
    "far from the origin": lambda X: X + 100.0,
}
LARGE_MU = {"unlabeled_weight": 30.0, "trace_weight": 0.1}

CASES = [
    ("gaussian", 15, 4, "hyper", "start"),
    ("gaussian", 15, 4, "hyper", "streamed"),
    ("gaussian", 12, 3, "other", "random"),
    ("gaussian", 15, 8, "post", "start"),
    ("gaussian", 15, 8, "none", "start"),
    ("gaussian", 15, 4, "proj", "start"),
    ("gaussian", 6, 12, "hyper", "random"),
    ("duplicated", 14, 3, "post", "start"),
    ("constant feature", 14, 3, "post", "random"),
    ("collinear", 14, 3, "hyper", "start"),
    ("gaussian", 12, 3, "large mu", "streamed"),
    ("far from the origin", 12, 3, "hyper", "random"),
]
"""Which points, how many, of how many features; the setting; and where soft labels are from."""


def make(case, scale):
    points, n, m, setting, q = case
    rng = np.random.default_rng([n, m, *points.encode()])
    coin = random_pairs(0, n=n, m=m, n_labeled=8)
    X = scale * POINTS[points](rng.normal(size=(n, m)))
    pairs = PairSet.from_constraints(X, coin.similar, coin.dissimilar)
    soft_labels = rng.random(pairs.n_unlabeled)
    soft_labels[:2] = 0.0, 1.0
    labels = {
        "random": {"soft_labels": soft_labels},
        "streamed": {"previous_metric": random_psd(rng, m, size=1.0 / scale**2)},
    }
    weights = SETTINGS | {"large mu": LARGE_MU}
    return MStepObjective(pairs, **labels.get(q, {}), **weights[setting])


def assert_not_above(lower, upper):
    assert np.isfinite(lower)
    assert lower <= upper + ALLOWANCE * max(1.0, abs(upper))


def assert_weak_duality(objective, answer, factors=()):
    """No bound at the answer or at FF' exceeds any primal value, and all are finite."""
    factors = [*factors, scaled_factor(answer.metric)]
    certificates = [certify(objective, F @ F.T) for F in factors] + [answer.certificate]
    for certificate in certificates:
        upper, lower = certificate.primal_value, certificate.dual_value
        assert_not_above(lower, upper)
        assert certificate.relative_gap == pytest.approx((upper - lower) / max(1.0, abs(upper)))
    best = min(exact_value(objective, F) for F in factors)
    assert_not_above(max(certificate.dual_value for certificate in certificates), best)


@pytest.mark.parametrize(
    "scale", [1.0, *(pytest.param(x, marks=pytest.mark.slow) for x in (1e-3, 1e3))]
)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_weak_duality_at_random_psd_points(case, scale):
    """36 instances, 9 points each, zero first: of any rank, near zero to far away."""
    objective = make(case, scale)
    m = objective.pairs.n_features
    answer = solve_quietly(objective, tol=1e-9, max_iter=300)
    factors = random_factors(np.random.default_rng(3), m, scale, 8)
    assert_weak_duality(objective, answer, [np.zeros((m, 1)), *factors])


def test_weak_duality_far_along_a_direction_that_similar_pairs_do_not_have():
    """f(A) and <g, A> are both of the size of A there: their difference would be all rounding."""
    best = []
    for angle in np.linspace(0.0, 3.0, 12):
        u, w = np.array([np.cos(angle), np.sin(angle)]), np.array([-np.sin(angle), np.cos(angle)])
        X = [0.0 * u, w, 3.0 * u, 3.0 * u + w]
        pairs = PairSet.from_constraints(X, [(0, 1), (2, 3)], [(0, 2), (1, 3)])
        objective = MStepObjective(pairs, unlabeled_weight=0.0)
        best.append(solve_m_step(objective, tol=1e-9).value)
        for size in (1e10, 1e14, 1e18):
            assert_not_above(certify(objective, size * np.outer(u, u)).dual_value, best[-1])
    assert np.ptp(best) <= 1e-6  # turning the points does not change the problem


@pytest.mark.parametrize(
    ("unlabeled_weight", "trace_weight"), [(0.0, 0.0), (0.0, 1.0), (0.5, 0.0), (0.5, 1.0)]
)
def test_weak_duality_when_no_two_counted_points_differ(unlabeled_weight, trace_weight):
    """Two labeled pairs that do not differ; with mu = 0 other points may, and do not count.

    f is constant but for the trace: A = 0 is optimal, and the certificate and solvers see it.
    """
    X = np.full((5, 2), 0.1)
    if unlabeled_weight == 0.0:
        X[3:] = 5.0
    pairs = PairSet.from_constraints(X, [(0, 1)], [(1, 2)])
    objective = MStepObjective(pairs, trace_weight=trace_weight, unlabeled_weight=unlabeled_weight)
    assert objective.attains_optimum
    assert certify(objective, np.zeros((2, 2))).relative_gap == pytest.approx(0.0, abs=1e-9)
    gap = certify(objective, np.eye(2)).duality_gap
    assert gap == pytest.approx(2.0 * trace_weight, abs=1e-9)
    for solver in OWN_SOLVERS:
        solution = solve_m_step(objective, solver)
        assert solution.status is Status.CERTIFIED
        assert solution.metric == pytest.approx(np.zeros((2, 2)), abs=1e-9)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_certificate_catches_a_wrong_answer(case):
    """A random PSD matrix is no solution; unattained and degenerate instances are really so."""
    objective = make(case, 1.0)
    rng = np.random.default_rng(5)
    points, _, m, _, _ = case
    for size in (1.0, 100.0):
        assert certify(objective, random_psd(rng, m, size=size, rank=m)).relative_gap > 1e-3
    if m == 8:
        assert not objective.attains_optimum
    if points in ("constant feature", "collinear") or m == 12:
        assert np.linalg.matrix_rank(objective.pair_moment) < m


def test_a_solvers_answer_that_is_not_psd_is_refused_with_the_cure():
    objective = random_objective(0, "hyper")
    A = solve_m_step(objective).metric
    eigenvalues, V = np.linalg.eigh(A)
    answer = A - (eigenvalues[0] + 4e-7) * np.outer(V[:, 0], V[:, 0])  # as solvers return
    with pytest.raises(ValueError, match=r"numerics.psd_cone.project\(A\)"):
        certify(objective, answer)
    assert certify(objective, project(answer)).relative_gap < 1e-5
    for wrong in (np.eye(1), np.full_like(A, np.nan)):
        with pytest.raises(ValueError, match=r"has shape|NaN"):
            certify(objective, wrong)
