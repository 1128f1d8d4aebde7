"""Tests at random matrices that the methods of a penalty agree."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ..numerics.checks import FloatArray, check_count
from ..numerics.psd_cone import scaled_factor, symmetrize
from .penalty import Penalty

NO_MATRIX = "no PSD matrix with a finite value was found among the random ones"


@dataclass(frozen=True)
class PenaltyReport:
    """What :func:`check_penalty` found: ``print`` shows a line for each claim.

    Attributes
    ----------
    block : Penalty
    n_features : int
    passed : tuple of str
        The claims that hold at all matrices.
    failures : dict of str
        The claims that do not, each with a counterexample, or why it could not be tested.

    Examples
    --------
    >>> from seraph_cvx.penalties import Ridge, check_penalty
    >>> class Mistaken(Ridge):
    ...     def conjugate(self, Z):
    ...         return 0.0
    >>> report = check_penalty(Mistaken(2.0), n_features=2)
    >>> report.holds, list(report.failures)
    (False, ['conjugate: P(A) + P*(Z) >= <Z, A>, with equality at a subgradient'])
    """

    block: Penalty
    n_features: int
    passed: tuple[str, ...]
    failures: dict[str, str]

    @property
    def holds(self) -> bool:
        """Whether everything could be tested, and nothing failed."""
        return not self.failures

    def __str__(self) -> str:
        verdict = "holds" if self.holds else "does NOT hold"
        head = f"{self.block!r} {verdict}, at random {self.n_features} x {self.n_features} matrices"
        lines = [f"passed       {claim}" for claim in self.passed]
        lines += [f"FAILED       {claim}\n{shown}" for claim, shown in self.failures.items()]
        return "\n".join([head, *lines])


def check_penalty(
    block: Penalty,
    n_features: int | None = None,
    n_matrices: int = 10,
) -> PenaltyReport:
    """Test, at random matrices, the properties that certificates and solvers rely on.

    These are: `value` is convex with this `subgradient`, `conjugate` is its conjugate, and `prox`,
    if the block has it, is the proximal step. Tests find mistakes; they prove nothing. A mistake in
    `expression` or `constraints` shows in the certificate of the solution.

    Parameters
    ----------
    block : Penalty
        A block of this package, or one of your own class.
    n_features : int, optional
        The size of the matrices; by default that of the block's own arrays, or 3.
    n_matrices : int
        How many random matrices of each kind.

    Returns
    -------
    PenaltyReport
        ``report.holds`` is the verdict; ``print(report)`` shows a line for each claim, and for one
        that failed the counterexample.

    Examples
    --------
    >>> from seraph_cvx.penalties import Ridge
    >>> print(check_penalty(Ridge(2.0)))
    Ridge(2) holds, at random 3 x 3 matrices
    passed       value: finite at some PSD matrices, never NaN or -inf
    passed       subgradient: P(B) >= P(A) + <Z, B - A>
    passed       conjugate: P(A) + P*(Z) >= <Z, A>, with equality at a subgradient
    passed       prox: minimizes P(A) + ||A - Y||^2 / (2 step)
    """
    rng = np.random.default_rng(0)
    shapes = [value.shape for value in vars(block).values() if isinstance(value, np.ndarray)]
    m = max(filter(None, shapes), key=len, default=(3,))[-1]
    m = m if n_features is None else check_count(n_features, "n_features")
    block = block.for_points(rng.normal(size=(30, m)))
    drawn = list(_draw(block, m, rng, n_matrices))
    inside = [A for A in drawn if math.isfinite(block.value(A))]
    passed, failures = [], {}
    for claim, counterexamples in _CLAIMS.items():
        if claim.startswith("prox") and type(block).prox is Penalty.prox:
            continue
        found = next(filter(None, counterexamples(block, inside, drawn)), "")
        if not inside:
            found = found or NO_MATRIX
        if found:
            failures[claim] = found
        else:
            passed.append(claim)
    return PenaltyReport(block, m, tuple(passed), failures)


def _counterexample(left: float, right: float, size: float, **at: object) -> str:
    """What contradicts left >= right, to a millionth of what was computed; or ""."""
    slack = 1e-6 * (abs(left) + abs(right) + size) if math.isfinite(left + right + size) else 0.0
    if left >= right - slack:
        return ""
    shown = [f"{name} = {np.array2string(np.asarray(A), precision=9)}" for name, A in at.items()]
    return "\n".join([f"{left:.9g} is below {right:.9g} where", *shown])


def _draw(block: Penalty, m: int, rng: np.random.Generator, n: int) -> Iterator[FloatArray]:
    """Matrices of the size of the domain: PSD, diagonal, any, zero; and the nearest inside."""
    identity = np.eye(m)
    finite = [t for t in 2.0 ** np.arange(-39, 40) if math.isfinite(block.value(t * identity))]
    scale = min(finite, key=lambda t: abs(math.log(t)), default=1.0)
    for _ in range(n):
        F = rng.normal(size=(m, m))
        for A in (F @ F.T, np.diag(rng.exponential(size=m)), symmetrize(F), 0.0 * F):
            A = scale * 10.0 ** rng.uniform(-1.0, 1.0) * A
            yield A
            if type(block).prox is not Penalty.prox:
                yield symmetrize(np.asarray(block.prox(A, scale)))
            if not math.isfinite(block.value(A)) and np.linalg.eigvalsh(A)[0] >= 0.0:
                L = block.feasible_factor(scaled_factor(A))
                yield symmetrize(L @ L.T)


def _values(block: Penalty, inside: list[FloatArray], drawn: list[FloatArray]) -> Iterator[str]:
    """That no value is NaN or minus infinity, and some PSD matrix has a finite one."""
    yield from (_counterexample(block.value(A), -1e300, 0.0, A=A) for A in drawn)
    if not any(np.linalg.eigvalsh(A)[0] >= -1e-9 * np.linalg.norm(A) for A in inside):
        yield NO_MATRIX


def _tangents(block: Penalty, inside: list[FloatArray], drawn: list[FloatArray]) -> Iterator[str]:
    """The subgradient inequality at each two matrices; so that P is convex."""
    for A in inside:
        Z, value = np.asarray(block.subgradient(A)), block.value(A)
        for B in inside:
            size = abs(value) + _norm(Z) * _norm(B - A)
            tangent = value + float(np.sum(Z * (B - A)))
            yield _counterexample(block.value(B), tangent, size, A=A, B=B, Z=Z)


def _conjugates(block: Penalty, inside: list[FloatArray], drawn: list[FloatArray]) -> Iterator[str]:
    """Fenchel's inequality at each matrix, with equality at its subgradient."""
    has_other = False
    for A in inside:
        # at the edge of where the conjugate is finite, rounding may lead beyond it
        Z, value = (1.0 - 1e-9) * np.asarray(block.subgradient(A)), block.value(A)
        size = abs(value) + _norm(Z) * _norm(A)
        yield _counterexample(float(np.sum(Z * A)), value + block.conjugate(Z), size, A=A, Z=Z)
        guesses = (block.multiplier(block.guess(A, symmetrize(B))) for B in drawn[:10])
        multipliers = [(one.matrix, one.conjugate) for one in guesses if one is not None]
        others = [*(t * Z for t in (-1.0, 0.5, 1.0, 9.0)), *drawn[:10]]
        for Z, conjugate in (*multipliers, *((other, block.conjugate(other)) for other in others)):
            has_other |= math.isfinite(conjugate) and bool(np.any(Z))
            size = abs(value) + abs(conjugate) + _norm(Z) * _norm(A)
            yield _counterexample(value + conjugate, float(np.sum(Z * A)), size, A=A, Z=Z)
    if not has_other:
        yield "no Z but zero was found with a finite conjugate: write `multiplier`"


def _proximal_steps(
    block: Penalty, inside: list[FloatArray], drawn: list[FloatArray]
) -> Iterator[str]:
    """That no matrix tried is better than the proximal step."""
    for Y in drawn if inside else []:
        for step in (0.2, 5.0):
            A = np.asarray(block.prox(Y, step))
            inner = A if math.isfinite(block.value(A)) else A + 1e-9 * (inside[0] - A)
            value = block.value(inner) + _norm(A - Y) ** 2 / (2.0 * step)
            for B in (A + t * (B - A) for B in inside for t in (1.0, 0.1, 0.001)):
                other = block.value(B) + _norm(B - Y) ** 2 / (2.0 * step)
                size = 1e-3 * _norm(Y) ** 2 / step
                yield _counterexample(other, value, size, Y=Y, step=step, A=A, B=B)


def _norm(A: FloatArray) -> float:
    """The Frobenius norm."""
    return float(np.linalg.norm(A))


_CLAIMS: dict[str, Callable[..., Iterator[str]]] = {
    "value: finite at some PSD matrices, never NaN or -inf": _values,
    "subgradient: P(B) >= P(A) + <Z, B - A>": _tangents,
    "conjugate: P(A) + P*(Z) >= <Z, A>, with equality at a subgradient": _conjugates,
    "prox: minimizes P(A) + ||A - Y||^2 / (2 step)": _proximal_steps,
}
