"""The judge of certificates: F and its dual, pair by pair, in balls, by no code that it judges.

With s_k = v_k'Av_k - eta, c_k the weight of pair k and q_k its label +1 (1, 0 or a soft label),

    F(A)    = sum_k c_k [q_k log(1 + e^{s_k}) + (1 - q_k) log(1 + e^{-s_k})] + <R, A> + sum_j P_j(A)
    D(r, Z) = sum_k c_k [H(r_k) + eta (r_k - q_k)] - sum_j P_j*(Z_j)
            where R + sum_k c_k (q_k - r_k) v_k v_k' + sum_j Z_j is PSD,

and D(r, Z) <= F(A) for every r in [0, 1]^N, all Z_j and every PSD A. An M-step is judged as it was
given, copied at that time: penalties by the numbers they were given, the previous metric
by (10). A factor L may be finer than doubles: what counts is that LL' is exactly PSD, and proven
feasible.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
from flint import arb, arb_mat, ctx
from high_precision import (
    differences,
    exact,
    factored,
    forms,
    identity,
    log_det,
    moment,
    squares,
    total,
)
from scipy.special import expit

from seraph_cvx import MStepObjective

PRECISIONS = (400, 1200, 4000)
"""Bits of the balls, more where the fewer do not decide."""

INFEASIBLE = arb("+inf")
"""The value of a constraint where it is proven to be violated."""


def ball(x):
    """A double as a ball, infinite ones too."""
    return arb(x) if np.isfinite(x) else arb(str(x))


def ball_softplus(t):
    """log(1 + e^t) as a ball, sharp for any t."""
    return t + (-t).exp().log1p() if t.mid() > 0 else t.exp().log1p()


def ball_sigmoid(t):
    """1 / (1 + e^{-t}) as a ball, sharp for any t."""
    small = (-t if t.mid() >= 0 else t).exp()
    return (1 if t.mid() >= 0 else small) / (1 + small)


def ball_entropy(r):
    """H(r) in nats from below; a term whose ball reaches 0 counts as 0, its least."""
    return total(-x * x.log() for x in (r, 1 - r) if x > 0)


# Penalties and constraints, by their definitions


@dataclass(frozen=True, eq=False)
class Block:
    """P by `value`: a ball, `INFEASIBLE`, or None where balls do not tell.

    `dual` is a matrix near Z whose conjugate is finite, and that conjugate; None where there is no
    such matrix, or none that is proven to be one.
    """


@dataclass(frozen=True, eq=False)
class Quadratic(Block):
    """weight/2 * ||A - prior||^2."""

    weight: float
    prior: np.ndarray

    def value(self, A):
        return arb(self.weight) / 2 * total(x * x for x in (A - exact(self.prior)).entries())

    def dual(self, Z):
        squared = total(x * x for x in Z.entries())
        return Z, (Z * exact(self.prior)).trace() + squared / (2 * arb(self.weight))


@dataclass(frozen=True, eq=False)
class Divergence(Block):
    """weight * (<Q, A> - log det A - log det Q - m)."""

    weight: float
    inverse: np.ndarray

    def value(self, A):
        verdict, Q = definite(A), exact(self.inverse)
        if verdict is None or verdict is INFEASIBLE:
            return verdict
        found = (A * Q).trace() - A.det().log() - Q.det().log() - A.nrows()
        return arb(self.weight) * found

    def dual(self, Z):
        Q = exact(self.inverse)
        left = log_det(Q - Z * (1 / arb(self.weight)))
        return None if left is None else (Z, arb(self.weight) * (log_det(Q) - left))


@dataclass(frozen=True, eq=False)
class OffDiagonalZero(Block):
    """A_ij = 0 for i != j."""

    def value(self, A):
        entries = below_diagonal(A)
        if any(x > 0 or x < 0 for x in entries):
            return INFEASIBLE
        return arb(0) if all(x.is_zero() for x in entries) else None

    def dual(self, Z):
        has_zero_diagonal = all(Z[i, i].is_zero() for i in range(Z.nrows()))
        return (Z, arb(0)) if has_zero_diagonal else None


@dataclass(frozen=True, eq=False)
class OffDiagonalSum(OffDiagonalZero):
    """weight * sum over i != j of |A_ij|."""

    weight: float

    def value(self, A):
        return 2 * arb(self.weight) * total(map(abs, below_diagonal(A)))

    def dual(self, Z):
        return super().dual(Z) if all(abs(x) <= self.weight for x in Z.entries()) else None


@dataclass(frozen=True, eq=False)
class TraceAtMost(Block):
    """tr(A) <= bound."""

    bound: float

    def value(self, A):
        off = A.trace() - arb(self.bound)
        return INFEASIBLE if off > 0 else arb(0) if off <= 0 else None

    def dual(self, Z):
        """By the nearest nonnegative multiple of I."""
        nu = (Z.trace() / Z.nrows()).mid()
        nu = nu if nu >= 0 else arb(0)
        return exact(np.eye(Z.nrows())) * nu, nu * arb(self.bound)


def definite(matrix):
    """0 where a matrix is proven positive definite, `INFEASIBLE` where indefinite, else None."""
    _, pivot = factored(matrix)
    return arb(0) if pivot is None else INFEASIBLE if pivot < 0 else None


def is_proven_psd(S):
    """Whether S is PSD: positive definite without its rows that are exactly zero."""
    rows = S.table()
    kept = [j for j, row in enumerate(rows) if not all(x.is_zero() for x in row)]
    return not kept or factored(arb_mat([[rows[i][j] for j in kept] for i in kept]))[1] is None


def below_diagonal(A):
    return [A[i, j] for i in range(A.nrows()) for j in range(i)]


def symmetric(values):
    """A as it is where it is symmetric; else (A + A')/2, in doubles."""
    matrix = np.array(values, dtype=np.float64)
    return matrix if np.array_equal(matrix, matrix.T) else matrix / 2.0 + matrix.T / 2.0


def block_of(penalty, m):
    """The judge's block of one of the package's penalties, by the numbers it has now."""
    return {
        "Ridge": lambda p: Quadratic(
            float(p.weight), np.zeros((m, m)) if p.prior is None else symmetric(p.prior)
        ),
        # The inverse of the prior is the definition: its doubles count as exact.
        "LogDet": lambda p: Divergence(
            float(p.weight), np.eye(m) if p._inverse is None else np.array(p._inverse)
        ),
        "TraceBound": lambda p: TraceAtMost(float(p.weight)),
        "Diagonal": lambda p: OffDiagonalZero(),
        "Sparse": lambda p: OffDiagonalSum(float(p.weight)),
    }[type(penalty).__name__](penalty)


# The M-step


ARGUMENTS = {
    "soft_labels": None,
    "previous_metric": None,
    "sharpness": None,
    "unlabeled_weight": "ratio",
    "trace_weight": 1.0,
    "threshold": 1.0,
    "manifold_term": None,
    "penalties": (),
}
"""Of an M-step, as `MStepObjective` takes them."""


class Judge:
    """Values of F and of its dual for the M-step of these pairs and arguments, copied at once.

    Or of an objective, taken at its word.
    """

    def __init__(self, source, **arguments):
        if isinstance(source, MStepObjective):
            arguments = {name: getattr(source, name) for name in ARGUMENTS}
        pairs = getattr(source, "pairs", source)
        given = SimpleNamespace(**ARGUMENTS | arguments)
        self.points, self.n_features = np.array(pairs.points), pairs.n_features
        self.similar, self.dissimilar = np.array(pairs.similar), np.array(pairs.dissimilar)
        self.confidence = np.array(pairs.labeled_weights)
        mu, self.n_unlabeled = given.unlabeled_weight, pairs.n_unlabeled
        if mu == "ratio" and self.n_unlabeled:
            mu = pairs.n_labeled / self.n_unlabeled
        self.mu = float(mu) if self.n_unlabeled else 0.0
        rows = np.array(pairs.unlabeled if pairs.drawn is None else pairs.drawn)
        self.unlabeled = rows if self.mu > 0.0 else rows[:0]  # of k, each counts mu * #U/k times
        self.rows = np.vstack([self.similar, self.dissimilar, self.unlabeled])
        self.threshold = float(given.threshold)
        self.sharpness = 1.0 + self.mu if given.sharpness is None else float(given.sharpness)
        labels, metric = given.soft_labels, given.previous_metric
        self.soft_labels = None if labels is None else np.array(labels, dtype=np.float64)
        self.previous_metric = None if metric is None else symmetric(metric)
        self.blocks = [block_of(block, self.n_features) for block in given.penalties]
        term = given.manifold_term
        self.terms = [] if term is None else [symmetric(term)]  # of R
        self.trace_weight = float(given.trace_weight)
        self._balls = {}

    def parts(self, bits=PRECISIONS[0]):
        """Differences V, weights c, labels q, R and eta, all as balls of this precision."""
        if bits not in self._balls:
            k, eta = len(self.unlabeled), arb(self.threshold)
            V = differences(self.points, self.rows)
            c = [arb(x) for x in self.confidence.tolist()]
            c += [arb(self.mu) * self.n_unlabeled / k] * k
            q = [arb(1)] * len(self.similar) + [arb(0)] * (len(self.dissimilar) + k)
            if self.soft_labels is not None and k:
                q[-k:] = map(arb, self.soft_labels.tolist())
            elif self.previous_metric is not None and k:
                d = forms(differences(self.points, self.unlabeled), exact(self.previous_metric))
                q[-k:] = [ball_sigmoid(arb(self.sharpness) * (eta - x)) for x in d]
            R = identity(self.n_features) * arb(self.trace_weight)
            self._balls[bits] = V, c, q, sum(map(exact, self.terms), R), eta
        return self._balls[bits]

    def value(self, L, bits=PRECISIONS[0]):
        """F(LL') as a ball; infinite where that is infeasible, None where balls do not tell."""
        with ctx.workprec(bits):
            V, c, q, R, eta = self.parts(bits)
            factor = exact(L)
            A = factor * factor.transpose()
            parts = [block.value(A) for block in self.blocks]
            if any(part is None or part is INFEASIBLE for part in parts):
                return INFEASIBLE if any(part is INFEASIBLE for part in parts) else None
            parts.append((factor.transpose() * R * factor).trace())
            for weight, label, d in zip(c, q, squares(V, factor), strict=True):
                s = d - eta
                parts.append(weight * (label * ball_softplus(s) + (1 - label) * ball_softplus(-s)))
            return total(parts)

    def compare(self, L, bound):
        """The sign of F(LL') - bound; 0 where it is zero or balls do not tell."""
        for bits in PRECISIONS:
            value = self.value(L, bits)
            if value is not None and (value < ball(bound) or value > ball(bound)):
                return -1 if value < ball(bound) else 1
        return 0

    def dual_value(self, r, bits=PRECISIONS[0]):
        """D(r, 0) as a ball; None where (r, 0) is not proven feasible.

        Each r_k is a ball within [0, 1], or a number.
        """
        with ctx.workprec(bits):
            V, c, q, R, eta = self.parts(bits)
            off = [weight * (label - x) for weight, label, x in zip(c, q, r, strict=True)]
            if not is_proven_psd(R + moment(V, off)):
                return None
            losses = zip(c, q, r, strict=True)
            return total(w * (ball_entropy(arb(x)) + eta * (x - label)) for w, label, x in losses)

    def lower_bound(self, L, bits=PRECISIONS[0]):
        """The best D(r, 0) on the way from r = sigma(-s(L)) to r = 0 or r = q."""
        with ctx.workprec(bits):
            V, _, q, _, eta = self.parts(bits)
            natural = [ball_sigmoid(eta - d) for d in squares(V, exact(L))]
            found = []
            for anchor in ([arb(0)] * len(q), q):

                def at(odds, anchor=anchor):
                    share = arb(float(expit(odds)))
                    r = [share * x + (1 - share) * a for x, a in zip(natural, anchor, strict=True)]
                    return self.dual_value(r, bits)

                low, high = -700.0, 40.0  # at 40 the share is 1
                value = at(high)
                while value is None and high - low > 0.01:
                    middle = (low + high) / 2.0
                    low, high = (middle, high) if at(middle) is not None else (low, middle)
                found.append(at(low) if value is None else value)
            return max((x for x in found if x is not None), key=lambda x: x.mid(), default=None)


def exact_value(objective, L):
    """F(LL') as a double."""
    return float(Judge(objective).value(L))
