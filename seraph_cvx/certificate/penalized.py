"""The certificate of an M-step with penalties: F(A) = f(A) + sum_j P_j(A).

For any Z_j with a finite conjugate, F(A) >= f(A) + <Z, A> - sum_j P_j*(Z_j) with Z = sum_j Z_j. So
a lower bound on F is one on an M-step whose regularizer is R + Z, less the conjugates. (r, Z) is
one dual point: feasible if R + sum_k c_k (q_k - r_k) v_k v_k' + Z is PSD, and else moved as a whole
toward (0, 0) or (q, 0), along which the conjugates are convex. The Z_j are chosen from the
gradient, or passed on by a solver; the bounds are proven either way.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import cast

import numpy as np

from ..engine.moments import Regularizer, spread_along
from ..model.m_step_family import DualCoordinates
from ..model.m_step_objective import MStepObjective
from ..numerics.checks import FloatArray
from ..numerics.psd_cone import symmetrize
from ..penalties.penalty import Multiplier, Penalty
from ..proof.rounding import FEW_ROUNDINGS, at_least, at_most, gamma
from ..proof.verified_psd import is_proven_positive_definite
from .certificate import Certificate, lower_bounds
from .pair_bounds import PairBounds, bound_pairs
from .written import LowerBound

MARGINS = (2.0, 16.0, 256.0, 4096.0)
"""How much more than the errors a matrix is lifted by, one try each: nothing hangs on them, since
each lifted matrix is proven, and the largest one is needed for features of uneven scale."""

SWEEPS = 3
"""How often the multipliers of several penalties are adapted to each other."""


def certify_penalized(
    objective: MStepObjective,
    L: FloatArray,
    enough: float = 0.0,
    guesses: Sequence[FloatArray | None] | None = None,
) -> Certificate:
    """Certify LL', made to satisfy the constraints, for an M-step with penalties.

    `guesses` are a solver's multipliers, one for each penalty, never trusted; those that are None
    are chosen from the gradient, as all are by default.
    """
    with np.errstate(all="ignore"):
        # a diagonal factor first: the others only shrink it
        for block in sorted(objective.penalties, key=lambda block: not block.is_diagonal):
            L = block.feasible_factor(L)
        L = np.ascontiguousarray(L[:, np.any(L != 0.0, axis=0)])
        bounds = bound_pairs(objective, L)
        if bounds is None:
            return Certificate(math.inf, -math.inf, "", L, objective=objective)
        penalties = [block.value_above(L) for block in objective.penalties]
        is_finite = all(map(math.isfinite, penalties))
        primal_value = at_most(bounds.primal_value, *penalties) if is_finite else math.inf
        best = Certificate(primal_value, -math.inf, "", L, objective=objective)
        for bound in _dual_bounds(objective, bounds, L, guesses):
            best = best.with_bound_of(bound)
            if best.relative_gap <= enough:
                break
    room = Penalty.__module__.rpartition(".")[0]
    own = [block for block in objective.penalties if not type(block).__module__.startswith(room)]
    return best.checked(" or ".join(map(repr, own)))


def _multipliers_at(
    objective: MStepObjective,
    bounds: PairBounds,
    L: FloatArray,
    guesses: Sequence[FloatArray | None] | None,
) -> Iterator[list[Multiplier]]:
    """Matrices Z_j for the penalties that may make a good dual point, one list after the other.

    They have a finite conjugate. What the matrix of the dual point lacks to be PSD, and `MARGINS`
    times more than its rounding errors, is taken up by a penalty that can.
    """
    blocks, coordinates = objective.penalties, _coordinates(objective)
    inverse = objective.basis.inverse / coordinates.scale
    tangent = coordinates.regularizer + bounds.labels.matrix - bounds.dual_matrix
    gradient = symmetrize(inverse.T @ tangent @ inverse)
    chosen = guess_multipliers(objective, symmetrize(L @ L.T), gradient, guesses)
    first = _all_finite(objective, chosen)
    if first is None:
        return
    identity = np.eye(len(inverse))
    takers = (j for j, Z in enumerate(chosen) if blocks[j].absorb(Z, identity) is not None)
    taker = next(takers, None)
    if taker is None:
        yield first
        return
    shifted = with_multipliers(bounds, coordinates, first)
    matrix = tangent + bounds.dual_matrix - shifted.dual_matrix
    size = np.maximum(1.0, np.abs(np.diag(matrix)))
    errors = _error(coordinates, shifted, size) + 8.0 * gamma(len(matrix) + FEW_ROUNDINGS) * float(
        np.max(np.sum(np.abs(matrix), axis=1))
    )
    eigenvalues, vectors = np.linalg.eigh(symmetrize(matrix))
    negative = (vectors * np.maximum(-eigenvalues, 0.0)) @ vectors.T
    for margin in MARGINS:
        missing = symmetrize(inverse.T @ (negative + margin * errors * np.diag(size)) @ inverse)
        if not np.all(np.isfinite(missing)):
            return
        lifted = [multiplier.matrix for multiplier in first]
        taken = blocks[taker].absorb(lifted[taker], missing)
        if taken is None:
            return
        lifted[taker] = taken
        multipliers = _all_finite(objective, lifted)
        if multipliers is not None:
            yield multipliers


def guess_multipliers(
    objective: MStepObjective,
    A: FloatArray,
    gradient: FloatArray,
    known: Sequence[FloatArray | None] | None = None,
) -> list[FloatArray]:
    """A matrix Z_j for each penalty that suits the metric A, at which f has this gradient.

    Those that are known are returned as they are.
    """
    blocks = objective.penalties
    known = [None] * len(blocks) if known is None else known
    guesses = [
        block.subgradient(A) if Z is None else Z for block, Z in zip(blocks, known, strict=True)
    ]
    unknown = [j for j, Z in enumerate(known) if Z is None]
    for _ in range(SWEEPS if len(unknown) > 1 else 1):
        for j in unknown:
            rest = gradient + sum(Z for i, Z in enumerate(guesses) if i != j)
            guesses[j] = blocks[j].guess(A, symmetrize(rest))
    return guesses


def _all_finite(
    objective: MStepObjective, matrices: Sequence[FloatArray]
) -> list[Multiplier] | None:
    """The multipliers of these matrices; None where one has no finite conjugate."""
    multipliers = []
    for block, Z in zip(objective.penalties, matrices, strict=True):
        multiplier = block.multiplier(Z) if np.all(np.isfinite(Z)) else None
        if multiplier is None or not math.isfinite(multiplier.conjugate):
            return None
        multipliers.append(multiplier)
    return multipliers


def _dual_bounds(
    objective: MStepObjective,
    bounds: PairBounds,
    L: FloatArray,
    guesses: Sequence[FloatArray | None] | None,
) -> Iterator[LowerBound]:
    """Lower bounds on F from the multipliers, one after the other; the last is that of Z = 0."""
    coordinates, m = _coordinates(objective), objective.pairs.n_features
    zero = _all_finite(objective, [np.zeros((m, m))] * len(objective.penalties))
    at_zero = math.inf if zero is None else at_most(*(one.conjugate for one in zero))
    for multipliers in _multipliers_at(objective, bounds, L, guesses):
        shifted = with_multipliers(bounds, coordinates, multipliers)
        matrices = tuple(multiplier.matrix for multiplier in multipliers)
        if _is_feasible(coordinates, shifted):
            yield LowerBound(shifted.tangent_value, "gradient", multipliers=matrices)
        elif math.isfinite(at_zero):
            moved = lower_bounds(objective, replace(shifted, penalties_at_zero=at_zero))
            yield from (replace(bound, multipliers=matrices) for bound in moved)
    if zero is not None:
        without = with_multipliers(bounds, coordinates, zero)
        matrices = tuple(multiplier.matrix for multiplier in zero)
        at_no = lower_bounds(objective, replace(without, penalties_at_zero=at_zero))
        yield from (replace(bound, multipliers=matrices) for bound in at_no)


def with_multipliers(
    bounds: PairBounds, coordinates: DualCoordinates, multipliers: Sequence[Multiplier]
) -> PairBounds:
    """The sums at the dual point (r, Z): Z is taken off the matrix of r, the conjugates off D."""
    T = coordinates.basis
    Z = symmetrize(np.sum([one.matrix for one in multipliers], axis=0))
    transformed, spread = Regularizer(0.0, Z).along(T)
    sizes = np.sum([np.abs(one.matrix) for one in multipliers], axis=0)
    spread = spread + gamma(len(multipliers) + 2) * spread_along(T, sizes)
    for one in multipliers:
        if one.slack is not None:
            spread = spread + spread_along(T, one.slack)
    return replace(
        bounds,
        tangent_value=at_least(bounds.tangent_value, *(-one.conjugate for one in multipliers)),
        dual_matrix=bounds.dual_matrix - transformed,
        dual_error=replace(bounds.dual_error, others=spread),
    )


def _is_feasible(coordinates: DualCoordinates, bounds: PairBounds) -> bool:
    """Whether R + N - S(r) + Z is proven PSD."""
    matrix = coordinates.regularizer + bounds.labels.matrix - bounds.dual_matrix
    D = np.diag(matrix)
    return bool(np.all(D > 0.0)) and is_proven_positive_definite(
        matrix, _error(coordinates, bounds, D) * D
    )


def _error(coordinates: DualCoordinates, bounds: PairBounds, D: FloatArray) -> float:
    """The error of R + N - S(r), relative to a diagonal."""
    return (
        coordinates.regularizer_error(D)
        + bounds.labels.error.relative_to(D)
        + bounds.dual_error.relative_to(D)
    )


def _coordinates(objective: MStepObjective) -> DualCoordinates:
    """The coordinates of all features, in which dual points with penalties are proven."""
    return cast(DualCoordinates, objective.geometry.dual_coordinates)
