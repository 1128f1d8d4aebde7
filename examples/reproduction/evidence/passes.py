"""Passes over the pairs and whole fits, on this machine or a GPU, or of some pairs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from seraph_cvx import MStepObjective, PairSet, alternate, certify, solve_m_step
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
    report: Report,
    backend: str = "cpu",
    sizes: Sequence[int] = SIZES,
    m: int = 64,
    unlabeled_pairs: int | None = None,
) -> MeasuredRows:
    """Measure a fit of the paper's hyper setting to ten Gaussian classes, for each n."""
    goal = f"J to {TOLERANCE:g}, gap to {TOLERANCE:g}"
    report.start(f"A whole fit on {backend} (hyper, m = {m}, {goal})")
    for n in sizes:
        report.tell(f"n = {n}")
        yield _size_row(report, backend, n, m, unlabeled_pairs)


def _slope(x, y):
    """The exponent of a power law, by least squares of the logarithms."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def _size_row(report, backend, n, m, unlabeled_pairs):
    X, y = _points_on(backend, n, m)
    clock = time.perf_counter()

    def follow(iteration, metric):
        report.tell(f"n = {n}: iteration {iteration.number}, J = {iteration.descent_value:.8g}")

    pairs = PairSet.from_labels(X, y)
    if unlabeled_pairs is not None:
        pairs = pairs.sampled(unlabeled_pairs, random_state=0)
    run = measured_fit(pairs, follow)
    metric, gap = np.asarray(run.metric), run.m_step.relative_gap
    fitted = time.perf_counter() - clock
    row: dict[str, Any] = {"n": n, "pairs": n * (n - 1) // 2}
    if pairs.drawn is not None:
        whole = replace(run.objective, pairs=pairs.whole)
        gap = certify(whole, metric, enough=TOLERANCE).relative_gap
        row |= {"drawn": unlabeled_pairs, "fit alone (s)": fitted}
    seconds = time.perf_counter() - clock
    evaluations = sum(iteration.evaluations for iteration in run.history)
    full_pass = timed(run.objective.value_and_gradient, metric, repeats=3)[1]
    return row | {
        "seconds": seconds,
        "iterations": len(run.history),
        "evaluations": evaluations,
        "seconds / evaluation": fitted / max(1, evaluations),
        "in full passes": fitted / full_pass,
        "status": run.status.value,
        "gap over all pairs": gap,
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


def bench_subsample(
    report: Report,
    draws: Sequence[int] = (1_000, 4_000, 16_000, 64_000, 256_000),
    n: int = 2_000,
    m: int = 8,
    n_instances: int = 5,
    n_samples: int = 4,
) -> MeasuredRows:
    """Measure the certified gap over all pairs of M-steps learned from k drawn ones, against k."""
    report.start(f"Certified relative gap over all {n * (n - 1) // 2} pairs, k of them drawn")
    for seed in range(n_instances):
        pairs = PairSet.from_labels(*gaussian_classes(n, m, seed=seed))
        gaps = np.zeros((len(draws), n_samples))
        for k, draw in np.ndindex(gaps.shape):
            report.tell(f"instance {seed}, k = {draws[k]}")
            sampled = MStepObjective(pairs.sampled(draws[k], random_state=draw))
            metric = np.asarray(solve_m_step(sampled, tol=1e-9).metric)
            gaps[k, draw] = certify(MStepObjective(pairs), metric).relative_gap
        means = gaps.mean(axis=1).tolist()
        row: dict[str, Any] = {"instance": seed}
        row |= {f"k = {k}": gap for k, gap in zip(draws, means, strict=True)}
        yield row | {"exponent of k": _slope(draws, means)}
    report.note("1/sqrt(k) is the exponent -0.5.")
