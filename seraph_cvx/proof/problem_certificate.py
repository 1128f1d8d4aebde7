"""What `certify_problem` returns: bounds, their claim in a sentence, and their file."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from html import escape
from typing import Any

import cvxpy as cp
import numpy as np

from .arithmetic import Array, Pair, as_pair
from .conflict import Conflict
from .point import PointReport
from .program import (
    CanonicalProblem,
    ConicProgram,
)
from .quadratic import Convexified
from .rounding import up
from .search import Evidence


@dataclass(frozen=True, eq=False)
class ProblemCertificate:
    """What is proven of a problem: its optimum lies in [lower, upper].

    Attributes
    ----------
    lower, upper : float
        Bounds on the optimal value, in the problem's own sense and units; infinite where nothing is
        proven. For an infeasible or unbounded problem both are its infinite value.
    infeasible, unbounded : bool
        Whether it is proven that no point is feasible, or that the objective has no bound.
    claim : str
        One sentence: what exactly is proven.
    steps : tuple of str
        What was solved, which method gave each bound, and how long it took.
    point : PointReport or None
        The judgment of the values that the problem's variables have.
    tolerance : float
        The tolerance within which constraints count as satisfied; zero if they must hold exactly.
    """

    lower: float
    upper: float
    infeasible: bool
    unbounded: bool
    claim: str
    steps: tuple[str, ...]
    point: PointReport | None
    tolerance: float
    program: ConicProgram = field(repr=False)
    evidence: Evidence = field(repr=False)
    canonical: CanonicalProblem = field(repr=False)
    look_for_conflict: Callable[[], Conflict] = field(default=Conflict, repr=False)

    @cached_property
    def conflict(self) -> Conflict:
        """Constraints of an infeasible problem that cannot hold together; otherwise empty.

        The search runs when the property is first read, with the time limit of `certify_problem`.
        """
        return self.look_for_conflict()

    @property
    def direction(self) -> dict[cp.Variable, Array]:
        """A direction in which an unbounded problem improves, scaled to 1; otherwise empty."""
        ray = self.evidence.ray_primal
        if ray is None:
            return {}
        found = self.canonical.direction(as_pair(ray).high)
        size = max((float(np.abs(part).max(initial=0.0)) for part in found.values()), default=0.0)
        return {variable: part / (size or 1.0) for variable, part in found.items()}

    @property
    def optimum(self) -> Fraction | None:
        """The exact optimum, if it is known; the bounds are then the doubles next to it."""
        value, program = self.evidence.optimum, self.program
        return None if value is None else Fraction(program.offset) + int(program.sign) * value

    @property
    def relative_gap(self) -> float:
        """The gap relative to max(1, |upper|, |lower|), rounded up; infinite if one is missing."""
        if not (math.isfinite(self.lower) and math.isfinite(self.upper)):
            return 0.0 if self.infeasible or self.unbounded else math.inf
        gap = self.upper - self.lower
        size = max(1.0, abs(self.upper), abs(self.lower))
        return math.nextafter(math.nextafter(gap, math.inf) / size, math.inf) if gap else 0.0

    def to_json(self) -> str:
        """The conic program and the numbers of the proof, for `check_certificate`.

        Its bounds are those of the conic program, without what the values of the variables prove.
        """
        program, proof, bounds = self.program, self.evidence, self.evidence.bounds
        dual = proof.dual
        ends = dict(zip(("lower", "upper"), proof.ends(program), strict=True))
        written = {
            "format": "seraph_cvx conic certificate",
            "version": 1,
            "program": {
                "variables": len(program.c),
                "rows": len(program.b),
                "A": _written(program.A),
                "b": _moved(_written(program.b), proof.moved),
                "c": _written(program.c),
                "P": _written(program.P),
                "cones": [cone.as_json() for cone in program.cones],
                "offset": program.offset.hex(),
                "maximize": program.maximize,
                "scale": 1,
            },
            "tolerance": self.tolerance.hex() if self.tolerance else None,
            "claim": {side: _hex(end) for side, end in ends.items()}
            | {"infeasible": self.infeasible, "unbounded": self.unbounded},
            "dual": dual
            and {"y": _written(dual.y), "h": _written(dual.h), "zero_rows": dual.zero_rows}
            | ({"faces": [face.as_json() for face in dual.faces]} if dual.faces else {}),
            "primal": proof.primal and {"x": _written(proof.primal.x)},
            "ray_dual": proof.ray_dual and {"y": _written(proof.ray_dual)},
            "ray_primal": proof.ray_primal and {"x": _written(proof.ray_primal)},
            "variable_bounds": None if bounds is None else [_hex(B) for B in bounds.tolist()],
            **_written_shift(proof.convexified),
        }
        return json.dumps(written)

    def __str__(self) -> str:
        lines = [str(self.conflict), ""] if self.infeasible else []
        if self.unbounded:
            moved = {v.name(): d for v, d in self.direction.items() if d.any()}
            lines = ["The objective improves forever along this direction:"]
            lines += [f"  {name} = {_in_short(d)}" for name, d in moved.items()] + [""]
        lines.append(self.claim)
        if not (self.infeasible or self.unbounded):
            lines += [f"  lower bound   {self.lower!r}", f"  upper bound   {self.upper!r}"]
            lines += [f"  relative gap  {self.relative_gap:.1e}"]
        if self.point is not None:
            lines += ["", str(self.point)]
        return "\n".join([*lines, "", *(f"- {step}" for step in self.steps)])

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def claim(
    canonical: CanonicalProblem, evidence: Evidence, tolerance: float, lower: float, upper: float
) -> str:
    """What is proven, in a sentence."""
    of = "of CVXPY's conic program of this problem, with its doubles taken as they are"
    if canonical.error_of_forms:
        share = 1.05 * canonical.error_of_forms
        of += f", its quadratic forms x'Px to within {share:.1e} sum_i P_ii x_i^2"
    if evidence.convexified is not None and evidence.is_of_shifted:
        share = float(evidence.convexified.shift.max())
        of += f", up to {1.05 * share:.1e} added to the diagonal of P to make it proven convex"
    if evidence.moved:
        ends = evidence.moved.items()
        most = max(abs(end - Fraction(canonical.program.b[i])) for i, end in ends)
        of += (
            f", {len(ends)} right side{'s' * (len(ends) != 1)} moved by at most {up(most):.1e} "
            "since they contradict each other by rounding"
        )
    if evidence.bounds is not None:
        of += ", the given bounds on variables added as constraints"
    if tolerance:
        of += (
            f"{',' * (evidence.bounds is not None)} and its constraints met to within {tolerance!r}"
        )
    if evidence.ray_dual is not None:
        return f"Proved {of}: no point is feasible."
    if evidence.ray_primal is not None:
        return f"Proved {of}: the objective has no bound over the feasible points."
    if math.isfinite(lower) or math.isfinite(upper):
        return f"Proved {of}: the optimal value lies in [{lower!r}, {upper!r}]."
    return (
        f"Nothing is proved {of}: the steps say why. A tolerance, bounds on the variables, "
        "another scale of the data or a constraint that bounds the feasible set may help."
    )


def _moved(b: list[str], moved: dict[int, Fraction] | None) -> list[str]:
    """The right sides in a certificate file, those that were moved as fractions."""
    changed = moved or {}
    for i, text in zip(changed, _written(list(changed.values())), strict=True):
        b[i] = text
    return b


def _in_short(values: Array) -> str:
    return np.array2string(values, precision=3, threshold=8, suppress_small=True)


def _hex(value: float) -> str | None:
    return float(value).hex() if math.isfinite(value) else None


def _written_shift(convex: Convexified | None) -> dict[str, Any]:
    """The shift of P in a certificate file, and the multipliers that bound columns, in order."""
    if convex is None or convex.loss is None:
        return {}
    bounds = [
        {"column": j, "rows": list(rows), "multipliers": [v.hex() for v in rows.values()]}
        for j, rows in convex.implied
    ]
    return {"diagonal_shift": _written(convex.shift), "shift_bounds": bounds}


def _written(values: Any) -> Any:
    """An array, a pair or a sparse matrix as a certificate file has it."""
    if values is None:
        return None
    if isinstance(values, Pair):
        return [list(both) for both in zip(*map(_written, values), strict=True)]
    if isinstance(values, list):
        return [f"{value.numerator:x}/{value.denominator:x}" for value in values]
    if isinstance(values, np.ndarray):
        return [value.hex() for value in values.tolist()]
    entries = values.tocoo()
    row, column = (np.asarray(index).tolist() for index in (entries.row, entries.col))
    return {"row": row, "column": column, "value": _written(entries.data)}
