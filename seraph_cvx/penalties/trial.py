"""Random matrices, in and outside the domain of a penalty, at which it is tested."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

from ..numerics.checks import FloatArray
from ..numerics.psd_cone import project, scaled_factor, symmetrize
from .penalty import Penalty

MOST_PROJECTIONS = 200
"""Projections onto the domain and the cone in turn, at most."""

SINGULAR = 1e-9
"""A least eigenvalue below this share of the norm counts as zero."""


class Trial:
    """A block P, the matrices that it is tested at, and how large its values are.

    `inside` are matrices where P is finite: PSD and other ones, some of them on the edge of the
    domain, some large; `outside` PSD ones where P is infinite; `anywhere` symmetric ones, wherever
    they lie. `multipliers` are matrices Z with a finite conjugate, each with that.
    """

    def __init__(
        self,
        block: Penalty,
        m: int,
        rng: np.random.Generator,
        n_matrices: int,
        given: Sequence[ArrayLike],
    ) -> None:
        self.block, self.m, self.rng = block, m, rng
        self.anywhere = [symmetrize(np.asarray(A, dtype=np.float64)) for A in given]
        self.anywhere += [A for A in self._draw(n_matrices) if not self._is_on_edge(A)]
        inside = [A for A in self.anywhere if self.is_finite(A)]
        moved = [A for A in self._move_inside(inside, n_matrices) if self.is_finite(A)]
        self.inside = _distinct([*inside, *moved])
        self.values = [float(block.value(A)) for A in self.inside]
        self.outside = [A for A in self.anywhere if block.value(A) == math.inf and is_psd(A)]
        self.multipliers = self._sample_multipliers()
        self.typical = float(np.median(np.abs(self.values))) if self.values else 0.0
        norms = np.array([0.0, *map(norm, self.inside)])
        self.typical_size = float(np.max(norms[norms <= 100.0 * np.median(norms)]))

    def is_finite(self, A: FloatArray) -> bool:
        return math.isfinite(self.block.value(A))

    def couples(self) -> list[tuple[FloatArray, float, FloatArray, float]]:
        """Pairs of matrices of the domain, with their values."""
        inside, values, n = self.inside, self.values, len(self.inside)
        drawn = self.rng.integers(0, max(1, n), size=(5 * n, 2))
        return [(inside[i], values[i], inside[j], values[j]) for i, j in drawn if i != j]

    def _draw(self, n_matrices: int) -> Iterator[FloatArray]:
        """Matrices of about the size at which the domain ends: low rank, diagonal, PSD, any."""
        m, rng = self.m, self.rng
        identity, sizes = np.eye(m), 2.0 ** np.arange(-39, 40)
        finite = [t for t in sizes if self.is_finite(t * identity)] or [1.0, sizes[-1]]
        scale = max(1.0, finite[0]) if finite[-1] == sizes[-1] else 2.0 * finite[-1]
        yield np.zeros((m, m))
        yield scale * identity
        for _ in range(n_matrices):
            size = scale * 10.0 ** rng.uniform(-1.0, 1.0)
            F, full = (rng.normal(size=(m, k)) for k in (int(rng.integers(1, m + 1)), m))
            diagonal = np.diag(rng.exponential(size=m))
            kinds = F @ F.T, diagonal, full @ full.T, symmetrize(rng.normal(size=(m, m)))
            yield from (size * A for A in kinds)

    def _is_on_edge(self, A: FloatArray) -> bool:
        """Whether rounding decides if A is in the domain, as that of log det if A is singular."""
        shift = SINGULAR * norm(A) * np.eye(len(A))
        return self.is_finite(A + shift) != self.is_finite(A - shift)

    def _move_inside(self, inside: list[FloatArray], n_matrices: int) -> Iterator[FloatArray]:
        """Bring matrices into the domain: by the block's methods, and along segments."""
        for A in self.anywhere:
            if self.block.has_prox:
                yield self._prox(A)
            if not self.is_finite(A) and is_psd(A):
                L = self.block.feasible_factor(scaled_factor(A))
                yield symmetrize(L @ L.T)
            if not self.is_finite(A) and inside:
                yield from (inside[0] + t * (A - inside[0]) for t in (0.5, 0.1, 0.01))
        for A in self.anywhere[: n_matrices // 2] if self.block.has_prox else []:
            for _ in range(MOST_PROJECTIONS):  # onto the cone and the domain in turn
                A = self._prox(project(A))
                if is_psd(A):
                    break
            yield A
        yield from (1e3 * A for A in inside[:n_matrices])

    def _prox(self, A: FloatArray) -> FloatArray:
        return symmetrize(np.asarray(self.block.prox(A, 1.0)))

    def _sample_multipliers(self) -> list[tuple[FloatArray, float]]:
        """Multiples of subgradients, of what a proximal step leaves, of guesses, of any matrices.

        And what `multiplier` makes of some.
        """
        block, edge = self.block, 1.0 - 1e-9  # where rounding led out of the domain
        chosen = [self.anywhere[i] for i in self.rng.permutation(len(self.anywhere))[:10]]
        candidates = [block.subgradient(A) for A in self.inside[:20]] + chosen
        if block.has_prox:
            left = [(A, A - block.prox(A, 1.0)) for A in chosen]
            candidates += [Z for A, Z in left if norm(Z) > 1e-12 * norm(A)]
        if self.inside:
            candidates += [block.guess(self.inside[-1], A) for A in chosen]
        multiples = [
            t * symmetrize(Z) for Z in candidates for t in (-1.0, 0.5, edge, 1.0, 2.0, 9.0)
        ]
        pairs = [(Z, block.conjugate(Z)) for Z in _distinct(multiples)]
        pairs += [found[:2] for found in map(block.multiplier, chosen) if found is not None]
        return [(Z, value) for Z, value in pairs if math.isfinite(value)]


def norm(A: FloatArray) -> float:
    return float(np.linalg.norm(A))


def inner(Z: FloatArray, A: FloatArray) -> float:
    return float(np.sum(Z * A))


def is_psd(A: FloatArray) -> bool:
    """Whether A is PSD but for rounding."""
    return bool(np.linalg.eigvalsh(A)[0] >= -SINGULAR * norm(A))


def _distinct(matrices: list[FloatArray]) -> list[FloatArray]:
    return list({A.tobytes(): A for A in matrices}.values())
