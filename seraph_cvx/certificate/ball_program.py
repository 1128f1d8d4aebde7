"""The M-step (11) at one point in ball arithmetic: its value, and lower bounds on its optimum.

The dual points tried are those of the certificate: r = sigma(-s), moved toward an anchor until the
matrix S(r) of the dual is proven PSD. Each r_k is the real number that its formula names, enclosed
in a ball, not a rounded one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from ..model.m_step_objective import MStepObjective
from ..numerics.ball_arithmetic import (
    ONE,
    ZERO,
    arb,
    arb_mat,
    ball_matrix,
    entropy_from_below,
    exact_coordinates,
    is_proven_psd,
    pair_matrix,
    posterior,
    surprise,
)
from ..numerics.checks import FloatArray, IntArray
from ..penalties.penalty import Multiplier

FAINT = 1e-20
"""A soft label up to this does not make its pair one of those that span the range of M."""

LEAST, MOST, RESOLUTION = -700.0, 36.0, 0.01
"""Between which values of log(step / (1 - step)) a step is sought, and how closely."""

SHORT_STEP = 1.0 - 1e-6
"""Where less of r is kept on the way to p = 1, r = 0 on the pairs off a span is tried too."""

Balls = Sequence[arb]


@dataclass(frozen=True, eq=False)
class BallPenalties:
    """The penalties at L L' and at their multipliers, as balls.

    Attributes
    ----------
    value : ball
        sum_j P_j(L L').
    matrix : ball matrix
        Z = sum_j Z_j.
    conjugate, conjugate_at_zero : balls
        sum_j P_j*(Z_j) and sum_j P_j*(0).
    """

    value: arb
    matrix: arb_mat
    conjugate: arb
    conjugate_at_zero: arb

    @classmethod
    def of(
        cls,
        objective: MStepObjective,
        L: FloatArray,
        factor: arb_mat,
        multipliers: Sequence[Multiplier],
    ) -> BallPenalties:
        """Enclose what the penalties bring; zero where there is none."""
        m = objective.pairs.n_features
        value, conjugate, at_zero, Z = ZERO, ZERO, ZERO, arb_mat(m, m)
        for block, found in zip(objective.penalties, multipliers, strict=True):
            value += block.ball_value(factor, L)
            matrix, bound = block.ball_terms(found)
            Z, conjugate = Z + matrix, conjugate + bound
            nothing = block.multiplier(np.zeros((m, m)))
            at_zero += arb("inf") if nothing is None else block.ball_terms(nothing)[1]
        return cls(value, Z, conjugate, at_zero)

    def conjugate_at(self, step: float) -> arb:
        """An upper bound on the conjugates at step * Z: they are convex."""
        return arb(step) * self.conjugate + (1 - arb(step)) * self.conjugate_at_zero


@dataclass(frozen=True, eq=False)
class BallProgram:
    """The M-step and its dual at L L', with c_k, q_k(+1), q_k(-1) and s_k(L L') as balls.

    Attributes
    ----------
    pairs : (k, 2) integer array
        The labeled pairs, then, with mu > 0, the unlabeled ones.
    weight, similar, dissimilar, score : k balls each
        c_k, q_k(+1), q_k(-1), s_k. The label of a similar pair is q(+1) = 1.
    points, factor, regularizer : ball matrices
        x_i - x_1 for all i, L, and R.
    regularizer_is_psd : bool
        Whether that is proven.
    penalties : BallPenalties
        What the penalties bring, if there are any.

    Examples
    --------
    >>> from seraph_cvx import PairSet
    >>> pairs = PairSet.from_constraints([[0.0], [1.0]], [], [(0, 1)])
    >>> program = BallProgram.of(MStepObjective(pairs), L=np.eye(1))  # log(1 + e^0) + 1
    >>> program.primal_value().overlaps(1 + arb(2).log())
    True
    """

    objective: MStepObjective
    pairs: IntArray
    weight: Balls
    similar: Balls
    dissimilar: Balls
    score: Balls
    points: arb_mat
    factor: arb_mat
    regularizer: arb_mat
    regularizer_is_psd: bool
    penalties: BallPenalties

    @classmethod
    def of(
        cls, objective: MStepObjective, L: FloatArray, multipliers: Sequence[Multiplier] = ()
    ) -> BallProgram:
        """Set up the program at L L', whose doubles are exact, at the current precision.

        `multipliers` are the matrices Z of the penalties, one for each.
        """
        given, mu = objective.pairs, objective.mu
        pairs = np.vstack([given.labeled, given.unlabeled]) if mu > 0.0 else given.labeled
        X = ball_matrix(given.points)
        X = X - arb_mat(given.n_points, 1, [1] * given.n_points) * ball_matrix(given.points[:1])
        weight = [arb(c) for c in given.labeled_weights.tolist()]
        q = [(ONE, ZERO)] * len(given.similar) + [(ZERO, ONE)] * len(given.dissimilar)
        if mu > 0.0:
            weight += [arb(mu)] * given.n_unlabeled
            q += _soft_labels(objective, X)
        factor = ball_matrix(L)
        images = X * factor
        distances = _distances(images * images.transpose(), pairs)
        score = [d - objective.threshold for d in distances]
        R = ball_matrix(objective.trace_weight * np.eye(given.n_features))
        psd = objective.manifold_term is None
        if objective.manifold_term is not None:
            R = R + ball_matrix(objective.manifold_term)
            psd = is_proven_psd(R)
        similar, dissimilar = zip(*q, strict=True)
        return cls(
            objective=objective,
            pairs=pairs,
            weight=weight,
            similar=similar,
            dissimilar=dissimilar,
            score=score,
            points=X,
            factor=factor,
            regularizer=R,
            regularizer_is_psd=psd,
            penalties=BallPenalties.of(objective, L, factor, multipliers),
        )

    def primal_value(self) -> arb:
        """The objective at L L', as a ball.

        f(L L') = sum_k c_k [log(1 + e^{-s_k}) + q_k s_k] + <R, L L'>.
        """
        penalty = (self.factor.transpose() * self.regularizer * self.factor).trace()
        terms = zip(self.weight, self.score, self.similar, self.dissimilar, strict=True)
        penalty += self.penalties.value
        return sum((c * surprise(s, q, other) for c, s, q, other in terms), penalty)

    def lower_bounds(self) -> Iterator[tuple[arb, str]]:
        """Lower bounds on the dual value D(r) at feasible points r, with their names."""
        N, R = self._label_matrix, self.regularizer
        P = self._posterior_matrix - self.penalties.matrix
        to_one = self._largest_step(lambda step: R + N - P * step)
        if to_one is not None:
            yield self._dual_value(to_one, to_labels=False), _name(to_one, "p = 1")
        if to_one != 1.0:
            to_labels = self._largest_step(lambda step: R + (N - P) * step)
            if to_labels:
                yield self._dual_value(to_labels, to_labels=True), _name(to_labels, "p = b/c")
        if self.regularizer_is_psd:
            yield self._dual_value(0.0, to_labels=True), "p = b/c"
            if to_one is not None and to_one < SHORT_STEP and not self.objective.penalties:
                yield from self._pinned_bound()

    def _pinned_bound(self) -> Iterator[tuple[arb, str]]:
        """The bound with r_k = 0 on the pairs that leave the range of M, which are found exactly.

        R is left out of S(r).
        """
        spanning = [k for k, q in enumerate(self.similar) if q.mid() > FAINT]
        Z, group = exact_coordinates(self.objective.pairs.points, self.pairs[spanning])
        live = group[self.pairs[:, 0]] == group[self.pairs[:, 1]]
        if np.all(live) and Z.shape[1] == self.points.ncols() and not self._is_regularized:
            return
        kept = np.flatnonzero(live).tolist()
        points = ball_matrix(Z)
        N = pair_matrix(points, self.pairs[kept], [self._label_weights[k] for k in kept])
        P = pair_matrix(points, self.pairs[kept], [self._posterior_weights[k] for k in kept])
        step = self._largest_step(lambda step: N - P * step)
        if step:
            yield self._dual_value(step, to_labels=False, live=live), "toward p = 1"

    def _largest_step(self, matrix_at: Callable[[float], arb_mat]) -> float | None:
        """The largest step in [0, 1], nearly, whose matrix is proven PSD; None if none is.

        The steps that will do are an interval from 0, so they are bisected. At 0 the matrix is a
        sum of PSD ones, if R is PSD.
        """
        if is_proven_psd(matrix_at(1.0)):
            return 1.0
        low, high = LEAST, MOST
        while high - low > RESOLUTION:
            middle = (low + high) / 2.0
            proven = is_proven_psd(matrix_at(float(scipy.special.expit(middle))))
            low, high = (middle, high) if proven else (low, middle)
        if low > LEAST:
            return float(scipy.special.expit(low))
        return 0.0 if self.regularizer_is_psd or is_proven_psd(matrix_at(0.0)) else None

    def _dual_value(self, step: float, to_labels: bool, live: IntArray | None = None) -> arb:
        """The dual value at r, between the posterior and an anchor.

        D(r) = sum_k c_k [H(r_k) + eta*(r_k - q_k)], r = step*sigma(-s) + (1 - step)*anchor.

        The anchor is r = q, which is p = b/c, or r = 0, which is p = 1; pairs that are not `live`
        are at the latter.
        """
        eta, total = arb(self.objective.threshold), -self.penalties.conjugate_at(step)
        for k, (c, q, other) in enumerate(
            zip(self.weight, self.similar, self.dissimilar, strict=True)
        ):
            share = arb(step if live is None or live[k] else 0.0)
            rest = 1 - share
            similar, dissimilar = self._posteriors[k]
            anchor, beyond = (q, other) if to_labels else (ZERO, ONE)
            r = share * similar + rest * anchor
            complement = share * dissimilar + rest * beyond
            total += c * (entropy_from_below(r, complement) + eta * (r - q))
        return total

    @property
    def _is_regularized(self) -> bool:
        return not all(entry.is_zero() for entry in self.regularizer.entries())

    @cached_property
    def _posteriors(self) -> list[tuple[arb, arb]]:
        return [posterior(s) for s in self.score]

    @cached_property
    def _label_weights(self) -> list[arb]:
        """The weights of the labels: c_k q_k."""
        return [c * q for c, q in zip(self.weight, self.similar, strict=True)]

    @cached_property
    def _posterior_weights(self) -> list[arb]:
        """The weights of the posterior: c_k sigma(-s_k)."""
        return [c * r for c, (r, _) in zip(self.weight, self._posteriors, strict=True)]

    @cached_property
    def _label_matrix(self) -> arb_mat:
        return pair_matrix(self.points, self.pairs, self._label_weights)

    @cached_property
    def _posterior_matrix(self) -> arb_mat:
        return pair_matrix(self.points, self.pairs, self._posterior_weights)


def _name(step: float, anchor: str) -> str:
    if step == 1.0:
        return "gradient"
    return f"toward {anchor}" if step > 0.0 else anchor


def _distances(gram: arb_mat, pairs: IntArray) -> list[arb]:
    """The squared distances v_k' B v_k, given the matrix of all x_i' B x_j."""
    g = gram.table()
    return [g[i][i] + g[j][j] - g[i][j] - g[j][i] for i, j in pairs.tolist()]


def _soft_labels(objective: MStepObjective, X: arb_mat) -> list[tuple[arb, arb]]:
    """The soft labels (q(+1), q(-1)) of unlabeled pairs: 0, given, or (10) of `previous_metric`."""
    pairs = objective.pairs.unlabeled
    if objective.soft_labels is not None:
        given = [arb(q) for q in objective.soft_labels.tolist()]
        return [(q, 1 - q) for q in given]
    if objective.previous_metric is None:
        return [(ZERO, ONE)] * len(pairs)
    gram = X * ball_matrix(objective.previous_metric) * X.transpose()
    resolved = 1.0 + objective.mu if objective.sharpness is None else objective.sharpness
    sharpness, threshold = arb(resolved), arb(objective.threshold)
    return [posterior(sharpness * (d - threshold)) for d in _distances(gram, pairs)]
