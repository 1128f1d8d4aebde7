"""The CVXPY statement of a penalty against its value, and its dual terms against its conjugate."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ...numerics.checks import FloatArray
from ...numerics.psd_cone import symmetrize
from ..penalty import Penalty
from .report import PenaltyCheck, counterexample, nowhere
from .trial import TOLERANCE, Trial

SOLVER_TOLERANCE = 1e-4
"""What a number that a conic solver found may be off by, relative to its size."""


def check_statement(trial: Trial, factor: float = 1.0) -> PenaltyCheck:
    """Test that the CVXPY statement has the value of P, where that is finite."""
    claim = "CVXPY: the statement has the value of P"
    claim = claim if factor == 1.0 else "CVXPY: the same holds with another weight"
    block = trial.block.with_weight(factor * trial.block.weight)
    stated = _Statement(block, trial.n_features)
    values = [block.value(A) for A in trial.drawn.inside]
    if not any(map(math.isfinite, values)):
        return nowhere(claim)
    for A, value in zip(trial.drawn.inside, values, strict=True):
        if not math.isfinite(value):  # another bound
            continue
        found = stated.value(A)
        if isinstance(found, str):
            return PenaltyCheck(claim, "not checked", found)
        size = SOLVER_TOLERANCE / TOLERANCE * max(1.0, abs(value)) if stated.needs_solver else 0.0
        if not trial.is_equal(found, value, size):
            return counterexample(claim, f"CVXPY says {found:.9g}, value(A) = {value:.9g}", A=A)
    return PenaltyCheck(claim, "passed")


def check_other_weight(trial: Trial) -> PenaltyCheck:
    """Test the same with twice the weight, which is a Parameter."""
    return check_statement(trial, 2.0)


def check_outside(trial: Trial) -> PenaltyCheck:
    """Test that the statement excludes PSD matrices at which P is infinite."""
    claim = "CVXPY: constraints are violated where P is infinite"
    stated = _Statement(trial.block, trial.n_features)
    if not trial.drawn.outside:
        if not stated.constraints:
            return PenaltyCheck(
                "CVXPY: P is finite everywhere, and there are no constraints", "not defined"
            )
        return PenaltyCheck(claim, "not checked", "no PSD matrix was found where P is infinite")
    for A in trial.drawn.outside:
        found = stated.value(A)
        if isinstance(found, str):
            return PenaltyCheck(claim, "not checked", found)
        if math.isfinite(found):
            return counterexample(claim, f"CVXPY says {found:.9g}, value(A) = inf", A=A)
    return PenaltyCheck(claim, "passed")


def check_rules(trial: Trial) -> PenaltyCheck:
    """Test that the statement is DCP, and DPP with its weight as a Parameter."""
    claim = "CVXPY: DCP, and DPP with the weight as a Parameter"
    problem = _Statement(trial.block, trial.n_features, PSD=True).problem
    if problem.is_dcp(dpp=True):
        return PenaltyCheck(claim, "passed")
    rule = "DPP" if problem.is_dcp() else "DCP"
    return PenaltyCheck(claim, "failed", f"not {rule}:\n{problem}")


def check_dual_terms(trial: Trial) -> PenaltyCheck:
    """Test that the dual terms say what the conjugate says, finite or not."""
    claim = "dual_terms: DCP, DPP, and the conjugate of P"
    if type(trial.block).dual_terms is Penalty.dual_terms:
        return PenaltyCheck(claim, "not defined")
    import cvxpy as cp

    m, upper, conjugate = trial.n_features, np.triu_indices(trial.n_features), trial.block.conjugate
    part = trial.block.dual_terms(m, _weight(trial.block))
    goal = cp.Maximize(-part.conjugate)
    problem = cp.Problem(goal, [*part.constraints, cp.PSD(part.matrix)])
    if not problem.is_dcp(dpp=True):
        return PenaltyCheck(claim, "failed", f"not DCP or not DPP:\n{problem}")
    chosen = trial.rng.permutation(len(trial.multipliers))[:8]
    beyond = [factor * trial.multipliers[k][0] for k in chosen for factor in (-1.0, 30.0)]
    beyond += trial.drawn.anywhere[:12]
    infinite = [Z for Z in beyond if _is_clearly_infinite(conjugate, Z)]
    given = cp.Parameter((m, m), symmetric=True)  # so that CVXPY compiles each problem once
    exactly = cp.Problem(goal, [*part.constraints, part.matrix[upper] == given[upper]])
    for Z in (trial.multipliers[k][0] for k in chosen):
        given.value = symmetrize(Z)
        found, expected = _solved(exactly), conjugate(Z)
        if isinstance(found, str):
            return PenaltyCheck(claim, "not checked", found)
        size = SOLVER_TOLERANCE / TOLERANCE * max(1.0, abs(expected))
        if not trial.is_equal(-found, expected, size):
            words = f"the dual terms say {-found:.9g}, conjugate(Z) = {expected:.9g}"
            return counterexample(claim, words, Z=Z)
    is_moderate = part.conjugate <= 1e2 * (1.0 + trial.typical)
    distance = cp.Minimize(cp.sum_squares(part.matrix - given))
    nearest = cp.Problem(distance, [*part.constraints, is_moderate])
    for Z in infinite:  # a solver is no judge of what is infeasible, but of a distance
        given.value = symmetrize(Z)
        found = _solved(nearest)
        if isinstance(found, str):
            return PenaltyCheck(claim, "not checked", found)
        if found < SOLVER_TOLERANCE * float(np.sum(Z * Z)):
            return counterexample(claim, "the dual terms allow Z, conjugate(Z) = inf", Z=Z)
    return PenaltyCheck(claim, "passed")


def _is_clearly_infinite(conjugate: Callable[[FloatArray], float], Z: FloatArray) -> bool:
    """Whether the conjugate is infinite at Z, and at some matrices near it."""
    shift = 0.05 * float(np.linalg.norm(Z)) * np.eye(len(Z))
    return all(math.isinf(conjugate(near)) for near in (Z, Z + shift, Z - shift, 0.9 * Z))


class _Statement:
    """A block as a CVXPY problem in the metric alone."""

    def __init__(self, block: Penalty, n_features: int, **kind: bool) -> None:
        import cvxpy as cp

        self.A = cp.Variable((n_features, n_features), name="A", **(kind or {"symmetric": True}))
        weight = _weight(block)
        self.term = cp.Constant(0.0) + block.expression(self.A, weight)
        self.constraints = block.constraints(self.A, weight)
        self.problem = cp.Problem(cp.Minimize(self.term), self.constraints)
        self.needs_solver = len(self.problem.variables()) > 1
        upper = np.triu_indices(n_features)
        self.given = cp.Parameter((n_features, n_features), symmetric=True)
        fixed = self.A[upper] == self.given[upper]
        self.at_given = cp.Problem(self.problem.objective, [*self.constraints, fixed])

    def value(self, matrix: FloatArray) -> float | str:
        """The value at a matrix; infinite where constraints are violated; why, if unknown."""
        if self.needs_solver:  # variables of the block's own
            self.given.value = symmetrize(matrix)
            return _solved(self.at_given)
        self.A.value = matrix
        off = max((float(np.max(c.violation())) for c in self.constraints), default=0.0)
        if off > TOLERANCE * (1.0 + float(np.linalg.norm(matrix))):
            return math.inf
        return math.inf if self.term.value is None else float(self.term.value)


def _solved(problem: Any) -> float | str:
    """The value of a problem by CLARABEL, or by SCS; why, if neither finds one."""
    from cvxpy.error import SolverError

    said = []
    for solver, options in (("CLARABEL", {}), ("SCS", {"eps_abs": 1e-6, "eps_rel": 1e-6})):
        try:
            with warnings.catch_warnings():  # CVXPY's, of a status that is looked at here
                warnings.simplefilter("ignore", UserWarning)
                problem.solve(solver=solver, warm_start=False, **options)
        except SolverError:
            said.append(f"{solver} failed")
            continue
        if problem.value is not None and "inaccurate" not in problem.status:
            return float(problem.value)
        said.append(f"{solver} ended with the status {problem.status}")
    return "; ".join(said)


def _weight(block: Penalty) -> Any:
    import cvxpy as cp

    return cp.Parameter(nonneg=True, name="weight", value=block.weight)
