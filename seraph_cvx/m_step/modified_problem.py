"""Certifies a CVXPY problem that was made from an M-step by adding constraints or terms."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
from numpy.typing import NDArray

from ..certificate import Certificate, certify_factor
from ..certificate.penalized import certify_penalized
from ..model.m_step_objective import MStepObjective
from ..numerics.checks import FloatArray
from ..numerics.psd_cone import check_metric, project, scaled_factor, symmetrize
from ..numerics.rounding import UNIT, down, up
from ..penalties import LinearConstraints, LogDet, Penalty, Ridge, Sparse, UpperBound
from .statement import state_m_step

SAME_VALUE = 1e-8
"""How far the value of a problem may be from that of its translation, relatively."""

SAME_MAP = 1e-10
"""How far an affine map may be from the expression it was read from, relatively, at a matrix."""

MOST_STEPS = 20
"""Steps of Newton's method toward the linear constraints, at most."""

MOST_SHOWN = 160
"""Characters of an expression that a message shows."""


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
    A = _metric_variable(problem, objective)
    added = _read(problem, objective, A)
    extended = added.extend(objective)
    _compare_values(problem, extended, float(added.constant), A)
    if A.value is None:
        raise ValueError("The problem has no solution yet: call problem.solve() first.")
    if not np.all(np.isfinite(A.value)):
        raise ValueError("The solver's matrix holds NaN or infinity: try another solver.")
    L = scaled_factor(project(symmetrize(np.asarray(A.value, dtype=np.float64))))
    L = _onto_linear_constraints(extended, L[:, np.any(L != 0.0, axis=0)])
    best = certify_factor(extended, L, enough)
    has_multipliers = any(Z is not None for Z in added.multipliers)
    if has_multipliers and best.relative_gap > enough:
        guesses = [*[None] * len(objective.penalties), *added.multipliers]
        best = best.with_bound_of(certify_penalized(extended, L, enough, guesses))
    return replace(
        best,
        primal_value=_shifted(best.primal_value, added.constant + added.constant_error, up),
        dual_value=_shifted(best.dual_value, added.constant - added.constant_error, down),
    ).checked()


def _shifted(bound: float, constant: Fraction, rounded: Callable[[Fraction], float]) -> float:
    """The exact sum of a bound and a constant, rounded."""
    return rounded(Fraction(bound) + constant) if math.isfinite(bound) else bound


def _metric_variable(problem: cp.Problem, objective: MStepObjective) -> cp.Variable:
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


def _read(problem: cp.Problem, objective: MStepObjective, A: cp.Variable) -> _AddedParts:
    """What the problem has that the statement of the M-step has not."""
    original = state_m_step(objective)
    known = {variable.name() for variable in original.variables()}
    others = [v.name() for v in problem.variables() if v.name() not in known]
    if others:
        raise ValueError(
            f"The problem has variables besides A: {', '.join(others)}. Only A is understood: "
            "write what they are for as a Penalty block, and give it to MStepObjective."
        )
    added = _AddedParts(A)
    for term in _without(_terms(problem), _terms(original)):
        added.read_term(term)
    for constraint in _without(problem.constraints, original.constraints):
        added.read_constraint(constraint)
    added.finish(objective.trace_weight)
    return added


def _terms(problem: cp.Problem) -> list[cp.Expression]:
    expression = problem.objective.expr
    is_sum = type(expression).__name__ == "AddExpression"
    return list(expression.args) if is_sum else [expression]


def _without(given: Sequence[Any], original: Sequence[Any]) -> list[Any]:
    """What is given besides the original parts, each of which must be there."""
    rest = list(given)
    for part in original:
        position = next((k for k, one in enumerate(rest) if _is_same(one, part)), None)
        if position is None:
            raise ValueError(
                f"The problem lacks a part of the M-step, or has changed it: {_shown(part)}. "
                "Start from state_m_step(objective) with this very objective, and only add."
            )
        del rest[position]
    return rest


def _is_same(one: Any, other: Any) -> bool:
    """Whether two expressions, constraints or data are the same tree with the same numbers."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    if type(one) is not type(other):
        return False
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(_is_same, one, other))
    if isinstance(one, cp.Constraint):
        return _is_same(one.args, other.args)
    if not isinstance(one, cp.Expression):
        return bool(one == other)
    if one.shape != other.shape:
        return False
    if isinstance(one, cp.Variable):
        return bool(one.name() == other.name() and one.attributes == other.attributes)
    if isinstance(one, cp.Parameter | cp.Constant):
        return np.array_equal(_dense(one.value), _dense(other.value))
    return _is_same([*one.args, one.get_data()], [*other.args, other.get_data()])


def _dense(value: Any) -> FloatArray:
    return np.asarray(value.todense() if hasattr(value, "todense") else value, dtype=np.float64)


def _compare_values(
    problem: cp.Problem, extended: MStepObjective, constant: float, A: cp.Variable
) -> None:
    """Compare the problem with its translation at random matrices, as a last check."""
    rng = np.random.default_rng(0)
    for _ in range(4):
        F = rng.normal(size=A.shape)
        trial = F @ F.T / len(F)
        penalties = (block.value(trial) for block in extended.penalties)
        terms = [value for value in penalties if math.isfinite(value)]  # others are constraints
        expected = extended.program.value(trial) + sum(terms) + constant
        with _value_of(A, trial):
            stated = float(problem.objective.value)
        if not abs(stated - expected) <= SAME_VALUE * max(1.0, abs(expected)):
            raise _NotUnderstood("objective", str(problem.objective))


def _onto_linear_constraints(objective: MStepObjective, L: FloatArray) -> FloatArray:
    """A factor near L for which LL' satisfies the linear constraints among the penalties.

    By Newton's method for <B_i, LL'> = t_i, for equations and for bounds that are violated; L as it
    was, where that leads far away.
    """
    blocks = [block for block in objective.penalties if isinstance(block, LinearConstraints)]
    if not blocks:
        return L
    B = np.concatenate([block.matrices for block in blocks])
    t = np.concatenate([block.bounds for block in blocks])
    counts = [len(block.bounds) for block in blocks]
    active = np.repeat([block.is_equality for block in blocks], counts)
    tolerance = np.repeat([block.tolerance for block in blocks], counts)
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


class _NotUnderstood(ValueError):
    """A term or constraint that cannot be read as a block."""

    def __init__(self, kind: str, text: str, why: str = "") -> None:
        super().__init__(
            f"This {kind} is not understood{': ' + why if why else ''}: {text}. Write it as a "
            "Penalty block of your own (examples/guide/model-your-own.md) and give it to "
            "MStepObjective(penalties=[...])."
        )


def _shown(part: Any) -> str:
    """A term or constraint as text, on one line and not too long."""
    text = " ".join(str(getattr(part, "label", None) or part).split())
    return text if len(text) <= MOST_SHOWN else text[:MOST_SHOWN] + " ..."


class _AffineMap(NamedTuple):
    """An affine function of a symmetric matrix: A -> <B_k, A> + c_k, in Fortran's order."""

    matrices: FloatArray
    constants: FloatArray

    def multiple_of_metric(self) -> float | None:
        """The s for which the map is s A plus a constant; None if there is none."""
        m = self.matrices.shape[1]
        if len(self.matrices) != m * m:
            return None
        s = float(self.matrices[0, 0, 0])
        identity = np.eye(m * m).reshape(m * m, m, m)
        expected = s * (identity + identity.transpose(0, 2, 1)) / 2.0
        return s if np.array_equal(self.matrices, expected) else None


def _affine_map(expression: cp.Expression, A: cp.Variable) -> _AffineMap | None:
    """Read the coefficients off an expression; None if it is not affine in the symmetric A alone.

    The coefficients are CVXPY's derivatives, and the constants its values at zero, all in doubles;
    that they are right is tested at a random matrix.
    """
    variables = expression.variables()
    if not expression.is_affine() or any(variable is not A for variable in variables):
        return None
    m = A.shape[0]
    with _value_of(A, np.zeros((m, m))):
        constants = np.ravel(_dense(expression.value), order="F")
        if not variables:
            return _AffineMap(np.zeros((len(constants), m, m)), constants)
        slopes = _dense(expression.grad[A])
    rows = slopes.reshape(m * m, -1).T.reshape(-1, m, m)  # of a symmetric A the order is no matter
    B = np.asarray((rows + rows.transpose(0, 2, 1)) / 2.0)
    trial = symmetrize(np.random.default_rng(0).normal(size=(m, m)))
    with _value_of(A, trial):
        expected = np.ravel(_dense(expression.value), order="F")
    off = np.einsum("kij,ij->k", B, trial) + constants - expected
    is_right = np.max(np.abs(off), initial=0.0) <= SAME_MAP * np.max(np.abs(expected), initial=0.0)
    return _AffineMap(B, constants) if is_right else None  # not where one of them is NaN


@contextmanager
def _value_of(A: cp.Variable, matrix: FloatArray) -> Iterator[None]:
    """Give a variable a value for a while, PSD or not."""
    before = A.value
    A.save_value(matrix)
    try:
        yield
    finally:
        A.save_value(before)


@dataclass
class _Rows:
    """Linear constraints <B_k, A> <= t_k, or = t_k, collected from several; a row only once."""

    matrices: list[FloatArray] = field(default_factory=list)
    bounds: list[float] = field(default_factory=list)
    multipliers: list[float] = field(default_factory=list)  # NaN where one is not known

    def add(self, matrix: FloatArray, bound: float, multiplier: float) -> None:
        """Add a row, or its multiplier to that of the same row."""
        for k, (B, t) in enumerate(zip(self.matrices, self.bounds, strict=True)):
            if t == bound and np.array_equal(B, matrix):
                self.multipliers[k] += multiplier
                return
        self.matrices.append(matrix)
        self.bounds.append(bound)
        self.multipliers.append(multiplier)


class _AddedParts:
    """What was added to an M-step in the variable A: blocks, a linear term and a constant.

    `linear` is the exact sum of all B in terms <B, A>, a matrix of fractions; `multipliers` are the
    solver's Z for each block, where it has one.
    """

    def __init__(self, A: cp.Variable) -> None:
        self.A, self.m = A, A.shape[0]
        self.linear = _exact(np.zeros(A.shape))
        self.constant = self.constant_error = self.log_det_weight = Fraction(0)
        self.blocks: list[Penalty] = []
        self.multipliers: list[FloatArray | None] = []
        self.upper, self.equal = _Rows(), _Rows()

    def add(self, block: Penalty, multiplier: FloatArray | None = None) -> None:
        """Add a block, and the solver's multiplier of it."""
        self.blocks.append(block)
        self.multipliers.append(multiplier)

    def finish(self, trace_weight: float) -> None:
        """Make blocks of all linear constraints and of -log det(A)."""
        if self.log_det_weight > 0:
            self._add_log_det(trace_weight)
        for rows in (self.upper, self.equal):
            if rows.bounds:
                matrices, nu = np.array(rows.matrices), np.array(rows.multipliers)
                if rows is self.upper:
                    block = LinearConstraints(matrices, upper=rows.bounds)
                else:
                    block = LinearConstraints(matrices, equal=rows.bounds)
                self.add(block, None if np.any(np.isnan(nu)) else np.tensordot(nu, matrices, 1))

    def extend(self, objective: MStepObjective) -> MStepObjective:
        """The M-step with what was added."""
        weight, rest = self._trace_part()
        total = float(Fraction(objective.trace_weight) + weight)
        if total < 0.0:
            text = f"the sum of all linear terms, with the trace weight {total:g}"
            raise _NotUnderstood("term", text, "a trace weight below zero")
        term = objective.manifold_term
        if np.any(rest):
            exact = rest if term is None else _exact(term) + rest
            try:
                term = check_metric(exact.astype(np.float64), self.m, repair=False)
            except ValueError:
                text = "the sum of all linear terms <B, A> but the trace"
                raise _NotUnderstood("term", text, "B is not PSD") from None
        return replace(
            objective,
            trace_weight=total,
            manifold_term=term,
            penalties=(*objective.penalties, *self.blocks),
        )

    def _trace_part(self) -> tuple[Fraction, NDArray[np.object_]]:
        """The linear term as a multiple of tr(A), and the rest."""
        trace = self.linear[0, 0] * np.eye(self.m, dtype=int)
        if np.array_equal(self.linear, trace):
            return self.linear[0, 0], self.linear - trace
        return Fraction(0), self.linear

    def _add_log_det(self, trace_weight: float) -> None:
        """Read -g log det(A) as the divergence from I/q less g q tr(A), plus a constant.

        The q is a power of two for which g q lies between half the trace weight and all of it, so
        that the difference of these is exact.
        """
        g, m = float(self.log_det_weight), self.m
        weight, rest = self._trace_part()
        total = float(Fraction(trace_weight) + weight)
        if np.any(rest) or not total > 0.0:
            raise _NotUnderstood("term", "-log det(A)", "it needs a trace weight above zero")
        exponent = math.floor(math.log2(total / g))
        q = 2.0**exponent
        self.add(LogDet(g, prior=np.eye(m) / q))
        self.linear = self.linear - Fraction(g) * Fraction(q) * np.eye(m, dtype=int)
        self.constant += Fraction(g) * m * (1 + exponent * Fraction(math.log(2.0)))
        self.constant_error += Fraction(g) * m * abs(exponent) * Fraction(UNIT)

    def read_term(self, term: cp.Expression, factor: Fraction = Fraction(1)) -> None:
        """Read a term of the objective, times a factor."""
        kind, args = type(term).__name__, term.args
        if kind in ("AddExpression", "NegExpression"):
            for arg in args:
                self.read_term(arg, -factor if kind == "NegExpression" else factor)
            return
        scalars = [a for a in args if a.is_constant() and a.size == 1]
        scalars.sort(key=lambda scalar: len(scalar.args))  # a plain number first
        if kind in ("multiply", "MulExpression") and scalars:
            other = args[1] if args[0] is scalars[0] else args[0]
            self.read_term(other, factor * _number(scalars[0]))
            return
        if kind == "DivExpression" and any(args[1] is scalar for scalar in scalars):
            self.read_term(args[0], factor / _number(args[1]))
            return
        linear = _affine_map(term, self.A)
        if linear is not None:
            self.linear = self.linear + factor * _exact(linear.matrices[0])
            self.constant += factor * Fraction(float(linear.constants[0]))
        elif not self._read_atom(term, factor):
            raise _NotUnderstood("term", _shown(term))

    def _read_atom(self, term: cp.Expression, factor: Fraction) -> bool:
        """Read a sum of squares, of absolute values or a log det; whether that is possible."""
        kind, args = type(term).__name__, term.args
        if kind == "Sum" and type(args[0]).__name__ == "abs":
            kind, args = "abs", args[0].args
        inside = _affine_map(args[0], self.A)
        if inside is None or term.size != 1:
            return False
        if kind == "quad_over_lin" and factor > 0 and args[1].is_constant():
            sign = inside.multiple_of_metric()
            prior = inside.constants.reshape(self.A.shape).T if sign in (1.0, -1.0) else None
            if sign is None or prior is None or not np.array_equal(prior, prior.T):
                return False
            self.add(Ridge(float(2 * factor / _number(args[1])), prior=-sign * prior))
            return True
        if kind == "log_det" and factor < 0:
            is_metric = inside.multiple_of_metric() == 1.0 and not np.any(inside.constants)
            self.log_det_weight -= factor * is_metric
            return is_metric
        return kind in ("norm1", "abs") and factor > 0 and self._read_absolute(inside, factor)

    def _read_absolute(self, inside: _AffineMap, factor: Fraction) -> bool:
        """Read a weighted sum of |A_ij|: equal weights off the diagonal, where A_ii = |A_ii|."""
        if np.any(inside.constants):
            return False
        weights = _exact(np.zeros(self.A.shape))
        for B in inside.matrices:
            i, j = np.nonzero(np.triu(B))
            if len(i) > 1:
                return False
            for a, b in zip(i.tolist(), j.tolist(), strict=True):
                weights[a, b] += factor * abs(Fraction(float(B[a, b]))) * (1 if a == b else 2)
        upper = weights[np.triu_indices(self.m, 1)]
        if np.any(upper != upper[:1]):
            return False
        if len(upper) and upper[0] > 0:
            self.add(Sparse(float(upper[0] / 2)))
        self.linear = self.linear + weights * np.eye(self.m, dtype=int)
        return True

    def read_constraint(self, constraint: Any) -> None:
        """Read a constraint: its rows, or an upper bound."""
        kind = type(constraint).__name__
        if kind == "PSD":
            self._read_bound(constraint)
            return
        sign = {"Inequality": 1.0, "NonPos": 1.0, "NonNeg": -1.0, "Equality": 1.0, "Zero": 1.0}
        linear = _affine_map(constraint.expr, self.A) if kind in sign else None
        if linear is None:
            raise _NotUnderstood("constraint", _shown(constraint))
        nu = _dual(constraint, len(linear.constants))
        is_equality = kind in ("Equality", "Zero")
        rows = self.equal if is_equality else self.upper
        for k, (B, c) in enumerate(zip(linear.matrices, linear.constants.tolist(), strict=True)):
            if np.any(B):
                rows.add(sign[kind] * B, -sign[kind] * c, math.nan if nu is None else float(nu[k]))
            elif c != 0.0 if is_equality else sign[kind] * c > 0.0:
                raise ValueError(
                    f"No matrix satisfies the constraint {_shown(constraint)}: A cancels in it."
                )

    def _read_bound(self, constraint: Any) -> None:
        """Read bound - s A PSD, s > 0, or that A is PSD, which it is anyway."""
        linear = _affine_map(constraint.args[0], self.A)
        if linear is None:
            raise _NotUnderstood("constraint", _shown(constraint))
        sign = linear.multiple_of_metric()
        if sign is not None and sign > 0.0 and not np.any(linear.constants):
            return
        if sign is None or not sign < 0.0:
            raise _NotUnderstood("constraint", _shown(constraint), "it is not A << B")
        constant = linear.constants.reshape(self.A.shape).T
        bound = constant / -sign
        if not np.array_equal(bound, bound.T):
            raise _NotUnderstood("constraint", _shown(constraint), "B is not symmetric")
        if np.any(_exact(bound) * Fraction(-sign) != _exact(constant)):
            why = "A has a factor by which B cannot be divided without rounding"
            raise _NotUnderstood("constraint", _shown(constraint), why)
        Z = _dual(constraint, self.m**2)
        self.add(
            UpperBound(bound), None if Z is None else symmetrize(-sign * Z.reshape(bound.shape))
        )


def _exact(matrix: FloatArray) -> NDArray[np.object_]:
    """A matrix of doubles as one of fractions."""
    return np.array([[Fraction(x) for x in row] for row in matrix.tolist()], dtype=object)


def _number(constant: cp.Expression) -> Fraction:
    """The value of a constant expression of one entry."""
    return Fraction(float(np.asarray(constant.value).item()))


def _dual(constraint: Any, size: int) -> FloatArray | None:
    """The solver's multipliers, in the order of the rows; None if there are none."""
    if constraint.dual_value is None:
        return None
    flat = np.ravel(np.asarray(constraint.dual_value, dtype=np.float64), order="F")
    return flat if len(flat) == size and np.all(np.isfinite(flat)) else None
