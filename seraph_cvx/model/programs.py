"""The paper's objective (7), and J, which the alternation descends: the same, with other losses.

Both have the linear term M = sum_S c_k v_k v_k' + R, and neither is convex. Smooth penalties may be
added to any of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ..numerics.checks import FloatArray
from ..numerics.psd_cone import symmetrize
from .m_step_objective import MStepObjective, pair_program
from .pair_losses import EntropyLoss, SharpenedLoss
from .pair_program import FactorHessian, FactorPoint, PairProgram

if TYPE_CHECKING:
    from ..penalties.penalty import TermPoint


def paper_program(m_step: MStepObjective, whitened: bool = False) -> PairProgram:
    """State the paper's objective (7) as a minimization, with the pairs and weights of `m_step`.

    -sum_{S u D} ln p(y) + mu sum_U H(p) + <R, A>.
    """
    return pair_program(m_step, EntropyLoss(), whitened)


def descent_program(m_step: MStepObjective, whitened: bool = False) -> PairProgram:
    """State J, minimized over the soft labels, with the pairs and weights of `m_step`.

    J(q, A) = -L_labeled(A) + <R, A> + mu sum_U [E_q(-ln p) - H(q)/sharpness] is what the
    alternation descends (derived here, not in the paper); the least q is the E-step (10) at A.
    """
    return pair_program(m_step, SharpenedLoss(m_step.soft_labeling.sharpness), whitened)


@dataclass(frozen=True, eq=False)
class SemiSupervisedObjective:
    """The paper's objective (7) as a minimization, which is not convex.

    -L(A) = -sum_{S u D} ln p(y) + mu sum_U H(p) + <R, A>, plus the penalties. Takes the parameters
    of :class:`MStepObjective` as one such object, and shares its sums.
    """

    m_step: MStepObjective

    @cached_property
    def program(self) -> PairProgram:
        """The objective as a function of metrics and of their factors, without penalties."""
        return paper_program(self.m_step)

    def value(self, A: ArrayLike) -> float:
        """The value at a metric."""
        return self.m_step.penalized_value(self.program, A)

    def value_and_gradient(self, A: ArrayLike) -> tuple[float, FloatArray]:
        """Value and gradient at a metric, in one sweep."""
        return self.m_step.penalized_gradient(self.program, A)


def descent_values(objective: MStepObjective, A: ArrayLike) -> tuple[float, float]:
    """The values of J(q(A), A), with the soft labels q(A) of the E-step (10), and of (7).

    Both with the penalties of `objective`.
    """
    J, seven = descent_program(objective), paper_program(objective)
    return objective.penalized_value(J, A), objective.penalized_value(seven, A)


Term: TypeAlias = "Callable[[FloatArray], TermPoint]"
"""A smooth function of the metric in the data's coordinates, with its derivatives."""


def with_smooth_penalties(
    objective: MStepObjective, program: PairProgram
) -> PairProgram | PenalizedProgram:
    """Add the smooth penalties of an M-step to a program in its whitened coordinates."""
    terms = [block.at for block in objective.penalties if block.is_smooth]
    return PenalizedProgram(program, objective.basis.matrix, terms) if terms else program


@dataclass(frozen=True, eq=False)
class PenalizedProgram:
    """A program with penalties, Phi(B) + sum_j P_j(T B T'), as a function of a factor of B."""

    pairs: PairProgram  # Phi in the coordinates T
    basis: FloatArray  # T
    terms: Sequence[Term]  # P_j, each with its derivatives

    @property
    def recession(self) -> FloatArray:
        """The recession matrix M of Phi."""
        return self.pairs.recession

    @property
    def typical_size(self) -> float:
        """The size of a metric of mean squared distance 1 + eta."""
        return self.pairs.typical_size

    def at(self, L: FloatArray) -> FactorPoint:
        """The function and its slope at a factor L."""
        point, T = self.pairs.at(L), self.basis
        mapped = T @ L
        terms = [term(symmetrize(mapped @ mapped.T)) for term in self.terms]
        gradient = T.T @ np.sum([term.gradient for term in terms], axis=0) @ T
        return replace(
            point,
            value=point.value + sum(term.value for term in terms),
            factor_gradient=point.factor_gradient + 2.0 * gradient @ L,
            make_gradient=lambda: symmetrize(point.gradient + gradient),
            make_hessian=cache(
                lambda rough: _PenalizedHessian(
                    point.make_hessian(rough), T, mapped, gradient, terms
                )
            ),
        )


class _PenalizedHessian(NamedTuple):
    """Second derivatives of Phi and of penalties, whose gradient is `gradient`; `mapped` is TL."""

    pairs: FactorHessian
    basis: FloatArray
    mapped: FloatArray
    gradient: FloatArray
    terms: Sequence[TermPoint]

    def hessian_product(self, D: FloatArray) -> FloatArray:
        """The derivative along D of half the gradient with respect to the factor."""
        moved = self.mapped @ (self.basis @ D).T
        bend = np.sum([term.bend(moved + moved.T) for term in self.terms], axis=0)
        more = self.gradient @ D + self.basis.T @ (bend @ self.mapped)
        return np.asarray(self.pairs.hessian_product(D) + more)

    def curvature(self, S: FloatArray) -> float:
        """The second derivative of the function as the metric grows along SS'."""
        transformed = self.basis @ S
        grown = transformed @ transformed.T
        more = sum(float(np.vdot(term.bend(grown), grown)) for term in self.terms)
        return self.pairs.curvature(S) + more
