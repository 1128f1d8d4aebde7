"""Gaps without the allowance for rounding: for solvers to steer by, never to be shown."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..model.m_step_objective import MStepObjective
from ..numerics.checks import FloatArray
from ..numerics.psd_cone import symmetrize
from .certificate import largest_eigenvalue
from .pair_bounds import bound_pairs


def nominal_gap(objective: MStepObjective, L: FloatArray) -> float:
    """The relative gap at LL' without the allowance for rounding: to steer by, not to be shown.

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


@dataclass(frozen=True)
class Anchors:
    """The dual points p = 1 and p = b/c, always feasible, and a quick bound for a solver.

    In whitened coordinates. Nothing here allows for rounding: no bound of it is ever shown.
    """

    basis: FloatArray | None  # B with B' M B = I; None where M is singular
    regularizer_basis: FloatArray | None  # B with B' R B = I; None where R is singular
    recession_value: float  # D at p = 1
    entropy_value: float  # D at p = b/c

    @classmethod
    def of(cls, objective: MStepObjective) -> Anchors:
        """Set up the anchors of an M-step."""
        return cls(
            _inverse_root(objective.whitened_program.recession, objective.zero_eigenvalue),
            _inverse_root(objective.basis.regularizer, objective.zero_eigenvalue),
            -objective.program.constant,
            objective.soft_label_entropy,
        )

    def quick_bound(self, tangent: float, gradient: FloatArray) -> float:
        """A lower bound on inf f from f and its gradient g at any symmetric Y, at no sweep.

        D is concave, so D(tau*r + (1 - tau)*anchor) >= tau*D(r) + (1 - tau)*D(anchor), and
        D(r) = f(Y) - <g, Y> is the `tangent` of f at Y, read at 0. `gradient` is T' g T.
        """
        bounds = [self.entropy_value]
        for basis, value in (
            (self.basis, self.recession_value),
            (self.regularizer_basis, self.entropy_value),
        ):
            if basis is not None:
                step = _feasible_step(gradient, basis)
                bounds.append(step * tangent + (1.0 - step) * value)
        return max(bounds)


def _inverse_root(matrix: FloatArray, zero: float) -> FloatArray | None:
    """B with B' matrix B = I; None where the matrix is singular."""
    if not matrix.size:
        return matrix
    eigenvalues, vectors = np.linalg.eigh(matrix)
    return None if eigenvalues[0] <= zero else vectors / np.sqrt(eigenvalues)


def _feasible_step(gradient: FloatArray, basis: FloatArray) -> float:
    """The largest tau in [0, 1] with tau*g + (1 - tau)*(B B')^{-1} PSD."""
    if not basis.size:
        return 1.0
    infeasibility = float(np.linalg.eigvalsh(symmetrize(basis.T @ -gradient @ basis))[-1])
    return 1.0 / (1.0 + max(0.0, infeasibility))
