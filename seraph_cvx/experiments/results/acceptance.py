"""Compare the recommended configuration with the paper's, and with the best of our own table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...display.result_table import ResultTable
from ...numerics.checks import FloatArray
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
    """The verdicts on one task; means are of the 1-NN error in %.

    Attributes
    ----------
    task : str
    mean, largest : float
        The mean error of the recommended configuration, and its limit, see :func:`judge`.
    improvement, least, least_paired : float
        On the Euclidean distance; what it has to be at least, by either standard error.
    best : str
        The method of the smallest mean.
    is_best, is_best_paired : bool
        The recommended configuration is that method or does not differ from it significantly, by
        the unpaired t-test or by the paired one.
    """

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
    """Judge task by task whether the recommended configuration agrees with the paper.

    e <= E + 2 sqrt(s^2 + S^2), or e0 - e >= E0 - E - 2 sqrt(s^2 + s0^2 + S^2 + S0^2), by task.

    e and s are mean and standard error of the recommended configuration, e0 and s0 of the Euclidean
    distance on the same samplings; E, S, E0, S0 those printed for SERAPH_hyper and the Euclidean
    distance in Table 2. The paired, stricter standard error subtracts 2 r (s s0 + S S0) under the
    root, r the correlation of our two columns: the paper's own is not printed and taken to be r.

    Parameters
    ----------
    rows : sequence of mapping
        Rows of runs. A task is judged only if all methods are done on the same samplings, two or
        more.

    Returns
    -------
    list of Judgment

    Examples
    --------
    >>> rows = [{"task": "iris", "sampling": s, "method": method, "outcome": "done",
    ...          "error": (5.0 if method == "recommended" else 9.0) + s}
    ...         for method in METHODS for s in (0, 1)]
    >>> (verdict,) = judge(rows)
    >>> verdict.mean, verdict.improvement, verdict.agrees, verdict.is_best
    (5.5, 4.0, True, True)
    """
    return [_verdict(task, columns) for task, columns in _whole_tasks(rows).items()]


def judgment_table(judgments: Sequence[Judgment]) -> ResultTable:
    """Tabulate the verdicts by task, and on how many tasks each of them holds.

    Examples
    --------
    >>> one = Judgment("iris", 8.6, 7.6, 3.2, 0.4, 2.6, "gdm", True, False)
    >>> row = judgment_table([one]).rows[0]
    >>> row["near the paper"], row["best or tied"], row["best or tied, paired test"]
    ('yes', 'yes', 'no')
    """
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
    """Tabulate each method's mean error over the tasks, and its duels with the recommended one.

    On how many tasks the recommended configuration is better than the method, not different, and
    worse, by the t-test at 5 %, unpaired and paired.

    Examples
    --------
    >>> rows = [{"task": "iris", "sampling": s, "method": method, "outcome": "done",
    ...          "error": (5.0 if method == "recommended" else 9.0) + s}
    ...         for method in METHODS for s in (0, 1)]
    >>> row = duel_table(rows).rows[0]
    >>> row["method"], row["mean error"], row["better, tied, worse, paired"]
    ('Euclidean', '9.50', '1, 0, 0')
    """
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
