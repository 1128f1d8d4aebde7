"""What every penalty and constraint on the metric has: value, statement, subgradient, conjugate.

The M-step with penalties is

    minimize  F(A) = f(A) + sum_j P_j(A)   over A PSD,     each P_j convex and closed.

With the conjugate P*(Z) = sup_A <Z, A> - P(A), any matrices Z_j bound it from below:
F(A) >= f(A) + <sum_j Z_j, A> - sum_j P_j*(Z_j). So a certificate needs no more than one Z_j for
each penalty, and a solver no more than a proximal step.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from ..numerics.checks import FloatArray, read_only
from ..numerics.psd_cone import symmetrize
from ..proof.rounding import at_most

TRUSTED = 1e-12
"""A user-defined penalty, and the matrices at which its conjugate is finite, are assumed to be
computed to this relative error."""

DIFFERENCE = 1e-6
"""The step of the difference quotients that stand in for second derivatives, relative to A: about
the cube root of a rounding error, where a central difference is best."""


class Multiplier(NamedTuple):
    """A matrix Z of the dual with a finite conjugate.

    Attributes
    ----------
    matrix : (m, m) array
        Z, as computed.
    conjugate : float
        Not below P*(Z).
    slack : (m, m) array or None
        Bounds on the difference, entry by entry, between `matrix` and the Z that `conjugate` is
        for; None if there is none.
    """

    matrix: FloatArray
    conjugate: float
    slack: FloatArray | None = None


class TermPoint(NamedTuple):
    """A smooth function of the metric at A: value, gradient, and how that changes along D."""

    value: float
    gradient: FloatArray
    bend: Callable[[FloatArray], FloatArray]


class Penalty(ABC):
    """A convex penalty or constraint on the metric, P(A), as a building block of the M-step (11).

    A block of your own is a class with four methods: `value`, `subgradient`, `conjugate`, and
    `expression` or `constraints`. :func:`seraph_cvx.penalties.check_penalty` tests them. With these
    it can be stated, solved by conic solvers and certified. A block that also has `is_smooth` or
    `prox` can be solved by this package's own solver. `examples/guide/model-your-own.md` shows one.
    All other methods have a default, which a block may override.

    Attributes
    ----------
    weight : float
        The factor of the penalty, or the bound of a constraint.
    formula : str
        How ``problem.format_labeled()`` prints the penalty.
    is_smooth : bool
        Whether P is differentiable where it is finite, and `subgradient` its gradient.
    is_coercive : bool
        Whether F has a minimizer because of this block, whatever the trace weight.
    is_diagonal : bool
        Whether P allows diagonal metrics only, and is zero at all of them.
    is_sparse : bool
        Whether P is the weight times the sum of the sizes of all entries off the diagonal.
    refers_to_features : bool
        Whether P depends on the individual features, so that it has no meaning in other
        coordinates, such as those of a kernel. False for a function of the eigenvalues alone.

    Examples
    --------
    >>> import cvxpy as cp
    >>> import numpy as np
    >>> from seraph_cvx.penalties import Penalty, check_penalty
    >>> class Squares(Penalty):  # P(A) = weight * ||A||_F^2 / 2
    ...     def value(self, A):
    ...         return self.weight * np.sum(A**2) / 2
    ...     def subgradient(self, A):
    ...         return self.weight * A
    ...     def conjugate(self, Z):
    ...         return np.sum(Z**2) / (2 * self.weight)
    ...     def expression(self, A, weight):
    ...         return weight * cp.sum_squares(A) / 2
    >>> check_penalty(Squares(), n_features=2, n_matrices=3).holds
    True
    """

    weight: float = 1.0
    formula: str = ""
    is_smooth: bool = False
    is_coercive: bool = False
    is_diagonal: bool = False
    is_sparse: bool = False
    refers_to_features: bool = True

    @abstractmethod
    def value(self, A: FloatArray) -> float:
        """The penalty P(A); infinite where A violates a constraint."""

    def expression(self, A: Any, weight: Any) -> Any:
        """The penalty as a CVXPY expression of the variable A; `weight` is a Parameter."""
        if type(self).constraints is Penalty.constraints:
            raise NotImplementedError(
                f"{self.name} cannot be stated in CVXPY: it lacks the method expression, or "
                'constraints. Write one, or use solver="newton".'
            )
        return 0.0

    def constraints(self, A: Any, weight: Any) -> list[Any]:
        """The constraints of the block as CVXPY constraints on the variable A."""
        return []

    @abstractmethod
    def subgradient(self, A: FloatArray) -> FloatArray:
        """A subgradient at A: P(B) >= P(A) + <Z, B - A> for every B."""

    @abstractmethod
    def conjugate(self, Z: FloatArray) -> float:
        """The conjugate P*(Z) = sup_A <Z, A> - P(A); infinite where there is no bound."""

    @property
    def name(self) -> str:
        """The name of the block in tables and messages."""
        return type(self).__name__

    @property
    def is_solvable(self) -> bool:
        """Whether the package's own solver can take the block."""
        return self.is_smooth or type(self).prox is not Penalty.prox

    def prox(self, Y: FloatArray, step: float) -> FloatArray:
        """The proximal step argmin_A P(A) + ||A - Y||_F^2 / (2 step), over all symmetric A."""
        raise NotImplementedError(
            f"{self.name} has no proximal step: it lacks the method prox. Write it, or set "
            "is_smooth where the penalty is; or use a conic solver."
        )

    def at(self, A: FloatArray) -> TermPoint:
        """Value, gradient and second derivatives of a smooth block."""
        gradient = self.subgradient(A)

        def bend(D: FloatArray) -> FloatArray:
            """How the gradient changes along D, by a central difference."""
            h = DIFFERENCE * (1.0 + np.linalg.norm(A)) / max(float(np.linalg.norm(D)), 1e-300)
            return (self.subgradient(A + h * D) - self.subgradient(A - h * D)) / (2 * h)

        return TermPoint(self.value(A), gradient, bend)

    def for_points(self, points: FloatArray) -> Self:
        """The block for these points: checked against them, or built from them."""
        return self

    def with_weight(self, weight: float) -> Self:
        """The same block with another weight."""
        other = copy.copy(self)
        other.weight = weight
        return other

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return False
        mine, its = ({"weight": block.weight, **vars(block)} for block in (self, other))
        mine, its = ({key: kept[key] for key in kept if key[0] != "_"} for kept in (mine, its))
        return mine.keys() == its.keys() and all(
            mine[key] is its[key] or np.array_equal(mine[key], its[key]) for key in mine
        )

    def __hash__(self) -> int:
        return hash((type(self), self.weight))

    def __repr__(self) -> str:
        return f"{self.name}({self.weight:g})"

    def guess(self, A: FloatArray, gradient: FloatArray) -> FloatArray:
        """A matrix Z that suits A; `gradient` is that of everything else in F."""
        return self.subgradient(A)

    def absorb(self, Z: FloatArray, missing: FloatArray) -> FloatArray | None:
        """Return Z' >= Z + `missing` with a finite conjugate, or None; `missing` is PSD."""
        return None

    def multiplier(self, Z: FloatArray) -> Multiplier | None:
        """A matrix near Z with a finite conjugate, rounding allowed for; None if there is none."""
        conjugate = self.conjugate(Z)
        slack = np.full_like(Z, TRUSTED * float(np.max(np.abs(Z), initial=0.0)))
        return Multiplier(Z, trusted(conjugate), slack) if math.isfinite(conjugate) else None

    def feasible_factor(self, L: FloatArray) -> FloatArray:
        """A factor near L for which LL' satisfies the constraints of the block."""
        return L

    def value_above(self, L: FloatArray) -> float:
        """An upper bound on P(LL'), rounding allowed for."""
        return trusted(self.value(symmetrize(L @ L.T)))


class Constraint(Penalty):
    """A set that the metric has to be in: P is zero there, and infinite elsewhere."""

    def subgradient(self, A: FloatArray) -> FloatArray:
        """Zero, at any A of the set."""
        return np.zeros_like(A)

    def value(self, A: FloatArray) -> float:
        """Zero where A is in the set, to rounding, and infinite elsewhere."""
        return 0.0 if self._contains(A) else math.inf

    def conjugate(self, Z: FloatArray) -> float:
        """The support function of the set; infinite where `multiplier` has to change Z."""
        return conjugate_by_multiplier(self, Z)

    def value_above(self, L: FloatArray) -> float:
        """Zero where LL' is proven to be in the set, and infinite elsewhere."""
        return 0.0 if self._is_proven_inside(L) else math.inf

    @abstractmethod
    def _contains(self, A: FloatArray) -> bool:
        """Whether A is in the set, to rounding."""

    @abstractmethod
    def _is_proven_inside(self, L: FloatArray) -> bool:
        """Whether LL' is proven to be in the set, rounding allowed for."""


def check_matrix(given: ArrayLike, name: str, *, positive_definite: bool = False) -> FloatArray:
    """Check that a matrix is square, finite and symmetric, and positive definite if asked."""
    matrix = np.array(given, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"{name} has shape {matrix.shape}: give a square matrix.")
    if not np.all(np.isfinite(matrix)):
        raise ValueError(f"{name} holds NaN or infinity.")
    if not np.allclose(matrix, matrix.T, rtol=1e-9, atol=1e-12 * float(np.max(np.abs(matrix)))):
        raise ValueError(f"{name} is not symmetric: pass (A + A') / 2.")
    matrix = symmetrize(matrix)
    if positive_definite and not (least := float(np.linalg.eigvalsh(matrix)[0])) > 0.0:
        raise ValueError(
            f"{name} is not positive definite (its least eigenvalue is {least:.3g}): add a "
            "multiple of I."
        )
    return read_only(matrix)


def conjugate_by_multiplier(block: Penalty, Z: FloatArray) -> float:
    """The conjugate at Z, if `multiplier` finds the same matrix but for rounding, or infinity."""
    found, size = block.multiplier(Z), float(np.max(np.abs(Z), initial=0.0))
    is_near = found is not None and np.allclose(found.matrix, Z, rtol=0.0, atol=1e-9 * size)
    return found.conjugate if found is not None and is_near else math.inf


def trusted(value: float) -> float:
    """Round a number up that is taken to be good to twelve digits."""
    return at_most(value, TRUSTED * max(1.0, abs(value))) if math.isfinite(value) else value
