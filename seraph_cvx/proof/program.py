"""The conic program that CVXPY makes of a problem, as the doubles that a certificate is about.

    minimize  c'x + x'Px/2   subject to   Ax + s = b,  s in K,

K a product of cones in the order of the rows. It is taken before a solver's own formatting: a PSD
block holds the lower triangle of the matrix, column by column, without factors of sqrt(2).
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, partial
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
import scipy
from cvxpy.error import ParameterError, SolverError
from cvxpy.reductions.cvx_attr2constr import recover_value_for_leaf
from cvxpy.reductions.dcp2cone.canonicalizers import CANON_METHODS
from cvxpy.reductions.eval_params import EvalParams
from cvxpy.reductions.solvers.conic_solvers.clarabel_conif import CLARABEL
from cvxpy.reductions.solvers.solving_chain import _build_solving_chain
from cvxpy.reductions.subexpr_cache import StructuralKeyCache, UncacheableError, expr_key
from cvxpy.utilities.psd_utils import TriangleKind
from scipy.sparse.linalg import ArpackError

from .arithmetic import Array
from .enclosure import constant_ball, value_of
from .point import ATTRIBUTES
from .rounding import UNIT

# Entries of a constant by which an approximation is recognized: log_normcdf has seven pieces.
MOST_ODD = 7

QUADRATURES = ("quantum_rel_entr", "quantum_cond_entr", "OpRelEntrConeQuad", "RelEntrConeQuad")

CONSTRAINTS = {
    *("Equality", "Inequality", "Zero", "NonNeg", "NonPos", "PSD", "SvecPSD", "SOC"),
    *("ExpCone", "PowCone3D", "PowConeND"),
}
"""Constraints whose conic form says the same; of any other nothing is claimed."""

HIDDEN = {"perspective": "f", "SuppFuncAtom": "_parent"}
"""Atoms that have more than arguments, and where it is: a function, or a set."""

WRAPS = {"psd_wrap": "PSD", "nsd_wrap": "NSD", "symmetric_wrap": "symmetric"}
WRAPS |= {"nonneg_wrap": "nonneg", "nonpos_wrap": "nonpos", "hermitian_wrap": "hermitian"}
"""Atoms that promise an attribute of their argument. That of a quad_form is proven elsewhere."""

WRAPPED = "If a quad_form has a matrix P with zero eigenvalues, write cp.psd_wrap(P): proven is P."

SIGNS = ("nonneg", "pos", "nonpos", "neg")

COMPILING = threading.RLock()
"""Held while values of a problem's variables are put aside, or read all together."""


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
        A = scipy.sparse.csc_array(self.A, dtype=np.float64, copy=True)
        P = None if self.P is None else scipy.sparse.csc_array(self.P, dtype=np.float64, copy=True)
        for matrix in (A, P) if P is not None else (A,):
            matrix.sum_duplicates()
            matrix.eliminate_zeros()
        b, c = (np.array(v, dtype=np.float64).reshape(-1) for v in (self.b, self.c))
        data = {"A": A.data, "b": b, "c": c, "offset": np.array(self.offset)}
        data |= {} if P is None else {"P": P.data}
        for name, values in data.items():
            if not np.isfinite(values).all():
                kind = "NaN" if np.isnan(values).any() else "infinity"
                raise Refused(
                    f"The numbers in {name} of the conic program include {kind}: a constant or "
                    "parameter does, or a product of them is beyond the largest double."
                )
            values.setflags(write=False)
        vars(self).update(A=A, b=b, c=c, P=P if P is not None and P.nnz else None)
        rows = sum(cone.rows for cone in self.cones)
        if A.shape != (rows, len(c)) or len(b) != rows:
            raise ValueError("A, b, c and the cones of a conic program do not fit together.")
        if P is not None and (P != P.T).nnz:
            raise ValueError("P is not symmetric.")

    @property
    def sign(self) -> float:
        """The sign of the program's value in the user's."""
        return -1.0 if self.maximize else 1.0

    @property
    def is_polyhedral(self) -> bool:
        """Whether all cones are zero or nonnegative."""
        return all(cone.kind in ("zero", "nonnegative") for cone in self.cones)

    def value(self, x: Array) -> float:
        """The objective c'x + x'Px/2 in plain doubles."""
        with np.errstate(all="ignore"):
            quadratic = 0.0 if self.P is None else 0.5 * float(x @ (self.P @ x))
            return float(self.c @ x) + quadratic

    def gap(self, lower: float, upper: float) -> float:
        """The gap of two bounds, relative to the larger of 1 and the problem's own value."""
        offset = self.sign * self.offset
        return (upper - lower) / max(1.0, abs(lower + offset), abs(upper + offset))

    def within(self, bounds: Array) -> ConicProgram:
        """The program with rows x_j <= B_j, then rows -x_j <= B_j, for each finite bound."""
        known = np.flatnonzero(np.isfinite(bounds))
        box = scipy.sparse.eye_array(len(self.c), format="csr")[known]
        return replace(
            self,
            A=scipy.sparse.vstack([self.A, box, -box]),
            b=np.concatenate([self.b, bounds[known], bounds[known]]),
            cones=(*self.cones, Cone("nonnegative", 2 * len(known))),
        )


class _Formatting(CLARABEL):  # type: ignore[misc]
    """Clarabel's cones, with PSD blocks as plain lower triangles."""

    PSD_TRIANGLE_KIND = TriangleKind.LOWER
    PSD_SQRT2_SCALING = False

    def name(self) -> str:
        return "SERAPH_CVX"

    def is_installed(self) -> bool:
        return True


@dataclass(frozen=True, eq=False)
class CanonicalProblem:
    """A problem of CVXPY with its conic program, and the columns of the user's variables."""

    problem: cp.Problem
    fixed: cp.Problem  # with the values that its parameters had
    program: ConicProgram
    chain: Any
    columns: Any  # CVXPY's parametrized program: where each compiled variable begins
    error_of_forms: float = 0.0  # |x'Px - x'Qx| <= this sum_i P_ii x_i^2, Q CVXPY's P

    def column_bounds(self, bounds: Mapping[cp.Variable, Any] | None) -> Array | None:
        """The bounds B_j of the columns, |x_j| <= B_j, infinite where none is given."""
        if not bounds:
            return None
        if not isinstance(bounds, Mapping):
            raise TypeError(f"bounds must be such as {{x: 10.0}}, not {bounds!r}.")
        known = np.full(len(self.program.c), np.inf)
        for variable, given in bounds.items():
            if not isinstance(variable, cp.Variable):
                raise TypeError(
                    f"bounds: the keys must be variables, not {variable!r}: write "
                    "bounds={x: 10.0} for a variable x of the problem."
                )
            name, shape = variable.name(), variable.shape
            try:
                size = np.broadcast_to(np.asarray(given, dtype=np.float64), shape)
            except (TypeError, ValueError):
                raise ValueError(
                    f"bounds: {name} has the shape {shape}: give a number, or an array of numbers "
                    "of that shape."
                ) from None
            place = self._places(variable)
            if place is None or not np.all(size >= 0.0):
                raise ValueError(
                    f"bounds: {name} must be a real variable of the problem, and its bounds on "
                    "absolute values nonnegative."
                )
            np.minimum.at(known, place[place > 0] - 1, size[place > 0])
        return known

    def rows_of_constraints(self) -> dict[int, slice]:
        """By the identifier of a constraint the rows of its conic form, without its atoms'."""
        places, start = {}, 0
        for constraint in self.columns.constraints:
            rows = sum(arg.size for arg in constraint.args)
            places[constraint.id] = slice(start, start + rows)
            start += rows
        ids = self.chain.compose_constr_id_map().items()
        return {first: places[last] for first, last in ids if last in places}

    def columns_of_values(self) -> Array:
        """The program's vector of the values of the user's variables; NaN where it has others."""
        x = np.full(len(self.program.c), np.nan)
        for variable in self.problem.variables():
            places = self._places(variable)
            if places is not None and variable.value is not None:
                value = variable.value
                value = value.toarray() if scipy.sparse.issparse(value) else np.asarray(value)
                x[places[places > 0] - 1] = value[places > 0]
        return x

    def direction(self, x: Array) -> dict[cp.Variable, Array]:
        """The values of the user's real variables in a vector of the program's."""
        places = {variable: self._places(variable) for variable in self.problem.variables()}
        padded = np.append(0.0, x)
        return {v: padded[place] for v, place in places.items() if place is not None}

    def _places(self, variable: cp.Variable) -> Array | None:
        """For each entry of a variable 1 plus its column, or 0 where it has none."""
        ids = self.chain.compose_var_id_map().get(variable.id, [variable.id])
        if variable.is_complex() or len(ids) != 1 or ids[0] not in self.columns.var_id_to_col:
            return None
        first, compiled = self.columns.var_id_to_col[ids[0]], self.columns.id_to_var[ids[0]]
        numbers = 1.0 + first + np.arange(compiled.size, dtype=np.float64)
        numbers = numbers.reshape(compiled.shape, order="F")
        places = recover_value_for_leaf(variable, numbers, project=False)
        places = places.toarray() if scipy.sparse.issparse(places) else np.asarray(places)
        return places.astype(np.int64).reshape(variable.shape, order="F")


def canonicalize(problem: cp.Problem, quadratic: bool = True) -> CanonicalProblem:
    """The conic program of a problem, with a quadratic form or not, or a refusal that says why."""
    try:
        _refuse(problem)
        with np.errstate(all="ignore"):
            chain, data, inverse_data = _compile(problem, use_quad_obj=quadratic)
    except ArpackError:
        raise Refused(f"CVXPY cannot tell whether a matrix is PSD. {WRAPPED}") from None
    maximize = isinstance(problem.objective, cp.Maximize)
    offset = float(np.asarray(inverse_data[-1]["offset"]).reshape(-1)[0])
    A, P = data["A"], data.get("P")
    cones = _cones(data["dims"])
    if P is not None:
        P = scipy.sparse.csc_array(P)
        P = 0.5 * P + 0.5 * P.T
    conic = ConicProgram(
        A, data["b"], data["c"], P, cones, -offset if maximize else offset, maximize
    )
    fixed = EvalParams().apply(problem)[0] if problem.parameters() else problem
    return CanonicalProblem(problem, fixed, conic, chain, data["param_prob"])


def _compile(problem: cp.Problem, **options: bool) -> tuple[Any, Any, Any]:
    """Compile a problem by CVXPY: the chain, its data, and what leads back to the variables."""
    try:
        try:
            return _compile_as_is(problem, options)
        except (TypeError, ValueError, IndexError):
            # CVXPY starts auxiliary variables at values that those of a solved problem imply, and
            # trips over some, as in sum_largest(x, 1.5).
            with _values_put_aside(problem):
                return _compile_as_is(problem, options)
    except ParameterError as error:
        raise Refused(f"A parameter has no value: {error}") from None
    except (AssertionError, NotImplementedError, TypeError, ValueError, IndexError) as error:
        words = str(error) or type(error).__name__
        cure = f". {WRAPPED}" if problem.parameters() else ""
        raise Refused(
            f"CVXPY does not compile the problem to a conic program: {words}{cure}"
        ) from error


def _compile_as_is(problem: cp.Problem, options: dict[str, bool]) -> tuple[Any, Any, Any]:
    formatting = _Formatting()
    chain = _build_solving_chain(
        problem, formatting, ignore_dpp=True, solver_opts={"use_quad_obj": True, **options}
    )
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
    """A context in which the variables of a problem have no values."""
    with COMPILING:
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
    cones = [Cone("zero", dims.zero), Cone("nonnegative", dims.nonneg)]
    cones += [Cone("second_order", rows) for rows in dims.soc]
    cones += [Cone("psd", side * (side + 1) // 2) for side in dims.psd]
    cones += [Cone("exponential", 3)] * dims.exp
    cones += [Cone("power", 3, (float(alpha),)) for alpha in dims.p3d]
    cones += [Cone("power_nd", len(each) + 1, tuple(map(float, each))) for each in dims.pnd]
    for exponents in dims.pnd:
        if abs(float(sum(map(Fraction, exponents))) - 1.0) > 1e-12:
            raise Refused(f"The exponents {list(exponents)} of a power cone do not sum to 1.")
    return tuple(cone for cone in cones if cone.rows)


def _refuse(problem: cp.Problem) -> None:
    """Raise `Refused` for a problem that has no conic program which says the same."""
    if not isinstance(problem, cp.Problem):
        raise TypeError(f"problem must be a cvxpy.Problem, not {problem!r}.")
    nodes = [node for node, _ in subexpressions(problem)]
    integers = dict.fromkeys(
        node.name()
        for node in nodes
        if isinstance(node, cp.Variable)
        and (node.attributes["boolean"] or node.attributes["integer"])
    )
    if integers or any(isinstance(node, cp.constraints.FiniteSet) for node in nodes):
        raise Refused(
            f"Integer or boolean variables ({', '.join(integers) or 'FiniteSet'}) are not "
            "certified: drop these attributes or constraints to certify the relaxation."
        )
    # CVXPY does not look whether the constraints of an indicator are DCP.
    rules = [problem, *(n for n in nodes if isinstance(n, cp.constraints.constraint.Constraint))]
    if not all(part.is_dcp() for part in rules):
        others = () if problem.is_dcp() else ("dgp", "dqcp")
        kinds = [name for name in others if getattr(problem, f"is_{name}")()]
        raise Refused(
            f"The problem is not DCP{' but ' + kinds[0].upper() if kinds else ''}: only problems "
            "that follow the rules of disciplined convex programming are certified. "
            "explain_convexity says which rule fails."
        )
    if not problem.variables():
        raise Refused("The problem has no variables: there is nothing to certify.")
    checks = [partial(check, node) for check in (_approximation, _mistranslation) for node in nodes]
    for check in (*checks, partial(_mistaken_for_another, nodes)):
        reason = check()
        if reason:
            raise Refused(f"{reason} A bound would be of another problem than yours.")


def subexpressions(root: Any) -> Iterator[tuple[Any, bool]]:
    """Every constraint and every node of the expression trees below a problem or a node, once.

    With each whether it is a term of the objective, of which CVXPY keeps quadratic forms as they
    are. The function inside of a perspective, the set of a support function, and the problem of
    a partial optimization are no arguments of their nodes, and part of the problem all the same.
    """
    stack, seen = [(root, True)], set()
    while stack:
        node, is_term = stack.pop()
        if (id(node), is_term) in seen:
            continue
        seen.add((id(node), is_term))
        yield node, is_term
        name = type(node).__name__
        is_term = is_term and type(node) not in CANON_METHODS and name != "PartialProblem"
        if isinstance(node, cp.Problem):
            stack += [(node.objective, is_term), *((part, False) for part in node.constraints)]
            continue
        stack += [(arg, is_term) for arg in (node.args[:1] if name == "QuadForm" else node.args)]
        if name in HIDDEN:
            hidden = getattr(node, HIDDEN[name])
            stack += [(part, False) for part in getattr(hidden, "constraints", [hidden])]


def unproven_promise(node: Any) -> str:
    """What a wrap of a constant, or the sign of a parameter, says wrongly; empty if it is proven.

    CVXPY takes what a parameter is off its sign for rounding.
    """
    name = type(node).__name__
    kinds = [WRAPS[name]] if name in WRAPS and node.is_constant() else []
    if isinstance(node, cp.Parameter):
        kinds = [sign for sign in SIGNS if node.attributes[sign]]
        name = f"The attribute of the parameter {node.name()}"
    for kind in kinds:
        value = value_of(node)
        with np.errstate(all="ignore"):
            off = 0.0 if value is None else ATTRIBUTES[kind](constant_ball(value), None).high
        if not np.max(off, initial=0.0) <= 0.0:
            return f"{name} says what is not proven: drop it."
    return ""


def matrix_of_form(node: Any) -> Any:
    """The real symmetric matrix of a quad_form; of a complex one that in real and imaginary parts.

    None where it is a parameter without a value.
    """
    x, P = node.args[0], node.args[1].value
    if P is None or not np.iscomplexobj(P):
        return P
    P = P.toarray() if scipy.sparse.issparse(P) else np.asarray(P)
    is_one = x.is_real() or x.is_imag()
    return P.real if is_one else np.block([[P.real, -P.imag], [P.imag, P.real]])


def _approximation(node: Any) -> str:
    """Why CVXPY's canonical form of a node is an approximation of it; empty where it is not."""
    name = type(node).__name__
    exponents = {"PowerApprox": ("p", "p_used"), "PnormApprox": ("original_p", "p")}
    if name in exponents:
        given, used = (getattr(node, attribute) for attribute in exponents[name])
        given, atom = getattr(given, "value", given), name.removesuffix("Approx").lower()
        if given is not None and float(used) != float(given):
            return (
                f"CVXPY replaces the exponent {float(given)!r} of {atom} by {used}: write "
                f"cp.{atom}(x, p, approx=False), which uses power cones."
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
    if isinstance(node, cp.constraints.constraint.Constraint) and name not in CONSTRAINTS:
        return f"The constraint {name} is not known to have a conic form that says the same."
    if name == "maximum":
        numbers = _odd_constants(node)
        for atom, known in _piecewise_atoms().items():
            if known <= numbers:
                return f"CVXPY's {atom} is a piecewise approximation."
    return ""


def _mistranslation(node: Any) -> str:
    """Why CVXPY's canonical form of a node may be of another function; empty where it is not."""
    name, promise = type(node).__name__, unproven_promise(node)
    if promise:
        return promise
    if name == "perspective":
        bounded = [v.name() for v in node.f.variables() if v.attributes["bounds"] is not None]
        if bounded:
            return (
                f"Inside of a perspective, CVXPY scales the bounds of {', '.join(bounded)} by its "
                "second argument: state them as constraints."
            )
        kind = cp.Minimize if node.f.is_convex() else cp.Maximize
        if len(_compile(cp.Problem(kind(node.f)), use_quad_obj=False)[1]["dims"].soc) > 1:
            return (
                "CVXPY may mix up the rows of a perspective whose function needs more than one "
                "second-order cone: write the perspective of each term by itself."
            )
    if name == "SuppFuncAtom":
        places = node._parent._K_sels
        if len(places["psd"]) or len(places["exp"]):
            return (
                "CVXPY rounds the numbers of a support function whose set needs semidefinite or "
                "exponential cones: write it as the maximum that it is."
            )
    return ""


def _mistaken_for_another(nodes: Sequence[Any]) -> str:
    """Which function CVXPY compiles once for two: it compares their types and arguments alone.

    The function of a perspective and the set of a support function are no part of these.
    """
    known: dict[Any, Any] = {}
    keys = StructuralKeyCache()
    for node in nodes:
        hidden = getattr(node, HIDDEN.get(type(node).__name__, ""), None)
        if hidden is None:
            continue
        try:
            is_other = known.setdefault(expr_key(node, keys), hidden) is not hidden
        except UncacheableError:
            continue
        if is_other:
            kind = "perspectives" if isinstance(node, cp.perspective) else "support functions"
            return (
                f"CVXPY takes two {kind} of the same arguments for one: give one of them a "
                "variable of its own, and a constraint that it is equal to the other."
            )
    return ""


@cache
def _piecewise_atoms() -> dict[str, set[float]]:
    """The numbers by which approximations are recognized that CVXPY writes in plain atoms."""
    x = cp.Variable()
    return {atom.__name__: _odd_constants(atom(x)) for atom in (cp.loggamma, cp.log_normcdf)}


def _odd_constants(node: Any) -> set[float]:
    """The numbers, other than halves of integers, in the small constants below a node."""
    found = [constant.value for constant in node.constants() if not constant.is_complex()]
    entries = [v.data if scipy.sparse.issparse(v) else np.ravel(v) for v in found]
    return {v for values in entries if len(values) <= MOST_ODD for v in values if 2.0 * v % 1.0}


def _weights_differ(node: Any) -> bool:
    """Whether the weights of geo_mean are not the doubles that were given, but for rounding."""
    p = np.maximum(np.ravel(node.p).astype(np.float64), 0.0)
    given, used = p / math.fsum(p), np.array([float(w) for w in node.w])
    return bool(np.any(np.abs(given - used) > 4.0 * UNIT * given))  # three roundings
