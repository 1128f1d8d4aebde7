"""Tests between methods: paired over draws, Wilcoxon's over means, and mean ranks (Demsar 2006)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import chi2, rankdata, studentized_range, ttest_1samp, wilcoxon

from seraph_cvx.numerics.checks import FloatArray

from .measures import DONE

SIGNIFICANCE = 0.05
"""The level of every test."""

ROUNDING = 1e-9
"""Errors in % that differ by less, absolutely or relatively, differ by rounding alone."""

Rows = Sequence[Mapping[str, Any]]
"""Rows of runs, see :func:`.measures.run_on_draw`."""

Cell = tuple[str, int]
"""A set and a number of labels a class."""


class Results:
    """The values of one measure, by method, set and labels, then by draw."""

    def __init__(self, rows: Rows, measure: str = "error") -> None:
        self.methods = list(dict.fromkeys(row["method"] for row in rows))
        self.cells: list[Cell] = list(dict.fromkeys((row["set"], row["labels"]) for row in rows))
        self._values: dict[tuple[str, Cell], dict[int, float]] = {}
        for row in rows:
            if row["outcome"] == DONE and row[measure] is not None:
                cell = self._values.setdefault((row["method"], (row["set"], row["labels"])), {})
                cell[row["draw"]] = float(row[measure])

    def values(self, method: str, cell: Cell) -> FloatArray:
        """The values of a method, a draw each."""
        return np.array(list(self._values.get((method, cell), {}).values()))

    def mean(self, method: str, cell: Cell) -> float | None:
        """The mean over draws; None without any."""
        values = self.values(method, cell)
        return float(np.mean(values)) if len(values) else None

    def standard_error(self, method: str, cell: Cell) -> float | None:
        """The standard error of the mean over draws; None with fewer than two."""
        values = self.values(method, cell)
        return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None

    def differences(self, method: str, reference: str, *cells: Cell) -> FloatArray:
        """The differences method - reference, on the draws of some cells that both have."""
        found = []
        for cell in cells:
            ours, theirs = (self._values.get((name, cell), {}) for name in (method, reference))
            found += [ours[draw] - theirs[draw] for draw in ours if draw in theirs]
        return np.array(found)

    def overall(self, method: str, cells: Sequence[Cell]) -> float | None:
        """The mean of the means of some cells; None unless the method has all of them."""
        means = [self.mean(method, cell) for cell in cells]
        known = [mean for mean in means if mean is not None]
        return float(np.mean(known)) if known and len(known) == len(means) else None


def paired_p_value(differences: FloatArray) -> float:
    """The p-value of the paired t-test, two-sided, from the differences."""
    largest = float(np.max(np.abs(differences), initial=0.0))
    if largest <= ROUNDING:
        return 1.0
    if np.ptp(differences) <= ROUNDING * largest:
        return float(2.0 ** (1 - len(differences)))
    return float(ttest_1samp(differences, 0.0).pvalue)


def verdict(differences: FloatArray) -> int:
    """Whether errors are smaller by the paired test (-1), larger (1), or neither (0)."""
    if paired_p_value(differences) >= SIGNIFICANCE:
        return 0
    return int(np.sign(np.mean(differences)))


@dataclass(frozen=True)
class Duel:
    """A method against a reference, over cells."""

    method: str
    reference: str
    n_cells: int
    difference: float
    wins: int
    ties: int
    losses: int
    p_value: float


def duel(results: Results, method: str, reference: str, cells: Sequence[Cell]) -> Duel | None:
    """Compare a method with a reference; None if they have no cell in common."""
    pairs = [results.differences(method, reference, cell) for cell in cells]
    pairs = [differences for differences in pairs if len(differences)]
    if not pairs:
        return None
    means = np.array([np.mean(differences) for differences in pairs])
    verdicts = [verdict(differences) for differences in pairs]
    return Duel(
        method=method,
        reference=reference,
        n_cells=len(pairs),
        difference=float(np.mean(means)),
        wins=verdicts.count(-1),
        ties=verdicts.count(0),
        losses=verdicts.count(1),
        p_value=float(wilcoxon(means).pvalue) if np.any(means) else 1.0,
    )


@dataclass(frozen=True)
class MeanRanks:
    """The mean ranks of methods over data sets, and when two of them differ."""

    names: tuple[str, ...]
    ranks: tuple[float, ...]
    n_sets: int
    critical_difference: float
    chi_square: float
    p_value: float

    @property
    def groups(self) -> list[tuple[str, ...]]:
        """The largest groups of two or more methods whose mean ranks do not differ."""
        found: list[tuple[str, ...]] = []
        end = 0
        for start, rank in enumerate(self.ranks):
            near = sum(other < rank + self.critical_difference for other in self.ranks)
            if near > max(end, start + 1):
                found.append(self.names[start:near])
                end = near
        return found


def nemenyi_value(n_methods: int, level: float = SIGNIFICANCE) -> float:
    """The critical value q of Nemenyi's test: the studentized range / sqrt(2)."""
    return float(studentized_range.ppf(1.0 - level, n_methods, np.inf) / np.sqrt(2.0))


def mean_ranks(names: Sequence[str], errors: FloatArray, level: float = SIGNIFICANCE) -> MeanRanks:
    """Rank k methods on N sets: Friedman's test, and Nemenyi's critical difference."""
    n, k = errors.shape
    if k < 2 or n < 1:
        raise ValueError(f"{k} methods on {n} sets: ranks need two methods and a set.")
    of_sets = rankdata(errors, axis=1)
    ranks, middle = of_sets.mean(axis=0), (k + 1) / 2.0
    order = np.argsort(ranks, kind="stable")
    spread = float(np.sum((of_sets - middle) ** 2))  # zero where all methods tie on all sets
    between = float(np.sum((ranks - middle) ** 2))
    chi_square = (k - 1) * n**2 * between / spread if spread else 0.0
    return MeanRanks(
        names=tuple(names[j] for j in order),
        ranks=tuple(float(ranks[j]) for j in order),
        n_sets=n,
        critical_difference=nemenyi_value(k, level) * float(np.sqrt(k * (k + 1) / (6.0 * n))),
        chi_square=chi_square,
        p_value=float(chi2.sf(chi_square, k - 1)),
    )


def rank_methods(results: Results) -> MeanRanks | None:
    """Rank the methods by their mean over label counts, a set each; None with fewer than two."""
    by_set: dict[str, list[Cell]] = {}
    for cell in results.cells:
        by_set.setdefault(cell[0], []).append(cell)
    means = {
        method: [results.overall(method, cells) for cells in by_set.values()]
        for method in results.methods
    }
    whole = [method for method, column in means.items() if None not in column]
    if len(whole) < 2:
        return None
    return mean_ranks(whole, np.array([means[method] for method in whole], dtype=np.float64).T)
