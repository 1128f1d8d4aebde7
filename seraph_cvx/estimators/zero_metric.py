"""Why a learned metric is zero, so that all points are at distance 0, and the cure."""

from __future__ import annotations

import numpy as np

from ..model.m_step_objective import MStepObjective
from ..pairs.labeled_pairs import ClassLabels


def explain_zero_metric(first: MStepObjective, has_manifold: bool = False) -> str:
    """Explain why the fit that began with this M-step learned the metric zero.

    `has_manifold`: whether a laplacian_weight was given.

    Examples
    --------
    >>> from seraph_cvx import PairSet
    >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0]], [0, 0, 1])
    >>> explain_zero_metric(MStepObjective(pairs, trace_weight=9.0))
    'The learned metric is zero, and so is all of transform(X): the trace weight is too large ...'
    """
    pairs = first.pairs
    if not np.any(np.ptp(pairs.points, axis=0)):
        cause = "all points are equal. Give points that differ."
    elif pairs.n_similar == pairs.n_labeled:
        has_classes = isinstance(pairs.labels, ClassLabels)
        what = "known points are of one class" if has_classes else "labeled pairs are similar"
        cause = (
            f"all {what}, so nothing keeps points apart. Label points of another class, or give "
            "dissimilar pairs."
        )
    else:
        limit = first.critical_trace_weight
        bound = f" (it has to be below {limit:.3g})" if _is_plain(first) and limit else ""
        what = "trace weight or laplacian_weight" if has_manifold else "trace weight"
        cause = (
            f"the {what} is too large for these features{bound}. Lower it, or use "
            'trace_weight="auto".'
        )
        if first.penalties:
            cause = f"the penalties allow no other, or {cause}"
    return f"The learned metric is zero, and so is all of transform(X): {cause}"


def _is_plain(first: MStepObjective) -> bool:
    """Whether the trace is all that is penalised."""
    return first.manifold_term is None and not first.penalties
