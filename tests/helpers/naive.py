"""The paper's formulas by double loops over pairs: slow, obvious, sharing no code with the package.

Everything is a function of plain arrays and numbers. Signs are those of a minimization.
"""

from __future__ import annotations

import math

import numpy as np


def softplus(t):
    """log(1 + e^t), stably."""
    return max(t, 0.0) + math.log1p(math.exp(-abs(t)))


def sigmoid(t):
    """1 / (1 + e^{-t}), stably."""
    return 1.0 / (1.0 + math.exp(-t)) if t >= 0.0 else math.exp(t) / (1.0 + math.exp(t))


def weak_labels(pairs):
    """{(i, j): +1, -1 or 0} for every i < j, by asking each list of pairs."""
    similar = {tuple(row) for row in pairs.similar.tolist()}
    dissimilar = {tuple(row) for row in pairs.dissimilar.tolist()}
    n = len(pairs.points)
    return {
        (i, j): 1 if (i, j) in similar else -1 if (i, j) in dissimilar else 0
        for i in range(n)
        for j in range(i + 1, n)
    }


def confidences(pairs):
    """{(i, j): c} of the labeled pairs."""
    rows = pairs.similar.tolist() + pairs.dissimilar.tolist()
    c = [1.0] * len(rows) if pairs.confidence is None else pairs.confidence.tolist()
    return dict(zip(map(tuple, rows), c, strict=True))


def score(X, i, j, A, eta):
    """s = ||x_i - x_j||_A^2 - eta; eq. (8) is p(y) = 1 / (1 + e^{y s})."""
    v = X[i] - X[j]
    return float(v @ A @ v) - eta


def m_step(pairs, q_similar, mu, trace_weight, eta, A, manifold=0.0):
    """-F(A) of eq. (11) and minus its printed gradient; q_similar runs over U lexicographically."""
    X, m, c = np.asarray(pairs.points), pairs.points.shape[1], confidences(pairs)
    gradient = trace_weight * np.eye(m) + manifold
    value = float(np.sum(gradient * A))
    unlabeled = iter(q_similar)
    for (i, j), y in weak_labels(pairs).items():
        s = score(X, i, j, A, eta)
        x_ij = np.outer(X[i] - X[j], X[i] - X[j])
        if y != 0:
            value -= c[i, j] * -softplus(y * s)  # c ln p(y)
            gradient += c[i, j] * y * (1.0 - sigmoid(-y * s)) * x_ij
            continue
        q = {1: next(unlabeled)}
        q[-1] = 1.0 - q[1]
        for label in (1, -1):
            value -= mu * q[label] * -softplus(label * s)
            gradient += mu * label * q[label] * (1.0 - sigmoid(-label * s)) * x_ij
    return value, gradient


def entropy(p):
    """-p ln p - (1 - p) ln(1 - p)."""
    return -sum(t * math.log(t) for t in (p, 1.0 - p) if t > 0.0)


def semi_supervised(pairs, mu, trace_weight, eta, A, manifold=0.0):
    """-L(A) of eq. (7) and its gradient; d/ds of p ln p + (1-p) ln(1-p) by the product rule."""
    X, m, c = np.asarray(pairs.points), pairs.points.shape[1], confidences(pairs)
    gradient = trace_weight * np.eye(m) + manifold
    value = float(np.sum(gradient * A))
    for (i, j), y in weak_labels(pairs).items():
        s = score(X, i, j, A, eta)
        x_ij = np.outer(X[i] - X[j], X[i] - X[j])
        if y != 0:
            value += c[i, j] * softplus(y * s)
            gradient += c[i, j] * y * sigmoid(y * s) * x_ij
            continue
        p = {1: sigmoid(-s), -1: sigmoid(s)}
        log_p = {1: -softplus(s), -1: -softplus(-s)}
        slope = {1: -p[1] * p[-1], -1: p[1] * p[-1]}  # dp(y)/ds
        value -= mu * sum(p[label] * log_p[label] for label in (1, -1))
        gradient -= mu * sum(slope[label] * (log_p[label] + 1.0) for label in (1, -1)) * x_ij
    return value, gradient


def descent(pairs, q_similar, mu, sharpness, trace_weight, eta, A, manifold=0.0):
    """J(q, A) = -L_labeled + <R, A> + mu sum_U [E_q(-ln p) - H(q)/sharpness]."""
    X, c = np.asarray(pairs.points), confidences(pairs)
    value = float(np.sum((trace_weight * np.eye(len(A)) + manifold) * A))
    unlabeled = iter(q_similar)
    for (i, j), y in weak_labels(pairs).items():
        s = score(X, i, j, A, eta)
        if y != 0:
            value += c[i, j] * softplus(y * s)
            continue
        q = next(unlabeled)
        value += mu * (q * softplus(s) + (1.0 - q) * softplus(-s) - entropy(q) / sharpness)
    return value


def renyi_descent(pairs, mu, sharpness, trace_weight, eta, A):
    """min_q J(q, A): its unlabeled part is mu (a - 1)/a times the Renyi entropy of order a."""
    X = np.asarray(pairs.points)
    value = trace_weight * float(np.trace(A))
    a = sharpness
    for (i, j), y in weak_labels(pairs).items():
        s = score(X, i, j, A, eta)
        if y != 0:
            value += softplus(y * s)
            continue
        renyi = math.log(sigmoid(s) ** a + sigmoid(-s) ** a) / (1.0 - a)
        value += mu * (a - 1.0) / a * renyi
    return value


def pair_terms(pairs, q_similar, mu):
    """v, c and b of DESIGN's first formula, one row per pair: the dual's data."""
    X = np.asarray(pairs.points)
    V, c, b = [], [], []
    confidence = confidences(pairs)
    unlabeled = iter(q_similar)
    for (i, j), y in weak_labels(pairs).items():
        V.append(X[i] - X[j])
        c.append(confidence[i, j] if y else mu)
        b.append((y < 0) * confidence[i, j] if y else mu * (1.0 - next(unlabeled)))
    return np.array(V), np.array(c), np.array(b)


def dual_value(p, c, b, eta):
    """D(p) = sum_k c_k H(p_k) - eta (sum_k c_k p_k - beta)."""
    return sum(ck * entropy(pk) for ck, pk in zip(c, p, strict=True)) - eta * float(c @ p - b.sum())


def dual_matrix(p, V, c, b, trace_weight):
    """M(p) = sum_k (c_k p_k - b_k) v_k v_k' + lambda I."""
    return (V.T * (c * p - b)) @ V + trace_weight * np.eye(V.shape[1])


def exact_value(objective, F, q_similar=0.0):
    """f(FF') in extended precision; each distance is a squared norm, so nothing cancels."""
    extended = np.longdouble
    pairs, eta = objective.pairs, extended(objective.threshold)
    Z = pairs.points.astype(extended) @ F.astype(extended)

    def surprise(rows, sign):
        difference = Z[rows[:, 0]] - Z[rows[:, 1]]
        t = sign * (np.sum(difference * difference, axis=1) - eta)
        return np.maximum(t, 0) + np.log1p(np.exp(-np.abs(t)))

    value = surprise(pairs.similar, 1).sum() + surprise(pairs.dissimilar, -1).sum()
    value += extended(objective.trace_weight) * np.sum(np.square(F.astype(extended)))
    if objective.mu > 0.0:
        q = np.asarray(q_similar, dtype=extended)
        near, far = surprise(pairs.unlabeled, 1), surprise(pairs.unlabeled, -1)
        value += extended(objective.mu) * np.sum(q * near + (1 - q) * far)
    return float(value)
