"""How long a fit will take, by a trial on a few of its points."""

from __future__ import annotations

import time

import numpy as np

from ..model.m_step_objective import MStepObjective
from ..pairs.pair_set import PairSet

SAMPLE = 1_000
"""Points whose pairs are summed over once to measure this machine's speed."""

SMALL = 300
"""Features whose matrix is decomposed once for the same purpose."""

SWEEPS, DECOMPOSITIONS = 45, 60
"""Sums over all pairs, and decompositions of a matrix of features, in a fit of average length."""

DRAWN = 3.0
"""A pair that was drawn takes so many times as long as one of all pairs."""

LONG = 30.0
"""Seconds; a fit that is expected to take longer is announced."""


def expected_seconds(pairs: PairSet, only_labeled: bool, unlabeled_pairs: int | None) -> float:
    """Estimate the seconds of a fit by one thread: they grow like n^2 and m^3."""
    m, k = min(pairs.n_features, pairs.n_points), min(pairs.n_features, pairs.n_points, SMALL)
    trial, clock = np.diag(np.arange(1.0, k + 1.0)), time.perf_counter()
    np.linalg.eigh(trial)
    seconds = DECOMPOSITIONS * (time.perf_counter() - clock) * (m / k) ** 3
    if only_labeled:
        return seconds
    X = pairs.points[:: -(-pairs.n_points // SAMPLE)]
    few = MStepObjective(PairSet.from_constraints(X, [(0, 1)], []), unlabeled_weight=1.0)
    A = np.eye(pairs.n_features)
    few.gradient(A)  # the first one also pays for what is computed once
    clock = time.perf_counter()
    few.gradient(A)
    sweep = (time.perf_counter() - clock) * (pairs.n_points / len(X)) ** 2
    if unlabeled_pairs is not None:
        sweep *= min(1.0, DRAWN * unlabeled_pairs / max(1, pairs.n_unlabeled))
    return seconds + SWEEPS * sweep


def duration(seconds: float) -> str:
    """Write a duration in seconds, minutes, hours or days."""
    for size, unit in ((86_400.0, "days"), (3_600.0, "hours"), (60.0, "minutes")):
        if seconds >= 2.0 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} seconds"


def forecast(pairs: PairSet, only_labeled: bool, unlabeled_pairs: int | None) -> str:
    """How long a fit will take, in words; empty where it is short, or not of this machine."""
    if pairs.device_array is not None:
        return ""
    seconds = expected_seconds(pairs, only_labeled, unlabeled_pairs)
    return duration(seconds) if seconds > LONG else ""
