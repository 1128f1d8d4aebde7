"""What a race says of its solvers, in the statistics of the field.

A run solves its instance if the true gap of the answer is within the tolerance that was asked for,
whatever the solver says of it. Any other run counts at the time limit: no answer, a false claim, a
limit of time or memory, a run that was skipped after one of these. Means are shifted geometric,

    exp(mean over instances of log(t + shift)) - shift,      shift = 10 ms,

of the median over repeats. Each statistic is
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
        return np.median(self._times[kind], axis=2)

    def mean(self, kind: str, label: str) -> float:
        """The shifted geometric mean over instances of a solver's times."""
        return shifted_geometric_mean(self.seconds(kind)[self.labels.index(label)])


def time_table(race: Race, tol: float) -> ResultTable:
    """Every entrant at one tolerance: solved instances, mean times, and how they compare with ours.

    Below are best-of rows: on each instance the fastest of a solver's settings and formulations
    that solved it. "won : lost" is ours against the other: an instance that one of them did not
    solve is won by the other, one that neither solved by nobody.
    """
    rows = []
    for merged in (False, True):
        times = RaceTimes(race, tol, merged)
        own = times.labels.index(OURS) if OURS in times.labels else None
        for k, label in enumerate(times.labels):
            settings = {label_of(row) for row in race.rows if solver_of(row) == label}
            if merged and len(settings) < 2:
                continue
            name = f"{label}, best of {len(settings)}" if merged else label
            row = {"solver": name, "solved": int(times.solved[k].sum())}
            for kind in KINDS:
                row |= _compared(times, kind, k, own)
            rows.append(row)
    title = f"Times to a tolerance of {tol:g}, failures at {race.time_limit or 0.0:g} s"
    return ResultTable(f"{title}, and as multiples of those of {OURS}", rows)


def _compared(times: RaceTimes, kind: str, other: int, own: int | None) -> dict[str, Any]:
    """The columns of one kind of time for one entrant."""
    seconds, row = times.seconds(kind), {f"{kind} (s)": times.mean(kind, times.labels[other])}
    if own is None:
        return row
    won = times.solved[own] & (~times.solved[other] | (seconds[own] < seconds[other]))
    lost = times.solved[other] & (~times.solved[own] | (seconds[other] < seconds[own]))
    return row | {
        f"{kind} / {times.labels[own]}": row[f"{kind} (s)"] / times.mean(kind, times.labels[own]),
        f"won : lost, {kind}": f"{int(won.sum())} : {int(lost.sum())}",
    }


def load_of(race: Race) -> tuple[float, float]:
    """The median and the largest load of the machine before a run; NaN where it is unknown."""
    loads: Sequence[float] = [row["load"] for row in race.rows if row["load"] is not None]
    return (float(np.median(loads)), max(loads)) if loads else (np.nan, np.nan)
