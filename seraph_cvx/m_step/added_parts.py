"""Reads constraints and terms in CVXPY as blocks of penalties, exactly or not at all."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import cvxpy as cp
import numpy as np
from numpy.typing import NDArray

from ..model.m_step_objective import MStepObjective
from ..numerics.checks import FloatArray
from ..numerics.psd_cone import check_metric, symmetrize
from ..numerics.rounding import UNIT
from ..penalties import LinearConstraints, LogDet, Penalty, Ridge, Sparse, UpperBound
from .affine_maps import AffineMap, affine_map

MOST_SHOWN = 160
"""Characters of an expression that a message shows."""


class NotUnderstood(ValueError):
    """A term or constraint that cannot be read as a block."""

    def __init__(self, kind: str, text: str, why: str = "") -> None:
        super().__init__(
            f"This {kind} is not understood{': ' + why if why else ''}: {text}. Write it as a "
            "Penalty block of your own (examples/guide/model-your-own.md) and give it to "
            "MStepObjective(penalties=[...])."
        )


def shown(part: Any) -> str:
    """A term or constraint as text, on one line and not too long."""
    label = getattr(part, "label", None)
    text = " ".join(str(label or part).split())
    return text if len(text) <= MOST_SHOWN else text[:MOST_SHOWN] + " ..."


@dataclass
class Rows:
    """Linear constraints <B_k, A> <= t_k, or = t_k, collected from several; a row only once."""

    matrices: list[FloatArray] = field(default_factory=list)
    bounds: list[float] = field(default_factory=list)
    multipliers: list[float | None] = field(default_factory=list)

    def add(self, matrix: FloatArray, bound: float, multiplier: float | None) -> None:
        """Add a row, or its multiplier to that of the same row."""
        for k, (B, t) in enumerate(zip(self.matrices, self.bounds, strict=True)):
            if t == bound and np.array_equal(B, matrix):
                mine = self.multipliers[k]
                known = [nu for nu in (mine, multiplier) if nu is not None]
                self.multipliers[k] = sum(known) if len(known) == 2 else None
                return
        self.matrices.append(matrix)
        self.bounds.append(bound)
        self.multipliers.append(multiplier)

    def block(self, *, is_equality: bool) -> tuple[Penalty, FloatArray | None]:
        """The rows as one block, and the solver's matrix Z for it."""
        block = LinearConstraints(
            np.array(self.matrices),
            upper=None if is_equality else self.bounds,
            equal=self.bounds if is_equality else None,
        )
        if any(nu is None for nu in self.multipliers):
            return block, None
        return block, np.tensordot(np.array(self.multipliers, dtype=np.float64), self.matrices, 1)


@dataclass
class AddedParts:
    """What was added to an M-step: blocks, a linear term and a constant.

    Attributes
    ----------
    n_features : int
    linear : (m, m) array of Fraction
        B of a term <B, A>, the exact sum of all that were read.
    constant, constant_error : Fraction
        The sum of all constants, and by how much it may be off.
    blocks : list of Penalty
    multipliers : list of (m, m) array or None
        The solver's Z for each block, where it has one.
    upper, equal : Rows
        Linear constraints, made blocks of by :meth:`finished`.
    log_det_weight : float
        Of -log det(A), as well.
    """

    n_features: int
    linear: NDArray[np.object_] = field(init=False)
    constant: Fraction = Fraction(0)
    constant_error: Fraction = Fraction(0)
    blocks: list[Penalty] = field(default_factory=list)
    multipliers: list[FloatArray | None] = field(default_factory=list)
    upper: Rows = field(default_factory=Rows)
    equal: Rows = field(default_factory=Rows)
    log_det_weight: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        self.linear = _exact(np.zeros((self.n_features, self.n_features)))

    @property
    def has_multipliers(self) -> bool:
        """Whether the solver has left a multiplier of some block."""
        return any(Z is not None for Z in self.multipliers)

    def add(self, block: Penalty, multiplier: FloatArray | None = None) -> None:
        """Add a block, and the solver's multiplier of it."""
        self.blocks.append(block)
        self.multipliers.append(multiplier)

    def finished(self, trace_weight: float) -> AddedParts:
        """The parts with all linear constraints and -log det(A) made blocks."""
        if self.log_det_weight > 0:
            self._add_log_det(trace_weight)
        for rows, is_equality in ((self.upper, False), (self.equal, True)):
            if rows.bounds:
                self.add(*rows.block(is_equality=is_equality))
        return self

    def extend(self, objective: MStepObjective) -> MStepObjective:
        """The M-step with what was added."""
        weight, rest = self._trace_part()
        total = float(Fraction(objective.trace_weight) + weight)
        if total < 0.0:
            text = f"the sum of all linear terms, with the trace weight {total:g}"
            raise NotUnderstood("term", text, "a trace weight below zero")
        term = objective.manifold_term
        if np.any(rest):
            exact = rest if term is None else _exact(term) + rest
            try:
                term = check_metric(exact.astype(np.float64), self.n_features, repair=False)
            except ValueError:
                text = "the sum of all linear terms <B, A> but the trace"
                raise NotUnderstood("term", text, "B is not PSD") from None
        return replace(
            objective,
            trace_weight=total,
            manifold_term=term,
            penalties=(*objective.penalties, *self.blocks),
        )

    def _trace_part(self) -> tuple[Fraction, NDArray[np.object_]]:
        """The linear term as a multiple of tr(A), and the rest."""
        trace = self.linear[0, 0] * np.eye(self.n_features, dtype=int)
        if np.array_equal(self.linear, trace):
            return self.linear[0, 0], self.linear - trace
        return Fraction(0), self.linear

    def _add_log_det(self, trace_weight: float) -> None:
        """Read -g log det(A) as the divergence from I/q less g q tr(A), plus a constant.

        The q is a power of two for which g q lies between half the trace weight and all of it, so
        that the difference of these is exact.
        """
        g, m = float(self.log_det_weight), self.n_features
        weight, rest = self._trace_part()
        total = float(Fraction(trace_weight) + weight)
        if np.any(rest) or not total > 0.0:
            raise NotUnderstood("term", "-log det(A)", "it needs a trace weight above zero")
        exponent = math.floor(math.log2(total / g))
        q = 2.0**exponent
        self.add(LogDet(g, prior=np.eye(m) / q))
        self.linear = self.linear - Fraction(g) * Fraction(q) * np.eye(m, dtype=int)
        self.constant += Fraction(g) * m * (1 + exponent * Fraction(math.log(2.0)))
        self.constant_error += Fraction(g) * m * abs(exponent) * Fraction(UNIT)


def _exact(matrix: FloatArray) -> NDArray[np.object_]:
    """A matrix of doubles as one of fractions."""
    return np.array([[Fraction(x) for x in row] for row in matrix.tolist()], dtype=object)


def _number(constant: cp.Expression) -> Fraction:
    """The value of a constant expression of one entry."""
    return Fraction(float(np.asarray(constant.value).item()))


def read_term(
    added: AddedParts, term: cp.Expression, A: cp.Variable, factor: Fraction = Fraction(1)
) -> None:
    """Read a term of the objective, times a factor, or raise :class:`NotUnderstood`."""
    kind, args = type(term).__name__, term.args
    if kind in ("AddExpression", "NegExpression"):
        for arg in args:
            read_term(added, arg, A, -factor if kind == "NegExpression" else factor)
        return
    scalars = [a for a in args if a.is_constant() and a.size == 1]
    scalars.sort(key=lambda scalar: len(scalar.args))  # a plain number first
    if kind in ("multiply", "MulExpression") and scalars:
        other = args[1] if args[0] is scalars[0] else args[0]
        read_term(added, other, A, factor * _number(scalars[0]))
        return
    if kind == "DivExpression" and any(args[1] is scalar for scalar in scalars):
        read_term(added, args[0], A, factor / _number(args[1]))
        return
    found = affine_map(term, A)
    if found is not None:
        added.linear = added.linear + factor * _exact(found.matrices[0])
        added.constant += factor * Fraction(float(found.constants[0]))
    elif not _read_atom(added, term, A, factor):
        raise NotUnderstood("term", shown(term))


def _read_atom(added: AddedParts, term: cp.Expression, A: cp.Variable, factor: Fraction) -> bool:
    """Read a sum of squares, a sum of absolute values or a log det; whether that is possible."""
    kind, args = type(term).__name__, term.args
    m = added.n_features
    inside = affine_map(args[0], A)
    if kind == "quad_over_lin" and factor > 0 and args[1].is_constant() and inside is not None:
        sign = _multiple_of_metric(inside, m)
        if sign is None or abs(sign) != 1.0 or term.size != 1:
            return False
        prior = -sign * inside.constants.reshape(m, m).T
        if not np.array_equal(prior, prior.T):
            return False
        added.add(Ridge(float(2 * factor / _number(args[1])), prior=prior))
        return True
    if kind == "log_det" and factor < 0 and inside is not None:
        is_metric = _multiple_of_metric(inside, m) == 1.0 and not np.any(inside.constants)
        added.log_det_weight -= factor * is_metric
        return is_metric
    if kind == "Sum" and type(args[0]).__name__ == "abs" and term.size == 1:
        inside = affine_map(args[0].args[0], A)
    elif kind not in ("norm1", "abs") or term.size != 1:
        return False
    return inside is not None and factor > 0 and _read_absolute(added, inside, factor)


def _read_absolute(added: AddedParts, inside: AffineMap, factor: Fraction) -> bool:
    """Read a weighted sum of |A_ij|: equal weights off the diagonal, where A_ii = |A_ii|."""
    if np.any(inside.constants):
        return False
    weights = _exact(np.zeros((added.n_features,) * 2))
    for B in inside.matrices:
        i, j = np.nonzero(np.triu(B))
        if len(i) > 1:
            return False
        for a, b in zip(i.tolist(), j.tolist(), strict=True):
            weights[a, b] += factor * abs(Fraction(float(B[a, b]))) * (1 if a == b else 2)
    upper = weights[np.triu_indices(added.n_features, 1)]
    if len(upper) and np.any(upper != upper[0]):
        return False
    if len(upper) and upper[0] > 0:
        added.add(Sparse(float(upper[0] / 2)))
    added.linear = added.linear + weights * np.eye(added.n_features, dtype=int)
    return True


def read_constraint(added: AddedParts, constraint: Any, A: cp.Variable) -> None:
    """Read a constraint: its rows, or an upper bound; or raise :class:`NotUnderstood`."""
    kind = type(constraint).__name__
    found = affine_map(constraint.args[0], A) if kind == "PSD" else None
    if found is not None:
        return _read_bound(added, constraint, found)
    sign = {"Inequality": 1.0, "NonPos": 1.0, "NonNeg": -1.0, "Equality": 1.0, "Zero": 1.0}
    found = affine_map(constraint.expr, A) if kind in sign else None
    if found is None:
        raise NotUnderstood("constraint", shown(constraint))
    nu = _dual(constraint, len(found.constants))
    is_equality = kind in ("Equality", "Zero")
    rows = added.equal if is_equality else added.upper
    for k, (B, c) in enumerate(zip(found.matrices, found.constants.tolist(), strict=True)):
        if np.any(B):
            rows.add(sign[kind] * B, -sign[kind] * c, None if nu is None else float(nu[k]))
        elif c != 0.0 if is_equality else sign[kind] * c > 0.0:
            raise ValueError(
                f"No matrix satisfies the constraint {shown(constraint)}: A cancels in it."
            )
    return None


def _read_bound(added: AddedParts, constraint: Any, found: AffineMap) -> None:
    """Read bound - s A PSD, s > 0, or that A is PSD, which it is anyway."""
    m = added.n_features
    constant = found.constants.reshape(m, m).T if len(found.constants) == m * m else None
    sign = _multiple_of_metric(found, m)
    if constant is not None and sign is not None and sign > 0.0 and not np.any(constant):
        return
    if constant is None or sign is None or not sign < 0.0:
        raise NotUnderstood("constraint", shown(constraint), "it is not A << B")
    bound = constant / -sign
    if not np.array_equal(bound, bound.T):
        raise NotUnderstood("constraint", shown(constraint), "B is not symmetric")
    if any(
        Fraction(b) * Fraction(-sign) != Fraction(c)
        for b, c in zip(bound.flat, constant.flat, strict=True)
    ):
        why = "A has a factor by which B cannot be divided without rounding"
        raise NotUnderstood("constraint", shown(constraint), why)
    Z = _dual(constraint, m * m)
    multiplier = None if Z is None else symmetrize(-sign * Z.reshape(m, m))
    added.add(UpperBound(bound), multiplier)


def _multiple_of_metric(found: AffineMap, m: int) -> float | None:
    """The s for which an m x m affine map is s A plus a constant; None if there is none."""
    if len(found.matrices) != m * m:
        return None
    s = float(found.matrices[0, 0, 0])
    identity = np.eye(m * m).reshape(m * m, m, m)
    expected = s * (identity + identity.transpose(0, 2, 1)) / 2.0
    return s if np.array_equal(found.matrices, expected) else None


def _dual(constraint: Any, size: int) -> FloatArray | None:
    """The solver's multipliers, in the order of the rows; None if there are none."""
    value = constraint.dual_value
    if value is None:
        return None
    flat = np.ravel(np.asarray(value, dtype=np.float64), order="F")
    return flat if len(flat) == size and np.all(np.isfinite(flat)) else None
