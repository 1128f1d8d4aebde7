"""Writes problems in the Conic Benchmark Format (CBF, version 3), from CVXPY's own cone program.

Of an M-step, PSD constraint 0 of the primal is A itself; in the dual, the metric is the multiplier
of one (a diagonal metric has none). Each ``.cbf`` comes with a ``.json`` of what its reader should
know: the proven interval of the optimal value, a checksum, and of an M-step the name that
regenerates it. The format is that of Friberg, "CBLIB 2014"; its exponential cone is (r, s, t) with
r >= s e^{t/s}.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..display.formulas import DUAL, M_STEP_ONE_TERM
from ..model.m_step_objective import MStepObjective
from ..numerics.checks import FloatArray, IntArray
from ..penalties import LinearConstraints
from ..proof import certify_problem
from ..proof.program import ConicProgram, canonicalize, lower_triangle
from .grading import MStepInstance
from .suite import InstanceSpec

if TYPE_CHECKING:
    import cvxpy as cp

WITHOUT_TOLERANCE = (
    "LinearConstraints are written without their tolerance. The metric that `upper` is of "
    "satisfies them within it, so the optimal value may be above `upper` by that tolerance times "
    "the multipliers."
)
"""In what a file with linear constraints differs from the certified M-step."""


def write_cbf(
    instance: InstanceSpec | MStepObjective | cp.Problem,
    path: str | os.PathLike[str],
    formulation: str = "primal",
) -> dict[str, Any]:
    """Write an M-step, or a problem of CVXPY, to a ``.cbf`` file and its sidecar ``.json``.

    Parameters
    ----------
    instance : InstanceSpec, MStepObjective or cvxpy.Problem
    path : path
        Ending in .cbf; the sidecar has the same name with .json.
    formulation : "primal" or "dual"
        Of an M-step; both have the same optimal value.

    Returns
    -------
    dict
        The sidecar: lower and upper (the proven interval of the optimal value; null where there is
        no bound), file_sha256; of a problem the claim; of an M-step also instance (the
        name that regenerates it), formulation, sizes, the checksum of its data, and a note where
        the file differs from what is certified.
    """
    path = Path(path)
    if path.suffix != ".cbf":
        raise ValueError(f"{path} must end in .cbf: other programs recognize the format by it.")
    if isinstance(instance, InstanceSpec | MStepObjective):
        problem, sidecar, heading = _m_step(instance, formulation)
    else:
        problem, certificate = instance, certify_problem(instance)
        ends = {"lower": certificate.lower, "upper": certificate.upper}
        sidecar = {name: end if math.isfinite(end) else None for name, end in ends.items()}
        sidecar, heading = sidecar | {"claim": certificate.claim}, ["A problem of CVXPY"]
    program = canonicalize(problem, quadratic=False).program
    content = cbf_text(program, heading).encode()
    sidecar["file_sha256"] = hashlib.sha256(content).hexdigest()
    path.write_bytes(content)
    path.with_suffix(".json").write_text(json.dumps(sidecar, indent=1) + "\n", encoding="utf-8")
    return sidecar


def _m_step(
    instance: InstanceSpec | MStepObjective, formulation: str
) -> tuple[cp.Problem, dict[str, Any], list[str]]:
    """The problem of an M-step, what the sidecar says of it, and the file's first lines."""
    from ..m_step.statement import build_statement

    m_step = MStepInstance(instance)
    objective = m_step.objective
    problem = build_statement(objective, formulation).problem
    formula = M_STEP_ONE_TERM if formulation == "primal" else DUAL
    heading = [f"SERAPH M-step, {formulation}: {m_step.name}"]
    heading += [*formula.latex.splitlines(), *(f"with {block!r}" for block in objective.penalties)]
    is_linear = any(isinstance(block, LinearConstraints) for block in objective.penalties)
    sidecar = {
        "instance": m_step.name,
        "formulation": formulation,
        "note": WITHOUT_TOLERANCE if is_linear else "",
        **m_step.reference(),
    }
    return problem, sidecar, heading


KINDS = {"zero": "L=", "nonnegative": "L+", "second_order": "Q", "exponential": "EXP"}
"""CBF's names of cones; those of power cones have a number."""


def cbf_text(program: ConicProgram, heading: Sequence[str] = ()) -> str:
    """A conic program without a quadratic form as text in CBF, with numbers in full precision."""
    cones: list[str] = []
    rows: list[int] = []
    powers: list[str] = []
    orders: list[str] = []
    psd: list[IntArray] = []
    start = 0
    for cone in program.cones:
        own = list(range(start, start + cone.rows))
        start += cone.rows
        if cone.kind == "psd":
            place = np.full(cone.rows, len(orders))
            psd.append(np.array([own, place, *lower_triangle(cone.side)]))
            orders.append(str(cone.side))
            continue
        kind = KINDS.get(cone.kind, f"@{len(powers)}:POW")
        if cone.kind in ("power", "power_nd"):
            alphas = [*cone.exponents, 1.0 - sum(cone.exponents)]
            alphas = alphas if cone.kind == "power" else alphas[:-1]
            powers.append("\n".join(map(str, [len(alphas), *alphas])))
        rows += own[::-1] if cone.kind == "exponential" else own  # CVXPY has (t, s, r)
        cones.append(f"{kind} {cone.rows}")
    F, g, n = -program.A.tocsr(), program.b, len(program.c)
    entries = np.concatenate([np.empty((4, 0), dtype=np.int64), *psd], axis=1)
    scalar, matrices = F[rows].tocoo(), F[entries[0]].tocoo()
    parameters = sum(int(text.split()[0]) for text in powers)
    parts = [
        ["VER", "3"],
        ["POWCONES", f"{len(powers)} {parameters}", *powers] if powers else [],
        ["OBJSENSE", "MAX" if program.maximize else "MIN"],
        ["PSDCON", str(len(orders)), *orders] if orders else [],
        ["VAR", f"{n} 1", f"F {n}"],
        ["CON", f"{len(rows)} {len(cones)}", *cones],
        _coordinates("OBJACOORD", program.sign * program.c, np.arange(n)),
        ["OBJBCOORD", repr(program.offset)] if program.offset else [],
        _coordinates("ACOORD", scalar.data, *scalar.coords),
        _coordinates("BCOORD", g[rows], np.arange(len(rows))),
        _coordinates("HCOORD", matrices.data, *_placed(entries, *matrices.coords)),
        _coordinates("DCOORD", g[entries[0]], *entries[1:]),
    ]
    comments = "".join(f"# {words}\n" for words in heading)
    return comments + "".join("\n".join([*part, "", ""]) for part in parts if part)


def _placed(entries: IntArray, rows: IntArray, columns: IntArray) -> list[IntArray]:
    """The indices of HCOORD: cone, variable, row and column."""
    _, cone, i, j = entries[:, rows]
    return [cone, columns, i, j]


def _coordinates(keyword: str, values: FloatArray, *index: IntArray) -> list[str]:
    """A part of the file: the entries that are not zero, each with its indices."""
    kept = np.flatnonzero(values)
    columns = [column[kept].tolist() for column in (*index, values)]
    lines = [" ".join(map(repr, entry)) for entry in zip(*columns, strict=True)]
    return [keyword, str(len(lines)), *lines] if lines else []
