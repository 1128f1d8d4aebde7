"""The M-step with penalties, by Newton's method on the factor and the method of multipliers.

Smooth penalties are added to f as they are. Of every other one its Moreau envelope is, which is
smooth: with V = A + Y/rho and a = prox_P(V, 1/rho),

    P_rho(A; Y) = P(a) + rho/2 ||V - a||^2 - ||Y||^2 / (2 rho),     gradient rho (V - a).

After each minimization the gradient becomes the new multiplier Y (Hestenes, Powell, Rockafellar).
It is a subgradient of P at a, so its conjugate is finite; and where the minimization ended, the
gradient of f plus the multipliers is PSD, nearly: (sigma(-s), Y) is the dual point of a
certificate.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..certificate import Certificate
from ..certificate.penalized import certify_penalized, guess_multipliers
from ..engine.basis import WhitenedBasis
from ..model.m_step_objective import MStepObjective
from ..model.penalized_program import PenalizedProgram, Term
from ..numerics.checks import FloatArray
from ..numerics.psd_cone import scaled_factor, symmetrize
from ..penalties.penalty import DIFFERENCE, Penalty, TermPoint
from .box_fista import BoxSearch
from .coarse import FEW, subsampled_objective
from .factor_newton import FaceSearch, Watch
from .newton import OVERFLOWED, STOPPED, Found, typical_metric
from .weights_newton import WeightsSearch

FEW_FOR_WEIGHTS = 150
"""Points of the small M-step that a diagonal metric starts from, if there are three times as many.
"""

COARSE, MOST_COARSE_STEPS = 1e-3, 30
"""How exactly that small M-step is solved, and in how many steps at most."""

MOST_ROUNDS = 60
"""Minimizations, at most, one for each set of multipliers."""

FIRST_TOLERANCE, FASTER = 1e-2, 0.1
"""How exactly the first minimization is made, and how much more exactly each following one."""

FIRST_WEIGHT = 0.01
"""The first rho, as a share of the curvature of f: the smoother the envelope, the faster Newton."""

SHRINKS = 0.25
"""A round has to shrink the distance to the constraints by this factor, or rho grows."""

GROWTH = 4.0
"""The factor that rho then grows by."""


@dataclass
class Envelope:
    """The Moreau envelope of a penalty, shifted by its multiplier.

    Attributes
    ----------
    block : Penalty
    multiplier : (m, m) array
        Y.
    rho : float
    """

    block: Penalty
    multiplier: FloatArray
    rho: float

    def __call__(self, A: FloatArray) -> TermPoint:
        """Value, gradient and second derivatives at A."""
        V = A + self.multiplier / self.rho
        near = self._prox(V)
        off = V - near
        value = self.block.value(near) if np.all(np.isfinite(near)) else np.nan
        value += 0.5 * self.rho * float(np.sum(off * off))
        value -= float(np.sum(np.square(self.multiplier))) / (2.0 * self.rho)
        scale = DIFFERENCE * (1.0 + float(np.linalg.norm(V)))

        def bend(D: FloatArray) -> FloatArray:
            h = scale / max(float(np.linalg.norm(D)), 1e-300)
            moved = self._prox(V + h * D)
            return np.asarray(self.rho * (D - (moved - near) / h))

        return TermPoint(value, self.rho * off, bend)

    def distance(self, A: FloatArray) -> float:
        """How far A is from the point at which the multiplier is a subgradient."""
        near = self._prox(A + self.multiplier / self.rho)
        return float(np.linalg.norm(A - near))

    def with_zeros(self, A: FloatArray) -> FloatArray:
        """The metric A with zeros where the proximal step has them, and PSD."""
        near = self._prox(A + self.multiplier / self.rho)
        A = np.where(near == 0.0, 0.0, A)
        lift = max(0.0, -float(np.linalg.eigvalsh(A)[0]))
        return np.asarray(A + (1.0 + 1e-6) * lift * np.eye(len(A)))

    def update(self, A: FloatArray) -> None:
        """Make the gradient at A the multiplier."""
        self.multiplier = symmetrize(self(A).gradient)

    def _prox(self, V: FloatArray) -> FloatArray:
        """The proximal step; NaN where V has overflowed, which no block has to expect."""
        if not np.all(np.isfinite(V)):
            return np.full_like(V, np.nan)
        return self.block.prox(V, 1.0 / self.rho)


@np.errstate(over="ignore", invalid="ignore")  # what overflows ends a minimization
def solve_penalized(
    objective: MStepObjective,
    tol: float,
    max_iter: int,
    start: FloatArray | None = None,
    deadline: float = np.inf,
    watch: Watch | None = None,
) -> Found:
    """Minimize F until the certified relative gap is within `tol`.

    The parameters are those of :func:`seraph_cvx.solvers.newton.newton`.
    """
    _require_solvable(objective)
    m = objective.pairs.n_features
    multipliers = [np.zeros((m, m))] * len(objective.penalties)
    if start is not None:
        gradient = objective.program.value_and_gradient(start)[1]
        multipliers = guess_multipliers(objective, start, gradient)
    taken = _built_in(objective)
    envelopes = {
        j: Envelope(block, multipliers[j], _first_weight(objective))
        for j, block in enumerate(objective.penalties)
        if not (block.is_smooth or block is taken)
    }
    terms: list[Term] = [block.at for block in objective.penalties if block.is_smooth]
    minimize = _minimizer(objective, [*terms, *envelopes.values()], max_iter, deadline)
    search = minimize.search
    A = _first_metric(objective, terms, deadline) if start is None else start
    best = Certificate(np.inf, -np.inf, "")
    seconds, last, is_stopped, has_overflowed = 0.0, np.inf, False, False
    inner_tol = FIRST_TOLERANCE if envelopes else tol
    for _ in range(MOST_ROUNDS):
        L = minimize(A, inner_tol)
        A = symmetrize(L @ L.T)
        distances = [envelope.distance(A) for envelope in envelopes.values()]
        away = float(np.max(distances, initial=0.0))
        for envelope in envelopes.values():
            envelope.update(A)
        clock = time.perf_counter()
        guesses = [
            envelopes[j].multiplier if j in envelopes else None
            for j in range(len(objective.penalties))
        ]
        found = certify_penalized(objective, L, tol, guesses)
        seconds += time.perf_counter() - clock
        better, other = (found, best) if found.primal_value <= best.primal_value else (best, found)
        best = better.with_bound_of(other)
        is_stopped = watch is not None and bool(watch(search.steps, best.primal_value))
        has_overflowed = not np.isfinite(away)
        if best.relative_gap <= tol or search.is_over or is_stopped or has_overflowed:
            break
        if away > SHRINKS * last:
            for envelope in envelopes.values():
                envelope.rho *= GROWTH
        last = away
        inner_tol = max(FASTER * inner_tol, 1e-3 * tol)
    word = f"gap closed by Newton's method at rank {best.factor.shape[1]}"
    metric = None
    for envelope in envelopes.values():
        if envelope.block.makes_zeros and best.relative_gap <= tol:
            metric = envelope.with_zeros(best.metric)
            exact = certify_penalized(objective, scaled_factor(metric), tol, guesses)
            exact = exact.with_bound_of(best)
            best, metric = (exact, metric) if exact.relative_gap <= tol else (best, None)
    is_done = best.relative_gap <= tol
    if not is_done:
        word = STOPPED if is_stopped else OVERFLOWED if has_overflowed else "iteration limit"
    return Found(best, is_done, search.steps, search.passes, seconds, word, metric=metric)


def _first_metric(
    objective: MStepObjective, smooth_terms: Sequence[Term], deadline: float
) -> FloatArray:
    """A metric to start from: of few of many points, without the penalties that are not smooth."""
    block = _built_in(objective)
    has_weights = block is not None and block.is_diagonal
    few = subsampled_objective(objective, FEW_FOR_WEIGHTS if has_weights else FEW)
    if few is None:
        return typical_metric(objective)
    L = _minimizer(few, smooth_terms, MOST_COARSE_STEPS, deadline)(typical_metric(few), COARSE)
    return symmetrize(L @ L.T)


@dataclass
class _ByFactor:
    """Minimizes by Newton's method on the factor, in whitened coordinates."""

    basis: WhitenedBasis
    search: FaceSearch

    def __call__(self, A: FloatArray, tol: float) -> FloatArray:
        """Descend from the metric A, and return a factor of the metric at the end."""
        self.search.tol, self.search.radius = tol, 0.0
        L = self.basis.inverse @ scaled_factor(A)
        return self.basis.matrix @ self.search.run(L[:, np.any(L != 0.0, axis=0)]).L


@dataclass
class _ByBox:
    """Minimizes by projected gradient steps between zero and an upper bound."""

    inverse: FloatArray
    search: BoxSearch

    def __call__(self, A: FloatArray, tol: float) -> FloatArray:
        """Descend from the metric A, and return a factor of the metric at the end."""
        self.search.tol = tol
        S = symmetrize(self.inverse @ A @ self.inverse)
        return self.search.root @ self.search.run(S)


@dataclass
class _ByWeights:
    """Minimizes by Newton's method on the weights of the features."""

    search: WeightsSearch

    def __call__(self, A: FloatArray, tol: float) -> FloatArray:
        """Descend from the metric A, and return a factor of the metric at the end."""
        self.search.tol = tol
        return np.diag(np.sqrt(self.search.run(np.diag(A))))


def _minimizer(
    objective: MStepObjective, terms: Sequence[Term], max_steps: int, deadline: float
) -> _ByFactor | _ByWeights | _ByBox:
    """Choose the method that minimizes f plus smooth terms."""
    block = _built_in(objective)
    if block is not None and block.is_diagonal:
        scale = np.diag(objective.pair_moment + objective.regularizer)
        scale = np.where(scale > 0.0, scale, 1.0)
        return _ByWeights(WeightsSearch(objective.program, scale, terms, 0.0, max_steps, deadline))
    if block is not None and block.upper_bound is not None:
        eigenvalues, vectors = np.linalg.eigh(block.upper_bound)
        root = symmetrize((vectors * np.sqrt(eigenvalues)) @ vectors.T)
        inverse = symmetrize((vectors / np.sqrt(eigenvalues)) @ vectors.T)
        in_bound = replace(
            objective.program,
            sums=objective.sums.in_coordinates(root),
            recession=symmetrize(root @ objective.recession_matrix @ root),
        )
        return _ByBox(inverse, BoxSearch(in_bound, root, terms, 0.0, max_steps, deadline))
    program = PenalizedProgram(objective.whitened_program, objective.basis.matrix, terms)
    return _ByFactor(objective.basis, FaceSearch(program, 0.0, max_steps, deadline))


def _built_in(objective: MStepObjective) -> Penalty | None:
    """The block that has its own method, so that it needs no multiplier."""
    for block in objective.penalties:
        if block.is_diagonal and objective.program.is_in_memory:
            return block
    nothing = np.zeros((objective.pairs.n_features,) * 2)
    for block in objective.penalties:
        if block.is_smooth and block.value(nothing) == np.inf:  # gradient steps may not reach zero
            return None
    return next((block for block in objective.penalties if block.upper_bound is not None), None)


def _first_weight(objective: MStepObjective) -> float:
    """A first rho: a share of the curvature of f along a metric of typical size."""
    size = float(np.linalg.norm(typical_metric(objective)))
    return max(FIRST_WEIGHT * objective.pair_total / max(size * size, 1e-300), 1e-300)


def _require_solvable(objective: MStepObjective) -> None:
    for block in objective.penalties:
        if not block.is_solvable:
            raise ValueError(
                f"{block!r} is neither smooth (is_smooth) nor has it a proximal step (prox), so "
                'solver="fista" cannot take it: use a conic solver, for instance '
                'solver="CLARABEL".'
            )
