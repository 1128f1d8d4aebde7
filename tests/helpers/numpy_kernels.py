"""What the kernels of `numerics/cuda` do, by NumPy in the plainest way."""

from __future__ import annotations

from math import ceil, log2

import numpy as np

from seraph_cvx.model.posterior import (
    LOGISTIC,
    EntropyLoss,
    SharpenedLoss,
    binary_entropy,
    negative_logs,
    posterior_similar,
)

TILE = 4
"""Rows of a tile, so that shares of few points differ."""


def loss(kind, sharpness):
    return {
        "logistic": LOGISTIC,
        "sharpened": SharpenedLoss(sharpness),
        "entropy": EntropyLoss(),
    }[kind]


def padded(columns, single=False, width=0):
    stacked = np.hstack([c[:, None] if c.ndim == 1 else c for c in columns])
    n, used = stacked.shape
    shape = ceil(max(n, 1) / TILE) * TILE, 2 ** ceil(log2(max(16, used, width)))
    result = np.zeros(shape, dtype=np.float32 if single else np.float64)
    result[:n, :used] = stacked
    return result


def sides(Y, threshold):
    squares = np.sum(Y * Y, axis=1)
    one, width = np.ones_like(squares), Y.shape[1] + 3
    left = padded([-2.0 * Y, squares - threshold, one], width=width)
    return left, padded([Y, one, squares], width=width)


def single(sides):
    return tuple(side.astype(np.float32) for side in sides)


def loaded(pairs, x):
    return pairs


def counted(counts):
    return padded([counts], single=True)[:, 0]


def _pairs(left, right, pairs):
    """Scores, and which entries of the upper triangle are pairs."""
    i, j = np.indices((len(left), len(left)))
    is_pair = (i < j) & (j < pairs.n) & (j >= pairs.first)
    return left @ right.T, is_pair


def _derivatives(left, right, pairs, counts=None):
    """Symmetric matrices of the first two derivatives of the loss, zero where there is no pair."""
    s, is_pair = _pairs(left, right, pairs)
    _, slope, second, _ = loss(pairs.kind, pairs.sharpness).sums(s.astype(float))
    both = 1.0 if counts is None else np.outer(counts, counts)
    W, P = (both * np.where(is_pair, part, 0.0) for part in (slope, second))
    return W + W.T, P + P.T


def _weighted(sides, parts, counts=None):
    """The same, added over all parts with their weights."""
    found = [(part.weight, *_derivatives(*sides, part, counts)) for part in parts]
    return [sum(weight * both[k] for weight, *both in found) for k in (0, 1)]


def gradients(sides, parts, used):
    found = []
    for part in parts:
        s, is_pair = _pairs(*sides, part)
        sums = loss(part.kind, part.sharpness).sums(s[is_pair])
        found.append([sums.total, sums.excess])
    return np.array(found), _weighted(sides, parts)[0] @ sides[1]


def totals(parts, sums):
    total = sum(part.weight * row[0] for part, row in zip(parts, sums, strict=True))
    return total, parts[0].weight * sums[0][1]


def upper_product(sides, z, parts):
    return np.triu(_weighted(sides, parts)[0]) @ z


def hessian_products(sides, e, counts, parts, rho):
    W, P = _weighted(sides, parts, counts)
    right = sides[1]
    inner = -(right @ e.T + e @ right.T)
    return W @ e, (2.0 * P * inner) @ right


def weighted_bounds(sides, width, labels, Z, pairs):
    left, right, width, Z = (np.asarray(x) for x in (*sides, width, Z))
    above, below, sharpness, largest, more, fewer = pairs.numbers
    i, j = np.indices((pairs.n, pairs.n))
    is_pair = (i < j) & (j >= pairs.first)
    d = left @ right.T
    upper = d + np.add.outer(width, width)
    s = np.clip(d - above, -above, largest)
    others = rests = losses = 0.0 * s
    of_label = d if labels is None else np.asarray(labels[0]) @ np.asarray(labels[1]).T
    x = np.minimum((of_label - above) * sharpness, largest)
    q = np.minimum(posterior_similar(x) * more, 1.0)
    if pairs.kind == "labels alone":
        x = (np.maximum(upper, 0.0) - below) * sharpness
        w, others = np.where(x > largest, 0.0, posterior_similar(x) * fewer), q
    else:
        w, losses = posterior_similar(s), LOGISTIC.value(s)
        rests = (1.0 - w) * negative_logs(w)[1]
        others = q * np.maximum(upper, 0.0) if pairs.kind == "soft labels" else others
    terms = (losses, binary_entropy(w), w, rests, others)
    W = np.where(is_pair, w, 0.0)
    sums = np.array([np.sum(term[is_pair]) for term in terms])
    return sums, np.sum(W + W.T, axis=1), W @ Z
