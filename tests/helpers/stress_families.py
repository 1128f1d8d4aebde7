"""Families of M-steps on extreme data: each makes an instance from a random generator.

At the ends of the range of doubles, of sampled pairs, of one feature and of two points, whose
optimum is known, and with penalties and constraints at all scales of the data. A metric of points
of size x has the size 1/x^2, and so has what a block is given; now and then it is off by many
decades, or the block's weight is of any size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from flint import arb
from stress_judge import Given, given, optimum_of_one_feature, optimum_of_two_points

from seraph_cvx import MStepObjective, PairSet
from seraph_cvx.penalties import (
    Diagonal,
    LinearConstraints,
    LogDet,
    Manifold,
    Ridge,
    Sparse,
    Trace,
    TraceBound,
    UpperBound,
)

DENORMAL = 5e-324


@dataclass(frozen=True, eq=False)
class Instance:
    """An M-step, and what its certificates are to be judged by."""

    objective: MStepObjective
    given: Given | None = None  # the M-step as it was given; None: the objective is believed
    clean: MStepObjective | None = None  # its like on clean data: metrics good there are tried here
    optimum: arb | None = None  # the infimum as a ball, where it is known
    metrics: list = field(default_factory=list)  # to be certified first
    certificates: list = field(default_factory=list)  # given out elsewhere
    certify: Callable | None = None  # makes a certificate in another way than `certify`
    disturb: Callable | None = None  # writes where nothing should change; returns falsehoods
    falsehoods: dict = field(default_factory=dict)  # seen while the instance was made
    can_be_solved: bool = True  # whether `solve_m_step` is tried, in thorough inspections


def stated(pairs, **settings):
    """The instance of these arguments, to be judged by them and not by what became of them."""
    copied = given(pairs, **settings)
    return Instance(MStepObjective(pairs, **settings), copied)


def decades(rng, low, high, size=None):
    """10^low to 10^high, every decade as likely."""
    return 10.0 ** rng.uniform(low, high, size=size)


def chance(rng, share):
    return rng.random() < share


def zero_or(rng, share, low, high):
    """Zero in some cases, else a number of these decades."""
    return 0.0 if chance(rng, share) else decades(rng, low, high)


def integer(rng, low, high):
    """From low to high - 1."""
    return int(rng.integers(low, high))


def pick(rng, *options, p=None):
    return options[rng.integers(len(options)) if p is None else rng.choice(len(options), p=p)]


def gaussian(rng, points=None, features=None):
    """Points of size one: so many of so many features; a few per cent are larger."""
    if points is None:
        if chance(rng, 0.02):
            return rng.normal(size=(40, integer(rng, 2, 9)))
        points, features = ((2, 13), (1, 9)) if chance(rng, 0.15) else ((3, 10), (1, 6))
    return rng.normal(size=(integer(rng, *points), integer(rng, *features)))


def all_pairs(n):
    return np.column_stack(np.triu_indices(n, 1))


def some_of(rng, rows, least, most=None):
    """A random number of rows, in random order."""
    order = rng.permutation(len(rows))
    return rows[order[: integer(rng, least, (most or len(rows)) + 1)]]


def draw_pairs(rng, X, confidences=None, most=None):
    """Few or many labeled pairs, each similar or dissimilar by a coin that may be unfair."""
    rows = all_pairs(len(X))
    n_labeled = integer(rng, 1, min(len(rows), most or 2 * len(X)) + 1)
    chosen = rows[rng.permutation(len(rows))[:n_labeled]]
    similar = rng.random(n_labeled) < rng.choice([0.0, 0.3, 0.5, 0.8])
    c = np.ones(n_labeled) if confidences is None else decades(rng, *confidences, size=n_labeled)
    c = (None, None) if confidences is None else (c[similar], c[~similar])
    return PairSet.from_constraints(X, chosen[similar], chosen[~similar], *c)


def class_labels(rng, n):
    """Classes of points, -1 where unknown: at least two known."""
    y = rng.integers(0, integer(rng, 1, 4), size=n)
    y[rng.random(n) < rng.choice([0.3, 0.6, 0.9])] = -1
    known = rng.permutation(n)[:2]
    y[known] = rng.integers(0, 3, size=2)
    return y


def drawn(rng, pairs):
    """Some of the unlabeled pairs, one to all but one of them."""
    if pairs.n_unlabeled < 2:
        return pairs
    most = pairs.n_unlabeled - 1
    k = int(rng.choice([1, most, rng.integers(1, most + 1)]))
    return pairs.sampled(k, random_state=integer(rng, 0, 1 << 30))


@np.errstate(all="ignore")
def some_metric(rng, pairs, low=-1.0, high=1.0):
    """A PSD matrix under which the middle distance is of size 10^low to 10^high."""
    X = pairs.points
    spread, extent = np.median(np.abs(X - np.median(X, axis=0)), axis=0), np.ptp(X, axis=0)
    unit = np.where(spread > 0.0, spread, np.where(extent > 0.0, extent, 1.0))
    m = X.shape[1]
    rank = integer(rng, 1, m + 1)
    F = rng.normal(size=(m, rank)) / np.sqrt(m * rank) / unit[:, None]
    return decades(rng, low, high) * (F @ F.T)


def of_previous_metric(rng, pairs, *decades_of_metric, sharpness=(-0.3, 1.0)):
    """Soft labels by eq. (10)."""
    metric = some_metric(rng, pairs, *decades_of_metric)
    return {"previous_metric": metric, "sharpness": decades(rng, *sharpness)}


def soft_labels(rng, k):
    """0, 1, denormal, tiny, one minus tiny, or ordinary."""
    tiny = decades(rng, -320, -3, size=k)
    kinds = [rng.random(k), np.zeros(k), np.ones(k), np.full(k, DENORMAL), tiny, 1.0 - tiny]
    return np.choose(rng.integers(len(kinds), size=k), kinds)


def m_step(rng, pairs, **given):
    """An instance of these pairs, ordinary in everything that is not given."""
    settings = {
        "unlabeled_weight": pick(rng, 0.0, "ratio", decades(rng, -3, 1)),
        "trace_weight": pick(rng, 1.0, decades(rng, -4, 2)),
        "threshold": pick(rng, 1.0, decades(rng, -1, 1)),
    } | given
    if not {"soft_labels", "previous_metric"} & set(given):
        source = rng.integers(3)
        if source == 1:
            settings["soft_labels"] = rng.random(pairs.n_unlabeled)
        elif source == 2:
            settings["previous_metric"] = some_metric(rng, pairs)
            settings.setdefault("sharpness", decades(rng, -0.3, 1.0))
    return stated(pairs, **settings)


def with_sentinels(rng, X, low=3, high=12):
    """A few entries replaced by one far value, or by several."""
    n, m = X.shape
    X = X.copy()
    points = rng.permutation(n)[: 1 + integer(rng, 0, min(3, n - 1) if n > 2 else 1)]
    features = rng.permutation(m)[: 1 + integer(rng, 0, m) if chance(rng, 0.4) else 1]
    value = decades(rng, low, high) * rng.choice([-1.0, 1.0])
    for i in points:
        factor = 1.0 if chance(rng, 0.6) else rng.normal()
        X[i, features] = factor * (np.rint(value) if chance(rng, 0.5) else value)
    return X


def with_points(pairs, X):
    """The same pairs of other points."""
    k, c = len(pairs.similar), pairs.confidence
    c = (None, None) if c is None else (c[:k], c[k:])
    return PairSet.from_constraints(X, pairs.similar, pairs.dissimilar, *c)


def with_clean(found, X):
    """The instance, with the same M-step of clean points."""
    clean = replace(found.objective, pairs=with_points(found.objective.pairs, X))
    return replace(found, clean=clean)


def orthogonal(rng, m):
    return np.linalg.qr(rng.normal(size=(m, m)))[0]


def psd(rng, m):
    """A PSD matrix of any condition: diagonal, turned, of low rank, or of uneven features."""
    spectrum = decades(rng, -12, 6, size=m)
    kind = rng.integers(4)
    if kind == 0:
        return np.diag(spectrum * (rng.random(m) < 0.8))
    if kind == 1:
        directions = orthogonal(rng, m)
        return (directions * spectrum) @ directions.T
    F = rng.normal(size=(m, integer(rng, 1, m + 1)))
    F *= decades(rng, -4, 4) if kind == 2 else decades(rng, -5, 5, size=(m, 1))
    return F @ F.T


def halved(A):
    """The symmetric part."""
    return (A + A.T) / 2.0


# M-steps


def far_points(rng):
    """A sentinel of 1e3 to 1e12 among points of size one."""
    X = gaussian(rng)
    return with_clean(m_step(rng, draw_pairs(rng, with_sentinels(rng, X))), X)


def clusters_far_apart(rng):
    """Clusters 1e2 to 1e12 from each other, and labels within them alone: large sums cancel."""
    n, m = integer(rng, 6, 13), integer(rng, 1, 5)
    member = rng.integers(3, size=n)
    member[:4] = 0, 0, 1, 1
    X = rng.normal(size=(n, m)) + (rng.normal(size=(3, m)) * decades(rng, 2, 12))[member]
    rows = all_pairs(n)
    within = some_of(rng, rows[member[rows[:, 0]] == member[rows[:, 1]]], 2)
    similar = rng.random(len(within)) < rng.choice([0.0, 0.3, 0.5])
    pairs = PairSet.from_constraints(X, within[similar], within[~similar])
    weight, mu = zero_or(rng, 0.2, -9, 1), zero_or(rng, 0.8, -9, 0)
    return m_step(rng, pairs, unlabeled_weight=mu, trace_weight=weight)


def feature_scales(rng):
    """Features of size 1e-9 to 1e9, and a trace weight of any size."""
    X = gaussian(rng)
    pairs = draw_pairs(rng, X * decades(rng, -9, 9, size=X.shape[1]))
    return m_step(rng, pairs, trace_weight=decades(rng, -12, 9))


def of_points(rng, X, zero, low, high):
    """With a trace weight that is zero in some cases, or of any size."""
    weight = zero_or(rng, zero, low, high)
    return m_step(rng, draw_pairs(rng, X), trace_weight=weight)


def more_features_than_points(rng):
    """m > n, the features of one size or of several."""
    n = integer(rng, 2, 6)
    X = rng.normal(size=(n, integer(rng, n + 1, 9)))
    X = X * (decades(rng, -4, 4, size=X.shape[1]) if chance(rng, 0.5) else 1.0)
    return of_points(rng, X, 0.3, -9, 6)


def one_labeled_pair(rng, X, c, similar):
    """The first two points are similar in some cases, else dissimilar."""
    rows, none = [(0, 1)], np.empty((0, 2), dtype=int)
    if chance(rng, similar):
        return PairSet.from_constraints(X, rows, none, similar_confidence=c)
    return PairSet.from_constraints(X, none, rows, dissimilar_confidence=c)


def one_pair(rng):
    """Two points, one labeled pair: the optimum is known in closed form."""
    m = integer(rng, 1, 9)
    X = np.vstack([np.zeros(m), rng.normal(size=m) * decades(rng, -6, 6, size=m)])
    if chance(rng, 0.5):
        X = X + rng.normal(size=m) * decades(rng, -3, 3)
    c = decades(rng, -9, 9) if chance(rng, 0.5) else 1.0
    pairs = one_labeled_pair(rng, X, c, 0.2)
    weight = zero_or(rng, 0.1, -12, 9)
    if weight and chance(rng, 0.3):  # r = weight / |v|^2 / c at the optimum: tiny
        weight = float(c * np.sum((X[1] - X[0]) ** 2) * decades(rng, -18, -1))
    eta = decades(rng, -6, 6) if chance(rng, 0.5) else 1.0
    found = stated(pairs, trace_weight=weight, threshold=eta)
    return replace(found, optimum=optimum_of_two_points(found.given))


def nearly_collinear(rng):
    """Features that are multiples of others up to 1e-13 to 1e-4."""
    n, m = integer(rng, 4, 11), integer(rng, 2, 6)
    rank = integer(rng, 1, m)
    main = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, m))
    X = main + decades(rng, -13, -4) * rng.normal(size=(n, m))
    if chance(rng, 0.3):
        X = X * decades(rng, -3, 3, size=m)
    return of_points(rng, X, 0.6, -12, 1)


def exactly_collinear(rng):
    """One-hot features, sums of others, multiples by powers of two, constant columns."""
    n, kind = integer(rng, 4, 11), rng.integers(4)
    if kind == 0:
        X = np.eye(4)[rng.integers(4, size=n)]
        X = np.hstack([X, rng.normal(size=(n, integer(rng, 0, 3)))])
    elif kind == 1:
        X = rng.integers(-8, 9, size=(n, 2)) / 4.0
        X = np.hstack([X, X.sum(axis=1, keepdims=True), X[:, :1] - 2.0 * X[:, 1:]])
    elif kind == 2:
        X = rng.normal(size=(n, 2))
        X = np.hstack([X, X[:, :1] * 2.0 ** rng.integers(-30, 31)])
    else:
        X = rng.normal(size=(n, 3))
        X[:, 1] = rng.choice([0.0, 0.1, 1e6])
    return of_points(rng, X, 0.6, -12, 3)


def duplicated_points(rng):
    """Every point several times, now and then with one far point or a tiny shift."""
    X = gaussian(rng)
    X = X[rng.integers(max(1, len(X) // 2), size=len(X))]
    if chance(rng, 0.3):
        X = with_sentinels(rng, X)
    elif chance(rng, 0.5):
        X = X + decades(rng, -15, -3) * rng.normal(size=X.shape)
    return of_points(rng, X, 0.4, -9, 2)


def thresholds(rng):
    """eta from 1e-6 to 1e6."""
    return m_step(rng, draw_pairs(rng, gaussian(rng)), threshold=decades(rng, -6, 6))


def unlabeled_weights(rng):
    """mu from 1e-8 to 1e6."""
    X = gaussian(rng)
    pairs = draw_pairs(rng, with_sentinels(rng, X, 1, 9) if chance(rng, 0.3) else X)
    weight, mu = zero_or(rng, 0.2, -4, 2), decades(rng, -8, 6)
    return m_step(rng, pairs, unlabeled_weight=mu, trace_weight=weight)


def trace_weights(rng):
    """lambda = 0 or 1e-12 to 1e9, of points of size 1e-3 to 1e3."""
    return of_points(rng, gaussian(rng) * decades(rng, -3, 3), 0.3, -12, 9)


def confidences(rng):
    """Confidences from 1e-9 to 1e9 in one problem, with any threshold; labels alone, or not."""
    X = gaussian(rng)
    if chance(rng, 0.2):
        X = X * decades(rng, -3, 3, size=X.shape[1])
    spread = sorted(rng.uniform(-9, 9, size=2)) if chance(rng, 0.3) else (-9, 9)
    eta = decades(rng, -3, 4) if chance(rng, 0.5) else 1.0
    if chance(rng, 0.5):
        pairs = draw_pairs(rng, X, spread, most=X.shape[1] + 1)
        return m_step(rng, pairs, threshold=eta, unlabeled_weight=0.0, trace_weight=0.0)
    pairs = draw_pairs(rng, X, spread)
    return m_step(rng, pairs, threshold=eta, trace_weight=decades(rng, -12, 6))


def manifold_terms(rng):
    """A manifold term of any condition, PSD up to rounding, with a trace weight or without."""
    X = gaussian(rng)
    if chance(rng, 0.3):
        X = X * decades(rng, -4, 4, size=X.shape[1])
    weight, term = zero_or(rng, 0.3, -9, 2), halved(psd(rng, X.shape[1]))
    return m_step(rng, draw_pairs(rng, X), trace_weight=weight, manifold_term=term)


def given_soft_labels(rng):
    """Soft labels that are 0, 1, tiny, or one minus tiny."""
    X = gaussian(rng)
    pairs = draw_pairs(rng, with_sentinels(rng, X, 1, 6) if chance(rng, 0.3) else X)
    q = rng.random(pairs.n_unlabeled)
    tiny = decades(rng, -300 if chance(rng, 0.2) else -17, -3, size=len(q))
    q = np.choose(rng.integers(5, size=len(q)), [q, 0.0 * q, 0.0 * q + 1.0, tiny, 1.0 - tiny])
    weight, mu = zero_or(rng, 0.3, -6, 1), decades(rng, -3, 3)
    return m_step(rng, pairs, soft_labels=q, unlabeled_weight=mu, trace_weight=weight)


def streamed_soft_labels(rng):
    """Soft labels of a previous metric, sharpness 0.5 to 50."""
    X = gaussian(rng)
    if chance(rng, 0.3):
        X = with_sentinels(rng, X, 1, 9)
    elif chance(rng, 0.5):
        X = X * decades(rng, -3, 3, size=X.shape[1])
    pairs = draw_pairs(rng, X)
    labels = of_previous_metric(rng, pairs, -3, 3, sharpness=(-0.3, 1.7))
    mu, weight = decades(rng, -3, 2), zero_or(rng, 0.2, -6, 2)
    return m_step(rng, pairs, unlabeled_weight=mu, trace_weight=weight, **labels)


def tiny_posteriors(rng):
    """Metrics far beyond the threshold, so that every dual point is tiny: 1e-18 to 1e-6."""
    X = gaussian(rng, (2, 7), (1, 4))
    apart = some_of(rng, all_pairs(len(X)), 1)
    c = decades(rng, 0, 9)
    pairs = PairSet.from_constraints(X, [], apart, dissimilar_confidence=c)
    return m_step(rng, pairs, unlabeled_weight=0.0, trace_weight=c * decades(rng, -17, -6))


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
    pairs = draw_pairs(
        rng, with_sentinels(rng, X) if changes[3] else X, (-6, 6) if changes[4] else None
    )
    given = {}
    if chance(rng, 0.4):
        given["threshold"] = decades(rng, -4, 4)
    if chance(rng, 0.4):
        given["unlabeled_weight"] = decades(rng, -6, 4)
    if chance(rng, 0.3):
        given["manifold_term"] = psd(rng, m)
    found = m_step(rng, pairs, trace_weight=zero_or(rng, 0.25, -12, 9), **given)
    return with_clean(found, X) if changes[3] else found


# Sampled pairs, and the ends of the range of doubles


def any_pairs(rng, X):
    """Of class labels, or of constraints, with confidences or without."""
    if chance(rng, 0.6):
        return PairSet.from_labels(X, class_labels(rng, len(X)))
    return draw_pairs(rng, X, (-3, 3) if chance(rng, 0.3) else None, most=len(X))


def sampled_pairs(rng):
    """k drawn pairs, k from 1 to #U; soft labels of a metric, given ones or none."""
    X = gaussian(rng, (3, 10), (1, 5))
    kind, m = rng.integers(5), X.shape[1]
    if kind == 0:
        X = np.round(X, 1)
    elif kind == 1:
        X = X * decades(rng, -6, 6, size=m)
    elif kind == 2:
        X = X + decades(rng, 0, 9) * rng.normal(size=m)
    elif kind == 3:
        X[0] *= decades(rng, 1, 9)
    return sampled_m_step(rng, X)


def sampled_m_step(rng, X):
    pairs = drawn(rng, any_pairs(rng, X))
    settings = {
        "trace_weight": zero_or(rng, 0.6, -6, 1),
        "unlabeled_weight": pick(rng, 1.0, "ratio", decades(rng, -3, 3)),
        "threshold": pick(rng, 1.0, decades(rng, -1, 1)),
    }
    source = rng.random()
    if source < 0.4:
        settings |= of_previous_metric(rng, pairs, -2, 2)
    elif source < 0.43:  # are refused
        settings["soft_labels"] = rng.random(pairs.n_unlabeled)
    return stated(pairs, **settings)


def sampled_one_feature(rng):
    """Drawn pairs of points on a line."""
    X = rng.normal(size=(integer(rng, 3, 7), 1))
    if chance(rng, 0.5):
        X = np.round(X, 1)
    if chance(rng, 0.4):
        X = X * decades(rng, -140, 140)
    return known(rng, sampled_m_step(rng, X))


def known(rng, found):
    """An instance of one feature with its optimum, and more metrics: tiny to far beyond it."""
    if found.given.points.shape[1] > 1:
        return found
    spread = np.ptp(found.given.points)
    with np.errstate(all="ignore"):
        metrics = decades(rng, -2, 4, size=4) / spread / spread
    kept = [[[a]] for a in metrics.tolist() if np.isfinite(a)]
    optimum = optimum_of_one_feature(found.given)
    return replace(found, optimum=optimum, metrics=[*found.metrics, *kept])


def line(rng, scale):
    """A few points on a line, of this scale; some equal, some far apart or close together."""
    X = rng.normal(size=(integer(rng, 2, 6), 1))
    kind = rng.integers(4)
    if kind == 0:
        X = np.round(X, 1)
    elif kind == 1:
        X[0] *= decades(rng, -12, 12)
    elif kind == 2:
        X = X + decades(rng, 0, 6)
    return X * scale


def any_weight(rng, low=-300, high=300, zero=0.1):
    """Zero, a denormal, or of any size."""
    x = rng.random()
    return 0.0 if x < zero else DENORMAL if x < zero + 0.05 else decades(rng, low, high)


def suited(rng, scale):
    """A trace weight of the size of c v^2, mostly; else of any size."""
    if chance(rng, 0.3):
        return any_weight(rng)
    square = np.log10(scale) * 2.0
    return decades(rng, *np.clip([square - 12, square + 12], -320, 305))


def one_feature(rng):
    """Points on a line of size 1e-150 to 1e150, every number of any size."""
    scale = decades(rng, -150, 150)
    X = line(rng, scale)
    c = (-300, 300) if chance(rng, 0.2) else (-6, 6) if chance(rng, 0.3) else None
    pairs = draw_pairs(rng, X, c)
    given = {
        "trace_weight": suited(rng, scale),
        "threshold": pick(
            rng, 1.0, decades(rng, -6, 4), decades(rng, -300, 300), p=[0.5, 0.4, 0.1]
        ),
        "unlabeled_weight": pick(rng, 0.0, "ratio", any_weight(rng)),
    }
    if chance(rng, 0.3):
        given["soft_labels"] = soft_labels(rng, pairs.n_unlabeled)
    elif chance(rng, 0.4):
        metric = decades(rng, -2, 2) / scale / scale
        given["previous_metric"] = [[metric if np.isfinite(metric) else 1e308]]
        given["sharpness"] = decades(rng, -3, 3)
    return known(rng, stated(pairs, **given))


def two_points(rng):
    """One pair of size 1e-165 to 1e150, features of any size, every number of any size."""
    m = integer(rng, 1, 9)
    scale = decades(rng, -165, -150 if chance(rng, 0.2) else 150)
    spread = 0.0 if scale < 1e-150 else float(rng.choice([0.0, 6.0, 150.0]))
    size = np.clip(np.log10(scale) + rng.uniform(-spread, spread, size=m), -165, 150)
    X = np.vstack([np.zeros(m), rng.normal(size=m) * 10.0**size])
    if chance(rng, 0.3):
        X = X + rng.normal(size=m) * np.abs(X[1]) * decades(rng, -3, 3)
    if chance(rng, 0.9 if scale < 1e-150 else 0.3):  # a third point, in no pair that counts
        size = float(rng.choice([0.0 if scale > 1e-150 else 1.0, decades(rng, -150, 150)]))
        X = np.vstack([X, X[:1] + size * rng.normal(size=m)])
    c = decades(rng, *((-300, 300) if chance(rng, 0.3) else (-9, 9)))
    pairs = one_labeled_pair(rng, X, c, 0.15)
    largest = np.max(np.abs(X[1] - X[0]))
    square = (2.0 * float(np.log10(largest)) if largest > 0.0 else 0.0) + np.log10(c)
    weight = any_weight(rng)
    if chance(rng, 0.7):
        weight = decades(rng, *np.clip([square - 18, square + 2], -322, 305))
    eta = pick(rng, 1.0, decades(rng, -6, 6), decades(rng, -300, 300), p=[0.5, 0.35, 0.15])
    found = stated(pairs, trace_weight=weight, threshold=eta, unlabeled_weight=0.0)
    return replace(found, optimum=optimum_of_two_points(found.given))


def huge_weights(rng):
    """mu, the confidences or both from 1e-300 to 1e300; points of size one, or scaled to suit."""
    X = gaussian(rng)[:8]
    X = X if len(X) > 1 else rng.normal(size=(3, 2))
    if chance(rng, 0.3):
        X = np.round(2.0 * X)
    if chance(rng, 0.3):
        X = X * decades(rng, -140, 140)
    spread = None
    if chance(rng, 0.5):
        middle = rng.uniform(-300, 300)
        width = rng.choice([0.0, 6.0, 300.0])
        spread = tuple(np.clip([middle - width, middle + width], -300, 300))
    pairs = draw_pairs(rng, X, spread)
    given = {"unlabeled_weight": any_weight(rng)}
    if chance(rng, 0.2):
        given["unlabeled_weight"] = pick(rng, 0.0, "ratio")
    given["trace_weight"] = pick(rng, 0.1, any_weight(rng, zero=0.3))
    if chance(rng, 0.4):
        given |= of_previous_metric(rng, pairs, sharpness=(-1, 2))
    elif chance(rng, 0.4):
        given["soft_labels"] = soft_labels(rng, pairs.n_unlabeled)
    found = m_step(rng, pairs, **given)
    found.metrics.append(decades(rng, -20, 20) * np.eye(X.shape[1]))
    return known(rng, found)


def denormals(rng):
    """Denormal numbers in one or several inputs, among ordinary ones."""
    n, m = integer(rng, 2, 7), integer(rng, 1, 4)
    X = rng.normal(size=(n, m))
    which = rng.random(7) < 0.35
    if which[0]:  # points that differ by denormals, in a feature that varies otherwise, or not
        i = integer(rng, 0, n)
        X[i] = decades(rng, -323, -155) * rng.normal(size=m)
        X[(i + 1) % n] = 0.0
    if which[1]:
        X = X * decades(rng, -152, -100)
    chosen = some_of(rng, all_pairs(n), 1)
    if which[0] and chance(rng, 0.7):  # the pair of nearly equal points
        chosen = np.array([sorted((i, (i + 1) % n))])
    similar = rng.random(len(chosen)) < rng.choice([0.0, 0.4])
    c = (None, None)
    if which[2]:
        c = np.where(rng.random(len(chosen)) < 0.5, decades(rng, -323, -290, len(chosen)), 1.0)
        c = (c[similar], c[~similar])
    pairs = PairSet.from_constraints(X, chosen[similar], chosen[~similar], *c)
    given = {"trace_weight": pick(rng, DENORMAL, 0.0, decades(rng, -323, -150))}
    if not which[3]:
        given["trace_weight"] = decades(rng, -3, 1)
    if which[4]:
        given["threshold"] = float(rng.choice([DENORMAL, 1e-310, 1e-300, 1e300]))
    if which[5]:
        given["unlabeled_weight"] = float(rng.choice([DENORMAL, 1e-310, 1e-300]))
    if which[6]:
        given["soft_labels"] = soft_labels(rng, pairs.n_unlabeled)
    if chance(rng, 0.2):
        given["manifold_term"] = np.diag(decades(rng, -323, -150, m))
    elif chance(rng, 0.2) and "soft_labels" not in given:
        given["previous_metric"] = np.diag(decades(rng, -323, 300, m))
        given["sharpness"] = float(rng.choice([DENORMAL, 1.0, 1e-300, 1e300]))
    return known(rng, m_step(rng, pairs, **given))


# Penalties and constraints


def power(exponent):
    """A power of ten, within the range of doubles."""
    return float(10.0 ** np.clip(exponent, -305.0, 305.0))


def exponents(rng):
    """Powers of ten: of the points, and of the metric that a block is made for."""
    points = rng.uniform(-2, 2) if chance(rng, 0.5) else rng.uniform(-140.0, 140.0)
    off = rng.uniform(-60, 60) if chance(rng, 0.15) else rng.uniform(-2, 2)
    return points, -2.0 * points + off


def weight(rng, fitting, near=6.0):
    """Of about the power of ten `fitting`, or of any size."""
    if chance(rng, 0.2):
        return power(rng.uniform(-300, 306))
    return power(fitting + rng.uniform(-near, near))


@np.errstate(all="ignore")
def positive_definite(rng, m, exponent):
    """A positive definite matrix of about this power of ten: diagonal, or turned."""
    spread = float(rng.choice([0.0, 1.0, 4.0]))
    spectrum = 10.0 ** rng.uniform(-spread, spread, size=m)
    if chance(rng, 0.4):
        return np.diag(spectrum) * power(exponent)
    turn = orthogonal(rng, m)
    return halved((turn * spectrum) @ turn.T) * power(exponent)


def ridge(rng, m, metric):
    prior = None
    if chance(rng, 0.5):
        prior = positive_definite(rng, m, metric)
        if chance(rng, 0.3):
            signs = rng.choice([-1.0, 1.0], size=m)
            prior = prior * (signs[:, None] + signs) / 2.0
    return Ridge(weight(rng, -2.0 * metric), prior)


def log_det(rng, m, metric):
    prior = positive_definite(rng, m, metric) if chance(rng, 0.7) else None
    return LogDet(weight(rng, 0.0, 5.0), prior)


@np.errstate(all="ignore")
def linear_matrices(rng, m, exponent):
    """Of the entries, the trace, directions, or any symmetric ones."""
    found = []
    for _ in range(integer(rng, 1, 3)):
        kind, B = rng.integers(4), np.zeros((m, m))
        if kind == 0:
            i, j = rng.integers(m, size=2)
            B[i, j] = B[j, i] = 1.0 if i == j else 0.5
        elif kind == 1:
            B = np.eye(m)
        elif kind == 2:
            u = rng.normal(size=m)
            B = np.outer(u, u)
        else:
            B = halved(rng.normal(size=(m, m)))
        found.append(B * power(exponent))
    return np.array(found)


@np.errstate(all="ignore")
def linear_constraints(rng, m, metric, is_equality):
    """Bounds, or equations that some metric of the right size meets."""
    exponent = rng.uniform(-3, 3) - (metric if chance(rng, 0.5) else 0.0)
    B = linear_matrices(rng, m, exponent)
    if is_equality:
        t = np.einsum("kij,ij->k", B, positive_definite(rng, m, metric))
        return LinearConstraints(B, equal=np.where(rng.random(len(t)) < 0.2, 0.0, t))
    t = 10.0 ** np.clip(exponent + metric + rng.uniform(-2, 2, size=len(B)), -305.0, 305.0)
    sign = np.where(rng.random(len(B)) < 0.1, rng.choice([0.0, -1.0]), 1.0)
    return LinearConstraints(B, upper=sign * t)


def manifold(rng, m, metric):
    kernel = pick(rng, "heat", "binary")
    return Manifold(decades(rng, -6, 6), integer(rng, 1, 4), kernel, bool(rng.integers(2)))


BLOCKS = {
    "ridge": ridge,
    "LogDet": log_det,
    "trace bound": lambda rng, m, metric: TraceBound(weight(rng, metric, 3.0)),
    "upper bound": lambda rng, m, metric: UpperBound(
        positive_definite(rng, m, metric + rng.uniform(-2, 2))
    ),
    "diagonal": lambda rng, m, metric: Diagonal(),
    "sparse": lambda rng, m, metric: Sparse(weight(rng, -metric, 4.0)),
    "linear bounds": partial(linear_constraints, is_equality=False),
    "linear equations": partial(linear_constraints, is_equality=True),
    "trace": lambda rng, m, metric: Trace(0.0 if chance(rng, 0.1) else weight(rng, -metric, 6.0)),
    "manifold": manifold,
}


def with_blocks(rng, kinds, has_term=False):
    """An M-step with a block of each of these kinds."""
    points, metric = exponents(rng)
    n, m = integer(rng, 2, 8), int(rng.choice([1, 2, 3, 4], p=[0.2, 0.35, 0.3, 0.15]))
    X = rng.normal(size=(n, m)) * power(points)
    if chance(rng, 0.2):
        X = X * decades(rng, -3, 3, size=m)
    pairs = draw_pairs(rng, X, (-3, 3) if chance(rng, 0.2) else None)
    mu = pick(rng, 0.0, "ratio", decades(rng, -3, 1))
    plain = 0.0 if chance(rng, 0.5) else power(2.0 * points + rng.uniform(-8, 2))
    settings = {"unlabeled_weight": mu, "trace_weight": plain}
    settings["threshold"] = pick(rng, 1.0, decades(rng, -2, 2))
    source = rng.integers(4)
    if source == 0:
        settings["soft_labels"] = rng.random(pairs.n_unlabeled)
    elif source == 1:
        settings |= of_previous_metric(rng, pairs)
    if has_term:
        settings["manifold_term"] = halved(psd(rng, m)) * power(2.0 * points)
    blocks = [BLOCKS[kind](rng, m, metric) for kind in kinds]
    return known(rng, stated(pairs, penalties=blocks, **settings))


def several_blocks(rng):
    """Two or three blocks of different kinds."""
    return with_blocks(rng, some_of(rng, np.array(list(BLOCKS)), 2, 3).tolist())


def linear_blocks(rng):
    """Trace and Manifold as blocks, one or several, with a trace weight and a manifold term."""
    kinds = [["trace", "manifold"][k] for k in rng.integers(2, size=integer(rng, 1, 4))]
    return with_blocks(rng, kinds, has_term=chance(rng, 0.5))


def one_feature_and_blocks(rng):
    """One feature of size 1e-140 to 1e140, and one or two blocks: the optimum is known."""
    points, metric = exponents(rng)
    X = line(rng, power(points))
    pairs = draw_pairs(rng, X, (-6, 6) if chance(rng, 0.2) else None)
    kinds = rng.permutation(list(BLOCKS))[: int(rng.choice([1, 1, 2]))].tolist()
    found = stated(
        pairs,
        penalties=[BLOCKS[kind](rng, 1, metric) for kind in kinds],
        trace_weight=0.0 if chance(rng, 0.5) else suited(rng, power(points)),
        unlabeled_weight=pick(rng, 0.0, "ratio"),
        threshold=pick(rng, 1.0, decades(rng, -3, 3)),
    )
    return known(rng, found)


PLAIN = {
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
    "sampled pairs": sampled_pairs,
    "sampled pairs of one feature": sampled_one_feature,
    "one feature": one_feature,
    "two points": two_points,
    "huge and tiny weights": huge_weights,
    "denormal numbers": denormals,
}

PENALIZED = {
    {"diagonal": "diagonal metric", "sparse": "sparse metric"}.get(kind, kind): partial(
        with_blocks, kinds=[kind]
    )
    for kind in list(BLOCKS)[:8]
} | {
    "linear blocks": linear_blocks,
    "several blocks": several_blocks,
    "one feature and blocks": one_feature_and_blocks,
}
