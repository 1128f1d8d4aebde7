"""Tests at random matrices that a penalty is convex and that its methods agree."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..numerics.checks import FloatArray, check_count, check_points
from ..numerics.psd_cone import scaled_factor, symmetrize
from .penalty import Penalty
from .trial import Trial, inner, is_psd, norm

USUAL_FEATURES = 3
"""The size of the matrices where the block does not tell it."""

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

    Examples
    --------
    >>> from seraph_cvx.penalties import Ridge, check_penalty
    >>> class Mistaken(Ridge):
    ...     def conjugate(self, Z):
    ...         return 0.0
    >>> report = check_penalty(Mistaken(2.0), n_features=2, n_matrices=1)
    >>> report.holds, report.failures[0].claim
    (False, 'conjugate: P(A) + P*(Z) >= <Z, A>')
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
    not defined  CVXPY: constraints are violated where P is infinite: P is finite everywhere
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
    trial = Trial(block, m, rng, n_matrices, matrices)
    return PenaltyReport(block, m, tuple(check.judge(trial) for check in CHECKS))


def _features(block: Penalty) -> int:
    """The size of the block's own matrices or vectors, or the usual one."""
    shapes = [value.shape for value in vars(block).values() if isinstance(value, np.ndarray)]
    return max(filter(None, shapes), key=len, default=(USUAL_FEATURES,))[-1]


class _Outcome(Exception):
    """The outcome of a check that could not compare numbers, or needs none, and why."""

    def __init__(self, outcome: Outcome, details: str = "") -> None:
        super().__init__(details)
        self.outcome, self.details = outcome, details


NOT_DEFINED: Outcome = "not defined"
TOO_FEW = "too few matrices with a finite value were found: give some by matrices=[...]"


class _Case(NamedTuple):
    """Two numbers that a check compares, to within TOLERANCE of their size and of `size`."""

    left: float
    right: float
    size: float
    shown: dict[str, Any]  # the numbers and matrices of a counterexample


class _Check(NamedTuple):
    """A claim, the cases that it is judged by, and what the numbers of a case are."""

    claim: str
    cases: Callable[[Trial], Iterator[_Case]]
    left: str = ""
    relation: str = ""
    right: str = ""

    def judge(self, trial: Trial) -> PenaltyCheck:
        """The outcome at the matrices of a trial; a failure shows its first counterexample."""
        case = None
        try:
            for case in self.cases(trial):
                if not self._holds(case, trial.typical):
                    return PenaltyCheck(self.claim, "failed", self._describe(case))
        except _Outcome as found:
            return PenaltyCheck(self.claim, found.outcome, found.details)
        if case is None:
            return PenaltyCheck(self.claim, "not checked", TOO_FEW)
        return PenaltyCheck(self.claim, "passed")

    def _holds(self, case: _Case, typical: float) -> bool:
        left, right = case.left, case.right
        if not (math.isinf(left) or math.isinf(right)):
            slack = TOLERANCE * (typical + abs(left) + abs(right) + case.size)
            return left >= right - slack and (self.relation != "=" or left <= right + slack)
        return left == right if self.relation == "=" else left >= right

    def _describe(self, case: _Case) -> str:
        sides = f"{self.left} = {case.left:.9g}", f"{self.right} = {case.right:.9g}"
        lines = [f" is not {self.relation} ".join(sides)]
        for name, value in case.shown.items():
            shown = np.array2string(np.asarray(value), precision=9, prefix=f"{name} = ")
            lines.append(f"{name} = {shown}")
        return "\n".join(lines)


def _fenchel_case(
    trial: Trial, A: FloatArray, Z: FloatArray, size: float = 0.0, **shown: Any
) -> _Case:
    """The two sides of P(A) + P*(Z) = <Z, A>.

    Z may be a difference of matrices of a `size`, and then rounded by a share of that.
    """
    if norm(Z) <= ROUNDING * size:
        Z = np.zeros_like(Z)
    value, conjugate = trial.block.value(A), trial.block.conjugate(Z)
    if not math.isfinite(conjugate):  # perhaps by rounding alone
        share = 1e-9 + ROUNDING * size / max(float(np.max(np.abs(Z))), 1e-300)
        conjugate = trial.block.conjugate((1.0 - min(share, 0.1)) * Z)
    noise = ROUNDING / TOLERANCE * size * trial.typical_size
    size = abs(value) + abs(conjugate) + norm(Z) * norm(A) + noise
    return _Case(value + conjugate, inner(Z, A), size, {**shown, "A": A, "Z": Z})


def _values(trial: Trial) -> Iterator[_Case]:
    for A in trial.anywhere:
        yield _Case(trial.block.value(A), -1e300, 0.0, {"A": A})
    if sum(map(is_psd, trial.inside)) < 2:
        raise _Outcome("not checked", TOO_FEW)


def _chords(trial: Trial) -> Iterator[_Case]:
    for A, a, B, b in trial.couples():
        for t in (0.5, float(trial.rng.uniform(0.01, 0.99))):
            shown = {"t": t, "P(A)": a, "P(B)": b, "A": A, "B": B}
            middle = trial.block.value(t * A + (1.0 - t) * B)
            yield _Case(t * a + (1.0 - t) * b, middle, abs(a) + abs(b), shown)


def _tangents(trial: Trial) -> Iterator[_Case]:
    for A, a, B, b in trial.couples():
        Z = np.asarray(trial.block.subgradient(A))
        shown = {"A": A, "B": B, "Z": Z}
        is_matrix = Z.shape == A.shape and np.all(np.isfinite(Z)) and np.allclose(Z, Z.T)
        right = a + inner(Z, B - A) if is_matrix else math.nan
        yield _Case(b, right, abs(a) + norm(Z) * norm(B - A), shown)


def _fenchel_cases(trial: Trial) -> Iterator[_Case]:
    if not any(np.any(Z) for Z, _ in trial.multipliers):
        why = "no Z but zero was found with a finite conjugate: write `multiplier` or `prox`"
        raise _Outcome("not checked", why)
    for Z, conjugate in trial.multipliers:
        for A, value in zip(trial.inside, trial.values, strict=True):
            size = abs(value) + abs(conjugate) + norm(Z) * norm(A)
            yield _Case(value + conjugate, inner(Z, A), size, {"A": A, "Z": Z})


def _fenchel_equalities(trial: Trial) -> Iterator[_Case]:
    for A in trial.inside:
        yield _fenchel_case(trial, A, np.asarray(trial.block.subgradient(A)))


def _statement_values(trial: Trial, factor: float = 1.0) -> Iterator[_Case]:
    block = trial.block.with_weight(factor * trial.block.weight)
    stated = _Statement(block, trial.m)
    for A in trial.inside:
        if math.isfinite(value := block.value(A)):  # or another bound
            size = _solver_error(value) if stated.needs_solver else 0.0
            yield _Case(stated.value(A), value, size, {"A": A})


def _statement_outside(trial: Trial) -> Iterator[_Case]:
    stated = _Statement(trial.block, trial.m)
    if not trial.outside and not stated.problem.constraints:
        raise _Outcome(NOT_DEFINED, "P is finite everywhere")
    if not trial.outside:
        raise _Outcome("not checked", "no PSD matrix was found where P is infinite")
    for A in trial.outside:
        yield _Case(stated.value(A), math.inf, 0.0, {"A": A})


def _rules(trial: Trial) -> Iterator[_Case]:
    _check_rules(_Statement(trial.block, trial.m, PSD=True).problem)
    yield _Case(0.0, 0.0, 0.0, {})


def _upper_values(trial: Trial) -> Iterator[_Case]:
    block = trial.block
    if type(block).value_above is Penalty.value_above:
        raise _Outcome(NOT_DEFINED, "value is trusted to twelve digits")
    for A in filter(is_psd, trial.anywhere):
        L = block.feasible_factor(scaled_factor(A))
        yield _Case(block.value_above(L), block.value(symmetrize(L @ L.T)), 0.0, {"L": L})


def _proximal_steps(trial: Trial) -> Iterator[_Case]:
    if not trial.block.has_prox:
        raise _Outcome(NOT_DEFINED)
    for Y, step in product(trial.anywhere if trial.inside else [], (0.2, 1.0, 5.0)):
        A = np.asarray(trial.block.prox(Y, step))
        Z = (Y - A) / step  # a subgradient at A
        if not trial.is_finite(A):  # perhaps by rounding alone
            A = A + 1e-9 * (np.mean(trial.inside[:10], axis=0) - A)
        yield _fenchel_case(trial, A, Z, (norm(Y) + trial.typical_size) / step, step=step, Y=Y)


def _dual_values(trial: Trial) -> Iterator[_Case]:
    """The conjugate of what `dual_terms` states is P again."""
    block, m = trial.block, trial.m
    if type(block).dual_terms is Penalty.dual_terms:
        raise _Outcome(NOT_DEFINED)
    import cvxpy as cp

    part = block.dual_terms(m, _weight(block))
    _check_rules(cp.Problem(cp.Maximize(-part.conjugate), [*part.constraints, part.matrix >> 0]))
    part, A = block.dual_terms(m, block.weight), cp.Parameter((m, m), symmetric=True)
    goal = cp.Maximize(cp.sum(cp.multiply(A, part.matrix)) - part.conjugate)
    problem = cp.Problem(goal, part.constraints)
    # a solver is no judge of matrices that are large, or hardly outside the domain
    inside = sorted(trial.inside, key=norm)[: len(trial.inside) // 2 + 1]
    outside = [A for A in trial.anywhere if np.any(A) and not trial.is_finite(A)]
    outside = [A for A in outside if not trial.is_finite(A + 0.05 * norm(A) * np.eye(m))]
    for matrix in [
        some[k] for some in (inside, outside) for k in trial.rng.permutation(len(some))[:6]
    ]:
        A.value, value = matrix, block.value(matrix)
        yield _Case(_solved(problem), value, _solver_error(value), {"A": matrix})


def _slopes(trial: Trial) -> Iterator[_Case]:
    """The slopes on both sides of the steepest change between A and B, found by bisection."""
    if not trial.block.is_smooth:
        raise _Outcome(NOT_DEFINED)
    # a subgradient that is continuous is the gradient: what is left to find are jumps
    for A, _, B, _ in trial.couples():
        # at the edge of the domain a slope may grow without bound
        ends = [(t, _slope(trial.block, A, B, t)) for t in (0.05, 0.95)]
        change = abs(ends[1][1] - ends[0][1])
        for _ in range(36):
            middle = (ends[0][0] + ends[1][0]) / 2.0
            slope = _slope(trial.block, A, B, middle)
            ends[abs(slope - ends[0][1]) > abs(ends[1][1] - slope)] = middle, slope
        before, after = ends[0][1], ends[1][1]
        is_jump = abs(after - before) > 1e-3 * change > 1e-12 * abs(before)
        shown = {"slopes": [before, after], "A": A, "B": B}
        yield _Case(0.0, math.inf if is_jump else 0.0, 0.0, shown)


def _slope(block: Penalty, A: FloatArray, B: FloatArray, t: float) -> float:
    return inner(block.subgradient((1.0 - t) * A + t * B), B - A)


class _Statement:
    """A block as a CVXPY problem in the metric alone."""

    def __init__(self, block: Penalty, m: int, **kind: bool) -> None:
        import cvxpy as cp

        self.A = cp.Variable((m, m), name="A", **(kind or {"symmetric": True}))
        weight = _weight(block)
        goal = cp.Minimize(cp.Constant(0.0) + block.expression(self.A, weight))
        self.problem = cp.Problem(goal, block.constraints(self.A, weight))
        self.needs_solver = len(self.problem.variables()) > 1  # variables of the block's own
        upper, self.given = np.triu_indices(m), cp.Parameter((m, m), symmetric=True)
        fixed = self.A[upper] == self.given[upper]
        self.at_given = cp.Problem(goal, [*self.problem.constraints, fixed])

    def value(self, matrix: FloatArray) -> float:
        """The value at a matrix; infinite where constraints are violated."""
        if self.needs_solver:
            self.given.value = matrix
            return _solved(self.at_given)
        self.A.value = matrix
        off = max((float(np.max(c.violation())) for c in self.problem.constraints), default=0.0)
        value = self.problem.objective.value
        is_off = value is None or off > TOLERANCE * (1.0 + norm(matrix))
        return math.inf if is_off else float(value)


def _weight(block: Penalty) -> Any:
    import cvxpy as cp

    return cp.Parameter(nonneg=True, name="weight", value=block.weight)


def _check_rules(problem: Any) -> None:
    """End the check where a problem is not DCP, or not DPP."""
    if not problem.is_dcp(dpp=True):
        rule = "DPP" if problem.is_dcp() else "DCP"
        raise _Outcome("failed", f"not {rule}:\n{problem}")


def _solver_error(value: float) -> float:
    """The size that makes TOLERANCE of it what a conic solver's value may be off by."""
    return SOLVER_TOLERANCE / TOLERANCE * max(1.0, abs(value)) if math.isfinite(value) else 0.0


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
    raise _Outcome("not checked", "; ".join(reports))


CHECKS = (
    _Check(
        "value: finite at some PSD matrices, never NaN or -inf",
        _values, "value(A)", ">=", "the least number allowed",
    ),
    _Check(
        "convex: P(tA + (1-t)B) <= t P(A) + (1-t) P(B)",
        _chords, "t P(A) + (1-t) P(B)", ">=", "P(tA + (1-t)B)",
    ),
    _Check(
        "subgradient: P(B) >= P(A) + <Z, B - A>",
        _tangents, "P(B)", ">=", "P(A) + <Z, B - A>",
    ),
    _Check("conjugate: P(A) + P*(Z) >= <Z, A>", _fenchel_cases, "P(A) + P*(Z)", ">=", "<Z, A>"),
    _Check(
        "conjugate: equality at a subgradient",
        _fenchel_equalities, "P(A) + P*(Z)", "=", "<Z, A>",
    ),
    _Check(
        "CVXPY: the statement has the value of P",
        _statement_values, "CVXPY's value", "=", "value(A)",
    ),
    _Check(
        "CVXPY: the same holds with another weight",
        partial(_statement_values, factor=2.0), "CVXPY's value", "=", "value(A)",
    ),
    _Check(
        "CVXPY: constraints are violated where P is infinite",
        _statement_outside, "CVXPY's value", "=", "value(A)",
    ),
    _Check("CVXPY: DCP, and DPP with the weight as a Parameter", _rules),
    _Check("value_above: not below P", _upper_values, "value_above(L)", ">=", "P(LL')"),
    _Check(
        "prox: minimizes P(A) + ||A - Y||^2 / (2 step)",
        _proximal_steps, "at A = prox(Y), Z = (Y - A) / step: P(A) + P*(Z)", "=", "<Z, A>",
    ),
    _Check(
        "dual_terms: DCP, DPP, and the conjugate of P",
        _dual_values, "max <Z, A> - P*(Z)", "=", "P(A)",
    ),
    _Check(
        "is_smooth: the subgradient is the gradient, without jumps",
        _slopes, "any bound", ">=", "the change of slope between A and B",
    ),
)  # fmt: skip
"""What is tested, in the order in which a report shows it."""
