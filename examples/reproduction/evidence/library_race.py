r"""Solvers on the problem libraries: what each claims, judged by proven intervals of the optima.

A claim of "optimal" with a value $v$ is false if no answer that passes the solver's own test, at
the tolerance $\epsilon$ that it ran with, could have that value. Let $\|\cdot\|$ be the largest
entry, $Ax - b$ the constraints and $c$ the linear objective of the conic program. Then the test
accepts at most the residuals and the gap

$$r_p = \epsilon (1 + \max(\|Ax\|, \|b\|) + \|x\|), \qquad
r_d = \epsilon (1 + \|c\| + \|x\| + \|y\|), \qquad g = \epsilon (1 + |v|),$$

and by weak duality $v$ lies between the proven lower bound minus $r_p \|y\|_1 + g$ and the proven
upper bound plus $r_d \|x\|_1 + g$. The optimal $x$ and $y$ are not known, so the largest of all
answers to the instance stand for them. "Infeasible" is false for a problem with a proven optimum,
unless a ray within the tolerance could show it: such a ray excludes only points with
$\|x\|_1 < 1 / (\epsilon (1 + \|c\|))$, and every answer must lie further out. "Unbounded" is judged
in the same way, by $\|y\|_1$ and $\|b\|$. "Optimal" is false for a problem that is proven
infeasible if the point violates a constraint by more than $r_p$.
"""

from __future__ import annotations

import csv
import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np

from seraph_cvx.display.result_table import ResultTable
from seraph_cvx.processes.isolation import Outcome
from seraph_cvx.proof.chord import values_set
from seraph_cvx.proof.point import judge_point
from seraph_cvx.race.attempt import Entrant
from seraph_cvx.race.grading import ungraded
from seraph_cvx.race.problems import ProblemInstance, finite
from seraph_cvx.race.race_table import Race
from seraph_cvx.race.statistics import load_of, shifted_geometric_mean

from .library_proofs import read

TOLERANCES = {
    "CLARABEL": (1e-8, 1e-8),
    "SCS": (1e-5, 1e-7),
    "OSQP": (1e-5, 1e-4),
    "HIGHS": (1e-7, 1e-7),
    "MOREAU": (1e-8, 1e-8),
    "CVXOPT": (1e-6, 1e-7),
}
"""The defaults, as CVXPY 1.9 calls them: the largest of the tolerances, and that of rays."""

ACCURACY = {None: 1e-4, 1e-8: 1e-6}
"""By tolerance asked for (None: the default): to what an answer has to be right to be solved."""

WIDEST = min(ACCURACY.values())
"""The relative width up to which an interval can judge."""

SIZES = ("x_sum", "y_sum", "b_most", "c_most", "x_most", "y_most")
"""What a row has besides that of any race: sizes of the answer, and of the numbers of the file."""

Row = dict[str, Any]


class SentFile(NamedTuple):
    """A file as it is sent to the process of a run."""

    path: Path

    def load(self) -> cp.Problem:
        """Its problem."""
        return read(self.path)


class FileInstance:
    """A file as the instance of a race, with the interval that was proven of it."""

    ladder = tuple(ACCURACY)

    def __init__(self, path: Path, lower: float | None, upper: float | None) -> None:
        self.sent, self.name, self.lower, self.upper = SentFile(path), str(path), lower, upper
        self.checksum = f"{path.stat().st_size} bytes"

    @cached_property
    def problem(self) -> cp.Problem:
        """Its problem, to judge answers by."""
        return self.sent.load()

    def reference(self) -> Row:
        """What is proven, for the journal: no interval if it is infeasible."""
        return {"lower": self.lower, "upper": self.upper, "checksum": self.checksum}

    def grade(self, _: float | None, tol: float | None, outcome: Outcome) -> Row:
        """The row of a run: what was said, the violation, and the sizes."""
        row, answer = ungraded(outcome)
        row |= dict.fromkeys(SIZES, 0.0)
        if row["outcome"] != "done" or row["said"] != cp.OPTIMAL:
            return row
        entries = {
            "x": answer.variables,
            "y": [part for y in answer.multipliers for part in (y if isinstance(y, list) else [y])],
            "c": [self.problem.get_problem_data("CLARABEL")[0]["c"]],
        }
        with values_set(self.problem.variables(), answer.variables):
            constraints = self.problem.constraints
            entries["b"] = [arg.value for each in constraints for arg in each.args]
            plain = (cp.constraints.Equality, cp.constraints.Inequality, cp.SOC, cp.PSD)
            if all(isinstance(each, plain) for each in constraints):
                worst = max((np.max(c.violation(), initial=0.0) for c in constraints), default=0.0)
            else:
                judged = judge_point(self.problem)
                worst = math.inf if judged is None else judged.violation
        row |= {"value": finite(answer.value), "violation": finite(worst)}
        row |= {"maximize": isinstance(self.problem.objective, cp.Maximize)}
        for name, parts in entries.items():
            flat = np.abs(np.concatenate([np.ravel(part) for part in parts if part is not None]))
            row |= {
                f"{name}_sum": finite(flat.sum()),
                f"{name}_most": finite(flat.max(initial=0.0)),
            }
        return row

    @staticmethod
    def entrants(solvers: Sequence[str] | None) -> list[Entrant]:
        """CVXPY's solvers whose tolerances are known, those that are installed."""
        names = [name for name in TOLERANCES if name in cp.installed_solvers()]
        return ProblemInstance.entrants(solvers or names)


def proven_instances(path: Path, folder: Path, most: int) -> dict[str, FileInstance]:
    """The files whose proof in a table can judge a race, of each library the smallest first."""
    rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
    chosen, turn = [], Counter[str]()
    for row in sorted(rows, key=lambda row: float(row["nonzeros"] or math.inf)):
        file = folder / row["library"] / row["file"]
        ends = [float(row[name]) if row[name] else None for name in ("lower", "upper")]
        is_narrow = None not in ends and ends[1] - ends[0] <= WIDEST * max(1.0, *map(abs, ends))
        # elsewhere a conflict is one of rounding, which accuses nobody
        is_infeasible = row["library"] == "infeas" and row["outcome"] == "infeasible"
        if file.is_file() and (is_narrow or is_infeasible):
            instance = FileInstance(file, *((None, None) if is_infeasible else ends))
            turn[row["library"]] += 1
            chosen.append((turn[row["library"]], f"{row['library']}/{row['file']}", instance))
    return {name: instance for _, name, instance in sorted(chosen, key=itemgetter(0))[:most]}


# What the rows say

KINDS = {
    "solved": "solved",
    "explained": "claims, off by what its tolerance explains",
    "no claim": "claims nothing",
    "false": "false claim",
}
"""The kinds of a run, in words."""


def judged_rows(race: Race) -> list[Row]:
    """The runs that could be made, each with its label, its kind, and how far it is off."""
    answers: dict[str, list[Row]] = defaultdict(list)
    rows = []
    for row in race.rows:
        if row["outcome"] != "not for this problem":
            setting = "" if row["tol"] is None else f" at {row['tol']:g}"
            known = {name: race.references[row["instance"]][name] for name in ("lower", "upper")}
            rows.append(dict(row) | known | {"label": row["solver"] + setting})
            answers[row["instance"]] += [dict(row)] if row["said"] == cp.OPTIMAL else []
    return [row | judge(row, answers[row["instance"]]) for row in rows]


def judge(row: Row, answers: list[Row]) -> Row:
    """The kind of a run, by the proven interval and all answers to the instance."""
    eps, ray = TOLERANCES[row["solver"]] if row["tol"] is None else (row["tol"], row["tol"])
    said, value, lower = row["said"], row["value"], row["lower"]
    residual = eps * (1.0 + row["b_most"] + row["x_most"])
    if said == cp.OPTIMAL and lower is None:
        kind = "false" if row["violation"] > residual else "explained"
        return {"kind": kind, "off": row["violation"], "allowed": residual}
    if said in (cp.INFEASIBLE, cp.UNBOUNDED) and lower is not None:
        point, size = ("x_sum", "c_most") if said == cp.INFEASIBLE else ("y_sum", "b_most")
        near = [answer for answer in answers if answer[point] * ray * (1.0 + answer[size]) < 1.0]
        return {"kind": "false" if near else "explained", "off": "", "allowed": ""}
    if said != cp.OPTIMAL:
        kind = "solved" if said == cp.INFEASIBLE else "no claim"
        return {"kind": kind, "off": "", "allowed": ""}
    most = {name: max(answer[name] for answer in answers) for name in SIZES}
    off = max(lower - value, value - row["upper"], 0.0)
    dual_residual = eps * (1.0 + most["c_most"] + most["x_most"] + most["y_most"])
    change = residual * most["y_sum"] if value < lower else dual_residual * most["x_sum"]
    allowed = eps * (1.0 + abs(value)) + change
    accuracy = ACCURACY[row["tol"]]
    is_right = off <= accuracy * max(1.0, abs(value))
    is_right &= row["violation"] <= accuracy * (1.0 + row["b_most"])
    kind = "false" if off > allowed else "solved" if is_right else "explained"
    return {"kind": kind, "off": off, "allowed": allowed}


def table(rows: list[Row], limit: float) -> ResultTable:
    """By library and entrant: the runs of each kind, and the mean time, failures at the limit."""
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        groups[row["instance"].partition("/")[0], row["label"]].append(row)
    lines = []
    for (library, label), own in sorted(groups.items()):
        kinds = Counter(row["kind"] for row in own)
        times = [row["total_seconds"] if row["kind"] == "solved" else limit for row in own]
        line: Row = {"library": library, "solver": label, "instances": len(own)}
        line |= {"solved": kinds["solved"], "claims": len(own) - kinds["no claim"]}
        line |= {"off, explained": kinds["explained"], "false": kinds["false"]}
        lines.append(line | {"mean seconds": shifted_geometric_mean(times)})
    return ResultTable("What the solvers claim, and what is true", lines)


def false_claims(rows: list[Row]) -> ResultTable:
    """Each false claim, beside what is proven."""
    lines = [
        {
            "instance": row["instance"],
            "solver": row["label"],
            "says": row["said"] if row["value"] is None else f"{row['value']:.10g}",
            "proven": _interval(row),
            "off by": row["off"],
            "its tolerance": row["allowed"],
        }
        for row in rows
        if row["kind"] == "false"
    ]
    return ResultTable("False claims, and what the tolerance explains", lines)


def _interval(row: Row) -> str:
    known = row["lower"] is not None
    return f"[{row['lower']:.10g}, {row['upper']:.10g}]" if known else "infeasible"


def draw(rows: list[Row]) -> Any:
    """One bar an entrant: its runs by kind."""
    from seraph_cvx.plots.style import PALETTE, SLIDE_WIDTH, new_figure

    labels = sorted({row["label"] for row in rows}, reverse=True)
    title = "What solvers claim, judged by proofs"
    figure = new_figure(SLIDE_WIDTH, 1.5 + 0.35 * len(labels), title)
    ax, left = figure.subplots(), np.zeros(len(labels))
    counts = Counter((row["label"], row["kind"]) for row in rows)
    colors = PALETTE[2], PALETTE[4], "#BBBBBB", PALETTE[1]
    for (kind, words), color in zip(KINDS.items(), colors, strict=True):
        width = np.array([counts[label, kind] for label in labels])
        ax.barh(labels, width, left=left, label=words, color=color)
        left += width
    ax.set_xlabel("instances")
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    return figure


# The page


def page(race: Race) -> str:
    """The page of the race: every number of it is from its rows."""
    rows, start, load = judged_rows(race), race.races[-1], load_of(race)
    claims = [row for row in rows if row["kind"] != "no claim"]
    liars = Counter(row["label"] for row in rows if row["kind"] == "false")
    verdict = f"**None of {len(claims)} claims is false.**"
    if liars:
        of = ", ".join(f"{count} by {label}" for label, count in sorted(liars.items()))
        verdict = f"**{liars.total()} of {len(claims)} claims are false**: {of}."
    shown = [table(rows, start["time_limit"]), *([false_claims(rows)] if liars else [])]
    return PAGE.format(
        verdict=verdict,
        instances=len({row["instance"] for row in rows}),
        runs=len(rows),
        tables="\n\n".join(each.to_markdown() for each in shown),
        explained=_explained(rows),
        best=_best(rows),
        definition=str(__doc__).partition("\n\n")[2].strip(),
        accuracies=" and ".join(f"{accuracy:g}" for accuracy in ACCURACY.values()),
        limits=f"{start['time_limit']:g} s and {start['memory_limit'] / 2**30:g} GiB",
        made=f"{start['machine']}, on {start['date']}",
        load=f"{load[0]:.1f} (median) and at most {load[1]:.1f}",
        versions=", ".join(f"{name} {number}" for name, number in start["versions"].items()),
    )


def _share(row: Row) -> float:
    """How far a claim is off, relatively; 0 where that has no meaning."""
    is_value = row["said"] == cp.OPTIMAL and row["lower"] is not None
    return float(row["off"] / max(1.0, abs(row["value"]))) if is_value else 0.0


def _explained(rows: list[Row]) -> str:
    """The claim that is furthest off among those that their tolerance explains."""
    row = max((row for row in rows if row["kind"] == "explained"), key=_share, default=None)
    if row is None or not _share(row):
        return "Among these runs there is no such claim."
    return (
        f"On {row['instance']}, {row['label']} says optimal with {row['value']:.8g}, at a point "
        f"that violates no constraint by more than {row['violation']:.1e}. The proven "
        f"interval is {_interval(row)}, so it is off by {row['off']:.2g}; its own test accepts up "
        f"to {row['allowed']:.2g}. By its residuals it counts as solved."
    )


def _best(rows: list[Row]) -> str:
    """The best claimed value that is furthest beyond the proven optimum."""
    better = [
        row for row in rows if _share(row) and row["maximize"] == (row["value"] > row["upper"])
    ]
    if not better:
        return "Among these runs no claim is better than the optimum."
    row = max(better, key=_share)
    return (
        f"On {row['instance']} the best value that anybody claims is {row['value']:.8g}, by "
        f"{row['label']}; no point has it, since {_interval(row)} is proven. Measured by "
        f"that value, a right answer would have a relative error of {_share(row):.1e}."
    )


PAGE = """# The race on the problem libraries

{verdict} There were {runs} runs on {instances} problems of the standard libraries, with proven
optima. Each solver ran as CVXPY calls it by default, and again with a tolerance of 1e-8.

![A bar for each solver and tolerance: most runs solve the problem or claim nothing, some claims are
off by what the tolerance explains, and a few at the right end are false](libraries-race.png)

{tables}

## What a proven interval adds

Most benchmarks judge an answer by its residuals, or by its distance from the best value that any
participant found.

**Residuals** are in the units of the constraints. The multipliers say what they are worth in the
units of the objective: a residual of 1e-6 with a multiplier of 1e6 is an error of 1. {explained}

**The best value of the participants** belongs, if no solver is exact, to the one that gained most
by violating constraints; if all are wrong, it means nothing. {best}

An interval is proven from the numbers in the file, in exact or interval arithmetic, without looking
at any participant. A claim outside it is wrong, no matter which
solver makes it.

## What counts as false

{definition}

If a problem is infeasible only because its decimals were rounded, no claim is judged. A run counts
as solved if its status is right, its value is within {accuracies} of the interval (at the defaults
and at 1e-8; relative to the larger of 1 and the value) and its violation is within the same times
$1 + \\|b\\|$. Means are shifted geometric (10 ms); a run that is not solved counts as the limit.

## How it was measured

```sh
python examples/reproduction/libraries_race.py FOLDER
python examples/reproduction/libraries_race.py    # rewrites this page from its rows
```

Runs are made one at a time, each in its own process with one thread and at most {limits}. The
seconds include compiling by CVXPY and solving. Limits on iterations are lifted at 1e-8. A solver
that reached a limit at its defaults is not run at 1e-8. Made on {made}; the load before a run was
{load}. Versions: {versions}.
"""
