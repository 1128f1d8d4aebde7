"""Evidence: proofs where matrices are singular, scales absurd or pivots nothing but rounding."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

flint = pytest.importorskip("flint")

from high_precision import gaussian, solve_quietly, with_points  # noqa: E402
from stress_judge import check_proof  # noqa: E402

from seraph_cvx import MStepObjective, PairSet, Status, certify, solve_m_step  # noqa: E402
from seraph_cvx.certificate.proof import prove  # noqa: E402
from seraph_cvx.numerics import ball_arithmetic  # noqa: E402

arb = flint.arb


def constant_feature():
    X = gaussian(10, 3)
    X[:, 0] = 0.1
    return X


SINGULAR = {
    "constant feature": constant_feature(),
    "more features than points": gaussian(6, 9),
    "duplicates": np.repeat(gaussian(5, 3), 2, axis=0),
    "duplicates, more features": np.repeat(gaussian(4, 6), 2, axis=0),
    "exactly collinear": np.outer(np.arange(10.0), [1.0, 2.0, 4.0]),
    "few labels": gaussian(10, 8),
}


@pytest.mark.parametrize(
    ("q", "trace_weight"),
    [
        ("random", 0.0),
        ("random", 1e-40),
        pytest.param("random", 1e-9, marks=pytest.mark.slow),
        pytest.param("start", 0.0, marks=pytest.mark.slow),
        pytest.param("start", 1.0, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("name", SINGULAR)
def test_proof_of_singular_instances_is_as_sharp_as_the_certificate(name, q, trace_weight):
    """At certified answers, and within 1e-5 elsewhere.

    There it hangs on the last digits of the metric whether the gradient is feasible for R = 1e-9 I.
    """
    objective = with_points(SINGULAR[name], trace_weight=trace_weight)
    if q == "random":
        labels = np.random.default_rng(0).random(objective.pairs.n_unlabeled)
        objective = replace(objective, soft_labels=labels)
    answer = solve_quietly(objective, tol=1e-9, max_iter=300)
    proof = check_proof(objective, answer.metric)
    limit = 1.02 * certify(objective, answer.metric).relative_gap + 1e-11
    assert proof.relative_gap <= (limit if answer.status is Status.CERTIFIED else limit + 1e-5)


def test_proof_of_an_optimum_that_is_not_attained():
    """inf f is the similar pair's term alone: f comes near it as the metric grows."""
    pairs = PairSet.from_constraints([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0]], [(0, 1)], [(1, 2)])
    objective = MStepObjective(pairs, unlabeled_weight=0.0, trace_weight=0.0)
    proof = check_proof(objective, np.diag([40.0, 0.0]))
    with flint.ctx.workprec(256):
        least = (1 + arb(-1).exp()).log()  # of the similar pair, at distance 0
        assert proof.dual_value <= least
        assert least <= proof.primal_value
    assert proof.duality_gap <= 1e-15


def collinear_but_for_rounding(seed):
    """Points with a spread of 1e-16 off a line, no R; a point near its optimum; the optimum.

    Without R the optimum is that of any linear image of the points: here of one that stretches the
    faint direction, made in rational numbers.
    """
    rng = np.random.default_rng(seed)
    X = np.outer(rng.normal(size=14), rng.normal(size=2))
    objective = with_points(X, trace_weight=0.0)
    objective = replace(objective, soft_labels=rng.random(objective.pairs.n_unlabeled))
    rows = [[flint.fmpq(*x.as_integer_ratio()) for x in row] for row in X.tolist()]
    slope = [x / rows[1][0] for x in rows[1]]
    image = [[row[j] - (slope[j] * row[0] if j else 0) for j in range(2)] for row in rows]
    stretched = np.array([[float(arb(x)) for x in row] for row in image])
    stretched /= np.max(np.abs(stretched), axis=0)
    other = with_points(stretched, trace_weight=0.0, soft_labels=objective.soft_labels)
    optimum = solve_quietly(other, tol=1e-9).value
    line = with_points(X[:, :1], trace_weight=0.0, soft_labels=objective.soft_labels)
    along = float(solve_quietly(line, tol=1e-9).metric[0, 0])
    return objective, np.diag([along, 0.0]), optimum


def test_a_faint_spread_is_not_taken_for_none():
    """A huge metric along the faint direction lowers f: neither kind of bound is above that."""
    objective, answer, optimum = collinear_but_for_rounding(0)
    assert certify(objective, answer).dual_value <= optimum
    assert prove(objective, answer).dual_value <= optimum


@pytest.mark.parametrize("trace_weight", [0.0, 1.0])
@pytest.mark.parametrize("scale", [1e-150, 1e-100, 1e100, 1e150])
def test_proof_of_ill_scaled_points(scale, trace_weight):
    """At A = 0, and at one with distances near 1, where a double can hold it."""
    objective = with_points(scale * gaussian(8, 3), trace_weight=trace_weight)
    check_proof(objective, np.zeros((3, 3)), scale=scale)
    check_proof(objective, np.eye(3) * min(scale**-2, 1e300), scale=scale)


def test_proof_of_features_of_very_different_scale():
    X = gaussian(12, 5) * np.geomspace(1e-4, 1e4, 5)
    objective = with_points(X, trace_weight=1.0)
    answer = solve_m_step(objective, tol=1e-7).metric
    assert prove(objective, answer).relative_gap <= 1e-7


def test_proof_a_dropped_rounding_of_the_pivot_makes_a_bound_that_is_too_high(monkeypatch):
    """With 53 bits the pivot of the faint direction is rounding and nothing else."""
    cases = [collinear_but_for_rounding(seed) for seed in range(6)]

    def false_claims():
        return sum(
            prove(objective, answer, precision=53).dual_value > optimum
            for objective, answer, optimum in cases
        )

    assert false_claims() == 0
    monkeypatch.setattr(ball_arithmetic, "certainly_positive", lambda pivot: pivot.mid() > 0)
    assert false_claims() > 0
