"""The inequalities of a convex function: segments, subgradients, the conjugate."""

from __future__ import annotations

import math

import numpy as np

from .matrices import is_psd
from .report import PenaltyCheck, counterexample, nowhere
from .trial import Trial, couples, norms, off_fenchel


def check_value(trial: Trial) -> PenaltyCheck:
    """Test that the value is a number or infinity, and finite somewhere in the cone."""
    claim = "value: finite at some PSD matrices, never NaN or -inf"
    for A in trial.drawn.anywhere:
        value = trial.block.value(A)
        if math.isnan(value) or value == -math.inf:
            return counterexample(claim, f"value(A) = {value}", A=A)
    if sum(is_psd(A) for A in trial.drawn.inside) < 2:
        why = "fewer than two such matrices were found: give some by matrices=[...]"
        return PenaltyCheck(claim, "not checked", why)
    return PenaltyCheck(claim, "passed")


def check_convex(trial: Trial) -> PenaltyCheck:
    """Test convexity on segments between matrices of the domain."""
    claim = "convex: P(tA + (1-t)B) <= t P(A) + (1-t) P(B)"
    if len(trial.drawn.inside) < 2:
        return nowhere(claim)
    for A, a, B, b in couples(trial):
        for t in (0.5, float(trial.rng.uniform(0.01, 0.99))):
            middle = trial.block.value(t * A + (1.0 - t) * B)
            chord = t * a + (1.0 - t) * b
            if not trial.is_above(chord, middle, a, b):
                words = f"at t = {t:.6g}: P = {middle:.9g} > {chord:.9g}, with P(A) = {a:.9g}"
                return counterexample(claim, f"{words}, P(B) = {b:.9g}", A=A, B=B)
    return PenaltyCheck(claim, "passed")


def check_subgradient(trial: Trial) -> PenaltyCheck:
    """Test that the tangent at each matrix lies below P."""
    claim = "subgradient: P(B) >= P(A) + <Z, B - A>"
    if len(trial.drawn.inside) < 2:
        return nowhere(claim)
    for A, a, B, b in couples(trial):
        Z = np.asarray(trial.block.subgradient(A))
        if Z.shape != A.shape or not np.all(np.isfinite(Z)) or not np.allclose(Z, Z.T):
            return counterexample(claim, "Z is not a finite symmetric matrix", A=A, Z=Z)
        inner, size = float(np.sum(Z * (B - A))), float(np.linalg.norm(Z) * np.linalg.norm(B - A))
        if not trial.is_above(b, a + inner, a, size):
            words = f"P(B) = {b:.9g} < {a:.9g} + {inner:.9g}"
            return counterexample(claim, words, A=A, B=B, Z=Z)
    return PenaltyCheck(claim, "passed")


def check_fenchel(trial: Trial) -> PenaltyCheck:
    """Test Fenchel's inequality at many Z with a finite conjugate."""
    claim = "conjugate: P(A) + P*(Z) >= <Z, A>"
    if not trial.drawn.inside:
        return nowhere(claim)
    if not any(np.any(Z) for Z, _ in trial.multipliers):
        why = "no Z but zero was found with a finite conjugate: write `multiplier` or `prox`"
        return PenaltyCheck(claim, "not checked", why)
    for Z, conjugate in trial.multipliers:
        for A, value in zip(trial.drawn.inside, trial.values, strict=True):
            inner = float(np.sum(Z * A))
            if not trial.is_above(value + conjugate, inner, value, conjugate, norms(Z, A)):
                words = f"P(A) + P*(Z) = {value:.9g} + {conjugate:.9g} < {inner:.9g}"
                return counterexample(claim, words, A=A, Z=Z)
    return PenaltyCheck(claim, "passed")


def check_fenchel_equality(trial: Trial) -> PenaltyCheck:
    """Test that Fenchel's inequality is an equality at a subgradient."""
    claim = "conjugate: equality at a subgradient"
    if not trial.drawn.inside:
        return nowhere(claim)
    for A in trial.drawn.inside:
        found = off_fenchel(trial, A, np.asarray(trial.block.subgradient(A)))
        if found:
            return counterexample(claim, found, A=A, Z=trial.block.subgradient(A))
    return PenaltyCheck(claim, "passed")
