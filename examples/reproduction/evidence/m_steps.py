"""First M-steps: our solver against others, and what a certificate costs."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from seraph_cvx import MStepObjective, certify, solve_m_step
from seraph_cvx.numerics.arrays import one_blas_thread
from seraph_cvx.processes.isolation import ONE_THREAD, ForkServer
from seraph_cvx.race.attempt import Entrant
from seraph_cvx.race.solvers import entrants, kinds_of_entrants
from seraph_cvx.solvers.solution import grade_matrix, gradient_method, newton_method

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

TRUE_GAP = 1e-5
"""The distance from the best known lower bound that a rival has to reach."""

RUNGS = (1e-5, 1e-6, 1e-7, 1e-8, 1e-9)
"""The tolerances that a rival is asked for, one after the other, until it reaches that distance."""

REPEATS, LONG = 3, 1.0
"""A run is repeated, as ours is, and the least time counts; but not one that takes a second."""

GRACE = 30.0
"""Seconds after its limit at which a rival that ignores it is ended."""


def best_lower_bound(objective: MStepObjective) -> float:
    """The dual value of our answer at a relative gap of 1e-10, if rounding allows."""
    with quiet():
        certificate = solve_m_step(objective, tol=1e-10).certificate
    return -np.inf if certificate is None else certificate.dual_value


def relative_distance(value: float, bound: float) -> float:
    """The relative gap (value - bound) / max(1, |value|); infinite if there is no value."""
    return float(np.nan_to_num((value - bound) / max(1.0, abs(value)), nan=np.inf))


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
        alone, _ = min(_own_seconds(*key, partial(gradient_method, "fista")) for _ in range(2))
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
        attempt, seconds = timed(entrant.solve, objective, tol, time_limit)
        least = min(least, seconds)
        if least > LONG:
            break
    graded = None if attempt.answer is None else grade_matrix(objective, attempt.answer)
    if graded is None:
        return least, np.inf
    return least, relative_distance(graded.certificate.primal_value, best_lower_bound(objective))


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
