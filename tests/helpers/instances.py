"""Random instances and PSD matrices for the tests."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from seraph_cvx import MStepObjective, PairSet
from seraph_cvx.engine.blocks import Layout

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


def random_objective(seed, setting, *, q="random", n=20, m=4, **more):
    """An MStepObjective in one of SETTINGS, with soft labels "random", "streamed" or "start"."""
    rng = np.random.default_rng([seed, 1])
    pairs = random_pairs(seed, n=n, m=m)
    arguments = {**SETTINGS[setting], **more}
    if q == "random":
        arguments["soft_labels"] = rng.random(pairs.n_unlabeled)
    elif q == "streamed":
        arguments["previous_metric"] = random_psd(rng, m)
    return MStepObjective(pairs, **arguments)


def with_block_size(objective, block_size):
    """The same objective, its pairs swept in blocks of `block_size` points a side."""
    family = objective.family
    layout = Layout(family.pairs.n_points, family.pairs.labels, block_size)
    cut = replace(family, sums=replace(family.sums, layout=layout), _geometries={})
    return replace(objective, family=cut)


def explicit_soft_labels(objective):
    """q(+1) per row of U, whichever way the objective was given them; by eq. (10) if streamed."""
    if objective.soft_labels is not None:
        return np.asarray(objective.soft_labels)
    rows, X = objective.pairs.unlabeled, objective.pairs.points
    if objective.previous_metric is None:
        return np.zeros(len(rows))
    V = X[rows[:, 0]] - X[rows[:, 1]]
    s = np.einsum("ki,ij,kj->k", V, objective.previous_metric, V) - objective.threshold
    return 1.0 / (1.0 + np.exp(np.minimum(objective.sharpness * s, 700.0)))
