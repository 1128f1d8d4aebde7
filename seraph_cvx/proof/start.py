"""Approximate solutions of a conic program, by Clarabel or SCS: a start, never evidence."""

from __future__ import annotations

import math
import time
from typing import Any, NamedTuple

import numpy as np
import scipy

from .arithmetic import Array
from .program import CanonicalProblem, Cone, ConicProgram, lower_triangle

# SCS 3.3 did not return from programs with numbers of 1e200 and 1e-200.
WIDEST = 1e100


DEPTHS = (0.0, 1e-9, 1e-7, 1e-5, 1e-3)
"""How far points of first-order methods are moved into the cones, relatively, one try each."""


LARGEST = 1e8
"""Entries of Clarabel's matrix in PSD blocks: 0.8 GB, and its factors as much again."""

FIRST_ORDER = ("SCS", "OSQP")
"""Solvers whose answers may be far off."""


class Start(NamedTuple):
    """Approximate x, s and y of a conic program, and where they come from."""

    x: Array
    s: Array
    y: Array
    status: str
    solver: str
    seconds: float = 0.0

    @property
    def is_finite(self) -> bool:
        """Whether no entry is NaN or infinite."""
        return all(bool(np.isfinite(v).all()) for v in (self.x, self.s, self.y))

    @property
    def is_interior(self) -> bool:
        """Whether it is the answer of an interior-point method, as that method had it."""
        return self.solver == "CLARABEL"

    @property
    def is_final(self) -> bool:
        """Whether there will hardly be a better start."""
        return self.solver not in FIRST_ORDER

    @property
    def depths(self) -> tuple[float, ...]:
        """How far to move it into the cones, relatively, one try each."""
        return (0.0,) if self.is_interior else DEPTHS


def solve(
    program: ConicProgram, solver: str = "CLARABEL", seconds: float = math.inf, **options: Any
) -> Start:
    """Solve a conic program, in some seconds at most; the status is the solver's own word."""
    began = time.perf_counter()
    run = _clarabel if solver == "CLARABEL" else _scs
    m, n = program.A.shape
    x, s, y, status = np.full(n, np.nan), np.full(m, np.nan), np.full(m, np.nan), "panicked"
    if seconds < math.inf:
        options["time_limit" if solver == "CLARABEL" else "time_limit_secs"] = seconds
    entries = sum(cone.rows**2 for cone in program.cones if cone.kind == "psd")
    if solver == "CLARABEL" and entries > LARGEST:
        return Start(x, s, y, "its PSD blocks are too large for Clarabel", solver)
    with _Panics():
        x, s, y, status = run(program, options)
    return Start(x, s, y, status, solver, time.perf_counter() - began)


class _Panics:
    """Swallows what Clarabel raises where its own code fails: no Exception, and without a name."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type | None, *others: object) -> bool:
        return kind is not None and kind.__name__ == "PanicException"


def known_start(canonical: CanonicalProblem) -> Start | None:
    """The answer that a solved problem has, if it says enough about its conic program.

    Clarabel's and SCS's is the one that CVXPY keeps; that of others is in the values of variables
    and multipliers, where CVXPY has added no variables of its own.
    """
    problem, program = canonical.problem, canonical.program
    stats = problem.solver_stats
    name = "" if stats is None else str(stats.solver_name)
    found = getattr(problem, "_solver_cache", {}).get(name)
    if name == "CLARABEL" and found is not None and hasattr(found, "get_solution"):
        answer = found.get_solution()
        x, s, y, status = answer.x, answer.s, answer.z, str(answer.status)
    elif name == "SCS" and found is not None:
        x, s, y, status = found["x"], found["s"], found["y"], str(found["info"]["status"])
    else:
        return _start_of_values(canonical, name) if name else None
    order, scale = _svec(program.cones, upper=name == "CLARABEL")
    if len(x) != len(program.c) or len(s) != len(program.b):
        return None
    slack, dual = np.empty((2, len(program.b)))
    slack[order], dual[order] = np.array(s) / scale, np.array(y) * scale
    return Start(np.array(x), slack, dual, status, name)


def _start_of_values(canonical: CanonicalProblem, name: str) -> Start | None:
    """The start that values and multipliers are, if these are all that the program has."""
    problem, program = canonical.problem, canonical.program
    x, y = canonical.columns_of_values(), np.full(len(program.b), np.nan)
    places = canonical.rows_of_constraints()
    for constraint in problem.constraints:
        rows, value = places.get(constraint.id), constraint.dual_value
        if rows is None or not isinstance(value, np.ndarray | float):
            return None
        value = np.asarray(value, dtype=np.float64)
        if type(constraint).__name__ == "PSD":
            i, j = lower_triangle(len(value))
            value = (value + value.T)[i, j] * np.where(i == j, 0.5, 1.0)
        value = value.flatten(order="F")
        if len(value) != rows.stop - rows.start:
            return None
        y[rows] = value
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return None
    return Start(x, program.b - program.A @ x, y, str(problem.status), name)


def _clarabel(program: ConicProgram, options: dict[str, Any]) -> tuple[Any, ...]:
    import clarabel  # type: ignore[import-untyped]

    names = {
        "zero": lambda cone: clarabel.ZeroConeT(cone.rows),
        "nonnegative": lambda cone: clarabel.NonnegativeConeT(cone.rows),
        "second_order": lambda cone: clarabel.SecondOrderConeT(cone.rows),
        "psd": lambda cone: clarabel.PSDTriangleConeT(cone.side),
        "exponential": lambda cone: clarabel.ExponentialConeT(),
        "power": lambda cone: clarabel.PowerConeT(cone.exponents[0]),
        "power_nd": lambda cone: clarabel.GenPowerConeT(_summing_to_one(cone.exponents), 1),
    }
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.presolve_enable = False
    settings.chordal_decomposition_enable = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-9
    for name, value in options.items():
        setattr(settings, name, value)
    order, scale = _svec(program.cones, upper=True)
    n = len(program.c)
    P = scipy.sparse.csc_array((n, n)) if program.P is None else scipy.sparse.triu(program.P)
    A = scipy.sparse.csc_array(scipy.sparse.diags_array(scale) @ program.A.tocsr()[order])
    cones = [names[cone.kind](cone) for cone in program.cones]
    found = clarabel.DefaultSolver(
        scipy.sparse.csc_matrix(P),
        program.c,
        scipy.sparse.csc_matrix(A),
        program.b[order] * scale,
        cones,
        settings,
    ).solve()
    s, y = np.empty((2, len(program.b)))
    s[order], y[order] = np.array(found.s) / scale, np.array(found.z) * scale
    return np.array(found.x), s, y, str(found.status)


def _summing_to_one(exponents: tuple[float, ...]) -> list[float]:
    """Exponents, changed by rounding, whose sum is one as Clarabel demands it."""
    *others, _ = (alpha / sum(exponents) for alpha in exponents)
    return [*others, 1.0 - sum(others)]


def _scs(program: ConicProgram, options: dict[str, Any]) -> tuple[Any, ...]:
    import scs  # type: ignore[import-untyped]

    numbers = np.abs(np.concatenate([program.A.data, program.b, program.c]))
    if (numbers[numbers > 0.0] < 1.0 / WIDEST).any() or (numbers > WIDEST).any():
        raise ValueError(f"SCS may not end with numbers beyond {WIDEST:g}, or their inverses.")
    order, scale = _svec(program.cones, upper=False)
    data = {
        "A": scipy.sparse.csc_matrix(scipy.sparse.diags_array(scale) @ program.A.tocsr()[order]),
        "b": program.b[order] * scale,
        "c": program.c,
    }
    if program.P is not None:
        data["P"] = scipy.sparse.csc_matrix(scipy.sparse.triu(program.P))
    cones = program.cones
    if any(cone.kind == "power_nd" for cone in cones):
        raise ValueError("SCS has no n-dimensional power cone.")
    described = {
        "z": sum(cone.rows for cone in cones if cone.kind == "zero"),
        "l": sum(cone.rows for cone in cones if cone.kind == "nonnegative"),
        "q": [cone.rows for cone in cones if cone.kind == "second_order"],
        "s": [cone.side for cone in cones if cone.kind == "psd"],
        "ep": sum(cone.kind == "exponential" for cone in cones),
        "p": [cone.exponents[0] for cone in cones if cone.kind == "power"],
    }
    found = scs.solve(data, described, **{"verbose": False, **options})
    s, y = np.empty((2, len(program.b)))
    s[order], y[order] = found["s"] / scale, found["y"] * scale
    return found["x"], s, y, str(found["info"]["status"])


def _svec(cones: tuple[Cone, ...], upper: bool) -> tuple[Array, Array]:
    """For each row of the solver's form, the row of the program, and a factor."""
    order, scale, start = [np.zeros(0, dtype=np.int64)], [np.zeros(0)], 0
    for cone in cones:
        rows = np.arange(start, start + cone.rows)
        factor = np.ones(cone.rows)
        if cone.kind == "psd":
            i, j = lower_triangle(cone.side)
            factor[i != j] = np.sqrt(2.0)
            if upper:  # (i, j) with i >= j is entry (j, i) of the upper triangle
                shuffled = np.lexsort((j, i))
                rows, factor = rows[shuffled], factor[shuffled]
        order.append(rows)
        scale.append(factor)
        start += cone.rows
    return np.concatenate(order), np.concatenate(scale)
