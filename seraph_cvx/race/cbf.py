"""Writes M-steps in the Conic Benchmark Format (CBF, version 3).

Each ``.cbf`` comes with a ``.json`` of what its reader should know: the interval in which the
optimal value is certified to lie, the spec that regenerates the instance, and a checksum of the
file. The format is that of Friberg, "CBLIB 2014"; its exponential cone is (r, s, t) with
r >= s e^{t/s}. MOSEK 11.2 reads these files (``Task.readdata``, which needs no license), finds the
counts that are written, and a test says so where MOSEK is installed.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..display.formulas import DUAL, M_STEP_ONE_TERM
from ..model.m_step_objective import MStepObjective
from ..solvers.first_order import fista
from ..solvers.solution import require_attained
from .conic_penalties import describe_exactness
from .conic_program import ConicProgram
from .grading import REFERENCE_TOL, data_checksum
from .sparse_entries import SparseEntries
from .suite import InstanceSpec


def write_cbf(
    instance: InstanceSpec | MStepObjective,
    path: str | os.PathLike[str],
    formulation: str = "primal",
) -> dict[str, Any]:
    """Write an M-step to a ``.cbf`` file and its sidecar ``.json``.

    Parameters
    ----------
    instance : InstanceSpec or MStepObjective
    path : path
        Ending in .cbf; the sidecar has the same name with .json.
    formulation : "primal" or "dual"
        Both have the same optimal value.

    Returns
    -------
    dict
        The sidecar: instance, spec, formulation, lower and upper (the certified interval of the
        optimal value), data_sha256 and file_sha256; penalties in words; and a note where the file
        differs from what is certified.

    Raises
    ------
    ValueError
        For a penalty of a class of your own, which has no conic form here.

    Examples
    --------
    >>> import tempfile
    >>> from seraph_cvx.race.suite import InstanceSpec
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name) / "iris.cbf"
    >>> sidecar = write_cbf(InstanceSpec.parse("iris-n20-standard-proj-w1-s0"), path, "dual")
    >>> path.read_text().split().index("PSDCON") > 0, sidecar["formulation"]
    (True, 'dual')
    >>> folder.cleanup()
    """
    path = Path(path)
    if path.suffix != ".cbf":
        raise ValueError(f"{path} must end in .cbf: other programs recognize the format by it.")
    is_spec = isinstance(instance, InstanceSpec)
    objective = instance.objective() if isinstance(instance, InstanceSpec) else instance
    require_attained(objective)
    content = to_cbf(
        ConicProgram.of(objective, formulation), _heading(instance, objective, formulation)
    ).encode()
    certificate = fista(objective, REFERENCE_TOL, time_limit=600.0).certificate
    if certificate is None:
        raise RuntimeError("The optimal value could not be certified.")
    sidecar = {
        "instance": instance.name if isinstance(instance, InstanceSpec) else "objective",
        "spec": vars(instance) if is_spec else None,
        "formulation": formulation,
        "penalties": [repr(block) for block in objective.penalties],
        "note": describe_exactness(objective.penalties),
        "lower": certificate.dual_value,
        "upper": certificate.primal_value,
        "n_features": objective.pairs.n_features,
        "data_sha256": data_checksum(objective),
        "file_sha256": hashlib.sha256(content).hexdigest(),
    }
    path.write_bytes(content)
    path.with_suffix(".json").write_text(json.dumps(sidecar, indent=1) + "\n", encoding="utf-8")
    return sidecar


def _heading(
    instance: InstanceSpec | MStepObjective, objective: MStepObjective, formulation: str
) -> list[str]:
    name = instance.name if isinstance(instance, InstanceSpec) else repr(objective)
    formula = {"primal": M_STEP_ONE_TERM, "dual": DUAL}[formulation]
    more = [f"with {block!r}" for block in objective.penalties]
    return [f"SERAPH M-step, {formulation}: {name}", *formula.ascii.splitlines(), *more]


def to_cbf(program: ConicProgram, heading: list[str] | None = None) -> str:
    """Write a conic program as text in CBF, with numbers in full precision."""
    lines = [f"# {words}" for words in heading or []]
    lines += ["VER", "3", "", "OBJSENSE", program.sense, ""]
    if program.matrix_orders:
        lines += _counted("PSDVAR", program.matrix_orders)
    if program.psd_orders:
        lines += _counted("PSDCON", program.psd_orders)
    lines += ["VAR", f"{program.n_variables} 1", f"F {program.n_variables}", ""]
    n_rows = sum(size for _, size in program.cones)
    lines += ["CON", f"{n_rows} {len(program.cones)}"]
    lines += [f"{kind} {size}" for kind, size in program.cones] + [""]
    lines += _entries("OBJFCOORD", program.objective_matrix)
    lines += _entries("OBJACOORD", program.objective_vector)
    if program.objective_constant:
        lines += ["OBJBCOORD", repr(float(program.objective_constant)), ""]
    lines += _entries("FCOORD", program.rows_matrix)
    lines += _entries("ACOORD", program.rows_vector)
    lines += _entries("BCOORD", program.rows_constant)
    lines += _entries("HCOORD", program.psd_vector)
    lines += _entries("DCOORD", program.psd_constant)
    return "\n".join(lines)


def _counted(keyword: str, orders: tuple[int, ...]) -> list[str]:
    return [keyword, str(len(orders)), *map(str, orders), ""]


def _entries(keyword: str, array: SparseEntries) -> Iterator[str]:
    if not len(array.value):
        return
    yield from (keyword, str(len(array.value)))
    for index, value in zip(array.index.tolist(), array.value.tolist(), strict=True):
        yield f"{' '.join(map(str, index))} {value!r}"
    yield ""
