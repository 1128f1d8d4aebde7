"""The conic program that CVXPY makes of a problem, as the doubles that a certificate is about.

    minimize  c'x + x'Px/2   subject to   Ax + s = b,  s in K,

K a product of cones in the order of the rows. It is taken before a solver's own formatting: a PSD
block holds the lower triangle of the matrix, column by column, without factors of sqrt(2).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
import scipy
from cvxpy.error import ParameterError, SolverError
from cvxpy.reductions.solution import Solution
from cvxpy.reductions.solvers.conic_solvers.clarabel_conif import CLARABEL
from cvxpy.reductions.solvers.solving_chain import _build_solving_chain
from cvxpy.utilities.psd_utils import TriangleKind

from .arithmetic import Array

# Rows or columns, rows of a dense block, and products in A'A where that is sparse.
MOST_ROWS, MOST_DENSE, MOST_PRODUCTS = 100_000, 7_000, 1e9

QUADRATURES = ("quantum_rel_entr", "quantum_cond_entr", "OpRelEntrConeQuad", "RelEntrConeQuad")

IN_PLAIN_ATOMS = {"loggamma": 2.18382, "log_normcdf": math.sqrt(0.02301291)}
"""Approximations that CVXPY writes as a maximum, recognized by one of their constants."""


class Refused(ValueError):
    """What cannot be certified, by name, and what to do instead."""


class Cone(NamedTuple):
    """One factor of K: its kind, the number of its rows, and the exponents of a power cone."""

    kind: str
    rows: int
    exponents: tuple[float, ...] = ()

    @property
    def side(self) -> int:
        """The order of the matrices of a PSD cone."""
        return (math.isqrt(8 * self.rows + 1) - 1) // 2

    def as_json(self) -> list[Any]:
        """The entry of the cone in a certificate file."""
        if self.kind == "power":
            return ["power", self.exponents[0].hex()]
        if self.kind == "power_nd":
            return ["power_nd", [alpha.hex() for alpha in self.exponents]]
        return [self.kind, self.side if self.kind == "psd" else self.rows]


def lower_triangle(side: int) -> tuple[Array, Array]:
    """Rows and columns of the lower triangle of a matrix, column by column."""
    j, i = np.triu_indices(side)
    return i, j


@dataclass(frozen=True, eq=False)
class ConicProgram:
    """A conic program in doubles; the user's value is offset + sign * (its value)."""

    A: Any  # scipy.sparse.csc_array
    b: Array
    c: Array
    P: Any
    cones: tuple[Cone, ...]
    offset: float = 0.0
    maximize: bool = False

    def __post_init__(self) -> None:
        for name in ("A", "P"):
            matrix = getattr(self, name)
            if matrix is not None:
                matrix = scipy.sparse.csc_array(matrix, dtype=np.float64, copy=True)
                matrix.sum_duplicates()
                matrix.eliminate_zeros()
                matrix.data.setflags(write=False)
            object.__setattr__(self, name, matrix)
        for name in ("b", "c"):
            vector = np.array(getattr(self, name), dtype=np.float64).reshape(-1)
            vector.setflags(write=False)
            object.__setattr__(self, name, vector)
        if self.P is not None and not self.P.nnz:
            object.__setattr__(self, "P", None)
        data = {"A": self.A.data, "b": self.b, "c": self.c}
        for name, values in (data | ({} if self.P is None else {"P": self.P.data})).items():
            if not np.isfinite(values).all():
                raise Refused(
                    f"The data {name} of the conic program hold NaN or infinity: look for them in "
                    "the constants and parameters of the problem."
                )
        rows = sum(cone.rows for cone in self.cones)
        if self.A.shape != (rows, len(self.c)) or len(self.b) != rows:
            raise ValueError("A, b, c and the cones of a conic program do not fit together.")
        if self.P is not None and (self.P != self.P.T).nnz:
            raise ValueError("P is not symmetric.")

    @property
    def sign(self) -> float:
        """The sign of the program's value in the user's."""
        return -1.0 if self.maximize else 1.0

    def value(self, x: Array) -> float:
        """The objective c'x + x'Px/2 in plain doubles."""
        quadratic = 0.0 if self.P is None else 0.5 * float(x @ (self.P @ x))
        return float(self.c @ x) + quadratic


class _Formatting(CLARABEL):  # type: ignore[misc]
    """Clarabel's cones, with PSD blocks as plain lower triangles."""

    PSD_TRIANGLE_KIND = TriangleKind.LOWER
    PSD_SQRT2_SCALING = False

    def name(self) -> str:
        return "SERAPH_CVX"

    def is_installed(self) -> bool:
        return True

    def invert(self, solution: Any, inverse_data: Any) -> Solution:
        return Solution("optimal", 0.0, {inverse_data[self.VAR_ID]: solution}, {}, {})


@dataclass(frozen=True, eq=False)
class CanonicalProblem:
    """A problem of CVXPY with its conic program, and the way back to the user's variables."""

    problem: cp.Problem
    program: ConicProgram
    chain: Any
    inverse_data: Any

    def column_bounds(self, bounds: Mapping[cp.Variable, Any] | None) -> Array | None:
        """The bounds B_j of the columns, |x_j| <= B_j, infinite where none is given."""
        if not bounds:
            return None
        known = np.full(len(self.program.c), np.inf)
        numbers = np.arange(len(known), dtype=np.float64)
        places = self.chain.invert(numbers, self.inverse_data).primal_vars
        for variable, given in bounds.items():
            size = np.broadcast_to(np.asarray(given, dtype=np.float64), variable.shape)
            place = places.get(variable.id)
            if place is None or np.iscomplexobj(place) or not np.all(size >= 0.0):
                raise ValueError(
                    f"bounds: {variable.name()} must be a real variable of the problem, and its "
                    "bounds on absolute values nonnegative."
                )
            np.minimum.at(known, np.asarray(place).astype(np.int64).ravel(), size.ravel())
        return known


def canonicalize(problem: cp.Problem) -> CanonicalProblem:
    """The conic program of a problem, or a refusal that names the reason."""
    _refuse(problem)
    with warnings.catch_warnings(), _values_put_aside(problem):
        warnings.simplefilter("ignore")
        try:
            chain, data, inverse_data = _compile(problem)
        except ParameterError as error:
            raise Refused(f"A parameter has no value: {error}") from None
    attributes = data["param_prob"].x.attributes
    if attributes["boolean"] or attributes["integer"]:
        raise Refused("A constraint such as FiniteSet makes variables integer: not certified.")
    maximize = isinstance(problem.objective, cp.Maximize)
    offset = float(np.asarray(inverse_data[-1]["offset"]).reshape(-1)[0])
    A, P = data["A"], data.get("P")
    cones = _cones(data["dims"])
    counts = np.diff(scipy.sparse.csr_array(A).indptr).astype(np.float64)
    if (
        max(A.shape) > MOST_ROWS
        or max((cone.rows for cone in cones if cone.kind in ("second_order", "psd")), default=0)
        > MOST_DENSE
        or (A.shape[1] > MOST_DENSE and float(counts @ counts) > MOST_PRODUCTS)
    ):
        raise Refused(
            f"The conic program, {A.shape[1]} variables, {A.shape[0]} rows and {A.nnz} entries, is "
            f"too large: at most {MOST_ROWS} of either, {MOST_DENSE} rows in a cone, and sparse "
            f"beyond {MOST_DENSE} variables."
        )
    if P is not None:
        P = scipy.sparse.csc_array(P)
        P = 0.5 * P + 0.5 * P.T
    conic = ConicProgram(
        A, data["b"], data["c"], P, cones, -offset if maximize else offset, maximize
    )
    return CanonicalProblem(problem, conic, chain, inverse_data)


def _compile(problem: cp.Problem) -> tuple[Any, Any, Any]:
    """Compile a problem by CVXPY: the chain, its data, and what leads back to the variables."""
    formatting, options = _Formatting(), {"use_quad_obj": True}
    chain = _build_solving_chain(problem, formatting, ignore_dpp=True, solver_opts=options)
    # The function inside of a perspective is compiled for the solver that the context names. Inside
    # of a second one it is looked up by name, and PSD blocks are then scaled as Clarabel has them.
    chain.solver_context.solver_name = formatting
    try:
        return chain, *chain.apply(problem)
    except SolverError:
        chain.solver_context.solver_name = CLARABEL().name()
        data, inverse_data = chain.apply(problem)
    if data["dims"].psd:
        raise Refused("A perspective inside of another one, next to PSD cones, is not certified.")
    return chain, data, inverse_data


@contextmanager
def _values_put_aside(problem: cp.Problem) -> Iterator[None]:
    """Without values of the variables: of a solved problem, CVXPY's sum_largest trips over them."""
    values = [(variable, variable._value) for variable in problem.variables()]
    for variable, _ in values:
        variable._value = None
    try:
        yield
    finally:
        for variable, value in values:
            variable._value = value


def _cones(dims: Any) -> tuple[Cone, ...]:
    """The cones of CVXPY's dimensions, in the order of the rows."""
    cones = []
    if dims.zero:
        cones.append(Cone("zero", dims.zero))
    if dims.nonneg:
        cones.append(Cone("nonnegative", dims.nonneg))
    cones += [Cone("second_order", rows) for rows in dims.soc]
    cones += [Cone("psd", side * (side + 1) // 2) for side in dims.psd]
    cones += [Cone("exponential", 3)] * dims.exp
    cones += [Cone("power", 3, (float(alpha),)) for alpha in dims.p3d]
    for exponents in dims.pnd:
        if abs(float(sum(map(Fraction, exponents))) - 1.0) > 1e-12:
            raise Refused(f"The exponents {list(exponents)} of a power cone do not sum to 1.")
        cones.append(Cone("power_nd", len(exponents) + 1, tuple(map(float, exponents))))
    return tuple(cones)


def _refuse(problem: cp.Problem) -> None:
    """Raise `Refused` for a problem that has no conic program which says the same."""
    if problem.is_mixed_integer():
        names = [v.name() for v in problem.variables() if v.attributes["boolean"]]
        names += [v.name() for v in problem.variables() if v.attributes["integer"]]
        raise Refused(
            f"Integer or boolean variables ({', '.join(names) or 'FiniteSet'}) are not certified: "
            "drop these attributes to certify the relaxation."
        )
    if not problem.is_dcp():
        kinds = [name for name in ("dgp", "dqcp") if getattr(problem, f"is_{name}")()]
        raise Refused(
            f"The problem is not DCP{' but ' + kinds[0].upper() if kinds else ''}: only problems "
            "that follow the rules of disciplined convex programming are certified. "
            "explain_convexity says which rule fails."
        )
    if not problem.variables():
        raise Refused("The problem has no variables: there is nothing to certify.")
    for expression in subexpressions(problem):
        reason = _approximation(expression)
        if reason:
            raise Refused(f"{reason} A bound would be of the approximation, not of the problem.")


def subexpressions(problem: cp.Problem) -> Iterator[Any]:
    """Every constraint and every node of the expression trees of a problem, once."""
    stack, seen = [problem.objective, *problem.constraints], set()
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        inside = isinstance(node, cp.Problem)
        stack += [node.objective, *node.constraints] if inside else node.args


def _approximation(node: Any) -> str:
    """Why CVXPY's canonical form of a node is an approximation of it; empty where it is not."""
    name = type(node).__name__
    if name == "PowerApprox":
        p = node.p.value
        if p is not None and float(node.p_used) != float(p):
            return (
                f"CVXPY replaces the exponent {float(p)!r} of power by {node.p_used}: write "
                "cp.power(x, p, approx=False), which uses power cones."
            )
    if name == "PnormApprox" and float(node.p) != float(node.original_p):
        return (
            f"CVXPY replaces the exponent {float(node.original_p)!r} of pnorm by {node.p}: write "
            "cp.pnorm(x, p, approx=False), which uses power cones."
        )
    if name == "GeoMeanApprox" and _weights_differ(node):
        return (
            "CVXPY replaces the weights of geo_mean by nearby fractions: write "
            "cp.geo_mean(x, p, approx=False), which uses power cones."
        )
    if name in QUADRATURES or (name == "von_neumann_entr" and node.quad_approx):
        return f"CVXPY approximates {name} by a quadrature."
    if name == "PowCone3DApprox":
        return "CVXPY approximates PowCone3DApprox by second-order cones: use PowCone3D."
    for atom, constant in IN_PLAIN_ATOMS.items():
        if name == "maximum" and _has_constant(node, constant, 3):
            return f"CVXPY's {atom} is a piecewise approximation."
    return ""


def _weights_differ(node: Any) -> bool:
    """Whether the weights of geo_mean are not the doubles that were given, but for rounding."""
    total = sum(Fraction(float(p)) for p in np.ravel(node.p) if p > 0)
    given = [float(Fraction(float(p)) / total) for p in np.ravel(node.p) if p > 0]
    used = [float(w) for w in node.w if w > 0]
    return len(given) != len(used) or any(
        abs(g - w) > 4.0 * math.ulp(g) for g, w in zip(given, used, strict=True)
    )


def _has_constant(node: Any, constant: float, depth: int) -> bool:
    """Whether one of the constants a few levels below a node has this entry."""
    if isinstance(node, cp.Constant):
        value = node.value
        return constant in (value.data if scipy.sparse.issparse(value) else np.ravel(value))
    return depth > 0 and any(_has_constant(arg, constant, depth - 1) for arg in node.args)
