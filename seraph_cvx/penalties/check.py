"""Tests at random matrices that a penalty is convex and that its methods agree."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from ..numerics.checks import FloatArray, check_count, check_points
from ..numerics.psd_cone import project, symmetrize
from .penalty import Penalty

USUAL_FEATURES = 3
"""The size of the matrices where the block does not tell it."""

HALVINGS = 30
"""Steps of a bisection toward the edge of the domain, from inside."""

MOST_PROJECTIONS = 200
"""Projections onto the domain and the cone in turn, at most."""

SINGULAR = 1e-9
"""A least eigenvalue below this share of the norm counts as zero."""

TOLERANCE = 1e-6
"""Numbers that differ by less than this share of their size count as equal."""

ROUNDING = 1e-13
"""What a difference of two matrices may be off by, relative to these."""

SOLVER_TOLERANCE = 1e-4
"""What a number that a conic solver found may be off by, relative to its size."""

Outcome = Literal["passed", "failed", "not checked", "not defined"]


@dataclass(frozen=True)
class PenaltyCheck:
    """One property of a penalty that was tested.

    Attributes
    ----------
    claim : str
        The property.
    outcome : "passed", "failed", "not checked" or "not defined"
        "not checked": it ought to have been, and could not be; "not defined": an optional method
        that the block does not have.
    details : str
        The counterexample, or why it was not checked.
    """

    claim: str
    outcome: Outcome
    details: str = ""

    def __str__(self) -> str:
        words = {"failed": "FAILED"}.get(self.outcome, self.outcome)
        if "\n" not in self.details:
            return f"{words:<12} {self.claim}" + (f": {self.details}" if self.details else "")
        details = self.details.replace("\n", "\n" + " " * 15)
        return f"{words:<12} {self.claim}\n{' ' * 15}{details}"


@dataclass(frozen=True)
class PenaltyReport:
    """What :func:`check_penalty` found: ``print`` shows a line for each check.

    Attributes
    ----------
    block : Penalty
    n_features : int
    checks : tuple of PenaltyCheck
    """

    block: Penalty
    n_features: int
    checks: tuple[PenaltyCheck, ...]

    @property
    def holds(self) -> bool:
        """Whether nothing failed, and nothing that ought to be checked could not be."""
        return all(check.outcome in ("passed", "not defined") for check in self.checks)

    @property
    def failures(self) -> tuple[PenaltyCheck, ...]:
        """The checks that failed."""
        return tuple(check for check in self.checks if check.outcome == "failed")

    def __str__(self) -> str:
        verdict = "holds" if self.holds else "does NOT hold" if self.failures else "is not settled"
        is_plain = type(self.block).__repr__ is object.__repr__
        name = self.block.name if is_plain else repr(self.block)
        head = f"{name} {verdict}, at random {self.n_features} x {self.n_features} matrices"
        return "\n".join([head, *map(str, self.checks)])


def check_penalty(
    block: Penalty,
    n_features: int | None = None,
    seed: int = 0,
    *,
    X: ArrayLike | None = None,
    matrices: Sequence[ArrayLike] = (),
    n_matrices: int = 10,
) -> PenaltyReport:
    """Test at random matrices that a penalty is convex and that its methods agree.

    What a certificate and the solvers rely on is tested: convexity on segments, the subgradient
    inequality, Fenchel's inequality P(A) + P*(Z) >= <Z, A> with equality at a subgradient, the
    CVXPY statement against `value` and the rules DCP and DPP; and where the block has them, the
    proximal step, the dual statement and the gradient. Tests find mistakes; they prove nothing.

    Parameters
    ----------
    block : Penalty
        A block of this package, or one of your own class.
    n_features : int, optional
        The size of the matrices; by default that of the block's own arrays, or 3.
    seed : int
        The seed of the random matrices.
    X : (n, n_features) array_like, optional
        Points to make the block for (`for_points`); by default random ones.
    matrices : sequence of (m, m) array_like
        Matrices to test too. Needed only for a constraint that no random matrix satisfies.
    n_matrices : int
        How many random matrices of each kind.

    Returns
    -------
    PenaltyReport
        ``report.holds`` is the verdict; ``print(report)`` shows a line for each check, and for one
        that failed the counterexample. What could not be checked is said, and does not hold.

    Examples
    --------
    >>> from seraph_cvx.penalties import Ridge
    >>> print(check_penalty(Ridge(2.0)))
    Ridge(2) holds, at random 3 x 3 matrices
    passed       value: finite at some PSD matrices, never NaN or -inf
    passed       convex: P(tA + (1-t)B) <= t P(A) + (1-t) P(B)
    passed       subgradient: P(B) >= P(A) + <Z, B - A>
    passed       conjugate: P(A) + P*(Z) >= <Z, A>
    passed       conjugate: equality at a subgradient
    passed       CVXPY: the statement has the value of P
    passed       CVXPY: the same holds with another weight
    not defined  CVXPY: P is finite everywhere, and there are no constraints
    passed       CVXPY: DCP, and DPP with the weight as a Parameter
    passed       value_above: not below P
    passed       prox: minimizes P(A) + ||A - Y||^2 / (2 step)
    passed       dual_terms: DCP, DPP, and the conjugate of P
    passed       is_smooth: the subgradient is the gradient, without jumps
    """
    rng = np.random.default_rng(seed)
    points = None if X is None else check_points(X)
    m = _features(block) if n_features is None else check_count(n_features, "n_features")
    m = m if points is None else points.shape[1]
    block = block.for_points(rng.normal(size=(30, m)) if points is None else points)
    trial = _Trial(block, m, rng, n_matrices, matrices)
    checks = []
    for claim, check in CHECKS.items():
        try:
            check(trial)
            checks.append(PenaltyCheck(claim, "passed"))
        except _NotPassed as result:
            checks.append(PenaltyCheck(result.claim or claim, result.outcome, result.details))
    return PenaltyReport(block, m, tuple(checks))


def _features(block: Penalty) -> int:
    """The size of the block's own matrices or vectors, or the usual one."""
    arrays = [value for value in vars(block).values() if isinstance(value, np.ndarray)]
    square = [a.shape[-1] for a in arrays if a.ndim >= 2 and a.shape[-1] == a.shape[-2]]
    vectors = [len(a) for a in arrays if a.ndim == 1]
    return (square or vectors or [USUAL_FEATURES])[0]


class _NotPassed(Exception):
    """The outcome of a check, if it is not "passed"; `claim` if that is another one."""

    def __init__(self, outcome: Outcome, details: str = "", claim: str = "") -> None:
        super().__init__(details)
        self.outcome, self.details, self.claim = outcome, details, claim


def _counterexample(words: str, **matrices: FloatArray) -> _NotPassed:
    """The failure of a check, with the matrices at which it failed."""
    shown = [
        f"{name} = " + np.array2string(M, precision=9, prefix=f"{name} = ")
        for name, M in matrices.items()
    ]
    return _NotPassed("failed", "\n".join([words, *shown]))


def _nowhere() -> _NotPassed:
    """The outcome of a check for which too few matrices were found."""
    why = "too few matrices with a finite value were found: give some by matrices=[...]"
    return _NotPassed("not checked", why)


class _Trial:
    """A block P, the matrices that it is tested at, and what counts as equal there.

    `inside` are matrices where P is finite: PSD and other ones, some of them on the edge of the
    domain, some large; `outside` PSD ones where P is infinite; `anywhere` symmetric ones, wherever
    they lie. Those outside the domain are also brought into it: by the proximal step where the
    block has one, by its `feasible_factor`, and along the segment to a matrix of the domain.
    `multipliers` are matrices Z with a finite conjugate, each with what the block says that it is.
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
        anywhere = [symmetrize(np.asarray(A, dtype=np.float64)) for A in given]
        scale = self._scale()
        anywhere += [np.zeros((m, m)), scale * np.eye(m)]
        for _ in range(n_matrices):
            size = scale * 10.0 ** rng.uniform(-1.0, 1.0)
            F = rng.normal(size=(m, int(rng.integers(1, m + 1))))
            diagonal = np.diag(rng.exponential(size=m))
            full = rng.normal(size=(m, m))
            anywhere += [size * F @ F.T, size * diagonal, size * full @ full.T]
            anywhere.append(size * symmetrize(rng.normal(size=(m, m))))
        self.anywhere = [A for A in anywhere if not self._is_decided_by_rounding(A)]
        inside = [A for A in self.anywhere if self.is_finite(A)]
        brought = [A for A in self._brought_inside(inside, n_matrices) if self.is_finite(A)]
        self.inside = _distinct([*inside, *brought])
        self.outside = [A for A in self.anywhere if block.value(A) == math.inf and _is_psd(A)]
        self.values = [float(block.value(A)) for A in self.inside]
        self.multipliers = self._sample_multipliers()
        self.typical = float(np.median(np.abs(self.values))) if self.values else 0.0
        norms = [0.0, *(float(np.linalg.norm(A)) for A in self.inside)]
        most = 100.0 * float(np.median(norms))
        self.typical_size = max(norm for norm in norms if norm <= most)

    def is_finite(self, A: FloatArray) -> bool:
        return math.isfinite(self.block.value(A))

    def is_above(self, left: float, right: float, *sizes: float) -> bool:
        """Whether left >= right but for rounding, given the sizes of what was added up."""
        if math.isinf(left) or math.isinf(right):
            return left >= right
        size = self.typical + abs(left) + abs(right) + sum(map(abs, sizes))
        return left >= right - TOLERANCE * size

    def is_equal(self, left: float, right: float, *sizes: float) -> bool:
        """Whether left = right but for rounding."""
        return self.is_above(left, right, *sizes) and self.is_above(right, left, *sizes)

    def couples(self) -> list[tuple[FloatArray, float, FloatArray, float]]:
        """Pairs of matrices of the domain, with their values."""
        inside, values, n = self.inside, self.values, len(self.inside)
        if n < 2:
            raise _nowhere()
        drawn = [tuple(self.rng.integers(0, n, size=2)) for _ in range(4 * n)]
        drawn += [(i, (i + 1) % n) for i in range(n)]
        return [(inside[i], values[i], inside[j], values[j]) for i, j in drawn if i != j]

    def fenchel_mismatch(self, A: FloatArray, Z: FloatArray, size: float = 0.0) -> str:
        """The numbers where P(A) + P*(Z) is not <Z, A>; empty where it is.

        Z may be a difference of matrices of a `size`, and then rounded by a share of that.
        """
        if float(np.linalg.norm(Z)) <= ROUNDING * size:
            Z = np.zeros_like(Z)
        value, conjugate = self.block.value(A), self.block.conjugate(Z)
        if not math.isfinite(conjugate):  # perhaps by rounding alone
            share = 1e-9 + ROUNDING * size / max(float(np.max(np.abs(Z))), 1e-300)
            conjugate = self.block.conjugate((1.0 - min(share, 0.1)) * Z)
        inner, noise = float(np.sum(Z * A)), ROUNDING / TOLERANCE * size * self.typical_size
        if self.is_equal(value + conjugate, inner, value, conjugate, _norms(Z, A), noise):
            return ""
        return f"P(A) + P*(Z) = {value:.9g} + {conjugate:.9g} is not <Z, A> = {inner:.9g}"

    def _scale(self) -> float:
        """The size of the multiple of I where the domain ends; 1 if it does not."""
        identity, sizes = np.eye(self.m), 2.0 ** np.arange(1, 40)
        if self.is_finite(identity):
            return next((t for t in sizes if not self.is_finite(t * identity)), 1.0)
        inside = (1.0 / t for t in sizes if self.is_finite(identity / t))
        if self.block.has_prox:
            return next(inside, float(np.linalg.norm(self.block.prox(identity, 1.0)))) or 1.0
        return next(inside, 1.0)

    def _is_decided_by_rounding(self, A: FloatArray) -> bool:
        """Whether A is singular and the domain ends there, as that of log det does."""
        shift = SINGULAR * float(np.linalg.norm(A)) * np.eye(len(A))
        if not np.any(shift) or abs(float(np.linalg.eigvalsh(A)[0])) > shift[0, 0]:
            return False
        return self.is_finite(A + shift) and not self.is_finite(A - shift)

    def _brought_inside(self, inside: list[FloatArray], n_matrices: int) -> Iterator[FloatArray]:
        for A in self.anywhere:
            if self.block.has_prox:
                yield self._prox(A)
            if not self.is_finite(A) and _is_psd(A):
                L = self.block.feasible_factor(_factor(A))
                yield symmetrize(L @ L.T)
            if not self.is_finite(A) and inside:
                yield from self._toward_edge(inside[0], A)
        for A in self.anywhere[: n_matrices // 2] if self.block.has_prox else []:
            for _ in range(MOST_PROJECTIONS):  # onto the cone and the domain in turn
                A = self._prox(project(A))
                if _is_psd(A):
                    break
            yield A
        yield from (1e3 * A for A in inside[:n_matrices])

    def _prox(self, A: FloatArray) -> FloatArray:
        return symmetrize(np.asarray(self.block.prox(A, 1.0)))

    def _toward_edge(self, base: FloatArray, A: FloatArray) -> list[FloatArray]:
        """The last matrix of the domain on the way from `base` to A, and one half way to it."""
        low, high = 0.0, 1.0
        for _ in range(HALVINGS):
            middle = (low + high) / 2.0
            is_in = self.is_finite(base + middle * (A - base))
            low, high = (middle, high) if is_in else (low, middle)
        return [base + share * low * (A - base) for share in (1.0, 0.5)] if low > 1e-9 else []

    def _sample_multipliers(self) -> list[tuple[FloatArray, float]]:
        """Subgradients, what a proximal step leaves, what `multiplier` and `guess` make of some.

        And multiples and means of these.
        """
        block = self.block
        chosen = [self.anywhere[i] for i in self.rng.permutation(len(self.anywhere))[:10]]
        candidates = [symmetrize(block.subgradient(A)) for A in self.inside[:20]]
        if block.has_prox:
            left = [(A, A - block.prox(A, 1.0)) for A in chosen]
            candidates += [Z for A, Z in left if np.max(np.abs(Z)) > 1e-12 * np.max(np.abs(A))]
        if self.inside:
            candidates += [symmetrize(block.guess(self.inside[-1], A)) for A in chosen]
        candidates += [sign * A for A in chosen for sign in (1.0, -1.0)]
        finite = [Z for Z in candidates if math.isfinite(block.conjugate(Z))]
        finite += [factor * Z for Z in finite[:20] for factor in (-1.0, 0.5, 2.0, 10.0)]
        finite += [(Z + Y) / 2.0 for Z, Y in pairwise(finite[:20])]
        finite += [(1.0 - 1e-9) * Z for Z in candidates]  # where rounding led out of the domain
        pairs = [(Z, block.conjugate(Z)) for Z in _distinct(finite)]
        multipliers = filter(None, map(block.multiplier, chosen))
        pairs += [(multiplier.matrix, multiplier.conjugate) for multiplier in multipliers]
        return [(Z, value) for Z, value in pairs if math.isfinite(value)]


def _factor(A: FloatArray) -> FloatArray:
    w, vectors = np.linalg.eigh(A)
    return np.asarray(vectors * np.sqrt(np.maximum(w, 0.0)))


def _is_psd(A: FloatArray) -> bool:
    """Whether A is PSD but for rounding."""
    return bool(np.linalg.eigvalsh(A)[0] >= -SINGULAR * np.linalg.norm(A))


def _distinct(matrices: list[FloatArray]) -> list[FloatArray]:
    return list({A.tobytes(): A for A in matrices}.values())


def _norms(Z: FloatArray, A: FloatArray) -> float:
    """The product of two Frobenius norms, which bounds |<Z, A>|."""
    return float(np.linalg.norm(Z) * np.linalg.norm(A))


def _check_value(trial: _Trial) -> None:
    for A in trial.anywhere:
        value = trial.block.value(A)
        if math.isnan(value) or value == -math.inf:
            raise _counterexample(f"value(A) = {value}", A=A)
    if sum(map(_is_psd, trial.inside)) < 2:
        why = "fewer than two such matrices were found: give some by matrices=[...]"
        raise _NotPassed("not checked", why)


def _check_convex(trial: _Trial) -> None:
    for A, a, B, b in trial.couples():
        for t in (0.5, float(trial.rng.uniform(0.01, 0.99))):
            middle = trial.block.value(t * A + (1.0 - t) * B)
            chord = t * a + (1.0 - t) * b
            if not trial.is_above(chord, middle, a, b):
                words = f"at t = {t:.6g}: P = {middle:.9g} > {chord:.9g}, with P(A) = {a:.9g}"
                raise _counterexample(f"{words}, P(B) = {b:.9g}", A=A, B=B)


def _check_subgradient(trial: _Trial) -> None:
    for A, a, B, b in trial.couples():
        Z = np.asarray(trial.block.subgradient(A))
        if Z.shape != A.shape or not np.all(np.isfinite(Z)) or not np.allclose(Z, Z.T):
            raise _counterexample("Z is not a finite symmetric matrix", A=A, Z=Z)
        inner = float(np.sum(Z * (B - A)))
        if not trial.is_above(b, a + inner, a, _norms(Z, B - A)):
            raise _counterexample(f"P(B) = {b:.9g} < {a:.9g} + {inner:.9g}", A=A, B=B, Z=Z)


def _check_fenchel(trial: _Trial) -> None:
    if not trial.inside:
        raise _nowhere()
    if not any(np.any(Z) for Z, _ in trial.multipliers):
        why = "no Z but zero was found with a finite conjugate: write `multiplier` or `prox`"
        raise _NotPassed("not checked", why)
    for Z, conjugate in trial.multipliers:
        for A, value in zip(trial.inside, trial.values, strict=True):
            inner = float(np.sum(Z * A))
            if not trial.is_above(value + conjugate, inner, value, conjugate, _norms(Z, A)):
                words = f"P(A) + P*(Z) = {value:.9g} + {conjugate:.9g} < {inner:.9g}"
                raise _counterexample(words, A=A, Z=Z)


def _check_fenchel_equality(trial: _Trial) -> None:
    if not trial.inside:
        raise _nowhere()
    for A in trial.inside:
        Z = np.asarray(trial.block.subgradient(A))
        if mismatch := trial.fenchel_mismatch(A, Z):
            raise _counterexample(mismatch, A=A, Z=Z)


def _check_statement(trial: _Trial, factor: float = 1.0) -> None:
    block = trial.block.with_weight(factor * trial.block.weight)
    stated = _Statement(block, trial.m)
    values = [(A, block.value(A)) for A in trial.inside]
    finite = [(A, value) for A, value in values if math.isfinite(value)]  # or another bound
    if not finite:
        raise _nowhere()
    for A, value in finite:
        stated_value = stated.value(A)
        size = SOLVER_TOLERANCE / TOLERANCE * max(1.0, abs(value)) if stated.needs_solver else 0.0
        if not trial.is_equal(stated_value, value, size):
            raise _counterexample(f"CVXPY says {stated_value:.9g}, value(A) = {value:.9g}", A=A)


def _check_other_weight(trial: _Trial) -> None:
    _check_statement(trial, 2.0)


def _check_outside(trial: _Trial) -> None:
    stated = _Statement(trial.block, trial.m)
    if not trial.outside and not stated.constraints:
        claim = "CVXPY: P is finite everywhere, and there are no constraints"
        raise _NotPassed("not defined", claim=claim)
    if not trial.outside:
        raise _NotPassed("not checked", "no PSD matrix was found where P is infinite")
    for A in trial.outside:
        if math.isfinite(value := stated.value(A)):
            raise _counterexample(f"CVXPY says {value:.9g}, value(A) = inf", A=A)


def _check_rules(trial: _Trial) -> None:
    problem = _Statement(trial.block, trial.m, PSD=True).problem
    if not problem.is_dcp(dpp=True):
        rule = "DPP" if problem.is_dcp() else "DCP"
        raise _NotPassed("failed", f"not {rule}:\n{problem}")


def _check_value_above(trial: _Trial) -> None:
    block = trial.block
    if type(block).value_above is Penalty.value_above:
        raise _NotPassed("not defined", "value is trusted to twelve digits")
    for A in filter(_is_psd, trial.anywhere):
        L = block.feasible_factor(_factor(A))
        above, value = block.value_above(L), block.value(symmetrize(L @ L.T))
        if not trial.is_above(above, value):
            raise _counterexample(f"value_above(L) = {above:.9g} < {value:.9g}", L=L)


def _check_prox(trial: _Trial) -> None:
    if not trial.block.has_prox:
        raise _NotPassed("not defined")
    if not trial.inside:
        raise _nowhere()
    center = np.mean(trial.inside[:10], axis=0)
    for Y in trial.anywhere:
        for step in (0.2, 1.0, 5.0):
            A = np.asarray(trial.block.prox(Y, step))
            Z = (Y - A) / step
            if not trial.is_finite(A):  # perhaps by rounding alone
                A = A + 1e-9 * (center - A)
            if not trial.is_finite(A):
                raise _counterexample(f"step = {step}: P(A) = inf at A = prox(Y)", Y=Y, A=A)
            size = (float(np.linalg.norm(Y)) + trial.typical_size) / step
            if mismatch := trial.fenchel_mismatch(A, Z, size):
                words = f"step = {step}: Z = (Y - A) / step is no subgradient at A = prox(Y), for"
                raise _counterexample(f"{words}\n{mismatch}", Y=Y, A=A)


def _check_dual_terms(trial: _Trial) -> None:
    if type(trial.block).dual_terms is Penalty.dual_terms:
        raise _NotPassed("not defined")
    import cvxpy as cp

    m, upper, conjugate = trial.m, np.triu_indices(trial.m), trial.block.conjugate
    part = trial.block.dual_terms(m, _weight(trial.block))
    goal = cp.Maximize(-part.conjugate)
    problem = cp.Problem(goal, [*part.constraints, cp.PSD(part.matrix)])
    if not problem.is_dcp(dpp=True):
        raise _NotPassed("failed", f"not DCP or not DPP:\n{problem}")
    chosen = [trial.multipliers[k][0] for k in trial.rng.permutation(len(trial.multipliers))[:8]]
    beyond = [factor * Z for Z in chosen for factor in (-1.0, 30.0)] + trial.anywhere[:12]
    given = cp.Parameter((m, m), symmetric=True)  # so that CVXPY compiles each problem once
    exactly = cp.Problem(goal, [*part.constraints, part.matrix[upper] == given[upper]])
    for Z in chosen:
        given.value = symmetrize(Z)
        stated, expected = -_solved(exactly), conjugate(Z)
        size = SOLVER_TOLERANCE / TOLERANCE * max(1.0, abs(expected))
        if not trial.is_equal(stated, expected, size):
            words = f"the dual terms say {stated:.9g}, conjugate(Z) = {expected:.9g}"
            raise _counterexample(words, Z=Z)
    is_moderate = part.conjugate <= 1e2 * (1.0 + trial.typical)
    distance = cp.Minimize(cp.sum_squares(part.matrix - given))
    nearest = cp.Problem(distance, [*part.constraints, is_moderate])
    for Z in beyond:
        shift = 0.05 * float(np.linalg.norm(Z)) * np.eye(m)
        if not all(math.isinf(conjugate(near)) for near in (Z, Z + shift, Z - shift, 0.9 * Z)):
            continue  # a solver is no judge of what is infeasible, but of a distance
        given.value = symmetrize(Z)
        if _solved(nearest) < SOLVER_TOLERANCE * float(np.sum(Z * Z)):
            raise _counterexample("the dual terms allow Z, conjugate(Z) = inf", Z=Z)


def _check_smooth(trial: _Trial) -> None:
    if not trial.block.is_smooth:
        raise _NotPassed("not defined")
    # a subgradient that is continuous is the gradient: what is left to find are jumps
    for A, _, B, _ in trial.couples():
        jump = _slope_jump(trial.block.subgradient, A, B)
        if jump is not None:
            words = f"<Z, B - A> jumps from {jump[0]:.9g} to {jump[1]:.9g}"
            raise _counterexample(words, A=A, B=B)


def _slope_jump(
    gradient: Callable[[FloatArray], FloatArray], A: FloatArray, B: FloatArray
) -> tuple[float, float] | None:
    """The slopes on both sides of a jump on the segment from A to B, found by bisection."""

    def slope(t: float) -> float:
        return float(np.sum(gradient((1.0 - t) * A + t * B) * (B - A)))

    low, high = 0.05, 0.95  # at the edge of the domain a slope may grow without bound
    ends = slope(low), slope(high)
    change = abs(ends[1] - ends[0])
    for _ in range(36):
        middle = (low + high) / 2.0
        there = slope(middle)
        if abs(there - ends[0]) > abs(ends[1] - there):
            high, ends = middle, (ends[0], there)
        else:
            low, ends = middle, (there, ends[1])
    is_jump = abs(ends[1] - ends[0]) > 1e-3 * change and change > 1e-9 * abs(ends[0])
    return ends if is_jump else None


class _Statement:
    """A block as a CVXPY problem in the metric alone."""

    def __init__(self, block: Penalty, m: int, **kind: bool) -> None:
        import cvxpy as cp

        self.A = cp.Variable((m, m), name="A", **(kind or {"symmetric": True}))
        weight = _weight(block)
        self.term = cp.Constant(0.0) + block.expression(self.A, weight)
        self.constraints = block.constraints(self.A, weight)
        self.problem = cp.Problem(cp.Minimize(self.term), self.constraints)
        self.needs_solver = len(self.problem.variables()) > 1
        upper = np.triu_indices(m)
        self.given = cp.Parameter((m, m), symmetric=True)
        fixed = self.A[upper] == self.given[upper]
        self.at_given = cp.Problem(self.problem.objective, [*self.constraints, fixed])

    def value(self, matrix: FloatArray) -> float:
        """The value at a matrix; infinite where constraints are violated."""
        if self.needs_solver:  # variables of the block's own
            self.given.value = symmetrize(matrix)
            return _solved(self.at_given)
        self.A.value = matrix
        off = max((float(np.max(c.violation())) for c in self.constraints), default=0.0)
        if off > TOLERANCE * (1.0 + float(np.linalg.norm(matrix))):
            return math.inf
        return math.inf if self.term.value is None else float(self.term.value)


def _solved(problem: Any) -> float:
    """The value of a problem by CLARABEL, or by SCS; the check ends if neither finds one."""
    from cvxpy.error import SolverError

    reports = []
    for solver, options in (("CLARABEL", {}), ("SCS", {"eps_abs": 1e-6, "eps_rel": 1e-6})):
        try:
            with warnings.catch_warnings():  # CVXPY's, of a status that is looked at here
                warnings.simplefilter("ignore", UserWarning)
                problem.solve(solver=solver, warm_start=False, **options)
        except SolverError:
            reports.append(f"{solver} failed")
            continue
        if problem.value is not None and "inaccurate" not in problem.status:
            return float(problem.value)
        reports.append(f"{solver} ended with the status {problem.status}")
    raise _NotPassed("not checked", "; ".join(reports))


def _weight(block: Penalty) -> Any:
    import cvxpy as cp

    return cp.Parameter(nonneg=True, name="weight", value=block.weight)


CHECKS: dict[str, Callable[[_Trial], None]] = {
    "value: finite at some PSD matrices, never NaN or -inf": _check_value,
    "convex: P(tA + (1-t)B) <= t P(A) + (1-t) P(B)": _check_convex,
    "subgradient: P(B) >= P(A) + <Z, B - A>": _check_subgradient,
    "conjugate: P(A) + P*(Z) >= <Z, A>": _check_fenchel,
    "conjugate: equality at a subgradient": _check_fenchel_equality,
    "CVXPY: the statement has the value of P": _check_statement,
    "CVXPY: the same holds with another weight": _check_other_weight,
    "CVXPY: constraints are violated where P is infinite": _check_outside,
    "CVXPY: DCP, and DPP with the weight as a Parameter": _check_rules,
    "value_above: not below P": _check_value_above,
    "prox: minimizes P(A) + ||A - Y||^2 / (2 step)": _check_prox,
    "dual_terms: DCP, DPP, and the conjugate of P": _check_dual_terms,
    "is_smooth: the subgradient is the gradient, without jumps": _check_smooth,
}
"""What is tested, in the order in which a report shows it; a check raises what it did not pass."""
