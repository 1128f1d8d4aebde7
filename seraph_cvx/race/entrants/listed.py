"""An M-step as plain arrays, with a row for each pair, for solvers that are handed formulas.

In coordinates B, A = Z B Z', in which the second moments of the pairs and the regularizer add up
to the identity, so that no rival loses by the units of the data,

    f = sum_k c_k log(1 + e^{-s_k}) + <M, B> - constant,      s_k = v_k' B v_k - eta.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.special

from ...model.m_step_objective import MStepObjective
from ...numerics.checks import FloatArray, IntArray
from .attempt import NotForThisProblem


@dataclass(frozen=True, eq=False)
class ListedProblem:
    """The arrays of an M-step, one row a pair.

    Attributes
    ----------
    differences : (k, r) array
        v_k, in the coordinates of B.
    weights : (k,) array
        c_k.
    recession : (r, r) array
        M.
    threshold, constant : float
    basis : (m, r) array
        Z.
    reach : float
        The trace of a matrix B whose mean squared distance is about 1 + eta.

    Examples
    --------
    >>> from seraph_cvx import PairSet
    >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
    >>> objective = MStepObjective(pairs)
    >>> problem = ListedProblem.of(objective)
    >>> B = np.array([[3.0]])
    >>> bool(np.isclose(problem.value(B), objective.value(problem.metric(B))))
    True
    """

    differences: FloatArray
    weights: FloatArray
    recession: FloatArray
    threshold: float
    constant: float
    basis: FloatArray
    reach: float

    @classmethod
    def of(cls, objective: MStepObjective) -> ListedProblem:
        """List the pairs of an M-step without penalties."""
        require_plain(objective)
        pairs, program = objective.pairs, objective.whitened_program
        rows, weights = pairs.labeled, pairs.labeled_weights
        if objective.mu > 0.0:
            rows = np.concatenate([rows, pairs.unlabeled])
            weights = np.concatenate([weights, np.full(pairs.n_unlabeled, objective.mu)])
        points = pairs.points @ objective.basis.matrix
        return cls(
            differences=points[rows[:, 0]] - points[rows[:, 1]],
            weights=weights,
            recession=program.recession,
            threshold=program.threshold,
            constant=program.constant,
            basis=objective.basis.matrix,
            reach=program.reach,
        )

    @property
    def size(self) -> int:
        """The number r of rows of B."""
        return len(self.recession)

    @cached_property
    def entries(self) -> tuple[IntArray, IntArray]:
        """The rows and columns of the distinct entries of B."""
        return np.triu_indices(self.size)

    @cached_property
    def multiplicity(self) -> FloatArray:
        """How often each of these entries is in B."""
        return np.where(self.entries[0] == self.entries[1], 1.0, 2.0)

    @cached_property
    def outer_products(self) -> FloatArray:
        """The (k, r(r+1)/2) matrix of the entries of v v'."""
        i, j = self.entries
        return np.asarray(self.differences[:, i] * self.differences[:, j])

    @cached_property
    def pair_matrix(self) -> FloatArray:
        """The matrix that maps the distinct entries of B to the squared distances v'Bv."""
        return self.outer_products * self.multiplicity

    def value(self, B: FloatArray) -> float:
        """The value of f at the point."""
        s = np.einsum("ki,ij,kj->k", self.differences, B, self.differences) - self.threshold
        surprise = float(self.weights @ np.logaddexp(0.0, -s))
        return surprise + float(np.vdot(self.recession, B)) - self.constant

    def derivatives(self, x: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """The value at the entries x of B, the gradient, and the weights of the Hessian's pairs.

        With P the pair matrix, the Hessian is P' Diag(weights) P.
        """
        P, i_j = self.pair_matrix, self.entries
        s = P @ x - self.threshold
        sigma = scipy.special.expit(-s)
        linear = self.recession[i_j] * self.multiplicity
        value = float(self.weights @ np.logaddexp(0.0, -s)) + float(linear @ x) - self.constant
        return value, linear - P.T @ (self.weights * sigma), self.weights * sigma * (1.0 - sigma)

    def metric(self, B: FloatArray) -> FloatArray:
        """The matrix A = Z B Z' in the coordinates of the points."""
        return np.asarray(self.basis @ B @ self.basis.T)

    def start(self) -> FloatArray:
        """A multiple of the identity, of a size that separates pairs."""
        return np.eye(self.size) * (self.reach / self.size)


def require_plain(objective: MStepObjective) -> None:
    """Require an M-step whose penalties are all linear, as formulas of other solvers have them."""
    if objective.penalties:
        names = ", ".join(block.name for block in objective.penalties)
        raise NotForThisProblem(f"it has no formula for the penalties ({names})")
