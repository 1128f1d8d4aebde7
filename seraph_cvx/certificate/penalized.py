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

import numpy as np

from ..model.dual_coordinates import DualCoordinates
from ..model.m_step_objective import MStepObjective
from ..numerics.checks import FloatArray
from ..numerics.psd_cone import symmetrize
from ..numerics.rounding import FEW_ROUNDINGS, at_least, at_most, gamma
from ..numerics.verified_psd import is_proven_positive_definite
from ..penalties.penalty import Multiplier
from ..penalties.regularizer import Regularizer, spread_along
from .certificate import Certificate, LowerBound, lower_bounds
from .pair_bounds import PairBounds, bound_pairs

MARGINS = (2.0, 16.0, 256.0, 4096.0)
"""How much more than the errors a matrix is lifted by, one try each."""

SWEEPS = 3
"""How often the multipliers of several penalties are adapted to each other."""


def certify_penalized(
    objective: MStepObjective,
    L: FloatArray,
    enough: float = 0.0,
    guesses: Sequence[FloatArray | None] | None = None,
) -> Certificate:
    """Certify LL', made to satisfy the constraints, for an M-step with penalties.

    Parameters
    ----------
    objective : MStepObjective
    L : (m, rho) array
    enough : float
        Look no further once the relative gap is so small.
    guesses : sequence of (m, m) arrays or None, optional
        A solver's multipliers, one for each penalty, never trusted; those that are None are chosen
        from the gradient, as all are by default.
    """
    with np.errstate(all="ignore"):
        L = make_feasible(objective, L)
        bounds = bound_pairs(objective, L)
        if bounds is None:
            return Certificate(math.inf, -math.inf, "", L)
        penalties = [block.value_above(L) for block in objective.penalties]
        best = Certificate(
            at_most(bounds.primal_value, *penalties)
            if all(map(math.isfinite, penalties))
            else math.inf,
            -math.inf,
            "",
            L,
        )
        for found in _dual_bounds(objective, bounds, L, guesses):
            best = found.improve(best)
            if best.relative_gap <= enough:
                break
    return best.checked()


def best_multipliers(
    objective: MStepObjective, L: FloatArray, margins: Sequence[float] = MARGINS
) -> Iterator[list[Multiplier]]:
    """Matrices Z_j for the penalties at LL', one list after the other; at last Z_j = 0."""
    bounds = bound_pairs(objective, L)
    if bounds is not None:
        yield from multipliers_at(objective, bounds, L, None, margins)
    nothing = _all_finite(objective, [np.zeros((len(L), len(L)))] * len(objective.penalties))
    if nothing is not None:
        yield nothing


def make_feasible(objective: MStepObjective, L: FloatArray) -> FloatArray:
    """A factor near L for which LL' satisfies the constraints among the penalties."""
    for block in objective.penalties:  # a diagonal factor first: the others only shrink it
        if block.grows_off_diagonal:
            L = block.feasible_factor(L)
    for block in objective.penalties:
        if not block.grows_off_diagonal:
            L = block.feasible_factor(L)
    return np.ascontiguousarray(L[:, np.any(L != 0.0, axis=0)])


def multipliers_at(
    objective: MStepObjective,
    bounds: PairBounds,
    L: FloatArray,
    guesses: Sequence[FloatArray | None] | None,
    margins: Sequence[float] = MARGINS,
) -> Iterator[list[Multiplier]]:
    """Matrices Z_j for the penalties that may make a good dual point, one list after the other.

    The matrix of the dual point is lifted by more than its rounding errors: by `margins` times.
    """
    coordinates = _coordinates(objective)
    inverse = objective.basis.inverse / coordinates.scale
    tangent = coordinates.regularizer + bounds.labels.matrix - bounds.pull
    gradient = symmetrize(inverse.T @ tangent @ inverse)
    chosen = guess_multipliers(objective, symmetrize(L @ L.T), gradient, guesses)
    yield from _lifted(objective, bounds, chosen, tangent, inverse, margins)


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
    found = [
        block.subgradient(A) if Z is None else Z for block, Z in zip(blocks, known, strict=True)
    ]
    open_ones = [j for j, Z in enumerate(known) if Z is None]
    for _ in range(SWEEPS if len(open_ones) > 1 else 1):
        for j in open_ones:
            rest = gradient + sum(Z for i, Z in enumerate(found) if i != j)
            found[j] = blocks[j].guess(A, symmetrize(rest))
    return found


def _lifted(
    objective: MStepObjective,
    bounds: PairBounds,
    chosen: list[FloatArray],
    tangent: FloatArray,
    inverse: FloatArray,
    margins: Sequence[float],
) -> Iterator[list[Multiplier]]:
    """The chosen matrices with a finite conjugate, and what is missing taken up by a block."""
    blocks, coordinates = objective.penalties, _coordinates(objective)
    first = _all_finite(objective, chosen)
    taker = next(
        (
            j
            for j, block in enumerate(blocks)
            if block.absorb(chosen[j], np.eye(len(inverse))) is not None
        ),
        None,
    )
    if first is None or taker is None:
        if first is not None:
            yield first
        return
    shifted = with_multipliers(bounds, coordinates, first)
    matrix = tangent + bounds.pull - shifted.pull
    size = np.maximum(1.0, np.abs(np.diag(matrix)))
    errors = (
        coordinates.regularizer_error(size)
        + bounds.labels.error.relative_to(size)
        + shifted.pull_error.relative_to(size)
        + 8.0 * gamma(len(matrix) + FEW_ROUNDINGS) * float(np.max(np.sum(np.abs(matrix), axis=1)))
    )
    eigenvalues, vectors = np.linalg.eigh(symmetrize(matrix))
    negative = (vectors * np.maximum(-eigenvalues, 0.0)) @ vectors.T
    for margin in margins:
        missing = symmetrize(inverse.T @ (negative + margin * errors * np.diag(size)) @ inverse)
        lifted = [found.matrix for found in first]
        taken = blocks[taker].absorb(lifted[taker], missing)
        if taken is None:
            return
        lifted[taker] = taken
        found = _all_finite(objective, lifted)
        if found is not None:
            yield found


def _all_finite(
    objective: MStepObjective, matrices: Sequence[FloatArray]
) -> list[Multiplier] | None:
    found = []
    for block, Z in zip(objective.penalties, matrices, strict=True):
        made = block.multiplier(Z) if np.all(np.isfinite(Z)) else None
        if made is None or not math.isfinite(made.conjugate):
            return None
        found.append(made)
    return found


def _dual_bounds(
    objective: MStepObjective,
    bounds: PairBounds,
    L: FloatArray,
    guesses: Sequence[FloatArray | None] | None,
) -> Iterator[LowerBound]:
    """Lower bounds on F from the multipliers, one after the other; the last is that of Z = 0."""
    coordinates = _coordinates(objective)
    nothing = _all_finite(objective, [np.zeros((len(L), len(L)))] * len(objective.penalties))
    at_zero = math.inf if nothing is None else at_most(*(found.conjugate for found in nothing))
    for found in multipliers_at(objective, bounds, L, guesses):
        shifted = with_multipliers(bounds, coordinates, found)
        if _is_feasible(coordinates, shifted):
            yield LowerBound(shifted.tangent_value, "gradient")
        elif math.isfinite(at_zero):
            yield from lower_bounds(objective, replace(shifted, penalties_at_zero=at_zero))
    if nothing is not None:
        without = with_multipliers(bounds, coordinates, nothing)
        yield from lower_bounds(objective, replace(without, penalties_at_zero=at_zero))


def with_multipliers(
    bounds: PairBounds, coordinates: DualCoordinates, found: Sequence[Multiplier]
) -> PairBounds:
    """The sums at the dual point (r, Z): Z is taken off the matrix of r, the conjugates off D."""
    T = coordinates.frame.basis
    Z = symmetrize(np.sum([one.matrix for one in found], axis=0))
    turned, spread = Regularizer(0.0, Z).along(T)
    sizes = np.sum([np.abs(one.matrix) for one in found], axis=0)
    spread = spread + gamma(len(found) + 2) * spread_along(T, sizes)
    for one in found:
        if one.slack is not None:
            spread = spread + spread_along(T, one.slack)
    return replace(
        bounds,
        tangent_value=at_least(bounds.tangent_value, *(-one.conjugate for one in found)),
        pull=bounds.pull - turned,
        pull_error=replace(bounds.pull_error, others=spread),
    )


def _is_feasible(coordinates: DualCoordinates, bounds: PairBounds) -> bool:
    """Whether R + N - S(r) + Z is proven PSD."""
    matrix = coordinates.regularizer + bounds.labels.matrix - bounds.pull
    D = np.diag(matrix)
    if not np.all(D > 0.0):
        return False
    error = (
        coordinates.regularizer_error(D)
        + bounds.labels.error.relative_to(D)
        + bounds.pull_error.relative_to(D)
    )
    return is_proven_positive_definite(matrix, error * D)


def _coordinates(objective: MStepObjective) -> DualCoordinates:
    """The coordinates of all features, in which dual points with penalties are proven."""
    coordinates = objective.geometry.dual_coordinates
    if coordinates is None:
        raise AssertionError("With penalties the coordinates span all features.")
    return coordinates
