"""Certifies a CVXPY problem that was made from an M-step by adding constraints or terms."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import cvxpy as cp
import numpy as np

from ..certificate import Certificate, certify_factor
from ..certificate.penalized import certify_penalized
from ..model.m_step_objective import MStepObjective
from ..numerics.checks import FloatArray
from ..numerics.psd_cone import project, scaled_factor, symmetrize
from ..numerics.rounding import down, up
from ..penalties.linear_constraints import LinearConstraints
from .added_parts import AddedParts, NotUnderstood, read_constraint, read_term, shown
from .affine_maps import is_same_constraint, is_same_expression, value_of
from .statement import state_m_step

SAME_VALUE = 1e-8
"""How far the value of a problem may be from that of its translation, relatively."""

MOST_STEPS = 20
"""Steps of Newton's method toward the linear constraints, at most."""


def certify_problem(
    problem: cp.Problem, objective: MStepObjective, *, enough: float = 0.0
) -> Certificate:
    """Certify the solution of an M-step to which constraints or terms were added in CVXPY.

    What was added to ``state_m_step(objective)`` is found and translated into blocks of
    :mod:`seraph_cvx.penalties`, and the value of the variable A is certified for the M-step with
    these. The solver's multipliers help to find a lower bound, but no bound relies on them.

    Linear constraints on A of any form are understood (``A[0, 1] == 0``, ``cp.trace(A) <= 3``,
    ``cp.diag(A) >= 0.1``), and ``A << B``. So are the terms that are linear with a PSD matrix, and
    nonnegative multiples of ``cp.sum_squares(A - A0)``, ``cp.norm1(A)`` (with or without its
    diagonal) and ``-cp.log_det(A)``.

    Parameters
    ----------
    problem : cvxpy.Problem
        A solved problem with the variable, all terms and all constraints of
        ``state_m_step(objective)``.
    objective : MStepObjective
        The M-step that the problem was made from.
    enough : float
        Stop looking for a better bound once the relative gap is at most this.

    Returns
    -------
    Certificate
        Bounds for the problem with all added terms: no PSD matrix that satisfies the constraints
        has a smaller value than `dual_value`. Constants are added exactly. Coefficients of terms
        are the exact sums of the doubles that CVXPY has, rounded once; those of constraints the
        doubles that CVXPY computes. Linear constraints are met to the tolerance of
        :class:`~seraph_cvx.penalties.LinearConstraints`.

    Raises
    ------
    ValueError
        Where a term or constraint is not understood, with its text; where the problem has other
        variables; where a term of the M-step is missing, or it has not been solved.

    Examples
    --------
    >>> import cvxpy as cp
    >>> from seraph_cvx import MStepObjective, PairSet, certify_problem, state_m_step
    >>> X = [[0.0, 1.0], [0.2, 3.0], [2.0, 2.0], [2.3, 0.0]]
    >>> objective = MStepObjective(PairSet.from_labels(X, [0, 0, 1, -1]), trace_weight=0.1)
    >>> problem = state_m_step(objective)
    >>> A = problem.variables()[0]
    >>> stricter = cp.Problem(problem.objective, [A[0, 1] == 0, cp.trace(A) <= 0.5])
    >>> optimum = stricter.solve(solver="CLARABEL")
    >>> certificate = certify_problem(stricter, objective)
    >>> certificate.relative_gap < 1e-4
    True
    """
    A = _metric_of(problem, objective)
    added = _read(problem, objective, A)
    extended = added.extend(objective)
    _compare_values(problem, extended, float(added.constant), A)
    if A.value is None:
        raise ValueError("The problem has no solution yet: call problem.solve() first.")
    if not np.all(np.isfinite(A.value)):
        raise ValueError("The solver's matrix holds NaN or infinity: try another solver.")
    L = scaled_factor(project(symmetrize(np.asarray(A.value, dtype=np.float64))))
    L = onto_linear_constraints(extended, L[:, np.any(L != 0.0, axis=0)])
    best = certify_factor(extended, L, enough)
    if added.blocks and added.has_multipliers and best.relative_gap > enough:
        guesses = _guesses(extended, added, L)
        best = best.with_bound_of(certify_penalized(extended, L, enough, guesses))
    return replace(
        best,
        primal_value=_shifted(best.primal_value, added.constant + added.constant_error, up),
        dual_value=_shifted(best.dual_value, added.constant - added.constant_error, down),
    ).checked()


def _shifted(bound: float, constant: Fraction, rounded: Callable[[Fraction], float]) -> float:
    """The exact sum of a bound and a constant, rounded."""
    return rounded(Fraction(bound) + constant) if math.isfinite(bound) else bound


def _metric_of(problem: cp.Problem, objective: MStepObjective) -> cp.Variable:
    m = objective.pairs.n_features
    if any(block.is_diagonal for block in objective.penalties):
        raise ValueError(
            "The objective has a block that makes A diagonal, and its statement no variable A: "
            "leave the block out, and add the constraint that A[i, j] == 0 for i < j."
        )
    named = [variable for variable in problem.variables() if variable.name() == "A"]
    if not isinstance(problem.objective, cp.Minimize) or len(named) != 1:
        raise ValueError(
            "The problem does not minimize over one variable named A: make it from "
            'state_m_step(objective, "primal"), by adding constraints or terms.'
        )
    if named[0].shape != (m, m) or not named[0].attributes["PSD"]:
        raise ValueError(f"The variable A is not {m} x {m} and PSD: take that of the statement.")
    return named[0]


def _read(problem: cp.Problem, objective: MStepObjective, A: cp.Variable) -> AddedParts:
    """What the problem has that the statement of the M-step has not."""
    original = state_m_step(objective)
    known = {variable.name() for variable in original.variables()}
    others = [v.name() for v in problem.variables() if v.name() not in known]
    if others:
        raise ValueError(
            f"The problem has variables besides A: {', '.join(others)}. Only A is understood: "
            "write what they are for as a Penalty block, and give it to MStepObjective."
        )
    terms = _without(
        _terms(problem.objective.expr), _terms(original.objective.expr), is_same_expression
    )
    constraints = _without(problem.constraints, original.constraints, is_same_constraint)
    added = AddedParts(A.shape[0])
    for term in terms:
        read_term(added, term, A)
    for constraint in constraints:
        read_constraint(added, constraint, A)
    return added.finished(objective.trace_weight)


def _terms(expression: cp.Expression) -> list[cp.Expression]:
    is_sum = type(expression).__name__ == "AddExpression"
    return list(expression.args) if is_sum else [expression]


def _without(given: Sequence[Any], original: Sequence[Any], is_same: Any) -> list[Any]:
    """What is given besides the original parts, each of which must be there."""
    rest = list(given)
    for part in original:
        found = next((k for k, one in enumerate(rest) if is_same(one, part)), None)
        if found is None:
            raise ValueError(
                f"The problem lacks a part of the M-step, or has changed it: {shown(part)}. "
                "Start from state_m_step(objective) with this very objective, and only add."
            )
        del rest[found]
    return rest


def _compare_values(
    problem: cp.Problem, extended: MStepObjective, constant: float, A: cp.Variable
) -> None:
    """Compare the problem with its translation at random matrices, as a last check."""
    rng = np.random.default_rng(0)
    for _ in range(4):
        F = rng.normal(size=A.shape)
        trial = F @ F.T / len(F)
        smooth = extended.program.value(trial)
        penalties = (block.value(trial) for block in extended.penalties)
        terms = [value for value in penalties if math.isfinite(value)]  # others are constraints
        with value_of(A, trial):
            stated = float(problem.objective.value)
        expected = smooth + sum(terms) + constant
        if not abs(stated - expected) <= SAME_VALUE * max(1.0, abs(expected)):
            raise NotUnderstood("objective", str(problem.objective))


def onto_linear_constraints(objective: MStepObjective, L: FloatArray) -> FloatArray:
    """A factor near L for which LL' satisfies the linear constraints among the penalties.

    By Newton's method for <B_i, LL'> = t_i, for equations and for bounds that are violated; L as it
    was, where that leads far away.
    """
    blocks = [block for block in objective.penalties if isinstance(block, LinearConstraints)]
    if not blocks:
        return L
    B = np.concatenate([block.matrices for block in blocks])
    t = np.concatenate([block.bounds for block in blocks])
    active = np.concatenate([np.full(len(b.bounds), b.is_equality) for b in blocks])
    tolerance = np.concatenate([np.full(len(b.bounds), b.tolerance) for b in blocks])
    small = 1e-2 * tolerance * (np.abs(t) + np.linalg.norm(B, axis=(1, 2)))
    moved = L
    for _ in range(MOST_STEPS):
        excess = np.einsum("kij,ij->k", B, moved @ moved.T) - t
        active = active | (excess > small)
        if not np.any(np.abs(excess[active]) > small[active]):
            return moved
        slopes = 2.0 * np.array([(matrix @ moved).ravel() for matrix in B[active]])
        step = np.linalg.lstsq(slopes, excess[active], rcond=1e-12)[0].reshape(L.shape)
        if np.linalg.norm(step) > 0.1 * np.linalg.norm(L):
            return L
        moved = moved - step
    return moved


def _guesses(extended: MStepObjective, added: AddedParts, L: FloatArray) -> list[FloatArray]:
    """The solver's multipliers of what was added; the other blocks adapt to them."""
    A = symmetrize(L @ L.T)
    gradient = extended.program.value_and_gradient(A)[1]
    n_own = len(extended.penalties) - len(added.blocks)
    given: list[FloatArray | None] = [*[None] * n_own, *added.multipliers]
    found = [
        block.subgradient(A) if Z is None else Z
        for block, Z in zip(extended.penalties, given, strict=True)
    ]
    for j, block in enumerate(extended.penalties):
        if given[j] is None:
            rest = gradient + sum(Z for i, Z in enumerate(found) if i != j)
            found[j] = block.guess(A, symmetrize(rest))
    return found
