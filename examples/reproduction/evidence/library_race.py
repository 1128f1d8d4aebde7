"""Solvers on the field's libraries: what each claims, judged by proven intervals of the optima.

A claim of "optimal" with a value v is false where no answer that passes its solver's own test at
the tolerance eps that it ran with could have that value. With |.| the largest entry, A x - b for
the constraints and c for the linear objective of the conic program, that test lets pass at most

    r_p = eps (1 + max(|Ax|, |b|) + |x|),   r_d = eps (1 + |c| + |x| + |y|),   gap = eps (1 + |v|),

and by weak duality v then lies in [lower - r_p |y|_1 - gap, upper + r_d |x|_1 + gap]. Optimal x and
y are not known: the largest of all answers to the instance stand for them. "Infeasible" of a
problem with a proven optimum is false unless a ray to the tolerance may say so, which excludes only
points with |x|_1 < 1 / eps; "unbounded" likewise, by |y|_1. "Optimal" of a problem that is proven
infeasible is false where the point violates a constraint by more than r_p.
"""

from __future__ import annotations

import csv
import json
import math
import os
import resource
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
from matplotlib.figure import Figure

from seraph_cvx.display.result_table import ResultTable
from seraph_cvx.plots.style import PALETTE, SLIDE_WIDTH, new_figure
from seraph_cvx.processes.isolation import ONE_THREAD, ForkServer
from seraph_cvx.processes.journal import Journal
from seraph_cvx.proof.point import judge_point
from seraph_cvx.race.attempt import Attempt, NotForThisProblem
from seraph_cvx.race.problems import finite, solve_problem
from seraph_cvx.race.statistics import shifted_geometric_mean

from .library_proofs import PRELOAD, read

TOLERANCES = {
    "CLARABEL": (1e-8, 1e-8),
    "SCS": (1e-5, 1e-7),
    "OSQP": (1e-5, 1e-4),
    "HIGHS": (1e-7, 1e-7),
    "MOREAU": (1e-8, 1e-8),
    "CVXOPT": (1e-6, 1e-7),
}
"""What the defaults are, called by CVXPY 1.9: the largest of the tolerances, and that of rays."""

ACCURACY = {None: 1e-4, 1e-8: 1e-6}
"""Settings: the tolerance asked for, and to what an answer has to be right to count as solved."""

LIFTED = {"SCS": "max_iters", "OSQP": "max_iter", "MOREAU": "max_iter", "CVXOPT": "max_iters"}
"""Limits of iterations, out of the way at 1e-8: time is limited, as everybody's is."""

WIDEST = 1e-6
"""An interval counts as proven up to this relative width: a hundredth of the loosest accuracy."""

OPTIMAL, NO_POINT = cp.OPTIMAL, (cp.INFEASIBLE, cp.UNBOUNDED)

Row = dict[str, Any]


class RaceJournal(Journal):
    """The runs by file, solver and tolerance; the instances' intervals; what raced, and where."""

    work = "race"

    def __init__(self, path: Path | None = None, resume: bool = False) -> None:
        self.runs: dict[tuple[Any, ...], Row] = {}
        self.instances: dict[tuple[str, str], Row] = {}
        self.starts: list[Row] = []
        super().__init__(path, resume)

    def take(self, kind: str, content: Row) -> None:
        """Keep a line."""
        if kind == "start":
            self.starts.append(content)
        elif kind == "instance":
            self.instances[content["library"], content["file"]] = content
        else:
            key = content["library"], content["file"], content["solver"], content["tol"]
            self.runs[key] = content


def proven_instances(path: Path) -> Iterator[Row]:
    """The instances of a table of proofs that can judge a race, the smallest first."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".jsonl":
        rows = list(map(json.loads, text.splitlines()))
    else:
        rows = list(csv.DictReader(text.splitlines()))
    for row in sorted(rows, key=lambda row: float(row.get("nonzeros") or math.inf)):
        ends = [float(row[name]) if row.get(name) else None for name in ("lower", "upper")]
        known = {"library": row["library"], "file": row["file"]}
        known |= {name: int(row.get(name) or 0) for name in ("rows", "variables", "nonzeros")}
        if None not in ends and ends[1] - ends[0] <= WIDEST * max(1.0, *map(abs, ends)):
            yield known | {"lower": ends[0], "upper": ends[1]}
        elif row["library"] == "infeas" and (
            row.get("infeasible") or row["outcome"] == "infeasible"
        ):
            # elsewhere it is a contradiction by rounding, which accuses nobody
            yield known | {"lower": None, "upper": None}


def run_once(path: Path, solver: str, tol: float | None, limit: float) -> Row:
    """Solve the problem of a file in a process of its own, within some processor seconds."""
    warnings.simplefilter("ignore")
    load, problem = os.getloadavg()[0], read(path)
    began = time.process_time()
    most = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(began + limit), most))
    lifted = {LIFTED[solver]: 10_000_000} if tol is not None and solver in LIFTED else {}
    try:
        attempt = solve_problem(problem, tol, limit, solver, **lifted)
    except NotForThisProblem as refusal:
        return {"outcome": "not for this problem", "detail": str(refusal)[:100]}
    seconds = time.process_time() - began
    resource.setrlimit(resource.RLIMIT_CPU, (most, most))
    return {
        "outcome": "done",
        "seconds": seconds,
        "load": load,
        **measured(problem, attempt, solver),
    }


def measured(problem: cp.Problem, attempt: Attempt, solver: str) -> Row:
    """What a solver said, and the sizes of its answer."""
    value, variables, multipliers = attempt.answer
    found: Row = {"said": attempt.word, "value": finite(value)}
    if attempt.word in NO_POINT or any(part is None for part in variables):
        return found
    expressions = [arg for c in problem.constraints for arg in c.args]
    data, _, _ = problem.get_problem_data(solver)  # compiled before
    entries = {
        "x": variables,
        "y": [part for y in multipliers for part in (y if isinstance(y, list) else [y])],
        "b": [expression.value for expression in expressions],
        "c": [data.get("c", data.get("q"))],
    }
    flat = {
        name: np.concatenate([np.zeros(1), *(np.ravel(part) for part in parts if part is not None)])
        for name, parts in entries.items()
    }
    found |= {f"{name}_sum": finite(np.abs(flat[name]).sum()) for name in "xy"}
    found |= {f"{name}_most": finite(np.abs(part).max()) for name, part in flat.items()}
    found |= {"maximize": isinstance(problem.objective, cp.Maximize)}
    plain = (cp.constraints.Equality, cp.constraints.Inequality, cp.SOC, cp.PSD)
    if all(isinstance(constraint, plain) for constraint in problem.constraints):
        each = [np.max(constraint.violation(), initial=0.0) for constraint in problem.constraints]
        return found | {"violation": finite(max(each, default=0.0))}
    return found | {"violation": finite(judge_point(problem).violation)}


def measure(
    folder: Path,
    instances: list[Row],
    journal: RaceJournal,
    solvers: list[str],
    limits: dict[str, float],
    follow: Callable[[Row, int, int], None],
) -> None:
    """Make the runs that the journal lacks: the defaults first, and at 1e-8 if they had time."""
    keys = [
        (i["library"], i["file"], s, tol) for i in instances for s in solvers for tol in ACCURACY
    ]
    waiting = [key for key in keys if key not in journal.runs]
    for instance in instances:
        journal.add("instance", instance)
    with ForkServer([*PRELOAD, __name__], ONE_THREAD) as server:
        for number, key in enumerate(waiting, 1):
            library, file, solver, tol = key
            row = dict(zip(("library", "file", "solver", "tol"), key, strict=True))
            before = journal.runs.get((library, file, solver, None), {}) if tol else {}
            if before.get("outcome", "done") != "done":
                row["outcome"] = before["outcome"]
            else:
                work = folder / library / file, solver, tol, limits["cpu"]
                memory, wall = int(limits["memory"] * 2**30), 6.0 * limits["cpu"] + 60.0
                ended = server.run(run_once, *work, time_limit=wall, memory_limit=memory)
                is_late = "SIGXCPU" in ended.detail
                row |= {"outcome": "time limit" if is_late else ended.status}
                row |= {"peak_gigabytes": round(ended.peak_bytes / 2**30, 2)}
                row |= ended.result or {"detail": ended.detail[:100]}
            journal.add("run", row)
            follow(row, number, len(waiting))


# What the rows say

KINDS = ("solved", "explained", "no claim", "false")
"""Of a run: right; off, by what its tolerance may explain; without a claim; a false claim."""


def judged_rows(journal: RaceJournal) -> list[Row]:
    """The runs that could be made, each with its kind, how far it is off, and what is allowed."""
    by_instance: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in journal.runs.values():
        if row["outcome"] != "not for this problem":
            by_instance[row["library"], row["file"]].append(row)
    return [
        row | judge(row, journal.instances[key], rows)
        for key, rows in sorted(by_instance.items())
        for row in rows
    ]


def judge(row: Row, instance: Row, rows: list[Row]) -> Row:
    """The kind of a run, by the proven interval and all answers to the instance."""
    eps, ray = TOLERANCES[row["solver"]] if row["tol"] is None else (row["tol"], row["tol"])
    said, value = row.get("said"), row.get("value")
    answers = [other for other in rows if other.get("said") == OPTIMAL]
    if said not in (OPTIMAL, *NO_POINT) or (said == OPTIMAL and value is None):
        return {"kind": "no claim"}
    sizes = {name: row.get(name) or 0.0 for name in ("b_most", "x_most", "violation")}
    residual = eps * (1.0 + sizes["b_most"] + sizes["x_most"])
    if instance["lower"] is None:
        if said == OPTIMAL:
            is_false, allowed = sizes["violation"] > residual, residual
            kind = "false" if is_false else "explained"
            return {"kind": kind, "off": sizes["violation"], "allowed": allowed}
        return {"kind": "solved" if said == cp.INFEASIBLE else "no claim"}
    if said in NO_POINT:
        name = "x_sum" if said == cp.INFEASIBLE else "y_sum"
        known = [other[name] for other in answers if other.get(name) is not None]
        is_excluded = bool(known) and min(known) < 1.0 / ray
        return {"kind": "false" if is_excluded else "explained"}
    most = {
        name: max(other.get(name) or 0.0 for other in answers)
        for name in ("x_sum", "y_sum", "c_most", "x_most", "y_most")
    }
    off = max(instance["lower"] - value, value - instance["upper"], 0.0)
    allowed = eps * (1.0 + abs(value))
    if value < instance["lower"]:
        allowed += residual * most["y_sum"]
    else:
        allowed += eps * (1.0 + most["c_most"] + most["x_most"] + most["y_most"]) * most["x_sum"]
    accuracy = ACCURACY[row["tol"]]
    is_right = off <= accuracy * max(1.0, abs(value))
    is_right &= sizes["violation"] <= accuracy * (1.0 + sizes["b_most"])
    kind = "false" if off > allowed else "solved" if is_right else "explained"
    return {"kind": kind, "off": off, "allowed": allowed}


def label_of(row: Row) -> str:
    """A solver and its setting."""
    return row["solver"] if row["tol"] is None else f"{row['solver']} at {row['tol']:g}"


def overall(rows: list[Row]) -> ResultTable:
    """Of each entrant: how many runs, how many of each kind."""
    table = []
    for label in dict.fromkeys(sorted(map(label_of, rows))):
        kinds = [row["kind"] for row in rows if label_of(row) == label]
        claims = len(kinds) - kinds.count("no claim")
        counts = {"solved": kinds.count("solved"), "claims": claims}
        counts |= {"off, explained": kinds.count("explained"), "false": kinds.count("false")}
        table.append({"solver": label, "instances": len(kinds), **counts})
    return ResultTable("What the solvers claim, and what is true", table)


def by_library(rows: list[Row], limit: float) -> ResultTable:
    """By library: what each entrant solved, and its mean time, failures at the limit."""
    libraries = dict.fromkeys(row["library"] for row in rows)
    table = []
    for label in dict.fromkeys(sorted(map(label_of, rows))):
        line = {"solver": label}
        for library in libraries:
            own = [row for row in rows if (label_of(row), row["library"]) == (label, library)]
            solved = [row["kind"] == "solved" for row in own]
            times = [row["seconds"] if ok else limit for row, ok in zip(own, solved, strict=True)]
            line[library] = f"{sum(solved)} of {len(own)}" if own else ""
            line[f"{library} (s)"] = shifted_geometric_mean(times) if own else ""
        table.append(line)
    return ResultTable("Solved instances, and mean processor seconds", table)


def false_claims(rows: list[Row], instances: dict[tuple[str, str], Row]) -> ResultTable:
    """Each false claim, beside what is proven."""
    table = []
    for row in rows:
        if row["kind"] != "false":
            continue
        known = instances[row["library"], row["file"]]
        table.append(
            {
                "instance": f"{row['library']}/{row['file']}",
                "solver": label_of(row),
                "says": row["said"] if row["value"] is None else f"{row['value']:.10g}",
                "proven": _interval(known),
                "off by": row.get("off", ""),
                "explained by its tolerance": row.get("allowed", ""),
            }
        )
    return ResultTable("False claims", table)


def _interval(known: Row) -> str:
    if known["lower"] is None:
        return "infeasible"
    return f"[{known['lower']:.10g}, {known['upper']:.10g}]"


def draw(rows: list[Row]) -> Figure:
    """One bar an entrant: its runs by kind."""
    labels = sorted(set(map(label_of, rows)), reverse=True)
    figure = new_figure(
        SLIDE_WIDTH, 1.5 + 0.35 * len(labels), "What solvers claim, judged by proofs"
    )
    ax, left = figure.subplots(), np.zeros(len(labels))
    words = (
        "solved",
        "claims, off by what its tolerance explains",
        "claims nothing",
        "false claim",
    )
    for kind, name, color in zip(
        KINDS, words, (*PALETTE[2:5:2], "#BBBBBB", PALETTE[1]), strict=True
    ):
        counts = [sum((label_of(r), r["kind"]) == (label, kind) for r in rows) for label in labels]
        ax.barh(labels, counts, left=left, label=name, color=color)
        left += counts
    ax.set_xlabel("instances")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=2, frameon=False)
    return figure


# The page


def page(journal: RaceJournal) -> str:
    """The page of the race: every number of it is from the journal."""
    rows, start = judged_rows(journal), journal.starts[-1]
    claims = [row for row in rows if row["kind"] != "no claim"]
    false = [row for row in claims if row["kind"] == "false"]
    liars = sorted({label_of(row) for row in false})
    loads = [row["load"] for row in rows if "load" in row]
    verdict = (
        f"**{len(false)} of {len(claims)} claims are false**, by {', '.join(liars)}."
        if false
        else f"**None of {len(claims)} claims is false.**"
    )
    versions = ", ".join(f"{name} {number}" for name, number in start["versions"].items())
    tables = [overall(rows), by_library(rows, start["cpu"]), false_claims(rows, journal.instances)]
    shown = [table.to_markdown() for table in tables if table.rows]
    return PAGE.format(
        verdict=verdict,
        instances=len({(row["library"], row["file"]) for row in rows}),
        runs=len(rows),
        tables="\n\n".join(shown),
        explained=_explained_example(rows, journal.instances),
        best=_best_example(rows, journal.instances),
        definition=str(__doc__).partition("\n\n")[2].strip(),
        limits=f"{start['cpu']:g} processor seconds and {start['memory']:g} GiB",
        accuracies=" and ".join(f"{accuracy:g}" for accuracy in ACCURACY.values()),
        machine=start["machine"],
        versions=versions,
        load=f"{np.median(loads):.1f} (median) and at most {max(loads):.1f}",
    )


def _explained_example(rows: list[Row], instances: dict[tuple[str, str], Row]) -> str:
    """The claim that is furthest off among those that their tolerance explains."""
    found = [row for row in rows if row["kind"] == "explained" and row.get("off")]
    found = [row for row in found if row["value"] is not None and row["said"] == OPTIMAL]
    if not found:
        return "Among these runs there is no such claim."
    row = max(found, key=lambda row: row["off"] / max(1.0, abs(row["value"])))
    known = instances[row["library"], row["file"]]
    return (
        f"On {row['library']}/{row['file']}, {label_of(row)} says optimal with {row['value']:.8g}, "
        f"at a point that violates no constraint by more than {row['violation']:.1e}. Proven is "
        f"{_interval(known)}: it is off by {row['off']:.2g}, where its own test may let pass "
        f"{row['allowed']:.2g}. By residuals it counts as solved."
    )


def _best_example(rows: list[Row], instances: dict[tuple[str, str], Row]) -> str:
    """The instance whose best claimed value is furthest beyond the proven optimum."""
    beyond = []
    for row in rows:
        known = instances[row["library"], row["file"]]
        if row.get("said") != OPTIMAL or row["value"] is None or known["lower"] is None:
            continue
        better = row["value"] - known["upper"] if row["maximize"] else known["lower"] - row["value"]
        beyond.append((better / max(1.0, abs(known["lower"])), row["library"], row["file"], row))
    share, library, file, row = max(beyond, key=lambda each: each[0], default=(0.0, "", "", {}))
    if share <= 0.0:
        return "Among these runs no claim is better than the optimum."
    own = [r for r in rows if (r["library"], r["file"]) == (library, file)]
    solved = [label_of(r) for r in own if r["kind"] == "solved"]
    return (
        f"On {library}/{file} the best value that anybody claims is {row['value']:.8g}, by "
        f"{label_of(row)}; no point has it, since {_interval(instances[library, file])} is "
        f"proven. Measured by the best, the right answers of {', '.join(solved) or 'nobody'} "
        f"would be off by {share:.1e}."
    )


PAGE = """# The race on the field's libraries

{verdict} {runs} runs on {instances} problems of the field's libraries, whose optima are proven;
each solver as CVXPY calls it by default, and asked for 1e-8.

![What solvers claim, judged by proofs](libraries-race.png)

{tables}

## What a proven interval adds

Benchmarks of the field judge an answer by its residuals, or by its distance from the best value
of the participants.

**Residuals** are in the units of the constraints. What they are worth in the units of the
objective is decided by the multipliers: a residual of 1e-6 beside a multiplier of 1e6 is an error
of 1. {explained}

**The best of the participants** is the one that gained most by violating constraints, where
nobody is exact; and where all are wrong it says nothing. {best}

An interval is proven from the numbers of the file alone, in exact or enclosed arithmetic: it asks
no participant, and a claim outside of it is wrong whoever makes it.

## What counts as false

{definition}

Where a problem is infeasible only by rounding of its decimals nobody is judged. A run counts as
solved where its status is right, its value within {accuracies} of the interval (at the defaults,
and at 1e-8; relative to the larger of 1 and the value) and its violation within the same times 1
+ |b|. Means are
shifted geometric (10 ms), and a run that is not solved counts at the limit.

## How it was measured

```sh
python examples/reproduction/libraries_race.py FOLDER    # judged by proven-intervals.csv
python examples/reproduction/libraries_race.py --redraw  # this page, from libraries-race.jsonl
```

One run at a time, each in a process of its own, at most {limits}; seconds are those of the
processor for compiling by CVXPY and solving, with one thread. A solver that came to a limit at
its defaults is not run at 1e-8. On {machine}; the load before a run was {load}. Versions:
{versions}.
"""
