"""The judge of certificates: F and its dual by the checker of files, in balls.

The checker shares no code with what makes certificates. Here it is given an M-step as that was
given, copied at that time: penalties by their numbers, the previous metric by (10). Its formulas
are in `seraph_cvx/proof/m_step_checker.py`. A factor L may be finer than doubles: what counts is
that LL' is exactly PSD, and proven feasible.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from flint import arb, ctx
from high_precision import EXTENDED
from scipy.special import expit

from seraph_cvx import MStepObjective
from seraph_cvx.proof.m_step_checker import MStep, _bounds

PRECISIONS = (400, 1200, 4000)
"""Bits of the balls, more where the fewer do not decide."""

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


def ball(x):
    """A double as a ball, infinite ones too."""
    return arb(x) if np.isfinite(x) else arb(str(x))


def hexed(values):
    """Doubles as a file has them, in lists of lists."""
    if isinstance(values, str | None):
        return values
    return list(map(hexed, values)) if np.ndim(values) else (float(values) + 0.0).hex()


def fractions(matrix):
    """The very numbers of a matrix in extended precision, as a file has fractions."""
    mantissas, exponents = np.frexp(np.atleast_2d(np.asarray(matrix, dtype=EXTENDED)))
    rows = zip(np.ldexp(mantissas, 64).tolist(), (exponents - 64).tolist(), strict=True)
    return [
        [f"{int(p) << max(k, 0):x}/{1 << max(-k, 0):x}" for p, k in zip(*row, strict=True)]
        for row in rows
    ]


def symmetric(values):
    """A as it is where it is symmetric; else (A + A')/2, in doubles."""
    matrix = np.array(values, dtype=np.float64)
    return matrix if np.array_equal(matrix, matrix.T) else matrix / 2.0 + matrix.T / 2.0


def block_of(penalty, m):
    """One of the package's penalties by its definition, with the numbers it has now."""
    weight = float(penalty.weight)
    match type(penalty).__name__:
        case "Ridge":
            prior = np.zeros((m, m)) if penalty.prior is None else symmetric(penalty.prior)
            return {"kind": "quadratic", "weight": weight, "prior": prior}
        case "LogDet":  # the inverse of the prior is the definition: its doubles count as exact
            inverse = np.eye(m) if penalty._inverse is None else np.array(penalty._inverse)
            return {"kind": "log_det", "weight": weight, "inverse": inverse}
        case "TraceBound":
            return {"kind": "trace_bound", "bound": weight}
    return {"kind": "off_diagonal", "limit": {"Diagonal": None, "Sparse": weight}[penalty.name]}


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
        rows = np.array(pairs.unlabeled)
        self.unlabeled = rows if self.mu > 0.0 else rows[:0]
        self.rows = np.vstack([self.similar, self.dissimilar, self.unlabeled])
        self.threshold, self.trace_weight = float(given.threshold), float(given.trace_weight)
        self.blocks = [block_of(block, self.n_features) for block in given.penalties]
        metric, term = given.previous_metric, given.manifold_term
        self.terms = [] if term is None else [symmetric(term)]  # of R
        self.given = {
            # differences from the first point, as sums: less cancels
            "points": [
                [hexed([x, -first]) for x, first in zip(row, self.points[0], strict=True)]
                for row in self.points
            ],
            "similar": self.similar.tolist(),
            "dissimilar": self.dissimilar.tolist(),
            "confidence": hexed(self.confidence),
            "unlabeled_weight": hexed(self.mu),
            "threshold": hexed(self.threshold),
            "sharpness": hexed(1.0 + self.mu if given.sharpness is None else given.sharpness),
            "soft_labels": hexed(given.soft_labels),
            "previous_factor": None,
            "previous_metric": None if metric is None else hexed(symmetric(metric)),
            "trace_weight": hexed(self.trace_weight),
            "penalties": [
                {key: hexed(value) for key, value in block.items()} for block in self.blocks
            ],
        }
        self._m_steps = {}

    def m_step(self, bits=PRECISIONS[0]):
        """The M-step as the checker reads it, in balls of this precision."""
        if bits not in self._m_steps:
            term = hexed(self.terms[0]) if self.terms else None
            with ctx.workprec(bits):
                self._m_steps[bits] = MStep(self.given | {"manifold_term": term})
        return self._m_steps[bits]

    def weights_and_labels(self):
        """The weight c and the label q of each of the rows, as balls."""
        with ctx.workprec(PRECISIONS[0]):
            known = {(i, j): both for i, row in self.m_step().pairs() for j, *both in row}
        return [known[tuple(row)] for row in self.rows.tolist()]

    def value(self, L, bits=PRECISIONS[0]):
        """F(LL') as a ball; infinite where LL' is not proven feasible."""
        with ctx.workprec(bits):
            return _bounds(self.m_step(bits), {"factor": fractions(L)}, None, str)[1]

    def compare(self, L, bound):
        """The sign of F(LL') - bound; 0 where it is zero or balls do not tell."""
        for bits in PRECISIONS:
            value = self.value(L, bits)
            if value < ball(bound):
                return -1
            if value > ball(bound) and (value.is_finite() or bits == PRECISIONS[-1]):
                return 1
        return 0

    def lower_bound(self, L, bits=PRECISIONS[0]):
        """The best D(r, 0) on the way from r = sigma(-s(L)) to r = 0 or r = q; -inf if none."""
        zero = hexed(np.zeros((self.n_features,) * 2))
        kinds = [block["kind"] for block in self.blocks]
        dual = {
            "factor": fractions(L),
            "groups": None,
            "multipliers": [zero[0][:1] if kind == "trace_bound" else zero for kind in kinds],
        }
        found = []
        for anchor in ("one", "labels"):

            def at(odds, anchor=anchor):
                given = dual | {"anchor": anchor, "step": hexed(expit(odds))}
                with ctx.workprec(bits):
                    return _bounds(self.m_step(bits), None, given, str)[0]

            low, high = -700.0, 40.0  # at 40 the share is 1
            value = at(high)
            while not value.is_finite() and high - low > 0.01:
                middle = (low + high) / 2.0
                low, high = (middle, high) if at(middle).is_finite() else (low, middle)
            found.append(value if value.is_finite() else at(low))
        return max(found, key=lambda x: x.mid())


def exact_value(objective, L):
    """F(LL') as a double."""
    return float(Judge(objective).value(L))
