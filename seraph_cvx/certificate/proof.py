"""A certificate that is a proof: an interval around the optimum of the M-step, in ball arithmetic.

With c_k the weight of pair k, q_k its (soft) label +1, s_k = v_k'Av_k - eta, and for any r in
[0, 1]^N,

    f(A) = sum_k c_k [log(1 + e^{-s_k}) + q_k s_k] + <R, A>
        >= sum_k c_k [H(r_k) + eta*(r_k - q_k)] + <S(r), A>,
    S(r) = R + sum_k c_k (q_k - r_k) v_k v_k',

because log(1 + e^{-s}) is the maximum of H(r) - r*s over r. So if S(r) is PSD, the first sum of the
second line, D(r), is below f at every PSD A; and f at one matrix L L' is above the optimum.
:func:`prove` encloses both, and proves that S(r) is PSD by a Cholesky factorization whose pivots
are balls. It shares no sums with `certify`: each r_k is the real number that its formula names,
enclosed in a ball, not a rounded one.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from threading import Lock
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from ..engine.distances import Factor
from ..model.m_step_objective import MStepObjective
from ..numerics.ball_arithmetic import (
    ONE,
    ZERO,
    arb,
    arb_mat,
    ball_matrix,
    ctx,
    entropy_from_below,
    exact_coordinates,
    is_proven_psd,
    pair_matrix,
    posterior,
    rounded_down,
    rounded_up,
    surprise,
)
from ..numerics.checks import FloatArray, IntArray
from ..numerics.psd_cone import scaled_factor
from ..penalties.penalty import Multiplier
from .certificate import Certificate, LowerBound
from .penalized import best_multipliers, make_feasible

# The multipliers of penalties are raised by this many times a bound on their rounding errors. That
# bound is far above the errors, and balls show what suffices.
MARGINS = (1e-3, 2.0)

# A soft label up to this does not make its pair one of those that span the range of M.
FAINT = 1e-20

# Between which values of log(step / (1 - step)) a step is sought, and how closely.
LEAST, MOST, RESOLUTION = -700.0, 36.0, 0.01

# Where less of r is kept on the way to p = 1, r = 0 on the pairs off a span is tried too.
SHORT_STEP = 1.0 - 1e-6

# FLINT's precision is one number for the whole process.
_ONE_AT_A_TIME = Lock()


def _renew_lock() -> None:
    """Replace the lock in a forked child: the thread that held it was not forked."""
    global _ONE_AT_A_TIME
    _ONE_AT_A_TIME = Lock()


if hasattr(os, "register_at_fork"):  # not on Windows, where nothing forks
    os.register_at_fork(after_in_child=_renew_lock)


@dataclass(frozen=True)
class Proof(Certificate):
    """A proven enclosure of the optimum, [dual_value, primal_value], rounding errors included.

    Attributes
    ----------
    primal_value, dual_value, dual_point, factor : float, float, str, (m, m) array
        See `Certificate`; the anchors "p = 1" and "p = b/c" may be dual points themselves.
    precision : int
        Bits of the midpoints.
    """

    precision: int = 128

    @property
    def enclosure(self) -> tuple[float, float]:
        """The interval that holds the optimum: (lower, upper)."""
        return self.dual_value, self.primal_value

    def _repr_html_(self) -> str:
        from ..display.cards import proof_card

        return proof_card(self)


def prove(
    objective: MStepObjective, A: ArrayLike, *, precision: int = 128, enough: float = 0.0
) -> Proof:
    """Prove the duality gap of the M-step (11): D(r) <= inf f <= f(L L'), S(r) PSD.

    All numbers of the objective are taken as the doubles they are; the soft labels of a previous
    metric are enclosed, not rounded. The primal value is that of the PSD part of A, so a wrong A
    costs sharpness, never truth. Where M is singular, r is zero on the pairs that leave its range,
    which is found in rational arithmetic; R then only has to be PSD.
    """
    if objective.pairs.drawn is not None:
        raise ValueError(
            "A proof has to count every pair, but these were drawn to stand for others: prove the "
            "M-step of pairs.whole instead."
        )
    if precision < 53:
        raise ValueError(f"precision={precision} is out of range: give at least 53 bits.")
    matrix = objective.check(A)
    if not np.all(np.isfinite(matrix)):
        raise ValueError("A holds NaN or infinity.")
    choices: list[list[Multiplier]] = [[]]
    with np.errstate(all="ignore"):
        L = make_feasible(objective, scaled_factor(matrix))
        if objective.penalties:
            choices = list(islice(best_multipliers(objective, L, MARGINS), len(MARGINS)))
    with _ONE_AT_A_TIME, ctx.workprec(precision):
        proofs = (_prove(BallProgram(objective, L, Z), L, precision, enough) for Z in choices)
        return max(proofs, key=lambda proof: proof.dual_value)


def _prove(program: BallProgram, L: FloatArray, precision: int, enough: float) -> Proof:
    primal_value = rounded_up(program.primal_value())
    if not math.isfinite(primal_value):
        raise ArithmeticError(
            f"f(A) cannot be enclosed between two doubles with {precision} bits: "
            "raise `precision`, or pass a smaller A."
        )
    best = Proof(primal_value, -math.inf, "", L, precision)
    for ball, dual_point in program.lower_bounds():
        best = best.with_bound_of(LowerBound(rounded_down(ball), dual_point))
        if best.relative_gap <= enough:
            break
    if not math.isfinite(best.dual_value):
        raise ArithmeticError(
            "No lower bound can be proven: R = trace_weight * I + manifold_term is not PSD as the "
            f"doubles it is given in, or not provably so with {precision} bits. "
            "Raise `trace_weight`, or `precision`."
        )
    return best


class _BallPair(NamedTuple):
    """A pair in balls: c_k, q_k(+1), q_k(-1) and the score s_k."""

    weight: arb
    similar: arb
    dissimilar: arb
    score: arb


class BallProgram:
    """The M-step and its dual at L L' in balls, at the current precision; L's doubles are exact.

    `multipliers` are the matrices Z of the penalties, one for each.
    """

    def __init__(
        self, objective: MStepObjective, L: FloatArray, multipliers: Sequence[Multiplier] = ()
    ) -> None:
        given, mu = objective.pairs, objective.mu
        self.objective = objective
        self.index = np.vstack([given.labeled, given.unlabeled]) if mu > 0.0 else given.labeled
        X = ball_matrix(given.points)
        X = X - arb_mat(given.n_points, 1, [1] * given.n_points) * ball_matrix(given.points[:1])
        weights = [arb(c) for c in given.labeled_weights.tolist()]
        labels = [(ONE, ZERO)] * len(given.similar) + [(ZERO, ONE)] * len(given.dissimilar)
        if mu > 0.0:
            weights += [arb(mu)] * given.n_unlabeled
            labels += _soft_labels(objective, X)
        self.points, self.factor = X, ball_matrix(L)
        images = X * self.factor
        distances = _distances(images * images.transpose(), self.index)
        self.pairs = [
            _BallPair(c, *q, d - objective.threshold)
            for c, q, d in zip(weights, labels, distances, strict=True)
        ]
        self.posteriors = [posterior(pair.score) for pair in self.pairs]
        self.label_weights = [pair.weight * pair.similar for pair in self.pairs]
        self.posterior_weights = [
            pair.weight * r for pair, (r, _) in zip(self.pairs, self.posteriors, strict=True)
        ]
        self.regularizer = ball_matrix(objective.trace_weight * np.eye(given.n_features))
        self.regularizer_is_psd = True
        if objective.manifold_term is not None:
            self.regularizer = self.regularizer + ball_matrix(objective.manifold_term)
            self.regularizer_is_psd = is_proven_psd(self.regularizer)
        self._enclose_penalties(L, multipliers)

    def _enclose_penalties(self, L: FloatArray, multipliers: Sequence[Multiplier]) -> None:
        """Enclose sum_j P_j(L L'), Z = sum_j Z_j, and sum_j P_j* at Z_j and at 0."""
        m = len(L)
        self.penalty, self.conjugate, self.conjugate_at_zero = ZERO, ZERO, ZERO
        self.Z = arb_mat(m, m)
        for block, multiplier in zip(self.objective.penalties, multipliers, strict=True):
            self.penalty += block.ball_value(self.factor, L)
            matrix, conjugate = block.ball_terms(multiplier)
            self.Z, self.conjugate = self.Z + matrix, self.conjugate + conjugate
            zero = block.multiplier(np.zeros((m, m)))
            self.conjugate_at_zero += arb("inf") if zero is None else block.ball_terms(zero)[1]

    def primal_value(self) -> arb:
        """f(L L') = sum_k c_k [log(1 + e^{-s_k}) + q_k s_k] + <R, L L'>, penalties added."""
        linear = (self.factor.transpose() * self.regularizer * self.factor).trace()
        losses = (c * surprise(s, q, other) for c, q, other, s in self.pairs)
        return sum(losses, linear + self.penalty)

    def lower_bounds(self) -> Iterator[tuple[arb, str]]:
        """Lower bounds on the dual value D(r) at feasible points r, with their names."""
        N, R = pair_matrix(self.points, self.index, self.label_weights), self.regularizer
        P = pair_matrix(self.points, self.index, self.posterior_weights) - self.Z
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
        spanning = [k for k, pair in enumerate(self.pairs) if pair.similar.mid() > FAINT]
        Z, group = exact_coordinates(self.objective.pairs.points, self.index[spanning])
        live = group[self.index[:, 0]] == group[self.index[:, 1]]
        is_regularized = not all(entry.is_zero() for entry in self.regularizer.entries())
        if np.all(live) and Z.shape[1] == self.points.ncols() and not is_regularized:
            return
        kept = np.flatnonzero(live).tolist()
        N, P = (
            pair_matrix(ball_matrix(Z), self.index[kept], [weights[k] for k in kept])
            for weights in (self.label_weights, self.posterior_weights)
        )
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

    def _dual_value(
        self, step: float, to_labels: bool, live: NDArray[np.bool_] | None = None
    ) -> arb:
        """D(r) = sum_k c_k [H(r_k) + eta*(r_k - q_k)], r = step*sigma(-s) + (1 - step)*anchor.

        The anchor is r = q, which is p = b/c, or r = 0, which is p = 1; pairs that are not `live`
        are at the latter. The conjugates at step * Z, which are convex, are bounded by their chord.
        """
        eta = arb(self.objective.threshold)
        total = -(arb(step) * self.conjugate + (1 - arb(step)) * self.conjugate_at_zero)
        for k, pair in enumerate(self.pairs):
            share = arb(step if live is None or live[k] else 0.0)
            r, complement = self.posteriors[k]
            anchor = (pair.similar, pair.dissimilar) if to_labels else (ZERO, ONE)
            r = share * r + (1 - share) * anchor[0]
            complement = share * complement + (1 - share) * anchor[1]
            total += pair.weight * (entropy_from_below(r, complement) + eta * (r - pair.similar))
        return total


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
    if isinstance(objective.previous_metric, Factor):
        images = X * ball_matrix(objective.previous_metric.L)
        gram = images * images.transpose()
    else:
        gram = X * ball_matrix(objective.previous_metric) * X.transpose()
    sharpness = arb(1.0 + objective.mu if objective.sharpness is None else objective.sharpness)
    threshold = arb(objective.threshold)
    return [posterior(sharpness * (d - threshold)) for d in _distances(gram, pairs)]
