"""A judge of certificates: f(LL') of the M-step (11), pair by pair, by no code of the package.

Extended precision with a bound on its own error decides what is clear; balls of 400 bits and more
decide the rest. A factor L may be finer than doubles: what counts is that LL' is exactly PSD.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from flint import arb, arb_mat, ctx

EXTENDED = np.longdouble
UNIT = float(np.finfo(EXTENDED).eps)
PRECISIONS = (400, 1200, 4000)
"""Bits of the balls, more where the fewer do not decide."""


def balls(values):
    """The very numbers of a matrix, of doubles or in extended precision, as a matrix of balls."""
    values = np.asarray(values, dtype=EXTENDED)
    high = values.astype(np.float64)
    matrix = arb_mat(*high.shape, high.ravel().tolist())
    low = (values - high).astype(np.float64)
    return matrix + arb_mat(*low.shape, low.ravel().tolist()) if np.any(low) else matrix


def ball(x):
    """A double as a ball, infinite ones too."""
    return arb(x) if np.isfinite(x) else arb(str(x))


def softplus(t):
    """log(1 + e^t) in floating point."""
    return np.maximum(t, 0) + np.log1p(np.exp(-np.abs(t)))


def sigmoid(t):
    """1 / (1 + e^{-t}) in floating point."""
    small = np.exp(-np.abs(t))
    return np.where(t >= 0, 1, small) / (1 + small)


def ball_softplus(t):
    """log(1 + e^t) as a ball, sharp for any t."""
    return t + (-t).exp().log1p() if t.mid() > 0 else t.exp().log1p()


def ball_sigmoid(t):
    """1 / (1 + e^{-t}) as a ball, sharp for any t."""
    return 1 / (1 + (-t).exp())


@dataclass(frozen=True, eq=False)
class Judge:
    """The M-step of an objective as plain numbers: differences v, weights c, soft labels q, R."""

    objective: object

    @cached_property
    def rows(self):
        """The pairs that count: similar, dissimilar, then unlabeled where mu > 0."""
        pairs = self.objective.pairs
        unlabeled = pairs.unlabeled if self.objective.mu > 0 else pairs.unlabeled[:0]
        return np.vstack([pairs.similar, pairs.dissimilar, unlabeled])

    @cached_property
    def n_labeled(self):
        return len(self.objective.pairs.similar) + len(self.objective.pairs.dissimilar)

    @cached_property
    def weights(self):
        """c of each row; doubles."""
        c = self.objective.pairs.confidence
        labeled = np.ones(self.n_labeled) if c is None else c
        more = np.full(len(self.rows) - self.n_labeled, self.objective.mu)
        return np.concatenate([labeled, more])

    @cached_property
    def differences(self):
        """v of each row in extended precision, each entry off by no more than UNIT of itself."""
        X = self.objective.pairs.points.astype(EXTENDED)
        return X[self.rows[:, 0]] - X[self.rows[:, 1]]

    @cached_property
    def regulariser(self):
        """R = trace_weight*I + manifold_term in extended precision."""
        R = EXTENDED(self.objective.trace_weight) * np.eye(self.n_features, dtype=EXTENDED)
        extra = self.objective.manifold_term
        return R if extra is None else R + extra.astype(EXTENDED)

    @property
    def n_features(self):
        return self.objective.pairs.points.shape[1]

    @cached_property
    def _labels_and_errors(self):
        """q(+1) of each row in extended precision, and how far each may be off."""
        q = np.zeros(len(self.rows), dtype=EXTENDED)
        q[: len(self.objective.pairs.similar)] = 1
        error = np.zeros_like(q)
        given, P = self.objective.soft_labels, self.objective.previous_metric
        rest = slice(self.n_labeled, len(q))
        if given is not None and self.objective.mu > 0:
            q[rest] = given
        elif P is not None:
            a, eta = EXTENDED(self.objective.sharpness), EXTENDED(self.objective.threshold)
            V = self.differences[rest]
            d = np.sum((V @ P.astype(EXTENDED)) * V, axis=1)
            size = np.sum((np.abs(V) @ np.abs(P).astype(EXTENDED)) * np.abs(V), axis=1)
            moved = a * (2 * self.n_features + 8) * UNIT * (size + eta)
            q[rest] = sigmoid(-a * (d - eta))
            error[rest] = q[rest] * np.expm1(np.minimum(moved, 700)) + 8 * UNIT * q[rest]
            error[rest] = np.minimum(error[rest], 1)
        return q, error

    @property
    def labels(self):
        """q(+1) of each row: 1 similar, 0 dissimilar, soft where unlabeled."""
        return self._labels_and_errors[0]

    def screen(self, L):
        """f(LL') in extended precision, and a bound on the error of that."""
        V, c, (q, dq) = self.differences, self.weights, self._labels_and_errors
        L, eta = np.asarray(L, dtype=EXTENDED), EXTENDED(self.objective.threshold)
        with np.errstate(all="ignore"):
            image, roomy = V @ L, np.abs(V) @ np.abs(L)
            moved = (len(L) + 3) * UNIT * roomy
            d = np.sum(image**2, axis=1)
            e = np.sum((2 * np.abs(image) + moved) * moved, axis=1)
            e += (L.shape[1] + 4) * UNIT * (d + eta)
            s = d - eta
            terms = q * softplus(s) + (1 - q) * softplus(-s)
            slope = np.minimum(q + dq + sigmoid(e - s), 1 - q + dq + sigmoid(s + e))
            errors = slope * e + dq * (np.abs(s) + e) + 16 * UNIT * terms
            R, many = self.regulariser, 4 * len(L) + 16 + len(V)
            linear = np.sum((R @ L) * L)
            size = np.sum((np.abs(R) @ np.abs(L)) * np.abs(L))
            value = np.sum(c * terms) + linear
            error = 2 * np.sum(c * errors) + many * UNIT * (np.sum(c * terms) + size)
        return (value, error) if np.isfinite(value + error) else (EXTENDED(np.inf), np.inf)

    @cached_property
    def _balls(self):
        """By precision: differences, weights, labels, R and eta, all as balls."""
        return {}

    def _at(self, bits):
        if bits not in self._balls:
            self._balls[bits] = self._make_balls()
        return self._balls[bits]

    def _make_balls(self):
        objective = self.objective
        X = balls(objective.pairs.points)
        m = self.n_features
        rows = self.rows.tolist()
        V = arb_mat([[X[i, a] - X[j, a] for a in range(m)] for i, j in rows])
        c = [arb(x) for x in self.weights.tolist()]
        eta = arb(objective.threshold)
        q = [arb(1)] * len(objective.pairs.similar) + [arb(0)] * len(objective.pairs.dissimilar)
        if len(q) < len(rows):
            q += self._soft_labels(V, eta)
        R = balls(objective.trace_weight * np.eye(m))
        if objective.manifold_term is not None:
            R = R + balls(objective.manifold_term)
        return V, c, q, R, eta

    def _soft_labels(self, V, eta):
        objective, rest = self.objective, range(self.n_labeled, len(self.rows))
        if objective.soft_labels is not None:
            return [arb(x) for x in objective.soft_labels.tolist()]
        if objective.previous_metric is None:
            return [arb(0)] * len(rest)
        image, a = V * balls(objective.previous_metric), arb(objective.sharpness)
        m = range(self.n_features)
        distances = [sum((image[k, i] * V[k, i] for i in m), arb(0)) for k in rest]
        return [ball_sigmoid(-a * (d - eta)) for d in distances]

    def value(self, L, bits=PRECISIONS[0]):
        """f(LL') as a ball."""
        with ctx.workprec(bits):
            V, c, q, R, eta = self._at(bits)
            factor = balls(L)
            image, columns = V * factor, range(factor.ncols())
            total = (factor.transpose() * R * factor).trace()
            for k, (weight, label) in enumerate(zip(c, q, strict=True)):
                s = sum((image[k, a] ** 2 for a in columns), arb(0)) - eta
                total += weight * (label * ball_softplus(s) + (1 - label) * ball_softplus(-s))
            return total

    def is_below(self, L, bound, screened=None):
        """Whether f(LL') < bound; proven if true, and if false at least not disproven."""
        value, error = self.screen(L) if screened is None else screened
        if not bound > -np.inf or value - error >= bound:
            return False
        return self._decide(L, bound) < 0

    def is_above(self, L, bound, screened=None):
        """Whether f(LL') > bound; proven if true, and if false at least not disproven."""
        value, error = self.screen(L) if screened is None else screened
        if not bound < np.inf or value + error <= bound:
            return False
        return self._decide(L, bound) > 0

    def _decide(self, L, bound):
        """The sign of f(LL') - bound; 0 where it is zero or balls do not tell."""
        for bits in PRECISIONS:
            value = self.value(L, bits)
            if value < ball(bound) or value > ball(bound):
                return -1 if value < ball(bound) else 1
        return 0

    def lower_bound(self, L):
        """A proven lower bound on inf f, from the dual point at LL'; minus infinity without one.

        D(r) = sum_k c_k [H(r_k) + eta*(r_k - q_k)] where R + sum_k c_k (q_k - r_k) v_k v_k' is PSD.
        """
        with np.errstate(all="ignore"):
            s = np.sum((self.differences @ np.asarray(L, dtype=EXTENDED)) ** 2, axis=1)
            full = sigmoid(self.objective.threshold - s).astype(np.float64)
        with ctx.workprec(PRECISIONS[0]):
            for shrink in (0.0, 1e-13, 1e-10, 1e-7, 1e-4, 1e-2, 0.1, 0.5):
                r = full * (1.0 - shrink)
                if self._is_feasible(r):
                    return self._dual_value(r)
        return arb("-inf")

    def _is_feasible(self, r):
        V, c, q, R, _ = self._at(PRECISIONS[0])
        m = range(self.n_features)
        w = [ck * (qk - rk) for ck, qk, rk in zip(c, q, map(arb, r.tolist()), strict=True)]
        weighted = arb_mat([[w[k] * V[k, a] for a in m] for k in range(len(w))])
        return is_positive_definite(V.transpose() * weighted + R)

    def _dual_value(self, r):
        _, c, q, _, eta = self._at(PRECISIONS[0])
        total = arb(0)
        for ck, qk, rk in zip(c, q, map(arb, r.tolist()), strict=True):
            entropy = -sum((x * x.log() for x in (rk, 1 - rk) if x > 0), arb(0))
            total += ck * (entropy + eta * (rk - qk))
        return total


def is_positive_definite(matrix):
    """By Gauss' elimination with pivots that are balls: true only where proven."""
    rows, m = matrix.table(), matrix.nrows()
    for j in range(m):
        pivot = rows[j][j]
        if not pivot > 0:
            return False
        for i in range(j + 1, m):
            share = rows[i][j] / pivot
            for k in range(i, m):
                rows[i][k] -= share * rows[k][j]
                rows[k][i] = rows[i][k]
    return True
