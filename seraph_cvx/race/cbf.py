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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from ..display.formulas import DUAL, M_STEP_ONE_TERM
from ..model.m_step_objective import MStepObjective
from ..numerics.checks import FloatArray
from ..penalties import LinearConstraints, Penalty
from ..solvers.first_order import fista
from ..solvers.solution import require_attained
from .grading import REFERENCE_TOL, data_checksum
from .suite import InstanceSpec

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
    is_spec = isinstance(instance, InstanceSpec)
    objective = instance.objective() if isinstance(instance, InstanceSpec) else instance
    require_attained(objective)
    program = ConeProgram.of(objective, formulation)
    name = instance.name if isinstance(instance, InstanceSpec) else repr(objective)
    formula = {"primal": M_STEP_ONE_TERM, "dual": DUAL}[formulation]
    penalties = [repr(block) for block in objective.penalties]
    heading = [f"SERAPH M-step, {formulation}: {name}", *formula.ascii.splitlines()]
    content = program.to_cbf(heading + [f"with {block}" for block in penalties]).encode()
    certificate = fista(objective, REFERENCE_TOL, time_limit=600.0).certificate
    if certificate is None:
        raise RuntimeError("The optimal value could not be certified.")
    has_equations = any(
        isinstance(block, LinearConstraints) and block.is_equality for block in objective.penalties
    )
    sidecar = {
        "instance": instance.name if isinstance(instance, InstanceSpec) else "objective",
        "spec": vars(instance) if is_spec else None,
        "formulation": formulation,
        "penalties": penalties,
        "note": EQUATIONS if has_equations else "",
        "lower": certificate.dual_value,
        "upper": certificate.primal_value,
        "n_features": objective.pairs.n_features,
        "data_sha256": data_checksum(objective),
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
    pairs, mu, m = objective.pairs, objective.mu, objective.pairs.n_features
    rows, weights = pairs.labeled, pairs.labeled_weights
    if mu > 0.0:
        rows = np.concatenate([rows, pairs.unlabeled])
        weights = np.concatenate([weights, np.full(pairs.n_unlabeled, mu)])
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
    """Minimize or maximize c'x + constant over x with Fx + g in scalar cones and in PSD cones.

    Attributes
    ----------
    sense : "MIN" or "MAX"
    cost, constant
    matrix, offset
        F and g: the rows of the scalar cones, then the lower triangles of the PSD cones, column
        by column.
    cones : list of (str, int)
        "L=" (all rows 0), "L+" (all >= 0), "Q" (the first >= the norm of the others), "EXP".
    psd_orders : list of int
    """

    sense: str
    cost: FloatArray
    constant: float
    matrix: scipy.sparse.csr_array
    offset: FloatArray
    cones: list[tuple[str, int]]
    psd_orders: list[int]

    @classmethod
    def of(cls, objective: MStepObjective, formulation: str = "primal") -> ConeProgram:
        """The cone program of an M-step, as CVXPY gives it to SCS."""
        problem = state(objective, formulation)
        options = {"use_quad_obj": False}
        data, _, inverse = problem.get_problem_data("SCS", solver_opts=options)
        dims, sign = data["dims"], 1.0 if formulation == "primal" else -1.0
        n_linear = dims.zero + dims.nonneg + sum(dims.soc)
        triangles = [order * (order + 1) // 2 for order in dims.psd]
        rows = np.arange(len(data["b"]))
        scalar, psd, exponential = np.split(rows, [n_linear, n_linear + sum(triangles)])
        exponential = exponential.reshape(-1, 3)[:, ::-1].ravel()  # CVXPY has (t, s, r)
        order = np.concatenate([scalar, exponential, psd])
        scale = np.ones(len(order))  # SCS has entries off the diagonal times sqrt(2)
        for entries, i, j in _triangles(dims.psd, len(scalar) + len(exponential)):
            scale[entries] = np.where(i == j, 1.0, np.sqrt(2.0))
        matrix = scipy.sparse.csr_array(-data["A"])[order]
        matrix.data /= np.repeat(scale, np.diff(matrix.indptr))
        cones = [("L=", dims.zero), ("L+", dims.nonneg), *(("Q", size) for size in dims.soc)]
        cones = [cone for cone in cones if cone[1]] + [("EXP", 3)] * dims.exp
        return cls(
            "MIN" if formulation == "primal" else "MAX",
            sign * data["c"],
            sign * float(inverse[-1]["offset"]),
            matrix,
            np.asarray(data["b"])[order] / scale,
            cones,
            list(dims.psd),
        )

    def to_cbf(self, heading: Sequence[str] = ()) -> str:
        """Write the program as text in CBF, with numbers in full precision."""
        n, n_rows = len(self.cost), sum(size for _, size in self.cones)
        lines = [f"# {words}" for words in heading]
        lines += ["VER", "3", "", "OBJSENSE", self.sense, ""]
        if self.psd_orders:
            lines += ["PSDCON", str(len(self.psd_orders)), *map(str, self.psd_orders), ""]
        lines += ["VAR", f"{n} 1", f"F {n}", ""]
        lines += ["CON", f"{n_rows} {len(self.cones)}"]
        lines += [f"{kind} {size}" for kind, size in self.cones] + [""]
        lines += _coordinates("OBJACOORD", self.cost)
        lines += ["OBJBCOORD", repr(self.constant), ""] if self.constant else []
        scalar = self.matrix[:n_rows].tocoo()
        lines += _coordinates("ACOORD", scalar.data, *scalar.coords)
        lines += _coordinates("BCOORD", self.offset[:n_rows])
        k, i, j = np.zeros((3, len(self.offset)), dtype=np.int64)
        for number, (entries, *where) in enumerate(_triangles(self.psd_orders, n_rows)):
            k[entries], i[entries], j[entries] = number, *where
        psd = self.matrix.tocoo()
        row, column = psd.coords
        in_psd = row >= n_rows
        row = row[in_psd]
        lines += _coordinates("HCOORD", psd.data[in_psd], k[row], column[in_psd], i[row], j[row])
        places = (k[n_rows:], i[n_rows:], j[n_rows:])
        lines += _coordinates("DCOORD", self.offset[n_rows:], *places)
        return "\n".join(lines)


def _triangles(orders: Sequence[int], first: int) -> Iterator[tuple[slice, Any, Any]]:
    """Where the entries of each PSD cone are among the rows, and their rows and columns in it."""
    for order in orders:
        j, i = np.triu_indices(order)
        yield slice(first, first + len(i)), i, j
        first += len(i)


def _coordinates(keyword: str, values: FloatArray, *index: Any) -> list[str]:
    """A part of the file: the entries that are not zero, each with its indices."""
    kept = np.flatnonzero(values)
    columns = [column[kept].tolist() for column in index or [np.arange(len(values))]]
    entries = zip(*columns, values[kept].tolist(), strict=True)
    lines = [" ".join(map(repr, entry)) for entry in entries]
    return [keyword, str(len(lines)), *lines, ""] if lines else []
