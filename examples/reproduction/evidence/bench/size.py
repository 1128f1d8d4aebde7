"""Time and memory of a whole fit against n, on this machine, a GPU or a cluster."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from seraph_cvx.certificate.sampling import certify_in_full
from seraph_cvx.display.result_table import ResultTable
from seraph_cvx.fit.alternation import Alternation, Iteration, alternate
from seraph_cvx.model.m_step_objective import MStepObjective
from seraph_cvx.numerics.checks import FloatArray, MissingExtra
from seraph_cvx.pairs.pair_set import PairSet
from seraph_cvx.processes.isolation import peak_bytes
from seraph_cvx.solvers.not_certified import NotCertified

from .report import Report

BACKENDS = ("cpu", "cuda", "dask")

ENOUGH = 1e-4
"""The tolerance of the last relative fall of J, and of the last M-step's relative gap."""


def bench_sizes(
    report: Report,
    backend: str = "cpu",
    sizes: Sequence[int] = (1_000, 3_000, 10_000),
    m: int = 64,
    unlabeled_pairs: int | None = None,
    scheduler: str | None = None,
) -> ResultTable:
    """Measure a fit of the paper's hyper setting to ten Gaussian classes, for each n."""
    if backend not in BACKENDS:
        raise ValueError(f"Unknown backend {backend!r}: use one of {', '.join(BACKENDS)}.")
    report.start(f"A whole fit on {backend} (hyper, m = {m}, J to {ENOUGH:g}, gap to {ENOUGH:g})")
    with _cluster_for(backend, scheduler):
        for n in sizes:
            report.tell(f"n = {n}")
            report.add(_fit(report, backend, n, m, unlabeled_pairs))
    return report.finish()


def measured_fit(
    pairs: PairSet, callback: Callable[[Iteration, FloatArray], object] | None = None
) -> Alternation:
    """The fit that is measured."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCertified)  # the row says it
        return alternate(pairs, tol=ENOUGH, m_step_tol=ENOUGH, n_jobs=-1, callback=callback)


def bench_subsample(
    report: Report,
    draws: Sequence[int] = (1_000, 4_000, 16_000, 64_000, 256_000),
    n: int = 2_000,
    m: int = 8,
    n_instances: int = 5,
    n_samples: int = 4,
) -> ResultTable:
    """Measure the certified gap over all pairs of M-steps learned from k drawn ones, against k."""
    from seraph_cvx.m_step.solve import solve_m_step

    report.start(f"Certified relative gap over all {n * (n - 1) // 2} pairs, k of them drawn")
    for seed in range(n_instances):
        pairs = PairSet.from_labels(*gaussian_classes(n, m, seed=seed))
        gaps = []
        for k in draws:
            report.tell(f"instance {seed}, k = {k}")
            found = []
            for draw in range(n_samples):
                sampled = MStepObjective(pairs.sampled(k, random_state=draw))
                metric = solve_m_step(sampled, tol=1e-9).metric
                report_in_full = certify_in_full(sampled, np.asarray(metric))
                found.append(report_in_full.certificate.relative_gap)
            gaps.append(float(np.mean(found)))
        slope = float(np.polyfit(np.log(draws), np.log(gaps), 1)[0])
        named = {f"k = {k}": gap for k, gap in zip(draws, gaps, strict=True)}
        report.add({"instance": seed, **named, "exponent of k": slope})
    return report.finish(["1/sqrt(k) is the exponent -0.5."])


def _fit(
    report: Report, backend: str, n: int, m: int, unlabeled_pairs: int | None
) -> dict[str, Any]:
    X, y = gaussian_classes(n, m)
    X = to_backend(X, backend)
    clock = time.perf_counter()
    pairs = PairSet.from_labels(X, y)
    if unlabeled_pairs is not None:
        pairs = pairs.sampled(unlabeled_pairs, random_state=0)

    def tell(iteration: Iteration, metric: FloatArray) -> None:
        report.tell(f"n = {n}: iteration {iteration.number}, J = {iteration.descent_value:.8g}")
        seconds = time.perf_counter() - clock
        report.draft({"n": n, "seconds": seconds, "iterations": iteration.number})

    run = measured_fit(pairs, tell)
    gap, fitted = run.m_step.relative_gap, time.perf_counter() - clock
    row: dict[str, Any] = {"n": n, "pairs": n * (n - 1) // 2}
    if pairs.drawn is not None:
        in_full = certify_in_full(run.objective, np.asarray(run.metric), enough=ENOUGH)
        gap = in_full.certificate.relative_gap
        row |= {"drawn": unlabeled_pairs, "fit alone (s)": fitted}
    seconds = time.perf_counter() - clock
    evaluations = sum(iteration.evaluations for iteration in run.history)
    return row | {
        "seconds": seconds,
        "iterations": len(run.history),
        "evaluations": evaluations,
        "seconds / evaluation": fitted / max(1, evaluations),
        "in full passes": fitted / _full_pass_seconds(run),
        "status": run.status.value,
        "gap over all pairs": gap,
        "J": run.history[-1].descent_value,
        "peak MiB": _peak_mebibytes(backend),
    }


def _full_pass_seconds(run: Alternation) -> float:
    """The seconds of one value and gradient with respect to the whole metric, best of three."""
    found = []
    for _ in range(3):
        clock = time.perf_counter()
        run.objective.value_and_gradient(np.asarray(run.metric))
        found.append(time.perf_counter() - clock)
    return min(found)


def to_backend(X: FloatArray, backend: str) -> Any:
    """Move X to the GPU, after its first use, if that is the backend."""
    if backend != "cuda":
        return X
    try:
        import torch
    except ImportError:
        raise MissingExtra('The backend "cuda" needs PyTorch: pip install torch.') from None
    if not torch.cuda.is_available():
        raise ValueError(
            'The backend "cuda" needs a CUDA device, and PyTorch finds none: use cpu or dask.'
        )
    on_device = torch.asarray(X, device="cuda")
    (on_device.T @ on_device).sum().item()
    torch.cuda.reset_peak_memory_stats()
    return on_device


@contextmanager
def _cluster_for(backend: str, scheduler: str | None) -> Iterator[None]:
    if backend != "dask":
        yield
        return
    from seraph_cvx.processes.dask_cluster import dask_cluster

    with dask_cluster(scheduler):
        yield


def _peak_mebibytes(backend: str) -> float:
    """The peak memory of the GPU or of this process, without its workers; 0 if unknown."""
    if backend == "cuda":
        import torch

        return float(torch.cuda.max_memory_allocated()) / 2**20
    return peak_bytes() / 2**20


def gaussian_classes(n: int, m: int, n_classes: int = 10, seed: int = 0) -> tuple[FloatArray, Any]:
    """Draw points of Gaussian classes to measure on, ten of each class labeled."""
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(n_classes, m)) / 2.0
    classes = rng.integers(n_classes, size=n)
    X = means[classes] + rng.normal(size=(n, m))
    known = np.concatenate([np.flatnonzero(classes == c)[:10] for c in range(n_classes)])
    y = np.full(n, -1)
    y[known] = classes[known]
    return X, y
