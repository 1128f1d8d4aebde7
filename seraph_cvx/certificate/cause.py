"""Why a gap cannot be proved to be smaller: what in the data makes the sums cancel."""

from __future__ import annotations

import math

import numpy as np

from ..model.m_step_objective import MStepObjective
from ..numerics.checks import FloatArray
from ..pairs.data_warnings import SURE_SPREADS, describe_far_values
from ..proof.rounding import UNIT

LOST = math.sqrt(UNIT)
"""What is below this share of the largest has less than half of its digits left beside it."""

MANY = 100.0
"""A feature that varies so many times as much as another outweighs it in squared distances by four
digits: features are of different scales from there on."""


def why_inaccurate(objective: MStepObjective) -> str:
    """Name the value, the confidence or the features that rounding errors come from, and a cure."""
    pairs = objective.pairs
    if sentence := describe_far_values(pairs.points, n_spreads=SURE_SPREADS):
        return sentence
    c = pairs.confidence
    if c is not None and float(np.min(c)) < LOST * float(np.max(c)):
        most, least = int(np.argmax(c)), int(np.argmin(c))
        return (
            f"The confidences range from {c[least]:.2g} (pair {_pair(objective, least)}) to "
            f"{c[most]:.2g} (pair {_pair(objective, most)}): beside the largest, the smallest is "
            "lost in rounding. Leave out pairs that hardly count."
        )
    X = pairs.points[:, np.ptp(pairs.points, axis=0) > 0.0]
    features = np.flatnonzero(np.ptp(pairs.points, axis=0) > 0.0)
    if 1 < len(features) < len(X):
        standard = (X - np.mean(X, axis=0)) / np.std(X, axis=0)
        eigenvalues, vectors = np.linalg.eigh(standard.T @ standard / len(X))
        if eigenvalues[0] < LOST:
            first, second = features[np.argsort(-np.abs(vectors[:, 0]))[:2]]
            return (
                f"Features {min(first, second)} and {max(first, second)} are nearly collinear, "
                "alone or together with others: leave one of them out, or raise trace_weight."
            )
    if scales_differ(pairs.points):
        return (
            "The scales of the features differ widely: standardize them, raise trace_weight, or "
            "allow a larger gap."
        )
    return (
        "The trace weight is tiny beside the spread of the features: raise trace_weight, or allow "
        "a larger gap."
    )


def scales_differ(points: FloatArray) -> bool:
    """Whether some features vary so much more than others that standardizing them may help."""
    spread = np.ptp(points, axis=0)
    varying = spread[spread > 0.0]
    return bool(len(varying) and np.max(varying) > MANY * np.min(varying))


def _pair(objective: MStepObjective, k: int) -> tuple[int, int]:
    """The two points of a labeled pair."""
    i, j = objective.pairs.labeled[k].tolist()
    return i, j
