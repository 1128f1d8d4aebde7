"""Compare the recommended configuration with the paper's, and with the best of our own table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from seraph_cvx.display.result_table import ResultTable
from seraph_cvx.numerics.checks import FloatArray

from ..protocol.printed_table2 import PRINTED
from ..protocol.tasks import TASKS
from ..runs.methods import METHODS
from ..runs.single_run import DONE
from .summaries import Rows, are_comparable, mark_best

JUDGED, REFERENCE = "recommended", "euclidean"
"""The method that is judged, and the one its improvement is measured from."""

PRINTED_JUDGED, PRINTED_REFERENCE = "SERAPH_hyper", "EUCLIDEAN"
"""The rows of the paper that these two are compared with."""

TOLERANCE = 2.0
"""How many standard errors of the difference are tolerated."""

ENOUGH = 10
"""This many of the twelve tasks must agree."""


@dataclass(frozen=True)
class Judgment:
    """The verdicts on one task; means are of the 1-NN error in %."""

    task: str
    mean: float
    largest: float
    improvement: float
    least: float
    least_paired: float
    best: str
    is_best: bool
    is_best_paired: bool

    @property
    def agrees(self) -> bool:
        """Whether the mean is small enough, or the improvement large enough."""
        return self.mean <= self.largest or self.improvement >= self.least

    @property
    def agrees_paired(self) -> bool:
        """Whether `agrees` holds with the paired standard error of the improvement."""
        return self.mean <= self.largest or self.improvement >= self.least_paired


def judge(rows: Rows) -> list[Judgment]:
    """Judge task by task whether the recommended configuration agrees with the paper."""
    return [_verdict(task, columns) for task, columns in _whole_tasks(rows).items()]


def judgment_table(judgments: Sequence[Judgment]) -> ResultTable:
    """Tabulate the verdicts by task, and on how many tasks each of them holds."""
    rows = [_row(verdict) for verdict in judgments]
    count = {column: sum(row[column] == "yes" for row in rows) for column in VERDICTS}
    rows.append({"task": f"of {len(rows)}"} | {name: str(n) for name, n in count.items()})
    notes = [
        "Near the paper: the error is at most the paper's SERAPH_hyper plus 2 combined standard "
        "errors, or the improvement on the Euclidean distance at least the paper's less 2. "
        "Combined: the root of the sum of squares of all the standard errors; paired: less what "
        "the same samplings have in common, with the correlation of our two columns.",
        "Best or tied: no method of the table differs from it significantly for the better, by "
        "the t-test at 5 % against the smallest mean, unpaired as the paper's, or paired.",
        f"Asked for: near the paper, and best or tied, on {ENOUGH} of {len(TASKS)} tasks each.",
    ]
    return ResultTable("The recommended configuration, judged", rows, notes)


def duel_table(rows: Rows) -> ResultTable:
    """Tabulate each method's mean error over the tasks, and its duels with the recommended one."""
    tasks = _whole_tasks(rows)
    lines = []
    for method in METHODS:
        pairs = [(columns[JUDGED], columns[method]) for columns in tasks.values()]
        row = METHODS[method].paper_row
        printed = [PRINTED[str(row), task][0] for task in tasks if (str(row), task) in PRINTED]
        lines.append(
            {
                "method": METHODS[method].title,
                "mean error": f"{np.mean([np.mean(other) for _, other in pairs]):.2f}",
                "printed": f"{np.mean(printed):.2f}" if len(printed) == len(tasks) else "",
                "better, tied, worse": _outcomes(pairs, paired=False),
                "better, tied, worse, paired": _outcomes(pairs, paired=True),
            }
        )
    note = f"Means over {len(tasks)} tasks. Better: the recommended configuration is."
    return ResultTable("The recommended configuration against each method", lines, [note])


VERDICTS = (
    "near the paper",
    "near, paired errors",
    "best or tied",
    "best or tied, paired test",
)
"""The columns that hold yes or no."""


def _row(verdict: Judgment) -> dict[str, str]:
    said = (verdict.agrees, verdict.agrees_paired, verdict.is_best, verdict.is_best_paired)
    return {
        "task": TASKS[verdict.task].title,
        "error": f"{verdict.mean:.2f}",
        "at most": f"{verdict.largest:.2f}",
        "improvement": f"{verdict.improvement:.2f}",
        "at least": f"{verdict.least:.2f}",
        "at least, paired": f"{verdict.least_paired:.2f}",
        "smallest mean": METHODS[verdict.best].title,
    } | {name: "yes" if word else "no" for name, word in zip(VERDICTS, said, strict=True)}


def _whole_tasks(rows: Rows) -> dict[str, dict[str, FloatArray]]:
    """The errors by task and method, in the order of the samplings, of tasks that lack no run."""
    found: dict[str, dict[str, dict[int, float]]] = {}
    for row in rows:
        if row["outcome"] == DONE:
            by_method = found.setdefault(row["task"], {})
            by_method.setdefault(row["method"], {})[row["sampling"]] = row["error"]
    whole = {}
    for task in TASKS:
        by_method = found.get(task, {})
        samplings = sorted(by_method.get(JUDGED, ()))
        if len(samplings) > 1 and all(sorted(by_method.get(m, ())) == samplings for m in METHODS):
            whole[task] = {m: np.array([by_method[m][s] for s in samplings]) for m in METHODS}
    return whole


def _verdict(task: str, errors: Mapping[str, FloatArray]) -> Judgment:
    own, reference = errors[JUDGED], errors[REFERENCE]
    printed, printed_error = PRINTED[PRINTED_JUDGED, task]
    printed_reference, printed_reference_error = PRINTED[PRINTED_REFERENCE, task]
    n = len(own)
    s, s0 = (float(np.std(column, ddof=1) / np.sqrt(n)) for column in (own, reference))
    squares = s**2 + s0**2 + printed_error**2 + printed_reference_error**2
    common = 2.0 * _correlation(own, reference) * (s * s0 + printed_error * printed_reference_error)
    expected = printed_reference - printed
    best = min(errors, key=lambda method: float(np.mean(errors[method])))
    return Judgment(
        task=task,
        mean=float(np.mean(own)),
        largest=printed + TOLERANCE * float(np.hypot(s, printed_error)),
        improvement=float(np.mean(reference - own)),
        least=expected - TOLERANCE * float(np.sqrt(squares)),
        least_paired=expected - TOLERANCE * float(np.sqrt(squares - common)),
        best=best,
        is_best=JUDGED in mark_best(errors),
        is_best_paired=best == JUDGED or are_comparable(own, errors[best], paired=True),
    )


def _correlation(a: FloatArray, b: FloatArray) -> float:
    """The correlation of two columns; 0 where one of them does not vary."""
    if np.ptp(a) == 0.0 or np.ptp(b) == 0.0:
        return 0.0
    return float(np.corrcoef(a, b)[0, 1])


def _outcomes(pairs: Sequence[tuple[FloatArray, FloatArray]], paired: bool) -> str:
    count = [0, 0, 0]
    for own, other in pairs:
        tied = own is other or are_comparable(own, other, paired)
        count[1 if tied else 0 if np.mean(own) < np.mean(other) else 2] += 1
    return ", ".join(map(str, count))
