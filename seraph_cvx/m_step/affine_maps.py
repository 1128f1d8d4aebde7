"""Reads affine functions of the metric off CVXPY expressions, and compares expressions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np

from ..numerics.checks import FloatArray
from ..numerics.psd_cone import symmetrize

SAME = 1e-10
"""How far an affine map may be from the expression it was read from, relatively, at a matrix."""


@dataclass(frozen=True)
class AffineMap:
    """An affine function of a symmetric matrix: A -> <B_k, A> + c_k, entry by entry.

    Attributes
    ----------
    matrices : (k, m, m) array
        B_k, symmetric.
    constants : (k,) array
        c_k.
    """

    matrices: FloatArray
    constants: FloatArray

    def __call__(self, A: FloatArray) -> FloatArray:
        """The entries at A, in the order of ``expression.flatten(order="F")``."""
        return np.asarray(np.einsum("kij,ij->k", self.matrices, A) + self.constants)


def affine_map(expression: cp.Expression, A: cp.Variable) -> AffineMap | None:
    """Read the coefficients off an expression; None if it is not affine in the symmetric A alone.

    The coefficients are CVXPY's derivatives, and the constants its values at zero, all in doubles;
    that they are right is tested at a random matrix.

    Examples
    --------
    >>> A = cp.Variable((2, 2), PSD=True)
    >>> found = affine_map(3.0 * A[0, 1] - 1.0, A)
    >>> found.matrices.tolist(), found.constants.tolist()
    ([[[0.0, 1.5], [1.5, 0.0]]], [-1.0])
    """
    variables = expression.variables()
    if not expression.is_affine() or any(variable is not A for variable in variables):
        return None
    m = A.shape[0]
    with value_of(A, np.zeros((m, m))):
        constants = np.ravel(np.asarray(expression.value, dtype=np.float64), order="F")
        if not variables:
            return AffineMap(np.zeros((len(constants), m, m)), constants)
        slopes = expression.grad[A]
    dense = np.asarray(slopes.todense() if hasattr(slopes, "todense") else slopes, dtype=np.float64)
    rows = dense.reshape(m * m, -1).T.reshape(-1, m, m)  # of a symmetric A the order is no matter
    found = AffineMap(np.asarray((rows + rows.transpose(0, 2, 1)) / 2.0), constants)
    trial = symmetrize(np.random.default_rng(0).normal(size=(m, m)))
    with value_of(A, trial):
        expected = np.ravel(np.asarray(expression.value, dtype=np.float64), order="F")
    return found if _are_close(found(trial), expected) else None


@contextmanager
def value_of(A: cp.Variable, matrix: FloatArray) -> Iterator[None]:
    """Give a variable a value for a while, PSD or not."""
    before = A.value
    A.save_value(matrix)
    try:
        yield
    finally:
        A.save_value(before)


def is_same_expression(one: Any, other: Any) -> bool:
    """Whether two expressions are the same tree, with the same numbers in it.

    Examples
    --------
    >>> A = cp.Variable((2, 2), name="A")
    >>> B = cp.Variable((2, 2), name="A")
    >>> is_same_expression(2 * cp.trace(A), 2 * cp.trace(B))
    True
    >>> is_same_expression(2 * cp.trace(A), 3 * cp.trace(B))
    False
    """
    if type(one) is not type(other) or one.shape != other.shape:
        return False
    if isinstance(one, cp.Variable):
        return bool(one.name() == other.name() and one.attributes == other.attributes)
    if isinstance(one, cp.Parameter | cp.Constant):
        return np.array_equal(_dense(one.value), _dense(other.value))
    if len(one.args) != len(other.args) or not _is_same_data(one.get_data(), other.get_data()):
        return False
    return all(is_same_expression(a, b) for a, b in zip(one.args, other.args, strict=True))


def is_same_constraint(one: Any, other: Any) -> bool:
    """Whether two constraints are of one kind, with the same expressions on each side."""
    return (
        type(one) is type(other)
        and len(one.args) == len(other.args)
        and all(is_same_expression(a, b) for a, b in zip(one.args, other.args, strict=True))
    )


def _is_same_data(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    if isinstance(one, Sequence) and not isinstance(one, str):
        return (
            isinstance(other, Sequence)
            and len(one) == len(other)
            and all(_is_same_data(a, b) for a, b in zip(one, other, strict=True))
        )
    if isinstance(one, cp.Expression):
        return is_same_expression(one, other)
    return bool(one == other)


def _dense(value: Any) -> FloatArray:
    return np.asarray(value.todense() if hasattr(value, "todense") else value, dtype=np.float64)


def _are_close(one: FloatArray, other: FloatArray) -> bool:
    if one.shape != other.shape or not (np.all(np.isfinite(one)) and np.all(np.isfinite(other))):
        return False
    size = float(np.max(np.abs(other), initial=0.0))
    return bool(np.allclose(one, other, rtol=0.0, atol=SAME * size))
