"""Summaries over samplings: mean, standard error, boldface, difference from the paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtr

from seraph_cvx.numerics.checks import FloatArray

from ..protocol.printed_table2 import PRINTED
from ..runs.methods import METHODS
from ..runs.single_run import CUT_OFF, DONE

SIGNIFICANCE = 0.05
"""The level of the t-test behind the boldface."""

Rows = Sequence[Mapping[str, Any]]
"""Rows of runs, see :func:`.single_run.run_method`."""


@dataclass(frozen=True)
class Summary:
    """The results of one task and method over all samplings."""

    task: str
    method: str
    n_done: int
    n_failed: int
    n_cut_off: int
    mean: float | None
    standard_error: float | None
    is_best: bool
    printed: float | None
    printed_error: float | None
    difference: float | None
    seconds: float | None
    reason: str


def summarize(rows: Rows) -> list[Summary]:
    """Summarize each task and method: mean, standard error, boldface, difference from Table 2."""
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["task"], row["method"]), []).append(row)
    errors = {key: _errors(group) for key, group in groups.items()}
    best: set[tuple[str, str]] = set()
    for task in dict.fromkeys(task for task, _ in groups):
        found = {key: e for key, e in errors.items() if key[0] == task and len(e)}
        best |= mark_best(found)
    return [_summary(key, group, errors[key], key in best) for key, group in groups.items()]


def mark_best(errors: Mapping[Any, FloatArray]) -> set[Any]:
    """Find the smallest mean, and those that do not differ from it significantly."""
    if not errors:
        return set()
    winner = min(errors, key=lambda key: float(np.mean(errors[key])))
    best = errors[winner]
    return {key for key, sample in errors.items() if key == winner or are_comparable(sample, best)}


def are_comparable(a: FloatArray, b: FloatArray, paired: bool = False) -> bool:
    """Whether two columns of errors do not differ significantly."""
    n, n_b = len(a), len(b)
    if n < 2 or n_b < 2:
        return False
    apart = abs(float(np.mean(a) - np.mean(b)))
    if paired:
        freedom, error = n - 1, float(np.std(a - b, ddof=1)) / np.sqrt(n)
    else:
        squares = sum(float(np.sum(np.square(e - np.mean(e)))) for e in (a, b))
        freedom = n + n_b - 2
        error = np.sqrt(squares / freedom * (1.0 / n + 1.0 / n_b))
    if error == 0.0:
        return apart == 0.0
    return bool(2.0 * stdtr(freedom, -apart / error) >= SIGNIFICANCE)


def _errors(group: Rows) -> FloatArray:
    return np.array([row["error"] for row in group if row["outcome"] == DONE], dtype=np.float64)


def _summary(key: tuple[str, str], group: Rows, errors: FloatArray, is_best: bool) -> Summary:
    task, method = key
    n = len(errors)
    mean = float(np.mean(errors)) if n else None
    spread = float(np.std(errors, ddof=1) / np.sqrt(n)) if n > 1 else None
    row = METHODS[method].paper_row if method in METHODS else None
    printed, printed_error = PRINTED.get((str(row), task), (None, None))
    difference = None
    if mean is not None and spread is not None and printed is not None and printed_error:
        difference = (mean - printed) / float(np.hypot(spread, printed_error))
    times = [row["seconds"] for row in group if row["outcome"] == DONE]
    not_done = [row for row in group if row["outcome"] != DONE]
    n_cut_off = sum(row["outcome"] == CUT_OFF for row in not_done)
    return Summary(
        *(task, method, n, len(not_done) - n_cut_off, n_cut_off, mean, spread, is_best),
        *(printed, printed_error, difference, float(np.mean(times)) if times else None),
        not_done[0]["detail"] if not_done else "",
    )
