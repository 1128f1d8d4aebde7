"""The cost of the declarative M-step: compiling, updating, and what conic solvers return."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from seraph_cvx.datasets import load_sampling
from seraph_cvx.display.result_table import ResultTable
from seraph_cvx.fit.alternation import Iteration, alternate
from seraph_cvx.m_step.solve import solve_m_step
from seraph_cvx.model.m_step_objective import MStepObjective
from seraph_cvx.numerics.checks import FloatArray
from seraph_cvx.pairs.pair_set import PairSet
from seraph_cvx.processes.isolation import run_isolated
from seraph_cvx.solvers.not_certified import NotCertified

from .report import Report

DATA_SETS = ("iris", "wine", "breast_cancer")


def bench_compilation(report: Report, time_limit: float = 120.0) -> ResultTable:
    """Time compiling and updating our primal statement against the textbook's."""
    report.start("Compiling the M-step (n = 100, 4,950 pairs)")
    for name in DATA_SETS:
        report.tell(f"compiling {name}")
        ours = _fastest(time_ours, name)
        constant = _fastest(time_textbook, name, False)
        report.tell(f"compiling {name}, textbook with q as Parameters (up to {time_limit:g} s)")
        outcome = run_isolated(
            time_textbook, name, True, time_limit=time_limit, memory_limit=16 * 2**30
        )
        done = outcome.word == "done"
        parameters = outcome.result["first"] if done else outcome.seconds
        ratio = parameters / ours["first"]
        report.add(
            {
                "data": name,
                "ours first (s)": ours["first"],
                "textbook, q constant (s)": constant["first"],
                "textbook, q Parameters (s)": parameters
                if done
                else f"> {parameters:.0f} ({outcome.word})",
                "first: q Parameters / ours": ratio if done else f"> {ratio:.0f}",
                "first: q constant / ours": constant["first"] / ours["first"],
                "ours again (s)": ours["again"],
                "again: textbook / ours": constant["first"] / ours["again"],
            }
        )
    return report.finish()


def bench_answers(report: Report, tol: float = 1e-6, time_limit: float = 60.0) -> ResultTable:
    """Compare what CLARABEL and SCS claim for the first M-step with what is true."""
    report.start(f"First M-steps at tol = {tol:g}, time limit {time_limit:g} s")
    for name in DATA_SETS:
        objective = _first_m_step(name)
        bound = best_lower_bound(objective)
        for solver, formulation in _solvers():
            report.tell(f"{name}: {solver} {formulation}")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NotCertified)  # the table shows the status
                warnings.filterwarnings("ignore", "Solution may be inaccurate")  # and this word
                answer = solve_m_step(
                    objective,
                    solver,
                    tol=tol,
                    formulation=formulation,
                    time_limit=None if solver == "fista" else time_limit,
                )
            report.add(
                {
                    "data": name,
                    "solver": solver,
                    "formulation": formulation,
                    "solver's status": answer.solver_status,
                    "true gap": relative_distance(answer.value, bound),
                    "proved gap": answer.relative_gap,
                    "status": answer.status.value,
                    "compile (s)": answer.compile_seconds,
                    "solve (s)": answer.solver_seconds,
                }
            )
    return report.finish()


def bench_overhead(report: Report, iterations: int = 10) -> ResultTable:
    """Measure the share of a CLARABEL alternation that is spent outside the solver."""
    report.start("A CLARABEL alternation: time outside the solver")
    for name, seed in (("iris", 4), ("wine", 0)):
        pairs = PairSet.from_labels(*_labeled_points(name, seed))

        def tell(iteration: Iteration, metric: FloatArray, name: str = name) -> None:
            report.tell(f"{name}: CLARABEL iteration {iteration.number} of {iterations}")

        clock = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotCertified)
            warnings.filterwarnings("ignore", "Solution may be inaccurate")
            run = alternate(
                pairs,
                solver="CLARABEL",
                tol=1e-300,
                m_step_tol=1e-7,
                max_iter=iterations,
                callback=tell,
            )
        wall = time.perf_counter() - clock
        inside = sum(iteration.solver_seconds for iteration in run.history)
        report.add(
            {
                "data": f"{name} (seed {seed})",
                "iterations": len(run.history),
                "wall (s)": wall,
                "in the solver (s)": inside,
                "outside": 1.0 - inside / wall,
                "last true gap": run.m_step.relative_gap,
            }
        )
    return report.finish()


def best_lower_bound(objective: MStepObjective) -> float:
    """The dual value of FISTA's answer at a relative gap of 1e-10, if rounding allows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCertified)
        certificate = solve_m_step(objective, tol=1e-10).certificate
    return -np.inf if certificate is None else certificate.dual_value


def relative_distance(value: float, bound: float) -> float:
    """The relative gap (value - bound) / max(1, |value|); infinite if there is no value."""
    return float(np.nan_to_num((value - bound) / max(1.0, abs(value)), nan=np.inf))


def time_ours(name: str) -> dict[str, float]:
    """Time stating and compiling the first M-step, and updating it to the second."""
    from seraph_cvx.m_step.statement import build_statement

    first = _first_m_step(name)
    second = MStepObjective(first.pairs, previous_metric=solve_m_step(first, tol=1e-4).metric)
    second.soft_label_sums  # noqa: B018 - the E-step is not part of the update
    clock = time.perf_counter()
    statement = build_statement(first, "primal")
    statement.problem.get_problem_data("CLARABEL")
    compiled = time.perf_counter()
    statement.update(second)
    statement.problem.get_problem_data("CLARABEL")
    return {"first": compiled - clock, "again": time.perf_counter() - compiled}


def time_textbook(name: str, soft_labels_as_parameters: bool) -> dict[str, float]:
    """Time stating and compiling (11) as the paper prints it."""
    from seraph_cvx.m_step.statement import textbook_statement

    objective = _first_m_step(name)
    clock = time.perf_counter()
    problem = textbook_statement(objective, soft_labels_as_parameters)
    problem.get_problem_data("CLARABEL")
    return {"first": time.perf_counter() - clock}


def _solvers() -> Iterator[tuple[str, str]]:
    yield "fista", "primal"
    for solver in ("CLARABEL", "SCS"):
        for formulation in ("primal", "dual"):
            yield solver, formulation


def _fastest(measure: Callable[..., dict[str, float]], *arguments: Any) -> dict[str, float]:
    results = [measure(*arguments) for _ in range(3)]
    return {key: min(result[key] for result in results) for key in results[0]}


def _labeled_points(name: str, seed: int = 0) -> tuple[Any, Any]:
    sampling = load_sampling(name, seed=seed)
    return sampling.X, sampling.y


def _first_m_step(name: str) -> MStepObjective:
    objective = MStepObjective(PairSet.from_labels(*_labeled_points(name)))
    objective.pair_moment  # noqa: B018 - summed before the clock starts
    return objective
