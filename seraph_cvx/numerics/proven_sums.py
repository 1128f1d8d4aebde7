"""Sums over pairs with a bound on their rounding errors, and what can be proven from them.

The points are the doubles that were given. A difference v = x_i - x_j is rounded once, so the z
that the machine has for T'v is off by e with |e| <= g' zhat, entry by entry, g' = gamma(m + 1),
zhat = |T|'|v|. For any x, and any c > 0, r the number of columns of T,

    |x'(T'v v'T - zz')x| <= 2 |e'x| |z'x| + (e'x)^2 <= c (z'x)^2 + (1 + 1/c) (e'x)^2,
    (z'x)^2 <= r * sum_a z_a^2 x_a^2,    (e'x)^2 <= r g'^2 * sum_a zhat_a^2 x_a^2,

and the sum of N weighted zz' is off by no more than gamma(N + ..) r * sum_k |w_k| diag(z_k^2). So a
matrix of weighted pairs is off by less than a diagonal one. Scalars are summed by `math.fsum`,
which rounds once, and carried on as fractions. `seraph_cvx/numerics/rounding.py` says what is
assumed of the machine.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import scipy  # imports its parts when they are first used

from .checks import FloatArray, IntArray
from .psd_cone import symmetrize
from .rounding import (
    FEW_ROUNDINGS,
    FUNCTION_ERROR,
    SECOND_ORDER,
    UNDERFLOW_ENTRY,
    UNIT,
    gamma,
)
from .verified_psd import is_proven_positive_definite

MARGINS = tuple(2.0**-k for k in (46, 40, 34, 28, 22, 16, 10, 4))
"""How far below the boundary of the cone a proof is tried, in turn."""

FAINTEST = 1e-15
"""Coordinates are not stretched beyond what this share of the largest eigenvalue asks for."""

DEPENDENT = 1e-9
"""A feature that others explain but for this share of it may be a combination of them."""

FINEST = 2.0**-20
"""Coefficients of such a combination are looked for among the multiples of this."""

TINY = float(np.finfo(np.float64).tiny)

FURTHEST = 2.0**500
"""No step is longer."""


def sum_bounds(terms: FloatArray, roundings: int = 0) -> tuple[Fraction, Fraction]:
    """Bound a sum of terms, each rounded at most this many times.

    Raises OverflowError where a term is not finite.
    """
    if not np.all(np.isfinite(terms)):
        raise OverflowError("a term of a sum is not finite")
    middle = Fraction(math.fsum(terms))
    error = Fraction(math.fsum(np.abs(terms))) * Fraction(gamma(roundings + 2))
    error += Fraction(UNDERFLOW_ENTRY) * len(terms)
    return middle - error, middle + error


def squared_lengths(L: FloatArray, V: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Bound the squared length v'LL'v of each difference v, given rounded in a row of V."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        Y = V @ L
        squares = np.sum(np.square(Y), axis=1)
        e = gamma(len(L) + 4) * (np.abs(V) @ np.abs(L))
        error = np.sum(e * (2.0 * np.abs(Y) + e), axis=1)
        error = SECOND_ORDER * (error + gamma(L.shape[1] + 8) * squares) + UNDERFLOW_ENTRY
        known = np.isfinite(error)
        lower = np.where(known, np.maximum(squares - error, 0.0), 0.0)
        return lower, np.where(known, squares + error, np.inf)


def moment_along(
    T: FloatArray,
    V: FloatArray,
    weights: FloatArray,
    ridge: float = 0.0,
    sizes: FloatArray | None = None,
    roundings: int = 0,
) -> tuple[FloatArray, FloatArray]:
    """A weighted second moment in the coordinates T, and a diagonal bound on its error.

    The matrix is T'(sum_k w_k v_k v_k' + ridge * I)T.
    """
    N, (m, r) = len(V), T.shape
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        Z, lengths, stretch = V @ T, np.abs(V) @ np.abs(T), np.abs(T)
        size = np.abs(weights) if sizes is None else sizes
        matrix = symmetrize((Z * weights[:, None]).T @ Z + ridge * (T.T @ T))
        summed = size @ np.square(Z) + ridge * np.sum(np.square(stretch), axis=0)
        rounded = gamma(m + 4) ** 2 * (size @ np.square(lengths))
        c = np.sqrt(np.max(rounded, initial=TINY) / np.max(summed, initial=TINY))
        slack = gamma(m + N + roundings + FEW_ROUNDINGS) + c
        error = r * SECOND_ORDER * (slack * summed + (1.0 + 1.0 / c) * rounded)
        largest = max(np.max(lengths, initial=1.0), np.max(stretch, initial=1.0))
        underflow = UNDERFLOW_ENTRY * (1.0 + ridge + float(np.sum(size))) * largest
        return matrix, np.asarray(error + underflow)


def independent_features(points: FloatArray) -> IntArray:
    """Features of which, among these points, every other one is an exact combination.

    A sum of w v v' over pairs of the points is PSD if it is so on these features: v = E'u for the u
    of these and one E. Candidates are found in floating point and kept out only if the equation is
    true of the doubles, by fractions: constant features, copies, columns that add up to one.
    """
    vary = np.flatnonzero(np.ptp(points, axis=0))
    centered = points[:, vary] - points[0, vary]
    scale = np.max(np.abs(centered), axis=0, initial=0.0)
    if not vary.size or not np.all(np.isfinite(scale)):
        return vary
    R, order = scipy.linalg.qr(centered / scale, mode="r", pivoting=True)
    lengths = np.abs(np.diag(R))
    rank = int(np.sum(lengths > DEPENDENT * lengths[0]))
    basis, rest = order[:rank], order[rank:]
    found = np.linalg.lstsq((centered / scale)[:, basis], (centered / scale)[:, rest])[0]
    found = np.round(found * (scale[rest] / scale[basis, None]) / FINEST) * FINEST
    free = [
        b
        for b, combination in zip(rest, found.T, strict=True)
        if not _is_combination(points[:, vary], int(b), basis, combination)
    ]
    return np.asarray(np.sort(vary[np.concatenate([basis, np.array(free, dtype=np.int64)])]))


def _is_combination(
    points: FloatArray, feature: int, basis: IntArray, combination: FloatArray
) -> bool:
    """Whether x_i - x_0 has, in this feature, that combination of the basis; without rounding."""
    terms = [(a, Fraction(c)) for a, c in zip(basis, combination.tolist(), strict=True) if c]
    first, *others = points.tolist()

    def moved(x: list[float], a: int) -> Fraction:
        return Fraction(x[a]) - Fraction(first[a])

    return all(moved(x, feature) == sum(c * moved(x, a) for a, c in terms) for x in others)


def unit_basis(moment: FloatArray) -> FloatArray:
    """A square T with T' moment T = I, nearly, for `moment_along`; no proof depends on it."""
    lengths = np.sqrt(np.maximum(np.diag(moment), 0.0))
    scale = 1.0 / np.where(lengths > 0.0, lengths, 1.0)
    eigenvalues, vectors = np.linalg.eigh(moment * scale[:, None] * scale)
    largest = np.max(eigenvalues, initial=0.0) or 1.0
    return np.asarray(
        scale[:, None] * vectors / np.sqrt(np.maximum(eigenvalues, FAINTEST * largest))
    )


def proven_step(
    M: FloatArray,
    M_error: FloatArray,
    S: FloatArray,
    S_error: FloatArray,
    furthest: float = FURTHEST,
) -> float | None:
    """The largest tau in (0, furthest], nearly, with M - tau*S proven positive definite, or None.

    M and S are off by no more than diagonal matrices, as `moment_along` returns them.
    """
    if not len(M):
        return furthest
    if not all(np.all(np.isfinite(x)) for x in (M, M_error, S, S_error)):
        return None
    try:
        spectrum = scipy.linalg.eigvalsh(S + np.diag(S_error), M - np.diag(M_error))
    except np.linalg.LinAlgError:  # not even nearly positive definite
        return None
    step = min(furthest, 1.0 / max(float(spectrum[-1]), 1.0 / FURTHEST))
    for margin in (0.0, *MARGINS) if step == furthest else MARGINS:
        tau = step * (1.0 - margin)
        with np.errstate(over="ignore", invalid="ignore"):
            if is_proven_positive_definite(M - tau * S, M_error + tau * S_error):
                return tau
    return None


def log_det_from_below(T: FloatArray, matrix: FloatArray, error: FloatArray) -> Fraction | None:
    """A lower bound on log det B, given a triangular T and T'BT = `matrix` up to diag(`error`).

    If T'BT - (1 - t) I is positive definite, then det B >= (1 - t)^m / det(T)^2. None where that is
    not proven for any t < 1: B may be singular then.
    """
    m, diagonal = len(T), np.diag(matrix)
    for t in MARGINS:
        moved = matrix.copy()
        np.fill_diagonal(moved, diagonal - (1.0 - t))
        if is_proven_positive_definite(moved, error + 4.0 * UNIT * (np.abs(diagonal) + 1.0)):
            logarithms = sum_bounds(-2.0 * np.log(np.abs(np.diag(T))), FUNCTION_ERROR)[0]
            return logarithms - m * Fraction(t) * (1 + Fraction(t))
    return None
