"""Evidence that the statistics of a race are what they say, on rows that are counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from seraph_cvx.race.race_table import EMPTY_ROW, Race
from seraph_cvx.race.statistics import (
    RaceTimes,
    shifted_geometric_mean,
    solver_of,
    time_table,
)

LIMIT, TOL = 10.0, 1e-6


def row(solver, instance, repeat=1, *, gap=1e-7, compile_=0.0, solve=0.1, certify=0.0, **others):
    seconds = {"compile": compile_, "solve": solve, "certify": certify}
    seconds["total"] = sum(seconds.values())
    name, _, formulation = solver.partition("/")
    return (
        EMPTY_ROW
        | {"instance": instance, "solver": name, "formulation": formulation, "tol": TOL}
        | {"repeat": repeat, "outcome": "done", "true_gap": gap, "proved_gap": gap, "load": 1.0}
        | {f"{kind}_seconds": value for kind, value in seconds.items()}
        | others
    )


def race_of(*rows):
    return Race("A race", list(rows), races=[{"time_limit": LIMIT}])


def mean(*times):
    return np.exp(np.mean(np.log(np.array(times) + 0.01))) - 0.01


def test_failures_and_false_claims_count_at_the_limit():
    race = race_of(
        row("newton", "a", solve=0.02, certify=0.01),
        row("newton", "b", solve=0.04, compile_=0.02),
        row("SCS/dual", "a", solve=0.5, compile_=0.5),
        row("SCS/dual", "b", gap=2e-6, claims=True),
    )
    times = RaceTimes(race, TOL)
    assert times.solved.tolist() == [[True, True], [True, False]]
    assert times.mean("solve", "newton") == pytest.approx(mean(0.02, 0.04))
    assert times.mean("total", "newton") == pytest.approx(mean(0.03, 0.06))
    assert times.mean("solve", "SCS/dual") == pytest.approx(mean(0.5, LIMIT))
    assert times.mean("total", "SCS/dual") == pytest.approx(mean(1.0, LIMIT))
    for missing in ({"outcome": "time limit"}, {"outcome": "not run"}, {"outcome": "crashed"}):
        failed = row("SCS/dual", "b", gap=None) | missing | {"total_seconds": 0.1}
        again = RaceTimes(race_of(*race.rows[:3], failed), TOL)
        assert again.mean("total", "SCS/dual") == times.mean("total", "SCS/dual")
    assert shifted_geometric_mean([0.5, 0.5]) == pytest.approx(0.5)


def test_repeats_are_medians_and_an_instance_is_solved_in_all_of_them_or_not():
    seconds = (0.1, 0.5, 0.3)
    rows = [row("newton", "a", k + 1, solve=s) for k, s in enumerate(seconds)]
    rows += [row("UNO/factor", "a", k, solve=0.2, gap=1.0 if k == 3 else 1e-9) for k in (1, 2, 3)]
    times = RaceTimes(race_of(*rows), TOL)
    assert times.seconds("solve").tolist() == [[0.3], [0.2]]
    assert times.solved.tolist() == [[True], [False]]
    table = time_table(race_of(*rows), TOL).rows
    assert [line["solved"] for line in table] == [1, 0]


def test_the_best_of_a_solvers_settings_is_the_fastest_that_solved():
    race = race_of(
        row("newton", "a", solve=0.1),
        row("newton", "b", solve=0.1),
        row("CLARABEL/primal", "a", solve=0.4),
        row("CLARABEL/primal", "b", solve=0.2, gap=1.0),
        row("CLARABEL-tuned/dual", "a", solve=2.0),
        row("CLARABEL-tuned/dual", "b", solve=0.05),
    )
    assert {solver_of(line) for line in race.rows} == {"newton", "CLARABEL"}
    merged = RaceTimes(race, TOL, merged=True)
    assert merged.labels == ["newton", "CLARABEL"]
    assert merged.seconds("solve")[1].tolist() == [0.4, 0.05]
    by_name = {line["solver"]: line for line in time_table(race, TOL).rows}
    names = ["newton", "CLARABEL/primal", "CLARABEL-tuned/dual", "CLARABEL, best of 2"]
    assert list(by_name) == names
    best = by_name["CLARABEL, best of 2"]
    assert best["won : lost, solve"] == "1 : 1"
    assert best["solve / newton"] == pytest.approx(mean(0.4, 0.05) / 0.1)
    primal = by_name["CLARABEL/primal"]
    assert (primal["solved"], primal["won : lost, total"]) == (1, "2 : 0")
