"""Families of M-steps on extreme data: a table of options for one generator of random instances.

At the ends of the range of doubles, of one feature and of two points, whose
optimum is found exactly, and with penalties and constraints at all scales of the data. A metric of
points of size x has the size 1/x^2, and so has what a block is given; now and then it is off by
many decades, or the block's weight is of any size.

In the table, (low, high) is a number between 10^low and 10^high, a list is one of its entries, and
a function makes the value from the random generator and the pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from judge import Judge

from seraph_cvx import MStepObjective, PairSet
from seraph_cvx.penalties import (
    Diagonal,
    LogDet,
    Ridge,
    Sparse,
    TraceBound,
)

DENORMAL = 5e-324


@dataclass(frozen=True, eq=False)
class Instance:
    """An M-step, and what its certificates are to be judged by."""

    objective: MStepObjective
    judge: Judge | None = None  # of the M-step as it was given; None: the objective is believed
    metrics: list = field(default_factory=list)  # to be certified first
    certificates: list = field(default_factory=list)  # given out elsewhere
    disturb: Callable | None = None  # writes where nothing should change
    falsehoods: dict = field(default_factory=dict)  # seen while the instance was made
    can_be_solved: bool = True  # whether `solve_m_step` is tried, in thorough inspections


# Numbers and matrices


def decades(rng, low, high, size=None):
    """10^low to 10^high, every decade as likely."""
    return 10.0 ** rng.uniform(low, high, size=size)


def power(exponent, least=-305.0):
    """A power of ten, within the range of doubles."""
    return float(10.0 ** np.clip(exponent, least, 305.0))


def chance(rng, share):
    return rng.random() < share


def integer(rng, low, high):
    """From low to high - 1."""
    return int(rng.integers(low, high))


def one_of(rng, options):
    return options[rng.integers(len(options))]


def value(rng, entry, *arguments):
    """What an entry of the table stands for."""
    if isinstance(entry, list):
        return value(rng, one_of(rng, entry), *arguments)
    if callable(entry):
        return entry(rng, *arguments)
    return decades(rng, *entry) if isinstance(entry, tuple) else entry


def orthogonal(rng, m):
    return np.linalg.qr(rng.normal(size=(m, m)))[0]


def symmetric_part(A):
    """The symmetric part."""
    return (A + A.T) / 2.0


def random_symmetric(rng, spectrum):
    """A symmetric matrix of these eigenvalues."""
    directions = orthogonal(rng, len(spectrum))
    return symmetric_part((directions * spectrum) @ directions.T)


def psd(rng, m):
    """A PSD matrix of any condition: diagonal, turned, of low rank, or of uneven features."""
    spectrum = decades(rng, -12, 6, size=m)
    F = rng.normal(size=(m, integer(rng, 1, m + 1)))
    kind = rng.integers(4)
    if kind < 2:
        return (
            random_symmetric(rng, spectrum) if kind else np.diag(spectrum * (rng.random(m) < 0.8))
        )
    F *= decades(rng, -4, 4) if kind == 2 else decades(rng, -5, 5, size=(m, 1))
    return symmetric_part(F @ F.T)


@np.errstate(all="ignore")
def positive_definite(rng, m, exponent):
    """A positive definite matrix of about this power of ten: diagonal, or turned."""
    spread = float(rng.choice([0.0, 1.0, 4.0]))
    spectrum = decades(rng, -spread, spread, size=m)
    return (np.diag(spectrum) if chance(rng, 0.4) else random_symmetric(rng, spectrum)) * power(
        exponent
    )


@np.errstate(all="ignore")
def some_metric(rng, pairs, low=-1.0, high=1.0):
    """A PSD matrix under which the middle distance is of size 10^low to 10^high."""
    X = pairs.points
    spread, extent = np.median(np.abs(X - np.median(X, axis=0)), axis=0), np.ptp(X, axis=0)
    unit = np.where(spread > 0.0, spread, np.where(extent > 0.0, extent, 1.0))
    m = X.shape[1]
    rank = integer(rng, 1, m + 1)
    F = rng.normal(size=(m, rank)) / np.sqrt(m * rank) / unit[:, None]
    A = decades(rng, low, high) * (F @ F.T)
    return np.where(np.isfinite(A), A, 1e307 * np.eye(m))


# Points: each change makes other ones of those it is given


def scaled(rng, X, low, high):
    return X * decades(rng, low, high)


def uneven(rng, X, low, high):
    return X * decades(rng, low, high, size=X.shape[1])


def shifted(rng, X, low, high):
    return X + decades(rng, low, high) * rng.normal(size=X.shape[1])


def with_noise(rng, X, low, high):
    return X + decades(rng, low, high) * rng.normal(size=X.shape)


def rounded(rng, X):
    return np.round(X, 1)


def duplicated(rng, X):
    return X[rng.integers(max(1, len(X) // 2), size=len(X))]


def with_one_far(rng, X, low, high):
    return np.vstack([X[:1] * decades(rng, low, high), X[1:]])


def in_clusters(rng, X, low, high):
    """Every third point is of the same cluster."""
    centers = rng.normal(size=(3, X.shape[1])) * decades(rng, low, high)
    return X + centers[np.arange(len(X)) % 3]


def nearly_collinear(rng, X, low, high):
    """Features that are combinations of others, but for noise."""
    rank = integer(rng, 1, X.shape[1])
    main = X[:, :rank] @ rng.normal(size=(rank, X.shape[1]))
    return with_noise(rng, main, low, high)


def exactly_collinear(rng, X):
    """One-hot features, sums of others, multiples by powers of two, constant columns."""
    n, kind = len(X), rng.integers(4)
    if kind == 0:
        return np.hstack([np.eye(4)[rng.integers(4, size=n)], X])
    if kind == 1:
        X = rng.integers(-8, 9, size=(n, 2)) / 4.0
        return np.hstack([X, X.sum(axis=1, keepdims=True), X[:, :1] - 2.0 * X[:, 1:]])
    last = X[:, :1] * 2.0 ** rng.integers(-30, 31)
    return np.hstack([X, last if kind == 2 else np.full((n, 1), rng.choice([0.0, 0.1, 1e6]))])


def with_denormal_differences(rng, X):
    """Two points that differ by denormal numbers, in features that vary otherwise."""
    X = X.copy()
    X[:2] = [[0.0], [decades(rng, -323, -155)]] * rng.normal(size=X.shape[1])
    return X


def with_sentinels(rng, X, low, high):
    """A few entries replaced by one far value, or by several."""
    n, m = X.shape
    X = X.copy()
    points = rng.permutation(n)[: integer(rng, 1, max(2, min(4, n)))]
    features = rng.permutation(m)[: integer(rng, 1, m + 1) if chance(rng, 0.4) else 1]
    far = decades(rng, low, high) * rng.choice([-1.0, 1.0])
    far = np.rint(far) if chance(rng, 0.5) else far
    X[np.ix_(points, features)] = far
    if chance(rng, 0.4):
        X[points] *= rng.normal(size=(len(points), 1))
    return X


USUAL = (3, 10), (1, 6)
SHAPES = 42 * [USUAL] + 7 * [((2, 13), (1, 9))] + [((40, 41), (2, 9))]
"""From how many points and features to how many; a few per cent are larger."""


@np.errstate(all="ignore")
def draw_points(rng, shapes=SHAPES, changes=()):
    """Gaussian points, changed in these ways, each with its chance."""
    n, m = one_of(rng, shapes)
    X = rng.normal(size=(integer(rng, *n), integer(rng, *m)))
    for share, change, *arguments in changes:
        X = change(rng, X, *arguments) if chance(rng, share) else X
    return X


# Pairs


def all_pairs(n):
    return np.column_stack(np.triu_indices(n, 1))


def some_of(rng, rows, least, most=None):
    """A random number of rows, in random order."""
    order = rng.permutation(len(rows))
    return rows[order[: integer(rng, least, (most or len(rows)) + 1)]]


def constraints(
    rng, X, confidences=(None,), similar=(0.0, 0.3, 0.5, 0.8), most=None, of=lambda rows: rows
):
    """Few or many labeled pairs, each similar or dissimilar by a coin that may be unfair."""
    rows = of(all_pairs(len(X)))
    chosen = some_of(rng, rows, 1, min(len(rows), 2 * len(X) if most is None else most))
    is_similar = rng.random(len(chosen)) < rng.choice(similar)
    spread, c = one_of(rng, confidences), (None, None)
    if spread is not None:
        c = decades(rng, *spread, size=len(chosen))
        c[rng.random(len(c)) < rng.choice([0.0, 0.0, 0.5])] = 1.0
        c = c[is_similar], c[~is_similar]
    return PairSet.from_constraints(X, chosen[is_similar], chosen[~is_similar], *c)


def classes(rng, X):
    """Classes of points, -1 where unknown: at least two known."""
    n = len(X)
    y = rng.integers(0, integer(rng, 1, 4), size=n)
    y[rng.random(n) < rng.choice([0.3, 0.6, 0.9])] = -1
    y[rng.permutation(n)[:2]] = rng.integers(0, 3, size=2)
    return PairSet.from_labels(X, y)


# Soft labels: the settings that say which


def all_dissimilar(rng, pairs):
    return {}


def random_labels(rng, pairs):
    return {"soft_labels": rng.random(pairs.n_unlabeled)}


def extreme_labels(rng, pairs):
    """0, 1, denormal, tiny, one minus tiny, or ordinary."""
    k = pairs.n_unlabeled
    tiny = decades(rng, one_of(rng, [-320, -17]), -3, size=k)
    kinds = [rng.random(k), np.zeros(k), np.ones(k), np.full(k, DENORMAL), tiny, 1.0 - tiny]
    return {"soft_labels": np.choose(rng.integers(len(kinds), size=k), kinds)}


def streamed_labels(rng, pairs, low=-1.0, high=1.0, sharpness=(-0.3, 1.0)):
    """By eq. (10), of a previous metric."""
    metric = some_metric(rng, pairs, low, high)
    return {"previous_metric": metric, "sharpness": value(rng, sharpness)}


def denormal_labels(rng, pairs):
    metric = np.diag(decades(rng, -323, 300, pairs.n_features))
    return {"previous_metric": metric, "sharpness": one_of(rng, [DENORMAL, 1.0, 1e-300, 1e300])}


# M-steps


ORDINARY = {
    "unlabeled_weight": [0.0, "ratio", (-3, 1)],
    "trace_weight": [1.0, (-4, 2)],
    "threshold": [1.0, (-1, 1)],
    "labels": [all_dissimilar, random_labels, streamed_labels],
}


def draw_settings(rng, pairs, **options):
    """Arguments of MStepObjective, ordinary in everything that is not given."""
    settings = {name: value(rng, x, pairs) for name, x in (ORDINARY | options).items()}
    return settings.pop("labels") | settings


def stated(pairs, **settings):
    """The instance of these arguments, to be judged by them and not by what became of them."""
    judge = Judge(pairs, **settings)
    return Instance(MStepObjective(pairs, **settings), judge)


def draw(rng, *, shapes=SHAPES, changes=(), sentinels=(0.0,), pairs=constraints, **options):
    """An instance of a family."""
    X = draw_points(rng, shapes, changes)
    share, *sizes = sentinels
    made = pairs(rng, with_sentinels(rng, X, *sizes) if chance(rng, share) else X)
    return with_more_metrics(rng, stated(made, **draw_settings(rng, made, **options)))


@np.errstate(all="ignore")
def with_more_metrics(rng, found):
    """Of one feature, more metrics: tiny to far beyond the optimum."""
    if found.judge.n_features > 1:
        return found
    spread = np.ptp(found.judge.points)
    metrics = (decades(rng, -2, 4, size=4) / spread / spread).tolist()
    return replace(found, metrics=[[[a]] for a in metrics if np.isfinite(a)])


def zero_or(share, low, high):
    """Zero in so many of ten cases, else a number of these decades."""
    return share * [0.0] + (10 - share) * [(low, high)]


def fitting(low, high):
    """A trace weight relative to the largest weight times squared length of a labeled pair."""

    def weight(rng, pairs):
        V = pairs.points[pairs.labeled[:, 0]] - pairs.points[pairs.labeled[:, 1]]
        sizes = np.max(pairs.labeled_weights), *2 * [np.max(np.abs(V), initial=0.0)]
        size = sum(float(np.log10(x)) if x > 0.0 else 0.0 for x in sizes)
        return power(size + rng.uniform(low, high), least=-322.0)

    return weight


def manifold_term(rng, pairs):
    return psd(rng, pairs.n_features)


ANY = [0.0, DENORMAL, *10 * [(-300, 300)]]
"""A weight of any size."""

ONE_FEATURE = {
    "shapes": [((2, 7), (1, 2))],
    "changes": [
        (0.25, rounded),
        (0.25, with_one_far, -12, 12),
        (0.25, shifted, 0, 6),
        (1.0, scaled, -150, 150),
    ],
}

PLAIN = {
    "far points": {"sentinels": (1.0, 3, 12)},
    # labels within clusters alone: large sums cancel
    "clusters far apart": {
        "shapes": [((6, 13), (1, 5))],
        "changes": [(1.0, in_clusters, 2, 12)],
        "pairs": partial(
            constraints,
            similar=(0.0, 0.3, 0.5),
            of=lambda rows: rows[rows[:, 0] % 3 == rows[:, 1] % 3],
        ),
        "unlabeled_weight": zero_or(8, -9, 0),
        "trace_weight": zero_or(2, -9, 1),
    },
    "scales of features": {"changes": [(1.0, uneven, -9, 9)], "trace_weight": (-12, 9)},
    "more features than points": {
        "shapes": [((n, n + 1), (n + 1, 9)) for n in range(2, 6)],
        "changes": [(0.5, uneven, -4, 4)],
        "trace_weight": zero_or(3, -9, 6),
    },
    "one pair": {
        "shapes": [((2, 3), (1, 9))],
        "changes": [(1.0, uneven, -6, 6), (0.5, shifted, -3, 3)],
        "pairs": partial(constraints, confidences=[None, (-9, 9)], similar=(0.2,)),
        "trace_weight": [0.0, *6 * [(-12, 9)], *3 * [fitting(-18, -1)]],
        "threshold": [1.0, (-6, 6)],
    },
    "nearly collinear": {
        "shapes": [((4, 11), (2, 6))],
        "changes": [(1.0, nearly_collinear, -13, -4), (0.3, uneven, -3, 3)],
        "trace_weight": zero_or(6, -12, 1),
    },
    "exactly collinear": {
        "shapes": [((4, 11), (1, 4))],
        "changes": [(1.0, exactly_collinear)],
        "trace_weight": zero_or(6, -12, 3),
    },
    "duplicated points": {
        "changes": [(1.0, duplicated), (0.35, with_noise, -15, -3)],
        "sentinels": (0.3, 3, 12),
        "trace_weight": zero_or(4, -9, 2),
    },
    "thresholds": {"threshold": (-6, 6)},
    "unlabeled weights": {
        "sentinels": (0.3, 1, 9),
        "unlabeled_weight": (-8, 6),
        "trace_weight": zero_or(2, -4, 2),
    },
    "trace weights": {"changes": [(1.0, scaled, -3, 3)], "trace_weight": zero_or(3, -12, 9)},
    "confidences": {
        "changes": [(0.2, uneven, -3, 3)],
        "pairs": partial(constraints, confidences=[(-9, 9), (-9, 9), (-9, -3), (0, 6)]),
        "threshold": [1.0, (-3, 4)],
        "unlabeled_weight": [0.0, *ORDINARY["unlabeled_weight"]],
        "trace_weight": zero_or(5, -12, 6),
    },
    "manifold terms": {
        "changes": [(0.3, uneven, -4, 4)],
        "manifold_term": manifold_term,
        "trace_weight": zero_or(3, -9, 2),
    },
    "given soft labels": {
        "sentinels": (0.3, 1, 6),
        "labels": extreme_labels,
        "unlabeled_weight": (-3, 3),
        "trace_weight": zero_or(3, -6, 1),
    },
    "streamed soft labels": {
        "changes": [(0.35, uneven, -3, 3)],
        "sentinels": (0.3, 1, 9),
        "labels": partial(streamed_labels, low=-3, high=3, sharpness=(-0.3, 1.7)),
        "unlabeled_weight": (-3, 2),
        "trace_weight": zero_or(2, -6, 2),
    },
    # metrics far beyond the threshold, so that every dual point is tiny: 1e-18 to 1e-6
    "tiny posteriors": {
        "shapes": [((2, 7), (1, 4))],
        "pairs": partial(constraints, similar=(0.0,), confidences=[None, (0, 9)]),
        "unlabeled_weight": 0.0,
        "trace_weight": fitting(-17, -6),
    },
    "mixed": {
        "shapes": [((2, 10), (2, 6))],
        "changes": [
            (0.4, nearly_collinear, -13, -2),
            (0.3, duplicated),
            (0.4, uneven, -6, 6),
        ],
        "sentinels": (0.4, 3, 12),
        "pairs": partial(constraints, confidences=[None, (-6, 6)]),
        "threshold": [1.0, (-1, 1), (-4, 4)],
        "unlabeled_weight": [*ORDINARY["unlabeled_weight"], (-6, 4)],
        "trace_weight": zero_or(3, -12, 9),
        "manifold_term": [None, None, manifold_term],
    },
    "one feature": ONE_FEATURE
    | {
        "pairs": partial(constraints, confidences=[None, None, (-6, 6), (-300, 300)]),
        "trace_weight": [*2 * [fitting(-12, 12)], ANY],
        "threshold": [*5 * [1.0], *4 * [(-6, 4)], (-300, 300)],
        "unlabeled_weight": [0.0, "ratio", ANY],
        "labels": [all_dissimilar, extreme_labels, partial(streamed_labels, sharpness=(-3, 3))],
    },
    # one pair of size 1e-165 to 1e150, now and then with a third point, in no pair that counts
    "two points": {
        "shapes": [((2, 4), (1, 9))],
        "changes": [
            (0.5, uneven, -6, 6),
            (0.2, uneven, -150, 150),
            (0.3, shifted, -3, 3),
            (0.2, with_denormal_differences),
            (0.7, scaled, -155, 140),
        ],
        "pairs": partial(
            constraints,
            confidences=[(-300, 300), (-9, 9), (-9, 9)],
            similar=(0.15,),
            of=lambda rows: rows[:1],
        ),
        "trace_weight": [*7 * [fitting(-18, 2)], *3 * [ANY]],
        "threshold": [*4 * [1.0], *3 * [(-6, 6)], (-300, 300)],
        "unlabeled_weight": 0.0,
    },
    "huge and tiny weights": {
        "shapes": [((2, 9), (1, 6))],
        "changes": [(0.3, rounded), (0.3, scaled, -140, 140)],
        "pairs": partial(
            constraints,
            confidences=[*3 * [None], (-300, 300), (0, 6), (-300, -280), (100, 110)],
        ),
        "unlabeled_weight": [0.0, "ratio", *8 * [ANY]],
        "trace_weight": [0.1, 0.0, ANY, ANY],
        "labels": [
            all_dissimilar,
            extreme_labels,
            partial(streamed_labels, sharpness=(-1, 2)),
        ],
    },
    # denormal numbers in one or several inputs, among ordinary ones
    "denormal numbers": {
        "shapes": [((2, 7), (1, 4))],
        "changes": [(0.3, with_denormal_differences), (0.3, scaled, -152, -100)],
        "pairs": partial(constraints, confidences=[None, None, (-323, -290)], similar=(0.0, 0.4)),
        "trace_weight": [*6 * [(-3, 1)], DENORMAL, 0.0, (-323, -150)],
        "threshold": [*6 * [1.0], DENORMAL, 1e-310, 1e-300, 1e300],
        "unlabeled_weight": [*6 * ["ratio"], DENORMAL, 1e-310, 1e-300],
        "manifold_term": [
            *4 * [None],
            lambda rng, pairs: np.diag(decades(rng, -323, -150, pairs.n_features)),
        ],
        "labels": [all_dissimilar, all_dissimilar, extreme_labels, denormal_labels],
    },
}


# Penalties and constraints


def weight(rng, fitting, near=6.0):
    """Of about the power of ten `fitting`, or of any size."""
    if chance(rng, 0.2):
        return power(rng.uniform(-300, 306))
    return power(fitting + rng.uniform(-near, near))


def ridge(rng, m, metric):
    if chance(rng, 0.5):
        return Ridge(weight(rng, -2.0 * metric))
    signs = rng.choice([-1.0, 1.0], size=m) if chance(rng, 0.3) else np.ones(m)
    prior = positive_definite(rng, m, metric) * (signs[:, None] + signs) / 2.0
    return Ridge(weight(rng, -2.0 * metric), prior)


def log_det(rng, m, metric):
    prior = positive_definite(rng, m, metric) if chance(rng, 0.7) else None
    return LogDet(weight(rng, 0.0, 5.0), prior)


BLOCKS = {
    "ridge": ridge,
    "LogDet": log_det,
    "trace bound": lambda rng, m, metric: TraceBound(weight(rng, metric, 3.0)),
    "diagonal metric": lambda rng, m, metric: Diagonal(),
    "sparse metric": lambda rng, m, metric: Sparse(weight(rng, -metric, 4.0)),
}
"""Each makes a block for so many features and a metric of this power of ten."""


def exponent_of(pairs):
    """The power of ten of the points' extent."""
    extent = float(np.max(np.ptp(pairs.points, axis=0)))
    return float(np.log10(extent)) if extent > 0.0 else 0.0


@np.errstate(all="ignore")
def blocks(rng, pairs, kinds, least=1, most=1):
    """Blocks of some of these kinds, made for a metric that suits the points, or is far off."""
    off = rng.uniform(-60, 60) if chance(rng, 0.15) else rng.uniform(-2, 2)
    metric = off - 2.0 * exponent_of(pairs)
    chosen = some_of(rng, np.array(kinds), least, most).tolist()
    return [BLOCKS[kind](rng, pairs.n_features, metric) for kind in chosen]


def with_blocks(*kinds, **more):
    """The options of a family with blocks."""
    return {
        "shapes": [((2, 8), (m, m + 1)) for m in (1, 2, 2, 3, 3, 4)],
        "changes": [(0.2, uneven, -3, 3), (0.5, scaled, -2, 2), (0.5, scaled, -140, 140)],
        "pairs": partial(constraints, confidences=[*4 * [None], (-3, 3)]),
        "trace_weight": [0.0, fitting(-8, 2)],
        "threshold": [1.0, (-2, 2)],
        "penalties": partial(blocks, kinds=kinds or list(BLOCKS), **more),
    }


@np.errstate(all="ignore")
def fitting_term(rng, pairs):
    return psd(rng, pairs.n_features) * power(2.0 * exponent_of(pairs))


PENALIZED = (
    {kind: with_blocks(kind) for kind in list(BLOCKS)}
    | {
        "several blocks": with_blocks(least=2, most=3) | {"manifold_term": [None, fitting_term]},
    }
    | {
        "one feature and blocks": ONE_FEATURE
        | {
            "pairs": partial(constraints, confidences=[*4 * [None], (-6, 6)]),
            "trace_weight": [0.0, fitting(-12, 12)],
            "unlabeled_weight": [0.0, "ratio"],
            "threshold": [1.0, (-3, 3)],
            "penalties": partial(blocks, kinds=list(BLOCKS), most=2),
        }
    }
)
