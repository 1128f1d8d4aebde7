"""Passes over the pairs: their cost against n and m, on this machine, a GPU or a cluster."""

from __future__ import annotations

import cProfile
import pstats
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from seraph_cvx import MStepObjective, PairSet, alternate, solve_m_step
from seraph_cvx.certificate.sampling import certify_in_full
from seraph_cvx.display.result_table import ResultTable
from seraph_cvx.engine.pair_sums import PairSums
from seraph_cvx.model.pair_program import FactorPoint, PairProgram
from seraph_cvx.model.programs import descent_program
from seraph_cvx.numerics.arrays import one_blas_thread
from seraph_cvx.numerics.checks import MissingExtra
from seraph_cvx.processes.dask_cluster import dask_cluster
from seraph_cvx.processes.isolation import peak_bytes, resident_bytes, run_isolated

from .measuring import Report, gaussian_classes, quiet, timed

SIZES = (1_000, 3_000, 10_000)

TOLERANCE = 1e-4
"""Of the last relative fall of J, and of the last M-step's relative gap."""

# One pass


def bench_kernel(report: Report, n: int = 3_000, m: int = 64) -> ResultTable:
    """Time value and gradient in one pass against the two n x n x m matrix products alone."""
    report.start(f"Value + gradient against bare products (n = {n}, m = {m})")
    X, y = gaussian_classes(n, m)
    F = np.random.default_rng(1).normal(size=(m, m)) / m
    A = F @ F.T
    XA, square = X @ A, np.empty((n, n))

    def products():
        np.matmul(XA, X.T, out=square)
        square @ X

    for threads in (1, 2):
        report.tell(f"value and gradient at n = {n}, m = {m}, {threads} threads")
        program = MStepObjective(PairSet.from_labels(X, y), n_jobs=threads).program
        bare = own = np.inf
        with one_blas_thread() if threads == 1 else nullcontext():
            for _ in range(4):  # in turns, so that other load affects both alike
                time.sleep(0.3)
                bare = min(bare, timed(products, repeats=5)[1])
                time.sleep(0.3)
                with one_blas_thread():  # as every solver does
                    own = min(own, timed(program.value_and_gradient, A, repeats=5)[1])
        report.add(
            {"threads": threads, "products (s)": bare, "own (s)": own, "own / products": own / bare}
        )
    return report.finish()


def bench_scaling(
    report: Report, sizes: Sequence[int] = (2_000, 5_000, 10_000, 20_000), m: int = 16
) -> ResultTable:
    """Measure time and peak memory of three passes against n, and fit the exponents."""
    report.start("Passes of value + gradient")
    for n in sizes:
        report.tell(f"three passes at n = {n}")
        outcome = run_isolated(three_passes, n, m, time_limit=600.0)
        if outcome.status != "done":
            raise RuntimeError(f"three passes at n = {n}: {outcome.status}. {outcome.detail}")
        seconds, extra = outcome.result
        report.add({"n": n, "m": m, "seconds a pass": seconds, "extra MiB": extra / 2**20})
    return report.finish(_fitted_exponent(report, "n"))


def bench_dimension(
    report: Report, dimensions: Sequence[int] = (8, 16, 32, 64, 128), n: int = 3_000
) -> ResultTable:
    """Measure the time of a pass against m, and fit the exponent."""
    report.start("Passes of value + gradient")
    for m in dimensions:
        report.tell(f"passes at m = {m}")
        report.add({"m": m, "n": n, "seconds a pass": three_passes(n, m)[0]})
    return report.finish(_fitted_exponent(report, "m"))


def _fitted_exponent(report, size):
    sizes, seconds = ([row[key] for row in report.rows] for key in (size, "seconds a pass"))
    return f"Fitted exponent in {size}: {_slope(sizes, seconds):.2f}."


def _slope(x, y):
    """The exponent of a power law, by least squares of the logarithms."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def three_passes(n: int, m: int) -> tuple[float, int]:
    """Measure the seconds per pass, and the bytes of memory that the passes add."""
    X, y = gaussian_classes(n, m)
    before = resident_bytes()
    program = MStepObjective(PairSet.from_labels(X, y), n_jobs=2).program
    _, seconds = timed(program.value_and_gradient, np.eye(m) / m, repeats=3)
    return seconds, peak_bytes() - before


def bench_face(
    report: Report, backend: str = "cpu", sizes: Sequence[int] = SIZES, m: int = 64, rho: int = 8
) -> ResultTable:
    """Time what a fit is made of: passes over all pairs at a factor with `rho` columns.

    "slope" is the value and the slope with respect to the factor, "product" the change of the slope
    along a direction: of all pairs up to some thousand points, and beyond of the pairs of some
    points; on a GPU it is also timed for all pairs.
    """
    if backend not in ("cpu", "cuda"):
        raise ValueError(f"Passes are timed on cpu or cuda, not on {backend!r}.")
    report.start(f"Passes over all pairs on {backend} (m = {m}, {rho} columns), milliseconds")
    rng = np.random.default_rng(1)
    shape, D = rng.normal(size=(m, rho)), rng.normal(size=(m, rho))
    for n in sizes:
        X, y = gaussian_classes(n, m)
        objective = MStepObjective(PairSet.from_labels(to_backend(X, backend), y), n_jobs=-1)
        descent = descent_program(objective, whitened=True)
        for name, program in (("(11)", objective.whitened_program), ("J", descent)):
            report.tell(f"passes at n = {n}, {name}")
            L = shape * (program.typical_size**0.5 / float(np.linalg.norm(shape)))
            point = program.at(L)
            row: dict[str, Any] = {
                "n": n,
                "function": name,
                "slope": _milliseconds(program.at, L),
                "gradient": _milliseconds(point.make_gradient),
                "product": _milliseconds(point.hessian_product, D),
            }
            if program.gpu_pairs is not None:
                every = program.gpu_pairs.by_device[0].pass_at(L)
                row["product, all pairs"] = _milliseconds(every.hessian_product, D)
            report.add(row)
    return report.finish()


def _milliseconds(run, *arguments):
    """The least time of a few runs, after one that is not timed."""
    run(*arguments)
    return 1e3 * timed(run, *arguments, repeats=5)[1]


SUMS: dict[str, list[Any]] = {
    "values and slopes": [PairProgram.at],
    "products": [FactorPoint.hessian_product, FactorPoint.curvature],
    "gradients": [vars(FactorPoint)["gradient"].func],
    "certificate and moments": [PairSums.over_labeled, PairSums.over_unlabeled],
}
"""The functions that sum over pairs. None of them calls another one."""


def bench_shares(
    report: Report, backend: str = "cpu", sizes: Sequence[int] = SIZES, m: int = 64
) -> ResultTable:
    """Measure which share of a fit's time goes to sums over pairs, and to what else.

    Python's profiler times a second fit, and slows calls of Python down: the shares are rough where
    a fit takes a fraction of a second.
    """
    if backend not in ("cpu", "cuda"):
        raise ValueError(f"Shares are measured on cpu or cuda, not on {backend!r}.")
    report.start(f"Where the time of a fit on {backend} goes (m = {m}), per cent of it")
    for n in sizes:
        report.tell(f"shares at n = {n}")
        X, y = gaussian_classes(n, m)
        X = to_backend(X, backend)
        measured_fit(PairSet.from_labels(X, y))
        profiler = cProfile.Profile()
        profiler.runcall(lambda X=X, y=y: measured_fit(PairSet.from_labels(X, y)))
        measured = vars(pstats.Stats(profiler))
        total = measured["total_tt"]
        shares = {name: 100.0 * _seconds_in(measured, SUMS[name]) / total for name in SUMS}
        rest = 100.0 - sum(shares.values())
        report.add({"n": n, "seconds, profiled": total, **shares, "all else": rest})
    return report.finish()


def _seconds_in(measured, functions):
    """The seconds spent in some functions and what they call."""
    codes = [function.__code__ for function in functions]
    keys = [(code.co_filename, code.co_firstlineno, code.co_name) for code in codes]
    return sum(float(measured["stats"][key][3]) for key in keys if key in measured["stats"])


# Whole fits


def measured_fit(pairs: PairSet, callback=None):
    """The fit that is measured."""
    with quiet():
        return alternate(pairs, tol=TOLERANCE, m_step_tol=TOLERANCE, n_jobs=-1, callback=callback)


def _follow(report, n, clock):
    """A callback of a fit that reports how far it came."""

    def tell(iteration, metric):
        report.tell(f"n = {n}: iteration {iteration.number}, J = {iteration.descent_value:.8g}")
        seconds = time.perf_counter() - clock
        report.draft({"n": n, "seconds": seconds, "iterations": iteration.number})

    return tell


def bench_large_fit(report: Report, n: int = 5_000, m: int = 16) -> ResultTable:
    """Time a whole fit of a few thousand points, and count its evaluations."""
    report.start("A whole fit (hyper, tol = 1e-4)")
    pairs = PairSet.from_labels(*gaussian_classes(n, m))
    limits = {"tol": 1e-4, "m_step_tol": 1e-6, "n_jobs": 2}
    tell = _follow(report, n, time.perf_counter())
    run, seconds = timed(alternate, pairs, callback=tell, **limits)
    report.add(
        {
            "n": n,
            "m": m,
            "seconds": seconds,
            "iterations": len(run.history),
            "evaluations": sum(iteration.evaluations for iteration in run.history),
            "seconds / one pass": seconds / three_passes(n, m)[0],
            "status": run.status.value,
            "gap": run.m_step.relative_gap,
        }
    )
    return report.finish()


def bench_sizes(
    report: Report,
    backend: str = "cpu",
    sizes: Sequence[int] = SIZES,
    m: int = 64,
    unlabeled_pairs: int | None = None,
    scheduler: str | None = None,
) -> ResultTable:
    """Measure a fit of the paper's hyper setting to ten Gaussian classes, for each n."""
    if backend not in ("cpu", "cuda", "dask"):
        raise ValueError(f"Unknown backend {backend!r}: use one of cpu, cuda, dask.")
    goal = f"J to {TOLERANCE:g}, gap to {TOLERANCE:g}"
    report.start(f"A whole fit on {backend} (hyper, m = {m}, {goal})")
    with dask_cluster(scheduler) if backend == "dask" else nullcontext():
        for n in sizes:
            report.tell(f"n = {n}")
            report.add(_size_row(report, backend, n, m, unlabeled_pairs))
    return report.finish()


def _size_row(report, backend, n, m, unlabeled_pairs):
    X, y = gaussian_classes(n, m)
    X = to_backend(X, backend)
    clock = time.perf_counter()
    pairs = PairSet.from_labels(X, y)
    if unlabeled_pairs is not None:
        pairs = pairs.sampled(unlabeled_pairs, random_state=0)
    run = measured_fit(pairs, _follow(report, n, clock))
    metric, gap = np.asarray(run.metric), run.m_step.relative_gap
    fitted = time.perf_counter() - clock
    row: dict[str, Any] = {"n": n, "pairs": n * (n - 1) // 2}
    if pairs.drawn is not None:
        in_full = certify_in_full(run.objective, metric, enough=TOLERANCE)
        gap = in_full.certificate.relative_gap
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


def to_backend(X, backend: str) -> Any:
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
) -> ResultTable:
    """Measure the certified gap over all pairs of M-steps learned from k drawn ones, against k."""
    report.start(f"Certified relative gap over all {n * (n - 1) // 2} pairs, k of them drawn")
    for seed in range(n_instances):
        pairs = PairSet.from_labels(*gaussian_classes(n, m, seed=seed))
        gaps = []
        for k in draws:
            report.tell(f"instance {seed}, k = {k}")
            found = []
            for draw in range(n_samples):
                sampled = MStepObjective(pairs.sampled(k, random_state=draw))
                metric = np.asarray(solve_m_step(sampled, tol=1e-9).metric)
                found.append(certify_in_full(sampled, metric).certificate.relative_gap)
            gaps.append(float(np.mean(found)))
        row: dict[str, Any] = {"instance": seed}
        row |= {f"k = {k}": gap for k, gap in zip(draws, gaps, strict=True)}
        report.add(row | {"exponent of k": _slope(draws, gaps)})
    return report.finish("1/sqrt(k) is the exponent -0.5.")


# Starts

STARTS = {
    "import numpy": "import numpy",
    "import seraph_cvx": "import seraph_cvx",
    "seraph-cvx --help": """
import sys
from seraph_cvx.__main__ import main
sys.argv = ["seraph-cvx", "--help"]
try:
    main()
except SystemExit:
    pass
""",
    "seraph-cvx explore, the first view": """
import seraph_cvx.cli
from seraph_cvx.explorer import server
server.Pages().answer("/events", {})
""",
}
"""The code that each process runs, the unit of the others first."""

TELL = "\nimport sys, time\nsys.stderr.write(str(time.process_time()))"
"""The last line of each process: it reports its processor time, including its start."""


def bench_startup(report: Report, rounds: int = 10) -> ResultTable:
    """Measure each start's least processor time, in turns, so that other load affects all alike."""
    report.start("Processor time of fresh processes")
    best = dict.fromkeys(STARTS, np.inf)
    for number in range(1, rounds + 1):
        report.tell(f"round {number} of {rounds}")
        for name, code in STARTS.items():
            best[name] = min(best[name], processor_seconds(code))
    for name, seconds in best.items():
        ratio = seconds / best["import numpy"]
        report.add({"process": name, "processor (s)": seconds, "imports of NumPy": ratio})
    return report.finish()


def processor_seconds(code: str) -> float:
    """Measure the user and system time that a fresh process takes to run `code`."""
    command = [sys.executable, "-c", code + TELL]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stderr)
