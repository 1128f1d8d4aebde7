"""Writes problems in the Conic Benchmark Format (CBF, version 3), from CVXPY's own cone program.

Of an M-step, PSD constraint 0 of the primal is A itself; in the dual, the metric is the multiplier
of one (a diagonal metric has none). Beside each ``.cbf`` is a ``.json`` of what its reader should
know: the proven interval of the problem's optimal value, and checksums. The format is that of
Friberg, "CBLIB 2014"; its exponential cone is (r, s, t) with r >= s e^{t/s}.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cvxpy as cp

from ..m_step.statement import state_m_step
from ..model.m_step_objective import MStepObjective
from ..processes.whole_file import write_whole
from ..proof.program import ConicProgram, canonicalize, lower_triangle
from .grading import MStepInstance
from .problems import ProblemInstance
from .suite import InstanceSpec


def write_cbf(
    given: InstanceSpec | MStepObjective | cp.Problem,
    path: str | os.PathLike[str],
    formulation: str = "primal",
) -> dict[str, Any]:
    """Write an M-step, or a problem of CVXPY, to a ``.cbf`` file and its sidecar ``.json``.

    Parameters
    ----------
    given : InstanceSpec, MStepObjective or cvxpy.Problem
    path : path
        Ending in .cbf; the sidecar has the same name with .json.
    formulation : "primal" or "dual"
        Of an M-step; both have the same optimal value.

    Returns
    -------
    dict
        The sidecar: instance (the name of an M-step of a suite regenerates it), lower and upper
        (the proven interval of its optimal value; null where there is no bound), the checksums of
        its data and of the file; of an M-step also formulation and sizes, of a problem the claim.
    """
    path = Path(path)
    if path.suffix != ".cbf":
        raise ValueError(f"{path} must end in .cbf: other programs recognize the format by it.")
    instance: MStepInstance | ProblemInstance
    if isinstance(given, InstanceSpec | MStepObjective):
        instance, sidecar = MStepInstance(given), {"formulation": formulation}
        problem = state_m_step(instance.objective, formulation)
    else:
        instance, sidecar, problem = ProblemInstance(given), {}, given
    text = cbf_text(canonicalize(problem, quadratic=False).program)
    name = " ".join(instance.name.split())
    content = f"# {' '.join([*sidecar.values(), name])}\n{text}".encode()
    checksum = hashlib.sha256(content).hexdigest()
    found = {"instance": name, **sidecar, **instance.reference(), "file_sha256": checksum}
    write_whole(path, content)
    write_whole(path.with_suffix(".json"), (json.dumps(found, indent=1) + "\n").encode())
    return found


KINDS = {"zero": "L=", "nonnegative": "L+", "second_order": "Q", "exponential": "EXP"}
"""CBF's names of cones; those of power cones have a number."""


def cbf_text(program: ConicProgram) -> str:
    """A conic program without a quadratic form as text in CBF, with numbers in full precision."""
    cones: list[str] = []
    powers: list[Sequence[float]] = []
    orders: list[int] = []
    rows: list[tuple[str, str, str, str]] = []  # lists of entries and constants, place, indices
    count = 0
    for cone in program.cones:
        if cone.kind == "psd":
            start = "HCOORD", "DCOORD", str(len(orders))
            rows += [(*start, f" {i} {j}") for i, j in zip(*lower_triangle(cone.side), strict=True)]
            orders.append(cone.side)
            continue
        cones.append(f"{KINDS.get(cone.kind, f'@{len(powers)}:POW')} {cone.rows}")
        if cone.kind == "power":
            powers.append([cone.exponents[0], 1.0 - cone.exponents[0]])
        elif cone.kind == "power_nd":
            powers.append(cone.exponents)
        own = [("ACOORD", "BCOORD", str(count + k), "") for k in range(cone.rows)]
        rows += own[::-1] if cone.kind == "exponential" else own  # CVXPY has (t, s, r)
        count += cone.rows
    cost, n = (program.sign * program.c).tolist(), len(program.c)
    tables = {"OBJACOORD": [f"{column} {value!r}" for column, value in enumerate(cost) if value]}
    tables |= {name: [] for name in ("ACOORD", "BCOORD", "HCOORD", "DCOORD")}
    A = program.A.tocoo()
    for row, column, value in zip(*A.coords, (-A.data).tolist(), strict=True):
        keyword, _, place, indices = rows[row]
        tables[keyword].append(f"{place} {column}{indices} {value!r}")
    for (_, keyword, place, indices), value in zip(rows, program.b.tolist(), strict=True):
        if value:
            tables[keyword].append(f"{place}{indices} {value!r}")
    exponents = ["\n".join(map(repr, [len(alphas), *alphas])) for alphas in powers]
    parts = [
        ["VER", "3"],
        ["POWCONES", f"{len(powers)} {sum(map(len, powers))}", *exponents] if powers else [],
        ["OBJSENSE", "MAX" if program.maximize else "MIN"],
        ["PSDCON", str(len(orders)), *map(str, orders)] if orders else [],
        ["VAR", f"{n} 1", f"F {n}"],
        ["CON", f"{count} {len(cones)}", *cones],
        ["OBJBCOORD", repr(program.offset)] if program.offset else [],
        *([name, str(len(entries)), *entries] for name, entries in tables.items() if entries),
    ]
    return "".join("\n".join([*part, "", ""]) for part in parts if part)
