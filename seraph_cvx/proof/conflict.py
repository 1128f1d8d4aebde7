"""Conflicts: the constraints of an infeasible problem that cannot hold together, and no fewer.

The ray that proves a problem infeasible has multipliers for some of its constraints only: these
cannot hold together. The ray of an interior-point method has them for the constraints of all
conflicts. In phase one with a weight e_k for each constraint,

    minimize t   subject to   b_k - A_k x + t e_k in K_k,

the multipliers of the optimum are those of one conflict if the weights are random: the least t of
two conflicts is almost surely not the same. What is left is tried constraint by constraint: without
it the others are proven infeasible (and it is dropped), or proven to have a common point. Each
proof is of CVXPY's conic program of these constraints alone, so that nothing depends on how rows
were traced back to constraints.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np

from .arithmetic import Array, Vector, as_pair
from .cones import ConeProduct
from .point import MOST_SHOWN, name_of
from .program import CanonicalProblem
from .rays import phase_one
from .start import solve

ELEMENTWISE = ("Inequality", "Equality", "Zero", "NonNeg", "NonPos")
"""Constraints whose rows are those of their entries, in the order of columns."""

ABSENT = 1e-6
"""Multipliers below this share of the largest are those of an interior-point method's rounding."""


class Part(NamedTuple):
    """A constraint of the problem, by its place among them; or one entry of it."""

    place: int
    entry: int | None
    weight: float  # of its multipliers in a proof that the problem is infeasible


class Conflict(tuple[Any, ...]):
    """Constraints of a problem that cannot hold together: a tuple of them, in its order.

    Attributes
    ----------
    entries : tuple
        For each constraint the indices of its entries that take part (in column-major order), or
        None if the whole constraint does.
    is_irreducible : bool
        Whether it is proven that any fewer of these (entries of) constraints can hold together.
    claim : str
        What is proven, in a sentence.
    """

    entries: tuple[tuple[int, ...] | None, ...]
    names: tuple[str, ...]
    is_irreducible: bool
    claim: str

    def __str__(self) -> str:
        return "\n".join([self.claim, *(f"  {name}" for name in self.names)])


def find_conflict(
    canonical: CanonicalProblem,
    ray: Vector,
    certify: Callable[[cp.Problem], Any],
    seconds: float | None,
) -> Conflict:
    """The conflict in a problem with a ray that proves it infeasible; parts of it are certified.

    After some seconds, or Ctrl-C, what is left is not made smaller.
    """
    end = math.inf if seconds is None else time.perf_counter() + seconds
    problem, whole = canonical.problem, _weighted(canonical, np.abs(as_pair(ray).high))
    vertex = whole if isinstance(ray, list) else _weighted(canonical, _multipliers(canonical))
    first = [part for part in vertex if part.weight]
    # The domain of an atom may contradict the rest without a multiplier of its constraint.
    curved = [p for p in vertex if not p.weight and not _is_affine(problem.constraints[p.place])]
    constraints, goal = canonical.fixed.constraints, cp.Minimize(cp.Variable(nonneg=True))

    def is_feasible(parts: Sequence[Part]) -> bool | None:
        own = [_constraint(constraints, part) for part in parts]
        return _is_feasible(certify, cp.Problem(goal, own))

    for parts in (first, [*first, *curved], [part for part in whole if part.weight], whole):
        if is_feasible(parts) is False:
            break
    else:
        goal = canonical.fixed.objective
    has_goal = goal is canonical.fixed.objective
    is_open = has_goal and is_feasible(parts) is not False
    unsettled = 0
    try:
        for part in sorted(parts, key=lambda each: each.weight) if not is_open else ():
            others = [other for other in parts if other != part]
            answer = None if time.perf_counter() > end else is_feasible(others)
            parts = others if answer is False else parts
            unsettled += answer is None
    except KeyboardInterrupt:
        unsettled = len(parts)
    domain = " with the domain of the objective" * has_goal
    return _written(problem, parts, domain, None if is_open else unsettled)


def _multipliers(canonical: CanonicalProblem) -> Array:
    """The sizes of multipliers in phase one with random weights; zero where they are rounding."""
    program, start = canonical.program, 0
    e = ConeProduct(program.cones).interior()
    weights = np.random.default_rng(0).uniform(1.0, 2.0, len(e))
    for cone in program.cones:
        if cone.kind != "nonnegative":
            weights[start : start + cone.rows] = weights[start]
        start += cone.rows
    y = np.abs(solve(phase_one(program, weights * e)).y[:-1])
    return np.where(y > ABSENT * np.max(y, initial=0.0), y, 0.0)


def _is_feasible(certify: Callable[[cp.Problem], Any], problem: cp.Problem) -> bool | None:
    """Whether a problem is proven to have a feasible point, or to have none; None if neither."""
    if not problem.constraints:
        return True
    found = certify(problem)
    if found.infeasible:
        return False
    best = found.lower if found.program.maximize else found.upper
    has_point = found.unbounded or math.isfinite(best)
    return True if has_point and not found.evidence.moved else None


def _constraint(constraints: Sequence[Any], part: Part) -> Any:
    """The constraint of a part, or that of its entry."""
    constraint = constraints[part.place]
    if part.entry is None:
        return constraint
    index = np.unravel_index(part.entry, constraint.shape, order="F")
    return type(constraint)(*(_entry(arg, constraint.shape, index) for arg in constraint.args))


def _entry(argument: Any, shape: tuple[int, ...], index: tuple[Any, ...]) -> Any:
    """An entry of a side of a constraint; one number stays: CVXPY compiles that by its C++."""
    if argument.size == 1:
        return argument
    return (argument if argument.shape == shape else cp.broadcast_to(argument, shape))[index]


def _is_affine(constraint: Any) -> bool:
    return all(arg.is_affine() for arg in constraint.args)


def _weighted(canonical: CanonicalProblem, sizes: Array) -> list[Part]:
    """The parts of a problem, with the sizes of their rows' multipliers."""
    rows, parts = canonical.rows_of_constraints(), []
    for place, constraint in enumerate(canonical.problem.constraints):
        weights = sizes[rows.get(constraint.id, slice(0, 0))]
        entries = np.flatnonzero(weights).tolist()
        is_split = len(weights) == constraint.size > 1 and type(constraint).__name__ in ELEMENTWISE
        if is_split and entries:
            parts += [Part(place, entry, float(weights[entry])) for entry in entries]
        else:
            parts.append(Part(place, None, float(np.sum(weights))))
    return parts


def _written(
    problem: cp.Problem, parts: Sequence[Part], given: str, open_questions: int | None
) -> Conflict:
    """The conflict of some parts, with its claim."""
    places = sorted({part.place for part in parts})
    conflict = Conflict(problem.constraints[place] for place in places)
    entries, names = [], []
    for place in places:
        own = tuple(sorted(p.entry for p in parts if p.place == place and p.entry is not None))
        entries.append(own or None)
        constraint = problem.constraints[place]
        labels = getattr(constraint, "entry_names", range(constraint.size))  # of `read_problem`
        shown = ", ".join(str(labels[entry]) for entry in own[:MOST_SHOWN])
        shown += ", ..." * (len(own) > MOST_SHOWN)
        name = name_of(place, constraint)
        names.append(f"{name} (entry {shown})" if own else name)
    conflict.entries, conflict.names = tuple(entries), tuple(names)
    conflict.is_irreducible = open_questions == 0
    used = {v for place in places for v in problem.constraints[place].variables()}
    bounded = [v for v in used if any(v.attributes[kind] for kind in {*v.attributes} - {"complex"})]
    some = sorted(v.name() for v in bounded)
    given += f" with the attributes of {', '.join(some[:MOST_SHOWN])}" if some else ""
    words = "this constraint cannot hold" if len(parts) == 1 else "these cannot hold together"
    if open_questions is None:
        words += ", and no fewer were found"
    elif open_questions:
        words += f"; whether {open_questions} of them could be left out is open"
    elif len(parts) > 1:
        words += ", and any fewer of them can"
    conflict.claim = f"Proved{given}: {words}."
    return conflict
