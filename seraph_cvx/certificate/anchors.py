"""The two points of the dual that are always feasible, and a quick bound for a solver to steer by.

Nothing in this module allows for rounding: no bound of it is ever shown or certified.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..model.m_step_objective import MStepObjective
from ..numerics.checks import FloatArray
from ..numerics.psd_cone import symmetrize


@dataclass(frozen=True)
class Anchors:
    """The two dual points that are always feasible, in the whitened coordinates of an M-step.

    Attributes
    ----------
    basis : (r, r) array or None
        B with B' M B = I; None where M is singular.
    regularizer_basis : (r, r) array or None
        B with B' R B = I; None where R is singular.
    recession_value, entropy_value : float
        D at p = 1, and at p = b/c.
    """

    basis: FloatArray | None
    regularizer_basis: FloatArray | None
    recession_value: float
    entropy_value: float

    @classmethod
    def of(cls, objective: MStepObjective) -> Anchors:
        """Set up the anchors of an M-step."""
        return cls(
            _inverse_root(objective.whitened_program.recession, objective.zero_eigenvalue),
            _inverse_root(objective.basis.regularizer, objective.zero_eigenvalue),
            -objective.program.constant,
            objective.soft_label_entropy,
        )

    def step_from_one(self, gradient: FloatArray) -> float | None:
        """The largest tau in [0, 1] with tau*g + (1 - tau)*M PSD; None where M is singular."""
        return _feasible_step(gradient, self.basis)

    def step_from_labels(self, gradient: FloatArray) -> float | None:
        """The largest tau in [0, 1] with tau*g + (1 - tau)*R PSD; None where R is singular."""
        return _feasible_step(gradient, self.regularizer_basis)

    def quick_bound(self, tangent: float, gradient: FloatArray) -> float:
        """A lower bound on inf f from f and its gradient g at any symmetric Y, at no sweep.

        D is concave, so D(tau*r + (1 - tau)*anchor) >= tau*D(r) + (1 - tau)*D(anchor), and
        D(r) = f(Y) - <g, Y> is the `tangent` of f at Y, read at 0. `gradient` is T' g T.
        """
        bounds = [self.entropy_value]
        step = self.step_from_one(gradient)
        if step is not None:
            bounds.append(step * tangent + (1.0 - step) * self.recession_value)
        step = self.step_from_labels(gradient)
        if step is not None:
            bounds.append(step * tangent + (1.0 - step) * self.entropy_value)
        return max(bounds)


def _inverse_root(matrix: FloatArray, zero: float) -> FloatArray | None:
    if not matrix.size:
        return matrix
    eigenvalues, vectors = np.linalg.eigh(matrix)
    if eigenvalues[0] <= zero:
        return None
    return np.asarray(vectors / np.sqrt(eigenvalues))


def _feasible_step(gradient: FloatArray, basis: FloatArray | None) -> float | None:
    if basis is None:
        return None
    if not basis.size:
        return 1.0
    infeasibility = float(np.linalg.eigvalsh(symmetrize(basis.T @ -gradient @ basis))[-1])
    return 1.0 / (1.0 + max(0.0, infeasibility))
