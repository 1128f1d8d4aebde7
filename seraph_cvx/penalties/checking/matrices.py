"""Random matrices at which a penalty is tested: in its domain, outside it, and multipliers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from ...numerics.checks import FloatArray
from ...numerics.psd_cone import project, symmetrize
from ..penalty import Penalty

HALVINGS = 30
"""Steps of a bisection toward the edge of the domain, from inside."""

MOST_PROJECTIONS = 200
"""Projections onto the domain and the cone in turn, at most."""

SINGULAR = 1e-9
"""A least eigenvalue below this share of the norm counts as zero."""


@dataclass(frozen=True)
class SampleMatrices:
    """Matrices at which a penalty P is tested.

    Attributes
    ----------
    inside : list of (m, m) arrays
        Where P is finite: PSD and other ones, some of them on the edge of the domain, some large.
    outside : list of (m, m) arrays
        PSD matrices where P is infinite.
    anywhere : list of (m, m) arrays
        Symmetric ones, wherever they lie: what a proximal step starts from.
    """

    inside: list[FloatArray]
    outside: list[FloatArray]
    anywhere: list[FloatArray]


def sample_matrices(
    block: Penalty,
    n_features: int,
    rng: np.random.Generator,
    n_matrices: int,
    given: Sequence[ArrayLike] = (),
) -> SampleMatrices:
    """Draw matrices for a penalty; those outside its domain are also brought into it.

    By the proximal step where the block has one, by its `feasible_factor`, and along the segment
    to a matrix of the domain.

    Examples
    --------
    >>> from seraph_cvx.penalties import TraceBound
    >>> drawn = sample_matrices(TraceBound(1.0), 2, np.random.default_rng(0), 5)
    >>> max(round(float(np.trace(A)), 6) for A in drawn.inside), len(drawn.outside) > 0
    (1.0, True)
    """
    m = n_features
    anywhere = [symmetrize(np.asarray(A, dtype=np.float64)) for A in given]
    scale = _scale(block, m)
    anywhere += [np.zeros((m, m)), scale * np.eye(m)]
    for _ in range(n_matrices):
        size = scale * 10.0 ** rng.uniform(-1.0, 1.0)
        F = rng.normal(size=(m, int(rng.integers(1, m + 1))))
        diagonal = np.diag(rng.exponential(size=m))
        full = rng.normal(size=(m, m))
        anywhere += [size * F @ F.T, size * diagonal, size * full @ full.T]
        anywhere.append(size * symmetrize(rng.normal(size=(m, m))))
    anywhere = [A for A in anywhere if not _is_decided_by_rounding(block, A)]
    inside = [A for A in anywhere if math.isfinite(block.value(A))]
    base = inside[0] if inside else None
    brought: list[FloatArray] = []
    for A in anywhere:
        if block.has_prox:
            brought.append(symmetrize(np.asarray(block.prox(A, 1.0))))
        if math.isfinite(block.value(A)):
            continue
        w, vectors = np.linalg.eigh(A)
        if is_psd(A):
            L = block.feasible_factor(vectors * np.sqrt(np.maximum(w, 0.0)))
            brought.append(symmetrize(L @ L.T))
        if base is not None:
            brought += _toward_edge(block, base, A)
    if block.has_prox:
        brought += [_onto_both(block, A) for A in anywhere[: n_matrices // 2]]
    brought += [1e3 * A for A in inside[:n_matrices]]
    inside += [A for A in brought if math.isfinite(block.value(A))]
    outside = [A for A in anywhere if block.value(A) == math.inf and is_psd(A)]
    return SampleMatrices(_distinct(inside), outside, anywhere)


def sample_multipliers(
    block: Penalty, drawn: SampleMatrices, rng: np.random.Generator
) -> list[tuple[FloatArray, float]]:
    """Matrices Z with a finite conjugate, each with what the block says that this is.

    Subgradients, what a proximal step leaves, what `multiplier` and `guess` make of random
    matrices; multiples and means of these.
    """
    some = [drawn.anywhere[i] for i in rng.permutation(len(drawn.anywhere))[:10]]
    candidates = [symmetrize(block.subgradient(A)) for A in drawn.inside[:20]]
    if block.has_prox:
        left = [(A, A - block.prox(A, 1.0)) for A in some]
        candidates += [Z for A, Z in left if np.max(np.abs(Z)) > 1e-12 * np.max(np.abs(A))]
    if drawn.inside:
        near = drawn.inside[-1]
        candidates += [symmetrize(block.guess(near, A)) for A in some]
    candidates += [sign * A for A in some for sign in (1.0, -1.0)]
    finite = [Z for Z in candidates if math.isfinite(block.conjugate(Z))]
    finite += [factor * Z for Z in finite[:20] for factor in (-1.0, 0.5, 2.0, 10.0)]
    finite += [(Z + Y) / 2.0 for Z, Y in pairwise(finite[:20])]
    finite += [(1.0 - 1e-9) * Z for Z in candidates]  # where rounding led out of the domain
    pairs = [(Z, block.conjugate(Z)) for Z in _distinct(finite)]
    for A in some:
        found = block.multiplier(A)
        if found is not None:
            pairs.append((found.matrix, found.conjugate))
    return [(Z, value) for Z, value in pairs if math.isfinite(value)]


def _scale(block: Penalty, m: int) -> float:
    """The size of the multiple of I where the domain ends; 1 if it does not."""
    sizes = 2.0 ** np.arange(1, 40)
    if math.isfinite(block.value(np.eye(m))):
        return next((t for t in sizes if not math.isfinite(block.value(t * np.eye(m)))), 1.0)
    inside = (1.0 / t for t in sizes if math.isfinite(block.value(np.eye(m) / t)))
    if block.has_prox:
        return next(inside, float(np.linalg.norm(block.prox(np.eye(m), 1.0)))) or 1.0
    return next(inside, 1.0)


def _toward_edge(block: Penalty, base: FloatArray, A: FloatArray) -> list[FloatArray]:
    """The last matrix of the domain on the way from `base` to A, and one half way to it."""
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        is_in = math.isfinite(block.value(base + middle * (A - base)))
        low, high = (middle, high) if is_in else (low, middle)
    return [base + share * low * (A - base) for share in (1.0, 0.5)] if low > 1e-9 else []


def _onto_both(block: Penalty, A: FloatArray) -> FloatArray:
    """A matrix of the domain that is PSD, if there is one, by projections in turn."""
    for _ in range(MOST_PROJECTIONS):
        A = symmetrize(np.asarray(block.prox(project(A), 1.0)))
        if is_psd(A):
            break
    return A


def _is_decided_by_rounding(block: Penalty, A: FloatArray) -> bool:
    """Whether A is singular and the domain ends there, as that of log det does."""
    shift = SINGULAR * float(np.linalg.norm(A)) * np.eye(len(A))
    if not np.any(shift) or abs(float(np.linalg.eigvalsh(A)[0])) > shift[0, 0]:
        return False
    return math.isfinite(block.value(A + shift)) and not math.isfinite(block.value(A - shift))


def is_psd(A: FloatArray) -> bool:
    """Whether A is PSD but for rounding."""
    return bool(np.linalg.eigvalsh(A)[0] >= -SINGULAR * np.linalg.norm(A))


def _distinct(matrices: list[FloatArray]) -> list[FloatArray]:
    return list({A.tobytes(): A for A in matrices}.values())
