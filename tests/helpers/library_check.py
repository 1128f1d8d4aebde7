"""Judges an exported library: its cone programs, number by number, and CLARABEL's answers."""

from __future__ import annotations

import json
import time
import warnings
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
from cbf_reader import read_cbf
from conic_to_cvxpy import rebuild

from seraph_cvx.model.m_step_objective import MStepObjective
from seraph_cvx.race.conic_program import ConicProgram
from seraph_cvx.race.library.instance_file import read_instance
from seraph_cvx.solvers.solution import grade_matrix

SOLVED = 1e-5
"""The largest true gap of an answer that counts as solved."""

UNIT, WEIGHT_UNIT = 2**24, 2**20
"""Points, and products of weights and soft labels, are multiples of one part in so many."""


def judge_clarabel(folder: Path, entry: dict[str, Any], time_limit: float = 60.0) -> dict[str, Any]:
    """Solve a ``.cbf`` by CLARABEL, and judge its answer by the certificate alone.

    A row has what CLARABEL said; the true gap, measured from the proven lower bound; the gap that
    the answer proves of itself; whether that interval meets the proven one; and whether it solved.
    """
    name = entry["instance"]
    clock = time.process_time()
    problem, matrices, _ = rebuild(read_cbf(folder / f"{name}.cbf"))
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
    if matrices[0].value is None:
        return row
    objective = read_instance(folder / f"{name}.npz")
    graded = grade_matrix(objective, matrices[0].value)
    if graded is None:
        return row
    found, size = graded.certificate, max(1.0, abs(entry["upper"]))
    gap = max(0.0, (found.primal_value - entry["lower"]) / size)
    return row | {
        "true gap": gap,
        "proved gap": found.relative_gap,
        "overlaps": found.dual_value <= entry["upper"] and entry["lower"] <= found.primal_value,
        "solved": said == "optimal" and gap <= SOLVED,
    }


def entries_of(folder: Path) -> list[dict[str, Any]]:
    """What the ``.json`` files say, in the order of the names."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]


def inexact_products(objective: MStepObjective, program: ConicProgram) -> int:
    """How many of the -v_i v_j in a program "similar" are not exact, in whole numbers."""
    V, _ = _whole_numbers(objective)
    rows = program.rows_matrix
    n_pairs = len(V)
    of_pairs = (rows.index[:, 0] >= n_pairs) & (rows.index[:, 0] < 7 * n_pairs)
    index, value = rows.index[of_pairs], rows.value[of_pairs]
    k = (index[:, 0] - n_pairs) // 6
    exact = -V[k, index[:, 2]] * V[k, index[:, 3]] * 2**60
    written = [int(x) for x in np.ldexp(value, 108)]  # over UNIT^2 * 2^60, whole numbers too
    lost = int(np.count_nonzero(V[:, :, None] * V[:, None, :]))
    off_diagonal = int(np.sum(index[:, 2] != index[:, 3]))
    return sum(a != b for a, b in zip(exact, written, strict=True)) + lost - len(k) - off_diagonal


def linear_term_error(objective: MStepObjective, program: ConicProgram) -> np.ndarray:
    """By how much the linear term of a program "similar" is off R + sum_k (c_k - b_k) v_k v_k'.

    For M-steps without a logarithm of the determinant, which adds to that term.
    """
    V, weights = _whole_numbers(objective)
    m = V.shape[1]
    written = np.zeros((m, m))
    entries = program.objective_matrix
    written[entries.index[:, 1], entries.index[:, 2]] = entries.value
    R = objective.trace_weight * np.eye(m)
    R = R if objective.manifold_term is None else R + objective.manifold_term
    scale = UNIT**2 * WEIGHT_UNIT
    error = np.zeros((m, m))
    for i in range(m):
        for j in range(i + 1):
            push = sum(weights * V[:, i] * V[:, j])
            # numerators over 2^200: the doubles are whole numbers there
            exact = int(np.ldexp(R[i, j], 100)) * 2**100 + push * (2**200 // scale)
            off = int(np.ldexp(written[i, j], 100)) * 2**100 - exact
            error[i, j] = error[j, i] = off / 2**200
    return error


def _whole_numbers(objective: MStepObjective) -> tuple[np.ndarray, np.ndarray]:
    """The differences of points, and the weights c_k - b_k of the label +1, as integers."""
    pairs, mu = objective.pairs, objective.mu
    points = np.array([[int(x * UNIT) for x in row] for row in pairs.points], dtype=object)
    assert np.all(points.astype(np.float64) == pairs.points * UNIT)
    rows = np.vstack([pairs.labeled, pairs.unlabeled]) if mu > 0.0 else pairs.labeled
    V = points[rows[:, 0]] - points[rows[:, 1]]
    similar = np.repeat([1.0, 0.0], [pairs.n_similar, pairs.n_labeled - pairs.n_similar])
    if mu > 0.0:
        q = np.zeros(pairs.n_unlabeled) if objective.soft_labels is None else objective.soft_labels
        similar = np.concatenate([similar, mu * q])
    weights = np.array([int(x * WEIGHT_UNIT) for x in similar], dtype=object)
    assert np.all(weights.astype(np.float64) == similar * WEIGHT_UNIT)
    return V, weights
