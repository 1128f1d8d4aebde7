"""What a certificate costs: nine problems that readers know, against Clarabel's own time."""

from __future__ import annotations

import time
from collections.abc import Callable

import cvxpy as cp
import numpy as np

from seraph_cvx import certify_problem
from seraph_cvx.proof import ProblemCertificate

from .measuring import MeasuredRows, Report

SOLVED = 1e-9
ROUGH = 1e-4
LIMITS = (5.0, 3.0)
"""The bar: so many times Clarabel's time, or so many seconds where that is more."""

Random = np.random.Generator


def lasso(rng: Random) -> cp.Problem:
    A, x = rng.normal(size=(1000, 500)), cp.Variable(500)
    truth = rng.normal(size=500) * (rng.random(500) < 0.1)
    b = A @ truth + 0.1 * rng.normal(size=1000)
    return cp.Problem(cp.Minimize(cp.sum_squares(A @ x - b) + 10.0 * cp.norm1(x)))


def classes(rng: Random, n: int, m: int) -> np.ndarray:
    """Points times their signs: y_i x_i."""
    X = rng.normal(size=(n, m))
    return X * np.sign(X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=n))[:, None]


def logistic_regression(rng: Random) -> cp.Problem:
    Z, w = classes(rng, 2000, 100), cp.Variable(100)
    return cp.Problem(cp.Minimize(cp.sum(cp.logistic(-(Z @ w))) + cp.norm1(w)))


def support_vectors(rng: Random) -> cp.Problem:
    Z, w = classes(rng, 2000, 50), cp.Variable(50)
    return cp.Problem(cp.Minimize(0.5 * cp.sum_squares(w) + cp.sum(cp.pos(1.0 - Z @ w))))


def portfolio(rng: Random) -> cp.Problem:
    F, mean, x = rng.normal(size=(500, 20)), 0.1 * rng.normal(size=500), cp.Variable(500)
    covariance = F @ F.T / 20.0 + np.diag(rng.uniform(0.1, 1.0, 500))
    goal = mean @ x - 2.0 * cp.quad_form(x, covariance)
    return cp.Problem(cp.Maximize(goal), [cp.sum(x) == 1, x >= 0])


def max_cut(rng: Random) -> cp.Problem:
    W = np.triu(rng.random((60, 60)) < 0.3, 1).astype(float)
    X = cp.Variable((60, 60), PSD=True)
    return cp.Problem(cp.Maximize(cp.sum(cp.multiply(W, 1.0 - X)) / 2.0), [cp.diag(X) == 1])


def inverse_covariance(rng: Random) -> cp.Problem:
    Z, X = rng.normal(size=(40, 20)), cp.Variable((20, 20), PSD=True)
    goal = cp.trace(Z.T @ Z / 40.0 @ X) - cp.log_det(X) + 0.1 * cp.sum(cp.abs(X))
    return cp.Problem(cp.Minimize(goal))


def nuclear_norm(rng: Random) -> cp.Problem:
    M = rng.normal(size=(15, 3)) @ rng.normal(size=(3, 15))
    seen = (rng.random((15, 15)) < 0.6).astype(float)
    X = cp.Variable((15, 15))
    return cp.Problem(cp.Minimize(cp.normNuc(X)), [cp.multiply(seen, X) == seen * M])


def linear_program(rng: Random) -> cp.Problem:
    A, x = rng.normal(size=(2000, 500)), cp.Variable(500)
    b = A @ rng.normal(size=500) + rng.uniform(size=2000)
    c = -A.T @ (rng.uniform(size=2000) * (rng.random(2000) < 0.3))
    return cp.Problem(cp.Minimize(c @ x), [A @ x <= b])


def maximum_entropy(rng: Random) -> cp.Problem:
    A, p = rng.normal(size=(20, 1000)), rng.uniform(size=1000)
    x = cp.Variable(1000)
    return cp.Problem(cp.Maximize(cp.sum(cp.entr(x))), [cp.sum(x) == 1, A @ x == A @ (p / p.sum())])


PROBLEMS: dict[str, Callable[[Random], cp.Problem]] = {
    "lasso, 1000 x 500": lasso,
    "logistic regression, 2000 x 100": logistic_regression,
    "support vectors, 2000 x 50": support_vectors,
    "portfolio, 500": portfolio,
    "max-cut, 60": max_cut,
    "sparse inverse covariance, 20": inverse_covariance,
    "nuclear norm, 15 x 15": nuclear_norm,
    "linear program, 2000 x 500": linear_program,
    "maximum entropy, 1000": maximum_entropy,
}


def bench_conic_speed(report: Report) -> MeasuredRows:
    """Certify each problem from Clarabel's answer and from a rough one of SCS."""
    report.start("Certificates of problems that readers know")
    report.note(
        f"Clarabel: its own seconds to {SOLVED:g}. certify: the wall time of certify_problem from "
        f"that answer, which may be {LIMITS[0]:g} times as long, or {LIMITS[1]:g} s. From SCS at "
        f"{ROUGH:g}: what certify_problem proves if it starts there; where that is not within "
        "1e-6, it has solved the problem again, which its time includes."
    )
    for name, make in PROBLEMS.items():
        report.tell(name)
        problem = make(np.random.default_rng(0))
        tight = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), SOLVED)
        problem.solve(solver="CLARABEL", **tight)
        solver_seconds = float(problem.solver_stats.solve_time)
        certificate, seconds = _timed(problem)
        problem.solve(solver="SCS", eps_abs=ROUGH, eps_rel=ROUGH)
        from_rough, rough_seconds = _timed(problem)
        limit = max(LIMITS[0] * solver_seconds, LIMITS[1])
        yield {
            "problem": name,
            "Clarabel (s)": solver_seconds,
            "certify (s)": seconds,
            "limit (s)": limit,
            "gap": certificate.relative_gap,
            "from SCS (s)": rough_seconds,
            "gap from SCS": from_rough.relative_gap,
            "within": "yes"
            if certificate.relative_gap <= 1e-6 and max(seconds, rough_seconds) <= limit
            else "no",
        }


def _timed(problem: cp.Problem) -> tuple[ProblemCertificate, float]:
    clock = time.perf_counter()
    certificate = certify_problem(problem)
    return certificate, time.perf_counter() - clock
