"""Writes M-steps in the Conic Benchmark Format (CBF, version 3), from CVXPY's own cone program.

In the primal, PSD constraint 0 is A itself; in the dual, the metric is the multiplier of one. Each
``.cbf`` comes with a ``.json`` of what its reader should know: the interval in which the optimal
value is certified to lie, the spec that regenerates the instance, and a checksum of the file. The
format is that of Friberg, "CBLIB 2014"; its exponential cone is (r, s, t) with r >= s e^{t/s}.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from ..display.formulas import DUAL, M_STEP_ONE_TERM
from ..model.m_step_objective import MStepObjective
from ..numerics.checks import FloatArray, IntArray
from ..penalties import LinearConstraints, Penalty
from ..solvers.solution import require_attained
from .formula_solvers import list_pairs
from .grading import reference_of
from .suite import InstanceSpec, objective_of

if TYPE_CHECKING:
    import cvxpy as cp

EQUATIONS = (
    "The equations of LinearConstraints are written without their tolerance. The metric that "
    "`upper` is of satisfies them within it, so the optimal value may be above `upper` by that "
    "tolerance times the multipliers."
)
"""In what a file with equations differs from the certified M-step."""


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
    """
    path = Path(path)
    if path.suffix != ".cbf":
        raise ValueError(f"{path} must end in .cbf: other programs recognize the format by it.")
    objective = objective_of(instance)
    require_attained(objective)
    spec = vars(instance) if isinstance(instance, InstanceSpec) else None
    name = instance.name if isinstance(instance, InstanceSpec) else "objective"
    program = ConeProgram.of(objective, formulation)
    formula = M_STEP_ONE_TERM if formulation == "primal" else DUAL
    penalties = [repr(block) for block in objective.penalties]
    heading = [f"SERAPH M-step, {formulation}: {name if spec else repr(objective)}"]
    heading += [*formula.latex.splitlines(), *(f"with {block}" for block in penalties)]
    content = program.to_cbf(heading).encode()
    reference = reference_of(name, objective)
    has_equations = any(
        isinstance(block, LinearConstraints) and block.is_equality for block in objective.penalties
    )
    sidecar = {
        "instance": name,
        "spec": spec,
        "formulation": formulation,
        "penalties": penalties,
        "note": EQUATIONS if has_equations else "",
        **{key: reference[key] for key in ("lower", "upper", "n_features")},
        "data_sha256": reference["checksum"],
        "file_sha256": hashlib.sha256(content).hexdigest(),
    }
    path.write_bytes(content)
    path.with_suffix(".json").write_text(json.dumps(sidecar, indent=1) + "\n", encoding="utf-8")
    return sidecar


def state(objective: MStepObjective, formulation: str) -> cp.Problem:
    """State an M-step in CVXPY for a file: constants only, and bounds with their tolerance.

    The primal has log(1 + e^{-s}) and the linear term of the label +1 alone, in which far points
    do not cancel: for points that are short binary fractions all products in it are exact.
    """
    import cvxpy as cp

    from ..m_step.statement import build_statement, pair_matrix

    blocks = [_with_tolerance(block) for block in objective.penalties]
    objective = objective.with_penalties(blocks) if blocks else objective
    if formulation != "primal":
        return build_statement(objective, formulation).problem
    (rows, weights), m = list_pairs(objective), objective.pairs.n_features
    A = cp.Variable((m, m), PSD=True)
    scores = pair_matrix(objective, rows) @ A[np.triu_indices(m)] - objective.threshold
    value = weights @ cp.logistic(-scores) + cp.sum(cp.multiply(objective.recession_matrix, A))
    value += sum(block.expression(A, block.weight) for block in blocks)
    value -= objective.threshold * objective.recession_total
    constraints = [part for block in blocks for part in block.constraints(A, block.weight)]
    return cp.Problem(cp.Minimize(value), constraints)


def _with_tolerance(block: Penalty) -> Penalty:
    """The block as CVXPY has to state it: bounds of linear constraints include their tolerance."""
    if not isinstance(block, LinearConstraints) or block.is_equality:
        return block
    sizes = np.abs(block.bounds) + np.linalg.norm(block.matrices, axis=(1, 2))
    upper = block.bounds + block.tolerance * sizes
    return LinearConstraints(block.matrices, upper=upper, tolerance=block.tolerance)


@dataclass(frozen=True)
class ConeProgram:
    """Minimize or maximize c'x + constant over x with Fx + g in scalar cones and in PSD cones."""

    sense: str  # "MIN" or "MAX"
    cost: FloatArray
    constant: float
    # "L=" (all rows 0), "L+" (all >= 0), "Q" (the first >= the norm of the others) or "EXP", rows
    cones: list[tuple[str, int]]
    psd_orders: list[int]
    matrix: scipy.sparse.csr_array  # F: the rows of the scalar cones, then entries of the PSD cones
    offset: FloatArray  # g
    psd_entries: IntArray  # of the latter: cone, row and column, of the lower triangle, (3, k)

    @classmethod
    def of(cls, objective: MStepObjective, formulation: str = "primal") -> ConeProgram:
        """The cone program of an M-step, as CVXPY gives it to SCS."""
        problem = state(objective, formulation)
        options = {"use_quad_obj": False}
        data, _, inverse = problem.get_problem_data("SCS", solver_opts=options)
        dims, sense = data["dims"], "MIN" if formulation == "primal" else "MAX"
        cones = [("L=", dims.zero), ("L+", dims.nonneg), *(("Q", size) for size in dims.soc)]
        cones = [cone for cone in cones if cone[1]]
        # the lower triangles of SCS, column by column
        triangles = [np.triu_indices(order)[::-1] for order in dims.psd]
        entries = [np.array([np.full(len(i), k), i, j]) for k, (i, j) in enumerate(triangles)]
        psd_entries = np.concatenate([np.empty((3, 0), dtype=np.int64), *entries], axis=1)
        n_linear, n_psd = sum(size for _, size in cones), psd_entries.shape[1]
        rows = np.arange(len(data["b"]))
        linear, psd, exponential = np.split(rows, [n_linear, n_linear + n_psd])
        exponential = exponential.reshape(-1, 3)[:, ::-1].ravel()  # CVXPY has (t, s, r)
        order = np.concatenate([linear, exponential, psd])
        scale = np.ones(len(order))  # SCS has entries off the diagonal times sqrt(2)
        scale[len(order) - n_psd :] = np.where(psd_entries[1] == psd_entries[2], 1.0, np.sqrt(2.0))
        matrix = scipy.sparse.csr_array(-data["A"])[order]
        matrix.data /= np.repeat(scale, np.diff(matrix.indptr))
        sign = 1.0 if sense == "MIN" else -1.0
        return cls(
            *(sense, sign * data["c"], sign * float(inverse[-1]["offset"])),
            *(cones + [("EXP", 3)] * dims.exp, list(dims.psd)),
            *(matrix, np.asarray(data["b"])[order] / scale, psd_entries),
        )

    def to_cbf(self, heading: Sequence[str] = ()) -> str:
        """Write the program as text in CBF, with numbers in full precision."""
        n, n_rows = len(self.cost), sum(size for _, size in self.cones)
        scalar, psd = self.matrix[:n_rows].tocoo(), self.matrix[n_rows:].tocoo()
        cone, row, column = self.psd_entries[:, psd.coords[0]]
        orders = list(map(str, self.psd_orders))
        parts = [
            ["VER", "3"],
            ["OBJSENSE", self.sense],
            ["PSDCON", str(len(orders)), *orders] if orders else [],
            ["VAR", f"{n} 1", f"F {n}"],
            ["CON", f"{n_rows} {len(self.cones)}", *(f"{kind} {k}" for kind, k in self.cones)],
            _coordinates("OBJACOORD", self.cost, np.arange(n)),
            ["OBJBCOORD", repr(self.constant)] if self.constant else [],
            _coordinates("ACOORD", scalar.data, *scalar.coords),
            _coordinates("BCOORD", self.offset[:n_rows], np.arange(n_rows)),
            _coordinates("HCOORD", psd.data, cone, psd.coords[1], row, column),
            _coordinates("DCOORD", self.offset[n_rows:], *self.psd_entries),
        ]
        comments = "".join(f"# {words}\n" for words in heading)
        return comments + "".join("\n".join([*part, "", ""]) for part in parts if part)


def _coordinates(keyword: str, values: FloatArray, *index: IntArray) -> list[str]:
    """A part of the file: the entries that are not zero, each with its indices."""
    kept = np.flatnonzero(values)
    columns = [column[kept].tolist() for column in (*index, values)]
    lines = [" ".join(map(repr, entry)) for entry in zip(*columns, strict=True)]
    return [keyword, str(len(lines)), *lines] if lines else []
