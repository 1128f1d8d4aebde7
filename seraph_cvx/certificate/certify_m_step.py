"""The duality gap of the M-step at any PSD point, rounding errors included, trusting no solver."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from ..model.m_step_objective import MStepObjective
from ..numerics.checks import FloatArray
from ..numerics.psd_cone import check_metric, scaled_factor
from .certificate import Certificate, lower_bounds, pinned_bounds
from .pair_bounds import bound_pairs

NEAR = 1e-6
"""Relative gap up to which bounds from pairs within the span of similar ones are not tried: what
the estimators ask for."""


def certify(
    objective: MStepObjective,
    A: ArrayLike,
    *,
    enough: float = 0.0,
) -> Certificate:
    """Bound the optimum of an M-step from both sides, given any metric A.

    D(r) <= inf f <= f(LL'), LL' = A to rounding: the duality gap of the M-step (11). Both bounds
    hold for the doubles that `objective` was given, with every rounding error of their
    computation taken into account; `examples/guide/certificate.md` explains how.

    Parameters
    ----------
    objective : MStepObjective
        With any trace weight >= 0; its optimum need not be attained.
    A : (m, m) array_like
        Any PSD matrix, however far from the optimum.
    enough : float
        Stop looking for a better bound once the relative gap is at most this.

    Returns
    -------
    Certificate
        `dual_value` is minus infinity where nothing can be proven, which happens only for a
        manifold term that is not PSD.

    Examples
    --------
    >>> import numpy as np
    >>> from seraph_cvx import MStepObjective, PairSet, certify
    >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
    >>> far = certify(MStepObjective(pairs), np.eye(1))
    >>> near = certify(MStepObjective(pairs), 0.9227 * np.eye(1))
    >>> far.relative_gap > near.relative_gap, near.relative_gap < 1e-4
    (True, True)
    """
    metric = check_metric(A, objective.pairs.n_features)
    return certify_factor(objective, scaled_factor(metric), enough)


def certify_factor(objective: MStepObjective, L: FloatArray, enough: float = 0.0) -> Certificate:
    """Certify A = LL', given its factor L: an (m, rho) array.

    Examples
    --------
    >>> import numpy as np
    >>> from seraph_cvx import MStepObjective, PairSet
    >>> from seraph_cvx.certificate import certify_factor
    >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
    >>> bounds = certify_factor(MStepObjective(pairs), np.array([[0.96]]))
    >>> f"{bounds.dual_value:.3f} <= optimum <= {bounds.primal_value:.3f}"
    '2.758 <= optimum <= 2.759'
    """
    L = np.ascontiguousarray(L[:, np.any(L != 0.0, axis=0)])
    if objective.penalties:
        from .penalized import certify_penalized

        return certify_penalized(objective, L, enough)
    with np.errstate(all="ignore"):
        bounds = bound_pairs(objective, L)
        above = math.inf if bounds is None else bounds.primal_value
        best = Certificate(above, -math.inf, "", L, objective=objective)
        for bound in lower_bounds(objective, bounds):
            best = best.with_bound_of(bound)
            if best.relative_gap <= enough:
                break
        if best.relative_gap > max(enough, NEAR):
            for bound in pinned_bounds(objective, L):
                best = best.with_bound_of(bound)
    return best.checked()
