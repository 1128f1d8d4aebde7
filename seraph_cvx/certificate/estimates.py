"""The gap without the allowance for rounding: for solvers to steer by, never to be shown."""

from __future__ import annotations

import math

import numpy as np

from ..model.m_step_objective import MStepObjective
from ..numerics.checks import FloatArray
from .certificate import largest_eigenvalue
from .pair_bounds import bound_pairs


def nominal_gap(objective: MStepObjective, L: FloatArray) -> float:
    """The relative gap at LL' without the allowance for rounding: a guide for solvers, no proof.

    Examples
    --------
    >>> import numpy as np
    >>> from seraph_cvx import MStepObjective, PairSet
    >>> from seraph_cvx.certificate import certify_factor, nominal_gap
    >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
    >>> objective, L = MStepObjective(pairs), np.array([[0.9]])
    >>> round(nominal_gap(objective, L), 4)
    0.0665
    >>> abs(nominal_gap(objective, L) - certify_factor(objective, L).relative_gap) < 1e-9
    True
    """
    with np.errstate(all="ignore"):
        bounds = bound_pairs(objective, L)
        coordinates = objective.geometry.dual_coordinates
        if bounds is None or coordinates is None:
            return math.inf
        S, N, R = bounds.dual_matrix, bounds.labels.matrix, coordinates.regularizer
        values = [bounds.labels.value]
        largest = largest_eigenvalue(S, R + N)
        if largest is not None and largest > 0.0:
            step = min(1.0, 1.0 / largest)
            values.append(bounds.value_toward_one(step, objective.threshold))
        stretch = largest_eigenvalue(S - N, R)
        if stretch is not None:
            values.append(bounds.value_toward_labels(1.0 / max(1.0, stretch)))
    return (bounds.primal_value - max(values)) / max(1.0, abs(bounds.primal_value))
