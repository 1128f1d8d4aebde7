"""A start for a large M-step: the solution of a small one, on the pairs of a few points."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..model.m_step_objective import MStepObjective
from ..pairs.pair_set import PairSet

FEW = 400
"""Points of the small M-step; one of less than three times as many is not worth it."""

AT_ONCE = 15_000
"""Points up to which fused kernels of a GPU pass over all pairs in hardly more time than over few:
most of it goes to launching them."""


def subsampled_objective(objective: MStepObjective, n_points: int = FEW) -> MStepObjective | None:
    """The M-step on the unlabeled pairs of `n_points` points, each counted mu * #U / #U' times.

    All points of labeled pairs are kept, the others drawn at random, the same way every time.

    Returns
    -------
    MStepObjective or None
        None where it would not pay: few points (or not very many, on a GPU), too many labeled
        ones, no unlabeled pair, or soft labels given one by one.
    """
    pairs = objective.pairs
    involved = pairs.labels.members
    if (
        pairs.n_points < 3 * n_points
        or len(involved) > n_points // 2
        or objective.mu == 0.0
        or objective.soft_labels is not None
    ):
        return None
    if pairs.n_points <= AT_ONCE and objective.whitened_program.device_faces is not None:
        return None
    others = np.setdiff1d(np.arange(pairs.n_points), involved)
    drawn = np.random.default_rng(0).choice(others, n_points - len(involved), replace=False)
    kept = np.sort(np.concatenate([involved, drawn]))
    number = np.full(pairs.n_points, -1)
    number[kept] = np.arange(len(kept))
    few = PairSet(pairs.points[kept], pairs.labels.renumbered(number), pairs.device_array)
    weight = objective.mu * pairs.n_unlabeled / few.n_unlabeled
    return replace(objective, pairs=few, unlabeled_weight=weight)
