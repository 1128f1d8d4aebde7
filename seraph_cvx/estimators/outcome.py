"""Fits that ended as asked for, but whose metric is of no use: why, and the cure."""

from __future__ import annotations

import numpy as np

from ..model.m_step_objective import MStepObjective
from ..numerics.checks import FloatArray
from ..pairs.labeled_pairs import ClassLabels


def describe_outcome(first: MStepObjective, metric: FloatArray) -> str:
    """Describe what is doubtful about a learned metric, and the cure; empty if nothing is.

    `first` is the M-step that the fit began with.

    Examples
    --------
    >>> from seraph_cvx import PairSet
    >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0]], [0, 0, 1])
    >>> describe_outcome(MStepObjective(pairs, trace_weight=9.0), np.zeros((1, 1)))
    'The learned metric is zero, and so is all of transform(X): the trace weight is too large ...'
    """
    pairs = first.pairs
    has_classes = isinstance(pairs.labels, ClassLabels)
    nothing_apart = (
        f"all {'known points are of one class' if has_classes else 'labeled pairs are similar'}, "
        "so nothing says which points are far apart. Label points of another class, or give "
        "dissimilar pairs."
    )
    are_similar = pairs.n_similar == pairs.n_labeled
    if np.any(metric):
        return f"Of doubtful use: {nothing_apart}" if has_classes and are_similar else ""
    if not np.any(np.ptp(pairs.points, axis=0)):
        cause = "all points are equal. Give points that differ."
    elif are_similar:
        cause = nothing_apart
    else:
        limit = first.critical_trace_weight
        is_plain = first.manifold_term is None and not first.penalties
        bound = f" (it has to be below {limit:.3g})" if is_plain and limit else ""
        cause = (
            f"the trace weight{'' if is_plain else ' or another penalty'} is too large for these "
            f'features{bound}. Lower it, or use trace_weight="auto".'
        )
    return f"The learned metric is zero, and so is all of transform(X): {cause}"
