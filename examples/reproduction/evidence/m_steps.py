"""M-steps: the cost of stating, solving, certifying and proving them, by us and by others."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence

import numpy as np

from seraph_cvx import MStepObjective, Status, alternate, certify, seraph_path, solve_m_step
from seraph_cvx.m_step.solve import MStepSolver
from seraph_cvx.m_step.statement import build_statement, textbook_statement
from seraph_cvx.numerics.arrays import one_blas_thread
from seraph_cvx.processes.isolation import ForkServer, run_isolated
from seraph_cvx.processes.workers import ONE_THREAD
from seraph_cvx.race.attempt import Entrant
from seraph_cvx.race.solvers import entrants, kinds_of_entrants
from seraph_cvx.race.suite import InstanceSpec
from seraph_cvx.solvers.methods import fista, newton_method
from seraph_cvx.solvers.solution import grade_matrix

from .measuring import (
    DIGITS,
    TASKS,
    MeasuredRows,
    Report,
    draw_tasks,
    quiet,
    task_pairs,
    timed,
)

DATA_SETS = ("iris", "wine", "breast_cancer")

FAMILIES = (
    "iris-n30-standard-hyper-w1-s0",
    "wine-n40-standard-hyper-w1-s0",
    "breast_cancer-n24-standard-hyper-w1-s0",
)
"""Instances of the race whose alternations are timed."""

# The declarative M-step


def bench_compilation(
    report: Report, time_limit: float = 120.0, names: Sequence[str] = DATA_SETS
) -> MeasuredRows:
    """Time compiling and updating our primal statement against the textbook's."""
    report.start("Compiling the M-step (n = 100, 4,950 pairs)")
    for name in names:
        report.tell(f"compiling {name}")
        first, again = np.min([time_ours(name) for _ in range(3)], axis=0).tolist()
        constant = min(time_textbook(name, False) for _ in range(3))
        report.tell(f"compiling {name}, textbook with q as Parameters (up to {time_limit:g} s)")
        limits = {"time_limit": time_limit, "memory_limit": 16 * 2**30}
        outcome = run_isolated(time_textbook, name, True, **limits)
        done = outcome.status == "done"
        parameters = outcome.result if done else outcome.seconds
        ratio = parameters / first
        bound = f"> {parameters:.0f} ({outcome.status})"
        yield {
            "data": name,
            "ours first (s)": first,
            "textbook, q constant (s)": constant,
            "textbook, q Parameters (s)": parameters if done else bound,
            "first: q Parameters / ours": ratio if done else f"> {ratio:.0f}",
            "first: q constant / ours": constant / first,
            "ours again (s)": again,
            "again: textbook / ours": constant / again,
        }


def time_ours(name: str) -> tuple[float, float]:
    """Time stating and compiling the first M-step, and updating it to the second."""
    first = _first_m_step(name)
    second = MStepObjective(first.pairs, previous_metric=solve_m_step(first, tol=1e-4).metric)
    second.soft_label_sums  # noqa: B018 - the E-step is not part of the update
    clock = time.perf_counter()
    statement = build_statement(first, "primal")
    statement.problem.get_problem_data("CLARABEL")
    compiled = time.perf_counter()
    statement.update(second)
    statement.problem.get_problem_data("CLARABEL")
    return compiled - clock, time.perf_counter() - compiled


def time_textbook(name: str, soft_labels_as_parameters: bool) -> float:
    """Time stating and compiling (11) as the paper prints it."""
    objective = _first_m_step(name)
    clock = time.perf_counter()
    textbook_statement(objective, soft_labels_as_parameters).get_problem_data("CLARABEL")
    return time.perf_counter() - clock


def _first_m_step(name):
    objective = MStepObjective(task_pairs(name))
    objective.pair_moment  # noqa: B018 - summed before the clock starts
    return objective


def bench_tenth_m_step(
    report: Report, time_limit: float = 60.0, names: Sequence[str] = FAMILIES, tol: float = 1e-6
) -> MeasuredRows:
    """Time the first and the tenth M-step of an alternation, whose statement is compiled once."""
    report.start(f"The first and the tenth M-step of an alternation, tolerance {tol:g}")
    for name in names:
        steps = alternation_m_steps(InstanceSpec.parse(name).objective(), 10)
        for solver, formulation in (("newton", "primal"), ("CLARABEL", "dual"), ("SCS", "dual")):
            report.tell(f"{name}: {solver}")
            one = MStepSolver(solver, formulation=formulation, time_limit=time_limit)
            with quiet():
                answers = [one.solve(objective, tol) for objective in steps]
            seconds = [[a.compile_seconds, a.solver_seconds] for a in answers]
            if solver == "newton":
                own = seconds
            yield {
                "instance": name,
                "solver": solver if solver == "newton" else f"{solver}/{formulation}",
                "compile, first (s)": seconds[0][0],
                "compile, tenth (s)": seconds[9][0],
                "solve, first (s)": seconds[0][1],
                "solve, tenth (s)": seconds[9][1],
                "total / newton, first": sum(seconds[0]) / sum(own[0]),
                "total / newton, tenth": sum(seconds[9]) / sum(own[9]),
                "total / newton, all ten": float(np.sum(seconds) / np.sum(own)),
            }


def alternation_m_steps(objective: MStepObjective, count: int) -> list[MStepObjective]:
    """The first M-steps of an alternation, each with the soft labels of the one before."""
    steps = [objective]
    while len(steps) < count:
        steps.append(steps[-1].with_soft_labels_of(solve_m_step(steps[-1], tol=1e-8).metric))
    return steps


def bench_answers(
    report: Report,
    tol: float = 1e-6,
    time_limit: float = 60.0,
    names: Sequence[str] = DATA_SETS,
) -> MeasuredRows:
    """Compare what CLARABEL and SCS claim for the first M-step with what is true."""
    report.start(f"First M-steps at tol = {tol:g}, time limit {time_limit:g} s")
    conic = [(solver, form) for solver in ("CLARABEL", "SCS") for form in ("primal", "dual")]
    for name in names:
        objective = _first_m_step(name)
        bound = best_lower_bound(objective)
        for solver, formulation in [("newton", "primal"), *conic]:
            report.tell(f"{name}: {solver} {formulation}")
            limit = None if solver == "newton" else time_limit
            settings = {"tol": tol, "formulation": formulation, "time_limit": limit}
            with quiet():
                answer = solve_m_step(objective, solver, **settings)
            yield {
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


def best_lower_bound(objective: MStepObjective) -> float:
    """The dual value of our answer at a relative gap of 1e-10, if rounding allows."""
    with quiet():
        certificate = solve_m_step(objective, tol=1e-10).certificate
    return -np.inf if certificate is None else certificate.dual_value


def relative_distance(value: float, bound: float) -> float:
    """The relative gap (value - bound) / max(1, |value|); infinite if there is no value."""
    return float(np.nan_to_num((value - bound) / max(1.0, abs(value)), nan=np.inf))


def bench_overhead(report: Report, iterations: int = 10) -> MeasuredRows:
    """Measure the share of a CLARABEL alternation that is spent outside the solver."""
    report.start("A CLARABEL alternation: time outside the solver")
    limits = {"tol": 1e-300, "m_step_tol": 1e-7, "max_iter": iterations}
    for name, seed in (("iris", 4), ("wine", 0)):
        report.tell(f"{name}: {iterations} iterations of CLARABEL")
        pairs = task_pairs(name, seed)
        with quiet():
            run, wall = timed(alternate, pairs, solver="CLARABEL", **limits)
        inside = sum(iteration.solver_seconds for iteration in run.history)
        yield {
            "data": f"{name} (seed {seed})",
            "iterations": len(run.history),
            "wall (s)": wall,
            "in the solver (s)": inside,
            "outside": 1.0 - inside / wall,
            "last true gap": run.m_step.relative_gap,
        }


# Our own solver against others

TRUE_GAP = 1e-5
"""The distance from the best known lower bound that a rival has to reach."""

RUNGS = (1e-5, 1e-6, 1e-7, 1e-8, 1e-9)
"""The tolerances that a rival is asked for, one after the other, until it reaches that distance."""

REPEATS, LONG = 3, 1.0
"""A run is repeated, as ours is, and the least time counts; but not one that takes a second."""

GRACE = 30.0
"""Seconds after its limit at which a rival that ignores it is ended."""


def bench_first_m_steps(
    report: Report,
    tasks: Sequence[str] = TASKS,
    seeds: Sequence[int] = (0, 1),
    time_limit: float = 600.0,
    rivals: Mapping[str, Sequence[Entrant]] | None = None,
) -> MeasuredRows:
    """Time our solver, certified to 1e-8, against the fastest rival that really reaches 1e-5.

    A rival climbs a ladder of tolerances until its answer is truly within 1e-5 of the best lower
    bound; its time is that of the first rung that is, compilation included. It is stopped at
    `time_limit`, or at the best time of its kind so far. The fastest of each kind has its columns.
    """
    report.start("First M-steps (n = 100, standardized, hyper)")
    if rivals is None:
        able = entrants()
        rivals = {kind: [e for e in k if e in able] for kind, k in kinds_of_entrants().items()}
    for task, _ in draw_tasks(report, tasks, seeds, "ratio"):
        key = task["task"], task["seed"]
        own, share = min(_own_seconds(*key, newton_method) for _ in range(3))
        alone, _ = min(_own_seconds(*key, fista) for _ in range(2))
        row = task | {
            "newton to 1e-8 (s)": own,
            "certificate's share": share,
            "fista (s)": alone,
        }
        fastest = time_limit
        for kind, group in rivals.items():
            if group:
                seconds, label = _fastest(report, key, group, time_limit)
                row |= {f"fastest {kind}": label, f"{kind} (s)": _bound(seconds, time_limit, "g")}
                row[f"{kind} / newton"] = _bound(seconds / own, time_limit / own, ".0f")
                fastest = min(fastest, seconds)
        yield (row | {"ratio": _bound(fastest / own, time_limit / own, ".0f")})


def _bound(value, limit, form):
    """A value below its limit, or a text that it is above."""
    return value if value < limit else f"> {limit:{form}}"


def _own_seconds(name, seed, solve):
    """Time one of our solvers to a certified 1e-8, with all sums, and the certificate's share."""
    pairs = task_pairs(name, seed)
    with one_blas_thread():
        solution, seconds = timed(solve, MStepObjective(pairs), tol=1e-8)
    if solution.relative_gap > 1e-8:
        raise RuntimeError(f"{solution.solver} is not certified on {name}, seed {seed}")
    return seconds, solution.certificate_seconds / solution.seconds


def _fastest(report, key, group, time_limit):
    """The least seconds of some solvers to `TRUE_GAP`, at most the limit, and whose they are."""
    best, label = time_limit, "none within the limit"
    for entrant in group:
        report.tell(f"{key[0]}, seed {key[1]}: {entrant.label}, up to {best:.2g} s")
        seconds = _climb(key, entrant, best)
        if seconds < best:
            best, label = seconds, entrant.label
    return best, label


def _climb(key, entrant, time_limit):
    """The seconds at the loosest tolerance whose answer is within `TRUE_GAP`, or infinity."""
    with ForkServer([__name__, entrant.package or "cvxpy"], ONE_THREAD) as server:
        for tol in RUNGS:
            work = (solve_once, *key, entrant, tol, time_limit)
            outcome = server.run(*work, time_limit=time_limit + GRACE)
            seconds, gap = outcome.result if outcome.status == "done" else (np.inf, np.inf)
            if gap <= TRUE_GAP:
                return seconds
            if seconds > time_limit:
                break
    return np.inf


def solve_once(
    name: str, seed: int, entrant: Entrant, tol: float, time_limit: float
) -> tuple[float, float]:
    """Solve once by a rival: its seconds, with compilation, and its true relative gap."""
    warnings.simplefilter("ignore")  # a process of its own; the gap says it all
    entrant.load()
    least = np.inf
    for _ in range(REPEATS):
        objective = MStepObjective(task_pairs(name, seed))
        answer, seconds = timed(entrant.solve, objective, tol, time_limit)
        least = min(least, seconds)
        if least > LONG:
            break
    graded = None if answer.matrix is None else grade_matrix(objective, answer.matrix)
    if graded is None:
        return least, np.inf
    return least, relative_distance(graded.certificate.primal_value, best_lower_bound(objective))


def bench_whole_fit(report: Report, name: str = "wine", time_limit: float = 120.0) -> MeasuredRows:
    """Time a whole alternation, our own against CLARABEL's, which is stopped at `time_limit`."""
    report.start("The paper's alternation (hyper), end to end")
    pairs = task_pairs(name)
    run, own = timed(alternate, pairs, repeats=3)
    row = {
        "task": name,
        "own (s)": own,
        "own iterations": len(run.history),
        "own gap": run.m_step.relative_gap,
    }
    clock = time.perf_counter()

    def is_late(iteration, metric):
        seconds = time.perf_counter() - clock
        so_far = {"CLARABEL (s)": f"> {seconds:.0f}", "CLARABEL iterations": iteration.number}
        report.draft(row | so_far | {"ratio": f"> {seconds / own:.0f}"})
        report.tell(f"{name}: CLARABEL, after iteration {iteration.number}")
        return seconds > time_limit

    report.draft(row)
    report.tell(f"{name}: CLARABEL, up to {time_limit:g} s")
    with quiet():
        conic = alternate(pairs, solver="CLARABEL", m_step_tol=1e-7, callback=is_late)
    seconds = time.perf_counter() - clock
    finished = conic.status not in (Status.ITERATION_LIMIT, Status.INTERRUPTED)
    yield (
        row
        | {
            "CLARABEL (s)": seconds if finished else f"> {seconds:.0f}",
            "CLARABEL iterations": len(conic.history),
            "CLARABEL gap": conic.m_step.relative_gap,
            "ratio": seconds / own if finished else f"> {seconds / own:.0f}",
        }
    )


# Paths, certificates and proofs


def bench_path(
    report: Report, tasks: Sequence[str] = TASKS, seeds: Sequence[int] = (0, 1), repeats: int = 5
) -> MeasuredRows:
    """Time a path of 20 trace weights against one cold solve at the smallest of them."""
    report.start("Paths of 20 trace weights (n = 100), in cold solves")
    for row, pairs in draw_tasks(report, tasks, seeds, "start"):
        path, seconds = timed(seraph_path, pairs, repeats=repeats)
        _, cold = timed(_cold_solve, pairs, float(path.trace_weights[-1]), repeats=repeats)
        walked = seraph_path(pairs, [300.0, 30.0, 3.0, 1.0], algorithm="em")
        yield (
            row
            | {
                "path (s)": seconds,
                "cold solve (s)": cold,
                "path / cold": seconds / cold,
                "largest gap": max(point.certificate.relative_gap for point in path),
                "ranks": f"{path.ranks[0]} to {max(path.ranks)}",
                "EM: J at the end": walked[-1].descent_value,
                "J of the cold fit": alternate(pairs).history[-1].descent_value,
                "start": walked[-1].start,
            }
        )


def _cold_solve(pairs, trace_weight):
    return solve_m_step(MStepObjective(pairs, trace_weight=trace_weight), tol=1e-6)


def bench_certificate(
    report: Report, tasks: Sequence[str] = (*TASKS, *DIGITS), seeds: Sequence[int] = (0,)
) -> MeasuredRows:
    """Time `certify` at the solutions of first and second M-steps, solved to 1e-8."""
    report.start("Certificates at solved M-steps (n = 100), against a pass for f and its gradient")
    for row, pairs in draw_tasks(report, tasks, seeds, "certified gap"):
        metric = None
        for number in ("first", "second"):
            objective = MStepObjective(pairs, previous_metric=metric)
            metric = solve_m_step(objective, tol=1e-8).metric
            with one_blas_thread():
                certificate, seconds = timed(certify, objective, metric, repeats=30)
                _, one_pass = timed(objective.value_and_gradient, metric, repeats=30)
            yield (
                row
                | {
                    "M-step": number,
                    "features": pairs.n_features,
                    "certified gap": certificate.relative_gap,
                    "certificate (ms)": 1e3 * seconds,
                    "pass (ms)": 1e3 * one_pass,
                    "certificate / pass": seconds / one_pass,
                }
            )
