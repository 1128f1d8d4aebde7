"""The duality gap of the M-step at any PSD point, rounding errors included, trusting no solver.

The dual of the M-step is a maximum-entropy problem. With r_k = 1 - p_k it reads

    maximize  D(r) = sum_k c_k H(r_k) + eta * (sum_k c_k r_k - kappa)       over r in [0, 1]^N
    subject to  R + sum_k c_k (q_k - r_k) v_k v_k'  PSD,

and every feasible r bounds the optimum from below. At LL' the natural candidate is
r_k = sigma(-s_k), whose matrix is the gradient of f. Where that is not proven PSD, r is moved
toward a point that is feasible anyway: r = 0 (which is p = 1), or r = q (p = b/c).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from ..model.m_step_objective import MStepObjective
from ..numerics.checks import FloatArray
from ..numerics.psd_cone import check_metric, scaled_factor
from .certificate import Certificate, LowerBound, lower_bounds
from .feasible_steps import largest_eigenvalue
from .pair_bounds import bound_pairs
from .penalized import certify_penalized
from .pinned import reduced_m_steps

if TYPE_CHECKING:
    from .proof import Proof

NEAR = 1e-6
"""Relative gap up to which bounds from pairs within the span of similar ones are not tried."""


@overload
def certify(
    objective: MStepObjective,
    A: ArrayLike,
    *,
    enough: float = ...,
    rigorous: Literal[False] = ...,
) -> Certificate: ...


@overload
def certify(
    objective: MStepObjective, A: ArrayLike, *, enough: float = ..., rigorous: Literal[True]
) -> Proof: ...


def certify(
    objective: MStepObjective, A: ArrayLike, *, enough: float = 0.0, rigorous: bool = False
) -> Certificate | Proof:
    """Bound the optimum of an M-step from both sides, given any metric A.

    D(r) <= inf f <= f(LL'), LL' = A to rounding: the duality gap of the M-step (11). Both bounds
    hold for the doubles that `objective` was given, with every rounding error of their
    computation taken into account; `examples/guide/certificate.md` explains how.

    Parameters
    ----------
    objective : MStepObjective
        Any trace weight >= 0, attained or not.
    A : (m, m) array_like
        Any PSD matrix, however far from the optimum.
    enough : float
        Stop looking for a better bound once the relative gap is at most this.
    rigorous : bool
        Compute the bounds in ball arithmetic instead, an independent check of all assumptions
        of the default. Needs python-flint, ``pip install "seraph-cvx[rigorous]"``, and a few
        hundred points at most.

    Returns
    -------
    Certificate
        `dual_value` is minus infinity where nothing can be proven, which happens only for a
        manifold term that is not PSD. With `rigorous` a
        :class:`~seraph_cvx.certificate.proof.Proof`, which has the same attributes.

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
    if rigorous:
        from .proof import prove

        return prove(objective, metric, enough=enough)
    return certify_factor(objective, scaled_factor(metric), enough)


def certify_factor(objective: MStepObjective, L: FloatArray, enough: float = 0.0) -> Certificate:
    """Certify A = LL', given its factor L: an (m, rho) array."""
    L = np.ascontiguousarray(L[:, np.any(L != 0.0, axis=0)])
    if objective.penalties:
        return certify_penalized(objective, L, enough)
    with np.errstate(all="ignore"):
        bounds = bound_pairs(objective, L)
        best = Certificate(math.inf if bounds is None else bounds.primal_value, -math.inf, "")
        for found in lower_bounds(objective, bounds):
            best = found.improve(best)
            if best.relative_gap <= enough:
                break
        if best.relative_gap > max(enough, NEAR):
            for found in _pinned_bounds(objective, L):
                best = found.improve(best)
    return replace(best, factor=L).checked()


def nominal_gap(objective: MStepObjective, L: FloatArray) -> float:
    """The relative gap at LL' without the allowance for rounding: to steer by, not to be shown."""
    with np.errstate(all="ignore"):
        bounds = bound_pairs(objective, L)
        coordinates = objective.geometry.dual_coordinates
        if bounds is None or coordinates is None:
            return math.inf
        S, N, R = bounds.pull, bounds.labels.matrix, coordinates.regularizer
        values = [bounds.labels.value]
        largest = largest_eigenvalue(S, R + N)
        if largest is not None and largest > 0.0:
            step = min(1.0, 1.0 / largest)
            values.append(bounds.value_toward_one(step, objective.threshold))
        stretch = largest_eigenvalue(S - N, R)
        if stretch is not None:
            values.append(bounds.value_toward_labels(1.0 / max(1.0, stretch)))
    return (bounds.primal_value - max(values)) / max(1.0, abs(bounds.primal_value))


def _pinned_bounds(objective: MStepObjective, L: FloatArray) -> Iterator[LowerBound]:
    if not objective.has_soft_labels and objective.linear_penalty.is_proven_psd():
        for reduced in reduced_m_steps(objective):
            yield from lower_bounds(reduced, bound_pairs(reduced, L))
