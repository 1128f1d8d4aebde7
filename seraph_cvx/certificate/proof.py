"""A certificate that is a proof: an interval around the optimum of the M-step, rounding included.

With c_k the weight of pair k, q_k its (soft) label +1, s_k = v_k'Av_k - eta, and for any r in
[0, 1]^N,

    f(A) = sum_k c_k [log(1 + e^{-s_k}) + q_k s_k] + <R, A>
        >= sum_k c_k [H(r_k) + eta*(r_k - q_k)] + <S(r), A>,
    S(r) = R + sum_k c_k (q_k - r_k) v_k v_k',

because log(1 + e^{-s}) is the maximum of H(r) - r*s over r. So if S(r) is PSD, the first sum of the
second line, D(r), is below f at every PSD A; and f at one matrix L L' is above the optimum.
:func:`prove` encloses both in ball arithmetic and proves that S(r) is PSD by a Cholesky
factorization whose pivots are balls.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from itertools import islice
from threading import Lock

import numpy as np
from numpy.typing import ArrayLike

from ..model.m_step_objective import MStepObjective
from ..numerics.ball_arithmetic import ctx, rounded_down, rounded_up
from ..numerics.checks import FloatArray
from ..numerics.psd_cone import scaled_factor
from ..penalties.penalty import Multiplier
from .ball_program import BallProgram
from .penalized import best_multipliers, make_feasible

MARGINS = (1e-3, 2.0)
"""The multipliers of penalties are raised by this many times a bound on their rounding errors.

Balls show what is enough; that bound is far above the errors.
"""

_ONE_AT_A_TIME = Lock()
"""FLINT's precision is one number for the whole process."""


def _start_anew() -> None:
    """Replace the lock in a forked child: the thread that held it was not forked."""
    global _ONE_AT_A_TIME
    _ONE_AT_A_TIME = Lock()


if hasattr(os, "register_at_fork"):  # not on Windows, where nothing forks
    os.register_at_fork(after_in_child=_start_anew)


@dataclass(frozen=True)
class Proof:
    """A proven enclosure of the optimum, [dual_value, primal_value], rounding errors included.

    Attributes
    ----------
    primal_value : float
        Not below f(L L').
    dual_value : float
        Not above D at a dual point that is proven to be feasible: no PSD matrix has a smaller f.
    dual_point : str
        Which one: "gradient" (r = sigma(-s), no move was needed), "toward p = 1",
        "toward p = b/c"; or "p = 1", "p = b/c", the anchors themselves.
    precision : int
        Bits of the midpoints.
    factor : (m, m) array
        L, taken as the doubles they are: L L' is PSD, and as near to A as rounding allows.
    """

    primal_value: float
    dual_value: float
    dual_point: str
    precision: int
    factor: FloatArray = field(repr=False, compare=False)

    @property
    def enclosure(self) -> tuple[float, float]:
        """The interval that holds the optimum: (lower, upper)."""
        return self.dual_value, self.primal_value

    @property
    def duality_gap(self) -> float:
        """The width of the enclosure: primal_value - dual_value, rounded up."""
        return math.nextafter(self.primal_value - self.dual_value, math.inf)

    @property
    def relative_gap(self) -> float:
        """The gap relative to the value: duality_gap / max(1, |primal_value|), rounded up."""
        return math.nextafter(self.duality_gap / max(1.0, abs(self.primal_value)), math.inf)

    def _repr_html_(self) -> str:
        from ..display.cards import proof_card

        return proof_card(self)


def prove(
    objective: MStepObjective, A: ArrayLike, *, precision: int = 128, enough: float = 0.0
) -> Proof:
    """Prove the duality gap of the M-step (11): D(r) <= inf f <= f(L L'), S(r) PSD.

    Parameters
    ----------
    objective : MStepObjective
        Any trace weight >= 0, attained or not. Taken as exact, as the doubles they are: the points,
        the confidences, `mu` (for "ratio" the double that it became), `trace_weight`, `threshold`,
        `sharpness`, `manifold_term`, and `soft_labels` or `previous_metric` as the objective keeps
        them; the soft labels of a previous metric are enclosed, not rounded.
    A : (m, m) array_like
        Any symmetric matrix; the primal value is that of its PSD part, so a wrong A costs
        sharpness, never truth.
    precision : int
        Bits of the midpoints, at least 53.
    enough : float
        Look no further for a better bound once the relative gap is so small.

    Returns
    -------
    Proof
        Always finite. Where no better bound can be proven it is D at an anchor, p = 1 or p = b/c.

    Notes
    -----
    The work is O(n^2 m) multiplications of balls and a few transcendental functions a pair: half a
    second for 4,950 pairs. Where M is singular, r is zero on the pairs that leave its range, which
    is found in rational arithmetic; R then only has to be PSD.

    Examples
    --------
    >>> import numpy as np
    >>> from seraph_cvx import MStepObjective, PairSet
    >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
    >>> proof = prove(MStepObjective(pairs), 0.9227 * np.eye(1))
    >>> proof.relative_gap < 1e-4
    True
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
    multipliers: list[list[Multiplier]] = [[]]
    with np.errstate(all="ignore"):
        L = make_feasible(objective, scaled_factor(matrix))
        if objective.penalties:
            multipliers = list(islice(best_multipliers(objective, L, MARGINS), len(MARGINS)))
    with _ONE_AT_A_TIME, ctx.workprec(precision):
        proofs = (
            _prove(BallProgram.of(objective, L, found), L, precision, enough)
            for found in multipliers
        )
        return max(proofs, key=lambda proof: proof.dual_value)


def _prove(program: BallProgram, L: FloatArray, precision: int, enough: float) -> Proof:
    primal_value = rounded_up(program.primal_value())
    if not math.isfinite(primal_value):
        raise ArithmeticError(
            f"f(A) cannot be enclosed between two doubles with {precision} bits: "
            "raise `precision`, or pass a smaller A."
        )
    best: Proof | None = None
    for bound, dual_point in program.lower_bounds():
        dual_value = rounded_down(bound)
        if best is None or dual_value > best.dual_value:
            best = Proof(primal_value, dual_value, dual_point, precision, L)
        if best.relative_gap <= enough:
            break
    if best is None or not math.isfinite(best.dual_value):
        raise ArithmeticError(
            "No lower bound can be proven: R = trace_weight * I + manifold_term is not PSD as the "
            f"doubles it is given in, or not provably so with {precision} bits. "
            "Raise `trace_weight`, or `precision`."
        )
    return best
