"""Families at the ends of the range of doubles, and of sampled pairs; one feature, two points.

Of one feature the optimum is known (`optimum_of_one_feature`), and of two points.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from stress_closed import optimum_of_one_feature, optimum_of_two_points
from stress_instances import decades, draw_pairs, gaussian, m_step, some_metric, stated

from seraph_cvx import PairSet

DENORMAL = 5e-324


def labels(rng, n):
    """Classes of points, -1 where unknown: at least two known."""
    y = rng.integers(0, int(rng.integers(1, 4)), size=n)
    y[rng.random(n) < rng.choice([0.3, 0.6, 0.9])] = -1
    known = rng.permutation(n)[:2]
    y[known] = rng.integers(0, 3, size=2)
    return y


def some_pairs(rng, X):
    """Of class labels, or of constraints, with confidences or without."""
    if rng.random() < 0.6:
        return PairSet.from_labels(X, labels(rng, len(X)))
    return draw_pairs(rng, X, (-3, 3) if rng.random() < 0.3 else None, most=len(X))


def drawn(rng, pairs):
    """Some of the unlabeled pairs, one to all but one of them."""
    if pairs.n_unlabeled < 2:
        return pairs
    most = pairs.n_unlabeled - 1
    k = int(rng.choice([1, most, rng.integers(1, most + 1)]))
    return pairs.sampled(k, random_state=int(rng.integers(1 << 30)))


def sampled_pairs(rng):
    """k drawn pairs, k from 1 to #U; soft labels of a metric, given ones or none."""
    n, m = int(rng.integers(3, 10)), int(rng.integers(1, 5))
    X = rng.normal(size=(n, m))
    kind = rng.integers(5)
    if kind == 0:
        X = np.round(X, 1)
    elif kind == 1:
        X = X * decades(rng, -6, 6, size=m)
    elif kind == 2:
        X = X + decades(rng, 0, 9) * rng.normal(size=m)
    elif kind == 3:
        X[0] *= decades(rng, 1, 9)
    return sampled_m_step(rng, drawn(rng, some_pairs(rng, X)))


def sampled_m_step(rng, pairs):
    settings = {
        "trace_weight": 0.0 if rng.random() < 0.6 else float(decades(rng, -6, 1)),
        "unlabeled_weight": [1.0, "ratio", float(decades(rng, -3, 3))][rng.integers(3)],
        "threshold": [1.0, float(decades(rng, -1, 1))][rng.integers(2)],
    }
    source = rng.random()
    if source < 0.4:
        settings["previous_metric"] = some_metric(rng, pairs, -2, 2)
        settings["sharpness"] = float(decades(rng, -0.3, 1.0))
    elif source < 0.43:  # are refused
        settings["soft_labels"] = rng.random(pairs.n_unlabeled)
    return stated(pairs, **settings)


def sampled_one_feature(rng):
    """Drawn pairs of points on a line."""
    X = rng.normal(size=(int(rng.integers(3, 7)), 1))
    if rng.random() < 0.5:
        X = np.round(X, 1)
    if rng.random() < 0.4:
        X = X * decades(rng, -140, 140)
    found = sampled_m_step(rng, drawn(rng, some_pairs(rng, X)))
    return known(rng, found)


def known(rng, found):
    """An instance of one feature with its optimum, and more metrics: tiny to far beyond it."""
    X = found.given.points.ravel()
    spread = np.ptp(X)
    with np.errstate(all="ignore"):
        metrics = decades(rng, -2, 4, size=4) / spread / spread
    kept = [[[a]] for a in metrics.tolist() if np.isfinite(a)]
    optimum = optimum_of_one_feature(found.given)
    return replace(found, optimum=optimum, metrics=[*found.metrics, *kept])


def line(rng, scale):
    """A few points on a line, of this scale; some equal, some far apart or close together."""
    X = rng.normal(size=(int(rng.integers(2, 6)), 1))
    kind = rng.integers(4)
    if kind == 0:
        X = np.round(X, 1)
    elif kind == 1:
        X[0] *= decades(rng, -12, 12)
    elif kind == 2:
        X = X + decades(rng, 0, 6)
    return X * scale


def any_weight(rng, low, high, zero=0.1):
    """Zero, a denormal, or of any size."""
    x = rng.random()
    return 0.0 if x < zero else DENORMAL if x < zero + 0.05 else float(decades(rng, low, high))


def suited(rng, scale, near=-12, far=12):
    """A trace weight of the size of c v^2, mostly; else of any size."""
    if rng.random() < 0.3:
        return any_weight(rng, -300, 300)
    square = np.log10(scale) * 2.0
    return float(decades(rng, *np.clip([square + near, square + far], -320, 305)))


def one_feature(rng):
    """Points on a line of size 1e-150 to 1e150, every number of any size."""
    scale = float(decades(rng, -150, 150))
    X = line(rng, scale)
    c = (-300, 300) if rng.random() < 0.2 else (-6, 6) if rng.random() < 0.3 else None
    pairs = draw_pairs(rng, X, c)
    given = {
        "trace_weight": suited(rng, scale),
        "threshold": [1.0, float(decades(rng, -6, 4)), float(decades(rng, -300, 300))][
            rng.choice(3, p=[0.5, 0.4, 0.1])
        ],
        "unlabeled_weight": [0.0, "ratio", any_weight(rng, -300, 300)][rng.integers(3)],
    }
    if rng.random() < 0.3:
        given["soft_labels"] = any_soft_labels(rng, pairs.n_unlabeled)
    elif rng.random() < 0.4:
        given["previous_metric"] = [[float(decades(rng, -2, 2)) / scale / scale]]
        if not np.isfinite(given["previous_metric"][0][0]):
            given["previous_metric"] = [[1e308]]
        given["sharpness"] = float(decades(rng, -3, 3))
    found = stated(pairs, **given)
    return known(rng, found)


def any_soft_labels(rng, k):
    """0, 1, denormal, tiny, one minus tiny, or ordinary."""
    tiny = decades(rng, -320, -3, size=k)
    kinds = [rng.random(k), np.zeros(k), np.ones(k), np.full(k, DENORMAL), tiny, 1.0 - tiny]
    return np.choose(rng.integers(len(kinds), size=k), kinds)


def two_points(rng):
    """One pair of size 1e-165 to 1e150, features of any size, every number of any size."""
    m = int(rng.integers(1, 9))
    scale = float(decades(rng, -165, -150 if rng.random() < 0.2 else 150))
    spread = 0.0 if scale < 1e-150 else float(rng.choice([0.0, 6.0, 150.0]))
    size = np.clip(np.log10(scale) + rng.uniform(-spread, spread, size=m), -165, 150)
    X = np.vstack([np.zeros(m), rng.normal(size=m) * 10.0**size])
    if rng.random() < 0.3:
        X = X + rng.normal(size=m) * np.abs(X[1]) * decades(rng, -3, 3)
    if rng.random() < (0.9 if scale < 1e-150 else 0.3):  # a third point, in no pair that counts
        size = float(rng.choice([0.0 if scale > 1e-150 else 1.0, decades(rng, -150, 150)]))
        X = np.vstack([X, X[:1] + size * rng.normal(size=m)])
    c = float(decades(rng, *((-300, 300) if rng.random() < 0.3 else (-9, 9))))
    rows, none = [(0, 1)], np.empty((0, 2), dtype=int)
    if rng.random() < 0.15:
        pairs = PairSet.from_constraints(X, rows, none, similar_confidence=c)
    else:
        pairs = PairSet.from_constraints(X, none, rows, dissimilar_confidence=c)
    largest = np.max(np.abs(X[1] - X[0]))
    square = (2.0 * float(np.log10(largest)) if largest > 0.0 else 0.0) + np.log10(c)
    weight = any_weight(rng, -300, 300)
    if rng.random() < 0.7:
        weight = float(decades(rng, *np.clip([square - 18, square + 2], -322, 305)))
    eta = [1.0, float(decades(rng, -6, 6)), float(decades(rng, -300, 300))]
    found = stated(
        pairs,
        trace_weight=weight,
        threshold=eta[rng.choice(3, p=[0.5, 0.35, 0.15])],
        unlabeled_weight=0.0,
    )
    return replace(found, optimum=optimum_of_two_points(found.given))


def huge_weights(rng):
    """mu, the confidences or both from 1e-300 to 1e300; points of size one, or scaled to suit."""
    X = gaussian(rng)[:8]
    X = X if len(X) > 1 else rng.normal(size=(3, 2))
    if rng.random() < 0.3:
        X = np.round(2.0 * X)
    if rng.random() < 0.3:
        X = X * decades(rng, -140, 140)
    spread = None
    if rng.random() < 0.5:
        middle = rng.uniform(-300, 300)
        width = rng.choice([0.0, 6.0, 300.0])
        spread = tuple(np.clip([middle - width, middle + width], -300, 300))
    pairs = draw_pairs(rng, X, spread)
    given = {"unlabeled_weight": any_weight(rng, -300, 300)}
    if rng.random() < 0.2:
        given["unlabeled_weight"] = [0.0, "ratio"][rng.integers(2)]
    given["trace_weight"] = [0.1, any_weight(rng, -300, 300, 0.3)][rng.integers(2)]
    if rng.random() < 0.4:
        given["previous_metric"] = some_metric(rng, pairs)
        given["sharpness"] = float(decades(rng, -1, 2))
    elif rng.random() < 0.4:
        given["soft_labels"] = any_soft_labels(rng, pairs.n_unlabeled)
    found = m_step(rng, pairs, **given)
    far = float(decades(rng, -20, 20)) * np.eye(X.shape[1])
    found.metrics.append(far)
    if X.shape[1] == 1:
        return known(rng, found)
    return found


def denormals(rng):
    """Denormal numbers in one or several inputs, among ordinary ones."""
    n, m = int(rng.integers(2, 7)), int(rng.integers(1, 4))
    X = rng.normal(size=(n, m))
    which = rng.random(7) < 0.35
    if which[0]:  # points that differ by denormals, in a feature that varies otherwise, or not
        i = int(rng.integers(n))
        X[i] = float(decades(rng, -323, -155)) * rng.normal(size=m)
        X[(i + 1) % n] = 0.0
    if which[1]:
        X = X * decades(rng, -152, -100)
    kwargs = {}
    rows = np.column_stack(np.triu_indices(n, 1))
    chosen = rows[rng.permutation(len(rows))[: int(rng.integers(1, len(rows) + 1))]]
    if which[0] and rng.random() < 0.7:  # the pair of nearly equal points
        chosen = np.array([sorted((i, (i + 1) % n))])
    similar = rng.random(len(chosen)) < rng.choice([0.0, 0.4])
    if which[2]:
        c = np.where(rng.random(len(chosen)) < 0.5, decades(rng, -323, -290, len(chosen)), 1.0)
        kwargs = {"similar_confidence": c[similar], "dissimilar_confidence": c[~similar]}
    pairs = PairSet.from_constraints(X, chosen[similar], chosen[~similar], **kwargs)
    given = {"trace_weight": [DENORMAL, 0.0, float(decades(rng, -323, -150))][rng.integers(3)]}
    if not which[3]:
        given["trace_weight"] = float(decades(rng, -3, 1))
    if which[4]:
        given["threshold"] = float(rng.choice([DENORMAL, 1e-310, 1e-300, 1e300]))
    if which[5]:
        given["unlabeled_weight"] = float(rng.choice([DENORMAL, 1e-310, 1e-300]))
    if which[6]:
        given["soft_labels"] = any_soft_labels(rng, pairs.n_unlabeled)
    if rng.random() < 0.2:
        term = np.diag(decades(rng, -323, -150, m))
        given["manifold_term"] = term
    elif rng.random() < 0.2 and "soft_labels" not in given:
        given["previous_metric"] = np.diag(decades(rng, -323, 300, m))
        given["sharpness"] = float(rng.choice([DENORMAL, 1.0, 1e-300, 1e300]))
    found = m_step(rng, pairs, **given)
    if m == 1:
        return known(rng, found)
    return found


EXTREMES = {
    "sampled pairs": sampled_pairs,
    "sampled pairs of one feature": sampled_one_feature,
    "one feature": one_feature,
    "two points": two_points,
    "huge and tiny weights": huge_weights,
    "denormal numbers": denormals,
}
