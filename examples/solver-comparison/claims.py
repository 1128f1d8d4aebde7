"""Prints every number that README.md has of the race, from the rows of race.jsonl alone.

    python examples/solver-comparison/claims.py

Each tier has a folder with its rows; race.md there has all tables, written from the same rows by
`seraph-cvx compare --redraw --out FOLDER`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from seraph_cvx.display.result_table import ResultTable
from seraph_cvx.race.attempt import TUNED_SUFFIX
from seraph_cvx.race.compare import read_race
from seraph_cvx.race.race_table import Race, count_claims, label_of
from seraph_cvx.race.solvers import kinds_of_entrants
from seraph_cvx.race.statistics import (
    KINDS,
    OURS,
    RaceTimes,
    load_of,
    shifted_geometric_mean,
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


def conic_solvers() -> set[str]:
    """The names of the solvers that get CVXPY's conic statement."""
    return {entrant.solver.removesuffix(TUNED_SUFFIX) for entrant in kinds_of_entrants()["conic"]}


def losses(races: dict[str, Race]) -> ResultTable:
    """Where an entrant is faster than ours on an instance, by solve time or by total."""
    rows = []
    for tier, race in races.items():
        for line in time_table(race, TARGET).rows:
            lost = {kind: line[f"won : lost, {kind}"].split(" : ")[1] for kind in KINDS}
            if "best of" not in line["solver"] and any(map(int, lost.values())):
                rows.append(
                    {
                        "tier": tier,
                        "solver": line["solver"],
                        "faster than newton, by solve time": lost["solve"],
                        "by total": lost["total"],
                        "mean / newton's, by solve time": line["solve / newton"],
                        "mean, by total": line["total / newton"],
                    }
                )
    return ResultTable(f"Where newton loses, at a tolerance of {TARGET:g}", rows)


def standings(races: dict[str, Race]) -> ResultTable:
    """Each solver at its best against ours, by tier: shifted geometric means as multiples."""
    rows = []
    for tier, race in races.items():
        times = RaceTimes(race, TARGET, merged=True)
        own = {kind: times.mean(kind, OURS) for kind in KINDS}
        for k, label in enumerate(times.labels):
            rows.append(
                {
                    "tier": tier,
                    "solver": label,
                    "solved": f"{int(times.solved[k].sum())} of {len(times.instances)}",
                    **{f"{kind} (s)": times.mean(kind, label) for kind in KINDS},
                    **{f"{kind} / newton": times.mean(kind, label) / own[kind] for kind in KINDS},
                }
            )
    return ResultTable(
        f"Each solver at its best (settings and formulations, by instance), tolerance {TARGET:g}",
        rows,
    )


def sentences(races: dict[str, Race]) -> Iterator[str]:
    """The sentences of the page that have numbers in them."""
    for tier, race in races.items():
        start = race.races[-1]
        rounds, loads = max(row["repeat"] for row in race.rows), load_of(race)
        claims, false = count_claims(race.rows)
        yield (
            f"**{tier}**: {len(race.references)} instances, {len(start['entrants'])} entrants, "
            f"{rounds} {'round' if rounds == 1 else 'rounds'}, {race.time_limit:g} s per run; the "
            f"load before a run was {loads[0]:.1f} (median) and at most {loads[1]:.1f}. "
            f"{claims} claims of success, {false} of them false."
        )
        yield from _against_conic(tier, race)
        by_solver: dict[str, list[dict]] = {}
        for row in race.rows:
            by_solver.setdefault(label_of(row), []).append(row)
        counts = {label: count_claims(rows) for label, rows in by_solver.items()}
        liars = [f"{label} {bad} of {all_}" for label, (all_, bad) in counts.items() if bad]
        if liars:
            yield f"False claims, {tier}: {', '.join(liars)}."


def _against_conic(tier: str, race: Race) -> Iterator[str]:
    """How ours compares with the best conic entrant, and with all of them taken together."""
    single, conic = RaceTimes(race, TARGET), conic_solvers()
    solvers = {label_of(row): solver_of(row) for row in race.rows}
    labels = [label for label in single.labels if solvers[label] in conic]
    if not labels:
        return
    parts = []
    for kind in KINDS:
        best = min(labels, key=lambda label, kind=kind: single.mean(kind, label))
        ratio = single.mean(kind, best) / single.mean(kind, OURS)
        parts.append(f"{_times(ratio)} by {kind} time ({best})")
    rows = [single.labels.index(label) for label in labels]
    together = [
        shifted_geometric_mean(np.min(single.seconds(kind)[rows], axis=0)) / single.mean(kind, OURS)
        for kind in KINDS
    ]
    yield (
        f"The best conic entrant's mean time, as a multiple of newton's ({tier}, tolerance "
        f"{TARGET:g}): {', '.join(parts)}; of the fastest conic run on each instance: "
        f"{_times(together[0])} by solve time, {_times(together[1])} by total."
    )


def _times(ratio: float) -> str:
    return f"{ratio:.3g}" if ratio < 1000.0 else f"{ratio:,.0f}"


def beats(races: dict[str, Race], solver: str) -> str:
    """Where a solver, at its best, is faster than ours."""
    parts = []
    for tier, race in races.items():
        times = RaceTimes(race, TARGET, merged=True)
        own, other = times.labels.index(OURS), times.labels.index(solver)
        counts = []
        for kind in KINDS:
            seconds = times.seconds(kind)
            faster = times.solved[other] & (seconds[other] < seconds[own])
            counts.append(f"{int(faster.sum())} by {kind}")
        parts.append(f"{tier}: {', '.join(counts)} of {len(times.instances)}")
    return f"Faster than newton at {TARGET:g}: {'; '.join(parts)}."


def page(folder: Path) -> str:
    """All tables and sentences, as they stand in README.md."""
    races = tiers(folder)
    parts = [losses(races).to_markdown(), standings(races).to_markdown()]
    parts += [f"- {sentence}" for sentence in sentences(races)]
    solvers = dict.fromkeys(solver_of(row) for race in races.values() for row in race.rows)
    parts += [f"- {name}: {beats(races, name)}" for name in solvers if name != OURS]
    return "\n\n".join(parts)


if __name__ == "__main__":
    print(page(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent))
