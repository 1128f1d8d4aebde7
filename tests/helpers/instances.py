"""Random instances and PSD matrices for the tests."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from seraph_cvx import MStepObjective, PairSet, paper
from seraph_cvx.fit.direct import minimize_directly
from seraph_cvx.pairs.labeled_pairs import LabeledPairs
from seraph_cvx.penalties import manifold_term

SETTINGS = {
    "none": {"unlabeled_weight": 0.0, "trace_weight": 0.0},
    "post": {"unlabeled_weight": "ratio", "trace_weight": 0.0},
    "proj": {"unlabeled_weight": 0.0, "trace_weight": 1.0},
    "hyper": {"unlabeled_weight": "ratio", "trace_weight": 1.0},
    "other": {"unlabeled_weight": 0.7, "trace_weight": 0.3, "threshold": 2.5},
}
"""The paper's four settings, and one with no default in it."""


def random_pairs(seed, n=20, m=4, n_labeled=12, scale=1.0, shift=0.0):
    """n Gaussian points; `n_labeled` random pairs, each similar or dissimilar by a coin."""
    rng = np.random.default_rng(seed)
    X = shift + scale * rng.normal(size=(n, m))
    everything = np.column_stack(np.triu_indices(n, 1))
    drawn = everything[rng.permutation(len(everything))[:n_labeled]]
    coin = rng.random(len(drawn)) < 0.5
    coin[0], coin[-1] = True, False
    return PairSet.from_constraints(X, drawn[coin], drawn[~coin])


def random_psd(rng, m, size=1.0, rank=None):
    """FF' with F Gaussian: trace about `size`."""
    rank = int(rng.integers(1, m + 1)) if rank is None else rank
    F = rng.normal(size=(m, rank)) * np.sqrt(size / (m * rank))
    return F @ F.T


def random_objective(seed, setting, *, q="random", n=20, m=4, n_labeled=12, **more):
    """An MStepObjective in one of SETTINGS, with soft labels "random", "streamed" or "start"."""
    rng = np.random.default_rng([seed, 1])
    pairs = random_pairs(seed, n=n, m=m, n_labeled=n_labeled)
    arguments = {**SETTINGS[setting], **more}
    if q == "random":
        arguments["soft_labels"] = rng.random(pairs.n_unlabeled)
    elif q == "streamed":
        arguments["previous_metric"] = random_psd(rng, m)
    return MStepObjective(pairs, **arguments)


def weighted_objective(seed, mu=0.4, trace_weight=0.6, n=18, m=4):
    """An M-step with confidences that are multiples of 1/4 and a manifold term."""
    rng, pairs = np.random.default_rng([seed, 3]), random_pairs(seed, n=n, m=m)
    c = rng.integers(1, 13, pairs.n_labeled) / 4.0
    return MStepObjective(
        replace(pairs, labels=LabeledPairs(pairs.similar, pairs.dissimilar, c)),
        previous_metric=random_psd(rng, m),
        unlabeled_weight=mu,
        trace_weight=trace_weight,
        threshold=1.7,
        manifold_term=manifold_term(pairs.points, 0.3, n_neighbors=3),
    )


def with_block_size(objective, block_size):
    """The same objective, its pairs swept in blocks of `block_size` points a side."""
    family, sums = objective.family, objective.family.sums
    sums = replace(sums, layout=replace(sums.layout, block_size=block_size))
    cut = replace(family, sums=sums, _geometries={})
    return replace(objective, family=cut)


def explicit_soft_labels(objective):
    """q(+1) per row of U, whichever way the objective was given them; by eq. (10) if streamed."""
    if objective.soft_labels is not None:
        return np.asarray(objective.soft_labels)
    rows, X = objective.pairs.unlabeled, objective.pairs.points
    if objective.previous_metric is None:
        return np.zeros(len(rows))
    s = paper.squared_distances(X, rows, objective.previous_metric) - objective.threshold
    return 1.0 / (1.0 + np.exp(np.minimum(objective.sharpness * s, 700.0)))


def by_the_paper(objective, formula, A, *q):
    """Minus a formula of the paper at A; a pair of confidence k/4 is k pairs, a quarter each."""
    X, S, D, U = pair_lists(objective.pairs)
    copies = np.rint(4.0 * objective.pairs.labeled_weights).astype(int)
    S, D = np.repeat(S, copies[: len(S)], axis=0), np.repeat(D, copies[len(S) :], axis=0)
    nobody, letters = U[:0], {"lam": 0.0, "eta": objective.threshold}
    labeled = formula(X, S, D, nobody, *(labels[:0] for labels in q), A, mu=0.0, **letters)
    unlabeled = formula(X, nobody, nobody, U, *q, A, mu=objective.mu, **letters)
    R = objective.trace_weight * np.eye(len(A))
    R = R if objective.manifold_term is None else R + objective.manifold_term
    return (R if np.ndim(labeled) else np.sum(R * A)) - labeled / 4.0 - unlabeled


def paper_m_step(objective, A):
    """Minus (11) of the paper at A, and its gradient."""
    q = explicit_soft_labels(objective)
    return tuple(by_the_paper(objective, f, A, q) for f in (paper.m_step, paper.m_step_gradient))


def pair_lists(pairs):
    """X, S, D and U: the first arguments of the paper's formulas."""
    return pairs.points, pairs.similar, pairs.dissimilar, pairs.unlabeled


def dual_terms(objective):
    """v, c and b of f = sum_k c_k log(1 + e^{s_k}) - b_k s_k + <R, A>: similar first, U last."""
    X, S, D, U = pair_lists(objective.pairs)
    c, mu = objective.pairs.labeled_weights, objective.mu
    b = np.concatenate(
        [np.zeros(len(S)), c[len(S) :], mu * (1.0 - explicit_soft_labels(objective))]
    )
    return paper.differences(X, np.vstack([S, D, U])), np.concatenate([c, np.full(len(U), mu)]), b


def dual_value(p, c, b, eta):
    """D(p) = sum_k c_k H(p_k) - eta (sum_k c_k p_k - beta)."""
    return float(c @ paper.entropy(p) - eta * (c @ p - b.sum()))


def dual_matrix(p, V, c, b, trace_weight):
    """M(p) = sum_k (c_k p_k - b_k) v_k v_k' + lambda I."""
    return (V.T * (c * p - b)) @ V + trace_weight * np.eye(V.shape[1])


def descended(pairs, start=None, tol=1e-6, max_iter=5_000, **weights):
    """A stationary point of (7) with these pairs and weights."""
    return minimize_directly(MStepObjective(pairs, **weights), start, tol, max_iter)
