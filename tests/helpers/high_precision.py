"""Sums over pairs and the M-step's value with 240 digits, and what a proof has to satisfy by it."""

from __future__ import annotations

import warnings

import numpy as np
from flint import arb, arb_mat, ctx
from instances import random_pairs

from seraph_cvx import MStepObjective, NotCertified, PairSet, solve_m_step
from seraph_cvx.certificate.proof import prove

BITS = 800
"""More than 240 digits."""


def exact(values):
    """These doubles, without rounding."""
    return arb_mat(np.atleast_2d(np.asarray(values, dtype=float)).tolist())


def rounded(matrix):
    rows, columns = range(matrix.nrows()), range(matrix.ncols())
    return np.array([[float(matrix[i, j]) for j in columns] for i in rows])


def total(terms):
    return sum(terms, arb(0))


def identity(m, entry=1.0):
    return exact(entry * np.eye(m))


def differences(points, rows):
    """x_i - x_j for each row (i, j), exactly."""
    X, m = exact(points), np.shape(points)[1]
    return arb_mat([[X[i, a] - X[j, a] for a in range(m)] for i, j in np.asarray(rows).tolist()])


def forms(V, P):
    """v'Pv for each row v."""
    image = V * P
    return [total(image[k, a] * V[k, a] for a in range(V.ncols())) for k in range(V.nrows())]


def squares(V, L):
    """v'LL'v for each row v."""
    return forms(V * L, identity(L.ncols()))


def is_within(errors, limits):
    """Whether no entry of one matrix is larger than that of the other."""
    return all(abs(x) <= y for x, y in zip(errors.entries(), limits.entries(), strict=True))


def moment(V, weights):
    """sum_k w_k v_k v_k'."""
    m = range(V.ncols())
    weighted = arb_mat([[arb(w) * V[k, a] for a in m] for k, w in enumerate(np.ravel(weights))])
    return weighted.transpose() * V


def cholesky(C):
    """The factor of a matrix that is proven positive definite, or None."""
    m = C.nrows()
    F = [[arb(0)] * m for _ in range(m)]
    for j in range(m):
        pivot = C[j, j] - total(F[j][k] ** 2 for k in range(j))
        if not pivot > 0:
            return None
        F[j][j] = pivot.sqrt()
        for i in range(j + 1, m):
            F[i][j] = (C[i, j] - total(F[i][k] * F[j][k] for k in range(j))) / F[j][j]
    return arb_mat(F)


def log_det(C):
    """log det C, or None where C is not proven positive definite."""
    F = cholesky(C)
    return None if F is None else 2 * total(F[i, i].log() for i in range(C.nrows()))


def unit_basis(C):
    """T, some exact numbers, with T'CT = I, nearly; directions of no extent are stretched far."""
    m = C.nrows()
    lifted = C + identity(m) * (C.trace().mid() * arb(2) ** -300)
    T = cholesky(lifted).inv().transpose()
    return arb_mat([[T[i, j].mid() for j in range(m)] for i in range(m)])


def soft_labels_by_definition(objective, V):
    """q of (10) for each difference, by the previous metric."""
    eta, sharpness = objective.threshold, arb(objective.sharpness)
    distances = forms(V, exact(objective.previous_metric))
    return [1 / (1 + (sharpness * (d - eta)).exp()) for d in distances]


def value_by_definition(objective, L):
    """f(LL') of (11): pair by pair, -ln p(+1) and -ln p(-1) by their weights."""
    pairs, L = objective.pairs, exact(L)
    R = exact(objective.trace_weight * np.eye(pairs.n_features))
    if objective.manifold_term is not None:
        R = R + exact(objective.manifold_term)
    rows = np.vstack([pairs.labeled, pairs.unlabeled]) if objective.mu > 0.0 else pairs.labeled
    V, n_similar, n_labeled = differences(pairs.points, rows), len(pairs.similar), pairs.n_labeled
    c = [*map(arb, pairs.labeled_weights.tolist())] + [arb(objective.mu)] * len(rows)
    q = [arb(1)] * n_similar + [arb(0)] * len(rows)
    if objective.soft_labels is not None:
        q[n_labeled:] = map(arb, objective.soft_labels.tolist())
    elif objective.previous_metric is not None:
        q[n_labeled:] = soft_labels_by_definition(objective, V)[n_labeled:]
    value = (L.transpose() * R * L).trace()
    for k, d in enumerate(squares(V, L)):
        odds = (d - objective.threshold).exp()
        value += c[k] * (q[k] * (1 + odds).log() + (1 - q[k]) * (1 + 1 / odds).log())
    return value


def exact_value(objective, L):
    """The same, as a double."""
    with ctx.workprec(BITS):
        return float(value_by_definition(objective, L))


def assert_true_of(proof, objective, *factors):
    """Above the lower bound at each PSD point; and f at the proof's own point below the upper."""
    with ctx.workprec(BITS):
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
        yield rng.normal(size=(m, rank)) * 10.0 ** rng.uniform(-2, 2) / scale


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
