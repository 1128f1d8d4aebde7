"""Evidence: cases in which a certificate was false once, each through a path beside the main one.

The truth is a value of f in exact or extended arithmetic at a matrix that is PSD, or a closed form.
"""

from __future__ import annotations

import math
from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from flint import ctx
from high_precision import exact, log_det

from seraph_cvx import (
    MStepObjective,
    PairSet,
    certify,
    certify_problem,
    state_m_step,
)
from seraph_cvx.certificate.penalized import certify_penalized
from seraph_cvx.penalties import Penalty, Ridge
from seraph_cvx.proof.verified_psd import log_determinant_bounds

# Inputs that are silently changed


@pytest.mark.parametrize("name", ["manifold_term", "previous_metric"])
def test_a_matrix_that_is_not_psd_is_refused_and_not_projected(name):
    """As projected, the M-step had a minimum; as given, f is -798.8 at A22 = 1e12."""
    pairs = PairSet.from_constraints([[0.0, 0.0], [1.0, 1e6], [3.0, 0.0]], [(0, 1)], [(0, 2)])
    with pytest.raises(ValueError, match=f"{name} is not positive semidefinite"):
        MStepObjective(pairs, unlabeled_weight=1.0, **{name: np.diag([1.0, -9e-10])})


def test_a_matrix_that_is_not_psd_by_rounding_is_certified_as_it_is():
    X = np.array([[0.0, 0.0], [1.0, 1e9], [3.0, 0.0], [0.5, 2e9]])
    pairs = PairSet.from_constraints(X, [(0, 1)], [(0, 2)])
    P = np.diag([1.0, -1e-15])
    objective = MStepObjective(pairs, previous_metric=P, unlabeled_weight=1.0, sharpness=2.0)
    np.testing.assert_array_equal(objective.previous_metric, P)
    V = X[pairs.unlabeled[:, 0]] - X[pairs.unlabeled[:, 1]]
    q = 1.0 / (1.0 + np.exp(np.clip(2.0 * (np.sum(V @ P * V, axis=1) - 1.0), -700, 700)))
    assert np.any(q > 0.9)  # v'Pv is negative by far more than rounding
    same = replace(objective, previous_metric=None, soft_labels=q)
    for A in (np.zeros((2, 2)), np.diag([0.1, 1e-17])):
        found, expected = certify(objective, A), certify(same, A)
        assert found.primal_value >= expected.primal_value * (1.0 - 1e-9)
        assert found.dual_value <= expected.primal_value


# Problems stated by hand


@pytest.fixture
def objective():
    pairs = PairSet.from_labels(np.random.default_rng(0).normal(size=(6, 2)), [0, 0, 1, 1, -1, -1])
    return MStepObjective(pairs, trace_weight=0.5)


def test_a_linear_term_that_is_not_psd_is_not_projected():
    """The problem is unbounded, and had a dual value of 6.63."""
    X = [[0.0, 1.0], [1.0, 1.0], [3.0, 1.0]]
    objective = MStepObjective(PairSet.from_labels(X, [0, 0, 1]), trace_weight=0.0)
    problem = state_m_step(objective)
    (A,) = problem.variables()
    worse = cp.Problem(cp.Minimize(problem.objective.expr + A[0, 0] - 5e-13 * A[1, 1]))
    assert certify_problem(worse).lower == -np.inf


# Aliasing


def test_what_an_objective_depends_on_cannot_be_written_into():
    rng = np.random.default_rng(0)
    X, c = rng.normal(size=(6, 2)), np.ones(1)
    pairs = PairSet.from_constraints(X, [(0, 1)], [(2, 3)], c, c)
    by_labels = PairSet.from_labels(X, [0, 0, 1, 1, -1, -1])
    q, P = rng.random(pairs.n_unlabeled), np.eye(2)
    soft = MStepObjective(pairs, soft_labels=q)
    streamed = MStepObjective(by_labels, previous_metric=P, manifold_term=P)
    for owner, names in [
        (pairs, "points similar dissimilar unlabeled labeled confidence"),
        (pairs.labels, "similar dissimilar confidence listed members"),
        (by_labels, "similar"),
        (by_labels.labels, "members classes listed"),
        (soft, "soft_labels label_matrix similar_matrix soft_label_matrix"),
        (streamed, "previous_metric manifold_term regularizer pair_moment"),
        (streamed, "recession_matrix"),
        (Ridge(1.0, prior=P), "prior"),
        (certify(soft, P), "factor"),
    ]:
        for name in names.split():
            array, again = (getattr(owner, name) for _ in range(2))
            is_fresh = not np.shares_memory(array, again)
            assert is_fresh or not array.flags.writeable, name
    for given in (X, c, q, P):
        given[...] = 7.0  # none of them is the objective's
    assert soft.soft_labels.max() <= 1.0
    assert pairs.points.max() < 7.0


# Found by reading


def test_a_bound_on_a_log_determinant_counts_both_sides():
    """The rows of I - WF may be small while its columns are not."""
    rng = np.random.default_rng(3)
    proven = 0
    for _ in range(50):
        k = int(rng.integers(2, 7))
        F = np.tril(rng.normal(size=(k, k))) * 10.0 ** rng.uniform(-4, 4, (k, 1))
        np.fill_diagonal(F, np.abs(np.diag(F)) + 1e-6)
        B = F @ F.T
        found = log_determinant_bounds(B, np.zeros((k, k)))
        if found is not None:
            with ctx.workprec(400):
                assert found[0] <= log_det(exact(B)) <= found[1]
            proven += 1
    assert proven


class NearlyTraceBound(Penalty):
    """tr(A) <= 1, with a conjugate that is finite at matrices near multiples of I too."""

    is_coercive = True

    def value(self, A):
        return 0.0 if np.trace(A) <= 1.0 + 1e-12 else math.inf

    def constraints(self, A, weight):
        return [cp.trace(A) <= 1.0]

    def subgradient(self, A):
        return np.zeros_like(A)

    def conjugate(self, Z):
        nu = float(np.mean(np.diag(Z)))
        fits = np.allclose(Z, nu * np.eye(len(Z)), rtol=0.0, atol=1e-12 * abs(nu))
        return nu if fits and nu >= 0.0 else math.inf


def test_a_matrix_of_a_block_of_ones_own_is_trusted_to_twelve_digits_and_no_further():
    objective = MStepObjective(
        PairSet.from_labels([[0.0, 0.0], [1.0, 2.0], [3.0, 1.0]], [0, 0, 1]),
        trace_weight=0.0,
        penalties=[NearlyTraceBound()],
    )
    found = objective.penalties[0].multiplier(2.0 * np.eye(2))
    assert np.all(found.slack >= 2e-12)
    certificate = certify_penalized(objective, 0.5 * np.eye(2), guesses=[2.0 * np.eye(2)])
    least = min(
        objective.program.value(np.outer(u, u))
        for u in np.random.default_rng(0).normal(size=(99, 2)) / np.sqrt(2.0)
        if u @ u <= 1.0
    )
    assert certificate.dual_value <= least


def test_a_threshold_whose_losses_overflow_is_refused():
    """It ended in "cannot convert float NaN to integer"."""
    pairs = PairSet.from_constraints([[0.0], [1.0]], [], [(0, 1)], dissimilar_confidence=1e300)
    with pytest.raises(ValueError, match="threshold=1e\\+10 is too large"):
        MStepObjective(pairs, threshold=1e10)
