"""A judge of certificates: F(LL') of the M-step (11), pair by pair, by no code of the package.

What is judged is an M-step as it was given, copied at that time (`Given`). Extended precision with
a bound on its own error decides what is clear; balls of 400 bits and more decide the rest. A factor
L may be finer than doubles: what counts is that LL' is exactly PSD, and proven feasible.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from flint import arb, arb_mat, ctx
from stress_blocks import NOWHERE, Block, block_of, symmetric
from stress_numbers import (
    EXTENDED,
    PRECISIONS,
    UNIT,
    ball,
    ball_sigmoid,
    ball_softplus,
    balls,
    is_positive_definite,
    sigmoid,
    softplus,
)

from seraph_cvx.penalties import Manifold, Trace, manifold_term


@dataclass(frozen=True, eq=False)
class Given:
    """An M-step as it was given: numbers, copied.

    Attributes
    ----------
    points : (n, m) array
    similar, dissimilar, unlabeled : (k, 2) integer arrays
        The pairs that count.
    confidence : (n_labeled,) array
    mu : float
        The weight of an unlabeled pair.
    n_unlabeled : int
        #U: where pairs were drawn, each of the k in `unlabeled` counts mu * #U/k.
    soft_labels : (k,) array or None
        Of the rows of `unlabeled`.
    previous_metric : (m, m) array or None
    sharpness, threshold : float
    trace_weights : tuple of float
        Their exact sum counts.
    terms : tuple of (m, m) arrays
        Linear terms <B, A>; their exact sum counts.
    blocks : tuple of Block
    constants : tuple of float
        Added to F; their exact sum counts.
    """

    points: np.ndarray
    similar: np.ndarray
    dissimilar: np.ndarray
    unlabeled: np.ndarray
    confidence: np.ndarray
    mu: float
    n_unlabeled: int
    threshold: float = 1.0
    soft_labels: np.ndarray | None = None
    previous_metric: np.ndarray | None = None
    sharpness: float = 1.0
    trace_weights: tuple = (1.0,)
    terms: tuple = ()
    blocks: tuple[Block, ...] = ()
    constants: tuple = ()

    @classmethod
    def of(cls, objective):
        """The M-step that an objective says it is."""
        return given(
            objective.pairs,
            soft_labels=objective.soft_labels,
            previous_metric=objective.previous_metric,
            sharpness=objective.sharpness,
            unlabeled_weight=objective.unlabeled_weight,
            trace_weight=objective.trace_weight,
            threshold=objective.threshold,
            manifold_term=objective.manifold_term,
            penalties=objective.penalties,
        )


def given(
    pairs,
    *,
    soft_labels=None,
    previous_metric=None,
    sharpness=None,
    unlabeled_weight="ratio",
    trace_weight=1.0,
    threshold=1.0,
    manifold_term=None,
    penalties=(),
    blocks=None,
    constants=(),
):
    """The M-step of these arguments of MStepObjective; `blocks` count instead of `penalties`."""
    n_unlabeled, mu = pairs.n_unlabeled, unlabeled_weight
    if mu == "ratio":
        mu = pairs.n_labeled / n_unlabeled if n_unlabeled else 0.0
    mu = float(mu) if n_unlabeled else 0.0
    rows = np.array(pairs.unlabeled) if pairs.drawn is None else np.array(pairs.drawn)
    rows = rows if mu > 0.0 else rows[:0]
    q = None if soft_labels is None else np.array(soft_labels, dtype=np.float64)
    if q is not None and mu > 0.0 and pairs.drawn is not None:
        place = {tuple(row): k for k, row in enumerate(pairs.unlabeled.tolist())}
        q = q[[place[tuple(row)] for row in rows.tolist()]]
    lambdas, terms, others = [float(trace_weight)], [], []
    if manifold_term is not None:
        terms.append(symmetric(manifold_term))
    for block in penalties:
        if isinstance(block, Trace):
            lambdas.append(float(block.weight))
        elif isinstance(block, Manifold):
            terms.append(symmetric(term_of(block, pairs.points)))
        else:
            others.append(block_of(block, pairs.n_features))
    return Given(
        points=np.array(pairs.points),
        similar=np.array(pairs.similar),
        dissimilar=np.array(pairs.dissimilar),
        unlabeled=rows,
        confidence=np.array(pairs.labeled_weights),
        mu=mu,
        n_unlabeled=n_unlabeled,
        threshold=float(threshold),
        soft_labels=q,
        previous_metric=None if previous_metric is None else symmetric(previous_metric),
        sharpness=1.0 + mu if sharpness is None else float(sharpness),
        trace_weights=tuple(lambdas),
        terms=tuple(terms),
        blocks=tuple(others if blocks is None else blocks),
        constants=tuple(map(float, constants)),
    )


def term_of(block, points):
    """nu*X'LX of a block: the graph is the package's, and its doubles count as given."""
    return manifold_term(points, block.weight, block.n_neighbors, block.kernel, block.normalised)


@dataclass(frozen=True, eq=False)
class Judge:
    """An M-step as plain numbers: differences v, weights c, soft labels q, R and the blocks.

    Made of an M-step as given, or of an objective, which is then taken at its word.
    """

    source: object
    given: Given = field(init=False)

    def __post_init__(self):
        found = self.source if isinstance(self.source, Given) else Given.of(self.source)
        object.__setattr__(self, "given", found)

    @cached_property
    def rows(self):
        """The pairs that count: similar, dissimilar, then unlabeled where mu > 0."""
        return np.vstack([self.given.similar, self.given.dissimilar, self.given.unlabeled])

    @property
    def n_labeled(self):
        return len(self.given.similar) + len(self.given.dissimilar)

    @cached_property
    def weights(self):
        """c of each row in extended precision, off by no more than 2 UNIT of itself."""
        given = self.given
        k = max(1, len(given.unlabeled))
        each = EXTENDED(given.mu) * (EXTENDED(given.n_unlabeled) / EXTENDED(k))
        more = np.full(len(given.unlabeled), each, dtype=EXTENDED)
        return np.concatenate([given.confidence.astype(EXTENDED), more])

    @cached_property
    def differences(self):
        """v of each row in extended precision, each entry off by no more than UNIT of itself."""
        X = self.given.points.astype(EXTENDED)
        return X[self.rows[:, 0]] - X[self.rows[:, 1]]

    @cached_property
    def regularizer(self):
        """R, the sum of all linear terms, in extended precision."""
        R = sum(map(EXTENDED, self.given.trace_weights)) * np.eye(self.n_features, dtype=EXTENDED)
        return sum((term.astype(EXTENDED) for term in self.given.terms), R)

    @cached_property
    def _size_of_regularizer(self):
        """The sum of the absolute values of all linear terms."""
        R = sum(map(EXTENDED, map(abs, self.given.trace_weights))) * np.eye(self.n_features)
        return sum((np.abs(term.astype(EXTENDED)) for term in self.given.terms), R)

    @property
    def n_features(self):
        return self.given.points.shape[1]

    @property
    def is_plain(self):
        """Whether F is f: no blocks, no constants."""
        return not self.given.blocks and not self.given.constants

    @cached_property
    def _labels_and_errors(self):
        """q(+1) of each row in extended precision, and how far each may be off."""
        q = np.zeros(len(self.rows), dtype=EXTENDED)
        q[: len(self.given.similar)] = 1
        error = np.zeros_like(q)
        soft, P = self.given.soft_labels, self.given.previous_metric
        rest = slice(self.n_labeled, len(q))
        if not len(self.given.unlabeled):
            return q, error
        if soft is not None:
            q[rest] = soft
        elif P is not None:
            a, eta = EXTENDED(self.given.sharpness), EXTENDED(self.given.threshold)
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
        """F(LL') in extended precision, and a bound on the error of that.

        With blocks f alone is screened, which is no bound on F: the error is infinite.
        """
        V, c, (q, dq) = self.differences, self.weights, self._labels_and_errors
        L, eta = np.asarray(L, dtype=EXTENDED), EXTENDED(self.given.threshold)
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
            R, many = self.regularizer, 4 * len(L) + 24 + len(V)
            linear = np.sum((R @ L) * L)
            size = np.sum((self._size_of_regularizer @ np.abs(L)) * np.abs(L))
            value = np.sum(c * terms) + linear
            error = 2 * np.sum(c * errors) + many * UNIT * (np.sum(c * terms) + size)
        if not np.isfinite(value + error):
            return EXTENDED(np.inf), np.inf
        return (value, error) if self.is_plain else (value, EXTENDED(np.inf))

    @cached_property
    def _balls(self):
        """By precision: differences, weights, labels, R and eta, all as balls."""
        return {}

    def _at(self, bits):
        if bits not in self._balls:
            self._balls[bits] = self._make_balls()
        return self._balls[bits]

    def _make_balls(self):
        given, m, rows = self.given, self.n_features, self.rows.tolist()
        X = balls(given.points)
        V = arb_mat([[X[i, a] - X[j, a] for a in range(m)] for i, j in rows])
        c = [arb(x) for x in given.confidence.tolist()]
        k = len(given.unlabeled)
        c += [arb(given.mu) * given.n_unlabeled / k] * k
        eta = arb(given.threshold)
        q = [arb(1)] * len(given.similar) + [arb(0)] * len(given.dissimilar)
        if len(q) < len(rows):
            q += self._soft_labels(V, eta)
        total = sum(map(arb, given.trace_weights), arb(0))
        R = arb_mat(m, m, [total if i == j else arb(0) for i in range(m) for j in range(m)])
        for term in given.terms:
            R = R + balls(term)
        return V, c, q, R, eta

    def _soft_labels(self, V, eta):
        given, rest = self.given, range(self.n_labeled, len(self.rows))
        if given.soft_labels is not None:
            return [arb(x) for x in given.soft_labels.tolist()]
        if given.previous_metric is None:
            return [arb(0)] * len(rest)
        image, a = V * balls(given.previous_metric), arb(given.sharpness)
        m = range(self.n_features)
        distances = [sum((image[k, i] * V[k, i] for i in m), arb(0)) for k in rest]
        return [ball_sigmoid(-a * (d - eta)) for d in distances]

    def value(self, L, bits=PRECISIONS[0]):
        """F(LL') as a ball; infinite where that is infeasible, None where balls do not tell."""
        with ctx.workprec(bits):
            V, c, q, R, eta = self._at(bits)
            factor = balls(L)
            image, columns = V * factor, range(factor.ncols())
            total = sum(map(arb, self.given.constants), arb(0))
            total += (factor.transpose() * R * factor).trace()
            for k, (weight, label) in enumerate(zip(c, q, strict=True)):
                s = sum((image[k, a] ** 2 for a in columns), arb(0)) - eta
                total += weight * (label * ball_softplus(s) + (1 - label) * ball_softplus(-s))
            if self.given.blocks:
                A = factor * factor.transpose()
                found = [block.value(A) for block in self.given.blocks]
                if any(value is NOWHERE for value in found):
                    return NOWHERE
                if any(value is None for value in found):
                    return None
                total += sum(found, arb(0))
            return total

    def is_below(self, L, bound, screened=None):
        """Whether F(LL') < bound; proven if true, and if false at least not disproven."""
        value, error = self.screen(L) if screened is None else screened
        if not bound > -np.inf or value - error >= bound:
            return False
        return self._decide(L, bound) < 0

    def is_above(self, L, bound, screened=None):
        """Whether F(LL') > bound; proven if true, and if false at least not disproven."""
        value, error = self.screen(L) if screened is None else screened
        if not bound < np.inf or value + error <= bound:
            return False
        return self._decide(L, bound) > 0

    def _decide(self, L, bound):
        """The sign of F(LL') - bound; 0 where it is zero or balls do not tell."""
        for bits in PRECISIONS:
            value = self.value(L, bits)
            if value is not None and (value < ball(bound) or value > ball(bound)):
                return -1 if value < ball(bound) else 1
        return 0

    def lower_bound(self, L):
        """A proven lower bound on inf f, from the dual point at LL'; minus infinity without one.

        D(r) = sum_k c_k [H(r_k) + eta*(r_k - q_k)] where R + sum_k c_k (q_k - r_k) v_k v_k' is PSD.
        """
        if not self.is_plain:
            return arb("-inf")
        with np.errstate(all="ignore"):
            s = np.sum((self.differences @ np.asarray(L, dtype=EXTENDED)) ** 2, axis=1)
            full = sigmoid(self.given.threshold - s).astype(np.float64)
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
