"""Accelerated projected gradient steps over the matrices between zero and an upper bound.

In coordinates where the bound is the identity, A = B^{1/2} S B^{1/2} with 0 <= S <= I, and the
projection cuts eigenvalues off at 0 and 1. How far S is from the optimum is bounded by its gradient
G: at most <G, S> plus the sum of the sizes of G's negative eigenvalues (Frank and Wolfe).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..model.pair_program import PairProgram
from ..model.penalized_program import Term
from ..numerics.checks import FloatArray
from ..numerics.psd_cone import symmetrize

SLACKEN = 0.995
"""The curvature shrinks by this factor a step, so that it follows that of the function down."""

CHECK_EVERY = 10
"""Steps between two looks at the gap."""

SHARE = 0.3
"""The share of the tolerance that the gap may have at the end."""


@dataclass
class BoxSearch:
    """A descent over the matrices between zero and a bound.

    Attributes
    ----------
    program : PairProgram
        Phi in the coordinates `root`.
    root : (m, m) array
        B^{1/2}.
    terms : sequence of callables
        Functions of the metric that are added.
    tol : float
        The relative gap to reach.
    max_steps : int
    deadline : float
        On the clock of `time.perf_counter`.
    """

    program: PairProgram
    root: FloatArray
    terms: Sequence[Term]
    tol: float
    max_steps: int
    deadline: float
    steps: int = field(default=0, init=False)
    passes: int = field(default=0, init=False)
    curvature: float = field(default=0.0, init=False)

    @property
    def is_over(self) -> bool:
        """Whether all steps are made, or the time is up."""
        return self.steps >= self.max_steps or time.perf_counter() >= self.deadline

    def run(self, S: FloatArray) -> FloatArray:
        """Descend from S to the least value over 0 <= S <= I, and return a factor of it."""
        S = _cut_off(S)[0]
        ahead, momentum = S, 1.0
        gradient = self._at(ahead)[1]
        if not self.curvature:
            self.curvature = max(float(np.linalg.norm(gradient)), np.finfo(np.float64).tiny)
        while not self.is_over:
            if self.steps % CHECK_EVERY == 0 and self._gap(S) <= SHARE * self.tol:
                break
            self.steps += 1
            new = _cut_off(ahead - gradient / self.curvature)[0]
            is_uphill = float(np.vdot(ahead - new, new - S)) > 0.0
            faster = (1.0 + np.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
            further = new if is_uphill else new + ((momentum - 1.0) / faster) * (new - S)
            slope = self._at(further)[1]
            move = further - ahead
            length = float(np.vdot(move, move))
            bent = float(np.vdot(slope - gradient, move)) / length if length else 0.0
            if bent > 1.5 * self.curvature:
                self.curvature = 1.05 * bent
                continue
            self.curvature = SLACKEN * max(self.curvature, 1.05 * bent)
            S, ahead, gradient = new, further, slope
            momentum = 1.0 if is_uphill else faster
        return _cut_off(S)[1]

    def _gap(self, S: FloatArray) -> float:
        """A bound on how far the value at S is from the least, relative to it."""
        value, gradient = self._at(S)
        least = float(np.sum(np.minimum(np.linalg.eigvalsh(gradient), 0.0)))
        return (float(np.vdot(gradient, S)) - least) / max(1.0, abs(value))

    def _at(self, S: FloatArray) -> tuple[float, FloatArray]:
        self.passes += 1
        value, gradient = self.program.value_and_gradient(S)
        metric = symmetrize(self.root @ S @ self.root)
        for term in self.terms:
            point = term(metric)
            value = value + point.value
            gradient = gradient + symmetrize(self.root @ point.gradient @ self.root)
        return value, gradient


def _cut_off(S: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The matrix S with its eigenvalues clipped to [0, 1], and a factor of the result."""
    eigenvalues, vectors = np.linalg.eigh(S)
    kept = eigenvalues > 0.0
    factor = vectors[:, kept] * np.sqrt(np.minimum(eigenvalues[kept], 1.0))
    return np.asarray(factor @ factor.T), np.asarray(factor)
