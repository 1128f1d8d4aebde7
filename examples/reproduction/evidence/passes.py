"""Passes over the pairs and whole fits, on this machine or a GPU."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from seraph_cvx import MStepObjective, PairSet, alternate
from seraph_cvx.model.m_step_objective import descent_program
from seraph_cvx.numerics.checks import MissingExtra
from seraph_cvx.processes.isolation import peak_bytes

from .measuring import MeasuredRows, Report, gaussian_classes, quiet, timed

SIZES = (1_000, 3_000, 10_000)

TOLERANCE = 1e-4
"""Of the last relative fall of J, and of the last M-step's relative gap."""


def bench_face(
    report: Report, backend: str = "cpu", sizes: Sequence[int] = SIZES, m: int = 64, rho: int = 8
) -> MeasuredRows:
    """Time what a fit is made of: passes over all pairs at a factor with `rho` columns.

    "slope" is the value and the slope with respect to the factor, "product" the change of the slope
    along a direction: of all pairs up to some thousand points, and beyond of the pairs of some
    points; on a GPU it is also timed for all pairs.
    """
    report.start(f"Passes over all pairs on {backend} (m = {m}, {rho} columns), milliseconds")
    rng = np.random.default_rng(1)
    shape, D = rng.normal(size=(m, rho)), rng.normal(size=(m, rho))
    for n in sizes:
        X, y = _points_on(backend, n, m)
        objective = MStepObjective(PairSet.from_labels(X, y), n_jobs=-1)
        descent = descent_program(objective, whitened=True)
        for name, program in (("(11)", objective.whitened_program), ("J", descent)):
            report.tell(f"passes at n = {n}, {name}")
            L = shape * (program.typical_size**0.5 / float(np.linalg.norm(shape)))
            point = program.at(L)
            calls = {
                "slope": (program.at, L),
                "gradient": (point.make_gradient,),
                "product": (point.hessian_product, D),
            }
            if program.gpu_pairs is not None:
                every = program.gpu_pairs.pass_at(L)
                calls["product, all pairs"] = (every.hessian_product, D)
            row: dict[str, Any] = {"n": n, "function": name}
            for column, (function, *arguments) in calls.items():
                function(*arguments)  # the first run is not timed
                row[column] = 1e3 * timed(function, *arguments, repeats=5)[1]
            yield row


# Whole fits


def measured_fit(pairs: PairSet, callback=None):
    """The fit that is measured."""
    with quiet():
        return alternate(pairs, tol=TOLERANCE, m_step_tol=TOLERANCE, n_jobs=-1, callback=callback)


def bench_sizes(
    report: Report, backend: str = "cpu", sizes: Sequence[int] = SIZES, m: int = 64
) -> MeasuredRows:
    """Measure a fit of the paper's hyper setting to ten Gaussian classes, for each n."""
    goal = f"J to {TOLERANCE:g}, gap to {TOLERANCE:g}"
    report.start(f"A whole fit on {backend} (hyper, m = {m}, {goal})")
    for n in sizes:
        report.tell(f"n = {n}")
        yield _size_row(report, backend, n, m)


def _size_row(report, backend, n, m):
    X, y = _points_on(backend, n, m)
    clock = time.perf_counter()

    def follow(iteration, metric):
        report.tell(f"n = {n}: iteration {iteration.number}, J = {iteration.descent_value:.8g}")

    pairs = PairSet.from_labels(X, y)
    run = measured_fit(pairs, follow)
    seconds, metric = time.perf_counter() - clock, np.asarray(run.metric)
    evaluations = sum(iteration.evaluations for iteration in run.history)
    full_pass = timed(run.objective.value_and_gradient, metric, repeats=3)[1]
    return {
        "n": n,
        "pairs": n * (n - 1) // 2,
        "seconds": seconds,
        "iterations": len(run.history),
        "evaluations": evaluations,
        "seconds / evaluation": seconds / max(1, evaluations),
        "in full passes": seconds / full_pass,
        "status": run.status.value,
        "gap over all pairs": run.m_step.relative_gap,
        "J": run.history[-1].descent_value,
        "peak MiB": _peak_mebibytes(backend),
    }


def _points_on(backend, n, m):
    """Points of Gaussian classes and their labels; on the GPU after its first use."""
    if backend not in ("cpu", "cuda"):
        raise ValueError(f"This is measured on cpu or cuda, not on {backend!r}.")
    X, y = gaussian_classes(n, m)
    if backend != "cuda":
        return X, y
    try:
        import torch
    except ImportError:
        raise MissingExtra('The backend "cuda" needs PyTorch: pip install torch.') from None
    if not torch.cuda.is_available():
        raise ValueError('The backend "cuda" needs a CUDA device, and PyTorch finds none: use cpu.')
    on_device = torch.asarray(X, device="cuda")
    (on_device.T @ on_device).sum().item()
    torch.cuda.reset_peak_memory_stats()
    return on_device, y


def _peak_mebibytes(backend):
    """The peak memory of the GPU or of this process, without its workers; 0 if unknown."""
    if backend != "cuda":
        return peak_bytes() / 2**20
    import torch

    return float(torch.cuda.max_memory_allocated()) / 2**20
