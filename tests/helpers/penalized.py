"""Random M-steps with each penalty, stated once more from scratch, and matrices that satisfy it."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
from instances import random_objective, random_psd

from seraph_cvx.penalties import (
    Diagonal,
    LogDet,
    Ridge,
    Sparse,
    TraceBound,
)


def _weight(rng, most=1.0):
    return 10.0 ** rng.uniform(-1, most)


def _prior(objective, rng):
    m = objective.pairs.n_features
    return random_psd(rng, m, rank=m) + 0.2 * np.eye(m)


def _difference(objective, rng):
    i, j = rng.choice(objective.pairs.n_points, 2, replace=False)
    return objective.pairs.points[i] - objective.pairs.points[j]


def _entries(A, is_wanted):
    """The entries A_ij of which (i, j) is wanted."""
    return [A[i, j] for i, j in np.ndindex(A.shape) if is_wanted(i, j)]


def _ridge(objective, rng):
    weight, prior = _weight(rng), _prior(objective, rng)

    def state(A):
        return weight / 2 * sum(map(cp.square, _entries(A - prior, lambda i, j: True))), []

    return Ridge(weight, prior), state


def _log_det(objective, rng):
    weight, prior = _weight(rng), _prior(objective, rng)
    constant = np.linalg.slogdet(prior)[1] - len(prior)

    def state(A):
        return weight * (cp.trace(A @ np.linalg.inv(prior)) - cp.log_det(A) + constant), []

    return LogDet(weight, prior), state


def _trace_bound(objective, rng):
    bound = _weight(rng, 0.5)
    return TraceBound(bound), lambda A: (0.0, [cp.trace(A) <= bound])


def _diagonal(objective, rng):
    return Diagonal(), lambda A: (0.0, [x == 0 for x in _entries(A, lambda i, j: j < i)])


def _sparse(objective, rng):
    weight = _weight(rng, 0.5)

    def state(A):
        return weight * sum(map(cp.abs, _entries(A, lambda i, j: i != j))), []

    return Sparse(weight), state


BLOCKS = {
    "Ridge": _ridge,
    "LogDet": _log_det,
    "TraceBound": _trace_bound,
    "Diagonal": _diagonal,
    "Sparse": _sparse,
}
"""Each makes a block for an M-step, and what states it in CVXPY from scratch."""


def random_penalized(name, seed, **more):
    """An M-step with one block, the block, and what states both from scratch."""
    rng = np.random.default_rng([seed, 20])
    setting = ["hyper", "other"][seed % 2]
    plain = random_objective(seed, setting, n=12, m=3 + seed % 2, **more)
    block, state = BLOCKS[name](plain, rng)
    objective = random_objective(seed, setting, n=12, m=3 + seed % 2, penalties=[block], **more)
    return objective, block, lambda: state_from_scratch(plain, state)


def state_from_scratch(plain, state):
    """The M-step as (11) reads, with q pair by pair, plus what `state` adds."""
    pairs, X = plain.pairs, plain.pairs.points
    A = cp.Variable((X.shape[1], X.shape[1]), PSD=True)

    def scores(rows):
        V = X[rows[:, 0]] - X[rows[:, 1]]
        return cp.sum(cp.multiply(V @ A, V), axis=1) - plain.threshold

    s, q = scores(pairs.unlabeled), plain.soft_labels
    total = cp.sum(cp.logistic(scores(pairs.similar)))
    total += cp.sum(cp.logistic(-scores(pairs.dissimilar)))
    total += plain.mu * (q @ cp.logistic(s) + (1 - q) @ cp.logistic(-s))
    more, constraints = state(A)
    return cp.Problem(cp.Minimize(total + plain.trace_weight * cp.trace(A) + more), constraints)


def random_feasible(objective, rng):
    """A random PSD matrix that satisfies the constraints of the one block."""
    m = objective.pairs.n_features
    A = random_psd(rng, m, size=10.0 ** rng.uniform(-2, 1.5), rank=m)
    for block in objective.penalties:
        L = block.feasible_factor(np.linalg.cholesky(A))
        A = np.diag(np.diag(L @ L.T)) if isinstance(block, Diagonal) else L @ L.T
    return A
