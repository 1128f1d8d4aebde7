"""One run of a race: the attempt, in a separate process, and its grading, outside of it.

What comes back of a run on an M-step is a matrix. It is symmetrized, its distance from the cone
measured, it is projected and its value computed.

    true gap    (f(A) - D) / max(1, |f(A)|), D the best lower bound proved for the instance: by the
                race's own reference or by the matrix itself. No answer is further from the
                optimum than its true gap, and none is nearer by more than the reference's own
                gap, about 1e-9.
    proved gap  the relative gap of ``certify(objective, A)``: what the matrix itself proves.
                It is wider, about the square root of the true one near the optimum.

What comes back of a run on any other problem is judged in `verdict.py`.
"""

from __future__ import annotations

import math
import os
import pickle
import time
import warnings
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ..model.m_step_objective import MStepObjective
from ..numerics.arrays import one_blas_thread
from ..processes.isolation import Outcome
from ..solvers.solution import grade_matrix, newton_method, require_attained
from .attempt import Entrant, NotForThisProblem
from .race_table import EMPTY_ROW
from .solvers import entrants
from .suite import InstanceSpec, checksum_of, objective_of


def attempt_once(content: bytes, tol: float | None, time_limit: float) -> dict[str, Any]:
    """Make an attempt, in a separate process: entries of its row, and its answer, ungraded.

    Instance and entrant come in one piece: a function may set variables of the problem it closes
    over.
    """
    sent, entrant = pickle.loads(content)
    instance = sent.load() if hasattr(sent, "load") else objective_of(sent)
    warnings.simplefilter("ignore")  # in a separate process; the row has the result
    entrant.load()
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    clock = time.perf_counter()
    try:
        attempt = entrant.solve(instance, tol, time_limit)
    except NotForThisProblem as refusal:
        return {"outcome": "not for this problem", "detail": str(refusal)}
    elapsed, inside = time.perf_counter() - clock, attempt.solve_seconds
    others = float(attempt.compile_seconds), float(attempt.certify_seconds)
    inside = max(0.0, elapsed - sum(others)) if inside is None else float(inside)
    answer = attempt.answer
    if answer is not None and isinstance(instance, MStepObjective):
        answer = np.array(answer, dtype=np.float64)
    return {
        "answer": answer,
        "said": str(attempt.word),
        "claims": bool(attempt.claims),
        "iterations": int(attempt.iterations),
        "compile_seconds": others[0],
        "solve_seconds": inside,
        "certify_seconds": others[1],
        "total_seconds": inside + sum(others),
        "load": load,
    }


def ungraded(outcome: Outcome) -> tuple[dict[str, Any], Any]:
    """The row of the outcome of a process, and the answer that came back, if any."""
    row = EMPTY_ROW | {"outcome": outcome.status, "detail": outcome.detail}
    row |= {"total_seconds": outcome.seconds, "peak_bytes": outcome.peak_bytes}
    row |= {"answer": None} | (outcome.result or {})
    answer = row.pop("answer")
    row["detail"] = row["detail"][:500]  # a line of the table, not a log
    return row, answer


class MStepInstance:
    """An M-step as the instance of a race: it has an optimum, and Newton's method its interval."""

    ladder: tuple[float | None, ...] = (1e-3, 1e-5, 1e-7)

    def __init__(self, given: InstanceSpec | MStepObjective) -> None:
        self.sent = given
        require_attained(self.objective)

    @property
    def name(self) -> str:
        """What it is called, if it has no name."""
        if isinstance(self.sent, InstanceSpec):
            return self.sent.name
        n, m = self.sent.pairs.n_points, self.sent.pairs.n_features
        weights = f"mu = {self.sent.mu:.3g}, lambda = {self.sent.trace_weight:.3g}"
        penalties = "".join(f", {block!r}" for block in self.sent.penalties)
        return f"M-step of {n} points in R^{m}, {weights}{penalties}"

    @cached_property
    def objective(self) -> MStepObjective:
        """The M-step itself."""
        return objective_of(self.sent)

    @property
    def checksum(self) -> str:
        """The SHA-256 checksum of points, labeled pairs, weights and penalties."""
        pairs, blocks = self.objective.pairs, self.objective.penalties
        mu, weight = self.objective.mu, self.objective.trace_weight
        labels = self.objective.soft_labels, self.objective.previous_metric
        arrays = [pairs.points, pairs.similar, pairs.dissimilar]
        arrays += [np.array([mu, weight, self.objective.threshold])]
        arrays += [np.asarray(a) for a in labels if a is not None]
        name = " ".join(["M-step", *(block.name for block in blocks)])
        for block in blocks:
            given = {"weight": block.weight, **vars(block)}
            numbers = [np.asarray(given[key]) for key in sorted(given) if key[0] != "_"]
            arrays += [array for array in numbers if array.dtype.kind in "biuf"]
        return checksum_of(name, *arrays)

    def reference(self) -> dict[str, Any]:
        """A certified interval of the optimal value, the checksum and sizes, for the journal."""
        with one_blas_thread():
            certificate = newton_method(self.objective, tol=1e-9, time_limit=60.0).certificate
        if certificate is None:
            raise RuntimeError("No lower bound could be proved.")
        return {
            "lower": certificate.dual_value,
            "upper": certificate.primal_value,
            "checksum": self.checksum,
            "n_points": self.objective.pairs.n_points,
            "n_features": self.objective.pairs.n_features,
        }

    def grade(self, lower: float | None, _: float | None, outcome: Outcome) -> dict[str, Any]:
        """Grade the outcome of a run, `lower` a proven bound of the M-step: its row."""
        row, raw = ungraded(outcome)
        if row["outcome"] != "done":
            return row
        if raw is None:
            return row | {"detail": "no matrix came back"}
        clock = time.perf_counter()
        with one_blas_thread():
            graded = grade_matrix(self.objective, raw)
        if graded is None:
            m = self.objective.pairs.n_features
            return row | {"detail": f"the matrix is not {m} x {m}, or not finite"}
        certificate = graded.certificate
        value = certificate.primal_value
        if not math.isfinite(value):
            return row | {"detail": "the matrix violates a constraint"}
        asymmetry = float(np.max(np.abs(raw - raw.T)) / (np.max(np.abs(raw)) or 1.0))
        if asymmetry > len(raw) * np.finfo(np.float64).eps:
            remark = f"asymmetric by {asymmetry:.1e} of its largest entry: symmetrized"
            row["detail"] = f"{row['detail']} {remark}".strip()
        bound = max(-math.inf if lower is None else lower, certificate.dual_value)
        return row | {
            "true_gap": max(0.0, (value - bound) / max(1.0, abs(value))),
            "proved_gap": certificate.relative_gap,
            "violation": graded.psd_violation,
            "value": value,
            "grade_seconds": time.perf_counter() - clock,
        }

    @staticmethod
    def entrants(solvers: Sequence[Any] | None) -> list[Entrant]:
        """The solvers of a race on M-steps."""
        return entrants(solvers)
