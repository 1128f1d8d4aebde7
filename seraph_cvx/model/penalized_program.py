"""The one function Phi of `pair_program.py`, plus smooth functions of the metric."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..numerics.checks import FloatArray
from ..numerics.psd_cone import symmetrize
from ..penalties.penalty import TermPoint
from .m_step_objective import MStepObjective
from .pair_program import FacePoint, PairProgram

Term = Callable[[FloatArray], TermPoint]
"""A smooth function of the metric in the data's coordinates, with its derivatives."""


def with_smooth_penalties(
    objective: MStepObjective, program: PairProgram
) -> PairProgram | PenalizedProgram:
    """Add the smooth penalties of an M-step to a program in its whitened coordinates."""
    terms = [block.at for block in objective.penalties if block.is_smooth]
    return PenalizedProgram(program, objective.basis.matrix, terms) if terms else program


@dataclass(frozen=True, eq=False)
class PenalizedProgram:
    """A program with penalties, Phi(B) + sum_j P_j(T B T'), as a function of a factor of B.

    Attributes
    ----------
    pairs : PairProgram
        Phi in the coordinates T.
    basis : (m, m) array
        T.
    terms : sequence of callables
        P_j, each with its derivatives.
    """

    pairs: PairProgram
    basis: FloatArray
    terms: Sequence[Term]

    @property
    def recession(self) -> FloatArray:
        """The recession matrix M of Phi."""
        return self.pairs.recession

    @property
    def reach(self) -> float:
        """The size of a metric of mean squared distance 1 + eta."""
        return self.pairs.reach

    def at(self, L: FloatArray) -> PenalizedPoint:
        """The function and its slope at a factor L."""
        point, T = self.pairs.at(L), self.basis
        turned = T @ L
        terms = [term(symmetrize(turned @ turned.T)) for term in self.terms]
        push = T.T @ np.sum([term.gradient for term in terms], axis=0) @ T
        return PenalizedPoint(
            program=self.pairs,
            L=L,
            value=point.value + sum(term.value for term in terms),
            slope=point.slope + 2.0 * push @ L,
            make_gradient=lambda: symmetrize(point.gradient + push),
            make_bending=point.make_bending,
            excess=point.excess,
            point=point,
            basis=T,
            push=push,
            terms=terms,
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class PenalizedPoint(FacePoint):
    """Phi and smooth functions of the metric at LL', with their derivatives.

    Attributes
    ----------
    point : FacePoint
        Phi alone.
    push : (m, m) array
        The gradient of the terms, in the coordinates T = `basis`.
    """

    point: FacePoint
    basis: FloatArray
    push: FloatArray
    terms: Sequence[TermPoint]

    def bent(self, D: FloatArray) -> FloatArray:
        """How the slope changes along D."""
        moved = self._turned @ (self.basis @ D).T
        moved = moved + moved.T
        bend = np.sum([term.bend(moved) for term in self.terms], axis=0)
        more = self.push @ D + self.basis.T @ (bend @ self._turned)
        return np.asarray(self.point.bent(D) + 2.0 * more)

    def curvature(self, S: FloatArray) -> float:
        """The second derivative of the function as the metric grows along SS'."""
        turned = self.basis @ S
        grown = turned @ turned.T
        more = sum(float(np.vdot(term.bend(grown), grown)) for term in self.terms)
        return self.point.curvature(S) + more

    @cached_property
    def _turned(self) -> FloatArray:
        return np.asarray(self.basis @ self.L)
