"""The M-step's value with 200 digits, pair by pair, and what a proof has to satisfy by it."""

from __future__ import annotations

import warnings

import numpy as np
from flint import arb, arb_mat, ctx
from instances import random_pairs

from seraph_cvx import MStepObjective, NotCertified, PairSet, solve_m_step
from seraph_cvx.certificate.proof import prove

MANY_BITS = 700
"""More than 200 digits."""


def exact(values):
    return arb_mat(np.asarray(values, dtype=float).tolist())


def soft_label(objective, v, k):
    """q(+1) of the k-th unlabeled pair, whose difference is the column v."""
    if objective.soft_labels is not None:
        return arb(float(objective.soft_labels[k]))
    if objective.previous_metric is None:
        return arb(0)
    d = (v.transpose() * exact(objective.previous_metric) * v)[0, 0]
    return 1 / (1 + (arb(objective.sharpness) * (d - objective.threshold)).exp())


def value_by_definition(objective, L):
    """f(LL') of (11): pair by pair, -ln p(+1) and -ln p(-1) by their weights; 700 bits."""
    pairs, X, factor = objective.pairs, exact(objective.pairs.points), exact(L)
    R = exact(objective.trace_weight * np.eye(pairs.n_features))
    if objective.manifold_term is not None:
        R = R + exact(objective.manifold_term)
    total = (factor.transpose() * R * factor).trace()
    n_similar, c = len(pairs.similar), pairs.labeled_weights
    rows = pairs.labeled.tolist() + (pairs.unlabeled.tolist() if objective.mu > 0.0 else [])
    for k, (i, j) in enumerate(rows):
        v = arb_mat([[X[i, a] - X[j, a]] for a in range(pairs.n_features)])
        image = factor.transpose() * v
        odds = ((image.transpose() * image)[0, 0] - objective.threshold).exp()
        if k < pairs.n_labeled:
            weight, q = arb(float(c[k])), arb(int(k < n_similar))
        else:
            weight, q = arb(objective.mu), soft_label(objective, v, k - pairs.n_labeled)
        total += weight * (q * (1 + odds).log() + (1 - q) * (1 + 1 / odds).log())
    return total


def assert_true_of(proof, objective, *factors):
    """Above the lower bound at each PSD point; and f at the proof's own point below the upper."""
    with ctx.workprec(MANY_BITS):
        for L in factors:
            assert value_by_definition(objective, L) >= proof.dual_value
        own = value_by_definition(objective, proof.factor)
        assert own <= proof.primal_value
        sharpness = 2e-16 + 2.0 ** (8 - proof.precision)
        assert own >= proof.primal_value - sharpness * max(1.0, abs(proof.primal_value))


def solve_quietly(objective, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCertified)
        return solve_m_step(objective, allow_unattained=True, **settings)


def random_factors(rng, m, scale=1.0, how_many=5):
    for _ in range(how_many):
        rank = int(rng.integers(1, m + 1))
        yield rng.normal(size=(m, rank)) * 10.0 ** rng.uniform(-2, 1) / scale


def check(objective, A=None, scale=1.0, **settings):
    """A proof at A, or at the solver's answer, true at the answer and at random points."""
    answer = solve_quietly(objective, tol=1e-9, max_iter=500).metric if A is None else A
    proof = prove(objective, answer, **settings)
    rng = np.random.default_rng(7)
    points = random_factors(rng, objective.pairs.n_features, scale)
    assert_true_of(proof, objective, proof.factor, *points)
    assert proof.dual_value <= proof.primal_value < np.inf
    return proof


def with_points(X, **settings):
    coin = random_pairs(0, n=len(X), m=1, n_labeled=6)
    return MStepObjective(PairSet.from_constraints(X, coin.similar, coin.dissimilar), **settings)


def gaussian(n, m):
    return np.random.default_rng([n, m]).normal(size=(n, m))
