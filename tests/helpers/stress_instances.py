"""What families of M-steps are drawn from, and what an instance is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from flint import arb
from stress_judge import Given, given

from seraph_cvx import MStepObjective, PairSet


@dataclass(frozen=True, eq=False)
class Instance:
    """An M-step, and what its certificates are to be judged by.

    Attributes
    ----------
    objective : MStepObjective
    given : Given or None
        The M-step as it was given, by which it is judged; None: the objective is taken at its word.
    clean : MStepObjective or None
        Its like on clean data: metrics that are good there are tried here.
    optimum : arb or None
        The infimum as a ball, where it is known.
    metrics : list of (m, m) arrays
        To be certified first.
    certificates : list of Certificate
        Given out elsewhere, by an estimator or from a file.
    certify : callable or None
        Makes a certificate of the objective and a metric in another way than `certify`.
    disturb : callable or None
        Called after the first certificate: writes where nothing should change, and returns what it
        could write into, as falsehoods.
    falsehoods, refusals : dict and list of str
        Seen while the instance was made.
    can_be_solved : bool
        Whether `solve_m_step` is tried, in thorough inspections.
    """

    objective: MStepObjective
    given: Given | None = None
    clean: MStepObjective | None = None
    optimum: arb | None = None
    metrics: list = field(default_factory=list)
    certificates: list = field(default_factory=list)
    certify: Callable | None = None
    disturb: Callable | None = None
    falsehoods: dict = field(default_factory=dict)
    refusals: list = field(default_factory=list)
    can_be_solved: bool = True


def stated(pairs, **settings):
    """The instance of these arguments, to be judged by them and not by what became of them."""
    found = given(pairs, **settings)
    return Instance(MStepObjective(pairs, **settings), found)


def decades(rng, low, high, size=None):
    """10^low to 10^high, every decade as likely."""
    return 10.0 ** rng.uniform(low, high, size=size)


def sizes(rng, most_features=6):
    """n and m: a few per cent of the instances are larger."""
    if rng.random() < 0.02:
        return 40, int(rng.integers(2, 9))
    if rng.random() < 0.15:
        return int(rng.integers(2, 13)), int(rng.integers(1, 9))
    return int(rng.integers(3, 10)), int(rng.integers(1, most_features))


def draw_pairs(rng, X, confidences=None, most=None):
    """Few or many labeled pairs, each similar or dissimilar by a coin that may be unfair."""
    rows = np.column_stack(np.triu_indices(len(X), 1))
    n_labeled = int(rng.integers(1, min(len(rows), most or 2 * len(X)) + 1))
    chosen = rows[rng.permutation(len(rows))[:n_labeled]]
    similar = rng.random(n_labeled) < rng.choice([0.0, 0.3, 0.5, 0.8])
    arguments = {}
    if confidences is not None:
        c = decades(rng, *confidences, size=n_labeled)
        arguments = {"similar_confidence": c[similar], "dissimilar_confidence": c[~similar]}
    return PairSet.from_constraints(X, chosen[similar], chosen[~similar], **arguments)


@np.errstate(all="ignore")
def some_metric(rng, pairs, low=-1.0, high=1.0):
    """A PSD matrix under which the middle distance is of size 10^low to 10^high."""
    X = pairs.points
    spread, extent = np.median(np.abs(X - np.median(X, axis=0)), axis=0), np.ptp(X, axis=0)
    unit = np.where(spread > 0.0, spread, np.where(extent > 0.0, extent, 1.0))
    m = X.shape[1]
    rank = int(rng.integers(1, m + 1))
    F = rng.normal(size=(m, rank)) / np.sqrt(m * rank) / unit[:, None]
    return decades(rng, low, high) * (F @ F.T)


def m_step(rng, pairs, **given):
    """An instance of these pairs, ordinary in everything that is not given."""
    settings = {
        "unlabeled_weight": [0.0, "ratio", float(decades(rng, -3, 1))][rng.integers(3)],
        "trace_weight": [1.0, float(decades(rng, -4, 2))][rng.integers(2)],
        "threshold": [1.0, float(decades(rng, -1, 1))][rng.integers(2)],
    } | given
    if not {"soft_labels", "previous_metric"} & set(given):
        source = rng.integers(3)
        if source == 1:
            settings["soft_labels"] = rng.random(pairs.n_unlabeled)
        elif source == 2:
            settings["previous_metric"] = some_metric(rng, pairs)
            settings.setdefault("sharpness", float(decades(rng, -0.3, 1.0)))
    return stated(pairs, **settings)


def gaussian(rng):
    return rng.normal(size=sizes(rng))


def with_sentinels(rng, X, low=3, high=12):
    """A few entries replaced by one far value, or by several."""
    n, m = X.shape
    X = X.copy()
    points = rng.permutation(n)[: 1 + int(rng.integers(min(3, n - 1) if n > 2 else 1))]
    features = rng.permutation(m)[: 1 + int(rng.integers(m)) if rng.random() < 0.4 else 1]
    value = decades(rng, low, high) * rng.choice([-1.0, 1.0])
    for i in points:
        factor = 1.0 if rng.random() < 0.6 else rng.normal()
        X[i, features] = factor * (np.rint(value) if rng.random() < 0.5 else value)
    return X


def on_other_points(objective, X):
    """The same M-step of other points."""
    return replace(objective, pairs=with_points(objective.pairs, X))


def with_points(pairs, X):
    """The same pairs of other points."""
    if pairs.confidence is None:
        return PairSet.from_constraints(X, pairs.similar, pairs.dissimilar)
    k = len(pairs.similar)
    c = pairs.confidence
    return PairSet.from_constraints(X, pairs.similar, pairs.dissimilar, c[:k], c[k:])


def psd(rng, m):
    """A PSD matrix of any condition: diagonal, turned, of low rank, or of uneven features."""
    spectrum = decades(rng, -12, 6, size=m)
    kind = rng.integers(4)
    if kind == 0:
        return np.diag(spectrum * (rng.random(m) < 0.8))
    if kind == 1:
        directions = np.linalg.qr(rng.normal(size=(m, m)))[0]
        return (directions * spectrum) @ directions.T
    F = rng.normal(size=(m, int(rng.integers(1, m + 1))))
    if kind == 2:
        F *= decades(rng, -4, 4)
    else:
        F *= decades(rng, -5, 5, size=(m, 1))
    return F @ F.T
