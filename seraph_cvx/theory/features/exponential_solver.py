"""Solves the exponential M-step by projected gradient, until its certificate is small."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from ...engine.proven_sums import unit_basis
from ...numerics.checks import FloatArray
from ...numerics.psd_cone import factor, project, symmetrize
from ...solvers.solution import MStepSolution, Status
from .exponential_feature import ExponentialMStep, certify_exponential_factor, dissimilar_push


def solve_exponential(
    problem: ExponentialMStep, tol: float = 1e-6, max_iter: int = 5000
) -> MStepSolution:
    """Solve the M-step with the exponential feature by projected gradient.

    argmin f over A PSD by B <- P(B - grad(B) / L), A = T B T', until the certified gap is small.

    In these coordinates f is <M, B> + sum_k b_k g(z_k'Bz_k + delta) + constant, M = T'CT = I to
    rounding. L is raised until 2 <grad(new) - grad(B), new - B> <= L ||new - B||^2: as f is convex,
    that is enough for f(new) <= f(B) + <grad(B), new - B> + L/2 ||new - B||^2, so that no step
    raises f.

    Parameters
    ----------
    problem : ExponentialMStep
    tol : float
        Certified relative gap to reach.
    max_iter : int

    Returns
    -------
    MStepSolution
        `value` is the upper bound of its certificate. A status other than certified is also issued
        as a ``NotCertified`` warning.

    Examples
    --------
    >>> from seraph_cvx import PairSet
    >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
    >>> solution = solve_exponential(ExponentialMStep(pairs))
    >>> solution.status.value, solution.metric.round(2)
    ('certified', array([[0.81]]))
    """
    clock = time.perf_counter()
    T = unit_basis(problem.pull)
    Z, b, delta = problem.differences @ T, problem.far, problem.offset
    M = symmetrize((Z * problem.near[:, None]).T @ Z + problem.trace_weight * (T.T @ T))

    def gradient(B: FloatArray) -> FloatArray:
        d = np.maximum(np.einsum("ij,ij->i", Z @ B, Z), 0.0)
        return M - symmetrize((Z * (b * dissimilar_push(d + delta))[:, None]).T @ Z)

    bend = 1.0 / (np.expm1(delta) * -np.expm1(-delta))  # g''(delta), the largest on the cone
    steepest = 2.0 * bend * float(np.sum(b * np.sum(Z**2, axis=1) ** 2)) + 1e-300
    B = np.zeros_like(T)
    slope, L, iteration = gradient(B), steepest, 0
    certificate = certify_exponential_factor(problem, B)
    while certificate.relative_gap > tol and iteration < max_iter:
        iteration += 1
        B, slope, L = _descend(gradient, B, slope, L, steepest)
        certificate = certify_exponential_factor(problem, T @ factor(B).T)
    closed = certificate.relative_gap <= tol
    status = Status.CERTIFIED if closed else Status.ITERATION_LIMIT
    word = "gap closed" if closed else "iteration limit"
    message = "" if closed else "Raise max_iter, tol or trace_weight, or standardize the features."
    solution = MStepSolution(
        metric=symmetrize(certificate.factor @ certificate.factor.T),
        value=certificate.primal_value,
        certificate=certificate,
        status=status,
        solver="projected-gradient",
        solver_status=word,
        iterations=iteration,
        seconds=time.perf_counter() - clock,
        message=message,
    )
    solution.warn_unless_certified(tol, stacklevel=2)
    return solution


def _descend(
    gradient: Callable[[FloatArray], FloatArray],
    B: FloatArray,
    slope: FloatArray,
    L: float,
    steepest: float,
) -> tuple[FloatArray, FloatArray, float]:
    """Make one step: the new point, its gradient, and twice the curvature, the next L to try."""
    while True:
        new = project(B - slope / L)
        move, new_slope = new - B, gradient(new)
        length, bent = float(np.vdot(move, move)), 2.0 * float(np.vdot(new_slope - slope, move))
        if steepest <= L or bent <= L * length:
            return new, new_slope, bent / length if bent > 0.0 else L
        L = min(2.0 * L, steepest)
