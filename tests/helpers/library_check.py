"""Judges an exported library: its cone programs, number by number, and CLARABEL's answers."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
from cbf_reader import ConeFile, read_cbf

from seraph_cvx.model.m_step_objective import MStepObjective
from seraph_cvx.race.library import read_instance
from seraph_cvx.solvers.solution import grade_matrix

SOLVED = 1e-5
"""The largest true gap of an answer that counts as solved."""


def judge_clarabel(folder: Path, entry: dict[str, Any], time_limit: float = 60.0) -> dict[str, Any]:
    """Solve a ``.cbf`` by CLARABEL, and judge its answer by the certificate alone.

    A row has what CLARABEL said; the true gap, measured from the proven lower bound; the gap that
    the answer proves of itself; whether that interval meets the proven one; and whether it solved.
    """
    name = entry["instance"]
    clock = time.process_time()
    program = read_cbf(folder / f"{name}.cbf")
    problem, psd = program.to_cvxpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what it says is in the row
        try:
            problem.solve(solver="CLARABEL", time_limit=time_limit)
            said = str(problem.status)
        except cp.SolverError:
            said = "solver error"
    row: dict[str, Any] = {"instance": name, "said": said, "true gap": None, "proved gap": None}
    row |= {"value": problem.value, "overlaps": None, "solved": False}
    row["seconds"] = time.process_time() - clock
    metric = program.metric(psd)
    if metric is None:
        return row
    graded = grade_matrix(read_instance(folder / f"{name}.npz"), metric)
    if graded is None:
        return row
    certificate, size = graded.certificate, max(1.0, abs(entry["upper"]))
    gap = max(0.0, (certificate.primal_value - entry["lower"]) / size)
    lower, upper = certificate.dual_value, certificate.primal_value
    return row | {
        "true gap": gap,
        "proved gap": certificate.relative_gap,
        "overlaps": lower <= entry["upper"] and entry["lower"] <= upper,
        "solved": said.startswith("optimal") and gap <= SOLVED,
    }


def check_numbers(objective: MStepObjective, program: ConeFile, metric: np.ndarray) -> float:
    """Check that all products of a primal program are exact; return the error of <M, metric>.

    In whole numbers. M is the linear term R + sum_k (c_k - b_k) v_k v_k', in which sums are
    rounded.
    """
    pairs, mu = objective.pairs, objective.mu
    rows = np.vstack([pairs.labeled, pairs.unlabeled]) if mu > 0.0 else pairs.labeled
    similar = np.repeat([1.0, 0.0], [pairs.n_similar, len(rows) - pairs.n_similar])
    similar[: pairs.n_labeled] *= pairs.labeled_weights
    if objective.soft_labels is not None:
        similar[pairs.n_labeled :] = mu * objective.soft_labels
    points = _integers(pairs.points, 100)
    V = points[rows[:, 0]] - points[rows[:, 1]]
    variables, i, j = np.nonzero(np.tril(program.H[0]))  # PSD constraint 0 is A itself
    assert np.all(program.H[0][variables, i, j] == 1.0)
    times = np.where(i == j, 1, 2)
    products = V[:, i] * V[:, j] * times
    ends = np.cumsum([size for _, size in program.cones])
    exponents = [
        end - 1 for end, (kind, _) in zip(ends, program.cones, strict=True) if kind == "EXP"
    ]
    written = _integers(program.matrix[exponents][:, variables], 200)
    expected = Counter(tuple(-row) for row in products if np.any(row))
    assert Counter(tuple(row) for row in written if np.any(row)) == expected
    log_det = sum(block.weight for block in objective.penalties if block.name == "LogDet")
    R = (objective.regularizer + log_det * np.eye(len(metric)))[i, j] * times
    linear = _integers(R, 240) + _integers(similar, 40) @ products
    error = (_integers(program.cost[variables], 240) - linear).astype(float) / 2.0**240
    return float(np.abs(error) @ np.abs(metric[i, j]))


def _integers(values: np.ndarray, bits: int) -> np.ndarray:
    """The numbers times 2^bits, which must be whole: sums and products of them are exact."""
    scaled = np.ldexp(values, bits)
    assert np.all(scaled == np.rint(scaled))
    return np.vectorize(int, otypes=[object])(scaled)
