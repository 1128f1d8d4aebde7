"""Families of M-steps on extreme data: each makes an instance from a random generator."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from stress_closed import optimum_of_two_points
from stress_doors import DOORS
from stress_extremes import EXTREMES
from stress_instances import (
    decades,
    draw_pairs,
    gaussian,
    m_step,
    on_other_points,
    psd,
    some_metric,
    stated,
    with_sentinels,
)
from stress_penalized import PENALIZED
from stress_problems import PROBLEMS

from seraph_cvx import PairSet


def far_points(rng):
    """A sentinel of 1e3 to 1e12 among points of size one."""
    X = gaussian(rng)
    pairs = draw_pairs(rng, with_sentinels(rng, X))
    found = m_step(rng, pairs)
    return replace(found, clean=on_other_points(found.objective, X))


def clusters_far_apart(rng):
    """Clusters 1e2 to 1e12 from each other, and labels within them alone: large sums cancel."""
    n, m = int(rng.integers(6, 13)), int(rng.integers(1, 5))
    member = rng.integers(3, size=n)
    member[:4] = 0, 0, 1, 1
    X = rng.normal(size=(n, m)) + (rng.normal(size=(3, m)) * decades(rng, 2, 12))[member]
    rows = np.column_stack(np.triu_indices(n, 1))
    within = rows[member[rows[:, 0]] == member[rows[:, 1]]]
    within = within[rng.permutation(len(within))[: int(rng.integers(2, len(within) + 1))]]
    similar = rng.random(len(within)) < rng.choice([0.0, 0.3, 0.5])
    pairs = PairSet.from_constraints(X, within[similar], within[~similar])
    weight = 0.0 if rng.random() < 0.2 else float(decades(rng, -9, 1))
    mu = 0.0 if rng.random() < 0.8 else float(decades(rng, -9, 0))
    return m_step(rng, pairs, unlabeled_weight=mu, trace_weight=weight)


def feature_scales(rng):
    """Features of size 1e-9 to 1e9, and a trace weight of any size."""
    X = gaussian(rng)
    pairs = draw_pairs(rng, X * decades(rng, -9, 9, size=X.shape[1]))
    return m_step(rng, pairs, trace_weight=float(decades(rng, -12, 9)))


def more_features_than_points(rng):
    """m > n, the features of one size or of several."""
    n = int(rng.integers(2, 6))
    m = int(rng.integers(n + 1, 9))
    X = rng.normal(size=(n, m)) * (decades(rng, -4, 4, size=m) if rng.random() < 0.5 else 1.0)
    weight = 0.0 if rng.random() < 0.3 else float(decades(rng, -9, 6))
    return m_step(rng, draw_pairs(rng, X), trace_weight=weight)


def one_pair(rng):
    """Two points, one labeled pair: the optimum is known in closed form."""
    m = int(rng.integers(1, 9))
    X = np.vstack([np.zeros(m), rng.normal(size=m) * decades(rng, -6, 6, size=m)])
    if rng.random() < 0.5:
        X = X + rng.normal(size=m) * decades(rng, -3, 3)
    rows, none = [(0, 1)], np.empty((0, 2), dtype=int)
    c = float(decades(rng, -9, 9)) if rng.random() < 0.5 else 1.0
    if rng.random() < 0.2:
        pairs = PairSet.from_constraints(X, rows, none, similar_confidence=c)
    else:
        pairs = PairSet.from_constraints(X, none, rows, dissimilar_confidence=c)
    weight = 0.0 if rng.random() < 0.1 else float(decades(rng, -12, 9))
    if weight and rng.random() < 0.3:  # r = weight / |v|^2 / c at the optimum: tiny
        weight = float(c * np.sum((X[1] - X[0]) ** 2) * decades(rng, -18, -1))
    eta = float(decades(rng, -6, 6)) if rng.random() < 0.5 else 1.0
    found = stated(pairs, trace_weight=weight, threshold=eta)
    return replace(found, optimum=optimum_of_two_points(found.given))


def nearly_collinear(rng):
    """Features that are multiples of others up to 1e-13 to 1e-4."""
    n, m = int(rng.integers(4, 11)), int(rng.integers(2, 6))
    rank = int(rng.integers(1, m))
    main = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, m))
    X = main + decades(rng, -13, -4) * rng.normal(size=(n, m))
    if rng.random() < 0.3:
        X = X * decades(rng, -3, 3, size=m)
    weight = 0.0 if rng.random() < 0.6 else float(decades(rng, -12, 1))
    return m_step(rng, draw_pairs(rng, X), trace_weight=weight)


def exactly_collinear(rng):
    """One-hot features, sums of others, multiples by powers of two, constant columns."""
    n, kind = int(rng.integers(4, 11)), rng.integers(4)
    if kind == 0:
        X = np.eye(4)[rng.integers(4, size=n)]
        X = np.hstack([X, rng.normal(size=(n, int(rng.integers(3))))])
    elif kind == 1:
        X = rng.integers(-8, 9, size=(n, 2)) / 4.0
        X = np.hstack([X, X.sum(axis=1, keepdims=True), X[:, :1] - 2.0 * X[:, 1:]])
    elif kind == 2:
        X = rng.normal(size=(n, 2))
        X = np.hstack([X, X[:, :1] * 2.0 ** rng.integers(-30, 31)])
    else:
        X = rng.normal(size=(n, 3))
        X[:, 1] = rng.choice([0.0, 0.1, 1e6])
    weight = 0.0 if rng.random() < 0.6 else float(decades(rng, -12, 3))
    return m_step(rng, draw_pairs(rng, X), trace_weight=weight)


def duplicated_points(rng):
    """Every point several times, now and then with one far point or a tiny shift."""
    X = gaussian(rng)
    X = X[rng.integers(max(1, len(X) // 2), size=len(X))]
    if rng.random() < 0.3:
        X = with_sentinels(rng, X)
    elif rng.random() < 0.5:
        X = X + decades(rng, -15, -3) * rng.normal(size=X.shape)
    weight = 0.0 if rng.random() < 0.4 else float(decades(rng, -9, 2))
    return m_step(rng, draw_pairs(rng, X), trace_weight=weight)


def thresholds(rng):
    """eta from 1e-6 to 1e6."""
    return m_step(rng, draw_pairs(rng, gaussian(rng)), threshold=float(decades(rng, -6, 6)))


def unlabeled_weights(rng):
    """mu from 1e-8 to 1e6."""
    X = gaussian(rng)
    if rng.random() < 0.3:
        X = with_sentinels(rng, X, 1, 9)
    pairs = draw_pairs(rng, X)
    weight = 0.0 if rng.random() < 0.2 else float(decades(rng, -4, 2))
    mu = float(decades(rng, -8, 6))
    return m_step(rng, pairs, unlabeled_weight=mu, trace_weight=weight)


def trace_weights(rng):
    """lambda = 0 or 1e-12 to 1e9, of points of size 1e-3 to 1e3."""
    X = gaussian(rng) * decades(rng, -3, 3)
    weight = 0.0 if rng.random() < 0.3 else float(decades(rng, -12, 9))
    return m_step(rng, draw_pairs(rng, X), trace_weight=weight)


def confidences(rng):
    """Confidences from 1e-9 to 1e9 in one problem, with any threshold; labels alone, or not."""
    X = gaussian(rng)
    if rng.random() < 0.2:
        X = X * decades(rng, -3, 3, size=X.shape[1])
    spread = sorted(rng.uniform(-9, 9, size=2)) if rng.random() < 0.3 else (-9, 9)
    eta = float(decades(rng, -3, 4)) if rng.random() < 0.5 else 1.0
    if rng.random() < 0.5:
        pairs = draw_pairs(rng, X, spread, most=X.shape[1] + 1)
        settings = {"unlabeled_weight": 0.0, "trace_weight": 0.0}
    else:
        pairs = draw_pairs(rng, X, spread)
        settings = {"trace_weight": float(decades(rng, -12, 6))}
    return m_step(rng, pairs, threshold=eta, **settings)


def manifold_terms(rng):
    """A manifold term of any condition, PSD up to rounding, with a trace weight or without."""
    X = gaussian(rng)
    if rng.random() < 0.3:
        X = X * decades(rng, -4, 4, size=X.shape[1])
    weight = 0.0 if rng.random() < 0.3 else float(decades(rng, -9, 2))
    term = psd(rng, X.shape[1])
    return m_step(rng, draw_pairs(rng, X), trace_weight=weight, manifold_term=(term + term.T) / 2.0)


def given_soft_labels(rng):
    """Soft labels that are 0, 1, tiny, or one minus tiny."""
    X = gaussian(rng)
    pairs = draw_pairs(rng, with_sentinels(rng, X, 1, 6) if rng.random() < 0.3 else X)
    q = rng.random(pairs.n_unlabeled)
    tiny = decades(rng, -300 if rng.random() < 0.2 else -17, -3, size=len(q))
    q = np.choose(rng.integers(5, size=len(q)), [q, 0.0 * q, 0.0 * q + 1.0, tiny, 1.0 - tiny])
    weight = 0.0 if rng.random() < 0.3 else float(decades(rng, -6, 1))
    mu = float(decades(rng, -3, 3))
    return m_step(rng, pairs, soft_labels=q, unlabeled_weight=mu, trace_weight=weight)


def streamed_soft_labels(rng):
    """Soft labels of a previous metric, sharpness 0.5 to 50."""
    X = gaussian(rng)
    if rng.random() < 0.3:
        X = with_sentinels(rng, X, 1, 9)
    elif rng.random() < 0.5:
        X = X * decades(rng, -3, 3, size=X.shape[1])
    pairs = draw_pairs(rng, X)
    return m_step(
        rng,
        pairs,
        previous_metric=some_metric(rng, pairs, -3, 3),
        sharpness=float(decades(rng, -0.3, 1.7)),
        unlabeled_weight=float(decades(rng, -3, 2)),
        trace_weight=0.0 if rng.random() < 0.2 else float(decades(rng, -6, 2)),
    )


def tiny_posteriors(rng):
    """Metrics far beyond the threshold, so that every dual point is tiny: 1e-18 to 1e-6."""
    X = rng.normal(size=(int(rng.integers(2, 7)), int(rng.integers(1, 4))))
    rows = np.column_stack(np.triu_indices(len(X), 1))
    apart = rows[rng.permutation(len(rows))[: int(rng.integers(1, len(rows) + 1))]]
    c = float(decades(rng, 0, 9))
    pairs = PairSet.from_constraints(X, [], apart, dissimilar_confidence=c)
    weight = float(c * decades(rng, -17, -6))
    return m_step(rng, pairs, unlabeled_weight=0.0, trace_weight=weight)


def mixed(rng):
    """Several of these at once."""
    X = gaussian(rng)
    n, m = X.shape
    changes = rng.random(5) < 0.4
    if changes[0] and m > 1:
        X[:, -1] = X[:, 0] * rng.normal() + decades(rng, -13, -2) * rng.normal(size=n)
    if changes[1]:
        X = X[rng.integers(max(1, n - 2), size=n)]
    if changes[2]:
        X = X * decades(rng, -6, 6, size=m)
    clean = X
    if changes[3]:
        X = with_sentinels(rng, X)
    pairs = draw_pairs(rng, X, (-6, 6) if changes[4] else None)
    given = {}
    if rng.random() < 0.4:
        given["threshold"] = float(decades(rng, -4, 4))
    if rng.random() < 0.4:
        given["unlabeled_weight"] = float(decades(rng, -6, 4))
    if rng.random() < 0.3:
        given["manifold_term"] = psd(rng, m)
    given["trace_weight"] = 0.0 if rng.random() < 0.25 else float(decades(rng, -12, 9))
    found = m_step(rng, pairs, **given)
    return replace(found, clean=on_other_points(found.objective, clean) if changes[3] else None)


FAMILIES = {
    "far points": far_points,
    "clusters far apart": clusters_far_apart,
    "scales of features": feature_scales,
    "more features than points": more_features_than_points,
    "one pair": one_pair,
    "nearly collinear": nearly_collinear,
    "exactly collinear": exactly_collinear,
    "duplicated points": duplicated_points,
    "thresholds": thresholds,
    "unlabeled weights": unlabeled_weights,
    "trace weights": trace_weights,
    "confidences": confidences,
    "manifold terms": manifold_terms,
    "given soft labels": given_soft_labels,
    "streamed soft labels": streamed_soft_labels,
    "tiny posteriors": tiny_posteriors,
    "mixed": mixed,
    **EXTREMES,
    **PENALIZED,
    **DOORS,
    **PROBLEMS,
}

FEWER = {
    "sampled pairs": 600,
    "sampled pairs of one feature": 500,
    "one feature": 600,
    "two points": 600,
    "huge and tiny weights": 600,
    "denormal numbers": 600,
    **dict.fromkeys(PENALIZED, 300),
    "one feature and blocks": 500,
    **dict.fromkeys(DOORS, 150),
    "nearly right inputs": 300,
    "other arrays": 300,
    "made from another objective": 300,
    **dict.fromkeys(PROBLEMS, 150),
}
"""Families that cost more, or that have less to vary."""

MARATHON = dict.fromkeys(FAMILIES, 800) | FEWER
"""How many instances of each family the marathon has: more than 20,000 in all."""
