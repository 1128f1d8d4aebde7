"""The tables of the benchmark of defaults, from rows of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from seraph_cvx.display.result_table import ResultTable
from seraph_cvx.numerics.checks import FloatArray

from .contestants import CONTESTANTS, DEFAULT, EUCLIDEAN
from .data_sets import EMBEDDED, MORE
from .measures import DONE
from .statistics import Cell, Results, Rows, duel, verdict


def titles_of(methods: Sequence[str]) -> dict[str, str]:
    """The titles of methods in tables and pictures; for your own its name."""
    return {name: CONTESTANTS[name].title if name in CONTESTANTS else name for name in methods}


def ordered(rows: Rows) -> list[Mapping[str, Any]]:
    """Sort rows: known sets and methods first and in their order, then the others as they come."""
    sets = list(dict.fromkeys((*MORE, *EMBEDDED, *(row["set"] for row in rows))))
    methods = list(dict.fromkeys((*CONTESTANTS, *(row["method"] for row in rows))))
    place = {name: k for k, name in enumerate(sets)}, {name: k for k, name in enumerate(methods)}
    return sorted(
        rows,
        key=lambda row: (
            place[0][row["set"]],
            row["labels"],
            row["draw"],
            place[1][row["method"]],
        ),
    )


def groups_of_sets(cells: Sequence[Cell]) -> dict[str, list[Cell]]:
    """Cells by the origin of their set, by its title."""
    groups = {
        "the thirteen sets": MORE,
        "scikit-learn's own sets": EMBEDDED,
        "other sets": {cell[0] for cell in cells}.difference(MORE, EMBEDDED),
    }
    found: dict[str, list[Cell]] = {}
    for title, names in groups.items():
        inside = [cell for cell in cells if cell[0] in names]
        n = len({cell[0] for cell in inside})
        if title == "other sets":
            title = f"{title} ({n})"
        elif n < len(names):
            title = f"{n} of {title}"
        if n:
            found[title] = inside
    return found


def means_table(results: Results, title: str, cells: Sequence[Cell]) -> ResultTable:
    """Mean errors over sets, a row per method, a column per number of labels."""
    counts = sorted({cell[1] for cell in cells})
    names = titles_of(results.methods)
    rows = []
    for method in results.methods:
        row: dict[str, Any] = {"method": names[method]}
        for count in counts:
            chosen = [cell for cell in cells if cell[1] == count]
            row[f"{count} labels a class"] = shown(results.overall(method, chosen))
        row["all"] = shown(results.overall(method, cells))
        draws = [len(results.values(method, cell)) for cell in cells]
        row["draws"] = f"{min(draws)}" if len(set(draws)) == 1 else f"{min(draws)}-{max(draws)}"
        rows.append(row)
    return ResultTable(f"Mean error in %, {title}", rows)


def duels_table(results: Results, reference: str, cells: Sequence[Cell]) -> ResultTable:
    """Every method against one of them."""
    names = titles_of([*results.methods, reference])
    rows = []
    for method in results.methods:
        found = None if method == reference else duel(results, method, reference, cells)
        if found is not None:
            rows.append(
                {
                    "method": names[method],
                    "difference": f"{found.difference:+.2f}",
                    "wins": found.wins,
                    "ties": found.ties,
                    "losses": found.losses,
                    "Wilcoxon p": f"{found.p_value:.2g}",
                }
            )
    note = (
        "The mean difference in points, negative where the method is better. Wins, ties and losses "
        "count pairs of a set and a number of labels, by the paired t-test over draws at 5 %; "
        "Wilcoxon's signed-rank test is over the mean differences of these pairs, which of one set "
        "are not independent. No p-value is corrected for the number of tests."
    )
    return ResultTable(f"Against {names[reference]}", rows, [note])


def sets_table(results: Results, reference: str = EUCLIDEAN) -> ResultTable:
    """The difference of each method from a reference on each set, over all numbers of labels."""
    names = titles_of([*results.methods, reference])
    rivals = [method for method in results.methods if method != reference]
    rows: list[dict[str, Any]] = []
    tally = {method: {-1: 0, 0: 0, 1: 0} for method in rivals}
    for name in dict.fromkeys(cell[0] for cell in results.cells):
        cells = [cell for cell in results.cells if cell[0] == name]
        row: dict[str, Any] = {"set": name}
        for method in rivals:
            differences = results.differences(method, reference, *cells)
            row[names[method]] = _difference(differences)
            if len(differences):
                tally[method][verdict(differences)] += 1
        rows.append(row)
    last: dict[str, Any] = {"set": "wins / ties / losses"}
    last |= {names[m]: f"{t[-1]} / {t[0]} / {t[1]}" for m, t in tally.items()}
    note = (
        "Points of error more than the Euclidean distance (negative: fewer), over all draws and "
        "numbers of labels of a set; bold where the paired t-test has p < 0.05."
    )
    return ResultTable(f"Each set, against {names[reference]}", [*rows, last], [note])


def default_table(results: Results) -> ResultTable:
    """The default minus the Euclidean distance, a row per set, a column per number of labels."""
    counts = sorted({cell[1] for cell in results.cells})
    rows = []
    for name in dict.fromkeys(cell[0] for cell in results.cells):
        row = {"set": name}
        for count in counts:
            cell = (name, count)
            row[f"{count} labels"] = _difference(results.differences(DEFAULT, EUCLIDEAN, cell))
        rows.append(row)
    return ResultTable("SERAPH against the Euclidean distance, by labels a class", rows)


def measures_table(rows: Rows) -> ResultTable:
    """All measures, each the mean over the sets and numbers of labels; seconds are medians."""
    kinds = {"1-NN": "error", "3-NN": "error_3nn", "pair AUC": "pair_auc"}
    kinds["held-out 1-NN"] = "held_out_error"
    by_kind = {title: Results(rows, kind) for title, kind in kinds.items()}
    seconds: dict[str, list[float]] = {}
    for row in rows:
        if row["outcome"] == DONE:
            seconds.setdefault(row["method"], []).append(row["seconds"])
    lines = []
    for method, title in titles_of(by_kind["1-NN"].methods).items():
        line: dict[str, Any] = {"method": title}
        for kind, results in by_kind.items():
            cells = [cell for cell in results.cells if len(results.values(method, cell))]
            line[kind] = shown(results.overall(method, cells))
        line["seconds"] = f"{np.median(seconds[method]):.2g}" if method in seconds else ""
        lines.append(line)
    note = (
        "In %, means over sets and numbers of labels. Of a classifier the error of its predictions "
        "is under 1-NN. Seconds: the median of a fit, on one core."
    )
    return ResultTable("All measures", lines, [note])


def failures_table(rows: Rows) -> ResultTable:
    """The methods with failed runs, how many, and the first reason."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        if row["outcome"] != DONE:
            found.setdefault(row["method"], []).append(row)
    lines = [
        {
            "method": titles_of([method])[method],
            "failed": len(failed),
            "first": f"{failed[0]['set']}, {failed[0]['labels']} labels, draw {failed[0]['draw']}",
            "reason": failed[0]["detail"],
        }
        for method, failed in found.items()
    ]
    return ResultTable("What failed", lines)


def shown(value: float | None) -> str:
    """A number with two decimals; nothing for None."""
    return "" if value is None else f"{value:.2f}"


def _difference(differences: FloatArray) -> str:
    """A mean difference, bold where the paired test finds it."""
    if not len(differences):
        return ""
    text = f"{np.mean(differences):+.1f}"
    return f"**{text}**" if verdict(differences) else text
