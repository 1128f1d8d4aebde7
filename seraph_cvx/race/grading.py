"""One run of a race: the attempt, in a separate process, and its grading, outside of it.

What comes back of a run is a matrix. It is symmetrized, its distance from the cone measured, it is
projected and its value computed.

    true gap    (f(A) - D) / max(1, |f(A)|), D the best lower bound proved for the instance: by the
                race's own reference or by the matrix itself. No answer is further from the
                optimum than its true gap, and none is nearer by more than the reference's own
                gap, about 1e-9.
    proved gap  the relative gap of ``certify(objective, A)``: what the matrix itself proves.
                It is wider, about the square root of the true one near the optimum.
"""

from __future__ import annotations

import math
import os
import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..model.m_step_objective import MStepObjective
from ..numerics.arrays import one_blas_thread
from ..penalties.penalty import Penalty
from ..processes.isolation import Outcome
from ..solvers.solution import grade_matrix, newton_method
from .attempt import Entrant, NotForThisProblem
from .race_table import EMPTY_ROW
from .suite import InstanceSpec, checksum_of, objective_of


def attempt_once(
    instance: InstanceSpec | MStepObjective, entrant: Entrant, tol: float, time_limit: float
) -> dict[str, Any]:
    """Make an attempt, in a separate process: entries of its row, and its matrix, ungraded."""
    objective = objective_of(instance)
    warnings.simplefilter("ignore")  # in a separate process; the row has the result
    entrant.load()
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    clock = time.perf_counter()
    try:
        attempt = entrant.solve(objective, tol, time_limit)
    except NotForThisProblem as refusal:
        return {"outcome": "not for this problem", "detail": str(refusal)}
    elapsed, inside = time.perf_counter() - clock, attempt.solve_seconds
    others = float(attempt.compile_seconds), float(attempt.certify_seconds)
    inside = max(0.0, elapsed - sum(others)) if inside is None else float(inside)
    return {
        "matrix": None if attempt.matrix is None else np.array(attempt.matrix, dtype=np.float64),
        "said": str(attempt.word),
        "claims": bool(attempt.claims),
        "iterations": int(attempt.iterations),
        "compile_seconds": others[0],
        "solve_seconds": inside,
        "certify_seconds": others[1],
        "total_seconds": inside + sum(others),
        "load": load,
    }


def grade(objective: MStepObjective, lower: float, outcome: Outcome) -> dict[str, Any]:
    """Grade the outcome of a process, `lower` a proven lower bound of the M-step: its row."""
    row = EMPTY_ROW | {"outcome": outcome.status, "detail": outcome.detail}
    row |= {"total_seconds": outcome.seconds, "peak_bytes": outcome.peak_bytes}
    row |= {"matrix": None} | (outcome.result or {})
    raw = row.pop("matrix")
    row["detail"] = row["detail"][:500]  # a line of the table, not a log
    if row["outcome"] != "done":
        return row
    if raw is None:
        return row | {"detail": "no matrix came back"}
    clock = time.perf_counter()
    with one_blas_thread():
        graded = grade_matrix(objective, raw)
    if graded is None:
        m = objective.pairs.n_features
        return row | {"detail": f"the matrix is not {m} x {m}, or not finite"}
    certificate = graded.certificate
    value = certificate.primal_value
    if not math.isfinite(value):
        return row | {"detail": "the matrix violates a constraint"}
    gap = (value - max(lower, certificate.dual_value)) / max(1.0, abs(value))
    return row | {
        "true_gap": max(0.0, gap),
        "proved_gap": certificate.relative_gap,
        "psd_violation": graded.psd_violation,
        "value": value,
        "grade_seconds": time.perf_counter() - clock,
    }


def reference_of(name: str, objective: MStepObjective) -> dict[str, Any]:
    """The reference line of an instance: a certified interval of its optimal value, sizes."""
    with one_blas_thread():
        certificate = newton_method(objective, tol=1e-9, time_limit=60.0).certificate
    if certificate is None:
        raise RuntimeError("No lower bound could be proved.")
    return {
        "instance": name,
        "lower": certificate.dual_value,
        "upper": certificate.primal_value,
        "checksum": data_checksum(objective),
        "n_points": objective.pairs.n_points,
        "n_features": objective.pairs.n_features,
    }


def data_checksum(objective: MStepObjective) -> str:
    """The SHA-256 checksum of points, labeled pairs, weights and penalties of an M-step."""
    pairs = objective.pairs
    numbers = np.array([objective.mu, objective.trace_weight, objective.threshold])
    labels = objective.soft_labels, objective.previous_metric
    given = [np.asarray(a) for a in labels if a is not None]
    name = " ".join(["M-step", *(block.name for block in objective.penalties)])
    arrays = [pairs.points, pairs.similar, pairs.dissimilar, numbers, *given]
    return checksum_of(name, *arrays, *(a for b in objective.penalties for a in _numbers_of(b)))


def _numbers_of(block: Penalty) -> list[NDArray[np.generic]]:
    """The numbers and matrices that define a penalty."""
    given = {"weight": block.weight, **vars(block)}
    arrays = [np.asarray(given[key]) for key in sorted(given) if not key.startswith("_")]
    return [array for array in arrays if array.dtype.kind in "biuf"]
