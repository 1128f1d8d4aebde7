"""What a race says of its solvers, in the statistics of the field.

A run solves its instance if the true gap of the answer is within the tolerance that was asked for,
whatever the solver says of it. Any other run counts at the time limit: no answer, a false claim, a
limit of time or memory, a run that was skipped after one of these. Means are shifted geometric,

    exp(mean over instances of log(t + shift)) - shift,      shift = 10 ms,

of the median over repeats; ranks and their intervals are those of single repeats. Each statistic is
given by solve time, which leaves out what CVXPY or our own set-up take before a solver starts and
what certificates take after it, and by total time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..display.result_table import ResultTable
from .attempt import TUNED_SUFFIX
from .race_table import Race, label_of

OURS = "newton"

KINDS = {"solve": "solve_seconds", "total": "total_seconds"}
"""The two times by which solvers are compared."""

Times = NDArray[np.float64]


def shifted_geometric_mean(times: Any, shift: float = 0.01) -> float:
    """The geometric mean of times plus a shift, less the shift: 10 ms, below which none counts.

    Examples
    --------
    >>> round(shifted_geometric_mean([0.0, 0.03]), 6)
    0.01
    """
    return float(np.exp(np.mean(np.log(np.asarray(times) + shift))) - shift)


def solver_of(row: Mapping[str, Any]) -> str:
    """The solver of a row, whatever its formulation and settings."""
    return str(row["solver"]).partition("(")[0].removesuffix(TUNED_SUFFIX)


class RaceTimes:
    """The times of a race at one tolerance, failures at the limit.

    Parameters
    ----------
    race : Race
    tol : float
        Only runs that were asked for it count.
    merged : bool
        Best-of rows instead of single entrants: for each solver with several settings or
        formulations, on each instance, the fastest that solved it.

    Attributes
    ----------
    labels, instances : list of str
    solved : (labels, instances) array of bool
        In all repeats.
    """

    def __init__(self, race: Race, tol: float, merged: bool = False) -> None:
        self.limit = float(race.time_limit or 0.0)
        rows = [row for row in race.rows if row["tol"] == tol]
        self.instances = list(dict.fromkeys(row["instance"] for row in rows))
        name_of = solver_of if merged else label_of
        self.labels = list(dict.fromkeys(map(name_of, rows)))
        repeats = max((row["repeat"] for row in rows), default=1)
        shape = len(self.labels), len(self.instances), repeats
        self._times = {kind: np.full(shape, self.limit) for kind in KINDS}
        self._solved = np.zeros(shape, dtype=bool)
        for row in rows:
            if row["true_gap"] is None or row["true_gap"] > tol:
                continue
            instance, repeat = self.instances.index(row["instance"]), row["repeat"] - 1
            place = self.labels.index(name_of(row)), instance, repeat
            self._solved[place] = True
            for kind, field in KINDS.items():
                self._times[kind][place] = min(self._times[kind][place], row[field])

    @property
    def solved(self) -> NDArray[np.bool_]:
        """Which solver solved which instance, in every repeat."""
        return np.asarray(self._solved.all(axis=2))

    def seconds(self, kind: str) -> Times:
        """The median times over repeats, by solver and instance."""
        return np.asarray(np.median(self._times[kind], axis=2))

    def mean(self, kind: str, label: str) -> float:
        """The shifted geometric mean over instances of a solver's times."""
        return shifted_geometric_mean(self.seconds(kind)[self.labels.index(label)])

    def ranks(self, kind: str) -> list[str]:
        """Each solver's rank by the mean of each repeat: from the best to the worst."""
        means = np.array(
            [[shifted_geometric_mean(own) for own in times.T] for times in self._times[kind]]
        )
        ranks = 1 + np.argsort(np.argsort(means, axis=0, kind="stable"), axis=0)
        ends = zip(ranks.min(axis=1).tolist(), ranks.max(axis=1).tolist(), strict=True)
        return [f"{low}" if low == high else f"{low}-{high}" for low, high in ends]


def tolerances(race: Race) -> list[float]:
    """The tolerances of a race, the loosest first."""
    return sorted({row["tol"] for row in race.rows}, reverse=True)


def time_table(race: Race, tol: float, merged: bool = False) -> ResultTable:
    """Solved instances, shifted geometric means and ranks of each solver, at one tolerance."""
    times = RaceTimes(race, tol, merged)
    ranks = {kind: times.ranks(kind) for kind in KINDS}
    rows = []
    for k, label in enumerate(times.labels):
        row: dict[str, Any] = {
            "solver": label,
            "solved": f"{int(times.solved[k].sum())} of {len(times.instances)}",
        }
        for kind in KINDS:
            row[f"{kind} (s)"] = times.mean(kind, label)
            row[f"rank by {kind}"] = ranks[kind][k]
        rows.append(row)
    what = "best of each solver's settings and formulations, " if merged else ""
    title = f"Times to a tolerance of {tol:g}, {what}failures at {times.limit:g} s"
    return ResultTable(title, rows)


def ratio_table(race: Race, tol: float, ours: str = OURS) -> ResultTable:
    """Every entrant against ours, at one tolerance: ratios of means, and on how many instances.

    Above 1 ours is faster. Instances that the other did not solve count as won, those that neither
    solved for nobody.
    """
    rows = []
    for merged in (False, True):
        times = RaceTimes(race, tol, merged)
        if ours not in times.labels:
            continue
        own = times.labels.index(ours)
        entries = {label: [r for r in race.rows if solver_of(r) == label] for label in times.labels}
        for k, label in enumerate(times.labels):
            settings = {label_of(row) for row in entries[label]}
            if label == ours or (merged and len(settings) < 2):
                continue
            name = f"{label}, best of {len(settings)}" if merged else label
            rows.append({"solver": name, **_against(times, k, own)})
    return ResultTable(f"Times as multiples of those of {ours}, tolerance {tol:g}", rows)


def _against(times: RaceTimes, other: int, own: int) -> dict[str, Any]:
    """The columns of :func:`ratio_table` for one entrant."""
    row: dict[str, Any] = {"solved": int(times.solved[other].sum())}
    for kind in KINDS:
        seconds = times.seconds(kind)
        mean = shifted_geometric_mean(seconds[other]) / shifted_geometric_mean(seconds[own])
        won = times.solved[own] & (~times.solved[other] | (seconds[own] < seconds[other]))
        lost = times.solved[other] & (~times.solved[own] | (seconds[other] < seconds[own]))
        row |= {
            f"mean, {kind}": mean,
            f"won : lost, {kind}": f"{int(won.sum())} : {int(lost.sum())}",
        }
    return row


def entrant_table(race: Race) -> ResultTable:
    """What raced: each entrant's options, besides the tolerances and limits that all are given."""
    options = {
        name: given for start in race.races for name, given in start.get("options", {}).items()
    }
    rows = []
    for label in dict.fromkeys(map(label_of, race.rows)):
        given = ", ".join(f"{name}={value!r}" for name, value in options.get(label, {}).items())
        rows.append({"solver": label, "options": given or "its defaults"})
    return ResultTable("Entrants and their options", rows)


def load_of(race: Race) -> tuple[float, float]:
    """The median and the largest load of the machine before a run; NaN where it is unknown."""
    loads: Sequence[float] = [row["load"] for row in race.rows if row["load"] is not None]
    return (float(np.median(loads)), max(loads)) if loads else (np.nan, np.nan)
