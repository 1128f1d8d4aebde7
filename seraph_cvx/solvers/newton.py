"""The M-step by Newton's method on the factor of the metric, ended by the certificate alone."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from ..certificate import Certificate, certify, certify_factor, nominal_gap
from ..model.m_step_objective import MStepObjective
from ..model.penalized_program import with_smooth_penalties
from ..numerics.checks import FloatArray
from ..numerics.psd_cone import symmetrize
from .factor_newton import FaceSearch, Watch

MOST_RETRIES = 3
"""A certificate allows for rounding: the tolerance shrinks tenfold so often to make room for it."""

STOPPED = "stopped from outside"
"""The word of a method that its `watch` ended."""

OVERFLOWED = "overflow"
"""The word of a method whose numbers became too large."""

NEGLIGIBLE = 1e-8
"""Eigenvalues of a start below this share of the largest are left out."""


@dataclass(frozen=True)
class Found:
    """The point at which a method ended.

    Attributes
    ----------
    certificate : Certificate
        The certificate of the point where it ended; its factor is the answer.
    is_done : bool
        Whether the gap is closed, or all that is left of it is the allowance for rounding.
    steps, evaluations : int
        Steps, and passes over the pairs for f and its slope.
    certificate_seconds : float
        Spent on certificates.
    word : str
        The status that the method reports.
    fall : float
        By how much f fell, relative to max(1, |f|), where the method knows it.
    metric : (m, m) array or None
        The metric, where it is not that of the certificate to the last bit.
    """

    certificate: Certificate
    is_done: bool
    steps: int
    evaluations: int
    certificate_seconds: float
    word: str
    fall: float = 0.0
    metric: FloatArray | None = None


def newton(
    objective: MStepObjective,
    tol: float,
    max_iter: int,
    start: FloatArray | None = None,
    deadline: float = np.inf,
    watch: Watch | None = None,
) -> Found:
    """Minimize f over the factors of metrics until the certified relative gap is within `tol`.

    Parameters
    ----------
    objective : MStepObjective
        One that attains its optimum.
    tol : float
    max_iter : int
    start : (m, m) PSD array, optional
        By default A = 0: the rank grows along the negative eigenvalues of the gradient.
    deadline : float
        On the clock of `time.perf_counter`.
    watch : Watch, optional
        Told of every step.
    """
    basis = objective.basis
    search = FaceSearch(objective.whitened_program, tol, max_iter, deadline, watch)
    L = _start(objective, start)
    best = Certificate(np.inf, -np.inf, "")
    seconds = 0.0
    for _ in range(1 + MOST_RETRIES):
        now = search.run(L)
        if now.L is not L or not best.factor.size:
            clock = time.perf_counter()
            if start is not None and search.steps == 0:  # it cannot be improved
                certificate = certify(objective, start, enough=tol)
            else:
                certificate = certify_factor(objective, basis.matrix @ now.L, tol)
            seconds += time.perf_counter() - clock
            if not best.factor.size or certificate.relative_gap < best.relative_gap:
                best = certificate
        if best.relative_gap <= tol or search.is_over:
            break
        L = now.L
        search.tol *= 0.1
    is_done = best.relative_gap <= tol or (
        not search.is_over and nominal_gap(objective, best.factor) <= 0.5 * tol
    )
    word = f"gap closed by Newton's method at rank {best.factor.shape[1]}"
    if not is_done and search.is_stopped:
        word = STOPPED
    fall = (search.start_value - now.value) / max(1.0, abs(now.value))
    return Found(best, is_done, search.steps, search.passes, seconds, word, fall)


def rough_factor(
    objective: MStepObjective,
    tol: float,
    start: FloatArray | None = None,
    deadline: float = np.inf,
    watch: Watch | None = None,
) -> tuple[FloatArray, int]:
    """The factor of a metric whose relative gap is roughly `tol`, and the passes that it took.

    Nothing certifies it: a start for another method.
    """
    if start is None and objective.penalties:  # one of them may be infinite at zero
        start = typical_metric(objective)
    program = with_smooth_penalties(objective, objective.whitened_program)
    search = FaceSearch(program, tol, deadline=deadline, watch=watch)
    now = search.run(_start(objective, start))
    return objective.basis.matrix @ now.L, search.passes


def typical_metric(objective: MStepObjective) -> FloatArray:
    """A positive definite metric to start from: its squared distances are 1 + eta on average."""
    moment = objective.pair_moment
    spread = max(float(np.trace(moment)), np.finfo(np.float64).tiny)
    scale = (1.0 + objective.threshold) * objective.pair_total / spread
    return np.asarray(scale * np.eye(len(moment)))


def _start(objective: MStepObjective, metric: FloatArray | None) -> FloatArray:
    """A factor of `metric` in whitened coordinates; without columns where there is no metric."""
    basis = objective.basis
    if metric is None:
        return np.zeros((len(objective.whitened_program.recession), 0))
    return leading_factor(symmetrize(basis.inverse @ metric @ basis.inverse.T))


def leading_factor(B: FloatArray) -> FloatArray:
    """A factor L of B, LL' = B but for eigenvalues that are negligible or negative."""
    if not B.size:
        return B
    eigenvalues, vectors = np.linalg.eigh(B)
    kept = eigenvalues > NEGLIGIBLE * max(float(eigenvalues[-1]), 0.0)
    return np.asarray(vectors[:, kept] * np.sqrt(eigenvalues[kept]))
