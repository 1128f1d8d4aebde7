"""A judge of certificates: F(LL') of the M-step (11), pair by pair, by no code of the package.

What is judged is an M-step as it was given, copied at that time (`Given`). Balls have 400 bits, and
more where these do not decide. A factor L may be finer than doubles: what counts is that LL' is
exactly PSD, and proven feasible. Optima that are known are enclosed too: of one feature by
bisection, of one pair in closed form.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from flint import arb, arb_mat, ctx
from high_precision import (
    BITS,
    EXTENDED,
    differences,
    exact,
    forms,
    identity,
    random_factors,
    solve_quietly,
    squares,
    total,
)
from scipy.special import expit
from stress_blocks import INFEASIBLE, block_of, symmetric

from seraph_cvx.certificate.proof import prove
from seraph_cvx.penalties import Manifold, Trace, manifold_term

PRECISIONS = (400, 1200, 4000)
"""Bits of the balls, more where the fewer do not decide."""

LARGEST_EXPONENT = 7000
"""Bisection looks for a minimizer between 2^-7000 and 2^7000."""

SHARP = 1e-20
"""A relative radius of the optimum that is small enough."""


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


def ball_loss(s, q):
    """-q ln p(+1) - (1 - q) ln p(-1) of a pair with score s."""
    return q * ball_softplus(s) + (1 - q) * ball_softplus(-s)


@dataclass(frozen=True, eq=False)
class Given:
    """An M-step as it was given: numbers, copied. Of `constants` and terms the exact sum counts."""

    points: np.ndarray
    similar: np.ndarray
    dissimilar: np.ndarray
    unlabeled: np.ndarray  # the pairs that count
    confidence: np.ndarray
    mu: float
    n_unlabeled: int  # #U: where k pairs were drawn, each counts mu * #U/k
    threshold: float
    soft_labels: np.ndarray | None  # of the rows of `unlabeled`
    previous_metric: np.ndarray | None
    sharpness: float
    trace_weights: tuple
    terms: tuple  # matrices B of linear terms <B, A>
    blocks: tuple
    constants: tuple = ()

    @classmethod
    def of(cls, objective):
        """The M-step that an objective says it is."""
        names = "soft_labels previous_metric sharpness unlabeled_weight trace_weight threshold"
        names += " manifold_term penalties"
        return given(objective.pairs, **{name: getattr(objective, name) for name in names.split()})


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
):
    """The M-step of these arguments of MStepObjective."""
    n_unlabeled, mu = pairs.n_unlabeled, unlabeled_weight
    if mu == "ratio" and n_unlabeled:
        mu = pairs.n_labeled / n_unlabeled
    mu = float(mu) if n_unlabeled else 0.0
    rows = np.array(pairs.unlabeled if pairs.drawn is None else pairs.drawn)
    terms = [] if manifold_term is None else [manifold_term]
    weights, blocks = [float(trace_weight)], []
    for block in penalties:
        if isinstance(block, Trace):
            weights.append(float(block.weight))
        elif isinstance(block, Manifold):
            terms.append(term_of(block, pairs.points))
        else:
            blocks.append(block_of(block, pairs.n_features))
    return Given(
        points=np.array(pairs.points),
        similar=np.array(pairs.similar),
        dissimilar=np.array(pairs.dissimilar),
        unlabeled=rows if mu > 0.0 else rows[:0],
        confidence=np.array(pairs.labeled_weights),
        mu=mu,
        n_unlabeled=n_unlabeled,
        threshold=float(threshold),
        soft_labels=None if soft_labels is None else np.array(soft_labels, dtype=np.float64),
        previous_metric=None if previous_metric is None else symmetric(previous_metric),
        sharpness=1.0 + mu if sharpness is None else float(sharpness),
        trace_weights=tuple(weights),
        terms=tuple(map(symmetric, terms)),
        blocks=tuple(blocks),
    )


def term_of(block, points):
    """nu*X'LX of a block: the graph is the package's, and its doubles count as given."""
    return manifold_term(points, block.weight, block.n_neighbors, block.kernel, block.normalised)


class Judge:
    """An M-step as plain numbers: differences v, weights c, soft labels q, R and the blocks.

    Made of an M-step as given, or of an objective, which is then taken at its word. The attributes
    are in extended precision, for searches; verdicts are by balls.
    """

    def __init__(self, source):
        given = self.given = source if isinstance(source, Given) else Given.of(source)
        self.n_features = given.points.shape[1]
        self.rows = np.vstack([given.similar, given.dissimilar, given.unlabeled])
        X = given.points.astype(EXTENDED)
        self.differences = X[self.rows[:, 0]] - X[self.rows[:, 1]]
        k = len(given.unlabeled)
        each = EXTENDED(given.mu) * (EXTENDED(given.n_unlabeled) / max(1, k))
        self.weights = np.concatenate([given.confidence.astype(EXTENDED), [each] * k])
        R = sum(map(EXTENDED, given.trace_weights)) * np.eye(self.n_features, dtype=EXTENDED)
        self.regularizer = sum((term.astype(EXTENDED) for term in given.terms), R)
        self.labels = np.zeros(len(self.rows), dtype=EXTENDED)
        self.labels[: len(given.similar)] = 1
        if given.soft_labels is not None and k:
            self.labels[-k:] = given.soft_labels
        elif given.previous_metric is not None and k:
            V = self.differences[-k:]
            d = np.sum((V @ given.previous_metric.astype(EXTENDED)) * V, axis=1)
            self.labels[-k:] = expit(EXTENDED(given.sharpness) * (given.threshold - d))
        self._balls = {}

    def _at(self, bits):
        """Differences, weights, labels, R and eta, all as balls of this precision."""
        if bits not in self._balls:
            given, k = self.given, len(self.given.unlabeled)
            V = differences(given.points, self.rows)
            c = [arb(x) for x in given.confidence.tolist()]
            c += [arb(given.mu) * given.n_unlabeled / k] * k
            q = [arb(1)] * len(given.similar) + [arb(0)] * (len(given.dissimilar) + k)
            if given.soft_labels is not None and k:
                q[-k:] = map(arb, given.soft_labels.tolist())
            elif given.previous_metric is not None and k:
                a, eta = arb(given.sharpness), given.threshold
                d = forms(differences(given.points, given.unlabeled), exact(given.previous_metric))
                q[-k:] = [ball_sigmoid(a * (eta - x)) for x in d]
            R = identity(self.n_features) * total(map(arb, given.trace_weights))
            R = sum(map(exact, given.terms), R)
            self._balls[bits] = V, c, q, R, arb(given.threshold)
        return self._balls[bits]

    def value(self, L, bits=PRECISIONS[0]):
        """F(LL') as a ball; infinite where that is infeasible, None where balls do not tell."""
        with ctx.workprec(bits):
            V, c, q, R, eta = self._at(bits)
            factor = exact(L)
            A = factor * factor.transpose()
            parts = [block.value(A) for block in self.given.blocks]
            if any(part is None or part is INFEASIBLE for part in parts):
                return INFEASIBLE if any(part is INFEASIBLE for part in parts) else None
            scores = [d - eta for d in squares(V, factor)]
            parts += [*map(arb, self.given.constants), (factor.transpose() * R * factor).trace()]
            triples = zip(c, scores, q, strict=True)
            return total([*parts, *(weight * ball_loss(s, label) for weight, s, label in triples)])

    def compare(self, L, bound):
        """The sign of F(LL') - bound; 0 where it is zero or balls do not tell."""
        for bits in PRECISIONS:
            value = self.value(L, bits)
            if value is not None and (value < ball(bound) or value > ball(bound)):
                return -1 if value < ball(bound) else 1
        return 0


def exact_value(objective, L):
    """F(LL') as a double."""
    return float(Judge(objective).value(L, BITS))


def known_optimum(source):
    """The infimum of F as a ball, of one feature or of one pair; None otherwise.

    Infinite where no metric is feasible; None where balls do not tell.
    """
    judge = Judge(source)
    if judge.n_features == 1:
        return optimum_of_one_feature(judge)
    given = judge.given
    if len(judge.rows) > 1 or given.terms or given.blocks or given.constants:
        return None
    return optimum_of_one_pair(judge)


def optimum_of_one_feature(judge):
    """The infimum of F over a >= 0: by the sign of F', in balls."""
    best = None
    for bits in PRECISIONS:
        with ctx.workprec(bits):
            found = Line(judge, bits).infimum()
        best = best if found is None else found
        if is_sharp(found):
            break
    return best


def is_sharp(found):
    """Whether the radius is small enough, or nothing finite is enclosed."""
    return found is not None and (not found.is_finite() or found.rad() <= abs(found.mid()) * SHARP)


class Line:
    """F(a) and F'(a) for one feature, in balls."""

    def __init__(self, judge, bits):
        V, c, q, R, self.eta = judge._at(bits)
        pairs = [(ck, qk, V[k, 0] ** 2) for k, (ck, qk) in enumerate(zip(c, q, strict=True))]
        self.pairs = [pair for pair in pairs if not pair[2].is_zero()]
        equal = (ck * ball_loss(-self.eta, qk) for ck, qk, w in pairs if w.is_zero())
        self.constant = total(equal) + total(map(arb, judge.given.constants))
        self.R, self.blocks = R[0, 0], judge.given.blocks

    def value(self, a):
        losses = (c * ball_loss(w * a - self.eta, q) for c, q, w in self.pairs)
        costs = (block.cost(arb_mat(1, 1, [a])) for block in self.blocks)
        return self.constant + self.R * a + total(losses) + total(costs)

    def slope(self, a):
        slopes = (c * w * (q - ball_sigmoid(self.eta - w * a)) for c, q, w in self.pairs)
        return self.R + total(slopes) + total(block.slope(a) for block in self.blocks)

    def infimum(self):
        low, high = arb(0), None
        for block in self.blocks:
            its_low, its_high = block.interval()
            low = low.max(its_low)
            if its_high is not None:
                high = its_high if high is None else high.min(its_high)
        if high is not None and not low <= high:
            return INFEASIBLE if high < low else None
        for end, sign in ((low, 1), (high, -1)):
            slope = None if end is None else sign * self.slope(end)
            if slope is not None and not slope < 0:
                return self.value(end) if slope >= 0 else None
        if high is None and not self.slope(arb(2) ** LARGEST_EXPONENT) > 0:
            return self._at_infinity()
        return self._between(low, high)

    def _between(self, low, high):
        """The minimum between two numbers, F falling at the first and rising at the second."""
        bottom, top = arb(-LARGEST_EXPONENT), arb(LARGEST_EXPONENT)
        a, b, found = low, arb(2) ** top if high is None else high, None
        for k in range(1, 901):
            exponent = ((bottom + top) / 2).mid()
            middle = (arb(2) ** exponent).mid()
            side = int(middle >= b) - int(middle <= a)
            slope = side if side else self.slope(middle)
            if slope < 0:
                bottom, a = exponent, a.max(middle)
            elif slope > 0:
                top, b = exponent, b.min(middle)
            else:
                return self._enclosed(a, b)
            if k % 100 == 0:
                found = self._enclosed(a, b)
                if is_sharp(found):
                    break
        return found

    def _enclosed(self, a, b):
        """The infimum between two numbers: above the tangent at the second."""
        above = self.value(b)
        below = above + self.slope(b) * (a - b)
        return below.lower().union(above.upper()) if below.is_finite() else None

    def _at_infinity(self):
        """The limit where F falls for ever; None where that is not clear."""
        is_free = all(block.is_zero_on_diagonal for block in self.blocks)
        falls = self.R.is_zero() and is_free and all(q.is_zero() for _, q, _ in self.pairs)
        return self.constant if falls else None


def optimum_of_one_pair(judge):
    """By the least <R, A> under which the pair's distance is d, minimized in d."""
    bits = PRECISIONS[0]
    with ctx.workprec(bits):
        V, (c,), (q,), R, eta = judge._at(bits)
        if q == 1:
            return c * (-eta).exp().log1p()
        length, weight = total(x * x for x in V.entries()), R[0, 0]
        if length == 0 or weight == 0:
            return c * ball_softplus(eta) if length == 0 else arb(0)
        share = weight / length / c
        if share >= 1 / (1 + (-eta).exp()):
            return c * ball_softplus(eta)
        return c * (-(-share).log1p() + share * (eta + (-share).log1p() - share.log()))


def check_proof(objective, A=None, scale=1.0, **settings):
    """A proof at A, or at the solver's answer, true there and at random points; f is sharp."""
    answer = solve_quietly(objective, tol=1e-9, max_iter=500).metric if A is None else A
    proof = prove(objective, answer, **settings)
    judge, m = Judge(objective), objective.pairs.n_features
    own = judge.value(proof.factor, BITS)
    assert own <= proof.primal_value < np.inf
    sharpness = 2e-16 + 2.0 ** (8 - proof.precision)
    assert own >= proof.primal_value - sharpness * max(1.0, abs(proof.primal_value))
    for L in [proof.factor, *random_factors(np.random.default_rng(7), m, scale)]:
        assert judge.value(L, BITS) >= proof.dual_value
    assert proof.dual_value <= proof.primal_value
    return proof
