"""What a penalty may have besides: a proximal step, a gradient, a bound on its value."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ...numerics.checks import FloatArray
from ...numerics.psd_cone import symmetrize
from ..penalty import Penalty
from .matrices import is_psd
from .report import PenaltyCheck, counterexample, nowhere
from .trial import Trial, couples, off_fenchel


def check_value_above(trial: Trial) -> PenaltyCheck:
    """Test that the upper bound on the value is one."""
    claim = "value_above: not below P"
    if type(trial.block).value_above is Penalty.value_above:
        return PenaltyCheck(claim, "not defined", "value is trusted to twelve digits")
    for A in trial.drawn.anywhere:
        if is_psd(A):
            w, vectors = np.linalg.eigh(A)
            L = trial.block.feasible_factor(vectors * np.sqrt(np.maximum(w, 0.0)))
            above, value = trial.block.value_above(L), trial.block.value(symmetrize(L @ L.T))
            if not trial.is_above(above, value):
                return counterexample(claim, f"value_above(L) = {above:.9g} < {value:.9g}", L=L)
    return PenaltyCheck(claim, "passed")


def check_prox(trial: Trial) -> PenaltyCheck:
    """Test the proximal step by its optimality condition."""
    claim = "prox: minimizes P(A) + ||A - Y||^2 / (2 step)"
    if not trial.block.has_prox:
        return PenaltyCheck(claim, "not defined")
    if not trial.drawn.inside:
        return nowhere(claim)
    center = np.mean(trial.drawn.inside[:10], axis=0)
    for Y in trial.drawn.anywhere:
        for step in (0.2, 1.0, 5.0):
            A = np.asarray(trial.block.prox(Y, step))
            Z = (Y - A) / step
            if not math.isfinite(trial.block.value(A)):  # perhaps by rounding alone
                A = A + 1e-9 * (center - A)
            if not math.isfinite(trial.block.value(A)):
                return counterexample(claim, f"step = {step}: P(A) = inf at A = prox(Y)", Y=Y, A=A)
            found = off_fenchel(trial, A, Z, (float(np.linalg.norm(Y)) + trial.reach) / step)
            if found:
                words = f"step = {step}: Z = (Y - A) / step is no subgradient at A = prox(Y), for"
                return counterexample(claim, f"{words}\n{found}", Y=Y, A=A)
    return PenaltyCheck(claim, "passed")


def check_smooth(trial: Trial) -> PenaltyCheck:
    """Test the gradient by differences, and look for jumps of it on segments."""
    claim = "is_smooth: the subgradient is the gradient, without jumps"
    if not trial.block.is_smooth:
        return PenaltyCheck(claim, "not defined")
    value, gradient, tried = trial.block.value, trial.block.subgradient, 0
    for A, a in zip(trial.drawn.inside, trial.values, strict=True):
        D = symmetrize(trial.rng.normal(size=A.shape))
        slope = float(np.sum(gradient(A) * D))
        h = 1e-5 * max(1e-3, float(np.linalg.norm(A)))
        for step in (h, 1e-2 * h, 1e-4 * h):  # shorter where P bends much
            up, down = float(value(A + step * D)), float(value(A - step * D))
            quotient, bend = (up - down) / (2.0 * step), abs(up - 2.0 * a + down) / step
            allowed = 1e-3 * abs(slope) + 1e-12 * (abs(a) + trial.typical) / step
            if math.isfinite(bend) and bend <= max(1e-2 * abs(slope), allowed):
                break
        else:
            continue
        tried += 1
        if abs(slope - quotient) > allowed:
            words = f"<Z, D> = {slope:.9g}, differences say {quotient:.9g}"
            return counterexample(claim, words, A=A, Z=gradient(A), D=D)
    if not tried:
        return nowhere(claim)
    for A, _, B, _ in couples(trial):
        jump = _slope_jump(gradient, A, B)
        if jump is not None:
            return counterexample(
                claim, f"<Z, B - A> jumps from {jump[0]:.9g} to {jump[1]:.9g}", A=A, B=B
            )
    return PenaltyCheck(claim, "passed")


def _slope_jump(
    gradient: Callable[[FloatArray], FloatArray], A: FloatArray, B: FloatArray
) -> tuple[float, float] | None:
    """The slopes on both sides of a jump on the segment from A to B, found by bisection."""

    def slope(t: float) -> float:
        return float(np.sum(gradient((1.0 - t) * A + t * B) * (B - A)))

    low, high = 0.05, 0.95  # at the edge of the domain a slope may grow without bound
    ends = slope(low), slope(high)
    change = abs(ends[1] - ends[0])
    for _ in range(36):
        middle = (low + high) / 2.0
        there = slope(middle)
        if abs(there - ends[0]) > abs(ends[1] - there):
            high, ends = middle, (ends[0], there)
        else:
            low, ends = middle, (there, ends[1])
    is_jump = abs(ends[1] - ends[0]) > 1e-3 * change and change > 1e-9 * abs(ends[0])
    return ends if is_jump else None
