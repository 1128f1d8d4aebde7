"""Prints every number that README.md has of the race, from the rows of race.jsonl alone.

    python examples/solver-comparison/claims.py

Each tier has a folder with its rows; race.md there has all tables, written from the same rows by
`seraph-cvx compare --redraw --out FOLDER`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from seraph_cvx.display.result_table import ResultTable
from seraph_cvx.race.compare import read_race
from seraph_cvx.race.race_table import Race, label_of
from seraph_cvx.race.statistics import (
    KINDS,
    load_of,
    solver_of,
    time_table,
)

TIERS = ("small", "medium", "large")
TARGET = 1e-6
"""The tolerance of the published ratios."""


def tiers(folder: Path) -> dict[str, Race]:
    """The races of the tiers that were run."""
    paths = {tier: folder / tier / "race.jsonl" for tier in TIERS}
    return {tier: read_race(path) for tier, path in paths.items() if path.exists()}


def losses(races: dict[str, Race]) -> ResultTable:
    """Where an entrant is faster than ours on an instance, by solve time or by total."""
    rows = []
    for tier, race in races.items():
        for line in time_table(race, TARGET).rows:
            lost = any(int(line[f"won : lost, {kind}"].split(" : ")[1]) for kind in KINDS)
            if lost and "best of" not in line["solver"]:
                rows.append({"tier": tier, **line})
    return ResultTable(f"Where newton loses, at a tolerance of {TARGET:g}", rows)


def standings(races: dict[str, Race]) -> ResultTable:
    """Each solver at its best against ours, by tier: shifted geometric means as multiples."""
    rows = []
    for tier, race in races.items():
        lines = time_table(race, TARGET).rows
        best = {line["solver"].partition(",")[0] for line in lines if "best of" in line["solver"]}
        of = {label_of(row): solver_of(row) for row in race.rows}
        for line in lines:
            if of.get(line["solver"]) not in best:
                shown = {name: part for name, part in line.items() if "won" not in name}
                rows.append({"tier": tier, **shown})
    title = "Each solver at its best (settings and formulations, by instance), tolerance"
    return ResultTable(f"{title} {TARGET:g}", rows)


def sentences(races: dict[str, Race]) -> Iterator[str]:
    """The sentences of the page that have numbers in them."""
    for tier, race in races.items():
        start, loads, lines = race.races[-1], load_of(race), race.summary().rows
        rounds = max(row["repeat"] for row in race.rows)
        false = {line["solver"]: line["claims"] - line["true"] for line in lines}
        claims = {line["solver"]: line["claims"] for line in lines}
        yield (
            f"**{tier}**: {len(race.references)} instances, {len(start['entrants'])} entrants, "
            f"{rounds} rounds, {race.time_limit:g} s per run; the load before a run was "
            f"{loads[0]:.1f} (median) and at most {loads[1]:.1f}. {sum(claims.values())} claims of "
            f"success, {sum(false.values())} of them false."
        )
        liars = [f"{label} {bad} of {claims[label]}" for label, bad in false.items() if bad]
        yield f"False claims, {tier}: {', '.join(liars)}."


def page(folder: Path) -> str:
    """All tables and sentences, as they stand in README.md."""
    races = tiers(folder)
    parts = [losses(races).to_markdown(), standings(races).to_markdown()]
    parts += [f"- {sentence}" for sentence in sentences(races)]
    return "\n\n".join(parts)


if __name__ == "__main__":
    print(page(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent))
